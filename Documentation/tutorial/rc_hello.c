// SPDX-License-Identifier: GPL-2.0
/*
 * rc_hello: the program of the tutorial (Documentation/tutorial/index.rst).
 *
 * The server offers a buffer. The client writes a text into it by RDMA WRITE, then sends an empty
 * message so that the server's process learns of it, then reads the buffer back by RDMA READ.
 *
 * cc -Wall -o rc_hello rc_hello.c -libverbs
 * ./rc_hello [-d DEVICE]               server
 * ./rc_hello [-d DEVICE] ADDRESS       client; ADDRESS is the server's, in any network
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TCP_PORT	"18620"
#define IB_PORT		1
#define BUFFER_BYTES	4096
#define FIRST_PSN	0x123456

/* Numbers that each side tells the other, in network byte order */
struct end {
	uint32_t qpn;		/* number of the queue pair */
	uint32_t rkey;		/* key that remote access to the buffer takes */
	uint64_t addr;		/* address of the buffer */
	uint32_t mtu;		/* largest path MTU of the port, enum ibv_mtu */
	uint8_t gid[16];	/* address of the port */
};

struct hello {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *buffer;
	int gid_index;
	int sock;		/* TCP connection to the other side */
	struct end here, there;
};

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* Most verbs return an error number and need not set errno. */
static void check_verb(int error, const char *what)
{
	errno = error;
	check(!error, what);
}

/* ---- 1. open the device ------------------------------------------------------------------ */

static void open_device(struct hello *h, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	check(list != NULL, "ibv_get_device_list");
	errno = ENODEV;			/* if no device has the name */
	for (int i = 0; list[i] && !h->ctx; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			h->ctx = ibv_open_device(list[i]);
	check(h->ctx != NULL, name ? name : "RDMA device");
	ibv_free_device_list(list);
}

/* Find the GID of an IPv4 address: ::ffff:a.b.c.d, of type RoCE v2. */
static void find_gid(struct hello *h, const struct ibv_port_attr *port)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry gid;

	for (h->gid_index = 0; h->gid_index < port->gid_tbl_len; h->gid_index++) {
		if (ibv_query_gid_ex(h->ctx, IB_PORT, h->gid_index, &gid, 0))
			continue;	/* an empty entry */
		if (gid.gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(gid.gid.raw, ipv4, sizeof(ipv4))) {
			memcpy(h->here.gid, gid.gid.raw, sizeof(h->here.gid));
			return;
		}
	}
	fprintf(stderr, "the port has no IPv4 address\n");
	exit(1);
}

/* ---- 2. create the objects ---------------------------------------------------------------- */

static void create(struct hello *h)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_port_attr port;

	check_verb(ibv_query_port(h->ctx, IB_PORT, &port), "ibv_query_port");
	find_gid(h, &port);
	h->pd = ibv_alloc_pd(h->ctx);
	check(h->pd != NULL, "ibv_alloc_pd");
	h->buffer = calloc(1, BUFFER_BYTES);
	check(h->buffer != NULL, "calloc");
	h->mr = ibv_reg_mr(h->pd, h->buffer, BUFFER_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	check(h->mr != NULL, "ibv_reg_mr");
	h->cq = ibv_create_cq(h->ctx, 8, NULL, NULL, 0);
	check(h->cq != NULL, "ibv_create_cq");
	init.send_cq = init.recv_cq = h->cq;
	h->qp = ibv_create_qp(h->pd, &init);
	check(h->qp != NULL, "ibv_create_qp");
	h->here.qpn = htobe32(h->qp->qp_num);
	h->here.rkey = htobe32(h->mr->rkey);
	h->here.addr = htobe64((uintptr_t)h->buffer);
	h->here.mtu = htobe32(port.active_mtu);
}

/* ---- 3. tell each other what to connect to --------------------------------------------------- */

static void meet(struct hello *h, const char *server)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = server ? 0 : AI_PASSIVE };
	struct addrinfo *ai;
	int sock, error, one = 1;

	error = getaddrinfo(server, TCP_PORT, &hints, &ai);
	if (error) {
		fprintf(stderr, "getaddrinfo: %s\n", gai_strerror(error));
		exit(1);
	}
	sock = socket(ai->ai_family, ai->ai_socktype, ai->ai_protocol);
	check(sock >= 0, "socket");
	if (server) {
		check(!connect(sock, ai->ai_addr, ai->ai_addrlen), "connect");
		h->sock = sock;
	} else {
		setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		check(!bind(sock, ai->ai_addr, ai->ai_addrlen) && !listen(sock, 1), "listen");
		h->sock = accept(sock, NULL, NULL);
		check(h->sock >= 0, "accept");
		close(sock);
	}
	freeaddrinfo(ai);
	check(write(h->sock, &h->here, sizeof(h->here)) == sizeof(h->here), "write");
	check(recv(h->sock, &h->there, sizeof(h->there), MSG_WAITALL) == sizeof(h->there), "recv");
}

