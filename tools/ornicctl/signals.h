/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ORNICCTL_SIGNALS_H
#define ORNICCTL_SIGNALS_H

/**
 * signal_handle() - handle a signal, unless it is ignored
 * @signal:	a signal that ends or stops the program
 * @handler:	handler
 * @flags:	flags of sigaction()
 *
 * nohup, and shells for programs in the background, ignore signals for their children.
 */
void signal_handle(int signal, void (*handler)(int), int flags);

#endif /* ORNICCTL_SIGNALS_H */
