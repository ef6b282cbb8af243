// SPDX-License-Identifier: GPL-2.0
/*
 * Messages longer than the window to a remote peer: never more PSNs than the window are in flight,
 * and an ACK arrives in time at any rate.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

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

/* Send a WRITE or READ to a peer that does not answer. Return: number of packets that came. */
static uint32_t to_silence(struct script *t, uint8_t opcode, uint32_t len)
{
	struct wr wr = { .opcode = opcode, .raddr = 0x1000, .rkey = 7 };
	uint32_t before = t->peer.nin;

	wr_sge(&wr, t->buf, len, t->key);
	conn_send(&t->c, &wr);
	world_run(&t->w);
	return t->peer.nin - before;
}

static struct script *silent(bool remote)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 2, 2 };
	struct script *t = script_new(NULL, 100, 200);

	if (remote) {
		/* The peer's address is not announced. */
		switch_port_set_promisc(t->peer.port, true);
		memcpy(t->c.qp.path.dmac, mac, sizeof(mac));
	}
	t->c.qp.mtu_code = ORNIC_MTU_256;
	t->buf = dut_buf(t->c.d, BYTES);
	t->key = dut_key(t->c.d, NULL, t->buf, BYTES, ORNIC_ACCESS_LOCAL_WRITE);
	return t;
}

/* Without an ACK, the window is filled and not exceeded. */
static void test_full(void **state)
{
	struct script *t = silent(true);
	void *script = t;

	(void)state;
	assert_int_equal(to_silence(t, ORNIC_WR_RDMA_WRITE, 256), 1);
	t->c.qp.rate.most = 0;		/* one PSN per packet */
	assert_int_equal(to_silence(t, ORNIC_WR_RDMA_WRITE, 200 * 256), 128 - 1);
	script_teardown(&script);
}

/* Half of the PSNs may be in flight, except one: then old and new ones differ (IBTA 9.7.2). */
static void test_psns(void **state)
{
	struct script *t = silent(false);
	struct requester *r = &t->c.qp.req;
	void *script = t;

	(void)state;
	r->una -= (1 << 23) - 2;
	assert_int_equal(to_silence(t, ORNIC_WR_RDMA_READ, 8), 1);
	assert_int_equal(to_silence(t, ORNIC_WR_RDMA_READ, 8), 0);
	r->una++;
	engine_activate(&t->w.e, &t->c.qp);
	world_run(&t->w);
	assert_int_equal(t->peer.nin, 2);
	script_teardown(&script);
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
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_psns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
