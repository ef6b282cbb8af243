/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fixed-width types and the layout assertions of the ornic interface headers.
 *
 * These headers are the normative layout of the interface specification
 * (Documentation/spec): driver, provider and device include the same files.
 * They hold layout only, no logic. Integers are little endian unless the type
 * says __be; byte arrays are in wire order.
 */
#ifndef ORNIC_TYPES_H
#define ORNIC_TYPES_H

#include <linux/types.h>

#define ORNIC_ASSERT_SIZE(type, bytes)					\
	_Static_assert(sizeof(type) == (bytes), "size of " #type)

#define ORNIC_ASSERT_OFFSET(type, member, bytes)			\
	_Static_assert(__builtin_offsetof(type, member) == (bytes),	\
		       "offset of " #member " in " #type)

/* Value of a number field that names no object. */
#define ORNIC_NONE		0xffffffffu

/* Largest object number. Numbers have 24 bits; only EQ 0 has the number 0. */
#define ORNIC_MAX_NUMBER	0xfffffeu
#define ORNIC_NUMBER_MASK	0xffffffu

/* Size in bytes of each device-produced entry, of a doorbell record and of an admin command. */
#define ORNIC_ENTRY_BYTES	64

#endif
