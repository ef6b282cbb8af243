// SPDX-License-Identifier: GPL-2.0
/*
 * QP_MODIFY: check that the transition is legal, and that the attributes are present, in range
 * and allowed for this queue pair (ORN-QP-2, 12, 13). Then apply all of them at once and change
 * the state of the data path.
 */
#include "command.h"

#include "../engine/link.h"
#include "../engine/qp.h"
#include "../engine/srq.h"

#include <ornic/mr.h>
#include <ornic/qp.h>
#include <string.h>

/* Mask bits of the interface; QPM_LATER need a feature which this device does not have */
#define QPM_LATER	(ORNIC_QPM_ALT_PATH | ORNIC_QPM_CC_PROFILE)
#define QPM_KNOWN							\
	((0x1fffffu & ~ORNIC_QPM_CAP) | ORNIC_QPM_COUNTER_SET | ORNIC_QPM_RATE_LIMIT)

/* Attributes that are legal with any transition */
#define QPM_ALWAYS	(ORNIC_QPM_STATE | ORNIC_QPM_CUR_STATE | ORNIC_QPM_COUNTER_SET)

/* Attributes that verbs allow with a transition, in addition to QPM_ALWAYS */
#define RC_INIT		(ORNIC_QPM_PKEY_INDEX | ORNIC_QPM_PORT | ORNIC_QPM_ACCESS)
#define RC_RTR									\
	(ORNIC_QPM_PATH | ORNIC_QPM_PATH_MTU | ORNIC_QPM_DEST_QPN |		\
	 ORNIC_QPM_RQ_PSN | ORNIC_QPM_MAX_DEST_RD_ATOMIC)
#define RC_RTS									\
	(ORNIC_QPM_SQ_PSN | ORNIC_QPM_RETRY_CNT | ORNIC_QPM_RNR_RETRY |		\
	 ORNIC_QPM_MAX_RD_ATOMIC)
#define RC_TUNE									\
	(ORNIC_QPM_ACCESS | ORNIC_QPM_MIN_RNR_TIMER | ORNIC_QPM_PATH_MIG_STATE)
#define RC_SQD									\
	(RC_TUNE | ORNIC_QPM_PKEY_INDEX | ORNIC_QPM_PORT | ORNIC_QPM_PATH |	\
	 ORNIC_QPM_TIMEOUT | ORNIC_QPM_RETRY_CNT | ORNIC_QPM_RNR_RETRY |	\
	 ORNIC_QPM_MAX_RD_ATOMIC | ORNIC_QPM_MAX_DEST_RD_ATOMIC |		\
	 ORNIC_QPM_SQD_NOTIFY)
#define UC_RTR									\
	(ORNIC_QPM_PATH | ORNIC_QPM_PATH_MTU | ORNIC_QPM_DEST_QPN | ORNIC_QPM_RQ_PSN)
#define UC_TUNE		(ORNIC_QPM_ACCESS | ORNIC_QPM_PATH_MIG_STATE)
#define UC_SQD									\
	(UC_TUNE | ORNIC_QPM_PKEY_INDEX | ORNIC_QPM_PATH | ORNIC_QPM_SQD_NOTIFY)
#define UD_INIT		(ORNIC_QPM_PKEY_INDEX | ORNIC_QPM_PORT | ORNIC_QPM_QKEY)
#define UD_TUNE		(ORNIC_QPM_PKEY_INDEX | ORNIC_QPM_QKEY)

/**
 * struct transition - a legal transition
 * @from, @to:	enum ornic_qp_state
 * @need:	mandatory attributes
 * @may:	legal attributes
 */
struct transition {
	uint8_t from;
	uint8_t to;
	uint32_t need;
	uint32_t may;
};

