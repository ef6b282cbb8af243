// SPDX-License-Identifier: GPL-2.0
/*
 * Detect files of FUSE: see fuse.h.
 */
#define _GNU_SOURCE 1	/* statx() */

#include "fuse.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* Return true if a line of mountinfo is the file's mount, or another one of its file system. */
static bool names_mount(const char *line, const struct statx *st)
{
	unsigned int id, major, minor;

	if (sscanf(line, "%u %*u %u:%u", &id, &major, &minor) != 3)
		return false;
	return (st->stx_mask & STATX_MNT_ID && id == st->stx_mnt_id) ||
	       (major == st->stx_dev_major && minor == st->stx_dev_minor);
}

/* Get the type from the list of mounts. Return: as fuse_has(); -ENOENT if the list lacks it. */
static int listed(const struct statx *st)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	int ret = -ENOENT;
	size_t size = 0;

	if (!f)
		return -errno;
	while (ret == -ENOENT && getline(&line, &size, f) >= 0) {
		const char *type = strstr(line, " - ");	/* spaces in paths are escaped */

		if (type && names_mount(line, st))
			ret = !strncmp(type, " - fuse", 7);
	}
	if (ret == -ENOENT && !feof(f))
		ret = -errno;
	free(line);
	fclose(f);
	return ret;
}

int fuse_has(int fd, const struct statx *st)
{
	struct statfs fs;
	int ret = listed(st);

	if (ret != -ENOENT)
		return ret;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	return fs.f_type == FUSE_SUPER_MAGIC;
}
