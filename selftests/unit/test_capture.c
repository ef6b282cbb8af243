// SPDX-License-Identifier: GPL-2.0
/*
 * capture/: blocks of a file to the byte, the packets that are captured, and files that cannot be
 * written.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/capture.h"
#include "capture/pcapng.h"
#include "lib/failing.h"
#include "lib/folder.h"
#include "lib/lines.h"
#include "lib/locks.h"
#include "lib/numbers.h"
#include "log.h"
#include "net/egress.h"
#include "packet/bth.h"
#include "packet/ip.h"
#include "packet/roce.h"
#include "version.h"

#define PACKETS		8
#define MTU		1024
#define NOW		5000
#define PIPE_ROOM	(4 << 20)
#define BLOCK_INTERFACE	1
#define BLOCK_STATISTICS 5
#define BLOCK_PACKET	6

/* ---- blocks ------------------------------------------------------------------ */

static void expect_block(const uint8_t *got, uint32_t len, const void *want, uint32_t want_len)
{
	assert_int_equal(len, want_len);
	assert_memory_equal(got, want, len);
	assert_int_equal(pcapng_whole(got, len), len);
	assert_int_equal(pcapng_whole(got, len - 1), 0);
}

/* Only the whole blocks of three count; a length of 0 or beyond the end ends the count. */
static void test_whole(void **state)
{
	static const uint32_t sizes[] = { 12, 28, 16 };
	uint8_t all[56] = { 0 };
	uint32_t at = 0, zero = 0, size = 13;

	(void)state;
	for (int i = 0; i < 3; at += sizes[i++])
		memcpy(all + at + 4, (uint8_t [4]) { sizes[i] }, 4);
	for (uint32_t n = 0; n <= sizeof(all); n++) {
		uint8_t *exact = malloc(n ? n : 1);

		memcpy(exact, all, n);
		assert_int_equal(pcapng_whole(exact, n),
				 n < 12 ? 0 : n < 40 ? 12 : n < 56 ? 40 : 56);
		free(exact);
	}
	memcpy(all + 16, &zero, sizeof(zero));
	assert_int_equal(pcapng_whole(all, sizeof(all)), 12);
	memcpy(all + 44, &size, sizeof(size));
	assert_int_equal(pcapng_whole(all + 40, 16), 13);
	size = 17;
	memcpy(all + 44, &size, sizeof(size));
	assert_int_equal(pcapng_whole(all + 40, 16), 0);
}

static void test_section_block(void **state)
{
	static const uint8_t want[] =
		"\x0a\x0d\x0d\x0a" "\x28\0\0\0" "\x4d\x3c\x2b\x1a" "\x01\0\0\0"
		"\xff\xff\xff\xff\xff\xff\xff\xff" "\x04\0\x03\0" "abc\0" "\0\0\0\0" "\x28\0\0\0";
	uint8_t got[PCAPNG_FIXED + PCAPNG_TEXT];

	(void)state;
	expect_block(got, pcapng_put_section(got, "abc"), want, sizeof(want) - 1);
}

static void test_interface_block(void **state)
{
	static const uint8_t want[] =
		"\x01\0\0\0" "\x30\0\0\0" "\x01\0\0\0" "\0\x02\0\0" "\x02\0\x03\0" "vm1\0"
		"\x03\0\x04\0" "kind" "\x09\0\x01\0" "\x09\0\0\0" "\0\0\0\0" "\x30\0\0\0";
	const struct pcapng_interface i = { .name = "vm1", .description = "kind", .snaplen = 512 };
	uint8_t got[PCAPNG_FIXED + 2 * PCAPNG_TEXT];

	(void)state;
	expect_block(got, pcapng_put_interface(got, &i), want, sizeof(want) - 1);
}

static void test_packet_block(void **state)
{
	static const uint8_t want[] =
		"\x06\0\0\0" "\x40\0\0\0" "\x02\0\0\0" "\x44\x33\x22\x11" "\x88\x77\x66\x55"
		"\x05\0\0\0" "\x08\0\0\0" "abcde\0\0\0" "\x01\0\x06\0" "reason\0\0"
		"\x02\0\x04\0" "\x09\0\0\0" "\0\0\0\0" "\x40\0\0\0";
	const struct seg piece[] = {
		{ (uint8_t *)"abc", 3 }, { NULL, 0 }, { (uint8_t *)"defgh", 5 },
	};
	struct pcapng_packet p = {
		.interface = 2,
		.ns = 0x1122334455667788,
		.flags = PCAPNG_INBOUND | PCAPNG_MULTICAST,
		.len = 8,
		.keep = 5,
		.piece = piece,
		.npieces = 3,
		.comment = "reason",
	};
	uint8_t got[PCAPNG_FIXED + PCAPNG_TEXT + 16];
	uint32_t len;

	(void)state;
	expect_block(got, pcapng_put_packet(got, &p), want, sizeof(want) - 1);
	assert_true(pcapng_packet_room(&p) >= sizeof(want) - 1);
	p.comment = NULL;
	p.keep = 8;
	len = pcapng_put_packet(got, &p);
	assert_int_equal(len, sizeof(want) - 1 - 12);
	assert_memory_equal(got + 28, "abcdefgh\x02\0\x04\0", 12);
}

static void test_long_texts(void **state)
{
	char text[2 * PCAPNG_TEXT];
	const struct pcapng_interface i = { .name = text, .description = text };
	struct pcapng_packet p = { .comment = text };
	uint8_t got[PCAPNG_FIXED + 2 * PCAPNG_TEXT];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(pcapng_put_interface(got, &i), 552);
	for (int n = 0; n < 2; n++) {	/* two options, cut to 256 bytes */
		const uint8_t want[] = { 2 + n, 0, 0, 1, 'x' };

		assert_memory_equal(got + 16 + n * 260, want, sizeof(want));
	}
	assert_true(pcapng_put_packet(got, &p) <= pcapng_packet_room(&p));
	assert_true(pcapng_put_section(got, text) <= PCAPNG_FIXED + PCAPNG_TEXT);
}

static void test_statistics_block(void **state)
{
	static const uint8_t want[] =
		"\x05\0\0\0" "\x4c\0\0\0" "\x01\0\0\0" "\x01\0\0\0\x02\0\0\0"
		"\x02\0\x08\0" "\x03\0\0\0\x04\0\0\0" "\x03\0\x08\0" "\x05\0\0\0\x06\0\0\0"
		"\x04\0\x08\0" "\x08\0\0\0\x07\0\0\0" "\x05\0\x08\0" "\x09\0\0\0\0\0\0\0"
		"\0\0\0\0" "\x4c\0\0\0";
	const struct pcapng_statistics s = {
		.interface = 1, .ns = 1ull << 32 | 2, .start_ns = 3ull << 32 | 4,
		.end_ns = 5ull << 32 | 6, .received = 7ull << 32 | 8, .dropped = 9,
	};
	uint8_t got[PCAPNG_STATISTICS];

	(void)state;
	assert_int_equal(pcapng_put_statistics(got, &s), PCAPNG_STATISTICS);
	expect_block(got, PCAPNG_STATISTICS, want, sizeof(want) - 1);
}

/* ---- the user's specification ------------------------------------------------ */

