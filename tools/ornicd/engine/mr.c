// SPDX-License-Identifier: GPL-2.0
/*
 * Access to guest memory by key: check the key, find the host memory behind it, copy payload.
 *
 * All accesses of work requests and packets to memory pass through here. Payload is copied into
 * guest memory here, and by ATOMIC WRITE in flush.c; both count the bytes.
 */
#include "mr.h"

#include "qp.h"
#include "srq.h"

#include <ornic/admin.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

/*
 * Return 0 if the queue pair may use this key, else the syndrome. The caller hides the syndrome from
 * unprivileged queue pairs.
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

struct mr *mr_check_key(struct device *dev, const struct mr_access *who, uint32_t key,
			uint32_t *syndrome)
{
	struct mr *mr = table_get(&dev->keys, key >> ORNIC_KEY_TAG_BITS);
	uint32_t foreign = mr_foreign(mr, who, key);

	if (foreign) {
		*syndrome = who->privileged ? foreign : ORNIC_SYN_KEY_INDEX;
		return NULL;
	}
	/* Windows are for peers only, whatever rights they grant (ORN-MEM-66). */
	if (who->access & ~mr->access ||
	    (!(who->access & ORNIC_ACCESS_REMOTE) && mr_is_window(mr))) {
		*syndrome = ORNIC_SYN_KEY_ACCESS;
		return NULL;
	}
	return mr;
}

struct mr *mr_check(struct device *dev, const struct mr_access *who, uint32_t key,
		    uint64_t addr, uint64_t len, uint32_t *syndrome)
{
	struct mr *mr = mr_check_key(dev, who, key, syndrome);
	uint64_t last, off;

	if (!mr)
		return NULL;
	off = addr - mr->iova;
	if (__builtin_add_overflow(addr, len - 1, &last) ||
	    (mr->kind != ORNIC_KEY_PHYS_ALL &&
	     (addr < mr->iova || off >= mr->length || len > mr->length - off))) {
		*syndrome = ORNIC_SYN_KEY_RANGE;
		return NULL;
	}
	mr->uses++;
	return mr;
}

/* Find the host memory at @addr: set @ptr, return the bytes there, at most @len, 0 if none. */
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

int mr_segs(struct device *dev, struct mr *mr, uint64_t addr, uint64_t len, bool write,
	    struct seg *seg, uint32_t max, uint64_t *got)
{
	uint32_t n = 0;
	uint64_t span;
	void *ptr;

	for (*got = 0; *got < len; *got += span) {
		span = mr_span(dev, mr, addr + *got, len - *got, write, &ptr);
		if (!span)
			return -EFAULT;
		if (n && seg[n - 1].ptr + seg[n - 1].len == ptr) {
			seg[n - 1].len += span;
			continue;
		}
		if (n == max)
			return n;
		seg[n++] = (struct seg){ .ptr = ptr, .len = span };
	}
	return n;
}

/*
 * Find the host memory behind bytes [@off, @off + @len) of an SGE list, as far as @seg has room.
 * Return: number of pieces, with the bytes that they cover in *@got; or -EACCES with the reason in
 * *@syndrome.
 */
static int list_segs(struct device *dev, const struct mr_access *who, const struct ornic_sge *sge,
		     uint32_t nsge, uint64_t off, uint64_t len, struct seg *seg, uint64_t *got,
		     uint32_t *syndrome)
{
	bool write = who->access & ORNIC_ACCESS_LOCAL_WRITE;
	uint32_t n = 0;

	*got = 0;
	for (uint32_t i = 0; i < nsge && *got < len && n < PACKET_SEGS; i++) {
		uint64_t size = le32toh(sge[i].length);
		uint64_t addr = le64toh(sge[i].addr) + off;
		uint64_t part, have;
		struct mr *mr;
		int ret;

		if (off >= size) {
			off -= size;
			continue;
		}
		if (addr < off) {
			*syndrome = ORNIC_SYN_KEY_RANGE;
			return -EACCES;
		}
		part = size - off < len - *got ? size - off : len - *got;
		mr = mr_check(dev, who, le32toh(sge[i].lkey), addr, part, syndrome);
		if (!mr)
			return -EACCES;
		ret = mr_segs(dev, mr, addr, part, write, seg + n, PACKET_SEGS - n, &have);
		if (ret < 0) {
			*syndrome = ORNIC_SYN_KEY_PAGE;
			return -EACCES;
		}
		n += ret;
		*got += have;
		if (have < part)
			break;
		off = 0;
	}
	return n;
}

