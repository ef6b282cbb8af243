// SPDX-License-Identifier: GPL-2.0
/*
 * Nothing that a guest does delays other functions for long: long page lists are copied and freed in
 * pieces, many objects are released and rung in pieces (ORN-SEC-14).
 */
#define _GNU_SOURCE 1	/* memfd_create() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/inproc.h"

#include "engine/cq.h"
#include "engine/eq.h"
#include "engine/fair.h"
#include "engine/mr.h"
#include "engine/pagelist.h"
#include "engine/qp.h"

#include <ornic/mr.h>
#include <ornic/pd.h>
#include <ornic/stats.h>
#include <endian.h>

#define LISTS		0x200000000ull
#define LISTS_BYTES	(1u << 20)
#define PAGES		200000u
#define LENGTH		((uint64_t)PAGES << 12)
#define TURNS		((PAGES + PROGRESS_WORK - 1) / PROGRESS_WORK)

/* Page lists in a separate piece of guest memory: a table whose every entry is one leaf. */
struct lists {
	int fd;
	uint64_t *mem;
};

static struct lists lists_open(struct inproc *p)
{
	struct lists l = { .fd = memfd_create("lists", MFD_CLOEXEC) };

	assert_int_equal(ftruncate(l.fd, LISTS_BYTES), 0);
	l.mem = mmap(NULL, LISTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, l.fd, 0);
	assert_true(l.mem != MAP_FAILED);
	assert_int_equal(gpa_map(p->ep.gpa, LISTS, LISTS_BYTES, GPA_READ | GPA_WRITE, l.fd, 0), 0);
	for (uint32_t i = 0; i < PAGES / ORNIC_PAGES_LEAF_ENTRIES + 1; i++)
		l.mem[i] = htole64(LISTS + LISTS_BYTES - ORNIC_PAGES_LEAF_BYTES);
	return l;
}

static void lists_close(struct lists *l)
{
	munmap(l->mem, LISTS_BYTES);
	close(l->fd);
}

static struct ornic_key_create_cmd huge(struct inproc *p)
{
	return (struct ornic_key_create_cmd) {
		.pd = htole32(p->pd),
		.length = htole64(LENGTH),
		.pages = { .addr = htole64(LISTS), .page_shift = 12, .level = 2 },
	};
}

static void submit(struct inproc *p, uint16_t opcode, uint32_t number, const void *in, uint16_t len)
{
	struct ornic_admin_cmd cmd = {
		.opcode = htole16(opcode),
		.number = htole32(number),
		.in_len = htole16(len),
		.in_addr = htole64(len > ORNIC_ADMIN_INLINE ? p->host.payload : 0),
	};

	if (len && len <= ORNIC_ADMIN_INLINE)
		memcpy(cmd.inline_in, in, len);
	else if (len)
		memcpy(dma_at(&p->host.dma, p->host.payload), in, len);
	host_submit(&p->host, &cmd);
}

static bool completed(struct inproc *p)
{
	return host_valid(&p->host, p->host.acq, p->host.log_admin, p->host.done);
}

/* ORN-SEC-14, ORN-ADM-2: a bounded part per turn; the commands behind it follow in order */
static void test_create(void **state)
{
	struct inproc *p = *state;
	struct ornic_key_create_cmd cmd = huge(p);
	struct lists l = lists_open(p);
	uint32_t key, turns = 0;

	submit(p, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd));
	submit(p, ORNIC_OP_NOP, 0, NULL, 0);
	while (!completed(p)) {
		uint64_t done = p->f->progress.load.done;

		function_work(p->f);
		turns++;
		if (completed(p))
			break;
		assert_int_equal(p->f->progress.load.done - done, PROGRESS_WORK);
		assert_in_range(p->f->progress.load.done - done, 1, 2048);
		assert_true(function_busy(p->f));
	}
	assert_int_equal(turns, TURNS);
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	key = host_number(&p->host);
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	assert_int_equal(le16toh(p->host.cpl.opcode), ORNIC_OP_NOP);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_DESTROY, key, NULL, 0, NULL, 0), 0);
	lists_close(&l);
}

/* ORN-ADM-6: a completion before a long command causes its event before the end of that command. */
static void test_event(void **state)
{
	struct inproc *p = *state;
	struct ornic_rec *rec = dma_at(&p->host.dma, p->host.acq_rec);
	struct ornic_key_create_cmd cmd = huge(p);
	struct lists l = lists_open(p);
	struct ornic_eqe eqe;

	rec->arm = htole32((p->host.done & ORNIC_ARM_INDEX_MASK) | 1u << ORNIC_ARM_SN_SHIFT |
			   (uint32_t)ORNIC_ARM_ANY << ORNIC_ARM_TYPE_SHIFT);
	submit(p, ORNIC_OP_NOP, 0, NULL, 0);
	submit(p, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd));
	function_work(p->f);
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	assert_false(completed(p));
	assert_true(host_next(&p->eq0, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_ADMIN);
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	lists_close(&l);
}

