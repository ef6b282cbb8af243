// SPDX-License-Identifier: GPL-2.0
/*
 * dev/identify.c, dev/stats.c: the Identify pages are well formed, and their limits are those
 * that commands apply.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"
#include "lib/lines.h"

#include "engine/link.h"
#include "engine/mcast.h"
#include "engine/rate.h"
#include "version.h"

#include <ornic/identify.h>
#include <ornic/port.h>
#include <ornic/stats.h>
#include <ornic/steer.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int identify(struct inproc *p, uint8_t page, uint16_t index, void *out, uint16_t len)
{
	struct ornic_identify_cmd in = { .page = page, .index = htole16(index) };
	int st = host_exec(&p->host, ORNIC_OP_IDENTIFY, 0, &in, sizeof(in), out, len);

	/* @len is that of the page. */
	assert_int_equal(le32toh(p->host.cpl.out_size), st ? 0 : len);
	return st;
}

/* ORN-FEA-7, ORN-IDN-7, ORN-IDN-8, ORN-IDN-9 */
static void test_device(void **state)
{
	struct inproc *p = *state;
	struct ornic_identify_device d;
	static const uint8_t guid[8] = { 0, 0, 0, 0xff, 0xfe, 0, 0, 1 };

	assert_int_equal(identify(p, ORNIC_ID_DEVICE, 0, &d, sizeof(d)), 0);
	assert_int_equal(le64toh(d.features0), FEATURES);
	assert_int_equal(d.features1, 0);
	assert_int_equal(d.ports, 1);
	assert_memory_equal(&d.node_guid, guid, sizeof(guid));
	assert_int_equal(d.fw_version[31], 0);
	assert_string_equal((char *)d.serial, "020000000001");
	assert_true(le64toh(d.page_sizes) & 1u << 12);
	assert_int_equal(le64toh(d.page_sizes) & 0xfff, 0);
	assert_int_equal(le32toh(d.max_dbpages), FUNC_DB_BYTES / 4096);
	assert_int_equal(le32toh(d.max_qp), LIMIT_QP);
	assert_true(le32toh(d.max_key) < 1u << 24);
	assert_true(le16toh(d.max_sge_read) <= 16);
	assert_true(le16toh(d.max_send_sge) >= 16);
	/* The most SGEs, behind the longest headers, fit the longest stride. */
	assert_true(sizeof(struct ornic_wqe_ctrl) + sizeof(struct ornic_path) +
		    le16toh(d.max_send_sge) * sizeof(struct ornic_sge) <= 1u << d.max_sq_stride);
	assert_true(sizeof(struct ornic_rwqe) +
		    le16toh(d.max_recv_sge) * sizeof(struct ornic_sge) <= 1u << d.max_rq_stride);
	assert_int_equal(le32toh(d.max_mw), LIMIT_KEY);
	assert_true(le32toh(d.max_fast_reg_pages) >= 256);
	assert_int_equal(d.atomic_scope, 1);
	assert_int_equal(le32toh(d.clock_khz), 1000000);
	assert_int_equal(le32toh(d.max_rss_groups), LIMIT_RSS);
	assert_int_equal(le32toh(d.rss_max_table), ORNIC_RSS_MAX_TABLE);
	assert_int_equal(le32toh(d.rss_fields), ORNIC_RSS_FIELDS);
	assert_int_equal(d.rss_hash_functions, 1u << ORNIC_RSS_TOEPLITZ);
	assert_in_range(le32toh(d.rate_min_kbps), 1, le32toh(d.rate_max_kbps));
	assert_int_equal(le32toh(d.rate_qp_types), 1u << ORNIC_QPT_RC | 1u << ORNIC_QPT_RAW);
	/* Limits of features that are not offered are zero. */
	assert_int_equal(d.max_cc_profiles | d.max_lso_bytes, 0);
	for (unsigned int i = 0; i < sizeof(d.res); i++)
		assert_int_equal(d.res[i], 0);
}

