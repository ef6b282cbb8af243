// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl version: print the version of the daemon.
 */
#include "ornicctl.h"

#include <stdio.h>

static int version(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *v = ctl_call(ctl, "version", NULL);

	(void)args;
	if (v && !ctl->json)
		printf("%s %s, process %lld\n", ctl_text(v, "name"), ctl_text(v, "version"),
		       (long long)ctl_int(v, "pid"));
	return ctl_done(ctl, v);
}

static const struct ctl_verb verbs[] = {
	{ .args = "", .summary = "version of the daemon", .run = version },
	{ },
};

const struct ctl_subject ctl_version = { "version", verbs };
