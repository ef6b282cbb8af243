// SPDX-License-Identifier: GPL-2.0
/*
 * A queue pair that is reset before its pending events are delivered. It is connected to itself
 * when the module is loaded. When the module is unloaded it is reset, connected again and must
 * carry a message, also after the delivery of the events. Events are delivered one by one, and the
 * handler of another queue pair, which resets this one, delays them meanwhile. Then the device
 * dies, and the queue pair, whose receives are in a shared queue, must get LAST_WQE once more.
 */
#include <linux/dma-mapping.h>
#include <rdma/ib_cache.h>

#include "ktest.h"

#define BYTES	64

struct once {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static struct {
	struct ib_device *ibdev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct ib_qp *delays;
	struct ib_qp *qp;
	struct completion go;
	struct completion fatal;
	struct completion last_wqe;
	struct completion reset_by_handler;
	struct ib_event_handler handler;
	struct completion dead;
	struct once send;
	struct once recv;
	u8 *buf;
	u64 dma;
} it;

static void qp_event(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_QP_FATAL)
		complete(&it.fatal);
	else if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		complete(&it.last_wqe);
}

static void device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	if (event->event == IB_EVENT_DEVICE_FATAL)
		complete(&it.dead);
}

static void once_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct once *once = container_of(wc->wr_cqe, struct once, cqe);

	once->status = wc->status;
	complete(&once->done);
}

static int enter(struct ib_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = {
		.qp_state = state, .port_num = 1, .path_mtu = IB_MTU_1024,
		.dest_qp_num = qp->qp_num, .max_dest_rd_atomic = 1, .max_rd_atomic = 1,
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1,
		.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE,
	};
	static const int masks[] = {
		[IB_QPS_RESET] = IB_QP_STATE,
		[IB_QPS_ERR] = IB_QP_STATE,
		[IB_QPS_INIT] = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
		[IB_QPS_RTR] = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			       IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
		[IB_QPS_RTS] = IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			       IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC,
	};
	const struct ib_gid_attr *gid = rdma_get_gid_attr(it.ibdev, 1, 0);
	int ret;

	if (IS_ERR(gid))
		return PTR_ERR(gid);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_move_grh_sgid_attr(&attr.ah_attr, (union ib_gid *)&gid->gid, 0, 64, 0, gid);
	ret = rdma_read_gid_l2_fields(gid, NULL, attr.ah_attr.roce.dmac);
	ret = ret ?: ib_modify_qp(qp, &attr, masks[state]);
	rdma_destroy_ah_attr(&attr.ah_attr);
	return ret;
}

static void delaying_event(struct ib_event *event, void *context)
{
	if (!enter(it.delays, IB_QPS_RESET))
		complete(&it.reset_by_handler);
	wait_for_completion_timeout(&it.go, 6 * KTEST_TIMEOUT);
}

static bool connect_self(void)
{
	return !FAILED(!enter(it.qp, IB_QPS_INIT)) && !FAILED(!enter(it.qp, IB_QPS_RTR)) &&
	       !FAILED(!enter(it.qp, IB_QPS_RTS));
}

static int make(void)
{
	struct ib_qp_init_attr attr = {
		.event_handler = qp_event, .qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 }, .port_num = 1,
	};
	struct ib_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };

	init_completion(&it.go);
	init_completion(&it.fatal);
	init_completion(&it.last_wqe);
	init_completion(&it.dead);
	init_completion(&it.reset_by_handler);
	it.pd = ib_alloc_pd(it.ibdev, 0);
	if (IS_ERR(it.pd))
		return PTR_ERR(it.pd);
	it.cq = ib_alloc_cq(it.ibdev, NULL, 16, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(it.cq))
		return PTR_ERR(it.cq);
	it.srq = ib_create_srq(it.pd, &srq);
	if (IS_ERR(it.srq))
		return PTR_ERR(it.srq);
	attr.srq = it.srq;
	attr.send_cq = it.cq;
	attr.recv_cq = it.cq;
	it.qp = ib_create_qp(it.pd, &attr);
	if (IS_ERR(it.qp))
		return PTR_ERR(it.qp);
	attr.event_handler = delaying_event;
	it.delays = ib_create_qp(it.pd, &attr);
	if (IS_ERR(it.delays))
		return PTR_ERR(it.delays);
	it.buf = kzalloc(2 * BYTES, GFP_KERNEL);
	if (!it.buf)
		return -ENOMEM;
	it.dma = ib_dma_map_single(it.ibdev, it.buf, 2 * BYTES, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(it.ibdev, it.dma)) {
		kfree(it.buf);
		it.buf = NULL;
		return -ENOMEM;
	}
	return connect_self() ? 0 : -EIO;
}

