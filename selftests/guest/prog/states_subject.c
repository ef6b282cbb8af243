// SPDX-License-Identifier: GPL-2.0
/*
 * The queue pair under test: created, moved to a state, used.
 */
#include "states.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define AREA		65536u
#define PATIENCE	15.0

void subject_open(struct subject *s, struct dev *dev, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = type,
		.sq_sig_all = 1,
	};

	*s = (struct subject){ .dev = dev, .type = type };
	queue_create(&s->cq, dev, 32, false);
	init.send_cq = s->cq.cq;
	init.recv_cq = s->cq.cq;
	s->qp = ibv_create_qp(dev->pd, &init);
	s->mem = calloc(1, AREA);
	s->mr = s->mem ? ibv_reg_mr(dev->pd, s->mem, AREA, ALL_RIGHTS) : NULL;
	if (!s->qp || !s->mr)
		bail("cannot create a queue pair or a memory region: %s", strerror(errno));
}

void subject_close(struct subject *s)
{
	if (ibv_destroy_qp(s->qp) || ibv_dereg_mr(s->mr))
		bail("cannot destroy a queue pair or a memory region");
	queue_destroy(&s->cq);
	free(s->mem);
}

struct ibv_qp_attr subject_attr(const struct subject *s)
{
	return (struct ibv_qp_attr){
		.path_mtu = s->dev->mtu_code,
		.qkey = QKEY,
		.rq_psn = 0xabcdef,
		.sq_psn = 0xabcdef,
		.dest_qp_num = s->qp->qp_num,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.ah_attr = {
			.is_global = 1,
			.port_num = PORT,
			.sl = 3,
			.grh = { .dgid = s->dev->gid, .sgid_index = s->dev->gid_index,
				 .hop_limit = 64, .traffic_class = 32, .flow_label = 0x1234 },
		},
		.alt_ah_attr = { .is_global = 1, .port_num = PORT },
		.alt_port_num = PORT,
		.port_num = PORT,
		.timeout = 17,
		.retry_cnt = 5,
		.rnr_retry = 4,
		.min_rnr_timer = 13,
		.max_rd_atomic = 3,
		.max_dest_rd_atomic = 2,
		.en_sqd_async_notify = 1,
		.path_mig_state = IBV_MIG_ARMED,
	};
}

enum ibv_qp_state subject_state(const struct subject *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init))
		bail("ibv_query_qp failed");
	return attr.qp_state;
}

static void step(struct subject *s, enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = subject_attr(s);
	int err;

	attr.qp_state = to;
	err = ibv_modify_qp(s->qp, &attr, states_rule(s->type, from, to).need | IBV_QP_STATE);
	if (err)
		bail("cannot go from state %d to %d: %s", from, to, strerror(err));
}

static void drop_completions(struct subject *s)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(s->cq.cq, 1, &wc) > 0)
		;
}

void subject_to(struct subject *s, enum ibv_qp_state state)
{
	enum ibv_qp_state up = state == IBV_QPS_SQD || state == IBV_QPS_SQE ? IBV_QPS_RTS : state;

	step(s, IBV_QPS_INIT, IBV_QPS_RESET);
	drop_completions(s);
	if (state == IBV_QPS_ERR)
		up = IBV_QPS_INIT;
	for (enum ibv_qp_state at = IBV_QPS_RESET; at < up; at++)
		step(s, at, at + 1);
	if (state == IBV_QPS_SQD || state == IBV_QPS_ERR)
		step(s, up, state);
	if (state == IBV_QPS_SQE) {
		if (subject_send(s, 1, 8, s->mr->lkey + 1))
			bail("cannot post");
		subject_wc(s, 1, IBV_WC_LOC_PROT_ERR);
	}
}

int subject_send(struct subject *s, uint64_t id, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)s->mem, len, lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
	};
	struct ibv_qp_attr attr = subject_attr(s);
	int err;

	if (s->type == IBV_QPT_UD) {
		wr.wr.ud.ah = ibv_create_ah(s->dev->pd, &attr.ah_attr);
		wr.wr.ud.remote_qpn = s->qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
		if (!wr.wr.ud.ah)
			bail("cannot create an address handle: %s", strerror(errno));
	}
	err = ibv_post_send(s->qp, &wr, &bad);
	if (s->type == IBV_QPT_UD)
		ibv_destroy_ah(wr.wr.ud.ah);
	return err;
}

void subject_recv(struct subject *s, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)s->mem + AREA / 2, AREA / 2, s->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(s->qp, &wr, &bad))
		bail("cannot post a receive");
}

void subject_wc(struct subject *s, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!queue_wait(&s->cq, &wc, PATIENCE)) {
		verdict_fail(&s->verdict, "no completion of %d", (int)id);
		return;
	}
	EXPECT(s, wc.wr_id == id && wc.status == status, "completion %d '%s', not %d '%s'",
	       (int)wc.wr_id, ibv_wc_status_str(wc.status), (int)id, ibv_wc_status_str(status));
}

void subject_event(struct subject *s, enum ibv_event_type type)
{
	struct pollfd fd = { .fd = s->dev->verbs->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&fd, 1, (int)(PATIENCE * 1000)) <= 0) {
		verdict_fail(&s->verdict, "no event, '%s' expected", ibv_event_type_str(type));
		return;
	}
	if (ibv_get_async_event(s->dev->verbs, &event))
		bail("ibv_get_async_event failed");
	EXPECT(s, event.event_type == type && event.element.qp == s->qp, "event '%s', not '%s'",
	       ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	ibv_ack_async_event(&event);
}
