/* SPDX-License-Identifier: GPL-2.0 */
/*
 * End-to-end flow control: how many messages the peer has receives for (IBTA volume 1, 9.7.7.2).
 */
#ifndef ORNICD_ENGINE_CREDIT_H
#define ORNICD_ENGINE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

struct qp;
struct requester;
struct wqe;

/* credit_encode() - the code of at most @n credits */
uint8_t credit_encode(uint32_t n);
/* credit_decode() - credits that a code stands for; not for AETH_NO_CREDITS */
uint32_t credit_decode(uint8_t code);

/* credit_syndrome() - AETH syndrome of an ACK of @qp; has credits if its receives are its own */
uint8_t credit_syndrome(const struct qp *qp);

/*
 * credit_receive() - the peer sent an AETH of @aeth, an ACK, and @msn
 * Return: whether something may be sent now that had to wait.
 */
bool credit_receive(struct requester *r, uint8_t aeth, uint32_t msn);

/* credit_limits() - of @w, next in turn, only the first packet may go, and that alone */
bool credit_limits(const struct requester *r, const struct wqe *w);

#endif /* ORNICD_ENGINE_CREDIT_H */
