/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A PCI function offered on a UNIX socket: who may connect, and what happens when
 * the client leaves.
 */
#ifndef ORNICD_VFU_SERVER_H
#define ORNICD_VFU_SERVER_H

#include "func.h"

#include "../loop.h"

#include <stdbool.h>

struct vfu_server;

int vfu_server_open(struct loop *loop, struct vfu_func *func, const char *path,
		    struct vfu_server **server);
void vfu_server_close(struct vfu_server *s);

const char *vfu_server_path(const struct vfu_server *s);
/* vfu_server_attached() - a client has the function */
bool vfu_server_attached(const struct vfu_server *s);

#endif /* ORNICD_VFU_SERVER_H */
