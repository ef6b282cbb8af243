// SPDX-License-Identifier: GPL-2.0
/*
 * Queues of a test host.
 */
#include "queue.h"

#include <ornic/identify.h>
#include <ornic/pd.h>
#include <ornic/port.h>
#include <endian.h>
#include <string.h>

#define PAGE		4096u
#define QP_STRIDE	8	/* 256 bytes: room for inline data and several SGEs */
#define QP_SGES		4
#define QP_INLINE	128

static void ring_init(struct host *h, struct host_ring *r, uint8_t log, enum ornic_db_kind kind)
{
	*r = (struct host_ring) {
		.h = h,
		.kind = kind,
		.log = log,
		.ring = dma_alloc(&h->dma, (uint64_t)ORNIC_ENTRY_BYTES << log, PAGE),
		.rec = host_record(h),
		.sn = 1,
	};
}

int host_eq_create(struct host *h, struct host_ring *eq, uint8_t log, uint16_t vector,
		   uint64_t classes)
{
	struct ornic_eq_create_cmd cmd = {
		.log_entries = log,
		.vector = htole16(vector),
		.classes = htole64(classes),
	};
	int st;

	ring_init(h, eq, log, ORNIC_DB_EQ_ARM);
	cmd.record = htole64(eq->rec);
	cmd.pages = host_contiguous(eq->ring);
	st = host_exec(h, ORNIC_OP_EQ_CREATE, 0, &cmd, sizeof(cmd), NULL, 0);
	eq->number = host_number(h);
	return st;
}

int host_cq_create(struct host *h, struct host_ring *cq, uint8_t log, uint32_t eq, uint8_t flags)
{
	struct ornic_cq_create_cmd cmd = {
		.log_entries = log,
		.flags = flags,
		.eq = htole32(eq),
		.dbpage = htole32(1),
	};
	int st;

	ring_init(h, cq, log, ORNIC_DB_CQ_ARM);
	cmd.record = htole64(cq->rec);
	cmd.pages = host_contiguous(cq->ring);
	st = host_exec(h, ORNIC_OP_CQ_CREATE, 0, &cmd, sizeof(cmd), NULL, 0);
	cq->number = host_number(h);
	return st;
}

bool host_next(struct host_ring *r, void *entry)
{
	struct ornic_rec *rec = dma_at(&r->h->dma, r->rec);
	void *e = host_valid(r->h, r->ring, r->log, r->cons);

	if (!e)
		return false;
	memcpy(entry, e, ORNIC_ENTRY_BYTES);
	r->cons++;
	__atomic_store_n(&rec->host_index, htole32(r->cons), __ATOMIC_RELEASE);
	return true;
}

struct wait {
	struct host_ring *ring;
	void *entry;
};

static bool wait_next(void *arg)
{
	struct wait *w = arg;

	return host_next(w->ring, w->entry);
}

bool host_wait(struct host_ring *r, void *entry)
{
	struct wait w = { r, entry };

	return host_until(r->h, wait_next, &w);
}

void host_arm(struct host_ring *r, enum ornic_arm_type type)
{
	struct ornic_rec *rec = dma_at(&r->h->dma, r->rec);
	uint32_t word = (r->cons & ORNIC_ARM_INDEX_MASK) |
			(r->sn & ORNIC_ARM_SN_MASK) << ORNIC_ARM_SN_SHIFT |
			(uint32_t)type << ORNIC_ARM_TYPE_SHIFT;

	__atomic_store_n(&rec->arm, htole32(word), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (le32toh(__atomic_load_n(&rec->notify, __ATOMIC_RELAXED)) & ORNIC_NOTIFY_ALWAYS)
		host_doorbell(r->h, r->kind == ORNIC_DB_CQ_ARM, r->kind, r->number, word);
}

void host_fired(struct host_ring *r)
{
	r->sn++;
}

int host_bring_up(struct host *h, uint64_t features, struct host_ring *eq0,
		  struct host_ring *eq1)
{
	struct ornic_features_cmd cmd = { .features0 = htole64(features) };
	int st = host_eq_create(h, eq0, 8, 0, ORNIC_EQ_ASYNC | ORNIC_EQ_ADMIN);

	if (st)
		return st;
	st = host_exec(h, ORNIC_OP_SET_FEATURES, 0, &cmd, sizeof(cmd), NULL, 0);
	return st ? st : host_eq_create(h, eq1, 8, 1, ORNIC_EQ_COMPLETION);
}

int host_pd_create(struct host *h, uint32_t *pd)
{
	struct ornic_pd_create_cmd cmd = { 0 };
	int st = host_exec(h, ORNIC_OP_PD_CREATE, 0, &cmd, sizeof(cmd), NULL, 0);

	*pd = host_number(h);
	return st;
}

int host_key_create(struct host *h, uint32_t pd, uint64_t addr, uint64_t len, uint32_t access,
		    uint32_t *key)
{
	struct ornic_key_create_cmd cmd = {
		.kind = ORNIC_KEY_REGION,
		.pd = htole32(pd),
		.access = htole32(access),
		.iova = htole64(addr),
		.length = htole64(len),
		.pages = host_contiguous(addr),
	};
	int st = host_exec(h, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd), NULL, 0);

	*key = host_number(h);
	return st;
}

