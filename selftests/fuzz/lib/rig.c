// SPDX-License-Identifier: GPL-2.0
/*
 * Two functions, their hosts, and a wire: see rig.h.
 */
#include "rig.h"

#include "engine/qp.h"
#include "log.h"
#include "packet/ip.h"

#include <ornic/pd.h>
#include <ornic/port.h>
#include <ornic/srq.h>
#include <ornic/steer.h>
#include <endian.h>
#include <linux/pci_regs.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define START_NS	1000000000ull
#define TURNS		100000
#define RECEIVES	8
#define READ_BYTE	0x22
#define CQ_LOG		6
#define EQ_LOG		7

#define FULL	(ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ | \
		 ORNIC_ACCESS_REMOTE_ATOMIC | ORNIC_ACCESS_FLUSH_GLOBAL)

struct rig rig;
const uint8_t rig_peer_mac[6] = { 2, 0, 0, 0, 1, 1 };
const uint8_t rig_group[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };
const uint8_t rig_secret[8] = { 0xc7, 0x53, 0xe1, 0x9a, 0x2d, 0x86, 0xf4, 0x3b };

static uint64_t now;
static uint64_t seed;
static struct dma memory[2];
/* The secret, repeated, as between the regions and in the hidden memory */
static uint8_t secrets[RIG_ARENA_BYTES];
_Static_assert(sizeof(secrets) >= RIG_HIDDEN, "enough for what is hidden");

static const uint32_t rights[RIG_REGIONS] = {
	[RIG_ALL] = FULL,
	[RIG_READ] = ORNIC_ACCESS_REMOTE_READ,
	[RIG_LOCAL] = ORNIC_ACCESS_LOCAL_WRITE,
	[RIG_WRITE] = ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE,
	[RIG_OTHER] = FULL,
	[RIG_WINDOW] = ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_MW_BIND,
};

static uint64_t rig_clock(void)
{
	return now;
}

uint32_t rig_random(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 33;
}

/* Replaces the daemon's random numbers at link time. */
ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	(void)flags;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = rig_random();
	return len;
}

/* ---- the wire ---------------------------------------------------------------- */

static int wire_open(struct uplink *u, const struct uplink_spec *spec)
{
	(void)u;
	(void)spec;
	return 0;
}

static void wire_close(struct uplink *u)
{
	(void)u;
}

static uint32_t wire_send(struct uplink *u, struct uplink_frame *f, uint32_t n)
{
	static uint8_t frame[UPLINK_FRAME_BYTES];

	(void)u;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = 0;

		CHECK(f[i].len <= sizeof(frame), "a frame of %u bytes", f[i].len);
		for (uint32_t j = 0; j < f[i].niov; j++) {
			if (f[i].iov[j].iov_len)
				memcpy(frame + at, f[i].iov[j].iov_base, f[i].iov[j].iov_len);
			at += f[i].iov[j].iov_len;
		}
		CHECK(at == f[i].len);
		if (rig.frame_out)
			rig.frame_out(frame, at);
	}
	return n;
}

/* Replaces the daemon's backends at link time: this program has this one only. */
const struct uplink_backend uplink_dgram = {
	.kind = "dgram", .open = wire_open, .close = wire_close, .send = wire_send,
};

static void wire_drain(void *arg)
{
	engine_input(arg);
}

void rig_input(uint8_t *frame, uint32_t len)
{
	uplink_input(rig.up, frame, len);
	uplink_input_done(rig.up);
	rig_run();
}

/* ---- the bus ----------------------------------------------------------------- */

static uint64_t bus_read(void *arg, uint64_t off, unsigned int len)
{
	struct rig_station *s = arg;
	uint64_t ones = len < 8 ? (1ull << 8 * len) - 1 : UINT64_MAX;

	return s->f->vfu.ops->bar_read(&s->f->vfu, ORNIC_BAR_REGS, off, len) & ones;
}

