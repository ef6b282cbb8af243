// SPDX-License-Identifier: GPL-2.0
/*
 * Two functions of one daemon are isolated: no action of one host, even a hostile one,
 * affects the other's device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stations.h"

#include <ornic/admin.h>
#include <ornic/identify.h>
#include <ornic/pd.h>
#include <ornic/stats.h>
#include <stdlib.h>
#include <string.h>

#define MSG		4096u
#define BAR_BYTES	(8u << 20)

/* Check that a second host's device works: commands, and data with itself. */
static void works(struct station *s)
{
	uint32_t index = s->qp.sq.prod;
	struct ornic_cqe cqe;

	assert_int_equal(host_reg32(&s->d.host, ORNIC_REG_STATUS), ORNIC_STS_READY);
	assert_int_equal(host_exec(&s->d.host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0), ORNIC_ST_OK);
	station_fill(s, 0, MSG, index);
	host_send(&s->qp, ORNIC_WR_RDMA_WRITE, s->buf, MSG, s->key, s->buf + MSG, s->key);
	station_expect(s, ORNIC_WC_RDMA_WRITE, index, &cqe);
	assert_memory_equal(dma_at(&s->d.host.dma, s->buf),
			    dma_at(&s->d.host.dma, s->buf + MSG), MSG);
}

static int destroy(struct station *s, uint16_t opcode, uint32_t number)
{
	return host_exec(&s->d.host, opcode, number, NULL, 0, NULL, 0);
}

/*
 * ORN-SEC-10: both sides have the same numbers, and destroying one object does not affect
 * the other
 */
static void test_numbers(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;

	stations_connect(t);
	assert_int_equal(a->pd, b->pd);
	assert_int_equal(a->cq.number, b->cq.number);
	assert_int_equal(a->qp.number, b->qp.number);
	assert_int_equal(destroy(a, ORNIC_OP_QP_DESTROY, a->qp.number), ORNIC_ST_OK);
	assert_int_equal(destroy(a, ORNIC_OP_CQ_DESTROY, a->cq.number), ORNIC_ST_OK);
	assert_int_equal(destroy(a, ORNIC_OP_KEY_DESTROY, a->key), ORNIC_ST_OK);
	assert_int_equal(destroy(a, ORNIC_OP_PD_DESTROY, a->pd), ORNIC_ST_OK);
	assert_int_equal(destroy(b, ORNIC_OP_PD_DESTROY, b->pd), ORNIC_ST_BUSY);
	host_send(&b->qp, ORNIC_WR_NOP, b->buf, 0, b->key, 0, 0);
	assert_true(host_wait(&b->cq, &cqe));
}

/* Return a key of a's that b does not have */
static uint32_t key_of_a(struct stations *t)
{
	struct station *a = &t->s[0];
	uint32_t key;

	do {
		assert_int_equal(host_key_create(&a->d.host, a->pd, a->buf, STATION_BUF,
						 ORNIC_ACCESS_LOCAL_WRITE |
						 ORNIC_ACCESS_REMOTE_WRITE |
						 ORNIC_ACCESS_REMOTE_READ, &key), ORNIC_ST_OK);
	} while (key >> ORNIC_KEY_TAG_BITS == t->s[1].key >> ORNIC_KEY_TAG_BITS);
	assert_int_equal(host_exec(&t->s[1].d.host, ORNIC_OP_KEY_QUERY, key, NULL, 0, NULL, 0),
			 ORNIC_ST_BAD_NUMBER);
	return key;
}

/* ORN-MEM-5: as an lkey */
static void test_lkey_of_other(void **state)
{
	struct stations *t = *state;
	struct station *b = &t->s[1];
	struct ornic_cqe cqe;
	uint32_t key;

	stations_connect(t);
	key = key_of_a(t);
	host_send(&b->qp, ORNIC_WR_RDMA_WRITE, b->buf, 64, key, t->s[0].buf, t->s[0].key);
	assert_true(host_wait(&b->cq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_LOC_PROT_ERR);
}

/* ORN-MEM-5: as an rkey, of the requester's function instead of the responder's */
static void test_rkey_of_other(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0];
	struct ornic_cqe cqe;
	uint32_t key;

	stations_connect(t);
	key = key_of_a(t);
	host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, 64, a->key, t->s[1].buf, key);
	assert_true(host_wait(&a->cq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_REM_ACCESS_ERR);
}

/*
 * Actions of a hostile host on its device. Each one may leave it in any state; it is reset
 * afterwards.
 */
static struct ornic_rec *record(struct station *s, uint64_t rec)
{
	return dma_at(&s->d.host.dma, rec);
}

static void bad_asq_index(struct station *s)
{
	record(s, s->d.host.asq_rec)->host_index += 1000;
	host_doorbell(&s->d.host, 0, ORNIC_DB_ADMIN, ORNIC_DB_ASQ, 0);
}

