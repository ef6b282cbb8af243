// SPDX-License-Identifier: GPL-2.0
/*
 * dev/qp_modify.c: legal transitions of each type, their required attributes, and the range of
 * every attribute.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"

#include "engine/qp.h"

#include <ornic/pd.h>
#include <endian.h>
#include <string.h>

#define STATES	7

/* A command with the largest legal value of every attribute; the caller chooses the mask */
static struct ornic_qp_modify_cmd whole(void)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 7 };
	struct ornic_qp_modify_cmd m = {
		.port = 1, .path_mtu = ORNIC_MTU_1024, .qkey = htole32(0x11111111),
		.rq_psn = htole32(0xffffff), .sq_psn = htole32(0xffffff),
		.dest_qpn = htole32(0xffffff),
		.access = htole32(ORNIC_ACCESS_REMOTE_READ), .timeout = 31, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 31, .max_rd_atomic = 16,
		.max_dest_rd_atomic = 16, .path.hop_limit = 1, .path.sl = 15,
		.path.flow_label = htole32(0xfffff), .path.port = 1,
	};

	host_gid_ipv4(m.path.dgid, 0x0a000002);
	memcpy(m.path.dmac, mac, sizeof(mac));
	return m;
}

#define INIT_RC		(ORNIC_QPM_PORT | ORNIC_QPM_PKEY_INDEX | ORNIC_QPM_ACCESS)
#define RTR_RC		(ORNIC_QPM_PATH | ORNIC_QPM_PATH_MTU | ORNIC_QPM_DEST_QPN |	\
			 ORNIC_QPM_RQ_PSN | ORNIC_QPM_MAX_DEST_RD_ATOMIC)
#define RTS_RC		(ORNIC_QPM_SQ_PSN | ORNIC_QPM_RETRY_CNT | ORNIC_QPM_RNR_RETRY |	\
			 ORNIC_QPM_MAX_RD_ATOMIC)

/* Required attributes of each type's transitions; all other transitions are illegal */
static uint32_t needs(uint8_t type, uint8_t from, uint8_t to)
{
	if (type == ORNIC_QPT_XRC_INI)
		return needs(from == ORNIC_QPS_RTR ? ORNIC_QPT_RC : ORNIC_QPT_UC, from, to);
	if (type == ORNIC_QPT_XRC_TGT && from != ORNIC_QPS_RTR)
		return needs(ORNIC_QPT_RC, from, to);
	if (type == ORNIC_QPT_RC) {
		if (from == ORNIC_QPS_RESET && to == ORNIC_QPS_INIT)
			return ORNIC_QPM_PORT;
		if (from == ORNIC_QPS_INIT && to == ORNIC_QPS_RTR)
			return RTR_RC;
		if (from == ORNIC_QPS_RTR && to == ORNIC_QPS_RTS)
			return RTS_RC;
	} else if (type == ORNIC_QPT_UC) {
		if (from == ORNIC_QPS_RESET && to == ORNIC_QPS_INIT)
			return ORNIC_QPM_PORT;
		if (from == ORNIC_QPS_INIT && to == ORNIC_QPS_RTR)
			return RTR_RC & ~ORNIC_QPM_MAX_DEST_RD_ATOMIC;
		if (from == ORNIC_QPS_RTR && to == ORNIC_QPS_RTS)
			return ORNIC_QPM_SQ_PSN;
	} else if (type == ORNIC_QPT_UD) {
		if (from == ORNIC_QPS_RESET && to == ORNIC_QPS_INIT)
			return ORNIC_QPM_PORT | ORNIC_QPM_QKEY;
		if (from == ORNIC_QPS_RTR && to == ORNIC_QPS_RTS)
			return ORNIC_QPM_SQ_PSN;
	} else if (from == ORNIC_QPS_RESET && to == ORNIC_QPS_INIT) {
		return ORNIC_QPM_PORT;
	}
	return 0;
}

