// SPDX-License-Identifier: GPL-2.0
/*
 * The end of DMA: after each operation that ends writes to the host's memory, no write
 * happens once the host can observe the end, while another host continues to write there as
 * fast as it can.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stations.h"

#include <ornic/admin.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WRITES	(1u << STATION_RING)
#define BYTES	(STATION_BUF - WRITES)
/* number of trials in which the end may come when traffic has stopped */
#define TRIES	200

/* Let a change b's buffer continuously: each write differs from the one before. */
static void write_all(struct stations *t)
{
	struct station *a = &t->s[0], *b = &t->s[1];

	for (uint32_t i = 0; i < WRITES; i++)
		host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf + i, BYTES, a->key, b->buf, b->key);
}

static bool all_complete(void *arg)
{
	struct station *a = arg;
	struct ornic_cqe cqe;

	while (host_next(&a->cq, &cqe))
		;
	return a->cq.cons == a->qp.sq.prod;
}

static uint32_t timeout_ms(struct host *h, unsigned int shift)
{
	return (host_reg64(h, ORNIC_REG_CAP) >> shift & 0xff) * ORNIC_TIMEOUT_UNIT_MS;
}

static bool is_stopped(void *arg)
{
	return !(host_reg32(arg, ORNIC_REG_STATUS) &
		 (ORNIC_STS_READY | ORNIC_STS_RESETTING | ORNIC_STS_DRAINING));
}

/* The device reports the end within the reset timeout (ORN-CTL-22, ORN-CTL-23). */
static void until_stopped(struct host *h)
{
	h->timeout_ms = timeout_ms(h, ORNIC_CAP_RESET_TIMEOUT_SHIFT);
	assert_true(host_until(h, is_stopped, h));
	h->timeout_ms = 5000;
}

/* Operations that end DMA: each returns when the host may rely on the end. */
static void end_by_error(struct station *s)
{
	struct ornic_qp_modify_cmd cmd = {
		.mask = htole32(ORNIC_QPM_STATE), .next_state = ORNIC_QPS_ERR,
	};

	assert_int_equal(host_qp_state(&s->qp, &cmd), ORNIC_ST_OK);
}

static void end_by_qp_reset(struct station *s)
{
	struct ornic_qp_modify_cmd cmd = {
		.mask = htole32(ORNIC_QPM_STATE), .next_state = ORNIC_QPS_RESET,
	};

	assert_int_equal(host_qp_state(&s->qp, &cmd), ORNIC_ST_OK);
}

static void end_by_access(struct station *s)
{
	struct ornic_qp_modify_cmd cmd = { .mask = htole32(ORNIC_QPM_ACCESS) };

	assert_int_equal(host_qp_state(&s->qp, &cmd), ORNIC_ST_OK);
}

static void end_by_key(struct station *s)
{
	assert_int_equal(host_exec(&s->d.host, ORNIC_OP_KEY_DESTROY, s->key, NULL, 0, NULL, 0),
			 ORNIC_ST_OK);
}

/* ORN-CTL-15: only the end, or that it is in progress. */
static void check_status(struct host *h, uint32_t under_way)
{
	uint32_t status = host_reg32(h, ORNIC_REG_STATUS);

	assert_true(!status || status & under_way);
}

static void end_by_disable(struct station *s)
{
	host_disable(&s->d.host, ORNIC_REASON_USER);
	check_status(&s->d.host, ORNIC_STS_DRAINING);
	until_stopped(&s->d.host);
}

static void end_by_reset(struct station *s)
{
	host_reset(&s->d.host, ORNIC_REASON_USER);
	check_status(&s->d.host, ORNIC_STS_RESETTING);
	until_stopped(&s->d.host);
}

static void end_by_flr(struct station *s)
{
	assert_int_equal(vfu_client_flr(&s->d.vfu), 0);
}

static bool is_dead(void *arg)
{
	return host_reg32(arg, ORNIC_REG_STATUS) == ORNIC_STS_FATAL;
}

/* ORN-CTL-5: within a second, and READY falls when DMA has ended. */
static void end_by_death(struct station *s)
{
	struct host *h = &s->d.host;
	struct ornic_rec *rec = dma_at(&h->dma, h->asq_rec);

	rec->host_index = htole32(le32toh(rec->host_index) + 1000);
	host_doorbell(h, 0, ORNIC_DB_ADMIN, ORNIC_DB_ASQ, 0);
	h->timeout_ms = 1000;
	assert_true(host_until(h, is_dead, h));
	h->timeout_ms = 5000;
}

