/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * PCI identity, registers of BAR0 and the status block (specification:
 * pci.rst, regs.rst; clauses ORN-PCI, ORN-CTL).
 */
#ifndef ORNIC_REGS_H
#define ORNIC_REGS_H

#include "types.h"

/*
 * PCI ids of the software reference device. Provisional until a registered id
 * exists; the interface itself is recognised by MAGIC and VERSION (ORN-PCI-9).
 */
#define ORNIC_PCI_VENDOR_ID		0x4f52
#define ORNIC_PCI_DEVICE_ID		0x4e49
#define ORNIC_PCI_CLASS_ETHERNET	0x020000

#define ORNIC_BAR_REGS			0	/* registers and doorbell pages */
#define ORNIC_BAR_MSIX			2	/* MSI-X table and PBA, nothing else */
#define ORNIC_BAR_DM			4	/* device memory, optional */

/* Register offsets in BAR0. Offsets not listed read as zero. */
enum ornic_reg {
	ORNIC_REG_MAGIC		= 0x000, /* u32 RO, ORNIC_MAGIC */
	ORNIC_REG_VERSION	= 0x004, /* u32 RO, major << 16 | minor */
	ORNIC_REG_CAP		= 0x008, /* u64 RO, ORNIC_CAP_* */
	ORNIC_REG_DB_OFFSET	= 0x010, /* u32 RO, first doorbell page, bytes from BAR0 */
	ORNIC_REG_DB_BYTES	= 0x014, /* u32 RO, size of the doorbell area */
	ORNIC_REG_VECTORS	= 0x018, /* u32 RO, MSI-X vectors usable by event queues */
	ORNIC_REG_HB_MS		= 0x01c, /* u32 RO, heartbeat period, 0 = none */
	ORNIC_REG_CONTROL	= 0x020, /* u32 RW, ORNIC_CTL_* */
	ORNIC_REG_STATUS	= 0x024, /* u32 RO, ORNIC_STS_* */
	ORNIC_REG_SYNDROME	= 0x028, /* u32 RO, why FATAL; kept until reset */
	ORNIC_REG_RESET_CAUSE	= 0x02c, /* u32 RO, [15:0] ornic_reset_cause, [31:16] host reason */
	ORNIC_REG_ASQ_ADDR	= 0x030, /* u64 RW, admin submission ring */
	ORNIC_REG_ACQ_ADDR	= 0x038, /* u64 RW, admin completion ring */
	ORNIC_REG_ASQ_REC	= 0x040, /* u64 RW, doorbell record of the submission ring */
	ORNIC_REG_ACQ_REC	= 0x048, /* u64 RW, doorbell record of the completion ring */
	ORNIC_REG_STATUS_ADDR	= 0x050, /* u64 RW, status block */
	ORNIC_REG_ADMIN_SIZE	= 0x058, /* u32 RW, log2 of entries: [3:0] ASQ, [7:4] ACQ */
	ORNIC_REG_NONCE		= 0x05c, /* u32 RW, host's random word (ORN-CTL-3) */
	ORNIC_REG_CLOCK		= 0x060, /* u64 RO, device clock, debugging only */
	ORNIC_REG_END		= 0x068,
	ORNIC_REG_VENDOR	= 0xc00, /* .. 0xfff vendor registers */
	ORNIC_REG_BYTES		= 0x1000,
};

#define ORNIC_MAGIC		0x434e524f	/* bytes "ORNC" */
#define ORNIC_VERSION_MAJOR	1
#define ORNIC_VERSION_MINOR	0
#define ORNIC_VERSION		(ORNIC_VERSION_MAJOR << 16 | ORNIC_VERSION_MINOR)

