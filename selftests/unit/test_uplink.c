// SPDX-License-Identifier: GPL-2.0
/* net/uplink*.c: frames through every kind of port to the outside, and misbehaving peers. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/folder.h"
#include "lib/lines.h"
#include "lib/netns.h"
#include "log.h"
#include "net/offload.h"
#include "net/uplink_backend.h"
#include "packet/bth.h"
#include "packet/ip.h"
#include "packet/roce.h"
#include "packet/wire.h"
#include "unix_socket.h"

#define PACKETS		64
#define WAIT_NS		10000000000ull
#define FRAME_MAX	9216
#define SHORT_LEN	60
#define FDS		64	/* descriptors of this program have lower numbers */

static const uint8_t device_mac[6] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t peer_mac[6] = { 2, 0, 0, 0, 0, 2 };

/**
 * struct fixture - a switch with a device and one or two uplinks
 * @dir:	sockets are here
 * @path:	of the uplinks' sockets
 * @peer_path:	of their peers'
 * @device:	the device's port
 * @seen:	packets the device got, @kind, @len and first @payload bytes of the last
 * @drains:	deliveries; @most: most packets in one
 * @fds:	descriptors before
 * @busy:	uplinks are opened while the daemon runs
 * @want:	condition that wait_for() waits for; may use @count and @peer
 */
struct fixture {
	struct loop *loop;
	struct packet_pool pool;
	struct net_switch *sw;
	struct switch_port *device;
	struct uplink *up[2];
	char dir[32];
	char path[2][64];
	char peer_path[2][64];
	uint32_t seen;
	uint32_t drains;
	uint32_t most;
	struct packet last;
	uint8_t payload[FRAME_MAX];
	bool (*want)(struct fixture *f);
	uint32_t count;
	const struct peer *peer;
	uint64_t deadline;
	unsigned int fds;
	bool busy;
};

/* Most messages that sendmmsg() sends in a call, of which every other one is interrupted; 0: all */
static unsigned int send_most;

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int n, int flags)
{
	static bool interrupt;

	assert_int_equal(flags, MSG_DONTWAIT);
	interrupt = send_most && !interrupt;
	if (interrupt) {
		errno = EINTR;
		return -1;
	}
	return syscall(SYS_sendmmsg, fd, messages, send_most && n > send_most ? send_most : n,
		       flags);
}

/* Bytes that the next sendmsg() takes; later ones by send() go in steps of 7. 0: no limit */
static size_t stream_most;

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	uint8_t bytes[512];
	size_t len = 0;

	assert_int_equal(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (!stream_most)
		return syscall(SYS_sendmsg, fd, message, flags);
	for (size_t i = 0; i < message->msg_iovlen && len < stream_most; i++) {
		const struct iovec *v = &message->msg_iov[i];
		size_t n = v->iov_len < stream_most - len ? v->iov_len : stream_most - len;

		memcpy(bytes + len, v->iov_base, n);
		len += n;
	}
	return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

/* A call that succeeds may change errno. */
static ssize_t returned(ssize_t n, int stale)
{
	if (n >= 0)
		errno = stale;
	return n;
}

/* What the C library's functions below do wrong; teardown() ends it. */
static struct {
	int send;		/* error of the next send(), 0: none */
	int option;		/* option of AF_PACKET that fails, 0: none */
	int socket;		/* error of each new socket of AF_PACKET, 0: none */
	int socket_of[AF_MAX];	/* the same of another family */
	int watch;		/* error of the next descriptor to be watched, 0: none */
	unsigned int request;	/* ioctl() that fails, and its error, 0: none */
	int ioctl;
	bool hurry;		/* a timer of seconds counts hundredths */
} wrong;

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	assert_int_equal(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (wrong.send) {
		errno = wrong.send;
		wrong.send = 0;
		return -1;
	}
	if (stream_most && len > 7)
		len = 7;
	return returned(syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0), EPIPE);
}

static int no_recv;	/* error of the next recv(), 0: none */
static uint8_t *recv_end;	/* end of the uplink's buffer, which is longer than those of the test */

ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
	if (len > 10 * FRAME_MAX) {
		assert_true(!recv_end || recv_end == (uint8_t *)bytes + len);
		recv_end = (uint8_t *)bytes + len;
	}
	if (!no_recv)
		return returned(syscall(SYS_recvfrom, fd, bytes, len, flags, NULL, NULL), EAGAIN);
	errno = no_recv;
	no_recv = 0;
	return -1;
}

/* Options that were set, in this order; without the right to it, the first kind fails. */
static struct {
	bool record;
	bool unprivileged;
	int option[4];
	unsigned int n;
	unsigned int enlarged;	/* sockets */
	unsigned int packet;	/* options of AF_PACKET, as bits */
} buffers;

/* Replaces the C library's */
int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	const bool force = option == SO_RCVBUFFORCE || option == SO_SNDBUFFORCE;

	if (level == SOL_PACKET)
		buffers.packet |= 1u << option;
	if (level == SOL_PACKET && option == wrong.option) {
		errno = EIO;
		return -1;
	}
	buffers.enlarged += option == SO_RCVBUFFORCE;
	if (!buffers.record)
		return syscall(SYS_setsockopt, fd, level, option, value, len);
	assert_true(buffers.n < 4);
	assert_int_equal(level, SOL_SOCKET);
	assert_int_equal(len, sizeof(int));
	assert_int_equal(*(const int *)value, 4 << 20);
	buffers.option[buffers.n++] = option;
	errno = EPERM;
	return force && buffers.unprivileged ? -1 : 0;
}

int socket(int family, int type, int protocol)
{
	int error = family == AF_PACKET ? wrong.socket : wrong.socket_of[family];

	if (!error)
		return syscall(SYS_socket, family, type, protocol);
	errno = error;
	return -1;
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	assert_true(op != EPOLL_CTL_ADD || fcntl(fd, F_GETFD) >= 0);
	if (op != EPOLL_CTL_ADD || !wrong.watch)
		return syscall(SYS_epoll_ctl, epfd, op, fd, event);
	errno = wrong.watch;
	wrong.watch = 0;
	return -1;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!wrong.ioctl || (unsigned int)request != wrong.request)
		return syscall(SYS_ioctl, fd, request, arg);
	errno = wrong.ioctl;
	return -1;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	struct itimerspec sooner = {
		.it_interval.tv_nsec = new->it_interval.tv_sec * 10000000,
		.it_value.tv_nsec = new->it_value.tv_sec * 10000000,
	};

	assert_int_equal(flags, 0);
	return syscall(SYS_timerfd_settime, fd, flags, wrong.hurry ? &sooner : new, old);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void device_got(void *arg, const struct packet *p)
{
	struct fixture *f = arg;

	if (memcmp(p->smac, peer_mac, 6))	/* a kernel's own */
		return;
	f->seen++;
	f->last = *p;
	assert_true(p->len <= sizeof(f->payload));
	seg_copy_out(f->payload, p->seg, p->nseg, 0, p->len);
}

static const struct switch_port_ops device_ops = { .deliver = device_got };

static int64_t work(void *arg)
{
	struct fixture *f = arg;

	switch_flush(f->sw);
	if (f->want(f) || now() > f->deadline)
		loop_stop(f->loop);
	return 1000000;
}

static void wait_for(struct fixture *f, bool (*want)(struct fixture *f))
{
	f->want = want;
	f->deadline = now() + WAIT_NS;
	assert_int_equal(loop_run(f->loop), 0);
	assert_true(want(f));
}

static bool seen_count(struct fixture *f)
{
	return f->seen >= f->count;
}

static void wait_seen(struct fixture *f, uint32_t count)
{
	f->count = count;
	wait_for(f, seen_count);
	assert_int_equal(f->seen, count);
}

static bool received_count(struct fixture *f)
{
	return uplink_stats(f->up[0])->rx_frames >= f->count;
}

static void wait_received(struct fixture *f, uint32_t count)
{
	f->count = count;
	wait_for(f, received_count);
}

static void drain(void *arg)
{
	struct fixture *f = arg;
	const uint32_t seen = f->seen;

	f->drains++;
	switch_drain(f->sw);
	f->most = f->seen - seen > f->most ? f->seen - seen : f->most;
}

static bool count_turn(struct fixture *f)
{
	f->count++;
	return false;
}

/* Check that nothing keeps the loop busy. */
static void check_idle(struct fixture *f)
{
	f->count = 0;
	f->want = count_turn;
	f->deadline = now() + 100000000;
	assert_int_equal(loop_run(f->loop), 0);
	assert_in_range(f->count, 1, 1000);	/* one per ms, and more often with load */
}

