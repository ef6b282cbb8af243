// SPDX-License-Identifier: GPL-2.0
/*
 * Create and destroy queue pairs: check the attributes, and count references to domains,
 * completion queues, SRQ and counter set.
 */
#include "command.h"

#include "../engine/eq.h"
#include "../engine/memop.h"
#include "../engine/qp.h"
#include "../engine/srq.h"
#include "../engine/xrc.h"
#include "../packet/bth.h"

#include <ornic/qp.h>
#include <stdlib.h>

#define QP_FLAGS								\
	(ORNIC_QP_F_SIG_ALL | ORNIC_QP_F_PRIVILEGED | ORNIC_QP_F_DRIVER |	\
	 ORNIC_QP_F_BLOCK_MC_LOOP)

/* Flags of the interface that need a feature which this device does not have */
#define QP_FLAGS_LATER								\
	(ORNIC_QP_F_SCATTER_FCS | ORNIC_QP_F_VLAN_STRIP | ORNIC_QP_F_PAD_WRITES)

static uint8_t qp_check_type(struct command *c, const struct ornic_qp_create_cmd *in)
{
	uint8_t transport = in->type == ORNIC_QPT_RAW ? ORNIC_TP_ETHERNET : ORNIC_TP_ROCEV2;
	uint64_t feature;

	switch (in->type) {
	case ORNIC_QPT_RC:
		feature = ORNIC_FEATURE(RC);
		break;
	case ORNIC_QPT_UC:
		feature = ORNIC_FEATURE(UC);
		break;
	case ORNIC_QPT_UD:
	case ORNIC_QPT_GSI:
		feature = ORNIC_FEATURE(UD);
		break;
	case ORNIC_QPT_XRC_INI:
	case ORNIC_QPT_XRC_TGT:
		feature = ORNIC_FEATURE(XRC);
		break;
	case ORNIC_QPT_RAW:
		feature = ORNIC_FEATURE(RAW);
		break;
	default:
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->type);
	}
	if (in->transport != transport)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->transport);
	return command_need(c, feature, &in->type);
}

static uint8_t qp_check_port(struct command *c, const struct ornic_qp_create_cmd *in)
{
	bool bound = in->type == ORNIC_QPT_GSI || in->type == ORNIC_QPT_RAW;

	if (!bound)
		return COMMAND_ZERO(c, in->port);
	if (in->port != 1)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->port);
	if (in->type == ORNIC_QPT_GSI && c->dev->port.gsi)
		return command_reject(c, ORNIC_ST_EXISTS, &in->type);
	return ORNIC_ST_OK;
}

static uint8_t qp_check_flags(struct command *c, const struct ornic_qp_create_cmd *in)
{
	uint32_t flags = le32toh(in->flags);

	if (flags & ~(QP_FLAGS | QP_FLAGS_LATER))
		return command_reject(c, ORNIC_ST_RESERVED, &in->flags);
	if (flags & QP_FLAGS_LATER)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->flags);
	if (in->sq_log == ORNIC_NO_RING && in->rq_log == ORNIC_NO_RING &&
	    in->srq == htole32(ORNIC_NONE) && in->type != ORNIC_QPT_XRC_TGT)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->sq_log);
	if (flags & ORNIC_QP_F_BLOCK_MC_LOOP && in->type != ORNIC_QPT_UD)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->flags);
	if (flags & ORNIC_QP_F_BLOCK_MC_LOOP && !(c->dev->features & ORNIC_FEATURE(MCAST)))
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->flags);
	if (flags & ORNIC_QP_F_DRIVER && in->type != ORNIC_QPT_RAW)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->flags);
	return ORNIC_ST_OK;
}

