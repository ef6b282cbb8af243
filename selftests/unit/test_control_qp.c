// SPDX-License-Identifier: GPL-2.0
/* control/qp.c, control/counters.c, control/latency.c: their answers for a working device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/method.h"
#include "control/request.h"
#include "engine/qp.h"
#include "engine/srq.h"
#include "lib/inproc.h"

#define BUF	65536
#define PART	32	/* queue pairs in an answer */

struct fixture {
	struct inproc *p;
	struct attachment attached;
	struct daemon d;
};

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));

	inproc_setup_ready((void **)&f->p);
	f->attached.function = f->p->f;
	f->d.attached = &f->attached;
	f->d.n = 1;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	inproc_teardown((void **)&f->p);
	test_free(f);
	return 0;
}

static json_t *answer_to(struct fixture *f, const char *method, json_t *params)
{
	json_t *request = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", 1, "method",
				    method, "params", params);
	char *line = json_dumps(request, 0), *text;
	json_t *answer;
	size_t len;

	text = control_request(&f->d, line, strlen(line), &len);
	assert_non_null(text);
	answer = json_loadb(text, len, 0, NULL);
	free(text);
	free(line);
	json_decref(request);
	return answer;
}

/* Return the result, for json_decref() */
static json_t *call(struct fixture *f, const char *method, json_t *params)
{
	json_t *answer = answer_to(f, method, params);
	json_t *result = json_incref(json_object_get(answer, "result"));

	assert_non_null(result);
	json_decref(answer);
	return result;
}

static void refused(struct fixture *f, int code, const char *method, json_t *params)
{
	json_t *answer = answer_to(f, method, params);

	assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "error"),
							    "code")), code);
	json_decref(answer);
}

static json_int_t number(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
	assert_true(json_is_string(json_object_get(o, key)));
	return json_string_value(json_object_get(o, key));
}

static void make_qp(struct fixture *f, struct host_qp *qp)
{
	assert_int_equal(host_qp_create(&f->p->host, qp, ORNIC_QPT_RC, 4, f->p->pd,
					f->p->cq.number, f->p->cq.number), 0);
}

/* Send a message of @len bytes to itself: @opcode is SEND, WRITE or READ. */
static void transfer(struct fixture *f, struct host_qp *qp, uint8_t opcode, uint32_t len,
		     uint64_t buf, uint32_t key)
{
	struct ornic_cqe cqe;

	if (opcode == ORNIC_WR_SEND)
		host_recv(qp, buf, BUF, key);
	host_send(qp, opcode, buf, len, key, buf, key);
	assert_true(host_wait(&f->p->cq, &cqe));
	assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
	if (opcode == ORNIC_WR_SEND)
		assert_true(host_wait(&f->p->cq, &cqe));
}

static uint32_t buffer(struct fixture *f, uint64_t *buf)
{
	uint32_t key;

	*buf = dma_alloc(&f->p->host.dma, BUF, 4096);
	assert_int_equal(host_key_create(&f->p->host, f->p->pd, *buf, BUF,
					 ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE |
					 ORNIC_ACCESS_REMOTE_READ, &key), 0);
	return key;
}

static void test_fresh(void **state)
{
	struct fixture *f = *state;
	struct host_qp qp;
	json_t *r, *o;

	r = call(f, "qp.list", json_pack("{s:s}", "device", "test"));
	assert_int_equal(json_array_size(json_object_get(r, "qps")), 0);
	assert_null(json_object_get(r, "next"));
	json_decref(r);
	make_qp(f, &qp);
	r = call(f, "qp.list", json_pack("{s:s}", "device", "test"));
	o = json_array_get(json_object_get(r, "qps"), 0);
	assert_int_equal(number(o, "qpn"), qp.number);
	assert_string_equal(text(o, "type"), "rc");
	assert_string_equal(text(o, "state"), "reset");
	assert_null(json_object_get(o, "peer"));
	assert_null(json_object_get(o, "next_psn"));
	json_decref(r);
}

