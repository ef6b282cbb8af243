// SPDX-License-Identifier: GPL-2.0
/*
 * The language of fault injection: valid rules, rejected rules and their messages, and the
 * packets that a rule selects.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault/fault.h"
#include "fault/state.h"
#include "packet/bth.h"
#include <ornic/admin.h>
#include <ornic/cq.h>

#define NAME_37		"/run/ornic/a/socket/in/its/own/folder"
#define NAME_111	NAME_37 NAME_37 NAME_37

static struct fault_rule good(const char *text)
{
	char err[FAULT_ERROR] = "";
	struct fault_rule r;

	if (rule_parse(text, &r, err, sizeof(err)))
		fail_msg("\"%s\": %s", text, err);
	return r;
}

/* Check that @text is rejected with a message that contains @word. */
static void bad(const char *text, const char *word)
{
	char err[FAULT_ERROR] = "";
	struct fault_rule r;

	if (rule_parse(text, &r, err, sizeof(err)) != -EINVAL)
		fail_msg("\"%s\" is no error", text);
	if (!strstr(err, word))
		fail_msg("\"%s\": \"%s\" does not say \"%s\"", text, err, word);
}

static void test_brief(void **state)
{
	struct fault_rule r;

	(void)state;
	r = good("drop port=vm1 dir=rx opcode=READ_RESPONSE* every=3");
	assert_int_equal(r.action, RULE_DROP);
	assert_string_equal(r.name, "vm1");
	assert_int_equal(r.dir, RULE_RX);
	assert_int_equal(r.every, 3);
	assert_true(rule_code(&r, BTH_RC_READ_RESP_MIDDLE));
	assert_true(rule_code(&r, BTH_RC_READ_RESP_ONLY | BTH_TRANSPORT_XRC));
	assert_false(rule_code(&r, BTH_RC_READ_REQUEST));
	r = good("drop port=" NAME_111);
	assert_string_equal(r.name, NAME_111);
	r = good("corrupt device=a qp=0x12 p=0.01 seed=7");
	assert_int_equal(r.qp, 0x12);
	assert_int_equal(r.seed, 7);
	assert_true(r.p > (1ull << 53) / 101 && r.p < (1ull << 53) / 99);
	r = good("delay by=2ms psn=100-120 count=5");
	assert_int_equal(r.by_ns, 2000000);
	assert_int_equal(r.psn.first, 100);
	assert_int_equal(r.psn.last, 120);
	assert_int_equal(r.count, 5);
	r = good("  reorder   by=3\tp=1% ");
	assert_int_equal(r.by, 3);
	assert_string_equal(r.text, "reorder by=3 p=1%");
	assert_true(r.p > (1ull << 53) / 101 && r.p < (1ull << 53) / 99);
	assert_int_equal(good("delay by=1min").by_ns, 60000000000);
	assert_int_equal(good("delay by=60min").by_ns, 3600000000000);
	assert_int_equal(good("duplicate").by_ns, 0);
	assert_int_equal(good("duplicate by=10us").by_ns, 10000);
	assert_int_equal(good("truncate to=60").to, 60);
	good("ecn");
	r = good("flap device=a for=100ms in=1s again=2s count=3");
	assert_int_equal(r.for_ns, 100000000);
	assert_int_equal(r.again_ns, 2000000000);
	assert_false(rule_of_packets(&r));
	r = good("qp-error device=a opcode=FETCH_ADD nth=10");
	assert_true(rule_of_packets(&r));
	r = good("cqe device=a qp=7 nth=3 status=RETRY_EXC_ERR queue=send");
	assert_int_equal(r.status, ORNIC_WC_RETRY_EXC_ERR);
	assert_int_equal(r.queue, RULE_SQ);
	r = good("admin device=a opcode=QP_* nth=2 fail=NO_RESOURCE");
	assert_int_equal(r.status, ORNIC_ST_NO_RESOURCE);
	assert_true(rule_code(&r, names_command(ORNIC_OP_QP_CREATE)));
	assert_false(rule_code(&r, names_command(ORNIC_OP_CQ_CREATE)));
	good("admin timeout");
	good("fatal device=a in=500ns");
}

