/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * User ABI of ornic_ib: payload of uverbs commands between driver and provider.
 *
 * Rings and doorbell records lie in memory of the process. The provider allocates it at
 * a page boundary, and the driver pins it. Each object has one buffer:
 *
 *   CQ   [entries: 64 << log_entries][record: 64]
 *   QP   [SQ: 1 << (sq_log + sq_stride)][RQ: 1 << (rq_log + rq_stride)]
 *        [SQ record: 64][RQ record: 64]
 *   SRQ  [entries: 1 << (log_entries + stride), 64 or more][record: 64]
 *
 * The attributes of the command that creates a CQ may name other memory for the entries, at a
 * page boundary. Then buf_addr is the address of the record, a multiple of 64: the device reads
 * the record, and the kernel may map the other memory for writes of the device only.
 *
 * The RQ starts at the next multiple of its stride, so that no entry straddles
 * a page (ORN-RNG-14). A ring that does not exist (log ORNIC_ABI_NO_RING) uses
 * no bytes. Both records always exist, at a multiple of 64. The buffer is
 * zero except for the notify words, which are ORNIC_NOTIFY_ALWAYS (ORN-RNG-4).
 */
#ifndef ORNIC_ABI_USER_H
#define ORNIC_ABI_USER_H

#include <linux/types.h>

#define ORNIC_UVERBS_ABI_VERSION	1

#define ORNIC_ABI_NO_RING		0xff

/*
 * ioctl attribute of UVERBS_METHOD_DM_ALLOC: __aligned_u64, out, offset for mmap of the
 * memory, whose length is rounded up to whole pages. Attributes of drivers begin at 0x1000.
 */
#define ORNIC_ATTR_DM_ALLOC_MMAP_OFFSET	0x1000

/* The device places the data of a message in address order. */
#define ORNIC_ABI_F_DATA_IN_ORDER	(1u << 0)

/*
 * Capabilities of a provider. The driver ignores bits that it does not know. No device of
 * interface 1.0 needs a bit, so no provider is rejected for the lack of one.
 *
 * DM_COMBINE: the provider orders its stores to device memory (ORN-DM-10), so the driver maps
 * the memory write-combining. Without the bit, the mapping is uncached.
 */
#define ORNIC_UCONTEXT_CAP_DM_COMBINE	(1u << 0)

struct ornic_ureq_alloc_ucontext {
	__u32 supported_caps;		/* ORNIC_UCONTEXT_CAP_* */
	__u32 reserved;
};

/*
 * alloc_ucontext: doorbell page of the process and limits of its rings. A driver that adds
 * fields behind comp_mask sets a bit of it for each field. This version has none.
 */
struct ornic_uresp_alloc_ucontext {
	__aligned_u64 db_mmap_offset;	/* offset for mmap of the doorbell page */
	__u32 db_mmap_size;
	__u32 max_inline;
	__u32 max_send_wr;
	__u32 max_recv_wr;
	__u32 max_cqe;
	__u16 max_send_sge;
	__u16 max_recv_sge;
	__u8 max_sq_stride;		/* log2 bytes */
	__u8 max_rq_stride;
	__u8 log_max_srq;		/* log2 entries of an SRQ */
	__u8 flags;			/* ORNIC_ABI_F_* */
	__u16 max_srq_sge;		/* SGEs of an SRQ entry; 0: the device has no SRQs */
	__u16 reserved2;
	__u32 comp_mask;
	__u32 reserved3;
};

/*
 * query_device, if the provider left room for it: a reading of the clocks, receive scaling
 * (RSS) and rate limits. Clock and system time were read at the same moment, with an error of
 * at most error_ns. They are zero if the device has no completion timestamps.
 */
struct ornic_uresp_query_device {
	__aligned_u64 clock;		/* device clock */
	__aligned_u64 clock_mask;	/* its valid bits */
	__aligned_u64 system_ns;	/* CLOCK_REALTIME in ns */
	__u32 clock_khz;		/* rate of the device clock */
	__u32 error_ns;			/* largest error of system_ns, saturated */
	__u32 rss_fields;		/* IBV_RX_HASH_* that create_qp accepts; 0: no RSS */
	__u8 rss_functions;		/* IBV_RX_HASH_FUNC_* */
	__u8 reserved[3];
	__u32 rate_qpts;		/* bit per IBV_QPT_* that supports a rate limit */
	__u32 rate_min_kbps;		/* smallest rate limit in kbit/s */
	__u32 rate_max_kbps;		/* largest rate limit in kbit/s */
	__u32 reserved2;
};

struct ornic_uresp_alloc_pd {
	__u32 pdn;
	__u32 reserved;
};

struct ornic_ureq_create_cq {
	__aligned_u64 buf_addr;
	__u8 log_entries;
	__u8 reserved[7];
};

struct ornic_uresp_create_cq {
	__u32 cqn;
	__u32 reserved;
};

struct ornic_ureq_create_srq {
	__aligned_u64 buf_addr;
	__u8 log_entries;
	__u8 stride;			/* log2 bytes of an entry */
	__u8 reserved[6];
};

struct ornic_uresp_create_srq {
	__u32 srqn;
	__u32 reserved;
};

/*
 * modify_srq with IBV_SRQ_MAX_WR: a new buffer of the same layout and stride, which holds the
 * entries of the old one (ORN-SRQ-17). After success the old buffer is no longer used.
 */
struct ornic_ureq_modify_srq {
	__aligned_u64 buf_addr;
	__u8 log_entries;
	__u8 reserved[7];
};

/* resize_cq: a new buffer of the same layout. After success the old one is no longer used. */
struct ornic_ureq_resize_cq {
	__aligned_u64 buf_addr;
	__u8 log_entries;
	__u8 reserved[7];
};

/* Indices of the old ring when the device left it (ORN-CQ-24). */
struct ornic_uresp_resize_cq {
	__u32 producer;
	__u32 consumer;
};

/* create_qp. An XRC target has no buffer, so the driver ignores its request. */
struct ornic_ureq_create_qp {
	__aligned_u64 buf_addr;
	__u8 sq_log;
	__u8 sq_stride;
	__u8 rq_log;
	__u8 rq_stride;
	__u8 reserved[4];
};

struct ornic_uresp_create_qp {
	__u32 qpn;			/* handle, as in doorbells and completions */
	__u32 reserved;
};

/* modify_qp by the extended command with a rate limit; optional. */
struct ornic_ureq_modify_qp {
	__u32 rate_burst;		/* bytes; 0: chosen by the device */
	__u16 rate_packet;		/* bytes; 0: the largest frame */
	__u16 reserved;
};

/*
 * create_wq has the request and the response of create_qp: a work queue is a queue pair
 * with sq_log ORNIC_ABI_NO_RING. create_qp with a table of work queues (RSS) has this
 * request instead.
 */
struct ornic_ureq_create_rss {
	__u32 fields;			/* IBV_RX_HASH_* */
	__u8 function;			/* IBV_RX_HASH_FUNC_TOEPLITZ */
	__u8 reserved[3];
	__u8 key[40];
};

/* Query of device memory. */
struct ornic_uresp_query_dm {
	__aligned_u64 mmap_offset;	/* as reported by alloc_dm */
	__aligned_u64 length;		/* bytes as requested, not rounded up */
};

struct ornic_uresp_create_ah {
	__u8 dmac[6];
	__u8 reserved[2];
};

#endif
