// SPDX-License-Identifier: GPL-2.0
/*
 * Flow steering: a flow of verbs is a receive rule of the device.
 *
 * uverbs has checked CAP_NET_RAW. A flow compares header fields under a mask.
 * Bits of a value outside the mask have no effect and are set to 0; a field with
 * mask 0 is left out of the rule.
 */
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/steer.h>

#include "flow.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "qp.h"
#include "ucontext.h"

static_assert((int)ORNIC_FRAG_DF == IB_IPV4_DONT_FRAG);
static_assert((int)ORNIC_FRAG_MF == IB_IPV4_MORE_FRAG);

#define FLOW_TAG_MAX ORNIC_NUMBER_MASK

struct ornic_ib_flow {
	struct ib_flow ibflow;
	u32 rule;
};

/* Offset of a field in the value and in the mask of the command. */
#define AT(member) offsetof(struct ornic_rule_match, member)

/* Add a field. -EINVAL if it is set already: two headers of one kind could contradict. */
static int ornic_flow_put(struct ornic_rule_cmd *cmd, u32 bit, size_t at, const void *val,
			  const void *msk, size_t size)
{
	u8 *to_value = (u8 *)&cmd->value + at;
	u8 *to_mask = (u8 *)&cmd->mask + at;
	const u8 *value = val, *mask = msk;
	size_t i;

	if (!memchr_inv(mask, 0, size))
		return 0;
	if (le32_to_cpu(cmd->fields) & bit)
		return -EINVAL;
	cmd->fields |= cpu_to_le32(bit);
	for (i = 0; i < size; i++) {
		to_mask[i] = mask[i];
		to_value[i] = value[i] & mask[i];
	}
	return 0;
}

/* Add the IP protocol. IP and TCP or UDP header may both set it, but must not contradict. */
static int ornic_put_protocol(struct ornic_rule_cmd *cmd, u8 value, u8 mask)
{
	if (!mask)
		return 0;
	if ((cmd->value.protocol ^ value) & cmd->mask.protocol & mask)
		return -EINVAL;
	cmd->fields |= cpu_to_le32(ORNIC_MATCH_PROTOCOL);
	cmd->mask.protocol |= mask;
	cmd->value.protocol |= value & mask;
	return 0;
}

static int ornic_put_eth(struct ornic_rule_cmd *cmd,
			 const struct ib_flow_spec_eth *spec)
{
	int ret;

	ret = ornic_flow_put(cmd, ORNIC_MATCH_DMAC, AT(dmac), spec->val.dst_mac,
			     spec->mask.dst_mac, sizeof(spec->val.dst_mac));
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_SMAC, AT(smac), spec->val.src_mac,
				     spec->mask.src_mac, sizeof(spec->val.src_mac));
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_ETHERTYPE, AT(ethertype),
				     &spec->val.ether_type, &spec->mask.ether_type,
				     sizeof(spec->val.ether_type));
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_VLAN, AT(vlan_tci),
				     &spec->val.vlan_tag, &spec->mask.vlan_tag,
				     sizeof(spec->val.vlan_tag));
	return ret;
}

static int ornic_put_ip_version(struct ornic_rule_cmd *cmd, u8 version)
{
	const u8 all = 0xff;

	return ornic_flow_put(cmd, ORNIC_MATCH_IP_VERSION, AT(ip_version), &version, &all,
			      sizeof(version));
}

/* The rule compares the IP version, so the 12 prefix bytes of the mapped address need no mask. */
static int ornic_put_ipv4_addr(struct ornic_rule_cmd *cmd, u32 bit, size_t at,
			       __be32 val, __be32 msk)
{
	const size_t prefix = sizeof(struct in6_addr) - sizeof(val);

	return ornic_flow_put(cmd, bit, at + prefix, &val, &msk, sizeof(val));
}

