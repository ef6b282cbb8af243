/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The driver's operation tables have the signatures of the newest kernel (7.2). On an older
 * kernel their type is struct ornic_compat_ops, and ib_set_device_ops() builds the
 * kernel's table from them: it copies the operations whose signature did not change and
 * replaces each of the others by a function with the old signature.
 *
 * Every operation of the driver is listed in ORNIC_COMPAT_SAME or is a separate member.
 * The driver must not use UAPI_DEF_*_NEEDS_FN(), because it would store the offset in
 * struct ornic_compat_ops instead of that in the kernel's struct ib_device_ops.
 */
#ifndef ORNIC_COMPAT_UVERBS_IOCTL_H
#define ORNIC_COMPAT_UVERBS_IOCTL_H

#include_next <rdma/uverbs_ioctl.h>

#include <linux/err.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>

/*
 * Copy structures of a provider that may be longer or shorter than the driver's. The rules are in
 * <rdma/ib_verbs.h> of 7.2, the functions in its <rdma/uverbs_ioctl.h>.
 */
#ifndef ORNIC_HAVE_IB_UDATA_HELPERS
static inline int ornic_compat_udata_in(struct ib_udata *udata, void *req, size_t size,
					size_t least)
{
	int ret;

	if (udata->inlen < least)
		return -EINVAL;
	ret = copy_struct_from_user(req, size, udata->inbuf, udata->inlen);
	return ret == -E2BIG ? -EOPNOTSUPP : ret;
}

static inline int ornic_compat_respond(struct ib_udata *udata, const void *resp, size_t size)
{
	size_t copied = min(size, udata->outlen);

	if (copy_to_user(udata->outbuf, resp, copied) ||
	    clear_user(udata->outbuf + copied, udata->outlen - copied))
		return -EFAULT;
	return 0;
}

static inline int ib_is_udata_in_empty(struct ib_udata *udata)
{
	return udata && udata->inlen ? ornic_compat_udata_in(udata, NULL, 0, 0) : 0;
}

#define ib_copy_validate_udata_in(udata, req, last)				\
	ornic_compat_udata_in(udata, &(req), sizeof(req), offsetofend(typeof(req), last))
#define ib_respond_udata(udata, resp) ornic_compat_respond(udata, &(resp), sizeof(resp))
#endif

#if !defined(ORNIC_HAVE_IB_COUNTER_INIT) || !defined(ORNIC_HAVE_IB_COUNTER_PORT) || \
	!defined(ORNIC_HAVE_IB_CREATE_USER_CQ) || !defined(ORNIC_HAVE_IB_DESTROY_CQ_PARTS) || \
	!defined(ORNIC_HAVE_IB_DMAH) || !defined(ORNIC_HAVE_IB_QUERY_PORT_SPEED) || \
	!defined(ORNIC_HAVE_IB_REPORT_PORT_EVENT) || \
	!defined(ORNIC_HAVE_IB_RESIZE_USER_CQ) || !defined(ORNIC_HAVE_IB_RES_SRQ)

struct ib_dmah;

