// SPDX-License-Identifier: GPL-2.0
/*
 * Hostile packets: frames arrive by an uplink at a device that has queue pairs of every
 * type with work in progress. Another device must not be affected.
 *
 * An input is a sequence of records: frames, work requests and receives of the host, and
 * passing time. A frame is sent unchanged, or completed when it is sent: addresses, lengths
 * and checksums, ICRC; queue pair, PSN and key by their meaning instead of by value. So a
 * mutation may change any byte and the frame still passes the first checks.
 */
#include "lib/records.h"
#include "lib/rig.h"

#include "engine/psn.h"
#include "engine/qp.h"
#include "engine/srq.h"
#include "packet/bth.h"
#include "packet/csum.h"
#include "packet/icrc.h"
#include "packet/ip.h"
#include "packet/roce.h"
#include "packet/wire.h"

#include <ornic/eq.h>
#include <endian.h>
#include <netinet/in.h>

#define FRAME_MAX	2048u
#define SETTLE_NS	5000000000ull

enum record {
	REC_FRAME,		/* flags, length, bytes */
	REC_SEND,		/* struct rec_send */
	REC_RECV,		/* queue, length */
	REC_PASS,		/* log2 of ns */
	REC_RESTART,		/* queue: RESET, and connected again */
	REC_KINDS,
};

/* Flags: completion of a frame */
#define FIX_ADDRESS	0x0001	/* from the peer to the device */
#define FIX_LENGTH	0x0002	/* IP, UDP, pad, IPv4 checksum */
#define FIX_ICRC	0x0004	/* appended */
#define FIX_QPN		0x0008	/* the destination is enum rig_kind */
#define FIX_PSN		0x0010	/* relative to the expected PSN */
#define FIX_KEY		0x0020	/* the key is enum rig_region, the address relative to it */
#define FIX_ALL		0x003f
#define FIX_OTHER	0x0040	/* to the other device */
#define FIX_GROUP	0x0080	/* to the group */
#define FIX_SPOOF	0x0100	/* from the other device */
#define FIX_ACCESS	0x0200	/* the devices are in a VLAN; a tag in the frame belongs to it */

#define VLAN		5

/**
 * struct rec_send - a work request
 * @which:	queue pair
 * @opcode:	enum ornic_wqe_opcode
 * @flags:	ORNIC_WQE_*
 * @region:	of the local data; of the remote data in the upper half
 * @len:	bytes
 * @off:	of the remote data
 */
struct rec_send {
	uint8_t which;
	uint8_t opcode;
	uint8_t flags;
	uint8_t region;
	uint8_t len[2];
	uint8_t off[2];
};

static bool spoofed;		/* a frame that claims to be from the innocent queue pair's peer */
static bool in_vlan;		/* the devices have access ports */
static bool raw_sent;		/* the host sent frames */
static uint64_t frames;

/* ---- completing frames ----------------------------------------------------------- */

/** struct layout - offsets of the headers; 0: there is no such header */
struct layout {
	uint32_t ip;
	uint32_t ip_bytes;
	uint32_t bth;
	bool v4;
};

static bool find_headers(const uint8_t *f, uint32_t len, struct layout *l)
{
	uint16_t type;

	memset(l, 0, sizeof(*l));
	if (len < ETH_BYTES + VLAN_BYTES)
		return false;
	l->ip = ETH_BYTES;
	type = be16_get(f + 12);
	if (type == ETHERTYPE_VLAN) {
		l->ip += VLAN_BYTES;
		type = be16_get(f + 16);
	}
	l->v4 = type == ETHERTYPE_IPV4;
	l->ip_bytes = l->v4 ? IPV4_BYTES : IPV6_BYTES;
	l->bth = l->ip + l->ip_bytes + UDP_BYTES;
	return (l->v4 || type == ETHERTYPE_IPV6) && len >= l->bth + BTH_BYTES;
}