static void bad_acq_index(struct station *s)
{
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };

	record(s, s->d.host.acq_rec)->host_index += 1000;
	host_submit(&s->d.host, &cmd);
}

static void bad_cq_index(struct station *s)
{
	record(s, s->cq.rec)->host_index += 1000;
	for (int i = 0; i < 1 << STATION_RING; i++)
		host_send(&s->qp, ORNIC_WR_RDMA_WRITE, s->buf, 1, s->key, s->buf, s->key);
}

static void bad_sq_index(struct station *s)
{
	record(s, s->qp.sq.rec)->host_index -= 1;
	host_doorbell(&s->d.host, 1, ORNIC_DB_SQ, s->qp.number, 0);
}

static void bad_eq_index(struct station *s)
{
	record(s, s->eq1.rec)->host_index -= 1;
	host_arm(&s->cq, ORNIC_ARM_ANY);
	host_doorbell(&s->d.host, 0, ORNIC_DB_EQ_ARM, s->eq1.number, 0);
	host_send(&s->qp, ORNIC_WR_RDMA_WRITE, s->buf, 1, s->key, s->buf, s->key);
}

static void memory_gone(struct station *s)
{
	for (int i = 0; i < 50; i++)
		host_send(&s->qp, ORNIC_WR_RDMA_WRITE, s->buf, STATION_BUF, s->key, s->buf,
			  s->key);
	assert_int_equal(vfu_client_dma_unmap(&s->d.vfu, DEVICE_DMA_BASE, STATION_MEM), 0);
	host_doorbell(&s->d.host, 0, ORNIC_DB_ADMIN, ORNIC_DB_ASQ, 0);
	host_doorbell(&s->d.host, 0, ORNIC_DB_EQ_ARM, 0, 0);
	host_doorbell(&s->d.host, 1, ORNIC_DB_SQ, s->qp.number, 0);
	assert_int_equal(vfu_client_dma_map(&s->d.vfu, s->d.host.dma.fd, 0, DEVICE_DMA_BASE,
					    STATION_MEM, true), 0);
}

static void random_stores(struct station *s)
{
	for (int i = 0; i < 3000; i++)
		s->d.host.bus.write(s->d.host.bus.arg, random() % (BAR_BYTES / 8) * 8,
				    1u << (random() % 4), (uint64_t)random() << 32 | random());
}

/* The same, restricted to places without registers */
static void random_doorbells(struct station *s)
{
	for (int i = 0; i < 1000; i++)
		s->d.host.bus.write(s->d.host.bus.arg,
				    BAR_BYTES / 2 + random() % (BAR_BYTES / 16) * 8, 8,
				    (uint64_t)random() << 32 | random());
}

static void random_commands(struct station *s)
{
	uint8_t in[256], out[256];

	for (int i = 0; i < 300; i++) {
		for (size_t j = 0; j < sizeof(in); j++)
			in[j] = random() % 3 ? 0 : random();
		host_exec(&s->d.host, ORNIC_OP(random() % 13, random() % 7), random() % 4, in,
			  random() % 4 ? 64 : random() % 256, out, random() % 256);
	}
}

static void random_work(struct station *s)
{
	for (int i = 0; i < 40; i++) {
		uint8_t *slot = (uint8_t *)host_sq_slot(&s->qp);

		for (int j = 0; j < 128; j++)
			if (j >= 16 || !(random() % 16))
				slot[j] = random();
		host_sq_publish(&s->qp);
	}
}

/* Send packets to a queue pair that is connected to another one */
static void uninvited(struct station *s)
{
	for (int i = 0; i < 20; i++)
		host_send(&s->qp, ORNIC_WR_RDMA_WRITE, s->buf, MSG, s->key, s->buf + MSG, s->key);
}

static const struct {
	const char *name;
	void (*act)(struct station *s);
	int peer;
	bool fatal;
} acts[] = {
	{ "ASQ index", bad_asq_index, 0, true },
	{ "ACQ index", bad_acq_index, 0, true },
	{ "CQ index", bad_cq_index, 0, false },
	{ "SQ index", bad_sq_index, 0, false },
	{ "EQ index", bad_eq_index, 0, false },
	{ "memory gone", memory_gone, 0, false },
	{ "random stores", random_stores, 0, false },
	{ "random commands", random_commands, 0, false },
	{ "random work", random_work, 0, false },
	{ "uninvited packets", uninvited, 1, false },
};

static bool is_fatal(void *arg)
{
	return host_reg32(arg, ORNIC_REG_STATUS) == ORNIC_STS_FATAL;
}

/* Check that b got no event. */
static void no_event(struct station *s)
{
	struct ornic_eqe e;

	while (host_next(&s->eq0, &e))
		assert_true(e.type == ORNIC_EV_PORT_ACTIVE || e.type == ORNIC_EV_IDENTIFY ||
			    e.type == ORNIC_EV_COMM_EST);
}

