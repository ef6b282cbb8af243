// SPDX-License-Identifier: GPL-2.0
/*
 * dev/admin.c, dev/command.c: the rings, the rules that hold for every command, and hosts that
 * break the rules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/commands.h"
#include "lib/inproc.h"

#include "mem/gpa.h"

#include <ornic/eq.h>
#include <ornic/identify.h>
#include <ornic/stats.h>
#include <endian.h>
#include <string.h>

#define FIELD(off)	(ORNIC_SYN_FIELD | (off))
#define ENTRY(member)	FIELD(0x8000 | offsetof(struct ornic_admin_cmd, member))

static int submit(struct inproc *p, const struct ornic_admin_cmd *cmd)
{
	host_submit(&p->host, cmd);
	return host_complete(&p->host);
}

static uint32_t syndrome(struct inproc *p)
{
	return le32toh(p->host.cpl.syndrome);
}

static void fatal(struct inproc *p)
{
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_FATAL);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_SYNDROME), ORNIC_SYN_ADMIN_RING);
}

/* ORN-ADM-2, ORN-RNG-15 */
static void test_many_laps(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };
	uint32_t entries = 1u << p->host.log_admin;

	/* Fill the ring each time, and let the device fall asleep in between. */
	for (int lap = 0; lap < 5; lap++) {
		for (uint32_t i = 0; i < entries; i++) {
			cmd.cmd_id = htole16(lap * 100 + i);
			host_submit(&p->host, &cmd);
		}
		for (uint32_t i = 0; i < entries; i++) {
			assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
			assert_int_equal(le16toh(p->host.cpl.cmd_id), lap * 100 + i);
			assert_int_equal(le16toh(p->host.cpl.opcode), ORNIC_OP_NOP);
		}
		inproc_turn(p);
		assert_false(function_busy(p->f));
	}
}

/* ORN-ADM-1, ORN-ADM-11, ORN-ADM-14, ORN-ADM-21, ORN-ADM-22, ORN-ADM-23, ORN-ADM-24 */
static void test_entry_rules(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd ok = { .opcode = htole16(ORNIC_OP_NOP) }, c;
	uint64_t failures = inproc_counter(p, CNT_admin_failures);

	assert_int_equal(submit(p, &ok), ORNIC_ST_OK);
	assert_int_equal(inproc_counter(p, CNT_admin_failures), failures);
	c = ok;
	c.opcode = htole16(0x7f01);
	assert_int_equal(submit(p, &c), ORNIC_ST_BAD_OPCODE);
	assert_int_equal(inproc_counter(p, CNT_admin_failures), failures + 1);
	assert_int_equal(le16toh(p->host.cpl.opcode), 0x7f01);
	c = ok;
	c.number = htole32(1);
	assert_int_equal(submit(p, &c), ORNIC_ST_RESERVED);
	assert_int_equal(syndrome(p), ENTRY(number));
	c = ok;
	c.flags = htole32(1);
	assert_int_equal(submit(p, &c), ORNIC_ST_RESERVED);
	assert_int_equal(syndrome(p), ENTRY(flags));
	c = ok;
	c.in_addr = htole64(p->host.payload);
	assert_int_equal(submit(p, &c), ORNIC_ST_RESERVED);
	assert_int_equal(syndrome(p), ENTRY(in_addr));
	c = ok;
	c.out_addr = htole64(p->host.payload);
	assert_int_equal(submit(p, &c), ORNIC_ST_RESERVED);
	assert_int_equal(syndrome(p), ENTRY(out_addr));
	c.out_len = htole16(32);
	assert_int_equal(submit(p, &c), ORNIC_ST_RESERVED);
	assert_int_equal(syndrome(p), ENTRY(out_addr));
	c = ok;
	c.in_addr = htole64(p->host.payload);
	c.in_len = htole16(32);
	assert_int_equal(submit(p, &c), ORNIC_ST_RESERVED);
	assert_int_equal(syndrome(p), ENTRY(in_addr));
	c.out_addr = c.in_addr;
	c.out_len = htole16(4096);
	c.in_len = htole16(4096);
	memset(dma_at(&p->host.dma, p->host.payload), 0, 4096);
	assert_int_equal(submit(p, &c), ORNIC_ST_OK);
	c = ok;
	c.in_len = htole16(4097);
	assert_int_equal(submit(p, &c), ORNIC_ST_BAD_SIZE);
	c = ok;
	c.out_len = htole16(4097);
	assert_int_equal(submit(p, &c), ORNIC_ST_BAD_SIZE);
	c = ok;
	c.in_len = htole16(64);
	c.in_addr = htole64(p->host.payload + 4);
	assert_int_equal(submit(p, &c), ORNIC_ST_BAD_PARAM);
	assert_int_equal(syndrome(p), ENTRY(in_addr));
	c.in_addr = htole64(INPROC_BASE + INPROC_BYTES);
	assert_int_equal(submit(p, &c), ORNIC_ST_DMA_ERROR);
	c = ok;
	c.out_len = htole16(64);
	c.out_addr = htole64(INPROC_BASE + INPROC_BYTES - 64 + 64);
	assert_int_equal(submit(p, &c), ORNIC_ST_DMA_ERROR);
	/* the end of the buffer is not there */
	c.out_len = htole16(128);
	c.out_addr = htole64(INPROC_BASE + INPROC_BYTES - 64);
	assert_int_equal(submit(p, &c), ORNIC_ST_DMA_ERROR);
	assert_int_equal(syndrome(p), ENTRY(out_addr));
	c.out_addr = htole64(p->host.payload + 4);
	assert_int_equal(submit(p, &c), ORNIC_ST_BAD_PARAM);
	assert_int_equal(syndrome(p), ENTRY(out_addr));
	c.out_addr = htole64(UINT64_MAX & ~63ull);
	assert_int_equal(submit(p, &c), ORNIC_ST_DMA_ERROR);
	assert_int_equal(submit(p, &ok), ORNIC_ST_OK);
}

