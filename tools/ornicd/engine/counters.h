/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of a function, in the order of STAT_NAMES. One line defines enum constant, name, scope
 * and id of a counter. A second list has the counters of a queue pair.
 */
#ifndef ORNICD_ENGINE_COUNTERS_H
#define ORNICD_ENGINE_COUNTERS_H

#include <stdint.h>

#define COUNTERS(C)								\
	C(PORT, tx_bytes, TX_BYTES)						\
	C(PORT, rx_bytes, RX_BYTES)						\
	C(PORT, tx_packets, TX_PACKETS)						\
	C(PORT, rx_packets, RX_PACKETS)						\
	C(PORT, tx_unicast, TX_UNICAST)						\
	C(PORT, rx_unicast, RX_UNICAST)						\
	C(PORT, tx_multicast, TX_MULTICAST)					\
	C(PORT, rx_multicast, RX_MULTICAST)					\
	C(PORT, tx_drop, TX_DROP)						\
	C(PORT, tx_drop_spoof, TX_DROP_SPOOF)					\
	C(PORT, rx_drop_no_wqe, RX_DROP_NO_WQE)					\
	C(PORT, rx_drop_rule, RX_DROP_RULE)					\
	C(PORT, rx_drop_size, RX_DROP_SIZE)					\
	C(PORT, rdma_tx_bytes, RDMA_TX_BYTES)					\
	C(PORT, rdma_rx_bytes, RDMA_RX_BYTES)					\
	C(PORT, rdma_tx_packets, RDMA_TX_PACKETS)				\
	C(PORT, rdma_rx_packets, RDMA_RX_PACKETS)				\
	C(PORT, rx_send, RX_SEND)						\
	C(PORT, rx_write, RX_WRITE)						\
	C(PORT, rx_read, RX_READ)						\
	C(PORT, rx_atomic, RX_ATOMIC)						\
	C(PORT, tx_send, TX_SEND)						\
	C(PORT, tx_write, TX_WRITE)						\
	C(PORT, tx_read, TX_READ)						\
	C(PORT, tx_atomic, TX_ATOMIC)						\
	C(PORT, rx_flush, RX_FLUSH)						\
	C(PORT, tx_flush, TX_FLUSH)						\
	C(PORT, flush_persistent, FLUSH_PERSISTENT)				\
	C(PORT, rdma_copied_bytes, RDMA_COPIED_BYTES)				\
	C(PORT, rdma_tx_multicast, RDMA_TX_MULTICAST)				\
	C(PORT, rdma_rx_multicast, RDMA_RX_MULTICAST)				\
	C(PORT, retransmits, RETRANSMITS)					\
	C(PORT, ack_timeouts, ACK_TIMEOUTS)					\
	C(PORT, rnr_naks_sent, RNR_NAKS_SENT)					\
	C(PORT, rnr_naks_received, RNR_NAKS_RECEIVED)				\
	C(PORT, seq_naks_sent, SEQ_NAKS_SENT)					\
	C(PORT, seq_naks_received, SEQ_NAKS_RECEIVED)				\
	C(PORT, out_of_order, OUT_OF_ORDER)					\
	C(PORT, duplicates, DUPLICATES)						\
	C(PORT, implied_nak, IMPLIED_NAK)					\
	C(PORT, icrc_errors, ICRC_ERRORS)					\
	C(PORT, ecn_marked, ECN_MARKED)						\
	C(PORT, cnp_sent, CNP_SENT)						\
	C(PORT, cnp_received, CNP_RECEIVED)					\
	C(PORT, cnp_ignored, CNP_IGNORED)					\
	C(PORT, bad_gid, BAD_GID)						\
	C(PORT, bad_qpn, BAD_QPN)						\
	C(PORT, bad_opcode, BAD_OPCODE)						\
	C(PORT, bad_pkey, BAD_PKEY)						\
	C(PORT, bad_qkey, BAD_QKEY)						\
	C(PORT, remote_access_errors, REMOTE_ACCESS_ERRORS)			\
	C(PORT, remote_invalid_requests, REMOTE_INVALID_REQUESTS)		\
	C(PORT, local_protection_errors, LOCAL_PROTECTION_ERRORS)		\
	C(PORT, wqe_errors, WQE_ERRORS)						\
	C(PORT, flushes, FLUSHES)						\
	C(DEVICE, cq_overflows, CQ_OVERFLOWS)					\
	C(DEVICE, eq_held, EQ_HELD)						\
	C(DEVICE, db_rejected, DB_REJECTED)					\
	C(DEVICE, doorbells, DOORBELLS)						\
	C(DEVICE, admin_commands, ADMIN_COMMANDS)				\
	C(DEVICE, admin_failures, ADMIN_FAILURES)				\
	C(DEVICE, key_pages, KEY_PAGES)

