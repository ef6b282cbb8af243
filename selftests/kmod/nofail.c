// SPDX-License-Identifier: GPL-2.0
/*
 * Keep injected failures out of register_irq_proc(), which request_irq() calls.
 *
 * It ignores that a file of /proc/irq cannot be created (6.12), and the kernel warns of the missing
 * file when the interrupt is freed. A task with fail_nth set fails only its allocation of this
 * number, whatever the settings in debugfs are. INT_MAX is never reached.
 */
#include <linux/kprobes.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/sched.h>

static int nofail_begin(struct kretprobe_instance *call, struct pt_regs *regs)
{
	unsigned int *before = (void *)call->data;

	*before = current->fail_nth;
	current->fail_nth = INT_MAX;
	return 0;
}

static int nofail_end(struct kretprobe_instance *call, struct pt_regs *regs)
{
	const unsigned int *before = (void *)call->data;

	current->fail_nth = *before;
	return 0;
}

static struct kretprobe nofail_probe = {
	.kp.symbol_name = "register_irq_proc",
	.entry_handler = nofail_begin,
	.handler = nofail_end,
	.data_size = sizeof(unsigned int),
};

static int __init nofail_init(void)
{
	return register_kretprobe(&nofail_probe);
}

static void __exit nofail_exit(void)
{
	unregister_kretprobe(&nofail_probe);
}

module_init(nofail_init);
module_exit(nofail_exit);

MODULE_DESCRIPTION("no injected failure while the kernel registers an interrupt, for tests");
MODULE_LICENSE("GPL");