static void test_spec(void **state)
{
	struct capture_spec s, copy;
	char why[128];

	(void)state;
	assert_int_equal(capture_spec_parse(&s, "/tmp/x", why, sizeof(why)), 0);
	assert_string_equal(s.path, "/tmp/x");
	assert_int_equal(s.nports, 0);
	assert_false(s.one_qp);
	assert_int_equal(s.snaplen, CAPTURE_SNAPLEN);
	assert_int_equal(s.limit, 0);
	assert_int_equal(s.buffer, CAPTURE_BUFFER);
	capture_spec_free(&s);
	assert_int_equal(capture_spec_parse(&s, "-,device=a,port=b,device=c,qp=0x11,snaplen=96,limit=2G,buffer=4M",
					    why, sizeof(why)), 0);
	assert_int_equal(capture_spec_copy(&copy, &s), 0);
	capture_spec_free(&s);
	assert_string_equal(copy.path, "-");
	assert_int_equal(copy.nports, 3);
	assert_string_equal(copy.port[1].name, "b");
	assert_false(copy.port[1].device);
	assert_string_equal(copy.port[2].name, "c");
	assert_true(copy.port[2].device);
	assert_true(copy.one_qp);
	assert_int_equal(copy.qpn, 0x11);
	assert_int_equal(copy.snaplen, 96);
	assert_int_equal(copy.limit, 2ull << 30);
	assert_int_equal(copy.buffer, 4 << 20);
	capture_spec_free(&copy);
}

/* Each limit, and the values next to it */
static void test_spec_limits(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t value;
	} cases[] = {
		{ "f,limit=65535", false, 0 }, { "f,limit=65536", true, 65536 },
		{ "f,limit=63k", false, 0 }, { "f,limit=64k", true, 65536 },
		{ "f,limit=9223372036854775807", true, INT64_MAX },
		{ "f,limit=9223372036854775808", false, 0 },
		{ "f,buffer=1048575", false, 0 }, { "f,buffer=1048576", true, 1 << 20 },
		{ "f,buffer=1M", true, 1 << 20 }, { "f,buffer=1023k", false, 0 },
		{ "f,buffer=1G", true, 1 << 30 }, { "f,buffer=1073741824", true, 1 << 30 },
		{ "f,buffer=1073741825", false, 0 },
		{ "f,snaplen=64", true, 64 }, { "f,snaplen=63", false, 0 },
		{ "f,snaplen=262144", true, 262144 }, { "f,snaplen=256k", true, 262144 },
		{ "f,qp=0", true, 0 }, { "f,qp=0xffffff", true, 0xffffff },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = cases[i].text;
		struct capture_spec s;
		uint64_t value;
		char why[128];

		errno = ERANGE;		/* of an earlier call */
		if (capture_spec_parse(&s, text, why, sizeof(why)) != (cases[i].good ? 0 : -EINVAL))
			fail_msg("%s", text);
		value = strstr(text, "limit") ? s.limit : strstr(text, "buffer") ? s.buffer :
			strstr(text, "snaplen") ? s.snaplen : s.qpn;
		if (cases[i].good && value != cases[i].value)
			fail_msg("%s: %llu", text, (unsigned long long)value);
		if (cases[i].good)
			capture_spec_free(&s);
	}
}

#define NO_FILE		"no file: the form is FILE[,key=value]..."
#define NO_KEY		" is not one of device=, port=, qp=, snaplen=, limit=, buffer= with a value"
#define NUMBER_BAD	": not a number, or too small or too large"

static void test_spec_refused(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} bad[] = {
		{ "", NO_FILE },
		{ ",qp=1", NO_FILE },
		{ "f,qp", "\"qp\"" NO_KEY },
		{ "f,qp=", "\"qp\"" NO_KEY },
		{ "f,what=1", "\"what=1\"" NO_KEY },
		{ "f,qp=0x1000000", "qp=0x1000000" NUMBER_BAD },
		{ "f,qp=-1", "qp=-1" NUMBER_BAD },
		{ "f,qp=1k", "qp=1k" NUMBER_BAD },
		{ "f,snaplen=63", "snaplen=63" NUMBER_BAD },
		{ "f,snaplen=262145", "snaplen=262145" NUMBER_BAD },
		{ "f,snaplen=1M", "snaplen=1M" NUMBER_BAD },
		{ "f,limit=1", "limit=1" NUMBER_BAD },
		{ "f,limit=20000000000000000000", "limit=20000000000000000000" NUMBER_BAD },
		{ "f,limit=17179869184G", "limit=17179869184G" NUMBER_BAD },
		{ "f,limit=1x", "limit=1x" NUMBER_BAD },
		{ "f,limit=1Mb", "limit=1Mb" NUMBER_BAD },
		{ "f,buffer=2G", "buffer=2G" NUMBER_BAD },
	};
	char many[64 + 12 * CAPTURE_PORTS] = "f";
	struct capture_spec s;
	char why[128], want[128];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(capture_spec_parse(&s, bad[i].text, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, bad[i].why);
	}
	for (int i = 0; i <= CAPTURE_PORTS; i++)
		strcat(many, ",port=a");
	assert_int_equal(capture_spec_parse(&s, many, why, sizeof(why)), -EINVAL);
	snprintf(want, sizeof(want), "more than %d devices and ports", CAPTURE_PORTS);
	assert_string_equal(why, want);
}

/* ---- traffic ----------------------------------------------------------------- */

/**
 * struct block - a packet or interface block that was read back
 * @type:	of the block
 * @interface:	packet: interface
 * @ns:		packet and statistics: when
 * @len, @keep:	packet: bytes of the frame, and in the file
 * @data:	packet: frame; interface: name
 * @comment:	packet: comment or ""
 * @flags:	packet: flags
 * @start_ns, @end_ns, @received, @dropped: statistics
 */
struct block {
	uint32_t type;
	uint32_t interface;
	uint64_t ns;
	uint32_t len, keep;
	uint8_t *data;
	char comment[PCAPNG_TEXT + 1];
	uint32_t flags;
	uint64_t start_ns, end_ns;
	uint64_t received, dropped;
};

struct fixture {
	struct packet_pool pool;
	struct net_switch *sw;
	struct switch_port *vm[2];
	struct switch_port *lan;
	struct captures cs;
	char dir[32];
	char path[64];
	uint8_t *file;
	uint32_t file_len;
	uint32_t at;
	unsigned int fds;
};

/* Make the calls of the threads of captures end early or with an error that is none. */
static _Atomic bool interrupted;
static int ftruncate_error, poll_error;

/* Replaces the C library's: only the threads of captures write to files. */
ssize_t write(int fd, const void *bytes, size_t len)
{
	static const int errors[] = { EINTR, EAGAIN };
	static unsigned int calls;

	if (gettid() == getpid())
		return syscall(SYS_write, fd, bytes, len);
	locks_work();
	if (!interrupted)
		return syscall(SYS_write, fd, bytes, len);
	if (++calls % 3 == 2)
		return syscall(SYS_write, fd, bytes, (len + 1) / 2);
	errno = errors[calls % 3];
	return -1;
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
	static unsigned int calls;

	if (gettid() != getpid() && n != 1)
		abort();
	if (gettid() == getpid() || (!poll_error && (!interrupted || ++calls % 2)))
		return syscall(SYS_poll, fds, n, ms);
	errno = poll_error ? poll_error : EINTR;
	return -1;
}

int ftruncate(int fd, off_t len)
{
	if (gettid() == getpid() || !ftruncate_error)
		return syscall(SYS_ftruncate, fd, len);
	errno = ftruncate_error;
	return -1;
}

static bool no_fstat;

int fstat(int fd, struct stat *st)
{
	if (!no_fstat)
		return syscall(SYS_fstat, fd, st);
	errno = EIO;
	return -1;
}

static uint64_t now = NOW;

static uint64_t test_clock(void)
{
	return now;
}

static void deliver(void *arg, const struct packet *p)
{
	(void)arg;
	(void)p;
}