static void fix_address(uint8_t *f, const struct layout *l, uint32_t flags)
{
	int to = flags & FIX_OTHER ? 1 : 0, from = flags & FIX_SPOOF ? !to : 2;
	uint8_t src[16], dst[16];

	rig_mac(to, f);
	rig_mac(from, f + 6);
	if (!l->ip)
		return;
	rig_gid(from, !l->v4, src);
	rig_gid(to, !l->v4, dst);
	if (flags & FIX_GROUP) {
		memcpy(dst, rig_group, 16);
		f[0] = 1;
	}
	if (l->v4) {
		memcpy(f + l->ip + 12, src + 12, 4);
		memcpy(f + l->ip + 16, dst + 12, 4);
	} else {
		memcpy(f + l->ip + 8, src, 16);
		memcpy(f + l->ip + 24, dst, 16);
	}
}

static void fix_bth(uint8_t *bth, uint32_t flags, int to)
{
	uint32_t which = bth[7] % RIG_QPS;
	struct qp *qp = to && which != RIG_INNOCENT ? NULL : rig_qp(to, which);
	uint32_t psn = be24_get(bth + 9);

	if (!qp)
		return;
	if (flags & FIX_QPN)
		be24_put(bth + 5, qp->wire_qpn);
	if (flags & FIX_PSN)
		be24_put(bth + 9, psn + (bth_is_answer(bth[0]) ? qp->req.una : qp->resp.epsn));
}

/* Return the offset of RETH or AtomicETH behind the BTH: address, then key */
static uint32_t remote_header(uint8_t opcode)
{
	uint32_t at = BTH_BYTES;

	if ((opcode & BTH_TRANSPORT_MASK) == BTH_TRANSPORT_XRC)
		at += 4;
	switch (bth_operation(opcode)) {
	case BTH_RC_FLUSH:
		return at + 4;
	case BTH_RC_WRITE_FIRST:
	case BTH_RC_WRITE_ONLY:
	case BTH_RC_WRITE_ONLY_IMM:
	case BTH_RC_READ_REQUEST:
	case BTH_RC_COMPARE_SWAP:
	case BTH_RC_FETCH_ADD:
	case BTH_RC_ATOMIC_WRITE:
		return at;
	default:
		return 0;
	}
}

static uint32_t key_of(int i, uint32_t region)
{
	return region < RIG_REGIONS ? rig.s[i].key[region] : rig.s[i].window;
}

static void fix_key(uint8_t *bth, uint32_t left, int to)
{
	uint32_t at = remote_header(bth[0]), region;
	uint8_t operation = bth_operation(bth[0]);

	if (at && left >= at + 12) {
		region = bth[at + 11] & 7;
		be64_put(bth + at, be64_get(bth + at) +
			 rig_region(to, region < RIG_REGIONS ? region : RIG_WINDOW));
		be32_put(bth + at + 8, key_of(to, region));
	} else if ((operation == BTH_RC_SEND_LAST_INV || operation == BTH_RC_SEND_ONLY_INV) &&
		   left >= BTH_BYTES + 4) {
		be32_put(bth + BTH_BYTES, key_of(to, bth[BTH_BYTES + 3] & 7));
	}
	if ((bth[0] & BTH_TRANSPORT_MASK) == BTH_TRANSPORT_XRC && left >= BTH_BYTES + 4 &&
	    !bth_is_answer(bth[0]) && !bth[BTH_BYTES + 3])
		be24_put(bth + BTH_BYTES + 1, rig.s[0].xsrq.qp.number);
}

/* Pad @len bytes without the ICRC. Return: the padded length */
static uint32_t fix_length(uint8_t *f, const struct layout *l, uint32_t len, uint32_t icrc)
{
	uint32_t pad = -(len - l->bth) & 3, udp;
	uint8_t *ip = f + l->ip;
	uint16_t csum;

	memset(f + len, 0, pad);
	len += pad;
	if (pad)
		f[l->bth + 1] = (f[l->bth + 1] & ~(3 << BTH_PAD_SHIFT)) | pad << BTH_PAD_SHIFT;
	udp = len + icrc - l->ip - l->ip_bytes;
	be16_put(ip + l->ip_bytes + 4, udp);
	if (!l->v4) {
		be16_put(ip + 4, udp);
		return len;
	}
	be16_put(ip + 2, udp + IPV4_BYTES);
	memset(ip + 10, 0, 2);
	csum = csum_fold(csum_add(0, ip, IPV4_BYTES, false));
	memcpy(ip + 10, &csum, 2);
	return len;
}

