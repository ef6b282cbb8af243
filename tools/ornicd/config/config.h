/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Settings of the user: command line and configuration file.
 *
 * Functions that return an int return 0, or a negative errno after an error line.
 */
#ifndef ORNICD_CONFIG_H
#define ORNICD_CONFIG_H

#include "../capture/spec.h"
#include "../engine/cc.h"
#include "../log.h"
#include "../net/egress.h"
#include "../net/uplink.h"
#include "../packet/antispoof.h"
#include "../unix_socket.h"

#include <stdbool.h>
#include <stdint.h>

/** CONFIG_LINK_KEYS - number of keys of a link */
#define CONFIG_LINK_KEYS	5
/** CONFIG_LINK_MASK - a bit for each key of a link */
#define CONFIG_LINK_MASK	((1u << CONFIG_LINK_KEYS) - 1)

/** config_link_keys - rate, queue, kmin, kmax, pmax, in this order */
extern const char *const config_link_keys[CONFIG_LINK_KEYS];

/** enum config_access_key - keys that decide who may connect to a socket */
enum config_access_key { CONFIG_OWNER, CONFIG_GROUP, CONFIG_MODE, CONFIG_ACCESS_KEYS };

/** CONFIG_ACCESS_MASK - a bit for each of them */
#define CONFIG_ACCESS_MASK	((1u << CONFIG_ACCESS_KEYS) - 1)

/**
 * struct config_device - one device to offer
 * @path:	socket
 * @name:	name in messages, rules and commands
 * @mac:	permanent MAC address
 * @anti_spoof:	the guest cannot change the address, or send from another one
 * @promisc:	the guest may receive frames for other MAC addresses
 * @chose_anti_spoof, @chose_promisc: these are the user's choice, not the default
 * @source:	IP addresses that the guest may use
 * @vlan:	VLAN whose access port the device's port is; 0: none
 * @link:	limit of the link to the device; no limit if its rate is 0
 * @access:	who may connect to the socket; the rest is as in struct config
 * @memory:	most guest memory to be mapped, bytes; 0: the default
 * @memory_files: most memory files to be mapped; 0: the default
 * @nvdimm:	memory files may be on disks
 */
struct config_device {
	char *path;
	char *name;
	uint8_t mac[6];
	bool anti_spoof;
	bool promisc;
	bool chose_anti_spoof;
	bool chose_promisc;
	struct antispoof source;
	uint16_t vlan;
	struct egress_param link;
	struct unix_access access;
	uint64_t memory;
	uint32_t memory_files;
	bool nvdimm;
};

/** enum config_switch - a setting with a default */
enum config_switch {
	CONFIG_DEFAULT,
	CONFIG_OFF,
	CONFIG_ON,
};

/**
 * struct config_spec - a device as the user described it
 * @path:	socket
 * @mac:	MAC address; NULL: derived from @path
 * @name:	name in messages; NULL: derived from @path
 * @anti_spoof:	see struct config_device; the default is off, or on if @ip has an address
 * @promisc:	see struct config_device; the default is on
 * @ip:		IP addresses and prefixes that the guest may use, or "link-local"
 * @nips:	number of @ip
 * @vlan:	see struct config_device
 * @link:	values of config_link_keys, or NULL
 * @access:	values of the keys of enum config_access_key, or NULL
 * @memory:	most guest memory to be mapped, a number of bytes; NULL: the default
 * @memory_files: see struct config_device
 * @nvdimm:	see struct config_device
 */
struct config_spec {
	const char *path;
	const char *mac;
	const char *name;
	enum config_switch anti_spoof;
	enum config_switch promisc;
	const char *ip[ANTISPOOF_PREFIXES];
	unsigned int nips;
	uint16_t vlan;
	const char *link[CONFIG_LINK_KEYS];
	const char *access[CONFIG_ACCESS_KEYS];
	const char *memory;
	uint32_t memory_files;
	bool nvdimm;
};

