// SPDX-License-Identifier: GPL-2.0
/*
 * Methods on ports of the switch: those of devices, and uplinks.
 */
#include "method.h"

#include "../dev/function.h"
#include "../engine/link.h"
#include "../json_memory.h"
#include "../net/vlan.h"

#include <errno.h>

static json_t *device_counters(const struct device *dev)
{
	const struct {
		const char *name;
		enum counter cnt;
	} shown[] = {
		{ "tx_packets", CNT_tx_packets }, { "tx_bytes", CNT_tx_bytes },
		{ "tx_drop", CNT_tx_drop }, { "tx_drop_spoof", CNT_tx_drop_spoof },
		{ "rx_packets", CNT_rx_packets }, { "rx_bytes", CNT_rx_bytes },
		{ "rdma_tx_packets", CNT_rdma_tx_packets },
		{ "rdma_tx_bytes", CNT_rdma_tx_bytes }, { "rdma_rx_packets", CNT_rdma_rx_packets },
		{ "rdma_rx_bytes", CNT_rdma_rx_bytes },
	};
	json_t *all = json_object();

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		json_object_set_new(all, shown[i].name, json_integer(dev->cnt[shown[i].cnt]));
	json_object_set_new(all, "vlan_drop", json_integer(switch_port_vlan_drop(dev->port.sw)));
	return all;
}

static json_t *device_port(const struct device *dev)
{
	return json_pack("{s:o, s:s, s:b, s:i, s:o, s:o}",
			 "name", control_text(dev->name), "kind", "device",
			 "up", link_is_up(dev), "vlan", switch_port_vlan(dev->port.sw),
			 "mac", control_mac(dev->port.mac),
			 "counters", device_counters(dev));
}

static json_t *uplink_counters(const struct uplink_stats *s, const struct switch_port *port)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "tx_frames", (json_int_t)s->tx_frames,
			 "tx_bytes", (json_int_t)s->tx_bytes,
			 "tx_drop", (json_int_t)s->tx_drop,
			 "rx_frames", (json_int_t)s->rx_frames,
			 "rx_bytes", (json_int_t)s->rx_bytes,
			 "rx_drop", (json_int_t)s->rx_drop,
			 "bad_icrc", (json_int_t)s->bad_icrc,
			 "malformed", (json_int_t)s->malformed,
			 "vlan_drop", (json_int_t)switch_port_vlan_drop(port));
}

static json_t *uplink_port(const struct daemon *d, struct uplink *u)
{
	const struct switch_port *port = switch_port_find(d->engine.sw, uplink_name(u));

	return json_pack("{s:o, s:s, s:b, s:i, s:o, s:o}",
			 "name", control_text(uplink_name(u)), "kind", uplink_kind(u),
			 "up", uplink_is_up(u), "vlan", switch_port_vlan(port),
			 "spec", control_text(uplink_text(u)),
			 "counters", uplink_counters(uplink_stats(u), port));
}

static json_t *list(struct control_call *call)
{
	const struct daemon *d = call->daemon;
	json_t *all;

	if (control_params(call, "{}"))
		return NULL;
	all = json_array();
	for (unsigned int i = 0; i < d->n; i++)
		json_array_append_new(all, device_port(&d->attached[i].function->dev));
	for (unsigned int i = 0; i < d->nuplinks; i++)
		json_array_append_new(all, uplink_port(d, d->uplink[i]));
	return all;
}

static json_t *add(struct control_call *call)
{
	struct uplink_spec spec;
	json_t *done;
	const char *text;
	int err;

	if (control_params(call, "{s:s}", "spec", &text))
		return NULL;
	err = config_port_parse(&spec, text, true);
	if (err)
		return control_failed(call, err);
	/* first the answer, so that a request without an answer has no effect */
	done = control_done(call);
	json_object_set_new(done, "name", control_text(spec.name));
	err = json_memory_short() ? -ENOMEM : daemon_port_add(call->daemon, &spec);
	config_port_free(&spec);
	if (!err)
		return done;
	json_decref(done);
	return control_failed(call, err);
}

static json_t *del(struct control_call *call)
{
	const char *name;
	int err;

	if (control_params(call, "{s:s}", "name", &name))
		return NULL;
	err = daemon_port_del(call->daemon, name);
	return err ? control_failed(call, err) : control_done(call);
}

/* Set the VLAN of a port; the port of a device has the device's name. */
static json_t *set_vlan(struct control_call *call)
{
	struct switch_port *port;
	const char *name;
	json_int_t id;

	if (control_params(call, "{s:s, s:I}", "port", &name, "vlan", &id))
		return NULL;
	port = switch_port_find(call->daemon->engine.sw, name);
	if (!port)
		return control_error(call, CONTROL_NOT_FOUND, "there is no port %s", name);
	if (id < 0 || id > VLAN_MAX_ID)
		return control_error(call, CONTROL_PARAMS, "vlan %lld: expected 0 to %d",
				     (long long)id, VLAN_MAX_ID);
	if (switch_port_set_vlan(port, id))
		return control_error(call, CONTROL_EXISTS,
				     "another device in that VLAN has the MAC address of %s", name);
	return control_done(call);
}

const struct control_method control_port_methods[] = {
	{ "port.list", list },
	{ "port.add", add },
	{ "port.del", del },
	{ "port.vlan", set_vlan },
	{ },
};
