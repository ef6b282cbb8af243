// SPDX-License-Identifier: GPL-2.0
/* net/vlan.c and VLANs of the switch: the receivers of a frame, and its tag. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/egress.h"
#include "net/switch.h"
#include "net/vlan.h"
#include "packet/bth.h"
#include "packet/ip.h"
#include "packet/wire.h"

#define PACKETS		4
#define UNTAGGED	-1

/* The first two are in one VLAN, the third in another, the last two in none. */
enum { A, B, OTHER, TRUNK, TRUNK2, PORTS };

/** enum form - forms of packets: generated here, from a guest's pieces, or received from a wire */
enum form { ROCE, PIECES, ROCE_FRAME, FRAME, BAD_FRAME, FORMS };

struct end {
	struct switch_port *port;
	uint32_t len;
	uint8_t frame[FRAMES_MAX_BYTES];
	uint8_t payload[FRAMES_MAX_BYTES];
	struct packet packet;
};

struct fixture {
	struct packet_pool pool;
	struct net_switch *sw;
	struct end end[PORTS];
	uint8_t sent[FRAMES_MAX_BYTES];
	uint8_t want[FRAMES_MAX_BYTES];
	uint8_t payload[100];
	char note[64];
	const uint8_t *dmac, *smac;
	bool find;		/* look up the station when a packet is made */
};

static const uint8_t group[6] = { 0x33, 0x33, 0, 0, 0, 1 }, someone[6] = { 2, 0, 0, 0, 0, 9 };
static const uint8_t host[6] = { 2, 0, 0, 0, 0, 1 }, guest[6] = { 2, 0, 0, 0, 0, 2 };

static uint32_t bytes_of(const struct packet *p, uint8_t *to)
{
	struct frames f;

	frames_begin(&f, p);
	return frames_next(&f, to);
}

static void got(void *arg, const struct packet *p)
{
	struct end *e = arg;

	assert_int_equal(e->len, 0);
	if (p->kind == PACKET_ETHERNET && p->frame.len) {
		assert_int_equal(p->nseg, 1);
		assert_ptr_equal(p->seg[0].ptr, p->frame.ptr);
		assert_int_equal(p->seg[0].len, p->frame.len);
	}
	e->packet = *p;
	seg_copy_out(e->payload, p->seg, p->nseg, 0, p->len);
	e->len = bytes_of(p, e->frame);
	assert_int_not_equal(e->len, 0);
}

static const struct switch_port_ops ops = { .deliver = got };

