// SPDX-License-Identifier: GPL-2.0
/*
 * Raw packet queue pairs of a process, flows and receive scaling, within one VM:
 * one queue pair sends Ethernet frames to the port's own address, others receive.
 *
 *   verbs_raw DEVICE [TEST...]	the named tests, or all; prints TAP
 */
#include "conn.h"
#include "report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glob.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT		256u
#define SLOTS		256u
#define RECVS		64u
#define SENDER		0xffffu		/* wr_id of sends; of receives: the number of the queue */
#define PATIENCE	10
#define QUIET		0.1		/* seconds in which a stray frame would arrive */
#define NOBODY		-1
#define DPORT		7000
#define WQS		4u
#define FLOWS		32u

/* Specifications are adjacent without gaps: all have the alignment of 32-bit members. */
struct flow {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_ipv4 ip;
	struct ibv_flow_spec_tcp_udp udp;
	struct ibv_flow_spec_action_drop drop;
};

static struct dev dev;
static struct queue cq;
static struct ibv_mr *mr;
static char *buf;
static struct ibv_qp *sender, *receiver[2];
static uint8_t mac[6];

static void own_mac(const char *name)
{
	char pattern[128];
	glob_t found;
	FILE *f;

	snprintf(pattern, sizeof(pattern), "/sys/class/infiniband/%s/device/net/*/address", name);
	if (glob(pattern, 0, NULL, &found))
		bail("%s has no network interface", name);
	f = fopen(found.gl_pathv[0], "r");
	if (!f || fscanf(f, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
			 &mac[4], &mac[5]) != 6)
		bail("cannot read %s", found.gl_pathv[0]);
	fclose(f);
	globfree(&found);
}

static struct ibv_qp *raw_create(struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET, .send_cq = cq.cq, .recv_cq = cq.cq,
		.cap = { .max_send_wr = RECVS, .max_recv_wr = RECVS,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return ibv_create_qp(pd, &init);
}

static struct ibv_sge slot(unsigned int n)
{
	return (struct ibv_sge){ (uintptr_t)buf + n * SLOT, SLOT, mr->lkey };
}

static struct ibv_qp *raw_open(unsigned int who)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = PORT };
	struct ibv_qp *qp = raw_create(dev.pd);
	struct ibv_recv_wr *bad;

	if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		bail("no raw packet queue pair: %s", strerror(errno));
	for (unsigned int i = 0; who != SENDER && i < RECVS; i++) {
		struct ibv_sge sge = slot(1 + who * RECVS + i);
		struct ibv_recv_wr wr = { .wr_id = who, .sg_list = &sge, .num_sge = 1 };

		if (ibv_post_recv(qp, &wr, &bad))
			bail("cannot post a receive");
	}
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		bail("queue pair does not become ready to receive");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		bail("queue pair does not become ready to send");
	return qp;
}

