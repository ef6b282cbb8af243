// SPDX-License-Identifier: GPL-2.0
/*
 * The switch: announced and learned MAC addresses, forwarding.
 *
 * There are two tables. Stations are the announced addresses of devices: a hash table that only
 * devices change. Learned addresses are those behind other ports, where a peer can invent any
 * number of them. They are therefore in a table of fixed size, in which a new address replaces the
 * one of its bucket that was not seen for longest.
 *
 * Each VLAN has its own addresses, and frames without a VLAN count as one more VLAN. The port of a
 * device without a VLAN is in all of them.
 */
#include "switch.h"

#include "egress.h"
#include "vlan.h"
#include "../packet/frames.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STATION_BUCKETS	256
#define LEARN_BUCKETS	1024
#define LEARN_WAYS	4
/* Seconds after which a learned address expires, unless it is seen again */
#define LEARN_AGE	300

/* Notes for the observer that are used in more than one place. */
static const char link_down[] = "dropped: link down";
static const char too_long[] = "dropped: too long with a tag";

/**
 * struct switch_port - a port
 * @sw:		its switch
 * @ops:	operations of the device or uplink behind it
 * @arg:	for @ops
 * @name:	unique name
 * @number:	see switch_port_number()
 * @mac:	announced address, valid if @station
 * @station:	a device: its address is announced, not learned
 * @up:		sends and receives
 * @promisc:	gets unicast frames for unknown addresses, too
 * @vlan:	access port of this VLAN, or 0
 * @vlan_drop:	see switch_port_vlan_drop()
 * @held:	in the list of ports to flush
 * @egress:	rate-limited link behind the port, or NULL
 * @hold:	in @held of the switch
 * @link:	in @ports of the switch
 * @hash:	in the bucket of @mac
 */
struct switch_port {
	struct net_switch *sw;
	const struct switch_port_ops *ops;
	void *arg;
	char *name;
	uint32_t number;
	uint8_t mac[6];
	bool station;
	bool up;
	bool promisc;
	uint16_t vlan;
	bool held;
	uint64_t vlan_drop;
	struct egress *egress;
	LIST_ENTRY(switch_port) hold;
	TAILQ_ENTRY(switch_port) link;
	LIST_ENTRY(switch_port) hash;
};

/**
 * struct learned - an address behind a port
 * @mac:	address
 * @vlan:	VLAN of the address; in another VLAN it is another entry
 * @port:	port to which the address belongs; NULL if the entry is free
 * @seen:	time of the last frame from the address, seconds
 */
struct learned {
	uint8_t mac[6];
	uint16_t vlan;
	struct switch_port *port;
	uint32_t seen;
};

LIST_HEAD(port_list, switch_port);

/**
 * struct net_switch - a switch
 * @pool:	pool of all packets
 * @timers:	timers of rate-limited links
 * @now:	current time of @timers, ns
 * @queue:	packets that entered and are not delivered yet
 * @observer:	sees every packet; usually NULL
 * @fault:	fault injection; usually NULL
 * @held:	ports to be flushed
 * @ports:	all ports
 * @next_number: number of the next port
 * @retagged:	copy of the packet being delivered, for ports where its tag differs
 * @station:	devices by address
 * @learned:	other addresses
 */
struct net_switch {
	struct packet_pool *pool;
	struct timers *timers;
	const uint64_t *now;
	struct packet_queue queue;
	const struct switch_observer *observer;
	const struct switch_fault *fault;
	struct port_list held;
	TAILQ_HEAD(, switch_port) ports;
	uint32_t next_number;
	struct vlan_copy retagged;
	struct port_list station[STATION_BUCKETS];
	struct learned learned[LEARN_BUCKETS][LEARN_WAYS];
};

static bool mac_is_group(const uint8_t mac[6])
{
	return mac[0] & 1;
}

static uint32_t mac_hash(const uint8_t mac[6])
{
	uint64_t v = 0;

	memcpy(&v, mac, 6);
	return v * 0x9e3779b97f4a7c15ull >> 40;
}

static uint32_t switch_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec;
}

