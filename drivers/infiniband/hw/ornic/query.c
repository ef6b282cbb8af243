// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes and limits of the device and its port.
 *
 * All values come from Identify. A device may report more than the formats of
 * the interface can express. ornic_ib_read_limits() bounds the values once, so
 * that the rest of the driver can rely on them.
 */
#include <linux/bits.h>
#include <linux/device.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/ornic/hw/qp.h>
#include <linux/ornic/hw/regs.h>
#include <linux/ornic/hw/ring.h>
#include <linux/ornic/hw/steer.h>
#include <linux/ornic/hw/wqe.h>
#include <rdma/ornic-abi.h>

#include "query.h"
#include "cmd.h"
#include "ornic_ib.h"
#include "rate.h"

/* Most bytes in front of the data of a work request: control segment and path of a datagram. */
#define SEND_OVERHEAD	(sizeof(struct ornic_wqe_ctrl) + sizeof(struct ornic_path))

/*
 * Larger page sizes than 1 GiB save nothing. From 4 GiB on they overflow struct ib_block_iter,
 * whose __sg_advance is an unsigned int (6.12 and 7.2).
 */
#define PAGE_SIZES	GENMASK(30, ORNIC_PAGES_MIN_SHIFT)

/*
 * Most pages of a fast registration. Each region allocates its list as one block of memory, and
 * the page allocator finds 32 KiB reliably (PAGE_ALLOC_COSTLY_ORDER with pages of 4 KiB).
 */
#define MAX_FAST_REG_PAGES	(SZ_32K / sizeof(__le64))

/*
 * Most GIDs of a port. ib_core (6.1 to 7.2) makes two sysfs files of each, in arrays of one block
 * of memory: with the 65535 that a device may report, it cannot be registered on a host with
 * fragmented memory.
 */
#define MAX_GIDS	4096

/* The field has 5 bits on the wire. */
#define MAX_ACK_DELAY	31

/* Convert a limit that verbs store in an int. */
static int ornic_to_count(__le32 limit)
{
	return min_t(u32, le32_to_cpu(limit), INT_MAX);
}

/* Read limits of features. Without the feature the device may report any value (ORN-IDN-8). */
static void ornic_read_feature_limits(struct ornic_ib_dev *dev)
{
	const struct ornic_identify_device *id = &dev->odev->id;
	struct ornic_ib_limits *lim = &dev->lim;

	if (ornic_has(dev->odev, ORNIC_FEATURE(FAST_REG)))
		lim->fast_reg_pages = min_t(u32, le32_to_cpu(id->max_fast_reg_pages),
					    MAX_FAST_REG_PAGES);
	if (ornic_has(dev->odev, ORNIC_FEATURE(DM)))
		lim->dm_bytes = min_t(u64, le64_to_cpu(id->dm_bytes),
				      pci_resource_len(dev->odev->pdev, ORNIC_BAR_DM));
	lim->rss_table = rounddown_pow_of_two(clamp_t(u32, le32_to_cpu(id->rss_max_table), 1,
						      ORNIC_RSS_MAX_TABLE));
	lim->rss_fields = le32_to_cpu(id->rss_fields) & ORNIC_RSS_FIELDS;
}

/*
 * Return: what the device lacks, or NULL. rdma_rw divides by the SGEs of a queue pair and by
 * max_sge_rd (6.12 and 7.2). A region below a page holds no buffer of a kernel consumer. More than
 * 512 pages need a list of level 2 (pagelist.c).
 */
static const char *ornic_lacks(const struct ornic_ib_dev *dev)
{
	const struct ornic_identify_device *id = &dev->odev->id;

	if (!dev->lim.send_sge || !dev->lim.recv_sge || !dev->lim.read_sge)
		return "SGEs";
	if (le64_to_cpu(id->max_region) < SZ_4K)
		return "regions of a page";
	if (id->max_list_level < 2)
		return "page lists of level 2";
	return NULL;
}

/**
 * ornic_ib_read_limits() - set the limits to those of Identify, bounded by the formats
 * @dev: device
 *
 * Return: 0, or -EOPNOTSUPP if the device lacks something that the driver needs.
 */
