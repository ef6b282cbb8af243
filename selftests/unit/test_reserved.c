// SPDX-License-Identifier: GPL-2.0
/*
 * All undefined encodings: reserved ones and those of the vendor's ranges are rejected; bytes
 * that no clause defines are zero or unchanged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inproc.h"

#include <ornic/dm.h>
#include <ornic/identify.h>
#include <ornic/pd.h>
#include <ornic/port.h>
#include <ornic/srq.h>
#include <ornic/stats.h>
#include <ornic/steer.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

static const uint16_t opcodes[] = {
	ORNIC_OP_NOP, ORNIC_OP_IDENTIFY, ORNIC_OP_SET_FEATURES, ORNIC_OP_HOST_INFO,
	ORNIC_OP_STAT_NAMES, ORNIC_OP_STAT_READ, ORNIC_OP_CLOCK_READ, ORNIC_OP_EQ_CREATE,
	ORNIC_OP_EQ_MODIFY, ORNIC_OP_EQ_QUERY, ORNIC_OP_EQ_DESTROY, ORNIC_OP_PD_CREATE,
	ORNIC_OP_PD_DESTROY, ORNIC_OP_XRCD_CREATE, ORNIC_OP_XRCD_DESTROY, ORNIC_OP_KEY_CREATE,
	ORNIC_OP_KEY_MODIFY, ORNIC_OP_KEY_QUERY, ORNIC_OP_KEY_DESTROY, ORNIC_OP_DM_CREATE,
	ORNIC_OP_DM_DESTROY, ORNIC_OP_CQ_CREATE, ORNIC_OP_CQ_MODIFY, ORNIC_OP_CQ_QUERY,
	ORNIC_OP_CQ_DESTROY, ORNIC_OP_CQ_RESIZE, ORNIC_OP_SRQ_CREATE, ORNIC_OP_SRQ_MODIFY,
	ORNIC_OP_SRQ_QUERY, ORNIC_OP_SRQ_DESTROY, ORNIC_OP_SRQ_RESIZE, ORNIC_OP_QP_CREATE,
	ORNIC_OP_QP_MODIFY, ORNIC_OP_QP_QUERY, ORNIC_OP_QP_DESTROY, ORNIC_OP_PORT_MODIFY,
	ORNIC_OP_PORT_QUERY, ORNIC_OP_SET_GID, ORNIC_OP_GET_GID, ORNIC_OP_RULE_CREATE,
	ORNIC_OP_RULE_DESTROY, ORNIC_OP_RSS_CREATE, ORNIC_OP_RSS_DESTROY,
	ORNIC_OP_COUNTER_CREATE, ORNIC_OP_COUNTER_DESTROY,
};

static bool is_known(uint16_t opcode)
{
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++)
		if (opcodes[i] == opcode)
			return true;
	return false;
}

/* ORN-GEN-3, ORN-GEN-4: command classes 0x80 to 0xff are the vendor's. */
static void test_opcodes(void **state)
{
	struct inproc *p = *state;

	for (uint32_t op = 0; op < 0x10000; op++)
		if (!is_known(op))
			assert_int_equal(host_exec(&p->host, op, 0, NULL, 0, NULL, 0),
					 ORNIC_ST_BAD_OPCODE);
}

/* Each value of the byte at @off except those of @good makes the command fail. */
static void sweep(struct inproc *p, uint16_t opcode, uint32_t number, void *cmd, size_t len,
		  size_t off, const uint8_t *good, size_t ngood)
{
	uint8_t *byte = (uint8_t *)cmd + off, old = *byte;

	for (uint32_t v = 0; v < 256; v++) {
		if (ngood && memchr(good, v, ngood))
			continue;
		*byte = v;
		if (!host_exec(&p->host, opcode, number, cmd, len, NULL, 0))
			fail_msg("opcode %#x: byte %zu = %#x is accepted", opcode, off, v);
	}
	*byte = old;
	assert_int_equal(host_exec(&p->host, opcode, number, cmd, len, NULL, 0), ORNIC_ST_OK);
}

