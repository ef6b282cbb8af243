// SPDX-License-Identifier: GPL-2.0
/* net/switch.c: the receivers of each frame. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/switch.h"

#define PORTS	4
#define PACKETS	8

struct end {
	struct fixture *f;
	struct switch_port *port;
	unsigned int got;
	uint32_t last;
	unsigned int flushed;
	const uint8_t *answer;
};

/* Ports 0 and 1 are devices, 2 and 3 are not. */
struct fixture {
	struct packet_pool pool;
	struct net_switch *sw;
	struct end end[PORTS];
	uint32_t serial;
};

static const uint8_t mac[][6] = {
	{ 2, 0, 0, 0, 0, 0 }, { 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 2 }, { 2, 0, 0, 0, 0, 3 },
};
static const uint8_t unknown[6] = { 2, 9, 9, 9, 9, 9 };
static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

/* The clock of the program: real, unless a test sets it. */
static time_t fake_seconds;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (fake_seconds) {
		*ts = (struct timespec) { .tv_sec = fake_seconds };
		return 0;
	}
	return syscall(SYS_clock_gettime, clock, ts);
}

static struct packet *make(struct fixture *f, const uint8_t *dmac, const uint8_t *smac)
{
	struct packet *p = packet_get(&f->pool);

	assert_non_null(p);
	memcpy(p->dmac, dmac, 6);
	memcpy(p->smac, smac, 6);
	p->psn = ++f->serial;
	return p;
}

static void got(void *arg, const struct packet *p)
{
	struct end *e = arg;

	e->got++;
	e->last = p->psn;
	if (e->answer) {
		const uint8_t *to = e->answer;

		e->answer = NULL;
		switch_send(e->port, make(e->f, to, mac[e - e->f->end]));
	}
}

static void flush(void *arg)
{
	struct end *e = arg;

	e->flushed++;
}

