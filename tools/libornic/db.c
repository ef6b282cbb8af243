// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The doorbell page of a context: map it, ring it (ORN-DB-3). */
#include <errno.h>
#include <sys/mman.h>

#include <util/mmio.h>
#include <util/udma_barrier.h>

#include "ornic.h"

/* Map the page whose offset the kernel reported. Return 0 or a positive errno. */
int ornic_db_map(struct ornic_context *ctx, int cmd_fd)
{
	void *db;

	db = mmap(NULL, ctx->limits.db_mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED, cmd_fd,
		  ctx->limits.db_mmap_offset);
	if (db == MAP_FAILED)
		return errno;
	ctx->db = db;
	ctx->db_bytes = ctx->limits.db_mmap_size;
	return 0;
}

void ornic_db_unmap(struct ornic_context *ctx)
{
	munmap(ctx->db, ctx->db_bytes);
}

/*
 * Ring the doorbell of queue @number. @value repeats the index or arm word that the caller
 * has already stored in the record; the device uses it as a hint (ORN-DB-2).
 */
void ornic_db_ring(struct ornic_context *ctx, enum ornic_db_kind kind, uint32_t number,
		   uint32_t value)
{
	uint64_t word = (number & ORNIC_DB_NUMBER_MASK) |
			(uint64_t)kind << ORNIC_DB_KIND_SHIFT |
			(uint64_t)value << ORNIC_DB_VALUE_SHIFT;

	udma_to_device_barrier();
	mmio_write64_le((char *)ctx->db + ORNIC_DB_REG, htole64(word));
}
