// SPDX-License-Identifier: GPL-2.0
/*
 * dev/ctrl.c, dev/function.c: registers, the enable handshake, and every way to stop a function.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"
#include "lib/printed.h"

#include "dev/doorbell.h"
#include "engine/link.h"
#include "engine/qp.h"
#include "log.h"
#include "mem/gpa.h"

#include <endian.h>
#include <errno.h>
#include <ornic/dm.h>
#include <ornic/identify.h>
#include <ornic/pd.h>
#include <ornic/port.h>
#include <ornic/srq.h>
#include <ornic/steer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const struct ornic_status_block *block(struct inproc *p)
{
	return dma_at(&p->host.dma, p->host.status);
}

static uint64_t load(struct inproc *p, uint64_t off, unsigned int len)
{
	return p->host.bus.read(p, off, len);
}

static void store(struct inproc *p, uint64_t off, unsigned int len, uint64_t val)
{
	p->host.bus.write(p, off, len, val);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* ORN-CTL-19, ORN-CTL-20, ORN-CTL-34, ORN-CTL-35, ORN-CTL-36, ORN-DB-10, ORN-PCI-18 */
static void test_constants(void **state)
{
	struct inproc *p = *state;
	uint64_t cap = load(p, ORNIC_REG_CAP, 8);

	assert_int_equal(load(p, ORNIC_REG_MAGIC, 4), ORNIC_MAGIC);
	assert_int_equal(load(p, ORNIC_REG_VERSION, 4), ORNIC_VERSION);
	assert_int_equal(load(p, ORNIC_REG_MAGIC, 8),
			 ORNIC_MAGIC | (uint64_t)ORNIC_VERSION << 32);
	assert_int_equal(load(p, ORNIC_REG_CAP, 4), cap & 0xffffffff);
	assert_int_equal(load(p, ORNIC_REG_CAP + 4, 4), cap >> 32);
	/* timeouts in 100 ms, as the guide says */
	assert_int_equal(cap, 20ull << ORNIC_CAP_READY_TIMEOUT_SHIFT |
			 100ull << ORNIC_CAP_ADMIN_TIMEOUT_SHIFT |
			 20ull << ORNIC_CAP_RESET_TIMEOUT_SHIFT |
			 12ull << ORNIC_CAP_LOG_ADMIN_SHIFT | ORNIC_CAP_DM_BAR |
			 4ull << ORNIC_CAP_MAX_STRIDE_SHIFT);
	assert_int_equal(load(p, ORNIC_REG_HB_MS, 4), 1000);
	assert_int_equal(load(p, ORNIC_REG_DB_OFFSET, 4) + load(p, ORNIC_REG_DB_BYTES, 4),
			 p->f->vfu.bar[0].size);
	assert_int_equal(load(p, ORNIC_REG_VECTORS, 4), p->f->vfu.nvectors);
	assert_int_equal(p->f->vfu.nvectors, 64);
	assert_int_equal(load(p, ORNIC_REG_DB_OFFSET, 4), 4 << 20);
	assert_int_equal(p->f->vfu.bar[0].size, 8 << 20);
	assert_int_equal(load(p, ORNIC_REG_DB_OFFSET, 4) % (1u << FUNC_MAX_STRIDE_LOG), 0);
	assert_true(load(p, ORNIC_REG_CLOCK, 8) < load(p, ORNIC_REG_CLOCK, 8));
	for (uint64_t off = ORNIC_REG_END; off < ORNIC_REG_BYTES; off += 8)
		assert_int_equal(load(p, off, 8), 0);
	assert_int_equal(load(p, FUNC_DB_OFFSET, 8), 0);
	assert_int_equal(load(p, ORNIC_REG_BYTES, 8), 0);
}

/* The function as the VMM sees it */
static void test_description(void **state)
{
	struct inproc *p = *state;
	const struct vfu_func *v = &p->f->vfu;

	assert_string_equal(v->log.name, "test");
	assert_int_equal(v->vendor, 0x4f52);
	assert_int_equal(v->device, 0x4e49);
	assert_int_equal(v->subvendor, 0x4f52);
	assert_int_equal(v->subdevice, ORNIC_TP_ROCEV2);
	assert_int_equal(v->class_code, 0x020000);
	assert_int_equal(v->revision, 1);
	for (unsigned int i = 0; i < VFU_NUM_BARS; i++) {
		bool regs = i == ORNIC_BAR_REGS, dm = i == ORNIC_BAR_DM;

		assert_int_equal(v->bar[i].size, regs ? 8 << 20 : dm ? 256 << 10 : 0);
		assert_int_equal(v->bar[i].flags, regs || dm ? VFU_BAR_64 | VFU_BAR_PREFETCH : 0);
	}
}

