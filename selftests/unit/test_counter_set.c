// SPDX-License-Identifier: GPL-2.0
/*
 * dev/counter_set.c, dev/stats.c: counter sets count the work of their queue pairs and nothing
 * else, and stay correct with a hostile driver.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"

#include <ornic/identify.h>
#include <ornic/mr.h>
#include <ornic/stats.h>
#include <ornic/wqe.h>
#include <endian.h>
#include <string.h>

#define IP		0x0a000001
#define BUF_BYTES	65536
#define MAX_STATS	200

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };

/**
 * struct pairing - two queue pairs of one function, connected to one another
 * @p:		device
 * @qp:		queue pairs
 * @buf:	memory
 * @key:	its key
 */
struct pairing {
	struct inproc *p;
	struct host_qp qp[2];
	uint64_t buf;
	uint32_t key;
};

static int set_create(struct inproc *p, uint32_t *number)
{
	int st = host_exec(&p->host, ORNIC_OP_COUNTER_CREATE, 0, NULL, 0, NULL, 0);

	assert_int_equal(p->host.cpl.out_size, 0);
	*number = host_number(&p->host);
	return st;
}

static int set_destroy(struct inproc *p, uint32_t number)
{
	int st = host_exec(&p->host, ORNIC_OP_COUNTER_DESTROY, number, NULL, 0, NULL, 0);

	assert_int_equal(p->host.cpl.out_size, 0);
	return st;
}

static int set_use(struct host_qp *qp, uint32_t number)
{
	struct ornic_qp_modify_cmd cmd = {
		.mask = htole32(ORNIC_QPM_COUNTER_SET), .counter_set = htole32(number),
	};

	return host_qp_state(qp, &cmd);
}

static uint32_t set_of(struct host_qp *qp)
{
	struct ornic_qp_query_rsp rsp;

	assert_int_equal(host_exec(qp->h, ORNIC_OP_QP_QUERY, qp->number, NULL, 0, &rsp,
				   sizeof(rsp)), 0);
	assert_int_equal(!!(le32toh(rsp.attr.mask) & ORNIC_QPM_COUNTER_SET),
			 !!rsp.attr.counter_set);
	return le32toh(rsp.attr.counter_set);
}

static int stat_read(struct inproc *p, uint8_t scope, uint32_t number, __le64 *values)
{
	struct ornic_stat_read_cmd in = {
		.scope = scope, .number = htole32(number), .count = htole32(MAX_STATS),
	};

	return host_exec(&p->host, ORNIC_OP_STAT_READ, 0, &in, sizeof(in), values,
			 MAX_STATS * sizeof(*values));
}

/* Return the counter with @id, found through STAT_NAMES as a driver does. */
static uint64_t stat_value(struct inproc *p, uint8_t scope, uint32_t number, uint32_t id)
{
	struct ornic_stat_names_cmd in = { 0 };
	struct ornic_stat_name names[80];
	__le64 values[MAX_STATS];
	uint32_t n = 0, got;

	assert_int_equal(stat_read(p, scope, number, values), 0);
	do {
		assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_NAMES, 0, &in, sizeof(in),
					   names, sizeof(names)), 0);
		got = le32toh(p->host.cpl.out_size) / sizeof(names[0]);
		got = got < 80 ? got : 80;
		for (uint32_t i = 0; i < got; i++) {
			if (names[i].scope != scope)
				continue;
			if (le32toh(names[i].id) == id)
				return le64toh(values[n]);
			n++;
		}
		in.offset = htole32(le32toh(in.offset) + got);
	} while (got);
	fail_msg("no counter %#x of scope %u", id, scope);
	return 0;
}

static uint64_t counted(struct inproc *p, uint32_t set, uint32_t id)
{
	return stat_value(p, ORNIC_STAT_QP, set, id);
}

