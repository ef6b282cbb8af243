// SPDX-License-Identifier: GPL-2.0
/*
 * Kinds of memory and of registration, within one process: two queue pairs of one
 * device, connected to each other. Prints TAP; names of tests as arguments, or all.
 */
#include "conn.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE	65536u
#define HUGE	(2u << 20)
#define PATIENCE 20

static struct dev dev;
static const char *name;
static struct queue cq;
static struct conn a, b;
static struct ibv_mr *local;
static char *buf;

static void connect_pair(void)
{
	struct conn_attr attr;

	conn_attr_default(&attr, &dev);
	conn_create(&a, &dev, &attr, &cq, &cq);
	conn_create(&b, &dev, &attr, &cq, &cq);
	a.there = b.here;
	b.there = a.here;
	if (conn_to_init(&a) || conn_to_init(&b) || conn_to_rtr(&a) || conn_to_rtr(&b) ||
	    conn_to_rts(&a) || conn_to_rts(&b))
		bail("queue pairs do not connect");
}

static void disconnect_pair(void)
{
	conn_destroy(&a);
	conn_destroy(&b);
}

/* One operation of the first queue pair; returns its status. */
static int rdma(enum ibv_wr_opcode op, void *mem, uint32_t lkey, uint64_t raddr, uint32_t rkey,
		uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)mem, .length = len, .lkey = lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = op, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = raddr, .rkey = rkey },
	};
	struct ibv_wc wc;

	if (ibv_post_send(a.qp, &wr, &bad))
		return -1;
	return queue_wait(&cq, &wc, PATIENCE) ? (int)wc.status : -2;
}

static void expect(struct verdict *v, int got, int want, const char *what)
{
	if (got != want)
		verdict_fail(v, "%s: %d, expected %d", what, got, want);
}

static void fill(char *p, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = seed + i * 7 + (i >> 8);
}

/* Writes @len bytes to @raddr, reads them back and compares both with what @view shows. */
static void there_and_back(struct verdict *v, uint64_t raddr, uint32_t rkey, const char *view,
			   uint32_t len)
{
	fill(buf, len, rkey);
	memset(buf + SIZE, 0, len);
	expect(v, rdma(IBV_WR_RDMA_WRITE, buf, local->lkey, raddr, rkey, len), IBV_WC_SUCCESS,
	       "write");
	expect(v, rdma(IBV_WR_RDMA_READ, buf + SIZE, local->lkey, raddr, rkey, len),
	       IBV_WC_SUCCESS, "read");
	if (memcmp(buf, buf + SIZE, len))
		verdict_fail(v, "what was read is not what was written");
	if (view && memcmp(buf, view, len))
		verdict_fail(v, "the memory is not what was written");
}

/* Addresses from 0 on, for memory that starts within a page */
static void test_zero_based(struct verdict *v)
{
	char *mem = aligned_alloc(4096, 2 * SIZE);
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, mem + 100, SIZE, ALL_RIGHTS | IBV_ACCESS_ZERO_BASED);

	if (!mr) {
		verdict_fail(v, "ibv_reg_mr: %s", strerror(errno));
		return;
	}
	there_and_back(v, 0, mr->rkey, mem + 100, SIZE);
	there_and_back(v, 5000, mr->rkey, mem + 5100, SIZE - 5000);
	expect(v, rdma(IBV_WR_RDMA_WRITE, buf, local->lkey, SIZE - 1, mr->rkey, 2),
	       IBV_WC_REM_ACCESS_ERR, "beyond the end");
	ibv_dereg_mr(mr);
	free(mem);
}

/* An address of the application's choice */
static void test_iova(struct verdict *v)
{
	char *mem = aligned_alloc(4096, SIZE);
	const uint64_t iova = 0x123456789000;
	struct ibv_mr *mr = ibv_reg_mr_iova(dev.pd, mem, SIZE, iova, ALL_RIGHTS);

	if (!mr) {
		verdict_fail(v, "ibv_reg_mr_iova: %s", strerror(errno));
		return;
	}
	there_and_back(v, iova + 4000, mr->rkey, mem + 4000, 9000);
	ibv_dereg_mr(mr);
	free(mem);
}

/* No bytes: registered, reached by nothing but nothing */
static void test_empty(struct verdict *v)
{
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, buf, 0, ALL_RIGHTS);

	if (!mr) {
		verdict_fail(v, "ibv_reg_mr: %s", strerror(errno));
		return;
	}
	expect(v, rdma(IBV_WR_RDMA_WRITE, buf, local->lkey, (uintptr_t)buf, mr->rkey, 0),
	       IBV_WC_SUCCESS, "write of nothing");
	expect(v, rdma(IBV_WR_RDMA_WRITE, buf, local->lkey, (uintptr_t)buf, mr->rkey, 1),
	       IBV_WC_REM_ACCESS_ERR, "write of a byte");
	ibv_dereg_mr(mr);
}