/* Process packets as a turn of the engine does. */
static void turn(struct fixture *f)
{
	switch_drain(f->sw);
	switch_flush(f->sw);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	log_setup(LOG_ERR, false);
	f->fds = descriptors();
	f->loop = loop_new();
	loop_set_work(f->loop, work, f);
	assert_int_equal(packet_pool_init(&f->pool, PACKETS), 0);
	f->sw = switch_new(&f->pool);
	f->device = switch_port_add(f->sw, "device", &device_ops, f);
	assert_int_equal(switch_port_set_mac(f->device, device_mac), 0);
	switch_port_set_up(f->device, true);
	strcpy(f->dir, "/tmp/uplink-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	for (int i = 0; i < 2; i++) {
		snprintf(f->path[i], sizeof(f->path[i]), "%s/%d", f->dir, i);
		snprintf(f->peer_path[i], sizeof(f->peer_path[i]), "%s/peer%d", f->dir, i);
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	lines_drop();
	log_keep(NULL, 0);
	memset(&wrong, 0, sizeof(wrong));
	uplink_close(f->up[0]);
	uplink_close(f->up[1]);
	for (int fd = 0; fd < FDS; fd++)
		assert_int_equal(loop_mod(f->loop, fd, EPOLLIN), -ENOENT);
	assert_int_equal(f->pool.nfree, PACKETS);
	switch_free(f->sw);
	packet_pool_fini(&f->pool);
	loop_free(f->loop);
	for (int i = 0; i < 2; i++) {
		assert_int_not_equal(access(f->path[i], F_OK), 0);
		unlink(f->peer_path[i]);
	}
	assert_int_equal(rmdir(f->dir), 0);
	assert_int_equal(descriptors(), f->fds);
	free(f);
	return 0;
}

static int open_uplink(struct fixture *f, int i, const struct uplink_spec *spec)
{
	const struct uplink_host host = {
		.loop = f->loop, .sw = f->sw, .pool = &f->pool, .drain = drain, .arg = f,
		.busy = f->busy,
	};

	int err = uplink_open(&host, spec, &f->up[i]);

	recv_end = NULL;
	for (int fd = 0; fd < FDS; fd++) {
		if (loop_mod(f->loop, fd, EPOLLIN))
			continue;
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	}
	return err;
}

/* Send a RoCE packet of @len bytes from the device to the peer. */
static struct packet *roce(struct fixture *f, uint8_t *payload, uint32_t len)
{
	struct packet *p = packet_get(&f->pool);

	assert_non_null(p);
	p->kind = PACKET_ROCE;
	memcpy(p->dmac, peer_mac, 6);
	memcpy(p->smac, device_mac, 6);
	ip_v4_gid(p->sgid, (uint8_t[]) { 10, 88, 0, 1 });
	ip_v4_gid(p->dgid, (uint8_t[]) { 10, 88, 0, 2 });
	p->udp_sport = 0xc000;
	p->hop_limit = 64;
	p->pkey = 0xffff;
	p->opcode = BTH_RC_SEND_ONLY;
	p->mtu = 1024;
	p->len = len;
	p->npsn = len > 1024 ? (len + 1023) / 1024 : 1;
	p->seg[0] = (struct seg) { payload, len };
	p->nseg = 1;
	return p;
}

/* Build the frame of a small RoCE packet from the peer to the device. */
static uint32_t roce_bytes(struct fixture *f, uint8_t *bytes)
{
	uint8_t payload[] = "payload";
	struct packet *p = roce(f, payload, sizeof(payload));
	struct roce_frame frame;
	struct roce_cut cut;

	memcpy(p->dmac, device_mac, 6);
	memcpy(p->smac, peer_mac, 6);
	roce_cut(&cut, p);
	assert_true(roce_next(&cut, &frame));
	memcpy(bytes, frame.head, frame.head_len);
	memcpy(bytes + frame.head_len, payload, sizeof(payload));
	memcpy(bytes + frame.head_len + sizeof(payload), frame.tail, frame.tail_len);
	packet_put(&f->pool, p);
	return frame.head_len + sizeof(payload) + frame.tail_len;
}

/* Build an ordinary frame from the peer to @dmac, with @len distinguishable bytes. */
static void plain_bytes(uint8_t *bytes, uint32_t len, const uint8_t *dmac, uint8_t salt)
{
	memcpy(bytes, dmac, 6);
	memcpy(bytes + 6, peer_mac, 6);
	be16_put(bytes + 12, 0x88b5);
	for (uint32_t i = ETH_BYTES; i < len; i++)
		bytes[i] = i * 3 + salt;
}

static void send_plain(struct fixture *f, uint8_t *bytes, uint32_t len)
{
	struct packet *p = packet_get(&f->pool);

	assert_non_null(p);
	p->kind = PACKET_ETHERNET;
	memcpy(p->dmac, bytes, 6);
	memcpy(p->smac, bytes + 6, 6);
	p->len = len;
	p->nseg = 2;
	p->seg[0] = (struct seg) { bytes, ETH_BYTES };
	p->seg[1] = (struct seg) { bytes + ETH_BYTES, len - ETH_BYTES };
	switch_send(f->device, p);
	turn(f);
}

/* The other end of an uplink whose frames are messages: descriptors to write and read. */
struct peer {
	int fd;
	struct sockaddr_storage to;
	socklen_t to_len;
};

static void peer_send(const struct peer *peer, const void *bytes, uint32_t len)
{
	ssize_t n = peer->to_len ? sendto(peer->fd, bytes, len, 0, (struct sockaddr *)&peer->to,
					  peer->to_len) : write(peer->fd, bytes, len);

	assert_int_equal(n, len);
}

/* Get the next frame of the device. */
static ssize_t peer_receive(const struct peer *peer, uint8_t *bytes)
{
	ssize_t n;

	do {
		struct pollfd poll_fd = { .fd = peer->fd, .events = POLLIN };

		assert_int_equal(poll(&poll_fd, 1, 10000), 1);
		n = read(peer->fd, bytes, FRAME_MAX);
	} while (n >= ETH_BYTES && memcmp(bytes + 6, device_mac, 6));
	return n;
}

/* Common behaviour of every kind. */
static void check_both_ways(struct fixture *f, const struct peer *peer, uint32_t longest)
{
	static uint8_t bytes[FRAME_MAX], got[FRAME_MAX], payload[3000];
	uint32_t len = roce_bytes(f, bytes), sent = 60;
	const struct uplink_stats *stats;
	struct packet q;

	assert_true(uplink_is_up(f->up[0]));
	peer_send(peer, bytes, len);
	wait_seen(f, 1);
	assert_int_equal(f->last.kind, PACKET_ROCE);
	assert_true(f->last.outside);
	assert_string_equal(f->payload, "payload");
	plain_bytes(bytes, longest, device_mac, 7);
	peer_send(peer, bytes, longest);
	wait_seen(f, 2);
	assert_int_equal(f->last.kind, PACKET_ETHERNET);
	assert_int_equal(f->last.len, longest);
	assert_memory_equal(f->payload, bytes, longest);

	memset(payload, 0x5a, sizeof(payload));
	switch_send(f->device, roce(f, payload, sizeof(payload)));
	turn(f);
	for (int i = 0; i < 3; i++) {
		ssize_t n = peer_receive(peer, got);

		sent += n;
		memset(&q, 0, sizeof(q));
		assert_int_equal(roce_parse(&q, got, n), ROCE_PACKET);
		assert_int_equal(q.psn, i);
		assert_int_equal(q.len, i < 2 ? 1024 : 952);
	}
	plain_bytes(bytes, 60, peer_mac, 9);
	memcpy(bytes + 6, device_mac, 6);
	send_plain(f, bytes, 60);
	assert_int_equal(peer_receive(peer, got), 60);
	assert_memory_equal(got, bytes, 60);
	stats = uplink_stats(f->up[0]);
	assert_int_equal(stats->tx_frames, 4);
	assert_int_equal(stats->tx_bytes, sent);
	assert_int_equal(stats->tx_drop, 0);
	assert_int_equal(stats->rx_drop + stats->bad_icrc + stats->malformed, 0);
	if (!peer->to_len)	/* an interface: the kernel sends, too */
		return;
	assert_int_equal(stats->rx_frames, 2);
	assert_int_equal(stats->rx_bytes, len + longest);
}

static socklen_t unix_name(struct sockaddr_storage *to, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	strcpy(addr.sun_path, path);
	memcpy(to, &addr, sizeof(addr));
	return sizeof(addr);
}

static struct peer dgram_peer_of(struct fixture *f, int i, bool rxe_flush)
{
	struct uplink_spec spec = { .kind = "dgram", .name = i ? "e" : "d", .local = f->path[i],
				    .remote = f->peer_path[i], .rxe_flush = rxe_flush };
	struct sockaddr_storage own;
	struct peer peer;
	socklen_t len;

	buffers.enlarged = 0;
	assert_int_equal(open_uplink(f, i, &spec), 0);
	assert_int_equal(buffers.enlarged, 1);
	peer.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	peer.to_len = unix_name(&peer.to, f->path[i]);
	len = unix_name(&own, f->peer_path[i]);
	assert_int_equal(bind(peer.fd, (struct sockaddr *)&own, len), 0);
	return peer;
}

static struct peer dgram_peer(struct fixture *f, int i)
{
	return dgram_peer_of(f, i, false);
}

static void test_dgram(void **state)
{
	struct fixture *f = *state;
	struct peer peer = dgram_peer(f, 0);

	check_both_ways(f, &peer, 9018);
	close(peer.fd);
}

/* A port has the settings of its description, and says what it is. */
static void test_settings(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "stream", .name = "s", .text = "stream,path=x",
				    .path = f->path[0], .vlan = 7 };
	const uint64_t clock = 0;
	struct switch_port *port;
	struct timers timers;

	timers_init(&timers);
	switch_set_time(f->sw, &timers, &clock);
	spec.link = (struct egress_param) { .kbps = 1000, .queue = 20000, .kmin = 1, .kmax = 2 };
	assert_int_equal(open_uplink(f, 0, &spec), 0);
	port = switch_port_find(f->sw, "s");
	assert_non_null(port);
	assert_int_equal(switch_port_vlan(port), 7);
	assert_memory_equal(egress_param(switch_port_egress(port)), &spec.link, sizeof(spec.link));
	assert_string_equal(uplink_name(f->up[0]), "s");
	assert_string_equal(uplink_kind(f->up[0]), "stream");
	assert_string_equal(uplink_text(f->up[0]), "stream,path=x");
	assert_true(switch_port_is_up(port));
	assert_false(uplink_is_up(f->up[0]));		/* there is no peer */
	spec = (struct uplink_spec) { .kind = "dgram", .name = "d", .local = f->path[1],
				      .remote = f->peer_path[1] };
	assert_int_equal(open_uplink(f, 1, &spec), 0);
	port = switch_port_find(f->sw, "d");
	assert_null(switch_port_egress(port));
	assert_int_equal(switch_port_vlan(port), 0);
	assert_string_equal(uplink_text(f->up[1]), "dgram");
	assert_true(uplink_is_up(f->up[1]));
	switch_port_set_up(port, false);
	assert_false(uplink_is_up(f->up[1]));
	uplink_close(f->up[0]);
	f->up[0] = NULL;
	timers_fini(&timers);
}

/* The buffers are as large as the system allows. */
static void test_buffers(void **state)
{
	static const int options[2][4] = {
		{ SO_RCVBUFFORCE, SO_SNDBUFFORCE },
		{ SO_RCVBUFFORCE, SO_RCVBUF, SO_SNDBUFFORCE, SO_SNDBUF },
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		memset(&buffers, 0, sizeof(buffers));
		buffers.record = true;
		buffers.unprivileged = i;
		uplink_buffers(0);
		assert_memory_equal(buffers.option, options[i], sizeof(options[i]));
	}
	buffers.record = false;
}

/* Notes on frames on their way out, and their fields */
struct notes {
	uint32_t lost;
	uint32_t len;
	uint32_t psn;
	enum packet_kind kind;
	uint32_t sqpn;
	uint8_t bytes[FRAME_MAX];
};

static void note_lost(void *arg, const struct switch_port *port, enum switch_way way,
		      const struct packet *p, const char *note)
{
	struct notes *n = arg;

	if (!note)
		return;
	assert_string_equal(note, "dropped: rejected by the interface or socket");
	assert_int_equal(way, SWITCH_OUT);
	assert_string_not_equal(switch_port_name(port), "device");
	n->lost++;
	assert_in_range(p->frame.len, ETH_BYTES, sizeof(n->bytes));
	n->len = p->frame.len;
	memcpy(n->bytes, p->frame.ptr, n->len);
	n->psn = p->psn;
	n->kind = p->kind;
	n->sqpn = p->sqpn;
}

/* Without a peer frames are dropped, and the uplink continues. */
static void test_dgram_alone(void **state)
{
	struct fixture *f = *state;
	struct peer peer = dgram_peer(f, 0);
	struct notes notes = { 0 };
	const struct switch_observer o = { note_lost, &notes };
	uint8_t bytes[60], like[200];
	struct packet *p = roce(f, bytes, sizeof(bytes));
	uint32_t len;

	switch_set_observer(f->sw, &o);
	plain_bytes(bytes, sizeof(bytes), peer_mac, 1);
	close(peer.fd);
	send_plain(f, bytes, sizeof(bytes));
	unlink(f->peer_path[0]);
	send_plain(f, bytes, sizeof(bytes));
	assert_int_equal(uplink_stats(f->up[0])->tx_drop, 2);
	assert_int_equal(uplink_stats(f->up[0])->tx_frames, 0);
	assert_int_equal(notes.lost, 2);
	assert_int_equal(notes.len, sizeof(bytes));
	assert_memory_equal(notes.bytes, bytes, sizeof(bytes));
	/* captures see a packet as it was: its queue pair, and no RoCE in an Ethernet frame */
	p->sqpn = 0x11;
	switch_send(f->device, p);
	turn(f);
	assert_int_equal(notes.lost, 3);
	assert_int_equal(notes.kind, PACKET_ROCE);
	assert_int_equal(notes.sqpn, 0x11);
	len = roce_bytes(f, like);
	memcpy(like, peer_mac, 6);
	send_plain(f, like, len);
	assert_int_equal(notes.lost, 4);
	assert_int_equal(notes.kind, PACKET_ETHERNET);
	assert_int_equal(notes.len, len);
	assert_memory_equal(notes.bytes, like, len);
	assert_int_equal(uplink_stats(f->up[0])->tx_drop, 4);
	assert_int_equal(uplink_stats(f->up[0])->tx_bytes, 0);
	switch_set_observer(f->sw, NULL);
}

