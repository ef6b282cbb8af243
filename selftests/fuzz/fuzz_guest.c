// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile guest that knows the interface: it sends commands, work requests, records,
 * registers, doorbells, configuration space, device memory, mappings and resets. Another
 * guest on the same daemon must not be affected, and after a reset the device must work as
 * if it were new.
 *
 * An input is a sequence of records. Its commands are initially those of a driver that
 * creates its queue pairs, and are then mutated.
 */
#include "lib/records.h"
#include "lib/rig.h"

#include "engine/link.h"
#include "engine/qp.h"

#include <ornic/admin.h>
#include <ornic/dm.h>
#include <ornic/pd.h>
#include <ornic/srq.h>
#include <endian.h>
#include <linux/pci_regs.h>
#include <sys/mman.h>

#define BODY_MAX	4096u
#define SLOT_MAX	256u
#define TURNS		64
#define PATIENCE_NS	3000000000ull

enum record {
	REC_ADMIN,		/* struct rec_admin, body */
	REC_SEND,		/* queue, bytes of it, slot */
	REC_RECV,		/* the same */
	REC_POKE,		/* struct rec_poke, 64 bytes */
	REC_REG,		/* struct rec_reg */
	REC_DOORBELL,		/* struct rec_db */
	REC_PASS,		/* log2 of ns */
	REC_CONFIG,		/* struct rec_reg */
	REC_DM,			/* struct rec_reg */
	REC_MAP,		/* how, page */
	REC_RESET,		/* how */
	REC_POLL,		/* */
	REC_KINDS,
};

#define POKE_BYTES	64

/**
 * struct rec_admin - a command
 * @opcode:	enum ornic_opcode
 * @number:	object
 * @out_len:	room for output
 * @in_len:	bytes of the body, which follows
 */
struct rec_admin {
	uint8_t opcode[2];
	uint8_t number[4];
	uint8_t out_len[2];
	uint8_t in_len[2];
};

/** struct rec_poke - a store to memory: @len bytes at @off of the area */
struct rec_poke {
	uint8_t area;
	uint8_t off[2];
	uint8_t len;
};

/** struct rec_reg - an access: bits 1:0 of @how: log2 bytes, bit 2: load */
struct rec_reg {
	uint8_t how;
	uint8_t off[4];
	uint8_t val[8];
};

/** struct rec_db - a doorbell */
struct rec_db {
	uint8_t page;
	uint8_t kind;
	uint8_t number[4];
	uint8_t value[4];
};

static bool spoofed;		/* it took the other guest's address */

/* ---- running an input ------------------------------------------------------------ */

static void work(void)
{
	rig_turns(TURNS);
}

/* Consume completions of commands, with any status. */
static void drain_admin(struct host *h)
{
	struct ornic_rec *rec = dma_at(&h->dma, h->acq_rec);

	for (int i = 0; i < 1 << h->log_admin; i++) {
		if (!host_valid(h, h->acq, h->log_admin, h->done))
			break;
		h->done++;
		rec->host_index = htole32(h->done);
	}
}

static bool run_admin(struct bytes *b)
{
	const struct rec_admin *r = (const void *)bytes_take(b, sizeof(*r));
	struct host *h = &rig.s[0].host;
	struct ornic_admin_cmd cmd = { 0 };
	const uint8_t *body;
	uint32_t len;

	if (!r)
		return false;
	len = bytes_le(r->in_len, 2) % BODY_MAX;
	body = bytes_take(b, len);
	if (!body)
		return false;
	cmd.opcode = htole16(bytes_le(r->opcode, 2));
	cmd.number = htole32(bytes_le(r->number, 4));
	cmd.in_len = htole16(len);
	cmd.out_len = htole16(bytes_le(r->out_len, 2));
	if (len > ORNIC_ADMIN_INLINE) {
		memcpy(dma_at(&h->dma, h->payload), body, len);
		cmd.in_addr = htole64(h->payload);
	} else if (len) {
		memcpy(cmd.inline_in, body, len);
	}
	if (bytes_le(r->out_len, 2) > ORNIC_ADMIN_INLINE)
		cmd.out_addr = htole64(h->payload + BODY_MAX);
	host_submit(h, &cmd);
	work();
	drain_admin(h);
	return true;
}

