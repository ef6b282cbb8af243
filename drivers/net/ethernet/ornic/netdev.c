// SPDX-License-Identifier: GPL-2.0
/*
 * Network interface: open and stop, address, MTU, link, registration.
 *
 * Open creates the queues and takes the port up, stop takes it down and
 * destroys them: as in other RoCE adapters RDMA traffic flows only while the
 * interface is up. Recovery does the same two things with the interface
 * detached, so nothing else can open it meanwhile.
 *
 * A change that needs other queues, such as a larger MTU, creates them while the
 * old ones work and then exchanges them; the link stays up.
 */
#include <linux/rtnetlink.h>

#include "cmd.h"
#include "netdev.h"

/* Delay in jiffies before queues are replaced after an error: limits the load of a bad device. */
#define ORNIC_RESTART_DELAY	HZ

/* Features of the interface that depend on the device. */
#define ORNIC_OFFLOADS		(NETIF_F_HW_CSUM | NETIF_F_RXCSUM)

static void ornic_link_update(struct ornic_netdev *nd)
{
	struct ornic_identify_port port;
	bool active = false;

	mutex_lock(&nd->link_lock);
	if (!nd->up)
		goto unlock;	/* open and stop set the carrier themselves */
	if (!ornic_cmd_port_query(nd->core, &port))
		active = port.state == ORNIC_PORT_STATE_ACTIVE;
	if (active != netif_carrier_ok(nd->dev)) {
		if (active)
			netif_carrier_on(nd->dev);
		else
			netif_carrier_off(nd->dev);
	}
unlock:
	mutex_unlock(&nd->link_lock);
}

static int ornic_port_up(struct ornic_netdev *nd)
{
	struct ornic_port_modify_cmd in = {
		.mask = cpu_to_le32(ORNIC_PORT_M_ADMIN | ORNIC_PORT_M_FRAME),
		.admin_up = cpu_to_le32(1),
		.max_frame = cpu_to_le16(ornic_netdev_mtu(nd)),
	};

	return ornic_cmd_port_modify(nd->core, &in);
}

static void ornic_port_down(struct ornic_netdev *nd)
{
	struct ornic_port_modify_cmd in = {
		.mask = cpu_to_le32(ORNIC_PORT_M_ADMIN),
	};

	ornic_cmd_port_modify(nd->core, &in);
}

/* Set the largest payload that the port sends and receives, in bytes. */
static int ornic_port_frame(struct ornic_netdev *nd, int mtu)
{
	struct ornic_port_modify_cmd in = {
		.mask = cpu_to_le32(ORNIC_PORT_M_FRAME),
		.max_frame = cpu_to_le16(mtu),
	};

	return ornic_cmd_port_modify(nd->core, &in);
}

static int ornic_port_mac(struct ornic_netdev *nd, const u8 *mac)
{
	struct ornic_port_modify_cmd in = {
		.mask = cpu_to_le32(ORNIC_PORT_M_MAC),
	};

	ether_addr_copy(in.mac, mac);
	return ornic_cmd_port_modify(nd->core, &in);
}

/*
 * Stop NAPI and the transmit path. napi_disable() does not wait for the code behind
 * napi_complete_done(), which arms the queues with softirqs disabled. synchronize_net()
 * does; without it, that code would use freed rings. The same poll may wake the transmit
 * queue, so netif_tx_disable() comes last.
 */
static void ornic_netdev_quiet(struct ornic_netdev *nd)
{
	napi_disable(&nd->napi);
	synchronize_net();
	netif_tx_disable(nd->dev);
}

/* The first poll arms the completion queues. */
static void ornic_netdev_poll_on(struct ornic_netdev *nd)
{
	napi_enable(&nd->napi);
	local_bh_disable();
	napi_schedule(&nd->napi);
	local_bh_enable();
}

/* Report to netlink which NAPI context polls the queues, and which interrupt wakes it. */
static void ornic_netdev_napi(struct ornic_netdev *nd, struct napi_struct *napi, int irq)
{
	netif_napi_set_irq(&nd->napi, irq);
	netif_queue_set_napi(nd->dev, 0, NETDEV_QUEUE_TYPE_RX, napi);
	netif_queue_set_napi(nd->dev, 0, NETDEV_QUEUE_TYPE_TX, napi);
}

/*
 * Exchange the queues, NULL for none, while NAPI and the transmit path are stopped. Byte queue
 * limits forget the frames of the old queues, which no completion will account.
 */
