// SPDX-License-Identifier: GPL-2.0
/*
 * FLUSH to persistent memory: memory that is supported, the time of the answer, requests that
 * wait for it, and failures of the disk or the queue pair.
 */
#define _GNU_SOURCE 1	/* memfd_create() */

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/failing.h"
#include "lib/folder.h"
#include "lib/inproc.h"
#include "lib/locks.h"
#include "lib/numbers.h"
#include "lib/peer.h"
#include "lib/printed.h"

#include "engine/mr.h"

#include <ornic/dm.h>

#define PSN0	100u
#define P(n)	(PSN0 + (n))
#define ACK	(AETH_ACK | AETH_NO_CREDITS)
#define LEN	8192u
#define RIGHTS	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE |			\
		 ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_FLUSH_PERSISTENT)
#define BOTH	(ORNIC_FLUSH_GLOBAL | ORNIC_FLUSH_PERSISTENT)
#define REGION	(ORNIC_FLUSH_REGION << FETH_LEVEL_SHIFT)
#define DISK	0x200000000ull	/* guest address of a file on a disk */
#define BYTES	(64u << 10)

/* The disk: a sync ends when the test decides, with the result that the test decides. */
static struct {
	sem_t begun;
	sem_t end;
	int result;
	_Atomic int fd;
	_Atomic unsigned int syncs;
	ino_t slow;		/* file that selective_sync() delays */
	long type;		/* type of every file system, 0: the true one */
	int open_error;		/* of opening a file again */
	int statx_error;	/* of asking which file it is */
	struct durable_id other;	/* difference to the true answer */
	bool exposed;		/* a thread of the syncer has a signal that is not blocked */
} disk;

/* These three replace the C library's. */
int fstatfs(int fd, struct statfs *st)
{
	int ret = syscall(SYS_fstatfs, fd, st);

	if (!ret && disk.type)
		st->f_type = disk.type;
	return ret;
}

int statx(int fd, const char *path, int flags, unsigned int mask, struct statx *st)
{
	int ret;

	if (disk.statx_error && mask & STATX_BTIME) {
		errno = disk.statx_error;
		return -1;
	}
	ret = syscall(SYS_statx, fd, path, flags, mask, st);
	if (mask & STATX_BTIME) {
		st->stx_dev_minor += disk.other.dev;
		st->stx_ino += disk.other.ino;
		st->stx_btime.tv_sec += disk.other.born;
	}
	return ret;
}

int open(const char *path, int flags, ...)
{
	va_list more;
	int mode;

	if (disk.open_error && !strncmp(path, "/proc/self/fd/", 14)) {
		errno = disk.open_error;
		return -1;
	}
	va_start(more, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0;
	va_end(more);
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static int slow_sync(int fd)
{
	int result;

	locks_work();
	disk.fd = fd;
	sem_post(&disk.begun);
	sem_wait(&disk.end);
	result = disk.result;
	disk.syncs++;		/* last use of the disk: see end_late() */
	errno = EIO;
	return result;
}

/* End @n syncs of a syncer that ended before, and wait until their threads have left the disk. */
static void end_late(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sem_post(&disk.end);
	while (disk.syncs < n)
		usleep(1000);
}

static void disk_reset(void)
{
	sem_init(&disk.begun, 0, 0);
	sem_init(&disk.end, 0, 0);
	disk.result = 0;
	disk.syncs = 0;
	disk.type = 0;
}

/* Return a new file of BYTES that seems to be on a disk. */
static int disk_file(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	disk.type = EXT4_SUPER_MAGIC;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	return fd;
}

/* Map a file at DISK. */
static struct durable *disk_durable(struct gpa *g, int fd)
{
	uint64_t span;

	assert_int_equal(gpa_map(g, DISK, BYTES, GPA_READ | GPA_WRITE, fd, 0), 0);
	return gpa_durable(g, DISK, BYTES, &span);
}

/* Two connections of one function with a peer, and memory that is a file. */
struct fix {
	struct world w;
	struct peer peer;
	struct conn c[2];
	struct gpa *gpa;
	struct durable *file;
	bool hung;		/* the syncer ended while a sync of the file ran */
	uint64_t buf;
	uint32_t key;
};

static int setup(void **state)
{
	struct fix *t = test_calloc(1, sizeof(*t));
	struct mr *mr;
	int fd;

	disk_reset();
	world_init(&t->w, 0);
	t->w.e.syncer.sync = slow_sync;
	t->w.dut[0].dev.features |= ORNIC_FEATURE(FLUSH_PERSISTENT);
	peer_init(&t->peer, &t->w);
	for (int i = 0; i < 2; i++) {
		conn_init(&t->c[i], &t->w.dut[0], NULL);
		peer_connect(&t->peer, &t->c[i], PSN0, PSN0);
		t->c[i].qp.access = ORNIC_ACCESS_REMOTE;
	}
	t->buf = dut_buf(t->c[0].d, LEN);
	t->key = dut_key(t->c[0].d, NULL, t->buf, LEN, RIGHTS | ORNIC_ACCESS_FLUSH_GLOBAL);
	t->gpa = gpa_new(NULL);
	assert_non_null(t->gpa);
	t->gpa->pool.limits.disk = true;
	fd = disk_file();
	t->file = disk_durable(t->gpa, fd);
	close(fd);
	mr = table_get(&t->w.dut[0].dev.keys, t->key >> ORNIC_KEY_TAG_BITS);
	mr->durable = t->file;
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct fix *t = *state;

	for (int i = 0; i < 2; i++)
		conn_fini(&t->c[i]);
	peer_fini(&t->peer);
	disk.type = 0;
	assert_int_equal(t->file->refs, t->hung ? 2 : 1);
	gpa_free(t->gpa);
	world_fini(&t->w);
	assert_int_equal(locks_wrong(), 0);
	test_free(t);
	return 0;
}

static void flush(struct fix *t, int i, uint32_t psn, uint32_t feth)
{
	struct packet *p = peer_packet(&t->peer, &t->c[i], BTH_RC_FLUSH, psn);

	p->feth = feth;
	p->va = t->buf;
	p->rkey = t->key;
	p->dmalen = LEN;
	peer_send(&t->peer, p, NULL, 0);
}

static void answered(struct fix *t, uint32_t psn)
{
	struct seen *s = peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, psn, 1);

	assert_int_equal(s->p.len, 0);
}

/* End the sync that has begun. */
static void finish(struct fix *t)
{
	struct pollfd p = { .fd = t->w.e.syncer.fd, .events = POLLIN };

	sem_post(&disk.end);
	assert_int_equal(poll(&p, 1, -1), 1);
	syncer_reap(&t->w.e.syncer);
	world_run(&t->w);
}

/* ORN-WQE-45: the answer comes when the file is synchronised, and not before. */
static void test_waits(void **state)
{
	struct fix *t = *state;

	for (uint32_t i = 0; i < 3; i++) {
		flush(t, 0, P(i), i == 0 ? BOTH : ORNIC_FLUSH_PERSISTENT | (i == 2 ? REGION : 0));
		sem_wait(&disk.begun);
		assert_int_equal(disk.fd, t->file->fd);
		peer_quiet(&t->peer);
		assert_int_equal(t->w.dut[0].dev.cnt[CNT_flush_persistent], i);
		finish(t);
		answered(t, P(i));
		peer_quiet(&t->peer);
	}
	assert_int_equal(t->w.dut[0].dev.cnt[CNT_flush_persistent], 3);
	assert_int_equal(t->w.dut[0].dev.cnt[CNT_rx_flush], 3);
	flush(t, 0, P(3), ORNIC_FLUSH_GLOBAL);	/* no data to wait for */
	answered(t, P(3));
	assert_int_equal(disk.syncs, 3);
}

/* ORN-QP-26: a duplicate before and after the answer: one sync */
static void test_duplicate(void **state)
{
	struct fix *t = *state;

	flush(t, 0, P(0), BOTH);
	sem_wait(&disk.begun);
	flush(t, 0, P(0), BOTH);
	peer_quiet(&t->peer);
	finish(t);
	answered(t, P(0));
	peer_quiet(&t->peer);
	flush(t, 0, P(0), BOTH);
	answered(t, P(0));
	peer_quiet(&t->peer);
	assert_int_equal(disk.syncs, 1);
}

static void write_word(struct fix *t, uint32_t psn, uint8_t opcode, uint64_t value)
{
	struct packet *p = peer_packet(&t->peer, &t->c[0], opcode, psn);

	p->va = t->buf;
	p->rkey = t->key;
	p->dmalen = sizeof(value);
	peer_send(&t->peer, p, &value, sizeof(value));
}

/* ORN-WQE-46: later requests are dropped while the FLUSH waits, and the peer retransmits them. */
static void test_behind(void **state)
{
	struct fix *t = *state;
	uint64_t *word = (uint64_t *)dut_at(t->c[0].d, t->buf, 8);

	*word = 1;
	flush(t, 0, P(0), BOTH);
	sem_wait(&disk.begun);
	write_word(t, P(1), BTH_RC_ATOMIC_WRITE, 7);
	write_word(t, P(2), BTH_RC_WRITE_ONLY, 8);
	peer_quiet(&t->peer);
	assert_int_equal(*word, 1);
	finish(t);
	answered(t, P(0));
	peer_expect_ack(&t->peer, AETH_NAK | NAK_PSN_SEQUENCE, P(1));
	peer_quiet(&t->peer);
	assert_int_equal(*word, 1);
	write_word(t, P(1), BTH_RC_ATOMIC_WRITE, 7);
	answered(t, P(1));
	assert_int_equal(*word, 7);
	write_word(t, P(2), BTH_RC_WRITE_ONLY, 8);
	peer_expect_ack(&t->peer, ACK, P(2));
	assert_int_equal(*word, 8);
	/* the same for one request */
	flush(t, 0, P(3), BOTH);
	sem_wait(&disk.begun);
	write_word(t, P(4), BTH_RC_WRITE_ONLY, 9);
	finish(t);
	answered(t, P(3));
	peer_expect_ack(&t->peer, AETH_NAK | NAK_PSN_SEQUENCE, P(4));
	peer_quiet(&t->peer);
	assert_int_equal(*word, 8);
}

/* Earlier requests are answered meanwhile. */
static void test_before(void **state)
{
	struct fix *t = *state;
	struct packet *p = peer_packet(&t->peer, &t->c[0], BTH_RC_READ_REQUEST, P(0));

	p->va = t->buf;
	p->rkey = t->key;
	p->dmalen = 8;
	peer_send(&t->peer, p, NULL, 0);
	flush(t, 0, P(1), BOTH);
	sem_wait(&disk.begun);
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(0), 1);
	p = peer_packet(&t->peer, &t->c[0], BTH_RC_READ_REQUEST, P(0));
	p->va = t->buf;
	p->rkey = t->key;
	p->dmalen = 8;
	peer_send(&t->peer, p, NULL, 0);	/* and again */
	peer_expect(&t->peer, BTH_RC_READ_RESP_ONLY, P(0), 1);
	peer_quiet(&t->peer);
	finish(t);
	answered(t, P(1));
	peer_quiet(&t->peer);
}