/* The keys of each action */
static void test_keys(void **state)
{
#define CHOICE	"nth, every, after, count, p, seed"
#define OWN	"device, dir, packet, opcode, qp, dqp, sqp, psn, size, " CHOICE
#define PACKETS	"device, port, dir, packet, opcode, qp, dqp, sqp, psn, size, " CHOICE
	static const struct {
		const char *action;
		const char *keys;
	} takes[] = {
		{ "drop", PACKETS },
		{ "duplicate", PACKETS ", by" },
		{ "reorder", PACKETS ", by, within" },
		{ "delay", PACKETS ", by" },
		{ "corrupt", PACKETS },
		{ "truncate", PACKETS ", to" },
		{ "ecn", PACKETS },
		{ "flap", PACKETS ", for, in, again" },
		{ "qp-error", OWN ", in" },
		{ "fatal", OWN ", in" },
		{ "cqe", "device, qp, " CHOICE ", status, queue" },
		{ "admin", "device, opcode, " CHOICE ", fail, timeout" },
	};
	char rule[64], err[FAULT_ERROR], want[FAULT_ERROR];
	struct fault_rule r;

	(void)state;
	for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]); i++) {
		snprintf(rule, sizeof(rule), "%s x=1", takes[i].action);
		snprintf(want, sizeof(want), "%s does not take \"x\"; its keys are %s",
			 takes[i].action, takes[i].keys);
		assert_int_equal(rule_parse(rule, &r, err, sizeof(err)), -EINVAL);
		assert_string_equal(err, want);
	}
}

/* Numbers at their limits, and the values of keys that are not given */
static void test_numbers(void **state)
{
	struct fault_rule r;

	(void)state;
	r = good("drop");
	assert_int_equal(r.by, 1);
	assert_int_equal(r.within_ns, 1000000);
	assert_int_equal(r.packet, RULE_ROCE);
	assert_int_equal(r.dir, RULE_ANY_DIR);
	r = good("drop qp=0 dqp=0xffffff sqp=16777215 psn=16777215-0 size=7- p=1");
	assert_int_equal(r.qp, 0);
	assert_int_equal(r.dqp, 0xffffff);
	assert_int_equal(r.sqp, 0xffffff);
	assert_int_equal(r.psn.first, 0xffffff);
	assert_int_equal(r.psn.last, 0);
	assert_int_equal(r.size.first, 7);
	assert_int_equal(r.size.last, 9216);
	assert_int_equal(r.p, 1ull << 53);
	assert_int_equal(good("drop p=100%").p, 1ull << 53);
	assert_int_equal(good("drop p=25e-2").p, 1ull << 51);
	assert_int_equal(good("drop size=9216").size.first, 9216);
	assert_int_equal(good("drop size=0-9216").size.last, 9216);
	assert_int_equal(good("drop size=60-60").size.last, 60);
	r = good("drop dqp=0 sqp=0 psn=0 size=0");
	assert_int_equal(r.dqp | r.sqp | r.psn.first | r.size.first, 0);
	bad("drop size=9217", "at most 9216");
	bad("drop size=1-9217", "at most 9216");
	bad("drop dqp=0x1000000", "to 16777215");
	bad("drop sqp=0x1000000", "to 16777215");
	assert_int_equal(good("truncate to=14").to, 14);
	assert_int_equal(good("truncate to=9216").to, 9216);
	bad("truncate to=9217", "to=9217: expected a number from 14 to 9216");
	assert_int_equal(good("reorder by=1000 within=60min").by, 1000);
	assert_int_equal(good("reorder by=1 within=1ns").within_ns, 1);
	bad("reorder by=0", "from 1 to 1000");
	r = good("drop nth=9223372036854775807 after=0 count=1 seed=18446744073709551615");
	assert_int_equal(r.nth, INT64_MAX);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.seed, UINT64_MAX);
	assert_int_equal(good("drop every=1 after=9223372036854775807").after, INT64_MAX);
	assert_int_equal(good("drop seed=0X1f").seed, 0x1f);
	assert_int_equal(good("drop seed=010").seed, 10);
	bad("drop nth=9223372036854775808", "from 1 to 9223372036854775807");
	bad("drop every=9223372036854775808", "from 1 to 9223372036854775807");
	bad("drop after=9223372036854775808", "from 0 to 9223372036854775807");
	bad("drop count=9223372036854775808", "from 1 to 9223372036854775807");
	bad("drop nth=0", "from 1 to");
	bad("drop count=0", "from 1 to");
	bad("drop seed=18446744073709551616", "from 0 to 18446744073709551615");
	assert_int_equal(good("delay by=1ns").by_ns, 1);
	assert_int_equal(good("delay by=3600s").by_ns, 3600000000000);
	assert_int_equal(good("delay by=3600000ms").by_ns, 3600000000000);
	bad("delay by=3600000000001ns", "at most an hour");
	assert_int_equal(good("flap port=a for=1ms in=1ns again=1000001ns").again_ns, 1000001);
	assert_int_equal(good("flap port=a for=1ms in=1ns").in_ns, 1);
	good("drop packet=other size=60");
	good("drop packet=roce psn=1");
	bad("drop packet=other qp=1", "only packet=roce");
	bad("drop packet=any dqp=1", "only packet=roce");
	bad("drop packet=any sqp=1", "only packet=roce");
	bad("drop packet=any psn=1", "only packet=roce");
}

