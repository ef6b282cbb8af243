// SPDX-License-Identifier: GPL-2.0
/*
 * Kinds of memory and of registration, within one process: two queue pairs of one
 * device, connected to each other.
 *
 *   verbs_memory DEVICE [TEST...]	the named tests, or all; prints TAP
 */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct memory m;

static void connect_pair(void)
{
	struct conn_attr attr;

	conn_attr_default(&attr, &m.dev);
	conn_create(&m.a, &m.dev, &attr, &m.cq, &m.cq);
	conn_create(&m.b, &m.dev, &attr, &m.cq, &m.cq);
	m.a.there = m.b.here;
	m.b.there = m.a.here;
	if (conn_to_init(&m.a) || conn_to_init(&m.b) || conn_to_rtr(&m.a) || conn_to_rtr(&m.b) ||
	    conn_to_rts(&m.a) || conn_to_rts(&m.b))
		bail("queue pairs do not connect");
}

static void disconnect_pair(void)
{
	conn_destroy(&m.a);
	conn_destroy(&m.b);
}

void reconnect_pair(void)
{
	disconnect_pair();
	connect_pair();
}

int rdma_post(enum ibv_wr_opcode op, void *mem, uint32_t lkey, uint64_t raddr, uint32_t rkey,
	      uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)mem, .length = len, .lkey = lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = op, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = raddr, .rkey = rkey },
	};

	return ibv_post_send(m.a.qp, &wr, &bad);
}

int rdma(enum ibv_wr_opcode op, void *mem, uint32_t lkey, uint64_t raddr, uint32_t rkey,
	 uint32_t len)
{
	struct ibv_wc wc;

	if (rdma_post(op, mem, lkey, raddr, rkey, len))
		return -1;
	return queue_wait(&m.cq, &wc, PATIENCE) ? (int)wc.status : -2;
}

void expect(struct verdict *v, int got, int want, const char *what)
{
	if (got != want)
		verdict_fail(v, "%s: %d, expected %d", what, got, want);
}

static void fill(char *p, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = seed + i * 7 + (i >> 8);
}

void there_and_back(struct verdict *v, uint64_t raddr, uint32_t rkey, const char *view,
		    uint32_t len)
{
	fill(m.buf, len, rkey);
	memset(m.buf + SIZE, 0, len);
	expect(v, rdma(IBV_WR_RDMA_WRITE, m.buf, m.local->lkey, raddr, rkey, len), IBV_WC_SUCCESS,
	       "write");
	expect(v, rdma(IBV_WR_RDMA_READ, m.buf + SIZE, m.local->lkey, raddr, rkey, len),
	       IBV_WC_SUCCESS, "read");
	if (memcmp(m.buf, m.buf + SIZE, len))
		verdict_fail(v, "the data read differs from the data written");
	if (view && memcmp(m.buf, view, len))
		verdict_fail(v, "the memory differs from the data written");
}

long key_pages(void)
{
	char path[128];
	long n = -1;
	FILE *f;

	usleep(20000);			/* the kernel caches counters for 10 ms */
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/hw_counters/key_pages", m.name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%ld", &n) != 1)
		bail("no counter %s", path);
	fclose(f);
	return n;
}

static void run(const struct memory_test *tests, char **argv)
{
	for (; tests->name; tests++) {
		struct verdict no_server = {}, v = {};

		if (!tap_chosen(tests->name, argv + 2))
			continue;
		connect_pair();
		tests->run(&v);
		tap_point(tests->name, &v, &no_server);
		disconnect_pair();
	}
}

int main(int argc, char **argv)
{
	if (argc < 2)
		bail("usage: verbs_memory DEVICE [TEST...]");
	m.name = argv[1];
	dev_open(&m.dev, m.name, -1);
	queue_create(&m.cq, &m.dev, 64, false);
	m.buf = aligned_alloc(4096, 3 * SIZE);
	if (!m.buf)
		bail("no memory");
	m.local = ibv_reg_mr(m.dev.pd, m.buf, 3 * SIZE, IBV_ACCESS_LOCAL_WRITE);
	if (!m.local)
		bail("cannot register %u bytes: %s", 3 * SIZE, strerror(errno));
	run(region_tests, argv);
	run(dm_tests, argv);
	run(dmabuf_tests, argv);
	ibv_dereg_mr(m.local);
	free(m.buf);
	queue_destroy(&m.cq);
	dev_close(&m.dev);
	return tap_end();
}
