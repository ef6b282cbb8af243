/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A rule of the fault language: a fault, its conditions, and how often it happens.
 *
 * A rule is an action, conditions and a choice. Conditions (device, queue pair, opcode,
 * PSN ...) select packets, completions or commands; those that meet them are matches,
 * counted from 1. The choice (nth, every, after, count, p) selects the matches on which
 * the rule acts. It depends only on that count and the rule's seed, so that the n-th
 * match has the same fate in every run.
 */
#ifndef ORNICD_FAULT_RULE_H
#define ORNICD_FAULT_RULE_H

#include "../net/switch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** RULE_TEXT - most bytes of a rule's text, including the terminating zero */
#define RULE_TEXT	256
/** RULE_CODE_NAK, RULE_CODE_RNR_NAK - packet codes that are no BTH opcodes */
#define RULE_CODE_NAK		256
#define RULE_CODE_RNR_NAK	257
/** RULE_CODES - bits for packet codes or admin commands, a multiple of 64 */
#define RULE_CODES		320

enum rule_action {
	/* faults of packets */
	RULE_DROP,
	RULE_DUPLICATE,
	RULE_REORDER,
	RULE_DELAY,
	RULE_CORRUPT,
	RULE_TRUNCATE,
	RULE_ECN,
	/* faults of devices: at once, after a time, or when a packet matches */
	RULE_FLAP,
	RULE_QP_ERROR,
	RULE_FATAL,
	/* faults of completions and admin commands */
	RULE_CQE,
	RULE_ADMIN,
};

/* Keys, as bits of struct fault_rule's @given */
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

/** struct rule_range - numbers from @first to @last, including both */
struct rule_range {
	uint32_t first;
	uint32_t last;
};

/**
 * struct fault_rule - a parsed rule
 * @text:	text of the rule, words separated by one space
 * @action:	fault to inject
 * @given:	bit per enum rule_key that the text has
 * @name:	device or port; "" for all
 * @dir:	direction, as the port sees it
 * @packet:	kinds of packet
 * @codes:	bit per packet code or admin command; valid if KEY_OPCODE is given
 * @qp:		queue pair of the device; without a device, of either end
 * @dqp:	destination queue pair
 * @sqp:	source queue pair
 * @psn:	PSNs; if @first is larger than @last, the range wraps at 2^24
 * @size:	bytes of the frame
 * @nth:	act on this match only
 * @every:	act on every @every-th match
 * @after:	ignore the first @after matches; @nth and @every count from there
 * @count:	act at most @count times
 * @p:		probability in units of 2^-53, the resolution of a double below 1
 * @seed:	seed of the rule's random numbers
 * @by_ns:	DELAY, DUPLICATE: delay in ns
 * @by:		REORDER: number of frames that overtake
 * @within_ns:	REORDER: longest wait for them, in ns
 * @to:		TRUNCATE: bytes left
 * @for_ns:	FLAP: time that the link is down, in ns
 * @in_ns:	FLAP, QP_ERROR, FATAL: time from adding the rule to the fault, in ns
 * @again_ns:	FLAP: period in ns; 0: only once
 * @status:	CQE: enum ornic_wc_status; ADMIN: enum ornic_status
 * @queue:	CQE: completions of sends or of receives
 */
struct fault_rule {
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
 * rule_parse() - parse a rule
 * @text:	one line, without a comment
 * @r:		result
 * @err:	on failure, the error and what was expected
 * @errlen:	bytes of @err
 *
 * Does not look at devices and ports: see device_check().
 *
 * Return: 0 or -EINVAL.
 */
int rule_parse(const char *text, struct fault_rule *r, char *err, size_t errlen);

static inline bool rule_has(const struct fault_rule *r, enum rule_key key)
{
	return r->given >> key & 1;
}

static inline bool rule_code(const struct fault_rule *r, uint32_t code)
{
	return r->codes[code / 64] >> code % 64 & 1;
}

/* rule_of_packets() - return true if the rule has an action or conditions on packets */
bool rule_of_packets(const struct fault_rule *r);

/*
 * rule_chooses() - return true if @r acts on match @n, counted from 1, after @acted actions
 * rule_spent() - return true if @r never acts again after @matched matches and @acted actions
 * rule_random() - return a random number that depends only on the rule's seed, match @n and
 * @salt (0 to 3; 0 is that of rule_chooses())
 */
bool rule_chooses(const struct fault_rule *r, uint64_t n, uint64_t acted);
bool rule_spent(const struct fault_rule *r, uint64_t matched, uint64_t acted);
uint64_t rule_random(const struct fault_rule *r, uint64_t n, uint32_t salt);

/* names.c */

/*
 * names_packets() - set the bits of packet codes in @codes that @pattern of @len characters matches
 * names_commands() - the same for codes of names_command()
 * Return: false if the pattern is illegal or matches nothing.
 */
bool names_packets(const char *pattern, size_t len, uint64_t *codes);
bool names_commands(const char *pattern, size_t len, uint64_t *codes);
/* names_command() - return the bit number of an admin opcode in @codes of struct fault_rule, or -1 */
int names_command(uint16_t opcode);
/* names_wc() - return the enum ornic_wc_status with that name, or -1 */
int names_wc(const char *name, size_t len);
/* names_status() - return the enum ornic_status with that name, or -1 */
int names_status(const char *name, size_t len);

#endif /* ORNICD_FAULT_RULE_H */
