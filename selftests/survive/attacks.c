// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks of a guest on the daemon: see attacks.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attacks.h"

#include "vfu/proto.h"

#include <ornic/mr.h>
#include <ornic/pd.h>
#include <endian.h>
#include <linux/pci_regs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ATTACKER_MEM	(64u << 20)
#define BURST		(256u << 10)
#define QPS		2000u
#define LIST_ENTRIES	(1u << 20)
#define LOG_QP		2
#define MULTI		((VFU_MAX_PAYLOAD - sizeof(uint64_t)) / sizeof(struct vfu_write_one))
#define MULTIS		10u	/* messages of MULTI stores */
#define INPUT		256u	/* bytes for the input of a command */
#define MESSAGE		64u	/* bytes of a WRITE or SEND */
#define INTERRUPTS	32u
#define LOADS		64u	/* that are always on their way */

/**
 * struct attacker - a hostile guest
 * @t:		all stations
 * @number:	of its own
 * @s:		its own
 * @path:	socket
 * @burst:	messages that are sent with one call
 * @len:	bytes of @burst
 * @turn:	counter for those that change something
 * @dead:	peers of the queue pairs do not exist
 * @list:	DMA address of a page list whose last entry is misaligned
 * @inputs:	DMA address of inputs of commands
 * @qp:		queue pairs
 * @index:	of a queue pair in @qp, by its number
 * @cq:		their completion queue
 */
struct attacker {
	struct stations *t;
	int number;
	struct station *s;
	char path[64];
	uint8_t burst[BURST + MULTIS * VFU_MAX_MSG];
	size_t len;
	uint32_t turn;
	bool dead;
	uint64_t list;
	uint64_t inputs;
	struct host_qp qp[QPS];
	uint16_t index[1 << 16];
	struct host_ring cq;
};

/* Append a message without reply to the burst. */
static void burst_add(struct attacker *a, uint16_t cmd, const void *fixed, size_t len,
		      const void *tail, size_t tail_len)
{
	struct vfu_hdr hdr = {
		.cmd = cmd, .size = sizeof(hdr) + len + tail_len, .flags = VFU_F_NO_REPLY,
	};

	assert_true(a->len + hdr.size <= sizeof(a->burst));
	memcpy(a->burst + a->len, &hdr, sizeof(hdr));
	memcpy(a->burst + a->len + sizeof(hdr), fixed, len);
	if (tail_len)
		memcpy(a->burst + a->len + sizeof(hdr) + len, tail, tail_len);
	a->len += hdr.size;
}

static void burst_store(struct attacker *a, uint32_t region, uint64_t off, uint64_t val,
			uint32_t len)
{
	struct vfu_region_access to = { off, region, len };

	burst_add(a, VFU_REGION_WRITE, &to, sizeof(to), &val, len);
}

static void burst_control(struct attacker *a, enum ornic_reg reg, uint32_t val)
{
	burst_store(a, ORNIC_BAR_REGS, reg, val, sizeof(val));
}

static uint64_t doorbell_at(struct attacker *a)
{
	return host_reg32(&a->s->d.host, ORNIC_REG_DB_OFFSET) + (1ull << ORNIC_DB_MIN_STRIDE_LOG);
}

static void burst_doorbell(struct attacker *a, uint64_t at, uint32_t number)
{
	burst_store(a, ORNIC_BAR_REGS, at,
		    number | (uint64_t)ORNIC_DB_SQ << ORNIC_DB_KIND_SHIFT, sizeof(uint64_t));
}

static void burst_send(struct attacker *a)
{
	size_t at = 0;

	while (at < a->len) {
		ssize_t n = send(a->s->d.vfu.fd, a->burst + at, a->len - at, MSG_NOSIGNAL);

		assert_true(n > 0);
		at += n;
	}
}

static void prepare_reset(struct attacker *a)
{
	for (int i = 0; i < 1000; i++)
		burst_control(a, ORNIC_REG_CONTROL, ORNIC_CTL_RESET);
}

/* A device whose tables once had many objects */
static void prepare_reset_large(struct attacker *a)
{
	struct ornic_pd_create_cmd pd = { 0 };

	for (uint32_t i = 0; i < 4000; i++)
		host_exec(&a->s->d.host, ORNIC_OP_PD_CREATE, 0, &pd, sizeof(pd), NULL, 0);
	prepare_reset(a);
}