static void bus_write(void *arg, uint64_t off, unsigned int len, uint64_t val)
{
	struct rig_station *s = arg;

	s->f->vfu.ops->bar_write(&s->f->vfu, ORNIC_BAR_REGS, off, len, val);
}

static int64_t turn(void)
{
	int64_t next;

	for (int i = 0; i < 2; i++)
		function_work(rig.s[i].f);
	next = engine_turn(&rig.engine);
	for (int i = 0; i < 2; i++)
		if (function_busy(rig.s[i].f))
			next = 0;
	return next;
}

/* Report the commands that the host submitted. */
static void tell_commands(struct rig_station *s)
{
	struct host *h = &s->host;

	for (; s->told != h->posted; s->told++) {
		const struct ornic_admin_cmd *cmd =
			dma_at(&h->dma, h->asq + (s->told & ((1u << h->log_admin) - 1)) * 64);

		rig.command(cmd, cmd->in_addr ? dma_at(&h->dma, le64toh(cmd->in_addr)) :
			    cmd->inline_in);
	}
}

static void bus_turn(void *arg)
{
	if (rig.command)
		tell_commands(arg);
	turn();
}

int64_t rig_turns(uint32_t max)
{
	int64_t next = 0;

	for (uint32_t i = 0; i < max && !next; i++)
		next = turn();
	return next;
}

int64_t rig_run(void)
{
	int64_t next = rig_turns(TURNS);

	CHECK(next, "the engine never rests");
	return next;
}

void rig_pass(uint64_t ns)
{
	now += ns;
}

void rig_settle(uint64_t ns)
{
	uint64_t end = now + ns;
	int64_t next = rig_run();

	while (next > 0 && now + next <= end) {
		now += next;
		next = rig_run();
		for (int i = 0; i < 2; i++)
			rig_poll(i);
	}
}

/* ---- start and stop ---------------------------------------------------------- */

void rig_mac(int i, uint8_t mac[6])
{
	memcpy(mac, i == 2 ? rig_peer_mac : (uint8_t [6]) { 2, 0, 0, 0, 0, i + 1 }, 6);
}

void rig_gid(int i, int index, uint8_t gid[16])
{
	if (index) {
		memset(gid, 0, 16);
		gid[0] = 0xfd;
		gid[15] = i + 1;
	} else {
		ip_v4_gid(gid, (uint8_t [4]) { 10, 0, 0, i + 1 });
	}
}

static void memory_init(struct dma *d)
{
	if (!d->mem) {
		CHECK(!dma_init(d, RIG_BASE, RIG_BYTES));
		d->next = d->size;
		for (uint32_t i = 0; i < sizeof(secrets); i++)
			secrets[i] = rig_secret[i % sizeof(rig_secret)];
	}
	memset(d->mem, 0, d->next);
	memcpy(d->mem + RIG_BYTES - RIG_HIDDEN, secrets, RIG_HIDDEN);
	d->next = 0;
}

void rig_map(int i)
{
	struct rig_station *s = &rig.s[i];

	gpa_unmap_all(s->ep.gpa);
	CHECK(!gpa_map(s->ep.gpa, RIG_BASE, RIG_BYTES - RIG_HIDDEN, GPA_READ | GPA_WRITE,
		       s->host.dma.fd, 0));
}

void rig_bus_master(int i)
{
	const uint16_t command = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, d0 = 0;
	struct vfu_endpoint *ep = &rig.s[i].ep;
	uint8_t pm;

	pci_read(&ep->pci, PCI_CAPABILITY_LIST, &pm, 1);	/* the first one */
	endpoint_config_write(ep, pm + PCI_PM_CTRL, &d0, sizeof(d0));
	endpoint_config_write(ep, PCI_COMMAND, &command, sizeof(command));
}

