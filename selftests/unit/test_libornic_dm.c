// SPDX-License-Identifier: GPL-2.0
/* Provider, device memory: copied bytes and rejected ranges. The rig's memfd is the device. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "test_libornic_kernel.h"

#define BYTES	100u		/* of device memory; not a whole page */

static struct rig rig;
static struct ibv_context *ctx;
static struct ibv_dm *dm;
static uint8_t *memory;

static int setup(void **state)
{
	struct ibv_alloc_dm_attr attr = { .length = BYTES };

	(void)state;
	rig_open(&rig, 8);
	ctx = &rig.ctx->ibv_ctx.context;
	dm = ornic_alloc_dm(ctx, &attr);
	assert_non_null(dm);
	memory = container_of(dm, struct ornic_dm, vdm.dm)->mem;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(ornic_free_dm(dm), 0);
	rig_close(&rig);
	return 0;
}

static void fill(uint8_t *at, size_t n, uint8_t first)
{
	for (size_t i = 0; i < n; i++)
		at[i] = first + i;
}

/* Every offset and length of the memory, in both directions; the bytes around stay unchanged. */
static void test_copies(void **state)
{
	uint8_t from[BYTES], to[BYTES + 8], want[BYTES];

	(void)state;
	for (uint64_t off = 0; off <= BYTES; off += 4)
		for (size_t n = 0; n <= BYTES - off; n += 4) {
			fill(from, n, 1 + off + n);
			memset(memory, 0xee, BYTES);
			memset(want, 0xee, BYTES);
			memcpy(want + off, from, n);
			assert_int_equal(ibv_memcpy_to_dm(dm, off, from, n), 0);
			assert_memory_equal(memory, want, BYTES);

			fill(memory, BYTES, 7 + n);
			memset(to, 0xdd, sizeof(to));
			assert_int_equal(ibv_memcpy_from_dm(to + 4, dm, off, n), 0);
			assert_memory_equal(to + 4, memory + off, n);
			for (size_t i = 0; i < 4; i++)
				assert_true(to[i] == 0xdd && to[4 + n + i] == 0xdd);
		}
}

static void test_ranges(void **state)
{
	static const struct {
		uint64_t off;
		size_t length;
		int err;
	} row[] = {
		{ 0, BYTES, 0 }, { BYTES, 0, 0 }, { BYTES - 4, 4, 0 },
		{ 0, BYTES + 4, EFAULT }, { BYTES, 4, EFAULT }, { BYTES - 4, 8, EFAULT },
		{ BYTES + 4, 0, EFAULT }, { UINT64_MAX - 3, 8, EFAULT },
		{ 4, SIZE_MAX - 3, EFAULT }, { 2, 4, EFAULT }, { 1, 4, EFAULT },
		{ 4, 2, EFAULT }, { 4, 1, EFAULT }, { 4, 3, EFAULT },
	};
	uint8_t buffer[BYTES] = {};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		assert_int_equal(ibv_memcpy_to_dm(dm, row[i].off, buffer, row[i].length),
				 row[i].err);
		assert_int_equal(ibv_memcpy_from_dm(buffer, dm, row[i].off, row[i].length),
				 row[i].err);
	}
}

static sigjmp_buf no_memory;

static void on_bus_error(int sig)
{
	(void)sig;
	siglongjmp(no_memory, 1);
}

/* Copy 8 bytes at @off. Return true if an access faults. */
static bool faults(struct ibv_dm *of, uint64_t off, void *buffer, bool to)
{
	if (sigsetjmp(no_memory, 1))
		return true;
	if (to)
		ibv_memcpy_to_dm(of, off, buffer, 8);
	else
		ibv_memcpy_from_dm(buffer, of, off, 8);
	return false;
}

/*
 * ORN-DM-9: no access of 8 bytes at an address that is not a multiple of 8. The memfd ends inside
 * such a word, so an access to all of it does nothing but fault. Mappings have several addresses.
 */
static void test_unaligned_words(void **state)
{
	const size_t end = sysconf(_SC_PAGESIZE) - 4;
	static uint32_t value[2] = { 0x11223344, 0x55667788 }, got[2];
	struct ibv_alloc_dm_attr attr = { .length = end + 8 };
	const struct sigaction act = { .sa_handler = on_bus_error };
	struct ibv_dm *longer[9];
	struct sigaction was;

	(void)state;
	assert_int_equal(sigaction(SIGBUS, &act, &was), 0);
	for (size_t i = 0; i < ARRAY_SIZE(longer); i++) {
		longer[i] = ornic_alloc_dm(ctx, &attr);
		assert_non_null(longer[i]);
		memset(memory + end, 0, 4);
		memset(got, 0, sizeof(got));
		assert_true(faults(longer[i], end, value, true));
		assert_memory_equal(memory + end, value, 4);
		assert_true(faults(longer[i], end, got, false));
		assert_int_equal(got[0], value[0]);
	}
	assert_int_equal(sigaction(SIGBUS, &was, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(longer); i++)
		assert_int_equal(ornic_free_dm(longer[i]), 0);
}

/* The importer's range is also that of the memory. */
static void test_imported(void **state)
{
	struct ibv_dm *imported;
	uint32_t value = 0x11223344;

	(void)state;
	kernel.dm.length = 8;
	imported = ornic_import_dm(ctx, 5);
	assert_non_null(imported);
	assert_int_equal(imported->handle, 5);
	assert_ptr_equal(imported->context, ctx);
	assert_int_equal(ibv_memcpy_to_dm(imported, 4, &value, 4), 0);
	assert_int_equal(ibv_memcpy_to_dm(imported, 8, &value, 4), EFAULT);
	assert_memory_equal(memory + 4, &value, 4);
	ornic_unimport_dm(imported);
}

static void test_region(void **state)
{
	struct ibv_mr *mr;

	(void)state;
	mr = ornic_reg_dm_mr(rig.pd, dm, 8, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	assert_int_equal(mr->lkey, 0x4a0a);
	assert_int_equal(kernel.mr.offset, 8);
	assert_int_equal(kernel.mr.length, 64);
	assert_int_equal(kernel.mr.access, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ);
	assert_int_equal(ornic_dereg_mr(verbs_get_mr(mr)), 0);
	kernel.fail = EPERM;
	assert_null(ornic_reg_dm_mr(rig.pd, dm, 8, 64, 0));
	kernel.memory = 1;
	assert_null(ornic_reg_dm_mr(rig.pd, dm, 8, 64, 0));
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_copies),
		T(test_ranges),
		T(test_unaligned_words),
		T(test_imported),
		T(test_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
