// SPDX-License-Identifier: GPL-2.0
/*
 * Sends patterned buffers through every operation and compares every byte of them, and
 * around them, at the remote end.
 *
 *   verbs_data -d DEVICE                       server, until killed
 *   verbs_data -d DEVICE [-e] SERVER [TEST..]  client, prints TAP
 *
 * A test is a layout of messages, sent one after the other, as many at a time as the queues
 * hold. The target starts with guards everywhere; at the end both areas are compared byte
 * by byte and the two ends swap checksums.
 * -x spoils one byte of the target before the comparison: each test must fail.
 * -w begins just below the largest PSN, so that the PSN wraps early on.
 * -6, at both ends, uses IPv6 addresses for RDMA.
 */
#include "conn.h"
#include "layout.h"
#include "oob.h"
#include "pattern.h"
#include "report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OOB_PORT	"7471"
#define DEPTH		32		/* work requests in flight per queue pair */
#define QPS_MAX		8
#define WAIT		20.0		/* seconds for a completion */
#define GRH		40
#define LAST_PSNS	0xfffff8u	/* of -w */
#define ALL_MEMBERS	0xffffffu	/* queue pair number of a group */

enum op { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, CMP_SWAP, FETCH_ADD, UD_SEND, UD_SEND_IMM };

/* Variations of a test */
#define F_INLINE	(1u << 0)
#define F_SGE		(1u << 1)	/* scattered memory */
#define F_HUGE		(1u << 2)	/* memory of huge pages */
#define F_OWN_MR	(1u << 3)	/* a region for each piece that ends where the piece ends */
#define F_GROUP		(1u << 4)	/* datagrams to a multicast group of the target */

static const struct test {
	const char *name;
	enum op op;
	enum lengths lengths;
	unsigned int flags;
	unsigned int qps;
	unsigned int signal_every;
} tests[] = {
	{ "send", SEND, LEN_BOUNDARIES, 0, 1, 1 },
	{ "send_imm", SEND_IMM, LEN_BOUNDARIES, 0, 1, 1 },
	{ "write", WRITE, LEN_BOUNDARIES, 0, 1, 1 },
	{ "write_imm", WRITE_IMM, LEN_BOUNDARIES, 0, 1, 1 },
	{ "read", READ, LEN_BOUNDARIES, 0, 1, 1 },
	{ "nonempty_read", READ, LEN_NOT_EMPTY, 0, 1, 1 },
	{ "cmp_swap", CMP_SWAP, LEN_WORD, 0, 1, 1 },
	{ "fetch_add", FETCH_ADD, LEN_WORD, 0, 1, 1 },
	{ "ud_send", UD_SEND, LEN_BOUNDARIES, 0, 1, 1 },
	{ "ud_send_imm", UD_SEND_IMM, LEN_BOUNDARIES, 0, 1, 1 },
	{ "group_send", UD_SEND, LEN_BOUNDARIES, F_GROUP, 1, 1 },
	{ "inline_send", SEND, LEN_BOUNDARIES, F_INLINE, 1, 1 },
	{ "inline_write", WRITE, LEN_BOUNDARIES, F_INLINE, 1, 1 },
	{ "inline_write_imm", WRITE_IMM, LEN_BOUNDARIES, F_INLINE, 1, 4 },
	{ "inline_ud_send", UD_SEND, LEN_BOUNDARIES, F_INLINE, 1, 1 },
	{ "inline_sge_send", SEND, LEN_BOUNDARIES, F_INLINE | F_SGE, 1, 1 },
	{ "sge_send", SEND, LEN_BOUNDARIES, F_SGE, 1, 1 },
	{ "sge_write", WRITE, LEN_BOUNDARIES, F_SGE, 1, 1 },
	{ "sge_read", READ, LEN_BOUNDARIES, F_SGE, 1, 1 },
	{ "sge_ud_send", UD_SEND, LEN_BOUNDARIES, F_SGE, 1, 1 },
	{ "huge_send", SEND, LEN_BOUNDARIES, F_HUGE, 1, 1 },
	{ "huge_write", WRITE, LEN_BOUNDARIES, F_HUGE, 1, 1 },
	{ "huge_read", READ, LEN_BOUNDARIES, F_HUGE | F_SGE, 1, 1 },
	{ "own_mr_send", SEND, LEN_BOUNDARIES, F_OWN_MR, 1, 1 },
	{ "own_mr_write", WRITE, LEN_BOUNDARIES, F_OWN_MR, 1, 1 },
	{ "own_mr_read", READ, LEN_BOUNDARIES, F_OWN_MR, 1, 1 },
	{ "qps_send", SEND, LEN_BOUNDARIES, 0, QPS_MAX, 1 },
	{ "qps_write", WRITE, LEN_BOUNDARIES, F_SGE, QPS_MAX, 4 },
	{ "qps_read", READ, LEN_BOUNDARIES, 0, QPS_MAX, 1 },
	{ "qps_fetch_add", FETCH_ADD, LEN_WORD, 0, QPS_MAX, 3 },
	{ "unsignaled_send", SEND, LEN_BOUNDARIES, 0, 1, 16 },
	{ "unsignaled_write", WRITE, LEN_BOUNDARIES, 0, 1, 7 },
	{ "unsignaled_read", READ, LEN_BOUNDARIES, 0, 1, 5 },
	{ "big_write", WRITE, LEN_BIG, 0, 1, 1 },
};

