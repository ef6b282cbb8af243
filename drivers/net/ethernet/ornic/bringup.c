// SPDX-License-Identifier: GPL-2.0
/*
 * Bring-up and teardown of a device. The specification defines the order of bring-up:
 * reset, enable, identify, event queue 0, features, admin events, completion
 * event queues, the key for all memory.
 */
#include <linux/bitops.h>
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include "cmd.h"
#include "ornic.h"

/* Features of queue pairs, shared receive queues, multicast, steering and RSS. */
#define ORNIC_QUEUE_FEATURES						\
	(ORNIC_FEATURE(RC) | ORNIC_FEATURE(UC) | ORNIC_FEATURE(UD) |	\
	 ORNIC_FEATURE(XRC) | ORNIC_FEATURE(RAW) | ORNIC_FEATURE(SRQ) |	\
	 ORNIC_FEATURE(SRQ_RESIZE) | ORNIC_FEATURE(MCAST) |		\
	 ORNIC_FEATURE(STEER) | ORNIC_FEATURE(RSS))

/* Features of memory regions, memory windows and memory operations. */
#define ORNIC_MEMORY_FEATURES						\
	(ORNIC_FEATURE(MW1) | ORNIC_FEATURE(MW2B) |			\
	 ORNIC_FEATURE(FAST_REG) | ORNIC_FEATURE(REREG) |		\
	 ORNIC_FEATURE(ATOMICS) | ORNIC_FEATURE(FLUSH_GLOBAL) |		\
	 ORNIC_FEATURE(FLUSH_PERSISTENT) |				\
	 ORNIC_FEATURE(ATOMIC_WRITE) | ORNIC_FEATURE(RELAXED_ORDERING) |	\
	 ORNIC_FEATURE(ZERO_BASED) | ORNIC_FEATURE(DM))

/* All features that ornic.ko and ornic_ib.ko use; a device may offer more. */
#define ORNIC_DRIVER_FEATURES						\
	(ORNIC_QUEUE_FEATURES | ORNIC_MEMORY_FEATURES |			\
	 ORNIC_FEATURE(TX_CSUM) | ORNIC_FEATURE(RX_CSUM) |		\
	 ORNIC_FEATURE(JUMBO) | ORNIC_FEATURE(TIMESTAMP) |		\
	 ORNIC_FEATURE(CQ_MODERATION) | ORNIC_FEATURE(CQ_IGNORE_OVERRUN) | \
	 ORNIC_FEATURE(CQ_RESIZE) | ORNIC_FEATURE(COUNTER_SETS) |	\
	 ORNIC_FEATURE(RATE_LIMIT))

/* Event queue 0 and one completion event queue; with a third, the network interface has its own. */
#define ORNIC_MIN_VECTORS	2
#define ORNIC_MAX_VECTORS	64

#define ORNIC_MAX_PORTS		16	/* Identify page 0 */

#define ORNIC_LOG_COMP_EQ	11

/* Most entries of event queue 0, as log2: 8 MiB. */
#define ORNIC_LOG_MAX_ASYNC_EQ	17
/* Its entries for events of the port and of the device, and of commands. */
#define ORNIC_OTHER_EVENTS	64

static u8 ornic_eq_log(struct ornic_core *core, u8 wanted)
{
	return clamp_t(u8, core->odev.id.log_max_eq, ORNIC_LOG_MIN_EQ, wanted);
}

/* Return: log2 of the events that all objects can cause before the host reads one (eq.rst). */
static u8 ornic_async_log(struct ornic_core *core)
{
	const struct ornic_identify_device *id = &core->odev.id;
	u64 events = 4ull * le32_to_cpu(id->max_qp) + 2ull * le32_to_cpu(id->max_srq) +
		     le32_to_cpu(id->max_cq) + core->dbpage_count + ORNIC_OTHER_EVENTS;

	return min_t(u8, fls64(events - 1), ORNIC_LOG_MAX_ASYNC_EQ);
}

