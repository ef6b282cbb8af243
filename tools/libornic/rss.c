// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs that distribute frames over a table of work queues by a hash (RSS). They have
 * no queues, so nothing can be posted to them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ornic.h"

#define ORNIC_RSS_INIT_MASK						\
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |		\
	 IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_CREATE_FLAGS)
#define ORNIC_RSS_NEEDS		(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH)

static int ornic_rss_hash_check(struct ornic_context *ctx, const struct ibv_rx_hash_conf *hash)
{
	if (hash->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ) {
		verbs_err(&ctx->ibv_ctx, "no hash function %u\n", hash->rx_hash_function);
		return EOPNOTSUPP;
	}
	if (ornic_unsupported(ctx, "rx_hash_fields_mask", hash->rx_hash_fields_mask, UINT32_MAX))
		return EOPNOTSUPP;
	if (hash->rx_hash_key_len == ORNIC_RSS_KEY_BYTES && hash->rx_hash_key)
		return 0;
	verbs_err(&ctx->ibv_ctx, "the hash key has %u bytes, not %u\n", hash->rx_hash_key_len,
		  ORNIC_RSS_KEY_BYTES);
	return EINVAL;
}

static int ornic_rss_check(struct ornic_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	if (ornic_unsupported(ctx, "comp_mask of an RSS queue pair", attr->comp_mask,
			      ORNIC_RSS_INIT_MASK))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    ornic_unsupported(ctx, "create_flags of an RSS queue pair", attr->create_flags, 0))
		return EOPNOTSUPP;
	if (attr->qp_type != IBV_QPT_RAW_PACKET) {
		verbs_err(&ctx->ibv_ctx, "only raw packet queue pairs have RSS\n");
		return EOPNOTSUPP;
	}
	if ((attr->comp_mask & ORNIC_RSS_NEEDS) != ORNIC_RSS_NEEDS || !attr->rwq_ind_tbl) {
		verbs_err(&ctx->ibv_ctx, "RSS needs a PD, a hash and a table\n");
		return EINVAL;
	}
	if (attr->send_cq || attr->cap.max_send_wr || attr->cap.max_send_sge) {
		verbs_err(&ctx->ibv_ctx, "an RSS queue pair has no send queue\n");
		return EINVAL;
	}
	return ornic_rss_hash_check(ctx, &attr->rx_hash_conf);
}

static int ornic_rss_cmd(struct ibv_context *ctx, struct ornic_qp *qp,
			 struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;
	struct ibv_qp_init_attr_ex plain = *attr;
	struct ornic_create_rss_resp resp = {};
	struct ornic_create_rss cmd = {};
	int ret;

	/* The common part of the command has no field for the hash; ornic's payload has. */
	plain.comp_mask &= ~IBV_QP_INIT_ATTR_RX_HASH;
	cmd.fields = hash->rx_hash_fields_mask;
	cmd.function = hash->rx_hash_function;
	memcpy(cmd.key, hash->rx_hash_key, sizeof(cmd.key));
	ret = ibv_cmd_create_qp_ex2(ctx, &qp->vqp, &plain, &cmd.ibv_cmd, sizeof(cmd),
				    &resp.ibv_resp, sizeof(resp), NULL);
	if (!ret)
		qp->qpn = resp.qpn;
	return ret;
}

static void ornic_rss_free(struct ornic_qp *qp)
{
	ornic_lock_destroy(&qp->rq.lock);
	ornic_lock_destroy(&qp->sq.lock);
	free(qp);
}

struct ibv_qp *ornic_rss_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ornic_qp *qp;
	int ret;

	ret = ornic_rss_check(to_octx(ctx), attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->rss = true;
	ornic_lock_init(&qp->sq.lock, true);
	ornic_lock_init(&qp->rq.lock, true);
	ret = ornic_rss_cmd(ctx, qp, attr);
	if (ret) {
		ornic_rss_free(qp);
		errno = ret;
		return NULL;
	}
	return &qp->vqp.qp;
}

int ornic_rss_destroy(struct ornic_qp *qp)
{
	int ret = ibv_cmd_destroy_qp(&qp->vqp.qp);

	if (!ret)
		ornic_rss_free(qp);
	return ret;
}