/* The same resets, as many as a message can have */
static void prepare_multi(struct attacker *a)
{
	uint64_t n = MULTI;
	struct vfu_write_one *w = test_calloc(MULTI, sizeof(*w));
	uint32_t reset = ORNIC_CTL_RESET;

	for (uint32_t i = 0; i < MULTI; i++) {
		w[i].to = (struct vfu_region_access) {
			ORNIC_REG_CONTROL, ORNIC_BAR_REGS, sizeof(reset),
		};
		memcpy(w[i].data, &reset, sizeof(reset));
	}
	for (uint32_t i = 0; i < MULTIS; i++)
		burst_add(a, VFU_REGION_WRITE_MULTI, &n, sizeof(n), w, MULTI * sizeof(*w));
	test_free(w);
}

#define ENABLES	300u

static void prepare_enable(struct attacker *a)
{
	host_reset(&a->s->d.host, ORNIC_REASON_USER);
	host_prepare(&a->s->d.host, 0);
}

/* Enable and disable. Each enable increments the nonce in memory. */
static void act_enable(struct attacker *a)
{
	a->len = 0;
	for (uint32_t i = 0; i < ENABLES; i++) {
		burst_control(a, ORNIC_REG_NONCE, a->turn++);
		burst_control(a, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
		burst_control(a, ORNIC_REG_CONTROL, 0);
	}
	burst_send(a);
}

static void prepare_bus_master(struct attacker *a)
{
	for (int i = 0; i < 1000; i++)
		burst_store(a, VFU_REGION_CONFIG, PCI_COMMAND,
			    PCI_COMMAND_MEMORY | (i % 2 ? PCI_COMMAND_MASTER : 0), 2);
}

static void prepare_doorbells(struct attacker *a)
{
	uint64_t at = doorbell_at(a);

	for (int i = 0; i < 1000; i++)
		burst_doorbell(a, at, a->s->qp.number);
}

static void prepare_bad_doorbells(struct attacker *a)
{
	uint64_t at = doorbell_at(a);

	for (int i = 0; i < 1000; i++)
		burst_doorbell(a, at, 0x123456);
}

/* Submit a command with @len bytes of input. Several are in the ring, so wait if it is full. */
static void submit(struct attacker *a, uint16_t opcode, uint32_t number, const void *in,
		   uint16_t len)
{
	struct host *h = &a->s->d.host;
	uint64_t input = a->inputs + h->posted % (1u << h->log_admin) * INPUT;
	struct ornic_admin_cmd cmd = {
		.opcode = htole16(opcode), .number = htole32(number), .in_len = htole16(len),
		.in_addr = htole64(len ? input : 0),
	};

	if (h->posted - h->done == 1u << h->log_admin)
		assert_in_range(host_complete(h), 0, 255);
	assert_in_range(len, 0, INPUT);
	memcpy(dma_at(&h->dma, input), in, len);
	host_submit(h, &cmd);
}

/* Wait until all commands are complete. */
static void complete(struct attacker *a)
{
	struct host *h = &a->s->d.host;

	while (h->done != h->posted)
		assert_int_equal(host_complete(h), ORNIC_ST_OK);
}

/* Move a queue pair from RESET to RTS, @peer as for host_rc_connect(). */
static void connect_qp(struct attacker *a, struct host_qp *qp, const struct host_peer *peer)
{
	struct ornic_qp_modify_cmd cmd[3];

	host_rc_commands(cmd, peer);
	for (int i = 0; i < 3; i++)
		submit(a, ORNIC_OP_QP_MODIFY, qp->number, &cmd[i], sizeof(cmd[i]));
}

static struct host_peer peer_of(struct attacker *a, uint32_t qpn, uint8_t timeout)
{
	struct host_peer peer = {
		.qpn = qpn, .ip = station_ip(a->number), .mtu = ORNIC_MTU_1024, .timeout = timeout,
		.rnr_timer = 1,
	};

	station_mac(a->number, peer.mac);
	if (a->dead)
		peer.mac[4] = 0x99;
	return peer;
}

/* Create the queue pairs in memory that is smaller than whole pages, and connect each with itself. */
static void make_qps(struct attacker *a, uint8_t timeout)
{
	struct host *h = &a->s->d.host;

	assert_int_equal(host_cq_create(h, &a->cq, 13, a->s->eq1.number, 0), 0);
	for (uint32_t i = 0; i < QPS; i++) {
		struct host_qp *qp = &a->qp[i];
		uint64_t next = h->dma.next;
		struct ornic_qp_create_cmd cmd;

		host_qp_template(h, qp, ORNIC_QPT_RC, LOG_QP, a->s->pd, a->cq.number, a->cq.number,
				 &cmd);
		h->dma.next = next;
		qp->sq.ring = dma_alloc(&h->dma, 256 << LOG_QP, 256);
		qp->rq.ring = dma_alloc(&h->dma, 256 << LOG_QP, 256);
		qp->sq.rec = host_record(h);
		qp->rq.rec = host_record(h);
		cmd.sq_record = htole64(qp->sq.rec);
		cmd.rq_record = htole64(qp->rq.rec);
		cmd.sq_pages = host_contiguous(qp->sq.ring);
		cmd.rq_pages = host_contiguous(qp->rq.ring);
		submit(a, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd));
		if (i % 32 != 31 && i != QPS - 1)
			continue;
		for (uint32_t k = i / 32 * 32; k <= i; k++) {
			assert_int_equal(host_complete(h), ORNIC_ST_OK);
			a->qp[k].number = host_number(h);
			a->index[a->qp[k].number & 0xffff] = k;
		}
	}
	for (uint32_t i = 0; i < QPS; i++) {
		struct host_peer peer = peer_of(a, a->qp[i].number, timeout);

		connect_qp(a, &a->qp[i], &peer);
	}
	complete(a);
}

