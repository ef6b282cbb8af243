// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile VMM: messages of the vfio-user protocol, whole, in pieces and truncated, with
 * valid and invalid descriptors, to the real server with a function behind it.
 *
 * An input is a sequence of messages. Then the client disconnects: nothing of it must
 * remain, neither memory nor descriptors, and the next client is served.
 */
#include "lib/records.h"
#include "lib/rig.h"

#include "loop.h"
#include "mem/gpa.h"
#include "vfu/event.h"
#include "vfu/proto.h"
#include "vfu/server.h"

#include <dirent.h>
#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/sockios.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BODY_MAX	4096u
#define MEMORY_BYTES	(1u << 20)
#define FDS_MAX		4u
#define LOOPS		20000

/* Flags: completion and sending of a message */
#define FIX_SIZE	0x01	/* of the header: the number of bytes that exist */
#define FIX_ARGSZ	0x02	/* the first word of the payload */
#define FIX_REPLY	0x04	/* no answer wanted */
#define FIX_PIECES	0x08	/* sent in two */
#define FIX_CLOSE	0x10	/* then the client disconnects, and reconnects */

/**
 * struct rec_msg - a message; its payload follows
 * @how:	FIX_*
 * @nfds:	descriptors that come along: number in bits 2:0, kind in the others
 * @cmd:	enum vfu_cmd
 * @flags:	header
 * @size:	header, without FIX_SIZE
 * @len:	bytes of the payload
 */
struct rec_msg {
	uint8_t how;
	uint8_t nfds;
	uint8_t cmd[2];
	uint8_t flags;
	uint8_t size[4];
	uint8_t len[2];
};

static struct loop *loop;
static struct vfu_server *server;
static struct function *guest;
static struct sockaddr_un addr;
static int client;
static int memory = -1;
static uint32_t loops;

/* ---- the client ------------------------------------------------------------------ */

static uint32_t open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Check that the server's messages are whole and are replies, as far as the target can see. */
static void read_answers(void)
{
	static uint8_t buf[2 * VFU_MAX_MSG];
	static size_t have;
	struct vfu_hdr hdr;
	ssize_t n;

	if (client < 0) {
		have = 0;
		return;
	}
	while ((n = recv(client, buf + have, sizeof(buf) - have, MSG_DONTWAIT)) > 0) {
		size_t at = 0;

		for (have += n; have - at >= sizeof(hdr); at += hdr.size) {
			memcpy(&hdr, buf + at, sizeof(hdr));
			CHECK(hdr.size >= sizeof(hdr) && hdr.size <= VFU_MAX_MSG);
			CHECK((hdr.flags & VFU_F_TYPE) == VFU_F_REPLY);
			CHECK(!(hdr.flags & VFU_F_ERROR) || (hdr.error && hdr.size == sizeof(hdr)));
			if (have - at < hdr.size)
				break;
		}
		have -= at;
		memmove(buf, buf + at, have);
	}
	if (!n || errno != EAGAIN) {
		close(client);
		client = -1;
		have = 0;
	}
}

/* Run the loop until the server has read and executed the messages that were sent. */
static int64_t work(void *arg)
{
	static uint32_t quiet;
	int unread = 0;

	(void)arg;
	function_work(guest);
	engine_turn(&rig.engine);
	read_answers();
	if (client >= 0)
		ioctl(client, SIOCOUTQ, &unread);
	quiet = unread ? 0 : quiet + 1;
	CHECK(loops++ < LOOPS, "the server does not read");
	if (quiet > 2) {
		quiet = 0;
		loop_stop(loop);
	}
	return 1;
}

static void serve(void)
{
	loops = 0;
	CHECK(!loop_run(loop));
}

static void client_come(void)
{
	client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(client >= 0 && !connect(client, (struct sockaddr *)&addr, sizeof(addr)));
	serve();
}

static void client_leave(void)
{
	if (client >= 0)
		close(client);
	client = -1;
	serve();
	serve();
}

/* Create descriptors as a client has them: memory, eventfds; or any other */
static int some_fd(uint32_t kind)
{
	switch (kind % 3) {
	case 0:
		return memory;
	case 1:
		return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	default:
		return client;
	}
}

