// SPDX-License-Identifier: GPL-2.0
/*
 * Parse who may connect to a socket: a user, a group, and permissions.
 */
#include "config.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

/** ID_NONE - first number that is no user or group; chown() takes it for "unchanged" */
#define ID_NONE		UINT32_MAX

/** struct name_space - names that stand for numbers */
struct name_space {
	const char *what;	/* "user" or "group" */
	const char *command;	/* that shows the number of a name */
	bool (*find)(const char *name, uint32_t *id);	/* false with errno if there is none */
};

static bool find_user(const char *name, uint32_t *id)
{
	const struct passwd *p = getpwnam(name);

	if (p)
		*id = p->pw_uid;
	return p;
}

static bool find_group(const char *name, uint32_t *id)
{
	const struct group *g = getgrnam(name);

	if (g)
		*id = g->gr_gid;
	return g;
}

static const struct name_space users = { "user", "getent passwd", find_user };
static const struct name_space groups = { "group", "getent group", find_group };

/* Return true if getpwnam() means by @err that there is no such user: see getpwnam(3). */
static bool means_unknown(int err)
{
	return !err || err == ENOENT || err == ESRCH || err == EBADF || err == EPERM;
}

static int resolve(const struct name_space *s, const char *text, const char *name, uint32_t *id)
{
	int err;

	errno = 0;
	if (s->find(name, id))
		return 0;
	err = -errno;
	if (means_unknown(-err)) {
		log_err("%s: there is no %s \"%s\"", text, s->what, name);
		return -EINVAL;
	}
	log_err("%s: cannot look for %s \"%s\": %s", text, s->what, name, strerror(-err));
	return err;
}

static int set_id(const struct name_space *s, const char *text, const char *name, bool numeric,
		  uint32_t *id)
{
	size_t len = strlen(name);
	unsigned long long number;

	if (!len) {
		log_err("%s: a %s must not be empty", text, s->what);
		return -EINVAL;
	}
	if (strspn(name, "0123456789") != len) {
		if (!numeric)
			return resolve(s, text, name, id);
		log_err("%s: %s \"%s\" is not a number; while the daemon runs, use the number that \"%s %s\" shows",
			text, s->what, name, s->command, name);
		return -EINVAL;
	}
	number = strtoull(name, NULL, 10);	/* the largest one if it does not fit */
	if (number >= ID_NONE) {
		log_err("%s: %s %s is not a number below %u", text, s->what, name, ID_NONE);
		return -EINVAL;
	}
	*id = number;
	return 0;
}

static int set_mode(const char *text, const char *mode, mode_t *out)
{
	size_t len = strlen(mode);

	if (!len || len > 4 || strspn(mode, "01234567") != len || strtoul(mode, NULL, 8) > 0777) {
		log_err("%s: mode \"%s\" is not an octal number from 0 to 0777", text, mode);
		return -EINVAL;
	}
	*out = strtoul(mode, NULL, 8);
	return 0;
}

int config_access(const char *text, const char *const val[CONFIG_ACCESS_KEYS], bool numeric,
		  struct unix_access *out)
{
	int err = 0;

	out->has_uid |= !!val[CONFIG_OWNER];
	out->has_gid |= !!val[CONFIG_GROUP];
	out->has_mode |= !!val[CONFIG_MODE];
	if (val[CONFIG_OWNER])
		err = set_id(&users, text, val[CONFIG_OWNER], numeric, &out->uid);
	if (!err && val[CONFIG_GROUP])
		err = set_id(&groups, text, val[CONFIG_GROUP], numeric, &out->gid);
	if (!err && val[CONFIG_MODE])
		err = set_mode(text, val[CONFIG_MODE], &out->mode);
	return err;
}

int config_set_access(struct unix_access *out, const char *text, enum config_access_key key,
		      const char *val)
{
	const char *all[CONFIG_ACCESS_KEYS] = { NULL };

	all[key] = val;
	return config_access(text, all, false, out);
}