#define SWEEP(p, op, number, cmd, off, ...) do {				\
	static const uint8_t good_[] = { __VA_ARGS__ };				\
										\
	sweep(p, ORNIC_OP_##op, number, &(cmd), sizeof(cmd), off, good_, sizeof(good_));	\
} while (0)

/* Each bit of the @bytes at @off except those of @good makes the command fail. */
static void bits(struct inproc *p, uint16_t opcode, uint32_t number, void *cmd, size_t len,
		 size_t off, size_t bytes, uint64_t good)
{
	for (uint32_t bit = 0; bit < 8 * bytes; bit++) {
		uint8_t *byte = (uint8_t *)cmd + off + bit / 8, old = *byte;

		if (bit < 64 && good >> bit & 1)
			continue;
		*byte |= 1u << bit % 8;
		if (!host_exec(&p->host, opcode, number, cmd, len, NULL, 0))
			fail_msg("opcode %#x: bit %u from byte %zu is accepted", opcode, bit, off);
		*byte = old;
	}
	assert_int_equal(host_exec(&p->host, opcode, number, cmd, len, NULL, 0), ORNIC_ST_OK);
}

#define BITS(p, op, number, cmd, member, good)					\
	bits(p, ORNIC_OP_##op, number, &(cmd), sizeof(cmd),			\
	     (char *)&(cmd).member - (char *)&(cmd), sizeof((cmd).member), good)

/* ORN-GEN-3 */
static void test_queues(void **state)
{
	struct inproc *p = *state;
	struct ornic_eq_create_cmd eq = {
		.log_entries = 4, .vector = htole16(1), .classes = htole64(ORNIC_EQ_COMPLETION),
		.record = htole64(host_record(&p->host)),
		.pages = host_contiguous(dma_alloc(&p->host.dma, 1024, 4096)),
	};
	struct ornic_cq_create_cmd cq = {
		.log_entries = 4, .eq = htole32(p->eq1.number), .dbpage = htole32(1),
		.record = eq.record, .pages = eq.pages,
	};
	struct ornic_srq_create_cmd srq = {
		.log_entries = 4, .stride = 6, .pd = htole32(p->pd), .max_sge = htole16(1),
		.dbpage = htole32(1), .record = eq.record, .pages = eq.pages,
	};
	struct ornic_qp_create_cmd qp;
	struct host_qp h;

	BITS(p, EQ_CREATE, 0, eq, classes, ORNIC_EQ_COMPLETION);
	SWEEP(p, EQ_CREATE, 0, eq, offsetof(struct ornic_eq_create_cmd, pages.level), 0);
	BITS(p, CQ_CREATE, 0, cq, flags, ORNIC_CQ_F_IGNORE_OVERRUN | ORNIC_CQ_F_TIMESTAMP);
	SWEEP(p, SRQ_CREATE, 0, srq, offsetof(struct ornic_srq_create_cmd, type),
	      ORNIC_SRQT_BASIC);
	host_qp_template(&p->host, &h, ORNIC_QPT_UD, 4, p->pd, p->cq.number, p->cq.number, &qp);
	SWEEP(p, QP_CREATE, 0, qp, offsetof(struct ornic_qp_create_cmd, type), ORNIC_QPT_RC,
	      ORNIC_QPT_UC, ORNIC_QPT_UD);
	SWEEP(p, QP_CREATE, 0, qp, offsetof(struct ornic_qp_create_cmd, transport),
	      ORNIC_TP_ROCEV2);
	BITS(p, QP_CREATE, 0, qp, flags, ORNIC_QP_F_SIG_ALL | ORNIC_QP_F_PRIVILEGED |
	     ORNIC_QP_F_BLOCK_MC_LOOP);
}

