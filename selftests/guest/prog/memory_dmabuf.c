// SPDX-License-Identifier: GPL-2.0
/*
 * DMA buffers: of udmabuf, which keeps its memory, and of selftests/kmod/exporter.c,
 * which takes it away.
 */
#include "memory.h"
#include "../../kmod/exporter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <pthread.h>
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

#define IOVA	0x77000000ull

/* A buffer that can be revoked; a mapping shows its pages also afterwards. */
struct exported {
	int ctl, fd;
	size_t len;
	char *view;
};

static void export(struct exported *e, size_t len)
{
	__u64 bytes = len;

	e->len = len;
	e->ctl = open("/dev/ornic_exporter", O_RDWR);
	e->fd = e->ctl < 0 ? -1 : ioctl(e->ctl, EXPORTER_EXPORT, &bytes);
	if (e->fd < 0)
		bail("no exporter: %s", strerror(errno));
	e->view = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
	if (e->view == MAP_FAILED)
		bail("no view of the buffer: %s", strerror(errno));
}

static int take_away(struct exported *e)
{
	return ioctl(e->ctl, EXPORTER_REVOKE) ? errno : 0;
}

static void withdraw(struct exported *e)
{
	munmap(e->view, e->len);
	close(e->fd);
	close(e->ctl);
}

static struct ibv_mr *reg(struct exported *e)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(m.dev.pd, 0, e->len, IOVA, e->fd, ALL_RIGHTS);

	if (!mr)
		bail("ibv_reg_dmabuf_mr: %s", strerror(errno));
	return mr;
}

/* Contiguous memory is one page to the device. */
static void test_dmabuf_one_piece(struct verdict *v)
{
	struct exported e;
	struct ibv_mr *mr;
	long before;

	export(&e, HUGE);
	before = key_pages();
	mr = reg(&e);
	expect(v, key_pages() - before, 1, "pages");
	there_and_back(v, IOVA + HUGE - SIZE, mr->rkey, e.view + HUGE - SIZE, SIZE);
	expect(v, ibv_dereg_mr(mr), 0, "dereg");
	withdraw(&e);
}

static bool all(const char *mem, size_t len, char want)
{
	while (len && *mem == want)
		mem++, len--;
	return !len;
}

/* Check that the key cannot be used any more and is not given to another region. */
static void test_dmabuf_revoked(struct verdict *v)
{
	struct ibv_mr *mr, *other;
	struct exported e;

	export(&e, SIZE);
	mr = reg(&e);
	there_and_back(v, IOVA, mr->rkey, e.view, SIZE);
	expect(v, take_away(&e), 0, "revoke");
	memset(e.view, 0x5a, SIZE);
	expect(v, rdma(IBV_WR_RDMA_WRITE, m.buf, m.local->lkey, IOVA, mr->rkey, 8),
	       IBV_WC_REM_ACCESS_ERR, "write to it");
	reconnect_pair();
	expect(v, rdma(IBV_WR_RDMA_READ, m.buf, m.local->lkey, IOVA, mr->rkey, 8),
	       IBV_WC_REM_ACCESS_ERR, "read from it");
	reconnect_pair();
	other = ibv_reg_mr(m.dev.pd, m.buf, SIZE, ALL_RIGHTS);
	expect(v, rdma(IBV_WR_RDMA_READ, (void *)IOVA, mr->lkey, (uintptr_t)m.buf, other->rkey, 8),
	       IBV_WC_LOC_PROT_ERR, "use of it here");
	ibv_dereg_mr(other);
	reconnect_pair();
	for (int i = 0; i < 600; i++) {
		other = ibv_reg_mr(m.dev.pd, m.buf, SIZE, ALL_RIGHTS);
		if (!other || other->rkey == mr->rkey)
			verdict_fail(v, "%s", other ? "its key is another's" : "no other region");
		if (other)
			ibv_dereg_mr(other);
	}
	if (ibv_reg_dmabuf_mr(m.dev.pd, 0, SIZE, IOVA, e.fd, ALL_RIGHTS))
		verdict_fail(v, "a buffer without memory was registered");
	expect(v, take_away(&e), 0, "second revoke");
	expect(v, ibv_dereg_mr(mr), 0, "dereg");
	if (!all(e.view, SIZE, 0x5a))
		verdict_fail(v, "memory that was taken away was written");
	withdraw(&e);
}

struct writer {
	struct ibv_mr *mr;
	int status;
};

/* Write all of it repeatedly until that fails. */
static void *write_on(void *arg)
{
	struct writer *w = arg;
	struct ibv_wc wc = {};
	int posted;

	for (posted = 0; posted < 4; posted++)
		rdma_post(IBV_WR_RDMA_WRITE, m.buf, m.local->lkey, IOVA, w->mr->rkey, SIZE);
	while (posted-- && queue_wait(&m.cq, &wc, PATIENCE) && wc.status == IBV_WC_SUCCESS)
		posted += !rdma_post(IBV_WR_RDMA_WRITE, m.buf, m.local->lkey, IOVA, w->mr->rkey,
				     SIZE);
	w->status = wc.status;
	return NULL;
}

/* When the exporter has its memory back, no outstanding write arrives there. */
static void test_dmabuf_revoked_busy(struct verdict *v)
{
	memset(m.buf, 0x33, SIZE);
	for (int round = 0; round < 10; round++) {
		struct exported e;
		struct writer w;
		pthread_t thread;

		export(&e, SIZE);
		w.mr = reg(&e);
		pthread_create(&thread, NULL, write_on, &w);
		usleep(5000 * round);
		expect(v, take_away(&e), 0, "revoke");
		memset(e.view, 0x5a, SIZE);
		pthread_join(thread, NULL);
		expect(v, w.status, IBV_WC_REM_ACCESS_ERR, "last write");
		if (!all(e.view, SIZE, 0x5a))
			verdict_fail(v, "memory that was taken away was written");
		expect(v, ibv_dereg_mr(w.mr), 0, "dereg");
		withdraw(&e);
		reconnect_pair();
	}
}

static void *take_away_now(void *arg)
{
	return (void *)(long)take_away(arg);
}

/* Revoke and deregister at once: the second one finds nothing to do. */
static void test_dmabuf_revoked_dereg(struct verdict *v)
{
	for (int round = 0; round < 50; round++) {
		struct exported e;
		struct ibv_mr *mr;
		pthread_t thread;
		void *err;

		export(&e, SIZE);
		mr = reg(&e);
		pthread_create(&thread, NULL, take_away_now, &e);
		if (round % 2)
			usleep(20 * round);
		expect(v, ibv_dereg_mr(mr), 0, "dereg");
		pthread_join(thread, &err);
		expect(v, (long)err, 0, "revoke");
		withdraw(&e);
	}
}

const struct memory_test dmabuf_tests[] = {
	{ "dmabuf", test_dmabuf },
	{ "dmabuf_refused", test_dmabuf_refused },
	{ "dmabuf_one_piece", test_dmabuf_one_piece },
	{ "dmabuf_revoked", test_dmabuf_revoked },
	{ "dmabuf_revoked_busy", test_dmabuf_revoked_busy },
	{ "dmabuf_revoked_dereg", test_dmabuf_revoked_dereg },
	{ }
};
