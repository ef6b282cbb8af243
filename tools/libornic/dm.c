// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory: allocate, import, copy, register.
 *
 * The memory is mapped as a whole. With QEMU (11.1) each access is a message to the device, so
 * copies use the largest accesses that ORN-DM-9 guarantees: 8 bytes, or 4 at an address that
 * is not a multiple of 8. memcpy() may use vector registers; QEMU splits such accesses, and
 * KVM's instruction emulator (Linux 6.1 to 7.2) supports only some of them.
 *
 * A process that imports the memory has its own mapping, which remains valid when another
 * process frees the memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ornic-ioctl.h>
#include <util/mmio.h>
#include <util/udma_barrier.h>

#include "ornic.h"

#define ORNIC_DM_UNIT	4	/* copies begin and end at multiples of this */

/* Return true if the range is inside the memory and its bounds are multiples of the unit. */
static bool ornic_dm_range(const struct ornic_dm *dm, uint64_t off, size_t length)
{
	return off % ORNIC_DM_UNIT == 0 && length % ORNIC_DM_UNIT == 0 && off <= dm->length &&
	       length <= dm->length - off;
}

static int ornic_memcpy_to_dm(struct ibv_dm *ibdm, uint64_t off, const void *from, size_t length)
{
	struct ornic_dm *dm = container_of(ibdm, struct ornic_dm, vdm.dm);
	char *to = (char *)dm->mem + off;
	size_t n;

	if (!ornic_dm_range(dm, off, length))
		return EFAULT;
	for (; length; length -= n, to += n, from = (const char *)from + n) {
		n = length >= 8 && (uintptr_t)to % 8 == 0 ? 8 : ORNIC_DM_UNIT;
		if (n == 8) {
			__le64 v;

			memcpy(&v, from, sizeof(v));
			mmio_write64_le(to, v);
		} else {
			__le32 v;

			memcpy(&v, from, sizeof(v));
			mmio_write32_le(to, v);
		}
	}
	mmio_flush_writes();	/* the mapping is write-combining (ORN-DM-10) */
	return 0;
}

static int ornic_memcpy_from_dm(void *to, struct ibv_dm *ibdm, uint64_t off, size_t length)
{
	struct ornic_dm *dm = container_of(ibdm, struct ornic_dm, vdm.dm);
	const char *from = (const char *)dm->mem + off;
	size_t n;

	if (!ornic_dm_range(dm, off, length))
		return EFAULT;
	for (; length; length -= n, from += n, to = (char *)to + n) {
		n = length >= 8 && (uintptr_t)from % 8 == 0 ? 8 : ORNIC_DM_UNIT;
		if (n == 8) {
			__le64 v = mmio_read64_le(from);

			memcpy(to, &v, sizeof(v));
		} else {
			__le32 v = mmio_read32_le(from);

			memcpy(to, &v, sizeof(v));
		}
	}
	return 0;
}

static int ornic_dm_map(struct ornic_dm *dm, struct ibv_context *ctx, uint64_t offset)
{
	dm->mapped = align(dm->length, sysconf(_SC_PAGESIZE));
	dm->mem = mmap(NULL, dm->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->cmd_fd, offset);
	if (dm->mem == MAP_FAILED)
		return errno;
	dm->vdm.dm.memcpy_to_dm = ornic_memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = ornic_memcpy_from_dm;
	return 0;
}

static void ornic_dm_unmap(struct ornic_dm *dm)
{
	munmap(dm->mem, dm->mapped);
	free(dm);
}

static int ornic_dm_setup(struct ornic_dm *dm, struct ibv_context *ctx,
			  struct ibv_alloc_dm_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, 1);
	uint64_t offset = 0;
	int ret;

	fill_attr_out_ptr(cmd, ORNIC_ATTR_DM_ALLOC_MMAP_OFFSET, &offset);
	ret = ibv_cmd_alloc_dm(ctx, attr, &dm->vdm, cmd);
	if (ret)
		return errno;
	ret = ornic_dm_map(dm, ctx, offset);
	if (ret)
		ibv_cmd_free_dm(&dm->vdm);
	return ret;
}

struct ibv_dm *ornic_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr)
{
	struct ornic_dm *dm;
	int ret;

	if (ornic_unsupported(to_octx(ctx), "comp_mask of device memory", attr->comp_mask, 0)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	dm->length = attr->length;
	ret = ornic_dm_setup(dm, ctx, attr);
	if (ret) {
		free(dm);
		errno = ret;
		return NULL;
	}
	return &dm->vdm.dm;
}

int ornic_free_dm(struct ibv_dm *ibdm)
{
	struct ornic_dm *dm = container_of(ibdm, struct ornic_dm, vdm.dm);
	int ret = ibv_cmd_free_dm(&dm->vdm);

	if (ret)
		return ret;
	ornic_dm_unmap(dm);
	return 0;
}

static int ornic_dm_query(struct ornic_dm *dm, struct ibv_context *ctx, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, ORNIC_IB_METHOD_DM_QUERY, 2);
	struct ornic_uresp_query_dm resp = {};
	int ret;

	fill_attr_in_obj(cmd, ORNIC_IB_ATTR_DM_QUERY_HANDLE, handle);
	fill_attr_out_ptr(cmd, ORNIC_IB_ATTR_DM_QUERY_RESP, &resp);
	ret = execute_ioctl(ctx, cmd);
	if (ret)
		return ret;
	dm->length = resp.length;
	return ornic_dm_map(dm, ctx, resp.mmap_offset);
}

struct ibv_dm *ornic_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	struct ornic_dm *dm;
	int ret;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	ret = ornic_dm_query(dm, ctx, handle);
	if (ret) {
		free(dm);
		errno = ret;
		return NULL;
	}
	dm->vdm.handle = handle;
	dm->vdm.dm.handle = handle;
	dm->vdm.dm.context = ctx;
	return &dm->vdm.dm;
}

void ornic_unimport_dm(struct ibv_dm *ibdm)
{
	ornic_dm_unmap(container_of(ibdm, struct ornic_dm, vdm.dm));
}

struct ibv_mr *ornic_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t off, size_t length,
			       unsigned int access)
{
	struct ornic_dm *dm = container_of(ibdm, struct ornic_dm, vdm.dm);
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));

	if (!vmr)
		return NULL;
	if (ibv_cmd_reg_dm_mr(pd, &dm->vdm, off, length, access, vmr, NULL)) {
		free(vmr);
		return NULL;
	}
	return &vmr->ibv_mr;
}