/* ORN-GEN-3 */
static void test_memory_and_port(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
	struct inproc *p = *state;
	struct ornic_key_create_cmd key = {
		.kind = ORNIC_KEY_REGION, .pd = htole32(p->pd), .length = htole64(4096),
		.access = htole32(ORNIC_ACCESS_LOCAL_WRITE), .pages = host_contiguous(INPROC_BASE),
	};
	struct ornic_gid_entry gid = {
		.port = 1, .type = ORNIC_GID_ROCEV2, .flags = htole32(ORNIC_GID_VALID),
	};
	struct ornic_port_modify_cmd port = { .mask = htole32(ORNIC_PORT_M_ADMIN) };
	struct ornic_stat_read_cmd stat = { .scope = ORNIC_STAT_PORT, .number = htole32(1) };

	SWEEP(p, KEY_CREATE, 0, key, offsetof(struct ornic_key_create_cmd, kind),
	      ORNIC_KEY_REGION);
	BITS(p, KEY_CREATE, 0, key, access, ORNIC_ACCESS_LOCAL_WRITE | ORNIC_ACCESS_REMOTE_WRITE |
	     ORNIC_ACCESS_REMOTE_READ | ORNIC_ACCESS_REMOTE_ATOMIC | ORNIC_ACCESS_MW_BIND |
	     ORNIC_ACCESS_ZERO_BASED | ORNIC_ACCESS_FLUSH_GLOBAL | ORNIC_ACCESS_RELAXED_ORDERING);
	host_gid_ipv4(gid.gid, 0x0a000001);
	memcpy(gid.smac, mac, sizeof(mac));
	SWEEP(p, SET_GID, 1, gid, offsetof(struct ornic_gid_entry, type), ORNIC_GID_ROCEV2);
	BITS(p, SET_GID, 1, gid, flags, ORNIC_GID_VALID | ORNIC_GID_VLAN);
	BITS(p, PORT_MODIFY, 1, port, mask, ORNIC_PORT_M_ADMIN | ORNIC_PORT_M_MAC |
	     ORNIC_PORT_M_FRAME);
	SWEEP(p, STAT_READ, 0, stat, offsetof(struct ornic_stat_read_cmd, scope),
	      ORNIC_STAT_PORT);
}

/* ORN-GEN-3 */
static void test_modify(void **state)
{
	struct inproc *p = *state;
	struct ornic_qp_modify_cmd init = {
		.mask = htole32(ORNIC_QPM_STATE | ORNIC_QPM_PORT | ORNIC_QPM_QKEY),
		.next_state = ORNIC_QPS_INIT, .port = 1,
	};
	struct ornic_moderate_cmd cq = { 0 };
	struct host_qp qp;

	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_UD, 4, p->pd, p->cq.number,
					p->cq.number), ORNIC_ST_OK);
	SWEEP(p, QP_MODIFY, qp.number, init, offsetof(struct ornic_qp_modify_cmd, next_state),
	      ORNIC_QPS_RESET, ORNIC_QPS_INIT);
	init.next_state = ORNIC_QPS_INIT;
	bits(p, ORNIC_OP_QP_MODIFY, qp.number, &init, sizeof(init),
	     offsetof(struct ornic_qp_modify_cmd, mask), 4, 0x1fffff | ORNIC_QPM_COUNTER_SET);
	BITS(p, CQ_MODIFY, p->cq.number, cq, mask, ORNIC_MODERATE_TIMING | ORNIC_MODERATE_TARGET);
}

#define MUST_BE_ZERO(p, op, number, cmd, member)	BITS(p, op, number, cmd, member, 0)

