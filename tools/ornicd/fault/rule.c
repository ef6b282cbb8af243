// SPDX-License-Identifier: GPL-2.0
/*
 * Parse a rule, and choose among its matches.
 *
 * The table actions[] has the keys that each action takes and needs; take_value() reads the
 * value of each key. Rules come from any client of the control socket, so the text is not
 * trusted: lengths are checked before bytes are copied, numbers against their legal range.
 */
#include "rule.h"

#include "../packet/bth.h"
#include "../packet/wire.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(key)	(1u << (key))
#define MAX_FRAME	9216
#define MAX_OVERTAKE	1000
#define MAX_TIME_NS	3600000000000ull
#define WITHIN_NS	1000000ull

static const char *const key_names[KEYS] = {
	[KEY_DEVICE] = "device", [KEY_PORT] = "port", [KEY_DIR] = "dir", [KEY_PACKET] = "packet",
	[KEY_OPCODE] = "opcode", [KEY_QP] = "qp", [KEY_DQP] = "dqp", [KEY_SQP] = "sqp",
	[KEY_PSN] = "psn", [KEY_SIZE] = "size", [KEY_NTH] = "nth", [KEY_EVERY] = "every",
	[KEY_AFTER] = "after", [KEY_COUNT] = "count", [KEY_P] = "p", [KEY_SEED] = "seed",
	[KEY_BY] = "by", [KEY_WITHIN] = "within", [KEY_TO] = "to", [KEY_FOR] = "for",
	[KEY_IN] = "in", [KEY_AGAIN] = "again", [KEY_STATUS] = "status", [KEY_QUEUE] = "queue",
	[KEY_FAIL] = "fail", [KEY_TIMEOUT] = "timeout",
};

#define CHOICE	(BIT(KEY_NTH) | BIT(KEY_EVERY) | BIT(KEY_AFTER) | BIT(KEY_COUNT) | BIT(KEY_P) | \
		 BIT(KEY_SEED))
#define PACKETS	(RULE_PACKET_KEYS | CHOICE | BIT(KEY_DEVICE) | BIT(KEY_PORT) | BIT(KEY_QP))

/* @takes: legal keys; @needs: mandatory keys */
static const struct {
	const char *name;
	uint32_t takes;
	uint32_t needs;
} actions[] = {
	[RULE_DROP] = { "drop", PACKETS, 0 },
	[RULE_DUPLICATE] = { "duplicate", PACKETS | BIT(KEY_BY), 0 },
	[RULE_REORDER] = { "reorder", PACKETS | BIT(KEY_BY) | BIT(KEY_WITHIN), 0 },
	[RULE_DELAY] = { "delay", PACKETS | BIT(KEY_BY), BIT(KEY_BY) },
	[RULE_CORRUPT] = { "corrupt", PACKETS, 0 },
	[RULE_TRUNCATE] = { "truncate", PACKETS | BIT(KEY_TO), BIT(KEY_TO) },
	[RULE_ECN] = { "ecn", PACKETS, 0 },
	[RULE_FLAP] = { "flap", PACKETS | BIT(KEY_FOR) | BIT(KEY_IN) | BIT(KEY_AGAIN),
			BIT(KEY_FOR) },
	[RULE_QP_ERROR] = { "qp-error", (PACKETS & ~BIT(KEY_PORT)) | BIT(KEY_IN),
			    BIT(KEY_DEVICE) },
	[RULE_FATAL] = { "fatal", (PACKETS & ~BIT(KEY_PORT)) | BIT(KEY_IN), BIT(KEY_DEVICE) },
	[RULE_CQE] = { "cqe", CHOICE | BIT(KEY_DEVICE) | BIT(KEY_QP) | BIT(KEY_QUEUE) |
		       BIT(KEY_STATUS), BIT(KEY_STATUS) },
	[RULE_ADMIN] = { "admin", CHOICE | BIT(KEY_DEVICE) | BIT(KEY_OPCODE) | BIT(KEY_FAIL) |
			 BIT(KEY_TIMEOUT), 0 },
};