static uint8_t qp_check_sq(struct command *c, const struct ornic_qp_create_cmd *in)
{
	if (le16toh(in->max_send_sge) > LIMIT_SEND_SGE)
		return command_reject(c, ORNIC_ST_LIMIT, &in->max_send_sge);
	if (le16toh(in->max_inline) > LIMIT_INLINE)
		return command_reject(c, ORNIC_ST_LIMIT, &in->max_inline);
	if (in->sq_log == ORNIC_NO_RING)
		return ORNIC_ST_OK;
	if (in->sq_log > LIMIT_LOG_SQ)
		return command_reject(c, ORNIC_ST_LIMIT, &in->sq_log);
	if (in->sq_stride < ORNIC_SQ_MIN_STRIDE)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->sq_stride);
	if (in->sq_stride > ORNIC_SQ_MAX_STRIDE)
		return command_reject(c, ORNIC_ST_LIMIT, &in->sq_stride);
	return ORNIC_ST_OK;
}

static uint8_t qp_check_rq(struct command *c, const struct ornic_qp_create_cmd *in)
{
	if (le16toh(in->max_recv_sge) > LIMIT_RECV_SGE)
		return command_reject(c, ORNIC_ST_LIMIT, &in->max_recv_sge);
	if (in->rq_log == ORNIC_NO_RING)
		return ORNIC_ST_OK;
	if (in->rq_log > LIMIT_LOG_RQ)
		return command_reject(c, ORNIC_ST_LIMIT, &in->rq_log);
	if (in->rq_stride < ORNIC_RQ_MIN_STRIDE)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->rq_stride);
	if (in->rq_stride > ORNIC_RQ_MAX_STRIDE)
		return command_reject(c, ORNIC_ST_LIMIT, &in->rq_stride);
	return ORNIC_ST_OK;
}

static uint8_t qp_check_set(struct command *c, const struct ornic_qp_create_cmd *in)
{
	uint8_t st;

	if (!in->counter_set)
		return ORNIC_ST_OK;
	st = command_need(c, ORNIC_FEATURE(COUNTER_SETS), &in->counter_set);
	if (!st && !counter_set_get(c->dev, le32toh(in->counter_set)))
		st = command_reject(c, ORNIC_ST_BAD_NUMBER, &in->counter_set);
	return st;
}

/*
 * Check the XRC fields. Only a target has an XRC domain. An initiator has no receive queue, a
 * target has no queue, and neither has an SRQ.
 */
static uint8_t qp_check_xrc(struct command *c, const struct ornic_qp_create_cmd *in)
{
	bool target = in->type == ORNIC_QPT_XRC_TGT;

	if (!target) {
		uint8_t st = COMMAND_ZERO(c, in->xrcd);

		if (st || in->type != ORNIC_QPT_XRC_INI)
			return st;
	}
	if (target && in->pd)
		return command_reject(c, ORNIC_ST_RESERVED, &in->pd);
	if (target && in->sq_log != ORNIC_NO_RING)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->sq_log);
	if (in->rq_log != ORNIC_NO_RING)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->rq_log);
	if (in->srq != htole32(ORNIC_NONE))
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->srq);
	return ORNIC_ST_OK;
}

/* Check an SRQ, which replaces the receive queue; GSI and raw packet queue pairs have none. */
static uint8_t qp_check_srq(struct command *c, const struct ornic_qp_create_cmd *in)
{
	if (in->srq == htole32(ORNIC_NONE))
		return ORNIC_ST_OK;
	if (in->type == ORNIC_QPT_GSI || in->type == ORNIC_QPT_RAW)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->srq);
	if (in->rq_log != ORNIC_NO_RING)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->rq_log);
	return command_need(c, ORNIC_FEATURE(SRQ), &in->srq);
}

/* Check fields of features that this device does not have, and reserved fields. */
static uint8_t qp_check_later(struct command *c, const struct ornic_qp_create_cmd *in)
{
	uint8_t st;

	if (in->max_lso_header)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->max_lso_header);
	if (in->cc_profile)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->cc_profile);
	st = COMMAND_ZERO(c, in->mbz0);
	st = st ?: COMMAND_ZERO(c, in->want);
	return st ?: COMMAND_ZERO(c, in->mbz1);
}

