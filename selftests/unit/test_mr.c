// SPDX-License-Identifier: GPL-2.0
/*
 * engine/mr.c: every error of a key (ORN-MEM-6, ORN-SEC-3, ORN-SEC-9), and the pieces of memory
 * of a valid key.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <endian.h>
#include <ornic/admin.h>
#include "lib/nic.h"
#include "engine/srq.h"

#define LEN	(3 * GUEST_PAGE)
#define WRITE	ORNIC_ACCESS_LOCAL_WRITE

struct fixture {
	struct engine e;
	struct nic n;
	uint64_t addr;
	uint32_t key;
};

static const uint8_t mac[6] = { 2 };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(engine_init(&f->e, 0), 0);
	nic_init(&f->n, &f->e, mac);
	f->addr = guest_alloc(&f->n.guest, LEN + GUEST_PAGE, GUEST_PAGE) + 100;
	f->key = nic_region(&f->n, f->n.pd.number, WRITE, f->addr, LEN);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	nic_fini(&f->n);
	engine_fini(&f->e);
	free(f);
	return 0;
}

/* Return the syndrome, or 0. */
static uint32_t check(struct fixture *f, bool privileged, uint32_t pd, uint32_t access,
		      uint32_t key, uint64_t addr, uint64_t len)
{
	struct mr_access who = { .pd = pd, .privileged = privileged, .access = access };
	uint32_t syndrome = 0;
	struct mr *mr = mr_check(&f->n.dev, &who, key, addr, len, &syndrome);

	assert_int_equal(!mr, syndrome != 0);
	return syndrome;
}

static uint32_t by_user(struct fixture *f, uint32_t access, uint32_t key, uint64_t addr,
			uint64_t len)
{
	return check(f, false, f->n.pd.number, access, key, addr, len);
}

static void test_granted(void **state)
{
	struct fixture *f = *state;
	struct mr *mr = table_get(&f->n.dev.keys, f->key >> 8);

	assert_int_equal(by_user(f, 0, f->key, f->addr, LEN), 0);
	assert_int_equal(by_user(f, WRITE, f->key, f->addr + LEN - 1, 1), 0);
	assert_int_equal(mr->uses, 2);
}

/* ORN-SEC-12 */
static void test_range(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(by_user(f, 0, f->key, f->addr, LEN + 1), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr - 1, 1), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr - 1, 10), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr + LEN, 1), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr + 1, LEN), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, UINT64_MAX, 2), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr, UINT64_MAX), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(by_user(f, 0, f->key, f->addr + 8, -8ull), ORNIC_SYN_KEY_RANGE);
}

/* ORN-MEM-6 */
static void test_rights(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(by_user(f, ORNIC_ACCESS_REMOTE_READ, f->key, f->addr, 1),
			 ORNIC_SYN_KEY_ACCESS);
	assert_int_equal(by_user(f, WRITE | ORNIC_ACCESS_REMOTE_ATOMIC, f->key, f->addr, 1),
			 ORNIC_SYN_KEY_ACCESS);
}

/* Rights are checked before range, in the order of the clause (ORN-MEM-6). */
static void test_order(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(by_user(f, ORNIC_ACCESS_REMOTE_READ, f->key, 0, 1),
			 ORNIC_SYN_KEY_ACCESS);
	assert_int_equal(check(f, true, 99, ORNIC_ACCESS_REMOTE_READ, f->key ^ 1, 0, 1),
			 ORNIC_SYN_KEY_TAG);
	assert_int_equal(check(f, true, 99, ORNIC_ACCESS_REMOTE_READ, f->key, 0, 1),
			 ORNIC_SYN_KEY_PD);
}

