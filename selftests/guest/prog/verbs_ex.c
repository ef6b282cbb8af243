// SPDX-License-Identifier: GPL-2.0
/*
 * Operations that not every device has: SEND with invalidate of a memory window, ATOMIC
 * WRITE, FLUSH. Their effect on the remote end's memory is compared there.
 *
 *   verbs_ex -d DEVICE                  server, until killed
 *   verbs_ex -d DEVICE SERVER [TEST..]  client, prints TAP
 *
 * "mixed" interleaves many of them, for networks that lose some of their packets: each must
 * be executed once and in order.
 *
 * A test that one of the two devices cannot do is skipped.
 */
#include "conn.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OOB_PORT	"7480"
#define LEN		65536u
#define AT		4096u		/* offset of the target memory */
#define QUEUE		128
#define WAIT		20.0		/* seconds for a completion */

/* One end of a test. */
struct run {
	struct dev *dev;
	struct oob *oob;
	bool client;
	uint8_t *mem;
	struct ibv_mr *mr;
	struct queue queue;
	struct conn conn;
	struct ibv_qp_ex *qp;
	struct {
		uint64_t addr;
		uint32_t rkey;
		uint32_t mw_rkey;
	} here, there;
	struct verdict verdict;
};

#define EXPECT(r, condition, ...) do { \
		if (!(condition)) \
			verdict_fail(&(r)->verdict, __VA_ARGS__); \
	} while (0)

static uint8_t pattern(uint32_t i)
{
	return i * 7 + (i >> 8) + 1;
}

static struct ibv_wc next(struct run *r)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	EXPECT(r, queue_wait(&r->queue, &wc, WAIT), "no completion within %.0f s", WAIT);
	return wc;
}

static struct ibv_wc expect(struct run *r, enum ibv_wc_opcode opcode, enum ibv_wc_status status)
{
	struct ibv_wc wc = next(r);

	EXPECT(r, wc.status == status, "%s, vendor_err %#x; expected %s",
	       ibv_wc_status_str(wc.status), wc.vendor_err, ibv_wc_status_str(status));
	EXPECT(r, status || wc.opcode == opcode, "opcode %u, expected %u", wc.opcode, opcode);
	return wc;
}

static void begin(struct run *r)
{
	ibv_wr_start(r->qp);
	r->qp->wr_id = 1;
	r->qp->wr_flags = IBV_SEND_SIGNALED;
}

static void post(struct run *r)
{
	int err = ibv_wr_complete(r->qp);

	EXPECT(r, !err, "cannot post: %s", strerror(err));
}

static void write_there(struct run *r, uint32_t rkey, uint32_t off, uint32_t len)
{
	begin(r);
	ibv_wr_rdma_write(r->qp, rkey, r->there.addr + off);
	ibv_wr_set_sge(r->qp, r->mr->lkey, (uintptr_t)r->mem + off, len);
	post(r);
}

/* Check that only these bytes of the server's memory hold the pattern. */
static void expect_only(struct run *r, uint32_t off, uint32_t len)
{
	for (uint32_t i = 0; i < LEN; i++) {
		uint8_t want = i >= off && i < off + len ? pattern(i) : 0;

		EXPECT(r, r->mem[i] == want, "byte %u is %#x, expected %#x", i, r->mem[i], want);
	}
}

