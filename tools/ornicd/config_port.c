// SPDX-License-Identifier: GPL-2.0
/*
 * Ports of the switch that lead outside: "KIND[,key=value]..."
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum key {
	KEY_NAME,
	KEY_IFNAME,
	KEY_PATH,
	KEY_LOCAL,
	KEY_REMOTE,
	KEY_SERVER,
	KEY_LINK,
	KEYS = KEY_LINK + CONFIG_LINK_KEYS,
};

static char *const keys[] = {
	"name", "ifname", "path", "local", "remote", "server", "rate", "queue", "kmin", "kmax",
	"pmax", NULL
};

/* Keys that every kind takes */
#define KEYS_ALL	(1 << KEY_NAME | ((1 << CONFIG_LINK_KEYS) - 1) << KEY_LINK)

/**
 * struct kind - a kind of port
 * @name:	its name
 * @needs:	keys that have to be there, by bit; the first of them is its default name
 * @takes:	keys that may be there besides
 * @form:	for messages
 */
static const struct kind {
	const char *name;
	unsigned int needs;
	unsigned int takes;
	const char *form;
} kinds[] = {
	{ "tap", 1 << KEY_IFNAME, 0, "tap,ifname=NAME" },
	{ "packet", 1 << KEY_IFNAME, 0, "packet,ifname=NAME" },
	{ "stream", 1 << KEY_PATH, 1 << KEY_SERVER, "stream,path=SOCKET[,server=on|off]" },
	{ "dgram", 1 << KEY_LOCAL | 1 << KEY_REMOTE, 0, "dgram,local=SOCKET,remote=SOCKET" },
	{ "udp", 1 << KEY_LOCAL | 1 << KEY_REMOTE, 0, "udp,local=HOST:PORT,remote=HOST:PORT" },
};

static const struct kind *kind_of(const char *text, const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	log_err("port \"%s\": \"%s\" is not one of tap, packet, stream, dgram, udp", text, name);
	return NULL;
}

static int parse_keys(const char *text, char *rest, const struct kind *kind, char **val)
{
	while (*rest) {
		char *v;
		int key = getsubopt(&rest, keys, &v);

		if (key < 0 || !v || !*v ||
		    !((kind->needs | kind->takes | KEYS_ALL) & 1 << key)) {
			log_err("port \"%s\": \"%s\" is not understood; the form is %s[,name=NAME][,rate=RATE...]",
				text, key < 0 ? v : keys[key], kind->form);
			return -EINVAL;
		}
		if (val[key]) {
			log_err("port \"%s\": %s is given twice", text, keys[key]);
			return -EINVAL;
		}
		val[key] = v;
	}
	for (int key = 0; key < KEYS; key++) {
		if (kind->needs & 1 << key && !val[key]) {
			log_err("port \"%s\": %s= is missing; the form is %s[,name=NAME]", text,
				keys[key], kind->form);
			return -EINVAL;
		}
	}
	return 0;
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

void config_port_free(struct uplink_spec *spec)
{
	free(spec->kind);
	free(spec->name);
	free(spec->ifname);
	free(spec->path);
	free(spec->local);
	free(spec->remote);
}

/* Without a name: what the port leads to */
static const char *default_name(char *const *val)
{
	if (val[KEY_IFNAME])
		return val[KEY_IFNAME];
	return val[KEY_PATH] ? val[KEY_PATH] : val[KEY_LOCAL];
}

static int port_append(struct config *c, const char *text, const struct kind *kind, char **val)
{
	const char *name = val[KEY_NAME] ? val[KEY_NAME] : default_name(val);
	struct uplink_spec *all, *s;
	struct egress_param link = { 0 };
	bool server = true;
	int err = config_on_off(text, keys[KEY_SERVER], val[KEY_SERVER], &server);

	if (!err)
		err = config_link(text, (const char *const *)val + KEY_LINK, &link);
	if (err)
		return err;

	for (unsigned int i = 0; i < c->nports; i++) {
		if (!strcmp(c->port[i].name, name)) {
			log_err("port \"%s\": another port has the name %s: add name= to one", text,
				name);
			return -EINVAL;
		}
	}
	all = reallocarray(c->port, c->nports + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	c->port = all;
	s = &all[c->nports];
	*s = (struct uplink_spec) {
		.kind = strdup(kind->name),
		.name = strdup(name),
		.ifname = copy(val[KEY_IFNAME]),
		.path = copy(val[KEY_PATH]),
		.local = copy(val[KEY_LOCAL]),
		.remote = copy(val[KEY_REMOTE]),
		.client = !server,
		.link = link,
	};
	c->nports++;
	return 0;
}

int config_port(struct config *c, const char *text)
{
	char *line = strdup(text), *rest = line, *val[KEYS] = { NULL };
	const struct kind *kind;
	int err;

	if (!line)
		return -ENOMEM;
	rest = strchrnul(line, ',');
	if (*rest)
		*rest++ = '\0';
	kind = kind_of(text, line);
	err = kind ? parse_keys(text, rest, kind, val) : -EINVAL;
	if (!err)
		err = port_append(c, text, kind, val);
	free(line);
	return err;
}