/* An acknowledgement has the opcode of its transport, a NAK has not. */
static void test_answers(void **state)
{
	static const uint8_t transport[] = { BTH_TRANSPORT_RC, BTH_TRANSPORT_XRC };

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint8_t ack = BTH_RC_ACK | transport[i];

		assert_int_equal(match_code(ack, 0), ack);
		assert_int_equal(match_code(ack, AETH_NAK), RULE_CODE_NAK);
		assert_int_equal(match_code(ack, AETH_RNR_NAK), RULE_CODE_RNR_NAK);
	}
	assert_int_equal(match_code(BTH_RC_ATOMIC_ACK, AETH_NAK), BTH_RC_ATOMIC_ACK);
	assert_int_equal(match_code(BTH_RC_ACK | BTH_TRANSPORT_UD, AETH_NAK),
			 BTH_RC_ACK | BTH_TRANSPORT_UD);
}

static void test_codes(void **state)
{
	struct fault_rule r;

	(void)state;
	r = good("drop opcode=ud_*,CNP,0x1f");
	assert_true(rule_code(&r, BTH_UD_SEND_ONLY));
	assert_true(rule_code(&r, 0x81));
	assert_true(rule_code(&r, 0x1f));
	assert_false(rule_code(&r, BTH_RC_SEND_ONLY));
	r = good("drop opcode=0xff");
	assert_true(rule_code(&r, 0xff));
	assert_false(rule_code(&r, RULE_CODE_NAK));
	assert_false(rule_code(&r, RULE_CODE_RNR_NAK));
	r = good("drop opcode=ACK");
	assert_true(rule_code(&r, BTH_RC_ACK));
	assert_true(rule_code(&r, BTH_RC_ACK | BTH_TRANSPORT_XRC));
	assert_false(rule_code(&r, BTH_RC_ATOMIC_ACK));
	assert_false(rule_code(&r, RULE_CODE_NAK));
	r = good("drop opcode=NAK");
	assert_true(rule_code(&r, RULE_CODE_NAK));
	assert_false(rule_code(&r, RULE_CODE_RNR_NAK));
	r = good("drop opcode=response");
	assert_true(rule_code(&r, RULE_CODE_RNR_NAK));
	assert_true(rule_code(&r, BTH_RC_READ_RESP_LAST));
	assert_false(rule_code(&r, BTH_RC_READ_REQUEST));
	r = good("drop opcode=REQUEST");
	assert_true(rule_code(&r, BTH_RC_READ_REQUEST));
	assert_true(rule_code(&r, BTH_RC_SEND_ONLY | BTH_TRANSPORT_UC));
	assert_false(rule_code(&r, BTH_RC_ACK));
	r = good("drop opcode=SEND");
	assert_true(rule_code(&r, BTH_UD_SEND_ONLY_IMM));
	assert_false(rule_code(&r, BTH_RC_WRITE_ONLY));
	r = good("drop opcode=RC_SEND_ONLY");
	assert_false(rule_code(&r, BTH_UD_SEND_ONLY));
}

