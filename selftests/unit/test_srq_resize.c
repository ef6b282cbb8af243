// SPDX-License-Identifier: GPL-2.0
/*
 * SRQ_RESIZE: entries are taken in order across the change of rings; the limit; rejected
 * commands. Entries are taken directly by engine/srq.c, the command is complete.
 */
#define _GNU_SOURCE 1	/* memfd_create() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"
#include "engine/srq.h"

#include <endian.h>
#include <errno.h>
#include <ornic/srq.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOG	3
#define STRIDE	6
#define READ_ONLY	0x300000000ull	/* guest address of memory that the device may only read */

/* A ring and its record, as the host sees them. */
struct place {
	uint64_t ring;
	uint64_t rec;
	uint8_t log;
};

/* An SRQ on a device that is up; with a second place, receives are posted to both. */
struct fixture {
	struct inproc *p;
	struct place at;
	struct place *coming;
	uint32_t number;
	struct srq *dev;
	uint32_t posted;
	uint32_t taken;
};

static struct place new_place(struct fixture *f, uint8_t log)
{
	return (struct place){
		.ring = dma_alloc(&f->p->host.dma, 1ull << (log + STRIDE), 4096),
		.rec = host_record(&f->p->host),
		.log = log,
	};
}

static struct ornic_rwqe *entry(struct fixture *f, const struct place *at, uint32_t index)
{
	uint32_t slot = index & ((1u << at->log) - 1);

	return dma_at(&f->p->host.dma, at->ring + ((uint64_t)slot << STRIDE));
}

static struct ornic_rec *record(struct fixture *f, const struct place *at)
{
	return dma_at(&f->p->host.dma, at->rec);
}

