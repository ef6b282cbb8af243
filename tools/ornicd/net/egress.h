/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A rate-limited link behind a port of the switch: a queue of frames that leave at a rate.
 *
 * A frame arrives when its last byte has left at the rate of the link. Meanwhile later frames wait,
 * as copies, in a queue of limited size; frames that do not fit are dropped (tail drop). A frame
 * that finds a long queue gets a congestion mark if its sender reacts to marks (RFC 3168): never
 * below @kmin bytes, always above @kmax, with a probability that grows from zero to @pmax between
 * (RED on the length of the queue as it is, which is what DCQCN asks of a switch: Zhu et al.,
 * SIGCOMM 2015, section 3.1).
 */
#ifndef ORNICD_NET_EGRESS_H
#define ORNICD_NET_EGRESS_H

#include "../packet/frames.h"
#include "../timer.h"

#include <stdint.h>

/** EGRESS_MIN_KBPS, EGRESS_MAX_KBPS - rates of a link */
#define EGRESS_MIN_KBPS		8
#define EGRESS_MAX_KBPS		400000000
/** EGRESS_MIN_QUEUE - bytes: the longest frame fits; EGRESS_MAX_QUEUE - bounds the memory */
#define EGRESS_MIN_QUEUE	10000
#define EGRESS_MAX_QUEUE	(16u << 20)
/**
 * EGRESS_QUEUE - default size of the queue, bytes: room for the windows of some senders that start
 * at the same time
 */
#define EGRESS_QUEUE		(512u << 10)
/**
 * EGRESS_KMIN_NS - default queue length, as time, above which marks begin; at least EGRESS_KMIN
 * bytes, which are some frames, and at most an eighth of the queue
 */
#define EGRESS_KMIN_NS		40000ull
#define EGRESS_KMIN		3000
/**
 * EGRESS_KMAX_NS - default above which all frames are marked; at least four times @kmin, at most
 * the queue
 */
#define EGRESS_KMAX_NS		1600000ull
/** EGRESS_PMAX - per cent of frames that are marked at @kmax */
#define EGRESS_PMAX		20
/** EGRESS_MIN_FRAME - bytes that a shorter frame counts, as on Ethernet */
#define EGRESS_MIN_FRAME	60

/**
 * struct egress_param - a link
 * @kbps:	rate in kbit/s, of the bytes from the Ethernet header on; FCS, preamble and gap do
 *		not count
 * @queue:	bytes that may wait
 * @kmin:	bytes in the queue above which frames may be marked
 * @kmax:	bytes above which all are; at least @kmin
 * @pmax:	per cent that are marked at @kmax
 */
struct egress_param {
	uint32_t kbps;
	uint32_t queue;
	uint32_t kmin;
	uint32_t kmax;
	uint32_t pmax;
};

/**
 * struct egress_stats - counters
 * @frames:	frames that arrived at the other end
 * @bytes:	bytes of these frames
 * @marked:	frames that got a congestion mark here
 * @dropped:	frames that were dropped because the queue was full
 * @peak:	largest number of bytes that ever waited
 */
struct egress_stats {
	uint64_t frames;
	uint64_t bytes;
	uint64_t marked;
	uint64_t dropped;
	uint32_t peak;
};

struct egress;

/**
 * struct egress_ops - called with the outcome of frames; arguments are valid during the call
 * @arrived:	a packet arrives at the other end; @note: as given to egress_put()
 * @lost:	a frame was dropped; @kept: properties of its packet; @why: note for captures
 */
struct egress_ops {
	void (*arrived)(void *arg, const struct packet *p, const char *note);
	void (*lost)(void *arg, uint8_t *frame, uint32_t len, const struct frames_kept *kept,
		     const char *why);
};

/**
 * egress_new() - create an idle link
 * @timers:	timers, of which one is reserved
 * @now:	time of the engine's iteration, ns of the timers' clock
 * @ops:	operations, called with @arg
 * @arg:	for @ops
 *
 * Return: the link, or NULL. egress_free() frees waiting frames without a call; NULL is ignored.
 */
struct egress *egress_new(struct timers *timers, const uint64_t *now,
			  const struct egress_ops *ops, void *arg);
void egress_free(struct egress *q);

/* egress_drop() - drop all waiting frames with reason @why; the link is idle then */
void egress_drop(struct egress *q, const char *why);

/*
 * egress_drop_from() - drop the waiting frames that entered the switch by port @from. Frames behind
 * them arrive earlier.
 */
void egress_drop_from(struct egress *q, const struct switch_port *from, const char *why);

/* egress_set() - change the link; waiting frames keep their time. @p passed egress_check(). */
void egress_set(struct egress *q, const struct egress_param *p);

/* egress_check() - check ranges. Return: NULL, or the error as text. */
const char *egress_check(const struct egress_param *p);

/** enum egress_key - settings of a link that have a default, as bits */
enum egress_key {
	EGRESS_KEY_QUEUE = 1 << 0,
	EGRESS_KEY_KMIN	 = 1 << 1,
	EGRESS_KEY_KMAX	 = 1 << 2,
	EGRESS_KEY_PMAX	 = 1 << 3,
};

/* egress_default() - set the defaults of queue and marking curve, except for those in @given */
void egress_default(struct egress_param *p, uint32_t given);

/**
 * egress_put() - send a packet; if it stands for several frames, each is queued or dropped by itself
 * @q:		the link
 * @p:		the packet; remains the caller's
 * @note:	for captures, with each frame that arrives; constant text or NULL
 */
void egress_put(struct egress *q, const struct packet *p, const char *note);

const struct egress_param *egress_param(const struct egress *q);
const struct egress_stats *egress_stats(const struct egress *q);
/* egress_depth() - return the bytes that wait */
uint32_t egress_depth(const struct egress *q);

#endif /* ORNICD_NET_EGRESS_H */