static void post(struct attacker *a, struct host_qp *qp, uint8_t opcode)
{
	host_send(qp, opcode, a->s->buf, MESSAGE, a->s->key, a->s->buf + MESSAGE, a->s->key);
}

static struct host_qp *qp_of(struct attacker *a, uint32_t number)
{
	struct host_qp *qp = &a->qp[a->index[number & 0xffff]];

	assert_int_equal(qp->number, number);
	return qp;
}

static void prepare_many_doorbells(struct attacker *a)
{
	uint64_t at;

	make_qps(a, 0);
	at = doorbell_at(a);
	for (uint32_t i = 0; i < QPS; i++)
		burst_doorbell(a, at, a->qp[i].number);
}

static void prepare_busy(struct attacker *a)
{
	make_qps(a, 0);
	for (uint32_t i = 0; i < QPS; i++)
		post(a, &a->qp[i], ORNIC_WR_RDMA_WRITE);
}

/* One WRITE of each queue pair is always in flight. */
static void act_busy(struct attacker *a)
{
	struct ornic_cqe cqe;

	if (!host_next(&a->cq, &cqe)) {
		usleep(20);
		return;
	}
	assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
	post(a, qp_of(a, le32toh(cqe.qpn)), ORNIC_WR_RDMA_WRITE);
}

/* SENDs that find no receive, and are sent again every 10 us for ever */
static void prepare_rnr(struct attacker *a)
{
	make_qps(a, 0);
	for (uint32_t i = 0; i < QPS; i++)
		post(a, &a->qp[i], ORNIC_WR_SEND);
}

/* WRITEs to nobody, sent again every 131 us until they fail */
static void prepare_dead(struct attacker *a)
{
	a->dead = true;
	make_qps(a, 5);
	for (uint32_t i = 0; i < QPS; i++)
		post(a, &a->qp[i], ORNIC_WR_RDMA_WRITE);
}

