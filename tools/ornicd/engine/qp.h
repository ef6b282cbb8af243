/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs in the data path.
 *
 * Attributes are written by dev/qp.c while it executes a command; everything
 * else belongs to the engine. State changes go through qp_set_state().
 */
#ifndef ORNICD_ENGINE_QP_H
#define ORNICD_ENGINE_QP_H

#include "backlog.h"
#include "cc.h"
#include "cq.h"
#include "device.h"
#include "rate.h"
#include "../timer.h"
#include "../mem/syncer.h"
#include "umem.h"
#include "wq.h"
#include "wqe.h"
#include "../packet/bth.h"
#include "../packet/packet.h"

#include <ornic/qp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct srq;
struct xrcd;

/** QP_MAX_RD_ATOMIC - responder resources and outstanding reads per queue pair */
#define QP_MAX_RD_ATOMIC	16

/**
 * struct requester - send side: work requests in flight; sequence numbers for RC and UC,
 * all about answers for RC only
 * @win:	window of struct wqe, @wqe_bytes each; one but for RC; NULL without SQ
 * @wqe_bytes:	stride of @win
 * @mask:	slots of @win - 1
 * @head:	oldest work request not completed; free-running window index
 * @cur:	next to send (from)
 * @tail:	one past the youngest fetched
 * @next_psn:	PSN of the next work request fetched
 * @una:	oldest PSN not acknowledged
 * @sent_psn:	one past the highest PSN ever sent
 * @reads:	reads and atomics sent and not answered in full
 * @unread:	reads and atomics in the window and not answered in full
 * @far:	the peer is not a device of this daemon or behind a slow link, as of the last packet
 * @rewound:	it is to send again and has not begun: the timeout begins when it does
 * @refused:	an RNR NAK came; there was no progress since, and nothing sent
 * @went_back:	a loss was reported and acted upon; there was no progress since
 * @retry_left:	retries until RETRY_EXC
 * @rnr_left:	RNR retries until RNR_RETRY_EXC
 * @retransmits: PSNs sent again since it was connected
 * @ssn:	number of the youngest message fetched, as the peer counts messages (MSN)
 * @limited:	the peer says how many receives it has
 * @limit:	then the last message that has one
 * @rtt_seq:	a far peer's ACK of what is before it tells the round trip time
 * @rtt_sent:	when that was sent, ns; 0: nothing is under way that could tell
 * @rtt:	smoothed round trip time, ns; 0: unknown
 * @deadline:	when the peer must have answered
 * @ack_timer:	local ACK timeout; fires at or before @deadline
 * @rnr_timer:	waits out an RNR NAK; armed = nothing may be sent
 */
struct requester {
	uint8_t *win;
	uint32_t wqe_bytes;
	uint32_t mask;
	uint32_t head;
	uint32_t cur;
	uint32_t tail;
	uint32_t next_psn;
	uint32_t una;
	uint32_t sent_psn;
	uint32_t reads;
	uint32_t unread;
	bool far;
	bool rewound;
	bool refused;
	bool went_back;
	uint8_t retry_left;
	uint8_t rnr_left;
	bool limited;
	uint32_t ssn;
	uint32_t limit;
	uint32_t rtt_seq;
	uint64_t rtt_sent;
	uint64_t rtt;
	uint64_t retransmits;
	uint64_t deadline;
	struct timer ack_timer;
	struct timer rnr_timer;
};

/**
 * struct rd_resource - responder: a READ, atomic, FLUSH or ATOMIC WRITE that may be asked for again
 * @opcode:	BTH opcode of the request
 * @psn:	first PSN of the answer
 * @npsn:	PSNs of the answer
 * @from:	where the answer begins that is under way: 0, or what was asked for again
 * @sent:	PSNs of the answer sent
 * @value:	atomic: what memory held before
 * @va:		READ: address
 * @rkey:	READ: key
 * @pd:		domain that the key must be of
 * @len:	READ: bytes; 0 for FLUSH and ATOMIC WRITE, which are answered alike
 * @msn:	MSN to answer with
 */
struct rd_resource {
	uint8_t opcode;
	uint32_t psn;
	uint32_t npsn;
	uint32_t from;
	uint32_t sent;
	uint64_t value;
	uint64_t va;
	uint32_t rkey;
	uint32_t pd;
	uint32_t len;
	uint32_t msn;
};

enum resp_message {
	RESP_IDLE,	/* between messages */
	RESP_SEND,
	RESP_WRITE,
};