/* ORN-PCI-1, ORN-PCI-10 */
static void test_widths(void **state)
{
	struct inproc *p = *state;

	assert_int_equal(load(p, ORNIC_REG_MAGIC, 1), 0xff);
	assert_int_equal(load(p, ORNIC_REG_MAGIC, 2), 0xffff);
	assert_int_equal(load(p, ORNIC_REG_MAGIC, 3), 0xffffff);
	assert_int_equal(load(p, ORNIC_REG_BYTES, 1), 0xff);
	assert_int_equal(load(p, FUNC_DB_OFFSET, 2), 0xffff);
	assert_int_equal(load(p, FUNC_DB_OFFSET, 4), 0);
	store(p, ORNIC_REG_NONCE, 2, 1);
	store(p, ORNIC_REG_NONCE, 1, 1);
	store(p, ORNIC_REG_NONCE, 3, 1);
	assert_int_equal(load(p, ORNIC_REG_NONCE, 4), 0);
	store(p, ORNIC_REG_ASQ_ADDR, 4, 0x11223344);
	store(p, ORNIC_REG_ASQ_ADDR + 4, 4, 0x55667788);
	assert_int_equal(load(p, ORNIC_REG_ASQ_ADDR, 8), 0x5566778811223344);
	store(p, ORNIC_REG_ADMIN_SIZE, 8, 0x1234567800000044);
	assert_int_equal(load(p, ORNIC_REG_ADMIN_SIZE, 4), 0x44);
	assert_int_equal(load(p, ORNIC_REG_NONCE, 4), 0x12345678);
	store(p, ORNIC_REG_MAGIC, 8, 0);
	store(p, ORNIC_REG_SYNDROME, 4, 1);
	assert_int_equal(load(p, ORNIC_REG_MAGIC, 4), ORNIC_MAGIC);
	assert_int_equal(load(p, ORNIC_REG_SYNDROME, 4), 0);
}

/* Only BAR0 has registers, and a BAR that does not exist has nothing. */
static void test_bars(void **state)
{
	struct inproc *p = *state;
	struct vfu_func *v = &p->f->vfu;

	v->ops->bar_write(v, ORNIC_BAR_DM, ORNIC_REG_NONCE, 4, 1);
	v->ops->bar_write(v, ORNIC_BAR_DM + 1, ORNIC_REG_NONCE, 4, 1);
	assert_int_equal(load(p, ORNIC_REG_NONCE, 4), 0);
	assert_int_equal(v->ops->bar_read(v, ORNIC_BAR_DM, ORNIC_REG_NONCE, 4), 1);
	assert_int_equal(v->ops->bar_read(v, ORNIC_BAR_DM + 1, ORNIC_REG_NONCE, 4), UINT64_MAX);
}

/* Each half of the clock's register holds its half of the clock. */
static void test_clock_halves(void **state)
{
	struct inproc *p = *state;
	uint64_t start = engine_clock(), low, high;

	low = load(p, ORNIC_REG_CLOCK, 4);
	high = load(p, ORNIC_REG_CLOCK + 4, 4);
	assert_in_range(high, start >> 32, engine_clock() >> 32);
	assert_in_range((uint32_t)(low - start), 0, engine_clock() - start);
}

/* ORN-CTL-11, ORN-CTL-13, ORN-CTL-27, ORN-CTL-30, ORN-RNG-7 */
static void test_enable(void **state)
{
	struct inproc *p = *state;
	const struct ornic_rec *acq = dma_at(&p->host.dma, p->host.acq_rec);

	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(le32toh(acq->notify), ORNIC_NOTIFY_INDEX);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_READY);
	assert_int_equal(le32toh(block(p)->status), ORNIC_STS_READY);
	host_set64(&p->host, ORNIC_REG_ASQ_ADDR, 0);
	assert_int_equal(host_reg64(&p->host, ORNIC_REG_ASQ_ADDR), p->host.asq);
	host_disable(&p->host, ORNIC_REASON_USER);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), 0);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_RESET_CAUSE), ORNIC_REASON_USER << 16);
	assert_int_equal(host_reg64(&p->host, ORNIC_REG_ASQ_ADDR), p->host.asq);
	assert_int_equal(host_enable(&p->host), 0);
	host_reset(&p->host, ORNIC_REASON_FATAL);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_RESET_CAUSE),
			 ORNIC_CAUSE_CONTROL | ORNIC_REASON_FATAL << 16);
	assert_int_equal(host_reg64(&p->host, ORNIC_REG_ASQ_ADDR), 0);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_CONTROL), 0);
	/* A disable changes the host's reason only. */
	assert_int_equal(host_enable(&p->host), 0);
	host_disable(&p->host, ORNIC_REASON_USER);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_RESET_CAUSE),
			 ORNIC_CAUSE_CONTROL | ORNIC_REASON_USER << 16);
}

/* ENABLE of a device that is enabled, and a disable of one that is not, do nothing. */
static void test_control_again(void **state)
{
	struct inproc *p = *state;

	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_READY);
	assert_int_equal(p->f->dev.eqs.used, 2);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0), ORNIC_ST_OK);
	host_disable(&p->host, ORNIC_REASON_USER);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_CONTROL), 0);
	host_disable(&p->host, ORNIC_REASON_SHUTDOWN);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), 0);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_RESET_CAUSE), ORNIC_REASON_USER << 16);
	host_set32(&p->host, ORNIC_REG_NONCE, 0x1234);		/* writable again */
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_NONCE), 0x1234);
}

