// SPDX-License-Identifier: GPL-2.0
/*
 * Read a configuration file: one JSON object, as in ornicd.conf.example.
 *
 * Unknown members are rejected, because a misspelt setting would silently have no effect.
 */
#include "config.h"

#include "../json_memory.h"
#include "../net/vlan.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

/* Read the value of a switch, which may be missing. Return: false if it is neither true nor false. */
static bool file_switch(const json_t *value, enum config_switch *out)
{
	if (json_is_boolean(value))
		*out = json_is_true(value) ? CONFIG_ON : CONFIG_OFF;
	return !value || json_is_boolean(value);
}

/* Read the array "ip", which may be missing; the strings stay in @ips. */
static int file_ips(const char *file, const json_t *ips, struct config_spec *spec)
{
	size_t n = json_array_size(ips);

	if (ips && (!json_is_array(ips) || !n || n > ANTISPOOF_PREFIXES)) {
		log_err("%s: \"ip\" must be an array of 1 to %d strings", file,
			ANTISPOOF_PREFIXES);
		return -EINVAL;
	}
	for (; spec->nips < n; spec->nips++) {
		spec->ip[spec->nips] = json_string_value(json_array_get(ips, spec->nips));
		if (!spec->ip[spec->nips]) {
			log_err("%s: an \"ip\" must be a string such as \"192.0.2.1\"", file);
			return -EINVAL;
		}
	}
	return 0;
}

static int file_device(struct config *c, const char *file, json_t *device)
{
	json_t *anti_spoof = NULL, *promisc = NULL, *ips = NULL;
	struct config_spec spec = { 0 };
	json_int_t vlan = 0, files = 0;
	json_error_t e;
	int nvdimm = 0;

	if (json_unpack_ex(device, &e, JSON_STRICT,
			   "{s:s, s?s, s?s, s?o, s?o, s?o, s?I, s?s, s?I, s?b, s?s, s?s, s?s, s?s, s?s, s?s, s?s, s?s}",
			   "path", &spec.path, "mac", &spec.mac, "name", &spec.name,
			   "anti_spoof", &anti_spoof, "promisc", &promisc, "ip", &ips,
			   "vlan", &vlan, "memory", &spec.memory, "memory_files", &files,
			   "nvdimm", &nvdimm, "owner", &spec.access[CONFIG_OWNER],
			   "group", &spec.access[CONFIG_GROUP],
			   "mode", &spec.access[CONFIG_MODE], "rate", &spec.link[0],
			   "queue", &spec.link[1], "kmin", &spec.link[2], "kmax", &spec.link[3],
			   "pmax", &spec.link[4])) {
		log_err("%s: a device must be an object with \"path\" and optionally \"mac\", \"name\", \"anti_spoof\", \"promisc\", \"ip\", \"vlan\", \"memory_files\", \"nvdimm\", and the strings \"memory\", \"owner\", \"group\", \"mode\", \"rate\", \"queue\", \"kmin\", \"kmax\", \"pmax\": %s",
			file, e.text);
		return -EINVAL;
	}
	if (!file_switch(anti_spoof, &spec.anti_spoof) || !file_switch(promisc, &spec.promisc)) {
		log_err("%s: \"anti_spoof\" and \"promisc\" must be true or false", file);
		return -EINVAL;
	}
	if (file_ips(file, ips, &spec))
		return -EINVAL;
	if (vlan < 0 || vlan > VLAN_MAX_ID) {
		log_err("%s: \"vlan\": %lld is not a number from 0 to %d", file,
			(long long)vlan, VLAN_MAX_ID);
		return -EINVAL;
	}
	if (json_object_get(device, "memory_files") && config_memory_files(spec.path, files))
		return -EINVAL;
	spec.memory_files = files;
	spec.vlan = vlan;
	spec.nvdimm = nvdimm;
	return config_add(c, &spec);
}

static int file_devices(struct config *c, const char *file, json_t *devices)
{
	json_t *device;
	size_t i;

	if (!json_is_array(devices)) {
		log_err("%s: \"devices\" is not an array", file);
		return -EINVAL;
	}
	json_array_foreach(devices, i, device) {
		int err = file_device(c, file, device);

		if (err)
			return err;
	}
	return 0;
}

static int file_ports(struct config *c, const char *file, json_t *ports)
{
	json_t *port;
	size_t i;

	if (!json_is_array(ports)) {
		log_err("%s: \"ports\" is not an array", file);
		return -EINVAL;
	}
	json_array_foreach(ports, i, port) {
		int err;

		if (!json_is_string(port)) {
			log_err("%s: a port must be a string, as after --port", file);
			return -EINVAL;
		}
		err = config_port(c, json_string_value(port));
		if (err)
			return err;
	}
	return 0;
}

