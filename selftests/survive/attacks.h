/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attacks of a guest on the daemon: what a hostile driver or client can repeat for ever. Each process
 * of an attack ends with its parent.
 */
#ifndef SURVIVE_ATTACKS_H
#define SURVIVE_ATTACKS_H

#include "stations.h"

#include <sys/types.h>

struct attacker;

/**
 * struct attack - an attack
 * @name:	for messages
 * @prepare:	called once, with a device that is up; NULL if not wanted
 * @act:	called again and again
 */
struct attack {
	const char *name;
	void (*prepare)(struct attacker *a);
	void (*act)(struct attacker *a);
};

extern const struct attack attacks[];
extern const size_t nattacks;

/* attack_start() - attack as station @number, in a process; return it when the attack has begun */
pid_t attack_start(struct stations *t, int number, const struct attack *what);

#endif /* SURVIVE_ATTACKS_H */