/* ORN-ADM-11: all bytes that must be zero, of commands that create queues */
static void test_zero_of_queues(void **state)
{
	struct inproc *p = *state;
	struct ornic_eq_create_cmd eq = {
		.log_entries = 4, .vector = htole16(1), .classes = htole64(ORNIC_EQ_COMPLETION),
		.record = htole64(host_record(&p->host)),
		.pages = host_contiguous(dma_alloc(&p->host.dma, 1024, 4096)),
	};
	struct ornic_cq_create_cmd cq = {
		.log_entries = 4, .eq = htole32(p->eq1.number), .record = eq.record,
		.pages = eq.pages,
	};
	struct ornic_srq_create_cmd srq = {
		.log_entries = 4, .stride = 6, .pd = htole32(p->pd), .max_sge = htole16(1),
		.record = eq.record, .pages = eq.pages,
	};
	struct ornic_qp_create_cmd qp;
	struct host_qp h;

	MUST_BE_ZERO(p, EQ_CREATE, 0, eq, flags);
	MUST_BE_ZERO(p, EQ_CREATE, 0, eq, want);
	MUST_BE_ZERO(p, EQ_CREATE, 0, eq, mod_count);
	MUST_BE_ZERO(p, EQ_CREATE, 0, eq, mod_period_us);
	MUST_BE_ZERO(p, EQ_CREATE, 0, eq, mbz);
	MUST_BE_ZERO(p, CQ_CREATE, 0, cq, mbz0);
	MUST_BE_ZERO(p, CQ_CREATE, 0, cq, want);
	MUST_BE_ZERO(p, CQ_CREATE, 0, cq, mbz1);
	MUST_BE_ZERO(p, SRQ_CREATE, 0, srq, xrcd);
	MUST_BE_ZERO(p, SRQ_CREATE, 0, srq, cq);
	MUST_BE_ZERO(p, SRQ_CREATE, 0, srq, mbz0);
	MUST_BE_ZERO(p, SRQ_CREATE, 0, srq, want);
	MUST_BE_ZERO(p, SRQ_CREATE, 0, srq, mbz1);
	host_qp_template(&p->host, &h, ORNIC_QPT_RC, 4, p->pd, p->cq.number, p->cq.number, &qp);
	MUST_BE_ZERO(p, QP_CREATE, 0, qp, port);
	MUST_BE_ZERO(p, QP_CREATE, 0, qp, mbz0);
	MUST_BE_ZERO(p, QP_CREATE, 0, qp, xrcd);
	MUST_BE_ZERO(p, QP_CREATE, 0, qp, max_lso_header);
	MUST_BE_ZERO(p, QP_CREATE, 0, qp, want);
	MUST_BE_ZERO(p, QP_CREATE, 0, qp, cc_profile);
	MUST_BE_ZERO(p, QP_CREATE, 0, qp, mbz1);
}

