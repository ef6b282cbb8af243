// SPDX-License-Identifier: GPL-2.0
/*
 * Receive rules of the interface: frames to its own address and all multicast
 * while it is up, every frame while it is promiscuous (clauses ORN-STEER).
 *
 * All multicast is always wanted by the device's rule, so the stack's list of
 * groups needs no translation: it drops what nobody joined.
 */
#include <linux/rtnetlink.h>

#include "cmd.h"
#include "netdev.h"

static int ornic_rule_add(struct ornic_netdev *nd, enum ornic_rule_kind kind)
{
	if (nd->rules[kind])
		return 0;
	return ornic_cmd_rule_create(nd->core, kind, nd->qpn, &nd->rules[kind]);
}

static void ornic_rule_del(struct ornic_netdev *nd, enum ornic_rule_kind kind)
{
	if (nd->rules[kind])
		ornic_cmd_destroy(nd->core, ORNIC_OP_RULE_DESTROY, nd->rules[kind]);
	nd->rules[kind] = 0;
}

/* A failure is in the log; the interface works all the same. */
static void ornic_steer_promisc(struct ornic_netdev *nd)
{
	bool allowed = le32_to_cpu(nd->core->odev.port.flags) & ORNIC_PORT_F_PROMISC;

	if (!(nd->dev->flags & IFF_PROMISC))
		ornic_rule_del(nd, ORNIC_RULE_PROMISC);
	else if (allowed)
		ornic_rule_add(nd, ORNIC_RULE_PROMISC);
	else
		netdev_info_once(nd->dev, "this port does not allow promiscuous mode\n");
}

static void ornic_rx_mode_work(struct work_struct *work)
{
	struct ornic_netdev *nd = container_of(work, struct ornic_netdev, rx_mode_work);

	rtnl_lock();
	if (nd->up)
		ornic_steer_promisc(nd);
	rtnl_unlock();
}

/* Called with the address lock, so the command must wait for the work. */
void ornic_set_rx_mode(struct net_device *dev)
{
	struct ornic_netdev *nd = netdev_priv(dev);

	schedule_work(&nd->rx_mode_work);
}

/* ornic_steer_start() - let frames in. The queue pair receives. */
int ornic_steer_start(struct ornic_netdev *nd)
{
	int err;

	ASSERT_RTNL();

	err = ornic_rule_add(nd, ORNIC_RULE_UNICAST);
	if (err)
		return err;
	err = ornic_rule_add(nd, ORNIC_RULE_MULTICAST);
	if (err)
		return err;
	ornic_steer_promisc(nd);
	return 0;
}

/* ornic_steer_stop() - whatever ornic_steer_start() got to. */
void ornic_steer_stop(struct ornic_netdev *nd)
{
	ornic_rule_del(nd, ORNIC_RULE_PROMISC);
	ornic_rule_del(nd, ORNIC_RULE_MULTICAST);
	ornic_rule_del(nd, ORNIC_RULE_UNICAST);
}

void ornic_steer_init(struct ornic_netdev *nd)
{
	INIT_WORK(&nd->rx_mode_work, ornic_rx_mode_work);
}