/* ORN-WQE-47, ORN-WQE-48: NAK remote operational, QP_FATAL; the file stays untrusted. */
static void test_failure(void **state)
{
	struct fix *t = *state;
	struct ornic_eqe e;

	disk.result = -1;
	for (int i = 0; i < 2; i++) {
		flush(t, i, P(0), BOTH);
		if (!i) {
			sem_wait(&disk.begun);
			finish(t);
		}
		peer_expect_ack(&t->peer, AETH_NAK | NAK_REMOTE_OPERATIONAL, P(0));
		assert_int_equal(t->peer.in[t->peer.nin - 1]->p.msn, 0);
		peer_quiet(&t->peer);
		assert_int_equal(t->c[i].qp.state, ORNIC_QPS_ERR);
		while (dut_event(t->c[i].d, &e) && e.type == ORNIC_EV_COMM_EST)
			;
		assert_int_equal(e.type, ORNIC_EV_QP_FATAL);
		assert_int_equal(le32toh(e.syndrome), ORNIC_SYN_PERSISTENCE);
		disk.result = 0;
	}
	assert_int_equal(disk.syncs, 1);
	assert_int_equal(t->w.dut[0].dev.cnt[CNT_flush_persistent], 0);
}

/* A sync that began before the FLUSH arrived may have missed its data: another one follows. */
static void test_two(void **state)
{
	struct fix *t = *state;

	flush(t, 0, P(0), BOTH);
	sem_wait(&disk.begun);
	flush(t, 1, P(0), BOTH);
	finish(t);
	answered(t, P(0));
	peer_quiet(&t->peer);
	sem_wait(&disk.begun);
	finish(t);
	answered(t, P(0));
	peer_quiet(&t->peer);
	assert_int_equal(disk.syncs, 2);
}

/* ORN-MEM-12, ORN-QP-3: no command waits for the disk, and its result is ignored afterwards. */
static void test_gone(void **state)
{
	static const uint8_t next[] = { ORNIC_QPS_RESET, ORNIC_QPS_ERR };

	for (uint32_t i = 0; i < sizeof(next); i++) {
		struct fix *t;

		setup(state);
		t = *state;
		flush(t, 0, P(0), BOTH);
		sem_wait(&disk.begun);
		flush(t, 1, P(0), BOTH);
		((struct mr *)table_get(&t->w.dut[0].dev.keys, t->key >> ORNIC_KEY_TAG_BITS))->durable =
			NULL;			/* as if the key were destroyed */
		for (int k = 0; k < 2; k++)
			qp_set_state(&t->c[k].qp, next[i]);
		finish(t);
		peer_quiet(&t->peer);
		assert_int_equal(t->w.dut[0].dev.cnt[CNT_flush_persistent], 0);
		teardown(state);
	}
}