static void pairing_init(struct pairing *t, struct inproc *p)
{
	t->p = p;
	assert_int_equal(host_port_up(&p->host, 1500), 0);
	assert_int_equal(host_gid_set(&p->host, 0, IP, mac), 0);
	t->buf = dma_alloc(&p->host.dma, BUF_BYTES, 4096);
	assert_int_equal(host_key_create(&p->host, p->pd, t->buf, BUF_BYTES,
					 ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE |
					 ORNIC_ACCESS_REMOTE_READ, &t->key), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(host_qp_create(&p->host, &t->qp[i], ORNIC_QPT_RC, 3, p->pd,
						p->cq.number, p->cq.number), 0);
	for (int i = 0; i < 2; i++) {
		struct host_peer peer = {
			.qpn = t->qp[!i].number, .ip = IP, .mtu = ORNIC_MTU_1024,
		};

		memcpy(peer.mac, mac, sizeof(mac));
		assert_int_equal(host_rc_connect(&t->qp[i], &peer), 0);
	}
}

/* Execute an RDMA operation of queue pair 0, and get its completion. */
static void work(struct pairing *t, uint8_t opcode, uint32_t len)
{
	struct ornic_cqe cqe;

	host_send(&t->qp[0], opcode, t->buf, len, t->key, t->buf + BUF_BYTES / 2, t->key);
	assert_true(host_wait(&t->p->cq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
}

/* ORN-STAT-9, ORN-STAT-11: to the byte, at both ends */
static void test_counts(void **state)
{
	struct inproc *p = *state;
	uint32_t set[2], shared;
	struct pairing t;

	pairing_init(&t, p);
	assert_int_equal(set_create(p, &set[0]), 0);
	assert_int_equal(set_create(p, &set[1]), 0);
	assert_int_equal(set_create(p, &shared), 0);
	work(&t, ORNIC_WR_RDMA_WRITE, 100);	/* counted for the port only */
	for (int i = 0; i < 2; i++)
		assert_int_equal(set_use(&t.qp[i], set[i]), 0);
	work(&t, ORNIC_WR_RDMA_WRITE, 5000);
	work(&t, ORNIC_WR_RDMA_WRITE, 1);
	work(&t, ORNIC_WR_RDMA_READ, 3000);

	assert_int_equal(counted(p, set[0], ORNIC_STAT_ID_TX_WRITE), 2);
	assert_int_equal(counted(p, set[0], ORNIC_STAT_ID_TX_READ), 1);
	assert_int_equal(counted(p, set[0], ORNIC_STAT_ID_RX_WRITE), 0);
	assert_int_equal(counted(p, set[0], ORNIC_STAT_ID_RDMA_TX_BYTES), 5001);
	assert_int_equal(counted(p, set[0], ORNIC_STAT_ID_RDMA_RX_BYTES), 3000);
	assert_int_equal(counted(p, set[1], ORNIC_STAT_ID_RX_WRITE), 2);
	assert_int_equal(counted(p, set[1], ORNIC_STAT_ID_RX_READ), 1);
	assert_int_equal(counted(p, set[1], ORNIC_STAT_ID_TX_WRITE), 0);
	assert_int_equal(counted(p, set[1], ORNIC_STAT_ID_RDMA_RX_BYTES), 5001);
	assert_int_equal(counted(p, set[1], ORNIC_STAT_ID_RDMA_TX_BYTES), 3000);
	assert_int_equal(counted(p, shared, ORNIC_STAT_ID_RDMA_TX_BYTES), 0);
	assert_int_equal(stat_value(p, ORNIC_STAT_PORT, 1, ORNIC_STAT_ID_TX_WRITE), 3);
	assert_int_equal(stat_value(p, ORNIC_STAT_PORT, 1, ORNIC_STAT_ID_RDMA_TX_BYTES), 8101);
	assert_int_equal(counted(p, 0, ORNIC_STAT_ID_RDMA_TX_BYTES), 8001);

	/* Both in one set; the counts of the former sets stay in the sum when the sets go. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(set_use(&t.qp[i], shared), 0);
		assert_int_equal(set_destroy(p, set[i]), 0);
	}
	work(&t, ORNIC_WR_RDMA_WRITE, 10);
	assert_int_equal(counted(p, shared, ORNIC_STAT_ID_TX_WRITE), 1);
	assert_int_equal(counted(p, shared, ORNIC_STAT_ID_RX_WRITE), 1);
	for (int i = 0; i < 2; i++)	/* reading changes nothing */
		assert_int_equal(counted(p, 0, ORNIC_STAT_ID_RDMA_TX_BYTES), 8011);
}

/* ORN-STAT-12, ORN-STAT-13, ORN-STAT-14 */
static void test_references(void **state)
{
	struct inproc *p = *state;
	struct ornic_qp_modify_cmd reset = {
		.mask = htole32(ORNIC_QPM_STATE), .next_state = ORNIC_QPS_RESET,
	};
	struct ornic_qp_create_cmd cmd;
	struct host_qp created;
	struct pairing t;
	uint32_t set;

	pairing_init(&t, p);
	assert_int_equal(set_create(p, &set), 0);
	assert_int_equal(set_use(&t.qp[0], set + 1), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(set_use(&t.qp[0], set), 0);
	assert_int_equal(set_use(&t.qp[0], set), 0);
	assert_int_equal(set_of(&t.qp[0]), set);
	assert_int_equal(set_destroy(p, set), ORNIC_ST_BUSY);
	work(&t, ORNIC_WR_RDMA_WRITE, 1);

	host_qp_template(&p->host, &created, ORNIC_QPT_RC, 3, p->pd, p->cq.number, p->cq.number,
			 &cmd);
	cmd.counter_set = htole32(set + 1);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_BAD_NUMBER);
	cmd.counter_set = htole32(set);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 0);
	created.number = host_number(&p->host);
	assert_int_equal(set_of(&created), set);

	assert_int_equal(set_use(&t.qp[0], 0), 0);
	assert_int_equal(set_of(&t.qp[0]), 0);
	assert_int_equal(set_destroy(p, set), ORNIC_ST_BUSY);
	assert_int_equal(host_qp_state(&created, &reset), 0);
	assert_int_equal(set_of(&created), set);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_DESTROY, created.number, NULL, 0, NULL,
				   0), 0);
	assert_int_equal(set_destroy(p, set), 0);
	assert_int_equal(set_destroy(p, set), ORNIC_ST_BAD_NUMBER);
	assert_int_equal(set_use(&t.qp[0], set), ORNIC_ST_BAD_NUMBER);
}

