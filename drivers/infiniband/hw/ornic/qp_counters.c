// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of single queue pairs: a counter of ib_core is a counter set of the
 * device, its id the set's number.
 *
 * ib_core adds the values of all its counters, by position, to those that it
 * reads for the port, as if a port did not count what a counter does. So each
 * counter has the positions of the port, with those disabled that a set does
 * not have; and as an ornic port counts everything, what the sets counted is
 * subtracted from what ib_core is told of the port (ORN-STAT-11).
 */
#include "ornic_ib.h"

/* A counter of the port without the same for counter sets, or the other way round. */
#define NO_INDEX	U32_MAX

static u32 ornic_port_index(const struct ornic_ib_stats *port, const char *name)
{
	u32 i;

	for (i = 0; i < port->count; i++)
		if (!strcmp(port->descs[i].name, name))
			return i;
	return NO_INDEX;
}

/* What the sets have counted, all together, in the order of the device's entries. */
static __le64 *ornic_read_set(struct ornic_ib_dev *dev, u32 number)
{
	u32 span = dev->qp_stats.span;
	__le64 *values;
	int ret;

	values = kcalloc(span, sizeof(*values), GFP_KERNEL);
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
 * The sum over all sets may stem from an earlier life of this driver, of which
 * ib_core knows nothing. The caller frees also after an error.
 */
int ornic_ib_qp_stats_init(struct ornic_ib_dev *dev)
{
	struct ornic_ib_stats *stats = &dev->qp_stats;
	__le64 *before;
	u32 i;

	if (!stats->count)
		return 0;
	dev->qp_to_port = kcalloc(stats->count, sizeof(*dev->qp_to_port), GFP_KERNEL);
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
 * ornic_ib_qp_stats_hide() - take what the counter sets counted from values of the port
 * @dev: device
 * @value: values of the port, read before
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

/* The first queue pair brings the set. */
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

/* ib_core calls it without asking whether it is there; there is nothing to add. */
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