/*
 * Every command rejects each shorter input, and a longer input if a byte behind the layout is not
 * zero: ORN-ADM-1, ORN-ADM-8.
 */
static void test_sizes(void **state)
{
	struct inproc *p = *state;
	uint8_t in[ORNIC_ADMIN_MAX_PAYLOAD] = { 0 };

	for (unsigned int i = 0; i < ADMIN_OPS; i++) {
		uint16_t opcode = admin_ops[i].opcode, n = admin_ops[i].in;

		for (uint16_t less = 0; less < n; less++)
			assert_int_equal(host_exec(&p->host, opcode, 0, in, less, NULL, 0),
					 ORNIC_ST_BAD_SIZE);
		for (uint16_t more = 1; more <= 41; more++) {
			in[n + more - 1] = 1;
			assert_int_equal(host_exec(&p->host, opcode, 0, in, n + more, NULL, 0),
					 ORNIC_ST_RESERVED);
			assert_int_equal(syndrome(p), FIELD(n + more - 1));
			in[n + more - 1] = 0;
		}
	}
	assert_int_equal(host_exec(&p->host, ORNIC_OP_PD_CREATE, 0, in, 500, NULL, 0),
			 ORNIC_ST_OK);
}

/* ORN-ADM-10; only out_len decides which output is inline. */
static void test_output_sizes(void **state)
{
	struct inproc *p = *state;
	struct ornic_identify_cmd in = { .page = ORNIC_ID_DEVICE };
	uint8_t *out = dma_at(&p->host.dma, p->host.payload + 4096);
	struct ornic_stat_read_cmd stat = {
		.scope = ORNIC_STAT_PORT, .number = htole32(1), .count = htole32(8),
	};
	static const uint8_t pad[7] = { 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa };
	struct { uint64_t v[4]; uint8_t rest[7]; } __attribute__((packed)) reply;
	struct { struct ornic_stat_name v[2]; uint8_t rest[7]; } __attribute__((packed)) names;
	struct ornic_stat_names_cmd from = { 0 };
	uint8_t copy[33];

	memset(out, 0xaa, 4096);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_IDENTIFY, 0, &in, sizeof(in), copy, 32), 0);
	assert_int_equal(le32toh(p->host.cpl.out_size), sizeof(struct ornic_identify_device));
	assert_int_equal(out[0], 0xaa);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_IDENTIFY, 0, &in, sizeof(in), copy, 33), 0);
	assert_int_equal(out[33], 0xaa);
	assert_memory_equal(out, copy, sizeof(copy));
	/* A list: whole entries only, in the buffer if the command asked for the buffer. */
	memset(out, 0xaa, 4096);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_READ, 0, &stat, sizeof(stat), &reply,
				   sizeof(reply)), 0);
	assert_int_equal(le32toh(p->host.cpl.out_size), 8 * 8);
	assert_memory_equal(out + 32, pad, sizeof(pad));
	assert_int_not_equal(reply.v[0], 0xaaaaaaaaaaaaaaaaull);
	for (unsigned int i = 0; i < ORNIC_ADMIN_INLINE; i++)
		assert_int_equal(p->host.cpl.inline_out[i], 0);
	memset(out, 0xaa, 4096);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_STAT_NAMES, 0, &from, sizeof(from), &names,
				   sizeof(names)), 0);
	assert_memory_equal(names.rest, pad, sizeof(pad));
	assert_int_not_equal(names.v[1].name[0], 0);
}

