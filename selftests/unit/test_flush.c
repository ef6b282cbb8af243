// SPDX-License-Identifier: GPL-2.0
/*
 * FLUSH and ATOMIC WRITE of both sides: packets, execution, answers and rejection (IBTA annex
 * A19; ORN-WQE, ORN-QP).
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <ornic/identify.h>

#include "lib/peer.h"

#define PSN0	0xfffffeu
#define P(n)	((PSN0 + (n)) & BTH_PSN_MASK)
#define ACK	(AETH_ACK | AETH_NO_CREDITS)
#define MTU	1024
#define BUF	65536
#define LEN	8192u
#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE | ORNIC_ACCESS_FLUSH_GLOBAL)
#define REGION	(ORNIC_FLUSH_REGION << FETH_LEVEL_SHIFT)
#define VALUE	0x1122334455667788ull

static int setup(void **state)
{
	struct script *t = script_new(NULL, PSN0, PSN0);

	t->c.qp.access = ORNIC_ACCESS_REMOTE & ~ORNIC_ACCESS_FLUSH_PERSISTENT;
	t->buf = dut_buf(t->c.d, BUF);
	t->key = dut_key(t->c.d, NULL, t->buf, LEN, ALL & ~ORNIC_ACCESS_FLUSH_PERSISTENT);
	*state = t;
	return 0;
}

static uint64_t *word(struct script *t)
{
	return (uint64_t *)dut_at(t->c.d, t->buf, 8);
}

/* A FLUSH of the whole key. */
static struct packet *flush(struct script *t, uint32_t psn, uint32_t feth)
{
	struct packet *p = peer_packet(&t->peer, &t->c, BTH_RC_FLUSH, psn);

	p->feth = feth;
	p->va = t->buf;
	p->rkey = t->key;
	p->dmalen = LEN;
	return p;
}

static struct packet *atomic_write(struct script *t, uint32_t psn)
{
	struct packet *p = peer_packet(&t->peer, &t->c, BTH_RC_ATOMIC_WRITE, psn);

	p->va = t->buf;
	p->rkey = t->key;
	p->dmalen = 8;
	return p;
}

/* Check the answer of annex A19: a READ response without data. */
static void answered(struct script *t, uint32_t psn, uint32_t msn)
{
	struct seen *s = peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, psn, 1);

	assert_int_equal(s->p.len, 0);
	assert_int_equal(s->p.msn, msn);
	peer_quiet(&t->peer);
}

/* NAK @code, event, ERR. */
static void failed(struct script *t, uint8_t code)
{
	uint8_t event = code == NAK_REMOTE_ACCESS ? ORNIC_EV_QP_ACCESS_ERR : ORNIC_EV_QP_REQ_ERR;
	struct ornic_eqe e;

	peer_expect_ack(&t->peer, AETH_NAK | code, P(0));
	assert_int_equal(t->c.qp.state, ORNIC_QPS_ERR);
	while (dut_event(t->c.d, &e) && e.type == ORNIC_EV_COMM_EST)
		;
	assert_int_equal(e.type, event);
	assert_int_equal(le32toh(e.syndrome), t->c.qp.syndrome);
	assert_int_equal(t->c.d->dev.cnt[CNT_rx_flush], 0);
	assert_int_equal(t->c.d->dev.cnt[CNT_rx_write], 0);
	peer_quiet(&t->peer);
}

/* Executed and answered, again for a duplicate; of a range, of a region, of nothing */
static void test_flush(void **state)
{
	struct script *t = *state;
	struct packet *p;

	peer_send(&t->peer, flush(t, P(0), ORNIC_FLUSH_GLOBAL), NULL, 0);
	answered(t, P(0), 1);
	p = flush(t, P(1), ORNIC_FLUSH_GLOBAL | REGION);
	p->va = 0;				/* address and length are ignored */
	p->dmalen = 0x7fffffff;
	peer_send(&t->peer, p, NULL, 0);
	answered(t, P(1), 2);
	p = flush(t, P(2), ORNIC_FLUSH_GLOBAL);
	p->dmalen = 0;				/* ORN-MEM-14 */
	p->rkey = 0;
	peer_send(&t->peer, p, NULL, 0);
	answered(t, P(2), 3);
	assert_int_equal(t->c.d->dev.cnt[CNT_rx_flush], 3);
	peer_send(&t->peer, flush(t, P(1), ORNIC_FLUSH_GLOBAL | REGION), NULL, 0);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(1), 1);
	answered(t, P(2), 3);			/* the sequence of responses continues from there */
	assert_int_equal(t->c.d->dev.cnt[CNT_rx_flush], 3);
}

