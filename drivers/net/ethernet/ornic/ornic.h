/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private structures of ornic.ko.
 *
 * Life of a device: ornic_bringup() turns a silent PCI function into one that
 * takes commands and sends events. The network interface and the auxiliary
 * device need both. ornic_fatal() may be called in any context: it ends DMA of
 * the device, fails its commands and queues the recovery, which tears
 * everything down and brings it up again (reset.c).
 *
 * Lock order, outer first:
 *   device_lock()            PCI function: probe, remove, PCI reset, power management
 *   devl_lock()              devlink instance: reload, health reporters
 *   ornic_core.state_lock    bring-up, teardown, recovery
 *   rtnl                     network interface
 *   ornic_netdev.link_lock   serialises changes of the carrier with open and stop
 *   ornic_eq.lock            one event queue; completion handlers run inside
 *   ornic_core.death_lock    the one transition to dead
 *   ornic_admin.lock         admin rings
 *   ornic_events.lock        events not yet delivered to subscribers
 */
#ifndef ORNIC_H
#define ORNIC_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/interrupt.h>
#include <linux/kfifo.h>
#include <linux/linkmode.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/devlink.h>

#include <linux/ornic/core.h>
#include <linux/ornic/ring.h>

#include <linux/ornic/hw/regs.h>
#include "admin.h"

#define ORNIC_DRV_NAME		"ornic"

/* The only port that this version drives. */
#define ORNIC_PORT		1

/* Vector of the network interface. */
#define ORNIC_NETDEV_VECTOR	1

/* Objects of the network interface. New queues are created while the old ones exist. */
#define ORNIC_NETDEV_PDS	1
#define ORNIC_NETDEV_CQS	4
#define ORNIC_NETDEV_QPS	2
#define ORNIC_NETDEV_RULES	3

struct ornic_netdev;

/**
 * struct ornic_ring - a ring in pieces of memory, and its record behind it
 * @cpu: pieces
 * @rec: record
 * @log: log2 entries
 * @stride: log2 bytes of an entry
 * @shift: log2 bytes of a piece; a record that begins a piece has a page to itself
 * @pieces: number of pieces
 * @dma: DMA addresses of the pieces
 * @list: page list for the device, NULL if the ring is one page
 * @list_dma: DMA address of @list
 */
struct ornic_ring {
	void **cpu;
	struct ornic_rec *rec;
	u8 log;
	u8 stride;
	u8 shift;
	u32 pieces;
	dma_addr_t *dma;
	__le64 *list;
	dma_addr_t list_dma;
};

/* Return: the entry of a free-running index. */
static inline void *ornic_ring_at(const struct ornic_ring *ring, u32 index)
{
	size_t at = (size_t)(index & (BIT(ring->log) - 1)) << ring->stride;

	return ring->cpu[at >> ring->shift] + (at & (BIT(ring->shift) - 1));
}

/**
 * struct ornic_eq - an event queue and its interrupt
 * @core: device
 * @number: number of the queue in the device
 * @vector: MSI-X vector, also the index in ornic_core.eqs
 * @irq: Linux interrupt number
 * @ring: entries and record
 * @lock: protects @next, @arm and @threaded; held while completion handlers run
 * @next: consumer index
 * @arm: arming state
 * @threaded: the interrupt's thread takes the events, not the interrupt handler
 * @name: name of the interrupt in /proc/interrupts
 */
struct ornic_eq {
	struct ornic_core *core;
	u32 number;
	u32 vector;
	int irq;
	struct ornic_ring ring;
	spinlock_t lock;	/* consuming and arming */
	u32 next;
	struct ornic_arm arm;
	bool threaded;
	char name[32];
};

/**
 * struct ornic_events - asynchronous events between interrupt and subscribers
 * @lock: protects the members up to @closed
 * @fifo: events read from the device and not yet delivered
 * @buffer: memory of @fifo
 * @queued: number of events that were put into @fifo
 * @taken: number of events that were taken out of @fifo, delivered or not
 * @fatal: deliver DEVICE_FATAL instead of the events in @fifo
 * @closed: drop further events: DEVICE_FATAL is the last one of a device
 * @wq: ordered workqueue of @work
 * @work: calls @chain
 * @chain: subscribers
 */
struct ornic_events {
	spinlock_t lock;	/* members up to closed */
	DECLARE_KFIFO_PTR(fifo, struct ornic_eqe);
	void *buffer;
	u64 queued;
	u64 taken;
	bool fatal;
	bool closed;
	struct workqueue_struct *wq;
	struct work_struct work;
	struct blocking_notifier_head chain;
};

