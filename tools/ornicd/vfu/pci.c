// SPDX-License-Identifier: GPL-2.0
/*
 * PCI configuration space of an endpoint: type 0 header, power management,
 * MSI-X, PCI Express with function level reset.
 *
 * The layout is built once into an initial image and a write mask; from then on a
 * reset is a copy and a write is a masked store, followed by a check of the few
 * bits that have an effect. BAR registers behave as in hardware, although QEMU (11.1)
 * keeps its own copy of them. Interrupt masking belongs to the VMM.
 */
#include "pci.h"

#include "../log.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <string.h>

/* Offsets of the capabilities */
#define CAP_PM		0x40
#define CAP_MSIX	0x50
#define CAP_EXP		0x60

/* Gen4 x16: values that the virtual link reports; they do not limit the data rate */
#define LINK_SPEED	PCI_EXP_LNKCAP_SLS_16_0GB
#define LINK_WIDTH	16

/* PMCSR.PowerState */
#define D3HOT		3

#define MSIX_MAX	2048
#define BAR_MIN		4096

static void put16(uint8_t *at, uint16_t val)
{
	memcpy(at, &val, sizeof(val));
}

static void put32(uint8_t *at, uint32_t val)
{
	memcpy(at, &val, sizeof(val));
}

static uint16_t get16(const uint8_t *at)
{
	uint16_t val;

	memcpy(&val, at, sizeof(val));
	return val;
}

