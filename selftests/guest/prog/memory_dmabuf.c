// SPDX-License-Identifier: GPL-2.0
/*
 * DMA buffers.
 */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory of the process as a DMA buffer */
static int udmabuf(char **view)
{
	int memfd = memfd_create("test", MFD_ALLOW_SEALING);
	int ctl = open("/dev/udmabuf", O_RDWR);
	struct udmabuf_create create = { .memfd = memfd, .size = SIZE };
	int fd = -1;

	if (ctl >= 0 && !ftruncate(memfd, SIZE) && !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = ioctl(ctl, UDMABUF_CREATE, &create);
	*view = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	close(ctl);
	close(memfd);
	return fd;
}

static void test_dmabuf(struct verdict *v)
{
	char *view;
	int fd = udmabuf(&view);
	const uint64_t iova = 0x77000000;
	struct ibv_mr *mr;

	if (fd < 0)
		bail("no udmabuf: %s", strerror(errno));
	mr = ibv_reg_dmabuf_mr(m.dev.pd, 4096, SIZE - 4096, iova, fd, ALL_RIGHTS);
	close(fd);
	if (!mr) {
		verdict_fail(v, "ibv_reg_dmabuf_mr: %s", strerror(errno));
		return;
	}
	there_and_back(v, iova, mr->rkey, view + 4096, SIZE - 4096);
	there_and_back(v, iova + 777, mr->rkey, view + 4096 + 777, 20000);
	if (!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, m.buf, SIZE, 0))
		verdict_fail(v, "a DMA buffer's region was moved");
	expect(v, rdma(IBV_WR_RDMA_WRITE, m.buf, m.local->lkey, iova + SIZE - 4096, mr->rkey, 1),
	       IBV_WC_REM_ACCESS_ERR, "beyond the end");
	ibv_dereg_mr(mr);
	munmap(view, SIZE);
}

static void test_dmabuf_refused(struct verdict *v)
{
	char *view;
	int fd = udmabuf(&view);

	if (ibv_reg_dmabuf_mr(m.dev.pd, 4096, SIZE, 4096, fd, ALL_RIGHTS))
		verdict_fail(v, "beyond the end of the buffer");
	if (ibv_reg_dmabuf_mr(m.dev.pd, 0, SIZE, 1, fd, ALL_RIGHTS))
		verdict_fail(v, "iova and offset that disagree within a page");
	if (ibv_reg_dmabuf_mr(m.dev.pd, 0, SIZE, 0, 0, ALL_RIGHTS))
		verdict_fail(v, "a file that is no DMA buffer");
	if (ibv_reg_dmabuf_mr(m.dev.pd, (uintptr_t)m.buf, SIZE, (uintptr_t)m.buf, -1, ALL_RIGHTS))
		verdict_fail(v, "no file, but memory of the process");
	if (ibv_reg_dmabuf_mr(m.dev.pd, 0, 0, 0, fd, ALL_RIGHTS))
		verdict_fail(v, "no bytes");
	close(fd);
	munmap(view, SIZE);
}

const struct memory_test dmabuf_tests[] = {
	{ "dmabuf", test_dmabuf },
	{ "dmabuf_refused", test_dmabuf_refused },
	{ }
};