#define TESTS	(sizeof(tests) / sizeof(tests[0]))

/* The groups of F_GROUP: 239.7.7.79 and ff1e::7:7:79 */
static const union ibv_gid group4 = {
	.raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 7, [14] = 7, [15] = 79 },
};
static const union ibv_gid group6 = {
	.raw = { [0] = 0xff, [1] = 0x1e, [11] = 7, [13] = 7, [15] = 0x79 },
};

/* The client's order for the server. */
struct order {
	uint32_t test;
	uint32_t events;
	uint32_t parts;
	uint32_t spoil;
	uint32_t psn;
	uint32_t pad;
	uint64_t limit;
};

struct remote {
	uint64_t addr;
	uint32_t rkey;
	uint32_t pad;
};

/* The state of one test at one end. */
struct run {
	struct dev *dev;
	struct oob *oob;
	const struct test *test;
	struct order order;
	enum end end;
	struct layout layout;
	struct area area;
	struct ibv_mr *mr[PIECES_MAX];		/* F_OWN_MR: one each; else the first only */
	struct remote remote[PIECES_MAX];
	uint8_t grh[PIECES_MAX][GRH];
	struct ibv_mr *grh_mr;
	struct queue send, recv;
	struct conn conn[QPS_MAX];
	unsigned int in_flight[QPS_MAX];
	int member;				/* F_GROUP, at the target: socket in the group */
	uint8_t *scratch;			/* source of inline data */
	struct verdict verdict;
};

static bool is_ud(const struct test *t)
{
	return t->op == UD_SEND || t->op == UD_SEND_IMM;
}

static bool is_atomic(const struct test *t)
{
	return t->op == CMP_SWAP || t->op == FETCH_ADD;
}

static bool takes_receive(const struct test *t)
{
	return t->op == SEND || t->op == SEND_IMM || t->op == WRITE_IMM || is_ud(t);
}

static bool with_imm(const struct test *t)
{
	return t->op == SEND_IMM || t->op == WRITE_IMM || t->op == UD_SEND_IMM;
}

static bool is_source(const struct test *t, enum end end)
{
	return end == (t->op == READ || is_atomic(t) ? SERVER : CLIENT);
}

static const union ibv_gid *group_of(const struct run *r)
{
	return gid_is_ipv4(&r->dev->gid) ? &group4 : &group6;
}

static __be32 imm_of(unsigned int piece)
{
	return htonl(0xabc00000u + piece);
}

static uint32_t lkey(struct run *r, unsigned int piece)
{
	struct ibv_mr *mr = r->mr[r->test->flags & F_OWN_MR ? piece : 0];

	return mr ? mr->lkey : 0;	/* an empty piece has no region */
}

static struct ibv_mr *reg(struct run *r, void *addr, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(r->dev->pd, addr, len, ALL_RIGHTS);

	if (!mr)
		bail("cannot register %zu bytes: %s", len, strerror(errno));
	return mr;
}

