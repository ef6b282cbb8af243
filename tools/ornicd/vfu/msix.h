/* SPDX-License-Identifier: GPL-2.0 */
/*
 * MSI-X vectors of one function: the client assigns an eventfd to each.
 */
#ifndef ORNICD_VFU_MSIX_H
#define ORNICD_VFU_MSIX_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct msix_vector - one vector
 * @fd:		eventfd, -1 if none is assigned
 * @pending:	fired while it could not be delivered
 */
struct msix_vector {
	int fd;
	bool pending;
};

/**
 * struct msix - the vectors of a function
 * @n:		number of vectors
 * @enabled:	the function may interrupt: bus master, D0
 * @vector:	@n of them
 */
struct msix {
	unsigned int n;
	bool enabled;
	struct msix_vector *vector;
};

int msix_init(struct msix *m, unsigned int n);
void msix_destroy(struct msix *m);
void msix_fire(struct msix *m, unsigned int vector);
void msix_enable(struct msix *m, bool on);
int msix_assign(struct msix *m, unsigned int vector, int fd);
void msix_release(struct msix *m, unsigned int start, unsigned int count);
void msix_forget_pending(struct msix *m);

#endif /* ORNICD_VFU_MSIX_H */
