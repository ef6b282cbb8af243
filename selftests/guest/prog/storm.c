// SPDX-License-Identifier: GPL-2.0
/*
 * Common code of the storm programs.
 */
#include "storm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE	60
#define LOOK_AGAIN	20000	/* us between polls for the progress of others */

void storm_init(struct storm *s, uint64_t seed, unsigned int divisor, bool unplug)
{
	*s = (struct storm){
		.seed = seed, .divisor = divisor, .unplug = unplug,
		.patience = PATIENCE * divisor,
	};
	pthread_mutex_init(&s->lock, NULL);
}

void storm_allow_unplug(void)
{
	setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1);
}

void storm_wait_gate(struct storm *s)
{
	double end = now() + s->patience;

	while (s->gate && access(s->gate, F_OK)) {
		if (now() > end) {
			storm_fail(s, "%s did not come within %.0f s", s->gate, s->patience);
			return;
		}
		usleep(LOOK_AGAIN);
	}
}

unsigned int storm_work(const struct storm *s, unsigned int amount)
{
	return amount < s->divisor ? 1 : amount / s->divisor;
}

void storm_fail(struct storm *s, const char *fmt, ...)
{
	char why[sizeof(s->verdict.why)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	pthread_mutex_lock(&s->lock);
	verdict_fail(&s->verdict, "%s", why);
	pthread_mutex_unlock(&s->lock);
	if (!s->tough)
		atomic_store(&s->over, true);
}

bool storm_gone_now(struct storm *s)
{
	struct ibv_device_attr attr;

	if (!s->unplug || !ibv_query_device(s->dev.verbs, &attr))
		return false;
	atomic_store(&s->over, true);
	return true;
}

/* Work is flushed before the verbs end, so the state that follows may take a moment. */
bool storm_gone(struct storm *s)
{
	double end = now() + s->patience;

	while (s->unplug && now() < end) {
		if (storm_gone_now(s))
			return true;
		usleep(LOOK_AGAIN);
	}
	return false;
}

/* splitmix64 */
static uint64_t rnd_next(struct rnd *r)
{
	uint64_t x = r->state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

void rnd_init(struct rnd *r, uint64_t seed, uint64_t thread)
{
	r->state = seed + (thread << 32);
	r->state = rnd_next(r);
}

uint32_t rnd_below(struct rnd *r, uint32_t n)
{
	return (rnd_next(r) >> 32) * n >> 32;
}

pthread_t thread_start(void *(*run)(void *), void *arg)
{
	pthread_t thread;
	int err = pthread_create(&thread, NULL, run, arg);

	if (err)
		bail("cannot start a thread: %s", strerror(err));
	return thread;
}
