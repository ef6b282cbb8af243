// SPDX-License-Identifier: GPL-2.0
/*
 * Mend a mistake of RDS (6.12), for x86-64: it maps message headers in both directions, unmaps them
 * in one, and maps and unmaps nothing else by itself. Without this module dma-debug reports each
 * header whenever a connection ends.
 */
#include <linux/dma-direction.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>

#define RDS_HEADER	48	/* bytes of struct rds_header */

static int rds_before(struct kprobe *probe, struct pt_regs *regs)
{
	char caller[KSYM_SYMBOL_LEN];

	if (regs->dx != RDS_HEADER)	/* the third parameter, size */
		return 0;
	sprint_symbol(caller, regs_get_kernel_stack_nth(regs, 0));
	if (strstr(caller, "[rds_rdma]"))
		regs->cx = DMA_BIDIRECTIONAL;	/* the fourth parameter, dir */
	return 0;
}

static struct kprobe rds_probe = {
	.symbol_name = "dma_unmap_page_attrs",
	.pre_handler = rds_before,
};

static int __init rds_init(void)
{
	return register_kprobe(&rds_probe);
}

static void __exit rds_exit(void)
{
	unregister_kprobe(&rds_probe);
}

module_init(rds_init);
module_exit(rds_exit);

MODULE_DESCRIPTION("direction in which RDS unmaps its headers, for tests");
MODULE_LICENSE("GPL");
