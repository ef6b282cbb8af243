// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of device and port. The device defines their names.
 *
 * The driver reads the names once, at probe. They become file names in sysfs, so
 * invalid and duplicate names are left out. Values are read by their index among
 * the counters of a scope.
 */
#include <linux/ctype.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <linux/ornic/hw/admin.h>
#include <linux/ornic/hw/stats.h>

#include "counters.h"
#include "cmd.h"
#include "ornic_ib.h"

#define NAMES_PER_READ	(ORNIC_ADMIN_MAX_PAYLOAD / sizeof(struct ornic_stat_name))
#define VALUES_PER_READ	(ORNIC_ADMIN_MAX_PAYLOAD / sizeof(__le64))

/* Most counters of a device. Bounds the memory and time that a faulty device costs. */
#define MAX_STATS	1024

/* ib_core puts its own file "lifespan" into the folder of the counters (6.1 to 7.2). */
static bool ornic_name_usable(const struct ornic_ib_stats *stats, const char *name)
{
	const char *p;
	u32 i;

	if (!islower(*name) || !strcmp(name, "lifespan"))
		return false;
	for (p = name; *p; p++)
		if (!islower(*p) && !isdigit(*p) && *p != '_')
			return false;
	for (i = 0; i < stats->count; i++)
		if (!strcmp(stats->descs[i].name, name))
			return false;
	return true;
}

static int ornic_add_stat(struct ornic_ib_stats *stats, const struct ornic_stat_name *from)
{
	u32 index = stats->span++;
	char *name;

	name = kstrndup(from->name, sizeof(from->name), GFP_KERNEL);
	if (!name)
		return -ENOMEM;
	if (!ornic_name_usable(stats, name)) {
		kfree(name);
		return 0;
	}
	stats->index[stats->count] = index;
	stats->descs[stats->count++].name = name;
	return 0;
}

static int ornic_add_names(struct ornic_ib_dev *dev, const struct ornic_stat_name *names, u32 count)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < count && !ret; i++) {
		if (names[i].scope == ORNIC_STAT_PORT)
			ret = ornic_add_stat(&dev->port_stats, &names[i]);
		else if (names[i].scope == ORNIC_STAT_DEVICE)
			ret = ornic_add_stat(&dev->device_stats, &names[i]);
		else if (names[i].scope == ORNIC_STAT_QP &&
			 ornic_has(dev->odev, ORNIC_FEATURE(COUNTER_SETS)))
			ret = ornic_add_stat(&dev->qp_stats, &names[i]);
	}
	return ret;
}

static int ornic_alloc_stats(struct ornic_ib_stats *stats, u32 count)
{
	stats->descs = kzalloc_objs(*stats->descs, count);
	stats->index = kzalloc_objs(*stats->index, count);
	return stats->descs && stats->index ? 0 : -ENOMEM;
}

/**
 * ornic_ib_stats_init() - read the names of the counters
 * @dev: device
 *
 * The caller frees by ornic_ib_stats_free(), also after an error.
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_stats_init(struct ornic_ib_dev *dev)
{
	u32 total = min_t(u32, le32_to_cpu(dev->odev->id.stat_count), MAX_STATS);
	struct ornic_stat_name *names;
	u32 offset, count;
	int ret;

	ret = ornic_alloc_stats(&dev->port_stats, total);
	if (!ret)
		ret = ornic_alloc_stats(&dev->device_stats, total);
	if (!ret)
		ret = ornic_alloc_stats(&dev->qp_stats, total);
	if (ret)
		return ret;
	names = kzalloc_objs(*names, NAMES_PER_READ);
	if (!names)
		return -ENOMEM;

	for (offset = 0; offset < total && !ret; offset += count) {
		count = min_t(u32, total - offset, NAMES_PER_READ);
		ret = ornic_ib_cmd_stat_names(dev, offset, names, count);
		if (!ret)
			ret = ornic_add_names(dev, names, count);
	}
	kfree(names);
	return ret ? ret : ornic_ib_qp_stats_init(dev);
}

static void ornic_free_stats(struct ornic_ib_stats *stats)
{
	u32 i;

	for (i = 0; i < stats->count; i++)
		kfree(stats->descs[i].name);
	kfree(stats->descs);
	kfree(stats->index);
}

void ornic_ib_stats_free(struct ornic_ib_dev *dev)
{
	ornic_free_stats(&dev->port_stats);
	ornic_free_stats(&dev->device_stats);
	ornic_free_stats(&dev->qp_stats);
	ornic_ib_qp_stats_free(dev);
}

struct rdma_hw_stats *ornic_ib_alloc_port_stats(struct ib_device *ibdev, u32 port)
{
	const struct ornic_ib_stats *stats = &to_oib(ibdev)->port_stats;

	return rdma_alloc_hw_stats_struct(stats->descs, stats->count,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

struct rdma_hw_stats *ornic_ib_alloc_device_stats(struct ib_device *ibdev)
{
	const struct ornic_ib_stats *stats = &to_oib(ibdev)->device_stats;

	return rdma_alloc_hw_stats_struct(stats->descs, stats->count,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/**
 * ornic_ib_stats_read() - read all values of a scope
 * @dev: device
 * @scope: enum ornic_stat_scope
 * @number: number of the port or counter set; 0 for other scopes
 * @span: number of counters of the scope
 * @values: array of @span values to fill
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_stats_read(struct ornic_ib_dev *dev, u8 scope, u32 number, u32 span, __le64 *values)
{
	struct ornic_stat_read_cmd cmd = { .scope = scope, .number = cpu_to_le32(number) };
	u32 first, count;
	int ret = 0;

	for (first = 0; first < span && !ret; first += count) {
		count = min_t(u32, span - first, VALUES_PER_READ);
		cmd.first = cpu_to_le32(first);
		cmd.count = cpu_to_le32(count);
		ret = ornic_ib_cmd_stat_read(dev, &cmd, values + first);
	}
	return ret;
}

/* Read the counters of a port, or of the device if @port is 0. */
int ornic_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			  int index)
{
	struct ornic_ib_dev *dev = to_oib(ibdev);
	const struct ornic_ib_stats *of = port ? &dev->port_stats : &dev->device_stats;
	__le64 *values;
	int ret;
	u32 i;

	values = kzalloc_objs(*values, of->span);
	if (!values)
		return -ENOMEM;
	ret = ornic_ib_stats_read(dev, port ? ORNIC_STAT_PORT : ORNIC_STAT_DEVICE, port, of->span,
				  values);
	for (i = 0; i < of->count && !ret; i++)
		stats->value[i] = le64_to_cpu(values[of->index[i]]);
	if (!ret && port)
		ret = ornic_ib_qp_stats_hide(dev, stats->value);
	kfree(values);
	return ret ? ret : of->count;
}
