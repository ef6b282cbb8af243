// SPDX-License-Identifier: GPL-2.0
/*
 * Execute one admin command. Sizes, reserved bytes and payload addresses are checked here for
 * all commands, according to one table; handlers check the fields.
 */
#include "command.h"

#include "../mem/gpa.h"

#include <ornic/cq.h>
#include <ornic/dm.h>
#include <ornic/eq.h>
#include <ornic/identify.h>
#include <ornic/mr.h>
#include <ornic/pd.h>
#include <ornic/port.h>
#include <ornic/qp.h>
#include <ornic/srq.h>
#include <ornic/stats.h>
#include <ornic/steer.h>
#include <string.h>

/**
 * struct command_op - one opcode
 * @opcode:	enum ornic_opcode
 * @in:		bytes of the input layout
 * @out:	bytes of the output layout; for a list the most that it can have
 * @object:	the command names an object by number; otherwise the number must be zero
 * @run:	handler
 */
struct command_op {
	uint16_t opcode;
	uint16_t in;
	uint16_t out;
	bool object;
	uint8_t (*run)(struct command *c);
};

static const struct command_op command_ops[] = {
	{ ORNIC_OP_NOP, 0, 0, false, cmd_nop },
	{ ORNIC_OP_IDENTIFY, sizeof(struct ornic_identify_cmd),
	  sizeof(struct ornic_identify_device), false, cmd_identify },
	{ ORNIC_OP_SET_FEATURES, sizeof(struct ornic_features_cmd), 0, false, cmd_set_features },
	{ ORNIC_OP_HOST_INFO, sizeof(struct ornic_host_info_cmd), 0, false, cmd_host_info },
	{ ORNIC_OP_STAT_NAMES, sizeof(struct ornic_stat_names_cmd), ORNIC_ADMIN_MAX_PAYLOAD, false,
	  cmd_stat_names },
	{ ORNIC_OP_STAT_READ, sizeof(struct ornic_stat_read_cmd), ORNIC_ADMIN_MAX_PAYLOAD, false,
	  cmd_stat_read },
	{ ORNIC_OP_CLOCK_READ, 0, sizeof(struct ornic_clock_rsp), false, cmd_clock_read },
	{ ORNIC_OP_EQ_CREATE, sizeof(struct ornic_eq_create_cmd), 0, false, cmd_eq_create },
	{ ORNIC_OP_EQ_MODIFY, sizeof(struct ornic_moderate_cmd), 0, true, cmd_eq_modify },
	{ ORNIC_OP_EQ_QUERY, 0, sizeof(struct ornic_eq_query_rsp), true, cmd_eq_query },
	{ ORNIC_OP_EQ_DESTROY, 0, 0, true, cmd_eq_destroy },
	{ ORNIC_OP_PD_CREATE, sizeof(struct ornic_pd_create_cmd), 0, false, cmd_pd_create },
	{ ORNIC_OP_PD_DESTROY, 0, 0, true, cmd_pd_destroy },
	{ ORNIC_OP_XRCD_CREATE, sizeof(struct ornic_pd_create_cmd), 0, false, cmd_xrcd_create },
	{ ORNIC_OP_XRCD_DESTROY, 0, 0, true, cmd_xrcd_destroy },
	{ ORNIC_OP_KEY_CREATE, sizeof(struct ornic_key_create_cmd), 0, false, cmd_key_create },
	{ ORNIC_OP_KEY_MODIFY, sizeof(struct ornic_key_modify_cmd), 0, true, cmd_key_modify },
	{ ORNIC_OP_KEY_QUERY, 0, sizeof(struct ornic_key_query_rsp), true, cmd_key_query },
	{ ORNIC_OP_KEY_DESTROY, 0, 0, true, cmd_key_destroy },
	{ ORNIC_OP_DM_CREATE, sizeof(struct ornic_dm_create_cmd),
	  sizeof(struct ornic_dm_create_rsp), false, cmd_dm_create },
	{ ORNIC_OP_DM_DESTROY, 0, 0, true, cmd_dm_destroy },
	{ ORNIC_OP_CQ_CREATE, sizeof(struct ornic_cq_create_cmd), 0, false, cmd_cq_create },
	{ ORNIC_OP_CQ_MODIFY, sizeof(struct ornic_moderate_cmd), 0, true, cmd_cq_modify },
	{ ORNIC_OP_CQ_QUERY, 0, sizeof(struct ornic_cq_query_rsp), true, cmd_cq_query },
	{ ORNIC_OP_CQ_DESTROY, 0, 0, true, cmd_cq_destroy },
	{ ORNIC_OP_SRQ_CREATE, sizeof(struct ornic_srq_create_cmd), 0, false, cmd_srq_create },
	{ ORNIC_OP_SRQ_MODIFY, sizeof(struct ornic_srq_modify_cmd), 0, true, cmd_srq_modify },
	{ ORNIC_OP_SRQ_QUERY, 0, sizeof(struct ornic_srq_query_rsp), true, cmd_srq_query },
	{ ORNIC_OP_SRQ_DESTROY, 0, 0, true, cmd_srq_destroy },
	{ ORNIC_OP_SRQ_RESIZE, sizeof(struct ornic_srq_resize_cmd), 0, true, cmd_srq_resize },
	{ ORNIC_OP_CQ_RESIZE, sizeof(struct ornic_cq_resize_cmd),
	  sizeof(struct ornic_cq_resize_rsp), true, cmd_cq_resize },
	{ ORNIC_OP_QP_CREATE, sizeof(struct ornic_qp_create_cmd), 0, false, cmd_qp_create },
	{ ORNIC_OP_QP_MODIFY, sizeof(struct ornic_qp_modify_cmd), 0, true, cmd_qp_modify },
	{ ORNIC_OP_QP_QUERY, 0, sizeof(struct ornic_qp_query_rsp), true, cmd_qp_query },
	{ ORNIC_OP_QP_DESTROY, 0, 0, true, cmd_qp_destroy },
	{ ORNIC_OP_PORT_MODIFY, sizeof(struct ornic_port_modify_cmd), 0, true, cmd_port_modify },
	{ ORNIC_OP_PORT_QUERY, 0, sizeof(struct ornic_identify_port), true, cmd_port_query },
	{ ORNIC_OP_SET_GID, sizeof(struct ornic_gid_entry), 0, true, cmd_set_gid },
	{ ORNIC_OP_GET_GID, sizeof(struct ornic_gid_get_cmd), sizeof(struct ornic_gid_entry), true,
	  cmd_get_gid },
	{ ORNIC_OP_RULE_CREATE, sizeof(struct ornic_rule_cmd), 0, false, cmd_rule_create },
	{ ORNIC_OP_RULE_DESTROY, 0, 0, true, cmd_rule_destroy },
	{ ORNIC_OP_RSS_CREATE, sizeof(struct ornic_rss_create_cmd), 0, false, cmd_rss_create },
	{ ORNIC_OP_RSS_DESTROY, 0, 0, true, cmd_rss_destroy },
	{ ORNIC_OP_COUNTER_CREATE, 0, 0, false, cmd_counter_create },
	{ ORNIC_OP_COUNTER_DESTROY, 0, 0, true, cmd_counter_destroy },
};