static void restart(struct stations *t)
{
	for (int i = 0; i < 2; i++) {
		vfu_client_flr(&t->s[i].d.vfu);
		assert_int_equal(vfu_client_bus_master(&t->s[i].d.vfu, true), 0);
		t->s[i].d.host.dma.next = 0;
		memset(t->s[i].d.host.dma.mem, 0, STATION_MEM);
		host_init(&t->s[i].d.host);
	}
}

/* Try once. Return: the end came while a was writing. */
static bool end_once(struct stations *t, void (*end)(struct station *s), uint8_t *before)
{
	struct station *a = &t->s[0], *b = &t->s[1];
	const struct ornic_cqe *last;
	struct ornic_cqe cqe;
	const uint8_t *mem;
	bool busy;

	stations_connect(t);
	mem = dma_at(&b->d.host.dma, b->buf);
	for (uint32_t i = 0; i < STATION_BUF / 4; i++)
		((uint32_t *)dma_at(&a->d.host.dma, a->buf))[i] = random();
	write_all(t);
	end(b);
	memcpy(before, mem, STATION_BUF);
	last = host_valid(&a->d.host, a->cq.ring, a->cq.log, WRITES - 1);
	busy = !last || last->status;
	assert_true(host_until(&a->d.host, all_complete, a));
	assert_memory_equal(before, mem, STATION_BUF);
	/* ORN-CQ-7: there is no completion of a destroyed queue pair */
	if (end == end_by_qp_reset)
		assert_false(host_next(&b->cq, &cqe));
	return busy;
}

static void ends(void **state, void (*end)(struct station *s))
{
	struct stations *t = *state;
	uint8_t *before = malloc(STATION_BUF);
	bool met = false;

	assert_non_null(before);
	for (int i = 0; i < TRIES && !met; i++) {
		if (i)
			restart(t);
		met = end_once(t, end, before);
	}
	free(before);
	assert_true(met);
}

/* ORN-QP-6 */
static void test_error(void **state)
{
	ends(state, end_by_error);
}

/* ORN-QP-5, ORN-QP-6 */
static void test_qp_reset(void **state)
{
	ends(state, end_by_qp_reset);
}

/* ORN-QP-5 */
static void test_access(void **state)
{
	ends(state, end_by_access);
}

/* ORN-MEM-3, ORN-MEM-12: work that needs the key fails, and the command does not wait for it. */
static void test_key(void **state)
{
	ends(state, end_by_key);
}

/* ORN-CTL-4, ORN-CTL-21 */
static void test_disable(void **state)
{
	ends(state, end_by_disable);
}

static void test_reset(void **state)
{
	ends(state, end_by_reset);
}

/* ORN-PCI-13 */
static void test_flr(void **state)
{
	ends(state, end_by_flr);
}

static void test_death(void **state)
{
	ends(state, end_by_death);
}

/* A queue pair that would wait for an answer for hours */
static void be_patient(struct host_qp *qp)
{
	struct ornic_qp_modify_cmd to = { .mask = htole32(ORNIC_QPM_STATE) };
	struct ornic_qp_modify_cmd patient = {
		.mask = htole32(ORNIC_QPM_TIMEOUT | ORNIC_QPM_RETRY_CNT),
		.timeout = 31,
		.retry_cnt = 7,
	};

	to.next_state = ORNIC_QPS_SQD;
	assert_int_equal(host_qp_state(qp, &to), ORNIC_ST_OK);
	assert_int_equal(host_qp_state(qp, &patient), ORNIC_ST_OK);
	to.next_state = ORNIC_QPS_RTS;
	assert_int_equal(host_qp_state(qp, &to), ORNIC_ST_OK);
}

/*
 * ORN-CTL-22, ORN-MEM-12: the device does not wait for a peer that never answers, nor for a
 * process that never polls.
 */
static void test_silent_peer(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0];

	for (int round = 0; round < 2; round++) {
		stations_connect(t);
		be_patient(&a->qp);
		host_reset(&t->s[1].d.host, ORNIC_REASON_USER);
		write_all(t);
		end_by_key(a);
		if (round)
			end_by_reset(a);
		else
			end_by_disable(a);
		restart(t);
	}
}

#define TEST(t)	cmocka_unit_test_setup_teardown(t, stations_setup, stations_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_error), TEST(test_qp_reset), TEST(test_access), TEST(test_key),
		TEST(test_disable), TEST(test_reset), TEST(test_flr), TEST(test_death),
		TEST(test_silent_peer),
	};

	if (!stations_daemon(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
