/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of a function, in the order STAT_NAMES lists them: one line each,
 * from which the enum, the names and the scopes are made.
 */
#ifndef ORNICD_ENGINE_COUNTERS_H
#define ORNICD_ENGINE_COUNTERS_H

#define COUNTERS(C)						\
	C(PORT, tx_bytes)					\
	C(PORT, rx_bytes)					\
	C(PORT, tx_packets)					\
	C(PORT, rx_packets)					\
	C(PORT, tx_multicast)					\
	C(PORT, rx_multicast)					\
	C(PORT, rx_drop_no_wqe)					\
	C(PORT, rx_drop_rule)					\
	C(PORT, rx_drop_size)					\
	C(PORT, tx_drop)					\
	C(PORT, rdma_tx_bytes)					\
	C(PORT, rdma_rx_bytes)					\
	C(PORT, rdma_tx_packets)				\
	C(PORT, rdma_rx_packets)				\
	C(PORT, rdma_copied_bytes)				\
	C(PORT, rx_send)					\
	C(PORT, rx_write)					\
	C(PORT, rx_read)					\
	C(PORT, rx_atomic)					\
	C(PORT, retransmits)					\
	C(PORT, ack_timeouts)					\
	C(PORT, rnr_naks_sent)					\
	C(PORT, rnr_naks_received)				\
	C(PORT, seq_naks_sent)					\
	C(PORT, seq_naks_received)				\
	C(PORT, duplicates)					\
	C(PORT, implied_nak)					\
	C(PORT, bad_gid)					\
	C(PORT, bad_qpn)					\
	C(PORT, bad_opcode)					\
	C(PORT, bad_pkey)					\
	C(PORT, bad_qkey)					\
	C(PORT, remote_access_errors)				\
	C(PORT, remote_invalid_requests)			\
	C(PORT, local_protection_errors)			\
	C(PORT, wqe_errors)					\
	C(PORT, flushes)					\
	C(DEVICE, cq_overflows)					\
	C(DEVICE, eq_held)					\
	C(DEVICE, db_rejected)					\
	C(DEVICE, doorbells)					\
	C(DEVICE, admin_commands)				\
	C(DEVICE, admin_failures)

enum counter {
#define COUNTER_ENUM(scope, name)	CNT_##name,
	COUNTERS(COUNTER_ENUM)
#undef COUNTER_ENUM
	CNT_COUNT,
};

#endif /* ORNICD_ENGINE_COUNTERS_H */
