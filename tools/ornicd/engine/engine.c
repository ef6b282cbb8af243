// SPDX-License-Identifier: GPL-2.0
/*
 * Scheduling: run, poll and put to sleep queue pairs.
 */
#include "engine.h"

#include "fair.h"
#include "qp.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

/** ENGINE_QPS - most queue pairs that work in one turn */
#define ENGINE_QPS	16
/** ENGINE_WATCHED - most watched queue pairs of a device that are polled in one turn */
#define ENGINE_WATCHED	16
/** ENGINE_TURN_NS - time after which a turn starts no further queue pair, ns (ORN-PCI-2) */
#define ENGINE_TURN_NS	100000
/** ENGINE_PACKETS - packets in the pool */
#define ENGINE_PACKETS	512

uint64_t engine_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

int engine_init(struct engine *e, uint32_t spin_us)
{
	int err = -ENOMEM;

	*e = (struct engine) { .spin_ns = spin_us * 1000ull, .clock = engine_clock };
	TAILQ_INIT(&e->busy);
	TAILQ_INIT(&e->watching);
	TAILQ_INIT(&e->acks);
	TAILQ_INIT(&e->devices);
	account_pool_init(&e->memory, UINT64_MAX);
	STAILQ_INIT(&e->unused);
	timers_init(&e->timers);
	cc_defaults(&e->cc);
	e->now = e->clock();
	if (packet_pool_init(&e->pool, ENGINE_PACKETS))
		return -ENOMEM;
	e->sw = switch_new(&e->pool);
	if (!e->sw)
		goto fini_pool;
	switch_set_time(e->sw, &e->timers, &e->now);
	err = syncer_init(&e->syncer, fdatasync);
	if (!err)
		return 0;
	switch_free(e->sw);
fini_pool:
	packet_pool_fini(&e->pool);
	return err;
}

void engine_fini(struct engine *e)
{
	while (pagelist_reap(&e->unused))
		;
	syncer_fini(&e->syncer);
	if (e->faults)
		e->faults->fini(e);
	switch_free(e->sw);
	packet_pool_fini(&e->pool);
	timers_fini(&e->timers);
}

void engine_add_device(struct engine *e, struct device *dev)
{
	dev->engine = e;
	TAILQ_INIT(&dev->active);
	TAILQ_INIT(&dev->watched);
	TAILQ_INIT(&dev->look);
	TAILQ_INIT(&dev->eq_look);
	mcast_init(&dev->mcast);
	account_open(&dev->account, &e->memory);
	dev->lists.account = &dev->account;
	dev->lists.queue = &e->unused;
	fair_open(dev);
	TAILQ_INSERT_TAIL(&e->devices, dev, link);
}

void engine_hide_device(struct engine *e, struct device *dev)
{
	TAILQ_REMOVE(&e->devices, dev, link);
	fair_exempt(dev);
}

void engine_del_device(struct device *dev)
{
	timers_fini(&dev->timers);
	pagelist_disown(&dev->lists);
	account_close(&dev->account);
}

void engine_forget(struct engine *e, struct qp *qp)
{
	struct device *dev = qp->dev;

	if (qp->sched == QP_WATCHED) {
		TAILQ_REMOVE(&dev->watched, qp, sched_link);
		if (TAILQ_EMPTY(&dev->watched))
			TAILQ_REMOVE(&e->watching, dev, watching);
	} else if (qp->sched == QP_ACTIVE) {
		TAILQ_REMOVE(&dev->active, qp, sched_link);
		if (TAILQ_EMPTY(&dev->active))
			TAILQ_REMOVE(&e->busy, dev, busy);
	}
	qp->sched = QP_ASLEEP;
}

void engine_activate(struct engine *e, struct qp *qp)
{
	struct device *dev = qp->dev;

	if (qp->sched == QP_ACTIVE)
		return;
	engine_forget(e, qp);
	qp->sched = QP_ACTIVE;
	if (TAILQ_EMPTY(&dev->active))
		TAILQ_INSERT_TAIL(&e->busy, dev, busy);
	TAILQ_INSERT_TAIL(&dev->active, qp, sched_link);
}

/* Poll the empty rings of @qp, which is on no list, from the next turn on. */
static void engine_watch(struct engine *e, struct qp *qp)
{
	struct device *dev = qp->dev;

	qp->sched = QP_WATCHED;
	if (TAILQ_EMPTY(&dev->watched))
		TAILQ_INSERT_TAIL(&e->watching, dev, watching);
	TAILQ_INSERT_TAIL(&dev->watched, qp, sched_link);
}

void engine_drain(struct engine *e)
{
	backing_loss_clear();
	do {
		switch_drain(e->sw);
	} while (answer_flush(e));
}

