// SPDX-License-Identifier: GPL-2.0
/*
 * Host side: memory, registers, handshake, admin queue.
 */
#define _GNU_SOURCE 1	/* memfd_create() */

#include "host.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HOST_NONCE	0x1f2e3d4cu
#define HOST_PAGE	4096u

int dma_init(struct dma *d, uint64_t base, uint64_t size)
{
	*d = (struct dma) { .base = base, .size = size };
	d->fd = memfd_create("host", MFD_CLOEXEC);
	if (d->fd < 0)
		return -errno;
	d->mem = MAP_FAILED;
	if (!ftruncate(d->fd, size))
		d->mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, 0);
	if (d->mem != MAP_FAILED)
		return 0;
	close(d->fd);
	return -ENOMEM;
}

void dma_fini(struct dma *d)
{
	munmap(d->mem, d->size);
	close(d->fd);
}

uint64_t dma_alloc(struct dma *d, uint64_t bytes, uint64_t align)
{
	uint64_t at = (d->next + align - 1) & ~(align - 1);

	if (at + bytes > d->size) {
		fprintf(stderr, "test host: out of DMA memory\n");
		abort();
	}
	d->next = at + bytes;
	return d->base + at;
}

void *dma_at(const struct dma *d, uint64_t addr)
{
	return d->mem + (addr - d->base);
}

void host_init(struct host *h)
{
	h->log_admin = 6;
	h->timeout_ms = 5000;
	h->asq = dma_alloc(&h->dma, ORNIC_ENTRY_BYTES << h->log_admin, HOST_PAGE);
	h->acq = dma_alloc(&h->dma, ORNIC_ENTRY_BYTES << h->log_admin, HOST_PAGE);
	h->asq_rec = dma_alloc(&h->dma, sizeof(struct ornic_rec), 64);
	h->acq_rec = dma_alloc(&h->dma, sizeof(struct ornic_rec), 64);
	h->status = dma_alloc(&h->dma, sizeof(struct ornic_status_block), 64);
	h->payload = dma_alloc(&h->dma, 2 * HOST_PAGE, HOST_PAGE);
}

uint32_t host_reg32(struct host *h, enum ornic_reg reg)
{
	return h->bus.read(h->bus.arg, reg, 4);
}

uint64_t host_reg64(struct host *h, enum ornic_reg reg)
{
	return h->bus.read(h->bus.arg, reg, 8);
}

void host_set32(struct host *h, enum ornic_reg reg, uint32_t val)
{
	h->bus.write(h->bus.arg, reg, 4, val);
}

void host_set64(struct host *h, enum ornic_reg reg, uint64_t val)
{
	h->bus.write(h->bus.arg, reg, 8, val);
}

void host_doorbell(struct host *h, uint32_t page, enum ornic_db_kind kind, uint32_t number,
		   uint32_t value)
{
	uint64_t off = host_reg32(h, ORNIC_REG_DB_OFFSET) +
		       ((uint64_t)page << ORNIC_DB_MIN_STRIDE_LOG);

	h->bus.write(h->bus.arg, off, 8, number | (uint64_t)kind << ORNIC_DB_KIND_SHIFT |
		     (uint64_t)value << ORNIC_DB_VALUE_SHIFT);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ll + ts.tv_nsec / 1000000;
}

bool host_until(struct host *h, bool (*done)(void *arg), void *arg)
{
	int64_t end = now_ms() + h->timeout_ms;

	while (!done(arg)) {
		if (now_ms() > end)
			return false;
		h->bus.turn(h->bus.arg);
	}
	return true;
}

static void record_init(struct host *h, uint64_t addr)
{
	struct ornic_rec *rec = dma_at(&h->dma, addr);

	memset(rec, 0, sizeof(*rec));
	rec->notify = htole32(ORNIC_NOTIFY_ALWAYS);
}

uint64_t host_record(struct host *h)
{
	uint64_t addr = dma_alloc(&h->dma, sizeof(struct ornic_rec), sizeof(struct ornic_rec));

	record_init(h, addr);
	return addr;
}

