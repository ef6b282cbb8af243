/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that pin user memory. Kernels up to 6.12 at least name ib_umem_get_va() ib_umem_get()
 * and have no attributes for the memory of a CQ. 6.1 lacks pinned DMA buffers that their exporter
 * can revoke.
 */
#ifndef ORNIC_COMPAT_IB_UMEM_H
#define ORNIC_COMPAT_IB_UMEM_H

#include_next <rdma/ib_umem.h>

#ifndef ORNIC_HAVE_IB_UMEM_GET_VA
static inline struct ib_umem *ib_umem_get_va(struct ib_device *device, unsigned long addr,
					     size_t size, int access)
{
	return ib_umem_get(device, addr, size, access);
}
#endif

/* This kernel has no attributes that name the memory, or it does not pass them to this driver. */
#ifndef ORNIC_HAVE_IB_UMEM_CQ_BUF
struct uverbs_attr_bundle;

static inline struct ib_umem *ib_umem_get_cq_buf(struct ib_device *device,
						 const struct uverbs_attr_bundle *attrs,
						 size_t size, int access)
{
	return NULL;
}
#endif

/* This kernel does not let exporters revoke pinned memory, so the lock functions are empty. */
#ifndef ORNIC_HAVE_IB_UMEM_REVOCABLE
static inline struct ib_umem_dmabuf *
ib_umem_dmabuf_get_pinned_revocable_and_lock(struct ib_device *device, unsigned long offset,
					     size_t size, int fd, int access)
{
	return ib_umem_dmabuf_get_pinned(device, offset, size, fd, access);
}

static inline void ib_umem_dmabuf_set_revoke_locked(struct ib_umem_dmabuf *dmabuf,
						    void (*revoke)(void *priv), void *priv)
{
}

static inline void ib_umem_dmabuf_revoke_lock(struct ib_umem_dmabuf *dmabuf)
{
}

static inline void ib_umem_dmabuf_revoke_unlock(struct ib_umem_dmabuf *dmabuf)
{
}
#endif

#endif
