// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl qp: list and show queue pairs.
 */
#include "ornicctl.h"
#include "table.h"

#include <stdint.h>
#include <stdio.h>

static const char headings[] =
	"DEVICE <QPN TYPE STATE <OUT <NEXT <ACKED <EXPECTS <RETRANS <RTT-US <MBIT/S <PEER-QPN PEER";

json_t *ctl_qps(struct ctl *ctl, const char *device, size_t max)
{
	json_t *all = json_array(), *part, *qp;
	json_int_t from = 0;
	size_t i;

	do {
		part = ctl_call(ctl, "qp.list", "{s:s, s:I}", "device", device, "from", from);
		if (!part) {
			json_decref(all);
			return NULL;
		}
		json_array_foreach(json_object_get(part, "qps"), i, qp) {
			json_object_set_new(qp, "device", json_string(device));
			json_array_append(all, qp);
		}
		from = ctl_int(part, "next");
		json_decref(part);
	} while (from && json_array_size(all) < max);
	return all;
}

static void row(struct table *t, const json_t *qp)
{
	table_cell(t, "%s", ctl_text(qp, "device"));
	table_number(t, qp, "qpn");
	table_cell(t, "%s", ctl_text(qp, "type"));
	table_cell(t, "%s", ctl_text(qp, "state"));
	table_number(t, qp, "outstanding");
	table_number(t, qp, "next_psn");
	table_number(t, qp, "acked_psn");
	table_number(t, qp, "expected_psn");
	table_number(t, qp, "retransmits");
	table_thousands(t, qp, "rtt_ns");
	table_thousands(t, qp, "rate_kbps");
	table_number(t, qp, "peer_qpn");
	table_cell(t, "%s", ctl_text(qp, "peer"));
}

static int qp_list(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *devices = ctl_devices(ctl, args->opt[0]), *device, *all, *qp;
	struct table t;
	size_t i;

	if (!devices)
		return CTL_FAILED;
	all = json_array();
	json_array_foreach(devices, i, device) {
		json_t *qps = ctl_qps(ctl, json_string_value(device), SIZE_MAX);

		if (ctl->gone)
			continue;
		if (!qps) {
			json_decref(all);
			json_decref(devices);
			return CTL_FAILED;
		}
		json_array_extend(all, qps);
		json_decref(qps);
	}
	json_decref(devices);
	if (ctl->json)
		return ctl_done(ctl, all);
	table_head(&t, headings);
	json_array_foreach(all, i, qp)
		row(&t, qp);
	json_decref(all);
	return table_print(&t);
}

static int qp_show(struct ctl *ctl, const struct ctl_args *args)
{
	int ret = CTL_OK;
	json_t *qp;
	long qpn;

	if (ctl_number("queue pair", args->word[1], 0, 0xffffff, &qpn))
		return CTL_USAGE;
	qp = ctl_call(ctl, "qp.show", "{s:s, s:I}", "device", args->word[0], "qpn",
		      (json_int_t)qpn);
	if (qp && !ctl->json)
		ret = table_fields(qp);
	return ctl_done(ctl, qp) ?: ret;
}

static const struct ctl_option list_options[] = {
	{ "device", "NAME", "list only queue pairs of this device" },
	{ },
};

static const struct ctl_verb verbs[] = {
	{
		.name = "list", .args = "", .options = list_options, .run = qp_list,
		.summary = "queue pairs: state, outstanding work requests, PSNs, peer",
		.help = "OUT counts send work requests that were taken from the ring and are\n"
			"not completed. NEXT is the PSN to send next, ACKED the oldest PSN that\n"
			"is not acknowledged, EXPECTS the next PSN for the responder. RETRANS\n"
			"counts retransmitted PSNs. MBIT/S is the rate that rate limit and\n"
			"congestion control allow. RTT is estimated for peers of other hosts.\n",
	},
	{
		.name = "show", .args = "DEVICE QPN", .nargs = 2, .run = qp_show,
		.summary = "the complete state of a queue pair",
		.help = "QPN is the number that rdma(8) calls lqpn.\n",
	},
	{ },
};

const struct ctl_subject ctl_qp = { "qp", verbs };
