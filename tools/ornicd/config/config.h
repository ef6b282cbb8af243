/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the user asked for: command line and configuration file.
 */
#ifndef ORNICD_CONFIG_H
#define ORNICD_CONFIG_H

#include "../capture/spec.h"
#include "../engine/cc.h"
#include "../log.h"
#include "../net/egress.h"
#include "../net/uplink.h"

#include <stdbool.h>
#include <stdint.h>

/** CONFIG_LINK_KEYS - rate, queue, kmin, kmax, pmax, in this order */
#define CONFIG_LINK_KEYS	5
/** CONFIG_LINK_MASK - a bit for each */
#define CONFIG_LINK_MASK	((1u << CONFIG_LINK_KEYS) - 1)

extern const char *const config_link_keys[CONFIG_LINK_KEYS];

/**
 * struct config_device - one device to offer
 * @path:	socket
 * @name:	for messages
 * @mac:	MAC address
 * @anti_spoof:	the guest sends from this address only, and keeps it
 * @promisc:	the guest may receive frames to other stations
 * @vlan:	its port is an access port of this VLAN; 0: of none
 * @link:	rate-limited link to it, if it has a rate
 */
struct config_device {
	char *path;
	char *name;
	uint8_t mac[6];
	bool anti_spoof;
	bool promisc;
	uint16_t vlan;
	struct egress_param link;
};

/**
 * struct config_spec - a device as the user described it
 * @path:	socket
 * @mac:	MAC address; NULL: follows from @path
 * @name:	for messages; NULL: follows from @path
 * @anti_spoof:	see struct config_device
 * @promisc:	see struct config_device
 * @vlan:	see struct config_device
 * @link:	values of config_link_keys, or NULL
 */
struct config_spec {
	const char *path;
	const char *mac;
	const char *name;
	bool anti_spoof;
	bool promisc;
	uint16_t vlan;
	const char *link[CONFIG_LINK_KEYS];
};

/**
 * struct config_fault - fault injection rules
 * @text:	a rule, or the name of a file of rules
 * @file:	which
 */
struct config_fault {
	char *text;
	bool file;
};

/** CONFIG_SPEC_DEFAULT - what holds for a device unless the user says otherwise */
#define CONFIG_SPEC_DEFAULT	((struct config_spec){ .promisc = true })

/**
 * struct config_control - the control socket
 * @path:	where; NULL: none
 * @group:	who may use it beside the daemon's user, as @mode says; NULL: the daemon's own
 * @mode:	permissions of the socket
 */
struct config_control {
	char *path;
	char *group;
	unsigned int mode;
};

/**
 * struct config_form - what a user may write: "key=value[,key=value]..."
 * @what:	"device" or "port", for messages
 * @keys:	names of the keys, NULL behind the last
 * @needs:	keys that have to be there, by bit
 * @takes:	keys that may be there besides
 * @text:	the form, for messages
 */
struct config_form {
	const char *what;
	char *const *keys;
	unsigned int needs;
	unsigned int takes;
	const char *text;
};

/**
 * struct config - everything
 * @device:	@ndevices devices
 * @ndevices:	number of @device
 * @port:	@nports ports of the switch to the outside
 * @nports:	number of @port
 * @capture:	@ncaptures captures to begin with
 * @ncaptures:	number of @capture
 * @control:	control socket
 * @cc:		congestion control
 * @fault:	@nfaults rules and files of rules, in their order
 * @nfaults:	number of @fault
 * @spin_us:	how long an empty queue is watched
 * @log_level:	how much to log
 * @ready_fd:	descriptor to tell of readiness, -1 = none
 */
struct config {
	struct config_device *device;
	unsigned int ndevices;
	struct uplink_spec *port;
	unsigned int nports;
	struct capture_spec *capture;
	unsigned int ncaptures;
	struct config_control control;
	struct cc_param cc;
	struct config_fault *fault;
	unsigned int nfaults;
	uint32_t spin_us;
	enum log_level log_level;
	int ready_fd;
};

/** enum config_result - what to do next */
enum config_result {
	CONFIG_RUN,	/* serve */
	CONFIG_DONE,	/* --help or --version: exit with success */
	CONFIG_BAD,	/* an error line was written */
};

void config_init(struct config *c);
void config_free(struct config *c);

/* config_args() - command line, and the file it names */
enum config_result config_args(struct config *c, int argc, char **argv);
/* config_file() - a JSON file. Return: 0, or -EINVAL after an error line. */
int config_file(struct config *c, const char *path);
/*
 * config_device() - "path=...[,key=value]..."
 * Return: 0, or -EINVAL after an error line.
 */
int config_device(struct config *c, const char *text);
/* config_add() - a device. Return: 0, or a negative errno after an error line. */
int config_add(struct config *c, const struct config_spec *spec);
/* config_port() - "KIND[,key=value]...". Return: 0, or a negative errno after an error line. */
int config_port(struct config *c, const char *text);
/*
 * config_port_parse() - the same, of a port that need not become part of a configuration
 * Return: 0 with @spec for config_port_free(), or a negative errno after an error line.
 */
int config_port_parse(struct uplink_spec *spec, const char *text);
void config_port_free(struct uplink_spec *spec);
/* config_capture() - "FILE[,key=value]...". Return: 0, or a negative errno after an error line. */
int config_capture(struct config *c, const char *text);
/* config_fault() - a rule or a file of rules. Return: 0, or -ENOMEM after an error line. */
int config_fault(struct config *c, const char *text, bool file);
void config_fault_free(struct config *c);
/*
 * config_keys() - cut @rest, the end of a copy of @text, into values by key, in @val
 * Return: 0, or -EINVAL after an error line.
 */
int config_keys(const struct config_form *form, const char *text, char *rest, char **val);
/* config_printable() - Return: 0, or -EINVAL after an error line: @what has a control character */
int config_printable(const char *what, const char *text);
/* config_name() - of a device or port, as rules and commands name it. Return: as above. */
int config_name(const char *name);
/*
 * config_on_off() - @val, of @key in @text; NULL changes nothing
 * Return: 0, or -EINVAL after an error line.
 */
int config_on_off(const char *text, const char *key, const char *val, bool *out);
/*
 * config_vlan() - the number of a VLAN that @val in @text is; NULL changes nothing
 * Return: 0, or -EINVAL after an error line.
 */
int config_vlan(const char *text, const char *val, uint16_t *out);
/*
 * config_link() - the link that the values @val of config_link_keys in @text make, each may be
 * NULL. Without a rate @out stays as it is. Return: 0, or -EINVAL after an error line.
 */
int config_link(const char *text, const char *const val[CONFIG_LINK_KEYS],
		struct egress_param *out);
/*
 * config_cc() - "on|off[,parameter=value]...": what is not named stays
 * Return: 0, or -EINVAL after an error line, and nothing changed.
 */
int config_cc(struct cc_param *p, const char *text);
/* config_set_*() - Return: 0, or a negative errno after an error line. */
int config_set_spin(struct config *c, const char *text);
int config_set_level(struct config *c, const char *text);
int config_set_control(struct config *c, const char *text);
int config_set_control_mode(struct config *c, const char *text);
int config_set_control_group(struct config *c, const char *text);

#endif /* ORNICD_CONFIG_H */
