// SPDX-License-Identifier: GPL-2.0
/*
 * Domains: queues of one thread in memory of the application, and a protection
 * domain that two processes share.
 */
#include "cq.h"
#include "pass.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int allocations, live;

static void *allocate(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
		      uint64_t type)
{
	(void)pd;
	(void)context;
	(void)type;
	allocations++;
	live++;
	return aligned_alloc(alignment, size);
}

static void release(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
	(void)pd;
	(void)context;
	(void)type;
	live--;
	free(ptr);
}

static struct ibv_pd *make_parent(struct dev *d, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = d->pd, .td = td, .alloc = allocate, .free = release,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
	};
	struct ibv_pd *pd = ibv_alloc_parent_domain(d->verbs, &attr);

	if (!pd)
		bail("cannot allocate a parent domain: %s", strerror(errno));
	return pd;
}

/* Traffic over queues without locks, in the application's memory. */
static void thread_domain(struct dev *d, struct verdict *v)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = ibv_alloc_td(d->verbs, &td_attr);
	struct ibv_pd *pd = d->pd, *parent = make_parent(d, td);
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(d->verbs, &attr);
	struct queue q = { .cq = cq ? ibv_cq_ex_to_cq(cq) : NULL };
	struct loop l;

	if (!cq)
		bail("cannot create a CQ in a parent domain: %s", strerror(errno));
	d->pd = parent;
	loop_open(&l, d, &q, NULL);
	d->pd = pd;
	EXPECT(v, allocations == 3 && live == 3, "%d allocations, %d live", allocations, live);
	for (int i = 0; i < 200; i++) {
		loop_write(&l, i);
		expect_ids(v, q.cq, i, 1);
	}
	EXPECT(v, ibv_dealloc_pd(parent) == EBUSY, "parent domain is gone before its queues");
	EXPECT(v, ibv_dealloc_td(td) == EBUSY, "thread domain is gone before its parent domain");
	loop_close(&l);
	queue_destroy(&q);
	EXPECT(v, !live, "%d allocations are left", live);
	EXPECT(v, !ibv_dealloc_pd(parent), "the parent domain stays");
	EXPECT(v, !ibv_dealloc_td(td), "the thread domain stays");
}

/* Parameters that the other process gets with the file descriptor. */
struct gift {
	uint32_t pd, mr;
	uint32_t rkey;
	int gid_index;
	uint64_t addr;
};

/* Run the other process: its queues in the shared domain write to the shared region. */
static void use_gift(int s, struct verdict *v)
{
	struct gift gift;
	struct dev d = {};
	struct queue q;
	struct loop l;
	struct ibv_mr *mr;
	int fd = take_fd(s, &gift, sizeof(gift));

	d.verbs = ibv_import_device(fd);
	if (!d.verbs)
		bail("ibv_import_device: %s", strerror(errno));
	d.pd = ibv_import_pd(d.verbs, gift.pd);
	mr = d.pd ? ibv_import_mr(d.pd, gift.mr) : NULL;
	if (!mr || ibv_query_device(d.verbs, &d.attr) ||
	    ibv_query_gid(d.verbs, PORT, gift.gid_index, &d.gid))
		bail("cannot import: %s", strerror(errno));
	EXPECT(v, mr->rkey == gift.rkey, "rkey %x instead of %x", mr->rkey, gift.rkey);
	EXPECT(v, !ibv_import_pd(d.verbs, 0xfffff), "a protection domain that is not there");
	EXPECT(v, !ibv_import_mr(d.pd, 0xfffff), "a memory region that is not there");
	d.gid_index = gift.gid_index;
	d.mtu_code = IBV_MTU_1024;
	queue_create(&q, &d, 16, false);
	loop_open(&l, &d, &q, NULL);
	memcpy(l.mem, "imported", 8);
	l.mr->rkey = mr->rkey;			/* target address of loop_write() */
	memset(l.mem + 64, 0, 8);
	{
		struct ibv_sge sge = { (uintptr_t)l.mem, 8, l.mr->lkey };
		struct ibv_send_wr wr = {
			.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { gift.addr, gift.rkey },
		}, *bad;
		int err = ibv_post_send(l.from.qp, &wr, &bad);

		EXPECT(v, !err, "ibv_post_send: %s", strerror(err));
	}
	expect_ids(v, q.cq, 1, 1);
	loop_close(&l);
	queue_destroy(&q);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(d.pd);
	ibv_close_device(d.verbs);
}

/* The region belongs to this process, the queue pairs to the child; they share one domain. */
static void shared_pd(struct dev *d, struct verdict *v)
{
	char *mem = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(d->pd, mem, 4096, ALL_RIGHTS);
	struct verdict child = {};
	struct gift gift;
	int s[2], status;
	pid_t pid;

	if (!mr || socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		bail("cannot begin: %s", strerror(errno));
	gift = (struct gift){ d->pd->handle, mr->handle, mr->rkey, d->gid_index, (uintptr_t)mem };
	pid = fork();
	if (!pid) {
		/* the parent's device is not used here */
		use_gift(s[1], &child);
		if (write(s[1], &child, sizeof(child)) != sizeof(child))
			_exit(1);
		_exit(0);
	}
	pass_fd(s[0], d->verbs->cmd_fd, &gift, sizeof(gift));
	close(s[1]);
	if (recv(s[0], &child, sizeof(child), MSG_WAITALL) != sizeof(child))
		verdict_fail(v, "the other process gave up");
	EXPECT(v, !child.bad, "%s", child.why);
	EXPECT(v, waitpid(pid, &status, 0) == pid && !status, "status %d", status);
	EXPECT(v, !memcmp(mem, "imported", 8), "the other process's write is not here");
	/* the child's close freed no object of the parent */
	EXPECT(v, !ibv_dereg_mr(mr), "the region cannot be deregistered");
	munmap(mem, 4096);
	close(s[0]);
}

const struct cq_test domain_tests[] = {
	{ "thread_domain", thread_domain },
	{ "shared_pd", shared_pd },
	{ }
};