/* ORN-ADM-11: the same for domains, memory and the port */
static void test_zero_of_others(void **state)
{
	struct inproc *p = *state;
	struct ornic_pd_create_cmd pd = { 0 };
	struct ornic_dm_create_cmd dm = { .bytes = htole64(1) };
	struct ornic_key_create_cmd region = { .kind = ORNIC_KEY_REGION, .pd = htole32(p->pd) };
	struct ornic_key_create_cmd all = { .kind = ORNIC_KEY_PHYS_ALL };
	struct ornic_key_create_cmd window = { .kind = ORNIC_KEY_MW1, .pd = region.pd };
	struct ornic_identify_cmd id = { .page = ORNIC_ID_DEVICE };
	struct ornic_stat_read_cmd stat = { 0 };
	struct ornic_port_modify_cmd port = { 0 };
	struct ornic_gid_entry gid = { .port = 1 };
	struct ornic_gid_get_cmd get = { 0 };

	MUST_BE_ZERO(p, PD_CREATE, 0, pd, want);
	MUST_BE_ZERO(p, XRCD_CREATE, 0, pd, want);
	MUST_BE_ZERO(p, DM_CREATE, 0, dm, mbz);
	MUST_BE_ZERO(p, DM_CREATE, 0, dm, want);
	MUST_BE_ZERO(p, KEY_CREATE, 0, region, mbz0);
	MUST_BE_ZERO(p, KEY_CREATE, 0, region, max_pages);
	MUST_BE_ZERO(p, KEY_CREATE, 0, region, pages.mbz);
	MUST_BE_ZERO(p, KEY_CREATE, 0, region, dm);
	MUST_BE_ZERO(p, KEY_CREATE, 0, region, mbz1);
	MUST_BE_ZERO(p, KEY_CREATE, 0, region, dm_offset);
	MUST_BE_ZERO(p, KEY_CREATE, 0, region, want);
	MUST_BE_ZERO(p, KEY_CREATE, 0, region, mbz2);
	MUST_BE_ZERO(p, KEY_CREATE, 0, all, iova);
	MUST_BE_ZERO(p, KEY_CREATE, 0, all, length);
	MUST_BE_ZERO(p, KEY_CREATE, 0, all, pages);
	MUST_BE_ZERO(p, KEY_CREATE, 0, window, flags);
	MUST_BE_ZERO(p, KEY_CREATE, 0, window, access);
	MUST_BE_ZERO(p, KEY_CREATE, 0, window, max_pages);
	MUST_BE_ZERO(p, KEY_CREATE, 0, window, iova);
	MUST_BE_ZERO(p, KEY_CREATE, 0, window, length);
	MUST_BE_ZERO(p, KEY_CREATE, 0, window, pages);
	MUST_BE_ZERO(p, IDENTIFY, 0, id, mbz);
	MUST_BE_ZERO(p, STAT_READ, 0, stat, clear);
	MUST_BE_ZERO(p, STAT_READ, 0, stat, mbz);
	MUST_BE_ZERO(p, PORT_MODIFY, 1, port, flags);
	MUST_BE_ZERO(p, PORT_MODIFY, 1, port, mbz);
	MUST_BE_ZERO(p, SET_GID, 1, gid, mbz);
	MUST_BE_ZERO(p, GET_GID, 1, get, mbz);
}

/* ORN-ADM-11: the same for commands that change an object */
static void test_zero_of_changes(void **state)
{
	struct inproc *p = *state;
	struct ornic_moderate_cmd moderate = { 0 };
	struct ornic_qp_modify_cmd qp = {
		.mask = htole32(ORNIC_QPM_STATE), .next_state = ORNIC_QPS_RESET,
	};
	struct ornic_key_modify_cmd key = { .mask = htole32(ORNIC_KEYM_ACCESS) };
	struct ornic_cq_resize_cmd resize = {
		.log_entries = 6, .record = htole64(host_record(&p->host)),
		.pages = host_contiguous(dma_alloc(&p->host.dma, 4096, 4096)),
	};
	struct ornic_srq_create_cmd srq = {
		.log_entries = 4, .stride = 6, .pd = htole32(p->pd), .max_sge = htole16(1),
		.record = resize.record, .pages = resize.pages,
	};
	struct ornic_srq_resize_cmd srq_resize = {
		.log_entries = 4, .record = resize.record, .pages = resize.pages,
	};
	struct ornic_srq_modify_cmd srq_modify = { 0 };
	struct host_qp h;
	uint32_t n;

	MUST_BE_ZERO(p, EQ_MODIFY, p->eq1.number, moderate, mbz);
	MUST_BE_ZERO(p, CQ_MODIFY, p->cq.number, moderate, mbz);
	MUST_BE_ZERO(p, CQ_RESIZE, p->cq.number, resize, mbz);
	assert_int_equal(host_exec(&p->host, ORNIC_OP_SRQ_CREATE, 0, &srq, sizeof(srq), NULL, 0),
			 ORNIC_ST_OK);
	n = host_number(&p->host);
	MUST_BE_ZERO(p, SRQ_MODIFY, n, srq_modify, mbz);
	MUST_BE_ZERO(p, SRQ_RESIZE, n, srq_resize, mbz);
	MUST_BE_ZERO(p, SRQ_RESIZE, n, srq_resize, limit);
	assert_int_equal(host_qp_create(&p->host, &h, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), ORNIC_ST_OK);
	MUST_BE_ZERO(p, QP_MODIFY, h.number, qp, mbz0);
	MUST_BE_ZERO(p, QP_MODIFY, h.number, qp, mbz1);
	MUST_BE_ZERO(p, QP_MODIFY, h.number, qp, mbz2);
	MUST_BE_ZERO(p, QP_MODIFY, h.number, qp, mbz3);
	assert_int_equal(host_key_create(&p->host, p->pd, INPROC_BASE, 8192, 0, &n), ORNIC_ST_OK);
	MUST_BE_ZERO(p, KEY_MODIFY, n, key, mbz);
	MUST_BE_ZERO(p, KEY_MODIFY, n, key, attr.mbz0);
	MUST_BE_ZERO(p, KEY_MODIFY, n, key, attr.mbz1);
	MUST_BE_ZERO(p, KEY_MODIFY, n, key, attr.want);
	MUST_BE_ZERO(p, KEY_MODIFY, n, key, attr.mbz2);
}

