// SPDX-License-Identifier: GPL-2.0
/*
 * Packets with many receiving queue pairs: a turn makes a bounded number of copies, and the
 * sender continues in the next turn (ORN-SEC-5).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/nic.h"
#include "lib/pair.h"

#include "engine/link.h"
#include "engine/steer.h"

#include <endian.h>

#define TAKERS		40
#define SENT		15

/* Run turns until all @copies are delivered; no turn may exceed its limit by many. */
static void count_copies(struct engine *e, uint32_t copies)
{
	uint32_t given = 0, turns = 0;
	int64_t next;

	do {
		next = engine_turn(e);
		assert_true(e->copies < ENGINE_COPIES + TAKERS);
		given += e->copies;
		turns++;
	} while (!next);
	assert_int_equal(given, copies);
	assert_true(turns > copies / (ENGINE_COPIES + TAKERS));
}

/* ORN-SEC-5: datagrams to a group with many members */
static void test_group(void **state)
{
	static const uint8_t gid[16] = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 };
	const struct conn_opt opt = { .type = ORNIC_QPT_UD, .sq_log = 4, .rq_log = 2, .cq_log = 6 };
	struct conn *c = test_calloc(TAKERS, sizeof(*c));
	struct wr wr = { .opcode = ORNIC_WR_SEND };
	struct world w;
	uint32_t number;

	(void)state;
	world_init(&w, 0);
	for (int i = 0; i < TAKERS; i++) {
		conn_init(&c[i], &w.dut[0], &opt);
		conn_rts(&c[i]);
		assert_int_equal(mcast_join(&w.dut[0].dev.mcast, gid, &c[i].qp, &number), 0);
	}
	memcpy(wr.path.dmac, (uint8_t[]){ 1, 0, 0x5e, 1, 2, 3 }, 6);
	memcpy(wr.path.dgid, gid, 16);
	wr.path.dest_qpn = htole32(BTH_MULTICAST_QPN);
	wr.path.hop_limit = 1;
	for (int i = 0; i < SENT; i++)
		conn_send(&c[0], &wr);
	count_copies(&w.e, SENT * TAKERS);
	mcast_fini(&w.dut[0].dev.mcast);
	for (int i = 0; i < TAKERS; i++)
		conn_fini(&c[i]);
	world_fini(&w);
	test_free(c);
}

/* The same for frames that rules copy to many queue pairs */
static void test_rules(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 0xa };
	struct steer_rule *rule = test_calloc(TAKERS, sizeof(*rule));
	struct ornic_wqe_ctrl *wqe;
	struct nic_qp *qp = NULL;
	struct nic_cq *cq;
	struct engine e;
	struct nic n;

	(void)state;
	assert_int_equal(engine_init(&e, 0), 0);
	nic_init(&n, &e, mac);
	cq = nic_cq_new(&n, 10, nic_eq_new(&n, 6, 0), 0);
	for (int i = 0; i < TAKERS; i++) {
		qp = nic_qp_new(&n, ORNIC_QPT_RAW, 0, cq, cq);
		nic_qp_rts(qp);
		rule[i] = (struct steer_rule) { .flags = ORNIC_RULE_F_COPY, .qp = &qp->qp };
		steer_add(&n.dev.port, &rule[i]);
	}
	assert_int_equal(link_update(&n.dev), 0);
	for (int i = 0; i < SENT; i++) {
		wqe = nic_sqe(&n, qp, ORNIC_WR_SEND, 0);
		((struct ornic_wqe_eth *)(wqe + 1))->inline_hdr = htole16(60);
		memcpy((uint8_t *)(wqe + 2), mac, sizeof(mac));
	}
	nic_ring(&n, qp);
	count_copies(&e, SENT * (TAKERS - 1));	/* no queue pair gets its own frame */
	nic_fini(&n);
	engine_fini(&e);
	test_free(rule);
}

static void post_frame(struct nic *n, struct nic_qp *qp, const uint8_t dmac[6])
{
	struct ornic_wqe_ctrl *wqe = nic_sqe(n, qp, ORNIC_WR_SEND, 0);

	((struct ornic_wqe_eth *)(wqe + 1))->inline_hdr = htole16(60);
	memcpy((uint8_t *)(wqe + 2), dmac, 6);
}

/*
 * ORN-SEC-13: a function whose frames end each iteration by their copies does not delay another
 * function.
 */
static void test_other_function(void **state)
{
	static const uint8_t mac[2][6] = { { 2, 0, 0, 0, 0, 0xa }, { 2, 0, 0, 0, 0, 0xb } };
	struct steer_rule *rule = test_calloc(TAKERS, sizeof(*rule));
	struct nic_qp *qp = NULL, *other;
	struct nic_cq *cq;
	struct engine e;
	struct nic n[2];

	(void)state;
	assert_int_equal(engine_init(&e, 0), 0);
	for (int i = 0; i < 2; i++)
		nic_init(&n[i], &e, mac[i]);
	cq = nic_cq_new(&n[1], 10, nic_eq_new(&n[1], 6, 0), 0);
	other = nic_qp_new(&n[1], ORNIC_QPT_RAW, 0, cq, cq);
	nic_qp_rts(other);
	cq = nic_cq_new(&n[0], 10, nic_eq_new(&n[0], 6, 0), 0);
	for (int i = 0; i < TAKERS; i++) {
		qp = nic_qp_new(&n[0], ORNIC_QPT_RAW, 0, cq, cq);
		nic_qp_rts(qp);
		rule[i] = (struct steer_rule) { .flags = ORNIC_RULE_F_COPY, .qp = &qp->qp };
		steer_add(&n[0].dev.port, &rule[i]);
	}
	assert_int_equal(link_update(&n[0].dev), 0);
	while (!engine_turn(&e))
		;
	for (int i = 0; i < SENT; i++)
		post_frame(&n[0], qp, mac[0]);
	post_frame(&n[1], other, mac[1]);
	nic_ring(&n[0], qp);
	nic_ring(&n[1], other);
	engine_turn(&e);
	assert_int_equal(other->qp.sq.done, 0);
	engine_turn(&e);
	assert_int_equal(other->qp.sq.done, 1);
	assert_in_range(qp->qp.sq.done, 1, SENT - 1);
	nic_turns(&e);
	assert_int_equal(qp->qp.sq.done, SENT);
	for (int i = 0; i < 2; i++)
		nic_fini(&n[i]);
	engine_fini(&e);
	test_free(rule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_group), cmocka_unit_test(test_rules),
		cmocka_unit_test(test_other_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
