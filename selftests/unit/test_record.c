// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell records and doorbells: which side owns which bytes, and that arbitrary values in the
 * other bytes or in doorbells have no effect.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/inproc.h"
#include "lib/peer.h"

#define BUF	65536
#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE)
#define ROUNDS	600	/* more than each ring holds */
#define RECORDS	9
#define HOSTS	offsetof(struct ornic_rec, notify)

static int setup(void **state)
{
	struct ends *t = ends_new(NULL, 0);

	ends_buffers(t, BUF, ALL);
	*state = t;
	return 0;
}

static void records(struct ends *t, struct ornic_rec *rec[RECORDS])
{
	struct conn *c[2] = { &t->a, &t->b };
	int n = 0;

	for (int i = 0; i < 2; i++) {
		rec[n++] = conn_rec(c[i], &c[i]->sq);
		rec[n++] = conn_rec(c[i], &c[i]->rq);
		rec[n++] = conn_rec(c[i], &c[i]->hscq);
		rec[n++] = conn_rec(c[i], &c[i]->hrcq);
	}
	rec[n++] = guest_at(&t->a.d->guest, t->a.d->eq.rec, sizeof(struct ornic_rec));
	assert_int_equal(n, RECORDS);
}

/*
 * ORN-RNG-24: the device's half of each record holds garbage whenever the device looks.
 * ORN-RNG-26: the device does not write the host's half.
 */
static void test_scribble(void **state)
{
	struct ends *t = *state;
	struct ornic_rec *rec[RECORDS], before[RECORDS];
	struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };

	wr_sge(&wr, t->abuf, 100, t->akey);
	conn_pair(&t->a, &t->b, 1, 2);
	records(t, rec);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		conn_recv(&t->b, t->bbuf, 100, t->bkey);
		conn_send(&t->a, &wr);
		for (int i = 0; i < RECORDS; i++) {
			rec[i]->notify = htole32(n % 3 ? (uint32_t)random() * 2 + n : n);
			rec[i]->dev_index = htole32(n % 2 ? n + 1 : (uint32_t)random());
			memset(rec[i]->mbz, 0xa5, sizeof(rec[i]->mbz));
			before[i] = *rec[i];
		}
		qp_doorbell(&t->a.qp, false);
		qp_doorbell(&t->b.qp, true);
		world_run(&t->w);
		for (int i = 0; i < RECORDS; i++)
			assert_memory_equal(rec[i], &before[i], HOSTS);
		conn_expect(&t->b, &t->b.hrcq, n, ORNIC_WC_RECV, 0);
		conn_expect(&t->a, &t->a.hscq, n, ORNIC_WC_SEND, 0);
	}
	conn_quiet(&t->a);
	conn_quiet(&t->b);
}

/*
 * ORN-RNG-23: in ERR the ring was emptied and the device sleeps. The next post must ring,
 * and its work request is flushed.
 */
