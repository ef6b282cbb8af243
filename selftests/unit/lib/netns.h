/* SPDX-License-Identifier: GPL-2.0 */
/* A network namespace of the test's own. */
#ifndef UNIT_LIB_NETNS_H
#define UNIT_LIB_NETNS_H

/*
 * netns_enter() - enter a new network namespace in which the test may create and use interfaces
 *
 * Without root, that needs a user namespace, which the host may forbid. A tap needs /dev/net/tun.
 * The test is skipped if either is missing.
 */
void netns_enter(void);

#endif /* UNIT_LIB_NETNS_H */
