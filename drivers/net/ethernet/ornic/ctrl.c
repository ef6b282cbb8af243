// SPDX-License-Identifier: GPL-2.0
/*
 * Registers: recognise the device, enable, disable, reset (clauses ORN-CTL).
 *
 * The driver reads registers only during bring-up, teardown and reset and when it
 * suspects a failure, because a read costs a round trip to the device. All ones
 * means that the function has left the bus (ORN-PCI-7), which ends every waiting
 * loop.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/random.h>

#include "ornic.h"

#define ORNIC_ALL_ONES		0xffffffffu

/* Bounds of the interval between two checks of the heartbeat, in ms. */
#define ORNIC_MIN_HB_MS		100u
#define ORNIC_MAX_HB_MS		3600000u

static u32 ornic_cap_timeout_ms(u64 cap, unsigned int shift)
{
	u32 units = cap >> shift & ORNIC_CAP_TIMEOUT_MASK;

	return max(units, 1u) * ORNIC_TIMEOUT_UNIT_MS;
}

/* Doorbell pages must be at least a page of this host apart (ORN-DB-8). Return: log2 or errno. */
static int ornic_ctrl_stride(struct ornic_core *core, u64 cap)
{
	u32 least = cap >> ORNIC_CAP_MIN_STRIDE_SHIFT & ORNIC_CAP_STRIDE_MASK;
	u32 most = cap >> ORNIC_CAP_MAX_STRIDE_SHIFT & ORNIC_CAP_STRIDE_MASK;
	u32 stride = max_t(u32, PAGE_SHIFT, least + ORNIC_DB_MIN_STRIDE_LOG);

	if (stride > most + ORNIC_DB_MIN_STRIDE_LOG) {
		dev_err(ornic_dma_dev(core),
			"doorbell pages are at most %u bytes apart, this kernel's pages are %lu\n",
			1u << (most + ORNIC_DB_MIN_STRIDE_LOG), PAGE_SIZE);
		return -EOPNOTSUPP;
	}
	return stride;
}

/*
 * Read where the doorbell pages are. A reset must not change that, because processes may have
 * mapped pages; a device update could.
 */
static int ornic_ctrl_doorbells(struct ornic_core *core, u64 cap)
{
	u64 bar = pci_resource_len(core->pdev, ORNIC_BAR_REGS);
	u32 bytes = readl(core->regs + ORNIC_REG_DB_BYTES);
	u32 offset = readl(core->regs + ORNIC_REG_DB_OFFSET);
	int stride = ornic_ctrl_stride(core, cap);

	if (stride < 0)
		return stride;
	if (offset < ORNIC_REG_BYTES || !IS_ALIGNED(offset, 1u << stride) ||
	    offset > bar || bytes > bar - offset || bytes < 1u << stride) {
		dev_err(ornic_dma_dev(core),
			"doorbell area of %u bytes at %#x does not fit BAR 0 of %llu bytes\n",
			bytes, offset, bar);
		return -EIO;
	}
	if (!core->dbpage_count) {
		core->db_offset = offset;
		core->stride_log = stride;
		core->dbpage_count = bytes >> stride;
	}
	if (offset == core->db_offset && stride == core->stride_log &&
	    bytes >> stride == core->dbpage_count)
		return 0;
	dev_err(ornic_dma_dev(core),
		"doorbell area changed from %u pages of %u bytes at %#x to %u of %u at %#x: reload the driver\n",
		core->dbpage_count, 1u << core->stride_log, core->db_offset,
		bytes >> stride, 1u << stride, offset);
	return -EIO;
}

static int ornic_ctrl_recognise(struct ornic_core *core)
{
	u32 magic = readl(core->regs + ORNIC_REG_MAGIC);
	u32 version = readl(core->regs + ORNIC_REG_VERSION);

	if (magic != ORNIC_MAGIC) {
		if (magic == ORNIC_ALL_ONES)
			WRITE_ONCE(core->gone, true);
		dev_err(ornic_dma_dev(core), "no ornic device: magic %#010x\n", magic);
		return -ENODEV;
	}
	if (version >> 16 != ORNIC_VERSION_MAJOR) {
		dev_err(ornic_dma_dev(core), "interface version %u.%u, this driver knows %u.x\n",
			version >> 16, version & 0xffff, ORNIC_VERSION_MAJOR);
		return -EOPNOTSUPP;
	}
	return 0;
}

/**
 * ornic_ctrl_identify() - recognise the device and read its capabilities
 * @core: device that is not enabled, its registers mapped
 *
 * Called at probe and after each reset, because a device update may change what it reads.
 *
 * Return: 0, or negative errno if this is no device for this driver.
 */