static void station_start(int i)
{
	struct rig_station *s = &rig.s[i];
	uint8_t mac[6];
	int err;

	rig_mac(i, mac);
	s->f = function_new(&rig.engine, i ? "b" : "a", mac, 0, &err);
	CHECK(s->f);
	CHECK(!endpoint_init(&s->ep, &s->f->vfu));
	memory_init(&memory[i]);
	s->host.dma = memory[i];
	rig_map(i);
	s->ep.shared_memory = true;
	endpoint_attach(&s->ep);
	rig_bus_master(i);
	s->host.bus = (struct bus) { bus_read, bus_write, bus_turn, s };
	host_init(&s->host);
	s->mark = s->host.dma.next;
}

void rig_again(int i)
{
	struct rig_station *s = &rig.s[i];
	struct dma *d = &s->host.dma;

	host_reset(&s->host, ORNIC_REASON_USER);
	CHECK(host_reg32(&s->host, ORNIC_REG_STATUS) == 0, "a reset leaves status %x",
	      host_reg32(&s->host, ORNIC_REG_STATUS));
	memset(d->mem + s->mark, 0, d->next - s->mark);
	d->next = s->mark;
	s->told = 0;
	memset(s->q, 0, sizeof(s->q));
	memset(&s->xsrq, 0, sizeof(s->xsrq));
	rig_bring_up(i);
}

void rig_start(void)
{
	const struct uplink_spec spec = { .kind = "dgram", .name = "wire" };
	struct uplink_host host = { .drain = wire_drain, .arg = &rig.engine };

	memset(&rig, 0, sizeof(rig));
	log_setup(LOG_ERR, false);
	now = START_NS;
	seed = 1;
	CHECK(!engine_init(&rig.engine, 0));
	rig.engine.clock = rig_clock;
	rig.engine.now = now;
	rig.nfree = rig.engine.pool.nfree;
	for (int i = 0; i < 2; i++)
		station_start(i);
	host.sw = rig.engine.sw;
	host.pool = &rig.engine.pool;
	CHECK(!uplink_open(&host, &spec, &rig.up));
}

void rig_address(struct sockaddr_un *addr, const char *name)
{
	const char *folder = getenv("TMPDIR");
	int len;

	addr->sun_family = AF_UNIX;
	len = snprintf(addr->sun_path, sizeof(addr->sun_path), "%s/ornic-fuzz-%s.%d",
		       folder ? folder : "/tmp", name, getpid());
	CHECK(len < (int)sizeof(addr->sun_path), "TMPDIR is too long for a socket");
}

/*
 * Let every input fail in the way that FUZZ_BREAK in the environment names, to test that
 * findings are detected.
 */
void rig_break(void)
{
	const char *what = getenv("FUZZ_BREAK");
	struct rig_station *s = &rig.s[1];

	if (!what)
		return;
	if (!strcmp(what, "memory"))
		*(uint8_t *)dma_at(&s->host.dma, s->arena + RIG_GUARD_BYTES - 1) ^= 1;
	if (!strcmp(what, "pool"))
		packet_get(&rig.engine.pool);
	if (!strcmp(what, "innocent"))
		qp_fail(rig_qp(1, RIG_INNOCENT), 0, 1, 0);
}

void rig_stop(void)
{
	rig_run();
	CHECK(rig.engine.pool.nfree == rig.nfree, "%u of %u packets are free",
	      rig.engine.pool.nfree, rig.nfree);
	uplink_close(rig.up);
	for (int i = 0; i < 2; i++) {
		struct rig_station *s = &rig.s[i];

		endpoint_detach(&s->ep);
		CHECK(s->f->dev.lists.left == LIMIT_LIST_ENTRIES);
		endpoint_destroy(&s->ep);
		function_free(s->f);
		memory[i] = s->host.dma;
	}
	engine_fini(&rig.engine);
}

/* ---- actions of a driver ------------------------------------------------------- */