static void send_bytes(const uint8_t *p, size_t len, const int *fd, uint32_t nfd)
{
	union {
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)p, len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm = &control.align;

	if (nfd) {
		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(nfd * sizeof(int));
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfd * sizeof(int));
		memcpy(CMSG_DATA(cm), fd, nfd * sizeof(int));
	}
	if (client >= 0)
		sendmsg(client, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_message(const uint8_t *p, size_t len, uint32_t how, uint32_t fds)
{
	uint32_t nfd = (fds & 7) % (FDS_MAX + 1), kind = fds >> 3;
	size_t first = how & FIX_PIECES ? len / 2 : len;
	int fd[FDS_MAX];

	if (client < 0)
		return;
	for (uint32_t i = 0; i < nfd; i++)
		fd[i] = some_fd(kind);
	send_bytes(p, first, fd, nfd);
	for (uint32_t i = 0; i < nfd; i++)
		if (fd[i] != memory && fd[i] != client)
			close(fd[i]);
	if (first != len) {
		serve();
		send_bytes(p + first, len - first, NULL, 0);
	}
	serve();
}

static void say_version(void)
{
	static const struct {
		struct vfu_hdr hdr;
		struct vfu_version version;
	} hello = {
		.hdr = { .cmd = VFU_VERSION, .size = sizeof(hello) },
		.version = { VFU_MAJOR, VFU_MINOR },
	};

	send_message((const uint8_t *)&hello, sizeof(hello), 0, 0);
}

/* ---- running an input ------------------------------------------------------------ */

static bool run_message(struct bytes *b)
{
	const struct rec_msg *r = (const void *)bytes_take(b, sizeof(*r));
	static uint8_t msg[sizeof(struct vfu_hdr) + BODY_MAX];
	const uint8_t *body;
	struct vfu_hdr hdr;
	uint32_t len;

	if (!r)
		return false;
	len = bytes_le(r->len, 2) % BODY_MAX;
	body = bytes_take(b, len);
	if (!body)
		return false;
	hdr = (struct vfu_hdr) {
		.id = r->how, .cmd = bytes_le(r->cmd, 2), .flags = r->flags,
		.size = r->how & FIX_SIZE ? sizeof(hdr) + len : bytes_le(r->size, 4),
	};
	if (r->how & FIX_SIZE)
		hdr.flags = r->how & FIX_REPLY ? VFU_F_NO_REPLY : 0;
	memcpy(msg, &hdr, sizeof(hdr));
	memcpy(msg + sizeof(hdr), body, len);
	if (r->how & FIX_ARGSZ && len >= 4)
		memcpy(msg + sizeof(hdr), &len, 4);
	send_message(msg, sizeof(hdr) + len, r->how, r->nfds);
	if (r->how & FIX_CLOSE || client < 0) {
		client_leave();
		client_come();
		say_version();
	}
	return true;
}

static void start(void)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	int err;

	rig_start();
	for (int i = 0; i < 2; i++) {
		rig_bring_up(i);
		rig_innocent(i);
	}
	rig_join(0, 1);
	guest = function_new(&rig.engine, "guest", mac, 0, &err);
	loop = loop_new();
	CHECK(guest && loop);
	loop_set_work(loop, work, NULL);
	rig_address(&addr, "vfu");
	CHECK(!vfu_server_open(loop, &guest->vfu, addr.sun_path, NULL, &server));
}

static void stop(void)
{
	vfu_server_close(server);
	loop_free(loop);
	function_free(guest);
	rig_stop();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data, size };
	uint32_t files;

	if (memory < 0) {
		memory = memfd_create("client", MFD_CLOEXEC);
		CHECK(memory >= 0 && !ftruncate(memory, MEMORY_BYTES));
	}
	event_signal(-1);	/* the first one opens a file */
	start();
	files = open_files();
	client_come();
	while (run_message(&b))
		;
	client_leave();
	rig_break();
	CHECK(!guest->vfu.gpa->n, "memory of a client that left is still mapped");
	CHECK(guest->ctrl.state == CTRL_DISABLED, "state %d after the client left",
	      guest->ctrl.state);
	CHECK(open_files() == files, "%u descriptors, there were %u", open_files(), files);
	client_come();
	say_version();
	CHECK(client >= 0, "the next client is not served");
	client_leave();
	for (int i = 0; i < 2; i++)
		rig_check_memory(i);
	rig_check_innocent(0, 1);
	stop();
	return 0;
}

/* ---- creating and mutating records ------------------------------------------------- */

