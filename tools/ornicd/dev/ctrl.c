// SPDX-License-Identifier: GPL-2.0
/*
 * Registers: loads, stores, the actions of CONTROL, and the status block in host memory.
 */
#include "ctrl.h"

#include "function.h"

#include "../engine/fair.h"
#include "../log.h"
#include "../mem/gpa.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NS_PER_MS	1000000ull

static uint32_t ctrl_rw(const struct ctrl *c, enum ornic_reg reg)
{
	return c->rw[(reg - CTRL_RW_FIRST) / 4];
}

uint64_t ctrl_reg64(const struct ctrl *c, enum ornic_reg reg)
{
	return ctrl_rw(c, reg) | (uint64_t)ctrl_rw(c, reg + 4) << 32;
}

static unsigned int ctrl_log_asq(const struct ctrl *c)
{
	return ctrl_rw(c, ORNIC_REG_ADMIN_SIZE) & 0xf;
}

static unsigned int ctrl_log_acq(const struct ctrl *c)
{
	return ctrl_rw(c, ORNIC_REG_ADMIN_SIZE) >> 4 & 0xf;
}

static unsigned int ctrl_stride_log(const struct ctrl *c)
{
	return ORNIC_DB_MIN_STRIDE_LOG +
	       (c->control >> ORNIC_CTL_STRIDE_SHIFT & ORNIC_CTL_STRIDE_MASK);
}

static uint64_t ctrl_cap(void)
{
	return (uint64_t)FUNC_READY_TIMEOUT << ORNIC_CAP_READY_TIMEOUT_SHIFT |
	       (uint64_t)FUNC_ADMIN_TIMEOUT << ORNIC_CAP_ADMIN_TIMEOUT_SHIFT |
	       (uint64_t)FUNC_RESET_TIMEOUT << ORNIC_CAP_RESET_TIMEOUT_SHIFT |
	       (uint64_t)ORNIC_LOG_MAX_ADMIN << ORNIC_CAP_LOG_ADMIN_SHIFT | ORNIC_CAP_DM_BAR |
	       (uint64_t)(FUNC_MAX_STRIDE_LOG - ORNIC_DB_MIN_STRIDE_LOG) <<
	       ORNIC_CAP_MAX_STRIDE_SHIFT;
}

static uint32_t ctrl_status(const struct ctrl *c)
{
	switch (c->state) {
	case CTRL_READY:
		return ORNIC_STS_READY;
	case CTRL_DRAINING:
		return ORNIC_STS_DRAINING;
	case CTRL_RESETTING:
		return ORNIC_STS_RESETTING;
	case CTRL_DYING:
		return ORNIC_STS_READY | ORNIC_STS_FATAL;
	case CTRL_FATAL:
		return ORNIC_STS_FATAL;
	default:
		return 0;
	}
}

static uint32_t ctrl_read32(const struct ctrl *c, uint32_t off)
{
	if (off >= CTRL_RW_FIRST && off < CTRL_RW_END)
		return ctrl_rw(c, off);
	switch (off) {
	case ORNIC_REG_MAGIC:
		return ORNIC_MAGIC;
	case ORNIC_REG_VERSION:
		return ORNIC_VERSION;
	case ORNIC_REG_CAP:
		return ctrl_cap();
	case ORNIC_REG_CAP + 4:
		return ctrl_cap() >> 32;
	case ORNIC_REG_DB_OFFSET:
		return FUNC_DB_OFFSET;
	case ORNIC_REG_DB_BYTES:
		return FUNC_DB_BYTES;
	case ORNIC_REG_VECTORS:
		return FUNC_VECTORS;
	case ORNIC_REG_HB_MS:
		return FUNC_HB_MS;
	case ORNIC_REG_CONTROL:
		return c->control;
	case ORNIC_REG_STATUS:
		return ctrl_status(c);
	case ORNIC_REG_SYNDROME:
		return c->syndrome;
	case ORNIC_REG_RESET_CAUSE:
		return c->cause;
	case ORNIC_REG_CLOCK:
		return engine_clock();
	case ORNIC_REG_CLOCK + 4:
		return engine_clock() >> 32;
	default:
		return 0;
	}
}

uint64_t ctrl_read(struct function *f, uint32_t off, unsigned int len)
{
	const struct ctrl *c = &f->ctrl;

	if (len < 4)
		return UINT64_MAX;
	if (len == 4)
		return ctrl_read32(c, off);
	if (off == ORNIC_REG_CLOCK)
		return engine_clock();
	return ctrl_read32(c, off) | (uint64_t)ctrl_read32(c, off + 4) << 32;
}

