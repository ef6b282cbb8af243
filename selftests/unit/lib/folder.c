// SPDX-License-Identifier: GPL-2.0
/* Count the entries of a folder. */
#define _GNU_SOURCE 1	/* usleep() */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"

unsigned int folder_entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

bool descriptors_become(unsigned int want)
{
	for (int i = 0; descriptors() != want; i++) {
		if (i == 5000) {
			print_error("%u descriptors, not %u\n", descriptors(), want);
			return false;
		}
		usleep(1000);
	}
	return true;
}
