/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection.
 *
 * Rules (rule.h) are tried in the order in which they were added. Packet rules act on
 * single frames, as on a wire, at the ports of the switch (packet.c): as soon as a rule
 * may match, a packet that stands for many frames is cut, and each frame passes the rules
 * in turn. A rule may drop, change, hold (hold.c) or copy a frame. Frames that are left are
 * parsed again as if they came from a wire, and forwarded. Faults of devices are in
 * device.c, those of completions and admin commands in complete.c; each is injected where
 * a real one would occur.
 *
 * All functions run on the engine's thread. Memory for frames is bounded and allocated with
 * the first packet rule. Without packet rules and waiting frames the switch has no hook, so
 * that packets take no longer.
 */
#ifndef ORNICD_FAULT_FAULT_H
#define ORNICD_FAULT_FAULT_H

#include "rule.h"

struct engine;

/** FAULT_RULES - most rules of an engine */
#define FAULT_RULES	256
/** FAULT_ERROR - bytes of a buffer for error messages */
#define FAULT_ERROR	512
/**
 * struct fault_info - a rule and its statistics
 * @id:		number, from 1
 * @text:	text; valid until the rule is deleted
 * @seed:	seed of its random numbers
 * @matched:	number of matches
 * @acted:	number of matches on which it acted
 * @no_room:	number of actions that lost a frame or copy because too many frames were waiting
 * @spent:	it will never act again
 */
struct fault_info {
	uint32_t id;
	const char *text;
	uint64_t seed;
	uint64_t matched;
	uint64_t acted;
	uint64_t no_room;
	bool spent;
};

/**
 * fault_add() - add a rule
 * @e:		engine
 * @text:	the rule, one line
 * @id:		returns its number
 * @err:	FAULT_ERROR bytes for an error message
 *
 * Return: 0, or a negative errno and a message in @err: -EINVAL for a wrong rule, -ENOENT for an
 * unknown device, port or queue pair, -ENODEV for a device without driver, -ENOSPC, -ENOMEM.
 */
int fault_add(struct engine *e, const char *text, uint32_t *id, char *err);

/*
 * fault_del() - delete rule @id; frames that it holds are forwarded when their time comes.
 * Return: 0 or -ENOENT.
 */
int fault_del(struct engine *e, uint32_t id);
/* fault_clear() - delete all rules */
void fault_clear(struct engine *e);
/* fault_port_added() - take the link of the new port @name down if a rule holds it down */
void fault_port_added(struct engine *e, const char *name);
/* fault_next() - get the first rule with a number above @id. Return: false if there is none. */
bool fault_next(const struct engine *e, uint32_t id, struct fault_info *info);

/*
 * fault_file() - add the rules of a file, one per line; # begins a comment, lines may be empty.
 * Return: 0, or a negative errno after logging an error that names file and line.
 */
int fault_file(struct engine *e, const char *path);

#endif /* ORNICD_FAULT_FAULT_H */
