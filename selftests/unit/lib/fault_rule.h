/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Add a fault rule that must be accepted. Include after cmocka.h.
 */
#ifndef UNIT_LIB_FAULT_RULE_H
#define UNIT_LIB_FAULT_RULE_H

#include "fault/fault.h"

/* fault_rule() - add the rule of @text. Return: its id. */
static inline uint32_t fault_rule(struct engine *e, const char *text)
{
	char err[FAULT_ERROR];
	uint32_t id;

	if (fault_add(e, text, &id, err))
		fail_msg("\"%s\": %s", text, err);
	return id;
}

#endif /* UNIT_LIB_FAULT_RULE_H */