static void ornic_queues_use(struct ornic_netdev *nd, struct ornic_queues *q)
{
	nd->queues = q;
	WRITE_ONCE(nd->qpn, q ? q->qpn : 0);
	netdev_tx_reset_queue(netdev_get_tx_queue(nd->dev, 0));
	if (q)
		ornic_rx_use(q);
}

static int ornic_up(struct ornic_netdev *nd)
{
	struct ornic_queues *q;
	int err;

	ASSERT_RTNL();

	q = ornic_queues_create(nd, ornic_netdev_mtu(nd));
	if (IS_ERR(q)) {
		netif_carrier_off(nd->dev);
		return PTR_ERR(q);
	}
	err = ornic_steer_start(nd, q->qpn);
	if (!err)
		err = ornic_port_up(nd);
	if (err) {
		ornic_steer_stop(nd);
		ornic_queues_destroy(q);
		netif_carrier_off(nd->dev);
		return err;
	}
	ornic_queues_use(nd, q);
	mutex_lock(&nd->link_lock);
	nd->up = true;
	mutex_unlock(&nd->link_lock);

	ornic_netdev_napi(nd, &nd->napi, ornic_netdev_irq(nd->core));
	ornic_netdev_poll_on(nd);
	netif_tx_wake_all_queues(nd->dev);
	ornic_link_update(nd);
	return 0;
}

/* Destroy only the queues. Port and carrier stay up, so RDMA traffic continues. */
static void ornic_down(struct ornic_netdev *nd)
{
	struct ornic_queues *q = nd->queues;

	ASSERT_RTNL();

	mutex_lock(&nd->link_lock);
	nd->up = false;
	mutex_unlock(&nd->link_lock);

	ornic_netdev_quiet(nd);
	ornic_netdev_napi(nd, NULL, -1);
	ornic_steer_stop(nd);
	ornic_queues_use(nd, NULL);
	ornic_queues_destroy(q);
}

/**
 * ornic_netdev_replace() - replace the queues of the interface
 * @nd: interface, up
 * @mtu: new MTU in bytes
 *
 * Creates the new queues before it stops the old ones. The interface is detached during
 * the exchange, so that the watchdog does not report its stopped transmit queue.
 *
 * Context: process, under rtnl. Return: 0, or an error after which the old queues and the
 * old MTU are in use.
 */
int ornic_netdev_replace(struct ornic_netdev *nd, int mtu)
{
	struct ornic_queues *unused, *old = nd->queues;
	int err;

	ASSERT_RTNL();

	unused = ornic_queues_create(nd, mtu);
	if (IS_ERR(unused))
		return PTR_ERR(unused);
	netif_device_detach(nd->dev);
	ornic_tx_settle(old);
	ornic_netdev_quiet(nd);
	err = ornic_port_frame(nd, mtu);
	if (!err) {
		WRITE_ONCE(nd->dev->mtu, mtu);
		ornic_steer_stop(nd);
		ornic_queues_use(nd, unused);
		unused = old;
		if (ornic_steer_start(nd, nd->qpn))
			ornic_netdev_restart(nd);
	}
	ornic_queues_destroy(unused);	/* while NAPI is off, as its page pool demands */
	ornic_netdev_poll_on(nd);
	netif_device_attach(nd->dev);
	return err;
}

static void ornic_netdev_stop(struct ornic_netdev *nd)
{
	if (!nd->up)
		return;
	ornic_port_down(nd);
	ornic_down(nd);
	netif_carrier_off(nd->dev);
}

static int ornic_open(struct net_device *dev)
{
	return ornic_up(netdev_priv(dev));
}

static int ornic_close(struct net_device *dev)
{
	ornic_netdev_stop(netdev_priv(dev));
	return 0;
}

/*
 * Replace the queues. If old and new cannot exist together, destroy the old ones first. If there
 * are none afterwards, the port goes down like the carrier, and ornic_netdev_stop() need not do it.
 */
static int ornic_netdev_renew(struct ornic_netdev *nd)
{
	int err;

	if (nd->queues && !ornic_netdev_replace(nd, ornic_netdev_mtu(nd)))
		return 0;
	netif_device_detach(nd->dev);
	if (nd->queues)
		ornic_down(nd);
	err = ornic_up(nd);
	if (err)
		ornic_port_down(nd);
	netif_device_attach(nd->dev);
	return err;
}

