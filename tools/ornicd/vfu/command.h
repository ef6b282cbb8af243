/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dispatch vfio-user requests to their handlers.
 */
#ifndef ORNICD_VFU_COMMAND_H
#define ORNICD_VFU_COMMAND_H

#include "endpoint.h"
#include "message.h"

/**
 * vfu_command() - handle one request
 * @ep:	endpoint it is for
 * @m:	request; the payload of the reply is put into it
 *
 * Return: 0, a negative errno, VFU_CLOSE(), VFU_MORE, or VFU_WAIT if @ep->answer() follows.
 */
int vfu_command(struct vfu_endpoint *ep, struct vfu_msg *m);

/**
 * vfu_payload() - copy the fixed part of a request
 * @ep:		endpoint it is for
 * @m:		request
 * @req:	destination
 * @size:	size of the fixed part, bytes
 *
 * Return: 0, or VFU_CLOSE() if the request is shorter.
 */
int vfu_payload(struct vfu_endpoint *ep, const struct vfu_msg *m, void *req, size_t size);

/**
 * vfu_answer() - append to the payload of the reply
 * @m:		request
 * @data:	bytes to append
 * @size:	number of bytes; all pieces together are at most VFU_MAX_PAYLOAD
 */
void vfu_answer(struct vfu_msg *m, const void *data, size_t size);

/*
 * Handlers, one per request, called by vfu_command(): version.c, dma.c, region.c, irq.c.
 * Return: 0, a negative errno, VFU_CLOSE(), from vfu_dma_map() VFU_WAIT, or from
 * vfu_region_write_multi() VFU_MORE.
 *
 * vfu_dma_mapped() - end a VFU_DMA_MAP that waited; @arg is the endpoint
 */
int vfu_version(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_dma_map(struct vfu_endpoint *ep, struct vfu_msg *m);
void vfu_dma_mapped(void *arg, int err);
int vfu_dma_unmap(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_get_region_info(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_region_read(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_region_write(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_region_write_multi(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_get_irq_info(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_set_irqs(struct vfu_endpoint *ep, struct vfu_msg *m);

#endif /* ORNICD_VFU_COMMAND_H */
