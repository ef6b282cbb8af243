// SPDX-License-Identifier: GPL-2.0
/*
 * Cases about the queues of a connection: shared receive queues, and resizing while messages are
 * in flight.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/log2.h>

#include "ktest.h"

static struct ib_qp *make_qp(struct ktest_conn *conn, u32 depth)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_UD, .send_cq = conn->cq, .recv_cq = conn->cq,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = depth, .max_recv_wr = depth,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.port_num = conn->id->port_num,
	};

	return ib_create_qp(conn->pd, &attr);
}

/* Send one request per receive, then call @turn before each answer is awaited. */
static bool burst(struct ktest_conn *conn, bool (*turn)(struct ktest_conn *conn, int i))
{
	int i;

	for (i = 0; i < KTEST_DEPTH; i++) {
		*conn->send[i].msg = (struct ktest_msg){ .op = KTEST_ECHO, .seed = i };
		if (FAILED(!ktest_post_send(&conn->send[i], NULL, 0)))
			return false;
	}
	for (i = 0; i < KTEST_DEPTH; i++) {
		if (!turn(conn, i))
			return false;
		if (FAILED(wait_for_completion_timeout(&conn->reply, KTEST_TIMEOUT)))
			return false;
		if (FAILED(!conn->broken))
			return false;
	}
	return true;
}

static bool bursts(struct ktest_conn *conn, bool (*turn)(struct ktest_conn *conn, int i))
{
	int i;

	for (i = 0; i < 20; i++)
		if (!burst(conn, turn))
			return false;
	return true;
}

/* The event comes when the first entry is consumed, and only once, because it disarms the limit. */
bool ktest_case_srq_limit(struct ktest_conn *conn)
{
	struct ib_srq_attr attr = { .srq_limit = KTEST_DEPTH };
	struct ktest_msg msg = { .op = KTEST_ECHO };

	if (FAILED(!ib_modify_srq(conn->srq, &attr, IB_SRQ_LIMIT)))
		return false;
	if (FAILED(!ib_query_srq(conn->srq, &attr)))
		return false;
	if (FAILED(attr.srq_limit == KTEST_DEPTH && attr.max_wr == KTEST_DEPTH))
		return false;
	if (FAILED(!try_wait_for_completion(&conn->limit)))
		return false;
	if (FAILED(!ktest_call(conn, &msg, NULL)))
		return false;
	if (FAILED(wait_for_completion_timeout(&conn->limit, KTEST_TIMEOUT)))
		return false;
	if (FAILED(!ib_query_srq(conn->srq, &attr) && !attr.srq_limit))
		return false;
	if (FAILED(!ktest_call(conn, &msg, NULL)))
		return false;
	return !FAILED(!try_wait_for_completion(&conn->limit));
}

static bool resize_srq(struct ktest_conn *conn, int i)
{
	static const u32 sizes[] = { 100, 4096, KTEST_DEPTH, 1000 };
	struct ib_srq_attr attr = { .max_wr = sizes[i % ARRAY_SIZE(sizes)] };

	if (FAILED(!ib_modify_srq(conn->srq, &attr, IB_SRQ_MAX_WR)))
		return false;
	if (FAILED(attr.max_wr == roundup_pow_of_two(sizes[i % ARRAY_SIZE(sizes)])))
		return false;
	/* too small: almost all of the KTEST_DEPTH receives are posted */
	attr.max_wr = KTEST_DEPTH / 4;
	return !FAILED(ib_modify_srq(conn->srq, &attr, IB_SRQ_MAX_WR) == -EINVAL);
}

/* Resize the SRQ between answers; too small a size is rejected and no receive is lost. */
bool ktest_case_srq_resize(struct ktest_conn *conn)
{
	u32 most = conn->id->device->attrs.max_srq_wr;
	struct ib_srq_attr attr = { .max_wr = most + 1 };

	if (FAILED(conn->id->device->attrs.device_cap_flags & IB_DEVICE_SRQ_RESIZE))
		return false;
	if (FAILED(ib_modify_srq(conn->srq, &attr, IB_SRQ_MAX_WR) == -EINVAL))
		return false;
	attr = (struct ib_srq_attr){ .max_wr = 64, .srq_limit = 65 };
	if (FAILED(ib_modify_srq(conn->srq, &attr, IB_SRQ_MAX_WR | IB_SRQ_LIMIT) == -EINVAL))
		return false;
	if (!bursts(conn, resize_srq))
		return false;
	/* the limit exceeds the posted entries, so the event comes at once */
	attr.srq_limit = 64;
	attr.max_wr = 64;
	if (FAILED(!ib_modify_srq(conn->srq, &attr, IB_SRQ_MAX_WR | IB_SRQ_LIMIT)))
		return false;
	if (FAILED(wait_for_completion_timeout(&conn->limit, KTEST_TIMEOUT)))
		return false;
	return !FAILED(!ib_query_srq(conn->srq, &attr) && attr.max_wr == 64);
}