/* Names are made of all bytes of the MAC address. */
static void test_names(void **state)
{
	static const uint8_t mac[6] = { 2, 0x11, 0x22, 0x33, 0x44, 0x5a };
	static const uint8_t guid[8] = { 0, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x5a };
	struct inproc *p = *state;
	struct ornic_identify_device d;

	memcpy(p->f->dev.port.permanent_mac, mac, sizeof(mac));
	assert_int_equal(identify(p, ORNIC_ID_DEVICE, 0, &d, sizeof(d)), 0);
	assert_memory_equal(&d.node_guid, guid, sizeof(guid));
	assert_memory_equal(&d.sys_image_guid, guid, sizeof(guid));
	assert_string_equal((char *)d.serial, "02112233445a");
}

/*
 * ORN-IDN-10. Every field of the page, also those that are 0: commands apply these limits. They are
 * numbers here because programs see them, so that no limit changes by mistake.
 */
static void test_limits(void **state)
{
	const struct ornic_identify_device want = {
		.features0 = htole64(0x10bf1f6d47ff),
		.vendor_id = htole32(ORNIC_PCI_VENDOR_ID),
		.vendor_part = htole32(ORNIC_PCI_DEVICE_ID),
		.hw_version = htole32(1), .fw_version = ORNICD_VERSION,
		.ports = 1, .max_dbpages = htole32(1024),
		.page_sizes = htole64((1ull << 52) - 4096), .max_region = htole64(1ull << 40),
		.dm_bytes = htole64(262144), .max_qp = htole32(16384),
		.max_cq = htole32(16384), .max_srq = htole32(16384),
		.max_eq = htole32(64), .max_key = htole32(65536),
		.max_mw = htole32(65536), .max_pd = htole32(4096),
		.max_xrcd = htole32(4096), .max_raw_qp = htole32(16384),
		.max_mcast_groups = htole32(1024),
		.max_mcast_per_group = htole32(256),
		.max_mcast_total = htole32(8192), .max_rules = htole32(512),
		.max_rss_groups = htole32(256),
		.max_counter_sets = htole32(4096),
		.max_fast_reg_pages = htole32(512),
		.log_max_sq = 15, .log_max_rq = 15,
		.log_max_srq = 15, .log_max_cq = 22,
		.log_max_eq = 20, .max_sq_stride = ORNIC_SQ_MAX_STRIDE,
		.max_rq_stride = ORNIC_RQ_MAX_STRIDE, .max_list_level = 2,
		.max_send_sge = htole16(30), .max_recv_sge = htole16(30),
		.max_srq_sge = htole16(30), .max_sge_read = htole16(16),
		.max_inline = htole16(512),
		.max_rd_atomic_init = htole16(16),
		.max_rd_atomic_resp = htole16(16),
		.max_rd_resources = htole32(16384 * 16), .atomic_scope = 1,
		.ca_ack_delay = 15, .rss_hash_functions = 1u << ORNIC_RSS_TOEPLITZ,
		.rss_fields = htole32(ORNIC_RSS_FIELDS),
		.rss_max_table = htole32(ORNIC_RSS_MAX_TABLE), .clock_khz = htole32(1000000),
		.clock_mask = htole64(UINT64_MAX), .max_mod_count = htole16(60000),
		.max_mod_period_us = htole16(60000),
		.rate_min_kbps = htole32(1), .rate_max_kbps = htole32(100000000),
		.rate_qp_types = htole32(1u << ORNIC_QPT_RC | 1u << ORNIC_QPT_RAW),
		.stat_count = htole32(STAT_COUNT),
		.transports = htole32(2), .max_list_entries = htole64(67108864),
	};
	struct inproc *p = *state;
	struct ornic_identify_device d;
	const uint8_t *got = (const uint8_t *)&d, *expected = (const uint8_t *)&want;

	p->f->generation = 0x01020304;
	assert_int_equal(identify(p, ORNIC_ID_DEVICE, 0, &d, sizeof(d)), 0);
	assert_int_equal(le32toh(d.generation), 0x01020304);
	assert_int_equal(d.sys_image_guid, d.node_guid);
	d.generation = 0;
	d.node_guid = 0;	/* test_device */
	d.sys_image_guid = 0;
	memset(d.serial, 0, sizeof(d.serial));
	for (size_t i = 0; i < sizeof(d); i++)
		if (got[i] != expected[i])
			fail_msg("byte 0x%zx is 0x%x, not 0x%x", i, got[i], expected[i]);
}