/* Open a socket of loopback; its address is text. */
static int udp_socket(char *text, size_t size)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr);

	assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	snprintf(text, size, "127.0.0.1:%d", ntohs(addr.sin_port));
	return fd;
}

static struct peer udp_peer_of(struct fixture *f, bool rxe_flush)
{
	char local[32], remote[32];
	struct uplink_spec spec = { .kind = "udp", .name = "u", .local = local, .remote = remote,
				    .rxe_flush = rxe_flush };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct peer peer = { .to_len = sizeof(to) };

	peer.fd = udp_socket(remote, sizeof(remote));
	close(udp_socket(local, sizeof(local)));	/* a port that becomes free, then */
	buffers.enlarged = 0;
	assert_int_equal(open_uplink(f, 0, &spec), 0);
	assert_int_equal(buffers.enlarged, 1);
	to.sin_port = htons(atoi(strchr(local, ':') + 1));
	memcpy(&peer.to, &to, sizeof(to));
	return peer;
}

static struct peer udp_peer(struct fixture *f)
{
	return udp_peer_of(f, false);
}

/* Return true if a frame arrives within that many ms, because a sent frame may take some time. */
static bool peer_has(const struct peer *peer, int ms)
{
	return poll(&(struct pollfd) { .fd = peer->fd, .events = POLLIN }, 1, ms) == 1;
}

/* Check that the next frame is RoCE with that PSN and payload. */
static void expect_roce(const struct peer *peer, uint32_t psn, uint8_t first, uint32_t len)
{
	static uint8_t got[FRAME_MAX];
	struct packet q = {};
	uint8_t byte;

	assert_int_equal(roce_parse(&q, got, peer_receive(peer, got)), ROCE_PACKET);
	assert_int_equal(q.psn, psn);
	assert_int_equal(q.len, len);
	seg_copy_out(&byte, q.seg, q.nseg, 0, 1);
	assert_int_equal(byte, first);
}

/* Send short frames, which are batched; their payload is that of the time of sending. */
static void send_together(struct fixture *f)
{
	struct peer peer = dgram_peer(f, 0);
	uint8_t payload[1024];

	for (int i = 0; i < 5; i++) {
		struct packet *p = roce(f, payload, i < 4 ? 256 : 1);

		p->psn = i;
		memset(payload, i, sizeof(payload));
		switch_send(f->device, p);
		switch_drain(f->sw);
	}
	assert_false(peer_has(&peer, 0));
	memset(payload, 0xee, sizeof(payload));
	switch_flush(f->sw);
	for (int i = 0; i < 5; i++)
		expect_roce(&peer, i, i, i < 4 ? 256 : 1);
	assert_false(peer_has(&peer, 0));
	assert_int_equal(uplink_stats(f->up[0])->tx_frames, 5);
	close(peer.fd);
}

static void test_together(void **state)
{
	send_together(*state);
}

/* The kernel may send a part of a batch, or be interrupted: each frame is sent once. */
static void test_part_of_batch(void **state)
{
	send_most = 2;
	send_together(*state);
	send_most = 0;
}

/* A long frame does not wait, nor do those before it; a full batch does not wait either. */
static void test_not_waiting(void **state)
{
	struct fixture *f = *state;
	struct peer peer = udp_peer(f);
	uint8_t payload[1024] = { 7 };
	uint8_t plain[60];

	switch_send(f->device, roce(f, payload, 100));
	switch_drain(f->sw);
	switch_send(f->device, roce(f, payload, 257));
	switch_drain(f->sw);
	expect_roce(&peer, 0, 7, 100);
	expect_roce(&peer, 0, 7, 257);
	plain_bytes(plain, sizeof(plain), peer_mac, 9);
	memcpy(plain + 6, device_mac, 6);
	for (int i = 0; i < UPLINK_BATCH + 1; i++) {
		struct packet *p = roce(f, plain, sizeof(plain));

		p->kind = PACKET_ETHERNET;
		switch_send(f->device, p);
	}
	switch_drain(f->sw);
	for (int i = 0; i < UPLINK_BATCH; i++) {
		assert_true(peer_has(&peer, 10000));
		assert_int_equal(peer_receive(&peer, payload), sizeof(plain));
	}
	assert_false(peer_has(&peer, 0));
	/* a removed port sends its waiting frames, too */
	uplink_close(f->up[0]);
	f->up[0] = NULL;
	assert_true(peer_has(&peer, 10000));
	close(peer.fd);
}

/* Bytes of a segment: a packet with all its segments is short, so it waits for others. */
#define SEG_BYTES	3

/* Send a packet of @nseg segments. */
static void send_segs(struct fixture *f, enum packet_kind kind, uint8_t opcode, uint8_t *bytes,
		      uint32_t nseg)
{
	struct packet *p = roce(f, bytes, SEG_BYTES * nseg);

	p->kind = kind;
	p->opcode = opcode;
	p->nseg = nseg;
	for (uint32_t i = 0; i < nseg; i++)
		p->seg[i] = (struct seg) { bytes + SEG_BYTES * i, SEG_BYTES };
	switch_send(f->device, p);
	switch_drain(f->sw);
}

/* A frame joins the batch if its pieces fit; otherwise the batch is sent before. */
static void test_many_pieces(void **state)
{
	static const struct {
		enum packet_kind kind;
		uint8_t opcode;
		uint32_t nseg;
		uint32_t pieces;	/* with those of the backend, headers and tail */
	} last[] = {
		{ PACKET_ETHERNET, 0, PACKET_SEGS, PACKET_SEGS + 1 },
		{ PACKET_ROCE, BTH_RC_SEND_ONLY, PACKET_SEGS, PACKET_SEGS + 3 },
		{ PACKET_ROCE, BTH_RC_FLUSH, 0, 2 },
	};
	struct fixture *f = *state;
	struct peer peer = udp_peer_of(f, true);
	const struct uplink_stats *stats = uplink_stats(f->up[0]);
	uint8_t bytes[SEG_BYTES * PACKET_SEGS], got[FRAME_MAX];

	/* the kernel takes no more pieces per call */
	assert_in_range(UPLINK_TX_IOV, 1, sysconf(_SC_IOV_MAX));
	plain_bytes(bytes, sizeof(bytes), peer_mac, 1);
	memcpy(bytes + 6, device_mac, 6);
	for (uint32_t i = 0; i < 2 * sizeof(last) / sizeof(last[0]); i++) {
		const uint32_t excess = i & 1;
		uint32_t left = UPLINK_TX_IOV - last[i / 2].pieces + excess;
		uint32_t nseg[UPLINK_BATCH], n = 0;
		uint64_t sent = stats->tx_frames;

		for (; left; left -= nseg[n++] + 1) {
			nseg[n] = (left < 50 ? left : 50) - 1;
			send_segs(f, PACKET_ETHERNET, 0, bytes, nseg[n]);
		}
		assert_int_equal(stats->tx_frames, sent);
		send_segs(f, last[i / 2].kind, last[i / 2].opcode, bytes, last[i / 2].nseg);
		assert_int_equal(stats->tx_frames - sent, excess * n);
		switch_flush(f->sw);
		assert_int_equal(stats->tx_frames - sent, n + 1);
		for (uint32_t j = 0; j < n; j++) {
			assert_int_equal(peer_receive(&peer, got), SEG_BYTES * nseg[j]);
			assert_memory_equal(got, bytes, SEG_BYTES * nseg[j]);
		}
		assert_true(peer_receive(&peer, got) > 0);
	}
	assert_int_equal(stats->tx_drop, 0);
	close(peer.fd);
}

static void test_udp(void **state)
{
	struct fixture *f = *state;
	struct peer peer = udp_peer(f), other = peer;
	uint8_t bytes[60];
	char name[32];

	other.fd = udp_socket(name, sizeof(name));
	plain_bytes(bytes, sizeof(bytes), device_mac, 3);
	peer_send(&other, bytes, sizeof(bytes));	/* from another station */
	check_both_ways(f, &peer, 9018);
	close(peer.fd);
	close(other.fd);
}

/* Send a short frame, again if it was dropped. Those before it have been delivered or dropped. */
static bool last_came(struct fixture *f)
{
	static uint8_t bytes[SHORT_LEN];

	if (f->last.len == SHORT_LEN)
		return true;
	plain_bytes(bytes, sizeof(bytes), device_mac, 1);
	peer_send(f->peer, bytes, sizeof(bytes));
	f->count++;
	return false;
}

/*
 * Send long frames until the uplink's socket has dropped 100; each is counted once. The kernel may
 * drop others before they reach the socket, which the uplink cannot count.
 */
static void overrun(struct fixture *f, const struct peer *peer, uint32_t len)
{
	const struct uplink_stats *stats;
	static uint8_t bytes[9000];
	const uint64_t deadline = now() + WAIT_NS;

	f->peer = peer;
	f->count = 0;
	plain_bytes(bytes, len, device_mac, 1);
	do {
		peer_send(peer, bytes, len);
		f->count++;
		assert_true(now() < deadline);
		stats = uplink_stats(f->up[0]);
		assert_in_range(stats->rx_drop, 0, f->count);
	} while (stats->rx_drop < 100);
	wait_for(f, last_came);
	stats = uplink_stats(f->up[0]);
	assert_in_range(stats->rx_drop + f->seen, 101, f->count);
	/* the kernel may send some frames by an interface, too */
	assert_in_range(stats->rx_frames, stats->rx_drop + f->seen, stats->rx_drop + f->seen + 50);
}

static void test_udp_overrun(void **state)
{
	struct peer peer = udp_peer(*state);

	overrun(*state, &peer, 9000);
	close(peer.fd);
}

/* A separate network namespace with a tap that has these flags; the test is its other end. */
static int private_tap_with(const char *name, int mtu, int flags)
{
	struct ifreq req = { .ifr_flags = IFF_TAP | IFF_NO_PI | flags };
	int fd, sock;

	netns_enter();
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	strcpy(req.ifr_name, name);
	assert_int_equal(ioctl(fd, TUNSETIFF, &req), 0);
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	req.ifr_mtu = mtu;
	assert_int_equal(ioctl(sock, SIOCSIFMTU, &req), 0);
	req.ifr_flags = IFF_UP;
	assert_int_equal(ioctl(sock, SIOCSIFFLAGS, &req), 0);
	close(sock);
	return fd;
}

static int private_tap(const char *name, int mtu)
{
	return private_tap_with(name, mtu, 0);
}

