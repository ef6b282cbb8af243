// SPDX-License-Identifier: GPL-2.0
/*
 * Methods on devices.
 */
#include "method.h"

#include "../dev/function.h"
#include "../engine/link.h"
#include "../json_memory.h"
#include "../mem/backing.h"
#include "../vfu/server.h"

#include <errno.h>
#include <stdio.h>

static const char *state_name(enum ctrl_state state)
{
	static const char *const names[] = {
		[CTRL_DISABLED] = "disabled",
		[CTRL_READY] = "ready",
		[CTRL_DRAINING] = "draining",
		[CTRL_RESETTING] = "resetting",
		[CTRL_DYING] = "dying",
		[CTRL_FATAL] = "fatal",
	};

	return names[state];
}

static json_t *objects(const struct device *dev)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "qp", dev->qps.used, "cq",
			 dev->cqs.used, "srq", dev->srqs.used, "pd", dev->pds.used, "key",
			 dev->keys.used, "xrcd", dev->xrcds.used);
}

static json_t *memory(const struct account *a)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "used", (json_int_t)a->used, "guaranteed",
			 (json_int_t)a->pool->guarantee, "most", (json_int_t)a->pool->most,
			 "rejected", (json_int_t)a->rejected);
}

static json_t *guest_memory(const struct backing_pool *pool)
{
	return json_pack("{s:I, s:I, s:i, s:i, s:b}", "bytes", (json_int_t)pool->bytes,
			 "max_bytes", (json_int_t)pool->limits.bytes, "files", pool->files,
			 "max_files", pool->limits.files, "nvdimm", pool->limits.disk);
}

static json_t *access_json(const struct unix_access *a)
{
	char mode[8];

	snprintf(mode, sizeof(mode), "%04o", a->mode);
	return json_pack("{s:I, s:I, s:s}", "owner", (json_int_t)a->uid,
			 "group", (json_int_t)a->gid, "mode", mode);
}

/* Return the IP addresses that the guest may use; null: all. */
static json_t *addresses(const struct port *port)
{
	char text[ANTISPOOF_TEXT];
	json_t *all;

	if (!(port->flags & ORNIC_PORT_F_ANTI_SPOOF_IP))
		return json_null();
	all = json_array();
	for (uint32_t i = 0; i < port->source.n; i++) {
		antispoof_print(&port->source.prefix[i], text);
		json_array_append_new(all, json_string(text));
	}
	return all;
}

static json_t *describe(const struct attachment *a)
{
	const struct device *dev = &a->function->dev;
	const struct port *port = &dev->port;

	return json_pack("{s:o,s:o,s:o,s:b,s:s,s:s,s:o,s:o,s:i,s:b,s:o,s:b,s:o,s:o,s:o}",
			 "name", control_text(dev->name),
			 "path", control_text(vfu_server_path(a->server)),
			 "access", access_json(vfu_server_access(a->server)),
			 "attached", vfu_server_attached(a->server),
			 "state", state_name(a->function->ctrl.state),
			 "link", link_is_up(dev) ? "up" : "down",
			 "mac", control_mac(port->mac),
			 "permanent_mac", control_mac(port->permanent_mac),
			 "max_frame", port->max_frame,
			 "anti_spoof", !!(port->flags & ORNIC_PORT_F_ANTI_SPOOF),
			 "ip", addresses(port),
			 "promisc", !!(port->flags & ORNIC_PORT_F_PROMISC),
			 "guest_memory", guest_memory(vfu_server_memory(a->server)),
			 "objects", objects(dev), "memory", memory(&dev->account));
}

static json_t *list(struct control_call *call)
{
	const struct daemon *d = call->daemon;
	json_t *all;

	if (control_params(call, "{}"))
		return NULL;
	all = json_array();
	for (unsigned int i = 0; i < d->n; i++)
		json_array_append_new(all, describe(&d->attached[i]));
	return all;
}

static json_t *add(struct control_call *call)
{
	struct config_device d;
	const char *text;
	json_t *done;
	int err;

	if (control_params(call, "{s:s}", "spec", &text))
		return NULL;
	err = config_device_parse(&d, text, true);
	if (err)
		return control_failed(call, err);
	/* first the answer, so that a request without an answer has no effect */
	done = control_done(call);
	json_object_set_new(done, "name", control_text(d.name));
	json_object_set_new(done, "path", control_text(d.path));
	json_object_set_new(done, "mac", control_mac(d.mac));
	err = json_memory_short() ? -ENOMEM : 0;
	if (!err && call->daemon->untrusted)
		err = config_distrust(&d);
	if (!err)
		err = daemon_device_add(call->daemon, &d);
	config_device_free(&d);
	if (!err)
		return done;
	json_decref(done);
	return control_failed(call, err);
}

static json_t *del(struct control_call *call)
{
	const char *name;
	int force = 0, err;

	if (control_params(call, "{s:s, s?b}", "name", &name, "force", &force))
		return NULL;
	err = daemon_device_del(call->daemon, name, force);
	return err ? control_failed(call, err) : control_done(call);
}

const struct control_method control_device_methods[] = {
	{ "device.list", list },
	{ "device.add", add },
	{ "device.del", del },
	{ },
};
