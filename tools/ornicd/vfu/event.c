// SPDX-License-Identifier: GPL-2.0
/*
 * Signal eventfds by the completion of reads: see event.h.
 */
#include "event.h"

#include "../log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Reads between two calls that take their results away */
#define READS	64

/*
 * struct event_source - files of a thread that signals
 * @ready:	event_open() was called
 * @null:	/dev/null, -1: use write()
 * @ctx:	where reads are submitted
 * @done:	number of reads whose results are still there
 */
static _Thread_local struct {
	bool ready;
	int null;
	aio_context_t ctx;
	unsigned int done;
} source;

static void event_open(void)
{
	int err = 0;

	source.ready = true;
	source.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (source.null < 0 || syscall(SYS_io_setup, READS, &source.ctx) < 0)
		err = errno;
	if (!err)
		return;
	if (source.null >= 0)
		close(source.null);
	source.null = -1;
	log_warn("no asynchronous I/O: %s; a client can stop the daemon by its eventfds; raise fs.aio-max-nr, and allow io_setup()",
		 strerror(err));
}

static int event_write(int fd)
{
	const uint64_t one = 1;

	/* EAGAIN: the counter is full, so the client has not read the last writes yet. */
	return write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN ? -errno : 0;
}

int event_signal(int fd)
{
	struct iocb read = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = fd,
	};
	struct io_event events[READS];
	struct iocb *p = &read;

	if (!source.ready)
		event_open();
	if (source.null < 0)
		return event_write(fd);
	read.aio_fildes = source.null;
	if (source.done == READS) {
		syscall(SYS_io_getevents, source.ctx, 0, READS, events, NULL);
		source.done = 0;
	}
	if (syscall(SYS_io_submit, source.ctx, 1, &p) < 0)
		return -errno;
	source.done++;
	return 0;
}
