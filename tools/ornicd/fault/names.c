// SPDX-License-Identifier: GPL-2.0
/*
 * Names in rules: BTH opcodes, admin commands, statuses.
 *
 * The name of an operation, such as SEND_ONLY, means its opcodes of all transports; with a
 * prefix, such as RC_SEND_ONLY, that of one transport. Patterns are those of a shell.
 */
#include "rule.h"

#include "../packet/bth.h"

#include <ctype.h>
#include <fnmatch.h>
#include <ornic/admin.h>
#include <ornic/cq.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Size of a pattern with its terminating zero; longer patterns match nothing. */
#define PATTERN_BYTES	64
/* Most stars of a pattern, because each one multiplies the run time of fnmatch(). */
#define PATTERN_STARS	4

/* Transports of an operation: bit number is the BTH transport field */
#define T_RC	(1 << 0)
#define T_UC	(1 << 1)
#define T_UD	(1 << 3)
#define T_XRC	(1 << 5)
#define T_CON	(T_RC | T_UC | T_XRC)
#define T_REL	(T_RC | T_XRC)

static const struct {
	const char *name;
	uint8_t operation;
	uint8_t transports;
} operations[] = {
	{ "SEND_FIRST", BTH_RC_SEND_FIRST, T_CON },
	{ "SEND_MIDDLE", BTH_RC_SEND_MIDDLE, T_CON },
	{ "SEND_LAST", BTH_RC_SEND_LAST, T_CON },
	{ "SEND_LAST_IMM", BTH_RC_SEND_LAST_IMM, T_CON },
	{ "SEND_ONLY", BTH_RC_SEND_ONLY, T_CON | T_UD },
	{ "SEND_ONLY_IMM", BTH_RC_SEND_ONLY_IMM, T_CON | T_UD },
	{ "SEND_LAST_INV", BTH_RC_SEND_LAST_INV, T_REL },
	{ "SEND_ONLY_INV", BTH_RC_SEND_ONLY_INV, T_REL },
	{ "WRITE_FIRST", BTH_RC_WRITE_FIRST, T_CON },
	{ "WRITE_MIDDLE", BTH_RC_WRITE_MIDDLE, T_CON },
	{ "WRITE_LAST", BTH_RC_WRITE_LAST, T_CON },
	{ "WRITE_LAST_IMM", BTH_RC_WRITE_LAST_IMM, T_CON },
	{ "WRITE_ONLY", BTH_RC_WRITE_ONLY, T_CON },
	{ "WRITE_ONLY_IMM", BTH_RC_WRITE_ONLY_IMM, T_CON },
	{ "READ_REQUEST", BTH_RC_READ_REQUEST, T_REL },
	{ "READ_RESPONSE_FIRST", BTH_RC_READ_RESP_FIRST, T_REL },
	{ "READ_RESPONSE_MIDDLE", BTH_RC_READ_RESP_MIDDLE, T_REL },
	{ "READ_RESPONSE_LAST", BTH_RC_READ_RESP_LAST, T_REL },
	{ "READ_RESPONSE_ONLY", BTH_RC_READ_RESP_ONLY, T_REL },
	{ "ACK", BTH_RC_ACK, T_REL },
	{ "ATOMIC_ACK", BTH_RC_ATOMIC_ACK, T_REL },
	{ "COMPARE_SWAP", BTH_RC_COMPARE_SWAP, T_REL },
	{ "FETCH_ADD", BTH_RC_FETCH_ADD, T_REL },
	{ "FLUSH", BTH_RC_FLUSH, T_REL },
	{ "ATOMIC_WRITE", BTH_RC_ATOMIC_WRITE, T_REL },
};

static const struct {
	const char *prefix;
	uint8_t transport;
} transports[] = {
	{ "RC_", BTH_TRANSPORT_RC }, { "UC_", BTH_TRANSPORT_UC }, { "UD_", BTH_TRANSPORT_UD },
	{ "XRC_", BTH_TRANSPORT_XRC },
};

/* CNP is no operation of a transport; NAK and RNR NAK differ from ACK in the AETH only. */
static const struct {
	const char *name;
	uint16_t code;
} others[] = {
	{ "CNP", BTH_CNP }, { "NAK", RULE_CODE_NAK }, { "RNR_NAK", RULE_CODE_RNR_NAK },
};

/* Names for groups of operations; each element is a pattern, not the name of another group. */
static const struct {
	const char *name;
	const char *pattern[8];
} classes[] = {
	{ "SEND", { "SEND_*" } },
	{ "WRITE", { "WRITE_*" } },
	{ "READ", { "READ_*" } },
	{ "ATOMIC", { "COMPARE_SWAP", "FETCH_ADD", "ATOMIC_ACK" } },
	{ "REQUEST", { "SEND_*", "WRITE_*", "READ_REQUEST", "COMPARE_SWAP", "FETCH_ADD", "FLUSH",
		       "ATOMIC_WRITE" } },
	{ "RESPONSE", { "READ_RESPONSE_*", "ACK", "ATOMIC_ACK", "NAK", "RNR_NAK" } },
};

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

static void add(uint64_t *codes, uint32_t code)
{
	codes[code / 64] |= 1ull << code % 64;
}

static bool fits(const char *pattern, const char *name)
{
	return !fnmatch(pattern, name, FNM_CASEFOLD);
}

/*
 * Add the opcodes of operation @i whose names, with or without transport, fit. Return: true if
 * there is one.
 */
