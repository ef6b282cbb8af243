// SPDX-License-Identifier: GPL-2.0
/*
 * Faults while completion queues, shared receive queues and XRC domains are created,
 * changed and destroyed.
 */
#include "faults_cases.h"

#include <fcntl.h>
#include <unistd.h>

#define LARGE	300		/* entries of a ring that needs a page list */

static struct ibv_comp_channel *channel;
static struct ibv_cq *made_cq;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd, *base_xrcd;
static struct ibv_td *td;
static struct ibv_pd *parent;
static int size;

static struct ibv_xrcd *domain(int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd, .oflags = O_CREAT,
	};

	return ibv_open_xrcd(dev.verbs, &attr);
}

static void open_base(void)
{
	channel = ibv_create_comp_channel(dev.verbs);
	base_xrcd = domain(-1);
	if (!channel || !base_xrcd)
		bail("no channel or no XRC domain: %s", strerror(errno));
}

static void close_base(void)
{
	if (ibv_close_xrcd(base_xrcd) || ibv_destroy_comp_channel(channel))
		bail("XRC domain or channel is still in use");
}

static int create_cq(int entries)
{
	made_cq = ibv_create_cq(dev.verbs, entries, NULL, channel, 0);
	return made(made_cq);
}

static int create_small(void)
{
	return create_cq(16);
}

static int create_large(void)
{
	return create_cq(LARGE);
}

static int create_ex(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(dev.verbs, &attr);

	made_cq = ex ? ibv_cq_ex_to_cq(ex) : NULL;
	return made(ex);
}

static int destroy_cq(void)
{
	return status(ibv_destroy_cq(made_cq));
}

/* Resize between two sizes: a ring with a page list and one without */
static int resize(void)
{
	size = size == LARGE ? 20 : LARGE;
	return status(ibv_resize_cq(cq.cq, size));
}

static int moderate(void)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { .cq_count = 8, .cq_period = 20 },
	};

	return status(ibv_modify_cq(cq.cq, &attr));
}

static int create_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 500, .max_sge = 2 } };

	srq = ibv_create_srq(dev.pd, &attr);
	return made(srq);
}

static int create_srq_xrc(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .xrcd = base_xrcd,
		.pd = dev.pd, .cq = cq.cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
	};

	srq = ibv_create_srq_ex(dev.verbs, &attr);
	return made(srq);
}

static int destroy_srq(void)
{
	return status(ibv_destroy_srq(srq));
}

/* Use a new SRQ each time: its creation, query, change or resize fails */
static int use_srq(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 3, .max_wr = 900 };
	int err = create_srq();

	if (err)
		return err;
	err = status(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	if (!err)
		err = status(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	if (!err)
		err = status(ibv_query_srq(srq, &attr));
	if (err)
		ibv_destroy_srq(srq);
	return err;
}

static int open_xrcd(void)
{
	xrcd = domain(-1);
	return made(xrcd);
}

static int open_xrcd_file(void)
{
	int fd = open("/tmp/faults.xrcd", O_RDWR | O_CREAT, 0600);

	xrcd = domain(fd);
	close(fd);
	return made(xrcd);
}

static int close_xrcd(void)
{
	return status(ibv_close_xrcd(xrcd));
}

static int create_in_parent(void)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_parent_domain_init_attr attr = { .pd = dev.pd };
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
	};
	struct ibv_cq_ex *ex;
	int err;

	td = ibv_alloc_td(dev.verbs, &td_attr);
	attr.td = td;
	parent = td ? ibv_alloc_parent_domain(dev.verbs, &attr) : NULL;
	cq_attr.parent_domain = parent;
	ex = parent ? ibv_create_cq_ex(dev.verbs, &cq_attr) : NULL;
	err = made(ex);
	made_cq = ex ? ibv_cq_ex_to_cq(ex) : NULL;
	if (!ex && parent)
		ibv_dealloc_pd(parent);
	if (!ex && td)
		ibv_dealloc_td(td);
	return err;
}

static int destroy_in_parent(void)
{
	int err = destroy_cq();

	if (err)
		return err;
	err = status(ibv_dealloc_pd(parent));
	return err ? err : status(ibv_dealloc_td(td));
}

static const struct fault_case queue_cases[] = {
	{ "cq", create_small, destroy_cq },
	{ "cq_large", create_large, destroy_cq },
	{ "cq_ex", create_ex, destroy_cq },
	{ "cq_resize", resize, NULL },
	{ "cq_moderate", moderate, NULL },
	{ "parent_domain", create_in_parent, destroy_in_parent },
	{ "srq", create_srq, destroy_srq },
	{ "srq_xrc", create_srq_xrc, destroy_srq },
	{ "srq_use", use_srq, destroy_srq },
	{ "xrcd", open_xrcd, close_xrcd },
	{ "xrcd_file", open_xrcd_file, close_xrcd },
};

FAULT_GROUP(queue, open_base, close_base);