/**
 * switch_new() - create a switch without ports
 * @pool:	pool of all its packets
 *
 * Return: the switch or NULL.
 */
struct net_switch *switch_new(struct packet_pool *pool)
{
	struct net_switch *sw = calloc(1, sizeof(*sw));

	if (!sw)
		return NULL;
	sw->pool = pool;
	STAILQ_INIT(&sw->queue);
	LIST_INIT(&sw->held);
	TAILQ_INIT(&sw->ports);
	return sw;
}

void switch_set_time(struct net_switch *sw, struct timers *timers, const uint64_t *now)
{
	sw->timers = timers;
	sw->now = now;
}

/**
 * switch_free() - drop queued packets, delete the remaining ports, free the switch
 * @sw:	switch; NULL is ignored
 */
void switch_free(struct net_switch *sw)
{
	if (!sw)
		return;
	while (!TAILQ_EMPTY(&sw->ports))
		switch_port_del(TAILQ_FIRST(&sw->ports));
	free(sw);
}

/**
 * switch_port_add() - add a port, down and without an address
 * @sw:		switch
 * @name:	name for messages and switch_port_find(); copied
 * @ops:	operations of the device or uplink behind it
 * @arg:	for @ops
 *
 * Return: the port or NULL.
 */
struct switch_port *switch_port_add(struct net_switch *sw, const char *name,
				    const struct switch_port_ops *ops, void *arg)
{
	struct switch_port *port = calloc(1, sizeof(*port));

	if (!port)
		return NULL;
	port->name = strdup(name);
	if (!port->name) {
		free(port);
		return NULL;
	}
	port->sw = sw;
	port->number = sw->next_number++;
	port->ops = ops;
	port->arg = arg;
	TAILQ_INSERT_TAIL(&sw->ports, port, link);
	return port;
}

static void drop_packets_of(struct net_switch *sw, const struct switch_port *port)
{
	struct packet_queue keep = STAILQ_HEAD_INITIALIZER(keep);
	struct packet *p;

	while ((p = STAILQ_FIRST(&sw->queue))) {
		STAILQ_REMOVE_HEAD(&sw->queue, link);
		if (p->to == port)
			p->to = NULL;
		if (p->from == port)
			packet_put(sw->pool, p);
		else
			STAILQ_INSERT_TAIL(&keep, p, link);
	}
	STAILQ_CONCAT(&sw->queue, &keep);
}

/* Drop all packets that entered by @port or wait there, and forget the addresses behind it. */
static void forget(struct net_switch *sw, struct switch_port *port, const char *why)
{
	const struct switch_port *other;

	for (uint32_t i = 0; i < LEARN_BUCKETS * LEARN_WAYS; i++) {
		struct learned *l = &sw->learned[i / LEARN_WAYS][i % LEARN_WAYS];

		if (l->port == port)
			l->port = NULL;
	}
	drop_packets_of(sw, port);
	if (port->egress)
		egress_drop(port->egress, why);
	TAILQ_FOREACH(other, &sw->ports, link)
		if (other->egress)
			egress_drop_from(other->egress, port, why);
	if (sw->fault)
		sw->fault->gone(sw->fault->arg, port, why);
}

/**
 * switch_port_del() - delete a port and drop all packets that entered by it or wait there
 * @port:	port; must not be called while a packet is being delivered
 */
void switch_port_del(struct switch_port *port)
{
	struct net_switch *sw = port->sw;

	forget(sw, port, "dropped: port deleted");
	if (port->station)
		LIST_REMOVE(port, hash);
	if (port->held)
		LIST_REMOVE(port, hold);
	TAILQ_REMOVE(&sw->ports, port, link);
	free(port->name);
	egress_free(port->egress);
	free(port);
}

struct switch_port *switch_port_find(struct net_switch *sw, const char *name)
{
	struct switch_port *port;

	TAILQ_FOREACH(port, &sw->ports, link)
		if (!strcmp(port->name, name))
			return port;
	return NULL;
}

