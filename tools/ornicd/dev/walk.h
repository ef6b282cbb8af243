/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Visit all objects of a device, some of them per iteration of the engine. A guest can have more
 * than 100,000 objects, and other functions must not wait until all are visited (ORN-SEC-14).
 */
#ifndef ORNICD_DEV_WALK_H
#define ORNICD_DEV_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;

/**
 * struct walk_step - what to do with the objects of one table
 * @table:	offset of the table in struct device
 * @visit:	called for each object; it may delete the object from the table
 */
struct walk_step {
	size_t table;
	void (*visit)(struct device *dev, uint32_t number, void *obj);
};

/**
 * struct walk - progress of a walk; zeros are the start
 * @step:	index of the step
 * @number:	number of the next object in the table of that step
 */
struct walk {
	uint32_t step;
	uint32_t number;
};

/*
 * walk_run() - visit at most @work more objects; @nsteps steps, in their order
 * Return: true at the end of the walk.
 */
bool walk_run(struct walk *w, struct device *dev, const struct walk_step *steps, uint32_t nsteps,
	      uint32_t work);

#endif /* ORNICD_DEV_WALK_H */