static const struct switch_port_ops ops = { .deliver = deliver };
static const uint8_t mac[2][6] = { { 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 2 } };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	log_setup(LOG_ERR, false);
	f->fds = descriptors();
	assert_int_equal(packet_pool_init(&f->pool, PACKETS), 0);
	f->sw = switch_new(&f->pool);
	f->lan = switch_port_add(f->sw, "lan", &ops, NULL);
	switch_port_set_up(f->lan, true);
	for (int i = 0; i < 2; i++) {
		f->vm[i] = switch_port_add(f->sw, i ? "vm2" : "vm1", &ops, NULL);
		assert_int_equal(switch_port_set_mac(f->vm[i], mac[i]), 0);
		switch_port_set_up(f->vm[i], true);
	}
	now = NOW;
	assert_int_equal(captures_init(&f->cs, f->sw, test_clock), 0);
	strcpy(f->dir, "/tmp/capture-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/file", f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	lines_drop();
	interrupted = false;
	ftruncate_error = 0;
	poll_error = 0;
	captures_fini(&f->cs);
	assert_int_equal(descriptors(), f->fds);
	assert_int_equal(locks_wrong(), 0);
	switch_free(f->sw);
	assert_int_equal(f->pool.nfree, PACKETS);
	packet_pool_fini(&f->pool);
	unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0);
	free(f->file);
	free(f);
	return 0;
}

static int try_start(struct fixture *f, const char *keys, char *why, size_t room)
{
	struct capture_spec spec;
	char text[256];
	uint32_t id;
	int err;

	snprintf(text, sizeof(text), "%s%s", f->path, keys);
	assert_int_equal(capture_spec_parse(&spec, text, why, room), 0);
	err = captures_start(&f->cs, &spec, &id, why, room);
	capture_spec_free(&spec);
	if (!err)
		assert_non_null(captures_find(&f->cs, id));
	return err;
}

static struct capture *start(struct fixture *f, const char *keys)
{
	uint32_t id = f->cs.last_id + 1;
	char why[256], want[256];
	sigset_t blocked;

	f->cs.log.account.lines = 0;
	lines_begin();
	if (try_start(f, keys, why, sizeof(why)))
		fail_msg("%s", why);
	snprintf(want, sizeof(want), "ornicd: capture %u: %s\n", id, f->path);
	lines_end(want);
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	assert_false(sigismember(&blocked, SIGTERM));	/* by this thread */
	assert_true(switch_is_observed(f->sw));
	return captures_find(&f->cs, id);
}

/* Wait until a capture has ended, and reap it. */
static void wait_ended(struct fixture *f)
{
	struct pollfd p = { .fd = f->cs.fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 20000), 1);
	captures_reap(&f->cs);
}

/* Reap until no capture is left; reaping takes back what the writers have reported. */
static void wait_reaped(struct fixture *f)
{
	struct pollfd p = { .fd = f->cs.fd, .events = POLLIN };

	while (f->cs.count)
		wait_ended(f);
	/* A writer reports its end after it has ended: the report may come after the reaping. */
	captures_reap(&f->cs);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_false(switch_is_observed(f->sw));
}

static void read_raw(struct fixture *f)
{
	int fd = open(f->path, O_RDONLY);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	f->file_len = st.st_size;
	f->file = realloc(f->file, st.st_size + 1);
	assert_int_equal(read(fd, f->file, st.st_size), st.st_size);
	close(fd);
}

static void read_file(struct fixture *f)
{
	read_raw(f);
	f->at = 0;
	assert_int_equal(pcapng_whole(f->file, f->file_len), f->file_len);
}

static void stop_and_read(struct fixture *f)
{
	struct capture *c = TAILQ_FIRST(&f->cs.list);
	char want[256];

	capture_stop(&f->cs, c);
	capture_stop(&f->cs, c);
	snprintf(want, sizeof(want), "ornicd: capture %u: %s: %lu frames written, %lu dropped\n", c->id,
		 c->spec.path, c->frames, c->dropped);
	lines_begin();
	wait_reaped(f);
	lines_end(want);
	read_file(f);
}

static uint32_t word(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

static uint64_t time_at(const uint8_t *at)
{
	return (uint64_t)word(at) << 32 | word(at + 4);
}

static void read_options(struct block *b, const uint8_t *at, const uint8_t *end)
{
	while (at < end && word(at) & 0xffff) {
		uint32_t code = word(at) & 0xffff, len = word(at) >> 16;

		if (b->type == BLOCK_PACKET && code == 1)
			memcpy(b->comment, at + 4, len);
		else if (b->type == BLOCK_PACKET && code == 2)
			b->flags = word(at + 4);
		else if (b->type == BLOCK_STATISTICS && code == 2)
			b->start_ns = time_at(at + 4);
		else if (b->type == BLOCK_STATISTICS && code == 3)
			b->end_ns = time_at(at + 4);
		else if (b->type == BLOCK_STATISTICS && code == 4)
			b->received = word(at + 4) | (uint64_t)word(at + 8) << 32;
		else if (b->type == BLOCK_STATISTICS && code == 5)
			b->dropped = word(at + 4) | (uint64_t)word(at + 8) << 32;
		at += 4 + (len + 3) / 4 * 4;
	}
}

/* Read the next block of the file. Return: false at its end. */
static bool next_block(struct fixture *f, struct block *b)
{
	uint8_t *at = f->file + f->at;
	uint32_t len;

	*b = (struct block) { 0 };
	if (f->at == f->file_len)
		return false;
	len = word(at + 4);
	assert_int_equal(word(at + len - 4), len);
	b->type = word(at);
	b->interface = word(at + 8);
	if (b->type == BLOCK_PACKET) {
		b->ns = time_at(at + 12);
		b->keep = word(at + 20);
		b->len = word(at + 24);
		b->data = at + 28;
		read_options(b, b->data + (b->keep + 3) / 4 * 4, at + len - 4);
	} else if (b->type == BLOCK_STATISTICS) {
		b->ns = time_at(at + 12);
		read_options(b, at + 20, at + len - 4);
	} else if (b->type == BLOCK_INTERFACE) {
		b->data = at + 20;
	}
	f->at += len;
	return true;
}

static void expect_type(struct fixture *f, struct block *b, uint32_t type)
{
	assert_true(next_block(f, b));
	assert_int_equal(b->type, type);
}

static void expect_bytes(struct fixture *f, const uint8_t *want, uint32_t len)
{
	assert_true(f->file_len - f->at >= len);
	assert_memory_equal(f->file + f->at, want, len);
	f->at += len;
}

static void expect_interfaces(struct fixture *f, const char *const *names, int n)
{
	uint8_t want[PCAPNG_FIXED + 2 * PCAPNG_TEXT];

	expect_bytes(f, want, pcapng_put_section(want, "ornicd " ORNICD_VERSION));
	for (int i = 0; i < n; i++) {
		const struct pcapng_interface port = {
			.name = names[i],
			.description = strcmp(names[i], "lan") ? "ornic device" : "port to the outside",
			.snaplen = CAPTURE_SNAPLEN,
		};

		expect_bytes(f, want, pcapng_put_interface(want, &port));
	}
}

static void expect_statistics(struct fixture *f, uint32_t interface, uint64_t received,
			      uint64_t dropped)
{
	struct block b;

	expect_type(f, &b, BLOCK_STATISTICS);
	assert_int_equal(b.interface, interface);
	assert_int_equal(b.received, received);
	assert_int_equal(b.dropped, dropped);
}

static void expect_end(struct fixture *f)
{
	struct block b;

	assert_false(next_block(f, &b));
}

static struct packet *roce(struct fixture *f, uint8_t *payload, uint32_t len)
{
	struct packet *p = packet_get(&f->pool);

	assert_non_null(p);
	p->kind = PACKET_ROCE;
	memcpy(p->dmac, mac[1], 6);
	memcpy(p->smac, mac[0], 6);
	ip_v4_gid(p->sgid, (uint8_t[]) { 10, 88, 0, 1 });
	ip_v4_gid(p->dgid, (uint8_t[]) { 10, 88, 0, 2 });
	p->udp_sport = 0xc000;
	p->hop_limit = 64;
	p->pkey = 0xffff;
	p->dqpn = 0x22;
	p->sqpn = 0x11;
	p->psn = 0xffffff;
	p->opcode = BTH_RC_SEND_ONLY;
	p->mtu = MTU;
	p->len = len;
	p->npsn = len > MTU ? (len + MTU - 1) / MTU : 1;
	p->seg[0] = (struct seg) { payload, len / 3 };
	p->seg[1] = (struct seg) { payload + len / 3, len - len / 3 };
	p->nseg = 2;
	return p;
}

static void send_roce(struct fixture *f, uint8_t *payload, uint32_t len)
{
	switch_send(f->vm[0], roce(f, payload, len));
	switch_drain(f->sw);
}

static void expect_frame(struct fixture *f, uint32_t interface, uint32_t flags, uint8_t opcode,
			 uint32_t psn, const uint8_t *payload, uint32_t len)
{
	struct packet p = { 0 };
	struct block b;

	expect_type(f, &b, BLOCK_PACKET);
	assert_int_equal(b.interface, interface);
	assert_int_equal(b.flags, flags);
	assert_int_equal(b.len, b.keep);
	assert_string_equal(b.comment, "");
	assert_int_equal(roce_parse(&p, b.data, b.len), ROCE_PACKET);
	assert_int_equal(p.opcode, opcode);
	assert_int_equal(p.psn, psn);
	assert_int_equal(p.len, len);
	assert_memory_equal(p.seg[0].ptr, payload, len);
}

/* One packet of the daemon is three packets of the wire, captured at its entry and its exit. */
static void test_zero_copy(void **state)
{
	static const char *const names[] = { "lan", "vm1", "vm2" };
	static const uint8_t opcodes[] = {
		BTH_RC_SEND_FIRST, BTH_RC_SEND_MIDDLE, BTH_RC_SEND_LAST,
	};
	struct fixture *f = *state;
	uint8_t payload[2 * MTU + 5];

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = i * 7 + i / 256;
	start(f, "");
	send_roce(f, payload, sizeof(payload));
	stop_and_read(f);
	expect_interfaces(f, names, 3);
	for (int way = 0; way < 2; way++)
		for (int i = 0; i < 3; i++)
			expect_frame(f, way + 1, PCAPNG_UNICAST | (way ? PCAPNG_OUTBOUND : PCAPNG_INBOUND),
				     opcodes[i], (0xffffff + i) & 0xffffff, payload + i * MTU,
				     i < 2 ? MTU : 5);
	expect_statistics(f, 0, 0, 0);
	expect_statistics(f, 1, 3, 0);
	expect_statistics(f, 2, 3, 0);
	expect_end(f);
}

/* A frame from outside is written unchanged, with its comment. */
static void test_frame_and_note(void **state)
{
	static const char *const names[] = { "lan", "vm1", "vm2" };
	struct fixture *f = *state;
	uint8_t frame[77] = "any bytes";
	struct packet p = { .kind = PACKET_ROCE, .frame = { frame, sizeof(frame) }, .len = 3,
			    .dmac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } };
	struct block b;

	start(f, "");
	now += 1234567;
	switch_observe(f->lan, SWITCH_IN, &p, "dropped by fault rule 3");
	stop_and_read(f);
	expect_interfaces(f, names, 3);
	expect_type(f, &b, BLOCK_PACKET);
	assert_int_equal(b.interface, 0);
	assert_int_equal(b.flags, PCAPNG_INBOUND | PCAPNG_BROADCAST);
	assert_int_equal(b.len, sizeof(frame));
	assert_memory_equal(b.data, frame, sizeof(frame));
	assert_string_equal(b.comment, "dropped by fault rule 3");
}

