// SPDX-License-Identifier: GPL-2.0
/*
 * Parse "FILE[,key=value]...", the description of a capture.
 */
#include "spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SNAPLEN	64
#define MIN_LIMIT	65536
#define MIN_BUFFER	(1u << 20)
#define MAX_BUFFER	(1u << 30)
#define MAX_QPN		0xffffff

enum key { KEY_DEVICE, KEY_PORT, KEY_QP, KEY_SNAPLEN, KEY_LIMIT, KEY_BUFFER };

static char *const keys[] = { "device", "port", "qp", "snaplen", "limit", "buffer", NULL };

/* Parse a number, which may end in k, M or G (2^10, 2^20, 2^30) if @units. Return: 0 or -EINVAL. */
static int parse_number(const char *text, bool units, uint64_t min, uint64_t max, uint64_t *out)
{
	unsigned int shift = 0;
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 0);
	if (units && *end) {
		const char *unit = strchr("kMG", *end);

		if (!unit)
			return -EINVAL;
		shift = 10 * (unit - "kMG" + 1);
		end++;
	}
	if (errno || *end || v > UINT64_MAX >> shift || v << shift < min || v << shift > max)
		return -EINVAL;
	*out = v << shift;
	return 0;
}

static int add_port(struct capture_spec *s, const char *name, bool device)
{
	if (s->nports == CAPTURE_PORTS)
		return -E2BIG;
	s->port[s->nports].device = device;
	s->port[s->nports].name = strdup(name);
	return s->port[s->nports++].name ? 0 : -ENOMEM;
}

static int set_key(struct capture_spec *s, enum key key, const char *val)
{
	uint64_t n;
	int err;

	switch (key) {
	case KEY_DEVICE:
	case KEY_PORT:
		return add_port(s, val, key == KEY_DEVICE);
	case KEY_QP:
		err = parse_number(val, false, 0, MAX_QPN, &n);
		s->qpn = n;
		s->one_qp = true;
		return err;
	case KEY_SNAPLEN:
		err = parse_number(val, true, MIN_SNAPLEN, CAPTURE_SNAPLEN, &n);
		s->snaplen = n;
		return err;
	case KEY_LIMIT:
		return parse_number(val, true, MIN_LIMIT, INT64_MAX, &s->limit);
	default:
		err = parse_number(val, true, MIN_BUFFER, MAX_BUFFER, &n);
		s->buffer = n;
		return err;
	}
}

static int parse_keys(struct capture_spec *s, char *rest, char *why, size_t room)
{
	while (*rest) {
		char *val;
		int key = getsubopt(&rest, keys, &val), err;

		if (key < 0 || !val || !*val) {
			snprintf(why, room, "\"%.100s\" is not one of %s with a value",
				 key < 0 ? val : keys[key],
				 "device=, port=, qp=, snaplen=, limit=, buffer=");
			return -EINVAL;
		}
		err = set_key(s, key, val);
		if (err == -E2BIG) {
			snprintf(why, room, "more than %d devices and ports", CAPTURE_PORTS);
			return -EINVAL;
		}
		if (err) {
			snprintf(why, room, "%s=%.100s: %s", keys[key], val, err == -EINVAL ?
				 "not a number, or too small or too large" : strerror(-err));
			return err;
		}
	}
	return 0;
}

int capture_spec_parse(struct capture_spec *spec, const char *text, char *why, size_t room)
{
	size_t len = strcspn(text, ",");
	char *rest = strdup(text + len + !!text[len]);
	int err = -ENOMEM;

	*spec = (struct capture_spec) { .snaplen = CAPTURE_SNAPLEN, .buffer = CAPTURE_BUFFER };
	spec->path = strndup(text, len);
	snprintf(why, room, "%s", strerror(ENOMEM));
	if (spec->path && rest)
		err = parse_keys(spec, rest, why, room);
	if (!err && !len) {
		snprintf(why, room, "no file: the form is FILE[,key=value]...");
		err = -EINVAL;
	}
	free(rest);
	if (err)
		capture_spec_free(spec);
	return err;
}

int capture_spec_copy(struct capture_spec *to, const struct capture_spec *from)
{
	int err = 0;

	*to = *from;
	to->nports = 0;
	to->path = strdup(from->path);
	for (uint32_t i = 0; !err && i < from->nports; i++)
		err = add_port(to, from->port[i].name, from->port[i].device);
	if (to->path && !err)
		return 0;
	capture_spec_free(to);
	return -ENOMEM;
}

void capture_spec_free(struct capture_spec *spec)
{
	free(spec->path);
	for (uint32_t i = 0; i < spec->nports; i++)
		free(spec->port[i].name);
	*spec = (struct capture_spec) { 0 };
}
