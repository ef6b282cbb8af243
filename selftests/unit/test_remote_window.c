// SPDX-License-Identifier: GPL-2.0
/* Messages longer than the window to a remote peer: an ACK arrives in time at any rate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/peer.h"
#include "net/egress.h"

#define BYTES	(1u << 20)
#define MS	1000000ull

/*
 * The link to the second device is rate-limited, so the peer counts as remote; the rate is high
 * enough not to matter.
 */
static int setup(void **state)
{
	struct egress_param link = { .kbps = 10000000, .queue = 4 * BYTES };
	struct ends *t = ends_new(NULL, 0);

	egress_default(&link);
	assert_int_equal(switch_port_limit(t->w.dut[1].dev.port.sw, &link), 0);
	conn_pair(&t->a, &t->b, 0, 0);
	*state = t;
	return 0;
}

static void write_long(struct ends *t)
{
	uint64_t from = dut_buf(t->a.d, BYTES), to = dut_buf(t->b.d, BYTES);
	struct wr wr = {
		.opcode = ORNIC_WR_RDMA_WRITE, .flags = ORNIC_WQE_SIGNALED, .raddr = to,
		.rkey = dut_key(t->b.d, NULL, to, BYTES,
				ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE),
	};
	struct ornic_cqe cqe;

	wr_sge(&wr, from, BYTES, dut_key(t->a.d, NULL, from, BYTES, 0));
	conn_send(&t->a, &wr);
	world_finish(&t->w, 10000 * MS);
	assert_true(conn_poll(&t->a, &t->a.hscq, &cqe));
	assert_int_equal(cqe.status, 0);
	assert_int_equal(t->a.d->dev.cnt[CNT_ack_timeouts], 0);
	assert_int_equal(t->a.d->dev.cnt[CNT_retransmits], 0);
}

static void test_unlimited(void **state)
{
	write_long(*state);
}

static void test_static_rate(void **state)
{
	struct ends *t = *state;

	qp_set_rate(&t->a.qp, 1000000, 0, 0);
	write_long(t);
}

static void test_congested(void **state)
{
	struct ends *t = *state;

	cnp_receive(&t->a.qp);
	write_long(t);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, ends_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_unlimited),
		TEST(test_static_rate),
		TEST(test_congested),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
