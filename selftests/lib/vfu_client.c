// SPDX-License-Identifier: GPL-2.0
/*
 * vfio-user client: one request at a time on a blocking socket.
 */
#include "vfu_client.h"

#include "vfu/proto.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_TRIES	500	/* of 10 ms */
#define REPLY_MS	10000

/* Send a message of header, fixed part and tail, with descriptors. */
static int client_send(struct vfu_client *c, const struct vfu_hdr *hdr, const void *fixed,
		       size_t fixed_len, const void *tail, size_t tail_len, const int *fd,
		       unsigned int nfd)
{
	struct iovec iov[3] = {
		{ (void *)hdr, sizeof(*hdr) },
		{ (void *)fixed, fixed_len },
		{ (void *)tail, tail_len },
	};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * VFU_MAX_FDS)];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };

	if (nfd) {
		struct cmsghdr *cm;

		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfd);
		cm = CMSG_FIRSTHDR(&msg);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * nfd);
		memcpy(CMSG_DATA(cm), fd, sizeof(int) * nfd);
	}
	return sendmsg(c->fd, &msg, MSG_NOSIGNAL) == (ssize_t)hdr->size ? 0 : -errno;
}

static int client_recv(struct vfu_client *c, void *buf, size_t len)
{
	while (len) {
		struct pollfd p = { .fd = c->fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, REPLY_MS) <= 0)
			return -ETIMEDOUT;
		n = recv(c->fd, buf, len, 0);
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		buf = (char *)buf + n;
		len -= n;
	}
	return 0;
}

/* Read the reply to request @id: @len bytes into @out, the rest is discarded. */
static int client_reply(struct vfu_client *c, uint16_t id, void *out, size_t len)
{
	struct vfu_hdr hdr;
	size_t left, n;
	char drop[256];
	int err = client_recv(c, &hdr, sizeof(hdr));

	if (err)
		return err;
	if (hdr.id != id || (hdr.flags & VFU_F_TYPE) != VFU_F_REPLY || hdr.size < sizeof(hdr))
		return -EPROTO;
	left = hdr.size - sizeof(hdr);
	n = left < len ? left : len;
	err = client_recv(c, out, n);
	for (left -= n; !err && left; left -= n) {
		n = left < sizeof(drop) ? left : sizeof(drop);
		err = client_recv(c, drop, n);
	}
	if (!err && hdr.flags & VFU_F_ERROR)
		err = hdr.error ? -(int)hdr.error : -EIO;
	return err;
}

static int client_call(struct vfu_client *c, uint16_t cmd, const void *fixed, size_t fixed_len,
		       const void *tail, size_t tail_len, const int *fd, unsigned int nfd,
		       void *out, size_t out_len)
{
	struct vfu_hdr hdr = {
		.id = c->next_id++,
		.cmd = cmd,
		.size = sizeof(hdr) + fixed_len + tail_len,
	};
	int err = client_send(c, &hdr, fixed, fixed_len, tail, tail_len, fd, nfd);

	return err ? err : client_reply(c, hdr.id, out, out_len);
}

static int client_version(struct vfu_client *c)
{
	static const char caps[] = "{\"capabilities\":{\"max_msg_fds\":16}}";
	struct vfu_version v = { VFU_MAJOR, VFU_MINOR };

	return client_call(c, VFU_VERSION, &v, sizeof(v), caps, sizeof(caps), NULL, 0, &v,
			   sizeof(v));
}

static int client_connect(const struct sockaddr_un *addr)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	for (int i = 0; i < CONNECT_TRIES; i++) {
		if (!connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
			return fd;
		if (errno != ENOENT && errno != ECONNREFUSED)
			break;
		nanosleep(&pause, NULL);
	}
	close(fd);
	return -ECONNREFUSED;
}

int vfu_client_open(struct vfu_client *c, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	c->next_id = 1;
	c->fd = client_connect(&addr);
	if (c->fd < 0)
		return c->fd;
	err = client_version(c);
	if (err)
		vfu_client_close(c);
	return err;
}

