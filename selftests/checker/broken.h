/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A transport that does one thing wrong, to see that the checker sees it. The linker puts these
 * functions between the engine's own (--wrap).
 */
#ifndef SELFTESTS_CHECKER_BROKEN_H
#define SELFTESTS_CHECKER_BROKEN_H

#include <stdbool.h>

/* broken_set() - break what is called @name. Return: false if there is no such thing. */
bool broken_set(const char *name);
/* broken_anything() - is anything? */
bool broken_anything(void);

#endif /* SELFTESTS_CHECKER_BROKEN_H */