int ornic_ib_read_limits(struct ornic_ib_dev *dev)
{
	const struct ornic_identify_device *id = &dev->odev->id;
	struct ornic_ib_limits *lim = &dev->lim;
	u32 sq_room, rq_room;
	const char *lacks;

	lim->page_sizes = (le64_to_cpu(id->page_sizes) & PAGE_SIZES) | SZ_4K;
	lim->log_sq = min_t(u8, id->log_max_sq, ORNIC_LOG_MAX_WQ);
	lim->log_rq = min_t(u8, id->log_max_rq, ORNIC_LOG_MAX_WQ);
	lim->log_srq = min_t(u8, id->log_max_srq, ORNIC_LOG_MAX_WQ);
	lim->log_cq = min_t(u8, id->log_max_cq, ORNIC_LOG_MAX_CQ);
	lim->sq_stride = clamp_t(u8, id->max_sq_stride, ORNIC_SQ_MIN_STRIDE, ORNIC_SQ_MAX_STRIDE);
	lim->rq_stride = clamp_t(u8, id->max_rq_stride, ORNIC_RQ_MIN_STRIDE, ORNIC_RQ_MAX_STRIDE);

	sq_room = BIT(lim->sq_stride) - min_t(u32, BIT(lim->sq_stride), SEND_OVERHEAD);
	rq_room = BIT(lim->rq_stride) - sizeof(struct ornic_rwqe);
	lim->send_sge = min_t(u32, le16_to_cpu(id->max_send_sge),
			      sq_room / sizeof(struct ornic_sge));
	lim->recv_sge = min_t(u32, le16_to_cpu(id->max_recv_sge),
			      rq_room / sizeof(struct ornic_sge));
	lim->srq_sge = min_t(u32, le16_to_cpu(id->max_srq_sge),
			     rq_room / sizeof(struct ornic_sge));
	lim->read_sge = min(le16_to_cpu(id->max_sge_read), lim->send_sge);
	lim->max_inline = min_t(u32, le16_to_cpu(id->max_inline), sq_room);
	lim->max_cqe = BIT(lim->log_cq);
	/* struct ib_qp_attr and struct rdma_conn_param have a byte for each */
	lim->rd_atomic_init = min_t(u16, le16_to_cpu(id->max_rd_atomic_init), U8_MAX);
	lim->rd_atomic_resp = min_t(u16, le16_to_cpu(id->max_rd_atomic_resp), U8_MAX);
	ornic_read_feature_limits(dev);
	lacks = ornic_lacks(dev);
	if (!lacks)
		return 0;
	dev_info(ornic_ib_dma(dev), "device reports no %s, RDMA not available\n", lacks);
	return -EOPNOTSUPP;
}

static enum ib_atomic_cap ornic_atomic_cap(const struct ornic_ib_dev *dev)
{
	if (!ornic_has(dev->odev, ORNIC_FEATURE(ATOMICS)))
		return IB_ATOMIC_NONE;
	switch (dev->odev->id.atomic_scope) {
	case 1:
		return IB_ATOMIC_HCA;
	case 2:
		return IB_ATOMIC_GLOB;
	default:
		return IB_ATOMIC_NONE;
	}
}

static void ornic_query_queues(const struct ornic_ib_dev *dev, struct ib_device_attr *attr)
{
	const struct ornic_identify_device *id = &dev->odev->id;
	const struct ornic_ib_limits *lim = &dev->lim;

	attr->max_qp = dev->odev->share.qp;
	attr->max_qp_wr = min(BIT(lim->log_sq), BIT(lim->log_rq));
	attr->max_send_sge = lim->send_sge;
	attr->max_recv_sge = lim->recv_sge;
	attr->max_sge_rd = lim->read_sge;
	attr->max_cq = dev->odev->share.cq;
	attr->max_cqe = lim->max_cqe;
	attr->max_qp_rd_atom = lim->rd_atomic_resp;
	attr->max_qp_init_rd_atom = lim->rd_atomic_init;
	attr->max_res_rd_atom = ornic_to_count(id->max_rd_resources);
	attr->atomic_cap = ornic_atomic_cap(dev);
	attr->masked_atomic_cap = IB_ATOMIC_NONE;
	if (ornic_has(dev->odev, ORNIC_FEATURE(SRQ))) {
		attr->max_srq = ornic_to_count(id->max_srq);
		attr->max_srq_wr = BIT(lim->log_srq);
		attr->max_srq_sge = lim->srq_sge;
	}
	if (ornic_has(dev->odev, ORNIC_FEATURE(CQ_MODERATION))) {
		attr->cq_caps.max_cq_moderation_count = le16_to_cpu(id->max_mod_count);
		attr->cq_caps.max_cq_moderation_period = le16_to_cpu(id->max_mod_period_us);
	}
	if (ornic_has(dev->odev, ORNIC_FEATURE(TIMESTAMP))) {
		attr->timestamp_mask = le64_to_cpu(id->clock_mask);
		attr->hca_core_clock = le32_to_cpu(id->clock_khz);
	}
}