/* ORN-ERR-3, ORN-SEC-9 */
static void test_no_oracle(void **state)
{
	struct fixture *f = *state;
	uint32_t absent = ((f->key >> 8) ^ 1) << 8 | 0x5a, pd = f->n.pd.number;

	assert_int_equal(check(f, true, pd, 0, absent, f->addr, 1), ORNIC_SYN_KEY_INDEX);
	assert_int_equal(check(f, false, pd, 0, absent, f->addr, 1), ORNIC_SYN_KEY_INDEX);
	assert_int_equal(check(f, false, pd, 0, f->key ^ 1, f->addr, 1), ORNIC_SYN_KEY_INDEX);
	assert_int_equal(check(f, false, pd + 1, 0, f->key, f->addr, 1), ORNIC_SYN_KEY_INDEX);
	assert_int_equal(check(f, false, pd, 0, 0, f->addr, 1), ORNIC_SYN_KEY_INDEX);
	assert_int_equal(check(f, false, pd, 0, UINT32_MAX, f->addr, 1), ORNIC_SYN_KEY_INDEX);
}

static void test_key_not_valid(void **state)
{
	struct fixture *f = *state;
	struct mr *mr = table_get(&f->n.dev.keys, f->key >> 8);

	mr->kind = ORNIC_KEY_FAST_REG;	/* and not registered */
	assert_int_equal(check(f, true, f->n.pd.number, 0, f->key, f->addr, 1),
			 ORNIC_SYN_KEY_STATE);
	assert_int_equal(by_user(f, 0, f->key, f->addr, 1), ORNIC_SYN_KEY_INDEX);
}

/* ORN-SEC-3 */
static void test_phys_all(void **state)
{
	struct fixture *f = *state;
	uint32_t key = nic_phys_all(&f->n, WRITE);

	assert_int_equal(check(f, true, 12345, WRITE, key, 0, 1), 0);
	assert_int_equal(check(f, true, 1, 0, key, UINT64_MAX, 1), 0);
	assert_int_equal(check(f, true, 1, 0, key, UINT64_MAX, 2), ORNIC_SYN_KEY_RANGE);
	assert_int_equal(check(f, true, 1, ORNIC_ACCESS_REMOTE_WRITE, key, 0, 1),
			 ORNIC_SYN_KEY_ACCESS);
	assert_int_equal(check(f, false, f->n.pd.number, 0, key, f->addr, 1),
			 ORNIC_SYN_KEY_INDEX);
}

static void test_phys_all_of_a_pd(void **state)
{
	struct fixture *f = *state;
	uint32_t key = nic_phys_all(&f->n, WRITE);

	((struct mr *)table_get(&f->n.dev.keys, key >> 8))->pd = 5;
	assert_int_equal(check(f, true, 5, 0, key, 0, 1), 0);
	assert_int_equal(check(f, true, 6, 0, key, 0, 1), ORNIC_SYN_KEY_PD);
	assert_int_equal(check(f, false, 5, 0, key, 0, 1), ORNIC_SYN_KEY_INDEX);
}

/* ORN-MEM-6 */
static void test_empty_region(void **state)
{
	struct fixture *f = *state;
	struct mr *mr = table_get(&f->n.dev.keys, f->key >> 8);

	mr->length = 0;
	assert_int_equal(by_user(f, 0, f->key, f->addr, 1), ORNIC_SYN_KEY_RANGE);
}

static void test_segs_of_a_region(void **state)
{
	struct fixture *f = *state;
	struct mr *mr = table_get(&f->n.dev.keys, f->key >> 8);
	struct seg seg[2];
	uint64_t got;

	assert_int_equal(mr_segs(&f->n.dev, mr, f->addr + 5, LEN - 5, true, seg, 2, &got), 1);
	assert_int_equal(got, LEN - 5);
	assert_ptr_equal(seg[0].ptr, guest_at(&f->n.guest, f->addr + 5, 1));
	assert_int_equal(seg[0].len, LEN - 5);
}

