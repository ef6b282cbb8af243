// SPDX-License-Identifier: GPL-2.0
/*
 * vfu/message.c: messages cut at every length, replies that the client does not read, descriptors
 * and their messages, and the end of a connection. The requests come through a socket. The test
 * replaces send(), so that the client decides how many bytes it takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/folder.h"
#include "log.h"
#include "mem/mapper.h"
#include "share.h"
#include "vfu/message.h"

#define MOST	256		/* requests that a test looks at */
#define OUT	(1u << 20)	/* bytes of replies */
#define PIECE	9973u		/* bytes that a client sends at once; a prime number */

/* Payload of a request: the answer that the handler gives. */
struct order {
	uint32_t out_len;
	int32_t result;
};

struct request {
	struct vfu_hdr hdr;
	size_t len;
	unsigned int nfd;
	uint8_t last;			/* byte of the payload */
	ino_t inode[VFU_MAX_FDS];	/* files behind the descriptors */
};

static struct log_source source = { .name = "test" };
static struct {
	struct loop *loop;
	struct vfu_conn *conn;
	int client;			/* the other end */
	unsigned int turns;		/* of the loop until it stops */
	struct request got[MOST];
	unsigned int n;
	unsigned int closed;
	bool keep;			/* the handler keeps the first descriptor */
	bool wait;			/* the handler returns VFU_WAIT */
	bool held;			/* requests have to wait */
	uint64_t parts;			/* of each request */
	rlim_t limit;			/* of descriptors, 0: the true one */
	size_t room;			/* bytes that the client takes */
	unsigned int interrupted;	/* next calls of send() end with EINTR */
	int broken;			/* errno of send() */
	int no_receive;			/* errno of the next recvmsg(), 0: none */
	uint8_t *out;
	size_t out_len, out_read;
	unsigned int descriptors;	/* open before the connection */
	const uint8_t *rx_end;		/* end of the daemon's buffer */
	uint32_t events;		/* that were last changed */
	char log[128];
} t;

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	(void)fd;
	assert_int_equal(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
	assert_true(len > 0);
	if (t.interrupted || t.broken || !t.room) {
		errno = t.interrupted ? EINTR : t.broken ? t.broken : EAGAIN;
		t.interrupted -= t.interrupted > 0;
		return -1;
	}
	len = len < t.room ? len : t.room;
	assert_true(t.out_len + len <= OUT);
	memcpy(t.out + t.out_len, buf, len);
	t.out_len += len;
	t.room -= len;
	return len;
}

ssize_t recvmsg(int fd, struct msghdr *mh, int flags)
{
	const uint8_t *end;

	assert_int_equal(flags, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | (t.limit ? MSG_PEEK : 0));
	assert_int_equal(mh->msg_iovlen, 1);
	end = (uint8_t *)mh->msg_iov->iov_base + mh->msg_iov->iov_len;
	assert_true(!t.rx_end || t.rx_end == end);
	t.rx_end = end;
	if (!t.no_receive)
		return syscall(SYS_recvmsg, fd, mh, flags);
	errno = t.no_receive;
	t.no_receive = 0;
	return -1;
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_MOD)
		t.events = event->events;
	return syscall(SYS_epoll_ctl, epfd, op, fd, event);
}

int getrlimit(__rlimit_resource_t which, struct rlimit *rl)
{
	if (!t.limit)
		return syscall(SYS_prlimit64, 0, which, NULL, rl);
	*rl = (struct rlimit) { t.limit, t.limit };
	return 0;
}

int setrlimit(__rlimit_resource_t which, const struct rlimit *rl)
{
	return t.limit ? 0 : syscall(SYS_prlimit64, 0, which, rl, NULL);
}

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static int request(void *arg, struct vfu_msg *m)
{
	struct request *r = &t.got[t.n++];
	struct order order = { 0 };

	assert_ptr_equal(arg, &t);
	assert_true(t.n <= MOST);
	*r = (struct request){ .hdr = m->hdr, .len = m->len, .nfd = m->nfd };
	if (m->len)
		r->last = m->payload[m->len - 1];
	for (unsigned int i = 0; i < m->nfd; i++)
		r->inode[i] = inode(m->fd[i]);
	if (t.wait)
		return VFU_WAIT;
	for (; m->done < t.parts && m->work; m->done++, m->work--)
		m->result += m->done;
	if (m->done < t.parts)
		return VFU_MORE;
	if (t.keep && m->nfd) {
		close(m->fd[0]);
		m->fd[0] = -1;
	}
	if (m->len >= sizeof(order))
		memcpy(&order, m->payload, sizeof(order));
	memset(m->out, m->hdr.id, order.out_len);
	m->out_len = order.out_len;
	return order.result;
}

static bool held(void *arg)
{
	assert_ptr_equal(arg, &t);
	return t.held;
}

static void closed(void *arg)
{
	assert_ptr_equal(arg, &t);
	t.closed++;
	t.conn = NULL;
}

/* A request that stops the mapper */
struct blocker {
	struct mapper_job job;
	sem_t until;
};

static void block(struct mapper_job *job)
{
	sem_wait(&((struct blocker *)job)->until);
}

static int64_t turn(void *arg)
{
	(void)arg;
	if (!t.turns--)
		loop_stop(t.loop);
	return 1;
}

/* Run @n turns of the loop; each turn polls the socket once. */
static void turns(unsigned int n)
{
	t.turns = n;
	assert_int_equal(loop_run(t.loop), 0);
}

