// SPDX-License-Identifier: GPL-2.0
/*
 * Time stamps and clocks: monotonic, between readings taken before and after, and with the
 * rate that the device reports.
 */
#include "cq.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS		50
#define WALL_SLACK	50000000	/* ns that reading the clocks may take at most */

static uint64_t raw_clock(struct dev *d, struct verdict *v)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	int err = ibv_query_rt_values_ex(d->verbs, &values);

	EXPECT(v, !err, "ibv_query_rt_values_ex: %s", strerror(err));
	return values.raw_clock.tv_sec * 1000000000ull + values.raw_clock.tv_nsec;
}

static int64_t system_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static uint64_t clock_khz(struct dev *d, struct verdict *v)
{
	struct ibv_device_attr_ex attr = {};
	int err = ibv_query_device_ex(d->verbs, NULL, &attr);

	EXPECT(v, !err, "ibv_query_device_ex: %s", strerror(err));
	EXPECT(v, attr.hca_core_clock, "hca_core_clock is 0");
	EXPECT(v, attr.completion_timestamp_mask, "completion_timestamp_mask is 0");
	return attr.hca_core_clock;
}

/* ORN-CLK-1: the clock counts at the rate that the device reports. */
static void raw_clock_rate(struct dev *d, struct verdict *v)
{
	uint64_t khz = clock_khz(d, v), first, last = 0, t;
	double begin, from, to, end, ticks;

	begin = now();
	first = raw_clock(d, v);
	from = now();
	for (int i = 0; i < 10; i++, last = t) {
		usleep(50000);
		t = raw_clock(d, v);
		EXPECT(v, t > last && t > first, "the clock went from %" PRIu64 " to %" PRIu64, last, t);
	}
	to = now();
	t = raw_clock(d, v);
	end = now();
	ticks = (double)(t - first) / khz / 1000;
	EXPECT(v, ticks > (to - from) * 0.9 - 0.02 && ticks < (end - begin) * 1.1 + 0.02,
	       "%.3f s by the device's clock, %.3f to %.3f s by the system's", ticks, to - from,
	       end - begin);
}

static struct ibv_cq_ex *stamped_cq(struct dev *d)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(d->verbs, &attr);

	if (!cq)
		bail("cannot create a CQ with time stamps: %s", strerror(errno));
	return cq;
}

static bool wait_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {};
	double end = now() + SOON;

	while (ibv_start_poll(cq, &attr)) {
		if (now() > end)
			return false;
		sched_yield();
	}
	return true;
}

/* Check the time stamp of one write; @last is the stamp before it. */
static uint64_t check_stamp(struct loop *l, struct ibv_cq_ex *cq, uint64_t last, struct verdict *v)
{
	uint64_t before = raw_clock(l->dev, v), stamp, after;
	int64_t wall_before = system_ns(), wall, wall_after;

	loop_write(l, 7);
	if (!wait_poll(cq)) {
		verdict_fail(v, "no completion");
		return last;
	}
	EXPECT(v, cq->wr_id == 7 && !cq->status, "status %d", cq->status);
	stamp = ibv_wc_read_completion_ts(cq);
	wall = ibv_wc_read_completion_wallclock_ns(cq);
	ibv_end_poll(cq);
	wall_after = system_ns();
	after = raw_clock(l->dev, v);
	EXPECT(v, stamp > last, "stamp %" PRIu64 " after %" PRIu64, stamp, last);
	EXPECT(v, stamp >= before && stamp <= after,
	       "stamp %" PRIu64 " is not between %" PRIu64 " and %" PRIu64, stamp, before, after);
	EXPECT(v, wall >= wall_before - WALL_SLACK && wall <= wall_after + WALL_SLACK,
	       "time %" PRId64 " is not between %" PRId64 " and %" PRId64, wall, wall_before,
	       wall_after);
	return stamp;
}

/* ORN-CLK-3, ORN-CLK-5: also more than two seconds after the CQ was made. */
static void stamps(struct dev *d, struct verdict *v)
{
	struct ibv_cq_ex *cq = stamped_cq(d);
	struct queue q = { .cq = ibv_cq_ex_to_cq(cq) };
	uint64_t last = 0;
	struct loop l;

	loop_open(&l, d, &q, NULL);
	for (int i = 0; i < ROUNDS; i++)
		last = check_stamp(&l, cq, last, v);
	sleep(3);
	check_stamp(&l, cq, last, v);
	loop_close(&l);
	queue_destroy(&q);
}

/* Every field of the standard set, of a receive with immediate data. */
static void fields(struct dev *d, struct verdict *v)
{
	struct ibv_cq_ex *cq = stamped_cq(d);
	struct queue send, recv = { .cq = ibv_cq_ex_to_cq(cq) };
	struct loop l;

	queue_create(&send, d, 16, false);
	loop_open(&l, d, &send, &recv);
	loop_send(&l, 0x1234, false);
	EXPECT(v, wait_poll(cq), "no completion");
	EXPECT(v, cq->wr_id == 0x1234, "wr_id %lu", cq->wr_id);
	EXPECT(v, ibv_wc_read_opcode(cq) == IBV_WC_RECV, "opcode %d", ibv_wc_read_opcode(cq));
	EXPECT(v, ibv_wc_read_byte_len(cq) == 8, "byte_len %u", ibv_wc_read_byte_len(cq));
	EXPECT(v, ibv_wc_read_imm_data(cq) == htobe32(0x1234), "imm %x", ibv_wc_read_imm_data(cq));
	EXPECT(v, ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM, "no WITH_IMM");
	EXPECT(v, ibv_wc_read_qp_num(cq) == l.to.qp->qp_num, "qp_num %u", ibv_wc_read_qp_num(cq));
	EXPECT(v, !ibv_wc_read_vendor_err(cq), "vendor_err %u", ibv_wc_read_vendor_err(cq));
	EXPECT(v, !ibv_wc_read_slid(cq) && !ibv_wc_read_sl(cq) && !ibv_wc_read_dlid_path_bits(cq),
	       "fields of an InfiniBand path are not 0");
	EXPECT(v, ibv_next_poll(cq) == ENOENT, "a second completion");
	ibv_end_poll(cq);
	loop_close(&l);
	queue_destroy(&send);
	queue_destroy(&recv);
}

const struct cq_test clock_tests[] = {
	{ "raw_clock_rate", raw_clock_rate },
	{ "stamps", stamps },
	{ "fields", fields },
	{ }
};