static int file_captures(struct config *c, const char *file, json_t *captures)
{
	json_t *capture;
	size_t i;

	if (!json_is_array(captures)) {
		log_err("%s: \"captures\" is not an array", file);
		return -EINVAL;
	}
	json_array_foreach(captures, i, capture) {
		int err;

		if (!json_is_string(capture)) {
			log_err("%s: a capture must be a string, as after --capture", file);
			return -EINVAL;
		}
		err = config_capture(c, json_string_value(capture));
		if (err)
			return err;
	}
	return 0;
}

/* Add the rules as text: they are parsed when the devices that they may name exist. */
static int file_faults(struct config *c, const char *file, json_t *faults)
{
	json_t *fault;
	size_t i;

	if (!json_is_array(faults)) {
		log_err("%s: \"faults\" is not an array", file);
		return -EINVAL;
	}
	json_array_foreach(faults, i, fault) {
		int err;

		if (!json_is_string(fault)) {
			log_err("%s: a fault must be a string, as a line of a --faults file", file);
			return -EINVAL;
		}
		err = config_fault(c, json_string_value(fault), false);
		if (err)
			return err;
	}
	return 0;
}

static int file_spin(struct config *c, json_int_t spin)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)spin);
	return config_set_spin(c, text);
}

/* Set who may connect, by the values of owner, group and mode; @text begins the message. */
static int file_access(struct unix_access *access, const char *file, const char *text,
		       const char *const val[CONFIG_ACCESS_KEYS])
{
	char where[256];

	snprintf(where, sizeof(where), "%s: %s", file, text);
	return config_access(where, val, false, access);
}

static int file_apply(struct config *c, const char *file, json_t *root)
{
	json_int_t spin = c->spin_us;
	const char *level = NULL, *format = NULL, *cc = NULL, *control = NULL;
	const char *own[CONFIG_ACCESS_KEYS] = { NULL }, *all[CONFIG_ACCESS_KEYS] = { NULL };
	json_t *devices = NULL, *ports = NULL, *captures = NULL, *faults = NULL;
	int time = c->log_time, untrusted = 0, err;
	json_error_t e;

	if (json_unpack_ex(root, &e, JSON_STRICT,
			   "{s?I, s?s, s?s, s?b, s?s, s?b, s?o, s?o, s?o, s?o, s?s, s?s, s?s, s?s, s?s, s?s, s?s}",
			   "spin_us", &spin, "log_level", &level, "log_format", &format,
			   "log_time", &time, "cc", &cc, "untrusted", &untrusted,
			   "devices", &devices, "ports", &ports,
			   "captures", &captures, "faults", &faults,
			   "socket_owner", &all[CONFIG_OWNER], "socket_group", &all[CONFIG_GROUP],
			   "socket_mode", &all[CONFIG_MODE], "control", &control,
			   "control_owner", &own[CONFIG_OWNER], "control_group", &own[CONFIG_GROUP],
			   "control_mode", &own[CONFIG_MODE])) {
		log_err("%s: settings are \"spin_us\", \"log_level\", \"log_format\", \"log_time\", \"cc\", \"untrusted\", \"devices\", \"ports\", \"captures\", \"faults\", \"socket_owner\", \"socket_group\", \"socket_mode\", \"control\", \"control_owner\", \"control_group\" and \"control_mode\": %s",
			file, e.text);
		return -EINVAL;
	}
	config_set_log_time(c, time);
	err = format ? config_set_log_format(c, format) : 0;
	if (!err && level)
		err = config_set_level(c, level);
	if (!err)
		err = file_spin(c, spin);
	if (!err && control)
		err = config_set_control(c, control);
	if (!err)
		err = file_access(&c->access, file, "sockets", all);
	if (!err)
		err = file_access(&c->control.access, file, "control socket", own);
	if (!err && cc)
		err = config_cc(&c->cc, cc);
	if (!err && untrusted)
		err = config_untrusted(c);
	if (!err && devices)
		err = file_devices(c, file, devices);
	if (!err && ports)
		err = file_ports(c, file, ports);
	if (!err && captures)
		err = file_captures(c, file, captures);
	if (!err && faults)
		err = file_faults(c, file, faults);
	return err;
}

int config_file(struct config *c, const char *path)
{
	json_error_t e;
	json_t *root;
	int err;

	json_memory_begin();
	root = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
	if (json_memory_short()) {
		log_err("%s: out of memory", path);
		json_decref(root);
		return -ENOMEM;
	}
	if (!root) {
		log_err("%s:%d: %s", path, e.line > 0 ? e.line : 0, e.text);
		return -EINVAL;
	}
	err = file_apply(c, path, root);
	json_decref(root);
	if (err || !json_memory_short())
		return err;
	log_err("%s: out of memory", path);
	return -ENOMEM;
}
