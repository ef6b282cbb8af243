// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous events: the interrupt handler of event queue 0 queues them, and a
 * work item calls the subscribers, which may sleep.
 *
 * There is one work item on an ordered workqueue, so subscribers get one event at
 * a time and in the order in which the device wrote them. DEVICE_FATAL, which the
 * driver generates, takes the place of events that are queued.
 */
#include <linux/bits.h>
#include <linux/export.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>

#include "ornic.h"

/* Return: true if somebody may wait for this event. Subscribers ignore unknown types. */
static bool ornic_event_awaited(const struct ornic_eqe *eqe)
{
	return eqe->type >= ORNIC_EV_CQ_ERR && eqe->type <= ORNIC_EV_LAST_WQE;
}

/**
 * ornic_event_queue() - queue an event for the subscribers
 * @core: device
 * @eqe: the event, a copy
 *
 * The FIFO has room for the events of as many objects as the device can have, up to a limit
 * (bringup.c). It fills up only while a subscriber is stuck, or if tens of thousands of objects
 * fail at once. Then the device is declared dead: DEVICE_FATAL ends all waits. No event follows it.
 *
 * Context: any.
 */
void ornic_event_queue(struct ornic_core *core, const struct ornic_eqe *eqe)
{
	struct ornic_events *events = &core->events;
	unsigned long flags;
	bool room = true;

	spin_lock_irqsave(&events->lock, flags);
	if (!events->closed) {
		room = kfifo_put(&events->fifo, *eqe);
		events->queued += room;
	}
	spin_unlock_irqrestore(&events->lock, flags);
	if (!room && ornic_event_awaited(eqe)) {
		dev_err_ratelimited(ornic_dma_dev(core), "event dropped, subscribers too slow\n");
		ornic_fatal(core, ORNIC_REASON_EVENTS_LOST);
	}
	queue_work(events->wq, &events->work);
}

/*
 * ornic_event_queue_fatal() - deliver DEVICE_FATAL instead of the queued events. Context: any.
 *
 * It ends all waits for them. Slow subscribers would delay it otherwise, and with it the recovery
 * of the device, by as long as a full FIFO takes.
 */
void ornic_event_queue_fatal(struct ornic_core *core)
{
	struct ornic_events *events = &core->events;
	unsigned long flags;

	spin_lock_irqsave(&events->lock, flags);
	events->fatal = true;
	events->closed = true;
	spin_unlock_irqrestore(&events->lock, flags);
	queue_work(events->wq, &events->work);
}

/* Return: false if there is none left. */
static bool ornic_event_next(struct ornic_events *events, struct ornic_eqe *eqe)
{
	bool found = true;

	spin_lock_irq(&events->lock);
	if (events->fatal) {
		events->taken += kfifo_len(&events->fifo);
		kfifo_reset(&events->fifo);
		memset(eqe, 0, sizeof(*eqe));
		eqe->type = ORNIC_EV_DEVICE_FATAL;
		events->fatal = false;
	} else {
		found = kfifo_get(&events->fifo, eqe);
		events->taken += found;
	}
	spin_unlock_irq(&events->lock);
	return found;
}

/*
 * Deliver the events that are queued, or DEVICE_FATAL. Each event queues the work item, so those
 * that arrive meanwhile are for its next run, and flush_work() does not wait for them.
 */
static void ornic_event_work(struct work_struct *work)
{
	struct ornic_events *events = container_of(work, struct ornic_events, work);
	struct ornic_eqe eqe;
	unsigned int left;

	spin_lock_irq(&events->lock);
	left = events->fatal ? 1 : kfifo_len(&events->fifo);
	spin_unlock_irq(&events->lock);
	while (left-- && ornic_event_next(events, &eqe)) {
		blocking_notifier_call_chain(&events->chain, eqe.type, &eqe);
		cond_resched();
	}
}

int ornic_event_register(struct ornic_dev *odev, struct notifier_block *nb)
{
	return blocking_notifier_chain_register(&odev->core->events.chain, nb);
}
EXPORT_SYMBOL_GPL(ornic_event_register);

void ornic_event_unregister(struct ornic_dev *odev, struct notifier_block *nb)
{
	blocking_notifier_chain_unregister(&odev->core->events.chain, nb);
}
EXPORT_SYMBOL_GPL(ornic_event_unregister);

void ornic_event_flush(struct ornic_dev *odev)
{
	ornic_eq_poll(odev->core, 0);
	flush_work(&odev->core->events.work);
}
EXPORT_SYMBOL_GPL(ornic_event_flush);

static u64 ornic_event_read(struct ornic_events *events, const u64 *count)
{
	u64 value;

	spin_lock_irq(&events->lock);
	value = *count;
	spin_unlock_irq(&events->lock);
	return value;
}

u64 ornic_event_last(struct ornic_dev *odev)
{
	struct ornic_events *events = &odev->core->events;

	ornic_eq_poll(odev->core, 0);
	return ornic_event_read(events, &events->queued);
}
EXPORT_SYMBOL_GPL(ornic_event_last);

u64 ornic_event_current(struct ornic_dev *odev)
{
	struct ornic_events *events = &odev->core->events;

	return ornic_event_read(events, &events->taken);
}
EXPORT_SYMBOL_GPL(ornic_event_current);

/**
 * ornic_events_open() - accept events again, in a FIFO of this size
 * @core: device that has no event queue, so that the FIFO is empty
 * @log: log2 of the number of events, at least 1
 *
 * Return: 0 or -ENOMEM.
 */
int ornic_events_open(struct ornic_core *core, u8 log)
{
	struct ornic_events *events = &core->events;
	size_t size = sizeof(struct ornic_eqe) << log;
	void *buffer, *old;
	int err;

	spin_lock_irq(&events->lock);
	events->closed = false;
	spin_unlock_irq(&events->lock);
	if (kfifo_size(&events->fifo) == BIT(log))
		return 0;
	buffer = kvmalloc(size, GFP_KERNEL);	/* fragmented memory has no block of this size */
	if (!buffer)
		return -ENOMEM;
	spin_lock_irq(&events->lock);
	old = events->buffer;
	events->buffer = buffer;
	err = kfifo_init(&events->fifo, buffer, size);
	spin_unlock_irq(&events->lock);
	kvfree(old);
	return err;
}

int ornic_events_init(struct ornic_core *core)
{
	struct ornic_events *events = &core->events;

	spin_lock_init(&events->lock);
	BLOCKING_INIT_NOTIFIER_HEAD(&events->chain);
	INIT_WORK(&events->work, ornic_event_work);
	events->wq = alloc_ordered_workqueue("ornic-events-%s", WQ_MEM_RECLAIM,
					     pci_name(core->pdev));
	return events->wq ? 0 : -ENOMEM;
}

void ornic_events_cleanup(struct ornic_core *core)
{
	destroy_workqueue(core->events.wq);
	kvfree(core->events.buffer);
}
