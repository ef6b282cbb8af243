// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile driver: random commands, some of them nearly right, random doorbells, random queue
 * contents, resets in between. The device must survive and execute a reset; meant to run with
 * sanitizers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"

#include <ornic/identify.h>
#include <ornic/port.h>
#include <ornic/srq.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS		200
#define STEPS		150

static uint32_t below(uint32_t n)
{
	return random() % n;
}

/* Change a few bytes; small values are more interesting than large ones. */
static void mutate(void *p, size_t len)
{
	for (uint32_t n = below(4); n; n--)
		((uint8_t *)p)[below(len)] = below(2) ? below(8) : below(256);
}

static void random_command(struct inproc *p)
{
	static const uint16_t class_verbs[] = { 7, 5, 5, 5, 5, 0, 5, 0, 5, 7, 5, 5 };
	uint8_t in[512] = { 0 }, out[512];
	uint32_t class = below(sizeof(class_verbs) / sizeof(class_verbs[0]));
	uint16_t verb = below(class_verbs[class] + 2);

	mutate(in, sizeof(in));
	in[0] = below(12);
	in[1] = below(3);
	host_exec(&p->host, ORNIC_OP(class, verb), below(2) ? below(8) : below(5000) << 8, in,
		  below(4) ? 256 : below(512), out, below(512));
}

static void random_qp(struct inproc *p, struct host_qp *qp)
{
	static const uint8_t types[] = { ORNIC_QPT_RC, ORNIC_QPT_UC, ORNIC_QPT_UD,
					 ORNIC_QPT_GSI, ORNIC_QPT_RAW,
					 ORNIC_QPT_XRC_INI, ORNIC_QPT_XRC_TGT };
	struct ornic_qp_create_cmd cmd;

	host_qp_template(&p->host, qp, types[below(sizeof(types))], below(6), p->pd, p->cq.number,
			 p->cq.number, &cmd);
	if (cmd.type == ORNIC_QPT_XRC_INI || cmd.type == ORNIC_QPT_XRC_TGT)
		cmd.rq_log = ORNIC_NO_RING;
	if (cmd.type == ORNIC_QPT_XRC_TGT) {
		cmd.sq_log = ORNIC_NO_RING;
		cmd.pd = 0;
		cmd.xrcd = htole32(1);
	} else if (!below(3)) {
		cmd.srq = htole32(1 + below(3));
		cmd.rq_log = ORNIC_NO_RING;
	}
	if (!below(2))
		mutate(&cmd, sizeof(cmd));
	host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0);
	qp->number = host_number(&p->host);
}

/* Create an SRQ on queue pair @qp's receive ring, so that receives posted there reach it. */
static void random_srq(struct inproc *p, const struct host_qp *qp)
{
	struct ornic_srq_create_cmd cmd = {
		.log_entries = qp->rq.log, .stride = qp->rq.stride, .pd = htole32(p->pd),
		.limit = htole32(below(2)), .max_sge = htole16(3), .dbpage = htole32(1),
		.record = htole64(qp->rq.rec), .pages = host_contiguous(qp->rq.ring),
	};

	if (below(2)) {
		cmd.type = ORNIC_SRQT_XRC;
		cmd.xrcd = htole32(1);
		cmd.cq = htole32(p->cq.number);
	}
	if (!below(3))
		mutate(&cmd, sizeof(cmd));
	host_exec(&p->host, ORNIC_OP_SRQ_CREATE, 0, &cmd, sizeof(cmd), NULL, 0);
}

/* Resize a random SRQ to the receive ring and record of @qp. */
static void random_srq_resize(struct inproc *p, const struct host_qp *qp)
{
	struct ornic_srq_resize_cmd cmd = {
		.log_entries = below(8), .flags = below(2), .limit = htole32(below(3)),
		.record = htole64(qp->rq.rec), .pages = host_contiguous(qp->rq.ring),
	};

	if (!below(3))
		mutate(&cmd, sizeof(cmd));
	host_exec(&p->host, ORNIC_OP_SRQ_RESIZE, 1 + below(3), &cmd, sizeof(cmd), NULL, 0);
}

