// SPDX-License-Identifier: GPL-2.0
/*
 * dev/: answers of queries after work, failures and resets, every field with a unique value; and
 * the numbers in events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dev/command.h"
#include "engine/cq.h"
#include "engine/mr.h"
#include "engine/srq.h"
#include "lib/inproc.h"
#include "mem/gpa.h"

#include <endian.h>
#include <ornic/pd.h>
#include <ornic/port.h>
#include <ornic/srq.h>
#include <ornic/steer.h>
#include <string.h>

static void query(struct inproc *p, uint16_t opcode, uint32_t number, void *out, uint16_t len)
{
	memset(out, 0xee, len);
	assert_int_equal(host_exec(&p->host, opcode, number, NULL, 0, out, len), 0);
}

static struct ornic_qp_query_rsp qp_query(struct inproc *p, const struct host_qp *qp)
{
	struct ornic_qp_query_rsp q;

	query(p, ORNIC_OP_QP_QUERY, qp->number, &q, sizeof(q));
	return q;
}

static void make_qp(struct inproc *p, struct host_qp *qp, uint8_t type)
{
	assert_int_equal(host_qp_create(&p->host, qp, type, 4, p->pd, p->cq.number, p->cq.number),
			 0);
}

static void state_is(struct host_qp *qp, struct ornic_qp_modify_cmd m, uint32_t mask, uint8_t to)
{
	m.mask = htole32(mask | ORNIC_QPM_STATE);
	m.next_state = to;
	assert_int_equal(host_qp_state(qp, &m), 0);
}

/* ORN-QP-14: no attribute of a connection is left after RESET */
static void test_connected(void **state)
{
	static const struct ornic_qp_modify_cmd zero;
	struct inproc *p = *state;
	struct ornic_qp_modify_cmd m = {
		.path_mtu = ORNIC_MTU_512, .rq_psn = htole32(0x111), .sq_psn = htole32(0x222),
		.dest_qpn = htole32(0x333), .access = htole32(ORNIC_ACCESS_REMOTE_WRITE),
		.port = 1, .timeout = 21, .retry_cnt = 5, .rnr_retry = 6, .min_rnr_timer = 17,
		.sqd_notify = 1, .max_rd_atomic = 3, .max_dest_rd_atomic = 4,
		.path = { .hop_limit = 64, .sl = 2 },
	};
	struct ornic_qp_query_rsp q;
	struct host_qp qp;

	host_gid_ipv4(m.path.dgid, 0x0a000002);
	m.path.dmac[0] = 2;
	assert_int_equal(host_gid_set(&p->host, 0, 0x0a000001, p->f->dev.port.mac), 0);
	make_qp(p, &qp, ORNIC_QPT_RC);
	state_is(&qp, m, ORNIC_QPM_PORT | ORNIC_QPM_ACCESS, ORNIC_QPS_INIT);
	state_is(&qp, m, ORNIC_QPM_PATH | ORNIC_QPM_PATH_MTU | ORNIC_QPM_DEST_QPN |
		 ORNIC_QPM_RQ_PSN | ORNIC_QPM_MAX_DEST_RD_ATOMIC | ORNIC_QPM_MIN_RNR_TIMER,
		 ORNIC_QPS_RTR);
	state_is(&qp, m, ORNIC_QPM_SQ_PSN | ORNIC_QPM_TIMEOUT | ORNIC_QPM_RETRY_CNT |
		 ORNIC_QPM_RNR_RETRY | ORNIC_QPM_MAX_RD_ATOMIC, ORNIC_QPS_RTS);
	q = qp_query(p, &qp);
	assert_int_equal(q.attr.next_state, ORNIC_QPS_RTS);
	assert_int_equal(q.attr.cur_state, ORNIC_QPS_RTS);
	assert_int_equal(q.attr.path_mtu, ORNIC_MTU_512);
	assert_int_equal(q.attr.qkey, 0);
	assert_int_equal(q.attr.rq_psn, m.rq_psn);
	assert_int_equal(q.attr.sq_psn, m.sq_psn);
	assert_int_equal(q.attr.dest_qpn, m.dest_qpn);
	assert_int_equal(q.attr.access, m.access);
	assert_int_equal(q.attr.port, 1);
	assert_int_equal(q.attr.timeout, 21);
	assert_int_equal(q.attr.retry_cnt, 5);
	assert_int_equal(q.attr.rnr_retry, 6);
	assert_int_equal(q.attr.min_rnr_timer, 17);
	assert_int_equal(q.attr.max_rd_atomic, 3);
	assert_int_equal(q.attr.max_dest_rd_atomic, 4);
	assert_memory_equal(&q.attr.path, &m.path, sizeof(m.path));
	assert_int_equal(le32toh(q.next_psn), 0x222);
	assert_int_equal(le32toh(q.expected_psn), 0x111);
	assert_int_equal(q.syndrome, 0);
	assert_int_equal(q.sq_draining, 0);

	state_is(&qp, m, 0, ORNIC_QPS_RESET);
	q = qp_query(p, &qp);
	q.attr.mask = 0;
	assert_memory_equal(&q.attr, &zero, sizeof(zero));
}

