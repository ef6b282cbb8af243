// SPDX-License-Identifier: GPL-2.0
/*
 * A daemon with devices and a host at each.
 */
#define _GNU_SOURCE 1	/* pipe2() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stations.h"

#include <ornic/identify.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FEATURES	(ORNIC_FEATURE(RC) | ORNIC_FEATURE(UD) | ORNIC_FEATURE(RAW) |	\
			 ORNIC_FEATURE(ATOMICS) | ORNIC_FEATURE(JUMBO) | ORNIC_FEATURE(DM) |	\
			 ORNIC_FEATURE(TIMESTAMP))

static const char *ornicd;

bool stations_daemon(int argc, char **argv)
{
	static char path[4096];
	const char *build = getenv("O");

	signal(SIGPIPE, SIG_IGN);
	snprintf(path, sizeof(path), "%s/san/ornicd", build ? build : "build");
	ornicd = argc > 1 ? argv[1] : path;
	if (!access(ornicd, X_OK))
		return true;
	fprintf(stderr, "no daemon at %s: make tests builds it\n", ornicd);
	return false;
}

void stations_start(struct stations *t, int n)
{
	char spec[STATIONS][96], control[64], fd[12];
	const char *argv[8 + 2 * STATIONS] = {
		ornicd, "--log-level", "warning", "--ready-fd", fd, "--control", control,
	};
	int ready[2], argc = 7;
	char c;

	strcpy(t->dir, "/tmp/ornic-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	assert_int_equal(pipe2(ready, 0), 0);
	snprintf(fd, sizeof(fd), "%d", ready[1]);
	for (int i = 0; i < n; i++) {
		snprintf(spec[i], sizeof(spec[i]), "path=%s/%d,mac=02:00:00:00:00:0%d", t->dir, i,
			 i + 1);
		argv[argc++] = "-d";
		argv[argc++] = spec[i];
	}
	snprintf(control, sizeof(control), "%s/control", t->dir);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (!t->pid) {
		close(ready[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);	/* in case the test aborts */
		execv(ornicd, (char **)argv);
		_exit(127);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
}

void stations_stop(struct stations *t)
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

void station_open(struct stations *t, int i)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%d", t->dir, i);
	assert_int_equal(device_open(&t->s[i].d, path, STATION_MEM), 0);
}

int stations_setup(void **state)
{
	struct stations *t = test_calloc(1, sizeof(*t));

	stations_start(t, 2);
	for (int i = 0; i < 2; i++)
		station_open(t, i);
	*state = t;
	return 0;
}

int stations_teardown(void **state)
{
	struct stations *t = *state;

	for (int i = 0; i < 2; i++)
		device_close(&t->s[i].d);
	stations_stop(t);
	test_free(t);
	return 0;
}

void station_mac(int i, uint8_t mac[6])
{
	memcpy(mac, (uint8_t [6]) { 2, 0, 0, 0, 0, i + 1 }, 6);
}

uint32_t station_ip(int i)
{
	return 0x0a000001 + i;
}

void station_bring_up(struct station *s, int i)
{
	struct host *h = &s->d.host;
	uint8_t mac[6];

	station_mac(i, mac);
	assert_int_equal(host_enable(h), 0);
	assert_int_equal(host_bring_up(h, FEATURES, &s->eq0, &s->eq1), 0);
	assert_int_equal(host_port_up(h, 9000), 0);
	assert_int_equal(host_gid_set(h, 0, station_ip(i), mac), 0);
	assert_int_equal(host_pd_create(h, &s->pd), 0);
	s->buf = dma_alloc(&h->dma, STATION_BUF, 4096);
	assert_int_equal(host_key_create(h, s->pd, s->buf, STATION_BUF, ORNIC_ACCESS_LOCAL_WRITE |
					 ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ |
					 ORNIC_ACCESS_REMOTE_ATOMIC, &s->key), 0);
	assert_int_equal(host_cq_create(h, &s->cq, 8, s->eq1.number, 0), 0);
	assert_int_equal(host_qp_create(h, &s->qp, ORNIC_QPT_RC, STATION_RING, s->pd, s->cq.number,
					s->cq.number), 0);
}

void station_connect(struct stations *t, int i, int to)
{
	struct host_peer peer = {
		.qpn = t->s[to].qp.number,
		.ip = station_ip(to),
		.mtu = ORNIC_MTU_4096,
	};

	station_mac(to, peer.mac);
	assert_int_equal(host_rc_connect(&t->s[i].qp, &peer), 0);
}

void stations_connect(struct stations *t)
{
	for (int i = 0; i < 2; i++)
		station_bring_up(&t->s[i], i);
	for (int i = 0; i < 2; i++)
		station_connect(t, i, !i);
}

void station_fill(struct station *s, uint64_t off, uint32_t len, uint32_t seed)
{
	uint8_t *p = dma_at(&s->d.host.dma, s->buf + off);

	for (uint32_t i = 0; i < len; i++)
		p[i] = (i * 2654435761u >> 13) + seed;
}

void stations_same(struct stations *t, uint64_t off0, uint64_t off1, uint32_t len)
{
	assert_memory_equal(dma_at(&t->s[0].d.host.dma, t->s[0].buf + off0),
			    dma_at(&t->s[1].d.host.dma, t->s[1].buf + off1), len);
}

void station_expect(struct station *s, uint8_t opcode, uint32_t index, struct ornic_cqe *cqe)
{
	assert_true(host_wait(&s->cq, cqe));
	assert_int_equal(cqe->status, ORNIC_WC_SUCCESS);
	assert_int_equal(cqe->opcode, opcode);
	assert_int_equal(cqe->qpn, s->qp.number);
	assert_int_equal(cqe->wqe_id, index);
}

uint64_t stations_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}
