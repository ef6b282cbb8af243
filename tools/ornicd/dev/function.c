// SPDX-License-Identifier: GPL-2.0
/*
 * Life of a function: create it with its port on the switch, run it by the operations of
 * vfu/func.h and by function_work(), stop it.
 */
#include "function.h"

#include "command.h"
#include "doorbell.h"

#include "../engine/eq.h"
#include "../engine/fair.h"
#include "../engine/link.h"
#include "../engine/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Number of timers of a function: heartbeat, admin queue */
#define FUNC_TIMERS	2

static struct function *to_function(struct vfu_func *v)
{
	return (struct function *)((char *)v - offsetof(struct function, vfu));
}

uint32_t function_stride_log(const struct function *f)
{
	return ORNIC_DB_MIN_STRIDE_LOG +
	       (f->ctrl.control >> ORNIC_CTL_STRIDE_SHIFT & ORNIC_CTL_STRIDE_MASK);
}

uint32_t function_dbpages(const struct function *f)
{
	return FUNC_DB_BYTES >> function_stride_log(f);
}

static uint64_t func_bar_read(struct vfu_func *v, unsigned int bar, uint64_t off, unsigned int len)
{
	if (bar == ORNIC_BAR_DM)
		return dm_bar_read(to_function(v), off, len);
	if (bar != ORNIC_BAR_REGS)
		return UINT64_MAX;
	return ctrl_read(to_function(v), off, len);
}

static void func_bar_write(struct vfu_func *v, unsigned int bar, uint64_t off, unsigned int len,
			   uint64_t val)
{
	struct function *f = to_function(v);

	if (bar == ORNIC_BAR_DM)
		dm_bar_write(f, off, len, val);
	if (bar != ORNIC_BAR_REGS)
		return;
	if (off >= FUNC_DB_OFFSET)
		doorbell_write(f, off - FUNC_DB_OFFSET, len, val);
	else if (off < ORNIC_REG_BYTES)
		ctrl_write(f, off, len, val);
}

static void func_reset(struct vfu_func *v, enum vfu_reset why)
{
	static const enum ornic_reset_cause cause[] = {
		[VFU_RESET_FLR] = ORNIC_CAUSE_FLR,
		[VFU_RESET_DEVICE] = ORNIC_CAUSE_BUS,
		[VFU_RESET_DISCONNECT] = ORNIC_CAUSE_POWER_ON,
	};

	struct function *f = to_function(v);

	ctrl_reset(f, cause[why], 0);
	fair_charge(&f->dev);
}

static void func_bus_master(struct vfu_func *v, bool on)
{
	struct function *f = to_function(v);

	if (f->ctrl.state != CTRL_READY)
		return;
	if (on) {
		function_run(f);
		ctrl_status_write(f);	/* what changed in between */
	} else {
		function_pause(f);
	}
	fair_charge(&f->dev);
}

static void func_power_state(struct vfu_func *v, bool d3)
{
	struct function *f = to_function(v);

	if (d3 && f->ctrl.state != CTRL_FATAL)
		ctrl_disable(f, f->ctrl.cause >> 16);
	fair_charge(&f->dev);
}

static void func_begin(struct vfu_func *v)
{
	fair_begin(&to_function(v)->dev);
}

static void func_end(struct vfu_func *v)
{
	fair_end(&to_function(v)->dev);
}

static bool func_held(struct vfu_func *v)
{
	return !fair_may(&to_function(v)->dev);
}

static const struct vfu_func_ops func_ops = {
	.bar_read = func_bar_read,
	.bar_write = func_bar_write,
	.reset = func_reset,
	.bus_master = func_bus_master,
	.power_state = func_power_state,
	.begin = func_begin,
	.held = func_held,
	.end = func_end,
};

static void func_irq(void *arg, uint16_t vector)
{
	struct function *f = arg;

	vfu_irq(&f->vfu, vector);
}

static void func_fatal(void *arg, uint32_t syndrome)
{
	function_fail(arg, syndrome);
}

static void func_port_changed(void *arg)
{
	function_changed(arg, ORNIC_ID_PORT, 1);
}

static const struct device_host func_host = {
	.irq = func_irq,
	.fatal = func_fatal,
	.port_changed = func_port_changed,
};

