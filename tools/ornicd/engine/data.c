// SPDX-License-Identifier: GPL-2.0
/*
 * Copy payload between packets and the host memory behind SGE lists and keys. Only this file copies
 * payload, so that copied bytes can be counted.
 */
#include "data.h"

#include "mr.h"
#include "qp.h"
#include "srq.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/*
 * Pieces of host memory behind bytes [@off, @off + @len) of an SGE list, as far as @seg has room.
 * Return: pieces, and the bytes that they cover in *@got; or -EACCES and the reason.
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
		.pd = qp->pd->number,
		.privileged = qp->flags & ORNIC_QP_F_PRIVILEGED,
		.access = write ? ORNIC_ACCESS_LOCAL_WRITE : 0,
	};
}

int data_gather(struct qp *qp, const struct ornic_sge *sge, uint32_t nsge, uint64_t off,
		uint64_t len, bool write, struct seg *seg, uint64_t *got, uint32_t *syndrome)
{
	struct mr_access who = qp_access(qp, write);

	return list_segs(qp->dev, &who, sge, nsge, off, len, seg, got, syndrome);
}

/* The part of a packet's payload that is not copied yet. */
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

/* Copy @got bytes to @dst, which has room for exactly as many. */
static void source_copy(struct qp *qp, struct source *s, const struct seg *dst, uint32_t n,
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
		source_copy(qp, &src, dst, n, got);
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
		source_copy(qp, &src, dst, n, got);
		done += got;
	}
	return 0;
}
