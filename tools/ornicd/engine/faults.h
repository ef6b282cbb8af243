/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection in the data path and the admin queue: operations that fault/ installs with its
 * first rule. Faults of packets have a hook in the switch.
 */
#ifndef ORNICD_ENGINE_FAULTS_H
#define ORNICD_ENGINE_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct engine;
struct qp;

/** FAULT_SYNDROME - vendor-specific syndrome of an injected error */
#define FAULT_SYNDROME	0x80000001u

enum fault_command {
	FAULT_EXECUTE,
	FAULT_FAIL,	/* do not execute, but complete with a status */
	FAULT_SWALLOW,	/* neither execute nor complete */
};

/**
 * struct engine_faults - operations of fault injection
 * @completion:	called before a successful completion of @qp is written. Return: the status to
 *		write instead, or 0.
 * @command:	called before a command with @opcode is executed; fills in @status for FAULT_FAIL
 * @fini:	called when the engine ends
 */
struct engine_faults {
	uint8_t (*completion)(struct qp *qp, bool recv);
	enum fault_command (*command)(struct device *dev, uint16_t opcode, uint8_t *status);
	void (*fini)(struct engine *e);
};

#endif /* ORNICD_ENGINE_FAULTS_H */
