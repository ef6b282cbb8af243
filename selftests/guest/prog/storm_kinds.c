// SPDX-License-Identifier: GPL-2.0
/*
 * The kinds of objects that a process can create.
 */
#include "storm_kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define RIGHTS	(ALL_RIGHTS | IBV_ACCESS_MW_BIND)

void *nest_any(struct nest *n, enum kind kind)
{
	uint32_t first = rnd_below(&n->rnd, EACH);

	for (uint32_t i = 0; i < EACH; i++)
		if (n->thing[kind][(first + i) % EACH])
			return n->thing[kind][(first + i) % EACH];
	return NULL;
}

struct ibv_pd *nest_pd(struct nest *n)
{
	struct ibv_pd *pd = nest_any(n, rnd_below(&n->rnd, 2) ? K_PD : K_PARENT);

	return pd ? pd : n->s->dev.pd;
}

/* The provider's parent domains stand on protection domains only. */
static struct ibv_pd *real_pd(struct nest *n)
{
	struct ibv_pd *pd = nest_any(n, K_PD);

	return pd ? pd : n->s->dev.pd;
}

/* Another context of the process, with an object in it. */
static void *context_make(struct nest *n)
{
	struct ibv_context *verbs = ibv_open_device(n->s->dev.verbs->device);
	struct ibv_pd *pd;
	int err;

	if (!verbs)
		return NULL;
	pd = ibv_alloc_pd(verbs);
	if (pd && !ibv_dealloc_pd(pd))
		return verbs;
	err = errno;
	ibv_close_device(verbs);
	errno = err;
	return NULL;
}

static int context_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_close_device(thing);
}

static void *pd_make(struct nest *n)
{
	return ibv_alloc_pd(n->s->dev.verbs);
}

static int pd_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_dealloc_pd(thing);
}

static void *td_make(struct nest *n)
{
	struct ibv_td_init_attr attr = {};

	return ibv_alloc_td(n->s->dev.verbs, &attr);
}

static int td_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_dealloc_td(thing);
}

static void *parent_make(struct nest *n)
{
	struct ibv_parent_domain_init_attr attr = { .pd = real_pd(n), .td = nest_any(n, K_TD) };

	return ibv_alloc_parent_domain(n->s->dev.verbs, &attr);
}

static void *channel_make(struct nest *n)
{
	return ibv_create_comp_channel(n->s->dev.verbs);
}

static int channel_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_destroy_comp_channel(thing);
}

static void *cq_make(struct nest *n)
{
	return ibv_create_cq(n->s->dev.verbs, 1 + rnd_below(&n->rnd, 256), NULL,
			     rnd_below(&n->rnd, 2) ? nest_any(n, K_CHANNEL) : NULL, 0);
}

/* A CQ cannot shrink below its number of completions. */
static int cq_use(struct nest *n, void *thing)
{
	struct ibv_wc wc[8];
	int err;

	switch (rnd_below(&n->rnd, 3)) {
	case 0:
		err = ibv_resize_cq(thing, 1 + rnd_below(&n->rnd, 512));
		return err == EINVAL ? 0 : err;
	case 1:
		return ibv_req_notify_cq(thing, rnd_below(&n->rnd, 2));
	default:
		return ibv_poll_cq(thing, 8, wc) < 0 ? EIO : 0;
	}
}

static int cq_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_destroy_cq(thing);
}

static void *srq_make(struct nest *n)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = 1 + rnd_below(&n->rnd, 64), .max_sge = 1 },
	};

	return ibv_create_srq(nest_pd(n), &init);
}

static int srq_use(struct nest *n, void *thing)
{
	struct ibv_sge sge = { (uintptr_t)n->mem, 4096, n->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = NO_LIFE, .sg_list = &sge, .num_sge = 1 };
	struct ibv_srq_attr attr = { .srq_limit = 1 };
	int err;

	if (!rnd_below(&n->rnd, 3))
		return ibv_modify_srq(thing, &attr, IBV_SRQ_LIMIT);
	err = ibv_post_srq_recv(thing, &wr, &bad);
	return err == ENOMEM ? 0 : err;
}

