// SPDX-License-Identifier: GPL-2.0
/*
 * Frames that fault injection holds: when they are forwarded, what overtakes them, and what happens
 * to them when their rule or port goes. Two ports to the outside send them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/fault_rule.h"
#include "lib/pair.h"
#include "fault/state.h"
#include "packet/bth.h"

#define SECOND	1000000000ull
#define PORTS	2

/** struct kind - properties by which REORDER recognises packets of the same flow */
struct kind {
	uint8_t port;
	bool roce;
	uint8_t dqpn;
	uint8_t dgid;
};

/**
 * struct fix - a switch with three functions and two ports
 * @forwarded:	held frames that were forwarded
 * @last:	last byte of the destination of the last one
 * @deleted:	frames that were dropped because a port was deleted
 * @no_packet:	frames that were dropped because the pool was empty
 */
struct fix {
	struct world w;
	struct switch_port *lan[PORTS];
	struct switch_observer eye;
	uint32_t forwarded;
	uint8_t last;
	uint32_t deleted;
	uint32_t no_packet;
};

static void see(void *arg, const struct switch_port *port, enum switch_way way,
		const struct packet *p, const char *note)
{
	struct fix *t = arg;

	(void)port;
	(void)way;
	if (note && !strcmp(note, "forwarded")) {
		t->forwarded++;
		t->last = p->dmac[5];
	}
	t->deleted += note && !strcmp(note, "dropped: port deleted");
	t->no_packet += note && !strcmp(note, "dropped: no packet is free");
}

static void ignore(void *arg, const struct packet *p)
{
	(void)arg;
	(void)p;
}

static int setup(void **state)
{
	static const struct switch_port_ops ops = { .deliver = ignore };
	struct fix *t = test_calloc(1, sizeof(*t));

	world_init(&t->w, 0);
	for (int i = 0; i < PORTS; i++) {
		t->lan[i] = switch_port_add(t->w.e.sw, i ? "lan1" : "lan0", &ops, NULL);
		assert_non_null(t->lan[i]);
		switch_port_set_up(t->lan[i], true);
	}
	t->eye = (struct switch_observer) { see, t };
	switch_set_observer(t->w.e.sw, &t->eye);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct fix *t = *state;

	fault_clear(&t->w.e);
	world_finish(&t->w, 10 * SECOND);
	fault_no_frames(&t->w.e);
	switch_set_observer(t->w.e.sw, NULL);
	for (int i = 0; i < PORTS; i++)
		if (t->lan[i])
			switch_port_del(t->lan[i]);
	world_fini(&t->w);
	test_free(t);
	return 0;
}

static uint32_t rule(struct fix *t, const char *text)
{
	return fault_rule(&t->w.e, text);
}

static void expect(struct fix *t, uint32_t id, uint64_t matched, uint64_t acted)
{
	struct fault_info info;

	assert_true(fault_next(&t->w.e, id - 1, &info));
	assert_int_equal(info.matched, matched);
	assert_int_equal(info.acted, acted);
}

/* Send a packet of that kind from its port to a station, or if @to, to its MAC address. */
static void send_to(struct fix *t, const struct kind *k, const uint8_t *to)
{
	static uint8_t frame[60];
	static const uint8_t station[6] = { 2, 9, 9, 9, 9, 9 };
	struct packet *p = packet_get(&t->w.e.pool);

	assert_non_null(p);
	memcpy(p->dmac, to ? to : station, 6);
	memcpy(p->smac, (uint8_t[]) { 2, 9, 9, 9, 0, k->port }, 6);
	memcpy(frame, p->dmac, 6);
	memcpy(frame + 6, p->smac, 6);
	p->kind = k->roce ? PACKET_ROCE : PACKET_ETHERNET;
	if (k->roce) {
		p->opcode = BTH_UD_SEND_ONLY;
		p->pkey = 0xffff;
		p->dqpn = k->dqpn;
		p->dgid[15] = k->dgid;
		p->hop_limit = 64;
		p->mtu = 1024;
		p->npsn = 1;
	} else {
		p->len = sizeof(frame);
		p->nseg = 1;
		p->seg[0] = (struct seg) { frame, sizeof(frame) };
	}
	switch_send(t->lan[k->port], p);
	engine_drain(&t->w.e);
}

static void send_from(struct fix *t, uint8_t port, const uint8_t *to)
{
	send_to(t, &(struct kind) { .port = port }, to);
}