/* VLAN of @p, which enters by @from; 0 for frames without one. */
static uint16_t vlan_of(const struct switch_port *from, const struct packet *p)
{
	return from->vlan ? from->vlan : vlan_id(p);
}

/* Find a station. There is at most one, because ports in the same VLAN have different addresses. */
static struct switch_port *station_find(const struct net_switch *sw, const uint8_t mac[6],
					uint16_t vlan)
{
	struct switch_port *port;

	LIST_FOREACH(port, &sw->station[mac_hash(mac) % STATION_BUCKETS], hash)
		if (!memcmp(port->mac, mac, 6) && (!port->vlan || port->vlan == vlan))
			return port;
	return NULL;
}

void switch_find(const struct switch_port *from, struct packet *p)
{
	uint16_t vlan = p->vlan || from->vlan ? vlan_of(from, p) : 0;

	p->to = station_find(from->sw, p->dmac, vlan);
	p->remote = !p->to || p->to->egress;
}

/* Return true if another port has that address in that VLAN or in all VLANs. */
static bool is_taken(const struct switch_port *port, const uint8_t mac[6], uint16_t vlan)
{
	const struct switch_port *o;

	LIST_FOREACH(o, &port->sw->station[mac_hash(mac) % STATION_BUCKETS], hash)
		if (o != port && !memcmp(o->mac, mac, 6) &&
		    (!vlan || !o->vlan || vlan == o->vlan))
			return true;
	return false;
}

int switch_port_set_mac(struct switch_port *port, const uint8_t mac[6])
{
	if (is_taken(port, mac, port->vlan))
		return -EEXIST;
	if (port->station)
		LIST_REMOVE(port, hash);
	memcpy(port->mac, mac, 6);
	port->station = true;
	LIST_INSERT_HEAD(&port->sw->station[mac_hash(mac) % STATION_BUCKETS], port, hash);
	return 0;
}

void switch_port_set_up(struct switch_port *port, bool up)
{
	port->up = up;
}

bool switch_port_is_up(const struct switch_port *port)
{
	return port->up;
}

void switch_port_set_promisc(struct switch_port *port, bool promisc)
{
	port->promisc = promisc;
}

int switch_port_set_vlan(struct switch_port *port, uint16_t id)
{
	if (port->station && is_taken(port, port->mac, id))
		return -EEXIST;
	if (port->vlan == id)
		return 0;
	forget(port->sw, port, "dropped: port moved to another VLAN");
	port->vlan = id;
	return 0;
}

uint16_t switch_port_vlan(const struct switch_port *port)
{
	return port->vlan;
}

uint64_t switch_port_vlan_drop(const struct switch_port *port)
{
	return port->vlan_drop;
}

const char *switch_port_name(const struct switch_port *port)
{
	return port->name;
}

bool switch_port_is_device(const struct switch_port *port)
{
	return port->station;
}

uint32_t switch_port_number(const struct switch_port *port)
{
	return port->number;
}

struct switch_port *switch_port_next(struct net_switch *sw, const struct switch_port *port)
{
	return port ? TAILQ_NEXT(port, link) : TAILQ_FIRST(&sw->ports);
}

void switch_set_observer(struct net_switch *sw, const struct switch_observer *o)
{
	sw->observer = o;
}

bool switch_is_observed(const struct net_switch *sw)
{
	return sw->observer;
}

void switch_observe(const struct switch_port *port, enum switch_way way, const struct packet *p,
		    const char *note)
{
	const struct switch_observer *o = port->sw->observer;

	if (__builtin_expect(!!o, 0))
		o->observe(o->arg, port, way, p, note);
}

void switch_observe_frame(const struct switch_port *port, enum switch_way way, uint8_t *frame,
			  uint32_t len, const struct frames_kept *kept, const char *note)
{
	struct packet p;

	if (!switch_is_observed(port->sw))
		return;
	memset(&p, 0, offsetof(struct packet, seg));
	if (kept)
		frames_restore(&p, frame, len, kept);
	else
		frames_parse(&p, frame, len);
	switch_observe(port, way, &p, note);
}

