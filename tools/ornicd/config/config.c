// SPDX-License-Identifier: GPL-2.0
/*
 * Read the command line and descriptions of devices. Every error is one line that names its cause.
 */
#include "config.h"

#include "../net/switch.h"
#include "../net/vlan.h"

#include "../version.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define CONFIG_SPIN_US		5
#define CONFIG_MAX_SPIN_US	1000000
#define CONFIG_MAX_PATH		(sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

static const char usage[] =
	"Usage: ornicd --device path=SOCKET[,KEY=VALUE]... [OPTION]...\n"
	"Offer RDMA network devices to virtual machines over vfio-user.\n"
	"\n"
	"  -d, --device SPEC     a device; may be given more than once\n"
	"  -p, --port SPEC       a port of the virtual switch to the outside; more than once\n"
	"  -w, --capture SPEC    write the switch's packets to a pcapng file; more than once\n"
	"      --cc SPEC         congestion control: on (default) or off, and PARAMETER=VALUE\n"
	"  -f, --faults FILE     fault injection rules; more than once\n"
	"  -c, --config FILE     JSON file with devices and settings\n"
	"  -s, --spin-us N       poll an empty queue for N microseconds (default 5)\n"
	"      --socket-owner U  user who owns the sockets of devices and ports\n"
	"      --socket-group G  their group\n"
	"      --socket-mode M   their permissions, octal (default 0600)\n"
	"  -C, --control SOCKET  accept commands of ornicctl at this socket\n"
	"      --control-owner U user who owns that socket\n"
	"      --control-group G group of that socket\n"
	"      --control-mode M  permissions of that socket, octal (default 0600)\n"
	"  -u, --untrusted       guests do not trust each other: anti-spoof=on,promisc=off is the\n"
	"                        default of all devices, and each has to have ip=\n"
	"  -l, --log-level L     error, warning, info (default) or debug\n"
	"      --log-format F    text (default), or json: an object on each line\n"
	"      --log-time S      on: lines in text begin with the time (default off)\n"
	"  -r, --ready-fd N      write a newline to descriptor N once all sockets listen\n"
	"  -V, --version         print the version and exit\n"
	"  -h, --help            print this and exit\n"
	"\n"
	"Keys of a device, beside path:\n"
	"  mac=MAC               permanent MAC address\n"
	"  name=NAME             name in messages\n"
	"  anti-spoof=on|off     on: the guest cannot send from another MAC address (default\n"
	"                        off), and with ip= neither from another IP address\n"
	"  ip=ADDRESS[/LENGTH]   an IP address or prefix that the guest may use, beside the\n"
	"                        link-local one of its MAC; more than once; ip=link-local: no\n"
	"                        other; includes anti-spoof=on\n"
	"  promisc=on|off        off: the guest cannot receive frames for others (default on)\n"
	"  memory=BYTES          most guest memory that the device maps (default 1T)\n"
	"  memory-files=N        most memory files that it maps (default 512)\n"
	"  nvdimm=on|off         on: these files may be on disks; one that does not answer stops\n"
	"                        all devices of this daemon (default off)\n"
	"\n"
	"Keys of a device, and of a port with a socket of its own (stream, dgram):\n"
	"  owner=USER,group=GROUP,mode=MODE      who may connect to the socket; defaults: see\n"
	"                        --socket-owner, --socket-group and --socket-mode\n"
	"\n"
	"Keys of a device and of a port:\n"
	"  vlan=ID               make it an access port of a VLAN: its frames have no tag, but\n"
	"                        have one at ports without vlan=; other VLANs are not reached\n"
	"\n"
	"Keys of a device and of a port that limit the rate of the link to it:\n"
	"  rate=RATE             bit/s, for example 100M; frames to it wait in a queue\n"
	"  queue=BYTES           most bytes in the queue (default 512K); others are dropped\n"
	"  kmin=BYTES,kmax=BYTES,pmax=PERCENT    queue from which frames are marked (ECN), from\n"
	"                        which all are, and how many are just before that (defaults:\n"
	"                        bytes sent in 40 us and in 1.6 ms, 20)\n"
	"\n"
	"Ports (and with each name=NAME, and rxe-flush=on for Soft-RoCE's FLUSH):\n"
	"  tap,ifname=NAME       a tap interface of this host, created if it does not exist\n"
	"  packet,ifname=NAME    an existing network interface\n"
	"  stream,path=SOCKET[,server=on|off]    a socket for QEMU's -netdev stream\n"
	"  dgram,local=SOCKET,remote=SOCKET      sockets for QEMU's -netdev dgram\n"
	"  udp,local=HOST:PORT,remote=HOST:PORT  a tunnel to another ornicd, or to QEMU\n"
	"\n"
	"A capture is FILE or - for standard output, and keys:\n"
	"  device=NAME           capture this device's port only; more than once\n"
	"  port=NAME             capture this port to the outside only; more than once\n"
	"  qp=N                  capture packets of queue pair N only\n"
	"  snaplen=SIZE          keep only the first bytes of each frame\n"
	"  limit=SIZE            stop before the file is larger\n"
	"  buffer=SIZE           memory for frames not yet written (default 32M)\n"
	"\n"
	"SIGTERM, SIGINT and SIGQUIT end the daemon and remove its sockets. See ornicd(8).\n";