/* The engine ends although the disk does not. */
static void test_end(void **state)
{
	struct fix *t = *state;

	flush(t, 0, P(0), BOTH);
	sem_wait(&disk.begun);
	qp_set_state(&t->c[0].qp, ORNIC_QPS_ERR);
	syncer_fini(&t->w.e.syncer);
	end_late(1);
	assert_int_equal(syncer_init(&t->w.e.syncer, slow_sync), 0);
	t->hung = true;
}

/* ---- supported memory ---- */

static char here[4096] = ".";	/* of the test program: no folder in memory */

static int counting_sync(int fd)
{
	disk.syncs++;
	return fdatasync(fd);
}

/*
 * Return true if the kernel says that a power failure erases the file; independent of the tested
 * code.
 */
static bool in_memory(int fd)
{
	struct statfs st;

	assert_int_equal(fstatfs(fd, &st), 0);
	return st.f_type == TMPFS_MAGIC || st.f_type == RAMFS_MAGIC ||
		st.f_type == HUGETLBFS_MAGIC;
}

/* Map a file on the checkout's disk at @addr; -1 if it is not on a disk. */
static int disk_map(struct inproc *p, uint64_t addr)
{
	int fd = open(here, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct durable *d;
	uint64_t span;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	p->ep.gpa->pool.limits.disk = true;
	assert_int_equal(gpa_map(p->ep.gpa, addr, BYTES, GPA_READ | GPA_WRITE, fd, 0), 0);
	d = gpa_durable(p->ep.gpa, addr, BYTES, &span);
	if (in_memory(fd)) {
		assert_null(d);
		assert_int_equal(gpa_unmap(p->ep.gpa, addr, BYTES), 0);
		close(fd);
		return -1;
	}
	assert_non_null(d);
	return fd;
}

static int create(struct inproc *p, uint64_t addr, uint64_t len, uint32_t access)
{
	struct ornic_key_create_cmd cmd = {
		.pd = htole32(p->pd),
		.access = htole32(access),
		.iova = htole64(addr),
		.length = htole64(len),
		.pages = host_contiguous(addr),
	};

	if (!len)
		cmd.pages = (struct ornic_pages) {};
	return host_exec(&p->host, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd), NULL, 0);
}

static void refused(struct inproc *p, uint64_t addr, uint64_t len)
{
	assert_int_equal(create(p, addr, len, RIGHTS), ORNIC_ST_BAD_PARAM);
	assert_int_equal(le32toh(p->host.cpl.syndrome),
			 ORNIC_SYN_FIELD | offsetof(struct ornic_key_create_cmd, access));
	assert_int_equal(create(p, addr, len, RIGHTS & ~ORNIC_ACCESS_FLUSH_PERSISTENT), 0);
}

/* ORN-MEM-23: all of it in memory that can be made persistent, or the command fails */
static void test_create(void **state)
{
	struct inproc *p = *state;
	uint64_t budget;
	int fd = disk_map(p, DISK), other = disk_map(p, DISK + BYTES);
	struct durable *file;
	uint32_t refs;

	refused(p, INPROC_BASE, 4096);
	if (fd < 0)
		skip();
	budget = p->f->dev.lists.left;
	file = gpa_durable(p->ep.gpa, DISK, BYTES, &(uint64_t) { 0 });
	refs = file->refs;
	assert_int_equal(create(p, DISK, BYTES, RIGHTS), ORNIC_ST_OK);
	assert_int_equal(file->refs, refs + 1);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_DESTROY, host_number(&p->host), NULL, 0,
				   NULL, 0), ORNIC_ST_OK);
	assert_int_equal(file->refs, refs);
	assert_int_equal(create(p, 0, 0, RIGHTS), ORNIC_ST_OK);
	assert_int_equal(p->f->dev.lists.left, budget);
	refused(p, DISK + 4096, BYTES);			/* two files */
	refused(p, DISK + BYTES, BYTES + 1);		/* the end of one */
	refused(p, DISK - 4096, 8192);
	refused(p, DISK - 1, 2);
	assert_int_equal(file->refs, refs);
	close(fd);
	close(other);
}

/* A power failure erases device memory. */
static void test_dm(void **state)
{
	struct inproc *p = *state;
	struct ornic_dm_create_cmd dm = { .bytes = htole64(4096) };
	struct ornic_dm_create_rsp rsp;
	struct ornic_key_create_cmd cmd = {
		.kind = ORNIC_KEY_DM, .pd = htole32(p->pd), .access = htole32(RIGHTS),
		.length = htole64(4096),
	};

	assert_int_equal(host_exec(&p->host, ORNIC_OP_DM_CREATE, 0, &dm, sizeof(dm), &rsp,
				   sizeof(rsp)), ORNIC_ST_OK);
	cmd.dm = htole32(host_number(&p->host));
	assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd), NULL, 0),
			 ORNIC_ST_BAD_PARAM);
}

static int modify(struct inproc *p, uint32_t key, uint32_t mask, uint64_t addr, uint32_t access)
{
	struct ornic_key_modify_cmd m = {
		.mask = htole32(mask),
		.attr = {
			.access = htole32(access),
			.iova = htole64(addr),
			.length = htole64(4096),
			.pages = host_contiguous(addr),
		},
	};

	return host_exec(&p->host, ORNIC_OP_KEY_MODIFY, key, &m, sizeof(m), NULL, 0);
}

/* ORN-MEM-23 for the memory of a changed region */
static void test_modify(void **state)
{
	struct inproc *p = *state;
	const uint32_t plain = RIGHTS & ~ORNIC_ACCESS_FLUSH_PERSISTENT;
	int fd = disk_map(p, DISK);
	struct durable *file;
	uint32_t key, refs;
	struct mr *mr;

	if (fd < 0)
		skip();
	assert_int_equal(create(p, INPROC_BASE, 4096, plain), ORNIC_ST_OK);
	key = host_number(&p->host);
	mr = table_get(&p->f->dev.keys, key >> ORNIC_KEY_TAG_BITS);
	assert_int_equal(modify(p, key, ORNIC_KEYM_ACCESS, 0, RIGHTS), ORNIC_ST_BAD_PARAM);
	assert_int_equal(mr->access, plain);
	assert_int_equal(modify(p, key, ORNIC_KEYM_ACCESS | ORNIC_KEYM_TRANSLATION, DISK, RIGHTS),
			 ORNIC_ST_OK);
	assert_non_null(mr->durable);
	assert_int_equal(modify(p, key, ORNIC_KEYM_TRANSLATION, INPROC_BASE, 0),
			 ORNIC_ST_BAD_PARAM);
	assert_int_equal(mr->iova, DISK);
	file = mr->durable;
	assert_non_null(file);
	refs = file->refs;
	assert_int_equal(modify(p, key, ORNIC_KEYM_ACCESS, 0, plain), ORNIC_ST_OK);
	assert_null(mr->durable);
	assert_int_equal(file->refs, refs - 1);
	assert_int_equal(modify(p, key, ORNIC_KEYM_ACCESS, 0, RIGHTS), ORNIC_ST_OK);
	assert_ptr_equal(mr->durable, file);
	/* The file is known, so it is not searched again. */
	assert_int_equal(gpa_unmap(p->ep.gpa, DISK, BYTES), 0);
	assert_int_equal(modify(p, key, ORNIC_KEYM_ACCESS, 0, RIGHTS), ORNIC_ST_OK);
	assert_int_equal(modify(p, key, ORNIC_KEYM_ACCESS | ORNIC_KEYM_TRANSLATION, INPROC_BASE,
				plain), ORNIC_ST_OK);
	assert_null(mr->durable);
	close(fd);
}

