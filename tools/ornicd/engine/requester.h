/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RC requester: what sending (requester.c), acknowledgements (ack.c) and
 * retries (retry.c) share.
 *
 * The window holds work requests from @head (oldest not completed) over @cur
 * (next to send from) to @tail. Sequence numbers (psn.h) from @una to @sent_psn
 * are on the wire.
 */
#ifndef ORNICD_ENGINE_REQUESTER_H
#define ORNICD_ENGINE_REQUESTER_H

#include "psn.h"
#include "qp.h"

/** REQUESTER_WINDOW - most work requests in flight per queue pair */
#define REQUESTER_WINDOW	64
/** REQUESTER_PSN_WINDOW - most PSNs in flight: half the space tells old from new */
#define REQUESTER_PSN_WINDOW	((1 << 23) - 1)
/**
 * REQUESTER_FAR_WINDOW - the same when the peer is not a device of this daemon, or one behind a
 * slow link
 *
 * What is sent at once has to find room in the buffers of a network; Soft-RoCE has
 * the same bound.
 */
#define REQUESTER_FAR_WINDOW	128

static inline struct wqe *requester_wqe(const struct requester *r, uint32_t i)
{
	return (struct wqe *)(r->win + (size_t)(i & r->mask) * r->wqe_bytes);
}

/* One past the last sequence number of @w. */
static inline uint32_t wqe_end(const struct wqe *w)
{
	return w->psn + w->npsn;
}

/* requester.c */

/* requester_build() - the next SEND or WRITE packet of @w; false if a key does not allow it */
bool requester_build(struct qp *qp, struct wqe *w, struct packet *p);

/* rtt.c */

/* requester_rtt_start() - what was just sent, for the first time, will be acknowledged at once */
void requester_rtt_start(struct qp *qp);
/* requester_rtt_end() - all before @una is acknowledged */
void requester_rtt_end(struct qp *qp);

/* ack.c */

/* requester_acked() - everything before @seq arrived: complete what that completes */
void requester_acked(struct qp *qp, uint32_t seq);

/* requester_retire() - complete work requests from the head on, in order */
void requester_retire(struct qp *qp);

/* requester_fail() - the oldest work request ends with @status, the queue pair in ERR */
void requester_fail(struct qp *qp, uint8_t status, uint32_t syndrome);

/* retry.c */

/* requester_sending() - something goes on the wire: a refusal is over, and the ACK timer runs */
void requester_sending(struct qp *qp);

/* requester_progress() - the peer answered: fresh retry counts and timeout */
void requester_progress(struct qp *qp);

/* requester_rewind() - go back: send again from @seq on */
void requester_rewind(struct qp *qp, uint32_t seq);

/*
 * requester_retry() - the peer reported a loss: go back to the oldest unanswered PSN, or
 * give up. All that one loss makes the peer say counts as one.
 */
void requester_retry(struct qp *qp, uint32_t syndrome);

/* requester_rnr() - the peer had no receive posted for the message at @seq */
void requester_rnr(struct qp *qp, uint32_t seq, uint8_t timer);

void requester_timers_init(struct qp *qp);

#endif /* ORNICD_ENGINE_REQUESTER_H */
