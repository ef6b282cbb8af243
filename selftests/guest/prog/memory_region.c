// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of the process's own memory.
 */
#include "memory.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Addresses from 0 on, for memory that starts within a page */
static void test_zero_based(struct verdict *v)
{
	char *mem = aligned_alloc(4096, 2 * SIZE);
	struct ibv_mr *mr = ibv_reg_mr(m.dev.pd, mem + 100, SIZE, ALL_RIGHTS | IBV_ACCESS_ZERO_BASED);

	if (!mr) {
		verdict_fail(v, "ibv_reg_mr: %s", strerror(errno));
		return;
	}
	there_and_back(v, 0, mr->rkey, mem + 100, SIZE);
	there_and_back(v, 5000, mr->rkey, mem + 5100, SIZE - 5000);
	expect(v, rdma(IBV_WR_RDMA_WRITE, m.buf, m.local->lkey, SIZE - 1, mr->rkey, 2),
	       IBV_WC_REM_ACCESS_ERR, "beyond the end");
	ibv_dereg_mr(mr);
	free(mem);
}

/* An address of the application's choice */
static void test_iova(struct verdict *v)
{
	char *mem = aligned_alloc(4096, SIZE);
	const uint64_t iova = 0x123456789000;
	struct ibv_mr *mr = ibv_reg_mr_iova(m.dev.pd, mem, SIZE, iova, ALL_RIGHTS);

	if (!mr) {
		verdict_fail(v, "ibv_reg_mr_iova: %s", strerror(errno));
		return;
	}
	there_and_back(v, iova + 4000, mr->rkey, mem + 4000, 9000);
	ibv_dereg_mr(mr);
	free(mem);
}

/* Change a region's rights to none, with bytes of the driver's request; return 0 or an errno. */
static int raw_rereg(struct ibv_mr *mr, uint64_t request)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr core;
		uint64_t request;
	} cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_REREG_MR,
			.in_words = sizeof(cmd) / 4, .out_words = sizeof(resp) / 4,
		},
		.core = {
			.response = (uintptr_t)&resp, .mr_handle = mr->handle,
			.flags = IBV_REREG_MR_CHANGE_ACCESS,
		},
		.request = request,
	};

	return write(m.dev.verbs->cmd_fd, &cmd, sizeof(cmd)) == sizeof(cmd) ? 0 : errno;
}

/* A newer provider may ask for something that this driver does not know. */
static void test_rereg_request(struct verdict *v)
{
	char *mem = aligned_alloc(4096, SIZE);
	struct ibv_mr *mr = ibv_reg_mr(m.dev.pd, mem, SIZE, ALL_RIGHTS);

	if (!mr) {
		verdict_fail(v, "ibv_reg_mr: %s", strerror(errno));
		return;
	}
	expect(v, raw_rereg(mr, 1), EOPNOTSUPP, "an unknown request");
	there_and_back(v, (uintptr_t)mem, mr->rkey, mem, SIZE);
	expect(v, raw_rereg(mr, 0), 0, "no request");
	expect(v, rdma(IBV_WR_RDMA_WRITE, m.buf, m.local->lkey, (uintptr_t)mem, mr->rkey, 1),
	       IBV_WC_REM_ACCESS_ERR, "write without rights");
	ibv_dereg_mr(mr);
	free(mem);
}

/* A region of zero bytes: registered, reached only by accesses of zero bytes */
static void test_empty(struct verdict *v)
{
	struct ibv_mr *mr = ibv_reg_mr(m.dev.pd, m.buf, 0, ALL_RIGHTS);

	if (!mr) {
		verdict_fail(v, "ibv_reg_mr: %s", strerror(errno));
		return;
	}
	expect(v, rdma(IBV_WR_RDMA_WRITE, m.buf, m.local->lkey, (uintptr_t)m.buf, mr->rkey, 0),
	       IBV_WC_SUCCESS, "write of nothing");
	expect(v, rdma(IBV_WR_RDMA_WRITE, m.buf, m.local->lkey, (uintptr_t)m.buf, mr->rkey, 1),
	       IBV_WC_REM_ACCESS_ERR, "write of a byte");
	ibv_dereg_mr(mr);
}

static void test_relaxed(struct verdict *v)
{
	struct ibv_mr *mr = ibv_reg_mr(m.dev.pd, m.buf + 2 * SIZE, SIZE,
				       ALL_RIGHTS | IBV_ACCESS_RELAXED_ORDERING);

	if (!mr) {
		verdict_fail(v, "ibv_reg_mr: %s", strerror(errno));
		return;
	}
	there_and_back(v, (uintptr_t)m.buf + 2 * SIZE, mr->rkey, m.buf + 2 * SIZE, SIZE);
	ibv_dereg_mr(mr);
}