/**
 * struct responder - receive side of connections; all about answers for RC only
 * @epsn:	PSN expected next
 * @msn:	messages completed
 * @message:	what is in progress
 * @recv:	receive work request of the SEND in progress
 * @offset:	bytes of the message placed
 * @va:		WRITE: next address
 * @rkey:	WRITE: key
 * @left:	WRITE: bytes announced and not yet placed
 * @nak_sent:	the gap before @epsn was reported once
 * @ack_due:	an ACK waits until the reads before it are answered, or for others to join it
 * @ack_queued:	the engine will ask for it
 * @nak:	AETH syndrome of a NAK that waits likewise; 0 = none
 * @held:	the last resource is a FLUSH whose data is on its way to persistent memory:
 *	neither is it answered nor anything behind it executed
 * @failed:	a request failed: nothing more is executed, ERR follows the NAK
 * @fail_event:	event to raise then
 * @fail_syndrome: and why
 * @rd:		resources, a ring
 * @rd_first:	oldest resource, free-running
 * @rd_next:	next free one
 * @rd_answer:	first resource not answered in full; = @rd_next if none
 * @rd_fresh:	first resource never answered in full: @rd_answer, or later in a replay
 */
struct responder {
	uint32_t epsn;
	uint32_t msn;
	enum resp_message message;
	struct rwqe recv;
	uint64_t offset;
	uint64_t va;
	uint32_t rkey;
	uint64_t left;
	bool nak_sent;
	bool ack_due;
	bool ack_queued;
	uint8_t nak;
	bool held;
	bool failed;
	uint8_t fail_event;
	uint32_t fail_syndrome;
	struct rd_resource rd[QP_MAX_RD_ATOMIC];
	uint32_t rd_first;
	uint32_t rd_next;
	uint32_t rd_answer;
	uint32_t rd_fresh;
};

/**
 * struct raw_meta - what a rule knows about a frame, for the completion
 * @flow_tag:	of the rule
 * @rss_hash:	hash that chose the queue pair
 * @rss_type:	ORNIC_RSS_TYPE_*; 0 if nothing was hashed
 */
struct raw_meta {
	uint32_t flow_tag;
	uint32_t rss_hash;
	uint8_t rss_type;
};

enum qp_sched {
	QP_ASLEEP,	/* only a doorbell or a packet brings work */
	QP_ACTIVE,	/* on the engine's active list */
	QP_WATCHED,	/* on its watch list */
};

/**
 * struct qp - a queue pair
 * @dev, @handle, @wire_qpn, @type, @flags, @owner, @dbpage, @pd, @scq, @rcq, @xrcd: as created
 * @srq:	where receives come from instead of @rq: as created; XRC_TGT: SRQ of the message
 *	last begun, which also has the domain
 * @max_inline:	inline bytes per work request
 * @state:	enum ornic_qp_state
 * @syndrome:	why ERR or SQE
 * @sq, @rq:	work queues
 * @access:	ORNIC_ACCESS_REMOTE_* granted to the peer
 * @pkey_index, @qkey, @port: attributes
 * @path, @dest_qpn, @mtu_code, @rq_psn, @sq_psn, @timeout, @retry_cnt, @rnr_retry,
 * @min_rnr_timer, @max_rd_atomic, @max_dest_rd_atomic: attributes as in qp_modify
 * @sqd_notify:	raise SQ_DRAINED when the SQ has drained
 * @sqd_told:	it was raised
 * @comm_est:	COMM_EST was raised
 * @told:	bit per enum ornic_event from CQ_ERR on: raised in ERR (ORN-EQ-13)
 * @req, @resp:	transport
 * @flush:	waits for the data of @resp's FLUSH
 * @rate:	how fast it may send
 * @cc:		congestion control
 * @memberships: multicast groups it is in
 * @windows:	memory windows bound on it (MW2B)
 * @steered:	RAW: the frame it got last, as struct port counts them
 * @rules:	RAW: receive rules and RSS groups that name it
 * @backlog: UD: datagrams that wait for receives
 * @last_wqe:	with an SRQ, in ERR: LAST_WQE is to be told (ORN-SRQ-6)
 * @flush_sq, @flush_rq: that queue completes everything posted with WR_FLUSH_ERR
 * @flush_end:	recovered from SQE: @flush_sq is for work requests before this index
 * @sched:	which engine list it is on
 * @watch_until: when watching ends
 * @sched_link:	engine list
 * @ack_link:	engine's list of those that owe an ACK
 * @attr:	as created, for checks and queries
 * @set:	counters of its own or shared with others, or NULL
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
	bool sqd_told;
	bool comm_est;
	uint8_t told;
	uint64_t steered;
	uint32_t rules;

	struct requester req;
	struct responder resp;
	struct sync_wait flush;
	struct rate rate;
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

/* qp_max_payload() - most bytes of a packet; who is held back sends smaller ones. */
static inline uint32_t qp_max_payload(const struct qp *qp)
{
	return qp->rate.most > qp_mtu(qp) ? qp->rate.most : qp_mtu(qp);
}

