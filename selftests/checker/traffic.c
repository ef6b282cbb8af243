// SPDX-License-Identifier: GPL-2.0
/*
 * Traffic of two devices over a bad network, as a capture for the checker and for other
 * dissectors: the daemon's engine in this process, with a simulated clock.
 *
 * traffic FILE [KEY=VALUE]...
 *	seed=N drop=N twice=N late=N	of 1000 packets (lossy.h)
 *	ce=N				of 1000 packets get a congestion mark
 *	batches=N			of work requests
 *	type=rc|uc			of the queue pairs
 *	rnr=N				of 1000 receives that are posted late
 *	both=1				the second device sends requests, too
 *	reads=N				READs and atomics in flight
 *	timeout=CODE			local ACK timeout
 *	pause=US			between some work requests and others, and seconds at the end
 *	break=NAME			fault of the transport (broken.c)
 *	opcodes=1			no queue pairs: a packet of every opcode and form
 *
 * Exits with 0 if every work request succeeded, or if break= is set.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broken.h"
#include "capture/capture.h"
#include "log.h"
#include "lossy.h"
#include "packet/ip.h"

#define ALL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | \
		 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC | \
		 ORNIC_ACCESS_FLUSH_GLOBAL)

#define BATCH		40
#define SLOTS		(BATCH + 1)
#define SLOT		20480
#define FOREVER_NS	1000000000000ull
#define FIRST_PSN	0xffff80
#define END_NS		3000000000ull	/* a silence that is long enough to judge */

/** struct options - the command line */
struct options {
	uint64_t seed;
	uint32_t drop, twice, late, ce;
	uint32_t batches;
	uint32_t rnr;
	uint32_t timeout;
	uint32_t pause;
	uint32_t both;
	uint32_t reads;
	uint8_t type;
	bool opcodes;
};

/** struct receive - a receive that is posted late */
struct receive {
	uint64_t addr;
	uint32_t len;
};

/**
 * struct net - two devices and a queue pair on each
 * @abuf, @bbuf:	@SLOTS of @SLOT bytes
 * @late:	@nlate receives that @b is to get
 */
struct net {
	struct options opt;
	struct world w;
	struct lossy l;
	struct captures cs;
	struct conn a, b;
	uint64_t abuf, bbuf;
	uint32_t akey, bkey;
	struct receive late[BATCH];
	uint32_t nlate;
};

static void give_up(const char *what)
{
	fprintf(stderr, "traffic: %s\n", what);
	exit(1);
}

/* ---- queue pairs --------------------------------------------------------------- */

static void set_attributes(struct conn *c, const struct options *o)
{
	c->qp.access |= ORNIC_ACCESS_FLUSH_GLOBAL;
	c->qp.timeout = o->timeout;
	c->qp.max_rd_atomic = o->reads;
	c->qp.max_dest_rd_atomic = o->reads;
}

static void net_init(struct net *n, const struct options *o)
{
	const struct conn_opt a = { .type = o->type };
	const struct conn_opt b = { .type = o->type };

	n->opt = *o;
	conn_init(&n->a, &n->w.dut[0], &a);
	conn_init(&n->b, &n->w.dut[1], &b);
	conn_pair(&n->a, &n->b, FIRST_PSN, 0x123456);
	set_attributes(&n->a, o);
	set_attributes(&n->b, o);
	memcpy(n->a.qp.path.dmac, n->l.mac, 6);
	memcpy(n->b.qp.path.dmac, n->l.mac, 6);
	n->abuf = dut_buf(n->a.d, SLOTS * SLOT);
	n->bbuf = dut_buf(n->b.d, SLOTS * SLOT);
	n->akey = dut_key(n->a.d, NULL, n->abuf, SLOTS * SLOT, ALL);
	n->bkey = dut_key(n->b.d, NULL, n->bbuf, SLOTS * SLOT, ALL);
}

static void net_fini(struct net *n)
{
	conn_fini(&n->a);
	conn_fini(&n->b);
}

