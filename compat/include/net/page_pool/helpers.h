/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replacement for a header that older kernels (6.1) lack. Their page pools are declared
 * in <net/page_pool.h>, have no NAPI context and no parameter for the network interface, and
 * need PP_FLAG_PAGE_FRAG to split pages into fragments. Later kernels (6.12) have the header,
 * but take the NAPI context only as a parameter of page_pool_create().
 */
#ifndef ORNIC_COMPAT_PAGE_POOL_HELPERS_H
#define ORNIC_COMPAT_PAGE_POOL_HELPERS_H

#ifdef ORNIC_HAVE_PAGE_POOL_HELPERS

#include_next <net/page_pool/helpers.h>

#ifndef ORNIC_HAVE_PAGE_POOL_ENABLE_RECYCLING
static inline void page_pool_enable_direct_recycling(struct page_pool *pool,
						     struct napi_struct *napi)
{
	WRITE_ONCE(pool->p.napi, napi);
}
#endif

#else

#include <net/page_pool.h>

struct ornic_page_pool_params {
	unsigned int flags;
	unsigned int order;
	unsigned int pool_size;
	int nid;
	struct device *dev;
	enum dma_data_direction dma_dir;
	unsigned int max_len;
	unsigned int offset;
	struct net_device *netdev;	/* ignored: this kernel has no such parameter */
};

static inline struct page_pool *
ornic_page_pool_create(const struct ornic_page_pool_params *params)
{
	struct page_pool_params old = {
		.flags		= params->flags | PP_FLAG_PAGE_FRAG,
		.order		= params->order,
		.pool_size	= params->pool_size,
		.nid		= params->nid,
		.dev		= params->dev,
		.dma_dir	= params->dma_dir,
		.max_len	= params->max_len,
		.offset		= params->offset,
	};

	return page_pool_create(&old);
}

static inline void page_pool_enable_direct_recycling(struct page_pool *pool,
						     struct napi_struct *napi)
{
}

#define page_pool_params ornic_page_pool_params
#define page_pool_create ornic_page_pool_create

#endif

#endif