#define EXEC(h, op, number, cmd)	\
	CHECK(host_exec(h, ORNIC_OP_##op, number, &(cmd), sizeof(cmd), NULL, 0) ==	\
	      ORNIC_ST_OK, "status %u, syndrome %x", (h)->cpl.status,			\
	      le32toh((h)->cpl.syndrome))

static void set_gid(int i, int index)
{
	struct ornic_gid_entry cmd = {
		.port = 1, .type = ORNIC_GID_ROCEV2, .index = htole16(index),
		.flags = htole32(ORNIC_GID_VALID),
	};

	rig_gid(i, index, cmd.gid);
	rig_mac(i, cmd.smac);
	EXEC(&rig.s[i].host, SET_GID, 1, cmd);
}

uint64_t rig_region(int i, enum rig_region r)
{
	return rig.s[i].arena + RIG_GUARD_BYTES + r * RIG_STEP;
}

static void make_arena(struct rig_station *s, int i)
{
	struct ornic_key_create_cmd window = { .kind = ORNIC_KEY_MW2B, .pd = htole32(s->pd) };

	memset(&s->open, 0, sizeof(s->open));
	s->arena = dma_alloc(&s->host.dma, RIG_ARENA_BYTES, 4096);
	memcpy(dma_at(&s->host.dma, s->arena), secrets, RIG_ARENA_BYTES);
	memset(dma_at(&s->host.dma, rig_region(i, RIG_ALL)), 0x11, RIG_REGION_BYTES);
	memset(dma_at(&s->host.dma, rig_region(i, RIG_READ)), READ_BYTE, RIG_REGION_BYTES);
	for (int r = 0; r < RIG_REGIONS; r++)
		CHECK(!host_key_create(&s->host, r == RIG_OTHER ? s->other_pd : s->pd,
				       rig_region(i, r), RIG_REGION_BYTES, rights[r],
				       &s->key[r]));
	EXEC(&s->host, KEY_CREATE, 0, window);
	s->window = host_number(&s->host);
}

void rig_bring_up(int i)
{
	struct rig_station *s = &rig.s[i];
	struct host *h = &s->host;

	CHECK(!host_enable(h));
	CHECK(!host_bring_up(h, FEATURES, &s->eq0, &s->eq1));
	CHECK(!host_port_up(h, 9000));
	set_gid(i, 0);
	set_gid(i, 1);
	CHECK(!host_pd_create(h, &s->pd));
	CHECK(!host_pd_create(h, &s->other_pd));
	make_arena(s, i);
}

static void make_cq(struct rig_station *s, struct rig_queue *q)
{
	CHECK(!host_cq_create(&s->host, &q->cq, CQ_LOG, s->eq1.number, 0));
}

/* Create an SRQ; its ring takes the place of a receive queue's. */
static void make_srq(struct rig_station *s, struct rig_queue *q, uint32_t xrcd)
{
	struct ornic_qp_create_cmd layout;
	struct ornic_srq_create_cmd cmd;

	if (xrcd)
		make_cq(s, q);
	host_qp_template(&s->host, &q->qp, ORNIC_QPT_RC, RIG_RINGS, s->pd, 0, 0, &layout);
	cmd = (struct ornic_srq_create_cmd) {
		.type = xrcd ? ORNIC_SRQT_XRC : ORNIC_SRQT_BASIC,
		.log_entries = q->qp.rq.log, .stride = q->qp.rq.stride, .pd = htole32(s->pd),
		.xrcd = htole32(xrcd), .cq = htole32(q->cq.number), .limit = htole32(2),
		.max_sge = htole16(4), .dbpage = htole32(1), .record = htole64(q->qp.rq.rec),
		.pages = host_contiguous(q->qp.rq.ring),
	};
	EXEC(&s->host, SRQ_CREATE, 0, cmd);
	q->qp.number = host_number(&s->host);
}

static void make_qp(struct rig_station *s, uint32_t which, uint8_t type, uint32_t srq,
		    uint32_t xrcd)
{
	struct rig_queue *q = &s->q[which];
	struct ornic_qp_create_cmd cmd;

	make_cq(s, q);
	host_qp_template(&s->host, &q->qp, type, RIG_RINGS, s->pd, q->cq.number, q->cq.number,
			 &cmd);
	if (srq) {
		cmd.srq = htole32(srq);
		cmd.rq_log = ORNIC_NO_RING;
	}
	if (type == ORNIC_QPT_XRC_INI || type == ORNIC_QPT_XRC_TGT)
		cmd.rq_log = ORNIC_NO_RING;
	if (type == ORNIC_QPT_RAW)
		cmd.flags = htole32(ORNIC_QP_F_DRIVER);
	if (type == ORNIC_QPT_XRC_TGT) {
		cmd.sq_log = ORNIC_NO_RING;
		cmd.pd = 0;
		cmd.xrcd = htole32(xrcd);
	}
	EXEC(&s->host, QP_CREATE, 0, cmd);
	q->qp.number = host_number(&s->host);
}

#define QPM(x)	ORNIC_QPM_##x

/* Attributes of each state, by type of queue pair */
static void modify(struct rig_station *s, uint32_t which, uint8_t type, uint8_t next,
		   struct ornic_qp_modify_cmd cmd)
{
	static const uint32_t path = QPM(PATH) | QPM(PATH_MTU) | QPM(DEST_QPN) | QPM(RQ_PSN);
	static const uint32_t answer = QPM(MAX_DEST_RD_ATOMIC) | QPM(MIN_RNR_TIMER);
	static const uint32_t ask = QPM(TIMEOUT) | QPM(RETRY_CNT) | QPM(RNR_RETRY) |
				    QPM(MAX_RD_ATOMIC);
	bool rc = type == ORNIC_QPT_RC, ini = type == ORNIC_QPT_XRC_INI;
	bool tgt = type == ORNIC_QPT_XRC_TGT, uc = type == ORNIC_QPT_UC;
	bool raw = type == ORNIC_QPT_RAW, connected = rc || ini || tgt || uc;
	uint32_t mask = 0;

	if (next == ORNIC_QPS_INIT)
		mask = QPM(PORT) | (raw ? 0 : QPM(PKEY_INDEX)) |
		       (connected ? QPM(ACCESS) : raw ? 0 : QPM(QKEY));
	else if (next == ORNIC_QPS_RTR && connected)
		mask = path | (rc || tgt ? answer : 0);
	else if (next == ORNIC_QPS_RTS)
		mask = (raw ? 0 : QPM(SQ_PSN)) | (rc || ini ? ask : tgt ? QPM(TIMEOUT) : 0);
	cmd.mask = htole32(QPM(STATE) | mask);
	cmd.next_state = next;
	EXEC(&s->host, QP_MODIFY, s->q[which].qp.number, cmd);
}

/* Take it from RESET to RTS, with queue pair @dest of @to as its peer */
static void connect_qp(int i, uint32_t which, uint8_t type, int to, int gid, uint32_t dest)
{
	struct ornic_qp_modify_cmd cmd = {
		.port = 1, .qkey = htole32(RIG_QKEY), .rq_psn = htole32(RIG_PSN),
		.sq_psn = htole32(RIG_PSN), .dest_qpn = htole32(dest), .path_mtu = ORNIC_MTU_256,
		.access = htole32(ORNIC_ACCESS_REMOTE_WRITE | ORNIC_ACCESS_REMOTE_READ |
				  ORNIC_ACCESS_REMOTE_ATOMIC | ORNIC_ACCESS_FLUSH_GLOBAL),
		.timeout = 14, .retry_cnt = 3, .rnr_retry = 3, .min_rnr_timer = 12,
		.max_rd_atomic = 4, .max_dest_rd_atomic = 4,
		.path = { .hop_limit = 64, .sgid_index = htole16(gid) },
	};

	rig_gid(to, gid, cmd.path.dgid);
	rig_mac(to, cmd.path.dmac);
	for (uint8_t next = ORNIC_QPS_INIT; next <= ORNIC_QPS_RTS; next++)
		modify(&rig.s[i], which, type, next, cmd);
}

static const struct {
	uint8_t type;
	uint8_t gid;
} kinds[RIG_QPS] = {
	[RIG_RC] = { ORNIC_QPT_RC, 0 }, [RIG_RC_SRQ] = { ORNIC_QPT_RC, 1 },
	[RIG_UC] = { ORNIC_QPT_UC, 0 }, [RIG_UD] = { ORNIC_QPT_UD, 0 },
	[RIG_INI] = { ORNIC_QPT_XRC_INI, 0 }, [RIG_TGT] = { ORNIC_QPT_XRC_TGT, 0 },
	[RIG_RAW] = { ORNIC_QPT_RAW, 0 }, [RIG_GSI] = { ORNIC_QPT_GSI, 0 },
};

/* Set the peer of queue pair @which: behind the uplink, or in the same station */
static void connect_kind(int i, uint32_t which)
{
	uint32_t other = which == RIG_INI ? RIG_TGT : which == RIG_TGT ? RIG_INI : which;

	connect_qp(i, which, kinds[which].type, rig.loop ? i : 2, kinds[which].gid,
		   rig.loop ? rig.s[i].q[other].qp.number : RIG_PEER_QPN + which);
}

static void post_receives(int i, struct rig_queue *q)
{
	for (int n = 0; n < RECEIVES; n++)
		host_recv(&q->qp, rig_region(i, RIG_LOCAL) + 512 * n, 512,
			  rig.s[i].key[RIG_LOCAL]);
}

static uint32_t make_group(struct rig_station *s)
{
	struct ornic_rss_create_cmd cmd = {
		.function = ORNIC_RSS_TOEPLITZ, .log_size = 1, .port = 1,
		.fields = htole32(ORNIC_RSS_FIELDS), .key = { 0x6d, 0x5a, 0x56 },
	};

	for (int i = 0; i < 2; i++)
		cmd.table[i] = htole32(s->q[RIG_RAW].qp.number);
	EXEC(&s->host, RSS_CREATE, 0, cmd);
	return host_number(&s->host);
}

/*
 * Rules: frames to the network interface; spread by a hash, those to VXLAN's port; a group
 * of RoCE's
 */
static void make_rules(struct rig_station *s)
{
	static const uint8_t kinds[] = { ORNIC_RULE_UNICAST, ORNIC_RULE_MULTICAST };
	struct ornic_rule_cmd cmd = { .port = 1 };

	cmd.target = htole32(s->q[RIG_RAW].qp.number);
	for (size_t i = 0; i < sizeof(kinds); i++) {
		cmd.kind = kinds[i];
		EXEC(&s->host, RULE_CREATE, 0, cmd);
	}
	cmd.kind = ORNIC_RULE_MATCH;
	cmd.target_type = htole32(ORNIC_TARGET_RSS);
	cmd.target = htole32(make_group(s));
	cmd.flags = htole32(ORNIC_RULE_F_COPY);
	cmd.fields = htole32(ORNIC_MATCH_DST_PORT | ORNIC_MATCH_IP_FRAG);
	cmd.value.dst_port = htobe16(4789);
	cmd.mask.dst_port = htobe16(0xffff);
	cmd.mask.ip_frag = ORNIC_FRAG_ANY;
	EXEC(&s->host, RULE_CREATE, 0, cmd);
	cmd = (struct ornic_rule_cmd) { .kind = ORNIC_RULE_MEMBER, .port = 1 };
	cmd.target = htole32(s->q[RIG_UD].qp.number);
	memcpy((uint8_t *)&cmd.value + ORNIC_MEMBER_GID, rig_group, 16);
	EXEC(&s->host, RULE_CREATE, 0, cmd);
}

void rig_queues(int i)
{
	struct rig_station *s = &rig.s[i];
	struct ornic_pd_create_cmd cmd = { 0 };
	uint32_t xrcd;

	EXEC(&s->host, XRCD_CREATE, 0, cmd);
	xrcd = host_number(&s->host);
	make_srq(s, &s->srq, 0);
	make_srq(s, &s->xsrq, xrcd);
	post_receives(i, &s->srq);
	post_receives(i, &s->xsrq);
	for (uint32_t q = 0; q < RIG_INNOCENT; q++)
		make_qp(s, q, kinds[q].type, q == RIG_RC_SRQ ? s->srq.qp.number : 0, xrcd);
	for (uint32_t q = 0; q < RIG_INNOCENT; q++) {
		connect_kind(i, q);
		if (q != RIG_RC_SRQ && q != RIG_INI && q != RIG_TGT)
			post_receives(i, &s->q[q]);
	}
	make_rules(s);
}

static void wq_restart(struct host *h, struct host_wq *wq)
{
	struct ornic_rec *rec = dma_at(&h->dma, wq->rec);

	memset(rec, 0, sizeof(*rec));
	rec->notify = htole32(ORNIC_NOTIFY_ALWAYS);
	wq->prod = 0;
	wq->rung = 0;
}

void rig_reconnect(int i, uint32_t which)
{
	struct ornic_qp_modify_cmd cmd = { .mask = htole32(QPM(STATE)) };
	struct rig_station *s = &rig.s[i];
	struct host_qp *qp = &s->q[which].qp;

	EXEC(&s->host, QP_MODIFY, qp->number, cmd);
	wq_restart(&s->host, &qp->sq);
	wq_restart(&s->host, &qp->rq);
	connect_kind(i, which);
	rig_run();
}

void rig_innocent(int i)
{
	make_qp(&rig.s[i], RIG_INNOCENT, ORNIC_QPT_RC, 0, 0);
}

void rig_join(int i, int j)
{
	connect_qp(i, RIG_INNOCENT, ORNIC_QPT_RC, j, 0, rig.s[j].q[RIG_INNOCENT].qp.number);
	if (i != j)
		connect_qp(j, RIG_INNOCENT, ORNIC_QPT_RC, i, 0,
			   rig.s[i].q[RIG_INNOCENT].qp.number);
}

struct qp *rig_qp(int i, uint32_t which)
{
	return table_get(&rig.s[i].f->dev.qps, rig.s[i].q[which].qp.number);
}

/* Consume all entries, and arm so that the next one must raise an event. */
static void poll_cq(struct host_ring *cq)
{
	struct ornic_cqe cqe;

	if (!cq->h)
		return;
	while (host_next(cq, &cqe))
		;
	host_arm(cq, cq->number % 2 ? ORNIC_ARM_ANY : ORNIC_ARM_SOLICITED);
}

void rig_poll(int i)
{
	struct rig_station *s = &rig.s[i];
	struct ornic_eqe eqe;

	for (uint32_t q = 0; q < RIG_QPS; q++)
		poll_cq(&s->q[q].cq);
	poll_cq(&s->xsrq.cq);
	while (host_next(&s->eq0, &eqe))
		s->cq_errors += eqe.type == ORNIC_EV_CQ_ERR;
	while (host_next(&s->eq1, &eqe))
		for (uint32_t q = 0; q < RIG_QPS; q++)
			if (s->q[q].cq.number == le32toh(eqe.number))
				host_fired(&s->q[q].cq);
}

/* ---- invariants ------------------------------------------------------------------ */

/* A comparison without calls that the fuzzer would learn from */
bool rig_has_secret(const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i + sizeof(rig_secret) <= len; i++) {
		uint32_t n = 0;

		while (n < sizeof(rig_secret) && p[i + n] == rig_secret[n])
			n++;
		if (n == sizeof(rig_secret))
			return true;
	}
	return false;
}