static void test_datagram(void **state)
{
	struct inproc *p = *state;
	struct ornic_qp_modify_cmd m = { .port = 1, .qkey = htole32(0x12345678),
					 .sq_psn = htole32(0x444) };
	struct ornic_qp_query_rsp q;
	struct host_qp qp;

	make_qp(p, &qp, ORNIC_QPT_UD);
	state_is(&qp, m, ORNIC_QPM_PORT | ORNIC_QPM_QKEY, ORNIC_QPS_INIT);
	state_is(&qp, m, 0, ORNIC_QPS_RTR);
	state_is(&qp, m, ORNIC_QPM_SQ_PSN, ORNIC_QPS_RTS);
	q = qp_query(p, &qp);
	assert_int_equal(q.attr.qkey, m.qkey);
	assert_int_equal(q.attr.sq_psn, m.sq_psn);
}

/*
 * Which attributes are valid depends on the type (ORN-QP-14), and on whether there are a rate limit
 * and a counter set.
 */
static void test_masks(void **state)
{
	const uint32_t any = ORNIC_QPM_STATE | ORNIC_QPM_CUR_STATE | ORNIC_QPM_PKEY_INDEX |
			     ORNIC_QPM_PORT;
	const uint32_t uc = ORNIC_QPM_ACCESS | ORNIC_QPM_PATH | ORNIC_QPM_PATH_MTU |
			    ORNIC_QPM_RQ_PSN | ORNIC_QPM_SQ_PSN | ORNIC_QPM_DEST_QPN;
	const uint32_t rc = uc | ORNIC_QPM_TIMEOUT | ORNIC_QPM_RETRY_CNT | ORNIC_QPM_RNR_RETRY |
			    ORNIC_QPM_MAX_RD_ATOMIC | ORNIC_QPM_MIN_RNR_TIMER |
			    ORNIC_QPM_MAX_DEST_RD_ATOMIC;
	const uint32_t ud = ORNIC_QPM_QKEY | ORNIC_QPM_SQ_PSN;
	const struct {
		uint8_t type;
		uint32_t mask;
	} types[] = {
		{ ORNIC_QPT_RC, any | rc }, { ORNIC_QPT_UC, any | uc }, { ORNIC_QPT_UD, any | ud },
		{ ORNIC_QPT_GSI, any | ud }, { ORNIC_QPT_RAW, any },
		{ ORNIC_QPT_XRC_INI, any | rc }, { ORNIC_QPT_XRC_TGT, any | rc },
	};
	struct counter_set set = { .number = 0x123 };
	struct inproc *p = *state;
	struct ornic_qp_query_rsp q;
	struct host_qp host;
	struct qp *qp;
	uint8_t type;

	make_qp(p, &host, ORNIC_QPT_RC);
	qp = table_get(&p->f->dev.qps, host.number);
	type = qp->type;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		qp->type = types[i].type;
		q = qp_query(p, &host);
		assert_int_equal(le32toh(q.attr.mask), types[i].mask);
		qp->rate.kbps = 5;
		q = qp_query(p, &host);
		assert_int_equal(le32toh(q.attr.mask), types[i].mask | ORNIC_QPM_RATE_LIMIT);
		qp->set = &set;
		q = qp_query(p, &host);
		assert_int_equal(le32toh(q.attr.mask), types[i].mask | ORNIC_QPM_RATE_LIMIT |
				 ORNIC_QPM_COUNTER_SET);
		assert_int_equal(le32toh(q.attr.counter_set), 0x123);
		qp->rate.kbps = 0;
		qp->set = NULL;
	}
	qp->type = type;
}