static int srq_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_destroy_srq(thing);
}

static void *dm_make(struct nest *n)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 << rnd_below(&n->rnd, 6) };

	return ibv_alloc_dm(n->s->dev.verbs, &attr);
}

static int dm_use(struct nest *n, void *thing)
{
	uint64_t word = rnd_below(&n->rnd, UINT32_MAX), back = 0;
	int err = ibv_memcpy_to_dm(thing, 8, &word, sizeof(word));

	if (!err)
		err = ibv_memcpy_from_dm(&back, thing, 8, sizeof(back));
	if (!err && back != word && !storm_gone(n->s))
		storm_fail(n->s, "device memory: wrote %#llx, read %#llx", (unsigned long long)word,
			   (unsigned long long)back);
	return err;
}

static int dm_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_free_dm(thing);
}

static void *mr_make(struct nest *n)
{
	uint32_t start = rnd_below(&n->rnd, NEST_BYTES / 2);

	return ibv_reg_mr(nest_pd(n), n->mem + start, 1 + rnd_below(&n->rnd, NEST_BYTES / 2),
			  RIGHTS);
}

/* A bound window prevents it. */
static int mr_use(struct nest *n, void *thing)
{
	static const int flags[] = {
		IBV_REREG_MR_CHANGE_TRANSLATION, IBV_REREG_MR_CHANGE_ACCESS,
		IBV_REREG_MR_CHANGE_PD, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD,
	};
	uint32_t start = rnd_below(&n->rnd, NEST_BYTES / 2);
	int change = flags[rnd_below(&n->rnd, 4)];

	if (!ibv_rereg_mr(thing, change, nest_pd(n), n->mem + start,
			  1 + rnd_below(&n->rnd, NEST_BYTES / 2),
			  change & IBV_REREG_MR_CHANGE_ACCESS ? RIGHTS : 0))
		return 0;
	return errno;
}

static int mr_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_dereg_mr(thing);
}

static void *dm_mr_make(struct nest *n)
{
	struct ibv_dm *dm = nest_any(n, K_DM);

	return dm ? ibv_reg_dm_mr(nest_pd(n), dm, 0, 64, RIGHTS | IBV_ACCESS_ZERO_BASED) : NULL;
}

static void *mw_make(struct nest *n)
{
	return ibv_alloc_mw(nest_pd(n), rnd_below(&n->rnd, 2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
}

static int mw_use(struct nest *n, void *thing)
{
	void *pair = nest_any(n, K_PAIR);

	return pair ? pair_bind(n, pair, thing) : 0;
}

static int mw_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_dealloc_mw(thing);
}

static void *ah_make(struct nest *n)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = PORT,
		.grh = { .dgid = n->s->dev.gid, .sgid_index = n->s->dev.gid_index,
			 .hop_limit = 64 },
	};

	return ibv_create_ah(nest_pd(n), &attr);
}

static int ah_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_destroy_ah(thing);
}

static int qp_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_destroy_qp(thing);
}

static void *ud_make(struct nest *n)
{
	struct queue q = { .cq = nest_any(n, K_CQ) };
	struct conn_attr attr;
	struct conn c;
	int err;

	if (!q.cq)
		return NULL;
	conn_attr_default(&attr, &n->s->dev);
	attr.type = IBV_QPT_UD;
	attr.pd = nest_pd(n);
	err = conn_make(&c, &n->s->dev, &attr, &q, &q);
	if (err)
		return NULL;
	err = conn_to_init(&c);
	if (!err)
		err = conn_to_rtr(&c);
	if (!err)
		err = conn_to_rts(&c);
	if (!err)
		return c.qp;
	ibv_destroy_qp(c.qp);
	errno = err == EINVAL ? 0 : err;	/* its CQ has overrun */
	return NULL;
}

/* A datagram to itself. */
static int ud_use(struct nest *n, void *thing)
{
	struct ibv_sge sge = { (uintptr_t)n->mem, 1 + rnd_below(&n->rnd, 1000), n->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge,
		.num_sge = 1,
		.wr.ud = { .ah = nest_any(n, K_AH), .remote_qkey = QKEY },
	};
	struct ibv_qp *qp = thing;
	int err;

	if (!wr.wr.ud.ah)
		return 0;
	wr.wr.ud.remote_qpn = qp->qp_num;
	err = ibv_post_send(qp, &wr, &bad);
	return err == ENOMEM ? 0 : err;
}