/* ORN-SEC-14: a check of many pages takes several turns. */
static void test_many_pages(void **state)
{
	struct inproc *p = *state;
	const uint32_t pages = 3 * PROGRESS_WORK / 2;
	uint64_t list = dma_alloc(&p->host.dma, pages * 8, 4096);
	struct ornic_key_create_cmd cmd = {
		.pd = htole32(p->pd),
		.access = htole32(RIGHTS),
		.length = htole64((uint64_t)pages << 12),
		.pages = { .addr = htole64(list), .page_shift = 12, .level = 1 },
	};
	uint64_t *page = dma_at(&p->host.dma, list);
	int fd = disk_map(p, DISK);
	struct durable *file;
	uint32_t refs;

	if (fd < 0)
		skip();
	file = gpa_durable(p->ep.gpa, DISK, BYTES, &(uint64_t) { 0 });
	refs = file->refs;
	for (uint32_t i = 0; i < pages; i++)
		page[i] = htole64(DISK);
	for (int bad = 0; bad < 2; bad++) {
		page[pages - 1] = htole64(bad ? INPROC_BASE : DISK);
		assert_int_equal(host_exec(&p->host, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd),
					   NULL, 0), bad ? ORNIC_ST_BAD_PARAM : ORNIC_ST_OK);
		assert_int_equal(file->refs, refs + 1);		/* of the first key */
	}
	close(fd);
}

static int synced = 1;

static void sync_done(struct sync_wait *w, int err)
{
	assert_false(w->waiting);
	synced = err;
}

/* The kernel syncs a file that the client has unmapped and closed meanwhile. */
static void test_file(void **state)
{
	struct inproc *p = *state;
	struct syncer *s = &p->engine.syncer;
	struct pollfd ready = { .fd = s->fd, .events = POLLIN };
	struct sync_wait w = { .done = sync_done };
	int fd = disk_map(p, DISK);
	uint64_t span;

	if (fd < 0)
		skip();
	disk_reset();
	s->sync = counting_sync;
	syncer_add(s, gpa_durable(p->ep.gpa, DISK, BYTES, &span), &w);
	assert_int_equal(span, BYTES);
	close(fd);
	gpa_unmap_all(p->ep.gpa);
	assert_int_equal(poll(&ready, 1, -1), 1);
	syncer_reap(s);
	assert_int_equal(synced, 0);
	assert_int_equal(disk.syncs, 1);
}

/* A client that shrinks its file loses written data: the next flush reports it. */
static void test_shrunk(void **state)
{
	struct inproc *p = *state;
	int fd = disk_map(p, DISK);
	struct durable *d;
	uint64_t span;

	if (fd < 0)
		skip();
	assert_int_equal(backing_guard(), 0);
	d = gpa_durable(p->ep.gpa, DISK, BYTES, &span);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_false(durable_lost(d));
	*(volatile uint8_t *)gpa_ptr(p->ep.gpa, DISK, 1, true) = 1;
	assert_true(durable_lost(d));
	close(fd);
}

/* ---- failures and delays of several files ---- */

/* A syncer and two clients without a device */
struct files {
	struct syncer s;
	struct gpa *g[2];
};

static int files_setup(void **state)
{
	struct files *t = test_calloc(1, sizeof(*t));

	disk_reset();
	assert_int_equal(syncer_init(&t->s, slow_sync), 0);
	for (int i = 0; i < 2; i++) {
		t->g[i] = gpa_new(NULL);
		assert_non_null(t->g[i]);
		t->g[i]->pool.limits.disk = true;
	}
	*state = t;
	return 0;
}

static int files_teardown(void **state)
{
	struct files *t = *state;

	for (int i = 0; i < 2; i++)
		gpa_free(t->g[i]);
	disk.type = 0;
	syncer_fini(&t->s);
	assert_int_equal(locks_wrong(), 0);
	test_free(t);
	return 0;
}

/* How many files of a client are synchronised at once, and how many lost ones are remembered */
static void test_numbers(void **state)
{
	static const struct number numbers[] = {
		NUMBER(SYNCER_THREADS, 4), NUMBER(DURABLE_LOST_MAX, 64),
	};

	(void)state;
	NUMBERS_CHECK(numbers);
}

static void reap(struct syncer *s)
{
	struct pollfd ready = { .fd = s->fd, .events = POLLIN };

	assert_int_equal(poll(&ready, 1, 10000), 1);
	syncer_reap(s);
}

/* Return the result of a FLUSH. */
static int sync_now(struct syncer *s, struct durable *d)
{
	struct sync_wait w = { .done = sync_done };

	synced = 1;
	syncer_add(s, d, &w);
	while (synced == 1)	/* the thread of an earlier sync may have woken us late */
		reap(s);
	return synced;
}

/* As the kernel: the first sync by each open file description fails. Its offset stores this. */
static int once_sync(int fd)
{
	if (lseek(fd, 0, SEEK_CUR))
		return 0;
	lseek(fd, 1, SEEK_SET);
	errno = EIO;
	return -1;
}

/* Return true if the calling thread blocks every signal that a process may block. */
static bool all_blocked(void)
{
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &set);
	for (int sig = 1; sig < SIGSYS; sig++)
		if (sig != SIGKILL && sig != SIGSTOP && !sigismember(&set, sig))
			return false;
	return true;
}

/* A signal interrupts the first call. */
static int interrupted_sync(int fd)
{
	(void)fd;
	disk.exposed |= !all_blocked();
	errno = EINTR;
	return disk.syncs++ ? 0 : -1;
}

