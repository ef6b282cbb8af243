// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation of each admin command fails once: the command reports NO_RESOURCE and leaves no
 * partial object, and the same command succeeds afterwards. The sanitizer looks for leaks. Each
 * command that creates an object also fails once because no number is free.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/mr.h"
#include "engine/pagelist.h"
#include "lib/failing.h"
#include "lib/inproc.h"

#include <ornic/dm.h>
#include <ornic/pd.h>
#include <ornic/srq.h>
#include <ornic/steer.h>
#include <endian.h>

#define MOST_FAILURES	50	/* more than any command allocates */

/* One page more than fits a list on the heap */
#define MANY_PAGES	(PAGELIST_PIECE / sizeof(uint64_t) + 1)

/** struct fixture - a device with one object of each kind that commands name */
struct fixture {
	struct inproc *p;
	uint64_t ring;
	uint64_t record;
	uint64_t many;		/* page list */
	uint32_t cq;
	uint32_t srq;
	uint32_t key;
	struct host_qp ud;
	struct host_qp raw;
};

/** struct command_test - a command, and the command that undoes it, 0 if it changes an object */
struct command_test {
	const char *name;
	uint16_t opcode;
	uint16_t undo;
	uint32_t (*fill)(struct fixture *f, void *cmd, uint16_t *len);	/* Return: number */
};

static uint32_t fill_eq(struct fixture *f, void *cmd, uint16_t *len)
{
	*(struct ornic_eq_create_cmd *)cmd = (struct ornic_eq_create_cmd) {
		.log_entries = 4, .vector = htole16(2), .record = htole64(f->record),
		.pages = host_contiguous(f->ring), .classes = htole64(ORNIC_EQ_COMPLETION),
	};
	*len = sizeof(struct ornic_eq_create_cmd);
	return 0;
}

static uint32_t fill_pd(struct fixture *f, void *cmd, uint16_t *len)
{
	(void)f;
	(void)cmd;
	*len = sizeof(struct ornic_pd_create_cmd);
	return 0;
}

static uint32_t fill_none(struct fixture *f, void *cmd, uint16_t *len)
{
	(void)f;
	(void)cmd;
	*len = 0;
	return 0;
}

static uint32_t fill_key(struct fixture *f, void *cmd, uint16_t *len)
{
	*(struct ornic_key_create_cmd *)cmd = (struct ornic_key_create_cmd) {
		.pd = htole32(f->p->pd), .access = htole32(ORNIC_ACCESS_LOCAL_WRITE),
		.iova = htole64(0x10000), .length = htole64(8192),
		.pages = host_contiguous(INPROC_BASE),
	};
	*len = sizeof(struct ornic_key_create_cmd);
	return 0;
}

static uint32_t fill_remote_key(struct fixture *f, void *cmd, uint16_t *len)
{
	struct ornic_key_create_cmd *c = cmd;

	fill_key(f, cmd, len);
	c->access |= htole32(ORNIC_ACCESS_REMOTE_READ);
	return 0;
}

static uint32_t fill_large_key(struct fixture *f, void *cmd, uint16_t *len)
{
	struct ornic_key_create_cmd *c = cmd;

	fill_key(f, cmd, len);
	c->length = htole64(MANY_PAGES * 4096);
	c->pages = (struct ornic_pages) {
		.addr = htole64(f->many), .page_shift = 12, .level = 1,
	};
	return 0;
}

static uint32_t fill_window(struct fixture *f, void *cmd, uint16_t *len)
{
	*(struct ornic_key_create_cmd *)cmd = (struct ornic_key_create_cmd) {
		.kind = ORNIC_KEY_MW1, .pd = htole32(f->p->pd),
	};
	*len = sizeof(struct ornic_key_create_cmd);
	return 0;
}

static uint32_t fill_rereg(struct fixture *f, void *cmd, uint16_t *len)
{
	*(struct ornic_key_modify_cmd *)cmd = (struct ornic_key_modify_cmd) {
		.mask = htole32(ORNIC_KEYM_TRANSLATION),
		.attr = {
			.iova = htole64(0x20000), .length = htole64(8192),
			.pages = host_contiguous(INPROC_BASE),
		},
	};
	*len = sizeof(struct ornic_key_modify_cmd);
	return f->key;
}

static uint32_t fill_dm(struct fixture *f, void *cmd, uint16_t *len)
{
	(void)f;
	*(struct ornic_dm_create_cmd *)cmd = (struct ornic_dm_create_cmd) {
		.bytes = htole64(5000),
	};
	*len = sizeof(struct ornic_dm_create_cmd);
	return 0;
}

