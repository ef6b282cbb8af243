/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The data path's view of one PCI function: its tables, its port, its events.
 *
 * Admin commands (dev/) fill it, the engine uses it. Everything runs on the engine's thread.
 */
#ifndef ORNICD_ENGINE_DEVICE_H
#define ORNICD_ENGINE_DEVICE_H

#include "account.h"
#include "counters.h"
#include "cq.h"
#include "eq.h"
#include "mcast.h"
#include "pagelist.h"
#include "table.h"
#include "../packet/antispoof.h"
#include "../timer.h"

#include <ornic/admin.h>
#include <ornic/identify.h>
#include <ornic/port.h>
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct engine;
struct gpa;
struct latency;
struct log_source;
struct qp;
struct steer_rule;
struct switch_port;

/** PORT_SPEED_MBPS - reported speed of a port, Mbit/s; a virtual link has no speed of its own */
#define PORT_SPEED_MBPS	100000

/** DEVICE_GIDS - entries of the GID table */
#define DEVICE_GIDS	256

/**
 * struct device_host - operations of the PCI function behind a device
 * @irq:	send an MSI-X message
 * @fatal:	stop the function (ORN-CTL-5); may be called within a turn
 * @port_changed: note that the port differs from the last Identify (ORN-IDN-4)
 */
struct device_host {
	void (*irq)(void *arg, uint16_t vector);
	void (*fatal)(void *arg, uint32_t syndrome);
	void (*port_changed)(void *arg);
};

/**
 * struct port - the function's port
 * @sw:		place on the switch
 * @mac:	current MAC address
 * @permanent_mac: configured MAC address
 * @admin_up:	the host enabled the port
 * @unplugged:	no carrier: it is down even if @admin_up
 * @max_frame:	Ethernet payload bytes accepted
 * @flags:	rights that the operator granted: ORNIC_PORT_F_*
 * @source:	IP addresses from which it may send
 * @spoof_quiet: no log line about a frame from another address before this time, ns
 * @gid:	GID table, as set by the host
 * @gid_hit:	entry that matched the last received packet
 * @gsi:	queue pair with QPN 1
 * @unicast, @multicast, @promisc: targets of the receive rules of these kinds, or NULL
 * @match:	MATCH rules in their order
 * @leftover:	MATCH rules for frames that the network interface did not take
 * @frames:	number of frames that were matched against rules
 */
struct port {
	struct switch_port *sw;
	uint8_t mac[6];
	uint8_t permanent_mac[6];
	bool admin_up;
	bool unplugged;
	uint16_t max_frame;
	uint32_t flags;
	struct antispoof source;
	uint64_t spoof_quiet;
	struct ornic_gid_entry gid[DEVICE_GIDS];
	uint32_t gid_hit;
	struct qp *gsi;
	struct qp *unicast;
	struct qp *multicast;
	struct qp *promisc;
	struct steer_rule *match;
	struct steer_rule *leftover;
	uint64_t frames;
};

/**
 * struct device - one function
 * @engine:	engine that works for it
 * @gpa:	its guest's memory
 * @host:	operations of the function
 * @arg:	argument of @host's operations
 * @name:	name for the operator
 * @log:	source of log lines, or NULL
 * @running:	READY and bus mastering: DMA is allowed
 * @features:	feature word 0 as accepted by the host
 * @pds:	protection domains
 * @keys:	struct mr by key index
 * @cqs:	struct cq
 * @qps:	struct qp by handle
 * @srqs:	struct srq
 * @xrcds:	struct xrcd
 * @eqs:	struct eq, numbers from 0
 * @sets:	struct counter_set
 * @mcast:	multicast groups
 * @rules:	struct steer_rule
 * @groups:	struct rss
 * @account:	memory that the guest makes the daemon use
 * @lists:	budget of page lists
 * @backlog_bytes: bytes of datagrams that wait for receives
 * @port:	port 1
 * @active:	queue pairs with work, in turn order
 * @busy:	in the engine's list, if @active is not empty
 * @watched:	queue pairs whose rings are empty and polled, in the order in which they are polled
 * @watching:	in the engine's list, if @watched is not empty
 * @look:	CQs for cq_look() at the end of the turn
 * @eq_look:	EQs for eq_look() at the end of the turn
 * @timers:	of its queue pairs, CQs and function
 * @credit:	time that it may still use for commands and messages in this round, ns; not positive
 *		if it has used it (fair.h)
 * @turns:	the same for turns of its queue pairs
 * @charged:	time up to which @credit was charged, ns; 0: nothing is being measured
 * @held:	its commands or messages wait for the next round
 * @failed:	a CQ or SRQ went into error, and the search for its queue pairs has not begun
 * @stopping:	a search is under way (qp_stop_users())
 * @stop_at:	number of the queue pair at which it continues
 * @cnt:	counters (enum counter)
 * @past:	sums of deleted counter sets
 * @latency:	latency of work requests, or NULL if it is not measured
 * @link:	in the engine's list
 */
struct device {
	struct engine *engine;
	struct gpa *gpa;
	const struct device_host *host;
	void *arg;
	const char *name;
	struct log_source *log;
	bool running;
	uint64_t features;
	struct table pds;
	struct table keys;
	struct table cqs;
	struct table qps;
	struct table srqs;
	struct table xrcds;
	struct table eqs;
	struct table sets;
	struct mcast mcast;
	struct table rules;
	struct table groups;
	struct account account;
	struct page_lists lists;
	uint32_t backlog_bytes;
	struct port port;
	TAILQ_HEAD(, qp) active;
	TAILQ_ENTRY(device) busy;
	TAILQ_HEAD(watched_qps, qp) watched;
	TAILQ_ENTRY(device) watching;
	TAILQ_HEAD(, cq) look;
	TAILQ_HEAD(looked_eqs, eq) eq_look;
	struct timers timers;
	int64_t credit;
	int64_t turns;
	uint64_t charged;
	bool held;
	bool failed;
	bool stopping;
	uint32_t stop_at;
	uint64_t cnt[CNT_COUNT];
	uint64_t past[CNT_COUNT];
	struct latency *latency;
	TAILQ_ENTRY(device) link;
};

/** struct pd - a protection domain; @users: keys, queue pairs and SRQs in it (ORN-PD-1) */
struct pd {
	uint32_t number;
	uint32_t users;
};

static inline void device_count(struct device *dev, enum counter c, uint64_t n)
{
	dev->cnt[c] += n;
}

/* device_gid() - return the valid entry at @index, or NULL */
const struct ornic_gid_entry *device_gid(const struct device *dev, uint32_t index);

/* gid_vlan() - return the VLAN of an entry, or 0 if it has none; see vlan_id() for packets */
static inline uint16_t gid_vlan(const struct ornic_gid_entry *g)
{
	return le32toh(g->flags) & ORNIC_GID_VLAN ? le16toh(g->vlan) : 0;
}

/* device_has_gid() - return true if @gid is a valid entry of any VLAN */
bool device_has_gid(const struct device *dev, const uint8_t gid[16]);

#endif /* ORNICD_ENGINE_DEVICE_H */
