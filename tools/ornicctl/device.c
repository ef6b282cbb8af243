// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl device: list, add and delete devices.
 */
#include "ornicctl.h"
#include "table.h"

#include <stdio.h>

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
	ctl->all = true;
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
	table_head(&t, "NAME STATE LINK MAC <QPS <CQS <SRQS <KEYS <MEMORY <FILES VM SOCKET");
	json_array_foreach(all, i, d) {
		const json_t *objects = json_object_get(d, "objects");
		const json_t *memory = json_object_get(d, "guest_memory");

		table_cell(&t, "%s", ctl_text(d, "name"));
		table_cell(&t, "%s", ctl_text(d, "state"));
		table_cell(&t, "%s", ctl_text(d, "link"));
		table_cell(&t, "%s", ctl_text(d, "mac"));
		table_cell(&t, "%lld", (long long)ctl_int(objects, "qp"));
		table_cell(&t, "%lld", (long long)ctl_int(objects, "cq"));
		table_cell(&t, "%lld", (long long)ctl_int(objects, "srq"));
		table_cell(&t, "%lld", (long long)ctl_int(objects, "key"));
		table_cell(&t, "%lld", (long long)ctl_int(memory, "bytes") >> 20);
		table_cell(&t, "%lld", (long long)ctl_int(memory, "files"));
		table_cell(&t, "%s", ctl_is(d, "attached") ? "yes" : "no");
		table_cell(&t, "%s", ctl_text(d, "path"));
	}
	json_decref(all);
	return table_print(&t);
}

static int device_add(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *done = ctl_call(ctl, "device.add", "{s:s}", "spec", args->word[0]);

	if (done && !ctl->json)
		printf("device %s added: socket %s, mac %s\n", ctl_text(done, "name"),
		       ctl_text(done, "path"), ctl_text(done, "mac"));
	return ctl_done(ctl, done);
}

static int device_del(struct ctl *ctl, const struct ctl_args *args)
{
	return ctl_done(ctl, ctl_call(ctl, "device.del", "{s:s, s:b}", "name", args->word[0],
				      "force", !!args->opt[0]));
}

static const struct ctl_option del_options[] = {
	{ "force", NULL, "also if a virtual machine is attached, which loses it at once" },
	{ },
};

static const struct ctl_verb verbs[] = {
	{
		.name = "list", .args = "", .run = device_list,
		.summary = "devices, their states, and numbers of their objects",
		.help = "STATE is that of the PCI function: disabled, ready (a driver has enabled\n"
			"it), or fatal. LINK is up if the guest's interface is up. VM is yes if a\n"
			"virtual machine is attached. The numbers count objects of the guest. MEMORY\n"
			"(MiB) and FILES are what the daemon has mapped of the guest's memory.\n"
			"--json has more, such as ip: the addresses that the guest may use.\n",
	},
	{
		.name = "add", .args = "SPEC", .nargs = 1, .run = device_add,
		.summary = "offer another device",
		.help = "SPEC has the form of --device on the daemon's command line:\n"
			"  path=SOCKET[,KEY=VALUE]...\n"
			"Keys are mac=MAC, name=NAME, anti-spoof=on|off, ip=ADDRESS, promisc=on|off,\n"
			"memory=BYTES, memory-files=N, nvdimm=on|off, vlan=ID, owner=UID, group=GID,\n"
			"mode=MODE, rate=RATE and the others of a rate-limited link, see ornicd(8).\n"
			"Owner and group are numbers, because a running daemon does not look up\n"
			"names. A relative path begins at the daemon's working directory.\n",
	},
	{
		.name = "del", .args = "NAME", .nargs = 1, .options = del_options,
		.run = device_del,
		.summary = "remove a device and its socket",
		.help = "When the command returns, name, socket and address are free. A device\n"
			"that is in use is not removed: unplug it from its virtual machine first.\n",
	},
	{ },
};

const struct ctl_subject ctl_device = { "device", verbs };
