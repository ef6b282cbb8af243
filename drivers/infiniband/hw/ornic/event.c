// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous events: pass entries of the event queue to the handlers of the
 * objects' users.
 *
 * ornic.ko delivers events one at a time in process context. The driver finds
 * an object by its number and holds a reference while the handler runs.
 * Destroying the object waits for that reference. Events of a destroyed object
 * are normal and dropped: the device wrote them before it destroyed the object.
 */
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/completion.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include <linux/ornic/hw/admin.h>
#include <linux/ornic/hw/eq.h>

#include "event.h"
#include "cq.h"
#include "ornic_ib.h"
#include "qp.h"
#include "soft_flush.h"
#include "srq.h"

/* The device encodes asynchronous event n of the verbs as type 0x10 + n; n is that of ib_core. */
static_assert(ORNIC_EV_CQ_ERR - ORNIC_EV_VERBS == (int)IB_EVENT_CQ_ERR);
static_assert(ORNIC_EV_SQ_DRAINED - ORNIC_EV_VERBS == (int)IB_EVENT_SQ_DRAINED);
static_assert(ORNIC_EV_DEVICE_FATAL - ORNIC_EV_VERBS == (int)IB_EVENT_DEVICE_FATAL);
static_assert(ORNIC_EV_PORT_ERR - ORNIC_EV_VERBS == (int)IB_EVENT_PORT_ERR);
static_assert(ORNIC_EV_SRQ_LIMIT - ORNIC_EV_VERBS == (int)IB_EVENT_SRQ_LIMIT_REACHED);
static_assert(ORNIC_EV_LAST_WQE - ORNIC_EV_VERBS == (int)IB_EVENT_QP_LAST_WQE_REACHED);

/* ornic_ib_ref_init() - initialise the object's own reference. */
void ornic_ib_ref_init(struct ornic_ib_ref *ref)
{
	refcount_set(&ref->users, 1);
	init_completion(&ref->idle);
}

static void ornic_ref_put(struct ornic_ib_ref *ref)
{
	if (refcount_dec_and_test(&ref->users))
		complete(&ref->idle);
}

/**
 * ornic_ib_ref_drain() - drop the object's own reference and wait for all others
 * @ref: reference of an object that has left its table
 *
 * Context: process context, may sleep. On return no event is being delivered.
 */
void ornic_ib_ref_drain(struct ornic_ib_ref *ref)
{
	ornic_ref_put(ref);
	wait_for_completion(&ref->idle);
}

static struct ornic_ib_qp *ornic_event_find_qp(struct ornic_ib_dev *dev, u32 qpn)
{
	struct ornic_ib_qp *qp;

	xa_lock(&dev->qps);
	qp = xa_load(&dev->qps, qpn);
	if (qp)
		refcount_inc(&qp->ref.users);
	xa_unlock(&dev->qps);
	return qp;
}

static struct ornic_ib_cq *ornic_find_cq(struct ornic_ib_dev *dev, u32 cqn)
{
	struct ornic_ib_cq *cq;

	xa_lock(&dev->cqs);
	cq = xa_load(&dev->cqs, cqn);
	if (cq)
		refcount_inc(&cq->ref.users);
	xa_unlock(&dev->cqs);
	return cq;
}

static struct ornic_ib_srq *ornic_find_srq(struct ornic_ib_dev *dev, u32 srqn)
{
	struct ornic_ib_srq *srq;

	xa_lock(&dev->srqs);
	srq = xa_load(&dev->srqs, srqn);
	if (srq)
		refcount_inc(&srq->ref.users);
	xa_unlock(&dev->srqs);
	return srq;
}

/* Return true if the device cannot read a ring of the queue pair, so that it flushes nothing. */
static bool ornic_ring_failed(const struct ornic_eqe *eqe)
{
	u32 syndrome = le32_to_cpu(eqe->syndrome);

	return syndrome == ORNIC_SYN_RING_INDEX || syndrome == ORNIC_SYN_RING_MEMORY;
}

/*
 * Verbs define only one event of a work queue. ib_uverbs_wq_event_handler() dereferences
 * wq->uobject, which uverbs sets after create_wq() has returned (6.12 and 7.2). A work queue cannot
 * have an error before it is ready, so only a faulty device writes an earlier event: drop it.
 */
static void ornic_wq_event(struct ornic_ib_dev *dev, unsigned long type, struct ib_wq *wq)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = IB_EVENT_WQ_FATAL,
		.element.wq = wq,
	};

	if (type == ORNIC_EV_QP_FATAL && READ_ONCE(wq->uobject))
		wq->event_handler(&event, wq->wq_context);
}

