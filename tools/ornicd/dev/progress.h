/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands that take several iterations of the engine: the page list of a region may have
 * millions of entries, and other functions must not wait until all are copied or checked
 * (ORN-SEC-14).
 *
 * The handler of such a command is called once per iteration, with the same input, until it
 * returns something other than COMMAND_MORE; its intermediate results are stored here. It
 * validates everything again on each call, because the data path runs in between. Later
 * commands of the host wait.
 */
#ifndef ORNICD_DEV_PROGRESS_H
#define ORNICD_DEV_PROGRESS_H

#include "../engine/umem.h"

#include <ornic/admin.h>
#include <stdbool.h>
#include <stdint.h>

struct command;
struct function;

/** PROGRESS_WORK - page-list entries that a function's commands may process per iteration */
#define PROGRESS_WORK	2048

/** COMMAND_MORE - status of a handler that is not finished; not a value of enum ornic_status */
#define COMMAND_MORE	0xff

/**
 * struct progress - the command of a function that is being executed
 * @active:	the command is not finished
 * @cmd:	private copy of the command
 * @in:		private copy of its input
 * @loading:	@load is valid
 * @load:	state of loading a page list
 * @checked:	bytes of the region that were found in @file
 * @file:	file behind the region, with a reference, or NULL
 * @work:	entries that may still be processed in this iteration
 */
struct progress {
	bool active;
	struct ornic_admin_cmd cmd;
	uint8_t in[ORNIC_ADMIN_MAX_PAYLOAD] __attribute__((aligned(64)));
	bool loading;
	struct umem_load load;
	uint64_t checked;
	struct durable *file;
	uint64_t work;
};

/*
 * progress_pages() - load the page list of a region of @length > 0 bytes
 * progress_durable() - find the file by which all of @mem can be made durable
 * @field: input field that is reported on failure
 * Return: COMMAND_MORE; ORNIC_ST_OK, and struct progress has the result until it is taken; or an
 * error status.
 */
uint8_t progress_pages(struct command *c, const struct ornic_pages *field, uint64_t length);
uint8_t progress_durable(struct command *c, const __le32 *field, const struct umem *mem);

/* progress_take_pages(), progress_take_file() - return the results, which are the caller's then */
struct umem progress_take_pages(struct function *f);
struct durable *progress_take_file(struct function *f);

/* progress_charge() - subtract @entries that were processed at once from this iteration's work */
void progress_charge(struct function *f, uint64_t entries);

/*
 * progress_end() - free results that were not taken, because the command finished or was abandoned
 */
void progress_end(struct function *f);

#endif /* ORNICD_DEV_PROGRESS_H */