static void act_dead(struct attacker *a)
{
	struct ornic_qp_modify_cmd reset = {
		.mask = htole32(ORNIC_QPM_STATE), .next_state = ORNIC_QPS_RESET,
	};
	struct ornic_rec *rec;
	struct host_peer peer;
	struct ornic_cqe cqe;
	struct host_qp *qp;

	if (!host_next(&a->cq, &cqe)) {
		usleep(20);
		return;
	}
	assert_int_not_equal(cqe.status, ORNIC_WC_SUCCESS);
	qp = qp_of(a, le32toh(cqe.qpn));
	submit(a, ORNIC_OP_QP_MODIFY, qp->number, &reset, sizeof(reset));
	complete(a);
	rec = dma_at(&qp->h->dma, qp->sq.rec);
	rec->host_index = 0;
	rec->notify = htole32(ORNIC_NOTIFY_ALWAYS);
	qp->sq.prod = 0;
	qp->sq.rung = 0;
	peer = peer_of(a, qp->number, 5);
	connect_qp(a, qp, &peer);
	post(a, qp, ORNIC_WR_RDMA_WRITE);
}

/* Admin commands, always many in the ring */
static void act_nop(struct attacker *a)
{
	submit(a, ORNIC_OP_NOP, 0, NULL, 0);
}

static void act_query(struct attacker *a)
{
	submit(a, ORNIC_OP_QP_QUERY, a->s->qp.number, NULL, 0);
}

static void prepare_list(struct attacker *a)
{
	struct host *h = &a->s->d.host;
	uint64_t *entry;

	a->list = dma_alloc(&h->dma, LIST_ENTRIES * sizeof(uint64_t), 4096);
	entry = dma_at(&h->dma, a->list);
	entry[LIST_ENTRIES - 1] = htole64(8);
}

static struct ornic_key_create_cmd list_cmd(struct attacker *a, uint64_t entries)
{
	return (struct ornic_key_create_cmd) {
		.pd = htole32(a->s->pd), .length = htole64(entries << 12),
		.pages = { .addr = htole64(a->list), .page_shift = 12, .level = 1 },
	};
}

/* Large page lists that are rejected at their end: each entry is read, and the memory is freed. */
static void act_bad_list(struct attacker *a)
{
	struct ornic_key_create_cmd cmd = list_cmd(a, LIST_ENTRIES);

	submit(a, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd));
}

static void act_list(struct attacker *a)
{
	struct ornic_key_create_cmd cmd = list_cmd(a, LIST_ENTRIES - 1);
	struct host *h = &a->s->d.host;

	assert_int_equal(host_exec(h, ORNIC_OP_KEY_CREATE, 0, &cmd, sizeof(cmd), NULL, 0), 0);
	assert_int_equal(host_exec(h, ORNIC_OP_KEY_DESTROY, host_number(h), NULL, 0, NULL, 0), 0);
}

static void prepare_send_nops(struct attacker *a)
{
	station_connect(a->t, a->number, a->number);
}

/* NOPs in the send queue, always many */
static void act_send_nop(struct attacker *a)
{
	struct host_qp *qp = &a->s->qp;
	struct ornic_wqe_ctrl *ctrl;
	struct ornic_cqe cqe;

	if (qp->sq.prod - a->turn == 1u << STATION_RING) {
		if (!host_next(&a->s->cq, &cqe)) {
			usleep(20);
			return;
		}
		assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
		a->turn++;
	}
	ctrl = host_sq_slot(qp);
	ctrl->opcode = ORNIC_WR_NOP;
	ctrl->flags = ORNIC_WQE_SIGNALED;
	host_sq_publish(qp);
}

/* The largest loads, which the device answers with ones; some are always on their way */
static void act_loads(struct attacker *a)
{
	struct vfu_region_access from = { 0, ORNIC_BAR_REGS, VFU_MAX_XFER };
	struct vfu_hdr hdr = { .cmd = VFU_REGION_READ, .size = sizeof(hdr) + sizeof(from) };
	size_t left = hdr.size + VFU_MAX_XFER;
	static uint8_t drop[VFU_MAX_XFER];
	int fd = a->s->d.vfu.fd;

	for (; a->turn < LOADS; a->turn++) {
		assert_int_equal(send(fd, &hdr, sizeof(hdr), MSG_NOSIGNAL | MSG_MORE), sizeof(hdr));
		assert_int_equal(send(fd, &from, sizeof(from), MSG_NOSIGNAL), sizeof(from));
	}
	while (left) {
		ssize_t n = recv(fd, drop, left < sizeof(drop) ? left : sizeof(drop), 0);

		assert_true(n > 0);
		left -= n;
	}
	a->turn--;
}