/* Create event queue 0, and room for its events until subscribers get them. */
static int ornic_bringup_async_eq(struct ornic_core *core)
{
	u8 log = ornic_async_log(core);
	int err;

	err = ornic_events_open(core, log);
	if (err)
		return err;
	return ornic_eq_start(core, 0, ornic_eq_log(core, log), ORNIC_EQ_ASYNC | ORNIC_EQ_ADMIN);
}

static int ornic_bringup_vectors(struct ornic_core *core)
{
	u32 offered = readl(core->regs + ORNIC_REG_VECTORS);
	u32 most = min3(offered, num_online_cpus() + ORNIC_MIN_VECTORS, ORNIC_MAX_VECTORS);
	int got = -ENOSPC;

	if (most >= ORNIC_MIN_VECTORS)
		got = pci_alloc_irq_vectors(core->pdev, ORNIC_MIN_VECTORS, most, PCI_IRQ_MSIX);
	if (got < 0) {
		dev_err(ornic_dma_dev(core), "no MSI-X vectors (device has %u, %u needed): %d\n",
			offered, ORNIC_MIN_VECTORS, got);
		return got;
	}
	core->vectors = got;
	return 0;
}

/* Return: objects left of @most when the network interface has its own, at most INT_MAX. */
static u32 ornic_left(__le32 most, u32 own)
{
	u32 all = le32_to_cpu(most);

	return min_t(u32, all - min(all, own), INT_MAX);
}

static void ornic_bringup_share(struct ornic_dev *odev)
{
	const struct ornic_identify_device *id = &odev->id;

	odev->share.pd = ornic_left(id->max_pd, ORNIC_NETDEV_PDS);
	odev->share.cq = ornic_left(id->max_cq, ORNIC_NETDEV_CQS);
	odev->share.qp = ornic_left(id->max_qp, ORNIC_NETDEV_QPS);
	odev->share.raw_qp = ornic_left(id->max_raw_qp, ORNIC_NETDEV_QPS);
	odev->share.rules = ornic_left(id->max_rules, ORNIC_NETDEV_RULES);
}

/* Replace control characters, because the text, which may lack its NUL, is shown on terminals. */
static void ornic_clean_text(u8 *text, size_t size)
{
	for (; size && *text; text++, size--)
		if (!isascii(*text) || !isprint(*text))
			*text = '?';
}