static int setup(void **state)
{
	static struct fixture f;
	struct ornic_srq_create_cmd cmd;
	void *p;

	inproc_setup_ready(&p);
	f = (struct fixture){ .p = p };
	f.at = new_place(&f, LOG);
	cmd = (struct ornic_srq_create_cmd){
		.log_entries = LOG, .stride = STRIDE, .pd = htole32(f.p->pd),
		.dbpage = htole32(1), .max_sge = htole16(3), .record = htole64(f.at.rec),
		.pages = host_contiguous(f.at.ring),
	};
	assert_int_equal(host_exec(&f.p->host, ORNIC_OP_SRQ_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 0);
	f.number = host_number(&f.p->host);
	f.dev = table_get(&f.p->f->dev.srqs, f.number);
	assert_non_null(f.dev);
	assert_int_equal(le32toh(record(&f, &f.at)->notify), ORNIC_NOTIFY_INDEX);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	void *p = f->p;

	return inproc_teardown(&p);
}

static void publish(struct fixture *f, const struct place *at)
{
	*entry(f, at, f->posted) = (struct ornic_rwqe){ .id = htole32(1000 + f->posted) };
	record(f, at)->host_index = htole32(f->posted + 1);
}

/* ORN-SRQ-18: the new place first. */
static void post(struct fixture *f, uint32_t n)
{
	while (n--) {
		if (f->coming)
			publish(f, f->coming);
		publish(f, &f->at);
		f->posted++;
	}
}

/* Check that the next @n entries are those that were posted next, in order. */
static void take(struct fixture *f, uint32_t n)
{
	struct ornic_rwqe rwqe[(1 << STRIDE) / sizeof(struct ornic_rwqe)];

	while (n--) {
		assert_int_equal(srq_take(f->dev, (uint8_t *)rwqe), 1);
		assert_int_equal(le32toh(rwqe[0].id), 1000 + f->taken++);
	}
}

static void no_more(struct fixture *f)
{
	uint8_t bytes[1 << STRIDE];

	assert_int_equal(srq_take(f->dev, bytes), 0);
}

/* ORN-SRQ-17, ORN-SRQ-25: copy the newest entries, as many as fit both rings. */
static void prepare(struct fixture *f, const struct place *to)
{
	uint32_t log = to->log < f->at.log ? to->log : f->at.log;

	for (uint32_t n = 0; n < 1u << log; n++)
		*entry(f, to, f->posted - n - 1) = *entry(f, &f->at, f->posted - n - 1);
	record(f, to)->host_index = htole32(f->posted);
}

static struct ornic_srq_resize_cmd resize_cmd(const struct place *to)
{
	return (struct ornic_srq_resize_cmd){
		.log_entries = to->log, .record = htole64(to->rec),
		.pages = host_contiguous(to->ring),
	};
}

static int resize(struct fixture *f, const struct ornic_srq_resize_cmd *cmd)
{
	return host_exec(&f->p->host, ORNIC_OP_SRQ_RESIZE, f->number, cmd, sizeof(*cmd), NULL, 0);
}

/* The old place is made unusable: the device does not read it any more (ORN-SRQ-23). */
static void resize_to(struct fixture *f, uint8_t log)
{
	struct place to = new_place(f, log);
	struct ornic_srq_resize_cmd cmd = resize_cmd(&to);

	prepare(f, &to);
	assert_int_equal(resize(f, &cmd), ORNIC_ST_OK);
	memset(entry(f, &f->at, 0), 0xff, 1u << (f->at.log + STRIDE));
	memset(record(f, &f->at), 0xff, sizeof(struct ornic_rec));
	f->at = to;
}

#define FIELD(member)	(ORNIC_SYN_FIELD | offsetof(struct ornic_srq_resize_cmd, member))

static void refused(struct fixture *f, const struct ornic_srq_resize_cmd *cmd, uint8_t status,
		    uint32_t syndrome)
{
	uint64_t budget = f->p->f->dev.lists.left;

	assert_int_equal(resize(f, cmd), status);
	assert_int_equal(le32toh(f->p->host.cpl.syndrome), syndrome);
	assert_int_equal(f->p->f->dev.lists.left, budget);
}

static uint32_t limit_events(struct fixture *f)
{
	struct ornic_eqe eqe;
	uint32_t n = 0;

	inproc_turn(f->p);
	while (host_next(&f->p->eq0, &eqe)) {
		assert_int_equal(eqe.type, ORNIC_EV_SRQ_LIMIT);
		assert_int_equal(le32toh(eqe.number), f->number);
		n++;
	}
	return n;
}

/* ORN-SRQ-22, ORN-SRQ-23: larger, with entries on both sides of the old ring's end */
static void test_grow(void **state)
{
	struct fixture *f = *state;

	post(f, 8);
	take(f, 6);
	post(f, 5);
	resize_to(f, 6);
	/* No SRQ needs a doorbell (ORN-RNG-7). */
	assert_int_equal(le32toh(record(f, &f->at)->notify), f->taken - 1);
	take(f, 2);
	post(f, 59);
	take(f, 64);
	no_more(f);
	resize_to(f, 6);
	post(f, 64);
	take(f, 64);
	no_more(f);
}

/* ORN-SRQ-20, ORN-SRQ-22: smaller, down to one entry, in any lap */
static void test_shrink(void **state)
{
	struct fixture *f = *state;

	for (uint32_t lap = 0; lap < 5; lap++) {
		post(f, 7);
		take(f, 5);
		resize_to(f, 1);
		take(f, 1);
		post(f, 1);
		take(f, 1);
		resize_to(f, 0);
		take(f, 1);
		post(f, 1);
		resize_to(f, LOG);
		post(f, 7);
		take(f, 8);
		no_more(f);
	}
}

/* ORN-SRQ-18: receives posted to both rings are found, before and after the device changes over */
static void test_post_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct place to = new_place(f, LOG + 1);
	struct ornic_srq_resize_cmd cmd = resize_cmd(&to);

	post(f, 3);
	prepare(f, &to);
	f->coming = &to;
	post(f, 2);
	take(f, 4);
	assert_int_equal(resize(f, &cmd), ORNIC_ST_OK);
	post(f, 2);
	take(f, 3);
	no_more(f);
	f->coming = NULL;
	f->at = to;
	post(f, 16);
	take(f, 16);
	/* published only in the new record so far, which is sufficient (ORN-SRQ-22) */
	to = new_place(f, LOG);
	cmd = resize_cmd(&to);
	prepare(f, &to);
	publish(f, &to);
	assert_int_equal(resize(f, &cmd), ORNIC_ST_OK);
	f->posted++;
	take(f, 1);
	no_more(f);
}

