// SPDX-License-Identifier: GPL-2.0
/*
 * The admin rings: fetch a command, execute it, write its completion.
 *
 * Commands run one after the other, each to its end; a long one takes several iterations of
 * the engine (progress.h). While the completion ring is full, no command is fetched; a timer
 * looks at the ring again, because the host may lag (ORN-RNG-13).
 */
#include "admin.h"

#include "command.h"
#include "function.h"

#include "../mem/fetch.h"
#include "../mem/gpa.h"

#include <endian.h>
#include <string.h>

/* Time between looks at a full completion ring */
#define ADMIN_RETRY_NS	200000ull

/* Return the doorbell record at @addr, or NULL after the function failed. */
static struct ornic_rec *admin_record(struct admin *a, uint64_t addr)
{
	struct ornic_rec *rec = gpa_ptr(a->f->vfu.gpa, addr, sizeof(*rec), true);

	if (!rec)
		function_fail(a->f, ORNIC_SYN_ADMIN_RING);
	return rec;
}

/*
 * Leave the submission ring's notify word as it is: function_run() then rings all doorbells, so
 * admin_run() reads the ring and admin_sleep() writes the word. The completion ring needs no
 * doorbells, because its arm word is read after every batch.
 */
void admin_start(struct admin *a, struct function *f, uint8_t log_asq, uint8_t log_acq)
{
	const struct ctrl *c = &f->ctrl;
	struct ornic_rec *rec;

	*a = (struct admin){
		.f = f,
		.asq = ctrl_reg64(c, ORNIC_REG_ASQ_ADDR),
		.acq = ctrl_reg64(c, ORNIC_REG_ACQ_ADDR),
		.asq_rec = ctrl_reg64(c, ORNIC_REG_ASQ_REC),
		.acq_rec = ctrl_reg64(c, ORNIC_REG_ACQ_REC),
		.log_asq = log_asq,
		.log_acq = log_acq,
	};
	rec = admin_record(a, a->acq_rec);
	if (rec)
		ring_quiet(rec, 0);
}

void admin_stop(struct admin *a)
{
	if (!a->f)
		return;
	timer_disarm(&a->f->dev.timers, &a->retry);
	progress_end(a->f);
}

static void admin_retry(void *arg)
{
	struct admin *a = arg;

	a->pending = true;
}

/* Return true if the completion ring has room; otherwise arm the timer to look again. */
static bool admin_has_room(struct admin *a)
{
	uint32_t entries = 1u << a->log_acq;
	struct ornic_rec *rec = admin_record(a, a->acq_rec);
	uint32_t used;

	if (!rec)
		return false;
	used = a->prod - ring_host_index(rec);
	if (used > entries)
		function_fail(a->f, ORNIC_SYN_ADMIN_RING);
	if (used < entries)
		return true;
	if (used == entries) {
		a->retry.fn = admin_retry;
		a->retry.arg = a;
		timer_arm(&a->f->dev.timers, &a->retry,
			  a->f->dev.engine->clock() + ADMIN_RETRY_NS);
	}
	return false;
}

/* Return the number of commands in the ring, -1 after the function failed. */
static int admin_waiting(struct admin *a)
{
	struct ornic_rec *rec = admin_record(a, a->asq_rec);
	uint32_t n;

	if (!rec)
		return -1;
	n = ring_host_index(rec) - a->cons;
	if (n > 1u << a->log_asq) {
		function_fail(a->f, ORNIC_SYN_ADMIN_RING);
		return -1;
	}
	return n;
}

static void *admin_slot(struct admin *a, uint64_t ring, uint8_t log, uint32_t index, bool write)
{
	uint64_t slot = index & ((1u << log) - 1);
	void *ptr = gpa_ptr(a->f->vfu.gpa, ring + slot * ORNIC_ENTRY_BYTES, ORNIC_ENTRY_BYTES,
			    write);

	if (!ptr)
		function_fail(a->f, ORNIC_SYN_ADMIN_RING);
	return ptr;
}

/* Copy the next command from the ring. Return: false after the function failed. */
static bool admin_fetch(struct admin *a)
{
	const void *from = admin_slot(a, a->asq, a->log_asq, a->cons, false);

	if (!from)
		return false;
	fetch(&a->f->progress.cmd, from, sizeof(a->f->progress.cmd));
	a->cons++;
	return true;
}

/* Execute the next command, or continue a long one. Return: false after the function failed. */
static bool admin_step(struct admin *a)
{
	void *to = admin_slot(a, a->acq, a->log_acq, a->prod, true);
	struct ornic_admin_cpl cpl = { 0 };

	if (!to || (!a->f->progress.active && !admin_fetch(a)))
		return false;
	if (!command_execute(a->f, &cpl))
		return true;
	cpl.phase = ring_phase(a->prod, a->log_acq);
	ring_write_entry(to, &cpl);
	a->prod++;
	return true;
}

/*
 * Read the arm word; write an event if it is armed and there is a new entry (ORN-ADM-6). Without
 * EQ 0 there is nowhere to write it: leave the arm word for later.
 */
static void admin_look(struct admin *a)
{
	struct ornic_rec *rec = admin_record(a, a->acq_rec);

	if (!rec || !table_get(&a->f->dev.eqs, 0))
		return;
	if (!ring_arm_due(&a->arm, ring_arm_load(rec), a->prod, a->log_acq))
		return;
	ring_arm_fired(&a->arm);
	device_event(&a->f->dev, ORNIC_EV_ADMIN, 0, 0, 0, a->arm.seen, 0);
}

/* Fall asleep on the empty submission ring, unless the host just added a command (ORN-RNG-6). */
static void admin_sleep(struct admin *a)
{
	struct ornic_rec *rec = admin_record(a, a->asq_rec);

	a->pending = rec && !ring_sleep(rec, a->cons);
}

void admin_run(struct admin *a)
{
	struct progress *p = &a->f->progress;
	uint32_t budget = ADMIN_BATCH;
	int n;

	p->work = PROGRESS_WORK;
	while ((n = admin_waiting(a)) >= 0 && (n || p->active) && budget-- && p->work) {
		if (!admin_has_room(a)) {
			a->pending = false;
			break;
		}
		if (!admin_step(a))
			return;
	}
	if (!n && !p->active)
		admin_sleep(a);
	if (n >= 0)
		admin_look(a);
}

void admin_doorbell(struct admin *a, uint32_t ring)
{
	if (ring == ORNIC_DB_ASQ)
		a->pending = true;
	else
		admin_look(a);
}