#define ACTIONS	(sizeof(actions) / sizeof(actions[0]))

/**
 * struct input - a rule being parsed
 * @r:		result
 * @err:	buffer for an error message
 * @errlen:	bytes of @err
 */
struct input {
	struct fault_rule *r;
	char *err;
	size_t errlen;
};

static int __attribute__((format(printf, 2, 3))) bad(struct input *in, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(in->err, in->errlen, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Read a number of at most @max at *@at, decimal or 0x..., and move *@at behind it. */
static bool read_number(const char **at, uint64_t max, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	errno = 0;
	*out = strtoull(*at, &end, (*at)[0] == '0' && ((*at)[1] | 0x20) == 'x' ? 16 : 10);
	*at = end;
	return !errno && *out <= max;
}

static int take_number(struct input *in, enum rule_key key, const char *val, uint64_t min,
		       uint64_t max, uint64_t *out)
{
	const char *at = val;

	if (read_number(&at, max, out) && !*at && *out >= min)
		return 0;
	return bad(in, "%s=%s: expected a number from %llu to %llu", key_names[key], val,
		   (unsigned long long)min, (unsigned long long)max);
}

static int take_u32(struct input *in, enum rule_key key, const char *val, uint32_t min,
		    uint32_t max, uint32_t *out)
{
	uint64_t v;
	int err = take_number(in, key, val, min, max, &v);

	if (!err)
		*out = v;
	return err;
}

static int take_time(struct input *in, enum rule_key key, const char *val, uint64_t *out)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
		{ "min", 60000000000 },
	};
	const char *at = val;
	uint64_t v;

	if (read_number(&at, MAX_TIME_NS, &v) && v)
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
			if (!strcmp(at, units[i].unit) && v <= MAX_TIME_NS / units[i].ns) {
				*out = v * units[i].ns;
				return 0;
			}
	return bad(in, "%s=%s: expected a time such as 500us, 2ms or 1min, at most an hour",
		   key_names[key], val);
}

/* Read "7", "7-9" or, unless numbers wrap (@ring), "7-". */
static int take_range(struct input *in, enum rule_key key, const char *val, uint32_t max,
		      bool ring, struct rule_range *out)
{
	const char *at = val;
	uint64_t first, last;
	bool ok = read_number(&at, max, &first);

	last = first;
	if (ok && *at == '-') {
		at++;
		if (!*at && !ring)
			last = max;
		else
			ok = read_number(&at, max, &last);
	}
	if (!ok || *at || (!ring && last < first))
		return bad(in, "%s=%s: expected a number or a range such as 100-120, at most %u",
			   key_names[key], val, max);
	*out = (struct rule_range) { first, last };
	return 0;
}

static int take_chance(struct input *in, const char *val)
{
	char *end;
	double p = strtod(val, &end);

	if (end != val && *end == '%') {
		p /= 100;
		end++;
	}
	/* strtod() accepts "inf", "nan" and hexadecimal numbers, too. */
	if (end == val || *end || strspn(val, "0123456789.eE-%") != strlen(val) || !(p > 0) ||
	    p > 1)
		return bad(in, "p=%s: expected a probability up to 1, such as 0.01 or 1%%",
			   val);
	in->r->p = p * (1ull << 53);
	return 0;
}

/* Get the index of @val in @words. An empty entry stands for a value without a name. */
static int take_word(struct input *in, enum rule_key key, const char *val,
		     const char *const *words, unsigned int *out)
{
	char all[80] = "";

	for (unsigned int i = 0; words[i]; i++) {
		if (!*words[i])
			continue;
		if (!strcmp(words[i], val)) {
			*out = i;
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", *all ? ", " : "",
			 words[i]);
	}
	return bad(in, "%s=%s: expected one of %s", key_names[key], val, all);
}

