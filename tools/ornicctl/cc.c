// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl cc: show and change congestion control.
 */
#include "ornicctl.h"
#include "table.h"

#include <stdio.h>

static int print_params(const json_t *cc)
{
	const char *name;
	json_t *value;
	struct table t;

	printf("congestion control is %s\n\n", ctl_is(cc, "on") ? "on" : "off");
	table_head(&t, "PARAMETER <VALUE");
	json_object_foreach(json_object_get(cc, "params"), name, value) {
		table_cell(&t, "%s", name);
		table_cell(&t, "%lld", (long long)json_integer_value(value));
	}
	return table_print(&t);
}

static int print_qps(const json_t *cc)
{
	const json_t *qps = json_object_get(cc, "qps"), *qp;
	struct table t;
	size_t i;
	int ret;

	if (!json_array_size(qps))
		return CTL_OK;
	putchar('\n');
	table_head(&t, "DEVICE <QPN <RATE-KBPS <TARGET-KBPS <ALPHA");
	json_array_foreach(qps, i, qp) {
		table_cell(&t, "%s", ctl_text(qp, "device"));
		table_cell(&t, "%lld", (long long)ctl_int(qp, "qpn"));
		table_cell(&t, "%lld", (long long)ctl_int(qp, "rate_kbps"));
		table_cell(&t, "%lld", (long long)ctl_int(qp, "target_kbps"));
		table_cell(&t, "%.3f", json_real_value(json_object_get(qp, "alpha")));
	}
	ret = table_print(&t);
	if (ctl_int(cc, "more"))
		printf("and %lld more\n", (long long)ctl_int(cc, "more"));
	return ret;
}

static int cc_show(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *cc = ctl_call(ctl, "cc.show", NULL);
	int ret = CTL_OK;

	(void)args;
	if (cc && !ctl->json)
		ret = print_params(cc) ?: print_qps(cc);
	return ctl_done(ctl, cc) ?: ret;
}

static int cc_set(struct ctl *ctl, const struct ctl_args *args)
{
	return ctl_done(ctl, ctl_call(ctl, "cc.set", "{s:s}", "spec", args->word[0]));
}

static const struct ctl_verb verbs[] = {
	{
		.name = "show", .args = "", .run = cc_show,
		.summary = "congestion control, its parameters, and rate-limited queue pairs",
	},
	{
		.name = "set", .args = "SPEC", .nargs = 1, .run = cc_set,
		.summary = "switch congestion control on or off, and change parameters",
		.help = "SPEC has the form of --cc on the daemon's command line,\n"
			"on|off[,PARAMETER=VALUE]..., see ornicd(8). \"cc show\" lists the\n"
			"parameters. Parameters that are not named do not change.\n",
	},
	{ },
};

const struct ctl_subject ctl_cc = { "cc", verbs };
