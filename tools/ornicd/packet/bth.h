/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Values of the InfiniBand transport headers (IBTA volume 1, chapter 9; RoCEv2
 * annex A17).
 */
#ifndef ORNICD_PACKET_BTH_H
#define ORNICD_PACKET_BTH_H

#include <stdbool.h>
#include <stdint.h>

/* BTH opcodes: transport in bits 7:5. UC has the SENDs and WRITEs of RC. */
enum bth_opcode {
	BTH_RC_SEND_FIRST		= 0x00,
	BTH_RC_SEND_MIDDLE		= 0x01,
	BTH_RC_SEND_LAST		= 0x02,
	BTH_RC_SEND_LAST_IMM		= 0x03,
	BTH_RC_SEND_ONLY		= 0x04,
	BTH_RC_SEND_ONLY_IMM		= 0x05,
	BTH_RC_WRITE_FIRST		= 0x06,
	BTH_RC_WRITE_MIDDLE		= 0x07,
	BTH_RC_WRITE_LAST		= 0x08,
	BTH_RC_WRITE_LAST_IMM		= 0x09,
	BTH_RC_WRITE_ONLY		= 0x0a,
	BTH_RC_WRITE_ONLY_IMM		= 0x0b,
	BTH_RC_READ_REQUEST		= 0x0c,
	BTH_RC_READ_RESP_FIRST		= 0x0d,
	BTH_RC_READ_RESP_MIDDLE		= 0x0e,
	BTH_RC_READ_RESP_LAST		= 0x0f,
	BTH_RC_READ_RESP_ONLY		= 0x10,
	BTH_RC_ACK			= 0x11,
	BTH_RC_ATOMIC_ACK		= 0x12,
	BTH_RC_COMPARE_SWAP		= 0x13,
	BTH_RC_FETCH_ADD		= 0x14,
	BTH_RC_SEND_LAST_INV		= 0x16,
	BTH_RC_SEND_ONLY_INV		= 0x17,
	BTH_RC_FLUSH			= 0x1c,
	BTH_RC_ATOMIC_WRITE		= 0x1d,
	BTH_UD_SEND_ONLY		= 0x64,
	BTH_UD_SEND_ONLY_IMM		= 0x65,
	BTH_CNP				= 0x81,	/* annex A17.9.3: belongs to no transport */
};

#define BTH_TRANSPORT_MASK	0xe0
#define BTH_TRANSPORT_RC	0x00
#define BTH_TRANSPORT_UC	0x20
#define BTH_TRANSPORT_UD	0x60
#define BTH_TRANSPORT_XRC	0xa0

/* bth_operation() - return the opcode without its transport, which is the opcode for RC */
static inline uint8_t bth_operation(uint8_t opcode)
{
	return opcode & ~BTH_TRANSPORT_MASK;
}

/* bth_is_answer() - return true if responders send @opcode, false if requesters do */
static inline bool bth_is_answer(uint8_t opcode)
{
	uint8_t operation = bth_operation(opcode);

	return operation >= BTH_RC_READ_RESP_FIRST && operation <= BTH_RC_ATOMIC_ACK;
}

#define BTH_DEFAULT_PKEY	0xffff
#define BTH_PKEY_PARTITION	0x7fff

/*
 * bth_pkey_matches() - return true if a packet with @pkey belongs to the port's only partition.
 * Bit 15 marks a full member. One of sender and port must be one (IBTA 10.9.3), and the port is.
 */
static inline bool bth_pkey_matches(uint16_t pkey)
{
	return !((pkey ^ BTH_DEFAULT_PKEY) & BTH_PKEY_PARTITION);
}

#define BTH_PSN_BITS		24
#define BTH_PSN_MASK		0xffffffu
#define BTH_GSI_QPN		1
#define BTH_MULTICAST_QPN	0xffffff
#define BTH_GSI_QKEY		0x80010000u

/* AETH syndrome: kind in bits 6:5, value in bits 4:0. */
#define AETH_KIND_MASK		0x60
#define AETH_ACK		0x00
#define AETH_RNR_NAK		0x20
#define AETH_NAK		0x60
#define AETH_VALUE_MASK		0x1f
#define AETH_NO_CREDITS		0x1f	/* end-to-end flow control not used */

enum aeth_nak {
	NAK_PSN_SEQUENCE	= 0,
	NAK_INVALID_REQUEST	= 1,
	NAK_REMOTE_ACCESS	= 2,
	NAK_REMOTE_OPERATIONAL	= 3,
	NAK_INVALID_RD_REQUEST	= 4,
};

/* FETH: placement type in bits 3:0, selectivity level in bits 5:4 (IBTA annex A19). */
#define FETH_TYPE_MASK		0xfu
#define FETH_LEVEL_SHIFT	4
#define FETH_LEVEL_MASK		0x3u

/* Sizes and bits of the BTH, with the byte of each bit */
#define BTH_BYTES		12
#define BTH_SOLICITED		0x80	/* byte 1 */
#define BTH_MIGREQ		0x40
#define BTH_PAD_SHIFT		4
#define BTH_PAD_MASK		0x3
#define BTH_TVER_MASK		0xf
#define BTH_FECN		0x80	/* byte 4, which the ICRC does not cover */
#define BTH_BECN		0x40
#define BTH_ACKREQ		0x80	/* byte 8 */

#define ROCE_UDP_PORT		4791
#define ICRC_BYTES		4

#endif /* ORNICD_PACKET_BTH_H */