/* Check that the opcodes of @pattern are those of @want, of which there are @n. */
static void codes_are(const char *pattern, const uint16_t *want, size_t n)
{
	uint64_t codes[RULE_CODES / 64] = { 0 };
	char rule[64];

	for (size_t i = 0; i < n; i++)
		codes[want[i] / 64] |= 1ull << want[i] % 64;
	snprintf(rule, sizeof(rule), "drop opcode=%s", pattern);
	if (memcmp(good(rule).codes, codes, sizeof(codes)))
		fail_msg("%s has other opcodes", rule);
}

/* The opcodes of each operation, by its name alone and with each transport (IBTA, 9.2.1) */
static void test_operations(void **state)
{
	static const struct {
		const char *name;
		uint8_t operation;
		const char *transports;
	} operations[] = {
		{ "SEND_FIRST", 0, "RUX" }, { "SEND_MIDDLE", 1, "RUX" }, { "SEND_LAST", 2, "RUX" },
		{ "SEND_LAST_IMM", 3, "RUX" }, { "SEND_ONLY", 4, "RUDX" },
		{ "SEND_ONLY_IMM", 5, "RUDX" }, { "WRITE_FIRST", 6, "RUX" },
		{ "WRITE_MIDDLE", 7, "RUX" }, { "WRITE_LAST", 8, "RUX" },
		{ "WRITE_LAST_IMM", 9, "RUX" }, { "WRITE_ONLY", 10, "RUX" },
		{ "WRITE_ONLY_IMM", 11, "RUX" }, { "READ_REQUEST", 12, "RX" },
		{ "READ_RESPONSE_FIRST", 13, "RX" }, { "READ_RESPONSE_MIDDLE", 14, "RX" },
		{ "READ_RESPONSE_LAST", 15, "RX" }, { "READ_RESPONSE_ONLY", 16, "RX" },
		{ "ACK", 17, "RX" }, { "ATOMIC_ACK", 18, "RX" }, { "COMPARE_SWAP", 19, "RX" },
		{ "FETCH_ADD", 20, "RX" }, { "SEND_LAST_INV", 22, "RX" },
		{ "SEND_ONLY_INV", 23, "RX" }, { "FLUSH", 28, "RX" }, { "ATOMIC_WRITE", 29, "RX" },
	};
	static const struct {
		char letter;
		const char *prefix;
		uint8_t code;
	} transports[] = {
		{ 'R', "RC", 0x00 }, { 'U', "UC", 0x20 }, { 'D', "UD", 0x60 }, { 'X', "XRC", 0xa0 },
	};
	char name[48];

	(void)state;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		uint16_t all[4];
		size_t n = 0;

		for (int t = 0; t < 4; t++) {
			uint16_t one = transports[t].code | operations[i].operation;

			snprintf(name, sizeof(name), "%s_%s", transports[t].prefix,
				 operations[i].name);
			if (strchr(operations[i].transports, transports[t].letter)) {
				all[n++] = one;
				codes_are(name, &one, 1);
			} else {
				char rule[64];

				snprintf(rule, sizeof(rule), "drop opcode=%s", name);
				bad(rule, "unknown packet opcode");
			}
		}
		codes_are(operations[i].name, all, n);
	}
	codes_are("CNP", (uint16_t []) { 0x81 }, 1);
	codes_are("NAK", (uint16_t []) { RULE_CODE_NAK }, 1);
	codes_are("RNR_NAK", (uint16_t []) { RULE_CODE_RNR_NAK }, 1);
	codes_are("0x00", (uint16_t []) { 0 }, 1);
	codes_are("atomic", (uint16_t []) { 18, 19, 20, 0xb2, 0xb3, 0xb4 }, 6);
	codes_are("READ", (uint16_t []) { 12, 13, 14, 15, 16, 0xac, 0xad, 0xae, 0xaf, 0xb0 }, 10);
}

