// SPDX-License-Identifier: GPL-2.0
/*
 * Method on devices' counters.
 */
#include "method.h"

#include "../dev/function.h"

static json_t *counters_of(const struct device *dev)
{
	static const char *const names[] = {
#define COUNTER_NAME(scope, name, id)	[CNT_##name] = #name,
		COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
	};
	json_t *all = json_object();

	for (int i = 0; i < CNT_COUNT; i++)
		json_object_set_new(all, names[i], json_integer(dev->cnt[i]));
	return all;
}

static json_t *counters(struct control_call *call)
{
	const struct attachment *a;
	const char *name;

	if (control_params(call, "{s:s}", "device", &name))
		return NULL;
	a = control_device(call, name);
	return a ? counters_of(&a->function->dev) : NULL;
}

const struct control_method control_counters_methods[] = {
	{ "counters", counters },
	{ },
};