static void link_arrived(void *arg, const struct packet *p, const char *note)
{
	struct switch_port *port = arg;

	switch_observe(port, SWITCH_OUT, p, port->up ? note : link_down);
	if (port->up)
		port->ops->deliver(port->arg, p);
}

static void link_lost(void *arg, uint8_t *frame, uint32_t len, const struct frames_kept *kept,
		      const char *why)
{
	switch_observe_frame(arg, SWITCH_OUT, frame, len, kept, why);
}

static const struct egress_ops link_ops = {
	.arrived = link_arrived,
	.lost = link_lost,
};

int switch_port_limit(struct switch_port *port, const struct egress_param *param)
{
	if (!param) {
		if (port->egress)
			egress_drop(port->egress, "dropped: rate limit removed");
		egress_free(port->egress);
		port->egress = NULL;
		return 0;
	}
	if (!port->egress)
		port->egress = egress_new(port->sw->timers, port->sw->now, &link_ops, port);
	if (!port->egress)
		return -ENOMEM;
	egress_set(port->egress, param);
	return 0;
}

const struct egress *switch_port_egress(const struct switch_port *port)
{
	return port->egress;
}

static struct learned *learned_bucket(struct net_switch *sw, const uint8_t mac[6], uint16_t vlan)
{
	return sw->learned[(mac_hash(mac) + vlan) % LEARN_BUCKETS];
}

static bool is_entry(const struct learned *l, const uint8_t mac[6], uint16_t vlan)
{
	return l->port && l->vlan == vlan && !memcmp(l->mac, mac, 6);
}

static struct switch_port *learned_find(struct net_switch *sw, const uint8_t mac[6],
					uint16_t vlan)
{
	struct learned *way = learned_bucket(sw, mac, vlan);

	for (int i = 0; i < LEARN_WAYS; i++)
		if (is_entry(&way[i], mac, vlan) && switch_seconds() - way[i].seen < LEARN_AGE)
			return way[i].port;
	return NULL;
}

static void learn(struct net_switch *sw, const uint8_t mac[6], uint16_t vlan,
		  struct switch_port *port)
{
	struct learned *way = learned_bucket(sw, mac, vlan);
	struct learned *victim = &way[0];

	if (mac_is_group(mac) || station_find(sw, mac, vlan))
		return;
	for (int i = 0; i < LEARN_WAYS; i++) {
		if (is_entry(&way[i], mac, vlan)) {
			victim = &way[i];
			break;
		}
		if (victim->port && (!way[i].port || way[i].seen < victim->seen))
			victim = &way[i];
	}
	memcpy(victim->mac, mac, 6);
	victim->vlan = vlan;
	victim->port = port;
	victim->seen = switch_seconds();
}

void switch_send(struct switch_port *port, struct packet *p)
{
	switch_observe(port, SWITCH_IN, p, NULL);
	if (!port->up) {
		switch_observe(port, SWITCH_IN, p, link_down);
		packet_put(port->sw->pool, p);
		return;
	}
	p->from = port;
	STAILQ_INSERT_TAIL(&port->sw->queue, p, link);
}

void switch_loopback(struct switch_port *port, struct packet *p)
{
	p->loopback = true;
	switch_send(port, p);
}

void switch_set_fault(struct net_switch *sw, const struct switch_fault *f)
{
	sw->fault = f;
}

bool switch_is_faulty(const struct net_switch *sw)
{
	return sw->fault;
}

/* Return true if fault injection takes the packet. */
static bool taken(struct switch_port *port, enum switch_way way, const struct packet *p)
{
	const struct switch_fault *f = port->sw->fault;

	return __builtin_expect(!!f, 0) && f->packet(f->arg, port, way, p);
}

/* Send @p out at @port; packets of a device to itself bypass the rate-limited link. */
static void leave(struct switch_port *port, const struct packet *p, const char *note)
{
	if (port->egress && port != p->from) {
		egress_put(port->egress, p, note);
		return;
	}
	switch_observe(port, SWITCH_OUT, p, note);
	port->ops->deliver(port->arg, p);
}

