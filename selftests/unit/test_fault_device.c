// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection as the host of a function sees it: commands that fail or are never answered, a
 * flapping link, a device that dies.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/fault_rule.h"
#include "lib/lines.h"
#include "inproc.h"
#include <ornic/eq.h>
#include <ornic/port.h>

static uint32_t rule(struct inproc *p, const char *text)
{
	return fault_rule(&p->engine, text);
}

static void expect(struct inproc *p, uint32_t id, uint64_t matched, uint64_t acted)
{
	struct fault_info info;

	assert_true(fault_next(&p->engine, id - 1, &info));
	assert_int_equal(info.matched, matched);
	assert_int_equal(info.acted, acted);
}

static int pd_create(struct inproc *p)
{
	uint32_t pd;

	return host_pd_create(&p->host, &pd);
}

static void test_fail(void **state)
{
	struct inproc *p = *state;
	uint32_t id = rule(p, "admin device=test opcode=PD_* nth=2 fail=NO_RESOURCE");
	uint64_t failures = inproc_counter(p, CNT_admin_failures);
	struct ornic_admin_cmd nop = { .opcode = htole16(ORNIC_OP_NOP) };

	assert_int_equal(pd_create(p), ORNIC_ST_OK);
	host_submit(&p->host, &nop);
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	expect(p, id, 1, 0);
	assert_int_equal(pd_create(p), ORNIC_ST_NO_RESOURCE);
	assert_int_equal(le32toh(p->host.cpl.syndrome), FAULT_SYNDROME);
	assert_int_equal(p->host.cpl.out_size, 0);
	assert_int_equal(inproc_counter(p, CNT_admin_failures), failures + 1);
	assert_int_equal(pd_create(p), ORNIC_ST_OK);
	expect(p, id, 3, 1);
	rule(p, "admin fail=PERMISSION count=1");
	assert_int_equal(pd_create(p), ORNIC_ST_PERMISSION);
	assert_int_equal(pd_create(p), ORNIC_ST_OK);
}

/* A command without a name is one of a rule without opcode=, but of no pattern. */
static void test_unknown(void **state)
{
	struct inproc *p = *state;
	uint32_t named = rule(p, "admin opcode=* fail=LIMIT"), all;

	assert_int_equal(host_exec(&p->host, 0xfff, 0, NULL, 0, NULL, 0), ORNIC_ST_BAD_OPCODE);
	expect(p, named, 0, 0);
	all = rule(p, "admin fail=PERMISSION");
	assert_int_equal(host_exec(&p->host, 0xfff, 0, NULL, 0, NULL, 0), ORNIC_ST_PERMISSION);
	expect(p, named, 0, 0);
	expect(p, all, 1, 1);
	assert_int_equal(pd_create(p), ORNIC_ST_LIMIT);
}

/* A command that is never answered does not delay the commands behind it. */
static void test_timeout(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd nop = { .opcode = htole16(ORNIC_OP_NOP) };

	rule(p, "admin opcode=NOP nth=2 timeout");
	for (int i = 1; i <= 3; i++) {
		nop.cmd_id = htole16(i);
		host_submit(&p->host, &nop);
	}
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	assert_int_equal(le16toh(p->host.cpl.cmd_id), 1);
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
	assert_int_equal(le16toh(p->host.cpl.cmd_id), 3);
	assert_true(host_complete(&p->host) < 0);
	assert_false(function_busy(p->f));
}

static bool port_is_up(struct inproc *p)
{
	struct ornic_identify_port port;

	assert_int_equal(host_exec(&p->host, ORNIC_OP_PORT_QUERY, 1, NULL, 0, &port, sizeof(port)),
			 ORNIC_ST_OK);
	return port.state == 4;
}

/* ORN-PORT-12, ORN-IDN-4 */
static void test_flap(void **state)
{
	struct ornic_port_modify_cmd up = { .mask = htole32(ORNIC_PORT_M_ADMIN),
					    .admin_up = htole32(1) };
	struct inproc *p = *state;
	uint32_t generation, id;

	assert_int_equal(host_exec(&p->host, ORNIC_OP_PORT_MODIFY, 1, &up, sizeof(up), NULL, 0),
			 ORNIC_ST_OK);
	assert_true(port_is_up(p));
	generation = p->f->generation;
	id = rule(p, "flap device=test for=60min");
	assert_false(port_is_up(p));
	assert_int_equal(p->f->generation, generation + 1);
	assert_true(p->f->dev.port.admin_up);
	fault_del(&p->engine, id);
	assert_true(port_is_up(p));
	assert_int_equal(p->f->generation, generation + 2);
	/* a disable of the device does not unplug the port */
	id = rule(p, "flap device=test for=60min");
	host_disable(&p->host, 0);
	fault_del(&p->engine, id);
	assert_false(p->f->dev.port.unplugged);
}