/* Its memory is freed in pieces as well, and counts as used until then. */
static void test_destroy(void **state)
{
	struct inproc *p = *state;
	uint64_t budget = p->f->dev.lists.left, used = p->f->dev.account.used;
	struct ornic_key_create_cmd cmd = huge(p);
	struct lists l = lists_open(p);
	uint32_t pieces = 1;
	uint64_t before;

	while (pagelist_reap(&p->engine.unused))
		;
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_OK);
	assert_int_equal(budget - p->f->dev.lists.left, PAGES);
	submit(p, ORNIC_OP_KEY_DESTROY, host_number(&p->host), NULL, 0);
	function_work(p->f);
	assert_true(completed(p));
	before = p->f->dev.lists.waiting;
	assert_int_equal(before, PAGES);
	assert_int_equal(p->f->dev.lists.left, budget - PAGES);
	while (!engine_turn(&p->engine)) {
		pieces++;
		assert_in_range(before - p->f->dev.lists.waiting, 1, (128 << 10) / 8);
		before = p->f->dev.lists.waiting;
		assert_int_equal(p->f->dev.lists.left + p->f->dev.lists.waiting, budget);
	}
	assert_int_equal(p->f->dev.lists.left, budget);
	assert_int_equal(p->f->dev.account.used, used);
	assert_int_equal(pieces, (PAGES * 8 + PAGELIST_PIECE - 1) / PAGELIST_PIECE);
	lists_close(&l);
}

/*
 * A host that registers and deregisters faster than memory is freed waits for it. The memory that it
 * makes the daemon use never exceeds its budget, also if the device rejects the lists.
 */
static void test_faster_than_freed(void **state)
{
	struct inproc *p = *state;
	struct page_lists *lists = &p->f->dev.lists;
	struct ornic_key_create_cmd cmd = huge(p);
	struct lists l = lists_open(p);
	uint64_t budget = lists->left;
	uint32_t waited = 0;

	lists->left = PAGES + 10;
	for (int i = 0; i < 40; i++) {
		bool bad = i % 2;

		l.mem[PAGES / ORNIC_PAGES_LEAF_ENTRIES] = htole64(bad ? 8 : l.mem[0]);
		submit(p, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd));
		while (!completed(p)) {
			waited += lists->waiting != 0;
			assert_in_range(lists->left + lists->waiting, 0, PAGES + 10);
			inproc_turn(p);
		}
		assert_int_equal(host_complete(&p->host), bad ? ORNIC_ST_BAD_PARAM : ORNIC_ST_OK);
		if (!bad)
			assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_DESTROY,
						   host_number(&p->host), NULL, 0, NULL, 0),
					 ORNIC_ST_OK);
	}
	assert_in_range(waited, 19, UINT32_MAX);
	/* More than there is: rejected once nothing waits */
	lists->left -= 10;
	cmd.length = htole64(LENGTH + 4096);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_NO_RESOURCE);
	assert_int_equal(lists->waiting, 0);
	lists->left += budget - PAGES;
	lists_close(&l);
}

/* A misaligned list is rejected before memory is allocated for it. */
static void test_misaligned(void **state)
{
	struct inproc *p = *state;
	struct ornic_key_create_cmd cmd = huge(p);

	cmd.pages.addr = htole64(LISTS + 8);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_BAD_PARAM);
	assert_int_equal(p->f->dev.lists.waiting, 0);
}

/* A reset in the middle: no state is left, and the next driver is served. */
static void test_reset(void **state)
{
	struct inproc *p = *state;
	struct ornic_key_create_cmd cmd = huge(p);
	struct lists l = lists_open(p);

	submit(p, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd));
	function_work(p->f);
	inproc_bus_master(p, false);
	function_work(p->f);
	assert_int_equal(p->f->progress.load.done, PROGRESS_WORK);	/* waits */
	inproc_bus_master(p, true);
	function_work(p->f);
	assert_int_equal(p->f->progress.load.done, 2 * PROGRESS_WORK);
	host_reset(&p->host, ORNIC_REASON_USER);
	while (!engine_turn(&p->engine))
		;
	assert_int_equal(p->f->dev.lists.left, LIMIT_LIST_ENTRIES);
	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0), ORNIC_ST_OK);
	lists_close(&l);
}

