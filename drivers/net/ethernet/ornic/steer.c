// SPDX-License-Identifier: GPL-2.0
/*
 * Receive rules of the interface: frames to its own address and all multicast
 * while it is up, every frame while it is promiscuous (clauses ORN-STEER).
 *
 * One device rule receives all multicast, so the driver does not program the stack's
 * list of groups. The stack drops frames of groups that nobody joined.
 */
#include <linux/rtnetlink.h>

#include "cmd.h"
#include "netdev.h"

static int ornic_rule_add(struct ornic_netdev *nd, enum ornic_rule_kind kind, u32 qpn)
{
	int err;

	if (nd->rules[kind])
		return 0;
	err = ornic_cmd_rule_create(nd->core, kind, qpn, &nd->rules[kind]);
	if (err)
		nd->rules[kind] = 0;
	return err;
}

static void ornic_rule_del(struct ornic_netdev *nd, enum ornic_rule_kind kind)
{
	if (nd->rules[kind])
		ornic_cmd_destroy(nd->core, ORNIC_OP_RULE_DESTROY, nd->rules[kind]);
	nd->rules[kind] = 0;
}

/* Follow IFF_PROMISC. A failure is only logged: the interface works without the rule. */
static void ornic_steer_promisc(struct ornic_netdev *nd, u32 qpn)
{
	bool allowed = le32_to_cpu(nd->core->odev.port.flags) & ORNIC_PORT_F_PROMISC;

	if (!(nd->dev->flags & IFF_PROMISC))
		ornic_rule_del(nd, ORNIC_RULE_PROMISC);
	else if (allowed)
		ornic_rule_add(nd, ORNIC_RULE_PROMISC, qpn);
	else
		netdev_info_once(nd->dev, "this port does not allow promiscuous mode\n");
}

static void ornic_rx_mode_work(struct work_struct *work)
{
	struct ornic_netdev *nd = container_of(work, struct ornic_netdev, rx_mode_work);

	rtnl_lock();
	if (nd->queues)
		ornic_steer_promisc(nd, nd->queues->qpn);
	rtnl_unlock();
}

/* Called under the address lock, which forbids sleeping: a work item runs the command. */
void ornic_set_rx_mode(struct net_device *dev)
{
	struct ornic_netdev *nd = netdev_priv(dev);

	schedule_work(&nd->rx_mode_work);
}

/* ornic_steer_start() - create the receive rules of a queue pair. Return: 0 or errno. */
int ornic_steer_start(struct ornic_netdev *nd, u32 qpn)
{
	int err;

	ASSERT_RTNL();

	err = ornic_rule_add(nd, ORNIC_RULE_UNICAST, qpn);
	if (err)
		return err;
	err = ornic_rule_add(nd, ORNIC_RULE_MULTICAST, qpn);
	if (err)
		return err;
	ornic_steer_promisc(nd, qpn);
	return 0;
}

/* ornic_steer_stop() - destroy the receive rules that exist. */
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
