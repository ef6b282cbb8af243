// SPDX-License-Identifier: GPL-2.0
/*
 * A rate-limited link: frames wait in a ring of bytes, each with its time of arrival.
 *
 * That time is computed when the frame is queued: the end of the previous frame plus the time of
 * its own bytes. A late iteration of the engine therefore delivers frames late, but does not
 * change the rate of the link. All memory is allocated in advance.
 */
#include "egress.h"

#include "../packet/ecn.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Most frames that arrive per iteration; if more are due, the next iteration continues. */
#define EGRESS_BUDGET	128

/*
 * Costs are ns times 2^COST_SHIFT: exact to 1 in 10^4 at the highest rate, and no product
 * overflows.
 */
#define COST_SHIFT	20
#define NS_KBPS		8000000ull	/* ns of a byte, times kbit/s */

_Static_assert((NS_KBPS << COST_SHIFT) / EGRESS_MIN_KBPS < UINT64_MAX / FRAMES_MAX_BYTES / 2,
	       "the cost of the longest frame does not overflow");

/**
 * struct record - a frame in the ring; its bytes follow
 * @due:	time of its arrival, ns
 * @note:	see egress_put()
 * @from:	port by which it entered the switch
 * @len:	bytes of the frame; 0: the next record is at the beginning of the ring
 * @kept:	properties of its packet
 */
struct record {
	uint64_t due;
	const char *note;
	const struct switch_port *from;
	uint32_t len;
	struct frames_kept kept;
};

/* Bytes of a record with its frame, a multiple of 8 */
#define RECORD_BYTES(len)	(sizeof(struct record) + (((len) + 7) & ~7u))
/* Bytes of ring for a queue of @bytes in the worst case: minimum-size frames and an unused tail */
#define RING_BYTES(bytes)	((bytes) / EGRESS_MIN_FRAME * RECORD_BYTES(EGRESS_MIN_FRAME) + \
				 2 * RECORD_BYTES(FRAMES_MAX_BYTES))
/* Limit of the last record's end; behind it is room for one record without a frame */
#define RING_END(bytes)		(RING_BYTES(bytes) - sizeof(struct record))

/**
 * struct egress - a link
 * @param:	its parameters
 * @stats:	its counters
 * @cost:	time of a byte, ns times 2^COST_SHIFT
 * @part:	fraction of a ns of @busy, times 2^COST_SHIFT
 * @busy:	time when all queued frames have left, ns
 * @depth:	bytes that wait
 * @random:	state of the random numbers for marks
 * @head:	first record; offset into @ring
 * @tail:	end of the last record; offset into @ring
 * @end:	limit of @tail, see RING_END()
 * @timers, @now, @ops, @arg: see egress_new()
 * @timer:	armed for the first record's time
 * @packet:	packet that arrives
 * @frame:	frame that is to be queued
 * @ring:	records
 */
struct egress {
	struct egress_param param;
	struct egress_stats stats;
	uint64_t cost;
	uint64_t part;
	uint64_t busy;
	uint32_t depth;
	uint32_t random;
	uint32_t head;
	uint32_t tail;
	uint32_t end;
	struct timers *timers;
	const uint64_t *now;
	const struct egress_ops *ops;
	void *arg;
	struct timer timer;
	struct packet packet;
	uint8_t frame[FRAMES_MAX_BYTES];
	uint8_t ring[RING_BYTES(EGRESS_MAX_QUEUE)] __attribute__((aligned(8)));
};

/* Return the bytes that a frame counts in queue and time. */
static uint32_t charged(uint32_t len)
{
	return len < EGRESS_MIN_FRAME ? EGRESS_MIN_FRAME : len;
}

static struct record *record_at(struct egress *q, uint32_t at)
{
	return (struct record *)(q->ring + at);
}

/* Return the first record of a non-empty ring, which may continue at its beginning. */
static struct record *first_record(struct egress *q)
{
	if (!record_at(q, q->head)->len)
		q->head = 0;
	return record_at(q, q->head);
}

static void remove_record(struct egress *q, const struct record *r)
{
	q->head += RECORD_BYTES(r->len);
	q->depth -= charged(r->len);
}

