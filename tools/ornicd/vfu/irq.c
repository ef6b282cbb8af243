// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts as the client sees them: kinds, and the eventfd of each vector.
 *
 * The function has MSI-X only. NORESIZE is not set: with it QEMU 11.1 disables MSI-X and
 * sends all eventfds again for each vector that the guest unmasks. Without it QEMU sends
 * one eventfd per unmasked vector. QEMU starts with an assignment without a descriptor,
 * which enables MSI-X.
 */
#include "command.h"

#include "../log.h"

#include <errno.h>
#include <string.h>

/**
 * vfu_get_irq_info() - VFU_GET_IRQ_INFO: report the number of vectors of a kind
 * @ep:	endpoint
 * @m:	request
 *
 * Reject the error interrupt: if it exists, QEMU 11.1 stops the whole virtual machine
 * when it fires. QEMU does not use it after an error reply.
 *
 * Return: 0, a negative errno, or VFU_CLOSE().
 */
int vfu_get_irq_info(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	struct vfu_irq_info info;
	int err;

	err = vfu_payload(ep, m, &info, sizeof(info));
	if (err)
		return err;
	if (info.argsz < sizeof(info) || info.index >= VFU_NUM_IRQS || info.index == VFU_IRQ_ERR)
		return -EINVAL;
	info.argsz = sizeof(info);
	info.flags = 0;
	info.count = 0;
	if (info.index == VFU_IRQ_MSIX && ep->msix.n) {
		info.flags = VFU_IRQ_F_EVENTFD;
		info.count = ep->msix.n;
	}
	vfu_answer(m, &info, sizeof(info));
	return 0;
}

static int irq_assign(struct vfu_endpoint *ep, const struct vfu_set_irqs *req, struct vfu_msg *m)
{
	int err;

	if (!m->nfd) {
		msix_release(&ep->msix, req->start, req->count);
		return 0;
	}
	if (m->nfd != req->count)
		return -EINVAL;
	for (unsigned int i = 0; i < m->nfd; i++) {
		err = msix_assign(&ep->msix, req->start + i, m->fd[i]);
		if (err == -EMFILE)
			log_from(&ep->func->log, LOG_WARN,
				 "no descriptor is left for interrupt %u of the device; raise the hard limit of open files",
				 req->start + i);
		if (err)
			return err;
		m->fd[i] = -1;
	}
	return 0;
}

/*
 * Raise interrupts on request of the client, which uses this to test the path. Each counts as a
 * message, so that other devices do not wait for many.
 */
static int irq_loopback(struct vfu_endpoint *ep, const struct vfu_set_irqs *req,
			struct vfu_msg *m)
{
	const uint8_t *want = m->payload + sizeof(*req);

	if ((req->flags & VFU_SET_F_BOOL) && m->len - sizeof(*req) < req->count)
		return -EINVAL;
	for (uint32_t i = 0; i < req->count; i++)
		if (!(req->flags & VFU_SET_F_BOOL) || want[i])
			msix_fire(&ep->msix, req->start + i);
	m->work -= req->count < m->work ? req->count : m->work;
	return 0;
}

static int irq_check(const struct vfu_endpoint *ep, const struct vfu_set_irqs *req)
{
	uint32_t data = req->flags & VFU_SET_F_DATA;

	if (req->argsz < sizeof(*req) || req->index >= VFU_NUM_IRQS)
		return -EINVAL;
	/* Vectors cannot be masked here: triggering is the only action left. */
	if ((req->flags & ~VFU_SET_F_DATA) != VFU_SET_F_TRIGGER)
		return -EINVAL;
	if (data != VFU_SET_F_NONE && data != VFU_SET_F_BOOL && data != VFU_SET_F_EVENTFD)
		return -EINVAL;
	if (!req->count)
		return req->start || data != VFU_SET_F_NONE ? -EINVAL : 0;
	if (req->index != VFU_IRQ_MSIX || req->start >= ep->msix.n ||
	    req->count > ep->msix.n - req->start)
		return -EINVAL;
	return 0;
}

/**
 * vfu_set_irqs() - VFU_SET_IRQS: assign or remove eventfds, or trigger interrupts
 * @ep:	endpoint
 * @m:	request
 *
 * Return: 0, a negative errno, or VFU_CLOSE().
 */
int vfu_set_irqs(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	struct vfu_set_irqs req;
	int err;

	err = vfu_payload(ep, m, &req, sizeof(req));
	if (err)
		return err;
	err = irq_check(ep, &req);
	if (err)
		return err;
	if (!req.count) {
		if (req.index == VFU_IRQ_MSIX) {
			msix_release(&ep->msix, 0, ep->msix.n);
			msix_forget_pending(&ep->msix);
		}
		return 0;
	}
	if (req.flags & VFU_SET_F_EVENTFD)
		return irq_assign(ep, &req, m);
	return irq_loopback(ep, &req, m);
}