/* A region of pages that are not contiguous: one piece per page, within the limit of pieces. */
static void test_segs_limit(void **state)
{
	struct fixture *f = *state;
	uint64_t base = guest_alloc(&f->n.guest, 8 * GUEST_PAGE, GUEST_PAGE), got;
	uint64_t page[] = { base, base + 2 * GUEST_PAGE, base + 3 * GUEST_PAGE,
			    base + 6 * GUEST_PAGE };
	struct ornic_pages desc = guest_list(&f->n.guest, 1, 12, page, 4);
	struct mr mr = { .kind = ORNIC_KEY_REGION, .iova = 0x7000, .length = 4 * GUEST_PAGE };
	struct device *dev = &f->n.dev;
	struct seg seg[8];

	assert_int_equal(umem_load(&mr.mem, dev->gpa, &desc, mr.length, 1ull << 12,
				   &dev->lists), ORNIC_ST_OK);
	assert_int_equal(mr_segs(dev, &mr, 0x7000, mr.length, true, seg, 8, &got), 3);
	assert_int_equal(got, mr.length);
	assert_int_equal(seg[1].len, 2 * GUEST_PAGE);
	assert_int_equal(mr_segs(dev, &mr, 0x7000, mr.length, true, seg, 2, &got), 2);
	assert_int_equal(got, 3 * GUEST_PAGE);
	assert_int_equal(mr_segs(dev, &mr, 0x7ffe, 3, true, seg, 8, &got), 2);
	assert_int_equal(seg[0].len, 2);
	assert_int_equal(seg[1].len, 1);
	guest_hide(&f->n.guest, page[3]);
	assert_int_equal(mr_segs(dev, &mr, 0x7000, mr.length, true, seg, 8, &got), -EFAULT);
	assert_int_equal(mr_segs(dev, &mr, 0x7000, 3 * GUEST_PAGE, true, seg, 8, &got), 2);
	umem_free(&mr.mem, &dev->lists);
}

static void test_segs_of_phys_all(void **state)
{
	struct fixture *f = *state;
	uint32_t key = nic_phys_all(&f->n, WRITE);
	struct mr *mr = table_get(&f->n.dev.keys, key >> 8);
	uint64_t got, page = (f->addr & ~(GUEST_PAGE - 1)) + GUEST_PAGE;
	static uint8_t copy[LEN];
	struct seg seg[4];
	int n;

	assert_int_equal(mr_segs(&f->n.dev, mr, f->addr, LEN, true, seg, 4, &got), 1);
	assert_ptr_equal(seg[0].ptr, guest_at(&f->n.guest, f->addr, 1));
	assert_int_equal(mr_segs(&f->n.dev, mr, 0, 1, true, seg, 4, &got), -EFAULT);
	assert_int_equal(mr_segs(&f->n.dev, mr, GUEST_BASE + GUEST_BYTES - 1, 2, true, seg, 4,
				 &got), -EFAULT);
	for (uint64_t i = 0; i < LEN; i++)
		*(uint8_t *)guest_at(&f->n.guest, f->addr + i, 1) = i % 251;
	guest_hide(&f->n.guest, page);
	assert_int_equal(mr_segs(&f->n.dev, mr, f->addr, LEN, true, seg, 4, &got), -EFAULT);
	/* memory of several files, or of a file in several pieces; the new one cannot be written */
	assert_int_equal(gpa_map(f->n.guest.gpa, page, GUEST_PAGE, GPA_READ, f->n.guest.fd,
				 page - GUEST_BASE), 0);
	n = mr_segs(&f->n.dev, mr, f->addr, LEN, false, seg, 4, &got);
	assert_in_range(n, 1, 3);
	assert_int_equal(got, LEN);
	seg_copy_out(copy, seg, n, 0, LEN);
	for (uint64_t i = 0; i < LEN; i++)
		assert_int_equal(copy[i], i % 251);
	assert_int_equal(mr_segs(&f->n.dev, mr, f->addr, LEN, true, seg, 4, &got), -EFAULT);
}