/* Signals go to the main thread, and one that interrupts a sync has no effect. */
static void test_signals(void **state)
{
	struct files *t = *state;
	int fd = disk_file();
	struct durable *d = disk_durable(t->g[0], fd);
	sigset_t set;

	assert_true(fcntl(t->s.fd, F_GETFD) & FD_CLOEXEC);
	syncer_reap(&t->s);		/* does not wait */
	disk.exposed = false;
	t->s.sync = interrupted_sync;
	assert_int_equal(sync_now(&t->s, d), 0);
	assert_int_equal(disk.syncs, 2);
	assert_false(disk.exposed);
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	assert_false(sigismember(&set, SIGTERM));
	close(fd);
}

static struct sync_wait *waiters[4];	/* in the order of their results */
static unsigned int nwaiters;

static void note_done(struct sync_wait *w, int err)
{
	assert_int_equal(err, 0);
	waiters[nwaiters++] = w;
}

/* The waiters of a file get their results in their order, except one that is cancelled. */
static void test_order(void **state)
{
	struct files *t = *state;
	struct sync_wait w[5];
	int fd = disk_file();
	struct durable *d = disk_durable(t->g[0], fd);

	nwaiters = 0;
	for (int i = 0; i < 5; i++) {
		w[i] = (struct sync_wait) { .done = note_done };
		syncer_add(&t->s, d, &w[i]);
		assert_true(w[i].waiting);
		if (!i)
			sem_wait(&disk.begun);
	}
	sync_cancel(&w[2]);
	assert_false(w[2].waiting);
	assert_int_equal(d->client->running, 1);
	assert_int_equal(d->refs, 2);
	for (int i = 0; i < 2; i++) {
		sem_post(&disk.end);
		reap(&t->s);
		assert_int_equal(nwaiters, i ? 4 : 1);
		assert_int_equal(d->busy, !i);
	}
	assert_ptr_equal(waiters[0], &w[0]);
	assert_ptr_equal(waiters[1], &w[1]);
	assert_ptr_equal(waiters[2], &w[3]);
	assert_ptr_equal(waiters[3], &w[4]);
	assert_int_equal(d->client->running, 0);
	assert_int_equal(d->refs, 1);
	assert_true(LIST_EMPTY(&t->s.waiting));
	assert_int_equal(disk.syncs, 2);
	close(fd);
}

/* Return what the log says about a sync of @d. */
static const char *sync_says(struct syncer *s, struct durable *d)
{
	static char said[300];
	struct printed printed;

	print_begin(&printed, STDERR_FILENO);
	sync_now(s, d);
	print_end(&printed, said, sizeof(said));
	return said;
}

/* Failures are logged with their reason. Runs first, because the log drops what repeats. */
static void test_messages(void **state)
{
	struct files *t = *state;
	int fd = disk_file();
	struct durable *d = disk_durable(t->g[0], fd);
	struct sync_wait w = { .done = sync_done };
	struct printed printed;
	char said[300];

	failing_begin(FAILING_KERNEL, EAGAIN, 0);
	assert_string_equal(sync_says(&t->s, d), "ornicd: error: cannot start a thread to make a "
			    "memory file durable: Resource temporarily unavailable\n");
	assert_true(failing_end());
	t->s.sync = counting_sync;
	assert_string_equal(sync_says(&t->s, d), "");
	t->s.sync = once_sync;
	assert_string_equal(sync_says(&t->s, d), "ornicd: error: cannot make a client's memory "
			    "file durable: Input/output error\n");
	gpa_unmap_all(t->g[0]);
	print_begin(&printed, STDERR_FILENO);
	disk_durable(t->g[0], fd);
	print_end(&printed, said, sizeof(said));
	assert_string_equal(said, "ornicd: warning: a client maps a memory file that lost data: "
			    "each FLUSH of it fails; give the machine a copy of the file\n");
	close(fd);
	fd = disk_file();
	disk.open_error = EPERM;
	print_begin(&printed, STDERR_FILENO);
	assert_null(disk_durable(t->g[1], fd));
	print_end(&printed, said, sizeof(said));
	disk.open_error = 0;
	assert_string_equal(said, "ornicd: warning: cannot open a client's memory file, so FLUSH "
			    "cannot make it durable: Operation not permitted; let ornicd read the "
			    "file\n");
	close(fd);
	gpa_unmap_all(t->g[1]);
	fd = disk_file();
	t->s.sync = slow_sync;
	for (int i = 0; i < 2; i++) {
		if (i) {
			syncer_add(&t->s, disk_durable(t->g[1], fd), &w);
			sem_wait(&disk.begun);
			sync_cancel(&w);
		}
		print_begin(&printed, STDERR_FILENO);
		syncer_fini(&t->s);
		print_end(&printed, said, sizeof(said));
		assert_string_equal(said, i ? "ornicd: warning: not waiting for the disk of a "
				    "client's memory file\n" : "");
		assert_int_equal(syncer_init(&t->s, slow_sync), 0);
	}
	end_late(disk.syncs + 1);
	close(fd);
}

/* A lost file is forgotten with its last user after the client went. */
static void test_client_gone(void **state)
{
	struct files *t = *state;
	int fd = disk_file();
	struct durable *d = disk_durable(t->g[0], fd);

	t->s.sync = once_sync;
	assert_int_equal(sync_now(&t->s, d), -EIO);
	durable_get(d);
	gpa_free(t->g[0]);
	t->g[0] = NULL;
	assert_int_equal(d->refs, 1);
	assert_true(durable_lost(d));
	durable_put(d);
	assert_false(durable_lost(disk_durable(t->g[1], fd)));
	close(fd);
}

/* Another file that got the number of a file that lost data is a new one. */
static void test_identity(void **state)
{
	static const struct durable_id others[] = { { .dev = 1 }, { .ino = 1 }, { .born = 1 } };
	struct files *t = *state;
	int fd = disk_file();
	struct durable *d = disk_durable(t->g[0], fd);

	t->s.sync = once_sync;
	assert_int_equal(sync_now(&t->s, d), -EIO);
	gpa_unmap_all(t->g[0]);
	for (int i = 0; i < 3; i++) {
		disk.other = others[i];
		assert_false(durable_lost(disk_durable(t->g[1], fd)));
		disk.other = (struct durable_id) { 0 };
		gpa_unmap_all(t->g[1]);
	}
	assert_ptr_equal(disk_durable(t->g[1], fd), d);
	close(fd);
}

/* The end of the daemon frees a file whose sync has ended and was not reported. */
static void test_end_not_reaped(void **state)
{
	struct files *t = *state;
	struct pollfd ready = { .fd = t->s.fd, .events = POLLIN };
	struct sync_wait w = { .done = sync_done };
	int fd = disk_file();

	t->s.sync = once_sync;
	syncer_add(&t->s, disk_durable(t->g[0], fd), &w);
	close(fd);
	assert_int_equal(poll(&ready, 1, 10000), 1);
	sync_cancel(&w);
	assert_false(TAILQ_EMPTY(&t->s.done));
}

