// SPDX-License-Identifier: GPL-2.0
/*
 * Parse "key=value[,key=value]...", the description of a device or port.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

/* Return the place for the next value of a key, or NULL. */
static char **free_slot(const struct config_form *form, int key, char **val)
{
	unsigned int most = form->most && key == form->list ? form->most : 1;

	for (unsigned int i = 0; i < most; i++)
		if (!val[key + i])
			return &val[key + i];
	return NULL;
}

int config_keys(const struct config_form *form, const char *text, char *rest, char **val)
{
	while (*rest) {
		char *v, **slot;
		int key = getsubopt(&rest, form->keys, &v);

		if (key < 0 || !((form->needs | form->takes) & 1u << key)) {
			log_err("%s \"%s\": unknown key \"%s\"; the form is %s", form->what, text,
				key < 0 ? v : form->keys[key], form->text);
			return -EINVAL;
		}
		if (!v || !*v) {
			log_err("%s \"%s\": %s= has no value; the form is %s", form->what, text,
				form->keys[key], form->text);
			return -EINVAL;
		}
		slot = free_slot(form, key, val);
		if (!slot) {
			log_err("%s \"%s\": %s is given %s", form->what, text, form->keys[key],
				form->most && key == form->list ? "too often" : "twice");
			return -EINVAL;
		}
		*slot = v;
	}
	for (int key = 0; form->keys[key]; key++) {
		if (form->needs & 1u << key && !val[key]) {
			log_err("%s \"%s\": %s= is missing; the form is %s", form->what, text,
				form->keys[key], form->text);
			return -EINVAL;
		}
	}
	return 0;
}
