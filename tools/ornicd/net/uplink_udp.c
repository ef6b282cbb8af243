// SPDX-License-Identifier: GPL-2.0
/*
 * Uplink "udp": a tunnel with a frame per UDP datagram, as -netdev dgram of QEMU 7.2 and later uses
 * it with internet addresses. The socket is connected, so the kernel drops datagrams of others than
 * the remote end.
 */
#include "uplink_socket.h"

#include "../log.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Check the range: getaddrinfo() truncates larger numbers, and port 0 is no destination. */
static bool is_port(const char *text)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	return isdigit((unsigned char)*text) && !*end && v && v <= UINT16_MAX;
}

/*
 * Resolve HOST:PORT or [HOST]:PORT with the getaddrinfo() flags @flags; without AI_NUMERICHOST this
 * may ask a name server, and block.
 * Return: 0, or -EINVAL after an error line.
 */
static int resolve(const char *text, int flags, int family, struct addrinfo **out)
{
	struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = SOCK_DGRAM,
		.ai_flags = flags | AI_NUMERICSERV,
	};
	char host[256], *colon;
	size_t len;
	int err;

	if (strlen(text) >= sizeof(host)) {
		log_err("address %.40s... is too long", text);
		return -EINVAL;
	}
	strcpy(host, text);
	colon = strrchr(host, ':');
	if (!colon || !colon[1]) {
		log_err("address %s is not of the form HOST:PORT or [HOST]:PORT", text);
		return -EINVAL;
	}
	if (!is_port(colon + 1)) {
		log_err("address %.60s: its port is not a number from 1 to %d", text, UINT16_MAX);
		return -EINVAL;
	}
	*colon = '\0';
	len = strlen(host);
	if (len > 1 && host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		memmove(host, host + 1, len - 1);
	}
	if (!*host) {
		log_err("address %s has no host; use 0.0.0.0 or [::] for any of this host", text);
		return -EINVAL;
	}
	err = getaddrinfo(host, colon + 1, &hints, out);
	if (!err)
		return 0;
	log_err("address %s: %s%s", text, gai_strerror(err), flags & AI_NUMERICHOST ?
		"; use a numeric address while the daemon runs" : "");
	return err == EAI_MEMORY ? -ENOMEM : -EINVAL;
}

static int connected_socket(struct uplink *u, const struct uplink_spec *spec,
			    const struct addrinfo *local, const struct addrinfo *remote)
{
	int fd = socket(local->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd >= 0)
		uplink_buffers(fd);
	if (fd >= 0 && !bind(fd, local->ai_addr, local->ai_addrlen) &&
	    !connect(fd, remote->ai_addr, remote->ai_addrlen))
		return fd;
	err = -errno;
	log_from(uplink_log(u), LOG_ERR, "cannot use %s to %s: %s", spec->local, spec->remote,
		 strerror(-err));
	if (fd >= 0)
		close(fd);
	return err;
}

static int udp_open(struct uplink *u, const struct uplink_spec *spec)
{
	struct uplink_socket_param param = {};
	const int numeric = uplink_busy(u) ? AI_NUMERICHOST : 0;
	struct addrinfo *local, *remote;
	int err = resolve(spec->local, numeric, AF_UNSPEC, &local);

	if (err)
		return err;
	err = resolve(spec->remote, numeric, local->ai_family, &remote);
	if (!err) {
		param.fd = connected_socket(u, spec, local, remote);
		err = param.fd < 0 ? param.fd : uplink_socket_open(u, &param);
		freeaddrinfo(remote);
	}
	freeaddrinfo(local);
	return err;
}

const struct uplink_backend uplink_udp = {
	.kind = "udp",
	.open = udp_open,
	.close = uplink_socket_close,
	.send = uplink_socket_send,
	.lost = uplink_socket_lost,
};
