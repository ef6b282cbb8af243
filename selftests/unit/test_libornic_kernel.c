// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel half of test_libornic_*: definitions here replace libibverbs' functions of the same
 * name, which would call the real kernel.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ornic-ioctl.h>

#include "test_libornic_kernel.h"

struct fake_kernel kernel;

/* The provider's calls, by the linker's --wrap. */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);

static bool no_memory(void)
{
	return kernel.memory && !--kernel.memory;
}

void *__wrap_calloc(size_t n, size_t size)
{
	void (*then)(void) = kernel.on_calloc;

	if (then) {	/* no write otherwise: tests with threads allocate, too */
		kernel.on_calloc = NULL;
		then();
	}
	if (no_memory()) {
		errno = ENOMEM;
		return NULL;
	}
	return __real_calloc(n, size);
}

/* Existing mappings and locks; tests with threads create some, too. */
static _Atomic long mapped, made;
static long mapped_before, made_before;	/* of the rig */

int __real_munmap(void *addr, size_t length);
int __wrap_munmap(void *addr, size_t length);

static long pages(size_t length)
{
	return (length + sysconf(_SC_PAGESIZE) - 1) / sysconf(_SC_PAGESIZE);
}

void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	void *at;

	if (no_memory()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	at = __real_mmap(addr, length, prot, flags, fd, offset);
	if (at != MAP_FAILED)
		atomic_fetch_add(&mapped, pages(length));
	return at;
}

int __wrap_munmap(void *addr, size_t length)
{
	int ret = __real_munmap(addr, length);

	if (!ret)
		atomic_fetch_sub(&mapped, pages(length));
	return ret;
}

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

/* CLOCK_MONOTONIC stands still until a test advances it. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, now);
	now->tv_sec = kernel.monotonic_ns / 1000000000;
	now->tv_nsec = kernel.monotonic_ns % 1000000000;
	return 0;
}

_Thread_local struct fake_locks locks;

void locks_watch(void)
{
	memset(&locks, 0, sizeof(locks));
}

bool lock_is_held(const volatile void *lock)
{
	for (unsigned int i = 0; i < locks.held; i++)
		if (locks.now[i] == lock)
			return true;
	return false;
}

/* A test may insert a lock function made of trylock: that counts once. */
static int lock_taken(const volatile void *lock, int ret)
{
	if (ret || lock_is_held(lock))
		return ret;
	if (locks.taken < LOCKS_SEEN)
		locks.order[locks.taken++] = lock;
	assert_true(locks.held < LOCKS_SEEN);
	locks.now[locks.held++] = lock;
	return 0;
}

static void lock_given(const volatile void *lock)
{
	unsigned int i = 0;

	while (i < locks.held && locks.now[i] != lock)
		i++;
	assert_true(i < locks.held);
	locks.now[i] = locks.now[--locks.held];
}

/*
 * The wrappers of all functions of one kind of lock; libpthread's functions take and return
 * pointers likewise.
 */
