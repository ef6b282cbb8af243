/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The L2 switch that joins the devices of one daemon.
 *
 * A port that is a device announces its MAC (switch_port_set_mac); such
 * addresses are never learned from frames. Other ports' source
 * addresses are learned and age. Forwarding: known unicast to its port, never
 * back to the port it came from; unknown unicast, multicast and broadcast to
 * every other port that wants them. All that within a VLAN: each has addresses of its own.
 *
 * Packets wait in the engine's queue between entering the switch and delivery,
 * so that nobody is called back while in the middle of sending.
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
struct net_switch;

/**
 * struct switch_port_ops - what stands behind a port
 * @deliver:	a packet leaves the switch here; valid during the call only, may
 *		be shared with other ports: not to be changed
 * @flush:	no more packets come for now; only of a port that calls switch_hold()
 */
struct switch_port_ops {
	void (*deliver)(void *arg, const struct packet *p);
	void (*flush)(void *arg);
};

/** enum switch_way - which way a packet passes a port */
enum switch_way {
	SWITCH_IN,	/* into the switch: from a device, or from outside */
	SWITCH_OUT,	/* out of it */
};

/**
 * struct switch_observer - who sees all that passes the ports
 * @observe:	@p passes @port; it is not to be changed, and good during the call only.
 *		@note: what became of it, or NULL if nothing but what a switch does with packets
 * @arg:	for @observe
 */
struct switch_observer {
	void (*observe)(void *arg, const struct switch_port *port, enum switch_way way,
			const struct packet *p, const char *note);
	void *arg;
};

/**
 * struct switch_fault - who may take packets on their way in or out, and change their fate
 * @packet:	@p passes @port. Return: true if it was taken: what is left of it comes back by
 *		switch_resume(), now or later; otherwise it goes on as it is. @p is not to be changed.
 * @gone:	what was taken at @port, or came in by it, is not to come back: it is being deleted,
 *		or gets another VLAN
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

/* switch_set_time() - for slow links: timers, and what time it is; both outlive the switch */
void switch_set_time(struct net_switch *sw, struct timers *timers, const uint64_t *now);

struct switch_port *switch_port_add(struct net_switch *sw, const char *name,
				    const struct switch_port_ops *ops, void *arg);
void switch_port_del(struct switch_port *port);

/* switch_port_find() - the port named @name, or NULL */
struct switch_port *switch_port_find(struct net_switch *sw, const char *name);

/**
 * switch_port_set_mac() - announce the station address of a device's port
 * Return: 0, -EEXIST if another port that shares a VLAN with it holds it: one of no VLAN is in all.
 */
int switch_port_set_mac(struct switch_port *port, const uint8_t mac[6]);

/** switch_port_set_up() - a port that is down neither sends nor receives */
void switch_port_set_up(struct switch_port *port, bool up);
bool switch_port_is_up(const struct switch_port *port);

/** switch_port_set_promisc() - wants unicast frames for unknown stations too */
void switch_port_set_promisc(struct switch_port *port, bool promisc);

/**
 * switch_port_set_vlan() - make a port an access port of VLAN @id (IEEE 802.1Q), or of none: 0
 *
 * What comes in there belongs to the VLAN and has no tag, or one for the priority only (VLAN 0);
 * frames with another tag, or two, are dropped, see vlan_is_tagged(). What belongs to the VLAN goes
 * out there, without its tag; nothing else does. By a port of no VLAN, as all are at first, frames
 * come and go with the tags they have, and those of an access port with its VLAN's, of their
 * priority. What is behind a frame's first tag counts as its payload there.
 *
 * A port that changes is as one that goes and one that comes: what is under way from it or waits
 * to leave by it is lost. Not while a packet is being delivered.
 *
 * Return: 0, -EEXIST if the port's address is taken there, see switch_port_set_mac().
 */
