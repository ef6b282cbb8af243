// SPDX-License-Identifier: GPL-2.0
/*
 * Uplink "tap": a tap interface of this host, which is created if it does not exist.
 */
#include "uplink_backend.h"

#include "../log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/**
 * struct tap - a tap interface
 * @fd:		descriptor of /dev/net/tun, attached to the interface
 * @buf:	frames received; one byte longer than a frame, to detect frames that are too long
 */
struct tap {
	int fd;
	uint8_t buf[UPLINK_BATCH][UPLINK_FRAME_BYTES + 1];
};

/*
 * Remove the descriptor of a deleted interface from the loop: Linux (seen with 6.18) reports
 * EPOLLERR for it for ever, so the loop would spin. The descriptor does not get attached to a new
 * interface of the same name.
 */
static void tap_gone(struct uplink *u)
{
	struct tap *t = uplink_private(u);

	loop_del(uplink_loop(u), t->fd);
	uplink_gone(u);
}

/* POLLOUT means that the interface is up, even if it was renamed or moved to another namespace. */
static bool tap_is_up(struct uplink *u)
{
	struct tap *t = uplink_private(u);
	struct pollfd poll_fd = { .fd = t->fd, .events = POLLOUT };

	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents == POLLOUT;
}

/* Send frames, one per system call, because a tap has no call for several. */
static uint32_t tap_send(struct uplink *u, struct uplink_frame *f, uint32_t n)
{
	struct tap *t = uplink_private(u);
	uint32_t i;

	for (i = 0; i < n; i++)
		if (writev(t->fd, f[i].iov + 1, f[i].niov - 1) != f[i].len)
			break;
	return i;
}

static void tap_event(void *arg, uint32_t events)
{
	struct uplink *u = arg;
	struct tap *t = uplink_private(u);
	ssize_t len = 0;
	uint32_t n;

	(void)events;
	for (n = 0; n < UPLINK_BATCH; n++) {
		len = read(t->fd, t->buf[n], sizeof(t->buf[n]));
		if (len <= 0)
			break;
		uplink_input(u, t->buf[n], len);
	}
	if (len < 0 && errno == EBADFD)
		tap_gone(u);
	if (n)
		uplink_input_done(u);
}

static const char *attach_advice(int err)
{
	switch (err) {
	case EPERM:
		return "; it needs CAP_NET_ADMIN, or a tap made for this user";
	case EBUSY:
		return "; another process uses it";
	case EINVAL:
		return "; an interface of that name is not a tap, or has several queues";
	default:
		return "";
	}
}

/*
 * Attach to the tap, or create it. Return: a descriptor, or a negative errno after an error line.
 */
static int tap_attach(struct log_source *log, const char *ifname)
{
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK), err;
	struct ifreq req = { .ifr_flags = IFF_TAP | IFF_NO_PI };

	if (fd < 0) {
		err = errno;
		log_from(log, LOG_ERR, "cannot open /dev/net/tun: %s", strerror(err));
		return -err;
	}
	strcpy(req.ifr_name, ifname);
	if (!ioctl(fd, TUNSETIFF, &req))
		return fd;
	err = errno;
	log_from(log, LOG_ERR, "cannot open tap %s: %s%s", ifname, strerror(err),
		 attach_advice(err));
	close(fd);
	return -err;
}

/*
 * Turn off the offloads and the filters that the last user of the tap may have left on: they belong
 * to the tap, not to the descriptor. With offloads read() gets frames of up to 64 KiB and checksums
 * that only a struct virtio_net_hdr describes. The filters drop frames of the kernel. A filter of
 * TUNATTACHFILTER is not attached again, because IFF_NO_PI has the value of IFF_NOFILTER.
 * Return: 0, or a negative errno after an error line.
 */
static int tap_reset(int fd, struct log_source *log, const char *ifname)
{
	const struct tun_filter all = {};
	const int no_program = -1;
	int err = 0;

	if (ioctl(fd, TUNSETOFFLOAD, 0) || ioctl(fd, TUNSETTXFILTER, &all) ||
	    ioctl(fd, TUNSETFILTEREBPF, &no_program)) {
		err = errno;
		log_from(log, LOG_ERR, "cannot turn off offloads and filters of tap %s: %s", ifname,
			 strerror(err));
	}
	return -err;
}

/* Set the interface up, if it is down. Return: 0, or a negative errno after an error line. */
static int tap_set_up(struct log_source *log, const char *ifname)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	struct ifreq req = {};

	strcpy(req.ifr_name, ifname);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &req)) {
		err = errno;
	} else if (!(req.ifr_flags & IFF_UP)) {
		req.ifr_flags |= IFF_UP;
		err = ioctl(fd, SIOCSIFFLAGS, &req) ? errno : 0;
	}
	if (fd >= 0)
		close(fd);
	if (err == EPERM)
		log_from(log, LOG_ERR,
			 "cannot set tap %s up: %s; set it up as root: ip link set %s up", ifname,
			 strerror(err), ifname);
	else if (err)
		log_from(log, LOG_ERR, "cannot set tap %s up: %s", ifname, strerror(err));
	return -err;
}

static int tap_open(struct uplink *u, const struct uplink_spec *spec)
{
	struct log_source *log = uplink_log(u);
	struct tap *t;
	int err;

	if (strlen(spec->ifname) >= IFNAMSIZ) {
		log_from(log, LOG_ERR, "interface name %s is longer than %d characters",
			 spec->ifname, IFNAMSIZ - 1);
		return -EINVAL;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->fd = tap_attach(log, spec->ifname);
	err = t->fd < 0 ? t->fd : tap_reset(t->fd, log, spec->ifname);
	if (!err)
		err = tap_set_up(log, spec->ifname);
	uplink_set_private(u, t);
	if (!err) {
		err = loop_add(uplink_loop(u), t->fd, EPOLLIN, tap_event, u);
		if (!err)
			return 0;
		log_from(log, LOG_ERR, "cannot wait for frames of tap %s: %s", spec->ifname,
			 strerror(-err));
	}
	if (t->fd >= 0)
		close(t->fd);
	free(t);
	return err;
}

static void tap_close(struct uplink *u)
{
	struct tap *t = uplink_private(u);

	loop_del(uplink_loop(u), t->fd);
	close(t->fd);
	free(t);
}

const struct uplink_backend uplink_tap = {
	.kind = "tap",
	.open = tap_open,
	.close = tap_close,
	.send = tap_send,
	.is_up = tap_is_up,
};
