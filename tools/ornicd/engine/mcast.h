/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Multicast groups: the UD queue pairs of a function that receive the datagrams of a group.
 *
 * The switch carries such a datagram to every port. The function delivers a copy to every member,
 * also to the sender unless it has ORNIC_QP_F_BLOCK_MC_LOOP.
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

/** MCAST_GROUPS - most groups of a function */
#define MCAST_GROUPS		1024
/** MCAST_PER_GROUP - most members of a group, so most copies of a packet */
#define MCAST_PER_GROUP		256
/** MCAST_TOTAL - most memberships of a function */
#define MCAST_TOTAL		8192
/** MCAST_FIRST - lowest number of a membership, above the numbers of other rules */
#define MCAST_FIRST		0x800000u
/** MCAST_BUCKETS - buckets of the hash table */
#define MCAST_BUCKETS		256

/**
 * struct mcast - groups of a function
 * @bucket:	members by hash of their group
 * @salt:	random salt of the hash, so that no guest can fill one bucket
 * @number:	members by number
 * @groups:	distinct groups
 */
struct mcast {
	TAILQ_HEAD(member_list, member) bucket[MCAST_BUCKETS];
	uint64_t salt[2];
	struct table number;
	uint32_t groups;
};

/* mcast_init() - initialise an empty set of groups */
void mcast_init(struct mcast *m);
/* mcast_fini() - end all memberships and free memory */
void mcast_fini(struct mcast *m);

/* mcast_is_group() - return true if @gid is a multicast address, IPv4 or IPv6 */
bool mcast_is_group(const uint8_t gid[16]);

/*
 * mcast_join() - make @qp a member of group @gid
 * Return: 0 and the number of the membership in *@number; -EEXIST if it is a member, -ENOSPC at a
 * limit, or -ENOMEM.
 */
int mcast_join(struct mcast *m, const uint8_t gid[16], struct qp *qp, uint32_t *number);

/* mcast_leave() - end a membership. Return: 0 or -ENOENT. */
int mcast_leave(struct mcast *m, uint32_t number);

/* mcast_has_members() - return true if a queue pair of the function is in group @gid */
bool mcast_has_members(struct mcast *m, const uint8_t gid[16]);

/* mcast_receive() - deliver a RoCE packet to the members of its group, which has some */
void mcast_receive(struct device *dev, const struct packet *p);

#endif /* ORNICD_ENGINE_MCAST_H */
