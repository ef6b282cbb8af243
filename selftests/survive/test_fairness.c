// SPDX-License-Identifier: GPL-2.0
/*
 * A guest keeps its share of the daemon whatever another guest does: at least 80 % of the bandwidth
 * that it has beside an honest neighbour which is equally busy, with messages of 64 bytes and of
 * 64 KiB, and 99th percentiles of latency below three times those beside that neighbour: of a WRITE
 * of an idle guest, and of a command and a register load of one whose queue pair is busy.
 *
 * The host may give daemon and guests little time. So queues are long, and bandwidth is the median over
 * windows of completions, by the time stamps of the daemon. The time for which daemon and guest waited
 * for a processor is subtracted from a latency. Each attack is compared with the honest neighbour
 * directly before, both by the medians of several short rounds. Most of the comparisons must succeed.
 * On a machine that runs other tests meanwhile they still vary, so the bounds are 50 % and six times
 * there, unless FAIRNESS_STRICT=1.
 *
 * FAIRNESS_MS is the length of a measurement (30 ms; strict: 50 ms), FAIRNESS_ROUNDS the number of
 * rounds (3), FAIRNESS_ATTEMPTS the most comparisons (3), FAIRNESS_ONLY a part of the names of the
 * attacks to run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attacks.h"
#include "stations.h"

#include <endian.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The bounds: per cent of the share, times the latency */
#define SHARE		80
#define LATENCY		3
/* The bounds without FAIRNESS_STRICT, for a machine that runs other tests meanwhile */
#define LOOSE_SHARE	50
#define LOOSE_LATENCY	6

#define MOST_ROUNDS	101
#define SMALL		64u
#define LARGE		(64u << 10)
#define LOG_SENDS	14
#define STRIDE		6
#define SMALL_DEPTH	16000u
#define LARGE_DEPTH	4000u
#define SMALL_WINDOW	400u	/* completions */
#define LARGE_WINDOW	32u
#define SAMPLES		100000u
#define LEAST_SAMPLES	100u
#define DEADLINE_NS	30000000000ull	/* a measurement that takes longer has failed */
#define BUSY_DEPTH	16u		/* WRITEs of a busy guest */

enum { NEIGHBOUR, VICTIM, ATTACKER, GUESTS };

/**
 * struct flow - a queue pair that is connected with itself
 * @s:		its station
 * @qp:		the queue pair
 * @cq:		its CQ
 * @busy:	WRITEs in flight, for keep_busy()
 */
struct flow {
	struct station *s;
	struct host_qp qp;
	struct host_ring cq;
	uint32_t busy;
};

/* What the neighbour does: bytes of its messages; 0: nothing */
static uint32_t *neighbour_len;
/* Statistics of the scheduler about the daemon and this process */
static int sched[2];
static unsigned int measure_ms, rounds = 3, attempts = 3, strict;

static void flow_open(struct stations *t, int guest, struct flow *f)
{
	struct station *s = &t->s[guest];
	struct host *h = &s->d.host;
	struct host_peer self = { .ip = station_ip(guest), .mtu = ORNIC_MTU_4096 };
	struct ornic_qp_create_cmd cmd;

	h->timeout_ms = 30000;
	prctl(PR_SET_TIMERSLACK, 1);	/* sleep for 10 us, not 60 */
	station_bring_up(s, guest);
	f->s = s;
	assert_int_equal(host_cq_create(h, &f->cq, LOG_SENDS, s->eq1.number,
					ORNIC_CQ_F_TIMESTAMP), 0);
	host_qp_template(h, &f->qp, ORNIC_QPT_RC, LOG_SENDS, s->pd, f->cq.number, f->cq.number,
			 &cmd);
	cmd.sq_stride = STRIDE;		/* a WRITE, and no more, so that the ring is short */
	cmd.max_send_sge = htole16(1);
	cmd.max_inline = 0;
	f->qp.sq.stride = STRIDE;
	assert_int_equal(host_exec(h, ORNIC_OP_QP_CREATE, 0, &cmd, sizeof(cmd), NULL, 0), 0);
	f->qp.number = host_number(h);
	self.qpn = f->qp.number;
	station_mac(guest, self.mac);
	assert_int_equal(host_rc_connect(&f->qp, &self), 0);
}