static size_t record_length(const uint8_t *p, size_t left)
{
	size_t len = sizeof(struct rec_msg);

	if (left < len)
		return 0;
	len += bytes_le(((const struct rec_msg *)p)->len, 2) % BODY_MAX;
	return len <= left ? len : 0;
}

static uint32_t put_version(struct dice *d, uint8_t *p)
{
	static const char *const texts[] = {
		"{}", "{\"capabilities\":{\"max_data_xfer_size\":1048576,\"write_multiple\":true}}",
		"{\"capabilities\":{\"max_data_xfer_size\":4096}}",
		"{\"capabilities\":{\"max_data_xfer_size\":4}}", "{\"capabilities\":[]}", "[1e999]",
	};
	const char *text = texts[dice_below(d, sizeof(texts) / sizeof(texts[0]))];
	struct vfu_version version = { dice_below(d, 8) ? 0 : dice_below(d, 3), 0 };

	memcpy(p, &version, sizeof(version));
	strcpy((char *)p + sizeof(version), text);
	return sizeof(version) + (dice_below(d, 4) ? strlen(text) + 1 : 0);
}

static uint32_t put_dma(struct dice *d, uint8_t *p, uint16_t cmd)
{
	uint64_t base = 4096ull * dice_below(d, 16), bytes = 4096ull * dice_below(d, 64);
	struct vfu_dma_map map = { sizeof(map), dice_below(d, 4), 0, base, bytes };
	struct vfu_dma_unmap unmap = { sizeof(unmap), dice_below(d, 4) ? 0 : 2, base, bytes };

	if (!dice_below(d, 4))
		map.offset = 4096ull * dice_number(d);
	if (!dice_below(d, 8))
		map.addr = map.size = unmap.addr = -(uint64_t)4096;
	memcpy(p, cmd == VFU_DMA_MAP ? (void *)&map : (void *)&unmap,
	       cmd == VFU_DMA_MAP ? sizeof(map) : sizeof(unmap));
	return cmd == VFU_DMA_MAP ? sizeof(map) : sizeof(unmap);
}

static struct vfu_region_access some_access(struct dice *d, uint32_t count)
{
	struct vfu_region_access a = { .count = count };

	switch (dice_below(d, 6)) {
	case 0:
		a.region = VFU_REGION_CONFIG;
		a.offset = dice_below(d, 2) ? PCI_COMMAND : dice_below(d, 300);
		break;
	case 1:
		a.region = dice_below(d, VFU_NUM_REGIONS + 1);
		a.offset = dice_number(d);
		break;
	case 2:
		a.region = ORNIC_BAR_DM;
		a.offset = dice_below(d, LIMIT_DM) & ~7u;
		break;
	case 3:
		a.offset = FUNC_DB_OFFSET + 4096 * dice_below(d, 4);
		break;
	default:
		a.offset = 4 * dice_below(d, 28);
		break;
	}
	return a;
}

static uint32_t put_access(struct dice *d, uint8_t *p, uint16_t cmd)
{
	uint32_t count = dice_below(d, 6) ? 1u << dice_below(d, 4) : dice_below(d, 2000);
	struct vfu_region_access a = some_access(d, count);
	uint64_t val = dice_number(d);

	if (cmd == VFU_REGION_READ && !dice_below(d, 16))
		a.count = VFU_MAX_XFER - 1 + dice_below(d, 3);
	memcpy(p, &a, sizeof(a));
	if (cmd == VFU_REGION_READ)
		return sizeof(a);
	memset(p + sizeof(a), dice_below(d, 256), count);
	memcpy(p + sizeof(a), &val, sizeof(val));
	return sizeof(a) + count;
}

static uint32_t put_writes(struct dice *d, uint8_t *p)
{
	uint64_t n = dice_below(d, 16);
	struct vfu_write_one one = { 0 };

	for (uint64_t i = 0; i < n; i++) {
		one.to = some_access(d, 1u << dice_below(d, 4));
		one.data[0] = dice_below(d, 256);
		memcpy(p + 8 + i * sizeof(one), &one, sizeof(one));
	}
	if (!dice_below(d, 8))
		n = dice_number(d);
	memcpy(p, &n, sizeof(n));
	return 8 + dice_below(d, 16) * sizeof(one);
}

