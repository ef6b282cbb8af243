// SPDX-License-Identifier: GPL-2.0
/*
 * mem/gpa.c and mem/backing.c: DMA addresses to pointers, at every edge.
 */
#define _GNU_SOURCE 1	/* memfd_create(), unshare() */

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../tools/ornicd/mem/fuse.h"
#include "../../tools/ornicd/mem/gpa.h"
#include "lib/printed.h"

#define PAGE	4096ull
#define RW	(GPA_READ | GPA_WRITE)

struct fixture {
	struct gpa *g;
	int fd;			/* 16 pages, each filled with its number */
};

static int make_file(unsigned int pages)
{
	int fd = memfd_create("test_gpa", MFD_CLOEXEC);
	uint8_t page[PAGE];

	assert_true(fd >= 0);
	for (unsigned int i = 0; i < pages; i++) {
		memset(page, i, sizeof(page));
		assert_int_equal(pwrite(fd, page, sizeof(page), i * PAGE), PAGE);
	}
	return fd;
}

static int setup(void **state)
{
	struct fixture *t = test_calloc(1, sizeof(*t));

	t->g = gpa_new(NULL);
	t->fd = make_file(16);
	*state = t;
	return t->g ? 0 : -1;
}

/* Return true if a file of make_file() is mapped. */
static bool any_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= !!strstr(line, "memfd:test_gpa");
	fclose(f);
	return found;
}

static int teardown(void **state)
{
	struct fixture *t = *state;

	gpa_free(t->g);
	assert_false(any_mapped());
	close(t->fd);
	test_free(t);
	return 0;
}

static void test_map_and_find(void **state)
{
	struct fixture *t = *state;
	uint8_t *p, seen = 0;

	assert_null(gpa_ptr(t->g, 0, 1, false));
	assert_int_equal(gpa_map(t->g, 0x10000, 4 * PAGE, RW, t->fd, 2 * PAGE), 0);
	p = gpa_ptr(t->g, 0x10000, 4 * PAGE, true);
	assert_non_null(p);
	assert_int_equal(p[0], 2);
	assert_int_equal(p[3 * PAGE], 5);
	p[5] = 0xaa;
	assert_int_equal(pread(t->fd, &seen, 1, 2 * PAGE + 5), 1);
	assert_int_equal(seen, 0xaa);
	assert_ptr_equal(gpa_ptr(t->g, 0x10005, 1, false), p + 5);
}

/* The quick look-up, in the piece that was found last, gives what the search gives. */
static void test_found_last(void **state)
{
	struct fixture *t = *state;
	uint8_t *p;

	assert_int_equal(gpa_map(t->g, PAGE, 8 * PAGE, RW, t->fd, 0), 0);
	assert_int_equal(gpa_map(t->g, 16 * PAGE, PAGE, GPA_READ, t->fd, 8 * PAGE), 0);
	assert_int_equal(gpa_map(t->g, 17 * PAGE, PAGE, GPA_WRITE, t->fd, 0), 0);
	p = gpa_ptr(t->g, PAGE, 8 * PAGE, true);
	assert_non_null(p);
	assert_ptr_equal(gpa_ptr(t->g, PAGE + 5, 1, false), p + 5);
	assert_ptr_equal(gpa_ptr(t->g, 3 * PAGE, 6 * PAGE, true), p + 2 * PAGE);
	assert_ptr_equal(gpa_ptr(t->g, 9 * PAGE - 1, 1, true), p + 8 * PAGE - 1);
	assert_null(gpa_ptr(t->g, 9 * PAGE - 1, 2, true));
	assert_non_null(gpa_ptr(t->g, 16 * PAGE, PAGE, false));
	assert_null(gpa_ptr(t->g, 16 * PAGE, PAGE, true));
	assert_non_null(gpa_ptr(t->g, 17 * PAGE, PAGE, true));
	assert_null(gpa_ptr(t->g, 17 * PAGE, PAGE, false));
}

/* A piece that was unmapped does not continue the one before it. */
static void test_neighbour_gone(void **state)
{
	struct fixture *t = *state;
	void *ptr;

	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, 0), 0);
	assert_int_equal(gpa_map(t->g, PAGE, PAGE, RW, t->fd, PAGE), 0);
	assert_int_equal(gpa_span(t->g, 0, 2 * PAGE, true, &ptr), 2 * PAGE);
	assert_int_equal(gpa_unmap(t->g, PAGE, PAGE), 0);
	assert_int_equal(gpa_span(t->g, 0, 2 * PAGE, true, &ptr), PAGE);
}

static void test_boundaries(void **state)
{
	struct fixture *t = *state;

	assert_int_equal(gpa_map(t->g, 0x10000, PAGE, RW, t->fd, 0), 0);
	for (int warm = 0; warm < 2; warm++) {
		assert_null(gpa_ptr(t->g, 0xffff, 1, false));
		assert_null(gpa_ptr(t->g, 0xffff, 2, false));
		assert_non_null(gpa_ptr(t->g, 0x10fff, 1, false));
		assert_null(gpa_ptr(t->g, 0x10fff, 2, false));
		assert_null(gpa_ptr(t->g, 0x11000, 1, false));
		assert_null(gpa_ptr(t->g, 0x10000, PAGE + 1, false));
		assert_null(gpa_ptr(t->g, 0x10000, 0, false));
		assert_null(gpa_ptr(t->g, 0x10001, UINT64_MAX, false));
		assert_null(gpa_ptr(t->g, UINT64_MAX, 2, false));
		assert_non_null(gpa_ptr(t->g, 0x10000, PAGE, false));
	}
}

static void test_top_of_address_space(void **state)
{
	struct fixture *t = *state;
	uint8_t buf[16];

	assert_int_equal(gpa_map(t->g, 0 - PAGE, PAGE, RW, t->fd, 0), 0);
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, PAGE), 0);
	assert_non_null(gpa_ptr(t->g, UINT64_MAX, 1, false));
	assert_null(gpa_ptr(t->g, UINT64_MAX, 2, false));
	/* An address must not wrap to 0. */
	assert_int_equal(gpa_read(t->g, UINT64_MAX - 7, buf, 8), 0);
	assert_int_equal(gpa_read(t->g, UINT64_MAX - 7, buf, 9), -EFAULT);
	assert_int_equal(gpa_write(t->g, UINT64_MAX - 7, buf, 9), -EFAULT);
	assert_int_equal(gpa_map(t->g, 0 - 2 * PAGE, 3 * PAGE, RW, t->fd, 0), -EINVAL);
	assert_int_equal(gpa_unmap(t->g, 0 - PAGE, 2 * PAGE), -EINVAL);
	assert_int_equal(gpa_unmap(t->g, 0 - PAGE, PAGE), 0);
}

static void test_whole_address_space(void **state)
{
	struct fixture *t = *state;

	/* Mapped without memory: the largest possible piece. */
	assert_int_equal(gpa_map(t->g, 1, UINT64_MAX, RW, -1, 0), 0);
	assert_null(gpa_ptr(t->g, 1, 1, false));
	assert_int_equal(gpa_map(t->g, 5 * PAGE, PAGE, RW, t->fd, 0), -EEXIST);
	assert_int_equal(gpa_map(t->g, 0, 1, RW, -1, 0), 0);
}

