// SPDX-License-Identifier: GPL-2.0
/*
 * Captures: put the frames of packets into the ring of a writer.
 */
#include "capture.h"

#include "pcapng.h"
#include "writer.h"
#include "../log.h"
#include "../packet/roce.h"
#include "../version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define APPLICATION	"ornicd " ORNICD_VERSION

static uint64_t realtime(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Return the time of a block in ns since 1970. */
static uint64_t capture_now(const struct captures *cs, const struct capture *c)
{
	return cs->clock() + c->offset;
}

/* Return the bytes of the statistics blocks of all interfaces and @more new ones. */
static uint32_t statistics_bytes(const struct capture *c, uint32_t more)
{
	return (c->interfaces + more) * PCAPNG_STATISTICS;
}

/*
 * Return ring memory for a block of up to @bytes, or NULL. Space for the statistics blocks, also of
 * @more new interfaces, stays free behind it, so that put_statistics() cannot fail.
 */
static uint8_t *block_room(const struct capture *c, uint32_t bytes, uint32_t more)
{
	return writer_room(c->writer, bytes + statistics_bytes(c, more));
}

/* Return true if a block and the statistics at the end, see block_room(), exceed the size limit. */
static bool exceeds_limit(const struct capture *c, uint32_t bytes, uint32_t more)
{
	return c->spec.limit && c->bytes + bytes + statistics_bytes(c, more) > c->spec.limit;
}

static void block_done(struct capture *c, uint32_t bytes)
{
	c->bytes += bytes;
	writer_commit(c->writer, bytes);
}

/* ---- ports ------------------------------------------------------------------- */

static bool names_port(const struct capture_port *named, const struct switch_port *port)
{
	return named->device == switch_port_is_device(port) &&
	       !strcmp(named->name, switch_port_name(port));
}

static bool wants_port(const struct capture_spec *spec, const struct switch_port *port)
{
	for (uint32_t i = 0; i < spec->nports; i++)
		if (names_port(&spec->port[i], port))
			return true;
	return !spec->nports;
}

/*
 * Write the interface block of a port, unless it is written. Return: false if the ring has no room
 * now, or if the capture ended because of its size limit.
 */
static bool add_interface(struct captures *cs, struct capture *c, struct capture_point *pt,
			  const struct switch_port *port)
{
	const uint32_t room = PCAPNG_FIXED + 2 * PCAPNG_TEXT;
	const struct pcapng_interface i = {
		.name = switch_port_name(port),
		.description = switch_port_is_device(port) ? "ornic device" : "port to the outside",
		.snaplen = c->spec.snaplen,
	};
	uint8_t *to;

	if (pt->written)
		return true;
	if (exceeds_limit(c, room, 1)) {
		capture_stop(cs, c);
		return false;
	}
	to = block_room(c, room, 1);
	if (!to)
		return false;
	pt->written = true;
	pt->interface = c->interfaces++;
	block_done(c, pcapng_put_interface(to, &i));
	return true;
}

static bool grow(struct capture *c, uint32_t number)
{
	uint32_t n = number + 16;
	struct capture_point *all = reallocarray(c->point, n, sizeof(*all));

	if (!all)
		return false;
	memset(all + c->npoints, 0, (n - c->npoints) * sizeof(*all));
	c->point = all;
	c->npoints = n;
	return true;
}

/* Return the point of a port, or NULL if there is no memory for it. */
static struct capture_point *point_of(struct capture *c, const struct switch_port *port)
{
	uint32_t number = switch_port_number(port);
	struct capture_point *pt;

	if (number >= c->npoints && !grow(c, number))
		return NULL;
	pt = &c->point[number];
	if (!pt->known) {
		pt->wanted = wants_port(&c->spec, port);
		pt->known = true;
	}
	return pt;
}

/* ---- frames ------------------------------------------------------------------ */

static bool wants_packet(const struct capture_spec *spec, const struct packet *p)
{
	return !spec->one_qp ||
	       (p->kind != PACKET_ETHERNET && (p->dqpn == spec->qpn || p->sqpn == spec->qpn));
}

static void put_frame(struct captures *cs, struct capture *c, struct capture_point *pt,
		      struct pcapng_packet *f)
{
	uint32_t room;
	uint8_t *to;

	for (uint32_t i = 0; i < f->npieces; i++)
		f->len += f->piece[i].len;
	f->keep = f->len < c->spec.snaplen ? f->len : c->spec.snaplen;
	room = pcapng_packet_room(f);
	if (exceeds_limit(c, room, 0)) {
		capture_stop(cs, c);
		return;
	}
	pt->received++;
	to = block_room(c, room, 0);
	if (!to) {
		pt->dropped++;
		c->dropped++;
		return;
	}
	c->frames++;
	block_done(c, pcapng_put_packet(to, f));
}

/*
 * Copy the packet and its payload: guests may change their memory between the computation of the
 * ICRC and the write, and then the ICRC in the file would be wrong.
 */
static const struct packet *flatten(struct captures *cs, const struct packet *p)
{
	memcpy(&cs->flat, p, offsetof(struct packet, seg));
	seg_copy_out(cs->data, p->seg, p->nseg, 0, p->len);
	cs->flat.seg[0] = (struct seg) { cs->data, p->len };
	cs->flat.nseg = p->len ? 1 : 0;
	return &cs->flat;
}

static void put_roce(struct captures *cs, struct capture *c, struct capture_point *pt,
		     const struct packet *p, const struct pcapng_packet *about)
{
	struct seg piece[3];	/* headers, payload, pad and ICRC */
	struct roce_frame r;
	struct roce_cut cut;

	roce_cut(&cut, flatten(cs, p));
	while (!c->ending && roce_next(&cut, &r)) {
		struct pcapng_packet f = *about;

		piece[f.npieces++] = (struct seg) { r.head, r.head_len };
		if (r.nseg)
			piece[f.npieces++] = r.seg[0];
		piece[f.npieces++] = (struct seg) { r.tail, r.tail_len };
		f.piece = piece;
		put_frame(cs, c, pt, &f);
	}
}

static uint32_t flags_of(enum switch_way way, const uint8_t dmac[6])
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	uint32_t kind = dmac[0] & 1 ? PCAPNG_MULTICAST : PCAPNG_UNICAST;

	if (!memcmp(dmac, broadcast, sizeof(broadcast)))
		kind = PCAPNG_BROADCAST;
	return kind | (way == SWITCH_IN ? PCAPNG_INBOUND : PCAPNG_OUTBOUND);
}

