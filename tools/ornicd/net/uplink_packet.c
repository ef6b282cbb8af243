// SPDX-License-Identifier: GPL-2.0
/*
 * Uplink "packet": an existing network interface, a veth or a real one, by AF_PACKET.
 *
 * Frames that the host's network stack sends to the interface or its veth peer come as for a
 * network card: unsegmented and without checksums. Frames from a wire may have been merged (GRO).
 * A struct virtio_net_hdr before each frame describes the work left to do, which offload.h does.
 * Without it guests got wrong checksums and lost frames above 9216 bytes. Frames to the kernel
 * are complete.
 */
#include "uplink_socket.h"

#include "offload.h"
#include "../log.h"
#include "../packet/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes before the frame in each receive buffer, to restore a VLAN tag */
#define HEADROOM	VLAN_BYTES

/* Most frames per event, because a batch of the kernel can have more than 100,000 segments */
#define TURN_FRAMES	256

/**
 * struct packet_socket - a socket on an interface
 * @fd:		the socket
 * @index:	index of the interface
 * @gone:	the interface was deleted
 * @pending:	frames passed to uplink_input() since uplink_input_done()
 * @n:		number of received messages
 * @next:	index of the first message that is not completely passed on
 * @busy:	messages are left: get another event even if no frame arrives
 * @cutting:	message @next is being segmented, with @offload
 * @tagged:	message @next had a VLAN tag, which is in @tag
 * @tag:	EtherType and TCI
 * @offload:	state of the segmentation
 * @tx:		messages to send
 * @rx:		messages received
 * @rx_iov:	pieces of @rx: @rx_todo and @rx_buf
 * @rx_control:	auxiliary data of the kernel: VLAN tags
 * @rx_todo:	work that the kernel left to do
 * @rx_buf:	frames; most are short, and untouched pages of the buffers take no memory
 * @cut:	segments, indexed by @pending
 */
struct packet_socket {
	int fd;
	int index;
	bool gone;
	uint32_t pending;
	uint32_t n;
	uint32_t next;
	bool busy;
	bool cutting;
	bool tagged;
	uint8_t tag[VLAN_BYTES];
	struct offload offload;
	struct mmsghdr tx[UPLINK_BATCH];
	struct mmsghdr rx[UPLINK_BATCH];
	struct iovec rx_iov[UPLINK_BATCH][2];
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} rx_control[UPLINK_BATCH];
	struct virtio_net_hdr rx_todo[UPLINK_BATCH];
	uint8_t rx_buf[UPLINK_BATCH][HEADROOM + OFFLOAD_MAX_BYTES];
	uint8_t cut[UPLINK_BATCH][HEADROOM + UPLINK_FRAME_BYTES];
};

/* ---- the interface ------------------------------------------------------------- */

/*
 * Return true if the interface was deleted. Linux (seen with 6.18) then detaches the socket and
 * reports ENETDOWN, or nothing at all, so compare the index that the socket is bound to.
 */
static bool is_gone(struct uplink *u)
{
	struct packet_socket *s = uplink_private(u);
	struct sockaddr_ll addr = {};
	socklen_t len = sizeof(addr);

	if (s->gone || getsockname(s->fd, (struct sockaddr *)&addr, &len))
		return s->gone;
	s->gone = addr.sll_ifindex != s->index;
	if (s->gone)
		uplink_gone(u);
	return s->gone;
}

static bool packet_is_up(struct uplink *u)
{
	const struct packet_socket *s = uplink_private(u);
	struct ifreq req = { .ifr_ifindex = s->index };
	const int both = IFF_UP | IFF_RUNNING;

	return !is_gone(u) && !ioctl(s->fd, SIOCGIFNAME, &req) &&
	       !ioctl(s->fd, SIOCGIFFLAGS, &req) && (req.ifr_flags & both) == both;
}

/* ---- out ----------------------------------------------------------------------- */

