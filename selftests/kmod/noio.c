// SPDX-License-Identifier: GPL-2.0
/*
 * Count what must not wait for I/O: the writers of odev->numbers, for their allocations under the
 * lock, and what brings a device up. The module finds the lock when a driver registers a CQ for
 * events.
 * Parameters, read-only: writers and bringups, all; io, those whose allocations may do I/O.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

#include <linux/ornic/core.h>

static unsigned int writers;
module_param(writers, uint, 0444);
MODULE_PARM_DESC(writers, "how often the lock was taken for writing");

static unsigned int bringups;
module_param(bringups, uint, 0444);
MODULE_PARM_DESC(bringups, "how often a device was brought up");

static unsigned int io;
module_param(io, uint, 0444);
MODULE_PARM_DESC(io, "how often without PF_MEMALLOC_NOIO");

static struct rw_semaphore *lock;

static int noio_find(struct kprobe *probe, struct pt_regs *regs)
{
	struct ornic_dev *odev = (void *)regs_get_kernel_argument(regs, 0);

	WRITE_ONCE(lock, &odev->numbers);
	return 0;
}

static void noio_count(unsigned int *all)
{
	(*all)++;
	if (!(current->flags & PF_MEMALLOC_NOIO))
		io++;
}

static int noio_unlock(struct kprobe *probe, struct pt_regs *regs)
{
	if ((void *)regs_get_kernel_argument(regs, 0) == READ_ONCE(lock))
		noio_count(&writers);
	return 0;
}

static int noio_bringup(struct kprobe *probe, struct pt_regs *regs)
{
	noio_count(&bringups);
	return 0;
}

static struct kprobe noio_probes[] = {
	{ .symbol_name = "ornic_comp_add", .pre_handler = noio_find },
	{ .symbol_name = "up_write", .pre_handler = noio_unlock },
	{ .symbol_name = "ornic_bringup", .pre_handler = noio_bringup },
};

static struct kprobe *noio_all[] = { &noio_probes[0], &noio_probes[1], &noio_probes[2] };

static int __init noio_init(void)
{
	return register_kprobes(noio_all, ARRAY_SIZE(noio_all));
}

static void __exit noio_exit(void)
{
	unregister_kprobes(noio_all, ARRAY_SIZE(noio_all));
}

module_init(noio_init);
module_exit(noio_exit);

MODULE_DESCRIPTION("count what must not wait for I/O, for tests");
MODULE_LICENSE("GPL");
