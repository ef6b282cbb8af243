// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl top: print rates of devices, ports and queue pairs periodically. A frame shows the
 * difference between two samples of the daemon's counters.
 */
#include "ornicctl.h"
#include "screen.h"
#include "table.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/** TOP_QPS - queue pairs that are sampled per device */
#define TOP_QPS		1024
/** TOP_ROWS - most queue pairs in a frame if the output is not a terminal */
#define TOP_ROWS	20
/** PSN_MASK - largest PSN */
#define PSN_MASK	0xffffff

static const char device_headings[] =
	"DEVICE STATE LINK <QPS <TX-MB/S <RX-MB/S <TX-OPS/S <RX-OPS/S <FRAMES/S <RETRANS <TIMEOUTS";

static const char qp_headings[] =
	"DEVICE <QPN TYPE STATE <OUT <TX-PSN/S <RX-PSN/S <RETRANS/S <RTT-US <MBIT/S PEER";

/**
 * struct sample - state of the daemon at one time
 * @at:		time, s
 * @devices:	result of device.list
 * @counters:	results of counters, by name of the device
 * @ports:	result of port.list
 * @qps:	queue pairs of all devices, as of ctl_qps()
 */
struct sample {
	double at;
	json_t *devices;
	json_t *counters;
	json_t *ports;
	json_t *qps;
};

static double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void sample_free(struct sample *s)
{
	json_decref(s->devices);
	json_decref(s->counters);
	json_decref(s->ports);
	json_decref(s->qps);
	*s = (struct sample) { 0 };
}

/* Sample a device; one that was removed after the list was made has no values. */
static int sample_device(struct ctl *ctl, struct sample *s, const char *name)
{
	json_t *counters = ctl_call(ctl, "counters", "{s:s}", "device", name);
	json_t *qps = counters ? ctl_qps(ctl, name, TOP_QPS) : NULL;

	if (counters)
		json_object_set_new(s->counters, name, counters);
	if (qps)
		json_array_extend(s->qps, qps);
	json_decref(qps);
	return qps || ctl->gone ? 0 : -1;
}

static int sample_take(struct ctl *ctl, struct sample *s)
{
	json_t *device;
	size_t i;

	*s = (struct sample) {
		.at = seconds_now(),
		.devices = ctl_call(ctl, "device.list", NULL),
		.counters = json_object(),
		.qps = json_array(),
	};
	if (!s->devices)
		return -1;
	ctl->all = true;
	json_array_foreach(s->devices, i, device)
		if (sample_device(ctl, s, ctl_text(device, "name")))
			return -1;
	s->ports = ctl_call(ctl, "port.list", NULL);
	return s->ports ? 0 : -1;
}

/* Return the growth of the sum of counters @keys per second. A new object (@before NULL) had 0. */
static double rate(const json_t *before, const json_t *after, double seconds,
		   const char *const *keys)
{
	double sum = 0;

	for (; *keys; keys++)
		sum += ctl_int(after, *keys) - ctl_int(before, *keys);
	return sum > 0 ? sum / seconds : 0;
}

#define RATE(before, after, seconds, ...)	\
	rate(before, after, seconds, (const char *const[]){ __VA_ARGS__, NULL })

static int print_devices(const struct sample *b, const struct sample *a)
{
	double s = a->at - b->at;
	struct table t;
	json_t *device;
	size_t i;

	table_head(&t, device_headings);
	json_array_foreach(a->devices, i, device) {
		const char *name = ctl_text(device, "name");
		const json_t *old = json_object_get(b->counters, name);
		const json_t *new = json_object_get(a->counters, name);

		table_cell(&t, "%s", name);
		table_cell(&t, "%s", ctl_text(device, "state"));
		table_cell(&t, "%s", ctl_text(device, "link"));
		table_cell(&t, "%lld",
			   (long long)ctl_int(json_object_get(device, "objects"), "qp"));
		table_cell(&t, "%.1f", RATE(old, new, s, "rdma_tx_bytes", "tx_bytes") / 1e6);
		table_cell(&t, "%.1f", RATE(old, new, s, "rdma_rx_bytes", "rx_bytes") / 1e6);
		table_cell(&t, "%.0f", RATE(old, new, s, "tx_send", "tx_write", "tx_read",
					    "tx_atomic", "tx_flush"));
		table_cell(&t, "%.0f", RATE(old, new, s, "rx_send", "rx_write", "rx_read",
					    "rx_atomic", "rx_flush"));
		table_cell(&t, "%.0f", RATE(old, new, s, "tx_packets", "rx_packets"));
		table_cell(&t, "%.0f", RATE(old, new, s, "retransmits"));
		table_cell(&t, "%.0f", RATE(old, new, s, "ack_timeouts"));
	}
	return table_print(&t);
}

