// SPDX-License-Identifier: GPL-2.0
/*
 * Network interface: open and stop, address, MTU, link, registration.
 *
 * Open creates the queues and takes the port up, stop takes it down and
 * destroys them: as in other RoCE adapters RDMA traffic flows only while the
 * interface is up. Recovery does the same two things with the interface
 * detached, so nothing else can open it meanwhile.
 */
#include <linux/rtnetlink.h>

#include "cmd.h"
#include "netdev.h"

/* Pause before the queues are made anew after an error, against endless loops. */
#define ORNIC_RESTART_DELAY	HZ

static void ornic_link_update(struct ornic_netdev *nd)
{
	struct ornic_identify_port port;
	bool active = false;

	mutex_lock(&nd->link_lock);
	if (!nd->up)
		goto unlock;	/* who takes it down or up looks after the carrier */
	if (!ornic_cmd_port_query(nd->core, &port))
		active = port.state == 4;
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
		.max_frame = cpu_to_le16(nd->dev->mtu),
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

static int ornic_port_mac(struct ornic_netdev *nd, const u8 *mac)
{
	struct ornic_port_modify_cmd in = {
		.mask = cpu_to_le32(ORNIC_PORT_M_MAC),
	};

	ether_addr_copy(in.mac, mac);
	return ornic_cmd_port_modify(nd->core, &in);
}

static void ornic_release(struct ornic_netdev *nd)
{
	ornic_steer_stop(nd);
	ornic_queues_destroy(nd);
	ornic_rx_cleanup(nd);
	ornic_tx_cleanup(nd);
}

static int ornic_acquire(struct ornic_netdev *nd)
{
	int err;

	err = ornic_queues_create(nd);
	if (err)
		return err;
	err = ornic_tx_init(nd);
	if (err)
		return err;
	err = ornic_rx_init(nd);
	if (err)
		return err;
	ornic_rx_fill(nd);
	err = ornic_queues_start(nd);
	if (err)
		return err;
	err = ornic_steer_start(nd);
	if (err)
		return err;
	return ornic_port_up(nd);
}

static int ornic_up(struct ornic_netdev *nd)
{
	int err;

	ASSERT_RTNL();

	err = ornic_acquire(nd);
	if (err) {
		ornic_release(nd);
		netif_carrier_off(nd->dev);
		return err;
	}
	mutex_lock(&nd->link_lock);
	nd->up = true;
	mutex_unlock(&nd->link_lock);

	napi_enable(&nd->napi);
	local_bh_disable();
	napi_schedule(&nd->napi);	/* the first poll arms the completion queues */
	local_bh_enable();
	netif_tx_wake_all_queues(nd->dev);
	ornic_link_update(nd);
	return 0;
}

/*
 * The port stays up, and so does the carrier: new queues, for instance for another MTU, are
 * no change of the link and do not disturb RDMA.
 */
static void ornic_down(struct ornic_netdev *nd)
{
	ASSERT_RTNL();

	mutex_lock(&nd->link_lock);
	nd->up = false;
	mutex_unlock(&nd->link_lock);

	napi_disable(&nd->napi);	/* first: it may wake the queue */
	netif_trans_update(nd->dev);	/* a queue that was idle must not look stuck meanwhile */
	netif_tx_disable(nd->dev);
	ornic_release(nd);
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

static void ornic_restart_work(struct work_struct *work)
{
	struct ornic_netdev *nd = container_of(to_delayed_work(work), struct ornic_netdev,
					       restart_work);
	int err;

	rtnl_lock();
	if (netif_running(nd->dev) && netif_device_present(nd->dev) && !ornic_dead(nd->core)) {
		if (nd->up)
			ornic_down(nd);
		err = ornic_up(nd);
		if (err) {
			netdev_err(nd->dev, "queues cannot be made anew: %d\n", err);
			ornic_netdev_restart(nd);	/* memory may be short */
		}
	}
	rtnl_unlock();
}

/* ornic_netdev_restart() - the queue pair is in error: make new queues soon. Context: any. */
void ornic_netdev_restart(struct ornic_netdev *nd)
{
	schedule_delayed_work(&nd->restart_work, ORNIC_RESTART_DELAY);
}

static void ornic_tx_timeout(struct net_device *dev, unsigned int queue)
{
	struct ornic_netdev *nd = netdev_priv(dev);

	if (!READ_ONCE(nd->up))
		return;		/* the queues are just being made anew */
	netdev_err(dev, "send queue stuck: head %u, published %u, tail %u\n", nd->sq.head,
		   nd->sq.published, nd->sq.tail);
	ornic_netdev_restart(nd);
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

static int ornic_change_mtu(struct net_device *dev, int mtu)
{
	struct ornic_netdev *nd = netdev_priv(dev);
	int old = dev->mtu;
	int err;

	if (!nd->up) {
		WRITE_ONCE(dev->mtu, mtu);
		return 0;
	}
	ornic_down(nd);
	WRITE_ONCE(dev->mtu, mtu);
	err = ornic_up(nd);
	if (!err)
		return 0;
	WRITE_ONCE(dev->mtu, old);
	if (ornic_up(nd))
		ornic_netdev_restart(nd);	/* until there is memory */
	return err;
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
	.ndo_get_stats64	= ornic_get_stats64,
};

static int ornic_netdev_event(struct notifier_block *nb, unsigned long type, void *data)
{
	struct ornic_netdev *nd = container_of(nb, struct ornic_netdev, nb);
	const struct ornic_eqe *eqe = data;

	switch (type) {
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

static void ornic_netdev_features(struct net_device *dev, struct ornic_dev *odev)
{
	u32 limit = ornic_has(odev, ORNIC_FEATURE(JUMBO)) ? ORNIC_MAX_MTU : ETH_DATA_LEN;

	dev->hw_features = NETIF_F_SG;
	if (ornic_has(odev, ORNIC_FEATURE(TX_CSUM)))
		dev->hw_features |= NETIF_F_HW_CSUM;
	if (ornic_has(odev, ORNIC_FEATURE(RX_CSUM)))
		dev->hw_features |= NETIF_F_RXCSUM;
	dev->features = dev->hw_features | NETIF_F_HIGHDMA;
	dev->vlan_features = dev->features;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = clamp_t(u32, le16_to_cpu(odev->port.max_frame), ETH_MIN_MTU, limit);
	dev->mtu = min_t(u32, ETH_DATA_LEN, dev->max_mtu);
}

static void ornic_netdev_address(struct net_device *dev, struct ornic_dev *odev)
{
	if (is_valid_ether_addr(odev->port.current_mac)) {
		eth_hw_addr_set(dev, odev->port.current_mac);
	} else {
		netdev_warn(dev, "device has no valid address, using a random one\n");
		eth_hw_addr_random(dev);
	}
}

static u32 ornic_netdev_max_sge(struct ornic_dev *odev)
{
	return clamp_t(u32, le16_to_cpu(odev->id.max_send_sge), 1, ORNIC_TX_MAX_SGE);
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
	nd->max_sge = ornic_netdev_max_sge(&core->odev);
	mutex_init(&nd->link_lock);
	INIT_DELAYED_WORK(&nd->restart_work, ornic_restart_work);
	ornic_steer_init(nd);
	err = ornic_netstats_init(nd);
	if (err)
		goto free;
	dev->netdev_ops = &ornic_netdev_ops;
	dev->ethtool_ops = &ornic_ethtool_ops;
	dev->watchdog_timeo = 5 * HZ;
	ornic_netdev_features(dev, &core->odev);
	ornic_netdev_address(dev, &core->odev);
	netif_napi_add(dev, &nd->napi, ornic_napi_poll);
	netif_carrier_off(dev);

	err = ornic_event_register(&core->odev, &nd->nb);
	if (err)
		goto napi;
	err = register_netdev(dev);
	if (err)
		goto unsubscribe;
	core->nd = nd;
	core->odev.netdev = dev;
	return 0;

unsubscribe:
	ornic_event_unregister(&core->odev, &nd->nb);
napi:
	netif_napi_del(&nd->napi);
	ornic_netstats_cleanup(nd);
free:
	free_netdev(dev);
	return err;
}

/* ornic_netdev_destroy() - also when the device is dead or gone. */
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
	core->nd = NULL;
	core->odev.netdev = NULL;
	free_netdev(nd->dev);
}

/* ornic_netdev_suspend() - take the queues away, the interface stays registered. */
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

/* ornic_netdev_resume() - put back what ornic_netdev_suspend() took. */
int ornic_netdev_resume(struct ornic_core *core)
{
	struct ornic_netdev *nd = core->nd;
	int err = 0;

	if (!nd)
		return 0;
	rtnl_lock();
	if (!ether_addr_equal(nd->dev->dev_addr, core->odev.port.current_mac))
		err = ornic_port_mac(nd, nd->dev->dev_addr);
	if (!err && netif_running(nd->dev))
		err = ornic_up(nd);
	if (!err)
		netif_device_attach(nd->dev);
	rtnl_unlock();
	return err;
}
