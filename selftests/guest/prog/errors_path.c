// SPDX-License-Identifier: GPL-2.0
/*
 * Peers that are not ready, missing, or not the connected ones; datagrams that no queue
 * pair may accept; the first packet of a connection.
 */
#include "errors.h"

#include <arpa/inet.h>
#include <stdio.h>

#define GRH	40

/* Read a hardware counter of the port; -1 if the device has none of that name. */
static long long counter(struct env *e, const char *name)
{
	long long value = -1;
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/hw_counters/%s",
		 ibv_get_device_name(e->dev->verbs->device), PORT, name);
	f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%lld", &value) != 1)
			value = -1;
		fclose(f);
	}
	return value;
}

static void rnr_twice(struct conn_attr *a, bool client)
{
	(void)client;
	a->rnr_retry = 2;
	a->min_rnr = 1;
}

static void rnr_exhausted(struct env *e)
{
	if (e->client) {
		struct job job = { .opcode = IBV_WR_SEND, .id = 1, .off = TARGET, .len = 64 };

		env_post(e, &e->main, &job);
		expect_wc(e, &e->send, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		expect_state(e, &e->main, IBV_QPS_ERR);
	}
	oob_barrier(e->oob);
	if (!e->client)
		expect_state(e, &e->main, IBV_QPS_RTS);
	expect_untouched(e);
}

/* The receive is posted after the sender got an RNR NAK. */
static void rnr_recovered(struct env *e)
{
	long long start = counter(e, "rnr_naks_sent");
	double end = now() + PATIENCE;

	oob_barrier(e->oob);
	if (e->client) {
		struct job job = { .opcode = IBV_WR_SEND, .id = 1, .off = TARGET, .len = 64 };

		env_post(e, &e->main, &job);
	}
	oob_barrier(e->oob);
	if (!e->client) {
		while (start >= 0 && counter(e, "rnr_naks_sent") <= start && now() < end)
			;
		EXPECT(e, now() < end, "no RNR NAK within %.0f s", PATIENCE);
		env_post_recv(e, &e->main, 5, TARGET, 64);
		expect_wc(e, &e->recv, 5, IBV_WC_SUCCESS);
	} else {
		expect_wc(e, &e->send, 1, IBV_WC_SUCCESS);
	}
	oob_barrier(e->oob);
}

static void give_up_soon(struct conn_attr *a, bool client)
{
	(void)client;
	a->timeout = 12;		/* 17 ms */
	a->retry = 2;
}

/* arg: 0 the server's queue pair is destroyed, 1 it is in ERR */
static void peer_gone(struct env *e)
{
	if (!e->client && e->arg)
		conn_to(&e->main, IBV_QPS_ERR);
	else if (!e->client)
		conn_destroy(&e->main);
	oob_barrier(e->oob);
	if (e->client) {
		struct job job = { .opcode = IBV_WR_RDMA_WRITE, .id = 1, .off = TARGET, .len = 64 };

		env_post(e, &e->main, &job);
		job.id = 2;
		env_post(e, &e->main, &job);
		expect_wc(e, &e->send, 1, IBV_WC_RETRY_EXC_ERR);
		expect_wc(e, &e->send, 2, IBV_WC_WR_FLUSH_ERR);
		expect_state(e, &e->main, IBV_QPS_ERR);
	}
	oob_barrier(e->oob);
	expect_untouched(e);
}

static void comm_est(struct env *e)
{
	struct conn_attr a;
	struct conn c;

	conn_attr_default(&a, e->dev);
	a.stay_rtr = !e->client;
	conn_create(&c, e->dev, &a, &e->send, &e->recv);
	conn_connect(&c, e->oob);
	if (e->client) {
		struct job job = { .opcode = IBV_WR_RDMA_WRITE, .id = 1, .off = TARGET, .len = 64 };

		env_post(e, &c, &job);
		expect_wc(e, &e->send, 1, IBV_WC_SUCCESS);
	} else {
		expect_event(e, IBV_EVENT_COMM_EST, &c);
		EXPECT(e, !conn_to_rts(&c), "RTR to RTS after the first packet fails");
	}
	expect_works(e, &c, &e->send);
	conn_destroy(&c);
}

static void datagrams(struct conn_attr *a, bool client)
{
	(void)client;
	a->type = IBV_QPT_UD;
}

struct datagram {
	uint32_t qpn;
	uint32_t qkey;
	uint32_t len;
	uint32_t imm;
};

static void send_datagram(struct env *e, const struct datagram *d)
{
	struct ibv_sge sge = { (uintptr_t)e->mem + TARGET, d->len, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = d->imm, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(d->imm),
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = e->main.ah, .remote_qpn = d->qpn, .remote_qkey = d->qkey },
	};
	struct ibv_send_wr *bad;

	if (ibv_post_send(e->main.qp, &wr, &bad))
		bail("ibv_post_send of a datagram failed");
}

