// SPDX-License-Identifier: GPL-2.0
/*
 * Provider, threads that share queues: one is the device, others post, poll, arm, resize the CQ
 * and destroy queue pairs. Each work request completes once; with -fsanitize=thread, there is no
 * race.
 */
#include <errno.h>
#include <sched.h>

#include "test_libornic_kernel.h"

#define CAP		((struct ibv_qp_cap){ 16, 16, 1, 1, 0 })
#define QPS		2u
#define POSTERS		3u
#define POLLERS		3u
#define WORK		4000u		/* of each poster */
#define RESIZES		200u
#define LIVES		300u
#define SRQ_ENTRIES	32u
#define HELD		5u		/* entries of the SRQ that the device keeps to itself */

/* The device: its index in each queue, and its position in the CQ. */
static struct {
	pthread_mutex_t lock;		/* everything here; the provider never sees it */
	struct ornic_qp *qp[QPS];
	uint32_t taken[QPS];
	bool faulty;			/* name a queue pair of another CQ now and then */
	struct ornic_srq *srq;
	uint32_t srq_taken;
	uint32_t held[HELD], holds;
	struct ornic_cqe *ring;
	struct ornic_rec *rec;
	unsigned int log;
	uint32_t prod;
	_Atomic bool stop;
} device;

static struct rig rig;
static _Atomic uint8_t seen[POSTERS][WORK];
static _Atomic uint32_t completed;
static _Atomic bool stop;
static unsigned int shared_qps;		/* that all posters use */

/* Read an index as the daemon does: all entries before it are visible. */
static uint32_t index_of(const __le32 *host_index)
{
	return le32toh(__atomic_load_n(host_index, __ATOMIC_ACQUIRE));
}

/* The caller has checked that there is room. */
static void cq_write(struct ornic_cqe cqe)
{
	struct ornic_cqe *at = &device.ring[device.prod & ((1u << device.log) - 1)];
	const size_t tail = sizeof(cqe) - sizeof(ornic_entry_tail);
	ornic_entry_tail last;

	cqe.phase = (device.prod >> device.log & 1) ^ 1;
	memcpy(&last, (char *)&cqe + tail, sizeof(last));
	memcpy(at, &cqe, tail);
	__atomic_store_n((ornic_entry_tail *)((char *)at + tail), last, __ATOMIC_RELEASE);
	device.prod++;
}

static bool cq_room(void)
{
	return device.prod - index_of(&device.rec->host_index) <
	       1u << device.log;
}

static void device_sends(unsigned int i)
{
	struct ornic_wq *sq = &device.qp[i]->sq;
	const struct ornic_wqe_ctrl *ctrl;

	if (index_of(&sq->rec->host_index) == device.taken[i] ||
	    !cq_room())
		return;
	ctrl = (void *)((char *)sq->ring +
			((size_t)(device.taken[i] & (sq->entries - 1)) << sq->stride));
	assert_int_equal(le32toh(ctrl->index), device.taken[i]);
	cq_write(cqe_of(device.qp[i]->qpn, device.taken[i]++, ORNIC_WC_SEND, 0));
}

/* Take entries in order and complete them in another order. */
static void device_srq(void)
{
	struct ornic_wq *wq = &device.srq->wq;
	const struct ornic_rwqe *e;
	struct ornic_cqe cqe;
	uint32_t n;

	if (index_of(&wq->rec->host_index) != device.srq_taken &&
	    device.holds < HELD) {
		e = (void *)((char *)wq->ring +
			     ((size_t)(device.srq_taken++ & (wq->entries - 1)) << wq->stride));
		device.held[device.holds++] = le32toh(e->id);
	}
	if (!device.holds || !cq_room())
		return;
	n = device.prod % device.holds;
	cqe = cqe_of(device.qp[0]->qpn, device.held[n], ORNIC_WC_RECV, 0);
	cqe.srqn = htole32(device.srq->srqn);
	device.held[n] = device.held[--device.holds];
	cq_write(cqe);
}

static void device_lies(void)
{
	if (cq_room() && device.prod % 4 == 0)
		cq_write(cqe_of(0x777, 0, device.prod % 8 ? ORNIC_WC_RECV : ORNIC_WC_SEND, 0));
}

static void *device_run(void *arg)
{
	while (!atomic_load(&device.stop)) {
		pthread_mutex_lock(&device.lock);
		if (device.faulty)
			device_lies();
		for (unsigned int i = 0; i < QPS; i++)
			if (device.qp[i])
				device_sends(i);
		if (device.srq)
			device_srq();
		pthread_mutex_unlock(&device.lock);
		sched_yield();
	}
	return arg;
}

/* Runs within the resize command */
static void change_rings(struct ibv_cq *cq)
{
	(void)cq;
	pthread_mutex_lock(&device.lock);
	kernel.resized_at.producer = device.prod;
	kernel.resized_at.consumer =
		index_of(&device.rec->host_index);
	device.prod -= kernel.resized_at.consumer;
	device.log = kernel.resize_req.log_entries;
	device.ring = (void *)(uintptr_t)kernel.resize_req.buf_addr;
	device.rec = (void *)((char *)device.ring + ((size_t)64 << device.log));
	pthread_mutex_unlock(&device.lock);
}

