// SPDX-License-Identifier: GPL-2.0
/*
 * A function for unit tests: see nic.h.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ornic/admin.h>
#include "engine/link.h"
#include "nic.h"

_Static_assert(offsetof(struct nic_eq, eq) == 0 && offsetof(struct nic_cq, cq) == 0 &&
	       offsetof(struct nic_qp, qp) == 0, "a table entry is what was allocated");

#define BUDGET		1000000ull
#define PAGE_SIZES	(1ull << 12)

static void nic_irq(void *arg, uint16_t vector)
{
	struct nic *n = arg;

	assert_true(vector < NIC_VECTORS);
	n->irqs[vector]++;
}

static void nic_fatal(void *arg, uint32_t syndrome)
{
	struct nic *n = arg;

	n->fatals++;
	n->fatal = syndrome;
	n->dev.running = false;
}

static void nic_port_changed(void *arg)
{
	(void)arg;
}

static const struct device_host nic_host = {
	.irq = nic_irq,
	.fatal = nic_fatal,
	.port_changed = nic_port_changed,
};

void nic_init(struct nic *n, struct engine *e, const uint8_t mac[6])
{
	struct device *dev = &n->dev;

	memset(n, 0, sizeof(*n));
	guest_init(&n->guest);
	dev->engine = e;
	dev->gpa = n->guest.gpa;
	dev->host = &nic_host;
	dev->arg = n;
	dev->name = "nic";
	dev->running = true;
	dev->lists.left = BUDGET;
	dev->features = 1ull << ORNIC_F_TX_CSUM | 1ull << ORNIC_F_RX_CSUM;
	table_init(&dev->pds, 1, 100);
	table_init(&dev->keys, 1, 1000);
	table_init(&dev->cqs, 1, 1000);
	table_init(&dev->xrcds, 1, 16);
	table_init(&dev->srqs, 1, 16);
	table_init(&dev->qps, 2, 1000);
	table_init(&dev->eqs, 0, 16);
	assert_int_equal(table_add(&dev->pds, &n->pd, &n->pd.number), 0);
	memcpy(dev->port.mac, mac, 6);
	dev->port.admin_up = true;
	dev->port.max_frame = 1500;
	dev->port.flags = ORNIC_PORT_F_PROMISC;
	engine_add_device(e, dev);
	assert_int_equal(link_attach(dev, 0), 0);
}

static void qps_free(struct nic *n)
{
	struct qp *qp;

	for (uint32_t i = 0; (qp = table_next(&n->dev.qps, &i)); i++) {
		qp_fini(qp);
		umem_free(&qp->sq.mem, &n->dev.lists);
		umem_free(&qp->rq.mem, &n->dev.lists);
		free(qp);
	}
}

void nic_cq_del(struct nic *n, struct nic_cq *cq)
{
	cq_fini(&cq->cq);
	umem_free(&cq->cq.mem, &n->dev.lists);
	table_del(&n->dev.cqs, cq->cq.number);
	free(cq);
}

void nic_fini(struct nic *n)
{
	struct device *dev = &n->dev;
	void *obj;

	qps_free(n);
	for (uint32_t i = 0; (obj = table_next(&dev->cqs, &i)); i++)
		nic_cq_del(n, obj);
	for (uint32_t i = 0; (obj = table_next(&dev->eqs, &i)); i++) {
		eq_fini(obj);
		umem_free(&((struct eq *)obj)->mem, &dev->lists);
		free(obj);
	}
	for (uint32_t i = 0; (obj = table_next(&dev->keys, &i)); i++) {
		umem_free(&((struct mr *)obj)->mem, &dev->lists);
		free(obj);
	}
	assert_true(TAILQ_EMPTY(&dev->look));
	assert_true(TAILQ_EMPTY(&dev->eq_look));
	assert_int_equal(dev->lists.left, BUDGET);
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
	guest_fini(&n->guest);
}

/* Memory of a ring, loaded as the device does, and its record. */
static void ring_new(struct nic *n, struct host_ring *r, uint8_t log, uint8_t stride,
		     struct umem *mem)
{
	uint64_t bytes = 1ull << (log + stride);
	struct ornic_pages desc;

