// SPDX-License-Identifier: GPL-2.0
/* control/: good requests, hostile ones, and clients that are slow, many, or leave early. */
#define _GNU_SOURCE 1	/* F_SETPIPE_SZ */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/client.h"
#include "control/control.h"
#include "control/method.h"
#include "control/request.h"
#include "daemon.h"
#include "engine/faults.h"
#include "engine/rate.h"
#include "fault/fault.h"
#include "fault/state.h"
#include "json_memory.h"
#include "lib/numbers.h"
#include "log.h"
#include "log_writer.h"
#include "unix_socket.h"

#define PLACES	32

static time_t later;	/* s that all clocks are fast */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int err = syscall(SYS_clock_gettime, clock, ts);

	ts->tv_sec += later;
	return err;
}

/**
 * struct fixture - a daemon without devices
 * @dir:	sockets are here
 * @path:	control socket
 * @turns:	left to take
 */
struct fixture {
	struct daemon d;
	char dir[32];
	char path[64];
	unsigned int turns;
};

static struct config_control settings(struct fixture *f)
{
	return (struct config_control) {
		.path = f->path, .access = { .has_mode = true, .mode = 0640 }
	};
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct config_control cc;

	assert_non_null(f);
	log_setup(LOG_ERR, false);
	strcpy(f->dir, "/tmp/ornic-control-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/control", f->dir);
	f->d.loop = loop_new();
	assert_non_null(f->d.loop);
	assert_int_equal(engine_init(&f->d.engine, 0), 0);
	cc = settings(f);
	assert_int_equal(control_open(&f->d, &cc, &f->d.control), 0);
	f->d.serving = true;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	control_close(f->d.control);
	assert_int_equal(access(f->path, F_OK), -1);
	while (f->d.nuplinks)
		uplink_close(f->d.uplink[--f->d.nuplinks]);
	free(f->d.uplink);
	engine_fini(&f->d.engine);
	loop_free(f->d.loop);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

/* File names have any bytes, JSON has not: other characters than ASCII become question marks. */
static void test_text(void **state)
{
	json_t *good = control_text("\xc3\xa4"), *bad = control_text("/tmp/\xe4\xff.sock");

	(void)state;
	assert_string_equal(json_string_value(good), "\xc3\xa4");
	assert_string_equal(json_string_value(bad), "/tmp/??.sock");
	json_decref(good);
	json_decref(bad);
}

/* ---- requests ------------------------------------------------------------- */

static json_t *ask_bytes(struct fixture *f, const char *line, size_t len)
{
	size_t n = 0;
	char *text = control_request(&f->d, line, len, &n);
	json_error_t e;
	json_t *answer;

	if (!text)
		return NULL;
	assert_true(n > 0);
	assert_int_equal(text[n - 1], '\n');
	assert_null(memchr(text, '\n', n - 1));
	answer = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
	assert_non_null(answer);
	assert_string_equal(json_string_value(json_object_get(answer, "jsonrpc")), "2.0");
	assert_non_null(json_object_get(answer, "id"));
	assert_int_equal(json_object_size(answer), 3);
	free(text);
	return answer;
}

static json_t *ask(struct fixture *f, const char *line)
{
	return ask_bytes(f, line, strlen(line));
}

/* Return the error code of the answer to @line; 0: a result */
static int code_of(struct fixture *f, const char *line)
{
	json_t *answer = ask(f, line), *error;
	int code;

	assert_non_null(answer);
	error = json_object_get(answer, "error");
	code = json_integer_value(json_object_get(error, "code"));
	assert_int_equal(!error, !!json_object_get(answer, "result"));
	assert_int_equal(!error, !code);
	if (error)
		assert_true(*json_string_value(json_object_get(error, "message")));
	json_decref(answer);
	return code;
}

#define V	"\"jsonrpc\":\"2.0\","

static void test_request(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *line;
		int code;
	} cases[] = {
		{ "{" V "\"id\":1,\"method\":\"version\"}", 0 },
		{ " {" V "\"id\":\"x\", \"method\":\"version\", \"params\":{} }\r", 0 },
		{ "{" V "\"id\":null,\"method\":\"version\"}", 0 },
		{ "{" V "\"id\":1.5,\"method\":\"version\"}", 0 },
		{ "", CONTROL_PARSE },
		{ "x", CONTROL_PARSE },
		{ "{", CONTROL_PARSE },
		{ "}", CONTROL_PARSE },
		{ "1", CONTROL_PARSE },
		{ "\"\\\"", CONTROL_PARSE },
		{ "{" V "\"id\":1,\"method\":\"version\"} x", CONTROL_PARSE },
		{ "{" V "\"id\":1,\"id\":2,\"method\":\"version\"}", CONTROL_PARSE },
		{ "{" V "\"id\":1,\"method\":\"ver\xff\"}", CONTROL_PARSE },
		{ "{" V "\"id\":1,\"method\":\"ver\\u0000\"}", CONTROL_PARSE },
		{ "{" V "\"id\":1e999,\"method\":\"version\"}", CONTROL_PARSE },
		{ "{" V "\"id\":99999999999999999999,\"method\":\"version\"}", CONTROL_PARSE },
		{ "[]", CONTROL_REQUEST },
		{ "[{" V "\"id\":1,\"method\":\"version\"}]", CONTROL_REQUEST },
		{ "{}", CONTROL_REQUEST },
		{ "{\"id\":1,\"method\":\"version\"}", CONTROL_REQUEST },
		{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"version\"}", CONTROL_REQUEST },
		{ "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"version\"}", CONTROL_REQUEST },
		{ "{" V "\"id\":1}", CONTROL_REQUEST },
		{ "{" V "\"id\":1,\"method\":7}", CONTROL_REQUEST },
		{ "{" V "\"id\":{},\"method\":\"version\"}", CONTROL_REQUEST },
		{ "{" V "\"id\":true,\"method\":\"version\"}", CONTROL_REQUEST },
		{ "{" V "\"id\":1,\"method\":\"version\",\"more\":1}", CONTROL_REQUEST },
		{ "{" V "\"id\":1,\"method\":\"\"}", CONTROL_METHOD },
		{ "{" V "\"id\":1,\"method\":\"Version\"}", CONTROL_METHOD },
		{ "{" V "\"id\":1,\"method\":\"version\",\"params\":[]}", CONTROL_PARAMS },
		{ "{" V "\"id\":1,\"method\":\"version\",\"params\":null}", CONTROL_PARAMS },
		{ "{" V "\"id\":1,\"method\":\"version\",\"params\":{\"x\":1}}", CONTROL_PARAMS },
		{ "{" V "\"id\":1,\"method\":\"port.add\"}", CONTROL_PARAMS },
		{ "{" V "\"id\":1,\"method\":\"port.add\",\"params\":{\"spec\":1}}", CONTROL_PARAMS },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (code_of(f, cases[i].line) != cases[i].code)
			fail_msg("%s: not %d", cases[i].line, cases[i].code);
}

static void test_id(void **state)
{
	struct fixture *f = *state;
	json_t *answer = ask(f, "{" V "\"id\":\"me\",\"method\":\"nonsense\"}");

	assert_string_equal(json_string_value(json_object_get(answer, "id")), "me");
	json_decref(answer);
	answer = ask(f, "{" V "\"id\":[],\"method\":\"version\"}");
	assert_true(json_is_null(json_object_get(answer, "id")));
	json_decref(answer);
}

/* The message of an error that a program sees, and the id */
static void test_messages(void **state)
{
	static const struct {
		const char *line;
		const char *id;
		const char *message;
	} cases[] = {
		{ "[]", "null", "batches are not supported: send one request per line" },
		{ "{" V "\"id\":[],\"method\":\"version\"}", "null",
		  "id must be a string, a number or null" },
		{ "{\"jsonrpc\":\"1.0\",\"method\":\"version\"}", "null",
		  "jsonrpc must be \"2.0\"" },
		{ "{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"version\"}", "7",
		  "jsonrpc must be \"2.0\"" },
		{ "{\"method\":\"version\"}", "null", "Object item not found: jsonrpc" },
		{ "{\"id\":7,\"method\":\"version\"}", "7", "Object item not found: jsonrpc" },
		{ "{" V "\"id\":\"a\",\"method\":\"version\",\"params\":{\"x\":1}}", "\"a\"",
		  "params: 1 object item(s) left unpacked: x" },
		{ "{" V "\"id\":1,\"method\":\"fault.add\",\"params\":{\"rule\":\"drop device=x\"}}",
		  "1", "there is no device x; there are none" },
		{ "{" V "\"id\":1,\"method\":\"fault.add\",\"params\":{\"rule\":\"drop port=x\"}}",
		  "1", "there is no port x; there are none" },
		{ "[[[[[[[[[[[[[[[[[", "null", "nested too deep" },
		{ "[[[[[[[[[[[[[[[[", "null", "']' expected near end of file" },
		/* an escaped quote does not end the string */
		{ "[\"\\\"[[[[[[[[[[[[[[[[[\"", "null", "']' expected near end of file" },
		{ "[\"\\\\\"[[[[[[[[[[[[[[[[[", "null", "nested too deep" },
		/* brackets that close do not count, and close only what is open */
		{ "]]]]]]]]]]]]]]]]]]]]", "null", "'[' or '{' expected near ']'" },
		{ "[{}{}{}{}{}{}{}{}{}{}{}", "null", "']' expected near '{'" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *answer = ask(f, cases[i].line);
		char *id = json_dumps(json_object_get(answer, "id"), JSON_ENCODE_ANY);

		assert_string_equal(id, cases[i].id);
		assert_string_equal(json_string_value(json_object_get(json_object_get(answer,
			"error"), "message")), cases[i].message);
		json_memory_free(id);
		json_decref(answer);
	}
}

static void test_every_method_rejects_strangers(void **state)
{
	struct fixture *f = *state;
	json_t *answer = ask(f, "{" V "\"id\":1,\"method\":\"methods\"}"), *name;
	char line[256];
	size_t i;

	assert_true(json_array_size(json_object_get(answer, "result")) >= 6);
	json_array_foreach(json_object_get(answer, "result"), i, name) {
		snprintf(line, sizeof(line),
			 "{" V "\"id\":1,\"method\":\"%s\",\"params\":{\"no such\":1}}",
			 json_string_value(name));
		if (code_of(f, line) != CONTROL_PARAMS)
			fail_msg("%s", line);
	}
	json_decref(answer);
}

static void test_notification(void **state)
{
	struct fixture *f = *state;
	char line[256];

	assert_null(ask(f, "{" V "\"method\":\"version\"}"));
	assert_null(ask(f, "{" V "\"method\":\"nonsense\"}"));
	snprintf(line, sizeof(line), "{" V "\"method\":\"port.add\",\"params\":"
		 "{\"spec\":\"stream,path=%s/s,name=s\"}}", f->dir);
	assert_null(ask(f, line));
	assert_int_equal(f->d.nuplinks, 1);
}

static void test_depth(void **state)
{
	struct fixture *f = *state;
	char line[2 * CONTROL_LINE];

	/* the request and its parameters are two levels */
	snprintf(line, sizeof(line), "{" V "\"id\":1,\"method\":\"version\",\"params\":{\"x\":%.*s%.*s}}",
		 CONTROL_DEPTH - 2, "[[[[[[[[[[[[[[[[", CONTROL_DEPTH - 2, "]]]]]]]]]]]]]]]]");
	assert_int_equal(code_of(f, line), CONTROL_PARAMS);
	snprintf(line, sizeof(line), "{" V "\"id\":1,\"method\":\"version\",\"params\":{\"x\":%.*s%.*s}}",
		 CONTROL_DEPTH - 1, "[[[[[[[[[[[[[[[[", CONTROL_DEPTH - 1, "]]]]]]]]]]]]]]]]");
	assert_int_equal(code_of(f, line), CONTROL_PARSE);
	memset(line, '[', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(code_of(f, line), CONTROL_PARSE);
	/* brackets in a string are letters */
	snprintf(line, sizeof(line), "{" V "\"id\":1,\"method\":\"%0*d\\\"[[[[[[[[[[[[[[[[[[[[[[\"}", 3, 0);
	assert_int_equal(code_of(f, line), CONTROL_METHOD);
}

/* For any input, the answer is JSON-RPC or there is none. */
static void test_mutations(void **state)
{
	static const char good[] = "{" V "\"id\":1,\"method\":\"port.list\",\"params\":{}}";
	struct fixture *f = *state;
	char line[sizeof(good)];
	unsigned int seed = 1;

	for (size_t len = 0; len < sizeof(good); len++)
		json_decref(ask_bytes(f, good, len));
	for (size_t at = 0; at < sizeof(good) - 1; at++) {
		for (int byte = 0; byte < 256; byte++) {
			memcpy(line, good, sizeof(good));
			line[at] = byte;
			json_decref(ask_bytes(f, line, sizeof(good) - 1));
		}
	}
	for (int i = 0; i < 20000; i++) {
		size_t len = rand_r(&seed) % sizeof(line);

		for (size_t at = 0; at < len; at++)
			line[at] = rand_r(&seed) & 1 ? "{}[]\",:\\ 1"[rand_r(&seed) % 10] : rand_r(&seed);
		json_decref(ask_bytes(f, line, len));
	}
}

static void test_port(void **state)
{
	struct fixture *f = *state;
	const uint32_t whole = f->d.engine.pool.nfree;
	struct switch_port *port;
	char line[256];
	struct packet *p;

	snprintf(line, sizeof(line), "{" V "\"id\":1,\"method\":\"port.add\",\"params\":"
		 "{\"spec\":\"dgram,local=%s/l,remote=%s/r,name=x\"}}", f->dir, f->dir);
	assert_int_equal(code_of(f, line), 0);
	assert_int_equal(code_of(f, line), CONTROL_EXISTS);
	port = switch_port_find(f->d.engine.sw, "x");
	assert_non_null(port);
	/* one of its frames is in flight when it goes */
	p = packet_get(&f->d.engine.pool);
	switch_send(port, p);
	assert_int_equal(f->d.engine.pool.nfree, whole - 1);
	assert_int_equal(code_of(f, "{" V "\"id\":1,\"method\":\"port.del\",\"params\":"
				 "{\"name\":\"x\"}}"), 0);
	assert_int_equal(f->d.engine.pool.nfree, whole);
	assert_int_equal(f->d.nuplinks, 0);
	assert_null(switch_port_find(f->d.engine.sw, "x"));
	assert_int_equal(code_of(f, "{" V "\"id\":1,\"method\":\"port.del\",\"params\":"
				 "{\"name\":\"x\"}}"), CONTROL_NOT_FOUND);
	/* the same name and socket again */
	assert_int_equal(code_of(f, line), 0);
	assert_int_equal(code_of(f, "{" V "\"id\":1,\"method\":\"port.add\",\"params\":"
				 "{\"spec\":\"udp,local=localhost:1,remote=localhost:2\"}}"),
			 CONTROL_PARAMS);
	assert_int_equal(code_of(f, "{" V "\"id\":1,\"method\":\"port.add\",\"params\":"
				 "{\"spec\":\"tap,ifname=a\\nb\"}}"), CONTROL_PARAMS);
	assert_int_equal(code_of(f, "{" V "\"id\":1,\"method\":\"port.add\",\"params\":"
				 "{\"spec\":\"stream,path=/nowhere/x\"}}"), CONTROL_NOT_FOUND);
	assert_int_equal(code_of(f, "{" V "\"id\":1,\"method\":\"port.add\",\"params\":"
				 "{\"spec\":\"packet,ifname=nosuchif\"}}"), CONTROL_NOT_FOUND);
	assert_int_equal(f->d.nuplinks, 1);
}

/* Answer to "methods" with an id of @len letters. Return: its length; @code: of an error, or 0. */
static size_t answer_of(struct fixture *f, size_t len, int *code)
{
	char *line = malloc(len + 100), *text;
	json_t *answer;
	size_t n = 0;

	sprintf(line, "{" V "\"method\":\"methods\",\"id\":\"%0*d\"}", (int)len, 0);
	text = control_request(&f->d, line, strlen(line), &n);
	assert_non_null(text);
	answer = json_loadb(text, n, 0, NULL);
	*code = json_integer_value(json_object_get(json_object_get(answer, "error"), "code"));
	json_decref(answer);
	free(text);
	free(line);
	return n;
}

/* An answer of CONTROL_ANSWER bytes with its newline is sent, a longer one is an error. */
static void test_longest_answer(void **state)
{
	struct fixture *f = *state;
	size_t len;
	int code;

	len = CONTROL_ANSWER - answer_of(f, 1, &code) + 1;
	assert_int_equal(answer_of(f, len, &code), CONTROL_ANSWER);
	assert_int_equal(code, 0);
	assert_true(answer_of(f, len + 1, &code) < CONTROL_ANSWER);
	assert_int_equal(code, CONTROL_INTERNAL);
}

/* The code of each errno, and the message: the first error line, or else the errno's text */
static void test_codes(void **state)
{
	static const struct {
		int err;
		enum control_error code;
	} codes[] = {
		{ -EINVAL, CONTROL_PARAMS }, { -ENAMETOOLONG, CONTROL_PARAMS },
		{ -ENOENT, CONTROL_NOT_FOUND }, { -ENODEV, CONTROL_NOT_FOUND },
		{ -EEXIST, CONTROL_EXISTS }, { -EADDRINUSE, CONTROL_EXISTS },
		{ -EPERM, CONTROL_REJECTED }, { -EBUSY, CONTROL_REJECTED },
		{ -ENOMEM, CONTROL_INTERNAL }, { -EIO, CONTROL_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct control_call call = { 0 };

		assert_null(control_failed(&call, codes[i].err));
		assert_int_equal(call.code, codes[i].code);
		assert_string_equal(call.message, strerror(-codes[i].err));
		strcpy(call.logged, "the cause");
		assert_null(control_failed(&call, codes[i].err));
		assert_string_equal(call.message, "the cause");
	}
}

/* ---- clients ---------------------------------------------------------------- */

static int dial(struct fixture *f)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	strcpy(addr.sun_path, f->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static int64_t turn(void *arg)
{
	struct fixture *f = arg;

	control_work(f->d.control);
	if (!f->turns--)
		loop_stop(f->d.loop);
	return 1;
}

/* Run a turn; then @n times events and a turn. */
static void turns(struct fixture *f, unsigned int n)
{
	f->turns = n;
	loop_set_work(f->d.loop, turn, f);
	assert_int_equal(loop_run(f->d.loop), 0);
}

/* Send all of it; the daemon runs turns meanwhile. */
static void say(struct fixture *f, int fd, const char *text)
{
	size_t len = strlen(text);

	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n < 0)
			assert_int_equal(errno, EAGAIN);
		else
			len -= n, text += n;
		turns(f, 1);
	}
}

/* Return the next line without its newline; NULL: the daemon closed the connection */
static char *hear(struct fixture *f, int fd)
{
	static char line[CONTROL_ANSWER];
	size_t len = 0;
	time_t end = time(NULL) + 30;

	while (time(NULL) < end) {
		ssize_t n = recv(fd, line + len, 1, 0);

		if (!n || (n < 0 && errno == ECONNRESET))
			return NULL;
		if (n < 0) {
			turns(f, 3);
			continue;
		}
		if (line[len] == '\n') {
			line[len] = '\0';
			return line;
		}
		len++;
	}
	fail_msg("no answer");
	return NULL;
}

static void hear_id(struct fixture *f, int fd, int id)
{
	char *line = hear(f, fd);
	json_t *answer;

	assert_non_null(line);
	answer = json_loads(line, 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(answer, "id")), id);
	assert_non_null(json_object_get(answer, "result"));
	json_decref(answer);
}

static void say_id(struct fixture *f, int fd, int id)
{
	char line[128];

	snprintf(line, sizeof(line), "{" V "\"id\":%d,\"method\":\"methods\"}\n", id);
	say(f, fd, line);
}

static void works(struct fixture *f)
{
	int fd = dial(f);

	say_id(f, fd, 4711);
	hear_id(f, fd, 4711);
	close(fd);
}

static void test_half_lines(void **state)
{
	static const char line[] = "{" V "\"id\":5,\"method\":\"version\"}\n";
	struct fixture *f = *state;
	int fd = dial(f);

	/* the second time, the first line is still in the daemon's buffer */
	for (int i = 0; i < 2; i++) {
		for (const char *c = line; *c; c++) {
			const char one[2] = { *c, 0 };

			say(f, fd, one);
			turns(f, 2);
		}
		hear_id(f, fd, 5);
	}
	say(f, fd, "\n\r\n \n");	/* an empty line is ignored, a space is invalid JSON */
	assert_non_null(strstr(hear(f, fd), "-32700"));
	assert_non_null(strstr(hear(f, fd), "-32700"));
	say(f, fd, "\"a\n");	/* the end of the line does not belong to it */
	assert_non_null(strstr(hear(f, fd), "premature end of input"));
	say(f, fd, "{" V "\"method\":\"version\"}\n");	/* a notification has no answer */
	say_id(f, fd, 6);
	hear_id(f, fd, 6);
	close(fd);
	works(f);
}

static int count_lines(int fd)
{
	char text[4096];
	ssize_t len = recv(fd, text, sizeof(text), 0);
	int n = 0;

	for (ssize_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

static void test_one_per_turn(void **state)
{
	static const char line[] = "{" V "\"id\":1,\"method\":\"version\"}\n";
	struct fixture *f = *state;
	char text[8 * sizeof(line)] = "";
	int fd[2] = { dial(f), dial(f) };
	int heard[2] = { 0 };

	for (int i = 0; i < 8; i++)
		strcat(text, line);
	turns(f, 2);		/* the waiting clients are accepted */
	for (int i = 0; i < 2; i++)
		assert_int_equal(send(fd[i], text, strlen(text), 0), strlen(text));
	turns(f, 1);		/* all data has come, and one request is answered */
	for (int i = 1; i < 16; i++) {
		assert_int_equal(control_work(f->d.control), i < 15);
		for (int j = 0; j < 2; j++) {
			/* they take turns */
			heard[j] += count_lines(fd[j]);
			assert_int_equal(heard[j], (i + 2 - j) / 2);
		}
	}
	assert_false(control_work(f->d.control));
	close(fd[0]);
	close(fd[1]);
}

static void test_long_line(void **state)
{
	static const char rest[] = V "\"id\":8,\"method\":\"version\"}\n";
	struct fixture *f = *state;
	char *line = malloc(CONTROL_LINE + 2);
	int fd = dial(f);

	/* the longest line */
	memset(line, ' ', CONTROL_LINE);
	line[0] = '{';
	strcpy(line + CONTROL_LINE + 1 - strlen(rest), rest);
	assert_int_equal(strlen(line), CONTROL_LINE + 1);
	say(f, fd, line);
	hear_id(f, fd, 8);
	/* and one byte more */
	memset(line, 'x', CONTROL_LINE + 1);
	say(f, fd, line);
	assert_non_null(strstr(hear(f, fd), "too long"));
	assert_null(hear(f, fd));
	close(fd);
	free(line);
	works(f);
}

static void test_binary(void **state)
{
	struct fixture *f = *state;
	unsigned int seed = 7;
	uint8_t noise[1000];

	for (int i = 0; i < 200; i++) {
		int fd = dial(f);

		for (size_t at = 0; at < sizeof(noise); at++)
			noise[at] = rand_r(&seed);
		assert_int_equal(send(fd, noise, sizeof(noise), 0), sizeof(noise));
		turns(f, 4);
		close(fd);
	}
	works(f);
}

static void test_leave(void **state)
{
	struct fixture *f = *state;
	char line[256];
	int fd;

	/* in the middle of a line */
	fd = dial(f);
	say(f, fd, "{\"jsonrpc\"");
	close(fd);
	turns(f, 4);
	/* without waiting for the answer */
	fd = dial(f);
	snprintf(line, sizeof(line), "{" V "\"id\":1,\"method\":\"port.add\",\"params\":"
		 "{\"spec\":\"stream,path=%s/s,name=s\"}}\n", f->dir);
	assert_int_equal(send(fd, line, strlen(line), 0), strlen(line));
	close(fd);
	turns(f, 4);
	assert_int_equal(f->d.nuplinks, 1);
	/* half-closed, but waiting for the answer */
	fd = dial(f);
	say_id(f, fd, 3);
	shutdown(fd, SHUT_WR);
	hear_id(f, fd, 3);
	assert_null(hear(f, fd));
	close(fd);
	works(f);
}

/* Send a request that adds port @name. */
static void say_port(struct fixture *f, int fd, const char *name)
{
	char line[256];

	snprintf(line, sizeof(line), "{" V "\"id\":1,\"method\":\"port.add\",\"params\":"
		 "{\"spec\":\"stream,path=%s/%s,name=%s\"}}\n", f->dir, name, name);
	assert_int_equal(send(fd, line, strlen(line), 0), strlen(line));
}

/* A client that sends several requests and closes the connection without reading any answer */
static void test_leave_early(void **state)
{
	static const char methods[] = "{" V "\"id\":1,\"method\":\"methods\"}\n";
	const size_t one = sizeof(methods) - 1;
	static char blank[60000], many[500 * sizeof(methods)];
	struct fixture *f = *state;
	int fd;

	/* before the first answer; not all lines fit into the daemon's buffer */
	memset(blank, ' ', sizeof(blank));
	blank[sizeof(blank) - 1] = '\n';
	fd = dial(f);
	say_port(f, fd, "a");
	say_port(f, fd, "b");
	for (int i = 0; i < 2; i++)
		assert_int_equal(send(fd, blank, sizeof(blank), 0), sizeof(blank));
	say_port(f, fd, "c");
	assert_int_equal(send(fd, "{", 1, 0), 1);
	close(fd);
	turns(f, 40);
	assert_int_equal(f->d.nuplinks, 3);
	/* while the daemon cannot send an answer */
	fd = dial(f);
	for (int i = 0; i < 500; i++)
		memcpy(many + i * one, methods, one);
	assert_int_equal(send(fd, many, 500 * one, 0), 500 * one);
	say_port(f, fd, "d");
	turns(f, 2000);
	assert_int_equal(f->d.nuplinks, 3);
	close(fd);
	turns(f, 2000);
	assert_int_equal(f->d.nuplinks, 4);
	works(f);
}

static void test_many(void **state)
{
	struct fixture *f = *state;
	int fd[PLACES], extra;

	log_setup(LOG_ERR, false);
	for (int i = 0; i < PLACES; i++) {
		fd[i] = dial(f);
		say_id(f, fd[i], i);
		hear_id(f, fd[i], i);
	}
	extra = dial(f);
	assert_non_null(strstr(hear(f, extra), "too many clients"));
	assert_null(hear(f, extra));
	close(extra);
	for (int i = 0; i < PLACES; i++) {
		say_id(f, fd[i], i);
		hear_id(f, fd[i], i);
	}
	close(fd[3]);
	turns(f, 4);
	works(f);
	for (int i = 0; i < PLACES; i++)
		if (i != 3)
			close(fd[i]);
}

/* After 10 s without progress, a client gives its place to a new one; an idle client never does. */
static void test_replaced(void **state)
{
	struct fixture *f = *state;
	int fd[PLACES], extra[2];
	char byte;

	for (int i = 0; i < PLACES; i++) {
		fd[i] = dial(f);
		say(f, fd[i], i ? "{" : "\n");
		turns(f, 2);
	}
	later += 9;
	extra[0] = dial(f);
	assert_non_null(strstr(hear(f, extra[0]), "too many clients"));
	close(extra[0]);
	say(f, fd[1], " ");	/* that is progress */
	later += 2;
	for (int i = 0; i < 2; i++) {
		extra[i] = dial(f);
		say_id(f, extra[i], i);
		hear_id(f, extra[i], i);
		for (int j = 0; j < PLACES; j++) {
			bool closed = j == 2 || (i && j == 3);

			assert_int_equal(recv(fd[j], &byte, 1, 0), closed ? 0 : -1);
		}
	}
	for (int i = 0; i < PLACES; i++)
		close(fd[i]);
	for (int i = 0; i < 2; i++)
		close(extra[i]);
}

/* The daemon stops reading from a client that does not read its answers, and serves all others. */
static void test_slow_reader(void **state)
{
	static const char line[] = "{" V "\"id\":1,\"method\":\"methods\"}\n";
	struct fixture *f = *state;
	unsigned int asked = 0;
	int fd = dial(f), stuck = 0;

	while (stuck < 100) {
		ssize_t n = send(fd, line, strlen(line), MSG_NOSIGNAL);

		assert_true(n == (ssize_t)strlen(line) || (n < 0 && errno == EAGAIN));
		asked += n > 0;
		stuck = n > 0 ? 0 : stuck + 1;
		turns(f, 2);
		assert_true(asked < 1000000);
	}
	works(f);
	/* none of its requests was lost */
	for (unsigned int i = 0; i < asked; i++)
		hear_id(f, fd, 1);
	say_id(f, fd, 2);
	hear_id(f, fd, 2);
	close(fd);
}

static void test_stuck(void **state)
{
	struct fixture *f = *state;
	struct client_owner owner = { .patience = 0 };
	struct control_client *c;
	struct timespec tick = { .tv_nsec = 20000000 };
	int sv[2];
	char byte;

	TAILQ_INIT(&owner.all);
	TAILQ_INIT(&owner.ready);
	TAILQ_INIT(&owner.held);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv), 0);
	assert_int_equal(client_new(&owner, f->d.loop, sv[0]), 0);
	c = TAILQ_FIRST(&owner.all);
	nanosleep(&tick, NULL);
	assert_false(client_is_stuck(c));	/* idle */
	assert_int_equal(send(sv[1], "{", 1, 0), 1);
	turns(f, 3);
	nanosleep(&tick, NULL);
	assert_true(client_is_stuck(c));
	owner.patience = 3600000000000ull;
	assert_false(client_is_stuck(c));
	assert_int_equal(send(sv[1], "\n", 1, 0), 1);
	turns(f, 3);
	assert_int_equal(c->line, 2);		/* the daemon waits for this client now */
	owner.patience = 0;
	nanosleep(&tick, NULL);
	assert_false(client_is_stuck(c));
	client_serve(c, &f->d);
	assert_non_null(strstr(hear(f, sv[1]), "-32700"));
	assert_false(client_is_stuck(c));
	/* a client that takes a part of a long answer makes progress */
	c->tx_len = 1 << 20;
	c->tx_at = 0;
	c->tx = malloc(c->tx_len);
	for (size_t i = 0; i < c->tx_len; i++)
		c->tx[i] = i / 251;
	assert_int_equal(setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &(int) { 65536 }, sizeof(int)),
			 0);
	c->moved -= 2000000000;
	owner.patience = 1000000000;
	assert_true(client_is_stuck(c));
	c->events = EPOLLOUT;
	assert_int_equal(loop_mod(f->d.loop, sv[0], c->events), 0);
	turns(f, 1);
	assert_in_range(c->tx_at, 1, c->tx_len - 1);
	assert_false(client_is_stuck(c));
	/* and gets all of it, in order and once */
	for (size_t at = 0; at < 1 << 20;) {
		uint8_t part[4096];
		ssize_t n = recv(sv[1], part, sizeof(part), 0);

		for (ssize_t i = 0; i < n; i++, at++)
			assert_int_equal(part[i], (uint8_t)(at / 251));
		turns(f, 1);
	}
	turns(f, 1);
	assert_null(c->tx);
	assert_int_equal(c->events, EPOLLIN);
	assert_int_equal(recv(sv[1], &byte, 1, 0), -1);
	client_free(c);
	assert_int_equal(owner.n, 0);
	close(sv[1]);
}

/* ---- the socket ------------------------------------------------------------- */

static void test_socket(void **state)
{
	struct fixture *f = *state;
	struct config_control cc = settings(f);
	struct control *other = NULL;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int fd;

	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	/* another server listens there */
	assert_int_equal(control_open(&f->d, &cc, &other), -EADDRINUSE);
	control_close(f->d.control);
	f->d.control = NULL;
	/* a server that is gone left it */
	strcpy(addr.sun_path, f->path);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	assert_int_equal(control_open(&f->d, &cc, &f->d.control), 0);
	works(f);
	control_close(f->d.control);
	/* it is not a socket */
	fd = creat(f->path, 0600);
	close(fd);
	assert_int_equal(control_open(&f->d, &cc, &f->d.control), -EADDRINUSE);
	assert_int_equal(unlink(f->path), 0);
	cc.path = "/nowhere/control";
	assert_int_equal(control_open(&f->d, &cc, &f->d.control), -ENOENT);
	cc = settings(f);
	assert_int_equal(control_open(&f->d, &cc, &f->d.control), 0);
	works(f);
}

/* Before the socket gets its mode, only its owner has access. */
static void test_never_open(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t mask = umask(0);
	struct stat st;
	int fd;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/x", f->dir);
	fd = unix_bind(&addr, SOCK_STREAM, NULL);
	umask(mask);
	assert_true(fd >= 0);
	assert_int_equal(stat(addr.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	close(fd);
	unlink(addr.sun_path);
}

/* Numbers of Documentation/control.rst, guide/applications.rst and ornicd.8 */
static void test_documented(void **state)
{
	static const struct number numbers[] = {
		NUMBER(CONTROL_PARSE, -32700), NUMBER(CONTROL_REQUEST, -32600),
		NUMBER(CONTROL_METHOD, -32601), NUMBER(CONTROL_PARAMS, -32602),
		NUMBER(CONTROL_INTERNAL, -32603), NUMBER(CONTROL_NOT_FOUND, 1),
		NUMBER(CONTROL_EXISTS, 2), NUMBER(CONTROL_REJECTED, 3),
		NUMBER(CONTROL_FAILED, 4), NUMBER(CONTROL_LINE, 65536),
		NUMBER(CONTROL_ANSWER, 1 << 20), NUMBER(CONTROL_DEPTH, 16),
		NUMBER(FAULT_RULES, 256), NUMBER(RULE_TEXT, 255 + 1),
		NUMBER(FAULT_FRAMES, 4096), NUMBER(FAULT_SYNDROME, 0x80000001),
		NUMBER(RATE_BURST_NS, 500000), NUMBER(RATE_MIN_KBPS, 1),
		NUMBER(RATE_MAX_KBPS, 100000000),
	};

	(void)state;
	NUMBERS_CHECK(numbers);
}

/* ---- answers that wait for the log -------------------------------------------- */

/* The log goes into @ends, a pipe that is full except for @room bytes. */
static void log_to_pipe(int ends[2], int *kept, size_t room)
{
	char fill[4096] = { 0 };

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, sizeof(fill)), sizeof(fill));
	assert_int_equal(write(ends[1], fill, sizeof(fill) - room), sizeof(fill) - room);
	fflush(stderr);
	*kept = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	assert_int_equal(log_writer_start(), 0);
}

static void log_to_stderr(const int ends[2], int kept)
{
	log_writer_stop();
	dup2(kept, STDERR_FILENO);
	close(kept);
	close(ends[1]);
}

/* Send a request that fails with an error line. */
static void say_wrong(struct fixture *f, int fd)
{
	say(f, fd, "{" V "\"id\":1,\"method\":\"port.del\",\"params\":{\"name\":\"x\"}}\n");
}

static bool is_answered(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK) == 1;
}