static uint32_t fill_cq(struct fixture *f, void *cmd, uint16_t *len)
{
	*(struct ornic_cq_create_cmd *)cmd = (struct ornic_cq_create_cmd) {
		.log_entries = 4, .eq = htole32(f->p->eq1.number), .dbpage = htole32(1),
		.record = htole64(f->record), .pages = host_contiguous(f->ring),
	};
	*len = sizeof(struct ornic_cq_create_cmd);
	return 0;
}

static uint32_t fill_cq_resize(struct fixture *f, void *cmd, uint16_t *len)
{
	*(struct ornic_cq_resize_cmd *)cmd = (struct ornic_cq_resize_cmd) {
		.log_entries = 5, .record = htole64(f->record),
		.pages = host_contiguous(f->ring),
	};
	*len = sizeof(struct ornic_cq_resize_cmd);
	return f->cq;
}

static uint32_t fill_srq(struct fixture *f, void *cmd, uint16_t *len)
{
	*(struct ornic_srq_create_cmd *)cmd = (struct ornic_srq_create_cmd) {
		.log_entries = 4, .stride = 6, .pd = htole32(f->p->pd), .dbpage = htole32(1),
		.max_sge = htole16(3), .record = htole64(f->record),
		.pages = host_contiguous(f->ring),
	};
	*len = sizeof(struct ornic_srq_create_cmd);
	return 0;
}

static uint32_t fill_srq_resize(struct fixture *f, void *cmd, uint16_t *len)
{
	*(struct ornic_srq_resize_cmd *)cmd = (struct ornic_srq_resize_cmd) {
		.log_entries = 5, .record = htole64(f->record),
		.pages = host_contiguous(f->ring),
	};
	*len = sizeof(struct ornic_srq_resize_cmd);
	return f->srq;
}

static uint32_t fill_qp(struct fixture *f, void *cmd, uint16_t *len)
{
	*(struct ornic_qp_create_cmd *)cmd = (struct ornic_qp_create_cmd) {
		.type = ORNIC_QPT_RC, .transport = ORNIC_TP_ROCEV2, .pd = htole32(f->p->pd),
		.send_cq = htole32(f->cq), .recv_cq = htole32(f->cq),
		.srq = htole32(ORNIC_NONE), .dbpage = htole32(1), .sq_log = 4, .sq_stride = 8,
		.rq_log = 4, .rq_stride = 8, .max_send_sge = htole16(4),
		.max_recv_sge = htole16(4), .sq_record = htole64(f->record),
		.rq_record = htole64(f->record + sizeof(struct ornic_rec)),
		.sq_pages = host_contiguous(f->ring),
		.rq_pages = host_contiguous(f->ring + 4096),
	};
	*len = sizeof(struct ornic_qp_create_cmd);
	return 0;
}

static uint32_t fill_rule(struct fixture *f, void *cmd, uint16_t *len)
{
	*(struct ornic_rule_cmd *)cmd = (struct ornic_rule_cmd) {
		.kind = ORNIC_RULE_UNICAST, .port = 1, .target = htole32(f->raw.number),
	};
	*len = sizeof(struct ornic_rule_cmd);
	return 0;
}

static uint32_t fill_member(struct fixture *f, void *cmd, uint16_t *len)
{
	static const uint8_t group[16] = { 0xff, 0x0e, [15] = 1 };
	struct ornic_rule_cmd *c = cmd;

	*c = (struct ornic_rule_cmd) {
		.kind = ORNIC_RULE_MEMBER, .port = 1, .target = htole32(f->ud.number),
	};
	memcpy((uint8_t *)&c->value + ORNIC_MEMBER_GID, group, sizeof(group));
	*len = sizeof(*c);
	return 0;
}

static uint32_t fill_rss(struct fixture *f, void *cmd, uint16_t *len)
{
	*(struct ornic_rss_create_cmd *)cmd = (struct ornic_rss_create_cmd) {
		.function = ORNIC_RSS_TOEPLITZ, .port = 1,
		.table = { htole32(f->raw.number) },
	};
	*len = sizeof(struct ornic_rss_create_cmd);
	return 0;
}

