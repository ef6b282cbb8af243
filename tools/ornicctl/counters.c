// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl counters: print the counters of devices.
 */
#include "ornicctl.h"
#include "table.h"

#include <stdio.h>

static int print(const json_t *all, bool zero)
{
	const char *device, *name;
	json_t *counters, *value;
	struct table t;

	table_head(&t, "DEVICE COUNTER <VALUE");
	json_object_foreach((json_t *)all, device, counters) {
		json_object_foreach(counters, name, value) {
			if (!json_integer_value(value) && !zero)
				continue;
			table_cell(&t, "%s", device);
			table_cell(&t, "%s", name);
			table_cell(&t, "%lld", (long long)json_integer_value(value));
		}
	}
	return table_print(&t);
}

static int counters(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *devices = ctl_devices(ctl, args->opt[0]), *device, *all, *c;
	int ret = CTL_OK;
	size_t i;

	if (!devices)
		return CTL_FAILED;
	all = json_object();
	json_array_foreach(devices, i, device) {
		const char *name = json_string_value(device);

		c = ctl_call(ctl, "counters", "{s:s}", "device", name);
		if (ctl->gone)
			continue;
		if (!c || json_object_set_new(all, name, c)) {
			json_decref(all);
			json_decref(devices);
			return CTL_FAILED;
		}
	}
	json_decref(devices);
	if (!ctl->json)
		ret = print(all, args->opt[1]);
	return ctl_done(ctl, all) ?: ret;
}

static const struct ctl_option options[] = {
	{ "device", "NAME", "print only counters of this device" },
	{ "all", NULL, "also print counters that are zero" },
	{ },
};

static const struct ctl_verb verbs[] = {
	{
		.args = "", .options = options, .run = counters,
		.summary = "counters of devices",
		.help = "In the guest, rdma statistic and ethtool -S show the same counters. The\n"
			"specification's chapter on statistics explains them.\n",
	},
	{ },
};

const struct ctl_subject ctl_counters = { "counters", verbs };
