// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl device: list devices.
 */
#include "ornicctl.h"
#include "table.h"

json_t *ctl_devices(struct ctl *ctl, const char *name)
{
	json_t *all, *names, *d;
	size_t i;

	if (name) {
		names = json_pack("[s]", name);
		if (!names)
			ctl_err("the device's name is not UTF-8 text");
		return names;
	}
	all = ctl_call(ctl, "device.list", NULL);
	if (!all)
		return NULL;
	names = json_array();
	json_array_foreach(all, i, d)
		json_array_append(names, json_object_get(d, "name"));
	json_decref(all);
	return names;
}

static int device_list(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *all = ctl_call(ctl, "device.list", NULL), *d;
	struct table t;
	size_t i;

	(void)args;
	if (!all || ctl->json)
		return ctl_done(ctl, all);
	table_head(&t, "NAME STATE LINK MAC <QPS <CQS <SRQS <KEYS VM SOCKET");
	json_array_foreach(all, i, d) {
		const json_t *objects = json_object_get(d, "objects");

		table_cell(&t, "%s", ctl_text(d, "name"));
		table_cell(&t, "%s", ctl_text(d, "state"));
		table_cell(&t, "%s", ctl_text(d, "link"));
		table_cell(&t, "%s", ctl_text(d, "mac"));
		table_cell(&t, "%lld", (long long)ctl_int(objects, "qp"));
		table_cell(&t, "%lld", (long long)ctl_int(objects, "cq"));
		table_cell(&t, "%lld", (long long)ctl_int(objects, "srq"));
		table_cell(&t, "%lld", (long long)ctl_int(objects, "key"));
		table_cell(&t, "%s", ctl_is(d, "attached") ? "yes" : "no");
		table_cell(&t, "%s", ctl_text(d, "path"));
	}
	json_decref(all);
	return table_print(&t);
}

static const struct ctl_verb verbs[] = {
	{
		.name = "list", .args = "", .run = device_list,
		.summary = "devices, their states, and numbers of their objects",
		.help = "STATE is that of the PCI function: disabled, ready (a driver has enabled\n"
			"it), or fatal. LINK is up if the guest's interface is up. VM is yes if a\n"
			"virtual machine is attached. The numbers count objects of the guest.\n"
			"--json has more, such as ip: the addresses that the guest may use.\n",
	},
	{ },
};

const struct ctl_subject ctl_device = { "device", verbs };
