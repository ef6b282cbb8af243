// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue buffers: whole zeroed pages.
 *
 * A fork does not copy them to the child, because copy-on-write could give the parent a
 * new page while the device still uses the old one. A parent domain may have an allocator
 * of the application for them (parent_domain.c). It exists as long as its buffers.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ornic.h"

static int ornic_buf_map(struct ornic_buf *buf)
{
	buf->addr = mmap(NULL, buf->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	return buf->addr == MAP_FAILED ? errno : 0;
}

/*
 * Get the buffer from the allocator of the application, or from mmap if the allocator
 * returns IBV_ALLOCATOR_USE_DEFAULT. Return 0, ENOMEM, or EINVAL for an address that is
 * not a multiple of @page.
 */
static int ornic_buf_ask(struct ornic_buf *buf, struct ornic_pd *pd, size_t page)
{
	void *addr = pd->alloc(&pd->ibv_pd, pd->pd_context, buf->bytes, page, buf->resource_type);

	if (addr == IBV_ALLOCATOR_USE_DEFAULT)
		return ornic_buf_map(buf);
	if (!addr)
		return ENOMEM;
	if ((uintptr_t)addr % page) {
		pd->free(&pd->ibv_pd, pd->pd_context, addr, buf->resource_type);
		return EINVAL;
	}
	memset(addr, 0, buf->bytes);
	buf->addr = addr;
	buf->custom = true;
	return 0;
}

static void ornic_buf_release(struct ornic_buf *buf)
{
	struct ornic_pd *pd = buf->pd;

	if (buf->custom)
		pd->free(&pd->ibv_pd, pd->pd_context, buf->addr, buf->resource_type);
	else
		munmap(buf->addr, buf->bytes);
	if (pd)
		atomic_fetch_sub_explicit(&pd->users, 1, memory_order_relaxed);
}

/*
 * Allocate at least @bytes bytes, in whole pages, for a queue of @pd, which may be NULL.
 * @type tells a custom allocator the type of the queue (ibv_alloc_parent_domain(3)). Return 0 or a
 * positive errno.
 */
int ornic_buf_alloc_in(struct ornic_buf *buf, size_t bytes, struct ornic_pd *pd,
		       enum ornic_res_type type)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int ret;

	*buf = (struct ornic_buf){
		.bytes = (bytes + page - 1) & ~(page - 1),
		.pd = pd && pd->on ? pd : NULL,
		.resource_type = (uint64_t)RDMA_DRIVER_ORNIC << 32 | type,
	};
	ret = buf->pd && pd->alloc ? ornic_buf_ask(buf, pd, page) : ornic_buf_map(buf);
	if (ret)
		return ret;
	if (buf->pd)
		atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	ret = ibv_dontfork_range(buf->addr, buf->bytes);
	if (!ret)
		return 0;
	ret = ret < 0 ? errno : ret;
	ornic_buf_release(buf);
	return ret;
}

void ornic_buf_free(struct ornic_buf *buf)
{
	ibv_dofork_range(buf->addr, buf->bytes);
	ornic_buf_release(buf);
}