static struct host_qp *queue_of(uint8_t which)
{
	struct rig_station *s = &rig.s[0];

	which %= RIG_QPS + 2;
	return which == RIG_QPS ? &s->srq.qp : which > RIG_QPS ? &s->xsrq.qp : &s->q[which].qp;
}

/* Copy a slot, except for the fields that name its owner and its index */
static bool run_slot(struct bytes *b, bool recv)
{
	const uint8_t *p = bytes_take(b, 2), *slot;
	struct host_qp *qp;
	struct host_wq *wq;
	uint8_t *to;

	if (!p)
		return false;
	slot = bytes_take(b, p[1]);
	if (!slot)
		return false;
	qp = queue_of(p[0]);
	wq = recv ? &qp->rq : &qp->sq;
	if (!wq->ring)
		return true;
	to = dma_at(&rig.s[0].host.dma,
		    wq->ring + ((wq->prod & ((1u << wq->log) - 1)) << wq->stride));
	memset(to, 0, 1u << wq->stride);
	memcpy(to, slot, p[1]);
	if (recv) {
		((struct ornic_rwqe *)to)->id = htole32(wq->prod++);
		if (host_publish(qp->h, wq->rec, wq->rung, wq->prod))
			host_doorbell(qp->h, 1, p[0] % (RIG_QPS + 2) < RIG_QPS ? ORNIC_DB_RQ :
				      ORNIC_DB_SRQ, qp->number, wq->prod);
		wq->rung = wq->prod;
	} else {
		((struct ornic_wqe_ctrl *)to)->qpn = htole32(qp->number);
		((struct ornic_wqe_ctrl *)to)->index = htole32(wq->prod++);
		host_sq_publish(qp);
	}
	work();
	return true;
}

enum area {
	AREA_SQ_REC, AREA_RQ_REC, AREA_CQ_REC, AREA_SQ, AREA_RQ, AREA_CQ, AREAS_OF_QP,
};

/* Return the address of a guest's structure that a device reads, 0 if there is none. */
static uint64_t area_of(uint8_t n)
{
	struct rig_station *s = &rig.s[0];
	struct host *h = &s->host;
	const uint64_t others[] = {
		h->asq_rec, h->acq_rec, h->asq, h->acq, h->payload, h->status, s->eq0.rec,
		s->eq1.rec, s->eq0.ring, s->eq1.ring, s->srq.qp.rq.rec, s->xsrq.qp.rq.rec,
		s->srq.qp.rq.ring, s->xsrq.qp.rq.ring, s->xsrq.cq.rec, s->arena,
	};
	const struct rig_queue *q = &s->q[n / AREAS_OF_QP % RIG_QPS];

	if (n >= RIG_QPS * AREAS_OF_QP)
		return others[n % (sizeof(others) / sizeof(others[0]))];
	switch ((enum area)(n % AREAS_OF_QP)) {
	case AREA_SQ_REC:
		return q->qp.sq.rec;
	case AREA_RQ_REC:
		return q->qp.rq.rec;
	case AREA_CQ_REC:
		return q->cq.rec;
	case AREA_SQ:
		return q->qp.sq.ring;
	case AREA_RQ:
		return q->qp.rq.ring;
	default:
		return q->cq.ring;
	}
}

static bool run_poke(struct bytes *b)
{
	const struct rec_poke *r = (const void *)bytes_take(b, sizeof(*r));
	const uint8_t *data = bytes_take(b, POKE_BYTES);
	uint64_t at;

	if (!r || !data)
		return false;
	at = area_of(r->area);
	if (at) {
		at += bytes_le(r->off, 2) % 8192;
		if (at + POKE_BYTES <= RIG_BASE + RIG_BYTES - RIG_HIDDEN)
			memcpy(dma_at(&rig.s[0].host.dma, at), data, r->len % (POKE_BYTES + 1));
	}
	work();
	return true;
}