static int ornic_put_ipv4(struct ornic_rule_cmd *cmd,
			  const struct ib_flow_spec_ipv4 *spec)
{
	const struct ib_flow_ipv4_filter *val = &spec->val, *mask = &spec->mask;
	int ret;

	if (mask->flags & ~(IB_IPV4_DONT_FRAG | IB_IPV4_MORE_FRAG))
		return -EOPNOTSUPP;
	ret = ornic_put_ip_version(cmd, 4);
	if (!ret)
		ret = ornic_put_ipv4_addr(cmd, ORNIC_MATCH_SRC_IP, AT(src_ip),
					  val->src_ip, mask->src_ip);
	if (!ret)
		ret = ornic_put_ipv4_addr(cmd, ORNIC_MATCH_DST_IP, AT(dst_ip),
					  val->dst_ip, mask->dst_ip);
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_TOS, AT(tos), &val->tos, &mask->tos,
				     sizeof(val->tos));
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_TTL, AT(ttl), &val->ttl, &mask->ttl,
				     sizeof(val->ttl));
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_IP_FRAG, AT(ip_frag), &val->flags,
				     &mask->flags, sizeof(val->flags));
	if (!ret)
		ret = ornic_put_protocol(cmd, val->proto, mask->proto);
	return ret;
}

static int ornic_put_ipv6(struct ornic_rule_cmd *cmd,
			  const struct ib_flow_spec_ipv6 *spec)
{
	const struct ib_flow_ipv6_filter *val = &spec->val, *mask = &spec->mask;
	int ret;

	if (mask->flow_label & ~cpu_to_be32(0xfffff))
		return -EINVAL;
	ret = ornic_put_ip_version(cmd, 6);
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_SRC_IP, AT(src_ip), val->src_ip,
				     mask->src_ip, sizeof(val->src_ip));
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_DST_IP, AT(dst_ip), val->dst_ip,
				     mask->dst_ip, sizeof(val->dst_ip));
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_FLOW_LABEL, AT(flow_label),
				     &val->flow_label, &mask->flow_label,
				     sizeof(val->flow_label));
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_TOS, AT(tos), &val->traffic_class,
				     &mask->traffic_class, sizeof(val->traffic_class));
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_TTL, AT(ttl), &val->hop_limit,
				     &mask->hop_limit, sizeof(val->hop_limit));
	if (!ret)
		ret = ornic_put_protocol(cmd, val->next_hdr, mask->next_hdr);
	return ret;
}

static int ornic_put_ports(struct ornic_rule_cmd *cmd, u8 protocol,
			   const struct ib_flow_spec_tcp_udp *spec)
{
	int ret;

	ret = ornic_put_protocol(cmd, protocol, 0xff);
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_SRC_PORT, AT(src_port),
				     &spec->val.src_port, &spec->mask.src_port,
				     sizeof(spec->val.src_port));
	if (!ret)
		ret = ornic_flow_put(cmd, ORNIC_MATCH_DST_PORT, AT(dst_port),
				     &spec->val.dst_port, &spec->mask.dst_port,
				     sizeof(spec->val.dst_port));
	return ret;
}

static int ornic_put_tag(struct ornic_rule_cmd *cmd, u32 tag)
{
	if (tag > FLOW_TAG_MAX)
		return -EINVAL;
	cmd->flow_tag = cpu_to_le32(tag);
	return 0;
}