static int setup(void **state)
{
	static const uint16_t vlan[PORTS] = { 10, 10, 20, 0, 0 };
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(packet_pool_init(&f->pool, PACKETS), 0);
	f->sw = switch_new(&f->pool);
	f->dmac = group;
	f->smac = someone;
	for (int i = 0; i < PORTS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%d", i);
		f->end[i].port = switch_port_add(f->sw, name, &ops, &f->end[i]);
		switch_port_set_up(f->end[i].port, true);
		switch_port_set_vlan(f->end[i].port, vlan[i]);
		assert_int_equal(switch_port_vlan(f->end[i].port), vlan[i]);
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	switch_free(f->sw);
	assert_int_equal(f->pool.nfree, PACKETS);
	packet_pool_fini(&f->pool);
	free(f);
	return 0;
}

static struct packet *make_roce(struct fixture *f, int tci)
{
	struct packet *p = packet_get(&f->pool);

	p->kind = PACKET_ROCE;
	memcpy(p->dmac, f->dmac, 6);
	memcpy(p->smac, f->smac, 6);
	p->vlan = tci != UNTAGGED;
	p->vlan_tci = p->vlan ? tci : 0;
	ip_v4_gid(p->sgid, (uint8_t[]) { 10, 88, 0, 1 });
	ip_v4_gid(p->dgid, (uint8_t[]) { 10, 88, 0, 2 });
	p->hop_limit = 64;
	p->opcode = BTH_RC_SEND_ONLY;
	p->npsn = 1;
	p->mtu = 1024;
	p->len = sizeof(f->payload);
	p->nseg = 1;
	p->seg[0] = (struct seg) { f->payload, p->len };
	return p;
}

static struct packet *make_plain(struct fixture *f, int tci, bool frame)
{
	struct packet *p = packet_get(&f->pool);
	uint32_t at = 12, len;

	memcpy(f->sent, f->dmac, 6);
	memcpy(f->sent + 6, f->smac, 6);
	if (tci != UNTAGGED) {
		be16_put(f->sent + at, ETHERTYPE_VLAN);
		be16_put(f->sent + at + 2, tci);
		at += VLAN_BYTES;
	}
	be16_put(f->sent + at, 0x88b5);
	len = at + 2 + sizeof(f->payload);
	memcpy(f->sent + at + 2, f->payload, sizeof(f->payload));
	if (frame) {
		assert_int_equal(frames_parse(p, f->sent, len), ROCE_NONE);
		return p;
	}
	p->kind = PACKET_ETHERNET;
	memcpy(p->dmac, f->dmac, 6);
	memcpy(p->smac, f->smac, 6);
	p->len = len;
	p->nseg = 3;
	p->seg[0] = (struct seg) { f->sent, 13 };
	p->seg[1] = (struct seg) { f->sent + 13, 2 };
	p->seg[2] = (struct seg) { f->sent + 15, len - 15 };
	return p;
}

static struct packet *make(struct fixture *f, enum form form, int tci)
{
	struct packet *p;
	uint32_t len;

	if (form == PIECES || form == FRAME)
		return make_plain(f, tci, form == FRAME);
	p = make_roce(f, tci);
	if (form == ROCE)
		return p;
	len = bytes_of(p, f->sent);
	packet_put(&f->pool, p);
	p = packet_get(&f->pool);
	if (form == BAD_FRAME)
		f->sent[len - 1] ^= 1;
	assert_int_equal(frames_parse(p, f->sent, len),
			 form == BAD_FRAME ? ROCE_BAD_ICRC : ROCE_PACKET);
	return p;
}

/* Send. Return: receivers, bit n for port n. */
static unsigned int send_from(struct fixture *f, int from, enum form form, int tci)
{
	unsigned int who = 0;
	struct packet *p;

	memset(f->payload, 0x40 + form, sizeof(f->payload));
	for (int i = 0; i < PORTS; i++)
		f->end[i].len = 0;
	p = make(f, form, tci);
	if (f->find && form == ROCE)
		switch_find(f->end[from].port, p);
	switch_send(f->end[from].port, p);
	switch_drain(f->sw);
	for (int i = 0; i < PORTS; i++)
		who |= !!f->end[i].len << i;
	return who;
}

/* Check that the port got the packet with that tag. */
static void expect(struct fixture *f, int at, enum form form, int tci)
{
	struct end *e = &f->end[at];
	struct packet q = {}, *p = make(f, form, tci);
	uint32_t len = bytes_of(p, f->want);

	packet_put(&f->pool, p);
	assert_int_equal(e->len, len);
	assert_memory_equal(e->frame, f->want, len);
	if (form == PIECES || form == FRAME)
		assert_memory_equal(e->payload, f->want, len);
	if (form != PIECES)
		assert_int_equal(e->packet.vlan, tci != UNTAGGED);
	if (form == ROCE || form == ROCE_FRAME) {
		assert_int_equal(frames_parse(&q, e->frame, len), ROCE_PACKET);
		assert_int_equal(e->packet.len, sizeof(f->payload));
		assert_memory_equal(e->payload, f->payload, sizeof(f->payload));
	}
}

static void test_within(void **state)
{
	struct fixture *f = *state;

	for (enum form form = 0; form < FORMS; form++) {
		assert_int_equal(send_from(f, A, form, UNTAGGED), 1 << B | 1 << TRUNK | 1 << TRUNK2);
		expect(f, B, form, UNTAGGED);
		expect(f, TRUNK, form, 10);
		expect(f, TRUNK2, form, 10);
		/* a tag for the priority only names no VLAN, and the priority stays */
		assert_int_equal(send_from(f, A, form, 0x6000), 1 << B | 1 << TRUNK | 1 << TRUNK2);
		expect(f, B, form, 0x6000);
		expect(f, TRUNK, form, 0x600a);
	}
}

static void test_from_outside(void **state)
{
	struct fixture *f = *state;

	for (enum form form = 0; form < FORMS; form++) {
		assert_int_equal(send_from(f, TRUNK, form, 0x200a), 1 << A | 1 << B | 1 << TRUNK2);
		expect(f, A, form, UNTAGGED);
		expect(f, B, form, UNTAGGED);
		expect(f, TRUNK2, form, 0x200a);
		assert_int_equal(send_from(f, TRUNK, form, 20), 1 << OTHER | 1 << TRUNK2);
		expect(f, OTHER, form, UNTAGGED);
		assert_int_equal(send_from(f, TRUNK, form, 30), 1 << TRUNK2);
		assert_int_equal(send_from(f, TRUNK, form, 11), 1 << TRUNK2);
		assert_int_equal(send_from(f, TRUNK, form, UNTAGGED), 1 << TRUNK2);
		assert_int_equal(send_from(f, TRUNK, form, 0x2000), 1 << TRUNK2);
		expect(f, TRUNK2, form, 0x2000);
	}
}

static void observe(void *arg, const struct switch_port *port, enum switch_way way,
		    const struct packet *p, const char *note)
{
	(void)port;
	(void)p;
	if (note && way == SWITCH_IN)
		strcpy(arg, note);
}

/* A guest cannot choose its VLAN, nor another's. */
static void test_no_tag_gets_in(void **state)
{
	struct fixture *f = *state;
	const struct switch_observer o = { observe, f->note };

	switch_set_observer(f->sw, &o);
	for (enum form form = 0; form < FORMS; form++) {
		strcpy(f->note, "");
		assert_int_equal(send_from(f, A, form, 20), 0);
		assert_string_equal(f->note, "dropped: tagged, by an access port");
		assert_int_equal(send_from(f, A, form, 10), 0);
	}
	assert_int_equal(switch_port_vlan_drop(f->end[A].port), 2 * FORMS);
	assert_int_equal(switch_port_vlan_drop(f->end[B].port), 0);
}

/* A frame that is too long with its tag is counted at the port where it would have left. */
static void test_no_room_for_a_tag(void **state)
{
	static uint8_t bytes[FRAMES_MAX_BYTES] = { 0x33, 0x33, [12] = 0x88, 0xb5 };
	struct fixture *f = *state;

	for (uint32_t len = FRAMES_MAX_BYTES - VLAN_BYTES; len <= FRAMES_MAX_BYTES; len++) {
		struct packet *p = packet_get(&f->pool);
		bool fits = len == FRAMES_MAX_BYTES - VLAN_BYTES;

		for (int i = 0; i < PORTS; i++)
			f->end[i].len = 0;
		assert_int_equal(frames_parse(p, bytes, len), ROCE_NONE);
		switch_send(f->end[A].port, p);
		switch_drain(f->sw);
		assert_int_equal(f->end[B].len, len);
		assert_int_equal(f->end[TRUNK].len, fits ? FRAMES_MAX_BYTES : 0);
	}
	assert_int_equal(switch_port_vlan_drop(f->end[TRUNK].port), VLAN_BYTES);
	assert_int_equal(switch_port_vlan_drop(f->end[TRUNK2].port), VLAN_BYTES);
	assert_int_equal(switch_port_vlan_drop(f->end[A].port), 0);
	assert_int_equal(switch_port_vlan_drop(f->end[OTHER].port), 0);
}

/*
 * A guest cannot choose a VLAN by a second tag, which would remain when the tag of its VLAN is
 * removed; nor by a tag of another kind; nor by an incomplete tag, behind which the padding of
 * short frames would complete it.
 */
static void test_no_tag_behind_a_tag(void **state)
{
	static const struct {
		uint8_t head[12];
		uint32_t len;
		bool passes;
	} frames[] = {
		{ "\x88\xb5\x81\x00\x00\x14", 64, true },
		{ "\x81\x00\xe0\x00\x88\xb5\x81\x00", 64, true },
		{ "\x81\x00\xe0\x00\x88\xb5", 18, true },
		{ "\x81\x00\x00\x00\x81\x00\x00\x14\x88\xb5", 64, false },
		{ "\x81\x00\x60\x00\x81\x00\x00\x00\x88\xb5", 64, false },
		{ "\x81\x00\x00\x00\x88\xa8\x00\x14\x88\xb5", 64, false },
		{ "\x88\xa8\x00\x14\x88\xb5", 64, false },
		{ "\x88\xa8\x00\x00\x81\x00\x00\x14\x88\xb5", 64, false },
		{ "\x81\x00\x00\x00\x81\x00", 18, false },
		{ "\x81\x00\x00\x14", 16, false },
		{ "\x81\x00\x00\x00", 17, false },
		{ "\x81\x00", 14, false },
		{ "\x88\xa8", 14, false },
	};
	struct fixture *f = *state;

	for (unsigned int i = 0; i < 2 * sizeof(frames) / sizeof(frames[0]); i++) {
		struct packet *p = make(f, i % 2 ? PIECES : FRAME, UNTAGGED);
		uint32_t len = frames[i / 2].len;

		memset(f->sent + 12, 0, sizeof(f->sent) - 12);
		memcpy(f->sent + 12, frames[i / 2].head, sizeof(frames[0].head));
		packet_put(&f->pool, p);
		p = packet_get(&f->pool);
		if (i % 2) {
			p->kind = PACKET_ETHERNET;
			p->len = len;
			p->nseg = 2;
			p->seg[0] = (struct seg) { f->sent, 13 };
			p->seg[1] = (struct seg) { f->sent + 13, len - 13 };
			memcpy(p->dmac, group, 6);
			memcpy(p->smac, someone, 6);
		} else {
			assert_int_equal(frames_parse(p, f->sent, len), ROCE_NONE);
		}
		for (int j = 0; j < PORTS; j++)
			f->end[j].len = 0;
		switch_send(f->end[A].port, p);
		switch_drain(f->sw);
		assert_int_equal(!!f->end[B].len, frames[i / 2].passes);
		assert_int_equal(!!f->end[TRUNK].len, frames[i / 2].passes);
		assert_int_equal(f->end[OTHER].len, 0);
	}
}

static void observe_all(void *arg, const struct switch_port *port, enum switch_way way,
			const struct packet *p, const char *note)
{
	char *to = arg;

	(void)p;
	sprintf(to + strlen(to), "%s %s %s\n", switch_port_name(port),
		way == SWITCH_IN ? "in" : "out", note ? note : "-");
}

/* Captures get a note about a frame that has no room for a tag. */
static void test_no_room_is_shown(void **state)
{
	struct fixture *f = *state;
	static char text[1000];
	const struct switch_observer o = { observe_all, text };
	static uint8_t bytes[FRAMES_MAX_BYTES];
	struct packet *p = packet_get(&f->pool);

	switch_set_observer(f->sw, &o);
	p->len = sizeof(bytes);
	p->nseg = 1;
	p->seg[0] = (struct seg) { bytes, p->len };
	memcpy(p->dmac, group, 6);
	for (int i = 0; i < PORTS; i++)
		f->end[i].len = 0;
	switch_send(f->end[A].port, p);
	switch_port_set_up(f->end[B].port, false);
	switch_port_set_up(f->end[TRUNK2].port, false);
	switch_drain(f->sw);
	assert_string_equal(text, "0 in -\n3 out dropped: too long with a tag\n");
	switch_set_observer(f->sw, NULL);
}

static void test_changed(void **state)
{
	struct fixture *f = *state;

	switch_port_set_vlan(f->end[OTHER].port, 10);
	assert_int_equal(send_from(f, A, ROCE, UNTAGGED),
			 1 << B | 1 << OTHER | 1 << TRUNK | 1 << TRUNK2);
	switch_port_set_vlan(f->end[A].port, 0);
	assert_int_equal(send_from(f, A, ROCE, UNTAGGED), 1 << TRUNK | 1 << TRUNK2);
	assert_int_equal(send_from(f, OTHER, ROCE, UNTAGGED),
			 1 << A | 1 << B | 1 << TRUNK | 1 << TRUNK2);
	expect(f, A, ROCE, 10);
}

static unsigned int send_to(struct fixture *f, int from, const uint8_t *dmac,
			    const uint8_t *smac, enum form form, int tci)
{
	f->dmac = dmac;
	f->smac = smac;
	return send_from(f, from, form, tci);
}

static int set_mac(struct fixture *f, int at, const uint8_t *mac)
{
	return switch_port_set_mac(f->end[at].port, mac);
}

/* Unknown address: flooded to all of the VLAN, none of another; another VLAN does not learn it. */
static void test_unknown(void **state)
{
	struct fixture *f = *state;

	for (enum form form = 0; form < FORMS; form++) {
		assert_int_equal(send_to(f, A, host, someone, form, UNTAGGED),
				 1 << B | 1 << TRUNK | 1 << TRUNK2);
		assert_int_equal(send_to(f, OTHER, host, guest, form, UNTAGGED),
				 1 << TRUNK | 1 << TRUNK2);
		assert_int_equal(send_to(f, OTHER, someone, guest, form, UNTAGGED),
				 1 << TRUNK | 1 << TRUNK2);
	}
}

/* The same address in two VLANs and without one is three stations. */
static void test_learned(void **state)
{
	struct fixture *f = *state;

	for (enum form form = 0; form < FORMS; form++) {
		send_to(f, A, group, host, form, UNTAGGED);
		send_to(f, OTHER, group, host, form, UNTAGGED);
		send_to(f, TRUNK2, group, host, form, UNTAGGED);
		assert_int_equal(send_to(f, B, host, someone, form, UNTAGGED), 1 << A);
		expect(f, A, form, UNTAGGED);
		assert_int_equal(send_to(f, TRUNK, host, someone, form, 10), 1 << A);
		assert_int_equal(send_to(f, TRUNK, host, someone, form, 20), 1 << OTHER);
		expect(f, OTHER, form, UNTAGGED);
		assert_int_equal(send_to(f, TRUNK, host, someone, form, UNTAGGED), 1 << TRUNK2);
		assert_int_equal(send_to(f, TRUNK, host, someone, form, 30), 1 << TRUNK2);
		/* it moves in one VLAN without the others */
		send_to(f, TRUNK, group, host, form, 20);
		assert_int_equal(send_to(f, TRUNK2, host, someone, form, 20), 1 << TRUNK);
		assert_int_equal(send_to(f, TRUNK2, host, someone, form, 10), 1 << A);
	}
}

/*
 * A guest of one VLAN takes the address of another VLAN's gateway, which is behind a port to the
 * outside or is another device: both VLANs continue as before.
 */
static void test_stolen(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 2 * FORMS; i++) {
		enum form form = i / 2;

		f->find = i % 2;
		send_to(f, TRUNK, group, host, form, 10);
		assert_int_equal(set_mac(f, OTHER, host), 0);
		assert_int_equal(send_to(f, B, host, someone, form, UNTAGGED), 1 << TRUNK);
		expect(f, TRUNK, form, 10);
		send_to(f, TRUNK2, group, host, form, 10);
		assert_int_equal(send_to(f, B, host, someone, form, UNTAGGED), 1 << TRUNK2);
		assert_int_equal(send_to(f, TRUNK2, host, someone, form, 20), 1 << OTHER);
		assert_int_equal(send_to(f, TRUNK2, host, someone, form, UNTAGGED),
				 1 << TRUNK);
		assert_int_equal(set_mac(f, OTHER, guest), 0);
	}
}