/* Return the object in @all whose members @keys equal those of @like, or NULL. */
static const json_t *same(const json_t *all, const json_t *like, const char *const *keys)
{
	json_t *o;
	size_t i;

	json_array_foreach(all, i, o) {
		const char *const *k;

		for (k = keys; *k; k++)
			if (!json_equal(json_object_get(o, *k), json_object_get(like, *k)))
				break;
		if (!*k)
			return o;
	}
	return NULL;
}

/* Print the ports to the outside, of which there are @n. Return: exit code. */
static int print_uplinks(const struct sample *b, const struct sample *a, int *n)
{
	static const char *const name[] = { "name", "spec", NULL };
	double s = a->at - b->at;
	struct table t;
	json_t *port;
	size_t i;

	*n = 0;
	table_head(&t, "PORT KIND STATE <TX-MB/S <RX-MB/S <TX-FRAMES/S <RX-FRAMES/S <DROPS/S");
	json_array_foreach(a->ports, i, port) {
		const json_t *old = json_object_get(same(b->ports, port, name), "counters");
		const json_t *new = json_object_get(port, "counters");

		if (!json_object_get(port, "spec"))
			continue;
		(*n)++;
		table_cell(&t, "%s", ctl_text(port, "name"));
		table_cell(&t, "%s", ctl_text(port, "kind"));
		table_cell(&t, "%s", ctl_is(port, "up") ? "up" : "down");
		table_cell(&t, "%.1f", RATE(old, new, s, "tx_bytes") / 1e6);
		table_cell(&t, "%.1f", RATE(old, new, s, "rx_bytes") / 1e6);
		table_cell(&t, "%.0f", RATE(old, new, s, "tx_frames"));
		table_cell(&t, "%.0f", RATE(old, new, s, "rx_frames"));
		table_cell(&t, "%.0f", RATE(old, new, s, "tx_drop", "rx_drop", "bad_icrc",
					    "malformed"));
	}
	if (*n)
		putchar('\n');
	return table_print(&t);
}

/**
 * struct busy - a queue pair that is in both samples, with rates per second
 * @qp:		queue pair of the later sample
 * @tx:		PSNs sent
 * @rx:		PSNs received
 * @retrans:	PSNs retransmitted
 */
struct busy {
	const json_t *qp;
	double tx;
	double rx;
	double retrans;
};

static double psn_rate(const json_t *before, const json_t *after, double seconds, const char *key)
{
	if (!json_object_get(before, key) || !json_object_get(after, key))
		return 0;
	return ((ctl_int(after, key) - ctl_int(before, key)) & PSN_MASK) / seconds;
}

static double total(const struct busy *b)
{
	return b->tx + b->rx + b->retrans;
}

static int busier(const void *a, const void *b)
{
	double x = total(a), y = total(b);

	return x < y ? 1 : x > y ? -1 : 0;
}

/*
 * Fill in @all with the queue pairs that are in both samples, busiest first. The daemon lists queue
 * pairs by number, so both samples are in the same order. Return: their number.
 */
static size_t find_busy(const struct sample *b, const struct sample *a, struct busy *all)
{
	size_t n = 0, j = 0, i;
	double s = a->at - b->at;
	json_t *qp;

	json_array_foreach(a->qps, i, qp) {
		const json_t *old = NULL;

		for (size_t k = j; k < json_array_size(b->qps); k++) {
			const json_t *o = json_array_get(b->qps, k);

			if (json_equal(json_object_get(o, "qpn"), json_object_get(qp, "qpn")) &&
			    json_equal(json_object_get(o, "device"),
				       json_object_get(qp, "device"))) {
				old = o;
				j = k + 1;
				break;
			}
		}
		if (!old)
			continue;
		all[n++] = (struct busy) {
			.qp = qp,
			.tx = psn_rate(old, qp, s, "next_psn"),
			.rx = psn_rate(old, qp, s, "expected_psn"),
			.retrans = RATE(old, qp, s, "retransmits"),
		};
	}
	qsort(all, n, sizeof(*all), busier);
	return n;
}