static void register_memory(struct run *r)
{
	struct remote mine[PIECES_MAX] = { 0 };
	bool own = r->test->flags & F_OWN_MR;

	if (!own)
		r->mr[0] = reg(r, r->area.base, r->area.size);
	for (unsigned int i = 0; i < r->layout.pieces; i++) {
		struct part *p = &r->layout.piece[i].part[r->end][0];
		uint8_t *at = r->area.base + p->off;

		if (own && p->len)
			r->mr[i] = reg(r, at, p->len);
		mine[i].addr = (uintptr_t)at;
		mine[i].rkey = own ? (r->mr[i] ? r->mr[i]->rkey : 0) : r->mr[0]->rkey;
	}
	if (is_ud(r->test))
		r->grh_mr = reg(r, r->grh, sizeof(r->grh));
	oob_swap(r->oob, mine, r->remote, sizeof(mine));
}

/*
 * Join on the network interface as well, as rdma_cm does for its users: without that, a
 * device whose packets come through the kernel's network stack, such as Soft-RoCE, receives
 * nothing for the group.
 */
static int join_network(struct run *r, const union ibv_gid *group)
{
	bool ipv4 = gid_is_ipv4(group);
	struct group_req req = { 0 };
	struct ibv_gid_entry entry;
	int sock = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);

	if (ibv_query_gid_ex(r->dev->verbs, PORT, r->dev->gid_index, &entry, 0))
		bail("cannot query a GID: %s", strerror(errno));
	req.gr_interface = entry.ndev_ifindex;
	req.gr_group.ss_family = ipv4 ? AF_INET : AF_INET6;
	if (ipv4)
		memcpy(&((struct sockaddr_in *)&req.gr_group)->sin_addr, group->raw + 12, 4);
	else
		memcpy(&((struct sockaddr_in6 *)&req.gr_group)->sin6_addr, group->raw, 16);
	if (sock < 0 || setsockopt(sock, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &req,
				   sizeof(req)))
		bail("the network joins no group: %s", strerror(errno));
	return sock;
}

/*
 * The target joins; the other end sets the group as destination of its queue pairs instead
 * of one of them.
 */
static void join_group(struct run *r, struct conn *c)
{
	union ibv_gid group = *group_of(r);
	struct ibv_ah_attr path = {
		.is_global = 1,
		.port_num = PORT,
		.grh = { .dgid = group, .sgid_index = r->dev->gid_index, .hop_limit = 1 },
	};

	if (r->end == SERVER) {
		if (ibv_attach_mcast(c->qp, &group, 0))
			bail("cannot join a group: %s", strerror(errno));
		r->member = join_network(r, &group);
		return;
	}
	if (ibv_destroy_ah(c->ah))
		bail("cannot destroy an address handle");
	c->ah = ibv_create_ah(r->dev->pd, &path);
	if (!c->ah)
		bail("cannot create an address handle of a group: %s", strerror(errno));
	c->there.qpn = ALL_MEMBERS;
}

static void leave_group(struct run *r, struct conn *c)
{
	union ibv_gid group = *group_of(r);

	if (r->end == CLIENT)
		return;
	if (ibv_detach_mcast(c->qp, &group, 0))
		bail("cannot leave a group: %s", strerror(errno));
	close(r->member);
}

static void create_qps(struct run *r)
{
	unsigned int sges = r->test->flags & F_SGE ? r->order.parts : 1;
	struct conn_attr a;

	conn_attr_default(&a, r->dev);
	a.type = is_ud(r->test) ? IBV_QPT_UD : IBV_QPT_RC;
	a.psn = r->order.psn;
	a.cap.max_send_wr = DEPTH;
	a.cap.max_recv_wr = takes_receive(r->test) ? r->layout.pieces : 1;
	a.cap.max_send_sge = sges;
	a.cap.max_recv_sge = sges + is_ud(r->test);
	a.cap.max_inline_data = r->test->flags & F_INLINE ? r->order.limit : 0;
	queue_create(&r->send, r->dev, DEPTH * r->test->qps, r->order.events);
	queue_create(&r->recv, r->dev, r->layout.pieces, r->order.events);
	for (unsigned int q = 0; q < r->test->qps; q++) {
		conn_create(&r->conn[q], r->dev, &a, &r->send, &r->recv);
		conn_connect(&r->conn[q], r->oob);
		if (r->test->flags & F_GROUP)
			join_group(r, &r->conn[q]);
	}
}