static void ornic_tell_qp(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp, unsigned long type)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = type - ORNIC_EV_VERBS,
		.element.qp = &qp->ibqp,
	};

	if (qp->wq)
		ornic_wq_event(dev, type, qp->wq);
	else if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

/*
 * Note what an event says about the queue pair, unless it precedes RESET: events wait in the queue
 * while a consumer resets the queue pair and uses it again.
 */
static void ornic_note_event(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp, unsigned long type,
			     const struct ornic_eqe *eqe)
{
	u64 position = ornic_event_current(dev->odev);

	spin_lock_irq(&qp->life_lock);
	if (position > qp->before_reset) {
		if (type == ORNIC_EV_QP_FATAL && ornic_ring_failed(eqe))
			ornic_ib_soft_qp(dev, qp);
		if (type == ORNIC_EV_LAST_WQE)
			set_bit(ORNIC_IB_QP_LAST_WQE, &qp->told);
	}
	spin_unlock_irq(&qp->life_lock);
}

static void ornic_qp_event(struct ornic_ib_dev *dev, unsigned long type,
			   const struct ornic_eqe *eqe)
{
	struct ornic_ib_qp *qp = ornic_event_find_qp(dev, le32_to_cpu(eqe->number));

	if (!qp)
		return;
	ornic_note_event(dev, qp, type, eqe);
	ornic_tell_qp(dev, qp, type);
	ornic_ref_put(&qp->ref);
}

/**
 * ornic_ib_soft_last_wqe() - deliver LAST_WQE for a queue pair of a dead device
 * @dev: dead device
 * @qp: queue pair with an SRQ, or XRC target; others are ignored. The caller holds a
 *	reference.
 *
 * ib_drain_qp() of a queue pair with an SRQ waits up to 60 s for this event (6.12 and
 * 7.2), and a dead device does not write it (ORN-SRQ-6).
 *
 * Context: process context.
 */
void ornic_ib_soft_last_wqe(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp)
{
	if (!qp->ibqp.srq && qp->ibqp.qp_type != IB_QPT_XRC_TGT)
		return;
	if (READ_ONCE(qp->state) == IB_QPS_ERR &&
	    !test_and_set_bit(ORNIC_IB_QP_LAST_WQE, &qp->told))
		ornic_tell_qp(dev, qp, ORNIC_EV_LAST_WQE);
}

/* Find the first queue pair with number *@qpn or above and take a reference; NULL if none. */
static struct ornic_ib_qp *ornic_next_qp(struct ornic_ib_dev *dev, unsigned long *qpn)
{
	struct ornic_ib_qp *qp;

	xa_lock(&dev->qps);
	qp = xa_find(&dev->qps, qpn, ULONG_MAX, XA_PRESENT);
	if (qp)
		refcount_inc(&qp->ref.users);
	xa_unlock(&dev->qps);
	return qp;
}

/* ornic_ib_modify_qp() delivers the event to queue pairs that enter ERR later. */
static void ornic_last_wqe_all(struct ornic_ib_dev *dev)
{
	struct ornic_ib_qp *qp;
	unsigned long qpn;

	for (qpn = 0; (qp = ornic_next_qp(dev, &qpn)); qpn++) {
		ornic_ib_soft_last_wqe(dev, qp);
		ornic_ref_put(&qp->ref);
	}
}

static void ornic_cq_event(struct ornic_ib_dev *dev, unsigned long type,
			   const struct ornic_eqe *eqe)
{
	struct ornic_ib_cq *cq = ornic_find_cq(dev, le32_to_cpu(eqe->number));
	struct ib_event event;

	if (!cq)
		return;
	WRITE_ONCE(cq->broken, true);
	ornic_ib_soft_cq(dev, cq);
	if (cq->ibcq.event_handler) {
		event.device = &dev->ibdev;
		event.event = type - ORNIC_EV_VERBS;
		event.element.cq = &cq->ibcq;
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
	}
	ornic_ref_put(&cq->ref);
}

static void ornic_srq_event(struct ornic_ib_dev *dev, unsigned long type,
			    const struct ornic_eqe *eqe)
{
	struct ornic_ib_srq *srq = ornic_find_srq(dev, le32_to_cpu(eqe->number));
	struct ib_event event;

	if (!srq)
		return;
	if (srq->ibsrq.event_handler) {
		event.device = &dev->ibdev;
		event.event = type - ORNIC_EV_VERBS;
		event.element.srq = &srq->ibsrq;
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
	}
	ornic_ref_put(&srq->ref);
}

