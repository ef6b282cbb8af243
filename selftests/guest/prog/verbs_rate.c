// SPDX-License-Identifier: GPL-2.0
/*
 * Static rates of connections and rate limits of queue pairs, within one VM. A rate is an
 * upper bound: the tests judge how much was sent in a time, never how little.
 *
 *   verbs_rate DEVICE [TEST...]	the named tests, or all but hold; prints TAP
 *
 * hold sets a rate and waits to be inspected.
 */
#include "conn.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH		64u
#define FRAME		1500u
#define MESSAGE		(1u << 20)
#define PATIENCE	60
#define CLOCKS		1.02		/* the guest's clock and the device's differ a little */

static struct dev dev;
static struct queue cq;
static struct ibv_mr *mr;
static char *buf;
static struct ibv_packet_pacing_caps caps;

static void expect(struct verdict *v, long got, long want, const char *what)
{
	if (got != want)
		verdict_fail(v, "%s: %ld, expected %ld", what, got, want);
}

static bool supported(enum ibv_qp_type type)
{
	return caps.supported_qpts >> type & 1;
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)buf, len, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = (uintptr_t)buf + MESSAGE, .rkey = mr->rkey },
	};

	if (ibv_post_send(qp, &wr, &bad))
		bail("cannot post a send");
}

/* Send @count times @len bytes. Return: seconds from before the first to after the last. */
static double send_all(struct verdict *v, struct ibv_qp *qp, enum ibv_wr_opcode opcode,
		       uint32_t len, uint32_t count)
{
	double begin = now();
	struct ibv_wc wc;

	for (uint32_t posted = 0, done = 0; done < count; done++) {
		for (; posted < count && posted - done < DEPTH; posted++)
			post(qp, opcode, len);
		if (!queue_wait(&cq, &wc, PATIENCE)) {
			verdict_fail(v, "only %u of %u completed", done, count);
			break;
		}
		if (wc.status)
			verdict_fail(v, "completion: %s", ibv_wc_status_str(wc.status));
	}
	return now() - begin;
}

static void judge(struct verdict *v, double bytes, double seconds, double kbps, double burst)
{
	double most = kbps * 125 * seconds * CLOCKS + burst;

	printf("# %.0f bytes in %.3f s, at most %.0f\n", bytes, seconds, most);
	if (bytes > most)
		verdict_fail(v, "%.0f bytes in %.3f s are more than %.0f kbit/s", bytes, seconds, kbps);
}

/*
 * Open a raw queue pair and build a frame to a MAC address without a device, padded with
 * the buffer's content.
 */
static struct ibv_qp *raw_open(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET, .send_cq = cq.cq, .recv_cq = cq.cq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = PORT };
	struct ibv_qp *qp = ibv_create_qp(dev.pd, &init);

	if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		bail("no raw packet queue pair: %s", strerror(errno));
	for (attr.qp_state = IBV_QPS_RTR; attr.qp_state <= IBV_QPS_RTS; attr.qp_state++)
		if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
			bail("queue pair does not become ready");
	memcpy(buf, "\x02\0\0\0\0\x63\x02\0\0\0\0\x62\x88\xb5", 14);
	return qp;
}

static int set_rate(struct ibv_qp *qp, uint32_t kbps, uint32_t burst, uint16_t packet)
{
	struct ibv_qp_rate_limit_attr limit = {
		.rate_limit = kbps, .max_burst_sz = burst, .typical_pkt_sz = packet,
	};

	return ibv_modify_qp_rate_limit(qp, &limit);
}

static void connect_to(struct conn *c, const struct conn *to)
{
	c->there = to->here;
	if (conn_to_rtr(c) || conn_to_rts(c))
		bail("cannot connect a queue pair");
}