/* ORN-CTL-20: stores behind the registers change nothing, also while others can be written. */
static void test_reserved_stores(void **state)
{
	struct inproc *p = *state;
	struct function *before = malloc(sizeof(*before));

	assert_non_null(before);
	memcpy(before, p->f, sizeof(*before));
	for (uint64_t off = ORNIC_REG_END; off < ORNIC_REG_BYTES; off += 4) {
		store(p, off, 4, UINT32_MAX);
		assert_int_equal(load(p, off, 4), 0);
	}
	assert_memory_equal(before, p->f, sizeof(*before));
	free(before);
}

/* ORN-CTL-18: each beat writes the three values; none comes without bus mastering. */
static void test_heartbeat(void **state)
{
	struct inproc *p = *state;
	struct ornic_status_block *b = dma_at(&p->host.dma, p->host.status);
	uint64_t start = engine_clock(), before = clock_ns(CLOCK_REALTIME);

	assert_int_equal(host_enable(&p->host), 0);
	assert_in_range(le64toh(b->wallclock), before, clock_ns(CLOCK_REALTIME));
	assert_in_range(le64toh(b->clock), start, engine_clock());
	p->engine.clock = inproc_later;
	for (unsigned int beat = 1; beat < 4; beat++) {
		b->wallclock = 0;
		b->clock = 0;
		inproc_turn(p);
		assert_int_equal(le64toh(b->heartbeat), beat);
		assert_in_range(le64toh(b->wallclock), before, clock_ns(CLOCK_REALTIME));
		assert_in_range(le64toh(b->clock), start, engine_clock());
	}
	inproc_bus_master(p, false);
	for (int i = 0; i < 3; i++)
		inproc_turn(p);
	assert_int_equal(le64toh(b->heartbeat), 3);
	inproc_bus_master(p, true);
	inproc_turn(p);
	assert_int_equal(le64toh(b->heartbeat), 4);
	host_disable(&p->host, ORNIC_REASON_USER);
	inproc_turn(p);
	assert_int_equal(le64toh(b->heartbeat), 4);
	/* The next enable counts from 0. */
	host_prepare(&p->host, 9);
	b->heartbeat = htole64(7);
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
	assert_int_equal(le64toh(b->heartbeat), 0);
	inproc_turn(p);
	assert_int_equal(le64toh(b->heartbeat), 1);
}

/* The time between beats is that of the register (ORN-CTL-18); processor time is since a beat. */
static void test_heartbeat_time(void **state)
{
	struct inproc *p = *state;
	uint64_t before = engine_clock(), cpu = cpu_ns(), after;

	ctrl_resume(p->f);
	after = engine_clock();
	assert_in_range(p->f->ctrl.beat.expires, before + 1000000000, after + 1000000000);
	assert_in_range(p->f->ctrl.beat_cpu, cpu, cpu_ns());
}

static uint64_t the_time;

static uint64_t fixed_clock(void)
{
	return the_time;
}

/* What the thread has run since the last beat of beat_late(), ms: more than since its start */
#define RAN_MS	50000

/* Let the next beat be @late_ms late, and do @then. Return in @said what the daemon prints. */
static void beat_late(struct inproc *p, unsigned int late_ms, void (*then)(void *p),
		      char *said, size_t size)
{
	struct printed printed;

	the_time = engine_clock() + 3600000000000ull;	/* @late_ms may be more than the uptime */
	p->engine.clock = fixed_clock;
	timer_arm(&p->f->dev.timers, &p->f->ctrl.beat, the_time - late_ms * 1000000ull);
	p->f->ctrl.beat_cpu = cpu_ns() - RAN_MS * 1000000ull;
	print_begin(&printed, STDERR_FILENO);
	then(p);
	print_end(&printed, said, size);
	p->engine.clock = engine_clock;
}

static void reset(void *arg)
{
	struct inproc *p = arg;

	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_RESET |
		   ORNIC_REASON_HEARTBEAT << ORNIC_CTL_REASON_SHIFT);
}

/*
 * A host that stalls the daemon can cost a VM its device, so the log tells it (ORN-CTL-18). The
 * driver may reset the device first.
 */
static void test_late_beat(void **state)
{
	static const struct {
		void (*then)(void *p);
		unsigned int late;
	} cases[] = { { inproc_turn, 1001 }, { inproc_turn, 2000000 }, { reset, 1001 } };
	struct inproc *p = *state;
	char said[200];

	for (int i = 0; i < 3; i++) {
		unsigned int late, ran, last;
		int end = 0;

		beat_late(p, 1000, inproc_turn, said, sizeof(said));
		assert_string_equal(said, "");
		beat_late(p, cases[i].late, cases[i].then, said, sizeof(said));
		assert_int_equal(sscanf(said, "ornicd: warning: test: heartbeat is %u ms late: "
					"ornicd ran for %u of the last %u ms%n", &late, &ran, &last,
					&end), 3);
		assert_string_equal(said + end, "\n");
		assert_int_equal(late, cases[i].late);
		assert_int_equal(last, late + 1000);
		assert_in_range(ran, RAN_MS, RAN_MS + 5000);
	}
	beat_late(p, 5000, inproc_turn, said, sizeof(said));	/* of a device that was reset */
	assert_string_equal(said, "");
	beat_late(p, 5000, reset, said, sizeof(said));
	assert_string_equal(said, "");
}