#define LOCK_WRAPPERS(kind, type, init_arg)					\
int __real_pthread_##kind##_init(type *lock, init_arg arg);			\
int __wrap_pthread_##kind##_init(type *lock, init_arg arg);			\
int __wrap_pthread_##kind##_init(type *lock, init_arg arg)			\
{										\
	atomic_fetch_add(&made, 1);						\
	return __real_pthread_##kind##_init(lock, arg);				\
}										\
int __real_pthread_##kind##_destroy(type *lock);				\
int __wrap_pthread_##kind##_destroy(type *lock);				\
int __wrap_pthread_##kind##_destroy(type *lock)					\
{										\
	atomic_fetch_sub(&made, 1);						\
	return __real_pthread_##kind##_destroy(lock);				\
}										\
int __real_pthread_##kind##_lock(type *lock);					\
int __wrap_pthread_##kind##_lock(type *lock);					\
int __wrap_pthread_##kind##_lock(type *lock)					\
{										\
	return lock_taken(lock, __real_pthread_##kind##_lock(lock));		\
}										\
int __real_pthread_##kind##_trylock(type *lock);				\
int __wrap_pthread_##kind##_trylock(type *lock);				\
int __wrap_pthread_##kind##_trylock(type *lock)					\
{										\
	return lock_taken(lock, __real_pthread_##kind##_trylock(lock));		\
}										\
int __real_pthread_##kind##_unlock(type *lock);					\
int __wrap_pthread_##kind##_unlock(type *lock);					\
int __wrap_pthread_##kind##_unlock(type *lock)					\
{										\
	lock_given(lock);							\
	return __real_pthread_##kind##_unlock(lock);				\
}

LOCK_WRAPPERS(spin, pthread_spinlock_t, int)
LOCK_WRAPPERS(mutex, pthread_mutex_t, const pthread_mutexattr_t *)

void __verbs_log(struct verbs_context *ctx, uint32_t level, const char *fmt, ...)
{
	va_list args;

	assert_non_null(ctx);
	assert_int_equal(level, VERBS_LOG_ERR);
	va_start(args, fmt);
	vsnprintf(kernel.log, sizeof(kernel.log), fmt, args);
	va_end(args);
}

static int kernel_fails(void)
{
	int err = kernel.fail;

	kernel.fail = 0;
	return err;
}

int ibv_cmd_get_context(struct verbs_context *ctx, struct ibv_get_context *cmd, size_t cmd_size,
			struct ib_uverbs_get_context_resp *resp, size_t resp_size)
{
	struct ornic_alloc_ucontext_resp *r =
		container_of(resp, struct ornic_alloc_ucontext_resp, ibv_resp);

	const struct ornic_alloc_ucontext *c =
		container_of(cmd, struct ornic_alloc_ucontext, ibv_cmd);

	(void)ctx;
	assert_int_equal(cmd_size, sizeof(*c));
	assert_int_equal(c->supported_caps, ORNIC_UCONTEXT_CAP_DM_COMBINE);
	assert_int_equal(c->reserved, 0);
	assert_int_equal(resp_size, sizeof(*r));
	r->drv_payload = (struct ornic_uresp_alloc_ucontext){
		.db_mmap_size = sysconf(_SC_PAGESIZE),
		.max_inline = 512,
		.max_send_wr = 1 << 15,
		.max_recv_wr = 1 << 15,
		.max_cqe = 1 << 16,
		.max_send_sge = 30,
		.max_recv_sge = 32,
		.max_sq_stride = 10,
		.max_rq_stride = 10,
	};
	return kernel_fails();
}

static const struct ib_uverbs_attr *find_attr(const struct ibv_command_buffer *cmd, uint16_t id)
{
	const struct ib_uverbs_attr *attr;

	for (attr = cmd->hdr.attrs; attr != cmd->next_attr; attr++)
		if (attr->attr_id == id)
			return attr;
	fail_msg("the command has no attribute %#x", id);
	return NULL;
}

/* Answer queries for another process's objects: context, PD, device memory. */
static void answer(const struct ibv_command_buffer *cmd, uint16_t id, const void *data, size_t len)
{
	const struct ib_uverbs_attr *attr = find_attr(cmd, id);

	assert_int_equal(attr->len, len);
	memcpy((void *)(uintptr_t)attr->data, data, len);
}

int ibv_cmd_query_context(struct ibv_context *ctx, struct ibv_command_buffer *driver)
{
	const struct ornic_uresp_alloc_ucontext resp = {
		.db_mmap_size = sysconf(_SC_PAGESIZE), .max_cqe = 64,
	};

	(void)ctx;
	answer(driver, ORNIC_IB_ATTR_QUERY_CONTEXT_RESP, &resp, sizeof(resp));
	return kernel_fails();
}

int execute_ioctl(struct ibv_context *ctx, struct ibv_command_buffer *cmd)
{
	const struct ornic_uresp_alloc_pd pd = { .pdn = 0x77 };

	(void)ctx;
	if (cmd->hdr.object_id == UVERBS_OBJECT_DM) {
		assert_int_equal(cmd->hdr.method_id, ORNIC_IB_METHOD_DM_QUERY);
		kernel.queried = find_attr(cmd, ORNIC_IB_ATTR_DM_QUERY_HANDLE)->data;
		answer(cmd, ORNIC_IB_ATTR_DM_QUERY_RESP, &kernel.dm, sizeof(kernel.dm));
	} else {
		assert_int_equal(cmd->hdr.object_id, UVERBS_OBJECT_PD);
		assert_int_equal(cmd->hdr.method_id, ORNIC_IB_METHOD_PD_QUERY);
		kernel.queried = find_attr(cmd, ORNIC_IB_ATTR_PD_QUERY_HANDLE)->data;
		answer(cmd, ORNIC_IB_ATTR_PD_QUERY_RESP, &pd, sizeof(pd));
	}
	return kernel_fails();
}

int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *vmr, uint32_t handle)
{
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.handle = handle;
	vmr->ibv_mr.rkey = 0x4a08;
	return kernel_fails();
}

int ibv_cmd_query_device_any(struct ibv_context *ctx,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t attr_size,
			     struct ib_uverbs_ex_query_device_resp *resp, size_t *resp_size)
{
	(void)ctx;
	(void)input;
	if (!kernel.keep_attr)
		memset(attr, 0, attr_size);
	attr->completion_timestamp_mask = kernel.clocks.clock_mask;
	kernel.queries++;
	if (kernel.on_query_device)
		kernel.on_query_device();
	if (*resp_size > sizeof(*resp))
		container_of(resp, struct ornic_query_device_resp, ibv_resp)->drv_payload =
			kernel.clocks;
	return kernel_fails();
}

/* As in libibverbs: without the file the buffer stays unchanged. */
int ibv_read_ibdev_sysfs_file(char *buf, size_t size, struct verbs_sysfs_dev *sysfs_dev,
			      const char *fnfmt, ...)
{
	(void)sysfs_dev;
	assert_string_equal(fnfmt, "fw_ver");
	if (!kernel.fw_ver) {
		memset(buf, '?', size);
		return -1;
	}
	return snprintf(buf, size, "%s", kernel.fw_ver);
}

int ibv_cmd_alloc_pd(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_alloc_pd *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size)
{
	(void)cmd;
	(void)cmd_size;
	(void)resp;
	(void)resp_size;
	pd->context = ctx;
	return kernel_fails();
}

int ibv_cmd_dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	return kernel_fails();
}

