// SPDX-License-Identifier: GPL-2.0
/*
 * Mapped memory files: identified by device and inode, reference counted, kept mapped for a
 * while when idle, and safe against a page that is lost.
 *
 * A request takes two steps of the mapper, because only the loop knows the mappings: look at the
 * file, then map it unless it is mapped.
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

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define UNMAP_BYTES	(64u << 20)	/* most that one call unmaps */

/* Reasons to reject a file that the log explains */
enum why { WHY_OTHER, WHY_FUSE, WHY_DISK, WHY_DISKS, WHY_FILES, WHY_BYTES };

/**
 * struct backing_request - a backing_get() in progress
 * @job:	request to the mapper
 * @pool:	client's pool; NULL after backing_drain()
 * @mapper:	mapper of the pool
 * @fd:		the client's descriptor
 * @pid:	as in struct backing_pool
 * @offset:	first byte to be used
 * @size:	bytes to be used
 * @room:	bytes that the client may still map
 * @disk:	as in struct backing_limits
 * @dev:	identity of the file
 * @ino:	identity of the file
 * @len:	length of the file, bytes
 * @writable:	as in struct backing
 * @durable:	for durable_open()
 * @b:		a mapping that is in no pool yet, or NULL
 * @err:	result, 0 or a negative errno
 * @why:	reason of @err for the log
 * @inside:	backing_get() has not returned yet
 * @found:	result for backing_get()
 */
struct backing_request {
	struct mapper_job job;
	struct backing_pool *pool;
	struct mapper *mapper;
	int fd;
	pid_t pid;
	uint64_t offset;
	uint64_t size;
	uint64_t room;
	bool disk;
	dev_t dev;
	ino_t ino;
	uint64_t len;
	bool writable;
	struct durable_file durable;
	struct backing *b;
	int err;
	enum why why;
	bool inside;
	struct backing *found;
};
static_assert(!offsetof(struct backing_request, job), "a job is its request");

static LIST_HEAD(, backing_pool) pools = LIST_HEAD_INITIALIZER(pools);
static bool backing_pending;

static struct backing *backing_find(const uint8_t *addr)
{
	struct backing_pool *pool;
	struct backing *b;

	LIST_FOREACH(pool, &pools, link)
		TAILQ_FOREACH(b, &pool->all, all)
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
		b->pool->lost_at = b->offset + at;
		__atomic_store_n(&b->pool->lost, code, __ATOMIC_RELAXED);
	}
	return backing_blank(b->base + at / b->page * b->page, b->page) ||
	       backing_blank(b->base, b->len);
}

/*
 * SIGBUS handler; runs on the loop's thread, which alone accesses mappings and changes the lists.
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

/* Empty the pool of mappings, wherever they are now. */
static void pool_reset(struct backing_pool *pool)
{
	memset(pool->bucket, 0, sizeof(pool->bucket));
	TAILQ_INIT(&pool->all);
	TAILQ_INIT(&pool->idle);
	LIST_INIT(&pool->disk);
	pool->files = 0;
	pool->nidle = 0;
	pool->bytes = 0;
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
	pool->client = durable_client_new(log);
	if (!pool->client)
		return -ENOMEM;
	pool_reset(pool);
	pool->limits = BACKING_LIMITS;
	LIST_INSERT_HEAD(&pools, pool, link);
	return 0;
}

/**
 * backing_fini() - free a pool after backing_drain()
 * @pool:	pool
 */
void backing_fini(struct backing_pool *pool)
{
	LIST_REMOVE(pool, link);
	durable_client_free(pool->client);
}

/**
 * backing_use_mapper() - let a mapper do what may block
 * @pool:	pool without mappings
 * @mapper:	mapper; the pool must be gone before mapper_end()
 */
void backing_use_mapper(struct backing_pool *pool, struct mapper *mapper)
{
	pool->mapper = mapper;
	durable_use_mapper(pool->client, mapper);
}

static struct backing_list *backing_bucket(struct backing_pool *pool, uint64_t ino)
{
	return &pool->bucket[ino % BACKING_BUCKETS];
}

/*
 * Unmap in pieces: each call holds a lock of the process, for which the loop waits when it
 * allocates memory.
 */
