// SPDX-License-Identifier: GPL-2.0
/*
 * Mapped memory files: identified by device and inode, reference counted, kept mapped for a
 * while when idle, and safe against a page that is lost.
 *
 * An access raises SIGBUS if the client has truncated the file, if no huge page is free, if the
 * page's memory is broken, or if the disk below fails. That would kill the daemon and with it the
 * devices of all other virtual machines. backing_guard() installs a handler that replaces the lost
 * page by zeros and marks the pool: the function that owns the memory then fails (function_work()),
 * others are not affected. Data written to the page is lost, so requests for durability of the
 * file fail from then on (durable_lose()).
 */
#define _GNU_SOURCE 1	/* statx() */

#include "backing.h"

#include "fuse.h"
#include "../log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

static struct backing_list backing_all = LIST_HEAD_INITIALIZER(backing_all);
static bool backing_pending;

static struct backing *backing_find(const uint8_t *addr)
{
	struct backing *b;

	LIST_FOREACH(b, &backing_all, all)
		if (addr >= b->base && addr < b->base + b->len)
			return b;
	return NULL;
}

static bool backing_blank(uint8_t *at, size_t len)
{
	return mmap(at, len, PROT_READ | PROT_WRITE,
		    MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/*
 * Replace the lost page, or all of the file if the process has too many mappings for that.
 * Return: false if the instruction would fail again.
 */
static bool backing_replace(struct backing *b, size_t at, int code)
{
	if (b->durable)
		durable_lose(b->durable);
	__atomic_store_n(&backing_pending, true, __ATOMIC_RELAXED);
	if (!b->pool->lost) {
		b->pool->lost_at = at;
		__atomic_store_n(&b->pool->lost, code, __ATOMIC_RELAXED);
	}
	return backing_blank(b->base + at / b->page * b->page, b->page) ||
	       backing_blank(b->base, b->len);
}

/*
 * SIGBUS handler; runs on the loop's thread, which alone accesses mappings and changes the list.
 * BUS_MCEERR_AO reports broken memory that was not accessed. A signal of another process has a code
 * of 0 or less, and ends this one.
 */
static void backing_sigbus(int sig, siginfo_t *info, void *context)
{
	struct backing *b;

	(void)context;
	if (info->si_code == BUS_MCEERR_AO)
		return;
	b = backing_find(info->si_addr);
	if (b && info->si_code > 0 &&
	    backing_replace(b, (uint8_t *)info->si_addr - b->base, info->si_code))
		return;
	/* Not a memory file: the default action kills us when the instruction runs again. */
	signal(sig, SIG_DFL);
	if (info->si_code <= 0)
		raise(sig);
}

/**
 * backing_guard() - install the SIGBUS handler against lost pages of memory files
 *
 * Return: 0 or a negative errno.
 */
int backing_guard(void)
{
	struct sigaction sa = { .sa_sigaction = backing_sigbus, .sa_flags = SA_SIGINFO };

	sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, NULL) < 0 ? -errno : 0;
}

/**
 * backing_loss_pending() - check whether a page was lost since backing_loss_clear()
 *
 * What was read from guest memory since then may be zeros, and must not reach a peer.
 *
 * Return: true if a page was lost.
 */
bool backing_loss_pending(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);	/* the handler runs within a copy */
	return __atomic_load_n(&backing_pending, __ATOMIC_RELAXED);
}

/* backing_loss_clear() - begin work to which earlier losses do not matter */
void backing_loss_clear(void)
{
	backing_pending = false;
}

/**
 * backing_init() - initialise the pool of a client
 * @pool:	pool, zeroed
 * @log:	source of log lines
 *
 * Return: 0 or -ENOMEM.
 */
int backing_init(struct backing_pool *pool, struct log_source *log)
{
	TAILQ_INIT(&pool->idle);
	pool->client = durable_client_new(log);
	return pool->client ? 0 : -ENOMEM;
}

/**
 * backing_fini() - free a pool after backing_drain()
 * @pool:	pool
 */
void backing_fini(struct backing_pool *pool)
{
	durable_client_free(pool->client);
}

static struct backing_list *backing_bucket(struct backing_pool *pool, uint64_t ino)
{
	return &pool->bucket[ino % BACKING_BUCKETS];
}

/* Unmap an idle file. */
static void backing_unmap(struct backing_pool *pool, struct backing *b)
{
	TAILQ_REMOVE(&pool->idle, b, idle);
	pool->nidle--;
	LIST_REMOVE(b, bucket);
	LIST_REMOVE(b, all);
	pool->files--;
	munmap(b->base, b->len);
	durable_put(b->durable);
	free(b);
}

/* A mapping of hugetlbfs can be replaced in huge pages only. */
static size_t backing_page(int fd, const struct stat *st)
{
	struct statfs fs;

	if (!fstatfs(fd, &fs) && fs.f_type == HUGETLBFS_MAGIC)
		return st->st_blksize;
	return sysconf(_SC_PAGESIZE);
}