static void put_packet(struct captures *cs, struct capture *c, struct capture_point *pt,
		       enum switch_way way, const struct packet *p, const char *note)
{
	struct pcapng_packet f = {
		.interface = pt->interface,
		.ns = capture_now(cs, c),
		.flags = flags_of(way, p->dmac),
		.comment = note,
	};

	if (p->kind == PACKET_ROCE && !p->frame.len) {
		put_roce(cs, c, pt, p, &f);
		return;
	}
	f.piece = p->frame.len ? &p->frame : p->seg;
	f.npieces = p->frame.len ? 1 : p->nseg;
	put_frame(cs, c, pt, &f);
}

/* Count the frames of a packet as dropped. @pt: point of its port; NULL: there is no memory. */
static void drop_packet(struct capture *c, struct capture_point *pt, const struct packet *p)
{
	uint32_t frames = p->kind == PACKET_ROCE && !p->frame.len ? p->npsn : 1;

	c->dropped += frames;
	if (pt) {
		pt->received += frames;
		pt->dropped += frames;
	}
}

static void capture_packet(struct captures *cs, struct capture *c, const struct switch_port *port,
			   enum switch_way way, const struct packet *p, const char *note)
{
	struct capture_point *pt;

	if (c->ending || !wants_packet(&c->spec, p))
		return;
	pt = point_of(c, port);
	if (pt ? !pt->wanted : !wants_port(&c->spec, port))
		return;
	if (pt && add_interface(cs, c, pt, port))
		put_packet(cs, c, pt, way, p, note);
	else if (!c->ending)
		drop_packet(c, pt, p);
}

static void captures_observe(void *arg, const struct switch_port *port, enum switch_way way,
			     const struct packet *p, const char *note)
{
	struct captures *cs = arg;
	struct capture *c;

	TAILQ_FOREACH(c, &cs->list, link)
		capture_packet(cs, c, port, way, p, note);
}

/* ---- start and end ----------------------------------------------------------- */

int captures_init(struct captures *cs, struct net_switch *sw, uint64_t (*clock)(void))
{
	*cs = (struct captures) { .sw = sw, .clock = clock, .log.name = "captures" };
	cs->observer = (struct switch_observer) { captures_observe, cs };
	TAILQ_INIT(&cs->list);
	cs->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cs->fd < 0)
		return -errno;
	cs->data = malloc(PACKET_MAX_PAYLOAD);
	if (cs->data)
		return 0;
	close(cs->fd);
	return -ENOMEM;
}

static void capture_free(struct capture *c)
{
	log_source_end(&c->log);
	capture_spec_free(&c->spec);
	free(c->point);
	free(c);
}

