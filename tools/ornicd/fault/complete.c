// SPDX-License-Identifier: GPL-2.0
/*
 * Faults of completions (error status) and admin commands (failure, or no completion).
 */
#include "state.h"

#include "../engine/device.h"
#include "../engine/qp.h"

static bool match_completion(const struct fault *f, const struct qp *qp, bool recv)
{
	const struct fault_rule *r = &f->rule;

	return r->action == RULE_CQE && match_device(f, qp->dev) &&
	       (!rule_has(r, KEY_QP) || r->qp == qp->handle) &&
	       (r->queue == RULE_ANY_QUEUE || recv == (r->queue == RULE_RQ));
}

uint8_t fault_completion(struct qp *qp, bool recv)
{
	struct fault *f;

	TAILQ_FOREACH(f, &faults_of(qp->dev->engine)->rules, link)
		if (match_completion(f, qp, recv) && match_chosen(f))
			return f->rule.status;
	return 0;
}

static bool match_command(const struct fault *f, const struct device *dev, int code)
{
	const struct fault_rule *r = &f->rule;

	if (r->action != RULE_ADMIN || !match_device(f, dev))
		return false;
	return !rule_has(r, KEY_OPCODE) || (code >= 0 && rule_code(r, code));
}

enum fault_command fault_command(struct device *dev, uint16_t opcode, uint8_t *status)
{
	int code = names_command(opcode);
	struct fault *f;

	TAILQ_FOREACH(f, &faults_of(dev->engine)->rules, link) {
		if (!match_command(f, dev, code) || !match_chosen(f))
			continue;
		*status = f->rule.status;
		return rule_has(&f->rule, KEY_FAIL) ? FAULT_FAIL : FAULT_SWALLOW;
	}
	return FAULT_EXECUTE;
}
