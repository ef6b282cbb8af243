/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shares of the thread's time.
 *
 * Queue pairs take turns (engine.c), and each turn is bounded. Commands, resets and messages of
 * clients cost very different times, so their devices take turns by the time that they used: deficit
 * round robin. A device may use FAIR_QUANTUM_NS per round for them. If it used more, they wait for
 * later rounds. A round ends when every device whose queue pairs have work has had as much time for
 * these, where a turn counts as FAIR_TURN_NS at least: a device whose turns are short cannot use more.
 * So nobody waits for a device without work, and the work of queue pairs delays no command of the same
 * device.
 *
 * Debts have a bound: a thread that got no processor in the middle of a command is not the guest's
 * fault.
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
/** FAIR_TURN_NS - least time that the turn of a queue pair counts, ns */
#define FAIR_TURN_NS	(FAIR_QUANTUM_NS / 4)
/** FAIR_DEBT_NS - most time by which a device can have exceeded its share, ns */
#define FAIR_DEBT_NS	1000000

/* fair_open() - give a new device the time of a round */
void fair_open(struct device *dev);
/* fair_exempt() - let a device that nobody uses any more release its objects at any time */
void fair_exempt(struct device *dev);

/*
 * fair_may() - return true if @dev has time left for commands and messages
 * Otherwise its caller asks again in the next iteration of the loop.
 */
bool fair_may(struct device *dev);

/*
 * fair_begin() - begin to measure commands or messages of @dev
 * fair_charge() - charge @dev for the time until now, if it is being measured; after work that took
 * long, so that fair_may() knows of it
 * fair_end() - the same, and end the measurement
 */
void fair_begin(struct device *dev);
void fair_charge(struct device *dev);
void fair_end(struct device *dev);

/*
 * fair_charge_turn() - charge @dev for the turn of a queue pair that began at @start, ns, if a device
 * waits. Return: the time now.
 */
uint64_t fair_charge_turn(struct device *dev, uint64_t start);

/* fair_rounds() - begin the next rounds if the current one is over and a device waits */
void fair_rounds(struct engine *e);

#endif /* ORNICD_ENGINE_FAIR_H */
