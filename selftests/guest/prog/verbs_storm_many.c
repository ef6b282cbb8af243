// SPDX-License-Identifier: GPL-2.0
/*
 * A thousand queue pairs at once: each sends, writes and reads once in each direction,
 * all of it posted before anything is polled.
 *
 *   verbs_storm_many -d DEVICE                  server, until killed
 *   verbs_storm_many -d DEVICE SERVER [TEST]    client, prints TAP
 */
#include "conn.h"
#include "oob.h"
#include "pattern.h"
#include "report.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OOB_PORT	"7476"
#define QPS		1000u
#define SLOT		512u
#define PATIENCE	120

/* Slots of a queue pair */
enum { SOURCE, SENT, WRITTEN, READ, SLOTS };

enum { OP_SEND, OP_WRITE, OP_READ, OP_RECV, OPS };

struct memory {
	uint64_t addr;
	uint32_t rkey;
	uint32_t reserved;
};

struct many {
	struct dev dev;
	struct queue q;
	struct conn conn[QPS];
	uint8_t done[QPS][OPS];
	uint8_t *buf;
	struct ibv_mr *mr;
	struct memory there;
	struct verdict verdict;
	bool server;
};

static size_t offset(uint32_t qp, unsigned int slot)
{
	return ((size_t)qp * SLOTS + slot) * SLOT;
}

static uint64_t seed_of(uint32_t qp, bool server)
{
	return (uint64_t)qp << 1 | server;
}

static void create_all(struct many *m)
{
	struct conn_attr attr;

	m->buf = aligned_alloc(4096, offset(QPS, 0));
	memset(m->buf, 0, offset(QPS, 0));
	m->mr = ibv_reg_mr(m->dev.pd, m->buf, offset(QPS, 0), ALL_RIGHTS);
	if (!m->mr)
		bail("ibv_reg_mr: %s", strerror(errno));
	queue_create(&m->q, &m->dev, QPS * OPS, false);
	conn_attr_default(&attr, &m->dev);
	attr.cap.max_send_wr = 4;
	attr.cap.max_recv_wr = 1;
	for (uint32_t i = 0; i < QPS; i++) {
		conn_create(&m->conn[i], &m->dev, &attr, &m->q, &m->q);
		pattern_fill(m->buf + offset(i, SOURCE), SLOT, seed_of(i, m->server), 0);
	}
}

static void connect_all(struct many *m, struct oob *o)
{
	struct memory here = { (uintptr_t)m->buf, m->mr->rkey, 0 };
	static struct conn_addr mine[QPS], theirs[QPS];

	for (uint32_t i = 0; i < QPS; i++)
		mine[i] = m->conn[i].here;
	oob_swap(o, mine, theirs, sizeof(mine));
	oob_swap(o, &here, &m->there, sizeof(here));
	for (uint32_t i = 0; i < QPS; i++) {
		m->conn[i].there = theirs[i];
		if (conn_to_rtr(&m->conn[i]) || conn_to_rts(&m->conn[i]))
			bail("queue pair %u does not connect: %s", i, strerror(errno));
	}
}

static void post_recvs(struct many *m)
{
	for (uint32_t i = 0; i < QPS; i++) {
		struct ibv_sge sge = {
			(uintptr_t)m->buf + offset(i, SENT), SLOT, m->mr->lkey,
		};
		struct ibv_recv_wr *bad, wr = {
			.wr_id = i * OPS + OP_RECV, .sg_list = &sge, .num_sge = 1,
		};

		if (ibv_post_recv(m->conn[i].qp, &wr, &bad))
			bail("cannot post a receive");
	}
}

static void post(struct many *m, uint32_t i, unsigned int op, enum ibv_wr_opcode opcode,
		 unsigned int local, unsigned int remote)
{
	struct ibv_sge sge = { (uintptr_t)m->buf + offset(i, local), SLOT, m->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = i * OPS + op, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = m->there.addr + offset(i, remote),
			     .rkey = m->there.rkey },
	};

	if (ibv_post_send(m->conn[i].qp, &wr, &bad))
		bail("cannot post a send");
}

static void collect(struct many *m)
{
	struct ibv_wc wc;

	for (uint32_t n = 0; n < QPS * OPS; n++) {
		if (!queue_wait(&m->q, &wc, PATIENCE)) {
			verdict_fail(&m->verdict, "only %u of %u completions came", n, QPS * OPS);
			return;
		}
		if (wc.status != IBV_WC_SUCCESS)
			verdict_fail(&m->verdict, "operation %u of queue pair %u: %s",
				     (uint32_t)wc.wr_id % OPS, (uint32_t)wc.wr_id / OPS,
				     ibv_wc_status_str(wc.status));
		if (wc.wr_id >= QPS * OPS || m->done[wc.wr_id / OPS][wc.wr_id % OPS]++)
			verdict_fail(&m->verdict, "completion with wr_id %llu came twice",
				     (unsigned long long)wc.wr_id);
	}
}

static void check(struct many *m)
{
	for (uint32_t i = 0; i < QPS; i++)
		for (unsigned int slot = SENT; slot < SLOTS; slot++)
			if (pattern_check(m->buf + offset(i, slot), SLOT,
					  seed_of(i, !m->server), 0) != SLOT)
				verdict_fail(&m->verdict, "wrong data in slot %u of queue pair %u",
					     slot, i);
}

static void destroy_all(struct many *m)
{
	for (uint32_t i = 0; i < QPS; i++)
		conn_destroy(&m->conn[i]);
	queue_destroy(&m->q);
	if (ibv_dereg_mr(m->mr))
		bail("ibv_dereg_mr: %s", strerror(errno));
	free(m->buf);
}

static void run(struct many *m, struct oob *o, struct verdict *theirs)
{
	m->server = o->server;
	create_all(m);
	connect_all(m, o);
	post_recvs(m);
	oob_barrier(o);
	for (uint32_t i = 0; i < QPS; i++) {
		post(m, i, OP_SEND, IBV_WR_SEND, SOURCE, SOURCE);
		post(m, i, OP_WRITE, IBV_WR_RDMA_WRITE, SOURCE, WRITTEN);
		post(m, i, OP_READ, IBV_WR_RDMA_READ, READ, SOURCE);
	}
	collect(m);
	oob_barrier(o);
	check(m);
	destroy_all(m);
	oob_swap(o, &m->verdict, theirs, sizeof(*theirs));
}

static struct many *many_new(const char *device)
{
	struct many *m = calloc(1, sizeof(*m));

	if (!m)
		bail("out of memory");
	dev_open(&m->dev, device, -1);
	return m;
}

static void serve(const char *device)
{
	int listener = oob_listen(OOB_PORT);
	struct verdict theirs;
	struct many *m;
	struct oob oob;

	printf("listening\n");
	fflush(stdout);
	while (oob_accept(&oob, listener)) {
		m = many_new(device);
		run(m, &oob, &theirs);
		dev_close(&m->dev);
		free(m);
		oob_close(&oob);
	}
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	struct verdict theirs;
	struct many *m;
	struct oob oob;
	int option;

	while ((option = getopt(argc, argv, "d:")) != -1)
		if (option == 'd')
			device = optarg;
	if (!device)
		bail("usage: verbs_storm_many -d DEVICE [SERVER [TEST]]");
	if (optind == argc) {
		serve(device);
		return 1;
	}
	oob_connect(&oob, argv[optind], OOB_PORT);
	m = many_new(device);
	run(m, &oob, &theirs);
	tap_point("thousand", &m->verdict, &theirs);
	dev_close(&m->dev);
	free(m);
	oob_close(&oob);
	return tap_end();
}