static void account(const struct ibv_wc *wc)
{
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	if (wc->wr_id >= (uint64_t)POSTERS * WORK)
		return;				/* of a queue pair with another purpose */
	assert_int_equal(atomic_fetch_add(&seen[wc->wr_id / WORK][wc->wr_id % WORK], 1), 0);
	atomic_fetch_add(&completed, 1);
}

/* Poll, arm at times, and consume an event at times. */
static void *poll_run(void *arg)
{
	struct ibv_wc wc[4];
	uint32_t turn = 0;

	while (!atomic_load(&stop)) {
		int n = ornic_poll_cq(&rig.cq->vcq.cq, 1 + turn % 4, wc);

		for (int i = 0; i < n; i++)
			account(&wc[i]);
		if (turn % 16 == 3)
			ornic_arm_cq(&rig.cq->vcq.cq, turn & 1);
		if (turn % 64 == 9)
			ornic_cq_event(&rig.cq->vcq.cq);
		if (!n)
			sched_yield();
		turn++;
	}
	return arg;
}

static void *send_run(void *arg)
{
	uint64_t first = (uintptr_t)arg * WORK;
	struct ibv_send_wr *bad;

	for (uint32_t i = 0; i < WORK; i++) {
		struct ornic_qp *qp = device.qp[i % shared_qps];
		struct ibv_send_wr wr = { .wr_id = first + i, .opcode = IBV_WR_SEND };
		int err;

		while ((err = ornic_post_send(&qp->vqp.qp, &wr, &bad)) == ENOMEM)
			sched_yield();
		assert_int_equal(err, 0);
	}
	return NULL;
}

static void *recv_run(void *arg)
{
	uint64_t first = (uintptr_t)arg * WORK;
	struct ibv_sge sge = { .addr = 0x1000, .length = 64, .lkey = 5 };
	struct ibv_recv_wr *bad;

	for (uint32_t i = 0; i < WORK; i++) {
		struct ibv_recv_wr wr = { .wr_id = first + i, .sg_list = &sge, .num_sge = 1 };
		int err;

		while ((err = ornic_post_srq_recv(&device.srq->vsrq.srq, &wr, &bad)) == ENOMEM)
			sched_yield();
		assert_int_equal(err, 0);
	}
	return NULL;
}

static pthread_t start(void *(*run)(void *), uintptr_t number)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, (void *)number), 0);
	return thread;
}

/* Run all of the work while @meanwhile runs in another thread. */
static void storm(void *(*post)(void *), void (*meanwhile)(void))
{
	pthread_t device_thread = start(device_run, 0), posters[POSTERS], pollers[POLLERS];

	for (uintptr_t i = 0; i < POLLERS; i++)
		pollers[i] = start(poll_run, i);
	for (uintptr_t i = 0; i < POSTERS; i++)
		posters[i] = start(post, i);
	if (meanwhile)
		meanwhile();
	for (unsigned int i = 0; i < POSTERS; i++)
		pthread_join(posters[i], NULL);
	while (atomic_load(&completed) < POSTERS * WORK)
		sched_yield();
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < POLLERS; i++)
		pthread_join(pollers[i], NULL);
	atomic_store(&device.stop, true);
	pthread_join(device_thread, NULL);
	for (unsigned int i = 0; i < POSTERS * WORK; i++)
		assert_int_equal(seen[i / WORK][i % WORK], 1);
}

static struct ornic_qp *qp_of(struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .cap = CAP,
		.qp_type = IBV_QPT_RC, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = rig.pd,
	};
	struct ornic_qp *qp =
		to_oqp(ornic_create_qp_ex(&rig.ctx->ibv_ctx.context, &attr));

	assert_non_null(qp);
	rig_state(qp, IBV_QPS_RTS);
	kernel.qpn++;
	return qp;
}

static struct ornic_qp *qp_new(struct ibv_srq *srq)
{
	return qp_of(&rig.cq->vcq.cq, srq);
}

static int setup(void **state)
{
	(void)state;
	memset(&device, 0, sizeof(device));
	memset((void *)seen, 0, sizeof(seen));
	atomic_store(&completed, 0);
	atomic_store(&stop, false);
	shared_qps = QPS;
	rig_open(&rig, 64);
	rig.ctx->limits.log_max_srq = 5;
	rig.ctx->limits.max_srq_sge = 1;
	pthread_mutex_init(&device.lock, NULL);
	device.ring = rig.cq->mem.ring;
	device.rec = rig.cq->mem.rec;
	device.log = rig.cq->mem.log;
	kernel.on_resize = change_rings;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < QPS; i++)
		if (device.qp[i])
			assert_int_equal(ornic_destroy_qp(&device.qp[i]->vqp.qp), 0);
	if (device.srq)
		assert_int_equal(ornic_destroy_srq(&device.srq->vsrq.srq), 0);
	pthread_mutex_destroy(&device.lock);
	rig_close(&rig);
	return 0;
}

