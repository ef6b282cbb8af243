// SPDX-License-Identifier: GPL-2.0
/*
 * RC over a network that loses, reorders, duplicates and damages packets by rule. With the rates
 * of the issue, each alone and all together, every operation completes once, in order and with
 * the right data. If no packet gets through, the queue pair gives up when its attributes say.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/fault_rule.h"
#include "lib/traffic.h"
#include "fault/fault.h"
#include "packet/bth.h"

#define LONG	1000000000000ull
#define BATCHES	25

static uint32_t rule(struct world *w, const char *text)
{
	return fault_rule(&w->e, text);
}

static uint64_t acted(struct world *w, uint32_t id)
{
	struct fault_info info;

	assert_true(fault_next(&w->e, id - 1, &info));
	assert_int_equal(info.no_room, 0);
	return info.acted;
}

static void run(struct traffic *t, uint64_t seed)
{
	for (uint32_t n = 0; n < BATCHES; n++) {
		for (uint32_t i = 0; i < TRAFFIC_BATCH; i++) {
			traffic_post(t, i, seed + n * TRAFFIC_BATCH + i);
			if (!traffic_random(t, 3))
				world_run(t->w);
		}
		world_finish(t->w, LONG);
		traffic_verify(t);
	}
	traffic_end(t);
}

/* Run traffic under @rules; each rule must have acted. */
static void under(const char *const *rules, uint8_t mtu, uint8_t max_rd)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct world *w = test_calloc(1, sizeof(*w));
		struct traffic *t = test_calloc(1, sizeof(*t));
		uint32_t id[8];

		world_init(w, 0);
		traffic_init(t, w, seed, seed & 1 ? 0xffff80 : 0x7ffff0);
		t->a.qp.mtu_code = mtu;
		t->b.qp.mtu_code = mtu;
		t->a.qp.max_rd_atomic = max_rd;
		t->b.qp.max_dest_rd_atomic = max_rd;
		for (int i = 0; rules[i]; i++) {
			char text[100];

			snprintf(text, sizeof(text), "%s seed=%d", rules[i], (int)seed * 10 + i);
			id[i] = rule(w, text);
		}
		run(t, seed);
		for (int i = 0; rules[i]; i++)
			if (!acted(w, id[i]))
				fail_msg("\"%s\" did nothing", rules[i]);
		traffic_fini(t);
		fault_clear(&w->e);
		world_finish(w, LONG);
		world_fini(w);
		test_free(t);
		test_free(w);
	}
}

#define UNDER(...)	under((const char *const []){ __VA_ARGS__, NULL }, ORNIC_MTU_1024, 16); \
			under((const char *const []){ __VA_ARGS__, NULL }, ORNIC_MTU_256, 3)

static void test_loss_1_in_1000(void **state)
{
	(void)state;
	UNDER("drop p=0.1%");
}

static void test_loss_1_in_100(void **state)
{
	(void)state;
	UNDER("drop p=1%");
}

static void test_loss_5_in_100(void **state)
{
	(void)state;
	UNDER("drop p=5%");
}

static void test_reordering(void **state)
{
	(void)state;
	UNDER("reorder p=1% by=3");
}

static void test_duplication(void **state)
{
	(void)state;
	UNDER("duplicate p=1%");
	UNDER("duplicate p=1% by=1ms");
}

static void test_corruption(void **state)
{
	(void)state;
	UNDER("corrupt p=1%");
}

static void test_together(void **state)
{
	(void)state;
	UNDER("drop p=0.1%", "reorder p=1% by=3", "duplicate p=1%", "corrupt p=1%");
	UNDER("drop p=1%", "reorder p=1% by=3", "duplicate p=1%", "corrupt p=1%");
	UNDER("drop p=5%", "reorder p=1% by=3", "duplicate p=1%", "corrupt p=1%");
	UNDER("delay by=300us", "drop p=5%", "reorder p=1% by=3", "duplicate p=1% by=1ms",
	      "corrupt p=1%", "truncate p=1% to=70");
}

/* ---- total loss ------------------------------------------------------------------- */

struct fix {
	struct world w;
	struct traffic t;
};

static int setup(void **state)
{
	struct fix *f = test_calloc(1, sizeof(*f));

	world_init(&f->w, 0);
	traffic_init(&f->t, &f->w, 1, 100);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fix *f = *state;

	traffic_fini(&f->t);
	fault_clear(&f->w.e);
	world_finish(&f->w, LONG);
	world_fini(&f->w);
	test_free(f);
	return 0;
}

static void post(struct fix *f, uint8_t opcode, uint32_t len)
{
	struct traffic *t = &f->t;
	struct wr wr = { .opcode = opcode, .flags = ORNIC_WQE_SIGNALED, .raddr = t->bbuf,
			 .rkey = t->bkey, .swap_add = 1 };

	wr_sge(&wr, t->abuf, len, t->akey);
	conn_send(&t->a, &wr);
}

static void restart(struct conn *a, struct conn *b)
{
	qp_set_state(&a->qp, ORNIC_QPS_RESET);
	qp_set_state(&b->qp, ORNIC_QPS_RESET);
	conn_publish(a, &a->sq, 0);
	conn_rts(a);
	conn_rts(b);
}

