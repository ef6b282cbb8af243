/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ioctls of /dev/ornic_exporter. Each open file is one DMA buffer.
 */
#ifndef ORNIC_EXPORTER_H
#define ORNIC_EXPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Allocate a contiguous buffer of whole pages, size in bytes. Returns its file descriptor. */
#define EXPORTER_EXPORT		_IOW('o', 1, __u64)

/*
 * Revoke the memory from all importers, for good. EBUSY if an importer did not unmap it.
 * Processes can still read the memory, to find out whether a device writes to it.
 */
#define EXPORTER_REVOKE		_IO('o', 2)

#endif