/* After two WRITEs, a SEND, and a WRITE that waits: the indices of each queue */
static void test_progress(void **state)
{
	struct inproc *p = *state;
	uint64_t buf = dma_alloc(&p->host.dma, 4096, 4096);
	struct ornic_qp_query_rsp q;
	struct ornic_cqe cqe;
	struct host_qp host;
	struct qp *qp;
	uint32_t key;

	assert_int_equal(host_key_create(&p->host, p->pd, buf, 4096, ORNIC_ACCESS_LOCAL_WRITE |
					 ORNIC_ACCESS_REMOTE_WRITE, &key), 0);
	make_qp(p, &host, ORNIC_QPT_RC);
	inproc_connect_self(p, &host);
	host_recv(&host, buf, 64, key);
	host_recv(&host, buf, 64, key);
	for (int i = 0; i < 3; i++) {
		host_send(&host, i < 2 ? ORNIC_WR_RDMA_WRITE : ORNIC_WR_SEND, buf, 16, key,
			  buf + 64, key);
		assert_true(host_wait(&p->cq, &cqe));
		assert_int_equal(cqe.status, 0);
	}
	q = qp_query(p, &host);
	assert_int_equal(le32toh(q.sq_index), 3);
	assert_int_equal(le32toh(q.sq_done), 3);
	assert_int_equal(le32toh(q.rq_index), 1);
	assert_int_equal(le32toh(q.wire_qpn), host.number);
	assert_int_equal(le32toh(q.next_psn), 3);
	assert_int_equal(le32toh(q.expected_psn), 3);
	assert_int_equal(le32toh(q.msn), 3);
	/* fetched, not completed: draining in SQD */
	qp = table_get(&p->f->dev.qps, host.number);
	qp->sq.cons++;
	qp->state = ORNIC_QPS_SQD;
	qp->syndrome = 0x12345678;
	q = qp_query(p, &host);
	assert_int_equal(le32toh(q.syndrome), 0x12345678);
	assert_int_equal(le32toh(q.sq_index), 4);
	assert_int_equal(le32toh(q.sq_done), 3);
	assert_int_equal(q.sq_draining, 1);
	qp->state = ORNIC_QPS_RTS;
	q = qp_query(p, &host);
	assert_int_equal(q.sq_draining, 0);
	qp->sq.cons--;
}

/* Numbers of each kind begin with 1, because 0 means none, except for EQs. */
static void test_first_numbers(void **state)
{
	const struct ornic_pd_create_cmd cmd = { 0 };
	struct inproc *p = *state;
	uint32_t key;

	assert_int_equal(host_key_create(&p->host, p->pd, INPROC_BASE, 4096, 0, &key), 0);
	assert_int_equal(key >> ORNIC_KEY_TAG_BITS, 1);
	assert_int_equal(p->pd, 1);
	assert_int_equal(p->cq.number, 1);
	assert_int_equal(p->eq0.number, 0);
	assert_int_equal(p->eq1.number, 1);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_XRCD_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 0);
	assert_int_equal(host_number(&p->host), 1);
}

/* Return the address of a record behind which the client allows the device only to read. */
static uint64_t read_only(struct inproc *p, uint64_t rec)
{
	assert_int_equal(gpa_map(p->ep.gpa, INPROC_BASE + 2 * INPROC_BYTES, INPROC_BYTES, GPA_READ,
				 p->host.dma.fd, 0), 0);
	return rec + 2 * INPROC_BYTES;
}

/* The consumer index is the host's one in the record; armed or not, too. */
static void test_cq(void **state)
{
	struct inproc *p = *state;
	struct ornic_rec *rec = dma_at(&p->host.dma, p->cq.rec);
	struct cq *cq = table_get(&p->f->dev.cqs, p->cq.number);
	struct ornic_cq_query_rsp q;

	rec->host_index = htole32(7);
	cq->cons = 3;
	cq->prod = 9;
	query(p, ORNIC_OP_CQ_QUERY, p->cq.number, &q, sizeof(q));
	assert_int_equal(le32toh(q.state.consumer), 7);
	assert_int_equal(le32toh(q.state.producer), 9);
	assert_int_equal(q.state.state, 0);
	assert_int_equal(q.state.syndrome, 0);
	cq->error = true;
	cq->syndrome = 0x12345678;
	query(p, ORNIC_OP_CQ_QUERY, p->cq.number, &q, sizeof(q));
	assert_int_equal(le32toh(q.state.state), ORNIC_RING_ERROR);
	assert_int_equal(le32toh(q.state.syndrome), 0x12345678);
	cq->error = false;
	cq->rec = read_only(p, p->cq.rec);
	query(p, ORNIC_OP_CQ_QUERY, p->cq.number, &q, sizeof(q));
	assert_int_equal(le32toh(q.state.consumer), 7);
	cq->rec = 0;		/* the host unmapped the record: the index that was read last */
	query(p, ORNIC_OP_CQ_QUERY, p->cq.number, &q, sizeof(q));
	assert_int_equal(le32toh(q.state.consumer), 3);
	assert_int_equal(q.state.state, 0);
}

