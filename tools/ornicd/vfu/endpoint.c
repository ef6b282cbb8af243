// SPDX-License-Identifier: GPL-2.0
/*
 * Life of an endpoint: attach, enable, reset, detach.
 *
 * The order is always the same: bus master off, so that the function starts no DMA;
 * then reset; then memory and vectors are removed.
 */
#include "endpoint.h"

#include "command.h"

#include "../log.h"

#include <errno.h>
#include <string.h>

int endpoint_init(struct vfu_endpoint *ep, struct vfu_func *func)
{
	int err;

	memset(ep, 0, sizeof(*ep));
	ep->func = func;
	err = pci_init(&ep->pci, func);
	if (err)
		return err;
	err = msix_init(&ep->msix, func->nvectors, &func->log);
	if (err)
		return err;
	ep->gpa = gpa_new(&func->log);
	if (!ep->gpa) {
		msix_destroy(&ep->msix);
		return -ENOMEM;
	}
	ep->gpa->mapped = vfu_dma_mapped;
	ep->gpa->arg = ep;
	func->ep = ep;
	func->gpa = ep->gpa;
	func->bus_master = false;
	return 0;
}

void endpoint_use_mapper(struct vfu_endpoint *ep, struct mapper *m)
{
	ep->msix.mapper = m;
	backing_use_mapper(&ep->gpa->pool, m);
}

void endpoint_destroy(struct vfu_endpoint *ep)
{
	ep->func->ep = NULL;
	ep->func->gpa = NULL;
	gpa_free(ep->gpa);
	msix_destroy(&ep->msix);
}

void vfu_irq(struct vfu_func *f, unsigned int vector)
{
	msix_fire(&f->ep->msix, vector);
}

/*
 * Warn if the client has never mapped memory with a descriptor. Do not use the current table for
 * this, because it may still be empty behind a virtual IOMMU.
 */
static void endpoint_warn_memory(struct vfu_endpoint *ep)
{
	if (!ep->shared_memory)
		log_from(&ep->func->log, LOG_WARN,
			 "guest memory is not shared, DMA will fail: give the VM its RAM by -object memory-backend-memfd,share=on");
}

/* Make the function follow COMMAND.BusMaster and the power state. */
static void endpoint_follow_enable(struct vfu_endpoint *ep)
{
	bool on = pci_bus_master(&ep->pci) && !pci_d3hot(&ep->pci);
	struct vfu_func *f = ep->func;

	if (on == f->bus_master)
		return;
	if (on)
		endpoint_warn_memory(ep);
	f->bus_master = on;
	if (!on)
		msix_enable(&ep->msix, false);
	if (f->ops->bus_master)
		f->ops->bus_master(f, on);
	if (on)
		msix_enable(&ep->msix, true);
}

/*
 * Keep the eventfds: QEMU 11.1 keeps its MSI-X state over a reset and sends the eventfds
 * again only when the guest restores its vectors.
 */
void endpoint_reset(struct vfu_endpoint *ep, enum vfu_reset why)
{
	pci_reset(&ep->pci);
	endpoint_follow_enable(ep);
	ep->func->ops->reset(ep->func, why);
	msix_forget_pending(&ep->msix);
}

void endpoint_attach(struct vfu_endpoint *ep)
{
	ep->negotiated = true;
}

void endpoint_detach(struct vfu_endpoint *ep)
{
	if (!ep->negotiated)
		return;
	endpoint_reset(ep, VFU_RESET_DISCONNECT);
	msix_release(&ep->msix, 0, ep->msix.n);
	gpa_unmap_all(ep->gpa);
	ep->negotiated = false;
	ep->shared_memory = false;
}

void endpoint_config_write(struct vfu_endpoint *ep, uint32_t off, const void *buf, size_t len)
{
	unsigned int events = pci_write(&ep->pci, off, buf, len);
	const struct vfu_func_ops *ops = ep->func->ops;

	if (events & PCI_EVENT_FLR) {
		endpoint_reset(ep, VFU_RESET_FLR);
		return;
	}
	if (events & PCI_EVENT_ENABLE)
		endpoint_follow_enable(ep);
	if ((events & PCI_EVENT_POWER) && ops->power_state)
		ops->power_state(ep->func, pci_d3hot(&ep->pci));
}
