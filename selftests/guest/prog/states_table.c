// SPDX-License-Identifier: GPL-2.0
/*
 * The verbs' transitions and their attributes.
 */
#include "states.h"

#define PATH_CHANGE	(IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define CONN_INIT	(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define DGRAM_INIT	(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define CONN_RTR	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RC_RTR		(CONN_RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RC_RTS		(IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
			 IBV_QP_MAX_QP_RD_ATOMIC)
#define CONN_MAY_RTR	(IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define UC_LIVE		(IBV_QP_CUR_STATE | PATH_CHANGE)
#define RC_LIVE		(UC_LIVE | IBV_QP_MIN_RNR_TIMER)
#define UD_LIVE		(IBV_QP_CUR_STATE | IBV_QP_QKEY)
/* IBTA lets UC change its path here, too; Linux does not. */
#define UC_SQD		(PATH_CHANGE | IBV_QP_PKEY_INDEX)
#define RC_SQD		(UC_SQD | IBV_QP_AV | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
			 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | \
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define UD_PKEY		(IBV_QP_PKEY_INDEX | IBV_QP_QKEY)

/* Attributes of a transition: rc, uc, ud. */
static struct rule by_type(enum ibv_qp_type type, const int need[3], const int may[3])
{
	int i = type == IBV_QPT_RC ? 0 : type == IBV_QPT_UC ? 1 : 2;

	return (struct rule){ true, need[i], may[i] };
}

#define RULE(rc_need, uc_need, ud_need, rc_may, uc_may, ud_may) \
	by_type(type, (const int[]){ rc_need, uc_need, ud_need }, \
		(const int[]){ rc_may, uc_may, ud_may })

struct rule states_rule(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	const struct rule none = { false, 0, 0 }, bare = { true, 0, 0 };

	if (to == IBV_QPS_RESET)
		return bare;
	if (to == IBV_QPS_ERR)
		return from == IBV_QPS_RESET ? none : bare;
	switch (from * 16 + to) {
	case IBV_QPS_RESET * 16 + IBV_QPS_INIT:
		return RULE(CONN_INIT, CONN_INIT, DGRAM_INIT, 0, 0, 0);
	case IBV_QPS_INIT * 16 + IBV_QPS_INIT:
		return RULE(0, 0, 0, CONN_INIT, CONN_INIT, DGRAM_INIT);
	case IBV_QPS_INIT * 16 + IBV_QPS_RTR:
		return RULE(RC_RTR, CONN_RTR, 0, CONN_MAY_RTR, CONN_MAY_RTR, UD_PKEY);
	case IBV_QPS_RTR * 16 + IBV_QPS_RTS:
		return RULE(RC_RTS, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN, RC_LIVE, UC_LIVE, UD_LIVE);
	case IBV_QPS_RTS * 16 + IBV_QPS_RTS:
	case IBV_QPS_SQD * 16 + IBV_QPS_RTS:
		return RULE(0, 0, 0, RC_LIVE, UC_LIVE, UD_LIVE);
	case IBV_QPS_RTS * 16 + IBV_QPS_SQD:
		return (struct rule){ true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY };
	case IBV_QPS_SQD * 16 + IBV_QPS_SQD:
		return RULE(0, 0, 0, RC_SQD, UC_SQD, UD_PKEY);
	case IBV_QPS_SQE * 16 + IBV_QPS_RTS:
		return RULE(0, 0, 0, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, UD_LIVE);
	default:
		return none;
	}
}
