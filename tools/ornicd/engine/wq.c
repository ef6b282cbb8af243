// SPDX-License-Identifier: GPL-2.0
/*
 * Work queues: read each entry that the host posted once.
 */
#include "wq.h"

#include "device.h"
#include "../mem/fetch.h"
#include "../mem/gpa.h"

#include <ornic/admin.h>
#include <errno.h>

/* Copy a ring entry. An entry may cross a page boundary if the ring starts inside a page. */
static bool ring_copy(const struct umem *m, uint64_t off, void *dst, uint64_t len)
{
	uint8_t *to = dst;

	while (len) {
		void *ptr;
		uint64_t n = umem_span(m, off, len, false, &ptr);

		if (!n)
			return false;
		fetch(to, ptr, n);
		to += n;
		off += n;
		len -= n;
	}
	return true;
}

struct ornic_rec *wq_record(struct device *dev, const struct wq *wq)
{
	return gpa_ptr(dev->gpa, wq->rec, sizeof(struct ornic_rec), true);
}

int64_t wq_pending(struct device *dev, const struct wq *wq)
{
	const struct ornic_rec *rec = wq_record(dev, wq);
	uint32_t n;

	if (!rec)
		return -EFAULT;
	n = ring_host_index(rec) - wq->cons;
	return n <= 1u << wq->log ? (int64_t)n : -EPROTO;
}

int64_t wq_copy(struct device *dev, const struct wq *wq, void *dst, uint64_t len)
{
	uint64_t slot = wq->cons & ((1u << wq->log) - 1);
	int64_t n = wq_pending(dev, wq);

	if (n <= 0)
		return n;
	return ring_copy(&wq->mem, slot << wq->stride, dst, len) ? n : -EFAULT;
}

uint32_t wq_syndrome(int64_t error)
{
	return error == -EPROTO ? ORNIC_SYN_RING_INDEX : ORNIC_SYN_RING_MEMORY;
}
