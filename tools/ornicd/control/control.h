/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control socket: its clients inspect and change the running daemon
 * (Documentation/control.rst).
 *
 * server.c has the socket and its list of clients, client.c the lines of one client, request.c
 * turns a request line (JSON-RPC 2.0) into an answer, methods.c finds the method. The methods of
 * each subject have a file. The data path does not depend on this folder.
 *
 * Nothing here blocks. Bounded are: clients, bytes of a line, depth of its JSON, bytes of an
 * answer. A client's next request is read only after it has taken its answer; see client.c.
 *
 * A client that has its answer finds the lines of its request in the log. The answer therefore
 * waits for the thread that writes the log, LOG_WRITER_PATIENCE_NS at most; the loop does not.
 */
#ifndef ORNICD_CONTROL_CONTROL_H
#define ORNICD_CONTROL_CONTROL_H

#include "../config/config.h"

#include <stdbool.h>
#include <stdint.h>

struct control;
struct daemon;

/*
 * control_open() - create the socket with the path and access of @cc, and listen
 * Return: 0, or a negative errno after an error line.
 */
int control_open(struct daemon *daemon, const struct config_control *cc, struct control **control);
/* control_close() - send held answers, close all connections and remove the socket; NULL is ignored */
void control_close(struct control *c);

/*
 * control_work() - send answers that no longer wait for the log, and execute one request, if one
 * waits; to be called between iterations of the engine
 * Return: true if another one waits.
 */
bool control_work(struct control *c);
/* control_wait() - return the longest time until the next control_work(), ns; -1: any */
int64_t control_wait(const struct control *c);

#endif /* ORNICD_CONTROL_CONTROL_H */
