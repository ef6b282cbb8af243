// SPDX-License-Identifier: GPL-2.0
/* The engine, end to end: two functions, all operations, sleep and wakeup. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/pagelist.h"
#include "lib/pair.h"
#include "net/switch.h"

#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | \
		 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC)

#define BUF	(10u << 20)

static int setup_spin(void **state, uint32_t spin)
{
	struct ends *t = ends_new(NULL, spin);

	conn_pair(&t->a, &t->b, 0xfffff0, 0x123456);
	ends_buffers(t, BUF, ALL);
	*state = t;
	return 0;
}

static int setup(void **state)
{
	return setup_spin(state, 0);
}

static struct wr make(struct ends *t, uint8_t opcode, uint64_t off, uint32_t len)
{
	struct wr wr = { .opcode = opcode, .flags = ORNIC_WQE_SIGNALED, .raddr = t->bbuf + off,
			 .rkey = t->bkey, .imm = htobe32(0x11223344) };

	if (len)
		wr_sge(&wr, t->abuf + off, len, t->akey);
	return wr;
}

/* Sizes around MTU, packet and page. */
static const uint32_t sizes[] = { 0, 1, 63, 1023, 1024, 1025, 4096, 65535, 65536, 65537, 200000,
				  8u << 20 };

#define NSIZES	(sizeof(sizes) / sizeof(sizes[0]))

/* Compare all fields of the next completion of a receive of b. */
static void received(struct ends *t, uint8_t opcode, uint32_t index, uint32_t len, uint32_t flags)
{
	struct ornic_cqe cqe, want = {
		.qpn = htole32(t->b.qp.handle), .wqe_id = htole32(index), .byte_len = htole32(len),
		.imm = flags & ORNIC_CQE_WITH_IMM ? htobe32(0x11223344) : 0,
		.srqn = htole32(ORNIC_NONE), .flags = htole32(flags), .opcode = opcode,
	};

	assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
	want.timestamp = cqe.timestamp;
	want.phase = cqe.phase;
	assert_memory_equal(&cqe, &want, sizeof(cqe));
}