void host_prepare(struct host *h, uint32_t nonce)
{
	struct ornic_status_block *b = dma_at(&h->dma, h->status);

	h->posted = 0;
	h->done = 0;
	memset(dma_at(&h->dma, h->asq), 0, ORNIC_ENTRY_BYTES << h->log_admin);
	memset(dma_at(&h->dma, h->acq), 0, ORNIC_ENTRY_BYTES << h->log_admin);
	memset(b, 0, sizeof(*b));
	record_init(h, h->asq_rec);
	record_init(h, h->acq_rec);
	host_set64(h, ORNIC_REG_ASQ_ADDR, h->asq);
	host_set64(h, ORNIC_REG_ACQ_ADDR, h->acq);
	host_set64(h, ORNIC_REG_ASQ_REC, h->asq_rec);
	host_set64(h, ORNIC_REG_ACQ_REC, h->acq_rec);
	host_set64(h, ORNIC_REG_STATUS_ADDR, h->status);
	host_set32(h, ORNIC_REG_ADMIN_SIZE, h->log_admin | h->log_admin << 4);
	host_set32(h, ORNIC_REG_NONCE, nonce);
	__atomic_store_n(&b->nonce, htole32(nonce), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static bool enable_over(void *arg)
{
	return host_reg32(arg, ORNIC_REG_STATUS) & (ORNIC_STS_READY | ORNIC_STS_FATAL);
}

int host_enable(struct host *h)
{
	const struct ornic_status_block *b = dma_at(&h->dma, h->status);

	host_prepare(h, HOST_NONCE);
	host_set32(h, ORNIC_REG_CONTROL, ORNIC_CTL_ENABLE);
	if (!host_until(h, enable_over, h))
		return -ETIMEDOUT;
	if (host_reg32(h, ORNIC_REG_STATUS) & ORNIC_STS_FATAL)
		return -EIO;
	return le32toh(b->nonce) == HOST_NONCE + 1 ? 0 : -EPROTO;
}

void host_disable(struct host *h, enum ornic_reset_reason reason)
{
	host_set32(h, ORNIC_REG_CONTROL, (uint32_t)reason << ORNIC_CTL_REASON_SHIFT);
}

void host_reset(struct host *h, enum ornic_reset_reason reason)
{
	host_set32(h, ORNIC_REG_CONTROL,
		   ORNIC_CTL_RESET | (uint32_t)reason << ORNIC_CTL_REASON_SHIFT);
}

bool host_publish(struct host *h, uint64_t rec_addr, uint32_t old, uint32_t now)
{
	struct ornic_rec *rec = dma_at(&h->dma, rec_addr);
	uint32_t notify;

	__atomic_store_n(&rec->host_index, htole32(now), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	notify = le32toh(__atomic_load_n(&rec->notify, __ATOMIC_RELAXED));
	return notify & ORNIC_NOTIFY_ALWAYS ||
	       ((notify - old) & ORNIC_NOTIFY_INDEX) < now - old;
}

void *host_valid(struct host *h, uint64_t ring, uint8_t log, uint32_t index)
{
	uint8_t *entry = dma_at(&h->dma, ring +
				(uint64_t)(index & ((1u << log) - 1)) * ORNIC_ENTRY_BYTES);
	uint8_t phase = ((index >> log) & 1) ^ 1;

	if ((__atomic_load_n(&entry[ORNIC_ENTRY_BYTES - 1], __ATOMIC_ACQUIRE) & ORNIC_PHASE) !=
	    phase)
		return NULL;
	return entry;
}

struct ornic_pages host_contiguous(uint64_t addr)
{
	return (struct ornic_pages) {
		.addr = htole64(addr & ~(uint64_t)(HOST_PAGE - 1)),
		.offset = htole32(addr & (HOST_PAGE - 1)),
	};
}

void host_submit(struct host *h, const struct ornic_admin_cmd *cmd)
{
	uint64_t slot = h->posted & ((1u << h->log_admin) - 1);

	memcpy(dma_at(&h->dma, h->asq + slot * sizeof(*cmd)), cmd, sizeof(*cmd));
	h->posted++;
	if (host_publish(h, h->asq_rec, h->posted - 1, h->posted))
		host_doorbell(h, 0, ORNIC_DB_ADMIN, ORNIC_DB_ASQ, h->posted);
}

static bool completion_there(void *arg)
{
	struct host *h = arg;

	return host_valid(h, h->acq, h->log_admin, h->done);
}

int host_complete(struct host *h)
{
	struct ornic_rec *rec = dma_at(&h->dma, h->acq_rec);

	if (!host_until(h, completion_there, h))
		return -ETIMEDOUT;
	memcpy(&h->cpl, host_valid(h, h->acq, h->log_admin, h->done), sizeof(h->cpl));
	if (h->cpl.status == ORNIC_ST_ABORTED) {
		fprintf(stderr, "test host: the device sent ABORTED (ORN-ADM-26)\n");
		abort();
	}
	h->done++;
	__atomic_store_n(&rec->host_index, htole32(h->done), __ATOMIC_RELEASE);
	return h->cpl.status;
}

int host_exec(struct host *h, uint16_t opcode, uint32_t number, const void *in, uint16_t in_len,
	      void *out, uint16_t out_len)
{
	struct ornic_admin_cmd cmd = {
		.opcode = htole16(opcode),
		.cmd_id = htole16(h->posted),
		.number = htole32(number),
		.in_len = htole16(in_len),
		.out_len = htole16(out_len),
	};
	int status;

	if (in_len <= ORNIC_ADMIN_INLINE) {
		if (in_len)
			memcpy(cmd.inline_in, in, in_len);
	} else {
		memcpy(dma_at(&h->dma, h->payload), in, in_len);
		cmd.in_addr = htole64(h->payload);
	}
	if (out_len > ORNIC_ADMIN_INLINE)
		cmd.out_addr = htole64(h->payload + HOST_PAGE);
	host_submit(h, &cmd);
	status = host_complete(h);
	if (status == ORNIC_ST_OK && out_len)
		memcpy(out, out_len > ORNIC_ADMIN_INLINE ?
		       dma_at(&h->dma, h->payload + HOST_PAGE) : h->cpl.inline_out, out_len);
	return status;
}

uint32_t host_number(const struct host *h)
{
	return le32toh(h->cpl.number);
}
