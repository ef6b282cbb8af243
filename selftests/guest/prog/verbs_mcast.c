// SPDX-License-Identifier: GPL-2.0
/*
 * Members of a multicast group in one process and device: which members receive a datagram,
 * with and without the flag that suppresses loopback to the sender. Prints TAP; names of
 * tests as arguments, or all.
 */
#include "conn.h"
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS		3
#define LEN		100u
#define GRH		40u
#define PATIENCE	20
#define SILENCE		0.05		/* seconds of silence that prove that nothing comes */
#define ALL_MEMBERS	0xffffffu	/* destination of a datagram to a group */
#define LID		0xc001		/* of a group; RoCE has none and ignores it */

static struct dev dev;
static struct queue sends, recvs[MEMBERS];
static struct conn member[MEMBERS];
static struct ibv_ah *group;
static struct ibv_mr *mr;
static char *buf;			/* a received datagram per member, then the one to send */

/* ::ffff:239.7.7.77 */
static union ibv_gid mgid = {
	.raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 7, [14] = 7, [15] = 77 },
};

static void expect(struct verdict *v, long got, long want, const char *what)
{
	if (got != want)
		verdict_fail(v, "%s: %ld, expected %ld", what, got, want);
}

static void join(int i, bool deaf_to_itself)
{
	struct conn_attr attr;

	conn_attr_default(&attr, &dev);
	attr.type = IBV_QPT_UD;
	attr.create_flags = deaf_to_itself ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;
	queue_create(&recvs[i], &dev, 64, false);
	conn_create(&member[i], &dev, &attr, &sends, &recvs[i]);
	if (conn_to_rtr(&member[i]) || conn_to_rts(&member[i]))
		bail("queue pair of a member does not come up");
	if (ibv_attach_mcast(member[i].qp, &mgid, 0))
		bail("ibv_attach_mcast: %s", strerror(errno));
}

static void leave(struct verdict *v, int i)
{
	expect(v, ibv_detach_mcast(member[i].qp, &mgid, 0), 0, "ibv_detach_mcast");
	conn_destroy(&member[i]);
	queue_destroy(&recvs[i]);
}

/* Send from member @i to the group; bit n of the result: member n received all bytes of it. */
static uint32_t say(struct verdict *v, int i, char mark)
{
	struct ibv_sge sge = { (uintptr_t)buf + MEMBERS * (GRH + LEN), LEN, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge,
		.num_sge = 1,
		.wr.ud = { .ah = group, .remote_qpn = ALL_MEMBERS, .remote_qkey = QKEY },
	};
	uint32_t heard = 0;
	struct ibv_wc wc;

	for (int n = 0; n < MEMBERS; n++) {
		struct ibv_sge to = { (uintptr_t)buf + n * (GRH + LEN), GRH + LEN, mr->lkey };
		struct ibv_recv_wr *bad_recv, recv = { .sg_list = &to, .num_sge = 1 };

		if (ibv_post_recv(member[n].qp, &recv, &bad_recv))
			bail("ibv_post_recv failed");
	}
	memset((void *)(uintptr_t)sge.addr, mark, LEN);
	if (ibv_post_send(member[i].qp, &wr, &bad))
		bail("ibv_post_send failed");
	expect(v, queue_wait(&sends, &wc, PATIENCE) ? (int)wc.status : -1, 0, "send");
	for (int n = 0; n < MEMBERS; n++) {
		const char *got = buf + n * (GRH + LEN) + GRH;

		/*
		 * all receive it at the same time, so a member without it by then will not
		 * get it
		 */
		if (!queue_wait(&recvs[n], &wc, SILENCE))
			continue;
		expect(v, wc.status, 0, "receive");
		expect(v, wc.src_qp, member[i].qp->qp_num, "sender");
		expect(v, got[0], mark, "first byte");
		expect(v, got[LEN - 1], mark, "last byte");
		heard |= 1u << n;
	}
	return heard;
}

/* A member receives its own datagrams. */
static void test_loopback(struct verdict *v)
{
	for (int i = 0; i < MEMBERS; i++)
		join(i, false);
	for (int i = 0; i < MEMBERS; i++)
		expect(v, say(v, i, 'a' + i), 7, "heard by");
}

/* Member 0 does not receive its own datagrams; the others do. */
static void test_blocked(struct verdict *v)
{
	for (int i = 0; i < MEMBERS; i++)
		join(i, i == 0);
	expect(v, say(v, 0, 'x'), 6, "from the one with the flag, heard by");
	expect(v, say(v, 1, 'y'), 7, "from another one, heard by");
	expect(v, say(v, 0, 'z'), 6, "again, heard by");
}