/* ORN-RQ-1, ORN-WQE-9: data, byte count and immediate arrive, for every size. */
static void test_send(void **state)
{
	struct ends *t = *state;

	for (uint32_t i = 0; i < NSIZES; i++) {
		uint32_t len = sizes[i];
		struct wr wr = make(t, i & 1 ? ORNIC_WR_SEND_IMM : ORNIC_WR_SEND, 5, len);

		fill(dut_at(t->a.d, t->abuf + 5, BUF - 5), BUF - 5, i);
		memset(dut_at(t->b.d, t->bbuf, BUF), 0, BUF);
		conn_recv(&t->b, t->bbuf + 9, len + 10, t->bkey);
		conn_send(&t->a, &wr);
		world_run(&t->w);
		conn_expect(&t->a, &t->a.hscq, i, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
		received(t, ORNIC_WC_RECV, i, len, i & 1 ? ORNIC_CQE_WITH_IMM : 0);
		check(dut_at(t->b.d, t->bbuf + 9, len + 1), len, i);
		assert_int_equal(*dut_at(t->b.d, t->bbuf + 9 + len, 1), 0);
		conn_quiet(&t->a);
		conn_quiet(&t->b);
	}
}

/* Expect the completion of a send request, which says how many bytes were read from the peer. */
static void sent(struct ends *t, uint32_t index, uint8_t opcode, uint32_t byte_len)
{
	struct ornic_cqe cqe;

	assert_true(conn_poll(&t->a, &t->a.hscq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
	assert_int_equal(cqe.opcode, opcode);
	assert_int_equal(le32toh(cqe.wqe_id), index);
	assert_int_equal(le32toh(cqe.byte_len), byte_len);
}

/* ORN-RQ-8 */
static void test_write(void **state)
{
	struct ends *t = *state;

	for (uint32_t i = 0; i < NSIZES; i++) {
		uint32_t len = sizes[i];
		struct wr wr = make(t, ORNIC_WR_RDMA_WRITE, 64, len);

		fill(dut_at(t->a.d, t->abuf + 64, BUF - 64), BUF - 64, i);
		memset(dut_at(t->b.d, t->bbuf, BUF), 0, BUF);
		conn_send(&t->a, &wr);
		world_run(&t->w);
		sent(t, 2 * i, ORNIC_WC_RDMA_WRITE, 0);
		check(dut_at(t->b.d, t->bbuf + 64, len + 1), len, i);
		assert_int_equal(*dut_at(t->b.d, t->bbuf + 64 + len, 1), 0);
		conn_quiet(&t->b);
		wr.opcode = ORNIC_WR_RDMA_WRITE_IMM;
		wr.flags |= i & 1 ? ORNIC_WQE_SOLICITED : 0;
		conn_recv(&t->b, t->bbuf, 0, 0);
		conn_send(&t->a, &wr);
		world_run(&t->w);
		conn_expect(&t->a, &t->a.hscq, 2 * i + 1, ORNIC_WC_RDMA_WRITE, ORNIC_WC_SUCCESS);
		received(t, ORNIC_WC_RECV_RDMA_WITH_IMM, i, len,
			 ORNIC_CQE_WITH_IMM | (i & 1 ? ORNIC_CQE_SOLICITED : 0));
	}
}

static void test_read(void **state)
{
	struct ends *t = *state;

	for (uint32_t i = 0; i < NSIZES; i++) {
		uint32_t len = sizes[i];
		struct wr wr = make(t, ORNIC_WR_RDMA_READ, 64, len);

		fill(dut_at(t->b.d, t->bbuf + 64, BUF - 64), BUF - 64, i);
		memset(dut_at(t->a.d, t->abuf, BUF), 0, BUF);
		conn_send(&t->a, &wr);
		world_run(&t->w);
		sent(t, i, ORNIC_WC_RDMA_READ, len);
		check(dut_at(t->a.d, t->abuf + 64, len + 1), len, i);
		assert_int_equal(*dut_at(t->a.d, t->abuf + 64 + len, 1), 0);
		conn_quiet(&t->b);
	}
}

/* ORN-WQE-16: the value before, little endian */
static void test_atomic(void **state)
{
	struct ends *t = *state;
	struct wr add = make(t, ORNIC_WR_FETCH_ADD, 0, 8);
	struct wr swap = make(t, ORNIC_WR_COMP_SWAP, 0, 8);
	uint64_t *mem = (uint64_t *)dut_at(t->b.d, t->bbuf, 8);
	uint64_t *res = (uint64_t *)dut_at(t->a.d, t->abuf, 8);

	*mem = htole64(0xffffffffffffffffull);
	add.swap_add = 3;
	conn_send(&t->a, &add);
	world_run(&t->w);
	conn_expect(&t->a, &t->a.hscq, 0, ORNIC_WC_FETCH_ADD, ORNIC_WC_SUCCESS);
	assert_int_equal(le64toh(*res), 0xffffffffffffffffull);
	assert_int_equal(le64toh(*mem), 2);
	swap.compare = 1;
	swap.swap_add = 77;
	conn_send(&t->a, &swap);
	world_run(&t->w);
	conn_expect(&t->a, &t->a.hscq, 1, ORNIC_WC_COMP_SWAP, ORNIC_WC_SUCCESS);
	assert_int_equal(le64toh(*res), 2);
	assert_int_equal(le64toh(*mem), 2);
	swap.compare = 2;
	conn_send(&t->a, &swap);
	world_run(&t->w);
	conn_expect(&t->a, &t->a.hscq, 2, ORNIC_WC_COMP_SWAP, ORNIC_WC_SUCCESS);
	assert_int_equal(le64toh(*res), 2);
	assert_int_equal(le64toh(*mem), 77);
}

/* READ by a PHYS_ALL key of a privileged queue pair, answered in several packets (ORN-SEC-3) */
static void test_read_phys(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, ORNIC_WR_RDMA_READ, 0, 200000);

	t->b.qp.flags |= ORNIC_QP_F_PRIVILEGED;
	wr.rkey = dut_phys(t->b.d, ORNIC_ACCESS_REMOTE_READ);
	fill(dut_at(t->b.d, t->bbuf, 200000), 200000, 4);
	conn_send(&t->a, &wr);
	world_run(&t->w);
	conn_expect(&t->a, &t->a.hscq, 0, ORNIC_WC_RDMA_READ, ORNIC_WC_SUCCESS);
	check(dut_at(t->a.d, t->abuf, 200000), 200000, 4);
}

/* Two queue pairs of one function, by IPv6 GIDs; and a queue pair connected to itself */
static void test_same_function(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, ORNIC_WR_RDMA_READ, 0, 5000);
	struct conn x, y, z;

	wr.raddr = t->abuf + 10000;
	wr.rkey = t->akey;
	conn_init(&x, t->a.d, NULL);
	conn_init(&y, t->a.d, NULL);
	conn_init(&z, t->a.d, NULL);
	conn_pair(&x, &y, 1, 2);
	x.qp.path.sgid_index = htole16(1);
	y.qp.path.sgid_index = htole16(1);
	dut_gid(t->a.d, 1, x.qp.path.dgid);
	dut_gid(t->a.d, 1, y.qp.path.dgid);
	conn_path(&z, t->a.d->dev.port.mac, t->a.d->dev.port.gid[0].gid);
	conn_attr(&z, z.qp.handle, 7, 7);
	conn_rts(&z);
	fill(dut_at(t->a.d, t->abuf + 10000, 5000), 5000, 1);
	conn_send(&x, &wr);
	world_run(&t->w);
	conn_expect(&x, &x.hscq, 0, ORNIC_WC_RDMA_READ, ORNIC_WC_SUCCESS);
	check(dut_at(t->a.d, t->abuf, 5000), 5000, 1);
	memset(dut_at(t->a.d, t->abuf, 5000), 0, 5000);
	conn_send(&z, &wr);
	world_run(&t->w);
	conn_expect(&z, &z.hscq, 0, ORNIC_WC_RDMA_READ, ORNIC_WC_SUCCESS);
	check(dut_at(t->a.d, t->abuf, 5000), 5000, 1);
	conn_fini(&x);
	conn_fini(&y);
	conn_fini(&z);
}

/* Both directions at once, more than the window holds; completions in order (ORN-WQE-7). */
static void test_both_ways(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, ORNIC_WR_RDMA_WRITE, 0, 3000);
	struct wr back = wr;

	back.raddr = t->abuf + 100000;
	back.rkey = t->akey;
	back.nsge = 0;
	wr_sge(&back, t->bbuf + 100000, 3000, t->bkey);
	for (int i = 0; i < 200; i++) {
		conn_send(&t->a, &wr);
		conn_send(&t->b, &back);
	}
	world_run(&t->w);
	for (int i = 0; i < 200; i++) {
		conn_expect(&t->a, &t->a.hscq, i, ORNIC_WC_RDMA_WRITE, ORNIC_WC_SUCCESS);
		conn_expect(&t->b, &t->b.hscq, i, ORNIC_WC_RDMA_WRITE, ORNIC_WC_SUCCESS);
	}
	conn_quiet(&t->a);
	conn_quiet(&t->b);
}