static const struct transition rc_transitions[] = {
	{ ORNIC_QPS_RESET, ORNIC_QPS_INIT, ORNIC_QPM_PORT, RC_INIT },
	{ ORNIC_QPS_INIT, ORNIC_QPS_INIT, 0, RC_INIT },
	{ ORNIC_QPS_INIT, ORNIC_QPS_RTR, RC_RTR,
	  RC_RTR | RC_TUNE | ORNIC_QPM_PKEY_INDEX | ORNIC_QPM_RATE_LIMIT },
	{ ORNIC_QPS_RTR, ORNIC_QPS_RTS, RC_RTS,
	  RC_RTS | RC_TUNE | ORNIC_QPM_TIMEOUT | ORNIC_QPM_RATE_LIMIT },
	{ ORNIC_QPS_RTS, ORNIC_QPS_RTS, 0, RC_TUNE | ORNIC_QPM_RATE_LIMIT },
	{ ORNIC_QPS_RTS, ORNIC_QPS_SQD, 0, ORNIC_QPM_SQD_NOTIFY },
	{ ORNIC_QPS_SQD, ORNIC_QPS_SQD, 0, RC_SQD },
	{ ORNIC_QPS_SQD, ORNIC_QPS_RTS, 0, RC_TUNE },
};

/* XRC: the initiator has the attributes of an RC requester, the target those of a responder */
static const struct transition ini_transitions[] = {
	{ ORNIC_QPS_RESET, ORNIC_QPS_INIT, ORNIC_QPM_PORT, RC_INIT },
	{ ORNIC_QPS_INIT, ORNIC_QPS_INIT, 0, RC_INIT },
	{ ORNIC_QPS_INIT, ORNIC_QPS_RTR, UC_RTR, UC_RTR | UC_TUNE | ORNIC_QPM_PKEY_INDEX },
	{ ORNIC_QPS_RTR, ORNIC_QPS_RTS, RC_RTS, RC_RTS | UC_TUNE | ORNIC_QPM_TIMEOUT },
	{ ORNIC_QPS_RTS, ORNIC_QPS_RTS, 0, UC_TUNE },
	{ ORNIC_QPS_RTS, ORNIC_QPS_SQD, 0, ORNIC_QPM_SQD_NOTIFY },
	{ ORNIC_QPS_SQD, ORNIC_QPS_SQD, 0, RC_SQD },
	{ ORNIC_QPS_SQD, ORNIC_QPS_RTS, 0, UC_TUNE },
};

static const struct transition tgt_transitions[] = {
	{ ORNIC_QPS_RESET, ORNIC_QPS_INIT, ORNIC_QPM_PORT, RC_INIT },
	{ ORNIC_QPS_INIT, ORNIC_QPS_INIT, 0, RC_INIT },
	{ ORNIC_QPS_INIT, ORNIC_QPS_RTR, RC_RTR, RC_RTR | RC_TUNE | ORNIC_QPM_PKEY_INDEX },
	{ ORNIC_QPS_RTR, ORNIC_QPS_RTS, 0, ORNIC_QPM_SQ_PSN | RC_TUNE | ORNIC_QPM_TIMEOUT },
	{ ORNIC_QPS_RTS, ORNIC_QPS_RTS, 0, RC_TUNE },
	{ ORNIC_QPS_RTS, ORNIC_QPS_SQD, 0, ORNIC_QPM_SQD_NOTIFY },
	{ ORNIC_QPS_SQD, ORNIC_QPS_SQD, 0, RC_SQD },
	{ ORNIC_QPS_SQD, ORNIC_QPS_RTS, 0, RC_TUNE },
};

static const struct transition uc_transitions[] = {
	{ ORNIC_QPS_RESET, ORNIC_QPS_INIT, ORNIC_QPM_PORT, RC_INIT },
	{ ORNIC_QPS_INIT, ORNIC_QPS_INIT, 0, RC_INIT },
	{ ORNIC_QPS_INIT, ORNIC_QPS_RTR, UC_RTR, UC_RTR | UC_TUNE | ORNIC_QPM_PKEY_INDEX },
	{ ORNIC_QPS_RTR, ORNIC_QPS_RTS, ORNIC_QPM_SQ_PSN, ORNIC_QPM_SQ_PSN | UC_TUNE },
	{ ORNIC_QPS_RTS, ORNIC_QPS_RTS, 0, UC_TUNE },
	{ ORNIC_QPS_RTS, ORNIC_QPS_SQD, 0, ORNIC_QPM_SQD_NOTIFY },
	{ ORNIC_QPS_SQD, ORNIC_QPS_SQD, 0, UC_SQD },
	{ ORNIC_QPS_SQD, ORNIC_QPS_RTS, 0, UC_TUNE },
	{ ORNIC_QPS_SQE, ORNIC_QPS_RTS, 0, ORNIC_QPM_ACCESS },
};

