// SPDX-License-Identifier: GPL-2.0
/*
 * Uplink "packet": an existing network interface, a veth or a real one, by AF_PACKET.
 */
#include "uplink_socket.h"

#include "../log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

/* All frames of the interface, but not what this host itself sends by it. */
static int configure(int fd, unsigned int index)
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
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc, sizeof(promisc)) ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return -errno;
	return 0;
}

static int packet_open(struct uplink *u, const struct uplink_spec *spec)
{
	struct uplink_socket_param param = { .vlan = true };
	unsigned int index = if_nametoindex(spec->ifname);
	int err;

	if (!index) {
		log_err("%s: there is no network interface %s", uplink_name(u), spec->ifname);
		return -ENODEV;
	}
	/* without a protocol nothing is received before the socket is bound */
	param.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (param.fd < 0) {
		err = -errno;
		log_err("%s: cannot open %s: %s%s", uplink_name(u), spec->ifname, strerror(-err),
			err == -EPERM ? "; it takes CAP_NET_RAW" : "");
		return err;
	}
	err = configure(param.fd, index);
	if (err) {
		log_err("%s: cannot use %s: %s", uplink_name(u), spec->ifname, strerror(-err));
		close(param.fd);
		return err;
	}
	return uplink_socket_open(u, &param);
}

const struct uplink_backend uplink_packet = {
	.kind = "packet",
	.open = packet_open,
	.close = uplink_socket_close,
	.send = uplink_socket_send,
};
