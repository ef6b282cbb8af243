/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shares of the thread's time.
 *
 * Queue pairs take turns (engine.c), and each turn is bounded. Commands, resets and the like cost
 * very different times, so their devices take turns by the time that they used: deficit round robin.
 * Each device may use FAIR_QUANTUM_NS per round, for everything that it does. If it used more, its
 * commands and its client's messages wait for the next round. A round ends when every device whose
 * queue pairs have work has used its time, so a device that is alone never waits for long.
 *
 * All functions run on the engine's thread.
 */
#ifndef ORNICD_ENGINE_FAIR_H
#define ORNICD_ENGINE_FAIR_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct engine;

/** FAIR_QUANTUM_NS - time of a device per round, ns */
#define FAIR_QUANTUM_NS	20000

/* fair_open() - give a new device the time of a round */
void fair_open(struct device *dev);
/* fair_exempt() - let a device that nobody uses any more release its objects at any time */
void fair_exempt(struct device *dev);

/*
 * fair_may() - return true if @dev has time left
 * Otherwise its caller asks again in the next iteration of the loop.
 */
bool fair_may(struct device *dev);

/*
 * fair_charge() - charge @dev for the time since @start, ns of the engine's clock
 * Return: the time now.
 */
uint64_t fair_charge(struct device *dev, uint64_t start);

/* fair_round() - begin the next round if the current one is over and a device waits */
void fair_round(struct engine *e);

#endif /* ORNICD_ENGINE_FAIR_H */
