// SPDX-License-Identifier: GPL-2.0
/*
 * Cases about the queues of a connection: a shared receive queue, and other sizes while
 * messages are under way.
 */
#include <linux/log2.h>

#include "ktest.h"

/* As many requests at a time as there are receives; @turn is called between the answers. */
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

/* One event when the first entry is taken; then the limit is off. */
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
	/* all receives but those that have just completed are posted */
	attr.max_wr = KTEST_DEPTH / 4;
	return !FAILED(ib_modify_srq(conn->srq, &attr, IB_SRQ_MAX_WR) == -EINVAL);
}

/* Another size between any two answers, too small a one refused; nothing is lost. */
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
	/* more than are posted: the event comes at once */
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

/* Another size between any two answers; no completion is lost. */
bool ktest_case_resize_cq(struct ktest_conn *conn)
{
	u32 most = conn->id->device->attrs.max_cqe;

	if (FAILED(ib_resize_cq(conn->cq, most + 1) == -EINVAL))
		return false;
	return bursts(conn, resize_cq);
}
#endif