/* Each frame is forwarded at its time, not at that of another one. */
static void test_times(void **state)
{
	struct fix *t = *state;

	rule(t, "delay packet=any by=2ms");
	for (int i = 0; i < 3; i++) {
		send_from(t, 0, NULL);
		world_pass(&t->w, i < 2 ? 1 : 0);
	}
	world_pass(&t->w, 1999997);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(t->forwarded, i);
		world_pass(&t->w, 1);
	}
	assert_int_equal(t->forwarded, 3);
	assert_int_equal(t->w.e.timers.n, 0);
}

/* A frame that waits for one rule and then for another one takes one place. */
static void test_places(void **state)
{
	struct fix *t = *state;
	struct faults *fs;

	rule(t, "delay packet=any by=1ms");
	rule(t, "delay packet=any by=1ms");
	rule(t, "duplicate packet=any by=1ms");
	fs = faults_of(&t->w.e);
	send_from(t, 0, NULL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fs->places, 1);
		assert_int_equal(t->forwarded, 0);
		world_pass(&t->w, 1000000);
	}
	assert_int_equal(t->forwarded, 1);
	assert_int_equal(fs->places, 1);
	world_pass(&t->w, 1000000);
	assert_int_equal(t->forwarded, 2);
	assert_int_equal(fs->places, 0);
}

/* A frame that is due while no packet is free is lost, and its place is free again. */
static void test_no_packet(void **state)
{
	struct fix *t = *state;

	rule(t, "delay packet=any by=1ms");
	send_from(t, 0, NULL);
	assert_int_equal(faults_of(&t->w.e)->places, 1);
	world_spend(1000000);
	world_starve(&t->w);
	assert_int_equal(t->forwarded, 0);
	assert_int_equal(t->no_packet, 1);
	assert_int_equal(faults_of(&t->w.e)->places, 0);
}

/* A frame is overtaken only by a frame of the same port, direction, kind and destination. */
static void test_flows(void **state)
{
	static const struct kind kinds[] = {
		{ 0, false, 0, 0 }, { 1, false, 0, 0 }, { 0, true, 0, 0 },
		{ 0, true, 7, 1 }, { 0, true, 8, 1 }, { 0, true, 7, 2 },
	};
	const size_t n = sizeof(kinds) / sizeof(kinds[0]);
	struct fix *t = *state;

	for (size_t i = 0; i < n; i++) {
		uint32_t id = rule(t, "reorder packet=any nth=1 by=1 within=1s");

		t->forwarded = 0;
		send_to(t, &kinds[i], NULL);
		for (size_t j = 0; j < n; j++)
			if (j != i)
				send_to(t, &kinds[j], NULL);
		assert_int_equal(t->forwarded, 0);
		expect(t, id, n, 1);
		send_to(t, &kinds[i], NULL);
		assert_int_equal(t->forwarded, 1);
		fault_clear(&t->w.e);
	}
	/* the frame that leaves by the port goes in the other direction */
	rule(t, "reorder port=lan0 packet=any nth=1 by=1 within=1s");
	t->forwarded = 0;
	send_from(t, 0, NULL);
	send_from(t, 1, NULL);
	assert_int_equal(t->forwarded, 0);
	send_from(t, 0, NULL);
	assert_int_equal(t->forwarded, 1);
}

/* Frames that the same frame overtakes keep their order. */
static void test_order(void **state)
{
	struct fix *t = *state;

	rule(t, "reorder packet=any count=2 by=1 within=1s");
	send_from(t, 0, (uint8_t[]) { 2, 9, 9, 9, 9, 1 });
	send_from(t, 0, (uint8_t[]) { 2, 9, 9, 9, 9, 2 });
	send_from(t, 0, NULL);
	assert_int_equal(t->forwarded, 2);
	assert_int_equal(t->last, 2);
}

/* A rule that has acted and holds no frame any more does not match, so it counts no frames. */
static void test_spent(void **state)
{
	struct fix *t = *state;
	uint32_t id = rule(t, "reorder packet=any nth=1 by=1 within=1s"), late;

	send_from(t, 0, NULL);
	send_from(t, 0, NULL);
	send_from(t, 0, NULL);
	expect(t, id, 2, 1);
	/* its time ends before it is overtaken */
	late = rule(t, "reorder packet=any nth=1 by=2 within=1ms");
	send_from(t, 0, NULL);
	send_from(t, 0, NULL);
	world_pass(&t->w, 1000000);
	send_from(t, 0, NULL);
	expect(t, id, 2, 1);
	expect(t, late, 2, 1);
	assert_int_equal(t->forwarded, 2);
}

