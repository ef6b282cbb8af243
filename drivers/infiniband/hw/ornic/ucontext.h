/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User contexts: a process, its doorbell page, and its id as owner of objects.
 */
#ifndef ORNIC_IB_UCONTEXT_H
#define ORNIC_IB_UCONTEXT_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

struct ornic_uresp_alloc_ucontext;

/* The driver itself, as owner or doorbell page of an object. */
#define ORNIC_IB_DRIVER		0

/**
 * struct ornic_ib_ucontext - context of a process
 * @ibucontext: ib_core's part
 * @dbpage: index of its doorbell page; also its id as owner of objects
 * @caps: ORNIC_UCONTEXT_CAP_* of its provider, and bits unknown to this driver
 * @db_entry: mapping entry, which owns that page
 */
struct ornic_ib_ucontext {
	struct ib_ucontext ibucontext;
	u32 dbpage;
	u32 caps;
	struct rdma_user_mmap_entry *db_entry;
};

static inline struct ornic_ib_ucontext *to_oucontext(struct ib_ucontext *ibucontext)
{
	return container_of(ibucontext, struct ornic_ib_ucontext, ibucontext);
}

/* Return the context of the process that called a verb, NULL for the kernel. */
static inline struct ornic_ib_ucontext *ornic_ib_caller(struct ib_udata *udata)
{
	return rdma_udata_to_drv_context(udata, struct ornic_ib_ucontext, ibucontext);
}

/* Return the doorbell page of the caller; also its id as owner of objects. */
static inline u32 ornic_ib_caller_page(struct ib_udata *udata)
{
	struct ornic_ib_ucontext *uctx = ornic_ib_caller(udata);

	return uctx ? uctx->dbpage : ORNIC_IB_DRIVER;
}

/* ucontext.c */
void ornic_ib_describe_ucontext(struct ornic_ib_ucontext *uctx,
				struct ornic_uresp_alloc_ucontext *resp);
int ornic_ib_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata);
void ornic_ib_dealloc_ucontext(struct ib_ucontext *ibucontext);
void ornic_ib_disassociate_ucontext(struct ib_ucontext *ibucontext);

/* import.c */
extern const struct uapi_definition ornic_ib_import_defs[];
int ornic_ib_query_ucontext(struct ib_ucontext *ibucontext, struct uverbs_attr_bundle *attrs);

#endif