static int setup(void **state)
{
	const struct vfu_handler handler = {
		.request = request, .held = held, .closed = closed, .arg = &t,
	};
	uint8_t *out = t.out ? t.out : malloc(OUT);
	int pair[2];

	(void)state;
	memset(&t, 0, sizeof(t));
	t.out = out;
	t.room = SIZE_MAX;
	t.loop = loop_new();
	assert_non_null(t.loop);
	loop_set_work(t.loop, turn, NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	t.client = pair[1];
	t.descriptors = descriptors();
	t.conn = vfu_conn_new(t.loop, pair[0], &source, &handler);
	assert_non_null(t.conn);
	log_keep(t.log, sizeof(t.log));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	log_keep(NULL, 0);
	vfu_conn_free(t.conn);
	assert_int_equal(descriptors(), t.descriptors - 1);
	close(t.client);
	loop_free(t.loop);
	return 0;
}

static int free_out(void **state)
{
	(void)state;
	free(t.out);
	return 0;
}

/* Build a whole message of @size bytes; its bytes count up. */
static uint8_t *message(uint16_t id, uint32_t size, uint32_t flags, struct order order)
{
	const struct vfu_hdr hdr = { .id = id, .cmd = 5, .size = size, .flags = flags };
	uint8_t *m = malloc(size < sizeof(hdr) ? sizeof(hdr) : size);

	assert_non_null(m);
	for (size_t i = 0; i < size; i++)
		m[i] = i;
	memcpy(m, &hdr, sizeof(hdr));
	if (size >= sizeof(hdr) + sizeof(order))
		memcpy(m + sizeof(hdr), &order, sizeof(order));
	return m;
}

static void put(const void *data, size_t len, const int *fd, unsigned int nfd)
{
	char control[CMSG_SPACE(64 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)data, len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfd) {
		struct cmsghdr *cm;

		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(nfd * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfd * sizeof(int));
		memcpy(CMSG_DATA(cm), fd, nfd * sizeof(int));
	}
	assert_int_equal(sendmsg(t.client, &mh, 0), len);
}

static void ask(uint16_t id, uint32_t size, struct order order)
{
	uint8_t *m = message(id, size, 0, order);

	put(m, size, NULL, 0);
	free(m);
}

/* Check the next reply that the client received. */
static void expect_reply(uint16_t id, uint32_t out_len, uint32_t error)
{
	struct vfu_hdr hdr;

	assert_true(t.out_len - t.out_read >= sizeof(hdr));
	memcpy(&hdr, t.out + t.out_read, sizeof(hdr));
	assert_int_equal(hdr.id, id);
	assert_int_equal(hdr.cmd, 5);
	assert_int_equal(hdr.size, sizeof(hdr) + out_len);
	assert_int_equal(hdr.flags, VFU_F_REPLY | (error ? VFU_F_ERROR : 0));
	assert_int_equal(hdr.error, error);
	assert_true(t.out_len - t.out_read >= hdr.size);
	for (uint32_t i = 0; i < out_len; i++)
		assert_int_equal(t.out[t.out_read + sizeof(hdr) + i], (uint8_t)id);
	t.out_read += hdr.size;
}

static void expect_no_reply(void)
{
	assert_int_equal(t.out_read, t.out_len);
	assert_false(t.events & EPOLLOUT);	/* which would wake the daemon all the time */
}

/* Two messages, with a pause behind each byte in turn: each is handled when it is whole. */
static void test_cuts(void **state)
{
	const uint32_t size = 40, both = 2 * 40;
	uint8_t *first = message(1, size, 0, (struct order){ 3, 0 });
	uint8_t *second = message(2, size, 0, (struct order){ 5, 0 });
	uint8_t stream[80];

	(void)state;
	memcpy(stream, first, size);
	memcpy(stream + size, second, size);
	for (uint32_t cut = 0; cut <= both; cut++) {
		t.n = 0;
		if (cut)
			put(stream, cut, NULL, 0);
		turns(2);
		assert_int_equal(t.n, cut / size);
		if (cut < both)
			put(stream + cut, both - cut, NULL, 0);
		turns(2);
		assert_int_equal(t.n, 2);
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(t.got[i].hdr.id, i + 1);
			assert_int_equal(t.got[i].len, size - sizeof(struct vfu_hdr));
			assert_int_equal(t.got[i].last, size - 1);
			assert_int_equal(t.got[i].nfd, 0);
		}
		expect_reply(1, 3, 0);
		expect_reply(2, 5, 0);
		expect_no_reply();
	}
	free(first);
	free(second);
}

static void test_bytes(void **state)
{
	uint8_t *m = message(9, 20, 0, (struct order){ 0, 0 });

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(t.n, 0);
		put(m + i, 1, NULL, 0);
		turns(1);
	}
	assert_int_equal(t.n, 1);
	free(m);
}

/*
 * A header alone is a message; so is the longest one, which comes in many pieces. The pieces end at
 * any place in a message and in the buffer.
 */