static int backing_mmap(struct backing_pool *pool, int fd, const struct stat *st, bool writable,
			struct backing **backing)
{
	struct backing *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	/* Before the first store, so that its descriptor gets the report of a failed write-back. */
	err = durable_open(pool->client, fd, &b->durable);
	if (err) {
		free(b);
		return err;
	}
	b->len = st->st_size;
	b->base = mmap(NULL, b->len, writable ? PROT_READ | PROT_WRITE : PROT_READ,
		       MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (b->base == MAP_FAILED) {
		err = -errno;
		durable_put(b->durable);
		free(b);
		return err;
	}
	b->pool = pool;
	b->page = backing_page(fd, st);
	b->dev = st->st_dev;
	b->ino = st->st_ino;
	b->writable = writable;
	b->refs = 1;
	LIST_INSERT_HEAD(backing_bucket(pool, b->ino), b, bucket);
	LIST_INSERT_HEAD(&backing_all, b, all);
	pool->files++;
	*backing = b;
	return 0;
}

/*
 * Reject a file that may be on FUSE, because its server could stop the loop, and with it all other
 * clients, at any access. The check does not touch the file. A mapped file has passed it before.
 */
static int backing_admit(struct backing_pool *pool, int fd)
{
	const struct backing *b;
	struct statx st;
	int ret;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0)
		return -errno;
	if (!S_ISREG(st.stx_mode))
		return -EINVAL;
	LIST_FOREACH(b, backing_bucket(pool, st.stx_ino), bucket)
		if (b->dev == makedev(st.stx_dev_major, st.stx_dev_minor) && b->ino == st.stx_ino)
			return 0;
	ret = fuse_possible(fd, &st, pool->pid);
	if (ret <= 0)
		return ret;
	log_from(pool->client->log, LOG_WARN,
		 "a client's memory file is on FUSE, whose server could stop the daemon, or on a file system that the daemon has not mounted; use a file of memfd, tmpfs, hugetlbfs or a disk that the daemon has mounted");
	return -EOPNOTSUPP;
}

/**
 * backing_get() - map a file, unless it is mapped, and take a reference
 * @pool:	files of this client
 * @fd:		descriptor of the file; the caller may close it afterwards
 * @offset:	first byte to be used
 * @size:	bytes to be used
 * @backing:	returns the mapped file
 *
 * Return: 0; -EINVAL if @fd is not a regular, readable file (memfd, hugetlbfs and shared memory
 * are); -EOPNOTSUPP if it may be on FUSE; -ERANGE if the file is too short; -EMFILE, -ENFILE or
 * -ENOMEM; else a negative errno of fcntl(), statx(), fstat(), fstatfs() or mmap().
 */
int backing_get(struct backing_pool *pool, int fd, uint64_t offset, uint64_t size,
		struct backing **backing)
{
	struct backing *b;
	bool writable;
	struct stat st;
	int flags, err;

	flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	err = backing_admit(pool, fd);
	if (err)
		return err;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((flags & O_ACCMODE) == O_WRONLY)
		return -EINVAL;
	if (offset > (uint64_t)st.st_size || size > (uint64_t)st.st_size - offset)
		return -ERANGE;
	writable = (flags & O_ACCMODE) == O_RDWR;
	/* A file that grew gets a second mapping, because pointers into the first are used. */
	LIST_FOREACH(b, backing_bucket(pool, st.st_ino), bucket)
		if (b->dev == st.st_dev && b->ino == st.st_ino && b->writable == writable &&
		    b->len == (size_t)st.st_size)
			break;
	if (!b)
		return backing_mmap(pool, fd, &st, writable, backing);
	if (!b->refs++) {
		TAILQ_REMOVE(&pool->idle, b, idle);
		pool->nidle--;
	}
	*backing = b;
	return 0;
}

/**
 * backing_put() - release a reference
 * @pool:	files of this client
 * @b:		file from backing_get()
 *
 * The file stays mapped without references: at boot, and with an IOMMU at any time, a VMM
 * removes the last piece of a file just before it adds the next one.
 */
void backing_put(struct backing_pool *pool, struct backing *b)
{
	if (--b->refs)
		return;
	TAILQ_INSERT_TAIL(&pool->idle, b, idle);
	if (++pool->nidle > BACKING_IDLE_MAX)
		backing_unmap(pool, TAILQ_FIRST(&pool->idle));
}

/**
 * backing_drain() - unmap all idle files, because the client is gone
 * @pool:	files of this client
 */
void backing_drain(struct backing_pool *pool)
{
	struct backing *b;

	while ((b = TAILQ_FIRST(&pool->idle)))
		backing_unmap(pool, b);
	pool->lost = 0;
}