int host_port_up(struct host *h, uint16_t max_frame)
{
	struct ornic_port_modify_cmd cmd = {
		.mask = htole32(ORNIC_PORT_M_ADMIN | (max_frame ? ORNIC_PORT_M_FRAME : 0)),
		.admin_up = htole32(1),
		.max_frame = htole16(max_frame),
	};

	return host_exec(h, ORNIC_OP_PORT_MODIFY, 1, &cmd, sizeof(cmd), NULL, 0);
}

void host_gid_ipv4(uint8_t gid[16], uint32_t ip)
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	for (int i = 0; i < 4; i++)
		gid[12 + i] = ip >> (24 - 8 * i);
}

int host_gid_set(struct host *h, uint16_t index, uint32_t ip, const uint8_t mac[6])
{
	struct ornic_gid_entry cmd = {
		.port = 1,
		.type = ORNIC_GID_ROCEV2,
		.index = htole16(index),
		.flags = htole32(ORNIC_GID_VALID),
	};

	host_gid_ipv4(cmd.gid, ip);
	memcpy(cmd.smac, mac, sizeof(cmd.smac));
	return host_exec(h, ORNIC_OP_SET_GID, 1, &cmd, sizeof(cmd), NULL, 0);
}

static void wq_init(struct host *h, struct host_wq *wq, uint8_t log, uint8_t stride)
{
	*wq = (struct host_wq) {
		.log = log,
		.stride = stride,
		.ring = dma_alloc(&h->dma, 1ull << (log + stride), PAGE),
		.rec = host_record(h),
	};
}

void host_qp_template(struct host *h, struct host_qp *qp, uint8_t type, uint8_t log,
		      uint32_t pd, uint32_t scq, uint32_t rcq, struct ornic_qp_create_cmd *cmd)
{
	bool raw = type == ORNIC_QPT_RAW;

	qp->h = h;
	wq_init(h, &qp->sq, log, QP_STRIDE);
	wq_init(h, &qp->rq, log, QP_STRIDE);
	*cmd = (struct ornic_qp_create_cmd) {
		.type = type,
		.transport = raw ? ORNIC_TP_ETHERNET : ORNIC_TP_ROCEV2,
		.port = raw || type == ORNIC_QPT_GSI,
		.pd = htole32(pd),
		.send_cq = htole32(scq),
		.recv_cq = htole32(rcq),
		.srq = htole32(ORNIC_NONE),
		.dbpage = htole32(1),
		.sq_log = log,
		.sq_stride = QP_STRIDE,
		.rq_log = log,
		.rq_stride = QP_STRIDE,
		.max_send_sge = htole16(QP_SGES),
		.max_recv_sge = htole16(QP_SGES),
		.max_inline = htole16(QP_INLINE),
		.sq_record = htole64(qp->sq.rec),
		.rq_record = htole64(qp->rq.rec),
		.sq_pages = host_contiguous(qp->sq.ring),
		.rq_pages = host_contiguous(qp->rq.ring),
	};
}

int host_qp_create(struct host *h, struct host_qp *qp, uint8_t type, uint8_t log, uint32_t pd,
		   uint32_t scq, uint32_t rcq)
{
	struct ornic_qp_create_cmd cmd;
	int st;

	host_qp_template(h, qp, type, log, pd, scq, rcq, &cmd);
	st = host_exec(h, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0);
	qp->number = host_number(h);
	return st;
}

int host_qp_state(struct host_qp *qp, const struct ornic_qp_modify_cmd *cmd)
{
	return host_exec(qp->h, ORNIC_OP_QP_MODIFY, qp->number, cmd, sizeof(*cmd), NULL, 0);
}

void host_path(struct ornic_path *path, const struct host_peer *peer)
{
	*path = (struct ornic_path) { .hop_limit = 64 };
	host_gid_ipv4(path->dgid, peer->ip);
	memcpy(path->dmac, peer->mac, sizeof(path->dmac));
}

