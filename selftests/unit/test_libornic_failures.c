// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, every failure during creation of an object: each allocation, each mapping, the
 * command, and the command that destroys. With -fsanitize=address no memory leaks or is freed
 * twice.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ornic-ioctl.h>

#include "test_libornic_kernel.h"

static struct rig rig;
static struct ibv_context *ctx;
static struct ibv_qp *qp;
static struct verbs_xrcd xrcd;
static struct ibv_rwq_ind_table table;
static uint8_t key[ORNIC_RSS_KEY_BYTES];

static int setup(void **state)
{
	const struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };

	(void)state;
	rig_open(&rig, 8);
	ctx = &rig.ctx->ibv_ctx.context;
	rig.ctx->limits.log_max_srq = 4;
	rig.ctx->limits.max_srq_sge = 4;
	kernel.dm.length = 100;
	qp = &rig_qp(&rig, IBV_QPT_RC, cap, 0)->vqp.qp;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

static void *make_pd(void)
{
	return ornic_alloc_pd(ctx);
}

static int drop_pd(void *pd)
{
	return ornic_dealloc_pd(pd);
}

static void *make_cq(void)
{
	return ornic_create_cq(ctx, 8, NULL, 0);
}

static int drop_cq(void *cq)
{
	return ornic_destroy_cq(cq);
}

static void *make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = &rig.cq->vcq.cq, .recv_cq = &rig.cq->vcq.cq, .qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 },
	};
	struct ibv_qp *made;

	kernel.qpn = 0x234567;	/* a separate leaf */
	made = ornic_create_qp(rig.pd, &attr);
	assert_int_equal(attr.cap.max_inline_data, made ? 32 : 0);
	return made;
}

static void *make_target(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = &xrcd.xrcd,
	};

	return ornic_create_qp_ex(ctx, &attr);
}

static void *open_target(void)
{
	struct ibv_qp_open_attr attr = { .qp_num = 5, .qp_type = IBV_QPT_XRC_RECV };

	return ornic_open_qp(ctx, &attr);
}

static void *make_rss(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = rig.pd, .rwq_ind_tbl = &table,
		.recv_cq = &rig.cq->vcq.cq,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, 1 },
	};

	return ornic_create_qp_ex(ctx, &attr);
}

static int drop_qp(void *made)
{
	return ornic_destroy_qp(made);
}

static void *make_wq(void)
{
	kernel.qpn = 0x345678;	/* another one */
	return rig_wq(&rig, rig.cq);
}

static int drop_wq(void *wq)
{
	return ornic_destroy_wq(wq);
}

static void *make_table(void)
{
	struct ibv_rwq_ind_table_init_attr attr = {};

	return ornic_create_rwq_ind_table(ctx, &attr);
}

static int drop_table(void *made)
{
	return ornic_destroy_rwq_ind_table(made);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 3, .max_sge = 1 } };
	struct ibv_srq *srq = ornic_create_srq(rig.pd, &attr);

	assert_int_equal(attr.attr.max_wr, srq ? 4 : 3);
	return srq;
}

static void *make_xsrq(void)
{
	return rig_xsrq(&rig);
}

static int drop_srq(void *srq)
{
	return ornic_destroy_srq(srq);
}

static void *make_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {};

	return ornic_open_xrcd(ctx, &attr);
}

static int drop_xrcd(void *made)
{
	return ornic_close_xrcd(made);
}

static void *make_ah(void)
{
	struct ibv_ah_attr attr = { .is_global = 1 };

	return ornic_create_ah(rig.pd, &attr);
}

static int drop_ah(void *ah)
{
	return ornic_destroy_ah(ah);
}

static void *make_mr(void)
{
	return ornic_reg_mr(rig.pd, &rig, 8, 0, 0);
}

static void *make_dmabuf_mr(void)
{
	return ornic_reg_dmabuf_mr(rig.pd, 1, 2, 3, 4, 5);
}

