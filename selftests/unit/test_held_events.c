// SPDX-License-Identifier: GPL-2.0
/* Events that wait for room in EQ 0 when their object goes, or its past does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"

#include <endian.h>
#include <ornic/srq.h>

#define EQ0_ENTRIES	256

/* Each type that names an object; the last three name a port, a page and a doorbell page. */
static const uint8_t types[] = {
	ORNIC_EV_QP_FATAL, ORNIC_EV_QP_REQ_ERR, ORNIC_EV_QP_ACCESS_ERR, ORNIC_EV_COMM_EST,
	ORNIC_EV_SQ_DRAINED, ORNIC_EV_LAST_WQE, ORNIC_EV_CQ_ERR, ORNIC_EV_SRQ_ERR,
	ORNIC_EV_SRQ_LIMIT, ORNIC_EV_PORT_ERR, ORNIC_EV_IDENTIFY, ORNIC_EV_DB_REJECTED,
};

#define NTYPES	(sizeof(types) / sizeof(types[0]))

/* Fill EQ 0, then raise an event of each type for object @number and for the one after it. */
static void raise_events(struct inproc *p, uint32_t number)
{
	struct device *dev = &p->f->dev;

	for (uint32_t i = 0; i < EQ0_ENTRIES; i++)
		device_event(dev, ORNIC_EV_DB_REJECTED, i, 0, 0, 0, 0);
	for (uint32_t i = 0; i < NTYPES; i++) {
		device_event(dev, types[i], number, 0, 0, 0, 0);
		device_event(dev, types[i], number + 1, 0, 0, 0, 0);
	}
}

/* The held events arrive in their order, without those of @gone from @first to @last. */
static void expect_without(struct inproc *p, uint32_t gone, uint8_t first, uint8_t last)
{
	struct ornic_eqe e;

	for (uint32_t i = 0; i < EQ0_ENTRIES; i++)
		assert_true(host_wait(&p->eq0, &e));
	host_arm(&p->eq0, ORNIC_ARM_ANY);
	for (uint32_t i = 0; i < NTYPES; i++) {
		for (uint32_t number = gone; number <= gone + 1; number++) {
			if (number == gone && i >= first && i <= last)
				continue;
			assert_true(host_wait(&p->eq0, &e));
			assert_int_equal(e.type, types[i]);
			assert_int_equal(le32toh(e.number), number);
			assert_int_equal(e.lost, 0);
		}
	}
	assert_false(host_next(&p->eq0, &e));
	assert_int_equal(((struct eq *)table_get(&p->f->dev.eqs, 0))->nasync, 0);
}

static int destroy(struct inproc *p, uint16_t opcode, uint32_t number)
{
	return host_exec(&p->host, opcode, number, NULL, 0, NULL, 0);
}

/* ORN-EQ-20, ORN-ADM-4 */
static void test_qp(void **state)
{
	struct ornic_qp_modify_cmd reset = { .next_state = ORNIC_QPS_RESET };
	struct inproc *p = *state;
	struct host_qp qp;

	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	raise_events(p, qp.number);
	assert_int_equal(host_qp_state(&qp, &reset), ORNIC_ST_OK);
	expect_without(p, qp.number, 0, 5);
	raise_events(p, qp.number);
	assert_int_equal(destroy(p, ORNIC_OP_QP_DESTROY, qp.number), ORNIC_ST_OK);
	expect_without(p, qp.number, 0, 5);
}

/* ORN-ADM-4 */
static void test_cq(void **state)
{
	struct inproc *p = *state;
	struct host_ring cq;

	assert_int_equal(host_cq_create(&p->host, &cq, 4, p->eq1.number, 0), 0);
	raise_events(p, cq.number);
	assert_int_equal(destroy(p, ORNIC_OP_CQ_DESTROY, cq.number), ORNIC_ST_OK);
	expect_without(p, cq.number, 6, 6);
}

/* ORN-ADM-4 */
static void test_srq(void **state)
{
	struct inproc *p = *state;
	struct ornic_srq_create_cmd cmd = inproc_srq(p);
	uint32_t n;

	assert_int_equal(host_exec(&p->host, ORNIC_OP_SRQ_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_OK);
	n = host_number(&p->host);
	raise_events(p, n);
	assert_int_equal(destroy(p, ORNIC_OP_SRQ_DESTROY, n), ORNIC_ST_OK);
	expect_without(p, n, 7, 8);
}

/* A rejected destroy discards nothing. */
static void test_busy(void **state)
{
	struct inproc *p = *state;
	struct host_qp qp;

	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	raise_events(p, p->cq.number);
	assert_int_equal(destroy(p, ORNIC_OP_CQ_DESTROY, p->cq.number), ORNIC_ST_BUSY);
	expect_without(p, p->cq.number, NTYPES, NTYPES);
}

#define READY(t)	cmocka_unit_test_setup_teardown(t, inproc_setup_ready, inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		READY(test_qp), READY(test_cq), READY(test_srq), READY(test_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