/* ORN-GEN-4: Identify pages, registers */
static void test_vendor(void **state)
{
	struct inproc *p = *state;
	struct ornic_identify_cmd cmd = { 0 };
	struct ornic_identify_device id;

	for (uint32_t page = 0xc0; page <= 0xff; page++) {
		cmd.page = page;
		assert_int_equal(host_exec(&p->host, ORNIC_OP_IDENTIFY, 0, &cmd, sizeof(cmd), &id,
					   sizeof(id)), ORNIC_ST_BAD_PARAM);
	}
	for (uint32_t reg = 0xc00; reg < 0x1000; reg += 4) {
		p->host.bus.write(p, reg, 4, UINT32_MAX);
		assert_int_equal(p->host.bus.read(p, reg, 4), 0);
	}
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_READY);
}

/* ORN-GEN-4: bits 48 to 63 of feature word 1, and ORN-GEN-3: all others of it */
static void test_features(void **state)
{
	struct inproc *p = *state;
	struct ornic_features_cmd cmd = { 0 };

	assert_int_equal(host_enable(&p->host), 0);
	for (uint32_t bit = 0; bit < 64; bit++) {
		cmd.features1 = htole64(1ull << bit);
		assert_int_equal(host_exec(&p->host, ORNIC_OP_SET_FEATURES, 0, &cmd, sizeof(cmd),
					   NULL, 0), ORNIC_ST_UNSUPPORTED);
	}
}

/* Return the result of a work request of @opcode and @flags on a new queue pair */
static uint8_t work(struct inproc *p, uint8_t opcode, uint8_t flags)
{
	uint64_t next = p->host.dma.next;
	struct ornic_wqe_ctrl *ctrl;
	struct ornic_cqe cqe;
	struct host_qp qp;

	assert_int_equal(host_qp_create(&p->host, &qp, ORNIC_QPT_RC, 2, p->pd, p->cq.number,
					p->cq.number), ORNIC_ST_OK);
	inproc_connect_self(p, &qp);
	ctrl = host_sq_slot(&qp);
	ctrl->opcode = opcode;
	ctrl->flags = flags;
	host_sq_publish(&qp);
	assert_true(host_wait(&p->cq, &cqe));
	assert_int_equal(host_exec(&p->host, ORNIC_OP_QP_DESTROY, qp.number, NULL, 0, NULL, 0),
			 ORNIC_ST_OK);
	memset(dma_at(&p->host.dma, INPROC_BASE + next), 0, p->host.dma.next - next);
	p->host.dma.next = next;
	return cqe.status;
}

/* ORN-GEN-3, ORN-GEN-4: opcodes 0xe0 to 0xef are the vendor's. */
static void test_work(void **state)
{
	static const uint8_t good[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 15, 0x20, 0x2f };
	struct inproc *p = *state;

	for (uint32_t op = 0; op < 256; op++)
		if (!memchr(good, op, sizeof(good)))
			assert_int_equal(work(p, op, ORNIC_WQE_SIGNALED), ORNIC_WC_LOC_QP_OP_ERR);
	assert_int_equal(work(p, ORNIC_WR_NOP, ORNIC_WQE_SIGNALED), ORNIC_WC_SUCCESS);
	for (uint32_t bit = 5; bit < 8; bit++)
		assert_int_equal(work(p, ORNIC_WR_NOP, ORNIC_WQE_SIGNALED | 1u << bit),
				 ORNIC_WC_LOC_QP_OP_ERR);
}

