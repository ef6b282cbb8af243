// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues, within one process: queue pairs of one device, each connected
 * to another one whose receives come from the SRQ.
 *
 *   verbs_srq DEVICE [TEST...]	the named tests, or all; prints TAP
 */
#include "conn.h"
#include "report.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAIRS		4
#define SLOTS		32u		/* entries of the SRQ */
#define SLOT		4096u		/* bytes of each */
#define LEN		3000u		/* of a message on a connection */
#define DATAGRAM	1000u
#define PATIENCE	20
#define SILENCE		0.05		/* seconds of silence that prove that nothing comes */

static struct dev dev;
static struct queue sends, recvs;
static struct ibv_srq *srq;
static struct conn from[PAIRS], to[PAIRS];
static struct ibv_mr *mr;
static char *buf, *src;
static uint32_t length;			/* of messages */

static void expect(struct verdict *v, long got, long want, const char *what)
{
	if (got != want)
		verdict_fail(v, "%s: %ld, expected %ld", what, got, want);
}

static void srq_create(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = SLOTS, .max_sge = 1 } };

	srq = ibv_create_srq(dev.pd, &init);
	if (!srq)
		bail("ibv_create_srq: %s", strerror(errno));
}

static void srq_arm(struct verdict *v, uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	expect(v, ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0, "ibv_modify_srq");
}

static long srq_limit(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 77777 };

	return ibv_query_srq(srq, &attr) ? -1 : (long)attr.srq_limit;
}

/* Return entry @slot, which has a separate part of the buffer */
static void post(uint32_t slot, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)buf + slot * SLOT, len, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_srq_recv(srq, &wr, &bad))
		bail("ibv_post_srq_recv failed");
}

static void post_all(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		post(i, SLOT);
}