/* All of them have the flag: it concerns the queue pair, not the device. */
static void test_all_blocked(struct verdict *v)
{
	for (int i = 0; i < MEMBERS; i++)
		join(i, true);
	for (uint32_t i = 0; i < MEMBERS; i++)
		expect(v, say(v, i, 'p' + i), 7 & ~(1u << i), "heard by");
}

/* Connected queue pairs cannot join groups. */
static void test_refused(struct verdict *v)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC, .pd = dev.pd, .send_cq = sends.cq, .recv_cq = sends.cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	};

	for (int i = 0; i < MEMBERS; i++)
		join(i, false);
	expect(v, !ibv_create_qp_ex(dev.verbs, &attr), 1, "RC with the flag is refused");
}

/* For uverbs the same group with another LID is another one, which is left by itself. */
static void test_twice(struct verdict *v)
{
	struct ibv_qp *qp;

	for (int i = 0; i < MEMBERS; i++)
		join(i, false);
	qp = member[0].qp;
	expect(v, ibv_attach_mcast(qp, &mgid, LID), 0, "attach with a LID");
	expect(v, say(v, 1, 'a'), 7, "joined twice, heard by");
	expect(v, ibv_detach_mcast(qp, &mgid, 0), 0, "detach without the LID");
	expect(v, say(v, 1, 'b'), 7, "left once, heard by");
	expect(v, ibv_attach_mcast(qp, &mgid, 0), 0, "attach without the LID");
	expect(v, ibv_detach_mcast(qp, &mgid, LID), 0, "detach with the LID");
	expect(v, say(v, 1, 'c'), 7, "left the other one, heard by");
	expect(v, ibv_detach_mcast(qp, &mgid, 0), 0, "detach without the LID");
	expect(v, say(v, 1, 'd'), 6, "left twice, heard by");
	expect(v, ibv_attach_mcast(qp, &mgid, 0), 0, "attach again");
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/* ORN-QP-46: ibv_create_ah() rejects a group and a source of different IP versions. */
static void test_families(struct verdict *v)
{
	static const union ibv_gid ipv6 = { .raw = { 0xff, 0x0e, [15] = 0x77 } }, none;
	const union ibv_gid *groups[] = { &mgid, &ipv6 };
	struct ibv_port_attr port;
	union ibv_gid gid;
	int seen[2] = {};

	for (int i = 0; i < MEMBERS; i++)
		join(i, false);
	expect(v, ibv_query_port(dev.verbs, PORT, &port), 0, "ibv_query_port");
	for (int i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid(dev.verbs, PORT, i, &gid) || !memcmp(&gid, &none, sizeof(gid)))
			continue;
		for (int j = 0; j < 2; j++) {
			struct ibv_ah_attr path = {
				.is_global = 1, .port_num = PORT,
				.grh = { .dgid = *groups[j], .sgid_index = i, .hop_limit = 1 },
			};
			bool same = is_ipv4(&gid) == is_ipv4(groups[j]);
			struct ibv_ah *ah;

			errno = 0;
			ah = ibv_create_ah(dev.pd, &path);
			seen[same]++;
			expect(v, !!ah, same, "an address handle");
			if (ah)
				ibv_destroy_ah(ah);
			else
				expect(v, errno, EINVAL, "errno of ibv_create_ah");
		}
	}
	expect(v, seen[0] && seen[1], 1, "both cases were tried");
}

static const struct {
	const char *name;
	void (*run)(struct verdict *v);
} tests[] = {
	{ "loopback", test_loopback }, { "blocked", test_blocked },
	{ "all_blocked", test_all_blocked }, { "refused", test_refused },
	{ "twice", test_twice }, { "families", test_families },
};

static void run(int test)
{
	struct verdict good = {}, v = {};

	queue_create(&sends, &dev, 64, false);
	tests[test].run(&v);
	for (int i = 0; i < MEMBERS; i++)
		leave(&v, i);
	queue_destroy(&sends);
	tap_point(tests[test].name, &v, &good);
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr path = { .is_global = 1, .port_num = PORT };

	if (argc < 2)
		bail("usage: verbs_mcast DEVICE [TEST...]");
	dev_open(&dev, argv[1], -1);
	path.grh.dgid = mgid;
	path.grh.sgid_index = dev.gid_index;
	path.grh.hop_limit = 1;
	group = ibv_create_ah(dev.pd, &path);
	if (!group)
		bail("ibv_create_ah: %s", strerror(errno));
	buf = calloc(MEMBERS + 1, GRH + LEN);
	mr = ibv_reg_mr(dev.pd, buf, (MEMBERS + 1) * (GRH + LEN), IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		bail("ibv_reg_mr: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		bool wanted = argc == 2;

		for (int j = 2; j < argc; j++)
			wanted |= !strcmp(argv[j], tests[i].name);
		if (wanted)
			run(i);
	}
	ibv_dereg_mr(mr);
	ibv_destroy_ah(group);
	free(buf);
	dev_close(&dev);
	return tap_end();
}
