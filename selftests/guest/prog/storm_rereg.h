/* SPDX-License-Identifier: GPL-2.0 */
/* Regions that change under traffic, in a protection domain that threads share. */
#ifndef GUEST_STORM_REREG_H
#define GUEST_STORM_REREG_H

#include "storm.h"

/* Start @threads threads, each of which changes a region @rounds times. The device is open. */
void rereg_run(struct storm *s, unsigned int threads, unsigned int rounds);

#endif
