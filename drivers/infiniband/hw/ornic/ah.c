// SPDX-License-Identifier: GPL-2.0
/*
 * Address handles.
 *
 * The device has no address handles, because each datagram work request contains
 * its address vector. An address handle is a prepared address vector, so creating
 * one neither sleeps nor needs a command.
 */
#include <linux/string.h>
#include <net/ipv6.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/qp.h>
#include <rdma/ornic-abi.h>

#include "ah.h"

/**
 * ornic_ib_path_fill() - fill the address vector of an address handle or connection
 * @path: to fill; fields that the attributes do not define are set to 0
 * @attr: RoCE attributes with the destination MAC resolved
 *
 * Context: any. Return: 0, or -EINVAL if the attributes are not RoCE with a GRH.
 */
int ornic_ib_path_fill(struct ornic_path *path, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh;

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE || !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH))
		return -EINVAL;
	grh = rdma_ah_read_grh(attr);

	memset(path, 0, sizeof(*path));
	memcpy(path->dgid, grh->dgid.raw, sizeof(path->dgid));
	memcpy(path->dmac, attr->roce.dmac, sizeof(path->dmac));
	path->flow_label = cpu_to_le32(grh->flow_label & IB_GRH_FLOWLABEL_MASK);
	path->traffic_class = grh->traffic_class;
	path->hop_limit = grh->hop_limit;
	path->sl = rdma_ah_get_sl(attr) & 0xf;
	path->static_rate = rdma_ah_get_static_rate(attr);
	path->sgid_index = cpu_to_le16(grh->sgid_index);
	return 0;
}

/*
 * Return true if source and destination are of the same family, IPv4 or IPv6, since no packet can
 * have both. ib_core resolves the route of a unicast address and rejects a mixture. It maps a
 * multicast address to a MAC address without this check (ib_resolve_eth_dmac(), 6.12 and 7.2).
 */
static bool ornic_ib_one_family(const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	return ipv6_addr_v4mapped((const struct in6_addr *)&grh->sgid_attr->gid) ==
	       ipv6_addr_v4mapped((const struct in6_addr *)&grh->dgid);
}

int ornic_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct ornic_uresp_create_ah resp = {};
	struct ornic_ib_ah *ah = to_oah(ibah);
	u32 flow_label;
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;

	ret = ornic_ib_path_fill(&ah->path, init->ah_attr);
	if (ret)
		return ret;
	if (!ornic_ib_one_family(init->ah_attr))
		return -EINVAL;
	flow_label = le32_to_cpu(ah->path.flow_label);
	if (flow_label)
		ah->path.udp_sport = cpu_to_le16(rdma_flow_label_to_udp_sport(flow_label));
	if (!udata)
		return 0;

	memcpy(resp.dmac, ah->path.dmac, sizeof(resp.dmac));
	return ib_respond_udata(udata, resp);
}

int ornic_ib_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