/* Counts of bad keys are counters; values that no command changes are constant. */
static void test_port_fields(void **state)
{
	struct inproc *p = *state;
	struct ornic_identify_port want = {
		.link_layer = ORNIC_LINK_ETHERNET, .state = ORNIC_PORT_STATE_DOWN,
		.phys_state = ORNIC_PORT_PHYS_DISABLED, .max_mtu = ORNIC_MTU_4096,
		.active_mtu = ORNIC_MTU_1024, .gid_entries = htole32(256),
		.pkey_entries = htole32(1), .speed_mbps = htole64(100000),
		.max_msg = htole32(1u << 31), .ib_width = 2, .ib_speed = 32,
		.max_frame = htole16(9000), .permanent_mac = { 2, 0, 0, 0, 0, 1 },
		.current_mac = { 2, 0, 0, 0, 0, 7 }, .pkey_violations = htole32(5),
		.qkey_violations = htole32(3),
		.flags = htole32(ORNIC_PORT_F_PROMISC | ORNIC_PORT_F_MAC_CHANGE |
				 ORNIC_PORT_F_SHARED),
	};
	struct ornic_identify_port got;

	p->f->dev.cnt[CNT_bad_qkey] = 3;
	p->f->dev.cnt[CNT_bad_pkey] = 5;
	p->f->dev.port.mac[5] = 7;
	assert_int_equal(identify(p, ORNIC_ID_PORT, 1, &got, sizeof(got)), 0);
	assert_memory_equal(&got, &want, sizeof(got));
	p->f->dev.port.mac[5] = 1;
}

/* The active MTU is the largest IBTA MTU that fits the frame size with some 52 bytes of headers. */
static void test_active_mtu(void **state)
{
	struct inproc *p = *state;
	uint8_t last = ORNIC_MTU_256;
	struct ornic_identify_port got;
	unsigned int steps = 0;

	for (uint16_t frame = 256; frame <= 9000; frame += 4) {
		p->f->dev.port.max_frame = frame;
		assert_int_equal(identify(p, ORNIC_ID_PORT, 1, &got, sizeof(got)), 0);
		assert_in_range(got.active_mtu, last, last + 1);
		if (got.active_mtu != last) {
			/* it fits now, and did not before */
			assert_true((128u << got.active_mtu) < frame);
			assert_true((128u << got.active_mtu) + 100 > frame);
			assert_in_range(link_mtu(&p->f->dev), 128u << got.active_mtu,
					(128u << got.active_mtu) + 3);
			steps++;
		}
		last = got.active_mtu;
	}
	assert_int_equal(steps, ORNIC_MTU_4096 - ORNIC_MTU_256);
}