/* Devices of two VLANs may have the same address; those of one VLAN and of none may not. */
static void test_stations(void **state)
{
	struct fixture *f = *state;
	struct switch_port *other = f->end[OTHER].port;

	assert_int_equal(set_mac(f, A, host), 0);
	assert_int_equal(set_mac(f, OTHER, host), 0);
	assert_int_equal(set_mac(f, OTHER, host), 0);
	assert_int_equal(set_mac(f, B, host), -EEXIST);
	assert_int_equal(set_mac(f, TRUNK, host), -EEXIST);
	assert_int_equal(set_mac(f, B, guest), 0);
	assert_int_equal(set_mac(f, TRUNK2, guest), -EEXIST);
	assert_int_equal(set_mac(f, TRUNK2, someone), 0);
	assert_int_equal(set_mac(f, A, someone), -EEXIST);
	for (int i = 0; i < 2 * FORMS; i++) {
		enum form form = i / 2;

		f->find = i % 2;
		assert_int_equal(send_to(f, B, host, guest, form, UNTAGGED), 1 << A);
		assert_int_equal(send_to(f, TRUNK2, host, someone, form, 10), 1 << A);
		assert_int_equal(send_to(f, TRUNK2, host, someone, form, 20), 1 << OTHER);
		expect(f, OTHER, form, UNTAGGED);
		/* a device without a VLAN is in all of them */
		assert_int_equal(send_to(f, A, someone, host, form, UNTAGGED), 1 << TRUNK2);
		expect(f, TRUNK2, form, 10);
		assert_int_equal(send_to(f, OTHER, someone, host, form, UNTAGGED),
				 1 << TRUNK2);
		expect(f, TRUNK2, form, 20);
	}
	assert_int_equal(switch_port_set_vlan(other, 10), -EEXIST);
	assert_int_equal(switch_port_set_vlan(other, 0), -EEXIST);
	assert_int_equal(switch_port_vlan(other), 20);
	assert_int_equal(switch_port_set_vlan(other, 30), 0);
	assert_int_equal(send_to(f, TRUNK2, host, someone, ROCE, 30), 1 << OTHER);
}