/**
 * struct config_fault - a fault injection rule or a file of them
 * @text:	the rule or the file's name
 * @file:	@text names a file
 */
struct config_fault {
	char *text;
	bool file;
};

/**
 * struct config_control - the control socket
 * @path:	path; NULL: no control socket
 * @access:	who may connect to it
 */
struct config_control {
	char *path;
	struct unix_access access;
};

/**
 * struct config_form - syntax of a description "key=value[,key=value]..."
 * @what:	"device" or "port", for messages
 * @keys:	names of the keys, terminated by NULL
 * @needs:	mandatory keys, a bit per index in @keys
 * @takes:	optional keys, a bit per index in @keys
 * @text:	syntax for messages
 * @list:	index of the key that may be repeated, the last one of @keys
 * @most:	how often it may be given; 0: there is no such key
 */
struct config_form {
	const char *what;
	char *const *keys;
	unsigned int needs;
	unsigned int takes;
	const char *text;
	int list;
	unsigned int most;
};

/**
 * struct config - all settings
 * @device:	array of @ndevices devices
 * @ndevices:	number of @device
 * @port:	array of @nports uplinks
 * @nports:	number of @port
 * @capture:	array of @ncaptures captures that start with the daemon
 * @ncaptures:	number of @capture
 * @access:	who may connect to sockets of devices and ports that do not say so themselves
 * @control:	control socket
 * @untrusted:	safe defaults of devices whose guests do not trust each other
 * @cc:		congestion control
 * @fault:	array of @nfaults rules and files of rules, in the order of the user
 * @nfaults:	number of @fault
 * @spin_us:	time to poll an empty queue, us
 * @log_level:	least important level that is logged
 * @log_format:	form of log lines
 * @log_time:	log lines in text begin with the time
 * @ready_fd:	descriptor to write to once all sockets listen; -1: none
 */
struct config {
	struct config_device *device;
	unsigned int ndevices;
	struct uplink_spec *port;
	unsigned int nports;
	struct capture_spec *capture;
	unsigned int ncaptures;
	struct unix_access access;
	struct config_control control;
	bool untrusted;
	struct cc_param cc;
	struct config_fault *fault;
	unsigned int nfaults;
	uint32_t spin_us;
	enum log_level log_level;
	enum log_format log_format;
	bool log_time;
	int ready_fd;
};

/** enum config_result - what to do next */
enum config_result {
	CONFIG_RUN,	/* serve */
	CONFIG_DONE,	/* --help or --version: exit with success */
	CONFIG_BAD,	/* an error line was written */
};

/* config_init() - set the defaults */
void config_init(struct config *c);
/* config_free() - free all settings, then set the defaults */
void config_free(struct config *c);

/* config_args() - read the command line and the files that it names */
enum config_result config_args(struct config *c, int argc, char **argv);
/* config_file() - read a JSON file */
int config_file(struct config *c, const char *path);
/* config_device() - add a device described as "path=...[,key=value]..." */
int config_device(struct config *c, const char *text);
/*
 * config_untrusted() - use safe defaults for all devices, also those that are added later. A device
 * that restricts its guest must list IP addresses.
 */
int config_untrusted(struct config *c);
/*
 * config_distrust() - apply --untrusted to a device. Return: 0, or -EINVAL after an error line if it
 * must list the IP addresses of its guest.
 */
int config_distrust(struct config_device *d);
/*
 * config_device_parse() - parse the description of a device; free @d with config_device_free()
 * @numeric: reject names of users and groups, because the caller cannot wait for a name service
 */