#define CREATE(kind, fill)	\
	{ #kind, ORNIC_OP_##kind##_CREATE, ORNIC_OP_##kind##_DESTROY, fill }
#define CHANGE(op, fill)	{ #op, ORNIC_OP_##op, 0, fill }

static const struct command_test commands[] = {
	CREATE(EQ, fill_eq),
	CREATE(PD, fill_pd),
	CREATE(XRCD, fill_pd),
	CREATE(COUNTER, fill_none),
	CREATE(KEY, fill_key),
	CREATE(KEY, fill_remote_key),
	CREATE(KEY, fill_large_key),
	CREATE(KEY, fill_window),
	CREATE(DM, fill_dm),
	CREATE(CQ, fill_cq),
	CREATE(SRQ, fill_srq),
	CREATE(QP, fill_qp),
	CREATE(RULE, fill_rule),
	CREATE(RULE, fill_member),
	CREATE(RSS, fill_rss),
	CHANGE(KEY_MODIFY, fill_rereg),
	CHANGE(CQ_RESIZE, fill_cq_resize),
	CHANGE(SRQ_RESIZE, fill_srq_resize),
};

/** struct tally - resources that a command may allocate, and must free when it fails */
struct tally {
	uint32_t used[12];
	uint32_t users[8];
	uint32_t timers;
	uint64_t entries;
	uint64_t memory;
	uint64_t dm_used;
};

static struct tally tally(struct fixture *f)
{
	struct function *fn = f->p->f;
	struct device *dev = &fn->dev;
	const struct cq *cq = table_get(&dev->cqs, f->cq);
	const struct qp *raw = table_get(&dev->qps, f->raw.number);
	const struct qp *ud = table_get(&dev->qps, f->ud.number);
	const struct mr *key = table_get(&dev->keys, f->key >> ORNIC_KEY_TAG_BITS);

	return (struct tally) {
		.used = {
			dev->eqs.used, dev->pds.used, dev->keys.used, dev->cqs.used,
			dev->xrcds.used, dev->srqs.used, dev->qps.used, dev->sets.used,
			dev->rules.used, dev->groups.used, fn->dms.used, dev->mcast.groups,
		},
		.users = {
			((struct pd *)table_get(&dev->pds, f->p->pd))->users, cq->users, cq->log,
			raw->rules, ud->memberships, key->iova, dev->mcast.number.used,
		},
		.timers = dev->timers.cap,
		.entries = dev->lists.left + dev->lists.waiting,
		.memory = dev->account.used - 8 * dev->lists.waiting,
		.dm_used = fn->dm_used,
	};
}

/* Check that command @name, which failed because of @why, left nothing. */
static void same(struct fixture *f, const struct tally *before, const char *name, const char *why)
{
	struct tally now = tally(f);

	if (memcmp(before->used, now.used, sizeof(now.used)) ||
	    memcmp(before->users, now.users, sizeof(now.users)) ||
	    before->timers != now.timers || before->entries != now.entries ||
	    before->memory != now.memory || before->dm_used != now.dm_used)
		fail_msg("%s leaves something: %s", name, why);
}

static int setup(void **state)
{
	static struct fixture f;
	uint8_t cmd[ORNIC_ADMIN_MAX_PAYLOAD];
	struct ornic_qp_create_cmd raw;
	struct host *h;
	uint16_t len;
	void *p;

	inproc_setup_ready(&p);
	f = (struct fixture) { .p = p, .cq = ((struct inproc *)p)->cq.number };
	h = &f.p->host;
	f.ring = dma_alloc(&h->dma, 16384, 4096);
	f.record = dma_alloc(&h->dma, 2 * sizeof(struct ornic_rec), 64);
	f.many = dma_alloc(&h->dma, MANY_PAGES * sizeof(uint64_t), 4096);
	fill_key(&f, cmd, &len);
	assert_int_equal(host_exec(h, ORNIC_OP_KEY_CREATE, 0, cmd, len, NULL, 0), ORNIC_ST_OK);
	f.key = host_number(h);
	fill_srq(&f, cmd, &len);
	assert_int_equal(host_exec(h, ORNIC_OP_SRQ_CREATE, 0, cmd, len, NULL, 0), ORNIC_ST_OK);
	f.srq = host_number(h);
	assert_int_equal(host_qp_create(h, &f.ud, ORNIC_QPT_UD, 4, f.p->pd, f.cq, f.cq), 0);
	host_qp_template(h, &f.raw, ORNIC_QPT_RAW, 4, f.p->pd, f.cq, f.cq, &raw);
	raw.flags = htole32(ORNIC_QP_F_DRIVER);
	assert_int_equal(host_exec(h, ORNIC_OP_QP_CREATE, 0, &raw, sizeof(raw), NULL, 0), 0);
	f.raw.number = host_number(h);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	void *p = f->p;

	return inproc_teardown(&p);
}

/* Fill up the timers, so that the command must extend them. */
static uint32_t fill_up(struct timers *ts)
{
	uint32_t n = ts->room - ts->cap;

	assert_int_equal(timers_reserve(ts, n), 0);
	return n;
}

static void try_command(struct fixture *f, const struct command_test *t)
{
	struct timers *timers = &f->p->f->dev.timers;
	uint8_t cmd[ORNIC_ADMIN_MAX_PAYLOAD] = { 0 }, out[64];
	struct host *h = &f->p->host;
	uint16_t len;
	uint32_t number = t->fill(f, cmd, &len), failures, filled;
	uint16_t out_len = t->opcode == ORNIC_OP_DM_CREATE || t->opcode == ORNIC_OP_CQ_RESIZE ?
			   16 : 0;
	struct tally before;
	bool failed;
	int st;

	for (failures = 0; failures < MOST_FAILURES; failures++) {
		filled = fill_up(timers);
		before = tally(f);
		failing_begin(FAILING_MEMORY, ENOMEM, failures);
		st = host_exec(h, t->opcode, number, cmd, len, out_len ? out : NULL, out_len);
		failed = failing_end();
		timers_unreserve(timers, filled);
		if (st != ORNIC_ST_NO_RESOURCE)
			break;
		before.timers -= filled;
		if (!failed)
			fail_msg("%s: NO_RESOURCE with memory", t->name);
		same(f, &before, t->name, "an allocation failed");
	}
	if (st != ORNIC_ST_OK || failed || !failures)
		fail_msg("%s: status %d after %u failures", t->name, st, failures);
	if (t->undo)
		assert_int_equal(host_exec(h, t->undo, host_number(h), NULL, 0, NULL, 0),
				 ORNIC_ST_OK);
}

/* ORN-IDN-2: the command creates an object, and all tables are full. */
static void try_full(struct fixture *f, const struct command_test *t)
{
	struct function *fn = f->p->f;
	struct device *dev = &fn->dev;
	struct table *table[] = {
		&dev->eqs, &dev->pds, &dev->keys, &dev->cqs, &dev->xrcds, &dev->srqs, &dev->qps,
		&dev->sets, &dev->rules, &dev->groups, &fn->dms, &dev->mcast.number,
	};
	const size_t tables = sizeof(table) / sizeof(table[0]);
	uint8_t cmd[ORNIC_ADMIN_MAX_PAYLOAD] = { 0 }, out[16];
	struct tally before = tally(f);
	struct table old[12];
	uint16_t len;
	uint32_t number = t->fill(f, cmd, &len);
	int st;

	for (size_t i = 0; i < tables; i++) {
		old[i] = *table[i];
		table[i]->max = table[i]->cap;
		table[i]->used = table[i]->cap;
	}
	st = host_exec(&f->p->host, t->opcode, number, cmd, len, out, sizeof(out));
	for (size_t i = 0; i < tables; i++) {
		table[i]->max = old[i].max;
		table[i]->used = old[i].used;
		assert_memory_equal(table[i], &old[i], sizeof(old[i]));
	}
	if (st != ORNIC_ST_LIMIT)
		fail_msg("%s: status %d if no number is free", t->name, st);
	same(f, &before, t->name, "no number is free");
}

static void test_commands(void **state)
{
	struct fixture *f = *state;
	uint64_t *page = dma_at(&f->p->host.dma, f->many);

	for (uint32_t i = 0; i < MANY_PAGES; i++)
		page[i] = htole64(INPROC_BASE);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		try_command(f, &commands[i]);
}

static void test_full(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].undo)
			try_full(f, &commands[i]);
}