static void flow_write(struct flow *f, uint32_t len)
{
	struct station *s = f->s;

	host_send(&f->qp, ORNIC_WR_RDMA_WRITE, s->buf, len, s->key, s->buf + LARGE, s->key);
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Return the value below which @part of 100 values are. */
static double percentile(double *all, size_t n, unsigned int part)
{
	assert_true(n > 0);
	qsort(all, n, sizeof(*all), compare);
	return all[n * part / 100];
}

/** struct windows - times of windows of completions, ns */
struct windows {
	double time[SAMPLES];
	size_t n;
	uint32_t size;
	uint32_t seen;		/* completions of the current window */
	uint64_t begin;		/* its begin, 0: unknown */
};

static void window_count(struct windows *w, uint64_t timestamp)
{
	if (++w->seen < w->size)
		return;
	if (w->begin && w->n < SAMPLES)
		w->time[w->n++] = timestamp - w->begin;
	w->begin = timestamp;
	w->seen = 0;
}

/* Consume completions, and count them in @w unless it is NULL. Return their number. */
static uint32_t flow_poll(struct flow *f, struct windows *w)
{
	struct ornic_cqe cqe;
	uint32_t n = 0;

	for (; host_next(&f->cq, &cqe); n++) {
		assert_int_equal(cqe.status, ORNIC_WC_SUCCESS);
		if (w)
			window_count(w, le64toh(cqe.timestamp));
	}
	return n;
}

/*
 * Keep many WRITEs of @len bytes in flight for @ms, and until @w has three windows. Let them complete
 * afterwards.
 */
static void flow_run(struct flow *f, uint32_t len, unsigned int ms, struct windows *w)
{
	uint64_t end = stations_clock() + ms * 1000000ull, deadline = end + DEADLINE_NS;
	uint32_t depth = len == SMALL ? SMALL_DEPTH : LARGE_DEPTH, sent = 0;

	do {
		assert_true(stations_clock() < deadline);
		for (; sent < depth; sent++)
			flow_write(f, len);
		usleep(50);
		sent -= flow_poll(f, w);
	} while (stations_clock() < end || (w && w->n < 3));
	while (sent) {
		assert_true(stations_clock() < deadline);
		usleep(50);
		sent -= flow_poll(f, NULL);
	}
}

/* Return how many WRITEs of @len bytes complete per second. */
static double flow_rate(struct flow *f, uint32_t len, unsigned int ms)
{
	static struct windows w;

	w.n = 0;
	w.begin = 0;
	w.seen = 0;
	w.size = len == SMALL ? SMALL_WINDOW : LARGE_WINDOW;
	flow_run(f, len, ms, &w);
	return w.size * 1e9 / percentile(w.time, w.n, 50);
}

/* Return the time for which a thread waited for a processor, ns; @fd is its schedstat. */
static unsigned long long run_delay(int fd)
{
	unsigned long long delay = 0;
	char line[96] = "";

	if (pread(fd, line, sizeof(line) - 1, 0) > 0)
		sscanf(line, "%*u %llu", &delay);
	return delay;
}

static unsigned long long run_delays(void)
{
	return run_delay(sched[0]) + run_delay(sched[1]);
}

static void write_once(struct flow *f)
{
	flow_write(f, SMALL);
	while (!flow_poll(f, NULL))
		;
}

/* Keep BUSY_DEPTH WRITEs in flight. */
static void keep_busy(struct flow *f)
{
	f->busy -= flow_poll(f, NULL);
	for (; f->busy < BUSY_DEPTH; f->busy++)
		flow_write(f, LARGE);
}

static void command_once(struct flow *f)
{
	const struct ornic_admin_cmd nop = { .opcode = htole16(ORNIC_OP_NOP) };
	struct host *h = &f->s->d.host;

	keep_busy(f);
	host_submit(h, &nop);
	while (!host_valid(h, h->acq, h->log_admin, h->done))
		keep_busy(f);
	assert_int_equal(host_complete(h), ORNIC_ST_OK);
}

static void load_once(struct flow *f)
{
	keep_busy(f);
	assert_int_equal(host_reg32(&f->s->d.host, ORNIC_REG_MAGIC), ORNIC_MAGIC);
}

/* Do @once again and again for @ms. Return the 99th percentile of the latency, ns. */
static double flow_latency(struct flow *f, unsigned int ms, void (*once)(struct flow *f))
{
	static double all[SAMPLES];
	uint64_t end = stations_clock() + ms * 1000000ull, deadline = end + DEADLINE_NS;
	uint64_t begin, time;
	size_t n = 0;

	do {
		unsigned long long delay = run_delays();

		begin = stations_clock();
		assert_true(begin < deadline);
		once(f);
		time = stations_clock() - begin;
		delay = run_delays() - delay;
		/* some of the delay may have been before */
		if (delay < time)
			all[n++] = time - delay;
	} while (n < SAMPLES && (begin < end || n < LEAST_SAMPLES));
	while (f->busy) {
		assert_true(stations_clock() < deadline);
		f->busy -= flow_poll(f, NULL);
	}
	return percentile(all, n, 99);
}

/* The neighbour's life, in a process of its own */
static void neighbour(struct stations *t)
{
	struct flow f = { 0 };

	station_open(t, NEIGHBOUR);
	flow_open(t, NEIGHBOUR, &f);
	for (;;) {
		uint32_t len = __atomic_load_n(neighbour_len, __ATOMIC_RELAXED);

		if (len)
			flow_run(&f, len, 5, NULL);
		else
			usleep(1000);
	}
}

static pid_t start_neighbour(struct stations *t)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	neighbour(t);
	return 0;
}