static int ornic_bringup_identify(struct ornic_core *core)
{
	struct ornic_dev *odev = &core->odev;
	int err;

	err = ornic_cmd_identify(core, ORNIC_ID_DEVICE, 0, &odev->id, sizeof(odev->id));
	if (err)
		return err;
	err = ornic_cmd_identify(core, ORNIC_ID_PORT, ORNIC_PORT, &odev->port,
				 sizeof(odev->port));
	if (err)
		return err;

	ornic_bringup_share(odev);
	ornic_clean_text(odev->id.fw_version, sizeof(odev->id.fw_version));
	ornic_clean_text(odev->id.serial, sizeof(odev->id.serial));
	odev->features = le64_to_cpu(odev->id.features0) & ORNIC_DRIVER_FEATURES;
	if (!(odev->id.rss_hash_functions & BIT(ORNIC_RSS_TOEPLITZ)))
		odev->features &= ~ORNIC_FEATURE(RSS);	/* the only one that the driver offers */
	if (!odev->id.ports || odev->id.ports > ORNIC_MAX_PORTS) {
		dev_err(ornic_dma_dev(core), "device reports %u ports\n", odev->id.ports);
		return -EIO;
	}
	if (!ornic_has(odev, ORNIC_FEATURE(RAW)) ||
	    odev->port.link_layer != ORNIC_LINK_ETHERNET) {
		dev_err(ornic_dma_dev(core), "device has no Ethernet port, this driver needs one\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

static int ornic_bringup_comp_eqs(struct ornic_core *core)
{
	u32 max_eq = le32_to_cpu(core->odev.id.max_eq);
	u32 vector, eqs = min(core->vectors, max_eq);
	int err;

	if (eqs < ORNIC_MIN_VECTORS) {
		dev_err(ornic_dma_dev(core), "device has %u event queues, %u are needed\n",
			max_eq, ORNIC_MIN_VECTORS);
		return -EOPNOTSUPP;
	}
	core->comp_first = eqs > ORNIC_MIN_VECTORS ? ORNIC_NETDEV_VECTOR + 1 : ORNIC_NETDEV_VECTOR;
	for (vector = ORNIC_NETDEV_VECTOR; vector < eqs; vector++) {
		err = ornic_eq_start(core, vector, ornic_eq_log(core, ORNIC_LOG_COMP_EQ),
				     ORNIC_EQ_COMPLETION);
		if (err)
			return err;
	}
	core->odev.comp_vectors = eqs - core->comp_first;
	return 0;
}

static int ornic_bringup_commands(struct ornic_core *core)
{
	int err;

	ornic_admin_open(core);
	err = ornic_bringup_identify(core);
	if (err)
		return err;
	err = ornic_bringup_async_eq(core);
	if (err)
		return err;
	err = ornic_cmd_set_features(core, core->odev.features);
	if (err)
		return err;
	ornic_admin_use_events(core);
	err = ornic_cmd_host_info(core);
	if (err)
		return err;
	err = ornic_bringup_comp_eqs(core);
	if (err)
		return err;
	return ornic_cmd_key_create_all(core, &core->odev.dma_lkey);
}

/*
 * Ring no doorbell until the next bring-up. Under the lock, so that ornic_fatal() either has queued
 * its event, which the caller delivers by flush_work(), or has no effect. The next start of the
 * device would get the event otherwise.
 */
static void ornic_end_use(struct ornic_core *core)
{
	spin_lock_irq(&core->death_lock);
	WRITE_ONCE(core->dead, true);
	spin_unlock_irq(&core->death_lock);
}

/**
 * ornic_bringup() - bring a device up from any state
 * @core: device, its registers mapped
 *
 * Context: process, under state_lock. Return: 0, or an error after which the
 * device does no DMA and nothing is left allocated.
 */
int ornic_bringup(struct ornic_core *core)
{
	int err;

	lockdep_assert_held(&core->state_lock);

	err = ornic_ctrl_reset(core, core->death_reason);
	if (err)
		return err;
	err = ornic_ctrl_identify(core);
	if (err)
		return err;
	/* after the reset: DMA that it has not ended could still hit freed memory (ORN-CTL-25) */
	pci_set_master(core->pdev);
	err = ornic_bringup_vectors(core);
	if (err)
		return err;
	err = ornic_eqs_alloc(core);
	if (err)
		goto free_vectors;
	err = ornic_admin_alloc(core);
	if (err)
		goto free_eqs;

	core->death_reason = 0;
	WRITE_ONCE(core->restarted, false);
	WRITE_ONCE(core->dead, false);
	err = ornic_ctrl_enable(core);
	if (err)
		goto free_admin;
	err = ornic_bringup_commands(core);
	if (err)
		goto disable;
	core->up = true;
	return 0;

disable:
	ornic_teardown(core, ORNIC_REASON_FATAL);
	return err;
free_admin:
	ornic_end_use(core);
	flush_work(&core->events.work);
	ornic_admin_free(core);
free_eqs:
	ornic_eqs_free(core);
free_vectors:
	pci_free_irq_vectors(core->pdev);
	return err;
}

/**
 * ornic_teardown() - disable the device and free all memory of the bring-up
 * @core: device without users
 * @reason: enum ornic_reset_reason, reported to the device unless it is dead
 */
void ornic_teardown(struct ornic_core *core, u16 reason)
{
	lockdep_assert_held(&core->state_lock);

	core->up = false;
	if (ornic_dead(core))
		ornic_ctrl_reset(core, core->death_reason);
	else
		ornic_ctrl_disable(core, reason);
	ornic_end_use(core);
	ornic_admin_abort(core);	/* commands in flight no longer complete */
	ornic_eqs_stop(core);
	flush_work(&core->events.work);
	ornic_admin_free(core);
	ornic_eqs_free(core);
	pci_free_irq_vectors(core->pdev);
}