/* Return the time until the work request fails, in ns of the virtual clock. */
static uint64_t time_to(struct fix *f, uint8_t opcode, uint8_t status)
{
	uint64_t start = f->w.e.clock();
	struct ornic_cqe cqe;

	post(f, opcode, 8);
	for (int64_t next = world_run(&f->w); !conn_poll(&f->t.a, &f->t.a.hscq, &cqe);
	     next = world_pass(&f->w, next))
		assert_true(next > 0);
	assert_int_equal(cqe.status, status);
	assert_int_equal(f->t.a.qp.state, ORNIC_QPS_ERR);
	return f->w.e.clock() - start;
}

/*
 * 4.096 us * 2^timeout for each of 1 + retry_cnt attempts (IBTA volume 1, 9.7.6.1.3). The
 * standard lets a channel adapter take up to four times that; this one does not.
 */
static void test_silence(void **state)
{
	static const uint8_t opcodes[] = { ORNIC_WR_RDMA_WRITE, ORNIC_WR_RDMA_READ,
					   ORNIC_WR_FETCH_ADD };
	struct fix *f = *state;
	uint32_t id = rule(&f->w, "drop");

	for (uint8_t timeout = 8; timeout <= 18; timeout += 5) {
		for (uint8_t retry = 0; retry < 8; retry++) {
			uint8_t opcode = opcodes[retry % 3];
			uint64_t before = acted(&f->w, id);

			f->t.a.qp.timeout = timeout;
			f->t.a.qp.retry_cnt = retry;
			restart(&f->t.a, &f->t.b);
			assert_int_equal(time_to(f, opcode, ORNIC_WC_RETRY_EXC_ERR),
					 (4096ull << timeout) * (retry + 1));
			assert_int_equal(acted(&f->w, id) - before, retry + 1);
		}
	}
}

/* Only answers get lost: the request was executed, and the requester cannot know. */
static void test_no_answers(void **state)
{
	struct fix *f = *state;
	uint64_t *word = (uint64_t *)dut_at(f->t.b.d, f->t.bbuf, 8);

	rule(&f->w, "drop opcode=RESPONSE");
	*word = 0;
	assert_int_equal(time_to(f, ORNIC_WR_FETCH_ADD, ORNIC_WC_RETRY_EXC_ERR),
			 (4096ull << 14) * 8);
	assert_int_equal(le64toh(*word), 1);
	assert_int_equal(f->t.b.d->dev.cnt[CNT_duplicates], 7);
}

/* RNR NAKs have a count of their own, which losses do not use up. */
static void test_rnr_fails(void **state)
{
	struct fix *f = *state;
	uint32_t naks;

	rule(&f->w, "drop p=10% seed=5");
	for (uint8_t retry = 0; retry < 7; retry++) {
		f->t.a.qp.rnr_retry = retry;
		restart(&f->t.a, &f->t.b);
		naks = f->t.a.d->dev.cnt[CNT_rnr_naks_received];
		time_to(f, ORNIC_WR_SEND, ORNIC_WC_RNR_RETRY_EXC_ERR);
		assert_int_equal(f->t.a.d->dev.cnt[CNT_rnr_naks_received] - naks, retry + 1);
	}
}

/*
 * A receiver that posts late, under loss: each message once, in order, for any number of RNR
 * NAKs.
 */
static void test_rnr_recovers(void **state)
{
	struct fix *f = *state;
	struct traffic *t = &f->t;
	struct ornic_cqe cqe;

	rule(&f->w, "drop p=5% seed=6");
	rule(&f->w, "corrupt p=1% seed=7");
	rule(&f->w, "duplicate p=1% seed=8");
	rule(&f->w, "reorder p=1% seed=9");
	for (uint32_t i = 0; i < 200; i++) {
		t->a.qp.rnr_retry = i & 1 ? 7 : 6;
		fill(dut_at(t->a.d, t->abuf, 3000), 3000, i);
		post(f, ORNIC_WR_SEND, 3000);
		world_run(&f->w);
		if (i & 1)
			world_finish(&f->w, 3000000);
		conn_recv(&t->b, t->bbuf, 3000, t->bkey);
		world_finish(&f->w, LONG);
		assert_true(conn_poll(&t->a, &t->a.hscq, &cqe));
		assert_int_equal(cqe.status, 0);
		assert_true(conn_poll(&t->b, &t->b.hrcq, &cqe));
		assert_int_equal(cqe.status, 0);
		assert_int_equal(le32toh(cqe.wqe_id), i);
		check(dut_at(t->b.d, t->bbuf, 3000), 3000, i);
		conn_quiet(&t->a);
		conn_quiet(&t->b);
	}
	assert_true(t->b.d->dev.cnt[CNT_rnr_naks_sent] >= 150);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss_1_in_1000),
		cmocka_unit_test(test_loss_1_in_100),
		cmocka_unit_test(test_loss_5_in_100),
		cmocka_unit_test(test_reordering),
		cmocka_unit_test(test_duplication),
		cmocka_unit_test(test_corruption),
		cmocka_unit_test(test_together),
		TEST(test_silence),
		TEST(test_no_answers),
		TEST(test_rnr_fails),
		TEST(test_rnr_recovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
