/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands that take several turns: the page list of a region may have millions of entries,
 * and other functions do not wait until all are copied, or looked at (ORN-SEC-14).
 *
 * The handler of such a command is called once a turn, with the same input, until it returns
 * something other than COMMAND_MORE; what it has achieved meanwhile is kept here. It judges
 * everything anew each time, since the data path works in between. The host's other commands
 * wait, in order.
 */
#ifndef ORNICD_DEV_PROGRESS_H
#define ORNICD_DEV_PROGRESS_H

#include "../engine/umem.h"

#include <ornic/admin.h>
#include <stdbool.h>
#include <stdint.h>

struct command;
struct function;

/** PROGRESS_WORK - page-list entries that a function's commands may handle per turn */
#define PROGRESS_WORK	8192

/** COMMAND_MORE - a handler wants to be called again in the next turn; no enum ornic_status */
#define COMMAND_MORE	0xff

/**
 * struct progress - the command of a function that is being executed
 * @active:	it has not come to its end
 * @cmd:	the command, a private copy
 * @in:		its input
 * @loading:	@load is valid
 * @load:	page list that it needs
 * @checked:	bytes of the region found to be in @file
 * @file:	the file, referenced, or NULL
 * @work:	entries that may still be handled in this turn
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
 * progress_durable() - find the file with which all of @mem can be made durable
 * Return: COMMAND_MORE; ORNIC_ST_OK: the result stays here until it is taken; else why not.
 */
uint8_t progress_pages(struct command *c, const struct ornic_pages *field, uint64_t length);
uint8_t progress_durable(struct command *c, const __le32 *field, const struct umem *mem);

/* progress_take_pages(), progress_take_file() - the results become the caller's */
struct umem progress_take_pages(struct function *f);
struct durable *progress_take_file(struct function *f);

/* progress_charge() - @entries were handled at once: less is left for this turn */
void progress_charge(struct function *f, uint64_t entries);

/* progress_end() - the command is over, or will never be: forget what it has not used */
void progress_end(struct function *f);

#endif /* ORNICD_DEV_PROGRESS_H */
