// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl with an active daemon: its queue pairs, counters and times match the operations
 * of two hosts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ctl.h"
#include "stations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES	50
#define BYTES		10000
#define PACKETS		3	/* of 4096 bytes each */

static void writes(struct stations *t, int n)
{
	struct station *a = &t->s[0], *b = &t->s[1];
	struct ornic_cqe cqe;

	for (int i = 0; i < n; i++) {
		uint32_t index = a->qp.sq.prod;

		host_send(&a->qp, ORNIC_WR_RDMA_WRITE, a->buf, BYTES, a->key, b->buf, b->key);
		station_expect(a, ORNIC_WC_RDMA_WRITE, index, &cqe);
	}
}

static void test_queue_pairs(void **state)
{
	struct stations *t = *state;
	char words[64];
	json_t *all, *qp;

	stations_connect(t);
	writes(t, MESSAGES);
	all = ctl(t, "--json qp list");
	assert_int_equal(json_array_size(all), 2);
	qp = json_array_get(all, 0);
	assert_string_equal(json_string_value(json_object_get(qp, "device")), "0");
	assert_int_equal(ctl_number(qp, "qpn"), t->s[0].qp.number);
	assert_int_equal(ctl_number(qp, "peer_qpn"), t->s[1].qp.number);
	assert_int_equal(ctl_number(qp, "next_psn"), MESSAGES * PACKETS);
	assert_int_equal(ctl_number(qp, "acked_psn"), MESSAGES * PACKETS);
	assert_int_equal(ctl_number(json_array_get(all, 1), "expected_psn"), MESSAGES * PACKETS);
	json_decref(all);
	all = ctl(t, "qp list --json --device 1");
	assert_int_equal(json_array_size(all), 1);
	json_decref(all);
	snprintf(words, sizeof(words), "qp show 1 %u --json", t->s[1].qp.number);
	qp = ctl(t, words);
	assert_int_equal(ctl_number(json_object_get(qp, "responder"), "msn"), MESSAGES);
	assert_int_equal(ctl_number(json_object_get(qp, "rq"), "entries"), 1 << STATION_RING);
	json_decref(qp);
}

static void test_counters(void **state)
{
	struct stations *t = *state;
	json_t *all;

	stations_connect(t);
	writes(t, MESSAGES);
	all = ctl(t, "counters --json");
	assert_int_equal(json_object_size(all), 2);
	assert_int_equal(ctl_number(json_object_get(all, "0"), "tx_write"), MESSAGES);
	assert_int_equal(ctl_number(json_object_get(all, "1"), "rx_write"), MESSAGES);
	assert_int_equal(ctl_number(json_object_get(all, "1"), "rdma_rx_bytes"), MESSAGES * BYTES);
	json_decref(all);
}

static json_int_t measured(struct stations *t, const char *device)
{
	json_t *all = ctl(t, "latency show --json");
	json_t *times = json_object_get(json_object_get(all, device), "times");
	json_int_t n = times ? ctl_number(json_object_get(times, "write"), "count") : -1;

	json_decref(all);
	return n;
}

static void test_latency(void **state)
{
	struct stations *t = *state;

	stations_connect(t);
	writes(t, 5);
	assert_int_equal(measured(t, "0"), -1);
	ctl_run(t, "latency on");
	writes(t, MESSAGES);
	assert_int_equal(measured(t, "0"), MESSAGES);
	assert_int_equal(measured(t, "1"), 0);
	ctl_run(t, "latency show");
	ctl_run(t, "latency off --device 0");
	writes(t, 5);
	assert_int_equal(measured(t, "0"), -1);
	assert_int_equal(measured(t, "1"), 0);
}

static void test_top(void **state)
{
	struct stations *t = *state;
	char text[4096] = "";
	FILE *p;
	json_t *frame;

	stations_connect(t);
	p = ctl_start(t, "top --once --interval 1.5");
	for (uint64_t end = stations_clock() + 4000000000ull; stations_clock() < end;)
		writes(t, 10);
	assert_true(fread(text, 1, sizeof(text) - 1, p) > 0);
	assert_int_equal(pclose(p), 0);
	/* one queue pair sends, the other receives; and there is no escape sequence */
	assert_non_null(strstr(text, "10.0.0.1"));
	assert_non_null(strstr(text, "10.0.0.2"));
	assert_null(strchr(text, '\033'));
	frame = ctl(t, "top --once --interval 0.1 --json");
	assert_int_equal(json_array_size(json_object_get(frame, "qps")), 2);
	assert_true(json_is_real(json_object_get(frame, "seconds")));
	json_decref(frame);
	/* nothing moves, so no queue pair is shown */
	p = ctl_start(t, "top --once --interval 0.1");
	memset(text, 0, sizeof(text));
	assert_true(fread(text, 1, sizeof(text) - 1, p) > 0);
	assert_int_equal(pclose(p), 0);
	assert_null(strstr(text, "10.0.0.1"));
}

#define WITH(t)	cmocka_unit_test_setup_teardown(t, stations_setup, stations_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH(test_queue_pairs), WITH(test_counters), WITH(test_latency), WITH(test_top),
	};

	if (!stations_daemon(argc, argv))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
