// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles: an address vector that post_send copies into UD work requests.
 *
 * The kernel checks the attributes and resolves the destination MAC address. The
 * device takes source MAC address and VLAN from its GID table (qp.rst).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ornic.h"

/* Build the address vector of @attr with the destination MAC address @dmac. */
static void ornic_ah_fill(struct ornic_path *path, const struct ibv_ah_attr *attr,
			  const uint8_t *dmac)
{
	const struct ibv_global_route *grh = &attr->grh;

	memcpy(path->dgid, grh->dgid.raw, sizeof(path->dgid));
	memcpy(path->dmac, dmac, sizeof(path->dmac));
	path->flow_label = htole32(grh->flow_label & 0xfffff);
	path->traffic_class = grh->traffic_class;
	path->hop_limit = grh->hop_limit;
	path->sl = attr->sl & 0xf;
	path->static_rate = attr->static_rate;
	path->sgid_index = htole16(grh->sgid_index);
	if (grh->flow_label)
		path->udp_sport = htole16(ibv_flow_label_to_udp_sport(grh->flow_label));
	path->port = attr->port_num;
}

struct ibv_ah *ornic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ornic_create_ah_resp resp = {};
	struct ornic_ah *ah;
	int ret;

	if (!attr->is_global) {
		verbs_err(verbs_get_ctx(pd->context), "an address handle needs a GRH\n");
		errno = EINVAL;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ret = ibv_cmd_create_ah(pd, &ah->ibv_ah, attr, &resp.ibv_resp, sizeof(resp));
	if (ret) {
		free(ah);
		errno = ret;
		return NULL;
	}
	ornic_ah_fill(&ah->path, attr, resp.dmac);
	return &ah->ibv_ah;
}

int ornic_destroy_ah(struct ibv_ah *ah)
{
	int ret = ibv_cmd_destroy_ah(ah);

	if (ret)
		return ret;
	free(to_oah(ah));
	return 0;
}
