// SPDX-License-Identifier: GPL-2.0
/*
 * Export DMA buffers and revoke their memory, as a driver does when its device is
 * reset or unplugged.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "exporter.h"

#ifndef KTEST_HAVE_DMA_BUF_INVALIDATE
#define dma_buf_invalidate_mappings(dmabuf) dma_buf_move_notify(dmabuf)
#endif

/**
 * struct buffer - memory of a DMA buffer
 * @mem: address of the memory
 * @size: size in bytes
 * @pins: number of importers that pinned it
 * @maps: number of importers that mapped it
 * @revoked: it can no longer be pinned or mapped
 *
 * The reservation lock of the DMA buffer protects @pins, @maps and @revoked.
 */
struct buffer {
	void *mem;
	size_t size;
	u32 pins;
	u32 maps;
	bool revoked;
};

/**
 * struct exporter - an open file
 * @lock: serialises ioctl calls
 * @dmabuf: the buffer, once exported
 */
struct exporter {
	struct mutex lock;	/* protects @dmabuf */
	struct dma_buf *dmabuf;
};

static int buffer_pin(struct dma_buf_attachment *attach)
{
	struct buffer *b = attach->dmabuf->priv;

	if (b->revoked)
		return -ENODEV;
	b->pins++;
	return 0;
}

static void buffer_unpin(struct dma_buf_attachment *attach)
{
	struct buffer *b = attach->dmabuf->priv;

	b->pins--;
}

static struct sg_table *buffer_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct buffer *b = attach->dmabuf->priv;
	struct sg_table *sgt;
	int ret;

	if (b->revoked)
		return ERR_PTR(-ENODEV);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table(sgt, 1, GFP_KERNEL);
	if (ret)
		goto err_free;
	sg_set_buf(sgt->sgl, b->mem, b->size);
	ret = dma_map_sgtable(attach->dev, sgt, dir, 0);
	if (ret)
		goto err_table;
	b->maps++;
	return sgt;

err_table:
	sg_free_table(sgt);
err_free:
	kfree(sgt);
	return ERR_PTR(ret);
}

static void buffer_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			 enum dma_data_direction dir)
{
	struct buffer *b = attach->dmabuf->priv;

	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
	b->maps--;
}

static int buffer_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct buffer *b = dmabuf->priv;

	return vm_iomap_memory(vma, virt_to_phys(b->mem), b->size);
}

static void buffer_release(struct dma_buf *dmabuf)
{
	struct buffer *b = dmabuf->priv;

	free_pages_exact(b->mem, b->size);
	kfree(b);
}

static const struct dma_buf_ops buffer_ops = {
	.pin = buffer_pin,
	.unpin = buffer_unpin,
	.map_dma_buf = buffer_map,
	.unmap_dma_buf = buffer_unmap,
	.mmap = buffer_mmap,
	.release = buffer_release,
};

static struct dma_buf *buffer_new(size_t size)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct buffer *b = kzalloc(sizeof(*b), GFP_KERNEL);
	struct dma_buf *dmabuf;

	if (!b)
		return ERR_PTR(-ENOMEM);
	b->size = size;
	b->mem = alloc_pages_exact(size, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	if (!b->mem) {
		kfree(b);
		return ERR_PTR(-ENOMEM);
	}
	info.ops = &buffer_ops;
	info.size = size;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = b;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		free_pages_exact(b->mem, size);
		kfree(b);
	}
	return dmabuf;
}

/* The file descriptor has one reference to the buffer, the exporter another. */
static int export(struct exporter *e, const u64 __user *arg)
{
	struct dma_buf *dmabuf;
	u64 size;
	int fd;

	if (copy_from_user(&size, arg, sizeof(size)))
		return -EFAULT;
	if (!size || size > SZ_4M || !PAGE_ALIGNED(size))
		return -EINVAL;
	if (e->dmabuf)
		return -EBUSY;
	dmabuf = buffer_new(size);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	get_dma_buf(dmabuf);
	fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	if (fd < 0) {
		dma_buf_put(dmabuf);
		dma_buf_put(dmabuf);
		return fd;
	}
	e->dmabuf = dmabuf;
	return fd;
}

static int revoke(struct exporter *e)
{
	struct buffer *b;
	bool held;

	if (!e->dmabuf)
		return -ENOENT;
	b = e->dmabuf->priv;
	dma_resv_lock(e->dmabuf->resv, NULL);
	b->revoked = true;
	dma_buf_invalidate_mappings(e->dmabuf);
	held = b->maps || b->pins;
	dma_resv_unlock(e->dmabuf->resv);
	return held ? -EBUSY : 0;
}

static int exporter_open(struct inode *inode, struct file *file)
{
	struct exporter *e = kzalloc(sizeof(*e), GFP_KERNEL);

	if (!e)
		return -ENOMEM;
	mutex_init(&e->lock);
	file->private_data = e;
	return 0;
}

static int exporter_release(struct inode *inode, struct file *file)
{
	struct exporter *e = file->private_data;

	if (e->dmabuf)
		dma_buf_put(e->dmabuf);
	kfree(e);
	return 0;
}

static long exporter_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct exporter *e = file->private_data;
	int ret = -ENOTTY;

	mutex_lock(&e->lock);
	if (cmd == EXPORTER_EXPORT)
		ret = export(e, (const u64 __user *)arg);
	else if (cmd == EXPORTER_REVOKE)
		ret = revoke(e);
	mutex_unlock(&e->lock);
	return ret;
}

static const struct file_operations exporter_fops = {
	.owner = THIS_MODULE,
	.open = exporter_open,
	.release = exporter_release,
	.unlocked_ioctl = exporter_ioctl,
};

static struct miscdevice exporter = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ornic_exporter",
	.fops = &exporter_fops,
};
module_misc_device(exporter);

MODULE_DESCRIPTION("Exporter of DMA buffers that takes their memory away");
MODULE_LICENSE("GPL");
/* not MODULE_IMPORT_NS(), whose parameter is a string in newer kernels and a word in older ones */
MODULE_INFO(import_ns, "DMA_BUF");