/* The list is unmapped, or becomes invalid, while it is read: rejected, and nothing kept. */
static void test_list_changes(void **state)
{
	for (int bad = 0; bad < 2; bad++) {
		struct inproc *p;
		struct ornic_key_create_cmd cmd;
		struct lists l;
		uint64_t budget;

		inproc_setup_ready(state);
		p = *state;
		budget = p->f->dev.lists.left;
		l = lists_open(p);
		cmd = huge(p);
		submit(p, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd));
		function_work(p->f);
		assert_false(completed(p));
		if (bad)
			l.mem[PAGES / ORNIC_PAGES_LEAF_ENTRIES] = htole64(8);
		else
			assert_int_equal(gpa_unmap(p->ep.gpa, LISTS, LISTS_BYTES), 0);
		assert_int_equal(host_complete(&p->host),
				 bad ? ORNIC_ST_BAD_PARAM : ORNIC_ST_DMA_ERROR);
		assert_int_equal(p->f->dev.lists.left + p->f->dev.lists.waiting, budget);
		lists_close(&l);
		inproc_teardown(state);
	}
}

/* ORN-MEM-45, ORN-ADM-16: a window that is bound during a change stops the change. */
static void test_window_meanwhile(void **state)
{
	struct inproc *p = *state;
	struct ornic_key_modify_cmd m = {
		.mask = htole32(ORNIC_KEYM_TRANSLATION), .attr = huge(p),
	};
	struct lists l = lists_open(p);
	uint64_t budget;
	uint32_t key;
	struct mr *mr;

	assert_int_equal(host_key_create(&p->host, p->pd, INPROC_BASE, 4096, 0, &key), 0);
	mr = table_get(&p->f->dev.keys, key >> ORNIC_KEY_TAG_BITS);
	budget = p->f->dev.lists.left;
	submit(p, ORNIC_OP_KEY_MODIFY, key, &m, sizeof(m));
	function_work(p->f);
	assert_int_equal(mr->length, 4096);	/* ORN-MEM-4: as it was */
	mr->windows = 1;
	assert_int_equal(host_complete(&p->host), ORNIC_ST_BUSY);
	assert_int_equal(mr->length, 4096);
	assert_int_equal(p->f->dev.lists.left + p->f->dev.lists.waiting, budget);
	mr->windows = 0;
	submit(p, ORNIC_OP_KEY_MODIFY, key, &m, sizeof(m));
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	assert_int_equal(mr->length, LENGTH);
	lists_close(&l);
}

/* Rings count as work of the iteration in which their lists are read. */
static void test_ring(void **state)
{
	struct inproc *p = *state;
	struct progress *work = &p->f->progress;
	struct host_ring cq;

	assert_int_equal(host_cq_create(&p->host, &cq, 10, p->eq1.number, 0), 0);
	assert_int_equal(PROGRESS_WORK - work->work, 1);
	for (uint32_t n = 99; n <= 101; n++) {
		work->work = 100;
		progress_charge(p->f, n);
		assert_int_equal(work->work, n < 100 ? 1 : 0);
	}
}

/* The sum of all counter sets is work of its iteration: with many sets the next command waits. */
static void test_counter_sets(void **state)
{
	struct inproc *p = *state;
	const struct ornic_stat_read_cmd cmd = { .scope = ORNIC_STAT_QP, .count = htole32(1) };

	for (uint32_t i = 0; i < PROGRESS_WORK / 16; i++) {
		submit(p, ORNIC_OP_STAT_READ, 0, &cmd, sizeof(cmd));
		submit(p, ORNIC_OP_NOP, 0, NULL, 0);
		function_work(p->f);
		assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
		assert_true(completed(p));
		assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
		assert_int_equal(host_exec(&p->host, ORNIC_OP_COUNTER_CREATE, 0, NULL, 0, NULL,
					   0), ORNIC_ST_OK);
	}
	submit(p, ORNIC_OP_STAT_READ, 0, &cmd, sizeof(cmd));
	submit(p, ORNIC_OP_NOP, 0, NULL, 0);
	function_work(p->f);
	assert_true(completed(p));
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	assert_false(completed(p));
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
}

/* Objects that a turn releases or rings; more than that, and no multiple of it */
#define PIECE		128
#define OBJECTS		1300

static void make_objects(struct inproc *p)
{
	struct ornic_pd_create_cmd pd = { 0 };

	for (uint32_t i = p->f->dev.pds.used; i < OBJECTS; i++)
		assert_int_equal(host_exec(&p->host, ORNIC_OP_PD_CREATE, 0, &pd, sizeof(pd), NULL,
					   0), ORNIC_ST_OK);
}

static uint32_t status(struct inproc *p)
{
	return host_reg32(&p->host, ORNIC_REG_STATUS);
}

/* Check that the objects are released in turns, that STATUS is @sts meanwhile, and 0 afterwards. */
static void expect_teardown(struct inproc *p, uint32_t sts)
{
	struct table *pds = &p->f->dev.pds;
	uint32_t turns = 0;

	while (p->f->teardown.active) {
		uint32_t before = pds->used;

		assert_int_equal(status(p), sts);
		assert_true(function_busy(p->f));
		host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);	/* ORN-CTL-16 */
		assert_int_equal(status(p), sts);
		function_work(p->f);
		assert_in_range(before - pds->used, 0, PIECE);
		turns++;
	}
	assert_in_range(turns, OBJECTS / PIECE - 1, OBJECTS / PIECE + 1);
	assert_int_equal(pds->used, 0);
	assert_int_equal(status(p), 0);
	assert_false(function_busy(p->f));
}