static void test_connected(void **state)
{
	struct fixture *f = *state;
	struct host_qp qp;
	json_t *r, *q;
	uint64_t buf;
	uint32_t key;

	make_qp(f, &qp);
	inproc_connect_self(f->p, &qp);
	key = buffer(f, &buf);
	transfer(f, &qp, ORNIC_WR_RDMA_WRITE, 10 * 1024, buf, key);
	transfer(f, &qp, ORNIC_WR_SEND, 1, buf, key);
	r = call(f, "qp.show", json_pack("{s:s, s:i}", "device", "test", "qpn", qp.number));
	assert_string_equal(text(r, "state"), "rts");
	assert_string_equal(text(r, "peer"), "10.0.0.1");
	assert_int_equal(number(r, "peer_qpn"), qp.number);
	assert_int_equal(number(r, "next_psn"), 11);
	assert_int_equal(number(r, "acked_psn"), 11);
	assert_int_equal(number(r, "expected_psn"), 11);
	assert_int_equal(number(r, "outstanding"), 0);
	assert_int_equal(number(r, "retransmits"), 0);
	assert_null(json_object_get(r, "rtt_ns"));
	assert_null(json_object_get(r, "rate_kbps"));
	q = json_object_get(r, "sq");
	assert_int_equal(number(q, "entries"), 16);
	assert_int_equal(number(q, "fetched"), 2);
	assert_int_equal(number(q, "done"), 2);
	q = json_object_get(r, "responder");
	assert_int_equal(number(q, "msn"), 2);
	q = json_object_get(r, "requester");
	assert_int_equal(number(q, "in_flight"), 0);
	assert_true(json_is_false(json_object_get(q, "remote")));
	q = json_object_get(r, "path");
	assert_int_equal(number(q, "mtu"), 1024);
	assert_string_equal(text(q, "own_address"), "10.0.0.1");
	assert_string_equal(text(q, "mac"), "02:00:00:00:00:01");
	json_decref(r);
	/* no receive is posted: it waits */
	host_send(&qp, ORNIC_WR_SEND, buf, 1, key, 0, 0);
	inproc_turn(f->p);
	r = call(f, "qp.show", json_pack("{s:s, s:i}", "device", "test", "qpn", qp.number));
	assert_int_equal(number(r, "outstanding"), 1);
	assert_true(json_is_true(json_object_get(json_object_get(r, "requester"), "waits_rnr")));
	assert_int_equal(number(r, "next_psn"), 12);
	assert_int_equal(number(r, "acked_psn"), 11);
	json_decref(r);
}

static const json_t *part(const json_t *o, const char *key)
{
	const json_t *found = json_object_get(o, key);

	assert_true(json_is_object(found));
	return found;
}

static bool truth(const json_t *o, const char *key)
{
	assert_true(json_is_boolean(json_object_get(o, key)));
	return json_is_true(json_object_get(o, key));
}

static json_t *show(struct fixture *f, const struct host_qp *qp)
{
	return call(f, "qp.show", json_pack("{s:s, s:i}", "device", "test", "qpn", qp->number));
}

