/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In older kernels (6.1) a driver must report its own name to devlink. The wrapper of
 * devlink_info_serial_number_put() does it too, because the driver calls that anyway. Likewise
 * a driver must allow reloads before it registers with devlink; the wrapper of devlink_register()
 * does it.
 *
 * Parameters and health reporters of these kernels have locks of their own: devlink_*() replaces
 * devl_*(), which expects devl_lock(). Kernels up to 6.12 at least take the initial value of a
 * parameter by value, and the grace period of a health reporter as a parameter.
 */
#ifndef ORNIC_COMPAT_DEVLINK_H
#define ORNIC_COMPAT_DEVLINK_H

#include_next <net/devlink.h>

#include <linux/netdevice.h>

#ifdef ORNIC_HAVE_DEVLINK_DRIVER_NAME_PUT
static inline int ornic_compat_serial_number_put(struct devlink_info_req *req, const char *serial)
{
	int err = devlink_info_driver_name_put(req, KBUILD_MODNAME);

	return err ? err : devlink_info_serial_number_put(req, serial);
}

#define devlink_info_serial_number_put ornic_compat_serial_number_put
#endif

#ifdef ORNIC_HAVE_DEVLINK_SET_FEATURES
static inline void ornic_compat_devlink_register(struct devlink *devlink)
{
	devlink_set_features(devlink, DEVLINK_F_RELOAD);
	devlink_register(devlink);
}

#define devlink_register ornic_compat_devlink_register
#endif

#ifndef ORNIC_HAVE_DEVL_PARAMS
#define devl_params_register devlink_params_register
#define devl_params_unregister devlink_params_unregister
#define devl_param_driverinit_value_get devlink_param_driverinit_value_get
#define devl_param_driverinit_value_set devlink_param_driverinit_value_set
#endif

#ifndef ORNIC_HAVE_DEVLINK_VALUE_POINTER
static inline void ornic_compat_driverinit_value_set(struct devlink *devlink, u32 id,
						     const union devlink_param_value *value)
{
	devl_param_driverinit_value_set(devlink, id, *value);
}

#undef devl_param_driverinit_value_set
#define devl_param_driverinit_value_set ornic_compat_driverinit_value_set
#endif

#ifndef ORNIC_HAVE_DEVL_HEALTH
#define devl_health_reporter_create devlink_health_reporter_create
#define devl_health_reporter_destroy devlink_health_reporter_destroy
#endif

#ifndef ORNIC_HAVE_DEVLINK_OPS_PERIOD
static inline struct devlink_health_reporter *
ornic_compat_health_reporter_create(struct devlink *devlink,
				    const struct devlink_health_reporter_ops *ops, void *priv)
{
	return devl_health_reporter_create(devlink, ops, 0, priv);
}

#undef devl_health_reporter_create
#define devl_health_reporter_create ornic_compat_health_reporter_create
#endif

#ifndef ORNIC_HAVE_NETDEV_DEVLINK_PORT
/*
 * struct net_device has no pointer to its port (6.1). Store the port in ml_priv, and report to
 * devlink when the interface is registered and unregistered. The last macro adds
 * ndo_get_devlink_port to the driver's table of operations, in front of ndo_fix_features.
 */
#define SET_NETDEV_DEVLINK_PORT(dev, port) ((dev)->ml_priv = (port))

static inline struct devlink_port *ornic_compat_get_devlink_port(struct net_device *dev)
{
	return dev->ml_priv;
}

static inline int ornic_compat_register_netdev(struct net_device *dev)
{
	int err = register_netdev(dev);

	if (!err)
		devlink_port_type_eth_set(dev->ml_priv, dev);
	return err;
}

static inline void ornic_compat_unregister_netdev(struct net_device *dev)
{
	devlink_port_type_clear(dev->ml_priv);
	unregister_netdev(dev);
}

#define register_netdev ornic_compat_register_netdev
#define unregister_netdev ornic_compat_unregister_netdev
#define ndo_fix_features ndo_get_devlink_port = ornic_compat_get_devlink_port, .ndo_fix_features
#endif

#endif