/* A frame that was overtaken and then is delayed does not count for the first rule again. */
static void test_held_twice(void **state)
{
	struct fix *t = *state;
	uint32_t first = rule(t, "reorder packet=any nth=1 by=1 within=1s");
	uint32_t second = rule(t, "delay packet=any nth=2 by=1ms");

	send_from(t, 0, NULL);
	send_from(t, 0, NULL);
	expect(t, first, 2, 1);
	expect(t, second, 2, 1);
	assert_int_equal(t->forwarded, 0);
	world_pass(&t->w, 1000000);
	assert_int_equal(t->forwarded, 1);
	send_from(t, 0, NULL);
	expect(t, first, 2, 1);
}

/* A frame that two rules match overtakes, for each of them, only the frames that it holds. */
static void test_two_rules(void **state)
{
	struct fix *t = *state;

	rule(t, "reorder packet=any nth=1 by=9 within=1s");
	rule(t, "reorder packet=any nth=1 by=2 within=1s");
	for (int i = 0; i < 3; i++)
		send_from(t, 0, NULL);
	assert_int_equal(t->forwarded, 0);
	send_from(t, 0, NULL);
	assert_int_equal(t->forwarded, 1);
}

/* The frames of other rules are still overtaken after a rule was deleted, and its own wait. */
static void test_forget(void **state)
{
	struct fix *t = *state;
	uint32_t first = rule(t, "reorder port=lan0 packet=any nth=1 by=1 within=1s");

	rule(t, "reorder port=lan1 dir=rx packet=any nth=1 by=1 within=1s");
	send_from(t, 0, NULL);
	send_from(t, 1, NULL);
	assert_int_equal(fault_del(&t->w.e, first), 0);
	send_from(t, 0, NULL);
	assert_int_equal(t->forwarded, 0);
	send_from(t, 1, NULL);
	assert_int_equal(t->forwarded, 1);
	world_pass(&t->w, SECOND);
	assert_int_equal(t->forwarded, 2);
}

/* A deleted port takes with it the frames that wait there or came from there, and no others. */
static void test_port_deleted(void **state)
{
	static const uint8_t lan0[6] = { 2, 9, 9, 9, 0, 0 };
	struct fix *t = *state;
	const uint8_t *vm1 = t->w.dut[0].dev.port.mac;
	uint32_t reorder;

	rule(t, "delay device=vm1 dir=rx packet=any count=1 by=1s");
	reorder = rule(t, "reorder device=vm1 dir=rx packet=any nth=1 by=9 within=2s");
	rule(t, "delay port=lan0 dir=tx packet=any by=3s");
	send_from(t, 1, vm1);
	send_from(t, 0, vm1);
	send_from(t, 1, lan0);
	expect(t, reorder, 1, 1);
	switch_port_del(t->lan[0]);
	t->lan[0] = NULL;
	assert_int_equal(t->deleted, 2);
	send_from(t, 1, vm1);
	expect(t, reorder, 1, 1);
	assert_int_equal(t->forwarded, 0);
	world_pass(&t->w, SECOND);
	assert_int_equal(t->forwarded, 1);
	assert_int_equal(t->w.e.timers.n, 0);
}

/* A frame of a connection within a function has no sender that could be gone. */
static void test_own_connection(void **state)
{
	struct fix *t = *state;
	struct wr wr = { .opcode = ORNIC_WR_SEND };
	struct conn a, b;

	conn_init(&a, &t->w.dut[0], NULL);
	conn_init(&b, &t->w.dut[0], NULL);
	conn_pair(&a, &b, 1, 1);
	conn_recv(&b, 0, 0, 0);
	rule(t, "delay by=1ms");
	conn_send(&a, &wr);
	world_run(&t->w);
	conn_quiet(&b);
	world_pass(&t->w, 1000000);
	conn_expect(&b, &b.hrcq, 0, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
	world_finish(&t->w, SECOND);
	conn_fini(&a);
	conn_fini(&b);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_times),
		TEST(test_places),
		TEST(test_no_packet),
		TEST(test_flows),
		TEST(test_order),
		TEST(test_spent),
		TEST(test_held_twice),
		TEST(test_two_rules),
		TEST(test_forget),
		TEST(test_port_deleted),
		TEST(test_own_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