/* ORN-WQE-41: data written before is visible when the FLUSH is answered */
static void test_order(void **state)
{
	struct script *t = *state;
	uint64_t value = htole64(VALUE);
	struct packet *p = peer_packet(&t->peer, &t->c, BTH_RC_WRITE_ONLY, P(0));

	p->va = t->buf;
	p->rkey = t->key;
	p->dmalen = 8;
	peer_send(&t->peer, p, &value, sizeof(value));
	peer_expect_ack(&t->peer, ACK, P(0));
	peer_send(&t->peer, flush(t, P(2), ORNIC_FLUSH_GLOBAL), NULL, 0);
	peer_expect_ack(&t->peer, AETH_NAK | NAK_PSN_SEQUENCE, P(1));	/* not past a gap */
	peer_send(&t->peer, flush(t, P(1), ORNIC_FLUSH_GLOBAL), NULL, 0);
	answered(t, P(1), 2);
	assert_int_equal(le64toh(*word(t)), VALUE);
}

/* ORN-QP-40: rights of queue pair and key, domain, range: NAK remote access */
static void test_flush_refused(void **state)
{
	static const uint32_t syndromes[] = {
		ORNIC_SYN_KEY_ACCESS, ORNIC_SYN_KEY_ACCESS, ORNIC_SYN_KEY_INDEX,
		ORNIC_SYN_KEY_RANGE, ORNIC_SYN_KEY_RANGE, ORNIC_SYN_KEY_ACCESS,
		ORNIC_SYN_KEY_ACCESS, ORNIC_SYN_KEY_INDEX, ORNIC_SYN_KEY_INDEX,
		ORNIC_SYN_KEY_RANGE,
	};

	for (uint32_t i = 0; i < 10; i++) {
		struct packet *p;
		struct script *t;

		setup(state);
		t = *state;
		p = flush(t, P(0), ORNIC_FLUSH_GLOBAL | (i > 5 && i < 9 ? REGION : 0));
		switch (i) {
		case 0:
			t->c.qp.access = ORNIC_ACCESS_REMOTE_WRITE;
			break;
		case 1:
		case 6:
			p->rkey = dut_key(t->c.d, NULL, t->buf, LEN, ORNIC_ACCESS_LOCAL_WRITE |
					  ORNIC_ACCESS_REMOTE_WRITE);
			break;
		case 2:
		case 7:
			p->rkey = dut_key(t->c.d, &t->c.d->other_pd, t->buf, LEN, ALL);
			break;
		case 3:
			p->dmalen = LEN + 1;
			break;
		case 4:
			p->va = UINT64_MAX;
			break;
		case 5:
			p->feth = ORNIC_FLUSH_GLOBAL | ORNIC_FLUSH_PERSISTENT;
			break;
		case 8:
			p->rkey ^= 1;
			break;
		case 9:
			p->dmalen = ORNIC_MAX_MSG;	/* well-formed */
			break;
		}
		peer_send(&t->peer, p, NULL, 0);
		failed(t, NAK_REMOTE_ACCESS);
		assert_int_equal(t->c.qp.syndrome, syndromes[i]);
		script_teardown(state);
	}
}

/* An invalid FETH, or an unexpected payload: NAK invalid request */
static void test_flush_malformed(void **state)
{
	static const struct {
		uint32_t feth, dmalen, len;
	} bad[] = {
		{ 0, 8, 0 },
		{ 4 | ORNIC_FLUSH_GLOBAL, 8, 0 },
		{ ORNIC_FLUSH_GLOBAL | 2 << FETH_LEVEL_SHIFT, 8, 0 },
		{ ORNIC_FLUSH_GLOBAL, 0x80000001, 0 },
		{ ORNIC_FLUSH_GLOBAL, 8, 8 },
	};

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct packet *p;
		struct script *t;

		setup(state);
		t = *state;
		p = flush(t, P(0), bad[i].feth);
		p->dmalen = bad[i].dmalen;
		peer_send(&t->peer, p, "12345678", bad[i].len);
		failed(t, NAK_INVALID_REQUEST);
		assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_WIRE | BTH_RC_FLUSH);
		script_teardown(state);
	}
}

