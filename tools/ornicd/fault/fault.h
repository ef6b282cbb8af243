/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection.
 *
 * Rules (rule.h) are tried in the order in which they were added. What a rule does to a packet
 * is done to single frames as they would be on a wire, at the ports of the switch
 * (packet.c): as soon as a rule may match, a packet that stands for many is cut, and
 * each frame goes from rule to rule. It may end there, be changed, wait (hold.c), get a
 * copy; what is left of it is parsed again as if it came from a wire, and goes on. Other
 * faults are done to devices (device.c) and to completions and admin commands
 * (complete.c), each where it would happen by itself.
 *
 * All is on the engine's thread. Memory for frames is bounded and allocated with the first
 * rule for packets; without such rules, and while nothing waits, the switch knows nothing of
 * all this.
 */
#ifndef ORNICD_FAULT_FAULT_H
#define ORNICD_FAULT_FAULT_H

#include "rule.h"

struct engine;

/** FAULT_RULES - most rules */
#define FAULT_RULES	256
/** FAULT_ERROR - bytes that every message of an error fits in */
#define FAULT_ERROR	512
/**
 * struct fault_info - a rule and what it did
 * @id:		its number, from 1 on
 * @text:	as it was added
 * @seed:	of its random numbers
 * @matched:	what fulfilled its conditions
 * @acted:	of these, what it acted on
 * @no_room:	of these, packets and copies that were lost because too many were waiting
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
 * @id:		its number
 * @err:	why not, FAULT_ERROR bytes
 *
 * Return: 0, or a negative errno and a text in @err.
 */
int fault_add(struct engine *e, const char *text, uint32_t *id, char *err);

/* fault_del() - Return: 0, or -ENOENT. What waits for the rule goes on when its time comes. */
int fault_del(struct engine *e, uint32_t id);
/* fault_clear() - delete all rules */
void fault_clear(struct engine *e);
/* fault_port_added() - port @name is new on the switch: a rule may hold its link down */
void fault_port_added(struct engine *e, const char *name);
/* fault_next() - the first rule with a number above @id. Return: false if there is none. */
bool fault_next(const struct engine *e, uint32_t id, struct fault_info *info);

/*
 * fault_file() - add the rules of a file: one per line, empty lines and comments from # on.
 * Return: 0, or a negative errno after an error line that names the file's line.
 */
int fault_file(struct engine *e, const char *path);

#endif /* ORNICD_FAULT_FAULT_H */
