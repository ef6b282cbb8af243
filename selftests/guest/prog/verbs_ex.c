// SPDX-License-Identifier: GPL-2.0
/*
 * Operations that not every device has: SEND with invalidate of a memory
 * window, ATOMIC WRITE, FLUSH. What they do to the other end's memory is
 * compared there.
 *
 *   verbs_ex -d DEVICE                  server, until killed
 *   verbs_ex -d DEVICE SERVER [TEST..]  client, prints TAP
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
#define AT		4096u		/* what the operations aim at */
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

/* Only these bytes of the server's memory hold the pattern. */
static void expect_only(struct run *r, uint32_t off, uint32_t len)
{
	for (uint32_t i = 0; i < LEN; i++) {
		uint8_t want = i >= off && i < off + len ? pattern(i) : 0;

		EXPECT(r, r->mem[i] == want, "byte %u is %#x, expected %#x", i, r->mem[i], want);
	}
}

/* A window of the server's over all of its memory; its key goes to the client. */
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

/* The window takes a WRITE; a SEND takes it away; the next WRITE is refused. */
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

/* The memory is looked at as soon as FLUSH says that it can be seen. */
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
};

#define TESTS	(sizeof(tests) / sizeof(tests[0]))

static bool can(struct dev *d, const struct test *t)
{
	struct ibv_device_attr_ex attr;

	if (ibv_query_device_ex(d->verbs, NULL, &attr))
		bail("cannot query the device");
	/* a device that tells of no more than 32 flags leaves the others 0 */
	return (attr.device_cap_flags_ex | attr.orig_attr.device_cap_flags) & t->capability;
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
	attr.ops = IBV_QP_EX_WITH_RDMA_WRITE | t->ops;
	queue_create(&r->queue, r->dev, 64, false);
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

/* Both ends, in step. False: one of them cannot. */
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
