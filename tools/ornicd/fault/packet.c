// SPDX-License-Identifier: GPL-2.0
/*
 * Packet rules: cut a packet into frames, apply the rules to each, and forward the frames.
 *
 * A frame has the number of the last rule that matched it, so that a frame that waited
 * continues with the next rule, even if rules were added or deleted meanwhile.
 */
#include "state.h"

#include "../engine/device.h"
#include "../engine/qp.h"
#include "../packet/ecn.h"
#include "../packet/wire.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a capture's note on a frame that a rule acted on */
#define NOTE_BYTES	(RULE_TEXT + 64)

/* Salt of rule_random() for the bit to corrupt */
#define SALT_BIT	1

void frame_free(struct faults *fs, struct fault_frame *frame)
{
	fs->places -= frame->place;
	TAILQ_INSERT_HEAD(&fs->free, frame, link);
}

static struct fault_frame *frame_get(struct faults *fs)
{
	struct fault_frame *frame = TAILQ_FIRST(&fs->free);

	assert(frame);
	TAILQ_REMOVE(&fs->free, frame, link);
	memset(frame, 0, offsetof(struct fault_frame, data));
	return frame;
}

/* Return true if @f may hold @frame (NULL: a new copy); otherwise count it in @no_room. */
static bool has_place(struct fault *f, const struct fault_frame *frame)
{
	if ((frame && frame->place) || f->faults->places < FAULT_FRAMES)
		return true;
	f->no_room++;
	return false;
}

static void take_place(struct faults *fs, struct fault_frame *frame)
{
	fs->places += !frame->place;
	frame->place = true;
}

/* ---- forward -------------------------------------------------------------------- */

static void parse(struct fault_frame *frame, struct packet *p)
{
	frames_restore(p, frame->data, frame->len, &frame->kept);
	p->from = frame->from;
	p->loopback = frame->loopback;
	p->echo = frame->echo;
	p->sender = frame->sender;
}

/* Show @frame with @note to captures. */
static void observe(struct faults *fs, struct fault_frame *frame, const char *note)
{
	struct packet p;

	if (!switch_is_observed(fs->engine->sw))
		return;
	memset(&p, 0, offsetof(struct packet, seg));
	parse(frame, &p);
	switch_observe(frame->port, frame->way, &p, note);
}

void frame_lost(struct faults *fs, struct fault_frame *frame, const char *why)
{
	observe(fs, frame, why);
	frame_free(fs, frame);
}

/* Show @frame to captures with a note of the form "dropped by fault rule 3: drop nth=2". */
static void note(const struct fault *f, struct fault_frame *frame, const char *what)
{
	char text[NOTE_BYTES];

	frame->noted = true;
	if (!switch_is_observed(f->faults->engine->sw))
		return;
	snprintf(text, sizeof(text), "%s by fault rule %" PRIu32 ": %s", what, f->id,
		 f->rule.text);
	observe(f->faults, frame, text);
}

static void go_on(struct faults *fs, struct fault_frame *frame)
{
	struct packet *p;

	if (frame->len < ETH_BYTES) {
		frame_lost(fs, frame, "dropped: too short");
		return;
	}
	p = packet_get(&fs->engine->pool);
	if (!p) {
		frame_lost(fs, frame, "dropped: no packet is free");
		return;
	}
	parse(frame, p);
	switch_resume(frame->port, frame->way, p, frame->noted ? "forwarded" : NULL);
	packet_put(&fs->engine->pool, p);
	frame_free(fs, frame);
}

/* ---- actions ----------------------------------------------------------------------- */

/*
 * Invert a random bit. In RoCEv2 it is behind the BTH and covered by the ICRC, so that the
 * receiver finds only a wrong ICRC; in other frames it is behind the Ethernet header.
 */
static void corrupt(struct fault *f, struct fault_frame *frame)
{
	uint32_t at = ETH_BYTES, bth = frame->kept.roce ? roce_bth(frame->data, frame->len) : 0;
	uint64_t bit;

	if (bth)
		at = bth + BTH_BYTES;
	frame->kept.csum_ok = false;
	if (at >= frame->len)
		return;
	bit = rule_random(&f->rule, f->matched, SALT_BIT) % (8ull * (frame->len - at));
	frame->data[at + bit / 8] ^= 1 << bit % 8;
}

/* Copy @frame. try_rules() copies no copy, so that n DUPLICATE rules make at most n copies. */
static void duplicate(struct fault *f, struct fault_frame *frame, struct fault_frames *todo)
{
	struct faults *fs = f->faults;
	struct fault_frame *copy;

	if (!has_place(f, NULL))
		return;
	note(f, frame, "duplicated");
	copy = frame_get(fs);
	memcpy(copy, frame, offsetof(struct fault_frame, data) + frame->len);
	copy->copy = true;
	copy->place = false;
	take_place(fs, copy);
	if (f->rule.by_ns)
		hold_frame(fs, copy, fs->engine->now + f->rule.by_ns);
	else
		TAILQ_INSERT_HEAD(todo, copy, link);
}

/* Hold @frame for DELAY or REORDER rule @f; drop it if too many frames wait already. */
static void let_wait(struct fault *f, struct fault_frame *frame)
{
	struct faults *fs = f->faults;
	bool reorder = f->rule.action == RULE_REORDER;

	if (!has_place(f, frame)) {
		note(f, frame, "dropped, too many frames wait,");
		frame_free(fs, frame);
		return;
	}
	take_place(fs, frame);
	note(f, frame, reorder ? "held back" : "delayed");
	if (reorder)
		hold_back(f, frame);
	else
		hold_frame(fs, frame, fs->engine->now + f->rule.by_ns);
}