static int print_qps(const struct sample *b, const struct sample *a, int rows)
{
	struct busy *all = calloc(json_array_size(a->qps) + 1, sizeof(*all));
	size_t n = all ? find_busy(b, a, all) : 0;
	struct table t;
	int ret;

	table_head(&t, qp_headings);
	for (size_t i = 0; i < n && (int)i < rows && total(&all[i]) > 0; i++) {
		const json_t *qp = all[i].qp;

		table_cell(&t, "%s", ctl_text(qp, "device"));
		table_number(&t, qp, "qpn");
		table_cell(&t, "%s", ctl_text(qp, "type"));
		table_cell(&t, "%s", ctl_text(qp, "state"));
		table_number(&t, qp, "outstanding");
		table_cell(&t, "%.0f", all[i].tx);
		table_cell(&t, "%.0f", all[i].rx);
		table_cell(&t, "%.0f", all[i].retrans);
		table_thousands(&t, qp, "rtt_ns");
		table_thousands(&t, qp, "rate_kbps");
		table_cell(&t, "%s %lld", ctl_text(qp, "peer"), (long long)ctl_int(qp, "peer_qpn"));
	}
	putchar('\n');
	ret = table_print(&t);
	free(all);
	return ret;
}

/* Return the rows of the screen that are left for queue pairs. */
static int rows_left(const struct sample *a, int uplinks)
{
	int rows = screen_rows(), used = json_array_size(a->devices) + uplinks + 6;

	if (!rows)
		return TOP_ROWS;
	return rows > used ? rows - used : 0;
}

/* Print a frame as one line of JSON, so that programs can read it at once. */
static void print_json(const struct sample *b, const struct sample *a)
{
	json_t *json = json_pack("{s:f, s:O, s:O, s:O, s:O}", "seconds", a->at - b->at, "devices",
				 a->devices, "counters", a->counters, "ports", a->ports, "qps",
				 a->qps);

	json_dumpf(json, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(json);
}

/* Print a frame. Return: exit code. */
static int frame(struct ctl *ctl, const struct sample *b, const struct sample *a)
{
	int uplinks;

	if (ctl->json) {
		print_json(b, a);
		return CTL_OK;
	}
	screen_frame();
	return print_devices(b, a) ?: print_uplinks(b, a, &uplinks) ?:
	       print_qps(b, a, rows_left(a, uplinks));
}

/*
 * Print frames until a signal, or one if @once. Frees @before. Return: exit code; a signal is not a
 * failure, even while a sample is taken.
 */
static int frames(struct ctl *ctl, struct sample *before, double interval, bool once)
{
	struct sample after;
	int ret = CTL_OK;

	while (screen_wait(-1, interval)) {
		if (sample_take(ctl, &after)) {
			sample_free(&after);
			ret = screen_stopped() ? CTL_OK : CTL_FAILED;
			break;
		}
		ret = frame(ctl, before, &after);
		once |= ret || !screen_flush();
		sample_free(before);
		*before = after;
		if (once)
			break;
	}
	sample_free(before);
	return ret;
}

static int top(struct ctl *ctl, const struct ctl_args *args)
{
	struct sample first;
	double interval = 1;
	char *end;
	int ret;

	if (args->opt[0]) {
		interval = strtod(args->opt[0], &end);
		if (!*args->opt[0] || *end || !(interval >= 0.1 && interval <= 3600)) {
			ctl_err("interval \"%s\" is not a number of seconds from 0.1 to 3600",
				args->opt[0]);
			return CTL_USAGE;
		}
	}
	if (sample_take(ctl, &first)) {
		sample_free(&first);
		return CTL_FAILED;
	}
	if (!args->opt[1])
		screen_begin(!ctl->json);
	ret = frames(ctl, &first, interval, args->opt[1]);
	screen_end();
	return ret;
}

static const struct ctl_option options[] = {
	{ "interval", "SECONDS", "time between frames (default 1)" },
	{ "once", NULL, "print one frame, of one interval, and exit" },
	{ },
};

static const struct ctl_verb verbs[] = {
	{
		.args = "", .options = options, .run = top,
		.summary = "devices, ports and busy queue pairs, live; ^C ends it",
		.help = "OPS are RDMA operations of the device (TX) and of its peers (RX).\n"
			"FRAMES are those of Ethernet. A PSN is a packet of the wire. Idle queue\n"
			"pairs are not shown. With --json each frame is an object on one line.\n",
	},
	{ },
};

const struct ctl_subject ctl_top = { "top", verbs };
