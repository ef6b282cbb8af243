# SPDX-License-Identifier: GPL-2.0
#
# Looks into the headers of the kernel that the modules are built for and tells
# the headers in include/, by -DORNIC_HAVE_<name>, what it has. Distributions port interfaces
# back, so a version number proves nothing. Included by the top Kbuild of a
# build outside the kernel tree.
#
# $(call ornic-has,pattern,header,name): no comma and no unpaired parenthesis in
# the pattern, make would split there.

ornic-has = $(if $(shell grep -sE '$(1)' $(srctree)/include/$(2) | head -n 1),-DORNIC_HAVE_$(3))

# user memory by address; ib_umem_get() before
ornic-probe += $(call ornic-has,ib_umem_get_va,rdma/ib_umem.h,IB_UMEM_GET_VA)
# exporters can revoke pinned memory of a DMA buffer
ornic-probe += $(call ornic-has,ib_umem_dmabuf_get_pinned_revocable,rdma/ib_umem.h,IB_UMEM_REVOCABLE)
# user and kernel completion queues are created by two operations
ornic-probe += $(call ornic-has,create_user_cq,rdma/ib_verbs.h,IB_CREATE_USER_CQ)
# the speed of a port as one number
ornic-probe += $(call ornic-has,query_port_speed,rdma/ib_verbs.h,IB_QUERY_PORT_SPEED)
ornic-probe += $(call ornic-has,resize_user_cq,rdma/ib_verbs.h,IB_RESIZE_USER_CQ)
# memory registration takes a DMA handle
ornic-probe += $(call ornic-has,alloc_dmah,rdma/ib_verbs.h,IB_DMAH)
ornic-probe += $(call ornic-has,fill_res_srq_entry,rdma/ib_verbs.h,IB_RES_SRQ)
# ib_core itself turns link changes of the netdev into port events
ornic-probe += $(call ornic-has,report_port_event,rdma/ib_verbs.h,IB_REPORT_PORT_EVENT)
ornic-probe += $(call ornic-has,counter_init,rdma/ib_verbs.h,IB_COUNTER_INIT)
# FLUSH and ATOMIC WRITE
ornic-probe += $(call ornic-has,IB_ACCESS_FLUSH_GLOBAL,rdma/ib_verbs.h,IB_FLUSH)
# flags of a mapping are changed by function
ornic-probe += $(call ornic-has,vm_flags_set,linux/mm.h,VM_FLAGS_SET)
# a completion queue of the kernel stops and goes in two steps
ornic-probe += $(call ornic-has,pre_destroy_cq,rdma/ib_verbs.h,IB_DESTROY_CQ_PARTS)
# page pools know the NAPI context and the network interface that they serve
ornic-probe += $(call ornic-has,PAGE_POOL,net/page_pool/helpers.h,PAGE_POOL_HELPERS)
# devlink learns the driver's name from the driver
ornic-probe += $(call ornic-has,devlink_info_driver_name_put,net/devlink.h,DEVLINK_DRIVER_NAME_PUT)

# The same for a pattern that may stretch over the lines of one declaration.
ornic-has-decl = $(if $(shell grep -qszE '$(1)' $(srctree)/include/$(2) && echo y),-DORNIC_HAVE_$(3))

# create_cq gets the attributes of the call; the user's data alone before
ornic-probe += $(call ornic-has-decl,create_cq.[^;]*ib_cq_init_attr[^;]*uverbs_attr_bundle,rdma/ib_verbs.h,IB_CREATE_CQ_ATTRS)
# counters are bound to queue pairs of a port that the call names
ornic-probe += $(call ornic-has-decl,counter_bind_qp.[^;]*u32 port,rdma/ib_verbs.h,IB_COUNTER_PORT)
# reg_user_mr_dmabuf likewise
ornic-probe += $(call ornic-has-decl,reg_user_mr_dmabuf.[^;]*uverbs_attr_bundle,rdma/ib_verbs.h,IB_DMABUF_ATTRS)