/* Each command and each status by its name, and no part of a name */
static void test_admin_names(void **state)
{
	static const uint16_t opcodes[] = {
		ORNIC_OP_NOP, ORNIC_OP_IDENTIFY, ORNIC_OP_CQ_RESIZE, ORNIC_OP_COUNTER_DESTROY,
	};
	static const char *const names[] = { "NOP", "identify", "CQ_RESIZE", "COUNTER_DESTROY" };
	char rule[64];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		snprintf(rule, sizeof(rule), "admin opcode=%s timeout", names[i]);
		for (size_t j = 0; j < 4; j++) {
			struct fault_rule r = good(rule);

			assert_int_equal(rule_code(&r, names_command(opcodes[j])), i == j);
		}
	}
	assert_int_equal(names_command(0xffff), -1);
	assert_int_equal(good("cqe status=rem_op_err").status, ORNIC_WC_REM_OP_ERR);
	assert_int_equal(good("cqe status=GENERAL_ERR").status, ORNIC_WC_GENERAL_ERR);
	assert_int_equal(good("cqe status=LOC_LEN_ERR").status, ORNIC_WC_LOC_LEN_ERR);
	assert_int_equal(good("admin fail=BAD_OPCODE").status, ORNIC_ST_BAD_OPCODE);
	assert_int_equal(good("admin fail=internal").status, ORNIC_ST_INTERNAL);
	bad("admin fail=INTERNA", "such as NO_RESOURCE");
	bad("admin fail=INTERNALS", "such as NO_RESOURCE");
	bad("cqe status=GENERAL_ERRO", "such as RETRY_EXC_ERR");
}