/* Operations whose signature is the same in all kernels, and the sizes of their objects. */
#define ORNIC_COMPAT_SAME(op)						\
	op(add_gid)							\
	op(alloc_dm)							\
	op(alloc_hw_device_stats)					\
	op(alloc_hw_port_stats)						\
	op(alloc_mr)							\
	op(alloc_mw)							\
	op(alloc_pd)							\
	op(alloc_ucontext)						\
	op(alloc_xrcd)							\
	op(attach_mcast)						\
	op(counter_alloc_stats)						\
	op(counter_dealloc)						\
	op(counter_update_stats)					\
	op(create_ah)							\
	op(create_flow)							\
	op(create_qp)							\
	op(create_rwq_ind_table)					\
	op(create_srq)							\
	op(create_user_ah)						\
	op(create_wq)							\
	op(dealloc_dm)							\
	op(dealloc_mw)							\
	op(dealloc_pd)							\
	op(dealloc_ucontext)						\
	op(dealloc_xrcd)						\
	op(del_gid)							\
	op(dereg_mr)							\
	op(destroy_ah)							\
	op(destroy_cq)							\
	op(destroy_flow)						\
	op(destroy_qp)							\
	op(destroy_rwq_ind_table)					\
	op(destroy_srq)							\
	op(destroy_wq)							\
	op(detach_mcast)						\
	op(disassociate_ucontext)					\
	op(fill_res_cq_entry)						\
	op(fill_res_cq_entry_raw)					\
	op(fill_res_mr_entry)						\
	op(fill_res_mr_entry_raw)					\
	op(fill_res_qp_entry)						\
	op(fill_res_qp_entry_raw)					\
	op(get_dev_fw_str)						\
	op(get_dma_mr)							\
	op(get_hw_stats)						\
	op(get_link_layer)						\
	op(get_port_immutable)						\
	op(map_mr_sg)							\
	op(mmap)							\
	op(mmap_free)							\
	op(modify_cq)							\
	op(modify_qp)							\
	op(modify_srq)							\
	op(modify_wq)							\
	op(poll_cq)							\
	op(post_recv)							\
	op(post_send)							\
	op(post_srq_recv)						\
	op(query_device)						\
	op(query_pkey)							\
	op(query_port)							\
	op(query_qp)							\
	op(query_srq)							\
	op(query_ucontext)						\
	op(reg_dm_mr)							\
	op(req_notify_cq)						\
	op(rereg_user_mr)						\
	op(size_ib_ah)							\
	op(size_ib_cq)							\
	op(size_ib_mw)							\
	op(size_ib_pd)							\
	op(size_ib_qp)							\
	op(size_ib_rwq_ind_table)					\
	op(size_ib_srq)							\
	op(size_ib_ucontext)						\
	op(size_ib_xrcd)

/* Operations that the functions with the old signatures call. */
#define ORNIC_COMPAT_CHANGED(op)						\
	op(counter_bind_qp)						\
	op(counter_unbind_qp)						\
	op(create_cq)							\
	op(create_user_cq)						\
	op(post_destroy_cq)						\
	op(pre_destroy_cq)						\
	op(reg_user_mr)							\
	op(reg_user_mr_dmabuf)						\
	op(resize_user_cq)

#define ORNIC_COMPAT_MEMBER(name) typeof_member(struct ib_device_ops, name) name;
#define ORNIC_COMPAT_COPY(name) old.name = ops->name;
#define ORNIC_COMPAT_NOTE(name) do { if (ops->name) ornic_compat_new.name = ops->name; } while (0);

/* struct ornic_compat_ops - the driver's operations, with the newest kernel's signatures */
struct ornic_compat_ops {
	struct module *owner;
	enum rdma_driver_id driver_id;
	u32 uverbs_abi_ver;

	ORNIC_COMPAT_SAME(ORNIC_COMPAT_MEMBER)

	int (*counter_bind_qp)(struct rdma_counter *counter, struct ib_qp *qp, u32 port);
	void (*counter_init)(struct rdma_counter *counter);
	int (*counter_unbind_qp)(struct ib_qp *qp, u32 port);
	int (*create_cq)(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs);
	int (*create_user_cq)(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			      struct uverbs_attr_bundle *attrs);
	int (*fill_res_srq_entry)(struct sk_buff *msg, struct ib_srq *srq);
	int (*fill_res_srq_entry_raw)(struct sk_buff *msg, struct ib_srq *srq);
	void (*post_destroy_cq)(struct ib_cq *cq);
	int (*pre_destroy_cq)(struct ib_cq *cq);
	int (*query_port_speed)(struct ib_device *ibdev, u32 port, u64 *speed);
	struct ib_mr *(*reg_user_mr)(struct ib_pd *pd, u64 start, u64 length, u64 virt,
				     int access, struct ib_dmah *dmah, struct ib_udata *udata);
	struct ib_mr *(*reg_user_mr_dmabuf)(struct ib_pd *pd, u64 offset, u64 length, u64 virt,
					    int fd, int access, struct ib_dmah *dmah,
					    struct uverbs_attr_bundle *attrs);
	void (*report_port_event)(struct ib_device *ibdev, struct net_device *ndev,
				  unsigned long event);
	int (*resize_user_cq)(struct ib_cq *cq, unsigned int cqe, struct ib_udata *udata);
	size_t size_rdma_counter;
};

