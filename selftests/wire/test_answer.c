// SPDX-License-Identifier: GPL-2.0
/*
 * The device answers registers and commands while its data path is as busy as one host can
 * make it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stations.h"

#include <ornic/admin.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define WRITES	(1u << STATION_RING)
#define TRIES	500

/* Fill the send queue of host 0; its completions are taken by done(). */
static void fill_queue(struct station *a)
{
	while (a->qp.sq.prod - a->cq.cons < WRITES)
		host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, STATION_BUF, a->key, a->buf,
			  a->key);
}

/* Return true if all posted work has completed. */
static bool done(struct station *a)
{
	struct ornic_cqe cqe;

	while (host_next(&a->cq, &cqe))
		assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
	return a->cq.cons == a->qp.sq.prod;
}

static bool is_done(void *arg)
{
	return done(arg);
}

/* Count how often @ask returned before the work that was posted before it was done. */
static uint32_t ahead(struct stations *t, void (*ask)(struct stations *t))
{
	struct station *a = &t->s[0];
	uint32_t n = 0;

	for (int i = 0; i < TRIES && n < 3; i++) {
		fill_queue(a);
		ask(t);
		n += !done(a);
	}
	assert_true(host_until(&a->d.host, is_done, a));
	return n;
}

/* Address of the queue pairs' doorbell page */
static uint64_t db_page;

static void read_own(struct stations *t)
{
	assert_int_equal(host_reg32(&t->s[0].d.host, ORNIC_REG_STATUS), ORNIC_STS_READY);
}

static void read_other(struct stations *t)
{
	assert_int_equal(host_reg32(&t->s[1].d.host, ORNIC_REG_STATUS), ORNIC_STS_READY);
}

/* Store doorbells and then read a register; the answer comes after the doorbells */
static void ring_and_read(struct stations *t)
{
	const struct bus *bus = &t->s[0].d.host.bus;

	for (int i = 0; i < 20; i++)
		bus->write(bus->arg, db_page, 8, t->s[0].qp.number);
	read_own(t);
}

/* ORN-PCI-12: a read does not wait for work that was posted before it. */
static void test_read(void **state)
{
	struct stations *t = *state;

	for (int i = 0; i < 2; i++)
		station_bring_up(&t->s[i], i);
	station_connect(t, 0, 0);
	assert_int_not_equal(ahead(t, read_own), 0);
	assert_int_not_equal(ahead(t, read_other), 0);
}

/* ORN-PCI-2: nor does a write. */
static void test_write(void **state)
{
	struct stations *t = *state;

	station_bring_up(&t->s[0], 0);
	station_connect(t, 0, 0);
	db_page = host_reg32(&t->s[0].d.host, ORNIC_REG_DB_OFFSET) +
		  (1u << ORNIC_DB_MIN_STRIDE_LOG);
	assert_int_not_equal(ahead(t, ring_and_read), 0);
}

/* ORN-PCI-2: the sender of a write waits for no answer, even if the device is slow. */
static void test_stopped(void **state)
{
	struct stations *t = *state;
	uint64_t page;
	int status;

	station_bring_up(&t->s[0], 0);
	page = host_reg32(&t->s[0].d.host, ORNIC_REG_DB_OFFSET) + (1u << ORNIC_DB_MIN_STRIDE_LOG);
	assert_int_equal(kill(t->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(t->pid, &status, WUNTRACED), t->pid);
	assert_true(WIFSTOPPED(status));
	for (int i = 0; i < 10; i++)
		t->s[0].d.host.bus.write(t->s[0].d.host.bus.arg, page, 8, t->s[0].qp.number);
	assert_int_equal(kill(t->pid, SIGCONT), 0);
	read_own(t);
}

static uint32_t admin_timeout_ms(struct host *h)
{
	return (host_reg64(h, ORNIC_REG_CAP) >> ORNIC_CAP_ADMIN_TIMEOUT_SHIFT & 0xff) *
	       ORNIC_TIMEOUT_UNIT_MS;
}

/* ORN-ADM-19: a full ring of commands, of either host */
static void test_commands(void **state)
{
	struct stations *t = *state;
	uint32_t key;

	for (int i = 0; i < 2; i++)
		station_bring_up(&t->s[i], i);
	station_connect(t, 0, 0);
	for (int round = 0; round < 50; round++) {
		struct host *h = &t->s[round % 2].d.host;
		struct ornic_admin_cmd nop = { .opcode = htole16(ORNIC_OP_NOP) };

		h->timeout_ms = admin_timeout_ms(h);
		fill_queue(&t->s[0]);
		assert_int_equal(host_key_create(h, t->s[round % 2].pd, DEVICE_DMA_BASE,
						 STATION_MEM, ORNIC_ACCESS_LOCAL_WRITE, &key),
				 ORNIC_ST_OK);
		for (int i = 0; i < 1 << h->log_admin; i++)
			host_submit(h, &nop);
		for (int i = 0; i < 1 << h->log_admin; i++)
			assert_int_equal(host_complete(h), ORNIC_ST_OK);
		done(&t->s[0]);
	}
}

#define TEST(t)	cmocka_unit_test_setup_teardown(t, stations_setup, stations_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_read), TEST(test_write), TEST(test_stopped), TEST(test_commands),
	};

	if (!stations_daemon(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