static void test_refused(void **state)
{
	(void)state;
	bad("", "empty");
	bad("drop dir=", "dir=: expected one of tx, rx");
	bad("  \t ", "empty");
	bad("drip", "expected one of drop, duplicate");
	bad("drop foo=1", "does not take \"foo\"; its keys are device");
	bad("drop to=60", "does not take \"to\"");
	bad("drop every", "every=");
	bad("drop every=", "expected a number from 1");
	bad("drop every=0", "expected a number from 1");
	bad("drop every=-1", "expected a number");
	bad("drop every=3x", "expected a number");
	bad("drop every=99999999999999999999", "expected a number");
	bad("drop every=3 every=4", "twice");
	bad("drop every=3 nth=4", "exclude each other");
	bad("drop device=a port=b", "exclude each other");
	bad("drop device=", "expected a name");
	bad("drop port=" NAME_111 "x", "expected a name of 1 to 111 characters");
	bad("drop dir=up", "expected one of tx, rx");
	bad("drop dir=", "expected one of tx, rx");
	bad("drop packet=x", "expected one of roce, other, any");
	bad("drop packet=any opcode=ACK", "packet=roce");
	bad("drop opcode=FOO*", "unknown packet opcode");
	bad("drop opcode=", "unknown packet opcode");
	bad("drop opcode=ACK,", "unknown packet opcode");
	good("drop opcode=S*E*N*D*");
	bad("drop opcode=*S*E*N*D*", "unknown packet opcode");
	bad("drop opcode=0x100", "unknown packet opcode");
	for (int len = 62; len < 67; len++) {
		char text[100];

		snprintf(text, sizeof(text), "drop opcode=%0*d", len, 0);
		bad(text, "unknown packet opcode");
	}
	bad("drop qp=0x1000000", "expected a number from 0 to 16777215");
	bad("drop psn=5-", "range");
	bad("drop psn=-5", "range");
	bad("drop psn=0x1000000", "range");
	bad("drop size=10-5", "range");
	bad("drop p=0", "probability");
	bad("drop p=1.1", "probability");
	bad("drop p=-1", "probability");
	bad("drop p=nan", "probability");
	bad("drop p=inf", "probability");
	bad("drop p=0x1", "probability");
	bad("drop p=1%%", "probability");
	bad("drop p=101%", "probability");
	bad("delay", "delay needs by=");
	bad("delay by=2", "expected a time");
	bad("delay by=0ms", "expected a time");
	bad("delay by=61min", "expected a time");
	bad("delay by=2h", "expected a time");
	bad("delay by=9999999999999999s", "expected a time");
	bad("delay by=3601s", "expected a time");
	bad("reorder by=2ms", "expected a number");
	bad("reorder by=1001", "expected a number");
	bad("truncate", "truncate needs to=");
	bad("truncate to=13", "from 14");
	bad("flap device=a", "flap needs for=");
	bad("flap for=1ms", "device= or port=");
	bad("flap device=a for=1ms again=1ms", "longer");
	bad("flap device=a for=1ms count=2", "again=");
	bad("flap device=a for=1ms opcode=ACK again=2ms", "exclude conditions");
	bad("qp-error", "qp-error needs device=");
	bad("qp-error device=a", "needs qp=");
	bad("qp-error port=a qp=1", "does not take \"port\"");
	bad("fatal", "fatal needs device=");
	bad("cqe", "cqe needs status=");
	bad("cqe status=SUCCESS", "name of a status such as RETRY_EXC_ERR");
	bad("cqe status=RETRY_EXC_ERR queue=both", "expected one of send, recv");
	bad("admin", "fail=STATUS or timeout");
	bad("admin fail=OK", "such as NO_RESOURCE");
	bad("admin fail=LIMIT timeout", "exclude each other");
	bad("admin timeout=1", "takes no value");
	bad("admin opcode=ACK timeout", "unknown admin command");
	bad("admin opcode= timeout", "unknown admin command");
	bad("admin opcode=*Q*P*_*C* timeout", "unknown admin command");
	good("admin opcode=*Q*P*_* timeout");
	bad("drop \x01", "cannot be printed");
	bad("drop \xff=1", "cannot be printed");
}

/* Input of any length and bytes gives a rule or a message. */
static void test_hostile(void **state)
{
	static const char *const words[] = {
		"drop", "delay", "flap", "cqe", "admin", "by=", "2ms", "p=", "0.5", "=", "==",
		"opcode=", "*", "[", "[!a-", "READ_*", ",", "psn=", "0xffffff", "-", "nth=",
		"18446744073709551615", "timeout", "status=", "\t", " ", "device=", "%s%n", "\\",
	};
	uint64_t seed = 1;
	char *longest = test_malloc(100000);

	(void)state;
	for (int i = 0; i < 200000; i++) {
		char text[400] = "", err[FAULT_ERROR];
		struct fault_rule r;

		for (int n = 0; n < 12; n++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			strcat(text, words[(seed >> 33) % (sizeof(words) / sizeof(words[0]))]);
			if (seed >> 60 & 1)
				strcat(text, " ");
		}
		memset(err, 0, sizeof(err));
		if (rule_parse(text, &r, err, sizeof(err)))
			assert_true(*err);
	}
	memset(longest, 'a', 99999);
	longest[99999] = 0;
	bad(longest, "longer than");
	memcpy(longest, "drop ", 5);
	bad(longest, "longer than");
	memset(longest + 250, 0, 1);
	bad(longest, "does not take");
	memcpy(longest, "drop opcode=", 12);
	bad(longest, "unknown packet opcode");
	memset(longest, '*', 200);
	memcpy(longest, "drop opcode=", 12);
	bad(longest, "unknown packet opcode");
	test_free(longest);
}