static void post_receive(struct net *n, uint64_t addr, uint32_t len)
{
	if (lossy_random(&n->l, 1000) < n->opt.rnr)
		n->late[n->nlate++] = (struct receive) { addr, len };
	else if (n->nlate)	/* receives are taken in order */
		n->late[n->nlate++] = (struct receive) { addr, len };
	else
		conn_recv(&n->b, addr, len, n->bkey);
}

static void post_late(struct net *n)
{
	for (uint32_t i = 0; i < n->nlate; i++)
		conn_recv(&n->b, n->late[i].addr, n->late[i].len, n->bkey);
	n->nlate = 0;
}

static bool takes_receive(uint8_t opcode)
{
	return opcode == ORNIC_WR_SEND || opcode == ORNIC_WR_SEND_IMM ||
	       opcode == ORNIC_WR_RDMA_WRITE_IMM;
}

static const uint8_t all_opcodes[] = {
	ORNIC_WR_SEND, ORNIC_WR_SEND_IMM, ORNIC_WR_RDMA_WRITE_IMM, ORNIC_WR_RDMA_WRITE,
	ORNIC_WR_RDMA_READ, ORNIC_WR_RDMA_READ, ORNIC_WR_FETCH_ADD, ORNIC_WR_COMP_SWAP,
	ORNIC_WR_FLUSH, ORNIC_WR_ATOMIC_WRITE,
};

#define OPCODES_OF_UC	4	/* the first entries */
#define TAKE_RECEIVE	3	/* of them use up a receive */

/* Operations of a type, with their frequency. */
static uint8_t random_opcode(struct net *n, bool receives)
{
	uint32_t from = receives ? 0 : TAKE_RECEIVE;
	uint32_t to = n->opt.type == ORNIC_QPT_UC ? OPCODES_OF_UC : sizeof(all_opcodes);

	return all_opcodes[from + lossy_random(&n->l, to - from)];
}

static uint32_t random_len(struct net *n, uint8_t opcode)
{
	if (opcode == ORNIC_WR_FETCH_ADD || opcode == ORNIC_WR_COMP_SWAP ||
	    opcode == ORNIC_WR_ATOMIC_WRITE)
		return 8;
	return lossy_random(&n->l, lossy_random(&n->l, 4) ? 3000 : SLOT);
}

/*
 * Post a random operation between slots @slot of the two sides; @receives: the peer posts
 * receives.
 */
static void post(struct net *n, struct conn *from, uint32_t slot, bool receives)
{
	bool first = from == &n->a;
	uint64_t at = (uint64_t)slot * SLOT;
	struct wr wr = {
		.flags = ORNIC_WQE_SIGNALED,
		.raddr = (first ? n->bbuf : n->abuf) + at,
		.rkey = first ? n->bkey : n->akey,
	};
	uint32_t len;

	wr.opcode = random_opcode(n, receives);
	len = random_len(n, wr.opcode);
	wr.imm = htobe32(slot);
	wr.swap_add = slot;
	if (wr.opcode == ORNIC_WR_FLUSH) {
		wr.flush.type = ORNIC_FLUSH_GLOBAL;
		wr.flush.length = htole64(len);
	} else {
		wr_sge(&wr, (first ? n->abuf : n->bbuf) + at, len, first ? n->akey : n->bkey);
	}
	if (takes_receive(wr.opcode))
		post_receive(n, n->bbuf + at, SLOT);
	conn_send(from, &wr);
}

/* Return: completions of @c; those with an error are a failure, unless the fault causes it. */
static uint32_t reap(struct conn *c)
{
	struct ornic_cqe cqe;
	uint32_t done = 0;

	while (conn_poll(c, &c->hscq, &cqe)) {
		if (cqe.status && !broken_anything())
			give_up("a work request ended with an error");
		done++;
	}
	while (conn_poll(c, &c->hrcq, &cqe))
		;
	return done;
}

/* A pause of 0 lasts until the next timer, if there is one */
static void run_a_while(struct net *n)
{
	lossy_run(&n->l, 0);
	if (n->opt.pause)
		world_pass(&n->w, n->opt.pause * 1000ull);
}