/*
 * Run active queue pairs: round robin over devices, then over the queue pairs of a device
 * (ORN-SEC-13). A device gives up its place only if one of its queue pairs runs. Otherwise a device
 * that ends every iteration by its copies or its time would always take the place of the next one.
 */
static void run_active(struct engine *e)
{
	struct device *dev, *last = NULL;
	/* Reading the clock takes time. Here and behind the loop it is needed only if a device waits. */
	uint64_t start = e->held ? e->clock() : e->now;

	for (int n = 0; n < ENGINE_QPS && (dev = TAILQ_FIRST(&e->busy)); n++, last = dev) {
		struct qp *qp;

		if (last) {
			start = fair_charge_turn(last, start);
			if (engine_sated(e) || start - e->now > ENGINE_TURN_NS)
				return;
		}
		TAILQ_REMOVE(&e->busy, dev, busy);
		TAILQ_INSERT_TAIL(&e->busy, dev, busy);
		qp = TAILQ_FIRST(&dev->active);
		engine_forget(e, qp);
		backing_loss_clear();
		if (qp_run(qp))
			engine_activate(e, qp);
		engine_drain(e);
		if (qp->sched == QP_ASLEEP && qp_watchable(qp)) {
			qp->watch_until = e->now + e->spin_ns;
			engine_watch(e, qp);
		}
	}
	if (last && e->held)
		fair_charge_turn(last, start);
}

/* Poll the rings of a watched queue pair. It goes to sleep after spin_ns without work. */
static void poll_qp(struct engine *e, struct qp *qp)
{
	if (!qp_watchable(qp)) {
		engine_forget(e, qp);
	} else if (qp_has_news(qp)) {
		engine_activate(e, qp);
	} else if (e->now >= qp->watch_until) {
		engine_forget(e, qp);
		if (!qp_sleep(qp))
			engine_activate(e, qp);
	}
}

/* Each device has a heap of timers, so that none waits for the thousands of another. */
static void run_timers(struct engine *e)
{
	struct device *dev;

	timers_run(&e->timers, e->now);
	TAILQ_FOREACH(dev, &e->devices, link)
		timers_run(&dev->timers, e->now);
}

/* Return the ns until the next timer expires, -1: there is none. */
static int64_t next_timer(const struct engine *e)
{
	uint64_t now = e->clock();
	int64_t next = timers_next(&e->timers, now);
	const struct device *dev;

	TAILQ_FOREACH(dev, &e->devices, link)
		next = timers_sooner(next, timers_next(&dev->timers, now));
	return next;
}

/* Poll some watched queue pairs of each device, so that none waits for the thousands of another. */
static void poll_watched(struct engine *e)
{
	struct device *dev, *next;

	for (dev = TAILQ_FIRST(&e->watching); dev; dev = next) {
		struct qp *last = TAILQ_LAST(&dev->watched, watched_qps), *qp = NULL;

		next = TAILQ_NEXT(dev, watching);
		for (int n = 0; n < ENGINE_WATCHED && qp != last; n++) {
			qp = TAILQ_FIRST(&dev->watched);
			TAILQ_REMOVE(&dev->watched, qp, sched_link);
			TAILQ_INSERT_TAIL(&dev->watched, qp, sched_link);
			poll_qp(e, qp);
		}
	}
}

void engine_input(void *engine)
{
	struct engine *e = engine;

	e->now = e->clock();
	engine_drain(e);
}

/* Look at the event queues of @dev that were written, each once. */
static void look_at_eqs(struct device *dev)
{
	struct eq *last = TAILQ_LAST(&dev->eq_look, looked_eqs), *eq = NULL;

	while (dev->running && eq != last) {
		eq = TAILQ_FIRST(&dev->eq_look);
		eq_look(eq);
	}
}

int64_t engine_turn(void *engine)
{
	struct engine *e = engine;
	struct device *dev;
	struct cq *cq;
	bool more = false;

	e->now = e->clock();
	e->copies = 0;
	run_timers(e);
	engine_drain(e);	/* packets that timers of rate-limited links and of fault rules delivered */
	run_active(e);
	fair_rounds(e);
	switch_flush(e->sw);
	poll_watched(e);
	/* Raise the events of queues that were written; a CQ may write to its EQ. */
	TAILQ_FOREACH(dev, &e->devices, link) {
		while (dev->running && (cq = TAILQ_FIRST(&dev->look)))
			cq_look(cq);
		if (qp_stops_users(dev))
			qp_stop_users(dev);
		more |= qp_stops_users(dev);
		look_at_eqs(dev);
		more |= dev->running && !TAILQ_EMPTY(&dev->eq_look);
	}
	more |= pagelist_reap(&e->unused);
	if (more || !TAILQ_EMPTY(&e->busy) || !TAILQ_EMPTY(&e->watching))
		return 0;
	return next_timer(e);
}