/* A frame of a guest in pieces, by the kind of its destination; pieces may be empty. */
static void test_pieces(void **state)
{
	static const char *const names[] = { "lan", "vm1", "vm2" };
	static const struct {
		uint8_t dmac[6];
		uint32_t flag;
	} cases[] = {
		{ { 2, 0, 0, 0, 0, 1 }, PCAPNG_UNICAST },
		{ { 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff }, PCAPNG_UNICAST },
		{ { 1, 0, 0x5e, 0, 0, 1 }, PCAPNG_MULTICAST },
		{ { 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe }, PCAPNG_MULTICAST },
		{ { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, PCAPNG_BROADCAST },
	};
	struct fixture *f = *state;
	uint8_t bytes[99];
	struct packet p = {
		.kind = PACKET_ETHERNET, .len = sizeof(bytes), .nseg = 3,
		.seg = { { bytes, 14 }, { bytes, 0 }, { bytes + 14, sizeof(bytes) - 14 } },
	};
	struct block b;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i * 3;
	start(f, "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(p.dmac, cases[i].dmac, 6);
		switch_observe(f->vm[0], i % 2 ? SWITCH_IN : SWITCH_OUT, &p, NULL);
	}
	stop_and_read(f);
	expect_interfaces(f, names, 3);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		expect_type(f, &b, BLOCK_PACKET);
		assert_int_equal(b.interface, 1);
		assert_int_equal(b.flags,
				 cases[i].flag | (i % 2 ? PCAPNG_INBOUND : PCAPNG_OUTBOUND));
		assert_int_equal(b.len, sizeof(bytes));
		assert_int_equal(b.keep, sizeof(bytes));
		assert_memory_equal(b.data, bytes, sizeof(bytes));
	}
}

/* Time stamps show the time of day in ns, and their differences follow the daemon's clock. */
static void test_stamps(void **state)
{
	static const char *const names[] = { "vm1" };
	struct fixture *f = *state;
	uint8_t payload[4] = "abc";
	struct timespec ts;
	struct block a, b, s;
	uint64_t day;

	clock_gettime(CLOCK_REALTIME, &ts);
	day = ts.tv_sec * 1000000000ull + ts.tv_nsec;
	start(f, ",device=vm1");
	send_roce(f, payload, sizeof(payload));
	now += 1000000007;
	send_roce(f, payload, sizeof(payload));
	now += 1009;
	stop_and_read(f);
	expect_interfaces(f, names, 1);
	expect_type(f, &a, BLOCK_PACKET);
	expect_type(f, &b, BLOCK_PACKET);
	assert_true(a.ns >= day && a.ns - day < 60000000000ull);
	assert_int_equal(b.ns - a.ns, 1000000007);
	expect_type(f, &s, BLOCK_STATISTICS);
	assert_int_equal(s.ns - b.ns, 1009);
	assert_int_equal(s.end_ns, s.ns);
	assert_int_equal(s.start_ns, a.ns);
}

static uint32_t count_frames(struct fixture *f, uint32_t *keep)
{
	uint32_t n = 0;
	struct block b;

	while (next_block(f, &b)) {
		n += b.type == BLOCK_PACKET;
		if (b.type == BLOCK_PACKET)
			*keep = b.keep;
	}
	return n;
}

static uint32_t frames_with(struct fixture *f, const char *keys, uint32_t *keep)
{
	uint8_t payload[500] = "x";
	struct packet *p;

	unlink(f->path);
	start(f, keys);
	send_roce(f, payload, sizeof(payload));
	p = roce(f, payload, sizeof(payload));
	p->kind = PACKET_ETHERNET;
	switch_send(f->vm[0], p);
	switch_drain(f->sw);
	stop_and_read(f);
	return count_frames(f, keep);
}

static void test_filters(void **state)
{
	struct fixture *f = *state;
	struct block b;
	uint32_t keep;

	assert_int_equal(frames_with(f, "", &keep), 4);
	assert_int_equal(frames_with(f, ",device=vm1", &keep), 2);
	assert_int_equal(frames_with(f, ",device=vm1,device=vm2", &keep), 4);
	assert_int_equal(frames_with(f, ",port=lan", &keep), 0);
	assert_int_equal(frames_with(f, ",qp=0x11", &keep), 2);
	assert_int_equal(frames_with(f, ",qp=0x22,device=vm2", &keep), 1);
	assert_int_equal(frames_with(f, ",qp=0x33", &keep), 0);
	assert_int_equal(frames_with(f, ",qp=0x22,snaplen=100", &keep), 2);
	assert_int_equal(keep, 100);
	f->at = 0;
	expect_type(f, &b, 0x0a0d0d0a);
	expect_type(f, &b, BLOCK_INTERFACE);
	assert_int_equal(word(b.data - 8), 100);
}

