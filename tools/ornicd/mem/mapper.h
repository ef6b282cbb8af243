/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Do in a thread what a client's descriptor can block: look at it, map it, close it.
 *
 * A file system whose server or disk does not answer, or a socket that lingers, stops the caller
 * for as long as it wants. So each device has a thread of its own, and a descriptor that blocks
 * stops only the device whose client sent it. Requests of a device are done in the order in which
 * they were added; descriptors are closed when no request is left.
 *
 * The thread accesses no mapping, and writes no log lines. Everything else happens on the loop's
 * thread, which never waits for the thread: after mapper_end() a thread that is blocked stays until
 * its descriptor answers or the process ends.
 */
#ifndef ORNICD_MEM_MAPPER_H
#define ORNICD_MEM_MAPPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

/**
 * MAPPER_CLOSING - descriptors that can wait to be closed
 *
 * Callers bound the number of a client's descriptors: they take no more when mapper_full(). The end
 * of a device adds those that its client has left.
 */
#define MAPPER_CLOSING	4096

/**
 * struct mapper_job - a request; embed it
 * @work:	runs on the mapper's thread and may block
 * @done:	called by mapper_reap() after @work; NULL: the request ends with @work, which may
 *		free it
 * @drop:	called on the mapper's thread instead of @done if the mapper has ended, possibly
 *		without @work; frees the request and what @work got
 * @link:	in a queue of the mapper
 */
struct mapper_job {
	void (*work)(struct mapper_job *job);
	void (*done)(struct mapper_job *job);
	void (*drop)(struct mapper_job *job);
	STAILQ_ENTRY(mapper_job) link;
};

struct mapper;

/* mapper_new() - start a mapper. Return: 0 or a negative errno. */
int mapper_new(struct mapper **mapper);

/*
 * mapper_get(), mapper_put() - take or release a reference; NULL is ignored
 * The thread works as long as there are references. The first one belongs to mapper_end().
 */
struct mapper *mapper_get(struct mapper *m);
void mapper_put(struct mapper *m);

/*
 * mapper_end() - end the mapper; NULL is ignored
 * @done of no request is called any more. Requests without @done are still done.
 */
void mapper_end(struct mapper *m);

/*
 * mapper_wait() - wait until all ended mappers have done the work that was added before the end
 * @ms:	longest time, ms
 * Return: false if one has not, because a descriptor blocks it.
 */
bool mapper_wait(unsigned int ms);

/*
 * mapper_add() - add a request
 * @m:	mapper; NULL: do the request at once, @done included
 */
void mapper_add(struct mapper *m, struct mapper_job *job);

/*
 * mapper_close() - close a client's descriptor
 * @m:	mapper; NULL: close it at once
 */
void mapper_close(struct mapper *m, int fd);

/*
 * mapper_hang_up() - end a client's connection at once and close it as mapper_close() does
 * The kernel closes the descriptors that were sent and not received, so this may block, too.
 */
void mapper_hang_up(struct mapper *m, int fd);

/*
 * mapper_close_listener() - close a listening socket after unix_stop_listening()
 * Many connections may wait there, and have descriptors.
 */
void mapper_close_listener(struct mapper *m, int fd);

/* mapper_closing() - return the number of descriptors that wait to be closed; 0 for NULL */
unsigned int mapper_closing(struct mapper *m);

/* mapper_full() - return true if share_close() descriptors wait to be closed; false for NULL */
bool mapper_full(struct mapper *m);

/* mapper_fd() - return a descriptor that is readable when mapper_reap() has work */
int mapper_fd(const struct mapper *m);

/* mapper_reap() - call @done of requests; also due when no descriptor waits any more */
void mapper_reap(struct mapper *m);

#endif /* ORNICD_MEM_MAPPER_H */