/* CAP: shift and width of each field; timeouts count 100 ms and are at least 1. */
#define ORNIC_CAP_READY_TIMEOUT_SHIFT	0	/* 8 bits */
#define ORNIC_CAP_ADMIN_TIMEOUT_SHIFT	8	/* 8 bits */
#define ORNIC_CAP_RESET_TIMEOUT_SHIFT	16	/* 8 bits */
#define ORNIC_CAP_TIMEOUT_MASK		0xff
#define ORNIC_CAP_LOG_ADMIN_SHIFT	24	/* 4 bits: log2 of the most admin entries, 4..12 */
#define ORNIC_CAP_LOG_ADMIN_MASK	0xf
#define ORNIC_CAP_MIN_STRIDE_SHIFT	28	/* 4 bits: smallest doorbell stride, log2 - 12 */
#define ORNIC_CAP_MAX_STRIDE_SHIFT	32	/* 4 bits: largest doorbell stride, log2 - 12 */
#define ORNIC_CAP_STRIDE_MASK		0xf
#define ORNIC_CAP_DM_BAR		(1ull << 36) /* BAR4 holds device memory */
#define ORNIC_CAP_DB_PLAIN		(1ull << 37) /* doorbells in plain memory; later version */
#define ORNIC_TIMEOUT_UNIT_MS		100

/* CONTROL */
#define ORNIC_CTL_ENABLE		(1u << 0) /* 0 to 1: enable; 1 to 0: disable */
#define ORNIC_CTL_RESET			(1u << 1) /* self-clearing */
#define ORNIC_CTL_STRIDE_SHIFT		4	/* 4 bits: doorbell stride in use, log2 - 12 */
#define ORNIC_CTL_STRIDE_MASK		0xf
#define ORNIC_CTL_REASON_SHIFT		16	/* 16 bits: with RESET or with ENABLE cleared */
#define ORNIC_CTL_MBZ			0xff0cu	/* bits 2, 3 and 15:8 */

/* STATUS */
#define ORNIC_STS_READY			(1u << 0) /* accepts commands or, if DRAINING, uses DMA */
#define ORNIC_STS_FATAL			(1u << 1) /* failed, see SYNDROME */
#define ORNIC_STS_RESETTING		(1u << 2) /* reset in progress */
#define ORNIC_STS_DRAINING		(1u << 3) /* disable in progress */

enum ornic_reset_cause {
	ORNIC_CAUSE_POWER_ON	= 0,	/* never reset */
	ORNIC_CAUSE_FLR		= 1,	/* function-level reset */
	ORNIC_CAUSE_CONTROL	= 2,	/* CONTROL.RESET */
	ORNIC_CAUSE_RESTART	= 3,	/* device restarted without a reset of the function */
	ORNIC_CAUSE_BUS		= 4,	/* bus or machine reset */
};

/* Reasons that a host writes with RESET or with a disable (ORN-CTL-6). */
enum ornic_reset_reason {
	ORNIC_REASON_SHUTDOWN		= 1,
	ORNIC_REASON_ENABLE_TIMEOUT	= 2,
	ORNIC_REASON_ADMIN_TIMEOUT	= 3,
	ORNIC_REASON_HEARTBEAT		= 4, /* late, and the host cannot wait */
	ORNIC_REASON_FATAL		= 5,
	ORNIC_REASON_MALFORMED		= 6, /* impossible device output */
	ORNIC_REASON_USER		= 7,
	ORNIC_REASON_SUSPEND		= 8,
	ORNIC_REASON_INTERRUPT		= 9,
	ORNIC_REASON_EVENTS_LOST	= 10, /* an EQ discarded events */
};

/*
 * Status block: 64 bytes of host memory. The device writes them, so that the host need not
 * read the BAR.
 */
struct ornic_status_block {
	__le32 nonce;		/* host: NONCE before enable; device: NONCE + 1 once READY */
	__le32 status;		/* as STATUS, written before the event that reports a change */
	__le32 syndrome;	/* as SYNDROME */
	__le32 generation;	/* + 1 whenever an Identify page changed */
	__le64 heartbeat;	/* + 1 every HB_MS while READY */
	__le64 clock;		/* device clock at that heartbeat */
	__le64 wallclock;	/* wall clock of the device at that heartbeat in ns, 0 = none */
	__u8 res[24];
};
ORNIC_ASSERT_SIZE(struct ornic_status_block, 64);
ORNIC_ASSERT_OFFSET(struct ornic_status_block, heartbeat, 0x10);
ORNIC_ASSERT_OFFSET(struct ornic_status_block, wallclock, 0x20);

#endif
