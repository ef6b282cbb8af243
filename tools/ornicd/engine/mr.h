/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory keys in the data path: check of every access (ORN-MEM-6), translation into pieces of host
 * memory, and copying of payload.
 */
#ifndef ORNICD_ENGINE_MR_H
#define ORNICD_ENGINE_MR_H

#include "umem.h"
#include "../packet/packet.h"

#include <ornic/mr.h>
#include <ornic/wqe.h>
#include <stdbool.h>
#include <sys/queue.h>

struct device;
struct qp;

/**
 * struct mr - a memory key
 * @kind:	enum ornic_key_kind
 * @tag:	low byte of the key
 * @bound:	FAST_REG: registered; window: bound. Keys of other kinds are always valid.
 * @pd:		protection domain; 0 = any (PHYS_ALL)
 * @access:	ORNIC_ACCESS_* of the region
 * @iova:	first virtual address
 * @length:	bytes
 * @mem:	REGION, FAST_REG: the memory
 * @durable:	REGION with FLUSH_PERSISTENT and @length > 0: file of the memory
 * @dm:		DM: the memory
 * @dm_users:	DM: user count of the block of device memory
 * @lists:	FAST_REG: page-list entries reserved at create and not in @mem
 * @region:	window: region that it is bound to
 * @start:	window: offset of its first byte in the region
 * @qp:		MW2B: queue pair that it is bound on
 * @on_qp:	MW2B: link in the list of @qp
 * @windows:	REGION: number of windows bound to it
 * @uses:	number of accesses
 * @attr:	as created, for queries
 */
struct mr {
	uint8_t kind;
	uint8_t tag;
	bool bound;
	uint32_t pd;
	uint32_t access;
	uint64_t iova;
	uint64_t length;
	struct umem mem;
	struct durable *durable;
	uint8_t *dm;
	uint32_t *dm_users;
	struct page_lists lists;
	struct mr *region;
	uint64_t start;
	struct qp *qp;
	LIST_ENTRY(mr) on_qp;
	uint32_t windows;
	uint64_t uses;
	struct ornic_key_create_cmd attr;
};

/**
 * struct mr_access - an access to be checked
 * @qp:		queue pair that executes the access; a window of type 2B must be bound to it
 * @pd:		protection domain of the queue pair
 * @privileged:	the queue pair may use PHYS_ALL keys (ORN-SEC-3)
 * @access:	ORNIC_ACCESS_* needed; 0 = local read
 */
struct mr_access {
	const struct qp *qp;
	uint32_t pd;
	bool privileged;
	uint32_t access;
};

/* mr_is_window() - return true if @mr is a memory window of any type */
static inline bool mr_is_window(const struct mr *mr)
{
	return mr->kind == ORNIC_KEY_MW1 || mr->kind == ORNIC_KEY_MW2B;
}

/*
 * mr_check() - check access @who to [@addr, @addr + @len) by @key; @len > 0 (ORN-MEM-6)
 * Return: the key's object, or NULL with a KEY syndrome in *@syndrome. An unprivileged queue pair
 * gets only ORNIC_SYN_KEY_INDEX for a key that it may not use.
 */
struct mr *mr_check(struct device *dev, const struct mr_access *who, uint32_t key,
		    uint64_t addr, uint64_t len, uint32_t *syndrome);

/* mr_check_key() - check access @who to all memory of @key; otherwise as mr_check() */
struct mr *mr_check_key(struct device *dev, const struct mr_access *who, uint32_t key,
			uint32_t *syndrome);

/**
 * mr_segs() - find the pieces of host memory behind a range
 * @dev:	function
 * @mr:		key that mr_check() returned for the range
 * @addr:	first byte
 * @len:	bytes, at most UINT32_MAX: callers ask for one packet at most
 * @write:	the caller is going to write to them
 * @seg:	set to the pieces; adjacent ones are joined
 * @max:	entries of @seg
 * @got:	set to the bytes that the pieces cover: less than @len if @max was reached
 *
 * Return: number of pieces, or -EFAULT if a byte cannot be reached.
 */
int mr_segs(struct device *dev, struct mr *mr, uint64_t addr, uint64_t len, bool write,
	    struct seg *seg, uint32_t max, uint64_t *got);

/**
 * data_gather() - check keys and find the pieces of memory behind part of an SGE list (ORN-MEM-6)
 * @qp:		queue pair, whose PD and privileges apply
 * @sge, @nsge:	the list
 * @off:	first byte of the message
 * @len:	bytes; @off + @len is at most the sum of the list
 * @seg:	set to the pieces; has room for PACKET_SEGS
 * @got:	set to the bytes that the pieces cover: less than @len if @seg is full
 * @syndrome:	set to the reason on failure
 *
 * Return: number of pieces, or -EACCES.
 */
int data_gather(struct qp *qp, const struct ornic_sge *sge, uint32_t nsge, uint64_t off,
		uint64_t len, struct seg *seg, uint64_t *got, uint32_t *syndrome);

/**
 * data_scatter() - copy a packet's payload into an SGE list
 * @skip: bytes of the list before the destination
 *
 * Return: 0; -EACCES with the reason in *@syndrome; then no byte behind the failing SGE was
 * written; or -EAGAIN if a page was lost since the packets of one queue pair began to be delivered
 * (backing_loss_pending()). Drop the packet then, as if it had not arrived: its data may be zeros.
 */
int data_scatter(struct qp *qp, const struct ornic_sge *sge, uint32_t nsge, uint64_t skip,
		 const struct packet *p, uint32_t *syndrome);

/**
 * data_receive() - copy a packet's payload into the receive in progress, with the rights of its
 * queue: the queue pair or the SRQ (ORN-SRQ-3)
 * @skip: bytes of the receive before the destination
 *
 * Return: as data_scatter().
 */
int data_receive(struct qp *qp, uint64_t skip, const struct packet *p, uint32_t *syndrome);

/**
 * data_place() - copy a packet's payload to [@addr, @addr + p->len) of a key that mr_check()
 * returned
 *
 * Return: 0, -EFAULT, or -EAGAIN as data_scatter().
 */
int data_place(struct qp *qp, struct mr *mr, uint64_t addr, const struct packet *p);

#endif /* ORNICD_ENGINE_MR_H */