/* Let the lazy timers expire, so that only a doorbell can bring work. */
static void rest(struct ends *t)
{
	world_finish(&t->w, 10000000000ull);
	assert_int_equal(world_run(&t->w), -1);
}

/*
 * ORN-RNG-6: an idle queue pair asks for one doorbell, gets it at the first post, and costs no
 * work until then. Receives never ask for a doorbell (ORN-RNG-7).
 */
static void test_sleep(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, ORNIC_WR_SEND, 0, 10);

	rest(t);
	for (int i = 0; i < 3; i++)
		conn_recv(&t->b, t->bbuf, 10, t->bkey);
	assert_int_equal(t->b.rq.rang, 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(le32toh(conn_rec(&t->a, &t->a.sq)->notify), i);
		t->a.sq.rang = 0;
		conn_send(&t->a, &wr);
		assert_int_equal(t->a.sq.rang, 1);
		assert_int_equal(engine_turn(&t->w.e) < 0, false);
		rest(t);
		conn_expect(&t->a, &t->a.hscq, i, ORNIC_WC_SEND, 0);
	}
	conn_send(&t->a, &wr);
	conn_send(&t->a, &wr);
	assert_int_equal(t->a.sq.rang, 2);	/* crossing test: the second rings nothing */
}

/* Set up an engine that watches rings for @spin_us, and let it watch one after a WRITE, *@wr. */
static struct ends *watched(void **state, uint32_t spin_us, struct wr *wr)
{
	struct ends *t;