/* ORN-CTL-15, ORN-CTL-4: DMA ends at once, the objects in pieces; the next driver is served. */
static void test_teardown(void **state)
{
	struct inproc *p = *state;

	make_objects(p);
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_REASON_USER << ORNIC_CTL_REASON_SHIFT);
	assert_false(p->f->dev.running);
	expect_teardown(p, ORNIC_STS_DRAINING);
	assert_int_equal(host_enable(&p->host), 0);
	make_objects(p);
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_RESET);
	assert_false(p->f->dev.running);
	expect_teardown(p, ORNIC_STS_RESETTING);
	assert_int_equal(p->f->dev.cnt[CNT_admin_commands], 0);
	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0), ORNIC_ST_OK);
}

/* A RESET during a disable, and during a reset: no more work per turn, and one end. */
static void test_teardown_again(void **state)
{
	struct inproc *p = *state;
	uint32_t left;

	make_objects(p);
	host_set32(&p->host, ORNIC_REG_CONTROL, 0);
	left = p->f->dev.pds.used;
	for (int i = 0; i < 10; i++) {
		host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_RESET);
		inproc_flr(p);
	}
	assert_int_equal(p->f->dev.pds.used, left);
	expect_teardown(p, ORNIC_STS_RESETTING);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_RESET_CAUSE) & 0xffff, ORNIC_CAUSE_FLR);
}

/* A fatal error: FATAL is shown although objects are left, and a RESET waits for their end. */
static void test_teardown_fatal(void **state)
{
	struct inproc *p = *state;

	make_objects(p);
	function_fail(p->f, ORNIC_SYN_ADMIN_RING);
	function_work(p->f);
	assert_true(p->f->teardown.active);
	assert_int_equal(status(p), ORNIC_STS_FATAL);
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_RESET);
	expect_teardown(p, ORNIC_STS_RESETTING);
}

/* The client is gone, and its function is removed before all objects are released: nothing leaks. */
static void test_teardown_free(void **state)
{
	struct inproc *p = *state;

	make_objects(p);
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_RESET);
	assert_true(p->f->teardown.active);
}

/* A removed function is unknown to others at once, and releases its objects in turns. */
static void test_retire(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
	struct inproc *p = *state;
	struct table *pds = &p->f->dev.pds;
	struct account_pool *pool = &p->engine.memory;
	static struct account other[2];
	struct function *next;
	uint32_t turns = 0;
	int err;

	/* many of the objects are in the shared part of the memory, also of those that are left later */
	pool->size = 20000;
	for (int i = 0; i < 2; i++)
		account_open(&other[i], pool);
	pool->most = pool->size;
	make_objects(p);
	endpoint_detach(&p->ep);
	function_retire(p->f);
	assert_true(function_busy(p->f));
	assert_true(pool->shared > 0);
	assert_null(switch_port_find(p->engine.sw, "test"));
	assert_true(TAILQ_EMPTY(&p->engine.devices));
	next = function_new(&p->engine, "test", mac, 0, &err);
	assert_non_null(next);
	for (; function_busy(p->f); turns++) {
		uint32_t before = pds->used;

		engine_turn(&p->engine);
		function_work(p->f);
		assert_in_range(before - pds->used, 0, PIECE);
	}
	assert_in_range(turns, OBJECTS / PIECE - 1, OBJECTS / PIECE + 1);
	assert_int_equal(pds->used, 0);
	assert_int_equal(p->f->dev.account.used, 0);
	assert_int_equal(pool->shared, 0);
	function_free(next);
	for (int i = 0; i < 2; i++)
		account_close(&other[i]);
}

/* ORN-PCI-4: a bounded number of queues is rung per turn, however often bus mastering changes. */
static void test_ring_all(void **state)
{
	struct inproc *p = *state;
	struct host_ring cq;
	uint32_t rung = 0;
	struct cq *c;

	for (int i = 0; i < 600; i++)
		assert_int_equal(host_cq_create(&p->host, &cq, 4, p->eq1.number, 0), 0);
	while (!engine_turn(&p->engine) || function_busy(p->f))
		function_work(p->f);
	for (int i = 0; i < 10; i++) {
		inproc_bus_master(p, false);
		assert_false(function_busy(p->f));
		inproc_bus_master(p, true);
	}
	assert_true(TAILQ_EMPTY(&p->f->dev.look));
	function_work(p->f);
	TAILQ_FOREACH(c, &p->f->dev.look, look)
		rung++;
	assert_in_range(rung, PIECE - 20, PIECE);
	assert_true(function_busy(p->f));
	engine_turn(&p->engine);
	while (function_busy(p->f))
		function_work(p->f);
	TAILQ_FOREACH(c, &p->f->dev.look, look)
		rung++;
	assert_int_equal(rung, p->f->dev.cqs.used);
}