static void run_queue_pairs(struct net *n)
{
	for (uint32_t i = 0; i < n->opt.batches; i++) {
		uint32_t want = BATCH * (1 + n->opt.both), done;

		for (uint32_t slot = 1; slot <= BATCH; slot++) {
			post(n, &n->a, slot, true);
			if (n->opt.both)
				post(n, &n->b, slot, false);
			if (!lossy_random(&n->l, 3))
				run_a_while(n);
		}
		while (n->nlate) {
			lossy_run(&n->l, 3000000);
			post_late(n);
		}
		lossy_run(&n->l, FOREVER_NS);
		done = reap(&n->a) + reap(&n->b);
		if (done != want && !broken_anything())
			give_up("a work request did not complete");
	}
	if (n->opt.pause)
		world_spend(END_NS);
}

/* ---- every opcode ---------------------------------------------------------------- */

static const uint8_t opcodes[] = {
	BTH_RC_SEND_FIRST, BTH_RC_SEND_MIDDLE, BTH_RC_SEND_LAST, BTH_RC_SEND_LAST_IMM,
	BTH_RC_SEND_ONLY, BTH_RC_SEND_ONLY_IMM, BTH_RC_WRITE_FIRST, BTH_RC_WRITE_MIDDLE,
	BTH_RC_WRITE_LAST, BTH_RC_WRITE_LAST_IMM, BTH_RC_WRITE_ONLY, BTH_RC_WRITE_ONLY_IMM,
	BTH_RC_READ_REQUEST, BTH_RC_READ_RESP_FIRST, BTH_RC_READ_RESP_MIDDLE,
	BTH_RC_READ_RESP_LAST, BTH_RC_READ_RESP_ONLY, BTH_RC_ACK, BTH_RC_ATOMIC_ACK,
	BTH_RC_COMPARE_SWAP, BTH_RC_FETCH_ADD, BTH_RC_SEND_LAST_INV, BTH_RC_SEND_ONLY_INV,
	BTH_RC_FLUSH, BTH_RC_ATOMIC_WRITE,
};

#define UC_OPCODES	12	/* the first ones */

static bool has_payload(uint8_t operation)
{
	switch (operation) {
	case BTH_RC_READ_REQUEST:
	case BTH_RC_ACK:
	case BTH_RC_ATOMIC_ACK:
	case BTH_RC_COMPARE_SWAP:
	case BTH_RC_FETCH_ADD:
	case BTH_RC_FLUSH:
		return false;
	default:
		return true;
	}
}

static void send_opcode(struct world *w, uint8_t opcode, uint32_t len, bool v6, bool vlan)
{
	static uint32_t psn = 0xfffff0;
	struct dut *from = &w->dut[0], *to = &w->dut[1];
	struct packet *p = packet_get(&w->e.pool);
	static uint8_t payload[256];

	assert_non_null(p);
	p->kind = PACKET_ROCE;
	memcpy(p->smac, from->dev.port.mac, 6);
	memcpy(p->dmac, to->dev.port.mac, 6);
	dut_gid(from, v6, p->sgid);
	dut_gid(to, v6, p->dgid);
	p->vlan = vlan;
	p->vlan_tci = 3 << 13 | 100;
	p->flow_label = 0x12345;
	p->udp_sport = 0xc123;
	p->tclass = 0x6a;
	p->hop_limit = 64;
	p->opcode = opcode;
	p->pkey = BTH_DEFAULT_PKEY;
	p->dqpn = 0x12;
	p->sqpn = 0x34;
	p->psn = psn++ & BTH_PSN_MASK;
	p->npsn = 1;
	p->mtu = 256;
	p->qkey = 0x80010000;
	p->srqn = 0x56;
	p->va = 0x7f0012345678;
	p->rkey = 0x9abc;
	p->dmalen = len;
	p->swap_add = 1;
	p->compare = 2;
	p->feth = 0x11;
	p->aeth = AETH_ACK | AETH_NO_CREDITS;
	p->msn = 7;
	p->atomic_ack = 3;
	p->imm = htobe32(0x01020304);
	for (uint32_t i = 0; i < len; i++)
		payload[i] = i + opcode;
	p->len = has_payload(bth_operation(opcode)) ? len : 0;
	p->seg[0] = (struct seg) { payload, p->len };
	p->nseg = p->len ? 1 : 0;
	switch_send(from->dev.port.sw, p);
	engine_drain(&w->e);
}

