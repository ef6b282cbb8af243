// SPDX-License-Identifier: GPL-2.0
/*
 * Methods on congestion control.
 */
#include "method.h"

#include "../engine/qp.h"

/* Most queue pairs in an answer; others are only counted. */
#define QPS_MAX		1000

static json_t *params(const struct cc_param *p)
{
	json_t *all = json_object();

	for (int i = 0; i < CC_PARAM_COUNT; i++)
		json_object_set_new(all, cc_ranges[i].name, json_integer(p->v[i]));
	return all;
}

static json_t *describe(const struct qp *qp)
{
	return json_pack("{s:o, s:I, s:I, s:I, s:f}", "device", control_text(qp->dev->name),
			 "qpn", (json_int_t)qp->wire_qpn, "rate_kbps", (json_int_t)qp->cc.rate,
			 "target_kbps", (json_int_t)qp->cc.target,
			 "alpha", (double)qp->cc.alpha / CC_ONE);
}

/*
 * Add the rate-limited queue pairs of @dev to @all, at most *@left of them, which is updated; count
 * the others in *@more.
 */
static void add_held(const struct device *dev, json_t *all, uint32_t *left, json_int_t *more)
{
	const struct qp *qp;
	uint32_t n;

	for (n = 0; (qp = table_next(&dev->qps, &n)); n++) {
		if (!qp->cc.limiting)
			continue;
		if (!*left) {
			++*more;
			continue;
		}
		--*left;
		json_array_append_new(all, describe(qp));
	}
}

static json_t *show(struct control_call *call)
{
	const struct engine *e = &call->daemon->engine;
	uint32_t left = QPS_MAX;
	const struct device *dev;
	json_int_t more = 0;
	json_t *qps;

	if (control_params(call, "{}"))
		return NULL;
	qps = json_array();
	TAILQ_FOREACH(dev, &e->devices, link)
		add_held(dev, qps, &left, &more);
	return json_pack("{s:b, s:o, s:o, s:I}", "on", e->cc.on, "params", params(&e->cc), "qps",
			 qps, "more", more);
}

static json_t *set(struct control_call *call)
{
	struct engine *e = &call->daemon->engine;
	const char *spec;
	int err;

	if (control_params(call, "{s:s}", "spec", &spec))
		return NULL;
	err = config_cc(&e->cc, spec);
	if (err)
		return control_failed(call, err);
	cc_changed(e);
	return control_done(call);
}

const struct control_method control_cc_methods[] = {
	{ "cc.show", show },
	{ "cc.set", set },
	{ },
};