/* Input and output may lie in several pieces of memory. */
static void test_payload_in_pieces(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = {
		.opcode = htole16(ORNIC_OP_IDENTIFY), .in_len = htole16(4096),
		.in_addr = htole64(65536 + 64), .out_len = htole16(4096),
		.out_addr = htole64(65536 + 64),
	};
	struct ornic_identify_cmd in = { .page = ORNIC_ID_DEVICE };
	struct ornic_identify_device d;
	uint64_t pages = dma_alloc(&p->host.dma, 8192, 4096);
	uint8_t *first = dma_at(&p->host.dma, pages + 4096), *second = dma_at(&p->host.dma, pages);

	/* two pages that are in another order in the file */
	for (int i = 0; i < 2; i++)
		assert_int_equal(gpa_map(p->ep.gpa, 65536 + i * 4096, 4096, GPA_READ | GPA_WRITE,
					 p->host.dma.fd, pages - INPROC_BASE + !i * 4096), 0);
	memset(second, 0, 8192);
	memcpy(first + 64, &in, sizeof(in));
	assert_int_equal(submit(p, &cmd), ORNIC_ST_OK);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_IDENTIFY, 0, &in, sizeof(in), &d, sizeof(d)),
			 ORNIC_ST_OK);
	assert_memory_equal(first + 64, &d, sizeof(d));
	/* a page that cannot be written */
	assert_int_equal(gpa_map(p->ep.gpa, 0, 4096, GPA_READ, p->host.dma.fd,
				 pages - INPROC_BASE), 0);
	cmd.out_addr = 0;
	assert_int_equal(submit(p, &cmd), ORNIC_ST_DMA_ERROR);
	assert_int_equal(syndrome(p), ENTRY(out_addr));
	cmd.out_addr = cmd.in_addr;
	/* the last byte of the input is in the second page */
	memset(first, 0, 4096);
	second[63] = 1;
	assert_int_equal(submit(p, &cmd), ORNIC_ST_RESERVED);
	assert_int_equal(syndrome(p), FIELD(4095));
}

/* ORN-ADM-2 */
static void test_full_completion_ring(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };
	struct ornic_rec *rec = dma_at(&p->host.dma, p->host.acq_rec);
	uint32_t entries = 1u << p->host.log_admin, before = inproc_counter(p, CNT_admin_commands);
	bool slept = false;
	int64_t wait;

	/* A host that does not publish its consumer index: the next command waits for it. */
	for (uint32_t i = 0; i < entries; i++)
		host_submit(&p->host, &cmd);
	for (int i = 0; i < 100; i++)
		inproc_turn(p);
	assert_int_equal(inproc_counter(p, CNT_admin_commands) - before, entries);
	p->host.done += entries;
	host_submit(&p->host, &cmd);
	for (int i = 0; i < 100; i++) {
		function_work(p->f);
		wait = engine_turn(&p->engine);
		/* The daemon sleeps in between, but only until it looks at the ring again. */
		if (!function_busy(p->f)) {
			assert_in_range(wait, 0, 1000000);
			slept |= wait > 0;
		}
	}
	assert_true(slept);
	assert_int_equal(inproc_counter(p, CNT_admin_commands) - before, entries);
	__atomic_store_n(&rec->host_index, htole32(p->host.done), __ATOMIC_RELEASE);
	assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
}

