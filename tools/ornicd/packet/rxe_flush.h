/* SPDX-License-Identifier: GPL-2.0 */
/*
 * FLUSH as Linux's Soft-RoCE has it (rxe of 6.2 to 7.2 at least): its table of opcodes does not say
 * where the payload of that packet begins, which has none, so the ICRC goes over the transport's
 * headers as usual and then, as if they were the payload, over all of them once more. A FLUSH from
 * anybody else has a wrong ICRC for Soft-RoCE, and its own has for everybody else.
 */
#ifndef ORNICD_PACKET_RXE_FLUSH_H
#define ORNICD_PACKET_RXE_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * rxe_flush_encode() - give a FLUSH the ICRC that Soft-RoCE expects
 * @frame: of @len bytes, which roce_parse() finds to be a FLUSH
 */
void rxe_flush_encode(uint8_t *frame, uint32_t len);

/*
 * rxe_flush_decode() - give a FLUSH that has Soft-RoCE's ICRC the right one
 * @frame: as above, but for its ICRC
 * Return: whether it had
 */
bool rxe_flush_decode(uint8_t *frame, uint32_t len);

#endif /* ORNICD_PACKET_RXE_FLUSH_H */
