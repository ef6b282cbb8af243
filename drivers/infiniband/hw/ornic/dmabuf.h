/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory regions of DMA buffers, whose exporter may revoke the memory.
 */
#ifndef ORNIC_IB_DMABUF_H
#define ORNIC_IB_DMABUF_H

#include <linux/types.h>

struct ornic_ib_dev;
struct ornic_ib_mr;
struct ornic_ib_ubuf;

int ornic_ib_dmabuf_pin_and_lock(struct ornic_ib_dev *dev, struct ornic_ib_ubuf *ubuf, int fd,
				 u64 offset, u64 size, u64 iova, int access);
void ornic_ib_dmabuf_unlock(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr, bool made);
void ornic_ib_dmabuf_key_destroy(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr);

#endif