/* Connect two queue pairs with each other; the rates are those of their paths. */
static void pair_open(struct conn c[2], uint8_t rate0, uint8_t rate1)
{
	struct conn_attr attr;

	conn_attr_default(&attr, &dev);
	attr.static_rate = rate0;
	conn_create(&c[0], &dev, &attr, &cq, &cq);
	attr.static_rate = rate1;
	conn_create(&c[1], &dev, &attr, &cq, &cq);
	connect_to(&c[0], &c[1]);
	connect_to(&c[1], &c[0]);
}

static void pair_close(struct conn c[2])
{
	conn_destroy(&c[0]);
	conn_destroy(&c[1]);
}

static void test_capabilities(struct verdict *v)
{
	expect(v, supported(IBV_QPT_RAW_PACKET), true, "raw packets");
	expect(v, supported(IBV_QPT_UD) || supported(IBV_QPT_UC), false, "UD, UC");
	expect(v, caps.qp_rate_limit_min, 1, "lowest rate");
	expect(v, caps.qp_rate_limit_max, 100000000, "highest rate");
}

/* ORN-QP-44, and rates that the kernel does not pass to the device */
static void test_refused(struct verdict *v)
{
	struct ibv_qp_attr attr = { .rate_limit = 1000 };
	struct ibv_qp *qp = raw_open();
	struct conn c[2];

	expect(v, set_rate(qp, caps.qp_rate_limit_max + 1, 0, 0), EINVAL, "too high");
	expect(v, set_rate(qp, 0, 1500, 0), EINVAL, "burst without rate");
	expect(v, set_rate(qp, 0, 0, 1500), EINVAL, "packet without rate");
	expect(v, set_rate(qp, caps.qp_rate_limit_max, UINT32_MAX, UINT16_MAX), 0, "highest");
	expect(v, ibv_modify_qp(qp, &attr, IBV_QP_RATE_LIMIT), 0, "by ibv_modify_qp");
	if (ibv_destroy_qp(qp))
		verdict_fail(v, "queue pair does not go");
	pair_open(c, 0, 0);
	expect(v, set_rate(c[0].qp, 1000, 0, 0), supported(IBV_QPT_RC) ? 0 : EINVAL, "RC");
	pair_close(c);
}

/* ORN-QP-41: 256 MiB take 0.86 s at 2.5 Gbit/s, and a small part of that without a limit. */
static void static_rate(struct verdict *v, enum ibv_wr_opcode opcode, unsigned int paced)
{
	const uint32_t count = 256;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct conn c[2];
	double seconds;

	pair_open(c, paced == 0 ? IBV_RATE_2_5_GBPS : 0, paced == 1 ? IBV_RATE_2_5_GBPS : 0);
	if (ibv_query_qp(c[paced].qp, &attr, IBV_QP_AV, &init))
		bail("cannot query");
	expect(v, attr.ah_attr.static_rate, IBV_RATE_2_5_GBPS, "static rate");
	seconds = send_all(v, c[0].qp, opcode, MESSAGE, count);
	judge(v, (double)count * MESSAGE, seconds, 2500000, 2500000 / 8.0);
	pair_close(c);
}

static void test_static_write(struct verdict *v)
{
	static_rate(v, IBV_WR_RDMA_WRITE, 0);
}

static void test_static_read(struct verdict *v)
{
	static_rate(v, IBV_WR_RDMA_READ, 1);
}

static void raw_limit(struct verdict *v, uint32_t kbps, uint32_t burst, uint32_t count)
{
	struct ibv_qp *qp = raw_open();
	double seconds;

	expect(v, set_rate(qp, kbps, burst, burst ? FRAME : 0), 0, "ibv_modify_qp_rate_limit");
	seconds = send_all(v, qp, IBV_WR_SEND, FRAME, count);
	judge(v, (double)count * FRAME, seconds, kbps,
	      FRAME + (burst ? burst : kbps / 8.0));
	if (ibv_destroy_qp(qp))
		verdict_fail(v, "queue pair does not go");
}

/* ORN-QP-42 */
static void test_raw_limit(struct verdict *v)
{
	raw_limit(v, 20000, 0, 2000);
}

