// SPDX-License-Identifier: GPL-2.0
/*
 * Hold frames for a time, or until others have overtaken them.
 */
#include "state.h"

#include "../engine/device.h"
#include "../engine/qp.h"

#include <string.h>

#define SENDER_GONE	"dropped: sending queue pair destroyed"

/*
 * Return true if @sender of @frame, which datagrams and multicast frames have, still exists:
 * the queue pair may have been destroyed while the frame waited.
 */
static bool sender_lives(const struct faults *fs, const struct fault_frame *frame)
{
	struct device *dev;
	struct qp *qp;

	TAILQ_FOREACH(dev, &fs->engine->devices, link) {
		if (dev->port.sw != frame->from)
			continue;
		for (uint32_t i = 0; (qp = table_next(&dev->qps, &i)); i++)
			if (qp == frame->sender)
				return true;
	}
	return false;
}

/*
 * If the sending queue pair is gone, its port can no longer leave it out, so deliver @frame to
 * other ports only.
 * Return: false if no port is left.
 */
static bool without_sender(const struct faults *fs, struct fault_frame *frame)
{
	if (!frame->sender || sender_lives(fs, frame))
		return true;
	frame->sender = NULL;
	frame->echo = false;
	return !frame->loopback && (frame->way == SWITCH_IN || frame->port != frame->from);
}

/* Uncount @frame in its rule, which no longer holds it. */
static void let_go(struct fault_frame *frame)
{
	if (frame->holder)
		frame->holder->holds--;
	frame->holder = NULL;
}

/*
 * Forward the frames that are due. Collect them first: a frame that is forwarded may be held
 * again by a later rule, or cause others that are held.
 */
static void hold_expired(void *arg)
{
	struct faults *fs = arg;
	struct engine *e = fs->engine;
	struct fault_frames due = TAILQ_HEAD_INITIALIZER(due);
	struct fault_frame *frame;

	while ((frame = TAILQ_FIRST(&fs->held)) && frame->release <= e->now) {
		TAILQ_REMOVE(&fs->held, frame, link);
		TAILQ_INSERT_TAIL(&due, frame, link);
	}
	while ((frame = TAILQ_FIRST(&due))) {
		TAILQ_REMOVE(&due, frame, link);
		let_go(frame);
		if (without_sender(fs, frame))
			packet_run(fs, frame);
		else
			frame_lost(fs, frame, SENDER_GONE);
	}
	frame = TAILQ_FIRST(&fs->held);
	if (frame)
		timer_arm(&e->timers, &fs->timer, frame->release);
	packet_hook(fs);
}

void hold_init(struct faults *fs)
{
	TAILQ_INIT(&fs->held);
	fs->timer = (struct timer) { .fn = hold_expired, .arg = fs };
}

void hold_frame(struct faults *fs, struct fault_frame *frame, uint64_t release)
{
	struct fault_frame *before = TAILQ_LAST(&fs->held, fault_frames);

	frame->release = release;
	while (before && before->release > release)
		before = TAILQ_PREV(before, fault_frames, link);
	if (before) {
		TAILQ_INSERT_AFTER(&fs->held, before, frame, link);
		return;
	}
	TAILQ_INSERT_HEAD(&fs->held, frame, link);
	timer_arm(&fs->engine->timers, &fs->timer, release);
}

void hold_back(struct fault *f, struct fault_frame *frame)
{
	struct faults *fs = f->faults;

	frame->holder = f;
	frame->overtakers = f->rule.by;
	f->holds++;
	hold_frame(fs, frame, fs->engine->now + f->rule.within_ns);
}

static bool same_way(const struct fault_frame *a, const struct fault_frame *b)
{
	return a->port == b->port && a->way == b->way && a->kept.roce == b->kept.roce &&
	       a->dqpn == b->dqpn && !memcmp(a->dgid, b->dgid, sizeof(a->dgid));
}

void hold_overtaken(struct faults *fs, const struct fault *f, const struct fault_frame *frame,
		    struct fault_frames *to)
{
	struct fault_frame *held, *next;

	for (held = TAILQ_FIRST(&fs->held); held; held = next) {
		next = TAILQ_NEXT(held, link);
		if (held->holder != f || !same_way(held, frame) || --held->overtakers)
			continue;
		TAILQ_REMOVE(&fs->held, held, link);
		let_go(held);
		if (without_sender(fs, held))
			TAILQ_INSERT_TAIL(to, held, link);
		else
			frame_lost(fs, held, SENDER_GONE);
	}
}

void hold_forget(struct faults *fs, const struct fault *f)
{
	struct fault_frame *frame;

	TAILQ_FOREACH(frame, &fs->held, link)
		if (frame->holder == f)
			let_go(frame);
}

void hold_gone(struct faults *fs, const struct switch_port *port, const char *why)
{
	struct fault_frame *frame, *next;

	for (frame = TAILQ_FIRST(&fs->held); frame; frame = next) {
		next = TAILQ_NEXT(frame, link);
		if (frame->port != port && frame->from != port)
			continue;
		TAILQ_REMOVE(&fs->held, frame, link);
		let_go(frame);
		frame_lost(fs, frame, why);
	}
	if (TAILQ_EMPTY(&fs->held))
		timer_disarm(&fs->engine->timers, &fs->timer);
}
