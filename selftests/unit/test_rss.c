// SPDX-License-Identifier: GPL-2.0
/*
 * engine/rss.c: the Toeplitz hash, against the values published with it for this
 * key (ORN-RSS-4, ORN-RSS-5).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include "engine/rss.h"

#define ADDRESSES	(ORNIC_RSS_SRC_IPV4 | ORNIC_RSS_DST_IPV4 |		\
			 ORNIC_RSS_SRC_IPV6 | ORNIC_RSS_DST_IPV6)
#define TCP_PORTS	(ORNIC_RSS_SRC_PORT_TCP | ORNIC_RSS_DST_PORT_TCP)
#define UDP_PORTS	(ORNIC_RSS_SRC_PORT_UDP | ORNIC_RSS_DST_PORT_UDP)
#define IP_FIELDS	(ORNIC_MATCH_IP_VERSION | ORNIC_MATCH_SRC_IP | ORNIC_MATCH_DST_IP | \
			 ORNIC_MATCH_PROTOCOL)
#define PORTS		(ORNIC_MATCH_SRC_PORT | ORNIC_MATCH_DST_PORT)

static const uint8_t key[ORNIC_RSS_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

/* A published value: addresses alone, and with ports. */
struct known {
	const char *src;
	uint16_t sport;
	const char *dst;
	uint16_t dport;
	uint32_t ip;
	uint32_t tcp;
};

static const struct known known[] = {
	{ "::ffff:66.9.149.187", 2794, "::ffff:161.142.100.80", 1766, 0x323e8fc2, 0x51ccc178 },
	{ "::ffff:199.92.111.2", 14230, "::ffff:65.69.140.83", 4739, 0xd718262a, 0xc626b0ea },
	{ "3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2cc18cd5, 0x40207d3d },
};

#define KNOWN	(sizeof(known) / sizeof(known[0]))

static struct frame frame_of(const struct known *k, uint8_t protocol)
{
	struct frame f = { .fields = IP_FIELDS | PORTS };

	assert_int_equal(inet_pton(AF_INET6, k->src, f.key.src_ip), 1);
	assert_int_equal(inet_pton(AF_INET6, k->dst, f.key.dst_ip), 1);
	f.key.ip_version = k->src[0] == ':' ? 4 : 6;
	f.key.protocol = protocol;
	f.key.src_port = htons(k->sport);
	f.key.dst_port = htons(k->dport);
	return f;
}

static uint32_t hash(uint32_t fields, const struct frame *f, uint8_t *type)
{
	struct rss rss = { .fields = fields };

	memcpy(rss.key, key, sizeof(key));
	return rss_hash(&rss, f, type);
}

static void test_known(void **state)
{
	uint8_t type;

	(void)state;
	for (size_t i = 0; i < KNOWN; i++) {
		uint8_t ip = known[i].src[0] == ':' ? ORNIC_RSS_TYPE_IPV4 : ORNIC_RSS_TYPE_IPV6;
		struct frame f = frame_of(&known[i], 6);

		assert_int_equal(hash(ADDRESSES, &f, &type), known[i].ip);
		assert_int_equal(type, ip);
		assert_int_equal(hash(ADDRESSES | TCP_PORTS, &f, &type), known[i].tcp);
		assert_int_equal(type, ip | ORNIC_RSS_TYPE_TCP);
		assert_int_equal(hash(ADDRESSES | UDP_PORTS, &f, &type), known[i].ip);
		f.key.protocol = 17;
		assert_int_equal(hash(ADDRESSES | UDP_PORTS, &f, &type), known[i].tcp);
		assert_int_equal(type, ip | ORNIC_RSS_TYPE_UDP);
		f.fields &= ~PORTS;
		assert_int_equal(hash(ADDRESSES | UDP_PORTS, &f, &type), known[i].ip);
		assert_int_equal(type, ip);
	}
}

/* Fields that were not selected, or are missing, change nothing. */
static void test_nothing(void **state)
{
	struct frame f = frame_of(&known[0], 6);
	uint8_t type;

	(void)state;
	assert_int_equal(hash(0, &f, &type), 0);
	assert_int_equal(type, 0);
	assert_int_equal(hash(ORNIC_RSS_SRC_IPV6 | ORNIC_RSS_DST_IPV6, &f, &type), 0);
	assert_int_equal(type, 0);
	assert_int_not_equal(hash(ORNIC_RSS_SRC_PORT_TCP, &f, &type), 0);
	assert_int_equal(type, ORNIC_RSS_TYPE_TCP);
	f.fields = 0;
	assert_int_equal(hash(ORNIC_RSS_FIELDS, &f, &type), 0);
	assert_int_equal(type, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
