/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Configuration space of one function: contents, write mask, and the effects of a write.
 */
#ifndef ORNICD_VFU_PCI_H
#define ORNICD_VFU_PCI_H

#include "func.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCI_CFG_SIZE	4096

/** enum pci_event - consequences of a configuration write */
enum pci_event {
	PCI_EVENT_ENABLE = 1,	/* bus master bit or power state changed */
	PCI_EVENT_POWER = 2,	/* entered or left D3hot */
	PCI_EVENT_FLR = 4,	/* function level reset requested */
};

/**
 * struct pci_cfg - a configuration space
 * @byte:	current contents
 * @initial:	contents after reset
 * @wmask:	bits that a write changes
 * @bar_size:	size of each BAR in bytes, the MSI-X one included; 0: no BAR
 */
struct pci_cfg {
	uint8_t byte[PCI_CFG_SIZE];
	uint8_t initial[PCI_CFG_SIZE];
	uint8_t wmask[PCI_CFG_SIZE];
	uint64_t bar_size[VFU_NUM_BARS];
};

/**
 * pci_init() - lay out the configuration space of a function
 * @c:	configuration space
 * @f:	ids, class, BARs, vectors
 *
 * Return: 0, or -EINVAL after a log line if the function's BARs or vectors are not possible in PCI.
 */
int pci_init(struct pci_cfg *c, struct vfu_func *f);

/**
 * pci_reset() - restore the state after power-on
 * @c:	configuration space
 */
void pci_reset(struct pci_cfg *c);

/**
 * pci_read() - read configuration space
 * @c:		configuration space
 * @off:	first byte
 * @buf:	destination
 * @len:	bytes; @off + @len is at most PCI_CFG_SIZE
 */
void pci_read(const struct pci_cfg *c, uint32_t off, void *buf, size_t len);

/**
 * pci_write() - write configuration space
 * @c:		configuration space
 * @off:	first byte
 * @buf:	bytes to write
 * @len:	bytes; @off + @len is at most PCI_CFG_SIZE
 *
 * Return: set of &enum pci_event that the caller must handle.
 */
unsigned int pci_write(struct pci_cfg *c, uint32_t off, const void *buf, size_t len);

/**
 * pci_bus_master() - return true if COMMAND.BusMaster is set
 * @c:	configuration space
 */
bool pci_bus_master(const struct pci_cfg *c);

/**
 * pci_d3hot() - return true if the function is in D3hot
 * @c:	configuration space
 */
bool pci_d3hot(const struct pci_cfg *c);

#endif /* ORNICD_VFU_PCI_H */
