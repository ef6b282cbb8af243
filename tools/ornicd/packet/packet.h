/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet inside the daemon: decoded headers plus references to payload.
 *
 * Payload is not copied: @seg points into the sender's guest memory (or into
 * @inl for inline data and header bytes). The receiver copies from there to its
 * own guest's memory, once. Pointers stay good because a packet never outlives
 * the engine turn it was made in: the turn ends with an empty packet queue, and
 * guest memory changes only between turns.
 *
 * A RoCE packet may stand for several packets of the wire: @npsn consecutive
 * PSNs starting at @psn, each carrying @mtu bytes but the last. Its opcode is
 * that of the whole: a SEND ONLY of three PSNs is FIRST, MIDDLE, LAST on the
 * wire. A port to the outside does the segmentation.
 */
#ifndef ORNICD_PACKET_PACKET_H
#define ORNICD_PACKET_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct qp;
struct switch_port;

/** PACKET_SEGS - most pieces of payload per packet */
#define PACKET_SEGS	64
/** PACKET_MAX_PAYLOAD - most bytes one packet refers to */
#define PACKET_MAX_PAYLOAD	65536
/** PACKET_INLINE - room for bytes the packet owns: inline data, Ethernet headers */
#define PACKET_INLINE	512

/** struct seg - a piece of memory of this process */
struct seg {
	uint8_t *ptr;
	uint32_t len;
};

enum packet_kind {
	PACKET_ETHERNET,	/* a frame: payload starts with the Ethernet header */
	PACKET_ROCE,		/* decoded headers; payload starts after them */
	PACKET_BAD_ICRC,	/* RoCEv2 that was damaged on the way; only addresses and @frame count */
};

/**
 * struct packet - see above; integers are in host order
 * @link:	place in the packet queue or in the free list
 * @kind:	what the header fields mean
 * @from:	port of the switch it came in by; NULL while in the making
 * @to:		port of the station @dmac in its VLAN; NULL: the switch is to look for it
 * @far:	there is no such station, or the link to it is slow
 * @loopback:	for the port it came in by, and no other
 * @echo:	also for the port it came in by
 * @sender:	Ethernet, datagrams: queue pair whose it is; good until the switch is drained
 * @dmac:	destination MAC (RoCE and Ethernet)
 * @smac:	source MAC
 * @vlan:	@vlan_tci is valid (RoCE)
 * @vlan_tci:	VLAN tag
 * @csum_ok:	Ethernet: L4 checksum was computed by a device, or verified
 * @sgid:	source GID; IPv4 as ::ffff:a.b.c.d
 * @dgid:	destination GID
 * @flow_label:	IPv6 flow label
 * @udp_sport:	UDP source port
 * @tclass:	traffic class or type of service, with ECN bits
 * @hop_limit:	TTL
 * @static_rate: of the path it takes
 * @opcode:	BTH opcode (enum bth_opcode)
 * @solicited:	BTH solicited event
 * @ackreq:	BTH acknowledge request
 * @pkey:	BTH P_Key
 * @dqpn:	BTH destination QP
 * @psn:	BTH PSN, of the first wire packet
 * @npsn:	wire packets this one stands for, >= 1
 * @mtu:	path MTU in bytes
 * @qkey:	DETH Q_Key
 * @sqpn:	DETH source QP
 * @srqn:	XRCETH SRQ number
 * @va:		RETH, AtomicETH virtual address
 * @rkey:	RETH, AtomicETH, IETH R_Key
 * @dmalen:	RETH DMA length
 * @swap_add:	AtomicETH
 * @compare:	AtomicETH
 * @feth:	FETH
 * @aeth:	AETH syndrome
 * @msn:	AETH MSN
 * @atomic_ack:	AtomicAckETH
 * @imm:	ImmDt, in wire order
 * @frame:	the frame it came in, or that with another tag; empty if it was made in this daemon
 * @len:	payload bytes: sum of @seg lengths
 * @nseg:	used entries of @seg
 * @seg:	payload
 * @inl:	bytes owned by the packet
 */
struct packet {
	STAILQ_ENTRY(packet) link;
	enum packet_kind kind;
	struct switch_port *from;
	struct switch_port *to;
	bool far;
	bool loopback;
	bool echo;
	const struct qp *sender;
	uint8_t dmac[6];
	uint8_t smac[6];
	bool vlan;
	bool csum_ok;
	uint16_t vlan_tci;
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint32_t flow_label;
	uint16_t udp_sport;
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t static_rate;
	uint8_t opcode;
	bool solicited;
	bool ackreq;
	uint16_t pkey;
	uint32_t dqpn;
	uint32_t psn;
	uint32_t npsn;
	uint32_t mtu;
	uint32_t qkey;
	uint32_t sqpn;
	uint32_t srqn;
	uint64_t va;
	uint32_t rkey;
	uint32_t dmalen;
	uint64_t swap_add;
	uint64_t compare;
	uint32_t feth;
	uint8_t aeth;
	uint32_t msn;
	uint64_t atomic_ack;
	uint32_t imm;
	struct seg frame;
	uint32_t len;
	uint32_t nseg;
	struct seg seg[PACKET_SEGS];
	uint8_t inl[PACKET_INLINE];
};

STAILQ_HEAD(packet_queue, packet);

/** struct packet_pool - packets of one engine, allocated once */
struct packet_pool {
	struct packet *all;
	struct packet_queue free;
	uint32_t nfree;
};

int packet_pool_init(struct packet_pool *pool, uint32_t count);
void packet_pool_fini(struct packet_pool *pool);
struct packet *packet_get(struct packet_pool *pool);
void packet_put(struct packet_pool *pool, struct packet *p);
void packet_trim_front(struct packet *p, uint32_t bytes);
void packet_trim_back(struct packet *p, uint32_t bytes);

void seg_copy_out(void *dst, const struct seg *src, uint32_t nsrc, uint32_t skip, uint32_t len);
uint32_t seg_copy(const struct seg *dst, uint32_t ndst, const struct seg *src, uint32_t nsrc);

#endif /* ORNICD_PACKET_PACKET_H */