static void post_receive(struct run *r, unsigned int i)
{
	struct piece *p = &r->layout.piece[i];
	struct ibv_sge sge[PARTS_MAX + 1];
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sge };
	struct ibv_recv_wr *bad;
	int err;

	if (is_ud(r->test))
		sge[wr.num_sge++] = (struct ibv_sge){ (uintptr_t)r->grh[i], GRH, r->grh_mr->lkey };
	for (unsigned int k = 0; r->test->op != WRITE_IMM && k < p->parts[SERVER]; k++) {
		struct part *part = &p->part[SERVER][k];

		sge[wr.num_sge++] = (struct ibv_sge){ (uintptr_t)r->area.base + part->off, part->len,
						      lkey(r, i) };
	}
	/* Some receives have more room than the message needs: that room must stay unchanged. */
	if (r->test->op != WRITE_IMM && i % 2 && !(r->test->flags & F_OWN_MR))
		sge[wr.num_sge - 1].length += 16;
	err = ibv_post_recv(r->conn[i % r->test->qps].qp, &wr, &bad);
	if (err)
		bail("ibv_post_recv of piece %u: %s", i, strerror(err));
}

static const enum ibv_wr_opcode wr_opcode[] = {
	[SEND] = IBV_WR_SEND, [SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[WRITE] = IBV_WR_RDMA_WRITE, [WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[READ] = IBV_WR_RDMA_READ, [CMP_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[UD_SEND] = IBV_WR_SEND, [UD_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
};

static const enum ibv_wc_opcode wc_opcode[] = {
	[SEND] = IBV_WC_SEND, [SEND_IMM] = IBV_WC_SEND, [WRITE] = IBV_WC_RDMA_WRITE,
	[WRITE_IMM] = IBV_WC_RDMA_WRITE, [READ] = IBV_WC_RDMA_READ,
	[CMP_SWAP] = IBV_WC_COMP_SWAP, [FETCH_ADD] = IBV_WC_FETCH_ADD,
	[UD_SEND] = IBV_WC_SEND, [UD_SEND_IMM] = IBV_WC_SEND,
};

/* Fill the part of a work request that depends on the kind of operation. */
static void aim(struct run *r, unsigned int i, struct ibv_send_wr *wr)
{
	struct piece *p = &r->layout.piece[i];
	struct conn *c = &r->conn[i % r->test->qps];

	if (is_ud(r->test)) {
		wr->wr.ud.ah = c->ah;
		wr->wr.ud.remote_qpn = c->there.qpn;
		wr->wr.ud.remote_qkey = QKEY;
	} else if (is_atomic(r->test)) {
		uint64_t before = pattern_word(p->seed), after = pattern_word(p->after);

		wr->wr.atomic.remote_addr = r->remote[i].addr;
		wr->wr.atomic.rkey = r->remote[i].rkey;
		wr->wr.atomic.compare_add = after - before;
		if (r->test->op == CMP_SWAP) {
			/* every second one compares unequal and must change nothing */
			wr->wr.atomic.compare_add = i % 2 ? ~before : before;
			wr->wr.atomic.swap = i % 2 ? 0 : after;
		}
	} else {
		wr->wr.rdma.remote_addr = r->remote[i].addr;
		wr->wr.rdma.rkey = r->remote[i].rkey;
	}
}

static bool is_signaled(struct run *r, unsigned int i)
{
	unsigned int nth = i / r->test->qps;

	return (nth + 1) % r->test->signal_every == 0 || i + r->test->qps >= r->layout.pieces;
}

static void post_send(struct run *r, unsigned int i)
{
	struct piece *p = &r->layout.piece[i];
	struct ibv_sge sge[PARTS_MAX];
	struct ibv_send_wr wr = {
		.wr_id = i,
		.sg_list = sge,
		.num_sge = p->parts[CLIENT],
		.opcode = wr_opcode[r->test->op],
		.imm_data = imm_of(i),
	};
	struct ibv_send_wr *bad;
	size_t done = 0;
	int err;

	for (unsigned int k = 0; k < p->parts[CLIENT]; k++) {
		struct part *part = &p->part[CLIENT][k];
		uint8_t *at = r->area.base + part->off;

		if (r->test->flags & F_INLINE) {
			at = memcpy(r->scratch + done, at, part->len);
			done += part->len;
		}
		sge[k] = (struct ibv_sge){ (uintptr_t)at, part->len, lkey(r, i) };
		if (r->test->flags & F_INLINE)
			sge[k].lkey = 0xdead;
	}
	if (r->test->flags & F_INLINE)
		wr.send_flags |= IBV_SEND_INLINE;
	if (is_signaled(r, i))
		wr.send_flags |= IBV_SEND_SIGNALED;
	aim(r, i, &wr);
	err = ibv_post_send(r->conn[i % r->test->qps].qp, &wr, &bad);
	if (err)
		bail("ibv_post_send of piece %u: %s", i, strerror(err));
	r->in_flight[i % r->test->qps]++;
	/* inline data is copied at once, so its source may change */
	memset(r->scratch, 0xee, done);
}

/* Take one completion of the send queue; true if it succeeded. */
static bool reap(struct run *r, unsigned int *expected)
{
	unsigned int q, due;
	struct ibv_wc wc;

	if (!queue_wait(&r->send, &wc, WAIT)) {
		verdict_fail(&r->verdict, "no completion within %.0f s", WAIT);
		return false;
	}
	if (wc.status != IBV_WC_SUCCESS) {
		verdict_fail(&r->verdict, "piece %llu (%zu bytes): %s, vendor_err %#x",
			     (unsigned long long)wc.wr_id, r->layout.piece[wc.wr_id % PIECES_MAX].len,
			     ibv_wc_status_str(wc.status), wc.vendor_err);
		return false;
	}
	q = wc.wr_id % r->test->qps;
	for (due = expected[q]; !is_signaled(r, due); due += r->test->qps)
		r->in_flight[q]--;
	r->in_flight[q]--;
	expected[q] = due + r->test->qps;
	if (wc.wr_id != due || wc.qp_num != r->conn[q].here.qpn || wc.opcode != wc_opcode[r->test->op]) {
		verdict_fail(&r->verdict, "completion of piece %llu, opcode %d, qp %u; expected %u, %d, %u",
			     (unsigned long long)wc.wr_id, wc.opcode, wc.qp_num, due,
			     wc_opcode[r->test->op], r->conn[q].here.qpn);
		return false;
	}
	return true;
}

static void send_all(struct run *r)
{
	unsigned int expected[QPS_MAX], n = r->layout.pieces, qps = r->test->qps;
	bool good = true;

	for (unsigned int q = 0; q < qps; q++)
		expected[q] = q;
	for (unsigned int i = 0; good && i < n; i++) {
		while (good && r->in_flight[i % qps] == DEPTH)
			good = reap(r, expected);
		if (good)
			post_send(r, i);
	}
	for (unsigned int q = 0; q < qps; q++)
		while (good && r->in_flight[q])
			good = reap(r, expected);
}

/*
 * The area in front of a datagram contains its IPv6 header, or 20 unused bytes and its IPv4
 * header.
 */
static void check_grh(struct run *r, unsigned int i)
{
	const union ibv_gid *from = &r->conn[0].there.gid;
	const union ibv_gid *to = r->test->flags & F_GROUP ? group_of(r) : &r->dev->gid;
	const uint8_t *ip = r->grh[i];
	bool good;

	if (gid_is_ipv4(&r->dev->gid))
		good = ip[20] == 0x45 && !memcmp(ip + 32, from->raw + 12, 4) &&
		       !memcmp(ip + 36, to->raw + 12, 4);
	else
		good = ip[0] >> 4 == 6 && !memcmp(ip + 8, from, 16) && !memcmp(ip + 24, to, 16);
	if (!good)
		verdict_fail(&r->verdict, "piece %u: no IP header of this pair in front of it", i);
}

static void check_receive(struct run *r, struct ibv_wc *wc, unsigned int due)
{
	const struct test *t = r->test;
	size_t len = r->layout.piece[due].len + (is_ud(t) ? GRH : 0);
	struct conn *c = &r->conn[due % t->qps];
	enum ibv_wc_opcode opcode = t->op == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;

	if (wc->wr_id != due || wc->qp_num != c->here.qpn || wc->opcode != opcode)
		verdict_fail(&r->verdict, "receive %llu, opcode %d, qp %u; expected %u, %d, %u",
			     (unsigned long long)wc->wr_id, wc->opcode, wc->qp_num, due, opcode,
			     c->here.qpn);
	if (wc->byte_len != len)
		verdict_fail(&r->verdict, "receive %u has %u bytes, expected %zu", due, wc->byte_len,
			     len);
	if (!!(wc->wc_flags & IBV_WC_WITH_IMM) != with_imm(t) ||
	    (with_imm(t) && wc->imm_data != imm_of(due)))
		verdict_fail(&r->verdict, "receive %u: flags %#x, immediate %08x", due, wc->wc_flags,
			     ntohl(wc->imm_data));
	if (is_ud(t)) {
		if (wc->src_qp != c->there.qpn || !(wc->wc_flags & IBV_WC_GRH))
			verdict_fail(&r->verdict, "receive %u: from QP %u, flags %#x", due, wc->src_qp,
				     wc->wc_flags);
		check_grh(r, due);
	}
}

static void receive_all(struct run *r)
{
	unsigned int expected[QPS_MAX];
	struct ibv_wc wc;

	for (unsigned int q = 0; q < r->test->qps; q++)
		expected[q] = q;
	for (unsigned int i = 0; i < r->layout.pieces && !r->verdict.bad; i++) {
		unsigned int q;

		if (!queue_wait(&r->recv, &wc, WAIT)) {
			verdict_fail(&r->verdict, "%u of %u receives completed within %.0f s", i,
				     r->layout.pieces, WAIT);
			return;
		}
		if (wc.status != IBV_WC_SUCCESS) {
			verdict_fail(&r->verdict, "receive %llu: %s", (unsigned long long)wc.wr_id,
				     ibv_wc_status_str(wc.status));
			return;
		}
		q = wc.wr_id % r->test->qps;
		check_receive(r, &wc, expected[q]);
		expected[q] += r->test->qps;
	}
}

static void compare(struct run *r)
{
	bool after = is_atomic(r->test) && r->end == SERVER;
	uint64_t mine, theirs;

	if (r->order.spoil && !is_source(r->test, r->end))
		r->area.base[r->layout.piece[3].part[r->end][0].off] ^= 0x10;
	mine = area_check(&r->area, &r->layout, r->end, after, &r->verdict);
	oob_swap(r->oob, &mine, &theirs, sizeof(mine));
	if (mine != theirs && !is_atomic(r->test))
		verdict_fail(&r->verdict, "checksum %016llx here, %016llx at the other end",
			     (unsigned long long)mine, (unsigned long long)theirs);
}

static void release(struct run *r)
{
	for (unsigned int q = 0; q < r->test->qps; q++) {
		if (r->test->flags & F_GROUP)
			leave_group(r, &r->conn[q]);
		conn_destroy(&r->conn[q]);
	}
	queue_destroy(&r->send);
	queue_destroy(&r->recv);
	for (unsigned int i = 0; i < r->layout.pieces; i++)
		if (r->mr[i] && ibv_dereg_mr(r->mr[i]))
			bail("cannot deregister memory");
	if (r->grh_mr && ibv_dereg_mr(r->grh_mr))
		bail("cannot deregister memory");
	area_destroy(&r->area);
	free(r->scratch);
}

/* Run at both ends, in step. Return false if this end lacks the memory; nothing was done. */
static bool run_test(struct run *r)
{
	bool gathers = r->test->flags & F_SGE;
	bool scatters = gathers && (r->test->op == SEND || r->test->op == UD_SEND);
	unsigned int parts[2] = { gathers ? r->order.parts : 1, scatters ? r->order.parts : 1 };
	uint8_t have, other_has;

	layout_make(&r->layout, r->test->lengths, r->dev->mtu, r->order.limit, parts);
	have = area_create(&r->area, r->layout.size[r->end], r->test->flags & F_HUGE);
	oob_swap(r->oob, &have, &other_has, 1);
	if (!have || !other_has) {
		if (have)
			area_destroy(&r->area);
		return false;
	}
	r->scratch = malloc(r->test->flags & F_INLINE ? r->order.limit + 1 : 1);
	area_fill(&r->area, &r->layout, r->end, is_source(r->test, r->end));
	register_memory(r);
	create_qps(r);
	for (unsigned int i = 0; r->end == SERVER && takes_receive(r->test) && i < r->layout.pieces; i++)
		post_receive(r, i);
	oob_barrier(r->oob);
	if (r->end == CLIENT)
		send_all(r);
	else if (takes_receive(r->test))
		receive_all(r);
	oob_barrier(r->oob);
	compare(r);
	release(r);
	return true;
}

static struct run *run_new(struct dev *d, struct oob *o, const struct order *order)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r || order->test >= TESTS)
		bail("cannot run test %u", order->test);
	r->dev = d;
	r->oob = o;
	r->order = *order;
	r->test = &tests[order->test];
	r->end = o->server ? SERVER : CLIENT;
	return r;
}

static void serve(const char *device, int gid_index)
{
	int listener = oob_listen(OOB_PORT);
	struct order order;
	struct oob oob;
	struct dev dev;

	printf("listening\n");
	fflush(stdout);
	while (oob_accept(&oob, listener)) {
		dev_open(&dev, device, gid_index);
		while (oob_recv(&oob, &order, sizeof(order))) {
			struct run *r = run_new(&dev, &oob, &order);
			struct verdict theirs;

			if (run_test(r))
				oob_swap(&oob, &r->verdict, &theirs, sizeof(theirs));
			free(r);
		}
		dev_close(&dev);
		oob_close(&oob);
	}
}

/* Return the largest relevant inline size that a queue pair supports. */
static unsigned int probe_inline(struct dev *d, unsigned int sges)
{
	struct queue q;
	unsigned int n = 1024;

	queue_create(&q, d, 8, false);
	for (; n; n /= 2) {
		struct ibv_qp_init_attr init = {
			.send_cq = q.cq, .recv_cq = q.cq, .qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = sges,
				 .max_recv_sge = sges, .max_inline_data = n },
		};
		struct ibv_qp *qp = ibv_create_qp(d->pd, &init);

		if (qp) {
			ibv_destroy_qp(qp);
			break;
		}
	}
	queue_destroy(&q);
	return n;
}

static void ask(struct dev *d, struct oob *o, const struct order *order)
{
	const struct test *t = &tests[order->test];
	struct run *r = run_new(d, o, order);
	struct verdict theirs;

	if ((t->flags & F_INLINE) && order->limit == 0) {
		tap_skip(t->name, "the device has no inline data");
	} else {
		oob_send(o, order, sizeof(*order));
		if (run_test(r)) {
			oob_swap(o, &r->verdict, &theirs, sizeof(theirs));
			tap_point(t->name, &r->verdict, &theirs);
		} else {
			tap_skip(t->name, t->flags & F_HUGE ? "no free huge pages" : "too little memory");
		}
	}
	free(r);
}

static void ask_all(struct dev *d, struct oob *o, char **names, struct order order, size_t big)
{
	unsigned int max = d->attr.max_sge - 1;	/* one more is needed for the GRH of a datagram */

	order.parts = max < PARTS_MAX ? max : PARTS_MAX;
	for (order.test = 0; order.test < TESTS; order.test++) {
		const struct test *t = &tests[order.test];

		if (!tap_chosen(t->name, names))
			continue;
		order.limit = SIZE_MAX >> 1;
		if (t->lengths == LEN_BIG)
			order.limit = big;
		if (is_ud(t))
			order.limit = d->mtu;
		if (t->flags & F_INLINE)
			order.limit = probe_inline(d, t->flags & F_SGE ? order.parts : 1);
		ask(d, o, &order);
	}
}

static void usage(void)
{
	fprintf(stderr, "usage: verbs_data -d DEVICE [-g GID_INDEX] [-6] [-e] [-b BIG_BYTES] [-x] [-w] [SERVER [TEST...]]\n"
		"tests:");
	for (size_t i = 0; i < TESTS; i++)
		fprintf(stderr, " %s", tests[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	struct order order = { .psn = PSN_ANY };
	size_t big = 1ul << 30;
	int gid_index = GID_IPV4, option;
	struct oob oob;
	struct dev dev;

	while ((option = getopt(argc, argv, "d:g:b:6ewx")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'g')
			gid_index = atoi(optarg);
		else if (option == 'b')
			big = strtoull(optarg, NULL, 0);
		else if (option == '6')
			gid_index = GID_IPV6;
		else if (option == 'e')
			order.events = 1;
		else if (option == 'w')
			order.psn = LAST_PSNS;
		else if (option == 'x')
			order.spoil = 1;
		else
			usage();
	}
	if (!device)
		usage();
	if (optind == argc) {
		serve(device, gid_index);
		return 1;
	}
	oob_connect(&oob, argv[optind], OOB_PORT);
	dev_open(&dev, device, gid_index);
	ask_all(&dev, &oob, argv + optind + 1, order, big);
	dev_close(&dev);
	oob_close(&oob);
	return tap_end();
}
