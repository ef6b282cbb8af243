// SPDX-License-Identifier: GPL-2.0
/*
 * Event queues (clauses ORN-EQ): one per MSI-X vector. Queue 0 carries admin
 * and asynchronous events, the others completion events.
 *
 * The interrupt handler processes at most ORNIC_EQ_BUDGET events. If more are left,
 * the interrupt's thread processes them in batches of the same size, and sleeps after
 * each ring of events, so that no device can occupy a CPU forever. The handler leaves all
 * events to it until the queue was found empty.
 */
#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "ornic.h"

/*
 * Events processed per batch, with interrupts off. Each completion event calls a handler
 * that wakes a consumer, so a batch takes some ten microseconds.
 */
#define ORNIC_EQ_BUDGET		16

#define ORNIC_EQE_LOG	6	/* log2 bytes of an event */

static_assert(BIT(ORNIC_EQE_LOG) == sizeof(struct ornic_eqe));

static bool ornic_eq_completion(struct ornic_core *core, u32 cqn)
{
	struct ornic_comp *comp;

	if (!cqn || cqn > ORNIC_MAX_NUMBER)
		return false;
	comp = xa_load(&core->comps, cqn);
	if (comp)	/* NULL: the queue was destroyed before this event was read */
		comp->comp(comp);
	return true;
}

/* Check the number in an asynchronous event. Unknown types are accepted (ORN-GEN-7). */
static bool ornic_eq_possible(struct ornic_core *core, const struct ornic_eqe *eqe)
{
	u32 number = le32_to_cpu(eqe->number);

	switch (eqe->type) {
	case ORNIC_EV_CQ_ERR:
	case ORNIC_EV_QP_FATAL:
	case ORNIC_EV_QP_REQ_ERR:
	case ORNIC_EV_QP_ACCESS_ERR:
	case ORNIC_EV_COMM_EST:
	case ORNIC_EV_SQ_DRAINED:
	case ORNIC_EV_SRQ_ERR:
	case ORNIC_EV_SRQ_LIMIT:
	case ORNIC_EV_LAST_WQE:
		return number && number <= ORNIC_MAX_NUMBER;
	case ORNIC_EV_PORT_ACTIVE:
	case ORNIC_EV_PORT_ERR:
		return number && number <= core->odev.id.ports;
	default:
		return true;
	}
}

/* Process one event, a copy that the device cannot change. Return: false if malformed. */
static bool ornic_eq_dispatch(struct ornic_eq *eq, const struct ornic_eqe *eqe)
{
	struct ornic_core *core = eq->core;

	if (eqe->type == ORNIC_EV_COMPLETION)
		return eq->vector && ornic_eq_completion(core, le32_to_cpu(eqe->number));
	if (eq->vector)
		return false;

	switch (eqe->type) {
	case ORNIC_EV_ADMIN:
		return ornic_admin_event(core);
	case ORNIC_EV_DEVICE_FATAL:
		ornic_failed(core, le32_to_cpu(eqe->syndrome));
		return true;
	default:	/* unknown types reach subscribers, who ignore them */
		if (!ornic_eq_possible(core, eqe))
			return false;
		ornic_event_queue(core, eqe);
		return true;
	}
}

/* Somebody may wait for one of the lost events; DEVICE_FATAL ends all waits (ORN-EQ-21). */
static void ornic_eq_lost(struct ornic_eq *eq, u32 count)
{
	dev_err(ornic_dma_dev(eq->core), "event queue %u lost %u events\n", eq->number, count);
	ornic_fatal(eq->core, ORNIC_REASON_EVENTS_LOST);
}

static bool ornic_eq_ready(struct ornic_eq *eq)
{
	return ornic_entry_ready(ornic_ring_at(&eq->ring, eq->next), eq->next, eq->ring.log);
}

/* Return: number of events processed, at most budget; negative if one is malformed. */
static int ornic_eq_take(struct ornic_eq *eq, int budget)
{
	struct ornic_eqe eqe;
	int taken = 0;

	while (taken < budget && !ornic_dead(eq->core) && ornic_eq_ready(eq)) {
		memcpy(&eqe, ornic_ring_at(&eq->ring, eq->next), sizeof(eqe));
		eq->next++;
		taken++;
		if (!ornic_eq_dispatch(eq, &eqe))
			return -EIO;
		if (eqe.lost)
			ornic_eq_lost(eq, le32_to_cpu(eqe.lost));
	}
	return taken;
}

static void ornic_eq_rearm(struct ornic_eq *eq)
{
	ornic_rec_consumed(eq->ring.rec, eq->next);
	ornic_rec_arm(&eq->core->odev, eq->ring.rec, &eq->arm, eq->next, ORNIC_ARM_ANY,
		      ORNIC_DB_EQ_ARM, eq->number);
}

/*
 * Takes events until there are none after arming, or the budget is used up.
 * Return: true if there may be more.
 */