/* Membership of a queue pair in a group. */
struct member {
	struct ibv_qp *qp;
	union ibv_gid gid;
};

static void *mcast_make(struct nest *n)
{
	struct ibv_qp *qp = nest_any(n, K_UD);
	struct member *m;

	if (!qp)
		return NULL;
	m = calloc(1, sizeof(*m));
	m->qp = qp;
	memcpy(m->gid.raw + 10, "\xff\xff\xef\x01", 4);
	m->gid.raw[14] = rnd_below(&n->rnd, 4);
	m->gid.raw[15] = rnd_below(&n->rnd, 256);
	errno = ibv_attach_mcast(qp, &m->gid, 0);
	if (!errno)
		return m;
	free(m);
	return NULL;
}

static int mcast_drop(struct nest *n, void *thing)
{
	struct member *m = thing;
	int err = ibv_detach_mcast(m->qp, &m->gid, 0);

	(void)n;
	if (!err)
		free(m);
	return err;
}

static int flow_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_destroy_flow(thing);
}

static void *xrcd_make(struct nest *n)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	return ibv_open_xrcd(n->s->dev.verbs, &attr);
}

static int xrcd_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_close_xrcd(thing);
}

static void *xsrq_make(struct nest *n)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC,
		.xrcd = nest_any(n, K_XRCD), .cq = nest_any(n, K_CQ), .pd = nest_pd(n),
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
	};

	return attr.xrcd && attr.cq ? ibv_create_srq_ex(n->s->dev.verbs, &attr) : NULL;
}

static void *target_make(struct nest *n)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .xrcd = nest_any(n, K_XRCD),
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};

	return attr.xrcd ? ibv_create_qp_ex(n->s->dev.verbs, &attr) : NULL;
}

static int wq_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_destroy_wq(thing);
}

static int table_drop(struct nest *n, void *thing)
{
	(void)n;
	return ibv_destroy_rwq_ind_table(thing);
}

const struct kind_ops kinds[KINDS] = {
	[K_CONTEXT] = { "context", context_make, NULL, context_drop },
	[K_PD] = { "protection domain", pd_make, NULL, pd_drop },
	[K_TD] = { "thread domain", td_make, NULL, td_drop },
	[K_PARENT] = { "parent domain", parent_make, NULL, pd_drop },
	[K_CHANNEL] = { "channel", channel_make, NULL, channel_drop },
	[K_CQ] = { "CQ", cq_make, cq_use, cq_drop },
	[K_SRQ] = { "SRQ", srq_make, srq_use, srq_drop },
	[K_DM] = { "device memory", dm_make, dm_use, dm_drop },
	[K_MR] = { "region", mr_make, mr_use, mr_drop },
	[K_DM_MR] = { "region of device memory", dm_mr_make, NULL, mr_drop },
	[K_MW] = { "window", mw_make, mw_use, mw_drop },
	[K_AH] = { "address handle", ah_make, NULL, ah_drop },
	[K_UD] = { "UD queue pair", ud_make, ud_use, qp_drop },
	[K_MCAST] = { "membership", mcast_make, NULL, mcast_drop },
	[K_RAW] = { "raw queue pair", raw_make, NULL, qp_drop },
	[K_FLOW] = { "flow", flow_make, NULL, flow_drop },
	[K_XRCD] = { "XRC domain", xrcd_make, NULL, xrcd_drop },
	[K_XSRQ] = { "XRC SRQ", xsrq_make, srq_use, srq_drop },
	[K_TARGET] = { "XRC target", target_make, NULL, qp_drop },
	[K_WQ] = { "work queue", wq_make, wq_use, wq_drop },
	[K_TABLE] = { "table", table_make, NULL, table_drop },
	[K_RSS] = { "RSS queue pair", rss_make, NULL, qp_drop },
	[K_PAIR] = { "pair", pair_make, pair_use, pair_drop },
};