/* The VMM may withdraw write access: the device goes on, and writes nothing. */
static void test_read_only_block(void **state)
{
	struct inproc *p = *state;

	p->engine.clock = inproc_later;
	assert_int_equal(gpa_unmap(p->ep.gpa, INPROC_BASE, INPROC_BYTES), 0);
	assert_int_equal(gpa_map(p->ep.gpa, INPROC_BASE, INPROC_BYTES, GPA_READ, p->host.dma.fd, 0),
			 0);
	inproc_turn(p);
	ctrl_status_write(p->f);
	assert_int_equal(le64toh(block(p)->heartbeat), 0);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_READY);
}

/*
 * Enable must fail with @syndrome, write nothing (ORN-CTL-10), and accept nothing except RESET
 * (ORN-CTL-16); a doorbell does no harm.
 */
static void refused(struct inproc *p, uint32_t control, uint32_t syndrome)
{
	struct ornic_status_block before = *block(p);

	host_set32(&p->host, ORNIC_REG_CONTROL, control);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_FATAL);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_SYNDROME), syndrome);
	assert_memory_equal(&before, block(p), sizeof(before));
	store(p, FUNC_DB_OFFSET, 8, 0);
	host_set32(&p->host, ORNIC_REG_CONTROL, 0);
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_FATAL);
	host_reset(&p->host, ORNIC_REASON_ENABLE_TIMEOUT);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), 0);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_SYNDROME), 0);
	host_prepare(&p->host, 7);
}

/* ORN-CTL-2, ORN-CTL-3, ORN-CTL-9 */
static void test_enable_refused(void **state)
{
	static const enum ornic_reg addr[] = {
		ORNIC_REG_ASQ_ADDR, ORNIC_REG_ACQ_ADDR, ORNIC_REG_ASQ_REC, ORNIC_REG_ACQ_REC,
		ORNIC_REG_STATUS_ADDR,
	};
	static const uint32_t size[] = { 0x43, 0x34, 0xdd, 0x45, 0x144, 0 };
	struct inproc *p = *state;
	struct host *h = &p->host;

	host_prepare(h, 7);
	for (unsigned int i = 0; i < 5; i++) {
		host_set64(h, addr[i], host_reg64(h, addr[i]) + 8);
		refused(p, ORNIC_CTL_ENABLE, ORNIC_SYN_ENABLE_PARAM);
		host_set64(h, addr[i], INPROC_BASE + INPROC_BYTES);
		refused(p, ORNIC_CTL_ENABLE, ORNIC_SYN_HOST_UNREACHABLE);
		host_set64(h, addr[i], UINT64_MAX - 63);
		refused(p, ORNIC_CTL_ENABLE, ORNIC_SYN_HOST_UNREACHABLE);
	}
	for (unsigned int i = 0; i < 2; i++) {		/* the end of a ring is not there */
		host_set64(h, addr[i], INPROC_BASE + INPROC_BYTES - ORNIC_ENTRY_BYTES);
		refused(p, ORNIC_CTL_ENABLE, ORNIC_SYN_HOST_UNREACHABLE);
	}
	for (unsigned int i = 0; i < 6; i++) {
		host_set32(h, ORNIC_REG_ADMIN_SIZE, size[i]);
		refused(p, ORNIC_CTL_ENABLE, ORNIC_SYN_ENABLE_PARAM);
	}
	refused(p, ORNIC_CTL_ENABLE | 1u << 8, ORNIC_SYN_ENABLE_PARAM);
	refused(p, ORNIC_CTL_ENABLE | 5u << ORNIC_CTL_STRIDE_SHIFT, ORNIC_SYN_ENABLE_PARAM);
	refused(p, ORNIC_CTL_ENABLE | 15u << ORNIC_CTL_STRIDE_SHIFT, ORNIC_SYN_ENABLE_PARAM);
	host_set32(h, ORNIC_REG_NONCE, 8);
	refused(p, ORNIC_CTL_ENABLE, ORNIC_SYN_HOST_MEMORY);
	inproc_bus_master(p, false);
	refused(p, ORNIC_CTL_ENABLE, ORNIC_SYN_HOST_UNREACHABLE);
	inproc_bus_master(p, true);
	/* The registers keep no reason; the largest stride and the largest rings are legal. */
	host_set32(h, ORNIC_REG_ADMIN_SIZE, ORNIC_LOG_MAX_ADMIN << 4 | ORNIC_LOG_MAX_ADMIN);
	host_set32(h, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE | 4u << ORNIC_CTL_STRIDE_SHIFT |
		   1u << ORNIC_CTL_REASON_SHIFT);
	assert_int_equal(host_reg32(h, ORNIC_REG_STATUS), ORNIC_STS_READY);
	assert_int_equal(host_reg32(h, ORNIC_REG_CONTROL),
			 ORNIC_CTL_ENABLE | 4u << ORNIC_CTL_STRIDE_SHIFT);
}