	r->ring = guest_alloc(&n->guest, bytes, GUEST_PAGE);
	r->rec = guest_alloc(&n->guest, sizeof(struct ornic_rec), GUEST_PAGE);
	r->log = log;
	desc = guest_contiguous(r->ring);
	assert_int_equal(umem_load(mem, n->guest.gpa, &desc, bytes, PAGE_SIZES,
				   &n->dev.lists), ORNIC_ST_OK);
	nic_rec(n, r)->notify = htole32(ORNIC_NOTIFY_ALWAYS);
}

struct nic_eq *nic_eq_new(struct nic *n, uint8_t log, uint16_t vector)
{
	struct nic_eq *eq = calloc(1, sizeof(*eq));

	assert_non_null(eq);
	ring_new(n, &eq->host, log, 6, &eq->eq.mem);
	eq->eq.dev = &n->dev;
	eq->eq.vector = vector;
	eq->eq.log = log;
	eq->eq.rec = eq->host.rec;
	assert_int_equal(table_add(&n->dev.eqs, &eq->eq, &eq->eq.number), 0);
	assert_int_equal(eq_init(&eq->eq), ORNIC_ST_OK);
	return eq;
}

struct nic_cq *nic_cq_new(struct nic *n, uint8_t log, struct nic_eq *eq, uint8_t flags)
{
	struct nic_cq *cq = calloc(1, sizeof(*cq));

	assert_non_null(cq);
	ring_new(n, &cq->host, log, 6, &cq->cq.mem);
	cq->cq.dev = &n->dev;
	cq->cq.flags = flags;
	cq->cq.log = log;
	cq->cq.owner = 77;
	cq->cq.rec = cq->host.rec;
	cq->cq.eq = &eq->eq;
	assert_int_equal(table_add(&n->dev.cqs, &cq->cq, &cq->cq.number), 0);
	assert_int_equal(cq_init(&cq->cq), ORNIC_ST_OK);
	return cq;
}

static void wq_new(struct nic *n, struct wq *wq, struct host_ring *host, uint8_t stride)
{
	wq->present = true;
	wq->log = NIC_RINGS;
	wq->stride = stride;
	wq->max_sge = ((1u << stride) - 16) / sizeof(struct ornic_sge);
	ring_new(n, host, wq->log, stride, &wq->mem);
	wq->rec = host->rec;
}

struct nic_qp *nic_qp_new(struct nic *n, uint8_t type, uint32_t flags, struct nic_cq *scq,
			  struct nic_cq *rcq)
{
	struct nic_qp *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	q->qp.dev = &n->dev;
	q->qp.type = type;
	q->qp.flags = flags;
	q->qp.owner = 78;
	q->qp.pd = &n->pd;
	q->qp.scq = &scq->cq;
	q->qp.rcq = &rcq->cq;
	q->qp.max_inline = 128;
	q->qp.mtu_code = ORNIC_MTU_1024;
	wq_new(n, &q->qp.sq, &q->sq, NIC_SQ_STRIDE);
	wq_new(n, &q->qp.rq, &q->rq, NIC_RQ_STRIDE);
	assert_int_equal(table_add(&n->dev.qps, &q->qp, &q->qp.handle), 0);
	q->qp.wire_qpn = q->qp.handle;
	assert_int_equal(qp_init(&q->qp), 0);
	return q;
}

void nic_qp_rts(struct nic_qp *qp)
{
	qp_set_state(&qp->qp, ORNIC_QPS_INIT);
	qp_set_state(&qp->qp, ORNIC_QPS_RTR);
	qp_set_state(&qp->qp, ORNIC_QPS_RTS);
}

static uint32_t key_new(struct nic *n, struct mr *mr)
{
	uint32_t index;

	mr->tag = 0x5a;
	assert_int_equal(table_add_random(&n->dev.keys, mr, &index), 0);
	return index << ORNIC_KEY_TAG_BITS | mr->tag;
}