static bool add_operation(const char *pattern, size_t i, uint64_t *codes)
{
	bool all = fits(pattern, operations[i].name), any = false;
	char full[PATTERN_BYTES];

	for (size_t t = 0; t < COUNT(transports); t++) {
		if (!(operations[i].transports >> transports[t].transport / 32 & 1))
			continue;
		snprintf(full, sizeof(full), "%s%s", transports[t].prefix, operations[i].name);
		if (!all && !fits(pattern, full))
			continue;
		add(codes, transports[t].transport | operations[i].operation);
		any = true;
	}
	return any;
}

static bool add_pattern(const char *pattern, uint64_t *codes)
{
	bool any = false;

	for (size_t i = 0; i < COUNT(operations); i++)
		any |= add_operation(pattern, i, codes);
	for (size_t i = 0; i < COUNT(others); i++) {
		if (!fits(pattern, others[i].name))
			continue;
		add(codes, others[i].code);
		any = true;
	}
	return any;
}

static bool copy_pattern(char to[PATTERN_BYTES], const char *from, size_t len)
{
	unsigned int stars = 0;

	if (!len || len >= PATTERN_BYTES)
		return false;
	memcpy(to, from, len);
	to[len] = 0;
	for (size_t i = 0; i < len; i++)
		stars += to[i] == '*';
	return stars <= PATTERN_STARS;
}

bool names_packets(const char *pattern, size_t len, uint64_t *codes)
{
	char p[PATTERN_BYTES];
	unsigned int code;
	int end = 0;

	if (!copy_pattern(p, pattern, len))
		return false;
	/* %4x: "0x" and at most two digits */
	if (p[0] == '0' && tolower((unsigned char)p[1]) == 'x' &&
	    sscanf(p, "%4x%n", &code, &end) == 1 && !p[end]) {
		add(codes, code);
		return true;
	}
	for (size_t i = 0; i < COUNT(classes); i++) {
		if (strcasecmp(p, classes[i].name))
			continue;
		for (size_t j = 0; j < COUNT(classes[i].pattern) && classes[i].pattern[j]; j++)
			add_pattern(classes[i].pattern[j], codes);
		return true;
	}
	return add_pattern(p, codes);
}

#define OP(name)	{ ORNIC_OP_##name, #name }

static const struct {
	uint16_t opcode;
	const char *name;
} commands[] = {
	OP(NOP), OP(IDENTIFY), OP(SET_FEATURES), OP(HOST_INFO), OP(STAT_NAMES), OP(STAT_READ),
	OP(CLOCK_READ), OP(EQ_CREATE), OP(EQ_MODIFY), OP(EQ_QUERY), OP(EQ_DESTROY), OP(PD_CREATE),
	OP(PD_DESTROY), OP(XRCD_CREATE), OP(XRCD_DESTROY), OP(KEY_CREATE), OP(KEY_MODIFY),
	OP(KEY_QUERY), OP(KEY_DESTROY), OP(DM_CREATE), OP(DM_DESTROY), OP(CQ_CREATE),
	OP(CQ_MODIFY), OP(CQ_QUERY), OP(CQ_DESTROY), OP(CQ_RESIZE), OP(SRQ_CREATE), OP(SRQ_MODIFY),
	OP(SRQ_QUERY), OP(SRQ_DESTROY), OP(SRQ_RESIZE), OP(QP_CREATE), OP(QP_MODIFY), OP(QP_QUERY),
	OP(QP_DESTROY), OP(PORT_MODIFY), OP(PORT_QUERY), OP(SET_GID), OP(GET_GID), OP(RULE_CREATE),
	OP(RULE_DESTROY), OP(RSS_CREATE), OP(RSS_DESTROY), OP(COUNTER_CREATE), OP(COUNTER_DESTROY),
};

bool names_commands(const char *pattern, size_t len, uint64_t *codes)
{
	char p[PATTERN_BYTES];
	bool any = false;

	if (!copy_pattern(p, pattern, len))
		return false;
	for (size_t i = 0; i < COUNT(commands); i++) {
		if (!fits(p, commands[i].name))
			continue;
		add(codes, i);
		any = true;
	}
	return any;
}

int names_command(uint16_t opcode)
{
	for (size_t i = 0; i < COUNT(commands); i++)
		if (commands[i].opcode == opcode)
			return i;
	return -1;
}

/**
 * struct named - name of a status
 * @name:	name, without prefix
 * @value:	number
 */
struct named {
	const char *name;
	uint8_t value;
};

static int named_value(const struct named *all, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(all[i].name) == len && !strncasecmp(all[i].name, name, len))
			return all[i].value;
	return -1;
}

#define WC(name)	{ #name, ORNIC_WC_##name }

int names_wc(const char *name, size_t len)
{
	static const struct named all[] = {
		WC(LOC_LEN_ERR), WC(LOC_QP_OP_ERR), WC(LOC_PROT_ERR), WC(WR_FLUSH_ERR),
		WC(MW_BIND_ERR), WC(BAD_RESP_ERR), WC(LOC_ACCESS_ERR), WC(REM_INV_REQ_ERR),
		WC(REM_ACCESS_ERR), WC(REM_OP_ERR), WC(RETRY_EXC_ERR), WC(RNR_RETRY_EXC_ERR),
		WC(GENERAL_ERR),
	};

	return named_value(all, COUNT(all), name, len);
}

#define ST(name)	{ #name, ORNIC_ST_##name }

int names_status(const char *name, size_t len)
{
	static const struct named all[] = {
		ST(BAD_OPCODE), ST(BAD_SIZE), ST(RESERVED), ST(BAD_PARAM), ST(BAD_NUMBER),
		ST(UNSUPPORTED), ST(EXISTS), ST(BUSY), ST(BAD_STATE), ST(NO_RESOURCE), ST(LIMIT),
		ST(DMA_ERROR), ST(PERMISSION), ST(AGAIN), ST(INTERNAL),
	};

	return named_value(all, COUNT(all), name, len);
}
