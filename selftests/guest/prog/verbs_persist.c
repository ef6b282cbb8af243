// SPDX-License-Identifier: GPL-2.0
/*
 * FLUSH to persistent memory. The server offers memory that is the file of -m, such as
 * /dev/dax0.0; the client writes a pattern there and flushes each piece, then the whole
 * region. Prints TAP. The caller checks the content of the file.
 */
#include "conn.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OOB_PORT "7479"
#define LEN	65536u
#define PIECE	4096u
#define MAPPED	(2u << 20)	/* smallest mapping of a DAX device with huge pages */
#define PATIENCE 60
#define RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		 IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)

/* Parameters of the memory for the client */
struct target {
	uint64_t addr;
	uint32_t rkey;
};

static void fill(uint8_t *p)
{
	for (uint32_t i = 0; i < LEN; i++)
		p[i] = i * 7 + (i >> 8);
}

static void connect_to(struct conn *c, struct dev *d, struct queue *q, struct oob *o)
{
	struct conn_attr attr;

	conn_attr_default(&attr, d);
	attr.access = RIGHTS & ~IBV_ACCESS_LOCAL_WRITE;
	attr.timeout = 20;		/* 4 s, because a disk is slower than memory */
	attr.ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_FLUSH;
	queue_create(q, d, 64, false);
	conn_create(c, d, &attr, q, q);
	conn_connect(c, o);
}

static void serve(struct dev *d, const char *path)
{
	int fd = open(path, O_RDWR), listener = oob_listen(OOB_PORT);
	struct verdict mine = { 0 }, theirs;
	uint8_t *mem, *want = malloc(LEN);
	struct target target;
	struct ibv_mr *mr;
	struct queue q;
	struct conn c;
	struct oob o;

	if (fd < 0)
		bail("cannot open %s: %s", path, strerror(errno));
	mem = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		bail("cannot map %s: %s", path, strerror(errno));
	mr = ibv_reg_mr(d->pd, mem, LEN, RIGHTS);
	if (!mr)
		bail("cannot register %s: %s", path, strerror(errno));
	memset(mem, 0, LEN);
	printf("listening\n");
	fflush(stdout);
	if (!oob_accept(&o, listener))
		bail("no client");
	connect_to(&c, d, &q, &o);
	target = (struct target) { (uintptr_t)mem, mr->rkey };
	oob_send(&o, &target, sizeof(target));
	oob_barrier(&o);
	fill(want);
	if (memcmp(mem, want, LEN))
		verdict_fail(&mine, "the memory is not what was written");
	oob_swap(&o, &mine, &theirs, sizeof(theirs));
	conn_destroy(&c);
	queue_destroy(&q);
	ibv_dereg_mr(mr);
	oob_close(&o);
}

static void expect(struct queue *q, enum ibv_wc_opcode opcode, struct verdict *v)
{
	struct ibv_wc wc;

	if (!queue_wait(q, &wc, PATIENCE))
		verdict_fail(v, "no completion within %d s", PATIENCE);
	else if (wc.status)
		verdict_fail(v, "%s, vendor_err %#x", ibv_wc_status_str(wc.status), wc.vendor_err);
	else if (wc.opcode != opcode)
		verdict_fail(v, "opcode %u, expected %u", wc.opcode, opcode);
}

/* Write and flush a piece; or only flush, for the whole region. */
static void write_and_flush(struct conn *c, struct ibv_mr *mr, const struct target *to, uint32_t at,
			    struct verdict *v)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(c->qp);

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	if (at < LEN) {
		ibv_wr_rdma_write(qp, to->rkey, to->addr + at);
		ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)mr->addr + at, PIECE);
		ibv_wr_flush(qp, to->rkey, to->addr + at, PIECE,
			     IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	} else {
		ibv_wr_flush(qp, to->rkey, 0, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	}
	if (ibv_wr_complete(qp))
		verdict_fail(v, "cannot post");
}

static void ask(struct dev *d, const char *server)
{
	struct verdict mine = { 0 }, theirs;
	uint8_t *mem = malloc(LEN);
	struct target target;
	struct ibv_mr *mr;
	struct queue q;
	struct conn c;
	struct oob o;

	fill(mem);
	mr = ibv_reg_mr(d->pd, mem, LEN, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		bail("cannot register memory: %s", strerror(errno));
	oob_connect(&o, server, OOB_PORT);
	connect_to(&c, d, &q, &o);
	oob_recv(&o, &target, sizeof(target));
	for (uint32_t at = 0; at <= LEN && !mine.bad; at += PIECE) {
		write_and_flush(&c, mr, &target, at, &mine);
		if (at < LEN)
			expect(&q, IBV_WC_RDMA_WRITE, &mine);
		expect(&q, IBV_WC_FLUSH, &mine);
	}
	oob_barrier(&o);
	oob_swap(&o, &mine, &theirs, sizeof(theirs));
	tap_point("flush_persistent", &mine, &theirs);
	conn_destroy(&c);
	queue_destroy(&q);
	ibv_dereg_mr(mr);
	oob_close(&o);
}

int main(int argc, char **argv)
{
	const char *device = NULL, *path = NULL;
	struct dev dev;
	int option;

	while ((option = getopt(argc, argv, "d:m:")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'm')
			path = optarg;
	}
	if (!device || !path == (optind == argc)) {
		fprintf(stderr, "usage: verbs_persist -d DEVICE { -m FILE | SERVER }\n");
		return 2;
	}
	dev_open(&dev, device, -1);
	if (path)
		serve(&dev, path);
	else
		ask(&dev, argv[optind]);
	dev_close(&dev);
	return path ? 0 : tap_end();
}
