// SPDX-License-Identifier: GPL-2.0
/*
 * One typed function for each admin command of the verbs.
 *
 * All of them sleep. The numbers of created objects are checked here, except that of device memory
 * (dm.c): a number outside the range of the specification does not get into the driver (ORN-SEC-7).
 * Completion queues and queue pairs are counted: some are reserved for the network interface.
 */
#include <linux/atomic.h>

#include <linux/ornic/hw/admin.h>
#include <linux/ornic/hw/cq.h>
#include <linux/ornic/hw/dm.h>
#include <linux/ornic/hw/eq.h>
#include <linux/ornic/hw/mr.h>
#include <linux/ornic/hw/pd.h>
#include <linux/ornic/hw/port.h>
#include <linux/ornic/hw/qp.h>
#include <linux/ornic/hw/srq.h>
#include <linux/ornic/hw/stats.h>
#include <linux/ornic/hw/steer.h>

#include "cmd.h"
#include "ornic_ib.h"

/*
 * Run a command. A rejection is logged for debugging, because the errno does not say which limit or
 * rule of the device was violated; status and syndrome do.
 */
static int ornic_ib_cmd_run(struct ornic_ib_dev *dev, struct ornic_cmd *cmd)
{
	int ret = ornic_cmd_exec(dev->odev, cmd);

	if (ret && !ornic_device_dead(dev->odev))
		ibdev_dbg(&dev->ibdev, "command %#06x of %u rejected: status %u, syndrome %#x\n",
			  cmd->opcode, cmd->number, cmd->status, cmd->syndrome);
	return ret;
}

/* Run the create command of an object whose number has 24 bits. */
static int ornic_ib_cmd_create(struct ornic_ib_dev *dev, u16 opcode, const void *in, u16 in_len,
			       u32 *number)
{
	struct ornic_cmd cmd = { .opcode = opcode, .in = in, .in_len = in_len };
	int ret;

	ret = ornic_ib_cmd_run(dev, &cmd);
	if (ret)
		return ret;
	if (!cmd.result || cmd.result > ORNIC_MAX_NUMBER) {
		ornic_device_malformed(dev->odev, "number of a created object out of range");
		return -EIO;
	}
	*number = cmd.result;
	return 0;
}

/**
 * ornic_ib_number_error() - handle the failure to enter a new object in the table of its number
 * @dev: device
 * @ret: 0 or negative errno of the table's insert function
 *
 * If the number is in use, the device gave one number to two objects and is declared dead: a
 * destroy command for the second object would destroy the first.
 *
 * Return: @ret.
 */
int ornic_ib_number_error(struct ornic_ib_dev *dev, int ret)
{
	if (ret == -EBUSY)
		ornic_device_malformed(dev->odev, "number of a created object in use");
	return ret;
}

/* Take one object of a share. Return: 0, or -ENOMEM like a device without room for it. */
static int ornic_ib_take(atomic_t *used, u32 share)
{
	return atomic_fetch_add_unless(used, 1, share) == share ? -ENOMEM : 0;
}

static int ornic_ib_cmd_modify(struct ornic_ib_dev *dev, u16 opcode, u32 number, const void *in,
			       u16 in_len)
{
	struct ornic_cmd cmd = {
		.opcode = opcode, .number = number, .in = in, .in_len = in_len,
	};

	return ornic_ib_cmd_run(dev, &cmd);
}

static int ornic_ib_cmd_query(struct ornic_ib_dev *dev, u16 opcode, u32 number, const void *in,
			      u16 in_len, void *out, u16 out_len)
{
	struct ornic_cmd cmd = {
		.opcode = opcode, .number = number,
		.in = in, .in_len = in_len, .out = out, .out_len = out_len,
	};

	return ornic_ib_cmd_run(dev, &cmd);
}

/*
 * Destroy an object. If @keep_busy, the device may answer BUSY: the object stays, and the caller
 * gets -EBUSY. Any other rejection declares the device dead, which ends its DMA (ORN-PCI-4).
 * After that the object counts as destroyed.
 */
static int ornic_ib_cmd_try_destroy(struct ornic_ib_dev *dev, u16 opcode, u32 number,
				    bool keep_busy)
{
	struct ornic_cmd cmd = { .opcode = opcode, .number = number };
	int ret;

	ret = ornic_ib_cmd_run(dev, &cmd);
	if (!ret)
		return 0;
	if (keep_busy && cmd.status == ORNIC_ST_BUSY)
		return ret;
	if (!ornic_device_dead(dev->odev))
		ibdev_err(&dev->ibdev, "destroy command %#06x of %u rejected: status %u\n", opcode,
			  number, cmd.status);
	ornic_device_malformed(dev->odev, "destroy command rejected");
	return 0;
}

