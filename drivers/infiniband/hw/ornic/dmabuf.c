// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions of DMA buffers.
 *
 * The memory is pinned, so its exporter does not move it. But it may take it away
 * for good, when its own device is reset or unplugged. Then the key loses its
 * memory before the pages go: it becomes that of an empty region, and work that
 * names it fails. It stays the region's until that is deregistered, so nobody who
 * still has it reaches what others register meanwhile.
 *
 * An exporter revokes under the reservation lock of the buffer. That lock is held
 * here from before the memory is mapped until the key exists, and while the key is
 * destroyed.
 *
 * Without a device that can change a region (feature REREG), exporters are not told
 * that they may revoke.
 */
#include <rdma/ib_umem.h>

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
 * ornic_ib_dmabuf_pin_and_lock() - pin memory of a DMA buffer
 * @dev: device
 * @ubuf: to fill
 * @fd: the buffer, a file of the calling process
 * @offset: first byte
 * @size: bytes
 * @iova: address that the device will use for the first byte
 * @access: IB_ACCESS_*
 *
 * Return: 0, and the memory cannot be revoked before ornic_ib_dmabuf_unlock(); or
 * a negative errno.
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
 * Called once at most, under the reservation lock. Nothing is in the way: no window
 * can be bound to a region with KEY_F_PEER, and being emptied takes no resources
 * (ORN-MEM-46). A device that died touches no memory any more.
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
 * ornic_ib_dmabuf_unlock() - from now on the memory can be revoked
 * @dev: device
 * @mr: region, pinned by ornic_ib_dmabuf_pin_and_lock()
 * @made: it has a key; if not, the caller is going to unpin it
 */
void ornic_ib_dmabuf_unlock(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr, bool made)
{
	struct ib_umem_dmabuf *dmabuf = to_ib_umem_dmabuf(mr->ubuf.umem);

	mr->ibmr.device = &dev->ibdev;	/* ib_core sets it when it may be too late */
	if (made)
		ib_umem_dmabuf_set_revoke_locked(dmabuf, ornic_dmabuf_revoke, mr);
	ib_umem_dmabuf_revoke_unlock(dmabuf);
}

/**
 * ornic_ib_dmabuf_key_destroy() - destroy the key of a region, revoked or not
 * @dev: device
 * @mr: region
 *
 * Nobody revokes it afterwards. No window can be bound to a region with KEY_F_PEER.
 */
void ornic_ib_dmabuf_key_destroy(struct ornic_ib_dev *dev, struct ornic_ib_mr *mr)
{
	struct ib_umem_dmabuf *dmabuf = to_ib_umem_dmabuf(mr->ubuf.umem);

	ib_umem_dmabuf_revoke_lock(dmabuf);
	ornic_ib_cmd_key_destroy(dev, mr->ibmr.lkey);
	ib_umem_dmabuf_set_revoke_locked(dmabuf, NULL, NULL);
	ib_umem_dmabuf_revoke_unlock(dmabuf);
}