/* The vfio-user server permits aligned accesses inside the region. */
static void access_bar(unsigned int bar, uint64_t size, const struct rec_reg *r)
{
	struct vfu_func *v = &rig.s[0].f->vfu;
	uint64_t off = bytes_le(r->off, 4) % size;
	uint32_t len = 1u << (r->how & 3);

	off &= ~(uint64_t)(len - 1);
	if (r->how & 4)
		v->ops->bar_read(v, bar, off, len);
	else
		v->ops->bar_write(v, bar, off, len, bytes_le(r->val, len));
	work();
}

static void access_config(const struct rec_reg *r)
{
	uint32_t off = bytes_le(r->off, 1), len = 1u << (r->how & 3);
	uint8_t buf[8];

	if (r->how & 4)
		pci_read(&rig.s[0].ep.pci, off, buf, len);
	else
		endpoint_config_write(&rig.s[0].ep, off, r->val, len);
	work();
}

static bool run_doorbell(struct bytes *b)
{
	const struct rec_db *r = (const void *)bytes_take(b, sizeof(*r));

	if (!r)
		return false;
	host_doorbell(&rig.s[0].host, r->page, r->kind & 15, bytes_le(r->number, 4),
		      bytes_le(r->value, 4));
	work();
	return true;
}

/* Map nothing, everything, everything but a page, or that page read-only */
static bool run_map(struct bytes *b)
{
	const uint8_t *p = bytes_take(b, 3);
	struct rig_station *s = &rig.s[0];
	uint64_t bytes = RIG_BYTES - RIG_HIDDEN, at;

	if (!p)
		return false;
	at = 4096 * (1 + bytes_le(p + 1, 2) % (bytes / 4096 - 2));
	rig_map(0);
	if (p[0] % 4) {
		gpa_unmap_all(s->ep.gpa);
		if (p[0] % 4 != 1) {
			gpa_map(s->ep.gpa, RIG_BASE, at, GPA_READ | GPA_WRITE, s->host.dma.fd, 0);
			gpa_map(s->ep.gpa, RIG_BASE + at + 4096, bytes - at - 4096,
				GPA_READ | GPA_WRITE, s->host.dma.fd, at + 4096);
		}
		if (p[0] % 4 == 3)
			gpa_map(s->ep.gpa, RIG_BASE + at, 4096, GPA_READ, s->host.dma.fd, at);
	}
	work();
	return true;
}

static void again(void)
{
	rig_map(0);
	rig_bus_master(0);
	rig_again(0);
}

static bool run_reset(struct bytes *b)
{
	const uint8_t *p = bytes_take(b, 1);

	if (!p)
		return false;
	switch (*p % 4) {
	case 0:
		endpoint_reset(&rig.s[0].ep, VFU_RESET_FLR);
		break;
	case 1:
		endpoint_reset(&rig.s[0].ep, VFU_RESET_DEVICE);
		break;
	case 2:
		host_disable(&rig.s[0].host, ORNIC_REASON_USER);
		break;
	default:
		again();
		break;
	}
	work();
	return true;
}

static bool run_access(struct bytes *b, enum record kind)
{
	const struct rec_reg *r = (const void *)bytes_take(b, sizeof(*r));

	if (!r)
		return false;
	if (kind == REC_REG)
		access_bar(ORNIC_BAR_REGS, FUNC_BAR_BYTES, r);
	else if (kind == REC_DM)
		access_bar(ORNIC_BAR_DM, LIMIT_DM, r);
	else
		access_config(r);
	return true;
}

/* Return true if it took an address of the other guest, which this target permits. */
static void look_at_gids(void)
{
	uint8_t gid[16];

	for (int index = 0; index < 2; index++) {
		rig_gid(1, index, gid);
		spoofed |= device_has_gid(&rig.s[0].f->dev, gid);
	}
}