void config_init(struct config *c)
{
	*c = (struct config) {
		.spin_us = CONFIG_SPIN_US,
		.log_level = LOG_INFO,
		.ready_fd = -1,
	};
	cc_defaults(&c->cc);
}

void config_free(struct config *c)
{
	for (unsigned int i = 0; i < c->ndevices; i++)
		config_device_free(&c->device[i]);
	free(c->device);
	for (unsigned int i = 0; i < c->nports; i++)
		config_port_free(&c->port[i]);
	free(c->port);
	for (unsigned int i = 0; i < c->ncaptures; i++)
		capture_spec_free(&c->capture[i]);
	free(c->capture);
	free(c->control.path);
	config_fault_free(c);
	config_init(c);
}

/* Parse six hexadecimal bytes with colons. Return: 0 or -EINVAL. */
static int mac_parse(const char *text, uint8_t mac[6])
{
	for (int i = 0; i < 6; i++) {
		char byte[3] = { text[0], text[0] ? text[1] : 0, 0 };

		if (!isxdigit((unsigned char)byte[0]) || !isxdigit((unsigned char)byte[1]))
			return -EINVAL;
		mac[i] = strtoul(byte, NULL, 16);
		text += 2;
		if (*text != (i < 5 ? ':' : '\0'))
			return -EINVAL;
		text++;
	}
	return 0;
}

/* Derive a locally administered address from the path (FNV-1a), so that it is stable. */
static void mac_derive(const char *path, uint8_t mac[6])
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *path; path++)
		h = (h ^ (uint8_t)*path) * 0x100000001b3ull;
	mac[0] = 0x02;
	for (int i = 1; i < 6; i++)
		mac[i] = h >> 8 * (i - 1);
}

static int device_mac(struct config_device *d, const char *mac)
{
	static const uint8_t zero[6];

	if (!mac) {
		mac_derive(d->path, d->mac);
		return 0;
	}
	if (mac_parse(mac, d->mac)) {
		log_err("device %s: mac %s is not an address such as 02:00:00:00:00:01", d->path,
			mac);
		return -EINVAL;
	}
	if (d->mac[0] & 1 || !memcmp(d->mac, zero, sizeof(zero))) {
		log_err("device %s: mac %s is %s; use a unicast address", d->path, mac,
			d->mac[0] & 1 ? "a multicast address" : "zero");
		return -EINVAL;
	}
	return 0;
}

/* Return a copy of the name; without one, the last part of the path without ".sock". */
static char *device_name(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t len = strlen(base);

	if (name)
		return strdup(name);
	if (len > 5 && !strcmp(base + len - 5, ".sock"))
		len -= 5;
	return strndup(base, len);
}

void config_device_free(struct config_device *d)
{
	free(d->path);
	free(d->name);
	*d = (struct config_device) { 0 };
}

int config_device_copy(struct config_device *to, const struct config_device *from)
{
	*to = *from;
	to->path = strdup(from->path);
	to->name = strdup(from->name);
	if (to->path && to->name)
		return 0;
	config_device_free(to);
	return config_no_memory("a device's settings");
}

int config_device_differs(const struct config_device *o, const struct config_device *d)
{
	if (!strcmp(o->path, d->path)) {
		log_err("path %s is given to two devices", d->path);
		return -EEXIST;
	}
	if (!strcmp(o->name, d->name)) {
		log_err("devices %s and %s have the same name, %s: add name= to one", o->path,
			d->path, d->name);
		return -EEXIST;
	}
	if (!memcmp(o->mac, d->mac, sizeof(d->mac))) {
		log_err("devices %s and %s have the same mac, %02x:%02x:%02x:%02x:%02x:%02x: change one",
			o->path, d->path, d->mac[0], d->mac[1], d->mac[2], d->mac[3], d->mac[4],
			d->mac[5]);
		return -EEXIST;
	}
	return 0;
}

