// SPDX-License-Identifier: GPL-2.0
/*
 * Detect files of FUSE: see fuse.h.
 */
#define _GNU_SOURCE 1	/* statx(), F_GET_SEALS */

#include "fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Most mounts of a client that are searched, because a client can make its list very long */
#define CLIENT_MOUNTS	1000u

#define NO_MOUNT	UINT_MAX

/* A mount, or if its id is NO_MOUNT any mount of the file system with that device number */
struct mount {
	unsigned int id;
	unsigned int major;
	unsigned int minor;
	bool fuse;
};

/* Return true if a line of a list of mounts is @m, or another mount of its file system; fill @m. */
static bool parse(const char *line, struct mount *m)
{
	const char *type = strstr(line, " - ");		/* spaces in paths are escaped */
	unsigned int id, major, minor;

	if (!type || sscanf(line, "%u %*u %u:%u", &id, &major, &minor) != 3)
		return false;
	if (id != m->id && (major != m->major || minor != m->minor))
		return false;
	m->major = major;
	m->minor = minor;
	m->fuse = !strncmp(type, " - fuse", 7);
	return true;
}

/*
 * Find @m among the first @max mounts of a list.
 * Return: 0, -ENOENT if they lack it, or a negative errno of reading the list.
 */
static int find(const char *list, unsigned int max, struct mount *m)
{
	FILE *f = fopen(list, "re");
	char *line = NULL;
	int ret = -ENOENT;
	size_t size = 0;

	if (!f)
		return -errno;
	while (ret == -ENOENT && max-- && !feof(f)) {
		if (getline(&line, &size, f) < 0)
			ret = feof(f) ? -ENOENT : -errno;
		else if (parse(line, m))
			ret = 0;
	}
	free(line);
	fclose(f);
	return ret;
}

/* Find @m in the daemon's own list. Return: as find(). */
static int find_own(struct mount *m)
{
	return find("/proc/self/mountinfo", UINT_MAX, m);
}

/*
 * Find the file system of @m, a mount that only the client's namespace has. A list that cannot be
 * read tells nothing. Return: as find_own().
 */
static int find_by_client(struct mount *m, pid_t client)
{
	char list[40];

	snprintf(list, sizeof(list), "/proc/%d/mountinfo", client);
	if (!client || find(list, CLIENT_MOUNTS, m) < 0)
		return -ENOENT;
	m->id = NO_MOUNT;
	return find_own(m);
}

int fuse_possible(int fd, const struct statx *st, pid_t client)
{
	struct mount m = {
		.id = st->stx_mask & STATX_MNT_ID ? st->stx_mnt_id : NO_MOUNT,
		.major = st->stx_dev_major,
		.minor = st->stx_dev_minor,
	};
	int err = find_own(&m);

	if (err == -ENOENT && fcntl(fd, F_GET_SEALS) >= 0)
		return 0;
	if (err == -ENOENT)
		err = find_by_client(&m, client);
	if (err == -ENOENT)
		return 1;
	return err < 0 ? err : m.fuse;
}