static void test_raw_burst(struct verdict *v)
{
	raw_limit(v, 4000, 300000, 600);
}

/* ORN-QP-43: a transfer that would take most of an hour ends at once when the limit is removed */
static void test_raw_change(struct verdict *v)
{
	struct ibv_qp *qp = raw_open();
	uint32_t done = 0;
	struct ibv_wc wc;

	expect(v, set_rate(qp, 1, 0, 0), 0, "ibv_modify_qp_rate_limit");
	for (uint32_t i = 0; i < DEPTH; i++)
		post(qp, IBV_WR_SEND, FRAME);
	while (queue_wait(&cq, &wc, 0.5))
		done++;
	if (done > 2)
		verdict_fail(v, "%u frames of %u bytes at 1 kbit/s", done, FRAME);
	expect(v, set_rate(qp, 0, 0, 0), 0, "no limit");
	for (; done < DEPTH && queue_wait(&cq, &wc, PATIENCE); done++)
		if (wc.status)
			verdict_fail(v, "completion: %s", ibv_wc_status_str(wc.status));
	expect(v, done, DEPTH, "frames");
	if (ibv_destroy_qp(qp))
		verdict_fail(v, "queue pair does not go");
}

/* A connection with a limit, if ib_core permits one: otherwise it is rejected (test_refused). */
static void test_connection(struct verdict *v)
{
	const uint32_t count = 64;
	struct conn c[2];

	pair_open(c, 0, 0);
	if (supported(IBV_QPT_RC)) {
		expect(v, set_rate(c[0].qp, 100000, 0, 0), 0, "ibv_modify_qp_rate_limit");
		judge(v, (double)count * 65536,
		      send_all(v, c[0].qp, IBV_WR_RDMA_WRITE, 65536, count), 100000,
		      65536 + 100000 / 8.0);
		expect(v, set_rate(c[0].qp, 0, 0, 0), 0, "no limit");
	}
	send_all(v, c[0].qp, IBV_WR_RDMA_WRITE, 65536, count);
	pair_close(c);
}

static void hold(void)
{
	if (set_rate(raw_open(), 12345, 0, 0))
		bail("ibv_modify_qp_rate_limit: %s", strerror(errno));
	printf("# held\n");
	fflush(stdout);
	pause();
}

static const struct {
	const char *name;
	void (*run)(struct verdict *v);
} tests[] = {
	{ "capabilities", test_capabilities }, { "refused", test_refused },
	{ "static_write", test_static_write }, { "static_read", test_static_read },
	{ "raw_limit", test_raw_limit }, { "raw_burst", test_raw_burst },
	{ "raw_change", test_raw_change }, { "connection", test_connection },
};

int main(int argc, char **argv)
{
	struct ibv_device_attr_ex attr;

	if (argc < 2)
		bail("usage: verbs_rate DEVICE [TEST...]");
	dev_open(&dev, argv[1], -1);
	if (ibv_query_device_ex(dev.verbs, NULL, &attr))
		bail("ibv_query_device_ex failed");
	caps = attr.packet_pacing_caps;
	queue_create(&cq, &dev, 2 * DEPTH, false);
	buf = aligned_alloc(4096, 2 * MESSAGE);
	mr = buf ? ibv_reg_mr(dev.pd, buf, 2 * MESSAGE, ALL_RIGHTS) : NULL;
	if (!mr)
		bail("no memory region: %s", strerror(errno));
	if (argc == 3 && !strcmp(argv[2], "hold"))
		hold();
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		struct verdict good = {}, v = {};
		bool wanted = argc == 2;

		for (int j = 2; j < argc; j++)
			wanted |= !strcmp(argv[j], tests[i].name);
		if (!wanted)
			continue;
		tests[i].run(&v);
		tap_point(tests[i].name, &v, &good);
	}
	ibv_dereg_mr(mr);
	queue_destroy(&cq);
	dev_close(&dev);
	return tap_end();
}