static void test_overlap(void **state)
{
	struct fixture *t = *state;

	assert_int_equal(gpa_map(t->g, 4 * PAGE, 4 * PAGE, RW, t->fd, 0), 0);
	assert_int_equal(gpa_map(t->g, 4 * PAGE, 4 * PAGE, RW, t->fd, 0), -EEXIST);
	assert_int_equal(gpa_map(t->g, 3 * PAGE, 2 * PAGE, RW, t->fd, 0), -EEXIST);
	assert_int_equal(gpa_map(t->g, 7 * PAGE, 2 * PAGE, RW, t->fd, 0), -EEXIST);
	assert_int_equal(gpa_map(t->g, 5 * PAGE, PAGE, RW, t->fd, 0), -EEXIST);
	assert_int_equal(gpa_map(t->g, 0, 16 * PAGE, RW, t->fd, 0), -EEXIST);
	assert_int_equal(gpa_map(t->g, 3 * PAGE, PAGE, RW, t->fd, 0), 0);
	assert_int_equal(gpa_map(t->g, 8 * PAGE, PAGE, RW, t->fd, 0), 0);
	assert_int_equal(gpa_map(t->g, 0, 0, RW, t->fd, 0), -EINVAL);
	assert_int_equal(t->g->n, 3);
}

static void test_unmap(void **state)
{
	struct fixture *t = *state;

	for (int i = 0; i < 4; i++)
		assert_int_equal(gpa_map(t->g, 2 * i * PAGE, PAGE, RW, t->fd, i * PAGE), 0);
	assert_int_equal(gpa_unmap(t->g, PAGE, PAGE), -ENOENT);
	assert_int_equal(gpa_unmap(t->g, 0, 0), -EINVAL);
	assert_int_equal(gpa_unmap(t->g, 0, PAGE / 2), -EINVAL);
	assert_int_equal(gpa_unmap(t->g, PAGE / 2, PAGE), -EINVAL);
	assert_int_equal(gpa_unmap(t->g, 0, 2 * PAGE + 1), -EINVAL);
	assert_int_equal(t->g->n, 4);
	assert_int_equal(gpa_unmap(t->g, 2 * PAGE, PAGE), 0);
	assert_null(gpa_ptr(t->g, 2 * PAGE, 1, false));
	assert_non_null(gpa_ptr(t->g, 4 * PAGE, 1, false));
	/* Several at once, with the holes between them. */
	assert_int_equal(gpa_unmap(t->g, 0, 6 * PAGE), 0);
	assert_int_equal(t->g->n, 1);
	for (uint64_t page = 0; page < 6; page++)
		assert_null(gpa_ptr(t->g, page * PAGE, 1, false));
	assert_non_null(gpa_ptr(t->g, 6 * PAGE, 1, false));
	gpa_unmap_all(t->g);
	assert_int_equal(t->g->n, 0);
	assert_null(gpa_ptr(t->g, 6 * PAGE, 1, false));
	assert_int_equal(t->g->pool.files, 0);
}

static void test_merge(void **state)
{
	struct fixture *t = *state;
	void *ptr;
	uint8_t *p;

	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, 0), 0);
	assert_int_equal(gpa_map(t->g, PAGE, PAGE, RW, t->fd, PAGE), 0);
	assert_int_equal(gpa_map(t->g, 2 * PAGE, PAGE, GPA_READ, t->fd, 2 * PAGE), 0);
	/* Adjacent in the guest, not in the file. */
	assert_int_equal(gpa_map(t->g, 3 * PAGE, PAGE, RW, t->fd, 8 * PAGE), 0);
	/* Adjacent in the file, not in the guest. */
	assert_int_equal(gpa_map(t->g, 5 * PAGE, PAGE, RW, t->fd, 9 * PAGE), 0);

	p = gpa_ptr(t->g, PAGE - 4, 8, true);
	assert_non_null(p);
	assert_int_equal(p[3], 0);
	assert_int_equal(p[4], 1);
	assert_non_null(gpa_ptr(t->g, 0, 3 * PAGE, false));
	assert_null(gpa_ptr(t->g, 0, 3 * PAGE, true));
	assert_null(gpa_ptr(t->g, 2 * PAGE, 2 * PAGE, false));
	assert_int_equal(gpa_span(t->g, PAGE / 2, 16 * PAGE, false, &ptr), 5 * PAGE / 2);
	assert_int_equal(gpa_span(t->g, PAGE / 2, 16 * PAGE, true, &ptr), 3 * PAGE / 2);
	assert_int_equal(gpa_span(t->g, 3 * PAGE, 4 * PAGE, true, &ptr), PAGE);
	assert_int_equal(*(uint8_t *)ptr, 8);
	assert_int_equal(gpa_span(t->g, 4 * PAGE, PAGE, false, &ptr), 0);
}

static void test_copy_across(void **state)
{
	struct fixture *t = *state;
	uint8_t buf[2 * PAGE];

	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, 7 * PAGE), 0);
	assert_int_equal(gpa_map(t->g, PAGE, PAGE, RW, t->fd, 3 * PAGE), 0);
	assert_int_equal(gpa_read(t->g, 0, buf, sizeof(buf)), 0);
	assert_int_equal(buf[PAGE - 1], 7);
	assert_int_equal(buf[PAGE], 3);
	assert_int_equal(gpa_read(t->g, 1, buf, sizeof(buf)), -EFAULT);
	assert_int_equal(gpa_write(t->g, PAGE - 2, "abcd", 4), 0);
	assert_int_equal(pread(t->fd, buf, 2, 8 * PAGE - 2), 2);
	assert_memory_equal(buf, "ab", 2);
	assert_int_equal(pread(t->fd, buf, 2, 3 * PAGE), 2);
	assert_memory_equal(buf, "cd", 2);
}

static void test_rights(void **state)
{
	struct fixture *t = *state;
	char path[64];
	int ro;

	assert_int_equal(gpa_map(t->g, 0, PAGE, GPA_READ, t->fd, 0), 0);
	assert_int_equal(gpa_map(t->g, PAGE, PAGE, GPA_WRITE, t->fd, 0), 0);
	assert_int_equal(gpa_map(t->g, 2 * PAGE, PAGE, 0, t->fd, 0), 0);
	for (int warm = 0; warm < 2; warm++) {
		assert_non_null(gpa_ptr(t->g, 0, 8, false));
		assert_null(gpa_ptr(t->g, 0, 8, true));
		assert_null(gpa_ptr(t->g, PAGE, 8, false));
		assert_non_null(gpa_ptr(t->g, PAGE, 8, true));
		assert_null(gpa_ptr(t->g, 2 * PAGE, 8, false));
		assert_null(gpa_ptr(t->g, 2 * PAGE, 8, true));
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->fd);
	ro = open(path, O_RDONLY);
	assert_true(ro >= 0);
	assert_int_equal(gpa_map(t->g, 4 * PAGE, PAGE, RW, ro, 0), -EACCES);
	assert_int_equal(gpa_map(t->g, 4 * PAGE, PAGE, GPA_READ, ro, 0), 0);
	assert_non_null(gpa_ptr(t->g, 4 * PAGE, 8, false));
	close(ro);
}

