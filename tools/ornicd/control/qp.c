// SPDX-License-Identifier: GPL-2.0
/*
 * Methods on queue pairs.
 */
#include "method.h"

#include "../dev/function.h"
#include "../engine/psn.h"
#include "../engine/qp.h"
#include "../engine/srq.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

/** QP_LIST - most queue pairs in one answer, because the engine stands still meanwhile */
#define QP_LIST	32

/* Return the name of a queue pair's type; QP_CREATE accepts no other type. */
static const char *type_name(uint8_t type)
{
	static const char *const names[] = {
		[ORNIC_QPT_GSI] = "gsi",
		[ORNIC_QPT_RC] = "rc",
		[ORNIC_QPT_UC] = "uc",
		[ORNIC_QPT_UD] = "ud",
		[ORNIC_QPT_RAW] = "raw",
		[ORNIC_QPT_XRC_INI] = "xrc_ini",
		[ORNIC_QPT_XRC_TGT] = "xrc_tgt",
	};

	return names[type];
}

static const char *state_name(uint8_t state)
{
	static const char *const names[] = {
		[ORNIC_QPS_RESET] = "reset",
		[ORNIC_QPS_INIT] = "init",
		[ORNIC_QPS_RTR] = "rtr",
		[ORNIC_QPS_RTS] = "rts",
		[ORNIC_QPS_SQD] = "sqd",
		[ORNIC_QPS_SQE] = "sqe",
		[ORNIC_QPS_ERR] = "err",
	};

	return names[state];
}

/* Return true if the queue pair has a peer. */
static bool is_connected(const struct qp *qp)
{
	return qp_connected(qp) && qp->state >= ORNIC_QPS_RTR && qp->dest_qpn;
}

static bool can_send(const struct qp *qp)
{
	return is_connected(qp) && qp->state >= ORNIC_QPS_RTS && qp->sq.present;
}

static json_t *address(const uint8_t gid[16])
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	char text[INET6_ADDRSTRLEN];

	if (!memcmp(gid, v4, sizeof(v4)))
		inet_ntop(AF_INET, gid + sizeof(v4), text, sizeof(text));
	else
		inet_ntop(AF_INET6, gid, text, sizeof(text));
	return json_string(text);
}

static void set(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer(value));
}

/* Return the rate in kbit/s that rate limit and congestion control allow; 0: unlimited. */
static uint32_t rate_bound(const struct qp *qp)
{
	uint32_t kbps = qp->rate.kbps;

	if (qp->cc.limiting && (!kbps || qp->cc.rate < kbps))
		kbps = qp->cc.rate;
	return kbps;
}

/* Describe a queue pair for qp.list. */
static json_t *summary(const struct qp *qp)
{
	uint32_t rate;
	json_t *o = json_pack("{s:i, s:s, s:s, s:i}", "qpn", qp->wire_qpn,
			      "type", type_name(qp->type), "state", state_name(qp->state),
			      "outstanding", qp->sq.cons - qp->sq.done);

	if (is_connected(qp)) {
		json_object_set_new(o, "peer", address(qp->path.dgid));
		set(o, "peer_qpn", qp->dest_qpn);
		set(o, "expected_psn", qp->resp.epsn & BTH_PSN_MASK);
	}
	if (can_send(qp) && !qp_reliable(qp))
		set(o, "next_psn", qp->req.next_psn & BTH_PSN_MASK);
	if (can_send(qp) && qp_reliable(qp)) {
		set(o, "next_psn", qp->req.sent_psn & BTH_PSN_MASK);
		set(o, "retransmits", qp->req.retransmits);
		set(o, "acked_psn", qp->req.una & BTH_PSN_MASK);
		if (qp->req.rtt)
			set(o, "rtt_ns", qp->req.rtt);
	}
	rate = rate_bound(qp);
	if (rate)
		set(o, "rate_kbps", rate);
	return o;
}

static json_t *path_of(const struct qp *qp)
{
	const struct ornic_path *path = &qp->path;
	const struct ornic_gid_entry *gid = device_gid(qp->dev, le16toh(path->sgid_index));
	json_t *o = json_pack("{s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:i}",
			      "address", address(path->dgid), "mac", control_mac(path->dmac),
			      "sgid_index", le16toh(path->sgid_index),
			      "flow_label", le32toh(path->flow_label),
			      "traffic_class", path->traffic_class,
			      "hop_limit", path->hop_limit, "sl", path->sl,
			      "udp_sport", le16toh(path->udp_sport),
			      "mtu", qp_mtu(qp));

	if (gid)
		json_object_set_new(o, "own_address", address(gid->gid));
	return o;
}

