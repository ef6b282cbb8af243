/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection: the n-th allocation of a task fails, for every n until a step needs no
 * more than n - 1 (fail-nth of the kernel's fault injection). The caller of the program
 * selects in debugfs which allocations count.
 */
#ifndef GUEST_FAULTS_H
#define GUEST_FAULTS_H

#include "report.h"

/*
 * A step with its opposite; both return 0 or an errno. A step that fails leaves nothing
 * behind, and after an injected fault it works as if it had not been tried.
 */
struct fault_case {
	const char *name;
	int (*make)(void);
	int (*unmake)(void);		/* NULL: there is nothing to undo */
};

/* Return false if the kernel has no fault injection. */
bool faults_possible(void);

/* Let the @n-th allocation of the calling thread from now on fail, none if 0. */
void faults_arm(unsigned int n);
/* End the fault of faults_arm(); return true if an allocation failed. */
bool faults_disarm(void);
/* The same for a process that has ended and was not waited for. */
bool faults_hit(int pid);

/*
 * Run a step that is a program: the armed fault counts in its process instead of in the
 * calling thread. Return 0 or, for a failure of any kind, ENOMEM.
 */
int faults_command(char *const argv[]);

/*
 * Let each allocation of @make fail in turn, then each of @unmake; return their number. A
 * @slow make that failed is repeated at the end only.
 */
unsigned int faults_walk(struct verdict *v, const struct fault_case *c, bool slow);

#endif