/* The host's side of a tap that an uplink created. */
static void test_tap(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "tap", .name = "t", .ifname = "fifteen-letters" };
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct peer peer = {};

	netns_enter();
	assert_int_equal(open_uplink(f, 0, &spec), 0);
	addr.sll_ifindex = if_nametoindex(spec.ifname);
	assert_int_not_equal(addr.sll_ifindex, 0);
	peer.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	assert_int_equal(bind(peer.fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	check_both_ways(f, &peer, 1514);
	close(peer.fd);
}

/* A tap cannot be attached if another descriptor has it, or to an interface of another kind. */
static void test_tap_rejected(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "tap", .name = "t", .ifname = "ornictest" };
	int fd = private_tap(spec.ifname, 1500);
	char got[256];

	log_keep(got, sizeof(got));
	assert_int_equal(open_uplink(f, 0, &spec), -EBUSY);
	assert_string_equal(got, "t: cannot open tap ornictest: Device or resource busy; another process uses it");
	spec.ifname = "lo";
	log_keep(got, sizeof(got));
	assert_int_equal(open_uplink(f, 0, &spec), -EINVAL);
	assert_string_equal(got, "t: cannot open tap lo: Invalid argument; an interface of that name is not a tap, or has several queues");
	log_keep(NULL, 0);
	close(fd);
}

static bool counted_malformed(struct fixture *f)
{
	return uplink_stats(f->up[0])->malformed == f->count;
}

/* The longest frame arrives; one byte more is malformed, not cut off. */
static void test_tap_longest(void **state)
{
	static uint8_t bytes[FRAME_MAX + 1];
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "tap", .name = "t", .ifname = "ornictest" };
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct ifreq req = { .ifr_mtu = FRAME_MAX };
	int fd;

	netns_enter();
	assert_int_equal(open_uplink(f, 0, &spec), 0);
	addr.sll_ifindex = if_nametoindex(spec.ifname);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	strcpy(req.ifr_name, spec.ifname);
	assert_int_equal(ioctl(fd, SIOCSIFMTU, &req), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	plain_bytes(bytes, sizeof(bytes), device_mac, 1);
	assert_int_equal(write(fd, bytes, FRAME_MAX), FRAME_MAX);
	wait_seen(f, 1);
	assert_int_equal(f->last.len, FRAME_MAX);
	assert_memory_equal(f->payload, bytes, FRAME_MAX);
	assert_int_equal(write(fd, bytes, FRAME_MAX + 1), FRAME_MAX + 1);
	f->count = 1;
	wait_for(f, counted_malformed);
	assert_int_equal(f->seen, 1);
	close(fd);
}

/* Each step fails: the line says which one, why, and what to do. */
static void test_tap_errors(void **state)
{
	static const struct {
		unsigned int request;
		int error;
		const char *line;
	} cases[] = {
		{ TUNSETIFF, EPERM, "t: cannot open tap ornictest: Operation not permitted; it needs CAP_NET_ADMIN, or a tap made for this user" },
		{ TUNSETIFF, EIO, "t: cannot open tap ornictest: Input/output error" },
		{ TUNSETOFFLOAD, EIO, "t: cannot turn off offloads and filters of tap ornictest: Input/output error" },
		{ TUNSETTXFILTER, EIO, "t: cannot turn off offloads and filters of tap ornictest: Input/output error" },
		{ TUNSETFILTEREBPF, EIO, "t: cannot turn off offloads and filters of tap ornictest: Input/output error" },
		{ SIOCGIFFLAGS, EIO, "t: cannot set tap ornictest up: Input/output error" },
		{ SIOCSIFFLAGS, EPERM, "t: cannot set tap ornictest up: Operation not permitted; set it up as root: ip link set ornictest up" },
		{ 0, EMFILE, "t: cannot set tap ornictest up: Too many open files" },
	};
	struct uplink_spec spec = { .kind = "tap", .name = "t", .ifname = "ornictest" };
	struct fixture *f = *state;
	struct rlimit kept, none;
	char got[256];
	int err;

	netns_enter();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wrong.request = cases[i].request;
		wrong.ioctl = cases[i].request ? cases[i].error : 0;
		wrong.socket_of[AF_INET] = cases[i].request ? 0 : cases[i].error;
		log_keep(got, sizeof(got));
		assert_int_equal(open_uplink(f, 0, &spec), -cases[i].error);
		log_keep(NULL, 0);
		assert_string_equal(got, cases[i].line);
		assert_int_equal(descriptors(), f->fds + 1);	/* the loop's */
	}
	wrong.ioctl = 0;
	wrong.socket_of[AF_INET] = 0;
	getrlimit(RLIMIT_NOFILE, &kept);
	none = (struct rlimit) { 0, kept.rlim_max };
	log_keep(got, sizeof(got));
	setrlimit(RLIMIT_NOFILE, &none);
	err = open_uplink(f, 0, &spec);
	setrlimit(RLIMIT_NOFILE, &kept);
	log_keep(NULL, 0);
	assert_int_equal(err, -EMFILE);
	assert_string_equal(got, "t: cannot open /dev/net/tun: Too many open files");
	assert_int_equal(open_uplink(f, 0, &spec), 0);
}

/* More frames than a batch, before the uplink reads one */
static void test_tap_flood(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "tap", .name = "t", .ifname = "ornictest" };
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	uint8_t bytes[60];
	int fd;

	netns_enter();
	assert_int_equal(open_uplink(f, 0, &spec), 0);
	addr.sll_ifindex = if_nametoindex(spec.ifname);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	plain_bytes(bytes, sizeof(bytes), device_mac, 1);
	for (int i = 0; i < 2 * UPLINK_BATCH; i++)
		assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	wait_seen(f, 2 * UPLINK_BATCH);
	assert_in_range(f->most, 1, UPLINK_BATCH);	/* the kernel may send, too */
	assert_int_equal(uplink_stats(f->up[0])->rx_drop, 0);
	close(fd);
}

static void test_packet(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "packet", .name = "p", .ifname = "ornictest" };
	struct peer peer = { .fd = private_tap(spec.ifname, 9000) };
	static const uint16_t tags[] = { ETHERTYPE_VLAN, ETHERTYPE_SVLAN };
	uint8_t bytes[100];

	buffers.packet = 0;
	buffers.enlarged = 0;
	assert_int_equal(open_uplink(f, 0, &spec), 0);
	assert_int_equal(buffers.enlarged, 1);
	assert_int_equal(buffers.packet, 1 << PACKET_AUXDATA | 1 << PACKET_VNET_HDR |
			 1 << PACKET_IGNORE_OUTGOING | 1 << PACKET_ADD_MEMBERSHIP);
	check_both_ways(f, &peer, 9014);
	/* the kernel removes the tag, and the uplink must restore it */
	for (int i = 0; i < 2; i++) {
		plain_bytes(bytes, sizeof(bytes), device_mac, 5);
		be16_put(bytes + 12, tags[i]);
		be16_put(bytes + 14, 0x6123);
		be16_put(bytes + 16, 0x88b5);
		peer_send(&peer, bytes, sizeof(bytes));
		wait_seen(f, 3 + i);
		assert_int_equal(f->last.len, sizeof(bytes));
		assert_memory_equal(f->payload, bytes, sizeof(bytes));
	}
	close(peer.fd);
}

static void test_packet_overrun(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "packet", .name = "p", .ifname = "ornictest" };
	struct peer peer = { .fd = private_tap(spec.ifname, 9000) };

	assert_int_equal(open_uplink(f, 0, &spec), 0);
	overrun(f, &peer, 9000);
	close(peer.fd);
}

/* The kernel removes the tag of a frame that is too long with it. */
static void test_packet_too_long_tagged(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "packet", .name = "p", .ifname = "ornictest" };
	struct peer peer = { .fd = private_tap(spec.ifname, 9500) };
	static uint8_t bytes[FRAME_MAX + VLAN_BYTES];

	assert_int_equal(open_uplink(f, 0, &spec), 0);
	plain_bytes(bytes, sizeof(bytes), device_mac, 5);
	be16_put(bytes + 12, ETHERTYPE_VLAN);
	be16_put(bytes + 14, 0x6123);
	be16_put(bytes + 16, 0x88b5);
	for (uint32_t len = FRAME_MAX + VLAN_BYTES; len >= FRAME_MAX; len--)
		peer_send(&peer, bytes, len);
	wait_seen(f, 1);
	assert_int_equal(f->last.len, FRAME_MAX);
	assert_memory_equal(f->payload, bytes, FRAME_MAX);
	assert_int_equal(uplink_stats(f->up[0])->malformed, VLAN_BYTES);
	close(peer.fd);
}

/* A frame that the kernel leaves to the card to be cut, with an IP packet of 65535 bytes */
struct long_frame {
	struct virtio_net_hdr todo;
	uint8_t frame[ETH_BYTES + 65535];
} __attribute__((packed));

#define LONG_HEAD	(ETH_BYTES + 20 + 20)
#define LONG_BYTES	(ETH_BYTES + 65535 - LONG_HEAD)		/* of payload */

static void long_frame(struct long_frame *bytes, uint16_t size)
{
	plain_bytes(bytes->frame, sizeof(bytes->frame), device_mac, 1);
	be16_put(bytes->frame + 12, ETHERTYPE_IPV4);
	memcpy(bytes->frame + ETH_BYTES, (uint8_t[]) {
		0x45, 0, 0xff, 0xff, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
		0, 5, 0, 6, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0,
	}, LONG_HEAD - ETH_BYTES);
	bytes->todo = (struct virtio_net_hdr) {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = LONG_HEAD, .gso_size = size, .csum_start = ETH_BYTES + 20,
		.csum_offset = 16,
	};
}

/*
 * Segments of a long frame are delivered in batches. Their number per event is limited, and the
 * rest needs no further frame as a reason to continue.
 */
static void test_packet_longest(void **state)
{
	static const struct {
		uint16_t size;
		uint32_t drains;
	} cuts[] = {
		{ 8000, 1 },
		{ 64, 1024 / UPLINK_BATCH + 1 },	/* the last message has one segment */
	};
	static struct long_frame bytes;
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "packet", .name = "p", .ifname = "ornictest" };
	struct peer peer = { .fd = private_tap_with(spec.ifname, 9000, IFF_VNET_HDR) };

	assert_int_equal(open_uplink(f, 0, &spec), 0);
	for (int i = 0; i < 2; i++) {
		const uint32_t rest = LONG_BYTES % cuts[i].size;

		long_frame(&bytes, cuts[i].size);
		f->seen = 0;
		f->drains = 0;
		peer_send(&peer, &bytes, sizeof(bytes));
		wait_seen(f, LONG_BYTES / cuts[i].size + 1);
		assert_int_equal(f->drains, cuts[i].drains);
		assert_int_equal(f->last.len, LONG_HEAD + rest);
		assert_memory_equal(f->payload + LONG_HEAD,
				    bytes.frame + sizeof(bytes.frame) - rest, rest);
		check_idle(f);
	}
	assert_int_equal(uplink_stats(f->up[0])->rx_drop, 0);
	close(peer.fd);
}

/* Let frame @i be one that cannot be passed on. Return: its bytes that are counted. */
static uint32_t make_malformed(struct long_frame *bytes, uint32_t i)
{
	long_frame(bytes, 8000);
	switch (i) {
	case 0:
		bytes->todo.gso_size = FRAME_MAX;
		return sizeof(bytes->frame);
	case 1:				/* the kernel cannot describe it to the uplink */
		bytes->todo.gso_type = VIRTIO_NET_HDR_GSO_UDP;
		bytes->todo.csum_offset = 6;
		bytes->frame[ETH_BYTES + 9] = IPPROTO_UDP;
		return 0;
	default:			/* to be sent with more bytes than the uplink takes */
		return 65557;	/* an IP packet, Ethernet header, two tags */
	}
}