static json_t *requester_of(const struct qp *qp)
{
	const struct requester *r = &qp->req;

	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:b}",
			 "in_flight", r->sent_psn - r->una,
			 "window", r->tail - r->head,
			 "reads", r->reads,
			 "max_rd_atomic", qp->max_rd_atomic,
			 "timeout", qp->timeout,
			 "retry_cnt", qp->retry_cnt, "retry_left", r->retry_left,
			 "rnr_retry", qp->rnr_retry, "rnr_left", r->rnr_left,
			 "remote", r->remote,
			 "waits_rnr", timer_armed(&r->rnr_timer),
			 "waits_rate", rate_waits(&qp->rate));
}

static json_t *responder_of(const struct qp *qp)
{
	const struct responder *r = &qp->resp;

	return json_pack("{s:i, s:i, s:i, s:i, s:b}", "msn", r->msn & BTH_PSN_MASK,
			 "resources", r->rd_next - r->rd_answer,
			 "max_rd_atomic", qp->max_dest_rd_atomic,
			 "min_rnr_timer", qp->min_rnr_timer,
			 "waits_flush", r->held);
}

static json_t *queue_of(const struct wq *q)
{
	return json_pack("{s:i, s:I, s:I, s:b}", "entries", 1 << q->log, "fetched",
			 (json_int_t)q->cons, "done", (json_int_t)q->done, "bad", q->bad);
}

static json_t *rate_of(const struct qp *qp)
{
	return json_pack("{s:i, s:I, s:i, s:i}", "kbps", qp->rate.kbps, "burst",
			 (json_int_t)qp->rate.burst, "packet", qp->rate.packet, "static_rate",
			 qp->path.static_rate);
}

/* Describe a queue pair for qp.show. */
static json_t *details(const struct qp *qp)
{
	json_t *o = summary(qp);

	set(o, "handle", qp->handle);
	set(o, "owner", qp->owner);
	set(o, "syndrome", qp->syndrome);
	set(o, "send_cq", le32toh(qp->attr.send_cq));
	set(o, "recv_cq", le32toh(qp->attr.recv_cq));
	if (qp->srq)
		set(o, "srq", qp->srq->number);
	if (qp->type == ORNIC_QPT_UD || qp->type == ORNIC_QPT_GSI)
		set(o, "memberships", qp->memberships);
	if (qp->sq.present)
		json_object_set_new(o, "sq", queue_of(&qp->sq));
	if (qp->rq.present)
		json_object_set_new(o, "rq", queue_of(&qp->rq));
	json_object_set_new(o, "rate", rate_of(qp));
	if (is_connected(qp))
		json_object_set_new(o, "path", path_of(qp));
	if (can_send(qp) && qp_reliable(qp))
		json_object_set_new(o, "requester", requester_of(qp));
	if (is_connected(qp) && qp_reliable(qp))
		json_object_set_new(o, "responder", responder_of(qp));
	return o;
}

static json_t *list(struct control_call *call)
{
	const struct attachment *a;
	json_int_t from = 0;
	const char *name;
	json_t *all, *answer;
	uint32_t number;
	struct qp *qp;

	if (control_params(call, "{s:s, s?I}", "device", &name, "from", &from))
		return NULL;
	if (from < 0 || from > UINT32_MAX)
		return control_error(call, CONTROL_PARAMS,
				     "params: from must be a queue pair's handle");
	a = control_device(call, name);
	if (!a)
		return NULL;
	all = json_array();
	number = from;
	for (int i = 0; i < QP_LIST; i++, number++) {
		qp = table_next(&a->function->dev.qps, &number);
		if (!qp)
			break;
		json_array_append_new(all, summary(qp));
	}
	answer = json_pack("{s:o}", "qps", all);
	if (table_next(&a->function->dev.qps, &number))
		set(answer, "next", number);
	return answer;
}

static json_t *show(struct control_call *call)
{
	const struct attachment *a;
	const struct device *dev;
	const struct qp *qp;
	const char *name;
	json_int_t qpn;

	if (control_params(call, "{s:s, s:I}", "device", &name, "qpn", &qpn))
		return NULL;
	a = control_device(call, name);
	if (!a)
		return NULL;
	dev = &a->function->dev;
	qp = qpn == BTH_GSI_QPN ? dev->port.gsi :
	     qpn > 0 && qpn <= BTH_PSN_MASK ? table_get(&dev->qps, qpn) : NULL;
	if (!qp)
		return control_error(call, CONTROL_NOT_FOUND,
				     "device %s has no queue pair %lld", name, (long long)qpn);
	return details(qp);
}

const struct control_method control_qp_methods[] = {
	{ "qp.list", list },
	{ "qp.show", show },
	{ },
};
