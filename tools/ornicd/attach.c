// SPDX-License-Identifier: GPL-2.0
/*
 * Create and remove a configured device.
 */
#include "attach.h"

#include "dev/function.h"
#include "log.h"
#include "mem/backing.h"
#include "share.h"
#include "vfu/server.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Check the socket's directory. It is not created here: its owner decides which users may connect.
 */
static int attach_check_directory(const char *path)
{
	char copy[256];
	struct stat st;
	char *dir;

	if (strlen(path) >= sizeof(copy))
		return -ENAMETOOLONG;
	strcpy(copy, path);
	dir = dirname(copy);
	if (!stat(dir, &st) && S_ISDIR(st.st_mode))
		return 0;
	log_err("cannot listen on %s: there is no directory %s; create it first", path, dir);
	return -ENOENT;
}

/* Limit the memory that a client may map. */
static void attach_limit(struct attachment *a)
{
	const struct config_device *d = &a->config;
	struct backing_limits limits = BACKING_LIMITS;

	if (d->memory)
		limits.bytes = d->memory;
	if (d->memory_files)
		limits.files = d->memory_files;
	limits.disk = d->nvdimm;
	vfu_server_limit(a->server, &limits);
	share_join(limits.files, limits.bytes);
}

static void attach_undo(struct attachment *a)
{
	function_free(a->function);
	config_device_free(&a->config);
	*a = (struct attachment) { 0 };
}

/* Create the function and set its port up. */
static int attach_function(struct attachment *a, struct engine *e)
{
	const struct config_device *d = &a->config;
	int err;

	a->function = function_new(e, d->name, d->mac, d->vlan, &err);
	if (!a->function && err == -EEXIST) {
		log_err("%s: cannot create the device: the guest of another device in its VLAN has set the address %02x:%02x:%02x:%02x:%02x:%02x; choose another mac=",
			d->name, d->mac[0], d->mac[1], d->mac[2], d->mac[3], d->mac[4], d->mac[5]);
		return err;
	}
	if (!a->function) {
		log_err("%s: cannot create the device: %s", d->name, strerror(-err));
		return err;
	}
	function_port_policy(a->function, d->anti_spoof ? &d->source : NULL, d->promisc);
	err = d->link.kbps ? switch_port_limit(a->function->dev.port.sw, &d->link) : 0;
	if (err)
		log_from(&a->function->vfu.log, LOG_ERR, "cannot set up its port: %s",
			 strerror(-err));
	return err;
}

int attach_device(struct attachment *a, struct loop *loop, struct engine *e,
		  const struct config_device *d, const struct unix_access *access)
{
	const struct unix_access own = unix_access_or(&d->access, access);
	int err = attach_check_directory(d->path);

	*a = (struct attachment) { 0 };
	if (!err)
		err = config_device_copy(&a->config, d);
	if (!err)
		err = attach_function(a, e);
	if (!err)
		err = vfu_server_open(loop, &a->function->vfu, d->path, &own, &a->server);
	if (err) {
		attach_undo(a);
		return err;
	}
	attach_limit(a);
	if (d->anti_spoof && !d->source.ip)
		log_from(&a->function->vfu.log, LOG_WARN,
			 "anti-spoof checks MAC addresses only; add ip= to check IP addresses");
	log_from(&a->function->vfu.log, LOG_INFO,
		 "listening on %s, mac %02x:%02x:%02x:%02x:%02x:%02x", d->path,
		 d->mac[0], d->mac[1], d->mac[2], d->mac[3], d->mac[4], d->mac[5]);
	return 0;
}

struct function *attach_leave(struct attachment *a)
{
	const struct backing_limits *l = &vfu_server_memory(a->server)->limits;
	struct function *f = a->function;

	share_leave(l->files, l->bytes);
	vfu_server_close(a->server);
	function_retire(f);
	config_device_free(&a->config);
	*a = (struct attachment) { 0 };
	return f;
}