/* An SGE does not continue at address 0, whatever the key permits. */
static void test_sge_wraps(void **state)
{
	struct fixture *f = *state;
	struct qp qp = { .dev = &f->n.dev, .pd = &f->n.pd, .flags = ORNIC_QP_F_PRIVILEGED };
	struct ornic_sge sge = {
		.addr = htole64(-32ull), .length = htole32(256),
		.lkey = htole32(nic_phys_all(&f->n, WRITE)),
	};
	struct seg seg[PACKET_SEGS];
	uint32_t syndrome = 0;
	uint64_t got;

	assert_int_equal(data_gather(&qp, &sge, 1, 64, 8, seg, &got, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_KEY_RANGE);
}

/* Describe @mr by another key. Remove it with table_del(). */
static uint32_t add(struct fixture *f, struct mr *mr)
{
	uint32_t index;

	mr->tag = 3;
	assert_int_equal(table_add(&f->n.dev.keys, mr, &index), 0);
	return index << ORNIC_KEY_TAG_BITS | mr->tag;
}

/* ORN-MEM-6: keys that have to be bound or registered before, and those that need not */
static void test_kinds(void **state)
{
	static const struct {
		uint8_t kind;
		bool binds;
	} kinds[] = {
		{ ORNIC_KEY_REGION, false }, { ORNIC_KEY_DM, false }, { ORNIC_KEY_FAST_REG, true },
		{ ORNIC_KEY_MW1, true }, { ORNIC_KEY_MW2B, true }, { 0xff, false },
	};
	struct fixture *f = *state;
	struct device *dev = &f->n.dev;
	struct qp one, other;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct mr mr = { .kind = kinds[i].kind, .pd = 5, .length = 8,
				 .access = ORNIC_ACCESS_REMOTE_READ };
		struct mr_access who = { .qp = &one, .pd = 5, .privileged = true,
					 .access = ORNIC_ACCESS_REMOTE_READ };
		uint32_t key = add(f, &mr), syndrome = 0;
		bool valid = kinds[i].kind != 0xff && !kinds[i].binds;

		assert_int_equal(!!mr_check(dev, &who, key, 0, 8, &syndrome), valid);
		assert_int_equal(syndrome, valid ? 0 : ORNIC_SYN_KEY_STATE);
		assert_int_equal(mr.uses, valid);
		mr.bound = true;
		assert_int_equal(!!mr_check(dev, &who, key, 0, 8, &syndrome),
				 kinds[i].kind != 0xff);
		assert_null(mr_check(dev, &who, key, 0, 9, &syndrome));
		who.pd = 6;
		assert_null(mr_check(dev, &who, key, 0, 8, &syndrome));
		assert_int_equal(syndrome, valid || kinds[i].binds ? ORNIC_SYN_KEY_PD :
				 ORNIC_SYN_KEY_STATE);
		who.pd = 5;
		mr.qp = &other;
		assert_int_equal(!!mr_check(dev, &who, key, 0, 8, &syndrome), valid);
		if (kinds[i].binds)
			assert_int_equal(syndrome, ORNIC_SYN_KEY_PD);
		mr.qp = &one;
		assert_int_equal(!!mr_check(dev, &who, key, 0, 8, &syndrome),
				 kinds[i].kind != 0xff);
		/* Windows are for peers only (ORN-MEM-66). */
		who.access = 0;
		valid = kinds[i].kind != 0xff && !mr_is_window(&mr);
		assert_int_equal(!!mr_check(dev, &who, key, 0, 8, &syndrome), valid);
		if (mr_is_window(&mr))
			assert_int_equal(syndrome, ORNIC_SYN_KEY_ACCESS);
		table_del(&dev->keys, key >> ORNIC_KEY_TAG_BITS);
	}
}

/* Pieces of a window, which begins inside its region, and of device memory */
static void test_segs_of_others(void **state)
{
	struct fixture *f = *state;
	struct device *dev = &f->n.dev;
	uint8_t memory[100];
	struct mr mw = { .kind = ORNIC_KEY_MW1, .iova = 0x5000, .length = 200, .start = 300 };
	struct mr dm = { .kind = ORNIC_KEY_DM, .iova = 0x700, .length = 100, .dm = memory };
	struct seg seg[2];
	uint64_t got;

	mw.region = table_get(&dev->keys, f->key >> 8);
	assert_int_equal(mr_segs(dev, &mw, 0x5010, 50, true, seg, 2, &got), 1);
	assert_ptr_equal(seg[0].ptr, guest_at(&f->n.guest, f->addr + 300 + 0x10, 50));
	assert_int_equal(seg[0].len, 50);
	assert_int_equal(got, 50);
	assert_int_equal(mr_segs(dev, &dm, 0x703, 97, true, seg, 2, &got), 1);
	assert_ptr_equal(seg[0].ptr, memory + 3);
	assert_int_equal(seg[0].len, 97);
	assert_int_equal(got, 97);
}

