/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs in the data path.
 *
 * dev/qp.c writes attributes while it executes a command; all other members belong to the engine.
 * State changes go through qp_set_state(). Other headers describe the two halves of the transport
 * (requester.h, responder.h), its types (uc.h, ud.h, raw.h), work requests (wqe.h, rwqe.h) and
 * their completions (cq.h).
 */
#ifndef ORNICD_ENGINE_QP_H
#define ORNICD_ENGINE_QP_H

#include "backlog.h"
#include "cc.h"
#include "device.h"
#include "rate.h"
#include "requester.h"
#include "responder.h"
#include "wq.h"
#include "../mem/syncer.h"
#include "../packet/bth.h"

#include <ornic/qp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct mr;
struct srq;
struct xrcd;

enum qp_sched {
	QP_ASLEEP,	/* on no list until a doorbell or a packet brings work */
	QP_ACTIVE,	/* on the engine's active list */
	QP_WATCHED,	/* on its watch list */
};

/**
 * struct qp - a queue pair
 * @dev, @handle, @wire_qpn, @type, @flags, @owner, @dbpage, @pd, @scq, @rcq, @xrcd: as created
 * @srq:	queue of the receives, instead of @rq: as created; XRC_TGT: SRQ of the last message
 *		begun, whose protection domain applies
 * @max_inline:	inline bytes per work request
 * @state:	enum ornic_qp_state
 * @syndrome:	reason for ERR or SQE
 * @sq, @rq:	work queues
 * @access:	ORNIC_ACCESS_REMOTE_* granted to the peer
 * @pkey_index, @qkey, @port: attributes
 * @path, @dest_qpn, @mtu_code, @rq_psn, @sq_psn, @timeout, @retry_cnt, @rnr_retry,
 * @min_rnr_timer, @max_rd_atomic, @max_dest_rd_atomic: attributes as in qp_modify
 * @sqd_notify:	raise SQ_DRAINED when the SQ has drained
 * @sqd_raised:	SQ_DRAINED was raised
 * @comm_est:	COMM_EST was raised
 * @fatal_raised: QP_FATAL was raised (ORN-EQ-13)
 * @request_raised: QP_REQ_ERR or QP_ACCESS_ERR was raised (ORN-EQ-13)
 * @steered:	RAW: number of the last frame that it received by a rule (frames of struct port)
 * @rules:	RAW: number of receive rules and RSS groups that name it
 * @req, @resp:	transport
 * @flush:	wait for the data of @resp's FLUSH to become persistent
 * @rate:	send rate
 * @requests_first: RC, XRC: requests go before answers when @rate opens the next time
 * @cc:		congestion control
 * @windows:	memory windows bound to it (MW2B)
 * @backlog:	UD: datagrams that wait for receives
 * @memberships: number of multicast groups that it is in
 * @flush_end:	after recovery from SQE: @flush_sq is for work requests before this index
 * @last_wqe:	with an SRQ, in ERR: LAST_WQE is to be raised (ORN-SRQ-6)
 * @flush_sq, @flush_rq: that queue completes all posted work requests with WR_FLUSH_ERR
 * @sched:	engine list that it is on
 * @watch_until: end of watching, ns
 * @sched_link:	engine list
 * @ack_link:	engine's list of queue pairs that owe an ACK
 * @attr:	as created, for checks and queries
 * @set:	counter set, or NULL
 */
struct qp {
	struct device *dev;
	uint32_t handle;
	uint32_t wire_qpn;
	uint8_t type;
	uint32_t flags;
	uint32_t owner;
	uint32_t dbpage;
	struct pd *pd;
	struct cq *scq;
	struct cq *rcq;
	struct srq *srq;
	struct xrcd *xrcd;
	uint16_t max_inline;
	uint8_t state;
	uint32_t syndrome;
	struct wq sq;
	struct wq rq;

	uint32_t access;
	uint16_t pkey_index;
	uint32_t qkey;
	uint8_t port;
	struct ornic_path path;
	uint32_t dest_qpn;
	uint8_t mtu_code;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	bool sqd_notify;
	bool sqd_raised;
	bool comm_est;
	bool fatal_raised;
	bool request_raised;
	uint64_t steered;
	uint32_t rules;

	struct requester req;
	struct responder resp;
	struct sync_wait flush;
	struct rate rate;
	bool requests_first;
	struct cc cc;
	LIST_HEAD(, mr) windows;
	struct backlog backlog;
	uint32_t memberships;

	uint32_t flush_end;
	bool last_wqe;
	bool flush_sq;
	bool flush_rq;
	enum qp_sched sched;
	uint64_t watch_until;
	TAILQ_ENTRY(qp) sched_link;
	TAILQ_ENTRY(qp) ack_link;
	struct ornic_qp_create_cmd attr;
	struct counter_set *set;
};

