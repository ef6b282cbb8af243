// SPDX-License-Identifier: GPL-2.0
/*
 * Faults of a transport: see broken.h.
 */
#include "broken.h"

#include "engine/cc.h"
#include "engine/engine.h"
#include "engine/link.h"
#include "engine/qp.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

void __real_link_send(struct qp *qp, struct packet *p);
void __wrap_link_send(struct qp *qp, struct packet *p);
void __real_requester_retry(struct qp *qp, uint32_t syndrome);
void __wrap_requester_retry(struct qp *qp, uint32_t syndrome);
void __real_requester_rnr(struct qp *qp, uint32_t seq, uint8_t timer);
void __wrap_requester_rnr(struct qp *qp, uint32_t seq, uint8_t timer);
void __real_answer_sequence(struct qp *qp);
void __wrap_answer_sequence(struct qp *qp);
void __real_answer_again(struct qp *qp, const struct packet *p);
void __wrap_answer_again(struct qp *qp, const struct packet *p);
void __real_cnp_notify(struct qp *qp, const struct packet *p);
void __wrap_cnp_notify(struct qp *qp, const struct packet *p);
void __real_requester_sending(struct qp *qp);
void __wrap_requester_sending(struct qp *qp);
int __real_wqe_fetch(struct qp *qp, struct wqe *w);
int __wrap_wqe_fetch(struct qp *qp, struct wqe *w);

enum broken {
	NOTHING,
	MSN,		/* counts one message too many in ACKs */
	EARLY_ACK,	/* acknowledges the gap instead of reporting it */
	NO_ACK,		/* never acknowledges */
	NAK_TWICE,	/* reports a gap for each packet after it */
	NO_NAK,		/* reports no gap */
	NAK_PSN,	/* reports the PSN after the missing one */
	DEAF,		/* does not go back when a gap is reported or an answer is lost */
	SKIP,		/* omits the first packet of a retransmission */
	RNR_EARLY,	/* does not wait for the time of an RNR NAK */
	REPLAY,		/* answers a retransmitted atomic with another value */
	RESPONSE_PSN,	/* miscounts PSNs of READ responses */
	TWO_RESPONSES,	/* sends READ responses twice */
	PSN,		/* sometimes skips a PSN */
	ENDLESS,	/* retries for ever */
	OTHER,		/* retransmits with another length */
	NO_TIMER,	/* has no timeout */
	CNP_ONCE,	/* sends no more than one CNP */
	CNP_CLOSE,	/* sends a CNP for each mark */
	CNP_WILD,	/* sends CNPs without marks */
};

static const char *const names[] = {
	[MSN] = "msn", [EARLY_ACK] = "early-ack", [NO_ACK] = "no-ack", [NAK_TWICE] = "nak-twice",
	[NO_NAK] = "no-nak", [NAK_PSN] = "nak-psn", [DEAF] = "deaf", [SKIP] = "skip",
	[RNR_EARLY] = "rnr-early", [REPLAY] = "replay", [RESPONSE_PSN] = "response-psn",
	[TWO_RESPONSES] = "two-responses", [PSN] = "psn", [ENDLESS] = "endless", [OTHER] = "other",
	[NO_TIMER] = "no-timer", [CNP_ONCE] = "cnp-once", [CNP_CLOSE] = "cnp-close",
	[CNP_WILD] = "cnp-wild",
};

static enum broken broken;

bool broken_set(const char *name)
{
	for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i], name)) {
			broken = i;
			return true;
		}
	}
	return false;
}

bool broken_anything(void)
{
	return broken != NOTHING;
}

static bool is_ack(const struct packet *p, uint8_t kind)
{
	return bth_operation(p->opcode) == BTH_RC_ACK && (p->aeth & AETH_KIND_MASK) == kind;
}

/* Return true if @p is a retransmission, and the first packet of it. */
static bool is_first_again(const struct qp *qp, const struct packet *p)
{
	return !bth_is_answer(p->opcode) && p->psn == (qp->req.una & BTH_PSN_MASK) &&
	       qp->req.sent_psn - qp->req.una > 4;
}