#ifdef KTEST_HAVE_RESIZE_CQ
static bool resize_cq(struct ktest_conn *conn, int i)
{
	static const int sizes[] = { 2 * KTEST_CQES, 8 * KTEST_CQES, KTEST_CQES };

	return !FAILED(!ib_resize_cq(conn->cq, sizes[i % ARRAY_SIZE(sizes)]));
}

/* Resize the CQ between answers; no completion is lost. */
bool ktest_case_resize_cq(struct ktest_conn *conn)
{
	u32 most = conn->id->device->attrs.max_cqe;

	if (FAILED(ib_resize_cq(conn->cq, most + 1) == -EINVAL))
		return false;
	return bursts(conn, resize_cq);
}

struct resize {
	struct work_struct work;
	struct ib_cq *cq;
	int err;
};

static void do_resize(struct work_struct *work)
{
	struct resize *resize = container_of(work, struct resize, work);

	resize->err = ib_resize_cq(resize->cq, 4 * KTEST_CQES);
}

static void flushed(struct ib_cq *cq, struct ib_wc *wc)
{
}

/* Let the device write completions of a queue pair. */
static bool flush(struct ktest_conn *conn, struct ib_qp *qp)
{
	static struct ib_cqe cqe = { .done = flushed };
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = conn->id->port_num, .qkey = 1,
	};
	struct ib_recv_wr wr = { .wr_cqe = &cqe };
	int i;

	if (FAILED(!ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
					    IB_QP_QKEY)))
		return false;
	for (i = 0; i < 4; i++)
		if (FAILED(!ib_post_recv(qp, &wr, NULL)))
			return false;
	attr.qp_state = IB_QPS_ERR;
	if (FAILED(!ib_modify_qp(qp, &attr, IB_QP_STATE)))
		return false;
	msleep(20);	/* the device writes them after the command */
	return true;
}

static int reset_qp(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

/*
 * Reset or destroy a queue pair while its CQ is resized, and report how long that took. With a
 * slow driver the device has switched already, so it writes the completions to the new ring. They
 * have to be dropped there.
 */
static bool leave_in_resize(struct ktest_conn *conn, bool destroy)
{
	struct resize resize = { .cq = conn->cq };
	struct ktest_msg msg = { .op = KTEST_ECHO };
	struct ib_qp *qp = make_qp(conn, 4);
	ktime_t begin;
	bool ok;

	if (FAILED(!IS_ERR(qp)))
		return false;
	INIT_WORK_ONSTACK(&resize.work, do_resize);
	queue_work(system_unbound_wq, &resize.work);
	msleep(100);
	ok = flush(conn, qp);
	begin = ktime_get();
	ok = !FAILED(!(destroy ? ib_destroy_qp(qp) : reset_qp(qp))) && ok;
	pr_info("ornic_ktest: # it took %lld ms\n", ktime_ms_delta(ktime_get(), begin));
	flush_work(&resize.work);
	destroy_work_on_stack(&resize.work);
	ok = !FAILED(!resize.err) && ok && !FAILED(!ktest_call(conn, &msg, NULL));
	return (destroy || !FAILED(!ib_destroy_qp(qp))) && ok;
}

bool ktest_case_resize_cq_reset(struct ktest_conn *conn)
{
	return leave_in_resize(conn, false);
}

bool ktest_case_resize_cq_destroy(struct ktest_conn *conn)
{
	return leave_in_resize(conn, true);
}
#endif

/* Queues of the largest size. Their memory cannot be allocated as one contiguous block. */
bool ktest_case_largest_queues(struct ktest_conn *conn)
{
	const struct ib_device_attr *attr = &conn->id->device->attrs;
	struct ib_cq *cq;
	struct ib_qp *qp;

	cq = ib_alloc_cq(conn->id->device, NULL, attr->max_cqe, 0, IB_POLL_WORKQUEUE);
	if (FAILED(!IS_ERR(cq)))
		return false;
	ib_free_cq(cq);
	qp = make_qp(conn, attr->max_qp_wr);
	if (FAILED(!IS_ERR(qp)))
		return false;
	return !FAILED(!ib_destroy_qp(qp));
}

/*
 * ib_core rejects the destruction of a queue pair while it is in a multicast group, and counts how
 * often it has joined.
 */
bool ktest_case_mcast(struct ktest_conn *conn)
{
	union ib_gid gid = { .raw = { 0xff, 0x0e, [15] = 0x55 } };
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = conn->id->port_num, .qkey = 1,
	};
	struct ib_qp *qp = make_qp(conn, 4);
	bool ok = false;

	if (FAILED(!IS_ERR(qp)))
		return false;
	if (FAILED(!ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
					    IB_QP_QKEY)))
		goto out;
	if (FAILED(!ib_attach_mcast(qp, &gid, 0)))
		goto out;
	ok = !FAILED(!ib_attach_mcast(qp, &gid, 0)) && !FAILED(!ib_detach_mcast(qp, &gid, 0)) &&
	     !FAILED(ib_destroy_qp(qp) == -EBUSY) && !FAILED(!ib_detach_mcast(qp, &gid, 0)) &&
	     !FAILED(ib_detach_mcast(qp, &gid, 0) == -EINVAL);
out:
	return !FAILED(!ib_destroy_qp(qp)) && ok;
}