/* The device only reads the admin submission ring, and writes everything else. */
static void test_enable_read_only(void **state)
{
	static const enum ornic_reg addr[] = {
		ORNIC_REG_ASQ_ADDR, ORNIC_REG_ACQ_ADDR, ORNIC_REG_ASQ_REC, ORNIC_REG_ACQ_REC,
		ORNIC_REG_STATUS_ADDR,
	};
	struct inproc *p = *state;
	struct host *h = &p->host;

	/* the same memory at a second address */
	assert_int_equal(gpa_map(p->ep.gpa, 0, INPROC_BYTES, GPA_READ, h->dma.fd, 0), 0);
	host_prepare(h, 7);
	for (unsigned int i = 1; i < 5; i++) {
		host_set64(h, addr[i], host_reg64(h, addr[i]) - INPROC_BASE);
		refused(p, ORNIC_CTL_ENABLE, ORNIC_SYN_HOST_UNREACHABLE);
	}
	host_set64(h, addr[0], host_reg64(h, addr[0]) - INPROC_BASE);
	host_set32(h, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
	assert_int_equal(host_reg32(h, ORNIC_REG_STATUS), ORNIC_STS_READY);
}

/* A ring may have several pieces of memory. */
static void test_enable_in_pieces(void **state)
{
	struct inproc *p = *state;
	struct host *h = &p->host;

	/* two pages that are in another order in the file */
	assert_int_equal(gpa_map(p->ep.gpa, 65536, 4096, GPA_READ, h->dma.fd, 4096), 0);
	assert_int_equal(gpa_map(p->ep.gpa, 69632, 4096, GPA_READ, h->dma.fd, 0), 0);
	host_prepare(h, 7);
	host_set64(h, ORNIC_REG_ASQ_ADDR, 65536);
	host_set32(h, ORNIC_REG_ADMIN_SIZE, 0x77);
	host_set32(h, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
	assert_int_equal(host_reg32(h, ORNIC_REG_STATUS), ORNIC_STS_READY);
}

/*
 * Without share=on the VMM offers memory without a descriptor, or a private copy without the nonce.
 * The error line says so.
 */
static void test_not_shared(void **state)
{
	struct inproc *p = *state;
	char said[256];

	/* Another piece that is shared does not hide it. */
	assert_int_equal(gpa_map(p->ep.gpa, 0, 4096, GPA_READ, p->host.dma.fd, 0), 0);
	for (int i = 0; i < 3; i++) {
		bool copy = i == 1;

		if (i == 2)		/* no other piece */
			assert_int_equal(gpa_unmap(p->ep.gpa, 0, 4096), 0);
		host_prepare(&p->host, 7);
		if (copy)
			host_set32(&p->host, ORNIC_REG_NONCE, 8);
		assert_int_equal(gpa_unmap(p->ep.gpa, INPROC_BASE, INPROC_BYTES), 0);
		assert_int_equal(gpa_map(p->ep.gpa, INPROC_BASE, INPROC_BYTES,
					 GPA_READ | GPA_WRITE, copy ? p->host.dma.fd : -1, 0), 0);
		log_keep(said, sizeof(said));
		host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
		log_keep(NULL, 0);
		assert_int_equal(host_reg32(&p->host, ORNIC_REG_SYNDROME), ORNIC_SYN_HOST_MEMORY);
		assert_non_null(strstr(said, "share=on"));
		host_reset(&p->host, ORNIC_REASON_ENABLE_TIMEOUT);
	}
}

/* Create an object, and return its number. */
static uint32_t made(struct inproc *p, uint16_t opcode, const void *cmd, uint16_t len)
{
	assert_int_equal(host_exec(&p->host, opcode, 0, cmd, len, NULL, 0), ORNIC_ST_OK);
	return host_number(&p->host);
}

#define MADE(p, op, cmd)	made(p, ORNIC_OP_##op##_CREATE, &(cmd), sizeof(cmd))

/* Create an object of every kind that a PD, a CQ and EQs do not include. */
static void make_all(struct inproc *p)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
	struct ornic_pd_create_cmd xrcd = { 0 };
	struct ornic_dm_create_cmd dm = { .bytes = htole64(1) };
	struct ornic_srq_create_cmd srq = {
		.log_entries = 4, .stride = 6, .pd = htole32(p->pd), .max_sge = htole16(3),
		.record = htole64(host_record(&p->host)),
		.pages = host_contiguous(dma_alloc(&p->host.dma, 1024, 4096)),
	};
	struct ornic_rss_create_cmd rss = { .function = ORNIC_RSS_TOEPLITZ, .port = 1 };
	struct ornic_rule_cmd rule = { .kind = ORNIC_RULE_PROMISC, .port = 1 };
	struct ornic_qp_create_cmd raw;
	struct host_qp qp;
	uint32_t key;

	assert_int_equal(host_port_up(&p->host, 9000), ORNIC_ST_OK);
	assert_int_equal(host_gid_set(&p->host, 0, 0x0a000001, mac), ORNIC_ST_OK);
	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), 0);
	assert_int_equal(host_key_create(&p->host, p->pd, INPROC_BASE, 8192, 1, &key), 0);
	assert_int_equal(MADE(p, XRCD, xrcd), 1);
	assert_int_equal(MADE(p, DM, dm), 1);
	assert_int_equal(MADE(p, SRQ, srq), 1);
	assert_int_equal(made(p, ORNIC_OP_COUNTER_CREATE, NULL, 0), 1);
	host_qp_template(&p->host, &qp, ORNIC_QPT_RAW, 4, p->pd, p->cq.number, p->cq.number, &raw);
	raw.flags = htole32(ORNIC_QP_F_DRIVER);
	rule.target = htole32(MADE(p, QP, raw));
	rss.table[0] = rule.target;
	assert_int_equal(MADE(p, RULE, rule), 1);
	assert_int_equal(MADE(p, RSS, rss), 0x800000);
}