/* Every member of qp.show, each with a unique value */
static void test_details(void **state)
{
	struct srq srq = { .number = 41 };
	struct fixture *f = *state;
	struct ornic_qp_create_cmd create;
	struct host_qp host;
	struct host_ring other;
	const json_t *o;
	struct qp *qp, saved;
	json_t *r;

	assert_int_equal(host_cq_create(&f->p->host, &other, 6, f->p->eq1.number, 0), 0);
	host_qp_template(&f->p->host, &host, ORNIC_QPT_RC, 4, f->p->pd, f->p->cq.number,
			 other.number, &create);
	create.owner = htole32(17);
	assert_int_equal(host_exec(&f->p->host, ORNIC_OP_QP_CREATE, 0, &create, sizeof(create),
				   NULL, 0), 0);
	host.number = host_number(&f->p->host);
	inproc_connect_self(f->p, &host);
	qp = table_get(&f->p->f->dev.qps, host.number);
	saved = *qp;
	qp->syndrome = 0x1001;
	qp->sq.cons = 109;
	qp->sq.done = 102;
	qp->rq.cons = 55;
	qp->rq.done = 51;
	qp->rq.bad = true;
	qp->req.una = 0x200;
	qp->req.sent_psn = 0x20b;
	qp->req.head = 3;
	qp->req.tail = 16;
	qp->req.reads = 14;
	qp->req.retransmits = 15;
	qp->req.rtt = 1600;
	qp->req.remote = true;
	qp->req.retry_left = 2;
	qp->req.rnr_left = 3;
	qp->max_rd_atomic = 5;
	qp->timeout = 21;
	qp->retry_cnt = 6;
	qp->rnr_retry = 4;
	qp->resp.epsn = 0x1000301;
	qp->resp.msn = 0x1000302;
	qp->resp.rd_next = 30;
	qp->resp.rd_answer = 22;
	qp->resp.held = true;
	qp->max_dest_rd_atomic = 9;
	qp->min_rnr_timer = 13;
	qp->rate.kbps = 7000;
	qp->rate.burst = 7001;
	qp->rate.packet = 1400;
	qp->path.static_rate = 2;
	qp->path.flow_label = htole32(0xabcde);
	qp->path.traffic_class = 0x28;
	qp->path.hop_limit = 31;
	qp->path.sl = 3;
	qp->path.udp_sport = htole16(0xc001);
	r = show(f, &host);
	assert_int_equal(number(r, "handle"), host.number);
	assert_int_equal(number(r, "owner"), 17);
	assert_int_equal(number(r, "syndrome"), 0x1001);
	assert_int_equal(number(r, "send_cq"), f->p->cq.number);
	assert_int_equal(number(r, "recv_cq"), other.number);
	assert_null(json_object_get(r, "srq"));
	assert_null(json_object_get(r, "memberships"));
	assert_int_equal(number(r, "outstanding"), 7);
	assert_int_equal(number(r, "retransmits"), 15);
	assert_int_equal(number(r, "rtt_ns"), 1600);
	assert_int_equal(number(r, "next_psn"), 0x20b);
	assert_int_equal(number(r, "acked_psn"), 0x200);
	assert_int_equal(number(r, "expected_psn"), 0x301);
	assert_int_equal(number(r, "rate_kbps"), 7000);
	o = part(r, "sq");
	assert_int_equal(number(o, "entries"), 16);
	assert_int_equal(number(o, "fetched"), 109);
	assert_int_equal(number(o, "done"), 102);
	assert_false(truth(o, "bad"));
	o = part(r, "rq");
	assert_int_equal(number(o, "fetched"), 55);
	assert_int_equal(number(o, "done"), 51);
	assert_true(truth(o, "bad"));
	o = part(r, "rate");
	assert_int_equal(number(o, "kbps"), 7000);
	assert_int_equal(number(o, "burst"), 7001);
	assert_int_equal(number(o, "packet"), 1400);
	assert_int_equal(number(o, "static_rate"), 2);
	o = part(r, "path");
	assert_string_equal(text(o, "address"), "10.0.0.1");
	assert_int_equal(number(o, "sgid_index"), 0);
	assert_int_equal(number(o, "flow_label"), 0xabcde);
	assert_int_equal(number(o, "traffic_class"), 0x28);
	assert_int_equal(number(o, "hop_limit"), 31);
	assert_int_equal(number(o, "sl"), 3);
	assert_int_equal(number(o, "udp_sport"), 0xc001);
	o = part(r, "requester");
	assert_int_equal(number(o, "in_flight"), 11);
	assert_int_equal(number(o, "window"), 13);
	assert_int_equal(number(o, "reads"), 14);
	assert_int_equal(number(o, "max_rd_atomic"), 5);
	assert_int_equal(number(o, "timeout"), 21);
	assert_int_equal(number(o, "retry_cnt"), 6);
	assert_int_equal(number(o, "retry_left"), 2);
	assert_int_equal(number(o, "rnr_retry"), 4);
	assert_int_equal(number(o, "rnr_left"), 3);
	assert_true(truth(o, "remote"));
	assert_false(truth(o, "waits_rnr"));
	assert_false(truth(o, "waits_rate"));
	o = part(r, "responder");
	assert_int_equal(number(o, "msn"), 0x302);
	assert_int_equal(number(o, "resources"), 8);
	assert_int_equal(number(o, "max_rd_atomic"), 9);
	assert_int_equal(number(o, "min_rnr_timer"), 13);
	assert_true(truth(o, "waits_flush"));
	json_decref(r);

	/* other types: members that they have and do not have */
	qp->srq = &srq;
	qp->rq.present = false;
	qp->type = ORNIC_QPT_UD;
	qp->memberships = 77;
	r = show(f, &host);
	assert_int_equal(number(r, "srq"), 41);
	assert_int_equal(number(r, "memberships"), 77);
	assert_null(json_object_get(r, "rq"));
	assert_null(json_object_get(r, "path"));
	assert_null(json_object_get(r, "requester"));
	assert_null(json_object_get(r, "responder"));
	json_decref(r);
	qp->type = ORNIC_QPT_GSI;
	qp->sq.present = false;
	r = show(f, &host);
	assert_int_equal(number(r, "memberships"), 77);
	assert_null(json_object_get(r, "sq"));
	json_decref(r);
	/* an unreliable connection has a path, but neither window nor resources */
	qp->type = ORNIC_QPT_UC;
	qp->sq.present = true;
	qp->req.next_psn = 0x1000123;
	r = show(f, &host);
	assert_int_equal(number(r, "next_psn"), 0x123);
	assert_null(json_object_get(r, "acked_psn"));
	assert_null(json_object_get(r, "memberships"));
	part(r, "path");
	assert_null(json_object_get(r, "requester"));
	assert_null(json_object_get(r, "responder"));
	json_decref(r);
	*qp = saved;
}