/* ORN-RNG-8, ORN-ERR-6 */
static void test_producer_too_far(void **state)
{
	struct inproc *p = *state;
	struct ornic_rec *rec = dma_at(&p->host.dma, p->host.asq_rec);

	rec->host_index = htole32(p->host.posted + (1u << p->host.log_admin) + 1);
	rec->notify = htole32(ORNIC_NOTIFY_ALWAYS);
	host_doorbell(&p->host, 0, ORNIC_DB_ADMIN, ORNIC_DB_ASQ, 0);
	inproc_turn(p);
	inproc_turn(p);
	fatal(p);
	assert_int_equal(le32toh(rec->notify), ORNIC_NOTIFY_ALWAYS);	/* not written any more */
}

static void test_producer_backwards(void **state)
{
	struct inproc *p = *state;
	struct ornic_rec *rec = dma_at(&p->host.dma, p->host.asq_rec);

	rec->host_index = htole32(p->host.posted - 1);
	host_doorbell(&p->host, 0, ORNIC_DB_ADMIN, ORNIC_DB_ASQ, 0);
	inproc_turn(p);
	inproc_turn(p);
	fatal(p);
}

static void test_consumer_too_far(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };
	struct ornic_rec *rec = dma_at(&p->host.dma, p->host.acq_rec);

	rec->host_index = htole32(p->host.done + 1);
	host_submit(&p->host, &cmd);
	inproc_turn(p);
	inproc_turn(p);
	fatal(p);
}

static void test_ring_unmapped(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };

	assert_int_equal(gpa_unmap(p->ep.gpa, INPROC_BASE, INPROC_BYTES), 0);
	host_submit(&p->host, &cmd);
	host_doorbell(&p->host, 0, ORNIC_DB_ADMIN, ORNIC_DB_ASQ, 0);
	inproc_turn(p);
	inproc_turn(p);
	fatal(p);
	host_reset(&p->host, ORNIC_REASON_FATAL);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), 0);
}

static void map(struct inproc *p, uint64_t addr, uint64_t end)
{
	if (addr < end)
		assert_int_equal(gpa_map(p->ep.gpa, addr, end - addr, GPA_READ | GPA_WRITE,
					 p->host.dma.fd, addr - INPROC_BASE), 0);
}

/* Each ring alone, and the record of the ACQ, which a doorbell makes the device read */
static void test_pieces_unmapped(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };
	uint64_t end = INPROC_BASE + INPROC_BYTES, before;

	p->host.acq_rec = dma_alloc(&p->host.dma, 4096, 4096);
	for (int i = 0; i < 4; i++) {
		uint64_t hole = i == 0 ? p->host.asq : i == 1 ? p->host.acq : p->host.acq_rec;

		host_reset(&p->host, ORNIC_REASON_USER);
		assert_int_equal(host_enable(&p->host), 0);
		assert_int_equal(host_eq_create(&p->host, &p->eq0, 4, 0,
						ORNIC_EQ_ASYNC | ORNIC_EQ_ADMIN), 0);
		inproc_turn(p);
		assert_int_equal(gpa_unmap(p->ep.gpa, INPROC_BASE, INPROC_BYTES), 0);
		map(p, INPROC_BASE, hole);
		map(p, hole + 4096, end);
		before = inproc_counter(p, CNT_admin_commands);
		if (i < 3)
			host_submit(&p->host, &cmd);
		else
			host_doorbell(&p->host, 0, ORNIC_DB_ADMIN, ORNIC_DB_ACQ, 0);
		for (int turn = 0; turn < 3; turn++)
			inproc_turn(p);
		fatal(p);
		assert_int_equal(inproc_counter(p, CNT_admin_commands), before);
		assert_int_equal(gpa_unmap(p->ep.gpa, INPROC_BASE, INPROC_BYTES), 0);
		map(p, INPROC_BASE, end);
	}
}

