// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl port: list, add, delete and change ports of the switch.
 */
#include "ornicctl.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Return the frames that a port sent or received: uplinks have one counter, devices one for
 * Ethernet and one for RDMA.
 */
static json_int_t both(const json_t *counters, const char *frames, const char *packets,
		       const char *rdma)
{
	return ctl_int(counters, frames) + ctl_int(counters, packets) + ctl_int(counters, rdma);
}

static void row(struct table *t, const json_t *port)
{
	const json_t *c = json_object_get(port, "counters");

	table_cell(t, "%s", ctl_text(port, "name"));
	table_cell(t, "%s", ctl_text(port, "kind"));
	table_cell(t, "%s", ctl_is(port, "up") ? "up" : "down");
	table_cell(t, "%s", ctl_text(port, "mac"));
	if (ctl_int(port, "vlan"))
		table_cell(t, "%lld", (long long)ctl_int(port, "vlan"));
	else
		table_cell(t, "-");
	table_cell(t, "%lld", (long long)both(c, "tx_frames", "tx_packets", "rdma_tx_packets"));
	table_cell(t, "%lld", (long long)ctl_int(c, "tx_drop"));
	table_cell(t, "%lld", (long long)both(c, "rx_frames", "rx_packets", "rdma_rx_packets"));
	table_cell(t, "%lld", (long long)ctl_int(c, "rx_drop"));
	table_cell(t, "%lld", (long long)(ctl_int(c, "bad_icrc") + ctl_int(c, "malformed")));
	table_cell(t, "%s", ctl_text(port, "spec"));
}

static int port_list(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *all = ctl_call(ctl, "port.list", NULL), *port;
	struct table t;
	size_t i;

	(void)args;
	if (!all || ctl->json)
		return ctl_done(ctl, all);
	table_head(&t, "NAME KIND STATE MAC <VLAN <TX <TX-DROP <RX <RX-DROP <RX-BAD SPEC");
	json_array_foreach(all, i, port)
		row(&t, port);
	json_decref(all);
	return table_print(&t);
}

static int port_add(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *done = ctl_call(ctl, "port.add", "{s:s}", "spec", args->word[0]);

	if (done && !ctl->json)
		printf("port %s added\n", ctl_text(done, "name"));
	return ctl_done(ctl, done);
}

static int port_del(struct ctl *ctl, const struct ctl_args *args)
{
	return ctl_done(ctl, ctl_call(ctl, "port.del", "{s:s}", "name", args->word[0]));
}

static int port_vlan(struct ctl *ctl, const struct ctl_args *args)
{
	const char *id = args->word[1];
	char *end;
	long v = strtol(id, &end, 10);

	if (strcmp(id, "none") && (end == id || *end || v < 1 || v > 4094)) {
		ctl_err("\"%s\" is not a VLAN: expected a number from 1 to 4094, or none", id);
		return CTL_USAGE;
	}
	return ctl_done(ctl, ctl_call(ctl, "port.vlan", "{s:s, s:I}", "port", args->word[0], "vlan",
				      (json_int_t)v));
}

static const struct ctl_verb verbs[] = {
	{
		.name = "list", .args = "", .run = port_list,
		.summary = "ports of the switch, of devices and to the outside, with counters",
		.help = "VLAN is that of an access port. TX counts frames that left the device\n"
			"or, by a port to the outside, the daemon. RX-BAD counts malformed frames\n"
			"and frames with a wrong ICRC. --json has more counters, such as\n"
			"vlan_drop: frames with an illegal tag, or too long with a tag, and\n"
			"tx_drop_spoof: frames from an address that the guest may not use.\n",
	},
	{
		.name = "add", .args = "SPEC", .nargs = 1, .run = port_add,
		.summary = "open a port to the outside",
		.help = "SPEC has the form of --port on the daemon's command line:\n"
			"  tap,ifname=NAME\n"
			"  packet,ifname=NAME\n"
			"  stream,path=SOCKET[,server=on|off]\n"
			"  dgram,local=SOCKET,remote=SOCKET\n"
			"  udp,local=HOST:PORT,remote=HOST:PORT\n"
			"Further keys are name=NAME, vlan=ID, rxe-flush=on|off, rate=RATE and\n"
			"the others of a rate-limited link, see ornicd(8). HOST must be an\n"
			"address, because a running daemon does not look up names.\n",
	},
	{
		.name = "del", .args = "NAME", .nargs = 1, .run = port_del,
		.summary = "close a port to the outside",
		.help = "Frames from the port that are not delivered yet are dropped.\n",
	},
	{
		.name = "vlan", .args = "PORT ID|none", .nargs = 2, .run = port_vlan,
		.summary = "make a port an access port of a VLAN, or of none",
		.help = "PORT may be a device's. An access port passes frames of its VLAN only,\n"
			"without a tag. Ports without a VLAN pass them with the VLAN's tag.\n",
	},
	{ },
};

const struct ctl_subject ctl_port = { "port", verbs };
