/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet inside the daemon: decoded headers and references to payload.
 *
 * Payload is not copied: @seg points into the sender's guest memory, or into @inl for inline
 * data and header bytes. The receiver copies it from there to its guest's memory, once.
 * Pointers stay valid because a packet lives no longer than the engine's iteration that made
 * it: the iteration ends with an empty packet queue, and guest memory is mapped and unmapped
 * only between iterations.
 *
 * A RoCE packet may stand for several packets of the wire: @npsn consecutive PSNs from @psn
 * on, each with @mtu bytes except the last. Its opcode is that of the whole: a SEND ONLY of
 * three PSNs is FIRST, MIDDLE, LAST on the wire. Uplinks do the segmentation.
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
#define PACKET_SEGS	66
/** PACKET_MAX_PAYLOAD - most bytes of payload per packet */
#define PACKET_MAX_PAYLOAD	65536
/** PACKET_INLINE - bytes of memory in the packet, for inline data and Ethernet headers */
#define PACKET_INLINE	512

/** struct seg - a piece of memory of this process */
struct seg {
	uint8_t *ptr;
	uint32_t len;
};

enum packet_kind {
	PACKET_ETHERNET,	/* a frame: payload starts with the Ethernet header */
	PACKET_ROCE,		/* decoded headers; payload starts after them */
	PACKET_BAD_ICRC,	/* damaged RoCEv2: @frame is valid, decoded headers may be wrong */
};

/**
 * struct packet - a packet; integers are in host byte order unless noted
 * @link:	in the packet queue or the free list
 * @kind:	kind of packet, which says what fields are valid
 * @from:	port by which it entered the switch; NULL before that
 * @to:		port of the device with address @dmac in its VLAN; NULL: the switch searches
 * @remote:	no device has address @dmac, or the link to it is rate-limited
 * @outside:	it came from an uplink; otherwise it was made in this daemon
 * @loopback:	for the port by which it entered, and no other
 * @echo:	also for the port by which it entered
 * @sender:	Ethernet and datagrams: queue pair that sent it; valid until the switch is drained
 * @dmac:	destination MAC (RoCE and Ethernet)
 * @smac:	source MAC
 * @vlan:	@vlan_tci is valid (RoCE)
 * @vlan_tci:	VLAN tag
 * @csum_ok:	Ethernet: a device computed or verified the TCP or UDP checksum
 * @sgid:	source GID; IPv4 as ::ffff:a.b.c.d
 * @dgid:	destination GID
 * @flow_label:	IPv6 flow label
 * @udp_sport:	UDP source port
 * @tclass:	traffic class or type of service, with ECN bits
 * @hop_limit:	TTL
 * @static_rate: static rate of its path
 * @opcode:	BTH opcode (enum bth_opcode)
 * @solicited:	BTH solicited event
 * @ackreq:	BTH acknowledge request
 * @pkey:	BTH P_Key
 * @dqpn:	BTH destination QP
 * @psn:	BTH PSN of the first packet of the wire
 * @npsn:	number of packets of the wire, >= 1
 * @mtu:	path MTU in bytes; only if @npsn is more than one
 * @qkey:	DETH Q_Key
 * @sqpn:	source queue pair: from the DETH, or of a device of this daemon; 0: unknown
 * @srqn:	XRCETH SRQ number
 * @va:		RETH, AtomicETH virtual address
 * @rkey:	RETH, AtomicETH, IETH R_Key
 * @dmalen:	RETH DMA length
 * @swap_add:	AtomicETH swap or add data
 * @compare:	AtomicETH compare data
 * @feth:	FETH
 * @aeth:	AETH syndrome
 * @msn:	AETH MSN
 * @atomic_ack:	AtomicAckETH original data
 * @imm:	ImmDt, in network byte order
 * @frame:	frame from an uplink, possibly retagged, or from a rate-limited link or a fault rule;
 *		otherwise empty
 * @len:	bytes of payload: sum of the lengths in @seg
 * @nseg:	used entries of @seg
 * @seg:	payload
 * @inl:	memory of the packet itself
 */
struct packet {
	STAILQ_ENTRY(packet) link;
	enum packet_kind kind;
	struct switch_port *from;
	struct switch_port *to;
	bool remote;
	bool outside;
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

/**
 * packet_pool_init() - allocate the packets of an engine
 * @pool:	pool
 * @count:	number of packets
 *
 * Return: 0 or -ENOMEM.
 */
int packet_pool_init(struct packet_pool *pool, uint32_t count);

/**
 * packet_pool_fini() - free all packets, also those in use
 * @pool:	pool
 */
void packet_pool_fini(struct packet_pool *pool);

/**
 * packet_get() - take a packet from the pool
 * @pool:	pool
 *
 * Return: a packet without payload, header fields zero; NULL if none is left.
 */
struct packet *packet_get(struct packet_pool *pool);

/**
 * packet_put() - return a packet to its pool
 * @pool:	pool
 * @p:		packet, in no queue
 */
void packet_put(struct packet_pool *pool, struct packet *p);

/**
 * packet_trim_front() - remove the first bytes of the payload
 * @p:		packet
 * @bytes:	number of bytes, at most @p->len
 */
void packet_trim_front(struct packet *p, uint32_t bytes);

/**
 * packet_trim_back() - remove the last bytes of the payload
 * @p:		packet
 * @bytes:	number of bytes, at most @p->len
 */
void packet_trim_back(struct packet *p, uint32_t bytes);

/**
 * seg_copy_out() - copy from a list of pieces to a buffer of the daemon
 * @dst:	destination
 * @src:	source of at least @skip + @len bytes
 * @nsrc:	pieces of @src
 * @skip:	bytes to skip first
 * @len:	bytes to copy
 */
void seg_copy_out(void *dst, const struct seg *src, uint32_t nsrc, uint32_t skip, uint32_t len);

/**
 * seg_copy() - copy between lists of pieces, the last bytes in address order (packet.c)
 * @dst:	destination
 * @ndst:	pieces of @dst
 * @src:	source; if it overlaps @dst, the result is undefined data
 * @nsrc:	pieces of @src
 *
 * Return: bytes copied, the smaller of both totals.
 */
uint32_t seg_copy(const struct seg *dst, uint32_t ndst, const struct seg *src, uint32_t nsrc);

#endif /* ORNICD_PACKET_PACKET_H */
