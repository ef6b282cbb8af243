/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One PCI function: registers, admin queue and objects on the host's side, a
 * struct device for the data path on the other.
 *
 * Two callers, one thread, never nested: the vfio-user server calls the
 * operations of vfu/func.h while it handles a message, and the daemon's work
 * hook calls function_work() just before each turn of the engine. A register
 * write acts at once. A doorbell for the admin queue only leaves a note for
 * function_work(), which executes a bounded number of commands per call, so that
 * one guest's commands neither delay the store that announced them nor the other
 * guests. Likewise a fatal error, which the data path may find in the middle of a
 * turn: objects are torn down afterwards, when nobody holds a pointer.
 */
#ifndef ORNICD_DEV_FUNCTION_H
#define ORNICD_DEV_FUNCTION_H

#include "admin.h"
#include "ctrl.h"
#include "limits.h"
#include "progress.h"

#include "../engine/device.h"
#include "../engine/engine.h"
#include "../vfu/func.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * struct function - see above
 * @vfu:	what the vfio-user server sees
 * @dev:	what the data path sees
 * @ctrl:	registers and state
 * @admin:	admin queue
 * @progress:	its command that is being executed
 * @features_set: SET_FEATURES was accepted
 * @created:	an object other than EQ 0 was created since the function is READY
 * @fatal:	syndrome of a fatal error not acted upon yet; 0 = none
 * @generation:	changes of Identify pages
 * @tag:	tag of the key created last
 * @db_quiet:	until when rejected doorbells are counted and not told
 * @dm_mem:	device memory, LIMIT_DM bytes
 * @dm_used:	a bit for each page of it that belongs to a block
 * @dms:	blocks of it
 */
struct function {
	struct vfu_func vfu;
	struct device dev;
	struct ctrl ctrl;
	struct admin admin;
	struct progress progress;
	bool features_set;
	bool created;
	uint32_t fatal;
	uint32_t generation;
	uint8_t tag;
	uint64_t db_quiet;
	uint8_t *dm_mem;
	uint64_t dm_used;
	struct table dms;
};

struct function *function_new(struct engine *e, const char *name, const uint8_t mac[6],
			      int *err);
void function_free(struct function *f);

/* dm.c: device memory of a function, and the guest's loads and stores there */
int dm_init(struct function *f);
void dm_fini(struct function *f);
void dm_release_all(struct function *f);
uint64_t dm_bar_read(const struct function *f, uint64_t off, unsigned int len);
void dm_bar_write(struct function *f, uint64_t off, unsigned int len, uint64_t val);

/*
 * function_port_policy() - what the operator allows: with @anti_spoof nothing but frames from the
 * permanent address (ORN-ETH-1), without @promisc no frames to others (ORN-STEER-5). Call before
 * the function is served.
 */
void function_port_policy(struct function *f, bool anti_spoof, bool promisc);

/* function_work() - commands and errors that wait; between turns of the engine */
void function_work(struct function *f);
/* function_busy() - would function_work() find something to do? */
bool function_busy(const struct function *f);

/* function_stride_log() - log2 of the doorbell stride the host chose. */
uint32_t function_stride_log(const struct function *f);
/* function_dbpages() - doorbell pages at that stride. */
uint32_t function_dbpages(const struct function *f);

/* function_run() - let the data path work, and look at everything it may have missed. */
void function_run(struct function *f);
/* function_pause() - no DMA, no interrupt; state stays. */
void function_pause(struct function *f);
/* function_stop() - no DMA, every object gone without CQE or event (ORN-CTL-4). */
void function_stop(struct function *f);

/* function_port_reset() - the permanent MAC again */
void function_port_reset(struct function *f);

/* function_fail() - go FATAL as soon as the data path's turn is over (ORN-CTL-5). */
void function_fail(struct function *f, uint32_t syndrome);

/* function_changed() - an Identify page changed: generation and event (ORN-IDN-4) */
void function_changed(struct function *f, enum ornic_identify_page page, uint32_t index);

#endif /* ORNICD_DEV_FUNCTION_H */