/* qp_count() - count for the device and, if the queue pair has one, in its counter set */
static inline void qp_count(struct qp *qp, enum counter c, uint64_t n)
{
	qp->dev->cnt[c] += n;
	if (qp->set)
		qp->set->cnt[c] += n;
}

static inline uint32_t qp_mtu(const struct qp *qp)
{
	return 128u << qp->mtu_code;
}

/* qp_max_payload() - return the most bytes of a packet; pacing reduces them, to one MTU at least */
static inline uint32_t qp_max_payload(const struct qp *qp)
{
	return qp->rate.most > qp_mtu(qp) ? qp->rate.most : qp_mtu(qp);
}

/* qp_reliable() - return true if its requests are acknowledged, and retransmitted until they are */
static inline bool qp_reliable(const struct qp *qp)
{
	return qp->type == ORNIC_QPT_RC || qp->type == ORNIC_QPT_XRC_INI ||
	       qp->type == ORNIC_QPT_XRC_TGT;
}

/* qp_connected() - return true if it has one peer and uses sequence numbers */
static inline bool qp_connected(const struct qp *qp)
{
	return qp_reliable(qp) || qp->type == ORNIC_QPT_UC;
}

/* qp_transport() - return BTH_TRANSPORT_* of its packets */
static inline uint8_t qp_transport(const struct qp *qp)
{
	switch (qp->type) {
	case ORNIC_QPT_RC:
		return BTH_TRANSPORT_RC;
	case ORNIC_QPT_UC:
		return BTH_TRANSPORT_UC;
	case ORNIC_QPT_XRC_INI:
	case ORNIC_QPT_XRC_TGT:
		return BTH_TRANSPORT_XRC;
	default:
		return BTH_TRANSPORT_UD;
	}
}

/**
 * qp_init() - initialise the data-path state of a queue pair, in state RESET
 * @qp: queue pair whose attributes are filled in and whose rings are loaded
 *
 * Return: 0 or -ENOMEM.
 */
int qp_init(struct qp *qp);

/* qp_fini() - stop @qp and free its data-path state; no CQE, event or DMA follows */
void qp_fini(struct qp *qp);

/*
 * qp_set_state() - enter state @next (ORN-QP-3). The caller has checked the transition and set the
 * attributes. If @next is the current state, only attributes changed.
 */
void qp_set_state(struct qp *qp, uint8_t next);

/*
 * qp_fail() - enter ERR because of an error in the data path, and raise @event (enum ornic_event;
 * 0 = none) with @syndrome. If the state is ERR already, only raise the event, if it is the first
 * of its kind (ORN-EQ-13).
 */
void qp_fail(struct qp *qp, uint8_t event, uint32_t syndrome, uint32_t wqe_index);

/*
 * qp_stop_users() - put the queue pairs of failed CQs and SRQs of @dev into ERR
 * It has to visit all queue pairs, and visits some of them per call, one call per turn. A CQ or SRQ
 * that fails meanwhile is searched for afterwards. Until a queue pair is found it may go on working;
 * its completions for the failed CQ are lost, as ORN-CQ-10 demands.
 */
void qp_stop_users(struct device *dev);

/* qp_stops_users() - return true if qp_stop_users() has something to do */
static inline bool qp_stops_users(const struct device *dev)
{
	return dev->running && (dev->failed || dev->stopping);
}

/* qp_fail_sends() - enter SQE because a queue pair without acknowledgements failed to send */
void qp_fail_sends(struct qp *qp, uint32_t syndrome);

/*
 * qp_set_rate() - limit the send rate to @kbps (kbit/s) from the next packet on, 0 for no limit;
 * @burst and @packet are bytes, 0 for the defaults
 */
void qp_set_rate(struct qp *qp, uint32_t kbps, uint32_t burst, uint16_t packet);

/* qp_doorbell() - handle a doorbell of the send queue, or of the receive queue if @rq */
void qp_doorbell(struct qp *qp, bool rq);

/* qp_run() - work for one turn. Return: true if more work is ready. */
bool qp_run(struct qp *qp);

/* qp_watchable() - return true if its empty rings have to be polled for a while */
bool qp_watchable(const struct qp *qp);
/* qp_has_news() - return true if a ring has new entries or is malformed, so that it has to run */
bool qp_has_news(struct qp *qp);
/* qp_sleep() - ask for doorbells. Return: false if entries were posted meanwhile (ORN-RNG-6). */
bool qp_sleep(struct qp *qp);

#endif /* ORNICD_ENGINE_QP_H */