static bool ornic_eq_consume(struct ornic_eq *eq)
{
	int batch = BIT(eq->ring.log) / 4;	/* ORN-RNG-13 */
	int budget = ORNIC_EQ_BUDGET;
	int taken;

	lockdep_assert_held(&eq->lock);

	do {
		taken = ornic_eq_take(eq, min(batch, budget));
		if (taken < 0)
			ornic_device_malformed(&eq->core->odev, "event");
		if (ornic_dead(eq->core))
			return false;
		ornic_eq_rearm(eq);
		budget -= taken;
	} while (budget && ornic_eq_ready(eq));
	return !budget;
}

static irqreturn_t ornic_eq_interrupt(int irq, void *data)
{
	struct ornic_eq *eq = data;
	bool wake;

	spin_lock(&eq->lock);
	ornic_arm_event(&eq->arm);	/* one message per firing */
	/*
	 * The thread arms after each batch (ORN-RNG-34), and the device may fire at once. If the
	 * handler took those events, it would run again and again, and nothing else on this CPU.
	 */
	wake = !eq->threaded && ornic_eq_consume(eq);
	if (wake)
		eq->threaded = true;
	spin_unlock(&eq->lock);
	return wake ? IRQ_WAKE_THREAD : IRQ_HANDLED;
}

/* Return: true if there is an event or the queue has to be armed. */
static bool ornic_eq_pending(struct ornic_eq *eq)
{
	return ornic_eq_ready(eq) || eq->arm.type == ORNIC_ARM_NONE;
}

/*
 * Process events in batches until the queue is empty and armed. Stop after as many events as the
 * queue has entries: these include all events that were in it at the call.
 *
 * Return: true if there may be more.
 */
static bool ornic_eq_drain(struct ornic_eq *eq)
{
	int left = BIT(eq->ring.log);
	bool more = true;

	for (; more && left > 0; left -= ORNIC_EQ_BUDGET) {
		local_bh_disable();	/* completion handlers raise soft interrupts */
		spin_lock_irq(&eq->lock);
		more = ornic_eq_pending(eq) && ornic_eq_consume(eq);
		if (!more)
			eq->threaded = false;
		spin_unlock_irq(&eq->lock);
		local_bh_enable();
		cond_resched();
	}
	return more;
}

/*
 * The thread has a real-time priority, so only sleeping lets other tasks run. It sleeps as long as
 * it worked, so that they have half of the CPU, but at most 20 ms, so that no event waits longer.
 */
static irqreturn_t ornic_eq_thread(int irq, void *data)
{
	ktime_t begin = ktime_get();
	unsigned long us;

	while (ornic_eq_drain(data)) {
		us = min_t(s64, ktime_us_delta(ktime_get(), begin), 20 * USEC_PER_MSEC);
		usleep_range(us + 50, us + 100);
		begin = ktime_get();
	}
	return IRQ_HANDLED;
}

/* Process all events that were in the queue at the call. */
static void ornic_eq_clear(struct ornic_eq *eq)
{
	if (ornic_eq_drain(eq))
		irq_wake_thread(eq->irq, eq);	/* the device keeps writing: do not wait for it */
}

/**
 * ornic_eq_poll() - process the events of a queue without an interrupt
 * @core: device
 * @vector: vector of the queue
 *
 * An unread event means that its interrupt is late or lost. A new serial number
 * makes the next arm effective in both cases. Returns although a device keeps writing
 * events. Context: process.
 */
void ornic_eq_poll(struct ornic_core *core, u32 vector)
{
	struct ornic_eq *eq;

	if (!core->eqs || !core->eqs[vector].irq)
		return;
	eq = &core->eqs[vector];
	spin_lock_irq(&eq->lock);
	if (ornic_eq_ready(eq))
		ornic_arm_event(&eq->arm);
	spin_unlock_irq(&eq->lock);
	ornic_eq_clear(eq);
}

u32 ornic_comp_vector_eq(struct ornic_dev *odev, u32 vector)
{
	return odev->core->eqs[odev->core->comp_first + vector % odev->comp_vectors].number;
}
EXPORT_SYMBOL_GPL(ornic_comp_vector_eq);

/* ornic_netdev_eq() - return the number of the network interface's event queue. */
u32 ornic_netdev_eq(struct ornic_core *core)
{
	return core->eqs[ORNIC_NETDEV_VECTOR].number;
}

/* ornic_netdev_irq() - return the number of the network interface's interrupt. */
int ornic_netdev_irq(struct ornic_core *core)
{
	return core->eqs[ORNIC_NETDEV_VECTOR].irq;
}

int ornic_comp_add(struct ornic_dev *odev, u32 cqn, struct ornic_comp *comp)
{
	if (!cqn || cqn > ORNIC_MAX_NUMBER)
		return -EINVAL;
	return xa_insert(&odev->core->comps, cqn, comp, GFP_KERNEL);
}
EXPORT_SYMBOL_GPL(ornic_comp_add);