/* ORN-ADM-16: the first key makes the table of keys grow; a key without a number counts no pages */
static void test_first_key(void **state)
{
	struct fixture *f = *state;
	struct device *dev = &f->p->f->dev;
	struct ornic_key_create_cmd cmd;
	struct host *h = &f->p->host;
	uint32_t failures = 0;
	uint64_t pages;
	uint16_t len;
	int st;

	assert_int_equal(host_exec(h, ORNIC_OP_KEY_DESTROY, f->key, NULL, 0, NULL, 0), ORNIC_ST_OK);
	table_fini(&dev->keys);
	pages = dev->cnt[CNT_key_pages];
	fill_remote_key(f, &cmd, &len);
	for (;; failures++) {
		failing_begin(FAILING_MEMORY, ENOMEM, failures);
		st = host_exec(h, ORNIC_OP_KEY_CREATE, 0, &cmd, len, NULL, 0);
		failing_end();
		if (st != ORNIC_ST_NO_RESOURCE)
			break;
		assert_int_equal(dev->cnt[CNT_key_pages], pages);
		assert_true(failures < MOST_FAILURES);
	}
	assert_int_equal(st, ORNIC_ST_OK);
	assert_true(failures > 2);
	assert_int_equal(dev->cnt[CNT_key_pages], pages + 1);
}