/* Operations of all tables of the driver. The tables are constant, so all devices share it. */
static struct ornic_compat_ops ornic_compat_new __maybe_unused;

#ifndef ORNIC_HAVE_IB_CREATE_USER_CQ
#ifdef ORNIC_HAVE_IB_CREATE_CQ_ATTRS
static inline int ornic_compat_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
					 struct uverbs_attr_bundle *attrs)
{
#else
static inline int ornic_compat_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
					 struct ib_udata *udata)
{
	struct uverbs_attr_bundle *attrs =
		udata ? rdma_udata_to_uverbs_attr_bundle(udata) : NULL;

#endif
	if (attrs)
		return ornic_compat_new.create_user_cq(cq, attr, attrs);
	return ornic_compat_new.create_cq(cq, attr, NULL);
}
#endif

#ifndef ORNIC_HAVE_IB_DESTROY_CQ_PARTS
/*
 * ib_free_cq() of such a kernel stops its polling before it calls destroy_cq(). An event in
 * between queues the work again and ib_free_cq() frees the CQ that the work uses, so cancel
 * the work after the last event.
 */
static inline int ornic_compat_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	int ret = ornic_compat_new.pre_destroy_cq(cq);

	if (ret)
		return ret;
	if (cq->poll_ctx == IB_POLL_WORKQUEUE || cq->poll_ctx == IB_POLL_UNBOUND_WORKQUEUE)
		cancel_work_sync(&cq->work);
	ornic_compat_new.post_destroy_cq(cq);
	return 0;
}
#endif

#ifndef ORNIC_HAVE_IB_RESIZE_USER_CQ
/* @udata is NULL if a kernel consumer calls ib_resize_cq(), which newer kernels do not have. */
static inline int ornic_compat_resize_cq(struct ib_cq *cq, int cqe, struct ib_udata *udata)
{
	return ornic_compat_new.resize_user_cq(cq, cqe, udata);
}
#endif

#ifndef ORNIC_HAVE_IB_DMAH
static inline struct ib_mr *ornic_compat_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
						     u64 virt, int access, struct ib_udata *udata)
{
	return ornic_compat_new.reg_user_mr(pd, start, length, virt, access, NULL, udata);
}

#ifdef ORNIC_HAVE_IB_DMABUF_ATTRS
static inline struct ib_mr *
ornic_compat_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 virt, int fd,
				int access, struct uverbs_attr_bundle *attrs)
{
#else
static inline struct ib_mr *
ornic_compat_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 virt, int fd,
				int access, struct ib_udata *udata)
{
	struct uverbs_attr_bundle *attrs = rdma_udata_to_uverbs_attr_bundle(udata);

#endif
	return ornic_compat_new.reg_user_mr_dmabuf(pd, offset, length, virt, fd, access, NULL,
						   attrs);
}
#endif

#ifndef ORNIC_HAVE_IB_COUNTER_PORT
static inline int ornic_compat_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *qp)
{
	return ornic_compat_new.counter_bind_qp(counter, qp, qp->port);
}

static inline int ornic_compat_counter_unbind_qp(struct ib_qp *qp)
{
	return ornic_compat_new.counter_unbind_qp(qp, qp->port);
}
#endif