/* All transports and addresses; lengths that need each kind of pad. */
static void run_opcodes(struct world *w)
{
	static const uint8_t transports[] = { BTH_TRANSPORT_RC, BTH_TRANSPORT_UC, BTH_TRANSPORT_XRC };
	static const uint8_t ud[] = { BTH_UD_SEND_ONLY, BTH_UD_SEND_ONLY_IMM };

	for (int form = 0; form < 4; form++) {
		bool v6 = form & 1, vlan = form & 2;

		for (size_t t = 0; t < sizeof(transports); t++) {
			size_t count = transports[t] == BTH_TRANSPORT_UC ? UC_OPCODES : sizeof(opcodes);

			for (size_t i = 0; i < count; i++)
				send_opcode(w, transports[t] | opcodes[i],
					    opcodes[i] == BTH_RC_ATOMIC_WRITE ? 8 : 61 + i % 4, v6, vlan);
		}
		for (size_t i = 0; i < sizeof(ud); i++)
			send_opcode(w, ud[i], 31 + i, v6, vlan);
		send_opcode(w, BTH_CNP, 0, v6, vlan);
	}
}

/* ---- all of it ------------------------------------------------------------------- */

static void start_capture(struct net *n, const char *path)
{
	struct capture_spec spec;
	char text[512], why[256];
	uint32_t id;

	snprintf(text, sizeof(text), "%s,device=vm1,device=vm2,buffer=512M", path);
	if (capture_spec_parse(&spec, text, why, sizeof(why)) ||
	    captures_start(&n->cs, &spec, &id, why, sizeof(why)))
		give_up(why);
	capture_spec_free(&spec);
}

static uint8_t type_of(const char *name)
{
	if (!strcmp(name, "rc"))
		return ORNIC_QPT_RC;
	if (!strcmp(name, "uc"))
		return ORNIC_QPT_UC;
	give_up("type is rc or uc");
	return 0;
}

static void option(struct options *o, char *text)
{
	char *val = strchr(text, '=');
	const struct {
		const char *key;
		uint32_t *to;
	} numbers[] = {
		{ "drop", &o->drop }, { "twice", &o->twice }, { "late", &o->late },
		{ "ce", &o->ce },
		{ "batches", &o->batches }, { "rnr", &o->rnr }, { "timeout", &o->timeout },
		{ "pause", &o->pause }, { "both", &o->both }, { "reads", &o->reads },
	};

	if (!val)
		give_up(text);
	*val++ = '\0';
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (!strcmp(text, numbers[i].key)) {
			*numbers[i].to = strtoul(val, NULL, 0);
			return;
		}
	}
	if (!strcmp(text, "seed"))
		o->seed = strtoull(val, NULL, 0);
	else if (!strcmp(text, "type"))
		o->type = type_of(val);
	else if (!strcmp(text, "opcodes"))
		o->opcodes = true;
	else if (strcmp(text, "break") || !broken_set(val))
		give_up(text);
}

int main(int argc, char **argv)
{
	struct options o = {
		.seed = 1, .batches = 4, .timeout = 14, .reads = 4, .type = ORNIC_QPT_RC,
	};
	struct net *n = calloc(1, sizeof(*n));

	if (argc < 2)
		give_up("which file?");
	for (int i = 2; i < argc; i++)
		option(&o, argv[i]);
	log_setup(LOG_WARN, false);
	world_init(&n->w, 0);
	lossy_init(&n->l, &n->w, o.seed);
	n->l.split = true;
	if (captures_init(&n->cs, n->w.e.sw, n->w.e.clock))
		give_up("no captures");
	start_capture(n, argv[1]);
	if (o.opcodes) {
		run_opcodes(&n->w);
	} else {
		net_init(n, &o);
		n->l.drop = o.drop;
		n->l.twice = o.twice;
		n->l.late = o.late;
		n->l.ce = o.ce;
		run_queue_pairs(n);
		net_fini(n);
	}
	captures_fini(&n->cs);
	lossy_fini(&n->l);
	world_fini(&n->w);
	free(n);
	return 0;
}
