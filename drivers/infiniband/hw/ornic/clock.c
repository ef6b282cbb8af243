// SPDX-License-Identifier: GPL-2.0
/*
 * Read the device clock for a process.
 *
 * The provider converts time stamps of completions to system time by itself. For
 * that it reads both clocks from time to time (ORN-CLK-5). The driver reads system
 * time before and after the command and reports the middle. Its error is at most
 * half of the command's duration, less than a process could achieve.
 */
#include <linux/ktime.h>
#include <linux/minmax.h>

#include <linux/ornic/hw/admin.h>
#include <rdma/ornic-abi.h>

#include "query.h"
#include "cmd.h"
#include "ornic_ib.h"

/**
 * ornic_ib_clock_read() - read device clock and system time together
 * @dev: device with feature TIMESTAMP
 * @resp: response to fill; times in nanoseconds, @clock in ticks of the device
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
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
	/* the difference is negative if system time was set back meanwhile */
	half = max_t(s64, ktime_get_real_ns() - before, 0) / 2;

	resp->clock = le64_to_cpu(clock.clock);
	resp->clock_mask = le64_to_cpu(id->clock_mask);
	resp->system_ns = before + half;
	resp->clock_khz = le32_to_cpu(id->clock_khz);
	resp->error_ns = min_t(u64, half + 1, U32_MAX);
	return 0;
}