/* Optional attributes of each type's transitions */
static uint32_t may(uint8_t type, uint8_t from, uint8_t to)
{
	bool ini = type == ORNIC_QPT_XRC_INI, tgt = type == ORNIC_QPT_XRC_TGT;
	bool rc = type == ORNIC_QPT_RC, raw = type == ORNIC_QPT_RAW, ud = type == ORNIC_QPT_UD;
	uint32_t rate = rc || raw ? ORNIC_QPM_RATE_LIMIT : 0, tune = 0, drained;

	if (ud)
		tune = ORNIC_QPM_QKEY;
	else if (!raw)
		tune = ORNIC_QPM_ACCESS | ORNIC_QPM_PATH_MIG_STATE |
		       (rc || tgt ? ORNIC_QPM_MIN_RNR_TIMER : 0);
	drained = raw ? 0 : ORNIC_QPM_PKEY_INDEX | (ud ? 0 : ORNIC_QPM_PATH);
	/* In SQD the device allows XRC all attributes of RC (ORN-QP-32). */
	if (rc || ini || tgt)
		drained |= ORNIC_QPM_MIN_RNR_TIMER | ORNIC_QPM_PORT |
			   ORNIC_QPM_TIMEOUT | ORNIC_QPM_RETRY_CNT |
			   ORNIC_QPM_RNR_RETRY | ORNIC_QPM_MAX_RD_ATOMIC |
			   ORNIC_QPM_MAX_DEST_RD_ATOMIC;
	if (to == ORNIC_QPS_INIT)
		return raw ? ORNIC_QPM_PORT : ORNIC_QPM_PKEY_INDEX | ORNIC_QPM_PORT |
					      (ud ? ORNIC_QPM_QKEY : ORNIC_QPM_ACCESS);
	if (to == ORNIC_QPS_RTR)
		return raw ? 0 : tune | ORNIC_QPM_PKEY_INDEX | rate;
	if (to == ORNIC_QPS_SQD)
		return ORNIC_QPM_SQD_NOTIFY | (from == ORNIC_QPS_SQD ? tune | drained : 0);
	if (to != ORNIC_QPS_RTS)
		return 0;
	if (from == ORNIC_QPS_RTR)
		return tune | rate | (rc || ini || tgt ? ORNIC_QPM_TIMEOUT : 0) |
		       (tgt ? ORNIC_QPM_SQ_PSN : 0);
	if (from == ORNIC_QPS_RTS)
		return tune | rate;
	return from == ORNIC_QPS_SQE && !ud ? ORNIC_QPM_ACCESS : tune;
}

static bool legal(uint8_t type, uint8_t from, uint8_t to)
{
	static const char *const table[STATES] = {
		/* to:	 RIrRSEX */
		[ORNIC_QPS_RESET] = "yy.....",
		[ORNIC_QPS_INIT] = "yiy...y",
		[ORNIC_QPS_RTR] = "y..y..y",
		[ORNIC_QPS_RTS] = "y..yy.y",
		[ORNIC_QPS_SQD] = "y..yy.y",
		[ORNIC_QPS_SQE] = "y..u..y",
		[ORNIC_QPS_ERR] = "y.....y",
	};

	switch (table[from][to]) {
	case 'y':
		return true;
	case 'i':
		return type != ORNIC_QPT_RAW;
	case 'u':
		return type == ORNIC_QPT_UD || type == ORNIC_QPT_UC;
	default:
		return false;
	}
}

static int modify(struct host_qp *qp, uint32_t mask, uint8_t to)
{
	struct ornic_qp_modify_cmd m = whole();
	int got;

	m.mask = htole32(mask | ORNIC_QPM_STATE);
	m.next_state = to;
	got = host_qp_state(qp, &m);
	assert_int_equal(qp->h->cpl.out_size, 0);
	return got;
}

/* Add each attribute to the required ones of a legal transition. */
static void all_attributes(struct inproc *p, struct host_qp *qp, uint8_t type, uint8_t from,
			   uint8_t to)
{
	uint32_t need = needs(type, from, to);
	uint32_t good = need | may(type, from, to) | ORNIC_QPM_STATE | ORNIC_QPM_COUNTER_SET;
	uint32_t known = (0x1fffff & ~(ORNIC_QPM_CAP | ORNIC_QPM_ALT_PATH | ORNIC_QPM_CUR_STATE)) |
			 ORNIC_QPM_RATE_LIMIT | ORNIC_QPM_COUNTER_SET;
	struct qp *dev_qp = table_get(&p->f->dev.qps, qp->number);

	for (uint32_t bit = 1; bit; bit <<= 1) {
		int want = good & bit ? ORNIC_ST_OK : ORNIC_ST_BAD_PARAM, got;

		if (!(known & bit))
			continue;
		dev_qp->state = from;
		got = modify(qp, need | bit, to);
		if (got != want)
			fail_msg("type %u from %u to %u, attribute 0x%x: status %d", type, from, to,
				 bit, got);
		dev_qp->state = ORNIC_QPS_RTS;
		assert_int_equal(modify(qp, 0, ORNIC_QPS_RESET), ORNIC_ST_OK);
	}
}

/* Create a queue pair of any type; those of XRC have no receive queue, or no queue. */
static void create(struct inproc *p, struct host_qp *qp, uint8_t type)
{
	struct ornic_pd_create_cmd domain = { 0 };
	struct ornic_qp_create_cmd cmd;

	host_qp_template(&p->host, qp, type, 4, p->pd, p->cq.number, p->cq.number, &cmd);
	if (type == ORNIC_QPT_XRC_INI || type == ORNIC_QPT_XRC_TGT)
		cmd.rq_log = ORNIC_NO_RING;
	if (type == ORNIC_QPT_XRC_TGT) {
		assert_int_equal(host_exec(&p->host, ORNIC_OP_XRCD_CREATE, 0, &domain,
					   sizeof(domain), NULL, 0), 0);
		cmd.xrcd = htole32(host_number(&p->host));
		cmd.pd = 0;
		cmd.sq_log = ORNIC_NO_RING;
	}
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0), 0);
	qp->number = host_number(&p->host);
}

