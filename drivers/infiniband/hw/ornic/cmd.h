/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One typed function for each admin command of the verbs. All of them may sleep. Those that
 * can fail return 0 or a negative errno.
 */
#ifndef ORNIC_IB_CMD_H
#define ORNIC_IB_CMD_H

#include <linux/types.h>

#include <linux/ornic/hw/steer.h>

struct ornic_clock_rsp;
struct ornic_cq_create_cmd;
struct ornic_cq_query_rsp;
struct ornic_cq_resize_cmd;
struct ornic_cq_resize_rsp;
struct ornic_dm_create_cmd;
struct ornic_dm_create_rsp;
struct ornic_gid_entry;
struct ornic_ib_dev;
struct ornic_identify_port;
struct ornic_identify_transport;
struct ornic_key_create_cmd;
struct ornic_key_modify_cmd;
struct ornic_key_query_rsp;
struct ornic_moderate_cmd;
struct ornic_qp_create_cmd;
struct ornic_qp_modify_cmd;
struct ornic_qp_query_rsp;
struct ornic_rss_create_cmd;
struct ornic_srq_create_cmd;
struct ornic_srq_modify_cmd;
struct ornic_srq_query_rsp;
struct ornic_srq_resize_cmd;
struct ornic_stat_name;
struct ornic_stat_read_cmd;

int ornic_ib_number_error(struct ornic_ib_dev *dev, int ret);

int ornic_ib_cmd_pd_create(struct ornic_ib_dev *dev, u32 owner, u32 *pdn);
void ornic_ib_cmd_pd_destroy(struct ornic_ib_dev *dev, u32 pdn);
int ornic_ib_cmd_xrcd_create(struct ornic_ib_dev *dev, u32 owner, u32 *xrcdn);
void ornic_ib_cmd_xrcd_destroy(struct ornic_ib_dev *dev, u32 xrcdn);
int ornic_ib_cmd_key_create(struct ornic_ib_dev *dev, const struct ornic_key_create_cmd *in,
			    u32 *key);
int ornic_ib_cmd_key_modify(struct ornic_ib_dev *dev, u32 key,
			    const struct ornic_key_modify_cmd *in);
void ornic_ib_cmd_key_destroy(struct ornic_ib_dev *dev, u32 key);
int ornic_ib_cmd_region_destroy(struct ornic_ib_dev *dev, u32 key);
int ornic_ib_cmd_clock_read(struct ornic_ib_dev *dev, struct ornic_clock_rsp *out);
int ornic_ib_cmd_dm_create(struct ornic_ib_dev *dev, const struct ornic_dm_create_cmd *in,
			   struct ornic_dm_create_rsp *out, u32 *number);
void ornic_ib_cmd_dm_destroy(struct ornic_ib_dev *dev, u32 number);
int ornic_ib_cmd_cq_create(struct ornic_ib_dev *dev, const struct ornic_cq_create_cmd *in,
			   u32 *cqn);
int ornic_ib_cmd_cq_modify(struct ornic_ib_dev *dev, u32 cqn, const struct ornic_moderate_cmd *in);
int ornic_ib_cmd_cq_resize(struct ornic_ib_dev *dev, u32 cqn, const struct ornic_cq_resize_cmd *in,
			   struct ornic_cq_resize_rsp *out);
void ornic_ib_cmd_cq_destroy(struct ornic_ib_dev *dev, u32 cqn);
int ornic_ib_cmd_qp_create(struct ornic_ib_dev *dev, const struct ornic_qp_create_cmd *in,
			   u32 *qpn);
int ornic_ib_cmd_qp_modify(struct ornic_ib_dev *dev, u32 qpn, const struct ornic_qp_modify_cmd *in);
int ornic_ib_cmd_qp_query(struct ornic_ib_dev *dev, u32 qpn, struct ornic_qp_query_rsp *out);
void ornic_ib_cmd_qp_destroy(struct ornic_ib_dev *dev, u32 qpn, bool raw);
int ornic_ib_cmd_srq_create(struct ornic_ib_dev *dev, const struct ornic_srq_create_cmd *in,
			    u32 *srqn);
int ornic_ib_cmd_srq_modify(struct ornic_ib_dev *dev, u32 srqn,
			    const struct ornic_srq_modify_cmd *in);
int ornic_ib_cmd_srq_resize(struct ornic_ib_dev *dev, u32 srqn,
			    const struct ornic_srq_resize_cmd *in);
int ornic_ib_cmd_srq_query(struct ornic_ib_dev *dev, u32 srqn, struct ornic_srq_query_rsp *out);
void ornic_ib_cmd_srq_destroy(struct ornic_ib_dev *dev, u32 srqn);
int ornic_ib_cmd_rule_create(struct ornic_ib_dev *dev, const struct ornic_rule_cmd *in, u32 *rule);
void ornic_ib_cmd_rule_destroy(struct ornic_ib_dev *dev, u32 rule, enum ornic_rule_kind kind);
int ornic_ib_cmd_rss_create(struct ornic_ib_dev *dev, const struct ornic_rss_create_cmd *in,
			    u32 *group);
void ornic_ib_cmd_rss_destroy(struct ornic_ib_dev *dev, u32 group);
int ornic_ib_cmd_set_gid(struct ornic_ib_dev *dev, const struct ornic_gid_entry *in);
int ornic_ib_cmd_port_query(struct ornic_ib_dev *dev, u32 port, struct ornic_identify_port *out);
int ornic_ib_cmd_transport(struct ornic_ib_dev *dev, u16 index,
			   struct ornic_identify_transport *out);
int ornic_ib_cmd_stat_names(struct ornic_ib_dev *dev, u32 offset, struct ornic_stat_name *names,
			    u32 count);
int ornic_ib_cmd_stat_read(struct ornic_ib_dev *dev, const struct ornic_stat_read_cmd *in,
			   __le64 *values);
int ornic_ib_cmd_counter_create(struct ornic_ib_dev *dev, u32 *number);
void ornic_ib_cmd_counter_destroy(struct ornic_ib_dev *dev, u32 number);
int ornic_ib_cmd_cq_query(struct ornic_ib_dev *dev, u32 cqn, struct ornic_cq_query_rsp *out);
int ornic_ib_cmd_key_query(struct ornic_ib_dev *dev, u32 key, struct ornic_key_query_rsp *out);

#endif
