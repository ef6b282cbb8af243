/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writes pcapng blocks to a file without ever keeping the data path waiting.
 *
 * write() waits: for a disk, as soon as the kernel holds too many dirty pages, and for the
 * reader of a pipe always. So a thread of its own calls it, as for mem/syncer.h, and takes the
 * blocks from a ring of fixed size. Who fills the ring finds room or is told that there is none,
 * and counts a loss. Large writes in the event loop would do for a file most of the time; once
 * the disk falls behind, all queue pairs of all guests would stand still and time out.
 *
 * The ring's memory is mapped twice in a row, so that what lies in it never has a seam.
 */
#ifndef ORNICD_CAPTURE_WRITER_H
#define ORNICD_CAPTURE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

struct writer;

/*
 * writer_new() - a writer to @fd, which it closes; not on failure
 * @bytes:	room for what is not written yet; rounded up to whole pages
 * @event:	an eventfd that is written to when the writer has ended
 *
 * Return: 0 or a negative errno.
 */
int writer_new(int fd, uint32_t bytes, int event, struct writer **writer);

/*
 * writer_free() - end it, if it has not; waits for the rest to be written, but for who reads a
 * pipe no longer than a second
 *
 * Return: 0, or a negative errno: why not all was written. A regular file ends with a whole block
 * nevertheless.
 */
int writer_free(struct writer *w);

/* writer_room() - where @bytes may be put, or NULL: no room */
uint8_t *writer_room(struct writer *w, uint32_t bytes);
/* writer_commit() - @bytes of whole blocks were put there */
void writer_commit(struct writer *w, uint32_t bytes);

/* writer_end() - nothing more will come */
void writer_end(struct writer *w);

/* writer_ended() - all is written, or the file took no more */
bool writer_ended(struct writer *w);

#endif /* ORNICD_CAPTURE_WRITER_H */