/* ORN-WQE-47: the client's own fsync() does not take the report of the failure. */
static void test_client_syncs(void **state)
{
	struct files *t = *state;
	int fd = disk_file();
	struct durable *d = disk_durable(t->g[0], fd);

	t->s.sync = once_sync;
	assert_int_equal(once_sync(fd), -1);
	assert_int_equal(once_sync(fd), 0);
	assert_int_equal(sync_now(&t->s, d), -EIO);
	close(fd);
}

/* ORN-WQE-48: the same file in two devices; the first one that fails is reported to both. */
static void test_two_devices(void **state)
{
	struct files *t = *state;
	int fd = disk_file();

	t->s.sync = once_sync;
	for (int i = 0; i < 2; i++)
		assert_int_equal(sync_now(&t->s, disk_durable(t->g[i], fd)), -EIO);
	close(fd);
}

/* ORN-WQE-48: nor does the file recover when it is unmapped; it may be deleted and closed. */
static void test_map_again(void **state)
{
	struct files *t = *state;
	int fd = disk_file(), next = dup(fd);
	struct durable *d = disk_durable(t->g[0], fd);

	close(next);
	t->s.sync = once_sync;
	assert_int_equal(sync_now(&t->s, d), -EIO);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(d->refs, 1);
		assert_int_equal(d->client->nlost, 0);
		assert_int_equal(d->client->refs, 2);
		gpa_unmap_all(t->g[0]);
		gpa_unmap_all(t->g[1]);
		assert_int_equal(d->refs, 0);
		assert_int_equal(d->fd, -1);
		assert_int_equal(d->client->nlost, 1);
		assert_int_equal(d->client->refs, 1);
		assert_int_equal(dup(fd), next);	/* all descriptors are closed */
		close(next);
		assert_ptr_equal(disk_durable(t->g[i & 1], fd), d);
		assert_int_equal(sync_now(&t->s, d), -EIO);
	}
	close(fd);
}

static void lose_file(struct files *t, int fd)
{
	assert_int_equal(sync_now(&t->s, disk_durable(t->g[0], fd)), -EIO);
	gpa_unmap_all(t->g[0]);
}

/* A client that loses many files forgets its own only. */
static void test_many_lost(void **state)
{
	struct files *t = *state;
	int fd[DURABLE_LOST_MAX + 1], other = disk_file();

	t->s.sync = once_sync;
	assert_int_equal(sync_now(&t->s, disk_durable(t->g[1], other)), -EIO);
	gpa_unmap_all(t->g[1]);
	for (int i = 0; i <= DURABLE_LOST_MAX; i++) {
		fd[i] = disk_file();
		lose_file(t, fd[i]);
	}
	t->s.sync = counting_sync;
	lose_file(t, fd[1]);
	assert_int_equal(sync_now(&t->s, disk_durable(t->g[0], fd[0])), 0);
	assert_int_equal(sync_now(&t->s, disk_durable(t->g[1], other)), -EIO);
	assert_int_equal(disk.syncs, 1);
	for (int i = 0; i <= DURABLE_LOST_MAX; i++)
		close(fd[i]);
	close(other);
}

static void rejected_with(struct gpa *g, uint64_t addr, int fd, int err, const char *want)
{
	unsigned int before = descriptors();
	struct printed printed;
	char said[400];

	print_begin(&printed, STDERR_FILENO);
	assert_int_equal(gpa_map(g, addr, BYTES, GPA_READ, fd, 0), err);
	print_end(&printed, said, sizeof(said));
	assert_string_equal(said, want);
	assert_int_equal(descriptors(), before);
}

/* Files on disks only where the operator allows them, and no descriptor for others */
static void test_disk_allowed(void **state)
{
	static const long memory[] = { TMPFS_MAGIC, RAMFS_MAGIC };
	static const long disks[] = { EXT4_SUPER_MAGIC, NFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC };
	struct files *t = *state;
	int fd = disk_file();

	t->g[0]->pool.limits.disk = false;
	for (unsigned int i = 0; i < sizeof(disks) / sizeof(disks[0]); i++) {
		disk.type = disks[i];
		rejected_with(t->g[0], DISK, fd, -EOPNOTSUPP,
			      "ornicd: warning: a client's memory file is on a disk, whose delays "
			      "would stop all devices; use a file of memfd, tmpfs or hugetlbfs, or "
			      "allow it by nvdimm=on of the device\n");
	}
	for (unsigned int i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
		disk.type = memory[i];
		assert_int_equal(gpa_map(t->g[0], DISK, BYTES, GPA_READ, fd, 0), 0);
		gpa_unmap_all(t->g[0]);
	}
	close(fd);
}

/* Each file on a disk needs a descriptor, so their number is bounded; those that went do not count. */
static void test_many_disks(void **state)
{
	struct files *t = *state;
	int fd[DURABLE_FILES + 1];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < DURABLE_FILES; i++) {
			fd[i] = disk_file();
			assert_int_equal(gpa_map(t->g[0], DISK + i * BYTES, BYTES, GPA_READ, fd[i],
						 0), 0);
		}
		assert_int_equal(t->g[0]->pool.client->files, DURABLE_FILES);
		fd[DURABLE_FILES] = disk_file();
		rejected_with(t->g[0], DISK - BYTES, fd[DURABLE_FILES], -ENOSPC,
			      "ornicd: warning: a client has as many memory files on disks as a device may map\n");
		assert_int_equal(gpa_map(t->g[1], DISK, BYTES, GPA_READ, fd[DURABLE_FILES], 0),
				 0);
		for (int i = 0; i <= DURABLE_FILES; i++)
			close(fd[i]);
		if (!round)
			gpa_unmap_all(t->g[0]);
		gpa_unmap_all(t->g[1]);
	}
	for (int i = 0; i < DURABLE_FILES; i++)
		assert_int_equal(gpa_unmap(t->g[0], DISK + i * BYTES, BYTES), 0);
	assert_int_equal(t->g[0]->pool.client->files, BACKING_IDLE_MAX);
}

/* Memory keys keep files without a mapping. They count, too. */
static void test_kept_disks(void **state)
{
	struct durable *kept[DURABLE_FILES];
	struct files *t = *state;
	uint64_t span;
	int fd;

	for (int i = 0; i < DURABLE_FILES; i++) {
		fd = disk_file();
		assert_int_equal(gpa_map(t->g[0], DISK, BYTES, GPA_READ, fd, 0), 0);
		kept[i] = durable_get(gpa_durable(t->g[0], DISK, BYTES, &span));
		assert_non_null(kept[i]);
		gpa_unmap_all(t->g[0]);
		close(fd);
	}
	fd = disk_file();
	rejected_with(t->g[0], DISK, fd, -ENOSPC,
		      "ornicd: warning: a client has as many memory files on disks as a device may map\n");
	durable_put(kept[0]);
	assert_int_equal(gpa_map(t->g[0], DISK, BYTES, GPA_READ, fd, 0), 0);
	close(fd);
	for (int i = 1; i < DURABLE_FILES; i++)
		durable_put(kept[i]);
}

