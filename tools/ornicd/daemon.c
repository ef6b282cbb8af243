// SPDX-License-Identifier: GPL-2.0
/*
 * One thread does everything except writing to disks (mem/syncer.h), to captures (capture/writer.h)
 * and to the log (log_writer.h), and handling clients' descriptors (mem/mapper.h). The loop waits
 * for messages of VMMs, for frames and for requests of the control socket. In between, the work
 * hook executes the commands in the admin queues, answers one request, and runs one turn of the
 * engine.
 */
#include "daemon.h"

#include "control/control.h"
#include "dev/function.h"
#include "fault/fault.h"
#include "log.h"
#include "log_writer.h"
#include "mem/backing.h"
#include "mem/limit.h"
#include "mem/mapper.h"
#include "share.h"
#include "signals.h"
#include "vfu/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longest wait at the end for descriptors of clients to be closed, ms */
#define PATIENCE_MS	1000

/* Free @f, or let daemon_leave() do it when it has released its objects. */
static void daemon_retired(struct daemon *d, struct function *f)
{
	if (function_busy(f))
		LIST_INSERT_HEAD(&d->leaving, f, leaving);
	else
		function_free(f);
}

/* Release some objects of removed devices. */
static void daemon_leave(struct daemon *d)
{
	struct function *f, *next;

	for (f = LIST_FIRST(&d->leaving); f; f = next) {
		next = LIST_NEXT(f, leaving);
		function_work(f);
		if (function_busy(f))
			continue;
		LIST_REMOVE(f, leaving);
		function_free(f);
	}
}

static int64_t daemon_work(void *arg)
{
	struct daemon *d = arg;
	int64_t next;
	bool busy;

	for (unsigned int i = 0; i < d->n; i++)
		function_work(d->attached[i].function);
	daemon_leave(d);
	busy = d->control && control_work(d->control);
	next = engine_turn(&d->engine);
	for (unsigned int i = 0; i < d->n; i++)
		busy |= function_busy(d->attached[i].function);
	if (d->control)
		next = timers_sooner(next, control_wait(d->control));
	next = timers_sooner(next, log_work());
	next = timers_sooner(next, notify_work(&d->notify));
	return busy || !LIST_EMPTY(&d->leaving) ? 0 : next;
}

static void daemon_synced(void *arg, uint32_t events)
{
	struct daemon *d = arg;

	(void)events;
	syncer_reap(&d->engine.syncer);
}

static void daemon_captured(void *arg, uint32_t events)
{
	struct daemon *d = arg;

	(void)events;
	captures_reap(&d->captures);
}

/* Reject a device that is not different from all others. */
static int daemon_device_unique(const struct daemon *d, const struct config_device *c)
{
	int err = 0;

	for (unsigned int i = 0; i < d->n && !err; i++)
		err = config_device_differs(&d->attached[i].config, c);
	if (!err && switch_port_find(d->engine.sw, c->name))
		err = config_name_of_port(c);
	return err;
}

int daemon_device_add(struct daemon *d, const struct config_device *c)
{
	struct attachment *all;
	int err = daemon_device_unique(d, c);

	if (err)
		return err;
	all = reallocarray(d->attached, d->n + 1, sizeof(*all));
	if (!all) {
		log_err("%s: cannot create the device: out of memory", c->name);
		return -ENOMEM;
	}
	d->attached = all;
	err = attach_device(&all[d->n], d->loop, &d->engine, c, &d->access);
	if (err)
		return err;
	d->n++;
	fault_port_added(&d->engine, c->name);
	if (!d->serving)
		return 0;
	share_check();
	notify_devices(&d->notify, d->n);
	return 0;
}

/* Return -EBUSY after an error line if a client uses the device. */
static int daemon_device_unused(const struct attachment *a)
{
	pid_t pid;

	if (!vfu_server_client(a->server, &pid))
		return 0;
	log_err("cannot remove device %s: process %d uses it; unplug it from its virtual machine first, or use force, which is like pulling out a card",
		a->config.name, (int)pid);
	return -EBUSY;
}

int daemon_device_del(struct daemon *d, const char *name, bool force)
{
	for (unsigned int i = 0; i < d->n; i++) {
		struct attachment *a = &d->attached[i];
		int err;

		if (strcmp(a->config.name, name))
			continue;
		err = force ? 0 : daemon_device_unused(a);
		if (err)
			return err;
		log_from(&a->function->vfu.log, LOG_INFO, "device removed");
		daemon_retired(d, attach_leave(a));
		d->n--;
		memmove(a, a + 1, (d->n - i) * sizeof(*a));
		notify_devices(&d->notify, d->n);
		return 0;
	}
	log_err("there is no device %s", name);
	return -ENOENT;
}

