// SPDX-License-Identifier: GPL-2.0
/*
 * ethtool: identity, link, rings, counters.
 */
#include <linux/ethtool.h>

#include "cmd.h"
#include "netdev.h"

static void ornic_get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct ornic_netdev *nd = netdev_priv(dev);
	const struct ornic_identify_device *id = &nd->core->odev.id;
	size_t len = strnlen((const char *)id->fw_version, sizeof(id->fw_version));

	strscpy(info->driver, ORNIC_DRV_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(nd->core->pdev), sizeof(info->bus_info));
	len = min(len, sizeof(info->fw_version) - 1);
	memcpy(info->fw_version, id->fw_version, len);
	info->fw_version[len] = 0;
}

static int ornic_get_link_ksettings(struct net_device *dev,
				    struct ethtool_link_ksettings *settings)
{
	struct ornic_netdev *nd = netdev_priv(dev);
	struct ornic_identify_port port;
	int err;

	ethtool_link_ksettings_zero_link_mode(settings, supported);
	ethtool_link_ksettings_zero_link_mode(settings, advertising);
	settings->base.port = PORT_OTHER;
	settings->base.autoneg = AUTONEG_DISABLE;
	settings->base.speed = SPEED_UNKNOWN;
	settings->base.duplex = DUPLEX_UNKNOWN;
	if (!netif_carrier_ok(dev))
		return 0;
	err = ornic_cmd_port_query(nd->core, &port);
	if (err)
		return err;
	settings->base.speed = min_t(u64, le64_to_cpu(port.speed_mbps), INT_MAX);
	settings->base.duplex = DUPLEX_FULL;
	return 0;
}

static void ornic_get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
				struct kernel_ethtool_ringparam *kernel_ring,
				struct netlink_ext_ack *extack)
{
	struct ornic_netdev *nd = netdev_priv(dev);
	const struct ornic_identify_device *id = &nd->core->odev.id;

	ring->rx_max_pending = clamp_t(u8, id->log_max_rq, ORNIC_MIN_LOG, ORNIC_RX_LOG);
	ring->rx_max_pending = 1u << ring->rx_max_pending;
	ring->tx_max_pending = clamp_t(u8, id->log_max_sq, ORNIC_MIN_LOG, ORNIC_TX_LOG);
	ring->tx_max_pending = 1u << ring->tx_max_pending;
	ring->rx_pending = ring->rx_max_pending;
	ring->tx_pending = ring->tx_max_pending;
}

static void ornic_get_channels(struct net_device *dev, struct ethtool_channels *channels)
{
	channels->max_combined = 1;
	channels->combined_count = 1;
}

static int ornic_get_sset_count(struct net_device *dev, int set)
{
	return set == ETH_SS_STATS ? ornic_netstats_count(netdev_priv(dev)) : -EOPNOTSUPP;
}

static void ornic_get_strings(struct net_device *dev, u32 set, u8 *data)
{
	if (set == ETH_SS_STATS)
		ornic_netstats_names(netdev_priv(dev), data);
}

static void ornic_get_ethtool_stats(struct net_device *dev, struct ethtool_stats *stats,
				    u64 *data)
{
	ornic_netstats_values(netdev_priv(dev), data);
}

const struct ethtool_ops ornic_ethtool_ops = {
	.get_drvinfo		= ornic_get_drvinfo,
	.get_link		= ethtool_op_get_link,
	.get_link_ksettings	= ornic_get_link_ksettings,
	.get_ringparam		= ornic_get_ringparam,
	.get_channels		= ornic_get_channels,
	.get_sset_count		= ornic_get_sset_count,
	.get_strings		= ornic_get_strings,
	.get_ethtool_stats	= ornic_get_ethtool_stats,
	.get_ts_info		= ethtool_op_get_ts_info,
};