/* qp_reliable() - its requests are acknowledged, and sent again until they are */
static inline bool qp_reliable(const struct qp *qp)
{
	return qp->type == ORNIC_QPT_RC || qp->type == ORNIC_QPT_XRC_INI ||
	       qp->type == ORNIC_QPT_XRC_TGT;
}

/* qp_connected() - it talks to one peer, by sequence numbers */
static inline bool qp_connected(const struct qp *qp)
{
	return qp_reliable(qp) || qp->type == ORNIC_QPT_UC;
}

/* qp_transport() - BTH_TRANSPORT_* of its packets */
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

/*
 * qp_init() - data-path state of a queue pair whose attributes are filled in
 * (@type, @sq, @rq with memory loaded, @scq, @rcq, ...); state RESET.
 * qp_fini() - stop it and free that state; no CQE, event or DMA follows.
 * Return: 0 or -ENOMEM.
 */
int qp_init(struct qp *qp);
void qp_fini(struct qp *qp);

/*
 * qp_set_state() - enter @next, a legal transition with its attributes in place
 * (ORN-QP-3): starts, stops, flushes, re-reads indices. Same state: attributes changed.
 */
void qp_set_state(struct qp *qp, uint8_t next);

/*
 * qp_fail() - the data path found a reason to stop: ERR, @event (enum ornic_event;
 * 0 = none) with @syndrome. In ERR already: only the event.
 *
 * qp_fail_sends() - a message of a queue pair without acknowledgements could not be
 * sent: SQE.
 */
void qp_fail(struct qp *qp, uint8_t event, uint32_t syndrome, uint32_t wqe_index);
void qp_fail_sends(struct qp *qp, uint32_t syndrome);

/*
 * qp_set_rate() - limit how fast it sends; @kbps 0 for no limit, @burst and @packet 0 for the
 * defaults. Holds from the next packet on.
 */
void qp_set_rate(struct qp *qp, uint32_t kbps, uint32_t burst, uint16_t packet);

/* qp_doorbell() - the host rang for its send or receive queue. */
void qp_doorbell(struct qp *qp, bool rq);

/* qp_run() - work for one turn. Return: true if more work is there right now. */
bool qp_run(struct qp *qp);

/*
 * qp_watchable() - its rings are to be looked at for a while although they are empty
 * qp_has_news() - something was posted there (or a ring turned bad): run it
 * qp_sleep() - ask for doorbells; false: something was posted meanwhile (ORN-RNG-6)
 */
bool qp_watchable(const struct qp *qp);
bool qp_has_news(struct qp *qp);
bool qp_sleep(struct qp *qp);

/*
 * rwqe_fetch() - take the next receive, of the RQ or the SRQ. Return: 1 taken, 0 none posted,
 * negative: the work request or the ring is bad: the QP has been failed.
 */
int rwqe_fetch(struct qp *qp, struct rwqe *r);

/*
 * rwqe_skip() - take the next receive of the RQ unseen, to flush it. Return: 1 and its index, 0 none
 * posted, negative: the ring is bad.
 */
int rwqe_skip(struct qp *qp, uint32_t *index);

/*
 * wqe_fetch() - copy and judge the next send. Return: 1 (@w->status tells), 0 none
 * posted, negative: the ring is bad and the QP has been failed.
 */
int wqe_fetch(struct qp *qp, struct wqe *w);

/* complete_send() - @w is done as its status says: CQE if due, slots freed. */
void complete_send(struct qp *qp, struct wqe *w);

/*
 * complete_recv() - write a receive's CQE; @cqe carries what the transport knows
 * (byte_len, imm, flags, src_qp ...); queue, @index (of struct rwqe) and status are filled in.
 */
void complete_recv(struct qp *qp, uint32_t index, uint8_t opcode, uint8_t status,
		   uint32_t syndrome, struct ornic_cqe *cqe);

/* Data path per type; each returns true if more work is there right now. */
bool requester_run(struct qp *qp);		/* RC */
bool responder_run(struct qp *qp);		/* RC: read responses */
bool uc_run(struct qp *qp);			/* UC */
bool ud_run(struct qp *qp);			/* UD, GSI */
bool ud_catch_up(struct qp *qp);		/* UD, GSI: datagrams that waited */
bool raw_run(struct qp *qp);			/* RAW */

/* Packets in, from link.c */
void requester_receive(struct qp *qp, const struct packet *p);
void responder_receive(struct qp *qp, const struct packet *p);
void uc_receive(struct qp *qp, const struct packet *p);
void ud_receive(struct qp *qp, const struct packet *p);
void raw_receive(struct qp *qp, const struct packet *p, const struct raw_meta *meta);

/* Starting and stopping the transport */
void requester_start(struct qp *qp);
void requester_stop(struct qp *qp);
void responder_start(struct qp *qp);
void responder_stop(struct qp *qp);

#endif /* ORNICD_ENGINE_QP_H */
