// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of the interface: the driver's own and those of the device's port. The
 * device reports their names, so new counters need no new driver.
 */
#include <linux/ctype.h>
#include <linux/ethtool.h>
#include <linux/slab.h>

#include "cmd.h"
#include "netdev.h"

/* Upper limit of the number of counters that a device may report. */
#define ORNIC_MAX_STATS		(ORNIC_ADMIN_MAX_PAYLOAD / sizeof(__le64))
#define ORNIC_STATS_PER_CMD	(ORNIC_ADMIN_MAX_PAYLOAD / sizeof(struct ornic_stat_name))

enum ornic_own_stat {
	ORNIC_OWN_TX_LINEARIZED,
	ORNIC_OWN_TX_STOPPED,
	ORNIC_OWN_TX_REJECTED,
	ORNIC_OWN_RX_CSUM_OK,
	ORNIC_OWN_RX_NO_BUFFER,
	ORNIC_OWN_COUNT,
};

static const char ornic_own_names[ORNIC_OWN_COUNT][ETH_GSTRING_LEN] = {
	[ORNIC_OWN_TX_LINEARIZED]	= "driver_tx_linearized",
	[ORNIC_OWN_TX_STOPPED]		= "driver_tx_queue_stopped",
	[ORNIC_OWN_TX_REJECTED]		= "driver_tx_rejected",
	[ORNIC_OWN_RX_CSUM_OK]		= "driver_rx_csum_ok",
	[ORNIC_OWN_RX_NO_BUFFER]	= "driver_rx_no_buffer",
};

static struct ornic_tx_stats ornic_read_tx(struct ornic_netdev *nd)
{
	struct ornic_tx_stats stats;
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&nd->tx_stats.sync);
		stats = nd->tx_stats;
	} while (u64_stats_fetch_retry(&nd->tx_stats.sync, start));
	return stats;
}

static struct ornic_tx_done ornic_read_tx_done(struct ornic_netdev *nd)
{
	struct ornic_tx_done stats;
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&nd->tx_done.sync);
		stats = nd->tx_done;
	} while (u64_stats_fetch_retry(&nd->tx_done.sync, start));
	return stats;
}

static struct ornic_rx_stats ornic_read_rx(struct ornic_netdev *nd)
{
	struct ornic_rx_stats stats;
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&nd->rx_stats.sync);
		stats = nd->rx_stats;
	} while (u64_stats_fetch_retry(&nd->rx_stats.sync, start));
	return stats;
}

void ornic_get_stats64(struct net_device *dev, struct rtnl_link_stats64 *out)
{
	struct ornic_netdev *nd = netdev_priv(dev);
	struct ornic_tx_done done = ornic_read_tx_done(nd);
	struct ornic_tx_stats tx = ornic_read_tx(nd);
	struct ornic_rx_stats rx = ornic_read_rx(nd);

	out->tx_packets = done.packets - done.errors;
	out->tx_bytes = done.bytes;
	out->tx_errors = done.errors;
	out->tx_dropped = tx.dropped;
	out->rx_packets = rx.packets;
	out->rx_bytes = rx.bytes;
	out->rx_errors = rx.errors;
	out->rx_dropped = rx.dropped;
}

static void ornic_get_queue_stats_rx(struct net_device *dev, int idx,
				     struct netdev_queue_stats_rx *stats)
{
	struct ornic_rx_stats rx = ornic_read_rx(netdev_priv(dev));

	stats->packets = rx.packets;
	stats->bytes = rx.bytes;
	stats->alloc_fail = rx.no_buffer;
	stats->csum_unnecessary = rx.csum_ok;
}

static void ornic_get_queue_stats_tx(struct net_device *dev, int idx,
				     struct netdev_queue_stats_tx *stats)
{
	struct ornic_tx_done done = ornic_read_tx_done(netdev_priv(dev));
	struct ornic_tx_stats tx = ornic_read_tx(netdev_priv(dev));

	stats->packets = done.packets - done.errors;
	stats->bytes = done.bytes;
	stats->stop = tx.stopped;
}

/* The counters of the one queue outlive its replacement, so there is no other history. */
static void ornic_get_base_stats(struct net_device *dev, struct netdev_queue_stats_rx *rx,
				 struct netdev_queue_stats_tx *tx)
{
	rx->packets = 0;
	rx->bytes = 0;
	rx->alloc_fail = 0;
	rx->csum_unnecessary = 0;
	tx->packets = 0;
	tx->bytes = 0;
	tx->stop = 0;
}

const struct netdev_stat_ops ornic_stat_ops = {
	.get_queue_stats_rx	= ornic_get_queue_stats_rx,
	.get_queue_stats_tx	= ornic_get_queue_stats_tx,
	.get_base_stats		= ornic_get_base_stats,
};

/* ornic_netstats_count() - entries of "ethtool -S". */
int ornic_netstats_count(struct ornic_netdev *nd)
{
	return ORNIC_OWN_COUNT + nd->stat_count;
}

void ornic_netstats_names(struct ornic_netdev *nd, u8 *data)
{
	u32 i;

	memcpy(data, ornic_own_names, sizeof(ornic_own_names));
	data += sizeof(ornic_own_names);
	for (i = 0; i < nd->stat_count; i++, data += ETH_GSTRING_LEN)
		strscpy_pad((char *)data, nd->stat_names[i].name, ETH_GSTRING_LEN);
}

