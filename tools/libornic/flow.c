// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Flow steering: rules that deliver frames to raw packet queue pairs. */
#include <errno.h>
#include <stdlib.h>

#include "ornic.h"

struct ibv_flow *ornic_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow = calloc(1, sizeof(*flow));
	int ret;

	if (!flow)
		return NULL;
	ret = ibv_cmd_create_flow(qp, flow, attr, NULL, 0);
	if (ret) {
		free(flow);
		errno = ret;
		return NULL;
	}
	return flow;
}

int ornic_destroy_flow(struct ibv_flow *flow)
{
	int ret = ibv_cmd_destroy_flow(flow);

	if (!ret)
		free(flow);
	return ret;
}