static bool run_record(struct bytes *b)
{
	const uint8_t *kind = bytes_take(b, 1), *p;

	switch (kind ? *kind % REC_KINDS : REC_KINDS) {
	case REC_ADMIN:
		return run_admin(b);
	case REC_SEND:
	case REC_RECV:
		return run_slot(b, *kind % REC_KINDS == REC_RECV);
	case REC_POKE:
		return run_poke(b);
	case REC_DOORBELL:
		return run_doorbell(b);
	case REC_REG:
	case REC_CONFIG:
	case REC_DM:
		return run_access(b, *kind % REC_KINDS);
	case REC_PASS:
		p = bytes_take(b, 1);
		if (p) {
			rig_pass(1ull << *p % 34);
			work();
		}
		return p;
	case REC_MAP:
		return run_map(b);
	case REC_RESET:
		return run_reset(b);
	case REC_POLL:
		drain_admin(&rig.s[0].host);
		rig_poll(0);
		work();
		return true;
	default:
		return false;
	}
}

static void let_work(void)
{
	for (uint64_t ns = 0; ns < PATIENCE_NS; ns += PATIENCE_NS / 8) {
		rig_pass(PATIENCE_NS / 8);
		work();
	}
}

static void check_cured(void)
{
	again();
	CHECK(host_exec(&rig.s[0].host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0) == ORNIC_ST_OK);
	CHECK(host_reg32(&rig.s[0].host, ORNIC_REG_STATUS) == ORNIC_STS_READY);
}

static void keep_command(const struct ornic_admin_cmd *cmd, const void *in);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data, size };

	rig_start();
	rig.loop = true;
	rig_bring_up(1);
	rig_innocent(1);
	rig_join(1, 1);
	rig.command = keep_command;
	rig_bring_up(0);
	rig_innocent(0);
	rig_queues(0);
	rig.command = NULL;
	spoofed = false;
	while (run_record(&b))
		look_at_gids();
	let_work();
	rig_break();
	rig_check_hidden(0);
	rig_check_memory(1);
	check_cured();
	CHECK(host_reg32(&rig.s[1].host, ORNIC_REG_STATUS) == ORNIC_STS_READY);
	if (!spoofed)
		rig_check_innocent(1, 1);
	/*
	 * Clear all memory, because its device may have written anywhere and the next input
	 * starts with zeros.
	 */
	rig.s[0].host.dma.next = RIG_BYTES - RIG_HIDDEN;
	rig_stop();
	return 0;
}

/* ---- creating and mutating records ------------------------------------------------- */

#define MODELS_MAX	128
#define MODEL_BYTES	1088

/** struct model - a command that a driver sent */
struct model {
	uint16_t opcode;
	uint32_t number;
	uint16_t in_len;
	uint8_t body[MODEL_BYTES];
};

static struct model models[MODELS_MAX];
static uint32_t nmodels;
static bool models_done;

/* Keep all records of the first input; those of the others are the same. */
static void keep_command(const struct ornic_admin_cmd *cmd, const void *in)
{
	struct model *m = &models[nmodels];

	if (models_done || nmodels == MODELS_MAX || le16toh(cmd->in_len) > MODEL_BYTES)
		return;
	m->opcode = le16toh(cmd->opcode);
	m->number = le32toh(cmd->number);
	m->in_len = le16toh(cmd->in_len);
	memcpy(m->body, in, m->in_len);
	nmodels++;
}

