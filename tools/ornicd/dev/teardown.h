/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Release the objects of a function that has stopped, some per iteration of the engine, until a
 * disable or a reset has ended. No DMA and no interrupt happens meanwhile.
 */
#ifndef ORNICD_DEV_TEARDOWN_H
#define ORNICD_DEV_TEARDOWN_H

#include "walk.h"

#include <stdbool.h>
#include <stdint.h>

struct function;

/** TEARDOWN_WORK - objects that a function releases per iteration */
#define TEARDOWN_WORK	128

/**
 * struct teardown - a teardown
 * @active:	objects are left
 * @walk:	progress
 */
struct teardown {
	bool active;
	struct walk walk;
};

/* teardown_begin() - begin to release all objects, without completions and events (ORN-CTL-26) */
void teardown_begin(struct function *f);
/* teardown_run() - release at most @work objects */
void teardown_run(struct function *f, uint32_t work);

#endif /* ORNICD_DEV_TEARDOWN_H */
