// SPDX-License-Identifier: GPL-2.0
/*
 * A device's port on the switch.
 *
 * Sending: source address and VLAN come from the GID table, never from a process (ORN-PORT-1).
 * Receiving: RoCE packets of the function go to the queue pair of their destination GID and QPN
 * (ORN-PORT-2) or to the members of their group (mcast.c), other frames to the receive rules
 * (steer.c).
 */
#include "link.h"

#include "engine.h"
#include "qp.h"
#include "steer.h"
#include "uc.h"
#include "ud.h"
#include "../log.h"
#include "../net/vlan.h"
#include "../packet/bth.h"
#include "../packet/ecn.h"
#include "../packet/frames.h"
#include "../packet/ip.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

const struct ornic_gid_entry *device_gid(const struct device *dev, uint32_t index)
{
	if (index >= DEVICE_GIDS || !(le32toh(dev->port.gid[index].flags) & ORNIC_GID_VALID))
		return NULL;
	return &dev->port.gid[index];
}

bool device_has_gid(const struct device *dev, const uint8_t gid[16])
{
	for (uint32_t i = 0; i < DEVICE_GIDS; i++) {
		const struct ornic_gid_entry *g = device_gid(dev, i);

		if (g && !memcmp(g->gid, gid, sizeof(g->gid)))
			return true;
	}
	return false;
}

static bool is_connected(const struct port *port)
{
	return port->admin_up && !port->unplugged;
}

bool link_is_up(const struct device *dev)
{
	return dev->running && is_connected(&dev->port);
}

static void tell(struct device *dev, bool up)
{
	device_event(dev, up ? ORNIC_EV_PORT_ACTIVE : ORNIC_EV_PORT_ERR, 1, 0, 0, up, 0);
}

void link_notify(struct device *dev, bool was_up)
{
	if (was_up != link_is_up(dev))
		tell(dev, !was_up);
}

/* While the function may not do DMA, the event is held, and the host learns of the change later. */
void link_set_carrier(struct device *dev, bool on)
{
	bool before = is_connected(&dev->port);

	dev->port.unplugged = !on;
	if (before == is_connected(&dev->port))
		return;
	link_update(dev);
	dev->host->port_changed(dev->arg);
	tell(dev, !before);
}

/*
 * Most bytes of RoCE headers in a frame: IPv6, UDP, BTH, the longest extension headers and ICRC.
 * iboe_get_mtu() of Linux (6.12, 7.2) subtracts the same sum from an interface's MTU. With a larger
 * sum, link_send() would drop packets of a path MTU that Linux allows.
 */
#define ROCE_HEADERS	96
/* The same sum without extension headers, as in all packets of a message except the first. */
#define ROCE_NEXT_HEADERS	64

/* Time between two log lines about frames of a device with a wrong source, ns */
#define SPOOF_LOG_NS	(60 * 1000000000ull)

_Static_assert(PACKET_MAX_PAYLOAD / 256 * ROCE_HEADERS + PACKET_MAX_PAYLOAD < RATE_MAX_BYTES,
	       "a packet can be charged");

uint32_t link_mtu(const struct device *dev)
{
	uint32_t room = dev->port.max_frame > ROCE_HEADERS ? dev->port.max_frame - ROCE_HEADERS : 0;
	uint32_t mtu = 128u << ORNIC_MTU_4096;

	while (mtu > room && mtu > 128u << ORNIC_MTU_256)
		mtu >>= 1;
	return mtu;
}

const struct ornic_gid_entry *link_gid(const struct qp *qp, const struct ornic_path *path)
{
	const struct ornic_gid_entry *gid = device_gid(qp->dev, le16toh(path->sgid_index));

	if (!gid || (gid->owner && le32toh(gid->owner) != qp->owner) ||
	    ip_is_v4(gid->gid) != ip_is_v4(path->dgid))
		return NULL;
	return gid;
}

struct packet *link_packet(struct qp *qp, const struct ornic_path *path, uint32_t *syndrome)
{
	const struct ornic_gid_entry *gid = link_gid(qp, path);
	uint32_t label = le32toh(path->flow_label);
	struct packet *p;