static const struct command_op *command_find(uint16_t opcode)
{
	for (size_t i = 0; i < sizeof(command_ops) / sizeof(command_ops[0]); i++)
		if (command_ops[i].opcode == opcode)
			return &command_ops[i];
	return NULL;
}

uint8_t command_reject(struct command *c, uint8_t status, const void *field)
{
	c->syndrome = ORNIC_SYN_FIELD |
		      (uint32_t)((const uint8_t *)field - (const uint8_t *)c->in);
	return status;
}

uint8_t command_zero(struct command *c, const void *field, size_t len)
{
	const uint8_t *p = field;

	for (size_t i = 0; i < len; i++)
		if (p[i])
			return command_reject(c, ORNIC_ST_RESERVED, field);
	return ORNIC_ST_OK;
}

uint8_t command_need(struct command *c, uint64_t feature, const void *field)
{
	if (c->dev->features & feature)
		return ORNIC_ST_OK;
	return command_reject(c, ORNIC_ST_UNSUPPORTED, field);
}

uint8_t command_record(struct command *c, const __le64 *field, uint64_t *rec)
{
	*rec = le64toh(*field);
	if (*rec % sizeof(struct ornic_rec))
		return command_reject(c, ORNIC_ST_BAD_PARAM, field);
	if (!gpa_ptr(c->dev->gpa, *rec, sizeof(struct ornic_rec), true))
		return command_reject(c, ORNIC_ST_DMA_ERROR, field);
	return ORNIC_ST_OK;
}

