/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control socket: whoever may connect sees and changes what the daemon does
 * (Documentation/control.rst).
 *
 * server.c has the socket and its clients, client.c the lines of one of them, request.c makes
 * an answer of a line (JSON-RPC 2.0), methods.c finds who does what was asked. Each subject's
 * methods are a file of their own. The data path knows nothing of all this.
 *
 * Nothing here blocks, and all is bounded: clients, bytes of a line, depth of its JSON, bytes of
 * an answer. A client that does not take its answer is not asked for more; see client.c.
 */
#ifndef ORNICD_CONTROL_CONTROL_H
#define ORNICD_CONTROL_CONTROL_H

#include "../config/config.h"

#include <stdbool.h>

struct control;
struct daemon;

/*
 * control_open() - listen as @cc says
 * Return: 0, or a negative errno after an error line.
 */
int control_open(struct daemon *daemon, const struct config_control *cc, struct control **control);
/* control_close() - hang up and remove the socket; NULL is ignored */
void control_close(struct control *c);

/*
 * control_work() - answer one request, if one waits; between turns of the engine
 * Return: true if another one waits.
 */
bool control_work(struct control *c);

#endif /* ORNICD_CONTROL_CONTROL_H */
