/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults on purpose as the data path and the admin queue see them: somebody who is asked, if
 * there is anybody (fault/). What is done to packets is asked at the switch.
 */
#ifndef ORNICD_ENGINE_FAULTS_H
#define ORNICD_ENGINE_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct engine;
struct qp;

/** FAULT_SYNDROME - what a host sees as the reason of an error on purpose; the vendor's */
#define FAULT_SYNDROME	0x80000001u

enum fault_command {
	FAULT_EXECUTE,
	FAULT_FAIL,	/* do not execute, but complete with a status */
	FAULT_SWALLOW,	/* neither execute nor complete */
};

/**
 * struct engine_faults - see above
 * @completion:	a successful completion of @qp is about to be written. Return: the status to
 *		write instead, or 0.
 * @command:	a command with @opcode is about to be executed; for FAULT_FAIL, @status is filled in
 * @fini:	the engine ends
 */
struct engine_faults {
	uint8_t (*completion)(struct qp *qp, bool recv);
	enum fault_command (*command)(struct device *dev, uint16_t opcode, uint8_t *status);
	void (*fini)(struct engine *e);
};

#endif /* ORNICD_ENGINE_FAULTS_H */
