// SPDX-License-Identifier: GPL-2.0
/*
 * The state machine of queue pairs: every transition of every type, with the right
 * attributes, with one missing, with one too many; then attributes and events.
 *
 *   verbs_states -d DEVICE [-g GID_INDEX] [TEST..]	prints TAP
 */
#include "states.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define MASKS		21	/* attribute bits 0..20 */
#define NOT_HERE	(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

/* Return true if @mask (without STATE) is right for the transition, by the verbs' table. */
static bool right(const struct rule *rule, int mask)
{
	return rule->valid && (mask & rule->need) == rule->need &&
	       !(mask & ~(rule->need | rule->may));
}

static void try_one(struct subject *s, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	const struct rule rule = states_rule(s->type, from, to);
	bool want = right(&rule, mask) && !(mask & NOT_HERE);
	struct ibv_qp_attr attr = subject_attr(s);
	enum ibv_qp_state after;
	int err;

	attr.qp_state = to;
	attr.cur_qp_state = from;
	if (mask & IBV_QP_ALT_PATH)
		attr.alt_ah_attr = attr.ah_attr;
	err = ibv_modify_qp(s->qp, &attr, mask | IBV_QP_STATE);
	after = subject_state(s);
	EXPECT(s, !err == want, "%d to %d, mask %#x: %s", from, to, mask,
	       err ? strerror(err) : "is accepted");
	EXPECT(s, !err || err == EINVAL || ((mask & (NOT_HERE | IBV_QP_CAP)) && err == EOPNOTSUPP),
	       "%d to %d, mask %#x: %s", from, to, mask, strerror(err));
	EXPECT(s, after == (err ? from : to), "%d to %d, mask %#x: %s, then state %d", from, to, mask,
	       err ? strerror(err) : "accepted", after);
	if (after != from || to == from)
		subject_to(s, from);
}

/* Try the right mask; without each required bit; with each additional bit. */
static void try_masks(struct subject *s, enum ibv_qp_state from, enum ibv_qp_state to)
{
	const int need = states_rule(s->type, from, to).need;

	try_one(s, from, to, need);
	for (int bit = 0; bit < MASKS; bit++)
		if (1 << bit != IBV_QP_STATE)
			try_one(s, from, to, need ^ 1 << bit);
}

static bool has_state(enum ibv_qp_type type, enum ibv_qp_state state)
{
	return type != IBV_QPT_RC || state != IBV_QPS_SQE;
}

static void test_transitions(struct subject *s)
{
	for (enum ibv_qp_state from = IBV_QPS_RESET; from < STATES; from++) {
		if (!has_state(s->type, from))
			continue;
		subject_to(s, from);
		for (enum ibv_qp_state to = IBV_QPS_RESET; to < STATES; to++)
			try_masks(s, from, to);
	}
}

static const struct test {
	const char *name;
	enum ibv_qp_type type;
	void (*run)(struct subject *s);
} tests[] = {
	{ "transitions_rc", IBV_QPT_RC, test_transitions },
	{ "transitions_uc", IBV_QPT_UC, test_transitions },
	{ "transitions_ud", IBV_QPT_UD, test_transitions },
	{ "attributes_rc", IBV_QPT_RC, test_attributes },
	{ "attributes_uc", IBV_QPT_UC, test_attributes },
	{ "attributes_ud", IBV_QPT_UD, test_attributes },
	{ "reset_forgets_rc", IBV_QPT_RC, test_reset_forgets },
	{ "reset_forgets_uc", IBV_QPT_UC, test_reset_forgets },
	{ "reset_forgets_ud", IBV_QPT_UD, test_reset_forgets },
	{ "sq_drained_rc", IBV_QPT_RC, test_sq_drained },
	{ "sq_drained_uc", IBV_QPT_UC, test_sq_drained },
	{ "sq_drained_ud", IBV_QPT_UD, test_sq_drained },
	{ "sqe_uc", IBV_QPT_UC, test_sqe },
	{ "sqe_ud", IBV_QPT_UD, test_sqe },
	{ "ring_fatal_rc", IBV_QPT_RC, test_ring_fatal },
	{ "ring_fatal_uc", IBV_QPT_UC, test_ring_fatal },
	{ "migration_rc", IBV_QPT_RC, test_migration },
	{ "migration_uc", IBV_QPT_UC, test_migration },
	{ "data_in_order_rc", IBV_QPT_RC, test_data_in_order },
};

int main(int argc, char **argv)
{
	const struct verdict good = { 0 };
	const char *device = NULL;
	int gid_index = -1, option;
	struct dev dev;

	while ((option = getopt(argc, argv, "d:g:")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'g')
			gid_index = atoi(optarg);
	}
	if (!device) {
		fprintf(stderr, "usage: verbs_states -d DEVICE [-g GID_INDEX] [TEST...]\n");
		return 2;
	}
	dev_open(&dev, device, gid_index);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		struct subject s;

		if (!tap_chosen(tests[i].name, argv + optind))
			continue;
		subject_open(&s, &dev, tests[i].type);
		tests[i].run(&s);
		subject_close(&s);
		tap_point(tests[i].name, &s.verdict, &good);
	}
	dev_close(&dev);
	return tap_end();
}