static void test_no_descriptor(void **state)
{
	struct fixture *t = *state;
	void *ptr;

	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, -1, 0), 0);
	assert_null(gpa_ptr(t->g, 0, 8, false));
	assert_int_equal(gpa_span(t->g, 0, 8, true, &ptr), 0);
	/* It does not merge with a neighbour, either. */
	assert_int_equal(gpa_map(t->g, PAGE, PAGE, RW, t->fd, 0), 0);
	assert_null(gpa_ptr(t->g, PAGE - 1, 2, false));
	assert_int_equal(gpa_unmap(t->g, 0, PAGE), 0);
}

static void test_beyond_end_of_file(void **state)
{
	struct fixture *t = *state;
	int pipefd[2];

	assert_int_equal(gpa_map(t->g, 0, 17 * PAGE, RW, t->fd, 0), -ERANGE);
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, 16 * PAGE), -ERANGE);
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, 0 - PAGE), -ERANGE);
	assert_int_equal(gpa_map(t->g, 0, 2 * PAGE, RW, t->fd, UINT64_MAX), -ERANGE);
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, 15 * PAGE), 0);
	assert_int_equal(pipe(pipefd), 0);
	assert_int_equal(gpa_map(t->g, PAGE, PAGE, RW, pipefd[0], 0), -EINVAL);
	close(pipefd[0]);
	close(pipefd[1]);
	assert_int_equal(t->g->n, 1);
}

/* Descriptors that cannot be mapped, and a file for reading that is mapped for writing later */
static void test_descriptors(void **state)
{
	static const struct {
		const char *path;
		int flags;
		int err;
	} bad[] = {
		{ NULL, O_WRONLY, -EINVAL }, { "/", O_RDONLY, -EINVAL },
		{ "/dev/zero", O_RDWR, -EINVAL },
	};
	struct fixture *t = *state;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->fd);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fd = open(bad[i].path ? bad[i].path : path, bad[i].flags);
		assert_true(fd >= 0);
		assert_int_equal(gpa_map(t->g, 0, PAGE, GPA_READ, fd, 0), bad[i].err);
		close(fd);
	}
	assert_int_equal(gpa_map(t->g, 0, PAGE, GPA_READ, fd, 0), -EBADF);
	assert_int_equal(t->g->n, 0);
	assert_int_equal(t->g->pool.files, 0);
	fd = open(path, O_RDONLY);
	assert_int_equal(gpa_map(t->g, 0, PAGE, GPA_READ, fd, 0), 0);
	close(fd);
	assert_int_equal(gpa_map(t->g, PAGE, PAGE, RW, t->fd, PAGE), 0);
	*(uint8_t *)gpa_ptr(t->g, PAGE, 1, true) = 7;
	assert_int_equal(*(uint8_t *)gpa_ptr(t->g, 0, 1, false), 0);
	/* Adjacent in the file, but not in one mapping */
	assert_null(gpa_ptr(t->g, PAGE - 1, 2, false));
}

static void test_one_mapping_per_file(void **state)
{
	struct fixture *t = *state;
	uint8_t *base;
	int again = dup(t->fd);

	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, 0), 0);
	assert_int_equal(gpa_map(t->g, 8 * PAGE, PAGE, RW, again, 4 * PAGE), 0);
	close(again);
	base = gpa_ptr(t->g, 0, 1, false);
	assert_ptr_equal(gpa_ptr(t->g, 8 * PAGE, 1, false), base + 4 * PAGE);
	/* The last piece is unmapped and mapped again: still the same mapping. */
	assert_int_equal(gpa_unmap(t->g, 0, 9 * PAGE), 0);
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, PAGE), 0);
	assert_ptr_equal(gpa_ptr(t->g, 0, 1, false), base + PAGE);
}

static void test_file_grows(void **state)
{
	struct fixture *t = *state;
	uint8_t *p, *q;

	assert_int_equal(gpa_map(t->g, 0, 16 * PAGE, RW, t->fd, 0), 0);
	p = gpa_ptr(t->g, 0, 1, false);
	assert_int_equal(ftruncate(t->fd, 32 * PAGE), 0);
	assert_int_equal(gpa_map(t->g, 16 * PAGE, 16 * PAGE, RW, t->fd, 16 * PAGE), 0);
	q = gpa_ptr(t->g, 31 * PAGE, 1, true);
	assert_non_null(q);
	*q = 1;
	assert_int_equal(*p, 0);
}

static void test_idle_files_are_bounded(void **state)
{
	struct fixture *t = *state;

	for (int i = 0; i < 5 * BACKING_IDLE_MAX; i++) {
		int fd = make_file(1);

		assert_int_equal(gpa_map(t->g, 0, PAGE, RW, fd, 0), 0);
		close(fd);
		assert_int_equal(gpa_unmap(t->g, 0, PAGE), 0);
	}
	assert_int_equal(t->g->pool.files, BACKING_IDLE_MAX);
	gpa_unmap_all(t->g);
	assert_int_equal(t->g->pool.files, 0);
}

/* The file that is idle for longest is unmapped, not the one that was mapped first. */
static void test_oldest_idle_file(void **state)
{
	struct fixture *t = *state;
	int fd[BACKING_IDLE_MAX + 1];
	struct stat st[BACKING_IDLE_MAX + 1];
	const struct backing *b;

	for (int i = 0; i <= BACKING_IDLE_MAX; i++) {
		fd[i] = make_file(1);
		assert_int_equal(fstat(fd[i], &st[i]), 0);
		assert_int_equal(gpa_map(t->g, 0, PAGE, RW, fd[i], 0), 0);
		if (i == BACKING_IDLE_MAX)	/* the first file is used once more before the last */
			assert_int_equal(gpa_map(t->g, PAGE, PAGE, RW, fd[0], 0), 0);
		if (i == BACKING_IDLE_MAX)
			assert_int_equal(gpa_unmap(t->g, PAGE, PAGE), 0);
		assert_int_equal(gpa_unmap(t->g, 0, PAGE), 0);
	}
	assert_int_equal(t->g->pool.files, BACKING_IDLE_MAX);
	LIST_FOREACH(b, &t->g->pool.bucket[st[1].st_ino % BACKING_BUCKETS], bucket)
		assert_int_not_equal(b->ino, st[1].st_ino);
	for (int i = 0; i <= BACKING_IDLE_MAX; i++)
		close(fd[i]);
}

