/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The endpoint behind one socket: a function with its configuration space, vectors and
 * DMA addresses. Every request of a client that changes the function's state passes
 * through here, so that resets and state changes happen in one order.
 */
#ifndef ORNICD_VFU_ENDPOINT_H
#define ORNICD_VFU_ENDPOINT_H

#include "func.h"
#include "msix.h"
#include "pci.h"
#include "proto.h"

#include "../mem/gpa.h"

/**
 * struct vfu_endpoint - a function and the server's state for it
 * @func:	the function
 * @pci:	configuration space
 * @msix:	vectors
 * @gpa:	DMA addresses
 * @negotiated:	the client's first message was a good VFU_VERSION
 * @client_xfer: most bytes the client takes in one reply
 * @shared_memory: the client has mapped memory with a descriptor
 * @map:	VFU_DMA_MAP that waits for the mapper
 * @answer:	called with the result of the request that returned VFU_WAIT, 0 or a negative errno
 * @arg:	argument of @answer
 */
struct vfu_endpoint {
	struct vfu_func *func;
	struct pci_cfg pci;
	struct msix msix;
	struct gpa *gpa;
	bool negotiated;
	uint32_t client_xfer;
	bool shared_memory;
	struct vfu_dma_map map;
	void (*answer)(void *arg, int err);
	void *arg;
};

/**
 * endpoint_init() - put a function behind an endpoint
 * @ep:		endpoint
 * @func:	function, filled in as func.h says
 *
 * Return: 0 or a negative errno.
 */
int endpoint_init(struct vfu_endpoint *ep, struct vfu_func *func);

/**
 * endpoint_use_mapper() - let a mapper do what a client's descriptors can block
 * @ep:		endpoint without a client
 * @m:		mapper; ends after endpoint_destroy()
 */
void endpoint_use_mapper(struct vfu_endpoint *ep, struct mapper *m);

/**
 * endpoint_destroy() - undo endpoint_init(); no client is attached
 * @ep:	endpoint
 */
void endpoint_destroy(struct vfu_endpoint *ep);

/**
 * endpoint_attach() - attach a client that has agreed on a version
 * @ep:	endpoint
 */
void endpoint_attach(struct vfu_endpoint *ep);

/**
 * endpoint_detach() - reset the function and remove memory and eventfds after a client is gone
 * @ep:	endpoint; ignored if its client never agreed on a version
 */
void endpoint_detach(struct vfu_endpoint *ep);

/**
 * endpoint_reset() - reset function and configuration space
 * @ep:		endpoint
 * @why:	reason, for the function
 *
 * Guest memory stays mapped and the eventfds stay assigned.
 */
void endpoint_reset(struct vfu_endpoint *ep, enum vfu_reset why);

/**
 * endpoint_config_write() - carry out a configuration write of the guest
 * @ep:		endpoint
 * @off:	first byte
 * @buf:	bytes to write
 * @len:	bytes; @off + @len is at most PCI_CFG_SIZE
 */
void endpoint_config_write(struct vfu_endpoint *ep, uint32_t off, const void *buf, size_t len);

#endif /* ORNICD_VFU_ENDPOINT_H */
