// SPDX-License-Identifier: GPL-2.0
/*
 * Two hosts with queue pairs, for a test that writes packets. The program prints their
 * attributes on standard output, and executes commands from standard input.
 *
 * Usage: roce_guest SOCKET SOCKET
 *
 * The first host has a queue pair of each kind, connected to the test (10.0.0.9,
 * 02:00:00:00:00:09, queue pair 0x77), PSNs from 0; and one that is connected to the second
 * host's, which the test does not involve.
 *
 *   connect	all queue pairs of the first host: RESET, and connected again
 *   counters	of the port, name=value
 *   states	of the queue pairs, name=state
 *   polls	completions of each queue pair, name=opcode/status,...
 *   write LEN	RDMA WRITE of the connected queue pair
 *   memory	check that bytes which must not change have their values
 *   innocent	exchange data between the hosts
 */
#include "device.h"
#include "queue.h"

#include <ornic/identify.h>
#include <ornic/stats.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEATURES	(ORNIC_FEATURE(RC) | ORNIC_FEATURE(UC) | ORNIC_FEATURE(UD) | \
			 ORNIC_FEATURE(ATOMICS) | ORNIC_FEATURE(JUMBO))
#define MEMORY		(4u << 20)
#define RING		5
#define REGION		8192u
#define QKEY		0x11u
#define STATS		200u
#define PEER_QPN	0x77u
#define SECRET		0xc7