/* ORN-STAT-10, ORN-IDN-2 */
static void test_limits(void **state)
{
	struct inproc *p = *state;
	struct ornic_identify_cmd in = { .page = ORNIC_ID_DEVICE };
	struct ornic_identify_device d;
	__le64 values[MAX_STATS];
	uint32_t set;

	assert_int_equal(host_exec(&p->host, ORNIC_OP_IDENTIFY, 0, &in, sizeof(in), &d,
				   sizeof(d)), 0);
	assert_int_equal(stat_read(p, ORNIC_STAT_QP, 1, values), ORNIC_ST_BAD_NUMBER);
	for (uint32_t i = 0; i < le32toh(d.max_counter_sets); i++)
		assert_int_equal(set_create(p, &set), 0);
	assert_int_equal(set_create(p, &set), ORNIC_ST_LIMIT);
	assert_int_equal(stat_read(p, ORNIC_STAT_QP, 0, values), 0);
	assert_int_equal(le32toh(p->host.cpl.out_size), QP_CNT_COUNT * sizeof(values[0]));
}

/* ORN-FEA-2 */
static void test_not_accepted(void **state)
{
	struct inproc *p = *state;
	struct ornic_qp_create_cmd cmd;
	__le64 values[MAX_STATS];
	struct host_qp qp;
	uint32_t set;

	p->f->dev.features &= ~ORNIC_FEATURE(COUNTER_SETS);
	assert_int_equal(set_create(p, &set), ORNIC_ST_UNSUPPORTED);
	assert_int_equal(set_destroy(p, 1), ORNIC_ST_UNSUPPORTED);
	assert_int_equal(stat_read(p, ORNIC_STAT_QP, 0, values), ORNIC_ST_UNSUPPORTED);
	host_qp_template(&p->host, &qp, ORNIC_QPT_RC, 3, p->pd, p->cq.number, p->cq.number, &cmd);
	cmd.counter_set = htole32(1);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_UNSUPPORTED);
	cmd.counter_set = 0;
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 0);
	qp.number = host_number(&p->host);
	assert_int_equal(set_use(&qp, 0), ORNIC_ST_UNSUPPORTED);
}

/* A reset removes sets and sums in any state. */
static void test_reset(void **state)
{
	struct inproc *p = *state;
	struct pairing t;
	uint32_t set;

	pairing_init(&t, p);
	assert_int_equal(set_create(p, &set), 0);
	assert_int_equal(set_use(&t.qp[0], set), 0);
	work(&t, ORNIC_WR_RDMA_WRITE, 77);
	host_reset(&p->host, ORNIC_REASON_USER);
	assert_int_equal(p->f->dev.sets.used, 0);
	assert_int_equal(p->f->dev.past[CNT_rdma_tx_bytes], 0);
}

#define READY(t)	cmocka_unit_test_setup_teardown(t, inproc_setup_ready, inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		READY(test_counts), READY(test_references), READY(test_limits),
		READY(test_not_accepted), READY(test_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
