// SPDX-License-Identifier: GPL-2.0
/*
 * Timers: a binary heap. Its room is reserved when the owner of a timer is created, so that arming
 * a timer on the data path cannot fail.
 */
#include "timer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void timers_init(struct timers *ts)
{
	*ts = (struct timers){ 0 };
}

void timers_fini(struct timers *ts)
{
	for (uint32_t i = 0; i < ts->n; i++)
		ts->heap[i]->pos = 0;
	free(ts->heap);
	timers_init(ts);
}

int timers_reserve(struct timers *ts, uint32_t n)
{
	uint32_t room = ts->room ? ts->room : 64;
	struct timer **heap;

	while (room - ts->cap < n) {
		if (room > UINT32_MAX / 2)
			return -ENOMEM;
		room *= 2;
	}
	if (room != ts->room) {
		heap = realloc(ts->heap, room * sizeof(*heap));
		if (!heap)
			return -ENOMEM;
		ts->heap = heap;
		ts->room = room;
	}
	ts->cap += n;
	return 0;
}

void timers_unreserve(struct timers *ts, uint32_t n)
{
	assert(ts->cap - ts->n >= n);
	ts->cap -= n;
}

static void timer_place(struct timers *ts, struct timer *t, uint32_t i)
{
	ts->heap[i] = t;
	t->pos = i + 1;
}

/* Put @t at free slot @i or closer to the root. */
static void timer_sift_up(struct timers *ts, struct timer *t, uint32_t i)
{
	while (i) {
		uint32_t parent = (i - 1) / 2;

		if (ts->heap[parent]->expires <= t->expires)
			break;
		timer_place(ts, ts->heap[parent], i);
		i = parent;
	}
	timer_place(ts, t, i);
}

/* Put @t at free slot @i or further from the root. */
static void timer_sift_down(struct timers *ts, struct timer *t, uint32_t i)
{
	for (;;) {
		uint64_t child = 2ull * i + 1;

		if (child >= ts->n)
			break;
		if (child + 1 < ts->n && ts->heap[child + 1]->expires < ts->heap[child]->expires)
			child++;
		if (t->expires <= ts->heap[child]->expires)
			break;
		timer_place(ts, ts->heap[child], i);
		i = child;
	}
	timer_place(ts, t, i);
}

void timer_arm(struct timers *ts, struct timer *t, uint64_t expires)
{
	bool later = expires > t->expires;

	t->expires = expires;
	if (!t->pos) {
		assert(ts->n < ts->cap);
		timer_sift_up(ts, t, ts->n++);
	} else if (later) {
		timer_sift_down(ts, t, t->pos - 1);
	} else {
		timer_sift_up(ts, t, t->pos - 1);
	}
}

void timer_disarm(struct timers *ts, struct timer *t)
{
	uint32_t i = t->pos - 1;
	struct timer *last;

	if (!t->pos)
		return;
	t->pos = 0;
	last = ts->heap[--ts->n];
	if (last == t)
		return;
	if (i && ts->heap[(i - 1) / 2]->expires > last->expires)
		timer_sift_up(ts, last, i);
	else
		timer_sift_down(ts, last, i);
}

void timers_run(struct timers *ts, uint64_t now)
{
	uint32_t left = ts->n < TIMERS_BATCH ? ts->n : TIMERS_BATCH;

	for (; left && ts->n && ts->heap[0]->expires <= now; left--) {
		struct timer *t = ts->heap[0];

		timer_disarm(ts, t);
		t->fn(t->arg);
	}
}

int64_t timers_next(const struct timers *ts, uint64_t now)
{
	uint64_t wait;

	if (!ts->n)
		return -1;
	if (ts->heap[0]->expires <= now)
		return 0;
	wait = ts->heap[0]->expires - now;
	return wait < INT64_MAX ? (int64_t)wait : INT64_MAX;
}
