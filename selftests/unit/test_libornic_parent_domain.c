// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, thread and parent domains: the memory of queues, locks, and references between
 * domains.
 */
#include <errno.h>

#include "test_libornic_kernel.h"

#define CAP ((struct ibv_qp_cap){ 8, 8, 1, 1, 0 })

static struct rig rig;
static struct ibv_td *td;
static struct {
	void *result;			/* of the next allocation; NULL: really allocate */
	struct ibv_pd *pd;
	size_t size, alignment;
	uint64_t type;
	int live;
	void *freed;
} app;

static void *app_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t type)
{
	void *ptr;

	assert_ptr_equal(pd_context, &app);
	app.pd = pd;
	app.size = size;
	app.alignment = alignment;
	app.type = type;
	if (app.result)
		return app.result == &app ? NULL : app.result;
	ptr = aligned_alloc(alignment, size);
	assert_non_null(ptr);
	memset(ptr, 0x5a, size);
	app.live++;
	return ptr;
}

static void app_free(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t type)
{
	assert_ptr_equal(pd_context, &app);
	assert_ptr_equal(pd, app.pd);
	assert_int_equal(type, app.type);
	app.freed = ptr;
	if (app.result)
		return;
	app.live--;
	free(ptr);
}

static struct ibv_context *context(void)
{
	return &rig.ctx->ibv_ctx.context;
}

static struct ibv_pd *parent(struct ibv_td *thread, bool custom)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = rig.pd, .td = thread, .pd_context = &app,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
	};

	if (custom) {
		attr.comp_mask |= IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
		attr.alloc = app_alloc;
		attr.free = app_free;
	}
	return ibv_alloc_parent_domain(context(), &attr);
}

static struct ibv_qp *make_qp(struct ibv_pd *pd)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = &rig.cq->vcq.cq, .recv_cq = &rig.cq->vcq.cq, .cap = CAP,
		.qp_type = IBV_QPT_RC,
	};

	return ornic_create_qp(pd, &attr);
}

static struct ibv_cq *make_cq(struct ibv_pd *pd)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = pd,
	};
	struct ibv_cq_ex *ex = ornic_create_cq_ex(context(), &attr);

	return ex ? ibv_cq_ex_to_cq(ex) : NULL;
}

static int setup(void **state)
{
	struct ibv_td_init_attr attr = {};

	(void)state;
	rig_open(&rig, 8);
	memset(&app, 0, sizeof(app));
	td = ibv_alloc_td(context(), &attr);
	assert_non_null(td);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(ibv_dealloc_td(td), 0);
	assert_int_equal(app.live, 0);
	rig_close(&rig);
	return 0;
}

static void test_who_keeps_whom(void **state)
{
	struct ibv_pd *pd = parent(td, false);
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	(void)state;
	assert_non_null(pd);
	assert_int_equal(pd->handle, rig.pd->handle);
	assert_int_equal(ornic_dealloc_pd(rig.pd), EBUSY);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	qp = make_qp(pd);
	assert_int_equal(ornic_dealloc_pd(pd), EBUSY);
	cq = make_cq(pd);
	ornic_destroy_qp(qp);
	assert_int_equal(ornic_dealloc_pd(pd), EBUSY);
	ornic_destroy_cq(cq);
	assert_int_equal(ornic_dealloc_pd(pd), 0);
}

static void test_locks(void **state)
{
	struct ibv_pd *with = parent(td, false), *without = parent(NULL, false);
	struct ibv_cq *cq = make_cq(with), *other_cq = make_cq(without);
	struct ibv_qp *qp = make_qp(with), *other;

	(void)state;
	kernel.qpn++;
	other = make_qp(without);
	assert_false(to_oqp(qp)->sq.lock.needed);
	assert_false(to_oqp(qp)->rq.lock.needed);
	assert_false(to_ocq(cq)->lock.needed);
	assert_true(to_oqp(other)->sq.lock.needed);
	assert_true(to_oqp(other)->rq.lock.needed);
	assert_true(to_ocq(other_cq)->lock.needed);
	ornic_destroy_qp(qp);
	ornic_destroy_qp(other);
	ornic_destroy_cq(cq);
	ornic_destroy_cq(other_cq);
	assert_int_equal(ornic_dealloc_pd(with), 0);
	assert_int_equal(ornic_dealloc_pd(without), 0);
}