/*
 * Destroy an object that no other object refers to: ib_core's use counts ensure that. This never
 * fails, because consumers in the kernel cannot handle a failure: ib_free_cq() frees the CQ anyway,
 * ib_dealloc_pd() warns and leaks it (6.12 and 7.2).
 */
static void ornic_ib_cmd_destroy(struct ornic_ib_dev *dev, u16 opcode, u32 number)
{
	ornic_ib_cmd_try_destroy(dev, opcode, number, false);
}

int ornic_ib_cmd_pd_create(struct ornic_ib_dev *dev, u32 owner, u32 *pdn)
{
	struct ornic_pd_create_cmd in = { .owner = cpu_to_le32(owner) };

	return ornic_ib_cmd_create(dev, ORNIC_OP_PD_CREATE, &in, sizeof(in), pdn);
}

void ornic_ib_cmd_pd_destroy(struct ornic_ib_dev *dev, u32 pdn)
{
	ornic_ib_cmd_destroy(dev, ORNIC_OP_PD_DESTROY, pdn);
}

int ornic_ib_cmd_xrcd_create(struct ornic_ib_dev *dev, u32 owner, u32 *xrcdn)
{
	struct ornic_pd_create_cmd in = { .owner = cpu_to_le32(owner) };

	return ornic_ib_cmd_create(dev, ORNIC_OP_XRCD_CREATE, &in, sizeof(in), xrcdn);
}

void ornic_ib_cmd_xrcd_destroy(struct ornic_ib_dev *dev, u32 xrcdn)
{
	ornic_ib_cmd_destroy(dev, ORNIC_OP_XRCD_DESTROY, xrcdn);
}

int ornic_ib_cmd_key_create(struct ornic_ib_dev *dev, const struct ornic_key_create_cmd *in,
			    u32 *key)
{
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_KEY_CREATE, .in = in, .in_len = sizeof(*in),
	};
	int ret;

	ret = ornic_ib_cmd_run(dev, &cmd);
	if (ret)
		return ret;
	if (!(cmd.result >> ORNIC_KEY_TAG_BITS)) {
		ornic_device_malformed(dev->odev, "key with index 0 created");
		return -EIO;
	}
	*key = cmd.result;
	return 0;
}

int ornic_ib_cmd_key_modify(struct ornic_ib_dev *dev, u32 key,
			    const struct ornic_key_modify_cmd *in)
{
	return ornic_ib_cmd_modify(dev, ORNIC_OP_KEY_MODIFY, key, in, sizeof(*in));
}

void ornic_ib_cmd_key_destroy(struct ornic_ib_dev *dev, u32 key)
{
	ornic_ib_cmd_destroy(dev, ORNIC_OP_KEY_DESTROY, key);
}

/**
 * ornic_ib_cmd_region_destroy() - destroy the key of a region to which windows may be bound
 * @dev: device
 * @key: key
 *
 * Return: 0, or -EBUSY if a window is bound (ORN-MEM-67); the key then stays valid.
 */
int ornic_ib_cmd_region_destroy(struct ornic_ib_dev *dev, u32 key)
{
	return ornic_ib_cmd_try_destroy(dev, ORNIC_OP_KEY_DESTROY, key, true);
}

int ornic_ib_cmd_clock_read(struct ornic_ib_dev *dev, struct ornic_clock_rsp *out)
{
	return ornic_ib_cmd_query(dev, ORNIC_OP_CLOCK_READ, 0, NULL, 0, out, sizeof(*out));
}

int ornic_ib_cmd_dm_create(struct ornic_ib_dev *dev, const struct ornic_dm_create_cmd *in,
			   struct ornic_dm_create_rsp *out, u32 *number)
{
	struct ornic_cmd cmd = {
		.opcode = ORNIC_OP_DM_CREATE, .in = in, .in_len = sizeof(*in),
		.out = out, .out_len = sizeof(*out),
	};
	int ret;

	ret = ornic_ib_cmd_run(dev, &cmd);
	if (!ret)
		*number = cmd.result;
	return ret;
}

void ornic_ib_cmd_dm_destroy(struct ornic_ib_dev *dev, u32 number)
{
	ornic_ib_cmd_destroy(dev, ORNIC_OP_DM_DESTROY, number);
}

int ornic_ib_cmd_cq_create(struct ornic_ib_dev *dev, const struct ornic_cq_create_cmd *in,
			   u32 *cqn)
{
	int ret;

	ret = ornic_ib_take(&dev->used.cq, dev->odev->share.cq);
	if (ret)
		return ret;
	ret = ornic_ib_cmd_create(dev, ORNIC_OP_CQ_CREATE, in, sizeof(*in), cqn);
	if (ret)
		atomic_dec(&dev->used.cq);
	return ret;
}

