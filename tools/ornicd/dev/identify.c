// SPDX-License-Identifier: GPL-2.0
/*
 * Identify, features, and other commands that act on no object.
 */
#include "command.h"

#include "../engine/counters.h"
#include "../engine/link.h"
#include "../log.h"
#include "../version.h"

#include <ornic/identify.h>
#include <ornic/qp.h>
#include <ornic/regs.h>
#include <ornic/steer.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define HW_VERSION		1
#define CA_ACK_DELAY		15	/* 134 ms, because the daemon competes for processor time */
#define CLOCK_KHZ		1000000	/* nanoseconds */
#define ATOMIC_THIS_DEVICE	1

/* Codes of width and speed in verbs: 4 lanes of 25 Gbit/s */
#define WIDTH_4X		2
#define SPEED_EDR		32

uint8_t cmd_nop(struct command *c)
{
	(void)c;
	return ORNIC_ST_OK;
}

/* Return the EUI-64 of a MAC address, in network byte order. */
static __be64 guid(const uint8_t mac[6])
{
	const uint8_t b[8] = { mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5] };
	__be64 v;

	memcpy(&v, b, sizeof(v));
	return v;
}

static void identify_names(const struct function *f, struct ornic_identify_device *p)
{
	const uint8_t *mac = f->dev.port.permanent_mac;
	char serial[sizeof(p->serial) + 1];

	p->vendor_id = htole32(ORNIC_PCI_VENDOR_ID);
	p->vendor_part = htole32(ORNIC_PCI_DEVICE_ID);
	p->hw_version = htole32(HW_VERSION);
	memcpy(p->fw_version, ORNICD_VERSION, sizeof(ORNICD_VERSION));
	snprintf(serial, sizeof(serial), "%02x%02x%02x%02x%02x%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
	memcpy(p->serial, serial, strlen(serial));
	p->node_guid = guid(mac);
	p->sys_image_guid = guid(mac);
}

static void identify_objects(const struct function *f, struct ornic_identify_device *p)
{
	p->ports = 1;
	p->max_dbpages = htole32(function_dbpages(f));
	p->page_sizes = htole64(LIMIT_PAGE_SIZES);
	p->max_region = htole64(LIMIT_REGION);
	p->dm_bytes = htole64(LIMIT_DM);
	p->max_qp = htole32(LIMIT_QP);
	p->max_cq = htole32(LIMIT_CQ);
	p->max_srq = htole32(LIMIT_SRQ);
	p->max_xrcd = htole32(LIMIT_XRCD);
	p->max_eq = htole32(LIMIT_EQ);
	p->max_key = htole32(LIMIT_KEY);
	p->max_mw = htole32(LIMIT_KEY);
	p->max_pd = htole32(LIMIT_PD);
	p->max_fast_reg_pages = htole32(LIMIT_FAST_REG_PAGES);
	p->max_raw_qp = htole32(LIMIT_QP);
	p->max_rules = htole32(LIMIT_RULES);
	p->max_rss_groups = htole32(LIMIT_RSS);
	p->rss_hash_functions = 1u << ORNIC_RSS_TOEPLITZ;
	p->rss_fields = htole32(ORNIC_RSS_FIELDS);
	p->rss_max_table = htole32(ORNIC_RSS_MAX_TABLE);
	p->max_counter_sets = htole32(LIMIT_COUNTER_SETS);
	p->max_mcast_groups = htole32(MCAST_GROUPS);
	p->max_mcast_per_group = htole32(MCAST_PER_GROUP);
	p->max_mcast_total = htole32(MCAST_TOTAL);
	p->max_list_level = 2;
	p->max_list_entries = htole64(function_max_list(f));
}

static void identify_queues(struct ornic_identify_device *p)
{
	p->log_max_sq = LIMIT_LOG_SQ;
	p->log_max_rq = LIMIT_LOG_RQ;
	p->log_max_srq = LIMIT_LOG_SRQ;
	p->log_max_cq = LIMIT_LOG_CQ;
	p->log_max_eq = LIMIT_LOG_EQ;
	p->max_sq_stride = ORNIC_SQ_MAX_STRIDE;
	p->max_rq_stride = ORNIC_RQ_MAX_STRIDE;
	p->max_send_sge = htole16(LIMIT_SEND_SGE);
	p->max_recv_sge = htole16(LIMIT_RECV_SGE);
	p->max_srq_sge = htole16(LIMIT_RECV_SGE);
	p->max_sge_read = htole16(LIMIT_SGE_READ);
	p->max_inline = htole16(LIMIT_INLINE);
	p->max_rd_atomic_init = htole16(LIMIT_RD_ATOMIC);
	p->max_rd_atomic_resp = htole16(LIMIT_RD_ATOMIC);
	p->max_rd_resources = htole32(LIMIT_RD_ATOMIC * LIMIT_QP);
	p->atomic_scope = ATOMIC_THIS_DEVICE;
	p->ca_ack_delay = CA_ACK_DELAY;
	p->max_mod_count = htole16(LIMIT_MOD_COUNT);
	p->max_mod_period_us = htole16(LIMIT_MOD_PERIOD_US);
	p->rate_min_kbps = htole32(RATE_MIN_KBPS);
	p->rate_max_kbps = htole32(RATE_MAX_KBPS);
	p->rate_qp_types = htole32(RATE_QP_TYPES);
}

static void identify_device(const struct function *f, struct ornic_identify_device *p)
{
	p->features0 = htole64(FEATURES);
	p->generation = htole32(f->generation);
	identify_names(f, p);
	identify_objects(f, p);
	identify_queues(p);
	p->clock_khz = htole32(CLOCK_KHZ);
	p->clock_mask = htole64(UINT64_MAX);
	p->stat_count = htole32(STAT_COUNT);
	p->transports = htole32(2);
}

static uint8_t mtu_code(uint32_t bytes)
{
	uint8_t code = ORNIC_MTU_256;

	while (code < ORNIC_MTU_4096 && 128u << (code + 1) <= bytes)
		code++;
	return code;
}

void identify_port(const struct function *f, struct ornic_identify_port *p)
{
	const struct port *port = &f->dev.port;
	bool up = link_is_up(&f->dev);

	p->link_layer = ORNIC_LINK_ETHERNET;
	p->state = up ? ORNIC_PORT_STATE_ACTIVE : ORNIC_PORT_STATE_DOWN;
	p->phys_state = up ? ORNIC_PORT_PHYS_LINK_UP : ORNIC_PORT_PHYS_DISABLED;
	p->max_mtu = ORNIC_MTU_4096;
	p->active_mtu = mtu_code(link_mtu(&f->dev));
	p->gid_entries = htole32(DEVICE_GIDS);
	p->pkey_entries = htole32(1);
	p->speed_mbps = htole64(PORT_SPEED_MBPS);
	p->max_msg = htole32(1u << 31);
	p->ib_width = WIDTH_4X;
	p->ib_speed = SPEED_EDR;
	p->max_frame = htole16(PORT_MAX_FRAME);
	memcpy(p->permanent_mac, port->permanent_mac, sizeof(p->permanent_mac));
	memcpy(p->current_mac, port->mac, sizeof(p->current_mac));
	p->qkey_violations = htole32(f->dev.cnt[CNT_bad_qkey]);
	p->pkey_violations = htole32(f->dev.cnt[CNT_bad_pkey]);
	p->flags = htole32(port->flags);
}

static void identify_transport(uint32_t index, struct ornic_identify_transport *p)
{
	if (index) {
		p->id = ORNIC_TP_ETHERNET;
		p->qp_types = htole32(1u << ORNIC_QPT_RAW);
		return;
	}
	p->id = ORNIC_TP_ROCEV2;
	p->qp_types = htole32(1u << ORNIC_QPT_GSI | 1u << ORNIC_QPT_RC | 1u << ORNIC_QPT_XRC_INI |
			      1u << ORNIC_QPT_XRC_TGT | 1u << ORNIC_QPT_UC |
			      1u << ORNIC_QPT_UD);
	p->gid_types = htole32(1u << ORNIC_GID_ROCEV2);
	p->udp_port = htole16(4791);
}

uint8_t cmd_identify(struct command *c)
{
	const struct ornic_identify_cmd *in = c->in;
	uint32_t index = le16toh(in->index);
	uint8_t st = COMMAND_ZERO(c, in->mbz);

	if (st)
		return st;
	switch (in->page) {
	case ORNIC_ID_DEVICE:
		if (index)
			break;
		c->out_size = sizeof(struct ornic_identify_device);
		identify_device(c->f, c->out);
		return ORNIC_ST_OK;
	case ORNIC_ID_PORT:
		if (index != 1)
			break;
		c->out_size = sizeof(struct ornic_identify_port);
		identify_port(c->f, c->out);
		return ORNIC_ST_OK;
	case ORNIC_ID_TRANSPORT:
		if (index > 1)
			break;
		c->out_size = sizeof(struct ornic_identify_transport);
		identify_transport(index, c->out);
		return ORNIC_ST_OK;
	default:
		return command_reject(c, ORNIC_ST_BAD_PARAM, &in->page);
	}
	return command_reject(c, ORNIC_ST_BAD_PARAM, &in->index);
}

uint8_t cmd_set_features(struct command *c)
{
	const struct ornic_features_cmd *in = c->in;

	if (c->f->features_set || c->f->created)
		return ORNIC_ST_BAD_STATE;
	if (le64toh(in->features0) & ~FEATURES)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->features0);
	if (in->features1)
		return command_reject(c, ORNIC_ST_UNSUPPORTED, &in->features1);
	c->dev->features = le64toh(in->features0);
	c->f->features_set = true;
	return ORNIC_ST_OK;
}

/* Copy text of a guest for the log; characters that are not printable become question marks. */
static void host_text(char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len && from[i]; i++)
		*to++ = isprint((unsigned char)from[i]) ? from[i] : '?';
	*to = 0;
}

uint8_t cmd_host_info(struct command *c)
{
	const struct ornic_host_info_cmd *in = c->in;
	char os[sizeof(in->os) + 1], driver[sizeof(in->driver) + 1];

	host_text(os, in->os, sizeof(in->os));
	host_text(driver, in->driver, sizeof(in->driver));
	log_from(&c->f->vfu.log, LOG_INFO, "host is %s, driver %s", os, driver);
	return ORNIC_ST_OK;
}

uint8_t cmd_clock_read(struct command *c)
{
	struct ornic_clock_rsp *out = c->out;
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	out->clock = htole64(engine_clock());
	out->wallclock_ns = htole64(ts.tv_sec * 1000000000ull + ts.tv_nsec);
	return ORNIC_ST_OK;
}
