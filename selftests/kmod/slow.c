// SPDX-License-Identifier: GPL-2.0
/*
 * Delay every call of one function, to widen the window of a race between two processors.
 * Parameters: symbol, the function; ms and us, milliseconds and microseconds of delay; at_return,
 * delay the return of the function instead of its begin.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static char *symbol = "";
module_param(symbol, charp, 0444);
MODULE_PARM_DESC(symbol, "function to delay");

static unsigned int ms = 1;
module_param(ms, uint, 0644);
MODULE_PARM_DESC(ms, "milliseconds of delay");

static unsigned int us;
module_param(us, uint, 0644);
MODULE_PARM_DESC(us, "microseconds of delay");

static bool at_return;
module_param(at_return, bool, 0444);
MODULE_PARM_DESC(at_return, "delay the return of the function");

static unsigned long calls;
module_param(calls, ulong, 0444);
MODULE_PARM_DESC(calls, "calls delayed so far");

static void slow_delay(void)
{
	calls++;
	mdelay(ms);
	udelay(us);
}

static int slow_before(struct kprobe *probe, struct pt_regs *regs)
{
	slow_delay();
	return 0;
}

static int slow_after(struct kretprobe_instance *call, struct pt_regs *regs)
{
	slow_delay();
	return 0;
}

static struct kprobe slow_probe = {
	.pre_handler = slow_before,
};

static struct kretprobe slow_return = {
	.handler = slow_after,
};

static int __init slow_init(void)
{
	slow_probe.symbol_name = symbol;
	slow_return.kp.symbol_name = symbol;
	return at_return ? register_kretprobe(&slow_return) : register_kprobe(&slow_probe);
}

static void __exit slow_exit(void)
{
	if (at_return)
		unregister_kretprobe(&slow_return);
	else
		unregister_kprobe(&slow_probe);
}

module_init(slow_init);
module_exit(slow_exit);

MODULE_DESCRIPTION("delay of a function, for tests");
MODULE_LICENSE("GPL");