/* Check the matches among the first @n on which a rule acts, as text. */
static void chosen(const char *text, unsigned int n, const char *expect)
{
	struct fault_rule r = good(text);
	uint64_t acted = 0;
	char got[256] = "";

	for (unsigned int i = 1; i <= n; i++) {
		if (!rule_chooses(&r, i, acted))
			continue;
		acted++;
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%u ", i);
	}
	assert_string_equal(got, expect);
}

static void test_choice(void **state)
{
	struct fault_rule r;

	(void)state;
	chosen("drop", 4, "1 2 3 4 ");
	chosen("drop nth=3", 9, "3 ");
	chosen("drop every=3", 10, "3 6 9 ");
	chosen("drop after=2 every=3", 10, "5 8 ");
	chosen("drop after=2 nth=3", 10, "5 ");
	chosen("drop count=2", 10, "1 2 ");
	chosen("drop after=4 count=2", 10, "5 6 ");
	chosen("drop every=2 count=2", 10, "2 4 ");
	/* a number that is the probability itself is not below it */
	r = good("drop p=0.5 seed=7");
	r.p = rule_random(&r, 1, 0) >> 11;
	assert_false(rule_chooses(&r, 1, 0));
	r.p++;
	assert_true(rule_chooses(&r, 1, 0));
}

