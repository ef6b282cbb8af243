// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory: of this process, of others, of both.
 */
#include "memory.h"
#include "pass.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_dm *dm_alloc(struct ibv_context *verbs, size_t len)
{
	struct ibv_alloc_dm_attr attr = { .length = len };

	return ibv_alloc_dm(verbs, &attr);
}

static size_t dm_most(void)
{
	struct ibv_device_attr_ex attr;

	if (ibv_query_device_ex(m.dev.verbs, NULL, &attr) || !attr.max_dm_size)
		bail("no device memory");
	return attr.max_dm_size;
}

static uint64_t dm_word(struct ibv_dm *dm, uint64_t off)
{
	uint64_t word = ~0ull;

	ibv_memcpy_from_dm(&word, dm, off, sizeof(word));
	return word;
}

static void dm_set(struct ibv_dm *dm, uint64_t off, uint64_t word)
{
	ibv_memcpy_to_dm(dm, off, &word, sizeof(word));
}

/* Check that all of it is free again, in one piece. */
static void expect_all_free(struct verdict *v)
{
	struct ibv_dm *dm = dm_alloc(m.dev.verbs, dm_most());

	if (!dm)
		verdict_fail(v, "not all device memory is free: %s", strerror(errno));
	else
		expect(v, ibv_free_dm(dm), 0, "free_dm of all");
}

/* The process sees writes of queue pairs, and queue pairs see stores of the process. */
static void test_dm(struct verdict *v)
{
	struct ibv_dm *dm = dm_alloc(m.dev.verbs, 10000);
	struct ibv_mr *mr = dm ? ibv_reg_dm_mr(m.dev.pd, dm, 100, 9000, ALL_RIGHTS) : NULL;
	static uint32_t view[2250];

	if (mr || errno != EINVAL)
		verdict_fail(v, "a region without ZERO_BASED: %s", strerror(errno));
	mr = dm ? ibv_reg_dm_mr(m.dev.pd, dm, 100, 9000,
				ALL_RIGHTS | IBV_ACCESS_ZERO_BASED) : NULL;

	if (!mr) {
		verdict_fail(v, "no device memory: %s", strerror(errno));
		return;
	}
	there_and_back(v, 8, mr->rkey, NULL, 8992);
	expect(v, ibv_memcpy_from_dm(view, dm, 108, 8992), 0, "memcpy_from_dm");
	if (memcmp(view, m.buf, 8992))
		verdict_fail(v, "the process sees other bytes than were written");
	view[0] = 0x12345678;
	expect(v, ibv_memcpy_to_dm(dm, 4100, view, 4), 0, "memcpy_to_dm");
	expect(v, rdma(IBV_WR_RDMA_READ, m.buf, m.local->lkey, 4000, mr->rkey, 4), 0, "read");
	if (memcmp(m.buf, view, 4))
		verdict_fail(v, "the peer sees other bytes than were copied");
	if (!ibv_free_dm(dm))
		verdict_fail(v, "device memory with a region was freed");
	expect(v, rdma(IBV_WR_RDMA_WRITE, m.buf, m.local->lkey, 8999, mr->rkey, 2),
	       IBV_WC_REM_ACCESS_ERR, "beyond the end");
	expect(v, ibv_dereg_mr(mr), 0, "dereg");
	expect(v, ibv_free_dm(dm), 0, "free_dm");
}

/* Run another process: it takes all device memory that is left, and finds it zeroed. */
static int look_around(size_t most)
{
	struct dev other;
	uint64_t word;

	dev_open(&other, m.name, -1);
	for (size_t len = most; len >= 4096; len /= 2) {
		struct ibv_dm *dm;

		while ((dm = dm_alloc(other.verbs, len)))
			for (size_t off = 0; off < len; off += 512) {
				if (ibv_memcpy_from_dm(&word, dm, off, 8) || word)
					return 1;
				word = 0x5ec2e75ec2e7;
				ibv_memcpy_to_dm(dm, off, &word, 8);
			}
	}
	return 0;				/* exits with all of it allocated */
}

static void test_dm_private(struct verdict *v)
{
	const uint64_t word = 0x1122334455667788;
	size_t most = dm_most();
	struct ibv_dm *dm;

	dm = dm_alloc(m.dev.verbs, 8192);
	for (size_t off = 0; off < 8192; off += 512)
		dm_set(dm, off, word);
	for (int round = 0; round < 2; round++) {
		int status = -1;
		pid_t pid = fork();

		if (!pid)
			_exit(look_around(most));
		waitpid(pid, &status, 0);
		expect(v, status, 0, "the other process");
	}
	if (dm_word(dm, 512) != word)
		verdict_fail(v, "somebody else wrote to our memory");
	expect(v, ibv_free_dm(dm), 0, "free_dm");
	expect_all_free(v);
}

