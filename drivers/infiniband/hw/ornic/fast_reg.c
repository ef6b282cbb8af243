// SPDX-License-Identifier: GPL-2.0
/*
 * Fast registration: regions whose memory the kernel sets by work requests.
 *
 * A region is a key without memory and a list of page addresses. map_mr_sg()
 * writes the list, and the device reads it when it executes the work request. No
 * lock protects the list, because a consumer maps again only after the
 * invalidation has completed. The consumer also chooses the low byte of the key,
 * which the work request passes to the device.
 */
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <linux/ornic/hw/mr.h>
#include <linux/ornic/hw/ring.h>
#include <linux/ornic/hw/wqe.h>

#include "fast_reg.h"
#include "mr.h"
#include "ornic_ib.h"
#include "pd.h"

/* The smallest send entry has room for the segment. */
static_assert(sizeof(struct ornic_wqe_ctrl) + sizeof(struct ornic_wqe_fast_reg) <=
	      BIT(ORNIC_SQ_MIN_STRIDE));

/* Append a page address to the list, in little endian as the device reads it. */
static int ornic_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct ornic_ib_mr *mr = to_omr(ibmr);

	if (mr->npages == mr->max_pages)
		return -ENOMEM;
	mr->list[mr->npages++] = cpu_to_le64(addr);
	return 0;
}

static int ornic_fast_reg_list_alloc(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr, u32 pages)
{
	mr->list = dma_alloc_coherent(ornic_ib_dma(dev), pages * sizeof(*mr->list),
				      &mr->list_dma, GFP_KERNEL);
	if (!mr->list)
		return -ENOMEM;
	mr->max_pages = pages;
	return 0;
}

/* Free the list of a region, if it has one. */
void ornic_ib_fast_reg_free(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr)
{
	if (mr->list)
		dma_free_coherent(ornic_ib_dma(dev), mr->max_pages * sizeof(*mr->list), mr->list,
				  mr->list_dma);
}

struct ib_mr *ornic_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct ornic_ib_dev *dev = to_oib(ibpd->device);
	struct ornic_key_create_cmd cmd = {
		.kind = ORNIC_KEY_FAST_REG,
		.pd = cpu_to_le32(to_opd(ibpd)->pdn),
		.max_pages = cpu_to_le32(max_num_sg),
	};
	struct ornic_ib_mr *mr;
	int ret;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > dev->lim.fast_reg_pages)
		return ERR_PTR(-EINVAL);
	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	ret = ornic_fast_reg_list_alloc(dev, mr, max_num_sg);
	if (ret)
		goto err_free;
	ret = ornic_ib_mr_create(dev, mr, &cmd);
	if (ret)
		goto err_list;
	return &mr->ibmr;

err_list:
	ornic_ib_fast_reg_free(dev, mr);
err_free:
	kfree(mr);
	return ERR_PTR(ret);
}

/* Return the number of pages that the memory of a mapped region occupies. */
static u64 ornic_mapped_pages(const struct ib_mr *ibmr)
{
	u64 offset = ibmr->iova & (ibmr->page_size - 1);

	return (offset + ibmr->length + ibmr->page_size - 1) >> ilog2(ibmr->page_size);
}

/*
 * If the list is full within an element, ib_sg_to_pages() (6.1 to 7.2) leaves the last page that it
 * has set out of the length. The device rejects a list with more pages than the length needs
 * (ORN-MEM-61).
 */
int ornic_ib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		       unsigned int *sg_offset)
{
	struct ornic_ib_mr *mr = to_omr(ibmr);
	int ret;

	mr->npages = 0;
	ret = ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, ornic_set_page);
	if (ret >= 0)
		mr->npages = min_t(u64, mr->npages, ornic_mapped_pages(ibmr));
	return ret;
}

/**
 * ornic_ib_put_fast_reg() - write the segment of a fast registration
 * @dev: device
 * @seg: segment to fill
 * @wr: work request
 *
 * Context: any.
 *
 * Return: 0; -EINVAL if the region is not for fast registration or the key is not one of its keys;
 * -EOPNOTSUPP for access rights that the device does not support.
 */
int ornic_ib_put_fast_reg(const struct ornic_ib_dev *dev, struct ornic_wqe_fast_reg *seg,
			  const struct ib_reg_wr *wr)
{
	const struct ornic_ib_mr *mr = to_omr(wr->mr);
	const struct ib_mr *ibmr = wr->mr;
	int ret;

	if (!mr->list || (wr->key ^ ibmr->rkey) >> ORNIC_KEY_TAG_BITS)
		return -EINVAL;
	memset(seg, 0, sizeof(*seg));
	ret = ornic_ib_access(dev, wr->access & ~IB_ACCESS_MW_BIND, &seg->access);
	if (ret)
		return ret;
	seg->iova = cpu_to_le64(ibmr->iova);
	seg->length = cpu_to_le64(ibmr->length);
	seg->list = cpu_to_le64(mr->list_dma);
	seg->npages = cpu_to_le32(mr->npages);
	seg->key = cpu_to_le32(wr->key);
	seg->offset = cpu_to_le32(ibmr->iova & (ibmr->page_size - 1));
	seg->page_shift = ilog2(ibmr->page_size);
	return 0;
}