/* Return: bytes of the frame, which has room for somewhat more than @len. */
static uint32_t fix(uint8_t *f, uint32_t len, uint32_t flags)
{
	int to = flags & FIX_OTHER ? 1 : 0;
	uint32_t crc, icrc = flags & FIX_ICRC ? ICRC_BYTES : 0;
	struct layout l;
	bool roce = find_headers(f, len, &l);

	if (flags & FIX_ADDRESS && len >= ETH_BYTES) {
		if (!roce)
			l.ip = 0;
		fix_address(f, &l, flags);
	}
	if (flags & FIX_ACCESS && len >= ETH_BYTES + VLAN_BYTES && be16_get(f + 12) == ETHERTYPE_VLAN)
		be16_put(f + 14, (be16_get(f + 14) & 0xf000) | VLAN);
	if (!roce)
		return len;
	if (flags & (FIX_QPN | FIX_PSN))
		fix_bth(f + l.bth, flags, to);
	if (flags & FIX_KEY)
		fix_key(f + l.bth, len - l.bth, to);
	if (flags & FIX_LENGTH)
		len = fix_length(f, &l, len, icrc);
	if (icrc) {
		crc = icrc_headers(f + l.ip, l.ip_bytes);
		crc = htole32(icrc_add(crc, f + l.bth + BTH_BYTES, len - l.bth - BTH_BYTES));
		memcpy(f + len, &crc, ICRC_BYTES);
	}
	return len + icrc;
}

/* ---- running an input ------------------------------------------------------------ */

static bool is_station(const uint8_t gid[16])
{
	uint8_t own[16];

	for (int i = 0; i < 2; i++)
		for (int index = 0; index < 2; index++) {
			rig_gid(i, index, own);
			if (!memcmp(gid, own, 16))
				return true;
		}
	return false;
}

/* Return true if a device's port lets the packet out. */
static bool gets_in(const struct packet *p)
{
	return !in_vlan || (p->vlan && (p->vlan_tci & 0xfff) == VLAN);
}

/*
 * Account for RoCE packets to a device: its port counted them as received, as dropped, or as frames
 * for the rules.
 */
static uint64_t counted(int i)
{
	const uint64_t *cnt = rig.s[i].f->dev.cnt;

	return cnt[CNT_rdma_rx_packets] + cnt[CNT_bad_gid] + cnt[CNT_bad_qpn] +
	       cnt[CNT_bad_opcode] + cnt[CNT_bad_pkey] + cnt[CNT_rx_packets];
}

static void input_frame(uint8_t *f, uint32_t len)
{
	const struct uplink_stats *up = uplink_stats(rig.up);
	struct uplink_stats before = *up;
	uint64_t cnt[2] = { counted(0), counted(1) };
	static struct packet p;
	enum roce_kind kind;
	uint8_t mac[6];

	memset(&p, 0, offsetof(struct packet, inl));
	kind = len < ETH_BYTES ? ROCE_MALFORMED : roce_parse(&p, f, len);
	if (kind == ROCE_PACKET && is_station(p.sgid) &&
	    (p.dqpn == rig.s[0].q[RIG_INNOCENT].qp.number ||
	     p.dqpn == rig.s[1].q[RIG_INNOCENT].qp.number))
		spoofed = true;
	rig_input(f, len);
	frames++;
	CHECK(up->rx_frames == frames && !up->rx_drop);
	CHECK(up->bad_icrc - before.bad_icrc == (kind == ROCE_BAD_ICRC));
	CHECK(up->malformed - before.malformed == (kind == ROCE_MALFORMED));
	for (int i = 0; i < 2; i++) {
		rig_mac(i, mac);
		CHECK(kind != ROCE_PACKET || len < 6 || !gets_in(&p) || memcmp(p.dmac, mac, 6) ||
		      p.dgid[12] >> 4 == 0xe || p.dgid[0] == 0xff || counted(i) > cnt[i],
		      "a packet that nobody counted");
	}
}

/* Check that a device sends valid packets, and none with the secret. */
static void output_frame(uint8_t *frame, uint32_t len)
{
	static struct packet p;
	enum roce_kind kind;

	CHECK(!rig_has_secret(frame, len), "a frame with what nobody may read");
	if (raw_sent || len < ETH_BYTES)
		return;
	memset(&p, 0, offsetof(struct packet, inl));
	kind = roce_parse(&p, frame, len);
	CHECK(kind == ROCE_PACKET, "a frame that is no RoCE packet: %d", kind);
	CHECK(is_station(p.sgid));
}