void ornic_comp_del(struct ornic_dev *odev, u32 cqn)
{
	struct ornic_core *core = odev->core;
	u32 i;

	xa_erase(&core->comps, cqn);
	/*
	 * Handlers run under the queue's lock. No unread event of this CQ may remain, because
	 * it would reach the next CQ with this number. The device writes no more (ORN-ADM-4).
	 */
	for (i = 1; core->eqs && i < core->vectors; i++)
		if (core->eqs[i].irq)
			ornic_eq_clear(&core->eqs[i]);
}
EXPORT_SYMBOL_GPL(ornic_comp_del);

static int ornic_eq_create(struct ornic_eq *eq, u64 classes)
{
	struct ornic_core *core = eq->core;
	struct ornic_eq_create_cmd in = {
		.log_entries = eq->ring.log,
		.vector = cpu_to_le16(eq->vector),
		.classes = cpu_to_le64(classes),
	};
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_EQ_CREATE,
		.in = &in,
		.in_len = sizeof(in),
	};
	int err;

	ornic_ring_describe(&eq->ring, &in.pages, &in.record);
	err = ornic_cmd_exec(&core->odev, &cmd);
	if (err)
		return err;
	if (cmd.result > ORNIC_MAX_NUMBER || !eq->vector != !cmd.result) {
		ornic_device_malformed(&core->odev, "number of an event queue");
		return -EIO;
	}
	eq->number = cmd.result;
	return 0;
}

/* Hint one CPU per completion vector, near the device; the administrator may change it. */
static void ornic_eq_spread(struct ornic_eq *eq)
{
	struct ornic_core *core = eq->core;
	int node = dev_to_node(ornic_dma_dev(core));
	u32 cpu = eq->vector - core->comp_first;

	if (!eq->vector)
		return;
	if (eq->vector < core->comp_first)	/* the network interface's own */
		cpu = num_online_cpus() - 1;
	irq_set_affinity_and_hint(eq->irq, cpumask_of(cpumask_local_spread(cpu, node)));
}

/* Name of the interrupt in /proc/interrupts. */
static void ornic_eq_name(struct ornic_eq *eq)
{
	const char *pci = pci_name(eq->core->pdev);

	if (!eq->vector)
		snprintf(eq->name, sizeof(eq->name), "ornic-async@%s", pci);
	else if (eq->vector < eq->core->comp_first)
		snprintf(eq->name, sizeof(eq->name), "ornic-eth@%s", pci);
	else
		snprintf(eq->name, sizeof(eq->name), "ornic-comp%u@%s",
			 eq->vector - eq->core->comp_first, pci);
}

/**
 * ornic_eq_start() - create the event queue of a vector, with its interrupt, and arm it
 * @core: device
 * @vector: MSI-X vector
 * @log_entries: log2 of the entries
 * @classes: ORNIC_EQ_* that it carries
 *
 * Return: 0 or negative errno.
 */
int ornic_eq_start(struct ornic_core *core, u32 vector, u8 log_entries, u64 classes)
{
	struct ornic_eq *eq = &core->eqs[vector];
	int irq = pci_irq_vector(core->pdev, vector);
	int err;

	err = ornic_ring_alloc(core, &eq->ring, log_entries, ORNIC_EQE_LOG);
	if (err)
		return err;
	eq->next = 0;
	eq->threaded = false;
	ornic_arm_init(&eq->arm);
	err = ornic_eq_create(eq, classes);
	if (err)
		return err;

	ornic_eq_name(eq);
	err = request_threaded_irq(irq, ornic_eq_interrupt, ornic_eq_thread, 0, eq->name, eq);
	if (err)
		return err;
	eq->irq = irq;
	ornic_eq_spread(eq);
	ornic_eq_clear(eq);	/* arms */
	return 0;
}

/* ornic_eqs_stop() - free all interrupts. The device is disabled or dead. */
void ornic_eqs_stop(struct ornic_core *core)
{
	u32 i;

	for (i = 0; i < core->vectors; i++) {
		if (!core->eqs[i].irq)
			continue;
		irq_update_affinity_hint(core->eqs[i].irq, NULL);	/* free_irq() demands it */
		free_irq(core->eqs[i].irq, &core->eqs[i]);
		core->eqs[i].irq = 0;
	}
}

/* ornic_eqs_alloc() - allocate core->vectors event queues. Return: 0 or -ENOMEM. */
int ornic_eqs_alloc(struct ornic_core *core)
{
	u32 i;

	core->eqs = kzalloc_objs(*core->eqs, core->vectors);
	if (!core->eqs)
		return -ENOMEM;
	for (i = 0; i < core->vectors; i++) {
		core->eqs[i].core = core;
		core->eqs[i].vector = i;
		spin_lock_init(&core->eqs[i].lock);
	}
	return 0;
}

/* ornic_eqs_free() - free the event queues after ornic_eqs_stop(). The device does no DMA. */
void ornic_eqs_free(struct ornic_core *core)
{
	u32 i;

	for (i = 0; i < core->vectors; i++)
		ornic_ring_free(core, &core->eqs[i].ring);
	kfree(core->eqs);
	core->eqs = NULL;
}
