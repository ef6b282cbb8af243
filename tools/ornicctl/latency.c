// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl latency: measure and print histograms of completion times.
 */
#include "ornicctl.h"
#include "table.h"

#include <stdio.h>

/** BAR_WIDTH - characters for the most frequent bucket */
#define BAR_WIDTH	40

/* Call @method for device @name, or all (NULL), and add the results to @all. Return: exit code. */
static int each(struct ctl *ctl, const char *name, const char *method, json_t *all)
{
	json_t *devices = ctl_devices(ctl, name), *device;
	int ret = devices ? CTL_OK : CTL_FAILED;
	size_t i;

	json_array_foreach(devices, i, device) {
		const char *text = json_string_value(device);
		json_t *result = ctl_call(ctl, method, "{s:s}", "device", text);

		if (ctl->gone)
			continue;
		if (!result)
			ret = CTL_FAILED;
		json_object_set_new(all, text, result);
	}
	json_decref(devices);
	return ret;
}

static int latency_switch(struct ctl *ctl, const struct ctl_args *args, const char *method)
{
	json_t *all = json_object();
	int ret = each(ctl, args->opt[0], method, all);

	if (!ret)
		return ctl_done(ctl, all);
	json_decref(all);
	return ret;
}

static int latency_on(struct ctl *ctl, const struct ctl_args *args)
{
	return latency_switch(ctl, args, "latency.on");
}

static int latency_off(struct ctl *ctl, const struct ctl_args *args)
{
	return latency_switch(ctl, args, "latency.off");
}

/* Return a duration as text, such as "512 ns" or "1.0 us", in a static buffer. */
static const char *duration(json_int_t ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	static char text[32];
	double value = ns;
	int unit = 0;

	while (value >= 1000 && unit < 3) {
		value /= 1000;
		unit++;
	}
	snprintf(text, sizeof(text), unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

static void print_histogram(const char *device, const char *name, const json_t *h)
{
	const json_t *buckets = json_object_get(h, "buckets");
	json_int_t most = 1;
	json_t *b;
	size_t i;

	if (!ctl_int(h, "count"))
		return;
	printf("%s %s: %lld, mean %s", device, name, (long long)ctl_int(h, "count"),
	       duration(ctl_int(h, "mean_ns")));
	printf(", longest %s\n", duration(ctl_int(h, "max_ns")));
	json_array_foreach(buckets, i, b)
		if (ctl_int(b, "count") > most)
			most = ctl_int(b, "count");
	json_array_foreach(buckets, i, b) {
		json_int_t count = ctl_int(b, "count");
		int width = count * BAR_WIDTH / most;

		printf("  from %9s %12lld %.*s\n", duration(ctl_int(b, "ns")), (long long)count,
		       width ? width : 1, "****************************************");
	}
}

static void print(const json_t *all)
{
	const char *device, *name;
	json_t *of, *h;

	json_object_foreach((json_t *)all, device, of) {
		if (!ctl_is(of, "on"))
			printf("%s: off; ornicctl latency on --device %s\n", device, device);
		json_object_foreach(json_object_get(of, "times"), name, h)
			print_histogram(device, name, h);
	}
}

static int latency_show(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *all = json_object();
	int ret = each(ctl, args->opt[0], "latency.show", all);

	if (!ret && !ctl->json)
		print(all);
	if (!ret)
		return ctl_done(ctl, all);
	json_decref(all);
	return ret;
}

static const struct ctl_option options[] = {
	{ "device", "NAME", "apply to this device only" },
	{ },
};

static const struct ctl_verb verbs[] = {
	{
		.name = "on", .args = "", .options = options, .run = latency_on,
		.summary = "clear the histograms, and measure how long send work requests take",
		.help = "Measuring reads the clock twice per work request, some tens of ns each.\n",
	},
	{
		.name = "off", .args = "", .options = options, .run = latency_off,
		.summary = "stop measuring, and delete the histograms",
	},
	{
		.name = "show", .args = "", .options = options, .run = latency_show,
		.summary = "histograms of the measured times",
		.help = "A time begins when the device takes a work request from its ring and\n"
			"ends when it writes the completion. A line counts times from its value\n"
			"to twice its value. \"local\" are work requests that send nothing, such\n"
			"as registrations.\n",
	},
	{ },
};

const struct ctl_subject ctl_latency = { "latency", verbs };