static const struct transition ud_transitions[] = {
	{ ORNIC_QPS_RESET, ORNIC_QPS_INIT, ORNIC_QPM_QKEY, UD_INIT },
	{ ORNIC_QPS_INIT, ORNIC_QPS_INIT, 0, UD_INIT },
	{ ORNIC_QPS_INIT, ORNIC_QPS_RTR, 0, UD_TUNE },
	{ ORNIC_QPS_RTR, ORNIC_QPS_RTS, ORNIC_QPM_SQ_PSN, ORNIC_QPM_SQ_PSN | ORNIC_QPM_QKEY },
	{ ORNIC_QPS_RTS, ORNIC_QPS_RTS, 0, ORNIC_QPM_QKEY },
	{ ORNIC_QPS_RTS, ORNIC_QPS_SQD, 0, ORNIC_QPM_SQD_NOTIFY },
	{ ORNIC_QPS_SQD, ORNIC_QPS_SQD, 0, UD_TUNE | ORNIC_QPM_SQD_NOTIFY },
	{ ORNIC_QPS_SQD, ORNIC_QPS_RTS, 0, ORNIC_QPM_QKEY },
	{ ORNIC_QPS_SQE, ORNIC_QPS_RTS, 0, ORNIC_QPM_QKEY },
};

static const struct transition raw_transitions[] = {
	{ ORNIC_QPS_RESET, ORNIC_QPS_INIT, ORNIC_QPM_PORT, ORNIC_QPM_PORT },
	{ ORNIC_QPS_INIT, ORNIC_QPS_RTR, 0, 0 },
	{ ORNIC_QPS_RTR, ORNIC_QPS_RTS, 0, ORNIC_QPM_RATE_LIMIT },
	{ ORNIC_QPS_RTS, ORNIC_QPS_RTS, 0, ORNIC_QPM_RATE_LIMIT },
	{ ORNIC_QPS_RTS, ORNIC_QPS_SQD, 0, ORNIC_QPM_SQD_NOTIFY },
	{ ORNIC_QPS_SQD, ORNIC_QPS_SQD, 0, ORNIC_QPM_SQD_NOTIFY },
	{ ORNIC_QPS_SQD, ORNIC_QPS_RTS, 0, 0 },
};

#define FIND(table, from, to)	transition_find(table, sizeof(table) / sizeof((table)[0]), from, to)

static const struct transition *transition_find(const struct transition *t, size_t n,
						uint8_t from, uint8_t to)
{
	for (size_t i = 0; i < n; i++)
		if (t[i].from == from && t[i].to == to)
			return &t[i];
	return NULL;
}

/* Transition to RESET or ERR, with which no attribute is legal */
static const struct transition any_end = { 0 };

/* Return the transition of @qp to state @to, NULL if it is illegal. */
static const struct transition *qp_transition(const struct qp *qp, uint8_t to)
{
	if (to == ORNIC_QPS_RESET || (to == ORNIC_QPS_ERR && qp->state != ORNIC_QPS_RESET))
		return &any_end;
	switch (qp->type) {
	case ORNIC_QPT_RC:
		return FIND(rc_transitions, qp->state, to);
	case ORNIC_QPT_XRC_INI:
		return FIND(ini_transitions, qp->state, to);
	case ORNIC_QPT_XRC_TGT:
		return FIND(tgt_transitions, qp->state, to);
	case ORNIC_QPT_UC:
		return FIND(uc_transitions, qp->state, to);
	case ORNIC_QPT_RAW:
		return FIND(raw_transitions, qp->state, to);
	default:
		return FIND(ud_transitions, qp->state, to);
	}
}

/* Return true if the completion queues and the SRQ of the queue pair work (ORN-QP-31). */
static bool queues_usable(const struct qp *qp)
{
	return !(qp->scq && qp->scq->error) && !(qp->rcq && qp->rcq->error) &&
	       !(qp->srq && qp->srq->wq.bad);
}