/* Respond to a provider with room for it; not for others, since the clock costs a command. */
static int ornic_query_respond(struct ornic_ib_dev *dev, struct ib_udata *udata)
{
	struct ornic_uresp_query_device resp = {};
	int ret = 0;

	if (ornic_has(dev->odev, ORNIC_FEATURE(RSS))) {
		resp.rss_fields = dev->lim.rss_fields;
		resp.rss_functions = ORNIC_RSS_TOEPLITZ;
	}
	resp.rate_qpts = ornic_ib_rate_types(dev);
	if (resp.rate_qpts) {
		resp.rate_min_kbps = le32_to_cpu(dev->odev->id.rate_min_kbps);
		resp.rate_max_kbps = le32_to_cpu(dev->odev->id.rate_max_kbps);
	}
	if (ornic_has(dev->odev, ORNIC_FEATURE(TIMESTAMP)))
		ret = ornic_ib_clock_read(dev, &resp);
	return ret ? ret : ib_respond_udata(udata, resp);
}

/* Return the capability flags that follow from features of the device. */
static u64 ornic_device_caps(const struct ornic_ib_dev *dev)
{
	u64 caps = 0;

	if (ornic_has(dev->odev, ORNIC_FEATURE(FLUSH_GLOBAL)))
		caps |= IB_DEVICE_FLUSH_GLOBAL;
	if (ornic_has(dev->odev, ORNIC_FEATURE(SRQ_RESIZE)))
		caps |= IB_DEVICE_SRQ_RESIZE;
	if (ornic_has(dev->odev, ORNIC_FEATURE(FLUSH_PERSISTENT)))
		caps |= IB_DEVICE_FLUSH_PERSISTENT;
	if (ornic_has(dev->odev, ORNIC_FEATURE(ATOMIC_WRITE)))
		caps |= IB_DEVICE_ATOMIC_WRITE;
	return caps;
}

static void ornic_query_memory(const struct ornic_ib_dev *dev, struct ib_device_attr *attr)
{
	const struct ornic_identify_device *id = &dev->odev->id;

	attr->max_mr_size = le64_to_cpu(id->max_region);
	attr->page_size_cap = dev->lim.page_sizes;
	attr->max_mr = ornic_to_count(id->max_key);
	if (dev->lim.fast_reg_pages) {
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
		attr->max_fast_reg_page_list_len = dev->lim.fast_reg_pages;
	}
	if (ornic_has(dev->odev, ORNIC_FEATURE(MW1)))
		attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW;
	if (ornic_has(dev->odev, ORNIC_FEATURE(MW2B)))
		attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW_TYPE_2B;
	if (ornic_has(dev->odev, ORNIC_FEATURE(MW1)) || ornic_has(dev->odev, ORNIC_FEATURE(MW2B)))
		attr->max_mw = ornic_to_count(id->max_mw);
}

static void ornic_query_rss(const struct ornic_ib_dev *dev, struct ib_device_attr *attr)
{
	attr->rss_caps.supported_qpts = BIT(IB_QPT_RAW_PACKET);
	attr->rss_caps.max_rwq_indirection_tables = ornic_to_count(dev->odev->id.max_rss_groups);
	attr->rss_caps.max_rwq_indirection_table_size = dev->lim.rss_table;
	attr->max_wq_type_rq = dev->odev->share.raw_qp;
}

static void ornic_query_raw(const struct ornic_ib_dev *dev, struct ib_device_attr *attr)
{
	const u64 csum = ORNIC_FEATURE(TX_CSUM) | ORNIC_FEATURE(RX_CSUM);

	if (!ornic_has(dev->odev, ORNIC_FEATURE(RAW)))
		return;
	attr->max_raw_ethy_qp = dev->odev->share.raw_qp;
	if ((dev->odev->features & csum) == csum) {
		attr->device_cap_flags |= IB_DEVICE_RAW_IP_CSUM;
		attr->raw_packet_caps |= IB_RAW_PACKET_CAP_IP_CSUM;
	}
	if (ornic_has(dev->odev, ORNIC_FEATURE(RSS)))
		ornic_query_rss(dev, attr);
	if (ornic_has(dev->odev, ORNIC_FEATURE(STEER)))
		attr->device_cap_flags |= IB_DEVICE_MANAGED_FLOW_STEERING;
}

