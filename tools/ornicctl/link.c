// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl link: list and change rate-limited links.
 */
#include "ornicctl.h"
#include "table.h"

/* Numbers of a link, in the order of the table's columns */
static const char *const numbers[] = {
	"rate_kbps", "queue", "kmin", "kmax", "pmax", "waiting", "peak", "frames", "marked",
	"dropped",
};

static int link_list(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *all = ctl_call(ctl, "link.list", NULL), *link;
	struct table t;
	size_t i;

	(void)args;
	if (!all || ctl->json)
		return ctl_done(ctl, all);
	table_head(&t,
		   "PORT <KBPS <QUEUE <KMIN <KMAX <PMAX <WAITING <PEAK <FRAMES <MARKED <DROPPED");
	json_array_foreach(all, i, link) {
		table_cell(&t, "%s", ctl_text(link, "port"));
		for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
			table_cell(&t, "%lld", (long long)ctl_int(link, numbers[n]));
	}
	json_decref(all);
	return table_print(&t);
}

static int link_set(struct ctl *ctl, const struct ctl_args *args)
{
	return ctl_done(ctl, ctl_call(ctl, "link.set", "{s:s, s:s, s:s*, s:s*, s:s*, s:s*}",
				      "port", args->word[0], "rate", args->word[1],
				      "queue", args->opt[0], "kmin", args->opt[1],
				      "kmax", args->opt[2], "pmax", args->opt[3]));
}

static const struct ctl_option set_options[] = {
	{ "queue", "BYTES", "most bytes of frames that wait" },
	{ "kmin", "BYTES", "queue from which frames are marked (ECN)" },
	{ "kmax", "BYTES", "queue from which all frames are marked" },
	{ "pmax", "PERCENT", "frames that are marked just before kmax" },
	{ },
};

static const struct ctl_verb verbs[] = {
	{
		.name = "list", .args = "", .run = link_list,
		.summary = "rate-limited links, their queues, marks and drops",
	},
	{
		.name = "set", .args = "PORT RATE|off", .nargs = 2, .options = set_options,
		.run = link_set,
		.summary = "limit the rate of the link to a device or a port, or remove the limit",
		.help = "RATE is bit/s, for example 100M. Options that are not given get their\n"
			"defaults, see ornicd(8). Waiting frames stay unless the limit is\n"
			"removed.\n",
	},
	{ },
};

const struct ctl_subject ctl_link = { "link", verbs };
