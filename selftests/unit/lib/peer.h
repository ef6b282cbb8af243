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
 * struct peer - see above
 * @mac, @gid:	its addresses
 * @in:		packets received
 * @nin:	number of packets received
 * @next:	first that peer_next() has not given out
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

/* peer_connect() - connect a queue pair to the peer: it sends from @sq_psn, expects @rq_psn */
void peer_connect(struct peer *peer, struct conn *c, uint32_t sq_psn, uint32_t rq_psn);

/* peer_next() - return the next received packet, or NULL */
struct seen *peer_next(struct peer *peer);
/* peer_expect() - check opcode, PSN and number of packets of the next received packet */
struct seen *peer_expect(struct peer *peer, uint8_t opcode, uint32_t psn, uint32_t npsn);
/* peer_expect_ack() - check that the next packet is this ACK (any credits), NAK or RNR NAK */
void peer_expect_ack(struct peer *peer, uint8_t aeth, uint32_t psn);
void peer_quiet(struct peer *peer);

/* peer_packet() - begin a packet for @c */
struct packet *peer_packet(struct peer *peer, struct conn *c, uint8_t opcode, uint32_t psn);
/* peer_send() - send @p with @len bytes of @data, and run the engine */
void peer_send(struct peer *peer, struct packet *p, const void *data, uint32_t len);

void peer_ack(struct peer *peer, struct conn *c, uint32_t psn, uint8_t aeth);

/**
 * struct script - a queue pair of the first device that is connected to the peer, for a test to
 * use
 * @buf, @key:	memory of the device, for the test to fill in
 * @data:	payload of the peer's packets, for the test to fill in
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