int ornic_ib_cmd_cq_modify(struct ornic_ib_dev *dev, u32 cqn, const struct ornic_moderate_cmd *in)
{
	return ornic_ib_cmd_modify(dev, ORNIC_OP_CQ_MODIFY, cqn, in, sizeof(*in));
}

int ornic_ib_cmd_cq_resize(struct ornic_ib_dev *dev, u32 cqn, const struct ornic_cq_resize_cmd *in,
			   struct ornic_cq_resize_rsp *out)
{
	return ornic_ib_cmd_query(dev, ORNIC_OP_CQ_RESIZE, cqn, in, sizeof(*in), out, sizeof(*out));
}

void ornic_ib_cmd_cq_destroy(struct ornic_ib_dev *dev, u32 cqn)
{
	ornic_ib_cmd_destroy(dev, ORNIC_OP_CQ_DESTROY, cqn);
	atomic_dec(&dev->used.cq);
}

static void ornic_ib_give_qp(struct ornic_ib_dev *dev, bool raw)
{
	if (raw)
		atomic_dec(&dev->used.raw_qp);
	atomic_dec(&dev->used.qp);
}

static int ornic_ib_take_qp(struct ornic_ib_dev *dev, bool raw)
{
	const struct ornic_share *share = &dev->odev->share;
	int ret;

	ret = ornic_ib_take(&dev->used.qp, share->qp);
	if (ret || !raw)
		return ret;
	ret = ornic_ib_take(&dev->used.raw_qp, share->raw_qp);
	if (ret)
		atomic_dec(&dev->used.qp);
	return ret;
}

int ornic_ib_cmd_qp_create(struct ornic_ib_dev *dev, const struct ornic_qp_create_cmd *in,
			   u32 *qpn)
{
	bool raw = in->type == ORNIC_QPT_RAW;
	int ret;

	ret = ornic_ib_take_qp(dev, raw);
	if (ret)
		return ret;
	ret = ornic_ib_cmd_create(dev, ORNIC_OP_QP_CREATE, in, sizeof(*in), qpn);
	if (ret)
		ornic_ib_give_qp(dev, raw);
	return ret;
}

int ornic_ib_cmd_qp_modify(struct ornic_ib_dev *dev, u32 qpn, const struct ornic_qp_modify_cmd *in)
{
	return ornic_ib_cmd_modify(dev, ORNIC_OP_QP_MODIFY, qpn, in, sizeof(*in));
}

int ornic_ib_cmd_qp_query(struct ornic_ib_dev *dev, u32 qpn, struct ornic_qp_query_rsp *out)
{
	return ornic_ib_cmd_query(dev, ORNIC_OP_QP_QUERY, qpn, NULL, 0, out, sizeof(*out));
}

void ornic_ib_cmd_qp_destroy(struct ornic_ib_dev *dev, u32 qpn, bool raw)
{
	ornic_ib_cmd_destroy(dev, ORNIC_OP_QP_DESTROY, qpn);
	ornic_ib_give_qp(dev, raw);
}

int ornic_ib_cmd_srq_create(struct ornic_ib_dev *dev, const struct ornic_srq_create_cmd *in,
			    u32 *srqn)
{
	return ornic_ib_cmd_create(dev, ORNIC_OP_SRQ_CREATE, in, sizeof(*in), srqn);
}

int ornic_ib_cmd_srq_modify(struct ornic_ib_dev *dev, u32 srqn,
			    const struct ornic_srq_modify_cmd *in)
{
	return ornic_ib_cmd_modify(dev, ORNIC_OP_SRQ_MODIFY, srqn, in, sizeof(*in));
}

int ornic_ib_cmd_srq_resize(struct ornic_ib_dev *dev, u32 srqn,
			    const struct ornic_srq_resize_cmd *in)
{
	return ornic_ib_cmd_modify(dev, ORNIC_OP_SRQ_RESIZE, srqn, in, sizeof(*in));
}

int ornic_ib_cmd_srq_query(struct ornic_ib_dev *dev, u32 srqn, struct ornic_srq_query_rsp *out)
{
	return ornic_ib_cmd_query(dev, ORNIC_OP_SRQ_QUERY, srqn, NULL, 0, out, sizeof(*out));
}

void ornic_ib_cmd_srq_destroy(struct ornic_ib_dev *dev, u32 srqn)
{
	ornic_ib_cmd_destroy(dev, ORNIC_OP_SRQ_DESTROY, srqn);
}