static const uint16_t opcodes[] = {
	ORNIC_OP_NOP, ORNIC_OP_IDENTIFY, ORNIC_OP_SET_FEATURES, ORNIC_OP_HOST_INFO,
	ORNIC_OP_STAT_NAMES, ORNIC_OP_STAT_READ, ORNIC_OP_CLOCK_READ,
	ORNIC_OP_EQ_CREATE, ORNIC_OP_EQ_MODIFY, ORNIC_OP_EQ_QUERY, ORNIC_OP_EQ_DESTROY,
	ORNIC_OP_PD_CREATE, ORNIC_OP_PD_DESTROY, ORNIC_OP_XRCD_CREATE, ORNIC_OP_XRCD_DESTROY,
	ORNIC_OP_KEY_CREATE, ORNIC_OP_KEY_MODIFY, ORNIC_OP_KEY_QUERY, ORNIC_OP_KEY_DESTROY,
	ORNIC_OP_DM_CREATE, ORNIC_OP_DM_DESTROY,
	ORNIC_OP_CQ_CREATE, ORNIC_OP_CQ_MODIFY, ORNIC_OP_CQ_QUERY, ORNIC_OP_CQ_DESTROY,
	ORNIC_OP_CQ_RESIZE,
	ORNIC_OP_SRQ_CREATE, ORNIC_OP_SRQ_MODIFY, ORNIC_OP_SRQ_QUERY, ORNIC_OP_SRQ_DESTROY,
	ORNIC_OP_SRQ_RESIZE,
	ORNIC_OP_QP_CREATE, ORNIC_OP_QP_MODIFY, ORNIC_OP_QP_QUERY, ORNIC_OP_QP_DESTROY,
	ORNIC_OP_PORT_MODIFY, ORNIC_OP_PORT_QUERY, ORNIC_OP_SET_GID, ORNIC_OP_GET_GID,
	ORNIC_OP_RULE_CREATE, ORNIC_OP_RULE_DESTROY, ORNIC_OP_RSS_CREATE, ORNIC_OP_RSS_DESTROY,
	ORNIC_OP_COUNTER_CREATE, ORNIC_OP_COUNTER_DESTROY,
};

#define OPCODES	(sizeof(opcodes) / sizeof(opcodes[0]))

/* Return the number of an object, or a number close to one */
static uint32_t some_number(struct dice *d)
{
	const struct rig_station *s = &rig.s[0];

	switch (dice_below(d, 6)) {
	case 0:
		return s->q[dice_below(d, RIG_QPS)].qp.number;
	case 1:
		return s->q[dice_below(d, RIG_QPS)].cq.number;
	case 2:
		return s->key[dice_below(d, RIG_REGIONS)];
	case 3:
		return s->window;
	case 4:
		return dice_number(d);
	default:
		return dice_below(d, 12);
	}
}

static uint64_t some_address(struct dice *d)
{
	uint64_t at = area_of(dice_below(d, 256));

	if (!dice_below(d, 6))
		at = RIG_BASE + dice_below(d, RIG_BYTES);
	return dice_below(d, 8) ? at : at + dice_number(d);
}

/* Mutate one field in the structure at @p */
static void change_value(struct dice *d, uint8_t *p, uint32_t len)
{
	uint64_t addr = htole64(some_address(d));
	uint32_t number = htole32(some_number(d)), at;

	if (len < 8)
		return;
	switch (dice_below(d, 6)) {
	case 0:
		memcpy(p + dice_below(d, len / 8) * 8, &addr, 8);
		break;
	case 1:
	case 2:
		memcpy(p + dice_below(d, len / 4) * 4, &number, 4);
		break;
	case 3:
		p[dice_below(d, len)] ^= 1 << dice_below(d, 8);
		break;
	case 4:
		p[dice_below(d, len)] = dice_below(d, 34);
		break;
	default:
		at = dice_below(d, len);
		p[at] = dice_below(d, 256);
		break;
	}
}

static void change_values(struct dice *d, uint8_t *p, uint32_t len, uint32_t most)
{
	for (uint32_t n = dice_below(d, most + 1); n; n--)
		change_value(d, p, len);
}

static size_t put_admin(uint8_t *p, uint16_t opcode, uint32_t number, uint16_t out_len,
			uint16_t in_len)
{
	struct rec_admin r = {
		.opcode = { opcode, opcode >> 8 },
		.number = { number, number >> 8, number >> 16, number >> 24 },
		.out_len = { out_len, out_len >> 8 },
		.in_len = { in_len, in_len >> 8 },
	};

	p[0] = REC_ADMIN;
	memcpy(p + 1, &r, sizeof(r));
	return 1 + sizeof(r);
}