int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access,
		   struct verbs_mr *vmr, struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size)
{
	(void)pd;
	(void)addr;
	(void)length;
	(void)hca_va;
	(void)cmd;
	(void)cmd_size;
	(void)resp;
	(void)resp_size;
	vmr->access = access;
	vmr->ibv_mr.lkey = 0x4a07;
	return kernel_fails();
}

int ibv_cmd_dereg_mr(struct verbs_mr *vmr)
{
	(void)vmr;
	return kernel_fails();
}

int ibv_cmd_create_ah(struct ibv_pd *pd, struct ibv_ah *ah, struct ibv_ah_attr *attr,
		      struct ib_uverbs_create_ah_resp *resp, size_t resp_size)
{
	struct ornic_create_ah_resp *r = container_of(resp, struct ornic_create_ah_resp, ibv_resp);

	(void)attr;
	assert_int_equal(resp_size, sizeof(*r));
	ah->pd = pd;
	memcpy(r->dmac, kernel.dmac, sizeof(r->dmac));
	return kernel_fails();
}

int ibv_cmd_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return kernel_fails();
}

int ibv_cmd_create_cq_ex(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_cq *cq, struct ibv_create_cq_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp, size_t resp_size,
			 uint32_t cmd_flags)
{
	struct ornic_create_cq *c = container_of(cmd, struct ornic_create_cq, ibv_cmd);
	struct ornic_create_cq_resp *r = container_of(resp, struct ornic_create_cq_resp, ibv_resp);

	assert_int_equal(cmd_flags, 0);
	assert_int_equal(cmd_size, sizeof(*c));
	assert_int_equal(resp_size, sizeof(*r));
	kernel.cq_req = c->drv_payload;
	cq->cq.context = ctx;
	cq->cq.cqe = attr->cqe;
	r->cqn = ++kernel.cqn;
	return kernel_fails();
}

int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd, size_t cmd_size,
		      struct ib_uverbs_resize_cq_resp *resp, size_t resp_size)
{
	struct ornic_resize_cq *c = container_of(cmd, struct ornic_resize_cq, ibv_cmd);
	struct ornic_resize_cq_resp *r = container_of(resp, struct ornic_resize_cq_resp, ibv_resp);
	int err = kernel_fails();

	(void)cqe;
	assert_int_equal(cmd_size, sizeof(*c));
	assert_int_equal(resp_size, sizeof(*r));
	kernel.resize_req = c->drv_payload;
	if (!err && kernel.on_resize)
		kernel.on_resize(cq);
	r->drv_payload = kernel.resized_at;
	return err;
}