/* More files than lists: each is found, and all go when the client does. */
static void test_many_files(void **state)
{
	struct fixture *t = *state;
	uint32_t got;

	t->g->pool.limits.files = 2 * BACKING_BUCKETS;
	for (uint32_t i = 0; i < 2 * BACKING_BUCKETS; i++) {
		int fd = make_file(1);

		assert_int_equal(pwrite(fd, &i, sizeof(i), 0), sizeof(i));
		assert_int_equal(gpa_map(t->g, 2 * i * PAGE, PAGE, RW, fd, 0), 0);
		assert_int_equal(gpa_map(t->g, (2 * i + 1) * PAGE, PAGE, RW, fd, 0), 0);
		close(fd);
	}
	assert_int_equal(t->g->pool.files, 2 * BACKING_BUCKETS);
	for (uint32_t i = 0; i < 4 * BACKING_BUCKETS; i++) {
		assert_int_equal(gpa_read(t->g, i * PAGE, &got, sizeof(got)), 0);
		assert_int_equal(got, i / 2);
	}
	gpa_unmap_all(t->g);
	assert_int_equal(t->g->pool.files, 0);
	assert_true(TAILQ_EMPTY(&t->g->pool.idle));
	assert_int_equal(t->g->pool.nidle, 0);
}

/* Return the address space of files of make_file() and big_file(), bytes. */
static uint64_t mapped_bytes(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	uint64_t sum = 0;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "memfd:test_gpa") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			sum += to - from;
	fclose(f);
	return sum;
}

static int big_file(uint64_t bytes)
{
	int fd = memfd_create("test_gpa", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	return fd;
}

/* A file that takes more than half of what is left is mapped in pieces, which can be shared. */
static void test_large_file(void **state)
{
	const uint64_t at = 77 * PAGE;
	struct fixture *t = *state;
	int fd = big_file(100 * PAGE);
	uint8_t byte = 0x77, *p;
	void *ptr;

	t->g->pool.limits.bytes = 200 * PAGE - 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	assert_int_equal(gpa_map(t->g, 0, 8 * PAGE, RW, fd, at), 0);
	assert_int_equal(mapped_bytes(), 8 * PAGE);
	assert_int_equal(t->g->pool.bytes, 8 * PAGE);
	p = gpa_ptr(t->g, 0, 8 * PAGE, true);
	assert_non_null(p);
	assert_int_equal(*p, 0x77);
	p[8 * PAGE - 1] = 5;
	assert_int_equal(pread(fd, &byte, 1, at + 8 * PAGE - 1), 1);
	assert_int_equal(byte, 5);
	/* within the first piece, across its end, before it */
	assert_int_equal(gpa_map(t->g, 20 * PAGE, 2 * PAGE, RW, fd, at + 6 * PAGE), 0);
	assert_ptr_equal(gpa_ptr(t->g, 20 * PAGE, 1, true), p + 6 * PAGE);
	assert_int_equal(t->g->pool.files, 1);
	assert_int_equal(gpa_map(t->g, 30 * PAGE, 2 * PAGE, RW, fd, at + 7 * PAGE), 0);
	assert_int_equal(gpa_map(t->g, 40 * PAGE, 2 * PAGE, RW, fd, at - PAGE), 0);
	assert_int_equal(t->g->pool.files, 3);
	assert_int_equal(mapped_bytes(), 12 * PAGE);
	assert_int_equal(*(uint8_t *)gpa_ptr(t->g, 41 * PAGE, 1, false), 0x77);
	/* adjacent in the guest and in the file, but not in one mapping */
	assert_int_equal(gpa_map(t->g, 8 * PAGE, PAGE, RW, fd, at + 8 * PAGE), 0);
	assert_int_equal(gpa_span(t->g, 0, 9 * PAGE, true, &ptr), 8 * PAGE);
	assert_int_equal(gpa_read(t->g, 8 * PAGE - 1, &(uint16_t) { 0 }, 2), 0);
	/* one page fewer, and the file is mapped whole */
	gpa_unmap_all(t->g);
	assert_int_equal(mapped_bytes(), 0);
	t->g->pool.limits.bytes = 200 * PAGE;
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, fd, at), 0);
	assert_int_equal(mapped_bytes(), 100 * PAGE);
	close(fd);
}

/* The offset of a lost page is that in the file. */
static void test_lost_in_piece(void **state)
{
	struct fixture *t = *state;
	int fd = big_file(100 * PAGE);
	size_t at;

	assert_int_equal(backing_guard(), 0);
	t->g->pool.limits.bytes = 50 * PAGE;
	assert_int_equal(gpa_map(t->g, 0, 4 * PAGE, RW, fd, 20 * PAGE), 0);
	assert_int_equal(ftruncate(fd, 22 * PAGE), 0);
	assert_int_equal(__atomic_load_n((uint8_t *)gpa_ptr(t->g, 3 * PAGE + 9, 1, false),
					 __ATOMIC_RELAXED), 0);
	gpa_loss(t->g, &at);
	assert_int_equal(at, 23 * PAGE + 9);
	backing_loss_clear();
	close(fd);
}

static void rejected_with(struct gpa *g, uint64_t size, int fd, int err, const char *want)
{
	struct printed printed;
	char said[200];

	print_begin(&printed, STDERR_FILENO);
	assert_int_equal(gpa_map(g, 1ull << 50, size, RW, fd, 0), err);
	print_end(&printed, said, sizeof(said));
	assert_string_equal(said, want);
}

/* Beyond its limits a client gets errors; what it does not use makes room. */
static void test_limits(void **state)
{
	static const char much[] = "ornicd: warning: a client's memory files take more address "
				   "space than its device may use; raise memory= of the "
				   "device\n";
	static const char many[] = "ornicd: warning: a client has as many memory files as its "
				   "device may map; raise memory-files= of the device\n";
	struct fixture *t = *state;
	struct backing_pool *pool = &t->g->pool;
	int fd = big_file(100 * PAGE), other = big_file(10 * PAGE), third = big_file(PAGE);

	pool->limits.bytes = 50 * PAGE;
	rejected_with(t->g, 51 * PAGE, fd, -ENOMEM, much);
	assert_int_equal(mapped_bytes(), 0);
	assert_int_equal(gpa_map(t->g, 0, 45 * PAGE, RW, fd, 0), 0);
	rejected_with(t->g, 6 * PAGE, other, -ENOMEM, much);
	assert_int_equal(gpa_map(t->g, 100 * PAGE, 5 * PAGE, RW, other, 0), 0);
	assert_int_equal(pool->bytes, 50 * PAGE);
	/* both without users: the longer idle one goes, because it is in the way */
	assert_int_equal(gpa_unmap(t->g, 0, 200 * PAGE), 0);
	assert_int_equal(pool->nidle, 2);
	assert_int_equal(gpa_map(t->g, 0, 10 * PAGE, RW, other, 0), 0);
	assert_int_equal(mapped_bytes(), 15 * PAGE);
	pool->limits.files = 1;
	rejected_with(t->g, PAGE, third, -ENOSPC, many);
	assert_int_equal(gpa_map(t->g, 20 * PAGE, PAGE, RW, other, 0), 0);
	assert_int_equal(gpa_unmap(t->g, 0, 30 * PAGE), 0);
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, third, 0), 0);
	assert_int_equal(pool->files, 1);
	assert_int_equal(mapped_bytes(), PAGE);
	close(fd);
	close(other);
	close(third);
}