static void test_relaxed(struct verdict *v)
{
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, buf + 2 * SIZE, SIZE,
				       ALL_RIGHTS | IBV_ACCESS_RELAXED_ORDERING);

	if (!mr) {
		verdict_fail(v, "ibv_reg_mr: %s", strerror(errno));
		return;
	}
	there_and_back(v, (uintptr_t)buf + 2 * SIZE, mr->rkey, buf + 2 * SIZE, SIZE);
	ibv_dereg_mr(mr);
}

/* Pages that the device was told of so far */
static long key_pages(void)
{
	char path[128];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/hw_counters/key_pages", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%ld", &n) != 1)
		bail("no counter %s", path);
	fclose(f);
	return n;
}

/* Huge pages stay huge on their way to the device. */
static void test_huge(struct verdict *v)
{
	size_t len = 4 * HUGE;
	char *mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	struct ibv_mr *mr;
	long before, pages;

	if (mem == MAP_FAILED)
		bail("no huge pages: %s", strerror(errno));
	usleep(20000);			/* the kernel remembers counters for 10 ms */
	before = key_pages();
	mr = ibv_reg_mr(dev.pd, mem, len, ALL_RIGHTS);
	usleep(20000);
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
	mr = ibv_reg_mr(dev.pd, mem, SIZE, IBV_ACCESS_REMOTE_READ);
	ret = mr ? ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_RIGHTS) : -1;
	expect(v, ret, 0, "rereg");
	there_and_back(v, (uintptr_t)mem, mr->rkey, mem, SIZE);
	ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ);
	expect(v, ret, 0, "rereg back");
	expect(v, rdma(IBV_WR_RDMA_WRITE, buf, local->lkey, (uintptr_t)mem, mr->rkey, 1),
	       IBV_WC_REM_ACCESS_ERR, "write");
	ibv_dereg_mr(mr);
	free(mem);
}

static struct ibv_dm *dm_alloc(struct ibv_context *verbs, size_t len)
{
	struct ibv_alloc_dm_attr attr = { .length = len };

	return ibv_alloc_dm(verbs, &attr);
}

/* Device memory: what queue pairs write the process sees, and the other way round. */
static void test_dm(struct verdict *v)
{
	struct ibv_dm *dm = dm_alloc(dev.verbs, 10000);
	struct ibv_mr *mr = dm ? ibv_reg_dm_mr(dev.pd, dm, 100, 9000,
					       ALL_RIGHTS | IBV_ACCESS_ZERO_BASED) : NULL;
	static uint32_t view[2250];

	if (!mr) {
		verdict_fail(v, "no device memory: %s", strerror(errno));
		return;
	}
	there_and_back(v, 8, mr->rkey, NULL, 8992);
	expect(v, ibv_memcpy_from_dm(view, dm, 108, 8992), 0, "memcpy_from_dm");
	if (memcmp(view, buf, 8992))
		verdict_fail(v, "the process sees other bytes than were written");
	view[0] = 0x12345678;
	expect(v, ibv_memcpy_to_dm(dm, 4100, view, 4), 0, "memcpy_to_dm");
	expect(v, rdma(IBV_WR_RDMA_READ, buf, local->lkey, 4000, mr->rkey, 4), 0, "read");
	if (memcmp(buf, view, 4))
		verdict_fail(v, "the peer sees other bytes than were copied");
	if (!ibv_free_dm(dm))
		verdict_fail(v, "device memory with a region was freed");
	expect(v, rdma(IBV_WR_RDMA_WRITE, buf, local->lkey, 8999, mr->rkey, 2),
	       IBV_WC_REM_ACCESS_ERR, "beyond the end");
	expect(v, ibv_dereg_mr(mr), 0, "dereg");
	expect(v, ibv_free_dm(dm), 0, "free_dm");
}

/* Another process: takes all device memory that is left, and finds nothing in it. */
static int look_around(size_t most)
{
	struct dev other;
	uint64_t word;

	dev_open(&other, name, -1);
	for (size_t len = most; len >= 4096; len /= 2) {
		struct ibv_dm *dm;

		while ((dm = dm_alloc(other.verbs, len)))
			for (size_t off = 0; off < len; off += 512) {
				if (ibv_memcpy_from_dm(&word, dm, off, 8) || word)
					return 1;
				word = 0x5ec2e75ec2e7;
				ibv_memcpy_to_dm(dm, off, &word, 8);
			}
	}
	return 0;				/* and dies with all of it */
}

