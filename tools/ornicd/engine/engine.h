/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine: the data path of all devices of this daemon, on one thread.
 *
 * It runs in bounded turns. A turn runs expired timers, lets active queue pairs
 * work one after the other (a budget each), delivers the packets that made,
 * then looks at the completion and event queues that were written. A packet to a group is
 * as much work as it has takers, so these are counted, and end a turn that had many
 * (ORN-SEC-5). Work comes
 * to the engine by doorbells and by packets; a queue pair that ran dry is
 * watched for a moment (spin), then asks for a doorbell and is forgotten
 * (ORN-RNG-6). The cost of a turn is that of active queues, not of existing ones.
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
 * struct engine - see above
 * @sw:		joins the devices
 * @pool:	packets
 * @syncer:	makes memory of guests durable
 * @timers:	retransmission, RNR, moderation
 * @clock:	where time comes from: engine_clock(), or a test's
 * @now:	time of this turn, ns of @clock
 * @cc:		congestion control
 * @copies:	frames and datagrams of groups given to takers in this turn
 * @spin_ns:	how long an empty queue is watched before it asks for a doorbell
 * @faults:	faults on purpose ; NULL until there is a rule
 * @busy:	devices whose queue pairs have work, in turn order
 * @watch:	queue pairs whose send queue ran dry, oldest first
 * @acks:	queue pairs that owe an ACK for what is being delivered
 * @devices:	all devices
 */
struct engine {
	struct net_switch *sw;
	struct packet_pool pool;
	struct syncer syncer;
	struct timers timers;
	uint64_t (*clock)(void);
	uint64_t now;
	struct cc_param cc;
	uint32_t copies;
	uint64_t spin_ns;
	const struct engine_faults *faults;
	TAILQ_HEAD(, device) busy;
	TAILQ_HEAD(, qp) watch;
	TAILQ_HEAD(, qp) acks;
	TAILQ_HEAD(, device) devices;
};

/** ENGINE_COPIES - copies after which a turn starts nothing that may lead to more */
#define ENGINE_COPIES	256

/* engine_sated() - this turn gave enough copies: whoever sends goes on in the next */
static inline bool engine_sated(const struct engine *e)
{
	return e->copies >= ENGINE_COPIES;
}

int engine_init(struct engine *e, uint64_t spin_ns);
void engine_fini(struct engine *e);

/*
 * engine_turn() - one bounded piece of work
 * Return: 0 = more to do; ns until it wants to be called again; -1 = only a
 * doorbell or a command can bring work. Fits loop_set_work().
 */
int64_t engine_turn(void *engine);

/* engine_drain() - deliver what is on the switch, and the ACKs for it */
void engine_drain(struct engine *e);

/* engine_input() - packets from outside were put on the switch: deliver them, and the answers. */
void engine_input(void *engine);

/* Devices join with tables initialised and the port on the switch. */
void engine_add_device(struct engine *e, struct device *dev);
void engine_del_device(struct engine *e, struct device *dev);

/* engine_activate() - @qp has, or may have, work. */
void engine_activate(struct engine *e, struct qp *qp);
/* engine_forget() - @qp goes away, or stops working. */
void engine_forget(struct engine *e, struct qp *qp);

/* engine_clock() - ns of the monotonic clock, the device clock. */
uint64_t engine_clock(void);

#endif /* ORNICD_ENGINE_ENGINE_H */
