/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Constants that a standard or a document defines. Tests use the names of the code, so that they
 * would not notice a wrong number; this compares the names with the numbers.
 */
#ifndef UNIT_LIB_NUMBERS_H
#define UNIT_LIB_NUMBERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/** struct number - the name of a constant, its value in the code, its value elsewhere */
struct number {
	const char *name;
	int64_t is;
	int64_t defined;
};

#define NUMBER(constant, number)	{ #constant, constant, number }

static inline void numbers_check(const struct number *n, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (n[i].is != n[i].defined)
			fail_msg("%s is %lld, not %lld", n[i].name, (long long)n[i].is,
				 (long long)n[i].defined);
}

#define NUMBERS_CHECK(table)	numbers_check(table, sizeof(table) / sizeof((table)[0]))

#endif
