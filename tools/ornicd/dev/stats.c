// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics commands: names and values of the data path's counters. Numbers and names are those
 * of the specification.
 */
#include "command.h"

#include "../engine/counters.h"

#include <ornic/stats.h>
#include <stdio.h>
#include <string.h>

struct stat {
	uint8_t scope;
	uint16_t id;
	enum counter cnt;
	const char *name;
};

static const struct stat stats[STAT_COUNT] = {
#define STAT_ENTRY(scope, name, id)					\
	{ ORNIC_STAT_##scope, ORNIC_STAT_ID_##id, CNT_##name, #name },
	COUNTERS(STAT_ENTRY)
#undef STAT_ENTRY
#define STAT_ENTRY(name, id)						\
	{ ORNIC_STAT_QP, ORNIC_STAT_ID_##id, CNT_##name, #name },
	QP_COUNTERS(STAT_ENTRY)
#undef STAT_ENTRY
};

uint8_t cmd_stat_names(struct command *c)
{
	const struct ornic_stat_names_cmd *in = c->in;
	uint32_t offset = le32toh(in->offset);
	uint32_t left = offset < STAT_COUNT ? STAT_COUNT - offset : 0;
	uint32_t room = c->out_max / sizeof(struct ornic_stat_name);
	struct ornic_stat_name *out = c->out;

	for (uint32_t i = 0; i < left && i < room; i++) {
		const struct stat *s = &stats[offset + i];

		out[i].id = htole32(s->id);
		out[i].scope = s->scope;
		snprintf(out[i].name, sizeof(out[i].name), "%s", s->name);
	}
	c->out_max = room * sizeof(*out);
	c->out_size = left * sizeof(*out);
	return ORNIC_ST_OK;
}

static uint8_t stat_check(struct command *c, const struct ornic_stat_read_cmd *in)
{
	uint8_t st;

	if (in->scope > ORNIC_STAT_EQ)
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->scope);
	st = COMMAND_ZERO(c, in->clear);
	st = st ?: COMMAND_ZERO(c, in->mbz);
	if (!st && in->scope == ORNIC_STAT_QP)
		st = command_need(c, ORNIC_FEATURE(COUNTER_SETS), &in->scope);
	return st;
}

/* Page-list entries that take as long as adding up the counters of a set */
#define SUM_WORK	16

/* Return the counters of the object that the command names, by enum counter, NULL if unknown. */
static const uint64_t *stat_source(struct command *c, const struct ornic_stat_read_cmd *in)
{
	static uint64_t sum[CNT_COUNT];
	struct device *dev = c->dev;
	uint32_t number = le32toh(in->number);
	struct counter_set *set;

	if (in->scope != ORNIC_STAT_QP)
		return number == (in->scope == ORNIC_STAT_PORT) ? dev->cnt : NULL;
	if (number) {
		set = counter_set_get(dev, number);
		return set ? set->cnt : NULL;
	}
	counter_sets_sum(dev, sum);
	progress_charge(c->f, SUM_WORK * dev->sets.used);
	return sum;
}

uint8_t cmd_stat_read(struct command *c)
{
	const struct ornic_stat_read_cmd *in = c->in;
	uint32_t skip = le32toh(in->first), count = le32toh(in->count), n = 0;
	uint32_t room = c->out_max / sizeof(__le64);
	__le64 *out = c->out;
	uint8_t st = stat_check(c, in);
	const uint64_t *cnt;

	if (st)
		return st;
	cnt = stat_source(c, in);
	if (!cnt)
		return command_reject(c, ORNIC_ST_BAD_NUMBER, &in->number);
	for (uint32_t i = 0; i < STAT_COUNT && n < count; i++) {
		if (stats[i].scope != in->scope)
			continue;
		if (skip) {
			skip--;
			continue;
		}
		if (n < room)
			out[n] = htole64(cnt[stats[i].cnt]);
		n++;
	}
	c->out_max = room * sizeof(*out);
	c->out_size = n * sizeof(*out);
	return ORNIC_ST_OK;
}