static bool answered(struct fixture *f)
{
	uint8_t bytes[SHORT_LEN];

	if (f->seen < f->count)
		return false;
	plain_bytes(bytes, sizeof(bytes), peer_mac, 1);
	send_plain(f, bytes, sizeof(bytes));
	return true;
}

/* Malformed frames are counted, and harm neither the frames around them nor an answer to these. */
static void test_packet_malformed(void **state)
{
	static struct {
		struct long_frame begin;
		uint8_t more[100];
	} bytes;
	static struct {
		struct virtio_net_hdr todo;
		uint8_t frame[SHORT_LEN];
	} __attribute__((packed)) good;
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "packet", .name = "p", .ifname = "ornictest" };
	struct peer peer = { .fd = private_tap_with(spec.ifname, 9000, IFF_VNET_HDR) };
	const struct uplink_stats *stats;
	uint64_t want = 0;

	plain_bytes(good.frame, sizeof(good.frame), device_mac, 1);
	assert_int_equal(open_uplink(f, 0, &spec), 0);
	stats = uplink_stats(f->up[0]);
	for (uint32_t i = 0; i < 3; i++) {
		peer_send(&peer, &good, sizeof(good));
		want += make_malformed(&bytes.begin, i) + 2 * sizeof(good.frame);
		peer_send(&peer, &bytes, i == 2 ? sizeof(bytes) : sizeof(bytes.begin));
		f->count = 2 * i + 1;
		wait_for(f, answered);
		peer_send(&peer, &good, sizeof(good));
		wait_seen(f, 2 * i + 2);
		assert_int_equal(stats->malformed, i + 1);
		assert_int_equal(stats->rx_bytes, want);
		assert_int_equal(stats->rx_frames, 3 * (i + 1));
		assert_int_equal(stats->tx_drop, 0);
	}
	close(peer.fd);
}

/* ---- interfaces that go down or are deleted ------------------------------------ */

static void set_up(const char *ifname, bool up)
{
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = { .ifr_flags = up ? IFF_UP : 0 };

	strcpy(req.ifr_name, ifname);
	assert_int_equal(ioctl(sock, SIOCSIFFLAGS, &req), 0);
	close(sock);
}

static void delete_interface(const char *ifname)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg info;
	} del = {
		.head = { .nlmsg_len = sizeof(del), .nlmsg_type = RTM_DELLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.info = { .ifi_index = if_nametoindex(ifname) },
	};
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	assert_int_equal(write(sock, &del, sizeof(del)), sizeof(del));
	assert_true(read(sock, &(uint8_t[512]) {}, 512) > 0);
	close(sock);
	assert_int_equal(if_nametoindex(ifname), 0);
}

static bool is_up(struct fixture *f)
{
	return uplink_is_up(f->up[0]);
}

static bool is_down(struct fixture *f)
{
	return !is_up(f);
}

/* A port whose interface is gone stays, drops what it is to send, and causes no load. */
static void check_gone(struct fixture *f)
{
	const uint64_t drops = uplink_stats(f->up[0])->tx_drop;
	uint8_t bytes[60];

	check_idle(f);
	plain_bytes(bytes, sizeof(bytes), peer_mac, 1);
	send_plain(f, bytes, sizeof(bytes));
	assert_int_equal(uplink_stats(f->up[0])->tx_drop, drops + 1);
	assert_false(uplink_is_up(f->up[0]));
}

#define GONE(name, text)	\
	"ornicd: warning: " name ": its interface was deleted; to attach it again: "	\
	"ornicctl port del " name ", then ornicctl port add " text "\n"

static void test_tap_deleted(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "tap", .name = "t", .ifname = "ornictest" };

	netns_enter();
	assert_int_equal(open_uplink(f, 0, &spec), 0);
	wait_for(f, is_up);
	set_up(spec.ifname, false);
	assert_false(uplink_is_up(f->up[0]));
	check_idle(f);
	set_up(spec.ifname, true);
	assert_true(uplink_is_up(f->up[0]));
	lines_begin();
	delete_interface(spec.ifname);
	assert_false(uplink_is_up(f->up[0]));
	check_gone(f);
	lines_end(GONE("t", "tap"));
}

/* The interface goes down, loses its carrier, and is deleted. */
static void test_packet_deleted(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "packet", .name = "p", .ifname = "ornictest" };
	int tap = private_tap(spec.ifname, 1500);
	uint8_t bytes[60];

	assert_int_equal(open_uplink(f, 0, &spec), 0);
	wait_for(f, is_up);
	lines_begin();
	set_up(spec.ifname, false);
	assert_false(uplink_is_up(f->up[0]));
	check_idle(f);
	lines_end("ornicd: p: its network interface is down\n");
	set_up(spec.ifname, true);
	wait_for(f, is_up);
	assert_int_equal(ioctl(tap, TUNSETCARRIER, &(int) { 0 }), 0);
	wait_for(f, is_down);
	assert_int_equal(ioctl(tap, TUNSETCARRIER, &(int) { 1 }), 0);
	wait_for(f, is_up);
	plain_bytes(bytes, sizeof(bytes), device_mac, 1);
	for (int i = 0; i < 40; i++)
		assert_int_equal(write(tap, bytes, sizeof(bytes)), sizeof(bytes));
	lines_begin();
	close(tap);
	check_gone(f);
	wait_seen(f, 40);	/* they arrived before */
	lines_end(GONE("p", "packet"));
}

/* An interface that is down is deleted without notification; the next frame discovers it. */
static void test_packet_deleted_while_down(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "packet", .name = "p", .ifname = "ornictest" };
	int tap = private_tap(spec.ifname, 1500);
	uint8_t bytes[60];

	assert_int_equal(open_uplink(f, 0, &spec), 0);
	set_up(spec.ifname, false);
	check_idle(f);
	plain_bytes(bytes, sizeof(bytes), peer_mac, 1);
	lines_begin();
	send_plain(f, bytes, sizeof(bytes));
	lines_end("");
	close(tap);
	lines_begin();
	send_plain(f, bytes, sizeof(bytes));
	lines_end(GONE("p", "packet"));
	assert_int_equal(uplink_stats(f->up[0])->tx_drop, 2);
	lines_begin();
	check_gone(f);
	lines_end("");
}

/* Each option of the socket is needed. */
static void test_packet_options(void **state)
{
	static const int options[] = {
		PACKET_AUXDATA, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, PACKET_ADD_MEMBERSHIP,
	};
	const struct uplink_spec lo = { .kind = "packet", .name = "x", .ifname = "lo" };

	netns_enter();
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		wrong.option = options[i];
		assert_int_equal(open_uplink(*state, 1, &lo), -EIO);
	}
}

/* One frame of a message is too long for the interface: the other one arrives. */
static void test_packet_too_long(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "packet", .name = "p", .ifname = "ornictest" };
	struct peer peer = { .fd = private_tap(spec.ifname, 1500) };
	uint8_t payload[4096 + 952] = { [4096] = 5 };
	struct packet *p = roce(f, payload, sizeof(payload));
	struct notes notes = { 0 };
	const struct switch_observer o = { note_lost, &notes };

	assert_int_equal(open_uplink(f, 0, &spec), 0);
	switch_set_observer(f->sw, &o);
	p->mtu = 4096;
	p->npsn = 2;
	switch_send(f->device, p);
	turn(f);
	expect_roce(&peer, 1, 5, 952);
	assert_int_equal(notes.lost, 1);
	assert_int_equal(notes.psn, 0);
	assert_int_equal(notes.len, 14 + 20 + 8 + 12 + 4096 + 4);
	switch_set_observer(f->sw, NULL);
	assert_int_equal(uplink_stats(f->up[0])->tx_frames, 1);
	assert_int_equal(uplink_stats(f->up[0])->tx_drop, 1);
	close(peer.fd);
}

/* ---- incoming frames ------------------------------------------------------- */

/* Notes on rejected frames, one after the other. */
static void note_refusal(void *arg, const struct switch_port *port, enum switch_way way,
			 const struct packet *p, const char *note)
{
	assert_int_equal(way, SWITCH_IN);
	assert_string_equal(switch_port_name(port), "d");
	assert_true(p->frame.len > ETH_BYTES);
	strcat(arg, note);
	strcat(arg, "\n");
}

static void test_bad_frames(void **state)
{
	struct fixture *f = *state;
	struct peer peer = dgram_peer(f, 0);
	static uint8_t longer[2 * FRAME_MAX + 10];
	char notes[128] = "";
	const struct switch_observer o = { note_refusal, notes };
	uint8_t bytes[200];
	uint32_t len = roce_bytes(f, bytes);
	uint64_t received;

	switch_set_observer(f->sw, &o);
	bytes[len - 1] ^= 1;
	peer_send(&peer, bytes, len);
	bytes[len - 1] ^= 1;
	peer_send(&peer, bytes, ETH_BYTES - 1);
	bytes[ETH_BYTES + IPV4_BYTES + UDP_BYTES + 1] |= 1;	/* version of the transport */
	peer_send(&peer, bytes, len);
	wait_received(f, 3);
	assert_int_equal(f->seen, 0);
	assert_int_equal(uplink_stats(f->up[0])->bad_icrc, 1);
	assert_int_equal(uplink_stats(f->up[0])->malformed, 2);
	assert_string_equal(notes, "dropped: bad ICRC\ndropped: malformed\n");
	/* of a longer frame only the bytes count that show that it is too long */
	received = uplink_stats(f->up[0])->rx_bytes;
	peer_send(&peer, longer, sizeof(longer));
	wait_received(f, 4);
	assert_int_equal(uplink_stats(f->up[0])->malformed, 3);
	assert_int_equal(uplink_stats(f->up[0])->rx_bytes - received, FRAME_MAX + 1);
	close(peer.fd);
}

/*
 * A flood is processed in batches; the uplink does not wait for packets that are in use
 * elsewhere.
 */
static void test_no_packets(void **state)
{
	struct fixture *f = *state;
	struct peer peer = dgram_peer(f, 0);
	struct packet *all[PACKETS];
	char notes[128] = "";
	const struct switch_observer o = { note_refusal, notes };
	uint8_t bytes[60];

	switch_set_observer(f->sw, &o);
	plain_bytes(bytes, sizeof(bytes), device_mac, 1);
	for (int i = 0; i < PACKETS; i++)
		all[i] = packet_get(&f->pool);
	peer_send(&peer, bytes, sizeof(bytes));
	wait_received(f, 1);
	assert_int_equal(uplink_stats(f->up[0])->rx_drop, 1);
	assert_int_equal(uplink_stats(f->up[0])->rx_bytes, sizeof(bytes));
	assert_string_equal(notes, "dropped: no packet is free\n");
	switch_set_observer(f->sw, NULL);
	for (int i = 0; i < PACKETS; i++)
		packet_put(&f->pool, all[i]);
	close(peer.fd);
}

/*
 * Frames go from one uplink to the other unchanged, also RoCE that this daemon would not
 * generate.
 */
static void test_transit(void **state)
{
	struct fixture *f = *state;
	struct peer in = dgram_peer(f, 0), out = dgram_peer(f, 1);
	uint8_t bytes[200], got[FRAME_MAX];
	uint32_t len = roce_bytes(f, bytes);

	bytes[0] = 6;				/* an unknown station */
	be16_put(bytes + ETH_BYTES + IPV4_BYTES + 6, 0xabcd);	/* a UDP checksum */
	memcpy(bytes + 6, device_mac, 6);
	bytes[11] = 9;
	peer_send(&in, bytes, len);
	wait_received(f, 1);
	assert_int_equal(poll(&(struct pollfd) { .fd = out.fd, .events = POLLIN }, 1, 10000), 1);
	assert_int_equal(read(out.fd, got, sizeof(got)), len);
	assert_memory_equal(got, bytes, len);
	close(in.fd);
	close(out.fd);
}