/* Check that every port in @spec exists. Return: 0, or -ENOENT and a message in @why. */
static int check_ports(struct captures *cs, const struct capture_spec *spec, char *why,
		       size_t room)
{
	for (uint32_t i = 0; i < spec->nports; i++) {
		struct switch_port *port = NULL;

		do {
			port = switch_port_next(cs->sw, port);
		} while (port && !names_port(&spec->port[i], port));
		if (!port) {
			snprintf(why, room, "there is no %s %s",
				 spec->port[i].device ? "device" : "port", spec->port[i].name);
			return -ENOENT;
		}
	}
	return 0;
}

/* Open an existing path: accept a named pipe with a reader, never overwrite a file. */
static int open_pipe(const char *path, char *why, size_t room)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 && errno == ENXIO) {
		snprintf(why, room, "the pipe %s has no reader: start the reader first", path);
		return -ENXIO;
	}
	if (fd >= 0 && !fstat(fd, &st) && S_ISFIFO(st.st_mode))
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(why, room, "%s exists: remove it or choose another name", path);
	return -EEXIST;
}

static bool is_stdout(const struct capture *c)
{
	return !strcmp(c->spec.path, "-");
}

/* Open the output; mode 0600, because it contains the guests' data. */
static int open_file(struct capture *c, char *why, size_t room)
{
	const char *path = c->spec.path;
	int fd = is_stdout(c) ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) :
		 open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	c->created = fd >= 0 && !is_stdout(c);
	if (fd < 0 && errno == EEXIST)
		return open_pipe(path, why, room);
	if (fd >= 0)
		return fd;
	fd = -errno;
	snprintf(why, room, "cannot write %s: %s", path, strerror(errno));
	return fd;
}

/*
 * Reject an output that another capture writes, because their blocks would mix. Compare inodes: a
 * pipe may have several names, and be standard output.
 */
static int check_output(const struct captures *cs, struct capture *c, int fd, char *why,
			size_t room)
{
	const struct capture *other;
	struct stat st;
	int err;

	if (fstat(fd, &st)) {
		err = -errno;
		snprintf(why, room, "cannot examine %s: %s", c->spec.path, strerror(-err));
		return err;
	}
	c->dev = st.st_dev;
	c->ino = st.st_ino;
	TAILQ_FOREACH(other, &cs->list, link) {
		if (other->err || other->dev != c->dev || other->ino != c->ino)
			continue;
		if (is_stdout(c))
			snprintf(why, room,
				 "another capture writes to standard output: choose a file");
		else
			snprintf(why, room,
				 "capture %u writes to %s: stop it or choose another name",
				 other->id, c->spec.path);
		return -EBUSY;
	}
	return 0;
}

static int open_writer(struct captures *cs, struct capture *c, char *why, size_t room)
{
	int fd = open_file(c, why, room);
	int err;

	if (fd < 0)
		return fd;
	err = check_output(cs, c, fd, why, room);
	if (err)
		goto close_fd;
	err = writer_new(fd, c->spec.buffer, cs->fd, &c->writer);
	if (!err)
		return 0;
	snprintf(why, room, "cannot start to write %s: %s", c->spec.path, strerror(-err));
close_fd:
	close(fd);
	if (c->created)
		unlink(c->spec.path);
	return err;
}

/* Write the section block and the interface blocks; the ring is empty and large enough. */
static void put_head(struct captures *cs, struct capture *c)
{
	uint8_t *to = writer_room(c->writer, PCAPNG_FIXED + PCAPNG_TEXT);
	struct switch_port *port = NULL;

	block_done(c, pcapng_put_section(to, APPLICATION));
	while ((port = switch_port_next(cs->sw, port))) {
		struct capture_point *pt = point_of(c, port);

		if (pt && pt->wanted)
			add_interface(cs, c, pt, port);
	}
}

int captures_start(struct captures *cs, const struct capture_spec *spec, uint32_t *id, char *why,
		   size_t room)
{
	struct capture *c = calloc(1, sizeof(*c));
	int err = c ? capture_spec_copy(&c->spec, spec) : -ENOMEM;

	if (err) {
		snprintf(why, room, "%s", strerror(-err));
		free(c);
		return err;
	}
	if (cs->count == CAPTURES) {
		snprintf(why, room, "%d captures run, the most possible: stop one", CAPTURES);
		err = -EBUSY;
	} else {
		err = check_ports(cs, &c->spec, why, room);
	}
	if (!err)
		err = open_writer(cs, c, why, room);
	if (err) {
		capture_free(c);
		return err;
	}
	c->id = ++cs->last_id;
	snprintf(c->name, sizeof(c->name), "capture %u", c->id);
	c->log = (struct log_source) { .name = c->name, .parent = &cs->log };
	c->start_ns = realtime();
	c->offset = c->start_ns - cs->clock();
	put_head(cs, c);
	TAILQ_INSERT_TAIL(&cs->list, c, link);
	cs->count++;
	switch_set_observer(cs->sw, &cs->observer);
	log_from(&c->log, LOG_INFO, "%s", c->spec.path);
	*id = c->id;
	return 0;
}

