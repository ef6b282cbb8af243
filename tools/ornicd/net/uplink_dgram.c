// SPDX-License-Identifier: GPL-2.0
/*
 * Uplink "dgram": a frame per UNIX datagram, as -netdev dgram of QEMU 7.2 and later uses them.
 */
#include "uplink_socket.h"

#include "../unix_socket.h"

#include <string.h>

static int dgram_open(struct uplink *u, const struct uplink_spec *spec)
{
	struct uplink_socket_param param = { .file = spec->local };
	struct unix_access access = spec->access;
	struct sockaddr_un local, remote;
	int err = unix_address(&local, spec->local);

	if (!err)
		err = unix_address(&remote, spec->remote);
	if (err)
		return err;
	memcpy(&param.to, &remote, sizeof(remote));
	param.to_len = sizeof(remote);
	param.fd = unix_bind(&local, SOCK_DGRAM, &access);
	if (param.fd < 0)
		return param.fd;
	unix_no_descriptors(param.fd);
	uplink_buffers(param.fd);
	return uplink_socket_open(u, &param);
}

const struct uplink_backend uplink_dgram = {
	.kind = "dgram",
	.open = dgram_open,
	.close = uplink_socket_close,
	.send = uplink_socket_send,
};