static uint8_t wire_input[FRAME_MAX + 8];

static void set_vlan(bool on)
{
	in_vlan = on;
	for (int i = 0; i < 2; i++)
		switch_port_set_vlan(rig.s[i].f->dev.port.sw, on ? VLAN : 0);
}

static bool run_frame(struct bytes *b)
{
	const uint8_t *head = bytes_take(b, 4), *from;
	uint32_t flags, len;

	if (!head)
		return false;
	flags = bytes_le(head, 2);
	len = bytes_le(head + 2, 2) % FRAME_MAX;
	if (len > b->left)
		len = b->left;
	from = bytes_take(b, len);
	memcpy(wire_input, from, len);
	set_vlan(flags & FIX_ACCESS);
	input_frame(wire_input, fix(wire_input, len, flags));
	return true;
}

static bool has_remote(uint8_t opcode, uint32_t which)
{
	return opcode != ORNIC_WR_LOCAL_INV && opcode != ORNIC_WR_BIND_MW &&
	       opcode != ORNIC_WR_NOP &&
	       (which == RIG_INI || (opcode != ORNIC_WR_SEND && opcode != ORNIC_WR_SEND_IMM &&
				     opcode != ORNIC_WR_SEND_INV));
}

static uint8_t *put_path(uint8_t *at, uint32_t which)
{
	struct ornic_path *path = (struct ornic_path *)at;

	if (which != RIG_UD && which != RIG_GSI)
		return at;
	path->dest_qpn = htole32(RIG_PEER_QPN + which);
	path->qkey = htole32(RIG_QKEY);
	path->hop_limit = 64;
	rig_gid(2, 0, path->dgid);
	rig_mac(2, path->dmac);
	return at + sizeof(*path);
}

/* Fill the segments between control and data */
static uint8_t *put_segments(uint8_t *at, const struct rec_send *r, uint32_t which)
{
	struct ornic_wqe_remote *remote;

	if (which == RIG_RAW)
		return at + sizeof(struct ornic_wqe_eth);
	at = put_path(at, which);
	if (r->opcode == ORNIC_WR_BIND_MW) {
		rig_open(0, bytes_le(r->off, 2), bytes_le(r->len, 2));
		*(struct ornic_wqe_bind *)at = (struct ornic_wqe_bind) {
			.addr = htole64(rig_region(0, RIG_WINDOW) + bytes_le(r->off, 2)),
			.length = htole64(bytes_le(r->len, 2)),
			.lkey = htole32(rig.s[0].key[RIG_WINDOW]),
			.key = htole32(rig.s[0].window),
			.access = htole32(ORNIC_ACCESS_REMOTE_WRITE),
		};
		return at + sizeof(struct ornic_wqe_bind);
	}
	if (!has_remote(r->opcode, which))
		return at;
	remote = (struct ornic_wqe_remote *)at;
	remote->addr = htole64(0x1000 + bytes_le(r->off, 2));
	remote->rkey = htole32(0x100 + (r->region >> 4));
	remote->xrc_srqn = htole32(which == RIG_INI ? 5 : 0);
	at += sizeof(*remote);
	if (r->opcode == ORNIC_WR_COMP_SWAP || r->opcode == ORNIC_WR_FETCH_ADD) {
		((struct ornic_wqe_atomic *)at)->swap_add = htole64(r->off[0]);
		at += sizeof(struct ornic_wqe_atomic);
	} else if (r->opcode == ORNIC_WR_FLUSH) {
		((struct ornic_wqe_flush *)at)->length = htole64(bytes_le(r->len, 2));
		((struct ornic_wqe_flush *)at)->type = ORNIC_FLUSH_GLOBAL;
		at += sizeof(struct ornic_wqe_flush);
	}
	return at;
}

/* Regions that the host itself may send to others */
static enum rig_region open_region(uint8_t which)
{
	static const enum rig_region regions[] = { RIG_ALL, RIG_READ, RIG_LOCAL };

	return regions[which % 3];
}