/* Return true if all of a ring's memory can be read, or written with @write (ORN-ADM-27). */
static bool ring_reachable(const struct umem *mem, bool write)
{
	uint64_t off = 0, n;
	void *ptr;

	for (; off < mem->length; off += n) {
		n = umem_span(mem, off, mem->length - off, write, &ptr);
		if (!n)
			return false;
	}
	return true;
}

uint8_t command_ring(struct command *c, const struct ornic_pages *field, uint8_t log,
		     uint8_t stride, bool write, struct umem *mem)
{
	uint8_t st = COMMAND_ZERO(c, field->mbz);

	if (st)
		return st;
	if (le32toh(field->offset) % ORNIC_ENTRY_BYTES ||
	    le32toh(field->offset) % (1u << stride))
		return command_reject(c, ORNIC_ST_BAD_PARAM, &field->offset);
	st = umem_load(mem, c->dev->gpa, field, 1ull << (log + stride), LIMIT_PAGE_SIZES,
		       &c->dev->lists);
	if (st)
		return command_reject(c, st, field);
	progress_charge(c->f, mem->npages);
	if (ring_reachable(mem, write))
		return ORNIC_ST_OK;
	umem_free(mem, &c->dev->lists);
	return command_reject(c, ORNIC_ST_DMA_ERROR, field);
}

uint8_t command_dbpage(struct command *c, const __le32 *field, uint32_t *page)
{
	*page = le32toh(*field);
	if (*page >= function_dbpages(c->f))
		return command_reject(c, ORNIC_ST_BAD_PARAM, field);
	return ORNIC_ST_OK;
}

uint8_t command_number(struct command *c, struct table *t, void *obj)
{
	int err = table_add(t, obj, &c->number);

	if (!err)
		return ORNIC_ST_OK;
	return err == -ENOSPC ? ORNIC_ST_LIMIT : ORNIC_ST_NO_RESOURCE;
}

static uint8_t entry_reject(struct command *c, uint8_t status, size_t field)
{
	c->syndrome = ORNIC_SYN_FIELD | ORNIC_SYN_FIELD_ENTRY | field;
	return status;
}

#define ENTRY_REJECT(c, status, member)	\
	entry_reject(c, status, offsetof(struct ornic_admin_cmd, member))

/* Return true if all of [@addr, @addr + @len) can be written. */
static bool payload_writable(struct gpa *gpa, uint64_t addr, uint32_t len)
{
	void *ptr;

	while (len) {
		uint64_t n = gpa_span(gpa, addr, len, true, &ptr);

		if (!n)
			return false;
		addr += n;
		len -= n;
	}
	return true;
}

/* Check the fields of the entry itself, except for the input payload. */
static uint8_t entry_check(struct command *c, const struct command_op *op,
			   const struct ornic_admin_cmd *cmd)
{
	uint32_t in_len = le16toh(cmd->in_len), out_len = le16toh(cmd->out_len);
	uint64_t in_addr = le64toh(cmd->in_addr), out_addr = le64toh(cmd->out_addr);

	if (!op)
		return ORNIC_ST_BAD_OPCODE;
	if (!op->object && c->number)
		return ENTRY_REJECT(c, ORNIC_ST_RESERVED, number);
	if (in_len < op->in || in_len > ORNIC_ADMIN_MAX_PAYLOAD ||
	    out_len > ORNIC_ADMIN_MAX_PAYLOAD)
		return ORNIC_ST_BAD_SIZE;
	if (cmd->flags)
		return ENTRY_REJECT(c, ORNIC_ST_RESERVED, flags);
	if (in_len <= ORNIC_ADMIN_INLINE && in_addr)
		return ENTRY_REJECT(c, ORNIC_ST_RESERVED, in_addr);
	if (in_addr % 64)
		return ENTRY_REJECT(c, ORNIC_ST_BAD_PARAM, in_addr);
	if (out_len <= ORNIC_ADMIN_INLINE && out_addr)
		return ENTRY_REJECT(c, ORNIC_ST_RESERVED, out_addr);
	if (out_addr % 64)
		return ENTRY_REJECT(c, ORNIC_ST_BAD_PARAM, out_addr);
	if (out_len > ORNIC_ADMIN_INLINE && !payload_writable(c->dev->gpa, out_addr, out_len))
		return ENTRY_REJECT(c, ORNIC_ST_DMA_ERROR, out_addr);
	return ORNIC_ST_OK;
}

