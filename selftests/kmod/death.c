// SPDX-License-Identifier: GPL-2.0
/*
 * Connections whose device goes away. All posted work requests must complete, and a queue pair with
 * a shared receive queue must get the LAST_WQE event that draining waits for, exactly once.
 */
#include "ktest.h"

enum { PLAIN, WORK, WORK_POOLED, SHARED, DRAINED, ENDS };

/* Polling context of each. ib_free_cq() cancels the work of a CQ that a workqueue polls. */
static const struct {
	enum ib_poll_context poll;
	bool pooled;
	bool shared;
} ends[ENDS] = {
	[PLAIN]		= { IB_POLL_SOFTIRQ, true, false },
	[WORK]		= { IB_POLL_WORKQUEUE, false, false },
	[WORK_POOLED]	= { IB_POLL_UNBOUND_WORKQUEUE, true, false },
	[SHARED]	= { IB_POLL_SOFTIRQ, true, true },
	[DRAINED]	= { IB_POLL_WORKQUEUE, false, true },
};

static bool connected(struct ktest_conn **conn, struct sockaddr *addr)
{
	struct ktest_msg msg = { .op = KTEST_ECHO };
	int i;

	for (i = 0; i < ENDS; i++) {
		conn[i] = ktest_connect(addr, ends[i].poll, ends[i].pooled, ends[i].shared);
		if (FAILED(!IS_ERR(conn[i])))
			return false;
		if (FAILED(!ktest_call(conn[i], &msg, NULL)))
			return false;
	}
	return true;
}

static bool last_wqe_once(struct ktest_conn *conn)
{
	if (FAILED(wait_for_completion_timeout(&conn->last_wqe, KTEST_TIMEOUT)))
		return false;
	return !FAILED(!try_wait_for_completion(&conn->last_wqe));
}

static bool survives(struct ktest_conn **conn)
{
	int i;

	ktest_drain(conn[DRAINED]);
	if (!last_wqe_once(conn[DRAINED]))
		return false;
	pr_info("ornic_ktest: # waiting\n");
	for (i = 0; i < ENDS; i++)
		if (FAILED(wait_for_completion_timeout(&conn[i]->removal, 10 * KTEST_TIMEOUT)))
			return false;
	for (i = 0; i < ENDS; i++)
		ktest_drain(conn[i]);
	for (i = 0; i < SHARED; i++)
		if (FAILED(atomic_read(&conn[i]->posted) == atomic_read(&conn[i]->completed)))
			return false;
	if (!last_wqe_once(conn[SHARED]))
		return false;
	return !FAILED(!try_wait_for_completion(&conn[DRAINED]->last_wqe));
}

/**
 * ktest_death() - connect, wait until the device goes away, and check all completions
 * @addr: address of a server on another device
 */
void ktest_death(struct sockaddr *addr)
{
	struct ktest_conn *conn[ENDS] = {};
	bool ok = connected(conn, addr) && survives(conn);
	int i;

	for (i = 0; i < ENDS; i++)
		if (!IS_ERR_OR_NULL(conn[i]))
			ktest_disconnect(conn[i]);
	pr_info("ornic_ktest: %s 1 - death\n", ok ? "ok" : "not ok");
}
