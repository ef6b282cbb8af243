// SPDX-License-Identifier: GPL-2.0
/*
 * Functions on one engine, and queue pairs as a host program uses them.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/link.h"
#include "engine/memop.h"
#include "pair.h"

#define PAGE_SIZES	(1ull << 12)
#define EQ_LOG		8

static uint64_t now = 1000000000;

static uint64_t test_clock(void)
{
	return now;
}

static void dut_irq(void *arg, uint16_t vector)
{
	struct dut *d = arg;

	assert_int_equal(vector, 0);
	d->irqs++;
}

static void dut_fatal(void *arg, uint32_t syndrome)
{
	struct dut *d = arg;

	assert_int_not_equal(syndrome, 0);
	d->fatals++;
	d->dev.running = false;
}

static void dut_port_changed(void *arg)
{
	struct dut *d = arg;

	d->changes++;
}

static const struct device_host dut_host = {
	.irq = dut_irq,
	.fatal = dut_fatal,
	.port_changed = dut_port_changed,
};

void dut_gid(const struct dut *d, int index, uint8_t gid[16])
{
	memcpy(gid, d->dev.port.gid[index].gid, 16);
}

static void set_gid(struct dut *d, int index, const uint8_t gid[16])
{
	struct ornic_gid_entry *g = &d->dev.port.gid[index];

	g->port = 1;
	g->type = ORNIC_GID_ROCEV2;
	g->index = htole16(index);
	g->flags = htole32(ORNIC_GID_VALID);
	memcpy(g->gid, gid, 16);
	memcpy(g->smac, d->dev.port.mac, 6);
}

static void ring_memory(struct dut *d, struct umem *m, struct hostq *h, uint64_t bytes,
			uint32_t offset)
{
	struct ornic_pages desc;
	uint64_t at = guest_alloc(&d->guest, bytes + offset, GUEST_PAGE);
	uint64_t page[512];
	uint32_t n = (offset + bytes + GUEST_PAGE - 1) / GUEST_PAGE;

	assert_true(n <= 512);
	for (uint32_t i = 0; i < n; i++)
		page[i] = at + i * GUEST_PAGE;
	desc = guest_list(&d->guest, 1, 12, page, n);
	desc.offset = htole32(offset);
	assert_int_equal(umem_load(m, d->guest.gpa, &desc, bytes, PAGE_SIZES,
				   &d->dev.lists), ORNIC_ST_OK);
	h->ring = at + offset;
	h->rec = guest_alloc(&d->guest, sizeof(struct ornic_rec), 64);
	((struct ornic_rec *)guest_at(&d->guest, h->rec, 64))->notify =
		htole32(ORNIC_NOTIFY_ALWAYS);
}

void dut_ring(struct dut *d, struct umem *m, struct hostq *h, uint64_t bytes)
{
	ring_memory(d, m, h, bytes, 0);
}

static void make_eq(struct dut *d)
{
	struct hostq h = {};

	ring_memory(d, &d->eq.mem, &h, 64u << EQ_LOG, 0);
	d->eq.dev = &d->dev;
	d->eq.log = EQ_LOG;
	d->eq.rec = h.rec;
	assert_int_equal(table_add(&d->dev.eqs, &d->eq, &d->eq.number), 0);
	assert_int_equal(eq_init(&d->eq), ORNIC_ST_OK);
}

static void dut_init(struct dut *d, struct engine *e, uint8_t id)
{
	static const char *const names[] = { "vm1", "vm2", "vm3" };
	const uint8_t v4[16] = { [10] = 0xff, 0xff, 10, 0, 0, id };
	const uint8_t v6[16] = { 0xfe, 0x80, [15] = id };
	struct device *dev = &d->dev;

	guest_init(&d->guest);
	dev->gpa = d->guest.gpa;
	dev->host = &dut_host;
	dev->arg = d;
	dev->name = names[id - 1];
	dev->running = true;
	dev->features = ORNIC_FEATURE(FLUSH_GLOBAL) | ORNIC_FEATURE(ATOMIC_WRITE);
	dev->lists.left = 1u << 20;
	table_init(&dev->pds, 1, 16);
	table_init(&dev->keys, 1, 4096);
	table_init(&dev->cqs, 1, 4096);
	table_init(&dev->xrcds, 1, 16);
	table_init(&dev->srqs, 1, 16);
	table_init(&dev->qps, 2, 4096);
	table_init(&dev->eqs, 0, 4);
	assert_int_equal(table_add(&dev->pds, &d->pd, &d->pd.number), 0);
	assert_int_equal(table_add(&dev->pds, &d->other_pd, &d->other_pd.number), 0);
	memcpy(dev->port.mac, (uint8_t[]){ 2, 0, 0, 0, 0, id }, 6);
	dev->port.admin_up = true;
	dev->port.max_frame = DUT_PORT_FRAME;
	set_gid(d, 0, v4);
	set_gid(d, 1, v6);
	engine_add_device(e, dev);
	assert_int_equal(link_attach(dev, 0), 0);
	make_eq(d);
}

static void dut_fini(struct dut *d)
{
	struct device *dev = &d->dev;
	struct mr *mr;

	for (uint32_t i = 0; (mr = table_next(&dev->keys, &i)); i++)
		memop_unbind(mr);
	for (uint32_t i = 0; (mr = table_next(&dev->keys, &i)); i++) {
		umem_free(&mr->mem, &dev->lists);
		free(mr);
	}
	eq_fini(&d->eq);
	umem_free(&d->eq.mem, &dev->lists);
	link_detach(dev);
	engine_hide_device(dev->engine, dev);
	assert_int_equal(dev->timers.cap, 0);
	engine_del_device(dev);
	table_fini(&dev->pds);
	table_fini(&dev->keys);
	table_fini(&dev->cqs);
	table_fini(&dev->xrcds);
	table_fini(&dev->srqs);
	table_fini(&dev->qps);
	table_fini(&dev->eqs);
	guest_fini(&d->guest);
}

void world_init(struct world *w, uint32_t spin_us)
{
	memset(w, 0, sizeof(*w));
	assert_int_equal(engine_init(&w->e, spin_us), 0);
	w->e.clock = test_clock;
	w->e.now = now;
	w->packets = w->e.pool.nfree;
	for (int i = 0; i < DUTS; i++)
		dut_init(&w->dut[i], &w->e, i + 1);
}

void world_fini(struct world *w)
{
	for (int i = 0; i < DUTS; i++)
		dut_fini(&w->dut[i]);
	assert_int_equal(w->e.timers.n, 0);
	switch_drain(w->e.sw);
	assert_int_equal(w->e.pool.nfree, w->packets);
	engine_fini(&w->e);
}

int64_t world_run(struct world *w)
{
	for (int i = 0; i < 1000000; i++) {
		int64_t next = engine_turn(&w->e);

		if (next)
			return next;
	}
	fail_msg("the engine never rests");
	return 0;
}

int64_t world_pass(struct world *w, uint64_t ns)
{
	now += ns;
	return world_run(w);
}

void world_spend(uint64_t ns)
{
	now += ns;
}

int64_t world_starve(struct world *w)
{
	struct packet_queue held = STAILQ_HEAD_INITIALIZER(held);
	int64_t next;

	STAILQ_CONCAT(&held, &w->e.pool.free);
	next = engine_turn(&w->e);
	STAILQ_CONCAT(&w->e.pool.free, &held);
	return next;
}

void world_finish(struct world *w, uint64_t ns)
{
	uint64_t end = now + ns;
	int64_t next = world_run(w);

	while (next > 0 && now + next <= end)
		next = world_pass(w, next);
}

uint64_t dut_buf(struct dut *d, uint64_t len)
{
	return guest_alloc(&d->guest, len ? len : 1, 64);
}

uint8_t *dut_at(struct dut *d, uint64_t addr, uint64_t len)
{
	return guest_at(&d->guest, addr, len);
}

static uint32_t key_add(struct dut *d, struct mr *mr)
{
	uint32_t index;

	mr->tag = 0xa5;
	assert_int_equal(table_add(&d->dev.keys, mr, &index), 0);
	return index << ORNIC_KEY_TAG_BITS | mr->tag;
}

uint32_t dut_key(struct dut *d, struct pd *pd, uint64_t addr, uint64_t len, uint32_t access)
{
	struct ornic_pages desc = guest_contiguous(addr & ~(GUEST_PAGE - 1));
	struct mr *mr = calloc(1, sizeof(*mr));

	assert_non_null(mr);
	desc.offset = htole32(addr % GUEST_PAGE);
	mr->kind = ORNIC_KEY_REGION;
	mr->pd = pd ? pd->number : d->pd.number;
	mr->access = access;
	mr->iova = addr;
	mr->length = len;
	assert_int_equal(umem_load(&mr->mem, d->guest.gpa, &desc, len, PAGE_SIZES,
				   &d->dev.lists), ORNIC_ST_OK);
	return key_add(d, mr);
}

uint32_t dut_blank(struct dut *d, struct pd *pd, uint8_t kind, uint32_t pages)
{
	struct mr *mr = calloc(1, sizeof(*mr));

	assert_non_null(mr);
	mr->kind = kind;
	mr->pd = pd ? pd->number : d->pd.number;
	mr->lists.left = pages;
	return key_add(d, mr);
}

uint32_t dut_phys(struct dut *d, uint32_t access)
{
	struct mr *mr = calloc(1, sizeof(*mr));

	assert_non_null(mr);
	mr->kind = ORNIC_KEY_PHYS_ALL;
	mr->access = access;
	return key_add(d, mr);
}

bool dut_event(struct dut *d, struct ornic_eqe *e)
{
	uint64_t slot = d->eq_cons & ((1u << EQ_LOG) - 1);
	struct ornic_eqe *at = umem_ptr(&d->eq.mem, slot * sizeof(*at), sizeof(*at), false);

	assert_non_null(at);
	if (at->phase != ring_phase(d->eq_cons, EQ_LOG))
		return false;
	*e = *at;
	d->eq_cons++;
	((struct ornic_rec *)guest_at(&d->guest, d->eq.rec, 64))->host_index = htole32(d->eq_cons);
	return true;
}

static void make_cq(struct conn *c, struct cq *cq, struct hostq *h, uint8_t log)
{
	ring_memory(c->d, &cq->mem, h, 64u << log, 0);
	cq->dev = &c->d->dev;
	cq->log = log;
	cq->rec = h->rec;
	cq->eq = &c->d->eq;
	assert_int_equal(table_add(&c->d->dev.cqs, cq, &cq->number), 0);
	assert_int_equal(cq_init(cq), ORNIC_ST_OK);
}

static void make_wq(struct conn *c, struct wq *wq, struct hostq *h, uint8_t log, uint8_t stride,
		    uint32_t offset)
{
	wq->present = true;
	wq->log = log;
	wq->stride = stride;
	wq->max_sge = ((1u << stride) - 16) / 16 < 30 ? ((1u << stride) - 16) / 16 : 30;
	ring_memory(c->d, &wq->mem, h, 1ull << (log + stride), offset);
	wq->rec = h->rec;
}

void conn_init(struct conn *c, struct dut *d, const struct conn_opt *opt)
{
	static const struct conn_opt none;
	const struct conn_opt *o = opt ? opt : &none;
	struct qp *qp = &c->qp;

	memset(c, 0, sizeof(*c));
	c->d = d;
	make_cq(c, &c->scq, &c->hscq, o->cq_log ? o->cq_log : 10);
	make_cq(c, &c->rcq, &c->hrcq, o->cq_log ? o->cq_log : 10);
	qp->dev = &d->dev;
	qp->type = o->type ? o->type : ORNIC_QPT_RC;
	qp->flags = o->flags;
	qp->owner = 7;
	qp->pd = &d->pd;
	qp->scq = &c->scq;
	qp->rcq = &c->rcq;
	qp->port = 1;
	qp->max_inline = 128;
	make_wq(c, &qp->sq, &c->sq, o->sq_log ? o->sq_log : 8, o->sq_stride ? o->sq_stride : 9,
		o->ring_offset);
	make_wq(c, &qp->rq, &c->rq, o->rq_log ? o->rq_log : 8, o->rq_stride ? o->rq_stride : 8,
		o->ring_offset);
	assert_int_equal(table_add(&d->dev.qps, qp, &qp->handle), 0);
	qp->wire_qpn = qp->handle;
	if (qp->type == ORNIC_QPT_GSI) {
		qp->wire_qpn = 1;
		d->dev.port.gsi = qp;
	}
	assert_int_equal(qp_init(qp), 0);
	conn_attr(c, 0, 0, 0);
}

void conn_fini(struct conn *c)
{
	struct device *dev = &c->d->dev;

	if (dev->port.gsi == &c->qp)
		dev->port.gsi = NULL;
	qp_fini(&c->qp);
	cq_fini(&c->scq);
	cq_fini(&c->rcq);
	table_del(&dev->qps, c->qp.handle);
	table_del(&dev->cqs, c->scq.number);
	table_del(&dev->cqs, c->rcq.number);
	umem_free(&c->qp.sq.mem, &dev->lists);
	umem_free(&c->qp.rq.mem, &dev->lists);
	umem_free(&c->scq.mem, &dev->lists);
	umem_free(&c->rcq.mem, &dev->lists);
}

void conn_path(struct conn *c, const uint8_t mac[6], const uint8_t gid[16])
{
	memcpy(c->qp.path.dmac, mac, 6);
	memcpy(c->qp.path.dgid, gid, 16);
	c->qp.path.hop_limit = 64;
}

void conn_attr(struct conn *c, uint32_t dest_qpn, uint32_t sq_psn, uint32_t rq_psn)
{
	struct qp *qp = &c->qp;

	qp->access = ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ |
		     ORNIC_ACCESS_REMOTE_ATOMIC;
	qp->dest_qpn = dest_qpn;
	qp->mtu_code = ORNIC_MTU_1024;
	qp->sq_psn = sq_psn;
	qp->rq_psn = rq_psn;
	qp->timeout = 14;
	qp->retry_cnt = 7;
	qp->rnr_retry = 7;
	qp->min_rnr_timer = 12;
	qp->max_rd_atomic = QP_MAX_RD_ATOMIC;
	qp->max_dest_rd_atomic = QP_MAX_RD_ATOMIC;
}

void conn_rts(struct conn *c)
{
	qp_set_state(&c->qp, ORNIC_QPS_INIT);
	qp_set_state(&c->qp, ORNIC_QPS_RTR);
	qp_set_state(&c->qp, ORNIC_QPS_RTS);
}

void conn_pair(struct conn *a, struct conn *b, uint32_t a_psn, uint32_t b_psn)
{
	conn_path(a, b->d->dev.port.mac, b->d->dev.port.gid[0].gid);
	conn_path(b, a->d->dev.port.mac, a->d->dev.port.gid[0].gid);
	conn_attr(a, b->qp.wire_qpn, a_psn, b_psn);
	conn_attr(b, a->qp.wire_qpn, b_psn, a_psn);
	conn_rts(a);
	conn_rts(b);
}

struct ends *ends_new(const struct conn_opt *opt, uint32_t spin_us)
{
	struct ends *t = test_calloc(1, sizeof(*t));

	world_init(&t->w, spin_us);
	conn_init(&t->a, &t->w.dut[0], opt);
	conn_init(&t->b, &t->w.dut[1], opt);
	return t;
}

void ends_buffers(struct ends *t, uint64_t len, uint32_t access)
{
	t->abuf = dut_buf(t->a.d, len);
	t->bbuf = dut_buf(t->b.d, len);
	t->akey = dut_key(t->a.d, NULL, t->abuf, len, access);
	t->bkey = dut_key(t->b.d, NULL, t->bbuf, len, access);
}

int ends_teardown(void **state)
{
	struct ends *t = *state;

	conn_fini(&t->a);
	conn_fini(&t->b);
	world_fini(&t->w);
	test_free(t);
	return 0;
}

void wr_sge(struct wr *wr, uint64_t addr, uint32_t len, uint32_t key)
{
	assert_true(wr->nsge < 30);
	wr->sge[wr->nsge++] = (struct ornic_sge){ htole64(addr), htole32(len), htole32(key) };
}

static bool has_remote(uint8_t opcode)
{
	return opcode != ORNIC_WR_SEND && opcode != ORNIC_WR_SEND_IMM &&
	       opcode != ORNIC_WR_SEND_INV && opcode != ORNIC_WR_LOCAL_INV &&
	       opcode != ORNIC_WR_NOP;
}

static uint32_t put_segments(struct conn *c, const struct wr *wr, uint8_t *to)
{
	uint32_t off = 0;

	if (c->qp.type == ORNIC_QPT_RAW) {
		memset(to, 0, sizeof(struct ornic_wqe_eth));
		return sizeof(struct ornic_wqe_eth);
	}
	if (!qp_connected(&c->qp) && wr->opcode != ORNIC_WR_NOP) {
		memcpy(to, &wr->path, sizeof(wr->path));
		return sizeof(wr->path);
	}
	if (wr->opcode == ORNIC_WR_FAST_REG) {
		memcpy(to, &wr->reg, sizeof(wr->reg));
		return sizeof(wr->reg);
	}
	if (wr->opcode == ORNIC_WR_BIND_MW) {
		memcpy(to, &wr->bind, sizeof(wr->bind));
		return sizeof(wr->bind);
	}
	if (has_remote(wr->opcode)) {
		*(struct ornic_wqe_remote *)to = (struct ornic_wqe_remote){
			.addr = htole64(wr->raddr), .rkey = htole32(wr->rkey) };
		off += sizeof(struct ornic_wqe_remote);
	}
	if (wr->opcode == ORNIC_WR_COMP_SWAP || wr->opcode == ORNIC_WR_FETCH_ADD) {
		*(struct ornic_wqe_atomic *)(to + off) = (struct ornic_wqe_atomic){
			.swap_add = htole64(wr->swap_add), .compare = htole64(wr->compare) };
		off += sizeof(struct ornic_wqe_atomic);
	}
	if (wr->opcode == ORNIC_WR_FLUSH) {
		memcpy(to + off, &wr->flush, sizeof(wr->flush));
		off += sizeof(wr->flush);
	}
	return off;
}

/* A slot that straddles two pages is contiguous in the guest's memory here. */
static uint8_t *slot_of(struct conn *c, const struct wq *wq, const struct hostq *h)
{
	uint64_t slot = h->index & ((1u << wq->log) - 1);

	return guest_at(&c->d->guest, h->ring + (slot << wq->stride), 1u << wq->stride);
}

