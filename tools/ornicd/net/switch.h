/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The L2 switch that joins the devices of one daemon.
 *
 * The port of a device announces its MAC address (switch_port_set_mac()), which is never learned
 * from frames. Source addresses behind other ports are learned and age. Known unicast goes to its
 * port, never back to the port it came from. Unknown unicast, multicast and broadcast go to every
 * other port that wants them. Each VLAN has its own addresses.
 *
 * Packets wait in a queue between entering the switch and delivery, so that no receiver is called
 * while a sender is in the middle of sending.
 */
#ifndef ORNICD_NET_SWITCH_H
#define ORNICD_NET_SWITCH_H

#include "../packet/packet.h"
#include "../timer.h"

#include <stdbool.h>
#include <stdint.h>

/** SWITCH_PORT_NAME - most bytes of a port's name, which may be the path of a socket, and a zero */
#define SWITCH_PORT_NAME	112

struct egress;
struct egress_param;
struct frames_kept;
struct net_switch;

/**
 * struct switch_port_ops - operations of the device or uplink behind a port
 * @deliver:	take a packet that leaves the switch; it is valid during the call only and must
 *		not be changed, because other ports may share it
 * @flush:	send what was held back, because no more packets come for now; only for a port
 *		that calls switch_hold()
 */
struct switch_port_ops {
	void (*deliver)(void *arg, const struct packet *p);
	void (*flush)(void *arg);
};

/** enum switch_way - direction in which a packet passes a port */
enum switch_way {
	SWITCH_IN,	/* into the switch: from a device, or from outside */
	SWITCH_OUT,	/* out of it */
};

/**
 * struct switch_observer - operations that see every packet at every port
 * @observe:	@p passes @port; it is valid during the call only and must not be changed.
 *		@note: why it was dropped or changed, or NULL if it was forwarded as usual
 * @arg:	for @observe
 */
struct switch_observer {
	void (*observe)(void *arg, const struct switch_port *port, enum switch_way way,
			const struct packet *p, const char *note);
	void *arg;
};

/**
 * struct switch_fault - fault injection: operations that may take packets at a port
 * @packet:	@p passes @port and must not be changed. Return: true if it was taken; frames that
 *		are left of it return through switch_resume(), now or later. false: forward it.
 * @gone:	forget packets that were taken at @port or came in by it, because the port is
 *		deleted or gets another VLAN
 * @arg:	for both
 */
struct switch_fault {
	bool (*packet)(void *arg, struct switch_port *port, enum switch_way way,
		       const struct packet *p);
	void (*gone)(void *arg, struct switch_port *port, const char *why);
	void *arg;
};

struct net_switch *switch_new(struct packet_pool *pool);
void switch_free(struct net_switch *sw);

/* switch_set_time() - set timers and clock (ns) of rate-limited links; both outlive the switch */
void switch_set_time(struct net_switch *sw, struct timers *timers, const uint64_t *now);

struct switch_port *switch_port_add(struct net_switch *sw, const char *name,
				    const struct switch_port_ops *ops, void *arg);
void switch_port_del(struct switch_port *port);

/* switch_port_find() - return the port named @name, or NULL */
struct switch_port *switch_port_find(struct net_switch *sw, const char *name);

/**
 * switch_port_set_mac() - announce the MAC address of a device's port
 * Return: 0, or -EEXIST if another port in the same VLAN has it; a port without a VLAN is in all.
 */
int switch_port_set_mac(struct switch_port *port, const uint8_t mac[6]);

/**
 * switch_port_set_up() - set the port up or down; a port that is down neither sends nor receives
 */
void switch_port_set_up(struct switch_port *port, bool up);
bool switch_port_is_up(const struct switch_port *port);

/** switch_port_set_promisc() - deliver unicast frames for unknown MAC addresses, too */
void switch_port_set_promisc(struct switch_port *port, bool promisc);

/**
 * switch_port_set_vlan() - make a port an access port of VLAN @id (IEEE 802.1Q), or of none: 0
 *
 * Frames that enter by an access port belong to its VLAN. They have no tag, or a priority tag
 * (VLAN 0); frames with another tag or with two are dropped, see vlan_is_tagged(). Only frames of
 * the VLAN leave by it, without their tag. A port without a VLAN, the initial state, passes frames
 * with the tags they have; frames from an access port get the tag of its VLAN, with their
 * priority. Everything behind the first tag counts as payload.
 *
 * Changing the VLAN is like deleting the port and adding another: packets from it, or queued to
 * leave by it, are lost. Not to be called while a packet is being delivered.
 *
 * Return: 0, or -EEXIST if the MAC address is in use in that VLAN, see switch_port_set_mac().
 */