static uint16_t ip_sum(const void *header)
{
	const uint16_t *word = header;
	uint32_t sum = 0;

	for (unsigned int i = 0; i < sizeof(struct iphdr) / 2; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* Build a UDP datagram from the neighbour 99 to this host, tagged if @vlan is not 0. */
static uint32_t frame(uint8_t *p, uint16_t vlan, uint16_t sport, uint16_t dport)
{
	struct iphdr ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP };
	struct udphdr udp = { .source = htons(sport), .dest = htons(dport) };
	uint16_t type = htons(ETHERTYPE_IP), tag[2] = { htons(ETHERTYPE_VLAN), htons(vlan) };
	uint8_t *start = p;

	memcpy(&ip.daddr, dev.gid.raw + 12, 4);
	ip.saddr = (ip.daddr & htonl(0xffffff00)) | htonl(99);
	udp.len = htons(sizeof(udp) + 64);
	ip.tot_len = htons(sizeof(ip) + sizeof(udp) + 64);
	ip.check = ip_sum(&ip);
	p = mempcpy(p, mac, 6);
	p = mempcpy(p, "\x02\0\0\0\0\x63", 6);
	if (vlan)
		p = mempcpy(p, tag, sizeof(tag));
	p = mempcpy(p, &type, sizeof(type));
	p = mempcpy(p, &ip, sizeof(ip));
	p = mempcpy(p, &udp, sizeof(udp));
	memset(p, sport, 64);
	return p + 64 - start;
}

/* Send a frame; return its receiver, NOBODY if there is none, and its place. */
static int send_frame(struct verdict *v, uint16_t vlan, uint16_t sport, uint16_t dport)
{
	struct ibv_sge sge = slot(0);
	struct ibv_send_wr *bad, wr = {
		.wr_id = SENDER, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	};
	bool sent = false;
	int who = NOBODY;
	struct ibv_wc wc;

	sge.length = frame((uint8_t *)buf, vlan, sport, dport);
	if (ibv_post_send(sender, &wr, &bad)) {
		verdict_fail(v, "post: %s", strerror(errno));
		return NOBODY;
	}
	while (queue_wait(&cq, &wc, sent ? QUIET : PATIENCE)) {
		if (wc.status)
			verdict_fail(v, "completion: %s", ibv_wc_status_str(wc.status));
		if (wc.wr_id == SENDER) {
			sent = true;
			continue;
		}
		if (who != NOBODY)
			verdict_fail(v, "a second queue pair received the frame");
		if (wc.byte_len != sge.length)
			verdict_fail(v, "%u of %u bytes", wc.byte_len, sge.length);
		who = wc.wr_id;
		if (sent)
			break;
	}
	if (!sent)
		verdict_fail(v, "the send does not complete");
	return who;
}

static void expect(struct verdict *v, int got, int want, const char *what)
{
	if (got != want)
		verdict_fail(v, "%s: %d, expected %d", what, got, want);
}

/* A flow for frames to @dport of this host; of this VLAN if @vlan is not 0. */
static struct flow flow_to(uint16_t dport, uint16_t vlan, uint16_t priority)
{
	struct flow f = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = offsetof(struct flow, drop),
			  .priority = priority, .num_of_specs = 3, .port = PORT },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(f.eth) },
		.ip = { .type = IBV_FLOW_SPEC_IPV4, .size = sizeof(f.ip) },
		.udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(f.udp),
			 .val.dst_port = htons(dport), .mask.dst_port = 0xffff },
	};

	memcpy(f.eth.val.dst_mac, mac, 6);
	memset(f.eth.mask.dst_mac, 0xff, 6);
	if (vlan) {
		f.eth.val.vlan_tag = htons(vlan);
		f.eth.mask.vlan_tag = htons(0xfff);
	}
	memcpy(&f.ip.val.dst_ip, dev.gid.raw + 12, 4);
	f.ip.mask.dst_ip = ~0u;
	return f;
}

static struct ibv_flow *flow_add(struct ibv_qp *qp, struct flow f)
{
	struct ibv_flow *flow = ibv_create_flow(qp, &f.attr);

	if (!flow)
		bail("ibv_create_flow: %s", strerror(errno));
	return flow;
}

/* Only matching frames arrive, and only while the flow exists. */
static void test_match(struct verdict *v)
{
	struct ibv_flow *flow;

	expect(v, send_frame(v, 0, 1, DPORT), NOBODY, "no flow");
	flow = flow_add(receiver[0], flow_to(DPORT, 0, 0));
	expect(v, send_frame(v, 0, 1, DPORT), 0, "match");
	expect(v, send_frame(v, 0, 1, DPORT + 1), NOBODY, "another port");
	ibv_destroy_flow(flow);
	expect(v, send_frame(v, 0, 1, DPORT), NOBODY, "after the flow");
}

static void test_priority(struct verdict *v)
{
	struct ibv_flow *low = flow_add(receiver[0], flow_to(DPORT, 0, 5));
	struct ibv_flow *high = flow_add(receiver[1], flow_to(DPORT, 0, 1));

	expect(v, send_frame(v, 0, 1, DPORT), 1, "both");
	ibv_destroy_flow(high);
	expect(v, send_frame(v, 0, 1, DPORT), 0, "the other");
	ibv_destroy_flow(low);
}

static void test_vlan(struct verdict *v)
{
	struct ibv_flow *flow = flow_add(receiver[0], flow_to(DPORT, 42, 0));

	expect(v, send_frame(v, 42, 1, DPORT), 0, "its VLAN");
	expect(v, send_frame(v, 43, 1, DPORT), NOBODY, "another VLAN");
	expect(v, send_frame(v, 0, 1, DPORT), NOBODY, "no tag");
	ibv_destroy_flow(flow);
}

static void test_drop(struct verdict *v)
{
	struct ibv_flow *take = flow_add(receiver[0], flow_to(DPORT, 0, 5)), *drop;
	struct flow f = flow_to(DPORT, 0, 1);

	f.drop = (struct ibv_flow_spec_action_drop){ IBV_FLOW_SPEC_ACTION_DROP, sizeof(f.drop) };
	f.attr.num_of_specs++;
	f.attr.size = sizeof(f);
	drop = flow_add(receiver[1], f);
	expect(v, send_frame(v, 0, 1, DPORT), NOBODY, "dropped");
	ibv_destroy_flow(drop);
	expect(v, send_frame(v, 0, 1, DPORT), 0, "no longer dropped");
	ibv_destroy_flow(take);
}

