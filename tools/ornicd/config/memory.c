// SPDX-License-Identifier: GPL-2.0
/*
 * Parse the keys of a device's guest memory: "memory=2T,memory-files=1024".
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_MIN	4096ull
#define MEMORY_MAX	(1ull << 46)	/* half of what a process of x86-64 has */
#define FILES_MAX	65535		/* pieces of guest memory: see mem/gpa.h */

int config_scaled(const char *text, const char *letters, uint64_t unit, uint64_t *out)
{
	const char *letter;
	uint64_t v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	letter = *end ? strchr(letters, toupper((unsigned char)*end)) : NULL;
	if (*end && (!letter || end[1]))
		return -EINVAL;
	for (; letter && letter >= letters; letter--)
		if (__builtin_mul_overflow(v, unit, &v))
			return -EINVAL;
	*out = v;
	return 0;
}

int config_memory(const char *text, const char *val, uint64_t *out)
{
	uint64_t v;

	if (!val)
		return 0;
	if (config_scaled(val, "KMGT", 1024, &v) || v < MEMORY_MIN || v > MEMORY_MAX) {
		log_err("\"%s\": memory=%s is not a number of bytes from 4K to 64T", text, val);
		return -EINVAL;
	}
	*out = v;
	return 0;
}

int config_memory_files(const char *text, uint64_t n)
{
	if (n >= 1 && n <= FILES_MAX)
		return 0;
	log_err("\"%s\": the number of memory files must be from 1 to %d", text, FILES_MAX);
	return -EINVAL;
}