static bool run_send(struct bytes *b)
{
	const struct rec_send *r = (const void *)bytes_take(b, sizeof(*r));
	uint32_t which, len;
	struct ornic_wqe_ctrl *ctrl;
	enum rig_region region;
	struct host_qp *qp;
	uint8_t *at;

	if (!r)
		return false;
	which = r->which % RIG_INNOCENT;
	qp = &rig.s[0].q[which].qp;
	if (which == RIG_TGT || qp->sq.prod - rig_qp(0, which)->req.head >= 1u << RIG_RINGS)
		return true;
	raw_sent |= which == RIG_RAW;
	/* Check that only a read or an atomic changed the content of a receive buffer. */
	region = open_region(r->region & 15);
	if (r->opcode == ORNIC_WR_RDMA_READ || r->opcode == ORNIC_WR_COMP_SWAP ||
	    r->opcode == ORNIC_WR_FETCH_ADD)
		region = RIG_LOCAL;
	else if (region == RIG_LOCAL)
		region = RIG_ALL;
	len = bytes_le(r->len, 2) % RIG_REGION_BYTES;
	if (r->opcode == ORNIC_WR_COMP_SWAP || r->opcode == ORNIC_WR_FETCH_ADD ||
	    r->opcode == ORNIC_WR_ATOMIC_WRITE)
		len = 8;
	ctrl = host_sq_slot(qp);
	ctrl->opcode = r->opcode;
	ctrl->flags = (r->flags & ORNIC_WQE_FLAGS & ~ORNIC_WQE_INLINE) | ORNIC_WQE_SIGNALED;
	if (r->opcode == ORNIC_WR_LOCAL_INV || r->opcode == ORNIC_WR_SEND_INV)
		ctrl->inv_key = htole32(rig.s[0].window);
	at = put_segments((uint8_t *)(ctrl + 1), r, which);
	if (r->opcode != ORNIC_WR_LOCAL_INV && r->opcode != ORNIC_WR_BIND_MW &&
	    r->opcode != ORNIC_WR_NOP && r->opcode != ORNIC_WR_FLUSH) {
		ctrl->count = htole16(1);
		*(struct ornic_sge *)at = (struct ornic_sge) {
			htole64(rig_region(0, region)), htole32(len),
			htole32(rig.s[0].key[region]),
		};
	}
	host_sq_publish(qp);
	rig_run();
	return true;
}

/* Post one more receive, if there is room. */
static bool run_recv(struct bytes *b)
{
	const uint8_t *p = bytes_take(b, 3);
	struct rig_station *s = &rig.s[0];
	const struct srq *srq;
	struct host_qp *qp;
	uint32_t which, used;

	if (!p)
		return false;
	which = p[0] % RIG_QPS;
	qp = which == RIG_RC_SRQ ? &s->srq.qp : which == RIG_TGT ? &s->xsrq.qp : &s->q[which].qp;
	if (which == RIG_INI || which == RIG_INNOCENT)
		return true;
	if (which == RIG_RC_SRQ || which == RIG_TGT) {
		srq = table_get(&s->f->dev.srqs, qp->number);
		used = qp->rq.prod - srq->wq.cons;
	} else {
		used = qp->rq.prod - rig_qp(0, which)->rq.cons;
	}
	if (used >= 1u << RIG_RINGS)
		return true;
	host_recv(qp, rig_region(0, RIG_LOCAL), bytes_le(p + 1, 2) % RIG_REGION_BYTES,
		  s->key[RIG_LOCAL]);
	rig_run();
	return true;
}

static bool run_record(struct bytes *b)
{
	const uint8_t *kind = bytes_take(b, 1), *p;

	switch (kind ? *kind % REC_KINDS : REC_KINDS) {
	case REC_FRAME:
		return run_frame(b);
	case REC_SEND:
		return run_send(b);
	case REC_RECV:
		return run_recv(b);
	case REC_PASS:
		p = bytes_take(b, 1);
		if (p) {
			rig_pass(1ull << *p % 34);
			rig_run();
		}
		return p;
	case REC_RESTART:
		p = bytes_take(b, 1);
		if (p)
			rig_reconnect(0, *p % RIG_INNOCENT);
		return p;
	default:
		return false;
	}
}