/* A region of pages that are not contiguous, and lists of pieces of it */
#define PAGES	90
#define BYTES	(PAGES * GUEST_PAGE)
#define IOVA	0x40000ull
#define SGES	30

struct lists {
	struct nic_qp *qp;
	uint64_t page[PAGES];
	uint32_t key;
	struct ornic_sge sge[SGES];
	uint32_t nsge;
	uint32_t total;
	uint8_t *at[BYTES];	/* the bytes of the list */
	uint8_t data[BYTES];
	uint8_t apart[BYTES + PACKET_SEGS];
	uint8_t want[BYTES];
	uint8_t have[BYTES];
};

static uint8_t *byte_at(struct fixture *f, struct lists *l, uint64_t off)
{
	return guest_at(&f->n.guest, l->page[off / GUEST_PAGE] + off % GUEST_PAGE, 1);
}

static struct lists *lists_new(struct fixture *f)
{
	struct lists *l = test_calloc(1, sizeof(*l));
	uint64_t base = guest_alloc(&f->n.guest, 2 * BYTES, GUEST_PAGE);
	struct nic_cq *cq = nic_cq_new(&f->n, 4, nic_eq_new(&f->n, 4, 0), 0);
	struct ornic_pages desc;

	for (uint32_t i = 0; i < PAGES; i++)
		l->page[i] = base + 2 * i * GUEST_PAGE;
	desc = guest_list(&f->n.guest, 1, 12, l->page, PAGES);
	l->key = nic_region_pages(&f->n, f->n.pd.number, WRITE, &desc, IOVA, BYTES);
	l->qp = nic_qp_new(&f->n, ORNIC_QPT_RC, 0, cq, cq);
	for (uint32_t i = 0; i < BYTES; i++)
		l->data[i] = rand();
	return l;
}

/* Make a list of random pieces in ascending order, some empty. */
static void lists_cut(struct fixture *f, struct lists *l)
{
	uint64_t at = 0;

	l->total = 0;
	l->nsge = 1 + rand() % SGES;
	for (uint32_t i = 0; i < l->nsge; i++) {
		uint32_t len = rand() % 4 ? rand() % (rand() % 2 ? 200 : 40000) : 0;

		at += rand() % 2 ? rand() % 100 : 0;
		if (at + len > BYTES)
			len = 0;
		l->sge[i] = (struct ornic_sge) { htole64(IOVA + at), htole32(len),
						 htole32(len ? l->key : 0) };
		for (; len; len--)
			l->at[l->total++] = byte_at(f, l, at++);
	}
}

/* The pieces are the bytes of the list, as many as a packet can have. */
static void test_gather(void **state)
{
	struct fixture *f = *state;
	struct lists *l = lists_new(f);

	srand(1);
	for (int round = 0; round < 100; round++) {
		struct seg seg[PACKET_SEGS];
		uint32_t off, len, syndrome, at = 0;
		uint64_t got;
		int n;

		lists_cut(f, l);
		if (!l->total)
			continue;
		off = rand() % 2 ? 0 : rand() % l->total;
		len = rand() % 2 ? l->total - off : rand() % (l->total - off + 1);
		n = data_gather(&l->qp->qp, l->sge, l->nsge, off, len, seg, &got, &syndrome);
		assert_in_range(n, 0, PACKET_SEGS);
		for (int i = 0; i < n; i++)
			for (uint32_t k = 0; k < seg[i].len; k++)
				if (seg[i].ptr + k != l->at[off + at++])
					fail_msg("round %d, byte %u", round, at);
		assert_int_equal(at, got);
		if (n < PACKET_SEGS)
			assert_int_equal(got, len);
	}
	/* more pieces than a packet holds, in one SGE or in several */
	for (uint32_t nsge = 1; nsge <= 2; nsge++) {
		struct seg seg[PACKET_SEGS];
		uint64_t page[PACKET_SEGS + 2], got;
		uint32_t syndrome, key;
		struct ornic_sge sge[2];
		struct ornic_pages desc;

		for (int i = 0; i < PACKET_SEGS + 2; i++)
			page[i] = l->page[i % 2];
		desc = guest_list(&f->n.guest, 1, 12, page, PACKET_SEGS + 2);
		key = nic_region_pages(&f->n, f->n.pd.number, 0, &desc, 0,
				       (PACKET_SEGS + 2) * GUEST_PAGE);
		sge[0] = (struct ornic_sge) { 0, htole32((PACKET_SEGS + 2 - nsge) * GUEST_PAGE),
					      htole32(key) };
		sge[1] = sge[0];
		assert_int_equal(data_gather(&l->qp->qp, sge, nsge, 0,
					     nsge * le32toh(sge[0].length), seg, &got, &syndrome),
				 PACKET_SEGS);
		assert_int_equal(got, PACKET_SEGS * GUEST_PAGE);
	}
	test_free(l);
}

