// SPDX-License-Identifier: GPL-2.0
/*
 * vfu/late.c: replies after the process was stopped. The test is a client that no longer waits: it
 * takes the bytes behind the header of a reply for the next message. It sets the daemon's clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/folder.h"
#include "loop.h"
#include "vfu/late.h"
#include "vfu/message.h"

#define DATA	8

static struct {
	struct loop *loop;
	struct vfu_conn *conn;
	int client;
	int64_t now;		/* ns */
	int64_t stopped;	/* before the loop looks for events, ns */
	int64_t handling;	/* time that the next request takes, ns */
	int result;
	bool wait;		/* the next requests wait */
	unsigned int requests, closed;
} t;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec) { t.now / 1000000000, t.now % 1000000000 };
	return 0;
}

static int request(void *arg, struct vfu_msg *m)
{
	(void)arg;
	t.requests++;
	t.now += t.handling;
	if (t.wait)
		return VFU_WAIT;
	memcpy(m->out, m->payload, m->len);	/* as our device answers, also an unmap */
	m->out_len = m->len;
	if (m->hdr.cmd == VFU_REGION_READ) {
		memset(m->out + m->out_len, 0x5a, DATA);
		m->out_len += DATA;
	}
	return t.result;
}

static void closed(void *arg)
{
	(void)arg;
	t.closed++;
	t.conn = NULL;
}

static int64_t turn(void *arg)
{
	unsigned int *turns = arg;

	if (!(*turns)--)
		loop_stop(t.loop);
	t.now += t.stopped;
	t.stopped = 0;
	return 1;
}

static void run(void)
{
	unsigned int turns = 1;

	loop_set_work(t.loop, turn, &turns);
	assert_int_equal(loop_run(t.loop), 0);
}

static int setup(void **state)
{
	const struct vfu_handler handler = { .request = request, .closed = closed };
	int pair[2];

	(void)state;
	memset(&t, 0, sizeof(t));
	t.now = 1000;
	t.loop = loop_new();
	assert_non_null(t.loop);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	t.client = pair[1];
	t.conn = vfu_conn_new(t.loop, pair[0], NULL, &handler);
	assert_non_null(t.conn);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	vfu_conn_free(t.conn);
	close(t.client);
	loop_free(t.loop);
	return 0;
}

/* Send a request with an access as payload, and run the loop once. */
static void ask(uint16_t id, uint16_t cmd, uint32_t flags)
{
	const struct {
		struct vfu_hdr hdr;
		struct vfu_region_access access;
	} m = {
		{ .id = id, .cmd = cmd, .size = sizeof(m), .flags = flags },
		{ .offset = 0x1122334455667788, .region = VFU_REGION_CONFIG, .count = DATA },
	};

	assert_int_equal(send(t.client, &m, sizeof(m), 0), sizeof(m));
	run();
	assert_int_equal(t.closed, 0);
}

/* Receive the reply's header and @len bytes of payload. */
static void reply(uint16_t id, uint16_t cmd, uint32_t error, void *payload, size_t len)
{
	uint8_t more;
	struct vfu_hdr hdr;

	assert_int_equal(recv(t.client, &hdr, sizeof(hdr), 0), sizeof(hdr));
	assert_int_equal(hdr.id, id);
	assert_int_equal(hdr.cmd, cmd);
	assert_int_equal(hdr.size, sizeof(hdr) + len);
	assert_int_equal(hdr.flags, VFU_F_REPLY | (error ? VFU_F_ERROR : 0));
	assert_int_equal(hdr.error, error);
	if (len)
		assert_int_equal(recv(t.client, payload, len, 0), len);
	assert_int_equal(recv(t.client, &more, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
}

static void expect_read(uint16_t id, bool late)
{
	struct {
		union {
			struct vfu_region_access access;
			struct vfu_hdr hdr;	/* of the request that a late reply becomes */
		};
		uint8_t data[DATA];
	} got;

	reply(id, VFU_REGION_READ, 0, &got, sizeof(got));
	/* a client that waits */
	assert_int_equal(got.access.count, DATA);
	for (int i = 0; i < DATA; i++)
		assert_int_equal(got.data[i], 0x5a);
	if (!late) {
		assert_int_equal(got.access.offset, 0x1122334455667788);
		assert_int_equal(got.access.region, VFU_REGION_CONFIG);
		return;
	}
	assert_int_equal(got.hdr.id, id);
	assert_int_equal(got.hdr.cmd, 0xfffe);
	assert_int_equal(got.hdr.size, sizeof(got));	/* the end of a message is the next header */
	assert_int_equal(got.hdr.flags, VFU_F_COMMAND | VFU_F_NO_REPLY);
}

/* A request that came since the loop looked a second ago is not late. */
static void test_age(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		t.stopped = LATE_NS + late;
		ask(late, VFU_REGION_READ, 0);
		expect_read(late, late);
	}
	ask(7, VFU_REGION_READ, 0);
	expect_read(7, false);
}

/* The process can also be stopped while it handles the request. */
static void test_stopped_in_handler(void **state)
{
	(void)state;
	t.handling = LATE_NS + 1;
	ask(1, VFU_REGION_READ, 0);
	expect_read(1, true);
}

/* Replies of which clients need the header only. Others stay, because a client needs them. */
static void test_commands(void **state)
{
	static const struct {
		uint16_t cmd;
		bool whole;
	} cmds[] = {
		{ VFU_DMA_MAP, false }, { VFU_DMA_UNMAP, false }, { VFU_REGION_WRITE, false },
		{ VFU_REGION_WRITE_MULTI, false }, { VFU_VERSION, true },
		{ VFU_DEVICE_GET_INFO, true }, { VFU_GET_REGION_INFO, true },
		{ VFU_GET_IRQ_INFO, true },
	};
	struct vfu_region_access access;

	(void)state;
	for (unsigned int i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		t.stopped = 0;
		ask(i, cmds[i].cmd, 0);
		reply(i, cmds[i].cmd, 0, &access, sizeof(access));
		t.stopped = LATE_NS + 1;
		ask(i, cmds[i].cmd, 0);
		reply(i, cmds[i].cmd, 0, &access, cmds[i].whole ? sizeof(access) : 0);
	}
}

/* An error has no payload at any time; a posted store has no reply. */
static void test_error(void **state)
{
	(void)state;
	t.stopped = LATE_NS + 1;
	t.result = -EINVAL;
	ask(1, VFU_REGION_READ, 0);
	reply(1, VFU_REGION_READ, EINVAL, NULL, 0);
	t.stopped = LATE_NS + 1;
	t.result = 0;
	ask(2, VFU_REGION_WRITE, VFU_F_NO_REPLY);
	assert_int_equal(t.requests, 2);
	ask(3, VFU_REGION_READ, 0);
	expect_read(3, false);
}

/* The client rejects the request that it saw. This ends nothing, and descriptors are not kept. */
static void test_echo(void **state)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct vfu_hdr echo = {
		.id = 1, .cmd = 0xfffe, .size = sizeof(echo),
		.flags = VFU_F_REPLY | VFU_F_ERROR, .error = EINVAL,
	};
	struct iovec iov = { &echo, sizeof(echo) };
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);
	unsigned int before = descriptors();
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), fds, sizeof(int));
	for (int i = 0; i < 100; i++) {
		assert_int_equal(sendmsg(t.client, &mh, 0), sizeof(echo));
		run();
	}
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(descriptors(), before);
	assert_int_equal(t.requests, 0);
	ask(2, VFU_REGION_READ, 0);
	expect_read(2, false);
}

