// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon, started for real: two devices, two hosts on vfio-user, data between
 * them.
 *
 * Usage: test_device ORNICD
 */
#define _GNU_SOURCE 1	/* pipe2() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device.h"
#include "queue.h"

#include <ornic/identify.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MEM_BYTES	(16u << 20)
#define MSG_BYTES	100000u
#define BUF_BYTES	(256u << 10)
#define FEATURES	(ORNIC_FEATURE(RC) | ORNIC_FEATURE(UD) | ORNIC_FEATURE(RAW) |	\
			 ORNIC_FEATURE(ATOMICS) | ORNIC_FEATURE(JUMBO))

static const char *ornicd;

/** struct station - a host with all it needs for one connection */
struct station {
	struct device_client d;
	struct host_ring eq0;
	struct host_ring eq1;
	struct host_ring cq;
	struct host_qp qp;
	uint32_t pd;
	uint32_t key;
	uint64_t buf;
};

struct fixture {
	char dir[32];
	pid_t pid;
	struct station s[2];
};

static void start_daemon(struct fixture *t)
{
	char spec[2][96], fd[12];
	int ready[2];
	char c;

	strcpy(t->dir, "/tmp/ornic-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	assert_int_equal(pipe2(ready, 0), 0);
	snprintf(fd, sizeof(fd), "%d", ready[1]);
	for (int i = 0; i < 2; i++)
		snprintf(spec[i], sizeof(spec[i]), "path=%s/%d,mac=02:00:00:00:00:0%d", t->dir, i,
			 i + 1);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (!t->pid) {
		close(ready[0]);
		execl(ornicd, ornicd, "--log-level", "warning", "--ready-fd", fd, "-d", spec[0],
		      "-d", spec[1], NULL);
		_exit(127);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
}

static void stop_daemon(struct fixture *t)
{
	char path[64];
	struct stat st;
	int status;

	assert_int_equal(kill(t->pid, SIGTERM), 0);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	snprintf(path, sizeof(path), "%s/0", t->dir);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(rmdir(t->dir), 0);
}

static int setup(void **state)
{
	struct fixture *t = test_calloc(1, sizeof(*t));

	start_daemon(t);
	for (int i = 0; i < 2; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/%d", t->dir, i);
		assert_int_equal(device_open(&t->s[i].d, path, MEM_BYTES), 0);
	}
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *t = *state;

	for (int i = 0; i < 2; i++)
		device_close(&t->s[i].d);
	stop_daemon(t);
	test_free(t);
	return 0;
}

static void mac_of(int i, uint8_t mac[6])
{
	memcpy(mac, (uint8_t [6]) { 2, 0, 0, 0, 0, i + 1 }, 6);
}

static uint32_t ip_of(int i)
{
	return 0x0a000001 + i;
}

static void bring_up(struct station *s, int i)
{
	struct host *h = &s->d.host;
	uint8_t mac[6];

	mac_of(i, mac);
	assert_int_equal(host_enable(h), 0);
	assert_int_equal(host_bring_up(h, FEATURES, &s->eq0, &s->eq1), 0);
	assert_int_equal(host_port_up(h, 9000), 0);
	assert_int_equal(host_gid_set(h, 0, ip_of(i), mac), 0);
	assert_int_equal(host_pd_create(h, &s->pd), 0);
	s->buf = dma_alloc(&h->dma, BUF_BYTES, 4096);
	assert_int_equal(host_key_create(h, s->pd, s->buf, BUF_BYTES, ORNIC_ACCESS_LOCAL_WRITE |
					 ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ |
					 ORNIC_ACCESS_REMOTE_ATOMIC, &s->key), 0);
	assert_int_equal(host_cq_create(h, &s->cq, 8, s->eq1.number, 0), 0);
	assert_int_equal(host_qp_create(h, &s->qp, ORNIC_QPT_RC, 6, s->pd, s->cq.number,
					s->cq.number), 0);
}

static void connect_both(struct fixture *t)
{
	for (int i = 0; i < 2; i++)
		bring_up(&t->s[i], i);
	for (int i = 0; i < 2; i++) {
		struct host_peer peer = {
			.qpn = t->s[!i].qp.number,
			.ip = ip_of(!i),
			.mtu = ORNIC_MTU_4096,
		};

		mac_of(!i, peer.mac);
		assert_int_equal(host_rc_connect(&t->s[i].qp, &peer), 0);
	}
}

static void fill(struct station *s, uint64_t off, uint32_t len, uint32_t seed)
{
	uint8_t *p = dma_at(&s->d.host.dma, s->buf + off);

	for (uint32_t i = 0; i < len; i++)
		p[i] = (i * 2654435761u >> 13) + seed;
}

static void same(struct fixture *t, uint64_t off0, uint64_t off1, uint32_t len)
{
	assert_memory_equal(dma_at(&t->s[0].d.host.dma, t->s[0].buf + off0),
			    dma_at(&t->s[1].d.host.dma, t->s[1].buf + off1), len);
}

static void expect(struct station *s, uint8_t opcode, uint32_t index, struct ornic_cqe *cqe)
{
	assert_true(host_wait(&s->cq, cqe));
	assert_int_equal(cqe->status, ORNIC_WC_SUCCESS);
	assert_int_equal(cqe->opcode, opcode);
	assert_int_equal(cqe->qpn, s->qp.number);
	assert_int_equal(cqe->wqe_id, index);
}

static void test_send(void **state)
{
	struct fixture *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;

	connect_both(t);
	for (uint32_t n = 0; n < 200; n++) {
		uint32_t len = n ? n * 499 : 1;

		fill(a, 0, len, n);
		host_recv(&b->qp, b->buf, MSG_BYTES, b->key);
		host_send(&a->qp, ORNIC_WR_SEND, a->buf, len, a->key, 0, 0);
		expect(b, ORNIC_WC_RECV, n, &cqe);
		assert_int_equal(cqe.byte_len, len);
		expect(a, ORNIC_WC_SEND, n, &cqe);
		same(t, 0, 0, len);
	}
}

static void test_write_read(void **state)
{
	struct fixture *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;

	connect_both(t);
	fill(a, 0, MSG_BYTES, 7);
	host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, MSG_BYTES, a->key, b->buf + 128, b->key);
	expect(a, ORNIC_WC_RDMA_WRITE, 0, &cqe);
	same(t, 0, 128, MSG_BYTES);
	host_send(&a->qp, ORNIC_WR_RDMA_READ, a->buf + BUF_BYTES / 2, MSG_BYTES, a->key,
		  b->buf + 128, b->key);
	expect(a, ORNIC_WC_RDMA_READ, 1, &cqe);
	same(t, BUF_BYTES / 2, 128, MSG_BYTES);
	assert_false(host_next(&b->cq, &cqe));
}

/* A remote key that does not exist fails the writer, and flushes what is behind. */
static void test_bad_key(void **state)
{
	struct fixture *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;

	connect_both(t);
	host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, 64, a->key, b->buf, b->key + 1);
	host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, 64, a->key, b->buf, b->key);
	assert_true(host_wait(&a->cq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_REM_ACCESS_ERR);
	assert_true(host_wait(&a->cq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_WR_FLUSH_ERR);
}

/* An armed CQ becomes an event, and the event an interrupt. */
static void test_interrupt(void **state)
{
	struct fixture *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_eqe eqe;
	struct ornic_cqe cqe;

	connect_both(t);
	host_arm(&b->eq1, ORNIC_ARM_ANY);
	host_arm(&b->cq, ORNIC_ARM_ANY);
	host_recv(&b->qp, b->buf, 64, b->key);
	assert_int_equal(device_irqs(&b->d, 1, 20), 0);
	host_send(&a->qp, ORNIC_WR_SEND, a->buf, 64, a->key, 0, 0);
	assert_int_equal(device_irqs(&b->d, 1, 5000), 1);
	assert_true(host_next(&b->eq1, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_COMPLETION);
	assert_int_equal(eqe.number, b->cq.number);
	expect(b, ORNIC_WC_RECV, 0, &cqe);
}

/* One host vanishes in the middle; the other one's device goes on, and so does a successor. */
static void test_disconnect(void **state)
{
	struct fixture *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;
	char path[64];

	connect_both(t);
	for (int i = 0; i < 20; i++)
		host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, MSG_BYTES, a->key, b->buf, b->key);
	device_close(&b->d);
	while (a->cq.cons < 20)
		assert_true(host_wait(&a->cq, &cqe) || !"completion missing");
	snprintf(path, sizeof(path), "%s/1", t->dir);
	assert_int_equal(device_open(&b->d, path, MEM_BYTES), 0);
	bring_up(b, 1);
}

/* ORN-PCI-14: the other function goes on. */
static void test_flr(void **state)
{
	struct fixture *t = *state;
	struct station *a = &t->s[0];
	struct host *h = &a->d.host;

	bring_up(a, 0);
	bring_up(&t->s[1], 1);
	assert_int_equal(vfu_client_flr(&a->d.vfu), 0);
	assert_int_equal(host_reg32(&t->s[1].d.host, ORNIC_REG_STATUS), ORNIC_STS_READY);
	assert_int_equal(host_exec(&t->s[1].d.host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0), 0);
	assert_int_equal(host_reg32(h, ORNIC_REG_STATUS), 0);
	assert_int_equal(host_reg32(h, ORNIC_REG_RESET_CAUSE), ORNIC_CAUSE_FLR);
	assert_int_equal(vfu_client_bus_master(&a->d.vfu, true), 0);
	bring_up(a, 0);
}

/* Memory without a descriptor is what QEMU offers without share=on. */
static void test_unshared(void **state)
{
	struct fixture *t = *state;
	struct device_client *d = &t->s[0].d;

	assert_int_equal(vfu_client_dma_unmap(&d->vfu, DEVICE_DMA_BASE, MEM_BYTES), 0);
	assert_int_equal(vfu_client_dma_map(&d->vfu, -1, 0, DEVICE_DMA_BASE, MEM_BYTES, true), 0);
	assert_int_equal(host_enable(&d->host), -EIO);
	assert_int_equal(host_reg32(&d->host, ORNIC_REG_SYNDROME), ORNIC_SYN_HOST_MEMORY);
	host_reset(&d->host, ORNIC_REASON_USER);
	assert_int_equal(host_reg32(&d->host, ORNIC_REG_STATUS), 0);
}

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
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

/* ORN-CTL-18: beats come, and not before their time. */
static void test_heartbeat(void **state)
{
	struct fixture *t = *state;
	struct host *h = &t->s[0].d.host;
	const struct ornic_status_block *b = dma_at(&h->dma, h->status);
	uint64_t start = clock_ns();
	uint64_t period = host_reg32(h, ORNIC_REG_HB_MS);

	assert_int_equal(host_enable(h), 0);
	assert_int_equal(b->heartbeat, 0);
	await_beats(b, 2);
	assert_true(clock_ns() - start >= (2 * period - 1) * 1000000ull);
	host_disable(h, ORNIC_REASON_SHUTDOWN);
	assert_int_equal(host_reg32(h, ORNIC_REG_STATUS), 0);
}

/* The sanitized daemon of this build, or the one that is named. */
static const char *find_daemon(int argc, char **argv)
{
	static char path[4096];
	const char *build = getenv("O");

	if (argc > 1)
		return argv[1];
	snprintf(path, sizeof(path), "%s/san/ornicd", build ? build : "build");
	return path;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_send, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_key, setup, teardown),
		cmocka_unit_test_setup_teardown(test_interrupt, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disconnect, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flr, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unshared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_heartbeat, setup, teardown),
	};

	ornicd = find_daemon(argc, argv);
	if (access(ornicd, X_OK)) {
		fprintf(stderr, "no daemon at %s: make tests builds it\n", ornicd);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