static void all_transitions(struct inproc *p, uint8_t type)
{
	struct qp *dev_qp;
	struct host_qp qp;

	create(p, &qp, type);
	dev_qp = table_get(&p->f->dev.qps, qp.number);
	for (uint8_t from = 0; from < STATES; from++) {
		for (uint8_t to = 0; to < STATES; to++) {
			uint32_t need = needs(type, from, to);

			/*
			 * Set the state directly: the test covers only the checks of the command.
			 */
			dev_qp->state = from;
			if (!legal(type, from, to)) {
				assert_int_equal(modify(&qp, need, to), ORNIC_ST_BAD_STATE);
				assert_int_equal(dev_qp->state, from);
				continue;
			}
			for (uint32_t bit = 1; bit; bit <<= 1) {
				if (!(need & bit))
					continue;
				assert_int_equal(modify(&qp, need & ~bit, to), ORNIC_ST_BAD_PARAM);
				assert_int_equal(dev_qp->state, from);
			}
			if (from == to) {
				struct ornic_qp_modify_cmd m = whole();

				m.mask = htole32(need);
				assert_int_equal(host_qp_state(&qp, &m), ORNIC_ST_OK);
				assert_int_equal(dev_qp->state, from);
			}
			assert_int_equal(modify(&qp, need, to), ORNIC_ST_OK);
			assert_int_equal(dev_qp->state, to);
			dev_qp->state = ORNIC_QPS_RTS;
			assert_int_equal(modify(&qp, 0, ORNIC_QPS_RESET), ORNIC_ST_OK);
			all_attributes(p, &qp, type, from, to);
		}
	}
	assert_int_equal(modify(&qp, 0, STATES), ORNIC_ST_BAD_PARAM);
}

static void prepare(struct inproc *p)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };

	assert_int_equal(host_gid_set(&p->host, 0, 0x0a000001, mac), 0);
}

/* ORN-QP-2, ORN-QP-12, ORN-QP-47 */
static void test_rc(void **state)
{
	prepare(*state);
	all_transitions(*state, ORNIC_QPT_RC);
}

/* ORN-QP-2, ORN-QP-12, ORN-QP-47 */
static void test_uc(void **state)
{
	prepare(*state);
	all_transitions(*state, ORNIC_QPT_UC);
}

/* ORN-QP-2, ORN-QP-12, ORN-QP-47 */
static void test_xrc(void **state)
{
	prepare(*state);
	all_transitions(*state, ORNIC_QPT_XRC_INI);
	all_transitions(*state, ORNIC_QPT_XRC_TGT);
}

/* ORN-QP-2, ORN-QP-12, ORN-QP-47 */
static void test_ud(void **state)
{
	all_transitions(*state, ORNIC_QPT_UD);
}

/* ORN-QP-2, ORN-QP-12, ORN-QP-47 */
static void test_raw(void **state)
{
	all_transitions(*state, ORNIC_QPT_RAW);
}

