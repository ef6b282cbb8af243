/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In older kernels a driver must report its own name to devlink. The wrapper of
 * devlink_info_serial_number_put() does it too, because the driver calls that anyway.
 */
#ifndef ORNIC_COMPAT_DEVLINK_H
#define ORNIC_COMPAT_DEVLINK_H

#include_next <net/devlink.h>

#ifdef ORNIC_HAVE_DEVLINK_DRIVER_NAME_PUT
static inline int ornic_compat_serial_number_put(struct devlink_info_req *req, const char *serial)
{
	int err = devlink_info_driver_name_put(req, KBUILD_MODNAME);

	return err ? err : devlink_info_serial_number_put(req, serial);
}

#define devlink_info_serial_number_put ornic_compat_serial_number_put
#endif

#endif