uint64_t function_max_list(const struct function *f)
{
	uint64_t most = f->dev.engine->memory.most / sizeof(uint64_t);

	return most < LIMIT_LIST_ENTRIES ? most : LIMIT_LIST_ENTRIES;
}

static void function_tables(struct device *dev)
{
	table_init(&dev->eqs, 0, LIMIT_EQ);
	table_init(&dev->pds, 1, LIMIT_PD);
	table_init(&dev->keys, 1, LIMIT_KEY);
	table_init(&dev->cqs, 1, LIMIT_CQ);
	table_init(&dev->xrcds, 1, LIMIT_XRCD);
	table_init(&dev->srqs, 1, LIMIT_SRQ);
	table_init(&dev->qps, FIRST_QP, LIMIT_QP);
	table_init(&dev->sets, 1, LIMIT_COUNTER_SETS);
	table_init(&dev->rules, 1, LIMIT_RULES);
	table_init(&dev->groups, FIRST_RSS, LIMIT_RSS);
}

void function_port_reset(struct function *f)
{
	struct port *port = &f->dev.port;
	uint8_t mac[6];

	memcpy(mac, port->mac, sizeof(mac));
	memcpy(port->mac, port->permanent_mac, sizeof(port->mac));
	/* Keep the old address if another function uses the permanent one meanwhile. */
	if (link_update(&f->dev))
		memcpy(port->mac, mac, sizeof(mac));
}

void function_port_policy(struct function *f, const struct antispoof *source, bool promisc)
{
	struct port *port = &f->dev.port;
	uint32_t *flags = &port->flags;

	if (source) {
		*flags = (*flags & ~ORNIC_PORT_F_MAC_CHANGE) | ORNIC_PORT_F_ANTI_SPOOF;
		port->source = *source;
	}
	if (source && source->ip) {
		*flags |= ORNIC_PORT_F_ANTI_SPOOF_IP;
		antispoof_link_local(&port->source, port->permanent_mac);
	}
	if (!promisc)
		*flags &= ~ORNIC_PORT_F_PROMISC;
}

static void function_describe(struct function *f)
{
	f->vfu = (struct vfu_func) {
		.ops = &func_ops,
		.log.name = f->name,
		.vendor = ORNIC_PCI_VENDOR_ID,
		.device = ORNIC_PCI_DEVICE_ID,
		.subvendor = ORNIC_PCI_VENDOR_ID,
		.subdevice = ORNIC_TP_ROCEV2,
		.class_code = ORNIC_PCI_CLASS_ETHERNET,
		.revision = ORNIC_VERSION_MAJOR,
		.nvectors = FUNC_VECTORS,
		.bar[ORNIC_BAR_REGS] = {
			.size = FUNC_BAR_BYTES, .flags = VFU_BAR_64 | VFU_BAR_PREFETCH,
		},
		.bar[ORNIC_BAR_DM] = {
			.size = LIMIT_DM, .flags = VFU_BAR_64 | VFU_BAR_PREFETCH,
		},
	};
}

/**
 * function_new() - create a function with a port on the engine's switch
 * @e:		engine
 * @name:	name for messages; copied
 * @mac:	permanent MAC address
 * @vlan:	VLAN whose access port the device's port is, or 0
 * @err:	error: -ENOMEM, or -EEXIST if the address is in use in that VLAN
 *
 * Return: the function, or NULL.
 */
struct function *function_new(struct engine *e, const char *name, const uint8_t mac[6],
			      uint16_t vlan, int *err)
{
	struct function *f = calloc(1, sizeof(*f));
	struct device *dev;

	*err = -ENOMEM;
	if (!f)
		return NULL;
	f->name = strdup(name);
	if (!f->name)
		goto free_function;
	function_describe(f);
	dev = &f->dev;
	dev->engine = e;
	dev->host = &func_host;
	dev->arg = f;
	dev->name = f->name;
	dev->log = &f->vfu.log;
	memcpy(dev->port.permanent_mac, mac, sizeof(dev->port.permanent_mac));
	memcpy(dev->port.mac, mac, sizeof(dev->port.mac));
	dev->port.max_frame = PORT_DEFAULT_FRAME;
	dev->port.flags = ORNIC_PORT_F_PROMISC | ORNIC_PORT_F_MAC_CHANGE | ORNIC_PORT_F_SHARED;
	if (dm_init(f))
		goto free_function;
	if (timers_reserve(&dev->timers, FUNC_TIMERS))
		goto free_dm;
	*err = link_attach(dev, vlan);
	if (*err)
		goto free_timers;
	function_tables(dev);
	table_init(&f->dms, 1, LIMIT_DMS);
	engine_add_device(e, dev);
	dev->lists.left = function_max_list(f);
	return f;

free_timers:
	timers_fini(&dev->timers);
free_dm:
	dm_fini(f);
free_function:
	free(f->name);
	free(f);
	return NULL;
}