static uint32_t packet_send(struct uplink *u, struct uplink_frame *f, uint32_t n)
{
	static struct virtio_net_hdr nothing_to_do;
	struct packet_socket *s = uplink_private(u);
	uint32_t sent;

	for (uint32_t i = 0; i < n; i++) {
		f[i].iov[0] = (struct iovec) { &nothing_to_do, sizeof(nothing_to_do) };
		s->tx[i].msg_hdr = (struct msghdr) {
			.msg_iov = f[i].iov,
			.msg_iovlen = f[i].niov,
		};
	}
	sent = uplink_sendmmsg(s->fd, s->tx, n);
	if (sent < n && errno == ENXIO)
		is_gone(u);
	return sent;
}

/* ---- in ------------------------------------------------------------------------ */

static void prepare_rx(struct packet_socket *s)
{
	for (uint32_t i = 0; i < UPLINK_BATCH; i++) {
		s->rx_iov[i][0] = (struct iovec) { &s->rx_todo[i], sizeof(s->rx_todo[i]) };
		s->rx_iov[i][1] = (struct iovec) { s->rx_buf[i] + HEADROOM, OFFLOAD_MAX_BYTES };
		s->rx[i].msg_hdr = (struct msghdr) {
			.msg_iov = s->rx_iov[i],
			.msg_iovlen = 2,
			.msg_control = &s->rx_control[i],
			.msg_controllen = sizeof(s->rx_control[i]),
		};
	}
}

/* Get the VLAN tag, which Linux removes from the frame. Return: false if there was none. */
static bool find_tag(uint8_t tag[VLAN_BYTES], struct msghdr *msg)
{
	struct tpacket_auxdata aux;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA ||
		    c->cmsg_len < CMSG_LEN(sizeof(aux)))
			continue;
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		be16_put(tag, aux.tp_status & TP_STATUS_VLAN_TPID_VALID ?
			 aux.tp_vlan_tpid : ETHERTYPE_VLAN);
		be16_put(tag + 2, aux.tp_vlan_tci);
		return aux.tp_status & TP_STATUS_VLAN_VALID;
	}
	return false;
}

static void input_done(struct uplink *u)
{
	struct packet_socket *s = uplink_private(u);

	if (s->pending)
		uplink_input_done(u);
	s->pending = 0;
}

/* Restore the tag in front of @frame, for which there is HEADROOM, and pass the frame on. */
static void input(struct uplink *u, uint8_t *frame, uint32_t len)
{
	struct packet_socket *s = uplink_private(u);

	/* Frames of an interface without a link layer may be shorter. */
	if (s->tagged && len >= ETH_BYTES) {
		memmove(frame - VLAN_BYTES, frame, ETH_BYTES - 2);
		frame -= VLAN_BYTES;
		memcpy(frame + ETH_BYTES - 2, s->tag, VLAN_BYTES);
		len += VLAN_BYTES;
	}
	uplink_input(u, frame, len);
	if (++s->pending == UPLINK_BATCH)
		input_done(u);
}

/*
 * Begin with message @next. Do the work before input() restores the tag: offsets refer to a frame
 * without.
 */
static void begin_next(struct uplink *u)
{
	struct packet_socket *s = uplink_private(u);
	struct mmsghdr *rx = &s->rx[s->next];
	uint8_t *frame = s->rx_buf[s->next] + HEADROOM;
	uint32_t len = rx->msg_len, todo = sizeof(s->rx_todo[0]);
	enum offload_kind kind = OFFLOAD_BAD;

	len = len < todo ? 0 : len - todo;
	s->tagged = find_tag(s->tag, &rx->msg_hdr);
	if (len && !(rx->msg_hdr.msg_flags & MSG_TRUNC))
		kind = offload_begin(&s->offload, &s->rx_todo[s->next], frame, len);
	s->cutting = kind == OFFLOAD_CUT;
	if (s->cutting)
		return;
	s->next++;
	if (kind == OFFLOAD_WHOLE)
		input(u, frame, len);
	else
		uplink_malformed(u, len);
}