int ornic_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			  struct ib_udata *udata)
{
	struct ornic_ib_dev *dev = to_oib(ibdev);
	const struct ornic_identify_device *id = &dev->odev->id;
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;

	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = id->sys_image_guid;
	attr->vendor_id = le32_to_cpu(id->vendor_id);
	attr->vendor_part_id = le32_to_cpu(id->vendor_part);
	attr->hw_ver = le32_to_cpu(id->hw_version);
	attr->device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_CURR_QP_STATE_MOD |
				 IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_PORT_ACTIVE_EVENT |
				 ornic_device_caps(dev);
	if (ornic_has(dev->odev, ORNIC_FEATURE(XRC)))
		attr->device_cap_flags |= IB_DEVICE_XRC;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	attr->max_dm_size = dev->lim.dm_bytes;
	attr->max_pd = dev->odev->share.pd;
	attr->max_ah = id->max_ah ? ornic_to_count(id->max_ah) : INT_MAX;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = min_t(u8, id->ca_ack_delay, MAX_ACK_DELAY);
	if (ornic_has(dev->odev, ORNIC_FEATURE(MCAST))) {
		attr->kernel_cap_flags |= IBK_BLOCK_MULTICAST_LOOPBACK;
		attr->max_mcast_grp = ornic_to_count(id->max_mcast_groups);
		attr->max_mcast_qp_attach = ornic_to_count(id->max_mcast_per_group);
		attr->max_total_mcast_qp_attach = ornic_to_count(id->max_mcast_total);
	}
	ornic_query_queues(dev, attr);
	ornic_query_memory(dev, attr);
	ornic_query_raw(dev, attr);
	return udata && udata->outlen ? ornic_query_respond(dev, udata) : 0;
}

static enum ib_mtu ornic_active_mtu(const struct ornic_ib_dev *dev,
				    const struct ornic_identify_port *port)
{
	enum ib_mtu mtu = iboe_get_mtu(READ_ONCE(dev->odev->netdev->mtu));

	return clamp_t(u8, min_t(u8, mtu, port->active_mtu), IB_MTU_256, IB_MTU_4096);
}

/* Read the port's attributes from the device; the port of a dead device is down. */
static int ornic_read_port(struct ornic_ib_dev *dev, u32 port_num, struct ornic_identify_port *port)
{
	int ret;

	ret = ornic_ib_cmd_port_query(dev, port_num, port);
	if (!ret || !ornic_device_dead(dev->odev))
		return ret;
	*port = dev->odev->port;
	port->state = IB_PORT_DOWN;
	port->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	return 0;
}

/*
 * ib_core (6.1 to 7.2) may call this under RTNL and from netdev notifiers: with a lock of the
 * network stack here it would wait for itself.
 */
int ornic_ib_query_port(struct ib_device *ibdev, u32 port_num, struct ib_port_attr *attr)
{
	struct ornic_ib_dev *dev = to_oib(ibdev);
	struct ornic_identify_port port;
	int ret;

	ret = ornic_read_port(dev, port_num, &port);
	if (ret)
		return ret;

	attr->state = port.state == IB_PORT_ACTIVE ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = port.phys_state;
	attr->max_mtu = clamp_t(u8, port.max_mtu, IB_MTU_256, IB_MTU_4096);
	attr->active_mtu = ornic_active_mtu(dev, &port);
	attr->phys_mtu = ib_mtu_enum_to_int(attr->active_mtu);
	attr->gid_tbl_len = min_t(u32, le32_to_cpu(port.gid_entries), MAX_GIDS);
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = min_t(u32, le32_to_cpu(port.max_msg), ORNIC_MAX_MSG);
	attr->bad_pkey_cntr = le32_to_cpu(port.pkey_violations);
	attr->qkey_viol_cntr = le32_to_cpu(port.qkey_violations);
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->active_width = port.ib_width;
	attr->active_speed = port.ib_speed;
	return 0;
}

/* @speed is in units of 100 Mbit/s. */
int ornic_ib_query_port_speed(struct ib_device *ibdev, u32 port_num, u64 *speed)
{
	struct ornic_identify_port port;
	int ret;

	ret = ornic_read_port(to_oib(ibdev), port_num, &port);
	if (!ret)
		*speed = div_u64(le64_to_cpu(port.speed_mbps), 100);
	return ret;
}

int ornic_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

int ornic_ib_get_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *imm)
{
	struct ib_port_attr attr = {};
	int ret;

	ret = ornic_ib_query_port(ibdev, port, &attr);
	if (ret)
		return ret;
	imm->pkey_tbl_len = attr.pkey_tbl_len;
	imm->gid_tbl_len = attr.gid_tbl_len;
	imm->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	if (ornic_has(to_oib(ibdev)->odev, ORNIC_FEATURE(RAW)))
		imm->core_cap_flags |= RDMA_CORE_PORT_RAW_PACKET;
	imm->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

enum rdma_link_layer ornic_ib_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

void ornic_ib_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	const struct ornic_identify_device *id = &to_oib(ibdev)->odev->id;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%.*s", (int)sizeof(id->fw_version), id->fw_version);
}
