// SPDX-License-Identifier: GPL-2.0
/*
 * Receive requests and send replies without blocking.
 *
 * Requests are read in bulk: a burst of doorbells is many small messages, and one system call reads
 * hundreds. After a bulk read, each file descriptor has to be assigned to its message. The kernel
 * ends a read after the data that was sent together with descriptors, and clients send a message
 * with one call. So the descriptors belong to the last message of the read. They are stored with
 * the stream position of its start.
 *
 * Both buffers have a fixed size. If a client does not read its replies, its
 * requests are no longer processed, and the kernel's socket buffer stops it.
 *
 * A client that sends without a pause must not stop the others. So a connection handles a share of
 * its messages per iteration of the loop, and then defers the rest. Until the rest is handled and the
 * socket was found empty, its messages may be older than the loop's last check for events; their age
 * tells whether a reply is late (late.h).
 *
 * A descriptor can block whoever closes it, so the mapper does that. While it has many to close, no
 * more are received.
 */
#include "message.h"

#include "late.h"

#include "../log.h"
#include "../mem/mapper.h"
#include "../share.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define RX_SIZE		(2 * VFU_MAX_MSG)
#define TX_SIZE		(2 * VFU_MAX_MSG)

/* Most descriptors that wait for their message */
#define FDS_WAITING	(2 * VFU_MAX_FDS)


struct fd_at {
	int fd;
	uint64_t pos;			/* stream position of the start of its message */
};

struct vfu_conn {
	struct loop *loop;
	int sock;
	struct log_source *log;
	struct vfu_handler handler;
	uint32_t events;		/* epoll events that are watched */

	uint8_t *rx;			/* received: [rx_head, rx_tail) */
	size_t rx_head;
	size_t rx_tail;
	uint64_t rx_pos;		/* stream position of rx_head */
	struct fd_at fds[FDS_WAITING];
	unsigned int nfds;

	uint8_t *tx;			/* to be sent: [tx_head, tx_tail) */
	size_t tx_head;
	size_t tx_tail;

	bool waiting;			/* for vfu_conn_reply() */
	struct vfu_msg wait;		/* the request */
	bool paused;			/* until vfu_conn_resume() */
	int end;			/* negative errno: end after the messages in @rx */

	struct loop_task again;		/* the next share */
	int budget;			/* messages that remain of this share */
	uint64_t done;			/* parts of the request at rx_head, for the handler */
	int result;			/* likewise */

	bool behind;			/* messages may be older than the event: */
	int64_t since;			/* as old as this, 0: as young as the event; ns */
	int64_t read_at;		/* messages in the socket before the last read are older; ns */
	bool drained;			/* the last read left nothing in the socket */
};

static void conn_ready(void *arg, uint32_t events);
static void conn_again(void *arg);

static void conn_close_fds(struct vfu_conn *c, const struct vfu_msg *m)
{
	for (unsigned int i = 0; i < m->nfd; i++)
		if (m->fd[i] >= 0)
			mapper_close(c->handler.mapper, m->fd[i]);
}

struct vfu_conn *vfu_conn_new(struct loop *loop, int fd, struct log_source *log,
			      const struct vfu_handler *handler)
{
	struct vfu_conn *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return NULL;
	c->loop = loop;
	c->sock = fd;
	c->log = log;
	c->handler = *handler;
	c->events = EPOLLIN;
	c->again = (struct loop_task){ .run = conn_again, .arg = c };
	c->rx = malloc(RX_SIZE);
	c->tx = malloc(TX_SIZE);
	err = c->rx && c->tx ? loop_add(loop, fd, EPOLLIN, conn_ready, c) : -ENOMEM;
	if (!err)
		return c;
	free(c->rx);
	free(c->tx);
	free(c);
	errno = -err;
	return NULL;
}