/* Replace the queues of a running interface. Return: 0, also if that is tried again later. */
static int ornic_restart(struct ornic_netdev *nd)
{
	int err;

	ASSERT_RTNL();

	if (!netif_running(nd->dev) || !netif_device_present(nd->dev) || ornic_dead(nd->core))
		return 0;
	err = ornic_netdev_renew(nd);
	if (!err)
		return 0;
	netdev_err(nd->dev, "queues cannot be created: %d\n", err);
	if (err != -ENOMEM && err != -EAGAIN && err != -EBUSY)
		return err;
	ornic_netdev_restart(nd);
	return 0;
}

static void ornic_restart_work(struct work_struct *work)
{
	struct ornic_netdev *nd = container_of(to_delayed_work(work), struct ornic_netdev,
					       restart_work);

	rtnl_lock();
	ornic_restart(nd);
	rtnl_unlock();
}

/**
 * ornic_netdev_recover() - replace the queues of the interface at once
 * @core: device
 *
 * Context: process, under state_lock. Return: 0, also without an interface that runs, or
 * negative errno: then the interface has no queues until it is opened again.
 */
int ornic_netdev_recover(struct ornic_core *core)
{
	int err;

	if (!core->nd)
		return 0;
	rtnl_lock();
	err = ornic_restart(core->nd);
	rtnl_unlock();
	return err;
}

/* ornic_netdev_restart() - replace the failed queue pair after 1 s. Context: any. */
void ornic_netdev_restart(struct ornic_netdev *nd)
{
	schedule_delayed_work(&nd->restart_work, ORNIC_RESTART_DELAY);
}

static void ornic_tx_timeout(struct net_device *dev, unsigned int queue)
{
	struct ornic_netdev *nd = netdev_priv(dev);

	if (!nd->queues)
		return;
	netdev_err(dev, "send queue stuck: head %u, published %u, tail %u\n",
		   nd->queues->sq.head, nd->queues->sq.published, nd->queues->sq.tail);
	ornic_tx_stuck(nd->core);
}

static int ornic_set_mac_address(struct net_device *dev, void *p)
{
	struct ornic_netdev *nd = netdev_priv(dev);
	struct sockaddr *addr = p;
	int err;

	if (!is_valid_ether_addr(addr->sa_data))
		return -EADDRNOTAVAIL;
	if (!(le32_to_cpu(nd->core->odev.port.flags) & ORNIC_PORT_F_MAC_CHANGE))
		return -EOPNOTSUPP;
	err = ornic_port_mac(nd, addr->sa_data);
	if (err)
		return err;
	eth_hw_addr_set(dev, addr->sa_data);
	return 0;
}

/* Change the MTU without replacing queues. Return: false if the queues must be replaced. */
static bool ornic_mtu_in_place(struct ornic_netdev *nd, int mtu)
{
	int old = nd->dev->mtu;

	if (mtu > old) {
		if (ornic_port_frame(nd, mtu))
			return false;
		WRITE_ONCE(nd->dev->mtu, mtu);
		return true;
	}
	/* send the frames of the old length before the port's limit shrinks (ORN-ETH-5) */
	WRITE_ONCE(nd->dev->mtu, mtu);
	if (ornic_tx_settle(nd->queues) && !ornic_port_frame(nd, mtu))
		return true;
	WRITE_ONCE(nd->dev->mtu, old);
	return false;
}

static int ornic_change_mtu(struct net_device *dev, int mtu)
{
	struct ornic_netdev *nd = netdev_priv(dev);
	struct ornic_rx_shape shape = ornic_rx_shape(nd, mtu);
	int err;

	if (!nd->queues) {
		WRITE_ONCE(dev->mtu, mtu);
		return 0;
	}
	if (shape.room == nd->queues->shape.room && ornic_mtu_in_place(nd, mtu))
		return 0;
	err = ornic_netdev_replace(nd, mtu);
	if (!err || mtu > dev->mtu || ornic_dead(nd->core))
		return err;
	/* the larger buffers also receive the shorter frames */
	return ornic_mtu_in_place(nd, mtu) ? 0 : err;
}

/* Mask offloads that the device offered at registration and no longer offers. */
static netdev_features_t ornic_fix_features(struct net_device *dev, netdev_features_t features)
{
	struct ornic_netdev *nd = netdev_priv(dev);

	return features & (nd->offered | ~ORNIC_OFFLOADS);
}

