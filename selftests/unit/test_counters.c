// SPDX-License-Identifier: GPL-2.0
/*
 * Counters: after one event each, check all counters of both functions, also those that must not
 * change.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/mcast.h"
#include "lib/pair.h"
#include "packet/bth.h"

#define BUF	16384
#define ACCESS	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE |	\
		 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC)

/* Increment of a counter by an event; an increment of 0 ends the list. */
struct move {
	enum counter cnt;
	uint64_t by;
};

#define MOVES(...)	((const struct move[]){ __VA_ARGS__, { 0, 0 } })
#define NOTHING		((const struct move[]){ { 0, 0 } })
#define C(name, by)	{ CNT_##name, by }

/* Counters of both functions, as remember() found them */
static uint64_t before[2][CNT_COUNT];

static const char *const names[CNT_COUNT] = {
#define COUNTER_NAME(scope, name, id)	[CNT_##name] = #name,
	COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
};

static void remember(struct ends *t)
{
	for (int i = 0; i < 2; i++)
		memcpy(before[i], t->w.dut[i].dev.cnt, sizeof(before[i]));
}

static void check_moves(struct ends *t, int who, const struct move *moves)
{
	uint64_t want[CNT_COUNT];

	memcpy(want, before[who], sizeof(want));
	for (; moves->by; moves++)
		want[moves->cnt] += moves->by;
	for (int i = 0; i < CNT_COUNT; i++)
		if (t->w.dut[who].dev.cnt[i] != want[i])
			fail_msg("function %d: %s is %llu, not %llu", who, names[i],
				 (unsigned long long)t->w.dut[who].dev.cnt[i],
				 (unsigned long long)want[i]);
}

/*
 * Check the changes since the last call at the sender and at the receiver; no other counter
 * moves.
 */
static void moved(struct ends *t, const struct move *a, const struct move *b)
{
	check_moves(t, 0, a);
	check_moves(t, 1, b);
	remember(t);
}

static int setup(void **state)
{
	struct ends *t = ends_new(NULL, 0);

	conn_pair(&t->a, &t->b, 0x10, 0x20);
	ends_buffers(t, BUF, ACCESS);
	remember(t);
	*state = t;
	return 0;
}

static void post(struct ends *t, uint8_t opcode, uint32_t len, uint32_t lkey)
{
	struct wr wr = {
		.opcode = opcode, .flags = ORNIC_WQE_SIGNALED, .raddr = t->bbuf, .rkey = t->bkey,
		.swap_add = 1,
	};

	wr_sge(&wr, t->abuf, len, lkey);
	conn_send(&t->a, &wr);
	world_run(&t->w);
}

static void test_write(void **state)
{
	struct ends *t = *state;

	post(t, ORNIC_WR_RDMA_WRITE, 3000, t->akey);
	moved(t, MOVES(C(tx_write, 1), C(rdma_tx_packets, 3), C(rdma_tx_bytes, 3000),
		       C(rdma_rx_packets, 1)),
	      MOVES(C(rx_write, 1), C(rdma_rx_packets, 3), C(rdma_rx_bytes, 3000),
		    C(rdma_tx_packets, 1), C(rdma_copied_bytes, 3000)));
}

static void test_read(void **state)
{
	struct ends *t = *state;

	post(t, ORNIC_WR_RDMA_READ, 3000, t->akey);
	moved(t, MOVES(C(tx_read, 1), C(rdma_tx_packets, 1), C(rdma_rx_packets, 3),
		       C(rdma_rx_bytes, 3000), C(rdma_copied_bytes, 3000)),
	      MOVES(C(rx_read, 1), C(rdma_rx_packets, 1), C(rdma_tx_packets, 3),
		    C(rdma_tx_bytes, 3000)));
}

static void test_atomic(void **state)
{
	struct ends *t = *state;

	post(t, ORNIC_WR_FETCH_ADD, 8, t->akey);
	moved(t, MOVES(C(tx_atomic, 1), C(rdma_tx_packets, 1), C(rdma_rx_packets, 1),
		       C(rdma_copied_bytes, 8)),
	      MOVES(C(rx_atomic, 1), C(rdma_rx_packets, 1), C(rdma_tx_packets, 1)));
}