/* Keep a field as the driver had it, or mutate one that it did not need */
static size_t make_admin(struct dice *d, uint8_t *p)
{
	static const uint16_t lengths[] = { 0, 4, 8, 16, 24, 32, 32, 64, 96, 104, 128, 256 };
	static const uint16_t rooms[] = { 0, 32, 64, 256, 384, 1024, 4096 };
	uint16_t room = rooms[dice_below(d, sizeof(rooms) / sizeof(rooms[0]))], len;
	const struct model *m;
	size_t at;

	if (nmodels && dice_below(d, 2)) {
		m = &models[dice_below(d, nmodels)];
		at = put_admin(p, m->opcode, m->number, dice_below(d, 4) ? 0 : room, m->in_len);
		memcpy(p + at, m->body, m->in_len);
		change_values(d, p + at, m->in_len, 3);
		return at + m->in_len;
	}
	len = lengths[dice_below(d, sizeof(lengths) / sizeof(lengths[0]))];
	at = put_admin(p, dice_below(d, 32) ? opcodes[dice_below(d, OPCODES)] : dice_number(d),
		       dice_below(d, 4) ? some_number(d) : 0, room, len);
	memset(p + at, 0, len);
	change_values(d, p + at, len < 32 ? len : 32, 5);
	return at + len;
}

static uint8_t *put_sge(struct dice *d, uint8_t *p)
{
	uint32_t r = dice_below(d, RIG_REGIONS);
	struct ornic_sge sge = {
		.addr = htole64(rig_region(0, r) + (dice_below(d, 4) ? 0 : dice_number(d))),
		.length = htole32(dice_below(d, 8) ? dice_below(d, 9000) : dice_number(d)),
		.lkey = htole32(dice_below(d, 8) ? rig.s[0].key[r] : some_number(d)),
	};

	memcpy(p, &sge, sizeof(sge));
	return p + sizeof(sge);
}

static uint8_t *put_remote(struct dice *d, uint8_t *p)
{
	uint32_t r = dice_below(d, 3) ? RIG_ALL : dice_below(d, RIG_REGIONS);
	struct ornic_wqe_remote remote = {
		.addr = htole64(rig_region(0, r) + 8 * dice_below(d, 64)),
		.rkey = htole32(dice_below(d, 8) ? rig.s[0].key[r] : rig.s[0].window),
		.xrc_srqn = htole32(dice_below(d, 2) ? rig.s[0].xsrq.qp.number : 0),
	};

	memcpy(p, &remote, sizeof(remote));
	return p + sizeof(remote);
}

static uint8_t *put_path(struct dice *d, uint8_t *p)
{
	struct ornic_path path = {
		.hop_limit = 64, .dest_qpn = htole32(some_number(d)), .qkey = htole32(RIG_QKEY),
	};

	rig_gid(dice_below(d, 3), 0, path.dgid);
	rig_mac(dice_below(d, 3), path.dmac);
	if (!dice_below(d, 4))
		memcpy(path.dgid, rig_group, 16);
	memcpy(p, &path, sizeof(path));
	return p + sizeof(path);
}

static uint8_t *put_operation(struct dice *d, uint8_t *p, uint8_t opcode)
{
	const struct rig_station *s = &rig.s[0];

	if (opcode == ORNIC_WR_FAST_REG) {
		*(struct ornic_wqe_fast_reg *)p = (struct ornic_wqe_fast_reg) {
			.iova = htole64(some_address(d)), .length = htole64(dice_number(d)),
			.list = htole64(some_address(d)), .npages = htole32(dice_below(d, 64)),
			.key = htole32(some_number(d)), .access = htole32(dice_below(d, 16)),
			.page_shift = 12,
		};
		return p + sizeof(struct ornic_wqe_fast_reg);
	}
	if (opcode == ORNIC_WR_BIND_MW) {
		*(struct ornic_wqe_bind *)p = (struct ornic_wqe_bind) {
			.addr = htole64(rig_region(0, RIG_WINDOW)),
			.length = htole64(dice_below(d, RIG_REGION_BYTES + 2)),
			.lkey = htole32(s->key[dice_below(d, RIG_REGIONS)]),
			.key = htole32(dice_below(d, 4) ? s->window : some_number(d)),
			.access = htole32(dice_below(d, 64)),
		};
		return p + sizeof(struct ornic_wqe_bind);
	}
	p = put_remote(d, p);
	if (opcode == ORNIC_WR_COMP_SWAP || opcode == ORNIC_WR_FETCH_ADD ||
	    opcode == ORNIC_WR_FLUSH) {
		memset(p, 0, 16);
		p[8] = 1;
		p += 16;
	}
	return p;
}

