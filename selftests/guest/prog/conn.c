// SPDX-License-Identifier: GPL-2.0
/*
 * Devices, completion queues and connected queue pairs.
 */
#include "conn.h"
#include "report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define LAB_IPV6	0xfd		/* prefix of the labs' addresses */
#define SPIN	200		/* empty polls before the processor is yielded */

static struct ibv_context *open_named(const char *name)
{
	struct ibv_context *verbs = NULL;
	struct ibv_device **list;
	int n = 0;

	list = ibv_get_device_list(&n);
	for (int i = 0; list && i < n && !verbs; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			verbs = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!verbs)
		bail("cannot open RDMA device %s", name);
	return verbs;
}

bool gid_is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/*
 * The RoCE v2 entry of an address that every lab has: an IPv4 address or, with IPv6, one
 * that is not link-local.
 */
static int find_gid(struct ibv_context *verbs, int entries, int which)
{
	struct ibv_gid_entry e;

	for (int i = 0; i < entries; i++) {
		if (ibv_query_gid_ex(verbs, PORT, i, &e, 0) || e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (which == GID_IPV6 ? e.gid.raw[0] == LAB_IPV6 : gid_is_ipv4(&e.gid))
			return i;
	}
	bail("the port has no RoCE v2 GID of an IPv%d address", which == GID_IPV6 ? 6 : 4);
}

void dev_open(struct dev *d, const char *name, int gid_index)
{
	struct ibv_port_attr port;

	*d = (struct dev){ .verbs = open_named(name), .gid_index = gid_index };
	if (ibv_query_device(d->verbs, &d->attr) || ibv_query_port(d->verbs, PORT, &port))
		bail("cannot query %s", name);
	if (port.state != IBV_PORT_ACTIVE)
		bail("port %d of %s is not active", PORT, name);
	if (gid_index < 0)
		d->gid_index = find_gid(d->verbs, port.gid_tbl_len, gid_index);
	if (ibv_query_gid(d->verbs, PORT, d->gid_index, &d->gid))
		bail("no GID with index %d", d->gid_index);
	d->mtu_code = port.active_mtu;
	d->mtu = 128u << port.active_mtu;
	d->pd = ibv_alloc_pd(d->verbs);
	if (!d->pd)
		bail("cannot allocate a protection domain");
}

void dev_close(struct dev *d)
{
	if (ibv_dealloc_pd(d->pd))
		bail("protection domain is still in use");
	if (ibv_close_device(d->verbs))
		bail("cannot close the device");
}

void queue_create(struct queue *q, struct dev *d, int entries, bool events)
{
	*q = (struct queue){ 0 };
	if (events) {
		q->channel = ibv_create_comp_channel(d->verbs);
		if (!q->channel)
			bail("cannot create a completion channel");
	}
	q->cq = ibv_create_cq(d->verbs, entries, NULL, q->channel, 0);
	if (!q->cq)
		bail("cannot create a CQ of %d entries: %s", entries, strerror(errno));
}

void queue_destroy(struct queue *q)
{
	if (q->unacked)
		ibv_ack_cq_events(q->cq, q->unacked);
	if (ibv_destroy_cq(q->cq))
		bail("cannot destroy a CQ: %s", strerror(errno));
	if (q->channel && ibv_destroy_comp_channel(q->channel))
		bail("cannot destroy a completion channel");
}

static int poll_once(struct queue *q, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(q->cq, 1, wc);

	if (n < 0)
		bail("ibv_poll_cq failed");
	return n;
}

/* Arm, poll again (a completion from before arming raises no event), sleep. */
static bool sleep_until_event(struct queue *q, struct ibv_wc *wc, double seconds)
{
	struct pollfd fd = { .fd = q->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (ibv_req_notify_cq(q->cq, 0))
		bail("ibv_req_notify_cq failed");
	if (poll_once(q, wc))
		return true;
	if (poll(&fd, 1, (int)(seconds * 1000) + 1) <= 0)
		return false;
	if (ibv_get_cq_event(q->channel, &cq, &context) || cq != q->cq)
		bail("ibv_get_cq_event failed");
	q->unacked++;
	return false;
}

bool queue_wait(struct queue *q, struct ibv_wc *wc, double seconds)
{
	double end = now() + seconds;
	unsigned int spins = 0;

	while (!poll_once(q, wc)) {
		if (q->channel) {
			double left = end - now();

			if (left <= 0)
				return false;
			if (sleep_until_event(q, wc, left))
				return true;
		} else if (++spins % SPIN == 0) {
			if (now() > end)
				return false;
			sched_yield();
		}
	}
	return true;
}

void conn_attr_default(struct conn_attr *a, struct dev *d)
{
	int rd = d->attr.max_qp_rd_atom, init = d->attr.max_qp_init_rd_atom;

	*a = (struct conn_attr){
		.type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1 },
		.access = ALL_RIGHTS,
		.timeout = 17,
		.retry = 7,
		.rnr_retry = 7,
		.min_rnr = 12,
		.max_rd = init < 16 ? init : 16,
		.max_dest_rd = rd < 16 ? rd : 16,
		.psn = PSN_ANY,
	};
}

int conn_make(struct conn *c, struct dev *d, const struct conn_attr *a, struct queue *send,
	      struct queue *recv)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = send->cq,
		.recv_cq = recv->cq,
		.srq = a->srq,
		.cap = a->cap,
		.qp_type = a->type,
		.pd = a->pd ? a->pd : d->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (a->create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0) |
			     (a->ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.create_flags = a->create_flags,
		.send_ops_flags = a->ops,
	};

	*c = (struct conn){ .dev = d, .attr = *a };
	c->qp = ibv_create_qp_ex(d->verbs, &init);
	if (!c->qp)
		return errno;
	c->attr.cap = init.cap;
	c->here.qpn = c->qp->qp_num;
	c->here.psn = a->psn == PSN_ANY ? (c->qp->qp_num * 2654435761u) & 0xffffff : a->psn;
	c->here.gid = d->gid;
	return 0;
}