	*syndrome = gid ? 0 : ORNIC_SYN_PATH;
	if (!gid)
		return NULL;
	p = packet_get(&qp->dev->engine->pool);
	if (!p)
		return NULL;
	p->kind = PACKET_ROCE;
	memcpy(p->dmac, path->dmac, sizeof(p->dmac));
	memcpy(p->smac, gid->smac, sizeof(p->smac));
	p->vlan = le32toh(gid->flags) & ORNIC_GID_VLAN;
	p->vlan_tci = le16toh(gid->vlan) | (path->sl & 7) << 13;
	switch_find(qp->dev->port.sw, p);
	memcpy(p->sgid, gid->gid, sizeof(p->sgid));
	memcpy(p->dgid, path->dgid, sizeof(p->dgid));
	p->flow_label = label;
	/*
	 * Without a UDP source port, derive one from the flow label to spread flows over paths. Use
	 * the rule of rdma_flow_label_to_udp_sport() of Linux (6.12, 7.2), which all RoCEv2 drivers
	 * share, so that a flow has the same port as with other adapters.
	 */
	label &= 0xfffff;
	p->udp_sport = path->udp_sport ? le16toh(path->udp_sport) :
		       ORNIC_UDP_SPORT_MIN | ((label ^ label >> 14) & 0x3fff);
	p->tclass = path->traffic_class;
	if (qp->dev->engine->cc.on && qp_connected(qp))
		p->tclass = (p->tclass & ~ECN_MASK) | ECN_ECT0;
	p->hop_limit = path->hop_limit;
	p->static_rate = path->static_rate;
	p->pkey = BTH_DEFAULT_PKEY;
	p->sqpn = qp->wire_qpn;
	p->npsn = 1;
	return p;
}

/* Drop @p; captures show it as if it had reached the switch, with the reason @why. */
static void link_drop(struct device *dev, struct packet *p, const char *why)
{
	device_count(dev, CNT_tx_drop, 1);
	switch_observe(dev->port.sw, SWITCH_IN, p, NULL);
	switch_observe(dev->port.sw, SWITCH_IN, p, why);
	packet_put(&dev->engine->pool, p);
}

static void link_put(struct device *dev, struct packet *p)
{
	if (!link_is_up(dev))
		link_drop(dev, p, "dropped: link down");
	else if (gpa_lost(dev->gpa))
		link_drop(dev, p, "dropped: memory lost");
	else if (!memcmp(p->dmac, dev->port.mac, sizeof(p->dmac)))
		switch_loopback(dev->port.sw, p);
	else
		switch_send(dev->port.sw, p);
}

void link_send(struct qp *qp, struct packet *p)
{
	struct device *dev = qp->dev;
	uint32_t longest = p->npsn > 1 ? p->mtu : p->len;

	/* The frame size may have shrunk under the path MTU (ORN-PORT-16). */
	if (longest + ROCE_HEADERS > dev->port.max_frame) {
		link_drop(dev, p, "dropped: too long");
		return;
	}
	p->echo = p->dmac[0] & 1 && mcast_is_group(p->dgid);
	qp_count(qp, CNT_rdma_tx_multicast, p->echo);
	qp_count(qp, CNT_rdma_tx_packets, p->npsn);
	qp_count(qp, CNT_rdma_tx_bytes, p->len);
	/* Only packets to remote peers are paced, and the peer may have moved. */
	if (qp->rate.remote != p->remote && qp_connected(qp))
		rate_remote(&qp->rate, p->remote, p->remote ? cc_max_kbps(&dev->engine->cc) : 0,
			    dev->engine->now);
	/*
	 * Headers count for the rate too (ORN-QP-41); IPv4 headers count as IPv6 headers. ACKs and
	 * CNPs do not wait for the rate: if they were charged, requests could wait forever.
	 */
	if ((p->static_rate || qp->rate.limit || qp->rate.net_cost) &&
	    !(qp_reliable(qp) &&
	      (bth_operation(p->opcode) == BTH_RC_ACK || p->opcode == BTH_CNP))) {
		uint32_t charged = p->len + ROCE_HEADERS + (p->npsn - 1) * ROCE_NEXT_HEADERS;

		rate_charge(&qp->rate, p->static_rate, charged, dev->engine->now);
		if (qp->cc.limiting)
			cc_sent(qp, charged);
	}
	link_put(dev, p);
}

