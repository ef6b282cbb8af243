/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A kernel consumer of verbs that tests a driver as storage and file protocols use
 * it. A client registers its memory and sends the key. A server moves the data by
 * rdma_rw contexts and answers, often with an invalidation of the key.
 *
 * Both ends are the same module, in one machine or in two.
 */
#ifndef ORNIC_KTEST_H
#define ORNIC_KTEST_H

#include <linux/completion.h>
#include <linux/scatterlist.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define KTEST_DEPTH	32	/* receives of each end, and requests in flight */
#define KTEST_SENDS	128	/* entries of a send queue */
#define KTEST_CQES	512	/* CQ entries for one connection, flushes included */
#define KTEST_TIMEOUT	(20 * HZ)

enum ktest_op {
	KTEST_ECHO,
	KTEST_PULL,		/* server reads the client's memory and checks it */
	KTEST_PUSH,		/* server writes a pattern to the client's memory */
	KTEST_F_INVALIDATE = 0x100,	/* answer with SEND_WITH_INV */
};

/**
 * struct ktest_msg - request and answer, in host byte order: both ends have the same build
 * @op: enum ktest_op
 * @status: status of an answer, 0 or negative errno
 * @addr: address of the client's memory
 * @rkey: key of the memory
 * @len: length in bytes
 * @seed: seed of the pattern
 * @pad: unused
 */
struct ktest_msg {
	u32 op;
	s32 status;
	u64 addr;
	u32 rkey;
	u32 len;
	u32 seed;
	u32 pad;
};

struct ktest_conn;

/**
 * struct ktest_slot - a message to send or receive
 * @conn: connection
 * @msg: the message
 * @dma: DMA address of @msg
 * @cqe: completion callback
 * @work: server: the request being served
 */
struct ktest_slot {
	struct ktest_conn *conn;
	struct ktest_msg *msg;
	u64 dma;
	struct ib_cqe cqe;
	struct work_struct work;
};

/**
 * struct ktest_conn - one end of a connection
 * @id: id of the connection manager
 * @pd: protection domain
 * @cq: completion queue
 * @pooled: @cq is from the pool of ib_core
 * @shared: receives are posted to @srq
 * @srq: shared receive queue, or NULL
 * @limit: completes when @srq reaches its limit
 * @drained: ktest_drain() was called
 * @last_wqe: completes at the LAST_WQE event: the queue pair takes no more entries of @srq
 * @removal: client: completes when the device goes away
 * @poll: polling context of @cq
 * @recv: receives
 * @send: sends; [i] answers recv[i] at the server
 * @on_recv: called for each message received, in the context of @cq
 * @cm: completes when the connection manager has set @cm_status
 * @cm_status: 0 or negative errno
 * @reply: client: completes when an answer is in @answer or the connection broke
 * @answer: client: last answer
 * @wc: client: completion of @answer
 * @broken: a work request failed
 * @posted: number of posted work requests
 * @completed: number of completed work requests
 * @list: server: all connections
 * @bye: server: tears the connection down
 */
struct ktest_conn {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	bool pooled;
	bool shared;
	struct ib_srq *srq;
	struct completion limit;
	bool drained;
	struct completion last_wqe;
	struct completion removal;
	enum ib_poll_context poll;
	struct ktest_slot recv[KTEST_DEPTH];
	struct ktest_slot send[KTEST_DEPTH];
	void (*on_recv)(struct ktest_slot *slot, struct ib_wc *wc);
	struct completion cm;
	int cm_status;
	struct completion reply;
	struct ktest_msg answer;
	struct ib_wc wc;
	bool broken;
	atomic_t posted;
	atomic_t completed;
	struct list_head list;
	struct work_struct bye;
};

/* conn.c */
int ktest_conn_open(struct ktest_conn *conn);
void ktest_conn_close(struct ktest_conn *conn);
void ktest_drain(struct ktest_conn *conn);
int ktest_post_recv(struct ktest_slot *slot);
int ktest_post_send(struct ktest_slot *slot, struct ib_send_wr *before, u32 invalidate);
void ktest_send_wr(struct ktest_slot *slot, struct ib_send_wr *wr, struct ib_sge *sge,
		   u32 invalidate);

/* memory.c */
int ktest_mem_alloc(struct sg_table *mem, u32 offset, u32 len);
int ktest_mem_alloc_block(struct sg_table *mem, u32 len);
void ktest_mem_free(struct sg_table *mem);
void ktest_mem_fill(struct sg_table *mem, u32 seed);
bool ktest_mem_check(struct sg_table *mem, u32 seed);
bool ktest_block_check(struct sg_table *mem, u32 offset, u32 len, u32 seed);

/* server.c */
int ktest_server_start(struct sockaddr *addr);
void ktest_server_stop(void);

/* client.c */
struct ktest_conn *ktest_connect(struct sockaddr *addr, enum ib_poll_context poll, bool pooled,
				 bool shared);
void ktest_disconnect(struct ktest_conn *conn);
int ktest_call(struct ktest_conn *conn, struct ktest_msg *msg, struct ib_send_wr *before);
int ktest_run_wr(struct ktest_conn *conn, struct ib_send_wr *wr);

/* objects.c */
int ktest_objects_create(const char *name);
void ktest_objects_destroy(void);

/* reset.c */
int ktest_reset_prepare(const char *name);
void ktest_reset(void);

/* cases.c */
void ktest_cases(struct sockaddr *addr, const char *only);
bool ktest_failed(const char *where, int line, const char *what);

/* Return true and print the condition and its place if @cond is false. */
#define FAILED(cond)	(!(cond) && ktest_failed(__func__, __LINE__, #cond))

/* death.c */
void ktest_death(struct sockaddr *addr);

/* queues.c */
bool ktest_case_srq_limit(struct ktest_conn *conn);
bool ktest_case_srq_resize(struct ktest_conn *conn);
bool ktest_case_largest_queues(struct ktest_conn *conn);
bool ktest_case_mcast(struct ktest_conn *conn);
#ifdef KTEST_HAVE_RESIZE_CQ
bool ktest_case_resize_cq(struct ktest_conn *conn);
bool ktest_case_resize_cq_reset(struct ktest_conn *conn);
bool ktest_case_resize_cq_destroy(struct ktest_conn *conn);
#else
#define ktest_case_resize_cq		NULL
#define ktest_case_resize_cq_reset	NULL
#define ktest_case_resize_cq_destroy	NULL
#endif

#endif
