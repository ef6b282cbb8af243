// SPDX-License-Identifier: GPL-2.0
/*
 * Shares of the thread's time: see fair.h.
 */
#include "fair.h"

#include "engine.h"

void fair_open(struct device *dev)
{
	dev->credit = FAIR_QUANTUM_NS;
	dev->held = false;
}

void fair_exempt(struct device *dev)
{
	dev->credit = INT64_MAX;
}

static bool is_alone(const struct device *dev)
{
	return TAILQ_FIRST(&dev->engine->devices) == dev && !TAILQ_NEXT(dev, link);
}

bool fair_may(struct device *dev)
{
	if (dev->credit > 0 || is_alone(dev))
		return true;
	dev->held = true;
	dev->engine->held = true;
	return false;
}

uint64_t fair_charge(struct device *dev, uint64_t start)
{
	uint64_t now = dev->engine->clock();

	dev->credit -= now - start;
	return now;
}

/* Return the rounds after which the first of the waiting devices has time left. */
static int64_t rounds_needed(const struct engine *e)
{
	const struct device *dev;
	int64_t best = INT64_MIN;

	TAILQ_FOREACH(dev, &e->devices, link)
		if (dev->held && dev->credit > best)
			best = dev->credit;
	return best == INT64_MIN ? 0 : -best / FAIR_QUANTUM_NS + 1;
}

void fair_round(struct engine *e)
{
	struct device *dev;
	int64_t time;

	if (!e->held)
		return;
	TAILQ_FOREACH(dev, &e->busy, busy)
		if (dev->credit > 0)
			return;
	time = rounds_needed(e) * FAIR_QUANTUM_NS;
	TAILQ_FOREACH(dev, &e->devices, link) {
		dev->credit += time;
		if (dev->credit > FAIR_QUANTUM_NS)
			dev->credit = FAIR_QUANTUM_NS;
		dev->held = false;
	}
	e->held = false;
}
