# SPDX-License-Identifier: GPL-2.0
#
# Search the headers of the kernel that the modules are built for, and define
# ORNIC_HAVE_<name> for each interface found. The headers in compat/include/ replace the
# missing ones. Version numbers are not compared, because distributions backport interfaces.
# The top Kbuild includes this file in a build outside the kernel tree.
#
# $(call ornic-has,pattern,header,name): the pattern must not contain a comma or an unpaired
# parenthesis, because make would split it there.

ornic-has = $(if $(shell grep -sE '$(1)' $(srctree)/include/$(2) | head -n 1),-DORNIC_HAVE_$(3))

# ib_umem_get_va() pins user memory by address; older kernels have ib_umem_get()
ornic-probe += $(call ornic-has,ib_umem_get_va,rdma/ib_umem.h,IB_UMEM_GET_VA)
# attributes of the command that creates a CQ can name its memory
ornic-probe += $(call ornic-has,ib_umem_get_cq_buf,rdma/ib_umem.h,IB_UMEM_CQ_BUF)
# exporters can revoke the pinned memory of a DMA buffer
ornic-probe += $(call ornic-has,ib_umem_dmabuf_get_pinned_revocable,rdma/ib_umem.h,IB_UMEM_REVOCABLE)
# separate operations create completion queues of processes and of the kernel
ornic-probe += $(call ornic-has,create_user_cq,rdma/ib_verbs.h,IB_CREATE_USER_CQ)
# the port speed is one number, in units of 100 Mbit/s
ornic-probe += $(call ornic-has,query_port_speed,rdma/ib_verbs.h,IB_QUERY_PORT_SPEED)
ornic-probe += $(call ornic-has,resize_user_cq,rdma/ib_verbs.h,IB_RESIZE_USER_CQ)
# memory registration takes a DMA handle
ornic-probe += $(call ornic-has,alloc_dmah,rdma/ib_verbs.h,IB_DMAH)
ornic-probe += $(call ornic-has,fill_res_srq_entry,rdma/ib_verbs.h,IB_RES_SRQ)
# ib_core itself turns link changes of the netdev into port events
ornic-probe += $(call ornic-has,report_port_event,rdma/ib_verbs.h,IB_REPORT_PORT_EVENT)
ornic-probe += $(call ornic-has,counter_init,rdma/ib_verbs.h,IB_COUNTER_INIT)
# functions that copy the structures of a provider
ornic-probe += $(call ornic-has,ib_copy_validate_udata_in,rdma/uverbs_ioctl.h,IB_UDATA_HELPERS)
# FLUSH and ATOMIC WRITE; without them -Wswitch would report that enum ib_wr_opcode has no ATOMIC_WRITE
ornic-probe += $(or $(call ornic-has,IB_ACCESS_FLUSH_GLOBAL,rdma/ib_verbs.h,IB_FLUSH),-Wno-switch)
# vm_flags_set() changes the flags of a mapping
ornic-probe += $(call ornic-has,vm_flags_set,linux/mm.h,VM_FLAGS_SET)
# completion queues of the kernel are destroyed in two steps; ib_core stops polling in between
ornic-probe += $(call ornic-has,pre_destroy_cq,rdma/ib_verbs.h,IB_DESTROY_CQ_PARTS)
# parameters of a page pool contain its NAPI context and network interface
ornic-probe += $(call ornic-has,PAGE_POOL,net/page_pool/helpers.h,PAGE_POOL_HELPERS)
# a page pool gets its NAPI context when it comes into use
ornic-probe += $(call ornic-has,page_pool_enable_direct_recycling,net/page_pool/types.h,PAGE_POOL_ENABLE_RECYCLING)
# drivers report their own name to devlink
ornic-probe += $(call ornic-has,devlink_info_driver_name_put,net/devlink.h,DEVLINK_DRIVER_NAME_PUT)
# a driver allows devlink to reload it
ornic-probe += $(call ornic-has,devlink_set_features,net/devlink.h,DEVLINK_SET_FEATURES)
# functions for parameters and health reporters that expect devl_lock()
ornic-probe += $(call ornic-has,devl_params_register,net/devlink.h,DEVL_PARAMS)
ornic-probe += $(call ornic-has,devl_health_reporter_create,net/devlink.h,DEVL_HEALTH)
# the grace period of a health reporter is in its operations; older kernels have a parameter
ornic-probe += $(call ornic-has,default_graceful_period,net/devlink.h,DEVLINK_OPS_PERIOD)
# a network interface has a pointer to its devlink port; older kernels have ndo_get_devlink_port
ornic-probe += $(call ornic-has,SET_NETDEV_DEVLINK_PORT,linux/netdevice.h,NETDEV_DEVLINK_PORT)
# netlink reports the statistics of queues, and their NAPI context and its interrupt
ornic-probe += $(call ornic-has,struct netdev_stat_ops,net/netdev_queues.h,NETDEV_STAT_OPS)
ornic-probe += $(call ornic-has,netif_queue_set_napi,linux/netdevice.h,QUEUE_SET_NAPI)

# The same for a pattern that can match several lines of one declaration.
ornic-has-decl = $(if $(shell grep -qszE '$(1)' $(srctree)/include/$(2) && echo y),-DORNIC_HAVE_$(3))

# create_cq has the attribute bundle as parameter; older kernels pass struct ib_udata
ornic-probe += $(call ornic-has-decl,create_cq.[^;]*ib_cq_init_attr[^;]*uverbs_attr_bundle,rdma/ib_verbs.h,IB_CREATE_CQ_ATTRS)
# counter_bind_qp has the port as parameter
ornic-probe += $(call ornic-has-decl,counter_bind_qp.[^;]*u32 port,rdma/ib_verbs.h,IB_COUNTER_PORT)
# reg_user_mr_dmabuf has the attribute bundle as parameter; older kernels pass struct ib_udata
ornic-probe += $(call ornic-has-decl,reg_user_mr_dmabuf.[^;]*uverbs_attr_bundle,rdma/ib_verbs.h,IB_DMABUF_ATTRS)
# the initial value of a devlink parameter is passed by pointer
ornic-probe += $(call ornic-has-decl,devl_param_driverinit_value_set.[^;]*value [*]init_val,net/devlink.h,DEVLINK_VALUE_POINTER)
