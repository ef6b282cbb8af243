/* SPDX-License-Identifier: GPL-2.0 */
/* vm_flags_set() for kernels without it (6.1), where drivers write vma->vm_flags themselves. */
#ifndef ORNIC_COMPAT_MM_H
#define ORNIC_COMPAT_MM_H

#include_next <linux/mm.h>

#ifndef ORNIC_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

#endif