static uint32_t put_irqs(struct dice *d, uint8_t *p)
{
	struct vfu_set_irqs set = {
		.flags = 1u << dice_below(d, 3) | 8u << dice_below(d, 3),
		.index = dice_below(d, 4) ? VFU_IRQ_MSIX : dice_below(d, 6),
		.start = dice_below(d, 4) ? dice_below(d, 8) : dice_number(d),
		.count = dice_below(d, 4) ? dice_below(d, 5) : dice_number(d),
	};

	memcpy(p, &set, sizeof(set));
	memset(p + sizeof(set), 1, 8);
	return sizeof(set) + dice_below(d, 9);
}

static uint32_t put_payload(struct dice *d, uint8_t *p, uint16_t cmd)
{
	static uint8_t body[BODY_MAX];
	uint32_t len, i = dice_below(d, 12);

	switch (cmd) {
	case VFU_VERSION:
		len = put_version(d, body);
		break;
	case VFU_DMA_MAP:
	case VFU_DMA_UNMAP:
		len = put_dma(d, body, cmd);
		break;
	case VFU_REGION_READ:
	case VFU_REGION_WRITE:
		len = put_access(d, body, cmd);
		break;
	case VFU_REGION_WRITE_MULTI:
		len = put_writes(d, body);
		break;
	case VFU_SET_IRQS:
		len = put_irqs(d, body);
		break;
	default:		/* requests */
		memset(body, 0, 32);
		body[8] = i;
		len = i < 2 ? 8 : i < 6 ? 16 : 32;
		break;
	}
	memcpy(p, body, len);
	return len;
}

static size_t make_record(struct dice *d, uint8_t *p, size_t max)
{
	static const uint8_t cmds[] = {
		VFU_VERSION, VFU_VERSION, VFU_VERSION, VFU_DMA_MAP, VFU_DMA_MAP, VFU_DMA_UNMAP,
		VFU_DEVICE_GET_INFO, VFU_GET_REGION_INFO, VFU_GET_IRQ_INFO, VFU_SET_IRQS,
		VFU_SET_IRQS, VFU_REGION_READ, VFU_REGION_READ, VFU_REGION_WRITE,
		VFU_REGION_WRITE, VFU_REGION_WRITE, VFU_DEVICE_RESET, VFU_REGION_WRITE_MULTI,
		VFU_DEVICE_FEATURE,
	};
	struct rec_msg r = { .how = FIX_SIZE };
	uint32_t len;

	(void)max;
	r.cmd[0] = dice_below(d, 32) ? cmds[dice_below(d, sizeof(cmds))] : dice_below(d, 256);
	if (dice_below(d, 8))
		r.how |= FIX_ARGSZ;
	if (r.cmd[0] == VFU_VERSION || r.cmd[0] >= VFU_REGION_READ || r.cmd[0] == VFU_DMA_UNMAP)
		r.how &= ~FIX_ARGSZ;
	r.how |= dice_below(d, 4) ? 0 : 1u << (2 + dice_below(d, 3));
	if (r.cmd[0] == VFU_DMA_MAP)
		r.nfds = 1;
	else if (r.cmd[0] == VFU_SET_IRQS)
		r.nfds = dice_below(d, 5) | 1 << 3;
	if (!dice_below(d, 16))
		r.nfds = dice_below(d, 32);
	len = put_payload(d, p + sizeof(r), r.cmd[0]);
	r.len[0] = len;
	r.len[1] = len >> 8;
	memcpy(p, &r, sizeof(r));
	return sizeof(r) + len;
}

static size_t change_record(struct dice *d, uint8_t *p, size_t len, size_t max)
{
	const size_t head = sizeof(struct rec_msg);
	uint32_t word = dice_number(d);

	(void)max;
	if (len > head && dice_below(d, 4)) {
		if (dice_below(d, 2) && len - head >= 4)
			memcpy(p + head + dice_below(d, (len - head) / 4) * 4, &word, 4);
		else
			p[head + dice_below(d, len - head)] = dice_below(d, 256);
	} else {
		/* any byte but its length */
		p[dice_below(d, head - 2)] = dice_below(d, 4) ? dice_below(d, 32) : word;
	}
	return len;
}

static const struct record_kind kind = { record_length, make_record, change_record };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	return records_mutate(&kind, data, size, max, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb,
				 uint8_t *out, size_t max, unsigned int seed)
{
	return records_cross(&kind, a, na, b, nb, out, max, seed);
}