int config_device_parse(struct config_device *d, const char *text, bool numeric);
/* config_device_copy() - copy @from to @to, which is to be freed with config_device_free() */
int config_device_copy(struct config_device *to, const struct config_device *from);
void config_device_free(struct config_device *d);
/* config_device_differs() - reject device @d if it has the path, name or address of device @o */
int config_device_differs(const struct config_device *o, const struct config_device *d);
/* config_name_of_port() - log that device @d has the name of a port. Return: -EEXIST. */
int config_name_of_port(const struct config_device *d);
/* config_add() - add a device; @spec is copied */
int config_add(struct config *c, const struct config_spec *spec);
/* config_port() - add a port described as "KIND[,key=value]..." */
int config_port(struct config *c, const char *text);
/*
 * config_port_parse() - parse the description of a port; free @spec with config_port_free()
 * @numeric: reject names of users and groups, because the caller cannot wait for a name service
 */
int config_port_parse(struct uplink_spec *spec, const char *text, bool numeric);
void config_port_free(struct uplink_spec *spec);
/* config_capture() - add a capture described as "FILE[,key=value]..." */
int config_capture(struct config *c, const char *text);
/* config_fault() - add a fault injection rule, or a file of rules */
int config_fault(struct config *c, const char *text, bool file);
void config_fault_free(struct config *c);
/*
 * config_keys() - split @rest at its commas and set @val[i] to the value of key i of @form
 *
 * @text is the whole description, for messages, and @rest the end of a copy of it, which is
 * modified: the values point into it. Further values of the key @list follow its first one in @val.
 * The caller sets @val to NULLs before.
 */
int config_keys(const struct config_form *form, const char *text, char *rest, char **val);
/* config_printable() - reject a text with control characters; @what names it in the message */
int config_printable(const char *what, const char *text);
/* config_name() - check the name of a device or port */
int config_name(const char *name);
/* config_on_off() - parse @val, the value of @key in @text; NULL leaves @out unchanged */
int config_on_off(const char *text, const char *key, const char *val, bool *out);
/* config_vlan() - parse @val, a VLAN from 1 to 4094 in @text; NULL leaves @out unchanged */
int config_vlan(const char *text, const char *val, uint16_t *out);
/*
 * config_scaled() - parse a number, which may end in a letter of @letters: the first multiplies it
 * by @unit, the second by @unit^2 and so on
 * Return: 0 or -EINVAL.
 */
int config_scaled(const char *text, const char *letters, uint64_t unit, uint64_t *out);
/* config_memory() - parse @val, bytes of guest memory of the device @text; NULL: unchanged */
int config_memory(const char *text, const char *val, uint64_t *out);
/* config_memory_files() - check the number of memory files of the device @text */
int config_memory_files(const char *text, uint64_t n);
/*
 * config_link() - parse the values @val of config_link_keys in @text, which may be NULL; without a
 * rate @out stays unchanged
 */
int config_link(const char *text, const char *const val[CONFIG_LINK_KEYS],
		struct egress_param *out);
/*
 * config_access() - parse the values @val of owner, group and mode; those that are NULL stay unchanged
 * @text: begins the message
 * @numeric: reject names of users and groups, because the caller cannot wait for a name service
 */
int config_access(const char *text, const char *const val[CONFIG_ACCESS_KEYS], bool numeric,
		  struct unix_access *out);
/* config_set_access() - set the value of one of these keys; names are resolved */
int config_set_access(struct unix_access *out, const char *text, enum config_access_key key,
		      const char *val);
/*
 * config_cc() - parse "on|off[,parameter=value]..."; parameters that are not named stay, and all of
 * them on failure
 */
int config_cc(struct cc_param *p, const char *text);
/* config_no_memory() - log that there is no memory for @what. Return: -ENOMEM. */
int config_no_memory(const char *what);
/*
 * config_set_*() - set one value from its text. Settings of the log take effect at once, so that it
 * reports later errors of the configuration in this form.
 */
int config_set_spin(struct config *c, const char *text);
int config_set_level(struct config *c, const char *text);
int config_set_log_format(struct config *c, const char *text);
void config_set_log_time(struct config *c, bool on);
int config_set_control(struct config *c, const char *text);

#endif /* ORNICD_CONFIG_H */