/* Return a FLUSH captured from Linux 6.12's Soft-RoCE; fill in bytes that the ICRC excludes. */
static uint32_t rxe_flush_bytes(uint8_t *bytes, const uint8_t *dmac)
{
	static const uint8_t captured[] = {
		0x02, 0x00, 0x00, 0x88, 0x00, 0x01, 0x02, 0x00, 0x00, 0x99, 0x00, 0x01, 0x08, 0x00,
		0x45, 0x00, 0x00, 0x40, 0x99, 0xd7, 0x40, 0x00, 0x40, 0x11, 0x8c, 0x23,
		0x0a, 0x58, 0x00, 0x02, 0x0a, 0x58, 0x00, 0x01,
		0xc0, 0x85, 0x12, 0xb7, 0x00, 0x2c, 0x00, 0x00,
		0x1c, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x07, 0x80, 0x1e, 0x08, 0x25,
		0x00, 0x00, 0x00, 0x01,
		0x00, 0x00, 0x55, 0x62, 0x05, 0xf2, 0x4e, 0x40, 0x00, 0x02, 0x51, 0x05,
		0x00, 0x00, 0x20, 0x00,
		0x86, 0x89, 0xbf, 0xaa,
	};

	memcpy(bytes, captured, sizeof(captured));
	memcpy(bytes, dmac, 6);
	memcpy(bytes + 6, peer_mac, 6);
	return sizeof(captured);
}

/* Soft-RoCE's FLUSH is corrected at this uplink, and at no other. */
static void test_rxe_flush_in(void **state)
{
	struct fixture *f = *state;
	struct peer soft = dgram_peer_of(f, 0, true), other = dgram_peer(f, 1);
	uint8_t bytes[200], right[200];
	uint32_t len = rxe_flush_bytes(bytes, device_mac), received = 3;
	struct packet q = {};

	peer_send(&soft, bytes, len);
	wait_seen(f, 1);
	assert_int_equal(f->last.kind, PACKET_ROCE);
	assert_int_equal(f->last.opcode, BTH_RC_FLUSH);
	assert_int_equal(f->last.psn, 0x1e0825);
	assert_int_equal(f->last.dmalen, 8192);
	memcpy(right, f->last.frame.ptr, len);
	assert_int_equal(roce_parse(&q, right, len), ROCE_PACKET);
	peer_send(&soft, right, len);
	wait_seen(f, 2);
	bytes[60] ^= 1;
	peer_send(&soft, bytes, len);
	bytes[60] ^= 1;
	wait_received(f, 3);
	assert_int_equal(f->seen, 2);
	assert_int_equal(uplink_stats(f->up[0])->bad_icrc, 1);
	peer_send(&other, bytes, len);
	peer_send(&other, right, len);
	wait_seen(f, 3);
	assert_int_equal(uplink_stats(f->up[1])->bad_icrc, 1);
	/* A truncated FLUSH is not corrected, nor one with a changed bit that an ICRC covers. */
	for (uint32_t n = ETH_BYTES; n < len; n++) {
		const uint32_t bth = 42, reserved = bth + 4;

		f->last.kind = PACKET_ETHERNET;
		peer_send(&soft, bytes, n);
		wait_received(f, ++received);
		if (n >= bth && n != reserved) {
			bytes[n] ^= 0x10;
			peer_send(&soft, bytes, len);
			bytes[n] ^= 0x10;
			wait_received(f, ++received);
		}
		assert_int_not_equal(f->last.kind, PACKET_ROCE);
	}
	close(soft.fd);
	close(other.fd);
}

/* A FLUSH to Soft-RoCE gets Soft-RoCE's format; a damaged one stays damaged. */
static void test_rxe_flush_out(void **state)
{
	struct fixture *f = *state;
	struct peer soft = dgram_peer_of(f, 0, true), other = dgram_peer_of(f, 1, true);
	static const uint8_t nobody[6] = { 2, 0, 0, 0, 0, 0x77 };
	uint8_t bytes[200], got[FRAME_MAX], payload[200] = { 5 };
	uint32_t len = rxe_flush_bytes(bytes, nobody);
	struct packet *p;

	peer_send(&soft, bytes, len);
	wait_received(f, 1);
	assert_int_equal(read(other.fd, got, sizeof(got)), len);
	assert_memory_equal(got, bytes, len);

	p = roce(f, bytes, 0);
	p->opcode = BTH_RC_FLUSH;
	switch_send(f->device, p);
	switch_send(f->device, roce(f, payload, sizeof(payload)));	/* in the same batch */
	turn(f);
	len = peer_receive(&soft, bytes);
	expect_roce(&soft, 0, 5, sizeof(payload));
	assert_int_equal(roce_parse(&f->last, bytes, len), ROCE_BAD_ICRC);
	memcpy(bytes, device_mac, 6);
	memcpy(bytes + 6, peer_mac, 6);
	peer_send(&soft, bytes, len);
	wait_seen(f, 1);
	assert_int_equal(f->last.opcode, BTH_RC_FLUSH);

	p = roce(f, bytes, 0);
	p->kind = PACKET_BAD_ICRC;
	p->opcode = BTH_RC_FLUSH;
	memcpy(bytes, peer_mac, 6);
	memcpy(bytes + 6, device_mac, 6);
	bytes[60] ^= 1;
	p->frame = (struct seg) { bytes, len };
	switch_send(f->device, p);
	turn(f);
	assert_int_equal(peer_receive(&soft, got), len);
	assert_memory_equal(got, bytes, len);
	close(soft.fd);
	close(other.fd);
}

/* ---- streams --------------------------------------------------------------- */

static int stream_peer(struct fixture *f)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage to;
	socklen_t len = unix_name(&to, f->path[0]);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, len), 0);
	return fd;
}

static int open_stream(struct fixture *f)
{
	struct uplink_spec spec = { .kind = "stream", .name = "s", .path = f->path[0] };

	assert_int_equal(open_uplink(f, 0, &spec), 0);
	return stream_peer(f);
}

static uint32_t stream_bytes(uint8_t *at, uint32_t len, uint8_t salt)
{
	be32_put(at, len);
	plain_bytes(at + 4, len, device_mac, salt);
	return len + 4;
}

static void read_all(int fd, uint8_t *to, uint32_t len)
{
	while (len) {
		ssize_t n = read(fd, to, len);

		assert_true(n > 0);
		to += n;
		len -= n;
	}
}

/* Frames in pieces of every size, more than a batch at once: all arrive in order. */
static void test_stream_in(void **state)
{
	static uint8_t bytes[200 * 300];
	struct fixture *f = *state;
	int fd = open_stream(f);
	uint32_t len = 0, part;

	for (int i = 0; i < 100; i++)
		len += stream_bytes(bytes + len, 60 + i, i);
	assert_int_equal(write(fd, bytes, len), len);
	wait_seen(f, 100);
	assert_int_equal(f->last.len, 159);
	assert_int_equal(f->payload[100], (uint8_t)(100 * 3 + 99));
	for (uint32_t at = 0, i = 1; at < 64; at += part, i++) {
		part = i % 7 + 1;
		if (part > 64 - at)
			part = 64 - at;
		assert_int_equal(write(fd, bytes + at, part), part);
		wait_seen(f, 100 + (at + part == 64));
	}
	/* a frame and the beginning of the next one, which is longer */
	len = stream_bytes(bytes, 60, 1);
	len += stream_bytes(bytes + len, 200, 2);
	assert_int_equal(write(fd, bytes, 100), 100);
	wait_seen(f, 102);
	assert_int_equal(write(fd, bytes + 100, len - 100), len - 100);
	wait_seen(f, 103);
	assert_int_equal(f->last.len, 200);
	assert_memory_equal(f->payload, bytes + 68, 200);
	len = stream_bytes(bytes, FRAME_MAX, 3);
	assert_int_equal(write(fd, bytes, len), len);
	wait_seen(f, 104);
	assert_int_equal(f->last.len, FRAME_MAX);
	assert_memory_equal(f->payload, bytes + 4, FRAME_MAX);
	close(fd);
}

static void test_stream_out(void **state)
{
	static uint8_t payload[3000], bytes[FRAME_MAX];
	struct fixture *f = *state;
	int fd = open_stream(f);
	struct packet q;

	stream_bytes(bytes, 60, 1);
	assert_int_equal(write(fd, bytes, 64), 64);
	wait_seen(f, 1);
	switch_send(f->device, roce(f, payload, sizeof(payload)));
	turn(f);
	for (int i = 0; i < 3; i++) {
		read_all(fd, bytes, 4);
		read_all(fd, bytes + 4, be32_get(bytes));
		memset(&q, 0, sizeof(q));
		assert_int_equal(roce_parse(&q, bytes + 4, be32_get(bytes)), ROCE_PACKET);
		assert_int_equal(q.psn, i);
	}
	close(fd);
}

/* The loop looks at events between two turns. */
static bool second_turn(struct fixture *f)
{
	return f->count++;
}

/* Read while the uplink sends the rest of a frame. */
static void read_while_running(struct fixture *f, int fd, uint8_t *to, uint32_t len)
{
	while (len) {
		ssize_t n = recv(fd, to, len, MSG_DONTWAIT);

		assert_int_not_equal(n, 0);
		if (n > 0) {
			to += n;
			len -= n;
			continue;
		}
		f->count = 0;
		f->want = second_turn;
		f->deadline = now() + WAIT_NS;
		assert_int_equal(loop_run(f->loop), 0);
	}
}

/* The socket takes any part of a batch: a begun frame arrives whole, later ones are lost. */
static void test_stream_part(void **state)
{
	static const uint32_t len[] = { 60, 61, 62 };
	uint8_t bytes[3][64], got[64];
	struct fixture *f = *state;
	int fd = open_stream(f);

	stream_bytes(got, 60, 1);
	buffers.enlarged = 0;
	assert_int_equal(write(fd, got, 64), 64);
	wait_seen(f, 1);
	assert_int_equal(buffers.enlarged, 1);
	/* not 64: without a rest the third frame would be tried again */
	for (size_t most = 1; most <= 64 + 65 + 66; most += most == 63 ? 2 : 1) {
		const struct uplink_stats before = *uplink_stats(f->up[0]), *stats;
		const uint32_t n = most <= 64 ? 1 : most <= 64 + 65 ? 2 : 3;

		for (int i = 0; i < 3; i++) {
			struct packet *p = roce(f, bytes[i], len[i]);

			p->kind = PACKET_ETHERNET;
			plain_bytes(bytes[i], len[i], peer_mac, most + 9 * i);
			switch_send(f->device, p);
		}
		stream_most = most;
		wrong.send = EAGAIN;
		turn(f);
		stats = uplink_stats(f->up[0]);
		assert_int_equal(stats->tx_frames - before.tx_frames, n);
		assert_int_equal(stats->tx_drop - before.tx_drop, 3 - n);
		for (uint32_t i = 0; i < n; i++) {
			read_while_running(f, fd, got, 4);
			assert_int_equal(be32_get(got), len[i]);
			read_while_running(f, fd, got, len[i]);
			assert_memory_equal(got, bytes[i], len[i]);
		}
		stream_most = 0;
		wrong.send = 0;
		assert_int_equal(recv(fd, got, 1, MSG_DONTWAIT), -1);
	}
	close(fd);
}

