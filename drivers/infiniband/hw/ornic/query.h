/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attributes, limits and clock of the device, attributes of its port.
 */
#ifndef ORNIC_IB_QUERY_H
#define ORNIC_IB_QUERY_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct ornic_ib_dev;
struct ornic_uresp_query_device;

/* query.c */
int ornic_ib_read_limits(struct ornic_ib_dev *dev);
int ornic_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			  struct ib_udata *udata);
int ornic_ib_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int ornic_ib_query_port_speed(struct ib_device *ibdev, u32 port_num, u64 *speed);
int ornic_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int ornic_ib_get_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *imm);
enum rdma_link_layer ornic_ib_get_link_layer(struct ib_device *ibdev, u32 port);
void ornic_ib_get_dev_fw_str(struct ib_device *ibdev, char *str);

/* clock.c */
int ornic_ib_clock_read(struct ornic_ib_dev *dev, struct ornic_uresp_query_device *resp);

#endif