int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr,
		      struct ibv_modify_cq *cmd, size_t cmd_size)
{
	(void)cq;
	(void)cmd;
	(void)cmd_size;
	kernel.moderate = attr->moderate;
	return kernel_fails();
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	return kernel_fails();
}

int ibv_cmd_create_qp_ex2(struct ibv_context *ctx, struct verbs_qp *vqp,
			  struct ibv_qp_init_attr_ex *attr, struct ibv_create_qp_ex *cmd,
			  size_t cmd_size, struct ib_uverbs_ex_create_qp_resp *resp,
			  size_t resp_size)
{
	struct ornic_create_qp *c = container_of(cmd, struct ornic_create_qp, ibv_cmd);
	struct ornic_create_qp_resp *r = container_of(resp, struct ornic_create_qp_resp, ibv_resp);

	assert_int_equal(resp_size, sizeof(*r));
	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) {
		assert_int_equal(cmd_size, sizeof(struct ornic_create_rss));
		kernel.rss_req = container_of(cmd, struct ornic_create_rss, ibv_cmd)->drv_payload;
		kernel.rss_mask = attr->comp_mask;
	} else {
		assert_int_equal(cmd_size, sizeof(*c));
		kernel.qp_req = c->drv_payload;
	}
	kernel.qp_cap = attr->cap;
	vqp->comp_mask = 0;
	vqp->qp.context = ctx;
	vqp->qp.send_cq = attr->send_cq;
	vqp->qp.recv_cq = attr->recv_cq;
	vqp->qp.srq = attr->srq;
	vqp->qp.qp_type = attr->qp_type;
	vqp->qp.state = IBV_QPS_RESET;
	vqp->qp.qp_num = kernel.qpn;
	r->qpn = kernel.qpn;
	return kernel_fails();
}

int ibv_cmd_create_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
		       struct ibv_create_srq *cmd, size_t cmd_size,
		       struct ib_uverbs_create_srq_resp *resp, size_t resp_size)
{
	struct ornic_create_srq *c = container_of(cmd, struct ornic_create_srq, ibv_cmd);
	struct ornic_create_srq_resp *r =
		container_of(resp, struct ornic_create_srq_resp, ibv_resp);

	assert_int_equal(cmd_size, sizeof(*c));
	assert_int_equal(resp_size, sizeof(*r));
	kernel.srq_attr = attr->attr;
	kernel.srq_req = c->drv_payload;
	srq->context = pd->context;
	srq->pd = pd;
	r->srqn = kernel.srqn;
	return kernel_fails();
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask,
		       struct ibv_modify_srq *cmd, size_t cmd_size)
{
	int err = kernel_fails();

	kernel.srq_attr = *attr;
	kernel.srq_mask = attr_mask;
	if (!(attr_mask & IBV_SRQ_MAX_WR)) {
		assert_int_equal(cmd_size, sizeof(*cmd));
		return err;
	}
	assert_int_equal(cmd_size, sizeof(struct ornic_modify_srq));
	kernel.srq_modify_req = container_of(cmd, struct ornic_modify_srq, ibv_cmd)->drv_payload;
	if (kernel.on_srq_resize)
		kernel.on_srq_resize(srq);
	return err;
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, struct ibv_query_srq *cmd,
		      size_t cmd_size)
{
	(void)srq;
	(void)attr;
	(void)cmd;
	(void)cmd_size;
	return kernel_fails();
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	(void)srq;
	kernel.srqs_destroyed++;
	if (kernel.on_destroy)
		kernel.on_destroy();
	return kernel_fails();
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size)
{
	(void)cmd;
	(void)cmd_size;
	if (attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET && kernel.before_reset)
		kernel.before_reset(qp);
	return kernel_fails();
}