static void test_sizes(void **state)
{
	const size_t head = sizeof(struct vfu_hdr), both = head + VFU_MAX_MSG;
	uint8_t *first = message(1, head, 0, (struct order){ 0, 0 });
	uint8_t *second = message(2, VFU_MAX_MSG, 0, (struct order){ VFU_MAX_PAYLOAD, 0 });
	uint8_t *m = malloc(3 * both);
	unsigned int tries = 0;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		memcpy(m + i * both, first, head);
		memcpy(m + i * both + head, second, VFU_MAX_MSG);
	}
	for (size_t at = 0; at < 3 * both; tries++) {
		ssize_t n = write(t.client, m + at, 3 * both - at < PIECE ? 3 * both - at : PIECE);

		assert_true(tries < 1000);
		at += n > 0 ? n : 0;
		turns(1);
	}
	turns(6);
	assert_int_equal(t.n, 6);
	for (unsigned int i = 0; i < 6; i += 2) {
		assert_int_equal(t.got[i].len, 0);
		assert_int_equal(t.got[i + 1].len, VFU_MAX_PAYLOAD);
		assert_int_equal(t.got[i + 1].last, second[VFU_MAX_MSG - 1]);
		expect_reply(1, 0, 0);
		expect_reply(2, VFU_MAX_PAYLOAD, 0);
	}
	assert_int_equal(t.closed, 0);
	free(first);
	free(second);
	free(m);
}

static void rejected(uint32_t size, uint32_t flags, uint32_t error, const char *why)
{
	uint8_t *m = message(7, size, flags, (struct order){ 0, 0 });

	put(m, sizeof(struct vfu_hdr), NULL, 0);
	turns(2);
	assert_int_equal(t.n, 0);
	assert_int_equal(t.closed, 1);
	assert_string_equal(t.log, why);
	if (flags & VFU_F_NO_REPLY)
		expect_no_reply();
	else
		expect_reply(7, 0, error);
	free(m);
}

static void test_short(void **state)
{
	(void)state;
	rejected(sizeof(struct vfu_hdr) - 1, 0, EMSGSIZE,
		 "test: client sent a message of 15 bytes, allowed are 16 to 65568");
}

static void test_long(void **state)
{
	(void)state;
	rejected(VFU_MAX_MSG + 1, 0, EMSGSIZE,
		 "test: client sent a message of 65569 bytes, allowed are 16 to 65568");
}

static void test_no_request(void **state)
{
	(void)state;
	rejected(40, VFU_F_REPLY, EPROTO,
		 "test: client sent a message with flags 0x1 that is no request");
}

static void test_no_reply_to_bad(void **state)
{
	(void)state;
	rejected(40, VFU_F_NO_REPLY | 2, EPROTO,
		 "test: client sent a message with flags 0x12 that is no request");
}

static void test_results(void **state)
{
	uint8_t *silent = message(3, 40, VFU_F_NO_REPLY, (struct order){ 4, 0 });

	(void)state;
	ask(1, 40, (struct order){ 4, -EPERM });
	ask(2, 40, (struct order){ 4, 0 });
	put(silent, 40, NULL, 0);
	ask(4, 40, (struct order){ 0, 0 });
	turns(2);
	expect_reply(1, 0, EPERM);
	expect_reply(2, 4, 0);
	expect_reply(4, 0, 0);
	expect_no_reply();
	assert_int_equal(t.closed, 0);
	free(silent);
}

/* The error is sent, messages behind it are not handled. */
static void test_handler_closes(void **state)
{
	(void)state;
	ask(1, 40, (struct order){ 0, VFU_CLOSE(EINVAL) });
	ask(2, 40, (struct order){ 0, 0 });
	turns(2);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.closed, 1);
	expect_reply(1, 0, EINVAL);
	expect_no_reply();
}

/* VFU_CLOSE(0) is the greatest result that closes; an errno below it does not. */
static void test_close_without_error(void **state)
{
	(void)state;
	ask(1, 40, (struct order){ 0, VFU_CLOSE(0) + 1 });
	turns(2);
	assert_int_equal(t.closed, 0);
	ask(2, 40, (struct order){ 2, VFU_CLOSE(0) });
	turns(2);
	assert_int_equal(t.closed, 1);
	expect_reply(1, 0, 0xffff);
	expect_reply(2, 2, 0);
}

/* Messages before the end of file are handled. */
static void test_end(void **state)
{
	uint8_t *m = message(2, 40, 0, (struct order){ 0, 0 });

	(void)state;
	ask(1, 40, (struct order){ 4, 0 });
	put(m, 39, NULL, 0);
	shutdown(t.client, SHUT_WR);
	turns(3);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.closed, 1);
	expect_reply(1, 4, 0);
	expect_no_reply();
	free(m);
}

/* All of them, also if their replies have no room at once. */
static void test_end_of_many(void **state)
{
	uint8_t *bytes = malloc(12 * 40), *m;

	(void)state;
	for (int i = 0; i < 12; i++) {
		m = message(i, 40, 0, (struct order){ i ? VFU_MAX_PAYLOAD / 2 : 0, 0 });
		memcpy(bytes + 40 * i, m, 40);
		free(m);
	}
	t.room = 0;
	put(bytes, 12 * 40, NULL, 0);
	turns(2);
	assert_in_range(t.n, 2, 4);
	/* the client reads nearly all of these replies, and then ends */
	t.room = sizeof(struct vfu_hdr) + VFU_MAX_PAYLOAD / 2 + sizeof(struct vfu_hdr);
	turns(1);
	shutdown(t.client, SHUT_WR);
	t.room = SIZE_MAX;
	turns(12);
	assert_int_equal(t.n, 12);
	assert_int_equal(t.closed, 1);
	for (int i = 0; i < 12; i++)
		expect_reply(i, i ? VFU_MAX_PAYLOAD / 2 : 0, 0);
	free(bytes);
}

