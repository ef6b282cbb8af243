// SPDX-License-Identifier: GPL-2.0
/*
 * packet/bth.h, wire.h, ecn.h: the numbers of the standards, and the functions for numbers in
 * headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/numbers.h"
#include "packet/bth.h"
#include "packet/ecn.h"
#include "packet/wire.h"

/* Numbers of IBTA volume 1, chapter 9, and of annexes A17 (RoCEv2) and A19 (FLUSH) */
static void test_ibta(void **state)
{
	static const struct number numbers[] = {
		NUMBER(BTH_RC_SEND_FIRST, 0x00), NUMBER(BTH_RC_SEND_MIDDLE, 0x01),
		NUMBER(BTH_RC_SEND_LAST, 0x02), NUMBER(BTH_RC_SEND_LAST_IMM, 0x03),
		NUMBER(BTH_RC_SEND_ONLY, 0x04), NUMBER(BTH_RC_SEND_ONLY_IMM, 0x05),
		NUMBER(BTH_RC_WRITE_FIRST, 0x06), NUMBER(BTH_RC_WRITE_MIDDLE, 0x07),
		NUMBER(BTH_RC_WRITE_LAST, 0x08), NUMBER(BTH_RC_WRITE_LAST_IMM, 0x09),
		NUMBER(BTH_RC_WRITE_ONLY, 0x0a), NUMBER(BTH_RC_WRITE_ONLY_IMM, 0x0b),
		NUMBER(BTH_RC_READ_REQUEST, 0x0c), NUMBER(BTH_RC_READ_RESP_FIRST, 0x0d),
		NUMBER(BTH_RC_READ_RESP_MIDDLE, 0x0e), NUMBER(BTH_RC_READ_RESP_LAST, 0x0f),
		NUMBER(BTH_RC_READ_RESP_ONLY, 0x10), NUMBER(BTH_RC_ACK, 0x11),
		NUMBER(BTH_RC_ATOMIC_ACK, 0x12), NUMBER(BTH_RC_COMPARE_SWAP, 0x13),
		NUMBER(BTH_RC_FETCH_ADD, 0x14), NUMBER(BTH_RC_SEND_LAST_INV, 0x16),
		NUMBER(BTH_RC_SEND_ONLY_INV, 0x17), NUMBER(BTH_RC_FLUSH, 0x1c),
		NUMBER(BTH_RC_ATOMIC_WRITE, 0x1d), NUMBER(BTH_UD_SEND_ONLY, 0x64),
		NUMBER(BTH_UD_SEND_ONLY_IMM, 0x65), NUMBER(BTH_CNP, 0x81),
		NUMBER(NAK_PSN_SEQUENCE, 0), NUMBER(NAK_INVALID_REQUEST, 1),
		NUMBER(NAK_REMOTE_ACCESS, 2), NUMBER(NAK_REMOTE_OPERATIONAL, 3),
		NUMBER(NAK_INVALID_RD_REQUEST, 4), NUMBER(BTH_TRANSPORT_MASK, 0xe0),
		NUMBER(BTH_TRANSPORT_RC, 0x00), NUMBER(BTH_TRANSPORT_UC, 0x20),
		NUMBER(BTH_TRANSPORT_UD, 0x60), NUMBER(BTH_TRANSPORT_XRC, 0xa0),
		NUMBER(BTH_DEFAULT_PKEY, 0xffff), NUMBER(BTH_PKEY_PARTITION, 0x7fff),
		NUMBER(BTH_PSN_BITS, 24), NUMBER(BTH_PSN_MASK, 0xffffffu),
		NUMBER(BTH_GSI_QPN, 1), NUMBER(BTH_MULTICAST_QPN, 0xffffff),
		NUMBER(BTH_GSI_QKEY, 0x80010000u), NUMBER(AETH_KIND_MASK, 0x60),
		NUMBER(AETH_ACK, 0x00), NUMBER(AETH_RNR_NAK, 0x20), NUMBER(AETH_NAK, 0x60),
		NUMBER(AETH_VALUE_MASK, 0x1f), NUMBER(AETH_NO_CREDITS, 0x1f),
		NUMBER(FETH_TYPE_MASK, 0xfu), NUMBER(FETH_LEVEL_SHIFT, 4),
		NUMBER(FETH_LEVEL_MASK, 0x3u), NUMBER(BTH_BYTES, 12),
		NUMBER(BTH_SOLICITED, 0x80), NUMBER(BTH_MIGREQ, 0x40), NUMBER(BTH_PAD_SHIFT, 4),
		NUMBER(BTH_PAD_MASK, 0x3), NUMBER(BTH_TVER_MASK, 0xf), NUMBER(BTH_FECN, 0x80),
		NUMBER(BTH_BECN, 0x40), NUMBER(BTH_ACKREQ, 0x80), NUMBER(ROCE_UDP_PORT, 4791),
		NUMBER(ICRC_BYTES, 4),
	};

	(void)state;
	NUMBERS_CHECK(numbers);
}