/* Names of all types and states; a peer has who is connected, and a PSN to send who may send. */
static void test_states(void **state)
{
	static const struct {
		uint8_t type;
		const char *name;
		bool connected;
		bool reliable;
	} types[] = {
		{ ORNIC_QPT_GSI, "gsi", false, false }, { ORNIC_QPT_RC, "rc", true, true },
		{ ORNIC_QPT_UC, "uc", true, false }, { ORNIC_QPT_UD, "ud", false, false },
		{ ORNIC_QPT_RAW, "raw", false, false },
		{ ORNIC_QPT_XRC_INI, "xrc_ini", true, true },
		{ ORNIC_QPT_XRC_TGT, "xrc_tgt", true, true },
	};
	static const struct {
		uint8_t state;
		const char *name;
		bool peer;
		bool sends;
	} states[] = {
		{ ORNIC_QPS_RESET, "reset", false, false }, { ORNIC_QPS_INIT, "init", false, false },
		{ ORNIC_QPS_RTR, "rtr", true, false }, { ORNIC_QPS_RTS, "rts", true, true },
		{ ORNIC_QPS_SQD, "sqd", true, true }, { ORNIC_QPS_SQE, "sqe", true, true },
		{ ORNIC_QPS_ERR, "err", true, true },
	};
	struct fixture *f = *state;
	struct host_qp host;
	struct qp *qp, saved;

	make_qp(f, &host);
	inproc_connect_self(f->p, &host);
	qp = table_get(&f->p->f->dev.qps, host.number);
	saved = *qp;
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		for (size_t s = 0; s < sizeof(states) / sizeof(states[0]); s++) {
			/* with a peer, without, and without a send queue */
			for (int i = 0; i < 3; i++) {
				bool peer = i != 1 && types[t].connected && states[s].peer;
				bool sends = peer && i != 2 && states[s].sends;
				json_t *r;

				*qp = saved;
				qp->type = types[t].type;
				qp->state = states[s].state;
				qp->dest_qpn = i == 1 ? 0 : 1;
				qp->sq.present = i != 2;
				r = show(f, &host);
				assert_string_equal(text(r, "type"), types[t].name);
				assert_string_equal(text(r, "state"), states[s].name);
				assert_int_equal(!!json_object_get(r, "peer"), peer);
				assert_int_equal(!!json_object_get(r, "path"), peer);
				assert_int_equal(!!json_object_get(r, "next_psn"), sends);
				assert_int_equal(!!json_object_get(r, "acked_psn"),
						 sends && types[t].reliable);
				assert_int_equal(!!json_object_get(r, "requester"),
						 sends && types[t].reliable);
				assert_int_equal(!!json_object_get(r, "responder"),
						 peer && types[t].reliable);
				json_decref(r);
			}
		}
	}
	*qp = saved;
}

