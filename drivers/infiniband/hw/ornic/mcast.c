// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups of datagram queue pairs.
 *
 * Each membership is a rule of the device, which finds the members for a datagram by
 * its destination GID. IGMP and MLD belong to the connection manager.
 */
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <linux/ornic/hw/steer.h>

#include "mcast.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "qp.h"

/**
 * struct ornic_ib_member - membership of a queue pair in a group
 * @link: link in the queue pair's list of memberships
 * @gid: GID of the group
 * @joins: how often the queue pair has joined and not left
 * @rule: number of the rule in the device
 */
struct ornic_ib_member {
	struct list_head link;
	union ib_gid gid;
	unsigned int joins;
	u32 rule;
};

static struct ornic_ib_member *ornic_find_member(struct ornic_ib_qp *qp, const union ib_gid *gid)
{
	struct ornic_ib_member *member;

	lockdep_assert_held(&qp->mutex);

	list_for_each_entry(member, &qp->members, link)
		if (!memcmp(&member->gid, gid, sizeof(*gid)))
			return member;
	return NULL;
}

static int ornic_mcast_join(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp,
			    const union ib_gid *gid)
{
	struct ornic_rule_cmd cmd = {
		.kind = ORNIC_RULE_MEMBER,
		.port = ORNIC_IB_PORT,
		.target_type = cpu_to_le32(ORNIC_TARGET_QP),
		.target = cpu_to_le32(qp->qpn),
		.owner = cpu_to_le32(qp->owner),
	};
	struct ornic_ib_member *member;
	int ret;

	member = kzalloc_obj(*member);
	if (!member)
		return -ENOMEM;
	member->gid = *gid;
	member->joins = 1;
	memcpy((u8 *)&cmd.value + ORNIC_MEMBER_GID, gid, sizeof(*gid));
	ret = ornic_ib_cmd_rule_create(dev, &cmd, &member->rule);
	if (ret) {
		kfree(member);
		return ret;
	}
	list_add_tail(&member->link, &qp->members);
	return 0;
}

/*
 * Join a group, perhaps once more. ib_core (6.1 to 7.2) counts every success and does not destroy a
 * queue pair that has left less often, and uverbs joins again if the LID differs, which means
 * nothing to RoCE. With one membership the second leave would fail, and an unprivileged process
 * would keep its queue pair for ever.
 */
int ornic_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct ornic_ib_qp *qp = to_oqp(ibqp);
	struct ornic_ib_member *member;
	int ret = 0;

	mutex_lock(&qp->mutex);
	member = ornic_find_member(qp, gid);
	if (member)
		member->joins++;
	else
		ret = ornic_mcast_join(to_oib(ibqp->device), qp, gid);
	mutex_unlock(&qp->mutex);
	return ret;
}

int ornic_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct ornic_ib_qp *qp = to_oqp(ibqp);
	struct ornic_ib_member *member;

	mutex_lock(&qp->mutex);
	member = ornic_find_member(qp, gid);
	if (member && !--member->joins) {
		ornic_ib_cmd_rule_destroy(to_oib(ibqp->device), member->rule,
					  ORNIC_RULE_MEMBER);
		list_del(&member->link);
		kfree(member);
	}
	mutex_unlock(&qp->mutex);
	return member ? 0 : -EINVAL;
}
