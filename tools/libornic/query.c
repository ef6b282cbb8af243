// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Device and port attributes, as the kernel reports them. */
#include <string.h>

#include "ornic.h"

int ornic_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct verbs_sysfs_dev *sysfs = verbs_get_device(ctx->device)->sysfs;
	struct ornic_query_device_resp resp = {};
	size_t resp_size = sizeof(resp);
	char *fw = attr->orig_attr.fw_ver;
	int ret;

	ret = ibv_cmd_query_device_any(ctx, input, attr, attr_size, &resp.ibv_resp, &resp_size);
	if (ret)
		return ret;
	if (attr_size >= offsetof(struct ibv_device_attr_ex, rss_caps) + sizeof(attr->rss_caps)) {
		attr->rss_caps.rx_hash_fields_mask = resp.rss_fields;
		attr->rss_caps.rx_hash_function = resp.rss_functions;
	}
	if (attr_size >= offsetof(struct ibv_device_attr_ex, packet_pacing_caps) +
			 sizeof(attr->packet_pacing_caps)) {
		attr->packet_pacing_caps.qp_rate_limit_min = resp.rate_min_kbps;
		attr->packet_pacing_caps.qp_rate_limit_max = resp.rate_max_kbps;
		attr->packet_pacing_caps.supported_qpts = resp.rate_qpts;
	}
	/* The version is text; the command returns only a number, so read it from sysfs. */
	if (ibv_read_ibdev_sysfs_file(fw, sizeof(attr->orig_attr.fw_ver), sysfs, "fw_ver") <= 0)
		memset(fw, 0, sizeof(attr->orig_attr.fw_ver));
	return 0;
}

int ornic_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(ctx, port, attr, &cmd, sizeof(cmd));
}
