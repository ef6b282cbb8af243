// SPDX-License-Identifier: GPL-2.0
/*
 * Methods on latency histograms.
 */
#include "method.h"

#include "../dev/function.h"
#include "../engine/latency.h"

#include <stdlib.h>

static json_t *histogram(const struct histogram *h)
{
	json_t *buckets = json_array();
	uint64_t count = 0;

	for (int i = 0; i < LATENCY_BUCKETS; i++) {
		if (!h->bucket[i])
			continue;
		count += h->bucket[i];
		json_array_append_new(buckets, json_pack("{s:I, s:I}", "ns", (json_int_t)1 << i,
							 "count", (json_int_t)h->bucket[i]));
	}
	return json_pack("{s:I, s:I, s:I, s:o}", "count", (json_int_t)count,
			 "mean_ns", (json_int_t)(count ? h->sum / count : 0),
			 "max_ns", (json_int_t)h->max, "buckets", buckets);
}

static json_t *describe(const struct latency *l)
{
	static const char *const names[] = {
#define LATENCY_NAME(name)	[LATENCY_##name] = #name,
		LATENCY_CLASSES(LATENCY_NAME)
#undef LATENCY_NAME
	};
	json_t *all = json_object();

	for (int i = 0; i < LATENCY_COUNT; i++)
		json_object_set_new(all, names[i], histogram(&l->of[i]));
	return json_pack("{s:b, s:o}", "on", 1, "times", all);
}

/* Return the device that the call names, or NULL after control_error(). */
static struct device *device_of(struct control_call *call)
{
	const struct attachment *a;
	const char *name;

	if (control_params(call, "{s:s}", "device", &name))
		return NULL;
	a = control_device(call, name);
	return a ? &a->function->dev : NULL;
}

static json_t *on(struct control_call *call)
{
	struct device *dev = device_of(call);

	if (!dev)
		return NULL;
	if (!dev->latency)
		dev->latency = malloc(sizeof(*dev->latency));
	if (!dev->latency)
		return control_error(call, CONTROL_INTERNAL,
				     "out of memory for the histograms of device %s", dev->name);
	*dev->latency = (struct latency) { 0 };
	return control_done(call);
}

static json_t *off(struct control_call *call)
{
	struct device *dev = device_of(call);

	if (!dev)
		return NULL;
	free(dev->latency);
	dev->latency = NULL;
	return control_done(call);
}

static json_t *show(struct control_call *call)
{
	const struct device *dev = device_of(call);

	if (!dev)
		return NULL;
	return dev->latency ? describe(dev->latency) : json_pack("{s:b}", "on", 0);
}

const struct control_method control_latency_methods[] = {
	{ "latency.on", on },
	{ "latency.off", off },
	{ "latency.show", show },
	{ },
};