/* Deliver the first record. The link does not change what its packet is. */
static void arrive(struct egress *q, struct record *r)
{
	struct packet *p = &q->packet;

	memset(p, 0, offsetof(struct packet, seg));
	frames_restore(p, (uint8_t *)(r + 1), r->len, &r->kept);
	q->stats.frames++;
	q->stats.bytes += r->len;
	q->ops->arrived(q->arg, p, r->note);
	remove_record(q, r);
}

static void egress_run(void *arg)
{
	struct egress *q = arg;

	for (int budget = EGRESS_BUDGET; q->depth; budget--) {
		struct record *r = first_record(q);

		if (r->due > *q->now || !budget) {
			timer_arm(q->timers, &q->timer, budget ? r->due : *q->now + 1);
			return;
		}
		arrive(q, r);
	}
}

/* xorshift (Marsaglia) with a fixed seed: the same traffic gets the same marks in every run. */
static uint32_t next_random(struct egress *q)
{
	q->random ^= q->random << 13;
	q->random ^= q->random >> 17;
	q->random ^= q->random << 5;
	return q->random;
}

/* Decide by the marking curve and the length of the queue whether a frame is marked. */
static bool is_marked(struct egress *q)
{
	const struct egress_param *p = &q->param;
	uint64_t dice;

	if (q->depth <= p->kmin)
		return false;
	if (q->depth > p->kmax)
		return true;
	dice = (uint64_t)(next_random(q) >> 8) * (p->kmax - p->kmin) / ((1u << 24) / 100);
	return dice < (uint64_t)p->pmax * (q->depth - p->kmin);
}

/* Reserve a record of @bytes, or return NULL if the ring is full. */
static struct record *new_record(struct egress *q, uint32_t bytes)
{
	if (!q->depth) {
		q->head = 0;
		q->tail = 0;
	}
	if (q->tail < q->head)
		return q->tail + bytes < q->head ? record_at(q, q->tail) : NULL;
	if (q->tail + bytes <= q->end)
		return record_at(q, q->tail);
	if (bytes >= q->head)
		return NULL;
	record_at(q, q->tail)->len = 0;
	q->tail = 0;
	return record_at(q, 0);
}

/* Add the time of a frame of @len bytes to @busy. */
static void charge(struct egress *q, uint32_t len)
{
	uint64_t cost;

	if (q->busy < *q->now) {
		q->busy = *q->now;
		q->part = 0;
	}
	cost = q->cost * charged(len) + q->part;
	q->busy += cost >> COST_SHIFT;
	q->part = cost & ((1u << COST_SHIFT) - 1);
}

/* Append q->frame in @r, a new record: @what describes it, and it arrives at @busy. */
static void append(struct egress *q, struct record *r, const struct record *what)
{
	*r = *what;
	r->due = q->busy;
	memcpy(r + 1, q->frame, what->len);
	q->tail += RECORD_BYTES(what->len);
	q->depth += charged(what->len);
}

/* Queue q->frame, which @what describes except for its time, or drop it. */
static void put_frame(struct egress *q, const struct record *what)
{
	uint32_t len = what->len;
	struct record *r;

	r = q->depth + charged(len) <= q->param.queue ? new_record(q, RECORD_BYTES(len)) : NULL;
	if (!r) {
		q->stats.dropped++;
		q->ops->lost(q->arg, q->frame, len, &what->kept, "dropped: queue full");
		return;
	}
	if (is_marked(q))
		q->stats.marked += ecn_mark(q->frame, len);
	charge(q, len);
	append(q, r, what);
	if (q->depth > q->stats.peak)
		q->stats.peak = q->depth;
}

void egress_put(struct egress *q, const struct packet *p, const char *note)
{
	struct record what = { .note = note, .from = p->from };
	struct frames f;

	frames_keep(&what.kept, p);
	frames_begin(&f, p);
	while ((what.len = frames_next(&f, q->frame)))
		put_frame(q, &what);
	if (q->depth && !timer_armed(&q->timer))
		timer_arm(q->timers, &q->timer, first_record(q)->due);
}

/* Drop the first record. */
static void drop(struct egress *q, struct record *r, const char *why)
{
	q->ops->lost(q->arg, (uint8_t *)(r + 1), r->len, &r->kept, why);
	remove_record(q, r);
}

