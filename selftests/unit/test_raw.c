// SPDX-License-Identifier: GPL-2.0
/*
 * engine/raw.c: frames from one function to another, through the real engine, ring
 * to ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <endian.h>
#include <ornic/admin.h>
#include "lib/nic.h"
#include "dev/limits.h"
#include "engine/link.h"
#include "engine/raw.h"
#include "net/egress.h"
#include "packet/bth.h"
#include "packet/csum.h"
#include "packet/frames.h"
#include "packet/ip.h"
#include "packet/wire.h"

#define MAX_FRAME	1518
#define JUMBO_FRAME	9018
#define BUF		2048
#define WRITE		ORNIC_ACCESS_LOCAL_WRITE
#define DRIVER		(ORNIC_QP_F_PRIVILEGED | ORNIC_QP_F_DRIVER)

/* A function with a network interface, as its driver sees it. */
struct host {
	struct nic n;
	struct nic_cq *cq;
	struct nic_qp *qp;
	uint32_t lkey;
	uint64_t tx;
	uint64_t rx;
};

struct fixture {
	struct engine e;
	struct host a;
	struct host b;
};

static const uint8_t mac_a[6] = { 2, 0, 0, 0, 0, 0xa };
static const uint8_t mac_b[6] = { 2, 0, 0, 0, 0, 0xb };

static void host_init(struct host *h, struct engine *e, const uint8_t mac[6])
{
	struct nic_eq *eq;

	nic_init(&h->n, e, mac);
	eq = nic_eq_new(&h->n, 6, 0);
	h->cq = nic_cq_new(&h->n, 7, eq, 0);
	h->qp = nic_qp_new(&h->n, ORNIC_QPT_RAW, DRIVER, h->cq, h->cq);
	h->lkey = nic_phys_all(&h->n, WRITE);
	h->tx = guest_alloc(&h->n.guest, 64 * BUF, GUEST_PAGE);
	h->rx = guest_alloc(&h->n.guest, 64 * BUF, GUEST_PAGE);
	h->n.dev.port.unicast = &h->qp->qp;
	h->n.dev.port.multicast = &h->qp->qp;
	assert_int_equal(link_update(&h->n.dev), 0);
	nic_qp_rts(h->qp);
}

/* A frame on its way has the addresses of its first bytes, and no empty piece. */
static void check_frame(void *arg, const struct switch_port *port, enum switch_way way,
			const struct packet *p, const char *note)
{
	uint8_t head[12];

	(void)arg;
	(void)port;
	(void)way;
	(void)note;
	seg_copy_out(head, p->seg, p->nseg, 0, sizeof(head));
	assert_memory_equal(p->dmac, head, 6);
	assert_memory_equal(p->smac, head + 6, 6);
	for (uint32_t i = 0; i < p->nseg; i++)
		assert_int_not_equal(p->seg[i].len, 0);
}

static int setup(void **state)
{
	static const struct switch_observer observer = { check_frame, NULL };
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(engine_init(&f->e, 0), 0);
	host_init(&f->a, &f->e, mac_a);
	host_init(&f->b, &f->e, mac_b);
	switch_set_observer(f->e.sw, &observer);
	/* Packets are used again, so that their pieces and memory have any contents. */
	for (uint32_t i = 0; i < f->e.pool.nfree; i++)
		memset(f->e.pool.all[i].seg, 0xa5,
		       sizeof(struct packet) - offsetof(struct packet, seg));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	nic_fini(&f->a.n);
	nic_fini(&f->b.n);
	assert_int_equal(f->e.timers.cap, 0);
	engine_fini(&f->e);
	free(f);
	return 0;
}

/* Fill a's memory with a frame of @len bytes from a to b. */
static uint8_t *frame(struct fixture *f, uint32_t len)
{
	uint8_t *p = guest_at(&f->a.n.guest, f->a.tx, len < 60 ? 60 : len);

	for (uint32_t i = 0; i < len; i++)
		p[i] = i * 5 + len;
	memcpy(p, mac_b, 6);
	memcpy(p + 6, mac_a, 6);
	p[12] = 0x88;
	p[13] = 0xb5;
	return p;
}

struct raw_wqe {
	struct ornic_wqe_ctrl c;
	struct ornic_wqe_eth eth;
	uint8_t rest[];
};

/* Send the frame in memory, the first @hdr bytes inline, cut into @nsge pieces. */
static struct raw_wqe *post(struct fixture *f, uint32_t len, uint32_t hdr, uint32_t nsge)
{
	struct raw_wqe *w = (void *)nic_sqe(&f->a.n, f->a.qp, ORNIC_WR_SEND, ORNIC_WQE_SIGNALED);
	struct ornic_sge *sge = (void *)(w->rest + ((hdr + 15) & ~15u));
	uint32_t at = hdr;

	memcpy(w->rest, guest_at(&f->a.n.guest, f->a.tx, hdr ? hdr : 1), hdr);
	w->c.count = htole16(nsge);
	w->eth.inline_hdr = htole16(hdr);
	for (uint32_t i = 0; i < nsge; i++) {
		uint32_t part = i + 1 == nsge ? len - at : (len - at) / 3;

		sge[i].addr = htole64(f->a.tx + at);
		sge[i].length = htole32(part);
		sge[i].lkey = htole32(f->a.lkey);
		at += part;
	}
	return w;
}

static void run(struct fixture *f)
{
	nic_ring(&f->a.n, f->a.qp);
	nic_turns(&f->e);
}

/* Get the next completion of @h; check its kind. */
static struct ornic_cqe *expect(struct host *h, uint8_t opcode, uint8_t status)
{
	struct ornic_cqe *c = nic_next(&h->n, &h->cq->host);

	assert_non_null(c);
	nic_consumed(&h->n, &h->cq->host);
	assert_int_equal(c->opcode, opcode);
	assert_int_equal(c->status, status);
	assert_int_equal(le32toh(c->qpn), h->qp->qp.handle);
	return c;
}

static void expect_nothing(struct host *h)
{
	assert_null(nic_next(&h->n, &h->cq->host));
}

static void post_rx(struct fixture *f, uint32_t len)
{
	nic_rqe(&f->b.n, f->b.qp, f->b.rx, len, f->b.lkey);
}

/* One frame arrives unchanged, padded with zeros to 60 bytes. */
static struct ornic_cqe *check_passes(struct fixture *f, const uint8_t *want, uint32_t len)
{
	uint32_t padded = len < 60 ? 60 : len;
	uint8_t *rx = guest_at(&f->b.n.guest, f->b.rx, padded + 1);
	struct ornic_cqe *c;