static const struct switch_port_ops ops = { .deliver = got, .flush = flush };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(packet_pool_init(&f->pool, PACKETS), 0);
	f->sw = switch_new(&f->pool);
	for (int i = 0; i < PORTS; i++) {
		f->end[i].f = f;
		f->end[i].port = switch_port_add(f->sw, "port", &ops, &f->end[i]);
		assert_non_null(f->end[i].port);
		switch_port_set_up(f->end[i].port, true);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(switch_port_set_mac(f->end[i].port, mac[i]), 0);
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

/* Send; return the receivers: bit n for port n. */
static unsigned int send_from(struct fixture *f, int from, const uint8_t *dmac,
			      const uint8_t *smac)
{
	unsigned int who = 0;

	for (int i = 0; i < PORTS; i++)
		f->end[i].got = 0;
	switch_send(f->end[from].port, make(f, dmac, smac));
	switch_drain(f->sw);
	for (int i = 0; i < PORTS; i++) {
		assert_true(f->end[i].got <= 1);
		who |= f->end[i].got << i;
	}
	assert_int_equal(f->pool.nfree, PACKETS);
	return who;
}

static void test_station(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(send_from(f, 0, mac[1], mac[0]), 1 << 1);
	assert_int_equal(send_from(f, 2, mac[0], mac[2]), 1 << 0);
}

static void test_group(void **state)
{
	static const uint8_t multicast[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	struct fixture *f = *state;

	assert_int_equal(send_from(f, 0, broadcast, mac[0]), 0xe);
	assert_int_equal(send_from(f, 3, multicast, mac[3]), 0x7);
}

/* ORN-STEER-10 */
static void test_unknown_unicast_spares_devices(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(send_from(f, 0, unknown, mac[0]), 0xc);
	switch_port_set_promisc(f->end[1].port, true);
	assert_int_equal(send_from(f, 0, unknown, mac[0]), 0xe);
	assert_int_equal(send_from(f, 0, mac[1], mac[0]), 0x2);
}

static void test_learning(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(send_from(f, 0, mac[3], mac[0]), 0xc);
	send_from(f, 3, mac[0], mac[3]);
	assert_int_equal(send_from(f, 0, mac[3], mac[0]), 1 << 3);
	assert_int_equal(send_from(f, 3, mac[3], unknown), 0);
	send_from(f, 2, mac[0], mac[3]);
	assert_int_equal(send_from(f, 0, mac[3], mac[0]), 1 << 2);
}

/* Addresses that differ in one byte do not displace each other. */
static void test_similar_addresses(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 2 * 6 * 16; i++) {
		uint8_t similar[6] = { 2, 4, 4, 4, 4, 4 };

		similar[i / 16 % 6] = 2 * (i % 16);
		if (i < 6 * 16)
			send_from(f, 3, mac[0], similar);
		else
			assert_int_equal(send_from(f, 0, similar, mac[0]), 1 << 3);
	}
}

/* An address is known for 300 seconds after its last frame. */
static void test_learned_age(void **state)
{
	struct fixture *f = *state;

	fake_seconds = 1000;
	send_from(f, 3, mac[0], mac[3]);
	fake_seconds = 1299;
	assert_int_equal(send_from(f, 0, mac[3], mac[0]), 1 << 3);
	fake_seconds = 1300;
	assert_int_equal(send_from(f, 0, mac[3], mac[0]), 0xc);
	send_from(f, 3, mac[0], mac[3]);
	fake_seconds = 1599;
	assert_int_equal(send_from(f, 0, mac[3], mac[0]), 1 << 3);
	fake_seconds = 0;
}

/* Return the bucket of @mac, whose hash is that of switch.c. */
static uint32_t bucket(const uint8_t mac[6])
{
	uint64_t v = 0;

	memcpy(&v, mac, 6);
	return (v * 0x9e3779b97f4a7c15ull >> 40) % 1024;
}

/* Advance @mac to the next address in that bucket. */
static void next_of(uint32_t want, uint8_t mac[6])
{
	do {
		for (int i = 2; i < 6 && !++mac[i]; i++)
			;
	} while (bucket(mac) != want);
}

static void next_of_bucket(uint8_t mac[6])
{
	next_of(bucket(mac), mac);
}

/* A bucket has room for four: the address that was silent for the longest time is replaced. */
static void test_oldest_is_forgotten(void **state)
{
	struct fixture *f = *state;
	uint8_t one[6] = { 2, 7 }, all[10][6];

	for (int i = 0; i < 10; i++) {
		memcpy(all[i], one, 6);
		next_of_bucket(one);
	}
	/* each keeps its entry when it sends again */
	for (int i = 0; i < 8; i++) {
		fake_seconds = 1000 + i;
		send_from(f, 3, mac[0], all[i % 4]);
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(send_from(f, 0, all[i], mac[0]), 1 << 3);
	/* the first sends again: now the second is the oldest, then the third */
	fake_seconds++;
	send_from(f, 3, mac[0], all[0]);
	for (int i = 4; i < 7; i++) {
		fake_seconds++;
		send_from(f, 3, mac[0], all[i]);
		assert_int_equal(send_from(f, 0, all[i], mac[0]), 1 << 3);
		for (int k = 0; k < i; k++)
			assert_int_equal(send_from(f, 0, all[k], mac[0]),
					 !k || k > i - 3 ? 1 << 3 : 0xc);
	}
	/* the same second: no two of them share one entry */
	fake_seconds++;
	for (int i = 7; i < 10; i++)
		send_from(f, 3, mac[0], all[i]);
	for (int i = 7; i < 10; i++)
		assert_int_equal(send_from(f, 0, all[i], mac[0]), 1 << 3);
	fake_seconds = 0;
}

/* The address of a group or a device, as a source, displaces none in its bucket. */
static void test_no_displacement(void **state)
{
	struct fixture *f = *state;
	uint8_t all[5][6] = { { 2, 7 } }, multicast[6] = { 3, 7 };

	for (int i = 1; i < 5; i++) {
		memcpy(all[i], all[i - 1], 6);
		next_of_bucket(all[i]);
	}
	next_of(bucket(all[0]), multicast);
	assert_int_equal(switch_port_set_mac(f->end[1].port, all[4]), 0);
	for (int i = 0; i < 4; i++)
		send_from(f, 3, mac[0], all[i]);
	send_from(f, 2, mac[0], multicast);
	send_from(f, 2, mac[0], all[4]);
	for (int i = 0; i < 5; i++)
		assert_int_equal(send_from(f, 0, all[i], mac[0]), i < 4 ? 1 << 3 : 1 << 1);
}

static void test_learned_port_deleted(void **state)
{
	struct fixture *f = *state;
	uint8_t one[6] = { 2, 7 }, all[8][6];

	/* all entries of the first and of the last bucket */
	for (int i = 0; i < 8; i++) {
		next_of(i % 2 ? 1023 : 0, one);
		memcpy(all[i], one, 6);
		send_from(f, 3, mac[0], one);
	}
	switch_port_del(f->end[3].port);
	for (int i = 0; i < 8; i++)
		assert_int_equal(send_from(f, 0, all[i], mac[0]), 1 << 2);
}

/* A frame cannot take over a device's address, and a device's frames teach no address. */
static void test_devices_are_not_learned(void **state)
{
	struct fixture *f = *state;

	send_from(f, 2, broadcast, mac[1]);
	assert_int_equal(send_from(f, 0, mac[1], mac[0]), 1 << 1);
	send_from(f, 1, broadcast, unknown);
	assert_int_equal(send_from(f, 0, unknown, mac[0]), 0xc);
}

static void test_group_source_is_not_learned(void **state)
{
	struct fixture *f = *state;

	send_from(f, 2, mac[0], broadcast);
	assert_int_equal(send_from(f, 0, broadcast, mac[0]), 0xe);
}

static void test_learning_is_bounded(void **state)
{
	struct fixture *f = *state;
	uint8_t smac[6] = { 2, 7 }, other[6] = { 4, 7 };

	for (uint32_t i = 0; i < 100000; i++) {
		memcpy(smac + 2, &i, 4);
		memcpy(other + 2, &i, 4);
		assert_int_equal(send_from(f, 2, other, smac), 1 << 3);
	}
	assert_int_equal(send_from(f, 0, smac, mac[0]), 1 << 2);
	assert_int_equal(send_from(f, 0, mac[1], mac[0]), 1 << 1);
}

/* ORN-PORT-6 */
static void test_mac_taken(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(switch_port_set_mac(f->end[1].port, mac[0]), -EEXIST);
	assert_int_equal(send_from(f, 2, mac[1], mac[2]), 1 << 1);
	assert_int_equal(switch_port_set_mac(f->end[0].port, mac[0]), 0);
	assert_int_equal(switch_port_set_mac(f->end[0].port, unknown), 0);
	assert_int_equal(switch_port_set_mac(f->end[1].port, mac[0]), 0);
	assert_int_equal(send_from(f, 2, mac[0], mac[2]), 1 << 1);
	assert_int_equal(send_from(f, 2, unknown, mac[2]), 1 << 0);
	assert_int_equal(send_from(f, 2, mac[1], mac[2]), 1 << 3);
}

/* ORN-PORT-13 */
static void test_down(void **state)
{
	struct fixture *f = *state;

	assert_true(switch_port_is_up(f->end[1].port));
	switch_port_set_up(f->end[1].port, false);
	assert_false(switch_port_is_up(f->end[1].port));
	assert_int_equal(send_from(f, 0, mac[1], mac[0]), 0);
	assert_int_equal(send_from(f, 1, mac[0], mac[1]), 0);
	assert_int_equal(send_from(f, 0, broadcast, mac[0]), 0xc);
	switch_port_set_up(f->end[1].port, true);
	assert_int_equal(send_from(f, 0, mac[1], mac[0]), 1 << 1);
}

static void test_loopback(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(send_from(f, 0, mac[0], mac[0]), 0);
	switch_loopback(f->end[0].port, make(f, mac[0], mac[0]));
	switch_loopback(f->end[1].port, make(f, broadcast, mac[1]));
	switch_drain(f->sw);
	assert_int_equal(f->end[0].got, 1);
	assert_int_equal(f->end[1].got, 1);
	assert_int_equal(f->end[2].got, 0);
}

static void test_answer_while_delivering(void **state)
{
	struct fixture *f = *state;

	f->end[1].answer = mac[0];
	assert_int_equal(send_from(f, 0, mac[1], mac[0]), 0x3);
	assert_true(f->end[0].last > f->end[1].last);
}

static void test_port_deleted_with_packets_queued(void **state)
{
	struct fixture *f = *state;

	switch_send(f->end[2].port, make(f, mac[0], mac[2]));
	switch_send(f->end[1].port, make(f, mac[0], mac[1]));
	switch_send(f->end[2].port, make(f, mac[0], mac[2]));
	switch_port_del(f->end[2].port);
	switch_drain(f->sw);
	assert_int_equal(f->end[0].got, 1);
	assert_int_equal(f->end[0].last, 2);
}

/* A packet whose receiver was found, and is deleted before it is delivered */
static void test_receiver_deleted(void **state)
{
	struct fixture *f = *state;
	struct packet *p = make(f, mac[1], mac[0]);

	switch_find(f->end[0].port, p);
	assert_ptr_equal(p->to, f->end[1].port);
	switch_send(f->end[0].port, p);
	switch_port_del(f->end[1].port);
	switch_drain(f->sw);
	assert_int_equal(f->end[1].got, 0);
	assert_int_equal(f->end[2].got, 1);
	assert_int_equal(f->end[3].got, 1);
}

/* A receiver that was found is not searched again, although its address is another one now. */
static void test_receiver_found(void **state)
{
	struct fixture *f = *state;
	struct packet *p = make(f, mac[1], mac[0]);

	switch_find(f->end[0].port, p);
	assert_int_equal(switch_port_set_mac(f->end[1].port, unknown), 0);
	switch_send(f->end[0].port, p);
	switch_drain(f->sw);
	for (int i = 0; i < PORTS; i++)
		assert_int_equal(f->end[i].got, i == 1);
}

static void test_free_drops_queue(void **state)
{
	struct fixture *f = *state;

	switch_send(f->end[0].port, make(f, mac[1], mac[0]));
	switch_send(f->end[3].port, make(f, mac[1], mac[3]));
	switch_free(NULL);
}

/** struct sight - an observed packet: port, direction and serial number */
struct sight {
	uint32_t port;
	enum switch_way way;
	uint32_t serial;
	const char *note;
};

struct sights {
	struct sight at[16];
	unsigned int n;
};

static void see(void *arg, const struct switch_port *port, enum switch_way way,
		const struct packet *p, const char *note)
{
	struct sights *s = arg;

	assert_true(s->n < 16);
	s->at[s->n++] = (struct sight) { switch_port_number(port), way, p->psn, note };
}

static void expect_sight(struct sights *s, unsigned int i, uint32_t port, enum switch_way way,
			 uint32_t serial)
{
	assert_true(i < s->n);
	assert_int_equal(s->at[i].port, port);
	assert_int_equal(s->at[i].way, way);
	assert_int_equal(s->at[i].serial, serial);
}

/* Everything that ports receive and send is observed, once, in the order of events. */
static void test_observer(void **state)
{
	struct fixture *f = *state;
	struct sights s = { 0 };
	const struct switch_observer o = { see, &s };
	struct packet p = { .psn = 99 };

	switch_set_observer(f->sw, &o);
	f->end[1].answer = mac[0];
	assert_int_equal(send_from(f, 0, mac[1], mac[0]), 0x3);
	assert_int_equal(s.n, 4);
	expect_sight(&s, 0, 0, SWITCH_IN, 1);
	expect_sight(&s, 1, 1, SWITCH_OUT, 1);
	expect_sight(&s, 2, 1, SWITCH_IN, 2);
	expect_sight(&s, 3, 0, SWITCH_OUT, 2);
	assert_null(s.at[0].note);

	s.n = 0;
	assert_int_equal(send_from(f, 3, broadcast, mac[3]), 0x7);
	assert_int_equal(s.n, 4);
	expect_sight(&s, 0, 3, SWITCH_IN, 3);
	for (int i = 1; i < 4; i++)
		expect_sight(&s, i, i - 1, SWITCH_OUT, 3);

	s.n = 0;
	switch_port_set_up(f->end[1].port, false);
	send_from(f, 0, broadcast, mac[0]);
	assert_int_equal(s.n, 3);

	s.n = 0;
	switch_observe(f->end[2].port, SWITCH_IN, &p, "dropped");
	expect_sight(&s, 0, 2, SWITCH_IN, 99);
	assert_string_equal(s.at[0].note, "dropped");
	switch_set_observer(f->sw, NULL);
	send_from(f, 0, mac[2], mac[0]);
	assert_int_equal(s.n, 1);
}

static void expect_lost(struct sights *s, uint32_t from, uint32_t port, enum switch_way way,
			uint32_t serial, const char *note)
{
	assert_int_equal(s->n, 2);
	expect_sight(s, 0, from, SWITCH_IN, serial);
	assert_null(s->at[0].note);
	expect_sight(s, 1, port, way, serial);
	assert_string_equal(s->at[1].note, note);
	s->n = 0;
}

/* A frame that does not leave has a note with the reason; a flood skips a port that is down. */
static void test_lost(void **state)
{
	struct fixture *f = *state;
	struct sights s = { 0 };
	const struct switch_observer o = { see, &s };
	struct packet *p;

	send_from(f, 3, mac[0], mac[3]);
	switch_set_observer(f->sw, &o);
	assert_int_equal(send_from(f, 3, mac[3], mac[3]), 0);
	expect_lost(&s, 3, 3, SWITCH_OUT, 2, "dropped: not sent back to where it came from");
	assert_int_equal(send_from(f, 0, mac[0], mac[0]), 0);
	expect_lost(&s, 0, 0, SWITCH_OUT, 3, "dropped: not sent back to where it came from");

	switch_port_set_up(f->end[1].port, false);
	assert_int_equal(send_from(f, 1, mac[0], mac[1]), 0);
	expect_lost(&s, 1, 1, SWITCH_IN, 4, "dropped: link down");
	assert_int_equal(send_from(f, 0, mac[1], mac[0]), 0);
	expect_lost(&s, 0, 1, SWITCH_OUT, 5, "dropped: link down");
	p = make(f, mac[1], mac[0]);
	p->from = f->end[0].port;
	s.n = 1;
	switch_resume(f->end[1].port, SWITCH_OUT, p, NULL);
	packet_put(&f->pool, p);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.at[1].note, "dropped: link down");
	s.n = 0;

	switch_port_set_up(f->end[2].port, false);
	assert_int_equal(send_from(f, 0, broadcast, mac[0]), 0x8);
	assert_int_equal(s.n, 2);
	s.n = 0;
	switch_port_set_up(f->end[3].port, false);
	assert_int_equal(send_from(f, 0, unknown, mac[0]), 0);
	expect_lost(&s, 0, 0, SWITCH_IN, 8, "dropped: no port for it");
	assert_int_equal(send_from(f, 0, broadcast, mac[0]), 0);
	expect_lost(&s, 0, 0, SWITCH_IN, 9, "dropped: no port for it");
	switch_set_observer(f->sw, NULL);
}

/* A port that holds packets is flushed once per iteration; a port that was deleted is not. */
static void test_flush(void **state)
{
	struct fixture *f = *state;

	switch_flush(f->sw);
	for (unsigned int n = 1; n <= 2; n++) {
		switch_hold(f->end[0].port);
		switch_hold(f->end[2].port);
		switch_hold(f->end[0].port);
		switch_flush(f->sw);
		switch_flush(f->sw);
		for (int i = 0; i < PORTS; i++)
			assert_int_equal(f->end[i].flushed, i == 0 || i == 2 ? n : 0);
	}
	switch_hold(f->end[0].port);
	switch_hold(f->end[2].port);
	switch_port_del(f->end[2].port);
	switch_flush(f->sw);
	assert_int_equal(f->end[0].flushed, 3);
	assert_int_equal(f->end[2].flushed, 2);
}

/* Names are compared as a whole; the first of several ports is found. */
static void test_find_port(void **state)
{
	struct fixture *f = *state;
	struct switch_port *port = switch_port_add(f->sw, "port2", &ops, &f->end[0]);

	assert_ptr_equal(switch_port_find(f->sw, "port"), f->end[0].port);
	assert_ptr_equal(switch_port_find(f->sw, "port2"), port);
	assert_null(switch_port_find(f->sw, "por"));
	assert_false(switch_port_is_up(port));
	assert_false(switch_port_is_device(port));
	assert_int_equal(switch_port_vlan(port), 0);
	assert_null(switch_port_egress(port));
}

static void test_ports_are_told_apart(void **state)
{
	struct fixture *f = *state;
	struct switch_port *port = NULL;

	for (uint32_t i = 0; i < PORTS; i++) {
		port = switch_port_next(f->sw, port);
		assert_ptr_equal(port, f->end[i].port);
		assert_int_equal(switch_port_number(port), i);
		assert_string_equal(switch_port_name(port), "port");
		assert_int_equal(switch_port_is_device(port), i < 2);
	}
	assert_null(switch_port_next(f->sw, port));
	switch_port_del(port);
	f->end[3].port = switch_port_add(f->sw, "/run/ornic/a-path-of-more-than-31-bytes", &ops,
					 &f->end[3]);
	assert_int_equal(switch_port_number(f->end[3].port), PORTS);
	assert_string_equal(switch_port_name(f->end[3].port),
			    "/run/ornic/a-path-of-more-than-31-bytes");
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_station),
		TEST(test_group),
		TEST(test_unknown_unicast_spares_devices),
		TEST(test_learning),
		TEST(test_similar_addresses),
		TEST(test_learned_age),
		TEST(test_oldest_is_forgotten),
		TEST(test_no_displacement),
		TEST(test_learned_port_deleted),
		TEST(test_devices_are_not_learned),
		TEST(test_group_source_is_not_learned),
		TEST(test_learning_is_bounded),
		TEST(test_mac_taken),
		TEST(test_down),
		TEST(test_loopback),
		TEST(test_answer_while_delivering),
		TEST(test_port_deleted_with_packets_queued),
		TEST(test_receiver_deleted),
		TEST(test_receiver_found),
		TEST(test_free_drops_queue),
		TEST(test_observer),
		TEST(test_lost),
		TEST(test_flush),
		TEST(test_find_port),
		TEST(test_ports_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
