/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The daemon's event loop: events of file descriptors, and bounded turns of the data path.
 *
 * The loop alternates between turns of the work hook and events of the kernel. The result of the
 * hook is the longest wait for events: none while there is work, until the next timer otherwise.
 * Everything runs on the calling thread, so the callback of a file descriptor never runs within a
 * turn.
 *
 * A callback with much to do does a part of it and defers the rest to the next iteration, so that
 * turns and the other callbacks follow.
 */
#ifndef ORNICD_LOOP_H
#define ORNICD_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>

struct loop;

/**
 * typedef loop_cb - handle events of a file descriptor
 * @arg:	as given to loop_add()
 * @events:	EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR ...
 *
 * It may call every loop function, also loop_del() for any descriptor: events of a removed
 * descriptor are not delivered any more.
 */
typedef void (*loop_cb)(void *arg, uint32_t events);

/**
 * struct loop_task - the rest of a callback's work; embedded in its owner, zeroed before the first use
 * @run:	called once after loop_defer(), as callbacks are
 * @arg:	argument of @run
 * @queued:	deferred and not called yet
 * @at:		iteration in which it was deferred
 * @link:	in the loop's list
 */
struct loop_task {
	void (*run)(void *arg);
	void *arg;
	bool queued;
	uint64_t at;
	TAILQ_ENTRY(loop_task) link;
};

/**
 * typedef loop_work - run one bounded turn of the data path
 * @arg:	as given to loop_set_work()
 *
 * Return: 0 if there is more work, LOOP_FOREVER if only an event can bring work, otherwise the time
 * until the next call, ns. The loop may call it earlier.
 */
typedef int64_t (*loop_work)(void *arg);

/** LOOP_FOREVER - the hook needs no call until a descriptor has an event */
#define LOOP_FOREVER	(-1)

/**
 * LOOP_SPIN_NS - time of turns without a check for events, ns
 *
 * A check is a system call, which costs several times as much as an empty turn. Events (doorbells,
 * unmaps) may wait this long, plus one turn.
 */
#define LOOP_SPIN_NS	5000

/**
 * LOOP_LOOK_NS - longest time between two checks for events, ns
 *
 * An idle loop looks this often, so that loop_age() can tell an idle process from a stopped one.
 */
#define LOOP_LOOK_NS	500000000

/* loop_new() - create an empty loop. Return: the loop, or NULL with errno set. */
struct loop *loop_new(void);

/* loop_free() - remove all watches and free a loop that is not running; descriptors stay open */
void loop_free(struct loop *l);

/*
 * loop_add() - watch descriptor @fd, which is not watched yet
 * @events: epoll events, level triggered; @cb(@arg) is called when one occurs
 * Return: 0 or a negative errno.
 */
int loop_add(struct loop *l, int fd, uint32_t events, loop_cb cb, void *arg);

/* loop_mod() - change the events of watched descriptor @fd. Return: 0 or a negative errno. */
int loop_mod(struct loop *l, int fd, uint32_t events);

/* loop_del() - stop watching @fd; call it before close(). A descriptor without watch is ignored. */
void loop_del(struct loop *l, int fd);

/*
 * loop_defer() - call @t->run in the next iteration of the loop; once, however often it is deferred
 * loop_cancel() - do not call it; a task that is not deferred is ignored
 */
void loop_defer(struct loop *l, struct loop_task *t);
void loop_cancel(struct loop *l, struct loop_task *t);

/* loop_set_work() - set the work hook; NULL for none */
void loop_set_work(struct loop *l, loop_work work, void *arg);

/*
 * loop_run() - run turns and handle events until loop_stop()
 * Return: 0 after loop_stop(), or a negative errno if waiting for events failed.
 */
int loop_run(struct loop *l);

/* loop_now() - return the time of the monotonic clock, ns */
int64_t loop_now(void);

/*
 * loop_since() - for callbacks: return the time since which the event may have waited, ns
 * loop_age() - return for how long that is until now, ns
 *
 * More than LOOP_LOOK_NS and a turn means that the process was stopped or got no processor.
 */
int64_t loop_since(const struct loop *l);
int64_t loop_age(const struct loop *l);

/*
 * loop_stop() - make loop_run() return after the current callback or turn; for callbacks and the
 * hook
 */
void loop_stop(struct loop *l);

#endif /* ORNICD_LOOP_H */