/* ORN-WQE-42, ORN-QP-26: stored once; a duplicate is answered and stores nothing */
static void test_atomic_write(void **state)
{
	struct script *t = *state;
	uint64_t value = htole64(VALUE);
	struct counter_set set = { 0 };

	t->c.qp.set = &set;
	peer_send(&t->peer, atomic_write(t, P(0)), &value, sizeof(value));
	answered(t, P(0), 1);
	t->c.qp.set = NULL;
	assert_int_equal(le64toh(*word(t)), VALUE);
	assert_int_equal(set.cnt[CNT_rx_write], 1);
	assert_int_equal(set.cnt[CNT_rdma_copied_bytes], sizeof(value));
	*word(t) = 7;
	peer_send(&t->peer, atomic_write(t, P(0)), &value, sizeof(value));
	answered(t, P(0), 1);
	assert_int_equal(*word(t), 7);
	assert_int_equal(t->c.d->dev.cnt[CNT_duplicates], 1);
}

/* Rights, address, length; the feature: nothing is stored */
static void test_atomic_write_refused(void **state)
{
	for (uint32_t i = 0; i < 9; i++) {
		uint32_t len = 8;
		struct packet *p;
		struct script *t;

		setup(state);
		t = *state;
		*word(t) = 7;
		p = atomic_write(t, P(0));
		switch (i) {
		case 0:
			t->c.qp.access &= ~ORNIC_ACCESS_REMOTE_WRITE;
			break;
		case 1:
			p->rkey = dut_key(t->c.d, NULL, t->buf, LEN, ALL &
					  ~ORNIC_ACCESS_REMOTE_WRITE);
			break;
		case 2:
			p->va = t->buf + LEN;
			break;
		case 3:
			p->va = t->buf - 8;
			break;
		case 4:
			p->va += 4;		/* ORN-WQE-15 */
			break;
		case 5:
			p->dmalen = 4;
			break;
		case 6:
			len = 16;
			break;
		case 7:
			t->c.d->dev.features = 0;
			break;
		case 8:
			p->va += 1;
			break;
		}
		peer_send(&t->peer, p, "0123456789abcdef", len);
		assert_int_equal(*word(t), 7);
		failed(t, i < 4 ? NAK_REMOTE_ACCESS : NAK_INVALID_REQUEST);
		script_teardown(state);
	}
}

/* ORN-RQ-42: requests of features that the host did not accept */
static void test_not_accepted(void **state)
{
	for (uint32_t i = 0; i < 3; i++) {
		struct packet *p;
		struct script *t;

		setup(state);
		t = *state;
		t->c.d->dev.features = 0;
		*word(t) = 7;
		conn_recv(&t->c, t->buf, 8, t->key);
		if (i == 0)
			p = flush(t, P(0), ORNIC_FLUSH_GLOBAL);
		else if (i == 1)
			p = atomic_write(t, P(0));
		else
			p = peer_packet(&t->peer, &t->c, BTH_RC_SEND_ONLY_INV, P(0));
		p->rkey = t->key;
		peer_send(&t->peer, p, "01234567", i ? 8 : 0);
		failed(t, NAK_INVALID_REQUEST);
		assert_int_equal(*word(t), 7);
		conn_expect(&t->c, &t->c.hrcq, 0, ORNIC_WC_RECV, ORNIC_WC_WR_FLUSH_ERR);
		script_teardown(state);
	}
}

