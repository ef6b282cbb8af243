/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One PCI function: registers, admin queue and objects towards the host, a struct device
 * towards the data path.
 *
 * There are two callers on one thread, which never nest: the vfio-user server calls the
 * operations of vfu/func.h while it handles a message, and the daemon's work hook calls
 * function_work() just before each iteration of the engine. A register write acts at once. A
 * doorbell of the admin queue is only noted for function_work(), which executes a bounded
 * number of commands per call, so that commands of one guest delay neither its doorbell nor
 * other guests. A fatal error, which the data path may find during an iteration, is noted as
 * well: objects are released between iterations, when no pointers to them are in use.
 */
#ifndef ORNICD_DEV_FUNCTION_H
#define ORNICD_DEV_FUNCTION_H

#include "admin.h"
#include "ctrl.h"
#include "limits.h"
#include "progress.h"
#include "teardown.h"
#include "walk.h"

#include "../engine/device.h"
#include "../engine/engine.h"
#include "../vfu/func.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/**
 * struct function - a PCI function
 * @name:	name for messages
 * @vfu:	the function for the vfio-user server
 * @dev:	the device for the data path
 * @ctrl:	registers and state
 * @admin:	admin queue
 * @progress:	command that is being executed
 * @teardown:	release of the objects after a stop
 * @ringing:	doorbell_all() has begun and not ended
 * @ring:	its progress
 * @features_set: SET_FEATURES was accepted
 * @created:	an EQ other than EQ 0, a PD or a key was created since the function is READY; all
 *		other objects need one of these or a feature
 * @fatal:	syndrome of a fatal error that function_work() has to handle; 0: none
 * @generation:	number of changes of Identify pages
 * @tag:	tag of the last key that was created
 * @db_quiet:	until then rejected doorbells are counted, but cause no event; ns
 * @dm_mem:	device memory, LIMIT_DM bytes
 * @dm_used:	a bit per page of device memory that belongs to a block
 * @dm_dirty:	a bit per page of device memory that the guest stored to since it was zeroed
 * @dms:	blocks of device memory
 * @leaving:	in the daemon's list of functions whose device was removed
 */
struct function {
	char *name;
	struct vfu_func vfu;
	struct device dev;
	struct ctrl ctrl;
	struct admin admin;
	struct progress progress;
	struct teardown teardown;
	bool ringing;
	struct walk ring;
	bool features_set;
	bool created;
	uint32_t fatal;
	uint32_t generation;
	uint8_t tag;
	uint64_t db_quiet;
	uint8_t *dm_mem;
	uint64_t dm_used;
	uint64_t dm_dirty;
	struct table dms;
	LIST_ENTRY(function) leaving;
};

struct function *function_new(struct engine *e, const char *name, const uint8_t mac[6],
			      uint16_t vlan, int *err);
void function_retire(struct function *f);
void function_free(struct function *f);

/*
 * Device memory (dm.c)
 *
 * dm_init() - allocate it. Return: 0 or -ENOMEM.
 * dm_release_all() - release all blocks and zero the memory
 * dm_bar_read(), dm_bar_write() - load and store of the guest; the caller has checked alignment,
 * width and range (vfu/func.h)
 */
int dm_init(struct function *f);
void dm_fini(struct function *f);
void dm_release_all(struct function *f);
uint64_t dm_bar_read(const struct function *f, uint64_t off, unsigned int len);
void dm_bar_write(struct function *f, uint64_t off, unsigned int len, uint64_t val);

/*
 * function_port_policy() - restrict the port by settings of the operator: with @source the guest
 * sends from the permanent MAC address only (ORN-ETH-1) and, if it has IP addresses, from these and
 * its link-local address (ORN-ETH-16), which it gets in addition; without @promisc it receives no
 * frames for other addresses (ORN-STEER-5). Must be called before a client attaches.
 */
void function_port_policy(struct function *f, const struct antispoof *source, bool promisc);

/* function_work() - execute waiting commands, handle a fatal error; between iterations */
void function_work(struct function *f);
/* function_busy() - return true if function_work() has something to do */
bool function_busy(const struct function *f);

/* function_max_list() - return the most page-list entries of the device */
uint64_t function_max_list(const struct function *f);
/* function_stride_log() - return log2 of the doorbell stride that the host chose */
uint32_t function_stride_log(const struct function *f);
/* function_dbpages() - return the number of doorbell pages at that stride */
uint32_t function_dbpages(const struct function *f);

/*
 * function_run() - start the data path; treat all doorbells as rung, as some may have been missed
 */
void function_run(struct function *f);
/* function_pause() - stop DMA and interrupts, keep all state */
void function_pause(struct function *f);
/*
 * function_stop() - stop DMA at once, and begin to release all objects without completions and events
 * (ORN-CTL-4, ORN-CTL-26); ctrl_stopped() is called at the end of this
 */
void function_stop(struct function *f);

/*
 * function_port_reset() - restore the permanent MAC address, if no other function uses it;
 * function_stop() resets frame size and administrative state
 */
void function_port_reset(struct function *f);

/* function_fail() - stop the data path at once, go FATAL after its iteration (ORN-CTL-5) */
void function_fail(struct function *f, uint32_t syndrome);

/* function_changed() - report a changed Identify page by generation and event (ORN-IDN-4) */
void function_changed(struct function *f, enum ornic_identify_page page, uint32_t index);

#endif /* ORNICD_DEV_FUNCTION_H */