static void test_port(void **state)
{
	struct inproc *p = *state;
	struct ornic_identify_port a, b;

	assert_int_equal(identify(p, ORNIC_ID_PORT, 1, &a, sizeof(a)), 0);
	assert_int_equal(a.link_layer, ORNIC_LINK_ETHERNET);
	assert_int_equal(a.state, ORNIC_PORT_STATE_DOWN);
	assert_int_equal(a.phys_state, ORNIC_PORT_PHYS_DISABLED);
	assert_int_equal(a.active_mtu, ORNIC_MTU_1024);
	assert_int_equal(le32toh(a.gid_entries), 256);
	assert_int_equal(le32toh(a.pkey_entries), 1);
	assert_int_equal(le16toh(a.max_frame), 9000);
	assert_memory_equal(a.permanent_mac, a.current_mac, 6);
	assert_int_equal(host_port_up(&p->host, 9000), 0);
	assert_int_equal(identify(p, ORNIC_ID_PORT, 1, &a, sizeof(a)), 0);
	assert_int_equal(a.state, ORNIC_PORT_STATE_ACTIVE);
	assert_int_equal(a.active_mtu, ORNIC_MTU_4096);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_PORT_QUERY, 1, NULL, 0, &b, sizeof(b)), 0);
	assert_memory_equal(&a, &b, sizeof(a));
}

/* ORN-IDN-6 */
static void test_transports(void **state)
{
	struct inproc *p = *state;
	struct ornic_identify_device d;
	struct ornic_identify_transport t;
	uint32_t types = 0;

	assert_int_equal(identify(p, ORNIC_ID_DEVICE, 0, &d, sizeof(d)), 0);
	for (uint32_t i = 0; i < le32toh(d.transports); i++) {
		assert_int_equal(identify(p, ORNIC_ID_TRANSPORT, i, &t, sizeof(t)), 0);
		types |= le32toh(t.qp_types);
		assert_int_equal(t.version, 0);
		assert_int_equal(t.id, i ? ORNIC_TP_ETHERNET : ORNIC_TP_ROCEV2);
		assert_int_equal(le16toh(t.udp_port), i ? 0 : 4791);
		assert_int_equal(le32toh(t.gid_types), i ? 0 : 1u << ORNIC_GID_ROCEV2);
	}
	assert_int_equal(types, 1 << ORNIC_QPT_GSI | 1 << ORNIC_QPT_RC | 1 << ORNIC_QPT_UC |
			 1 << ORNIC_QPT_UD | 1 << ORNIC_QPT_RAW | 1 << ORNIC_QPT_XRC_INI |
			 1 << ORNIC_QPT_XRC_TGT);
	assert_int_equal(identify(p, ORNIC_ID_TRANSPORT, le32toh(d.transports), &t, sizeof(t)),
			 ORNIC_ST_BAD_PARAM);
}

/* ORN-IDN-3 */
static void test_unknown_pages(void **state)
{
	struct inproc *p = *state;
	uint8_t out[512];

	assert_int_equal(identify(p, 3, 0, out, sizeof(out)), ORNIC_ST_BAD_PARAM);
	assert_int_equal(identify(p, 0xc0, 0, out, sizeof(out)), ORNIC_ST_BAD_PARAM);
	assert_int_equal(identify(p, ORNIC_ID_DEVICE, 1, out, sizeof(out)), ORNIC_ST_BAD_PARAM);
	assert_int_equal(identify(p, ORNIC_ID_PORT, 0, out, sizeof(out)), ORNIC_ST_BAD_PARAM);
	assert_int_equal(identify(p, ORNIC_ID_PORT, 2, out, sizeof(out)), ORNIC_ST_BAD_PARAM);
}

static uint32_t read_names(struct inproc *p, struct ornic_stat_name *names)
{
	struct ornic_stat_names_cmd in = { 0 };
	uint32_t n = 0, got;

	do {
		in.offset = htole32(n);
		assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_NAMES, 0, &in, sizeof(in),
					   names + n, 10 * sizeof(*names)), 0);
		got = le32toh(p->host.cpl.out_size) / sizeof(*names);
		n += got < 10 ? got : 10;
	} while (got > 10);
	return n;
}

