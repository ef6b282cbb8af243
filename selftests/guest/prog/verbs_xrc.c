// SPDX-License-Identifier: GPL-2.0
/*
 * Extended reliable connections: one process has the connection, another one an SRQ of the
 * same XRC domain, which they share by a file.
 *
 *   verbs_xrc DEVICE [TEST...]	the named tests, or all; prints TAP
 */
#include "conn.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN		20000u
#define MESSAGES	8
#define PATIENCE	20
#define SILENCE		0.05

/* An SRQ of type XRC with a queue for its completions, and its memory */
struct inbox {
	struct ibv_srq *srq;
	struct queue cq;
	struct ibv_mr *mr;
	char *buf;
	uint32_t number;
};

static const char *name;
static struct dev dev;
static struct ibv_xrcd *xrcd;
static struct ibv_qp *ini, *tgt;
static struct queue sends;
static struct ibv_mr *mr;
static char *buf;
static int file;

static void expect(struct verdict *v, long got, long want, const char *what)
{
	if (got != want)
		verdict_fail(v, "%s: %ld, expected %ld", what, got, want);
}

static struct ibv_xrcd *domain(int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd, .oflags = O_CREAT,
	};
	struct ibv_xrcd *x = ibv_open_xrcd(dev.verbs, &attr);

	if (!x)
		bail("ibv_open_xrcd: %s", strerror(errno));
	return x;
}

static void inbox_open(struct inbox *in, struct ibv_xrcd *x)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = MESSAGES, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .xrcd = x,
		.pd = dev.pd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
	};

	queue_create(&in->cq, &dev, 64, false);
	attr.cq = in->cq.cq;
	in->srq = ibv_create_srq_ex(dev.verbs, &attr);
	if (!in->srq || ibv_get_srq_num(in->srq, &in->number))
		bail("no SRQ of type XRC: %s", strerror(errno));
	in->buf = aligned_alloc(4096, MESSAGES * LEN);
	in->mr = ibv_reg_mr(dev.pd, in->buf, MESSAGES * LEN, IBV_ACCESS_LOCAL_WRITE);
	if (!in->mr)
		bail("ibv_reg_mr: %s", strerror(errno));
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct ibv_sge sge = { (uintptr_t)in->buf + i * LEN, LEN, in->mr->lkey };
		struct ibv_recv_wr *bad, wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

		if (ibv_post_srq_recv(in->srq, &wr, &bad))
			bail("ibv_post_srq_recv failed");
	}
}

static void inbox_close(struct inbox *in)
{
	if (ibv_destroy_srq(in->srq))
		bail("cannot destroy an SRQ");
	queue_destroy(&in->cq);
	ibv_dereg_mr(in->mr);
	free(in->buf);
}

/* Message @i has arrived in entry @i and starts and ends with @mark. */
static bool arrived(struct inbox *in, uint32_t i, char mark)
{
	struct ibv_wc wc;

	return queue_wait(&in->cq, &wc, PATIENCE) && wc.status == IBV_WC_SUCCESS &&
	       wc.wr_id == i && wc.byte_len == LEN && in->buf[i * LEN] == mark &&
	       in->buf[i * LEN + LEN - 1] == mark;
}

static struct ibv_qp *qp_create(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type, .pd = dev.pd, .send_cq = sends.cq, .xrcd = xrcd,
		.cap = { .max_send_wr = 64, .max_send_sge = 1 },
		.comp_mask = type == IBV_QPT_XRC_SEND ? IBV_QP_INIT_ATTR_PD : IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(dev.verbs, &attr);

	if (!qp)
		bail("ibv_create_qp_ex of type %d: %s", type, strerror(errno));
	return qp;
}

/* The initiator has no responder attributes, the target no requester attributes. */
static void qp_connect(struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = ALL_RIGHTS,
		.path_mtu = dev.mtu_code, .dest_qp_num = dest, .min_rnr_timer = 12, .timeout = 17,
		.retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1, .max_dest_rd_atomic = 1,
		.ah_attr = {
			.is_global = 1, .port_num = PORT,
			.grh = { .dgid = dev.gid, .sgid_index = dev.gid_index, .hop_limit = 64 },
		},
	};
	bool target = qp->qp_type == IBV_QPT_XRC_RECV;
	int err;

	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    (target ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
				    (target ? 0 : IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC));
	if (err)
		bail("queue pairs do not connect: %s", strerror(err));
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
		bail("ibv_query_qp failed");
	return attr.qp_state;
}

/* Return the status of a message, all bytes @mark, to SRQ @number; -1 if it does not complete */
static int send_to(uint32_t number, char mark)
{
	struct ibv_sge sge = { (uintptr_t)buf, LEN, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge,
		.num_sge = 1, .qp_type.xrc.remote_srqn = number,
	};
	struct ibv_wc wc;

	memset(buf, mark, LEN);
	if (ibv_post_send(ini, &wr, &bad))
		bail("ibv_post_send failed");
	return queue_wait(&sends, &wc, PATIENCE) ? (int)wc.status : -1;
}

/* The responder rejects it: the sender gets the error, the target enters ERR. */
static void refused(struct verdict *v, uint32_t number)
{
	expect(v, send_to(number, 'x'), IBV_WC_REM_INV_REQ_ERR, "status");
	expect(v, state_of(tgt), IBV_QPS_ERR, "state of the target");
}

