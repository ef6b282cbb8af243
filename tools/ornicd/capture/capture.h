/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Captures: write the packets that pass ports of the switch to pcapng files.
 *
 * While there is a capture, it observes the switch. A struct packet that stands for several
 * frames is written as these frames, so that a capture between two devices of the daemon, for
 * which no frames are made, looks like one of a wire. Each port is an interface of the file; a
 * packet that enters the switch by it is inbound.
 *
 * All functions run on the loop's thread; only struct writer has another one.
 */
#ifndef ORNICD_CAPTURE_CAPTURE_H
#define ORNICD_CAPTURE_CAPTURE_H

#include "spec.h"
#include "../log.h"
#include "../net/switch.h"

#include <sys/queue.h>
#include <sys/types.h>

struct writer;

/** CAPTURES - most captures at a time, and most failed ones that are kept in the list */
#define CAPTURES	16

/**
 * struct capture_point - a capture's state for one port
 * @known:	@wanted is valid
 * @wanted:	the port is captured
 * @written:	its interface block is in the ring or the file
 * @interface:	number of this block, from 0
 * @received:	frames that match the capture
 * @dropped:	of these, frames that were dropped because the ring was full
 */
struct capture_point {
	bool known;
	bool wanted;
	bool written;
	uint32_t interface;
	uint64_t received;
	uint64_t dropped;
};

/**
 * struct capture - a capture
 * @link:	in @list of struct captures
 * @id:		number, from 1; never used again
 * @name:	name of @log
 * @log:	source of log lines
 * @spec:	description by the user
 * @writer:	writer of the file; freed if @err
 * @offset:	add to the clock of struct captures to get ns since 1970
 * @start_ns:	start, ns since 1970
 * @point:	array of @npoints, by number of the port
 * @npoints:	number of @point
 * @interfaces:	number of interface blocks written
 * @frames:	frames put into the ring
 * @dropped:	frames that were dropped because the ring was full or a port got no memory
 * @bytes:	bytes put into the ring
 * @dev:	device and inode of the output, valid unless @err
 * @ino:	see @dev
 * @ending:	stopped: takes no more frames
 * @created:	the capture created the file
 * @err:	negative errno that ended the file early, or 0
 * @failure:	with @err: number of the failure, from 1
 */
struct capture {
	TAILQ_ENTRY(capture) link;
	uint32_t id;
	char name[24];
	struct log_source log;
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
	dev_t dev;
	ino_t ino;
	bool ending;
	bool created;
	int err;
	uint64_t failure;
};

TAILQ_HEAD(capture_list, capture);

/**
 * struct captures - all captures of a switch
 * @sw:		switch
 * @clock:	clock of the daemon, ns
 * @observer:	observer of @sw while @count is not 0
 * @log:	parent of the sources of all captures
 * @fd:		eventfd; if readable, call captures_reap()
 * @list:	captures, oldest first
 * @count:	number of captures that have not failed
 * @failed:	number of failed captures in @list
 * @failures:	number of captures that have failed since the start
 * @last_id:	number of the newest capture
 * @flat:	copy of a packet with its payload in @data
 * @data:	PACKET_MAX_PAYLOAD bytes
 */
struct captures {
	struct net_switch *sw;
	uint64_t (*clock)(void);
	struct switch_observer observer;
	struct log_source log;
	int fd;
	struct capture_list list;
	uint32_t count;
	uint32_t failed;
	uint64_t failures;
	uint32_t last_id;
	struct packet flat;
	uint8_t *data;
};

/* captures_init() - initialise; @clock is in ns. Return: 0 or a negative errno. */
int captures_init(struct captures *cs, struct net_switch *sw, uint64_t (*clock)(void));
/* captures_fini() - stop all captures, and wait until they are written */
void captures_fini(struct captures *cs);
/* captures_undo() - end all captures, and remove the files that they created */
void captures_undo(struct captures *cs);

/*
 * captures_start() - start a capture
 * @spec:	description; copied
 * @id:		returns its number
 * @why:	@room bytes for an error message
 * Return: 0, or a negative errno and a message in @why.
 */
int captures_start(struct captures *cs, const struct capture_spec *spec, uint32_t *id, char *why,
		   size_t room);

/* captures_find() - return the capture with number @id, or NULL */
struct capture *captures_find(struct captures *cs, uint32_t id);

/*
 * capture_stop() - take no more frames. The rest of the ring is written in the background; then
 * captures_reap() removes the capture from the list, or marks it as failed.
 */
void capture_stop(struct captures *cs, struct capture *c);

/* capture_forget() - remove a failed capture after its error was reported */
void capture_forget(struct captures *cs, struct capture *c);

/* captures_reap() - remove captures that are written, keep the last CAPTURES that failed */
void captures_reap(struct captures *cs);

#endif /* ORNICD_CAPTURE_CAPTURE_H */
