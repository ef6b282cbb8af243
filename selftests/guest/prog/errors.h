/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common code of the error tests: two connections between the ends, target memory, and
 * expectations about completions, events and states.
 *
 * Each test runs at both ends in step. The main connection meets the error; the innocent
 * one, of the same processes and device, must work afterwards.
 */
#ifndef GUEST_ERRORS_H
#define GUEST_ERRORS_H

#include "conn.h"
#include "oob.h"
#include "report.h"

#include <errno.h>
#include <string.h>

#define AREA		(64u << 10)
#define TARGET		4096u		/* offset of the part that faults target */
#define TARGET_LEN	4096u
#define CALM		(48u << 10)	/* offset of the innocent's part */
#define PATIENCE	15.0		/* seconds for an event that must come */

struct place {
	uint64_t addr;
	uint32_t rkey;
	uint32_t pad;
};

struct env {
	struct dev *dev;
	struct oob *oob;
	bool client;
	bool no_events;			/* the device reports no asynchronous events */
	uint8_t *mem;
	struct ibv_mr *mr;
	struct place there;		/* the remote end's memory */
	struct queue send, recv, calm;
	struct conn main, innocent;
	unsigned int arg;		/* of the test */
	struct verdict verdict;
};

/* Tests: each is called at both ends with main and innocent connected. */
struct error_test {
	const char *name;
	void (*run)(struct env *e);
	/* Change the main connection's attributes; NULL: default. */
	void (*attr)(struct conn_attr *a, bool client);
	unsigned int arg;
};

#define EXPECT(env, condition, ...) do { \
		if (!(condition)) \
			verdict_fail(&(env)->verdict, __VA_ARGS__); \
	} while (0)

/* Fill a work request with one scatter/gather entry of the area. */
struct job {
	enum ibv_wr_opcode opcode;
	uint64_t id;
	size_t off;
	uint32_t len;
	uint32_t lkey;			/* 0: the area's */
	struct place to;		/* addr 0: the same offset of the remote end's area */
	bool unsignaled;
};

void env_post(struct env *e, struct conn *c, const struct job *job);
void env_post_recv(struct env *e, struct conn *c, uint64_t id, size_t off, uint32_t len);
/* Wait for a completion; its id and status must be these. */
void expect_wc(struct env *e, struct queue *q, uint64_t id, enum ibv_wc_status status);
void expect_quiet(struct env *e, struct queue *q);
void expect_event(struct env *e, enum ibv_event_type type, struct conn *c);
void expect_state(struct env *e, struct conn *c, enum ibv_qp_state state);
/* Check that a write over a connection arrives, byte for byte. */
void expect_works(struct env *e, struct conn *c, struct queue *q);
/* Check that the target is unchanged. */
void expect_untouched(struct env *e);
/* Take a connection that failed through RESET and connect it again. */
void env_reconnect(struct env *e, struct conn *c);

void env_open(struct env *e, const struct error_test *t);
void env_close(struct env *e);

extern const struct error_test remote_tests[], local_tests[], path_tests[];

#endif
