// SPDX-License-Identifier: GPL-2.0
/*
 * vfu/pci.c: the configuration space of a function, byte by byte, the effect of writes, and
 * rejected functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/pci_regs.h>

#include "log.h"
#include "vfu/pci.h"

#define ENTRIES_PER_PAGE	(4096 / PCI_MSIX_ENTRY_SIZE)
#define ONES			0xffffffffu

static struct pci_cfg cfg;

static struct vfu_func function(unsigned int nvectors)
{
	return (struct vfu_func) {
		.log.name = "test",
		.vendor = 0x1af4,
		.device = 0x10ff,
		.subvendor = 0x1234,
		.subdevice = 0x0042,
		.class_code = 0x020700,
		.revision = 3,
		.nvectors = nvectors,
		.bar[0] = { 8 << 20, VFU_BAR_64 },
	};
}

static uint32_t get(uint32_t off, unsigned int len)
{
	uint32_t val = 0;

	pci_read(&cfg, off, &val, len);
	return val;
}

static unsigned int put(uint32_t off, unsigned int len, uint32_t val)
{
	return pci_write(&cfg, off, &val, len);
}

/* Return the address of a capability, 0 if there is none; a chain without end fails. */
static uint32_t capability(uint8_t id)
{
	uint32_t at = get(PCI_CAPABILITY_LIST, 1);

	for (int i = 0; at; i++) {
		assert_true(i < 8);
		assert_true(at >= 0x40 && at % 4 == 0);
		if (get(at + PCI_CAP_LIST_ID, 1) == id)
			return at;
		at = get(at + PCI_CAP_LIST_NEXT, 1);
	}
	return 0;
}

static int init(void **state)
{
	struct vfu_func f = function(4);

	(void)state;
	return pci_init(&cfg, &f);
}

static void test_header(void **state)
{
	(void)state;
	assert_int_equal(get(PCI_VENDOR_ID, 2), 0x1af4);
	assert_int_equal(get(PCI_DEVICE_ID, 2), 0x10ff);
	assert_int_equal(get(PCI_SUBSYSTEM_VENDOR_ID, 2), 0x1234);
	assert_int_equal(get(PCI_SUBSYSTEM_ID, 2), 0x0042);
	assert_int_equal(get(PCI_CLASS_REVISION, 4), 0x02070003);
	assert_int_equal(get(PCI_STATUS, 2), PCI_STATUS_CAP_LIST);
	assert_int_equal(get(PCI_HEADER_TYPE, 1), PCI_HEADER_TYPE_NORMAL);
	assert_int_equal(get(PCI_INTERRUPT_PIN, 1), 0);
	assert_int_equal(get(PCI_COMMAND, 2), 0);
}

static void test_capabilities(void **state)
{
	uint32_t pm = capability(PCI_CAP_ID_PM), exp = capability(PCI_CAP_ID_EXP);

	(void)state;
	assert_true(pm && exp && capability(PCI_CAP_ID_MSIX));
	assert_int_equal(get(pm + PCI_PM_PMC, 2), 3);
	assert_int_equal(get(pm + PCI_PM_CTRL, 2), PCI_PM_CTRL_NO_SOFT_RESET);
	assert_int_equal(get(exp + PCI_EXP_FLAGS, 2), 2 | PCI_EXP_TYPE_ENDPOINT << 4);
	assert_int_equal(get(exp + PCI_EXP_DEVCAP, 4), PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_RBER |
			 PCI_EXP_DEVCAP_EXT_TAG | 1);
	assert_int_equal(get(exp + PCI_EXP_DEVCTL, 2), PCI_EXP_DEVCTL_RELAX_EN |
			 PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B);
	assert_int_equal(get(exp + PCI_EXP_LNKCAP, 4), PCI_EXP_LNKCAP_SLS_16_0GB | 16 << 4);
	assert_int_equal(get(exp + PCI_EXP_LNKSTA, 2), PCI_EXP_LNKCAP_SLS_16_0GB | 16 << 4);
	assert_int_equal(get(exp + PCI_EXP_DEVCAP2, 4), PCI_EXP_DEVCAP2_COMP_TMOUT_DIS);
	assert_int_equal(get(exp + PCI_EXP_LNKCAP2, 4), PCI_EXP_LNKCAP2_SLS_2_5GB |
			 PCI_EXP_LNKCAP2_SLS_5_0GB | PCI_EXP_LNKCAP2_SLS_8_0GB |
			 PCI_EXP_LNKCAP2_SLS_16_0GB);
	assert_int_equal(get(exp + PCI_EXP_LNKCTL2, 2), PCI_EXP_LNKCAP_SLS_16_0GB);
}

