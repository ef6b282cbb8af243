// SPDX-License-Identifier: GPL-2.0
/*
 * Guest memory for unit tests: a memfd, mapped page table and all by the real
 * DMA table.
 */
#define _GNU_SOURCE 1	/* memfd_create() */

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest.h"

#define RW	(GPA_READ | GPA_WRITE)

void guest_init(struct guest *g)
{
	g->fd = memfd_create("guest", MFD_CLOEXEC);
	assert_true(g->fd >= 0);
	assert_int_equal(ftruncate(g->fd, GUEST_BYTES), 0);
	g->gpa = gpa_new(NULL);
	assert_non_null(g->gpa);
	g->next = GUEST_BASE;
	assert_int_equal(gpa_map(g->gpa, GUEST_BASE, GUEST_BYTES, RW, g->fd, 0), 0);
}

void guest_fini(struct guest *g)
{
	gpa_free(g->gpa);
	close(g->fd);
}

uint64_t guest_alloc(struct guest *g, uint64_t bytes, uint64_t align)
{
	uint64_t addr = (g->next + align - 1) & ~(align - 1);

	assert_true(addr + bytes <= GUEST_BASE + GUEST_BYTES);
	g->next = addr + bytes;
	return addr;
}

void *guest_at(struct guest *g, uint64_t addr, uint64_t len)
{
	void *ptr = gpa_ptr(g->gpa, addr, len, true);

	assert_non_null(ptr);
	return ptr;
}

struct ornic_pages guest_contiguous(uint64_t addr)
{
	return (struct ornic_pages){ .addr = htole64(addr) };
}

static void write_list(struct guest *g, uint64_t at, const uint64_t *page, uint32_t n)
{
	uint64_t *list = guest_at(g, at, n * sizeof(*list));

	for (uint32_t i = 0; i < n; i++)
		list[i] = htole64(page[i]);
}

struct ornic_pages guest_list(struct guest *g, uint8_t level, uint8_t shift, const uint64_t *page,
			      uint32_t n)
{
	struct ornic_pages desc = { .page_shift = shift, .level = level };
	uint64_t top[64];
	uint32_t ntop = 0;

	if (level == 1) {
		uint64_t at = guest_alloc(g, n * 8, 64);

		write_list(g, at, page, n);
		desc.addr = htole64(at);
		return desc;
	}
	for (uint32_t i = 0; i < n; i += ORNIC_PAGES_LEAF_ENTRIES) {
		uint32_t part = n - i;

		if (part > ORNIC_PAGES_LEAF_ENTRIES)
			part = ORNIC_PAGES_LEAF_ENTRIES;
		assert_true(ntop < 64);
		top[ntop] = guest_alloc(g, ORNIC_PAGES_LEAF_BYTES, ORNIC_PAGES_LEAF_BYTES);
		write_list(g, top[ntop++], page + i, part);
	}
	desc.addr = htole64(guest_alloc(g, ntop * 8, 64));
	write_list(g, le64toh(desc.addr), top, ntop);
	return desc;
}

void guest_hide(struct guest *g, uint64_t addr)
{
	uint64_t page = addr & ~(GUEST_PAGE - 1), end = GUEST_BASE + GUEST_BYTES;
	uint64_t off = page - GUEST_BASE;

	assert_int_equal(gpa_unmap(g->gpa, GUEST_BASE, GUEST_BYTES), 0);
	if (off)
		assert_int_equal(gpa_map(g->gpa, GUEST_BASE, off, RW, g->fd, 0), 0);
	if (page + GUEST_PAGE < end)
		assert_int_equal(gpa_map(g->gpa, page + GUEST_PAGE, end - page - GUEST_PAGE, RW,
					 g->fd, off + GUEST_PAGE), 0);
}