/* ORN-CTL-4, ORN-CTL-26, ORN-FEA-4: no state survives a disable, and no event reports it. */
static void test_teardown_of_everything(void **state)
{
	static const struct ornic_gid_entry no_gid;
	struct inproc *p = *state;
	struct device *dev = &p->f->dev;
	const struct table *tables[] = {
		&dev->eqs, &dev->pds, &dev->keys, &dev->cqs, &dev->xrcds, &dev->srqs, &dev->qps,
		&dev->sets, &dev->rules, &dev->groups, &p->f->dms,
	};
	struct ornic_eqe eqe;
	struct ornic_cqe cqe;

	make_all(p);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		assert_int_not_equal(tables[i]->used, 0);
	assert_true(switch_port_is_up(dev->port.sw));
	host_disable(&p->host, ORNIC_REASON_SHUTDOWN);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		assert_int_equal(tables[i]->used, 0);
	assert_int_equal(dev->lists.left, LIMIT_LIST_ENTRIES);
	assert_int_equal(dev->features, 0);
	assert_int_equal(p->f->dm_used, 0);
	assert_false(dev->port.admin_up);
	assert_false(switch_port_is_up(dev->port.sw));
	assert_int_equal(dev->port.max_frame, 1500);
	assert_memory_equal(&dev->port.gid[0], &no_gid, sizeof(no_gid));
	while (host_next(&p->eq0, &eqe))	/* of before */
		;
	for (int i = 0; i < 10; i++)
		inproc_turn(p);
	assert_false(host_next(&p->eq0, &eqe));
	assert_false(host_next(&p->cq, &cqe));
	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(host_bring_up(&p->host, INPROC_FEATURES, &p->eq0, &p->eq1), 0);
	assert_int_equal(p->eq0.number, 0);
}

/* ORN-PCI-13, ORN-PCI-15 */
static void test_flr(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };
	uint8_t *before;

	assert_int_not_equal(inproc_counter(p, CNT_admin_commands), 0);
	inproc_flr(p);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), 0);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_RESET_CAUSE), ORNIC_CAUSE_FLR);
	assert_int_equal(inproc_counter(p, CNT_admin_commands), 0);
	assert_false(p->f->vfu.bus_master);
	before = malloc(INPROC_BYTES);
	assert_non_null(before);
	inproc_bus_master(p, true);
	host_submit(&p->host, &cmd);
	memcpy(before, p->host.dma.mem, INPROC_BYTES);
	for (int i = 0; i < 10; i++)
		inproc_turn(p);
	assert_int_equal(memcmp(before, p->host.dma.mem, INPROC_BYTES), 0);
	free(before);
}

static long sleeps(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

/*
 * ORN-PCI-6: reset of a function with as many objects as it can have. The reset waits for
 * nothing. The test measures processor time, which does not depend on the machine's load.
 */
static void test_flr_time(void **state)
{
	struct inproc *p = *state;
	struct ornic_qp_create_cmd cmd;
	uint64_t start, took;
	struct host_qp qp;
	uint32_t key, n;
	long slept;

	for (n = 0; n < LIMIT_KEY; n++)
		assert_int_equal(host_key_create(&p->host, p->pd, INPROC_BASE, 8192, 1, &key), 0);
	host_qp_template(&p->host, &qp, ORNIC_QPT_RC, 6, p->pd, p->cq.number, p->cq.number, &cmd);
	for (n = 0; n < LIMIT_QP; n++)
		assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd),
					   NULL, 0), 0);
	slept = sleeps();
	start = cpu_ns();
	inproc_flr(p);
	assert_false(p->f->dev.running);
	while (p->f->teardown.active)
		function_work(p->f);
	took = cpu_ns() - start;
	print_message("%.1f ms\n", took / 1e6);
	assert_true(took < 100000000);
	assert_true(sleeps() - slept <= 2);		/* which page faults can cause */
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), 0);
	assert_int_equal(p->f->dev.qps.used + p->f->dev.keys.used, 0);
}

/* ORN-PCI-4 */
static void test_bus_master(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };
	struct ornic_port_modify_cmd up = { .mask = htole32(ORNIC_PORT_M_ADMIN),
					    .admin_up = htole32(1) };
	const struct switch_port *port = p->f->dev.port.sw;

	assert_int_equal(host_exec(&p->host, ORNIC_OP_PORT_MODIFY, 1, &up, sizeof(up), NULL, 0),
			 ORNIC_ST_OK);
	assert_true(switch_port_is_up(port));
	inproc_bus_master(p, false);
	assert_false(switch_port_is_up(port));
	host_submit(&p->host, &cmd);
	for (int i = 0; i < 10; i++)
		inproc_turn(p);
	assert_null(host_valid(&p->host, p->host.acq, p->host.log_admin, p->host.done));
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_READY);
	inproc_bus_master(p, true);
	doorbell_some(p->f);
	/* the host may have armed each of them */
	assert_true(((struct eq *)table_get(&p->f->dev.eqs, p->eq0.number))->dirty);
	assert_true(((struct eq *)table_get(&p->f->dev.eqs, p->eq1.number))->dirty);
	assert_true(switch_port_is_up(port));
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
}