static int daemon_attach(struct daemon *d, const struct config *c)
{
	int err = 0;

	for (unsigned int i = 0; i < c->ndevices && !err; i++)
		err = daemon_device_add(d, &c->device[i]);
	if (!err)
		share_check();
	return err;
}

int daemon_port_add(struct daemon *d, const struct uplink_spec *spec)
{
	const struct uplink_host host = {
		.loop = d->loop,
		.sw = d->engine.sw,
		.pool = &d->engine.pool,
		.drain = engine_input,
		.arg = &d->engine,
		.busy = d->serving,
	};
	struct uplink_spec own = *spec;
	struct uplink **all;
	int err;

	own.access = unix_access_or(&spec->access, &d->access);
	if (switch_port_find(d->engine.sw, spec->name)) {
		log_err("port \"%s\": another port has the name %s; add name= to it", spec->text,
			spec->name);
		return -EEXIST;
	}
	all = reallocarray(d->uplink, d->nuplinks + 1, sizeof(*all));
	if (!all) {
		log_err("port \"%s\": out of memory", spec->text);
		return -ENOMEM;
	}
	d->uplink = all;
	err = uplink_open(&host, &own, &all[d->nuplinks]);
	if (err)
		return err;
	d->nuplinks++;
	fault_port_added(&d->engine, spec->name);
	log_from(uplink_log(all[d->nuplinks - 1]), LOG_INFO, "port %s", spec->text);
	return 0;
}

int daemon_port_del(struct daemon *d, const char *name)
{
	for (unsigned int i = 0; i < d->nuplinks; i++) {
		if (strcmp(uplink_name(d->uplink[i]), name))
			continue;
		log_from(uplink_log(d->uplink[i]), LOG_INFO, "port removed");
		uplink_close(d->uplink[i]);
		d->nuplinks--;
		memmove(d->uplink + i, d->uplink + i + 1,
			(d->nuplinks - i) * sizeof(*d->uplink));
		return 0;
	}
	if (switch_port_find(d->engine.sw, name)) {
		log_err("cannot remove port %s: it belongs to a device; use device del", name);
		return -EPERM;
	}
	log_err("there is no port %s", name);
	return -ENOENT;
}

static int daemon_link_up(struct daemon *d, const struct config *c)
{
	int err = 0;

	for (unsigned int i = 0; i < c->nports && !err; i++)
		err = daemon_port_add(d, &c->port[i]);
	return err;
}

static int daemon_capture(struct daemon *d, const struct config *c)
{
	for (unsigned int i = 0; i < c->ncaptures; i++) {
		char why[256];
		uint32_t id;
		int err = captures_start(&d->captures, &c->capture[i], &id, why, sizeof(why));

		if (err) {
			log_err("cannot capture: %s", why);
			captures_undo(&d->captures);
			return err;
		}
	}
	return 0;
}

static int daemon_fault(struct daemon *d, const char *rule)
{
	char text[FAULT_ERROR];
	uint32_t id;
	int err = fault_add(&d->engine, rule, &id, text);

	if (err)
		log_err("fault \"%s\": %s", rule, text);
	return err;
}

static int daemon_faults(struct daemon *d, const struct config *c)
{
	int err = 0;

	for (unsigned int i = 0; i < c->nfaults && !err; i++)
		err = c->fault[i].file ? fault_file(&d->engine, c->fault[i].text) :
					 daemon_fault(d, c->fault[i].text);
	return err;
}

static void daemon_detach(struct daemon *d)
{
	control_close(d->control);
	while (!LIST_EMPTY(&d->leaving)) {
		struct function *f = LIST_FIRST(&d->leaving);

		LIST_REMOVE(f, leaving);
		function_free(f);
	}
	for (unsigned int i = 0; i < d->n; i++)
		function_free(attach_leave(&d->attached[i]));
	free(d->attached);
	for (unsigned int i = 0; i < d->nuplinks; i++)
		uplink_close(d->uplink[i]);
	free(d->uplink);
}

/*
 * Close the descriptor @fd. Replace a standard descriptor by /dev/null instead, because the next
 * socket or file of the daemon would get its number, and for example receive the log's lines.
 */
static void close_inherited(int fd)
{
	int null;

	if (fd > STDERR_FILENO) {
		close(fd);
		return;
	}
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return;
	dup2(null, fd);
	close(null);
}

