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
 */
struct vfu_endpoint {
	struct vfu_func *func;
	struct pci_cfg pci;
	struct msix msix;
	struct gpa *gpa;
	bool negotiated;
	uint32_t client_xfer;
	bool shared_memory;
};

int endpoint_init(struct vfu_endpoint *ep, struct vfu_func *func);
void endpoint_destroy(struct vfu_endpoint *ep);
void endpoint_attach(struct vfu_endpoint *ep);
void endpoint_detach(struct vfu_endpoint *ep);
void endpoint_reset(struct vfu_endpoint *ep, enum vfu_reset why);
void endpoint_config_write(struct vfu_endpoint *ep, uint32_t off, const void *buf, size_t len);

#endif /* ORNICD_VFU_ENDPOINT_H */
