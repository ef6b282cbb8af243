// SPDX-License-Identifier: GPL-2.0
/*
 * Uplinks: convert packets that leave the switch to frames, and received frames to packets.
 *
 * A frame that enters by one uplink and leaves by another is not changed. Payload goes from the
 * sender's memory to the backend without a copy. It is read twice, for the ICRC and by the kernel.
 * A guest that changes it in between only harms itself: the receiver drops the packet.
 *
 * Frames of one packet leave together. A short frame waits for the end of the engine's iteration,
 * or for a long frame. Its payload is copied, because the sender's memory may have another owner
 * by then.
 */
#include "uplink_backend.h"

#include "../log.h"
#include "../packet/frames.h"
#include "../packet/bth.h"
#include "../packet/roce.h"
#include "../packet/rxe_flush.h"
#include "../packet/wire.h"

#include <errno.h>
#include <limits.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define UPLINK_BUFFER_BYTES	(4 << 20)

_Static_assert(UPLINK_TX_IOV <= IOV_MAX, "the kernel takes a batch by one call");

/**
 * struct uplink_batch - frames on their way to the backend
 * @frame:	frames; @n are used
 * @roce:	headers of RoCE frames that are made here, by index of @frame
 * @kept:	payload of frames that wait, by index of @frame
 * @iov:	pieces of all frames; @niov are used
 * @n:		number of frames
 * @niov:	number of pieces
 */
struct uplink_batch {
	struct uplink_frame frame[UPLINK_BATCH];
	struct roce_frame roce[UPLINK_BATCH];
	uint8_t kept[UPLINK_BATCH][UPLINK_KEEP];
	struct iovec iov[UPLINK_TX_IOV];
	uint32_t n;
	uint32_t niov;
};

/**
 * struct uplink - an uplink
 * @host:	environment
 * @backend:	backend that carries the frames
 * @private:	data of the backend
 * @port:	port of the switch
 * @name:	name of the port
 * @log:	source of log lines
 * @text:	see uplink_text()
 * @rxe_flush:	see struct uplink_spec
 * @stats:	counters
 * @lost_before: result of @lost of the backend that @stats has
 * @batch:	frames to send
 * @lost:	copy of a frame that could not be sent, for captures
 */
struct uplink {
	struct uplink_host host;
	const struct uplink_backend *backend;
	void *private;
	struct switch_port *port;
	char *name;
	struct log_source log;
	char *text;
	bool rxe_flush;
	struct uplink_stats stats;
	uint32_t lost_before;
	struct uplink_batch batch;
	uint8_t lost[UPLINK_FRAME_BYTES];
};

static const struct uplink_backend *const backends[] = {
	&uplink_tap, &uplink_packet, &uplink_stream, &uplink_dgram, &uplink_udp,
};

struct loop *uplink_loop(struct uplink *u)
{
	return u->host.loop;
}

const char *uplink_name(const struct uplink *u)
{
	return u->name;
}

struct log_source *uplink_log(struct uplink *u)
{
	return &u->log;
}

const char *uplink_kind(const struct uplink *u)
{
	return u->backend->kind;
}

const char *uplink_text(const struct uplink *u)
{
	return u->text;
}

bool uplink_is_up(struct uplink *u)
{
	return switch_port_is_up(u->port) && (!u->backend->is_up || u->backend->is_up(u));
}

bool uplink_busy(const struct uplink *u)
{
	return u->host.busy;
}

void *uplink_private(struct uplink *u)
{
	return u->private;
}

void uplink_set_private(struct uplink *u, void *data)
{
	u->private = data;
}

/* Add the frames that the kernel dropped since the last call. */
static void count_lost(struct uplink *u)
{
	uint32_t lost = u->backend->lost(u), more = lost - u->lost_before;

	u->lost_before = lost;
	u->stats.rx_frames += more;
	u->stats.rx_drop += more;
}

const struct uplink_stats *uplink_stats(struct uplink *u)
{
	if (u->backend->lost)
		count_lost(u);
	return &u->stats;
}

void uplink_gone(struct uplink *u)
{
	log_from(&u->log, LOG_WARN,
		 "its interface was deleted; to attach it again: ornicctl port del %s, then ornicctl port add %s",
		 u->name, u->text);
}

/* Without the privilege to exceed the system's limits, take as much as they allow. */
void uplink_buffers(int fd)
{
	const int bytes = UPLINK_BUFFER_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

uint32_t uplink_drops(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = {};
	socklen_t len = sizeof(info);

	getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len);
	return info[SK_MEMINFO_DROPS];
}

/* ---- out ------------------------------------------------------------------- */

