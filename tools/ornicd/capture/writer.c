// SPDX-License-Identifier: GPL-2.0
/*
 * The thread that writes a capture: see writer.h.
 */
#include "writer.h"

#include "pcapng.h"

#include "../thread.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Most bytes written, and then freed in the ring, at a time; a longer block is written whole. */
#define CHUNK_BYTES	(256u << 10)
/* Longest wait for the reader of a pipe after writer_end(), for each PIPE_BUF bytes */
#define PATIENCE_MS	1000

/**
 * struct writer - see writer.h
 * @fd:		file
 * @regular:	regular file: write() always makes progress, and the file can be truncated
 * @event:	eventfd to write when @ended becomes true
 * @ring:	@size bytes, mapped twice
 * @size:	bytes of @ring
 * @thread:	thread that writes
 * @lock:	protects the members below
 * @wake:	@head or @end changed
 * @head:	bytes put into the ring, free-running
 * @tail:	bytes written from the ring, free-running
 * @end:	writer_end() was called
 * @ended:	the thread writes nothing more
 * @err:	negative errno that ended the thread, or 0
 */
struct writer {
	int fd;
	bool regular;
	int event;
	uint8_t *ring;
	uint32_t size;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	uint64_t head;
	uint64_t tail;
	bool end;
	bool ended;
	int err;
};

static bool is_ended_by_owner(struct writer *w)
{
	bool end;

	pthread_mutex_lock(&w->lock);
	end = w->end;
	pthread_mutex_unlock(&w->lock);
	return end;
}

/*
 * Wait until a pipe takes PIPE_BUF bytes; after writer_end() no longer than PATIENCE_MS.
 * Return: 0 or a negative errno.
 */
static int wait_for_reader(struct writer *w)
{
	struct pollfd p = { .fd = w->fd, .events = POLLOUT };
	int waited = 0, step = PATIENCE_MS / 10;

	for (;;) {
		int n = poll(&p, 1, step);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		waited = is_ended_by_owner(w) ? waited + step : 0;
		if (waited >= PATIENCE_MS)
			return -ETIMEDOUT;
	}
}

/*
 * Write @len bytes at @at and set @done to the bytes written. A write of at most PIPE_BUF bytes
 * after wait_for_reader() does not block.
 * Return: 0 or a negative errno.
 */
static int write_all(struct writer *w, const uint8_t *at, size_t len, size_t *done)
{
	*done = 0;
	while (*done < len) {
		size_t want = len - *done;
		ssize_t n;

		if (!w->regular) {
			int err = wait_for_reader(w);

			if (err)
				return err;
			want = want < PIPE_BUF ? want : PIPE_BUF;
		}
		n = write(w->fd, at + *done, want);
		if (n >= 0)
			*done += n;
		else if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return 0;
}

/* Return the bytes to write next of @have bytes at the ring's tail: whole blocks, at least one. */
static size_t chunk_of(const uint8_t *at, size_t have)
{
	size_t whole = pcapng_whole(at, have < CHUNK_BYTES ? have : CHUNK_BYTES);

	return whole ? whole : pcapng_whole(at, have);
}

/*
 * Write the next blocks. On failure truncate a regular file to whole blocks, so that it stays
 * readable. Return: bytes or a negative errno.
 */
static ssize_t write_chunk(struct writer *w, const uint8_t *at, size_t have)
{
	size_t len = chunk_of(at, have), done;
	int err = write_all(w, at, len, &done);

	if (err && w->regular) {
		off_t end = lseek(w->fd, 0, SEEK_CUR);

		if (end >= 0 && ftruncate(w->fd, end - done + pcapng_whole(at, done)))
			return -errno;
	}
	return err ? err : (ssize_t)len;
}

static void *writer_thread(void *arg)
{
	struct writer *w = arg;

	pthread_mutex_lock(&w->lock);
	while (!w->err) {
		const uint8_t *at = w->ring + w->tail % w->size;
		size_t have = w->head - w->tail;
		ssize_t n;

		if (!have && w->end)
			break;
		if (!have) {
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		n = write_chunk(w, at, have);
		pthread_mutex_lock(&w->lock);
		if (n < 0)
			w->err = n;
		else
			w->tail += n;
	}
	w->ended = true;
	pthread_mutex_unlock(&w->lock);
	eventfd_write(w->event, 1);
	return NULL;
}

/* Map @bytes of memory twice in a row. Return: 0 or a negative errno. */
static int map_twice(uint32_t bytes, uint8_t **ring)
{
	int fd = memfd_create("capture", MFD_CLOEXEC), err;
	uint8_t *at = MAP_FAILED;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, bytes))
		at = mmap(NULL, 2ull * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2 && at != MAP_FAILED; i++) {
		if (mmap(at + (size_t)i * bytes, bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
			err = -errno;
			munmap(at, 2ull * bytes);
			close(fd);
			return err;
		}
	}
	err = at == MAP_FAILED ? -errno : 0;
	close(fd);
	*ring = at;
	return err;
}

int writer_new(int fd, uint32_t bytes, int event, struct writer **writer)
{
	uint32_t page = sysconf(_SC_PAGESIZE);
	struct writer *w = calloc(1, sizeof(*w));
	struct stat st;
	int err;

	if (!w)
		return -ENOMEM;
	w->fd = fd;
	w->regular = !fstat(fd, &st) && S_ISREG(st.st_mode);
	w->event = event;
	w->size = (bytes + page - 1) / page * page;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	err = map_twice(w->size, &w->ring);
	if (err)
		goto free_writer;
	err = thread_start(&w->thread, 0, writer_thread, w);
	if (!err) {
		*writer = w;
		return 0;
	}
	munmap(w->ring, 2ull * w->size);
free_writer:
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return err;
}

int writer_free(struct writer *w)
{
	int err;

	writer_end(w);
	pthread_join(w->thread, NULL);
	err = w->err;
	close(w->fd);
	munmap(w->ring, 2ull * w->size);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return err;
}

uint8_t *writer_room(struct writer *w, uint32_t bytes)
{
	uint64_t used;

	pthread_mutex_lock(&w->lock);
	used = w->head - w->tail;
	pthread_mutex_unlock(&w->lock);
	return bytes <= w->size - used ? w->ring + w->head % w->size : NULL;
}

void writer_commit(struct writer *w, uint32_t bytes)
{
	pthread_mutex_lock(&w->lock);
	w->head += bytes;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

void writer_end(struct writer *w)
{
	pthread_mutex_lock(&w->lock);
	w->end = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

bool writer_ended(struct writer *w)
{
	bool ended;

	pthread_mutex_lock(&w->lock);
	ended = w->ended;
	pthread_mutex_unlock(&w->lock);
	return ended;
}