/* Return true if @p is a retransmission, with later packets sent before. */
static bool is_again(const struct qp *qp, const struct packet *p)
{
	uint32_t seq = seq_of(p->psn, qp->req.una);

	return !bth_is_answer(p->opcode) && seq_diff(qp->req.sent_psn, seq + p->npsn) > 0;
}

static void send_twice(struct qp *qp, struct packet *p)
{
	struct packet *copy = packet_get(&qp->dev->engine->pool);

	if (copy) {
		memcpy(&copy->kind, &p->kind, sizeof(*p) - offsetof(struct packet, kind));
		__real_link_send(qp, copy);
	}
	__real_link_send(qp, p);
}

void __wrap_link_send(struct qp *qp, struct packet *p)
{
	uint8_t operation = bth_operation(p->opcode);
	bool response = operation >= BTH_RC_READ_RESP_FIRST && operation <= BTH_RC_READ_RESP_ONLY;

	if (broken == MSN && is_ack(p, AETH_ACK))
		p->msn = psn_add(p->msn, 1);
	if (broken == EARLY_ACK && is_ack(p, AETH_NAK))
		p->aeth = AETH_ACK | AETH_NO_CREDITS;
	if (broken == NAK_PSN && is_ack(p, AETH_NAK))
		p->psn = psn_add(p->psn, 1);
	if (broken == RESPONSE_PSN && response && p->npsn > 1)
		p->psn = psn_add(p->psn, 1);
	if (broken == ENDLESS)
		qp->req.retry_left = qp->retry_cnt;
	if (broken == OTHER && is_again(qp, p) && operation == BTH_RC_SEND_ONLY &&
	    p->len % p->mtu > 4)
		packet_trim_back(p, 4);
	if ((broken == NO_ACK && is_ack(p, AETH_ACK)) ||
	    (broken == SKIP && is_first_again(qp, p))) {
		packet_put(&qp->dev->engine->pool, p);
		return;
	}
	if (broken == CNP_WILD && is_ack(p, AETH_ACK))
		__real_cnp_notify(qp, p);
	if (broken == TWO_RESPONSES && response)
		send_twice(qp, p);
	else
		__real_link_send(qp, p);
}

void __wrap_requester_retry(struct qp *qp, uint32_t syndrome)
{
	if (broken != DEAF)
		__real_requester_retry(qp, syndrome);
}

void __wrap_requester_rnr(struct qp *qp, uint32_t seq, uint8_t timer)
{
	__real_requester_rnr(qp, seq, broken == RNR_EARLY ? AETH_RNR_NAK | 1 : timer);
}

void __wrap_answer_sequence(struct qp *qp)
{
	if (broken == NO_NAK)
		return;
	if (broken == NAK_TWICE)
		qp->resp.nak_sent = false;
	__real_answer_sequence(qp);
}

void __wrap_answer_again(struct qp *qp, const struct packet *p)
{
	for (uint32_t i = qp->resp.rd_first; broken == REPLAY && i != qp->resp.rd_next; i++)
		responder_rd(&qp->resp, i)->value++;
	__real_answer_again(qp, p);
}

void __wrap_cnp_notify(struct qp *qp, const struct packet *p)
{
	if (broken == CNP_ONCE && qp->cc.cnp_at)
		return;
	if (broken == CNP_CLOSE)
		qp->cc.cnp_at = 0;
	__real_cnp_notify(qp, p);
}

void __wrap_requester_sending(struct qp *qp)
{
	__real_requester_sending(qp);
	if (broken == NO_TIMER)
		timer_disarm(&qp->dev->timers, &qp->req.ack_timer);
}

int __wrap_wqe_fetch(struct qp *qp, struct wqe *w)
{
	static uint32_t count;

	if (broken == PSN && ++count % 50 == 0)
		qp->req.next_psn++;
	return __real_wqe_fetch(qp, w);
}