/* Describe an access with the rights of the queue pair. */
static struct mr_access qp_access(const struct qp *qp, bool write)
{
	return (struct mr_access) {
		.qp = qp,
		.pd = qp->pd->number,
		.privileged = qp->flags & ORNIC_QP_F_PRIVILEGED,
		.access = write ? ORNIC_ACCESS_LOCAL_WRITE : 0,
	};
}

int data_gather(struct qp *qp, const struct ornic_sge *sge, uint32_t nsge, uint64_t off,
		uint64_t len, struct seg *seg, uint64_t *got, uint32_t *syndrome)
{
	struct mr_access who = qp_access(qp, false);

	return list_segs(qp->dev, &who, sge, nsge, off, len, seg, got, syndrome);
}

/** struct source - the part of a packet's payload that is not copied yet */
struct source {
	struct seg seg[PACKET_SEGS];
	uint32_t first;
	uint32_t n;
};

static void source_init(struct source *s, const struct packet *p)
{
	s->first = 0;
	s->n = p->nseg;
	memcpy(s->seg, p->seg, p->nseg * sizeof(p->seg[0]));
}

/*
 * Copy the next @got bytes of the payload to @dst, which has room for exactly as many. Return: 0,
 * or -EAGAIN if a page is lost.
 */
static int source_copy(struct qp *qp, struct source *s, const struct seg *dst, uint32_t n,
		       uint64_t got)
{
	seg_copy(dst, n, s->seg + s->first, s->n - s->first);
	qp_count(qp, CNT_rdma_copied_bytes, got);
	while (s->first < s->n && got >= s->seg[s->first].len)
		got -= s->seg[s->first++].len;
	if (got) {
		s->seg[s->first].ptr += got;
		s->seg[s->first].len -= got;
	}
	return backing_loss_pending() ? -EAGAIN : 0;
}

static int scatter(struct qp *qp, const struct mr_access *who, const struct ornic_sge *sge,
		   uint32_t nsge, uint64_t skip, const struct packet *p, uint32_t *syndrome)
{
	struct seg dst[PACKET_SEGS];
	struct source src;
	uint64_t done = 0;

	source_init(&src, p);
	while (done < p->len) {
		uint64_t got;
		int n = list_segs(qp->dev, who, sge, nsge, skip + done, p->len - done, dst, &got,
				  syndrome);

		if (n < 0)
			return n;
		if (!got) {
			*syndrome = ORNIC_SYN_WQE_LENGTH;
			return -EACCES;
		}
		n = source_copy(qp, &src, dst, n, got);
		if (n)
			return n;
		done += got;
	}
	return 0;
}

int data_scatter(struct qp *qp, const struct ornic_sge *sge, uint32_t nsge, uint64_t skip,
		 const struct packet *p, uint32_t *syndrome)
{
	struct mr_access who = qp_access(qp, true);

	return scatter(qp, &who, sge, nsge, skip, p, syndrome);
}

int data_receive(struct qp *qp, uint64_t skip, const struct packet *p, uint32_t *syndrome)
{
	const struct rwqe *recv = &qp->resp.recv;
	const struct srq *srq = qp->srq;
	struct mr_access who;

	if (srq)
		who = (struct mr_access) {
			.qp = qp,
			.pd = srq->pd->number,
			.privileged = srq->privileged,
			.access = ORNIC_ACCESS_LOCAL_WRITE,
		};
	else
		who = qp_access(qp, true);
	return scatter(qp, &who, recv->sge, recv->nsge, skip, p, syndrome);
}

int data_place(struct qp *qp, struct mr *mr, uint64_t addr, const struct packet *p)
{
	struct seg dst[PACKET_SEGS];
	struct source src;
	uint64_t done = 0;

	source_init(&src, p);
	while (done < p->len) {
		uint64_t got;
		int n = mr_segs(qp->dev, mr, addr + done, p->len - done, true, dst, PACKET_SEGS,
				&got);

		if (n < 0 || !got)
			return -EFAULT;
		n = source_copy(qp, &src, dst, n, got);
		if (n)
			return n;
		done += got;
	}
	return 0;
}