/* Report that all sockets listen. A reader of the log finds the lines of the start there. */
static void daemon_ready(struct daemon *d, int fd)
{
	log_writer_flush();
	notify_ready(&d->notify, d->n);
	if (fd < 0)
		return;
	if (write(fd, "\n", 1) != 1)
		log_warn("cannot report readiness on descriptor %d: %s", fd, strerror(errno));
	close_inherited(fd);
}

/*
 * Watch the eventfds of the syncer and of the captures.
 * Return: 0, or a negative errno after an error line.
 */
static int daemon_watch(struct daemon *d)
{
	int err = loop_add(d->loop, d->engine.syncer.fd, EPOLLIN, daemon_synced, d);

	if (!err)
		err = loop_add(d->loop, d->captures.fd, EPOLLIN, daemon_captured, d);
	if (err)
		log_err("cannot wait for threads: %s", strerror(-err));
	return err;
}

/* Return the path of the socket that the port creates, NULL if it creates none. */
static const char *port_socket(const struct uplink_spec *s)
{
	if (!strcmp(s->kind, "dgram"))
		return s->local;
	return s->client ? NULL : s->path;
}

/*
 * Check that all sockets can get their owners and groups, so that a daemon that cannot start has
 * created none.
 */
static int daemon_check_access(const struct config *c)
{
	struct unix_access a;
	int err = 0;

	for (unsigned int i = 0; i < c->ndevices && !err; i++) {
		a = unix_access_or(&c->device[i].access, &c->access);
		err = unix_access_check(c->device[i].path, &a);
	}
	for (unsigned int i = 0; i < c->nports && !err; i++) {
		const char *path = port_socket(&c->port[i]);

		a = unix_access_or(&c->port[i].access, &c->access);
		err = path ? unix_access_check(path, &a) : 0;
	}
	if (!err && c->control.path)
		err = unix_access_check(c->control.path, &c->control.access);
	return err;
}

static int daemon_serve(struct daemon *d, const struct config *c)
{
	int err = daemon_check_access(c);

	if (err)
		return err;
	err = captures_init(&d->captures, d->engine.sw, d->engine.clock);
	if (err) {
		log_err("cannot prepare captures: %s", strerror(-err));
		return err;
	}
	err = daemon_watch(d);
	if (!err)
		err = daemon_attach(d, c);
	if (!err)
		err = daemon_link_up(d, c);
	if (!err)
		err = daemon_faults(d, c);
	if (!err && c->control.path)
		err = control_open(d, &c->control, &d->control);
	if (!err)
		err = daemon_capture(d, c);	/* last: no file is created if the rest fails */
	if (!err) {
		d->serving = true;
		loop_set_work(d->loop, daemon_work, d);
		daemon_ready(d, c->ready_fd);
		err = loop_run(d->loop);
		notify_stopping(&d->notify);
		log_info("stopping");
	}
	daemon_detach(d);
	if (!mapper_wait(PATIENCE_MS))
		log_warn("not waiting for a client's descriptor that blocks");
	loop_del(d->loop, d->captures.fd);
	captures_fini(&d->captures);
	loop_del(d->loop, d->engine.syncer.fd);
	return err;
}

/* Return the bytes that guests may make the daemon use: half of what it may use, for the rest. */
static uint64_t daemon_memory(void)
{
	return memory_limit("", memory_of_host()) / 2;
}

static int daemon_start(struct daemon *d, const struct config *c)
{
	int err = backing_guard();

	if (!err)
		err = engine_init(&d->engine, c->spin_us);
	if (err) {
		log_err("cannot start: %s", strerror(-err));
		return err;
	}
	d->engine.cc = c->cc;
	account_pool_init(&d->engine.memory, daemon_memory());
	d->access = c->access;
	d->untrusted = c->untrusted;
	notify_open(&d->notify);
	err = daemon_serve(d, c);
	notify_close(&d->notify);
	engine_fini(&d->engine);
	return err;
}

int daemon_run(const struct config *c)
{
	struct daemon d = { .loop = loop_new() };
	struct signals signals;
	int err;

	share_raise();
	if (!d.loop) {
		err = -errno;
		log_err("cannot start: %s", strerror(-err));
		return err;
	}
	err = signals_open(&signals, d.loop);
	if (err) {
		log_err("cannot receive signals: %s", strerror(-err));
	} else {
		err = daemon_start(&d, c);
		signals_close(&signals);
	}
	loop_free(d.loop);
	return err;
}