static uint8_t check_transition(struct command *c, const struct qp *qp,
				const struct ornic_qp_modify_cmd *in, uint8_t to)
{
	uint32_t mask = le32toh(in->mask);
	const struct transition *t;
	uint32_t need;

	if (to > ORNIC_QPS_ERR)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->next_state);
	if (mask & ORNIC_QPM_CUR_STATE && in->cur_state != qp->state)
		return ORNIC_ST_BAD_STATE;
	t = qp_transition(qp, to);
	if (!t || (t != &any_end && !queues_usable(qp)))
		return ORNIC_ST_BAD_STATE;
	need = t->need;
	if (qp->type == ORNIC_QPT_UD && qp->state == ORNIC_QPS_RESET && to == ORNIC_QPS_INIT)
		need |= ORNIC_QPM_PORT;
	if (need & ~mask || mask & ~(t->may | QPM_ALWAYS))
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->mask);
	return ORNIC_ST_OK;
}

static bool mac_is_unicast(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return !(mac[0] & 1) && memcmp(mac, zero, sizeof(zero));
}

static uint8_t check_path_source(struct command *c, const struct qp *qp,
				 const struct ornic_path *path)
{
	const struct ornic_gid_entry *gid = device_gid(c->dev, le16toh(path->sgid_index));

	if (gid && gid->owner && le32toh(gid->owner) != qp->owner)
		return command_reject(c, ORNIC_ST_PERMISSION, &path->sgid_index);
	if (!link_gid(qp, path))
		return command_reject(c, ORNIC_ST_BAD_PARAM, &path->sgid_index);
	return ORNIC_ST_OK;
}

static uint8_t check_path(struct command *c, const struct qp *qp, const struct ornic_path *path)
{
	uint8_t st;

	if (!mac_is_unicast(path->dmac))
		return command_reject(c, ORNIC_ST_BAD_PARAM, path->dmac);
	st = COMMAND_ZERO(c, path->mbz);
	if (!st && le32toh(path->flow_label) >> 20)
		st = command_reject(c, ORNIC_ST_BAD_PARAM, &path->flow_label);
	if (!st && path->sl > 15)
		st = command_reject(c, ORNIC_ST_BAD_PARAM, &path->sl);
	st = st ?: check_path_source(c, qp, path);
	st = st ?: COMMAND_ZERO(c, path->dest_qpn);
	st = st ?: COMMAND_ZERO(c, path->qkey);
	if (!st && path->port > 1)
		st = command_reject(c, ORNIC_ST_BAD_PARAM, &path->port);
	st = st ?: COMMAND_ZERO(c, path->flags);
	return st ?: COMMAND_ZERO(c, path->dlid);
}

static uint8_t check_access(struct command *c, const struct ornic_qp_modify_cmd *in)
{
	if (le32toh(in->access) & ~(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE))
		return command_reject(c, ORNIC_ST_RESERVED, &in->access);
	return key_need_features(c, &in->access);
}

/**
 * struct range - an attribute with an upper bound
 * @bit:	ORNIC_QPM_*
 * @offset:	offset in the layout, bytes
 * @size:	size, bytes
 * @max:	largest legal value
 */
struct range {
	uint32_t bit;
	uint16_t offset;
	uint8_t size;
	uint32_t max;
};

#define RANGE(bit, member, max)						\
	{ ORNIC_QPM_##bit, offsetof(struct ornic_qp_modify_cmd, member),	\
	  sizeof(((struct ornic_qp_modify_cmd *)0)->member), max }

static const struct range ranges[] = {
	RANGE(RQ_PSN, rq_psn, 0xffffff),
	RANGE(SQ_PSN, sq_psn, 0xffffff),
	RANGE(DEST_QPN, dest_qpn, 0xffffff),
	RANGE(PKEY_INDEX, pkey_index, 0),
	RANGE(TIMEOUT, timeout, 31),
	RANGE(RETRY_CNT, retry_cnt, 7),
	RANGE(RNR_RETRY, rnr_retry, 7),
	RANGE(MIN_RNR_TIMER, min_rnr_timer, 31),
	RANGE(SQD_NOTIFY, sqd_notify, 1),
	RANGE(MAX_RD_ATOMIC, max_rd_atomic, LIMIT_RD_ATOMIC),
	RANGE(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, LIMIT_RD_ATOMIC),
	RANGE(PATH_MIG_STATE, mig_state, 0),
};

