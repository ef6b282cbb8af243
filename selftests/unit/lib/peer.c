// SPDX-License-Identifier: GPL-2.0
/*
 * A scripted peer on a port of the switch.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/switch.h"
#include "peer.h"

static void peer_deliver(void *arg, const struct packet *p)
{
	struct peer *peer = arg;
	struct seen *s = malloc(sizeof(*s));

	assert_non_null(s);
	assert_true(peer->nin < PEER_MAX);
	s->p = *p;
	s->data = malloc(p->len ? p->len : 1);
	assert_non_null(s->data);
	seg_copy_out(s->data, p->seg, p->nseg, 0, p->len);
	peer->in[peer->nin++] = s;
}

static const struct switch_port_ops peer_ops = { .deliver = peer_deliver };

void peer_init(struct peer *peer, struct world *w)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 1, 1 };
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 10, 0, 1, 1 };

	memset(peer, 0, sizeof(*peer));
	peer->w = w;
	memcpy(peer->mac, mac, sizeof(mac));
	memcpy(peer->gid, gid, sizeof(gid));
	peer->port = switch_port_add(w->e.sw, "peer", &peer_ops, peer);
	assert_non_null(peer->port);
	assert_int_equal(switch_port_set_mac(peer->port, mac), 0);
	switch_port_set_up(peer->port, true);
}

void peer_fini(struct peer *peer)
{
	for (uint32_t i = 0; i < peer->nin; i++) {
		free(peer->in[i]->data);
		free(peer->in[i]);
	}
	switch_port_del(peer->port);
}

void peer_connect(struct peer *peer, struct conn *c, uint32_t sq_psn, uint32_t rq_psn)
{
	conn_path(c, peer->mac, peer->gid);
	conn_attr(c, PEER_QPN, sq_psn, rq_psn);
	conn_rts(c);
	world_run(peer->w);
}

struct seen *peer_next(struct peer *peer)
{
	return peer->next < peer->nin ? peer->in[peer->next++] : NULL;
}

struct seen *peer_expect(struct peer *peer, uint8_t opcode, uint32_t psn, uint32_t npsn)
{
	struct seen *s = peer_next(peer);

	if (!s)
		fail_msg("nothing received, opcode %x PSN %x expected", opcode, psn);
	assert_int_equal(s->p.opcode, opcode);
	assert_int_equal(s->p.psn, psn);
	assert_int_equal(s->p.npsn, npsn);
	assert_int_equal(s->p.dqpn, PEER_QPN);
	return s;
}

void peer_expect_ack(struct peer *peer, uint8_t aeth, uint32_t psn)
{
	struct seen *s = peer_expect(peer, BTH_RC_ACK, psn, 1);

	if (aeth != (AETH_ACK | AETH_NO_CREDITS))
		assert_int_equal(s->p.aeth, aeth);
	else
		assert_int_equal(s->p.aeth & AETH_KIND_MASK, AETH_ACK);
}

void peer_quiet(struct peer *peer)
{
	struct seen *s = peer_next(peer);

	if (s)
		fail_msg("received opcode %x PSN %x AETH %x", s->p.opcode, s->p.psn, s->p.aeth);
}

struct packet *peer_packet(struct peer *peer, struct conn *c, uint8_t opcode, uint32_t psn)
{
	struct packet *p = packet_get(&peer->w->e.pool);

	assert_non_null(p);
	p->kind = PACKET_ROCE;
	memcpy(p->dmac, c->d->dev.port.mac, 6);
	memcpy(p->smac, peer->mac, 6);
	memcpy(p->sgid, peer->gid, 16);
	dut_gid(c->d, 0, p->dgid);
	p->opcode = opcode;
	p->pkey = BTH_DEFAULT_PKEY;
	p->dqpn = c->qp.wire_qpn;
	p->sqpn = PEER_QPN;
	p->psn = psn & BTH_PSN_MASK;
	p->npsn = 1;
	p->mtu = qp_mtu(&c->qp);
	p->ackreq = true;
	p->aeth = AETH_ACK | AETH_NO_CREDITS;
	return p;
}

void peer_send(struct peer *peer, struct packet *p, const void *data, uint32_t len)
{
	p->len = len;
	p->nseg = len ? 1 : 0;
	p->seg[0] = (struct seg){ (uint8_t *)data, len };
	switch_send(peer->port, p);
	engine_drain(&peer->w->e);
	world_run(peer->w);
}

void peer_ack(struct peer *peer, struct conn *c, uint32_t psn, uint8_t aeth)
{
	struct packet *p = peer_packet(peer, c, BTH_RC_ACK, psn);

	p->aeth = aeth;
	peer_send(peer, p, NULL, 0);
}

struct script *script_new(const struct conn_opt *opt, uint32_t sq_psn, uint32_t rq_psn)
{
	struct script *t = test_calloc(1, sizeof(*t));

	world_init(&t->w, 0);
	peer_init(&t->peer, &t->w);
	conn_init(&t->c, &t->w.dut[0], opt);
	peer_connect(&t->peer, &t->c, sq_psn, rq_psn);
	return t;
}

int script_teardown(void **state)
{
	struct script *t = *state;

	conn_fini(&t->c);
	peer_fini(&t->peer);
	world_fini(&t->w);
	test_free(t);
	return 0;
}