	memset(rx, 0xee, padded + 1);
	run(f);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	expect_nothing(&f->a);
	c = expect(&f->b, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
	assert_int_equal(le32toh(c->byte_len), padded);
	assert_memory_equal(rx, want, len);
	for (uint32_t i = len; i < padded; i++)
		assert_int_equal(rx[i], 0);
	assert_int_equal(rx[padded], 0xee);
	return c;
}

/* ORN-ETH-3, ORN-ETH-4 */
static void test_lengths(void **state)
{
	struct fixture *f = *state;

	for (uint32_t len = 14; len <= MAX_FRAME; len += len < 100 ? 1 : 59) {
		uint8_t *p = frame(f, len);

		post_rx(f, BUF);
		post(f, len, 0, 1);
		check_passes(f, p, len);
	}
	frame(f, MAX_FRAME);
	post_rx(f, BUF);
	post(f, MAX_FRAME, 0, 1);
	check_passes(f, frame(f, MAX_FRAME), MAX_FRAME);
}

static void test_inline_header_and_pieces(void **state)
{
	static const uint32_t hdr[] = { 0, 1, 5, 13, 14, 15, 18, 54, 60, 100 };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(hdr) / sizeof(hdr[0]); i++) {
		for (uint32_t nsge = 1; nsge <= 6; nsge++) {
			uint8_t *p = frame(f, 700);

			post_rx(f, BUF);
			post(f, 700, hdr[i], nsge);
			check_passes(f, p, 700);
		}
	}
}

static void test_all_inline(void **state)
{
	struct fixture *f = *state;
	uint8_t *p = frame(f, 90);
	struct raw_wqe *w;

	post_rx(f, BUF);
	w = post(f, 90, 20, 0);
	w->c.flags |= ORNIC_WQE_INLINE;
	w->c.count = htole16(70);
	memcpy(w->rest + 32, p + 20, 70);
	check_passes(f, p, 90);
}

static void test_header_only(void **state)
{
	struct fixture *f = *state;
	uint8_t *p = frame(f, 64);

	post_rx(f, BUF);
	post(f, 64, 64, 0);
	check_passes(f, p, 64);
}

/* More frames than a turn sends, more than the ring holds: in order, none lost. */
static void test_stream(void **state)
{
	struct fixture *f = *state;
	uint32_t sent = 0, got = 0;

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 1 << NIC_RINGS; i++) {
			uint8_t *p = frame(f, 100);

			nic_rqe(&f->b.n, f->b.qp, f->b.rx + i * BUF, BUF, f->b.lkey);
			p[20] = sent++;
			post(f, 100, 60, 1);
		}
		run(f);
		for (int i = 0; i < 1 << NIC_RINGS; i++) {
			uint8_t *rx = guest_at(&f->b.n.guest, f->b.rx + i * BUF, 100);

			expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
			expect(&f->b, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
			assert_int_equal(rx[20], (uint8_t)got++);
		}
	}
	assert_int_equal(f->a.n.dev.cnt[CNT_tx_packets], sent);
	assert_int_equal(f->b.n.dev.cnt[CNT_rx_packets], sent);
}

/* ORN-WQE-3 */
static void test_unsignaled(void **state)
{
	struct fixture *f = *state;

	frame(f, 60);
	post(f, 60, 0, 1)->c.flags = 0;
	nic_sqe(&f->a.n, f->a.qp, ORNIC_WR_NOP, 0);
	nic_sqe(&f->a.n, f->a.qp, ORNIC_WR_NOP, ORNIC_WQE_SIGNALED);
	run(f);
	assert_int_equal(le32toh(expect(&f->a, ORNIC_WC_NOP, 0)->wqe_id), 2);
	expect_nothing(&f->a);
	assert_int_equal(f->a.qp->qp.sq.done, 3);
}

static void csum_at(struct raw_wqe *w, uint16_t start, uint16_t offset)
{
	w->eth.eflags = ORNIC_ETH_CSUM_PARTIAL;
	w->eth.csum_start = htole16(start);
	w->eth.csum_offset = htole16(offset);
}

/* ORN-ETH-10 */
static void test_csum_partial(void **state)
{
	static const uint32_t hdr[] = { 0, 14, 40, 54, 100 };
	struct fixture *f = *state;

	for (uint32_t len = 60; len < 400; len += 13) {
		for (size_t i = 0; i < sizeof(hdr) / sizeof(hdr[0]) && hdr[i] <= len; i++) {
			uint8_t *p = frame(f, len), want[400];
			uint16_t csum;

			memcpy(want, p, len);
			csum = csum_fold(csum_add(0, p + 34, len - 34, false));
			csum = csum ? csum : 0xffff;
			memcpy(want + 34 + 16, &csum, 2);
			post_rx(f, BUF);
			csum_at(post(f, len, hdr[i], 1), 34, 16);
			assert_int_equal(le32toh(check_passes(f, want, len)->flags),
					 ORNIC_CQE_L4_CSUM_OK);
		}
	}
}

/* A frame of @len bytes in pieces arrives with the checksum from byte @start on at byte @at. */
static void check_csum(struct fixture *f, uint32_t len, uint32_t nsge, uint32_t start, uint32_t at)
{
	static uint8_t before[JUMBO_FRAME], want[JUMBO_FRAME];
	uint8_t *p = frame(f, len);
	struct ornic_cqe *c;
	uint16_t csum;

	memcpy(before, p, len);
	memcpy(want, p, len);
	csum = csum_fold_l4(csum_add(0, p + start, len - start, false));
	memcpy(want + at, &csum, sizeof(csum));
	post_rx(f, JUMBO_FRAME);
	csum_at(post(f, len, at % 2 ? 54 : 0, nsge), start, at - start);
	run(f);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	c = expect(&f->b, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
	assert_int_equal(le32toh(c->byte_len), len);
	assert_int_equal(le32toh(c->flags), ORNIC_CQE_L4_CSUM_OK);
	assert_memory_equal(guest_at(&f->b.n.guest, f->b.rx, len), want, len);
	assert_memory_equal(p, before, len);
}

/* ORN-ETH-6: the checksum field may be anywhere in the frame. */
static void test_csum_anywhere(void **state)
{
	static const uint32_t lens[] = { 512, 513, 1514, MAX_FRAME, 9014, JUMBO_FRAME };
	struct fixture *f = *state;

	f->a.n.dev.port.max_frame = JUMBO_FRAME - 18;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint32_t len = lens[i], at = 500;

		for (; at <= len - 2; at += at < 520 || at > len - 10 ? 1 : 7) {
			check_csum(f, len, 1, 34, at);
			check_csum(f, len, 3, at, at);
		}
		check_csum(f, len, 6, 14, len - 2);
	}
}