static void unmap(const struct backing *b)
{
	size_t piece = b->page > UNMAP_BYTES ? b->page : UNMAP_BYTES;

	for (size_t at = 0; at < b->len; at += piece)
		munmap(b->base + at, b->len - at < piece ? b->len - at : piece);
}

static void unmap_all(struct mapper_job *job)
{
	struct backing_queue unmapped = TAILQ_HEAD_INITIALIZER(unmapped);
	struct backing *b = (struct backing *)job;

	TAILQ_CONCAT(&unmapped, &b->unmap, all);
	while ((b = TAILQ_FIRST(&unmapped))) {
		TAILQ_REMOVE(&unmapped, b, all);
		unmap(b);
		free(b);
	}
}

/* Let the mapper unmap the mappings @gone, which are in no pool any more. */
static void backing_unmap(struct mapper *mapper, struct backing_queue *gone)
{
	struct backing *first = TAILQ_FIRST(gone);

	if (!first)
		return;
	TAILQ_INIT(&first->unmap);
	TAILQ_CONCAT(&first->unmap, gone, all);
	first->job = (struct mapper_job) { .work = unmap_all };
	mapper_add(mapper, &first->job);
}

/* Remove the mapping that has been idle for longest. */
static void backing_evict(struct backing_pool *pool)
{
	struct backing_queue gone = TAILQ_HEAD_INITIALIZER(gone);
	struct backing *b = TAILQ_FIRST(&pool->idle);

	TAILQ_REMOVE(&pool->idle, b, idle);
	pool->nidle--;
	LIST_REMOVE(b, bucket);
	TAILQ_REMOVE(&pool->all, b, all);
	pool->files--;
	pool->bytes -= b->len;
	if (b->durable)
		LIST_REMOVE(b, disk);
	durable_put(b->durable);
	TAILQ_INSERT_TAIL(&gone, b, all);
	backing_unmap(pool->mapper, &gone);
}

/* Find a mapping of the file that has the bytes. */
static struct backing *backing_have(struct backing_pool *pool, const struct backing_request *r)
{
	struct backing *b;

	LIST_FOREACH(b, backing_bucket(pool, r->ino), bucket)
		if (b->dev == r->dev && b->ino == r->ino && b->writable == r->writable &&
		    r->offset >= b->offset && r->offset + r->size <= b->offset + b->len)
			return b;
	return NULL;
}

static bool request_in_file(const struct backing_request *r)
{
	return r->offset <= r->len && r->size <= r->len - r->offset;
}

/* Identify the file, without a question to its server. */
static int identify(struct backing_request *r, struct statx *st)
{
	int flags = fcntl(r->fd, F_GETFL);

	if (flags < 0 || statx(r->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
			       STATX_BASIC_STATS | STATX_MNT_ID, st) < 0)
		return -errno;
	if (!S_ISREG(st->stx_mode) || (flags & O_ACCMODE) == O_WRONLY)
		return -EINVAL;
	r->writable = (flags & O_ACCMODE) == O_RDWR;
	r->dev = makedev(st->stx_dev_major, st->stx_dev_minor);
	r->ino = st->stx_ino;
	r->len = st->stx_size;
	return 0;
}

static void look(struct mapper_job *job)
{
	struct backing_request *r = (struct backing_request *)job;
	struct statx st;

	r->err = identify(r, &st);
}

/*
 * Reject a file that may be on FUSE, because its server could stop the loop, and with it all other
 * clients, at any access. The check does not touch the file.
 */
static int admit(struct backing_request *r)
{
	struct statx st;
	int ret = identify(r, &st);

	if (!ret)
		ret = fuse_possible(r->fd, &st, r->pid);
	if (ret <= 0)
		return ret;
	r->why = WHY_FUSE;
	return -EOPNOTSUPP;
}

/* Ask the file system for its type and the current length. */
static int measure(struct backing_request *r, size_t *page)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(r->fd, &fs) < 0)
		return -errno;
	r->durable.disk = durable_type(fs.f_type);
	if (r->durable.disk && !r->disk) {
		r->why = WHY_DISK;
		return -EOPNOTSUPP;
	}
	if (fstat(r->fd, &st) < 0)
		return -errno;
	r->len = st.st_size;
	/* A mapping of hugetlbfs can be replaced in huge pages only. */
	*page = fs.f_type == HUGETLBFS_MAGIC ? (size_t)st.st_blksize :
					       (size_t)sysconf(_SC_PAGESIZE);
	return request_in_file(r) ? 0 : -ERANGE;
}