#define WINDOWS		1300u

/* Return how many windows are bound on @qp. */
static uint32_t bound(const struct qp *qp)
{
	const struct mr *mr;
	uint32_t n = 0;

	LIST_FOREACH(mr, &qp->windows, on_qp)
		n++;
	return n;
}

/* Bind new windows on @qp, as work requests would. */
static void bind_windows(struct inproc *p, struct qp *qp)
{
	struct ornic_key_create_cmd cmd = { .kind = ORNIC_KEY_MW2B, .pd = htole32(p->pd) };

	for (uint32_t i = 0; i < WINDOWS; i++) {
		struct mr *mr;

		assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd),
					   NULL, 0), ORNIC_ST_OK);
		mr = table_get(&p->f->dev.keys, host_number(&p->host) >> ORNIC_KEY_TAG_BITS);
		mr->bound = true;
		mr->qp = qp;
		LIST_INSERT_HEAD(&qp->windows, mr, on_qp);
	}
	assert_int_equal(bound(qp), WINDOWS);
}

/* A queue pair that is destroyed with many windows: they are unbound in turns, and none is added. */
static void test_windows(void **state)
{
	struct inproc *p = *state;
	struct host_qp qp;
	struct ornic_cqe cqe;
	struct qp *obj;

	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 2, p->pd, p->cq.number,
					p->cq.number), 0);
	inproc_connect_self(p, &qp);
	obj = table_get(&p->f->dev.qps, qp.number);
	bind_windows(p, obj);
	submit(p, ORNIC_OP_QP_DESTROY, qp.number, NULL, 0);
	submit(p, ORNIC_OP_NOP, 0, NULL, 0);
	for (uint32_t left = WINDOWS; left > 512;) {
		uint32_t before = left;

		function_work(p->f);
		left = bound(obj);
		assert_in_range(before - left, 1, 512);
		assert_false(completed(p));
		assert_true(function_busy(p->f));
		assert_int_equal(obj->state, ORNIC_QPS_RESET);
		engine_turn(&p->engine);
	}
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	assert_null(table_get(&p->f->dev.qps, qp.number));
	assert_false(host_next(&p->cq, &cqe));
	assert_int_equal(p->f->dev.keys.used, WINDOWS);
}

#define WATCHED		40

static void send_nop(struct host_qp *qp)
{
	struct ornic_wqe_ctrl *ctrl = host_sq_slot(qp);

	ctrl->opcode = ORNIC_WR_NOP;
	ctrl->flags = ORNIC_WQE_SIGNALED;
	host_sq_publish(qp);
}

static uint32_t in_list(struct inproc *p, enum qp_sched list)
{
	uint32_t n = 0;
	struct qp *qp;

	for (uint32_t i = 0; (qp = table_next(&p->f->dev.qps, &i)); i++)
		n += qp->sched == list;
	return n;
}

/* Empty rings are polled in turn, some of a device per turn: posts without doorbells are all found. */
static void test_watched(void **state)
{
	struct inproc *p = *state;
	struct host_qp qp[WATCHED];
	struct ornic_cqe cqe;
	uint32_t found = 0;

	for (int i = 0; i < WATCHED; i++) {
		assert_int_equal(host_qp_create(&p->host, &qp[i], ORNIC_QPT_RC, 2, p->pd,
						p->cq.number, p->cq.number), 0);
		inproc_connect_self(p, &qp[i]);
	}
	while (in_list(p, QP_ASLEEP) < WATCHED)		/* now they ask for one doorbell */
		engine_turn(&p->engine);
	p->engine.spin_ns = 3600000000000ull;
	for (int i = 0; i < WATCHED; i++) {
		send_nop(&qp[i]);
		assert_true(host_wait(&p->cq, &cqe));
	}
	while (in_list(p, QP_WATCHED) < WATCHED)
		engine_turn(&p->engine);
	for (int i = 0; i < WATCHED; i++)
		send_nop(&qp[i]);
	assert_int_equal(in_list(p, QP_ACTIVE), 0);	/* no doorbell */
	engine_turn(&p->engine);
	assert_in_range(in_list(p, QP_ACTIVE), 1, 16);
	for (int i = 0; i < 5; i++)
		engine_turn(&p->engine);
	while (host_next(&p->cq, &cqe))
		found++;
	assert_int_equal(found, WATCHED);
}

#define USERS		600

static uint32_t failed_qps(struct inproc *p)
{
	uint32_t n = 0;
	struct qp *qp;

	for (uint32_t i = 0; (qp = table_next(&p->f->dev.qps, &i)); i++)
		n += qp->state == ORNIC_QPS_ERR;
	return n;
}