int ornic_ctrl_identify(struct ornic_core *core)
{
	u64 cap;
	int err;

	err = ornic_ctrl_recognise(core);
	if (err)
		return err;
	cap = readq(core->regs + ORNIC_REG_CAP);
	core->ready_ms = ornic_cap_timeout_ms(cap, ORNIC_CAP_READY_TIMEOUT_SHIFT);
	core->admin_ms = ornic_cap_timeout_ms(cap, ORNIC_CAP_ADMIN_TIMEOUT_SHIFT);
	core->reset_ms = ornic_cap_timeout_ms(cap, ORNIC_CAP_RESET_TIMEOUT_SHIFT);
	core->hb_ms = readl(core->regs + ORNIC_REG_HB_MS);
	if (core->hb_ms)
		core->hb_ms = clamp(core->hb_ms, ORNIC_MIN_HB_MS, ORNIC_MAX_HB_MS);
	if ((cap >> ORNIC_CAP_LOG_ADMIN_SHIFT & ORNIC_CAP_LOG_ADMIN_MASK) < ORNIC_ADMIN_LOG) {
		dev_err(ornic_dma_dev(core), "admin queue of less than %lu entries\n",
			ORNIC_ADMIN_SLOTS);
		return -EOPNOTSUPP;
	}
	return ornic_ctrl_doorbells(core, cap);
}

/**
 * ornic_ctrl_map() - map the registers, identify the device, map its doorbells
 * @core: device, BAR 0 requested
 *
 * Return: 0, or negative errno, for example if this is no device for this driver.
 */
int ornic_ctrl_map(struct ornic_core *core)
{
	int err;

	if (pci_resource_len(core->pdev, ORNIC_BAR_REGS) < ORNIC_REG_BYTES)
		return -ENODEV;
	core->regs = pci_iomap_range(core->pdev, ORNIC_BAR_REGS, 0, ORNIC_REG_BYTES);
	if (!core->regs)
		return -ENOMEM;

	err = ornic_ctrl_identify(core);
	if (err)
		goto unmap;
	core->db = pci_iomap_range(core->pdev, ORNIC_BAR_REGS, core->db_offset, PAGE_SIZE);
	if (core->db)
		return 0;
	err = -ENOMEM;

unmap:
	pci_iounmap(core->pdev, core->regs);
	return err;
}

void ornic_ctrl_unmap(struct ornic_core *core)
{
	pci_iounmap(core->pdev, core->db);
	pci_iounmap(core->pdev, core->regs);
}

/**
 * ornic_ctrl_gone() - check whether the function has left the bus
 * @core: device
 *
 * Reads a register, but not of a late device, and after it read as all ones not before an
 * administrator asks for a recovery (ORN-PCI-7).
 *
 * Return: true if the function is gone or its PCI channel is offline.
 */
bool ornic_ctrl_gone(struct ornic_core *core)
{
	if (pci_channel_offline(core->pdev))
		return true;
	if (ornic_late(core))
		return false;
	if (!READ_ONCE(core->gone) && readl(core->regs + ORNIC_REG_MAGIC) == ORNIC_ALL_ONES)
		WRITE_ONCE(core->gone, true);
	return READ_ONCE(core->gone);
}

/* Wait until all bits of busy are clear and, unless want is 0, one bit of want is set. */
static int ornic_ctrl_wait(struct ornic_core *core, u32 busy, u32 want, u32 ms, u32 *status)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);
	bool last;

	do {
		last = time_after(jiffies, end);
		*status = readl(core->regs + ORNIC_REG_STATUS);
		if (*status == ORNIC_ALL_ONES && ornic_ctrl_gone(core))
			return -ENODEV;
		if (!(*status & busy) && (!want || *status & want))
			return 0;
		usleep_range(1000, 2000);
	} while (!last);
	return -ETIMEDOUT;
}

/**
 * ornic_ctrl_reset() - reset the device from any state to DISABLED
 * @core: device
 * @reason: enum ornic_reset_reason, 0 for none
 *
 * On return the device does no DMA, even after an error.
 *
 * Return: 0, -ENODEV if the function is gone, -ETIMEDOUT.
 */
int ornic_ctrl_reset(struct ornic_core *core, u16 reason)
{
	u32 status;
	int err;

	if (ornic_ctrl_gone(core)) {
		pci_clear_master(core->pdev);	/* the bus may come back */
		return -ENODEV;
	}
	writel(ORNIC_CTL_RESET | (u32)reason << ORNIC_CTL_REASON_SHIFT,
	       core->regs + ORNIC_REG_CONTROL);
	err = ornic_ctrl_wait(core, ORNIC_STS_READY | ORNIC_STS_FATAL | ORNIC_STS_RESETTING |
			      ORNIC_STS_DRAINING, 0, core->reset_ms, &status);
	if (!err)
		return 0;
	pci_clear_master(core->pdev);
	if (err == -ETIMEDOUT)
		dev_err(ornic_dma_dev(core), "reset did not end within %u ms, status %#x\n",
			core->reset_ms, status);
	return err;
}

