// SPDX-License-Identifier: GPL-2.0
/*
 * Regions: BARs and configuration space, described, read and written.
 *
 * No region can be mapped by the client. If any could, QEMU 11.1 would not post writes
 * to any region of the device: a doorbell would cost the guest a round trip of 29 to
 * 68 us instead of 1 to 3 us.
 *
 * Every load and store of the guest passes through here. The function therefore sees
 * only naturally aligned accesses of 1 to 8 bytes inside the BAR.
 */
#include "command.h"

#include "../log.h"

#include <errno.h>
#include <string.h>

static uint64_t region_size(const struct vfu_endpoint *ep, uint32_t index)
{
	if (index <= VFU_REGION_BAR5)
		return ep->pci.bar_size[index];
	return index == VFU_REGION_CONFIG ? PCI_CFG_SIZE : 0;
}

/**
 * vfu_get_region_info() - VFU_GET_REGION_INFO: report size and rights of a region
 * @ep:	endpoint
 * @m:	request
 *
 * There are no capabilities, so the first reply is complete and the client does not ask
 * again with a larger argsz.
 *
 * Return: 0, a negative errno, or VFU_CLOSE().
 */
int vfu_get_region_info(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	struct vfu_region_info info;
	int err;

	err = vfu_payload(ep, m, &info, sizeof(info));
	if (err)
		return err;
	if (info.argsz < sizeof(info) || info.index >= VFU_NUM_REGIONS)
		return -EINVAL;
	info = (struct vfu_region_info){
		.argsz = sizeof(info),
		.index = info.index,
		.size = region_size(ep, info.index),
	};
	if (info.size)
		info.flags = VFU_REGION_F_READ | VFU_REGION_F_WRITE;
	vfu_answer(m, &info, sizeof(info));
	return 0;
}

static int region_check(const struct vfu_endpoint *ep, const struct vfu_region_access *a)
{
	uint64_t size;

	if (a->region >= VFU_NUM_REGIONS)
		return -EINVAL;
	size = region_size(ep, a->region);
	if (!a->count || a->offset > size || a->count > size - a->offset)
		return -EINVAL;
	return 0;
}

static bool bar_access_ok(const struct vfu_region_access *a)
{
	return a->count <= 8 && !(a->count & (a->count - 1)) && !(a->offset & (a->count - 1));
}

static bool bar_is_msix(const struct vfu_endpoint *ep, uint32_t bar)
{
	return ep->msix.n && bar == VFU_MSIX_BAR;
}

static void bar_read(struct vfu_endpoint *ep, const struct vfu_region_access *a, uint8_t *to)
{
	uint64_t val;

	if (bar_is_msix(ep, a->region)) {
		/* QEMU (11.1) emulates the table itself and reads only the pending bits here. */
		memset(to, 0, a->count);
	} else if (bar_access_ok(a)) {
		val = ep->func->ops->bar_read(ep->func, a->region, a->offset, a->count);
		memcpy(to, &val, a->count);
	} else {
		memset(to, 0xff, a->count);
	}
}

static void bar_write(struct vfu_endpoint *ep, const struct vfu_region_access *a,
		      const uint8_t *from)
{
	uint64_t val = 0;

	if (bar_is_msix(ep, a->region) || !bar_access_ok(a))
		return;
	memcpy(&val, from, a->count);
	ep->func->ops->bar_write(ep->func, a->region, a->offset, a->count, val);
}

/**
 * vfu_region_read() - VFU_REGION_READ: load from a BAR or from configuration space
 * @ep:	endpoint
 * @m:	request
 *
 * Return: 0, a negative errno, or VFU_CLOSE().
 */
int vfu_region_read(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	struct vfu_region_access a;
	int err;

	err = vfu_payload(ep, m, &a, sizeof(a));
	if (err)
		return err;
	err = region_check(ep, &a);
	if (err)
		return err;
	if (a.count > ep->client_xfer)
		return -EINVAL;
	vfu_answer(m, &a, sizeof(a));
	if (a.region == VFU_REGION_CONFIG)
		pci_read(&ep->pci, a.offset, m->out + m->out_len, a.count);
	else
		bar_read(ep, &a, m->out + m->out_len);
	m->out_len += a.count;
	return 0;
}

static int region_write(struct vfu_endpoint *ep, const struct vfu_region_access *a,
			const uint8_t *from)
{
	int err = region_check(ep, a);

	if (err) {
		/* A posted write has no reply, so the log has to report the error. */
		log_from(&ep->func->log, LOG_WARN,
			 "write of %u bytes at %#llx of region %u is outside", a->count,
			 (unsigned long long)a->offset, a->region);
		return err;
	}
	if (a->region == VFU_REGION_CONFIG)
		endpoint_config_write(ep, a->offset, from, a->count);
	else
		bar_write(ep, a, from);
	return 0;
}

/**
 * vfu_region_write() - VFU_REGION_WRITE: store; stores to a BAR are mostly posted
 * @ep:	endpoint
 * @m:	request
 *
 * Return: 0, a negative errno, or VFU_CLOSE().
 */
int vfu_region_write(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	struct vfu_region_access a;
	int err;

	err = vfu_payload(ep, m, &a, sizeof(a));
	if (err)
		return err;
	if (m->len - sizeof(a) != a.count)
		return VFU_CLOSE(EINVAL);
	err = region_write(ep, &a, m->payload + sizeof(a));
	if (!err)
		vfu_answer(m, &a, sizeof(a));
	return err;
}

/**
 * vfu_region_write_multi() - VFU_REGION_WRITE_MULTI: carry out small stores in order
 * @ep:	endpoint
 * @m:	request
 *
 * A failed store does not stop the others, as if each had come in its own message. Each counts as a
 * message, so that other devices do not wait for thousands.
 *
 * Return: 0, the first negative errno, VFU_CLOSE() or VFU_MORE.
 */
int vfu_region_write_multi(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	struct vfu_write_one w;
	uint64_t n;
	int err;

	err = vfu_payload(ep, m, &n, sizeof(n));
	if (err)
		return err;
	if ((m->len - sizeof(n)) % sizeof(w) || n != (m->len - sizeof(n)) / sizeof(w))
		return VFU_CLOSE(EINVAL);
	for (; m->done < n && m->work; m->done++, m->work--) {
		memcpy(&w, m->payload + sizeof(n) + m->done * sizeof(w), sizeof(w));
		err = w.to.count <= sizeof(w.data) ? region_write(ep, &w.to, w.data) : -EINVAL;
		if (!m->result)
			m->result = err;
	}
	if (m->done < n)
		return VFU_MORE;
	if (!m->result)
		vfu_answer(m, &n, sizeof(n));
	return m->result;
}