/* A client whose requests are not read sees an end of file. QEMU does not survive ECONNRESET. */
static void test_end_with_unread(void **state)
{
	int fd = open("/dev/null", O_RDONLY);
	uint8_t *m = message(1, 60000, 0, (struct order){ 0, 0 });
	char byte;

	(void)state;
	put(m, 40, &fd, 1);
	put(m, 60000, NULL, 0);
	vfu_conn_free(t.conn);
	t.conn = NULL;
	assert_int_equal(recv(t.client, &byte, 1, 0), 0);
	close(fd);
	free(m);
}

/* Only an error of the connection ends it. */
static void test_receive_fails(void **state)
{
	static const int errors[] = { EAGAIN, EINTR, ECONNRESET };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		t.no_receive = errors[i];
		ask(i, 40, (struct order){ 0, 0 });
		turns(3);
		assert_int_equal(t.no_receive, 0);
		assert_int_equal(t.n, i < 2 ? i + 1 : 2);
		assert_int_equal(t.closed, i == 2);
	}
}

static void test_broken_pipe(void **state)
{
	(void)state;
	t.broken = EPIPE;
	ask(1, 40, (struct order){ 0, 0 });
	turns(2);
	assert_int_equal(t.closed, 1);
}

/* A signal, a few bytes at a time: replies are whole and in order. */
static void test_slow_reader(void **state)
{
	(void)state;
	t.room = 0;
	for (int i = 0; i < 8; i++)
		ask(i, 40, (struct order){ 1000 + i, 0 });
	turns(3);
	assert_int_equal(t.n, 8);
	while (t.out_len < 8 * sizeof(struct vfu_hdr) + 1000 + 1001 + 1002 + 1003 + 1004 + 1005 +
			   1006 + 1007) {
		size_t before = t.out_len;

		t.room = 77;
		t.interrupted = 2;
		turns(1);
		assert_true(t.out_len > before);
	}
	for (int i = 0; i < 8; i++)
		expect_reply(i, 1000 + i, 0);
	expect_no_reply();
}

/*
 * The client requests long replies and reads none: requests wait. It reads all of them, stalls
 * and reads again. Then no event of the socket would wake the daemon, which must continue by
 * itself.
 */
static void test_stall_drain_stall(void **state)
{
	const unsigned int asked = 12;
	unsigned int handled;

	(void)state;
	for (int round = 0; round < 3; round++) {
		t.room = 0;
		t.n = 0;
		t.out_len = 0;
		t.out_read = 0;
		for (unsigned int i = 0; i < asked; i++)
			ask(i, 40, (struct order){ VFU_MAX_PAYLOAD / 2, 0 });
		turns(3);
		handled = t.n;
		assert_in_range(handled, 2, 3);		/* the next might not fit */
		/* one reply goes out: there is room for one more request */
		t.room = VFU_MAX_PAYLOAD / 2 + sizeof(struct vfu_hdr);
		turns(3);
		assert_true(t.n > handled && t.n < asked);
		/* everything, in shares */
		t.room = SIZE_MAX;
		turns(asked);
		assert_int_equal(t.n, asked);
		for (unsigned int i = 0; i < asked; i++)
			expect_reply(i, VFU_MAX_PAYLOAD / 2, 0);
		expect_no_reply();
	}
}

/* Return the bytes that the client sent and the daemon has not read */
static int unread(void)
{
	int n;

	assert_int_equal(ioctl(t.client, SIOCOUTQ, &n), 0);
	return n;
}

/*
 * The longest reply waits for the client. There is room for another one, so the next request is
 * handled. Then there is none, and later requests stay in the socket.
 */
static void test_longest_reply_waits(void **state)
{
	(void)state;
	t.room = 0;
	ask(1, 40, (struct order){ VFU_MAX_PAYLOAD, 0 });
	turns(2);
	assert_int_equal(t.n, 1);
	ask(2, 40, (struct order){ 0, 0 });
	turns(2);
	assert_int_equal(t.n, 2);
	assert_int_equal(unread(), 0);
	ask(3, 40, (struct order){ 0, 0 });
	turns(3);
	assert_int_equal(t.n, 2);
	assert_true(unread() > 0);
	t.room = SIZE_MAX;
	turns(3);
	assert_int_equal(t.n, 3);
	expect_reply(1, VFU_MAX_PAYLOAD, 0);
	expect_reply(2, 0, 0);
	expect_reply(3, 0, 0);
	expect_no_reply();
}

/* The client has read a short reply: the room suffices for the longest reply, and no more. */
static void test_room_for_longest(void **state)
{
	(void)state;
	t.room = 0;
	ask(1, 40, (struct order){ 0, 0 });
	ask(2, 40, (struct order){ VFU_MAX_PAYLOAD, 0 });
	turns(2);
	assert_int_equal(t.n, 2);
	ask(3, 40, (struct order){ VFU_MAX_PAYLOAD, 0 });
	turns(2);
	assert_int_equal(t.n, 2);
	t.room = sizeof(struct vfu_hdr);
	turns(1);
	assert_int_equal(t.n, 2);
	turns(1);
	assert_int_equal(t.n, 3);
	t.room = SIZE_MAX;
	turns(2);
	expect_reply(1, 0, 0);
	expect_reply(2, VFU_MAX_PAYLOAD, 0);
	expect_reply(3, VFU_MAX_PAYLOAD, 0);
}

