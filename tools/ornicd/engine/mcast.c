// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups of a function.
 */
#include "mcast.h"

#include "engine.h"
#include "qp.h"
#include "ud.h"
#include "../net/vlan.h"
#include "../packet/bth.h"
#include "../packet/ip.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/**
 * struct member - a queue pair in a group
 * @link:	in its bucket, oldest first
 * @number:	number of the membership
 * @gid:	group
 * @qp:		member
 */
struct member {
	TAILQ_ENTRY(member) link;
	uint32_t number;
	uint8_t gid[16];
	struct qp *qp;
};

/* Choose the salt. getrandom() does not fail once a system is up. */
static void salt_init(uint64_t salt[2])
{
	if (getrandom(salt, 2 * sizeof(salt[0]), 0) != 2 * sizeof(salt[0]))
		memset(salt, 0x5b, 2 * sizeof(salt[0]));
}

void mcast_init(struct mcast *m)
{
	salt_init(m->salt);
	for (int i = 0; i < MCAST_BUCKETS; i++)
		TAILQ_INIT(&m->bucket[i]);
	table_init(&m->number, MCAST_FIRST, MCAST_TOTAL);
	m->groups = 0;
}

void mcast_fini(struct mcast *m)
{
	uint32_t n = MCAST_FIRST;

	while (table_next(&m->number, &n))
		mcast_leave(m, n);
	table_fini(&m->number);
}

bool mcast_is_group(const uint8_t gid[16])
{
	return gid[0] == 0xff || (ip_is_v4(gid) && (gid[12] & 0xf0) == 0xe0);
}

static struct member_list *bucket_of(struct mcast *m, const uint8_t gid[16])
{
	unsigned __int128 product;
	uint64_t half[2], hash;

	memcpy(half, gid, sizeof(half));
	product = (unsigned __int128)(half[0] ^ m->salt[0]) * (half[1] ^ m->salt[1]);
	hash = product >> 64 ^ product;
	/* The hashes of similar groups may differ in few bits: spread them. */
	return &m->bucket[(hash * 0x9e3779b97f4a7c15ull >> 32) % MCAST_BUCKETS];
}

/* Return the number of members of @gid, or -EEXIST if @qp is one of them. */
static int members_of(struct member_list *bucket, const uint8_t gid[16], const struct qp *qp)
{
	const struct member *member;
	int n = 0;

	TAILQ_FOREACH(member, bucket, link) {
		if (memcmp(member->gid, gid, sizeof(member->gid)))
			continue;
		if (member->qp == qp)
			return -EEXIST;
		n++;
	}
	return n;
}

int mcast_join(struct mcast *m, const uint8_t gid[16], struct qp *qp, uint32_t *number)
{
	struct member_list *bucket = bucket_of(m, gid);
	int ret, others = members_of(bucket, gid, qp);
	struct member *member;

	if (others < 0)
		return others;
	if (others == MCAST_PER_GROUP || (!others && m->groups == MCAST_GROUPS))
		return -ENOSPC;
	member = calloc(1, sizeof(*member));
	if (!member)
		return -ENOMEM;
	ret = table_add(&m->number, member, &member->number);
	if (ret) {
		free(member);
		return ret;
	}
	memcpy(member->gid, gid, sizeof(member->gid));
	member->qp = qp;
	qp->memberships++;
	m->groups += !others;
	TAILQ_INSERT_TAIL(bucket, member, link);
	*number = member->number;
	return 0;
}

int mcast_leave(struct mcast *m, uint32_t number)
{
	struct member *member = table_get(&m->number, number);
	struct member_list *bucket;

	if (!member)
		return -ENOENT;
	bucket = bucket_of(m, member->gid);
	TAILQ_REMOVE(bucket, member, link);
	m->groups -= !members_of(bucket, member->gid, NULL);
	member->qp->memberships--;
	table_del(&m->number, number);
	free(member);
	return 0;
}

/* Return true if the function has a GID entry in the VLAN of the packet. */
static bool vlan_is_ours(const struct device *dev, const struct packet *p)
{
	uint16_t id = vlan_id(p);

	for (uint32_t i = 0; i < DEVICE_GIDS; i++) {
		const struct ornic_gid_entry *g = device_gid(dev, i);

		if (g && gid_vlan(g) == id)
			return true;
	}
	return false;
}

/* Return true unless @qp sent @p itself and asked not to receive its own datagrams. */
static bool member_takes(const struct device *dev, const struct qp *qp, const struct packet *p)
{
	bool own = p->from == dev->port.sw && p->sender == qp;

	return !own || !(qp->flags & ORNIC_QP_F_BLOCK_MC_LOOP);
}

/* Return true if members may receive the packet; otherwise count the reason. */
static bool group_packet_sane(struct device *dev, const struct packet *p)
{
	if ((p->opcode & BTH_TRANSPORT_MASK) != BTH_TRANSPORT_UD) {
		device_count(dev, CNT_bad_opcode, 1);
		return false;
	}
	if (p->dqpn != BTH_MULTICAST_QPN) {
		device_count(dev, CNT_bad_qpn, 1);
		return false;
	}
	if (!bth_pkey_matches(p->pkey)) {
		device_count(dev, CNT_bad_pkey, 1);
		return false;
	}
	return true;
}

bool mcast_has_members(struct mcast *m, const uint8_t gid[16])
{
	return members_of(bucket_of(m, gid), gid, NULL);
}

void mcast_receive(struct device *dev, const struct packet *p)
{
	struct member_list *bucket = bucket_of(&dev->mcast, p->dgid);
	const struct member *member;

	if (!vlan_is_ours(dev, p) || !group_packet_sane(dev, p))
		return;
	/* Once, whatever the number of members, and in no counter set (ORN-STAT-15). */
	device_count(dev, CNT_rdma_rx_packets, 1);
	device_count(dev, CNT_rdma_rx_bytes, p->len);
	device_count(dev, CNT_rdma_rx_multicast, 1);
	TAILQ_FOREACH(member, bucket, link)
		if (!memcmp(member->gid, p->dgid, sizeof(member->gid)) &&
		    member_takes(dev, member->qp, p)) {
			dev->engine->copies++;
			ud_receive(member->qp, p);
		}
}
