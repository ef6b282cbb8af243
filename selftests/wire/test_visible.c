// SPDX-License-Identifier: GPL-2.0
/*
 * Order of visibility: data before the completion and before later data, the completion
 * before the event, the event before the interrupt, output before the end of a command.
 * Host and device run at the same time, and the host reads the moment it sees the signal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stations.h"

#include <ornic/admin.h>
#include <ornic/identify.h>
#include <sched.h>
#include <string.h>

#define MESSAGES	3000
#define COMMANDS	4000
#define BATCH		32	/* commands at a time */
#define LEN		20000u

/* Wait without leaving the processor: the next instruction sees the present memory. */
static void *sign(struct host *h, uint64_t ring, uint8_t log, uint32_t index)
{
	uint64_t end = stations_clock() + 30000000000ull;
	void *entry;

	while (!(entry = host_valid(h, ring, log, index)))
		if (stations_clock() > end)
			fail_msg("entry %u does not come", index);
	return entry;
}

static void paint(struct station *s, uint32_t n)
{
	uint32_t *p = dma_at(&s->d.host.dma, s->buf);

	for (uint32_t i = 0; i < LEN / 4; i++)
		p[i] = n;
}

/* ORN-CQ-2: receives, and reads */
static void test_data(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;
	volatile uint32_t *got;

	stations_connect(t);
	got = dma_at(&b->d.host.dma, b->buf);
	for (uint32_t n = 1; n <= MESSAGES; n++) {
		paint(a, n);
		host_recv(&b->qp, b->buf, LEN, b->key);
		host_send(&a->qp, ORNIC_WR_SEND, a->buf, LEN, a->key, 0, 0);
		sign(&b->d.host, b->cq.ring, b->cq.log, b->cq.cons);
		for (uint32_t i = LEN / 4; i-- > 0;)
			if (got[i] != n)
				fail_msg("message %u: word %u is that of %u", n, i, got[i]);
		assert_true(host_next(&b->cq, &cqe));
		assert_true(host_wait(&a->cq, &cqe));
	}
	got = dma_at(&a->d.host.dma, a->buf + STATION_BUF / 2);
	for (uint32_t n = 1; n <= MESSAGES; n++) {
		paint(b, n);
		host_send(&a->qp, ORNIC_WR_RDMA_READ, a->buf + STATION_BUF / 2, LEN, a->key, b->buf,
			  b->key);
		sign(&a->d.host, a->cq.ring, a->cq.log, a->cq.cons);
		for (uint32_t i = LEN / 4; i-- > 0;)
			if (got[i] != n)
				fail_msg("read %u: word %u is that of %u", n, i, got[i]);
		assert_true(host_next(&a->cq, &cqe));
	}
}

/*
 * ORN-MEM-25: a program that waits for a flag finds the data that was written before it,
 * without a completion
 */
static void test_order(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	const uint64_t flag_at = STATION_BUF / 2;
	uint64_t end = stations_clock() + 120000000000ull;
	struct ornic_cqe cqe;
	volatile uint32_t *got, *flag;

	stations_connect(t);
	got = dma_at(&b->d.host.dma, b->buf);
	flag = dma_at(&b->d.host.dma, b->buf + flag_at);
	for (uint32_t n = 1; n <= MESSAGES; n++) {
		paint(a, n);
		host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, LEN, a->key, b->buf, b->key);
		host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, 4, a->key, b->buf + flag_at, b->key);
		while (*flag != n)
			if (stations_clock() > end)
				fail_msg("flag %u does not come", n);
		for (uint32_t i = LEN / 4; i-- > 0;)
			if (got[i] != n)
				fail_msg("write %u: word %u is that of %u", n, i, got[i]);
		assert_true(host_wait(&a->cq, &cqe));
		assert_true(host_wait(&a->cq, &cqe));
	}
}