/* Return when the other side has come to the same call. */
static void sync_both(struct hello *h)
{
	char byte = 0;

	check(write(h->sock, &byte, 1) == 1 && read(h->sock, &byte, 1) == 1, "the other side ended");
}

/* ---- 4. connect the queue pair: RESET, INIT, RTR, RTS ------------------------------------------ */

static void connect_qp(struct hello *h)
{
	uint32_t mtu = be32toh(h->there.mtu), own = be32toh(h->here.mtu);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = IB_PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	check_verb(ibv_modify_qp(h->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				 IBV_QP_ACCESS_FLAGS), "INIT");

	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,		/* ready to receive */
		.path_mtu = mtu < own ? mtu : own,
		.dest_qp_num = be32toh(h->there.qpn),
		.rq_psn = FIRST_PSN,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,			/* 0.64 ms */
		.ah_attr = {
			.is_global = 1,			/* RoCE always has a GRH */
			.port_num = IB_PORT,
			.grh = { .sgid_index = h->gid_index, .hop_limit = 64 },
		},
	};
	memcpy(attr.ah_attr.grh.dgid.raw, h->there.gid, sizeof(h->there.gid));
	check_verb(ibv_modify_qp(h->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				 IBV_QP_MIN_RNR_TIMER), "RTR");

	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,		/* ready to send */
		.sq_psn = FIRST_PSN,
		.max_rd_atomic = 1,
		.timeout = 14,				/* 4.096 us * 2^14 = 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,				/* for ever */
	};
	check_verb(ibv_modify_qp(h->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

/* ---- 5. move data --------------------------------------------------------------------------- */

/* Wait for one completion, which has to be a success. */
static void complete(struct hello *h, const char *what)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(h->cq, 1, &wc);
	while (!n);
	check(n == 1, "ibv_poll_cq");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(wc.status));
		exit(1);
	}
	printf("%s completed\n", what);
}

static void post_recv(struct hello *h)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;	/* no SGE: an empty message fits */

	check_verb(ibv_post_recv(h->qp, &wr, &bad), "ibv_post_recv");
}

/* Post a request with bytes of the buffer, from offset on, and wait for its completion. */
static void request(struct hello *h, enum ibv_wr_opcode opcode, uint32_t offset, uint32_t bytes,
		    const char *what)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)h->buffer + offset, .length = bytes, .lkey = h->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = bytes ? 1 : 0,
		.wr.rdma = { .remote_addr = be64toh(h->there.addr), .rkey = be32toh(h->there.rkey) },
	};

	check_verb(ibv_post_send(h->qp, &wr, &bad), "ibv_post_send");
	complete(h, what);
}

static void serve(struct hello *h)
{
	complete(h, "RECV");
	printf("the client wrote: %s\n", h->buffer);
}

static void ask(struct hello *h)
{
	uint32_t half = BUFFER_BYTES / 2, bytes;

	bytes = snprintf(h->buffer, half, "hello from queue pair 0x%06x", h->qp->qp_num) + 1;
	request(h, IBV_WR_RDMA_WRITE, 0, bytes, "WRITE");
	request(h, IBV_WR_SEND, 0, 0, "SEND");
	request(h, IBV_WR_RDMA_READ, half, bytes, "READ");
	printf("the server has: %s\n", h->buffer + half);
}

/* ---- 6. clean up, in reverse order ------------------------------------------------------------- */

static void destroy(struct hello *h)
{
	check_verb(ibv_destroy_qp(h->qp), "ibv_destroy_qp");
	check_verb(ibv_destroy_cq(h->cq), "ibv_destroy_cq");
	check_verb(ibv_dereg_mr(h->mr), "ibv_dereg_mr");
	free(h->buffer);
	check_verb(ibv_dealloc_pd(h->pd), "ibv_dealloc_pd");
	check(!ibv_close_device(h->ctx), "ibv_close_device");
	close(h->sock);
}

int main(int argc, char **argv)
{
	const char *device = NULL, *server = NULL;
	struct hello h = {};

	if (argc > 2 && !strcmp(argv[1], "-d")) {
		device = argv[2];
		argv += 2;
	}
	server = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_device(&h, device);
	create(&h);
	meet(&h, server);
	connect_qp(&h);
	if (!server)
		post_recv(&h);
	sync_both(&h);		/* the server can receive now */
	if (server)
		ask(&h);
	else
		serve(&h);
	sync_both(&h);		/* nobody needs the buffers any more */
	destroy(&h);
	return 0;
}
