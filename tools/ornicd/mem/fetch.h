/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Take bytes that a guest can change at any moment, once; judge the copy.
 *
 * A plain memcpy() would do if the compiler did not know what memcpy() is: it
 * may drop the copy and read the guest's bytes again after the check. The empty
 * asm makes it believe that the source changes and the copy is needed.
 */
#ifndef ORNICD_MEM_FETCH_H
#define ORNICD_MEM_FETCH_H

#include <stddef.h>
#include <string.h>

/**
 * fetch() - private copy of guest bytes
 * @dst:	memory of the daemon
 * @src:	pointer from gpa_ptr() or gpa_span()
 * @len:	bytes
 */
static inline void fetch(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	__asm__ __volatile__("" : : "r" (dst), "r" (src) : "memory");
}

#endif /* ORNICD_MEM_FETCH_H */
