// SPDX-License-Identifier: GPL-2.0
/*
 * Let the allocations of received frames fail, those of ornic's interface only.
 * Parameters: pages and skbs, every how many-th allocation of a receive buffer and of an sk_buff
 * fails (0: none); failed, read-only: how many did.
 */
#include <linux/device.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/page_pool/types.h>

static unsigned int pages;
module_param(pages, uint, 0644);
MODULE_PARM_DESC(pages, "every how many-th receive buffer cannot be allocated, 0 for none");

static unsigned int skbs;
module_param(skbs, uint, 0644);
MODULE_PARM_DESC(skbs, "every how many-th sk_buff cannot be allocated, 0 for none");

static unsigned int failed;
module_param(failed, uint, 0444);
MODULE_PARM_DESC(failed, "how many allocations failed");

static atomic_t asked;

static bool nomem_is_ornic(const struct device *dev)
{
	return dev && dev->driver && !strcmp(dev->driver->name, "ornic");
}

static noinline void *nomem_nothing(void)
{
	return NULL;
}

/* Let the probed function return NULL, if it is the turn of this call. */
static int nomem_fail(struct pt_regs *regs, unsigned int every)
{
	if (!every || atomic_inc_return(&asked) % every)
		return 0;
	failed++;
	instruction_pointer_set(regs, (unsigned long)nomem_nothing);
	return 1;
}

static int nomem_page(struct kprobe *probe, struct pt_regs *regs)
{
	const struct page_pool *pool = (void *)regs_get_kernel_argument(regs, 0);

	return nomem_is_ornic(pool->p.dev) ? nomem_fail(regs, READ_ONCE(pages)) : 0;
}

static int nomem_copy(struct kprobe *probe, struct pt_regs *regs)
{
	const struct napi_struct *napi = (void *)regs_get_kernel_argument(regs, 0);

	return nomem_is_ornic(napi->dev->dev.parent) ? nomem_fail(regs, READ_ONCE(skbs)) : 0;
}

/* The function does not get the interface. VMs of the tests have no other one that calls it. */
static int nomem_build(struct kprobe *probe, struct pt_regs *regs)
{
	return nomem_fail(regs, READ_ONCE(skbs));
}

static struct kprobe nomem_probes[] = {
	{ .symbol_name = "page_pool_alloc_frag", .pre_handler = nomem_page },
	{ .symbol_name = "napi_alloc_skb", .pre_handler = nomem_copy },
	{ .symbol_name = "napi_build_skb", .pre_handler = nomem_build },
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