static void all_zero(const void *mem, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(((const uint8_t *)mem)[i], 0);
}

#define ZERO(s, member)	all_zero(&(s).member, sizeof((s).member))

/* Query into a buffer full of garbage: the device leaves or clears all undefined bytes. */
static void query(struct inproc *p, uint16_t opcode, uint32_t number, const void *in,
		  uint16_t in_len, void *out, uint16_t out_len)
{
	memset(dma_at(&p->host.dma, p->host.payload + 4096), 0xaa, 4096);
	assert_int_equal(host_exec(&p->host, opcode, number, in, in_len, out, out_len),
			 ORNIC_ST_OK);
	ZERO(p->host.cpl, res0);
	ZERO(p->host.cpl, res1);
	ZERO(p->host.cpl, res2);
	ZERO(p->host.cpl, res3);
	if (out_len > ORNIC_ADMIN_INLINE)
		ZERO(p->host.cpl, inline_out);
	for (uint32_t i = out_len; i < 4096; i++)
		assert_int_equal(((uint8_t *)dma_at(&p->host.dma, p->host.payload + 4096))[i],
				 0xaa);
}

/* ORN-GEN-8 */
static void test_undefined_bytes(void **state)
{
	struct inproc *p = *state;
	struct ornic_status_block *status = dma_at(&p->host.dma, p->host.status);
	struct ornic_identify_cmd page = { .page = ORNIC_ID_DEVICE };
	struct ornic_identify_transport transport;
	struct ornic_identify_device device;
	struct ornic_identify_port port;
	struct ornic_qp_query_rsp qp;
	struct host_qp h;
	struct ornic_eqe eqe;
	int events = 0;

	query(p, ORNIC_OP_IDENTIFY, 0, &page, sizeof(page), &device, sizeof(device));
	ZERO(device, features1);
	ZERO(device, res);
	query(p, ORNIC_OP_PORT_QUERY, 1, NULL, 0, &port, sizeof(port));
	ZERO(port, res0);
	ZERO(port, res1);
	ZERO(port, res2);
	page.page = ORNIC_ID_TRANSPORT;
	query(p, ORNIC_OP_IDENTIFY, 0, &page, sizeof(page), &transport, sizeof(transport));
	ZERO(transport, res0);
	ZERO(transport, res1);
	assert_int_equal(host_qp_create(&p->host, &h, ORNIC_QPT_RC, 4, p->pd, p->cq.number,
					p->cq.number), ORNIC_ST_OK);
	query(p, ORNIC_OP_QP_QUERY, h.number, NULL, 0, &qp, sizeof(qp));
	ZERO(qp, res0);
	ZERO(qp, res1);
	query(p, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0);
	ZERO(p->host.cpl, inline_out);
	ZERO(*status, res);
	assert_int_equal(host_port_up(&p->host, 0), ORNIC_ST_OK);
	inproc_turn(p);
	for (; host_next(&p->eq0, &eqe); events++) {
		ZERO(eqe, data);
		ZERO(eqe, res0);
		ZERO(eqe, res1);
	}
	assert_int_not_equal(events, 0);
}

#define READY(t)	cmocka_unit_test_setup_teardown(t, inproc_setup_ready, inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		READY(test_opcodes), READY(test_queues), READY(test_memory_and_port),
		READY(test_modify), READY(test_vendor), READY(test_work),
		READY(test_undefined_bytes), READY(test_zero_of_queues),
		READY(test_zero_of_others), READY(test_zero_of_changes),
		cmocka_unit_test_setup_teardown(test_features, inproc_setup, inproc_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