/* Bind a window of the server over all of its memory; the client gets its key. */
static struct ibv_mw *bind_window(struct run *r)
{
	struct ibv_mw *mw = ibv_alloc_mw(r->dev->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = {
		.mr = r->mr,
		.addr = (uintptr_t)r->mem,
		.length = LEN,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	if (!mw)
		bail("cannot allocate a memory window: %s", strerror(errno));
	r->here.mw_rkey = ibv_inc_rkey(mw->rkey);
	begin(r);
	ibv_wr_bind_mw(r->qp, mw, r->here.mw_rkey, &info);
	post(r);
	expect(r, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
	return mw;
}

/* The window accepts a WRITE; a SEND invalidates it; the next WRITE is rejected. */
static void send_inv(struct run *r)
{
	struct ibv_mw *mw = r->client ? NULL : bind_window(r);
	struct ibv_sge sge = { (uintptr_t)r->mem, 16, r->mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (!r->client && ibv_post_recv(r->conn.qp, &recv, &bad))
		bail("cannot post a receive");
	oob_swap(r->oob, &r->here, &r->there, sizeof(r->here));
	if (r->client) {
		write_there(r, r->there.mw_rkey, AT, 64);
		expect(r, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
		begin(r);
		ibv_wr_send_inv(r->qp, r->there.mw_rkey);
		ibv_wr_set_sge(r->qp, r->mr->lkey, (uintptr_t)r->mem, 0);
		post(r);
		expect(r, IBV_WC_SEND, IBV_WC_SUCCESS);
		write_there(r, r->there.mw_rkey, 2 * AT, 64);
		expect(r, 0, IBV_WC_REM_ACCESS_ERR);
	} else {
		struct ibv_wc wc = expect(r, IBV_WC_RECV, IBV_WC_SUCCESS);

		/* Soft-RoCE gives the kernel's flag, which is not IBV_WC_WITH_INV: the key tells */
		EXPECT(r, wc.invalidated_rkey == r->here.mw_rkey,
		       "flags %#x, key %#x invalidated; expected %#x", wc.wc_flags,
		       wc.invalidated_rkey, r->here.mw_rkey);
	}
	oob_barrier(r->oob);
	if (!r->client)
		expect_only(r, AT, 64);
	if (mw && ibv_dealloc_mw(mw))
		bail("cannot deallocate a memory window");
}

static void atomic_write(struct run *r)
{
	oob_swap(r->oob, &r->here, &r->there, sizeof(r->here));
	for (uint32_t off = AT; r->client && off < AT + 64; off += 8) {
		begin(r);
		ibv_wr_atomic_write(r->qp, r->there.rkey, r->there.addr + off, r->mem + off);
		post(r);
		expect(r, IBV_WC_ATOMIC_WRITE, IBV_WC_SUCCESS);
	}
	oob_barrier(r->oob);
	if (!r->client)
		expect_only(r, AT, 64);
}

/* The memory is compared as soon as FLUSH reports that it is visible. */
static void flush(struct run *r)
{
	oob_swap(r->oob, &r->here, &r->there, sizeof(r->here));
	if (r->client) {
		write_there(r, r->there.rkey, AT, 2 * AT);
		begin(r);
		ibv_wr_flush(r->qp, r->there.rkey, r->there.addr + AT, 2 * AT,
			     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		ibv_wr_flush(r->qp, r->there.rkey, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
		post(r);
		expect(r, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
		expect(r, IBV_WC_FLUSH, IBV_WC_SUCCESS);
		expect(r, IBV_WC_FLUSH, IBV_WC_SUCCESS);
	}
	oob_barrier(r->oob);
	if (!r->client)
		expect_only(r, AT, 2 * AT);
}

/*
 * Each round of a batch has a slot of the server's memory and a window over it. A WRITE
 * through the window fills half of the slot except for its first word, which an ATOMIC
 * WRITE fills. FETCH_ADDs change a word of either: if a WRITE is executed twice and they
 * are not, their sums are lost. A SEND invalidates the window and reports the end of the
 * round. The server then compares the slot and spoils it for the rest of the batch.
 */
#define BATCHES		8
#define ROUNDS		16
#define SLOT		(LEN / ROUNDS)
#define HALF		(SLOT / 2)	/* the client's other half receives the former words */
#define WORD		8u
#define NOTE		16u		/* bytes of the SEND, behind the WRITE's */
#define WRITTEN		(HALF - NOTE - WORD)
#define SPOILED		0xee

static const enum ibv_wc_opcode in_turn[] = {
	IBV_WC_RDMA_WRITE, IBV_WC_FLUSH, IBV_WC_ATOMIC_WRITE, IBV_WC_FETCH_ADD, IBV_WC_FETCH_ADD,
	IBV_WC_SEND,
};

#define IN_TURN	(sizeof(in_turn) / sizeof(in_turn[0]))

struct window {
	struct ibv_mw *mw;
	uint32_t rkey;
};

static void fill_slot(uint8_t *slot, uint32_t batch, uint32_t i)
{
	for (uint32_t at = 0; at < HALF; at++)
		slot[at] = pattern(at + 31 * batch + 17 * i);
}

/* Apply the FETCH_ADDs to a slot */
static void add_words(uint8_t *slot, uint64_t addend)
{
	uint64_t word[2];

	memcpy(word, slot, sizeof(word));
	word[0] += addend;
	word[1] += addend;
	memcpy(slot, word, sizeof(word));
}

/*
 * Post the receive and bind the window of each round; set the server's memory to a state
 * that no round leaves
 */
static void offer(struct run *r, struct window *w)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint8_t *slot = r->mem + i * SLOT;
		struct ibv_sge sge = { (uintptr_t)slot + HALF - NOTE, NOTE, r->mr->lkey };
		struct ibv_recv_wr recv = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;
		struct ibv_mw_bind_info info = {
			.mr = r->mr,
			.addr = (uintptr_t)slot,
			.length = SLOT,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
		};

		w[i].rkey = ibv_inc_rkey(w[i].rkey);
		begin(r);
		ibv_wr_bind_mw(r->qp, w[i].mw, w[i].rkey, &info);
		post(r);
		expect(r, IBV_WC_BIND_MW, IBV_WC_SUCCESS);
		if (ibv_post_recv(r->conn.qp, &recv, &bad))
			bail("cannot post a receive");
	}
	memset(r->mem, SPOILED, LEN);
}

static void take_rounds(struct run *r, const struct window *w, uint32_t batch)
{
	uint8_t want[SLOT];

	memset(want, SPOILED, sizeof(want));
	for (uint32_t i = 0; i < ROUNDS && !r->verdict.bad; i++) {
		struct ibv_wc wc = expect(r, IBV_WC_RECV, IBV_WC_SUCCESS);

		EXPECT(r, wc.wr_id == i && wc.byte_len == NOTE,
		       "batch %u: receive %llu of %u bytes, expected %u of %u", batch,
		       (unsigned long long)wc.wr_id, wc.byte_len, i, NOTE);
		EXPECT(r, wc.invalidated_rkey == w[i].rkey,
		       "batch %u, round %u: key %#x invalidated, expected %#x", batch, i,
		       wc.invalidated_rkey, w[i].rkey);
		fill_slot(want, batch, i);
		add_words(want, batch + 1);
		EXPECT(r, !memcmp(r->mem + i * SLOT, want, SLOT),
		       "batch %u, round %u: wrong data", batch, i);
		memset(r->mem + i * SLOT, SPOILED, SLOT);
	}
}

static void post_round(struct run *r, uint32_t rkey, uint32_t batch, uint32_t i)
{
	uint8_t *slot = r->mem + i * SLOT;
	uint64_t there = r->there.addr + i * SLOT;

	fill_slot(slot, batch, i);
	begin(r);
	r->qp->wr_id = i * IN_TURN;
	ibv_wr_rdma_write(r->qp, rkey, there + WORD);
	ibv_wr_set_sge(r->qp, r->mr->lkey, (uintptr_t)slot + WORD, WRITTEN);
	r->qp->wr_id++;
	ibv_wr_flush(r->qp, r->there.rkey, there, SLOT, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	r->qp->wr_id++;
	ibv_wr_atomic_write(r->qp, r->there.rkey, there, slot);
	for (uint32_t at = 0; at < 2 * WORD; at += WORD) {
		r->qp->wr_id++;
		ibv_wr_atomic_fetch_add(r->qp, r->there.rkey, there + at, batch + 1);
		ibv_wr_set_sge(r->qp, r->mr->lkey, (uintptr_t)slot + HALF + at, WORD);
	}
	r->qp->wr_id++;
	ibv_wr_send_inv(r->qp, rkey);
	ibv_wr_set_sge(r->qp, r->mr->lkey, (uintptr_t)slot + HALF - NOTE, NOTE);
	post(r);
}

static void do_rounds(struct run *r, const uint32_t *rkey, uint32_t batch)
{
	for (uint32_t i = 0; i < ROUNDS; i++)
		post_round(r, rkey[i], batch, i);
	for (uint32_t i = 0; i < ROUNDS * IN_TURN && !r->verdict.bad; i++) {
		struct ibv_wc wc = expect(r, in_turn[i % IN_TURN], IBV_WC_SUCCESS);

		EXPECT(r, wc.wr_id == i, "batch %u: completion of %llu, expected %u", batch,
		       (unsigned long long)wc.wr_id, i);
	}
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint8_t *slot = r->mem + i * SLOT;

		EXPECT(r, !memcmp(slot, slot + HALF, 2 * WORD),
		       "batch %u, round %u: the words were not what was written", batch, i);
	}
}

static void mixed(struct run *r)
{
	struct window window[ROUNDS] = { };
	uint32_t mine[ROUNDS] = { }, theirs[ROUNDS];

	for (uint32_t i = 0; !r->client && i < ROUNDS; i++) {
		window[i].mw = ibv_alloc_mw(r->dev->pd, IBV_MW_TYPE_2);
		if (!window[i].mw)
			bail("cannot allocate a memory window: %s", strerror(errno));
		window[i].rkey = window[i].mw->rkey;
	}
	oob_swap(r->oob, &r->here, &r->there, sizeof(r->here));
	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		if (!r->client)
			offer(r, window);
		for (uint32_t i = 0; i < ROUNDS; i++)
			mine[i] = window[i].rkey;
		oob_swap(r->oob, mine, theirs, sizeof(mine));
		if (r->client)
			do_rounds(r, theirs, batch);
		else
			take_rounds(r, window, batch);
		oob_barrier(r->oob);
		for (uint32_t i = 0; !r->client && i < LEN; i++)
			EXPECT(r, r->mem[i] == SPOILED, "batch %u, round %u: done once more, byte %u",
			       batch, i / SLOT, i % SLOT);
	}
	for (uint32_t i = 0; !r->client && i < ROUNDS; i++)
		if (ibv_dealloc_mw(window[i].mw))
			bail("cannot deallocate a memory window");
}

static const struct test {
	const char *name;
	void (*run)(struct run *r);
	uint64_t capability;			/* IBV_DEVICE_* */
	uint64_t ops;				/* IBV_QP_EX_WITH_* */
	unsigned int access;			/* of the server's memory, besides reading and writing */
} tests[] = {
	{ "send_inv", send_inv, IBV_DEVICE_MEM_WINDOW_TYPE_2B,
	  IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV, IBV_ACCESS_MW_BIND },
	{ "atomic_write", atomic_write, IB_UVERBS_DEVICE_ATOMIC_WRITE, IBV_QP_EX_WITH_ATOMIC_WRITE, 0 },
	{ "flush", flush, IB_UVERBS_DEVICE_FLUSH_GLOBAL, IBV_QP_EX_WITH_FLUSH,
	  IBV_ACCESS_FLUSH_GLOBAL },
	{ "mixed", mixed, IBV_DEVICE_MEM_WINDOW_TYPE_2B | IB_UVERBS_DEVICE_ATOMIC_WRITE |
	  IB_UVERBS_DEVICE_FLUSH_GLOBAL, IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV |
	  IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_FLUSH_GLOBAL },
};

#define TESTS	(sizeof(tests) / sizeof(tests[0]))

static bool can(struct dev *d, const struct test *t)
{
	struct ibv_device_attr_ex attr;

	if (ibv_query_device_ex(d->verbs, NULL, &attr))
		bail("cannot query the device");
	/* a device that reports no more than 32 flags leaves the others 0 */
	return !(t->capability &
		 ~(attr.device_cap_flags_ex | attr.orig_attr.device_cap_flags));
}

static void open_run(struct run *r, const struct test *t)
{
	unsigned int access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | t->access;
	struct conn_attr attr;

	r->mem = calloc(1, LEN);
	if (!r->mem)
		bail("no memory");
	for (uint32_t i = 0; r->client && i < LEN; i++)
		r->mem[i] = pattern(i);
	r->mr = ibv_reg_mr(r->dev->pd, r->mem, LEN, IBV_ACCESS_LOCAL_WRITE | access);
	if (!r->mr)
		bail("cannot register memory: %s", strerror(errno));
	r->here.addr = (uintptr_t)r->mem;
	r->here.rkey = r->mr->rkey;
	conn_attr_default(&attr, r->dev);
	attr.access = access & ~IBV_ACCESS_MW_BIND;
	attr.cap.max_send_wr = QUEUE;
	attr.ops = IBV_QP_EX_WITH_RDMA_WRITE | t->ops;
	queue_create(&r->queue, r->dev, QUEUE, false);
	conn_create(&r->conn, r->dev, &attr, &r->queue, &r->queue);
	conn_connect(&r->conn, r->oob);
	r->qp = ibv_qp_to_qp_ex(r->conn.qp);
}

static void close_run(struct run *r)
{
	conn_destroy(&r->conn);
	queue_destroy(&r->queue);
	if (ibv_dereg_mr(r->mr))
		bail("cannot deregister memory");
	free(r->mem);
}

/* Run at both ends, in step. Return false if one of them lacks the feature. */
static bool run_test(struct dev *d, struct oob *o, const struct test *t, struct verdict verdicts[2])
{
	struct run r = { .dev = d, .oob = o, .client = !o->server };
	uint8_t here = can(d, t), there;

	oob_swap(o, &here, &there, 1);
	if (!here || !there)
		return false;
	open_run(&r, t);
	t->run(&r);
	verdicts[0] = r.verdict;
	oob_swap(o, &verdicts[0], &verdicts[1], sizeof(verdicts[0]));
	close_run(&r);
	return true;
}

static void serve(const char *device)
{
	int listener = oob_listen(OOB_PORT);
	struct verdict verdicts[2];
	struct oob oob;
	struct dev dev;
	uint32_t test;

	printf("listening\n");
	fflush(stdout);
	while (oob_accept(&oob, listener)) {
		dev_open(&dev, device, -1);
		while (oob_recv(&oob, &test, sizeof(test)) && test < TESTS)
			run_test(&dev, &oob, &tests[test], verdicts);
		dev_close(&dev);
		oob_close(&oob);
	}
}

static void ask(struct dev *d, struct oob *o, uint32_t test)
{
	struct verdict verdicts[2];

	oob_send(o, &test, sizeof(test));
	if (run_test(d, o, &tests[test], verdicts))
		tap_point(tests[test].name, &verdicts[0], &verdicts[1]);
	else
		tap_skip(tests[test].name, "one of the devices has no such operation");
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	struct oob oob;
	struct dev dev;
	int option;

	while ((option = getopt(argc, argv, "d:")) != -1) {
		if (option == 'd')
			device = optarg;
	}
	if (!device) {
		fprintf(stderr, "usage: verbs_ex -d DEVICE [SERVER [TEST...]]\n");
		return 2;
	}
	if (optind == argc) {
		serve(device);
		return 1;
	}
	oob_connect(&oob, argv[optind], OOB_PORT);
	dev_open(&dev, device, -1);
	for (uint32_t test = 0; test < TESTS; test++)
		if (tap_chosen(tests[test].name, argv + optind + 1))
			ask(&dev, &oob, test);
	dev_close(&dev);
	oob_close(&oob);
	return tap_end();
}