/* Create a region whose pages descend in the guest's memory; return the key. */
static uint32_t descending(struct nic *n, uint64_t memory, uint32_t count)
{
	uint64_t list = guest_alloc(&n->guest, count * 8, GUEST_PAGE);
	struct ornic_pages pages = { .addr = htole64(list), .level = 1, .page_shift = 12 };
	uint64_t *page = guest_at(&n->guest, list, count * 8);

	for (uint32_t i = 0; i < count; i++)
		page[i] = htole64(memory + (count - 1 - i) * GUEST_PAGE);
	return nic_region_pages(n, n->pd.number, 0, &pages, 0, count * GUEST_PAGE);
}

/*
 * ORN-ETH-3: frames of as many SGEs as Identify reports, each of which crosses a page boundary. The
 * last one of a jumbo frame crosses three. Without and with a checksum field that is not in the
 * copied beginning.
 */
static void test_most_pieces(void **state)
{
	enum { PART = 24, REST = PART * (LIMIT_SEND_SGE - 1), AT = 700 };
	const uint32_t pages = 2 * LIMIT_SEND_SGE + 2;
	struct fixture *f = *state;
	struct nic *n = &f->a.n;
	uint64_t memory = guest_alloc(&n->guest, pages * GUEST_PAGE, GUEST_PAGE);
	uint8_t *base = guest_at(&n->guest, memory, pages * GUEST_PAGE);
	uint32_t key = descending(n, memory, pages);
	static uint8_t want[JUMBO_FRAME];

	n->dev.port.max_frame = JUMBO_FRAME - 18;
	for (int round = 0; round < 4; round++) {
		struct raw_wqe *w = (void *)nic_sqe(n, f->a.qp, ORNIC_WR_SEND, ORNIC_WQE_SIGNALED);
		uint32_t last = round < 2 ? PART : PART + 2 * GUEST_PAGE;
		struct ornic_sge *sge = (void *)w->rest;
		uint16_t sum;

		memcpy(want, frame(f, REST + last), REST + last);
		w->c.count = htole16(LIMIT_SEND_SGE);
		for (uint32_t i = 0; i < LIMIT_SEND_SGE; i++) {
			uint64_t at = (2 * i + 1) * GUEST_PAGE - PART / 2;
			uint32_t len = i + 1 < LIMIT_SEND_SGE ? PART : last;

			sge[i] = (struct ornic_sge) {
				.addr = htole64(at), .length = htole32(len), .lkey = htole32(key),
			};
			for (uint32_t j = 0; j < len; j++, at++)
				base[(pages - 1 - at / GUEST_PAGE) * GUEST_PAGE + at % GUEST_PAGE] =
					want[i * PART + j];
		}
		if (round % 2) {
			sum = csum_fold_l4(csum_add(0, want + 34, REST + last - 34, false));
			memcpy(want + AT, &sum, sizeof(sum));
			csum_at(w, 34, AT - 34);
		}
		post_rx(f, JUMBO_FRAME);
		check_passes(f, want, REST + last);
	}
}

/* More inline bytes than a packet has memory of its own (ORN-ETH-3, ORN-ETH-5, ORN-ETH-11) */
static void test_much_inline(void **state)
{
	enum { HDR = 600, DATA = 100 };
	struct fixture *f = *state;
	uint8_t *p = frame(f, HDR + DATA), want[HDR + DATA];
	struct raw_wqe *w;
	uint16_t csum;

	for (int partial = 0; partial < 2; partial++) {
		memcpy(want, p, sizeof(want));
		post_rx(f, BUF);
		w = post(f, HDR + DATA, HDR, 0);
		w->c.flags |= ORNIC_WQE_INLINE;
		w->c.count = htole16(DATA);
		memcpy(w->rest + ((HDR + 15) & ~15), p + HDR, DATA);
		if (partial) {
			csum_at(w, 34, HDR - 1 - 34);
			csum = csum_fold_l4(csum_add(0, p + 34, HDR + DATA - 34, false));
			memcpy(want + HDR - 1, &csum, sizeof(csum));
		}
		check_passes(f, want, sizeof(want));
	}
}

/* The sender's memory is read, never written. */
static void test_guest_memory_is_not_written(void **state)
{
	struct fixture *f = *state;
	uint8_t *p = frame(f, 200), before[200];

	memcpy(before, p, 200);
	csum_at(post(f, 200, 0, 2), 34, 16);
	run(f);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	assert_memory_equal(p, before, 200);
}

