/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kzalloc_obj() and the other allocators of typed objects for kernels without them (6.1). As in
 * newer kernels the GFP flags, the last argument, may be omitted; ornic_gfp() is then GFP_KERNEL.
 */
#ifndef ORNIC_COMPAT_SLAB_H
#define ORNIC_COMPAT_SLAB_H

#include_next <linux/slab.h>

#ifndef kzalloc_obj
#define ornic_second(first, second, ...)	second
#define ornic_gfp(...)			ornic_second(, ##__VA_ARGS__, GFP_KERNEL)

#define kmalloc_objs(P, COUNT, ...)						\
	((typeof(P) *)kmalloc_array(COUNT, sizeof(P), ornic_gfp(__VA_ARGS__)))
#define kzalloc_obj(P, ...)							\
	((typeof(P) *)kzalloc(sizeof(P), ornic_gfp(__VA_ARGS__)))
#define kzalloc_objs(P, COUNT, ...)						\
	((typeof(P) *)kcalloc(COUNT, sizeof(P), ornic_gfp(__VA_ARGS__)))
#define kvzalloc_obj(P, ...)							\
	((typeof(P) *)kvzalloc(sizeof(P), ornic_gfp(__VA_ARGS__)))
#define kvzalloc_objs(P, COUNT, ...)						\
	((typeof(P) *)kvcalloc(COUNT, sizeof(P), ornic_gfp(__VA_ARGS__)))
#endif

#endif