static uint8_t qp_check(struct command *c, const struct ornic_qp_create_cmd *in)
{
	uint8_t st = qp_check_type(c, in);

	st = st ?: qp_check_port(c, in);
	st = st ?: qp_check_flags(c, in);
	st = st ?: qp_check_sq(c, in);
	st = st ?: qp_check_rq(c, in);
	st = st ?: qp_check_set(c, in);
	st = st ?: qp_check_xrc(c, in);
	st = st ?: qp_check_srq(c, in);
	return st ?: qp_check_later(c, in);
}

/* Look up the CQ of a queue; *@cq is unchanged if the queue is not @present. */
static uint8_t qp_find_cq(struct command *c, bool present, const __le32 *field, struct cq **cq)
{
	if (!present)
		return ORNIC_ST_OK;
	*cq = table_get(&c->dev->cqs, le32toh(*field));
	return *cq ? ORNIC_ST_OK : command_reject(c, ORNIC_ST_BAD_NUMBER, field);
}

static uint8_t qp_find_srq(struct command *c, const struct ornic_qp_create_cmd *in, struct qp *qp)
{
	if (in->srq == htole32(ORNIC_NONE))
		return ORNIC_ST_OK;
	qp->srq = srq_get(c->dev, le32toh(in->srq));
	if (qp->srq && qp->srq->type != ORNIC_SRQT_BASIC)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->srq);
	return qp->srq ? ORNIC_ST_OK : command_reject(c, ORNIC_ST_BAD_NUMBER, &in->srq);
}

/* Look up the protection domain, or the XRC domain that an XRC target has instead. */
static uint8_t qp_find_domain(struct command *c, const struct ornic_qp_create_cmd *in,
			      struct qp *qp)
{
	if (qp->type == ORNIC_QPT_XRC_TGT) {
		qp->xrcd = xrcd_get(c->dev, le32toh(in->xrcd));
		return qp->xrcd ? ORNIC_ST_OK :
				  command_reject(c, ORNIC_ST_BAD_NUMBER, &in->xrcd);
	}
	qp->pd = pd_get(c->dev, le32toh(in->pd));
	return qp->pd ? ORNIC_ST_OK : command_reject(c, ORNIC_ST_BAD_NUMBER, &in->pd);
}

static uint8_t qp_references(struct command *c, const struct ornic_qp_create_cmd *in,
			     struct qp *qp)
{
	uint8_t st = qp_find_domain(c, in, qp);

	st = st ?: qp_find_cq(c, qp->sq.present, &in->send_cq, &qp->scq);
	st = st ?: qp_find_srq(c, in, qp);
	st = st ?: qp_find_cq(c, qp->rq.present || qp->srq, &in->recv_cq, &qp->rcq);
	return st ?: command_dbpage(c, &in->dbpage, &qp->dbpage);
}

static void qp_attributes(struct device *dev, const struct ornic_qp_create_cmd *in, struct qp *qp)
{
	qp->dev = dev;
	qp->type = in->type;
	qp->flags = le32toh(in->flags);
	qp->owner = le32toh(in->owner);
	qp->max_inline = le16toh(in->max_inline);
	qp->state = ORNIC_QPS_RESET;
	qp->port = in->port;
	qp->attr = *in;
	qp->sq.present = in->sq_log != ORNIC_NO_RING;
	qp->sq.log = in->sq_log;
	qp->sq.stride = in->sq_stride;
	qp->sq.max_sge = le16toh(in->max_send_sge);
	qp->rq.present = in->rq_log != ORNIC_NO_RING;
	qp->rq.log = in->rq_log;
	qp->rq.stride = in->rq_stride;
	qp->rq.max_sge = le16toh(in->max_recv_sge);
}

static uint8_t qp_ring(struct command *c, struct wq *wq, const __le64 *record,
		       const struct ornic_pages *pages)
{
	uint8_t st;

	if (!wq->present)
		return ORNIC_ST_OK;
	st = command_record(c, record, &wq->rec);
	return st ?: command_ring(c, pages, wq->log, wq->stride, false, &wq->mem);
}

static void qp_free_rings(struct device *dev, struct qp *qp)
{
	if (qp->sq.mem.page)
		umem_free(&qp->sq.mem, &dev->lists);
	if (qp->rq.mem.page)
		umem_free(&qp->rq.mem, &dev->lists);
}