/*
 * qp= finds the packets of a connected queue pair, whose number they do not contain, also where
 * they leave a rate-limited link or are dropped because its queue is full.
 */
static void test_filter_at_slow_link(void **state)
{
	const struct egress_param slow = { .kbps = 1000, .queue = EGRESS_MIN_QUEUE,
					   .kmin = EGRESS_MIN_QUEUE, .kmax = EGRESS_MIN_QUEUE };
	uint8_t payload[900] = "x";
	struct fixture *f = *state;
	struct timers timers;
	uint32_t keep;

	timers_init(&timers);
	switch_set_time(f->sw, &timers, &now);
	assert_int_equal(switch_port_limit(f->vm[1], &slow), 0);
	start(f, ",qp=0x11,device=vm2");
	for (int i = 0; i < 20; i++)
		send_roce(f, payload, sizeof(payload));
	assert_int_equal(egress_stats(switch_port_egress(f->vm[1]))->dropped, 10);
	now += 1000000000;
	timers_run(&timers, now);
	assert_int_equal(egress_stats(switch_port_egress(f->vm[1]))->frames, 10);
	stop_and_read(f);
	assert_int_equal(count_frames(f, &keep), 20);
	assert_int_equal(switch_port_limit(f->vm[1], NULL), 0);
	timers_fini(&timers);
}

/* Later ports become interfaces too; a new port is not mistaken for the one it replaces. */
static void test_later_port(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[60] = { 0 };
	struct packet p = { .frame = { bytes, sizeof(bytes) } };
	struct switch_port *port;
	struct block b;

	start(f, "");
	for (int i = 0; i < 40; i++) {
		port = switch_port_add(f->sw, "later", &ops, NULL);
		switch_observe(port, SWITCH_OUT, &p, NULL);
		switch_port_del(port);
	}
	stop_and_read(f);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(next_block(f, &b));
	for (uint32_t i = 0; i < 40; i++) {
		expect_type(f, &b, BLOCK_INTERFACE);
		assert_memory_equal(b.data, "later", 5);
		expect_type(f, &b, BLOCK_PACKET);
		assert_int_equal(b.interface, 3 + i);
	}
	for (uint32_t i = 0; i < 43; i++)
		expect_statistics(f, i, i >= 3, 0);
	expect_end(f);
}

static void test_two_captures(void **state)
{
	struct fixture *f = *state;
	char first[sizeof(f->path)], why[128], want[128];
	uint8_t payload[4] = "x";
	uint32_t keep;

	start(f, "");
	strcpy(first, f->path);
	strcat(f->path, "2");
	start(f, ",device=vm2");
	send_roce(f, payload, sizeof(payload));
	capture_stop(&f->cs, TAILQ_FIRST(&f->cs.list));
	send_roce(f, payload, sizeof(payload));
	capture_stop(&f->cs, TAILQ_LAST(&f->cs.list, capture_list));
	wait_reaped(f);
	send_roce(f, payload, sizeof(payload));
	read_file(f);
	assert_int_equal(count_frames(f, &keep), 2);
	unlink(f->path);
	strcpy(f->path, first);
	read_file(f);
	assert_int_equal(count_frames(f, &keep), 2);
	unlink(f->path);
	for (int i = 0; i < CAPTURES; i++) {
		start(f, "");
		unlink(f->path);
	}
	assert_int_equal(try_start(f, "", why, sizeof(why)), -EBUSY);
	snprintf(want, sizeof(want), "%d captures run, the most possible: stop one", CAPTURES);
	assert_string_equal(why, want);
	assert_int_not_equal(access(f->path, F_OK), 0);
}

/* ---- files that cannot be written -------------------------------------------- */

static void test_limit(void **state)
{
	struct fixture *f = *state;
	uint8_t payload[MTU] = "x";
	uint32_t n, keep;

	start(f, ",limit=100k");
	for (int i = 0; i < 1000; i++)
		send_roce(f, payload, sizeof(payload));
	wait_reaped(f);		/* it stopped by itself */
	read_file(f);
	assert_true(f->file_len <= 100 << 10);
	assert_true(f->file_len > 98 << 10);
	n = count_frames(f, &keep);
	assert_in_range(n, 80, 95);
	f->at = f->file_len - 3 * 76;
	expect_statistics(f, 0, 0, 0);
	expect_statistics(f, 1, (n + 1) / 2, 0);
	expect_statistics(f, 2, n / 2, 0);
}

/* A capture takes as many frames as fit before the statistics of its ports. */
static void test_limit_is_used(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[400] = { 0 };

	for (uint32_t len = 60; len < sizeof(bytes); len += 4) {
		struct packet p = { .frame = { bytes, len } };
		const struct pcapng_packet next = { .len = len, .keep = len };
		struct capture *c = start(f, ",limit=64k");

		while (!c->ending)
			switch_observe(f->lan, SWITCH_IN, &p, NULL);
		wait_reaped(f);
		read_file(f);
		assert_in_range(f->file_len, (64 << 10) - pcapng_packet_room(&next) + 1, 64 << 10);
		unlink(f->path);
	}
}

/* End a capture, unless its limit did, and remove its file. */
static void wait_limited(struct fixture *f, struct capture *c)
{
	capture_stop(&f->cs, c);
	wait_reaped(f);
	unlink(f->path);
}

/* Blocks of interfaces and statistics count, too: the last block before the limit may be any. */
static void test_limit_of_later_ports(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[400] = { 0 };
	char name[PCAPNG_TEXT];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (uint32_t len = 60; len < sizeof(bytes); len += 4) {
		struct packet p = { .frame = { bytes, len } };

		start(f, ",limit=64k");
		for (int i = 0; i < 400; i++) {
			struct switch_port *port = switch_port_add(f->sw, name, &ops, NULL);

			switch_observe(port, SWITCH_OUT, &p, NULL);
			switch_port_del(port);
		}
		wait_reaped(f);		/* it stopped by itself */
		read_file(f);
		assert_in_range(f->file_len, 62 << 10, 64 << 10);
		unlink(f->path);
	}
}

/* Show a short frame at a port. */
static void observe_short(struct switch_port *port)
{
	uint8_t bytes[60] = { 0 };
	struct packet p = { .frame = { bytes, sizeof(bytes) } };

	switch_observe(port, SWITCH_IN, &p, NULL);
}

/* A capture that ends because the block of a later port exceeds its limit takes no frame of it. */
static void test_limit_at_interface(void **state)
{
	struct fixture *f = *state;
	struct switch_port *later = switch_port_add(f->sw, "later", &ops, NULL);
	struct capture *c = start(f, ",limit=64k,port=lan,port=later");
	uint32_t n, keep;

	switch_port_del(later);
	/* the block of an interface and statistics of three must not fit */
	while (!c->ending && c->bytes + PCAPNG_FIXED + 2 * PCAPNG_TEXT + 3 * PCAPNG_STATISTICS <=
	       64 << 10)
		observe_short(f->lan);
	assert_false(c->ending);
	n = c->frames;
	later = switch_port_add(f->sw, "later", &ops, NULL);
	observe_short(later);
	assert_true(c->ending);
	assert_int_equal(c->frames, n);
	assert_int_equal(c->dropped, 0);
	wait_reaped(f);
	read_file(f);
	assert_int_equal(count_frames(f, &keep), n);
}