/* Drop a frame whose source the operator does not allow. Count all of them, but log few. */
static void link_drop_spoofed(struct device *dev, struct packet *p, const char *why)
{
	struct port *port = &dev->port;

	device_count(dev, CNT_tx_drop_spoof, 1);
	link_drop(dev, p, why);
	if (dev->engine->now < port->spoof_quiet)
		return;
	port->spoof_quiet = dev->engine->now + SPOOF_LOG_NS;
	log_from(dev->log, LOG_WARN,
		 "anti-spoof: frame %s (tx_drop_spoof: %" PRIu64 "; reported once a minute)",
		 why, dev->cnt[CNT_tx_drop_spoof]);
}

void link_send_frame(struct qp *qp, struct packet *p)
{
	struct device *dev = qp->dev;
	const struct port *port = &dev->port;
	const char *why = NULL;

	/* ORN-ETH-1, ORN-ETH-16 */
	if (port->flags & ORNIC_PORT_F_ANTI_SPOOF)
		why = antispoof_frame(&port->source, port->mac, p->seg[0].ptr, p->seg[0].len,
				      p->len);
	if (why) {
		link_drop_spoofed(dev, p, why);
		return;
	}
	p->sender = qp;
	/*
	 * Match a multicast frame against the function's own rules too (ORN-PORT-4). The network
	 * interface does not receive its own frames.
	 */
	p->echo = p->dmac[0] & 1 &&
		  (port->match || port->leftover || !(qp->flags & ORNIC_QP_F_DRIVER));
	device_count(dev, CNT_tx_packets, 1);
	device_count(dev, CNT_tx_bytes, p->len);
	if (qp->rate.limit)
		rate_charge(&qp->rate, 0, p->len, dev->engine->now);
	device_count(dev, p->dmac[0] & 1 ? CNT_tx_multicast : CNT_tx_unicast, 1);
	link_put(dev, p);
}

static bool gid_matches(const struct device *dev, uint32_t index, const struct packet *p)
{
	const struct ornic_gid_entry *g = device_gid(dev, index);

	if (!g || g->type != ORNIC_GID_ROCEV2 || memcmp(g->gid, p->dgid, sizeof(p->dgid)))
		return false;
	return gid_vlan(g) == vlan_id(p);
}

/* Return true if the destination GID is in the table. Try the last match first. */
static bool gid_is_ours(struct device *dev, const struct packet *p)
{
	if (gid_matches(dev, dev->port.gid_hit, p))
		return true;
	for (uint32_t i = 0; i < DEVICE_GIDS; i++) {
		if (gid_matches(dev, i, p)) {
			dev->port.gid_hit = i;
			return true;
		}
	}
	return false;
}

/*
 * Return true if the addresses of @p are those of the connection (ORN-PORT-7, ORN-PORT-20). Without
 * the second test, a sender in one VLAN could reach connections of another VLAN. gid_is_ours() has
 * compared @p with the entry @gid_hit, usually that of the connection.
 */
static bool is_from_peer(const struct qp *qp, const struct packet *p)
{
	uint32_t index = le16toh(qp->path.sgid_index);

	return !memcmp(qp->path.dgid, p->sgid, sizeof(p->sgid)) &&
	       (index == qp->dev->port.gid_hit || gid_matches(qp->dev, index, p));
}

/* Find the queue pair of a RoCE packet of the function, or count the reason and return NULL. */
static struct qp *roce_qp(struct device *dev, const struct packet *p)
{
	struct qp *qp;

	qp = p->dqpn == BTH_GSI_QPN ? dev->port.gsi : table_get(&dev->qps, p->dqpn);
	if (!qp || qp->type == ORNIC_QPT_RAW || qp->wire_qpn != p->dqpn) {
		device_count(dev, CNT_bad_qpn, 1);
		return NULL;
	}
	if ((p->opcode & BTH_TRANSPORT_MASK) != qp_transport(qp) && p->opcode != BTH_CNP) {
		device_count(dev, CNT_bad_opcode, 1);
		return NULL;
	}
	if (!bth_pkey_matches(p->pkey)) {
		device_count(dev, CNT_bad_pkey, 1);
		return NULL;
	}
	if (qp_connected(qp) && !is_from_peer(qp, p)) {
		device_count(dev, CNT_bad_gid, 1);
		return NULL;
	}
	return qp;
}

