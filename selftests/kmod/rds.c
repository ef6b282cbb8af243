// SPDX-License-Identifier: GPL-2.0
/*
 * Keep two mistakes of RDS (6.12) out of the reports of a debug kernel, for x86-64.
 *
 * It maps message headers in both directions, unmaps them in one, and maps and unmaps nothing else
 * by itself. Without this module dma-debug reports each header whenever a connection ends.
 *
 * rds_bind() destroys an rdma_cm_id under rds_trans_sem, and the handler of another id takes
 * rds_trans_sem. lockdep does not know that the two ids are never the same, and after its report it
 * checks no lock any more.
 */
#include <linux/dma-direction.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/rwsem.h>
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

#ifdef CONFIG_LOCKDEP
/* The lock is static, and modules cannot look up symbols; the address of a probe is one. */
static int __init rds_exempt_lock(void)
{
	struct kprobe finder = { .symbol_name = "kallsyms_lookup_name" };
	unsigned long (*lookup)(const char *name);
	struct rw_semaphore *lock;
	int ret;

	ret = register_kprobe(&finder);
	if (ret)
		return ret;
	lookup = (void *)finder.addr;
	unregister_kprobe(&finder);
	lock = (void *)lookup("rds:rds_trans_sem");
	if (!lock)
		return -ENOENT;
	lockdep_set_novalidate_class(lock);
	return 0;
}
#else
static int __init rds_exempt_lock(void)
{
	return 0;
}
#endif

static int __init rds_init(void)
{
	return rds_exempt_lock() ?: register_kprobe(&rds_probe);
}

static void __exit rds_exit(void)
{
	unregister_kprobe(&rds_probe);
}

module_init(rds_init);
module_exit(rds_exit);

MODULE_DESCRIPTION("mistakes of RDS kept out of reports, for tests");
MODULE_LICENSE("GPL");
