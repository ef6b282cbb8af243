/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A scripted peer: a port of the switch that records received packets and sends packets that a
 * test builds. Include after <cmocka.h>'s prerequisites.
 */
#ifndef UNIT_LIB_PEER_H
#define UNIT_LIB_PEER_H

#include "pair.h"
#include "packet/bth.h"

#define PEER_MAX	1024
#define PEER_QPN	0x77

/** struct seen - a packet that the peer received: headers in @p, payload in @data */
struct seen {
	struct packet p;
	uint8_t *data;
};

/**
 * struct peer - a scripted peer
 * @w:		world with the switch
 * @port:	its port of the switch
 * @mac, @gid:	its addresses
 * @in:		packets received
 * @nin:	number of packets received
 * @next:	index in @in of the packet that peer_next() returns next
 */
struct peer {
	struct world *w;
	struct switch_port *port;
	uint8_t mac[6];
	uint8_t gid[16];
	struct seen *in[PEER_MAX];
	uint32_t nin;
	uint32_t next;
};

void peer_init(struct peer *peer, struct world *w);
void peer_fini(struct peer *peer);

/* peer_connect() - connect @c to the peer; @c sends from @sq_psn and expects @rq_psn */
void peer_connect(struct peer *peer, struct conn *c, uint32_t sq_psn, uint32_t rq_psn);

/* peer_next() - return the next received packet, or NULL */
struct seen *peer_next(struct peer *peer);
/* peer_expect() - check opcode, PSN and number of packets of the next received packet */
struct seen *peer_expect(struct peer *peer, uint8_t opcode, uint32_t psn, uint32_t npsn);
/*
 * peer_expect_ack() - check PSN and AETH of the next packet, an ACK, NAK or RNR NAK;
 * @aeth AETH_ACK | AETH_NO_CREDITS matches an ACK with any credits
 */
void peer_expect_ack(struct peer *peer, uint8_t aeth, uint32_t psn);
/* peer_quiet() - check that peer_next() has returned every received packet */
void peer_quiet(struct peer *peer);

/* peer_packet() - begin a packet for @c */
struct packet *peer_packet(struct peer *peer, struct conn *c, uint8_t opcode, uint32_t psn);
/* peer_send() - send @p with @len bytes of @data, and run the engine */
void peer_send(struct peer *peer, struct packet *p, const void *data, uint32_t len);

/* peer_ack() - send an ACK, NAK or RNR NAK with @aeth for @psn, and run the engine */
void peer_ack(struct peer *peer, struct conn *c, uint32_t psn, uint8_t aeth);

/**
 * struct script - a queue pair of the first device that is connected to the peer, for a test to
 * use
 * @buf, @key:	DMA address and key of memory of the first device; set by the test
 * @data:	payload of the peer's packets; set by the test
 */
struct script {
	struct world w;
	struct peer peer;
	struct conn c;
	uint64_t buf;
	uint32_t key;
	uint8_t data[65536];
};

/*
 * script_new() - create a script whose queue pair sends from @sq_psn and expects @rq_psn; free it
 * with script_teardown()
 */
struct script *script_new(const struct conn_opt *opt, uint32_t sq_psn, uint32_t rq_psn);
int script_teardown(void **state);

#endif /* UNIT_LIB_PEER_H */