int switch_port_set_vlan(struct switch_port *port, uint16_t id);
/* switch_port_vlan() - its VLAN, or 0 */
uint16_t switch_port_vlan(const struct switch_port *port);
/* switch_port_vlan_drop() - frames that came in with a tag, or were too long to leave with one */
uint64_t switch_port_vlan_drop(const struct switch_port *port);

/* switch_port_name() - as given to switch_port_add() */
const char *switch_port_name(const struct switch_port *port);
/* switch_port_is_device() - its address was announced */
bool switch_port_is_device(const struct switch_port *port);
/* switch_port_number() - counts from 0; no port of the switch ever had it before */
uint32_t switch_port_number(const struct switch_port *port);
/* switch_port_next() - the port after @port, the first if @port is NULL; NULL after the last */
struct switch_port *switch_port_next(struct net_switch *sw, const struct switch_port *port);

/**
 * switch_port_limit() - make the link to what is behind a port slow, or change it, not while a
 * packet is being delivered; NULL: fast again, and what waits is lost
 * @port:	port of a switch that has timers
 * @param:	link, in range
 *
 * Return: 0 or -ENOMEM.
 */
int switch_port_limit(struct switch_port *port, const struct egress_param *param);

/* switch_port_egress() - the slow link of @port, or NULL */
const struct egress *switch_port_egress(const struct switch_port *port);

/*
 * switch_find() - look for the station that @p, RoCE to be sent by @from, goes to in its VLAN, and
 * fill in its @to and @far: that spares the switch another search
 */
void switch_find(const struct switch_port *from, struct packet *p);

/** switch_send() - queue @p, coming in by @port; the switch owns it from here */
void switch_send(struct switch_port *port, struct packet *p);

/** switch_loopback() - queue @p for @port itself: a device talks to itself */
void switch_loopback(struct switch_port *port, struct packet *p);

/* switch_is_observed() - there is an observer */
bool switch_is_observed(const struct net_switch *sw);

/** switch_set_observer() - from now on @o sees what passes; NULL: nobody. @o has to live on. */
void switch_set_observer(struct net_switch *sw, const struct switch_observer *o);

/**
 * switch_observe() - show the observer, if there is one, a packet at a port
 *
 * The switch does so for every packet that it takes or gives, and once more, with a note, for what
 * it loses. Others do for what goes another way: a frame that is not let in, or held up.
 */
void switch_observe(const struct switch_port *port, enum switch_way way, const struct packet *p,
		    const char *note);
/* switch_observe_frame() - the same for a frame of @len bytes, at least an Ethernet header's */
void switch_observe_frame(const struct switch_port *port, enum switch_way way, uint8_t *frame,
			  uint32_t len, const char *note);

/** switch_set_fault() - from now on @f may take what passes; NULL: nobody. @f has to live on. */
void switch_set_fault(struct net_switch *sw, const struct switch_fault *f);

/* switch_is_faulty() - packets may be lost or late although they stay within this daemon */
bool switch_is_faulty(const struct net_switch *sw);

/**
 * switch_resume() - a packet that was taken at @port goes on from there, at once
 * @port:	where
 * @way:	which way it went
 * @p:		packet with its @from set; stays the caller's
 * @note:	for the observer, who has seen it come in before, that there was a fault; NULL: there was none
 */
void switch_resume(struct switch_port *port, enum switch_way way, const struct packet *p,
		   const char *note);

/** switch_drain() - deliver until no packet is queued; delivery may queue more */
void switch_drain(struct net_switch *sw);

/*
 * switch_hold() - what was delivered at @port waits there for more to go with it, until its flush()
 * is called, once
 */
void switch_hold(struct switch_port *port);

/*
 * switch_flush() - have what waits at ports sent, at the end of a turn. Until then it has to be a
 * copy: what was delivered between turns also waits while commands change guests' memory.
 */
void switch_flush(struct net_switch *sw);

#endif /* ORNICD_NET_SWITCH_H */