/* Number the queue pair and start its data path. */
static uint8_t qp_start(struct command *c, struct qp *qp)
{
	uint8_t st = command_number(c, &c->dev->qps, qp);

	if (st)
		return st;
	qp->handle = c->number;
	qp->wire_qpn = qp->type == ORNIC_QPT_GSI ? BTH_GSI_QPN : qp->handle;
	if (!qp_init(qp))
		return ORNIC_ST_OK;
	table_del(&c->dev->qps, qp->handle);
	return ORNIC_ST_NO_RESOURCE;
}

/* Count the references of a queue pair. */
static void qp_hold(struct qp *qp)
{
	if (qp->pd)
		qp->pd->users++;
	if (qp->xrcd)
		qp->xrcd->users++;
	counter_set_use(qp, counter_set_get(qp->dev, le32toh(qp->attr.counter_set)));
	if (qp->scq)
		qp->scq->users++;
	if (qp->rcq)
		qp->rcq->users++;
	if (qp->srq)
		qp->srq->users++;
	if (qp->type == ORNIC_QPT_GSI)
		qp->dev->port.gsi = qp;
}

static void qp_unhold(struct qp *qp)
{
	if (qp->pd)
		qp->pd->users--;
	if (qp->xrcd)
		qp->xrcd->users--;
	counter_set_use(qp, NULL);
	if (qp->scq)
		qp->scq->users--;
	if (qp->rcq)
		qp->rcq->users--;
	if (qp->srq)
		qp->srq->users--;
	if (qp->type == ORNIC_QPT_GSI)
		qp->dev->port.gsi = NULL;
}

uint8_t cmd_qp_create(struct command *c)
{
	const struct ornic_qp_create_cmd *in = c->in;
	uint8_t st = qp_check(c, in);
	struct qp *qp;

	if (st)
		return st;
	qp = account_alloc(&c->dev->account, sizeof(*qp));
	if (!qp)
		return ORNIC_ST_NO_RESOURCE;
	qp_attributes(c->dev, in, qp);
	st = qp_references(c, in, qp);
	st = st ?: qp_ring(c, &qp->sq, &in->sq_record, &in->sq_pages);
	st = st ?: qp_ring(c, &qp->rq, &in->rq_record, &in->rq_pages);
	st = st ?: qp_start(c, qp);
	if (!st) {
		qp_hold(qp);
		return ORNIC_ST_OK;
	}
	qp_free_rings(c->dev, qp);
	account_free(&c->dev->account, qp, sizeof(*qp));
	return st;
}

void qp_release(struct device *dev, uint32_t number, void *obj)
{
	struct qp *qp = obj;

	qp_fini(qp);
	qp_unhold(qp);
	table_del(&dev->qps, number);
	qp_free_rings(dev, qp);
	account_free(&dev->account, qp, sizeof(*qp));
}

/* Windows that are unbound in one iteration when their queue pair is destroyed */
#define UNBIND_WORK	512

/*
 * Unbind the windows of a queue pair that is to be destroyed: it may have all keys of the function.
 * In RESET it binds no further ones.
 */
static bool qp_unbind(struct command *c, struct qp *qp)
{
	if (LIST_EMPTY(&qp->windows))
		return true;
	if (qp->state != ORNIC_QPS_RESET)
		qp_set_state(qp, ORNIC_QPS_RESET);
	progress_charge(c->f, PROGRESS_WORK);
	return memop_unbind_some(qp, UNBIND_WORK);
}

uint8_t cmd_qp_destroy(struct command *c)
{
	struct qp *qp = table_get(&c->dev->qps, c->number);

	if (!qp)
		return ORNIC_ST_BAD_NUMBER;
	if (qp->memberships || qp->rules)
		return ORNIC_ST_BUSY;
	if (!qp_unbind(c, qp))
		return COMMAND_MORE;
	qp_release(c->dev, c->number, qp);
	device_forget_events(c->dev, EVENTS_QP, c->number);
	return ORNIC_ST_OK;
}