/* All of a file is unmapped, whether its length is a multiple of what one call unmaps or not. */
static void test_unmapped_in_pieces(void **state)
{
	static const uint64_t bytes[] = { (64u << 20) - PAGE, 64u << 20, (64u << 20) + PAGE,
					  128u << 20, (192u << 20) + 3 * PAGE };
	struct fixture *t = *state;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		int fd = big_file(bytes[i]);

		assert_int_equal(gpa_map(t->g, (uint64_t)i << 40, PAGE, RW, fd, 0), 0);
		close(fd);
		sum += bytes[i];
	}
	assert_int_equal(mapped_bytes(), sum);
	gpa_unmap_all(t->g);
	assert_int_equal(mapped_bytes(), 0);
}

/* A table whose files a mapper maps */
static struct {
	struct gpa *g;
	struct mapper *m;
	int result;		/* of the last gpa_map(), 1: none yet */
	sem_t begun, until;
} slow;

static void slow_mapped(void *arg, int err)
{
	assert_ptr_equal(arg, &slow);
	slow.result = err;
}

static int slow_setup(void **state)
{
	if (setup(state))
		return -1;
	slow.g = gpa_new(NULL);
	slow.g->mapped = slow_mapped;
	slow.g->arg = &slow;
	sem_init(&slow.begun, 0, 0);
	sem_init(&slow.until, 0, 0);
	assert_int_equal(mapper_new(&slow.m), 0);
	backing_use_mapper(&slow.g->pool, slow.m);
	return 0;
}

static int slow_teardown(void **state)
{
	gpa_free(slow.g);
	mapper_end(slow.m);
	assert_true(mapper_wait(5000));
	return teardown(state);
}

static void slow_reap(void)
{
	struct pollfd p = { .fd = mapper_fd(slow.m), .events = POLLIN };

	assert_int_equal(poll(&p, 1, 5000), 1);
	mapper_reap(slow.m);
}

static int slow_map(uint64_t addr, int fd)
{
	slow.result = 1;
	assert_int_equal(gpa_map(slow.g, addr, PAGE, RW, fd, 0), -EINPROGRESS);
	assert_int_equal(slow.result, 1);
	while (slow.result == 1)
		slow_reap();
	return slow.result;
}

static void block(struct mapper_job *job)
{
	(void)job;
	sem_post(&slow.begun);
	sem_wait(&slow.until);
}

static void test_by_mapper(void **state)
{
	struct fixture *t = *state;
	int pipefd[2];
	uint8_t *p;

	assert_int_equal(pipe(pipefd), 0);
	assert_int_equal(slow_map(0, t->fd), 0);
	p = gpa_ptr(slow.g, 0, PAGE, true);
	assert_non_null(p);
	assert_int_equal(slow_map(4 * PAGE, t->fd), 0);
	assert_ptr_equal(gpa_ptr(slow.g, 4 * PAGE, PAGE, true), p);
	assert_int_equal(slow_map(8 * PAGE, pipefd[0]), -EINVAL);
	/* without a file there is nothing to wait for */
	assert_int_equal(gpa_map(slow.g, 12 * PAGE, PAGE, RW, -1, 0), 0);
	assert_int_equal(gpa_map(slow.g, 0, PAGE, RW, t->fd, 0), -EEXIST);
	assert_int_equal(slow.g->n, 3);
	close(pipefd[0]);
	close(pipefd[1]);
}

/* The table forgets a piece at once, and the mapper unmaps its file later. */
static void test_unmapped_later(void **state)
{
	struct mapper_job wait = { .work = block };
	struct fixture *t = *state;

	assert_int_equal(slow_map(0, t->fd), 0);
	assert_int_equal(slow_map(4 * PAGE, t->fd), 0);
	mapper_add(slow.m, &wait);
	sem_wait(&slow.begun);
	gpa_unmap_all(slow.g);
	assert_null(gpa_ptr(slow.g, 0, 1, false));
	assert_int_equal(slow.g->pool.files, 0);
	assert_int_equal(slow.g->pool.bytes, 0);
	assert_true(any_mapped());
	sem_post(&slow.until);
	for (int i = 0; any_mapped() && i < 5000; i++)
		usleep(1000);
	assert_false(any_mapped());
}

/* The client is gone while its file is looked at, or mapped; the next one maps the same file. */
static void test_client_gone(void **state)
{
	struct mapper_job wait = { .work = block };
	struct fixture *t = *state;

	for (int steps = 0; steps < 2; steps++) {
		slow.result = 1;
		if (!steps)
			mapper_add(slow.m, &wait);
		assert_int_equal(gpa_map(slow.g, 0, PAGE, RW, t->fd, 0), -EINPROGRESS);
		assert_int_equal(gpa_map(slow.g, PAGE, PAGE, RW, t->fd, 0), -EBUSY);
		if (steps)
			slow_reap();
		gpa_unmap_all(slow.g);
		if (!steps)
			sem_post(&slow.until);
		slow_reap();
		assert_int_equal(slow.result, 1);
		assert_int_equal(slow.g->n, 0);
		assert_int_equal(slow_map(0, t->fd), 0);
		gpa_unmap_all(slow.g);
	}
	for (int i = 0; any_mapped() && i < 5000; i++)
		usleep(1000);
	assert_false(any_mapped());
}

/* A lost page reads as zeros, and the table tells where it was; other pages keep their contents. */
static void test_truncated_file(void **state)
{
	struct fixture *t = *state;
	volatile uint8_t *p;
	size_t at;

	assert_int_equal(backing_guard(), 0);
	assert_int_equal(gpa_map(t->g, 0, 16 * PAGE, RW, t->fd, 0), 0);
	p = gpa_ptr(t->g, 0, 16 * PAGE, true);
	assert_int_equal(p[9 * PAGE], 9);
	assert_int_equal(ftruncate(t->fd, 9 * PAGE), 0);
	assert_false(gpa_lost(t->g));
	assert_int_equal(p[9 * PAGE + 5], 0);
	assert_true(gpa_lost(t->g));
	assert_true(backing_loss_pending());
	backing_loss_clear();
	p[9 * PAGE] = 1;
	assert_int_equal(p[9 * PAGE], 1);
	for (int i = 1; i < 9; i++)
		assert_int_equal(p[i * PAGE], i);
	assert_int_equal(p[10 * PAGE], 0);
	assert_true(backing_loss_pending());
	backing_loss_clear();
	gpa_loss(t->g, &at);
	assert_int_equal(at, 9 * PAGE + 5);
	gpa_unmap_all(t->g);
	assert_false(gpa_lost(t->g));
}

/* The handler finds each of several files, and the others keep their contents. */
static void test_truncated_files(void **state)
{
	struct fixture *t = *state;
	struct gpa *gone = gpa_new(NULL);
	int fd[3];
	volatile uint8_t *p[3];

	assert_int_equal(backing_guard(), 0);
	fd[0] = make_file(4);
	assert_int_equal(gpa_map(gone, 0, PAGE, RW, fd[0], 0), 0);
	close(fd[0]);
	for (int i = 0; i < 3; i++) {
		if (i == 2)
			gpa_free(gone);		/* the last file gets its place above the others */
		fd[i] = make_file(4);
		assert_int_equal(gpa_map(t->g, 4 * i * PAGE, 4 * PAGE, RW, fd[i], 0), 0);
		p[i] = gpa_ptr(t->g, 4 * i * PAGE, 4 * PAGE, true);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ftruncate(fd[i], 0), 0);
		for (int j = 0; j < 3; j++)
			for (int page = 0; page < 4; page++)
				assert_int_equal(p[j][page * PAGE], j > i ? page : 0);
		assert_true(gpa_lost(t->g));
		close(fd[i]);
	}
}

