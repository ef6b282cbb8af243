/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Multicast groups: which UD queue pairs of a function hear datagrams to which group.
 *
 * The switch carries such a datagram to every port; the function delivers a copy to
 * every member, its own sender among them unless that asked to be left out.
 */
#ifndef ORNICD_ENGINE_MCAST_H
#define ORNICD_ENGINE_MCAST_H

#include "table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct device;
struct member;
struct packet;
struct qp;

/** MCAST_GROUPS - groups that a function's queue pairs may be in */
#define MCAST_GROUPS		1024
/** MCAST_PER_GROUP - members of one group: bounds what one packet costs */
#define MCAST_PER_GROUP		256
/** MCAST_TOTAL - memberships of a function */
#define MCAST_TOTAL		8192
/** MCAST_FIRST - lowest number of a membership, above those of other rules */
#define MCAST_FIRST		0x800000u
#define MCAST_BUCKETS		256

/**
 * struct mcast - groups of a function
 * @bucket:	members by hash of their group
 * @salt:	of the hash, random: nobody can fill one bucket on purpose
 * @number:	members by number
 * @groups:	distinct groups
 */
struct mcast {
	TAILQ_HEAD(member_list, member) bucket[MCAST_BUCKETS];
	uint64_t salt[2];
	struct table number;
	uint32_t groups;
};

void mcast_init(struct mcast *m);
/* mcast_fini() - all members leave */
void mcast_fini(struct mcast *m);

/* mcast_is_group() - a GID that is a multicast address, IPv4 or IPv6 */
bool mcast_is_group(const uint8_t gid[16]);

/*
 * mcast_join() - @qp becomes a member of @gid
 * Return: 0 and the membership's number; -EEXIST, -ENOSPC (a limit), -ENOMEM.
 */
int mcast_join(struct mcast *m, const uint8_t gid[16], struct qp *qp, uint32_t *number);

/* mcast_leave() - end a membership. Return: 0 or -ENOENT. */
int mcast_leave(struct mcast *m, uint32_t number);

/* mcast_receive() - a RoCE packet to a group came in */
void mcast_receive(struct device *dev, const struct packet *p);

#endif /* ORNICD_ENGINE_MCAST_H */
