/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queues of a test host: event, completion and work queues, and the keys they need.
 *
 * Creating functions return enum ornic_status, or a negative errno.
 */
#ifndef SELFTESTS_LIB_QUEUE_H
#define SELFTESTS_LIB_QUEUE_H

#include "host.h"

/**
 * struct host_ring - a ring that the device produces: EQ or CQ
 * @h:		host
 * @number:	number of the EQ or CQ
 * @kind:	doorbell kind for arming
 * @log:	log2 entries
 * @ring:	entries
 * @rec:	doorbell record
 * @cons:	next entry to consume
 * @sn:		serial number of the next arm
 */
struct host_ring {
	struct host *h;
	uint32_t number;
	enum ornic_db_kind kind;
	uint8_t log;
	uint64_t ring;
	uint64_t rec;
	uint32_t cons;
	uint32_t sn;
};

int host_eq_create(struct host *h, struct host_ring *eq, uint8_t log, uint16_t vector,
		   uint64_t classes);
int host_cq_create(struct host *h, struct host_ring *cq, uint8_t log, uint32_t eq,
		   uint8_t flags);
/* host_next() - copy the next entry and consume it. Return: false if there is none. */
bool host_next(struct host_ring *r, void *entry);
/* host_wait() - wait for the next entry, copy and consume it. Return: false after the timeout. */
bool host_wait(struct host_ring *r, void *entry);
/* host_arm() - request an event for entries beyond those consumed */
void host_arm(struct host_ring *r, enum ornic_arm_type type);
/* host_fired() - record that an event of the ring was consumed */
void host_fired(struct host_ring *r);

/* host_bring_up() - set up EQ 0 in @eq0, features, a completion EQ in @eq1 */
int host_bring_up(struct host *h, uint64_t features, struct host_ring *eq0,
		  struct host_ring *eq1);
int host_pd_create(struct host *h, uint32_t *pd);
/*
 * host_key_create() - register a region of contiguous memory whose addresses are its DMA
 * addresses
 */
int host_key_create(struct host *h, uint32_t pd, uint64_t addr, uint64_t len, uint32_t access,
		    uint32_t *key);
/*
 * host_port_up() - enable the port with @max_frame bytes of payload, or 0 to leave that
 * unchanged
 */
int host_port_up(struct host *h, uint16_t max_frame);
/* host_gid_set() - set entry @index to the IPv4 address @ip (in host order), from @mac */
int host_gid_set(struct host *h, uint16_t index, uint32_t ip, const uint8_t mac[6]);
void host_gid_ipv4(uint8_t gid[16], uint32_t ip);

/**
 * struct host_wq - one queue of a queue pair
 * @log:	log2 entries
 * @stride:	log2 bytes
 * @ring:	entries
 * @rec:	doorbell record
 * @prod:	next index to post
 * @rung:	producer index that was published last
 */
struct host_wq {
	uint8_t log;
	uint8_t stride;
	uint64_t ring;
	uint64_t rec;
	uint32_t prod;
	uint32_t rung;
};

/** struct host_qp - a queue pair */
struct host_qp {
	struct host *h;
	uint32_t number;
	struct host_wq sq;
	struct host_wq rq;
};

/* host_qp_template() - return a create command with rings of 2^@log entries, all allocated */
void host_qp_template(struct host *h, struct host_qp *qp, uint8_t type, uint8_t log,
		      uint32_t pd, uint32_t scq, uint32_t rcq, struct ornic_qp_create_cmd *cmd);
int host_qp_create(struct host *h, struct host_qp *qp, uint8_t type, uint8_t log, uint32_t pd,
		   uint32_t scq, uint32_t rcq);

/**
 * struct host_peer - the remote end of a connection
 * @qpn:	number of the queue pair
 * @ip:		IPv4 address, in host order
 * @mac:	MAC address
 * @mtu:	enum ornic_mtu
 * @timeout:	local ACK timeout, a code; 0: 14, which is 67 ms
 * @rnr_timer:	code of the time that the peer waits if no receive is posted; 0: 12, which is 0.64 ms
 */
struct host_peer {
	uint32_t qpn;
	uint32_t ip;
	uint8_t mac[6];
	uint8_t mtu;
	uint8_t timeout;
	uint8_t rnr_timer;
};

/* host_rc_commands() - fill in the commands that move a queue pair from RESET to RTS */
void host_rc_commands(struct ornic_qp_modify_cmd cmd[3], const struct host_peer *peer);
void host_path(struct ornic_path *path, const struct host_peer *peer);
int host_qp_state(struct host_qp *qp, const struct ornic_qp_modify_cmd *cmd);
/* host_rc_connect() - move @qp from RESET to RTS: GID index 0, all remote rights, PSNs 0 */
int host_rc_connect(struct host_qp *qp, const struct host_peer *peer);

/* host_sq_slot() - return the zeroed slot of the next send, qpn and index filled in */
struct ornic_wqe_ctrl *host_sq_slot(struct host_qp *qp);
void host_sq_publish(struct host_qp *qp);
/* host_recv() - post a receive of one SGE; published at once */
void host_recv(struct host_qp *qp, uint64_t addr, uint32_t len, uint32_t key);
/* host_send() - post SEND, or RDMA_WRITE/READ with @raddr and @rkey; signaled, published at once */
void host_send(struct host_qp *qp, uint8_t opcode, uint64_t addr, uint32_t len, uint32_t key,
	       uint64_t raddr, uint32_t rkey);

#endif /* SELFTESTS_LIB_QUEUE_H */