/* Check that [@p, @p + @len) has its expected content. */
static void check_bytes(const uint8_t *p, const uint8_t *should, uint32_t len, const char *what)
{
	if (!memcmp(p, should, len))
		return;
	for (uint32_t i = 0; i < len; i++)
		CHECK(p[i] == should[i], "%s, byte %u: %02x", what, i, p[i]);
}

void rig_open(int i, uint32_t off, uint32_t len)
{
	struct rig_station *s = &rig.s[i];

	if (!len || off + len > RIG_REGION_BYTES)
		return;
	if (!s->open.to || off < s->open.from)
		s->open.from = off;
	if (off + len > s->open.to)
		s->open.to = off + len;
}

void rig_check_hidden(int i)
{
	check_bytes(rig.s[i].host.dma.mem + RIG_BYTES - RIG_HIDDEN, secrets, RIG_HIDDEN,
		    "not mapped");
}

void rig_check_memory(int i)
{
	struct rig_station *s = &rig.s[i];
	const uint8_t *p = dma_at(&s->host.dma, s->arena);
	uint8_t read[RIG_REGION_BYTES];

	memset(read, READ_BYTE, sizeof(read));
	for (uint32_t r = 0; r <= RIG_REGIONS; r++)
		check_bytes(p + r * RIG_STEP, secrets, RIG_GUARD_BYTES, "beside a region");
	p += RIG_GUARD_BYTES;
	check_bytes(p + RIG_OTHER * RIG_STEP, secrets, RIG_REGION_BYTES, "other domain");
	check_bytes(p + RIG_READ * RIG_STEP, read, RIG_REGION_BYTES, "read-only region");
	p += RIG_WINDOW * RIG_STEP;
	check_bytes(p, secrets, s->open.from, "before a bound window");
	check_bytes(p + s->open.to, secrets + s->open.to, RIG_REGION_BYTES - s->open.to,
		    "window that is not bound");
	rig_check_hidden(i);
}

