/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Convert the ICRC of a FLUSH from and to that of Linux's Soft-RoCE (rxe, at least 6.2 to 7.2).
 *
 * The opcode table of rxe has no payload offset for FLUSH, which has no payload. Therefore rxe
 * computes the ICRC over the transport headers as usual, then over all of them again, as if they
 * were the payload. Without the conversion Soft-RoCE drops FLUSH packets of other implementations
 * because of a wrong ICRC, and they drop those of Soft-RoCE.
 */
#ifndef ORNICD_PACKET_RXE_FLUSH_H
#define ORNICD_PACKET_RXE_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * rxe_flush_encode() - replace the ICRC of a FLUSH by the one that Soft-RoCE expects
 * @frame: a FLUSH of @len bytes that roce_parse() accepts
 */
void rxe_flush_encode(uint8_t *frame, uint32_t len);

/*
 * rxe_flush_decode() - replace Soft-RoCE's ICRC of a FLUSH by the right one
 * @frame: a FLUSH of @len bytes that roce_parse() accepts except for its ICRC
 * Return: true if it had Soft-RoCE's ICRC, else it is unchanged.
 */
bool rxe_flush_decode(uint8_t *frame, uint32_t len);

#endif /* ORNICD_PACKET_RXE_FLUSH_H */
