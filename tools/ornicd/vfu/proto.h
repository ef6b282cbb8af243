/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages of the vfio-user protocol, as defined by QEMU's docs/interop/vfio-user.rst. Client and
 * server share a host, so fields are in its byte order.
 *
 * Every message is a header and a payload. Payloads are not aligned in the stream: copy them into
 * these structures.
 */
#ifndef ORNICD_VFU_PROTO_H
#define ORNICD_VFU_PROTO_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define VFU_MAJOR		0
#define VFU_MINOR		0

/*
 * Limits that this server announces
 *
 * VFU_MAX_XFER, which by VFU_MAX_MSG bounds all messages, is less than the protocol's default of a
 * megabyte: a load is carried out in one piece, and others wait meanwhile. QEMU 11.1 transfers a page
 * of data at most, the configuration space; its longest message is a batch of 200 stores, 4824 bytes.
 */
#define VFU_MAX_FDS		16
#define VFU_MAX_XFER		(1u << 16)
#define VFU_PAGE_SIZE		4096u

enum vfu_cmd {
	VFU_VERSION		= 1,
	VFU_DMA_MAP		= 2,
	VFU_DMA_UNMAP		= 3,
	VFU_DEVICE_GET_INFO	= 4,
	VFU_GET_REGION_INFO	= 5,
	VFU_GET_REGION_IO_FDS	= 6,
	VFU_GET_IRQ_INFO	= 7,
	VFU_SET_IRQS		= 8,
	VFU_REGION_READ		= 9,
	VFU_REGION_WRITE	= 10,
	VFU_DMA_READ		= 11,
	VFU_DMA_WRITE		= 12,
	VFU_DEVICE_RESET	= 13,
	VFU_REGION_WRITE_MULTI	= 15,
	VFU_DEVICE_FEATURE	= 16,
};

#define VFU_F_TYPE		0xfu	/* of vfu_hdr.flags */
#define VFU_F_COMMAND		0x0u
#define VFU_F_REPLY		0x1u
#define VFU_F_NO_REPLY		0x10u
#define VFU_F_ERROR		0x20u

/**
 * struct vfu_hdr - header of every message
 * @id:		chosen by the sender, echoed in the reply
 * @cmd:	&enum vfu_cmd
 * @size:	bytes of the whole message, header included
 * @flags:	type and VFU_F_*
 * @error:	positive errno in a reply with VFU_F_ERROR
 */
struct vfu_hdr {
	uint16_t id;
	uint16_t cmd;
	uint32_t size;
	uint32_t flags;
	uint32_t error;
};
static_assert(sizeof(struct vfu_hdr) == 16, "vfio-user header");

/**
 * struct vfu_version - VFU_VERSION, both ways; JSON text with a NUL may follow
 * @major:	must be equal
 * @minor:	the reply has the smaller one of both
 */
struct vfu_version {
	uint16_t major;
	uint16_t minor;
};
static_assert(sizeof(struct vfu_version) == 4, "vfio-user version");

#define VFU_DMA_F_READ		0x1u	/* of vfu_dma_map.flags */
#define VFU_DMA_F_WRITE		0x2u

/**
 * struct vfu_dma_map - VFU_DMA_MAP request; a descriptor may come along
 * @argsz:	size of this structure
 * @flags:	VFU_DMA_F_*
 * @offset:	offset in the file
 * @addr:	first DMA address
 * @size:	bytes
 */
struct vfu_dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset;
	uint64_t addr;
	uint64_t size;
};
static_assert(sizeof(struct vfu_dma_map) == 32, "vfio-user DMA map");

#define VFU_DMA_F_UNMAP_ALL	0x2u	/* of vfu_dma_unmap.flags */

/**
 * struct vfu_dma_unmap - VFU_DMA_UNMAP, request and reply
 * @argsz:	room for the reply
 * @flags:	VFU_DMA_F_UNMAP_ALL: remove all ranges; then @addr and @size are 0
 * @addr:	first DMA address
 * @size:	bytes
 */
struct vfu_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t addr;
	uint64_t size;
};
static_assert(sizeof(struct vfu_dma_unmap) == 24, "vfio-user DMA unmap");

#define VFU_DEVICE_F_RESET	0x1u	/* of vfu_device_info.flags */
#define VFU_DEVICE_F_PCI	0x2u

