// SPDX-License-Identifier: GPL-2.0
/*
 * Count the writers of odev->numbers whose allocations under the lock may wait for I/O. The module
 * finds the lock when a driver registers a CQ for events.
 * Parameters, read-only: writers, all; io, those whose allocations may do I/O.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

#include <linux/ornic/core.h>

static unsigned int writers;
module_param(writers, uint, 0444);
MODULE_PARM_DESC(writers, "how often the lock was taken for writing");

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

static int noio_unlock(struct kprobe *probe, struct pt_regs *regs)
{
	if ((void *)regs_get_kernel_argument(regs, 0) != READ_ONCE(lock))
		return 0;
	writers++;
	if (!(current->flags & PF_MEMALLOC_NOIO))
		io++;
	return 0;
}

static struct kprobe noio_probes[] = {
	{ .symbol_name = "ornic_comp_add", .pre_handler = noio_find },
	{ .symbol_name = "up_write", .pre_handler = noio_unlock },
};

static struct kprobe *noio_all[] = { &noio_probes[0], &noio_probes[1] };

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

MODULE_DESCRIPTION("writers of a lock whose allocations may do I/O, for tests");
MODULE_LICENSE("GPL");