/* Numbers of IEEE 802.3 and 802.1Q, RFC 791, 8200, 768, 9293 and 3168 */
static void test_ieee_ietf(void **state)
{
	static const struct number numbers[] = {
		NUMBER(ETH_BYTES, 14), NUMBER(ETH_MIN_FRAME, 60), NUMBER(VLAN_BYTES, 4),
		NUMBER(IPV4_BYTES, 20), NUMBER(IPV6_BYTES, 40), NUMBER(IPV4_FRAGMENT, 0x3fff),
		NUMBER(UDP_BYTES, 8), NUMBER(TCP_BYTES, 20), NUMBER(ETHERTYPE_VLAN, 0x8100),
		NUMBER(ETHERTYPE_SVLAN, 0x88a8), NUMBER(ETHERTYPE_IPV4, 0x0800),
		NUMBER(ETHERTYPE_IPV6, 0x86dd), NUMBER(ECN_MASK, 0x3), NUMBER(ECN_NOT_ECT, 0x0),
		NUMBER(ECN_ECT0, 0x2), NUMBER(ECN_CE, 0x3),
	};

	(void)state;
	NUMBERS_CHECK(numbers);
}

/* Transport and operation of each opcode; operations 0x0d to 0x12 are answers. */
static void test_opcodes(void **state)
{
	(void)state;
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		uint32_t operation = opcode % 32;

		assert_int_equal(bth_operation(opcode), operation);
		assert_int_equal(bth_is_answer(opcode), operation >= 0x0d && operation <= 0x12);
	}
}

/* Full and limited members of the default partition, and no others */
static void test_pkeys(void **state)
{
	(void)state;
	for (uint32_t pkey = 0; pkey < 65536; pkey++)
		assert_int_equal(bth_pkey_matches(pkey), pkey == 0xffff || pkey == 0x7fff);
}

/* Numbers of each width are the first bytes, and stores change no others. */
static void test_bytes(void **state)
{
	static const uint8_t bytes[9] = { 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89 };
	uint8_t at[4][9] = {};

	(void)state;
	assert_int_equal(be16_get(bytes), 0x8182);
	assert_int_equal(be24_get(bytes), 0x818283);
	assert_int_equal(be32_get(bytes), 0x81828384);
	assert_true(be64_get(bytes) == 0x8182838485868788);
	be16_put(at[0], 0x8182);
	be24_put(at[1], 0x818283);
	be32_put(at[2], 0x81828384);
	be64_put(at[3], 0x8182838485868788);
	for (int i = 0; i < 4; i++) {
		int width = i < 3 ? i + 2 : 8;

		assert_memory_equal(at[i], bytes, width);
		for (int j = width; j < 9; j++)
			assert_int_equal(at[i][j], 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ibta),
		cmocka_unit_test(test_ieee_ietf),
		cmocka_unit_test(test_opcodes),
		cmocka_unit_test(test_pkeys),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
