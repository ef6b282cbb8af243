/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory keys in the data path: the check of every access (ORN-MEM-6) and its
 * translation into pieces of host memory.
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
 * @bound:	FAST_REG: registered; window: bound. The other kinds always are valid.
 * @pd:		protection domain; 0 = any (PHYS_ALL)
 * @access:	ORNIC_ACCESS_* of the region
 * @iova:	first virtual address
 * @length:	bytes
 * @mem:	where they are (REGION, FAST_REG)
 * @durable:	REGION with FLUSH_PERSISTENT and of some length: the file they are in
 * @dm:	where they are (DM)
 * @dm_users:	users of the block of device memory
 * @list_budget: FAST_REG: page-list entries set aside at create and not in @mem
 * @region:	window: what it is bound to
 * @start:	window: its first byte, from the region's
 * @qp:		MW2B: the queue pair it is bound on
 * @on_qp:	MW2B: in that one's list
 * @windows:	REGION: bound to it
 * @uses:	accesses so far
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
	uint64_t list_budget;
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
 * @qp:		the queue pair, when its peer wants to: windows are for peers only
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

/* mr_is_window() - a memory window, of any type */
static inline bool mr_is_window(const struct mr *mr)
{
	return mr->kind == ORNIC_KEY_MW1 || mr->kind == ORNIC_KEY_MW2B;
}

/*
 * mr_check() - may @who touch [@addr, @addr + @len) by @key? @len > 0.
 * Return: the key's object; NULL and the KEY syndrome in *@syndrome, which says
 * no more than ORNIC_SYN_KEY_INDEX to the unprivileged when the key is not theirs.
 */
struct mr *mr_check(struct device *dev, const struct mr_access *who, uint32_t key,
		    uint64_t addr, uint64_t len, uint32_t *syndrome);

/* mr_check_key() - the same without a range: may @who do it to all of the key? */
struct mr *mr_check_key(struct device *dev, const struct mr_access *who, uint32_t key,
			uint32_t *syndrome);

/*
 * mr_segs() - pieces of host memory behind a checked range
 * @max: entries of @seg
 * @got: bytes that the pieces cover: less than @len if @max was reached
 *
 * Return: pieces, or -EFAULT if a byte cannot be reached.
 */
int mr_segs(struct device *dev, struct mr *mr, uint64_t addr, uint64_t len, bool write,
	    struct seg *seg, uint32_t max, uint64_t *got);

/**
 * data_gather() - check keys and find the pieces of memory behind part of an SGE list (ORN-MEM-6)
 * @qp: whose PD and privileges count
 * @sge, @nsge: the list
 * @off: first byte of the message
 * @len: bytes; @off + @len is within the list's sum
 * @write: they will be written: needs ORNIC_ACCESS_LOCAL_WRITE
 * @seg: where the pieces go, PACKET_SEGS of them
 * @got: bytes covered; less than @len when @seg is full
 * @syndrome: why it failed
 *
 * Return: pieces, or -EACCES.
 */
int data_gather(struct qp *qp, const struct ornic_sge *sge, uint32_t nsge, uint64_t off,
		uint64_t len, bool write, struct seg *seg, uint64_t *got, uint32_t *syndrome);

/**
 * data_scatter() - copy a packet's payload into an SGE list
 * @skip: bytes of the list before the payload's place
 *
 * Return: 0, or -EACCES and *@syndrome; then nothing behind the failing SGE was written.
 */
int data_scatter(struct qp *qp, const struct ornic_sge *sge, uint32_t nsge, uint64_t skip,
		 const struct packet *p, uint32_t *syndrome);

/**
 * data_receive() - copy a payload into the receive in progress, with the rights of the queue that it
 * came from: the queue pair or the SRQ (ORN-SRQ-3)
 */
int data_receive(struct qp *qp, uint64_t skip, const struct packet *p, uint32_t *syndrome);

/**
 * data_place() - copy a packet's payload to [@addr, @addr + p->len) of a checked key
 *
 * Return: 0 or -EFAULT.
 */
int data_place(struct qp *qp, struct mr *mr, uint64_t addr, const struct packet *p);

#endif /* ORNICD_ENGINE_MR_H */
