/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Datagrams that came before a receive was posted for them.
 *
 * Datagrams may be dropped, but a receiver that is a moment late because its processor was busy
 * should not lose any. As in any NIC, some memory absorbs the burst. It is bounded per queue pair and
 * per function; datagrams that do not fit are dropped. Order is kept.
 */
#ifndef ORNICD_ENGINE_BACKLOG_H
#define ORNICD_ENGINE_BACKLOG_H

#include "../packet/packet.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct device;
struct datagram;

/** BACKLOG_DATAGRAMS - most of them per queue pair */
#define BACKLOG_DATAGRAMS	1024
/** BACKLOG_BYTES - memory per function, headers included: datagrams may be empty */
#define BACKLOG_BYTES		(4u << 20)

/** struct backlog - of one queue pair */
struct backlog {
	STAILQ_HEAD(, datagram) list;
	uint32_t count;
};

void backlog_init(struct backlog *b);

/* backlog_clear() - drop all datagrams */
void backlog_clear(struct backlog *b, struct device *dev);

/* backlog_add() - keep a copy of @p. Return: false if there is no room. */
bool backlog_add(struct backlog *b, struct device *dev, const struct packet *p);

/*
 * backlog_first() - return the oldest datagram as a packet of the engine's pool, which the caller
 * puts back, or NULL if the backlog or the pool is empty. It stays until backlog_drop().
 */
struct packet *backlog_first(struct backlog *b, struct device *dev);
void backlog_drop(struct backlog *b, struct device *dev);

static inline bool backlog_empty(const struct backlog *b)
{
	return !b->count;
}

#endif /* ORNICD_ENGINE_BACKLOG_H */
