// SPDX-License-Identifier: GPL-2.0
/*
 * Reading the device clock for a process.
 *
 * The provider turns time stamps of completions into system time by itself, from
 * one reading of both clocks now and then (ORN-CLK-5). System time is taken around
 * the command, so the middle is off by half of its duration at most, and by less
 * than a process could get.
 */
#include <linux/ktime.h>

#include "ornic_ib.h"

/**
 * ornic_ib_clock_read() - read device clock and system time together
 * @dev: device, with completion time stamps
 * @resp: answer to fill in
 */
int ornic_ib_clock_read(struct ornic_ib_dev *dev, struct ornic_uresp_query_device *resp)
{
	const struct ornic_identify_device *id = &dev->odev->id;
	struct ornic_clock_rsp clock;
	u64 before, half;
	int ret;

	before = ktime_get_real_ns();
	ret = ornic_ib_cmd_clock_read(dev, &clock);
	if (ret)
		return ret;
	/* somebody may have set the system's time back meanwhile */
	half = max_t(s64, ktime_get_real_ns() - before, 0) / 2;

	resp->clock = le64_to_cpu(clock.clock);
	resp->clock_mask = le64_to_cpu(id->clock_mask);
	resp->system_ns = before + half;
	resp->clock_khz = le32_to_cpu(id->clock_khz);
	resp->error_ns = min_t(u64, half + 1, U32_MAX);
	return 0;
}