static const struct net_device_ops ornic_netdev_ops = {
	.ndo_open		= ornic_open,
	.ndo_stop		= ornic_close,
	.ndo_start_xmit		= ornic_start_xmit,
	.ndo_tx_timeout		= ornic_tx_timeout,
	.ndo_set_rx_mode	= ornic_set_rx_mode,
	.ndo_set_mac_address	= ornic_set_mac_address,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_change_mtu		= ornic_change_mtu,
	.ndo_fix_features	= ornic_fix_features,
	.ndo_get_stats64	= ornic_get_stats64,
};

static int ornic_netdev_event(struct notifier_block *nb, unsigned long type, void *data)
{
	struct ornic_netdev *nd = container_of(nb, struct ornic_netdev, nb);
	const struct ornic_eqe *eqe = data;

	switch (type) {
	case ORNIC_EV_DEVICE_FATAL:	/* a dead device has no link */
	case ORNIC_EV_PORT_ACTIVE:
	case ORNIC_EV_PORT_ERR:
		ornic_link_update(nd);
		break;
	case ORNIC_EV_QP_FATAL:
	case ORNIC_EV_QP_REQ_ERR:
	case ORNIC_EV_QP_ACCESS_ERR:
		if (le32_to_cpu(eqe->number) != READ_ONCE(nd->qpn))
			break;
		netdev_err(nd->dev, "queue pair failed, syndrome %#010x\n",
			   le32_to_cpu(eqe->syndrome));
		ornic_netdev_restart(nd);
		break;
	}
	return NOTIFY_DONE;
}

/* Reject a device below the minimum of the interface, at probe and after a recovery. */
static int ornic_netdev_check(struct ornic_dev *odev)
{
	const struct ornic_identify_device *id = &odev->id;

	if (min3(id->log_max_sq, id->log_max_rq, id->log_max_cq) >= ORNIC_MIN_LOG &&
	    id->max_sq_stride >= ORNIC_TX_MIN_STRIDE && id->max_rq_stride >= ORNIC_RX_MIN_STRIDE &&
	    id->max_send_sge && id->max_recv_sge &&
	    le16_to_cpu(odev->port.max_frame) >= ETH_MIN_MTU)
		return 0;
	dev_err(&odev->pdev->dev,
		"device is too small for a network interface: queues of 2^%u, 2^%u, 2^%u entries, %u and %u SGEs in 2^%u and 2^%u bytes, frames of %u bytes\n",
		id->log_max_sq, id->log_max_rq, id->log_max_cq, le16_to_cpu(id->max_send_sge),
		le16_to_cpu(id->max_recv_sge), id->max_sq_stride, id->max_rq_stride,
		le16_to_cpu(odev->port.max_frame));
	return -EOPNOTSUPP;
}

/* Disable moderation if the device does not support these values. */
static void ornic_coalesce_check(struct ornic_dev *odev, struct ornic_coalesce *coalesce)
{
	if (!ornic_has(odev, ORNIC_FEATURE(CQ_MODERATION)) ||
	    coalesce->frames > le16_to_cpu(odev->id.max_mod_count) ||
	    coalesce->usecs > le16_to_cpu(odev->id.max_mod_period_us))
		*coalesce = (struct ornic_coalesce){ };
}

/* Read the limits of the device, at probe and after each recovery: they may have changed. */
static int ornic_netdev_identify(struct ornic_netdev *nd)
{
	struct ornic_dev *odev = &nd->core->odev;
	const struct ornic_identify_device *id = &odev->id;
	u32 limit = ornic_has(odev, ORNIC_FEATURE(JUMBO)) ? ORNIC_MAX_MTU : ETH_DATA_LEN;
	int err;

	err = ornic_netdev_check(odev);
	if (err)
		return err;
	nd->max_sge = min_t(u32, le16_to_cpu(id->max_send_sge),
			    ORNIC_TX_SGES(min_t(u8, id->max_sq_stride, ORNIC_TX_STRIDE)));
	nd->max_segs = min_t(u32, le16_to_cpu(id->max_recv_sge),
			     ORNIC_RX_SGES(min_t(u8, id->max_rq_stride, ORNIC_RX_STRIDE)));
	nd->dev->max_mtu = min3((u32)le16_to_cpu(odev->port.max_frame), limit,
				ornic_rx_max_mtu(nd));
	ornic_coalesce_check(odev, &nd->tx_coalesce);
	ornic_coalesce_check(odev, &nd->rx_coalesce);
	nd->offered = 0;
	if (ornic_has(odev, ORNIC_FEATURE(TX_CSUM)))
		nd->offered |= NETIF_F_HW_CSUM;
	if (ornic_has(odev, ORNIC_FEATURE(RX_CSUM)))
		nd->offered |= NETIF_F_RXCSUM;
	nd->dev->hw_features |= NETIF_F_SG | nd->offered;
	return ornic_netstats_init(nd);
}