/* The destination port is looked up at the creation of a packet: a station of the sender's VLAN. */
static void test_find(void **state)
{
	struct fixture *f = *state;
	struct packet p = { .kind = PACKET_ROCE };

	assert_int_equal(set_mac(f, OTHER, host), 0);
	memcpy(p.dmac, host, 6);
	switch_find(f->end[B].port, &p);
	assert_null(p.to);
	assert_true(p.remote);
	switch_find(f->end[TRUNK].port, &p);
	assert_null(p.to);
	p.vlan = true;
	p.vlan_tci = 0x6014;
	switch_find(f->end[TRUNK].port, &p);
	assert_ptr_equal(p.to, f->end[OTHER].port);
	assert_false(p.remote);
	assert_int_equal(set_mac(f, A, host), 0);
	p.vlan_tci = 10;
	switch_find(f->end[TRUNK].port, &p);
	assert_ptr_equal(p.to, f->end[A].port);
	p.vlan = false;
	switch_find(f->end[B].port, &p);
	assert_ptr_equal(p.to, f->end[A].port);
	/* no tag is no VLAN, not VLAN 1 */
	switch_port_set_vlan(f->end[OTHER].port, 1);
	switch_find(f->end[TRUNK].port, &p);
	assert_null(p.to);
}

/* struct holder - an injected fault that holds all packets of one direction */
struct holder {
	enum switch_way way;
	unsigned int taken;
	struct switch_port *gone;
};