static int take_codes(struct input *in, const char *val)
{
	bool admin = in->r->action == RULE_ADMIN;

	while (true) {
		size_t len = strcspn(val, ",");
		bool ok = admin ? names_commands(val, len, in->r->codes) :
				  names_packets(val, len, in->r->codes);

		if (!ok && admin)
			return bad(in, "opcode=%.*s: unknown admin command; see ornicd(8)",
				   (int)len, val);
		if (!ok)
			return bad(in, "opcode=%.*s: unknown packet opcode; see ornicd(8)",
				   (int)len, val);
		if (!val[len])
			return 0;
		val += len + 1;
	}
}

static int take_status(struct input *in, enum rule_key key, const char *val)
{
	bool admin = key == KEY_FAIL;
	int v = admin ? names_status(val, strlen(val)) : names_wc(val, strlen(val));

	if (v < 0)
		return bad(in, "%s=%s: expected the name of a status such as %s, see ornicd(8)",
			   key_names[key], val, admin ? "NO_RESOURCE" : "RETRY_EXC_ERR");
	in->r->status = v;
	return 0;
}

static int take_name(struct input *in, enum rule_key key, const char *val)
{
	if (!*val || strlen(val) >= SWITCH_PORT_NAME)
		return bad(in, "%s=%s: expected a name of 1 to %d characters", key_names[key], val,
			   SWITCH_PORT_NAME - 1);
	strcpy(in->r->name, val);
	return 0;
}

static int take_by(struct input *in, const char *val)
{
	if (in->r->action == RULE_REORDER)
		return take_u32(in, KEY_BY, val, 1, MAX_OVERTAKE, &in->r->by);
	return take_time(in, KEY_BY, val, &in->r->by_ns);
}

static int take_value(struct input *in, enum rule_key key, const char *val)
{
	static const char *const dirs[] = { "", "tx", "rx", NULL };
	static const char *const packets[] = { "roce", "other", "any", NULL };
	static const char *const queues[] = { "", "send", "recv", NULL };
	struct fault_rule *r = in->r;
	unsigned int word = 0;
	int err;

	switch (key) {
	case KEY_DEVICE:
	case KEY_PORT:
		return take_name(in, key, val);
	case KEY_DIR:
		err = take_word(in, key, val, dirs, &word);
		r->dir = word;
		return err;
	case KEY_PACKET:
		err = take_word(in, key, val, packets, &word);
		r->packet = word;
		return err;
	case KEY_QUEUE:
		err = take_word(in, key, val, queues, &word);
		r->queue = word;
		return err;
	case KEY_OPCODE:
		return take_codes(in, val);
	case KEY_QP:
		return take_u32(in, key, val, 0, BTH_PSN_MASK, &r->qp);
	case KEY_DQP:
		return take_u32(in, key, val, 0, BTH_PSN_MASK, &r->dqp);
	case KEY_SQP:
		return take_u32(in, key, val, 0, BTH_PSN_MASK, &r->sqp);
	case KEY_PSN:
		return take_range(in, key, val, BTH_PSN_MASK, true, &r->psn);
	case KEY_SIZE:
		return take_range(in, key, val, MAX_FRAME, false, &r->size);
	case KEY_NTH:
		return take_number(in, key, val, 1, INT64_MAX, &r->nth);
	case KEY_EVERY:
		return take_number(in, key, val, 1, INT64_MAX, &r->every);
	case KEY_AFTER:
		return take_number(in, key, val, 0, INT64_MAX, &r->after);
	case KEY_COUNT:
		return take_number(in, key, val, 1, INT64_MAX, &r->count);
	case KEY_P:
		return take_chance(in, val);
	case KEY_SEED:
		return take_number(in, key, val, 0, UINT64_MAX, &r->seed);
	case KEY_BY:
		return take_by(in, val);
	case KEY_WITHIN:
		return take_time(in, key, val, &r->within_ns);
	case KEY_TO:
		return take_u32(in, key, val, ETH_BYTES, MAX_FRAME, &r->to);
	case KEY_FOR:
		return take_time(in, key, val, &r->for_ns);
	case KEY_IN:
		return take_time(in, key, val, &r->in_ns);
	case KEY_AGAIN:
		return take_time(in, key, val, &r->again_ns);
	case KEY_STATUS:
	case KEY_FAIL:
		return take_status(in, key, val);
	default:
		return bad(in, "timeout takes no value");
	}
}

