// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of queue pairs as returned by a query, the events of a queue pair, and
 * requests that are rejected because the device lacks the feature.
 */
#include "states.h"

#include <inttypes.h>
#include <stdio.h>

static struct ibv_qp_attr queried(struct subject *s, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_attr got;

	if (ibv_query_qp(s->qp, &got, 0x1fffff, init))
		bail("ibv_query_qp failed");
	return got;
}

#define SAME(s, got, want, member) \
	EXPECT(s, (got).member == (want).member, #member " is %#" PRIx64 ", not %#" PRIx64, \
	       (uint64_t)(got).member, (uint64_t)(want).member)

static void same_path(struct subject *s, const struct ibv_ah_attr *got,
		      const struct ibv_ah_attr *want)
{
	SAME(s, *got, *want, is_global);
	SAME(s, *got, *want, port_num);
	SAME(s, *got, *want, sl);
	SAME(s, *got, *want, grh.sgid_index);
	SAME(s, *got, *want, grh.hop_limit);
	SAME(s, *got, *want, grh.traffic_class);
	SAME(s, *got, *want, grh.flow_label);
	EXPECT(s, !memcmp(&got->grh.dgid, &want->grh.dgid, 16), "the destination GID differs");
}

/* A query returns the attributes that were set, for each type those that it has. */
void test_attributes(struct subject *s)
{
	struct ibv_qp_attr want = subject_attr(s), got;
	struct ibv_qp_init_attr init;

	subject_to(s, IBV_QPS_RTS);
	got = queried(s, &init);
	EXPECT(s, got.qp_state == IBV_QPS_RTS && got.cur_qp_state == IBV_QPS_RTS, "not in RTS");
	EXPECT(s, !got.sq_draining, "draining in RTS");
	EXPECT(s, init.qp_type == s->type && init.sq_sig_all, "not as it was created");
	EXPECT(s, init.send_cq == s->cq.cq && init.recv_cq == s->cq.cq, "other CQs");
	EXPECT(s, got.cap.max_send_wr >= 8 && got.cap.max_recv_wr >= 8, "fewer work requests");
	SAME(s, got, want, port_num);
	SAME(s, got, want, pkey_index);
	SAME(s, got, want, sq_psn);
	if (s->type == IBV_QPT_UD) {
		SAME(s, got, want, qkey);
		return;
	}
	SAME(s, got, want, qp_access_flags);
	SAME(s, got, want, path_mtu);
	SAME(s, got, want, rq_psn);
	SAME(s, got, want, dest_qp_num);
	same_path(s, &got.ah_attr, &want.ah_attr);
	EXPECT(s, got.path_mig_state == IBV_MIG_MIGRATED, "a path that may migrate");
	if (s->type == IBV_QPT_UC)
		return;
	SAME(s, got, want, timeout);
	SAME(s, got, want, retry_cnt);
	SAME(s, got, want, rnr_retry);
	SAME(s, got, want, min_rnr_timer);
	SAME(s, got, want, max_rd_atomic);
	SAME(s, got, want, max_dest_rd_atomic);
}

/* ORN-QP-3: RESET clears attributes and work requests; the queue pair can be used again. */
void test_reset_forgets(struct subject *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr got;

	subject_to(s, IBV_QPS_SQD);
	EXPECT(s, !subject_send(s, 7, 8, s->mr->lkey), "cannot post in SQD");
	subject_recv(s, 8);
	subject_to(s, IBV_QPS_RESET);
	got = queried(s, &init);
	EXPECT(s, got.qp_state == IBV_QPS_RESET && !got.dest_qp_num && !got.sq_psn && !got.qkey &&
	       !got.qp_access_flags, "attributes after RESET");
	subject_to(s, IBV_QPS_RTS);
	subject_recv(s, 9);
	EXPECT(s, !subject_send(s, 10, 8, s->mr->lkey), "cannot post again");
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc;

		EXPECT(s, queue_wait(&s->cq, &wc, 15) && !wc.status &&
		       (wc.wr_id == 9 || wc.wr_id == 10), "a completion from before RESET");
	}
}

/*
 * ORN-QP-16: SQD raises an event when it has drained; work requests that are posted then
 * wait for RTS.
 */
void test_sq_drained(struct subject *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_wc wc;

	subject_to(s, IBV_QPS_RTS);
	EXPECT(s, !ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
	       "RTS to SQD fails");
	subject_event(s, IBV_EVENT_SQ_DRAINED);
	subject_recv(s, 1);
	EXPECT(s, !subject_send(s, 2, 8, s->mr->lkey), "cannot post in SQD");
	EXPECT(s, !queue_wait(&s->cq, &wc, 0.2), "a send is executed in SQD");
	attr.qp_state = IBV_QPS_RTS;
	EXPECT(s, !ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), "SQD to RTS fails");
	for (int i = 0; i < 2; i++)
		EXPECT(s, queue_wait(&s->cq, &wc, 15) && !wc.status, "no completion after SQD");
}