/* Any other file that is truncated ends the process, as without the handler. */
static void test_foreign_file(void **state)
{
	struct fixture *t = *state;
	volatile uint8_t *p;
	int status, fd = make_file(2);
	pid_t child;

	assert_int_equal(backing_guard(), 0);
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, 0), 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	child = fork();
	if (!child) {
		alarm(20);
		_exit(p[PAGE]);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
	munmap((void *)p, 2 * PAGE);
	close(fd);
}

static void test_many(void **state)
{
	struct fixture *t = *state;
	const unsigned int n = 5000;

	/* Odd slots upwards, even ones downwards: insertions at every place. */
	for (unsigned int i = 1; i < n; i += 2)
		assert_int_equal(gpa_map(t->g, i * PAGE, PAGE, RW, t->fd, i % 16 * PAGE), 0);
	for (unsigned int i = n; i; i -= 2)
		assert_int_equal(gpa_map(t->g, i * PAGE, PAGE, RW, t->fd, i % 16 * PAGE), 0);
	for (unsigned int i = 1; i <= n; i++) {
		uint8_t *p = gpa_ptr(t->g, i * PAGE, PAGE, false);

		assert_non_null(p);
		assert_int_equal(*p, i % 16);
	}
	for (unsigned int i = 1; i <= n; i += 3)
		assert_int_equal(gpa_unmap(t->g, i * PAGE, PAGE), 0);
	for (unsigned int i = 1; i <= n; i++)
		assert_int_equal(!!gpa_ptr(t->g, i * PAGE, 1, false), i % 3 != 1);
}

static void test_table_full(void **state)
{
	struct fixture *t = *state;

	for (uint64_t i = 0; i < GPA_MAX; i++)
		if (gpa_map(t->g, 2 * i * PAGE, PAGE, RW, -1, 0))
			fail_msg("map %llu failed", (unsigned long long)i);
	assert_int_equal(gpa_map(t->g, 2ull * GPA_MAX * PAGE, PAGE, RW, -1, 0), -ENOSPC);
}

/* Lists of mounts that the daemon reads instead of the kernel's, unless @own is NULL */
static struct {
	const char *own;
	const char *client;		/* of process CLIENT */
	const char *later;		/* own list at the second read; NULL: as at the first */
	int error;			/* of opening one */
	unsigned int opened;
} mounts;

#define CLIENT	77

/* This replaces the C library's. */
FILE *fopen(const char *path, const char *mode)
{
	const char *text = mounts.own;
	int fd;

	assert_string_equal(mode, "re");
	if (mounts.own && strstr(path, "/mountinfo")) {
		mounts.opened++;
		if (!strcmp(path, "/proc/77/mountinfo"))
			text = mounts.client;
		else
			assert_string_equal(path, "/proc/self/mountinfo");
		if (mounts.later && mounts.opened == 3)
			text = mounts.later;
		errno = mounts.error;
		if (errno || !text)
			return NULL;
		/* A folder can be opened, but not read. */
		if (*text)
			return fmemopen((char *)text, strlen(text), "r");
		path = "/";
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? NULL : fdopen(fd, "r");
}

/* Fill @text with @n mounts of other files, then @last. */
static char *long_list(char *text, unsigned int n, const char *last)
{
	char *at = text;

	while (n--)
		at += sprintf(at, "9 1 9:9 / / rw - fuse x rw\n");
	strcpy(at, last);
	return text;
}

#define MNT(id, dev, type)	id " 1 " dev " / /a\\040-\\040b rw - " type " x rw\n"
#define NONE	MNT("9", "9:9", "fuse")

/* Files of mount 50 and device 8:1, which a list of mounts has, or not */
static void test_mount_lists(void **state)
{
	static char long_own[50000], long_client[50000], longer_client[50000];
	const struct {
		const char *own, *client;
		int want;		/* -1: no mount was found, so seals decide */
	} cases[] = {
		{ MNT("50", "8:1", "ext4"), NULL, 0 },
		{ MNT("50", "0:40", "fuse"), NULL, 1 },
		{ MNT("50", "0:40", "fuseblk"), NULL, 1 },
		{ MNT("50", "0:40", "fuse.sshfs"), NULL, 1 },
		{ MNT("50", "0:40", "fus"), NULL, 0 },
		{ MNT("51", "8:1", "fuse"), NULL, 1 },
		{ MNT("51", "8:2", "fuse"), NULL, -1 },
		{ MNT("51", "7:1", "fuse"), NULL, -1 },
		{ NONE MNT("50", "8:1", "ext4") MNT("50", "8:1", "fuse"), NULL, 0 },
		{ NONE MNT("50", "8:1", "fuse") MNT("50", "8:1", "ext4"), NULL, 1 },
		{ "50 1 8:1 / / rw fuse\n", NULL, -1 },
		{ "50 1 8 / / rw - fuse\n", NULL, -1 },
		{ "50 1 8:1 - fuse", NULL, 1 },
		{ long_list(long_own, 1500, MNT("50", "8:1", "ext4")), NULL, 0 },
		/* The client's list has the mount, and the daemon's the device. */
		{ MNT("1", "7:3", "ext4"), MNT("50", "7:3", "ext4"), 0 },
		{ MNT("1", "7:3", "ext4"), MNT("50", "7:3", "fuse"), 0 },
		{ MNT("1", "7:3", "fuse"), MNT("50", "7:3", "ext4"), 1 },
		{ MNT("1", "7:3", "ext4"), MNT("51", "7:3", "ext4"), -1 },
		{ MNT("1", "7:3", "ext4"), MNT("50", "7:4", "ext4"), -1 },
		{ MNT("1", "7:3", "ext4"), MNT("50", "6:3", "ext4"), -1 },
		{ MNT("1", "7:3", "ext4"), "", -1 },
		{ MNT("1", "7:3", "ext4"),
		  long_list(long_client, 999, MNT("50", "7:3", "ext4")), 0 },
		{ MNT("1", "7:3", "ext4"),
		  long_list(longer_client, 1000, MNT("50", "7:3", "ext4")), -1 },
	};
	struct statx st = {
		.stx_mask = STATX_MNT_ID, .stx_mnt_id = 50,
		.stx_dev_major = 8, .stx_dev_minor = 1,
	};
	struct fixture *t = *state;
	int pipefd[2];

	assert_int_equal(pipe(pipefd), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int want = cases[i].want;

		mounts.own = cases[i].own;
		mounts.client = cases[i].client;
		if (fuse_possible(pipefd[0], &st, CLIENT) != (want < 0 ? 1 : want))
			fail_msg("case %zu", i);
		/* A file of the kernel's own mount has seals; the client's list is not read. */
		mounts.opened = 0;
		if (cases[i].client && fuse_possible(t->fd, &st, CLIENT))
			fail_msg("case %zu, a file with seals", i);
		if (!cases[i].client && fuse_possible(t->fd, &st, CLIENT) != (want < 0 ? 0 : want))
			fail_msg("case %zu, a file with seals", i);
		assert_int_equal(mounts.opened, 1);
		/* Nor is it read if the client is not known. */
		mounts.opened = 0;
		if (cases[i].client)
			assert_int_equal(fuse_possible(pipefd[0], &st, 0), 1);
		assert_int_equal(mounts.opened, !!cases[i].client);
	}
	/* The number of a mount that went may be another's when the list is read again. */
	mounts.own = NONE;
	mounts.client = MNT("50", "7:3", "ext4");
	mounts.later = MNT("50", "9:8", "fuse") MNT("1", "7:3", "ext4");
	mounts.opened = 0;
	assert_int_equal(fuse_possible(pipefd[0], &st, CLIENT), 0);
	mounts.later = NULL;
	mounts.own = MNT("50", "9:9", "ext4");
	mounts.client = NULL;
	st.stx_mask = 0;
	assert_int_equal(fuse_possible(pipefd[0], &st, CLIENT), 1);
	mounts.own = "";		/* cannot be read */
	assert_int_equal(fuse_possible(pipefd[0], &st, CLIENT), -EISDIR);
	mounts.error = EMFILE;
	assert_int_equal(fuse_possible(pipefd[0], &st, CLIENT), -EMFILE);
	mounts.error = 0;
	mounts.own = NULL;
	close(pipefd[0]);
	close(pipefd[1]);
}

/* A file on FUSE is not mapped, and the log says why; one that is mapped is not checked again. */
static void test_fuse_is_logged(void **state)
{
	struct fixture *t = *state;
	struct printed printed;
	int other = make_file(1);
	char list[100], said[400];
	struct statx st;

	assert_int_equal(statx(t->fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st), 0);
	snprintf(list, sizeof(list), "9 1 %u:%u / / rw - fuse x rw\n", st.stx_dev_major,
		 st.stx_dev_minor);
	mounts.own = list;
	print_begin(&printed, STDERR_FILENO);
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, 0), -EOPNOTSUPP);
	print_end(&printed, said, sizeof(said));
	assert_string_equal(said, "ornicd: warning: a client's memory file is on FUSE, whose "
			    "server could stop the daemon, or on a file system that the daemon "
			    "has not mounted; use a file of memfd, tmpfs, hugetlbfs or a disk "
			    "that the daemon has mounted\n");
	assert_int_equal(t->g->n, 0);
	mounts.error = ENFILE;
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, 0), -ENFILE);
	mounts.error = 0;
	mounts.own = NULL;
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, t->fd, 0), 0);
	mounts.own = list;
	assert_int_equal(gpa_map(t->g, PAGE, PAGE, RW, t->fd, 0), 0);
	assert_int_equal(gpa_map(t->g, 2 * PAGE, PAGE, RW, other, 0), -EOPNOTSUPP);
	mounts.own = NULL;
	close(other);
}