void vfu_conn_free(struct vfu_conn *c)
{
	if (!c)
		return;
	loop_cancel(c->loop, &c->again);
	loop_del(c->loop, c->sock);
	mapper_hang_up(c->handler.mapper, c->sock);
	for (unsigned int i = 0; i < c->nfds; i++)
		mapper_close(c->handler.mapper, c->fds[i].fd);
	if (c->waiting)
		conn_close_fds(c, &c->wait);
	free(c->rx);
	free(c->tx);
	free(c);
}

bool vfu_conn_hung_up(const struct vfu_conn *c)
{
	struct pollfd p = { .fd = c->sock };

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

static struct vfu_hdr conn_header(const struct vfu_conn *c, size_t at)
{
	struct vfu_hdr hdr;

	memcpy(&hdr, c->rx + at, sizeof(hdr));
	return hdr;
}

/* Return the offset in @rx of the last message, which may be incomplete. */
static size_t conn_last_start(const struct vfu_conn *c)
{
	size_t at = c->rx_head;

	while (c->rx_tail - at >= sizeof(struct vfu_hdr)) {
		uint32_t size = conn_header(c, at).size;

		if (size < sizeof(struct vfu_hdr) || size >= c->rx_tail - at)
			break;
		at += size;
	}
	return at;
}

/*
 * Return true if @fd is a socket. No request takes one. A client could send its own end of this
 * connection with an incomplete message: as long as it is kept here, no end of file arrives and the
 * connection never ends.
 */
static bool fd_is_socket(int fd)
{
	socklen_t len = sizeof(int);
	int type;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
}

static int conn_take_fds(struct vfu_conn *c, struct msghdr *mh)
{
	bool cut = mh->msg_flags & MSG_CTRUNC, full = false, bad = false;
	struct cmsghdr *cm = CMSG_FIRSTHDR(mh);
	uint64_t pos;

	if (!cm && !cut)
		return 0;
	pos = c->rx_pos + (conn_last_start(c) - c->rx_head);
	for (; cm; cm = CMSG_NXTHDR(mh, cm)) {
		size_t n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cm) + i * sizeof(int), sizeof(fd));
			share_saw(fd);
			if (fd_is_socket(fd)) {
				mapper_close(c->handler.mapper, fd);
				bad = true;
			} else if (i < VFU_MAX_FDS && c->nfds < FDS_WAITING) {
				c->fds[c->nfds++] = (struct fd_at){ fd, pos };
			} else {
				mapper_close(c->handler.mapper, fd);
				full = true;
			}
		}
	}
	if (full)
		log_from(c->log, LOG_ERR, "client sent more than %u descriptors at once",
			 VFU_MAX_FDS);
	else if (cut)
		log_from(c->log, LOG_ERR, "no descriptor is left for those that the client sent");
	if (bad)
		log_from(c->log, LOG_ERR, "client sent a socket as descriptor");
	c->paused = mapper_full(c->handler.mapper);
	return full || cut || bad ? -EPROTO : 0;
}

/*
 * Read as recvmsg() does, but at most one descriptor more than a message may have, because few
 * numbers are left. Look first: the kernel then closes nothing, because it still has what it shows.
 * If it shows too many, nothing is read, and the mapper closes them with the socket.
 */
static ssize_t conn_receive_few(struct vfu_conn *c, struct msghdr *mh)
{
	ssize_t n;

	mh->msg_controllen = CMSG_SPACE((VFU_MAX_FDS + 1) * sizeof(int));
	n = recvmsg(c->sock, mh, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n <= 0 || mh->msg_flags & MSG_CTRUNC)
		return n;
	return recv(c->sock, mh->msg_iov->iov_base, n, MSG_DONTWAIT);
}