/* While the daemon waits for the client to read, it reads no more than its buffer holds. */
static void test_stalled_client_is_stopped(void **state)
{
	uint8_t *m = message(1, 4096, 0, (struct order){ VFU_MAX_PAYLOAD, 0 });
	size_t sent = 0;

	(void)state;
	t.room = 0;
	for (unsigned int idle = 0; idle < 20; idle++) {
		ssize_t n;

		while ((n = write(t.client, m + sent % 4096, 4096 - sent % 4096)) > 0) {
			sent += n;
			idle = 0;
		}
		assert_true(sent < 2 * VFU_MAX_MSG + (256u << 10));
		turns(1);
	}
	assert_in_range(t.n, 1, 2);
	assert_int_equal(t.closed, 0);
	free(m);
}

static void files(int *fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		char path[] = "/tmp/ornic-fd-XXXXXX";

		fd[i] = mkstemp(path);
		assert_true(fd[i] >= 0);
		unlink(path);
	}
}

static void close_all(const int *fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		close(fd[i]);
}

/* Messages without descriptors come in the same read before the one that has descriptors. */
static void test_descriptors_of_the_last(void **state)
{
	uint8_t *head = message(1, 16, 0, (struct order){ 0, 0 });
	uint8_t *m = message(1, 40, 0, (struct order){ 0, 0 });
	uint8_t stream[96];
	int fd[3];

	(void)state;
	files(fd, 3);
	memcpy(stream, m, 40);
	memcpy(stream + 40, head, 16);
	memcpy(stream + 56, m, 40);
	for (unsigned int cut = 1; cut <= 40; cut++) {
		t.n = 0;
		t.keep = cut & 1;
		put(stream, 56 + cut, fd, 3);
		if (cut < 40)
			put(stream + 56 + cut, 40 - cut, NULL, 0);
		turns(3);
		assert_int_equal(t.n, 3);
		assert_int_equal(t.got[0].nfd, 0);
		assert_int_equal(t.got[1].nfd, 0);
		assert_int_equal(t.got[2].nfd, 3);
		for (int i = 0; i < 3; i++)
			assert_true(t.got[2].inode[i] == inode(fd[i]));
	}
	close_all(fd, 3);
	free(head);
	free(m);
}

/* Descriptors come with the end of a message whose beginning came with another message. */
static void test_descriptors_with_the_rest(void **state)
{
	uint8_t *m = message(1, 40, 0, (struct order){ 0, 0 });
	uint8_t stream[80];
	int fd;

	(void)state;
	files(&fd, 1);
	memcpy(stream, m, 40);
	memcpy(stream + 40, m, 40);
	put(stream, 60, NULL, 0);
	turns(2);
	assert_int_equal(t.n, 1);
	put(stream + 60, 20, &fd, 1);
	turns(2);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.got[1].nfd, 1);
	close(fd);
	free(m);
}

/* The maximum number of descriptors, twice, while no message is handled: the first ones wait. */
static void test_descriptors_wait(void **state)
{
	uint8_t *m = message(1, 40, 0, (struct order){ VFU_MAX_PAYLOAD, 0 });
	int fd[VFU_MAX_FDS];

	(void)state;
	files(fd, VFU_MAX_FDS);
	t.room = 0;
	for (int i = 0; i < 4; i++) {
		put(m, 40, fd, VFU_MAX_FDS);
		turns(2);
	}
	t.room = SIZE_MAX;
	turns(6);
	assert_int_equal(t.n, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(t.got[i].nfd, VFU_MAX_FDS);
	assert_int_equal(t.closed, 0);
	close_all(fd, VFU_MAX_FDS);
	free(m);
}

static void test_too_many_descriptors(void **state)
{
	uint8_t *m = message(1, 40, 0, (struct order){ 0, 0 });
	int fd[VFU_MAX_FDS + 1];

	(void)state;
	files(fd, VFU_MAX_FDS + 1);
	put(m, 40, fd, VFU_MAX_FDS + 1);
	turns(2);
	assert_int_equal(t.closed, 1);
	assert_string_equal(t.log, "test: client sent more than 16 descriptors at once");
	close_all(fd, VFU_MAX_FDS + 1);
	free(m);
}

static void few_numbers(rlim_t limit)
{
	t.limit = limit;
	share_raise();
	share_saw(3);
}

/*
 * Few numbers are left: messages are looked at first. No more descriptors than one message may have
 * are received, and nothing is lost.
 */
static void test_few_numbers(void **state)
{
	uint8_t *m = message(1, 40, 0, (struct order){ 3, 0 });
	int fd[VFU_MAX_FDS + 2];

	(void)state;
	files(fd, VFU_MAX_FDS + 2);
	few_numbers(500);
	for (unsigned int n = 0; n <= VFU_MAX_FDS; n++) {
		t.n = 0;
		ask(7, 64, (struct order){ 1, 0 });
		put(m, 20, fd, n);
		put(m + 20, 20, NULL, 0);
		ask(8, 64, (struct order){ 2, 0 });
		turns(5);
		assert_int_equal(t.n, 3);
		assert_int_equal(t.got[1].nfd, n);
		for (unsigned int i = 0; i < n; i++)
			assert_true(t.got[1].inode[i] == inode(fd[i]));
		assert_int_equal(t.got[0].nfd + t.got[2].nfd, 0);
		expect_reply(7, 1, 0);
		expect_reply(1, 3, 0);
		expect_reply(8, 2, 0);
	}
	put(m, 40, fd, VFU_MAX_FDS + 2);
	turns(2);
	assert_int_equal(t.closed, 1);
	assert_string_equal(t.log, "test: client sent more than 16 descriptors at once");
	few_numbers(0);
	close_all(fd, VFU_MAX_FDS + 2);
	free(m);
}

/* The number of a descriptor tells whether few are left. */
static void test_numbers_left(void **state)
{
	uint8_t *m = message(1, 40, 0, (struct order){ 3, 0 });
	int fd;

	(void)state;
	files(&fd, 1);
	few_numbers(500);
	put(m, 40, &fd, 1);
	t.limit = 5000;
	share_raise();		/* still scarce */
	t.limit = 500;
	turns(1);
	assert_int_equal(t.n, 1);
	t.limit = 0;		/* no more peeking */
	put(m, 40, &fd, 1);
	turns(2);
	assert_int_equal(t.n, 2);
	few_numbers(0);
	close(fd);
	free(m);
}

/* The daemon has no number left for the descriptor. */
static void test_no_descriptor_left(void **state)
{
	uint8_t *m = message(1, 40, 0, (struct order){ 0, 0 });
	struct rlimit kept, none;
	int fd;

	(void)state;
	files(&fd, 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &kept), 0);
	none = (struct rlimit){ 0, kept.rlim_max };
	put(m, 40, &fd, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	turns(2);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &kept), 0);
	assert_int_equal(t.closed, 1);
	assert_string_equal(t.log, "test: no descriptor is left for those that the client sent");
	close(fd);
	free(m);
}