/* Return true if the pipe has the line of say_wrong() at its end; empty it. */
static bool in_log(int fd)
{
	static const char line[] = "ornicd: error: there is no port x\n";
	const ssize_t len = sizeof(line) - 1;
	char text[8192];
	ssize_t n = read(fd, text, sizeof(text));

	return n >= len && !memcmp(text + n - len, line, len);
}

/* A client that has the answer finds the line in the log. */
static void test_after_log(void **state)
{
	struct fixture *f = *state;
	int ends[2], kept, fd = dial(f);

	log_to_pipe(ends, &kept, 4096);
	for (int i = 0; i < 12; i++) {
		say_wrong(f, fd);
		assert_non_null(strstr(hear(f, fd), "there is no port x"));
		assert_true(in_log(ends[0]));
	}
	assert_int_equal(control_wait(f->d.control), -1);
	log_to_stderr(ends, kept);
	close(ends[0]);
	close(fd);
}

/* The answer waits while nobody reads the log, but not the loop, and no other client. */
static void test_held(void **state)
{
	struct fixture *f = *state;
	int ends[2], kept, fd = dial(f), other = dial(f);
	char text[8192];

	log_to_pipe(ends, &kept, 0);
	say_wrong(f, fd);
	say_id(f, fd, 2);			/* it is executed after the answer */
	turns(f, 10);
	assert_false(is_answered(fd));
	assert_true(control_wait(f->d.control) > 0);
	assert_true(control_wait(f->d.control) < 1000000);
	say_id(f, other, 7);
	turns(f, 10);
	assert_int_equal(read(ends[0], text, sizeof(text)), 4096);
	hear_id(f, other, 7);
	assert_non_null(strstr(hear(f, fd), "there is no port x"));
	hear_id(f, fd, 2);
	assert_true(in_log(ends[0]));
	assert_int_equal(control_wait(f->d.control), -1);
	log_to_stderr(ends, kept);
	close(ends[0]);
	close(other);
	close(fd);
}

