// SPDX-License-Identifier: GPL-2.0
#include "signals.h"

#include <signal.h>
#include <stddef.h>

void signal_handle(int signal, void (*handler)(int), int flags)
{
	const struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	struct sigaction old;

	if (!sigaction(signal, NULL, &old) && old.sa_handler != SIG_IGN)
		sigaction(signal, &action, NULL);
}
