// SPDX-License-Identifier: GPL-2.0
/* Provider: contexts, protection domains, memory regions and device memory of another process. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test_libornic_kernel.h"

static struct ibv_context *import(void)
{
	int fd = memfd_create("doorbells", 0);
	struct verbs_context *vctx;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 2 * sysconf(_SC_PAGESIZE)), 0);	/* and device memory */
	vctx = ornic_dev_ops.import_context(fake_device(), fd);
	return vctx ? &vctx->context : NULL;
}

static int setup(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	*state = import();
	assert_non_null(*state);
	return 0;
}

static int teardown(void **state)
{
	ibv_close_device(*state);
	return 0;
}

/* Limits and doorbell page are those of the one context that both processes have. */
static void test_context(void **state)
{
	struct ornic_context *ctx = to_octx(*state);

	assert_int_equal(ctx->limits.max_cqe, 64);
	assert_null(ornic_create_cq(*state, 65, NULL, 0));
	ornic_db_ring(ctx, ORNIC_DB_SQ, 5, 6);
	assert_int_equal(*(uint64_t *)ctx->db, 0x600000005);
}

static void test_pd(void **state)
{
	struct ibv_pd *pd = ibv_import_pd(*state, 9);
	struct ibv_parent_domain_init_attr attr = { .pd = pd };
	struct ibv_pd *parent;

	assert_non_null(pd);
	assert_int_equal(kernel.queried, 9);
	assert_int_equal(pd->handle, 9);
	assert_ptr_equal(pd->context, *state);
	parent = ibv_alloc_parent_domain(*state, &attr);
	assert_int_equal(parent->handle, 9);
	assert_int_equal(ornic_dealloc_pd(parent), 0);
	ibv_unimport_pd(pd);
	kernel.fail = ENOENT;
	assert_null(ibv_import_pd(*state, 10));
	assert_int_equal(errno, ENOENT);
}

static void test_mr(void **state)
{
	struct ibv_pd *pd = ibv_import_pd(*state, 9);
	struct ibv_mr *mr = ibv_import_mr(pd, 11);

	assert_non_null(mr);
	assert_int_equal(mr->handle, 11);
	assert_int_equal(mr->rkey, 0x4a08);
	ibv_unimport_mr(mr);
	kernel.fail = ENOENT;
	assert_null(ibv_import_mr(pd, 12));
	assert_int_equal(errno, ENOENT);
	ibv_unimport_pd(pd);
}

static void test_dm(void **state)
{
	struct ibv_context *ctx = *state;
	const off_t at = sysconf(_SC_PAGESIZE);
	uint64_t word = 0x1122334455667788, read = 0;
	struct ibv_dm *dm;

	kernel.dm = (struct ornic_uresp_query_dm){ .mmap_offset = at, .length = 100 };
	dm = ibv_import_dm(ctx, 13);
	assert_non_null(dm);
	assert_int_equal(kernel.queried, 13);
	assert_int_equal(dm->handle, 13);
	assert_ptr_equal(dm->context, ctx);
	assert_int_equal(container_of(dm, struct verbs_dm, dm)->handle, 13);
	assert_int_equal(ibv_memcpy_to_dm(dm, 92, &word, 8), 0);
	assert_int_equal(pread(ctx->cmd_fd, &read, 8, at + 92), 8);
	assert_int_equal(read, word);
	read = 0;
	assert_int_equal(ibv_memcpy_from_dm(&read, dm, 92, 8), 0);
	assert_int_equal(read, word);
	assert_int_equal(ibv_memcpy_to_dm(dm, 96, &word, 8), EFAULT);	/* it ends within a page */
	ibv_unimport_dm(dm);
	kernel.fail = ENOENT;
	assert_null(ibv_import_dm(ctx, 14));
	assert_int_equal(errno, ENOENT);
	kernel.dm.mmap_offset = 1;		/* it cannot be mapped */
	assert_null(ibv_import_dm(ctx, 13));
	assert_int_equal(errno, EINVAL);
}

#define CTX_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CTX_TEST(test_context), CTX_TEST(test_pd), CTX_TEST(test_mr), CTX_TEST(test_dm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
