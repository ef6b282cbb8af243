/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Admin queue: take commands, write completions (ORN-ADM, ORN-RNG).
 */
#ifndef ORNICD_DEV_ADMIN_H
#define ORNICD_DEV_ADMIN_H

#include "../engine/ring.h"
#include "../timer.h"

#include <ornic/admin.h>
#include <stdbool.h>
#include <stdint.h>

struct function;

/** ADMIN_BATCH - most commands per call of admin_run() */
#define ADMIN_BATCH	8

/**
 * struct admin - the two rings
 * @f:		function
 * @asq, @acq:	DMA addresses of the rings
 * @asq_rec, @acq_rec: DMA addresses of their doorbell records
 * @log_asq, @log_acq: log2 of their entries
 * @cons:	index of the next command to fetch
 * @prod:	index of the next completion to write
 * @arm:	state of the completion ring's arm word
 * @pending:	the submission ring may have commands
 * @retry:	timer to look again at a completion ring that was full
 */
struct admin {
	struct function *f;
	uint64_t asq;
	uint64_t acq;
	uint64_t asq_rec;
	uint64_t acq_rec;
	uint8_t log_asq;
	uint8_t log_acq;
	uint32_t cons;
	uint32_t prod;
	struct ring_arm arm;
	bool pending;
	struct timer retry;
};

/* admin_start() - start with empty rings at the addresses in the function's registers */
void admin_start(struct admin *a, struct function *f, uint8_t log_asq, uint8_t log_acq);
/* admin_stop() - stop, and abandon the command that is being executed */
void admin_stop(struct admin *a);

/* admin_doorbell() - handle a doorbell of one of the rings (enum ornic_db_admin) */
void admin_doorbell(struct admin *a, uint32_t ring);

/*
 * admin_run() - execute up to ADMIN_BATCH commands, until the limit of work is reached or the
 * completion ring is full, then write the event that is due; between iterations of the engine
 */
void admin_run(struct admin *a);

#endif /* ORNICD_DEV_ADMIN_H */
