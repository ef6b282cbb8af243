/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Datagrams that arrived before a receive was posted for them.
 *
 * UD may drop datagrams, but a receiver that posts a little late because its processor was busy
 * should not lose any. As in any NIC, some memory absorbs the burst. It is bounded per queue pair
 * and per function; datagrams that do not fit are dropped. Order is kept.
 */
#ifndef ORNICD_ENGINE_BACKLOG_H
#define ORNICD_ENGINE_BACKLOG_H

#include "../packet/packet.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct device;
struct datagram;

/** BACKLOG_DATAGRAMS - most datagrams per queue pair */
#define BACKLOG_DATAGRAMS	1024
/** BACKLOG_BYTES - memory per function; headers count, because datagrams may be empty */
#define BACKLOG_BYTES		(4u << 20)

/** struct backlog - waiting datagrams of one queue pair, oldest first */
struct backlog {
	STAILQ_HEAD(, datagram) list;
	uint32_t count;
};

/* backlog_init() - initialise an empty backlog */
void backlog_init(struct backlog *b);

/* backlog_clear() - drop all datagrams */
void backlog_clear(struct backlog *b, struct device *dev);

/* backlog_add() - append a copy of @p. Return: false if there is no room. */
bool backlog_add(struct backlog *b, struct device *dev, const struct packet *p);

/*
 * backlog_first() - return the oldest datagram as a packet of the engine's pool, or NULL if the
 * backlog or the pool is empty. The caller puts the packet back; the datagram stays.
 */
struct packet *backlog_first(struct backlog *b, struct device *dev);
/* backlog_drop() - remove the oldest datagram; @b is not empty */
void backlog_drop(struct backlog *b, struct device *dev);

static inline bool backlog_empty(const struct backlog *b)
{
	return !b->count;
}

#endif /* ORNICD_ENGINE_BACKLOG_H */
