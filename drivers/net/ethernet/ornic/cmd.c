// SPDX-License-Identifier: GPL-2.0
/*
 * One function per admin command of the core: fill the input, pass the output
 * buffer. The admin queue itself is in admin.c.
 */
#include <linux/string.h>
#include <linux/utsname.h>

#include "cmd.h"
#include "ornic.h"

static int ornic_cmd_run(struct ornic_core *core, struct ornic_cmd *cmd, const char *what)
{
	int err = ornic_cmd_exec(&core->odev, cmd);

	if (err && cmd->status != ORNIC_ST_ABORTED)
		dev_err(ornic_dma_dev(core), "%s failed: status %u, syndrome %#010x\n", what,
			cmd->status, cmd->syndrome);
	return err;
}

static int ornic_cmd_create(struct ornic_core *core, u16 opcode, const void *in, u16 in_len,
			    u32 *number, const char *what)
{
	struct ornic_cmd cmd = {
		.opcode = opcode,
		.in = in,
		.in_len = in_len,
	};
	int err;

	err = ornic_cmd_run(core, &cmd, what);
	if (!err)
		*number = cmd.result;
	return err;
}

/* Object numbers are 24 bits wide and not 0; keys alone use all 32 bits. */
static int ornic_cmd_create_object(struct ornic_core *core, u16 opcode, const void *in,
				   u16 in_len, u32 *number, const char *what)
{
	int err;

	err = ornic_cmd_create(core, opcode, in, in_len, number, what);
	if (err)
		return err;
	if (!*number || *number > ORNIC_MAX_NUMBER) {
		ornic_device_malformed(&core->odev, what);
		return -EIO;
	}
	return 0;
}

int ornic_cmd_identify(struct ornic_core *core, u8 page, u16 index, void *out, u16 out_len)
{
	struct ornic_identify_cmd in = { .page = page, .index = cpu_to_le16(index) };
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_IDENTIFY,
		.in = &in,
		.in_len = sizeof(in),
		.out = out,
		.out_len = out_len,
	};

	return ornic_cmd_run(core, &cmd, "IDENTIFY");
}

int ornic_cmd_set_features(struct ornic_core *core, u64 features)
{
	struct ornic_features_cmd in = { .features0 = cpu_to_le64(features) };
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_SET_FEATURES,
		.in = &in,
		.in_len = sizeof(in),
	};

	return ornic_cmd_run(core, &cmd, "SET_FEATURES");
}

int ornic_cmd_host_info(struct ornic_core *core)
{
	struct ornic_host_info_cmd in = { };
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_HOST_INFO,
		.in = &in,
		.in_len = sizeof(in),
	};

	snprintf(in.os, sizeof(in.os), "Linux %.57s", utsname()->release);
	strscpy(in.driver, ORNIC_DRV_NAME, sizeof(in.driver));
	return ornic_cmd_run(core, &cmd, "HOST_INFO");
}

int ornic_cmd_key_create_all(struct ornic_core *core, u32 *key)
{
	struct ornic_key_create_cmd in = {
		.kind = ORNIC_KEY_PHYS_ALL,
		.access = cpu_to_le32(ORNIC_ACCESS_LOCAL_WRITE),
	};
	int err;

	err = ornic_cmd_create(core, ORNIC_OP_KEY_CREATE, &in, sizeof(in), key, "KEY_CREATE");
	if (!err && !(*key >> ORNIC_KEY_TAG_BITS)) {
		ornic_device_malformed(&core->odev, "key with index 0");
		err = -EIO;
	}
	return err;
}

int ornic_cmd_pd_create(struct ornic_core *core, u32 *pd)
{
	struct ornic_pd_create_cmd in = { };

	return ornic_cmd_create_object(core, ORNIC_OP_PD_CREATE, &in, sizeof(in), pd, "PD_CREATE");
}

int ornic_cmd_cq_create(struct ornic_core *core, const struct ornic_cq_create_cmd *in, u32 *cqn)
{
	return ornic_cmd_create_object(core, ORNIC_OP_CQ_CREATE, in, sizeof(*in), cqn, "CQ_CREATE");
}

