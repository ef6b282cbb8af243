// SPDX-License-Identifier: GPL-2.0
/*
 * A minimal PCI function on the real vfio-user server, the counterpart of
 * test_vfu_protocol.py and a stock QEMU.
 *
 * Usage: test_vfu_device SOCKET [spin]
 *
 * BAR0 has registers of 8 bytes that show the server's calls to the function and let the
 * client make it use guest memory and vectors. With "spin" the work hook always reports
 * more work.
 */
#include "../../tools/ornicd/log.h"
#include "../../tools/ornicd/loop.h"
#include "../../tools/ornicd/mem/gpa.h"
#include "../../tools/ornicd/signals.h"
#include "../../tools/ornicd/vfu/func.h"
#include "../../tools/ornicd/vfu/server.h"

#include <stdio.h>
#include <string.h>

enum reg {
	REG_MAGIC	= 0x00,	/* constant */
	REG_SCRATCH	= 0x08,	/* last value written; 0 after reset */
	REG_DMA_ADDR	= 0x10,	/* for the next two */
	REG_DMA_LOAD	= 0x18,	/* read: u64 at that address, ones if unreachable */
	REG_DMA_STORE	= 0x20,	/* write: u64 to that address */
	REG_FIRE	= 0x28,	/* write: vector to raise */
	REG_WRITES	= 0x30,	/* BAR writes seen so far */
	REG_RESETS	= 0x38,	/* resets << 8 | last reason */
	REG_BUS_MASTER	= 0x40,	/* times it changed << 1 | state */
	REG_POWER	= 0x48,	/* times it changed << 1 | D3hot */
	REG_ORDER	= 0x50,	/* write n: count if n is the one after the last */
	REG_TURNS	= 0x58,	/* calls of the work hook */
	REG_ACCESS	= 0x60,	/* read: length of the access; write: kept in 0x68 */
	REG_ACCESS_LEN	= 0x68,
};

#define MAGIC	0x7465737466756e63ull

struct device {
	struct vfu_func func;
	uint64_t scratch, dma_addr, writes, resets, bus_master, power;
	uint64_t order, turns, access_len;
};

static struct device *to_device(struct vfu_func *f)
{
	return (struct device *)f;
}

static uint64_t dma_load(struct device *d)
{
	uint64_t val;

	return gpa_read(d->func.gpa, d->dma_addr, &val, sizeof(val)) ? UINT64_MAX : val;
}

static uint64_t dev_read(struct vfu_func *f, unsigned int bar, uint64_t off, unsigned int len)
{
	struct device *d = to_device(f);

	if (bar)
		return UINT64_MAX;
	switch (off) {
	case REG_MAGIC:		return MAGIC;
	case REG_MAGIC + 4:	return MAGIC >> 32;
	case REG_SCRATCH:	return d->scratch;
	case REG_DMA_ADDR:	return d->dma_addr;
	case REG_DMA_LOAD:	return dma_load(d);
	case REG_WRITES:	return d->writes;
	case REG_RESETS:	return d->resets;
	case REG_BUS_MASTER:	return d->bus_master << 1 | f->bus_master;
	case REG_POWER:		return d->power;
	case REG_ORDER:		return d->order;
	case REG_TURNS:		return d->turns;
	case REG_ACCESS:	return len;
	case REG_ACCESS_LEN:	return d->access_len;
	default:		return 0;
	}
}

static void dev_write(struct vfu_func *f, unsigned int bar, uint64_t off, unsigned int len,
		      uint64_t val)
{
	struct device *d = to_device(f);

	d->writes++;
	switch (off) {
	case REG_SCRATCH:
		d->scratch = val;
		break;
	case REG_DMA_ADDR:
		d->dma_addr = val;
		break;
	case REG_DMA_STORE:
		if (f->bus_master)
			gpa_write(f->gpa, d->dma_addr, &val, sizeof(val));
		break;
	case REG_FIRE:
		vfu_irq(f, val);
		break;
	case REG_ORDER:
		d->order += val == d->order + 1;
		break;
	case REG_ACCESS:
		d->access_len = len | bar << 8;
		break;
	}
}

static void dev_reset(struct vfu_func *f, enum vfu_reset why)
{
	struct device *d = to_device(f);

	d->scratch = 0;
	d->order = 0;
	d->power = 0;
	d->resets = ((d->resets >> 8) + 1) << 8 | why;
}

static void dev_bus_master(struct vfu_func *f, bool on)
{
	to_device(f)->bus_master += on == f->bus_master;
}

static void dev_power(struct vfu_func *f, bool d3)
{
	struct device *d = to_device(f);

	d->power = ((d->power >> 1) + 1) << 1 | d3;
}

static const struct vfu_func_ops dev_ops = {
	.bar_read = dev_read,
	.bar_write = dev_write,
	.reset = dev_reset,
	.bus_master = dev_bus_master,
	.power_state = dev_power,
};

static struct device device = {
	.func = {
		.ops = &dev_ops,
		.log.name = "test",
		.vendor = 0x1af4,
		.device = 0x10ff,
		.subvendor = 0x1af4,
		.subdevice = 0x0042,
		.class_code = 0x020000,
		.revision = 1,
		.nvectors = 40,
		.bar[0] = { 8 << 20, VFU_BAR_64 },
	},
};

/* Count the calls; request one every 50 ms, or at once with "spin". */
static int64_t dev_work(void *arg)
{
	device.turns++;
	return arg ? 0 : 50000000;
}

int main(int argc, char **argv)
{
	bool spin = argc == 3 && !strcmp(argv[2], "spin");
	struct vfu_server *server;
	struct signals signals;
	struct loop *loop;
	int err;

	if (argc != 2 && !spin) {
		fprintf(stderr, "usage: %s SOCKET [spin]\n", argv[0]);
		return 2;
	}
	log_setup(LOG_DEBUG, true);
	loop = loop_new();
	if (!loop || signals_open(&signals, loop) || backing_guard())
		return 1;
	loop_set_work(loop, dev_work, spin ? &device : NULL);
	if (vfu_server_open(loop, &device.func, argv[1], NULL, &server))
		return 1;
	err = loop_run(loop);
	vfu_server_close(server);
	mapper_wait(5000);
	signals_close(&signals);
	loop_free(loop);
	return err ? 1 : 0;
}