/* Build a message, all bytes of it @mark */
static void post_send(struct conn *c, uint8_t mark)
{
	struct ibv_sge sge = { (uintptr_t)src + mark * LEN, length, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
	};

	if (c->ah) {
		wr.wr.ud.ah = c->ah;
		wr.wr.ud.remote_qpn = c->there.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	memset(src + mark * LEN, mark, length);
	if (ibv_post_send(c->qp, &wr, &bad))
		bail("ibv_post_send failed");
}

/* Return the status of the next completion, -1 if none comes */
static int next(struct queue *q, struct ibv_wc *wc)
{
	return queue_wait(q, wc, PATIENCE) ? (int)wc->status : -1;
}

static void quiet(struct verdict *v, struct queue *q, const char *what)
{
	struct ibv_wc wc;

	if (queue_wait(q, &wc, SILENCE))
		verdict_fail(v, "%s: completion with status %d", what, wc.status);
}

/* Send one message; it must arrive in some entry, whose number is returned. */
static uint64_t carry(struct verdict *v, struct conn *c, uint8_t mark)
{
	struct ibv_wc wc = {};

	post_send(c, mark);
	expect(v, next(&sends, &wc), IBV_WC_SUCCESS, "send");
	expect(v, next(&recvs, &wc), IBV_WC_SUCCESS, "receive");
	expect(v, buf[wc.wr_id % SLOTS * SLOT], mark, "first byte");
	return wc.wr_id;
}

/* Return the next asynchronous event except COMM_EST, -1 if none comes. */
static int event_of(void *object, double seconds)
{
	double end = now() + seconds;
	struct ibv_async_event event;
	int type;

	for (;;) {
		struct pollfd fd = { .fd = dev.verbs->async_fd, .events = POLLIN };
		double left = end - now();

		if (left <= 0 || poll(&fd, 1, (int)(left * 1000) + 1) <= 0)
			return -1;
		if (ibv_get_async_event(dev.verbs, &event))
			bail("ibv_get_async_event failed");
		type = event.event_type;
		ibv_ack_async_event(&event);
		if (type == IBV_EVENT_COMM_EST)
			continue;
		return object == event.element.qp ? type : -2;
	}
}

static void connect_pair(int i, enum ibv_qp_type type, uint8_t rnr_retry)
{
	struct ibv_ah_attr path = {
		.is_global = 1, .port_num = PORT,
		.grh = { .dgid = dev.gid, .sgid_index = dev.gid_index, .hop_limit = 64 },
	};
	struct conn_attr attr;

	conn_attr_default(&attr, &dev);
	attr.type = type;
	attr.rnr_retry = rnr_retry;
	conn_create(&from[i], &dev, &attr, &sends, &sends);
	attr.srq = srq;
	conn_create(&to[i], &dev, &attr, &sends, &recvs);
	from[i].there = to[i].here;
	to[i].there = from[i].here;
	if (conn_to_rtr(&from[i]) || conn_to_rtr(&to[i]) || conn_to_rts(&from[i]) ||
	    conn_to_rts(&to[i]))
		bail("queue pairs do not connect");
	if (type == IBV_QPT_UD)
		from[i].ah = ibv_create_ah(dev.pd, &path);
}

/* Queue pairs share one SRQ: each message takes one entry, in each queue pair in order. */
static void test_shared(struct verdict *v)
{
	uint32_t seen = 0;
	int got[PAIRS] = {};
	struct ibv_wc wc;

	for (int i = 0; i < PAIRS; i++)
		connect_pair(i, IBV_QPT_RC, 7);
	post_all(SLOTS);
	for (uint32_t n = 0; n < SLOTS; n++)
		post_send(&from[n % PAIRS], n);
	for (uint32_t n = 0; n < SLOTS; n++) {
		int i = 0;

		expect(v, next(&recvs, &wc), IBV_WC_SUCCESS, "receive");
		while (i < PAIRS - 1 && to[i].qp->qp_num != wc.qp_num)
			i++;
		expect(v, buf[wc.wr_id % SLOTS * SLOT], got[i]++ * PAIRS + i, "message");
		expect(v, buf[wc.wr_id % SLOTS * SLOT + LEN - 1],
		       buf[wc.wr_id % SLOTS * SLOT], "its end");
		expect(v, wc.byte_len, LEN, "length");
		seen |= 1u << wc.wr_id % SLOTS;
		expect(v, next(&sends, &wc), IBV_WC_SUCCESS, "send");
	}
	expect(v, seen, UINT32_MAX, "entries used");
	quiet(v, &recvs, "after the last");
}

/* One event when too few entries are left; one more after it is armed again. */
static void test_limit(struct verdict *v)
{
	connect_pair(0, IBV_QPT_RC, 7);
	post_all(8);
	srq_arm(v, 6);
	expect(v, srq_limit(), 6, "limit armed");
	carry(v, &from[0], 1);
	carry(v, &from[0], 2);
	expect(v, event_of(srq, SILENCE), -1, "six left");
	carry(v, &from[0], 3);
	expect(v, event_of(srq, PATIENCE), IBV_EVENT_SRQ_LIMIT_REACHED, "five left");
	expect(v, srq_limit(), 0, "limit after the event");
	carry(v, &from[0], 4);
	expect(v, event_of(srq, SILENCE), -1, "four left, not armed");
	post(0, SLOT);
	srq_arm(v, 5);
	expect(v, event_of(srq, SILENCE), -1, "five left, armed");
	carry(v, &from[0], 5);
	expect(v, event_of(srq, PATIENCE), IBV_EVENT_SRQ_LIMIT_REACHED, "four left");
	srq_arm(v, 5);
	expect(v, event_of(srq, PATIENCE), IBV_EVENT_SRQ_LIMIT_REACHED, "armed with too few");
}

/* An empty SRQ: the sender waits for an entry, or fails. */
static void test_empty(struct verdict *v)
{
	struct ibv_wc wc = {};

	connect_pair(0, IBV_QPT_RC, 7);
	connect_pair(1, IBV_QPT_RC, 0);
	post_send(&from[0], 9);
	quiet(v, &sends, "without an entry");
	post(3, SLOT);
	expect(v, next(&sends, &wc), IBV_WC_SUCCESS, "send after the post");
	expect(v, next(&recvs, &wc), IBV_WC_SUCCESS, "receive");
	expect(v, wc.wr_id, 3, "entry");
	expect(v, buf[3 * SLOT], 9, "message");
	post_send(&from[1], 10);
	expect(v, next(&sends, &wc), IBV_WC_RNR_RETRY_EXC_ERR, "without retries");
	post(4, SLOT);
	expect(v, (long)carry(v, &from[0], 11), 4, "entry of the queue pair that is left");
}

/* Nothing completes after the event, which comes once; entries stay for the others. */
static void test_last_wqe(struct verdict *v)
{
	struct ibv_wc wc;

	connect_pair(0, IBV_QPT_RC, 7);
	connect_pair(1, IBV_QPT_RC, 7);
	post_all(8);
	post_send(&from[0], 1);
	post_send(&from[0], 2);
	expect(v, next(&sends, &wc), IBV_WC_SUCCESS, "send");
	expect(v, next(&sends, &wc), IBV_WC_SUCCESS, "send");
	expect(v, conn_to(&to[0], IBV_QPS_ERR), 0, "to ERR");
	expect(v, event_of(to[0].qp, PATIENCE), IBV_EVENT_QP_LAST_WQE_REACHED, "event");
	expect(v, ibv_poll_cq(recvs.cq, 1, &wc), 1, "first receive is there");
	expect(v, ibv_poll_cq(recvs.cq, 1, &wc), 1, "second receive is there");
	quiet(v, &recvs, "after the event");
	expect(v, conn_to(&to[0], IBV_QPS_ERR), 0, "to ERR again");
	expect(v, event_of(to[0].qp, SILENCE), -1, "a second event");
	for (uint8_t n = 2; n < 8; n++)
		expect(v, (long)carry(v, &from[1], n), n, "entry of the other queue pair");
}

/* Datagrams; one that is too long uses up its entry and affects no others. */
static void test_ud(struct verdict *v)
{
	struct ibv_wc wc = {};

	length = DATAGRAM;
	connect_pair(0, IBV_QPT_UD, 0);
	connect_pair(1, IBV_QPT_UD, 0);
	post(0, SLOT);
	post(1, DATAGRAM);
	post(2, SLOT);
	for (int n = 0; n < 3; n++) {
		post_send(&from[n % 2], n + 1);
		expect(v, next(&sends, &wc), IBV_WC_SUCCESS, "send");
		expect(v, next(&recvs, &wc), n == 1 ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS,
		       "receive");
		expect(v, wc.wr_id, n, "entry");
		expect(v, wc.qp_num, to[n % 2].qp->qp_num, "queue pair");
		if (n == 1)
			continue;
		expect(v, wc.byte_len, DATAGRAM + 40, "length");
		expect(v, wc.wc_flags & IBV_WC_GRH, IBV_WC_GRH, "GRH");
		expect(v, wc.src_qp, from[n % 2].qp->qp_num, "sender");
		expect(v, buf[n * SLOT + 40], n + 1, "message");
	}
}

static int srq_resize(uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static long srq_size(void)
{
	struct ibv_srq_attr attr = {};

	return ibv_query_srq(srq, &attr) ? -1 : (long)attr.max_wr;
}

/* Post one more entry than there is room for; return 0 or an errno. */
static int post_one_more(void)
{
	struct ibv_sge sge = { (uintptr_t)buf, SLOT, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = 0, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_srq_recv(srq, &wr, &bad);
}

/* Posted entries stay; an invalid size is rejected, and changes nothing. */
static void test_resize(struct verdict *v)
{
	struct ibv_srq_attr both = { .max_wr = 8, .srq_limit = 8 };

	connect_pair(0, IBV_QPT_RC, 7);
	expect(v, !!(dev.attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE), 1, "capability");
	post_all(5);
	expect(v, srq_resize(0), EINVAL, "to nothing");
	expect(v, srq_resize(dev.attr.max_srq_wr + 1), EINVAL, "beyond the device");
	expect(v, srq_resize(4), EINVAL, "below what is posted");
	expect(v, srq_size(), SLOTS, "size after refusals");
	expect(v, srq_resize(dev.attr.max_srq_wr), 0, "to the largest");
	expect(v, srq_size(), dev.attr.max_srq_wr, "the largest");
	expect(v, (long)carry(v, &from[0], 1), 0, "first entry");
	expect(v, srq_resize(3), 0, "to four");
	expect(v, srq_size(), 4, "four, a power of two");
	expect(v, post_one_more(), ENOMEM, "a fifth entry");
	for (uint32_t n = 1; n < 5; n++)
		expect(v, (long)carry(v, &from[0], n), n, "entry");
	post_all(4);
	expect(v, srq_resize(64), 0, "to 64");
	for (uint32_t n = 4; n < SLOTS; n++)
		post(n, SLOT);
	srq_arm(v, 32);
	for (uint32_t n = 0; n < SLOTS - 8; n++)
		expect(v, (long)carry(v, &from[0], n), n, "entry");
	expect(v, event_of(srq, PATIENCE), IBV_EVENT_SRQ_LIMIT_REACHED, "31 left");
	expect(v, ibv_modify_srq(srq, &both, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0, "size and limit");
	expect(v, srq_size(), 8, "both: size");
	expect(v, srq_limit(), 8, "both: limit");
	expect(v, (long)carry(v, &from[0], SLOTS - 8), SLOTS - 8, "entry");
	expect(v, event_of(srq, PATIENCE), IBV_EVENT_SRQ_LIMIT_REACHED, "seven left");
	both.srq_limit = 9;
	expect(v, ibv_modify_srq(srq, &both, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL,
	       "a limit above the size");
}

/* The driver's part of a resize: struct ornic_ureq_modify_srq */
struct payload {
	uint64_t buf_addr;
	uint8_t log_entries;
	uint8_t reserved[7];
	uint64_t beyond;		/* a field of a newer provider */
};

#define PAYLOAD		16u		/* bytes without @beyond */

/* Modify as libibverbs does, with a payload that no provider sends; return 0 or an errno. */
static int raw_modify(uint32_t mask, uint32_t max_wr, const struct payload *payload,
		      uint32_t bytes)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_modify_srq core;
		struct payload payload;
	} cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_MODIFY_SRQ,
			.in_words = (sizeof(cmd.hdr) + sizeof(cmd.core) + bytes) / 4,
		},
		.core = {
			.srq_handle = srq->handle, .attr_mask = mask, .max_wr = max_wr,
		},
		.payload = *payload,
	};
	ssize_t len = cmd.hdr.in_words * 4;

	return write(dev.verbs->cmd_fd, &cmd, len) == len ? 0 : errno;
}

static int raw_resize(uint32_t max_wr, const struct payload *payload, uint32_t bytes)
{
	return raw_modify(IBV_SRQ_MAX_WR, max_wr, payload, bytes);
}

/* A process that describes its ring wrongly is rejected, and its SRQ continues to work. */
static void test_resize_hostile(struct verdict *v)
{
	const size_t bytes = 2 * 4096;	/* room for 64 entries of 32 bytes, and the record */
	char *ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct payload good = { (uintptr_t)ring, 6, {}, 0 }, bad;

	connect_pair(0, IBV_QPT_RC, 7);
	post_all(8);
	expect(v, raw_resize(64, &good, 0), EINVAL, "no payload");
	expect(v, raw_resize(64, &good, PAYLOAD / 2), EINVAL, "half of it");
	bad = good;
	bad.buf_addr += 64;
	expect(v, raw_resize(64, &bad, PAYLOAD), EINVAL, "not on a page");
	bad = good;
	bad.log_entries = 5;
	expect(v, raw_resize(64, &bad, PAYLOAD), EINVAL, "smaller than it says");
	bad.log_entries = 0;
	expect(v, raw_resize(1, &bad, PAYLOAD), EINVAL, "no aligned record");
	bad.log_entries = 255;
	expect(v, raw_resize(64, &bad, PAYLOAD), EINVAL, "a huge ring");
	bad = good;
	bad.reserved[6] = 1;
	expect(v, raw_resize(64, &bad, PAYLOAD), EOPNOTSUPP, "a reserved byte");
	bad = good;
	bad.beyond = 1;
	expect(v, raw_resize(64, &bad, sizeof(bad)), EOPNOTSUPP, "a field that is not known");
	expect(v, raw_modify(IBV_SRQ_LIMIT, 0, &good, PAYLOAD), EOPNOTSUPP, "payload of a limit");
	*(uint32_t *)(ring + 64 * 32) = 8 + 64 + 1;	/* host_index */
	expect(v, raw_resize(64, &good, PAYLOAD), EINVAL, "an index beyond the ring");
	*(uint32_t *)(ring + 64 * 32) = -1;
	expect(v, raw_resize(64, &good, PAYLOAD), EINVAL, "an index behind what was taken");
	mprotect(ring, bytes, PROT_READ);
	expect(v, !raw_resize(64, &good, PAYLOAD), 0, "memory that it may not write");
	munmap(ring, bytes);
	expect(v, !raw_resize(64, &good, PAYLOAD), 0, "memory that is not there");
	bad.buf_addr = -4096;
	bad.beyond = 0;
	expect(v, !raw_resize(64, &bad, PAYLOAD), 0, "memory of the kernel");
	expect(v, srq_size(), SLOTS, "size");
	for (uint32_t n = 0; n < 8; n++)
		expect(v, (long)carry(v, &from[0], n), n, "entry");
}

#define BUSY	8u			/* entries that traffic goes through */

static atomic_bool traffic_over;
static atomic_ulong carried;

/* Send messages without a pause over two connections that do not retry on an empty SRQ. */
static void *traffic(void *verdict)
{
	struct verdict *v = verdict;
	struct ibv_wc wc;

	for (uint32_t n = 0; !traffic_over && !v->bad; n++) {
		for (uint32_t i = 0; i < BUSY / 2; i++)
			post_send(&from[i % 2], (n + i) % 40 + 1);
		for (uint32_t i = 0; i < BUSY / 2; i++) {
			expect(v, next(&sends, &wc), IBV_WC_SUCCESS, "send");
			expect(v, next(&recvs, &wc), IBV_WC_SUCCESS, "receive");
			if (v->bad)
				break;
			expect(v, wc.byte_len, LEN, "length");
			expect(v, buf[wc.wr_id * SLOT + LEN - 1], buf[wc.wr_id * SLOT], "its end");
			post(wc.wr_id, SLOT);
			carried++;
		}
	}
	return NULL;
}

/* The ring is replaced under traffic, and no message finds the SRQ empty. */
static void test_resize_traffic(struct verdict *v)
{
	static const uint32_t sizes[] = { BUSY, 512, 16, 4096, 64, 8192, 8 };
	struct verdict theirs = {};
	unsigned long seen;
	pthread_t thread;

	connect_pair(0, IBV_QPT_RC, 0);
	connect_pair(1, IBV_QPT_RC, 0);
	post_all(BUSY);
	traffic_over = false;
	carried = 0;
	if (pthread_create(&thread, NULL, traffic, &theirs))
		bail("no thread");
	for (int n = 0; n < 100 && !theirs.bad && !v->bad; n++) {
		uint32_t size = sizes[n % (sizeof(sizes) / sizeof(sizes[0]))];

		expect(v, srq_resize(size), 0, "resize");
		expect(v, srq_size(), size, "size");
		expect(v, srq_resize(BUSY / 4), EINVAL, "below what is posted");
		for (seen = carried; carried == seen && !theirs.bad;)
			sched_yield();
	}
	traffic_over = true;
	pthread_join(thread, NULL);
	if (theirs.bad)
		*v = theirs;
	quiet(v, &recvs, "after the last");
}

static const struct {
	const char *name;
	void (*run)(struct verdict *v);
} tests[] = {
	{ "shared", test_shared }, { "limit", test_limit }, { "empty", test_empty },
	{ "last_wqe", test_last_wqe }, { "ud", test_ud }, { "resize", test_resize },
	{ "resize_traffic", test_resize_traffic }, { "resize_hostile", test_resize_hostile },
};

static void run(int test)
{
	struct verdict good = {}, v = {};

	queue_create(&sends, &dev, 2 * SLOTS, false);
	queue_create(&recvs, &dev, 2 * SLOTS, false);
	srq_create();
	length = LEN;
	tests[test].run(&v);
	if (!ibv_destroy_srq(srq))
		verdict_fail(&v, "an SRQ with queue pairs was destroyed");
	for (int i = 0; i < PAIRS; i++) {
		conn_destroy(&from[i]);
		conn_destroy(&to[i]);
	}
	expect(&v, ibv_destroy_srq(srq), 0, "ibv_destroy_srq");
	queue_destroy(&sends);
	queue_destroy(&recvs);
	tap_point(tests[test].name, &v, &good);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		bail("usage: verbs_srq DEVICE [TEST...]");
	dev_open(&dev, argv[1], -1);
	buf = aligned_alloc(4096, 2 * SLOTS * SLOT);
	src = buf + SLOTS * SLOT;
	mr = ibv_reg_mr(dev.pd, buf, 2 * SLOTS * SLOT, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		bail("ibv_reg_mr: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		bool wanted = argc == 2;

		for (int j = 2; j < argc; j++)
			wanted |= !strcmp(argv[j], tests[i].name);
		if (wanted)
			run(i);
	}
	ibv_dereg_mr(mr);
	free(buf);
	dev_close(&dev);
	return tap_end();
}
