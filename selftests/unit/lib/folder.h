/* SPDX-License-Identifier: GPL-2.0 */
/* Count files and open descriptors, to find what a test leaves behind. */
#ifndef UNIT_LIB_FOLDER_H
#define UNIT_LIB_FOLDER_H

#include <stdbool.h>

/* folder_entries() - return the number of entries of folder @path, "." and ".." included */
unsigned int folder_entries(const char *path);

/* descriptors() - return the number of open descriptors plus a constant */
static inline unsigned int descriptors(void)
{
	return folder_entries("/proc/self/fd");
}

/*
 * descriptors_become() - wait up to 5 s until descriptors() is @want, because a thread of the
 * daemon closes some
 */
bool descriptors_become(unsigned int want);

#endif /* UNIT_LIB_FOLDER_H */