	setup_spin(state, spin_us);
	t = *state;
	*wr = make(t, ORNIC_WR_RDMA_WRITE, 0, 10);
	conn_send(&t->a, wr);
	for (int i = 0; i < 10; i++)
		assert_int_equal(engine_turn(&t->w.e), 0);
	conn_expect(&t->a, &t->a.hscq, 0, ORNIC_WC_RDMA_WRITE, 0);
	return t;
}

/* While a ring is watched, posts are seen without doorbells; the watch has a time limit. */
static void test_watch(void **state)
{
	struct ends *t;
	struct wr wr;

	t = watched(state, 1, &wr);
	conn_write_wr(&t->a, &wr);
	conn_rec(&t->a, &t->a.sq)->host_index = htole32(2);
	t->a.sq.index = 2;
	for (int i = 0; i < 10; i++)
		assert_int_equal(engine_turn(&t->w.e), 0);
	conn_expect(&t->a, &t->a.hscq, 1, ORNIC_WC_RDMA_WRITE, 0);
	world_spend(999);
	assert_int_equal(engine_turn(&t->w.e), 0);
	assert_int_equal(t->a.qp.sched, QP_WATCHED);
	assert_true(world_pass(&t->w, 1) > 0);
	assert_int_equal(le32toh(conn_rec(&t->a, &t->a.sq)->notify), 2);
	rest(t);
	ends_teardown(state);
}

/* ORN-RNG-6 (c): the device sees work requests posted while it fell asleep. */
static void test_falling_asleep(void **state)
{
	struct ends *t = *state;

	rest(t);
	assert_true(qp_sleep(&t->a.qp));
	conn_rec(&t->a, &t->a.sq)->host_index = htole32(1);
	assert_false(qp_sleep(&t->a.qp));
}

/* ORN-SEC-5: a small message does not wait behind a big one of another queue pair. */
static void test_fair(void **state)
{
	struct ends *t = *state;
	struct wr big = make(t, ORNIC_WR_RDMA_WRITE, 0, 8u << 20);
	struct wr tiny = make(t, ORNIC_WR_RDMA_WRITE, 9u << 20, 10);
	struct conn x, y;

	conn_init(&x, &t->w.dut[0], NULL);
	conn_init(&y, &t->w.dut[1], NULL);
	conn_pair(&x, &y, 1, 2);
	for (int i = 0; i < 4; i++)
		conn_send(&t->a, &big);
	engine_turn(&t->w.e);
	conn_send(&x, &tiny);
	engine_turn(&t->w.e);
	conn_expect(&x, &x.hscq, 0, ORNIC_WC_RDMA_WRITE, 0);
	assert_true(t->a.qp.sq.done < 4);
	world_run(&t->w);
	for (int i = 0; i < 4; i++)
		conn_expect(&t->a, &t->a.hscq, i, ORNIC_WC_RDMA_WRITE, 0);
	conn_fini(&x);
	conn_fini(&y);
}

