/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dispatch vfio-user requests to their handlers.
 */
#ifndef ORNICD_VFU_COMMAND_H
#define ORNICD_VFU_COMMAND_H

#include "endpoint.h"
#include "message.h"

int vfu_command(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_payload(const struct vfu_msg *m, void *req, size_t size);
void vfu_answer(struct vfu_msg *m, const void *data, size_t size);

/* One function per message, grouped by subject: version.c, dma.c, region.c, irq.c */
int vfu_version(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_dma_map(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_dma_unmap(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_get_region_info(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_region_read(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_region_write(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_region_write_multi(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_get_irq_info(struct vfu_endpoint *ep, struct vfu_msg *m);
int vfu_set_irqs(struct vfu_endpoint *ep, struct vfu_msg *m);

#endif /* ORNICD_VFU_COMMAND_H */