/* Interrupts that the client raises itself, many per message */
static void prepare_interrupts(struct attacker *a)
{
	struct vfu_set_irqs all = {
		.argsz = sizeof(all), .flags = VFU_SET_F_NONE | VFU_SET_F_TRIGGER,
		.index = VFU_IRQ_MSIX, .count = INTERRUPTS,
	};
	int event[INTERRUPTS];

	for (uint32_t i = 0; i < INTERRUPTS; i++) {
		event[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		assert_true(event[i] >= 0);
		assert_int_equal(vfu_client_msix(&a->s->d.vfu, i, 1, &event[i]), 0);
	}
	for (int i = 0; i < 1000; i++)
		burst_add(a, VFU_SET_IRQS, &all, sizeof(all), NULL, 0);
}

static void act_map(struct attacker *a)
{
	struct vfu_client *c = &a->s->d.vfu;

	assert_int_equal(vfu_client_dma_map(c, a->s->d.host.dma.fd, 0, 1ull << 40, 1 << 20, true),
			 0);
	assert_int_equal(vfu_client_dma_unmap(c, 1ull << 40, 1 << 20), 0);
}

/* Leave, and come again as soon as the daemon lets us. */
static void act_connect(struct attacker *a)
{
	struct vfu_client *c = &a->s->d.vfu;

	vfu_client_close(c);
	while (vfu_client_open(c, a->path))
		;
	vfu_client_dma_map(c, a->s->d.host.dma.fd, 0, DEVICE_DMA_BASE, ATTACKER_MEM, true);
}

const struct attack attacks[] = {
	{ "RESET", prepare_reset, burst_send },
	{ "RESET of a device that had 4000 objects", prepare_reset_large, burst_send },
	{ "RESET, 2731 stores per message", prepare_multi, burst_send },
	{ "enable and disable", prepare_enable, act_enable },
	{ "Bus Master Enable on and off", prepare_bus_master, burst_send },
	{ "doorbells", prepare_doorbells, burst_send },
	{ "rejected doorbells", prepare_bad_doorbells, burst_send },
	{ "doorbells of 2000 idle queue pairs", prepare_many_doorbells, burst_send },
	{ "2000 busy queue pairs", prepare_busy, act_busy },
	{ "2000 queue pairs that retry for want of receives", prepare_rnr, act_busy },
	{ "2000 queue pairs that retry to a dead peer", prepare_dead, act_dead },
	{ "NOPs in a send queue", prepare_send_nops, act_send_nop },
	{ "NOP commands", NULL, act_nop },
	{ "query commands", NULL, act_query },
	{ "page lists of 1 Mi entries, rejected", prepare_list, act_bad_list },
	{ "page lists of 1 Mi entries, created and destroyed", prepare_list, act_list },
	{ "loads of 64 KiB", NULL, act_loads },
	{ "interrupts", prepare_interrupts, burst_send },
	{ "memory mapped and unmapped", NULL, act_map },
	{ "connections", NULL, act_connect },
};

const size_t nattacks = sizeof(attacks) / sizeof(attacks[0]);

/* Connect the attacker. The daemon first has to end the connection of the previous one. */
static void attacker_open(struct attacker *a)
{
	for (int i = 0; device_open(&a->s->d, a->path, ATTACKER_MEM); i++) {
		assert_in_range(i, 0, 1000);
		usleep(10000);
	}
	a->s->d.host.timeout_ms = 30000;
	station_bring_up(a->s, a->number);
	a->inputs = dma_alloc(&a->s->d.host.dma, INPUT << a->s->d.host.log_admin, 4096);
}

pid_t attack_start(struct stations *t, int number, const struct attack *what)
{
	struct attacker *a;
	int begun[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(begun), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid) {
		close(begun[1]);
		assert_int_equal(read(begun[0], &c, 1), 1);
		close(begun[0]);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(begun[0]);
	a = test_calloc(1, sizeof(*a));
	a->t = t;
	a->number = number;
	a->s = &t->s[number];
	snprintf(a->path, sizeof(a->path), "%s/%d", t->dir, number);
	attacker_open(a);
	if (what->prepare)
		what->prepare(a);
	what->act(a);
	assert_int_equal(write(begun[1], "x", 1), 1);
	for (;;)
		what->act(a);
}
