/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common code of the tests of queue pair states and attributes: one queue pair, connected
 * to itself, that can be moved to each state.
 */
#ifndef GUEST_STATES_H
#define GUEST_STATES_H

#include "conn.h"
#include "report.h"

#include <errno.h>
#include <string.h>

#define STATES	7

/* Attributes that a transition must and may have; not possible if valid is false. */
struct rule {
	bool valid;
	int need;
	int may;
};

/* The verbs' table of transitions (IBTA volume 1, 10.3.1; ib_modify_qp_is_ok() of Linux). */
struct rule states_rule(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to);

struct subject {
	struct dev *dev;
	struct queue cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem;
	enum ibv_qp_type type;
	struct verdict verdict;
};

#define EXPECT(s, condition, ...) do { \
		if (!(condition)) \
			verdict_fail(&(s)->verdict, __VA_ARGS__); \
	} while (0)

void subject_open(struct subject *s, struct dev *dev, enum ibv_qp_type type);
void subject_close(struct subject *s);
/* Return values for every attribute, all in range. */
struct ibv_qp_attr subject_attr(const struct subject *s);
/* Move it to a state from any state; to SQE by a work request that fails. */
void subject_to(struct subject *s, enum ibv_qp_state state);
enum ibv_qp_state subject_state(const struct subject *s);
/* Post a send of @len bytes to itself; UD: with a new address handle. */
int subject_send(struct subject *s, uint64_t id, uint32_t len, uint32_t lkey);
void subject_recv(struct subject *s, uint64_t id);
/* Check that the next completion has this id and status. */
void subject_wc(struct subject *s, uint64_t id, enum ibv_wc_status status);
/* Check that the next asynchronous event is this one, for the queue pair. */
void subject_event(struct subject *s, enum ibv_event_type type);

/* states_attr.c */
void test_attributes(struct subject *s);
void test_reset_forgets(struct subject *s);
void test_sq_drained(struct subject *s);
void test_sqe(struct subject *s);
void test_ring_fatal(struct subject *s);
void test_migration(struct subject *s);
void test_data_in_order(struct subject *s);

#endif
