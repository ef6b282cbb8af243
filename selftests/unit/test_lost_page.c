// SPDX-License-Identifier: GPL-2.0
/*
 * A page of guest memory is lost, here because its file is truncated: nothing of it reaches a peer,
 * and the function that owns it sends no more until it fails. Others send and receive.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/failing.h"
#include "lib/pair.h"

#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ)
#define LEN	1000
#define QKEY	7

/** struct place - the last page of a function's memory */
struct place {
	uint64_t addr;
	uint32_t key;
};

static struct ends *connect_type(uint8_t type)
{
	struct conn_opt opt = { .type = type };
	struct ends *t = ends_new(&opt, 0);

	assert_int_equal(backing_guard(), 0);
	if (type == ORNIC_QPT_UD) {
		t->a.qp.qkey = QKEY;
		t->b.qp.qkey = QKEY;
		conn_rts(&t->a);
		conn_rts(&t->b);
	} else {
		conn_pair(&t->a, &t->b, 5, 9);
	}
	ends_buffers(t, GUEST_PAGE, ALL);
	fill(dut_at(t->a.d, t->abuf, LEN), LEN, 1);
	return t;
}

/* Lose the last page of @d; the rest of its memory stays. */
static struct place lose(struct dut *d)
{
	struct place last;

	d->guest.next = GUEST_BASE + GUEST_BYTES - GUEST_PAGE;
	last.addr = dut_buf(d, GUEST_PAGE);
	last.key = dut_key(d, NULL, last.addr, GUEST_PAGE, ALL);
	assert_int_equal(ftruncate(d->guest.fd, GUEST_BYTES - GUEST_PAGE), 0);
	return last;
}

static void judge(const struct dut *loser, const struct dut *other)
{
	size_t at;

	assert_true(gpa_lost(loser->guest.gpa));
	assert_string_equal(gpa_loss(loser->guest.gpa, &at),
			    "the file was truncated, no huge page was free, or its disk failed");
	assert_in_range(at, GUEST_BYTES - GUEST_PAGE, GUEST_BYTES - 1);
	assert_false(gpa_lost(other->guest.gpa));
}

static void end(struct ends *t)
{
	void *state = t;

	ends_teardown(&state);
}

static struct wr make(struct ends *t, uint8_t opcode, uint64_t addr, uint32_t key)
{
	struct wr wr = { .opcode = opcode, .flags = ORNIC_WQE_SIGNALED,
			 .raddr = t->bbuf, .rkey = t->bkey };

	if (t->a.qp.type == ORNIC_QPT_UD) {
		memcpy(wr.path.dmac, t->b.d->dev.port.mac, 6);
		dut_gid(t->b.d, 0, wr.path.dgid);
		wr.path.dest_qpn = htole32(t->b.qp.wire_qpn);
		wr.path.qkey = htole32(QKEY);
		wr.path.hop_limit = 1;
	}
	wr_sge(&wr, addr, LEN, key);
	return wr;
}

/* The sender's page is lost: the receiver gets no zeros, but it can still send. */
static void test_source(void **state)
{
	static const uint8_t type[] = { ORNIC_QPT_RC, ORNIC_QPT_UC, ORNIC_QPT_UD };

	(void)state;
	for (unsigned int i = 0; i < sizeof(type); i++) {
		struct ends *t = connect_type(type[i]);
		struct place last = lose(t->a.d);
		struct wr wr = make(t, ORNIC_WR_SEND, last.addr, last.key);
		struct ornic_cqe cqe;

		for (int n = 0; n < 3; n++)
			conn_recv(&t->b, t->bbuf, GUEST_PAGE, t->bkey);
		for (int n = 0; n < 2; n++)
			conn_send(&t->a, &wr);
		world_run(&t->w);
		assert_false(conn_poll(&t->b, &t->b.hrcq, &cqe));
		assert_int_equal(t->b.qp.state, ORNIC_QPS_RTS);
		judge(t->a.d, t->b.d);
		wr = make(t, ORNIC_WR_SEND, t->abuf, t->akey);
		conn_send(&t->a, &wr);
		world_run(&t->w);
		assert_false(conn_poll(&t->b, &t->b.hrcq, &cqe));
		if (type[i] == ORNIC_QPT_UC) {
			wr = make(t, ORNIC_WR_SEND, t->bbuf, t->bkey);
			conn_recv(&t->a, t->abuf, GUEST_PAGE, t->akey);
			conn_send(&t->b, &wr);
			world_run(&t->w);
			conn_expect(&t->a, &t->a.hrcq, 0, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
		}
		end(t);
	}
}

/* A datagram that waits for a receive is not kept. */
static void test_waits(void **state)
{
	struct ends *t = connect_type(ORNIC_QPT_UD);
	struct place last = lose(t->a.d);
	struct wr wr = make(t, ORNIC_WR_SEND, last.addr, last.key);
	struct ornic_cqe cqe;

	(void)state;
	conn_send(&t->a, &wr);
	world_run(&t->w);
	judge(t->a.d, t->b.d);
	conn_recv(&t->b, t->bbuf, GUEST_PAGE, t->bkey);
	world_run(&t->w);
	assert_false(conn_poll(&t->b, &t->b.hrcq, &cqe));
	end(t);
}

/* An ATOMIC WRITE does not store zeros. */
static void test_atomic_write(void **state)
{
	struct ends *t = connect_type(ORNIC_QPT_RC);
	struct place last = lose(t->a.d);
	struct wr wr = make(t, ORNIC_WR_ATOMIC_WRITE, last.addr, last.key);

	(void)state;
	t->b.qp.dev->features |= ORNIC_FEATURE(ATOMIC_WRITE);
	wr.sge[0].length = htole32(8);
	fill(dut_at(t->b.d, t->bbuf, 8), 8, 2);
	conn_send(&t->a, &wr);
	world_run(&t->w);
	conn_quiet(&t->a);
	check(dut_at(t->b.d, t->bbuf, 8), 8, 2);
	judge(t->a.d, t->b.d);
	end(t);
}

/* The receiver's page is lost: the sender's work request does not complete. */
static void test_target(void **state)
{
	struct ends *t = connect_type(ORNIC_QPT_RC);
	struct place last = lose(t->b.d);
	struct wr wr = make(t, ORNIC_WR_RDMA_WRITE, t->abuf, t->akey);

	(void)state;
	wr.raddr = last.addr;
	wr.rkey = last.key;
	conn_send(&t->a, &wr);
	world_run(&t->w);
	conn_quiet(&t->a);
	assert_int_equal(t->b.qp.state, ORNIC_QPS_RTS);
	judge(t->b.d, t->a.d);
	end(t);
}

/* A READ does not complete if the page of either side is lost. */
static void test_read(void **state)
{
	(void)state;
	for (int own = 0; own < 2; own++) {
		struct ends *t = connect_type(ORNIC_QPT_RC);
		struct place last = lose(own ? t->a.d : t->b.d);
		struct wr wr = make(t, ORNIC_WR_RDMA_READ, own ? last.addr : t->abuf,
				    own ? last.key : t->akey);

		if (!own) {
			wr.raddr = last.addr;
			wr.rkey = last.key;
		}
		conn_send(&t->a, &wr);
		world_run(&t->w);
		conn_quiet(&t->a);
		assert_int_equal(t->a.qp.state, ORNIC_QPS_RTS);
		judge(own ? t->a.d : t->b.d, own ? t->b.d : t->a.d);
		end(t);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_source),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_atomic_write),
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_read),
	};

	return cmocka_run_group_tests_name("lost_page", tests, NULL, NULL);
}