/* One more with another piece of the message. */
static void test_one_descriptor_more(void **state)
{
	uint8_t *m = message(1, 40, 0, (struct order){ 0, 0 });
	int fd[VFU_MAX_FDS];

	(void)state;
	files(fd, VFU_MAX_FDS);
	put(m, 20, fd, VFU_MAX_FDS);
	turns(1);
	put(m + 20, 20, fd, 1);
	turns(2);
	assert_int_equal(t.n, 0);
	assert_int_equal(t.closed, 1);
	expect_reply(1, 0, EPROTO);
	assert_string_equal(t.log, "test: client sent more than 16 descriptors with a message");
	close_all(fd, VFU_MAX_FDS);
	free(m);
}

/* No more than twice the maximum wait for the end of a message. */
static void test_descriptors_of_pieces(void **state)
{
	uint8_t *m = message(1, 40, 0, (struct order){ 0, 0 });
	int fd[VFU_MAX_FDS];

	(void)state;
	files(fd, VFU_MAX_FDS);
	for (int i = 0; i < 2; i++) {
		put(m + i, 1, fd, VFU_MAX_FDS);
		turns(2);
		assert_int_equal(t.closed, 0);
	}
	put(m + 2, 1, fd, 1);
	turns(2);
	assert_int_equal(t.closed, 1);
	assert_string_equal(t.log, "test: client sent more than 16 descriptors at once");
	close_all(fd, VFU_MAX_FDS);
	free(m);
}

/* A connection that ends closes the descriptors of an incomplete message. */
static void test_descriptors_of_no_message(void **state)
{
	uint8_t *m = message(1, 40, 0, (struct order){ 0, 0 });
	int fd[2];

	(void)state;
	files(fd, 2);
	put(m, 20, fd, 2);
	turns(2);
	close_all(fd, 2);
	assert_int_equal(t.n, 0);
	free(m);
}

static void test_socket_as_descriptor(void **state)
{
	uint8_t *m = message(1, 40, 0, (struct order){ 0, 0 });
	int fd[2];

	(void)state;
	files(fd, 1);
	fd[1] = socket(AF_UNIX, SOCK_STREAM, 0);
	put(m, 40, fd, 2);
	turns(2);
	assert_int_equal(t.closed, 1);
	assert_string_equal(t.log, "test: client sent a socket as descriptor");
	close_all(fd, 2);
	free(m);
}

/* A request that waits: later ones are handled after its reply, wherever they are. */
static void test_wait(void **state)
{
	int fd;

	(void)state;
	files(&fd, 1);
	for (uint32_t flags = 0; flags <= VFU_F_NO_REPLY; flags += VFU_F_NO_REPLY) {
		uint8_t *m = message(1, 40, flags, (struct order){ 0, 0 });

		t.n = 0;
		t.wait = true;
		put(m, 40, &fd, 1);
		ask(2, 40, (struct order){ 3, 0 });	/* in the same read, if the kernel likes */
		turns(3);
		assert_int_equal(t.n, 1);
		assert_int_equal(t.got[0].nfd, 1);
		assert_int_equal(descriptors(), t.descriptors + 2);
		ask(3, 40, (struct order){ 4, 0 });
		turns(3);
		assert_int_equal(t.n, 1);
		assert_true(unread() > 0);
		expect_no_reply();
		t.wait = false;
		vfu_conn_reply(t.conn, flags ? 0 : -EACCES);
		turns(3);
		assert_int_equal(t.n, 3);
		assert_int_equal(descriptors(), t.descriptors + 1);
		if (!flags)
			expect_reply(1, 0, EACCES);
		expect_reply(2, 3, 0);
		expect_reply(3, 4, 0);
		expect_no_reply();
		free(m);
	}
	close(fd);
}

