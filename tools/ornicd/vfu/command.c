// SPDX-License-Identifier: GPL-2.0
/*
 * Dispatch of vfio-user requests.
 *
 * Two kinds of errors are distinguished. A request for something that this device
 * does not have or allow gets an error reply, and the connection stays open, because
 * VMMs probe. A request that breaks the protocol (too short for its own fields, out of
 * order) gets an error reply and ends the connection: later messages cannot be trusted.
 */
#include "command.h"

#include "../log.h"

#include <errno.h>
#include <string.h>

int vfu_payload(struct vfu_endpoint *ep, const struct vfu_msg *m, void *req, size_t size)
{
	if (m->len < size) {
		log_from(&ep->func->log, LOG_ERR, "request %u has %zu bytes of payload, needs %zu",
			 m->hdr.cmd, m->len, size);
		return VFU_CLOSE(EINVAL);
	}
	memcpy(req, m->payload, size);
	return 0;
}

void vfu_answer(struct vfu_msg *m, const void *data, size_t size)
{
	memcpy(m->out + m->out_len, data, size);
	m->out_len += size;
}

static int vfu_get_info(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	struct vfu_device_info info;
	int err = vfu_payload(ep, m, &info, sizeof(info));

	if (err)
		return err;
	if (info.argsz < sizeof(info))
		return -EINVAL;
	info = (struct vfu_device_info){
		.argsz = sizeof(info),
		.flags = VFU_DEVICE_F_RESET | VFU_DEVICE_F_PCI,
		.num_regions = VFU_NUM_REGIONS,
		.num_irqs = VFU_NUM_IRQS,
	};
	vfu_answer(m, &info, sizeof(info));
	return 0;
}

static int vfu_device_reset(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	(void)m;
	endpoint_reset(ep, VFU_RESET_DEVICE);
	return 0;
}

static const struct {
	const char *name;
	int (*handle)(struct vfu_endpoint *ep, struct vfu_msg *m);
} vfu_commands[] = {
	[VFU_VERSION] = { "VERSION", vfu_version },
	[VFU_DMA_MAP] = { "DMA_MAP", vfu_dma_map },
	[VFU_DMA_UNMAP] = { "DMA_UNMAP", vfu_dma_unmap },
	[VFU_DEVICE_GET_INFO] = { "DEVICE_GET_INFO", vfu_get_info },
	[VFU_GET_REGION_INFO] = { "DEVICE_GET_REGION_INFO", vfu_get_region_info },
	[VFU_GET_IRQ_INFO] = { "DEVICE_GET_IRQ_INFO", vfu_get_irq_info },
	[VFU_SET_IRQS] = { "DEVICE_SET_IRQS", vfu_set_irqs },
	[VFU_REGION_READ] = { "REGION_READ", vfu_region_read },
	[VFU_REGION_WRITE] = { "REGION_WRITE", vfu_region_write },
	[VFU_DEVICE_RESET] = { "DEVICE_RESET", vfu_device_reset },
	[VFU_REGION_WRITE_MULTI] = { "REGION_WRITE_MULTI", vfu_region_write_multi },
};

int vfu_command(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	unsigned int cmd = m->hdr.cmd;
	struct log_source *log = &ep->func->log;
	bool version = cmd == VFU_VERSION;
	int err;

	if (ep->negotiated == version) {
		log_from(log, LOG_ERR, "client sent request %u %s the version was agreed on", cmd,
			 ep->negotiated ? "after" : "before");
		return VFU_CLOSE(EINVAL);
	}
	if (cmd >= sizeof(vfu_commands) / sizeof(vfu_commands[0]) || !vfu_commands[cmd].handle) {
		log_from(log, LOG_INFO, "request %u is not supported", cmd);
		return -ENOTSUP;
	}
	err = vfu_commands[cmd].handle(ep, m);
	if (err <= VFU_CLOSE(0))
		log_from(log, LOG_ERR, "%s breaks the protocol, closing the connection",
			 vfu_commands[cmd].name);
	else if (err < 0)
		log_from(log, LOG_DEBUG, "%s: %s", vfu_commands[cmd].name, strerror(-err));
	return err;
}