static void ornic_netdev_features(struct net_device *dev)
{
	dev->features = dev->hw_features | NETIF_F_HIGHDMA;
	dev->vlan_features = dev->features;
	dev->min_mtu = ETH_MIN_MTU;
	dev->mtu = min_t(u32, ETH_DATA_LEN, dev->max_mtu);
}

static bool ornic_port_mac_can_change(struct ornic_netdev *nd)
{
	return le32_to_cpu(nd->core->odev.port.flags) & ORNIC_PORT_F_MAC_CHANGE;
}

static int ornic_netdev_address(struct ornic_netdev *nd)
{
	const u8 *given = nd->core->odev.port.current_mac;

	if (is_valid_ether_addr(given)) {
		eth_hw_addr_set(nd->dev, given);
		return 0;
	}
	if (!ornic_port_mac_can_change(nd)) {
		dev_err(ornic_dma_dev(nd->core),
			"device has no valid MAC address and lets none be set\n");
		return -EADDRNOTAVAIL;
	}
	eth_hw_addr_random(nd->dev);
	dev_warn(ornic_dma_dev(nd->core), "device has no valid MAC address, using random %pM\n",
		 nd->dev->dev_addr);
	return ornic_port_mac(nd, nd->dev->dev_addr);
}

/* A reset may change the port's MAC address (reset.rst): restore that of the interface. */
static int ornic_netdev_same_address(struct ornic_netdev *nd)
{
	const u8 *given = nd->core->odev.port.current_mac;

	if (ether_addr_equal(nd->dev->dev_addr, given))
		return 0;
	if (ornic_port_mac_can_change(nd))
		return ornic_port_mac(nd, nd->dev->dev_addr);
	if (!is_valid_ether_addr(given))
		return -EADDRNOTAVAIL;
	netdev_warn(nd->dev, "MAC address is %pM from now on: the device lets no other be set\n",
		    given);
	eth_hw_addr_set(nd->dev, given);
	return 0;
}

/* Under death_lock for ornic_netdev_touch(). */
static void ornic_netdev_set(struct ornic_core *core, struct ornic_netdev *nd)
{
	spin_lock_irq(&core->death_lock);
	core->nd = nd;
	spin_unlock_irq(&core->death_lock);
}

/**
 * ornic_netdev_create() - create and register the network interface
 * @core: device, up
 *
 * Return: 0 or negative errno.
 */
int ornic_netdev_create(struct ornic_core *core)
{
	struct ornic_netdev *nd;
	struct net_device *dev;
	int err;

	dev = alloc_etherdev(sizeof(*nd));
	if (!dev)
		return -ENOMEM;
	SET_NETDEV_DEV(dev, ornic_dma_dev(core));
	nd = netdev_priv(dev);
	nd->core = core;
	nd->dev = dev;
	nd->nb.notifier_call = ornic_netdev_event;
	nd->tx_log = ORNIC_TX_LOG;
	nd->rx_log = ORNIC_RX_LOG;
	mutex_init(&nd->link_lock);
	INIT_DELAYED_WORK(&nd->restart_work, ornic_restart_work);
	ornic_steer_init(nd);
	u64_stats_init(&nd->tx_stats.sync);
	u64_stats_init(&nd->tx_done.sync);
	u64_stats_init(&nd->rx_stats.sync);
	err = ornic_netdev_identify(nd);
	if (err)
		goto free;
	err = ornic_netdev_address(nd);
	if (err)
		goto stats;
	err = ornic_cmd_pd_create(nd->core, &nd->pd);
	if (err)
		goto stats;
	dev->netdev_ops = &ornic_netdev_ops;
	dev->ethtool_ops = &ornic_ethtool_ops;
	dev->stat_ops = &ornic_stat_ops;
	dev->watchdog_timeo = 5 * HZ;
	SET_NETDEV_DEVLINK_PORT(dev, &core->devlink_port);
	ornic_netdev_features(dev);
	netif_napi_add(dev, &nd->napi, ornic_napi_poll);
	netif_carrier_off(dev);

	err = ornic_event_register(&core->odev, &nd->nb);
	if (err)
		goto napi;
	err = register_netdev(dev);
	if (err)
		goto unsubscribe;
	ornic_netdev_set(core, nd);
	core->odev.netdev = dev;
	return 0;

unsubscribe:
	ornic_event_unregister(&core->odev, &nd->nb);
napi:
	netif_napi_del(&nd->napi);
stats:
	ornic_netstats_cleanup(nd);
free:
	free_netdev(dev);
	return err;
}

