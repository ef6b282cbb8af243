/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Registers, the enable handshake and the status block (ORN-PCI, ORN-CTL).
 */
#ifndef ORNICD_DEV_CTRL_H
#define ORNICD_DEV_CTRL_H

#include "../timer.h"

#include <ornic/regs.h>
#include <stdbool.h>
#include <stdint.h>

struct function;

/*
 * An enable is finished when the store that requests it returns. After a disable or a reset, DMA has
 * ended then, but the release of many objects takes longer (teardown.h).
 */
enum ctrl_state {
	CTRL_DISABLED,
	CTRL_READY,
	CTRL_DRAINING,
	CTRL_RESETTING,
	CTRL_DYING,	/* FATAL, but DMA has not stopped yet */
	CTRL_FATAL,
};

/* First register of the block that is writable while disabled, and the first one behind it */
#define CTRL_RW_FIRST	ORNIC_REG_ASQ_ADDR
#define CTRL_RW_END	ORNIC_REG_CLOCK
#define CTRL_RW_WORDS	((CTRL_RW_END - CTRL_RW_FIRST) / 4)

/**
 * struct ctrl - register file
 * @state:	state of the function
 * @control:	CONTROL
 * @syndrome:	SYNDROME
 * @cause:	RESET_CAUSE
 * @rw:		registers from CTRL_RW_FIRST on
 * @beats:	number of heartbeats since enable
 * @beat:	timer of the next heartbeat
 * @beat_cpu:	time for which the thread had run when @beat was armed, ns
 */
struct ctrl {
	enum ctrl_state state;
	uint32_t control;
	uint32_t syndrome;
	uint32_t cause;
	uint32_t rw[CTRL_RW_WORDS];
	uint64_t beats;
	struct timer beat;
	uint64_t beat_cpu;
};

/* ctrl_read() - load @len bytes, aligned; narrow loads return ones (ORN-PCI-1) */
uint64_t ctrl_read(struct function *f, uint32_t off, unsigned int len);
/* ctrl_write() - store @len bytes, aligned; narrow stores are dropped (ORN-PCI-10) */
void ctrl_write(struct function *f, uint32_t off, unsigned int len, uint64_t val);

/* ctrl_reg64() - return the value of an address register */
uint64_t ctrl_reg64(const struct ctrl *c, enum ornic_reg reg);

/* ctrl_disable() - end all DMA, begin to release all objects, keep the registers (ORN-CTL-4) */
void ctrl_disable(struct function *f, uint32_t reason);
/*
 * ctrl_reset() - end all DMA, set registers to their reset values, begin to release all objects
 * @cause:	value of RESET_CAUSE
 * @reason:	reason given by the host, a part of RESET_CAUSE
 *
 * A reset by CONTROL keeps the MAC address of the port; other resets restore the permanent one.
 */
void ctrl_reset(struct function *f, enum ornic_reset_cause cause, uint32_t reason);

/*
 * ctrl_memory_lost() - return true if the device is READY, but a page of the host's memory is lost
 * ctrl_tell_lost() - log where and why
 */
bool ctrl_memory_lost(const struct function *f);
void ctrl_tell_lost(struct function *f);
/* ctrl_fatal() - go from READY to FATAL, in the order of ORN-CTL-28 */
void ctrl_fatal(struct function *f, uint32_t syndrome);

/* ctrl_stopped() - leave DRAINING or RESETTING, because all objects are released */
void ctrl_stopped(struct function *f);

/* ctrl_status_write() - update status, syndrome and generation in host memory */
void ctrl_status_write(struct function *f);

/* ctrl_resume() - restart the heartbeat, because bus mastering is enabled */
void ctrl_resume(struct function *f);

/* ctrl_end_beat() - end the heartbeat, because the function stops */
void ctrl_end_beat(struct function *f);

#endif /* ORNICD_DEV_CTRL_H */
