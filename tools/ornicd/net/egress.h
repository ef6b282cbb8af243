/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A slow link behind a port of the switch: a queue of frames that leave at a rate.
 *
 * A frame takes its time on the link and arrives when its last byte has left. Meanwhile those
 * behind it wait, as copies, in a queue of so many bytes; what finds no room is dropped (tail
 * drop). A frame that finds the queue long gets a congestion mark, if its sender reacts to marks
 * (RFC 3168): never below @kmin bytes, always above @kmax, with a probability that grows from
 * zero to @pmax between (RED on the length of the queue as it is, which is what DCQCN asks of a
 * switch: Zhu et al., SIGCOMM 2015, section 3.1).
 */
#ifndef ORNICD_NET_EGRESS_H
#define ORNICD_NET_EGRESS_H

#include "../packet/packet.h"
#include "../timer.h"

#include <stdint.h>

/** EGRESS_MIN_KBPS, EGRESS_MAX_KBPS - rates of a link */
#define EGRESS_MIN_KBPS		8
#define EGRESS_MAX_KBPS		400000000
/** EGRESS_MIN_QUEUE - so that the longest frame has room; EGRESS_MAX_QUEUE - bounds the memory */
#define EGRESS_MIN_QUEUE	10000
#define EGRESS_MAX_QUEUE	(16u << 20)
/**
 * EGRESS_QUEUE - bytes of the queue unless somebody says otherwise: some senders that begin at once
 * have room for their windows
 */
#define EGRESS_QUEUE		(512u << 10)
/**
 * EGRESS_KMIN_NS - marks begin when the queue is that long, as time; but not below EGRESS_KMIN bytes,
 * which are some frames, and an eighth of the queue at most
 */
#define EGRESS_KMIN_NS		40000ull
#define EGRESS_KMIN		3000
/** EGRESS_KMAX_NS - all are marked from here on; four times @kmin at least, at most the queue */
#define EGRESS_KMAX_NS		1600000ull
/** EGRESS_PMAX - per cent of marks at @kmax */
#define EGRESS_PMAX		20
/** EGRESS_MIN_FRAME - shorter frames count as many bytes, as on Ethernet */
#define EGRESS_MIN_FRAME	60

/**
 * struct egress_param - a link
 * @kbps:	rate in kbit/s, of the bytes from the Ethernet header on; FCS, preamble and gap do not count
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
 * @frames:	that left
 * @bytes:	of them
 * @marked:	marked here
 * @dropped:	for want of room
 * @peak:	most bytes that ever waited
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
 * struct egress_ops - what becomes of frames; arguments are good during the call
 * @arrived:	a packet arrives at the other end
 * @lost:	a frame does not arrive, and @why: a note for captures
 */
struct egress_ops {
	void (*arrived)(void *arg, const struct packet *p);
	void (*lost)(void *arg, uint8_t *frame, uint32_t len, const char *why);
};

/**
 * egress_new() - a link that is idle
 * @timers:	one is reserved
 * @now:	time in ns of the timers' clock, as of the engine's turn
 * @ops:	told of frames, with @arg
 *
 * Return: the link, or NULL. egress_free() forgets what waits; NULL is ignored.
 */
struct egress *egress_new(struct timers *timers, const uint64_t *now,
			  const struct egress_ops *ops, void *arg);
void egress_free(struct egress *q);

/* egress_drop() - all that waits is lost, and the link idle; @why: for @lost */
void egress_drop(struct egress *q, const char *why);

/* egress_set() - change the link; what waits keeps its time. @p is in range, see egress_check(). */
void egress_set(struct egress *q, const struct egress_param *p);

/* egress_check() - Return: NULL if @p makes sense, or what is wrong with it. */
const char *egress_check(const struct egress_param *p);

/* egress_default() - a queue and a marking curve where there is a zero */
void egress_default(struct egress_param *p);

/* egress_put() - send @p, which may stand for several frames, each of which has a fate of its own */
void egress_put(struct egress *q, const struct packet *p);

const struct egress_param *egress_param(const struct egress *q);
const struct egress_stats *egress_stats(const struct egress *q);
/* egress_depth() - bytes that wait */
uint32_t egress_depth(const struct egress *q);

#endif /* ORNICD_NET_EGRESS_H */