/* The device only reads the rings of work queues. */
static void test_read_only_rings(void **state)
{
	struct ends *t = *state;
	struct guest *a = &t->a.d->guest, *b = &t->b.d->guest;
	struct wr wr = make(t, ORNIC_WR_SEND, 0, 10);

	conn_recv(&t->b, t->bbuf, 10, t->bkey);
	conn_send(&t->a, &wr);
	guest_hide(a, t->a.sq.ring);
	assert_int_equal(gpa_map(a->gpa, t->a.sq.ring, GUEST_PAGE, GPA_READ, a->fd,
				 t->a.sq.ring - GUEST_BASE), 0);
	guest_hide(b, t->b.rq.ring);
	assert_int_equal(gpa_map(b->gpa, t->b.rq.ring, GUEST_PAGE, GPA_READ, b->fd,
				 t->b.rq.ring - GUEST_BASE), 0);
	world_run(&t->w);
	conn_expect(&t->a, &t->a.hscq, 0, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	conn_expect(&t->b, &t->b.hrcq, 0, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
}

/* The answer to a long READ takes several iterations, so that others are not delayed. */
static void test_long_answer(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, ORNIC_WR_RDMA_READ, 0, 8u << 20);

	conn_send(&t->a, &wr);
	qp_run(&t->a.qp);
	engine_drain(&t->w.e);
	assert_int_equal(t->b.qp.resp.rd_next, 1);
	assert_true(responder_run(&t->b.qp));
	assert_int_equal(t->b.qp.resp.rd[0].sent, 16 * (PACKET_MAX_PAYLOAD / 1024));
	world_run(&t->w);
	conn_expect(&t->a, &t->a.hscq, 0, ORNIC_WC_RDMA_READ, ORNIC_WC_SUCCESS);
}

/* ORN-SEC-13: many busy queue pairs of one function do not delay the queue pair of another one. */
static void test_fair_to_functions(void **state)
{
	struct ends *t = *state;
	struct wr nop = make(t, ORNIC_WR_NOP, 0, 0);
	struct conn many[40], one;

	conn_init(&one, &t->w.dut[1], NULL);
	qp_set_state(&one.qp, ORNIC_QPS_INIT);
	qp_set_state(&one.qp, ORNIC_QPS_RTR);
	for (int i = 0; i < 40; i++) {
		conn_init(&many[i], &t->w.dut[0], NULL);
		conn_pair(&many[i], &many[i], 1, 1);
	}
	world_run(&t->w);
	for (int i = 0; i < 40; i++)
		conn_send(&many[i], &nop);
	qp_set_state(&one.qp, ORNIC_QPS_RTS);
	conn_send(&one, &nop);
	engine_turn(&t->w.e);
	conn_expect(&one, &one.hscq, 0, ORNIC_WC_NOP, 0);
	assert_int_equal(many[39].qp.sq.done, 0);
	world_run(&t->w);
	for (int i = 0; i < 40; i++) {
		conn_expect(&many[i], &many[i].hscq, 0, ORNIC_WC_NOP, 0);
		conn_fini(&many[i]);
	}
	conn_fini(&one);
}

/* Queue pairs of a function, and a clock that advances by @step ns when one of them has run */
static struct {
	struct conn qp[20];
	uint64_t step;
} timed;

static uint64_t timed_clock(void)
{
	uint64_t now = 1000000000;

	for (int i = 0; i < 20; i++)
		now += timed.step * timed.qp[i].qp.sq.done;
	return now;
}

/* ORN-PCI-2: an iteration runs 16 queue pairs, and begins none after 100 us. */
static void test_turn_limits(void **state)
{
	static const struct {
		uint64_t step;
		uint32_t qps;
	} cases[] = { { 0, 16 }, { 50000, 3 }, { 100000, 2 }, { 100001, 1 } };
	struct ends *t = *state;
	struct wr nop = make(t, ORNIC_WR_NOP, 0, 0);

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		uint32_t done = 0;

		for (int i = 0; i < 20; i++) {
			conn_init(&timed.qp[i], &t->w.dut[0], NULL);
			conn_pair(&timed.qp[i], &timed.qp[i], 1, 1);
		}
		world_run(&t->w);
		for (int i = 0; i < 20; i++)
			conn_send(&timed.qp[i], &nop);
		timed.step = cases[k].step;
		t->w.e.clock = timed_clock;
		assert_int_equal(engine_turn(&t->w.e), 0);
		for (int i = 0; i < 20; i++)
			done += timed.qp[i].qp.sq.done;
		assert_int_equal(done, cases[k].qps);
		timed.step = 0;
		world_run(&t->w);
		for (int i = 0; i < 20; i++) {
			conn_expect(&timed.qp[i], &timed.qp[i].hscq, 0, ORNIC_WC_NOP, 0);
			conn_fini(&timed.qp[i]);
		}
	}
}

