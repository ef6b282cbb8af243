/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Typed functions for the admin commands that the core and the network
 * interface use. All may sleep and return 0 or a negative errno; a failure that
 * the device reported is logged with its status and syndrome.
 */
#ifndef ORNIC_CORE_CMD_H
#define ORNIC_CORE_CMD_H

#include <linux/types.h>

#include <linux/ornic/hw/cq.h>
#include <linux/ornic/hw/identify.h>
#include <linux/ornic/hw/mr.h>
#include <linux/ornic/hw/pd.h>
#include <linux/ornic/hw/port.h>
#include <linux/ornic/hw/qp.h>
#include <linux/ornic/hw/stats.h>
#include <linux/ornic/hw/steer.h>

struct ornic_core;

int ornic_cmd_identify(struct ornic_core *core, u8 page, u16 index, void *out, u16 out_len);
int ornic_cmd_set_features(struct ornic_core *core, u64 features);
int ornic_cmd_host_info(struct ornic_core *core);
int ornic_cmd_key_create_all(struct ornic_core *core, u32 *key);

int ornic_cmd_pd_create(struct ornic_core *core, u32 *pd);
int ornic_cmd_cq_create(struct ornic_core *core, const struct ornic_cq_create_cmd *in, u32 *cqn);
int ornic_cmd_cq_moderate(struct ornic_core *core, u32 cqn, u16 count, u16 period_us);
int ornic_cmd_qp_create(struct ornic_core *core, const struct ornic_qp_create_cmd *in, u32 *qpn);
int ornic_cmd_qp_state(struct ornic_core *core, u32 qpn, enum ornic_qp_state state);
int ornic_cmd_rule_create(struct ornic_core *core, enum ornic_rule_kind kind, u32 qpn, u32 *rule);
void ornic_cmd_destroy(struct ornic_core *core, u16 opcode, u32 number);

int ornic_cmd_port_query(struct ornic_core *core, struct ornic_identify_port *out);
int ornic_cmd_port_modify(struct ornic_core *core, const struct ornic_port_modify_cmd *in);

int ornic_cmd_stat_names(struct ornic_core *core, u32 offset, struct ornic_stat_name *out,
			 u32 count, u32 *written);
int ornic_cmd_stat_read(struct ornic_core *core, u32 first, __le64 *out, u32 count);

#endif
