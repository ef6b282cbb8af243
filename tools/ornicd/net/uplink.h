/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Uplinks: ports of the switch to the outside of the daemon.
 *
 * An uplink converts packets to frames and back. A backend, such as a tap interface or a socket,
 * carries the frames: it sends batches and passes received frames to the uplink. A backend never
 * blocks; frames that it cannot send at once are dropped and counted, as in a network.
 */
#ifndef ORNICD_NET_UPLINK_H
#define ORNICD_NET_UPLINK_H

#include "egress.h"
#include "switch.h"
#include "../loop.h"
#include "../unix_socket.h"

#include <stdint.h>
#include <sys/uio.h>

struct log_source;
struct uplink;

/**
 * struct uplink_spec - description of an uplink; members that the kind does not use are NULL
 * @kind:	name of the backend
 * @name:	name of the port
 * @text:	description by the user; NULL: there is none
 * @ifname:	network interface
 * @path:	socket
 * @local:	address or path of this end
 * @remote:	address or path of the other end
 * @client:	connect instead of listening
 * @vlan:	VLAN whose access port it is; 0: none
 * @rxe_flush:	peers use Soft-RoCE's ICRC for FLUSH, see rxe_flush.h
 * @link:	limit of the link behind the port; no limit if its rate is 0
 * @access:	who may connect to its socket in the file system
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
	struct unix_access access;
};

/**
 * struct uplink_host - environment of an uplink
 * @loop:	event loop
 * @sw:		switch
 * @pool:	packets of the switch
 * @drain:	called with @arg after packets were queued in the switch
 * @arg:	for @drain
 * @busy:	the daemon serves guests, so nothing may block, for example on a name server
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
 * @tx_bytes:	bytes of frames sent
 * @tx_drop:	frames that the backend could not send
 * @rx_frames:	frames received
 * @rx_bytes:	bytes of frames received
 * @rx_drop:	frames dropped because no packet was free, or by the kernel at the socket
 * @bad_icrc:	RoCEv2 frames dropped because of a wrong ICRC
 * @malformed:	frames dropped because they are too short, too long, cut off, inconsistent RoCEv2,
 *		or have an impossible offload request of the kernel
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

/**
 * uplink_open() - open an uplink and add its port to the switch
 * @host:	environment; copied
 * @spec:	description; copied
 * @uplink:	returns the uplink
 *
 * Return: 0, or a negative errno after an error line.
 */
int uplink_open(const struct uplink_host *host, const struct uplink_spec *spec,
		struct uplink **uplink);
/* uplink_close() - send waiting frames, delete the port, free the uplink; NULL is ignored */
void uplink_close(struct uplink *u);

const struct uplink_stats *uplink_stats(struct uplink *u);
const char *uplink_name(const struct uplink *u);
const char *uplink_kind(const struct uplink *u);
/* uplink_log() - return the source of its log lines */
struct log_source *uplink_log(struct uplink *u);
/* uplink_text() - return the description by the user, or the kind without one */
const char *uplink_text(const struct uplink *u);
/*
 * uplink_is_up() - return true if the port is up and, as far as the backend can tell, the interface
 * is up or a peer is connected
 */
bool uplink_is_up(struct uplink *u);

#endif /* ORNICD_NET_UPLINK_H */
