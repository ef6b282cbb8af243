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
#include "notify.h"

#include <sys/queue.h>

struct control;

/**
 * struct daemon - state of the daemon
 * @loop:	event loop
 * @engine:	data path
 * @captures:	captures of the switch
 * @attached:	devices
 * @n:		number of @attached
 * @leaving:	functions of removed devices, whose objects are being released
 * @uplink:	ports to the outside
 * @nuplinks:	number of @uplink
 * @access:	who may connect to sockets of devices and ports that do not say so themselves
 * @untrusted:	safe defaults of devices whose guests do not trust each other
 * @control:	control socket, or NULL
 * @notify:	connection to the service manager
 * @serving:	start is complete: guests may be running
 */
struct daemon {
	struct loop *loop;
	struct engine engine;
	struct captures captures;
	struct attachment *attached;
	unsigned int n;
	LIST_HEAD(, function) leaving;
	struct uplink **uplink;
	unsigned int nuplinks;
	struct unix_access access;
	bool untrusted;
	struct control *control;
	struct notify notify;
	bool serving;
};

/*
 * daemon_run() - run with configuration @c until a signal arrives
 * Return: 0, or a negative errno after an error line.
 */
int daemon_run(const struct config *c);

/* Call these between turns of the engine, not from the delivery of a port. */

/* daemon_port_add() - open a port. Return: 0, or a negative errno after an error line. */
int daemon_port_add(struct daemon *d, const struct uplink_spec *spec);
/*
 * daemon_port_del() - close port @name to the outside and drop its packets that are not delivered
 * yet
 * Return: 0, or a negative errno after an error line: -ENOENT, or -EPERM for the port of a device.
 */
int daemon_port_del(struct daemon *d, const char *name);

/*
 * daemon_device_add() - offer a device; @c is copied. Fault rules and captures that name it apply.
 * Return: 0, or a negative errno after an error line.
 */
int daemon_device_add(struct daemon *d, const struct config_device *c);
/*
 * daemon_device_del() - remove device @name and its socket
 *
 * Nobody reaches the objects of its guest afterwards. If there are many, they are released in later
 * turns, so that other devices do not wait. Packets from it that are not delivered yet are dropped.
 * A client that is connected is disconnected if @force is true; its virtual machine sees the removal
 * of a card without warning.
 *
 * Return: 0, or a negative errno after an error line: -ENOENT, or -EBUSY without @force while a
 * client is connected.
 */
int daemon_device_del(struct daemon *d, const char *name, bool force);

#endif /* ORNICD_DAEMON_H */
