// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of single queue pairs. A counter of ib_core is a counter set of the
 * device, and its id is the number of the set.
 *
 * To show a port, ib_core adds the values of all its counters at the same index
 * to the value that get_hw_stats() returns: rdma_counter_get_hwstat_value() in
 * 6.12 and 7.2. It assumes that the port does not count the traffic of bound
 * queue pairs. So each counter has the indices of the port, and those that a set
 * does not have are disabled. An ornic port counts all traffic, so the driver
 * reports port value - sum over all sets (ORN-STAT-11).
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <linux/ornic/hw/qp.h>
#include <linux/ornic/hw/stats.h>

#include "counters.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "qp.h"

/* The counter of a set has no counter of this name in the port. */
#define NO_INDEX	U32_MAX

static u32 ornic_port_index(const struct ornic_ib_stats *port, const char *name)
{
	u32 i;

	for (i = 0; i < port->count; i++)
		if (!strcmp(port->descs[i].name, name))
			return i;
	return NO_INDEX;
}

/* Read the values of set @number in the order of the device's entries; 0 is the sum of all sets. */
static __le64 *ornic_read_set(struct ornic_ib_dev *dev, u32 number)
{
	u32 span = dev->qp_stats.span;
	__le64 *values;
	int ret;

	values = kzalloc_objs(*values, span);
	if (!values)
		return ERR_PTR(-ENOMEM);
	ret = ornic_ib_stats_read(dev, ORNIC_STAT_QP, number, span, values);
	if (ret) {
		kfree(values);
		return ERR_PTR(ret);
	}
	return values;
}

/**
 * ornic_ib_qp_stats_init() - prepare for counters of queue pairs
 * @dev: device, names of its counters read
 *
 * Saves the current sum over all sets: sets of an earlier load of this driver may have contributed
 * to it, but ib_core knows only the new counters.
 *
 * The caller frees by ornic_ib_qp_stats_free(), also after an error.
 *
 * Context: process context, may sleep. Return: 0 or negative errno.
 */
int ornic_ib_qp_stats_init(struct ornic_ib_dev *dev)
{
	struct ornic_ib_stats *stats = &dev->qp_stats;
	__le64 *before;
	u32 i;

	if (!stats->count)
		return 0;
	dev->qp_to_port = kzalloc_objs(*dev->qp_to_port, stats->count);
	if (!dev->qp_to_port)
		return -ENOMEM;
	before = ornic_read_set(dev, 0);
	if (IS_ERR(before))
		return PTR_ERR(before);
	dev->qp_before = before;
	for (i = 0; i < stats->count; i++)
		dev->qp_to_port[i] = ornic_port_index(&dev->port_stats, stats->descs[i].name);
	return 0;
}

void ornic_ib_qp_stats_free(struct ornic_ib_dev *dev)
{
	kfree(dev->qp_to_port);
	kfree(dev->qp_before);
}

/**
 * ornic_ib_qp_stats_hide() - subtract the sum over all counter sets from the port's values
 * @dev: device
 * @value: values of the port, indexed as in @dev->port_stats
 *
 * Context: process context, may sleep.
 *
 * Return: 0 or negative errno.
 */
int ornic_ib_qp_stats_hide(struct ornic_ib_dev *dev, u64 *value)
{
	const struct ornic_ib_stats *stats = &dev->qp_stats;
	__le64 *sum;
	u32 i;

	if (!stats->count)
		return 0;
	sum = ornic_read_set(dev, 0);
	if (IS_ERR(sum))
		return PTR_ERR(sum);
	for (i = 0; i < stats->count; i++)
		if (dev->qp_to_port[i] != NO_INDEX)
			value[dev->qp_to_port[i]] -= le64_to_cpu(sum[stats->index[i]]) -
						     le64_to_cpu(dev->qp_before[stats->index[i]]);
	kfree(sum);
	return 0;
}

static int ornic_use_set(struct ib_qp *ibqp, u32 number)
{
	struct ornic_qp_modify_cmd cmd = {
		.mask = cpu_to_le32(ORNIC_QPM_COUNTER_SET),
		.counter_set = cpu_to_le32(number),
	};

	if (to_oqp(ibqp)->rss)
		return -EOPNOTSUPP;
	return ornic_ib_cmd_qp_modify(to_oib(ibqp->device), to_oqp(ibqp)->qpn, &cmd);
}

/* Bind a queue pair to a counter; the first one also creates the counter set. */
static int ornic_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port)
{
	struct ornic_ib_dev *dev = to_oib(counter->device);
	bool first = !counter->id;
	int ret;

	if (first) {
		ret = ornic_ib_cmd_counter_create(dev, &counter->id);
		if (ret)
			return ret;
	}
	ret = ornic_use_set(ibqp, counter->id);
	if (!ret) {
		ibqp->counter = counter;
		return 0;
	}
	if (first) {
		ornic_ib_cmd_counter_destroy(dev, counter->id);
		counter->id = 0;
	}
	return ret;
}

static int ornic_counter_unbind_qp(struct ib_qp *ibqp, u32 port)
{
	int ret;

	ret = ornic_use_set(ibqp, 0);
	if (ret && !ornic_device_dead(to_oib(ibqp->device)->odev))
		return ret;
	ibqp->counter = NULL;
	return 0;
}

static int ornic_counter_dealloc(struct rdma_counter *counter)
{
	if (counter->id)
		ornic_ib_cmd_counter_destroy(to_oib(counter->device), counter->id);
	return 0;
}

static struct rdma_hw_stats *ornic_counter_alloc_stats(struct rdma_counter *counter)
{
	struct ornic_ib_dev *dev = to_oib(counter->device);
	struct rdma_hw_stats *stats;
	u32 i;

	stats = ornic_ib_alloc_port_stats(counter->device, counter->port);
	if (!stats)
		return NULL;
	bitmap_fill(stats->is_disabled, dev->port_stats.count);
	for (i = 0; i < dev->qp_stats.count; i++)
		if (dev->qp_to_port[i] != NO_INDEX)
			clear_bit(dev->qp_to_port[i], stats->is_disabled);
	return stats;
}

static int ornic_counter_update_stats(struct rdma_counter *counter)
{
	struct ornic_ib_dev *dev = to_oib(counter->device);
	__le64 *values = ornic_read_set(dev, counter->id);
	u32 i;

	if (IS_ERR(values))
		return PTR_ERR(values);
	for (i = 0; i < dev->qp_stats.count; i++)
		if (dev->qp_to_port[i] != NO_INDEX)
			counter->stats->value[dev->qp_to_port[i]] =
				le64_to_cpu(values[dev->qp_stats.index[i]]);
	kfree(values);
	return 0;
}

/* Empty, but 7.2 calls counter_init() without a test for NULL (alloc_and_bind()). */
static void ornic_counter_init(struct rdma_counter *counter)
{
}

const struct ib_device_ops ornic_ib_qp_stats_ops = {
	.counter_alloc_stats = ornic_counter_alloc_stats,
	.counter_bind_qp = ornic_counter_bind_qp,
	.counter_dealloc = ornic_counter_dealloc,
	.counter_init = ornic_counter_init,
	.counter_unbind_qp = ornic_counter_unbind_qp,
	.counter_update_stats = ornic_counter_update_stats,

	.size_rdma_counter = sizeof(struct rdma_counter),
};