static bool socket_hears(int fd)
{
	char data[128];

	return recv(fd, data, sizeof(data), 0) == 64;
}

/* The kernel receives exactly the frames that no flow takes. */
static void test_kernel(struct verdict *v)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(DPORT + 1) };
	const struct timeval wait = { .tv_sec = 1 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ibv_flow *flow;

	if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof(here)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)))
		bail("no socket: %s", strerror(errno));
	flow = flow_add(receiver[0], flow_to(DPORT, 0, 0));
	expect(v, send_frame(v, 0, 1, DPORT + 1), NOBODY, "the kernel's port");
	expect(v, socket_hears(fd), true, "beside the flow");
	ibv_destroy_flow(flow);
	flow = flow_add(receiver[0], flow_to(DPORT + 1, 0, 0));
	expect(v, send_frame(v, 0, 1, DPORT + 1), 0, "the flow's port");
	expect(v, socket_hears(fd), false, "in the flow");
	ibv_destroy_flow(flow);
	close(fd);
}

/* Without CAP_NET_RAW the queue pair cannot be created. */
static void test_unprivileged(struct verdict *v)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct ibv_qp *qp;

		if (setgid(65534) || setuid(65534))
			_exit(2);
		qp = raw_create(dev.pd);
		_exit(qp ? 1 : errno == EPERM ? 0 : 3);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		verdict_fail(v, "status %#x, expected a refusal with EPERM", status);
}

static struct ibv_wq *wq_open(unsigned int who)
{
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ, .max_wr = RECVS, .max_sge = 1, .pd = dev.pd, .cq = cq.cq,
	};
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq *wq = ibv_create_wq(dev.verbs, &init);
	struct ibv_sge sge = slot(200 + who);
	struct ibv_recv_wr *bad, wr = { .wr_id = who, .sg_list = &sge, .num_sge = 1 };

	if (!wq || ibv_modify_wq(wq, &ready))
		bail("no work queue: %s", strerror(errno));
	for (unsigned int i = 0; i < RECVS; i++)
		if (ibv_post_wq_recv(wq, &wr, &bad))
			bail("cannot post to a work queue");
	return wq;
}

/* Change the state if the current one is @cur. Return: 0 or errno. */
static int wq_move(struct ibv_wq *wq, enum ibv_wq_state cur, enum ibv_wq_state next)
{
	struct ibv_wq_attr attr = {
		.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
		.curr_wq_state = cur, .wq_state = next,
	};

	return ibv_modify_wq(wq, &attr);
}

/* The driver knows the state, whatever the process says. */
static void test_wq_state(struct verdict *v)
{
	struct ibv_wq *wq = wq_open(0);

	if (wq_move(wq, IBV_WQS_RESET, IBV_WQS_ERR) != EINVAL ||
	    wq_move(wq, IBV_WQS_ERR, IBV_WQS_RESET) != EINVAL)
		verdict_fail(v, "moved from a state that it does not have");
	if (wq_move(wq, IBV_WQS_RDY, IBV_WQS_ERR))
		verdict_fail(v, "not moved from RDY to ERR");
	if (wq_move(wq, IBV_WQS_RDY, IBV_WQS_RESET) != EINVAL)
		verdict_fail(v, "moved from the state before the last");
	if (wq_move(wq, IBV_WQS_ERR, IBV_WQS_RESET) || wq_move(wq, IBV_WQS_RESET, IBV_WQS_RDY))
		verdict_fail(v, "not moved from ERR to RDY");
	ibv_destroy_wq(wq);
}

/* Move to ERR, with bytes of the driver's request; return 0 or an errno. */
static int raw_modify_wq(struct ibv_wq *wq, uint64_t request)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		struct ib_uverbs_ex_modify_wq core;
		uint64_t request;
	} cmd = {
		.hdr = {
			.command = IB_USER_VERBS_EX_CMD_MODIFY_WQ | IB_USER_VERBS_CMD_FLAG_EXTENDED,
			.in_words = sizeof(cmd.core) / 8,
		},
		.ex = { .provider_in_words = sizeof(cmd.request) / 8 },
		.core = {
			.attr_mask = IBV_WQ_ATTR_STATE, .wq_handle = wq->handle,
			.wq_state = IBV_WQS_ERR,
		},
		.request = request,
	};

	return write(dev.verbs->cmd_fd, &cmd, sizeof(cmd)) == sizeof(cmd) ? 0 : errno;
}