/* ORN-SRQ-20, ORN-SRQ-23, ORN-ADM-16: rejected, and the old ring stays in use */
static void test_refused(void **state)
{
	struct fixture *f = *state;
	struct place small = new_place(f, 2), same = new_place(f, LOG);
	struct ornic_srq_resize_cmd good = resize_cmd(&same), bad;
	int fd = memfd_create("record", MFD_CLOEXEC);

	post(f, 5);
	take(f, 2);
	prepare(f, &same);
	bad = good;
	bad.log_entries = LIMIT_LOG_SRQ + 1;
	refused(f, &bad, ORNIC_ST_LIMIT, FIELD(log_entries));
	bad = good;
	bad.log_entries = 0xff;
	refused(f, &bad, ORNIC_ST_LIMIT, FIELD(log_entries));
	bad = good;
	bad.flags = 2;
	refused(f, &bad, ORNIC_ST_RESERVED, FIELD(flags));
	bad = good;
	bad.mbz = htole16(1);
	refused(f, &bad, ORNIC_ST_RESERVED, FIELD(mbz));
	bad.flags = ORNIC_SRQ_RESIZE_LIMIT;
	refused(f, &bad, ORNIC_ST_RESERVED, FIELD(mbz));
	bad = good;
	bad.limit = htole32(1);
	refused(f, &bad, ORNIC_ST_RESERVED, FIELD(limit));
	bad = good;
	bad.record = htole64(64);
	refused(f, &bad, ORNIC_ST_DMA_ERROR, FIELD(record));
	/* the device writes to the record, so its memory must permit that */
	bad.record = htole64(READ_ONLY);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(gpa_map(f->p->ep.gpa, READ_ONLY, 4096, GPA_READ, fd, 0), 0);
	close(fd);
	refused(f, &bad, ORNIC_ST_DMA_ERROR, FIELD(record));
	bad = good;
	bad.record |= htole64(32);
	refused(f, &bad, ORNIC_ST_BAD_PARAM, FIELD(record));
	bad = good;
	bad.pages.offset = htole32(32);
	refused(f, &bad, ORNIC_ST_BAD_PARAM, FIELD(pages.offset));
	bad = good;
	bad.pages.addr = htole64(INPROC_BASE + INPROC_BYTES);
	bad.log_entries = LIMIT_LOG_SRQ;	/* the largest ring is only not there */
	refused(f, &bad, ORNIC_ST_DMA_ERROR, FIELD(pages));
	/* a record behind the entries that were taken, and one far ahead of them */
	record(f, &same)->host_index = htole32(1);
	refused(f, &good, ORNIC_ST_BAD_PARAM, FIELD(log_entries));
	record(f, &same)->host_index = htole32(2 + (1 << LOG) + 1);
	refused(f, &good, ORNIC_ST_BAD_PARAM, FIELD(log_entries));
	assert_int_equal(host_exec(&f->p->host, ORNIC_OP_SRQ_RESIZE, f->number + 1, &good,
				   sizeof(good), NULL, 0), ORNIC_ST_BAD_NUMBER);
	/* five are posted and not taken */
	post(f, 2);
	prepare(f, &small);
	good = resize_cmd(&small);
	refused(f, &good, ORNIC_ST_BAD_PARAM, FIELD(log_entries));
	assert_int_equal(le32toh(record(f, &small)->notify), ORNIC_NOTIFY_ALWAYS);
	take(f, 1);
	assert_int_equal(resize(f, &good), ORNIC_ST_OK);
	f->at = small;
	take(f, 4);
	no_more(f);
}

/* ORN-SRQ-20: a good ring does not repair an SRQ in error */
static void test_error(void **state)
{
	struct fixture *f = *state;
	struct place to = new_place(f, LOG);
	struct ornic_srq_resize_cmd cmd = resize_cmd(&to);
	uint8_t bytes[1 << STRIDE];

	record(f, &f->at)->host_index = htole32((1 << LOG) + 1);
	assert_int_equal(srq_take(f->dev, bytes), -EIO);
	refused(f, &cmd, ORNIC_ST_BAD_STATE, 0);
}

static void arm_limit(struct fixture *f, uint32_t limit)
{
	struct ornic_srq_modify_cmd cmd = {
		.mask = htole32(ORNIC_SRQM_LIMIT), .limit = htole32(limit),
	};

	assert_int_equal(host_exec(&f->p->host, ORNIC_OP_SRQ_MODIFY, f->number, &cmd, sizeof(cmd),
				   NULL, 0), 0);
}

