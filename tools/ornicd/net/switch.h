/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The L2 switch that joins the devices of one daemon.
 *
 * A port that is a device announces its MAC (switch_port_set_mac); such
 * addresses are never learned from frames. Other ports' source
 * addresses are learned and age. Forwarding: known unicast to its port, never
 * back to the port it came from; unknown unicast, multicast and broadcast to
 * every other port that wants them.
 *
 * Packets wait in the engine's queue between entering the switch and delivery,
 * so that nobody is called back while in the middle of sending.
 */
#ifndef ORNICD_NET_SWITCH_H
#define ORNICD_NET_SWITCH_H

#include "../packet/packet.h"

#include <stdbool.h>
#include <stdint.h>

struct net_switch;

/**
 * struct switch_port_ops - what stands behind a port
 * @deliver:	a packet leaves the switch here; valid during the call only, may
 *		be shared with other ports: not to be changed
 */
struct switch_port_ops {
	void (*deliver)(void *arg, const struct packet *p);
};

struct net_switch *switch_new(struct packet_pool *pool);
void switch_free(struct net_switch *sw);

struct switch_port *switch_port_add(struct net_switch *sw, const char *name,
				    const struct switch_port_ops *ops, void *arg);
void switch_port_del(struct switch_port *port);

/**
 * switch_port_set_mac() - announce the station address of a device's port
 * Return: 0, -EEXIST if another port holds it.
 */
int switch_port_set_mac(struct switch_port *port, const uint8_t mac[6]);

/** switch_port_set_up() - a port that is down neither sends nor receives */
void switch_port_set_up(struct switch_port *port, bool up);

/** switch_port_set_promisc() - wants unicast frames for unknown stations too */
void switch_port_set_promisc(struct switch_port *port, bool promisc);

/* switch_is_station() - @mac is a device's of this switch */
bool switch_is_station(struct net_switch *sw, const uint8_t mac[6]);

/** switch_send() - queue @p, coming in by @port; the switch owns it from here */
void switch_send(struct switch_port *port, struct packet *p);

/** switch_loopback() - queue @p for @port itself: a device talks to itself */
void switch_loopback(struct switch_port *port, struct packet *p);

/** switch_drain() - deliver until no packet is queued; delivery may queue more */
void switch_drain(struct net_switch *sw);

#endif /* ORNICD_NET_SWITCH_H */