static void not_sent(struct uplink *u, const struct uplink_frame *f)
{
	uint32_t len = 0;

	u->stats.tx_drop++;
	if (!switch_is_observed(u->host.sw))
		return;
	for (uint32_t i = 1; i < f->niov; i++) {
		uint32_t room = sizeof(u->lost) - len;
		uint32_t n = f->iov[i].iov_len < room ? f->iov[i].iov_len : room;

		memcpy(u->lost + len, f->iov[i].iov_base, n);
		len += n;
	}
	switch_observe_frame(u->port, SWITCH_OUT, u->lost, len, &f->kept,
			     "dropped: rejected by the interface or socket");
}

/* Send the batch. Drop a frame that cannot be sent, for example because it is too long. */
static void batch_send(struct uplink *u)
{
	struct uplink_batch *b = &u->batch;

	for (uint32_t at = 0; at < b->n; at++) {
		uint32_t sent = u->backend->send(u, b->frame + at, b->n - at);

		u->stats.tx_frames += sent;
		for (; sent; sent--)
			u->stats.tx_bytes += b->frame[at++].len;
		if (at < b->n)
			not_sent(u, &b->frame[at]);
	}
	b->n = 0;
	b->niov = 0;
}

static void batch_piece(struct uplink_batch *b, struct uplink_frame *f, void *ptr, uint32_t len)
{
	b->iov[b->niov++] = (struct iovec) { ptr, len };
	f->niov++;
	f->len += len;
}

/*
 * Begin a frame of @p of at most @pieces, not counting the backend's; send the batch first if it
 * is full.
 */
static struct uplink_frame *batch_frame(struct uplink *u, const struct packet *p, uint32_t pieces)
{
	struct uplink_batch *b = &u->batch;
	struct uplink_frame *f;

	if (b->n == UPLINK_BATCH || b->niov + pieces + 1 > UPLINK_TX_IOV)
		batch_send(u);
	f = &b->frame[b->n++];
	*f = (struct uplink_frame) { .iov = &b->iov[b->niov] };
	frames_keep(&f->kept, p);
	batch_piece(b, f, NULL, 0);
	return f;
}

/* Add pieces to the last frame; copy them, at most UPLINK_KEEP bytes, if it is to @wait. */
static void batch_segs(struct uplink_batch *b, struct uplink_frame *f, const struct seg *seg,
		       uint32_t nseg, bool wait)
{
	uint8_t *kept = b->kept[b->n - 1];

	for (uint32_t i = 0; i < nseg; i++) {
		batch_piece(b, f, wait ? kept : seg[i].ptr, seg[i].len);
		if (wait) {
			memcpy(kept, seg[i].ptr, seg[i].len);
			kept += seg[i].len;
		}
	}
}

static void put_segs(struct uplink *u, const struct packet *p, bool wait)
{
	const struct seg *seg = p->frame.len ? &p->frame : p->seg;
	uint32_t nseg = p->frame.len ? 1 : p->nseg;
	struct uplink_frame *f = batch_frame(u, p, nseg);

	batch_segs(&u->batch, f, seg, nseg, wait);
}

static void put_roce(struct uplink *u, const struct packet *p, bool wait)
{
	struct uplink_batch *b = &u->batch;
	struct roce_cut cut;

	roce_cut(&cut, p);
	for (uint32_t i = 0; i < p->npsn; i++) {
		struct uplink_frame *f = batch_frame(u, p, PACKET_SEGS + 2);
		struct roce_frame *r = &b->roce[b->n - 1];

		roce_next(&cut, r);
		batch_piece(b, f, r->head, r->head_len);
		batch_segs(b, f, r->seg, r->nseg, wait);
		batch_piece(b, f, r->tail, r->tail_len);
	}
}

_Static_assert(ROCE_HEAD_BYTES + ROCE_TAIL_BYTES <= UPLINK_KEEP, "a FLUSH fits into kept[]");

/* Return true if the ICRC of a RoCE packet has to be changed for Soft-RoCE, see rxe_flush.h. */
static bool is_rxe_flush(const struct uplink *u, const struct packet *p)
{
	return u->rxe_flush && p->opcode == BTH_RC_FLUSH;
}

static void put_rxe_flush(struct uplink *u, const struct packet *p)
{
	struct uplink_frame *f = batch_frame(u, p, 1);
	uint8_t *kept = u->batch.kept[u->batch.n - 1];
	struct frames one;
	uint32_t len;

	frames_begin(&one, p);
	len = frames_next(&one, kept);
	rxe_flush_encode(kept, len);
	batch_piece(&u->batch, f, kept, len);
}