/* ORN-RNG-9, ORN-EQ: a completion fires the armed CQ, which fires the armed EQ, in one turn. */
static void test_event(void **state)
{
	struct ends *t = *state;
	struct wr wr = make(t, ORNIC_WR_RDMA_WRITE, 0, 10);
	struct ornic_rec *eq = guest_at(&t->a.d->guest, t->a.d->eq.rec, 64);
	struct ornic_eqe e;

	conn_rec(&t->a, &t->a.hscq)->arm = htole32(ORNIC_ARM_ANY << 28 | 1 << 24);
	eq->arm = htole32(ORNIC_ARM_ANY << 28 | 1 << 24);
	conn_send(&t->a, &wr);
	world_run(&t->w);
	assert_int_equal(t->a.d->irqs, 1);
	assert_true(dut_event(t->a.d, &e));
	assert_int_equal(e.type, ORNIC_EV_COMPLETION);
	assert_int_equal(le32toh(e.number), t->a.scq.number);
}

/* While a function may not do DMA, its queues wait for their turn; none is lost. */
static void test_paused(void **state)
{
	struct ends *t = *state;
	struct ornic_rec *rec = conn_rec(&t->a, &t->a.hscq);
	struct wr wr = make(t, ORNIC_WR_NOP, 0, 0);
	struct ornic_eqe e;

	conn_send(&t->a, &wr);
	qp_run(&t->a.qp);
	rec->arm = htole32(ORNIC_ARM_ANY << 28 | 1 << 24);
	t->a.d->dev.running = false;
	t->a.d->dev.failed = true;
	world_run(&t->w);
	assert_false(dut_event(t->a.d, &e));
	assert_true(t->a.d->dev.failed);
	t->a.d->dev.running = true;
	world_run(&t->w);
	assert_false(t->a.d->dev.failed);
	assert_true(dut_event(t->a.d, &e));
	assert_int_equal(e.type, ORNIC_EV_COMPLETION);
}

/* Return true if @a is not later than @b. */
static bool in_order(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec <= b->tv_nsec);
}

/* The clock is CLOCK_MONOTONIC in ns, so it never goes back. */
static void test_clock(void **state)
{
	struct timespec before, at, after;
	uint64_t ns;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &before);
	ns = engine_clock();
	clock_gettime(CLOCK_MONOTONIC, &after);
	at = (struct timespec) { ns / 1000000000, ns % 1000000000 };
	assert_true(in_order(&before, &at));
	assert_true(in_order(&at, &after));
}

/* A receive has room for the sum of its segments, not for those of an earlier one. */
static void test_receive_list(void **state)
{
	struct ends *t = *state;
	const struct ornic_sge list[] = {
		{ htole64(t->bbuf), htole32(300), htole32(t->bkey) },
		{ htole64(t->bbuf), 0, htole32(t->bkey) },
		{ htole64(t->bbuf + 300), htole32(100), htole32(t->bkey) },
	};

	fill(dut_at(t->a.d, t->abuf, BUF), BUF, 3);
	for (uint32_t i = 0; i < 2; i++) {
		struct wr wr = make(t, ORNIC_WR_SEND, 0, i ? 301 : 400);

		conn_recv_list(&t->b, list, 3 - i);
		conn_send(&t->a, &wr);
		world_run(&t->w);
		conn_expect(&t->b, &t->b.hrcq, i, ORNIC_WC_RECV, i ? ORNIC_WC_LOC_LEN_ERR : 0);
	}
	check(dut_at(t->b.d, t->bbuf, 400), 400, 3);
}

/* A queue pair of a function that stops is no longer watched. */
static void test_watch_stopped(void **state)
{
	struct ends *t;
	struct wr wr;

	t = watched(state, 1000000, &wr);
	assert_int_equal(t->a.qp.sched, QP_WATCHED);
	t->a.d->dev.running = false;
	t->b.d->dev.running = false;
	engine_turn(&t->w.e);
	assert_int_equal(t->a.qp.sched, QP_ASLEEP);
	assert_int_not_equal(engine_turn(&t->w.e), 0);
	t->a.d->dev.running = true;
	t->b.d->dev.running = true;
	ends_teardown(state);
}