/**
 * ornic_ctrl_disable() - disable the device in order: it destroys all objects, ends DMA
 * @core: device
 * @reason: enum ornic_reset_reason
 *
 * On return the device does no DMA, even if its bus has failed.
 */
void ornic_ctrl_disable(struct ornic_core *core, u16 reason)
{
	u32 status;
	int err;

	if (ornic_ctrl_gone(core)) {
		pci_clear_master(core->pdev);
		return;
	}
	writel((u32)reason << ORNIC_CTL_REASON_SHIFT, core->regs + ORNIC_REG_CONTROL);
	err = ornic_ctrl_wait(core, ORNIC_STS_READY | ORNIC_STS_RESETTING | ORNIC_STS_DRAINING,
			      0, core->reset_ms, &status);
	if (err)
		ornic_ctrl_reset(core, reason);
}

static void ornic_ctrl_program(struct ornic_core *core, u32 nonce)
{
	struct ornic_admin *admin = &core->admin;
	dma_addr_t base = admin->dma;

	writeq(base + ORNIC_ADMIN_SQ_OFFSET, core->regs + ORNIC_REG_ASQ_ADDR);
	writeq(base + ORNIC_ADMIN_CQ_OFFSET, core->regs + ORNIC_REG_ACQ_ADDR);
	writeq(base + ORNIC_ADMIN_SQ_REC_OFFSET, core->regs + ORNIC_REG_ASQ_REC);
	writeq(base + ORNIC_ADMIN_CQ_REC_OFFSET, core->regs + ORNIC_REG_ACQ_REC);
	writeq(core->status_dma, core->regs + ORNIC_REG_STATUS_ADDR);
	writel(ORNIC_ADMIN_LOG | ORNIC_ADMIN_LOG << 4, core->regs + ORNIC_REG_ADMIN_SIZE);
	writel(nonce, core->regs + ORNIC_REG_NONCE);
}

/* Check that the device saw the nonce in the status block: it reaches host memory (ORN-CTL-3). */
static int ornic_ctrl_check_nonce(struct ornic_core *core, u32 nonce)
{
	u32 answer = le32_to_cpu(READ_ONCE(core->status->nonce));

	if (answer == nonce + 1)
		return 0;
	dev_err(ornic_dma_dev(core),
		"device does not share this machine's memory (nonce %#x answered by %#x): give a virtual machine shared memory\n",
		nonce, answer);
	return -EIO;
}

/**
 * ornic_ctrl_enable() - hand the admin queue to a device that is DISABLED
 * @core: device; rings and records are initialised
 *
 * Return: 0, or an error after which the device has been reset.
 */
int ornic_ctrl_enable(struct ornic_core *core)
{
	u32 control = ORNIC_CTL_ENABLE |
		      (u32)(core->stride_log - ORNIC_DB_MIN_STRIDE_LOG) << ORNIC_CTL_STRIDE_SHIFT;
	u16 reason = ORNIC_REASON_ENABLE_TIMEOUT;
	u32 nonce = get_random_u32();
	u32 status, syndrome;
	int err;

	ornic_ctrl_program(core, nonce);
	memset(core->status, 0, sizeof(*core->status));
	WRITE_ONCE(core->status->nonce, cpu_to_le32(nonce));
	mb();	/* rings, records and nonce before the device may look (ORN-CTL-1) */
	writel(control, core->regs + ORNIC_REG_CONTROL);

	err = ornic_ctrl_wait(core, 0, ORNIC_STS_READY | ORNIC_STS_FATAL, core->ready_ms,
			      &status);
	if (err) {
		dev_err(ornic_dma_dev(core), "not ready within %u ms\n", core->ready_ms);
	} else if (status & ORNIC_STS_FATAL) {
		syndrome = readl(core->regs + ORNIC_REG_SYNDROME);
		dev_err(ornic_dma_dev(core), "device rejected the start, syndrome %#010x%s\n",
			syndrome, syndrome == ORNIC_SYN_HOST_MEMORY ?
			", it does not share this machine's memory" : "");
		reason = ORNIC_REASON_FATAL;
		err = -EIO;
	} else {
		err = ornic_ctrl_check_nonce(core, nonce);
		reason = ORNIC_REASON_MALFORMED;
	}
	if (err)
		ornic_ctrl_reset(core, reason);
	return err;
}
