// SPDX-License-Identifier: GPL-2.0
/*
 * Parse the keys of a rate-limited link: "rate=100M,queue=256K,kmin=...".
 */
#include "config.h"

#include <errno.h>

const char *const config_link_keys[CONFIG_LINK_KEYS] = { "rate", "queue", "kmin", "kmax", "pmax" };

#define LETTERS	"KMG"

static int bad_link(const char *text, const char *key, const char *val, const char *form)
{
	log_err("\"%s\": %s=%s is not %s", text, key, val, form);
	return -EINVAL;
}

/* Parse bytes, which must fit 32 bits, or a percentage; leave @out unchanged if @val is NULL. */
static int parse_number(const char *text, const char *key, const char *val, uint32_t *out)
{
	uint64_t v;

	if (!val)
		return 0;
	if (config_scaled(val, LETTERS, 1024, &v) || v > UINT32_MAX)
		return bad_link(text, key, val, "a number such as 65536 or 64K");
	*out = v;
	return 0;
}

int config_link(const char *text, const char *const val[CONFIG_LINK_KEYS], struct egress_param *out)
{
	const struct {
		enum egress_key key;
		uint32_t *number;
	} keys[CONFIG_LINK_KEYS] = {
		[1] = { EGRESS_KEY_QUEUE, &out->queue },
		[2] = { EGRESS_KEY_KMIN, &out->kmin },
		[3] = { EGRESS_KEY_KMAX, &out->kmax },
		[4] = { EGRESS_KEY_PMAX, &out->pmax },
	};
	uint32_t given = 0;
	const char *wrong;
	uint64_t bps;

	for (int i = 1; i < CONFIG_LINK_KEYS; i++) {
		int err = parse_number(text, config_link_keys[i], val[i], keys[i].number);

		if (err)
			return err;
		given |= val[i] ? keys[i].key : 0;
		if (val[i] && !val[0]) {
			log_err("\"%s\": %s= needs rate=, which is missing", text,
				config_link_keys[i]);
			return -EINVAL;
		}
	}
	if (!val[0])
		return 0;
	if (config_scaled(val[0], LETTERS, 1000, &bps) || bps / 1000 > UINT32_MAX)
		return bad_link(text, config_link_keys[0], val[0], "a rate in bit/s such as 100M");
	out->kbps = bps / 1000;
	egress_default(out, given);
	wrong = egress_check(out);
	if (!wrong)
		return 0;
	log_err("\"%s\": %s", text, wrong);
	return -EINVAL;
}