/* IPv4 addresses are those of mapped GIDs only. A GID that was removed has no address. */
static void test_addresses(void **state)
{
	static const struct {
		uint8_t gid[16];
		const char *address;
	} cases[] = {
		{ { [10] = 0xff, 0xff, 192, 0, 2, 1 }, "192.0.2.1" },
		{ { 0xfe, 0x80, [15] = 1 }, "fe80::1" },
		{ { 0x20, 0x01, 0x0d, 0xb8, [10] = 0xff, 0xff, 192, 0, 2, 1 },
		  "2001:db8::ffff:c000:201" },
		{ { 1, [10] = 0xff, 0xff, 192, 0, 2, 1 }, "100::ffff:c000:201" },
		{ { [10] = 0xff, 0xfe, 192, 0, 2, 1 }, "::fffe:c000:201" },
	};
	struct fixture *f = *state;
	struct host_qp host;
	struct qp *qp, saved;
	json_t *r;

	make_qp(f, &host);
	inproc_connect_self(f->p, &host);
	qp = table_get(&f->p->f->dev.qps, host.number);
	saved = *qp;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(qp->path.dgid, cases[i].gid, 16);
		qp->path.sgid_index = i ? htole16(0xffff) : 0;
		r = show(f, &host);
		assert_string_equal(text(r, "peer"), cases[i].address);
		assert_string_equal(text(part(r, "path"), "address"), cases[i].address);
		assert_int_equal(!json_object_get(part(r, "path"), "own_address"), i > 0);
		json_decref(r);
	}
	*qp = saved;
}

/* A number of a queue pair is not taken modulo 2^32; 1 is the GSI queue pair, whatever its handle. */
static void test_numbers(void **state)
{
	struct fixture *f = *state;
	struct host_qp host, gsi;
	json_t *r;

	make_qp(f, &host);
	for (int i = -1; i < 2; i += 2)
		refused(f, CONTROL_NOT_FOUND, "qp.show",
			json_pack("{s:s, s:I}", "device", "test", "qpn",
				  (json_int_t)host.number + i * ((json_int_t)1 << 32)));
	assert_int_equal(host_qp_create(&f->p->host, &gsi, ORNIC_QPT_GSI, 4, f->p->pd,
					f->p->cq.number, f->p->cq.number), 0);
	r = call(f, "qp.show", json_pack("{s:s, s:i}", "device", "test", "qpn", 1));
	assert_string_equal(text(r, "type"), "gsi");
	assert_int_equal(number(r, "qpn"), 1);
	assert_int_equal(number(r, "handle"), gsi.number);
	json_decref(r);
}

/* The rate is the lower one of rate limit and congestion control, for every type. */
static void test_rate(void **state)
{
	static const uint8_t types[] = { ORNIC_QPT_RC, ORNIC_QPT_UC };
	static const struct {
		bool limiting;
		uint32_t cc;
		uint32_t limit;
		json_int_t shown;
	} cases[] = {
		{ true, 5000, 0, 5000 }, { true, 5000, 4000, 4000 }, { true, 5000, 6000, 5000 },
		{ false, 5000, 6000, 6000 },
	};
	struct fixture *f = *state;
	struct host_qp qp;
	struct qp *held;
	uint32_t n = 0;

	make_qp(f, &qp);
	inproc_connect_self(f->p, &qp);
	held = table_next(&f->p->f->dev.qps, &n);
	for (size_t t = 0; t < sizeof(types); t++) {
		held->type = types[t];
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			json_t *r;

			held->cc.limiting = cases[i].limiting;
			held->cc.rate = cases[i].cc;
			held->rate.kbps = cases[i].limit;
			r = call(f, "qp.show",
				 json_pack("{s:s, s:i}", "device", "test", "qpn", qp.number));
			assert_int_equal(number(r, "rate_kbps"), cases[i].shown);
			json_decref(r);
		}
	}
	held->type = ORNIC_QPT_RC;
}

static void test_many(void **state)
{
	struct fixture *f = *state;
	struct host_qp qp[PART + 5];
	bool seen[PART + 5] = { false };
	json_int_t from = 0;
	size_t total = 0;

	for (int i = 0; i < PART + 5; i++)
		make_qp(f, &qp[i]);
	do {
		json_t *r = call(f, "qp.list", json_pack("{s:s, s:I}", "device", "test", "from", from));
		json_t *all = json_object_get(r, "qps"), *o;
		size_t i;

		assert_int_equal(json_array_size(all), total ? 5 : PART);
		total += json_array_size(all);
		json_array_foreach(all, i, o)
			for (int j = 0; j < PART + 5; j++)
				if (number(o, "qpn") == qp[j].number) {
					assert_false(seen[j]);
					seen[j] = true;
				}
		from = json_integer_value(json_object_get(r, "next"));
		json_decref(r);
	} while (from);
	assert_int_equal(total, PART + 5);
	for (int j = 0; j < PART + 5; j++)
		assert_true(seen[j]);
}

