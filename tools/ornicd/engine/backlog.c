// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams that wait for a receive (see backlog.h).
 */
#include "backlog.h"

#include "engine.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/** struct datagram - a copy: headers as in struct packet up to its segments, then payload */
struct datagram {
	STAILQ_ENTRY(datagram) next;
	uint32_t len;
	uint8_t head[offsetof(struct packet, seg)];
	uint8_t payload[];
};

/* Return the memory that a datagram takes, headers included. */
static uint32_t datagram_bytes(uint32_t len)
{
	return sizeof(struct datagram) + len;
}

void backlog_init(struct backlog *b)
{
	STAILQ_INIT(&b->list);
	b->count = 0;
}

bool backlog_add(struct backlog *b, struct device *dev, const struct packet *p)
{
	struct datagram *d;

	if (b->count == BACKLOG_DATAGRAMS ||
	    dev->backlog_bytes + datagram_bytes(p->len) > BACKLOG_BYTES)
		return false;
	d = malloc(datagram_bytes(p->len));
	if (!d)
		return false;
	memcpy(d->head, p, sizeof(d->head));
	d->len = p->len;
	seg_copy_out(d->payload, p->seg, p->nseg, 0, p->len);
	if (backing_loss_pending()) {
		free(d);
		return false;
	}
	STAILQ_INSERT_TAIL(&b->list, d, next);
	b->count++;
	dev->backlog_bytes += datagram_bytes(p->len);
	return true;
}

struct packet *backlog_first(struct backlog *b, struct device *dev)
{
	struct datagram *d = STAILQ_FIRST(&b->list);
	struct packet *p = d ? packet_get(&dev->engine->pool) : NULL;

	if (!p)
		return NULL;
	memcpy(p, d->head, sizeof(d->head));
	p->nseg = d->len ? 1 : 0;
	p->seg[0] = (struct seg) { d->payload, d->len };
	return p;
}

void backlog_drop(struct backlog *b, struct device *dev)
{
	struct datagram *d = STAILQ_FIRST(&b->list);

	STAILQ_REMOVE_HEAD(&b->list, next);
	b->count--;
	dev->backlog_bytes -= datagram_bytes(d->len);
	free(d);
}

void backlog_clear(struct backlog *b, struct device *dev)
{
	while (!backlog_empty(b))
		backlog_drop(b, dev);
}
