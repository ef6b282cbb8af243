// SPDX-License-Identifier: GPL-2.0
/*
 * The engine, end to end: two functions, all operations; who sleeps, who is woken.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/pair.h"

#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | \
		 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC)

/** struct ends - two connected queue pairs, a buffer and its key on each side */
struct ends {
	struct world w;
	struct conn a, b;
	uint64_t abuf, bbuf;
	uint32_t akey, bkey;
};

#define BUF	(10u << 20)

static int setup_spin(void **state, uint64_t spin)
{
	struct ends *t = test_calloc(1, sizeof(*t));

	world_init(&t->w, spin);
	conn_init(&t->a, &t->w.dut[0], NULL);
	conn_init(&t->b, &t->w.dut[1], NULL);
	conn_pair(&t->a, &t->b, 0xfffff0, 0x123456);
	t->abuf = dut_buf(t->a.d, BUF);
	t->bbuf = dut_buf(t->b.d, BUF);
	t->akey = dut_key(t->a.d, NULL, t->abuf, BUF, ALL);
	t->bkey = dut_key(t->b.d, NULL, t->bbuf, BUF, ALL);
	*state = t;
	return 0;
}

static int setup(void **state)
{
	return setup_spin(state, 0);
}

static int teardown(void **state)
{
	struct ends *t = *state;

	conn_fini(&t->a);
	conn_fini(&t->b);
	world_fini(&t->w);
	test_free(t);
	return 0;
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

/* ORN-RQ-1, ORN-WQE-9: data, byte count and immediate arrive, whatever the size. */
static void test_send(void **state)
{
	struct ends *t = *state;

	for (uint32_t i = 0; i < NSIZES; i++) {
		uint32_t len = sizes[i];
		struct wr wr = make(t, i & 1 ? ORNIC_WR_SEND_IMM : ORNIC_WR_SEND, 5, len);
		struct ornic_cqe cqe;

		fill(dut_at(t->a.d, t->abuf + 5, BUF - 5), BUF - 5, i);
		memset(dut_at(t->b.d, t->bbuf, BUF), 0, BUF);
		conn_recv(&t->b, t->bbuf + 9, len + 10, t->bkey);
		conn_send(&t->a, &wr);
		world_run(&t->w);
		conn_expect(&t->a, &t->a.hscq, i, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
		assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
		assert_int_equal(cqe.status, 0);
		assert_int_equal(cqe.opcode, ORNIC_WC_RECV);
		assert_int_equal(le32toh(cqe.wqe_id), i);
		assert_int_equal(le32toh(cqe.byte_len), len);
		assert_int_equal(le32toh(cqe.flags), i & 1 ? ORNIC_CQE_WITH_IMM : 0);
		if (i & 1)
			assert_int_equal(be32toh(cqe.imm), 0x11223344);
		check(dut_at(t->b.d, t->bbuf + 9, len + 1), len, i);
		assert_int_equal(*dut_at(t->b.d, t->bbuf + 9 + len, 1), 0);
		conn_quiet(&t->a);
		conn_quiet(&t->b);
	}
}

/* ORN-RQ-8 */
static void test_write(void **state)
{
	struct ends *t = *state;

	for (uint32_t i = 0; i < NSIZES; i++) {
		uint32_t len = sizes[i];
		struct wr wr = make(t, ORNIC_WR_RDMA_WRITE, 64, len);
		struct ornic_cqe cqe;

		fill(dut_at(t->a.d, t->abuf + 64, BUF - 64), BUF - 64, i);
		memset(dut_at(t->b.d, t->bbuf, BUF), 0, BUF);
		conn_send(&t->a, &wr);
		world_run(&t->w);
		conn_expect(&t->a, &t->a.hscq, 2 * i, ORNIC_WC_RDMA_WRITE, ORNIC_WC_SUCCESS);
		check(dut_at(t->b.d, t->bbuf + 64, len + 1), len, i);
		assert_int_equal(*dut_at(t->b.d, t->bbuf + 64 + len, 1), 0);
		conn_quiet(&t->b);
		wr.opcode = ORNIC_WR_RDMA_WRITE_IMM;
		conn_recv(&t->b, t->bbuf, 0, 0);
		conn_send(&t->a, &wr);
		world_run(&t->w);
		conn_expect(&t->a, &t->a.hscq, 2 * i + 1, ORNIC_WC_RDMA_WRITE, ORNIC_WC_SUCCESS);
		assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
		assert_int_equal(cqe.opcode, ORNIC_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(le32toh(cqe.byte_len), len);
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
		conn_expect(&t->a, &t->a.hscq, i, ORNIC_WC_RDMA_READ, ORNIC_WC_SUCCESS);
		check(dut_at(t->a.d, t->abuf + 64, len + 1), len, i);
		assert_int_equal(*dut_at(t->a.d, t->abuf + 64 + len, 1), 0);
		conn_quiet(&t->b);
	}
}

/* ORN-WQE-16, ORN-MEM-10: the value before, little endian */
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

/* Both ways at once, more than the window holds; completions in order (ORN-WQE-7). */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_send, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_phys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_atomic, setup, teardown),
		cmocka_unit_test_setup_teardown(test_both_ways, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
