/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Captures: what passes ports of the switch, in pcapng files.
 *
 * While there is a capture, it observes the switch. What stands for several packets of the wire
 * is written as those, so that a capture between two devices of the daemon, where no packet is
 * ever made, looks as if there were a wire. Each port is an interface of the file; inbound is
 * what the switch gets there.
 */
#ifndef ORNICD_CAPTURE_CAPTURE_H
#define ORNICD_CAPTURE_CAPTURE_H

#include "spec.h"
#include "../net/switch.h"

#include <sys/queue.h>

struct writer;

/** CAPTURES - most captures at a time, and most that failed and are remembered */
#define CAPTURES	16

/**
 * struct capture_point - a port as a capture sees it
 * @known:	the port was looked at: the other members are good
 * @wanted:	it is captured
 * @interface:	number of its interface block
 * @received:	frames that the capture wants
 * @dropped:	of these, frames for which there was no room
 */
struct capture_point {
	bool known;
	bool wanted;
	uint32_t interface;
	uint64_t received;
	uint64_t dropped;
};

/**
 * struct capture - a capture
 * @link:	in struct captures
 * @id:		its number, from 1; never used again
 * @spec:	what was asked for
 * @writer:	to the file
 * @offset:	ns from the clock of struct captures to 1970
 * @start_ns:	when it began, since 1970
 * @point:	by number of the port, @npoints of them
 * @npoints:	number of @point
 * @interfaces:	interface blocks so far
 * @frames:	frames written
 * @dropped:	frames for which there was no room
 * @bytes:	bytes written
 * @ending:	nothing more is taken
 * @created:	the file was made for it
 * @err:	why the file ends early, a negative errno: nothing is written any more
 */
struct capture {
	TAILQ_ENTRY(capture) link;
	uint32_t id;
	struct capture_spec spec;
	struct writer *writer;
	uint64_t offset;
	uint64_t start_ns;
	struct capture_point *point;
	uint32_t npoints;
	uint32_t interfaces;
	uint64_t frames;
	uint64_t dropped;
	uint64_t bytes;
	bool ending;
	bool created;
	int err;
};

TAILQ_HEAD(capture_list, capture);

/**
 * struct captures - all captures of a switch
 * @sw:		switch
 * @clock:	time of the daemon, ns
 * @observer:	on @sw, while @count is not 0
 * @fd:		readable: call captures_reap()
 * @list:	captures, oldest first
 * @count:	how many of them have not failed
 * @failed:	how many have
 * @last_id:	of the youngest
 * @flat:	a packet whose payload is in one piece: in @data
 * @data:	PACKET_MAX_PAYLOAD bytes
 */
struct captures {
	struct net_switch *sw;
	uint64_t (*clock)(void);
	struct switch_observer observer;
	int fd;
	struct capture_list list;
	uint32_t count;
	uint32_t failed;
	uint32_t last_id;
	struct packet flat;
	uint8_t *data;
};

/* captures_init() - Return: 0 or a negative errno */
int captures_init(struct captures *cs, struct net_switch *sw, uint64_t (*clock)(void));
/* captures_fini() - end all captures, and wait until they are written */
void captures_fini(struct captures *cs);
/* captures_undo() - end all captures, and remove the files that were made for them */
void captures_undo(struct captures *cs);

/*
 * captures_start() - begin a capture
 * @spec:	need not live on
 * @id:		its number
 * Return: 0; or a negative errno, and @why, of @room bytes, says what is wrong.
 */
int captures_start(struct captures *cs, const struct capture_spec *spec, uint32_t *id, char *why,
		   size_t room);

/* captures_find() - the capture of that number, or NULL */
struct capture *captures_find(struct captures *cs, uint32_t id);

/*
 * capture_stop() - take nothing more. What is left is written in the background; the capture is
 * in the list until then, and if that fails for longer.
 */
void capture_stop(struct captures *cs, struct capture *c);

/* capture_forget() - a capture that failed: who wanted to know why does */
void capture_forget(struct captures *cs, struct capture *c);

/* captures_reap() - forget captures that have ended, but for the last ones that failed */
void captures_reap(struct captures *cs);

#endif /* ORNICD_CAPTURE_CAPTURE_H */