static void stop(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);	/* it lives, so it was active */
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Let the neighbour send messages of @len bytes from now on. */
static void let_neighbour(uint32_t len)
{
	__atomic_store_n(neighbour_len, len, __ATOMIC_RELAXED);
	usleep(20000);
}

/** struct kind - something that is measured */
static const struct kind {
	const char *name;
	uint32_t rate_of;			/* bytes of WRITEs, of which the rate is measured */
	void (*latency_of)(struct flow *f);	/* of this the latency is */
	uint32_t neighbour;			/* bytes of the honest neighbour's WRITEs meanwhile */
} kinds[] = {
	{ "64 B", SMALL, NULL, SMALL },
	{ "64 KiB", LARGE, NULL, LARGE },
	{ "WRITE", 0, write_once, LARGE },
	{ "command", 0, command_once, LARGE },
	{ "load", 0, load_once, LARGE },
};

#define KINDS	(sizeof(kinds) / sizeof(kinds[0]))

/* Measure the victim, beside the neighbour if it is @honest. Write the medians to @to. */
static void measure(struct flow *f, bool honest, double to[KINDS])
{
	double all[KINDS][MOST_ROUNDS];

	for (unsigned int i = 0; i < rounds; i++) {
		for (size_t k = 0; k < KINDS; k++) {
			let_neighbour(honest ? kinds[k].neighbour : 0);
			all[k][i] = kinds[k].rate_of ?
				    flow_rate(f, kinds[k].rate_of, measure_ms) :
				    flow_latency(f, measure_ms, kinds[k].latency_of);
		}
	}
	let_neighbour(0);
	for (size_t k = 0; k < KINDS; k++)
		to[k] = percentile(all[k], rounds, 50);
}