/* A frame that is too long is lost, but none that waits before or behind it. */
static void test_stream_too_long(void **state)
{
	static const uint32_t lens[] = { 60, 61, FRAME_MAX + 1, 62, FRAME_MAX, FRAME_MAX + 1, 63 };
	static uint8_t bytes[FRAME_MAX + 1], got[FRAME_MAX];
	static struct notes notes;
	const struct switch_observer o = { note_lost, &notes };
	struct fixture *f = *state;
	int fd = open_stream(f);

	stream_bytes(bytes, 60, 1);
	assert_int_equal(write(fd, bytes, 64), 64);
	wait_seen(f, 1);
	switch_set_observer(f->sw, &o);
	plain_bytes(bytes, sizeof(bytes), peer_mac, 1);
	for (uint32_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct packet *p = roce(f, bytes, lens[i]);

		p->kind = PACKET_ETHERNET;
		if (i < 4) {
			p->nseg = 2;
			p->seg[0].len = ETH_BYTES;
			p->seg[1] = (struct seg) { bytes + ETH_BYTES, lens[i] - ETH_BYTES };
		}
		switch_send(f->device, p);
	}
	turn(f);
	switch_set_observer(f->sw, NULL);
	assert_int_equal(uplink_stats(f->up[0])->tx_frames, 5);
	assert_int_equal(uplink_stats(f->up[0])->tx_drop, 2);
	/* captures see as much as a frame may have */
	assert_int_equal(notes.lost, 2);
	assert_int_equal(notes.len, FRAME_MAX);
	assert_memory_equal(notes.bytes, bytes, FRAME_MAX);
	for (uint32_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		if (lens[i] > FRAME_MAX)
			continue;
		read_all(fd, got, 4);
		assert_int_equal(be32_get(got), lens[i]);
		read_all(fd, got, lens[i]);
		assert_memory_equal(got, bytes, lens[i]);
	}
	close(fd);
}

/* Send packets of @n frames to a peer that does not read, until a frame is dropped. */
static void fill_stream(struct fixture *f, uint32_t mtu, uint32_t n)
{
	static uint8_t payload[PACKET_MAX_PAYLOAD];
	uint64_t drops = uplink_stats(f->up[0])->tx_drop;
	uint32_t psn = 0;

	for (int i = 0; i < 2000 && uplink_stats(f->up[0])->tx_drop == drops; i++) {
		struct packet *p = roce(f, payload, n * mtu);

		p->mtu = mtu;
		p->npsn = n;
		p->psn = psn;
		psn += n;
		switch_send(f->device, p);
		turn(f);
	}
	assert_int_not_equal(uplink_stats(f->up[0])->tx_drop, drops);
}

/* A peer that does not read loses frames; all frames that it reads later are whole. */
static void test_stream_full(void **state)
{
	static uint8_t bytes[FRAME_MAX];
	struct fixture *f = *state;
	int fd = open_stream(f);
	uint32_t got = 0;
	struct packet q;

	stream_bytes(bytes, 60, 1);
	assert_int_equal(write(fd, bytes, 64), 64);
	wait_seen(f, 1);
	fill_stream(f, 1024, 4);
	while (got < uplink_stats(f->up[0])->tx_frames) {
		read_while_running(f, fd, bytes, 4);
		assert_in_range(be32_get(bytes), 60, FRAME_MAX - 4);
		read_while_running(f, fd, bytes + 4, be32_get(bytes));
		memset(&q, 0, sizeof(q));
		assert_int_equal(roce_parse(&q, bytes + 4, be32_get(bytes)), ROCE_PACKET);
		assert_int_equal(q.psn, got);
		got++;
	}
	close(fd);
}

/*
 * A peer that ends its direction in the middle of a frame causes no load, and may still send. The
 * socket takes half of a packet after the peer has read about as much.
 */
static void test_stream_half_closed(void **state)
{
	static uint8_t bytes[PACKET_MAX_PAYLOAD];
	struct fixture *f = *state;
	int fd = open_stream(f);

	stream_bytes(bytes, 60, 1);
	assert_int_equal(write(fd, bytes, 64), 64);
	wait_seen(f, 1);
	fill_stream(f, 4096, sizeof(bytes) / 4096);
	read_all(fd, bytes, sizeof(bytes) / 2);
	fill_stream(f, 4096, sizeof(bytes) / 4096);
	assert_int_equal(shutdown(fd, SHUT_RD), 0);
	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	check_idle(f);
	stream_bytes(bytes, 60, 2);
	assert_int_equal(write(fd, bytes, 64), 64);
	wait_seen(f, 2);
	close(fd);
}

static bool peer_gone(struct fixture *f)
{
	char c;

	return recv(f->count, &c, 1, MSG_DONTWAIT) == 0;
}

/* An invalid frame length ends the connection, not the port; one peer at a time. */
static void test_stream_nonsense(void **state)
{
	struct fixture *f = *state;
	static const uint32_t lengths[] = { 0, 9217, 0xffffffff };
	uint8_t bytes[200];
	int fd = open_stream(f), second;

	for (int i = 0; i < 3; i++) {
		stream_bytes(bytes, 60, 1);
		assert_int_equal(write(fd, bytes, 64), 64);
		f->seen = 0;
		wait_seen(f, 1);
		second = stream_peer(f);
		f->count = second;
		wait_for(f, peer_gone);
		close(second);
		be32_put(bytes, lengths[i]);
		assert_int_equal(write(fd, bytes, 64), 64);
		f->count = fd;
		wait_for(f, peer_gone);
		assert_int_equal(f->seen, 1);
		assert_int_equal(uplink_stats(f->up[0])->malformed, i + 1);
		close(fd);
		fd = stream_peer(f);
	}
	close(fd);
}

/* A frame that the end of the connection cuts off counts as malformed, with the bytes of it. */
static void test_stream_cut_off(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[64];
	int fd = open_stream(f);

	stream_bytes(bytes, 60, 1);
	assert_int_equal(write(fd, bytes, 64), 64);
	assert_int_equal(write(fd, bytes, 63), 63);
	close(fd);
	f->count = 1;
	wait_for(f, counted_malformed);
	assert_int_equal(f->seen, 1);
	assert_int_equal(uplink_stats(f->up[0])->rx_frames, 2);
	assert_int_equal(uplink_stats(f->up[0])->rx_bytes, 60 + 63);
	fd = stream_peer(f);
	assert_int_equal(write(fd, bytes, 64), 64);
	wait_seen(f, 2);
	close(fd);
	f->count = 1;
	wait_for(f, counted_malformed);
}

static bool accepted(struct fixture *f)
{
	return poll(&(struct pollfd) { .fd = f->count, .events = POLLIN }, 1, 0) == 1;
}

/* The log says who came and went, and why. A call that was interrupted is no reason. */
static void test_stream_log(void **state)
{
	static const int errors[] = { 0, EAGAIN, EINTR };
	struct fixture *f = *state;
	uint8_t bytes[64];
	char want[768];
	int fd;

	lines_begin();
	fd = open_stream(f);
	stream_bytes(bytes, 60, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write(fd, bytes, 64), 64);
		no_recv = errors[i];
		wait_seen(f, i + 1);
	}
	assert_int_equal(no_recv, 0);
	f->count = stream_peer(f);
	wait_for(f, peer_gone);
	close(f->count);
	close(fd);
	wait_for(f, is_down);
	fd = stream_peer(f);
	wait_for(f, is_up);
	assert_int_equal(write(fd, bytes, 64), 64);
	no_recv = ECONNRESET;
	wait_for(f, is_down);
	close(fd);
	/* more lines follow than a source may write at once */
	uplink_log(f->up[0])->account.lines = 0;
	fd = stream_peer(f);
	wait_for(f, is_up);
	memset(bytes, 0, 4);
	assert_int_equal(write(fd, bytes, 64), 64);
	wait_for(f, is_down);
	close(fd);
	snprintf(want, sizeof(want), "ornicd: s: peer on %1$s connected\n"
		 "ornicd: warning: s: %1$s: rejected a second peer; disconnect the first\n"
		 "ornicd: s: peer on %1$s disconnected\n"
		 "ornicd: s: peer on %1$s connected\n"
		 "ornicd: s: peer on %1$s disconnected: Connection reset by peer\n"
		 "ornicd: s: peer on %1$s connected\n"
		 "ornicd: s: peer on %1$s disconnected: it sent an illegal frame length\n",
		 f->path[0]);
	lines_end(want);
}

/* A client waits for its server, and reconnects to it. */
static void test_stream_client(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "stream", .name = "s", .path = f->peer_path[0],
				    .client = true };
	int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	struct sockaddr_storage own;
	socklen_t len = unix_name(&own, f->peer_path[0]);
	uint8_t bytes[100];

	assert_int_equal(open_uplink(f, 0, &spec), 0);
	plain_bytes(bytes, 60, peer_mac, 1);
	send_plain(f, bytes, 60);
	assert_int_equal(uplink_stats(f->up[0])->tx_drop, 1);
	assert_int_equal(uplink_stats(f->up[0])->tx_frames, 0);
	assert_int_equal(bind(server, (struct sockaddr *)&own, len), 0);
	assert_int_equal(listen(server, 1), 0);
	for (int i = 0; i < 2; i++) {
		f->count = server;
		wait_for(f, accepted);
		fd = accept(server, NULL, NULL);
		stream_bytes(bytes, 60, 1);
		assert_int_equal(write(fd, bytes, 64), 64);
		wait_seen(f, i + 1);
		close(fd);
	}
	uplink_close(f->up[0]);
	assert_int_equal(open_uplink(f, 0, &spec), 0);
	assert_true(uplink_is_up(f->up[0]));	/* at once */
	close(server);
}

/* The rest of a frame that the last peer did not take is not sent to the next one. */
static void test_stream_rest_forgotten(void **state)
{
	uint8_t bytes[64], got[64];
	struct fixture *f = *state;
	int fd = open_stream(f);

	wait_for(f, is_up);
	plain_bytes(bytes, 60, peer_mac, 1);
	stream_most = 5;
	send_plain(f, bytes, 60);
	stream_most = 0;
	wrong.send = EAGAIN;
	close(fd);
	wait_for(f, is_down);
	assert_int_equal(wrong.send, 0);
	fd = stream_peer(f);
	wait_for(f, is_up);
	plain_bytes(bytes, 60, peer_mac, 2);
	send_plain(f, bytes, 60);
	read_all(fd, got, 64);
	assert_int_equal(be32_get(got), 60);
	assert_memory_equal(got + 4, bytes, 60);
	assert_int_equal(uplink_stats(f->up[0])->tx_frames, 2);
	assert_int_equal(uplink_stats(f->up[0])->tx_drop, 0);
	close(fd);
}