static void check_qps(void)
{
	for (uint32_t which = 0; which < RIG_QPS; which++) {
		const struct qp *qp = rig_qp(0, which);

		CHECK(qp->state <= ORNIC_QPS_ERR);
		CHECK(qp->resp.epsn <= BTH_PSN_MASK);
		CHECK(seq_diff(qp->req.una, qp->req.sent_psn) <= 0);
		CHECK(qp->resp.rd_next - qp->resp.rd_first <= QP_MAX_RD_ATOMIC);
	}
	CHECK(!rig.s[0].cq_errors);
	for (int i = 0; i < 2; i++)
		CHECK(host_reg32(&rig.s[i].host, ORNIC_REG_STATUS) == ORNIC_STS_READY,
		      "station %d: a packet made the function stop", i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data, size };

	if (rig_has_secret(data, size))
		return 0;
	rig_start();
	for (int i = 0; i < 2; i++) {
		rig_bring_up(i);
		rig_innocent(i);
	}
	rig_queues(0);
	rig_join(0, 1);
	spoofed = false;
	in_vlan = false;
	raw_sent = false;
	frames = 0;
	rig.frame_out = output_frame;
	while (run_record(&b)) {
		rig_poll(0);
		rig_poll(1);
	}
	rig_settle(SETTLE_NS);
	rig_break();
	for (int i = 0; i < 2; i++)
		rig_check_memory(i);
	check_qps();
	if (!spoofed)
		rig_check_innocent(0, 1);
	rig_stop();
	return 0;
}

/* ---- creating and mutating records ------------------------------------------------- */

static size_t record_length(const uint8_t *p, size_t left)
{
	static const uint8_t fixed[REC_KINDS] = {
		[REC_SEND] = 1 + sizeof(struct rec_send), [REC_RECV] = 4, [REC_PASS] = 2,
		[REC_RESTART] = 2,
	};
	size_t len = left ? fixed[*p % REC_KINDS] : 0;

	if (left >= 5 && *p % REC_KINDS == REC_FRAME)
		len = 5 + bytes_le(p + 3, 2) % FRAME_MAX;
	return len <= left ? len : 0;
}

/* Return an opcode that the queue pair supports */
static uint8_t some_opcode(struct dice *d, uint32_t which)
{
	static const uint8_t transports[RIG_QPS] = {
		[RIG_UC] = BTH_TRANSPORT_UC, [RIG_UD] = BTH_TRANSPORT_UD,
		[RIG_GSI] = BTH_TRANSPORT_UD, [RIG_INI] = BTH_TRANSPORT_XRC,
		[RIG_TGT] = BTH_TRANSPORT_XRC,
	};

	if (!dice_below(d, 32))
		return dice_below(d, 256);
	if (which <= RIG_RC_SRQ && !dice_below(d, 4))
		return BTH_RC_ACK;
	if (which == RIG_INI)
		return BTH_TRANSPORT_XRC | (BTH_RC_READ_RESP_FIRST + dice_below(d, 6));
	if (which == RIG_UD || which == RIG_GSI)
		return BTH_UD_SEND_ONLY + dice_below(d, 2);
	return transports[which] | dice_below(d, which == RIG_UC ? 12 : 30);
}

/* Values with a meaning at their place */
static void some_headers(struct dice *d, struct packet *p)
{
	static const uint8_t aeth[] = { 0x1f, 0x1f, 0x00, 0x20, 0x2c, 0x3f, 0x60, 0x61, 0x62,
					0x63, 0x64, 0x7f };

	p->psn = dice_below(d, 4) ? dice_below(d, 2) : dice_below(d, 24) - 8;
	p->ackreq = dice_below(d, 2);
	p->solicited = dice_below(d, 2);
	p->pkey = dice_below(d, 32) ? BTH_DEFAULT_PKEY : dice_number(d);
	p->aeth = aeth[dice_below(d, sizeof(aeth))];
	p->msn = dice_below(d, 4);
	p->va = dice_below(d, 4) ? dice_below(d, 64) * 8 : (uint64_t)(int32_t)dice_number(d);
	p->rkey = dice_below(d, 2) ? RIG_ALL : dice_below(d, 8);
	p->dmalen = dice_below(d, 8) ? dice_below(d, 3000) : dice_number(d);
	p->qkey = dice_below(d, 8) ? RIG_QKEY : BTH_GSI_QKEY;
	p->sqpn = RIG_PEER_QPN;
	p->swap_add = dice_number(d);
	p->feth = dice_below(d, 4) | dice_below(d, 3) << FETH_LEVEL_SHIFT;
	p->hop_limit = 64;
	p->udp_sport = 0xc000;
}