/* ORN-ETH-7, ORN-ETH-9 */
static void test_ip_csum(void **state)
{
	struct fixture *f = *state;
	uint8_t *p = frame(f, 100), *rx = guest_at(&f->b.n.guest, f->b.rx, BUF);
	struct ornic_cqe *c;

	p[12] = 0x08;
	p[13] = 0x00;
	memset(p + 14, 0, 20);
	p[14] = 0x45;
	p[17] = 86;
	p[23] = 17;
	memcpy(p + 26, "\x0a\x00\x00\x01\x0a\x00\x00\x02", 8);
	post_rx(f, BUF);
	post(f, 100, 0, 1)->c.flags |= ORNIC_WQE_IP_CSUM;
	run(f);
	c = expect(&f->b, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
	assert_int_equal(le32toh(c->flags), ORNIC_CQE_L4_CSUM_OK | ORNIC_CQE_IP_CSUM_OK);
	assert_true(csum_ipv4_ok(rx + 14, 20));
	assert_memory_equal(rx + 42, p + 42, 58);
	f->b.n.dev.features = 0;
	post_rx(f, BUF);
	post(f, 100, 0, 1)->c.flags |= ORNIC_WQE_IP_CSUM;
	run(f);
	assert_int_equal(expect(&f->b, ORNIC_WC_RECV, ORNIC_WC_SUCCESS)->flags, 0);
}

/* Make the frame of @len bytes TCP or UDP over IPv4. Return: offset of the checksum field. */
static uint32_t make_ip(uint8_t *p, uint32_t len, bool vlan, uint32_t words, bool tcp)
{
	uint32_t at = vlan ? 18 : 14;

	if (vlan)
		memcpy(p + 12, "\x81\x00\x00\x00", 4);
	p[at - 2] = 0x08;
	p[at - 1] = 0;
	p[at] = 0x40 | words;
	p[at + 2] = (len - at) >> 8;
	p[at + 3] = len - at;
	memset(p + at + 6, 0, 2);
	p[at + 9] = tcp ? 6 : 17;
	return at + 4 * words + (tcp ? 16 : 6);
}

/* Fill in the checksums of a frame of make_ip(). */
static void fill_ip(uint8_t *p, uint32_t len, uint32_t at, uint32_t field)
{
	uint32_t header = (p[at] & 0xf) * 4, l4 = at + header;
	uint8_t pseudo[4] = { 0, p[at + 9], (len - l4) >> 8, len - l4 };
	uint64_t sum = csum_add(0, pseudo, sizeof(pseudo), false);
	uint16_t csum;

	memset(p + at + 10, 0, 2);
	csum = csum_fold(csum_add(0, p + at, header, false));
	memcpy(p + at + 10, &csum, 2);
	memset(p + field, 0, 2);
	sum = csum_add(sum, p + at + 12, 8, false);
	csum = csum_fold_l4(csum_add(sum, p + l4, len - l4, false));
	memcpy(p + field, &csum, 2);
}

/* ORN-ETH-7: checksums behind the longest headers, too, of data that is not in the first piece */
static void test_ip_csum_headers(void **state)
{
	static const uint32_t more[] = { 20, 21, 100, 1400 };
	enum { HEADERS = 11, CASES = 4 * HEADERS * sizeof(more) / sizeof(more[0]) };
	struct fixture *f = *state;

	for (uint32_t i = 0; i < CASES; i++) {
		uint32_t words = 5 + i % HEADERS, at = i / HEADERS % 2 ? 18 : 14;
		uint32_t len = at + 4 * words + more[i / HEADERS / 4];
		uint8_t *p = frame(f, len), want[1518];
		uint32_t field = make_ip(p, len, at == 18, words, i / HEADERS / 2 % 2);

		memcpy(want, p, len);
		fill_ip(want, len, at, field);
		post_rx(f, BUF);
		post(f, len, i % 3 * 14, 1 + i % 2)->c.flags |= ORNIC_WQE_IP_CSUM;
		assert_int_equal(le32toh(check_passes(f, want, len)->flags),
				 ORNIC_CQE_L4_CSUM_OK | ORNIC_CQE_IP_CSUM_OK);
		/* Nothing is filled in unless it is asked for. */
		post_rx(f, BUF);
		post(f, len, i % 3 * 14, 1);
		assert_int_equal(check_passes(f, p, len)->flags, 0);
	}
}

/* An IPv4 header is verified behind a tag, too, and with options. */
static void test_ip_csum_ok(void **state)
{
	enum { GOOD, BAD, OTHER_TYPE, HIGH_TYPE, OTHER_TAG, KINDS };
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 2 * 11 * KINDS; i++) {
		uint32_t kind = i % KINDS, words = 5 + i / KINDS % 11, at = 12;
		bool vlan = i / KINDS / 11, ok = kind == GOOD || (kind == OTHER_TAG && !vlan);
		uint32_t len = 14 + 4 * vlan + 4 * words;
		uint8_t *p = frame(f, len);
		uint16_t csum;

		if (vlan) {
			memcpy(p + at, "\x81\x00\x00\x00", 4);
			p[at + 1] = kind == OTHER_TAG;
			at += 4;
		}
		p[at++] = kind == HIGH_TYPE ? 0x88 : 0x08;
		p[at++] = kind == OTHER_TYPE;
		p[at] = 0x40 | words;
		memset(p + at + 10, 0, 2);
		csum = csum_fold(csum_add(0, p + at, 4 * words, false));
		memcpy(p + at + 10, &csum, 2);
		p[at + 8] ^= kind == BAD;
		post_rx(f, BUF);
		post(f, len, i % 3 * 14, 1);
		assert_int_equal(le32toh(check_passes(f, p, len)->flags),
				 ok ? ORNIC_CQE_IP_CSUM_OK : 0);
		if (len <= 60)
			continue;
		/* one byte less, which is no longer the whole header */
		post_rx(f, BUF);
		post(f, len - 1, i % 3 * 14, 1);
		assert_int_equal(le32toh(check_passes(f, p, len - 1)->flags), 0);
	}
	/* The header is longer than the frame. */
	memcpy(frame(f, 60) + 12, "\x08\x00\x4f", 3);
	post_rx(f, BUF);
	post(f, 60, 0, 1);
	run(f);
	assert_int_equal(expect(&f->b, ORNIC_WC_RECV, ORNIC_WC_SUCCESS)->flags, 0);
}

/* What a rule adds to the completion stands beside the verdict on the checksum. */
static void test_meta(void **state)
{
	static const struct raw_meta metas[] = {
		{ .flow_tag = 0x123456 },
		{ .flow_tag = 0, .rss_hash = 0xabcdef01, .rss_type = 3 },
	};
	struct fixture *f = *state;
	struct packet p = { .kind = PACKET_ETHERNET, .csum_ok = true, .len = 100, .nseg = 1 };

	p.seg[0] = (struct seg) { frame(f, 100), 100 };
	for (int i = 0; i < 2; i++) {
		const struct ornic_cqe *c;

		post_rx(f, BUF);
		raw_receive(&f->b.qp->qp, &p, &metas[i]);
		c = expect(&f->b, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
		assert_int_equal(le32toh(c->flags), ORNIC_CQE_L4_CSUM_OK | ORNIC_CQE_FLOW_TAG |
				 (i ? ORNIC_CQE_HASH : 0));
		assert_int_equal(le32toh(c->src_qp), metas[i].flow_tag);
		assert_int_equal(le32toh(c->rss_hash), metas[i].rss_hash);
		assert_int_equal(c->rss_type, metas[i].rss_type);
		assert_int_equal(le32toh(c->byte_len), 100);
	}
}

/* Send a frame of @len bytes that the receiver drops. */
static void send_lost(struct fixture *f, uint32_t len)
{
	frame(f, len);
	post(f, len, 0, 1);
	run(f);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	expect_nothing(&f->b);
}

/* ORN-RQ-7 */
static void test_no_receive(void **state)
{
	struct fixture *f = *state;

	send_lost(f, 60);
	assert_int_equal(f->b.n.dev.cnt[CNT_rx_drop_no_wqe], 1);
	assert_int_equal(f->b.n.dev.cnt[CNT_rx_drop_size], 0);
	post_rx(f, BUF);
	post(f, 60, 0, 1);
	check_passes(f, frame(f, 60), 60);
}

/* Too long a frame is dropped; the receive stays and takes the next one (ORN-ETH-8). */
static void test_receive_too_small(void **state)
{
	struct fixture *f = *state;

	post_rx(f, 100);
	send_lost(f, 101);
	assert_int_equal(f->b.n.dev.cnt[CNT_rx_drop_size], 1);
	post(f, 100, 0, 1);
	check_passes(f, frame(f, 100), 100);
}

/* A held receive is flushed like any other. */
static void test_flush(void **state)
{
	struct fixture *f = *state;

	frame(f, 101);
	post_rx(f, 100);
	post_rx(f, 100);
	post(f, 101, 0, 1);
	run(f);
	qp_set_state(&f->b.qp->qp, ORNIC_QPS_ERR);
	nic_turns(&f->e);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(le32toh(expect(&f->b, ORNIC_WC_RECV,
						ORNIC_WC_WR_FLUSH_ERR)->wqe_id), i);
	expect_nothing(&f->b);
}

static void check_receive_fails(struct fixture *f, uint32_t syndrome)
{
	struct ornic_cqe *c;

	frame(f, 60);
	post(f, 60, 0, 1);
	run(f);
	c = expect(&f->b, ORNIC_WC_RECV, ORNIC_WC_LOC_PROT_ERR);
	assert_int_equal(le32toh(c->syndrome), syndrome);
	assert_int_equal(f->b.qp->qp.state, ORNIC_QPS_ERR);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	assert_int_equal(f->a.qp->qp.state, ORNIC_QPS_RTS);
}

/* ORN-RQ-2 */
static void test_receive_key_wrong(void **state)
{
	struct fixture *f = *state;

	nic_rqe(&f->b.n, f->b.qp, f->b.rx, BUF, f->b.lkey ^ 1);
	check_receive_fails(f, ORNIC_SYN_KEY_TAG);
}

static void test_receive_key_read_only(void **state)
{
	struct fixture *f = *state;
	uint32_t key = nic_region(&f->b.n, f->b.n.pd.number, 0, f->b.rx, BUF);

	nic_rqe(&f->b.n, f->b.qp, f->b.rx, BUF, key);
	check_receive_fails(f, ORNIC_SYN_KEY_ACCESS);
}

static void test_receive_page_gone(void **state)
{
	struct fixture *f = *state;

	nic_rqe(&f->b.n, f->b.qp, f->b.rx, BUF, f->b.lkey);
	guest_hide(&f->b.n.guest, f->b.rx);
	check_receive_fails(f, ORNIC_SYN_KEY_PAGE);
}

/* A send that fails: earlier sends complete, it reports the reason, the rest is flushed. */
static void check_send_fails(struct fixture *f, uint8_t status, uint32_t syndrome)
{
	struct ornic_cqe *c;

	nic_sqe(&f->a.n, f->a.qp, ORNIC_WR_NOP, 0);
	run(f);
	assert_int_equal(expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS)->wqe_id, 0);
	c = expect(&f->a, ORNIC_WC_SEND, status);
	assert_int_equal(le32toh(c->syndrome), syndrome);
	assert_int_equal(le32toh(expect(&f->a, ORNIC_WC_NOP, ORNIC_WC_WR_FLUSH_ERR)->wqe_id), 2);
	expect_nothing(&f->a);
	assert_int_equal(f->a.qp->qp.state, ORNIC_QPS_ERR);
	assert_int_equal(f->a.n.dev.cnt[CNT_tx_packets], 1);
}

