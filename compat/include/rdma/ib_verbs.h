/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Constants of FLUSH and ATOMIC WRITE for kernels without them (6.1). The ib_core of these kernels
 * rejects them before it calls the driver.
 */
#ifndef ORNIC_COMPAT_IB_VERBS_H
#define ORNIC_COMPAT_IB_VERBS_H

#include_next <rdma/ib_verbs.h>

#ifndef ORNIC_HAVE_IB_FLUSH
#define IB_ACCESS_FLUSH_GLOBAL BIT(8)
#define IB_ACCESS_FLUSH_PERSISTENT BIT(9)
#define IB_DEVICE_FLUSH_GLOBAL BIT_ULL(38)
#define IB_DEVICE_FLUSH_PERSISTENT BIT_ULL(39)
#define IB_DEVICE_ATOMIC_WRITE BIT_ULL(40)
#define IB_WR_ATOMIC_WRITE 15
#endif

/*
 * On an older kernel that header replaces struct ib_device_ops. Include it here, so that a file
 * that includes only <rdma/ib_verbs.h> uses the replacement, too.
 */
#include <rdma/uverbs_ioctl.h>

#endif