static void print_measure(const char *name, const double of[KINDS])
{
	print_message("# %s:", name);
	for (size_t k = 0; k < KINDS; k++)
		print_message(" %s %.0f %s", kinds[k].name,
			      kinds[k].rate_of ? of[k] : of[k] / 1e3,
			      kinds[k].rate_of ? "per s" : "us");
	print_message("\n");
}

static bool within(const struct kind *k, double part)
{
	if (k->rate_of)
		return part * 100 >= (strict ? SHARE : LOOSE_SHARE);
	return part < (strict ? LATENCY : LOOSE_LATENCY);
}

/* Compare an attack with the honest neighbour. Return true if it is within the bounds. */
static bool fair(struct stations *t, struct flow *f, const struct attack *what)
{
	double honest[KINDS], now[KINDS];
	bool good = true;
	pid_t pid;

	measure(f, true, honest);
	pid = attack_start(t, ATTACKER, what);
	usleep(20000);
	measure(f, false, now);
	stop(pid);
	print_message("# %s:", what->name);
	for (size_t k = 0; k < KINDS; k++) {
		double part = now[k] / honest[k];

		if (kinds[k].rate_of)
			print_message(" %s %.0f %%", kinds[k].name, part * 100);
		else
			print_message(" %s %.0f us %.2f times", kinds[k].name, now[k] / 1e3, part);
		good &= within(&kinds[k], part);
	}
	print_message("%s\n", good ? "" : " - beyond the bounds");
	return good;
}

/* Return true if most comparisons are within the bounds. */
static bool mostly_fair(struct stations *t, struct flow *f, const struct attack *what)
{
	unsigned int good = 0, bad = 0;

	while (good <= attempts / 2 && bad <= attempts / 2)
		if (fair(t, f, what))
			good++;
		else
			bad++;
	return good > bad;
}

static void test_fairness(void **state)
{
	const char *only = getenv("FAIRNESS_ONLY");
	struct stations *t = *state;
	double alone[KINDS];
	unsigned int bad = 0;
	struct flow f = { 0 };
	pid_t pid;

	pid = start_neighbour(t);
	station_open(t, VICTIM);
	flow_open(t, VICTIM, &f);
	measure(&f, false, alone);
	print_measure("alone", alone);
	measure(&f, true, alone);
	print_measure("beside the honest neighbour", alone);
	for (size_t i = 0; i < nattacks; i++)
		if (!only || strstr(attacks[i].name, only))
			bad += !mostly_fair(t, &f, &attacks[i]);
	stop(pid);
	device_close(&t->s[VICTIM].d);
	assert_int_equal(bad, 0);
}

static int setup(void **state)
{
	struct stations *t = test_calloc(1, sizeof(*t));
	char path[64];

	neighbour_len = mmap(NULL, sizeof(*neighbour_len), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(neighbour_len != MAP_FAILED);
	stations_start(t, GUESTS);
	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)t->pid);
	sched[0] = open(path, O_RDONLY | O_CLOEXEC);
	sched[1] = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	stations_stop(*state);
	test_free(*state);
	munmap(neighbour_len, sizeof(*neighbour_len));
	return 0;
}

/* Set *@to to an environment variable, if it is a number from 1 to @most. */
static void setting(const char *name, unsigned int *to, unsigned int most)
{
	const char *text = getenv(name);
	unsigned int n;

	if (text && sscanf(text, "%u", &n) == 1 && n && n <= most)
		*to = n;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fairness, setup, teardown),
	};
	static char path[4096];
	char *args[] = { argv[0], argc > 1 ? argv[1] : path, NULL };
	const char *build = getenv("O");

	setting("FAIRNESS_STRICT", &strict, 1);
	measure_ms = strict ? 50 : 30;
	setting("FAIRNESS_MS", &measure_ms, 100000);
	setting("FAIRNESS_ROUNDS", &rounds, MOST_ROUNDS);
	setting("FAIRNESS_ATTEMPTS", &attempts, 100);
	snprintf(path, sizeof(path), "%s/ornicd", build ? build : "build");
	if (!stations_daemon(2, args))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