static int drop_mr(void *mr)
{
	return ornic_dereg_mr(verbs_get_mr(mr));
}

static void *make_mw(void)
{
	return ornic_alloc_mw(rig.pd, IBV_MW_TYPE_1);
}

static int drop_mw(void *mw)
{
	return ornic_dealloc_mw(mw);
}

static void *make_flow(void)
{
	struct ibv_flow_attr attr = {};

	return ornic_create_flow(qp, &attr);
}

static int drop_flow(void *flow)
{
	return ornic_destroy_flow(flow);
}

static void *make_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 100 };

	return ornic_alloc_dm(ctx, &attr);
}

static int drop_dm(void *dm)
{
	return ornic_free_dm(dm);
}

static void *make_td(void)
{
	struct ibv_td_init_attr attr = {};

	return ornic_alloc_td(ctx, &attr);
}

static int drop_td(void *td)
{
	return ornic_dealloc_td(td);
}

static void *make_parent(void)
{
	struct ibv_parent_domain_init_attr attr = { .pd = rig.pd };

	return ornic_alloc_parent_domain(ctx, &attr);
}

static void *import_dm(void)
{
	return ornic_import_dm(ctx, 7);
}

static void *import_pd(void)
{
	return ornic_import_pd(ctx, 7);
}

static void *import_mr(void)
{
	return ornic_import_mr(rig.pd, 7);
}

static int unimport_dm(void *dm)
{
	ornic_unimport_dm(dm);
	return 0;
}

static int unimport_pd(void *pd)
{
	ornic_unimport_pd(pd);
	return 0;
}

static int unimport_mr(void *mr)
{
	ornic_unimport_mr(mr);
	return 0;
}

/* Number of allocations of each object, and whether the kernel takes part in its destruction. */
static const struct {
	const char *name;
	void *(*make)(void);
	int (*drop)(void *object);
	unsigned int memory;
	bool silent;
} verbs[] = {
	{ "pd", make_pd, drop_pd, 1, false },
	{ "cq", make_cq, drop_cq, 2, false },
	{ "qp", make_qp, drop_qp, 5, false },		/* object, wr_ids, ring, two leaves */
	{ "target", make_target, drop_qp, 1, false },
	{ "open", open_target, drop_qp, 1, false },
	{ "rss", make_rss, drop_qp, 1, false },
	{ "wq", make_wq, drop_wq, 5, false },
	{ "table", make_table, drop_table, 1, false },
	{ "srq", make_srq, drop_srq, 4, false },
	{ "xsrq", make_xsrq, drop_srq, 5, false },
	{ "xrcd", make_xrcd, drop_xrcd, 1, false },
	{ "ah", make_ah, drop_ah, 1, false },
	{ "mr", make_mr, drop_mr, 1, false },
	{ "dmabuf", make_dmabuf_mr, drop_mr, 1, false },
	{ "mw", make_mw, drop_mw, 1, false },
	{ "flow", make_flow, drop_flow, 1, false },
	{ "dm", make_dm, drop_dm, 2, false },
	{ "td", make_td, drop_td, 1, true },
	{ "parent domain", make_parent, drop_pd, 1, true },
	{ "import dm", import_dm, unimport_dm, 2, true },
	{ "import pd", import_pd, unimport_pd, 1, true },
	{ "import mr", import_mr, unimport_mr, 1, true },
};

static void expect_null(size_t i, int err)
{
	void *object;

	errno = 0;
	object = verbs[i].make();
	if (object || errno != err)
		fail_msg("%s: %p and errno %d, expected %d", verbs[i].name, object, errno, err);
}

/* Commands first: a number's leaf of the table stays once it was allocated. */
static void test_commands(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		void *object;

		if (verbs[i].make != make_td && verbs[i].make != make_parent) {
			kernel.fail = EACCES;
			expect_null(i, EACCES);
			assert_int_equal(kernel.fail, 0);
		}
		object = verbs[i].make();
		assert_non_null(object);
		if (!verbs[i].silent) {
			kernel.fail = EBUSY;
			assert_int_equal(verbs[i].drop(object), EBUSY);
			assert_int_equal(kernel.fail, 0);
		}
		assert_int_equal(verbs[i].drop(object), 0);
	}
}