/* The provider clears the memory, for any contents left by the application. */
static void test_custom(void **state)
{
	struct ibv_pd *pd = parent(NULL, true);
	struct ibv_qp *qp = make_qp(pd);
	struct ibv_cq *cq;

	(void)state;
	assert_ptr_equal(app.pd, pd);
	assert_int_equal(app.type, RESOURCE_TYPE(ORNIC_RES_QP));
	assert_int_equal(app.alignment, 4096);
	assert_int_equal(app.size % 4096, 0);
	assert_int_equal(app.live, 1);
	assert_int_equal(*(uint64_t *)to_oqp(qp)->sq.ring, 0);
	ornic_destroy_qp(qp);
	assert_int_equal(app.live, 0);
	cq = make_cq(pd);
	assert_int_equal(app.type, RESOURCE_TYPE(ORNIC_RES_CQ));
	assert_int_equal(app.live, 1);
	kernel.resized_at = (struct ornic_uresp_resize_cq){ 0, 0 };
	assert_int_equal(ibv_resize_cq(cq, 1000), 0);
	assert_true(app.size >= 64000);
	assert_int_equal(app.live, 1);
	ornic_destroy_cq(cq);
	assert_int_equal(ornic_dealloc_pd(pd), 0);
}

static void test_custom_answers(void **state)
{
	struct ibv_pd *pd = parent(NULL, true);
	struct ibv_qp *qp;

	(void)state;
	app.result = IBV_ALLOCATOR_USE_DEFAULT;
	qp = make_qp(pd);
	assert_non_null(qp);
	ornic_destroy_qp(qp);
	assert_null(app.freed);
	app.result = &app;		/* nothing */
	assert_null(make_qp(pd));
	assert_int_equal(errno, ENOMEM);
	app.result = (void *)0x10040;
	assert_null(make_qp(pd));
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(app.freed, 0x10040);
	assert_int_equal(ornic_dealloc_pd(pd), 0);
}

static void test_refused_by_kernel(void **state)
{
	struct ibv_pd *pd = parent(td, true);

	(void)state;
	kernel.fail = ENOSPC;
	assert_null(make_cq(pd));
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(app.live, 0);
	assert_int_equal(ornic_dealloc_pd(pd), 0);
}

static void test_bad_attributes(void **state)
{
	struct ibv_parent_domain_init_attr attr = { .pd = rig.pd };
	struct ibv_td_init_attr thread = { .comp_mask = 1 };
	struct ibv_pd *pd = parent(NULL, false);

	(void)state;
	assert_null(ibv_alloc_td(context(), &thread));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = 4;
	assert_null(ibv_alloc_parent_domain(context(), &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	attr.alloc = app_alloc;
	assert_null(ibv_alloc_parent_domain(context(), &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = 0;
	attr.pd = pd;			/* not on another parent domain */
	assert_null(ibv_alloc_parent_domain(context(), &attr));
	assert_int_equal(errno, EINVAL);
	attr.pd = NULL;
	assert_null(ibv_alloc_parent_domain(context(), &attr));
	assert_int_equal(errno, EINVAL);
	assert_null(make_cq(rig.pd));	/* no parent domain */
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ornic_dealloc_pd(pd), 0);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_who_keeps_whom), RIG_TEST(test_locks), RIG_TEST(test_custom),
		RIG_TEST(test_custom_answers), RIG_TEST(test_refused_by_kernel),
		RIG_TEST(test_bad_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