int ibv_cmd_modify_qp_ex(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			 struct ibv_modify_qp_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_modify_qp_resp *resp, size_t resp_size)
{
	(void)resp;
	(void)resp_size;
	assert_true(attr_mask & IBV_QP_RATE_LIMIT);
	assert_int_equal(cmd_size, sizeof(struct ornic_modify_qp));
	kernel.rate_kbps = attr->rate_limit;
	kernel.rate_req = container_of(cmd, struct ornic_modify_qp, ibv_cmd)->drv_payload;
	if (attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET && kernel.before_reset)
		kernel.before_reset(qp);
	return kernel_fails();
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr *init_attr, struct ibv_query_qp *cmd, size_t cmd_size)
{
	(void)attr_mask;
	(void)cmd;
	(void)cmd_size;
	attr->qp_state = qp->state;
	init_attr->qp_type = qp->qp_type;
	if (kernel.after_query)
		kernel.after_query(qp);
	return kernel_fails();
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	(void)qp;
	kernel.qps_destroyed++;
	if (kernel.on_destroy)
		kernel.on_destroy();
	return kernel_fails();
}

int ibv_cmd_create_srq_ex(struct ibv_context *ctx, struct verbs_srq *srq,
			  struct ibv_srq_init_attr_ex *attr, struct ibv_create_xsrq *cmd,
			  size_t cmd_size, struct ib_uverbs_create_srq_resp *resp, size_t resp_size)
{
	struct ornic_create_xsrq *c = container_of(cmd, struct ornic_create_xsrq, ibv_cmd);
	struct ornic_create_xsrq_resp *r =
		container_of(resp, struct ornic_create_xsrq_resp, ibv_resp);

	assert_int_equal(cmd_size, sizeof(*c));
	assert_int_equal(resp_size, sizeof(*r));
	kernel.srq_attr = attr->attr;
	kernel.srq_req = c->drv_payload;
	srq->srq.context = ctx;
	if (kernel.on_create_xsrq)
		kernel.on_create_xsrq(&srq->srq);
	srq->srq_type = attr->srq_type;
	srq->xrcd = container_of(attr->xrcd, struct verbs_xrcd, xrcd);
	srq->cq = attr->cq;
	r->srqn = kernel.srqn;
	return kernel_fails();
}

int ibv_cmd_open_xrcd(struct ibv_context *ctx, struct verbs_xrcd *xrcd, int vxrcd_size,
		      struct ibv_xrcd_init_attr *attr, struct ibv_open_xrcd *cmd, size_t cmd_size,
		      struct ib_uverbs_open_xrcd_resp *resp, size_t resp_size)
{
	(void)attr;
	(void)cmd;
	(void)resp;
	assert_int_equal(vxrcd_size, sizeof(*xrcd));
	assert_int_equal(cmd_size, sizeof(*cmd));
	assert_int_equal(resp_size, sizeof(*resp));
	xrcd->xrcd.context = ctx;
	return kernel_fails();
}

int ibv_cmd_close_xrcd(struct verbs_xrcd *xrcd)
{
	(void)xrcd;
	return kernel_fails();
}

int ibv_cmd_open_qp(struct ibv_context *ctx, struct verbs_qp *qp, int vqp_size,
		    struct ibv_qp_open_attr *attr, struct ibv_open_qp *cmd, size_t cmd_size,
		    struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	(void)cmd;
	(void)resp;
	assert_int_equal(vqp_size, sizeof(*qp));
	assert_int_equal(cmd_size, sizeof(*cmd));
	assert_int_equal(resp_size, sizeof(*resp));
	qp->qp.context = ctx;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.qp_num = attr->qp_num;
	return kernel_fails();
}

int ibv_cmd_create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr, struct ibv_wq *wq,
		      struct ibv_create_wq *cmd, size_t cmd_size,
		      struct ib_uverbs_ex_create_wq_resp *resp, size_t resp_size)
{
	struct ornic_create_wq *c = container_of(cmd, struct ornic_create_wq, ibv_cmd);
	struct ornic_create_wq_resp *r = container_of(resp, struct ornic_create_wq_resp, ibv_resp);

	assert_int_equal(cmd_size, sizeof(*c));
	assert_int_equal(resp_size, sizeof(*r));
	kernel.qp_req = c->drv_payload;
	wq->context = ctx;
	wq->pd = attr->pd;
	wq->cq = attr->cq;
	wq->wq_type = attr->wq_type;
	wq->state = IBV_WQS_RESET;
	r->qpn = kernel.qpn;
	return kernel_fails();
}

int ibv_cmd_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr, struct ibv_modify_wq *cmd,
		      size_t cmd_size)
{
	int err = kernel_fails();

	assert_int_equal(cmd_size, sizeof(*cmd));
	if (!err && attr->attr_mask & IBV_WQ_ATTR_STATE)
		wq->state = attr->wq_state;
	return err;
}