/**
 * struct ornic_core - one PCI function
 * @odev: the part that auxiliary drivers see
 * @pdev: PCI function
 * @regs: registers
 * @db: doorbell page 0
 * @ready_ms: time limit for enable, in ms
 * @admin_ms: time limit for a command, in ms
 * @reset_ms: time limit for a reset, in ms
 * @hb_ms: heartbeat period in ms, 0 = none
 * @db_offset: offset of the first doorbell page in BAR 0, in bytes
 * @stride_log: log2 of the distance between doorbell pages, in bytes
 * @vectors: event queues in use, one per vector
 * @comp_first: vector of completion vector 0; event queue 0 and the interface have those before
 * @status: status block, in the memory of the admin rings
 * @status_dma: DMA address of @status
 * @admin: admin queue
 * @eqs: event queues by vector
 * @comps: maps the number of a completion queue to its struct ornic_comp
 * @events: asynchronous events
 * @dbpages: bitmap of the doorbell pages in use
 * @dbpage_count: number of doorbell pages that fit into the doorbell area
 * @dbpage_lock: protects @dbpages
 * @death_lock: makes the transition to dead happen once; protects @recoverable, @closing and, for
 *	those who hold no other lock, @nd
 * @gone: the function has left the bus; access no register
 * @dead: the device accepts no commands and does no DMA
 * @death_reason: enum ornic_reset_reason, for the reset that follows
 * @state_lock: serialises bring-up, teardown and recovery
 * @up: bring-up succeeded and no teardown followed
 * @last_death: enum ornic_reset_reason of the last death, 0 = none; for the administrator
 * @restarted: the device reported syndrome RESTARTED since the bring-up: do not count its recovery
 * @recoverable: fatal errors and transmit timeouts are reported to devlink, which recovers
 * @held: the function is being reset, suspended or shut down; the device must not be started
 * @closing: the driver is being removed; @recoverable stays false
 * @rdma: create the auxiliary device; follows the devlink parameter enable_rdma at a reload
 * @reset_work: reports the death of the device, which starts the recovery
 * @tx_work: reports a stuck send queue
 * @tx_failed: the last recovery of the send queue failed
 * @last_reset: time of the last recovery, in jiffies
 * @quick_resets: recoveries in close succession
 * @health_work: checks the heartbeat
 * @last_beat: heartbeat counter at the last check
 * @beat_time: time when a check last found that the counter had changed, in jiffies
 * @missed_beats: checks since the heartbeat counter changed
 * @late_beats: missed beats that make a device late; follows the devlink parameter at a start
 * @watched: @health_work runs: a device without a heartbeat is late
 * @late: the device misses its heartbeat; read no register, do not access configuration space
 * @late_shown: the state of @fw_reporter says that the device is late
 * @late_work: sets the state of @fw_reporter
 * @hurry: number of starts, teardowns and recoveries that wait 10 s for a late device
 * @adev: auxiliary device or NULL
 * @nd: network interface
 * @devlink: devlink instance of the device
 * @devlink_port: devlink port of the network interface
 * @port_added: @devlink_port is registered
 * @fw_reporter: devlink health reporter of the device
 * @tx_reporter: devlink health reporter of the send queue
 */
struct ornic_core {
	struct ornic_dev odev;
	struct pci_dev *pdev;

	void __iomem *regs;
	void __iomem *db;
	u32 ready_ms;
	u32 admin_ms;
	u32 reset_ms;
	u32 hb_ms;
	u32 db_offset;
	u8 stride_log;
	u32 vectors;
	u32 comp_first;
	struct ornic_status_block *status;
	dma_addr_t status_dma;

	struct ornic_admin admin;
	struct ornic_eq *eqs;
	struct xarray comps;
	struct ornic_events events;

	unsigned long *dbpages;
	u32 dbpage_count;
	spinlock_t dbpage_lock;	/* bitmap of doorbell pages */

	spinlock_t death_lock;	/* the transition to dead */
	bool gone;
	bool dead;
	u16 death_reason;
	struct mutex state_lock;	/* bring-up, teardown, recovery */
	bool up;
	u16 last_death;
	bool restarted;
	bool recoverable;
	bool held;
	bool closing;
	bool rdma;
	struct work_struct reset_work;
	struct work_struct tx_work;
	bool tx_failed;
	unsigned long last_reset;
	unsigned int quick_resets;
	struct delayed_work health_work;
	u64 last_beat;
	unsigned long beat_time;
	unsigned int missed_beats;
	unsigned int late_beats;
	bool watched;
	bool late;
	bool late_shown;
	struct work_struct late_work;
	atomic_t hurry;