/* ornic_netdev_destroy() - unregister and free; the device may be dead or gone. */
void ornic_netdev_destroy(struct ornic_core *core)
{
	struct ornic_netdev *nd = core->nd;

	if (!nd)
		return;
	unregister_netdev(nd->dev);
	ornic_event_unregister(&core->odev, &nd->nb);
	cancel_delayed_work_sync(&nd->restart_work);
	cancel_work_sync(&nd->rx_mode_work);
	netif_napi_del(&nd->napi);
	ornic_netstats_cleanup(nd);
	ornic_netdev_set(core, NULL);
	core->odev.netdev = NULL;
	free_netdev(nd->dev);
}

/* ornic_netdev_suspend() - destroy the queues; the interface stays registered. */
void ornic_netdev_suspend(struct ornic_core *core)
{
	struct ornic_netdev *nd = core->nd;

	if (!nd)
		return;
	rtnl_lock();
	netif_device_detach(nd->dev);
	ornic_netdev_stop(nd);
	rtnl_unlock();
}

/*
 * Reduce the MTU to what the device offers. Use dev_set_mtu(), because receivers of
 * NETDEV_CHANGEMTU read the old MTU from the event, and only the core can store it there. If a
 * receiver rejects the change, ornic_netdev_mtu() remains the limit.
 */
static void ornic_netdev_clamp_mtu(struct net_device *dev)
{
	int err;

	if (dev->mtu <= dev->max_mtu)
		return;
	netdev_warn(dev, "MTU is %u from now on: the device offers no more\n", dev->max_mtu);
	err = dev_set_mtu(dev, dev->max_mtu);
	if (err)
		netdev_warn(dev, "MTU cannot be announced: %d\n", err);
}

/* Notify users of the interface about features, MTU and address that a recovery changed. */
static void ornic_netdev_tell(struct ornic_netdev *nd, const u8 *old_mac)
{
	netdev_update_features(nd->dev);
	ornic_netdev_clamp_mtu(nd->dev);
	if (!ether_addr_equal(nd->dev->dev_addr, old_mac))
		call_netdevice_notifiers(NETDEV_CHANGEADDR, nd->dev);
}

static int ornic_netdev_reattach(struct ornic_netdev *nd)
{
	struct net_device *dev = nd->dev;
	u8 old_mac[ETH_ALEN];
	int err;

	ether_addr_copy(old_mac, dev->dev_addr);
	err = ornic_netdev_identify(nd);
	if (err)
		return err;
	err = ornic_netdev_same_address(nd);
	if (err)
		return err;
	err = ornic_cmd_pd_create(nd->core, &nd->pd);
	if (err)
		return err;
	if (netif_running(dev))
		err = ornic_up(nd);
	if (err)
		return err;
	netif_device_attach(dev);
	ornic_netdev_tell(nd, old_mac);
	return 0;
}

/* ornic_netdev_resume() - undo ornic_netdev_suspend(). Return: 0 or negative errno. */
int ornic_netdev_resume(struct ornic_core *core)
{
	int err = 0;

	if (!core->nd)
		return 0;
	rtnl_lock();
	err = ornic_netdev_reattach(core->nd);
	rtnl_unlock();
	return err;
}

/**
 * ornic_netdev_touch() - restart the watchdog of the send queue
 * @core: device that misses its heartbeat, whose send queue therefore may stand still
 *
 * Context: any. The interface may be coming or going.
 */
void ornic_netdev_touch(struct ornic_core *core)
{
	unsigned long flags;

	spin_lock_irqsave(&core->death_lock, flags);
	if (core->nd)
		netif_trans_update(core->nd->dev);
	spin_unlock_irqrestore(&core->death_lock, flags);
}