/*
 * Replace *@p by a copy with the tag that it needs at @port, whose VLAN differs from that of the
 * port it entered by. Return: NULL, or the reason why it is dropped.
 */
static const char *retag(struct switch_port *port, const struct packet **p)
{
	struct vlan_copy *c = &port->sw->retagged;
	const struct switch_port *from = (*p)->from;
	uint16_t id = from->vlan ? from->vlan : vlan_id(*p);

	if (port->vlan && port->vlan != id)
		return "dropped: another VLAN";
	if (!vlan_retag(c, *p, port->vlan ? 0 : id)) {
		port->vlan_drop++;
		return too_long;
	}
	*p = &c->packet;
	return NULL;
}

/* Send @p out at @port. Return: NULL, or the reason why it is dropped. */
static const char *deliver(struct switch_port *port, const struct packet *p)
{
	const char *why = NULL;

	if (!(port == p->from ? p->loopback || p->echo : !p->loopback))
		return "dropped: not sent back to where it came from";
	if (!port->up)
		return link_down;
	if (port->vlan != p->from->vlan)
		why = retag(port, &p);
	if (!why && !taken(port, SWITCH_OUT, p))
		leave(port, p, NULL);
	return why;
}

/* Send @p out at all ports that want it; it counts as dropped only if none takes it. */
static void flood(struct net_switch *sw, const struct packet *p, bool group)
{
	struct switch_port *port;
	bool lost = true;

	TAILQ_FOREACH(port, &sw->ports, link) {
		const char *why;

		if (!group && !port->promisc && port->station)
			continue;
		why = deliver(port, p);
		if (why == too_long)
			switch_observe(port, SWITCH_OUT, p, why);
		if (!why || why == too_long)
			lost = false;
	}
	if (lost)
		switch_observe(p->from, SWITCH_IN, p, "dropped: no port for it");
}

/* Send @p out at its port, whose address was announced or learned, or at all ports that want it. */
static void forward(struct net_switch *sw, const struct packet *p)
{
	bool group = mac_is_group(p->dmac);
	struct switch_port *port = group ? NULL : p->to;
	const char *why;

	if (p->loopback) {
		port = p->from;
	} else {
		if (p->from->vlan && vlan_is_tagged(p)) {
			p->from->vlan_drop++;
			switch_observe(p->from, SWITCH_IN, p, "dropped: tagged, by an access port");
			return;
		}
		if (!p->from->station)
			learn(sw, p->smac, vlan_of(p->from, p), p->from);
		if (!group && !port)
			port = station_find(sw, p->dmac, vlan_of(p->from, p));
		if (!group && !port)
			port = learned_find(sw, p->dmac, vlan_of(p->from, p));
	}
	if (!port) {
		flood(sw, p, group);
		return;
	}
	why = deliver(port, p);
	if (why)
		switch_observe(port, SWITCH_OUT, p, why);
}

void switch_resume(struct switch_port *port, enum switch_way way, const struct packet *p,
		   const char *note)
{
	if (!port->up) {
		switch_observe(port, way, p, link_down);
		return;
	}
	if (way == SWITCH_IN) {
		if (note)
			switch_observe(port, SWITCH_IN, p, note);
		forward(port->sw, p);
	} else {
		leave(port, p, note);
	}
}

void switch_drain(struct net_switch *sw)
{
	struct packet *p;

	while ((p = STAILQ_FIRST(&sw->queue))) {
		STAILQ_REMOVE_HEAD(&sw->queue, link);
		if (!sw->fault)
			forward(sw, p);
		else if (!taken(p->from, SWITCH_IN, p))
			switch_resume(p->from, SWITCH_IN, p, NULL);
		packet_put(sw->pool, p);
	}
}

void switch_hold(struct switch_port *port)
{
	if (port->held)
		return;
	port->held = true;
	LIST_INSERT_HEAD(&port->sw->held, port, hold);
}

void switch_flush(struct net_switch *sw)
{
	struct switch_port *port;

	while ((port = LIST_FIRST(&sw->held))) {
		LIST_REMOVE(port, hold);
		port->held = false;
		port->ops->flush(port->arg);
	}
}
