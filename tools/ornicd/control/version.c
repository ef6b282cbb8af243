// SPDX-License-Identifier: GPL-2.0
/*
 * Methods on the daemon itself.
 */
#include "method.h"

#include "../version.h"

#include <unistd.h>

static json_t *version(struct control_call *call)
{
	if (control_params(call, "{}"))
		return NULL;
	return json_pack("{s:s, s:s, s:i}", "name", "ornicd", "version", ORNICD_VERSION,
			 "pid", (int)getpid());
}

const struct control_method control_version_methods[] = {
	{ "version", version },
	{ },
};