/* They take responder resources as reads do, and no more than max_dest_rd_atomic. */
static void test_resources(void **state)
{
	struct script *t = *state;
	uint64_t value = 0;

	t->c.qp.max_dest_rd_atomic = 2;
	for (uint32_t i = 0; i < 6; i++) {
		if (i % 2)
			peer_send(&t->peer, flush(t, P(i), ORNIC_FLUSH_GLOBAL), NULL, 0);
		else
			peer_send(&t->peer, atomic_write(t, P(i)), &value, sizeof(value));
		answered(t, P(i), i + 1);
	}
	t->c.qp.max_dest_rd_atomic = 0;
	peer_send(&t->peer, flush(t, P(6), ORNIC_FLUSH_GLOBAL), NULL, 0);
	peer_expect_ack(&t->peer, AETH_NAK | NAK_INVALID_REQUEST, P(6));
}

static struct wr flush_wr(uint8_t type, uint8_t level, uint64_t length)
{
	return (struct wr) {
		.opcode = ORNIC_WR_FLUSH, .flags = ORNIC_WQE_SIGNALED, .raddr = 0x5000,
		.rkey = 0x1234,
		.flush = { .length = htole64(length), .type = type, .level = level },
	};
}

/* An operation on the word at both ends. */
static struct wr data_wr(struct script *t, uint8_t opcode)
{
	struct wr wr = {
		.opcode = opcode, .flags = ORNIC_WQE_SIGNALED, .raddr = 0x5000, .rkey = 0x1234,
	};

	wr_sge(&wr, t->buf, 8, t->key);
	return wr;
}

static struct wr word_wr(struct script *t, bool inl)
{
	static const uint64_t value = VALUE;
	struct wr wr = data_wr(t, ORNIC_WR_ATOMIC_WRITE);

	if (inl) {
		wr.flags |= ORNIC_WQE_INLINE;
		wr.inl = &value;
		wr.inl_len = sizeof(value);
		wr.nsge = 0;
	}
	return wr;
}

static void post(struct script *t, struct wr wr)
{
	conn_send(&t->c, &wr);
	world_run(&t->w);
}

static void respond(struct script *t, uint32_t psn, uint8_t opcode, uint32_t len)
{
	peer_send(&t->peer, peer_packet(&t->peer, &t->c, opcode, psn), "12345678", len);
}

/* Packets of the wire, and completion by the response (ORN-WQE-40) */
static void test_requests(void **state)
{
	struct script *t = *state;
	struct seen *s;

	*word(t) = VALUE;
	t->c.qp.max_inline = 0;			/* no limit for eight bytes */
	post(t, flush_wr(ORNIC_FLUSH_GLOBAL, ORNIC_FLUSH_RANGE, 0x80000000));
	post(t, flush_wr(ORNIC_FLUSH_PERSISTENT, ORNIC_FLUSH_REGION, 0x123456789));
	post(t, word_wr(t, true));
	post(t, word_wr(t, false));
	s = peer_expect(&t->peer, BTH_RC_FLUSH, P(0), 1);
	assert_int_equal(s->p.feth, ORNIC_FLUSH_GLOBAL);
	assert_int_equal(s->p.va, 0x5000);
	assert_int_equal(s->p.rkey, 0x1234);
	assert_int_equal(s->p.dmalen, 0x80000000);
	assert_int_equal(s->p.len, 0);
	s = peer_expect(&t->peer, BTH_RC_FLUSH, P(1), 1);
	assert_int_equal(s->p.feth, ORNIC_FLUSH_PERSISTENT | REGION);
	for (uint32_t i = 2; i < 4; i++) {
		s = peer_expect(&t->peer, BTH_RC_ATOMIC_WRITE, P(i), 1);
		assert_int_equal(s->p.dmalen, 8);
		assert_int_equal(s->p.len, 8);
		assert_int_equal(*(uint64_t *)s->data, VALUE);
	}
	peer_ack(&t->peer, &t->c, P(3), ACK);	/* no answer to the first: implied NAK */
	conn_quiet(&t->c);
	peer_expect(&t->peer, BTH_RC_FLUSH, P(0), 1);
	for (uint32_t i = 0; i < 4; i++) {
		respond(t, P(i), BTH_RC_READ_RESP_ONLY, 0);
		conn_expect(&t->c, &t->c.hscq, i, i < 2 ? ORNIC_WC_FLUSH : ORNIC_WC_ATOMIC_WRITE,
			    ORNIC_WC_SUCCESS);
	}
	assert_int_equal(t->c.qp.req.una, t->c.qp.req.sent_psn);
	assert_int_equal(t->c.qp.req.reads, 0);
	assert_int_equal(t->c.qp.req.unread, 0);
}