static bool hold(void *arg, struct switch_port *port, enum switch_way way, const struct packet *p)
{
	struct holder *h = arg;

	(void)port;
	(void)p;
	h->taken += way == h->way;
	return way == h->way;
}

static void hold_gone(void *arg, struct switch_port *port, const char *why)
{
	struct holder *h = arg;

	assert_string_equal(why, "dropped: port moved to another VLAN");
	h->gone = port;
}

/* Packets in flight keep their VLAN when a port gets another one. */
static void test_change_under_way(void **state)
{
	struct fixture *f = *state;
	struct holder h = { .way = SWITCH_IN };
	const struct switch_fault fault = { .packet = hold, .gone = hold_gone, .arg = &h };

	switch_send(f->end[A].port, make(f, ROCE, UNTAGGED));
	switch_port_set_vlan(f->end[A].port, 10);
	switch_send(f->end[B].port, make(f, ROCE, UNTAGGED));
	switch_port_set_vlan(f->end[A].port, 20);
	switch_drain(f->sw);
	assert_int_equal(f->end[OTHER].len, 0);
	assert_int_equal(f->end[B].len, 0);
	assert_int_not_equal(f->end[TRUNK].len, 0);
	switch_set_fault(f->sw, &fault);
	send_from(f, A, ROCE, UNTAGGED);
	assert_int_equal(h.taken, 1);
	switch_port_set_vlan(f->end[A].port, 20);
	assert_null(h.gone);
	switch_port_set_vlan(f->end[A].port, 10);
	assert_ptr_equal(h.gone, f->end[A].port);
	switch_set_fault(f->sw, NULL);
}