/* An engine without functions: its ports, and what happened to them */
static struct {
	struct engine e;
	struct switch_port *a, *b;
	unsigned int delivered, flushed;
	uint64_t now;
} lone;

static uint64_t lone_clock(void)
{
	return lone.now += 10;
}

static void lone_deliver(void *arg, const struct packet *p)
{
	(void)arg;
	(void)p;
	lone.delivered++;
	switch_hold(lone.b);
}

static void lone_flush(void *arg)
{
	(void)arg;
	lone.flushed++;
}

static void lone_send(void *arg)
{
	struct packet *p = packet_get(&lone.e.pool);

	(void)arg;
	assert_non_null(p);
	memset(p->dmac, 0xff, sizeof(p->dmac));
	switch_send(lone.a, p);
}

/*
 * An iteration has one time, that of its beginning. It delivers what timers sent, ends the hold of
 * ports, and returns the time that is left at its end until the next timer.
 */
static void test_turn(void **state)
{
	static const struct switch_port_ops ops = { lone_deliver, lone_flush };
	const uint64_t pages = 3 * PAGELIST_PIECE / sizeof(uint64_t);
	struct page_lists lists = { .left = pages };
	struct timer timer = { .fn = lone_send };
	uint64_t begin;

	(void)state;
	assert_int_equal(engine_init(&lone.e, 4300000), 0);
	assert_int_equal(lone.e.spin_ns, 4300000000);
	assert_int_not_equal(lone.e.now, 0);
	lone.e.clock = lone_clock;
	lone.a = switch_port_add(lone.e.sw, "a", &ops, NULL);
	lone.b = switch_port_add(lone.e.sw, "b", &ops, NULL);
	switch_port_set_up(lone.a, true);
	switch_port_set_up(lone.b, true);
	begin = lone.now;
	engine_input(&lone.e);
	assert_int_equal(lone.e.now, begin + 10);
	assert_int_equal(engine_turn(&lone.e), -1);
	assert_int_equal(lone.e.now, begin + 20);
	assert_int_equal(timers_reserve(&lone.e.timers, 1), 0);
	timer_arm(&lone.e.timers, &timer, lone.now + 100);
	assert_int_equal(engine_turn(&lone.e), 100 - 2 * 10);
	assert_int_equal(lone.delivered, 0);
	lone.now += 100;
	assert_int_equal(engine_turn(&lone.e), -1);
	assert_int_equal(lone.delivered, 1);
	assert_int_equal(lone.flushed, 1);
	timers_unreserve(&lone.e.timers, 1);
	/* page lists are freed piece by piece, one per iteration */
	lists.queue = &lone.e.unused;
	pagelist_free(&lists, pagelist_alloc(&lists, pages), pages);
	assert_int_equal(lists.waiting, pages);
	assert_int_equal(engine_turn(&lone.e), 0);
	assert_int_equal(engine_turn(&lone.e), 0);
	assert_int_equal(engine_turn(&lone.e), -1);
	assert_int_equal(lists.left, pages);
	assert_int_equal(lists.waiting, 0);
	pagelist_free(&lists, pagelist_alloc(&lists, pages), pages);
	switch_port_del(lone.a);
	switch_port_del(lone.b);
	engine_fini(&lone.e);
	assert_int_equal(lists.left, pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_send, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_write, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_read, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_read_phys, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_atomic, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_both_ways, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_same_function, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_sleep, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_receive_list, setup, ends_teardown),
		cmocka_unit_test(test_watch),
		cmocka_unit_test(test_watch_stopped),
		cmocka_unit_test(test_turn),
		cmocka_unit_test_setup_teardown(test_falling_asleep, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_fair, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_long_answer, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_read_only_rings, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_fair_to_functions, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_turn_limits, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_event, setup, ends_teardown),
		cmocka_unit_test_setup_teardown(test_paused, setup, ends_teardown),
		cmocka_unit_test(test_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
