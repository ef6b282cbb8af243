// SPDX-License-Identifier: GPL-2.0
/*
 * Faults while queue pairs of each type are created, moved through their states, queried,
 * attached to multicast groups and destroyed.
 */
#include "faults_cases.h"

#include <fcntl.h>

static struct ibv_qp *qp, *base_rc, *base_ud;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;

static struct ibv_qp_init_attr_ex attr_of(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = type, .pd = dev.pd, .send_cq = cq.cq, .recv_cq = cq.cq,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = 50, .max_recv_wr = 200,
			 .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64 },
	};
}

static int create(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = attr_of(type);

	qp = ibv_create_qp_ex(dev.verbs, &attr);
	return made(qp);
}

static int create_rc(void)
{
	return create(IBV_QPT_RC);
}

static int create_uc(void)
{
	return create(IBV_QPT_UC);
}

static int create_ud(void)
{
	return create(IBV_QPT_UD);
}

static int create_raw(void)
{
	struct ibv_qp_init_attr_ex attr = attr_of(IBV_QPT_RAW_PACKET);

	attr.cap.max_inline_data = 0;
	qp = ibv_create_qp_ex(dev.verbs, &attr);
	return made(qp);
}

static int create_srq(void)
{
	struct ibv_qp_init_attr_ex attr = attr_of(IBV_QPT_RC);

	attr.srq = srq;
	qp = ibv_create_qp_ex(dev.verbs, &attr);
	return made(qp);
}

static int create_ini(void)
{
	struct ibv_qp_init_attr_ex attr = attr_of(IBV_QPT_XRC_SEND);

	attr.cap.max_recv_wr = 0;
	attr.cap.max_recv_sge = 0;
	qp = ibv_create_qp_ex(dev.verbs, &attr);
	return made(qp);
}

static int create_tgt(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .xrcd = xrcd, .comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};

	qp = ibv_create_qp_ex(dev.verbs, &attr);
	return made(qp);
}

static int destroy(void)
{
	return status(ibv_destroy_qp(qp));
}

static int to_reset(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return status(ibv_modify_qp(base_rc, &attr, IBV_QP_STATE));
}

/* From RESET to RTS, connected to itself; a failed step starts over. */
static int to_rts(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = ALL_RIGHTS,
		.path_mtu = dev.mtu_code, .dest_qp_num = base_rc->qp_num, .min_rnr_timer = 12,
		.timeout = 17, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.ah_attr = {
			.is_global = 1, .port_num = PORT,
			.grh = { .dgid = dev.gid, .sgid_index = dev.gid_index, .hop_limit = 64 },
		},
	};
	int err;

	err = status(ibv_modify_qp(base_rc, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = status(ibv_modify_qp(base_rc, &attr, IBV_QP_STATE | IBV_QP_AV |
					   IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = status(ibv_modify_qp(base_rc, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
					   IBV_QP_SQ_PSN | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC));
	if (err)
		to_reset();
	return err;
}

static int query(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return status(ibv_query_qp(base_rc, &attr, IBV_QP_STATE | IBV_QP_CAP, &init));
}

static union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 0x77 } };

static int attach(void)
{
	return status(ibv_attach_mcast(base_ud, &group, 0));
}

static int detach(void)
{
	return status(ibv_detach_mcast(base_ud, &group, 0));
}

static void open_base(void)
{
	struct ibv_xrcd_init_attr xrcd_attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 16, .max_sge = 1 } };

	xrcd = ibv_open_xrcd(dev.verbs, &xrcd_attr);
	srq = ibv_create_srq(dev.pd, &srq_attr);
	if (!xrcd || !srq || create_ud())
		bail("no XRC domain, SRQ or queue pair: %s", strerror(errno));
	base_ud = qp;
	if (create_rc())
		bail("no queue pair: %s", strerror(errno));
	base_rc = qp;
}

static void close_base(void)
{
	if (ibv_destroy_qp(base_rc) || ibv_destroy_qp(base_ud) || ibv_destroy_srq(srq) ||
	    ibv_close_xrcd(xrcd))
		bail("queue pairs, SRQ or XRC domain do not go: %s", strerror(errno));
}

static const struct fault_case qp_cases[] = {
	{ "qp_rc", create_rc, destroy },
	{ "qp_uc", create_uc, destroy },
	{ "qp_ud", create_ud, destroy },
	{ "qp_raw", create_raw, destroy },
	{ "qp_srq", create_srq, destroy },
	{ "qp_xrc_ini", create_ini, destroy },
	{ "qp_xrc_tgt", create_tgt, destroy },
	{ "qp_states", to_rts, to_reset },
	{ "qp_query", query, NULL },
	{ "mcast", attach, detach },
};

FAULT_GROUP(qp, open_base, close_base);