/* A newer provider may ask for something that this driver does not know. */
static void test_wq_request(struct verdict *v)
{
	struct ibv_wq *wq = wq_open(0);
	int err = raw_modify_wq(wq, 1);

	if (err != EOPNOTSUPP)
		verdict_fail(v, "an unknown request: %s", strerror(err));
	if (wq_move(wq, IBV_WQS_ERR, IBV_WQS_RESET) != EINVAL)
		verdict_fail(v, "moved by an unknown request");
	err = raw_modify_wq(wq, 0);
	if (err)
		verdict_fail(v, "no request: %s", strerror(err));
	if (wq_move(wq, IBV_WQS_ERR, IBV_WQS_RESET))
		verdict_fail(v, "not moved to ERR");
	ibv_destroy_wq(wq);
}

static struct ibv_qp *group_open(struct ibv_rwq_ind_table *table)
{
	static uint8_t key[40];
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = dev.pd, .rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key), .rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 |
					       IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP,
		},
	};
	struct ibv_qp *qp;

	for (unsigned int i = 0; i < sizeof(key); i++)
		key[i] = 0x6d + i * 89;
	qp = ibv_create_qp_ex(dev.verbs, &init);
	if (!qp)
		bail("no queue pair for receive scaling: %s", strerror(errno));
	return qp;
}

/* Flows are spread over all work queues; each stays on one queue. */
static void spread(struct verdict *v)
{
	unsigned int used = 0;

	for (unsigned int i = 0; i < FLOWS; i++) {
		int first = send_frame(v, 0, 1000 + i, DPORT);

		expect(v, send_frame(v, 0, 1000 + i, DPORT), first, "work queue of a flow");
		if (first == NOBODY)
			verdict_fail(v, "nobody received flow %u", i);
		else
			used |= 1u << first;
	}
	expect(v, used, (1u << WQS) - 1, "work queues that received");
}

static void test_rss(struct verdict *v)
{
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 2 };
	struct ibv_rwq_ind_table *table;
	struct ibv_wq *wq[WQS];
	struct ibv_flow *flow;
	struct ibv_qp *group;

	for (unsigned int i = 0; i < WQS; i++)
		wq[i] = wq_open(i);
	init.ind_tbl = wq;
	table = ibv_create_rwq_ind_table(dev.verbs, &init);
	if (!table)
		bail("no table: %s", strerror(errno));
	group = group_open(table);
	flow = flow_add(group, flow_to(DPORT, 0, 0));
	spread(v);
	ibv_destroy_flow(flow);
	if (ibv_destroy_qp(group) || ibv_destroy_rwq_ind_table(table))
		verdict_fail(v, "group does not go");
	for (unsigned int i = 0; i < WQS; i++)
		if (ibv_destroy_wq(wq[i]))
			verdict_fail(v, "work queue does not go");
}

static const struct {
	const char *name;
	void (*run)(struct verdict *v);
} tests[] = {
	{ "match", test_match }, { "priority", test_priority }, { "vlan", test_vlan },
	{ "drop", test_drop }, { "kernel", test_kernel },
	{ "unprivileged", test_unprivileged }, { "rss", test_rss },
	{ "wq_state", test_wq_state }, { "wq_request", test_wq_request },
};

static void run(const char *name, void (*test)(struct verdict *v))
{
	struct verdict good = {}, v = {};

	sender = raw_open(SENDER);
	receiver[0] = raw_open(0);
	receiver[1] = raw_open(1);
	test(&v);
	if (ibv_destroy_qp(sender) || ibv_destroy_qp(receiver[0]) || ibv_destroy_qp(receiver[1]))
		verdict_fail(&v, "queue pairs do not go");
	tap_point(name, &v, &good);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		bail("usage: verbs_raw DEVICE [TEST...]");
	dev_open(&dev, argv[1], -1);
	own_mac(argv[1]);
	queue_create(&cq, &dev, 1024, false);
	buf = aligned_alloc(4096, SLOT * SLOTS);
	mr = buf ? ibv_reg_mr(dev.pd, buf, SLOT * SLOTS, IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!mr)
		bail("no memory region: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		bool wanted = argc == 2;

		for (int j = 2; j < argc; j++)
			wanted |= !strcmp(argv[j], tests[i].name);
		if (wanted)
			run(tests[i].name, tests[i].run);
	}
	ibv_dereg_mr(mr);
	queue_destroy(&cq);
	dev_close(&dev);
	return tap_end();
}