/* Return a packet whose payload is the first @len bytes of data, in random separate pieces. */
static struct packet lists_packet(struct lists *l, uint32_t len)
{
	struct packet p = { .len = len };
	uint8_t *to = l->apart;

	for (uint32_t at = 0; at < len; p.nseg++) {
		uint32_t n = rand() % 3 ? rand() % (rand() % 2 ? 3000 : 40000) : 0;

		if (n > len - at || p.nseg == PACKET_SEGS - 1)
			n = len - at;
		p.seg[p.nseg] = (struct seg) { to, n };
		memcpy(to, l->data + at, n);
		at += n;
		to += n + 1;
	}
	return p;
}

/* Compare the memory of the region with what is wanted. */
static void lists_compare(struct fixture *f, struct lists *l)
{
	for (uint32_t i = 0; i < PAGES; i++)
		memcpy(l->have + i * GUEST_PAGE, byte_at(f, l, i * GUEST_PAGE), GUEST_PAGE);
	assert_memory_equal(l->have, l->want, BYTES);
}

static void lists_clear(struct fixture *f, struct lists *l)
{
	for (uint32_t i = 0; i < PAGES; i++)
		memset(byte_at(f, l, i * GUEST_PAGE), 0xee, GUEST_PAGE);
	memset(l->want, 0xee, BYTES);
}

/* Payload goes to the bytes of the list and to no other; each byte is counted. */
static void test_scatter(void **state)
{
	struct fixture *f = *state;
	struct lists *l = lists_new(f);
	uint64_t *copied = &f->n.dev.cnt[CNT_rdma_copied_bytes];
	struct mr *mr = table_get(&f->n.dev.keys, l->key >> 8);

	srand(2);
	for (int round = 0; round < 100; round++) {
		uint64_t before = *copied;
		uint32_t skip, len, syndrome;
		struct packet p;

		lists_cut(f, l);
		lists_clear(f, l);
		if (!l->total)
			continue;
		skip = rand() % 2 ? 0 : rand() % l->total;
		len = rand() % 2 ? l->total - skip : rand() % (l->total - skip + 1);
		p = lists_packet(l, len);
		if (round % 2) {
			uint64_t at = rand() % (BYTES - len + 1);

			assert_int_equal(data_place(&l->qp->qp, mr, IOVA + at, &p), 0);
			memcpy(l->want + at, l->data, len);
			lists_compare(f, l);
		} else {
			assert_int_equal(data_scatter(&l->qp->qp, l->sge, l->nsge, skip, &p,
						      &syndrome), 0);
			for (uint32_t i = 0; i < len; i++) {
				if (*l->at[skip + i] != l->data[i])
					fail_msg("round %d, byte %u", round, i);
				*l->at[skip + i] = 0xee;
			}
			lists_compare(f, l);
		}
		assert_int_equal(*copied - before, len);
	}
	/* more pieces of memory than are copied at once, which ends within a piece of payload */
	for (int round = 0; round < 10; round++) {
		struct packet p = lists_packet(l, BYTES - 100);
		uint32_t syndrome;

		lists_clear(f, l);
		l->sge[0] = (struct ornic_sge) { htole64(IOVA + 50), htole32(BYTES - 100),
						 htole32(l->key) };
		if (round % 2)
			assert_int_equal(data_place(&l->qp->qp, mr, IOVA + 50, &p), 0);
		else
			assert_int_equal(data_scatter(&l->qp->qp, l->sge, 1, 0, &p, &syndrome), 0);
		memcpy(l->want + 50, l->data, BYTES - 100);
		lists_compare(f, l);
	}
	test_free(l);
}

