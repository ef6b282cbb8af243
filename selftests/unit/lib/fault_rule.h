/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Add a fault rule that must be accepted; check that no frame is left. Include after cmocka.h.
 */
#ifndef UNIT_LIB_FAULT_RULE_H
#define UNIT_LIB_FAULT_RULE_H

#include "fault/state.h"

/* fault_rule() - add the rule of @text. Return: its id. */
static inline uint32_t fault_rule(struct engine *e, const char *text)
{
	char err[FAULT_ERROR];
	uint32_t id;

	if (fault_add(e, text, &id, err))
		fail_msg("\"%s\": %s", text, err);
	return id;
}

/* fault_no_frames() - check that no frame waits, is a copy, or got lost */
static inline void fault_no_frames(const struct engine *e)
{
	const struct faults *fs = faults_of(e);
	const struct fault_frame *frame;
	unsigned int n = 0;

	if (!fs || !fs->frames)
		return;
	assert_int_equal(fs->places, 0);
	TAILQ_FOREACH(frame, &fs->free, link)
		n++;
	assert_int_equal(n, FAULT_FRAMES + FAULT_HANDS);
}

#endif /* UNIT_LIB_FAULT_RULE_H */
