// SPDX-License-Identifier: GPL-2.0
/*
 * Read the device clock for a process.
 *
 * The provider converts time stamps of completions to system time by itself. For
 * that it reads both clocks from time to time (ORN-CLK-5). The driver reads system
 * time before and after the command and reports the middle. Its error is at most
 * half of the command's duration, less than a process could achieve. The thread or the
 * device may be delayed, so a command that took long is repeated.
 */
#include <linux/ktime.h>
#include <linux/minmax.h>

#include <linux/ornic/hw/admin.h>
#include <rdma/ornic-abi.h>

#include "query.h"
#include "cmd.h"
#include "ornic_ib.h"

#define ORNIC_CLOCK_TRIES	4
#define ORNIC_CLOCK_GOOD_NS	(500 * NSEC_PER_USEC)	/* error of a reading that suffices */

/* Fill the members of @resp that a reading of the clocks gives. Return: 0 or negative errno. */
static int ornic_ib_clock_try(struct ornic_ib_dev *dev, struct ornic_uresp_query_device *resp)
{
	struct ornic_clock_rsp clock;
	u64 before, begin, half;
	int ret;

	before = ktime_get_real_ns();
	begin = ktime_get_ns();		/* system time may be set meanwhile */
	ret = ornic_ib_cmd_clock_read(dev, &clock);
	if (ret)
		return ret;
	half = (ktime_get_ns() - begin) / 2;

	resp->clock = le64_to_cpu(clock.clock);
	resp->system_ns = before + half;
	resp->error_ns = min_t(u64, half + 1, U32_MAX);
	return 0;
}

/**
 * ornic_ib_clock_read() - read device clock and system time together
 * @dev: device with feature TIMESTAMP
 * @resp: response to fill; times in nanoseconds, @clock in ticks of the device
 *
 * Takes the best of a few readings. Context: process context, may sleep. Return: 0 or negative
 * errno.
 */
int ornic_ib_clock_read(struct ornic_ib_dev *dev, struct ornic_uresp_query_device *resp)
{
	const struct ornic_identify_device *id = &dev->odev->id;
	struct ornic_uresp_query_device next = *resp;
	int tries = ORNIC_CLOCK_TRIES;
	int ret;

	ret = ornic_ib_clock_try(dev, resp);
	if (ret)
		return ret;
	while (resp->error_ns > ORNIC_CLOCK_GOOD_NS && --tries &&
	       !ornic_ib_clock_try(dev, &next))
		if (next.error_ns < resp->error_ns)
			*resp = next;

	resp->clock_mask = le64_to_cpu(id->clock_mask);
	resp->clock_khz = le32_to_cpu(id->clock_khz);
	return 0;
}
