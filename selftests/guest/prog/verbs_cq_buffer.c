// SPDX-License-Identifier: GPL-2.0
/*
 * A completion queue whose entries lie in a buffer that the attributes of the command name (7.2),
 * and its record elsewhere. No library sends such a command, so it is sent here. Prints TAP.
 */
#include "conn.h"
#include "report.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define BUFFER_VA	8		/* UVERBS_ATTR_CREATE_CQ_BUFFER_VA, and _LENGTH; */
#define BUFFER_LENGTH	9		/* older headers lack them */
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
	struct ib_uverbs_attr attrs[9];
};

static void add(struct command *c, uint16_t id, uint16_t len, uint64_t data)
{
	c->attrs[c->hdr.num_attrs++] = (struct ib_uverbs_attr) {
		.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data,
	};
	c->hdr.length = sizeof(c->hdr) + c->hdr.num_attrs * sizeof(c->attrs[0]);
}

/* Create a CQ with these entries and this record. Return: 0 or errno. */
static int create(struct dev *dev, const void *buf, uint64_t length, const void *record,
		  uint32_t *handle)
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
	add(&c, BUFFER_VA, 8, (uintptr_t)buf);
	add(&c, BUFFER_LENGTH, 8, length);
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

int main(int argc, char **argv)
{
	struct verdict v = {}, good = {};
	uint32_t handle = 0;
	struct dev dev;
	char *buf, *record;
	int err;

	if (argc != 2)
		bail("usage: verbs_cq_buffer DEVICE");
	dev_open(&dev, argv[1], -1);
	buf = aligned_alloc(PAGE, RING_BYTES + 2 * PAGE);
	if (!buf)
		bail("out of memory");
	memset(buf, 0, RING_BYTES + 2 * PAGE);
	record = buf + RING_BYTES + PAGE + 64;
	err = create(&dev, buf, RING_BYTES, record, &handle);
	if (err)
		verdict_fail(&v, "create: %s", strerror(err));
	else if ((err = destroy(&dev, handle)))
		verdict_fail(&v, "destroy: %s", strerror(err));
	err = create(&dev, buf, RING_BYTES - 1, record, &handle);
	if (err != EINVAL)
		verdict_fail(&v, "without room for the entries: %s", strerror(err));
	err = create(&dev, buf + 64, RING_BYTES, record, &handle);
	if (err != EINVAL)
		verdict_fail(&v, "not at the beginning of a page: %s", strerror(err));
	err = create(&dev, buf, RING_BYTES, record + 32, &handle);
	if (err != EINVAL)
		verdict_fail(&v, "record not aligned: %s", strerror(err));
	err = create(&dev, buf, RING_BYTES, NULL, &handle);
	if (err != EFAULT)
		verdict_fail(&v, "without a record: %s", strerror(err));
	tap_point("cq_buffer", &v, &good);
	free(buf);
	dev_close(&dev);
	return tap_end();
}
