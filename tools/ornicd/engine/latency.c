// SPDX-License-Identifier: GPL-2.0
/*
 * Latency histograms.
 */
#include "engine.h"
#include "latency.h"

static enum latency_class class_of(uint8_t opcode)
{
	switch (opcode) {
	case ORNIC_WR_RDMA_WRITE:
	case ORNIC_WR_RDMA_WRITE_IMM:
	case ORNIC_WR_ATOMIC_WRITE:
		return LATENCY_write;
	case ORNIC_WR_RDMA_READ:
		return LATENCY_read;
	case ORNIC_WR_COMP_SWAP:
	case ORNIC_WR_FETCH_ADD:
		return LATENCY_atomic;
	case ORNIC_WR_FLUSH:
		return LATENCY_flush;
	case ORNIC_WR_NOP:
	case ORNIC_WR_FAST_REG:
	case ORNIC_WR_BIND_MW:
	case ORNIC_WR_LOCAL_INV:
		return LATENCY_local;
	default:
		return LATENCY_send;
	}
}

void latency_add(struct latency *l, uint8_t opcode, uint64_t ns)
{
	struct histogram *h = &l->of[class_of(opcode)];
	int n = 63 - __builtin_clzll(ns | 1);

	h->bucket[n < LATENCY_BUCKETS ? n : LATENCY_BUCKETS - 1]++;
	h->sum += ns;
	if (ns > h->max)
		h->max = ns;
}

/* Failed work requests, and those fetched before the measurement was switched on, do not count. */
void latency_done_slow(struct device *dev, const struct wqe *w)
{
	uint64_t now = dev->engine->clock();

	if (w->seen && !w->status && now >= w->seen)
		latency_add(dev->latency, w->opcode, now - w->seen);
}