uint8_t *conn_write_wr(struct conn *c, const struct wr *wr)
{
	uint8_t *slot = slot_of(c, &c->qp.sq, &c->sq);
	struct ornic_wqe_ctrl ctrl = {
		.opcode = wr->opcode,
		.flags = wr->flags,
		.count = htole16(wr->inl ? wr->inl_len : wr->nsge),
		.imm = wr->imm,
		.qpn = htole32(c->qp.handle),
		.index = htole32(c->sq.index),
	};
	uint32_t off = sizeof(ctrl);

	memset(slot, 0xee, 1u << c->qp.sq.stride);
	memcpy(slot, &ctrl, sizeof(ctrl));
	off += put_segments(c, wr, slot + off);
	if (wr->inl)
		memcpy(slot + off, wr->inl, wr->inl_len);
	else
		memcpy(slot + off, wr->sge, wr->nsge * sizeof(wr->sge[0]));
	return slot;
}

struct ornic_rec *conn_rec(struct conn *c, const struct hostq *q)
{
	return guest_at(&c->d->guest, q->rec, sizeof(struct ornic_rec));
}

void conn_publish(struct conn *c, struct hostq *q, uint32_t index)
{
	struct ornic_rec *rec = conn_rec(c, q);
	uint32_t old = le32toh(rec->host_index), n;

	q->index = index;
	__atomic_store_n(&rec->host_index, htole32(index), __ATOMIC_SEQ_CST);
	n = le32toh(__atomic_load_n(&rec->notify, __ATOMIC_SEQ_CST));
	if (!(n >> 31) && ((n - old) & ORNIC_NOTIFY_INDEX) >= index - old)
		return;
	q->rang++;
	qp_doorbell(&c->qp, q == &c->rq);
}

