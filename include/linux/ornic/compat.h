/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All differences between kernel releases. The modules are written for the
 * newest kernel; this file, force-included in builds outside the kernel tree,
 * gives its names to older ones. ORNIC_HAVE_* come from probe.mk.
 *
 * Macros only, as far as possible: most files need none of the headers behind.
 * Whole headers that an older kernel lacks are in compat/.
 */
#ifndef LINUX_ORNIC_COMPAT_H
#define LINUX_ORNIC_COMPAT_H

#include <linux/version.h>

/* User memory by address. */
#ifndef ORNIC_HAVE_IB_UMEM_GET_VA
#define ib_umem_get_va(device, addr, size, access) ib_umem_get(device, addr, size, access)
#endif

/* Extra argument of reg_user_mr and reg_user_mr_dmabuf. */
#ifdef ORNIC_HAVE_IB_DMAH
#define ORNIC_DMAH_ARG struct ib_dmah *dmah,
#define ORNIC_DMAH_GIVEN (dmah)
#else
#define ORNIC_DMAH_ARG
#define ORNIC_DMAH_GIVEN (false)
#endif

/* Last argument of reg_user_mr_dmabuf, and the user's data in it. */
#ifdef ORNIC_HAVE_IB_DMABUF_ATTRS
#define ORNIC_DMABUF_ARG struct uverbs_attr_bundle *dmabuf_attrs
#define ORNIC_DMABUF_UDATA (dmabuf_attrs ? &dmabuf_attrs->driver_udata : NULL)
#else
#define ORNIC_DMABUF_ARG struct ib_udata *dmabuf_udata
#define ORNIC_DMABUF_UDATA (dmabuf_udata)
#endif

/* Last argument of create_cq, and the user's data in it: NULL for the kernel. */
#ifdef ORNIC_HAVE_IB_CREATE_CQ_ATTRS
#define ORNIC_CREATE_CQ_ARG struct uverbs_attr_bundle *cq_attrs
#define ORNIC_CREATE_CQ_UDATA (cq_attrs ? &cq_attrs->driver_udata : NULL)
#else
#define ORNIC_CREATE_CQ_ARG struct ib_udata *cq_udata
#define ORNIC_CREATE_CQ_UDATA (cq_udata)
#endif

/* Pinned memory of a DMA buffer that its exporter can revoke. Without that nothing needs a lock. */
#ifndef ORNIC_HAVE_IB_UMEM_REVOCABLE
#define ib_umem_dmabuf_get_pinned_revocable_and_lock(device, offset, size, fd, access)	\
	ib_umem_dmabuf_get_pinned(device, offset, size, fd, access)
#define ib_umem_dmabuf_set_revoke_locked(umem, revoke, priv)				\
	((void)(umem), (void)(revoke), (void)(priv))
#define ib_umem_dmabuf_revoke_lock(umem) ((void)(umem))
#define ib_umem_dmabuf_revoke_unlock(umem) ((void)(umem))
#endif

/* FLUSH and ATOMIC WRITE: the numbers of the verbs, which an older ib_core lets nobody use. */
#ifndef ORNIC_HAVE_IB_FLUSH
#define IB_ACCESS_FLUSH_GLOBAL BIT(8)
#define IB_ACCESS_FLUSH_PERSISTENT BIT(9)
#define IB_DEVICE_FLUSH_GLOBAL BIT_ULL(38)
#define IB_DEVICE_FLUSH_PERSISTENT BIT_ULL(39)
#define IB_DEVICE_ATOMIC_WRITE BIT_ULL(40)
#define IB_WR_ATOMIC_WRITE 15
#endif

/* Operation that resizes a completion queue, and how it counts entries. */
#ifdef ORNIC_HAVE_IB_RESIZE_USER_CQ
#define ORNIC_RESIZE_CQ_OP resize_user_cq
#define ORNIC_RESIZE_CQ_COUNT unsigned int
#else
#define ORNIC_RESIZE_CQ_OP resize_cq
#define ORNIC_RESIZE_CQ_COUNT int
#endif

/* Does ib_core turn link changes of the netdev into port events? */
#ifdef ORNIC_HAVE_IB_REPORT_PORT_EVENT
#define ORNIC_CORE_REPORTS_PORT true
#else
#define ORNIC_CORE_REPORTS_PORT false
#endif

/* Arguments of counter_bind_qp and counter_unbind_qp. */
#ifdef ORNIC_HAVE_IB_COUNTER_PORT
#define ORNIC_COUNTER_BIND_ARGS	struct rdma_counter *counter, struct ib_qp *ibqp, u32 port
#define ORNIC_COUNTER_UNBIND_ARGS	struct ib_qp *ibqp, u32 port
#else
#define ORNIC_COUNTER_BIND_ARGS	struct rdma_counter *counter, struct ib_qp *ibqp
#define ORNIC_COUNTER_UNBIND_ARGS	struct ib_qp *ibqp
#endif

/* Do drivers say how large their counters are, and initialise them? */
#ifdef ORNIC_HAVE_IB_COUNTER_INIT
#define ORNIC_COUNTER_OPS						\
	.counter_init = counter_init,					\
	.size_rdma_counter = sizeof(struct rdma_counter),
#else
#define ORNIC_COUNTER_OPS
#endif

/* Older kernels leave it to drivers to tell devlink their name. */
#ifdef ORNIC_HAVE_DEVLINK_DRIVER_NAME_PUT
#define ornic_devlink_driver_name(req, name) devlink_info_driver_name_put(req, name)
#else
#define ornic_devlink_driver_name(req, name) ((void)(req), (void)(name), 0)
#endif

/* Are details of shared receive queues asked for? */
#ifdef ORNIC_HAVE_IB_RES_SRQ
#define ORNIC_RES_SRQ_OPS						\
	.fill_res_srq_entry = ornic_ib_fill_res_srq,			\
	.fill_res_srq_entry_raw = ornic_ib_fill_res_srq_raw,
#else
#define ORNIC_RES_SRQ_OPS
#endif

/* Is the speed of a port asked for as one number? */
#ifdef ORNIC_HAVE_IB_QUERY_PORT_SPEED
#define ORNIC_PORT_SPEED_OPS .query_port_speed = ornic_ib_query_port_speed,
#else
#define ORNIC_PORT_SPEED_OPS
#endif

/*
 * Does ib_free_cq() have the CQ destroyed before it ends its own polling? Otherwise an event in
 * between starts the polling again, and nobody ends it.
 */
#ifdef ORNIC_HAVE_IB_PRE_DESTROY_CQ
#define ORNIC_CQ_DESTROY_OPS						\
	.post_destroy_cq = ornic_ib_post_destroy_cq,			\
	.pre_destroy_cq = ornic_ib_pre_destroy_cq,
#define ornic_compat_cq_end_polling(cq) ((void)(cq))
#else
#define ORNIC_CQ_DESTROY_OPS
#define ornic_compat_cq_end_polling(cq)					\
do {									\
	if ((cq)->poll_ctx == IB_POLL_WORKQUEUE ||			\
	    (cq)->poll_ctx == IB_POLL_UNBOUND_WORKQUEUE)		\
		cancel_work_sync(&(cq)->work);				\
} while (0)
#endif

/* Flags of a mapping that is being made. */
#ifndef ORNIC_HAVE_VM_FLAGS_SET
#define vm_flags_set(vma, flags) ((vma)->vm_flags |= (flags))
#endif

#endif