int ibv_cmd_destroy_wq(struct ibv_wq *wq)
{
	(void)wq;
	kernel.wqs_destroyed++;
	if (kernel.on_destroy)
		kernel.on_destroy();
	return kernel_fails();
}

int ibv_cmd_create_rwq_ind_table(struct ibv_context *ctx, struct ibv_rwq_ind_table_init_attr *attr,
				 struct ibv_rwq_ind_table *table,
				 struct ib_uverbs_ex_create_rwq_ind_table_resp *resp,
				 size_t resp_size)
{
	(void)attr;
	assert_int_equal(resp_size, sizeof(*resp));
	table->context = ctx;
	return kernel_fails();
}

int ibv_cmd_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	(void)table;
	return kernel_fails();
}

int ibv_cmd_create_flow(struct ibv_qp *qp, struct ibv_flow *flow, struct ibv_flow_attr *attr,
			void *ucmd, size_t ucmd_size)
{
	(void)attr;
	assert_null(ucmd);
	assert_int_equal(ucmd_size, 0);
	flow->context = qp->context;
	return kernel_fails();
}

int ibv_cmd_destroy_flow(struct ibv_flow *flow)
{
	(void)flow;
	return kernel_fails();
}

int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return kernel_fails();
}

int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return kernel_fails();
}

int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw *mw,
		     struct ibv_alloc_mw *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_mw_resp *resp, size_t resp_size)
{
	assert_int_equal(cmd_size, sizeof(*cmd));
	assert_int_equal(resp_size, sizeof(*resp));
	mw->context = pd->context;
	mw->pd = pd;
	mw->type = type;
	mw->rkey = 0x12300;
	return kernel_fails();
}

int ibv_cmd_dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	return kernel_fails();
}

int ibv_cmd_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr,
		       struct ibv_query_port *cmd, size_t cmd_size)
{
	(void)ctx;
	assert_int_equal(cmd_size, sizeof(*cmd));
	attr->lid = port;
	return kernel_fails();
}

/* These answer with -1 and errno if the command fails, as libibverbs does. */
static int kernel_fails_errno(void)
{
	int err = kernel_fails();

	if (!err)
		return 0;
	errno = err;
	return err;
}

int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
			  int access, struct verbs_mr *vmr, struct ibv_command_buffer *driver)
{
	(void)pd;
	(void)fd;
	assert_null(driver);
	kernel.mr = (struct fake_mr){ offset, length, iova, access, 0 };
	vmr->ibv_mr.lkey = 0x4a09;
	return kernel_fails_errno();
}

int ibv_cmd_rereg_mr(struct verbs_mr *vmr, uint32_t flags, void *addr, size_t length,
		     uint64_t hca_va, int access, struct ibv_pd *pd, struct ibv_rereg_mr *cmd,
		     size_t cmd_size, struct ib_uverbs_rereg_mr_resp *resp, size_t resp_size)
{
	(void)vmr;
	(void)addr;
	(void)pd;
	assert_int_equal(cmd_size, sizeof(*cmd));
	assert_int_equal(resp_size, sizeof(*resp));
	kernel.mr = (struct fake_mr){ 0, length, hca_va, access, flags };
	return kernel_fails();
}

int ibv_cmd_alloc_dm(struct ibv_context *ctx, const struct ibv_alloc_dm_attr *attr,
		     struct verbs_dm *dm, struct ibv_command_buffer *driver)
{
	(void)attr;
	dm->dm.context = ctx;
	answer(driver, ORNIC_ATTR_DM_ALLOC_MMAP_OFFSET, &kernel.dm.mmap_offset,
	       sizeof(kernel.dm.mmap_offset));
	return kernel_fails_errno();
}

int ibv_cmd_free_dm(struct verbs_dm *dm)
{
	(void)dm;
	kernel.dm_freed++;
	return kernel_fails();
}

int ibv_cmd_reg_dm_mr(struct ibv_pd *pd, struct verbs_dm *dm, uint64_t offset, size_t length,
		      unsigned int access, struct verbs_mr *vmr, struct ibv_command_buffer *driver)
{
	(void)pd;
	(void)dm;
	assert_null(driver);
	kernel.mr = (struct fake_mr){ offset, length, 0, access, 0 };
	vmr->ibv_mr.lkey = 0x4a0a;
	return kernel_fails_errno();
}