int switch_port_set_vlan(struct switch_port *port, uint16_t id);
/* switch_port_vlan() - return its VLAN, or 0 */
uint16_t switch_port_vlan(const struct switch_port *port);
/*
 * switch_port_vlan_drop() - return the count of frames that had an illegal tag, or were too long
 * to be tagged
 */
uint64_t switch_port_vlan_drop(const struct switch_port *port);

/* switch_port_name() - return the name that was given to switch_port_add() */
const char *switch_port_name(const struct switch_port *port);
/* switch_port_is_device() - return true if the port has an announced MAC address */
bool switch_port_is_device(const struct switch_port *port);
/* switch_port_number() - return its number, from 0; numbers are never used again */
uint32_t switch_port_number(const struct switch_port *port);
/*
 * switch_port_next() - return the port after @port, the first if @port is NULL; NULL after the
 * last
 */
struct switch_port *switch_port_next(struct net_switch *sw, const struct switch_port *port);

/**
 * switch_port_limit() - set, change or remove the rate limit of the link behind a port
 * @port:	port of a switch that has timers
 * @param:	limit, in range; NULL removes it and drops the queue
 *
 * Not to be called while a packet is being delivered.
 *
 * Return: 0 or -ENOMEM.
 */
int switch_port_limit(struct switch_port *port, const struct egress_param *param);

/* switch_port_egress() - return the rate-limited link of @port, or NULL */
const struct egress *switch_port_egress(const struct switch_port *port);

/*
 * switch_find() - look up the destination of RoCE packet @p from @from in its VLAN, and fill in @to
 * and @remote, so that the switch need not search again
 */
void switch_find(const struct switch_port *from, struct packet *p);

/** switch_send() - queue @p with its addresses, which enters by @port; the switch owns it then */
void switch_send(struct switch_port *port, struct packet *p);

/** switch_loopback() - queue @p for @port itself: a device sends to itself */
void switch_loopback(struct switch_port *port, struct packet *p);

/* switch_is_observed() - return true if there is an observer */
bool switch_is_observed(const struct net_switch *sw);

/** switch_set_observer() - set the observer, which the caller keeps alive, or remove it: NULL */
void switch_set_observer(struct net_switch *sw, const struct switch_observer *o);

/**
 * switch_observe() - show the observer, if there is one, a packet at a port
 *
 * The switch calls it for every packet that enters or leaves, and again with a note for every drop.
 * Other code calls it for frames that do not reach the switch, or that are delayed.
 */
void switch_observe(const struct switch_port *port, enum switch_way way, const struct packet *p,
		    const char *note);
/*
 * switch_observe_frame() - the same for a frame of @len bytes, at least an Ethernet header's
 * @kept:	properties of its packet; NULL: it came from outside and is what it looks like
 */
void switch_observe_frame(const struct switch_port *port, enum switch_way way, uint8_t *frame,
			  uint32_t len, const struct frames_kept *kept, const char *note);

/** switch_set_fault() - set fault injection, which the caller keeps alive, or remove it: NULL */
void switch_set_fault(struct net_switch *sw, const struct switch_fault *f);

/*
 * switch_is_faulty() - return true if fault injection may lose or delay packets within this daemon
 */
bool switch_is_faulty(const struct net_switch *sw);

/**
 * switch_resume() - forward a packet that fault injection took, at once
 * @port:	port where it was taken
 * @way:	direction in which it passed the port
 * @p:		packet with its @from set; remains the caller's
 * @note:	for the observer, which saw the packet before the fault; NULL if nothing was changed
 */
void switch_resume(struct switch_port *port, enum switch_way way, const struct packet *p,
		   const char *note);

/** switch_drain() - deliver until no packet is queued; delivery may queue more */
void switch_drain(struct net_switch *sw);

/*
 * switch_hold() - request one call of @port's flush() at the end of the iteration, because packets
 * wait there to be sent together with others
 */
void switch_hold(struct switch_port *port);

/*
 * switch_flush() - flush all ports that called switch_hold(), at the end of an iteration
 * Ports must hold copies: packets that are delivered between iterations wait while commands change
 * guest memory.
 */
void switch_flush(struct net_switch *sw);

#endif /* ORNICD_NET_SWITCH_H */