#define OWNERS		0x1111111111111111ull
#define BORROWERS	0x2222222222222222ull

/* Handles for the borrower, and its answer. */
struct loan {
	uint32_t dm, pd;
};

struct answer {
	uint32_t rkey;
	struct verdict v;
};

static void wait_for(int s)
{
	char byte;

	if (read(s, &byte, 1) != 1)
		bail("the other process is gone");
}

static void go_on(int s)
{
	if (write(s, "", 1) != 1)
		bail("the other process is gone");
}

/*
 * Run the other process: it reads the data of the owner, registers the memory for the
 * owner's queue pairs, and keeps it when the owner frees it. At the end it releases the
 * memory, or dies.
 */
static void borrow(int s, bool tidy)
{
	struct answer answer = {};
	struct verdict *v = &answer.v;
	struct loan loan;
	struct ibv_context *verbs = ibv_import_device(take_fd(s, &loan, sizeof(loan)));
	struct ibv_dm *dm = verbs ? ibv_import_dm(verbs, loan.dm) : NULL;
	struct ibv_pd *pd = dm ? ibv_import_pd(verbs, loan.pd) : NULL;
	struct ibv_mr *mr = pd ? ibv_reg_dm_mr(pd, dm, 0, 8192,
					       ALL_RIGHTS | IBV_ACCESS_ZERO_BASED) : NULL;
	uint64_t word = 0;

	if (!mr) {
		verdict_fail(v, "cannot import: %s", strerror(errno));
	} else {
		answer.rkey = mr->rkey;
		expect(v, dm_word(dm, 9992) == OWNERS, true, "what the owner wrote");
		expect(v, ibv_memcpy_from_dm(&word, dm, 9996, 8), EFAULT, "beyond the end");
		if (ibv_import_dm(verbs, loan.pd))
			verdict_fail(v, "a protection domain was imported as device memory");
		dm_set(dm, 8, BORROWERS);
	}
	if (write(s, &answer, sizeof(answer)) != sizeof(answer) || v->bad)
		_exit(1);
	wait_for(s);
	expect(v, ibv_dereg_mr(mr), 0, "dereg");
	go_on(s);
	wait_for(s);				/* until the owner has freed it */
	expect(v, dm_word(dm, 8) == BORROWERS, true, "what was written, after the owner freed it");
	dm_set(dm, 16, BORROWERS);
	if (ibv_import_dm(verbs, loan.dm) || errno != ENOENT)
		verdict_fail(v, "freed device memory was imported: %s", strerror(errno));
	go_on(s);
	wait_for(s);				/* until another process has looked around */
	expect(v, dm_word(dm, 16) == BORROWERS, true, "what was written, at the end");
	if (write(s, &answer, sizeof(answer)) != sizeof(answer) || !tidy)
		_exit(0);
	ibv_unimport_dm(dm);
	ibv_unimport_pd(pd);
	ibv_close_device(verbs);
	_exit(0);
}

static void hear(struct verdict *v, int s, struct answer *answer)
{
	if (recv(s, answer, sizeof(*answer), MSG_WAITALL) != sizeof(*answer))
		verdict_fail(v, "the other process gave up");
	else if (answer->v.bad)
		verdict_fail(v, "the other process: %s", answer->v.why);
}

static void lend(struct verdict *v, int s)
{
	struct ibv_dm *dm = dm_alloc(m.dev.verbs, 10000);
	struct loan loan = { .dm = dm->handle, .pd = m.dev.pd->handle };
	struct answer answer = {};
	int status = -1;
	pid_t pid;

	dm_set(dm, 9992, OWNERS);
	pass_fd(s, m.dev.verbs->cmd_fd, &loan, sizeof(loan));
	hear(v, s, &answer);
	if (v->bad) {
		ibv_free_dm(dm);
		return;
	}
	expect(v, rdma(IBV_WR_RDMA_READ, m.buf, m.local->lkey, 8, answer.rkey, 8), 0, "read");
	if (*(uint64_t *)m.buf != BORROWERS || dm_word(dm, 8) != BORROWERS)
		verdict_fail(v, "the borrower's word is not there");
	if (!ibv_free_dm(dm))
		verdict_fail(v, "device memory with the borrower's region was freed");
	go_on(s);
	wait_for(s);
	expect(v, ibv_free_dm(dm), 0, "free_dm");
	go_on(s);
	wait_for(s);
	pid = fork();
	if (!pid)
		_exit(look_around(dm_most()));
	waitpid(pid, &status, 0);
	expect(v, status, 0, "somebody else got the borrower's memory");
	go_on(s);
	hear(v, s, &answer);
}

