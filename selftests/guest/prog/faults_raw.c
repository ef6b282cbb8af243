// SPDX-License-Identifier: GPL-2.0
/*
 * Faults while flows, work queues, RSS tables and their queue pairs are created and
 * destroyed.
 */
#include "faults_cases.h"

#include <arpa/inet.h>

#define WQS	4

/* Frames to a UDP port */
struct flow {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_ipv4 ip;
	struct ibv_flow_spec_tcp_udp udp;
};

static struct ibv_qp *base_qp, *group;
static struct ibv_flow *flow;
static struct ibv_wq *wq, *base_wq[WQS];
static struct ibv_rwq_ind_table *table, *base_table;

static int create_flow(void)
{
	struct flow f = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(f), .num_of_specs = 3,
			  .port = PORT },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(f.eth),
			 .val.dst_mac = { 2, 0, 0, 0, 0, 9 },
			 .mask.dst_mac = { 255, 255, 255, 255, 255, 255 } },
		.ip = { .type = IBV_FLOW_SPEC_IPV4, .size = sizeof(f.ip) },
		.udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(f.udp),
			 .val.dst_port = htons(777), .mask.dst_port = 0xffff },
	};

	flow = ibv_create_flow(base_qp, &f.attr);
	return made(flow);
}

static int destroy_flow(void)
{
	return status(ibv_destroy_flow(flow));
}

static int create_wq(void)
{
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ, .max_wr = 300, .max_sge = 1, .pd = dev.pd, .cq = cq.cq,
	};

	wq = ibv_create_wq(dev.verbs, &init);
	return made(wq);
}

static int destroy_wq(void)
{
	return status(ibv_destroy_wq(wq));
}

static int create_table(void)
{
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 2, .ind_tbl = base_wq };

	table = ibv_create_rwq_ind_table(dev.verbs, &init);
	return made(table);
}

static int destroy_table(void)
{
	return status(ibv_destroy_rwq_ind_table(table));
}

static int create_group(void)
{
	static uint8_t key[40] = { 1, 2, 3 };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = dev.pd, .rwq_ind_tbl = base_table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key), .rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4,
		},
	};

	group = ibv_create_qp_ex(dev.verbs, &init);
	return made(group);
}

static int destroy_group(void)
{
	return status(ibv_destroy_qp(group));
}

static void open_base(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET, .send_cq = cq.cq, .recv_cq = cq.cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	base_qp = ibv_create_qp(dev.pd, &init);
	for (int i = 0; i < WQS; i++) {
		if (create_wq())
			bail("no work queue: %s", strerror(errno));
		base_wq[i] = wq;
	}
	if (!base_qp || create_table())
		bail("no queue pair or table: %s", strerror(errno));
	base_table = table;
}

static void close_base(void)
{
	int bad = ibv_destroy_rwq_ind_table(base_table) | ibv_destroy_qp(base_qp);

	for (int i = 0; i < WQS; i++)
		bad |= ibv_destroy_wq(base_wq[i]);
	if (bad)
		bail("queue pair, table or work queues do not go: %s", strerror(errno));
}

static const struct fault_case raw_cases[] = {
	{ "flow", create_flow, destroy_flow },
	{ "wq", create_wq, destroy_wq },
	{ "rwq_table", create_table, destroy_table },
	{ "qp_rss", create_group, destroy_group },
};

FAULT_GROUP(raw, open_base, close_base);