/* It waits once for a reader that does not come; then the daemon knows it. */
static void test_held_for_nobody(void **state)
{
	struct fixture *f = *state;
	int ends[2], kept, fd = dial(f);

	log_to_pipe(ends, &kept, 0);
	say_wrong(f, fd);
	turns(f, 10);
	assert_false(is_answered(fd));
	later = 2;
	turns(f, 10);
	assert_non_null(strstr(hear(f, fd), "there is no port x"));
	while (!log_writer_settled())		/* if the thread has begun only now */
		usleep(1000);
	for (int i = 0; i < 10; i++) {
		say_wrong(f, fd);
		turns(f, 3);
		assert_true(is_answered(fd));
		assert_non_null(strstr(hear(f, fd), "there is no port x"));
	}
	later = 0;
	close(ends[0]);
	signal(SIGPIPE, SIG_IGN);
	log_to_stderr(ends, kept);
	close(fd);
}

/* The end of the daemon sends answers that wait; a client may leave before. */
static void test_held_at_the_end(void **state)
{
	struct fixture *f = *state;
	int ends[2], kept, fd = dial(f), gone = dial(f);
	char text[200] = "";

	log_to_pipe(ends, &kept, 0);
	say_wrong(f, gone);
	say_wrong(f, fd);
	turns(f, 10);
	close(gone);
	turns(f, 10);
	assert_false(is_answered(fd));
	control_close(f->d.control);
	f->d.control = NULL;
	assert_true(recv(fd, text, sizeof(text), 0) > 0);
	assert_non_null(strstr(text, "there is no port x"));
	close(ends[0]);
	signal(SIGPIPE, SIG_IGN);
	log_to_stderr(ends, kept);
	close(fd);
}

#define WITH(t)	cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documented),
		WITH(test_request),
		WITH(test_id),
		WITH(test_messages),
		WITH(test_text),
		WITH(test_every_method_rejects_strangers),
		WITH(test_notification),
		WITH(test_depth),
		WITH(test_mutations),
		WITH(test_port),
		cmocka_unit_test(test_codes),
		WITH(test_longest_answer),
		WITH(test_half_lines),
		WITH(test_one_per_turn),
		WITH(test_long_line),
		WITH(test_binary),
		WITH(test_leave),
		WITH(test_leave_early),
		WITH(test_many),
		WITH(test_replaced),
		WITH(test_slow_reader),
		WITH(test_stuck),
		WITH(test_socket),
		WITH(test_never_open),
		WITH(test_after_log),
		WITH(test_held),
		WITH(test_held_for_nobody),
		WITH(test_held_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