/* A capture may have as many bytes as its limit says, also with the block of a later port. */
static void test_interface_below_limit(void **state)
{
	struct fixture *f = *state;
	struct switch_port *later = switch_port_add(f->sw, "later", &ops, NULL);
	struct capture *c = start(f, ",limit=64k,port=lan,port=later");
	uint32_t most = (64 << 10) - PCAPNG_FIXED - 2 * PCAPNG_TEXT - 3 * PCAPNG_STATISTICS;
	uint32_t short_block;

	switch_port_del(later);
	short_block = c->bytes;
	observe_short(f->lan);
	short_block = c->bytes - short_block;
	assert_true(short_block < PCAPNG_TEXT);
	while (c->bytes + short_block <= most)
		observe_short(f->lan);
	observe_short(switch_port_add(f->sw, "later", &ops, NULL));
	assert_int_equal(c->interfaces, 3);
}

/* The limit to the byte: with the statistics of all interfaces, also of the next one */
static void test_exact_limit(void **state)
{
	const uint64_t later_room = PCAPNG_FIXED + 2 * PCAPNG_TEXT + 3 * PCAPNG_STATISTICS;
	const struct pcapng_packet frame = { .len = 60, .keep = 60 };
	struct fixture *f = *state;

	for (unsigned int over = 0; over < 2; over++) {
		struct switch_port *later = switch_port_add(f->sw, "later", &ops, NULL);
		struct capture *c = start(f, ",limit=64k,port=lan,port=later");

		switch_port_del(later);
		c->bytes = (64 << 10) - pcapng_packet_room(&frame) - 2 * PCAPNG_STATISTICS + over;
		observe_short(f->lan);
		assert_int_equal(c->ending, over);
		assert_int_equal(c->frames, !over);
		wait_limited(f, c);
		c = start(f, ",limit=64k,port=lan");
		later = switch_port_add(f->sw, "later", &ops, NULL);
		c->spec.nports = 0;
		c->bytes = (64 << 10) - later_room + PCAPNG_STATISTICS + over;
		observe_short(later);
		assert_int_equal(c->ending, over);
		assert_int_equal(c->interfaces, 2 - over);
		c->spec.nports = 1;
		switch_port_del(later);
		wait_limited(f, c);
	}
}

/* Limit the size of files that this process writes. Return: the limit before, for setrlimit(). */
static struct rlimit limit_files(rlim_t bytes)
{
	struct rlimit old, small;

	log_setup(LOG_ERR - 1, false);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit) { bytes, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	return old;
}

/* Return the error of the capture that failed last. */
static int last_error(struct fixture *f)
{
	struct capture *c;

	TAILQ_FOREACH(c, &f->cs.list, link)
		if (c->err && c->failure == f->cs.failures)
			return c->err;
	fail();
	return 0;
}

static void test_disk_full(void **state)
{
	struct fixture *f = *state;
	uint8_t payload[MTU] = "x";
	uint32_t n, keep;
	struct rlimit old;

	start(f, "");
	old = limit_files(1 << 20);
	for (int i = 0; i < 2000; i++)
		send_roce(f, payload, sizeof(payload));
	wait_reaped(f);		/* it ends by itself */
	setrlimit(RLIMIT_FSIZE, &old);
	read_file(f);		/* with a whole block */
	assert_true(f->file_len <= 1 << 20);
	n = count_frames(f, &keep);
	assert_in_range(n, (1 << 20) / 1250, (1 << 20) / MTU);
	assert_true(f->sw && !f->cs.count);
	assert_int_equal(last_error(f), -EFBIG);
	send_roce(f, payload, sizeof(payload));
}

/* A file that has no room, and cannot be cut to whole blocks */
static void test_not_truncated(void **state)
{
	struct fixture *f = *state;
	struct rlimit old;

	start(f, "");
	ftruncate_error = EIO;
	old = limit_files(4096);
	for (int i = 0; i < 100; i++)
		observe_short(f->lan);
	wait_reaped(f);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(last_error(f), -EIO);
	log_setup(LOG_ERR, false);
}

/* Make the capture fail that has frames of @port only. */
static void fail_at(struct fixture *f, struct switch_port *port)
{
	uint8_t bytes[4096] = { 0 };
	struct packet p = { .frame = { bytes, sizeof(bytes) } };
	struct rlimit old = limit_files(sizeof(bytes));
	uint32_t count = f->cs.count;
	char want[256];

	lines_begin();
	switch_observe(port, SWITCH_OUT, &p, NULL);
	wait_ended(f);
	setrlimit(RLIMIT_FSIZE, &old);
	snprintf(want, sizeof(want), "ornicd: error: capture %u: cannot write %s: File too large; "
		 "the capture ended early\n", port == f->lan ? 1 : f->cs.last_id, f->path);
	lines_end(want);
	assert_int_equal(last_error(f), -EFBIG);
	assert_int_equal(f->cs.count, count - 1);
}

/* Failed captures are forgotten in the order in which they failed, not in that of their starts. */
static void test_last_failures(void **state)
{
	struct fixture *f = *state;

	start(f, ",port=lan");
	for (uint32_t id = 2; id <= CAPTURES + 1; id++) {
		unlink(f->path);
		start(f, ",device=vm1");
		fail_at(f, f->vm[0]);
	}
	assert_non_null(captures_find(&f->cs, 2));
	fail_at(f, f->lan);
	assert_int_equal(f->cs.count, 0);
	assert_int_equal(f->cs.failed, CAPTURES);
	assert_non_null(captures_find(&f->cs, 1));
	assert_null(captures_find(&f->cs, 2));
	for (uint32_t id = 3; id <= CAPTURES + 1; id++)
		assert_non_null(captures_find(&f->cs, id));
}

static void test_file_exists(void **state)
{
	struct fixture *f = *state;
	int fd = open(f->path, O_CREAT | O_WRONLY, 0600);
	char why[256], target[80], want[256];

	assert_int_equal(write(fd, "precious", 8), 8);
	close(fd);
	assert_int_equal(try_start(f, "", why, sizeof(why)), -EEXIST);
	snprintf(want, sizeof(want), "%s exists: remove it or choose another name", f->path);
	assert_string_equal(why, want);
	read_raw(f);
	assert_memory_equal(f->file, "precious", 8);
	snprintf(target, sizeof(target), "%s/target", f->dir);
	unlink(f->path);
	assert_int_equal(symlink(target, f->path), 0);
	assert_int_equal(try_start(f, "", why, sizeof(why)), -EEXIST);
	assert_int_not_equal(access(target, F_OK), 0);
}

/* No name of the file of a running capture is accepted for another one. */
static void test_one_file_for_two(void **state)
{
	struct fixture *f = *state;
	char file[sizeof(f->path)], why[256];

	start(f, "");
	strcpy(file, f->path);
	snprintf(f->path, sizeof(f->path), "%s/./file", f->dir);
	assert_int_equal(try_start(f, "", why, sizeof(why)), -EEXIST);
	snprintf(f->path, sizeof(f->path), "%s/other", f->dir);
	assert_int_equal(link(file, f->path), 0);
	assert_int_equal(try_start(f, "", why, sizeof(why)), -EEXIST);
	unlink(f->path);
	assert_int_equal(symlink(file, f->path), 0);
	assert_int_equal(try_start(f, "", why, sizeof(why)), -EEXIST);
	unlink(f->path);
	strcpy(f->path, file);
	assert_int_equal(f->cs.count, 1);
}

