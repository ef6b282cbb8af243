// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that create, use and destroy objects of every kind in random order.
 *
 * Each thread has separate objects and uses them together. As long as there is a device,
 * the verbs report by EBUSY that an object cannot be destroyed. They share the context, a
 * protection domain and a CQ. Two more threads poll that CQ and take the asynchronous
 * events of the context.
 */
#include "storm_churn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARED_ENTRIES	16384
#define WAKE_MS		20

/* Some kinds have few objects, which may be exhausted for a moment. */
static bool short_of(int err)
{
	return err == ENOSPC || err == ENOMEM;
}

static void failed(struct nest *n, const char *verb, enum kind kind, int err)
{
	if (!storm_gone(n->s))
		storm_fail(n->s, "%s %s: %s (seed %llu)", verb, kinds[kind].name, strerror(err),
			   (unsigned long long)n->s->seed);
}

static void make(struct churner *me, enum kind kind, void **thing)
{
	errno = 0;
	*thing = kinds[kind].make(&me->nest);
	if (*thing)
		atomic_fetch_add(&me->c->made[kind], 1);
	else if (errno && !short_of(errno))
		failed(&me->nest, "create", kind, errno);
}

/* Return false if others still use it. */
static bool drop(struct churner *me, enum kind kind, void **thing)
{
	int err = kinds[kind].drop(&me->nest, *thing);

	if (err && err != EBUSY)
		failed(&me->nest, "destroy", kind, err);
	if (err)
		return false;
	*thing = NULL;
	return true;
}

static void use(struct churner *me, enum kind kind, void *thing)
{
	int err = kinds[kind].use(&me->nest, thing);

	if (err && err != EBUSY && !short_of(err))
		failed(&me->nest, "use", kind, err);
}

static void step(struct churner *me)
{
	struct rnd *r = &me->nest.rnd;
	enum kind kind = rnd_below(r, KINDS);
	void **thing = &me->nest.thing[kind][rnd_below(r, EACH)];

	if (!*thing)
		make(me, kind, thing);
	else if (kinds[kind].use && rnd_below(r, 3))
		use(me, kind, *thing);
	else if (drop(me, kind, thing) && storm_gone_now(me->c->s))
		me->last = kind;	/* no device was left that reports EBUSY */
}

/* Objects that use others are destroyed first, so every destroy must succeed. */
static void clear(struct churner *me)
{
	for (int kind = me->last; kind >= 0; kind--)
		for (unsigned int i = 0; i < EACH; i++)
			if (me->nest.thing[kind][i] &&
			    !drop(me, kind, &me->nest.thing[kind][i]))
				failed(&me->nest, "finally destroy", kind, EBUSY);
}

static void *churner(void *arg)
{
	struct churner *me = arg;

	for (unsigned int i = 0; i < me->rounds && !atomic_load(&me->c->s->over); i++)
		step(me);
	clear(me);
	return NULL;
}

static void *poller(void *arg)
{
	struct churn *c = arg;
	struct shared_cq *shared = &c->shared;
	struct ibv_wc wc;
	int n;

	while (!atomic_load(&c->done)) {
		pthread_mutex_lock(&shared->lock);
		n = ibv_poll_cq(shared->q.cq, 1, &wc);
		if (n > 0 && wc.wr_id != NO_LIFE &&
		    (wc.wr_id >= shared->lives || shared->gone[wc.wr_id]))
			storm_fail(c->s, "completion of queue pair %#x, whose life %llu is over",
				   wc.qp_num, (unsigned long long)wc.wr_id);
		pthread_mutex_unlock(&shared->lock);
		if (!n)
			sched_yield();
	}
	return NULL;
}

/* A destroy waits until the object's events are acknowledged. */
static void *listener(void *arg)
{
	struct churn *c = arg;
	struct ibv_context *verbs = c->s->dev.verbs;
	struct pollfd fd = { .fd = verbs->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (!atomic_load(&c->done)) {
		if (poll(&fd, 1, WAKE_MS) <= 0 || ibv_get_async_event(verbs, &event))
			continue;
		sched_yield();
		ibv_ack_async_event(&event);
	}
	return NULL;
}

void nest_init(struct nest *n, struct storm *s, struct shared_cq *shared, unsigned int number)
{
	*n = (struct nest){ .s = s, .shared = shared };
	rnd_init(&n->rnd, s->seed, 100 + number);
	n->mem = aligned_alloc(4096, NEST_BYTES);
	n->mr = ibv_reg_mr(s->dev.pd, n->mem, NEST_BYTES, ALL_RIGHTS | IBV_ACCESS_MW_BIND);
	if (!n->mr)
		bail("ibv_reg_mr: %s", strerror(errno));
}

void nest_free(struct nest *n)
{
	if (ibv_dereg_mr(n->mr))
		storm_fail(n->s, "a region does not go");
	free(n->mem);
}

void churn_start(struct churn *c, struct storm *s, unsigned int threads, unsigned int rounds)
{
	*c = (struct churn){ .s = s, .threads = threads };
	queue_create(&c->shared.q, &s->dev, SHARED_ENTRIES, false);
	pthread_mutex_init(&c->shared.lock, NULL);
	c->shared.lives = threads * rounds;
	c->shared.gone = calloc(c->shared.lives, sizeof(*c->shared.gone));
	if (!c->shared.gone || fcntl(s->dev.verbs->async_fd, F_SETFL, O_NONBLOCK))
		bail("cannot start: %s", strerror(errno));
	c->poller = thread_start(poller, c);
	c->listener = thread_start(listener, c);
	for (unsigned int i = 0; i < threads; i++) {
		struct churner *me = &c->churner[i];

		me->c = c;
		me->rounds = rounds;
		me->last = KINDS - 1;
		nest_init(&me->nest, s, &c->shared, i);
	}
	for (unsigned int i = 0; i < threads; i++)
		c->churner[i].thread = thread_start(churner, &c->churner[i]);
}

void churn_end(struct churn *c)
{
	for (unsigned int i = 0; i < c->threads; i++)
		pthread_join(c->churner[i].thread, NULL);
	atomic_store(&c->done, true);
	pthread_join(c->poller, NULL);
	pthread_join(c->listener, NULL);
	fcntl(c->s->dev.verbs->async_fd, F_SETFL, 0);
	for (unsigned int i = 0; i < c->threads; i++)
		nest_free(&c->churner[i].nest);
	if (!atomic_load(&c->s->over))
		queue_destroy(&c->shared.q);
	free(c->shared.gone);
}