static void import_dm(struct verdict *v, bool tidy)
{
	int s[2], status = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		bail("socketpair: %s", strerror(errno));
	pid = fork();
	if (!pid)
		borrow(s[1], tidy);
	close(s[1]);
	lend(v, s[0]);
	close(s[0]);
	waitpid(pid, &status, 0);
	expect(v, status, 0, "status of the other process");
	expect_all_free(v);
}

static void test_dm_import(struct verdict *v)
{
	import_dm(v, true);
}

static void test_dm_importer_dies(struct verdict *v)
{
	import_dm(v, false);
}

/*
 * The process that allocated the memory is dead; the process that holds its context
 * continues and frees it.
 */
static void test_dm_owner_dies(struct verdict *v)
{
	struct ibv_context *verbs;
	uint32_t handle;
	struct ibv_dm *dm;
	int s[2], fd;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		bail("socketpair: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		struct dev other;

		dev_open(&other, m.name, -1);
		dm = dm_alloc(other.verbs, 8192);
		if (!dm)
			_exit(1);
		dm_set(dm, 4096, OWNERS);
		pass_fd(s[1], other.verbs->cmd_fd, &dm->handle, sizeof(dm->handle));
		_exit(0);
	}
	close(s[1]);
	waitpid(pid, NULL, 0);
	fd = take_fd(s[0], &handle, sizeof(handle));
	close(s[0]);
	verbs = ibv_import_device(fd);
	dm = verbs ? ibv_import_dm(verbs, handle) : NULL;
	if (!dm) {
		verdict_fail(v, "cannot import: %s", strerror(errno));
		return;
	}
	expect(v, dm_word(dm, 4096) == OWNERS, true, "what the dead process wrote");
	expect(v, ibv_free_dm(dm), 0, "free_dm");
	ibv_close_device(verbs);
	expect_all_free(v);
}

/* Count the first mmap offsets of a context that can be mapped. */
static int mappable(struct ibv_context *verbs, size_t pages)
{
	const long page = sysconf(_SC_PAGESIZE);
	int n = 0;

	for (long at = 0; at < 256; at++) {
		void *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_SHARED, verbs->cmd_fd,
			       at * page);

		if (p == MAP_FAILED)
			continue;
		n++;
		munmap(p, pages * page);
	}
	return n;
}

/* Handles and mmap offsets of this process mean nothing in a process with another context. */
static int trespass(uint32_t handle)
{
	struct dev other;

	dev_open(&other, m.name, -1);
	for (uint32_t h = 0; h < 64; h++)
		if (ibv_import_dm(other.verbs, h))
			return 1;
	if (ibv_import_dm(other.verbs, handle) || errno != ENOENT)
		return 2;
	if (mappable(other.verbs, 3))
		return 3;
	return mappable(other.verbs, 1) == 1 ? 0 : 4;	/* its doorbell page */
}

static void test_dm_foreign(struct verdict *v)
{
	struct ibv_dm *dm = dm_alloc(m.dev.verbs, 3 * sysconf(_SC_PAGESIZE));
	int status = -1;
	pid_t pid;

	expect(v, mappable(m.dev.verbs, 3), 1, "own blocks");
	pid = fork();
	if (!pid)
		_exit(trespass(dm->handle));
	waitpid(pid, &status, 0);
	expect(v, WEXITSTATUS(status), 0, "the other process");
	expect(v, ibv_free_dm(dm), 0, "free_dm");
	expect(v, mappable(m.dev.verbs, 3), 0, "freed blocks");
}

const struct memory_test dm_tests[] = {
	{ "dm", test_dm },
	{ "dm_private", test_dm_private },
	{ "dm_import", test_dm_import },
	{ "dm_importer_dies", test_dm_importer_dies },
	{ "dm_owner_dies", test_dm_owner_dies },
	{ "dm_foreign", test_dm_foreign },
	{ }
};