static void pci_header(struct pci_cfg *c, const struct vfu_func *f)
{
	uint8_t *b = c->initial;

	put16(b + PCI_VENDOR_ID, f->vendor);
	put16(b + PCI_DEVICE_ID, f->device);
	put16(b + PCI_STATUS, PCI_STATUS_CAP_LIST);
	put32(b + PCI_CLASS_REVISION, f->class_code << 8 | f->revision);
	put16(b + PCI_SUBSYSTEM_VENDOR_ID, f->subvendor);
	put16(b + PCI_SUBSYSTEM_ID, f->subdevice);
	b[PCI_CAPABILITY_LIST] = CAP_PM;

	put16(c->wmask + PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
	      PCI_COMMAND_PARITY | PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	c->wmask[PCI_CACHE_LINE_SIZE] = 0xff;
	c->wmask[PCI_INTERRUPT_LINE] = 0xff;
}

static void pci_cap_pm(struct pci_cfg *c)
{
	uint8_t *b = c->initial + CAP_PM;

	b[PCI_CAP_LIST_ID] = PCI_CAP_ID_PM;
	b[PCI_CAP_LIST_NEXT] = CAP_EXP;
	put16(b + PCI_PM_PMC, 3 /* version 1.2 */);
	/* Configuration survives D3hot, so that only the function itself stops. */
	put16(b + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
	put16(c->wmask + CAP_PM + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
}

static void pci_cap_exp(struct pci_cfg *c, uint8_t next)
{
	uint8_t *b = c->initial + CAP_EXP;

	b[PCI_CAP_LIST_ID] = PCI_CAP_ID_EXP;
	b[PCI_CAP_LIST_NEXT] = next;
	put16(b + PCI_EXP_FLAGS, 2 /* version */ | PCI_EXP_TYPE_ENDPOINT << 4);
	put32(b + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_RBER |
	      PCI_EXP_DEVCAP_EXT_TAG | 1 /* 256-byte payload */);
	put16(b + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN |
	      PCI_EXP_DEVCTL_READRQ_512B);
	put32(b + PCI_EXP_LNKCAP, LINK_SPEED | LINK_WIDTH << 4);
	put16(b + PCI_EXP_LNKSTA, LINK_SPEED | LINK_WIDTH << 4);
	put32(b + PCI_EXP_DEVCAP2, PCI_EXP_DEVCAP2_COMP_TMOUT_DIS);
	put32(b + PCI_EXP_LNKCAP2, PCI_EXP_LNKCAP2_SLS_2_5GB | PCI_EXP_LNKCAP2_SLS_5_0GB |
	      PCI_EXP_LNKCAP2_SLS_8_0GB | PCI_EXP_LNKCAP2_SLS_16_0GB);
	put16(b + PCI_EXP_LNKCTL2, LINK_SPEED);

	/* BCR_FLR is not stored: pci_write() detects it, and it reads as 0. */
	put16(c->wmask + CAP_EXP + PCI_EXP_DEVCTL, 0xffff & ~PCI_EXP_DEVCTL_BCR_FLR);
	put16(c->wmask + CAP_EXP + PCI_EXP_LNKCTL, PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC |
	      PCI_EXP_LNKCTL_ES);
	put16(c->wmask + CAP_EXP + PCI_EXP_DEVCTL2, PCI_EXP_DEVCTL2_COMP_TMOUT_DIS);
	put16(c->wmask + CAP_EXP + PCI_EXP_LNKCTL2, PCI_EXP_LNKCTL2_TLS);
}

/* Return half of the MSI-X BAR, in bytes: table in the lower half, pending bits in the upper. */
static uint64_t pci_msix_half(unsigned int nvectors)
{
	uint64_t half = BAR_MIN;

	while (half < (uint64_t)nvectors * PCI_MSIX_ENTRY_SIZE)
		half *= 2;
	return half;
}

static void pci_cap_msix(struct pci_cfg *c, unsigned int nvectors)
{
	uint8_t *b = c->initial + CAP_MSIX;

	b[PCI_CAP_LIST_ID] = PCI_CAP_ID_MSIX;
	put16(b + PCI_MSIX_FLAGS, nvectors - 1);
	put32(b + PCI_MSIX_TABLE, VFU_MSIX_BAR);
	put32(b + PCI_MSIX_PBA, pci_msix_half(nvectors) | VFU_MSIX_BAR);
	put16(c->wmask + CAP_MSIX + PCI_MSIX_FLAGS,
	      PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
}

static void pci_bar(struct pci_cfg *c, unsigned int i, const struct vfu_bar *bar)
{
	uint8_t *type = c->initial + PCI_BASE_ADDRESS_0 + 4 * i;
	uint8_t *mask = c->wmask + PCI_BASE_ADDRESS_0 + 4 * i;
	uint64_t writable = ~(bar->size - 1);

	c->bar_size[i] = bar->size;
	if (bar->flags & VFU_BAR_64) {
		put32(type, PCI_BASE_ADDRESS_MEM_TYPE_64);
		put32(mask + 4, writable >> 32);
	}
	if (bar->flags & VFU_BAR_PREFETCH)
		*type |= PCI_BASE_ADDRESS_MEM_PREFETCH;
	put32(mask, (uint32_t)writable);
}

static bool pci_bar_ok(const struct vfu_bar *bar, unsigned int i)
{
	if (bar[i].size & (bar[i].size - 1) || bar[i].size < BAR_MIN)
		return false;
	if (bar[i].flags & VFU_BAR_64)
		return i + 1 < VFU_NUM_BARS && !bar[i + 1].size;
	return bar[i].size <= 1u << 31;
}

int pci_init(struct pci_cfg *c, struct vfu_func *f)
{
	struct vfu_bar bar[VFU_NUM_BARS];

	memset(c, 0, sizeof(*c));
	memcpy(bar, f->bar, sizeof(bar));
	if (f->nvectors > MSIX_MAX) {
		log_from(&f->log, LOG_ERR, "%u MSI-X vectors, PCI allows %u", f->nvectors,
			 MSIX_MAX);
		return -EINVAL;
	}
	if (f->nvectors) {
		if (bar[VFU_MSIX_BAR].size || bar[VFU_MSIX_BAR + 1].size) {
			log_from(&f->log, LOG_ERR, "BAR%u is reserved for the MSI-X table",
				 VFU_MSIX_BAR);
			return -EINVAL;
		}
		bar[VFU_MSIX_BAR].size = 2 * pci_msix_half(f->nvectors);
		bar[VFU_MSIX_BAR].flags = VFU_BAR_64;
		pci_cap_msix(c, f->nvectors);
	}
	pci_header(c, f);
	pci_cap_pm(c);
	pci_cap_exp(c, f->nvectors ? CAP_MSIX : 0);
	for (unsigned int i = 0; i < VFU_NUM_BARS; i++) {
		if (!bar[i].size)
			continue;
		if (!pci_bar_ok(bar, i)) {
			log_from(&f->log, LOG_ERR, "BAR%u: size %#llx or position not possible", i,
				 (unsigned long long)bar[i].size);
			return -EINVAL;
		}
		pci_bar(c, i, &bar[i]);
	}
	pci_reset(c);
	return 0;
}

void pci_reset(struct pci_cfg *c)
{
	memcpy(c->byte, c->initial, sizeof(c->byte));
}

bool pci_bus_master(const struct pci_cfg *c)
{
	return get16(c->byte + PCI_COMMAND) & PCI_COMMAND_MASTER;
}

bool pci_d3hot(const struct pci_cfg *c)
{
	return (c->byte[CAP_PM + PCI_PM_CTRL] & PCI_PM_CTRL_STATE_MASK) == D3HOT;
}

void pci_read(const struct pci_cfg *c, uint32_t off, void *buf, size_t len)
{
	memcpy(buf, c->byte + off, len);
}

/* D1 and D2 are not supported: a write that asks for them leaves the state as it is. */
static void pci_power_fixup(struct pci_cfg *c, uint8_t old)
{
	uint8_t *ctrl = &c->byte[CAP_PM + PCI_PM_CTRL];
	uint8_t state = *ctrl & PCI_PM_CTRL_STATE_MASK;

	if (state && state != D3HOT)
		*ctrl = (*ctrl & ~PCI_PM_CTRL_STATE_MASK) | (old & PCI_PM_CTRL_STATE_MASK);
}

static bool pci_flr_written(uint32_t off, const uint8_t *buf, size_t len)
{
	uint32_t high = CAP_EXP + PCI_EXP_DEVCTL + 1;

	return off <= high && high - off < len && (buf[high - off] & (PCI_EXP_DEVCTL_BCR_FLR >> 8));
}

unsigned int pci_write(struct pci_cfg *c, uint32_t off, const void *buf, size_t len)
{
	uint8_t old_pm = c->byte[CAP_PM + PCI_PM_CTRL];
	bool master = pci_bus_master(c), d3 = pci_d3hot(c);
	const uint8_t *from = buf;
	unsigned int events = 0;

	for (size_t i = 0; i < len; i++) {
		uint8_t mask = c->wmask[off + i];

		c->byte[off + i] = (c->byte[off + i] & ~mask) | (from[i] & mask);
	}
	pci_power_fixup(c, old_pm);
	if (pci_d3hot(c) != d3)
		events |= PCI_EVENT_POWER | PCI_EVENT_ENABLE;
	if (pci_bus_master(c) != master)
		events |= PCI_EVENT_ENABLE;
	if (pci_flr_written(off, from, len))
		events |= PCI_EVENT_FLR;
	return events;
}