void egress_drop(struct egress *q, const char *why)
{
	while (q->depth)
		drop(q, first_record(q), why);
	timer_disarm(q->timers, &q->timer);
	q->busy = 0;
}

/*
 * Move the first record behind the others. It arrives when its bytes have left after theirs, but
 * not later than before, because they may have left in part.
 */
static void requeue(struct egress *q, struct record *r)
{
	const struct record what = *r;

	memcpy(q->frame, r + 1, what.len);
	remove_record(q, r);
	charge(q, what.len);
	if (q->busy > what.due) {
		q->busy = what.due;
		q->part = 0;
	}
	r = new_record(q, RECORD_BYTES(what.len));
	assert(r);
	append(q, r, &what);
}

void egress_drop_from(struct egress *q, const struct switch_port *from, const char *why)
{
	uint32_t left = q->depth, end = q->end;

	q->busy = 0;
	q->end = RING_END(EGRESS_MAX_QUEUE);	/* the queue may have been longer once */
	while (left) {
		struct record *r = first_record(q);

		left -= charged(r->len);
		if (r->from == from)
			drop(q, r, why);
		else
			requeue(q, r);
	}
	q->end = end;
	timer_disarm(q->timers, &q->timer);
	if (q->depth)
		timer_arm(q->timers, &q->timer, first_record(q)->due);
}

struct egress *egress_new(struct timers *timers, const uint64_t *now,
			  const struct egress_ops *ops, void *arg)
{
	struct egress *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	if (timers_reserve(timers, 1)) {
		free(q);
		return NULL;
	}
	q->random = 2463534242u;
	q->timers = timers;
	q->now = now;
	q->ops = ops;
	q->arg = arg;
	q->timer = (struct timer) { .fn = egress_run, .arg = q };
	return q;
}

void egress_free(struct egress *q)
{
	if (!q)
		return;
	timer_disarm(q->timers, &q->timer);
	timers_unreserve(q->timers, 1);
	free(q);
}

static uint64_t bytes_of(uint64_t ns, uint32_t kbps)
{
	return ns * kbps / NS_KBPS;
}

/* Return @v limited to @least and @most; @most wins if it is smaller than @least. */
static uint32_t between(uint64_t least, uint64_t v, uint32_t most)
{
	if (v < least)
		v = least;
	return v < most ? v : most;
}

void egress_default(struct egress_param *p, uint32_t given)
{
	if (!(given & EGRESS_KEY_QUEUE))
		p->queue = EGRESS_QUEUE;
	if (!(given & EGRESS_KEY_KMIN))
		p->kmin = between(EGRESS_KMIN, bytes_of(EGRESS_KMIN_NS, p->kbps), p->queue / 8);
	if (!(given & EGRESS_KEY_KMAX))
		p->kmax = between(4ull * p->kmin, bytes_of(EGRESS_KMAX_NS, p->kbps), p->queue);
	if (!(given & EGRESS_KEY_PMAX))
		p->pmax = EGRESS_PMAX;
}

const char *egress_check(const struct egress_param *p)
{
	if (p->kbps < EGRESS_MIN_KBPS || p->kbps > EGRESS_MAX_KBPS)
		return "rate must be from 8K to 400G bit/s";
	if (p->queue < EGRESS_MIN_QUEUE || p->queue > EGRESS_MAX_QUEUE)
		return "queue must be from 10000 to 16M bytes";
	if (p->kmax < p->kmin)
		return "kmax must not be less than kmin";
	if (p->pmax > 100)
		return "pmax must not be more than 100 per cent";
	return NULL;
}

void egress_set(struct egress *q, const struct egress_param *p)
{
	q->param = *p;
	q->end = RING_END(p->queue);
	q->cost = ((NS_KBPS << COST_SHIFT) + p->kbps - 1) / p->kbps;
}

const struct egress_param *egress_param(const struct egress *q)
{
	return &q->param;
}

const struct egress_stats *egress_stats(const struct egress *q)
{
	return &q->stats;
}

uint32_t egress_depth(const struct egress *q)
{
	return q->depth;
}