static int selective_sync(int fd)
{
	struct stat st;

	fstat(fd, &st);
	return st.st_ino == disk.slow ? slow_sync(fd) : 0;
}

/* A disk that does not answer does not delay the FLUSH of another client. */
static void test_slow_client(void **state)
{
	struct files *t = *state;
	struct sync_wait w = { .done = sync_done };
	int fd[2] = { disk_file(), disk_file() };
	struct stat st;

	t->s.sync = selective_sync;
	assert_int_equal(fstat(fd[0], &st), 0);
	disk.slow = st.st_ino;
	syncer_add(&t->s, disk_durable(t->g[0], fd[0]), &w);
	sem_wait(&disk.begun);
	assert_int_equal(sync_now(&t->s, disk_durable(t->g[1], fd[1])), 0);
	assert_true(w.waiting);
	sem_post(&disk.end);
	reap(&t->s);
	assert_false(w.waiting);
	close(fd[0]);
	close(fd[1]);
}

/* The files of a client beyond SYNCER_THREADS wait, those of others do not. */
static void test_busy_client(void **state)
{
	struct files *t = *state;
	struct sync_wait w[SYNCER_THREADS + 3];
	struct durable *d[SYNCER_THREADS + 3];
	uint64_t span;

	for (int i = 0; i < SYNCER_THREADS + 3; i++) {
		int fd = disk_file();
		uint64_t at = DISK + i * BYTES;
		struct gpa *g = t->g[i == SYNCER_THREADS + 2];

		assert_int_equal(gpa_map(g, at, BYTES, GPA_READ, fd, 0), 0);
		d[i] = gpa_durable(g, at, BYTES, &span);
		w[i] = (struct sync_wait) { .done = sync_done };
		syncer_add(&t->s, d[i], &w[i]);
		close(fd);
	}
	for (int i = 0; i < SYNCER_THREADS + 1; i++)
		sem_wait(&disk.begun);
	assert_int_equal(d[0]->client->running, SYNCER_THREADS);
	assert_int_equal(d[SYNCER_THREADS]->refs, 2);
	assert_int_equal(d[SYNCER_THREADS + 1]->refs, 2);
	sync_cancel(&w[SYNCER_THREADS]);		/* needs no sync any more */
	for (int i = 0; i < SYNCER_THREADS + 2; i++)
		sem_post(&disk.end);
	while (w[SYNCER_THREADS + 1].waiting)
		reap(&t->s);
	assert_int_equal(d[SYNCER_THREADS]->refs, 1);
	for (int i = 0; i < SYNCER_THREADS + 3; i++)
		while (w[i].waiting)
			reap(&t->s);
	assert_int_equal(disk.syncs, SYNCER_THREADS + 2);
}

/* Each free thread takes one file that waits; a file without waiters can be synced later. */
static void test_queue(void **state)
{
	enum { N = SYNCER_THREADS + 3 };
	struct files *t = *state;
	struct sync_wait w[N];
	struct durable *d[N];
	uint64_t span;

	for (int i = 0; i < N; i++) {
		int fd = disk_file();

		assert_int_equal(gpa_map(t->g[0], DISK + i * BYTES, BYTES, GPA_READ, fd, 0), 0);
		d[i] = gpa_durable(t->g[0], DISK + i * BYTES, BYTES, &span);
		w[i] = (struct sync_wait) { .done = sync_done };
		syncer_add(&t->s, d[i], &w[i]);
		close(fd);
	}
	for (int i = 0; i < SYNCER_THREADS; i++)
		sem_wait(&disk.begun);
	sync_cancel(&w[SYNCER_THREADS]);
	sem_post(&disk.end);
	reap(&t->s);
	sem_wait(&disk.begun);
	assert_int_equal(d[0]->client->running, SYNCER_THREADS);
	assert_false(LIST_EMPTY(&t->s.waiting));
	for (int i = 0; i < N - 2; i++)
		sem_post(&disk.end);
	for (int i = 0; i < N; i++)
		while (w[i].waiting)
			reap(&t->s);
	for (int i = 0; i < N; i++) {
		assert_false(d[i]->busy);
		assert_int_equal(d[i]->refs, 1);
	}
	assert_true(LIST_EMPTY(&t->s.waiting));
	assert_int_equal(d[0]->client->running, 0);
	t->s.sync = counting_sync;
	assert_int_equal(sync_now(&t->s, d[SYNCER_THREADS]), 0);
}

/* Return the address space of the process in bytes. */
static uint64_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages * 4096ull;
}

/* Threads leave nothing behind, and the end of a syncer closes its descriptor. */
static void test_threads_end(void **state)
{
	struct files *t = *state;
	int fd = disk_file();
	struct durable *d = disk_durable(t->g[0], fd);
	unsigned int open_before = descriptors();
	uint64_t before = 0;

	t->s.sync = counting_sync;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(sync_now(&t->s, d), 0);
		if (i == 10)
			before = address_space();
	}
	assert_true(address_space() < before + (300u << 20));
	syncer_fini(&t->s);
	assert_int_equal(descriptors(), open_before - 1);
	assert_int_equal(syncer_init(&t->s, slow_sync), 0);
	close(fd);
}

/* The syncer ends while files of a client wait for its threads. */
static void test_end_busy(void **state)
{
	struct files *t = *state;
	struct sync_wait w[SYNCER_THREADS + 1];
	struct durable *last = NULL;
	uint64_t span;

	for (int i = 0; i < SYNCER_THREADS + 1; i++) {
		int fd = disk_file();

		assert_int_equal(gpa_map(t->g[0], DISK + i * BYTES, BYTES, GPA_READ, fd, 0), 0);
		last = gpa_durable(t->g[0], DISK + i * BYTES, BYTES, &span);
		w[i] = (struct sync_wait) { .done = sync_done };
		syncer_add(&t->s, last, &w[i]);
		close(fd);
	}
	for (int i = 0; i < SYNCER_THREADS; i++)
		sem_wait(&disk.begun);
	for (int i = 0; i < SYNCER_THREADS + 1; i++)
		sync_cancel(&w[i]);
	assert_int_equal(last->refs, 2);
	syncer_fini(&t->s);
	assert_int_equal(last->refs, 1);
	end_late(SYNCER_THREADS);
	assert_int_equal(syncer_init(&t->s, slow_sync), 0);
}

/* Without a thread the FLUSH fails, but the file has lost nothing. */
static void test_no_thread(void **state)
{
	struct files *t = *state;
	int fd = disk_file();
	struct durable *d = disk_durable(t->g[0], fd);

	t->s.sync = counting_sync;
	failing_begin(FAILING_KERNEL, EAGAIN, 0);
	assert_int_equal(sync_now(&t->s, d), -EAGAIN);
	assert_true(failing_end());
	assert_int_equal(d->refs, 1);
	assert_false(d->busy);
	assert_int_equal(d->client->running, 0);
	assert_true(TAILQ_EMPTY(&t->s.running));
	assert_int_equal(sync_now(&t->s, d), 0);
	close(fd);
}