static void test_eq(void **state)
{
	struct inproc *p = *state;
	struct ornic_rec *rec = dma_at(&p->host.dma, p->eq1.rec);
	struct eq *eq = table_get(&p->f->dev.eqs, p->eq1.number);
	struct ornic_eq_query_rsp q;

	query(p, ORNIC_OP_EQ_QUERY, p->eq1.number, &q, sizeof(q));
	assert_int_equal(q.state.state, 0);
	assert_int_equal(q.state.producer, 0);
	assert_int_equal(le16toh(q.attr.vector), 1);
	rec->host_index = htole32(7);
	host_arm(&p->eq1, ORNIC_ARM_ANY);
	rec->host_index = htole32(7);
	query(p, ORNIC_OP_EQ_QUERY, p->eq1.number, &q, sizeof(q));
	assert_int_equal(le32toh(q.state.consumer), 7);
	assert_int_equal(le32toh(q.state.state), ORNIC_RING_ARMED);
	eq->rec = read_only(p, p->eq1.rec);
	query(p, ORNIC_OP_EQ_QUERY, p->eq1.number, &q, sizeof(q));
	assert_int_equal(le32toh(q.state.consumer), 7);
	eq->rec = 0;		/* the host unmapped the record: the index that was read last */
	eq->cons = 3;
	eq->prod = 9;
	query(p, ORNIC_OP_EQ_QUERY, p->eq1.number, &q, sizeof(q));
	assert_int_equal(le32toh(q.state.consumer), 3);
	assert_int_equal(le32toh(q.state.producer), 9);
	assert_int_equal(q.state.state, 0);
}

static bool eq_armed(struct inproc *p, uint32_t word)
{
	struct ornic_eq_query_rsp q;

	((struct ornic_rec *)dma_at(&p->host.dma, p->eq1.rec))->arm = htole32(word);
	query(p, ORNIC_OP_EQ_QUERY, p->eq1.number, &q, sizeof(q));
	return le32toh(q.state.state) & ORNIC_RING_ARMED;
}

static bool cq_armed(struct inproc *p, uint32_t word)
{
	struct ornic_cq_query_rsp q;

	((struct ornic_rec *)dma_at(&p->host.dma, p->cq.rec))->arm = htole32(word);
	query(p, ORNIC_OP_CQ_QUERY, p->cq.number, &q, sizeof(q));
	return le32toh(q.state.state) & ORNIC_RING_ARMED;
}

/* A queue is armed with a word for which an entry fires (ORN-RNG-9, ORN-RNG-27, ORN-RNG-35). */
static void test_armed(void **state)
{
	const uint32_t sn = 1u << ORNIC_ARM_SN_SHIFT, any = ORNIC_ARM_ANY << ORNIC_ARM_TYPE_SHIFT;
	struct inproc *p = *state;

	for (uint32_t type = 0; type <= ORNIC_ARM_TYPE_MASK; type++) {
		bool known = type == ORNIC_ARM_SOLICITED || type == ORNIC_ARM_ANY;
		uint32_t word = sn | type << ORNIC_ARM_TYPE_SHIFT;

		assert_int_equal(eq_armed(p, word), known);
		assert_int_equal(cq_armed(p, word), known);
	}
	for (uint32_t bit = 1u << 31; bit & ORNIC_ARM_MBZ; bit >>= 1) {
		assert_false(eq_armed(p, bit | any | sn));
		assert_false(cq_armed(p, bit | any | sn));
	}
	/* serial number 0 has fired at create, but no word of an EQ */
	assert_true(eq_armed(p, any));
	assert_false(cq_armed(p, any));
}