static void test_wrong(void **state)
{
	struct fixture *f = *state;
	static const json_int_t bad[] = { 0, 1, 2, 0xffffff, 0x1000000, -1, INT64_MAX, INT64_MIN };
	json_t *r;

	refused(f, CONTROL_NOT_FOUND, "qp.list", json_pack("{s:s}", "device", "no"));
	refused(f, CONTROL_PARAMS, "qp.list", json_object());
	refused(f, CONTROL_PARAMS, "qp.list", json_pack("{s:s, s:i}", "device", "test", "from", -1));
	refused(f, CONTROL_PARAMS, "qp.list",
		json_pack("{s:s, s:I}", "device", "test", "from", (json_int_t)1 << 32));
	r = call(f, "qp.list", json_pack("{s:s, s:I}", "device", "test", "from",
					 (json_int_t)UINT32_MAX));
	assert_int_equal(json_array_size(json_object_get(r, "qps")), 0);
	json_decref(r);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(f, CONTROL_NOT_FOUND, "qp.show",
			json_pack("{s:s, s:I}", "device", "test", "qpn", bad[i]));
	refused(f, CONTROL_PARAMS, "qp.show",
		json_pack("{s:s, s:s}", "device", "test", "qpn", "2"));
	refused(f, CONTROL_NOT_FOUND, "counters", json_pack("{s:s}", "device", "no"));
	refused(f, CONTROL_NOT_FOUND, "latency.on", json_pack("{s:s}", "device", "no"));
}

static void test_counters(void **state)
{
	struct fixture *f = *state;
	struct host_qp qp;
	json_t *r;
	uint64_t buf;
	uint32_t key;

	make_qp(f, &qp);
	inproc_connect_self(f->p, &qp);
	key = buffer(f, &buf);
	transfer(f, &qp, ORNIC_WR_RDMA_READ, 5000, buf, key);
	r = call(f, "counters", json_pack("{s:s}", "device", "test"));
	assert_int_equal(json_object_size(r), CNT_COUNT);
	assert_int_equal(number(r, "tx_read"), 1);
	assert_int_equal(number(r, "rdma_copied_bytes"), 5000);
	assert_int_equal(number(r, "key_pages"), f->p->f->dev.cnt[CNT_key_pages]);
	json_decref(r);
}

static json_int_t times(struct fixture *f, const char *class)
{
	json_t *r = call(f, "latency.show", json_pack("{s:s}", "device", "test"));
	json_t *h = json_object_get(json_object_get(r, "times"), class), *b;
	json_int_t count = h ? number(h, "count") : -1, sum = 0;
	size_t i;

	json_array_foreach(json_object_get(h, "buckets"), i, b) {
		assert_int_equal(__builtin_popcountll(number(b, "ns")), 1);
		sum += number(b, "count");
	}
	assert_true(count < 0 || sum == count);
	if (count > 0)
		assert_true(number(h, "mean_ns") > 0 && number(h, "max_ns") >= number(h, "mean_ns"));
	json_decref(r);
	return count;
}

static void test_latency(void **state)
{
	struct fixture *f = *state;
	struct host_qp qp;
	uint64_t buf;
	uint32_t key;

	make_qp(f, &qp);
	inproc_connect_self(f->p, &qp);
	key = buffer(f, &buf);
	assert_int_equal(times(f, "write"), -1);
	json_decref(call(f, "latency.on", json_pack("{s:s}", "device", "test")));
	assert_int_equal(times(f, "write"), 0);
	for (int i = 0; i < 3; i++)
		transfer(f, &qp, ORNIC_WR_RDMA_WRITE, 5000, buf, key);
	transfer(f, &qp, ORNIC_WR_SEND, 5000, buf, key);
	assert_int_equal(times(f, "write"), 3);
	assert_int_equal(times(f, "send"), 1);
	assert_int_equal(times(f, "read"), 0);
	/* on again: from zero */
	json_decref(call(f, "latency.on", json_pack("{s:s}", "device", "test")));
	assert_int_equal(times(f, "write"), 0);
	transfer(f, &qp, ORNIC_WR_RDMA_WRITE, 5000, buf, key);
	assert_int_equal(times(f, "write"), 1);
	json_decref(call(f, "latency.off", json_pack("{s:s}", "device", "test")));
	assert_int_equal(times(f, "write"), -1);
	json_decref(call(f, "latency.off", json_pack("{s:s}", "device", "test")));
	transfer(f, &qp, ORNIC_WR_RDMA_WRITE, 5000, buf, key);
	json_decref(call(f, "latency.on", json_pack("{s:s}", "device", "test")));
	/* the function continues with it on */
}

