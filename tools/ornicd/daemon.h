/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The daemon: devices, ports and control socket around one engine.
 */
#ifndef ORNICD_DAEMON_H
#define ORNICD_DAEMON_H

#include "attach.h"
#include "capture/capture.h"
#include "config/config.h"
#include "engine/engine.h"
#include "loop.h"
#include "net/uplink.h"

struct control;

/**
 * struct daemon - all there is
 * @loop:	event loop
 * @engine:	data path
 * @captures:	what is written of what passes the switch
 * @attached:	devices, @n of them
 * @n:		number of @attached
 * @uplink:	ports to the outside, @nuplinks of them
 * @nuplinks:	number of @uplink
 * @control:	control socket, or NULL
 * @serving:	guests may be at work
 */
struct daemon {
	struct loop *loop;
	struct engine engine;
	struct captures captures;
	struct attachment *attached;
	unsigned int n;
	struct uplink **uplink;
	unsigned int nuplinks;
	struct control *control;
	bool serving;
};

/*
 * daemon_run() - serve as @c says until a signal comes
 * Return: 0, or a negative errno after an error line.
 */
int daemon_run(const struct config *c);

/* Between turns of the engine, not from within a port's delivery: */

/* daemon_port_add() - open a port. Return: 0, or a negative errno after an error line. */
int daemon_port_add(struct daemon *d, const struct uplink_spec *spec);
/*
 * daemon_port_del() - close the port to the outside that is named @name; what came in by it and is
 * not delivered yet is dropped
 * Return: 0, or a negative errno after an error line: -ENOENT; -EPERM if a device's.
 */
int daemon_port_del(struct daemon *d, const char *name);

#endif /* ORNICD_DAEMON_H */
