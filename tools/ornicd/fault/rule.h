/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A rule of the fault language: what is to go wrong, for what, and how often.
 *
 * A rule is an action, conditions and a choice. Conditions (device, queue pair, opcode,
 * PSN ...) say what the rule is about; what fulfils them is matched and counted from 1
 * on. The choice (nth, every, after, count, p) says which of those matched it acts
 * on, and depends on nothing but that count and the rule's seed: the n-th match
 * has the same fate in every run.
 */
#ifndef ORNICD_FAULT_RULE_H
#define ORNICD_FAULT_RULE_H

#include "../net/switch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** RULE_TEXT - most bytes of a rule's text, the terminating zero included */
#define RULE_TEXT	256
/** RULE_PACKET_CODES - BTH opcodes, and NAK and RNR NAK as if they had opcodes of their own */
#define RULE_PACKET_CODES	258
#define RULE_CODE_NAK		256
#define RULE_CODE_RNR_NAK	257
/** RULE_CODES - most kinds of packet or of admin command */
#define RULE_CODES		320

enum rule_action {
	/* to packets */
	RULE_DROP,
	RULE_DUPLICATE,
	RULE_REORDER,
	RULE_DELAY,
	RULE_CORRUPT,
	RULE_TRUNCATE,
	RULE_ECN,
	/* to devices, at once, at a time, or at a packet */
	RULE_FLAP,
	RULE_QP_ERROR,
	RULE_FATAL,
	/* to completions and admin commands */
	RULE_CQE,
	RULE_ADMIN,
};

/* Keys, as bits of struct rule's @given */
enum rule_key {
	KEY_DEVICE, KEY_PORT, KEY_DIR, KEY_PACKET, KEY_OPCODE, KEY_QP, KEY_DQP, KEY_SQP,
	KEY_PSN, KEY_SIZE, KEY_NTH, KEY_EVERY, KEY_AFTER, KEY_COUNT, KEY_P, KEY_SEED,
	KEY_BY, KEY_WITHIN, KEY_TO, KEY_FOR, KEY_IN, KEY_AGAIN, KEY_STATUS, KEY_QUEUE,
	KEY_FAIL, KEY_TIMEOUT, KEYS,
};

/** RULE_PACKET_KEYS - conditions on packets */
#define RULE_PACKET_KEYS (1u << KEY_DIR | 1u << KEY_PACKET | 1u << KEY_OPCODE | 1u << KEY_DQP | \
			  1u << KEY_SQP | 1u << KEY_PSN | 1u << KEY_SIZE | 1u << KEY_NTH |	\
			  1u << KEY_EVERY | 1u << KEY_AFTER | 1u << KEY_P)

enum rule_dir {
	RULE_ANY_DIR,
	RULE_TX,
	RULE_RX,
};

enum rule_packet {
	RULE_ROCE,
	RULE_OTHER,
	RULE_ANY_PACKET,
};

enum rule_queue {
	RULE_ANY_QUEUE,
	RULE_SQ,
	RULE_RQ,
};

/** struct rule_range - @first to @last, both included */
struct rule_range {
	uint32_t first;
	uint32_t last;
};

/**
 * struct rule - a rule as it was written
 * @text:	that
 * @action:	what to do
 * @given:	bit per enum rule_key that the text has
 * @name:	device or port; "" for all
 * @dir:	direction, as the port sees it
 * @packet:	kinds of packet
 * @codes:	bit per RULE_PACKET_CODES or admin command; valid if KEY_OPCODE is given
 * @qp:		number of the device's own queue pair; without a device, of either end
 * @dqp:	destination queue pair
 * @sqp:	source queue pair
 * @psn:	PSNs; @first beyond @last: around the end of the PSNs
 * @size:	bytes of the frame
 * @nth:	act on this match only
 * @every:	act on each match whose number it divides
 * @after:	let so many go first; the count begins anew behind them
 * @count:	act so many times
 * @p:		chance in 1 of 2^53
 * @seed:	of the rule's random numbers
 * @by_ns:	DELAY, DUPLICATE: how late
 * @by:		REORDER: how many overtake
 * @within_ns:	REORDER: wait no longer for them
 * @to:		TRUNCATE: bytes left
 * @for_ns:	FLAP: how long down
 * @in_ns:	FLAP, QP_ERROR, FATAL: when, after the rule was added
 * @again_ns:	FLAP: how often
 * @status:	CQE: enum ornic_wc_status; ADMIN: enum ornic_status
 * @queue:	CQE: of sends or of receives
 */
struct rule {
	char text[RULE_TEXT];
	enum rule_action action;
	uint32_t given;
	char name[SWITCH_PORT_NAME];
	enum rule_dir dir;
	enum rule_packet packet;
	uint64_t codes[RULE_CODES / 64];
	uint32_t qp;
	uint32_t dqp;
	uint32_t sqp;
	struct rule_range psn;
	struct rule_range size;
	uint64_t nth;
	uint64_t every;
	uint64_t after;
	uint64_t count;
	uint64_t p;
	uint64_t seed;
	uint64_t by_ns;
	uint32_t by;
	uint64_t within_ns;
	uint32_t to;
	uint64_t for_ns;
	uint64_t in_ns;
	uint64_t again_ns;
	uint8_t status;
	enum rule_queue queue;
};

/**
 * rule_parse() - read a rule
 * @text:	one line, without a comment
 * @r:		result
 * @err:	if it is wrong: what, and what was expected
 * @errlen:	bytes of @err
 *
 * Return: 0 or -EINVAL.
 */
int rule_parse(const char *text, struct rule *r, char *err, size_t errlen);

static inline bool rule_has(const struct rule *r, enum rule_key key)
{
	return r->given >> key & 1;
}

static inline bool rule_code(const struct rule *r, uint32_t code)
{
	return r->codes[code / 64] >> code % 64 & 1;
}

/* rule_of_packets() - does it look at packets? */
bool rule_of_packets(const struct rule *r);

/*
 * rule_chooses() - does @r act on the @n-th match, counted from 1, having acted @acted times?
 * rule_spent() - will it never act again, after @matched matches?
 * rule_random() - a number that belongs to it
 */
bool rule_chooses(const struct rule *r, uint64_t n, uint64_t acted);
bool rule_spent(const struct rule *r, uint64_t matched, uint64_t acted);
uint64_t rule_random(const struct rule *r, uint64_t n, uint32_t salt);

/* names.c */

/*
 * names_packets(), names_commands() - add what @pattern, of @len characters, means to @codes.
 * Return: false if it means nothing.
 */
bool names_packets(const char *pattern, size_t len, uint64_t *codes);
bool names_commands(const char *pattern, size_t len, uint64_t *codes);
/* names_command() - the code of an admin opcode, or -1 */
int names_command(uint16_t opcode);
/* names_wc(), names_status() - a completion's (a command's) status by name, or -1 */
int names_wc(const char *name, size_t len);
int names_status(const char *name, size_t len);

#endif /* ORNICD_FAULT_RULE_H */
