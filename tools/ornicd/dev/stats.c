// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics: the names and values of the data path's counters.
 *
 * Ids below 0x1000 are the specification's; counters of our own follow from
 * 0x1000 on.
 */
#include "command.h"

#include "../engine/counters.h"

#include <ornic/stats.h>
#include <stdio.h>
#include <string.h>

/** STAT_OWN - first id of counters that the specification does not know */
#define STAT_OWN	0x1000

struct stat {
	uint8_t scope;
	const char *name;
};

static const struct stat stats[CNT_COUNT] = {
#define STAT_ENTRY(scope, name)	[CNT_##name] = { ORNIC_STAT_##scope, #name },
	COUNTERS(STAT_ENTRY)
#undef STAT_ENTRY
};

static const uint16_t stat_ids[CNT_COUNT] = {
	[CNT_tx_bytes] = 0x001,
	[CNT_rx_bytes] = 0x002,
	[CNT_tx_packets] = 0x003,
	[CNT_rx_packets] = 0x004,
	[CNT_tx_multicast] = 0x007,
	[CNT_rx_multicast] = 0x008,
	[CNT_tx_drop] = 0x009,
	[CNT_rx_drop_no_wqe] = 0x00a,
	[CNT_rx_drop_rule] = 0x00b,
	[CNT_rx_drop_size] = 0x00c,
	[CNT_rdma_tx_bytes] = 0x101,
	[CNT_rdma_rx_bytes] = 0x102,
	[CNT_rdma_tx_packets] = 0x103,
	[CNT_rdma_rx_packets] = 0x104,
	[CNT_rx_send] = 0x105,
	[CNT_rx_write] = 0x106,
	[CNT_rx_read] = 0x107,
	[CNT_rx_atomic] = 0x108,
	[CNT_retransmits] = 0x110,
	[CNT_ack_timeouts] = 0x111,
	[CNT_rnr_naks_sent] = 0x112,
	[CNT_rnr_naks_received] = 0x113,
	[CNT_seq_naks_sent] = 0x114,
	[CNT_seq_naks_received] = 0x115,
	[CNT_duplicates] = 0x117,
	[CNT_implied_nak] = 0x118,
	[CNT_bad_gid] = 0x121,
	[CNT_bad_qpn] = 0x122,
	[CNT_bad_opcode] = 0x123,
	[CNT_bad_pkey] = 0x124,
	[CNT_bad_qkey] = 0x125,
	[CNT_remote_access_errors] = 0x126,
	[CNT_remote_invalid_requests] = 0x127,
	[CNT_local_protection_errors] = 0x128,
	[CNT_wqe_errors] = 0x129,
	[CNT_flushes] = 0x12a,
	[CNT_cq_overflows] = 0x201,
	[CNT_eq_held] = 0x202,
	[CNT_db_rejected] = 0x203,
	[CNT_doorbells] = 0x204,
	[CNT_admin_commands] = 0x205,
	[CNT_admin_failures] = 0x206,
};

static uint32_t stat_id(uint32_t counter)
{
	return stat_ids[counter] ? stat_ids[counter] : STAT_OWN + counter;
}

uint8_t cmd_stat_names(struct command *c)
{
	const struct ornic_stat_names_cmd *in = c->in;
	uint32_t offset = le32toh(in->offset);
	uint32_t left = offset < CNT_COUNT ? CNT_COUNT - offset : 0;
	uint32_t room = c->out_max / sizeof(struct ornic_stat_name);
	struct ornic_stat_name *out = c->out;

	for (uint32_t i = 0; i < left && i < room; i++) {
		const struct stat *s = &stats[offset + i];

		out[i].id = htole32(stat_id(offset + i));
		out[i].scope = s->scope;
		snprintf(out[i].name, sizeof(out[i].name), "%s", s->name);
	}
	c->out_max = room * sizeof(*out);
	c->out_size = left * sizeof(*out);
	return ORNIC_ST_OK;
}

static uint8_t stat_check(struct command *c, const struct ornic_stat_read_cmd *in)
{
	uint32_t object = in->scope == ORNIC_STAT_PORT;
	uint8_t st;

	if (in->scope > ORNIC_STAT_EQ)
		return command_refuse(c, ORNIC_ST_BAD_PARAM, &in->scope);
	if (in->scope == ORNIC_STAT_QP)
		return command_need(c, ORNIC_FEATURE(COUNTER_SETS), &in->scope);
	st = COMMAND_ZERO(c, in->clear);
	st = st ?: COMMAND_ZERO(c, in->mbz);
	if (!st && le32toh(in->number) != object)
		st = command_refuse(c, ORNIC_ST_BAD_NUMBER, &in->number);
	return st;
}

uint8_t cmd_stat_read(struct command *c)
{
	const struct ornic_stat_read_cmd *in = c->in;
	uint32_t skip = le32toh(in->first), count = le32toh(in->count), n = 0;
	uint32_t room = c->out_max / sizeof(__le64);
	__le64 *out = c->out;
	uint8_t st = stat_check(c, in);

	if (st)
		return st;
	for (uint32_t i = 0; i < CNT_COUNT && n < count; i++) {
		if (stats[i].scope != in->scope)
			continue;
		if (skip) {
			skip--;
			continue;
		}
		if (n < room)
			out[n] = htole64(c->dev->cnt[i]);
		n++;
	}
	c->out_max = room * sizeof(*out);
	c->out_size = n * sizeof(*out);
	return ORNIC_ST_OK;
}