/* ORN-SEC-19, ORN-SEC-10: neither FATAL nor a reset of one affects the other. */
static void test_hostile(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];

	station_bring_up(b, 1);
	station_connect(t, 1, 1);
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		print_message("%s\n", acts[i].name);
		station_bring_up(a, 0);
		station_connect(t, 0, acts[i].peer);
		a->d.host.timeout_ms = 200;
		acts[i].act(a);
		works(b);
		a->d.host.timeout_ms = 5000;
		if (acts[i].fatal)
			assert_true(host_until(&a->d.host, is_fatal, &a->d.host));
		works(b);
		host_reset(&a->d.host, ORNIC_REASON_USER);
		assert_int_equal(host_reg32(&a->d.host, ORNIC_REG_STATUS), 0);
		works(b);
		no_event(b);
	}
}

#define STATS_MAX	200

static uint32_t stats(struct station *s, uint8_t scope, uint64_t val[STATS_MAX])
{
	struct ornic_stat_read_cmd cmd = {
		.scope = scope,
		.number = htole32(scope == ORNIC_STAT_PORT),
		.count = htole32(STATS_MAX),
	};

	assert_int_equal(host_exec(&s->d.host, ORNIC_OP_STAT_READ, 0, &cmd, sizeof(cmd), val,
				   8 * STATS_MAX), ORNIC_ST_OK);
	return le32toh(s->d.host.cpl.out_size) / 8;
}

/* ORN-STAT-6; ORN-STAT-5: no counter decreases. */
static void test_stats(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	uint64_t last[2 * STATS_MAX] = { 0 }, now[2 * STATS_MAX] = { 0 };
	uint64_t before[STATS_MAX], after[STATS_MAX];
	uint32_t n, m;

	for (int i = 0; i < 2; i++) {
		station_bring_up(&t->s[i], i);
		station_connect(t, i, i);
	}
	works(b);
	n = stats(b, ORNIC_STAT_PORT, before);
	assert_true(n > 10 && n < STATS_MAX);
	for (int round = 0; round < 20; round++) {
		works(a);
		random_doorbells(a);
		m = stats(a, ORNIC_STAT_PORT, now);
		m += stats(a, ORNIC_STAT_DEVICE, now + m);
		for (uint32_t i = 0; i < m; i++)
			assert_true(now[i] >= last[i]);
		if (round)
			assert_memory_not_equal(now, last, 8 * m);
		memcpy(last, now, sizeof(last));
	}
	assert_int_equal(stats(b, ORNIC_STAT_PORT, after), n);
	assert_memory_equal(before, after, 8 * n);
	n = stats(b, ORNIC_STAT_DEVICE, before);
	random_doorbells(a);
	works(a);
	assert_int_equal(stats(b, ORNIC_STAT_DEVICE, after), n);
	/* Count the command of the query, and its doorbell, only. */
	for (uint32_t i = 0; i < n; i++)
		assert_true(after[i] - before[i] <= 1);
}

/* Create protection domains and queue pairs up to the limit; return their number. */
static void take_all(struct station *s, uint32_t *pds, uint32_t *qps)
{
	struct ornic_qp_create_cmd cmd;
	struct ornic_pd_create_cmd pd = { 0 };
	struct host_qp qp;
	int st;

	*pds = 0;
	*qps = 0;
	while (!(st = host_exec(&s->d.host, ORNIC_OP_PD_CREATE, 0, &pd, sizeof(pd), NULL, 0)))
		++*pds;
	assert_int_equal(st, ORNIC_ST_LIMIT);
	host_qp_template(&s->d.host, &qp, ORNIC_QPT_RC, 2, s->pd, s->cq.number, s->cq.number,
			 &cmd);
	/* They share rings, which are not used. */
	while (!(st = host_exec(&s->d.host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0)))
		++*qps;
	assert_int_equal(st, ORNIC_ST_LIMIT);
}

/* ORN-IDN-1: one function exhausts its limits, and the other one can create as many. */
static void test_limits(void **state)
{
	struct stations *t = *state;
	struct ornic_identify_cmd cmd = { .page = ORNIC_ID_DEVICE };
	struct ornic_identify_device id;
	uint32_t pds, qps;

	for (int i = 0; i < 2; i++) {
		station_bring_up(&t->s[i], i);
		assert_int_equal(host_exec(&t->s[i].d.host, ORNIC_OP_IDENTIFY, 0, &cmd,
					   sizeof(cmd), &id, sizeof(id)), ORNIC_ST_OK);
		take_all(&t->s[i], &pds, &qps);
		assert_int_equal(pds + 1, le32toh(id.max_pd));
		assert_int_equal(qps + 1, le32toh(id.max_qp));
	}
	station_connect(t, 0, 0);
	works(&t->s[0]);
}

#define TEST(t)	cmocka_unit_test_setup_teardown(t, stations_setup, stations_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_numbers), TEST(test_lkey_of_other), TEST(test_rkey_of_other),
		TEST(test_hostile), TEST(test_stats), TEST(test_limits),
	};

	if (!stations_daemon(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