/* Add the frames of @p to the batch, and send it unless the packet is short. */
static void uplink_deliver(void *arg, const struct packet *p)
{
	struct uplink *u = arg;
	bool wait = (p->frame.len ? p->frame.len : p->len) <= UPLINK_KEEP;

	if (p->kind == PACKET_ROCE && wait && is_rxe_flush(u, p))
		put_rxe_flush(u, p);
	else if (p->kind == PACKET_ROCE && !p->frame.len)
		put_roce(u, p, wait);
	else
		put_segs(u, p, wait);
	if (wait)
		switch_hold(u->port);
	else
		batch_send(u);
}

static void uplink_flush(void *arg)
{
	batch_send(arg);
}

static const struct switch_port_ops uplink_port_ops = {
	.deliver = uplink_deliver,
	.flush = uplink_flush,
};

/* ---- in -------------------------------------------------------------------- */

/* Fill in @p from a frame. Return: NULL, or the reason to drop it. */
static const char *parse(struct uplink *u, struct packet *p, uint8_t *frame, uint32_t len)
{
	enum roce_kind kind = frames_parse(p, frame, len);

	p->outside = true;
	if (kind == ROCE_BAD_ICRC && is_rxe_flush(u, p) && rxe_flush_decode(frame, len)) {
		kind = ROCE_PACKET;
		p->kind = PACKET_ROCE;
	}
	switch (kind) {
	case ROCE_BAD_ICRC:
		u->stats.bad_icrc++;
		return "dropped: bad ICRC";
	case ROCE_MALFORMED:
		u->stats.malformed++;
		return "dropped: malformed";
	default:
		return NULL;
	}
}

void uplink_malformed(struct uplink *u, uint32_t len)
{
	u->stats.rx_frames++;
	u->stats.rx_bytes += len;
	u->stats.malformed++;
}

void uplink_input(struct uplink *u, uint8_t *frame, uint32_t len)
{
	const char *why;
	struct packet *p;

	if (len < ETH_BYTES || len > UPLINK_FRAME_BYTES) {
		uplink_malformed(u, len);
		return;
	}
	u->stats.rx_frames++;
	u->stats.rx_bytes += len;
	p = packet_get(u->host.pool);
	if (!p) {
		u->stats.rx_drop++;
		switch_observe_frame(u->port, SWITCH_IN, frame, len, NULL,
				     "dropped: no packet is free");
		return;
	}
	why = parse(u, p, frame, len);
	if (!why) {
		switch_send(u->port, p);
		return;
	}
	switch_observe(u->port, SWITCH_IN, p, why);
	packet_put(u->host.pool, p);
}

void uplink_input_done(struct uplink *u)
{
	u->host.drain(u->host.arg);
}

/* ---- life ------------------------------------------------------------------ */

static const struct uplink_backend *backend_of(const char *kind)
{
	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
		if (!strcmp(backends[i]->kind, kind))
			return backends[i];
	return NULL;
}

int uplink_open(const struct uplink_host *host, const struct uplink_spec *spec,
		struct uplink **uplink)
{
	struct uplink *u = calloc(1, sizeof(*u));
	int err = -ENOMEM;

	if (!u)
		goto no_memory;
	u->host = *host;
	u->rxe_flush = spec->rxe_flush;
	u->backend = backend_of(spec->kind);
	if (!u->backend) {
		log_err("%s: unknown kind of port: %s", spec->name, spec->kind);
		err = -EINVAL;
		goto free_uplink;
	}
	u->name = strdup(spec->name);
	u->log.name = u->name;
	u->text = strdup(spec->text ? spec->text : spec->kind);
	if (u->name && u->text)
		u->port = switch_port_add(host->sw, spec->name, &uplink_port_ops, u);
	if (!u->port)
		goto free_uplink;
	err = switch_port_set_vlan(u->port, spec->vlan);
	if (!err && spec->link.kbps)
		err = switch_port_limit(u->port, &spec->link);
	if (!err)
		err = u->backend->open(u, spec);
	if (err)
		goto del_port;
	switch_port_set_up(u->port, true);
	*uplink = u;
	return 0;

del_port:
	switch_port_del(u->port);
free_uplink:
	log_source_end(&u->log);
	free(u->name);
	free(u->text);
	free(u);
no_memory:
	if (err == -ENOMEM)
		log_err("%s: out of memory", spec->name);
	return err;
}

void uplink_close(struct uplink *u)
{
	if (!u)
		return;
	batch_send(u);
	u->backend->close(u);
	switch_port_del(u->port);
	log_source_end(&u->log);
	free(u->name);
	free(u->text);
	free(u);
}
