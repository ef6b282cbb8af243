/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults on purpose: the n-th allocation of a task fails, for every n until a step
 * needs no more than n - 1 (fail-nth of the kernel's fault injection). Which
 * allocations count is set in debugfs by who runs the program.
 */
#ifndef GUEST_FAULTS_H
#define GUEST_FAULTS_H

#include "report.h"

/*
 * A step with its opposite; both return 0 or an errno. A step that fails leaves nothing,
 * and after it failed for a fault it works as if it had not been tried.
 */
struct fault_case {
	const char *name;
	int (*make)(void);
	int (*unmake)(void);		/* NULL: there is nothing to undo */
};

/* False: the kernel has no fault injection. */
bool faults_possible(void);

/* The @n-th allocation of the calling thread from now on fails, or none if 0. */
void faults_arm(unsigned int n);
/* Ends what faults_arm() started; true if an allocation failed. */
bool faults_disarm(void);
/* The same for a process that has ended and was not waited for. */
bool faults_hit(int pid);

/*
 * A step that is a program: what is armed counts in its process instead of in the calling
 * thread. 0 or, for a failure of any kind, ENOMEM.
 */
int faults_command(char *const argv[]);

/*
 * Each allocation of @make fails in turn, then each of @unmake; returns how many there
 * were. A @slow make that failed is done again only in the end.
 */
unsigned int faults_walk(struct verdict *v, const struct fault_case *c, bool slow);

#endif