/*
 * A datagram that must be dropped, then a good one, which takes the waiting receive. arg:
 * the fault of the first datagram.
 */
enum { WRONG_QKEY, NO_SUCH_QP, TOO_LONG };

static void datagram_dropped(struct env *e)
{
	struct datagram good = { .qpn = e->main.there.qpn, .qkey = QKEY, .len = 32, .imm = 2 };
	struct datagram bad = good;
	struct ibv_wc wc;

	bad.imm = 1;
	if (e->arg == WRONG_QKEY)
		bad.qkey ^= 0x100;
	else if (e->arg == NO_SUCH_QP)
		bad.qpn = 0xfffff0;
	else
		bad.len = 100;
	if (!e->client)
		env_post_recv(e, &e->main, 5, 0, GRH + 64);
	oob_barrier(e->oob);
	if (e->client) {
		send_datagram(e, &bad);
		send_datagram(e, &good);
		expect_wc(e, &e->send, 1, IBV_WC_SUCCESS);
		expect_wc(e, &e->send, 2, IBV_WC_SUCCESS);
	} else if (!queue_wait(&e->recv, &wc, PATIENCE)) {
		EXPECT(e, false, "the good datagram did not arrive within %.0f s", PATIENCE);
	} else {
		EXPECT(e, wc.status == IBV_WC_SUCCESS && wc.wr_id == 5 && ntohl(wc.imm_data) == 2 &&
		       wc.byte_len == GRH + good.len, "%s, immediate %u, %u bytes",
		       ibv_wc_status_str(wc.status), ntohl(wc.imm_data), wc.byte_len);
	}
	expect_state(e, &e->main, IBV_QPS_RTS);
	oob_barrier(e->oob);
}

/* A datagram longer than the MTU is rejected locally; the queue pair enters SQE and recovers. */
static void datagram_beyond_mtu(struct env *e)
{
	struct datagram d = { .qpn = e->main.there.qpn, .qkey = QKEY, .len = e->dev->mtu + 1, .imm = 1 };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };

	if (e->no_events)		/* rxe drops it and reports success */
		return;
	if (!e->client)
		env_post_recv(e, &e->main, 5, 0, GRH + 64);
	oob_barrier(e->oob);
	if (e->client) {
		send_datagram(e, &d);
		expect_wc(e, &e->send, 1, IBV_WC_LOC_LEN_ERR);
		expect_state(e, &e->main, IBV_QPS_SQE);
		d.len = 32;
		d.imm = 2;
		send_datagram(e, &d);
		expect_wc(e, &e->send, 2, IBV_WC_WR_FLUSH_ERR);
		EXPECT(e, !ibv_modify_qp(e->main.qp, &rts, IBV_QP_STATE | IBV_QP_CUR_STATE),
		       "SQE to RTS fails");
		d.imm = 3;
		send_datagram(e, &d);
		expect_wc(e, &e->send, 3, IBV_WC_SUCCESS);
	} else {
		expect_wc(e, &e->recv, 5, IBV_WC_SUCCESS);
	}
	oob_barrier(e->oob);
}

static void bad_address_handle(struct env *e)
{
	struct ibv_ah_attr a = {
		.is_global = 1,
		.port_num = PORT,
		.grh = { .dgid = e->innocent.there.gid, .sgid_index = 199, .hop_limit = 64 },
	};

	EXPECT(e, !ibv_create_ah(e->dev->pd, &a), "an address handle with GID index 199 is created");
	a.grh.sgid_index = e->dev->gid_index;
	a.port_num = 7;
	EXPECT(e, !ibv_create_ah(e->dev->pd, &a), "an address handle on port 7 is created");
	a.port_num = PORT;
	a.grh.dgid.raw[12] = 203;	/* 203.0.113.x: an address without a route */
	a.grh.dgid.raw[13] = 0;
	a.grh.dgid.raw[14] = 113;
	EXPECT(e, !ibv_create_ah(e->dev->pd, &a), "an address handle to nowhere is created");
}

const struct error_test path_tests[] = {
	{ "rnr_exhausted", rnr_exhausted, rnr_twice, 0 },
	{ "rnr_recovered", rnr_recovered, NULL, 0 },
	{ "peer_destroyed", peer_gone, give_up_soon, 0 },
	{ "peer_in_err", peer_gone, give_up_soon, 1 },
	{ "comm_est", comm_est, NULL, 0 },
	{ "ud_wrong_qkey", datagram_dropped, datagrams, WRONG_QKEY },
	{ "ud_no_such_qp", datagram_dropped, datagrams, NO_SUCH_QP },
	{ "ud_too_long", datagram_dropped, datagrams, TOO_LONG },
	{ "ud_beyond_mtu", datagram_beyond_mtu, datagrams, 0 },
	{ "bad_address_handle", bad_address_handle, NULL, 0 },
	{ NULL, NULL, NULL, 0 },
};