struct capture *captures_find(struct captures *cs, uint32_t id)
{
	struct capture *c;

	TAILQ_FOREACH(c, &cs->list, link)
		if (c->id == id)
			return c;
	return NULL;
}

/* Write a statistics block per interface; block_room() kept space for them. */
static void put_statistics(struct captures *cs, struct capture *c)
{
	uint64_t now = capture_now(cs, c);

	for (uint32_t i = 0; i < c->npoints; i++) {
		const struct capture_point *pt = &c->point[i];
		const struct pcapng_statistics s = {
			.interface = pt->interface,
			.ns = now,
			.start_ns = c->start_ns,
			.end_ns = now,
			.received = pt->received,
			.dropped = pt->dropped,
		};

		uint8_t *to = writer_room(c->writer, PCAPNG_STATISTICS);

		if (pt->written)
			block_done(c, pcapng_put_statistics(to, &s));
	}
}

void capture_stop(struct captures *cs, struct capture *c)
{
	if (c->ending)
		return;
	c->ending = true;
	put_statistics(cs, c);
	writer_end(c->writer);
}

static void capture_remove(struct captures *cs, struct capture *c)
{
	TAILQ_REMOVE(&cs->list, c, link);
	capture_free(c);
}

void capture_forget(struct captures *cs, struct capture *c)
{
	cs->failed--;
	capture_remove(cs, c);
}

/* Keep a failed capture in the list until its client has asked for the result. */
static void capture_failed(struct captures *cs, struct capture *c, int err)
{
	log_from(&c->log, LOG_ERR, "cannot write %s: %s; the capture ended early", c->spec.path,
		 strerror(-err));
	c->ending = true;
	c->err = err;
	c->failure = ++cs->failures;
	cs->failed++;
}

/* Forget the capture that failed before all others. */
static void forget_oldest_failure(struct captures *cs)
{
	struct capture *c, *oldest = NULL;

	TAILQ_FOREACH(c, &cs->list, link)
		if (c->err && (!oldest || c->failure < oldest->failure))
			oldest = c;
	capture_forget(cs, oldest);
}

static int close_writer(struct captures *cs, struct capture *c)
{
	cs->count--;
	if (!cs->count)
		switch_set_observer(cs->sw, NULL);
	return writer_free(c->writer);
}

/* Clean up after the writer has ended; a closed pipe (EPIPE) is a normal end. */
static void capture_ended(struct captures *cs, struct capture *c)
{
	int err = close_writer(cs, c);

	if (err && err != -EPIPE) {
		capture_failed(cs, c, err);
		return;
	}
	log_from(&c->log, LOG_INFO, "%s: %llu frames %s, %llu dropped%s", c->spec.path,
		 (unsigned long long)c->frames, err ? "captured" : "written",
		 (unsigned long long)c->dropped, err ? "; the reader closed the pipe" : "");
	capture_remove(cs, c);
}

void captures_reap(struct captures *cs)
{
	struct capture *c, *next;
	eventfd_t n;

	eventfd_read(cs->fd, &n);
	for (c = TAILQ_FIRST(&cs->list); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (!c->err && writer_ended(c->writer))
			capture_ended(cs, c);
	}
	while (cs->failed > CAPTURES)
		forget_oldest_failure(cs);
}

void captures_undo(struct captures *cs)
{
	struct capture *c;

	while ((c = TAILQ_FIRST(&cs->list))) {
		close_writer(cs, c);
		if (c->created)
			unlink(c->spec.path);
		capture_remove(cs, c);
	}
}

void captures_fini(struct captures *cs)
{
	struct capture *c, *next;

	TAILQ_FOREACH(c, &cs->list, link)
		capture_stop(cs, c);
	for (c = TAILQ_FIRST(&cs->list); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (!c->err)
			capture_ended(cs, c);
	}
	while ((c = TAILQ_FIRST(&cs->list)))
		capture_forget(cs, c);
	log_source_end(&cs->log);
	free(cs->data);
	close(cs->fd);
}