	struct ornic_adev *adev;
	struct ornic_netdev *nd;
	struct devlink *devlink;
	struct devlink_port devlink_port;
	bool port_added;
	struct devlink_health_reporter *fw_reporter;
	struct devlink_health_reporter *tx_reporter;
};

static inline struct device *ornic_dma_dev(struct ornic_core *core)
{
	return &core->pdev->dev;
}

static inline bool ornic_dead(const struct ornic_core *core)
{
	return smp_load_acquire(&core->dead);	/* pairs with ornic_fatal() */
}

/* Return: true if a device without a heartbeat is late; otherwise it has failed. */
static inline bool ornic_watched(const struct ornic_core *core)
{
	return READ_ONCE(core->watched);
}

static inline bool ornic_late(const struct ornic_core *core)
{
	return READ_ONCE(core->late) && !ornic_dead(core);
}

/* ctrl.c */
int ornic_ctrl_map(struct ornic_core *core);
void ornic_ctrl_unmap(struct ornic_core *core);
int ornic_ctrl_identify(struct ornic_core *core);
int ornic_ctrl_reset(struct ornic_core *core, u16 reason);
int ornic_ctrl_enable(struct ornic_core *core);
void ornic_ctrl_disable(struct ornic_core *core, u16 reason);
bool ornic_ctrl_gone(struct ornic_core *core);

/* bringup.c */
int ornic_bringup(struct ornic_core *core);
void ornic_teardown(struct ornic_core *core, u16 reason);

/* dbpage.c */
int ornic_dbpages_init(struct ornic_core *core);
void ornic_dbpages_cleanup(struct ornic_core *core);

/* rings.c */
int ornic_ring_alloc(struct ornic_core *core, struct ornic_ring *ring, u8 log, u8 stride);
void ornic_ring_free(struct ornic_core *core, struct ornic_ring *ring);
void ornic_ring_describe(const struct ornic_ring *ring, struct ornic_pages *pages, __le64 *record);

/* eq.c */
int ornic_eqs_alloc(struct ornic_core *core);
void ornic_eqs_free(struct ornic_core *core);
int ornic_eq_start(struct ornic_core *core, u32 vector, u8 log_entries, u64 classes);
void ornic_eqs_stop(struct ornic_core *core);
void ornic_eq_poll(struct ornic_core *core, u32 vector);
u32 ornic_netdev_eq(struct ornic_core *core);
int ornic_netdev_irq(struct ornic_core *core);

/* event.c */
int ornic_events_init(struct ornic_core *core);
void ornic_events_cleanup(struct ornic_core *core);
int ornic_events_open(struct ornic_core *core, u8 log);
void ornic_event_queue(struct ornic_core *core, const struct ornic_eqe *eqe);
void ornic_event_queue_fatal(struct ornic_core *core);

/* auxdev.c */
int ornic_auxdev_add(struct ornic_core *core);
void ornic_auxdev_del(struct ornic_core *core);

/* devlink.c */
int ornic_devlink_init(struct ornic_core *core);
void ornic_devlink_cleanup(struct ornic_core *core);
void ornic_devlink_register(struct ornic_core *core);
void ornic_devlink_unregister(struct ornic_core *core);

/* reporter.c */
int ornic_reporters_create(struct ornic_core *core);
void ornic_reporters_destroy(struct ornic_core *core);
void ornic_reporters_update(struct ornic_core *core);
void ornic_reporters_update_locked(struct ornic_core *core);
void ornic_report_death(struct ornic_core *core);
void ornic_report_tx(struct ornic_core *core);
void ornic_report_late(struct ornic_core *core);

/* death.c */
const char *ornic_reason_text(u16 reason);
void ornic_fatal(struct ornic_core *core, u16 reason);
void ornic_failed(struct ornic_core *core, u32 syndrome);
void ornic_tx_stuck(struct ornic_core *core);

/* health.c */
void ornic_health_init(struct ornic_core *core);
void ornic_health_start(struct ornic_core *core);
void ornic_health_settle(struct ornic_core *core);
void ornic_health_stop(struct ornic_core *core);

/* pci.c */
int ornic_start(struct ornic_core *core);
void ornic_stop(struct ornic_core *core, u16 reason);

/* reset.c */
void ornic_reset_init(struct ornic_core *core);
void ornic_quiesce(struct ornic_core *core, u16 reason);
int ornic_revive(struct ornic_core *core);
int ornic_revive_retry(struct ornic_core *core);
int ornic_recover(struct ornic_core *core, bool automatic);
void ornic_recover_begin(struct ornic_core *core);
void ornic_recover_forbid(struct ornic_core *core);
void ornic_recover_end(struct ornic_core *core);

#endif
