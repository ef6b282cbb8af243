// SPDX-License-Identifier: GPL-2.0
/*
 * Methods on rate-limited links, which are the links of ports that have a rate.
 */
#include "method.h"

#include <string.h>

static json_t *describe(const struct switch_port *port, const struct egress *q)
{
	const struct egress_param *p = egress_param(q);
	const struct egress_stats *s = egress_stats(q);

	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "port", control_text(switch_port_name(port)),
			 "rate_kbps", (json_int_t)p->kbps, "queue", (json_int_t)p->queue,
			 "kmin", (json_int_t)p->kmin, "kmax", (json_int_t)p->kmax,
			 "pmax", (json_int_t)p->pmax, "waiting", (json_int_t)egress_depth(q),
			 "peak", (json_int_t)s->peak, "frames", (json_int_t)s->frames,
			 "bytes", (json_int_t)s->bytes, "marked", (json_int_t)s->marked,
			 "dropped", (json_int_t)s->dropped);
}

static json_t *list(struct control_call *call)
{
	struct net_switch *sw = call->daemon->engine.sw;
	struct switch_port *port = NULL;
	json_t *all;

	if (control_params(call, "{}"))
		return NULL;
	all = json_array();
	while ((port = switch_port_next(sw, port))) {
		const struct egress *q = switch_port_egress(port);

		if (q)
			json_array_append_new(all, describe(port, q));
	}
	return all;
}

/* Remove the limit of @port. Keys of a limit in @val would have no effect: they are an error. */
static json_t *unlimit(struct control_call *call, struct switch_port *port, const char *const *val)
{
	for (int i = 1; i < CONFIG_LINK_KEYS; i++)
		if (val[i])
			return control_error(call, CONTROL_PARAMS,
					     "%s=%s needs a rate, but the rate is off",
					     config_link_keys[i], val[i]);
	switch_port_limit(port, NULL);
	return control_done(call);
}

static json_t *set(struct control_call *call)
{
	const char *name, *val[CONFIG_LINK_KEYS] = { NULL };
	struct egress_param param = { 0 };
	struct switch_port *port;
	int err;

	if (control_params(call, "{s:s, s:s, s?s, s?s, s?s, s?s}", "port", &name, "rate", &val[0],
			   "queue", &val[1], "kmin", &val[2], "kmax", &val[3], "pmax", &val[4]))
		return NULL;
	port = switch_port_find(call->daemon->engine.sw, name);
	if (!port)
		return control_error(call, CONTROL_NOT_FOUND, "there is no port %s", name);
	if (!strcmp(val[0], "off"))
		return unlimit(call, port, val);
	err = config_link(name, val, &param);
	if (!err)
		err = switch_port_limit(port, &param);
	return err ? control_failed(call, err) : control_done(call);
}

const struct control_method control_link_methods[] = {
	{ "link.list", list },
	{ "link.set", set },
	{ },
};