#define FAILS(name, expr, status, syndrome)				\
static void name(void **state)						\
{									\
	struct fixture *f = *state;					\
	struct raw_wqe *w;						\
									\
	frame(f, 200);							\
	post(f, 100, 0, 1);						\
	w = post(f, 200, 0, 1);						\
	expr;								\
	check_send_fails(f, status, syndrome);				\
}

static struct ornic_sge *first_sge(struct raw_wqe *w)
{
	return (struct ornic_sge *)w->rest;
}

/* ORN-ETH-5 */
FAILS(test_too_short, first_sge(w)->length = htole32(13),
      ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH)
FAILS(test_too_long, first_sge(w)->length = htole32(MAX_FRAME + 1),
      ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH)
FAILS(test_huge, first_sge(w)->length = htole32(UINT32_MAX),
      ORNIC_WC_LOC_LEN_ERR, ORNIC_SYN_WQE_LENGTH)
FAILS(test_send_key_wrong, first_sge(w)->lkey ^= htole32(1),
      ORNIC_WC_LOC_PROT_ERR, ORNIC_SYN_KEY_TAG)
FAILS(test_send_address_wrong, first_sge(w)->addr = htole64(0x1000),
      ORNIC_WC_LOC_PROT_ERR, ORNIC_SYN_KEY_PAGE)
FAILS(test_send_address_wraps, first_sge(w)->addr = htole64(-10ull),
      ORNIC_WC_LOC_PROT_ERR, ORNIC_SYN_KEY_RANGE)
/* ORN-ETH-6 */
FAILS(test_csum_behind_end, csum_at(w, 190, 9),
      ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT)
FAILS(test_csum_far_behind_end, csum_at(w, 0xffff, 0xffff),
      ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT)
FAILS(test_csum_not_negotiated, (csum_at(w, 34, 16), f->a.n.dev.features = 0),
      ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ)
/* ORN-ETH-13 */
FAILS(test_vlan_insert, w->eth.eflags = ORNIC_ETH_VLAN_INSERT,
      ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_MBZ)
FAILS(test_stale, w->c.index = htole32(99), ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_STALE)
/* ORN-ETH-11 */
FAILS(test_header_beyond_stride, w->eth.inline_hdr = htole16(60000),
      ORNIC_WC_LOC_QP_OP_ERR, ORNIC_SYN_WQE_SEGMENT)

/* ORN-SEC-3 */
static void test_unprivileged_phys_all(void **state)
{
	struct fixture *f = *state;

	f->a.qp->qp.flags = 0;
	frame(f, 100);
	post(f, 100, 100, 0);
	post(f, 100, 0, 1);
	check_send_fails(f, ORNIC_WC_LOC_PROT_ERR, ORNIC_SYN_KEY_INDEX);
}

/* ORN-ERR-7 */
static void test_index_jump(void **state)
{
	struct fixture *f = *state;

	nic_rec(&f->a.n, &f->a.qp->sq)->host_index = htole32((1 << NIC_RINGS) + 1);
	qp_doorbell(&f->a.qp->qp, false);
	nic_turns(&f->e);
	assert_int_equal(f->a.qp->qp.state, ORNIC_QPS_ERR);
	assert_int_equal(f->a.qp->qp.syndrome, ORNIC_SYN_RING_INDEX);
	expect_nothing(&f->a);
	assert_int_equal(f->a.n.fatals, 0);
}

/* Without a free packet, frames wait: they neither complete nor are lost. */
static void test_no_packets(void **state)
{
	struct packet_queue held = STAILQ_HEAD_INITIALIZER(held);
	struct fixture *f = *state;
	uint8_t *p = frame(f, 100);

	post_rx(f, BUF);
	post(f, 100, 0, 1);
	nic_ring(&f->a.n, f->a.qp);
	STAILQ_CONCAT(&held, &f->e.pool.free);
	assert_int_equal(engine_turn(&f->e), 0);
	STAILQ_CONCAT(&f->e.pool.free, &held);
	expect_nothing(&f->a);
	check_passes(f, p, 100);
}

/* ORN-PORT-13 */
static void test_link_down(void **state)
{
	struct fixture *f = *state;
	uint32_t packets = f->e.pool.nfree;

	f->b.n.dev.port.admin_up = false;
	post_rx(f, BUF);
	send_lost(f, 60);
	assert_int_equal(f->e.pool.nfree, packets);
}

