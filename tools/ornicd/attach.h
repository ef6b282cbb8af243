/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A configured device: a function on the switch, offered on a socket.
 */
#ifndef ORNICD_ATTACH_H
#define ORNICD_ATTACH_H

#include "config/config.h"
#include "loop.h"

#include <stdbool.h>

struct engine;
struct function;
struct vfu_server;

/**
 * struct attachment - a configured device
 * @config:	its settings when it was added; VLAN and link may have changed since
 * @function:	the function
 * @server:	server of its socket
 */
struct attachment {
	struct config_device config;
	struct function *function;
	struct vfu_server *server;
};

/*
 * attach_device() - create device @d on the switch and listen on its socket
 * @access: who may connect, where @d does not say so itself
 * Return: 0, or a negative errno after an error line.
 */
int attach_device(struct attachment *a, struct loop *loop, struct engine *e,
		  const struct config_device *d, const struct unix_access *access);
/*
 * attach_leave() - end the session of a client, remove the device and its socket
 * Return: the function, which may have objects that are not released yet: see function_retire().
 */
struct function *attach_leave(struct attachment *a);

#endif /* ORNICD_ATTACH_H */
