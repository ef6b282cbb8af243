// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of the process: see share.h.
 */
#include "share.h"

#include "log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Mappings of the process that are no memory files: libraries, threads, large allocations */
#define OTHER_MAPS	1024u
/* Address space for memory files: three quarters of what a process of x86-64 has */
#define ADDRESS_SPACE	(96ull << 40)
/* Most descriptors that wait to be closed */
#define CLOSE_MAX	64u

/**
 * struct total - what the devices may use together, and a limit
 * @sum:	the total
 * @max:	the limit
 * @told:	the log has the warning that the total exceeds it
 */
struct total {
	uint64_t sum;
	uint64_t max;
	bool told;
};

static unsigned int limit = UINT_MAX;	/* of descriptors */
static struct total descriptors = { .sum = SHARE_OWN, .max = UINT64_MAX };
static struct total maps = { .sum = OTHER_MAPS, .max = UINT64_MAX };
static struct total space = { .max = ADDRESS_SPACE };
static unsigned int devices;
static bool scarce;

static uint64_t read_max_maps(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned int n;

	if (!f)
		return UINT64_MAX;
	if (fscanf(f, "%u", &n) != 1)
		n = UINT_MAX;
	fclose(f);
	return n;
}

void share_raise(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) < 0)
		return;
	rl.rlim_cur = rl.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &rl) < 0)
		log_warn("cannot raise the soft limit of open files: %s", strerror(errno));
	if (!getrlimit(RLIMIT_NOFILE, &rl))
		limit = rl.rlim_cur < UINT_MAX ? rl.rlim_cur : UINT_MAX;
	descriptors.max = limit;
	maps.max = read_max_maps();
}

/* Return the descriptors of each device. */
static unsigned int share(void)
{
	unsigned int each;

	if (limit <= SHARE_OWN)
		return 0;
	each = (limit - SHARE_OWN) / (devices ? devices : 1);
	return each < SHARE_FULL ? each : SHARE_FULL;
}

void share_join(unsigned int files, uint64_t bytes)
{
	devices++;
	descriptors.sum += SHARE_FULL;
	maps.sum += files;
	space.sum += bytes;
}

void share_leave(unsigned int files, uint64_t bytes)
{
	devices--;
	descriptors.sum -= SHARE_FULL;
	maps.sum -= files;
	space.sum -= bytes;
}

/* Return true if the total exceeds its limit, and the log has no warning of it yet. */
static bool exceeds(struct total *t)
{
	bool was_told = t->told;

	t->told = t->sum > t->max;
	return t->told && !was_told;
}

void share_check(void)
{
	if (exceeds(&descriptors))
		log_warn("the hard limit of open files is %u, but %u devices need %llu: each gets at most %u interrupts; raise it (LimitNOFILE=, ulimit -Hn)",
			 limit, devices, (unsigned long long)descriptors.sum, share_keep());
	if (exceeds(&maps))
		log_warn("vm.max_map_count is %llu, but the memory files of %u devices need %llu: a virtual machine can use up those of others; raise it, or lower memory-files= of the devices",
			 (unsigned long long)maps.max, devices, (unsigned long long)maps.sum);
	if (exceeds(&space))
		log_warn("%u devices may map %llu GiB of guest memory, but a process has address space for %llu GiB: a virtual machine can use up that of others; lower memory= of the devices",
			 devices, (unsigned long long)space.sum >> 30,
			 (unsigned long long)space.max >> 30);
}

unsigned int share_keep(void)
{
	unsigned int each = share();

	return each < SHARE_FULL ? each / 2 : UINT_MAX;
}

unsigned int share_close(void)
{
	unsigned int each = share() / 4;

	return each < CLOSE_MAX ? each : CLOSE_MAX;
}

/* Two messages' worth, because descriptors of our own may follow. */
void share_saw(int fd)
{
	scarce = (unsigned int)fd + 2 * SHARE_MESSAGE >= limit;
}

bool share_scarce(void)
{
	return scarce;
}