/*
 * Report an event of the device or its port. Only while the device is registered:
 * ib_dispatch_event() queues work without a reference to the device. ib_unregister_device() flushes
 * it (6.12 and 7.2); work that is queued later would run after ib_dealloc_device().
 */
static void ornic_device_event(struct ornic_ib_dev *dev, unsigned long type)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = type - ORNIC_EV_VERBS,
		.element.port_num = ORNIC_IB_PORT,
	};

	if (READ_ONCE(dev->registered))
		ib_dispatch_event(&event);
}

/*
 * The device and ib_core 7.2, which watches the netdev, both report a link change. Pass on the
 * first report only, because applications would see the event twice.
 */
static void ornic_port_event(struct ornic_ib_dev *dev, unsigned long type)
{
	spin_lock(&dev->port_lock);
	if (dev->port_event != type) {
		dev->port_event = type;
		ornic_device_event(dev, type);
	}
	spin_unlock(&dev->port_lock);
}

static void ornic_fatal_event(struct ornic_ib_dev *dev)
{
	spin_lock(&dev->port_lock);
	dev->fatal_event = true;
	ornic_device_event(dev, ORNIC_EV_DEVICE_FATAL);
	spin_unlock(&dev->port_lock);
}

/**
 * ornic_ib_registered() - deliver events of device and port from now on
 * @dev: device, just registered
 *
 * ib_core reads the state of the port during the registration and consumers start then, so a link
 * change since has been kept for them, and the death of the device.
 *
 * Context: process context.
 */
void ornic_ib_registered(struct ornic_ib_dev *dev)
{
	spin_lock(&dev->port_lock);
	WRITE_ONCE(dev->registered, true);
	if (dev->port_event)
		ornic_device_event(dev, dev->port_event);
	if (dev->fatal_event)
		ornic_device_event(dev, ORNIC_EV_DEVICE_FATAL);
	spin_unlock(&dev->port_lock);
}

void ornic_ib_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
				unsigned long event)
{
	bool up = netif_running(ndev) && netif_carrier_ok(ndev);

	ornic_port_event(to_oib(ibdev), up ? ORNIC_EV_PORT_ACTIVE : ORNIC_EV_PORT_ERR);
}

/* A process rang for a queue of another owner, which the provider never does. It had no effect. */
static void ornic_doorbell_event(struct ornic_ib_dev *dev, const struct ornic_eqe *eqe)
{
	ibdev_notice_ratelimited(&dev->ibdev,
				 "doorbell rejected on page %u, %u rejected so far: not its own queue\n",
				 le32_to_cpu(eqe->number), le32_to_cpu(eqe->info0));
}

/**
 * ornic_ib_event() - handle an asynchronous event
 * @nb: notifier of the device
 * @type: enum ornic_event
 * @data: struct ornic_eqe
 *
 * Context: process context, one call at a time.
 */
int ornic_ib_event(struct notifier_block *nb, unsigned long type, void *data)
{
	struct ornic_ib_dev *dev = container_of(nb, struct ornic_ib_dev, nb);
	const struct ornic_eqe *eqe = data;

	switch (type) {
	case ORNIC_EV_CQ_ERR:
		ornic_cq_event(dev, type, eqe);
		break;
	case ORNIC_EV_QP_FATAL:
	case ORNIC_EV_QP_REQ_ERR:
	case ORNIC_EV_QP_ACCESS_ERR:
	case ORNIC_EV_COMM_EST:
	case ORNIC_EV_SQ_DRAINED:
	case ORNIC_EV_LAST_WQE:
		ornic_qp_event(dev, type, eqe);
		break;
	case ORNIC_EV_SRQ_ERR:
	case ORNIC_EV_SRQ_LIMIT:
		ornic_srq_event(dev, type, eqe);
		break;
	case ORNIC_EV_DEVICE_FATAL:
		ornic_ib_soft_device(dev);
		ornic_last_wqe_all(dev);
		ornic_fatal_event(dev);
		break;
	case ORNIC_EV_PORT_ACTIVE:
	case ORNIC_EV_PORT_ERR:
		ornic_port_event(dev, type);
		break;
	case ORNIC_EV_DB_REJECTED:
		ornic_doorbell_event(dev, eqe);
		break;
	}
	return NOTIFY_OK;
}