/* ORN-WQE-4: an answer of another kind, or with data */
static void test_bad_response(void **state)
{
	for (uint32_t i = 0; i < 6; i++) {
		struct script *t;

		setup(state);
		t = *state;
		post(t, i % 2 ? flush_wr(ORNIC_FLUSH_GLOBAL, 0, 8) : word_wr(t, true));
		respond(t, P(0), i < 2 ? BTH_RC_READ_RESP_ONLY : i < 4 ? BTH_RC_ATOMIC_ACK :
			BTH_RC_READ_RESP_FIRST, i < 2 ? 8 : 0);
		conn_expect(&t->c, &t->c.hscq, 0, i % 2 ? ORNIC_WC_FLUSH : ORNIC_WC_ATOMIC_WRITE,
			    ORNIC_WC_BAD_RESP_ERR);
		assert_int_equal(t->c.qp.syndrome, ORNIC_SYN_WIRE |
				 (i < 2 ? BTH_RC_READ_RESP_ONLY : i < 4 ? BTH_RC_ATOMIC_ACK :
				  BTH_RC_READ_RESP_FIRST));
		assert_int_equal(t->c.qp.req.reads, 1);		/* it is not answered */
		script_teardown(state);
	}
}

/* ORN-QP-27, ORN-WQE-8: one at a time with max_rd_atomic 1; FENCE waits for them */
static void test_max_rd_atomic(void **state)
{
	struct script *t = *state;
	struct wr nop = { .opcode = ORNIC_WR_RDMA_WRITE,
			  .flags = ORNIC_WQE_SIGNALED | ORNIC_WQE_FENCE };

	t->c.qp.max_rd_atomic = 1;
	post(t, flush_wr(ORNIC_FLUSH_GLOBAL, 0, 8));
	post(t, word_wr(t, true));
	post(t, nop);
	peer_expect(&t->peer, BTH_RC_FLUSH, P(0), 1);
	peer_quiet(&t->peer);
	respond(t, P(0), BTH_RC_READ_RESP_ONLY, 0);
	peer_expect(&t->peer, BTH_RC_ATOMIC_WRITE, P(1), 1);
	peer_quiet(&t->peer);
	respond(t, P(1), BTH_RC_READ_RESP_ONLY, 0);
	peer_expect(&t->peer, BTH_RC_WRITE_ONLY, P(2), 1);
}

/* ORN-WQE-8: a fenced memory operation waits for the answers of others, and for nothing else. */
static void test_fenced_memop(void **state)
{
	struct script *t = *state;
	uint32_t key = dut_blank(t->c.d, NULL, ORNIC_KEY_MW1, 0) & ~ORNIC_KEY_TAG_MASK;
	const struct mr *window = table_get(&t->c.d->dev.keys, key >> ORNIC_KEY_TAG_BITS);
	struct wr bind = {
		.opcode = ORNIC_WR_BIND_MW,
		.flags = ORNIC_WQE_SIGNALED | ORNIC_WQE_FENCE,
	};
	const struct {
		struct wr wr;
		uint8_t wc;
		uint8_t answer;
		uint32_t len;
	} cases[] = {
		{ flush_wr(ORNIC_FLUSH_GLOBAL, 0, 8), ORNIC_WC_FLUSH, BTH_RC_READ_RESP_ONLY, 0 },
		{ word_wr(t, true), ORNIC_WC_ATOMIC_WRITE, BTH_RC_READ_RESP_ONLY, 0 },
		{ data_wr(t, ORNIC_WR_RDMA_READ), ORNIC_WC_RDMA_READ, BTH_RC_READ_RESP_ONLY, 8 },
		{ data_wr(t, ORNIC_WR_FETCH_ADD), ORNIC_WC_FETCH_ADD, BTH_RC_ATOMIC_ACK, 0 },
	};

	t->c.d->dev.features |= ORNIC_FEATURE(MW1) | ORNIC_FEATURE(ATOMICS);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bind.bind.key = htole32(key | i);
		post(t, cases[i].wr);
		post(t, bind);
		post(t, bind);
		assert_int_not_equal(window->tag, i);
		respond(t, P(i), cases[i].answer, cases[i].len);
		conn_expect(&t->c, &t->c.hscq, 3 * i, cases[i].wc, ORNIC_WC_SUCCESS);
		conn_expect(&t->c, &t->c.hscq, 3 * i + 1, ORNIC_WC_BIND_MW, ORNIC_WC_SUCCESS);
		conn_expect(&t->c, &t->c.hscq, 3 * i + 2, ORNIC_WC_BIND_MW, ORNIC_WC_SUCCESS);
		assert_int_equal(window->tag, i);
	}
	/* without a fence: at once */
	bind.flags &= ~ORNIC_WQE_FENCE;
	bind.bind.key = htole32(key | 9);
	post(t, cases[0].wr);
	post(t, bind);
	assert_int_equal(window->tag, 9);
}

