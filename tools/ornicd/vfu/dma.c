// SPDX-License-Identifier: GPL-2.0
/*
 * DMA_MAP and DMA_UNMAP: the client adds and removes guest memory.
 *
 * The data path does not run while a message is handled. A range is therefore unused as
 * soon as it is removed from the table, and the reply need not wait.
 */
#include "command.h"

#include "../log.h"

#include <errno.h>
#include <string.h>

static bool dma_aligned(uint64_t val)
{
	return !(val & (VFU_PAGE_SIZE - 1));
}

static int add_piece(struct vfu_endpoint *ep, const struct vfu_msg *m,
		     const struct vfu_dma_map *req)
{
	int fd = m->nfd ? m->fd[0] : -1;
	unsigned int prot = (req->flags & VFU_DMA_F_READ ? GPA_READ : 0) |
			    (req->flags & VFU_DMA_F_WRITE ? GPA_WRITE : 0);
	int err;

	if (req->argsz < sizeof(*req) || req->flags & ~(VFU_DMA_F_READ | VFU_DMA_F_WRITE) ||
	    m->nfd > 1 || !dma_aligned(req->addr | req->size | req->offset))
		return -EINVAL;
	err = gpa_map(ep->gpa, req->addr, req->size, prot, fd, req->offset);
	if (err)
		return err;
	ep->shared_memory |= fd >= 0;
	log_from(&ep->func->log, LOG_DEBUG, "map %#llx+%#llx offset %#llx%s%s",
		 (unsigned long long)req->addr, (unsigned long long)req->size,
		 (unsigned long long)req->offset, fd < 0 ? ", no descriptor" : "",
		 prot & GPA_WRITE ? "" : ", read-only");
	return 0;
}

/**
 * vfu_dma_map() - VFU_DMA_MAP: add a piece of guest memory
 * @ep:	endpoint
 * @m:	request, with a descriptor if the memory is shared
 *
 * Warn on failure: QEMU 11.1 only prints an error reply and lets the guest run on.
 *
 * Return: 0, a negative errno, or VFU_CLOSE().
 */
int vfu_dma_map(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	struct vfu_dma_map req;
	int err;

	err = vfu_payload(ep, m, &req, sizeof(req));
	if (err)
		return err;
	err = add_piece(ep, m, &req);
	if (err)
		log_from(&ep->func->log, LOG_WARN, "cannot map guest memory %#llx+%#llx: %s",
			 (unsigned long long)req.addr, (unsigned long long)req.size,
			 strerror(-err));
	return err;
}

static int dma_unmap_all(struct vfu_endpoint *ep, const struct vfu_dma_unmap *req)
{
	if (req->addr || req->size)
		return -EINVAL;
	gpa_unmap_all(ep->gpa);
	return 0;
}

/**
 * vfu_dma_unmap() - VFU_DMA_UNMAP: remove guest memory
 * @ep:	endpoint
 * @m:	request
 *
 * Return: 0, a negative errno, or VFU_CLOSE().
 */
int vfu_dma_unmap(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	struct vfu_dma_unmap req;
	int err;

	err = vfu_payload(ep, m, &req, sizeof(req));
	if (err)
		return err;
	if (req.argsz < sizeof(req) || req.flags & ~VFU_DMA_F_UNMAP_ALL)
		return -EINVAL;
	log_from(&ep->func->log, LOG_DEBUG, "unmap %#llx+%#llx%s", (unsigned long long)req.addr,
		 (unsigned long long)req.size, req.flags ? ", all" : "");
	if (req.flags & VFU_DMA_F_UNMAP_ALL)
		err = dma_unmap_all(ep, &req);
	else
		err = gpa_unmap(ep->gpa, req.addr, req.size);
	if (!err)
		vfu_answer(m, &req, sizeof(req));
	return err;
}
