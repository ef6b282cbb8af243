// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions of DMA buffers.
 *
 * The memory is pinned, so its exporter does not move it. But the exporter may
 * revoke it for good if its own device is reset or unplugged. Before the pages go,
 * the driver removes the memory from the key, which then describes an empty
 * region, and work requests with this key fail. The key exists until the region is
 * deregistered, so a stale key cannot reach memory that is registered later.
 *
 * An exporter revokes under the reservation lock of the buffer. The driver holds
 * that lock from before the memory is mapped until the key exists, and while the
 * key is destroyed.
 *
 * If the device cannot change a region (feature REREG), the driver does not allow
 * exporters to revoke.
 */
#include <linux/err.h>
#include <rdma/ib_umem.h>

#include <linux/ornic/hw/mr.h>

#include "dmabuf.h"
#include "buf.h"
#include "cmd.h"
#include "mr.h"
#include "ornic_ib.h"

static struct ib_umem_dmabuf *ornic_get_and_lock(struct ornic_ib_dev *dev, int fd, u64 offset,
						 u64 size, int access)
{
	struct ib_umem_dmabuf *dmabuf;

	if (ornic_has(dev->odev, ORNIC_FEATURE(REREG)))
		return ib_umem_dmabuf_get_pinned_revocable_and_lock(&dev->ibdev, offset, size, fd,
								    access);
	dmabuf = ib_umem_dmabuf_get_pinned(&dev->ibdev, offset, size, fd, access);
	if (!IS_ERR(dmabuf))
		ib_umem_dmabuf_revoke_lock(dmabuf);
	return dmabuf;
}

/**
 * ornic_ib_dmabuf_pin_and_lock() - pin memory of a DMA buffer and take its reservation lock
 * @dev: device
 * @ubuf: to fill
 * @fd: file descriptor of the buffer in the calling process
 * @offset: offset of the first byte in the buffer
 * @size: size in bytes
 * @iova: address that the device will use for the first byte
 * @access: IB_ACCESS_*
 *
 * Context: process context, may sleep.
 *
 * Return: 0 with the lock held, so that the memory cannot be revoked before
 * ornic_ib_dmabuf_unlock(); or a negative errno without the lock.
 */
int ornic_ib_dmabuf_pin_and_lock(struct ornic_ib_dev *dev, struct ornic_ib_ubuf *ubuf, int fd,
				 u64 offset, u64 size, u64 iova, int access)
{
	struct ib_umem_dmabuf *dmabuf = ornic_get_and_lock(dev, fd, offset, size, access);
	int ret;

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	ret = ornic_ib_ubuf_take(dev, ubuf, &dmabuf->umem, iova);
	if (ret) {
		ib_umem_dmabuf_revoke_unlock(dmabuf);
		ib_umem_release(&dmabuf->umem);
	}
	return ret;
}

/*
 * Empty the region of the key. The exporter calls this at most once, under the
 * reservation lock. A correct device cannot fail: no window can be bound to a region
 * with KEY_F_PEER, and emptying takes no resources (ORN-MEM-46). A dead device does
 * no DMA.
 */
static void ornic_dmabuf_revoke(void *priv)
{
	static const struct ornic_key_modify_cmd nothing = {
		.mask = cpu_to_le32(ORNIC_KEYM_TRANSLATION),
		.attr.flags = ORNIC_KEY_F_PEER,
	};
	struct ornic_ib_mr *mr = priv;
	struct ornic_ib_dev *dev = to_oib(mr->ibmr.device);

	if (ornic_ib_cmd_key_modify(dev, mr->ibmr.lkey, &nothing) &&
	    !ornic_device_dead(dev->odev))
		ornic_device_malformed(dev->odev, "memory of a region cannot be taken away");
}

/**
 * ornic_ib_dmabuf_unlock() - allow the exporter to revoke and release the reservation lock
 * @dev: device
 * @mr: region, pinned by ornic_ib_dmabuf_pin_and_lock()
 * @made: the region has a key; if false, the caller unpins the memory afterwards
 */
void ornic_ib_dmabuf_unlock(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr, bool made)
{
	struct ib_umem_dmabuf *dmabuf = to_ib_umem_dmabuf(mr->ubuf.umem);

	/*
	 * uverbs (6.1 to 7.2) sets it after reg_user_mr_dmabuf(), and ornic_dmabuf_revoke(), which
	 * needs it, can run before that
	 */
	mr->ibmr.device = &dev->ibdev;
	if (made)
		ib_umem_dmabuf_set_revoke_locked(dmabuf, ornic_dmabuf_revoke, mr);
	ib_umem_dmabuf_revoke_unlock(dmabuf);
}

/**
 * ornic_ib_dmabuf_key_destroy() - destroy the key of a region, revoked or not
 * @dev: device
 * @mr: region
 *
 * On return the exporter will not call the driver again. No window can be bound to a region with
 * KEY_F_PEER, so the destroy cannot fail.
 *
 * Context: process context, takes the reservation lock.
 */
void ornic_ib_dmabuf_key_destroy(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr)
{
	struct ib_umem_dmabuf *dmabuf = to_ib_umem_dmabuf(mr->ubuf.umem);

	ib_umem_dmabuf_revoke_lock(dmabuf);
	ornic_ib_cmd_key_destroy(dev, mr->ibmr.lkey);
	ib_umem_dmabuf_set_revoke_locked(dmabuf, NULL, NULL);
	ib_umem_dmabuf_revoke_unlock(dmabuf);
}