/* ORN-STAT-1, ORN-STAT-2, ORN-STAT-3, ORN-STAT-4, ORN-STAT-7, ORN-STAT-8 */
static void test_stats(void **state)
{
	struct inproc *p = *state;
	struct ornic_stat_name names[200], again[200];
	struct ornic_identify_device d;
	struct ornic_stat_read_cmd in = { .scope = ORNIC_STAT_DEVICE, .count = htole32(1) };
	uint64_t value, before;
	uint32_t n, first = 0, i;

	n = read_names(p, names);
	assert_int_equal(read_names(p, again), n);
	assert_memory_equal(names, again, n * sizeof(names[0]));
	assert_int_equal(identify(p, ORNIC_ID_DEVICE, 0, &d, sizeof(d)), 0);
	assert_int_equal(n, le32toh(d.stat_count));
	for (i = 0; i < n; i++) {
		assert_in_range(strlen(names[i].name), 1, 39);
		assert_int_equal(strspn(names[i].name, "abcdefghijklmnopqrstuvwxyz0123456789_"),
				 strlen(names[i].name));
		assert_in_range(le32toh(names[i].id), 1, ORNIC_STAT_ID_OWN - 1);
		if (names[i].scope != ORNIC_STAT_QP)
			assert_int_equal(names[i].scope, le32toh(names[i].id) < 0x200 ?
					 ORNIC_STAT_PORT : ORNIC_STAT_DEVICE);
		else
			assert_true(le32toh(names[i].id) < 0x200);
		for (uint32_t j = 0; j < i; j++)
			assert_false(names[i].id == names[j].id &&
				     names[i].scope == names[j].scope);
	}
	for (i = 0; strcmp(names[i].name, "admin_commands"); i++)
		first += names[i].scope == ORNIC_STAT_DEVICE;
	assert_int_equal(le32toh(names[i].id), ORNIC_STAT_ID_ADMIN_COMMANDS);
	in.first = htole32(first);
	before = inproc_counter(p, CNT_admin_commands);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_READ, 0, &in, sizeof(in), &value, 8),
			 0);
	assert_int_equal(le64toh(value), before);
	assert_int_equal(le32toh(p->host.cpl.out_size), 8);
	in.clear = 1;
	assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_READ, 0, &in, sizeof(in), NULL, 0),
			 ORNIC_ST_RESERVED);
	in.clear = 0;
	in.scope = ORNIC_STAT_EQ + 1;
	assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_READ, 0, &in, sizeof(in), NULL, 0),
			 ORNIC_ST_BAD_PARAM);
	assert_int_equal(le32toh(p->host.cpl.syndrome), ORNIC_SYN_FIELD |
			 offsetof(struct ornic_stat_read_cmd, scope));
	in.scope = ORNIC_STAT_EQ;
	assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_READ, 0, &in, sizeof(in), NULL, 0), 0);
	assert_int_equal(p->host.cpl.out_size, 0);
}