static void test_not_started(void **state)
{
	struct fixture *f = *state;

	qp_set_state(&f->b.qp->qp, ORNIC_QPS_RESET);
	frame(f, 60);
	post(f, 60, 0, 1);
	run(f);
	expect_nothing(&f->b);
	assert_int_equal(f->b.n.dev.cnt[CNT_rx_drop_no_wqe], 1);
}

/* A queue pair receives from RTR on. */
static void test_states(void **state)
{
	struct fixture *f = *state;
	struct qp *qp = &f->b.qp->qp;

	qp_set_state(qp, ORNIC_QPS_RESET);
	f->b.qp->rq.index = 0;
	qp_set_state(qp, ORNIC_QPS_INIT);
	post_rx(f, BUF);
	send_lost(f, 60);
	assert_int_equal(f->b.n.dev.cnt[CNT_rx_drop_no_wqe], 1);
	qp_set_state(qp, ORNIC_QPS_RTR);
	post(f, 60, 0, 1);
	check_passes(f, frame(f, 60), 60);
	assert_int_equal(f->b.n.dev.cnt[CNT_rx_drop_no_wqe], 1);
}

/* A queue pair without send queue has no window of work requests, and an iteration ends at once. */
static void test_no_send_queue(void **state)
{
	struct fixture *f = *state;
	struct qp *qp = &f->a.qp->qp;
	uint8_t *win = qp->req.win;

	qp->req.win = NULL;
	assert_false(raw_run(qp));
	qp->req.win = win;
}

/* A queue pair sends in RTS only, and after an error once it has been reset. */
static void test_send_states(void **state)
{
	struct fixture *f = *state;
	struct qp *qp = &f->a.qp->qp;

	frame(f, 60);
	first_sge(post(f, 60, 0, 1))->length = htole32(1);
	nic_ring(&f->a.n, f->a.qp);
	qp->state = ORNIC_QPS_SQD;
	assert_false(raw_run(qp));
	assert_int_equal(qp->sq.cons, 0);
	qp->state = ORNIC_QPS_RTS;
	nic_turns(&f->e);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_LOC_LEN_ERR);
	assert_int_equal(f->a.n.dev.cnt[CNT_tx_packets], 0);
	for (int again = 0; again < 2; again++) {
		nic_rec(&f->a.n, &f->a.qp->sq)->host_index = 0;
		qp_set_state(qp, ORNIC_QPS_RESET);
		f->a.qp->sq.index = 0;
		nic_qp_rts(f->a.qp);
		if (again)
			break;
		/* no completion has the old error, while the rate permits nothing ... */
		post(f, 60, 0, 1);
		nic_ring(&f->a.n, f->a.qp);
		qp->rate.path.due = f->e.now + 1000000000;
		assert_false(raw_run(qp));
		expect_nothing(&f->a);
		assert_int_equal(qp->state, ORNIC_QPS_RTS);
		qp->rate.path.due = 0;
		rate_stop(&qp->rate, &qp->dev->timers);
		/* ... and if the ring is unusable */
		nic_rec(&f->a.n, &f->a.qp->sq)->host_index = htole32((1 << NIC_RINGS) + 1);
		qp_doorbell(qp, false);
		nic_turns(&f->e);
		assert_int_equal(qp->state, ORNIC_QPS_ERR);
		expect_nothing(&f->a);
	}
	post_rx(f, BUF);
	post(f, 60, 0, 1);
	check_passes(f, frame(f, 60), 60);
}

/* Create another RAW queue pair of the function, which takes the unicast rule. */
static struct nic_qp *second_qp(struct fixture *f, uint32_t flags)
{
	struct nic_qp *qp = nic_qp_new(&f->a.n, ORNIC_QPT_RAW, flags, f->a.cq, f->a.cq);

	f->a.n.dev.port.unicast = &qp->qp;
	nic_qp_rts(qp);
	nic_rqe(&f->a.n, qp, f->a.rx, BUF, f->a.lkey);
	return qp;
}

/* A frame to the function's own address comes back inside the device (ORN-PORT-4). */
static void test_own_address(void **state)
{
	struct fixture *f = *state;
	uint8_t *p = frame(f, 80), *rx = guest_at(&f->a.n.guest, f->a.rx, BUF);
	struct nic_qp *qp = second_qp(f, ORNIC_QP_F_PRIVILEGED);
	const struct ornic_cqe *cqe;

	memcpy(p, mac_a, 6);
	post(f, 80, 0, 1);
	run(f);
	cqe = nic_next(&f->a.n, &f->a.cq->host);
	assert_non_null(cqe);
	assert_int_equal(le32toh(cqe->qpn), qp->qp.handle);
	assert_int_equal(cqe->status, ORNIC_WC_SUCCESS);
	assert_int_equal(le32toh(cqe->byte_len), 80);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	assert_memory_equal(rx, p, 80);
}

/* ... but not to the queue pair that sent it (ORN-STEER-11, ORN-STEER-8) */
static void test_own_frame(void **state)
{
	struct fixture *f = *state;

	f->a.qp->qp.flags = ORNIC_QP_F_PRIVILEGED;
	memcpy(frame(f, 80), mac_a, 6);
	nic_rqe(&f->a.n, f->a.qp, f->a.rx, BUF, f->a.lkey);
	post(f, 80, 0, 1);
	run(f);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	expect_nothing(&f->a);
	assert_int_equal(f->a.n.dev.cnt[CNT_rx_drop_rule], 1);
}

/* ... nor from the network interface to the network interface (ORN-STEER-11). */
static void test_own_interface(void **state)
{
	struct fixture *f = *state;
	struct nic_qp *qp = second_qp(f, DRIVER);

	memcpy(frame(f, 80), mac_a, 6);
	post(f, 80, 0, 1);
	run(f);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	expect_nothing(&f->a);
	f->a.n.dev.port.promisc = &qp->qp;
	post(f, 80, 0, 1);
	run(f);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	expect_nothing(&f->a);
	assert_int_equal(f->a.n.dev.cnt[CNT_rx_drop_rule], 2);
}

/* A guest's second step: rewrite the tag of the frame at @arg, and the type behind it. */
static void rewrite(void *arg, const struct switch_port *port, enum switch_way way,
		    const struct packet *p, const char *note)
{
	(void)port;
	(void)p;
	(void)note;
	if (way == SWITCH_OUT)
		memcpy((uint8_t *)arg + ETH_BYTES, "\x00\x14\x81\x00", VLAN_BYTES);
}

static void keep_header(void *arg, const struct packet *p)
{
	seg_copy_out(arg, p->seg, p->nseg, 0, ETH_BYTES + VLAN_BYTES);
}

/*
 * ORN-SEC-4: tag and type of a frame that arrives are those that the switch checked, with the tag
 * (at b) and with a new one, which replaces it (at the trunk).
 */