void conn_send(struct conn *c, const struct wr *wr)
{
	conn_write_wr(c, wr);
	conn_publish(c, &c->sq, c->sq.index + 1);
}

void conn_recv_list(struct conn *c, const struct ornic_sge *sge, uint16_t n)
{
	uint8_t *slot = slot_of(c, &c->qp.rq, &c->rq);
	struct ornic_rwqe h = { .count = htole16(n), .id = htole32(c->rq.index) };

	memcpy(slot, &h, sizeof(h));
	memcpy(slot + sizeof(h), sge, n * sizeof(*sge));
	conn_publish(c, &c->rq, c->rq.index + 1);
}

void conn_recv(struct conn *c, uint64_t addr, uint32_t len, uint32_t key)
{
	const struct ornic_sge sge = { htole64(addr), htole32(len), htole32(key) };

	conn_recv_list(c, &sge, 1);
}

bool conn_poll(struct conn *c, struct hostq *h, struct ornic_cqe *cqe)
{
	struct cq *cq = h == &c->hscq ? &c->scq : &c->rcq;
	uint64_t slot = h->index & ((1u << cq->log) - 1);
	struct ornic_cqe *at = guest_at(&c->d->guest, h->ring + slot * 64, 64);

	if (at->phase != ring_phase(h->index, cq->log))
		return false;
	*cqe = *at;
	h->index++;
	conn_rec(c, h)->host_index = htole32(h->index);
	assert_int_equal(le32toh(cqe->qpn), c->qp.handle);
	if (cqe->status && cqe->status != ORNIC_WC_WR_FLUSH_ERR)
		assert_int_not_equal(cqe->syndrome, 0);	/* ORN-ERR-4 */
	if (!cqe->status)
		assert_int_equal(cqe->syndrome, 0);	/* ORN-CQ-15 */
	assert_int_equal(cqe->res, 0);			/* ORN-GEN-8 */
	return true;
}

