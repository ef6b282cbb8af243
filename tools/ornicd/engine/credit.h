/* SPDX-License-Identifier: GPL-2.0 */
/*
 * End-to-end flow control: number of receives that the peer has posted (IBTA volume 1, 9.7.7.2).
 */
#ifndef ORNICD_ENGINE_CREDIT_H
#define ORNICD_ENGINE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

struct qp;
struct requester;
struct wqe;

/* credit_encode() - return the code of the largest number of credits up to @n */
uint8_t credit_encode(uint32_t n);
/* credit_decode() - return the credits of a code other than AETH_NO_CREDITS */
uint32_t credit_decode(uint8_t code);

/* credit_syndrome() - return the AETH syndrome of an ACK, with credits unless @qp uses an SRQ */
uint8_t credit_syndrome(const struct qp *qp);

/*
 * credit_receive() - store the credits of an ACK with AETH syndrome @aeth and MSN @msn
 * Return: true if a limited message may continue.
 */
bool credit_receive(struct requester *r, uint8_t aeth, uint32_t msn);

/* credit_limits() - return true if only the first packet of @w, the next to send, may go */
bool credit_limits(const struct requester *r, const struct wqe *w);

#endif /* ORNICD_ENGINE_CREDIT_H */