/**
 * struct vfu_device_info - VFU_DEVICE_GET_INFO, request and reply
 * @argsz:	room for the reply; in the reply its full size
 * @flags:	VFU_DEVICE_F_*
 * @num_regions: number of region indices
 * @num_irqs:	number of interrupt indices
 */
struct vfu_device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t num_regions;
	uint32_t num_irqs;
};
static_assert(sizeof(struct vfu_device_info) == 16, "vfio-user device info");

/** enum vfu_region - region indices of a PCI function */
enum vfu_region {
	VFU_REGION_BAR0		= 0,
	VFU_REGION_BAR5		= 5,
	VFU_REGION_ROM		= 6,
	VFU_REGION_CONFIG	= 7,
	VFU_REGION_VGA		= 8,
	VFU_NUM_REGIONS		= 9,
};

#define VFU_REGION_F_READ	0x1u	/* of vfu_region_info.flags */
#define VFU_REGION_F_WRITE	0x2u

/**
 * struct vfu_region_info - VFU_GET_REGION_INFO, request and reply
 * @argsz:	room for the reply; in the reply its full size, capabilities included
 * @flags:	VFU_REGION_F_*
 * @index:	&enum vfu_region
 * @cap_offset:	0 without capabilities
 * @size:	bytes, 0 if there is no such region
 * @offset:	for mmap()
 */
struct vfu_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t cap_offset;
	uint64_t size;
	uint64_t offset;
};
static_assert(sizeof(struct vfu_region_info) == 32, "vfio-user region info");

/** enum vfu_irq_index - kinds of interrupts of a PCI function */
enum vfu_irq_index {
	VFU_IRQ_INTX		= 0,
	VFU_IRQ_MSI		= 1,
	VFU_IRQ_MSIX		= 2,
	VFU_IRQ_ERR		= 3,
	VFU_IRQ_REQ		= 4,
	VFU_NUM_IRQS		= 5,
};

#define VFU_IRQ_F_EVENTFD	0x1u	/* of vfu_irq_info.flags */

/**
 * struct vfu_irq_info - VFU_GET_IRQ_INFO, request and reply
 * @argsz:	room for the reply; in the reply its full size
 * @flags:	VFU_IRQ_F_*
 * @index:	&enum vfu_irq_index
 * @count:	vectors of that kind
 */
struct vfu_irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};
static_assert(sizeof(struct vfu_irq_info) == 16, "vfio-user interrupt info");

#define VFU_SET_F_NONE		0x01u	/* of vfu_set_irqs.flags: the data */
#define VFU_SET_F_BOOL		0x02u
#define VFU_SET_F_EVENTFD	0x04u
#define VFU_SET_F_DATA		0x07u
#define VFU_SET_F_MASK		0x08u	/* the action */
#define VFU_SET_F_UNMASK	0x10u
#define VFU_SET_F_TRIGGER	0x20u

/**
 * struct vfu_set_irqs - VFU_SET_IRQS request; @count booleans or descriptors may follow
 * @argsz:	size of the payload
 * @flags:	one kind of data and one action
 * @index:	&enum vfu_irq_index
 * @start:	first vector
 * @count:	vectors
 */
struct vfu_set_irqs {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
};
static_assert(sizeof(struct vfu_set_irqs) == 20, "vfio-user set irqs");

/**
 * struct vfu_region_access - VFU_REGION_READ and VFU_REGION_WRITE, both ways
 * @offset:	in the region
 * @region:	&enum vfu_region
 * @count:	bytes; they follow in a write request and in a read reply
 */
struct vfu_region_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};
static_assert(sizeof(struct vfu_region_access) == 16, "vfio-user region access");

/**
 * struct vfu_write_one - one write of VFU_REGION_WRITE_MULTI, whose payload is a u64 number of
 * writes and the writes
 * @to:		region, offset and count; at most 8 bytes
 * @data:	bytes to write, from the first one on
 */
struct vfu_write_one {
	struct vfu_region_access to;
	uint8_t data[8];
};
static_assert(sizeof(struct vfu_write_one) == 24, "vfio-user write");

/* Longest message either side may send: the longest region access */
#define VFU_MAX_PAYLOAD		(sizeof(struct vfu_region_access) + VFU_MAX_XFER)
#define VFU_MAX_MSG		(sizeof(struct vfu_hdr) + VFU_MAX_PAYLOAD)

#endif /* ORNICD_VFU_PROTO_H */