uint32_t nic_region_pages(struct nic *n, uint32_t pd, uint32_t access,
			  const struct ornic_pages *pages, uint64_t addr, uint64_t len)
{
	struct mr *mr = calloc(1, sizeof(*mr));

	assert_non_null(mr);
	assert_int_equal(umem_load(&mr->mem, n->guest.gpa, pages, len, PAGE_SIZES,
				   &n->dev.lists), ORNIC_ST_OK);
	mr->kind = ORNIC_KEY_REGION;
	mr->pd = pd;
	mr->access = access;
	mr->iova = addr;
	mr->length = len;
	return key_new(n, mr);
}

uint32_t nic_region(struct nic *n, uint32_t pd, uint32_t access, uint64_t addr, uint64_t len)
{
	struct ornic_pages pages = guest_contiguous(addr & ~(GUEST_PAGE - 1));

	pages.offset = htole32(addr % GUEST_PAGE);
	return nic_region_pages(n, pd, access, &pages, addr, len);
}

uint32_t nic_phys_all(struct nic *n, uint32_t access)
{
	struct mr *mr = calloc(1, sizeof(*mr));

	assert_non_null(mr);
	mr->kind = ORNIC_KEY_PHYS_ALL;
	mr->access = access;
	return key_new(n, mr);
}

struct ornic_rec *nic_rec(struct nic *n, const struct host_ring *r)
{
	return guest_at(&n->guest, r->rec, sizeof(struct ornic_rec));
}

void *nic_next(struct nic *n, struct host_ring *r)
{
	uint64_t slot = r->index & ((1u << r->log) - 1);
	uint8_t *e = guest_at(&n->guest, r->ring + slot * ORNIC_ENTRY_BYTES, ORNIC_ENTRY_BYTES);

	if ((e[63] & ORNIC_PHASE) != (((r->index >> r->log) & 1) ^ 1))
		return NULL;
	r->index++;
	return e;
}

void nic_consumed(struct nic *n, struct host_ring *r)
{
	nic_rec(n, r)->host_index = htole32(r->index);
}

void nic_arm(struct nic *n, struct host_ring *r, uint8_t sn, enum ornic_arm_type type)
{
	uint32_t word = (r->index & ORNIC_ARM_INDEX_MASK) |
			(uint32_t)(sn & ORNIC_ARM_SN_MASK) << ORNIC_ARM_SN_SHIFT |
			(uint32_t)type << ORNIC_ARM_TYPE_SHIFT;

	nic_rec(n, r)->arm = htole32(word);
}

struct ornic_wqe_ctrl *nic_sqe(struct nic *n, struct nic_qp *qp, uint8_t opcode, uint8_t flags)
{
	uint64_t slot = qp->sq.index & ((1u << NIC_RINGS) - 1);
	struct ornic_wqe_ctrl *c = guest_at(&n->guest, qp->sq.ring + (slot << NIC_SQ_STRIDE),
					    1u << NIC_SQ_STRIDE);

	memset(c, 0, 1u << NIC_SQ_STRIDE);
	c->opcode = opcode;
	c->flags = flags;
	c->qpn = htole32(qp->qp.handle);
	c->index = htole32(qp->sq.index++);
	return c;
}

void nic_rqe(struct nic *n, struct nic_qp *qp, uint64_t addr, uint32_t len, uint32_t lkey)
{
	uint64_t slot = qp->rq.index & ((1u << NIC_RINGS) - 1);
	struct {
		struct ornic_rwqe h;
		struct ornic_sge sge;
	} *w = guest_at(&n->guest, qp->rq.ring + (slot << NIC_RQ_STRIDE), sizeof(*w));

	memset(w, 0, sizeof(*w));
	w->h.count = htole16(1);
	w->h.id = htole32(qp->rq.index++);
	w->sge.addr = htole64(addr);
	w->sge.length = htole32(len);
	w->sge.lkey = htole32(lkey);
	nic_rec(n, &qp->rq)->host_index = htole32(qp->rq.index);
}

void nic_ring(struct nic *n, struct nic_qp *qp)
{
	nic_rec(n, &qp->sq)->host_index = htole32(qp->sq.index);
	qp_doorbell(&qp->qp, false);
}

void nic_turns(struct engine *e)
{
	for (int i = 0; i < 100000; i++)
		if (engine_turn(e))
			return;
	fail_msg("the engine never rests");
}
