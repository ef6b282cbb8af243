// SPDX-License-Identifier: GPL-2.0
/*
 * What is there when its sign is: data before the completion, the completion before the
 * event, the event before the interrupt, output before the end of a command. Host and
 * device run at the same time, and the host looks the moment it sees the sign.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stations.h"

#include <ornic/admin.h>
#include <ornic/identify.h>
#include <string.h>

#define MESSAGES	3000
#define COMMANDS	2000
#define LEN		20000u

/* Wait without leaving the processor: the next instruction sees what is there now. */
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

/* ORN-EQ-8, ORN-EQ-2: at the event the completion, at the interrupt the event */
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

/* ORN-ADM-25 */
static void test_output(void **state)
{
	struct stations *t = *state;
	struct station *s = &t->s[0];
	struct host *h = &s->d.host;
	const uint8_t *out = dma_at(&h->dma, h->payload + 4096);
	struct ornic_admin_cmd cmd = {
		.opcode = htole16(ORNIC_OP_IDENTIFY),
		.in_len = htole16(sizeof(struct ornic_identify_cmd)),
		.out_len = htole16(sizeof(struct ornic_identify_device)),
		.out_addr = htole64(h->payload + 4096),
	};
	struct ornic_identify_device want;
	struct ornic_identify_cmd page = { .page = ORNIC_ID_DEVICE };

	station_bring_up(s, 0);
	assert_int_equal(host_exec(h, ORNIC_OP_IDENTIFY, 0, &page, sizeof(page), &want,
				   sizeof(want)), ORNIC_ST_OK);
	for (uint32_t n = 0; n < COMMANDS; n++) {
		memset(dma_at(&h->dma, h->payload + 4096), 0xaa, sizeof(want));
		host_submit(h, &cmd);
		sign(h, h->acq, h->log_admin, h->done);
		assert_memory_equal(out, &want, sizeof(want));
		assert_int_equal(host_complete(h), ORNIC_ST_OK);
	}
}

#define TEST(t)	cmocka_unit_test_setup_teardown(t, stations_setup, stations_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_data), TEST(test_event), TEST(test_output),
	};

	if (!stations_daemon(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