/* While a request waits, an earlier reply that the client did not read is sent. */
static void test_wait_behind_reply(void **state)
{
	(void)state;
	t.room = 5;
	ask(1, 40, (struct order){ 100, 0 });
	turns(2);
	t.wait = true;
	ask(2, 40, (struct order){ 0, 0 });
	turns(2);
	assert_int_equal(t.n, 2);
	t.room = SIZE_MAX;
	turns(2);
	expect_reply(1, 100, 0);
	expect_no_reply();
	vfu_conn_reply(t.conn, 0);
	expect_reply(2, 0, 0);
	turns(2);
	expect_no_reply();
}

/* A client that ends does not wait, and its descriptors are closed. */
static void test_wait_and_end(void **state)
{
	uint8_t *m = message(1, 40, 0, (struct order){ 0, 0 });
	int fd;

	(void)state;
	files(&fd, 1);
	t.wait = true;
	put(m, 40, &fd, 1);
	close(fd);
	ask(2, 40, (struct order){ 0, 0 });
	turns(2);
	assert_int_equal(t.closed, 0);
	assert_int_equal(shutdown(t.client, SHUT_WR), 0);
	turns(2);
	assert_int_equal(t.closed, 0);
	close(t.client);
	t.client = dup(0);
	turns(2);
	assert_int_equal(t.closed, 1);
	assert_int_equal(t.n, 1);
	free(m);
}

/* While the mapper has many descriptors to close, no more are received. */
static void test_many_to_close(void **state)
{
	const struct vfu_handler handler = { .request = request, .closed = closed, .arg = &t };
	uint8_t *m = message(1, 40, 0, (struct order){ 0, 0 });
	struct blocker b = { .job = { .work = block } };
	struct vfu_handler slow = handler;
	unsigned int sent = 0, before;
	int fd[VFU_MAX_FDS], pair[2];

	(void)state;
	files(fd, VFU_MAX_FDS);
	vfu_conn_free(t.conn);
	close(t.client);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	t.client = pair[1];
	assert_int_equal(mapper_new(&slow.mapper), 0);
	t.conn = vfu_conn_new(t.loop, pair[0], &source, &slow);
	sem_init(&b.until, 0, 0);
	mapper_add(slow.mapper, &b.job);
	before = descriptors();
	for (; sent < 20; sent++) {
		put(m, 40, fd, VFU_MAX_FDS);
		turns(2);
	}
	assert_in_range(t.n, share_close() / VFU_MAX_FDS, share_close() / VFU_MAX_FDS + 2);
	assert_int_equal(descriptors(), before + t.n * VFU_MAX_FDS);
	sem_post(&b.until);
	for (int64_t end = loop_now() + 5000000000; t.n < sent && loop_now() < end;) {
		turns(1);
		if (!mapper_closing(slow.mapper))
			vfu_conn_resume(t.conn);
	}
	assert_int_equal(t.n, sent);
	assert_true(descriptors_become(before));
	vfu_conn_free(t.conn);
	t.conn = NULL;
	mapper_end(slow.mapper);
	assert_true(mapper_wait(5000));
	sem_destroy(&b.until);
	close_all(fd, VFU_MAX_FDS);
	free(m);
}

/* Return @n whole messages of @size bytes, numbered from @id on. */
static uint8_t *messages(uint16_t id, unsigned int n, uint32_t size, uint32_t flags)
{
	uint8_t *all = malloc(n * size);

	assert_non_null(all);
	for (unsigned int i = 0; i < n; i++) {
		uint8_t *m = message(id + i, size, flags, (struct order){ 0, 0 });

		memcpy(all + i * size, m, size);
		free(m);
	}
	return all;
}

/* A share of many messages per iteration of the loop; no event is needed for the rest. */
static void test_share(void **state)
{
	uint8_t *m = messages(0, 100, 40, 0);

	(void)state;
	put(m, 100 * 40, NULL, 0);
	for (unsigned int n = VFU_SHARE; n < 100; n += VFU_SHARE) {
		turns(1);
		assert_int_equal(t.n, n);
	}
	turns(1);
	assert_int_equal(t.n, 100);
	for (int i = 0; i < 100; i++)
		expect_reply(i, 0, 0);
	expect_no_reply();
	free(m);
}

/* Many bytes of requests and replies are more than one message. */
static void test_share_of_bytes(void **state)
{
	const uint32_t most = VFU_SHARE / 4 * VFU_SHARE_BYTES;
	uint8_t *m;

	(void)state;
	for (int reply = 0; reply < 2; reply++) {
		t.n = 0;
		for (int i = 0; i < 8; i++) {
			m = message(i, reply ? 40 : most, 0, (struct order){ reply ? most : 0, 0 });
			put(m, reply ? 40 : most, NULL, 0);
			free(m);
		}
		turns(1);
		assert_in_range(t.n, 4, 5);
		turns(1);
		assert_int_equal(t.n, 8);
		for (int i = 0; i < 8; i++)
			expect_reply(i, reply ? most : 0, 0);
	}
}