static void test_refused(void **state)
{
	struct fixture *f = *state;
	char why[256], path[sizeof(f->path)];

	assert_int_equal(try_start(f, ",device=lan", why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "there is no device lan");
	assert_int_equal(try_start(f, ",device=vm1,port=vm1", why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "there is no port vm1");
	assert_int_not_equal(access(f->path, F_OK), 0);
	strcpy(path, f->path);
	strcpy(f->path, "/nosuchdir/x");
	assert_int_equal(try_start(f, "", why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "cannot write /nosuchdir/x: No such file or directory");
	strcpy(f->path, path);
	assert_int_equal(f->cs.count, 0);
}

/* Check that no descriptor of the file of @path survives an exec. Return: their number. */
static unsigned int files_of(const char *path)
{
	struct stat want, st;
	unsigned int n = 0;

	assert_int_equal(stat(path, &want), 0);
	for (int fd = STDERR_FILENO + 1; fd < 64; fd++) {
		if (fstat(fd, &st) || st.st_ino != want.st_ino || st.st_dev != want.st_dev)
			continue;
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		n++;
	}
	return n;
}

/* An output that cannot be examined is not used, and a file made for it is removed. */
static void test_not_examined(void **state)
{
	struct fixture *f = *state;
	char why[256], want[256];

	no_fstat = true;
	assert_int_equal(try_start(f, "", why, sizeof(why)), -EIO);
	no_fstat = false;
	snprintf(want, sizeof(want), "cannot examine %s: Input/output error", f->path);
	assert_string_equal(why, want);
	assert_int_not_equal(access(f->path, F_OK), 0);
	start(f, "");
	assert_int_equal(files_of(f->path), 1);
}

/* One capture at a time writes to standard output. */
static void test_standard_output(void **state)
{
	struct fixture *f = *state;
	char path[sizeof(f->path)], why[256] = "";
	int kept = dup(STDOUT_FILENO), fd = open(f->path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	int errs[2];
	unsigned int n;

	strcpy(path, f->path);
	strcpy(f->path, "-");
	dup2(fd, STDOUT_FILENO);
	for (int i = 0; i < 2; i++)
		errs[i] = try_start(f, "", why, sizeof(why));
	dup2(kept, STDOUT_FILENO);
	close(kept);
	close(fd);
	strcpy(f->path, path);
	n = files_of(path);
	assert_int_equal(errs[0], 0);
	assert_int_equal(errs[1], -EBUSY);
	assert_string_equal(why, "another capture writes to standard output: choose a file");
	assert_int_equal(n, 1);
	assert_false(TAILQ_FIRST(&f->cs.list)->created);	/* so it is never removed */
	observe_short(f->lan);
	stop_and_read(f);
	assert_int_equal(count_frames(f, &n), 1);
}

/* Read the bytes that a pipe has now. */
static void read_pipe(struct fixture *f, int fd)
{
	ssize_t got;

	while ((got = read(fd, f->file + f->file_len, PIPE_ROOM - f->file_len)) > 0)
		f->file_len += got;
}

/* Stop the capture to a pipe, and read the rest of it. */
static void stop_and_read_pipe(struct fixture *f, int fd)
{
	capture_stop(&f->cs, TAILQ_FIRST(&f->cs.list));
	for (int i = 0; f->cs.count && i < 10000; i++) {
		read_pipe(f, fd);
		usleep(1000);
		captures_reap(&f->cs);
	}
	read_pipe(f, fd);
	close(fd);
	assert_int_equal(f->cs.count, 0);
	assert_int_equal(pcapng_whole(f->file, f->file_len), f->file_len);
}

static int open_pipe(struct fixture *f)
{
	assert_int_equal(mkfifo(f->path, 0600), 0);
	f->file = malloc(PIPE_ROOM);
	assert_non_null(f->file);
	return open(f->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

/*
 * A pipe whose reader sleeps: traffic continues, the capture counts dropped frames, and the
 * reader gets all accepted frames later.
 */
static void test_slow_reader(void **state)
{
	struct fixture *f = *state;
	uint8_t payload[MTU] = "x";
	uint32_t n, keep;
	struct capture *c;
	char why[256], want[256];
	int fd = open_pipe(f);

	close(fd);
	assert_int_equal(try_start(f, "", why, sizeof(why)), -ENXIO);
	snprintf(want, sizeof(want), "the pipe %s has no reader: start the reader first", f->path);
	assert_string_equal(why, want);
	fd = open(f->path, O_RDONLY | O_NONBLOCK);
	c = start(f, ",buffer=1M");
	for (int i = 0; i < 1000; i++)
		send_roce(f, payload, sizeof(payload));
	assert_in_range(c->dropped, 900, 1300);
	assert_int_equal(c->dropped + c->frames, 2000);
	n = c->frames;
	stop_and_read_pipe(f, fd);
	assert_int_equal(count_frames(f, &keep), n);
	f->at = f->file_len - 2 * 76;
	expect_statistics(f, 1, 1000, 1000 - (n + 1) / 2);
	expect_statistics(f, 2, 1000, 1000 - n / 2);
	expect_end(f);
}

/* Signals and short writes: file and pipe get every byte once. */
static void test_interrupted(void **state)
{
	struct fixture *f = *state;
	uint8_t payload[MTU] = "x";
	uint32_t n, keep;
	int fd;

	interrupted = true;
	ftruncate_error = EIO;	/* which is needed after an error only */
	start(f, "");
	for (int i = 0; i < 1000; i++)
		send_roce(f, payload, sizeof(payload));
	stop_and_read(f);
	assert_int_equal(count_frames(f, &keep), 2000);
	unlink(f->path);
	free(f->file);
	fd = open_pipe(f);
	f->file_len = 0;
	f->at = 0;
	n = start(f, "")->frames;
	for (int i = 0; i < 100; i++)
		send_roce(f, payload, sizeof(payload));
	stop_and_read_pipe(f, fd);
	assert_int_equal(count_frames(f, &keep), n + 200);
}

/* A pipe that cannot be waited for */
static void test_no_poll(void **state)
{
	struct fixture *f = *state;
	int fd = open_pipe(f);

	log_setup(LOG_ERR - 1, false);
	poll_error = ENOMEM;
	start(f, "");
	wait_reaped(f);
	assert_int_equal(last_error(f), -ENOMEM);
	close(fd);
}

/* A start that fails later removes the files that captures created, and nothing else. */
static void test_undo(void **state)
{
	struct fixture *f = *state;
	char pipe[sizeof(f->path)];
	int fd = open_pipe(f);

	assert_false(start(f, "")->created);
	strcpy(pipe, f->path);
	strcat(f->path, "2");
	assert_true(start(f, "")->created);
	captures_undo(&f->cs);
	assert_true(TAILQ_EMPTY(&f->cs.list));
	assert_int_equal(f->cs.count, 0);
	assert_false(switch_is_observed(f->sw));
	assert_int_equal(access(f->path, F_OK), -1);
	strcpy(f->path, pipe);
	assert_int_equal(access(f->path, F_OK), 0);
	close(fd);
}

/* A second capture to the same pipe is rejected, also by another name, until the first has ended. */
static void test_one_pipe_for_two(void **state)
{
	struct fixture *f = *state;
	char why[256], want[256], path[sizeof(f->path)];
	int fd = open_pipe(f);
	struct capture *c = start(f, "");

	strcpy(path, f->path);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(try_start(f, "", why, sizeof(why)), -EBUSY);
		snprintf(want, sizeof(want),
			 "capture %u writes to %s: stop it or choose another name", c->id, f->path);
		assert_string_equal(why, want);
		strcat(f->path, "2");
		if (!i)
			assert_int_equal(link(path, f->path), 0);
	}
	assert_int_equal(symlink(path, f->path), 0);
	assert_int_equal(try_start(f, "", why, sizeof(why)), -EEXIST);
	unlink(f->path);
	strcpy(f->path, path);
	assert_int_equal(f->cs.count, 1);
	assert_int_equal(files_of(path), 2);	/* with the reader's */
	stop_and_read_pipe(f, fd);
	fd = open(f->path, O_RDONLY | O_NONBLOCK);
	start(f, "");
	f->file_len = 0;
	stop_and_read_pipe(f, fd);
	strcat(path, "2");
	unlink(path);
}

/* Show a packet of three frames at a port. */
static void observe_three(struct fixture *f, struct switch_port *port)
{
	static uint8_t payload[2 * MTU + 1];
	struct packet *p = roce(f, payload, sizeof(payload));

	switch_observe(port, SWITCH_OUT, p, NULL);
	packet_put(&f->pool, p);
}

/* Fill the ring of a capture to a pipe that nobody reads, until one frame is dropped. */
static void fill(struct fixture *f, struct capture *c)
{
	uint64_t dropped = c->dropped;

	for (int i = 0; i < 100000 && c->dropped == dropped; i++)
		observe_short(f->lan);
	assert_int_equal(c->dropped, dropped + 1);
}

/* Read the pipe until the ring of its capture is empty. */
static void empty(struct fixture *f, struct capture *c, int fd)
{
	for (int i = 0; f->file_len < c->bytes && i < 10000; i++) {
		usleep(1000);
		read_pipe(f, fd);
	}
	assert_int_equal(f->file_len, c->bytes);
}

/* A ring that was emptied has as much room as before, and no more; it wraps around. */
static void test_full_ring_again(void **state)
{
	struct fixture *f = *state;
	int fd = open_pipe(f);
	struct capture *c = start(f, ",buffer=1M");
	uint32_t keep, n;

	for (int i = 0; i < 3; i++) {
		uint64_t before = c->bytes;

		fill(f, c);
		/* the pipe takes 64 KiB meanwhile; the last chunk, of 256 KiB, may be freed late */
		assert_in_range(c->bytes - before, (1 << 20) - (260 << 10), (1 << 20) + (68 << 10));
		empty(f, c, fd);
	}
	n = c->frames;
	stop_and_read_pipe(f, fd);
	assert_int_equal(count_frames(f, &keep), n);
}

/*
 * A port that is added while the ring is full: its frames count as dropped although its interface
 * block does not fit, but not if the capture does not want the port.
 */
static void test_later_port_of_a_full_ring(void **state)
{
	struct fixture *f = *state;
	struct switch_port *later = switch_port_add(f->sw, "later", &ops, NULL), *other;
	uint8_t bytes[60] = { 0 };
	const struct packet plain = { .kind = PACKET_ETHERNET, .npsn = 3 };
	const struct packet frame = { .kind = PACKET_ROCE, .npsn = 3, .frame = { bytes, 60 } };
	int fd = open_pipe(f);
	struct capture *c = start(f, ",buffer=1M,port=lan,port=later");

	switch_port_del(later);
	fill(f, c);
	later = switch_port_add(f->sw, "later", &ops, NULL);
	other = switch_port_add(f->sw, "other", &ops, NULL);
	observe_three(f, later);
	assert_int_equal(c->dropped, 4);
	observe_three(f, later);
	assert_int_equal(c->dropped, 7);
	observe_three(f, other);
	assert_int_equal(c->dropped, 7);
	for (int i = 0; i < 2; i++) {	/* a packet that is one frame, whatever its @npsn */
		switch_observe(later, SWITCH_OUT, i ? &frame : &plain, NULL);
		assert_int_equal(c->dropped, 8 + i);
	}
	empty(f, c, fd);
	observe_three(f, later);
	assert_int_equal(c->dropped, 9);
	stop_and_read_pipe(f, fd);
	f->at = f->file_len - 76;
	expect_statistics(f, 2, 11, 8);
}

/* Frames of a port for which there is no memory count as dropped, too, if the port is wanted. */
static void test_no_memory_for_a_port(void **state)
{
	struct fixture *f = *state;
	struct switch_port *later = switch_port_add(f->sw, "later", &ops, NULL);
	struct capture *c = start(f, ",port=later");
	bool failed = false;

	switch_port_del(later);
	while (!failed) {
		struct switch_port *other;

		later = switch_port_add(f->sw, "later", &ops, NULL);
		other = switch_port_add(f->sw, "other", &ops, NULL);

		failing_begin(FAILING_MEMORY, ENOMEM, 0);
		observe_three(f, later);
		failed = failing_end();
		assert_int_equal(c->dropped, failed ? 3 : 0);
		failing_begin(FAILING_MEMORY, ENOMEM, 0);
		observe_three(f, other);
		failing_end();
		assert_int_equal(c->dropped, failed ? 3 : 0);
		observe_three(f, later);
		assert_int_equal(c->dropped, failed ? 3 : 0);
		switch_port_del(other);
		switch_port_del(later);
	}
}

/* The reader stops reading: the end of the capture has a time limit. A closed pipe ends it, too. */
static void test_reader_gone(void **state)
{
	struct fixture *f = *state;
	uint8_t payload[MTU] = "x";
	uint32_t frames = 0;
	struct capture *c;
	char want[256];
	int fd;

	log_setup(LOG_ERR - 1, false);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	fd = open(f->path, O_RDONLY | O_NONBLOCK);
	start(f, "");
	for (int i = 0; i < 100; i++)
		send_roce(f, payload, sizeof(payload));
	capture_stop(&f->cs, TAILQ_FIRST(&f->cs.list));
	wait_reaped(f);
	assert_int_equal(last_error(f), -ETIMEDOUT);
	c = start(f, "");
	send_roce(f, payload, sizeof(payload));
	close(fd);
	lines_begin();
	for (int i = 0; f->cs.count && i < 1000; i++) {
		send_roce(f, payload, sizeof(payload));
		frames = c->frames;
		usleep(1000);
		captures_reap(&f->cs);
	}
	assert_int_equal(f->cs.count, 0);
	snprintf(want, sizeof(want), "ornicd: capture 2: %s: %u frames captured, 0 dropped; the reader "
		 "closed the pipe\n", f->path, frames);
	lines_end(want);
}

/* Numbers of the pcapng format, and of ornicctl.8 and ornicd.8 */
static void test_documented(void **state)
{
	static const struct number numbers[] = {
		NUMBER(PCAPNG_INBOUND, 0x1), NUMBER(PCAPNG_OUTBOUND, 0x2),
		NUMBER(PCAPNG_UNICAST, 1 << 2), NUMBER(PCAPNG_MULTICAST, 2 << 2),
		NUMBER(PCAPNG_BROADCAST, 3 << 2), NUMBER(CAPTURES, 16),
		NUMBER(CAPTURE_PORTS, 32), NUMBER(CAPTURE_SNAPLEN, 262144),
		NUMBER(CAPTURE_BUFFER, 32u << 20),
	};

	(void)state;
	NUMBERS_CHECK(numbers);
}

#define TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documented),
		cmocka_unit_test(test_section_block),
		cmocka_unit_test(test_interface_block),
		cmocka_unit_test(test_packet_block),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_statistics_block),
		cmocka_unit_test(test_spec),
		cmocka_unit_test(test_spec_refused),
		cmocka_unit_test(test_spec_limits),
		cmocka_unit_test(test_whole),
		TEST(test_zero_copy),
		TEST(test_frame_and_note),
		TEST(test_pieces),
		TEST(test_stamps),
		TEST(test_filters),
		TEST(test_filter_at_slow_link),
		TEST(test_later_port),
		TEST(test_two_captures),
		TEST(test_limit),
		TEST(test_limit_is_used),
		TEST(test_limit_of_later_ports),
		TEST(test_limit_at_interface),
		TEST(test_interface_below_limit),
		TEST(test_exact_limit),
		TEST(test_disk_full),
		TEST(test_not_truncated),
		TEST(test_last_failures),
		TEST(test_file_exists),
		TEST(test_one_file_for_two),
		TEST(test_refused),
		TEST(test_not_examined),
		TEST(test_standard_output),
		TEST(test_slow_reader),
		TEST(test_interrupted),
		TEST(test_no_poll),
		TEST(test_undo),
		TEST(test_one_pipe_for_two),
		TEST(test_full_ring_again),
		TEST(test_later_port_of_a_full_ring),
		TEST(test_no_memory_for_a_port),
		TEST(test_reader_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
