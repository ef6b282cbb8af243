/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Uplinks: ports of the switch that lead out of the daemon.
 *
 * Here packets become frames and frames packets. What carries the frames, a tap
 * interface, a socket, is a backend: it sends a batch and hands in what it received.
 * A backend never blocks; what it can not take now is dropped and counted, as a
 * network does it.
 */
#ifndef ORNICD_NET_UPLINK_H
#define ORNICD_NET_UPLINK_H

#include "egress.h"
#include "switch.h"
#include "../loop.h"

#include <stdint.h>
#include <sys/uio.h>

struct uplink;

/**
 * struct uplink_spec - what kind of uplink, and where to; what the kind has no use for is NULL
 * @kind:	its backend's name
 * @name:	of the port
 * @text:	what the user wrote; NULL: nobody did
 * @ifname:	network interface
 * @path:	socket
 * @local:	address or path of this end
 * @remote:	address or path of the other end
 * @client:	connect, and do not listen
 * @vlan:	an access port of this VLAN; 0: of none
 * @rxe_flush:	who is there has FLUSH as Soft-RoCE does
 * @link:	rate-limited link to it, if it has a rate
 */
struct uplink_spec {
	char *kind;
	char *name;
	char *text;
	char *ifname;
	char *path;
	char *local;
	char *remote;
	bool client;
	uint16_t vlan;
	bool rxe_flush;
	struct egress_param link;
};

/**
 * struct uplink_host - what the daemon gives an uplink
 * @loop:	event loop
 * @sw:		switch
 * @pool:	packets of the switch
 * @drain:	called with @arg when packets were put on the switch
 * @arg:	for @drain
 * @busy:	the daemon serves: nothing may take long, such as asking a name server
 */
struct uplink_host {
	struct loop *loop;
	struct net_switch *sw;
	struct packet_pool *pool;
	void (*drain)(void *arg);
	void *arg;
	bool busy;
};

/**
 * struct uplink_stats - counters
 * @tx_frames:	frames sent
 * @tx_bytes:	their bytes
 * @tx_drop:	frames the backend could not take
 * @rx_frames:	frames received
 * @rx_bytes:	their bytes
 * @rx_drop:	received while no packet was free
 * @bad_icrc:	RoCEv2 with a wrong ICRC
 * @malformed:	too short, too long, or RoCEv2 that contradicts itself; or what the kernel says is
 *		to be done to it cannot be
 */
struct uplink_stats {
	uint64_t tx_frames;
	uint64_t tx_bytes;
	uint64_t tx_drop;
	uint64_t rx_frames;
	uint64_t rx_bytes;
	uint64_t rx_drop;
	uint64_t bad_icrc;
	uint64_t malformed;
};

/* uplink_open() - Return: 0, or a negative errno after a log line. */
int uplink_open(const struct uplink_host *host, const struct uplink_spec *spec,
		struct uplink **uplink);
/* uplink_close() - NULL is ignored */
void uplink_close(struct uplink *u);

const struct uplink_stats *uplink_stats(const struct uplink *u);
const char *uplink_name(const struct uplink *u);
const char *uplink_kind(const struct uplink *u);
/* uplink_text() - how the user described it */
const char *uplink_text(const struct uplink *u);
/*
 * uplink_is_up() - frames pass: the switch's port is not down, and there is somebody to send to, as
 * far as the kind can tell
 */
bool uplink_is_up(struct uplink *u);

#endif /* ORNICD_NET_UPLINK_H */
