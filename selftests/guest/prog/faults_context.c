// SPDX-License-Identifier: GPL-2.0
/*
 * Faults while a process opens and queries the device, and while it exits with everything
 * open.
 */
#include "faults_cases.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_context *verbs;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_ah *ah;

/* libibverbs tries several ways, and returns the error of the last one only. */
static int open_device(void)
{
	verbs = ibv_open_device(dev.verbs->device);
	return verbs ? 0 : ENOMEM;
}

static int close_device(void)
{
	return status(ibv_close_device(verbs));
}

static int import_device(void)
{
	int fd = dup(dev.verbs->cmd_fd);

	verbs = ibv_import_device(fd);
	if (!verbs) {
		int err = made(verbs);

		close(fd);
		return err;
	}
	return 0;
}

static int query_gids(void)
{
	struct ibv_gid_entry entries[8];
	ssize_t n = ibv_query_gid_table(dev.verbs, entries, 8, 0);

	return n < 0 ? -n : 0;
}

static int alloc_pd(void)
{
	pd = ibv_alloc_pd(dev.verbs);
	return made(pd);
}

static int dealloc_pd(void)
{
	return status(ibv_dealloc_pd(pd));
}

static int create_channel(void)
{
	channel = ibv_create_comp_channel(dev.verbs);
	return made(channel);
}

static int destroy_channel(void)
{
	return status(ibv_destroy_comp_channel(channel));
}

static int create_ah(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = PORT,
		.grh = { .dgid = dev.gid, .sgid_index = dev.gid_index, .hop_limit = 64 },
	};

	ah = ibv_create_ah(dev.pd, &attr);
	return made(ah);
}

static int destroy_ah(void)
{
	return status(ibv_destroy_ah(ah));
}

/* Create objects of each kind and leave them to the exit of the process. */
static void litter(void)
{
	static char mem[20000];
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_alloc_dm_attr dm = { .length = 4096 };
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 0x77 } };
	struct ibv_pd *mine;

	if (open_device())
		_exit(1);
	mine = ibv_alloc_pd(verbs);
	channel = ibv_create_comp_channel(verbs);
	qp.send_cq = ibv_create_cq(verbs, 16, NULL, channel, 0);
	qp.recv_cq = qp.send_cq;
	if (!mine || !channel || !qp.send_cq || !ibv_create_srq(mine, &srq) ||
	    !ibv_reg_mr(mine, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE) ||
	    !ibv_alloc_mw(mine, IBV_MW_TYPE_1) || !ibv_alloc_dm(verbs, &dm) ||
	    ibv_attach_mcast(ibv_create_qp(mine, &qp), &group, 0))
		_exit(1);
}

/* A process exits in the middle of it, each allocation of its exit failing in turn. */
unsigned int faults_process_end(struct verdict *v)
{
	unsigned int n = 0;
	siginfo_t info;
	int result = 0;
	bool hit;

	do {
		pid_t pid = fork();

		n++;
		if (!pid) {
			litter();
			faults_arm(n);
			_exit(0);
		}
		waitid(P_PID, pid, &info, WEXITED | WNOWAIT);
		hit = faults_hit(pid);
		waitpid(pid, &result, 0);
	} while (hit && !result);
	if (result)
		verdict_fail(v, "the process with fault %u ended with %d", n, result);
	return n - 1;
}

static const struct fault_case context_cases[] = {
	{ "open_device", open_device, close_device },
	{ "import_device", import_device, close_device },
	{ "query_gids", query_gids, NULL },
	{ "pd", alloc_pd, dealloc_pd },
	{ "comp_channel", create_channel, destroy_channel },
	{ "ah", create_ah, destroy_ah },
};

FAULT_GROUP(context, NULL, NULL);