/* ORN-PCI-4, ORN-SRQ-6: a queue pair without rings goes on too when the bit is set again. */
static void test_bus_master_without_rings(void **state)
{
	struct inproc *p = *state;
	struct ornic_srq_create_cmd srq = inproc_srq(p);
	struct ornic_qp_create_cmd cmd;
	struct host_qp qp;
	struct ornic_eqe eqe;

	assert_int_equal(host_exec(&p->host, ORNIC_OP_SRQ_CREATE, 0, &srq, sizeof(srq), NULL, 0),
			 ORNIC_ST_OK);
	host_qp_template(&p->host, &qp, ORNIC_QPT_RC, 4, p->pd, p->cq.number, p->cq.number, &cmd);
	cmd.srq = htole32(host_number(&p->host));
	cmd.sq_log = ORNIC_NO_RING;
	cmd.rq_log = ORNIC_NO_RING;
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_OK);
	qp.number = host_number(&p->host);
	inproc_connect_self(p, &qp);
	while (host_next(&p->eq0, &eqe))
		;
	inproc_bus_master(p, false);
	qp_set_state(table_get(&p->f->dev.qps, qp.number), ORNIC_QPS_ERR);
	inproc_turn(p);
	inproc_bus_master(p, true);
	assert_true(host_wait(&p->eq0, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_LAST_WQE);
	assert_int_equal(le32toh(eqe.number), qp.number);
}

/* ORN-PORT-12, ORN-IDN-4: the host learns later of a change of the link in between. */
static void test_bus_master_link(void **state)
{
	struct inproc *p = *state;
	uint64_t generation;
	struct ornic_eqe eqe;

	assert_int_equal(host_port_up(&p->host, 0), ORNIC_ST_OK);
	while (host_next(&p->eq0, &eqe))
		;
	generation = p->f->generation;
	inproc_bus_master(p, false);
	link_set_carrier(&p->f->dev, false);
	assert_false(host_next(&p->eq0, &eqe));
	inproc_bus_master(p, true);
	assert_true(host_wait(&p->eq0, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_IDENTIFY);
	assert_int_equal(le32toh(eqe.number), 1);
	assert_int_equal(le32toh(eqe.info0), ORNIC_ID_PORT);
	assert_int_equal(eqe.owner | eqe.syndrome | eqe.info1, 0);
	assert_true(host_wait(&p->eq0, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_PORT_ERR);
	assert_int_equal(p->f->generation, generation + 1);
	assert_int_equal(le32toh(block(p)->generation), (uint32_t)p->f->generation);
}

/* A lost page of host memory fails the function, at the end of the turn and after each reset. */
static void test_memory_lost(void **state)
{
	static const char why[] =
		"ornicd: error: test: a page of the virtual machine's memory is lost, at offset 0xfff010 of its file: the file was truncated, no huge page was free, or its disk failed; restart the virtual machine\n";
	struct inproc *p = *state;
	uint64_t last = INPROC_BASE + INPROC_BYTES - 4096;
	struct printed printed;
	uint32_t word;
	char said[500];

	assert_int_equal(backing_guard(), 0);
	assert_int_equal(ftruncate(p->host.dma.fd, INPROC_BYTES - 4096), 0);
	assert_false(function_busy(p->f));
	assert_int_equal(gpa_read(p->f->vfu.gpa, last + 16, &word, sizeof(word)), 0);
	assert_true(function_busy(p->f));
	print_begin(&printed, STDERR_FILENO);
	inproc_turn(p);
	print_end(&printed, said, sizeof(said));
	assert_ptr_equal(strstr(said, why), said);
	assert_false(function_busy(p->f));
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_FATAL);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_SYNDROME), ORNIC_SYN_DMA);
	host_reset(&p->host, ORNIC_REASON_FATAL);
	assert_int_not_equal(host_enable(&p->host), 0);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_SYNDROME), ORNIC_SYN_DMA);
}

/*
 * Status and syndrome in memory, then the event, then READY falls (ORN-CTL-17, ORN-CTL-28,
 * ORN-CTL-33); no command is answered any more (ORN-CTL-29).
 */