/* ORN-WQE-24: without a resource, it could never start. */
static void test_no_rd_atomic(void **state)
{
	struct script *t = *state;

	t->c.qp.max_rd_atomic = 0;
	post(t, flush_wr(ORNIC_FLUSH_GLOBAL, 0, 8));
	conn_expect(&t->c, &t->c.hscq, 0, ORNIC_WC_FLUSH, ORNIC_WC_LOC_QP_OP_ERR);
	peer_quiet(&t->peer);
}

/* ORN-WQE-43, ORN-WQE-44, ORN-WQE-22, ORN-WQE-23: malformed work requests */
static void test_malformed(void **state)
{
	for (uint32_t i = 0; i < 13; i++) {
		struct wr wr;
		uint8_t status = ORNIC_WC_LOC_QP_OP_ERR;
		struct ornic_cqe cqe;
		struct script *t;

		setup(state);
		t = *state;
		wr = i < 7 ? flush_wr(ORNIC_FLUSH_GLOBAL, 0, 8) : word_wr(t, i > 10);
		switch (i) {
		case 0:
			wr.flush.type = 0;
			break;
		case 1:
			wr.flush.type = 4 | ORNIC_FLUSH_GLOBAL;
			break;
		case 2:
			wr.flush.level = 2;
			break;
		case 3:
			wr.flush.mbz[5] = 1;
			break;
		case 4:
			wr.flush.length = htole64(0x80000001);
			status = ORNIC_WC_LOC_LEN_ERR;
			break;
		case 5:
			wr_sge(&wr, t->buf, 8, t->key);
			break;
		case 6:
			wr.flags |= ORNIC_WQE_INLINE;
			break;
		case 7:
			wr_sge(&wr, t->buf, 8, t->key);
			break;
		case 8:
			wr.sge[0].length = htole32(4);
			status = ORNIC_WC_LOC_LEN_ERR;
			break;
		case 9:
			wr.sge[0].lkey ^= htole32(0x100);
			status = ORNIC_WC_LOC_PROT_ERR;
			break;
		case 10:
			t->c.d->dev.features = 0;
			break;
		case 11:
			wr.inl_len = 7;
			break;
		case 12:
			wr.inl_len = 0;
			break;
		}
		post(t, wr);
		assert_true(conn_poll(&t->c, &t->c.hscq, &cqe));
		if (cqe.status != status)
			fail_msg("case %u: status %u", i, cqe.status);
		assert_int_equal(t->c.qp.state, ORNIC_QPS_ERR);
		peer_quiet(&t->peer);
		script_teardown(state);
	}
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, script_teardown)
	const struct CMUnitTest tests[] = {
		T(test_flush), T(test_order), cmocka_unit_test(test_flush_refused),
		cmocka_unit_test(test_flush_malformed), cmocka_unit_test(test_not_accepted), T(test_atomic_write),
		cmocka_unit_test(test_atomic_write_refused), T(test_resources), T(test_requests),
		cmocka_unit_test(test_bad_response), T(test_max_rd_atomic), T(test_no_rd_atomic),
		T(test_fenced_memop), cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