/* ORN-SRQ-21, ORN-SRQ-24, ORN-SRQ-26 */
static void test_limit(void **state)
{
	struct fixture *f = *state;
	struct place to = new_place(f, 2);
	struct ornic_srq_resize_cmd cmd = resize_cmd(&to);

	post(f, 8);
	arm_limit(f, 6);
	/* an armed limit stays, and fires by entries of the new ring */
	resize_to(f, LOG + 1);
	assert_int_equal(f->dev->limit, 6);
	take(f, 2);
	assert_int_equal(limit_events(f), 0);
	post(f, 1);
	take(f, 1);
	assert_int_equal(limit_events(f), 0);
	take(f, 1);
	assert_int_equal(limit_events(f), 1);
	/* larger than the ring would be: the armed limit, the requested limit */
	take(f, 1);
	f->dev->limit = 6;	/* four are left, so that it would fire if it were armed now */
	prepare(f, &to);
	refused(f, &cmd, ORNIC_ST_BAD_PARAM, FIELD(log_entries));
	cmd.flags = ORNIC_SRQ_RESIZE_LIMIT;
	cmd.limit = htole32(5);
	refused(f, &cmd, ORNIC_ST_BAD_PARAM, FIELD(limit));
	assert_int_equal(f->dev->limit, 6);
	/* as large as the ring is not larger */
	f->dev->limit = 4;
	cmd = resize_cmd(&to);
	assert_int_equal(resize(f, &cmd), ORNIC_ST_OK);
	assert_int_equal(f->dev->limit, 4);
	f->at = to;
	to = new_place(f, 2);
	prepare(f, &to);
	cmd = resize_cmd(&to);
	cmd.flags = ORNIC_SRQ_RESIZE_LIMIT;
	/* both at once: four entries are left, and four are enough */
	cmd.limit = htole32(4);
	assert_int_equal(f->posted - f->taken, 4);
	assert_int_equal(resize(f, &cmd), ORNIC_ST_OK);
	f->at = to;
	assert_int_equal(limit_events(f), 0);
	take(f, 1);
	assert_int_equal(limit_events(f), 1);
	/* armed with too few: at once */
	to = new_place(f, LOG);
	cmd = resize_cmd(&to);
	cmd.flags = ORNIC_SRQ_RESIZE_LIMIT;
	cmd.limit = htole32(8);
	prepare(f, &to);
	assert_int_equal(resize(f, &cmd), ORNIC_ST_OK);
	assert_int_equal(limit_events(f), 1);
}

static void test_query(void **state)
{
	struct fixture *f = *state;
	struct ornic_srq_query_rsp q;
	uint64_t budget = f->p->f->dev.lists.left;

	post(f, 5);
	take(f, 2);
	resize_to(f, 5);
	assert_int_equal(host_exec(&f->p->host, ORNIC_OP_SRQ_QUERY, f->number, NULL, 0, &q,
				   sizeof(q)), 0);
	assert_int_equal(q.attr.log_entries, 5);
	assert_int_equal(le64toh(q.attr.record), f->at.rec);
	assert_int_equal(le64toh(q.attr.pages.addr), f->at.ring);
	assert_int_equal(le32toh(q.state.producer), 5);
	assert_int_equal(le32toh(q.state.consumer), 2);
	assert_int_equal(q.state.state, 0);
	assert_int_equal(f->p->f->dev.lists.left, budget);
	assert_int_equal(host_exec(&f->p->host, ORNIC_OP_SRQ_DESTROY, f->number, NULL, 0, NULL, 0),
			 0);
}

/* ORN-FEA-2 */
static void test_feature(void **state)
{
	struct inproc *p = *state;
	struct ornic_srq_resize_cmd cmd = { .log_entries = 1 };

	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(host_bring_up(&p->host, FEATURES & ~ORNIC_FEATURE(SRQ_RESIZE), &p->eq0,
				       &p->eq1), 0);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_SRQ_RESIZE, 1, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_UNSUPPORTED);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_grow), TEST(test_shrink), TEST(test_post_meanwhile), TEST(test_refused),
		TEST(test_error), TEST(test_limit), TEST(test_query),
		cmocka_unit_test_setup_teardown(test_feature, inproc_setup, inproc_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