/* Inject the fault. Return: false if @frame waits or was freed. */
static bool act(struct fault *f, struct fault_frame *frame, struct fault_frames *todo)
{
	struct faults *fs = f->faults;
	const struct fault_rule *r = &f->rule;

	switch (r->action) {
	case RULE_DROP:
		note(f, frame, "dropped");
		frame_free(fs, frame);
		return false;
	case RULE_REORDER:
	case RULE_DELAY:
		let_wait(f, frame);
		return false;
	case RULE_DUPLICATE:
		duplicate(f, frame, todo);
		return true;
	case RULE_CORRUPT:
		corrupt(f, frame);
		note(f, frame, "corrupted");
		return true;
	case RULE_TRUNCATE:
		if (frame->len > r->to)
			frame->len = r->to;
		frame->kept.csum_ok = false;
		note(f, frame, "truncated");
		return true;
	case RULE_ECN:
		ecn_mark_any(frame->data, frame->len);
		note(f, frame, "marked");
		return true;
	default:
		note(f, frame, "matched");
		if (!device_act(f, frame))
			f->acted--;
		return true;
	}
}

static struct fault *first_after(const struct faults *fs, uint32_t id)
{
	struct fault *f;

	TAILQ_FOREACH(f, &fs->rules, link)
		if (f->id > id)
			return f;
	return NULL;
}

/*
 * Apply the rules that @frame has not passed; add copies and overtaken frames to @todo. Return:
 * false if @frame waits or was freed.
 */
static bool try_rules(struct faults *fs, struct fault_frame *frame, struct fault_frames *todo)
{
	for (struct fault *f = first_after(fs, frame->passed); f; f = TAILQ_NEXT(f, link)) {
		bool chosen;

		if (!match_frame(f, frame) || (frame->copy && f->rule.action == RULE_DUPLICATE))
			continue;
		frame->passed = f->id;
		chosen = match_chosen(f);
		if (f->rule.action == RULE_REORDER && !chosen)
			hold_overtaken(fs, f, frame, todo);
		if (chosen && !act(f, frame, todo))
			return false;
	}
	return true;
}

void packet_run(struct faults *fs, struct fault_frame *frame)
{
	struct fault_frames todo = TAILQ_HEAD_INITIALIZER(todo);

	TAILQ_INSERT_HEAD(&todo, frame, link);
	while ((frame = TAILQ_FIRST(&todo))) {
		TAILQ_REMOVE(&todo, frame, link);
		if (try_rules(fs, frame, &todo))
			go_on(fs, frame);
	}
}

/* ---- in --------------------------------------------------------------------------- */

/* Fill in @frame as the @i-th frame of @p, except for data and length. */
static void describe(struct fault_frame *frame, struct switch_port *port, enum switch_way way,
		     const struct packet *p, uint32_t i)
{
	frame->port = port;
	frame->way = way;
	frame->from = p->from;
	frames_keep(&frame->kept, p);
	frame->loopback = p->loopback;
	frame->echo = p->echo;
	frame->sender = p->sender;
	if (!frame->kept.roce)
		return;
	frame->code = match_code(roce_opcode(p, i), p->aeth);
	frame->dqpn = p->dqpn;
	frame->psn = (p->psn + i) & BTH_PSN_MASK;
	memcpy(frame->dgid, p->dgid, sizeof(frame->dgid));
}

static bool interested(const struct faults *fs, const struct switch_port *port, enum switch_way way,
		       const struct packet *p)
{
	struct fault *f;

	TAILQ_FOREACH(f, &fs->rules, link)
		if (match_packet(f, port, way, p))
			return true;
	return false;
}

static bool packet_in(void *arg, struct switch_port *port, enum switch_way way,
		      const struct packet *p)
{
	struct faults *fs = arg;
	uint32_t n = p->kind == PACKET_ROCE ? p->npsn : 1;
	struct frames cut;

	if (!interested(fs, port, way, p))
		return false;
	frames_begin(&cut, p);
	for (uint32_t i = 0; i < n; i++) {
		struct fault_frame *frame = frame_get(fs);

		describe(frame, port, way, p, i);
		frame->len = frames_next(&cut, frame->data);
		packet_run(fs, frame);
	}
	return true;
}

static void port_gone(void *arg, struct switch_port *port, const char *why)
{
	hold_gone(arg, port, why);
}

void packet_hook(struct faults *fs)
{
	bool needed = !TAILQ_EMPTY(&fs->held);
	struct fault *f;

	TAILQ_FOREACH(f, &fs->rules, link)
		needed |= rule_of_packets(&f->rule);
	switch_set_fault(fs->engine->sw, needed ? &fs->hook : NULL);
}

int packet_init(struct faults *fs)
{
	if (fs->frames)
		return 0;
	/* calloc() maps fresh pages and touches none: memory is used only as frames need it */
	fs->frames = calloc(FAULT_FRAMES + FAULT_HANDS, sizeof(*fs->frames));
	if (!fs->frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < FAULT_FRAMES + FAULT_HANDS; i++)
		TAILQ_INSERT_TAIL(&fs->free, &fs->frames[i], link);
	fs->hook = (struct switch_fault) { .packet = packet_in, .gone = port_gone, .arg = fs };
	return 0;
}

void packet_fini(struct faults *fs)
{
	switch_set_fault(fs->engine->sw, NULL);
	free(fs->frames);
}
