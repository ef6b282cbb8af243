// SPDX-License-Identifier: GPL-2.0
/*
 * Let the allocations of received frames fail: of ornic's interface, and napi_build_skb() for all,
 * which does not get the interface. VMs of the tests have no other interface that calls it.
 * Parameters: pages and skbs, every how many-th allocation of a receive buffer and of an sk_buff
 * fails (0: none); failed_pages and failed_skbs, read-only: how many did.
 */
#include <linux/device.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/page_pool/types.h>

/* One kind of allocation: every how many-th fails, how many were asked for, how many failed */
struct nomem {
	unsigned int every;
	unsigned int asked;
	unsigned int failed;
};

static struct nomem pages, skbs;
static DEFINE_RAW_SPINLOCK(nomem_lock);	/* of the counts */

module_param_named(pages, pages.every, uint, 0644);
MODULE_PARM_DESC(pages, "every how many-th receive buffer cannot be allocated, 0 for none");
module_param_named(skbs, skbs.every, uint, 0644);
MODULE_PARM_DESC(skbs, "every how many-th sk_buff cannot be allocated, 0 for none");
module_param_named(failed_pages, pages.failed, uint, 0444);
MODULE_PARM_DESC(failed_pages, "how many receive buffers could not be allocated");
module_param_named(failed_skbs, skbs.failed, uint, 0444);
MODULE_PARM_DESC(failed_skbs, "how many sk_buffs could not be allocated");

static bool nomem_is_ornic(const struct device *dev)
{
	return dev && dev->driver && !strcmp(dev->driver->name, "ornic");
}

static noinline void *nomem_nothing(void)
{
	return NULL;
}

static bool nomem_turn(struct nomem *kind)
{
	unsigned int every = READ_ONCE(kind->every);
	unsigned long flags;
	bool fails;

	raw_spin_lock_irqsave(&nomem_lock, flags);
	fails = every && ++kind->asked % every == 0;
	kind->failed += fails;
	raw_spin_unlock_irqrestore(&nomem_lock, flags);
	return fails;
}

/* Let the probed function return NULL, if it is the turn of this call. */
static int nomem_fail(struct pt_regs *regs, struct nomem *kind)
{
	if (!nomem_turn(kind))
		return 0;
	instruction_pointer_set(regs, (unsigned long)nomem_nothing);
	return 1;
}

static int nomem_page(struct kprobe *probe, struct pt_regs *regs)
{
	const struct page_pool *pool = (void *)regs_get_kernel_argument(regs, 0);

	return nomem_is_ornic(pool->p.dev) ? nomem_fail(regs, &pages) : 0;
}

static int nomem_copy(struct kprobe *probe, struct pt_regs *regs)
{
	const struct napi_struct *napi = (void *)regs_get_kernel_argument(regs, 0);

	return nomem_is_ornic(napi->dev->dev.parent) ? nomem_fail(regs, &skbs) : 0;
}

static int nomem_build(struct kprobe *probe, struct pt_regs *regs)
{
	return nomem_fail(regs, &skbs);
}

/* A probe with this handler is not optimized; an optimized one could not redirect the call. */
static void nomem_after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe nomem_probes[] = {
	{
		.symbol_name = "page_pool_alloc_frag",
		.pre_handler = nomem_page, .post_handler = nomem_after,
	},
	{
		.symbol_name = "napi_alloc_skb",
		.pre_handler = nomem_copy, .post_handler = nomem_after,
	},
	{
		.symbol_name = "napi_build_skb",
		.pre_handler = nomem_build, .post_handler = nomem_after,
	},
};

static struct kprobe *nomem_all[] = { &nomem_probes[0], &nomem_probes[1], &nomem_probes[2] };

static int __init nomem_init(void)
{
	return register_kprobes(nomem_all, ARRAY_SIZE(nomem_all));
}

static void __exit nomem_exit(void)
{
	unregister_kprobes(nomem_all, ARRAY_SIZE(nomem_all));
}

module_init(nomem_init);
module_exit(nomem_exit);

MODULE_DESCRIPTION("failing allocations of received frames, for tests");
MODULE_LICENSE("GPL");