static int bad_key(struct input *in, const char *key)
{
	uint32_t takes = actions[in->r->action].takes;
	char all[256] = "";

	for (int i = 0; i < KEYS; i++)
		if (takes >> i & 1)
			snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
				 *all ? ", " : "", key_names[i]);
	return bad(in, "%s does not take \"%s\"; its keys are %s", actions[in->r->action].name,
		   key, all);
}

/* Parse "key=value", or the key "timeout", which has no value. */
static int take_item(struct input *in, char *item)
{
	char *val = strchr(item, '=');
	int key = 0;

	if (val)
		*val++ = 0;
	while (key < KEYS && strcmp(key_names[key], item))
		key++;
	if (key == KEYS || !(actions[in->r->action].takes >> key & 1))
		return bad_key(in, item);
	if (rule_has(in->r, key))
		return bad(in, "%s is given twice", item);
	in->r->given |= BIT(key);
	if (!val && key == KEY_TIMEOUT)
		return 0;
	if (!val)
		return bad(in, "%s needs a value: %s=...", item, item);
	return take_value(in, key, val);
}

static int take_action(struct input *in, const char *name)
{
	char all[128] = "";

	for (size_t i = 0; i < ACTIONS; i++) {
		if (!strcmp(actions[i].name, name)) {
			in->r->action = i;
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", *all ? ", " : "",
			 actions[i].name);
	}
	return bad(in, "\"%s\" is not an action; expected one of %s", name, all);
}

bool rule_of_packets(const struct fault_rule *r)
{
	return r->action <= RULE_ECN || (r->action <= RULE_FATAL && r->given & RULE_PACKET_KEYS);
}

static int exclusive(struct input *in, enum rule_key a, enum rule_key b)
{
	if (!rule_has(in->r, a) || !rule_has(in->r, b))
		return 0;
	return bad(in, "%s and %s exclude each other; give one of them", key_names[a],
		   key_names[b]);
}

/* Check the conditions that concern more than one key. */
static int check(struct input *in)
{
	struct fault_rule *r = in->r;
	uint32_t missing = actions[r->action].needs & ~r->given;
	bool packets = rule_of_packets(r);
	int err;

	if (missing)
		return bad(in, "%s needs %s=", actions[r->action].name,
			   key_names[__builtin_ctz(missing)]);
	err = exclusive(in, KEY_DEVICE, KEY_PORT) ?: exclusive(in, KEY_NTH, KEY_EVERY) ?:
	      exclusive(in, KEY_FAIL, KEY_TIMEOUT);
	if (err)
		return err;
	if (r->action == RULE_ADMIN && !rule_has(r, KEY_FAIL) && !rule_has(r, KEY_TIMEOUT))
		return bad(in, "admin needs fail=STATUS or timeout");
	if (r->action == RULE_FLAP && !r->name[0])
		return bad(in, "flap needs device= or port=");
	if (r->action == RULE_FLAP && rule_has(r, KEY_AGAIN) && r->again_ns <= r->for_ns)
		return bad(in, "again= must be longer than for=");
	if (r->action == RULE_QP_ERROR && !packets && !rule_has(r, KEY_QP))
		return bad(in, "qp-error needs qp=, or conditions on packets of the queue pair");
	if (packets && (rule_has(r, KEY_IN) || rule_has(r, KEY_AGAIN)))
		return bad(in, "in= and again= exclude conditions on packets");
	if (!packets && r->action == RULE_FLAP && rule_has(r, KEY_COUNT) && !rule_has(r, KEY_AGAIN))
		return bad(in, "flap takes count= with again= or with conditions on packets");
	if (rule_has(r, KEY_PACKET) && r->packet != RULE_ROCE &&
	    r->given & (BIT(KEY_OPCODE) | BIT(KEY_QP) | BIT(KEY_DQP) | BIT(KEY_SQP) | BIT(KEY_PSN)))
		return bad(in, "only packet=roce has opcodes, queue pairs and PSNs");
	return 0;
}

