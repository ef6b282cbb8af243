// SPDX-License-Identifier: GPL-2.0
/*
 * Shares of the thread's time: see fair.h.
 */
#include "fair.h"

#include "engine.h"

void fair_open(struct device *dev)
{
	dev->credit = FAIR_QUANTUM_NS;
	dev->turns = FAIR_QUANTUM_NS;
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

/* Begin to count the time of queue pairs: what they used while nobody waited is no debt. */
static void first_round(struct engine *e)
{
	struct device *dev;

	e->held = true;
	TAILQ_FOREACH(dev, &e->devices, link)
		dev->turns = FAIR_QUANTUM_NS;
}

bool fair_may(struct device *dev)
{
	if (dev->credit > 0 || is_alone(dev))
		return true;
	dev->held = true;
	if (!dev->engine->held)
		first_round(dev->engine);
	return false;
}

static void spend(int64_t *credit, int64_t time)
{
	*credit -= time;
	if (*credit < -FAIR_DEBT_NS)
		*credit = -FAIR_DEBT_NS;
}

void fair_begin(struct device *dev)
{
	dev->charged = dev->engine->clock();
}

void fair_charge(struct device *dev)
{
	uint64_t now;

	if (!dev->charged)
		return;
	now = dev->engine->clock();
	spend(&dev->credit, now - dev->charged);
	dev->charged = now;
}

void fair_end(struct device *dev)
{
	fair_charge(dev);
	dev->charged = 0;
}

uint64_t fair_charge_turn(struct device *dev, uint64_t start)
{
	uint64_t now = dev->engine->clock(), time = now - start;

	if (dev->engine->held)
		spend(&dev->turns, time < FAIR_TURN_NS ? FAIR_TURN_NS : time);
	return now;
}

/* Return the rounds until @credit is positive. */
static int64_t rounds_until(int64_t credit)
{
	return credit > 0 ? 0 : -credit / FAIR_QUANTUM_NS + 1;
}

/*
 * Return how many rounds may begin now: at most those that the first of the waiting devices needs, and
 * those for which the queue pairs of each device have had their time.
 */
static int64_t rounds(const struct engine *e)
{
	int64_t n = rounds_until(-FAIR_DEBT_NS);
	const struct device *dev;

	TAILQ_FOREACH(dev, &e->devices, link)
		if (dev->held && rounds_until(dev->credit) < n)
			n = rounds_until(dev->credit);
	TAILQ_FOREACH(dev, &e->busy, busy)
		if (dev->running && rounds_until(dev->turns) < n)
			n = rounds_until(dev->turns);
	return n;
}

static void add(int64_t *credit, int64_t time)
{
	*credit += time;
	if (*credit > FAIR_QUANTUM_NS)
		*credit = FAIR_QUANTUM_NS;
}

void fair_rounds(struct engine *e)
{
	struct device *dev;
	int64_t time;
	bool held = false;

	if (!e->held)
		return;
	time = rounds(e) * FAIR_QUANTUM_NS;
	TAILQ_FOREACH(dev, &e->devices, link) {
		add(&dev->credit, time);
		add(&dev->turns, time);
		dev->held &= dev->credit <= 0;
		held |= dev->held;
	}
	e->held = held;
}