static struct ornic_status_block *ctrl_block(struct function *f)
{
	return gpa_ptr(f->vfu.gpa, ctrl_reg64(&f->ctrl, ORNIC_REG_STATUS_ADDR),
		       sizeof(struct ornic_status_block), true);
}

static void store32(__le32 *to, uint32_t val)
{
	__atomic_store_n(to, htole32(val), __ATOMIC_RELAXED);
}

static void store64(__le64 *to, uint64_t val)
{
	__atomic_store_n(to, htole64(val), __ATOMIC_RELAXED);
}

void ctrl_status_write(struct function *f)
{
	struct ornic_status_block *b = ctrl_block(f);

	if (!b || !f->vfu.bus_master)
		return;
	store32(&b->syndrome, f->ctrl.syndrome);
	store32(&b->generation, f->generation);
	store32(&b->status, ctrl_status(&f->ctrl));
}

/* Return the time of a clock, ns. */
static uint64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static uint64_t wall_clock(void)
{
	return read_clock(CLOCK_REALTIME);
}

/* Return the time for which this thread has run, ns. */
static uint64_t cpu_clock(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/*
 * Report a beat that is more than a period late (ORN-CTL-18): after some periods without one the
 * driver takes the device for late. If the thread has hardly run, the host had no processor for it or
 * blocked it.
 */
static void ctrl_late(struct function *f)
{
	int64_t late = (int64_t)(f->dev.engine->clock() - f->ctrl.beat.expires) /
		       (int64_t)NS_PER_MS;

	if (late > FUNC_HB_MS)
		log_from(&f->vfu.log, LOG_WARN, "heartbeat is %" PRId64 " ms late: ornicd ran for %"
			 PRIu64 " of the last %" PRId64 " ms", late,
			 (cpu_clock() - f->ctrl.beat_cpu) / (uint64_t)NS_PER_MS, late + FUNC_HB_MS);
}

static void ctrl_beat(void *arg)
{
	struct function *f = arg;
	struct ctrl *c = &f->ctrl;
	struct ornic_status_block *b;

	if (c->state != CTRL_READY || !f->dev.running)
		return;
	ctrl_late(f);
	b = ctrl_block(f);
	c->beats++;
	if (b) {
		store64(&b->clock, engine_clock());
		store64(&b->wallclock, wall_clock());
		store64(&b->heartbeat, c->beats);
	}
	ctrl_resume(f);
}

void ctrl_resume(struct function *f)
{
	struct timer *t = &f->ctrl.beat;

	t->fn = ctrl_beat;
	t->arg = f;
	f->ctrl.beat_cpu = cpu_clock();
	timer_arm(&f->dev.timers, t, engine_clock() + FUNC_HB_MS * NS_PER_MS);
}

void ctrl_end_beat(struct function *f)
{
	struct timer *t = &f->ctrl.beat;

	/* The reset of a driver that gave up may come before the late beat. */
	if (f->dev.running && timer_armed(t))
		ctrl_late(f);
	timer_disarm(&f->dev.timers, t);
}

/* Return true if the values for the enable handshake are legal: alignment, sizes, reserved bits. */
static bool ctrl_params_ok(const struct ctrl *c, uint32_t control)
{
	static const enum ornic_reg addr[] = {
		ORNIC_REG_ASQ_ADDR, ORNIC_REG_ACQ_ADDR, ORNIC_REG_ASQ_REC,
		ORNIC_REG_ACQ_REC, ORNIC_REG_STATUS_ADDR,
	};
	unsigned int asq = ctrl_log_asq(c), acq = ctrl_log_acq(c);

	for (unsigned int i = 0; i < sizeof(addr) / sizeof(addr[0]); i++)
		if (ctrl_reg64(c, addr[i]) % ORNIC_ENTRY_BYTES)
			return false;
	return !(control & ORNIC_CTL_MBZ) && ctrl_stride_log(c) <= FUNC_MAX_STRIDE_LOG &&
	       !(ctrl_rw(c, ORNIC_REG_ADMIN_SIZE) & ~0xffu) &&
	       asq >= ORNIC_LOG_MIN_ADMIN && acq >= asq && acq <= ORNIC_LOG_MAX_ADMIN;
}

/* Return true if all of [@addr, @addr + @len) can be accessed. */
static bool ctrl_range_ok(struct function *f, uint64_t addr, uint64_t len, bool write)
{
	void *ptr;

	if (addr + len < addr)
		return false;
	while (len) {
		uint64_t n = gpa_span(f->vfu.gpa, addr, len, write, &ptr);

		if (!n)
			return false;
		addr += n;
		len -= n;
	}
	return true;
}

/* Return true if admin rings, their records and the status block can be accessed. */
static bool ctrl_memory_ok(struct function *f)
{
	const struct ctrl *c = &f->ctrl;

	return ctrl_range_ok(f, ctrl_reg64(c, ORNIC_REG_ASQ_ADDR),
			     (uint64_t)ORNIC_ENTRY_BYTES << ctrl_log_asq(c), false) &&
	       ctrl_range_ok(f, ctrl_reg64(c, ORNIC_REG_ACQ_ADDR),
			     (uint64_t)ORNIC_ENTRY_BYTES << ctrl_log_acq(c), true) &&
	       ctrl_range_ok(f, ctrl_reg64(c, ORNIC_REG_ASQ_REC), ORNIC_ENTRY_BYTES, true) &&
	       ctrl_range_ok(f, ctrl_reg64(c, ORNIC_REG_ACQ_REC), ORNIC_ENTRY_BYTES, true) &&
	       ctrl_range_ok(f, ctrl_reg64(c, ORNIC_REG_STATUS_ADDR), ORNIC_ENTRY_BYTES, true);
}

/* Return true if the VMM mapped memory without a descriptor, which the daemon cannot access. */
static bool ctrl_unshared(const struct gpa *gpa)
{
	for (uint32_t i = 0; i < gpa->n; i++)
		if (!gpa->entry[i].host)
			return true;
	return false;
}

static void ctrl_not_shared(struct function *f)
{
	log_from(&f->vfu.log, LOG_ERR,
		 "guest memory is not shared: use -object memory-backend-memfd,share=on");
}

bool ctrl_memory_lost(const struct function *f)
{
	return f->ctrl.state == CTRL_READY && gpa_lost(f->vfu.gpa);
}

void ctrl_tell_lost(struct function *f)
{
	size_t at;
	const char *why = gpa_loss(f->vfu.gpa, &at);

	log_from(&f->vfu.log, LOG_ERR,
		 "a page of the virtual machine's memory is lost, at offset %#zx of its file: %s; restart the virtual machine",
		 at, why);
}

/*
 * Check the enable handshake. Read the nonce that the host wrote to the status block: a VMM without
 * share=on gives the daemon a private copy of guest memory, in which the nonce is missing.
 * Return: 0, or the syndrome (ORN-CTL-2, ORN-CTL-3).
 */
static uint32_t ctrl_enable_check(struct function *f, uint32_t control)
{
	struct ornic_status_block *b;
	uint32_t nonce;

	if (!ctrl_params_ok(&f->ctrl, control))
		return ORNIC_SYN_ENABLE_PARAM;
	if (!f->vfu.bus_master)
		return ORNIC_SYN_HOST_UNREACHABLE;
	if (gpa_lost(f->vfu.gpa)) {
		ctrl_tell_lost(f);
		return ORNIC_SYN_DMA;
	}
	if (!ctrl_memory_ok(f)) {
		if (!ctrl_unshared(f->vfu.gpa))
			return ORNIC_SYN_HOST_UNREACHABLE;
		ctrl_not_shared(f);
		return ORNIC_SYN_HOST_MEMORY;
	}
	b = ctrl_block(f);
	nonce = b ? le32toh(__atomic_load_n(&b->nonce, __ATOMIC_ACQUIRE)) : 0;
	if (!b || nonce != ctrl_rw(&f->ctrl, ORNIC_REG_NONCE)) {
		ctrl_not_shared(f);
		return ORNIC_SYN_HOST_MEMORY;
	}
	return 0;
}

static void ctrl_enable(struct function *f, uint32_t control)
{
	struct ctrl *c = &f->ctrl;
	struct ornic_status_block *b;

	c->control = control & (ORNIC_CTL_ENABLE | ORNIC_CTL_STRIDE_MASK << ORNIC_CTL_STRIDE_SHIFT);
	c->syndrome = ctrl_enable_check(f, control);
	if (c->syndrome) {
		c->state = CTRL_FATAL;
		log_from(&f->vfu.log, LOG_WARN, "rejected the driver's enable, syndrome %#x",
			 c->syndrome);
		return;
	}
	f->dev.gpa = f->vfu.gpa;
	c->beats = 0;
	admin_start(&f->admin, f, ctrl_log_asq(c), ctrl_log_acq(c));
	c->state = CTRL_READY;
	function_run(f);
	b = ctrl_block(f);
	store64(&b->heartbeat, 0);
	store64(&b->clock, engine_clock());
	store64(&b->wallclock, wall_clock());
	ctrl_status_write(f);
	store32(&b->nonce, ctrl_rw(c, ORNIC_REG_NONCE) + 1);
	log_from(&f->vfu.log, LOG_INFO, "enabled");
}

/* Store the host's reason of the last RESET or disable in RESET_CAUSE (ORN-CTL-30). */
static void ctrl_reason(struct ctrl *c, uint32_t reason)
{
	c->cause = (c->cause & 0xffff) | reason << 16;
}

void ctrl_disable(struct function *f, uint32_t reason)
{
	struct ctrl *c = &f->ctrl;

	ctrl_reason(c, reason);
	if (c->state == CTRL_READY) {
		c->state = CTRL_DRAINING;
		function_stop(f);
		log_from(&f->vfu.log, LOG_INFO, "disabled, reason %u", reason);
	}
	c->control &= ~ORNIC_CTL_ENABLE;
}

void ctrl_reset(struct function *f, enum ornic_reset_cause cause, uint32_t reason)
{
	struct ctrl *c = &f->ctrl;

	c->state = CTRL_RESETTING;
	function_stop(f);
	if (cause != ORNIC_CAUSE_CONTROL)
		function_port_reset(f);
	memset(c->rw, 0, sizeof(c->rw));
	c->control = 0;
	c->syndrome = 0;
	c->cause = cause;
	ctrl_reason(c, reason);
	log_from(&f->vfu.log, LOG_DEBUG, "reset, cause %u reason %u", cause, reason);
}

void ctrl_stopped(struct function *f)
{
	struct ctrl *c = &f->ctrl;

	if (c->state == CTRL_RESETTING)
		memset(f->dev.cnt, 0, sizeof(f->dev.cnt));
	if (c->state == CTRL_RESETTING || c->state == CTRL_DRAINING)
		c->state = CTRL_DISABLED;
}

static void ctrl_control(struct function *f, uint32_t val)
{
	struct ctrl *c = &f->ctrl;

	if (val & ORNIC_CTL_RESET)
		ctrl_reset(f, ORNIC_CAUSE_CONTROL, val >> ORNIC_CTL_REASON_SHIFT);
	else if (c->state == CTRL_FATAL)
		return;
	else if (!(val & ORNIC_CTL_ENABLE) && c->control & ORNIC_CTL_ENABLE)
		ctrl_disable(f, val >> ORNIC_CTL_REASON_SHIFT);
	else if (val & ORNIC_CTL_ENABLE && c->state == CTRL_DISABLED)
		ctrl_enable(f, val);
}

static void ctrl_write32(struct function *f, uint32_t off, uint32_t val)
{
	struct ctrl *c = &f->ctrl;

	if (off == ORNIC_REG_CONTROL) {
		ctrl_control(f, val);
		fair_charge(&f->dev);
	} else if (off >= CTRL_RW_FIRST && off < CTRL_RW_END &&
		   !(c->control & ORNIC_CTL_ENABLE)) {
		c->rw[(off - CTRL_RW_FIRST) / 4] = val;
	}
}

void ctrl_write(struct function *f, uint32_t off, unsigned int len, uint64_t val)
{
	if (len < 4)
		return;
	ctrl_write32(f, off, val);
	if (len == 8)
		ctrl_write32(f, off + 4, val >> 32);
}

void ctrl_fatal(struct function *f, uint32_t syndrome)
{
	struct ctrl *c = &f->ctrl;
	struct eq *eq;

	if (c->state != CTRL_READY)
		return;
	log_from(&f->vfu.log, LOG_ERR, "fatal, syndrome %#x: the driver must reset the device",
		 syndrome);
	c->syndrome = syndrome;
	c->state = CTRL_DYING;
	ctrl_status_write(f);
	eq = table_get(&f->dev.eqs, 0);
	if (eq && f->vfu.bus_master) {
		f->dev.running = true;
		device_event(&f->dev, ORNIC_EV_DEVICE_FATAL, 0, 0, syndrome, 0, 0);
		eq_look(eq);
	}
	function_stop(f);
	c->state = CTRL_FATAL;
}