void conn_create(struct conn *c, struct dev *d, const struct conn_attr *a, struct queue *send,
		 struct queue *recv)
{
	int err = conn_make(c, d, a, send, recv);

	if (err)
		bail("cannot create a queue pair: %s", strerror(err));
	err = conn_to_init(c);
	if (err)
		bail("cannot move a queue pair to INIT: %s", strerror(err));
}

int conn_to_init(struct conn *c)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = c->attr.access,
		.qkey = QKEY,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= c->attr.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	return ibv_modify_qp(c->qp, &attr, mask);
}

static struct ibv_ah_attr path_to(struct conn *c)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = PORT,
		.static_rate = c->attr.static_rate,
		.grh = { .dgid = c->there.gid, .sgid_index = c->dev->gid_index, .hop_limit = 64 },
	};
}

int conn_to_rtr(struct conn *c)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = c->dev->mtu_code,
		.dest_qp_num = c->there.qpn,
		.rq_psn = c->there.psn,
		.max_dest_rd_atomic = c->attr.max_dest_rd,
		.min_rnr_timer = c->attr.min_rnr,
		.ah_attr = path_to(c),
	};
	int mask = IBV_QP_STATE;

	if (c->attr.type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (c->attr.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(c->qp, &attr, mask);
}

int conn_to_rts(struct conn *c)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = c->here.psn,
		.timeout = c->attr.timeout,
		.retry_cnt = c->attr.retry,
		.rnr_retry = c->attr.rnr_retry,
		.max_rd_atomic = c->attr.max_rd,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (c->attr.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(c->qp, &attr, mask);
}

int conn_to(struct conn *c, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(c->qp, &attr, IBV_QP_STATE);
}

enum ibv_qp_state conn_state(struct conn *c)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(c->qp, &attr, IBV_QP_STATE, &init))
		bail("ibv_query_qp failed");
	return attr.qp_state;
}

void conn_connect(struct conn *c, struct oob *o)
{
	struct ibv_ah_attr path;
	int err;

	oob_swap(o, &c->here, &c->there, sizeof(c->here));
	err = conn_to_rtr(c);
	if (!err && !c->attr.stay_rtr)
		err = conn_to_rts(c);
	if (err)
		bail("cannot connect a queue pair: %s", strerror(err));
	if (c->attr.type == IBV_QPT_UD) {
		path = path_to(c);
		c->ah = ibv_create_ah(c->dev->pd, &path);
		if (!c->ah)
			bail("cannot create an address handle: %s", strerror(errno));
	}
	oob_barrier(o);
}

void conn_destroy(struct conn *c)
{
	if (c->ah && ibv_destroy_ah(c->ah))
		bail("cannot destroy an address handle");
	if (c->qp && ibv_destroy_qp(c->qp))
		bail("cannot destroy a queue pair: %s", strerror(errno));
	c->ah = NULL;
	c->qp = NULL;
}