/* ORN-EQ-8, ORN-EQ-2: the completion is visible at the event, the event at the interrupt */
static void test_event(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;
	struct ornic_eqe eqe;

	stations_connect(t);
	for (uint32_t n = 0; n < MESSAGES; n++) {
		host_recv(&b->qp, b->buf, 64, b->key);
		host_arm(&b->eq1, ORNIC_ARM_ANY);
		host_arm(&b->cq, ORNIC_ARM_ANY);
		host_send(&a->qp, ORNIC_WR_SEND, a->buf, 64, a->key, 0, 0);
		if (n % 2)
			assert_int_equal(device_irqs(&b->d, 1, 30000), 1);
		else
			sign(&b->d.host, b->eq1.ring, b->eq1.log, b->eq1.cons);
		assert_true(host_next(&b->eq1, &eqe));
		assert_true(host_next(&b->cq, &cqe));
		assert_int_equal(cqe.wqe_id, n);
		if (!(n % 2))
			assert_int_equal(device_irqs(&b->d, 1, 30000), 1);
		host_fired(&b->cq);
		host_fired(&b->eq1);
		assert_true(host_wait(&a->cq, &cqe));
	}
}

/*
 * Submit commands with output to @buf, published together: the device works while the host
 * reads.
 */
static void submit(struct host *h, uint64_t buf)
{
	struct ornic_admin_cmd cmd = {
		.opcode = htole16(ORNIC_OP_IDENTIFY),
		.in_len = htole16(sizeof(struct ornic_identify_cmd)),
		.out_len = htole16(sizeof(struct ornic_identify_device)),
	};
	uint32_t old = h->posted;

	for (uint32_t i = 0; i < BATCH; i++, h->posted++) {
		uint64_t slot = h->posted & ((1u << h->log_admin) - 1);

		cmd.out_addr = htole64(buf + i * sizeof(struct ornic_identify_device));
		memcpy(dma_at(&h->dma, h->asq + slot * sizeof(cmd)), &cmd, sizeof(cmd));
	}
	if (host_publish(h, h->asq_rec, old, h->posted))
		host_doorbell(h, 0, ORNIC_DB_ADMIN, ORNIC_DB_ASQ, h->posted);
}

/* ORN-ADM-25 */
static void test_output(void **state)
{
	struct stations *t = *state;
	struct station *s = &t->s[0];
	struct host *h = &s->d.host;
	struct ornic_identify_device want, *out;
	struct ornic_identify_cmd page = { .page = ORNIC_ID_DEVICE };
	uint64_t buf;

	station_bring_up(s, 0);
	assert_int_equal(host_exec(h, ORNIC_OP_IDENTIFY, 0, &page, sizeof(page), &want,
				   sizeof(want)), ORNIC_ST_OK);
	buf = dma_alloc(&h->dma, BATCH * sizeof(want), 4096);
	out = dma_at(&h->dma, buf);
	for (uint32_t n = 0; n < COMMANDS / BATCH; n++) {
		memset(out, 0xaa, BATCH * sizeof(want));
		submit(h, buf);
		for (uint32_t i = 0; i < BATCH; i++) {
			sign(h, h->acq, h->log_admin, h->done);
			assert_memory_equal(&out[i], &want, sizeof(want));
			assert_int_equal(host_complete(h), ORNIC_ST_OK);
		}
	}
}

/* Pin host and device to one processor each, if there are two, so that they run in parallel */
static void move_apart(pid_t device)
{
	cpu_set_t all, one;
	pid_t pid[2] = { 0, device };

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2)
		return;
	for (int i = 0, cpu = 0; i < 2; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		assert_int_equal(sched_setaffinity(pid[i++], sizeof(one), &one), 0);
	}
}

static cpu_set_t everywhere;

static int setup(void **state)
{
	struct stations *t;

	stations_setup(state);
	t = *state;
	assert_int_equal(sched_getaffinity(0, sizeof(everywhere), &everywhere), 0);
	move_apart(t->pid);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(sched_setaffinity(0, sizeof(everywhere), &everywhere), 0);
	return stations_teardown(state);
}

#define TEST(t)	cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_data), TEST(test_order), TEST(test_event), TEST(test_output),
	};

	if (!stations_daemon(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
