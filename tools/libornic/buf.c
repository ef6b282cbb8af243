// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue buffers: whole zeroed pages, kept out of the children of a fork so that
 * copy-on-write never moves them away from under the device.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ornic.h"

int ornic_buf_alloc(struct ornic_buf *buf, size_t bytes)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int ret;

	bytes = (bytes + page - 1) & ~(page - 1);
	buf->addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf->addr == MAP_FAILED)
		return errno;
	ret = ibv_dontfork_range(buf->addr, bytes);
	if (ret) {
		munmap(buf->addr, bytes);
		return ret < 0 ? errno : ret;
	}
	buf->bytes = bytes;
	return 0;
}

void ornic_buf_free(struct ornic_buf *buf)
{
	ibv_dofork_range(buf->addr, buf->bytes);
	munmap(buf->addr, buf->bytes);
}