/* A list that is too short, and pieces that cannot be reached */
static void test_scatter_fails(void **state)
{
	struct fixture *f = *state;
	struct lists *l = lists_new(f);
	struct qp *qp = &l->qp->qp;
	struct mr *mr = table_get(&f->n.dev.keys, l->key >> 8);
	struct ornic_sge *sge = l->sge;
	struct packet p = lists_packet(l, 100);
	uint32_t syndrome = 0;
	uint64_t got;
	struct seg seg[PACKET_SEGS];

	lists_clear(f, l);
	sge[0] = (struct ornic_sge) { htole64(IOVA), htole32(60), htole32(l->key) };
	sge[1] = (struct ornic_sge) { htole64(IOVA + 5000), htole32(39), htole32(l->key) };
	assert_int_equal(data_scatter(qp, sge, 2, 0, &p, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_WQE_LENGTH);
	sge[1].length = htole32(40);
	assert_int_equal(data_scatter(qp, sge, 2, 0, &p, &syndrome), 0);
	assert_int_equal(data_scatter(qp, sge, 2, 1, &p, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_WQE_LENGTH);
	sge[1].lkey = htole32(UINT32_MAX);	/* others may exist: keys are random */
	assert_int_equal(data_scatter(qp, sge, 2, 0, &p, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_KEY_INDEX);
	sge[1].lkey = htole32(l->key);
	/* addresses that wrap; those before do not */
	sge[0] = (struct ornic_sge) { htole64(-60ull), htole32(120), htole32(l->key) };
	assert_int_equal(data_gather(qp, sge, 1, 60, 60, seg, &got, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_KEY_RANGE);
	sge[0] = (struct ornic_sge) { htole64(IOVA - 8), htole32(120), htole32(l->key) };
	assert_int_equal(data_gather(qp, sge, 1, 8, 60, seg, &got, &syndrome), 1);
	sge[0].addr = htole64(IOVA);
	guest_hide(&f->n.guest, l->page[1]);
	assert_int_equal(data_scatter(qp, sge, 1, 0, &p, &syndrome), 0);
	sge[0] = sge[1];
	sge[0].length = htole32(100);
	assert_int_equal(data_scatter(qp, sge, 1, 0, &p, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_KEY_PAGE);
	assert_int_equal(data_place(qp, mr, IOVA + GUEST_PAGE - 99, &p), -EFAULT);
	assert_int_equal(data_place(qp, mr, IOVA + GUEST_PAGE - 100, &p), 0);
	/* Of read-only memory, or with a key for reads: it can be sent, but not received into. */
	assert_int_equal(gpa_map(f->n.guest.gpa, l->page[1], GUEST_PAGE, GPA_READ, f->n.guest.fd,
				 l->page[1] - GUEST_BASE), 0);
	assert_int_equal(data_place(qp, mr, IOVA + GUEST_PAGE, &p), -EFAULT);
	assert_int_equal(data_gather(qp, sge, 1, 0, 100, seg, &got, &syndrome), 1);
	assert_int_equal(data_scatter(qp, sge, 1, 0, &p, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_KEY_PAGE);
	mr->access = 0;
	sge[0].addr = htole64(IOVA);
	assert_int_equal(data_gather(qp, sge, 1, 0, 100, seg, &got, &syndrome), 1);
	assert_int_equal(data_scatter(qp, sge, 1, 0, &p, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_KEY_ACCESS);
	test_free(l);
}

/* ORN-SRQ-3: a receive has the rights of its queue, which are those of the SRQ if there is one. */
static void test_receive_rights(void **state)
{
	struct fixture *f = *state;
	struct lists *l = lists_new(f);
	struct packet p = lists_packet(l, 100);
	struct qp *qp = &l->qp->qp;
	struct pd other = { .number = 9 };
	struct srq srq = { .pd = &other };
	uint32_t phys = nic_phys_all(&f->n, WRITE), syndrome = 0;
	struct rwqe *recv = &qp->resp.recv;
	struct mr *mr = table_get(&f->n.dev.keys, l->key >> 8);

	recv->nsge = 1;
	recv->sge[0] = (struct ornic_sge) { htole64(IOVA), htole32(110), htole32(l->key) };
	assert_int_equal(data_receive(qp, 10, &p, &syndrome), 0);
	assert_int_equal(*byte_at(f, l, 10), l->data[0]);
	assert_int_equal(data_receive(qp, 11, &p, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_WQE_LENGTH);
	qp->srq = &srq;
	assert_int_equal(data_receive(qp, 0, &p, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_KEY_INDEX);
	srq.privileged = true;
	assert_int_equal(data_receive(qp, 0, &p, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_KEY_PD);
	mr->pd = 9;
	assert_int_equal(data_receive(qp, 0, &p, &syndrome), 0);
	mr->access = 0;
	assert_int_equal(data_receive(qp, 0, &p, &syndrome), -EACCES);
	assert_int_equal(syndrome, ORNIC_SYN_KEY_ACCESS);
	recv->sge[0] = (struct ornic_sge) { htole64(l->page[3]), htole32(100), htole32(phys) };
	assert_int_equal(data_receive(qp, 0, &p, &syndrome), 0);
	srq.privileged = false;
	qp->flags = ORNIC_QP_F_PRIVILEGED;
	assert_int_equal(data_receive(qp, 0, &p, &syndrome), -EACCES);
	qp->srq = NULL;
	assert_int_equal(data_receive(qp, 0, &p, &syndrome), 0);
	qp->flags = 0;
	assert_int_equal(data_receive(qp, 0, &p, &syndrome), -EACCES);
	test_free(l);
}

/* Pages that are neighbours in the daemon's memory, but not in the guest's, are one piece. */
static void test_segs_joined(void **state)
{
	struct fixture *f = *state;
	uint64_t page[] = { 0x10000, 0x20000, 0x30000, 0x40000 }, got;
	struct ornic_pages desc = guest_list(&f->n.guest, 1, 12, page, 4);
	struct seg seg[4];
	struct mr *mr;

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(gpa_map(f->n.guest.gpa, page[i], GUEST_PAGE, GPA_READ,
					 f->n.guest.fd, (i < 3 ? i : 5) * GUEST_PAGE), 0);
	mr = table_get(&f->n.dev.keys, nic_region_pages(&f->n, f->n.pd.number, 0, &desc, IOVA,
							4 * GUEST_PAGE) >> 8);
	assert_int_equal(mr_segs(&f->n.dev, mr, IOVA + 1, 4 * GUEST_PAGE - 1, false, seg, 4, &got),
			 2);
	assert_int_equal(got, 4 * GUEST_PAGE - 1);
	assert_ptr_equal(seg[0].ptr, guest_at(&f->n.guest, GUEST_BASE + 1, 1));
	assert_int_equal(seg[0].len, 3 * GUEST_PAGE - 1);
	assert_ptr_equal(seg[1].ptr, guest_at(&f->n.guest, GUEST_BASE + 5 * GUEST_PAGE, 1));
	assert_int_equal(seg[1].len, GUEST_PAGE);
	/* A full list takes what joins its last piece. */
	assert_int_equal(mr_segs(&f->n.dev, mr, IOVA, 4 * GUEST_PAGE, false, seg, 1, &got), 1);
	assert_int_equal(got, 3 * GUEST_PAGE);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_granted),
		TEST(test_range),
		TEST(test_rights),
		TEST(test_order),
		TEST(test_no_oracle),
		TEST(test_key_not_valid),
		TEST(test_phys_all),
		TEST(test_phys_all_of_a_pd),
		TEST(test_empty_region),
		TEST(test_segs_of_a_region),
		TEST(test_segs_limit),
		TEST(test_segs_of_phys_all),
		TEST(test_sge_wraps),
		TEST(test_segs_joined),
		TEST(test_kinds),
		TEST(test_segs_of_others),
		TEST(test_gather),
		TEST(test_scatter),
		TEST(test_scatter_fails),
		TEST(test_receive_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