/* A function without vectors has neither the capability nor its BAR. */
static void test_no_vectors(void **state)
{
	struct vfu_func f = function(0);

	(void)state;
	assert_int_equal(pci_init(&cfg, &f), 0);
	assert_int_equal(capability(PCI_CAP_ID_MSIX), 0);
	assert_true(capability(PCI_CAP_ID_EXP));
	assert_int_equal(cfg.bar_size[VFU_MSIX_BAR], 0);
}

/* The table takes half of its BAR: one page up to 256 vectors, two from 257 on. */
static void test_table_size(void **state)
{
	static const struct {
		unsigned int nvectors;
		uint64_t half;
	} row[] = {
		{ 1, 4096 }, { ENTRIES_PER_PAGE - 1, 4096 }, { ENTRIES_PER_PAGE, 4096 },
		{ ENTRIES_PER_PAGE + 1, 8192 }, { 2 * ENTRIES_PER_PAGE, 8192 },
		{ 2 * ENTRIES_PER_PAGE + 1, 16384 }, { 2048, 32768 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct vfu_func f = function(row[i].nvectors);
		uint32_t at;

		assert_int_equal(pci_init(&cfg, &f), 0);
		at = capability(PCI_CAP_ID_MSIX);
		assert_int_equal(cfg.bar_size[VFU_MSIX_BAR], 2 * row[i].half);
		assert_int_equal(get(at + PCI_MSIX_FLAGS, 2), row[i].nvectors - 1);
		assert_int_equal(get(at + PCI_MSIX_TABLE, 4), VFU_MSIX_BAR);
		assert_int_equal(get(at + PCI_MSIX_PBA, 4), row[i].half | VFU_MSIX_BAR);
	}
}

static void test_bars(void **state)
{
	struct vfu_func f = function(4);

	(void)state;
	f.bar[4] = (struct vfu_bar) { 4096, VFU_BAR_PREFETCH };
	f.bar[5] = (struct vfu_bar) { 1u << 31, 0 };
	assert_int_equal(pci_init(&cfg, &f), 0);
	for (int i = 0; i < VFU_NUM_BARS; i++)
		put(PCI_BASE_ADDRESS_0 + 4 * i, 4, ONES);
	assert_int_equal(get(PCI_BASE_ADDRESS_0, 4), 0xff800000 | PCI_BASE_ADDRESS_MEM_TYPE_64);
	assert_int_equal(get(PCI_BASE_ADDRESS_1, 4), ONES);
	assert_int_equal(get(PCI_BASE_ADDRESS_2, 4), 0xffffe000 | PCI_BASE_ADDRESS_MEM_TYPE_64);
	assert_int_equal(get(PCI_BASE_ADDRESS_3, 4), ONES);
	assert_int_equal(get(PCI_BASE_ADDRESS_4, 4), 0xfffff000 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	assert_int_equal(get(PCI_BASE_ADDRESS_5, 4), 0x80000000);
	assert_int_equal(cfg.bar_size[0], 8 << 20);
	assert_int_equal(cfg.bar_size[1], 0);
	pci_reset(&cfg);
	assert_int_equal(get(PCI_BASE_ADDRESS_1, 4), 0);
}

/* A 64-bit BAR of 8 GiB has its lowest writable bit in the upper half. */
static void test_large_bar(void **state)
{
	struct vfu_func f = function(0);

	(void)state;
	f.bar[0] = (struct vfu_bar) { 8ull << 30, VFU_BAR_64 | VFU_BAR_PREFETCH };
	assert_int_equal(pci_init(&cfg, &f), 0);
	put(PCI_BASE_ADDRESS_0, 4, ONES);
	put(PCI_BASE_ADDRESS_1, 4, ONES);
	assert_int_equal(get(PCI_BASE_ADDRESS_0, 4), 0xc);
	assert_int_equal(get(PCI_BASE_ADDRESS_1, 4), 0xfffffffe);
}

static void test_impossible(void **state)
{
	static const struct {
		unsigned int nvectors;
		unsigned int i;
		struct vfu_bar bar;
		const char *why;
	} row[] = {
		{ 2048, 4, { 4096, 0 }, "" },
		{ 2049, 4, { 4096, 0 }, "test: 2049 MSI-X vectors, PCI allows 2048" },
		{ 1, VFU_MSIX_BAR, { 4096, 0 }, "test: BAR2 is reserved for the MSI-X table" },
		{ 1, VFU_MSIX_BAR + 1, { 4096, 0 }, "test: BAR2 is reserved for the MSI-X table" },
		{ 0, VFU_MSIX_BAR, { 4096, 0 }, "" },
		{ 0, VFU_MSIX_BAR + 1, { 4096, 0 }, "" },
		/* upper half of BAR 0 */
		{ 0, 1, { 4096, 0 }, "test: BAR0: size 0x800000 or position not possible" },
		{ 0, 4, { 2048, 0 }, "test: BAR4: size 0x800 or position not possible" },
		{ 0, 4, { 12288, 0 }, "test: BAR4: size 0x3000 or position not possible" },
		{ 0, 4, { 1ull << 32, 0 }, "test: BAR4: size 0x100000000 or position not possible" },
		{ 0, 4, { 1ull << 31, 0 }, "" },
		{ 0, 4, { 1ull << 32, VFU_BAR_64 }, "" },
		/* no BAR behind it */
		{ 0, 5, { 1ull << 32, VFU_BAR_64 },
		  "test: BAR5: size 0x100000000 or position not possible" },
		{ 0, 5, { 4096, VFU_BAR_64 }, "test: BAR5: size 0x1000 or position not possible" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct vfu_func f = function(row[i].nvectors);

		char why[128];

		f.bar[row[i].i] = row[i].bar;
		log_keep(why, sizeof(why));
		assert_int_equal(pci_init(&cfg, &f), *row[i].why ? -EINVAL : 0);
		log_keep(NULL, 0);
		assert_string_equal(why, row[i].why);
	}
}

/* Every byte after a reset, and after a write of ones: registers that are not listed are 0. */
static void test_every_byte(void **state)
{
	static const struct {
		uint32_t at, reset, ones;
	} regs[] = {
		{ 0x00, 0x10ff1af4, 0x10ff1af4 }, { 0x04, 0x00100000, 0x00100546 },
		{ 0x08, 0x02070003, 0x02070003 }, { 0x0c, 0, 0xff },
		{ 0x10, 4, 0xff800004 }, { 0x14, 0, ONES },
		{ 0x18, 4, 0xffffe004 }, { 0x1c, 0, ONES },
		{ 0x2c, 0x00421234, 0x00421234 }, { 0x34, 0x40, 0x40 }, { 0x3c, 0, 0xff },
		/* power management */
		{ 0x40, 0x00036001, 0x00036001 }, { 0x44, 0x0008, 0x000b },
		/* MSI-X */
		{ 0x50, 0x00030011, 0xc0030011 }, { 0x54, 2, 2 }, { 0x58, 0x1002, 0x1002 },
		/* PCI Express */
		{ 0x60, 0x00025010, 0x00025010 }, { 0x64, 0x10008021, 0x10008021 },
		{ 0x68, 0x2810, 0x7fff }, { 0x6c, 0x104, 0x104 },
		{ 0x70, 0x01040000, 0x010400c8 }, { 0x84, 0x10, 0x10 }, { 0x88, 0, 0x10 },
		{ 0x8c, 0x1e, 0x1e }, { 0x90, 4, 0xf },
	};
	static uint8_t all[PCI_CFG_SIZE];

	(void)state;
	memset(all, 0xff, sizeof(all));
	for (int written = 0; written < 2; written++) {
		size_t i = 0;

		if (written)
			pci_write(&cfg, 0, all, sizeof(all));
		for (uint32_t at = 0; at < PCI_CFG_SIZE; at += 4) {
			bool known = i < sizeof(regs) / sizeof(regs[0]) && regs[i].at == at;
			uint32_t want = !known ? 0 : written ? regs[i].ones : regs[i].reset;

			if (get(at, 4) != want)
				fail_msg("%#x: %#x, not %#x", at, get(at, 4), want);
			i += known;
		}
	}
}

/* All ones into every byte change the writable bits and no other; a reset undoes it. */
static void test_writable_bits(void **state)
{
	static uint8_t before[PCI_CFG_SIZE], ones[PCI_CFG_SIZE], after[PCI_CFG_SIZE];
	uint32_t pm = capability(PCI_CAP_ID_PM), exp = capability(PCI_CAP_ID_EXP);
	uint32_t msix = capability(PCI_CAP_ID_MSIX);

	(void)state;
	pci_read(&cfg, 0, before, sizeof(before));
	memset(ones, 0xff, sizeof(ones));
	pci_write(&cfg, 0, ones, sizeof(ones));
	assert_int_equal(get(PCI_VENDOR_ID, 4), 0x10ff1af4);
	assert_int_equal(get(PCI_COMMAND, 2), PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
			 PCI_COMMAND_PARITY | PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	assert_int_equal(get(PCI_CACHE_LINE_SIZE, 1), 0xff);
	assert_int_equal(get(PCI_LATENCY_TIMER, 1), 0);
	assert_int_equal(get(PCI_INTERRUPT_LINE, 1), 0xff);
	assert_int_equal(get(PCI_ROM_ADDRESS, 4), 0);
	assert_int_equal(get(pm + PCI_PM_CTRL, 2), PCI_PM_CTRL_NO_SOFT_RESET | 3);
	assert_int_equal(get(msix + PCI_MSIX_FLAGS, 2),
			 3 | PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	assert_int_equal(get(exp + PCI_EXP_DEVCTL, 2), 0xffff & ~PCI_EXP_DEVCTL_BCR_FLR);
	assert_int_equal(get(exp + PCI_EXP_LNKCTL, 2), PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC |
			 PCI_EXP_LNKCTL_ES);
	assert_int_equal(get(exp + PCI_EXP_DEVCTL2, 2), PCI_EXP_DEVCTL2_COMP_TMOUT_DIS);
	assert_int_equal(get(exp + PCI_EXP_LNKCTL2, 2),
			 PCI_EXP_LNKCTL2_TLS | PCI_EXP_LNKCAP_SLS_16_0GB);
	pci_reset(&cfg);
	pci_read(&cfg, 0, after, sizeof(after));
	assert_memory_equal(after, before, sizeof(before));
}

static void test_bus_master(void **state)
{
	(void)state;
	assert_false(pci_bus_master(&cfg));
	assert_int_equal(put(PCI_COMMAND, 2, PCI_COMMAND_MEMORY), 0);
	assert_int_equal(put(PCI_COMMAND, 2, PCI_COMMAND_MASTER), PCI_EVENT_ENABLE);
	assert_true(pci_bus_master(&cfg));
	assert_int_equal(put(PCI_COMMAND, 2, PCI_COMMAND_MASTER), 0);
	assert_int_equal(put(PCI_COMMAND, 1, 0), PCI_EVENT_ENABLE);
	assert_false(pci_bus_master(&cfg));
	assert_int_equal(put(PCI_COMMAND, 1, ONES), PCI_EVENT_ENABLE);
	assert_int_equal(get(PCI_COMMAND, 2), 0x46);	/* the other byte is not written */
}

/* D1 and D2 do not exist: the state stays unchanged. */
static void test_power(void **state)
{
	uint32_t ctrl = capability(PCI_CAP_ID_PM) + PCI_PM_CTRL;

	(void)state;
	assert_false(pci_d3hot(&cfg));
	for (int state = 1; state <= 2; state++) {
		assert_int_equal(put(ctrl, 2, state), 0);
		assert_int_equal(get(ctrl, 2), PCI_PM_CTRL_NO_SOFT_RESET);
	}
	assert_int_equal(put(ctrl, 2, 3), PCI_EVENT_POWER | PCI_EVENT_ENABLE);
	assert_true(pci_d3hot(&cfg));
	for (int state = 1; state <= 3; state++) {
		assert_int_equal(put(ctrl, 2, state), 0);
		assert_int_equal(get(ctrl, 2), PCI_PM_CTRL_NO_SOFT_RESET | 3);
	}
	assert_int_equal(put(ctrl, 1, 0), PCI_EVENT_POWER | PCI_EVENT_ENABLE);
	assert_false(pci_d3hot(&cfg));
}

/* One write may change bus mastering and the power state, and request a reset. */
static void test_both(void **state)
{
	const uint32_t ctrl = capability(PCI_CAP_ID_PM) + PCI_PM_CTRL;
	const uint32_t ctl = capability(PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL;
	uint8_t bytes[256];

	(void)state;
	pci_read(&cfg, 0, bytes, ctrl + 1);
	bytes[PCI_COMMAND] |= PCI_COMMAND_MASTER;
	bytes[ctrl] |= 3;
	assert_int_equal(pci_write(&cfg, 0, bytes, ctrl + 1), PCI_EVENT_POWER | PCI_EVENT_ENABLE);
	assert_true(pci_bus_master(&cfg) && pci_d3hot(&cfg));
	pci_read(&cfg, 0, bytes, sizeof(bytes));
	bytes[ctrl] &= ~3;
	assert_int_equal(pci_write(&cfg, 0, bytes, ctrl + 1), PCI_EVENT_POWER | PCI_EVENT_ENABLE);
	bytes[PCI_COMMAND] = 0;
	bytes[ctrl] |= 3;
	bytes[ctl + 1] |= PCI_EXP_DEVCTL_BCR_FLR >> 8;
	assert_int_equal(pci_write(&cfg, 0, bytes, sizeof(bytes)),
			 PCI_EVENT_POWER | PCI_EVENT_ENABLE | PCI_EVENT_FLR);
}

/* A single bit requests a reset, in a write of any width that covers it. */
static void test_flr(void **state)
{
	uint32_t ctl = capability(PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL;

	(void)state;
	assert_int_equal(put(ctl, 2, PCI_EXP_DEVCTL_BCR_FLR), PCI_EVENT_FLR);
	assert_int_equal(get(ctl, 2), 0);
	assert_int_equal(put(ctl + 1, 1, PCI_EXP_DEVCTL_BCR_FLR >> 8), PCI_EVENT_FLR);
	assert_int_equal(put(ctl - 1, 4, PCI_EXP_DEVCTL_BCR_FLR << 8), PCI_EVENT_FLR);
	assert_int_equal(put(ctl, 4, PCI_EXP_DEVCTL_BCR_FLR), PCI_EVENT_FLR);
	assert_int_equal(put(ctl, 1, 0xffff), 0);
	assert_int_equal(put(ctl + 2, 2, ONES), 0);
	assert_int_equal(put(ctl, 2, 0xffff & ~PCI_EXP_DEVCTL_BCR_FLR), 0);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup(f, init)
	const struct CMUnitTest tests[] = {
		T(test_header),
		T(test_capabilities),
		T(test_no_vectors),
		T(test_table_size),
		T(test_bars),
		T(test_large_bar),
		T(test_impossible),
		T(test_every_byte),
		T(test_writable_bits),
		T(test_bus_master),
		T(test_power),
		T(test_both),
		T(test_flr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
