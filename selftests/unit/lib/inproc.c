// SPDX-License-Identifier: GPL-2.0
/*
 * A device in the test's own process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "inproc.h"
#include "lines.h"

#include "mem/gpa.h"

#include <linux/pci_regs.h>
#include <string.h>
#include <time.h>

static uint64_t inproc_read(void *arg, uint64_t off, unsigned int len)
{
	struct inproc *p = arg;
	uint64_t ones = len < 8 ? (1ull << 8 * len) - 1 : UINT64_MAX;

	return p->f->vfu.ops->bar_read(&p->f->vfu, ORNIC_BAR_REGS, off, len) & ones;
}

static void inproc_write(void *arg, uint64_t off, unsigned int len, uint64_t val)
{
	struct inproc *p = arg;

	p->f->vfu.ops->bar_write(&p->f->vfu, ORNIC_BAR_REGS, off, len, val);
}

void inproc_turn(void *arg)
{
	struct inproc *p = arg;

	function_work(p->f);
	engine_turn(&p->engine);
}

void inproc_bus_master(struct inproc *p, bool on)
{
	uint16_t command = PCI_COMMAND_MEMORY | (on ? PCI_COMMAND_MASTER : 0);

	endpoint_config_write(&p->ep, PCI_COMMAND, &command, sizeof(command));
}

void inproc_connect_self(struct inproc *p, struct host_qp *qp)
{
	struct host_peer self = { .qpn = qp->number, .ip = 0x0a000001, .mtu = ORNIC_MTU_1024 };

	memcpy(self.mac, p->f->dev.port.mac, sizeof(self.mac));
	assert_int_equal(host_port_up(&p->host, 0), ORNIC_ST_OK);
	assert_int_equal(host_gid_set(&p->host, 0, self.ip, self.mac), ORNIC_ST_OK);
	assert_int_equal(host_rc_connect(qp, &self), ORNIC_ST_OK);
}

void inproc_flr(struct inproc *p)
{
	endpoint_reset(&p->ep, VFU_RESET_FLR);
}

uint64_t inproc_counter(struct inproc *p, enum counter c)
{
	return p->f->dev.cnt[c];
}

/*
 * A clock that stands still while another program has the processor. A device would have to pay for
 * that time, and its next command would wait (engine/fair.h).
 */
static uint64_t own_clock(void)
{
	static uint64_t offset;
	struct timespec ts;
	uint64_t ran;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	ran = ts.tv_sec * 1000000000ull + ts.tv_nsec;
	if (!offset)
		offset = engine_clock() - ran;
	return offset + ran;
}

int inproc_setup(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
	struct inproc *p = test_calloc(1, sizeof(*p));
	int err;

	assert_int_equal(engine_init(&p->engine, 0), 0);
	p->engine.clock = own_clock;
	p->f = function_new(&p->engine, "test", mac, 0, &err);
	assert_non_null(p->f);
	assert_int_equal(endpoint_init(&p->ep, &p->f->vfu), 0);
	assert_int_equal(dma_init(&p->host.dma, INPROC_BASE, INPROC_BYTES), 0);
	assert_int_equal(gpa_map(p->ep.gpa, INPROC_BASE, INPROC_BYTES, GPA_READ | GPA_WRITE,
				 p->host.dma.fd, 0), 0);
	p->ep.shared_memory = true;
	endpoint_attach(&p->ep);
	inproc_bus_master(p, true);
	p->host.bus = (struct bus) { inproc_read, inproc_write, inproc_turn, p };
	host_init(&p->host);
	p->host.timeout_ms = 200;
	*state = p;
	return 0;
}

int inproc_setup_ready(void **state)
{
	struct inproc *p;

	inproc_setup(state);
	p = *state;
	assert_int_equal(host_enable(&p->host), 0);
	assert_int_equal(host_bring_up(&p->host, INPROC_FEATURES, &p->eq0, &p->eq1), 0);
	assert_int_equal(host_pd_create(&p->host, &p->pd), 0);
	assert_int_equal(host_cq_create(&p->host, &p->cq, 6, p->eq1.number, 0), 0);
	return 0;
}

int inproc_teardown(void **state)
{
	struct inproc *p = *state;

	lines_drop();
	endpoint_detach(&p->ep);
	endpoint_destroy(&p->ep);
	function_free(p->f);
	engine_fini(&p->engine);
	dma_fini(&p->host.dma);
	test_free(p);
	return 0;
}

uint64_t inproc_later(void)
{
	return engine_clock() + 2000000000ull;
}

struct ornic_srq_create_cmd inproc_srq(struct inproc *p)
{
	return (struct ornic_srq_create_cmd) {
		.log_entries = 4,
		.stride = 6,
		.pd = htole32(p->pd),
		.dbpage = htole32(1),
		.max_sge = htole16(3),
		.record = htole64(host_record(&p->host)),
		.pages = host_contiguous(dma_alloc(&p->host.dma, 1024, 4096)),
	};
}
