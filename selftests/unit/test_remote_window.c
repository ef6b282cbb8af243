// SPDX-License-Identifier: GPL-2.0
/*
 * Messages longer than the window to a remote peer: never more PSNs than the window are in flight,
 * and an ACK arrives in time at any rate.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/peer.h"
#include "net/egress.h"
#include "net/switch.h"

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

	egress_default(&link, EGRESS_KEY_QUEUE);
	assert_int_equal(switch_port_limit(t->w.dut[1].dev.port.sw, &link), 0);
	conn_pair(&t->a, &t->b, 0, 0);
	*state = t;
	return 0;
}

/**
 * struct flight - packets of the first queue pair before an ACK arrived, as captures see them
 * @t:		the queue pairs
 * @first:	number of packets before the first ACK
 * @psns:	most PSNs in flight at any time
 */
struct flight {
	const struct ends *t;
	uint32_t first;
	uint32_t psns;
};

static void observe(void *arg, const struct switch_port *port, enum switch_way way,
		    const struct packet *p, const char *note)
{
	struct flight *f = arg;
	uint32_t una = f->t->a.qp.req.una, psns = p->psn + p->npsn - una;

	if (port != f->t->a.d->dev.port.sw || way != SWITCH_IN || note)
		return;
	f->first += !una;
	if (f->psns < psns)
		f->psns = psns;
}

static void write_long(struct ends *t)
{
	struct flight f = { .t = t };
	const struct switch_observer o = { observe, &f };
	uint64_t from = dut_buf(t->a.d, BYTES), to = dut_buf(t->b.d, BYTES);
	struct wr wr = {
		.opcode = ORNIC_WR_RDMA_WRITE, .flags = ORNIC_WQE_SIGNALED, .raddr = to,
		.rkey = dut_key(t->b.d, NULL, to, BYTES,
				ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE),
	};
	struct ornic_cqe cqe;

	wr_sge(&wr, from, BYTES, dut_key(t->a.d, NULL, from, BYTES, 0));
	switch_set_observer(t->w.e.sw, &o);
	conn_send(&t->a, &wr);
	world_finish(&t->w, 10000 * MS);
	switch_set_observer(t->w.e.sw, NULL);
	assert_true(conn_poll(&t->a, &t->a.hscq, &cqe));
	assert_int_equal(cqe.status, 0);
	assert_int_equal(t->a.d->dev.cnt[CNT_ack_timeouts], 0);
	assert_int_equal(t->a.d->dev.cnt[CNT_retransmits], 0);
	assert_in_range(f.psns, 2, REQUESTER_REMOTE_WINDOW);
	assert_true(f.first > 1);	/* it does not stop and wait */
}

static void test_unlimited(void **state)
{
	write_long(*state);
}

/* Large packets of small MTUs do not exceed the window, and do not fill it alone. */
static void test_mtus(void **state)
{
	ends_teardown(state);
	for (uint8_t code = ORNIC_MTU_256; code <= ORNIC_MTU_4096; code++) {
		struct ends *t;

		setup(state);
		t = *state;
		t->a.qp.mtu_code = code;
		t->b.qp.mtu_code = code;
		write_long(t);
		if (code < ORNIC_MTU_4096)
			ends_teardown(state);
	}
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

/*
 * A timeout to a remote peer begins when its packet is sent, not at the start of the turn, which
 * may be much earlier. Other timeouts need no look at the clock.
 */
static void test_deadline(void **state)
{
	struct ends *t = *state;
	struct requester *r = &t->a.qp.req;
	uint64_t timeout = 4096ull << t->a.qp.timeout;

	world_spend(2 * MS);
	for (int remote = 0; remote < 2; remote++) {
		r->remote = remote;
		requester_progress(&t->a.qp);
		assert_int_equal(r->deadline, t->w.e.now + remote * 2 * MS + timeout);
	}
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, ends_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_unlimited),
		TEST(test_mtus),
		TEST(test_static_rate),
		TEST(test_congested),
		TEST(test_deadline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