/*
 * Packets in the queue of a rate-limited link do not enter the new VLAN; later ones are not
 * delayed.
 */
static void test_change_of_slow(void **state)
{
	const struct egress_param slow = { .kbps = 8, .queue = 20000, .kmin = 20000,
					   .kmax = 20000 };
	struct fixture *f = *state;
	struct switch_port *b = f->end[B].port;
	struct timers timers;
	uint64_t now = 1000;

	timers_init(&timers);
	switch_set_time(f->sw, &timers, &now);
	assert_int_equal(switch_port_limit(b, &slow), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(send_from(f, A, FRAME, UNTAGGED), 1 << TRUNK | 1 << TRUNK2);
	assert_int_not_equal(egress_depth(switch_port_egress(b)), 0);
	switch_port_set_vlan(b, 10);
	assert_int_not_equal(egress_depth(switch_port_egress(b)), 0);
	switch_port_set_vlan(b, 20);
	assert_int_equal(egress_depth(switch_port_egress(b)), 0);
	send_from(f, OTHER, FRAME, UNTAGGED);
	now += 200000000;	/* 116 bytes take 116 ms */
	f->end[B].len = 0;
	timers_run(&timers, now);
	assert_int_not_equal(f->end[B].len, 0);
	expect(f, B, FRAME, UNTAGGED);
	f->end[B].len = 0;
	timers_run(&timers, now + 1000000000);
	assert_int_equal(f->end[B].len, 0);
	switch_port_limit(b, NULL);
	timers_fini(&timers);
}

/*
 * Packets from a port that waits for another port's rate-limited link do not arrive in its old
 * VLAN, nor if the port is deleted; those of other ports do, without delay.
 */
static void test_change_of_sender(void **state)
{
	const struct egress_param slow = { .kbps = 8, .queue = 20000, .kmin = 20000,
					   .kmax = 20000 };
	struct fixture *f = *state;
	struct switch_port *b = f->end[B].port;
	struct timers timers;
	uint64_t now = 1000;
	uint32_t depth;

	timers_init(&timers);
	switch_set_time(f->sw, &timers, &now);
	assert_int_equal(switch_port_limit(b, &slow), 0);
	send_from(f, A, FRAME, UNTAGGED);
	send_from(f, A, FRAME, UNTAGGED);
	depth = egress_depth(switch_port_egress(b)) / 2;
	send_from(f, TRUNK, FRAME, 10);
	switch_port_set_vlan(f->end[A].port, 20);
	assert_int_equal(egress_depth(switch_port_egress(b)), depth);
	now += depth * 1000000;		/* a byte takes 1 ms */
	timers_run(&timers, now);
	expect(f, B, FRAME, UNTAGGED);
	send_from(f, TRUNK, FRAME, 10);
	assert_int_equal(egress_depth(switch_port_egress(b)), depth);
	switch_port_del(f->end[TRUNK].port);
	assert_int_equal(egress_depth(switch_port_egress(b)), 0);
	timers_run(&timers, now + 1000000000);
	assert_int_equal(f->end[B].len, 0);
	switch_port_limit(b, NULL);
	timers_fini(&timers);
}

/* An address learned behind a port was learned in the port's old VLAN. */
static void test_change_of_learned(void **state)
{
	struct fixture *f = *state;

	send_to(f, A, group, host, ROCE, UNTAGGED);
	send_to(f, TRUNK, group, guest, ROCE, 10);
	assert_int_equal(send_to(f, B, host, someone, ROCE, UNTAGGED), 1 << A);
	switch_port_set_vlan(f->end[A].port, 20);
	assert_int_equal(send_to(f, B, host, someone, ROCE, UNTAGGED), 1 << TRUNK | 1 << TRUNK2);
	switch_port_set_vlan(f->end[A].port, 10);
	assert_int_equal(send_to(f, B, host, someone, ROCE, UNTAGGED),
			 1 << A | 1 << TRUNK | 1 << TRUNK2);
	assert_int_equal(send_to(f, B, guest, someone, ROCE, UNTAGGED), 1 << TRUNK);
	switch_port_set_vlan(f->end[TRUNK].port, 20);
	assert_int_equal(send_to(f, B, guest, someone, ROCE, UNTAGGED), 1 << A | 1 << TRUNK2);
}

/* Any length: short frames are padded with zeros, those that would be too long are dropped. */
static void test_lengths(void **state)
{
	static struct vlan_copy c;
	static uint8_t bytes[FRAMES_MAX_BYTES];
	struct packet p = { .kind = PACKET_ETHERNET, .nseg = 1 };

	(void)state;
	for (uint32_t len = 0; len <= FRAMES_MAX_BYTES; len++) {
		bool type = len % 3 != 1, tagged = type && len >= ETH_BYTES + VLAN_BYTES;
		uint32_t body = len - 12 - tagged * VLAN_BYTES;

		be16_put(bytes + 12, type ? ETHERTYPE_VLAN : 0);
		p.len = len;
		p.seg[0] = (struct seg) { bytes, len };
		for (int id = 0; id <= 7; id += 7) {
			uint32_t want = 12 + body + (id ? VLAN_BYTES : 0);
			bool fits = len >= 12 && body <= FRAMES_MAX_BYTES - 12 - VLAN_BYTES;

			memset(c.frame, 0xff, 60);
			assert_int_equal(vlan_retag(&c, &p, id), fits);
			if (fits)
				assert_int_equal(c.packet.len, want < 60 ? 60 : want);
			if (fits && body >= 2)
				assert_int_equal(be16_get(c.frame + 12), id || (type && !tagged) ?
						 ETHERTYPE_VLAN : 0);
			for (uint32_t i = want; fits && i < 60; i++)
				assert_int_equal(c.frame[i], 0);
		}
	}
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_within),
		TEST(test_from_outside),
		TEST(test_no_tag_gets_in),
		TEST(test_no_room_is_shown),
		TEST(test_no_room_for_a_tag),
		TEST(test_no_tag_behind_a_tag),
		TEST(test_changed),
		TEST(test_unknown),
		TEST(test_learned),
		TEST(test_stolen),
		TEST(test_stations),
		TEST(test_find),
		TEST(test_change_under_way),
		TEST(test_change_of_slow),
		TEST(test_change_of_sender),
		TEST(test_change_of_learned),
		TEST(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