enum counter {
#define COUNTER_ENUM(scope, name, id)	CNT_##name,
	COUNTERS(COUNTER_ENUM)
#undef COUNTER_ENUM
	CNT_COUNT,
};

#define QP_COUNTERS(C)								\
	C(rx_drop_no_wqe, RX_DROP_NO_WQE)					\
	C(rx_drop_size, RX_DROP_SIZE)						\
	C(rdma_tx_bytes, RDMA_TX_BYTES)						\
	C(rdma_rx_bytes, RDMA_RX_BYTES)						\
	C(rdma_tx_packets, RDMA_TX_PACKETS)					\
	C(rdma_rx_packets, RDMA_RX_PACKETS)					\
	C(rx_send, RX_SEND)							\
	C(rx_write, RX_WRITE)							\
	C(rx_read, RX_READ)							\
	C(rx_atomic, RX_ATOMIC)							\
	C(tx_send, TX_SEND)							\
	C(tx_write, TX_WRITE)							\
	C(tx_read, TX_READ)							\
	C(tx_atomic, TX_ATOMIC)							\
	C(rdma_copied_bytes, RDMA_COPIED_BYTES)					\
	C(retransmits, RETRANSMITS)						\
	C(ack_timeouts, ACK_TIMEOUTS)						\
	C(rnr_naks_sent, RNR_NAKS_SENT)						\
	C(rnr_naks_received, RNR_NAKS_RECEIVED)					\
	C(seq_naks_sent, SEQ_NAKS_SENT)						\
	C(seq_naks_received, SEQ_NAKS_RECEIVED)					\
	C(out_of_order, OUT_OF_ORDER)						\
	C(duplicates, DUPLICATES)						\
	C(implied_nak, IMPLIED_NAK)						\
	C(ecn_marked, ECN_MARKED)						\
	C(cnp_sent, CNP_SENT)							\
	C(cnp_received, CNP_RECEIVED)						\
	C(cnp_ignored, CNP_IGNORED)						\
	C(bad_opcode, BAD_OPCODE)						\
	C(bad_qkey, BAD_QKEY)							\
	C(remote_access_errors, REMOTE_ACCESS_ERRORS)				\
	C(remote_invalid_requests, REMOTE_INVALID_REQUESTS)			\
	C(local_protection_errors, LOCAL_PROTECTION_ERRORS)			\
	C(wqe_errors, WQE_ERRORS)						\
	C(flushes, FLUSHES)

enum qp_counter {
#define COUNTER_ENUM(name, id)	QP_CNT_##name,
	QP_COUNTERS(COUNTER_ENUM)
#undef COUNTER_ENUM
	QP_CNT_COUNT,
};

/** STAT_COUNT - entries of STAT_NAMES */
#define STAT_COUNT	(CNT_COUNT + QP_CNT_COUNT)

/**
 * struct counter_set - counters of the queue pairs that the host bound to the set
 * @number:	number of the set
 * @users:	queue pairs bound to it
 * @cnt:	counters (enum counter); only those of QP_COUNTERS are reported
 */
struct counter_set {
	uint32_t number;
	uint32_t users;
	uint64_t cnt[CNT_COUNT];
};

#endif /* ORNICD_ENGINE_COUNTERS_H */