/* Create USERS queue pairs, of which the first one uses CQ @first. */
static void make_users(struct inproc *p, uint32_t first)
{
	struct host_qp qp;

	for (int i = 0; i < USERS; i++) {
		uint64_t next = p->host.dma.next;
		uint32_t cq = i ? p->cq.number : first;

		assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 2, p->pd, cq, cq), 0);
		if (i)
			p->host.dma.next = next;	/* their rings are not used */
		qp_set_state(table_get(&p->f->dev.qps, qp.number), ORNIC_QPS_INIT);
	}
}

/*
 * The queue pairs of a failed CQ enter ERR in turns. A CQ that fails meanwhile is not forgotten,
 * although its queue pair was visited already.
 */
static void test_failed_cq(void **state)
{
	struct inproc *p = *state;
	struct host_ring other;
	uint32_t failed = 0, before;

	assert_int_equal(host_cq_create(&p->host, &other, 4, p->eq1.number, 0), 0);
	make_users(p, other.number);
	cq_fail(table_get(&p->f->dev.cqs, p->cq.number), ORNIC_SYN_RING_MEMORY);
	for (int i = 0; i < 3; i++) {
		before = failed;
		assert_int_equal(engine_turn(&p->engine), 0);
		failed = failed_qps(p);
		assert_in_range(failed - before, 1, 256);
		if (!i)
			cq_fail(table_get(&p->f->dev.cqs, other.number), ORNIC_SYN_RING_MEMORY);
	}
	assert_int_equal(failed, USERS - 1);
	for (int i = 0; i < 3; i++)
		engine_turn(&p->engine);
	assert_int_equal(failed_qps(p), USERS);
	while (!engine_turn(&p->engine))
		;
}

/* An XRC SRQ looks for its targets among many queue pairs in turns, and exists until then. */
static void test_xrc_srq(void **state)
{
	struct inproc *p = *state;
	struct ornic_srq_create_cmd cmd = inproc_srq(p);
	struct ornic_pd_create_cmd xrcd = { 0 };
	uint32_t srq;

	make_users(p, p->cq.number);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_XRCD_CREATE, 0, &xrcd, sizeof(xrcd), NULL, 0),
			 ORNIC_ST_OK);
	cmd.type = ORNIC_SRQT_XRC;
	cmd.xrcd = htole32(host_number(&p->host));
	cmd.cq = htole32(p->cq.number);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_SRQ_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_OK);
	srq = host_number(&p->host);
	submit(p, ORNIC_OP_SRQ_DESTROY, srq, NULL, 0);
	for (int i = 0; i < 2; i++) {
		function_work(p->f);
		assert_false(completed(p));
		assert_non_null(table_get(&p->f->dev.srqs, srq));
	}
	function_work(p->f);
	assert_true(completed(p));
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	assert_null(table_get(&p->f->dev.srqs, srq));
}

/* Each look takes a microsecond. */
static uint64_t slow_clock(void)
{
	static uint64_t now;

	return now += 1000;
}

static struct function *other_function(struct inproc *p)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	struct function *other;
	int err;

	other = function_new(&p->engine, "other", mac, 0, &err);
	assert_non_null(other);
	return other;
}

static bool held(struct function *f)
{
	return f->vfu.ops->held(&f->vfu);
}

/*
 * A function that used more than its time waits, with commands and messages, until queue pairs of
 * the others have had as much.
 */
static void test_rounds(void **state)
{
	struct inproc *p = *state;
	struct engine *e = &p->engine;
	struct device *dev = &p->f->dev;
	struct function *other;

	e->clock = slow_clock;
	/* alone */
	dev->credit = -1;
	assert_true(fair_may(dev));
	other = other_function(p);
	dev->credit = -10 * FAIR_QUANTUM_NS;
	submit(p, ORNIC_OP_NOP, 0, NULL, 0);
	TAILQ_INSERT_TAIL(&e->busy, &other->dev, busy);
	other->dev.running = true;
	other->dev.turns = -FAIR_DEBT_NS;	/* used while nobody waited, so it does not count */
	for (int i = 0; i < 3; i++) {
		function_work(p->f);
		assert_true(held(p->f));
		assert_false(held(other));
		fair_rounds(e);
		assert_false(completed(p));
		assert_int_equal(dev->credit, -10 * FAIR_QUANTUM_NS);
	}
	other->dev.turns = -5;
	fair_rounds(e);
	assert_true(held(p->f));
	assert_int_equal(dev->credit, -9 * FAIR_QUANTUM_NS);
	assert_int_equal(other->dev.turns, FAIR_QUANTUM_NS - 5);
	other->dev.turns = -20 * FAIR_QUANTUM_NS;
	fair_rounds(e);
	assert_false(held(p->f));
	assert_int_equal(dev->credit, FAIR_QUANTUM_NS);
	assert_int_equal(other->dev.turns, -10 * FAIR_QUANTUM_NS);
	assert_int_equal(other->dev.credit, FAIR_QUANTUM_NS);
	function_work(p->f);
	assert_true(completed(p));
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	/* one that does not run does not count */
	dev->credit = -1;
	assert_true(held(p->f));
	other->dev.turns = FAIR_QUANTUM_NS;
	other->dev.running = false;
	fair_rounds(e);
	assert_false(held(p->f));
	TAILQ_REMOVE(&e->busy, &other->dev, busy);
	/* nor does work that nobody else has */
	dev->credit = -FAIR_DEBT_NS;
	assert_true(held(p->f));
	fair_rounds(e);
	assert_false(held(p->f));
	/* one that left while it was held */
	dev->credit = -1;
	assert_true(held(p->f));
	dev->held = false;
	fair_rounds(e);
	assert_false(e->held);
	function_free(other);
}