int config_name_of_port(const struct config_device *d)
{
	log_err("device %s has the name of a port, %s: add name= to one", d->path, d->name);
	return -EEXIST;
}

static int device_unique(const struct config *c, const struct config_device *d)
{
	int err = 0;

	for (unsigned int i = 0; i < c->ndevices && !err; i++)
		err = config_device_differs(&c->device[i], d);
	for (unsigned int i = 0; i < c->nports && !err; i++)
		if (!strcmp(c->port[i].name, d->name))
			err = config_name_of_port(d);
	return err;
}

static int device_append(struct config *c, const struct config_device *d)
{
	struct config_device *all = reallocarray(c->device, c->ndevices + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	c->device = all;
	c->device[c->ndevices++] = *d;
	return 0;
}

int config_no_memory(const char *what)
{
	log_err("out of memory for %s", what);
	return -ENOMEM;
}

int config_printable(const char *what, const char *text)
{
	for (const char *at = text; *at; at++) {
		if (iscntrl((unsigned char)*at)) {
			log_err("%s has a control character in it", what);
			return -EINVAL;
		}
	}
	return 0;
}

int config_name(const char *name)
{
	if (strlen(name) < SWITCH_PORT_NAME)
		return config_printable("a name", name);
	log_err("the name %.40s... is longer than %d characters: add name= to it", name,
		SWITCH_PORT_NAME - 1);
	return -EINVAL;
}

/* Set the IP addresses that the guest may use. Link-local means only the one that it always has. */
static int device_source(struct config_device *d, const struct config_spec *spec)
{
	if (spec->nips && spec->anti_spoof == CONFIG_OFF) {
		log_err("device %s: ip= has no effect with anti-spoof=off; remove one of them",
			d->path);
		return -EINVAL;
	}
	d->source.ip = spec->nips;
	for (unsigned int i = 0; i < spec->nips; i++) {
		const char *why;

		if (!strcmp(spec->ip[i], "link-local"))
			continue;
		why = antispoof_parse(&d->source.prefix[d->source.n++], spec->ip[i]);
		if (why) {
			log_err("device %s: ip=%s is %s", d->path, spec->ip[i], why);
			return -EINVAL;
		}
	}
	return 0;
}

/* A device that checks no IP addresses is not what the user of --untrusted asked for. */
int config_distrust(struct config_device *d)
{
	if (!d->chose_anti_spoof)
		d->anti_spoof = true;
	if (!d->chose_promisc)
		d->promisc = false;
	if (!d->anti_spoof || d->source.ip)
		return 0;
	log_err("device %s: with --untrusted list the IP addresses that its guest may use, each as ip=ADDRESS, or only ip=link-local; or trust it with anti-spoof=off",
		d->path);
	return -EINVAL;
}

int config_untrusted(struct config *c)
{
	int err = 0;

	c->untrusted = true;
	for (unsigned int i = 0; i < c->ndevices && !err; i++)
		err = config_distrust(&c->device[i]);
	return err;
}

/* Fill in @d, to be freed with config_device_free() unless this fails. */
static int device_fill(struct config_device *d, const struct config_spec *spec, bool numeric)
{
	const char *path = spec->path;
	int err;

	if (!*path || (spec->name && !*spec->name)) {
		log_err("a device needs a path, and its name must not be empty");
		return -EINVAL;
	}
	if (strlen(path) > CONFIG_MAX_PATH) {
		log_err("device path %.40s... is longer than %zu characters", path,
			CONFIG_MAX_PATH);
		return -EINVAL;
	}
	*d = (struct config_device) {
		.path = strdup(path),
		.name = device_name(path, spec->name),
		.anti_spoof = spec->nips || spec->anti_spoof == CONFIG_ON,
		.promisc = spec->promisc != CONFIG_OFF,
		.chose_anti_spoof = spec->anti_spoof,
		.chose_promisc = spec->promisc,
		.vlan = spec->vlan,
		.memory_files = spec->memory_files,
		.nvdimm = spec->nvdimm,
	};
	err = d->path && d->name ? config_name(d->name) :
				   config_no_memory("a device's settings");
	if (!err)
		err = config_printable("a device's path", path);
	if (!err)
		err = device_mac(d, spec->mac);
	if (!err)
		err = device_source(d, spec);
	if (!err)
		err = config_link(path, spec->link, &d->link);
	if (!err)
		err = config_memory(path, spec->memory, &d->memory);
	if (!err)
		err = config_access(path, spec->access, numeric, &d->access);
	if (err)
		config_device_free(d);
	return err;
}

/* Add @d, whose strings then belong to @c, or free it. */
static int device_add(struct config *c, struct config_device *d)
{
	int err = device_unique(c, d);

	if (!err && c->untrusted)
		err = config_distrust(d);
	if (!err && device_append(c, d))
		err = config_no_memory("a device's settings");
	if (err)
		config_device_free(d);
	return err;
}

int config_add(struct config *c, const struct config_spec *spec)
{
	struct config_device d;
	int err = device_fill(&d, spec, false);

	return err ? err : device_add(c, &d);
}

int config_on_off(const char *text, const char *key, const char *val, bool *out)
{
	if (!val)
		return 0;
	*out = !strcmp(val, "on");
	if (*out || !strcmp(val, "off"))
		return 0;
	log_err("\"%s\": %s must be on or off", text, key);
	return -EINVAL;
}

int config_capture(struct config *c, const char *text)
{
	struct capture_spec *all = reallocarray(c->capture, c->ncaptures + 1, sizeof(*all));
	char why[128];
	int err;

	if (!all)
		return config_no_memory("a capture's settings");
	c->capture = all;
	err = capture_spec_parse(&all[c->ncaptures], text, why, sizeof(why));
	if (err)
		log_err("capture \"%s\": %s", text, why);
	else
		c->ncaptures++;
	return err;
}

enum device_key {
	PATH, MAC, NAME, ANTI_SPOOF, PROMISC, VLAN, MEMORY, MEMORY_FILES, NVDIMM, ACCESS,
	LINK = ACCESS + CONFIG_ACCESS_KEYS, IP = LINK + CONFIG_LINK_KEYS,
	KEYS = IP + ANTISPOOF_PREFIXES
};

static char *const device_keys[] = {
	"path", "mac", "name", "anti-spoof", "promisc", "vlan", "memory", "memory-files", "nvdimm",
	"owner", "group", "mode", "rate", "queue", "kmin", "kmax", "pmax", "ip", NULL
};

static const struct config_form device_form = {
	.what = "device",
	.keys = device_keys,
	.needs = 1 << PATH,
	.takes = 1 << MAC | 1 << NAME | 1 << ANTI_SPOOF | 1 << PROMISC | 1 << VLAN | 1 << MEMORY |
		 1 << MEMORY_FILES | 1 << NVDIMM | CONFIG_ACCESS_MASK << ACCESS |
		 CONFIG_LINK_MASK << LINK | 1 << IP,
	.text = "path=SOCKET[,mac=MAC][,name=NAME][,anti-spoof=on|off][,ip=ADDRESS]...[,KEY=...]",
	.list = IP,
	.most = ANTISPOOF_PREFIXES,
};

static int number_parse(const char *text, uint32_t max, uint32_t *out)
{
	unsigned long v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *end || v > max)
		return -EINVAL;
	*out = v;
	return 0;
}

