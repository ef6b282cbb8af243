/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The host side of the ornic interface, for tests and benchmarks: bring a device
 * up, run admin commands, make queues, post and poll. Written from the headers in
 * include/ornic/ alone; shares no code with the daemon.
 *
 * A host reaches its device over a bus: a vfio-user connection (device.h), or the
 * functions of a device in the same process.
 */
#ifndef SELFTESTS_LIB_HOST_H
#define SELFTESTS_LIB_HOST_H

#include <ornic/admin.h>
#include <ornic/cq.h>
#include <ornic/eq.h>
#include <ornic/mr.h>
#include <ornic/qp.h>
#include <ornic/regs.h>
#include <ornic/wqe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct bus - how a host reaches BAR0
 * @read:	load of @len bytes
 * @write:	store of @len bytes, posted
 * @turn:	called while the host waits for a change in memory: let the device run, or sleep
 * @arg:	first argument of the functions
 */
struct bus {
	uint64_t (*read)(void *arg, uint64_t off, unsigned int len);
	void (*write)(void *arg, uint64_t off, unsigned int len, uint64_t val);
	void (*turn)(void *arg);
	void *arg;
};

/**
 * struct dma - memory shared with the device, with an allocator that never frees
 * @fd:		memfd behind it
 * @mem:	its address in this process
 * @base:	its DMA address
 * @size:	bytes
 * @next:	first offset that is not allocated
 */
struct dma {
	int fd;
	uint8_t *mem;
	uint64_t base;
	uint64_t size;
	uint64_t next;
};

int dma_init(struct dma *d, uint64_t base, uint64_t size);
void dma_fini(struct dma *d);
/* dma_alloc() - allocate zeroed memory; return its DMA address. Aborts when there is no more. */
uint64_t dma_alloc(struct dma *d, uint64_t bytes, uint64_t align);
/* dma_at() - return a pointer to a DMA address in [base, base + size) */
void *dma_at(const struct dma *d, uint64_t addr);

/**
 * struct host - a host and its device
 * @bus:	access to BAR0
 * @dma:	memory shared with the device
 * @log_admin:	log2 entries of both admin rings
 * @asq, @acq:	rings
 * @asq_rec, @acq_rec: their records
 * @status:	status block
 * @payload:	page for command input, followed by a page for output
 * @posted:	commands submitted
 * @done:	completions consumed
 * @cpl:	the last completion
 * @timeout_ms:	longest wait for the device, ms
 */
struct host {
	struct bus bus;
	struct dma dma;
	uint8_t log_admin;
	uint64_t asq;
	uint64_t acq;
	uint64_t asq_rec;
	uint64_t acq_rec;
	uint64_t status;
	uint64_t payload;
	uint32_t posted;
	uint32_t done;
	struct ornic_admin_cpl cpl;
	int timeout_ms;
};

/* host_init() - initialise; @h->bus and @h->dma are set up */
void host_init(struct host *h);

uint32_t host_reg32(struct host *h, enum ornic_reg reg);
uint64_t host_reg64(struct host *h, enum ornic_reg reg);
void host_set32(struct host *h, enum ornic_reg reg, uint32_t val);
void host_set64(struct host *h, enum ornic_reg reg, uint64_t val);
void host_doorbell(struct host *h, uint32_t page, enum ornic_db_kind kind, uint32_t number,
		   uint32_t value);
/* host_until() - call bus.turn until @done(@arg) is true. Return: false after the timeout. */
bool host_until(struct host *h, bool (*done)(void *arg), void *arg);

/* host_prepare() - set up rings, records, registers; all steps before CONTROL */
void host_prepare(struct host *h, uint32_t nonce);
/* host_enable() - do the whole handshake. Return: 0, -EIO if FATAL, -EPROTO on a wrong answer. */
int host_enable(struct host *h);
void host_disable(struct host *h, enum ornic_reset_reason reason);
void host_reset(struct host *h, enum ornic_reset_reason reason);

/* host_submit() - write a command unchanged and publish it */
void host_submit(struct host *h, const struct ornic_admin_cmd *cmd);
/* host_complete() - wait for the next completion, in @h->cpl. Return: as host_exec(). */
int host_complete(struct host *h);
/*
 * host_exec() - run a command; completion in @h->cpl
 * Return: enum ornic_status, or -ETIMEDOUT.
 */
int host_exec(struct host *h, uint16_t opcode, uint32_t number, const void *in, uint16_t in_len,
	      void *out, uint16_t out_len);
/* host_number() - return the number in the last command's completion */
uint32_t host_number(const struct host *h);

/* host_record() - allocate a doorbell record in the state that create requires */
uint64_t host_record(struct host *h);
/* host_publish() - apply the post rule of ORN-RNG-5. Return: true if the doorbell must be rung. */
bool host_publish(struct host *h, uint64_t rec, uint32_t old, uint32_t now);
/* host_valid() - return entry @index of a ring of 2^@log entries at @ring, or NULL (ORN-RNG-17) */
void *host_valid(struct host *h, uint64_t ring, uint8_t log, uint32_t index);
struct ornic_pages host_contiguous(uint64_t addr);

#endif /* SELFTESTS_LIB_HOST_H */