/* Copy the input. Bytes behind the layout must be zero (ORN-ADM-8). */
static uint8_t payload_fetch(struct command *c, const struct command_op *op,
			     const struct ornic_admin_cmd *cmd, uint8_t *in)
{
	uint32_t len = le16toh(cmd->in_len);

	if (len <= ORNIC_ADMIN_INLINE)
		memcpy(in, cmd->inline_in, len);
	else if (gpa_read(c->dev->gpa, le64toh(cmd->in_addr), in, len))
		return ENTRY_REJECT(c, ORNIC_ST_DMA_ERROR, in_addr);
	for (uint32_t i = op->in; i < len; i++)
		if (in[i])
			return command_reject(c, ORNIC_ST_RESERVED, &in[i]);
	return ORNIC_ST_OK;
}

/*
 * Copy the output. The buffer is still writable: entry_check() found that it is, and a command with
 * output does not take several iterations, between which the client may unmap memory.
 */
static void payload_store(struct command *c, const struct ornic_admin_cmd *cmd,
			  struct ornic_admin_cpl *cpl)
{
	uint32_t len = c->out_size < c->out_max ? c->out_size : c->out_max;

	if (le16toh(cmd->out_len) <= ORNIC_ADMIN_INLINE)
		memcpy(cpl->inline_out, c->out, len);
	else
		gpa_write(c->dev->gpa, le64toh(cmd->out_addr), c->out, len);
}

/* Check the entry and fetch the input, unless the command is continued. */
static uint8_t command_begin(struct command *c, const struct command_op *op)
{
	struct progress *p = &c->f->progress;
	uint8_t st;

	if (p->active)
		return ORNIC_ST_OK;
	st = entry_check(c, op, &p->cmd);
	return st ?: payload_fetch(c, op, &p->cmd, p->in);
}

static uint8_t command_run(struct command *c, struct ornic_admin_cpl *cpl)
{
	static uint8_t out[ORNIC_ADMIN_MAX_PAYLOAD] __attribute__((aligned(64)));
	const struct ornic_admin_cmd *cmd = &c->f->progress.cmd;
	const struct command_op *op = command_find(le16toh(cmd->opcode));
	uint8_t st;

	c->in = c->f->progress.in;
	c->out = out;
	st = command_begin(c, op);
	if (st)
		return st;
	memset(out, 0, op->out);
	c->out_size = op->out;
	st = op->run(c);
	if (st)
		return st;
	payload_store(c, cmd, cpl);
	return ORNIC_ST_OK;
}

/* Ask fault injection what to do with a new command. */
static enum fault_command command_fault(struct function *f, uint8_t *status)
{
	const struct engine_faults *faults = f->dev.engine->faults;

	if (!faults || f->progress.active)
		return FAULT_EXECUTE;
	return faults->command(&f->dev, le16toh(f->progress.cmd.opcode), status);
}

/**
 * command_execute() - execute a command, or continue a long one
 * @f:		function; its @progress has the command
 * @cpl:	completion, zeroed; everything except the phase is filled in
 *
 * Return: false if there is no completion: the command is not finished, so call again in the next
 * iteration of the engine, or fault injection swallowed it.
 */
bool command_execute(struct function *f, struct ornic_admin_cpl *cpl)
{
	const struct ornic_admin_cmd *cmd = &f->progress.cmd;
	struct command c = {
		.f = f,
		.dev = &f->dev,
		.number = le32toh(cmd->number),
		.out_max = le16toh(cmd->out_len),
	};
	enum fault_command fault;
	uint8_t st;

	fault = command_fault(f, &st);
	if (fault == FAULT_SWALLOW)
		return false;
	if (fault == FAULT_FAIL)
		c.syndrome = FAULT_SYNDROME;
	else
		st = command_run(&c, cpl);
	f->progress.active = st == COMMAND_MORE;
	if (f->progress.active)
		return false;
	progress_end(f);
	device_count(&f->dev, CNT_admin_commands, 1);
	if (st)
		device_count(&f->dev, CNT_admin_failures, 1);
	cpl->cmd_id = cmd->cmd_id;
	cpl->opcode = cmd->opcode;
	cpl->number = st ? cmd->number : htole32(c.number);
	cpl->out_size = st ? 0 : htole32(c.out_size);
	cpl->status = st;
	cpl->syndrome = htole32(c.syndrome);
	return true;
}