/* Create a frame for some queue pair; Return: its bytes without the ICRC */
static uint32_t some_frame(struct dice *d, uint8_t *at, bool v4)
{
	static uint8_t payload[512];
	static struct packet p;
	struct roce_frame f;
	struct roce_cut cut;

	memset(&p, 0, offsetof(struct packet, inl));
	some_headers(d, &p);
	rig_gid(2, !v4, p.sgid);
	rig_gid(0, !v4, p.dgid);
	p.vlan = !dice_below(d, 16);
	p.npsn = 1;
	p.dqpn = dice_below(d, RIG_QPS);
	p.opcode = some_opcode(d, p.dqpn);
	p.mtu = 4096;
	switch (bth_operation(p.opcode)) {
	case BTH_RC_READ_REQUEST:
	case BTH_RC_ACK:
	case BTH_RC_ATOMIC_ACK:
	case BTH_RC_COMPARE_SWAP:
	case BTH_RC_FETCH_ADD:
	case BTH_RC_FLUSH:
		break;
	case BTH_RC_ATOMIC_WRITE:
		p.len = 8;
		p.dmalen = 8;
		break;
	default:
		p.len = dice_below(d, 3) ? 256 : dice_below(d, 300);
	}
	if (bth_operation(p.opcode) == BTH_RC_WRITE_ONLY && dice_below(d, 4))
		p.dmalen = p.len;
	p.nseg = p.len ? 1 : 0;
	p.seg[0] = (struct seg) { payload, p.len };
	roce_cut(&cut, &p);
	roce_next(&cut, &f);
	memcpy(at, f.head, f.head_len);
	memset(at + f.head_len, 0x44, p.len);
	return f.head_len + p.len;
}

/* Create a frame of another protocol, perhaps a fragment, for the receive rules */
static uint32_t other_frame(struct dice *d, uint8_t *f, bool v4)
{
	uint32_t l4 = ETH_BYTES + (v4 ? IPV4_BYTES : IPV6_BYTES);
	uint8_t proto = dice_below(d, 4) ? IPPROTO_UDP : IPPROTO_TCP, *ip = f + ETH_BYTES;

	memset(f, 0, l4 + TCP_BYTES);
	rig_mac(0, f);
	f[0] |= !dice_below(d, 8);
	rig_mac(2, f + 6);
	be16_put(f + 12, dice_below(d, 16) ? v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6 : 0x88b5);
	if (v4) {
		ip[0] = 0x45;
		ip[8] = 64;
		ip[9] = proto;
		be16_put(ip + 6, dice_below(d, 8) ? 0x4000 : dice_number(d));
	} else {
		ip[0] = 0x60;
		ip[6] = dice_below(d, 8) ? proto : IPPROTO_FRAGMENT;
		ip[7] = 64;
	}
	be16_put(f + l4, 1000 + dice_below(d, 4));
	be16_put(f + l4 + 2, dice_below(d, 4) ? 4789 : dice_number(d));
	return l4 + TCP_BYTES + dice_below(d, 64);
}

static size_t make_frame(struct dice *d, uint8_t *p)
{
	uint32_t flags = dice_below(d, 16) ? FIX_ALL : dice_below(d, 1024);
	bool v4 = dice_below(d, 3);
	uint32_t len;

	if (dice_below(d, 12)) {
		len = some_frame(d, p + 5, v4);
	} else {
		len = other_frame(d, p + 5, v4);
		flags &= FIX_ADDRESS | FIX_LENGTH;
	}
	if (!dice_below(d, 16))
		flags |= 1 << (6 + dice_below(d, 4));
	p[0] = REC_FRAME;
	p[1] = flags;
	p[2] = flags >> 8;
	p[3] = len;
	p[4] = len >> 8;
	return 5 + len;
}

