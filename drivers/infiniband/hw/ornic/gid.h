/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device's copy of ib_core's GID table.
 */
#ifndef ORNIC_IB_GID_H
#define ORNIC_IB_GID_H

struct ib_gid_attr;

int ornic_ib_add_gid(const struct ib_gid_attr *attr, void **context);
int ornic_ib_del_gid(const struct ib_gid_attr *attr, void **context);

#endif