/* Derive the seed from the text (FNV-1a), so that different rules draw different numbers. */
static uint64_t seed_of(const char *text)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3ull;
	return h;
}

/* Copy the text with one space between words. Return: false if it is too long. */
static bool normalise(char *to, const char *from)
{
	size_t n = 0;

	while (*from) {
		size_t len;

		from += strspn(from, " \t\r\n");
		len = strcspn(from, " \t\r\n");
		if (!len)
			break;
		if (n + !!n + len >= RULE_TEXT)
			return false;
		if (n)
			to[n++] = ' ';
		memcpy(to + n, from, len);
		n += len;
		from += len;
	}
	to[n] = 0;
	return true;
}

static bool printable(const char *text)
{
	for (; *text; text++)
		if (!isprint((unsigned char)*text))
			return false;
	return true;
}

int rule_parse(const char *text, struct fault_rule *r, char *err, size_t errlen)
{
	struct input in = { r, err, errlen };
	char copy[RULE_TEXT], *item, *save;
	int ret;

	*r = (struct fault_rule) { .by = 1, .within_ns = WITHIN_NS };
	if (!normalise(r->text, text))
		return bad(&in, "the rule is longer than %d characters", RULE_TEXT - 1);
	if (!printable(r->text))
		return bad(&in, "the rule has characters that cannot be printed");
	memcpy(copy, r->text, sizeof(copy));
	item = strtok_r(copy, " ", &save);
	if (!item)
		return bad(&in, "the rule is empty; expected an action such as drop");
	ret = take_action(&in, item);
	while (!ret && (item = strtok_r(NULL, " ", &save)))
		ret = take_item(&in, item);
	if (!ret)
		ret = check(&in);
	if (!rule_has(r, KEY_SEED))
		r->seed = seed_of(r->text);
	return ret;
}

/*
 * The finalizer of splitmix64 over a counter (Steele, Lea, Flood: Fast Splittable
 * Pseudorandom Number Generators, OOPSLA 2014) needs no state between matches.
 */
uint64_t rule_random(const struct fault_rule *r, uint64_t n, uint32_t salt)
{
	uint64_t z = r->seed + (n * 4 + salt) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Return true if the rule acts when added or by its timer, not on matches. */
static bool by_time(const struct fault_rule *r)
{
	return r->action >= RULE_FLAP && r->action <= RULE_FATAL && !rule_of_packets(r);
}

bool rule_spent(const struct fault_rule *r, uint64_t matched, uint64_t acted)
{
	if (rule_has(r, KEY_COUNT) && acted >= r->count)
		return true;
	if (by_time(r))
		return matched && !rule_has(r, KEY_AGAIN);
	return r->nth && matched >= r->nth && matched - r->nth >= r->after;
}

bool rule_chooses(const struct fault_rule *r, uint64_t n, uint64_t acted)
{
	if (n <= r->after || (rule_has(r, KEY_COUNT) && acted >= r->count))
		return false;
	n -= r->after;
	if ((r->nth && n != r->nth) || (r->every && n % r->every))
		return false;
	return !rule_has(r, KEY_P) || rule_random(r, n, 0) >> 11 < r->p;
}
