/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Page lists: how a command describes a buffer (buf.h), or part of one, to the device.
 */
#ifndef ORNIC_IB_PAGELIST_H
#define ORNIC_IB_PAGELIST_H

#include <linux/types.h>

#include <linux/ornic/hw/ring.h>

struct ornic_ib_dev;
struct ornic_ib_kbuf;
struct ornic_ib_ubuf;

/* One array of a page list. */
struct ornic_ib_leaf {
	__le64 *entries;
	dma_addr_t dma;
};

/**
 * struct ornic_ib_pagelist - part of an ornic_ib_ubuf or ornic_ib_kbuf as the device reads it
 * @desc: descriptor for the command
 * @leaf: arrays of page addresses
 * @leaves: number of arrays
 * @top: level 2 only: array of the addresses of the arrays
 *
 * The list must exist until its command has completed (ORN-MEM-1).
 */
struct ornic_ib_pagelist {
	struct ornic_pages desc;
	struct ornic_ib_leaf *leaf;
	u32 leaves;
	struct ornic_ib_leaf top;
};

int ornic_ib_pagelist_build(struct ornic_ib_dev *dev, struct ornic_ib_pagelist *list,
			    const struct ornic_ib_ubuf *ubuf, u64 offset, u64 bytes);
int ornic_ib_pagelist_kernel(struct ornic_ib_dev *dev, struct ornic_ib_pagelist *list,
			     const struct ornic_ib_kbuf *kbuf, size_t offset, size_t bytes);
void ornic_ib_pagelist_free(struct ornic_ib_dev *dev, struct ornic_ib_pagelist *list);

#endif
