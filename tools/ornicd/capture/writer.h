/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Write pcapng blocks to a file without blocking the data path.
 *
 * write() blocks: on a disk when the kernel holds too many dirty pages, on a pipe when its
 * reader is slow. A blocked loop would stop all queue pairs of all guests, which would time
 * out. Therefore a separate thread writes, as in mem/syncer.h. It takes the blocks from a ring
 * of fixed size; if the ring is full, the producer drops the block and counts it.
 *
 * The ring's memory is mapped twice in a row, so that each block is contiguous.
 *
 * All functions are called on the loop's thread.
 */
#ifndef ORNICD_CAPTURE_WRITER_H
#define ORNICD_CAPTURE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

struct writer;

/*
 * writer_new() - start a thread that writes to a file
 * @fd:		file; the writer closes it, but not if this function fails
 * @bytes:	size of the ring; rounded up to whole pages
 * @event:	eventfd to write when the thread has ended
 * @writer:	returns the writer
 *
 * Return: 0 or a negative errno.
 */
int writer_new(int fd, uint32_t bytes, int event, struct writer **writer);

/*
 * writer_free() - write the rest of the ring, end the thread, close the file
 *
 * Blocks until all is written. If the reader of a pipe takes nothing for a second, give up.
 *
 * Return: 0, or the negative errno that ended the writer early; a regular file then still ends
 * with a whole block.
 */
int writer_free(struct writer *w);

/* writer_room() - return ring memory for @bytes, or NULL if the ring is full */
uint8_t *writer_room(struct writer *w, uint32_t bytes);
/* writer_commit() - add @bytes of whole blocks, which were put there, to the ring */
void writer_commit(struct writer *w, uint32_t bytes);

/* writer_end() - make the thread end after it has written the rest of the ring */
void writer_end(struct writer *w);

/* writer_ended() - return true if the thread has ended: all is written, or a write failed */
bool writer_ended(struct writer *w);

#endif /* ORNICD_CAPTURE_WRITER_H */