static size_t make_send(struct dice *d, uint8_t *p)
{
	static const uint8_t opcodes[] = {
		ORNIC_WR_RDMA_WRITE, ORNIC_WR_RDMA_WRITE_IMM, ORNIC_WR_SEND, ORNIC_WR_SEND_IMM,
		ORNIC_WR_RDMA_READ, ORNIC_WR_RDMA_READ, ORNIC_WR_COMP_SWAP, ORNIC_WR_FETCH_ADD,
		ORNIC_WR_LOCAL_INV, ORNIC_WR_BIND_MW, ORNIC_WR_SEND_INV, ORNIC_WR_FLUSH,
		ORNIC_WR_ATOMIC_WRITE,
	};
	struct rec_send r = {
		.which = dice_below(d, RIG_INNOCENT),
		.opcode = opcodes[dice_below(d, sizeof(opcodes))],
		.flags = dice_below(d, 32),
		.region = dice_below(d, 256),
		.len = { dice_below(d, 256), dice_below(d, 8) },
		.off = { dice_below(d, 32) * 8, 0 },
	};

	if (r.which == RIG_UD || r.which == RIG_GSI || r.which == RIG_RAW) {
		r.opcode = ORNIC_WR_SEND;
		r.len[1] = 0;
	}
	p[0] = REC_SEND;
	memcpy(p + 1, &r, sizeof(r));
	return 1 + sizeof(r);
}

static size_t make_record(struct dice *d, uint8_t *p, size_t max)
{
	(void)max;
	switch (dice_below(d, 16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		return make_send(d, p);
	case 4:
		p[0] = REC_RECV;
		p[1] = dice_below(d, RIG_QPS);
		p[2] = dice_below(d, 256);
		p[3] = dice_below(d, 4);
		return 4;
	case 5:
		p[0] = REC_PASS;
		p[1] = 10 + dice_below(d, 24);
		return 2;
	case 6:
		p[0] = dice_below(d, 4) ? REC_PASS : REC_RESTART;
		p[1] = dice_below(d, 32);
		return 2;
	default:
		return make_frame(d, p);
	}
}

/* Mutate one field of BTH, or of the header after it */
static void change_field(struct dice *d, uint8_t *bth, uint32_t left)
{
	uint32_t at;

	switch (dice_below(d, 8)) {
	case 0:
		bth[0] = (bth[0] & BTH_TRANSPORT_MASK) | dice_below(d, 32);
		break;
	case 1:
		bth[0] = some_opcode(d, bth[7] % RIG_QPS);
		break;
	case 2:
		bth[1] ^= 1 << dice_below(d, 8);
		break;
	case 3:
		bth[7] = dice_below(d, RIG_QPS);
		break;
	case 4:
		bth[8] ^= BTH_ACKREQ;
		break;
	case 5:
	case 6:
		be24_put(bth + 9, dice_below(d, 4) ? dice_below(d, 12) - 4 : dice_number(d));
		break;
	default:
		at = BTH_BYTES + 4 * dice_below(d, 8);
		if (left >= at + 4)
			be32_put(bth + at, dice_number(d));
		break;
	}
}

static size_t change_frame(struct dice *d, uint8_t *p, size_t len)
{
	uint8_t *f = p + 5;
	uint32_t n = len - 5;
	struct layout l;

	switch (find_headers(f, n, &l) ? dice_below(d, 8) : 0) {
	case 0:
		n = LLVMFuzzerMutate(f, n, FRAME_MAX - 1);
		break;
	case 1:				/* completed in another way */
		p[1] ^= 1 << dice_below(d, 8);
		p[2] ^= !dice_below(d, 16);
		break;
	case 2:				/* longer or shorter */
		n = l.bth + BTH_BYTES + dice_below(d, 600);
		if (n > len - 5)
			memset(f + len - 5, 0x55, n - (len - 5));
		break;
	default:
		change_field(d, f + l.bth, n - l.bth);
		break;
	}
	p[3] = n;
	p[4] = n >> 8;
	return 5 + n;
}

static size_t change_record(struct dice *d, uint8_t *p, size_t len, size_t max)
{
	(void)max;
	if (*p % REC_KINDS == REC_FRAME)
		return change_frame(d, p, len);
	p[1 + dice_below(d, len - 1)] = dice_below(d, 256);
	return len;
}

static const struct record_kind kind = { record_length, make_record, change_record };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	return records_mutate(&kind, data, size, max, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb,
				 uint8_t *out, size_t max, unsigned int seed)
{
	return records_cross(&kind, a, na, b, nb, out, max, seed);
}