static void roce_receive(struct device *dev, const struct packet *p)
{
	struct qp *qp;

	if (mcast_is_group(p->dgid)) {
		mcast_receive(dev, p);
		return;
	}
	qp = roce_qp(dev, p);
	if (!qp)
		return;
	qp_count(qp, CNT_rdma_rx_packets, p->npsn);
	qp_count(qp, CNT_rdma_rx_bytes, p->len);
	if (p->opcode == BTH_CNP) {
		cnp_receive(qp);
		return;
	}
	if ((p->tclass & ECN_MASK) == ECN_CE)
		cnp_notify(qp, p);
	if (qp->type == ORNIC_QPT_UC) {
		uc_receive(qp, p);
	} else if (!qp_reliable(qp)) {
		ud_receive(qp, p);
	} else if (bth_is_answer(p->opcode)) {
		/* An XRC target sends no requests, so no answer is for it. */
		if (qp->type == ORNIC_QPT_XRC_TGT)
			qp_count(qp, CNT_bad_opcode, 1);
		else
			requester_receive(qp, p);
	} else if (qp->type == ORNIC_QPT_XRC_INI) {
		qp_count(qp, CNT_bad_opcode, 1);
	} else {
		responder_receive(qp, p);
	}
}

static void ethernet_receive(struct device *dev, const struct packet *p)
{
	device_count(dev, CNT_rx_packets, 1);
	device_count(dev, CNT_rx_bytes, p->len);
	device_count(dev, p->dmac[0] & 1 ? CNT_rx_multicast : CNT_rx_unicast, 1);
	steer_receive(dev, p);
}

/* Return true if a RoCE packet is for an address of the function, or a group with members here. */
static bool roce_is_ours(struct device *dev, const struct packet *p)
{
	if (mcast_is_group(p->dgid))
		return mcast_has_members(&dev->mcast, p->dgid);
	return gid_is_ours(dev, p);
}

/*
 * Receive a RoCE packet that is not of this function. If it came from an uplink, its frame is for
 * the rules (ORN-STEER-1): the host may have addresses that are no GIDs, for example those of
 * Soft-RoCE. A packet of this daemon is discarded (ORN-PORT-19), also if a rate-limited link or a
 * fault rule made a frame of it. To a group without members here it is no error.
 */
static void foreign_receive(struct device *dev, const struct packet *p)
{
	struct packet frame;

	if (p->outside) {
		frames_ethernet(&frame, p);
		ethernet_receive(dev, &frame);
	} else if (!mcast_is_group(p->dgid)) {
		device_count(dev, CNT_bad_gid, 1);
	}
}

static void link_deliver(void *arg, const struct packet *p)
{
	struct device *dev = arg;

	if (!link_is_up(dev))
		return;
	if (p->kind == PACKET_ETHERNET)
		ethernet_receive(dev, p);
	else if (!roce_is_ours(dev, p))
		foreign_receive(dev, p);
	else if (p->kind == PACKET_BAD_ICRC)
		device_count(dev, CNT_icrc_errors, 1);
	else
		roce_receive(dev, p);
}

static const struct switch_port_ops link_ops = {
	.deliver = link_deliver,
};

int link_attach(struct device *dev, uint16_t vlan)
{
	int ret;

	dev->port.sw = switch_port_add(dev->engine->sw, dev->name, &link_ops, dev);
	if (!dev->port.sw)
		return -ENOMEM;
	/* before the address, which must be free in this VLAN only */
	ret = switch_port_set_vlan(dev->port.sw, vlan);
	if (!ret)
		ret = link_update(dev);
	if (ret)
		link_detach(dev);
	return ret;
}

void link_detach(struct device *dev)
{
	switch_port_del(dev->port.sw);
	dev->port.sw = NULL;
}

int link_update(struct device *dev)
{
	const struct port *port = &dev->port;
	int ret = switch_port_set_mac(port->sw, port->mac);
	bool foreign;

	if (ret)
		return ret;
	switch_port_set_up(port->sw, link_is_up(dev));
	/* Frames to other MAC addresses need a right and a rule (ORN-STEER-5, ORN-STEER-23). */
	foreign = port->flags & ORNIC_PORT_F_PROMISC &&
		  (port->promisc || steer_wants_foreign(port));
	switch_port_set_promisc(port->sw, foreign);
	return 0;
}
