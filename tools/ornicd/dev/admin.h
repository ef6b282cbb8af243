/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Admin queue: commands in, completions out (ORN-ADM, ORN-RNG).
 */
#ifndef ORNICD_DEV_ADMIN_H
#define ORNICD_DEV_ADMIN_H

#include "../engine/ring.h"
#include "../timer.h"

#include <ornic/admin.h>
#include <stdbool.h>
#include <stdint.h>

struct function;

/** ADMIN_BATCH - commands executed per call of admin_run() */
#define ADMIN_BATCH	8

/**
 * struct admin - the two rings
 * @f:		function
 * @asq, @acq:	DMA addresses of the rings
 * @asq_rec, @acq_rec: and of their doorbell records
 * @log_asq, @log_acq: log2 entries
 * @cons:	next command to fetch
 * @prod:	next completion to write
 * @arm:	state of the completion ring's arm word
 * @pending:	the submission ring has, or may have, commands
 * @retry:	looks again at a completion ring that was full
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

void admin_start(struct admin *a, struct function *f, uint8_t log_asq, uint8_t log_acq);
void admin_stop(struct admin *a);

/* admin_doorbell() - the host rang for one of the rings (enum ornic_db_admin) */
void admin_doorbell(struct admin *a, uint32_t ring);

/*
 * admin_run() - execute at most ADMIN_BATCH commands, or a part of one that has much to do,
 * then look at the arm word
 */
void admin_run(struct admin *a);

#endif /* ORNICD_DEV_ADMIN_H */