/* Run the other process: it sends the number of its SRQ, and the state of its messages. */
static int other_process(const char *path, int pipe)
{
	struct inbox in;
	bool good = true;

	dev_open(&dev, name, -1);
	xrcd = domain(open(path, O_RDONLY));
	inbox_open(&in, xrcd);
	if (write(pipe, &in.number, sizeof(in.number)) != sizeof(in.number))
		return 2;
	for (uint32_t i = 0; i < MESSAGES; i++)
		good &= arrived(&in, i, 'a' + i);
	inbox_close(&in);
	return !good || ibv_close_xrcd(xrcd);
}

/* One connection of this process serves a local SRQ and one of the other process, in turn. */
static void test_processes(struct verdict *v, const char *path)
{
	int status = -1, ends[2];
	uint32_t number = 0;
	struct inbox in;
	pid_t pid;

	if (pipe(ends))
		bail("pipe: %s", strerror(errno));
	pid = fork();
	if (!pid)
		_exit(other_process(path, ends[1]));
	close(ends[1]);
	inbox_open(&in, xrcd);
	if (read(ends[0], &number, sizeof(number)) != sizeof(number))
		bail("the other process has no SRQ");
	for (uint32_t i = 0; i < MESSAGES; i++) {
		expect(v, send_to(number, 'a' + i), IBV_WC_SUCCESS, "to the other process");
		expect(v, send_to(in.number, 'A' + i), IBV_WC_SUCCESS, "to this process");
		expect(v, arrived(&in, i, 'A' + i), true, "message to this process");
	}
	waitpid(pid, &status, 0);
	expect(v, status, 0, "status of the other process");
	close(ends[0]);
	refused(v, number);		/* its SRQ went with it */
	inbox_close(&in);
}

static void test_wrong_number(struct verdict *v, const char *path)
{
	struct inbox in;

	(void)path;
	inbox_open(&in, xrcd);
	refused(v, in.number + 100);
	inbox_close(&in);
}

/* An existing SRQ of another XRC domain: it loses no entry. */
static void test_other_domain(struct verdict *v, const char *path)
{
	struct ibv_xrcd *other = domain(-1);
	struct inbox in;
	struct ibv_wc wc;

	(void)path;
	inbox_open(&in, other);
	refused(v, in.number);
	if (queue_wait(&in.cq, &wc, SILENCE))
		verdict_fail(v, "the SRQ completed an entry");
	inbox_close(&in);
	expect(v, ibv_close_xrcd(other), 0, "ibv_close_xrcd");
}

static int resize(struct inbox *in, uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ibv_modify_srq(in->srq, &attr, IBV_SRQ_MAX_WR);
}

/* The ring is resized between messages; posted entries stay. */
static void test_resize(struct verdict *v, const char *path)
{
	struct inbox in;

	(void)path;
	inbox_open(&in, xrcd);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		if (i == MESSAGES / 4) {
			expect(v, resize(&in, 256), 0, "to 256");
			expect(v, resize(&in, MESSAGES / 2), EINVAL, "below what is posted");
		}
		if (i == MESSAGES / 2)
			expect(v, resize(&in, MESSAGES / 2), 0, "to half");
		expect(v, send_to(in.number, 'a' + i), IBV_WC_SUCCESS, "message");
		expect(v, arrived(&in, i, 'a' + i), true, "its entry");
	}
	inbox_close(&in);
}

static const struct {
	const char *name;
	void (*run)(struct verdict *v, const char *path);
} tests[] = {
	{ "processes", test_processes }, { "wrong_number", test_wrong_number },
	{ "other_domain", test_other_domain }, { "resize", test_resize },
};

static void run(int test, const char *path)
{
	struct verdict good = {}, v = {};

	queue_create(&sends, &dev, 64, false);
	xrcd = domain(file);
	ini = qp_create(IBV_QPT_XRC_SEND);
	tgt = qp_create(IBV_QPT_XRC_RECV);
	qp_connect(ini, tgt->qp_num);
	qp_connect(tgt, ini->qp_num);
	tests[test].run(&v, path);
	expect(&v, ibv_destroy_qp(ini), 0, "destroy the initiator");
	expect(&v, ibv_destroy_qp(tgt), 0, "destroy the target");
	expect(&v, ibv_close_xrcd(xrcd), 0, "ibv_close_xrcd");
	queue_destroy(&sends);
	tap_point(tests[test].name, &v, &good);
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/verbs_xrc.XXXXXX";

	if (argc < 2)
		bail("usage: verbs_xrc DEVICE [TEST...]");
	name = argv[1];
	file = mkstemp(path);
	dev_open(&dev, name, -1);
	buf = aligned_alloc(4096, LEN + 4096 - LEN % 4096);
	mr = ibv_reg_mr(dev.pd, buf, LEN, IBV_ACCESS_LOCAL_WRITE);
	if (file < 0 || !mr)
		bail("no file, or no region: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		bool wanted = argc == 2;

		for (int j = 2; j < argc; j++)
			wanted |= !strcmp(argv[j], tests[i].name);
		if (wanted)
			run(i, path);
	}
	unlink(path);
	ibv_dereg_mr(mr);
	free(buf);
	dev_close(&dev);
	return tap_end();
}