static void test_post_in_error(void **state)
{
	struct ends *t = *state;

	conn_pair(&t->a, &t->b, 1, 2);
	qp_set_state(&t->b.qp, ORNIC_QPS_ERR);
	world_run(&t->w);
	for (uint32_t n = 0; n < 10; n++) {
		conn_recv(&t->b, t->bbuf, 100, t->bkey);
		world_run(&t->w);
		conn_expect(&t->b, &t->b.hrcq, n, ORNIC_WC_RECV, ORNIC_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(t->b.rq.rang, 10);
}

/* ORN-RNG-23: a datagram waits for a receive, and the post must ring the doorbell. */
static void test_post_for_waiting(void **state)
{
	static const struct conn_opt ud = { .type = ORNIC_QPT_UD };
	struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED,
			 .path.hop_limit = 1 };
	struct ends *t = *state;
	struct conn from, to;

	conn_init(&from, t->a.d, &ud);
	conn_init(&to, t->b.d, &ud);
	conn_rts(&from);
	conn_rts(&to);
	memcpy(wr.path.dmac, to.d->dev.port.mac, 6);
	dut_gid(to.d, 0, wr.path.dgid);
	wr.path.dest_qpn = htole32(to.qp.wire_qpn);
	wr_sge(&wr, t->abuf, 100, t->akey);
	conn_send(&from, &wr);
	world_run(&t->w);
	conn_expect(&from, &from.hscq, 0, ORNIC_WC_SEND, 0);
	conn_recv(&to, t->bbuf, 200, t->bkey);
	assert_int_equal(to.rq.rang, 1);
	world_run(&t->w);
	conn_expect(&to, &to.hrcq, 0, ORNIC_WC_RECV, 0);
	conn_fini(&from);
	conn_fini(&to);
}

/*
 * ORN-RNG-20: after a doorbell the device reads the record again, in any state of the queue pair.
 * The peer is silent, then reports that it has no receive, then acknowledges all.
 */
static void test_doorbell_at_any_time(void **state)
{
	struct wr wr = { .opcode = ORNIC_WR_SEND, .flags = ORNIC_WQE_SIGNALED };
	struct ends *t = *state;
	struct peer peer;

	peer_init(&peer, &t->w);
	peer_connect(&peer, &t->a, 0, 0);
	wr_sge(&wr, t->abuf, 100, t->akey);
	for (uint32_t n = 0; n < 3; n++) {		/* asleep, before the timeout */
		conn_send(&t->a, &wr);
		assert_int_equal(t->a.sq.rang, n + 1);
		world_run(&t->w);
		peer_expect(&peer, BTH_RC_SEND_ONLY, n, 1);
	}
	peer_ack(&peer, &t->a, 0, AETH_RNR_NAK | 12);
	peer_quiet(&peer);
	conn_send(&t->a, &wr);				/* in an RNR wait */
	qp_doorbell(&t->a.qp, false);
	world_run(&t->w);
	qp_set_state(&t->a.qp, ORNIC_QPS_SQD);
	world_run(&t->w);
	conn_send(&t->a, &wr);				/* draining */
	qp_doorbell(&t->a.qp, false);
	world_run(&t->w);
	world_pass(&t->w, 1000000);
	for (uint32_t n = 0; n < 3; n++)
		peer_expect(&peer, BTH_RC_SEND_ONLY, n, 1);
	peer_quiet(&peer);
	peer_ack(&peer, &t->a, 2, AETH_ACK | AETH_NO_CREDITS);
	for (uint32_t n = 0; n < 3; n++)
		conn_expect(&t->a, &t->a.hscq, n, ORNIC_WC_SEND, 0);
	qp_set_state(&t->a.qp, ORNIC_QPS_RTS);
	world_run(&t->w);
	for (uint32_t n = 3; n < 5; n++)
		peer_expect(&peer, BTH_RC_SEND_ONLY, n, 1);
	peer_quiet(&peer);
	qp_set_state(&t->a.qp, ORNIC_QPS_ERR);
	world_run(&t->w);
	peer_fini(&peer);
}

static void ring(struct inproc *p, const struct host_qp *qp, uint32_t value)
{
	host_doorbell(&p->host, 1, ORNIC_DB_SQ, qp->number, value);
}

/*
 * ORN-DB-2: surplus, late or reordered doorbells. ORN-DB-7: a value that no record could hold.
 * Each work request completes, once.
 */
static void test_values(void **state)
{
	struct inproc *p = *state;
	struct ornic_wqe_ctrl *ctrl;
	struct host_qp qp;
	struct ornic_cqe cqe;
	struct ornic_eqe eqe;

	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), ORNIC_ST_OK);
	inproc_connect_self(p, &qp);
	while (host_next(&p->eq0, &eqe))
		;
	for (uint32_t n = 0; n < 100; n++) {
		ring(p, &qp, n + 17);
		ring(p, &qp, n - 1);
		ring(p, &qp, n + 0x80000000);
		inproc_turn(p);
		ctrl = host_sq_slot(&qp);
		ctrl->opcode = ORNIC_WR_NOP;
		ctrl->flags = ORNIC_WQE_SIGNALED;
		host_publish(&p->host, qp.sq.rec, n, n + 1);
		ring(p, &qp, n + 1);
		ring(p, &qp, n);
		ring(p, &qp, n + 1);
		ring(p, &qp, n + 18);
		ring(p, &qp, UINT32_MAX);
		assert_true(host_wait(&p->cq, &cqe));
		assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
		assert_int_equal(le32toh(cqe.wqe_id), n);
		ring(p, &qp, n + 1);
		for (int i = 0; i < 5; i++)
			inproc_turn(p);
		assert_false(host_next(&p->cq, &cqe));
	}
	assert_false(host_next(&p->eq0, &eqe));
}

/* ORN-RNG-26: the records of the admin rings, too */
static void test_admin_records(void **state)
{
	struct inproc *p = *state;
	struct ornic_rec *rec[2] = {
		dma_at(&p->host.dma, p->host.asq_rec), dma_at(&p->host.dma, p->host.acq_rec),
	};
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };
	struct ornic_rec before[2];

	for (int n = 0; n < 200; n++) {
		host_submit(&p->host, &cmd);
		for (int i = 0; i < 2; i++) {
			rec[i]->notify = htole32(random());		/* ORN-RNG-24 */
			rec[i]->dev_index = htole32(random());
			memset(rec[i]->mbz, 0x5a, sizeof(rec[i]->mbz));
			before[i] = *rec[i];
		}
		host_doorbell(&p->host, 0, ORNIC_DB_ADMIN, ORNIC_DB_ASQ, 0);
		inproc_turn(p);
		for (int i = 0; i < 2; i++)
			assert_memory_equal(rec[i], &before[i], HOSTS);
		assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	}
}

#define WORLD(t)	cmocka_unit_test_setup_teardown(t, setup, ends_teardown)
#define INPROC(t)	cmocka_unit_test_setup_teardown(t, inproc_setup_ready, inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD(test_scribble), WORLD(test_post_in_error), WORLD(test_post_for_waiting),
		WORLD(test_doorbell_at_any_time), INPROC(test_values), INPROC(test_admin_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
