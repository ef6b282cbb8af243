// SPDX-License-Identifier: GPL-2.0
/*
 * Devices are removed while their hosts and others use them, and added again. The daemon has
 * sanitizers, so an access to a removed object ends it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ctl.h"
#include "stations.h"

#include <ornic/admin.h>
#include <ornic/dm.h>
#include <ornic/port.h>
#include <endian.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITES	(1u << STATION_RING)
#define BYTES	(STATION_BUF - WRITES)
#define ROUNDS	20

/* Fill the send queue of a host with requests that write to @to. */
static void write_all(struct station *s, const struct station *to)
{
	for (uint32_t i = 0; i < WRITES; i++)
		host_send(&s->qp, ORNIC_WR_RDMA_WRITE, s->buf + i, BYTES, s->key, to->buf, to->key);
}

/* Wait for the completions of write_all(). Return: status of the first one that failed. */
static uint8_t complete_all(struct station *s)
{
	uint8_t status = ORNIC_WC_SUCCESS;
	struct ornic_cqe cqe;

	for (uint32_t i = 0; i < WRITES; i++) {
		assert_true(host_wait(&s->cq, &cqe) || !"completion missing");
		if (status == ORNIC_WC_SUCCESS)
			status = cqe.status;
	}
	return status;
}

static void remove_device(struct stations *t, int i)
{
	char path[64];
	struct stat st;

	ctl_run(t, "device del %d --force", i);
	snprintf(path, sizeof(path), "%s/%d", t->dir, i);
	assert_int_equal(stat(path, &st), -1);
	/* its host gets no answers from now on */
	assert_int_equal(host_reg32(&t->s[i].d.host, ORNIC_REG_MAGIC), UINT32_MAX);
	device_close(&t->s[i].d);
}

static void add_device(struct stations *t, int i)
{
	ctl_run(t, "device add path=%s/%d,mac=02:00:00:00:00:0%d", t->dir, i, i + 1);
	station_open(t, i);
}

/* Reset the device of a host, and forget its memory. */
static void start_again(struct station *s)
{
	assert_int_equal(vfu_client_flr(&s->d.vfu), 0);
	assert_int_equal(vfu_client_bus_master(&s->d.vfu, true), 0);
	s->d.host.dma.next = 0;
	memset(s->d.host.dma.mem, 0, STATION_MEM);
	host_init(&s->d.host);
}

static void check_traffic(struct stations *t)
{
	station_fill(&t->s[0], 0, STATION_BUF, 7);
	write_all(&t->s[0], &t->s[1]);
	assert_int_equal(complete_all(&t->s[0]), ORNIC_WC_SUCCESS);
	stations_same(t, WRITES - 1, 0, BYTES);
}

/* The peer of a removed device gets errors, its own device works; the next one connects. */
static void test_peer(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0];
	uint8_t status;

	stations_connect(t);
	write_all(a, &t->s[1]);
	write_all(&t->s[1], a);
	remove_device(t, 1);
	status = complete_all(a);
	if (status == ORNIC_WC_SUCCESS) {	/* all were done before the removal */
		write_all(a, &t->s[1]);
		status = complete_all(a);
	}
	assert_int_equal(status, ORNIC_WC_RETRY_EXC_ERR);
	assert_int_equal(host_exec(&a->d.host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0), 0);
	add_device(t, 1);
	start_again(a);
	stations_connect(t);
	check_traffic(t);
}

/*
 * Packets from and to the removed device wait at all places of the switch: in queues of
 * rate-limited links, in rules, in a capture, in requests that are not answered.
 */
static void test_packets_in_flight(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0];
	char path[64];

	ctl_run(t, "capture start %s/frames,device=1,limit=64M", t->dir);
	ctl_run(t, "fault add delay device=1 by=3ms every=5");
	ctl_run(t, "fault add duplicate device=0 by=2ms every=7");
	ctl_run(t, "fault add reorder device=1 by=3 within=5ms every=9");
	ctl_run(t, "latency on");
	for (int i = 0; i < ROUNDS; i++) {
		stations_connect(t);
		ctl_run(t, "link set 0 %d", i % 3 ? 20000000 : 1000000);
		ctl_run(t, "link set 1 30M");
		write_all(a, &t->s[1]);
		write_all(&t->s[1], a);
		if (i & 1)
			usleep(1000 * i);
		remove_device(t, 1);
		assert_int_equal(host_exec(&a->d.host, ORNIC_OP_NOP, 0, NULL, 0, NULL, 0), 0);
		add_device(t, 1);
		start_again(a);
	}
	ctl_run(t, "link set 0 off");
	ctl_run(t, "fault clear");
	stations_connect(t);
	check_traffic(t);
	ctl_run(t, "capture stop 1");
	snprintf(path, sizeof(path), "%s/frames", t->dir);
	assert_int_equal(unlink(path), 0);
}

/* Traffic of another device neither fails nor retransmits while devices come and go. */
static void test_others(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	json_t *all;

	station_bring_up(a, 0);
	station_connect(t, 0, 0);
	for (int i = 0; i < ROUNDS; i++) {
		station_bring_up(b, 1);
		station_connect(t, 1, 1);
		write_all(a, a);
		write_all(b, b);
		remove_device(t, 1);
		assert_int_equal(complete_all(a), ORNIC_WC_SUCCESS);
		write_all(a, a);
		add_device(t, 1);
		assert_int_equal(complete_all(a), ORNIC_WC_SUCCESS);
	}
	all = ctl(t, "--json qp list --device 0");
	assert_int_equal(ctl_number(json_array_get(all, 0), "retransmits"), 0);
	json_decref(all);
}

