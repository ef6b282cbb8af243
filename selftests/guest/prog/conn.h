/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device, its completion queues, and queue pairs connected to those of the remote end.
 */
#ifndef GUEST_CONN_H
#define GUEST_CONN_H

#include "oob.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define PORT	1
#define QKEY	0x11111111u

/* An opened device. */
struct dev {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	union ibv_gid gid;
	int gid_index;
	unsigned int mtu;		/* bytes */
	enum ibv_mtu mtu_code;
};

/* Parameters of a queue pair that the remote end needs. */
struct conn_addr {
	uint32_t qpn;
	uint32_t psn;
	union ibv_gid gid;
};

/* Attributes of a connection; conn_attr_default() sets defaults. */
struct conn_attr {
	enum ibv_qp_type type;
	struct ibv_qp_cap cap;
	unsigned int access;		/* of the queue pair */
	uint8_t timeout;		/* 4.096 us * 2^n */
	uint8_t retry;
	uint8_t rnr_retry;
	uint8_t min_rnr;
	uint8_t max_rd;			/* as requester */
	uint8_t max_dest_rd;		/* as responder */
	bool stay_rtr;			/* stop before RTS */
	uint8_t static_rate;		/* enum ibv_rate */
	struct ibv_srq *srq;		/* NULL: a separate receive queue */
	struct ibv_pd *pd;		/* NULL: the device's */
	uint32_t create_flags;		/* IBV_QP_CREATE_* */
	uint64_t ops;			/* IBV_QP_EX_WITH_*, for ibv_qp_to_qp_ex() */
	uint32_t psn;			/* of the first request; PSN_ANY: made from the number */
};

#define PSN_ANY	(1u << 24)

struct queue {
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;	/* NULL: poll without one */
	unsigned int unacked;
};

struct conn {
	struct dev *dev;
	struct conn_attr attr;
	struct ibv_qp *qp;
	struct ibv_ah *ah;		/* UD */
	struct conn_addr here, there;
};

#define ALL_RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Instead of the index of a GID */
#define GID_IPV4	-1
#define GID_IPV6	-2

bool gid_is_ipv4(const union ibv_gid *gid);

void dev_open(struct dev *d, const char *name, int gid_index);
void dev_close(struct dev *d);

void queue_create(struct queue *q, struct dev *d, int entries, bool events);
void queue_destroy(struct queue *q);
/* Get the next completion; false if none came within some seconds. */
bool queue_wait(struct queue *q, struct ibv_wc *wc, double seconds);

void conn_attr_default(struct conn_attr *a, struct dev *d);
/* Create a queue pair in RESET; return 0 or an errno. */
int conn_make(struct conn *c, struct dev *d, const struct conn_attr *a, struct queue *send,
	      struct queue *recv);
/* Create a queue pair in INIT; exit if that fails. */
void conn_create(struct conn *c, struct dev *d, const struct conn_attr *a, struct queue *send,
		 struct queue *recv);
void conn_connect(struct conn *c, struct oob *o);
void conn_destroy(struct conn *c);
/* Make one transition of the state machine; return 0 or an errno. */
int conn_to_init(struct conn *c);
int conn_to_rtr(struct conn *c);
int conn_to_rts(struct conn *c);
int conn_to(struct conn *c, enum ibv_qp_state state);
enum ibv_qp_state conn_state(struct conn *c);

#endif