#define DO(x)									\
	do {									\
		int st_ = (x);							\
										\
		if (st_) {							\
			fprintf(stderr, "%s: %d\n", #x, st_);			\
			exit(1);						\
		}								\
	} while (0)

enum kind { RC, UC, UD, INNOCENT, KINDS };

static const char *const names[KINDS] = { "rc", "uc", "ud", "innocent" };
static const uint8_t types[KINDS] = {
	ORNIC_QPT_RC, ORNIC_QPT_UC, ORNIC_QPT_UD, ORNIC_QPT_RC,
};

/**
 * struct guest - a host
 * @buf:	a guard, the region, a guard, the read-only region, a guard
 * @key, @readonly: their keys
 */
struct guest {
	struct device_client d;
	struct host_ring eq0;
	struct host_ring eq1;
	uint32_t pd;
	uint64_t buf;
	uint32_t key;
	uint32_t readonly;
	struct host_qp qp[KINDS];
	struct host_ring cq[KINDS];
};

static struct guest guest[2];

static uint64_t region(const struct guest *g)
{
	return g->buf + REGION;
}

static uint64_t readonly(const struct guest *g)
{
	return g->buf + 3 * REGION;
}

static void make_memory(struct guest *g)
{
	struct host *h = &g->d.host;

	g->buf = dma_alloc(&h->dma, 5 * REGION, 4096);
	memset(dma_at(&h->dma, g->buf), SECRET, 5 * REGION);
	memset(dma_at(&h->dma, region(g)), 0, REGION);
	DO(host_key_create(h, g->pd, region(g), REGION, ORNIC_ACCESS_LOCAL_WRITE |
			   ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ |
			   ORNIC_ACCESS_REMOTE_ATOMIC, &g->key));
	DO(host_key_create(h, g->pd, readonly(g), REGION, ORNIC_ACCESS_REMOTE_READ,
			   &g->readonly));
}

static void bring_up(int i, const char *path)
{
	const uint8_t mac[6] = { 2, 0, 0, 0, 0, i + 1 };
	struct guest *g = &guest[i];
	struct host *h = &g->d.host;

	DO(device_open(&g->d, path, MEMORY));
	DO(host_enable(h));
	DO(host_bring_up(h, FEATURES, &g->eq0, &g->eq1));
	DO(host_port_up(h, 9000));
	DO(host_gid_set(h, 0, 0x0a000001 + i, mac));
	DO(host_pd_create(h, &g->pd));
	make_memory(g);
	for (int k = i ? INNOCENT : 0; k < KINDS; k++) {
		DO(host_cq_create(h, &g->cq[k], RING + 1, g->eq1.number, 0));
		DO(host_qp_create(h, &g->qp[k], types[k], RING, g->pd, g->cq[k].number,
				  g->cq[k].number));
	}
}

/* ---- connecting ------------------------------------------------------------------ */

static struct host_peer wire_peer(void)
{
	return (struct host_peer) {
		.qpn = PEER_QPN, .ip = 0x0a000009, .mac = { 2, 0, 0, 0, 0, 9 },
		.mtu = ORNIC_MTU_1024,
	};
}

static void to_reset(struct host_qp *qp)
{
	struct ornic_qp_modify_cmd cmd = { .mask = htole32(ORNIC_QPM_STATE) };
	struct host_wq *wq[2] = { &qp->sq, &qp->rq };

	DO(host_qp_state(qp, &cmd));
	for (int i = 0; i < 2; i++) {
		struct ornic_rec *rec = dma_at(&qp->h->dma, wq[i]->rec);

		memset(rec, 0, sizeof(*rec));
		rec->notify = htole32(ORNIC_NOTIFY_ALWAYS);
		wq[i]->prod = 0;
		wq[i]->rung = 0;
	}
}

static void connect_uc(struct host_qp *qp, const struct host_peer *peer)
{
	struct ornic_qp_modify_cmd cmd = {
		.port = 1, .path_mtu = peer->mtu, .dest_qpn = htole32(peer->qpn),
		.access = htole32(ORNIC_ACCESS_REMOTE_WRITE),
	};
	static const uint32_t masks[] = {
		[ORNIC_QPS_INIT] = ORNIC_QPM_PKEY_INDEX | ORNIC_QPM_PORT | ORNIC_QPM_ACCESS,
		[ORNIC_QPS_RTR] = ORNIC_QPM_PATH | ORNIC_QPM_PATH_MTU | ORNIC_QPM_DEST_QPN |
				  ORNIC_QPM_RQ_PSN,
		[ORNIC_QPS_RTS] = ORNIC_QPM_SQ_PSN,
	};

	host_path(&cmd.path, peer);
	for (uint8_t next = ORNIC_QPS_INIT; next <= ORNIC_QPS_RTS; next++) {
		cmd.mask = htole32(ORNIC_QPM_STATE | masks[next]);
		cmd.next_state = next;
		DO(host_qp_state(qp, &cmd));
	}
}

static void connect_ud(struct host_qp *qp)
{
	struct ornic_qp_modify_cmd cmd = { .port = 1, .qkey = htole32(QKEY) };
	static const uint32_t masks[] = {
		[ORNIC_QPS_INIT] = ORNIC_QPM_PKEY_INDEX | ORNIC_QPM_PORT | ORNIC_QPM_QKEY,
		[ORNIC_QPS_RTR] = 0,
		[ORNIC_QPS_RTS] = ORNIC_QPM_SQ_PSN,
	};

	for (uint8_t next = ORNIC_QPS_INIT; next <= ORNIC_QPS_RTS; next++) {
		cmd.mask = htole32(ORNIC_QPM_STATE | masks[next]);
		cmd.next_state = next;
		DO(host_qp_state(qp, &cmd));
	}
}

static void do_connect(void)
{
	struct host_peer peer = wire_peer();
	struct guest *g = &guest[0];
	struct ornic_cqe cqe;

	for (int k = 0; k < INNOCENT; k++) {
		to_reset(&g->qp[k]);
		if (k == RC)
			DO(host_rc_connect(&g->qp[k], &peer));
		else if (k == UC)
			connect_uc(&g->qp[k], &peer);
		else
			connect_ud(&g->qp[k]);
		while (host_next(&g->cq[k], &cqe))
			;
		for (int n = 0; n < 4; n++)
			host_recv(&g->qp[k], region(g), REGION, g->key);
	}
	printf("connect\n");
}

static void join(void)
{
	for (int i = 0; i < 2; i++) {
		struct host_peer peer = {
			.qpn = guest[!i].qp[INNOCENT].number, .ip = 0x0a000001 + !i,
			.mac = { 2, 0, 0, 0, 0, 1 + !i }, .mtu = ORNIC_MTU_1024,
		};

		DO(host_rc_connect(&guest[i].qp[INNOCENT], &peer));
	}
}

/* ---- commands --------------------------------------------------------------------- */

static void do_counters(void)
{
	static struct ornic_stat_name name[STATS];
	struct ornic_stat_names_cmd list = { 0 };
	struct ornic_stat_read_cmd read = {
		.scope = ORNIC_STAT_PORT, .number = htole32(1), .count = htole32(STATS),
	};
	struct host *h = &guest[0].d.host;
	uint64_t val[STATS];
	uint32_t n = 0, got;

	DO(host_exec(h, ORNIC_OP_STAT_READ, 0, &read, sizeof(read), val, sizeof(val)));
	printf("counters");
	do {
		DO(host_exec(h, ORNIC_OP_STAT_NAMES, 0, &list, sizeof(list), name,
			     ORNIC_ADMIN_MAX_PAYLOAD));
		got = le32toh(h->cpl.out_size) / sizeof(name[0]);
		if (got > ORNIC_ADMIN_MAX_PAYLOAD / sizeof(name[0]))
			got = ORNIC_ADMIN_MAX_PAYLOAD / sizeof(name[0]);
		for (uint32_t i = 0; i < got; i++)
			if (name[i].scope == ORNIC_STAT_PORT)
				printf(" %s=%" PRIu64, name[i].name, (uint64_t)le64toh(val[n++]));
		list.offset = htole32(le32toh(list.offset) + got);
	} while (got);
	printf("\n");
}

static void do_states(void)
{
	struct ornic_qp_query_rsp rsp;

	printf("states");
	for (int k = 0; k < KINDS; k++) {
		DO(host_exec(&guest[0].d.host, ORNIC_OP_QP_QUERY, guest[0].qp[k].number, NULL, 0,
			     &rsp, sizeof(rsp)));
		printf(" %s=%u", names[k], rsp.attr.next_state);
	}
	printf("\n");
}

static void do_polls(void)
{
	struct ornic_cqe cqe;

	printf("polls");
	for (int k = 0; k < INNOCENT; k++) {
		printf(" %s=", names[k]);
		while (host_next(&guest[0].cq[k], &cqe))
			printf("%u/%u,", cqe.opcode, cqe.status);
	}
	printf("\n");
}

static void do_write(uint32_t len)
{
	struct guest *g = &guest[0];

	host_send(&g->qp[RC], ORNIC_WR_RDMA_WRITE, region(g), len, g->key, 0x1000, 0x100);
	printf("write\n");
}

static bool all_bytes(const struct guest *g, uint64_t addr, uint8_t byte)
{
	const uint8_t *p = dma_at(&g->d.host.dma, addr);

	for (uint32_t i = 0; i < REGION; i++)
		if (p[i] != byte)
			return false;
	return true;
}

static void do_memory(void)
{
	bool good = true;

	for (int i = 0; i < 2; i++)
		for (int part = 0; part < 5; part++)
			good &= part == 1 || all_bytes(&guest[i], guest[i].buf + part * REGION,
						       SECRET);
	printf("memory %s\n", good ? "ok" : "changed");
}

static bool exchange(int from)
{
	struct guest *a = &guest[from], *b = &guest[!from];
	struct ornic_cqe cqe;

	host_recv(&b->qp[INNOCENT], region(b), 512, b->key);
	host_send(&a->qp[INNOCENT], ORNIC_WR_SEND, readonly(a), 512, a->readonly, 0, 0);
	host_send(&a->qp[INNOCENT], ORNIC_WR_RDMA_WRITE, readonly(a), 2000, a->readonly,
		  region(b) + 512, b->key);
	for (int i = 0; i < 2; i++)
		if (!host_wait(&a->cq[INNOCENT], &cqe) || cqe.status)
			return false;
	if (!host_wait(&b->cq[INNOCENT], &cqe) || cqe.status)
		return false;
	return !memcmp(dma_at(&b->d.host.dma, region(b) + 512),
		       dma_at(&a->d.host.dma, readonly(a)), 2000);
}

static void do_innocent(void)
{
	printf("innocent %s\n", exchange(0) && exchange(1) ? "ok" : "harmed");
}

static void tell(void)
{
	const struct guest *g = &guest[0];

	printf("{\"rc\": %u, \"uc\": %u, \"ud\": %u, \"innocent\": %u, ", g->qp[RC].number,
	       g->qp[UC].number, g->qp[UD].number, g->qp[INNOCENT].number);
	printf("\"qkey\": %u, \"peer\": %u, ", QKEY, PEER_QPN);
	printf("\"va\": %" PRIu64 ", \"rkey\": %u, \"bytes\": %u, \"ro_va\": %" PRIu64
	       ", \"ro_rkey\": %u}\n", region(g), g->key, REGION, readonly(g), g->readonly);
}

static void obey(char *line)
{
	line[strcspn(line, "\n")] = 0;
	if (!strcmp(line, "connect"))
		do_connect();
	else if (!strcmp(line, "counters"))
		do_counters();
	else if (!strcmp(line, "states"))
		do_states();
	else if (!strcmp(line, "polls"))
		do_polls();
	else if (!strncmp(line, "write ", 6))
		do_write(atoi(line + 6));
	else if (!strcmp(line, "memory"))
		do_memory();
	else if (!strcmp(line, "innocent"))
		do_innocent();
	else
		printf("what? %s\n", line);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[80];

	if (argc != 3)
		return 2;
	for (int i = 0; i < 2; i++)
		bring_up(i, argv[1 + i]);
	join();
	tell();
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	for (int i = 0; i < 2; i++)
		device_close(&guest[i].d);
	return 0;
}