static size_t make_send(struct dice *d, uint8_t *p)
{
	static const uint8_t ops[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 15, ORNIC_WR_FAST_REG,
				       ORNIC_WR_NOP };
	static uint8_t slot[SLOT_MAX] __attribute__((aligned(64)));
	struct ornic_wqe_ctrl *ctrl = (struct ornic_wqe_ctrl *)slot;
	uint8_t which = dice_below(d, RIG_INNOCENT), *at = (uint8_t *)(ctrl + 1);
	uint16_t count = dice_below(d, 4) ? 1 : dice_below(d, 5);

	memset(slot, 0, sizeof(slot));
	ctrl->opcode = ops[dice_below(d, sizeof(ops))];
	ctrl->flags = dice_below(d, 4) ? ORNIC_WQE_SIGNALED : dice_below(d, 32);
	ctrl->inv_key = htole32(some_number(d));
	if (which == RIG_UD || which == RIG_GSI)
		at = put_path(d, at);
	else if (which == RIG_RAW)
		at += sizeof(struct ornic_wqe_eth);
	else if (which == RIG_INI || (ctrl->opcode != ORNIC_WR_SEND &&
				      ctrl->opcode != ORNIC_WR_SEND_IMM &&
				      ctrl->opcode != ORNIC_WR_SEND_INV))
		at = put_operation(d, at, ctrl->opcode);
	if (which == RIG_UD || which == RIG_GSI || which == RIG_RAW)
		ctrl->opcode = dice_below(d, 8) ? ORNIC_WR_SEND : ctrl->opcode;
	for (uint16_t i = 0; i < count; i++)
		at = put_sge(d, at);
	ctrl->count = htole16(ctrl->flags & ORNIC_WQE_INLINE ? dice_below(d, 200) : count);
	change_values(d, slot, at - slot, 2);
	p[0] = REC_SEND;
	p[1] = which;
	p[2] = at - slot;
	memcpy(p + 3, slot, at - slot);
	return 3 + (at - slot);
}

static size_t make_recv(struct dice *d, uint8_t *p)
{
	uint16_t count = dice_below(d, 5);
	struct ornic_rwqe r = { .count = htole16(count) };
	uint8_t *at = p + 3 + sizeof(r);

	p[0] = REC_RECV;
	p[1] = dice_below(d, RIG_QPS + 2);
	memcpy(p + 3, &r, sizeof(r));
	for (uint16_t i = 0; i < count; i++)
		at = put_sge(d, at);
	change_values(d, p + 3, at - p - 3, 1);
	p[2] = at - p - 3;
	return at - p;
}

static size_t make_poke(struct dice *d, uint8_t *p)
{
	struct rec_poke r = { .area = dice_below(d, 256), .len = 4 };
	uint32_t value = htole32(dice_number(d));

	p[0] = REC_POKE;
	if (!dice_below(d, 3)) {
		r.off[0] = dice_below(d, 16) * 4;
		r.len = dice_below(d, POKE_BYTES);
	}
	memcpy(p + 1, &r, sizeof(r));
	memset(p + 1 + sizeof(r), 0, POKE_BYTES);
	memcpy(p + 1 + sizeof(r), &value, 4);
	return 1 + sizeof(r) + POKE_BYTES;
}

