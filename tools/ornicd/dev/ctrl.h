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
 * Enable, disable and reset are finished when the store that asks for them is, so
 * the states RESETTING and DRAINING of the specification are never seen.
 */
enum ctrl_state {
	CTRL_DISABLED,
	CTRL_READY,
	CTRL_DYING,	/* FATAL, and the last DMA is not over */
	CTRL_FATAL,
};

/* First and last register of the block that is writable while disabled */
#define CTRL_RW_FIRST	ORNIC_REG_ASQ_ADDR
#define CTRL_RW_END	ORNIC_REG_CLOCK
#define CTRL_RW_WORDS	((CTRL_RW_END - CTRL_RW_FIRST) / 4)

/**
 * struct ctrl - register file
 * @state:	state of the function
 * @control:	CONTROL as it reads
 * @syndrome:	SYNDROME
 * @cause:	RESET_CAUSE
 * @rw:		registers from CTRL_RW_FIRST on
 * @beats:	heartbeats since enable
 * @beat:	next heartbeat
 */
struct ctrl {
	enum ctrl_state state;
	uint32_t control;
	uint32_t syndrome;
	uint32_t cause;
	uint32_t rw[CTRL_RW_WORDS];
	uint64_t beats;
	struct timer beat;
};

uint64_t ctrl_read(struct function *f, uint32_t off, unsigned int len);
void ctrl_write(struct function *f, uint32_t off, unsigned int len, uint64_t val);

/* ctrl_reg64() - an address register */
uint64_t ctrl_reg64(const struct ctrl *c, enum ornic_reg reg);

void ctrl_disable(struct function *f, uint32_t reason);
void ctrl_reset(struct function *f, enum ornic_reset_cause cause, uint32_t reason);

/* ctrl_fatal() - READY to FATAL, in the order of ORN-CTL-28 */
void ctrl_fatal(struct function *f, uint32_t syndrome);

/* ctrl_status_write() - bring status, syndrome and generation in host memory up to date */
void ctrl_status_write(struct function *f);

/* ctrl_resume() - bus mastering is back: the heart beats again */
void ctrl_resume(struct function *f);

#endif /* ORNICD_DEV_CTRL_H */
