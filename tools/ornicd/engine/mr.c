// SPDX-License-Identifier: GPL-2.0
/*
 * The one gate between a work request or packet that names memory and that
 * memory.
 */
#include "mr.h"
#include "device.h"

#include <ornic/admin.h>
#include <errno.h>

/* Most bytes of one piece: a seg counts with 32 bits. */
#define MR_SEG_MAX	0x80000000u

/*
 * May the queue pair name this key at all? A syndrome, or 0. The caller hides
 * the answer from the unprivileged.
 */
static uint32_t mr_foreign(const struct mr *mr, const struct mr_access *who, uint32_t key)
{
	if (!mr)
		return ORNIC_SYN_KEY_INDEX;
	if (mr->tag != (key & ORNIC_KEY_TAG_MASK))
		return ORNIC_SYN_KEY_TAG;
	switch (mr->kind) {
	case ORNIC_KEY_FAST_REG:
	case ORNIC_KEY_MW1:
	case ORNIC_KEY_MW2B:
		if (!mr->bound)
			return ORNIC_SYN_KEY_STATE;
		if (mr->qp && mr->qp != who->qp)
			return ORNIC_SYN_KEY_PD;
		return mr->pd == who->pd ? 0 : ORNIC_SYN_KEY_PD;
	case ORNIC_KEY_REGION:
	case ORNIC_KEY_DM:
		return mr->pd == who->pd ? 0 : ORNIC_SYN_KEY_PD;
	case ORNIC_KEY_PHYS_ALL:
		if (!who->privileged)
			return ORNIC_SYN_KEY_INDEX;
		return !mr->pd || mr->pd == who->pd ? 0 : ORNIC_SYN_KEY_PD;
	default:
		return ORNIC_SYN_KEY_STATE;
	}
}

/* Windows are for peers, whatever their rights (ORN-MEM-66). */
static bool mr_grants(const struct mr *mr, uint32_t access)
{
	return !(access & ~mr->access) && (access & ORNIC_ACCESS_REMOTE || !mr_is_window(mr));
}

static bool mr_in_range(const struct mr *mr, uint64_t addr, uint64_t len)
{
	uint64_t last, off = addr - mr->iova;

	if (__builtin_add_overflow(addr, len - 1, &last))
		return false;
	if (mr->kind == ORNIC_KEY_PHYS_ALL)
		return true;
	return addr >= mr->iova && off < mr->length && len <= mr->length - off;
}

/**
 * mr_check_key() - check a key and its rights, but no range
 * @dev:	function
 * @who:	the access to be checked
 * @key:	key
 * @syndrome:	set to the reason if the access is rejected
 *
 * Return: the key's object, or NULL.
 */
struct mr *mr_check_key(struct device *dev, const struct mr_access *who, uint32_t key,
			uint32_t *syndrome)
{
	struct mr *mr = table_get(&dev->keys, key >> ORNIC_KEY_TAG_BITS);
	uint32_t foreign = mr_foreign(mr, who, key);

	if (foreign) {
		*syndrome = who->privileged ? foreign : ORNIC_SYN_KEY_INDEX;
		return NULL;
	}
	if (!mr_grants(mr, who->access)) {
		*syndrome = ORNIC_SYN_KEY_ACCESS;
		return NULL;
	}
	return mr;
}

/**
 * mr_check() - check a key, its rights and a range (ORN-MEM-6)
 * @dev:	function
 * @who:	the access to be checked
 * @key:	key
 * @addr:	virtual address in the key's space
 * @len:	bytes, > 0
 * @syndrome:	set to the reason if the access is rejected
 *
 * Return: the key's object, or NULL.
 */
struct mr *mr_check(struct device *dev, const struct mr_access *who, uint32_t key,
		    uint64_t addr, uint64_t len, uint32_t *syndrome)
{
	struct mr *mr = mr_check_key(dev, who, key, syndrome);

	if (!mr)
		return NULL;
	if (!mr_in_range(mr, addr, len)) {
		*syndrome = ORNIC_SYN_KEY_RANGE;
		return NULL;
	}
	mr->uses++;
	return mr;
}

static uint64_t mr_span(struct device *dev, struct mr *mr, uint64_t addr, uint64_t len,
			bool write, void **ptr)
{
	void *p;

	if (mr_is_window(mr))
		return umem_span(&mr->region->mem, mr->start + (addr - mr->iova), len, write, ptr);
	if (mr->kind == ORNIC_KEY_DM) {
		*ptr = mr->dm + (addr - mr->iova);
		return len;
	}
	if (mr->kind != ORNIC_KEY_PHYS_ALL)
		return umem_span(&mr->mem, addr - mr->iova, len, write, ptr);
	p = gpa_ptr(dev->gpa, addr, len, write);
	if (!p)
		return gpa_span(dev->gpa, addr, len, write, ptr);
	*ptr = p;
	return len;
}

/**
 * mr_segs() - pieces of host memory behind a range
 * @dev:	function
 * @mr:		key that mr_check() returned for the range
 * @addr:	first byte
 * @len:	bytes
 * @write:	they are going to be written
 * @seg:	set to the pieces; those that touch in host memory are one
 * @max:	room in @seg
 * @got:	set to the bytes that the pieces cover
 *
 * Return: pieces, or -EFAULT if a byte cannot be reached.
 */
int mr_segs(struct device *dev, struct mr *mr, uint64_t addr, uint64_t len, bool write,
	    struct seg *seg, uint32_t max, uint64_t *got)
{
	uint32_t n = 0;
	uint64_t span;
	void *ptr;

	for (*got = 0; *got < len; *got += span) {
		span = len - *got;
		span = mr_span(dev, mr, addr + *got, span < MR_SEG_MAX ? span : MR_SEG_MAX,
			       write, &ptr);
		if (!span)
			return -EFAULT;
		if (n && seg[n - 1].ptr + seg[n - 1].len == ptr &&
		    seg[n - 1].len + span <= MR_SEG_MAX) {
			seg[n - 1].len += span;
			continue;
		}
		if (n == max)
			return n;
		seg[n++] = (struct seg){ .ptr = ptr, .len = span };
	}
	return n;
}