static void test_send(void **state)
{
	struct ends *t = *state;

	conn_recv(&t->b, t->bbuf, BUF, t->bkey);
	post(t, ORNIC_WR_SEND, 100, t->akey);
	moved(t, MOVES(C(tx_send, 1), C(rdma_tx_packets, 1), C(rdma_tx_bytes, 100),
		       C(rdma_rx_packets, 1)),
	      MOVES(C(rx_send, 1), C(rdma_rx_packets, 1), C(rdma_rx_bytes, 100),
		    C(rdma_tx_packets, 1), C(rdma_copied_bytes, 100)));
}

/* An invalid work request, and one behind it that is flushed */
static void test_bad_request(void **state)
{
	struct ends *t = *state;

	post(t, 0x7f, 8, t->akey);
	moved(t, MOVES(C(wqe_errors, 1)), NOTHING);
	post(t, ORNIC_WR_RDMA_WRITE, 8, t->akey);
	moved(t, MOVES(C(flushes, 1)), NOTHING);
}

/* Memory outside the sender's own key */
static void test_local_protection(void **state)
{
	struct ends *t = *state;

	post(t, ORNIC_WR_RDMA_WRITE, 8, t->akey ^ 1);
	moved(t, MOVES(C(local_protection_errors, 1), C(tx_write, 1)), NOTHING);
}

/* A receive with more SGEs than its slot has room for */
static void test_bad_receive(void **state)
{
	struct ends *t = *state;
	struct ornic_rwqe *r;

	r = (void *)dut_at(t->b.d, t->b.rq.ring, sizeof(*r));
	conn_recv(&t->b, t->bbuf, BUF, t->bkey);
	r->count = htole16(0x7fff);
	post(t, ORNIC_WR_SEND, 100, t->akey);
	moved(t, MOVES(C(tx_send, 1), C(rdma_tx_packets, 1), C(rdma_tx_bytes, 100),
		       C(rdma_rx_packets, 1)),
	      MOVES(C(wqe_errors, 1), C(rdma_rx_packets, 1), C(rdma_rx_bytes, 100),
		    C(rdma_tx_packets, 1)));
}

/* ORN-STAT-4: a WRITE is counted when it is executed, not with each attempt before. */
static void test_rnr(void **state)
{
	struct ends *t = *state;
	const uint64_t *cnt = t->b.d->dev.cnt;

	post(t, ORNIC_WR_RDMA_WRITE_IMM, 100, t->akey);
	world_finish(&t->w, 10000000);
	assert_true(cnt[CNT_rnr_naks_sent] > 1);
	assert_int_equal(cnt[CNT_rx_write], 0);
	conn_recv(&t->b, t->bbuf, BUF, t->bkey);
	world_finish(&t->w, 10000000);
	conn_expect(&t->a, &t->a.hscq, 0, ORNIC_WC_RDMA_WRITE, 0);
	assert_int_equal(cnt[CNT_rx_write], 1);
}

/* ORN-STAT-4: a WRITE whose key is rejected, and a SEND longer than its receive, never */
static void test_rejected(void **state)
{
	struct ends *t = *state;

	t->bkey ^= 1;
	post(t, ORNIC_WR_RDMA_WRITE, 100, t->akey);
	moved(t, MOVES(C(tx_write, 1), C(rdma_tx_packets, 1), C(rdma_tx_bytes, 100),
		       C(rdma_rx_packets, 1), C(remote_access_errors, 1)),
	      MOVES(C(rdma_rx_packets, 1), C(rdma_rx_bytes, 100), C(rdma_tx_packets, 1),
		    C(remote_access_errors, 1)));
}

