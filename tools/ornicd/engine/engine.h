/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine: the data path of all devices of this daemon, on one thread.
 *
 * It runs in bounded iterations, called turns. A turn runs expired timers, lets active queue pairs
 * work one after the other with a budget each, delivers the packets that they made, and raises the
 * events of the completion and event queues that were written. A multicast packet costs one copy
 * per receiver, so copies are counted, and many of them end a turn (ORN-SEC-5).
 *
 * Doorbells and packets bring work. A queue pair whose ring is empty is polled for @spin_ns, then
 * asks for a doorbell and leaves all lists (ORN-RNG-6). So the cost of a turn depends on active
 * queues, not on existing ones.
 */
#ifndef ORNICD_ENGINE_ENGINE_H
#define ORNICD_ENGINE_ENGINE_H

#include "cc.h"
#include "device.h"
#include "faults.h"
#include "../timer.h"
#include "../mem/syncer.h"
#include "../net/switch.h"
#include "../packet/packet.h"

struct qp;

/**
 * struct engine - the data path of one daemon
 * @sw:		joins the devices
 * @pool:	packets
 * @syncer:	writes memory of guests to disk
 * @memory:	memory that guests may make the daemon use
 * @unused:	page lists to be freed
 * @timers:	of fault rules and rate-limited links; those of devices are in struct device
 * @clock:	source of time, ns: engine_clock(), or that of a test
 * @now:	time of this turn, ns of @clock
 * @cc:		congestion control
 * @copies:	copies of multicast frames and datagrams delivered in this turn
 * @spin_ns:	time that an empty queue is watched before it asks for a doorbell, ns
 * @faults:	fault injection; NULL until there is a rule
 * @busy:	devices whose queue pairs have work, in turn order
 * @watching:	devices with queue pairs whose rings are empty and polled
 * @acks:	queue pairs that owe an ACK for packets of this delivery
 * @devices:	all devices
 * @held:	a device waits for the next round (fair.h)
 */
struct engine {
	struct net_switch *sw;
	struct packet_pool pool;
	struct syncer syncer;
	struct account_pool memory;
	struct pagelist_queue unused;
	struct timers timers;
	uint64_t (*clock)(void);
	uint64_t now;
	struct cc_param cc;
	uint32_t copies;
	uint64_t spin_ns;
	const struct engine_faults *faults;
	TAILQ_HEAD(, device) busy;
	TAILQ_HEAD(, device) watching;
	TAILQ_HEAD(, qp) acks;
	TAILQ_HEAD(, device) devices;
	bool held;
};

/** ENGINE_COPIES - copies after which a turn sends nothing further */
#define ENGINE_COPIES	256

/*
 * engine_sated() - return true if this turn delivered so many copies that sending continues in the
 * next
 */
static inline bool engine_sated(const struct engine *e)
{
	return e->copies >= ENGINE_COPIES;
}

/*
 * engine_init() - initialise @e without devices; @spin_us: time that an empty queue is watched, us
 * Return: 0 or a negative errno.
 */
int engine_init(struct engine *e, uint32_t spin_us);
/* engine_fini() - free what engine_init() allocated, after all devices were removed */
void engine_fini(struct engine *e);

/*
 * engine_turn() - do one bounded piece of work; for loop_set_work()
 * Return: 0 if there is more to do; ns until the next call; -1 if only a doorbell or a command can
 * bring work.
 */
int64_t engine_turn(void *engine);

/* engine_drain() - deliver all packets in the switch, and the ACKs that they cause */
void engine_drain(struct engine *e);

/* engine_input() - deliver packets that came from outside, and the answers; between turns */
void engine_input(void *engine);

/*
 * engine_add_device() - add a device whose tables are initialised and whose port is on the switch
 */
void engine_add_device(struct engine *e, struct device *dev);
/*
 * engine_hide_device() - remove a stopped device from @devices, so that it is not found by its name;
 * its objects may be released later
 */
void engine_hide_device(struct engine *e, struct device *dev);
/* engine_del_device() - undo engine_add_device() after engine_hide_device(); no objects are left */
void engine_del_device(struct device *dev);

/* engine_activate() - schedule @qp, which has or may have work */
void engine_activate(struct engine *e, struct qp *qp);
/* engine_forget() - take @qp from the lists of active and watched queue pairs */
void engine_forget(struct engine *e, struct qp *qp);

/* engine_clock() - read the monotonic clock, ns; it is the device clock too */
uint64_t engine_clock(void);

#endif /* ORNICD_ENGINE_ENGINE_H */
