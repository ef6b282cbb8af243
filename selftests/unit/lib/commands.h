/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The commands of the admin queue, for tests that try all of them.
 */
#ifndef UNIT_LIB_COMMANDS_H
#define UNIT_LIB_COMMANDS_H


#include <ornic/admin.h>
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
#include <stdbool.h>
#include <stdint.h>

/**
 * struct admin_op - a command
 * @opcode: ORNIC_OP_*
 * @in: bytes of the layout of its input
 * @named: its number is that of an object, which must exist
 */
struct admin_op {
	uint16_t opcode;
	uint16_t in;
	bool named;
};

static const struct admin_op admin_ops[] = {
	{ ORNIC_OP_NOP, 0, false },
	{ ORNIC_OP_IDENTIFY, sizeof(struct ornic_identify_cmd), false },
	{ ORNIC_OP_SET_FEATURES, sizeof(struct ornic_features_cmd), false },
	{ ORNIC_OP_HOST_INFO, sizeof(struct ornic_host_info_cmd), false },
	{ ORNIC_OP_STAT_NAMES, sizeof(struct ornic_stat_names_cmd), false },
	{ ORNIC_OP_STAT_READ, sizeof(struct ornic_stat_read_cmd), false },
	{ ORNIC_OP_CLOCK_READ, 0, false },
	{ ORNIC_OP_EQ_CREATE, sizeof(struct ornic_eq_create_cmd), false },
	{ ORNIC_OP_EQ_MODIFY, sizeof(struct ornic_moderate_cmd), true },
	{ ORNIC_OP_EQ_QUERY, 0, true },
	{ ORNIC_OP_EQ_DESTROY, 0, true },
	{ ORNIC_OP_PD_CREATE, sizeof(struct ornic_pd_create_cmd), false },
	{ ORNIC_OP_PD_DESTROY, 0, true },
	{ ORNIC_OP_XRCD_CREATE, sizeof(struct ornic_pd_create_cmd), false },
	{ ORNIC_OP_XRCD_DESTROY, 0, true },
	{ ORNIC_OP_KEY_CREATE, sizeof(struct ornic_key_create_cmd), false },
	{ ORNIC_OP_KEY_MODIFY, sizeof(struct ornic_key_modify_cmd), true },
	{ ORNIC_OP_KEY_QUERY, 0, true },
	{ ORNIC_OP_KEY_DESTROY, 0, true },
	{ ORNIC_OP_DM_CREATE, sizeof(struct ornic_dm_create_cmd), false },
	{ ORNIC_OP_DM_DESTROY, 0, true },
	{ ORNIC_OP_CQ_CREATE, sizeof(struct ornic_cq_create_cmd), false },
	{ ORNIC_OP_CQ_MODIFY, sizeof(struct ornic_moderate_cmd), true },
	{ ORNIC_OP_CQ_QUERY, 0, true },
	{ ORNIC_OP_CQ_DESTROY, 0, true },
	{ ORNIC_OP_CQ_RESIZE, sizeof(struct ornic_cq_resize_cmd), true },
	{ ORNIC_OP_SRQ_CREATE, sizeof(struct ornic_srq_create_cmd), false },
	{ ORNIC_OP_SRQ_MODIFY, sizeof(struct ornic_srq_modify_cmd), true },
	{ ORNIC_OP_SRQ_QUERY, 0, true },
	{ ORNIC_OP_SRQ_DESTROY, 0, true },
	{ ORNIC_OP_SRQ_RESIZE, sizeof(struct ornic_srq_resize_cmd), true },
	{ ORNIC_OP_QP_CREATE, sizeof(struct ornic_qp_create_cmd), false },
	{ ORNIC_OP_QP_MODIFY, sizeof(struct ornic_qp_modify_cmd), true },
	{ ORNIC_OP_QP_QUERY, 0, true },
	{ ORNIC_OP_QP_DESTROY, 0, true },
	{ ORNIC_OP_PORT_MODIFY, sizeof(struct ornic_port_modify_cmd), true },
	{ ORNIC_OP_PORT_QUERY, 0, true },
	{ ORNIC_OP_SET_GID, sizeof(struct ornic_gid_entry), true },
	{ ORNIC_OP_GET_GID, sizeof(struct ornic_gid_get_cmd), true },
	{ ORNIC_OP_RULE_CREATE, sizeof(struct ornic_rule_cmd), false },
	{ ORNIC_OP_RULE_DESTROY, 0, true },
	{ ORNIC_OP_RSS_CREATE, sizeof(struct ornic_rss_create_cmd), false },
	{ ORNIC_OP_RSS_DESTROY, 0, true },
	{ ORNIC_OP_COUNTER_CREATE, 0, false },
	{ ORNIC_OP_COUNTER_DESTROY, 0, true },
};

#define ADMIN_OPS	(sizeof(admin_ops) / sizeof(admin_ops[0]))

#endif