/* Pass on the next segment of message @next. */
static void cut_next(struct uplink *u)
{
	struct packet_socket *s = uplink_private(u);
	uint8_t *frame = s->cut[s->pending] + HEADROOM;
	uint32_t len = offload_next(&s->offload, frame);

	if (len) {
		input(u, frame, len);
		return;
	}
	s->cutting = false;
	s->next++;
}

/*
 * Receive a batch. After a short one, read the socket's error too: recvmmsg() stores the error of a
 * later message there, and it would fail the next send. EINVAL: the kernel dropped a frame whose
 * segmentation struct virtio_net_hdr cannot describe. ENETDOWN: the interface went down, perhaps to
 * be deleted.
 */
static void receive(struct uplink *u)
{
	struct packet_socket *s = uplink_private(u);
	socklen_t size = sizeof(int);
	int n, err = 0;

	prepare_rx(s);
	n = recvmmsg(s->fd, s->rx, UPLINK_BATCH, MSG_DONTWAIT, NULL);
	if (n < 0)
		err = errno;
	else if (n < UPLINK_BATCH)
		getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &size);
	s->n = n < 0 ? 0 : n;
	s->next = 0;
	if (err == EINVAL)
		uplink_malformed(u, 0);
	else if (err == ENETDOWN && !is_gone(u))
		log_from(uplink_log(u), LOG_INFO, "its network interface is down");
}

/* Wait for EPOLLOUT, too, if @busy: it is nearly always set, so packet_event() is called again. */
static void set_busy(struct uplink *u, bool busy)
{
	struct packet_socket *s = uplink_private(u);

	if (s->busy == busy)
		return;
	s->busy = busy;
	loop_mod(uplink_loop(u), s->fd, busy ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void packet_event(void *arg, uint32_t events)
{
	struct uplink *u = arg;
	struct packet_socket *s = uplink_private(u);

	(void)events;
	if (s->next == s->n)
		receive(u);
	for (uint32_t i = 0; i < TURN_FRAMES && s->next < s->n; i++) {
		if (!s->cutting)
			begin_next(u);
		else
			cut_next(u);
	}
	input_done(u);
	set_busy(u, s->next < s->n);
}

static uint32_t packet_lost(struct uplink *u)
{
	return uplink_drops(((struct packet_socket *)uplink_private(u))->fd);
}

/* ---- life ---------------------------------------------------------------------- */

/* Receive all frames of the interface except those that this host sends by it. */
static int configure(int fd, int index)
{
	struct packet_mreq promisc = { .mr_ifindex = index, .mr_type = PACKET_MR_PROMISC };
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = index,
	};
	int on = 1;

	uplink_buffers(fd);
	if (setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc, sizeof(promisc)) ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return -errno;
	return 0;
}

static int packet_open(struct uplink *u, const struct uplink_spec *spec)
{
	unsigned int index = if_nametoindex(spec->ifname);
	struct packet_socket *s;
	int err;

	if (!index) {
		log_from(uplink_log(u), LOG_ERR, "there is no network interface %s", spec->ifname);
		return -ENODEV;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->index = index;
	/* With protocol 0 the socket receives nothing before configure() binds it. */
	s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = s->fd < 0 ? -errno : configure(s->fd, index);
	uplink_set_private(u, s);
	if (!err)
		err = loop_add(uplink_loop(u), s->fd, EPOLLIN, packet_event, u);
	if (!err)
		return 0;
	log_from(uplink_log(u), LOG_ERR, "cannot use %s: %s%s", spec->ifname, strerror(-err),
		 err == -EPERM ? "; it needs CAP_NET_RAW" : "");
	if (s->fd >= 0)
		close(s->fd);
	free(s);
	return err;
}

static void packet_close(struct uplink *u)
{
	struct packet_socket *s = uplink_private(u);

	loop_del(uplink_loop(u), s->fd);
	close(s->fd);
	free(s);
}

const struct uplink_backend uplink_packet = {
	.kind = "packet",
	.open = packet_open,
	.close = packet_close,
	.send = packet_send,
	.is_up = packet_is_up,
	.lost = packet_lost,
};