/* Huge pages are registered as huge pages with the device. */
static void test_huge(struct verdict *v)
{
	size_t len = 4 * HUGE;
	char *mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	struct ibv_mr *mr;
	long before, pages;

	if (mem == MAP_FAILED)
		bail("no huge pages: %s", strerror(errno));
	before = key_pages();
	mr = ibv_reg_mr(m.dev.pd, mem, len, ALL_RIGHTS);
	pages = key_pages() - before;
	if (!mr || pages < 1 || pages > 4)
		verdict_fail(v, "%ld pages for four huge ones", pages);
	if (mr) {
		there_and_back(v, (uintptr_t)mem + HUGE - 1000, mr->rkey, mem + HUGE - 1000, SIZE);
		ibv_dereg_mr(mr);
	}
	munmap(mem, len);
}

/* Memory that was pinned for reading becomes writable. */
static void test_rereg_writable(struct verdict *v)
{
	char *mem = aligned_alloc(4096, SIZE);
	struct ibv_mr *mr;
	int ret;

	memset(mem, 1, SIZE);
	mr = ibv_reg_mr(m.dev.pd, mem, SIZE, IBV_ACCESS_REMOTE_READ);
	ret = mr ? ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_RIGHTS) : -1;
	expect(v, ret, 0, "rereg");
	there_and_back(v, (uintptr_t)mem, mr->rkey, mem, SIZE);
	ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ);
	expect(v, ret, 0, "rereg back");
	expect(v, rdma(IBV_WR_RDMA_WRITE, m.buf, m.local->lkey, (uintptr_t)mem, mr->rkey, 1),
	       IBV_WC_REM_ACCESS_ERR, "write");
	ibv_dereg_mr(mr);
	free(mem);
}

/* Ask for write access as a child, whose memory at this address is another copy. */
static int child_makes_writable(struct ibv_mr *mr)
{
	int ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_RIGHTS);

	if (!ret)
		return 1;
	if (errno != EACCES)
		return 2;
	/* a change that needs no other memory */
	ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0);
	return ret ? 3 : 0;
}

/* Another process cannot replace the memory of the region by its own. */
static void test_rereg_child(struct verdict *v)
{
	char *mem = aligned_alloc(4096, SIZE);
	int status = -1, ret;
	struct ibv_mr *mr;
	pid_t pid;

	memset(mem, 1, SIZE);
	mr = ibv_reg_mr(m.dev.pd, mem, SIZE, IBV_ACCESS_REMOTE_READ);
	if (!mr)
		bail("ibv_reg_mr: %s", strerror(errno));
	pid = fork();
	if (!pid)
		_exit(child_makes_writable(mr));
	waitpid(pid, &status, 0);
	expect(v, WEXITSTATUS(status), 0, "the child");
	ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_RIGHTS);
	expect(v, ret, 0, "rereg by the owner");
	there_and_back(v, (uintptr_t)mem, mr->rkey, mem, SIZE);
	ibv_dereg_mr(mr);
	free(mem);
}

/*
 * Linux 6.12.117 and later do not pass a change to the same protection domain to the
 * driver, so the request may be empty.
 */
static void test_rereg_same_pd(struct verdict *v)
{
	char *mem = aligned_alloc(4096, SIZE);
	struct ibv_mr *mr = ibv_reg_mr(m.dev.pd, mem, SIZE, ALL_RIGHTS);
	int ret;

	if (!mr)
		bail("ibv_reg_mr: %s", strerror(errno));
	ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, m.dev.pd, NULL, 0, 0);
	expect(v, ret, 0, "rereg");
	there_and_back(v, (uintptr_t)mem, mr->rkey, mem, SIZE);
	ret = ibv_dereg_mr(mr);
	expect(v, ret, 0, "dereg");
	free(mem);
}

/*
 * ORN-MEM-24: ordinary memory does not survive a power loss, and no region of it claims
 * persistence.
 */
static void test_not_persistent(struct verdict *v)
{
	const int rights = ALL_RIGHTS | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	struct ibv_mr *mr = ibv_reg_mr(m.dev.pd, m.buf, SIZE, rights);

	if (mr) {
		verdict_fail(v, "registered");
		ibv_dereg_mr(mr);
	} else {
		expect(v, errno, EINVAL, "ibv_reg_mr");
	}
	mr = ibv_reg_mr(m.dev.pd, m.buf, SIZE, rights & ~IBV_ACCESS_FLUSH_PERSISTENT);
	if (!mr) {
		verdict_fail(v, "ibv_reg_mr: %s", strerror(errno));
		return;
	}
	if (!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, rights))
		verdict_fail(v, "rights changed");
	ibv_dereg_mr(mr);
}

const struct memory_test region_tests[] = {
	{ "zero_based", test_zero_based },
	{ "iova", test_iova },
	{ "empty", test_empty },
	{ "relaxed", test_relaxed },
	{ "huge", test_huge },
	{ "rereg_writable", test_rereg_writable },
	{ "rereg_child", test_rereg_child },
	{ "rereg_same_pd", test_rereg_same_pd },
	{ "rereg_request", test_rereg_request },
	{ "not_persistent", test_not_persistent },
	{ }
};
