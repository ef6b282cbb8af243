// SPDX-License-Identifier: GPL-2.0
/*
 * mem/gpa.c and mem/backing.c: DMA addresses to pointers, at every edge.
 */
#define _GNU_SOURCE 1	/* memfd_create(), unshare() */

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../tools/ornicd/mem/gpa.h"

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

	t->g = gpa_new();
	t->fd = make_file(16);
	*state = t;
	return t->g ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *t = *state;

	gpa_free(t->g);
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
	assert_non_null(gpa_ptr(t->g, 6 * PAGE, 1, false));
	gpa_unmap_all(t->g);
	assert_int_equal(t->g->n, 0);
	assert_null(gpa_ptr(t->g, 6 * PAGE, 1, false));
	assert_null(t->g->pool.head);
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

static unsigned int files_mapped(const struct gpa *g)
{
	unsigned int n = 0;

	for (const struct backing *b = g->pool.head; b; b = b->next)
		n++;
	return n;
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
	assert_int_equal(files_mapped(t->g), BACKING_IDLE_MAX);
	gpa_unmap_all(t->g);
	assert_int_equal(files_mapped(t->g), 0);
}

static void test_truncated_file(void **state)
{
	struct fixture *t = *state;
	volatile uint8_t *p;

	assert_int_equal(backing_guard(), 0);
	assert_int_equal(gpa_map(t->g, 0, 16 * PAGE, RW, t->fd, 0), 0);
	p = gpa_ptr(t->g, 0, 16 * PAGE, true);
	assert_int_equal(p[9 * PAGE], 9);
	assert_int_equal(ftruncate(t->fd, PAGE), 0);
	assert_int_equal(p[9 * PAGE], 0);
	p[9 * PAGE] = 1;
	assert_int_equal(p[9 * PAGE], 1);
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

/*
 * Serve FUSE: open the file, then answer no request, such as those of fstat(), fstatfs() and page
 * faults. End after 5 s, because nothing else ends the wait of a process for an answer.
 */
static void fuse_serve(int dev)
{
	static char buf[FUSE_MIN_READ_BUFFER];
	struct {
		struct fuse_out_header head;
		union {
			struct fuse_init_out init;
			struct fuse_open_out open;
		};
	} out;

	alarm(5);
	while (read(dev, buf, sizeof(buf)) > 0) {
		const struct fuse_in_header *in = (const void *)buf;

		memset(&out, 0, sizeof(out));
		out.head.unique = in->unique;
		out.head.len = sizeof(out.head);
		if (in->opcode == FUSE_INIT) {
			out.init.major = FUSE_KERNEL_VERSION;
			out.init.minor = FUSE_KERNEL_MINOR_VERSION;
			out.init.max_write = 4096;
			out.head.len += sizeof(out.init);
		} else if (in->opcode == FUSE_OPEN) {
			out.head.len += sizeof(out.open);
		} else {
			continue;
		}
		if (write(dev, &out, out.head.len) < 0)
			break;
	}
	_exit(0);
}

/* Mount FUSE on the file @at, served by a child. Return: the child, or -1 without the right to. */
static pid_t fuse_mount(const char *at)
{
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[100];
	pid_t child = -1;

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=100000,user_id=%u,group_id=0,allow_other", dev, geteuid());
	if (dev >= 0 && !unshare(CLONE_NEWNS) &&
	    !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("test_gpa", at, "fuse", 0, options)) {
		child = fork();
		if (!child)
			fuse_serve(dev);
	}
	if (dev >= 0)
		close(dev);
	return child;
}

/* A FUSE server that answers nothing does not stop the daemon: the file is rejected before. */
static void test_fuse(void **state)
{
	struct fixture *t = *state;
	char at[] = "/tmp/test_gpa.XXXXXX";
	int fd = mkstemp(at);
	pid_t child;

	assert_true(fd >= 0);
	close(fd);
	child = fuse_mount(at);
	if (child < 0) {
		unlink(at);
		skip();
	}
	fd = open(at, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(gpa_map(t->g, 0x10000, PAGE, RW, fd, 0), -EOPNOTSUPP);
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(fd);
	umount2(at, MNT_DETACH);
	unlink(at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_map_and_find, setup, teardown),
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
		cmocka_unit_test_setup_teardown(test_one_mapping_per_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_files_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_truncated_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fuse, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