static int device_memory_files(const char *text, const char *val, uint32_t *out)
{
	return number_parse(val, UINT32_MAX, out) ? config_memory_files(text, 0) :
						    config_memory_files(text, *out);
}

/* Parse a switch of a device that may be missing. */
static int device_switch(const char *text, const char *key, const char *val,
			 enum config_switch *out)
{
	bool on;
	int err = config_on_off(text, key, val, &on);

	if (!err && val)
		*out = on ? CONFIG_ON : CONFIG_OFF;
	return err;
}

int config_device_parse(struct config_device *d, const char *text, bool numeric)
{
	struct config_spec spec = { 0 };
	char *copy = strdup(text), *val[KEYS] = { NULL };
	int err = copy ? config_keys(&device_form, text, copy, val) :
			 config_no_memory("a device's settings");

	spec.path = val[PATH];
	spec.mac = val[MAC];
	spec.name = val[NAME];
	for (int i = 0; i < CONFIG_LINK_KEYS; i++)
		spec.link[i] = val[LINK + i];
	for (int i = 0; i < CONFIG_ACCESS_KEYS; i++)
		spec.access[i] = val[ACCESS + i];
	while (spec.nips < ANTISPOOF_PREFIXES && val[IP + spec.nips]) {
		spec.ip[spec.nips] = val[IP + spec.nips];
		spec.nips++;
	}
	if (!err)
		err = device_switch(text, "anti-spoof", val[ANTI_SPOOF], &spec.anti_spoof);
	if (!err)
		err = device_switch(text, "promisc", val[PROMISC], &spec.promisc);
	if (!err)
		err = config_vlan(text, val[VLAN], &spec.vlan);
	spec.memory = val[MEMORY];
	if (!err && val[MEMORY_FILES])
		err = device_memory_files(text, val[MEMORY_FILES], &spec.memory_files);
	if (!err)
		err = config_on_off(text, "nvdimm", val[NVDIMM], &spec.nvdimm);
	if (!err)
		err = device_fill(d, &spec, numeric);
	free(copy);
	return err;
}

