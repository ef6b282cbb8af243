/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive rules in the data path: they choose the queue pairs of a frame.
 */
#ifndef ORNICD_ENGINE_STEER_H
#define ORNICD_ENGINE_STEER_H

#include "device.h"
#include "../packet/frame.h"

#include <ornic/steer.h>
#include <stdbool.h>
#include <stdint.h>

struct packet;
struct qp;
struct rss;

/** STEER_RULE_WORDS - 64-bit words of a match key */
#define STEER_RULE_WORDS	(sizeof(struct ornic_rule_match) / sizeof(uint64_t))

/**
 * struct steer_rule - a receive rule; a MATCH rule is in a list
 * @number, @kind, @priority, @flags, @fields: as created
 * @flow_tag:	tag for completions
 * @qp:		target, or NULL
 * @rss:	target, or NULL; a frame that matches a rule without target is dropped
 * @value:	required value of the bits of @mask
 * @mask:	bits of the frame to compare
 * @next:	next rule in the list
 */
struct steer_rule {
	uint32_t number;
	uint8_t kind;
	uint16_t priority;
	uint32_t flags;
	uint32_t fields;
	uint32_t flow_tag;
	struct qp *qp;
	struct rss *rss;
	uint64_t value[STEER_RULE_WORDS];
	uint64_t mask[STEER_RULE_WORDS];
	struct steer_rule *next;
};

/* steer_add() - add a MATCH rule to its list, by priority */
void steer_add(struct port *port, struct steer_rule *r);
/* steer_del() - remove a MATCH rule from its list */
void steer_del(struct port *port, struct steer_rule *r);

/* steer_wants_foreign() - return true if a rule may take unicast frames to other addresses */
bool steer_wants_foreign(const struct port *port);

/* steer_receive() - deliver a frame by the rules, or count it as dropped */
void steer_receive(struct device *dev, const struct packet *p);

#endif /* ORNICD_ENGINE_STEER_H */
