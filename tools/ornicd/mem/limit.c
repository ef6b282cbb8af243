// SPDX-License-Identifier: GPL-2.0
/*
 * How much memory this process may use.
 *
 * A limit of a control group holds for all groups below it, so each group on the way to the top is
 * looked at. Inside of a container the path in /proc/self/cgroup may name groups that are not visible;
 * then the limits of the visible ones count.
 */
#include "limit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

uint64_t memory_of_host(void)
{
	struct sysinfo info;

	if (sysinfo(&info))
		return UINT64_MAX;
	return (uint64_t)info.totalram * info.mem_unit;
}

/* Return the number in a file, or UINT64_MAX if there is none: "max", or no file. */
static uint64_t read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	uint64_t n;

	if (!f)
		return UINT64_MAX;
	if (fscanf(f, "%" SCNu64, &n) != 1)
		n = UINT64_MAX;
	fclose(f);
	return n;
}

/* Return the smallest limit in files @name of group @group, which is changed, and those above it. */
static uint64_t limit_of_group(const char *top, char *group, const char *name)
{
	uint64_t least = UINT64_MAX;
	char path[PATH_MAX];
	char *end;

	do {
		uint64_t n;

		snprintf(path, sizeof(path), "%s%s/%s", top, group, name);
		n = read_number(path);
		if (n < least)
			least = n;
		end = strrchr(group, '/');
		if (end)
			*end = '\0';
	} while (end);
	return least;
}

/* Return true if @list, separated by commas, has the controller of memory. */
static bool has_memory(char *list)
{
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ","))
		if (!strcmp(name, "memory"))
			return true;
	return false;
}

/* Return the limit of the group in a line "ID:CONTROLLERS:PATH" of /proc/self/cgroup. */
static uint64_t limit_of_line(const char *root, char *line)
{
	char *controllers = strchr(line, ':'), *group;
	char top[PATH_MAX / 2];

	group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return UINT64_MAX;
	*group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	if (strstr(group, "/.."))
		*group = '\0';
	if (!*++controllers) {
		snprintf(top, sizeof(top), "%s/sys/fs/cgroup", root);
		return limit_of_group(top, group, "memory.max");
	}
	if (!has_memory(controllers))
		return UINT64_MAX;
	snprintf(top, sizeof(top), "%s/sys/fs/cgroup/memory", root);
	return limit_of_group(top, group, "memory.limit_in_bytes");
}

uint64_t memory_limit(const char *root, uint64_t ram)
{
	char path[PATH_MAX], line[PATH_MAX];
	uint64_t least = ram;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	f = fopen(path, "re");
	if (!f)
		return least;
	while (fgets(line, sizeof(line), f)) {
		uint64_t n = limit_of_line(root, line);

		if (n < least)
			least = n;
	}
	fclose(f);
	return least;
}