/* A reset while the device waits for room in the ACQ leaves no timer behind. */
static void test_reset_while_full(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };
	uint32_t entries = 1u << p->host.log_admin;

	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 2 * entries; i++) {
			if (i == entries)
				p->host.done += entries;
			host_submit(&p->host, &cmd);
			inproc_turn(p);
		}
		assert_int_equal(p->f->dev.timers.n, 2);
		host_reset(&p->host, ORNIC_REASON_USER);
		assert_int_equal(p->f->dev.timers.n, 0);
		assert_int_equal(host_enable(&p->host), 0);
	}
}

static void arm_admin(struct inproc *p, uint32_t index, uint32_t sn)
{
	struct ornic_rec *rec = dma_at(&p->host.dma, p->host.acq_rec);

	rec->arm = htole32((index & ORNIC_ARM_INDEX_MASK) | sn << ORNIC_ARM_SN_SHIFT |
			   (uint32_t)ORNIC_ARM_ANY << ORNIC_ARM_TYPE_SHIFT);
}

/*
 * The device reads the ASQ and writes the rest, and clients may map each for reading only. A ring
 * that cannot be used causes no ADMIN event, although one is due.
 */
static void test_pieces_read_only(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };
	uint64_t end = INPROC_BASE + INPROC_BYTES, hole[4];
	struct ornic_eqe eqe;

	p->host.asq_rec = dma_alloc(&p->host.dma, 4096, 4096);
	p->host.acq_rec = dma_alloc(&p->host.dma, 4096, 4096);
	hole[0] = p->host.asq;
	hole[1] = p->host.acq;
	hole[2] = p->host.asq_rec;
	hole[3] = p->host.acq_rec;
	for (int i = 0; i < 4; i++) {
		host_reset(&p->host, ORNIC_REASON_USER);
		assert_int_equal(host_enable(&p->host), 0);
		assert_int_equal(host_eq_create(&p->host, &p->eq0, 4, 0,
						ORNIC_EQ_ASYNC | ORNIC_EQ_ADMIN), 0);
		inproc_turn(p);
		arm_admin(p, p->host.done - 1, 1);
		assert_int_equal(gpa_unmap(p->ep.gpa, INPROC_BASE, INPROC_BYTES), 0);
		map(p, INPROC_BASE, hole[i]);
		assert_int_equal(gpa_map(p->ep.gpa, hole[i], 4096, GPA_READ, p->host.dma.fd,
					 hole[i] - INPROC_BASE), 0);
		map(p, hole[i] + 4096, end);
		host_submit(&p->host, &cmd);
		inproc_turn(p);
		if (i)
			fatal(p);
		else
			assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
		assert_true(host_next(&p->eq0, &eqe));
		assert_int_equal(eqe.type, i ? ORNIC_EV_DEVICE_FATAL : ORNIC_EV_ADMIN);
		assert_int_equal(gpa_unmap(p->ep.gpa, INPROC_BASE, INPROC_BYTES), 0);
		map(p, INPROC_BASE, end);
	}
}

/* A batch has at most eight commands; the device stays awake for the rest without a doorbell. */
static void test_batch(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };
	struct ornic_rec *rec = dma_at(&p->host.dma, p->host.asq_rec);
	uint64_t before = inproc_counter(p, CNT_admin_commands);

	for (int i = 0; i < 20; i++)
		host_submit(&p->host, &cmd);
	for (int i = 1; i <= 3; i++) {
		rec->notify = 0;
		function_work(p->f);
		assert_int_equal(inproc_counter(p, CNT_admin_commands) - before,
				 i < 3 ? i * 8 : 20);
		assert_int_equal(function_busy(p->f), i < 3);
		assert_int_equal(le32toh(rec->notify), i < 3 ? 0 : p->host.posted);
	}
}

