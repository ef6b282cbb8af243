/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State and functions that the files of fault/ share.
 *
 * All functions run on the engine's thread.
 */
#ifndef ORNICD_FAULT_STATE_H
#define ORNICD_FAULT_STATE_H

#include "fault.h"

#include "../engine/engine.h"
#include "../log.h"
#include "../timer.h"
#include "../net/switch.h"
#include "../packet/frames.h"

/** FAULT_FRAMES - frames that may wait at once; copies count even if they do not wait */
#define FAULT_FRAMES	4096
/** FAULT_HANDS - frames being processed: one enters the switch and, nested in that, one leaves */
#define FAULT_HANDS	2

/**
 * struct fault - a rule and its state
 * @link:	in @rules of struct faults
 * @faults:	all rules of the engine
 * @id:		number
 * @name:	name of @log
 * @log:	source of log lines
 * @rule:	the parsed rule
 * @matched, @acted, @no_room: as in struct fault_info
 * @timer:	FLAP, QP_ERROR, FATAL: time to act, or to end a flap
 * @down:	FLAP: the rule holds the port down
 * @holds:	REORDER: number of frames that wait to be overtaken
 */
struct fault {
	TAILQ_ENTRY(fault) link;
	struct faults *faults;
	uint32_t id;
	char name[24];
	struct log_source log;
	struct fault_rule rule;
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
 * @port:	port that it passes
 * @way:	direction
 * @from:	port by which it entered the switch
 * @passed:	number of the last rule that matched it
 * @copy:	made by a DUPLICATE rule
 * @place:	counted in @places of struct faults until it is freed
 * @noted:	a rule acted on it: captures get a note of that, and one when it is forwarded
 * @kept:	properties that @data does not show
 * @loopback, @echo, @sender: as in struct packet
 * @code:	RoCE: packet code, see match_code()
 * @dqpn:	RoCE: destination queue pair
 * @psn:	RoCE: PSN
 * @dgid:	RoCE: destination GID
 * @release:	if it waits: time to forward it, ns of the engine's clock
 * @holder:	if it waits: REORDER rule that holds it, or NULL
 * @overtakers:	if @holder: number of matches of @holder that still have to overtake it
 * @len:	bytes in @data
 * @data:	the frame from its Ethernet header on, without FCS
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
	struct frames_kept kept;
	bool loopback;
	bool echo;
	const struct qp *sender;
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
 * @asked:	operations for the engine; the first member, see faults_of()
 * @engine:	engine
 * @log:	parent of the sources of all rules
 * @rules:	in the order of their numbers
 * @n:		number of rules
 * @next_id:	number of the next rule
 * @frames:	array of FAULT_FRAMES + FAULT_HANDS frames, NULL before the first packet rule
 * @free:	frames of the array that are not in use
 * @places:	number of frames that wait and of copies, at most FAULT_FRAMES
 * @held:	frames that wait, in the order of @release
 * @timer:	fires at the first @release
 * @hook:	operations for the switch
 */
struct faults {
	struct engine_faults asked;
	struct engine *engine;
	struct log_source log;
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

/* faults_of() - return the rules of @e, NULL before the first one was added */
static inline struct faults *faults_of(const struct engine *e)
{
	return (struct faults *)e->faults;
}

_Static_assert(!offsetof(struct faults, asked), "engine->faults points to the first member");

/* complete.c */

/* fault_completion(), fault_command() - see struct engine_faults */
uint8_t fault_completion(struct qp *qp, bool recv);
enum fault_command fault_command(struct device *dev, uint16_t opcode, uint8_t *status);

/* match.c */

/* match_packet() - return true if @f may match a frame of @p at @port */
bool match_packet(const struct fault *f, const struct switch_port *port, enum switch_way way,
		  const struct packet *p);
/* match_frame() - return true if @f matches @frame */
bool match_frame(const struct fault *f, const struct fault_frame *frame);
/*
 * match_code() - return the packet code (bit in @codes of struct fault_rule) of a packet with BTH
 * @opcode and, if it is an acknowledgment, AETH syndrome @aeth
 */
uint16_t match_code(uint8_t opcode, uint8_t aeth);
/* match_device() - return true if @f names @dev or no device */
bool match_device(const struct fault *f, const struct device *dev);
/* match_chosen() - count a match. Return: true if the rule acts on it, which is counted too. */
bool match_chosen(struct fault *f);

/* packet.c */

/* packet_init() - allocate the frames, unless that is done. Return: 0 or -ENOMEM. */
int packet_init(struct faults *fs);
/* packet_fini() - remove the switch's hook, free the frames */
void packet_fini(struct faults *fs);
/* packet_hook() - hook into the switch if there are packet rules or waiting frames, else unhook */
void packet_hook(struct faults *fs);
/* packet_run() - apply the remaining rules to @frame, which is in no list, and forward it */
void packet_run(struct faults *fs, struct fault_frame *frame);
void frame_free(struct faults *fs, struct fault_frame *frame);
/* frame_lost() - drop a frame: show it to captures with the note @why, and free it */
void frame_lost(struct faults *fs, struct fault_frame *frame, const char *why);

/* hold.c */

void hold_init(struct faults *fs);
/* hold_frame() - hold @frame until @release, ns of the engine's clock */
void hold_frame(struct faults *fs, struct fault_frame *frame, uint64_t release);
/* hold_back() - hold @frame for REORDER rule @f: until overtaken, at most @within_ns */
void hold_back(struct fault *f, struct fault_frame *frame);
/*
 * hold_overtaken() - count @frame for all frames of the same flow that @f holds; move those that
 * were overtaken often enough to @to
 */
void hold_overtaken(struct faults *fs, const struct fault *f, const struct fault_frame *frame,
		    struct fault_frames *to);
/* hold_forget() - forget that frames wait for @f, which is deleted; they leave at @release */
void hold_forget(struct faults *fs, const struct fault *f);
/* hold_gone() - drop waiting frames at or from @port; @why: note for captures */
void hold_gone(struct faults *fs, const struct switch_port *port, const char *why);

/* device.c */

/* device_check() - check that the rule's device or port exists. Return: 0, or -ENOENT with @err. */
int device_check(const struct faults *fs, const struct fault_rule *r, char *err);
/*
 * device_start() - act at once or arm the timer, if the rule is for a device and has no conditions
 * on packets. Return: as fault_add().
 */
int device_start(struct fault *f, char *err);
/* device_stop() - disarm the timer, end a flap */
void device_stop(struct fault *f);
/*
 * device_act() - inject the fault into the device because @frame matched. Return: false if there
 * was nothing to do or it failed.
 */
bool device_act(struct fault *f, const struct fault_frame *frame);
/* device_port_added() - see fault_port_added() */
void device_port_added(const struct faults *fs, const char *name);

#endif /* ORNICD_FAULT_STATE_H */