/* An SRQ that the host filled beyond its end reports why it is in error. */
static void test_srq_in_error(void **state)
{
	struct inproc *p = *state;
	struct ornic_srq_create_cmd cmd = {
		.log_entries = 4, .stride = 6, .pd = htole32(p->pd), .dbpage = htole32(1),
		.max_sge = htole16(3), .owner = htole32(0x77),
		.record = htole64(host_record(&p->host)),
		.pages = host_contiguous(dma_alloc(&p->host.dma, 1024, 4096)),
	};
	struct ornic_srq_query_rsp q;
	uint8_t entry[64];
	struct ornic_eqe e;
	struct ornic_rec *rec = dma_at(&p->host.dma, le64toh(cmd.record));
	uint32_t number;
	struct srq *srq;

	assert_int_equal(host_exec(&p->host, ORNIC_OP_SRQ_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 0);
	number = host_number(&p->host);
	srq = table_get(&p->f->dev.srqs, number);
	assert_int_equal(srq->wq.max_sge, 3);
	rec->host_index = htole32(17);
	assert_true(srq_take(srq, entry) < 0);
	query(p, ORNIC_OP_SRQ_QUERY, number, &q, sizeof(q));
	assert_int_equal(le32toh(q.state.state), ORNIC_RING_ERROR);
	assert_int_equal(le32toh(q.state.syndrome), ORNIC_SYN_RING_INDEX);
	assert_true(host_next(&p->eq0, &e));
	assert_int_equal(le32toh(e.number), number);
	assert_int_equal(le32toh(e.owner), 0x77);
	assert_int_equal(le32toh(e.syndrome), ORNIC_SYN_RING_INDEX);
	assert_int_equal(e.info0, 0);
	assert_int_equal(e.info1, 0);
}

/* Number of uses of a key by the data path. */
static void test_key_uses(void **state)
{
	struct inproc *p = *state;
	struct ornic_key_query_rsp q;
	uint64_t buf = dma_alloc(&p->host.dma, 4096, 4096);
	struct ornic_cqe cqe;
	struct host_qp qp;
	uint32_t key;

	assert_int_equal(host_key_create(&p->host, p->pd, buf, 4096, ORNIC_ACCESS_LOCAL_WRITE |
					 ORNIC_ACCESS_REMOTE_WRITE, &key), 0);
	query(p, ORNIC_OP_KEY_QUERY, key, &q, sizeof(q));
	assert_int_equal(q.uses, 0);
	make_qp(p, &qp, ORNIC_QPT_RC);
	inproc_connect_self(p, &qp);
	host_send(&qp, ORNIC_WR_RDMA_WRITE, buf, 16, key, buf + 64, key);
	assert_true(host_wait(&p->cq, &cqe));
	assert_int_equal(cqe.status, 0);
	query(p, ORNIC_OP_KEY_QUERY, key, &q, sizeof(q));
	assert_true(le64toh(q.uses) == key_get(&p->f->dev, key)->uses);
	assert_true(le64toh(q.uses) >= 2);
}

/* ORN-PORT-18: the event names the port; a GID table is empty after a reset. */
static void test_port(void **state)
{
	static const uint8_t mac[6] = { 2, 9 };
	struct inproc *p = *state;
	struct ornic_port_modify_cmd m = { .mask = htole32(ORNIC_PORT_M_MAC), .mac = { 2, 9 } };
	static const struct ornic_gid_entry zero;
	const struct ornic_status_block *status;
	struct ornic_eqe e;

	assert_int_equal(host_exec(&p->host, ORNIC_OP_PORT_MODIFY, 1, &m, sizeof(m), NULL, 0), 0);
	assert_true(host_next(&p->eq0, &e));
	assert_int_equal(e.type, ORNIC_EV_IDENTIFY);
	assert_int_equal(le64toh(e.number), 1);
	assert_int_equal(le32toh(e.info0), ORNIC_ID_PORT);
	/* The status block has the number of changes, too. */
	status = dma_at(&p->host.dma, p->host.status);
	assert_int_equal(le32toh(status->generation), p->f->generation);
	assert_int_equal(p->f->generation, 1);
	assert_int_equal(host_gid_set(&p->host, 0, 0x0a000001, mac), 0);
	assert_memory_not_equal(p->f->dev.port.gid, &zero, sizeof(zero));
	host_reset(&p->host, ORNIC_REASON_USER);
	assert_memory_equal(p->f->dev.port.gid, &zero, sizeof(zero));
}

#define READY(t)	cmocka_unit_test_setup_teardown(t, inproc_setup_ready, inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		READY(test_connected), READY(test_datagram), READY(test_masks),
		READY(test_progress),
		READY(test_first_numbers),
		READY(test_cq), READY(test_eq), READY(test_armed), READY(test_srq_in_error),
		READY(test_key_uses), READY(test_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