static void random_modify(struct host_qp *qp)
{
	struct ornic_qp_modify_cmd m = {
		.mask = htole32((random() & 0x1fffff) | (below(4) ? 0 : ORNIC_QPM_COUNTER_SET)),
		.counter_set = htole32(below(4)),
		.next_state = below(7),
		.port = 1, .path_mtu = ORNIC_MTU_1024, .path.dmac = { 2, 0, 0, 0, 0, 1 },
		.dest_qpn = htole32(qp->number), .max_rd_atomic = 4, .max_dest_rd_atomic = 4,
	};

	if (below(2))
		m.mask &= htole32(ORNIC_QPM_STATE);
	host_gid_ipv4(m.path.dgid, 0x0a000001);
	if (!below(3))
		mutate(&m, sizeof(m));
	host_qp_state(qp, &m);
}

/* Connect the queue pair to itself and let it execute garbage. */
static void connected(struct inproc *p, struct host_qp *qp)
{
	struct host_peer self = {
		.qpn = qp->number, .ip = 0x0a000001, .mac = { 2, 0, 0, 0, 0, 1 },
		.mtu = ORNIC_MTU_1024,
	};

	host_port_up(&p->host, 1500);
	host_gid_set(&p->host, 0, 0x0a000001, self.mac);
	host_rc_connect(qp, &self);
}

static void random_work(struct inproc *p, struct host_qp *qp)
{
	struct ornic_wqe_ctrl *ctrl;

	if (!below(2)) {
		host_recv(qp, INPROC_BASE + below(INPROC_BYTES), below(5000), below(4096));
		return;
	}
	ctrl = host_sq_slot(qp);
	ctrl->opcode = below(8) ? below(12) : ORNIC_WR_FAST_REG;
	ctrl->flags = below(32);
	ctrl->count = htole16(below(6));
	for (uint32_t i = 16; i < 256; i++)
		((uint8_t *)ctrl)[i] = below(4) ? 0 : below(256);
	if (!below(4))
		mutate(ctrl, sizeof(*ctrl));
	host_sq_publish(qp);
	(void)p;
}

static void random_record(struct inproc *p, uint64_t rec)
{
	struct ornic_rec *r = dma_at(&p->host.dma, rec);

	r->host_index = htole32(below(2) ? below(100) : (uint32_t)random());
	r->arm = htole32(random());
}

static void random_step(struct inproc *p, struct host_qp *qp)
{
	switch (below(12)) {
	case 0:
		random_command(p);
		break;
	case 1:
		random_qp(p, qp);
		break;
	case 2:
		random_modify(qp);
		break;
	case 3:
		connected(p, qp);
		break;
	case 4:
		host_doorbell(&p->host, below(3), below(7), below(8), random());
		break;
	case 5:
		if (!below(5))
			random_record(p, below(2) ? p->cq.rec : qp->sq.rec);
		break;
	case 6:
		random_srq(p, qp);
		break;
	case 7:
		random_srq_resize(p, qp);
		break;
	case 8:
		inproc_bus_master(p, below(4));
		break;
	default:
		random_work(p, qp);
	}
	inproc_turn(p);
}

static void round_of(struct inproc *p)
{
	int patience = p->host.timeout_ms;
	struct host_qp qp;
	uint64_t next = p->host.dma.next;

	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(host_bring_up(&p->host, INPROC_FEATURES, &p->eq0, &p->eq1), 0);
	assert_int_equal(host_pd_create(&p->host, &p->pd), 0);
	assert_int_equal(host_cq_create(&p->host, &p->cq, below(6), p->eq1.number, 0), 0);
	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 3, p->pd, p->cq.number,
					p->cq.number), 0);
	/* Do not wait for a command that gets no answer because bus mastering is off. */
	p->host.timeout_ms = 1;
	for (int i = 0; i < STEPS; i++)
		random_step(p, &qp);
	p->host.timeout_ms = patience;
	inproc_bus_master(p, true);
	host_reset(&p->host, ORNIC_REASON_USER);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), 0);
	assert_int_equal(p->f->dev.lists.left, LIMIT_LIST_ENTRIES);
	/* Free this round's memory and clear it. */
	memset(p->host.dma.mem + next, 0, p->host.dma.next - next);
	p->host.dma.next = next;
}

static void test_hostile(void **state)
{
	const char *seed = getenv("SEED");
	struct inproc *p = *state;

	srandom(seed ? atoi(seed) : 1);
	for (int i = 0; i < ROUNDS; i++)
		round_of(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hostile, inproc_setup, inproc_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
