/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Objects that a process can create, as cases for faults_walk(). Each group of cases works
 * on one open device and closes its objects.
 */
#ifndef GUEST_FAULTS_CASES_H
#define GUEST_FAULTS_CASES_H

#include "conn.h"
#include "faults.h"

#include <errno.h>
#include <string.h>

/* The device under test: opened before each case, closed after it. */
extern struct dev dev;
extern struct queue cq;

struct fault_group {
	const char *name;
	const struct fault_case *cases;
	unsigned int count;
	void (*open)(void);		/* creates the objects that the cases need, may be NULL */
	void (*close)(void);
};

#define FAULT_GROUP(id, open_fn, close_fn) \
	const struct fault_group id##_faults = { \
		#id, id##_cases, sizeof(id##_cases) / sizeof(id##_cases[0]), open_fn, close_fn, \
	}

extern const struct fault_group context_faults, queue_faults, qp_faults, memory_faults, raw_faults;

unsigned int faults_process_end(struct verdict *v);

/* Convert to 0 or an errno: a verb that returns an object, and one that returns a status. */
static inline int made(const void *object)
{
	return object ? 0 : errno ? errno : EPROTO;
}

static inline int status(int ret)
{
	return ret < 0 ? (errno ? errno : EPROTO) : ret;
}

#endif