/* Memberships of multicast groups have limits of their own (ORN-MC-6). */
static int ornic_ib_take_rule(struct ornic_ib_dev *dev, enum ornic_rule_kind kind)
{
	if (kind == ORNIC_RULE_MEMBER)
		return 0;
	return ornic_ib_take(&dev->used.rules, dev->odev->share.rules);
}

static void ornic_ib_give_rule(struct ornic_ib_dev *dev, enum ornic_rule_kind kind)
{
	if (kind != ORNIC_RULE_MEMBER)
		atomic_dec(&dev->used.rules);
}

int ornic_ib_cmd_rule_create(struct ornic_ib_dev *dev, const struct ornic_rule_cmd *in, u32 *rule)
{
	int ret;

	ret = ornic_ib_take_rule(dev, in->kind);
	if (ret)
		return ret;
	ret = ornic_ib_cmd_create(dev, ORNIC_OP_RULE_CREATE, in, sizeof(*in), rule);
	if (ret)
		ornic_ib_give_rule(dev, in->kind);
	return ret;
}

void ornic_ib_cmd_rule_destroy(struct ornic_ib_dev *dev, u32 rule, enum ornic_rule_kind kind)
{
	ornic_ib_cmd_destroy(dev, ORNIC_OP_RULE_DESTROY, rule);
	ornic_ib_give_rule(dev, kind);
}

int ornic_ib_cmd_rss_create(struct ornic_ib_dev *dev, const struct ornic_rss_create_cmd *in,
			    u32 *group)
{
	return ornic_ib_cmd_create(dev, ORNIC_OP_RSS_CREATE, in, sizeof(*in), group);
}

void ornic_ib_cmd_rss_destroy(struct ornic_ib_dev *dev, u32 group)
{
	ornic_ib_cmd_destroy(dev, ORNIC_OP_RSS_DESTROY, group);
}

int ornic_ib_cmd_set_gid(struct ornic_ib_dev *dev, const struct ornic_gid_entry *in)
{
	return ornic_ib_cmd_modify(dev, ORNIC_OP_SET_GID, in->port, in, sizeof(*in));
}

int ornic_ib_cmd_port_query(struct ornic_ib_dev *dev, u32 port, struct ornic_identify_port *out)
{
	return ornic_ib_cmd_query(dev, ORNIC_OP_PORT_QUERY, port, NULL, 0, out, sizeof(*out));
}

int ornic_ib_cmd_transport(struct ornic_ib_dev *dev, u16 index,
			   struct ornic_identify_transport *out)
{
	struct ornic_identify_cmd in = {
		.page = ORNIC_ID_TRANSPORT, .index = cpu_to_le16(index),
	};

	return ornic_ib_cmd_query(dev, ORNIC_OP_IDENTIFY, 0, &in, sizeof(in), out, sizeof(*out));
}

int ornic_ib_cmd_stat_names(struct ornic_ib_dev *dev, u32 offset, struct ornic_stat_name *names,
			    u32 count)
{
	struct ornic_stat_names_cmd in = { .offset = cpu_to_le32(offset) };

	return ornic_ib_cmd_query(dev, ORNIC_OP_STAT_NAMES, 0, &in, sizeof(in), names,
			       count * sizeof(*names));
}

int ornic_ib_cmd_stat_read(struct ornic_ib_dev *dev, const struct ornic_stat_read_cmd *in,
			   __le64 *values)
{
	return ornic_ib_cmd_query(dev, ORNIC_OP_STAT_READ, 0, in, sizeof(*in), values,
			       le32_to_cpu(in->count) * sizeof(*values));
}

int ornic_ib_cmd_counter_create(struct ornic_ib_dev *dev, u32 *number)
{
	return ornic_ib_cmd_create(dev, ORNIC_OP_COUNTER_CREATE, NULL, 0, number);
}

void ornic_ib_cmd_counter_destroy(struct ornic_ib_dev *dev, u32 number)
{
	ornic_ib_cmd_destroy(dev, ORNIC_OP_COUNTER_DESTROY, number);
}

int ornic_ib_cmd_cq_query(struct ornic_ib_dev *dev, u32 cqn, struct ornic_cq_query_rsp *out)
{
	return ornic_ib_cmd_query(dev, ORNIC_OP_CQ_QUERY, cqn, NULL, 0, out, sizeof(*out));
}

int ornic_ib_cmd_key_query(struct ornic_ib_dev *dev, u32 key, struct ornic_key_query_rsp *out)
{
	return ornic_ib_cmd_query(dev, ORNIC_OP_KEY_QUERY, key, NULL, 0, out, sizeof(*out));
}