/*
 * Check that the innocent queue pair of station @i has successful completions of these, and
 * no others.
 */
static void expect(int i, uint32_t n, const uint8_t *opcodes)
{
	struct host_ring *cq = &rig.s[i].q[RIG_INNOCENT].cq;
	struct ornic_cqe cqe;
	uint32_t seen = 0;

	for (uint32_t c = 0; c < n; c++) {
		CHECK(host_next(cq, &cqe), "station %d: an innocent queue pair is stuck", i);
		CHECK(cqe.status == ORNIC_WC_SUCCESS,
		      "station %d: innocent queue pair: opcode %u, status %u, syndrome %x", i,
		      cqe.opcode, cqe.status, le32toh(cqe.syndrome));
		for (uint32_t o = 0; o < n; o++)
			seen |= (cqe.opcode == opcodes[o]) << o;
	}
	CHECK(seen == (1u << n) - 1, "station %d: innocent queue pair: completions %x", i, seen);
}

/* Send from the innocent queue pair of station @i to that of station @j */
static void check_way(int i, int j)
{
	static const uint8_t opcodes[] = { ORNIC_WC_RDMA_WRITE, ORNIC_WC_SEND, ORNIC_WC_RECV };
	struct rig_station *a = &rig.s[i], *b = &rig.s[j];
	uint64_t from = rig_region(i, RIG_READ), to = rig_region(j, RIG_ALL) + 64;
	struct host_qp *qp = &a->q[RIG_INNOCENT].qp;
	const uint32_t len = 1500;

	rig_poll(i);
	rig_poll(j);
	memset(dma_at(&b->host.dma, to), 0x33, len);
	host_recv(&b->q[RIG_INNOCENT].qp, rig_region(j, RIG_LOCAL), 512, b->key[RIG_LOCAL]);
	host_send(qp, ORNIC_WR_RDMA_WRITE, from, len, a->key[RIG_READ], to, b->key[RIG_ALL]);
	host_send(qp, ORNIC_WR_SEND, from, 300, a->key[RIG_READ], 0, 0);
	rig_run();
	if (i == j) {
		expect(i, 3, opcodes);
	} else {
		expect(i, 2, opcodes);
		expect(j, 1, opcodes + 2);
	}
	CHECK(!memcmp(dma_at(&b->host.dma, to), dma_at(&a->host.dma, from), len));
}

void rig_check_innocent(int i, int j)
{
	check_way(i, j);
	if (i != j)
		check_way(j, i);
}
