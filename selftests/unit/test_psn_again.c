// SPDX-License-Identifier: GPL-2.0
/*
 * PSNs that repeat after 2^24 others: a duplicate of a new request must not get the stored answer
 * of an old one (IBTA 9.7.5.1).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/peer.h"

#define PSN0	0xfffffeu
#define BATCH	256u
#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ | \
		 ORNIC_ACCESS_REMOTE_ATOMIC)

static int setup(void **state)
{
	struct script *t = script_new(NULL, 0x100, PSN0);

	t->c.qp.mtu_code = ORNIC_MTU_256;
	t->buf = dut_buf(t->c.d, 1 << 20);
	t->key = dut_key(t->c.d, NULL, t->buf, 1 << 20, ALL);
	*state = t;
	return 0;
}

static struct packet *request(struct script *t, uint8_t opcode, uint32_t psn, uint64_t off,
			      uint32_t dmalen)
{
	struct packet *p = peer_packet(&t->peer, &t->c, opcode, psn);

	p->npsn = 1;
	p->va = t->buf + off;
	p->rkey = t->key;
	p->dmalen = dmalen;
	p->swap_add = 5;
	return p;
}

/* Use all other PSNs once, by WRITEs to memory that no test reads. */
static void once_around(struct script *t)
{
	uint32_t left = BTH_PSN_MASK, psn = (PSN0 + 1) & BTH_PSN_MASK;

	while (left) {
		uint32_t n = left < BATCH ? left : BATCH;
		struct packet *p = request(t, BTH_RC_WRITE_ONLY, psn, 65536, n * 256);

		p->npsn = n;
		p->ackreq = false;
		p->len = n * 256;
		p->nseg = 1;
		p->seg[0] = (struct seg) { t->data, p->len };
		switch_send(t->peer.port, p);
		engine_drain(&t->w.e);
		left -= n;
		psn = (psn + n) & BTH_PSN_MASK;
	}
	assert_int_equal(t->c.qp.resp.epsn, PSN0);
}

static void test_read(void **state)
{
	struct script *t = *state;

	*dut_at(t->c.d, t->buf, 1) = 0x11;
	*dut_at(t->c.d, t->buf + 4096, 1) = 0x22;
	peer_send(&t->peer, request(t, BTH_RC_READ_REQUEST, PSN0, 0, 1), NULL, 0);
	assert_int_equal(peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, PSN0, 1)->data[0], 0x11);
	once_around(t);
	for (int i = 0; i < 2; i++) {
		peer_send(&t->peer, request(t, BTH_RC_READ_REQUEST, PSN0, 4096, 1), NULL, 0);
		assert_int_equal(peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, PSN0, 1)->data[0],
				 0x22);
	}
}

static void test_atomic(void **state)
{
	struct script *t = *state;

	peer_send(&t->peer, request(t, BTH_RC_FETCH_ADD, PSN0, 0, 0), NULL, 0);
	assert_int_equal(peer_expect(&t->peer, BTH_RC_ATOMIC_ACK, PSN0, 1)->p.atomic_ack, 0);
	once_around(t);
	for (int i = 0; i < 2; i++) {
		peer_send(&t->peer, request(t, BTH_RC_FETCH_ADD, PSN0, 0, 0), NULL, 0);
		assert_int_equal(peer_expect(&t->peer, BTH_RC_ATOMIC_ACK, PSN0, 1)->p.atomic_ack,
				 5);
	}
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, script_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_read),
		TEST(test_atomic),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