static void test_tag_changes(void **state)
{
	static const struct switch_port_ops ops = { .deliver = keep_header };
	static const uint8_t head[18] = { 0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0xa,
					  0x81, 0, 0x60, 0, 0x88, 0xb5 };
	static const uint32_t hdr[] = { 0, 12, 14, 15, 17, 18 };
	struct fixture *f = *state;
	uint8_t *p = frame(f, 100), *rx = guest_at(&f->b.n.guest, f->b.rx, BUF), got[18];
	const struct switch_observer guest = { rewrite, p };
	struct switch_port *trunk = switch_port_add(f->e.sw, "trunk", &ops, got);

	switch_port_set_up(trunk, true);
	assert_int_equal(switch_port_set_vlan(f->a.n.dev.port.sw, 10), 0);
	assert_int_equal(switch_port_set_vlan(f->b.n.dev.port.sw, 10), 0);
	switch_set_observer(f->e.sw, &guest);
	for (size_t i = 0; i < sizeof(hdr) / sizeof(hdr[0]); i++) {
		memcpy(p, head, sizeof(head));
		memset(got, 0, sizeof(got));
		post_rx(f, BUF);
		post(f, 100, hdr[i], 1);
		run(f);
		expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
		expect(&f->b, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
		assert_memory_equal(rx, head, sizeof(head));
		assert_memory_equal(got, head, ETH_BYTES);
		assert_int_equal(be16_get(got + ETH_BYTES), 0x600a);
		assert_int_equal(be16_get(got + ETH_BYTES + 2), 0x88b5);
	}
	switch_set_observer(f->e.sw, NULL);
	switch_port_del(trunk);
}

/* Check IP addresses of a: it may use 10.0.0.1, and its link-local address. */
static void distrust(struct fixture *f)
{
	struct port *port = &f->a.n.dev.port;

	port->flags |= ORNIC_PORT_F_ANTI_SPOOF | ORNIC_PORT_F_ANTI_SPOOF_IP;
	port->source = (struct antispoof) { .ip = true, .n = 1 };
	assert_null(antispoof_parse(&port->source.prefix[0], "10.0.0.1"));
	antispoof_link_local(&port->source, port->mac);
}

/* Make the frame of @len bytes IPv4 from 10.0.0.1, ICMP. */
static uint8_t *ipv4_frame(struct fixture *f, uint32_t len)
{
	uint8_t *p = frame(f, len);

	make_ip(p, len, false, 5, false);
	p[23] = 1;
	memcpy(p + 26, (uint8_t[]) { 10, 0, 0, 1, 10, 0, 0, 2 }, 8);
	return p;
}

/*
 * Make the frame of @len bytes a neighbor advertisement of a's link-local address. Options before
 * that of its MAC address fill it up. Return: the frame.
 */
static uint8_t *nd_frame(struct fixture *f, uint32_t len)
{
	static const uint8_t ip[] = { 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 58, 255,
				      0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 0xa };
	uint8_t *p = frame(f, len);

	memset(p + 12, 0, len - 12);
	memcpy(p + 12, ip, sizeof(ip));
	p[18] = (len - 54) >> 8;
	p[19] = len - 54;
	p[54] = 136;
	memcpy(p + 62, p + 22, 16);
	if (len > 86) {
		p[78] = 14;
		p[79] = (len - 86) / 8;
	}
	p[len - 8] = 2;
	p[len - 7] = 1;
	memcpy(p + len - 6, mac_a, 6);
	return p;
}

static void expect_dropped(struct fixture *f)
{
	uint64_t dropped = f->a.n.dev.cnt[CNT_tx_drop_spoof];

	run(f);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	expect_nothing(&f->b);
	assert_int_equal(f->a.n.dev.cnt[CNT_tx_drop_spoof], dropped + 1);
}

/* ORN-ETH-16: in frames of all lengths, whichever part of the headers is inline or in which piece */
static void test_source(void **state)
{
	static const uint32_t hdr[] = { 0, 6, 14, 20, 29, 54, 100 };
	struct fixture *f = *state;

	distrust(f);
	for (size_t i = 0; i < sizeof(hdr) / sizeof(hdr[0]); i++) {
		for (uint32_t len = 100; len < 900; len += 199) {
			uint8_t *p = ipv4_frame(f, len);

			post_rx(f, BUF);
			post(f, len, hdr[i], 1 + i % 6);
			check_passes(f, p, len);
			p[29]++;
			post(f, len, hdr[i], 1 + i % 6);
			expect_dropped(f);
		}
	}
	for (uint32_t len = 86; len < 400; len += 8) {
		uint8_t *p = nd_frame(f, len);

		post(f, len, 0, 3);
		if (len <= ANTISPOOF_BYTES) {
			post_rx(f, BUF);
			check_passes(f, p, len);
			p[len - 1]++;
			post(f, len, 0, 3);
		}
		expect_dropped(f);
	}
	/* A frame of the shortest length that has all headers, and one without */
	ipv4_frame(f, 34);
	post_rx(f, BUF);
	post(f, 34, 0, 1);
	check_passes(f, ipv4_frame(f, 34), 34);
	post(f, 33, 0, 1);
	expect_dropped(f);
}

/* The check follows the checksum, which the guest can place on the source address. */
static void test_source_by_checksum(void **state)
{
	struct fixture *f = *state;
	struct raw_wqe *w;

	distrust(f);
	f->a.n.dev.features |= 1ull << ORNIC_F_TX_CSUM;
	ipv4_frame(f, 100);
	w = post(f, 100, 0, 1);
	w->eth.eflags = ORNIC_ETH_CSUM_PARTIAL;
	w->eth.csum_start = htole16(26);
	expect_dropped(f);
	/* ... and it can make the source legal. */
	memset(ipv4_frame(f, 100) + 26, 0, 74);
	memcpy(guest_at(&f->a.n.guest, f->a.tx + 28, 2), (uint8_t[]) { 0, 1 }, 2);
	memcpy(guest_at(&f->a.n.guest, f->a.tx + 30, 2), (uint8_t[]) { 0xf5, 0xfe }, 2);
	post_rx(f, BUF);
	w = post(f, 100, 0, 1);
	w->eth.eflags = ORNIC_ETH_CSUM_PARTIAL;
	w->eth.csum_start = htole16(26);
	run(f);
	expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
	expect(&f->b, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
	assert_memory_equal(guest_at(&f->b.n.guest, f->b.rx + 26, 4),
			    ((uint8_t[]) { 10, 0, 0, 1 }), 4);
}

/* A guest's second step: another address in all headers of the frame at @arg */
static void rewrite_source(void *arg, const struct switch_port *port, enum switch_way way,
			   const struct packet *p, const char *note)
{
	(void)port;
	(void)p;
	(void)note;
	if (way == SWITCH_OUT)
		memset((uint8_t *)arg + 6, 0x77, ANTISPOOF_BYTES - 6);
}

/* ORN-SEC-4: the headers that arrive are those that were checked. */
static void test_source_changes(void **state)
{
	static const uint32_t hdr[] = { 0, 14, 40, 100 };
	static const uint32_t lens[] = { 86, 94, 134, ANTISPOOF_BYTES - 10 };
	struct fixture *f = *state;
	uint8_t *p = frame(f, 300), want[300];
	const struct switch_observer guest = { rewrite_source, p };

	distrust(f);
	switch_set_observer(f->e.sw, &guest);
	for (size_t i = 0; i < sizeof(hdr) / sizeof(hdr[0]); i++) {
		for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
			memcpy(want, nd_frame(f, lens[k]), lens[k]);
			post_rx(f, BUF);
			post(f, lens[k], hdr[i] < lens[k] ? hdr[i] : 0, 2);
			check_passes(f, want, lens[k]);
		}
	}
	switch_set_observer(f->e.sw, NULL);
}

/* Fill a's memory with a frame of Soft-RoCE, say, from a to b. Return: its length. */
static uint32_t roce_frame(struct fixture *f)
{
	uint8_t data[32] = { 1, 2, 3 };
	struct packet p = {
		.kind = PACKET_ROCE, .opcode = BTH_RC_SEND_ONLY, .mtu = 1024, .npsn = 1,
		.len = sizeof(data), .nseg = 1, .seg = { { data, sizeof(data) } },
		.udp_sport = 0xc000, .pkey = 0xffff, .hop_limit = 64, .dqpn = 17,
	};
	struct frames cut;

	memcpy(p.dmac, mac_b, 6);
	memcpy(p.smac, mac_a, 6);
	ip_v4_gid(p.sgid, (uint8_t[]) { 10, 0, 0, 1 });
	ip_v4_gid(p.dgid, (uint8_t[]) { 10, 0, 0, 2 });
	frames_begin(&cut, &p);
	return frames_next(&cut, frame(f, FRAMES_MAX_BYTES));
}

/*
 * ORN-PORT-19, ORN-STEER-1: a frame of a RAW queue pair is offered to the rules, whatever it looks
 * like; also if it waits on a rate-limited link.
 */
static void test_roce_frame(void **state)
{
	const struct egress_param limit = {
		.kbps = EGRESS_MAX_KBPS, .queue = EGRESS_QUEUE, .kmin = EGRESS_QUEUE,
		.kmax = EGRESS_QUEUE,
	};
	struct fixture *f = *state;
	struct switch_port *port = f->b.n.dev.port.sw;
	uint8_t *rx = guest_at(&f->b.n.guest, f->b.rx, BUF);

	for (int i = 0; i < 4; i++) {
		uint32_t len = roce_frame(f);
		uint8_t *p = guest_at(&f->a.n.guest, f->a.tx, len);

		assert_int_equal(switch_port_limit(port, i / 2 ? &limit : NULL), 0);
		p[ETH_BYTES + IPV4_BYTES + 5] ^= i % 2;		/* malformed: the UDP length */
		post_rx(f, BUF);
		post(f, len, 0, 1);
		run(f);
		while (i / 2 && egress_depth(switch_port_egress(port)))
			engine_turn(&f->e);
		expect(&f->a, ORNIC_WC_SEND, ORNIC_WC_SUCCESS);
		expect(&f->b, ORNIC_WC_RECV, ORNIC_WC_SUCCESS);
		assert_memory_equal(rx, p, len);
	}
	assert_int_equal(switch_port_limit(port, NULL), 0);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* Frames of 100 bytes, to a station and to a group: all counters of both functions */
static void test_counters(void **state)
{
	struct fixture *f = *state;
	uint64_t a[CNT_COUNT] = { 0 }, b[CNT_COUNT] = { 0 };

	for (int group = 0; group < 2; group++) {
		uint8_t *p = frame(f, 100);

		if (group)
			memset(p, 0xff, 6);
		nic_rqe(&f->b.n, f->b.qp, f->b.rx, BUF, f->b.lkey);
		post(f, 100, 14, 1);
		memcpy(a, f->a.n.dev.cnt, sizeof(a));
		memcpy(b, f->b.n.dev.cnt, sizeof(b));
		run(f);
		a[CNT_tx_packets]++;
		a[CNT_tx_bytes] += 100;
		a[group ? CNT_tx_multicast : CNT_tx_unicast]++;
		b[CNT_rx_packets]++;
		b[CNT_rx_bytes] += 100;
		b[CNT_rdma_copied_bytes] += 100;
		b[group ? CNT_rx_multicast : CNT_rx_unicast]++;
		a[CNT_doorbells] = f->a.n.dev.cnt[CNT_doorbells];
		b[CNT_doorbells] = f->b.n.dev.cnt[CNT_doorbells];
		assert_memory_equal(f->a.n.dev.cnt, a, sizeof(a));
		assert_memory_equal(f->b.n.dev.cnt, b, sizeof(b));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_lengths),
		TEST(test_counters),
		TEST(test_inline_header_and_pieces),
		TEST(test_all_inline),
		TEST(test_header_only),
		TEST(test_stream),
		TEST(test_unsignaled),
		TEST(test_csum_partial),
		TEST(test_csum_anywhere), TEST(test_most_pieces),
		TEST(test_much_inline),
		TEST(test_guest_memory_is_not_written),
		TEST(test_ip_csum),
		TEST(test_ip_csum_headers), TEST(test_ip_csum_ok),
		TEST(test_meta),
		TEST(test_no_receive),
		TEST(test_receive_too_small),
		TEST(test_flush),
		TEST(test_receive_key_wrong),
		TEST(test_receive_key_read_only),
		TEST(test_receive_page_gone),
		TEST(test_too_short),
		TEST(test_too_long),
		TEST(test_huge),
		TEST(test_send_key_wrong),
		TEST(test_send_address_wrong),
		TEST(test_send_address_wraps),
		TEST(test_csum_behind_end),
		TEST(test_csum_far_behind_end),
		TEST(test_csum_not_negotiated),
		TEST(test_vlan_insert),
		TEST(test_stale),
		TEST(test_header_beyond_stride),
		TEST(test_unprivileged_phys_all),
		TEST(test_index_jump),
		TEST(test_no_packets),
		TEST(test_link_down),
		TEST(test_not_started), TEST(test_states),
		TEST(test_no_send_queue), TEST(test_send_states),
		TEST(test_own_address),
		TEST(test_own_frame),
		TEST(test_own_interface),
		TEST(test_tag_changes),
		TEST(test_source), TEST(test_source_by_checksum), TEST(test_source_changes),
		TEST(test_roce_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
