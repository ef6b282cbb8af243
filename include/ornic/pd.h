/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Protection domains (specification: mr.rst; clauses ORN-PD). PD_DESTROY fails with
 * BUSY while a key, a queue pair or an SRQ uses the domain.
 */
#ifndef ORNIC_PD_H
#define ORNIC_PD_H

#include "types.h"

/* PD_CREATE input. */
struct ornic_pd_create_cmd {
	__le32 want;		/* mbz */
	__le32 owner;		/* host's id of the user context, 0 = driver */
};
ORNIC_ASSERT_SIZE(struct ornic_pd_create_cmd, 8);

#endif