/* Answer one request that is not FUSE_INIT. Return: length of the answer behind the header. */
static size_t fuse_answer(const struct fuse_in_header *in, struct fuse_out_header *head, void *out)
{
	struct fuse_attr attr = { .ino = 2, .size = PAGE, .mode = S_IFREG | 0666, .nlink = 1 };

	switch (in->opcode) {
	case FUSE_LOOKUP:
		*(struct fuse_entry_out *)out = (struct fuse_entry_out) {
			.nodeid = 2,
			.attr = attr,
		};
		return sizeof(struct fuse_entry_out);
	case FUSE_GETATTR:
		if (in->nodeid == FUSE_ROOT_ID)
			attr.mode = S_IFDIR | 0777;
		*(struct fuse_attr_out *)out = (struct fuse_attr_out) { .attr = attr };
		return sizeof(struct fuse_attr_out);
	case FUSE_STATFS:
		*(struct fuse_statfs_out *)out = (struct fuse_statfs_out) { .st.namelen = 255 };
		return sizeof(struct fuse_statfs_out);
	case FUSE_OPEN:
		return sizeof(struct fuse_open_out);
	default:
		head->error = -ENOSYS;
		return 0;
	}
}

/*
 * Serve FUSE until a file is open, then answer no request, such as those of fstat(), fstatfs() and
 * page faults. End after a minute, because nothing else ends the wait of a process for an answer.
 */
static void fuse_serve(int dev)
{
	static char buf[FUSE_MIN_READ_BUFFER];
	bool open = false;
	struct {
		struct fuse_out_header head;
		union {
			struct fuse_init_out init;
			char other[256];
		};
	} out;

	alarm(60);
	while (read(dev, buf, sizeof(buf)) > 0) {
		const struct fuse_in_header *in = (const void *)buf;

		if (open || in->opcode == FUSE_FORGET)
			continue;
		memset(&out, 0, sizeof(out));
		out.head.unique = in->unique;
		out.head.len = sizeof(out.head);
		if (in->opcode == FUSE_INIT) {
			out.init.major = FUSE_KERNEL_VERSION;
			out.init.minor = FUSE_KERNEL_MINOR_VERSION;
			out.init.max_write = 4096;
			out.head.len += sizeof(out.init);
		} else {
			out.head.len += fuse_answer(in, &out.head, out.other);
		}
		open = in->opcode == FUSE_OPEN;
		if (write(dev, &out, out.head.len) < 0)
			break;
	}
	_exit(0);
}

/* Mount FUSE at @at, in this mount namespace only. Return: descriptor for its server, or -1. */
static int fuse_mount(const char *at, unsigned int type)
{
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[100];

	snprintf(options, sizeof(options), "fd=%d,rootmode=%o,user_id=%u,group_id=%u,allow_other",
		 dev, type, geteuid(), getegid());
	if (dev >= 0 && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("test_gpa", at, "fuse", 0, options))
		return dev;
	if (dev >= 0)
		close(dev);
	return -1;
}

/* The file is rejected, and its server, which answers nothing, does not stop the daemon. */
static void rejected(struct fixture *t, int fd, pid_t server)
{
	assert_true(fd >= 0);
	assert_int_equal(gpa_map(t->g, 0x10000, PAGE, GPA_READ, fd, 0), -EOPNOTSUPP);
	assert_int_equal(waitpid(server, NULL, WNOHANG), 0);
	kill(server, SIGKILL);
	assert_int_equal(waitpid(server, NULL, 0), server);
	close(fd);
}

/* A mount that the daemon's list has, or had when the file was opened */
static void check_fuse(struct fixture *t, bool detach)
{
	char at[] = "/tmp/test_gpa.XXXXXX";
	int fd = mkstemp(at), dev = -1;
	pid_t server;

	assert_true(fd >= 0);
	close(fd);
	if (!unshare(CLONE_NEWNS))
		dev = fuse_mount(at, S_IFREG);
	if (dev < 0) {
		unlink(at);
		print_message("skipped: no right to mount FUSE\n");
		skip();
	}
	server = fork();
	if (!server)
		fuse_serve(dev);
	close(dev);
	fd = open(at, O_RDWR | O_CLOEXEC);
	if (detach)
		assert_int_equal(umount2(at, MNT_DETACH), 0);
	rejected(t, fd, server);
	umount2(at, MNT_DETACH);
	unlink(at);
}