/* Lists report their whole length, whatever fits the buffer, and write only whole entries. */
static void test_partial_lists(void **state)
{
	struct inproc *p = *state;
	const uint8_t *buf = dma_at(&p->host.dma, p->host.payload + 4096);
	struct ornic_stat_names_cmd names = { 0 };
	struct ornic_stat_read_cmd read = {
		.scope = ORNIC_STAT_PORT, .number = htole32(1), .count = htole32(20),
	};
	const uint32_t most = ORNIC_ADMIN_MAX_PAYLOAD / sizeof(struct ornic_stat_name);
	uint8_t all[160], out[160], whole[ORNIC_ADMIN_MAX_PAYLOAD];
	uint32_t left[][2] = { { STAT_COUNT - 1, 1 }, { STAT_COUNT, 0 }, { STAT_COUNT + 1, 0 } };

	for (int i = 0; i < 3; i++) {
		names.offset = htole32(left[i][0]);
		assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_NAMES, 0, &names, sizeof(names),
					   out, 160), 0);
		assert_int_equal(le32toh(p->host.cpl.out_size),
				 left[i][1] * sizeof(struct ornic_stat_name));
	}
	names.offset = 0;
	memset((void *)buf, 0xaa, 160);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_NAMES, 0, &names, sizeof(names), out,
				   100), 0);
	assert_int_equal(le32toh(p->host.cpl.out_size),
			 STAT_COUNT * sizeof(struct ornic_stat_name));
	for (int i = 96; i < 160; i++)
		assert_int_equal(buf[i], 0xaa);
	/* also if it fits the longest buffer no better; the sanitizer looks behind it */
	assert_true(STAT_COUNT > most && sizeof(whole) % sizeof(struct ornic_stat_name));
	memset((void *)buf, 0xaa, sizeof(whole));
	assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_NAMES, 0, &names, sizeof(names), whole,
				   sizeof(whole)), 0);
	assert_memory_equal(buf, whole, sizeof(whole));
	for (size_t i = most * sizeof(struct ornic_stat_name); i < sizeof(whole); i++)
		assert_int_equal(buf[i], 0xaa);

	for (int i = 0; i < CNT_COUNT; i++)
		p->f->dev.cnt[i] = 0x0101010101010101ull * (i + 1);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_READ, 0, &read, sizeof(read), all, 160),
			 0);
	memset((void *)buf, 0xaa, 160);
	read.first = htole32(3);
	read.count = htole32(15);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_READ, 0, &read, sizeof(read), out, 100),
			 0);
	assert_int_equal(le32toh(p->host.cpl.out_size), 15 * 8);
	assert_memory_equal(buf, all + 3 * 8, 96);
	for (int i = 96; i < 160; i++)
		assert_int_equal(buf[i], 0xaa);
	read.number = 0;
	assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_READ, 0, &read, sizeof(read), NULL, 0),
			 ORNIC_ST_BAD_NUMBER);
	assert_int_equal(le32toh(p->host.cpl.syndrome), ORNIC_SYN_FIELD |
			 offsetof(struct ornic_stat_read_cmd, number));
}

/* Names of the host are logged as they are, but without control characters, and end in time. */
static void test_host_info(void **state)
{
	struct ornic_host_info_cmd info = { "Linux \033[31m", "a driver" };
	struct inproc *p = *state;
	char want[400];

	lines_begin();
	assert_int_equal(host_exec(&p->host, ORNIC_OP_HOST_INFO, 0, &info, sizeof(info), NULL, 0),
			 0);
	lines_end("ornicd: test: host is Linux ?[31m, driver a driver\n");
	memset(&info, 'x', sizeof(info));
	lines_begin();
	assert_int_equal(host_exec(&p->host, ORNIC_OP_HOST_INFO, 0, &info, sizeof(info), NULL, 0),
			 0);
	snprintf(want, sizeof(want), "ornicd: test: host is %.*s, driver %.*s\n",
		 (int)sizeof(info.os), info.os, (int)sizeof(info.driver), info.driver);
	lines_end(want);
}

static uint64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* ORN-CLK-1 */
static void test_small(void **state)
{
	struct inproc *p = *state;
	uint64_t start = engine_clock(), before = wall_ns();
	struct ornic_clock_rsp a, b;

	assert_int_equal(host_exec(&p->host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0), 0);
	assert_int_equal(p->host.cpl.out_size, 0);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_CLOCK_READ, 0, NULL, 0, &a, sizeof(a)), 0);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_CLOCK_READ, 0, NULL, 0, &b, sizeof(b)), 0);
	assert_true(le64toh(a.clock) < le64toh(b.clock));
	assert_in_range(le64toh(a.clock), start, engine_clock());
	assert_in_range(le64toh(a.wallclock_ns), before, wall_ns());
	assert_true(le64toh(a.wallclock_ns) <= le64toh(b.wallclock_ns));
}

#define READY(t)	cmocka_unit_test_setup_teardown(t, inproc_setup_ready, inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		READY(test_device), READY(test_names), READY(test_limits), READY(test_port_fields),
		READY(test_active_mtu), READY(test_port), READY(test_transports),
		READY(test_unknown_pages), READY(test_stats), READY(test_partial_lists),
		READY(test_host_info), READY(test_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