static void test_fatal(void **state)
{
	struct inproc *p = *state;

	rule(p, "fatal device=test");
	inproc_turn(p);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_FATAL);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_SYNDROME), FAULT_SYNDROME);
	inproc_flr(p);
	inproc_bus_master(p, true);
	host_init(&p->host);
	p->host.timeout_ms = 200;
	assert_int_equal(host_enable(&p->host), 0);
}

/* A rule for a device whose name is a prefix of the other one's does not concern the other one. */
static void test_other_device(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	struct inproc *p = *state;
	int err;
	struct function *fn = function_new(&p->engine, "t", mac, 0, &err);

	assert_non_null(fn);
	rule(p, "admin device=t fail=LIMIT");
	assert_int_equal(pd_create(p), ORNIC_ST_OK);
	expect(p, 1, 0, 0);
	function_free(fn);
}

/* Every condition of a rule on a frame, which enters or leaves the switch by a device's port */
static void test_match(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	static const struct {
		const char *rule;
		bool in;
		bool out;
	} cases[] = {
		{ "drop", true, false }, { "drop device=t", true, true },
		{ "drop device=x", false, false }, { "drop device=te", false, false },
		{ "drop device=test", false, false },
		{ "drop dir=tx", true, false }, { "drop dir=rx", false, true },
		{ "drop device=t dir=tx", true, false }, { "drop device=t dir=rx", false, true },
		/* the device's end of the connection, or any end */
		{ "drop device=t qp=5", true, false }, { "drop device=t qp=6", false, true },
		{ "drop device=t qp=7", false, false },
		{ "drop qp=5", true, false }, { "drop qp=6", true, false },
		{ "drop qp=7", false, false }, { "drop dir=rx qp=5", false, true },
		{ "drop sqp=5", true, false }, { "drop sqp=6", false, false },
		{ "drop dqp=6", true, false }, { "drop dqp=5", false, false },
		{ "drop sqp=5 dqp=6 qp=5", true, false },
		{ "drop psn=100", true, false }, { "drop psn=99", false, false },
		{ "drop psn=101", false, false }, { "drop psn=99-100", true, false },
		{ "drop psn=100-101", true, false }, { "drop psn=101-99", false, false },
		{ "drop psn=101-100", true, false }, { "drop psn=0xffffff-100", true, false },
		{ "drop size=60", true, false }, { "drop size=59-60", true, false },
		{ "drop size=60-61", true, false }, { "drop size=0-59", false, false },
		{ "drop size=61-", false, false },
		{ "drop opcode=SEND_ONLY", true, false }, { "drop opcode=ACK", false, false },
		{ "drop packet=other", false, false }, { "drop packet=any", true, false },
		{ "flap device=t for=1ms", false, false },
		{ "flap device=t for=1ms psn=100", true, true },
		{ "cqe device=t status=GENERAL_ERR", false, false }, { "admin timeout", false, false },
	};
	struct inproc *p = *state;
	int err;
	struct function *fn = function_new(&p->engine, "t", mac, 0, &err);
	struct fault_frame frame = {
		.kept = { .roce = true, .sqpn = 5 }, .code = 4, .dqpn = 6, .psn = 100, .len = 60,
	};

	assert_non_null(fn);
	frame.port = fn->dev.port.sw;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fault f = { 0 };
		char why[FAULT_ERROR];

		assert_int_equal(rule_parse(cases[i].rule, &f.rule, why, sizeof(why)), 0);
		frame.way = SWITCH_IN;
		if (match_frame(&f, &frame) != cases[i].in)
			fail_msg("%s: in", cases[i].rule);
		frame.way = SWITCH_OUT;
		if (match_frame(&f, &frame) != cases[i].out)
			fail_msg("%s: out", cases[i].rule);
	}
	function_free(fn);
}

/* Less than two periods of the heartbeat, so that ornicd does not report a late one. */
static uint64_t soon(void)
{
	return engine_clock() + 1500000000ull;
}

/* The device that the rule names goes before its time: the rule has no effect, which it counts. */
static void test_device_gone(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	struct inproc *p = *state;
	int err;
	struct function *fn = function_new(&p->engine, "other", mac, 0, &err);
	uint32_t id;

	assert_non_null(fn);
	id = rule(p, "fatal device=other in=1s");
	function_free(fn);
	inproc_turn(p);
	expect(p, id, 0, 0);
	p->engine.clock = soon;
	lines_begin();
	inproc_turn(p);
	lines_end("ornicd: warning: fault rule 1: fatal device=other in=1s: device other no longer exists\n");
	expect(p, id, 1, 0);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS) & ORNIC_STS_FATAL, 0);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, inproc_setup_ready, inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_fail),
		TEST(test_unknown),
		TEST(test_timeout),
		TEST(test_flap),
		TEST(test_fatal),
		TEST(test_other_device),
		TEST(test_match),
		TEST(test_device_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