static void rc_init(struct inproc *p, struct host_qp *qp)
{
	prepare(p);
	assert_int_equal(host_qp_create(&p->host, qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	assert_int_equal(modify(qp, INIT_RC, ORNIC_QPS_INIT), 0);
}

/* A transition with one field wrong */
#define REFUSE_TO(p, qp, to, bits, member, val, status) do {			\
	struct ornic_qp_modify_cmd m_ = whole();				\
										\
	m_.mask = htole32(ORNIC_QPM_STATE | (bits));				\
	m_.next_state = (to);							\
	m_.member = (val);							\
	assert_int_equal(host_qp_state(qp, &m_), status);			\
	assert_int_equal(le32toh((p)->host.cpl.syndrome), ORNIC_SYN_FIELD |	\
			 offsetof(struct ornic_qp_modify_cmd, member));		\
} while (0)

/* INIT to RTR with one field wrong */
#define REFUSE(p, qp, bit, member, val, status)					\
	REFUSE_TO(p, qp, ORNIC_QPS_RTR, RTR_RC | (bit), member, val, status)

/* ORN-QP-13, ORN-QP-32, ORN-ADM-13 */
static void test_ranges(void **state)
{
	struct inproc *p = *state;
	struct host_qp qp;

	rc_init(p, &qp);
	REFUSE(p, &qp, 0, mask, htole32(1u << 31), ORNIC_ST_RESERVED);
	REFUSE(p, &qp, 0, mask, htole32(ORNIC_QPM_CAP), ORNIC_ST_RESERVED);
	REFUSE(p, &qp, 0, mask, htole32(ORNIC_QPM_ALT_PATH), ORNIC_ST_UNSUPPORTED);
	REFUSE(p, &qp, 0, mask, htole32(RTR_RC | ORNIC_QPM_STATE | ORNIC_QPM_QKEY),
	       ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, path_mtu, 0, ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, path_mtu, 6, ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, path_mtu, 32 + ORNIC_MTU_256, ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, path_mtu, ORNIC_MTU_2048, ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, rq_psn, htole32(0x1000000), ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, dest_qpn, htole32(0x1000000), ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, max_dest_rd_atomic, 17, ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, ORNIC_QPM_MIN_RNR_TIMER, min_rnr_timer, 32, ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, ORNIC_QPM_PKEY_INDEX, pkey_index, htole16(1), ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, ORNIC_QPM_ACCESS, access, htole32(1u << 4), ORNIC_ST_RESERVED);
	p->f->dev.features &= ~ORNIC_FEATURE(FLUSH_PERSISTENT);
	REFUSE(p, &qp, ORNIC_QPM_ACCESS, access, htole32(ORNIC_ACCESS_FLUSH_PERSISTENT),
	       ORNIC_ST_UNSUPPORTED);
	REFUSE(p, &qp, 0, mbz0, 1, ORNIC_ST_RESERVED);
	REFUSE(p, &qp, 0, mbz1, 1, ORNIC_ST_RESERVED);
	REFUSE(p, &qp, 0, mbz2[0], 1, ORNIC_ST_RESERVED);
	REFUSE(p, &qp, 0, mbz3[0], 1, ORNIC_ST_RESERVED);
	REFUSE(p, &qp, 0, path.dmac[0], 1, ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, path.mbz, 1, ORNIC_ST_RESERVED);
	REFUSE(p, &qp, 0, path.flow_label, htole32(1u << 20), ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, path.sl, 16, ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, path.sgid_index, htole16(1), ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, path.sgid_index, htole16(256), ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, path.dest_qpn, 1, ORNIC_ST_RESERVED);
	REFUSE(p, &qp, 0, path.qkey, 1, ORNIC_ST_RESERVED);
	REFUSE(p, &qp, 0, path.port, 2, ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, 0, path.flags, 1, ORNIC_ST_RESERVED);
	REFUSE(p, &qp, 0, path.dlid, 1, ORNIC_ST_RESERVED);
	/* A valid attribute that is checked later does not hide the first error. */
	REFUSE(p, &qp, ORNIC_QPM_ACCESS, path_mtu, 0, ORNIC_ST_BAD_PARAM);
	REFUSE(p, &qp, ORNIC_QPM_RATE_LIMIT, path.sl, 16, ORNIC_ST_BAD_PARAM);
	assert_int_equal(modify(&qp, RTR_RC, ORNIC_QPS_RTR), 0);
	REFUSE_TO(p, &qp, ORNIC_QPS_RTS, RTS_RC, sq_psn, htole32(0x1000000), ORNIC_ST_BAD_PARAM);
	REFUSE_TO(p, &qp, ORNIC_QPS_RTS, RTS_RC, retry_cnt, 8, ORNIC_ST_BAD_PARAM);
	REFUSE_TO(p, &qp, ORNIC_QPS_RTS, RTS_RC, rnr_retry, 8, ORNIC_ST_BAD_PARAM);
	REFUSE_TO(p, &qp, ORNIC_QPS_RTS, RTS_RC, max_rd_atomic, 17, ORNIC_ST_BAD_PARAM);
	REFUSE_TO(p, &qp, ORNIC_QPS_RTS, RTS_RC | ORNIC_QPM_TIMEOUT, timeout, 32,
		  ORNIC_ST_BAD_PARAM);
	assert_int_equal(modify(&qp, RTS_RC | ORNIC_QPM_TIMEOUT, ORNIC_QPS_RTS), 0);
	REFUSE_TO(p, &qp, ORNIC_QPS_RTS, ORNIC_QPM_PATH_MIG_STATE, mig_state, 1,
		  ORNIC_ST_BAD_PARAM);
	REFUSE_TO(p, &qp, ORNIC_QPS_SQD, ORNIC_QPM_SQD_NOTIFY, sqd_notify, 2, ORNIC_ST_BAD_PARAM);
	REFUSE_TO(p, &qp, ORNIC_QPS_ERR + 1, 0, next_state, ORNIC_QPS_ERR + 1, ORNIC_ST_BAD_PARAM);
}

/* Every bit of the destination's MAC address counts: 0 is the only unicast address to reject. */
static void test_dmac(void **state)
{
	struct ornic_qp_modify_cmd m = whole();
	struct inproc *p = *state;
	struct host_qp qp;

	rc_init(p, &qp);
	m.mask = htole32(RTR_RC | ORNIC_QPM_STATE);
	m.next_state = ORNIC_QPS_RTR;
	memset(m.path.dmac, 0, sizeof(m.path.dmac));
	m.path.mbz = UINT16_MAX;		/* no part of the address */
	assert_int_equal(host_qp_state(&qp, &m), ORNIC_ST_BAD_PARAM);
	assert_int_equal(le32toh(p->host.cpl.syndrome), ORNIC_SYN_FIELD |
			 offsetof(struct ornic_qp_modify_cmd, path.dmac));
	m.path.mbz = 0;
	m.path.dmac[5] = 1;
	m.path_mtu = ORNIC_MTU_256;		/* the smallest one */
	assert_int_equal(host_qp_state(&qp, &m), ORNIC_ST_OK);
}

/* RESET to INIT: port 0 does not exist, and a GSI queue pair has its port since create. */
static void test_port(void **state)
{
	struct ornic_qp_modify_cmd m = whole();
	struct inproc *p = *state;
	struct host_qp qp, gsi;

	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	m.mask = htole32(INIT_RC | ORNIC_QPM_STATE);
	m.next_state = ORNIC_QPS_INIT;
	m.port = 0;
	assert_int_equal(host_qp_state(&qp, &m), ORNIC_ST_BAD_PARAM);
	assert_int_equal(le32toh(p->host.cpl.syndrome), ORNIC_SYN_FIELD |
			 offsetof(struct ornic_qp_modify_cmd, port));
	assert_int_equal(host_qp_create(&p->host, &gsi, ORNIC_QPT_GSI, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	assert_int_equal(modify(&gsi, ORNIC_QPM_QKEY, ORNIC_QPS_INIT), ORNIC_ST_OK);
}

static int set_counters(struct host_qp *qp, uint32_t number)
{
	struct ornic_qp_modify_cmd m = {
		.mask = htole32(ORNIC_QPM_COUNTER_SET), .counter_set = htole32(number),
	};

	return host_qp_state(qp, &m);
}

/* A counter set may be changed alone in any state, and only with its feature (ORN-FEA-2). */
static void test_counter_set(void **state)
{
	struct inproc *p = *state;
	struct host_qp qp;
	uint32_t set;

	rc_init(p, &qp);
	assert_int_equal(modify(&qp, RTR_RC, ORNIC_QPS_RTR), 0);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_COUNTER_CREATE, 0, NULL, 0, NULL, 0), 0);
	set = host_number(&p->host);
	assert_int_equal(set_counters(&qp, set), ORNIC_ST_OK);
	assert_int_equal(set_counters(&qp, set + 1), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(set_counters(&qp, 0), ORNIC_ST_OK);
	p->f->dev.features &= ~ORNIC_FEATURE(COUNTER_SETS);
	assert_int_equal(set_counters(&qp, set), ORNIC_ST_UNSUPPORTED);
	assert_int_equal(set_counters(&qp, 0), ORNIC_ST_UNSUPPORTED);
}

/* ORN-QP-2 */
static void test_cur_state(void **state)
{
	struct ornic_qp_modify_cmd m = whole();
	struct inproc *p = *state;
	struct host_qp qp;

	rc_init(p, &qp);
	m.mask = htole32(RTR_RC | ORNIC_QPM_STATE | ORNIC_QPM_CUR_STATE);
	m.next_state = ORNIC_QPS_RTR;
	m.cur_state = ORNIC_QPS_RTS;
	assert_int_equal(host_qp_state(&qp, &m), ORNIC_ST_BAD_STATE);
	m.cur_state = ORNIC_QPS_INIT;
	assert_int_equal(host_qp_state(&qp, &m), ORNIC_ST_OK);
	qp.number = 99;
	assert_int_equal(host_qp_state(&qp, &m), ORNIC_ST_BAD_NUMBER);
}

/* Another process's address: only its owner may send from it (ORN-PORT-9). */
static void test_gid_owner(void **state)
{
	struct inproc *p = *state;
	struct host_qp qp;

	rc_init(p, &qp);
	p->f->dev.port.gid[0].owner = htole32(8);
	assert_int_equal(modify(&qp, RTR_RC, ORNIC_QPS_RTR), ORNIC_ST_PERMISSION);
	((struct qp *)table_get(&p->f->dev.qps, qp.number))->owner = 8;
	assert_int_equal(modify(&qp, RTR_RC, ORNIC_QPS_RTR), ORNIC_ST_OK);
	/* An address without owner is anybody's. */
	p->f->dev.port.gid[0].owner = 0;
	assert_int_equal(modify(&qp, 0, ORNIC_QPS_RESET), ORNIC_ST_OK);
	assert_int_equal(modify(&qp, INIT_RC, ORNIC_QPS_INIT), ORNIC_ST_OK);
	assert_int_equal(modify(&qp, RTR_RC, ORNIC_QPS_RTR), ORNIC_ST_OK);
}

/* A GID of the other kind is not a valid source of the path (ORN-PORT-17). */
static void test_gid_kind(void **state)
{
	struct inproc *p = *state;
	struct ornic_qp_modify_cmd m = whole();
	struct host_qp qp;

	rc_init(p, &qp);
	m.mask = htole32(RTR_RC | ORNIC_QPM_STATE);
	m.next_state = ORNIC_QPS_RTR;
	m.path.dgid[0] = 0xfe;
	assert_int_equal(host_qp_state(&qp, &m), ORNIC_ST_BAD_PARAM);
	assert_int_equal(le32toh(p->host.cpl.syndrome), ORNIC_SYN_FIELD |
			 offsetof(struct ornic_qp_modify_cmd, path.sgid_index));
}

/* While a CQ is in error, its queue pairs can only go to ERR or RESET (ORN-QP-31). */
static void test_cq_in_error(void **state)
{
	struct inproc *p = *state;
	struct host_qp qp;
	struct cq *cq;

	rc_init(p, &qp);
	cq = table_get(&p->f->dev.cqs, p->cq.number);
	cq->error = true;
	assert_int_equal(modify(&qp, RTR_RC, ORNIC_QPS_RTR), ORNIC_ST_BAD_STATE);
	assert_int_equal(modify(&qp, 0, ORNIC_QPS_ERR), ORNIC_ST_OK);
	assert_int_equal(modify(&qp, 0, ORNIC_QPS_RESET), ORNIC_ST_OK);
	assert_int_equal(modify(&qp, INIT_RC, ORNIC_QPS_INIT), ORNIC_ST_BAD_STATE);
	cq->error = false;
	assert_int_equal(modify(&qp, INIT_RC, ORNIC_QPS_INIT), ORNIC_ST_OK);
}

/* Go to SQD, and request the event. */
static int drain(struct host_qp *qp)
{
	struct ornic_qp_modify_cmd m = {
		.mask = htole32(ORNIC_QPM_STATE | ORNIC_QPM_SQD_NOTIFY),
		.next_state = ORNIC_QPS_SQD, .sqd_notify = 1,
	};

	return host_qp_state(qp, &m);
}

static uint32_t drained(struct inproc *p)
{
	struct ornic_eqe eqe;
	uint32_t n = 0;

	for (int i = 0; i < 4; i++)
		inproc_turn(p);
	while (host_next(&p->eq0, &eqe))
		n += eqe.type == ORNIC_EV_SQ_DRAINED;
	return n;
}

/*
 * Every type reports that it is drained, once, if the modify command requested the event
 * (ORN-QP-16).
 */
static void test_drained(void **state)
{
	static const uint8_t types[] = { ORNIC_QPT_RC, ORNIC_QPT_UD, ORNIC_QPT_RAW };
	struct inproc *p = *state;
	struct host_qp qp;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(host_qp_create(&p->host, &qp, types[i], 4, p->pd, p->cq.number,
						p->cq.number), 0);
		((struct qp *)table_get(&p->f->dev.qps, qp.number))->state = ORNIC_QPS_RTS;
		assert_int_equal(drain(&qp), ORNIC_ST_OK);
		assert_int_equal(drained(p), 1);
		assert_int_equal(modify(&qp, 0, ORNIC_QPS_RTS), ORNIC_ST_OK);
		assert_int_equal(modify(&qp, 0, ORNIC_QPS_SQD), ORNIC_ST_OK);
		assert_int_equal(drained(p), 0);
	}
}

static int set_rate(struct host_qp *qp, uint32_t kbps, uint32_t burst, uint16_t packet)
{
	struct ornic_qp_modify_cmd m = {
		.mask = htole32(ORNIC_QPM_RATE_LIMIT), .rate_kbps = htole32(kbps),
		.rate_burst = htole32(burst), .rate_packet = htole16(packet),
	};

	return host_qp_state(qp, &m);
}

static struct ornic_qp_query_rsp query(struct inproc *p, struct host_qp *qp)
{
	struct ornic_qp_query_rsp q;

	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_QUERY, qp->number, NULL, 0, &q,
				   sizeof(q)), 0);
	return q;
}

