// SPDX-License-Identifier: GPL-2.0
/*
 * Keep two mistakes of RDS (6.12) out of the reports of a debug kernel, for x86-64.
 *
 * It maps message headers in both directions and unmaps them in one; all else it maps as
 * scatterlists. Without this module dma-debug reports each header whenever a connection ends.
 *
 * rds_ib_laddr_check() creates an rdma_cm_id and destroys it, with locks held that the handlers of
 * other ids take, or within such a handler. lockdep does not know that the ids are never the same,
 * and after its report it checks no lock any more. The module must not be unloaded while RDS is in
 * use: a task that is in the function then would stay without lockdep.
 */
#include <linux/dma-direction.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/string.h>

#define RDS_HEADER	48	/* bytes of struct rds_header */

static int rds_unmap_begins(struct kprobe *probe, struct pt_regs *regs)
{
	char caller[KSYM_SYMBOL_LEN];

	if (regs->dx != RDS_HEADER)	/* the third parameter, size */
		return 0;
	sprint_symbol(caller, regs_get_kernel_stack_nth(regs, 0));
	if (strstr(caller, "[rds_rdma]"))
		regs->cx = DMA_BIDIRECTIONAL;	/* the fourth parameter, dir */
	return 0;
}

static struct kprobe rds_unmap = {
	.symbol_name = "dma_unmap_page_attrs",
	.pre_handler = rds_unmap_begins,
};

static int rds_check_begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	lockdep_off();
	return 0;
}

static int rds_check_ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	lockdep_on();
	return 0;
}

static struct kretprobe rds_check = {
	.kp.symbol_name = "rds_ib_laddr_check",
	.entry_handler = rds_check_begins,
	.handler = rds_check_ends,
	.maxactive = 64,
};

static int __init rds_init(void)
{
	int ret = register_kprobe(&rds_unmap);

	if (ret)
		return ret;
	ret = register_kretprobe(&rds_check);
	if (ret)
		unregister_kprobe(&rds_unmap);
	return ret;
}

static void __exit rds_exit(void)
{
	unregister_kretprobe(&rds_check);
	unregister_kprobe(&rds_unmap);
}

module_init(rds_init);
module_exit(rds_exit);

MODULE_DESCRIPTION("mistakes of RDS kept out of reports, for tests");
MODULE_LICENSE("GPL");
