/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All differences between kernel releases. The modules are written for the
 * newest kernel; this file, force-included in builds outside the kernel tree,
 * gives its names to older ones. ORNIC_HAVE_* come from probe.mk.
 *
 * Macros only, as far as possible: most files need none of the headers behind.
 * Whole headers that an older kernel lacks are in compat/.
 */
#ifndef LINUX_ORNIC_COMPAT_H
#define LINUX_ORNIC_COMPAT_H

#include <linux/version.h>

/* User memory by address. */
#ifndef ORNIC_HAVE_IB_UMEM_GET_VA
#define ib_umem_get_va(device, addr, size, access) ib_umem_get(device, addr, size, access)
#endif

/* Extra argument of reg_user_mr and reg_user_mr_dmabuf. */
#ifdef ORNIC_HAVE_IB_DMAH
#define ORNIC_DMAH_ARG struct ib_dmah *dmah,
#else
#define ORNIC_DMAH_ARG
#endif

#endif