static inline void ornic_compat_copy_changed(struct ib_device_ops *old,
					     const struct ornic_compat_ops *ops)
{
#ifdef ORNIC_HAVE_IB_CREATE_USER_CQ
	old->create_cq = ops->create_cq;
	old->create_user_cq = ops->create_user_cq;
#else
	if (ops->create_cq)
		old->create_cq = ornic_compat_create_cq;
#endif
#ifndef ORNIC_HAVE_IB_DESTROY_CQ_PARTS
	if (ops->pre_destroy_cq)
		old->destroy_cq = ornic_compat_destroy_cq;
#endif
#ifdef ORNIC_HAVE_IB_RESIZE_USER_CQ
	old->resize_user_cq = ops->resize_user_cq;
#else
	if (ops->resize_user_cq)
		old->resize_cq = ornic_compat_resize_cq;
#endif
#ifdef ORNIC_HAVE_IB_DMAH
	old->reg_user_mr = ops->reg_user_mr;
	old->reg_user_mr_dmabuf = ops->reg_user_mr_dmabuf;
#else
	if (ops->reg_user_mr)
		old->reg_user_mr = ornic_compat_reg_user_mr;
	if (ops->reg_user_mr_dmabuf)
		old->reg_user_mr_dmabuf = ornic_compat_reg_user_mr_dmabuf;
#endif
#ifdef ORNIC_HAVE_IB_COUNTER_PORT
	old->counter_bind_qp = ops->counter_bind_qp;
	old->counter_unbind_qp = ops->counter_unbind_qp;
#else
	if (ops->counter_bind_qp)
		old->counter_bind_qp = ornic_compat_counter_bind_qp;
	if (ops->counter_unbind_qp)
		old->counter_unbind_qp = ornic_compat_counter_unbind_qp;
#endif
}

/* Copy the operations that a kernel may lack; ib_core of such a kernel works without them. */
static inline void ornic_compat_copy_added(struct ib_device_ops *old,
					   const struct ornic_compat_ops *ops)
{
#ifdef ORNIC_HAVE_IB_COUNTER_INIT
	old->counter_init = ops->counter_init;
	old->size_rdma_counter = ops->size_rdma_counter;
#endif
#ifdef ORNIC_HAVE_IB_DESTROY_CQ_PARTS
	old->pre_destroy_cq = ops->pre_destroy_cq;
	old->post_destroy_cq = ops->post_destroy_cq;
#endif
#ifdef ORNIC_HAVE_IB_QUERY_PORT_SPEED
	old->query_port_speed = ops->query_port_speed;
#endif
#ifdef ORNIC_HAVE_IB_REPORT_PORT_EVENT
	old->report_port_event = ops->report_port_event;
#endif
#ifdef ORNIC_HAVE_IB_RES_SRQ
	old->fill_res_srq_entry = ops->fill_res_srq_entry;
	old->fill_res_srq_entry_raw = ops->fill_res_srq_entry_raw;
#endif
}

/* Store the operations that the functions above call. */
static inline void ornic_compat_note(const struct ornic_compat_ops *ops)
{
	ORNIC_COMPAT_CHANGED(ORNIC_COMPAT_NOTE)
}

static inline void ornic_compat_set_ops(struct ib_device *ibdev,
					const struct ornic_compat_ops *ops)
{
	struct ib_device_ops old = {
		.owner = ops->owner,
		.driver_id = ops->driver_id,
		.uverbs_abi_ver = ops->uverbs_abi_ver,
	};

	ORNIC_COMPAT_SAME(ORNIC_COMPAT_COPY)
	ornic_compat_note(ops);
	ornic_compat_copy_changed(&old, ops);
	ornic_compat_copy_added(&old, ops);
	ib_set_device_ops(ibdev, &old);
}

#define ib_device_ops ornic_compat_ops
#define ib_set_device_ops ornic_compat_set_ops

#endif
#endif
