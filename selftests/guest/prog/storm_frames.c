// SPDX-License-Identifier: GPL-2.0
/*
 * Objects that receive Ethernet frames. The addresses of their flows belong to no device.
 */
#include "storm_kinds.h"

#include <errno.h>
#include <string.h>

void *raw_make(struct nest *n)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET, .send_cq = nest_any(n, K_CQ),
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	init.recv_cq = init.send_cq;
	return init.send_cq ? ibv_create_qp(nest_pd(n), &init) : NULL;
}

void *flow_make(struct nest *n)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} f = {
		.attr = {
			.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(f), .num_of_specs = 1,
			.port = PORT,
		},
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(f.eth) },
	};
	struct ibv_qp *qp = nest_any(n, rnd_below(&n->rnd, 2) ? K_RAW : K_RSS);

	if (!qp)
		qp = nest_any(n, K_RAW);
	if (!qp)
		return NULL;
	memset(f.eth.mask.dst_mac, 0xff, 6);
	memset(f.eth.val.dst_mac, 0x06, 3);
	for (int i = 3; i < 6; i++)
		f.eth.val.dst_mac[i] = rnd_below(&n->rnd, 256);
	return ibv_create_flow(qp, &f.attr);
}

void *wq_make(struct nest *n)
{
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ, .max_wr = 16, .max_sge = 1, .pd = nest_pd(n),
		.cq = nest_any(n, K_CQ),
	};

	return init.cq ? ibv_create_wq(n->s->dev.verbs, &init) : NULL;
}

int wq_use(struct nest *n, void *thing)
{
	static const enum ibv_wq_state states[] = { IBV_WQS_RDY, IBV_WQS_ERR, IBV_WQS_RESET };
	struct ibv_wq_attr attr = {
		.attr_mask = IBV_WQ_ATTR_STATE,
		.wq_state = states[rnd_below(&n->rnd, 3)],
	};
	int err = ibv_modify_wq(thing, &attr);

	return err == EINVAL ? 0 : err;		/* not every state may follow every other */
}

void *table_make(struct nest *n)
{
	struct ibv_wq *wq[2] = { nest_any(n, K_WQ), nest_any(n, K_WQ) };
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 1, .ind_tbl = wq };

	return wq[0] ? ibv_create_rwq_ind_table(n->s->dev.verbs, &init) : NULL;
}

void *rss_make(struct nest *n)
{
	static uint8_t key[40];
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = nest_pd(n),
		.rwq_ind_tbl = nest_any(n, K_TABLE),
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key), .rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4,
		},
	};

	return init.rwq_ind_tbl ? ibv_create_qp_ex(n->s->dev.verbs, &init) : NULL;
}
