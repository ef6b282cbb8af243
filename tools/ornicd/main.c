// SPDX-License-Identifier: GPL-2.0
/*
 * ornicd: RDMA network devices for virtual machines.
 *
 * One thread does everything but wait for disks (mem/syncer.h, capture/writer.h). The loop waits for the VMMs' messages; between
 * them, the work hook lets each function execute what its admin queue holds and
 * then gives the engine one turn.
 */
#include "attach.h"
#include "capture/capture.h"
#include "config.h"
#include "dev/function.h"
#include "engine/engine.h"
#include "log.h"
#include "loop.h"
#include "mem/backing.h"
#include "net/uplink.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Exit codes */
#define EXIT_OK		0
#define EXIT_FAILED	1	/* could not start, or could not go on */
#define EXIT_USAGE	2	/* bad option or configuration */

/**
 * struct daemon - all there is
 * @loop:	event loop
 * @engine:	data path
 * @captures:	what is written of what passes the switch
 * @attached:	devices, @n of them
 * @n:		number of @attached
 * @uplink:	ports to the outside, @nuplinks of them
 * @nuplinks:	number of @uplink
 */
struct daemon {
	struct loop *loop;
	struct engine engine;
	struct captures captures;
	struct attachment *attached;
	unsigned int n;
	struct uplink **uplink;
	unsigned int nuplinks;
};

static int64_t daemon_work(void *arg)
{
	struct daemon *d = arg;
	int64_t next;

	for (unsigned int i = 0; i < d->n; i++)
		function_work(d->attached[i].function);
	next = engine_turn(&d->engine);
	for (unsigned int i = 0; i < d->n; i++)
		if (function_busy(d->attached[i].function))
			next = 0;
	return next;
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

static int daemon_attach(struct daemon *d, const struct config *c)
{
	d->attached = calloc(c->ndevices, sizeof(*d->attached));
	if (!d->attached)
		return -ENOMEM;
	for (; d->n < c->ndevices; d->n++) {
		int err = attach_device(&d->attached[d->n], d->loop, &d->engine,
					&c->device[d->n]);

		if (err)
			return err;
	}
	return 0;
}

static int daemon_link_up(struct daemon *d, const struct config *c)
{
	const struct uplink_host host = {
		.loop = d->loop,
		.sw = d->engine.sw,
		.pool = &d->engine.pool,
		.drain = engine_input,
		.arg = &d->engine,
	};

	d->uplink = calloc(c->nports + 1, sizeof(*d->uplink));
	if (!d->uplink)
		return -ENOMEM;
	for (; d->nuplinks < c->nports; d->nuplinks++) {
		int err = uplink_open(&host, &c->port[d->nuplinks], &d->uplink[d->nuplinks]);

		if (err)
			return err;
	}
	return 0;
}

static int daemon_capture(struct daemon *d, const struct config *c)
{
	for (unsigned int i = 0; i < c->ncaptures; i++) {
		char why[256];
		uint32_t id;
		int err = captures_start(&d->captures, &c->capture[i], &id, why, sizeof(why));

		if (err) {
			log_err("cannot capture: %s", why);
			return err;
		}
	}
	return 0;
}

static void daemon_detach(struct daemon *d)
{
	for (unsigned int i = 0; i < d->n; i++)
		attach_remove(&d->attached[i]);
	free(d->attached);
	for (unsigned int i = 0; i < d->nuplinks; i++)
		uplink_close(d->uplink[i]);
	free(d->uplink);
}

static void daemon_ready(int fd)
{
	if (fd < 0)
		return;
	if (write(fd, "\n", 1) != 1)
		log_warn("cannot tell descriptor %d of readiness: %s", fd, strerror(errno));
	close(fd);
}

static int daemon_serve(struct daemon *d, const struct config *c)
{
	int err = captures_init(&d->captures, d->engine.sw, d->engine.clock);

	if (err)
		return err;
	err = loop_add(d->loop, d->engine.syncer.fd, EPOLLIN, daemon_synced, d);
	if (!err)
		err = loop_add(d->loop, d->captures.fd, EPOLLIN, daemon_captured, d);
	if (!err)
		err = daemon_attach(d, c);
	if (!err)
		err = daemon_link_up(d, c);
	if (!err)
		err = daemon_capture(d, c);
	if (!err) {
		loop_set_work(d->loop, daemon_work, d);
		daemon_ready(c->ready_fd);
		err = loop_run(d->loop);
		log_info("stopping");
	}
	daemon_detach(d);
	loop_del(d->loop, d->captures.fd);
	captures_fini(&d->captures);
	loop_del(d->loop, d->engine.syncer.fd);
	return err;
}

static int daemon_run(const struct config *c)
{
	struct daemon d = { 0 };
	int err;

	d.loop = loop_new();
	if (!d.loop)
		return -ENOMEM;
	err = loop_stop_on_signals(d.loop);
	if (!err)
		err = backing_guard();
	if (!err)
		err = engine_init(&d.engine, c->spin_us * 1000ull);
	if (err) {
		log_err("cannot start: %s", strerror(-err));
	} else {
		d.engine.cc = c->cc;
		err = daemon_serve(&d, c);
		engine_fini(&d.engine);
	}
	loop_free(d.loop);
	return err;
}

int main(int argc, char **argv)
{
	struct config c;
	int ret = EXIT_OK;

	config_init(&c);
	switch (config_args(&c, argc, argv)) {
	case CONFIG_RUN:
		log_setup(c.log_level, false);
		signal(SIGPIPE, SIG_IGN);
		ret = daemon_run(&c) ? EXIT_FAILED : EXIT_OK;
		break;
	case CONFIG_DONE:
		break;
	case CONFIG_BAD:
		ret = EXIT_USAGE;
		break;
	}
	config_free(&c);
	return ret;
}
