/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Send side of connections. UC uses only its window and sequence numbers. For RC and XRC, this is
 * also what sending (requester.c), acknowledgements (ack.c) and retries (retry.c) share.
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
/** REQUESTER_PSN_WINDOW - most PSNs in flight: only within half of their space can old be told from new */
#define REQUESTER_PSN_WINDOW	((1 << 23) - 1)
/**
 * REQUESTER_REMOTE_WINDOW - most PSNs in flight to a remote peer: one that is no device of this
 * daemon or that is behind a rate-limited link
 *
 * A burst has to fit into the buffers of a network. Soft-RoCE has the same bound.
 */
#define REQUESTER_REMOTE_WINDOW	128

/**
 * struct requester - send side: work requests in flight, and sequence numbers for RC and UC. Members
 * about answers are for RC only.
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
 * @remote:	the last packet went to a remote peer, see REQUESTER_REMOTE_WINDOW
 * @rewound:	retransmission is due and has not begun; the timeout starts when it does
 * @rnr_nak:	an RNR NAK arrived, and since then nothing was acknowledged or sent
 * @went_back:	a reported loss started a retransmission, and since then nothing was acknowledged
 * @retry_left:	retries until RETRY_EXC
 * @rnr_left:	RNR retries until RNR_RETRY_EXC
 * @retransmits: PSNs retransmitted since the queue pair was connected
 * @ssn:	number of the youngest message fetched, as the peer counts messages (MSN)
 * @limited:	the peer reports credits: how many receives it has
 * @limit:	if @limited: number of the last message that has a credit
 * @rtt_seq:	the ACK of all PSNs before this one ends a measurement of the round trip time
 * @rtt_sent:	when that measurement began, ns; 0: none runs
 * @rtt:	smoothed round trip time, ns; 0: unknown
 * @deadline:	when the peer must have answered, ns
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

/* wqe_end() - one past the last sequence number of @w */
static inline uint32_t wqe_end(const struct wqe *w)
{
	return w->psn + w->npsn;
}

/* requester.c */

/* requester_start() - begin a connection at the PSN of the attributes, on entering RTS from RTR */
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

/* requester_acked() - everything before @seq has arrived: complete the work requests that end there */
void requester_acked(struct qp *qp, uint32_t seq);

/* requester_retire() - complete finished work requests from the head on, in order */
void requester_retire(struct qp *qp);

/* requester_fail() - complete the oldest work request with @status and put the queue pair into ERR */
void requester_fail(struct qp *qp, uint8_t status, uint32_t syndrome);

/* retry.c */

/* requester_sending() - note that a packet goes out: a RNR wait is over, and the ACK timer runs */
void requester_sending(struct qp *qp);

/* requester_progress() - note that the peer made progress: reset retry counts and timeout */
void requester_progress(struct qp *qp);

/* requester_rewind() - retransmit from @seq on */
void requester_rewind(struct qp *qp, uint32_t seq);

/*
 * requester_retry() - the peer reported a loss: go back to the oldest unacknowledged PSN, or fail if
 * no retry is left. All reports of one loss use one retry.
 */
void requester_retry(struct qp *qp, uint32_t syndrome);

/* requester_rnr() - the peer had no receive for the message at @seq: wait by its @timer code */
void requester_rnr(struct qp *qp, uint32_t seq, uint8_t timer);

void requester_timers_init(struct qp *qp);

#endif /* ORNICD_ENGINE_REQUESTER_H */