static void test_fatal(void **state)
{
	struct inproc *p = *state;
	struct ornic_eqe eqe;

	host_arm(&p->eq0, ORNIC_ARM_ANY);
	msix_forget_pending(&p->ep.msix);
	p->f->dev.host->fatal(p->f->dev.arg, ORNIC_SYN_ADMIN_RING);
	assert_false(p->f->dev.running);
	function_fail(p->f, ORNIC_SYN_HOST_MEMORY);	/* a consequence */
	inproc_turn(p);
	assert_false(function_busy(p->f));
	/* The interrupt is that of EQ 0; it waits, because the vectors have no eventfds here. */
	assert_true(p->ep.msix.vector[0].pending);
	assert_false(p->ep.msix.vector[1].pending);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_FATAL);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_SYNDROME), ORNIC_SYN_ADMIN_RING);
	assert_int_equal(le32toh(block(p)->status), ORNIC_STS_READY | ORNIC_STS_FATAL);
	assert_int_equal(le32toh(block(p)->syndrome), ORNIC_SYN_ADMIN_RING);
	assert_true(host_next(&p->eq0, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_DEVICE_FATAL);
	assert_int_equal(le32toh(eqe.syndrome), ORNIC_SYN_ADMIN_RING);
	assert_int_equal(eqe.number | eqe.owner | eqe.info0 | eqe.info1, 0);
	/* The first cause stays. */
	ctrl_fatal(p->f, ORNIC_SYN_HOST_MEMORY);
	assert_int_equal(p->f->dev.qps.used + p->f->dev.eqs.used, 0);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0), -ETIMEDOUT);
	host_disable(&p->host, ORNIC_REASON_FATAL);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_SYNDROME), ORNIC_SYN_ADMIN_RING);
	host_reset(&p->host, ORNIC_REASON_FATAL);
	assert_int_equal(host_enable(&p->host), 0);
	/* A reset is earlier than the failure. */
	function_fail(p->f, ORNIC_SYN_ADMIN_RING);
	assert_true(function_busy(p->f));
	host_reset(&p->host, ORNIC_REASON_FATAL);
	assert_false(function_busy(p->f));
	assert_int_equal(host_enable(&p->host), 0);
	inproc_turn(p);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_READY);
}

/* A function without EQ 0, or one that may not write, goes FATAL all the same. */
static void test_fatal_without_event(void **state)
{
	struct inproc *p = *state;
	struct ornic_eqe eqe;

	host_reset(&p->host, ORNIC_REASON_USER);
	assert_int_equal(host_enable(&p->host), 0);
	function_fail(p->f, ORNIC_SYN_ADMIN_RING);
	inproc_turn(p);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_FATAL);
	host_reset(&p->host, ORNIC_REASON_FATAL);
	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(host_bring_up(&p->host, INPROC_FEATURES, &p->eq0, &p->eq1), 0);
	inproc_bus_master(p, false);
	function_fail(p->f, ORNIC_SYN_ADMIN_RING);
	inproc_turn(p);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_FATAL);
	assert_int_equal(le32toh(block(p)->status), ORNIC_STS_READY);
	assert_false(host_next(&p->eq0, &eqe));
}

/* ORN-PCI-5 */
static void test_d3hot(void **state)
{
	struct inproc *p = *state;

	host_disable(&p->host, ORNIC_REASON_USER);
	assert_int_equal(host_enable(&p->host), 0);
	p->f->vfu.ops->power_state(&p->f->vfu, true);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), 0);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_RESET_CAUSE) >> 16, ORNIC_REASON_USER);
	assert_int_equal(p->f->dev.eqs.used, 0);
	p->f->vfu.ops->power_state(&p->f->vfu, false);
	assert_int_equal(host_enable(&p->host), 0);
	/* The way back to D0 stops nothing, and FATAL stays as it is. */
	p->f->vfu.ops->power_state(&p->f->vfu, false);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_READY);
	function_fail(p->f, ORNIC_SYN_ADMIN_RING);
	inproc_turn(p);
	p->f->vfu.ops->power_state(&p->f->vfu, true);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_FATAL);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_CONTROL), ORNIC_CTL_ENABLE);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_SYNDROME), ORNIC_SYN_ADMIN_RING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_constants, inproc_setup, inproc_teardown),
		cmocka_unit_test_setup_teardown(test_description, inproc_setup, inproc_teardown),
		cmocka_unit_test_setup_teardown(test_widths, inproc_setup, inproc_teardown),
		cmocka_unit_test_setup_teardown(test_enable, inproc_setup, inproc_teardown),
		cmocka_unit_test_setup_teardown(test_control_again, inproc_setup_ready,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_reserved_stores, inproc_setup,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_bars, inproc_setup, inproc_teardown),
		cmocka_unit_test_setup_teardown(test_clock_halves, inproc_setup, inproc_teardown),
		cmocka_unit_test_setup_teardown(test_heartbeat, inproc_setup, inproc_teardown),
		cmocka_unit_test_setup_teardown(test_memory_lost, inproc_setup_ready,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_late_beat, inproc_setup_ready,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_heartbeat_time, inproc_setup_ready,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_read_only_block, inproc_setup_ready,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_enable_read_only, inproc_setup,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_enable_in_pieces, inproc_setup,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_enable_refused, inproc_setup,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_not_shared, inproc_setup, inproc_teardown),
		cmocka_unit_test_setup_teardown(test_teardown_of_everything, inproc_setup_ready,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_flr, inproc_setup_ready, inproc_teardown),
		cmocka_unit_test_setup_teardown(test_flr_time, inproc_setup_ready,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_bus_master, inproc_setup_ready,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_bus_master_without_rings, inproc_setup_ready,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_bus_master_link, inproc_setup_ready,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_fatal, inproc_setup_ready, inproc_teardown),
		cmocka_unit_test_setup_teardown(test_fatal_without_event, inproc_setup_ready,
						inproc_teardown),
		cmocka_unit_test_setup_teardown(test_d3hot, inproc_setup_ready, inproc_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