int config_device(struct config *c, const char *text)
{
	struct config_device d;
	int err = config_device_parse(&d, text, false);

	return err ? err : device_add(c, &d);
}

int config_vlan(const char *text, const char *val, uint16_t *out)
{
	uint32_t id = 0;

	if (!val)
		return 0;
	if (number_parse(val, VLAN_MAX_ID, &id) || !id) {
		log_err("\"%s\": vlan=%s is not a number from 1 to %d", text, val, VLAN_MAX_ID);
		return -EINVAL;
	}
	*out = id;
	return 0;
}

int config_set_spin(struct config *c, const char *text)
{
	if (!number_parse(text, CONFIG_MAX_SPIN_US, &c->spin_us))
		return 0;
	log_err("spin time \"%s\" is not a number from 0 to %d", text, CONFIG_MAX_SPIN_US);
	return -EINVAL;
}

/* Return the index of @text in @n @names, or @n. */
static size_t find_name(const char *const names[], size_t n, const char *text)
{
	size_t i;

	for (i = 0; i < n && strcmp(text, names[i]); i++)
		;
	return i;
}

static void apply_log(const struct config *c)
{
	log_setup(c->log_level, c->log_time);
	log_set_format(c->log_format);
}

int config_set_level(struct config *c, const char *text)
{
	static const char *const names[] = {
		[LOG_ERR] = "error",
		[LOG_WARN] = "warning",
		[LOG_INFO] = "info",
		[LOG_DEBUG] = "debug",
	};
	const size_t n = sizeof(names) / sizeof(names[0]);
	size_t level = find_name(names, n, text);

	if (level == n) {
		log_err("log level \"%s\" is not one of error, warning, info, debug", text);
		return -EINVAL;
	}
	c->log_level = level;
	apply_log(c);
	return 0;
}

int config_set_log_format(struct config *c, const char *text)
{
	static const char *const names[] = { [LOG_TEXT] = "text", [LOG_JSON] = "json" };
	const size_t n = sizeof(names) / sizeof(names[0]);
	size_t format = find_name(names, n, text);

	if (format == n) {
		log_err("log format \"%s\" is not text or json", text);
		return -EINVAL;
	}
	c->log_format = format;
	apply_log(c);
	return 0;
}

void config_set_log_time(struct config *c, bool on)
{
	c->log_time = on;
	apply_log(c);
}

static int config_log_time(struct config *c, const char *text)
{
	bool on = c->log_time;
	int err = config_on_off(text, "--log-time", text, &on);

	if (!err)
		config_set_log_time(c, on);
	return err;
}

static int config_ready_fd(struct config *c, const char *text)
{
	uint32_t fd;

	if (number_parse(text, 1u << 20, &fd)) {
		log_err("ready descriptor \"%s\" is not a number", text);
		return -EINVAL;
	}
	if (fcntl(fd, F_GETFD) < 0) {
		log_err("ready descriptor %u is not open: the program that starts the daemon must open it",
			fd);
		return -EINVAL;
	}
	c->ready_fd = fd;
	return 0;
}

int config_set_control(struct config *c, const char *text)
{
	if (strlen(text) > CONFIG_MAX_PATH) {
		log_err("control socket %s is longer than %zu characters", text, CONFIG_MAX_PATH);
		return -EINVAL;
	}
	if (!*text) {
		log_err("the control socket's path must not be empty");
		return -EINVAL;
	}
	free(c->control.path);
	c->control.path = strdup(text);
	return c->control.path ? 0 : config_no_memory("the control socket's path");
}

/* Options that have only a long name */
enum {
	OPT_CC = 0x100,
	OPT_SOCKET,
	OPT_CONTROL = OPT_SOCKET + CONFIG_ACCESS_KEYS,
	OPT_LOG_FORMAT = OPT_CONTROL + CONFIG_ACCESS_KEYS,
	OPT_LOG_TIME,
};

