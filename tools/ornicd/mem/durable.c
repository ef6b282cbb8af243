// SPDX-License-Identifier: GPL-2.0
/*
 * Handles of memory files that can be made durable: see durable.h.
 */
#define _GNU_SOURCE 1	/* statx() */

#include "durable.h"

#include "mapper.h"

#include "../log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/**
 * struct closer - allocated with the file, so that closing it needs no memory
 * @job:	request to the mapper
 * @fd:		descriptor to be closed
 */
struct closer {
	struct mapper_job job;
	int fd;
};
static_assert(!offsetof(struct closer, job), "a job is its closer");

/* Files with users, and those that are remembered because they lost data */
static LIST_HEAD(, durable) durable_all = LIST_HEAD_INITIALIZER(durable_all);

struct durable_client *durable_client_new(struct log_source *log)
{
	struct durable_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->log = log;
	c->refs = 1;
	TAILQ_INIT(&c->lost);
	TAILQ_INIT(&c->todo);
	return c;
}

void durable_use_mapper(struct durable_client *c, struct mapper *m)
{
	c->mapper = mapper_get(m);
}

static void client_put(struct durable_client *c)
{
	if (--c->refs)
		return;
	mapper_put(c->mapper);
	free(c);
}

/* Forget the file that lost data longest ago. */
static void client_forget(struct durable_client *c)
{
	struct durable *d = TAILQ_FIRST(&c->lost);

	TAILQ_REMOVE(&c->lost, d, link);
	c->nlost--;
	LIST_REMOVE(d, all);
	free(d);
}

void durable_client_free(struct durable_client *c)
{
	if (!c)
		return;
	while (c->nlost)
		client_forget(c);
	c->gone = true;
	c->log = NULL;
	client_put(c);
}

/* A loss of power destroys files in RAM. Those of memfd_create() are on tmpfs, too. */
bool durable_type(unsigned long type)
{
	return type != TMPFS_MAGIC && type != RAMFS_MAGIC && type != HUGETLBFS_MAGIC;
}

static int identify(int fd, struct durable_id *id)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) < 0)
		return -errno;
	*id = (struct durable_id) {
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.ino = st.stx_ino,
	};
	if (st.stx_mask & STATX_BTIME)
		id->born = st.stx_btime.tv_sec * 1000000000ull + st.stx_btime.tv_nsec;
	return 0;
}

static struct durable *find(const struct durable_id *id)
{
	struct durable *d;

	LIST_FOREACH(d, &durable_all, all)
		if (d->id.dev == id->dev && d->id.ino == id->ino && d->id.born == id->born)
			return d;
	return NULL;
}

/*
 * Use a remembered file again for @c, without a descriptor, because a lost file is never
 * synchronised.
 */
static void revive(const struct durable_client *c, struct durable *d)
{
	TAILQ_REMOVE(&d->client->lost, d, link);
	d->client->nlost--;
	d->client->refs++;
	log_from(c->log, LOG_WARN,
		 "a client maps a memory file that lost data: each FLUSH of it fails; give the machine a copy of the file");
}

/*
 * Open the file of @fd again, for an open file description of our own. O_NONBLOCK: the client may
 * hold a lease. A descriptor for reading is enough for fdatasync(), and closing it writes nothing.
 * Return: descriptor or a negative errno.
 */
static int reopen(int fd)
{
	char path[32];
	int own;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return own < 0 ? -errno : own;
}

int durable_look(int fd, struct durable_file *file)
{
	int err;

	if (!file->disk)
		return 0;
	err = identify(fd, &file->id);
	if (err)
		return err;
	file->fd = reopen(fd);
	if (file->fd < 0) {
		file->err = file->fd;
		file->fd = -1;
	}
	return 0;
}

/* The daemon cannot open the file. Return: 0 if the client may map it nevertheless. */
static int unopened(const struct durable_client *c, int err)
{
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM)
		return err;
	log_from(c->log, LOG_WARN,
		 "cannot open a client's memory file, so FLUSH cannot make it durable: %s; let ornicd read the file",
		 strerror(-err));
	return 0;
}

static void close_file(struct mapper_job *job)
{
	struct closer *closer = (struct closer *)job;

	close(closer->fd);
	free(closer);
}

static int durable_new(struct durable_client *c, struct durable_file *file,
		       struct durable **durable)
{
	struct closer *closer;
	struct durable *d;

	if (c->files >= DURABLE_FILES)
		return -ENOSPC;
	closer = calloc(1, sizeof(*closer));
	d = calloc(1, sizeof(*d));
	if (!closer || !d) {
		free(closer);
		free(d);
		return -ENOMEM;
	}
	*closer = (struct closer) { { .work = close_file }, file->fd };
	d->closer = closer;
	d->fd = file->fd;
	file->fd = -1;
	d->id = file->id;
	d->client = c;
	c->refs++;
	c->files++;
	d->refs = 1;
	LIST_INSERT_HEAD(&durable_all, d, all);
	*durable = d;
	return 0;
}

int durable_open(struct durable_client *c, struct durable_file *file, struct durable **durable)
{
	struct durable *d;

	*durable = NULL;
	if (!file->disk)
		return 0;
	d = find(&file->id);
	if (!d)
		return file->err ? unopened(c, file->err) : durable_new(c, file, durable);
	if (!d->refs++)
		revive(c, d);
	*durable = d;
	return 0;
}

struct durable *durable_get(struct durable *d)
{
	if (d)
		d->refs++;
	return d;
}

/*
 * Remember a file without users that lost data. Without its descriptor, so that it can be deleted
 * and its file system unmounted. A client that has too many such files forgets its own.
 */
static void remember(struct durable *d)
{
	struct durable_client *c = d->client;

	if (c->nlost == DURABLE_LOST_MAX)
		client_forget(c);
	TAILQ_INSERT_TAIL(&c->lost, d, link);
	c->nlost++;
}

void durable_put(struct durable *d)
{
	struct durable_client *c;

	if (!d || --d->refs)
		return;
	c = d->client;
	if (d->closer) {
		mapper_add(c->mapper, &d->closer->job);
		c->files--;
	}
	d->closer = NULL;
	d->fd = -1;
	if (durable_lost(d) && !c->gone) {
		remember(d);
	} else {
		LIST_REMOVE(d, all);
		free(d);
	}
	client_put(c);
}