static uint32_t range_value(const uint8_t *p, uint8_t size)
{
	uint32_t v = 0;

	for (int i = size - 1; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static uint8_t check_ranges(struct command *c, const struct ornic_qp_modify_cmd *in)
{
	uint32_t mask = le32toh(in->mask);

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct range *r = &ranges[i];
		const uint8_t *field = (const uint8_t *)in + r->offset;

		if (mask & r->bit && range_value(field, r->size) > r->max)
			return command_reject(c, ORNIC_ST_BAD_PARAM, field);
	}
	if (mask & ORNIC_QPM_PORT && in->port != 1)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->port);
	return ORNIC_ST_OK;
}

static uint8_t check_mtu(struct command *c, const struct ornic_qp_modify_cmd *in)
{
	if (in->path_mtu < ORNIC_MTU_256 || in->path_mtu > ORNIC_MTU_4096 ||
	    128u << in->path_mtu > link_mtu(c->dev))
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->path_mtu);
	return ORNIC_ST_OK;
}

/* Check the rate limit. Without a rate, burst and packet size must be 0 (ORN-QP-42). */
static uint8_t check_rate(struct command *c, const struct ornic_qp_modify_cmd *in)
{
	uint32_t kbps = le32toh(in->rate_kbps);

	if (kbps)
		return kbps < RATE_MIN_KBPS || kbps > RATE_MAX_KBPS ?
			command_reject(c, ORNIC_ST_BAD_PARAM, &in->rate_kbps) : ORNIC_ST_OK;
	if (in->rate_burst)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->rate_burst);
	if (in->rate_packet)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->rate_packet);
	return ORNIC_ST_OK;
}

/* Look up the counter set; *@set is NULL for none, or if the mask does not select it. */
static uint8_t check_set(struct command *c, const struct ornic_qp_modify_cmd *in,
			 struct counter_set **set)
{
	uint8_t st;

	*set = NULL;
	if (!(le32toh(in->mask) & ORNIC_QPM_COUNTER_SET))
		return ORNIC_ST_OK;
	st = command_need(c, ORNIC_FEATURE(COUNTER_SETS), &in->mask);
	if (st || !in->counter_set)
		return st;
	*set = counter_set_get(c->dev, le32toh(in->counter_set));
	return *set ? ORNIC_ST_OK : command_reject(c, ORNIC_ST_BAD_NUMBER, &in->counter_set);
}

static uint8_t check_attributes(struct command *c, const struct qp *qp,
				const struct ornic_qp_modify_cmd *in)
{
	uint32_t mask = le32toh(in->mask);
	uint8_t st = check_ranges(c, in);

	if (!st && mask & ORNIC_QPM_PATH_MTU)
		st = check_mtu(c, in);
	if (!st && mask & ORNIC_QPM_ACCESS)
		st = check_access(c, in);
	if (!st && mask & ORNIC_QPM_PATH)
		st = check_path(c, qp, &in->path);
	if (!st && mask & ORNIC_QPM_RATE_LIMIT)
		st = check_rate(c, in);
	return st;
}

static uint8_t check_reserved(struct command *c, const struct ornic_qp_modify_cmd *in)
{
	uint32_t mask = le32toh(in->mask);
	uint8_t st;

	if (mask & ~(QPM_KNOWN | QPM_LATER))
		return command_reject(c, ORNIC_ST_RESERVED, &in->mask);
	if (mask & QPM_LATER)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->mask);
	st = mask & ORNIC_QPM_RATE_LIMIT ?
		command_need(c, ORNIC_FEATURE(RATE_LIMIT), &in->mask) : ORNIC_ST_OK;
	st = st ?: COMMAND_ZERO(c, in->mbz0);
	st = st ?: COMMAND_ZERO(c, in->mbz1);
	st = st ?: COMMAND_ZERO(c, in->mbz2);
	return st ?: COMMAND_ZERO(c, in->mbz3);
}