static void unmake(void)
{
	complete_all(&it.go);
	if (!IS_ERR_OR_NULL(it.delays))
		ib_destroy_qp(it.delays);
	if (!IS_ERR_OR_NULL(it.qp)) {
		ib_drain_qp(it.qp);
		ib_destroy_qp(it.qp);
	}
	if (it.buf)
		ib_dma_unmap_single(it.ibdev, it.dma, 2 * BYTES, DMA_BIDIRECTIONAL);
	kfree(it.buf);
	if (!IS_ERR_OR_NULL(it.srq))
		ib_destroy_srq(it.srq);
	if (!IS_ERR_OR_NULL(it.cq))
		ib_free_cq(it.cq);
	if (!IS_ERR_OR_NULL(it.pd))
		ib_dealloc_pd(it.pd);
	ib_device_put(it.ibdev);
}

static bool succeeds(struct once *once)
{
	if (FAILED(wait_for_completion_timeout(&once->done, KTEST_TIMEOUT)))
		return false;
	return !FAILED(once->status == IB_WC_SUCCESS);
}

static bool carries_message(void)
{
	struct ib_sge from = { it.dma, BYTES, it.pd->local_dma_lkey };
	struct ib_sge to = { it.dma + BYTES, BYTES, it.pd->local_dma_lkey };
	struct ib_recv_wr recv = { .wr_cqe = &it.recv.cqe, .sg_list = &to, .num_sge = 1 };
	struct ib_send_wr send = {
		.wr_cqe = &it.send.cqe, .sg_list = &from, .num_sge = 1, .opcode = IB_WR_SEND,
	};

	it.send.cqe.done = once_done;
	it.recv.cqe.done = once_done;
	init_completion(&it.send.done);
	init_completion(&it.recv.done);
	if (FAILED(!ib_post_srq_recv(it.srq, &recv, NULL)))
		return false;
	if (FAILED(!ib_post_send(it.qp, &send, NULL)))
		return false;
	return succeeds(&it.send) && succeeds(&it.recv);
}

static bool works_after_reset(void)
{
	if (FAILED(!enter(it.qp, IB_QPS_RESET)))
		return false;
	if (!connect_self())
		return false;
	if (FAILED(!try_wait_for_completion(&it.fatal)))
		return false;
	if (FAILED(!try_wait_for_completion(&it.last_wqe)))
		return false;
	if (FAILED(wait_for_completion_timeout(&it.reset_by_handler, KTEST_TIMEOUT)))
		return false;
	complete(&it.go);
	if (FAILED(wait_for_completion_timeout(&it.fatal, KTEST_TIMEOUT)))
		return false;
	if (FAILED(wait_for_completion_timeout(&it.last_wqe, KTEST_TIMEOUT)))
		return false;
	return carries_message();
}

/* LAST_WQE from before RESET does not count: the dead device causes exactly one more. */
static bool last_wqe_of_dead_device(void)
{
	bool died;

	INIT_IB_EVENT_HANDLER(&it.handler, it.ibdev, device_event);
	ib_register_event_handler(&it.handler);
	pr_info("ornic_ktest: # waiting\n");
	died = wait_for_completion_timeout(&it.dead, 10 * KTEST_TIMEOUT);
	ib_unregister_event_handler(&it.handler);
	if (FAILED(died))
		return false;
	if (FAILED(!enter(it.qp, IB_QPS_ERR)))
		return false;
	if (FAILED(wait_for_completion_timeout(&it.last_wqe, KTEST_TIMEOUT)))
		return false;
	if (FAILED(!enter(it.qp, IB_QPS_ERR)))
		return false;
	return !FAILED(!try_wait_for_completion(&it.last_wqe));
}

/**
 * ktest_reset_prepare() - create the queue pair and connect it to itself
 * @name: name of the RDMA device
 */
int ktest_reset_prepare(const char *name)
{
	int ret;

	it.ibdev = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
	if (!it.ibdev)
		return -ENODEV;
	ret = make();
	if (ret)
		unmake();
	return ret;
}

/*
 * ktest_reset() - reset the queue pair, whose events FATAL and LAST_WQE are not yet delivered, and
 * use it until the device dies.
 */
void ktest_reset(void)
{
	bool ok = works_after_reset() && last_wqe_of_dead_device();

	pr_info("ornic_ktest: %s 1 - reset\n", ok ? "ok" : "not ok");
	unmake();
}
