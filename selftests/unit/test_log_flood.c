// SPDX-License-Identifier: GPL-2.0
/*
 * Everything that a guest or its VMM can do to the log repeatedly costs few lines, and another
 * device has its own. The source says how many lines are missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "inproc.h"
#include "log.h"
#include "printed.h"
#include "vfu/command.h"

#include <ornic/admin.h>
#include <ornic/identify.h>

#define TIMES	2000

static void request(struct inproc *p, unsigned int cmd, const void *payload, size_t len)
{
	static uint8_t out[VFU_MAX_MSG];
	struct vfu_msg m = {
		.hdr.cmd = cmd, .payload = payload, .len = len, .out = out,
	};

	assert_int_not_equal(vfu_command(&p->ep, &m), 0);
}

static void enable(struct inproc *p)
{
	host_set32(&p->host, ORNIC_REG_CONTROL, 0);
	host_prepare(&p->host, 7);
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_READY);
}

static void bad_enable(struct inproc *p)
{
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_RESET);
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_FATAL);
}

static void fatal(struct inproc *p)
{
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_RESET);
	host_prepare(&p->host, 7);
	host_set32(&p->host, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
	assert_int_equal(host_reg32(&p->host, ORNIC_REG_STATUS), ORNIC_STS_READY);
	function_fail(p->f, ORNIC_SYN_DMA);
	inproc_turn(p);
}

static void host_info(struct inproc *p)
{
	const struct ornic_host_info_cmd info = { "Linux", "ornic" };

	assert_int_equal(host_exec(&p->host, ORNIC_OP_HOST_INFO, 0, &info, sizeof(info), NULL, 0),
			 0);
}

static void not_shared(struct inproc *p)
{
	p->ep.shared_memory = false;
	inproc_bus_master(p, false);
	inproc_bus_master(p, true);
}

static void unknown_request(struct inproc *p)
{
	request(p, 99, NULL, 0);
}

static void second_version(struct inproc *p)
{
	request(p, VFU_VERSION, NULL, 0);
}

static void short_request(struct inproc *p)
{
	request(p, VFU_DMA_MAP, NULL, 0);
}

static void bad_map(struct inproc *p)
{
	const struct vfu_dma_map map = { sizeof(map), 0, 1, 2, 3 };

	request(p, VFU_DMA_MAP, &map, sizeof(map));
}

static void write_outside(struct inproc *p)
{
	const struct vfu_region_access a = { ~0ull, 0, 1 };
	uint8_t payload[sizeof(a) + 1] = { 0 };

	memcpy(payload, &a, sizeof(a));
	request(p, VFU_REGION_WRITE, payload, sizeof(payload));
}

static void lost_irq(struct inproc *p)
{
	p->ep.msix.vector[0].fd = 1000000;
	p->ep.msix.enabled = true;
	vfu_irq(&p->f->vfu, 0);
	p->ep.msix.vector[0].fd = -1;
}

static void flr(struct inproc *p)
{
	inproc_flr(p);
}

/* The least lines of each action, and the level of the most important one */
static const struct {
	const char *name;
	void (*act)(struct inproc *p);
	unsigned int lines;
	enum log_level level;
} actions[] = {
	{ "host_info", host_info, 1, LOG_INFO },
	{ "not_shared", not_shared, 1, LOG_WARN },
	{ "unknown_request", unknown_request, 1, LOG_INFO },
	{ "second_version", second_version, 1, LOG_ERR },
	{ "short_request", short_request, 2, LOG_ERR },
	{ "bad_map", bad_map, 1, LOG_WARN },
	{ "write_outside", write_outside, 1, LOG_WARN },
	{ "lost_irq", lost_irq, 1, LOG_WARN },
	{ "enable", enable, 2, LOG_INFO },
	{ "fatal", fatal, 2, LOG_ERR },
	{ "bad_enable", bad_enable, 1, LOG_WARN },
};

static unsigned int count(const char *text)
{
	unsigned int n = 0;

	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

static time_t seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/*
 * Do something many @times. Store in @said what the daemon prints, with the report at the end.
 * Return: suppressed lines.
 */
static unsigned long flood(struct inproc *p, void (*act)(struct inproc *p), unsigned int times,
			   char *said, size_t size)
{
	struct log_source *log = &p->f->vfu.log;
	struct printed printed;
	unsigned long suppressed;

	log->account = (struct log_account) { 0 };
	log->debug = (struct log_account) { 0 };
	print_begin(&printed, STDERR_FILENO);
	for (unsigned int i = 0; i < times; i++)
		act(p);
	suppressed = log->suppressed;
	log_source_end(log);
	print_end(&printed, said, size);
	return suppressed;
}

static void test_actions(void **state)
{
	static const unsigned int burst[] = LOG_BURST;
	struct inproc *p = *state;
	char said[65536], want[100];

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		time_t begin = seconds();
		unsigned long suppressed = flood(p, actions[i].act, TIMES, said, sizeof(said));
		unsigned int lines = count(said) - 1;

		if (lines > burst[actions[i].level] + (seconds() - begin) + 1)
			fail_msg("%s: %u lines: %s", actions[i].name, lines, said);
		if (lines + suppressed < (unsigned long)actions[i].lines * TIMES)
			fail_msg("%s: %u lines, %lu suppressed", actions[i].name, lines,
				 suppressed);
		snprintf(want, sizeof(want), "test: %lu lines suppressed\n", suppressed);
		assert_non_null(strstr(said, want));
	}
}

/* Level debug has more lines, but not every one either. */
static void test_debug(void **state)
{
	static char said[1 << 20];
	struct inproc *p = *state;
	time_t begin = seconds();
	unsigned long suppressed;
	unsigned int lines;

	log_setup(LOG_DEBUG, false);
	suppressed = flood(p, flr, 50000, said, sizeof(said));
	log_setup(LOG_INFO, false);
	lines = count(said) - 1;
	assert_in_range(lines, LOG_DEBUG_BURST,
			LOG_DEBUG_BURST + 1000 * (seconds() - begin + 1));
	assert_true(lines + suppressed >= 50000);
}

/* A device whose neighbour floods the log has all its lines. */
static void test_neighbour(void **state)
{
	static const unsigned int burst[] = LOG_BURST;
	struct inproc *p = *state, *q;
	void *other = NULL;
	char said[65536];

	assert_int_equal(inproc_setup_ready(&other), 0);
	q = other;
	q->f->vfu.log.name = "other";
	assert_true(flood(p, short_request, TIMES, said, sizeof(said)) > 0);
	assert_int_equal(flood(q, host_info, burst[LOG_INFO], said, sizeof(said)), 0);
	assert_int_equal(count(said), burst[LOG_INFO]);
	assert_int_equal(strncmp(said, "ornicd: other: host is", 22), 0);
	inproc_teardown(&other);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, inproc_setup_ready, \
							inproc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(actions), TEST(debug), TEST(neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