static void rate_is(struct inproc *p, struct host_qp *qp, uint32_t kbps, uint32_t burst,
		    uint16_t packet)
{
	struct ornic_qp_modify_cmd m = query(p, qp).attr;

	assert_int_equal(!!(le32toh(m.mask) & ORNIC_QPM_RATE_LIMIT), !!kbps);
	assert_int_equal(le32toh(m.rate_kbps), kbps);
	assert_int_equal(le32toh(m.rate_burst), burst);
	assert_int_equal(le16toh(m.rate_packet), packet);
}

/*
 * ORN-QP-42, ORN-QP-44: range of rate limits, types and states that accept one, and that it is
 * kept
 */
static void test_rate(void **state)
{
	struct inproc *p = *state;
	struct host_qp qp, ud;
	struct qp *dev_qp;

	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RAW, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	dev_qp = table_get(&p->f->dev.qps, qp.number);
	assert_int_equal(set_rate(&qp, 1000, 0, 0), ORNIC_ST_BAD_PARAM);
	assert_int_equal(modify(&qp, ORNIC_QPM_PORT, ORNIC_QPS_INIT), 0);
	assert_int_equal(modify(&qp, ORNIC_QPM_RATE_LIMIT, ORNIC_QPS_RTR), ORNIC_ST_BAD_PARAM);
	assert_int_equal(modify(&qp, 0, ORNIC_QPS_RTR), 0);
	assert_int_equal(modify(&qp, ORNIC_QPM_RATE_LIMIT, ORNIC_QPS_RTS), 0);
	rate_is(p, &qp, 0, 0, 0);
	assert_int_equal(set_rate(&qp, RATE_MIN_KBPS, UINT32_MAX, UINT16_MAX), 0);
	rate_is(p, &qp, RATE_MIN_KBPS, UINT32_MAX, UINT16_MAX);
	assert_int_equal(set_rate(&qp, RATE_MAX_KBPS, 1, 1), 0);
	/* A rejected command changes nothing. */
	assert_int_equal(set_rate(&qp, RATE_MAX_KBPS + 1u, 0, 0), ORNIC_ST_BAD_PARAM);
	assert_int_equal(set_rate(&qp, UINT32_MAX, 0, 0), ORNIC_ST_BAD_PARAM);
	assert_int_equal(set_rate(&qp, 0, 1, 0), ORNIC_ST_BAD_PARAM);
	assert_int_equal(set_rate(&qp, 0, 0, 1), ORNIC_ST_BAD_PARAM);
	rate_is(p, &qp, RATE_MAX_KBPS, 1, 1);
	assert_int_equal(set_rate(&qp, 0, 0, 0), 0);
	rate_is(p, &qp, 0, 0, 0);
	assert_int_equal(set_rate(&qp, 5000, 0, 0), 0);
	assert_int_equal(modify(&qp, 0, ORNIC_QPS_RESET), 0);
	rate_is(p, &qp, 0, 0, 0);
	assert_int_equal(dev_qp->rate.limit, 0);
	assert_int_equal(dev_qp->rate.burst | dev_qp->rate.packet, 0);

	rc_init(p, &qp);
	assert_int_equal(modify(&qp, RTR_RC | ORNIC_QPM_RATE_LIMIT, ORNIC_QPS_RTR), 0);
	assert_int_equal(modify(&qp, RTS_RC | ORNIC_QPM_RATE_LIMIT, ORNIC_QPS_RTS), 0);
	assert_int_equal(set_rate(&qp, 77, 88, 99), 0);
	rate_is(p, &qp, 77, 88, 99);
	assert_int_equal(host_qp_create(&p->host, &ud, ORNIC_QPT_UD, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	((struct qp *)table_get(&p->f->dev.qps, ud.number))->state = ORNIC_QPS_RTS;
	assert_int_equal(set_rate(&ud, 1000, 0, 0), ORNIC_ST_BAD_PARAM);
	/* ORN-FEA-2 */
	p->f->dev.features &= ~ORNIC_FEATURE(RATE_LIMIT);
	assert_int_equal(set_rate(&qp, 1000, 0, 0), ORNIC_ST_UNSUPPORTED);
	assert_int_equal(modify(&qp, ORNIC_QPM_ACCESS, ORNIC_QPS_RTS), ORNIC_ST_OK);
	p->f->dev.features |= ORNIC_FEATURE(RATE_LIMIT);
}

/* A query after RESET reports the same as one of a new queue pair. */
static void test_reset(void **state)
{
	static const uint8_t types[] = { ORNIC_QPT_RC, ORNIC_QPT_UD, ORNIC_QPT_GSI };
	struct inproc *p = *state;
	struct ornic_qp_query_rsp new, reset;
	struct host_qp qp;

	prepare(p);
	for (int i = 0; i < 3; i++) {
		bool rc = types[i] == ORNIC_QPT_RC;

		assert_int_equal(host_qp_create(&p->host, &qp, types[i], 4, p->pd, p->cq.number,
						p->cq.number), 0);
		new = query(p, &qp);
		assert_int_equal(modify(&qp, rc ? INIT_RC : ORNIC_QPM_PORT | ORNIC_QPM_QKEY,
					ORNIC_QPS_INIT), 0);
		assert_int_equal(modify(&qp, rc ? RTR_RC | ORNIC_QPM_MIN_RNR_TIMER : 0,
					ORNIC_QPS_RTR), 0);
		assert_int_equal(modify(&qp, rc ? RTS_RC | ORNIC_QPM_TIMEOUT : ORNIC_QPM_SQ_PSN,
					ORNIC_QPS_RTS), 0);
		assert_int_equal(drain(&qp), ORNIC_ST_OK);
		assert_int_equal(modify(&qp, 0, ORNIC_QPS_RESET), 0);
		reset = query(p, &qp);
		assert_memory_equal(&new, &reset, sizeof(new));
	}
}

static void test_query(void **state)
{
	struct inproc *p = *state;
	struct ornic_qp_modify_cmd m = whole();
	struct ornic_qp_query_rsp q;
	struct host_qp qp;

	rc_init(p, &qp);
	assert_int_equal(modify(&qp, RTR_RC | ORNIC_QPM_MIN_RNR_TIMER, ORNIC_QPS_RTR), 0);
	assert_int_equal(modify(&qp, RTS_RC | ORNIC_QPM_TIMEOUT, ORNIC_QPS_RTS), 0);
	q = query(p, &qp);
	assert_int_equal(q.attr.next_state, ORNIC_QPS_RTS);
	assert_int_equal(q.attr.rq_psn, m.rq_psn);
	assert_int_equal(q.attr.sq_psn, m.sq_psn);
	assert_int_equal(q.attr.dest_qpn, m.dest_qpn);
	assert_int_equal(q.attr.access, m.access);
	assert_int_equal(q.attr.timeout, 31);
	assert_int_equal(q.attr.min_rnr_timer, 31);
	assert_memory_equal(&q.attr.path, &m.path, sizeof(m.path));
	assert_int_equal(le32toh(q.wire_qpn), qp.number);
	assert_int_equal(le32toh(q.next_psn), 0xffffff);
	assert_int_equal(le32toh(q.expected_psn), 0xffffff);
	assert_int_equal(modify(&qp, 0, ORNIC_QPS_RESET), 0);
	q = query(p, &qp);
	assert_int_equal(q.attr.dest_qpn, 0);
	assert_int_equal(q.attr.port, 0);
}

/* A command that selects no attribute changes none, although all are out of range. */
static void unselected(struct inproc *p, struct host_qp *qp)
{
	struct ornic_qp_query_rsp before = query(p, qp), after;
	struct ornic_qp_modify_cmd m;

	memset(&m, 0xff, sizeof(m));
	m.mask = 0;
	m.mbz0 = 0;
	m.mbz1 = 0;
	memset(m.mbz2, 0, sizeof(m.mbz2));
	memset(m.mbz3, 0, sizeof(m.mbz3));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(host_qp_state(qp, &m), ORNIC_ST_OK);
		after = query(p, qp);
		assert_memory_equal(&before, &after, sizeof(before));
		m.next_state = ORNIC_QPS_SQD;
	}
}

/* ORN-ADM-12: attributes that the mask does not select are neither checked nor applied. */
static void test_unselected(void **state)
{
	struct inproc *p = *state;
	struct host_qp qp;

	rc_init(p, &qp);
	unselected(p, &qp);
	assert_int_equal(modify(&qp, RTR_RC | ORNIC_QPM_MIN_RNR_TIMER, ORNIC_QPS_RTR), 0);
	assert_int_equal(modify(&qp, RTS_RC | ORNIC_QPM_TIMEOUT, ORNIC_QPS_RTS), 0);
	assert_int_equal(set_rate(&qp, 77, 88, 99), 0);
	unselected(p, &qp);
	assert_int_equal(drain(&qp), ORNIC_ST_OK);
	unselected(p, &qp);
	/* The request for the event is valid until the next transition to SQD. */
	assert_int_equal(modify(&qp, 0, ORNIC_QPS_SQD), 0);
	assert_int_equal(modify(&qp, 0, ORNIC_QPS_RTS), 0);
	assert_int_equal(modify(&qp, 0, ORNIC_QPS_RTS), 0);
	unselected(p, &qp);
	assert_int_equal(query(p, &qp).attr.sqd_notify, 1);
	assert_int_equal(modify(&qp, 0, ORNIC_QPS_SQD), 0);
	assert_int_equal(query(p, &qp).attr.sqd_notify, 0);
	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_UD, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	assert_int_equal(modify(&qp, ORNIC_QPM_PORT | ORNIC_QPM_QKEY, ORNIC_QPS_INIT), 0);
	unselected(p, &qp);
}

#define READY(t)	cmocka_unit_test_setup_teardown(t, inproc_setup_ready, inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		READY(test_rc), READY(test_uc), READY(test_ud), READY(test_raw), READY(test_xrc),
		READY(test_ranges), READY(test_dmac),
		READY(test_cur_state), READY(test_gid_owner), READY(test_gid_kind),
		READY(test_cq_in_error), READY(test_drained), READY(test_query), READY(test_rate),
		READY(test_unselected), READY(test_port), READY(test_counter_set),
		READY(test_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