/*
 * More objects than the daemon releases in a turn: the device is gone at once nevertheless, the next
 * one of its name works, and others do not notice.
 */
static void test_many_objects(void **state)
{
	struct stations *t = *state;
	struct station *a = &t->s[0], *b = &t->s[1];
	uint32_t number;

	station_bring_up(a, 0);
	station_connect(t, 0, 0);
	for (int i = 0; i < 3; i++) {
		station_bring_up(b, 1);
		station_connect(t, 1, 1);
		for (int k = 0; k < 3000; k++)
			assert_int_equal(host_pd_create(&b->d.host, &number), 0);
		for (int k = 0; k < 3000; k++)
			assert_int_equal(host_key_create(&b->d.host, b->pd, b->buf, 64,
							 ORNIC_ACCESS_LOCAL_WRITE, &number), 0);
		write_all(a, a);
		write_all(b, b);
		remove_device(t, 1);
		add_device(t, 1);
		station_bring_up(b, 1);
		assert_int_equal(complete_all(a), ORNIC_WC_SUCCESS);
		start_again(b);
	}
	remove_device(t, 1);
	add_device(t, 1);
}

/* Return what the daemon shows of device @i, without what is its own. */
static json_t *shown(struct stations *t, size_t i)
{
	static const char *const own[] = { "name", "path", "mac", "permanent_mac" };
	json_t *devices = ctl(t, "--json device list"), *counters, *d;
	char words[64];

	snprintf(words, sizeof(words), "--json counters --device %zu --all", i);
	counters = ctl(t, words);
	snprintf(words, sizeof(words), "%zu", i);
	d = json_incref(json_array_get(devices, i));
	assert_string_equal(json_string_value(json_object_get(d, "name")), words);
	assert_string_equal(json_string_value(json_object_get(d, "mac")),
			    json_string_value(json_object_get(d, "permanent_mac")));
	for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
		json_object_del(d, own[k]);
	json_object_set(d, "counters", json_object_get(counters, words));
	json_decref(counters);
	json_decref(devices);
	return d;
}

/* Use all kinds of state of a device. */
static void use(struct stations *t)
{
	const struct ornic_port_modify_cmd port = {
		.mask = htole32(ORNIC_PORT_M_MAC | ORNIC_PORT_M_FRAME), .max_frame = htole16(4000),
		.mac = { 2, 0, 0, 0, 9, 9 },
	};
	const struct ornic_dm_create_cmd dm = { .bytes = htole64(4096) };
	struct station *s = &t->s[0];
	struct host *h = &s->d.host;
	const uint64_t secret = 0x5ec2e7;
	struct ornic_dm_create_rsp rsp;

	station_bring_up(s, 0);
	station_connect(t, 0, 0);
	write_all(s, s);
	assert_int_equal(complete_all(s), ORNIC_WC_SUCCESS);
	assert_int_equal(host_exec(h, ORNIC_OP_PORT_MODIFY, 1, &port, sizeof(port), NULL, 0),
			 ORNIC_ST_OK);
	assert_int_equal(host_exec(h, ORNIC_OP_DM_CREATE, 0, &dm, sizeof(dm), &rsp, sizeof(rsp)),
			 ORNIC_ST_OK);
	assert_int_equal(vfu_client_write(&s->d.vfu, ORNIC_BAR_DM, le64toh(rsp.offset), &secret,
					  sizeof(secret)), 0);
	write_all(s, s);
}

/* A client finds the device of its predecessor as if it were the first one. */
static void test_fresh(void **state)
{
	struct stations *t = *state;
	struct host *h = &t->s[0].d.host, *never = &t->s[1].d.host;
	uint8_t dm[2][4096];
	json_t *is, *want;

	for (int i = 0; i < 3; i++) {
		use(t);
		device_close(&t->s[0].d);
		station_open(t, 0);
		for (uint32_t reg = 0; reg < ORNIC_REG_BYTES; reg += 4)
			if (reg != ORNIC_REG_CLOCK && reg != ORNIC_REG_CLOCK + 4)
				assert_int_equal(host_reg32(h, reg), host_reg32(never, reg));
		for (int d = 0; d < 2; d++)
			for (uint64_t off = 0; off < sizeof(dm[0]); off += 8)
				assert_int_equal(vfu_client_read(&t->s[d].d.vfu, ORNIC_BAR_DM, off,
								 dm[d] + off, 8), 0);
		assert_memory_equal(dm[0], dm[1], sizeof(dm[0]));
		is = shown(t, 0);
		want = shown(t, 1);
		assert_true(json_equal(is, want));
		json_decref(is);
		json_decref(want);
	}
	stations_connect(t);
	check_traffic(t);
}

#define WITH(t)	cmocka_unit_test_setup_teardown(t, stations_setup, stations_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH(test_peer), WITH(test_packets_in_flight), WITH(test_others), WITH(test_many_objects),
		WITH(test_fresh),
	};

	if (!stations_daemon(argc, argv))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