static int ornic_put_spec(struct ornic_rule_cmd *cmd, const union ib_flow_spec *spec)
{
	switch (spec->type) {
	case IB_FLOW_SPEC_ETH:
		return ornic_put_eth(cmd, &spec->eth);
	case IB_FLOW_SPEC_IPV4:
		return ornic_put_ipv4(cmd, &spec->ipv4);
	case IB_FLOW_SPEC_IPV6:
		return ornic_put_ipv6(cmd, &spec->ipv6);
	case IB_FLOW_SPEC_TCP:
		return ornic_put_ports(cmd, IPPROTO_TCP, &spec->tcp_udp);
	case IB_FLOW_SPEC_UDP:
		return ornic_put_ports(cmd, IPPROTO_UDP, &spec->tcp_udp);
	case IB_FLOW_SPEC_ACTION_TAG:
		return ornic_put_tag(cmd, spec->flow_tag.tag_id);
	case IB_FLOW_SPEC_ACTION_DROP:
		cmd->target_type = cpu_to_le32(ORNIC_TARGET_DROP);
		cmd->target = 0;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

/* Add all specifications. They follow each other, and each contains its own size. */
static int ornic_put_specs(struct ornic_rule_cmd *cmd,
			   const struct ib_flow_attr *attr)
{
	const void *at = attr->flows;
	int ret = 0;
	u8 i;

	for (i = 0; !ret && i < attr->num_of_specs; i++) {
		const union ib_flow_spec *spec = at;

		ret = ornic_put_spec(cmd, spec);
		at += spec->size;
	}
	return ret;
}

static int ornic_put_type(struct ornic_rule_cmd *cmd, const struct ib_flow_attr *attr)
{
	const u8 group[ETH_ALEN] = { 1 };

	switch (attr->type) {
	case IB_FLOW_ATTR_NORMAL:
		return ornic_put_specs(cmd, attr);
	case IB_FLOW_ATTR_ALL_DEFAULT:
		cmd->flags |= cpu_to_le32(ORNIC_RULE_F_LEFTOVER);
		return attr->num_of_specs ? -EINVAL : 0;
	case IB_FLOW_ATTR_MC_DEFAULT:
		cmd->flags |= cpu_to_le32(ORNIC_RULE_F_LEFTOVER);
		return attr->num_of_specs ? -EINVAL :
					    ornic_flow_put(cmd, ORNIC_MATCH_DMAC, AT(dmac),
							   group, group, sizeof(group));
	default:
		return -EOPNOTSUPP;
	}
}

static int ornic_fill_rule(struct ib_qp *ibqp, const struct ib_flow_attr *attr,
			   struct ornic_rule_cmd *cmd)
{
	bool rss = to_oqp(ibqp)->rss;

	if (ibqp->qp_type != IB_QPT_RAW_PACKET)
		return -EOPNOTSUPP;
	if (attr->flags & ~IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		return -EOPNOTSUPP;
	cmd->kind = ORNIC_RULE_MATCH;
	cmd->port = attr->port;
	cmd->priority = cpu_to_le16(attr->priority);
	cmd->target_type = cpu_to_le32(rss ? ORNIC_TARGET_RSS : ORNIC_TARGET_QP);
	cmd->target = cpu_to_le32(to_oqp(ibqp)->qpn);
	if (attr->flags & IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		cmd->flags = cpu_to_le32(ORNIC_RULE_F_COPY);
	return ornic_put_type(cmd, attr);
}

struct ib_flow *ornic_ib_create_flow(struct ib_qp *ibqp,
				     struct ib_flow_attr *attr,
				     struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibqp->device);
	struct ornic_rule_cmd cmd = {};
	struct ornic_ib_flow *flow;
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ERR_PTR(ret);
	ret = ornic_fill_rule(ibqp, attr, &cmd);
	if (ret) {
		ibdev_dbg(&dev->ibdev, "flow of type %u with %u specifications: %d\n",
			  attr->type, attr->num_of_specs, ret);
		return ERR_PTR(ret);
	}
	cmd.owner = cpu_to_le32(ornic_ib_caller_page(udata));
	flow = kzalloc_obj(*flow);
	if (!flow)
		return ERR_PTR(-ENOMEM);
	ret = ornic_ib_cmd_rule_create(dev, &cmd, &flow->rule);
	if (ret) {
		kfree(flow);
		return ERR_PTR(ret);
	}
	return &flow->ibflow;
}

int ornic_ib_destroy_flow(struct ib_flow *ibflow)
{
	struct ornic_ib_flow *flow =
		container_of(ibflow, struct ornic_ib_flow, ibflow);

	ornic_ib_cmd_rule_destroy(to_oib(ibflow->device), flow->rule, ORNIC_RULE_MATCH);
	kfree(flow);
	return 0;
}
