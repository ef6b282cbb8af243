// SPDX-License-Identifier: GPL-2.0
/*
 * DMA_MAP and DMA_UNMAP: the client adds and removes guest memory.
 *
 * The data path does not run while a message is handled. A range is therefore unused as
 * soon as it is removed from the table, and the reply need not wait. The mapper unmaps it later.
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

	if (req->argsz < sizeof(*req) || req->flags & ~(VFU_DMA_F_READ | VFU_DMA_F_WRITE) ||
	    m->nfd > 1 || !dma_aligned(req->addr | req->size | req->offset))
		return -EINVAL;
	return gpa_map(ep->gpa, req->addr, req->size, prot, fd, req->offset);
}

/* Log the result. Warn of a failure: QEMU 11.1 only prints an error reply and lets the guest run on. */
static void added(struct vfu_endpoint *ep, const struct vfu_dma_map *req, bool shared, int err)
{
	struct log_source *log = &ep->func->log;

	if (err) {
		log_from(log, LOG_WARN, "cannot map guest memory %#llx+%#llx: %s",
			 (unsigned long long)req->addr, (unsigned long long)req->size,
			 strerror(-err));
		return;
	}
	ep->shared_memory |= shared;
	log_from(log, LOG_DEBUG, "map %#llx+%#llx offset %#llx%s%s",
		 (unsigned long long)req->addr, (unsigned long long)req->size,
		 (unsigned long long)req->offset, shared ? "" : ", no descriptor",
		 req->flags & VFU_DMA_F_WRITE ? "" : ", read-only");
}

/**
 * vfu_dma_map() - VFU_DMA_MAP: add a piece of guest memory
 * @ep:	endpoint
 * @m:	request, with a descriptor if the memory is shared
 *
 * Return: 0, a negative errno, VFU_CLOSE() or VFU_WAIT.
 */
int vfu_dma_map(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	struct vfu_dma_map req;
	int err;

	err = vfu_payload(ep, m, &req, sizeof(req));
	if (err)
		return err;
	err = add_piece(ep, m, &req);
	if (err == -EINPROGRESS) {
		ep->map = req;
		return VFU_WAIT;
	}
	added(ep, &req, m->nfd, err);
	return err;
}

void vfu_dma_mapped(void *arg, int err)
{
	struct vfu_endpoint *ep = arg;

	added(ep, &ep->map, true, err);
	ep->answer(ep->arg, err);
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
