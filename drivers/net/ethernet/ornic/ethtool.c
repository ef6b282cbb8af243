// SPDX-License-Identifier: GPL-2.0
/*
 * ethtool: identity, link, rings, counters.
 */
#include <linux/ethtool.h>
#include <linux/log2.h>

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
	if (port.speed_mbps)
		settings->base.speed = min_t(u64, le64_to_cpu(port.speed_mbps), INT_MAX);
	settings->base.duplex = DUPLEX_FULL;
	return 0;
}

static u8 ornic_tx_log(struct ornic_netdev *nd)
{
	return min(nd->tx_log, ornic_queues_max_log(nd, nd->core->odev.id.log_max_sq));
}

static u8 ornic_rx_log(struct ornic_netdev *nd)
{
	return min(nd->rx_log, ornic_queues_max_log(nd, nd->core->odev.id.log_max_rq));
}

static void ornic_get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
				struct kernel_ethtool_ringparam *kernel_ring,
				struct netlink_ext_ack *extack)
{
	struct ornic_netdev *nd = netdev_priv(dev);
	const struct ornic_identify_device *id = &nd->core->odev.id;

	ring->rx_max_pending = 1u << ornic_queues_max_log(nd, id->log_max_rq);
	ring->tx_max_pending = 1u << ornic_queues_max_log(nd, id->log_max_sq);
	ring->rx_pending = 1u << ornic_rx_log(nd);
	ring->tx_pending = 1u << ornic_tx_log(nd);
}

/* Round ring sizes up to powers of two. */
static int ornic_set_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			       struct kernel_ethtool_ringparam *kernel_ring,
			       struct netlink_ext_ack *extack)
{
	struct ornic_netdev *nd = netdev_priv(dev);
	u8 old_tx = nd->tx_log, old_rx = nd->rx_log;
	int err = 0;

	if (ring->tx_pending < 1u << ORNIC_MIN_LOG || ring->rx_pending < 1u << ORNIC_MIN_LOG) {
		NL_SET_ERR_MSG_MOD(extack, "a ring has at least 16 entries");
		return -EINVAL;
	}
	nd->tx_log = ilog2(roundup_pow_of_two(ring->tx_pending));
	nd->rx_log = ilog2(roundup_pow_of_two(ring->rx_pending));
	if (nd->queues && (nd->tx_log != old_tx || nd->rx_log != old_rx))
		err = ornic_netdev_replace(nd, ornic_netdev_mtu(nd));
	if (err) {
		NL_SET_ERR_MSG_MOD(extack, "rings of this size cannot be created");
		nd->tx_log = old_tx;
		nd->rx_log = old_rx;
	}
	return err;
}

static int ornic_get_coalesce(struct net_device *dev, struct ethtool_coalesce *coalesce,
			      struct kernel_ethtool_coalesce *kernel_coalesce,
			      struct netlink_ext_ack *extack)
{
	struct ornic_netdev *nd = netdev_priv(dev);

	coalesce->tx_max_coalesced_frames = nd->tx_coalesce.frames;
	coalesce->tx_coalesce_usecs = nd->tx_coalesce.usecs;
	coalesce->rx_max_coalesced_frames = nd->rx_coalesce.frames;
	coalesce->rx_coalesce_usecs = nd->rx_coalesce.usecs;
	return 0;
}

static bool ornic_coalesce_valid(struct ornic_netdev *nd, u32 frames, u32 usecs)
{
	const struct ornic_identify_device *id = &nd->core->odev.id;

	if (!frames && !usecs)
		return true;
	return ornic_has(&nd->core->odev, ORNIC_FEATURE(CQ_MODERATION)) &&
	       frames <= le16_to_cpu(id->max_mod_count) &&
	       usecs <= le16_to_cpu(id->max_mod_period_us);
}

static int ornic_moderate(struct ornic_netdev *nd)
{
	int err;

	if (!nd->queues)
		return 0;
	err = ornic_cmd_cq_moderate(nd->core, nd->queues->tx_cq.number, nd->tx_coalesce.frames,
				    nd->tx_coalesce.usecs);
	if (err)
		return err;
	return ornic_cmd_cq_moderate(nd->core, nd->queues->rx_cq.number, nd->rx_coalesce.frames,
				     nd->rx_coalesce.usecs);
}

static int ornic_set_coalesce(struct net_device *dev, struct ethtool_coalesce *coalesce,
			      struct kernel_ethtool_coalesce *kernel_coalesce,
			      struct netlink_ext_ack *extack)
{
	struct ornic_netdev *nd = netdev_priv(dev);
	struct ornic_coalesce tx = nd->tx_coalesce, rx = nd->rx_coalesce;
	int err;

	if (!ornic_coalesce_valid(nd, coalesce->tx_max_coalesced_frames,
				  coalesce->tx_coalesce_usecs) ||
	    !ornic_coalesce_valid(nd, coalesce->rx_max_coalesced_frames,
				  coalesce->rx_coalesce_usecs)) {
		NL_SET_ERR_MSG_MOD(extack, "more than the device can delay its events");
		return -EINVAL;
	}
	nd->tx_coalesce.frames = coalesce->tx_max_coalesced_frames;
	nd->tx_coalesce.usecs = coalesce->tx_coalesce_usecs;
	nd->rx_coalesce.frames = coalesce->rx_max_coalesced_frames;
	nd->rx_coalesce.usecs = coalesce->rx_coalesce_usecs;
	err = ornic_moderate(nd);
	if (err) {
		NL_SET_ERR_MSG_MOD(extack, "the device rejected the moderation of a queue");
		nd->tx_coalesce = tx;
		nd->rx_coalesce = rx;
		ornic_moderate(nd);	/* one queue may have the new values */
	}
	return err;
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

static void ornic_get_eth_mac_stats(struct net_device *dev, struct ethtool_eth_mac_stats *mac)
{
	ornic_netstats_mac(netdev_priv(dev), mac);
}

const struct ethtool_ops ornic_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS | ETHTOOL_COALESCE_MAX_FRAMES,
	.get_drvinfo		= ornic_get_drvinfo,
	.get_link		= ethtool_op_get_link,
	.get_link_ksettings	= ornic_get_link_ksettings,
	.get_ringparam		= ornic_get_ringparam,
	.set_ringparam		= ornic_set_ringparam,
	.get_coalesce		= ornic_get_coalesce,
	.set_coalesce		= ornic_set_coalesce,
	.get_channels		= ornic_get_channels,
	.get_sset_count		= ornic_get_sset_count,
	.get_strings		= ornic_get_strings,
	.get_ethtool_stats	= ornic_get_ethtool_stats,
	.get_eth_mac_stats	= ornic_get_eth_mac_stats,
	.get_ts_info		= ethtool_op_get_ts_info,
};