static void test_too_long(void **state)
{
	struct ends *t = *state;

	conn_recv(&t->b, t->bbuf, 99, t->bkey);
	post(t, ORNIC_WR_SEND, 100, t->akey);
	moved(t, MOVES(C(tx_send, 1), C(rdma_tx_packets, 1), C(rdma_tx_bytes, 100),
		       C(rdma_rx_packets, 1), C(remote_invalid_requests, 1)),
	      MOVES(C(rdma_rx_packets, 1), C(rdma_rx_bytes, 100), C(rdma_tx_packets, 1),
		    C(remote_invalid_requests, 1)));
}

/* ORN-STAT-15: a datagram for a group with two members at the other function, one with a set */
static void test_multicast(void **state)
{
	static const uint8_t group[16] = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 };
	struct conn_opt opt = { .type = ORNIC_QPT_UD };
	struct ends *t = *state;
	struct wr wr = { .opcode = ORNIC_WR_SEND };
	struct counter_set sent = {}, received = {};
	struct conn from, to, also;
	uint32_t number;

	conn_init(&from, &t->w.dut[0], &opt);
	conn_init(&to, &t->w.dut[1], &opt);
	conn_init(&also, &t->w.dut[1], &opt);
	from.qp.qkey = 7;
	to.qp.qkey = 7;
	also.qp.qkey = 7;
	from.qp.set = &sent;
	to.qp.set = &received;
	conn_rts(&from);
	conn_rts(&to);
	conn_rts(&also);
	conn_recv(&to, t->bbuf, BUF, t->bkey);
	conn_recv(&also, t->bbuf, BUF, t->bkey);
	assert_int_equal(mcast_join(&to.d->dev.mcast, group, &to.qp, &number), 0);
	assert_int_equal(mcast_join(&to.d->dev.mcast, group, &also.qp, &number), 0);
	memcpy(wr.path.dmac, (uint8_t[]){ 1, 0, 0x5e, 1, 2, 3 }, 6);
	memcpy(wr.path.dgid, group, sizeof(group));
	wr.path.dest_qpn = htole32(BTH_MULTICAST_QPN);
	wr.path.qkey = htole32(7);
	wr.path.hop_limit = 1;
	wr_sge(&wr, t->abuf, 100, t->akey);
	conn_send(&from, &wr);
	world_run(&t->w);
	moved(t, MOVES(C(tx_send, 1), C(rdma_tx_packets, 1), C(rdma_tx_bytes, 100),
		       C(rdma_tx_multicast, 1)),
	      MOVES(C(rx_send, 2), C(rdma_rx_packets, 1), C(rdma_rx_bytes, 100),
		    C(rdma_rx_multicast, 1), C(rdma_copied_bytes, 280)));	/* with the GRH */
	assert_int_equal(sent.cnt[CNT_rdma_tx_packets], 1);
	assert_int_equal(received.cnt[CNT_rx_send], 1);
	assert_int_equal(received.cnt[CNT_rdma_copied_bytes], 140);
	assert_int_equal(received.cnt[CNT_rdma_rx_packets], 0);
	assert_int_equal(received.cnt[CNT_rdma_rx_bytes], 0);
	/* A group's GID or MAC address alone makes no multicast. */
	for (int i = 0; i < 2; i++) {
		memcpy(wr.path.dmac, i ? (uint8_t[]){ 1, 0, 0x5e, 1, 2, 3 } : to.d->dev.port.mac, 6);
		if (i)
			dut_gid(to.d, 0, wr.path.dgid);
		conn_send(&from, &wr);
		world_run(&t->w);
		assert_int_equal(from.d->dev.cnt[CNT_rdma_tx_packets], 2 + i);
		assert_int_equal(from.d->dev.cnt[CNT_rdma_tx_multicast], 1);
	}
	mcast_fini(&to.d->dev.mcast);
	conn_fini(&from);
	conn_fini(&to);
	conn_fini(&also);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, ends_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(write), TEST(read), TEST(atomic), TEST(send), TEST(bad_request),
		TEST(local_protection), TEST(bad_receive), TEST(rnr), TEST(rejected),
		TEST(too_long), TEST(multicast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
