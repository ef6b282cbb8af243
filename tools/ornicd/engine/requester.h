/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Send side of connections. UC uses only the window and sequence numbers. RC and XRC also have
 * acknowledgements (ack.c) and retries (retry.c).
 *
 * The window holds work requests from @head (oldest not completed) over @cur (next to send from)
 * to @tail. Sequence numbers (psn.h) from @una to @sent_psn are on the wire.
 */
#ifndef ORNICD_ENGINE_REQUESTER_H
#define ORNICD_ENGINE_REQUESTER_H

#include "psn.h"
#include "wqe.h"
#include "../timer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet;
struct qp;

/** REQUESTER_WINDOW - most work requests in flight per queue pair */
#define REQUESTER_WINDOW	64
/** REQUESTER_PSN_WINDOW - most PSNs in flight: half of the PSNs, so that old and new ones differ */
#define REQUESTER_PSN_WINDOW	((1 << 23) - 1)
/**
 * REQUESTER_REMOTE_WINDOW - most PSNs in flight to a remote peer: one that is no device of this
 * daemon or that is behind a rate-limited link
 *
 * A burst has to fit into the buffers of a network. Soft-RoCE has the same bound
 * (RXE_MAX_UNACKED_PSNS of Linux 6.12 and 7.2). READs do not wait for it, because the peer sends
 * their responses.
 */
#define REQUESTER_REMOTE_WINDOW	128

/**
 * struct requester - send side: work requests in flight, and sequence numbers for RC and UC.
 * Members for acknowledgements are used by RC and XRC only.
 * @win:	window of struct wqe, one slot except for RC and XRC; NULL without SQ
 * @wqe_bytes:	bytes per slot of @win
 * @mask:	slots of @win - 1
 * @head:	oldest work request not completed; free-running window index
 * @cur:	RC, XRC: work request to send from next; undefined in ERR
 * @tail:	one past the youngest work request fetched
 * @next_psn:	PSN of the next work request fetched
 * @una:	oldest PSN not acknowledged
 * @sent_psn:	one past the highest PSN ever sent
 * @reads:	reads and atomics that were sent and are not answered in full
 * @unread:	reads and atomics in the window that are not answered in full
 * @remote:	the last packet went to a remote peer, see REQUESTER_REMOTE_WINDOW
 * @rewound:	a retransmission is due and has not begun; the timeout starts when it begins
 * @rnr_nak:	an RNR NAK arrived, and nothing was acknowledged or sent since
 * @went_back:	a reported loss started a retransmission, and nothing was acknowledged since
 * @retry_left:	retries until RETRY_EXC
 * @rnr_left:	RNR retries until RNR_RETRY_EXC
 * @retransmits: PSNs retransmitted since the queue pair was connected
 * @ssn:	number of the youngest message fetched, as the peer counts messages (MSN)
 * @limited:	the peer reports credits, the number of receives that it has
 * @limit:	if @limited: number of the last message that has a credit
 * @rtt_seq:	the ACK of all PSNs before this one ends a measurement of the round trip time
 * @rtt_sent:	start of the measurement, ns; 0: none runs
 * @rtt:	smoothed round trip time, ns; 0: unknown
 * @deadline:	time of the local ACK timeout, ns
 * @ack_timer:	local ACK timeout; fires at or before @deadline
 * @rnr_timer:	wait after an RNR NAK; while it is armed, nothing may be sent
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
	bool remote;
	bool rewound;
	bool rnr_nak;
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

static inline struct wqe *requester_wqe(const struct requester *r, uint32_t i)
{
	return (struct wqe *)(r->win + (size_t)(i & r->mask) * r->wqe_bytes);
}

/* wqe_end() - return the sequence number after the last one of @w */
static inline uint32_t wqe_end(const struct wqe *w)
{
	return w->psn + w->npsn;
}

/* requester.c */

/* requester_start() - begin at the PSN of the attributes, when RTS is entered from RTR */
void requester_start(struct qp *qp);
/* requester_stop() - disarm the timers of the send side */
void requester_stop(struct qp *qp);

/* requester_run() - send for one turn. Return: true if more work is ready. */
bool requester_run(struct qp *qp);

/*
 * requester_build() - fill @p with the next SEND or WRITE packet of @w
 * Return: false if a key does not allow it; then @w has status and syndrome.
 */
bool requester_build(struct qp *qp, struct wqe *w, struct packet *p);

/* ack.c */

/* requester_receive() - process an ACK, NAK or response that arrived for @qp */
void requester_receive(struct qp *qp, const struct packet *p);

/* requester_acked() - note that the peer received everything before @seq; complete work requests */
void requester_acked(struct qp *qp, uint32_t seq);

/* requester_retire() - complete finished work requests from the head on, in order */
void requester_retire(struct qp *qp);

/*
 * requester_fail() - complete the oldest work request with @status and put the queue pair into ERR
 */
void requester_fail(struct qp *qp, uint8_t status, uint32_t syndrome);

/* retry.c */

/* requester_sending() - note that a packet is sent: the RNR wait is over, start the ACK timer */
void requester_sending(struct qp *qp);

/* requester_progress() - note that the peer made progress: reset retry counts and timeout */
void requester_progress(struct qp *qp);

/* requester_rewind() - retransmit from @seq on */
void requester_rewind(struct qp *qp, uint32_t seq);

/*
 * requester_retry() - process a loss that the peer reported: go back to the oldest unacknowledged
 * PSN, or fail with @syndrome if no retry is left. All reports of one loss use one retry.
 */
void requester_retry(struct qp *qp, uint32_t syndrome);

/*
 * requester_rnr() - process an RNR NAK for @seq: wait as long as its @timer code says, then retry
 */
void requester_rnr(struct qp *qp, uint32_t seq, uint8_t timer);

/* requester_timers_init() - initialise the timers, which are not armed */
void requester_timers_init(struct qp *qp);

#endif /* ORNICD_ENGINE_REQUESTER_H */