/* Read once. Return: 0, also if no data is available; -ECONNRESET at end of file or -EPROTO. */
static int conn_receive(struct vfu_conn *c)
{
	union {
		char buf[CMSG_SPACE(SHARE_MESSAGE * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { c->rx + c->rx_tail, RX_SIZE - c->rx_tail };
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n;

	if (share_scarce())
		n = conn_receive_few(c, &mh);
	else
		n = recvmsg(c->sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	c->read_at = loop_since(c->loop);
	c->drained = n < 0 && errno == EAGAIN;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
	if (!n)
		return -ECONNRESET;
	c->rx_tail += n;
	c->drained = (size_t)n < iov.iov_len && !mh.msg_controllen;
	return conn_take_fds(c, &mh);
}

static int conn_send(struct vfu_conn *c)
{
	while (c->tx_head < c->tx_tail) {
		ssize_t n = send(c->sock, c->tx + c->tx_head, c->tx_tail - c->tx_head,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -ECONNRESET;
		c->tx_head += n;
	}
	c->tx_head = 0;
	c->tx_tail = 0;
	return 0;
}

/* Make room for the longest reply. Return false if the client has to read replies first. */
static bool conn_tx_room(struct vfu_conn *c)
{
	if (TX_SIZE - c->tx_tail >= VFU_MAX_MSG)
		return true;
	memmove(c->tx, c->tx + c->tx_head, c->tx_tail - c->tx_head);
	c->tx_tail -= c->tx_head;
	c->tx_head = 0;
	return TX_SIZE - c->tx_tail >= VFU_MAX_MSG;
}

/* Return true if the client may have given up waiting for a reply. */
static bool conn_is_late(const struct vfu_conn *c)
{
	return loop_age(c->loop) > LATE_NS || (c->since && loop_now() - c->since > LATE_NS);
}

static void conn_reply(struct vfu_conn *c, struct vfu_msg *m, int err)
{
	struct vfu_hdr hdr = {
		.id = m->hdr.id,
		.cmd = m->hdr.cmd,
		.flags = VFU_F_REPLY | (err ? VFU_F_ERROR : 0),
		.error = err,
	};

	if (m->hdr.flags & VFU_F_NO_REPLY)
		return;
	if (!err && conn_is_late(c))
		late_reply(m);
	hdr.size = sizeof(hdr) + (err ? 0 : m->out_len);
	memcpy(c->tx + c->tx_tail, &hdr, sizeof(hdr));
	c->tx_tail += hdr.size;
}

static int conn_check_header(const struct vfu_conn *c, const struct vfu_hdr *hdr)
{
	if (hdr->size < sizeof(*hdr) || hdr->size > VFU_MAX_MSG) {
		log_from(c->log, LOG_ERR,
			 "client sent a message of %u bytes, allowed are %zu to %zu", hdr->size,
			 sizeof(*hdr), VFU_MAX_MSG);
		return -EMSGSIZE;
	}
	if ((hdr->flags & VFU_F_TYPE) != VFU_F_COMMAND && !late_is_echo(hdr)) {
		log_from(c->log, LOG_ERR, "client sent a message with flags %#x that is no request",
			 hdr->flags);
		return -EPROTO;
	}
	return 0;
}

/* Move the descriptors of the message at rx_head into @m. */
static int conn_collect_fds(struct vfu_conn *c, struct vfu_msg *m)
{
	unsigned int keep = 0;
	int err = 0;

	for (unsigned int i = 0; i < c->nfds; i++) {
		if (c->fds[i].pos != c->rx_pos) {
			c->fds[keep++] = c->fds[i];
		} else if (m->nfd < VFU_MAX_FDS) {
			m->fd[m->nfd++] = c->fds[i].fd;
		} else {
			mapper_close(c->handler.mapper, c->fds[i].fd);
			err = -EPROTO;
		}
	}
	c->nfds = keep;
	if (err)
		log_from(c->log, LOG_ERR, "client sent more than %u descriptors with a message",
			 VFU_MAX_FDS);
	return err;
}

/* Keep a request until vfu_conn_reply(). */
static void conn_wait_for(struct vfu_conn *c, const struct vfu_msg *m)
{
	c->wait = *m;
	c->waiting = true;
}

/* Leave a request whose handler returned VFU_MORE at rx_head. */
static void conn_keep(struct vfu_conn *c, const struct vfu_msg *m)
{
	c->done = m->done;
	c->result = m->result;
	c->budget = 0;
	conn_close_fds(c, m);
}

/* Handle the whole message at rx_head. Return: 0, or negative: close the connection. */
static int conn_dispatch(struct vfu_conn *c, const struct vfu_hdr *hdr)
{
	struct vfu_msg m = {
		.hdr = *hdr,
		.payload = c->rx + c->rx_head + sizeof(*hdr),
		.len = hdr->size - sizeof(*hdr),
		.out = c->tx + c->tx_tail + sizeof(*hdr),
		.work = c->budget,
		.done = c->done,
		.result = c->result,
	};
	int err = conn_collect_fds(c, &m);
	bool close_it;

	if (err)
		err = VFU_CLOSE(-err);
	else if (late_is_echo(hdr))
		m.hdr.flags |= VFU_F_NO_REPLY;
	else
		err = c->handler.request(c->handler.arg, &m);
	if (err == VFU_MORE) {
		conn_keep(c, &m);
		return 0;
	}
	c->done = 0;
	c->result = 0;
	c->rx_head += hdr->size;
	c->rx_pos += hdr->size;
	c->budget = (int)m.work - 1 - (int)((hdr->size + m.out_len) / VFU_SHARE_BYTES);
	if (err == VFU_WAIT) {
		conn_wait_for(c, &m);
		return 0;
	}
	close_it = err <= VFU_CLOSE(0);
	if (close_it)
		err -= VFU_CLOSE(0);
	conn_reply(c, &m, -err);
	conn_close_fds(c, &m);
	return close_it ? -EPROTO : 0;
}

/*
 * Handle the message at rx_head. Return: 1 if it was handled, 0 if it is incomplete, negative:
 * close the connection.
 */
static int conn_next(struct vfu_conn *c)
{
	struct vfu_msg bad = { 0 };
	struct vfu_hdr hdr;
	int err;

	if (c->rx_tail - c->rx_head < sizeof(hdr))
		return 0;
	hdr = conn_header(c, c->rx_head);
	err = conn_check_header(c, &hdr);
	if (err) {
		bad.hdr = hdr;
		conn_reply(c, &bad, -err);
		return err;
	}
	if (c->rx_tail - c->rx_head < hdr.size)
		return 0;
	err = conn_dispatch(c, &hdr);
	return err ? err : 1;
}

/* Return true if the message at rx_head is whole, or its header ends the connection. */
static bool conn_has_message(const struct vfu_conn *c)
{
	size_t n = c->rx_tail - c->rx_head;
	uint32_t size;

	if (n < sizeof(struct vfu_hdr))
		return false;
	size = conn_header(c, c->rx_head).size;
	return size <= n || size > VFU_MAX_MSG;
}

/*
 * Handle received messages while replies have room and the share lasts. Return: as conn_next(), 0
 * after VFU_WAIT.
 */
static int conn_process(struct vfu_conn *c)
{
	int ret = 1;

	while (ret > 0 && !c->waiting && c->budget > 0 && conn_tx_room(c)) {
		if (conn_has_message(c) && c->handler.held && c->handler.held(c->handler.arg))
			c->budget = 0;
		else
			ret = conn_next(c);
	}
	/* Keep room for a whole message behind rx_head. */
	if (c->rx_head == c->rx_tail || RX_SIZE - c->rx_head < VFU_MAX_MSG) {
		memmove(c->rx, c->rx + c->rx_head, c->rx_tail - c->rx_head);
		c->rx_tail -= c->rx_head;
		c->rx_head = 0;
	}
	return c->waiting ? 0 : ret;
}

static void conn_end(struct vfu_conn *c)
{
	struct vfu_handler handler = c->handler;

	vfu_conn_free(c);
	handler.closed(handler.arg);
}

/* Return true if the client's messages stay in the socket for now. */
static bool conn_is_deaf(const struct vfu_conn *c)
{
	return c->waiting || c->paused;
}

static void conn_wait(struct vfu_conn *c)
{
	bool blocked = c->tx_head < c->tx_tail;
	uint32_t events = 0;

	if (blocked)
		events |= EPOLLOUT;
	if (!conn_is_deaf(c) && (!blocked || (TX_SIZE - (c->tx_tail - c->tx_head) >= VFU_MAX_MSG &&
					      c->rx_tail < RX_SIZE)))
		events |= EPOLLIN;
	if (events != c->events && !loop_mod(c->loop, c->sock, events))
		c->events = events;
}

/*
 * Note how old messages that are not handled may be. Defer the next share if messages are @left in
 * the buffer, or some that are older than the last check for events may be in the socket.
 */
static void conn_defer(struct vfu_conn *c, bool left, bool handled)
{
	bool deaf = conn_is_deaf(c) || !conn_tx_room(c), again = left;

	if (!handled || !c->drained || deaf) {
		c->behind = true;
		if (!c->since)
			c->since = c->read_at;
		again |= handled && !deaf;
	} else if (c->behind) {
		/* Those in the socket came after the last read. Read them, or find none. */
		c->behind = false;
		c->since = c->read_at;
		again = true;
	} else {
		c->since = 0;
	}
	if (again)
		loop_defer(c->loop, &c->again);
}

/*
 * Handle a share of the requests in the buffer, and send the replies. If room for replies ran out
 * but all of them were sent, continue at once: EPOLLOUT is not awaited then, so no event would wake
 * us. If the client has ended or sent descriptors that it may not send, the connection ends after
 * the requests in the buffer.
 */
static void conn_share(struct vfu_conn *c)
{
	bool left;
	int ret;

	do {
		ret = conn_process(c);
		if (conn_send(c)) {
			conn_end(c);
			return;
		}
	} while (ret > 0 && c->budget > 0 && c->tx_head == c->tx_tail);
	left = ret > 0 && conn_tx_room(c);
	if (ret < 0 || (c->end && !left)) {
		conn_end(c);
		return;
	}
	conn_defer(c, left, !ret && !c->waiting);
	conn_wait(c);
}

/* Handle a share, and let the handler measure it. The connection may be gone afterwards. */
static void conn_continue(struct vfu_conn *c)
{
	const struct vfu_handler handler = c->handler;

	if (handler.begin)
		handler.begin(handler.arg);
	conn_share(c);
	if (handler.end)
		handler.end(handler.arg);
}

static void conn_ready(void *arg, uint32_t events)
{
	struct vfu_conn *c = arg;

	if (c->again.queued)
		return;		/* its turn comes in this iteration or the next one */
	c->budget = VFU_SHARE;
	if (conn_is_deaf(c))
		c->end = events & (EPOLLHUP | EPOLLERR) ? -ECONNRESET : 0;
	else if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && c->rx_tail < RX_SIZE)
		c->end = conn_receive(c);
	conn_continue(c);
}

/* Take the next share, without an event. */
static void conn_again(void *arg)
{
	struct vfu_conn *c = arg;

	c->budget = VFU_SHARE;
	if (!c->end && !conn_is_deaf(c) && !conn_has_message(c))
		c->end = conn_receive(c);
	conn_continue(c);
}

void vfu_conn_reply(struct vfu_conn *c, int err)
{
	c->waiting = false;
	c->wait.out = c->tx + c->tx_tail + sizeof(struct vfu_hdr);
	c->wait.out_len = 0;
	conn_reply(c, &c->wait, -err);
	conn_close_fds(c, &c->wait);
	c->budget = VFU_SHARE;
	conn_continue(c);
}

void vfu_conn_resume(struct vfu_conn *c)
{
	if (!c->paused)
		return;
	c->paused = false;
	if (c->behind)
		loop_defer(c->loop, &c->again);
	conn_wait(c);
}