/* A driver that does not ring the doorbell before the device has fallen asleep loses nothing. */
static void test_first_sleep(void **state)
{
	struct inproc *p = *state;
	struct ornic_rec *rec = dma_at(&p->host.dma, p->host.asq_rec);

	host_reset(&p->host, ORNIC_REASON_USER);
	assert_int_equal(host_enable(&p->host), 0);
	assert_true(function_busy(p->f));
	inproc_turn(p);
	assert_false(function_busy(p->f));
	assert_int_equal(rec->notify, 0);
}

/* No command is lost, for every interleaving of post and sleep (ORN-RNG-6). */
static void test_sleep(void **state)
{
	struct inproc *p = *state;
	struct ornic_rec *rec = dma_at(&p->host.dma, p->host.asq_rec);
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };

	inproc_turn(p);
	assert_int_equal(le32toh(rec->notify), p->host.posted);
	for (int i = 0; i < 300; i++) {
		host_submit(&p->host, &cmd);
		assert_true(function_busy(p->f));
		assert_int_equal(host_complete(&p->host), ORNIC_ST_OK);
		inproc_turn(p);
	}
}

/* Without EQ 0 an arm waits until there is one. */
static void test_armed_before_eq(void **state)
{
	struct inproc *p = *state;
	struct ornic_eqe eqe;

	host_reset(&p->host, ORNIC_REASON_USER);
	assert_int_equal(host_enable(&p->host), 0);
	arm_admin(p, 0, 1);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0), 0);
	assert_int_equal(host_eq_create(&p->host, &p->eq0, 4, 0, ORNIC_EQ_ASYNC | ORNIC_EQ_ADMIN),
			 0);
	assert_true(host_wait(&p->eq0, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_ADMIN);
}

/* ORN-ADM-6, ORN-RNG-9 */
static void test_event(void **state)
{
	struct inproc *p = *state;
	struct ornic_admin_cmd cmd = { .opcode = htole16(ORNIC_OP_NOP) };
	struct ornic_eqe eqe;

	assert_int_equal(submit(p, &cmd), 0);
	assert_false(host_next(&p->eq0, &eqe));
	arm_admin(p, p->host.done + 1, 1);
	assert_int_equal(submit(p, &cmd), 0);
	assert_false(host_next(&p->eq0, &eqe));
	assert_int_equal(submit(p, &cmd), 0);
	assert_true(host_next(&p->eq0, &eqe));
	assert_int_equal(eqe.type, ORNIC_EV_ADMIN);
	assert_int_equal(eqe.number | eqe.owner | eqe.syndrome | eqe.info1, 0);
	assert_int_equal(le32toh(eqe.info0), le32toh(((struct ornic_rec *)
			 dma_at(&p->host.dma, p->host.acq_rec))->arm));
	assert_int_equal(submit(p, &cmd), 0);
	assert_false(host_next(&p->eq0, &eqe));
	arm_admin(p, p->host.done, 2);
	assert_int_equal(submit(p, &cmd), 0);
	assert_true(host_next(&p->eq0, &eqe));
	/* The doorbell makes the device look for a completion that it has already written. */
	inproc_turn(p);
	arm_admin(p, p->host.done - 1, 3);
	inproc_turn(p);
	assert_false(host_next(&p->eq0, &eqe));
	host_doorbell(&p->host, 0, ORNIC_DB_ADMIN, ORNIC_DB_ACQ, 0);
	assert_true(host_next(&p->eq0, &eqe));
}

#define READY(t)	cmocka_unit_test_setup_teardown(t, inproc_setup_ready, inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		READY(test_many_laps),
		READY(test_entry_rules),
		READY(test_sizes),
		READY(test_output_sizes),
		READY(test_payload_in_pieces),
		READY(test_full_completion_ring),
		READY(test_producer_too_far),
		READY(test_producer_backwards),
		READY(test_consumer_too_far),
		READY(test_ring_unmapped),
		READY(test_pieces_unmapped),
		READY(test_reset_while_full),
		READY(test_pieces_read_only),
		READY(test_batch),
		READY(test_first_sleep),
		READY(test_sleep),
		READY(test_armed_before_eq),
		READY(test_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