void host_rc_commands(struct ornic_qp_modify_cmd cmd[3], const struct host_peer *peer)
{
	cmd[0] = (struct ornic_qp_modify_cmd) {
		.mask = htole32(ORNIC_QPM_STATE | ORNIC_QPM_PKEY_INDEX | ORNIC_QPM_PORT |
				ORNIC_QPM_ACCESS),
		.next_state = ORNIC_QPS_INIT,
		.port = 1,
		.access = htole32(ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ |
				  ORNIC_ACCESS_REMOTE_ATOMIC),
	};
	cmd[1] = (struct ornic_qp_modify_cmd) {
		.mask = htole32(ORNIC_QPM_STATE | ORNIC_QPM_PATH | ORNIC_QPM_PATH_MTU |
				ORNIC_QPM_DEST_QPN | ORNIC_QPM_RQ_PSN |
				ORNIC_QPM_MAX_DEST_RD_ATOMIC | ORNIC_QPM_MIN_RNR_TIMER),
		.next_state = ORNIC_QPS_RTR,
		.path_mtu = peer->mtu,
		.dest_qpn = htole32(peer->qpn),
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = peer->rnr_timer ? peer->rnr_timer : 12,
	};
	cmd[2] = (struct ornic_qp_modify_cmd) {
		.mask = htole32(ORNIC_QPM_STATE | ORNIC_QPM_SQ_PSN | ORNIC_QPM_TIMEOUT |
				ORNIC_QPM_RETRY_CNT | ORNIC_QPM_RNR_RETRY |
				ORNIC_QPM_MAX_RD_ATOMIC),
		.next_state = ORNIC_QPS_RTS,
		.timeout = peer->timeout ? peer->timeout : 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16,
	};
	host_path(&cmd[1].path, peer);
}

int host_rc_connect(struct host_qp *qp, const struct host_peer *peer)
{
	struct ornic_qp_modify_cmd cmd[3];
	int st = 0;

	host_rc_commands(cmd, peer);
	for (int i = 0; !st && i < 3; i++)
		st = host_qp_state(qp, &cmd[i]);
	return st;
}

static void *wq_slot(struct host_qp *qp, struct host_wq *wq)
{
	uint64_t slot = wq->prod & ((1u << wq->log) - 1);
	void *p = dma_at(&qp->h->dma, wq->ring + (slot << wq->stride));

	memset(p, 0, 1u << wq->stride);
	return p;
}

static void wq_publish(struct host_qp *qp, struct host_wq *wq, enum ornic_db_kind kind)
{
	if (host_publish(qp->h, wq->rec, wq->rung, wq->prod))
		host_doorbell(qp->h, 1, kind, qp->number, wq->prod);
	wq->rung = wq->prod;
}

struct ornic_wqe_ctrl *host_sq_slot(struct host_qp *qp)
{
	struct ornic_wqe_ctrl *ctrl = wq_slot(qp, &qp->sq);

	ctrl->qpn = htole32(qp->number);
	ctrl->index = htole32(qp->sq.prod++);
	return ctrl;
}

void host_sq_publish(struct host_qp *qp)
{
	wq_publish(qp, &qp->sq, ORNIC_DB_SQ);
}

void host_recv(struct host_qp *qp, uint64_t addr, uint32_t len, uint32_t key)
{
	struct ornic_rwqe *r = wq_slot(qp, &qp->rq);
	struct ornic_sge *sge = (struct ornic_sge *)(r + 1);

	r->count = htole16(1);
	r->id = htole32(qp->rq.prod++);
	sge->addr = htole64(addr);
	sge->length = htole32(len);
	sge->lkey = htole32(key);
	wq_publish(qp, &qp->rq, ORNIC_DB_RQ);
}

void host_send(struct host_qp *qp, uint8_t opcode, uint64_t addr, uint32_t len, uint32_t key,
	       uint64_t raddr, uint32_t rkey)
{
	struct ornic_wqe_ctrl *ctrl = host_sq_slot(qp);
	struct ornic_sge *sge = (struct ornic_sge *)(ctrl + 1);

	ctrl->opcode = opcode;
	ctrl->flags = ORNIC_WQE_SIGNALED;
	ctrl->count = htole16(1);
	if (opcode != ORNIC_WR_SEND) {
		struct ornic_wqe_remote *remote = (struct ornic_wqe_remote *)(ctrl + 1);

		remote->addr = htole64(raddr);
		remote->rkey = htole32(rkey);
		sge = (struct ornic_sge *)(remote + 1);
	}
	sge->addr = htole64(addr);
	sge->length = htole32(len);
	sge->lkey = htole32(key);
	host_sq_publish(qp);
}