/* Set the moderation of a completion queue: entries and microseconds per event. */
int ornic_cmd_cq_moderate(struct ornic_core *core, u32 cqn, u16 count, u16 period_us)
{
	struct ornic_moderate_cmd in = {
		.mask = cpu_to_le32(ORNIC_MODERATE_TIMING),
		.mod_count = cpu_to_le16(count),
		.mod_period_us = cpu_to_le16(period_us),
	};
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_CQ_MODIFY,
		.number = cqn,
		.in = &in,
		.in_len = sizeof(in),
	};

	return ornic_cmd_run(core, &cmd, "CQ_MODIFY");
}

int ornic_cmd_qp_create(struct ornic_core *core, const struct ornic_qp_create_cmd *in, u32 *qpn)
{
	return ornic_cmd_create_object(core, ORNIC_OP_QP_CREATE, in, sizeof(*in), qpn, "QP_CREATE");
}

/* State transition of a raw queue pair: only INIT has an attribute, the port. */
int ornic_cmd_qp_state(struct ornic_core *core, u32 qpn, enum ornic_qp_state state)
{
	struct ornic_qp_modify_cmd in = {
		.mask = cpu_to_le32(ORNIC_QPM_STATE),
		.next_state = state,
	};
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_QP_MODIFY,
		.number = qpn,
		.in = &in,
		.in_len = sizeof(in),
	};

	if (state == ORNIC_QPS_INIT) {
		in.mask |= cpu_to_le32(ORNIC_QPM_PORT);
		in.port = ORNIC_PORT;
	}
	return ornic_cmd_run(core, &cmd, "QP_MODIFY");
}

int ornic_cmd_rule_create(struct ornic_core *core, enum ornic_rule_kind kind, u32 qpn, u32 *rule)
{
	struct ornic_rule_cmd in = {
		.kind = kind,
		.port = ORNIC_PORT,
		.target_type = cpu_to_le32(ORNIC_TARGET_QP),
		.target = cpu_to_le32(qpn),
	};

	return ornic_cmd_create_object(core, ORNIC_OP_RULE_CREATE, &in, sizeof(in), rule,
				       "RULE_CREATE");
}

/*
 * Destroy an object. A device that rejects this could still access memory that is
 * freed next, so it is declared dead, which ends its DMA.
 */
void ornic_cmd_destroy(struct ornic_core *core, u16 opcode, u32 number)
{
	struct ornic_cmd cmd = {
		.opcode = opcode,
		.number = number,
	};

	if (ornic_cmd_run(core, &cmd, "destroy"))
		ornic_fatal(core, ORNIC_REASON_MALFORMED);
}

int ornic_cmd_port_query(struct ornic_core *core, struct ornic_identify_port *out)
{
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_PORT_QUERY,
		.number = ORNIC_PORT,
		.out = out,
		.out_len = sizeof(*out),
	};

	return ornic_cmd_run(core, &cmd, "PORT_QUERY");
}

int ornic_cmd_port_modify(struct ornic_core *core, const struct ornic_port_modify_cmd *in)
{
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_PORT_MODIFY,
		.number = ORNIC_PORT,
		.in = in,
		.in_len = sizeof(*in),
	};

	return ornic_cmd_run(core, &cmd, "PORT_MODIFY");
}

/* Read names of statistics, starting with number offset; set *written to their count. */
int ornic_cmd_stat_names(struct ornic_core *core, u32 offset, struct ornic_stat_name *out,
			 u32 count, u32 *written)
{
	struct ornic_stat_names_cmd in = { .offset = cpu_to_le32(offset) };
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_STAT_NAMES,
		.in = &in,
		.in_len = sizeof(in),
		.out = out,
		.out_len = min_t(size_t, count * sizeof(*out), ORNIC_ADMIN_MAX_PAYLOAD),
	};
	int err;

	cmd.out_len -= cmd.out_len % sizeof(*out);
	err = ornic_cmd_run(core, &cmd, "STAT_NAMES");
	*written = err ? 0 : cmd.out_len / sizeof(*out);
	return err;
}

/* Read values of the port's statistics; those that the device does not have are 0. */
int ornic_cmd_stat_read(struct ornic_core *core, u32 first, __le64 *out, u32 count)
{
	struct ornic_stat_read_cmd in = {
		.scope = ORNIC_STAT_PORT,
		.number = cpu_to_le32(ORNIC_PORT),
		.first = cpu_to_le32(first),
		.count = cpu_to_le32(count),
	};
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_STAT_READ,
		.in = &in,
		.in_len = sizeof(in),
		.out = out,
		.out_len = count * sizeof(*out),
	};

	return ornic_cmd_run(core, &cmd, "STAT_READ");
}