/*
 * Events without room wait in memory. Without memory, the oldest waiting object gets an event
 * about the loss.
 */
static void test_event(void **state)
{
	struct fixture *f = *state;
	struct eq *eq = table_get(&f->p->f->dev.eqs, 0);
	struct ornic_eqe e;

	for (uint32_t i = 0; i < 256; i++)
		eq_event(eq, ORNIC_EV_SRQ_LIMIT, i, 0, 0, 0, 0);
	eq_event(eq, ORNIC_EV_SRQ_LIMIT, 1000, 0, 0, 0, 0);
	failing_begin(FAILING_MEMORY, ENOMEM, 0);
	eq_event(eq, ORNIC_EV_SRQ_LIMIT, 2000, 0, 0, 0, 0);
	assert_true(failing_end());
	assert_int_equal(eq->lost, 1);
	for (uint32_t i = 0; i < 256; i++)
		assert_true(host_wait(&f->p->eq0, &e));
	assert_true(host_wait(&f->p->eq0, &e));
	assert_int_equal(le32toh(e.number), 1000);
}

/* ---- the device itself ------------------------------------------------------------- */

static void test_function(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	struct fixture *f = *state;
	struct engine *e = &f->p->engine;
	struct function *fn;
	uint32_t failures;
	int err;

	for (failures = 0; failures < MOST_FAILURES; failures++) {
		failing_begin(FAILING_MEMORY, ENOMEM, failures);
		fn = function_new(e, "another", mac, 0, &err);
		failing_end();
		if (fn)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_null(switch_port_find(e->sw, "another"));
	}
	assert_true(fn && failures > 3);
	assert_int_equal(fn->dev.timers.cap, 2);
	function_free(fn);
	assert_null(function_new(e, "another", f->p->f->dev.port.mac, 0, &err));
	assert_int_equal(err, -EEXIST);
}

static void test_engine(void **state)
{
	uint32_t failures;

	(void)state;
	for (failures = 0; failures < MOST_FAILURES; failures++) {
		struct engine e;
		int err;

		failing_begin(FAILING_MEMORY, ENOMEM, failures);
		err = engine_init(&e, 0);
		failing_end();
		if (!err) {
			engine_fini(&e);
			break;
		}
		assert_int_equal(err, -ENOMEM);
	}
	assert_true(failures > 1 && failures < MOST_FAILURES);
}

static void test_endpoint(void **state)
{
	struct fixture *f = *state;
	struct vfu_func func = f->p->f->vfu;
	uint32_t failures;
	int err = -ENOMEM;

	for (failures = 0; err; failures++) {
		struct vfu_endpoint ep;

		assert_true(failures < MOST_FAILURES);
		failing_begin(FAILING_MEMORY, ENOMEM, failures);
		err = endpoint_init(&ep, &func);
		failing_end();
		if (err)
			assert_int_equal(err, -ENOMEM);
		else
			endpoint_destroy(&ep);
	}
	assert_true(failures > 2);
}

static void test_map(void **state)
{
	struct fixture *f = *state;
	struct gpa *g = gpa_new(NULL);
	uint32_t failures;
	int err = -ENOMEM;

	for (failures = 0; err; failures++) {
		assert_true(failures < MOST_FAILURES);
		failing_begin(FAILING_MEMORY, ENOMEM, failures);
		err = gpa_map(g, 0x1000, 4096, GPA_READ, f->p->host.dma.fd, 0);
		failing_end();
		if (err) {
			assert_int_equal(err, -ENOMEM);
			assert_null(gpa_ptr(g, 0x1000, 1, false));
		}
	}
	assert_true(failures > 2);
	assert_non_null(gpa_ptr(g, 0x1000, 4096, false));
	gpa_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_commands, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first_key, setup, teardown),
		cmocka_unit_test_setup_teardown(test_event, setup, teardown),
		cmocka_unit_test_setup_teardown(test_function, setup, teardown),
		cmocka_unit_test(test_engine),
		cmocka_unit_test_setup_teardown(test_endpoint, setup, teardown),
		cmocka_unit_test_setup_teardown(test_map, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