/* A rule that never acts again, by its number of matches and actions */
static void test_spent(void **state)
{
	static const struct {
		const char *rule;
		uint64_t matched;
		uint64_t acted;
		bool spent;
	} cases[] = {
		{ "drop", UINT64_MAX, UINT64_MAX, false },
		{ "drop p=0.5", 1ull << 60, 1ull << 59, false },
		{ "drop every=2 after=1", 100, 50, false },
		{ "drop nth=3", 2, 0, false }, { "drop nth=3", 3, 1, true },
		{ "drop nth=3 after=2", 2, 0, false }, { "drop nth=3 after=2", 4, 0, false },
		{ "drop nth=3 after=2", 5, 1, true }, { "drop nth=3 after=2", 6, 1, true },
		{ "drop count=2", 100, 1, false }, { "drop count=2", 100, 2, true },
		/* the device's faults of a time act once, unless they are to act again */
		{ "flap device=a for=1ms", 0, 0, false }, { "flap device=a for=1ms", 1, 1, true },
		{ "flap device=a for=1ms again=2ms", 9, 9, false },
		{ "flap device=a for=1ms again=2ms count=9", 9, 9, true },
		{ "qp-error device=a qp=5 in=1s", 0, 0, false },
		{ "qp-error device=a qp=5 in=1s", 1, 0, true },
		{ "fatal device=a", 1, 1, true }, { "fatal device=a opcode=ACK", 1, 1, false },
		{ "flap device=a for=1ms opcode=ACK", 1, 1, false },
		{ "cqe status=GENERAL_ERR", 1, 1, false }, { "admin timeout", 1, 1, false },
		{ "admin timeout nth=1", 1, 1, true }, { "ecn", 1, 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fault_rule r = good(cases[i].rule);

		if (rule_spent(&r, cases[i].matched, cases[i].acted) != cases[i].spent)
			fail_msg("case %zu: %s", i, cases[i].rule);
	}
}

static unsigned int acts(const struct fault_rule *r, unsigned int n, uint8_t *at)
{
	unsigned int acted = 0;

	for (unsigned int i = 1; i <= n; i++) {
		bool yes = rule_chooses(r, i, acted);

		acted += yes;
		if (at)
			at[i - 1] = yes;
	}
	return acted;
}

/* The seed alone decides; without a seed, the text does. Rates are as requested. */
static void test_random(void **state)
{
	static uint8_t one[10000], two[10000];
	struct fault_rule r;
	unsigned int n;

	(void)state;
	r = good("drop p=0.01 seed=7");
	n = acts(&r, 10000, one);
	assert_in_range(n, 70, 130);
	r = good("delay by=1ms p=0.01 seed=7");
	assert_int_equal(acts(&r, 10000, two), n);
	assert_memory_equal(one, two, sizeof(one));
	r = good("drop p=0.01 seed=8");
	acts(&r, 10000, two);
	assert_memory_not_equal(one, two, sizeof(one));
	r = good("drop p=0.01");
	acts(&r, 10000, one);
	r = good("drop  p=0.01");
	acts(&r, 10000, two);
	assert_memory_equal(one, two, sizeof(one));
	r = good("duplicate p=0.01");
	acts(&r, 10000, two);
	assert_memory_not_equal(one, two, sizeof(one));
	r = good("drop p=1");
	assert_int_equal(acts(&r, 1000, NULL), 1000);
	r = good("drop p=0.5 seed=3");
	assert_in_range(acts(&r, 10000, NULL), 4800, 5200);
	r = good("drop p=0.001 seed=3");
	assert_in_range(acts(&r, 100000, NULL), 70, 130);
}

/* Numbers of splitmix64 with seed 1234567, as its authors publish them; FNV-1a of the text */
static void test_known_numbers(void **state)
{
	static const uint64_t known[] = {
		6457827717110365317ull, 3203168211198807973ull, 9817491932198370423ull,
		4593380528125082431ull, 16408922859458223821ull,
	};
	struct fault_rule r;

	(void)state;
	r = good("drop seed=1234567");
	for (uint32_t i = 0; i < 5; i++)
		assert_true(rule_random(&r, (i + 1) / 4, (i + 1) % 4) == known[i]);
	r = good(" drop \t p=0.01 ");
	assert_true(r.seed == 0x6ee1e62adbb8440aull);
	r = good("drop p=0.01 seed=0");
	assert_true(r.seed == 0);
}

/* 255 characters are a rule, 256 are not; omitted spaces do not count. */
static void test_longest(void **state)
{
	char text[300];

	(void)state;
	memset(text, '0', sizeof(text));
	memcpy(text, "drop qp=", 8);
	text[254] = '1';
	text[255] = 0;
	assert_int_equal(strlen(good(text).text), 255);
	assert_int_equal(good(text).qp, 1);
	memmove(text + 5, text + 4, 252);
	assert_int_equal(strlen(text), 256);
	assert_int_equal(strlen(good(text).text), 255);	/* two spaces are one */
	text[256] = '1';
	text[257] = 0;
	bad(text, "longer than 255 ");
}

/*
 * A fault of a device waits for a packet if the rule has any condition on packets; "count", "seed"
 * and the queue pair that fails are none. Faults of completions and commands know no packets.
 */
static void test_of_packets(void **state)
{
	static const char * const conditions[] = {
		"dir=tx", "packet=roce", "opcode=ACK", "dqp=5", "sqp=5", "psn=5", "size=100",
		"nth=2", "every=2", "after=2", "p=0.5",
	};
	static const char * const without[] = {
		"fatal device=a", "fatal device=a qp=5 seed=1", "qp-error device=a qp=5",
		"flap device=a for=1ms", "cqe nth=2 status=WR_FLUSH_ERR",
		"admin opcode=NOP nth=2 timeout",
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
		struct fault_rule r;

		snprintf(text, sizeof(text), "fatal device=a %s", conditions[i]);
		r = good(text);
		if (!rule_of_packets(&r))
			fail_msg("%s waits for no packet", text);
	}
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		struct fault_rule r = good(without[i]);

		if (rule_of_packets(&r))
			fail_msg("%s waits for a packet", without[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_brief),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_admin_names),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_spent),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_known_numbers),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_of_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