/* Read the values of all port counters. Return: an array to be freed by the caller, or NULL. */
static __le64 *ornic_netstats_read(struct ornic_netdev *nd)
{
	__le64 *values;

	if (!nd->stat_count)
		return NULL;
	values = kzalloc_objs(*values, nd->stat_count);
	if (values && ornic_cmd_stat_read(nd->core, 0, values, nd->stat_count)) {
		kfree(values);
		return NULL;
	}
	return values;
}

static void ornic_netstats_device(struct ornic_netdev *nd, u64 *data)
{
	__le64 *values = ornic_netstats_read(nd);
	u32 i;

	for (i = 0; i < nd->stat_count; i++)
		data[i] = values ? le64_to_cpu(values[i]) : 0;
	kfree(values);
}

/* Return: the value of a counter, ETHTOOL_STAT_NOT_SET if the device does not have it. */
static u64 ornic_netstats_find(struct ornic_netdev *nd, const __le64 *values, enum ornic_stat id)
{
	u32 i;

	for (i = 0; i < nd->stat_count; i++)
		if (le32_to_cpu(nd->stat_names[i].id) == id)
			return le64_to_cpu(values[i]);
	return ETHTOOL_STAT_NOT_SET;
}

/* Sum of the interface's frames and the RoCE packets, if the device counts both. */
static u64 ornic_netstats_frames(struct ornic_netdev *nd, const __le64 *values,
				 enum ornic_stat ethernet, enum ornic_stat rdma)
{
	u64 frames = ornic_netstats_find(nd, values, ethernet);
	u64 packets = ornic_netstats_find(nd, values, rdma);

	if (frames == ETHTOOL_STAT_NOT_SET || packets == ETHTOOL_STAT_NOT_SET)
		return ETHTOOL_STAT_NOT_SET;
	return frames + packets;
}

/*
 * ornic_netstats_mac() - fill the statistics of the IEEE 802.3 MAC that the device has. It
 * counts neither the octets of RoCE headers nor broadcast separately from multicast, so the octets
 * and multicast frames of the MAC are unknown.
 */
void ornic_netstats_mac(struct ornic_netdev *nd, struct ethtool_eth_mac_stats *mac)
{
	__le64 *values = ornic_netstats_read(nd);

	if (!values)
		return;
	mac->FramesTransmittedOK = ornic_netstats_frames(nd, values, ORNIC_STAT_ID_TX_PACKETS,
							 ORNIC_STAT_ID_RDMA_TX_PACKETS);
	mac->FramesReceivedOK = ornic_netstats_frames(nd, values, ORNIC_STAT_ID_RX_PACKETS,
						      ORNIC_STAT_ID_RDMA_RX_PACKETS);
	mac->FrameCheckSequenceErrors = ornic_netstats_find(nd, values,
							    ORNIC_STAT_ID_RX_CRC_ERRORS);
	kfree(values);
}

void ornic_netstats_values(struct ornic_netdev *nd, u64 *data)
{
	struct ornic_tx_done done = ornic_read_tx_done(nd);
	struct ornic_tx_stats tx = ornic_read_tx(nd);
	struct ornic_rx_stats rx = ornic_read_rx(nd);

	data[ORNIC_OWN_TX_LINEARIZED] = tx.linearized;
	data[ORNIC_OWN_TX_STOPPED] = tx.stopped;
	data[ORNIC_OWN_TX_REJECTED] = done.errors;
	data[ORNIC_OWN_RX_CSUM_OK] = rx.csum_ok;
	data[ORNIC_OWN_RX_NO_BUFFER] = rx.no_buffer;
	ornic_netstats_device(nd, data + ORNIC_OWN_COUNT);
}

/* Store the names of scope port, in the order of the values. */
static void ornic_netstats_keep(struct ornic_netdev *nd, struct ornic_stat_name *names, u32 count)
{
	char *c;
	u32 i;

	for (i = 0; i < count && nd->stat_count < ORNIC_MAX_STATS; i++) {
		if (names[i].scope != ORNIC_STAT_PORT)
			continue;
		names[i].name[sizeof(names[i].name) - 1] = 0;
		for (c = names[i].name; *c; c++)
			if (!isascii(*c) || !isgraph(*c))
				*c = '?';	/* shown on terminals */
		nd->stat_names[nd->stat_count++] = names[i];
	}
}

/*
 * ornic_netstats_init() - read the names of the port's counters. Repeated after each
 * recovery, under rtnl, because new firmware may have other counters.
 */
int ornic_netstats_init(struct ornic_netdev *nd)
{
	u32 total = min_t(u32, le32_to_cpu(nd->core->odev.id.stat_count), ORNIC_MAX_STATS);
	struct ornic_stat_name *names;
	u32 offset, count;
	int err = 0;

	ornic_netstats_cleanup(nd);
	nd->stat_names = kvzalloc_objs(*nd->stat_names, total);
	names = kmalloc_objs(*names, ORNIC_STATS_PER_CMD);
	if (!nd->stat_names || !names)
		err = -ENOMEM;
	for (offset = 0; !err && offset < total; offset += count) {
		err = ornic_cmd_stat_names(nd->core, offset, names,
					   min_t(u32, total - offset, ORNIC_STATS_PER_CMD), &count);
		if (!err)
			ornic_netstats_keep(nd, names, count);
	}
	kfree(names);
	if (err)
		ornic_netstats_cleanup(nd);
	return err;
}

void ornic_netstats_cleanup(struct ornic_netdev *nd)
{
	kvfree(nd->stat_names);
	nd->stat_names = NULL;
	nd->stat_count = 0;
}