/* All that a client causes is charged, but never more than the bound. */
static void test_charges(void **state)
{
	const struct vfu_func_ops *ops;
	struct inproc *p = *state;
	struct device *dev = &p->f->dev;

	ops = p->f->vfu.ops;
	p->engine.clock = slow_clock;
	dev->credit = 0;
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
	assert_int_equal(dev->credit, 0);	/* not between begin and end */
	ops->begin(&p->f->vfu);
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
	assert_int_equal(dev->credit, -1000);
	inproc_bus_master(p, false);
	inproc_bus_master(p, true);
	assert_in_range(-dev->credit, 3000, 10000);
	dev->credit = 0;
	ops->power_state(&p->f->vfu, true);
	assert_in_range(-dev->credit, 1000, 10000);
	dev->credit = 0;
	inproc_flr(p);
	assert_in_range(-dev->credit, 1000, 10000);
	dev->credit = 0;
	ops->end(&p->f->vfu);
	assert_int_equal(dev->credit, -1000);
	inproc_flr(p);
	assert_int_equal(dev->credit, -1000);
	/* the thread got no processor for a long time */
	ops->begin(&p->f->vfu);
	dev->charged -= 1000ull * FAIR_DEBT_NS;
	ops->end(&p->f->vfu);
	assert_int_equal(dev->credit, -FAIR_DEBT_NS);
}

/* The time of queue pairs is charged while a function waits. */
static void test_turns(void **state)
{
	struct inproc *p = *state;
	struct function *other = other_function(p);
	struct host_qp qp[40];

	for (int i = 0; i < 40; i++) {
		assert_int_equal(host_qp_create(&p->host, &qp[i], ORNIC_QPT_RC, 2, p->pd,
						p->cq.number, p->cq.number), 0);
		inproc_connect_self(p, &qp[i]);
	}
	p->engine.clock = slow_clock;
	p->f->dev.turns = 5;
	for (int i = 0; i < 40; i++)
		send_nop(&qp[i]);
	engine_turn(&p->engine);
	assert_int_equal(p->f->dev.turns, 5);
	other->dev.credit = -FAIR_DEBT_NS;
	assert_true(held(other));
	assert_int_equal(p->f->dev.turns, FAIR_QUANTUM_NS);
	engine_turn(&p->engine);
	/* 16 queue pairs, each of which takes less than the least time that counts */
	assert_int_equal(other->dev.credit,
			 -FAIR_DEBT_NS + 16 * FAIR_TURN_NS / FAIR_QUANTUM_NS * FAIR_QUANTUM_NS);
	function_free(other);
}

#define FLOWS		60u
#define FLOOD_NS	21000

/* Keep WRITEs of @qp in flight, and run the engine. @sent is their number. */
static void write_on(struct inproc *p, struct host_qp *qp, uint64_t buf, uint32_t key,
		     uint32_t *sent)
{
	struct ornic_cqe cqe;

	for (; *sent < FLOWS; ++*sent)
		host_send(qp, ORNIC_WR_RDMA_WRITE, buf, 64, key, buf + 4096, key);
	engine_turn(&p->engine);
	while (host_next(&p->cq, &cqe))
		--*sent;
}

/* Commands of a function, each longer than a round, are always waiting. Return true if one was run. */
static bool flood(struct function *f)
{
	if (!fair_may(&f->dev))
		return false;
	f->dev.credit -= FLOOD_NS;
	return true;
}

/*
 * The commands of a function whose queue pairs are always busy do not wait for those of another one
 * that floods. Neither takes the other's time.
 */
