// SPDX-License-Identifier: GPL-2.0
/*
 * A daemon process with two devices: two hosts on vfio-user, data between them.
 *
 * Usage: test_device ORNICD
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stations.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

/* The whole range of a message test. */
#define MSG_BYTES	100000u

static void test_send(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;

	stations_connect(t);
	for (uint32_t n = 0; n < 200; n++) {
		uint32_t len = n ? n * 499 : 1;

		station_fill(a, 0, len, n);
		host_recv(&b->qp, b->buf, MSG_BYTES, b->key);
		host_send(&a->qp, ORNIC_WR_SEND, a->buf, len, a->key, 0, 0);
		station_expect(b, ORNIC_WC_RECV, n, &cqe);
		assert_int_equal(cqe.byte_len, len);
		station_expect(a, ORNIC_WC_SEND, n, &cqe);
		stations_same(t, 0, 0, len);
	}
}

static void test_write_read(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;

	stations_connect(t);
	station_fill(a, 0, MSG_BYTES, 7);
	host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, MSG_BYTES, a->key, b->buf + 128, b->key);
	station_expect(a, ORNIC_WC_RDMA_WRITE, 0, &cqe);
	stations_same(t, 0, 128, MSG_BYTES);
	host_send(&a->qp, ORNIC_WR_RDMA_READ, a->buf + STATION_BUF / 2, MSG_BYTES, a->key,
		  b->buf + 128, b->key);
	station_expect(a, ORNIC_WC_RDMA_READ, 1, &cqe);
	stations_same(t, STATION_BUF / 2, 128, MSG_BYTES);
	assert_false(host_next(&b->cq, &cqe));
}

/* A remote key that does not exist fails the writer, and flushes later work requests. */
static void test_bad_key(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;

	stations_connect(t);
	host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, 64, a->key, b->buf, b->key + 1);
	host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, 64, a->key, b->buf, b->key);
	assert_true(host_wait(&a->cq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_REM_ACCESS_ERR);
	assert_true(host_wait(&a->cq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_WR_FLUSH_ERR);
}

/* A completion on an armed CQ causes an event, and the event an interrupt. */
static void test_interrupt(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_eqe eqe;
	struct ornic_cqe cqe;

	stations_connect(t);
	host_arm(&b->eq1, ORNIC_ARM_ANY);
	host_arm(&b->cq, ORNIC_ARM_ANY);
	host_recv(&b->qp, b->buf, 64, b->key);
	assert_int_equal(device_irqs(&b->d, 1, 20), 0);
	host_send(&a->qp, ORNIC_WR_SEND, a->buf, 64, a->key, 0, 0);
	assert_int_equal(device_irqs(&b->d, 1, 5000), 1);
	assert_true(host_next(&b->eq1, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_COMPLETION);
	assert_int_equal(eqe.number, b->cq.number);
	station_expect(b, ORNIC_WC_RECV, 0, &cqe);
}

/* One host vanishes in the middle; the other one's device continues, and a successor works. */
static void test_disconnect(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;

	stations_connect(t);
	for (int i = 0; i < 20; i++)
		host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, MSG_BYTES, a->key, b->buf, b->key);
	device_close(&b->d);
	while (a->cq.cons < 20)
		assert_true(host_wait(&a->cq, &cqe) || !"completion missing");
	station_open(t, 1);
	station_bring_up(b, 1);
}

/* Signals that request no end come between messages, and none is lost: ornicd(8), SIGNALS. */
static void test_signals(void **state)
{
	const int signals[] = {
		SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE, SIGIO, SIGPROF, SIGRTMIN, SIGRTMAX,
	};
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;

	stations_connect(t);
	for (uint32_t n = 0; n < 200; n++) {
		station_fill(a, 0, MSG_BYTES, n);
		host_recv(&b->qp, b->buf, MSG_BYTES, b->key);
		host_send(&a->qp, ORNIC_WR_SEND, a->buf, MSG_BYTES, a->key, 0, 0);
		assert_int_equal(kill(t->pid, signals[n % (sizeof(signals) / sizeof(int))]), 0);
		station_expect(b, ORNIC_WC_RECV, n, &cqe);
		station_expect(a, ORNIC_WC_SEND, n, &cqe);
		stations_same(t, 0, 0, MSG_BYTES);
	}
}

/* ORN-PCI-14: the other function continues. */
static void test_flr(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0];
	struct host *h = &a->d.host;

	station_bring_up(a, 0);
	station_bring_up(&t->s[1], 1);
	assert_int_equal(vfu_client_flr(&a->d.vfu), 0);
	assert_int_equal(host_reg32(&t->s[1].d.host, ORNIC_REG_STATUS), ORNIC_STS_READY);
	assert_int_equal(host_exec(&t->s[1].d.host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0), 0);
	assert_int_equal(host_reg32(h, ORNIC_REG_STATUS), 0);
	assert_int_equal(host_reg32(h, ORNIC_REG_RESET_CAUSE), ORNIC_CAUSE_FLR);
	assert_int_equal(vfu_client_bus_master(&a->d.vfu, true), 0);
	station_bring_up(a, 0);
}