static void adopt_connection(struct qp *qp, const struct ornic_qp_modify_cmd *in, uint32_t mask)
{
	if (mask & ORNIC_QPM_PATH)
		qp->path = in->path;
	if (mask & ORNIC_QPM_PATH_MTU)
		qp->mtu_code = in->path_mtu;
	if (mask & ORNIC_QPM_DEST_QPN)
		qp->dest_qpn = le32toh(in->dest_qpn);
	if (mask & ORNIC_QPM_RQ_PSN)
		qp->rq_psn = le32toh(in->rq_psn);
	if (mask & ORNIC_QPM_SQ_PSN)
		qp->sq_psn = le32toh(in->sq_psn);
	if (mask & ORNIC_QPM_TIMEOUT)
		qp->timeout = in->timeout;
	if (mask & ORNIC_QPM_RETRY_CNT)
		qp->retry_cnt = in->retry_cnt;
	if (mask & ORNIC_QPM_RNR_RETRY)
		qp->rnr_retry = in->rnr_retry;
}

static void adopt(struct qp *qp, const struct ornic_qp_modify_cmd *in)
{
	uint32_t mask = le32toh(in->mask);

	adopt_connection(qp, in, mask);
	if (mask & ORNIC_QPM_ACCESS)
		qp->access = le32toh(in->access) & ORNIC_ACCESS_REMOTE;
	if (mask & ORNIC_QPM_QKEY)
		qp->qkey = le32toh(in->qkey);
	if (mask & ORNIC_QPM_PORT)
		qp->port = in->port;
	if (mask & ORNIC_QPM_MIN_RNR_TIMER)
		qp->min_rnr_timer = in->min_rnr_timer;
	if (mask & ORNIC_QPM_MAX_RD_ATOMIC)
		qp->max_rd_atomic = in->max_rd_atomic;
	if (mask & ORNIC_QPM_MAX_DEST_RD_ATOMIC)
		qp->max_dest_rd_atomic = in->max_dest_rd_atomic;
	if (mask & ORNIC_QPM_RATE_LIMIT)
		qp_set_rate(qp, le32toh(in->rate_kbps), le32toh(in->rate_burst),
			    le16toh(in->rate_packet));
	if (mask & ORNIC_QPM_SQD_NOTIFY)
		qp->sqd_notify = in->sqd_notify;
	else if (mask & ORNIC_QPM_STATE && in->next_state == ORNIC_QPS_SQD &&
		 qp->state == ORNIC_QPS_RTS)
		qp->sqd_notify = false;
}

/* Restore the attributes of a new queue pair, after a transition to RESET. */
static void forget_attributes(struct qp *qp)
{
	memset(&qp->path, 0, sizeof(qp->path));
	qp->access = 0;
	qp->qkey = 0;
	qp->port = qp->attr.port;
	qp->dest_qpn = 0;
	qp->mtu_code = 0;
	qp->rq_psn = 0;
	qp->sq_psn = 0;
	qp->timeout = 0;
	qp->retry_cnt = 0;
	qp->rnr_retry = 0;
	qp->min_rnr_timer = 0;
	qp->max_rd_atomic = 0;
	qp->max_dest_rd_atomic = 0;
	qp->sqd_notify = false;
	qp_set_rate(qp, 0, 0, 0);
}

uint8_t cmd_qp_modify(struct command *c)
{
	const struct ornic_qp_modify_cmd *in = c->in;
	struct qp *qp = table_get(&c->dev->qps, c->number);
	uint32_t mask = le32toh(in->mask);
	struct counter_set *set;
	uint8_t to, st;

	if (!qp)
		return ORNIC_ST_BAD_NUMBER;
	to = mask & ORNIC_QPM_STATE ? in->next_state : qp->state;
	st = check_reserved(c, in);
	st = st ?: check_set(c, in, &set);
	if (!st && mask != ORNIC_QPM_COUNTER_SET)
		st = check_transition(c, qp, in, to) ?: check_attributes(c, qp, in);
	if (st)
		return st;
	if (mask & ORNIC_QPM_COUNTER_SET)
		counter_set_use(qp, set);
	if (mask == ORNIC_QPM_COUNTER_SET)
		return ORNIC_ST_OK;
	adopt(qp, in);
	qp_set_state(qp, to);
	if (to == ORNIC_QPS_RESET)
		forget_attributes(qp);
	return ORNIC_ST_OK;
}
