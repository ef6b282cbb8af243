// SPDX-License-Identifier: GPL-2.0
/*
 * QP_QUERY: attributes in the layout of QP_MODIFY, and indices of the queues.
 */
#include "command.h"

#include "../engine/qp.h"

#include <ornic/qp.h>

/* Attributes that queue pairs of a type have */
#define QUERY_ANY	(ORNIC_QPM_STATE | ORNIC_QPM_CUR_STATE | ORNIC_QPM_PKEY_INDEX | \
			 ORNIC_QPM_PORT)
#define QUERY_RC								\
	(ORNIC_QPM_ACCESS | ORNIC_QPM_PATH | ORNIC_QPM_PATH_MTU |		\
	 ORNIC_QPM_TIMEOUT | ORNIC_QPM_RETRY_CNT | ORNIC_QPM_RNR_RETRY |	\
	 ORNIC_QPM_RQ_PSN | ORNIC_QPM_SQ_PSN | ORNIC_QPM_MAX_RD_ATOMIC |	\
	 ORNIC_QPM_MIN_RNR_TIMER | ORNIC_QPM_MAX_DEST_RD_ATOMIC | ORNIC_QPM_DEST_QPN)
#define QUERY_UC								\
	(ORNIC_QPM_ACCESS | ORNIC_QPM_PATH | ORNIC_QPM_PATH_MTU |		\
	 ORNIC_QPM_RQ_PSN | ORNIC_QPM_SQ_PSN | ORNIC_QPM_DEST_QPN)
#define QUERY_UD	(ORNIC_QPM_QKEY | ORNIC_QPM_SQ_PSN)

static uint32_t query_mask(const struct qp *qp)
{
	switch (qp->type) {
	case ORNIC_QPT_RC:
	case ORNIC_QPT_XRC_INI:
	case ORNIC_QPT_XRC_TGT:
		return QUERY_ANY | QUERY_RC;
	case ORNIC_QPT_UC:
		return QUERY_ANY | QUERY_UC;
	case ORNIC_QPT_RAW:
		return QUERY_ANY;
	default:
		return QUERY_ANY | QUERY_UD;
	}
}

static void query_attributes(const struct qp *qp, struct ornic_qp_modify_cmd *a)
{
	a->mask = htole32(query_mask(qp));
	a->next_state = qp->state;
	a->cur_state = qp->state;
	a->path_mtu = qp->mtu_code;
	a->qkey = htole32(qp->qkey);
	a->rq_psn = htole32(qp->rq_psn);
	a->sq_psn = htole32(qp->sq_psn);
	a->dest_qpn = htole32(qp->dest_qpn);
	a->access = htole32(qp->access);
	a->port = qp->port;
	a->timeout = qp->timeout;
	a->retry_cnt = qp->retry_cnt;
	a->rnr_retry = qp->rnr_retry;
	a->min_rnr_timer = qp->min_rnr_timer;
	a->sqd_notify = qp->sqd_notify;
	a->max_rd_atomic = qp->max_rd_atomic;
	a->max_dest_rd_atomic = qp->max_dest_rd_atomic;
	a->path = qp->path;
	if (qp->rate.kbps) {
		a->mask |= htole32(ORNIC_QPM_RATE_LIMIT);
		a->rate_kbps = htole32(qp->rate.kbps);
		a->rate_burst = htole32(qp->rate.burst);
		a->rate_packet = htole16(qp->rate.packet);
	}
	if (qp->set) {
		a->mask |= htole32(ORNIC_QPM_COUNTER_SET);
		a->counter_set = htole32(qp->set->number);
	}
}

uint8_t cmd_qp_query(struct command *c)
{
	struct ornic_qp_query_rsp *out = c->out;
	const struct qp *qp = table_get(&c->dev->qps, c->number);

	if (!qp)
		return ORNIC_ST_BAD_NUMBER;
	query_attributes(qp, &out->attr);
	out->sq_index = htole32(qp->sq.cons);
	out->sq_done = htole32(qp->sq.done);
	out->rq_index = htole32(qp->rq.cons);
	out->wire_qpn = htole32(qp->wire_qpn);
	out->syndrome = htole32(qp->syndrome);
	out->sq_draining = qp->state == ORNIC_QPS_SQD && qp->sq.done != qp->sq.cons;
	if (qp_connected(qp)) {
		out->next_psn = htole32(qp->req.next_psn);
		out->expected_psn = htole32(qp->resp.epsn);
		out->msn = htole32(qp->resp.msn);
	}
	return ORNIC_ST_OK;
}
