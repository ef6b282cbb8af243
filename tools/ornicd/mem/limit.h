/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much memory this process may use.
 */
#ifndef ORNICD_MEM_LIMIT_H
#define ORNICD_MEM_LIMIT_H

#include <stdint.h>

/**
 * memory_limit() - find the smallest limit of this process's memory
 * @root:	folder that has /proc and /sys: "" but in tests
 * @ram:	memory of the host, bytes
 *
 * Return: @ram, or the smallest limit of the memory control groups (version 1 and 2) that this process
 * is in, bytes.
 */
uint64_t memory_limit(const char *root, uint64_t ram);

/* memory_of_host() - return the memory of the host, bytes */
uint64_t memory_of_host(void);

#endif /* ORNICD_MEM_LIMIT_H */