static void test_share_qps_and_cq(void **state)
{
	(void)state;
	device.qp[0] = qp_new(NULL);
	device.qp[1] = qp_new(NULL);
	storm(send_run, NULL);
}

static void test_share_srq(void **state)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = SRQ_ENTRIES, .max_sge = 1 } };
	struct ibv_srq *srq = ornic_create_srq(rig.pd, &attr);

	(void)state;
	assert_non_null(srq);
	device.srq = to_osrq(srq);
	device.qp[0] = qp_new(srq);
	storm(recv_run, NULL);
}

static void resize_again_and_again(void)
{
	for (unsigned int i = 0; i < RESIZES; i++)
		assert_int_equal(ornic_resize_cq(&rig.cq->vcq.cq, i & 1 ? 64 : 128), 0);
}

/* ORN-CQ-22 */
static void test_resize_meanwhile(void **state)
{
	(void)state;
	device.qp[0] = qp_new(NULL);
	device.qp[1] = qp_new(NULL);
	storm(send_run, resize_again_and_again);
}

/* With completions in the CQ: leftovers of one queue pair are not reported for another one. */
static void live_and_die(void)
{
	struct ibv_send_wr *bad, wr = { .wr_id = UINT64_MAX, .opcode = IBV_WR_SEND };
	struct ornic_qp *qp;

	for (unsigned int i = 0; i < LIVES; i++) {
		kernel.qpn = 0x777;
		qp = qp_new(NULL);
		pthread_mutex_lock(&device.lock);
		device.qp[1] = qp;
		device.taken[1] = 0;
		pthread_mutex_unlock(&device.lock);
		for (unsigned int n = 0; n < 1 + i % 8; n++)
			assert_int_equal(ornic_post_send(&qp->vqp.qp, &wr, &bad), 0);
		sched_yield();
		pthread_mutex_lock(&device.lock);
		device.qp[1] = NULL;
		pthread_mutex_unlock(&device.lock);
		assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
	}
}

/* ORN-CQ-19 */
static void test_destroy_meanwhile(void **state)
{
	(void)state;
	device.qp[0] = qp_new(NULL);
	shared_qps = 1;
	storm(send_run, live_and_die);
}

/* Queue pairs of another CQ live and die under a number that the device names in the shared CQ. */
static void live_elsewhere(void)
{
	struct ibv_cq *cq = ornic_create_cq(&rig.ctx->ibv_ctx.context, 8, NULL, 0);

	assert_non_null(cq);
	for (unsigned int i = 0; i < LIVES; i++) {
		struct ornic_qp *qp;

		kernel.qpn = 0x777;
		qp = qp_of(cq, NULL);
		sched_yield();
		assert_int_equal(ornic_destroy_qp(&qp->vqp.qp), 0);
	}
	assert_int_equal(ornic_destroy_cq(cq), 0);
}

/* ORN-SEC-18 */
static void test_faulty_meanwhile(void **state)
{
	(void)state;
	device.qp[0] = qp_new(NULL);
	device.faulty = true;
	shared_qps = 1;
	storm(send_run, live_elsewhere);
}

static struct ornic_qp_table *table;

/* Add and remove numbers of the same leaves as the other threads. */
static void *table_run(void *arg)
{
	uint32_t mine = (uintptr_t)arg;
	struct ornic_cq *cq = (void *)(uintptr_t)(mine + 64);

	for (uint32_t leaf = 0; leaf < 64; leaf++) {
		uint32_t number = leaf * ORNIC_QP_LEAF_SIZE + mine;

		assert_int_equal(ornic_qp_table_insert(table, number, cq, arg), 0);
		assert_ptr_equal(ornic_qp_table_find(table, number, cq), arg);
		if (leaf % 2)
			ornic_qp_table_remove(table, number);
	}
	return NULL;
}

/* No thread loses what another one adds while it adds a leaf. */
static void test_table(void **state)
{
	pthread_t threads[4];

	(void)state;
	table = calloc(1, sizeof(*table));
	assert_non_null(table);
	for (uintptr_t i = 0; i < ARRAY_SIZE(threads); i++)
		threads[i] = start(table_run, i + 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 1; i <= ARRAY_SIZE(threads); i++) {
		struct ornic_cq *cq = (void *)(uintptr_t)(i + 64);
		uint32_t n = 0;

		for (uint32_t leaf = 0; leaf < 64; leaf += 2, n++) {
			assert_ptr_equal(ornic_qp_table_next(table, &n, cq), (void *)(uintptr_t)i);
			assert_int_equal(n, leaf * ORNIC_QP_LEAF_SIZE + i);
		}
		assert_null(ornic_qp_table_next(table, &n, cq));
	}
	ornic_qp_table_free(table);
	free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test_setup_teardown(test_share_qps_and_cq, setup, teardown),
		cmocka_unit_test_setup_teardown(test_share_srq, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resize_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_destroy_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_faulty_meanwhile, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