/* Report an unknown option: in a word of several short options it is in optopt, else @word. */
static void unknown_option(const char *word)
{
	if (optopt && strncmp(word, "--", 2))
		log_err("unknown option -%c; see ornicd --help", optopt);
	else
		log_err("unknown option %s; see ornicd --help", word);
}

/*
 * Process option @opt with value @arg, or an error of getopt_long(), which has just read @word.
 * Return: 0, or an errno after an error line.
 */
static int config_option(struct config *c, int opt, const char *arg, const char *word)
{
	switch (opt) {
	case 'd':
		return config_device(c, arg);
	case 'p':
		return config_port(c, arg);
	case 'w':
		return config_capture(c, arg);
	case 'f':
		return config_fault(c, arg, true);
	case 'c':
		return config_file(c, arg);
	case OPT_CC:
		return config_cc(&c->cc, arg);
	case 'u':
		return config_untrusted(c);
	case 's':
		return config_set_spin(c, arg);
	case 'l':
		return config_set_level(c, arg);
	case OPT_LOG_FORMAT:
		return config_set_log_format(c, arg);
	case OPT_LOG_TIME:
		return config_log_time(c, arg);
	case 'r':
		return config_ready_fd(c, arg);
	case 'C':
		return config_set_control(c, arg);
	case OPT_SOCKET + CONFIG_OWNER:
	case OPT_SOCKET + CONFIG_GROUP:
	case OPT_SOCKET + CONFIG_MODE:
		return config_set_access(&c->access, "sockets", opt - OPT_SOCKET, arg);
	case OPT_CONTROL + CONFIG_OWNER:
	case OPT_CONTROL + CONFIG_GROUP:
	case OPT_CONTROL + CONFIG_MODE:
		return config_set_access(&c->control.access, "control socket", opt - OPT_CONTROL,
					 arg);
	case ':':
		log_err("option %s needs a value; see ornicd --help", word);
		return -EINVAL;
	default:
		unknown_option(word);
		return -EINVAL;
	}
}

static enum config_result config_check(const struct config *c, int argc, char **argv)
{
	if (optind < argc) {
		log_err("unexpected argument \"%s\"; see ornicd --help", argv[optind]);
		return CONFIG_BAD;
	}
	if (!c->ndevices && !c->control.path) {
		log_err("no device: give at least one --device path=SOCKET, a --config file with devices, or --control SOCKET to add devices later");
		return CONFIG_BAD;
	}
	return CONFIG_RUN;
}

enum config_result config_args(struct config *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "port", required_argument, NULL, 'p' },
		{ "capture", required_argument, NULL, 'w' },
		{ "faults", required_argument, NULL, 'f' },
		{ "config", required_argument, NULL, 'c' },
		{ "cc", required_argument, NULL, OPT_CC },
		{ "untrusted", no_argument, NULL, 'u' },
		{ "spin-us", required_argument, NULL, 's' },
		{ "log-level", required_argument, NULL, 'l' },
		{ "log-format", required_argument, NULL, OPT_LOG_FORMAT },
		{ "log-time", required_argument, NULL, OPT_LOG_TIME },
		{ "ready-fd", required_argument, NULL, 'r' },
		{ "control", required_argument, NULL, 'C' },
		{ "control-owner", required_argument, NULL, OPT_CONTROL + CONFIG_OWNER },
		{ "control-group", required_argument, NULL, OPT_CONTROL + CONFIG_GROUP },
		{ "control-mode", required_argument, NULL, OPT_CONTROL + CONFIG_MODE },
		{ "socket-owner", required_argument, NULL, OPT_SOCKET + CONFIG_OWNER },
		{ "socket-group", required_argument, NULL, OPT_SOCKET + CONFIG_GROUP },
		{ "socket-mode", required_argument, NULL, OPT_SOCKET + CONFIG_MODE },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	optind = 0;
	while ((opt = getopt_long(argc, argv, ":d:p:w:f:c:us:l:r:C:Vh", options, NULL)) >= 0) {
		switch (opt) {
		case 'V':
			printf("ornicd %s\n", ORNICD_VERSION);
			return CONFIG_DONE;
		case 'h':
			fputs(usage, stdout);
			return CONFIG_DONE;
		}
		if (config_option(c, opt, optarg, argv[optind - 1]))
			return CONFIG_BAD;
	}
	return config_check(c, argc, argv);
}
