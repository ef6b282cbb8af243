/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The daemon's event loop: file descriptors on one side, the data path's
 * bounded turns on the other.
 *
 * The loop alternates between two things. It asks the work hook for a turn, and
 * it asks the kernel for events. What the hook returns decides how long the
 * kernel may keep us: not at all while there is work, until the next timer
 * otherwise. Everything runs on the calling thread, so a file descriptor's
 * callback never meets a turn half done.
 */
#ifndef ORNICD_LOOP_H
#define ORNICD_LOOP_H

#include <stdint.h>
#include <sys/epoll.h>

struct loop;

/**
 * typedef loop_cb - something happened on a file descriptor
 * @arg:	as given to loop_add()
 * @events:	EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR ...
 *
 * May call every loop function, also loop_del() on its own or any other
 * descriptor: events of a removed descriptor are not delivered any more.
 */
typedef void (*loop_cb)(void *arg, uint32_t events);

/**
 * typedef loop_work - run one bounded turn of the data path
 * @arg:	as given to loop_set_work()
 *
 * Return: 0 if there is more work (call again soon), LOOP_FOREVER if only an
 * event can bring work, else the ns after which it wants to be called again.
 */
typedef int64_t (*loop_work)(void *arg);

/** LOOP_FOREVER - the hook needs no call until some descriptor has an event */
#define LOOP_FOREVER	(-1)

/**
 * LOOP_SPIN_NS - how long turns may follow each other before events are looked at
 *
 * A look costs a system call, several times the price of an empty turn; events
 * (doorbells, unmaps) may wait this long, plus one turn.
 */
#define LOOP_SPIN_NS	5000

struct loop *loop_new(void);
void loop_free(struct loop *l);
int loop_add(struct loop *l, int fd, uint32_t events, loop_cb cb, void *arg);
int loop_mod(struct loop *l, int fd, uint32_t events);
void loop_del(struct loop *l, int fd);
void loop_set_work(struct loop *l, loop_work work, void *arg);
int loop_stop_on_signals(struct loop *l);
int loop_run(struct loop *l);
void loop_stop(struct loop *l);

#endif /* ORNICD_LOOP_H */
