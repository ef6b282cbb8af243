// SPDX-License-Identifier: GPL-2.0
/*
 * A completion queue whose entries lie in a buffer that the attributes of the command name (7.2),
 * by address or in a dma-buf, and its record elsewhere. No library sends such a command, so it is
 * sent here. Prints TAP.
 */
#include "conn.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define BUFFER_VA	8		/* UVERBS_ATTR_CREATE_CQ_BUFFER_VA, and so on; */
#define BUFFER_LENGTH	9		/* older headers lack them */
#define BUFFER_FD	10
#define BUFFER_OFFSET	11
#define LOG_ENTRIES	6
#define RING_BYTES	(64u << LOG_ENTRIES)
#define PAGE		4096u

/* As in uapi/rdma/ornic-abi.h. */
struct request {
	uint64_t buf_addr;
	uint8_t log_entries;
	uint8_t reserved[7];
};

struct command {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[10];
};

/* Where the entries of a CQ lie. */
struct place {
	const void *buf;		/* NULL: in the dma-buf */
	int fd;				/* of the dma-buf */
	uint64_t offset;		/* in the dma-buf */
	uint64_t length;
};

static void add(struct command *c, uint16_t id, uint16_t len, uint64_t data)
{
	c->attrs[c->hdr.num_attrs++] = (struct ib_uverbs_attr) {
		.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data,
	};
	c->hdr.length = sizeof(c->hdr) + c->hdr.num_attrs * sizeof(c->attrs[0]);
}

/* Create a CQ with these entries and this record. Return: 0 or errno. */
static int create(struct dev *dev, struct place place, const void *record, uint32_t *handle)
{
	struct request request = { .buf_addr = (uintptr_t)record, .log_entries = LOG_ENTRIES };
	uint64_t response[2], entries_got = 0;
	struct command c = {
		.hdr = { .object_id = UVERBS_OBJECT_CQ, .method_id = UVERBS_METHOD_CQ_CREATE },
	};

	add(&c, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0);
	add(&c, UVERBS_ATTR_CREATE_CQ_CQE, 4, 1u << LOG_ENTRIES);
	add(&c, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 0);
	add(&c, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 0);
	add(&c, UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4, (uintptr_t)&entries_got);
	if (place.buf) {
		add(&c, BUFFER_VA, 8, (uintptr_t)place.buf);
	} else {
		add(&c, BUFFER_FD, 0, place.fd);
		add(&c, BUFFER_OFFSET, 8, place.offset);
	}
	add(&c, BUFFER_LENGTH, 8, place.length);
	add(&c, UVERBS_ATTR_UHW_IN, sizeof(request), (uintptr_t)&request);
	add(&c, UVERBS_ATTR_UHW_OUT, 8, (uintptr_t)response);
	if (ioctl(dev->verbs->cmd_fd, RDMA_VERBS_IOCTL, &c))
		return errno;
	*handle = c.attrs[0].data;
	return 0;
}

static int destroy(struct dev *dev, uint32_t handle)
{
	uint64_t response = 0;
	struct command c = {
		.hdr = { .object_id = UVERBS_OBJECT_CQ, .method_id = UVERBS_METHOD_CQ_DESTROY },
	};

	add(&c, UVERBS_ATTR_DESTROY_CQ_HANDLE, 0, handle);
	add(&c, UVERBS_ATTR_DESTROY_CQ_RESP, 8, (uintptr_t)&response);
	return ioctl(dev->verbs->cmd_fd, RDMA_VERBS_IOCTL, &c) ? errno : 0;
}

static void create_and_destroy(struct verdict *v, struct dev *dev, struct place place,
			       const void *record)
{
	uint32_t handle = 0;
	int err = create(dev, place, record, &handle);

	if (err) {
		verdict_fail(v, "create: %s", strerror(err));
		return;
	}
	err = destroy(dev, handle);
	if (err)
		verdict_fail(v, "destroy: %s", strerror(err));
}

static void reject(struct verdict *v, struct dev *dev, struct place place, const void *record,
		   int error, const char *what)
{
	uint32_t handle;
	int err = create(dev, place, record, &handle);

	if (err != error)
		verdict_fail(v, "%s: %s", what, strerror(err));
}

static void test_address(struct verdict *v, struct dev *dev, const char *buf, const char *record)
{
	create_and_destroy(v, dev, (struct place){ buf, .length = RING_BYTES }, record);
	reject(v, dev, (struct place){ buf, .length = RING_BYTES - 1 }, record, EINVAL,
	       "without room for the entries");
	reject(v, dev, (struct place){ buf + 64, .length = RING_BYTES }, record, EINVAL,
	       "not at the beginning of a page");
	reject(v, dev, (struct place){ buf, .length = RING_BYTES }, record + 32, EINVAL,
	       "record not aligned");
	reject(v, dev, (struct place){ buf, .length = RING_BYTES }, NULL, EFAULT,
	       "without a record");
}

/* Return the descriptor of a dma-buf of two pages. */
static int dmabuf_open(void)
{
	int memory = memfd_create("cq", MFD_ALLOW_SEALING), udmabuf, fd;
	struct udmabuf_create create = { .memfd = memory, .size = 2 * PAGE };

	if (memory < 0 || ftruncate(memory, 2 * PAGE) || fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK))
		bail("no memory file: %s", strerror(errno));
	udmabuf = open("/dev/udmabuf", O_RDWR);
	if (udmabuf < 0)
		bail("/dev/udmabuf: %s", strerror(errno));
	fd = ioctl(udmabuf, UDMABUF_CREATE, &create);
	if (fd < 0)
		bail("no dma-buf: %s", strerror(errno));
	close(udmabuf);
	close(memory);
	return fd;
}

static void test_dmabuf(struct verdict *v, struct dev *dev, const char *record)
{
	int fd = dmabuf_open();

	create_and_destroy(v, dev, (struct place){ NULL, fd, 0, RING_BYTES }, record);
	create_and_destroy(v, dev, (struct place){ NULL, fd, PAGE, RING_BYTES }, record);
	reject(v, dev, (struct place){ NULL, fd, 0, RING_BYTES - 1 }, record, EINVAL,
	       "without room for the entries");
	reject(v, dev, (struct place){ NULL, fd, 2 * PAGE, RING_BYTES }, record, EINVAL,
	       "beyond the dma-buf");
	reject(v, dev, (struct place){ NULL, fd, PAGE, 2 * PAGE }, record, EINVAL,
	       "partly beyond the dma-buf");
	reject(v, dev, (struct place){ NULL, fd, 64, RING_BYTES }, record, EINVAL,
	       "not at the beginning of a page");
	reject(v, dev, (struct place){ NULL, fd, 0, RING_BYTES }, NULL, EFAULT,
	       "without a record");
	close(fd);
}

int main(int argc, char **argv)
{
	struct verdict address = {}, dmabuf = {}, good = {};
	struct dev dev;
	char *buf, *record;

	if (argc != 2)
		bail("usage: verbs_cq_buffer DEVICE");
	dev_open(&dev, argv[1], -1);
	buf = aligned_alloc(PAGE, RING_BYTES + 2 * PAGE);
	if (!buf)
		bail("out of memory");
	memset(buf, 0, RING_BYTES + 2 * PAGE);
	record = buf + RING_BYTES + PAGE + 64;
	test_address(&address, &dev, buf, record);
	tap_point("cq_address", &address, &good);
	test_dmabuf(&dmabuf, &dev, record);
	tap_point("cq_dmabuf", &dmabuf, &good);
	free(buf);
	dev_close(&dev);
	return tap_end();
}