static size_t make_reg(struct dice *d, uint8_t *p)
{
	static const uint8_t kinds[] = { REC_REG, REC_CONFIG, REC_DM };
	struct rec_reg r = { .how = dice_below(d, 8), .off = { dice_below(d, 256) } };
	uint64_t val = htole64(dice_below(d, 2) ? dice_number(d) : some_address(d));

	p[0] = kinds[dice_below(d, 3)];
	if (!dice_below(d, 4)) {
		r.off[1] = dice_below(d, 256);
		r.off[2] = dice_below(d, 256);
	}
	if (p[0] == REC_CONFIG && dice_below(d, 2))
		r.off[0] = PCI_COMMAND;
	memcpy(r.val, &val, sizeof(val));
	memcpy(p + 1, &r, sizeof(r));
	return 1 + sizeof(r);
}

static size_t make_doorbell(struct dice *d, uint8_t *p)
{
	uint32_t number = some_number(d), value = dice_number(d);
	struct rec_db r = { .page = dice_below(d, 3), .kind = dice_below(d, 8) };

	p[0] = REC_DOORBELL;
	memcpy(r.number, &number, 4);
	memcpy(r.value, &value, 4);
	memcpy(p + 1, &r, sizeof(r));
	return 1 + sizeof(r);
}

static size_t make_short(struct dice *d, uint8_t *p)
{
	static const uint8_t kinds[] = { REC_PASS, REC_PASS, REC_POLL, REC_POLL, REC_MAP,
					 REC_RESET };

	p[0] = kinds[dice_below(d, sizeof(kinds))];
	p[1] = p[0] == REC_PASS ? 10 + dice_below(d, 24) : dice_below(d, 4);
	p[2] = dice_below(d, 256);
	p[3] = dice_below(d, 2);
	return p[0] == REC_POLL ? 1 : p[0] == REC_MAP ? 4 : 2;
}

static size_t make_record(struct dice *d, uint8_t *p, size_t max)
{
	(void)max;
	models_done = true;
	switch (dice_below(d, 16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		return make_send(d, p);
	case 4:
	case 5:
		return make_recv(d, p);
	case 6:
		return make_poke(d, p);
	case 7:
		return make_reg(d, p);
	case 8:
		return make_doorbell(d, p);
	case 9:
		return make_short(d, p);
	default:
		return make_admin(d, p);
	}
}

/* Bytes of the record before a body whose length it contains */
static size_t head_length(uint8_t kind)
{
	switch (kind % REC_KINDS) {
	case REC_ADMIN:
		return 1 + sizeof(struct rec_admin);
	case REC_SEND:
	case REC_RECV:
		return 3;
	case REC_POKE:
		return 1 + sizeof(struct rec_poke) + POKE_BYTES;
	case REC_REG:
	case REC_CONFIG:
	case REC_DM:
		return 1 + sizeof(struct rec_reg);
	case REC_DOORBELL:
		return 1 + sizeof(struct rec_db);
	case REC_MAP:
		return 4;
	case REC_POLL:
		return 1;
	default:
		return 2;
	}
}

static size_t record_length(const uint8_t *p, size_t left)
{
	size_t len = left ? head_length(*p) : 0;

	if (!len || len > left)
		return 0;
	if (*p % REC_KINDS == REC_ADMIN)
		len += bytes_le(((const struct rec_admin *)(p + 1))->in_len, 2) % BODY_MAX;
	else if (*p % REC_KINDS == REC_SEND || *p % REC_KINDS == REC_RECV)
		len += p[2];
	return len <= left ? len : 0;
}

static size_t change_record(struct dice *d, uint8_t *p, size_t len, size_t max)
{
	size_t head = head_length(*p);

	(void)max;
	if (len == 1)
		return len;
	if (len > head && dice_below(d, 4)) {
		change_values(d, p + head, len - head, 3);
	} else if (*p % REC_KINDS == REC_ADMIN) {
		/* any byte but its length */
		change_value(d, p + 1, 8);
	} else {
		p[1] = dice_below(d, 256);
		if (head == len)
			change_value(d, p + 1, len - 1);
	}
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