/**
 * function_retire() - remove a function from engine and switch, so that nobody finds it
 * @f:	function without a client: endpoint_detach() stopped it
 *
 * Its address is free for another one. function_work() releases its remaining objects, in pieces;
 * when the function is no longer busy, or before, function_free() frees it.
 */
void function_retire(struct function *f)
{
	engine_hide_device(f->dev.engine, &f->dev);
	link_detach(&f->dev);
}

/**
 * function_free() - undo function_new()
 * @f:	function without a client, as for function_retire(); NULL is ignored
 */
void function_free(struct function *f)
{
	struct device *dev;

	if (!f)
		return;
	dev = &f->dev;
	if (dev->port.sw)
		function_retire(f);
	teardown_run(f, UINT32_MAX);
	engine_del_device(dev);
	free(dev->latency);
	table_fini(&f->dms);
	dm_fini(f);
	mcast_fini(&dev->mcast);
	table_fini(&dev->eqs);
	table_fini(&dev->pds);
	table_fini(&dev->keys);
	table_fini(&dev->cqs);
	table_fini(&dev->xrcds);
	table_fini(&dev->srqs);
	table_fini(&dev->qps);
	table_fini(&dev->sets);
	table_fini(&dev->rules);
	table_fini(&dev->groups);
	log_source_end(&f->vfu.log);
	free(f->name);
	free(f);
}

void function_work(struct function *f)
{
	if (!function_busy(f) || !fair_may(&f->dev))
		return;
	fair_begin(&f->dev);
	teardown_run(f, TEARDOWN_WORK);
	if (f->ringing)
		doorbell_some(f);
	if (ctrl_memory_lost(f)) {
		ctrl_tell_lost(f);
		function_fail(f, ORNIC_SYN_DMA);
	}
	if (f->dev.running && f->admin.pending)
		admin_run(&f->admin);
	if (f->fatal) {
		ctrl_fatal(f, f->fatal);
		f->fatal = 0;
	}
	fair_end(&f->dev);
}

bool function_busy(const struct function *f)
{
	return f->fatal || f->teardown.active || f->ringing ||
	       (f->dev.running && f->admin.pending) || ctrl_memory_lost(f);
}

void function_run(struct function *f)
{
	f->dev.running = true;
	link_update(&f->dev);
	doorbell_all(f);
	ctrl_resume(f);
}

void function_pause(struct function *f)
{
	f->dev.running = false;
	f->ringing = false;
	link_update(&f->dev);
}

void function_stop(struct function *f)
{
	struct device *dev = &f->dev;

	if (f->teardown.active)
		return;
	f->fatal = 0;
	ctrl_end_beat(f);
	dev->running = false;
	f->ringing = false;
	admin_stop(&f->admin);
	/* Reset what the driver set: a large frame size needs the feature JUMBO, which is off. */
	dev->port.admin_up = false;
	dev->port.max_frame = PORT_DEFAULT_FRAME;
	link_update(dev);
	dev->features = 0;
	f->features_set = false;
	f->created = false;
	f->db_quiet = 0;
	teardown_begin(f);
	teardown_run(f, TEARDOWN_WORK);
}

void function_fail(struct function *f, uint32_t syndrome)
{
	f->dev.running = false;
	if (!f->fatal)
		f->fatal = syndrome;
}

void function_changed(struct function *f, enum ornic_identify_page page, uint32_t index)
{
	f->generation++;
	ctrl_status_write(f);
	device_event(&f->dev, ORNIC_EV_IDENTIFY, index, 0, 0, page, 0);
}
