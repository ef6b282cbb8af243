// SPDX-License-Identifier: GPL-2.0
/*
 * Mend a mistake of RDS (6.12), for x86-64: rds_dma_hdr_alloc() maps message headers in both
 * directions, and rds_dma_hdrs_free() unmaps them in one. Without this module dma-debug reports
 * each header whenever a connection ends.
 */
#include <linux/dma-direction.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static int rds_before(struct kprobe *probe, struct pt_regs *regs)
{
	regs->r8 = DMA_BIDIRECTIONAL;	/* the fifth parameter, dir */
	return 0;
}

static struct kprobe rds_probe = {
	.symbol_name = "rds_dma_hdrs_free",
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
