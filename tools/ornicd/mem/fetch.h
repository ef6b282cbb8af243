/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Read bytes once that a guest can change at any moment; validate and use the copy.
 *
 * memcpy() alone is not enough: the compiler may drop the copy and read the guest's bytes
 * again after the check. The empty asm statement makes the compiler assume that the source
 * changes and that the copy is used.
 */
#ifndef ORNICD_MEM_FETCH_H
#define ORNICD_MEM_FETCH_H

#include <stddef.h>
#include <string.h>

/**
 * fetch() - copy guest bytes to private memory
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