int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	if (!kernel.dontfork)
		return 0;
	if (kernel.dontfork < 0)
		errno = -kernel.dontfork;
	return kernel.dontfork < 0 ? -1 : kernel.dontfork;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	kernel.dofork++;
	return 0;
}

struct ibv_device *fake_device(void)
{
	struct verbs_sysfs_dev *sysfs = calloc(1, sizeof(*sysfs));
	struct verbs_device *dev = ornic_dev_ops.alloc_device(sysfs);

	assert_non_null(sysfs);
	assert_non_null(dev);
	memcpy(sysfs->ibdev_path, "/nonexistent", sizeof("/nonexistent"));
	dev->ops = &ornic_dev_ops;
	dev->sysfs = sysfs;
	atomic_init(&dev->refcount, 0);	/* the context is its only user */
	return &dev->device;
}

void rig_open(struct rig *rig, int cqe)
{
	struct verbs_context *vctx;
	struct ibv_device *dev;
	int fd;

	memset(&kernel, 0, sizeof(kernel));
	memset(rig, 0, sizeof(*rig));
	kernel.qpn = 0x123;
	kernel.srqn = 0x77;
	mapped_before = atomic_load(&mapped);
	made_before = atomic_load(&made);
	fd = memfd_create("doorbells", 0);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sysconf(_SC_PAGESIZE)), 0);
	dev = fake_device();
	vctx = ornic_dev_ops.alloc_context(dev, fd, NULL);
	assert_non_null(vctx);
	rig->ctx = to_octx(&vctx->context);
	rig->pd = ornic_alloc_pd(&vctx->context);
	assert_non_null(rig->pd);
	rig->cq = to_ocq(ornic_create_cq(&vctx->context, cqe, NULL, 0));
	assert_non_null(rig->cq);
}

void rig_state(struct ornic_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	assert_int_equal(ornic_modify_qp(&qp->vqp.qp, &attr, IBV_QP_STATE), 0);
	qp->vqp.qp.state = state;	/* libibverbs does so after the provider */
}

struct ornic_qp *rig_qp(struct rig *rig, enum ibv_qp_type type, struct ibv_qp_cap cap,
			uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &rig->cq->vcq.cq,
		.recv_cq = &rig->cq->vcq.cq,
		.cap = cap,
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = rig->pd,
		.send_ops_flags = send_ops,
	};
	struct ibv_qp *qp = ornic_create_qp_ex(&rig->ctx->ibv_ctx.context, &attr);

	if (!qp)
		return NULL;
	rig_state(to_oqp(qp), IBV_QPS_RTS);
	rig->qp = to_oqp(qp);
	kernel.qpn++;
	return rig->qp;
}

struct ibv_wq *rig_wq(struct rig *rig, struct ornic_cq *cq)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = rig->pd,
		.cq = &cq->vcq.cq,
	};

	return ornic_create_wq(&rig->ctx->ibv_ctx.context, &attr);
}

struct ibv_srq *rig_xsrq(struct rig *rig)
{
	static struct verbs_xrcd xrcd;
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 3, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.pd = rig->pd, .xrcd = &xrcd.xrcd, .cq = &rig->cq->vcq.cq,
	};

	return ornic_create_srq_ex(&rig->ctx->ibv_ctx.context, &attr);
}

void rig_close(struct rig *rig)
{
	if (rig->qp)
		assert_int_equal(ornic_destroy_qp(&rig->qp->vqp.qp), 0);
	assert_int_equal(ornic_destroy_cq(&rig->cq->vcq.cq), 0);
	assert_int_equal(ornic_dealloc_pd(rig->pd), 0);
	ibv_close_device(&rig->ctx->ibv_ctx.context);
	assert_int_equal(atomic_load(&mapped), mapped_before);
	assert_int_equal(atomic_load(&made), made_before);
}

uint64_t rig_doorbell(struct rig *rig)
{
	uint64_t *db = rig->ctx->db;
	uint64_t value = le64toh(*db);

	*db = 0;
	return value;
}

void rig_complete(struct rig *rig, struct ornic_cqe cqe)
{
	unsigned int log = rig->cq->mem.log;

	cqe.phase = (rig->cq_index >> log & 1) ^ 1;
	rig->cq->mem.ring[rig->cq_index & ((1u << log) - 1)] = cqe;
	rig->cq_index++;
}