void vfu_client_close(struct vfu_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

int vfu_client_dma_map(struct vfu_client *c, int fd, uint64_t offset, uint64_t addr,
		       uint64_t size, bool writable)
{
	struct vfu_dma_map req = {
		.argsz = sizeof(req),
		.flags = VFU_DMA_F_READ | (writable ? VFU_DMA_F_WRITE : 0),
		.offset = offset,
		.addr = addr,
		.size = size,
	};

	return client_call(c, VFU_DMA_MAP, &req, sizeof(req), NULL, 0, &fd, fd >= 0, NULL, 0);
}

int vfu_client_dma_unmap(struct vfu_client *c, uint64_t addr, uint64_t size)
{
	struct vfu_dma_unmap req = { .argsz = sizeof(req), .addr = addr, .size = size };

	return client_call(c, VFU_DMA_UNMAP, &req, sizeof(req), NULL, 0, NULL, 0, &req,
			   sizeof(req));
}

int vfu_client_read(struct vfu_client *c, uint32_t region, uint64_t off, void *buf, uint32_t len)
{
	struct vfu_region_access req = { off, region, len };
	struct {
		struct vfu_region_access a;
		uint8_t data[256];
	} rsp;
	int err;

	if (len > sizeof(rsp.data))
		return -EINVAL;
	err = client_call(c, VFU_REGION_READ, &req, sizeof(req), NULL, 0, NULL, 0, &rsp,
			  sizeof(rsp.a) + len);
	if (!err)
		memcpy(buf, rsp.data, len);
	return err;
}

int vfu_client_write(struct vfu_client *c, uint32_t region, uint64_t off, const void *buf,
		     uint32_t len)
{
	struct vfu_region_access req = { off, region, len };

	return client_call(c, VFU_REGION_WRITE, &req, sizeof(req), buf, len, NULL, 0, &req,
			   sizeof(req));
}

int vfu_client_post(struct vfu_client *c, uint32_t region, uint64_t off, const void *buf,
		    uint32_t len)
{
	struct vfu_region_access req = { off, region, len };
	struct vfu_hdr hdr = {
		.id = c->next_id++,
		.cmd = VFU_REGION_WRITE,
		.size = sizeof(hdr) + sizeof(req) + len,
		.flags = VFU_F_NO_REPLY,
	};

	return client_send(c, &hdr, &req, sizeof(req), buf, len, NULL, 0);
}

int vfu_client_msix(struct vfu_client *c, uint32_t start, uint32_t n, const int *eventfd)
{
	struct vfu_set_irqs req = {
		.argsz = sizeof(req),
		.flags = VFU_SET_F_EVENTFD | VFU_SET_F_TRIGGER,
		.index = VFU_IRQ_MSIX,
		.start = start,
		.count = n,
	};

	if (n > VFU_MAX_FDS)
		return -EINVAL;
	return client_call(c, VFU_SET_IRQS, &req, sizeof(req), NULL, 0, eventfd, n, NULL, 0);
}

int vfu_client_bus_master(struct vfu_client *c, bool on)
{
	uint16_t command = PCI_COMMAND_MEMORY | (on ? PCI_COMMAND_MASTER : 0);

	return vfu_client_write(c, VFU_REGION_CONFIG, PCI_COMMAND, &command, sizeof(command));
}

/* Return the offset of a capability, or a negative errno */
static int client_capability(struct vfu_client *c, uint8_t id)
{
	uint8_t pos = 0, entry[2];
	int err = vfu_client_read(c, VFU_REGION_CONFIG, PCI_CAPABILITY_LIST, &pos, sizeof(pos));

	for (int i = 0; !err && pos && i < 48; i++) {
		err = vfu_client_read(c, VFU_REGION_CONFIG, pos, entry, sizeof(entry));
		if (!err && entry[0] == id)
			return pos;
		pos = entry[1];
	}
	return err ? err : -ENOENT;
}

int vfu_client_flr(struct vfu_client *c)
{
	uint16_t control = PCI_EXP_DEVCTL_BCR_FLR;
	int pos = client_capability(c, PCI_CAP_ID_EXP);

	if (pos < 0)
		return pos;
	return vfu_client_write(c, VFU_REGION_CONFIG, pos + PCI_EXP_DEVCTL, &control,
				sizeof(control));
}

int vfu_client_reset(struct vfu_client *c)
{
	return client_call(c, VFU_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0, NULL, 0);
}
