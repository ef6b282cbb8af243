/* SPDX-License-Identifier: GPL-2.0 */
/*
 * MSI-X vectors of one function: the client assigns an eventfd to each.
 */
#ifndef ORNICD_VFU_MSIX_H
#define ORNICD_VFU_MSIX_H

#include <stdbool.h>
#include <stdint.h>

struct log_source;

/**
 * struct msix_vector - one vector
 * @fd:		eventfd, -1 if none is assigned
 * @pending:	fired while it could not be delivered
 */
struct msix_vector {
	int fd;
	bool pending;
};

struct mapper;

/**
 * struct msix - the vectors of a function
 * @log:	source of log lines
 * @mapper:	closes the eventfds; NULL: they are closed at once
 * @n:		number of vectors
 * @nfds:	number of vectors that have an eventfd
 * @enabled:	the function may interrupt: bus master, D0
 * @vector:	@n of them
 */
struct msix {
	struct log_source *log;
	struct mapper *mapper;
	unsigned int n;
	unsigned int nfds;
	bool enabled;
	struct msix_vector *vector;
};

/**
 * msix_init() - prepare vectors, none of them assigned
 * @m:	vectors
 * @n:	number of vectors
 * @log: source of log lines
 *
 * Return: 0 or -ENOMEM.
 */
int msix_init(struct msix *m, unsigned int n, struct log_source *log);

/**
 * msix_destroy() - close the eventfds and free the vectors
 * @m:	vectors
 */
void msix_destroy(struct msix *m);

/**
 * msix_fire() - raise an interrupt, now or as soon as it may be delivered
 * @m:		vectors
 * @vector:	number; ignored if it does not exist
 */
void msix_fire(struct msix *m, unsigned int vector);

/**
 * msix_enable() - allow or forbid delivery; deliver pending vectors
 * @m:	vectors
 * @on:	true if bus master is on and the power state is D0
 */
void msix_enable(struct msix *m, bool on);

/**
 * msix_assign() - assign an eventfd to a vector, in place of an earlier one
 * @m:		vectors
 * @vector:	number, less than @m->n
 * @fd:		the eventfd; belongs to @m if the result is 0
 *
 * Return: 0; -EINVAL if @fd is no eventfd; -EMFILE if the device may keep no more (share_keep()).
 */
int msix_assign(struct msix *m, unsigned int vector, int fd);

/**
 * msix_release() - close the eventfds of some vectors
 * @m:		vectors
 * @start:	first vector
 * @count:	number of vectors; @start + @count is at most @m->n
 */
void msix_release(struct msix *m, unsigned int start, unsigned int count);

/**
 * msix_forget_pending() - clear all pending vectors: after a reset, or when MSI-X is disabled
 * @m:	vectors
 */
void msix_forget_pending(struct msix *m);

#endif /* ORNICD_VFU_MSIX_H */