/* Choose the part of the file to be mapped. */
static int choose(struct backing_request *r)
{
	struct backing *b = r->b;
	uint64_t end = (r->offset + r->size + b->page - 1) / b->page * b->page;

	b->len = r->len;
	if (b->len <= r->room / 2)
		return 0;
	b->offset = r->offset / b->page * b->page;
	b->len = end - b->offset;
	if (b->len <= r->room)
		return 0;
	r->why = WHY_BYTES;
	return -ENOMEM;
}

static int map_file(struct backing_request *r)
{
	struct backing *b = r->b;
	int err = choose(r);

	/* Before the first store, so that its descriptor gets the report of a failed write-back. */
	if (!err)
		err = durable_look(r->fd, &r->durable);
	if (err)
		return err;
	b->base = mmap(NULL, b->len, r->writable ? PROT_READ | PROT_WRITE : PROT_READ,
		       MAP_SHARED | MAP_NORESERVE, r->fd, b->offset);
	return b->base == MAP_FAILED ? -errno : 0;
}

static void request_clean(struct backing_request *r)
{
	if (r->durable.fd >= 0)
		close(r->durable.fd);
	r->durable.fd = -1;
	free(r->b);
	r->b = NULL;
}

static void map(struct mapper_job *job)
{
	struct backing_request *r = (struct backing_request *)job;
	size_t page;

	r->err = admit(r);
	if (!r->err)
		r->err = measure(r, &page);
	if (r->err)
		return;
	r->b = calloc(1, sizeof(*r->b));
	if (!r->b) {
		r->err = -ENOMEM;
		return;
	}
	r->b->page = page;
	r->err = map_file(r);
	if (r->err)
		request_clean(r);
}

/* Free a request without user, and what it got. */
static void drop(struct mapper_job *job)
{
	struct backing_request *r = (struct backing_request *)job;

	if (r->b)
		unmap(r->b);
	request_clean(r);
	free(r);
}

/* Free a request on the loop's thread: closing a file may block. */
static void request_free(struct backing_request *r)
{
	r->job = (struct mapper_job) { .work = drop };
	if (r->b || r->durable.fd >= 0)
		mapper_add(r->mapper, &r->job);
	else
		free(r);
}

static void explain(const struct backing_request *r)
{
	struct log_source *log = r->pool->client->log;

	switch (r->why) {
	case WHY_FUSE:
		log_from(log, LOG_WARN,
			 "a client's memory file is on FUSE, whose server could stop the daemon, or on a file system that the daemon has not mounted; use a file of memfd, tmpfs, hugetlbfs or a disk that the daemon has mounted");
		break;
	case WHY_DISK:
		log_from(log, LOG_WARN,
			 "a client's memory file is on a disk, whose delays would stop all devices; use a file of memfd, tmpfs or hugetlbfs, or allow it by nvdimm=on of the device");
		break;
	case WHY_DISKS:
		log_from(log, LOG_WARN,
			 "a client has as many memory files on disks as a device may map");
		break;
	case WHY_FILES:
		log_from(log, LOG_WARN,
			 "a client has as many memory files as its device may map; raise memory-files= of the device");
		break;
	case WHY_BYTES:
		log_from(log, LOG_WARN,
			 "a client's memory files take more address space than its device may use; raise memory= of the device");
		break;
	case WHY_OTHER:
		break;
	}
}

/* End a request by an error, or by a mapping, which gets a user. */
static void finish(struct backing_request *r, int err, struct backing *b)
{
	struct backing_pool *pool = r->pool;

	explain(r);
	if (b && !b->refs++) {
		TAILQ_REMOVE(&pool->idle, b, idle);
		pool->nidle--;
	}
	r->err = err;
	r->found = b;
	pool->request = NULL;
	if (r->inside)
		return;
	request_free(r);
	pool->got(pool, err, b);
}