/* A peer that reads no more does not get the rest of a frame: the next frame is sent at once. */
static void test_stream_rest_discarded(void **state)
{
	static const int errors[] = { EPIPE, ECONNRESET };
	uint8_t bytes[64], got[5 + 64];
	struct fixture *f = *state;
	int fd = open_stream(f);

	wait_for(f, is_up);
	plain_bytes(bytes, 60, peer_mac, 1);
	for (int i = 0; i < 2; i++) {
		stream_most = 5;
		send_plain(f, bytes, 60);
		stream_most = 0;
		wrong.send = errors[i];
		f->count = 0;
		wait_for(f, second_turn);
		assert_int_equal(wrong.send, 0);
		check_idle(f);
		send_plain(f, bytes, 60);
		read_all(fd, got, 5 + 64);
		assert_memory_equal(got + 5 + 4, bytes, 60);
		assert_int_equal(recv(fd, got, 1, MSG_DONTWAIT), -1);
	}
	assert_int_equal(uplink_stats(f->up[0])->tx_frames, 4);
	close(fd);
}

/* A peer that cannot be watched is disconnected; the next one is welcome. */
static void test_stream_not_watched(void **state)
{
	struct fixture *f = *state;
	int fd = open_stream(f);

	wrong.watch = ENOSPC;
	f->count = fd;
	wait_for(f, peer_gone);
	assert_int_equal(wrong.watch, 0);
	assert_false(uplink_is_up(f->up[0]));
	close(fd);
	fd = stream_peer(f);
	wait_for(f, is_up);
	close(fd);
}

/* A client that gets no socket, or cannot watch it, tries again every second until it has one. */
static void test_stream_client_errors(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec = { .kind = "stream", .name = "s", .path = f->peer_path[0],
				    .client = true };
	int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage own;
	socklen_t len = unix_name(&own, f->peer_path[0]);

	wrong.hurry = true;
	assert_int_equal(open_uplink(f, 0, &spec), 0);
	assert_int_equal(bind(server, (struct sockaddr *)&own, len), 0);
	assert_int_equal(listen(server, 1), 0);
	wrong.socket_of[AF_UNIX] = EMFILE;
	check_idle(f);
	assert_false(uplink_is_up(f->up[0]));
	wrong.socket_of[AF_UNIX] = 0;
	wrong.watch = ENOSPC;
	wait_for(f, is_up);
	assert_int_equal(wrong.watch, 0);
	check_idle(f);
	assert_int_equal(poll(&(struct pollfd) { .fd = server, .events = POLLIN }, 1, 0), 1);
	close(accept(server, NULL, NULL));
	wrong.hurry = false;
	close(server);
}

/* ---- rejected configurations ----------------------------------------------- */

/* No socket can be watched: nothing is left of the port, see teardown(). */
static void test_not_watched(void **state)
{
	struct fixture *f = *state;
	char stream[128];
	const struct {
		struct uplink_spec spec;
		const char *text;
	} cases[] = {
		{ { .kind = "tap", .name = "x", .ifname = "ornictest" },
		  "x: cannot wait for frames of tap ornictest: No space left on device" },
		{ { .kind = "packet", .name = "x", .ifname = "lo" },
		  "x: cannot use lo: No space left on device" },
		{ { .kind = "stream", .name = "x", .path = f->path[0] }, stream },
		{ { .kind = "stream", .name = "x", .path = f->path[0], .client = true }, stream },
		{ { .kind = "dgram", .name = "x", .local = f->path[0], .remote = f->peer_path[0] },
		  "x: cannot wait for frames of its socket: No space left on device" },
		{ { .kind = "udp", .name = "x", .local = "127.0.0.1:65535",
		    .remote = "[127.0.0.1]:1" },
		  "x: cannot wait for frames of its socket: No space left on device" },
	};

	netns_enter();
	set_up("lo", true);
	snprintf(stream, sizeof(stream), "x: cannot wait for %s: No space left on device",
		 f->path[0]);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char got[256];

		wrong.watch = ENOSPC;
		log_keep(got, sizeof(got));
		assert_int_equal(open_uplink(f, 0, &cases[i].spec), -ENOSPC);
		log_keep(NULL, 0);
		assert_string_equal(got, cases[i].text);
		assert_int_not_equal(access(f->path[0], F_OK), 0);
		assert_int_equal(descriptors(), f->fds + 1);	/* the loop's */
		assert_null(switch_port_find(f->sw, "x"));
	}
}

#define UDP(from, to)	.kind = "udp", .name = "x", .local = (from), .remote = (to)
#define NO_PORT		": its port is not a number from 1 to 65535"

static void test_refusals(void **state)
{
	static char long_path[200], long_address[257];
	const struct {
		struct uplink_spec spec;
		int no_socket;
		const char *text;
	} said[] = {
		{ { .kind = "udp", .name = "x", .local = long_address, .remote = "127.0.0.1:9" }, 0,
		  "address aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa... is too long" },
		{ { .kind = "udp", .name = "x", .local = ":9", .remote = "127.0.0.1:9" }, 0,
		  "address :9 has no host; use 0.0.0.0 or [::] for any of this host" },
		{ { .kind = "udp", .name = "x", .local = "127.0.0.1:0", .remote = "127.0.0.1:9" }, 0,
		  "address 127.0.0.1:0: its port is not a number from 1 to 65535" },
		{ { .kind = "udp", .name = "x", .local = "127.0.0.1", .remote = "127.0.0.1:9" }, 0,
		  "address 127.0.0.1 is not of the form HOST:PORT or [HOST]:PORT" },
		{ { .kind = "udp", .name = "x", .local = "127.0.0.1:1", .remote = "[::1]:9" }, 0,
		  "address [::1]:9: Address family for hostname not supported" },
		{ { UDP("127.0.0.1:65536", "127.0.0.1:9") }, 0, "address 127.0.0.1:65536" NO_PORT },
		{ { UDP("127.0.0.1:1x", "127.0.0.1:9") }, 0, "address 127.0.0.1:1x" NO_PORT },
		{ { UDP("127.0.0.1:+1", "127.0.0.1:9") }, 0, "address 127.0.0.1:+1" NO_PORT },
		{ { UDP("[]:1", "127.0.0.1:9") }, 0,
		  "address []:1 has no host; use 0.0.0.0 or [::] for any of this host" },
		{ { UDP("127.0.0.1:", "127.0.0.1:9") }, 0,
		  "address 127.0.0.1: is not of the form HOST:PORT or [HOST]:PORT" },
		{ { UDP("[127.0.0.1:1", "127.0.0.1:9") }, 0,
		  "address [127.0.0.1:1: Name or service not known; use a numeric address while the daemon runs" },
		{ { UDP("127.0.0.1:1", "localhost:9") }, 0,
		  "address localhost:9: Name or service not known; use a numeric address while the daemon runs" },
		{ { UDP("192.0.2.1:9", "127.0.0.1:9") }, 0,
		  "x: cannot use 192.0.2.1:9 to 127.0.0.1:9: Cannot assign requested address" },
		{ { .kind = "tap", .name = "x", .ifname = "sixteen-letters-" }, 0,
		  "x: interface name sixteen-letters- is longer than 15 characters" },
		{ { .kind = "packet", .name = "x", .ifname = "lo" }, EPERM,
		  "x: cannot use lo: Operation not permitted; it needs CAP_NET_RAW" },
		{ { .kind = "packet", .name = "x", .ifname = "lo" }, EMFILE,
		  "x: cannot use lo: Too many open files" },
		{ { .kind = "tap", .name = "x", .ifname = "a-name-longer-than-15" }, 0,
		  "x: interface name a-name-longer-than-15 is longer than 15 characters" },
		{ { .kind = "packet", .name = "x", .ifname = "nosuchif" }, 0,
		  "x: there is no network interface nosuchif" },
		{ { .kind = "nonsense", .name = "x" }, 0, "x: unknown kind of port: nonsense" },
	};
	struct fixture *f = *state;
	const struct uplink_spec specs[] = {
		{ .kind = "packet", .name = "x", .ifname = "nosuchif" },
		{ .kind = "tap", .name = "x", .ifname = "a-name-longer-than-15" },
		{ .kind = "stream", .name = "x", .path = long_path },
		{ .kind = "stream", .name = "x", .path = "/nosuchdir/socket" },
		{ .kind = "dgram", .name = "x", .local = long_path, .remote = "/tmp/x" },
		{ .kind = "udp", .name = "x", .local = "127.0.0.1", .remote = "127.0.0.1:9" },
		{ .kind = "udp", .name = "x", .local = "127.0.0.1:0", .remote = "nonsense:x" },
		{ .kind = "udp", .name = "x", .local = "127.0.0.1:0", .remote = "[::1]:9" },
		{ .kind = "udp", .name = "x", .local = "192.0.2.1:9", .remote = "127.0.0.1:9" },
	};
	struct peer peer = dgram_peer(f, 0);
	const struct uplink_spec taken = { .kind = "dgram", .name = "y", .local = f->path[0],
					   .remote = f->peer_path[0] };

	memset(long_path, 'a', sizeof(long_path) - 1);
	memset(long_address, 'a', sizeof(long_address) - 1);
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		char got[256];

		wrong.socket = said[i].no_socket;
		f->busy = strstr(said[i].text, "while the daemon runs");
		log_keep(got, sizeof(got));
		assert_true(open_uplink(f, 1, &said[i].spec) < 0);
		log_keep(NULL, 0);
		assert_string_equal(got, said[i].text);
	}
	wrong.socket = 0;
	f->busy = false;
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		assert_true(open_uplink(f, 1, &specs[i]) < 0);
	assert_int_equal(open_uplink(f, 1, &taken), -EADDRINUSE);
	check_both_ways(f, &peer, 100);
	close(peer.fd);
}

/* The first UNIX socket of a process keeps a spare descriptor. */
static int keep_spare(void **state)
{
	char path[] = "/tmp/uplink-spare-XXXXXX";
	struct sockaddr_un addr;
	int fd;

	(void)state;
	close(mkstemp(path));
	unlink(path);
	assert_int_equal(unix_address(&addr, path), 0);
	fd = unix_bind(&addr, SOCK_DGRAM, NULL);
	assert_true(fd >= 0);
	close(fd);
	return unlink(path);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_dgram),
		TEST(test_settings),
		TEST(test_dgram_alone),
		TEST(test_together),
		TEST(test_part_of_batch),
		TEST(test_not_waiting),
		TEST(test_many_pieces),
		TEST(test_udp),
		TEST(test_udp_overrun),
		TEST(test_tap),
		TEST(test_tap_rejected),
		TEST(test_tap_errors),
		TEST(test_tap_longest),
		TEST(test_tap_flood),
		TEST(test_tap_deleted),
		TEST(test_packet),
		TEST(test_packet_overrun),
		TEST(test_packet_longest),
		TEST(test_packet_malformed),
		TEST(test_packet_deleted),
		TEST(test_packet_deleted_while_down),
		TEST(test_packet_options),
		TEST(test_packet_too_long),
		TEST(test_packet_too_long_tagged),
		TEST(test_bad_frames),
		TEST(test_no_packets),
		TEST(test_transit),
		TEST(test_rxe_flush_in),
		TEST(test_rxe_flush_out),
		TEST(test_stream_in),
		TEST(test_stream_out),
		TEST(test_stream_part),
		TEST(test_stream_too_long),
		TEST(test_stream_full),
		TEST(test_stream_half_closed),
		TEST(test_stream_nonsense),
		TEST(test_stream_cut_off),
		TEST(test_stream_log),
		TEST(test_stream_client),
		TEST(test_stream_rest_forgotten),
		TEST(test_stream_rest_discarded),
		TEST(test_stream_not_watched),
		TEST(test_stream_client_errors),
		TEST(test_buffers),
		TEST(test_not_watched),
		TEST(test_refusals),
	};

	return cmocka_run_group_tests(tests, keep_spare, NULL);
}
