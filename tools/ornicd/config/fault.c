// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection rules of the configuration. They are kept as text until the devices and ports
 * that they name exist.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int config_fault(struct config *c, const char *text, bool file)
{
	struct config_fault *all = reallocarray(c->fault, c->nfaults + 1, sizeof(*all));

	if (all) {
		c->fault = all;
		all[c->nfaults] = (struct config_fault) { strdup(text), file };
	}
	if (!all || !all[c->nfaults].text)
		return config_no_memory("a fault rule");
	c->nfaults++;
	return 0;
}

void config_fault_free(struct config *c)
{
	for (unsigned int i = 0; i < c->nfaults; i++)
		free(c->fault[i].text);
	free(c->fault);
}