/*
 * Requests behind one that waited may be as old as that one. Once the socket was empty, later ones
 * are young again.
 */
static void test_behind(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		t.wait = true;
		ask(1, VFU_DMA_MAP, 0);
		t.wait = false;
		ask(2, VFU_REGION_READ, 0);
		t.now += LATE_NS - 10 + 20 * late;
		vfu_conn_reply(t.conn, 0);
		reply(1, VFU_DMA_MAP, 0, NULL, 0);
		run();
		expect_read(2, late);
		t.now += LATE_NS;
		ask(3, VFU_REGION_READ, 0);
		expect_read(3, false);
	}
}

/* Send @n reads with one call, numbered from @id on. */
static void ask_many(uint16_t id, unsigned int n)
{
	struct {
		struct vfu_hdr hdr;
		struct vfu_region_access access;
	} m[VFU_SHARE + 1];

	for (unsigned int i = 0; i < n; i++) {
		m[i].hdr = (struct vfu_hdr) {
			.id = id + i, .cmd = VFU_REGION_READ, .size = sizeof(m[i]),
		};
		m[i].access = (struct vfu_region_access) {
			.offset = 0x1122334455667788, .region = VFU_REGION_CONFIG, .count = DATA,
		};
	}
	assert_int_equal(send(t.client, m, n * sizeof(m[0]), 0), n * sizeof(m[0]));
}

/* Return true if the next reply, of read @id, is a late one. */
static bool reply_is_late(uint16_t id)
{
	struct {
		struct vfu_hdr hdr;
		struct vfu_region_access access;
		uint8_t data[DATA];
	} got;

	assert_int_equal(recv(t.client, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(got.hdr.id, id);
	return got.access.offset != 0x1122334455667788;
}

/*
 * A share of the requests is handled. Those that are left, and those that came into the socket
 * meanwhile, wait further iterations and are as old as that. The ones behind them are young again,
 * also if they come much later.
 */
static void test_shares(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		t.now += 10 * LATE_NS;
		run();
		ask_many(0, VFU_SHARE + 1);
		run();
		for (int i = 0; i < VFU_SHARE; i++)
			assert_false(reply_is_late(i));
		ask_many(100, 1);
		t.stopped = (LATE_NS - 100) / 2 + 100 * late;
		run();
		assert_false(reply_is_late(VFU_SHARE));
		t.stopped = (LATE_NS - 100) / 2 + 100 * late;
		run();
		assert_int_equal(reply_is_late(100), late);
		run();
		t.now += 10 * LATE_NS;
		run();
		ask(7, VFU_REGION_READ, 0);
		expect_read(7, false);
	}
}

/* A request that waited, and nothing behind it: the next one is young, whenever it comes. */
static void test_nothing_behind(void **state)
{
	(void)state;
	t.wait = true;
	ask(1, VFU_DMA_MAP, 0);
	t.wait = false;
	vfu_conn_reply(t.conn, 0);
	reply(1, VFU_DMA_MAP, 0, NULL, 0);
	run();
	t.now += 10 * LATE_NS;
	run();
	ask(2, VFU_REGION_READ, 0);
	expect_read(2, false);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(age), TEST(stopped_in_handler), TEST(commands), TEST(error), TEST(echo),
		TEST(behind), TEST(shares), TEST(nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