/* QEMU offers memory without a descriptor if it runs without share=on. */
static void test_unshared(void **state)
{
	struct stations *t = *state;
	struct device_client *d = &t->s[0].d;

	assert_int_equal(vfu_client_dma_unmap(&d->vfu, DEVICE_DMA_BASE, STATION_MEM), 0);
	assert_int_equal(vfu_client_dma_map(&d->vfu, -1, 0, DEVICE_DMA_BASE, STATION_MEM, true), 0);
	assert_int_equal(host_enable(&d->host), -EIO);
	assert_int_equal(host_reg32(&d->host, ORNIC_REG_SYNDROME), ORNIC_SYN_HOST_MEMORY);
	host_reset(&d->host, ORNIC_REASON_USER);
	assert_int_equal(host_reg32(&d->host, ORNIC_REG_STATUS), 0);
}

/* Wait for the @n-th heartbeat, for a minute at most. */
static void await_beats(const struct ornic_status_block *b, uint64_t n)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	for (int i = 0; i < 6000; i++) {
		if (le64toh(__atomic_load_n(&b->heartbeat, __ATOMIC_RELAXED)) >= n)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("no heartbeat %lu within a minute", (unsigned long)n);
}

/* ORN-CTL-18: heartbeats come, and not before their time. */
static void test_heartbeat(void **state)
{
	struct stations *t = *state;
	struct host *h = &t->s[0].d.host;
	const struct ornic_status_block *b = dma_at(&h->dma, h->status);
	uint64_t start = stations_clock();
	uint64_t period = host_reg32(h, ORNIC_REG_HB_MS);

	assert_int_equal(host_enable(h), 0);
	assert_int_equal(b->heartbeat, 0);
	await_beats(b, 2);
	assert_true(stations_clock() - start >= (2 * period - 1) * 1000000ull);
	host_disable(h, ORNIC_REASON_SHUTDOWN);
	assert_int_equal(host_reg32(h, ORNIC_REG_STATUS), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_send, stations_setup, stations_teardown),
		cmocka_unit_test_setup_teardown(test_write_read, stations_setup, stations_teardown),
		cmocka_unit_test_setup_teardown(test_bad_key, stations_setup, stations_teardown),
		cmocka_unit_test_setup_teardown(test_interrupt, stations_setup, stations_teardown),
		cmocka_unit_test_setup_teardown(test_disconnect, stations_setup, stations_teardown),
		cmocka_unit_test_setup_teardown(test_signals, stations_setup, stations_teardown),
		cmocka_unit_test_setup_teardown(test_flr, stations_setup, stations_teardown),
		cmocka_unit_test_setup_teardown(test_unshared, stations_setup, stations_teardown),
		cmocka_unit_test_setup_teardown(test_heartbeat, stations_setup, stations_teardown),
	};

	if (!stations_daemon(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