/* A queue pair with RSS has no queues to empty, although it may name a CQ. */
static void test_rss_reset(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *qp = make_rss();

	(void)state;
	assert_non_null(qp);
	assert_int_equal(ornic_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ornic_destroy_qp(qp), 0);
}

static void test_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		void *object;

		for (unsigned int n = 1; n <= verbs[i].memory; n++) {
			kernel.memory = n;
			expect_null(i, ENOMEM);
			assert_int_equal(kernel.memory, 0);
		}
		kernel.memory = verbs[i].memory + 1;
		object = verbs[i].make();
		if (!object)
			fail_msg("%s takes more than %u allocations", verbs[i].name,
				 verbs[i].memory);
		kernel.memory = 0;
		assert_int_equal(verbs[i].drop(object), 0);
	}
}

/* Without memory for the new ring or for more ids an SRQ stays as it is. */
static void test_srq_resize_memory(void **state)
{
	struct ibv_srq_attr attr = { .max_wr = 16 };
	struct ibv_srq *srq = make_srq();
	unsigned int n;
	int ret;

	(void)state;
	assert_non_null(srq);
	for (n = 1; ; n++) {
		kernel.memory = n;
		ret = ornic_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
		if (kernel.memory)
			break;
		assert_int_equal(ret, ENOMEM);
		assert_int_equal(to_osrq(srq)->wq.entries, 4);
	}
	kernel.memory = 0;
	assert_int_equal(ret, 0);
	assert_int_equal(n, 4);		/* ring, two arrays of ids */
	assert_int_equal(to_osrq(srq)->wq.entries, 16);
	assert_int_equal(ornic_destroy_srq(srq), 0);
}

/* Without memory for the new ring a CQ stays as it is. */
static void test_cq_resize_memory(void **state)
{
	(void)state;
	kernel.memory = 1;
	assert_int_equal(ornic_resize_cq(&rig.cq->vcq.cq, 16), ENOMEM);
	assert_int_equal(rig.cq->mem.log, 3);
	assert_int_equal(rig.cq->vcq.cq.cqe, 8);
}

/*
 * A queue whose memory cannot be protected from fork is not created; both error forms of
 * libibverbs.
 */
static void test_dontfork(void **state)
{
	static const int says[] = { ENOMEM, -EINVAL };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(says); i++) {
		kernel.dontfork = says[i];
		errno = 0;
		assert_null(make_cq());
		assert_int_equal(errno, abs(says[i]));
	}
	kernel.dontfork = 0;
	kernel.dofork = 0;
	assert_int_equal(drop_cq(make_cq()), 0);
	assert_int_equal(kernel.dofork, 1);
}

/* The device assigns the number of a queue pair: 0 and too large values are rejected. */
static void test_bad_number(void **state)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = &rig.cq->vcq.cq, .recv_cq = &rig.cq->vcq.cq, .qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 },
	};

	(void)state;
	kernel.qpn = 0;
	assert_null(ornic_create_qp(rig.pd, &attr));
	assert_int_equal(errno, EINVAL);
	kernel.qpn = ORNIC_MAX_NUMBER + 1;
	assert_null(ornic_create_qp(rig.pd, &attr));
	assert_int_equal(errno, EINVAL);
	kernel.srqn = 0;
	assert_null(make_xsrq());
	assert_int_equal(errno, EINVAL);
}

/* Device memory that cannot be mapped is freed. */
static void test_dm_without_mapping(void **state)
{
	(void)state;
	kernel.memory = 2;
	assert_null(make_dm());
	assert_int_equal(kernel.dm_freed, 1);
}

