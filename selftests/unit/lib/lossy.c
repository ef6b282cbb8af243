// SPDX-License-Identifier: GPL-2.0
/*
 * A bad network between two functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lossy.h"
#include "net/switch.h"
#include "packet/bth.h"
#include "packet/ecn.h"
#include "packet/roce.h"

/* Limit of packets that are late at the same time. */
#define LATE_MAX	8

uint32_t lossy_random(struct lossy *l, uint32_t below)
{
	l->seed = l->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (l->seed >> 33) % below;
}

/* Copy wire packet @i of @p, or all of @p. */
static struct held *hold(const struct packet *p, uint32_t i, bool all)
{
	uint32_t off = all ? 0 : i * p->mtu;
	uint32_t len = all || p->len - off < p->mtu ? p->len - off : p->mtu;
	struct held *h = malloc(sizeof(*h) + len);

	assert_non_null(h);
	h->p = *p;
	seg_copy_out(h->data, p->seg, p->nseg, off, len);
	if (!all) {
		h->p.len = len;
		h->p.psn = (p->psn + i) & BTH_PSN_MASK;
		h->p.npsn = 1;
		h->p.ackreq = i == p->npsn - 1 && p->ackreq;
		h->p.opcode = roce_opcode(p, i);
	}
	return h;
}

/* Pass @h on to the function that has its destination GID. */
static void pass(struct lossy *l, struct held *h)
{
	struct packet *p = packet_get(&l->w->e.pool);
	struct dut *d = l->w->dut;
	uint8_t gid[16];

	assert_non_null(p);
	memcpy(p, &h->p, offsetof(struct packet, seg));
	if (l->ce && p->opcode != BTH_CNP && lossy_random(l, 1000) < l->ce)
		p->tclass |= ECN_CE;
	p->loopback = false;
	p->to = NULL;
	p->nseg = p->len ? 1 : 0;
	p->seg[0] = (struct seg){ h->data, p->len };
	for (int i = 0; i < DUTS; i++) {
		dut_gid(&d[i], 0, gid);
		if (!memcmp(gid, p->dgid, 16))
			memcpy(p->dmac, d[i].dev.port.mac, 6);
	}
	TAILQ_INSERT_TAIL(&l->sent, h, link);
	l->passed++;
	switch_send(l->port, p);
}

static void wait_for_later(struct lossy *l, struct held *h)
{
	TAILQ_INSERT_TAIL(&l->wait, h, link);
	l->nwait++;
}

static void pass_one_late(struct lossy *l)
{
	struct held *h = TAILQ_FIRST(&l->wait);

	for (uint32_t n = lossy_random(l, l->nwait); n; n--)
		h = TAILQ_NEXT(h, link);
	TAILQ_REMOVE(&l->wait, h, link);
	l->nwait--;
	pass(l, h);
}

static void deliver_one(struct lossy *l, const struct packet *p, uint32_t i)
{
	uint32_t dice = lossy_random(l, 1000);

	if (dice < l->drop) {
		l->dropped++;
		return;
	}
	dice -= l->drop;
	if (dice < l->late) {
		wait_for_later(l, hold(p, i, !l->split));
		l->delayed++;
		if (l->nwait > LATE_MAX)
			pass_one_late(l);
		return;
	}
	pass(l, hold(p, i, !l->split));
	if (dice - l->late < l->twice) {
		l->doubled++;
		wait_for_later(l, hold(p, i, !l->split));
	}
	if (l->nwait && !lossy_random(l, 4))
		pass_one_late(l);
}

static void lossy_deliver(void *arg, const struct packet *p)
{
	struct lossy *l = arg;

	for (uint32_t i = 0; i < (l->split ? p->npsn : 1); i++)
		deliver_one(l, p, i);
}

static const struct switch_port_ops lossy_ops = { .deliver = lossy_deliver };

void lossy_init(struct lossy *l, struct world *w, uint64_t seed)
{
	memset(l, 0, sizeof(*l));
	l->w = w;
	l->seed = seed;
	memcpy(l->mac, (uint8_t[]){ 2, 0, 0, 0, 2, 1 }, 6);
	TAILQ_INIT(&l->wait);
	TAILQ_INIT(&l->sent);
	l->port = switch_port_add(w->e.sw, "lossy", &lossy_ops, l);
	assert_non_null(l->port);
	assert_int_equal(switch_port_set_mac(l->port, l->mac), 0);
	switch_port_set_up(l->port, true);
}

static void drop_sent(struct lossy *l)
{
	struct held *h;

	while ((h = TAILQ_FIRST(&l->sent))) {
		TAILQ_REMOVE(&l->sent, h, link);
		free(h);
	}
}

void lossy_fini(struct lossy *l)
{
	TAILQ_CONCAT(&l->sent, &l->wait, link);
	drop_sent(l);
	switch_port_del(l->port);
}

void lossy_run(struct lossy *l, uint64_t ns)
{
	int64_t next = world_run(l->w);

	for (uint64_t done = 0; done <= ns; done += next) {
		drop_sent(l);
		if (l->nwait) {
			pass_one_late(l);
			engine_drain(&l->w->e);
			next = world_run(l->w);
			if (!next)
				continue;
		}
		if (!l->nwait && next < 0)
			break;
		if (l->nwait && lossy_random(l, 8)) {
			next = 0;
			continue;
		}
		if (next < 0) {
			next = 0;
			continue;
		}
		world_pass(l->w, next);
	}
	drop_sent(l);
}