static void test_fuse(void **state)
{
	check_fuse(*state, false);
}

/* fstatfs() would ask the server. */
static void test_detached_fuse(void **state)
{
	check_fuse(*state, true);
}

/* Memory without a mount, to which a seal could still be added */
static void test_not_sealed(void **state)
{
	struct fixture *t = *state;
	int fd = memfd_create("test_gpa", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_int_equal(fcntl(fd, F_GET_SEALS), 0);
	assert_int_equal(gpa_map(t->g, 0, PAGE, RW, fd, 0), 0);
	close(fd);
}

/*
 * Files of a mount that only a client's namespace has: only its list admits them. A file that is
 * mapped needs no check, but another file on its device does.
 */
static void check_admission(struct fixture *t, const int *fd, pid_t client)
{
	assert_int_equal(gpa_map(t->g, 0, PAGE, GPA_READ, fd[0], 0), -EOPNOTSUPP);
	t->g->pool.limits.disk = true;
	t->g->pool.pid = client;
	assert_int_equal(gpa_map(t->g, 0, PAGE, GPA_READ, fd[0], 0), 0);
	t->g->pool.pid = 0;
	assert_int_equal(gpa_map(t->g, PAGE, PAGE, GPA_READ, fd[0], 0), 0);
	assert_int_equal(gpa_map(t->g, 2 * PAGE, PAGE, GPA_READ, fd[1], 0), -EOPNOTSUPP);
}

/*
 * As files of btrfs that a client has mounted in its own namespace: the device number of a file is
 * not that of the file system, and only the client's list has the id of the mount.
 */
static void test_mount_of_client(void **state)
{
	static const char *const names[] = { "file", "other" };
	struct fixture *t = *state;
	char at[] = "/tmp/test_gpa.XXXXXX", path[100], options[100];
	int go[2], fd[2];
	pid_t client;
	bool mounted;

	assert_non_null(mkdtemp(at));
	snprintf(options, sizeof(options), "xino=off,lowerdir=%s:/dev", at);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", at, names[i]);
		fd[i] = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
		assert_true(fd[i] >= 0);
		assert_int_equal(ftruncate(fd[i], PAGE), 0);
		close(fd[i]);
	}
	mounted = !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		!mount("test_gpa", at, "overlay", MS_RDONLY, options);
	if (mounted) {
		assert_int_equal(pipe2(go, O_CLOEXEC), 0);
		client = fork();
		if (!client) {
			alarm(60);
			if (!unshare(CLONE_NEWNS) && write(go[1], "", 1) == 1)
				pause();
			_exit(1);
		}
		assert_int_equal(read(go[0], options, 1), 1);
		for (int i = 0; i < 2; i++) {
			snprintf(path, sizeof(path), "/proc/%d/root%s/%s", client, at, names[i]);
			fd[i] = open(path, O_RDONLY | O_CLOEXEC);
			assert_true(fd[i] >= 0);
		}
		check_admission(t, fd, client);
		close(fd[0]);
		close(fd[1]);
		close(go[0]);
		close(go[1]);
		kill(client, SIGKILL);
		assert_int_equal(waitpid(client, NULL, 0), client);
		umount2(at, MNT_DETACH);
	}
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", at, names[i]);
		unlink(path);
	}
	rmdir(at);
	if (!mounted) {
		print_message("skipped: no right to mount an overlay\n");
		skip();
	}
}

/* Enter a user namespace with all its rights, and a mount namespace. */
static bool enter_namespaces(void)
{
	char map[2][40];
	int fd;

	snprintf(map[0], sizeof(map[0]), "%u %u 1", geteuid(), geteuid());
	snprintf(map[1], sizeof(map[1]), "%u %u 1", getegid(), getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return false;
	for (int i = 0; i < 3; i++) {
		const char *text = i ? map[i - 1] : "deny";

		fd = open((const char *[]) { "/proc/self/setgroups", "/proc/self/uid_map",
					     "/proc/self/gid_map" }[i], O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, text, strlen(text)) < 0)
			return false;
		close(fd);
	}
	return true;
}

/* In namespaces of its own, mount FUSE at @at/lower and an overlay of it at @at/top, and serve. */
static void overlay_serve(const char *at, int ready)
{
	char lower[60], top[60], options[160];
	int dev;

	snprintf(lower, sizeof(lower), "%s/lower", at);
	snprintf(top, sizeof(top), "%s/top", at);
	snprintf(options, sizeof(options), "lowerdir=%s:%s", lower, top);
	if (!enter_namespaces())
		_exit(1);
	dev = fuse_mount(lower, S_IFDIR);
	if (dev < 0)
		_exit(1);
	if (fork())
		fuse_serve(dev);
	if (mount("test_gpa", top, "overlay", MS_RDONLY, options))
		kill(getppid(), SIGKILL);
	else if (write(ready, "", 1) < 0)
		kill(getppid(), SIGKILL);
	_exit(0);
}

/*
 * An overlay of FUSE that only a client's mount namespace has. fstatfs() would report an overlay,
 * and without the right to mount anything outside its own user namespace a client can make one.
 */
static void test_overlay_of_fuse(void **state)
{
	struct fixture *t = *state;
	char at[] = "/tmp/test_gpa.XXXXXX", path[100], byte;
	int ready[2], fd = -1;
	pid_t server;
	bool mounted;

	assert_non_null(mkdtemp(at));
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", at, i ? "top" : "lower");
		assert_int_equal(mkdir(path, 0755), 0);
	}
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	server = fork();
	if (!server)
		overlay_serve(at, ready[1]);
	close(ready[1]);
	mounted = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	if (mounted) {
		snprintf(path, sizeof(path), "/proc/%d/root%s/top/file", server, at);
		t->g->pool.pid = server;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		rejected(t, fd, server);
	} else {
		waitpid(server, NULL, 0);
	}
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", at, i ? "top" : "lower");
		rmdir(path);
	}
	rmdir(at);
	if (!mounted) {
		print_message("skipped: no right to mount FUSE and an overlay of it\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_map_and_find, setup, teardown),
		cmocka_unit_test_setup_teardown(test_found_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_neighbour_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_boundaries, setup, teardown),
		cmocka_unit_test_setup_teardown(test_top_of_address_space, setup, teardown),
		cmocka_unit_test_setup_teardown(test_whole_address_space, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unmap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_merge, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy_across, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rights, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_descriptor, setup, teardown),
		cmocka_unit_test_setup_teardown(test_beyond_end_of_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_foreign_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_mapping_per_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_files_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_oldest_idle_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_in_piece, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unmapped_in_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_mapper, slow_setup, slow_teardown),
		cmocka_unit_test_setup_teardown(test_unmapped_later, slow_setup, slow_teardown),
		cmocka_unit_test_setup_teardown(test_client_gone, slow_setup, slow_teardown),
		cmocka_unit_test_setup_teardown(test_truncated_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_truncated_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mount_lists, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fuse_is_logged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlay_of_fuse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fuse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_detached_fuse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_sealed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mount_of_client, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