/* Connections take turns: one whose messages are left does not go before the others. */
static void test_shares_in_turn(void **state)
{
	const struct vfu_handler handler = { .request = request, .closed = closed, .arg = &t };
	uint8_t *m = messages(0, 90, 40, VFU_F_NO_REPLY);
	struct vfu_conn *other;
	int pair[2], first = t.client;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	t.rx_end = NULL;
	put(m, 90 * 40, NULL, 0);
	turns(1);
	t.rx_end = NULL;
	other = vfu_conn_new(t.loop, pair[0], &source, &handler);
	assert_non_null(other);
	t.client = pair[1];
	ask(1000, 40, (struct order){ 0, 0 });
	turns(1);
	assert_int_equal(t.n, 2 * VFU_SHARE + 1);
	assert_int_equal(t.got[VFU_SHARE].hdr.id, 1000);
	vfu_conn_free(other);
	close(pair[1]);
	t.client = first;
	t.rx_end = NULL;
	turns(1);
	assert_int_equal(t.n, 91);
	free(m);
}

/* The messages that are left are handled before the end of file, which is not read before. */
static void test_end_after_shares(void **state)
{
	uint8_t *m = messages(0, 100, 40, VFU_F_NO_REPLY);

	(void)state;
	put(m, 100 * 40, NULL, 0);
	shutdown(t.client, SHUT_WR);
	turns(3);
	assert_int_equal(t.n, 96);
	assert_int_equal(t.closed, 0);
	turns(2);
	assert_int_equal(t.n, 100);
	assert_int_equal(t.closed, 1);
	free(m);
}

/* Likewise before the end because of a bad descriptor, of which the client knows nothing. */
static void test_bad_descriptor_after_shares(void **state)
{
	uint8_t *m = messages(0, 70, 40, VFU_F_NO_REPLY);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	put(m, 70 * 40, &fd, 1);
	turns(2);
	assert_int_equal(t.n, 64);
	assert_int_equal(t.closed, 0);
	turns(1);
	assert_int_equal(t.n, 70);
	assert_int_equal(t.closed, 1);
	close(fd);
	free(m);
}

/* A connection that is freed while messages are left has no further share. */
static void test_free_between_shares(void **state)
{
	uint8_t *m = messages(0, 70, 40, VFU_F_NO_REPLY);

	(void)state;
	put(m, 70 * 40, NULL, 0);
	turns(1);
	vfu_conn_free(t.conn);
	t.conn = NULL;
	turns(2);
	assert_int_equal(t.n, VFU_SHARE);
	assert_int_equal(t.closed, 0);
	free(m);
}

/* A request with many parts: its parts are as many messages, and others come behind it. */
static void test_parts(void **state)
{
	int fd;

	(void)state;
	files(&fd, 1);
	t.parts = 2 * VFU_SHARE + 5;
	for (int i = 0; i < 2; i++) {
		uint8_t *m = message(7, 40, 0, (struct order){ 3, 0 });

		t.n = 0;
		put(m, 40, i ? &fd : NULL, i);
		ask(8, 40, (struct order){ 0, 0 });
		turns(2);
		expect_no_reply();
		turns(1);
		expect_reply(7, 3, 0);
		assert_int_equal(t.got[0].nfd, i);
		turns(3);
		expect_reply(8, 0, 0);
		assert_int_equal(descriptors(), t.descriptors + 1);
		free(m);
	}
	close(fd);
}

/* Requests wait while the device used more than its share, and go on without an event. */
static void test_held(void **state)
{
	(void)state;
	t.held = true;
	for (int i = 0; i < 3; i++) {
		ask(i, 40, (struct order){ 0, 0 });
		turns(2);
		assert_int_equal(t.n, 0);
	}
	t.held = false;
	turns(1);
	assert_in_range(t.n, 1, 3);
	turns(1);
	assert_int_equal(t.n, 3);
	for (int i = 0; i < 3; i++)
		expect_reply(i, 0, 0);
	t.held = true;		/* an end does not wait without a request */
	shutdown(t.client, SHUT_WR);
	turns(2);
	assert_int_equal(t.closed, 1);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_cuts),
		T(test_bytes),
		T(test_sizes),
		T(test_short),
		T(test_long),
		T(test_no_request),
		T(test_no_reply_to_bad),
		T(test_results),
		T(test_handler_closes),
		T(test_close_without_error),
		T(test_end),
		T(test_end_of_many),
		T(test_end_with_unread),
		T(test_receive_fails),
		T(test_broken_pipe),
		T(test_slow_reader),
		T(test_stall_drain_stall),
		T(test_longest_reply_waits),
		T(test_room_for_longest),
		T(test_stalled_client_is_stopped),
		T(test_descriptors_of_the_last),
		T(test_descriptors_with_the_rest),
		T(test_descriptors_wait),
		T(test_too_many_descriptors),
		T(test_no_descriptor_left),
		T(test_few_numbers),
		T(test_numbers_left),
		T(test_one_descriptor_more),
		T(test_descriptors_of_pieces),
		T(test_descriptors_of_no_message),
		T(test_socket_as_descriptor),
		T(test_wait),
		T(test_wait_behind_reply),
		T(test_wait_and_end),
		T(test_many_to_close),
		T(test_share),
		T(test_share_of_bytes),
		T(test_shares_in_turn),
		T(test_end_after_shares),
		T(test_bad_descriptor_after_shares),
		T(test_free_between_shares),
		T(test_parts),
		T(test_held),
	};

	return cmocka_run_group_tests(tests, NULL, free_out);
}
