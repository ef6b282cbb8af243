/* SPDX-License-Identifier: GPL-2.0 */
/* kzalloc_obj() and its relatives. The last argument, the GFP flags, may be missing. */
#ifndef ORNIC_COMPAT_SLAB_H
#define ORNIC_COMPAT_SLAB_H

#include_next <linux/slab.h>

#ifndef kzalloc_obj
#define ornic_second_gfp(none, gfp, ...)	gfp
#define ornic_gfp(...)			ornic_second_gfp(, ##__VA_ARGS__, GFP_KERNEL)

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