void conn_expect(struct conn *c, struct hostq *h, uint32_t index, uint8_t opcode, uint8_t status)
{
	struct ornic_cqe cqe;

	if (!conn_poll(c, h, &cqe))
		fail_msg("no completion of index %u", index);
	assert_int_equal(cqe.status, status);
	assert_int_equal(le32toh(cqe.wqe_id), index);
	assert_int_equal(cqe.opcode, opcode);
}

void conn_quiet(struct conn *c)
{
	struct ornic_cqe cqe;

	if (conn_poll(c, &c->hscq, &cqe) || conn_poll(c, &c->hrcq, &cqe))
		fail_msg("completion of index %u, opcode %x, status %u, syndrome %x",
			 le32toh(cqe.wqe_id), cqe.opcode, cqe.status, le32toh(cqe.syndrome));
}

void fill(uint8_t *p, uint64_t len, uint32_t seed)
{
	for (uint64_t i = 0; i < len; i++)
		p[i] = (i * 7 + (i >> 8) * 13 + seed * 31 + 1) & 0xff;
}

void check(const uint8_t *p, uint64_t len, uint32_t seed)
{
	for (uint64_t i = 0; i < len; i++)
		if (p[i] != (uint8_t)((i * 7 + (i >> 8) * 13 + seed * 31 + 1) & 0xff))
			fail_msg("byte %zu of %zu differs", (size_t)i, (size_t)len);
}
