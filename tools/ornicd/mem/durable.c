// SPDX-License-Identifier: GPL-2.0
/*
 * Handles of memory files that can be made durable: see durable.h.
 */
#include "durable.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Return true if a loss of power destroys the file; those of memfd_create() are on tmpfs, too. */
static bool lives_in_memory(int fd)
{
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return true;
	switch ((unsigned long)st.f_type) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case HUGETLBFS_MAGIC:
		return true;
	default:
		return false;
	}
}

struct durable *durable_new(int fd)
{
	struct durable *d;

	if (lives_in_memory(fd))
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (d->fd < 0) {
		free(d);
		return NULL;
	}
	d->refs = 1;
	return d;
}

struct durable *durable_get(struct durable *d)
{
	if (d)
		d->refs++;
	return d;
}

void durable_put(struct durable *d)
{
	if (!d || --d->refs)
		return;
	close(d->fd);
	free(d);
}
