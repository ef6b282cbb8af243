/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What /dev/ornic_exporter does. Each open file is one DMA buffer.
 */
#ifndef ORNIC_EXPORTER_H
#define ORNIC_EXPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Allocate so many bytes, whole pages in one piece; returns the buffer's file descriptor. */
#define EXPORTER_EXPORT		_IOW('o', 1, __u64)

/*
 * Take the memory away from every device, for good. EBUSY if one did not let go. Processes
 * still see the memory, to find out whether a device writes there.
 */
#define EXPORTER_REVOKE		_IO('o', 2)

#endif
