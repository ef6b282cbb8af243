/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of fault/ share.
 */
#ifndef ORNICD_FAULT_STATE_H
#define ORNICD_FAULT_STATE_H

#include "fault.h"

#include "../engine/engine.h"
#include "../timer.h"
#include "../net/switch.h"
#include "../packet/frames.h"

/** FAULT_FRAMES - frames that may wait at once, copies that are to go on at once included */
#define FAULT_FRAMES	4096
/** FAULT_HANDS - frames in hand: one on its way into the switch, what comes of it on its way out */
#define FAULT_HANDS	2

/**
 * struct fault - a rule at work
 * @link:	in their order
 * @faults:	all of them
 * @id:		number
 * @rule:	what it says
 * @matched, @acted, @no_room: as in struct fault_info
 * @timer:	FLAP, QP_ERROR, FATAL: when to act, or to end a flap
 * @down:	FLAP: the port is down because of it
 * @holds:	REORDER: frames that wait for others to overtake them
 */
struct fault {
	TAILQ_ENTRY(fault) link;
	struct faults *faults;
	uint32_t id;
	struct rule rule;
	uint64_t matched;
	uint64_t acted;
	uint64_t no_room;
	struct timer timer;
	bool down;
	uint32_t holds;
};

/**
 * struct fault_frame - a frame on its way through the rules
 * @link:	in a list of frames
 * @port:	where it passes the switch
 * @way:	which way
 * @from:	port it came in by
 * @passed:	number of the last rule that it has passed
 * @copy:	made by a rule
 * @place:	counted as one that waits, until it is freed
 * @noted:	a rule did something to it: the capture says so, and also when it goes on
 * @roce:	RoCEv2; the others are Ethernet
 * @loopback, @echo, @csum_ok, @sender, @sqpn: as in struct packet
 * @code:	RoCE: opcode, or RULE_CODE_*
 * @dqpn:	RoCE: destination queue pair
 * @psn:	RoCE: PSN
 * @dgid:	RoCE: destination GID
 * @release:	waits: until when, ns of the engine
 * @holder:	waits: rule whose matches it counts, or NULL
 * @overtakers:	waits: how many of them have to come
 * @len:	bytes
 * @data:	the frame
 */
struct fault_frame {
	TAILQ_ENTRY(fault_frame) link;
	struct switch_port *port;
	enum switch_way way;
	struct switch_port *from;
	uint32_t passed;
	bool copy;
	bool place;
	bool noted;
	bool roce;
	bool loopback;
	bool echo;
	bool csum_ok;
	const struct qp *sender;
	uint32_t sqpn;
	uint16_t code;
	uint32_t dqpn;
	uint32_t psn;
	uint8_t dgid[16];
	uint64_t release;
	struct fault *holder;
	uint32_t overtakers;
	uint32_t len;
	uint8_t data[FRAMES_MAX_BYTES];
};

TAILQ_HEAD(fault_frames, fault_frame);

/**
 * struct faults - all rules of an engine
 * @asked:	for the engine
 * @engine:	engine
 * @rules:	in the order of their numbers
 * @n:		how many
 * @next_id:	number of the next one
 * @frames:	FAULT_FRAMES and FAULT_HANDS of them, or NULL
 * @free:	of these, not in use
 * @places:	of these, taken by frames that wait, up to FAULT_FRAMES
 * @held:	frames that wait, the first to go on first
 * @timer:	when that is
 * @hook:	for the switch
 */
struct faults {
	struct engine_faults asked;
	struct engine *engine;
	TAILQ_HEAD(, fault) rules;
	uint32_t n;
	uint32_t next_id;
	struct fault_frame *frames;
	struct fault_frames free;
	uint32_t places;
	struct fault_frames held;
	struct timer timer;
	struct switch_fault hook;
};

/* faults_of() - those of @e, or NULL */
static inline struct faults *faults_of(const struct engine *e)
{
	return (struct faults *)e->faults;
}

_Static_assert(!offsetof(struct faults, asked), "what the engine has is where all is");

/* complete.c */

uint8_t fault_completion(struct qp *qp, bool recv);
enum fault_command fault_command(struct device *dev, uint16_t opcode, uint8_t *status);

/* match.c */

/* match_packet() - may @f match any frame of @p at @port? */
bool match_packet(const struct fault *f, const struct switch_port *port, enum switch_way way,
		  const struct packet *p);
/* match_frame() - does it match this one? */
bool match_frame(const struct fault *f, const struct fault_frame *frame);
/* match_code() - the bit of struct rule's @codes that a packet has */
uint16_t match_code(uint8_t opcode, uint8_t aeth);
/* match_device() - is it about this device? */
bool match_device(const struct fault *f, const struct device *dev);
/* match_chosen() - count a match. Return: whether to act, which is counted too. */
bool match_chosen(struct fault *f);

/* packet.c */

int packet_init(struct faults *fs);
void packet_fini(struct faults *fs);
/* packet_hook() - tell the switch whether there is anything for us to see */
void packet_hook(struct faults *fs);
/* packet_run() - bring a frame, out of all lists, through the rules that it has not passed */
void packet_run(struct faults *fs, struct fault_frame *frame);
void frame_free(struct faults *fs, struct fault_frame *frame);
/* frame_lost() - free a frame that goes nowhere, and show captures @why */
void frame_lost(struct faults *fs, struct fault_frame *frame, const char *why);

/* hold.c */

void hold_init(struct faults *fs);
/* hold_frame() - let it wait until @release */
void hold_frame(struct faults *fs, struct fault_frame *frame, uint64_t release);
/* hold_back() - let it wait for those that @f matches, as the rule says */
void hold_back(struct fault *f, struct fault_frame *frame);
/* hold_overtaken() - @frame passes those that @f holds; whose count is full is moved to @to */
void hold_overtaken(struct faults *fs, const struct fault *f, const struct fault_frame *frame,
		    struct fault_frames *to);
/* hold_forget() - stop counting frames for @f */
void hold_forget(struct faults *fs, const struct fault *f);
/* hold_gone() - drop what has to do with a port; @why: for captures */
void hold_gone(struct faults *fs, const struct switch_port *port, const char *why);

/* device.c */

/* device_check() - do device and port of the rule exist? Return: 0, or -ENOENT with @err. */
int device_check(const struct faults *fs, const struct rule *r, char *err);
/* device_start() - act at once, or at the time that the rule says. Return: as fault_add(). */
int device_start(struct fault *f, char *err);
void device_stop(struct fault *f);
/* device_act() - @frame is one that the rule acts at. Return: did it, or was there nothing to? */
bool device_act(struct fault *f, const struct fault_frame *frame);
/* device_port_added() - see fault_port_added() */
void device_port_added(const struct faults *fs, const char *name);

#endif /* ORNICD_FAULT_STATE_H */
