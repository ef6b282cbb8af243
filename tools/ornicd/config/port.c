// SPDX-License-Identifier: GPL-2.0
/*
 * Parse descriptions of ports to the outside: "KIND[,key=value]..."
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum key {
	KEY_NAME,
	KEY_IFNAME,
	KEY_PATH,
	KEY_LOCAL,
	KEY_REMOTE,
	KEY_SERVER,
	KEY_VLAN,
	KEY_RXE_FLUSH,
	KEY_ACCESS,
	KEY_LINK = KEY_ACCESS + CONFIG_ACCESS_KEYS,
	KEYS = KEY_LINK + CONFIG_LINK_KEYS,
};

static char *const keys[] = {
	"name", "ifname", "path", "local", "remote", "server", "vlan", "rxe-flush", "owner",
	"group", "mode", "rate", "queue", "kmin", "kmax", "pmax", NULL
};

/** TAKES - optional keys of every port: name, VLAN, Soft-RoCE's FLUSH, rate limit */
#define TAKES	(1 << KEY_NAME | 1 << KEY_VLAN | 1 << KEY_RXE_FLUSH | CONFIG_LINK_MASK << KEY_LINK)

/** ACCESS - optional keys of a port with a socket in the file system */
#define ACCESS		(CONFIG_ACCESS_MASK << KEY_ACCESS)
/** ACCESS_TEXT - syntax of these keys, for messages */
#define ACCESS_TEXT	"[,owner=USER][,group=GROUP][,mode=MODE]"

/** MORE - syntax of these keys, for messages */
#define MORE	"[,name=NAME][,vlan=ID][,rxe-flush=on|off][,rate=RATE...]"

/* The form of a port: mandatory keys, optional ones beside those of every port, syntax */
#define FORM(must, may, syntax)								\
	{ .what = "port", .keys = keys, .needs = (must), .takes = TAKES | (may),	\
	  .text = syntax MORE }

/**
 * struct kind - a kind of port
 * @name:	first word of the description
 * @form:	syntax of the rest
 */
static const struct kind {
	const char *name;
	struct config_form form;
} kinds[] = {
	{ "tap", FORM(1 << KEY_IFNAME, 0, "tap,ifname=NAME") },
	{ "packet", FORM(1 << KEY_IFNAME, 0, "packet,ifname=NAME") },
	{ "stream", FORM(1 << KEY_PATH, ACCESS | 1 << KEY_SERVER,
			 "stream,path=SOCKET[,server=on|off]" ACCESS_TEXT) },
	{ "dgram", FORM(1 << KEY_LOCAL | 1 << KEY_REMOTE, ACCESS,
			"dgram,local=SOCKET,remote=SOCKET" ACCESS_TEXT) },
	{ "udp", FORM(1 << KEY_LOCAL | 1 << KEY_REMOTE, 0,
		      "udp,local=HOST:PORT,remote=HOST:PORT") },
};

static const struct kind *kind_of(const char *text, const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	log_err("port \"%s\": \"%s\" is not one of tap, packet, stream, dgram, udp", text, name);
	return NULL;
}

void config_port_free(struct uplink_spec *spec)
{
	free(spec->kind);
	free(spec->name);
	free(spec->text);
	free(spec->ifname);
	free(spec->path);
	free(spec->local);
	free(spec->remote);
}

/* Return the name of a port without name=: its interface, path or local address. */
static const char *default_name(char *const *val)
{
	if (val[KEY_IFNAME])
		return val[KEY_IFNAME];
	return val[KEY_PATH] ? val[KEY_PATH] : val[KEY_LOCAL];
}

/* Copy @text, which may be NULL, to *@to. Return: false without memory. */
static bool copy(char **to, const char *text)
{
	*to = text ? strdup(text) : NULL;
	return !text || *to;
}

/* Only a socket that is created has permissions: the remote one decides about a client. */
static int port_access(const char *text, char *const *val, bool server, bool numeric,
		       struct unix_access *access)
{
	const char *const *given = (const char *const *)val + KEY_ACCESS;

	for (int i = 0; i < CONFIG_ACCESS_KEYS; i++) {
		if (!server && given[i]) {
			log_err("\"%s\": %s= is for the socket of server=on", text,
				keys[KEY_ACCESS + i]);
			return -EINVAL;
		}
	}
	return config_access(text, given, numeric, access);
}

static int port_fill(struct uplink_spec *s, const char *text, const struct kind *kind, char **val,
		     bool numeric)
{
	const char *name = val[KEY_NAME] ? val[KEY_NAME] : default_name(val);
	struct egress_param link = { 0 };
	bool server = true, rxe_flush = false;
	struct unix_access access = { 0 };
	uint16_t vlan = 0;
	int err = config_on_off(text, keys[KEY_SERVER], val[KEY_SERVER], &server);

	if (!err)
		err = config_on_off(text, keys[KEY_RXE_FLUSH], val[KEY_RXE_FLUSH], &rxe_flush);
	if (!err)
		err = config_vlan(text, val[KEY_VLAN], &vlan);
	if (!err)
		err = config_link(text, (const char *const *)val + KEY_LINK, &link);
	if (!err)
		err = config_name(name);
	if (!err)
		err = port_access(text, val, server, numeric, &access);
	if (err)
		return err;
	*s = (struct uplink_spec) {
		.client = !server, .vlan = vlan, .rxe_flush = rxe_flush, .link = link,
		.access = access
	};
	if (copy(&s->kind, kind->name) && copy(&s->text, text) &&
	    copy(&s->name, name) &&
	    copy(&s->ifname, val[KEY_IFNAME]) && copy(&s->path, val[KEY_PATH]) &&
	    copy(&s->local, val[KEY_LOCAL]) && copy(&s->remote, val[KEY_REMOTE]))
		return 0;
	config_port_free(s);
	return config_no_memory("a port's settings");
}

int config_port_parse(struct uplink_spec *spec, const char *text, bool numeric)
{
	char *line, *rest, *val[KEYS] = { NULL };
	const struct kind *kind;
	int err;

	if (config_printable("a port's description", text))
		return -EINVAL;
	line = strdup(text);
	if (!line)
		return config_no_memory("a port's settings");
	rest = strchrnul(line, ',');
	if (*rest)
		*rest++ = '\0';
	kind = kind_of(text, line);
	err = kind ? config_keys(&kind->form, text, rest, val) : -EINVAL;
	if (!err)
		err = port_fill(spec, text, kind, val, numeric);
	free(line);
	return err;
}

static int port_unique(const struct config *c, const struct uplink_spec *s)
{
	bool taken = false;

	for (unsigned int i = 0; i < c->nports; i++)
		taken |= !strcmp(c->port[i].name, s->name);
	for (unsigned int i = 0; i < c->ndevices; i++)
		taken |= !strcmp(c->device[i].name, s->name);
	if (!taken)
		return 0;
	log_err("port \"%s\": another port or device has the name %s: add name= to one", s->text,
		s->name);
	return -EINVAL;
}

int config_port(struct config *c, const char *text)
{
	struct uplink_spec spec, *all;
	int err = config_port_parse(&spec, text, false);

	if (err)
		return err;
	err = port_unique(c, &spec);
	if (err)
		goto free_spec;
	all = reallocarray(c->port, c->nports + 1, sizeof(*all));
	if (!all) {
		err = config_no_memory("a port's settings");
		goto free_spec;
	}
	c->port = all;
	all[c->nports++] = spec;
	return 0;

free_spec:
	config_port_free(&spec);
	return err;
}