/* Add a mapping to its pool, without a user. */
static void backing_insert(struct backing_request *r)
{
	struct backing_pool *pool = r->pool;
	struct backing *b = r->b;

	r->b = NULL;
	b->pool = pool;
	b->dev = r->dev;
	b->ino = r->ino;
	b->writable = r->writable;
	LIST_INSERT_HEAD(backing_bucket(pool, b->ino), b, bucket);
	TAILQ_INSERT_TAIL(&pool->all, b, all);
	pool->files++;
	pool->bytes += b->len;
	if (b->durable)
		LIST_INSERT_HEAD(&pool->disk, b, disk);
	TAILQ_INSERT_TAIL(&pool->idle, b, idle);
	pool->nidle++;
	finish(r, 0, b);
}

static void mapped(struct mapper_job *job)
{
	struct backing_request *r = (struct backing_request *)job;

	if (!r->pool) {
		request_free(r);
		return;
	}
	if (!r->err) {
		r->err = durable_open(r->pool->client, &r->durable, &r->b->durable);
		if (r->err == -ENOSPC)
			r->why = WHY_DISKS;
	}
	if (r->err)
		finish(r, r->err, NULL);
	else
		backing_insert(r);
}

/* Map the file, after mappings without users that leave it no room. */
static void request_map(struct backing_request *r)
{
	struct backing_pool *pool = r->pool;

	while (pool->nidle && (pool->files >= pool->limits.files ||
			       pool->bytes + r->len > pool->limits.bytes / 2))
		backing_evict(pool);
	if (pool->files >= pool->limits.files) {
		r->why = WHY_FILES;
		finish(r, -ENOSPC, NULL);
		return;
	}
	r->room = pool->limits.bytes - pool->bytes;
	r->disk = pool->limits.disk;
	r->job.work = map;
	r->job.done = mapped;
	mapper_add(r->mapper, &r->job);
}

static void looked(struct mapper_job *job)
{
	struct backing_request *r = (struct backing_request *)job;
	struct backing *b = NULL;

	if (!r->pool) {
		request_free(r);
		return;
	}
	if (!r->err && request_in_file(r))
		b = backing_have(r->pool, r);
	if (r->err || b)
		finish(r, r->err, b);
	else
		request_map(r);
}

/**
 * backing_get() - map a file, unless it is mapped, and take a reference
 * @pool:	files of this client
 * @fd:		descriptor of the file; the caller closes it after the result, or by the mapper
 * @offset:	first byte to be used
 * @size:	bytes to be used
 * @backing:	returns the mapped file
 *
 * Return: 0; -EINPROGRESS if the result comes by @pool->got(), which backing_drain() prevents;
 * -EBUSY if it waits for an earlier one; -EINVAL if @fd is not a regular, readable file (memfd,
 * hugetlbfs and shared memory are); -EOPNOTSUPP if it may be on FUSE, or is on a disk and the client
 * may map no such files; -ERANGE if the file is too
 * short; -ENOSPC or -ENOMEM beyond the limits of the pool; -EMFILE, -ENFILE or -ENOMEM; else a
 * negative errno of fcntl(), statx(), fstat(), fstatfs() or mmap().
 */
int backing_get(struct backing_pool *pool, int fd, uint64_t offset, uint64_t size,
		struct backing **backing)
{
	struct backing_request *r;
	int err;

	if (pool->request)
		return -EBUSY;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->job = (struct mapper_job) { .work = look, .done = looked, .drop = drop };
	r->pool = pool;
	r->mapper = pool->mapper;
	r->fd = fd;
	r->pid = pool->pid;
	r->offset = offset;
	r->size = size;
	r->durable.fd = -1;
	pool->request = r;
	r->inside = true;
	mapper_add(r->mapper, &r->job);
	r->inside = false;
	if (pool->request)
		return -EINPROGRESS;
	err = r->err;
	*backing = r->found;
	request_free(r);
	return err;
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
		backing_evict(pool);
}

/**
 * backing_drain() - unmap all files, whether they have users or not, because the client is gone
 * @pool:	files of this client
 */
void backing_drain(struct backing_pool *pool)
{
	struct backing_queue gone = TAILQ_HEAD_INITIALIZER(gone);
	struct backing *b;

	if (pool->request)
		pool->request->pool = NULL;
	pool->request = NULL;
	LIST_FOREACH(b, &pool->disk, disk)
		durable_put(b->durable);
	TAILQ_CONCAT(&gone, &pool->all, all);
	pool_reset(pool);
	backing_unmap(pool->mapper, &gone);
	pool->lost = 0;
}