static int doorbells(void)
{
	int fd = memfd_create("doorbells", 0);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sysconf(_SC_PAGESIZE)), 0);
	return fd;
}

static void close_device(struct verbs_context *vctx)
{
	ibv_close_device(&vctx->context);
}

/* A context that the kernel rejects, or whose doorbell page cannot be mapped; a device each. */
static void test_context(void **state)
{
	struct verbs_context *vctx;
	struct ibv_device *dev;

	(void)state;
	kernel.fail = EACCES;
	errno = 0;
	assert_null(ornic_dev_ops.alloc_context(fake_device(), doorbells(), NULL));
	assert_int_equal(errno, EACCES);
	kernel.fail = ENODEV;
	assert_null(ornic_dev_ops.import_context(fake_device(), doorbells()));
	assert_int_equal(errno, ENODEV);
	dev = fake_device();
	kernel.memory = 1;
	assert_null(ornic_dev_ops.alloc_context(dev, doorbells(), NULL));
	assert_int_equal(errno, ENOMEM);
	vctx = ornic_dev_ops.alloc_context(fake_device(), doorbells(), NULL);
	assert_non_null(vctx);
	close_device(vctx);
}

/* Verbs that are passed to libibverbs unchanged return its result unchanged. */
static void test_handed_on(void **state)
{
	const union ibv_gid gid = { .raw = { 0xff } };
	struct ibv_port_attr port = {};
	struct verbs_mr vmr = {};
	struct ibv_srq_attr srq_attr = {};
	struct ibv_qp_init_attr init_attr;
	struct ibv_device_attr_ex device;
	struct ibv_srq *srq = make_srq();
	struct ibv_qp_attr qp_attr;
	uint32_t number = 0;

	(void)state;
	assert_int_equal(ornic_attach_mcast(qp, &gid, 0), 0);
	assert_int_equal(ornic_detach_mcast(qp, &gid, 0), 0);
	assert_int_equal(ornic_query_port(ctx, 1, &port), 0);
	assert_int_equal(port.lid, 1);
	assert_int_equal(ornic_query_srq(srq, &srq_attr), 0);
	assert_int_equal(ornic_get_srq_num(srq, &number), 0);
	assert_int_equal(number, 0x77);
	assert_int_equal(ornic_rereg_mr(&vmr, IBV_REREG_MR_CHANGE_ACCESS, rig.pd, (void *)0x5000,
					9, IBV_ACCESS_REMOTE_READ), 0);
	assert_int_equal(kernel.mr.iova, 0x5000);
	assert_int_equal(kernel.mr.length, 9);
	assert_int_equal(kernel.mr.access, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(kernel.mr.flags, IBV_REREG_MR_CHANGE_ACCESS);
	for (int i = 0; i < 8; i++) {
		kernel.fail = EPERM;
		assert_int_equal(i == 0 ? ornic_attach_mcast(qp, &gid, 0) :
				 i == 1 ? ornic_detach_mcast(qp, &gid, 0) :
				 i == 2 ? ornic_query_port(ctx, 1, &port) :
				 i == 3 ? ornic_query_srq(srq, &srq_attr) :
				 i == 4 ? ornic_rereg_mr(&vmr, 0, rig.pd, NULL, 0, 0) :
				 i == 5 ? ornic_query_qp(qp, &qp_attr, 0, &init_attr) :
				 i == 6 ? ornic_query_device_ex(ctx, NULL, &device,
								sizeof(device)) :
					  ornic_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT), EPERM);
	}
	assert_int_equal(drop_srq(srq), 0);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_memory), RIG_TEST(test_srq_resize_memory),
		RIG_TEST(test_cq_resize_memory),
		RIG_TEST(test_commands), RIG_TEST(test_dontfork),
		RIG_TEST(test_bad_number), RIG_TEST(test_dm_without_mapping),
		RIG_TEST(test_context), RIG_TEST(test_handed_on), RIG_TEST(test_rss_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
