// SPDX-License-Identifier: GPL-2.0
/*
 * Faults while memory is registered, reregistered, given a window, and deregistered: memory
 * of the process, of the device, of a DMA buffer.
 */
#include "faults_cases.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096u
#define SMALL	(3 * PAGE)
#define LARGE	(1100 * PAGE)	/* enough pages for a page list of several parts */

static char *mem;
static struct ibv_mr *mr, *base_mr;
static struct ibv_mw *mw;
static struct ibv_dm *dm, *base_dm;
static int dmabuf;

static int reg(size_t len)
{
	mr = ibv_reg_mr(dev.pd, mem, len, ALL_RIGHTS | IBV_ACCESS_MW_BIND);
	return made(mr);
}

static int reg_small(void)
{
	return reg(SMALL);
}

static int reg_large(void)
{
	return reg(LARGE);
}

static int reg_empty(void)
{
	return reg(0);
}

static int reg_dmabuf(void)
{
	mr = ibv_reg_dmabuf_mr(dev.pd, 0, SMALL, 0x77000000, dmabuf, ALL_RIGHTS);
	return made(mr);
}

static int reg_dm(void)
{
	mr = ibv_reg_dm_mr(dev.pd, base_dm, 0, PAGE, ALL_RIGHTS | IBV_ACCESS_ZERO_BASED);
	return made(mr);
}

static int dereg(void)
{
	return status(ibv_dereg_mr(mr));
}

/* A region whose move failed is unchanged or has moved, and can be moved again. */
static int rereg(void)
{
	static size_t len;
	int ret;

	len = len == SMALL ? LARGE : SMALL;
	ret = ibv_rereg_mr(base_mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
			   NULL, mem, len, ALL_RIGHTS);
	return ret ? (errno ? errno : EPROTO) : 0;
}

static int alloc_mw_1(void)
{
	mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_1);
	return made(mw);
}

static int alloc_mw_2(void)
{
	mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
	return made(mw);
}

static int dealloc_mw(void)
{
	return status(ibv_dealloc_mw(mw));
}

static int alloc_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 10000 };

	dm = ibv_alloc_dm(dev.verbs, &attr);
	return made(dm);
}

static int free_dm(void)
{
	return status(ibv_free_dm(dm));
}

static int udmabuf(void)
{
	int memfd = memfd_create("faults", MFD_ALLOW_SEALING);
	int ctl = open("/dev/udmabuf", O_RDWR);
	struct udmabuf_create create = { .memfd = memfd, .size = SMALL };
	int fd = -1;

	if (ctl >= 0 && !ftruncate(memfd, SMALL) && !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = ioctl(ctl, UDMABUF_CREATE, &create);
	close(ctl);
	close(memfd);
	return fd;
}

/* Contiguous pages would need no list: a hole in the middle, and no huge pages. */
static void open_base(void)
{
	struct ibv_alloc_dm_attr attr = { .length = PAGE };

	mem = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(mem, LARGE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < LARGE; i += 2 * PAGE)
		mem[i] = 1;
	for (size_t i = PAGE; i < LARGE; i += 2 * PAGE)
		mem[i] = 1;
	dmabuf = udmabuf();
	base_dm = ibv_alloc_dm(dev.verbs, &attr);
	if (dmabuf < 0 || !base_dm || reg_small())
		bail("no DMA buffer, device memory or region: %s", strerror(errno));
	base_mr = mr;
}

static void close_base(void)
{
	if (ibv_dereg_mr(base_mr) || ibv_free_dm(base_dm))
		bail("region or device memory does not go: %s", strerror(errno));
	close(dmabuf);
	munmap(mem, LARGE);
}

static const struct fault_case memory_cases[] = {
	{ "mr", reg_small, dereg },
	{ "mr_large", reg_large, dereg },
	{ "mr_empty", reg_empty, dereg },
	{ "mr_dmabuf", reg_dmabuf, dereg },
	{ "mr_dm", reg_dm, dereg },
	{ "mr_rereg", rereg, NULL },
	{ "mw_1", alloc_mw_1, dealloc_mw },
	{ "mw_2", alloc_mw_2, dealloc_mw },
	{ "dm", alloc_dm, free_dm },
};

FAULT_GROUP(memory, open_base, close_base);