/* ORN-QP-21, ORN-UC-4: a failed send stops only the send queue; RTS restarts it. */
void test_sqe(struct subject *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ibv_wc wc;

	subject_to(s, IBV_QPS_SQE);
	EXPECT(s, subject_state(s) == IBV_QPS_SQE, "state %d", subject_state(s));
	EXPECT(s, !subject_send(s, 2, 8, s->mr->lkey), "cannot post in SQE");
	subject_wc(s, 2, IBV_WC_WR_FLUSH_ERR);
	EXPECT(s, !ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), "SQE to RTS fails");
	subject_recv(s, 3);
	EXPECT(s, !subject_send(s, 4, 8, s->mr->lkey), "cannot post again");
	for (int i = 0; i < 2; i++)
		EXPECT(s, queue_wait(&s->cq, &wc, 15) && !wc.status, "no completion after SQE");
}

/* Find the first slot of the send queue by its control segment; NULL: not found. */
static uint32_t *find_ring(uint32_t qpn)
{
	char line[256];
	FILE *maps = fopen("/proc/self/maps", "r");
	uint32_t *found = NULL;

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx rw-", &start, &end) != 2 || strstr(line, "["))
			continue;
		for (unsigned long page = start; page < end; page += 4096) {
			uint32_t *at = (uint32_t *)page;

			if ((at[0] & 0xff) == IBV_WR_RDMA_WRITE && at[0] >> 16 == 1 &&
			    at[2] == qpn && at[3] == 0)
				found = at;
		}
	}
	if (maps)
		fclose(maps);
	return found;
}

/* ORN-ERR-7: an index beyond the ring causes QP_FATAL, and the queue pair enters ERR. */
void test_ring_fatal(struct subject *s)
{
	struct ibv_sge sge = { (uintptr_t)s->mem, 8, s->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)s->mem + 64, s->mr->rkey },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	volatile uint32_t *index = NULL;
	uint32_t *ring;

	subject_to(s, IBV_QPS_RTS);
	for (wr.wr_id = 0; wr.wr_id < 3; wr.wr_id++) {
		EXPECT(s, !ibv_post_send(s->qp, &wr, &bad), "cannot post");
		subject_wc(s, wr.wr_id, IBV_WC_SUCCESS);
	}
	ring = find_ring(s->qp->qp_num);
	for (int i = 0; ring && i < 1024 && !index; i += 16)
		if (ring[i] == 3)
			index = ring + i;
	EXPECT(s, index, "the ring's record is not found");
	if (!index || ibv_modify_qp(s->qp, &attr, IBV_QP_STATE))
		return;
	*index = 3000;
	attr.qp_state = IBV_QPS_RTS;
	EXPECT(s, !ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), "SQD to RTS fails");
	subject_event(s, IBV_EVENT_QP_FATAL);
	EXPECT(s, subject_state(s) == IBV_QPS_ERR, "state %d", subject_state(s));
}

/* There is no alternate path: arming one is rejected, not ignored (ORN-QP-32). */
void test_migration(struct subject *s)
{
	struct ibv_qp_attr attr = subject_attr(s);
	int err;

	subject_to(s, IBV_QPS_RTS);
	err = ibv_modify_qp(s->qp, &attr, IBV_QP_PATH_MIG_STATE);
	EXPECT(s, err == EOPNOTSUPP, "migration state: %s", strerror(err));
	attr.alt_ah_attr = attr.ah_attr;
	err = ibv_modify_qp(s->qp, &attr, IBV_QP_ALT_PATH);
	/* the kernel itself rejects that for RoCE */
	EXPECT(s, err == EINVAL || err == EOPNOTSUPP, "alternate path: %s", strerror(err));
	EXPECT(s, subject_state(s) == IBV_QPS_RTS, "state %d", subject_state(s));
}

/* The query about in-order data is per queue pair, and its answer is a valid value of the verbs. */
void test_data_in_order(struct subject *s)
{
	const int all = IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG |
			IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES;
	int whole, caps;

	subject_to(s, IBV_QPS_RTS);
	whole = ibv_query_qp_data_in_order(s->qp, IBV_WR_RDMA_WRITE, 0);
	caps = ibv_query_qp_data_in_order(s->qp, IBV_WR_RDMA_WRITE,
					  IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS);
	EXPECT(s, whole == 0 || whole == 1, "data in order is %d", whole);
	EXPECT(s, caps == 0 || caps == all ||
	       caps == IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES, "capabilities are %#x", caps);
	EXPECT(s, whole == !!(caps & IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG),
	       "the two answers differ");
}
