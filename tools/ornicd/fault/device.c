// SPDX-License-Identifier: GPL-2.0
/*
 * Faults of devices: link flaps, queue pairs in error, functions that go fatal.
 *
 * A rule with conditions on packets acts when a packet matches; other rules act when they are
 * added, or by a timer. Devices and queue pairs are looked up by name and number at that
 * moment, because they may have been created or destroyed since the rule was added.
 */
#include "state.h"

#include "../engine/device.h"
#include "../engine/link.h"
#include "../engine/qp.h"
#include "../log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct device *device_find(const struct faults *fs, const char *name)
{
	struct device *dev;

	TAILQ_FOREACH(dev, &fs->engine->devices, link)
		if (!strcmp(dev->name, name))
			return dev;
	return NULL;
}

/* Write the names of all ports, or of devices only, as "a, b". */
static void device_names(const struct faults *fs, bool all, char *to, size_t size)
{
	struct switch_port *port = NULL;
	size_t at = 0;

	*to = 0;
	while ((port = switch_port_next(fs->engine->sw, port))) {
		if (!all && !switch_port_is_device(port))
			continue;
		snprintf(to + at, size - at, "%s%s", at ? ", " : "", switch_port_name(port));
		at = strlen(to);
	}
}

int device_check(const struct faults *fs, const struct fault_rule *r, char *err)
{
	bool port = rule_has(r, KEY_PORT);
	char names[256];

	if (!r->name[0] || (port ? !!switch_port_find(fs->engine->sw, r->name) :
				   !!device_find(fs, r->name)))
		return 0;
	device_names(fs, port, names, sizeof(names));
	snprintf(err, FAULT_ERROR, "there is no %s %s; there are %s", port ? "port" : "device",
		 r->name, *names ? names : "none");
	return -ENOENT;
}

/* Set the link of the rule's port: up, unless a rule holds it down. */
static void set_link(const struct fault *f)
{
	const struct faults *fs = f->faults;
	struct switch_port *port = switch_port_find(fs->engine->sw, f->rule.name);
	struct device *dev = device_find(fs, f->rule.name);
	const struct fault *other;
	bool up = !f->down;

	TAILQ_FOREACH(other, &fs->rules, link)
		if (other->down && !strcmp(other->rule.name, f->rule.name))
			up = false;
	if (dev)
		link_set_carrier(dev, up);
	else if (port)
		switch_port_set_up(port, up);
}

static void arm(struct fault *f, uint64_t ns)
{
	struct engine *e = f->faults->engine;

	timer_arm(&e->timers, &f->timer, e->clock() + ns);
}

static void flap_begin(struct fault *f)
{
	f->down = true;
	set_link(f);
	arm(f, f->rule.for_ns);
}

static void flap_end(struct fault *f)
{
	const struct fault_rule *r = &f->rule;

	f->down = false;
	set_link(f);
	if (r->again_ns && !rule_spent(r, f->matched, f->acted))
		arm(f, r->again_ns - r->for_ns);
}

static int fail_qp(struct device *dev, uint32_t number, char *err)
{
	struct qp *qp = table_get(&dev->qps, number);

	if (!qp) {
		snprintf(err, FAULT_ERROR, "device %s has no queue pair %" PRIu32, dev->name,
			 number);
		return -ENOENT;
	}
	qp_fail(qp, ORNIC_EV_QP_FATAL, FAULT_SYNDROME, 0);
	return 0;
}

static int fail_device(struct device *dev, char *err)
{
	if (!dev->running) {
		snprintf(err, FAULT_ERROR, "device %s is not in use: no driver has enabled it",
			 dev->name);
		return -ENODEV;
	}
	dev->host->fatal(dev->arg, FAULT_SYNDROME);
	return 0;
}

/* Inject the fault; @number is the queue pair for QP_ERROR. Return: as fault_add(). */
static int act(struct fault *f, uint32_t number, char *err)
{
	struct device *dev;

	if (f->rule.action == RULE_FLAP) {
		flap_begin(f);
		return 0;
	}
	dev = device_find(f->faults, f->rule.name);
	if (!dev) {
		snprintf(err, FAULT_ERROR, "device %s no longer exists", f->rule.name);
		return -ENOENT;
	}
	return f->rule.action == RULE_QP_ERROR ? fail_qp(dev, number, err) :
						 fail_device(dev, err);
}

/* Act at once, because the rule has no conditions on packets. Return: as fault_add(). */
static int act_now(struct fault *f, char *err)
{
	int ret = act(f, f->rule.qp, err);

	f->matched++;
	if (!ret)
		f->acted++;
	return ret;
}

static void timer_fired(void *arg)
{
	struct fault *f = arg;
	char err[FAULT_ERROR];

	if (f->down)
		flap_end(f);
	else if (act_now(f, err))
		log_from(&f->log, LOG_WARN, "%s: %s", f->rule.text, err);
}

int device_start(struct fault *f, char *err)
{
	const struct fault_rule *r = &f->rule;

	f->timer = (struct timer) { .fn = timer_fired, .arg = f };
	if (r->action < RULE_FLAP || r->action > RULE_FATAL || rule_of_packets(r))
		return 0;
	if (!r->in_ns)
		return act_now(f, err);
	arm(f, r->in_ns);
	return 0;
}

void device_stop(struct fault *f)
{
	timer_disarm(&f->faults->engine->timers, &f->timer);
	if (!f->down)
		return;
	f->down = false;
	set_link(f);
}

/* Return the queue pair for QP_ERROR: the end of @frame at its port, the rule's device. */
static uint32_t own_qp(const struct fault_frame *frame)
{
	return frame->way == SWITCH_IN ? frame->kept.sqpn : frame->dqpn;
}

bool device_act(struct fault *f, const struct fault_frame *frame)
{
	char err[FAULT_ERROR];

	if (f->down)
		return false;
	if (!act(f, own_qp(frame), err))
		return true;
	log_from(&f->log, LOG_WARN, "%s: %s", f->rule.text, err);
	return false;
}

void device_port_added(const struct faults *fs, const char *name)
{
	const struct fault *f;

	TAILQ_FOREACH(f, &fs->rules, link)
		if (f->down && !strcmp(f->rule.name, name))
			set_link(f);
}