static void test_busy_beside_flood(void **state)
{
	struct inproc *p = *state;
	uint64_t buf = dma_alloc(&p->host.dma, 8192, 4096);
	struct function *other = other_function(p);
	uint32_t key, sent = 0, commands = 0, waits = 0;
	struct host_qp qp;

	assert_int_equal(host_key_create(&p->host, p->pd, buf, 8192,
					 ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE,
					 &key), 0);
	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 6, p->pd, p->cq.number,
					p->cq.number), 0);
	inproc_connect_self(p, &qp);
	for (int i = 0; i < 5000; i++) {
		commands += flood(other);
		waits += held(p->f);
		write_on(p, &qp, buf, key, &sent);
	}
	assert_in_range(commands, 50, 4999);
	/* a page fault or an interrupt of the machine can use up the time of a round */
	assert_in_range(waits, 0, 10);
	/* it goes on, however long its queue pairs have worked */
	p->f->dev.turns = -FAIR_DEBT_NS;
	submit(p, ORNIC_OP_NOP, 0, NULL, 0);
	flood(other);
	function_work(p->f);
	assert_true(completed(p));
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	function_free(other);
	while (sent) {
		struct ornic_cqe cqe;

		engine_turn(&p->engine);
		sent -= host_next(&p->cq, &cqe);
	}
}

/** struct rearmed - a timer that is always due */
struct rearmed {
	struct timer timer;
	struct timers *timers;
	uint32_t *calls;
};

static void rearm(void *arg)
{
	struct rearmed *r = arg;

	++*r->calls;
	timer_arm(r->timers, &r->timer, 1);
}

/* The timers of a function do not wait for the thousands of another one. */
static void test_timers_of_another(void **state)
{
	struct inproc *p = *state;
	struct function *other = other_function(p);
	static struct rearmed many[4000];
	struct rearmed mine = { .timers = &p->f->dev.timers };
	uint32_t others = 0, own = 0;

	mine.timer = (struct timer) { .fn = rearm, .arg = &mine };
	mine.calls = &own;
	assert_int_equal(timers_reserve(&other->dev.timers, 4000), 0);
	assert_int_equal(timers_reserve(&p->f->dev.timers, 1), 0);
	for (int i = 0; i < 4000; i++) {
		many[i] = (struct rearmed) { { .fn = rearm, .arg = &many[i] },
					     &other->dev.timers, &others };
		timer_arm(many[i].timers, &many[i].timer, 1);
	}
	timer_arm(mine.timers, &mine.timer, 2);
	for (uint32_t i = 1; i < 10; i++) {
		assert_int_equal(engine_turn(&p->engine), 0);
		assert_int_equal(others, i * TIMERS_BATCH);
		assert_true(own >= i);
	}
	timer_disarm(mine.timers, &mine.timer);
	timers_unreserve(mine.timers, 1);
	function_free(other);
}

#define HELD_CQS	1000

/*
 * An event queue looks through the CQs whose events are held in turns. An event that the host makes
 * possible meanwhile is written.
 */
static void test_held_events(void **state)
{
	struct inproc *p = *state;
	struct eq *eq = table_get(&p->f->dev.eqs, p->eq1.number);
	static struct cq cq[HELD_CQS];
	const uint32_t begin = eq->prod, entries = 1u << eq->log;
	struct ornic_rec *rec = dma_at(&p->host.dma, p->eq1.rec);
	uint32_t turns = 0;

	/* each CQ has an event that the host has not read, and another one */
	eq->prod++;
	for (int i = 0; i < HELD_CQS; i++) {
		cq[i] = (struct cq) { .dev = eq->dev, .eq = eq, .number = i, .evented = true,
				      .event_at = begin };
		eq_completion(eq, &cq[i], 1);
		assert_true(cq[i].held);
	}
	assert_int_equal(eq->nheld, HELD_CQS);
	assert_int_equal(engine_turn(&p->engine), 0);
	assert_int_equal(eq->left, HELD_CQS - 256);
	/* the host reads it, after some were looked at */
	rec->host_index = htole32(eq->prod);
	while (!engine_turn(&p->engine) && turns < 100)
		turns++;
	assert_in_range(turns, 1, 20);
	assert_int_equal(eq->prod - begin, 1 + (entries < HELD_CQS ? entries : HELD_CQS));
	for (int i = 0; i < HELD_CQS; i++)
		eq_forget(eq, &cq[i]);
	assert_int_equal(eq->nheld, 0);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, inproc_setup_ready, inproc_teardown)
	const struct CMUnitTest tests[] = {
		T(test_create), T(test_event), T(test_destroy), T(test_faster_than_freed),
		T(test_misaligned), T(test_reset),
		cmocka_unit_test(test_list_changes), T(test_window_meanwhile), T(test_ring),
		T(test_counter_sets),
		T(test_teardown), T(test_teardown_again), T(test_teardown_fatal),
		T(test_teardown_free), T(test_retire), T(test_ring_all),
		T(test_windows), T(test_watched), T(test_failed_cq), T(test_xrc_srq),
		T(test_rounds), T(test_charges), T(test_turns), T(test_busy_beside_flood),
		T(test_timers_of_another), T(test_held_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
