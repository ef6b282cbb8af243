/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A transport with one fault, to test that the checker detects it. The linker puts these
 * functions between the engine's own (--wrap).
 */
#ifndef SELFTESTS_CHECKER_BROKEN_H
#define SELFTESTS_CHECKER_BROKEN_H

#include <stdbool.h>

/* broken_set() - select the fault @name. Return: false if there is no such fault. */
bool broken_set(const char *name);
/* broken_anything() - return true if a fault is selected. */
bool broken_anything(void);

#endif /* SELFTESTS_CHECKER_BROKEN_H */