static void test_dm_private(struct verdict *v)
{
	struct ibv_device_attr_ex attr;
	uint64_t word = 0x1122334455667788, left = 0;
	struct ibv_dm *dm;

	if (ibv_query_device_ex(dev.verbs, NULL, &attr) || !attr.max_dm_size)
		bail("no device memory");
	dm = dm_alloc(dev.verbs, 8192);
	for (size_t off = 0; off < 8192; off += 512)
		ibv_memcpy_to_dm(dm, off, &word, 8);
	for (int round = 0; round < 2; round++) {
		int status = -1;
		pid_t pid = fork();

		if (!pid)
			_exit(look_around(attr.max_dm_size));
		waitpid(pid, &status, 0);
		expect(v, status, 0, "the other process");
	}
	ibv_memcpy_from_dm(&left, dm, 512, 8);
	if (left != word)
		verdict_fail(v, "somebody else wrote to our memory");
	expect(v, ibv_free_dm(dm), 0, "free_dm");
	dm = dm_alloc(dev.verbs, attr.max_dm_size);
	if (!dm)
		verdict_fail(v, "memory of dead processes is not free: %s", strerror(errno));
	else
		ibv_free_dm(dm);
}

/* A DMA buffer whose pages the process sees, too */
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
	mr = ibv_reg_dmabuf_mr(dev.pd, 4096, SIZE - 4096, iova, fd, ALL_RIGHTS);
	close(fd);
	if (!mr) {
		verdict_fail(v, "ibv_reg_dmabuf_mr: %s", strerror(errno));
		return;
	}
	there_and_back(v, iova, mr->rkey, view + 4096, SIZE - 4096);
	there_and_back(v, iova + 777, mr->rkey, view + 4096 + 777, 20000);
	if (!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf, SIZE, 0))
		verdict_fail(v, "a DMA buffer's region was moved");
	expect(v, rdma(IBV_WR_RDMA_WRITE, buf, local->lkey, iova + SIZE - 4096, mr->rkey, 1),
	       IBV_WC_REM_ACCESS_ERR, "beyond the end");
	ibv_dereg_mr(mr);
	munmap(view, SIZE);
}

static void test_dmabuf_refused(struct verdict *v)
{
	char *view;
	int fd = udmabuf(&view);

	if (ibv_reg_dmabuf_mr(dev.pd, 4096, SIZE, 4096, fd, ALL_RIGHTS))
		verdict_fail(v, "beyond the end of the buffer");
	if (ibv_reg_dmabuf_mr(dev.pd, 0, SIZE, 1, fd, ALL_RIGHTS))
		verdict_fail(v, "iova and offset that disagree within a page");
	if (ibv_reg_dmabuf_mr(dev.pd, 0, SIZE, 0, 0, ALL_RIGHTS))
		verdict_fail(v, "a file that is no DMA buffer");
	close(fd);
	munmap(view, SIZE);
}

static const struct {
	const char *name;
	void (*run)(struct verdict *v);
} tests[] = {
	{ "zero_based", test_zero_based }, { "iova", test_iova }, { "empty", test_empty },
	{ "relaxed", test_relaxed }, { "huge", test_huge },
	{ "rereg_writable", test_rereg_writable }, { "dm", test_dm },
	{ "dm_private", test_dm_private }, { "dmabuf", test_dmabuf },
	{ "dmabuf_refused", test_dmabuf_refused },
};

int main(int argc, char **argv)
{
	if (argc < 2)
		bail("usage: verbs_memory DEVICE [TEST...]");
	name = argv[1];
	dev_open(&dev, name, -1);
	queue_create(&cq, &dev, 64, false);
	buf = aligned_alloc(4096, 3 * SIZE);
	local = ibv_reg_mr(dev.pd, buf, 3 * SIZE, IBV_ACCESS_LOCAL_WRITE);
	if (!local)
		bail("ibv_reg_mr: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		struct verdict good = {}, v = {};
		bool wanted = argc == 2;

		for (int j = 2; j < argc; j++)
			wanted |= !strcmp(argv[j], tests[i].name);
		if (!wanted)
			continue;
		connect_pair();
		tests[i].run(&v);
		tap_point(tests[i].name, &v, &good);
		disconnect_pair();
	}
	ibv_dereg_mr(local);
	queue_destroy(&cq);
	dev_close(&dev);
	return tap_end();
}