/* The client is told that its file could not be mapped such that FLUSH works. */
static void test_no_descriptor(void **state)
{
	struct files *t = *state;
	int fd = disk_file(), next = dup(fd);
	struct rlimit old, few;

	close(next);
	getrlimit(RLIMIT_NOFILE, &old);
	few = old;
	few.rlim_cur = next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(gpa_map(t->g[0], DISK, BYTES, GPA_READ, fd, 0), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	for (int i = 0; i < 3; i++) {
		disk.open_error = (int[]) { EMFILE, ENFILE, ENOMEM }[i];
		assert_int_equal(gpa_map(t->g[0], DISK, BYTES, GPA_READ, fd, 0), -disk.open_error);
	}
	disk.open_error = 0;
	disk.statx_error = ENOMEM;
	assert_int_equal(gpa_map(t->g[0], DISK, BYTES, GPA_READ, fd, 0), -ENOMEM);
	disk.statx_error = 0;
	assert_non_null(disk_durable(t->g[0], fd));
	close(fd);
}

/*
 * Map a file while each call of @kind fails once. The client gets an error, and neither a mapping
 * without FLUSH nor a descriptor that stays open. A call may fail without harm, for example the
 * allocation of a buffer of libc. Return: number of errors.
 */
static uint32_t map_failing(struct gpa *g, int fd, enum failing_kind kind, int error)
{
	const unsigned int open_before = descriptors();
	uint32_t left = 0, errors = 0;
	uint64_t span;
	bool failed;

	do {
		int err;

		failing_begin(kind, error, left++);
		err = gpa_map(g, DISK, BYTES, GPA_READ, fd, 0);
		failed = failing_end();
		if (err) {
			assert_true(failed);
			assert_int_equal(err, -error);
			errors++;
		} else {
			assert_non_null(gpa_durable(g, DISK, BYTES, &span));
			gpa_unmap_all(g);
		}
		assert_int_equal(descriptors(), open_before);
	} while (failed);
	return errors;
}

static void test_map_failures(void **state)
{
	struct files *t = *state;
	int fd = disk_file();

	assert_in_range(map_failing(t->g[0], fd, FAILING_MEMORY, ENOMEM), 3, 10);
	assert_int_equal(map_failing(t->g[0], fd, FAILING_KERNEL, EAGAIN), 1);
	close(fd);
}

/*
 * A file that the daemon may not open is mapped, but is no persistent memory. The file that it may
 * read shows that the mode decides, and not the change of the user.
 */
static void test_unreadable(void **state)
{
	struct files *t = *state;

	for (int i = 0; i < 2; i++) {
		int fd = disk_file();
		struct durable *d;

		assert_int_equal(fchmod(fd, i ? 0444 : 0), 0);
		if (!geteuid())
			assert_int_equal(seteuid(65534), 0);
		d = disk_durable(t->g[i], fd);
		if (!getuid())
			assert_int_equal(seteuid(0), 0);
		assert_int_equal(!!d, i);
		assert_non_null(gpa_ptr(t->g[i], DISK, BYTES, true));
		close(fd);
	}
}

/* The one file of a block is found in steps; memory without it, or of another file, is refused. */
static void test_block(void **state)
{
	struct fix *t = *state;
	const uint64_t other = DISK + 2 * BYTES, last = DISK + BYTES - GUEST_PAGE;
	struct {
		uint64_t page[3];
		uint32_t offset;
		uint64_t len;
		int status;
	} cases[] = {
		{ { DISK, last, DISK }, 100, 2 * GUEST_PAGE, ORNIC_ST_OK },
		{ { last, DISK, last }, 0, 3 * GUEST_PAGE, ORNIC_ST_OK },
		{ { DISK, last, DISK + BYTES }, 100, 2 * GUEST_PAGE - 100, ORNIC_ST_OK },
		{ { DISK, last, DISK + BYTES }, 100, 2 * GUEST_PAGE - 99, ORNIC_ST_BAD_PARAM },
		{ { DISK, last, other }, 0, 2 * GUEST_PAGE + 1, ORNIC_ST_BAD_PARAM },
		{ { other, DISK, last }, 0, 2 * GUEST_PAGE, ORNIC_ST_BAD_PARAM },
		{ { other, other, DISK }, 0, 2 * GUEST_PAGE, ORNIC_ST_OK },
	};
	int fd = disk_file();

	assert_int_equal(gpa_map(t->gpa, other, BYTES, GPA_READ | GPA_WRITE, fd, 0), 0);
	close(fd);
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct umem m = { .gpa = t->gpa, .length = cases[i / 2].len, .shift = 12,
				  .offset = cases[i / 2].offset, .npages = 3,
				  .page = cases[i / 2].page };
		uint64_t off = 0, work = i & 1 ? 10 : 0, looks = 0;
		uint64_t pages = (m.offset + m.length - 1) / GUEST_PAGE + 1;
		struct durable *file = NULL;
		int st;

		while ((st = umem_durable(&m, &off, &work, &file)) == UMEM_MORE) {
			assert_int_equal(work, 0);
			assert_int_equal(off, looks ? looks * GUEST_PAGE - m.offset : 0);
			work = 1;
			looks++;
		}
		assert_int_equal(st, cases[i / 2].status);
		if (st)
			continue;
		assert_int_equal(off, m.length);
		assert_int_equal(i & 1 ? 10 - work : looks, pages);
		assert_int_equal(file == t->file, i / 2 < 6);
	}
}

int main(int argc, char **argv)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
#define R(f)	cmocka_unit_test_setup_teardown(f, inproc_setup_ready, inproc_teardown)
#define F(f)	cmocka_unit_test_setup_teardown(f, files_setup, files_teardown)
	const struct CMUnitTest tests[] = {
		F(test_messages), F(test_signals), F(test_order), F(test_identity),
		F(test_client_gone),
		T(test_waits), T(test_duplicate), T(test_behind), T(test_before), T(test_failure),
		T(test_two), cmocka_unit_test(test_gone),
		cmocka_unit_test(test_numbers), T(test_end), T(test_block),
		R(test_create), R(test_dm), R(test_modify), R(test_many_pages), R(test_file),
		R(test_shrunk),
		F(test_client_syncs), F(test_two_devices), F(test_map_again), F(test_many_lost),
		F(test_disk_allowed), F(test_many_disks), F(test_kept_disks),
		F(test_slow_client), F(test_busy_client), F(test_end_busy),
		F(test_queue), F(test_threads_end), F(test_no_thread),
		F(test_end_not_reaped),
		F(test_no_descriptor), F(test_map_failures), F(test_unreadable),
	};

	if (argc)
		strncpy(here, dirname(argv[0]), sizeof(here) - 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
