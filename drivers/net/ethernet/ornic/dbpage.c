// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell pages: the driver uses page 0; each other page belongs to at most one
 * user context at a time (clauses ORN-DB).
 */
#include <linux/bitmap.h>
#include <linux/export.h>
#include <linux/io.h>
#include <linux/minmax.h>

#include "ornic.h"

void ornic_db_ring(struct ornic_dev *odev, u8 kind, u32 number, u32 value)
{
	struct ornic_core *core = odev->core;
	u64 doorbell = (u64)value << ORNIC_DB_VALUE_SHIFT | (u64)kind << ORNIC_DB_KIND_SHIFT |
		       (number & ORNIC_DB_NUMBER_MASK);

	if (!ornic_dead(core))
		writeq(doorbell, core->db + ORNIC_DB_REG);
}
EXPORT_SYMBOL_GPL(ornic_db_ring);

int ornic_dbpage_alloc(struct ornic_dev *odev, struct ornic_dbpage *page)
{
	struct ornic_core *core = odev->core;
	/* the area may hold more pages than the device has (ORN-IDN-9) */
	u32 index, count = min(core->dbpage_count, le32_to_cpu(odev->id.max_dbpages));

	spin_lock(&core->dbpage_lock);
	index = find_first_zero_bit(core->dbpages, count);
	if (index < count)
		__set_bit(index, core->dbpages);
	spin_unlock(&core->dbpage_lock);
	if (index >= count)
		return -ENOSPC;

	page->index = index;
	page->phys = pci_resource_start(core->pdev, ORNIC_BAR_REGS) + core->db_offset +
		     ((u64)index << core->stride_log);
	page->size = 1u << core->stride_log;
	return 0;
}
EXPORT_SYMBOL_GPL(ornic_dbpage_alloc);

void ornic_dbpage_free(struct ornic_dev *odev, struct ornic_dbpage *page)
{
	struct ornic_core *core = odev->core;

	spin_lock(&core->dbpage_lock);
	__clear_bit(page->index, core->dbpages);
	spin_unlock(&core->dbpage_lock);
}
EXPORT_SYMBOL_GPL(ornic_dbpage_free);

/* ornic_dbpages_init() - allocate the bitmap. Call after ornic_ctrl_map(). */
int ornic_dbpages_init(struct ornic_core *core)
{
	spin_lock_init(&core->dbpage_lock);
	core->dbpages = bitmap_zalloc(core->dbpage_count, GFP_KERNEL);
	if (!core->dbpages)
		return -ENOMEM;
	__set_bit(0, core->dbpages);
	return 0;
}

void ornic_dbpages_cleanup(struct ornic_core *core)
{
	bitmap_free(core->dbpages);
}