/* Return the result of cc.show. The daemon's engine is not the function's engine here. */
static json_t *show_cc(struct fixture *f)
{
	json_t *r;

	TAILQ_INIT(&f->d.engine.devices);
	TAILQ_CONCAT(&f->d.engine.devices, &f->p->engine.devices, link);
	r = call(f, "cc.show", json_object());
	TAILQ_CONCAT(&f->p->engine.devices, &f->d.engine.devices, link);
	return r;
}

/* List the queue pairs that congestion control limits, with the numbers of each. */
static void test_cc(void **state)
{
	struct fixture *f = *state;
	struct host_qp qp[3];
	struct qp *held;
	json_t *r, *o;

	for (int i = 0; i < 3; i++)
		make_qp(f, &qp[i]);
	held = table_get(&f->p->f->dev.qps, qp[1].number);
	held->cc.limiting = true;
	held->cc.rate = 5000;
	held->cc.target = 7000;
	held->cc.alpha = CC_ONE / 4;
	r = show_cc(f);
	assert_int_equal(json_array_size(json_object_get(r, "qps")), 1);
	assert_int_equal(number(r, "more"), 0);
	o = json_array_get(json_object_get(r, "qps"), 0);
	assert_string_equal(text(o, "device"), "test");
	assert_int_equal(number(o, "qpn"), qp[1].number);
	assert_int_equal(number(o, "rate_kbps"), 5000);
	assert_int_equal(number(o, "target_kbps"), 7000);
	assert_true(json_number_value(json_object_get(o, "alpha")) == 0.25);
	held->cc.limiting = false;
	json_decref(r);
}

/* cc.set limits the queue pairs with a remote peer to the new rate. Nothing else is limited. */
static void test_cc_set(void **state)
{
	struct fixture *f = *state;
	struct host_qp qp[2];
	struct qp *held[2];

	for (int i = 0; i < 2; i++) {
		make_qp(f, &qp[i]);
		held[i] = table_get(&f->p->f->dev.qps, qp[i].number);
	}
	held[0]->rate.remote = true;
	f->d.engine.clock = f->p->engine.clock;
	cc_defaults(&f->d.engine.cc);
	TAILQ_INIT(&f->d.engine.devices);
	TAILQ_CONCAT(&f->d.engine.devices, &f->p->engine.devices, link);
	json_decref(call(f, "cc.set", json_pack("{s:s}", "spec", "on,rp_max_rate=8000")));
	TAILQ_CONCAT(&f->p->engine.devices, &f->d.engine.devices, link);
	assert_int_equal(f->d.engine.cc.v[CC_rp_max_rate], 8000);
	assert_true(held[0]->rate.remote);
	assert_true(held[0]->rate.net_cost);
	assert_false(held[1]->rate.remote);
	assert_false(held[1]->rate.net_cost);
	held[0]->rate.remote = false;
}

/* 1000 queue pairs are described and the others counted, as the manual says. */
static void test_cc_many(void **state)
{
	struct fixture *f = *state;
	struct table *qps = &f->p->f->dev.qps;
	struct qp *many = calloc(1003, sizeof(*many));
	json_t *r;

	assert_non_null(many);
	for (int i = 0; i < 1003; i++) {
		many[i].dev = &f->p->f->dev;
		many[i].cc.limiting = true;
		assert_int_equal(table_add(qps, &many[i], &many[i].handle), 0);
	}
	r = show_cc(f);
	assert_int_equal(json_array_size(json_object_get(r, "qps")), 1000);
	assert_int_equal(number(r, "more"), 3);
	json_decref(r);
	for (int i = 0; i < 1003; i++)
		table_del(qps, many[i].handle);
	free(many);
}

#define WITH(t)	cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_fresh), WITH(test_connected), WITH(test_details), WITH(test_states),
		WITH(test_addresses), WITH(test_numbers), WITH(test_rate),
		WITH(test_many), WITH(test_wrong),
		WITH(test_counters), WITH(test_latency), WITH(test_cc),
		WITH(test_cc_set),
		WITH(test_cc_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
