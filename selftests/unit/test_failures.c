// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation and each kernel object of the daemon fails once: at start, for orders, and for
 * new clients. The daemon reports the error, keeps no descriptor, no socket and no file, and the
 * same operation succeeds afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/control.h"
#include "control/method.h"
#include "control/request.h"
#include "daemon.h"
#include "dev/function.h"
#include "engine/latency.h"
#include "json_memory.h"
#include "lib/failing.h"
#include "lib/fault_rule.h"
#include "lib/folder.h"
#include "lib/lines.h"
#include "lib/netns.h"
#include "lib/printed.h"
#include "log.h"
#include "mem/backing.h"
#include "mem/mapper.h"
#include "unix_socket.h"
#include "vfu/command.h"
#include "vfu/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#define MOST_FAILURES	400

/**
 * struct fixture - a daemon with one device
 * @dir:	all files and sockets are here
 * @said:	first error line
 * @files:	in @dir
 * @fds:	descriptors
 * @turns:	left for the loop to take
 */
struct fixture {
	struct daemon d;
	struct config config;
	char dir[32];
	char text[512];
	char said[256];
	unsigned int files;
	unsigned int fds;
	unsigned int turns;
	uint32_t id;
	struct vfu_server *server;
	struct vfu_func func;
};

/**
 * struct operation - an operation that must fail cleanly; its undo() follows a run() that
 * returned 0
 */
struct operation {
	const char *name;
	int (*run)(struct fixture *f);
	void (*undo)(struct fixture *f);
	unsigned int least;	/* failures */
};

static const char *textf(struct fixture *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, args);
	va_end(args);
	return f->text;
}

/* Return the number of ports of the switch. */
static unsigned int ports(const struct fixture *f)
{
	struct switch_port *port = NULL;
	unsigned int n = 0;

	while (f->d.engine.sw && (port = switch_port_next(f->d.engine.sw, port)))
		n++;
	return n;
}

/* Let each allocation, or each kernel object, of an operation fail. */
static void fail_each(struct fixture *f, const struct operation *o, enum failing_kind kind,
		      int error)
{
	uint32_t done = 0, left;
	bool failed = true;

	for (left = 0; failed && left < MOST_FAILURES; left++) {
		unsigned int before = ports(f);
		size_t mapped = failing_mapped();
		int err;

		log_keep(f->said, sizeof(f->said));
		failing_begin(kind, error, left);
		err = o->run(f);
		failed = failing_end();
		log_keep(NULL, 0);
		if (!err && *f->said)
			fail_msg("%s: failure %u: success, but \"%s\"", o->name, left, f->said);
		if (!err)
			o->undo(f);
		/* pthread_create() returns EAGAIN if it has to allocate the memory of a thread */
		else if (err != -error && (kind != FAILING_MEMORY || err != -EAGAIN))
			fail_msg("%s: failure %u: error %d", o->name, left, err);
		else if (!*f->said)
			fail_msg("%s: failure %u: no error line", o->name, left);
		assert_true(mapper_wait(5000));
		if (folder_entries(f->dir) != f->files || descriptors() != f->fds)
			fail_msg("%s: failure %u leaves a file or a descriptor", o->name, left);
		if (ports(f) != before)
			fail_msg("%s: failure %u leaves a port", o->name, left);
		if (failing_mapped() != mapped)
			fail_msg("%s: failure %u leaves mapped memory", o->name, left);
		done += err && failed;
		if (!failed && err)
			fail_msg("%s: error %d without a failure", o->name, err);
	}
	if (kind == FAILING_MEMORY && done < o->least)
		fail_msg("%s: %u failures", o->name, done);
}

static void fail_all(struct fixture *f, const struct operation *o)
{
	/* memory that a process keeps from the first time on */
	assert_int_equal(o->run(f), 0);
	o->undo(f);
	assert_true(mapper_wait(5000));
	f->files = folder_entries(f->dir);
	f->fds = descriptors();
	fail_each(f, o, FAILING_MEMORY, ENOMEM);
	fail_each(f, o, FAILING_KERNEL, ENOSPC);
}

static int attach(struct fixture *f, struct attachment *a, const struct config_device *d)
{
	return attach_device(a, f->d.loop, &f->d.engine, d, &f->d.access);
}

static int setup(void **state)
{
	struct config_device d = { .name = "vm1", .mac = { 2, 0, 0, 0, 0, 1 } };
	struct fixture *f = test_calloc(1, sizeof(*f));

	log_setup(LOG_ERR, false);
	strcpy(f->dir, "/tmp/ornic-failures-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	config_init(&f->config);
	f->d.loop = loop_new();
	assert_int_equal(engine_init(&f->d.engine, 0), 0);
	assert_int_equal(captures_init(&f->d.captures, f->d.engine.sw, f->d.engine.clock), 0);
	d.path = (char *)textf(f, "%s/vm1", f->dir);
	assert_int_equal(daemon_device_add(&f->d, &d), 0);
	f->d.serving = true;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	failing_end();
	log_keep(NULL, 0);
	lines_drop();
	assert_int_equal(daemon_device_del(&f->d, "vm1", false), 0);
	assert_int_equal(f->d.n, 0);
	assert_true(mapper_wait(5000));
	free(f->d.attached);
	free(f->d.uplink);
	captures_fini(&f->d.captures);
	engine_fini(&f->d.engine);
	loop_free(f->d.loop);
	config_free(&f->config);
	assert_int_equal(rmdir(f->dir), 0);
	test_free(f);
	return 0;
}

/* ---- parts of the daemon ------------------------------------------------------------ */

static const char *port_spec;

static int port_open(struct fixture *f)
{
	struct uplink_spec spec;
	char text[512];
	int err;

	if (*port_spec == 'u')		/* an address of this process */
		snprintf(text, sizeof(text), port_spec, getpid() >> 8 & 0xff, getpid() & 0xff);
	else
		snprintf(text, sizeof(text), port_spec, f->dir, f->dir);
	err = config_port_parse(&spec, text, false);
	if (err)
		return err;
	err = daemon_port_add(&f->d, &spec);
	config_port_free(&spec);
	return err;
}

static void port_close(struct fixture *f)
{
	assert_int_equal(daemon_port_del(&f->d, "port"), 0);
}

static void test_ports(void **state)
{
	static const char *const specs[] = {
		"stream,path=%s/s,name=port",
		"stream,path=%s/s,name=port,server=off",
		"dgram,local=%s/l,remote=%s/r,name=port,vlan=7,rate=100M",
		"udp,local=127.%u.%u.7:4791,remote=127.0.0.1:9,name=port",
	};
	static const struct operation port = { "port", port_open, port_close, 8 };

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		port_spec = specs[i];
		fail_all(*state, &port);
	}
}

/* Runs last, because the test of UDP ports needs an address that the new namespace lacks. */
static void test_interfaces(void **state)
{
	static const char *const specs[] = {
		"tap,ifname=ornictest,name=port",
		"packet,ifname=lo,name=port",
	};
	static const struct operation port = { "port", port_open, port_close, 8 };

	netns_enter();
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		port_spec = specs[i];
		fail_all(*state, &port);
	}
}

static int control_listen(struct fixture *f)
{
	struct config_control cc = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "%s/control", f->dir);
	cc.path = path;
	return control_open(&f->d, &cc, &f->d.control);
}

static void control_hang_up(struct fixture *f)
{
	control_close(f->d.control);
	f->d.control = NULL;
}

/* A server keeps its name if another one cannot find out whether it lives. */
static void test_name_kept(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un addr;
	char want[200];
	int fd, other;

	snprintf(want, sizeof(want), "cannot listen on %s/x: address in use by another process; stop it or choose another path",
		 f->dir);
	assert_int_equal(unix_address(&addr, textf(f, "%s/x", f->dir)), 0);
	fd = unix_bind(&addr, SOCK_STREAM, NULL);
	assert_true(fd >= 0);
	log_keep(f->said, sizeof(f->said));
	failing_begin(FAILING_KERNEL, EMFILE, 1);	/* the second socket() */
	other = unix_bind(&addr, SOCK_STREAM, NULL);
	assert_true(failing_end());
	log_keep(NULL, 0);
	assert_int_equal(other, -EADDRINUSE);
	assert_string_equal(f->said, want);
	assert_int_equal(unlink(addr.sun_path), 0);
	close(fd);
}

static void test_control_socket(void **state)
{
	static const struct operation o = { "control", control_listen, control_hang_up, 2 };

	fail_all(*state, &o);
}

/* Each allocation of a table of guest memory must succeed. */
static void test_guest_memory(void **state)
{
	bool failed = true;

	(void)state;
	for (uint32_t left = 0; failed; left++) {
		struct gpa *g;

		failing_begin(FAILING_MEMORY, ENOMEM, left);
		g = gpa_new(NULL);
		failed = failing_end();
		assert_int_equal(!g, failed);
		gpa_free(g);
	}
}

static void no_reset(struct vfu_func *func, enum vfu_reset why)
{
	(void)func;
	(void)why;
}

static void no_switch(struct vfu_func *func, bool on)
{
	(void)func;
	(void)on;
}

static const struct vfu_func_ops no_ops = {
	.reset = no_reset, .bus_master = no_switch, .power_state = no_switch,
};

static int vfu_listen(struct fixture *f)
{
	f->func = (struct vfu_func) {
		.ops = &no_ops, .log.name = "test", .nvectors = 2, .bar[0] = { 4096, 0 },
	};
	return vfu_server_open(f->d.loop, &f->func, textf(f, "%s/vfu", f->dir), NULL, &f->server);
}

static void vfu_hang_up(struct fixture *f)
{
	vfu_server_close(f->server);
}

static void test_vfu_socket(void **state)
{
	static const struct operation o = { "vfu", vfu_listen, vfu_hang_up, 4 };

	fail_all(*state, &o);
}

static int device_attach(struct fixture *f)
{
	struct config_device d = { .name = "vm2", .mac = { 2, 0, 0, 0, 0, 2 }, .vlan = 3 };
	struct attachment a = { 0 };
	char path[64];
	int err;

	snprintf(path, sizeof(path), "%s/vm2", f->dir);
	d.path = path;
	d.link.kbps = 1000;
	err = attach(f, &a, &d);
	if (!err)
		function_free(attach_leave(&a));
	assert_null(a.function);
	assert_null(a.server);
	return err;
}

static void undo_nothing(struct fixture *f)
{
	(void)f;
}

static void test_device(void **state)
{
	static const struct operation o = { "device", device_attach, undo_nothing, 7 };

	fail_all(*state, &o);
}

static int device_add(struct fixture *f)
{
	struct config_device d;
	char text[128];
	int err;

	snprintf(text, sizeof(text), "path=%s/vm2,vlan=3,rate=1M", f->dir);
	err = config_device_parse(&d, text, true);
	if (err)
		return err;
	err = daemon_device_add(&f->d, &d);
	config_device_free(&d);
	assert_int_equal(f->d.n, err ? 1 : 2);
	return err;
}

static void device_del(struct fixture *f)
{
	assert_int_equal(daemon_device_del(&f->d, "vm2", false), 0);
}

static void test_device_add(void **state)
{
	static const struct operation o = { "device add", device_add, device_del, 12 };

	fail_all(*state, &o);
}

/* config/ rejects such a path; attach_device() copies it before the socket is opened. */
static void test_long_path(void **state)
{
	struct config_device d = { .name = "vm2" };
	struct attachment a = { 0 };
	struct fixture *f = *state;
	char path[300];

	d.path = path;
	memset(path, 'a', sizeof(path));
	for (size_t len = 250; len < sizeof(path); len++) {
		path[len] = '\0';
		assert_int_equal(attach(f, &a, &d), -ENAMETOOLONG);
		path[len] = 'a';
	}
}

/* IP addresses arrive, too, with the link-local one; the warning that there are none is gone. */
static void attach_checks_ip(struct fixture *f, struct config_device d)
{
	static const struct antispoof_prefix link_local = {
		{ 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x1b, 0xc3, 0xff, 0xfe, 0xd4, 0xe5, 0xf6 }, 128
	};
	const struct antispoof *source;
	struct attachment a = { 0 };
	char want[400];

	d.source.ip = true;
	assert_null(antispoof_parse(&d.source.prefix[d.source.n++], "10.0.0.1"));
	snprintf(want, sizeof(want), "ornicd: vm2: listening on %s, mac 02:1b:c3:d4:e5:f6\n",
		 d.path);
	lines_begin();
	assert_int_equal(attach(f, &a, &d), 0);
	lines_end(want);
	assert_int_equal(a.function->dev.port.flags & ORNIC_PORT_F_ANTI_SPOOF_IP,
			 ORNIC_PORT_F_ANTI_SPOOF_IP);
	source = &a.function->dev.port.source;
	assert_int_equal(source->n, 2);
	assert_memory_equal(&source->prefix[0], &d.source.prefix[0], sizeof(source->prefix[0]));
	assert_memory_equal(&source->prefix[1], &link_local, sizeof(link_local));
	function_free(attach_leave(&a));
	/* As many as the operator may list, and that one */
	while (d.source.n < ANTISPOOF_PREFIXES)
		d.source.prefix[d.source.n++] = d.source.prefix[0];
	assert_int_equal(attach(f, &a, &d), 0);
	source = &a.function->dev.port.source;
	assert_int_equal(source->n, ANTISPOOF_PREFIXES + 1);
	assert_memory_equal(&source->prefix[ANTISPOOF_PREFIXES], &link_local, sizeof(link_local));
	function_free(attach_leave(&a));
}

/* All settings of a device arrive at its port, and a rejected one leaves nothing. */
static void test_attach(void **state)
{
	static const uint8_t taken[6] = { 2, 0, 0, 0, 0, 1 };
	struct fixture *f = *state;
	struct config_device d = { .name = "vm2", .mac = { 0x02, 0x1b, 0xc3, 0xd4, 0xe5, 0xf6 },
				   .vlan = 3, .anti_spoof = true, .memory = 8192,
				   .memory_files = 3, .nvdimm = true };
	const uint32_t want_flags = ORNIC_PORT_F_ANTI_SPOOF | ORNIC_PORT_F_MAC_CHANGE |
				    ORNIC_PORT_F_PROMISC;
	const unsigned int files = folder_entries(f->dir);
	struct attachment a = { 0 };
	struct switch_port *port;
	char path[300], want[500];

	d.link = (struct egress_param) { .kbps = 1000, .queue = 20000, .kmin = 1, .kmax = 2 };
	d.path = path;
	snprintf(path, sizeof(path), "%s/vm2", f->dir);
	snprintf(want, sizeof(want),
		 "ornicd: warning: vm2: anti-spoof checks MAC addresses only; add ip= to check IP addresses\n"
		 "ornicd: vm2: listening on %s, mac 02:1b:c3:d4:e5:f6\n", path);
	lines_begin();
	assert_int_equal(attach(f, &a, &d), 0);
	lines_end(want);
	port = switch_port_find(f->d.engine.sw, "vm2");
	assert_ptr_equal(port, a.function->dev.port.sw);
	assert_int_equal(switch_port_vlan(port), 3);
	assert_memory_equal(egress_param(switch_port_egress(port)), &d.link, sizeof(d.link));
	assert_int_equal(a.function->dev.port.flags & want_flags, ORNIC_PORT_F_ANTI_SPOOF);
	assert_true(a.function->vfu.gpa->pool.limits.bytes == 8192);
	assert_int_equal(a.function->vfu.gpa->pool.limits.files, 3);
	assert_true(a.function->vfu.gpa->pool.limits.disk);
	function_free(attach_leave(&a));
	assert_null(a.function);
	assert_null(a.server);
	assert_null(switch_port_find(f->d.engine.sw, "vm2"));
	attach_checks_ip(f, d);

	log_keep(f->said, sizeof(f->said));
	snprintf(path, sizeof(path), "%s/none/vm2", f->dir);
	assert_int_equal(attach(f, &a, &d), -ENOENT);
	snprintf(want, sizeof(want),
		 "cannot listen on %s/none/vm2: there is no directory %s/none; create it first",
		 f->dir, f->dir);
	assert_string_equal(f->said, want);
	log_keep(f->said, sizeof(f->said));
	snprintf(path, sizeof(path), "/dev/null/vm2");
	assert_int_equal(attach(f, &a, &d), -ENOENT);
	assert_string_equal(f->said, "cannot listen on /dev/null/vm2: there is no directory /dev/null; create it first");
	log_keep(f->said, sizeof(f->said));
	snprintf(path, sizeof(path), "%s/vm2", f->dir);
	memcpy(d.mac, taken, 6);
	d.vlan = 0;
	assert_int_equal(attach(f, &a, &d), -EEXIST);
	assert_string_equal(f->said, "vm2: cannot create the device: the guest of another device in its VLAN has set the address 02:00:00:00:00:01; choose another mac=");
	memset(path, 'x', sizeof(path) - 1);
	path[256] = '\0';
	assert_int_equal(attach(f, &a, &d), -ENAMETOOLONG);
	assert_int_equal(folder_entries(f->dir), files);
	log_keep(NULL, 0);
}

static void expect_said(struct fixture *f, int err, int want, const char *text)
{
	assert_int_equal(err, want);
	assert_string_equal(f->said, text);
	log_keep(f->said, sizeof(f->said));
}

/* Ports are added and removed in any order; a device's port is no such port. */
static void test_port_orders(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec[3];
	char text[128];

	log_keep(f->said, sizeof(f->said));
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "stream,path=%s/%d,name=p%d", f->dir, i, i);
		assert_int_equal(config_port_parse(&spec[i], text, false), 0);
		assert_int_equal(daemon_port_add(&f->d, &spec[i]), 0);
		assert_string_equal(f->said, "");
	}
	snprintf(text, sizeof(text), "port \"stream,path=%s/1,name=p1\": another port has the name p1; add name= to it",
		 f->dir);
	expect_said(f, daemon_port_add(&f->d, &spec[1]), -EEXIST, text);
	assert_int_equal(f->d.nuplinks, 3);
	assert_int_equal(daemon_port_del(&f->d, "p1"), 0);
	assert_int_equal(f->d.nuplinks, 2);
	assert_string_equal(uplink_name(f->d.uplink[0]), "p0");
	assert_string_equal(uplink_name(f->d.uplink[1]), "p2");
	expect_said(f, daemon_port_del(&f->d, "p1"), -ENOENT, "there is no port p1");
	expect_said(f, daemon_port_del(&f->d, "vm1"), -EPERM,
		    "cannot remove port vm1: it belongs to a device; use device del");
	assert_int_equal(daemon_port_del(&f->d, "p2"), 0);
	assert_int_equal(daemon_port_del(&f->d, "p0"), 0);
	assert_int_equal(f->d.nuplinks, 0);
	log_keep(NULL, 0);
	for (int i = 0; i < 3; i++)
		config_port_free(&spec[i]);
}

/* A port is down from the beginning if a fault rule holds the link of its name down. */
static void test_port_flap(void **state)
{
	struct fixture *f = *state;
	struct uplink_spec spec;
	char text[128];

	snprintf(text, sizeof(text), "dgram,local=%s/l,remote=%s/r,name=p", f->dir, f->dir);
	assert_int_equal(config_port_parse(&spec, text, false), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(daemon_port_add(&f->d, &spec), 0);
		assert_int_equal(switch_port_is_up(switch_port_find(f->d.engine.sw, "p")), i != 1);
		if (i)
			fault_clear(&f->d.engine);
		else
			fault_rule(&f->d.engine, "flap port=p for=60min");
		assert_int_equal(daemon_port_del(&f->d, "p"), 0);
	}
	config_port_free(&spec);
}

/* Parse a description, of which %s is the folder, and add the device. */
static int add_device(struct fixture *f, const char *form)
{
	struct config_device d;
	char text[256];
	int err;

	snprintf(text, sizeof(text), form, f->dir);
	assert_int_equal(config_device_parse(&d, text, true), 0);
	err = daemon_device_add(&f->d, &d);
	config_device_free(&d);
	return err;
}

/* Devices are added and removed in any order, and differ from all others and from ports. */
static void test_device_orders(void **state)
{
	struct fixture *f = *state;
	const unsigned int files = folder_entries(f->dir);
	struct uplink_spec spec;
	char text[300];

	log_keep(f->said, sizeof(f->said));
	for (int i = 2; i < 5; i++) {
		snprintf(text, sizeof(text), "path=%%s/vm%d", i);
		assert_int_equal(add_device(f, text), 0);
	}
	assert_string_equal(f->said, "");
	snprintf(text, sizeof(text), "path %s/vm3 is given to two devices", f->dir);
	expect_said(f, add_device(f, "path=%s/vm3,name=x"), -EEXIST, text);
	snprintf(text, sizeof(text),
		 "devices %1$s/vm1 and %1$s/x have the same name, vm1: add name= to one", f->dir);
	expect_said(f, add_device(f, "path=%s/x,name=vm1"), -EEXIST, text);
	snprintf(text, sizeof(text),
		 "devices %1$s/vm1 and %1$s/x have the same mac, 02:00:00:00:00:01: change one",
		 f->dir);
	expect_said(f, add_device(f, "path=%s/x,mac=02:00:00:00:00:01,vlan=7"), -EEXIST, text);
	snprintf(text, sizeof(text), "cannot listen on %1$s/no/x: there is no directory %1$s/no; create it first",
		 f->dir);
	expect_said(f, add_device(f, "path=%s/no/x"), -ENOENT, text);
	snprintf(text, sizeof(text), "stream,path=%s/s,name=p", f->dir);
	assert_int_equal(config_port_parse(&spec, text, true), 0);
	assert_int_equal(daemon_port_add(&f->d, &spec), 0);
	config_port_free(&spec);
	snprintf(text, sizeof(text), "device %s/x has the name of a port, p: add name= to one",
		 f->dir);
	expect_said(f, add_device(f, "path=%s/x,name=p"), -EEXIST, text);
	assert_int_equal(f->d.n, 4);
	assert_int_equal(daemon_device_del(&f->d, "vm3", true), 0);
	assert_string_equal(f->d.attached[0].config.name, "vm1");
	assert_string_equal(f->d.attached[1].config.name, "vm2");
	assert_string_equal(f->d.attached[2].config.name, "vm4");
	expect_said(f, daemon_device_del(&f->d, "vm3", true), -ENOENT, "there is no device vm3");
	expect_said(f, daemon_device_del(&f->d, "p", true), -ENOENT, "there is no device p");
	assert_int_equal(daemon_device_del(&f->d, "vm4", false), 0);
	assert_int_equal(add_device(f, "path=%s/vm3"), 0);
	assert_int_equal(daemon_device_del(&f->d, "vm2", false), 0);
	assert_int_equal(daemon_device_del(&f->d, "vm3", false), 0);
	assert_int_equal(daemon_port_del(&f->d, "p"), 0);
	assert_int_equal(f->d.n, 1);
	assert_int_equal(folder_entries(f->dir), files);
	log_keep(NULL, 0);
}

/* A device has no carrier from the beginning if a fault rule holds the link of its name down. */
static void test_device_flap(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(add_device(f, "path=%s/vm2"), 0);
		assert_int_equal(f->d.attached[1].function->dev.port.unplugged, i == 1);
		if (i)
			fault_clear(&f->d.engine);
		else
			fault_rule(&f->d.engine, "flap device=vm2 for=60min");
		assert_int_equal(daemon_device_del(&f->d, "vm2", false), 0);
	}
}

/* A guest that takes an address prevents a device with that address in its own VLAN only. */
static void test_device_vlan(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	struct fixture *f = *state;
	struct switch_port *port = f->d.attached->function->dev.port.sw;

	assert_int_equal(switch_port_set_vlan(port, 20), 0);
	assert_int_equal(switch_port_set_mac(port, mac), 0);
	assert_int_equal(add_device(f, "path=%s/vm2,mac=02:00:00:00:00:09,vlan=20"), -EEXIST);
	assert_int_equal(add_device(f, "path=%s/vm2,mac=02:00:00:00:00:09"), -EEXIST);
	assert_int_equal(add_device(f, "path=%s/vm2,mac=02:00:00:00:00:09,vlan=10"), 0);
	assert_int_equal(switch_port_vlan(switch_port_find(f->d.engine.sw, "vm2")), 10);
	assert_int_equal(daemon_device_del(&f->d, "vm2", false), 0);
}

static int captures_make(struct fixture *f)
{
	struct captures cs;
	int err = captures_init(&cs, f->d.engine.sw, f->d.engine.clock);

	if (err)
		log_err("cannot capture: %s", strerror(-err));
	else
		captures_fini(&cs);
	return err;
}

static int capture_begin(struct fixture *f)
{
	struct capture_spec spec;
	char why[256] = "";
	int err = capture_spec_parse(&spec, textf(f, "%s/file,device=vm1,buffer=1M", f->dir), why,
				     sizeof(why));

	if (!err) {
		*why = '\0';
		err = captures_start(&f->d.captures, &spec, &f->id, why, sizeof(why));
		capture_spec_free(&spec);
	}
	if (err && *why)
		log_err("%s", why);
	return err;
}

static void capture_end(struct fixture *f)
{
	captures_undo(&f->d.captures);
}

static void test_captures(void **state)
{
	static const struct operation all = { "captures", captures_make, undo_nothing, 1 };
	static const struct operation one = { "capture", capture_begin, capture_end, 7 };

	fail_all(*state, &all);
	fail_all(*state, &one);
}

/* The first rule creates the state that all rules share. */
static void test_faults(void **state)
{
	struct fixture *f = *state;
	struct timers *timers = &f->d.engine.timers;
	char why[FAULT_ERROR] = "";
	uint32_t left = 0, failures = 0, n, id;
	int err;

	do {
		bool first = !f->d.engine.faults;

		n = timers->room - timers->cap;
		assert_int_equal(timers_reserve(timers, n), 0);
		failing_begin(FAILING_MEMORY, ENOMEM, left++);
		err = fault_add(&f->d.engine, "drop p=0.1", &id, why);
		failing_end();
		timers_unreserve(timers, n);
		if (err) {
			struct fault_info info;

			assert_int_equal(err, -ENOMEM);
			assert_string_equal(why, "out of memory for the rule");
			assert_false(fault_next(&f->d.engine, 0, &info));
			failures++;
		}
		if (first && f->d.engine.faults)
			left = 0;
	} while (err);
	assert_true(failures > 4);
	assert_int_equal(fault_del(&f->d.engine, id), 0);
}

/* ---- orders -------------------------------------------------------------------------- */

#define CALL(method, params)	\
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"

/* An order that leaves no state behind if it fails, with the order that undoes it; %s: folder */
static const struct {
	const char *order;
	const char *undo;
} orders[] = {
	{ CALL("version", "{}"), NULL },
	{ CALL("methods", "{}"), NULL },
	{ CALL("port.list", "{}"), NULL },
	{ CALL("device.list", "{}"), NULL },
	{ CALL("counters", "{\"device\":\"vm1\"}"), NULL },
	{ CALL("link.list", "{}"), NULL },
	{ CALL("cc.show", "{}"), NULL },
	{ CALL("qp.list", "{\"device\":\"vm1\"}"), NULL },
	{ CALL("latency.show", "{\"device\":\"vm1\"}"), NULL },
	{ CALL("fault.list", "{}"), NULL },
	{ CALL("capture.list", "{}"), NULL },
	{ CALL("port.add", "{\"spec\":\"stream,path=%s/s,name=port\"}"),
	  CALL("port.del", "{\"name\":\"port\"}") },
	{ CALL("device.add", "{\"spec\":\"path=%s/vm2,vlan=3,rate=1M\"}"),
	  CALL("device.del", "{\"name\":\"vm2\"}") },
	{ CALL("fault.add", "{\"rule\":\"drop p=0.1\"}"), CALL("fault.clear", "{}") },
	{ CALL("link.set", "{\"port\":\"vm1\",\"rate\":\"10M\"}"), NULL },
	{ CALL("cc.set", "{\"spec\":\"off\"}"), NULL },
	{ CALL("latency.on", "{\"device\":\"vm1\"}"), CALL("latency.off", "{\"device\":\"vm1\"}") },
	{ CALL("capture.start", "{\"spec\":\"%s/file,buffer=1M\"}"), "capture" },
};

static void undo_order(struct fixture *f, const char *undo)
{
	size_t len;

	if (!undo)
		return;
	if (!strcmp(undo, "capture"))
		captures_undo(&f->d.captures);
	else
		free(control_request(&f->d, undo, strlen(undo), &len));
}

/* Return: true if the order was executed. The answer is success, INTERNAL, or missing. */
static bool executed(const char *order, char *text, size_t len)
{
	json_error_t e;
	json_t *answer = json_loadb(text, len, 0, &e), *error;
	json_int_t code;

	if (!answer)
		fail_msg("%s: no JSON: %.*s", order, (int)len, text);
	error = json_object_get(answer, "error");
	code = json_integer_value(json_object_get(error, "code"));
	if (error && code != CONTROL_INTERNAL && code != CONTROL_PARSE)
		fail_msg("%s: code %lld: %.*s", order, (long long)code, (int)len, text);
	if (error && !*json_string_value(json_object_get(error, "message")))
		fail_msg("%s: no message", order);
	json_decref(answer);
	return !error;
}

static bool something_left(struct fixture *f)
{
	struct fault_info info;

	assert_true(mapper_wait(5000));		/* that of a device that was removed */
	return folder_entries(f->dir) != f->files || descriptors() != f->fds ||
	       f->d.n != 1 || ports(f) != 1 || f->d.nuplinks || !TAILQ_EMPTY(&f->d.captures.list) ||
	       fault_next(&f->d.engine, 0, &info) ||
	       f->d.attached->function->dev.latency;
}

static void try_order(struct fixture *f, const char *order, const char *undo)
{
	char full[512], *text;
	bool failed = true;
	size_t len = 0, whole = 0;

	snprintf(full, sizeof(full), order, f->dir);
	for (uint32_t left = 0; failed; left++) {
		bool done;

		assert_true(left < 2 * MOST_FAILURES);
		failing_begin(FAILING_MEMORY, ENOMEM, left);
		text = control_request(&f->d, full, strlen(full), &len);
		failed = failing_end();
		done = text && executed(order, text, len);
		if (!failed && !done)
			fail_msg("%s: not executed after failures", order);
		free(text);
		if (!done && text && something_left(f))
			fail_msg("%s: rejected, but executed: failure %u", order, left);
		undo_order(f, undo);
		if (something_left(f))
			fail_msg("%s leaves something: failure %u", order, left);
		/* an answer that lacks a member is wrong */
		if (done && whole && len != whole && !undo)
			fail_msg("%s: %zu bytes, then %zu: failure %u", order, whole, len, left);
		if (done)
			whole = len;
	}
}

static void test_orders(void **state)
{
	struct fixture *f = *state;
	char full[512];
	size_t len;

	/* state that an engine and a process keep from the first time on */
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		snprintf(full, sizeof(full), orders[i].order, f->dir);
		free(control_request(&f->d, full, strlen(full), &len));
		undo_order(f, orders[i].undo);
	}
	assert_true(mapper_wait(5000));
	f->files = folder_entries(f->dir);
	f->fds = descriptors();
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		try_order(f, orders[i].order, orders[i].undo);
}

/* Compare the whole answer to an order. */
static void expect_answer(struct fixture *f, const char *order, const char *want)
{
	size_t len;
	char *answer = control_request(&f->d, order, strlen(order), &len);

	assert_non_null(answer);
	answer[len - 1] = '\0';
	assert_string_equal(answer, want);
	free(answer);
}

/* Compare the result of an order with @want; %1$s in both: folder. */
static void expect_result(struct fixture *f, const char *order, const char *want)
{
	char full[2048], result[2048], line[2100];

	snprintf(full, sizeof(full), order, f->dir);
	snprintf(result, sizeof(result), want, f->dir);
	snprintf(line, sizeof(line), "{\"result\":%s,\"jsonrpc\":\"2.0\",\"id\":1}", result);
	expect_answer(f, full, line);
}

/* Check that an order is rejected with @code and @message. */
static void expect_error(struct fixture *f, const char *order, int code, const char *message)
{
	char want[1024];

	snprintf(want, sizeof(want),
		 "{\"error\":{\"code\":%d,\"message\":\"%s\"},\"jsonrpc\":\"2.0\",\"id\":1}",
		 code, message);
	expect_answer(f, order, want);
}

#define NO_TIMES	"{\"count\":0,\"mean_ns\":0,\"max_ns\":0,\"buckets\":[]}"

/* In the lists below, each member has a different value, so that a swapped one is noticed. */
#define MEMORY								\
	"\"memory\":{\"used\":16,\"guaranteed\":17,\"most\":18,\"rejected\":19}"

/* Expect one device in the list, with @rest after its socket. */
static void expect_device(struct fixture *f, const char *rest)
{
	char want[1024];

	snprintf(want, sizeof(want),
		 "[{\"name\":\"vm1\",\"path\":\"%%1$s/vm1\",\"access\":{\"owner\":%u,\"group\":%u,\"mode\":\"0600\"},%s}]",
		 geteuid(), getegid(), rest);
	expect_result(f, CALL("device.list", "{}"), want);
}

static void test_device_list(void **state)
{
	struct fixture *f = *state;
	struct backing_pool *guest = &f->d.attached->function->vfu.gpa->pool;
	struct device *dev = &f->d.attached->function->dev;
	struct account_pool pool = { .guarantee = 17, .most = 18 };
	const struct account account = dev->account;
	struct table *const tables[] = {
		&dev->qps, &dev->cqs, &dev->srqs, &dev->pds, &dev->keys, &dev->xrcds,
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		tables[i]->used += 10 + i;
	f->d.attached->function->ctrl.state = CTRL_FATAL;
	dev->port.max_frame = 1514;
	dev->account = (struct account){ .pool = &pool, .used = 16, .rejected = 19 };
	memcpy(dev->port.mac, (uint8_t[]) { 0x02, 0x1b, 0xc3, 0xd4, 0xe5, 0xf6 }, 6);
	dev->port.flags |= ORNIC_PORT_F_PROMISC;
	expect_device(f, "\"attached\":false,\"state\":\"fatal\",\"link\":\"down\","
			 "\"mac\":\"02:1b:c3:d4:e5:f6\",\"permanent_mac\":\"02:00:00:00:00:01\",\"max_frame\":1514,"
			 "\"anti_spoof\":false,\"ip\":null,\"promisc\":true,"
			 "\"guest_memory\":{\"bytes\":0,\"max_bytes\":1099511627776,"
			 "\"files\":0,\"max_files\":512,\"nvdimm\":false},"
			 "\"objects\":{\"qp\":10,\"cq\":11,"
			 "\"srq\":12,\"pd\":13,\"key\":14,\"xrcd\":15}," MEMORY);
	dev->port.flags ^= ORNIC_PORT_F_PROMISC | ORNIC_PORT_F_ANTI_SPOOF |
			   ORNIC_PORT_F_ANTI_SPOOF_IP;
	assert_null(antispoof_parse(&dev->port.source.prefix[0], "10.0.0.0/8"));
	assert_null(antispoof_parse(&dev->port.source.prefix[1], "2001:db8::1"));
	dev->port.source.n = 2;
	guest->bytes = 1ull << 41;
	guest->files = 7;
	guest->limits = (struct backing_limits) { 8, 1ull << 42, true };
	expect_device(f, "\"attached\":false,\"state\":\"fatal\",\"link\":\"down\","
			 "\"mac\":\"02:1b:c3:d4:e5:f6\",\"permanent_mac\":\"02:00:00:00:00:01\",\"max_frame\":1514,"
			 "\"anti_spoof\":true,\"ip\":[\"10.0.0.0/8\",\"2001:db8::1\"],"
			 "\"promisc\":false,"
			 "\"guest_memory\":{\"bytes\":2199023255552,\"max_bytes\":4398046511104,"
			 "\"files\":7,\"max_files\":8,\"nvdimm\":true},"
			 "\"objects\":{\"qp\":10,\"cq\":11,"
			 "\"srq\":12,\"pd\":13,\"key\":14,\"xrcd\":15}," MEMORY);
	guest->bytes = 0;
	guest->files = 0;
	dev->port.flags &= ~(ORNIC_PORT_F_ANTI_SPOOF | ORNIC_PORT_F_ANTI_SPOOF_IP);
	dev->account = account;
	f->d.attached->function->ctrl.state = CTRL_DISABLED;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		tables[i]->used -= 10 + i;
}

static void test_port_list(void **state)
{
	struct fixture *f = *state;
	struct device *dev = &f->d.attached->function->dev;

	for (int i = 0; i < CNT_COUNT; i++)
		dev->cnt[i] = 1000 + i;
	memcpy(dev->port.mac, (uint8_t[]) { 0x02, 0x1b, 0xc3, 0xd4, 0xe5, 0xf6 }, 6);
	expect_result(f, CALL("port.vlan", "{\"port\":\"vm1\",\"vlan\":4094}"), "{}");
	assert_int_equal(switch_port_vlan(dev->port.sw), 4094);
	expect_result(f, CALL("port.vlan", "{\"port\":\"vm1\",\"vlan\":0}"), "{}");
	assert_int_equal(switch_port_vlan(dev->port.sw), 0);
	expect_result(f, CALL("port.vlan", "{\"port\":\"vm1\",\"vlan\":5}"), "{}");
	expect_result(f, CALL("port.add", "{\"spec\":\"stream,path=%s/s,name=p,vlan=6\"}"),
		      "{\"name\":\"p\"}");
	*(struct uplink_stats *)uplink_stats(f->d.uplink[0]) = (struct uplink_stats) {
		1, 2, 3, 4, 5, 6, 7, 8
	};
	expect_result(f, CALL("port.list", "{}"),
		      "[{\"name\":\"vm1\",\"kind\":\"device\",\"up\":false,\"vlan\":5,"
		      "\"mac\":\"02:1b:c3:d4:e5:f6\",\"counters\":{\"tx_packets\":1002,"
		      "\"tx_bytes\":1000,\"tx_drop\":1008,\"tx_drop_spoof\":1009,"
		      "\"rx_packets\":1003,"
		      "\"rx_bytes\":1001,\"rdma_tx_packets\":1015,\"rdma_tx_bytes\":1013,"
		      "\"rdma_rx_packets\":1016,\"rdma_rx_bytes\":1014,\"vlan_drop\":0}},"
		      "{\"name\":\"p\",\"kind\":\"stream\",\"up\":false,\"vlan\":6,"
		      "\"spec\":\"stream,path=%1$s/s,name=p,vlan=6\","
		      "\"counters\":{\"tx_frames\":1,\"tx_bytes\":2,\"tx_drop\":3,"
		      "\"rx_frames\":4,\"rx_bytes\":5,\"rx_drop\":6,\"bad_icrc\":7,"
		      "\"malformed\":8,\"vlan_drop\":0}}]");
	expect_result(f, CALL("port.del", "{\"name\":\"p\"}"), "{}");
}

static void test_link_list(void **state)
{
	struct fixture *f = *state;
	struct device *dev = &f->d.attached->function->dev;
	struct egress_stats *egress;

	expect_result(f, CALL("link.set", "{\"port\":\"vm1\",\"rate\":\"10M\",\"queue\":"
			      "\"30000\",\"kmin\":\"4000\",\"kmax\":\"5000\",\"pmax\":\"6\"}"),
		      "{}");
	egress = (struct egress_stats *)egress_stats(switch_port_egress(dev->port.sw));
	*egress = (struct egress_stats) { 1, 2, 3, 4, 5 };
	expect_result(f, CALL("link.list", "{}"),
		      "[{\"port\":\"vm1\",\"rate_kbps\":10000,\"queue\":30000,\"kmin\":4000,"
		      "\"kmax\":5000,\"pmax\":6,\"waiting\":0,\"peak\":5,\"frames\":1,"
		      "\"bytes\":2,\"marked\":3,\"dropped\":4}]");
	expect_result(f, CALL("link.set", "{\"port\":\"vm1\",\"rate\":\"off\"}"), "{}");
	expect_result(f, CALL("link.list", "{}"), "[]");
}

static void test_fault_list(void **state)
{
	struct fixture *f = *state;
	struct fault *fault;

	expect_result(f, CALL("fault.add", "{\"rule\":\"drop count=2 seed=0x1f\"}"), "{\"id\":1}");
	expect_result(f, CALL("fault.add", "{\"rule\":\"ecn seed=0\"}"), "{\"id\":2}");
	fault = TAILQ_FIRST(&faults_of(&f->d.engine)->rules);
	fault->matched = 3;
	fault->acted = 2;
	fault->no_room = 1;
	expect_result(f, CALL("fault.list", "{}"),
		      "[{\"id\":1,\"rule\":\"drop count=2 seed=0x1f\",\"seed\":\"0x1f\","
		      "\"matched\":3,\"acted\":2,\"no_room\":1,\"spent\":true},{\"id\":2,"
		      "\"rule\":\"ecn seed=0\",\"seed\":\"0\",\"matched\":0,\"acted\":0,"
		      "\"no_room\":0,\"spent\":false}]");
	expect_result(f, CALL("fault.del", "{\"id\":1}"), "{}");
	for (int i = 1; i < FAULT_RULES; i++)
		fault_rule(&f->d.engine, "ecn");
	expect_error(f, CALL("fault.add", "{\"rule\":\"ecn\"}"), CONTROL_REJECTED,
		     "there are 256 rules, the most possible; delete some");
	expect_result(f, CALL("fault.clear", "{}"), "{}");
	expect_result(f, CALL("fault.list", "{}"), "[]");
}

static void test_capture_list(void **state)
{
	struct fixture *f = *state;
	struct capture *capture;

	expect_result(f, CALL("capture.start", "{\"spec\":\"%s/file,buffer=1M\"}"), "{\"id\":1}");
	capture = TAILQ_FIRST(&f->d.captures.list);
	capture->frames = 5;
	capture->dropped = 6;
	capture->bytes = 7;
	expect_result(f, CALL("capture.list", "{}"),
		      "[{\"id\":1,\"file\":\"%1$s/file\",\"state\":\"running\",\"frames\":5,"
		      "\"dropped\":6,\"bytes\":7}]");
	capture->ending = true;
	expect_result(f, CALL("capture.list", "{}"),
		      "[{\"id\":1,\"file\":\"%1$s/file\",\"state\":\"ending\",\"frames\":5,"
		      "\"dropped\":6,\"bytes\":7}]");
	capture->ending = false;
	capture->err = -ENOSPC;
	expect_result(f, CALL("capture.list", "{}"),
		      "[{\"id\":1,\"file\":\"%1$s/file\",\"state\":\"failed\","
		      "\"error\":\"No space left on device\",\"frames\":5,\"dropped\":6,"
		      "\"bytes\":7}]");
	capture->err = 0;
	captures_undo(&f->d.captures);
}

static void test_latency(void **state)
{
	struct fixture *f = *state;
	struct device *dev = &f->d.attached->function->dev;

	expect_result(f, CALL("latency.show", "{\"device\":\"vm1\"}"), "{\"on\":false}");
	expect_result(f, CALL("latency.on", "{\"device\":\"vm1\"}"), "{}");
	dev->latency->of[LATENCY_send] = (struct histogram) {
		.bucket = { 1, [LATENCY_BUCKETS - 1] = 2 }, .sum = 3000, .max = 900
	};
	dev->latency->of[LATENCY_local] = (struct histogram) {
		.bucket = { [1] = 5 }, .sum = 14, .max = 3
	};
	expect_result(f, CALL("latency.show", "{\"device\":\"vm1\"}"),
		      "{\"on\":true,\"times\":{\"send\":{\"count\":3,\"mean_ns\":1000,\"max_ns\":900,"
		      "\"buckets\":[{\"ns\":1,\"count\":1},{\"ns\":549755813888,\"count\":2}]},"
		      "\"write\":" NO_TIMES ",\"read\":" NO_TIMES ",\"atomic\":" NO_TIMES ","
		      "\"flush\":" NO_TIMES ",\"local\":{\"count\":5,\"mean_ns\":2,\"max_ns\":3,"
		      "\"buckets\":[{\"ns\":2,\"count\":5}]}}}");
	expect_result(f, CALL("latency.off", "{\"device\":\"vm1\"}"), "{}");
	expect_result(f, CALL("latency.show", "{\"device\":\"vm1\"}"), "{\"on\":false}");
}

#define UNKNOWN_CC	"congestion control \\\"maybe=1\\\": \\\"maybe\\\" is not on, off or one of " \
	"np_min_time_between_cnps, np_cnp_dscp, rp_time_reset, rp_byte_reset, rp_threshold, "	\
	"rp_ai_rate, rp_hai_rate, rp_max_rate, rp_min_rate, rp_min_dec_fac, "			\
	"rp_rate_to_set_on_first_cnp, rp_dce_tcp_g, rp_dce_tcp_rtt, "				\
	"rp_rate_reduce_monitor_period, rp_initial_alpha_value"

static void test_wrong_orders(void **state)
{
	static const struct {
		const char *order;
		int code;
		const char *message;
	} wrong[] = {
		{ CALL("port.vlan", "{\"port\":\"x\",\"vlan\":1}"), CONTROL_NOT_FOUND,
		  "there is no port x" },
		{ CALL("port.vlan", "{\"port\":\"vm1\",\"vlan\":-1}"), CONTROL_PARAMS,
		  "vlan -1: expected 0 to 4094" },
		{ CALL("port.vlan", "{\"port\":\"vm1\",\"vlan\":4095}"), CONTROL_PARAMS,
		  "vlan 4095: expected 0 to 4094" },
		{ CALL("port.vlan", "{\"port\":\"vm2\",\"vlan\":6}"), CONTROL_EXISTS,
		  "another device in that VLAN has the MAC address of vm2" },
		{ CALL("port.del", "{\"name\":\"vm1\"}"), CONTROL_REJECTED,
		  "cannot remove port vm1: it belongs to a device; use device del" },
		{ CALL("port.del", "{\"name\":\"x\"}"), CONTROL_NOT_FOUND, "there is no port x" },
		{ CALL("device.add", "{\"spec\":\"path=/tmp/x,speed=1\"}"), CONTROL_PARAMS,
		  "device \\\"path=/tmp/x,speed=1\\\": unknown key \\\"speed=1\\\"; the form is path=SOCKET[,mac=MAC][,name=NAME][,anti-spoof=on|off][,ip=ADDRESS]...[,KEY=...]" },
		{ CALL("device.add", "{\"spec\":\"mac=02:00:00:00:00:01\"}"), CONTROL_PARAMS,
		  "device \\\"mac=02:00:00:00:00:01\\\": path= is missing; the form is path=SOCKET[,mac=MAC][,name=NAME][,anti-spoof=on|off][,ip=ADDRESS]...[,KEY=...]" },
		{ CALL("device.add", "{\"spec\":\"path=/nowhere/x\"}"), CONTROL_NOT_FOUND,
		  "cannot listen on /nowhere/x: there is no directory /nowhere; create it first" },
		{ CALL("device.add", "{\"spec\":\"path=/dev/null\"}"), CONTROL_EXISTS,
		  "cannot listen on /dev/null: the file exists and is not a socket; remove it or choose another path" },
		{ CALL("device.del", "{\"name\":\"x\"}"), CONTROL_NOT_FOUND,
		  "there is no device x" },
		{ CALL("device.del", "{\"name\":\"vm1\",\"force\":1}"), CONTROL_PARAMS,
		  "params: Expected true or false, got integer" },
		{ CALL("link.set", "{\"port\":\"x\",\"rate\":\"1M\"}"), CONTROL_NOT_FOUND,
		  "there is no port x" },
		{ CALL("link.set", "{\"port\":\"vm1\",\"rate\":\"off\",\"queue\":\"1M\"}"),
		  CONTROL_PARAMS, "queue=1M needs a rate, but the rate is off" },
		{ CALL("link.set", "{\"port\":\"vm1\",\"rate\":\"off\",\"pmax\":\"1\"}"),
		  CONTROL_PARAMS, "pmax=1 needs a rate, but the rate is off" },
		{ CALL("fault.del", "{\"id\":0}"), CONTROL_NOT_FOUND, "there is no fault rule 0" },
		{ CALL("fault.del", "{\"id\":1}"), CONTROL_NOT_FOUND, "there is no fault rule 1" },
		{ CALL("fault.del", "{\"id\":4294967297}"), CONTROL_NOT_FOUND,
		  "there is no fault rule 4294967297" },
		{ CALL("fault.add", "{\"rule\":\"drop x=1\"}"), CONTROL_PARAMS,
		  "drop does not take \\\"x\\\"; its keys are device, port, dir, packet, opcode, qp, dqp, sqp, psn, size, nth, every, after, count, p, seed" },
		{ CALL("fault.add", "{\"rule\":\"qp-error device=x qp=1\"}"), CONTROL_NOT_FOUND,
		  "there is no device x; there are vm1, vm2" },
		{ CALL("fault.add", "{\"rule\":\"fatal device=vm1\"}"), CONTROL_NOT_FOUND,
		  "device vm1 is not in use: no driver has enabled it" },
		{ CALL("capture.start", "{\"spec\":\"-\"}"), CONTROL_PARAMS,
		  "cannot capture: - is the daemon's standard output: name a file or a pipe" },
		{ CALL("capture.stop", "{\"id\":0}"), CONTROL_NOT_FOUND, "there is no capture 0" },
		{ CALL("capture.stop", "{\"id\":4294967297}"), CONTROL_NOT_FOUND,
		  "there is no capture 4294967297" },
		{ CALL("latency.show", "{\"device\":\"x\"}"), CONTROL_NOT_FOUND,
		  "there is no device x" },
		{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"version\"}", CONTROL_REQUEST,
		  "jsonrpc must be \\\"2.0\\\"" },
		{ CALL("link.set", "{\"port\":\"vm1\",\"rate\":\"x\"}"), CONTROL_PARAMS,
		  "\\\"vm1\\\": rate=x is not a rate in bit/s such as 100M" },
		{ CALL("link.set", "{\"port\":\"vm1\",\"rate\":\"1M\",\"pmax\":\"101\"}"),
		  CONTROL_PARAMS, "\\\"vm1\\\": pmax must not be more than 100 per cent" },
		{ CALL("cc.set", "{\"spec\":\"maybe=1\"}"), CONTROL_PARAMS, UNKNOWN_CC },
		{ CALL("port.add", "{\"spec\":\"tap\"}"), CONTROL_PARAMS,
		  "port \\\"tap\\\": ifname= is missing; the form is tap,ifname=NAME[,name=NAME][,vlan=ID][,rxe-flush=on|off][,rate=RATE...]" },
		{ CALL("capture.start", "{\"spec\":\"/tmp/x,device=x\"}"), CONTROL_NOT_FOUND,
		  "cannot capture: there is no device x" },
		{ CALL("capture.stop", "{\"id\":-1}"), CONTROL_NOT_FOUND,
		  "there is no capture -1" },
		{ CALL("capture.stop", "{\"id\":1}"), CONTROL_NOT_FOUND, "there is no capture 1" },
		{ CALL("fault.del", "{\"id\":-1}"), CONTROL_NOT_FOUND,
		  "there is no fault rule -1" },
		{ CALL("qp.show", "{\"device\":\"vm1\",\"qpn\":5}"), CONTROL_NOT_FOUND,
		  "device vm1 has no queue pair 5" },
		{ CALL("qp.list", "{\"device\":\"vm1\",\"from\":-1}"), CONTROL_PARAMS,
		  "params: from must be a queue pair's handle" },
		{ CALL("counters", "{\"device\":\"vm\"}"), CONTROL_NOT_FOUND,
		  "there is no device vm" },
		{ CALL("version", "[]"), CONTROL_PARAMS, "params must be an object" },
		{ CALL("none", "{}"), CONTROL_METHOD,
		  "there is no such method; \\\"methods\\\" lists all" },
	};
	struct config_device d = { .name = "vm2", .mac = { 2, 0, 0, 0, 0, 2 }, .vlan = 5 };
	struct fixture *f = *state;
	struct attachment a;
	int err;

	expect_result(f, CALL("port.vlan", "{\"port\":\"vm1\",\"vlan\":6}"), "{}");
	d.path = (char *)textf(f, "%s/vm2", f->dir);
	assert_int_equal(attach(f, &a, &d), 0);
	err = switch_port_set_mac(a.function->dev.port.sw, f->d.attached->function->dev.port.mac);
	assert_int_equal(err, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		expect_error(f, wrong[i].order, wrong[i].code, wrong[i].message);
	function_free(attach_leave(&a));
}

/* Check the answer to capture.stop. */
static void expect_ending(const char *text, size_t len, uint64_t bytes)
{
	json_t *answer = json_loadb(text, len, 0, NULL);
	json_t *result = json_object_get(answer, "result");

	assert_string_equal(json_string_value(json_object_get(result, "state")), "ending");
	assert_int_equal(json_integer_value(json_object_get(result, "bytes")), bytes);
	json_decref(answer);
}

/* A capture.stop that is rejected leaves the capture as it is; a result shows its end. */
static void test_capture_stop(void **state)
{
	struct fixture *f = *state;
	bool failed = true, done = false;
	char order[128], *text;
	struct capture *c;
	size_t len = 0;

	for (uint32_t left = 0; failed; left++) {
		assert_true(left < MOST_FAILURES);
		assert_int_equal(capture_begin(f), 0);
		snprintf(order, sizeof(order), CALL("capture.stop", "{\"id\":%u}"), f->id);
		failing_begin(FAILING_MEMORY, ENOMEM, left);
		text = control_request(&f->d, order, strlen(order), &len);
		failed = failing_end();
		c = captures_find(&f->d.captures, f->id);
		assert_non_null(c);
		done = text && executed(order, text, len);
		if (text && c->ending != done)
			fail_msg("failure %u: ending is %d: %.*s", left, c->ending, (int)len, text);
		if (done)
			expect_ending(text, len, c->bytes);
		free(text);
		captures_undo(&f->d.captures);
	}
	assert_true(done);
}

/* ---- clients ------------------------------------------------------------------------- */

static int64_t one_turn(void *arg)
{
	struct fixture *f = arg;

	if (!f->turns--)
		loop_stop(f->d.loop);
	return 1;
}

static void turn(struct fixture *f)
{
	f->turns = 1;
	loop_set_work(f->d.loop, one_turn, f);
	assert_int_equal(loop_run(f->d.loop), 0);
}

/* Return: a socket that is connected to @name, or -1. */
static int try_dial(struct fixture *f, const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", f->dir, name);
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	close(fd);
	return -1;
}

static int dial(struct fixture *f, const char *name)
{
	int fd = try_dial(f, name);

	assert_true(fd >= 0);
	return fd;
}

/* A device that a client uses is removed by force only; the client reads an end of file. */
static void test_device_client(void **state)
{
	struct fixture *f = *state;
	char want[256], byte;
	int fd;

	assert_int_equal(add_device(f, "path=%s/vm2"), 0);
	fd = dial(f, "vm2");
	turn(f);
	snprintf(want, sizeof(want), "cannot remove device vm2: process %d uses it; unplug it from its virtual machine first, or use force, which is like pulling out a card",
		 getpid());
	expect_error(f, CALL("device.del", "{\"name\":\"vm2\"}"), CONTROL_REJECTED, want);
	expect_error(f, CALL("device.del", "{\"name\":\"vm2\",\"force\":false}"), CONTROL_REJECTED,
		     want);
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(send(fd, "unread", 6, 0), 6);
	expect_result(f, CALL("device.del", "{\"name\":\"vm2\",\"force\":true}"), "{}");
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
	expect_error(f, CALL("device.del", "{\"name\":\"vm2\",\"force\":true}"),
		     CONTROL_NOT_FOUND, "there is no device vm2");

	/* the next one has the same name and socket; once its client has left it is free */
	expect_result(f, CALL("device.add", "{\"spec\":\"path=%1$s/vm2,mac=02:0a:00:00:00:02\"}"),
		      "{\"name\":\"vm2\",\"path\":\"%1$s/vm2\",\"mac\":\"02:0a:00:00:00:02\"}");
	fd = dial(f, "vm2");
	turn(f);
	close(fd);
	turn(f);
	expect_result(f, CALL("device.del", "{\"name\":\"vm2\"}"), "{}");
	assert_int_equal(f->d.n, 1);
}

/* The daemon hangs up on a client that it cannot serve, and serves the next one. */
static void try_client(struct fixture *f, const char *name, enum failing_kind kind,
		       unsigned int least)
{
	unsigned int fds = descriptors(), failures = 0;
	bool failed = true;
	char byte;

	for (uint32_t left = 0; failed; left++) {
		int fd = dial(f, name);
		ssize_t n;

		failing_begin(kind, ENOMEM, left);
		turn(f);
		failed = failing_end();
		n = recv(fd, &byte, 1, 0);
		assert_int_equal(n, failed ? 0 : -1);
		assert_true(descriptors_become(fds + 1 + !failed));
		close(fd);
		turn(f);
		assert_true(descriptors_become(fds));
		failures += failed;
	}
	assert_true(failures >= least);
}

static void test_clients(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(control_listen(f), 0);
	assert_int_equal(vfu_listen(f), 0);
	turn(f);
	try_client(f, "control", FAILING_MEMORY, 2);
	try_client(f, "control", FAILING_KERNEL, 1);
	try_client(f, "vfu", FAILING_MEMORY, 3);
	try_client(f, "vfu", FAILING_KERNEL, 1);
	vfu_hang_up(f);
	assert_true(mapper_wait(5000));
	control_hang_up(f);
}

/* Without memory for an answer, the connection ends. With any answer, it continues. */
static void test_lost_answer(void **state)
{
	static const char order[] = CALL("cc.show", "{}") "\n";
	struct fixture *f = *state;
	unsigned int fds, lost = 0;
	bool failed = true;
	char got[4096];

	assert_int_equal(control_listen(f), 0);
	fds = descriptors();
	for (uint32_t left = 0; failed; left++) {
		int fd = dial(f, "control");
		ssize_t n;

		assert_true(left < MOST_FAILURES);
		turn(f);
		assert_int_equal(write(fd, order, sizeof(order) - 1), sizeof(order) - 1);
		turn(f);
		failing_begin(FAILING_MEMORY, ENOMEM, left);
		assert_false(control_work(f->d.control));
		failed = failing_end();
		n = recv(fd, got, sizeof(got), 0);
		if (n) {
			assert_int_equal(got[n - 1], '\n');
			assert_int_equal(recv(fd, got, sizeof(got), 0), -1);
		}
		lost += !n;
		assert_int_equal(descriptors(), fds + 1 + !!n);
		close(fd);
		turn(f);
		assert_int_equal(descriptors(), fds);
	}
	assert_int_equal(lost, 1);
	control_hang_up(f);
}

static int send_error, recv_error;

/* Return *@error, which is 0 then. */
static int next_error(int *error)
{
	int is = *error;

	*error = 0;
	return is;
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	errno = next_error(&send_error);
	return errno ? -1 : syscall(SYS_sendto, fd, buf, len, flags, NULL, 0);
}

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	errno = next_error(&recv_error);
	return errno ? -1 : syscall(SYS_recvfrom, fd, buf, len, flags, NULL, NULL);
}

/*
 * An answer is sent later if it cannot be sent now, and discarded if the client has closed its end.
 * Other errors end the connection.
 */
static void test_socket_fails(void **state)
{
	static const char order[] = CALL("cc.set", "{\"spec\":\"off\"}") "\n";
	static const char want[] = "{\"result\":{},\"jsonrpc\":\"2.0\",\"id\":1}\n";
	static const struct {
		int error;
		int *call;
		ssize_t n;	/* received by the client */
	} cases[] = {
		{ EAGAIN, &send_error, sizeof(want) - 1 }, { EINTR, &send_error, sizeof(want) - 1 },
		{ EPIPE, &send_error, -1 }, { ECONNRESET, &send_error, -1 },
		{ ENOMEM, &send_error, 0 },
		{ EAGAIN, &recv_error, sizeof(want) - 1 }, { EINTR, &recv_error, sizeof(want) - 1 },
		{ ECONNRESET, &recv_error, 0 }, { ENOMEM, &recv_error, 0 },
	};
	struct fixture *f = *state;
	unsigned int fds;
	char got[256];

	assert_int_equal(control_listen(f), 0);
	fds = descriptors();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = dial(f, "control");
		ssize_t n;

		turn(f);
		assert_int_equal(write(fd, order, sizeof(order) - 1), sizeof(order) - 1);
		if (cases[i].call == &recv_error) {
			recv_error = cases[i].error;
			turn(f);
			assert_int_equal(recv_error, 0);
		} else {
			send_error = cases[i].error;
		}
		turn(f);
		assert_false(control_work(f->d.control));
		turn(f);
		assert_int_equal(send_error, 0);
		n = recv(fd, got, sizeof(got), 0);
		if (cases[i].n)
			assert_int_equal(n, cases[i].n);
		else
			assert_true(!n || errno == ECONNRESET);	/* with unread bytes */
		if (n > 0)
			assert_memory_equal(got, want, n);
		assert_int_equal(descriptors(), fds + 1 + !!cases[i].n);
		if (n < 0 && cases[i].n) {	/* it still serves the client */
			assert_int_equal(write(fd, order, sizeof(order) - 1), sizeof(order) - 1);
			turn(f);
			assert_false(control_work(f->d.control));
			assert_int_equal(recv(fd, got, sizeof(got), 0), sizeof(want) - 1);
		}
		close(fd);
		turn(f);
		assert_int_equal(descriptors(), fds);
	}
	control_hang_up(f);
}

#define REJECTED	"ornicd: warning: control: rejected a client: 32 are connected already\n"

/* A client that has just sent a part of a line keeps its place, if 32 are connected. */
static void test_too_many_clients(void **state)
{
	static const char want[] = "{\"error\":{\"code\":-32600,\"message\":\"too many clients; try again later\"},\"jsonrpc\":\"2.0\",\"id\":null}\n";
	struct fixture *f = *state;
	char got[256] = "";
	int fd[33];

	assert_int_equal(control_listen(f), 0);
	json_memory_failed();	/* for an earlier request */
	lines_begin();
	for (int i = 0; i < 33; i++) {
		fd[i] = dial(f, "control");
		assert_int_equal(write(fd[i], "{", 1), 1);
		turn(f);
		turn(f);
		usleep(2000);	/* more than nothing, less than the time for a line */
	}
	for (int i = 0; i < 32; i++)
		assert_int_equal(recv(fd[i], got, sizeof(got), 0), -1);
	assert_int_equal(recv(fd[32], got, sizeof(got), 0), sizeof(want) - 1);
	assert_string_equal(got, want);
	lines_end(REJECTED);
	/* the next one does not get the reason */
	close(fd[32]);
	log_setup(LOG_DEBUG, false);
	for (int i = 0; i < 2; i++) {
		struct printed printed;
		char said[256];

		fd[32] = dial(f, "control");
		send_error = i ? EPIPE : 0;
		print_begin(&printed, STDERR_FILENO);
		turn(f);
		print_end(&printed, said, sizeof(said));
		assert_string_equal(said, i ? REJECTED "ornicd: debug: control: cannot send the reason to a rejected client: Broken pipe\n" :
				    REJECTED);
		assert_int_equal(recv(fd[32], got, sizeof(got), 0), i ? 0 : sizeof(want) - 1);
		close(fd[32]);
	}
	log_setup(LOG_ERR, false);
	for (int i = 0; i < 32; i++)
		close(fd[i]);
	turn(f);
	control_hang_up(f);
}

/* VERSION: the daemon closes the connection without memory for the answer; a later one succeeds. */
static void test_version(void **state)
{
	static const struct vfu_version want = { VFU_MAJOR, VFU_MINOR };
	static const char caps[] = "{\"capabilities\":{\"max_msg_fds\":8,\"write_multiple\":true}}";
	static const char no_memory[] = "test: no memory for a client's version";
	uint8_t payload[sizeof(want) + sizeof(caps)], out[4096];
	struct fixture *f = *state;
	uint32_t left = 0;
	int err;

	memcpy(payload, &want, sizeof(want));
	memcpy(payload + sizeof(want), caps, sizeof(caps));
	f->func = (struct vfu_func) { .ops = &no_ops, .log.name = "test", .bar[0] = { 4096, 0 } };
	do {
		struct vfu_msg m = {
			.hdr.cmd = VFU_VERSION, .payload = payload, .len = sizeof(payload),
			.out = out,
		};
		struct vfu_endpoint ep;

		assert_int_equal(endpoint_init(&ep, &f->func), 0);
		log_keep(f->said, sizeof(f->said));
		failing_begin(FAILING_MEMORY, ENOMEM, left++);
		err = vfu_command(&ep, &m);
		failing_end();
		log_keep(NULL, 0);
		assert_int_equal(ep.negotiated, !err);
		assert_int_equal(err, err ? VFU_CLOSE(ENOMEM) : 0);
		assert_string_equal(f->said, err ? no_memory : "");
		if (!err)
			assert_non_null(strstr((char *)out + sizeof(want), "write_multiple"));
		endpoint_detach(&ep);
		endpoint_destroy(&ep);
	} while (err);
	assert_true(left > 20);
	log_source_end(&f->func.log);
}

/* ---- start --------------------------------------------------------------------------- */

static int read_config(struct fixture *f)
{
	char conf[64], word[16][256];
	char *argv[20] = { "ornicd" };
	static const char *const words[] = {
		"-d", "path=%s/vm3,mac=02:00:00:00:00:01,rate=10M", "-p",
		"stream,path=%s/port,name=port", "-w", "%s/capture,device=vm3", "--cc", "on", "-f",
		"%s/faults", "-C", "%s/control", "--control-group", "0", "-c",
	};
	int argc = 1;

	config_free(&f->config);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		snprintf(word[i], sizeof(word[i]), words[i], f->dir);
		argv[argc++] = word[i];
	}
	snprintf(conf, sizeof(conf), "%s.conf", f->dir);
	argv[argc++] = conf;
	return config_args(&f->config, argc, argv) == CONFIG_RUN ? 0 : -1;
}

static void write_config(struct fixture *f)
{
	FILE *file = fopen(textf(f, "%s.conf", f->dir), "w");

	assert_non_null(file);
	fprintf(file, "{\"devices\":[{\"path\":\"%s/vm2\"}],\"captures\":[\"%s/two\"],"
		"\"faults\":[\"drop p=0.1\"],\"ports\":[\"stream,path=%s/q\"],\"spin_us\":7,"
		"\"log_level\":\"error\",\"cc\":\"off\"}", f->dir, f->dir, f->dir);
	fclose(file);
}

/* Each failing allocation gives an error line, and the configuration is freed. */
static void test_config(void **state)
{
	struct fixture *f = *state;
	uint32_t left = 0;
	bool failed = true;
	int err;

	write_config(f);
	f->files = folder_entries(f->dir);
	f->fds = descriptors();
	while (failed) {
		log_keep(f->said, sizeof(f->said));
		failing_begin(FAILING_MEMORY, ENOMEM, left);
		err = read_config(f);
		failed = failing_end();
		log_keep(NULL, 0);
		/* a wrong answer or none: no option is ignored */
		if (!err != !*f->said)
			fail_msg("result %d with the error line \"%s\" for allocation %u", err,
				 f->said, left);
		if (!err && (f->config.ndevices != 2 || f->config.nports != 2 ||
			     f->config.ncaptures != 2 || f->config.nfaults != 2 ||
			     !f->config.control.path || !f->config.control.access.has_gid ||
			     f->config.spin_us != 7 || f->config.cc.on))
			fail_msg("an option is ignored after failure %u", left);
		assert_int_equal(descriptors(), f->fds);
		left++;
	}
	assert_int_equal(err, 0);
	assert_true(left > 60);
	unlink(textf(f, "%s.conf", f->dir));
}

static int daemon_start(struct fixture *f)
{
	return daemon_run(&f->config);
}

/* Configure the daemon, and block SIGTERM: if it is sent before, the daemon ends once it serves. */
static void prepare_start(struct fixture *f, sigset_t *set)
{
	write_config(f);
	assert_int_equal(read_config(f), 0);
	unlink(textf(f, "%s.conf", f->dir));
	/* only root may give the control socket to the group root */
	if (geteuid())
		f->config.control.access.has_gid = false;
	/* neither captures to files that stay, nor a file of rules */
	while (f->config.ncaptures)
		capture_spec_free(&f->config.capture[--f->config.ncaptures]);
	assert_true(f->config.fault[0].file);
	free(f->config.fault[0].text);
	f->config.fault[0] = f->config.fault[--f->config.nfaults];
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, set, NULL), 0);
	log_setup(LOG_ERR, false);
}

static void finish_start(const sigset_t *set)
{
	while (sigtimedwait(set, NULL, &(struct timespec) { 0 }) > 0)
		;
	sigprocmask(SIG_UNBLOCK, set, NULL);
}

/* Start the whole daemon. */
static void test_start(void **state)
{
	static const struct operation o = { "daemon", daemon_start, undo_nothing, 40 };
	struct fixture *f = *state;
	uint32_t left;
	sigset_t set;

	prepare_start(f, &set);
	raise(SIGTERM);
	assert_int_equal(daemon_start(f), 0);
	assert_true(mapper_wait(5000));
	f->files = folder_entries(f->dir);
	f->fds = descriptors();
	for (int kind = FAILING_MEMORY; kind <= FAILING_KERNEL; kind++) {
		bool failed = true;

		for (left = 0; failed; left++) {
			int err;

			raise(SIGTERM);
			log_keep(f->said, sizeof(f->said));
			failing_begin(kind, ENOMEM, left);
			err = o.run(f);
			failed = failing_end();
			log_keep(NULL, 0);
			if (err && err != -ENOMEM)
				fail_msg("start, failure %u: error %d", left, err);
			if (err && !*f->said)
				fail_msg("start, failure %u: no error line", left);
			if (!err && *f->said)
				fail_msg("start, failure %u: success, but \"%s\"", left, f->said);
			assert_true(mapper_wait(5000));
			if (folder_entries(f->dir) != f->files || descriptors() != f->fds)
				fail_msg("start, failure %u leaves something", left);
			if (!failed)
				assert_int_equal(err, 0);
		}
		assert_true(left > (kind == FAILING_MEMORY ? 40 : 10));
	}
	finish_start(&set);
}

/* Start the daemon, which fails with @err and says @want, and leaves nothing. */
static void cannot_start(struct fixture *f, int err, const char *want)
{
	unsigned int fds = descriptors(), files = folder_entries(f->dir);

	raise(SIGTERM);
	log_keep(f->said, sizeof(f->said));
	assert_int_equal(daemon_start(f), err);
	log_keep(NULL, 0);
	assert_string_equal(f->said, want);
	assert_int_equal(descriptors(), fds);
	assert_int_equal(folder_entries(f->dir), files);
}

/* A wrong rule, port or capture ends the start; the files of earlier captures are removed. */
static void test_wrong_start(void **state)
{
	struct fixture *f = *state;
	struct config *c = &f->config;
	sigset_t set;

	prepare_start(f, &set);
	assert_int_equal(config_fault(c, "drip", false), 0);
	cannot_start(f, -EINVAL,
		     "fault \"drip\": \"drip\" is not an action; expected one of drop, duplicate, reorder, delay, corrupt, truncate, ecn, flap, qp-error, fatal, cqe, admin");
	c->fault[c->nfaults - 1].file = true;
	cannot_start(f, -ENOENT, "cannot read drip: No such file or directory");
	free(c->fault[--c->nfaults].text);
	for (int i = 0; i < 3; i++)
		assert_int_equal(config_capture(c, textf(f, "%s/%d%s", f->dir, i,
							 i == 1 ? ",device=x" : "")), 0);
	cannot_start(f, -ENOENT, "cannot capture: there is no device x");
	assert_int_equal(config_port(c, textf(f, "stream,path=%s/no/x", f->dir)), 0);
	snprintf(f->text, sizeof(f->text),
		 "cannot listen on %s/no/x: No such file or directory; create its directory first",
		 f->dir);
	cannot_start(f, -ENOENT, f->text);
	finish_start(&set);
}

/* The daemon serves even if it cannot report that. */
static void test_not_ready(void **state)
{
	struct fixture *f = *state;
	struct printed printed;
	char said[256];
	sigset_t set;

	prepare_start(f, &set);
	log_setup(LOG_WARN, false);
	f->config.ready_fd = 100;
	for (int i = 0; i < 2; i++) {
		int fd = open("/dev/null", i ? O_WRONLY : O_RDONLY);

		assert_int_equal(dup2(fd, 100), 100);
		close(fd);
		raise(SIGTERM);
		print_begin(&printed, STDERR_FILENO);
		assert_int_equal(daemon_start(f), 0);
		print_end(&printed, said, sizeof(said));
		assert_string_equal(said, i ? "" : "ornicd: warning: cannot report readiness on descriptor 100: Bad file descriptor\n");
		assert_int_equal(fcntl(100, F_GETFD), -1);
	}
	finish_start(&set);
}

/*
 * Start the daemon with a pipe as descriptor @fd, to which it reports that it serves, and which it
 * closes. Return: true if the descriptor is open afterwards.
 */
static bool start_ready(struct fixture *f, int fd)
{
	unsigned int count = descriptors();
	int before = dup(fd), pipe_fd[2], err;
	ssize_t n[2];
	char got[2];
	bool open;

	assert_int_equal(pipe2(pipe_fd, O_NONBLOCK), 0);
	assert_int_equal(dup2(pipe_fd[1], fd), fd);
	close(pipe_fd[1]);
	f->config.ready_fd = fd;
	raise(SIGTERM);
	err = daemon_start(f);
	open = fcntl(fd, F_GETFD) >= 0;
	n[0] = read(pipe_fd[0], got, sizeof(got));
	n[1] = read(pipe_fd[0], got + 1, 1);
	if (before >= 0) {
		dup2(before, fd);
		close(before);
	}
	assert_int_equal(err, 0);
	assert_int_equal(n[0], 1);
	assert_int_equal(got[0], '\n');
	assert_int_equal(n[1], 0);
	close(pipe_fd[0]);
	assert_int_equal(descriptors(), count);
	return open;
}

/* No file of the daemon gets the number of a standard descriptor, for example that of the log. */
static void test_ready(void **state)
{
	struct fixture *f = *state;
	sigset_t set;

	prepare_start(f, &set);
	assert_true(start_ready(f, STDIN_FILENO));
	assert_true(start_ready(f, STDOUT_FILENO));
	assert_true(start_ready(f, STDERR_FILENO));
	assert_false(start_ready(f, 100));
	finish_start(&set);
}

/* Send @orders, each a line, and receive @n answers into @answer. Return: false on error. */
static bool ask(int fd, const char *orders, int n, char *answer, size_t room)
{
	size_t len = 0;

	if (write(fd, orders, strlen(orders)) < 0)
		return false;
	for (; n; n--) {
		do {
			if (len == room - 1 || read(fd, answer + len, 1) != 1)
				return false;
		} while (answer[len++] != '\n');
	}
	answer[len] = '\0';
	return true;
}

/* A frame goes from one port to another one. */
static bool forwards(int from, int to)
{
	uint8_t frame[4 + 60] = { 0, 0, 0, 60 }, got[sizeof(frame)] = { 0 };

	memset(frame + 4, 0xff, 6);
	fcntl(to, F_SETFL, 0);
	return write(from, frame, sizeof(frame)) == sizeof(frame) &&
	       recv(to, got, sizeof(got), MSG_WAITALL) == sizeof(got) &&
	       !memcmp(got, frame, sizeof(got));
}

/* Start a capture and stop it. Return: true if it is gone after at most 10 s. */
static bool captures(struct fixture *f, int fd, char *answer, size_t room)
{
	char start[256];

	snprintf(start, sizeof(start), CALL("capture.start", "{\"spec\":\"%s/frames\"}") "\n",
		 f->dir);
	if (!ask(fd, start, 1, answer, room) || !strstr(answer, "\"id\":1}") ||
	    !ask(fd, CALL("capture.stop", "{\"id\":1}") "\n", 1, answer, room) ||
	    unlink(textf(f, "%s/frames", f->dir)))
		return false;
	for (int i = 0; i < 1000; i++) {
		if (!ask(fd, CALL("capture.list", "{}") "\n", 1, answer, room))
			return false;
		if (strstr(answer, "[]"))
			return true;
		usleep(10000);
	}
	return false;
}

/* An idle process takes less than a tenth of a processor. */
static bool is_idle(pid_t pid)
{
	struct timespec begin, end;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &begin))
		return false;
	usleep(300000);
	clock_gettime(clock, &end);
	return (end.tv_sec - begin.tv_sec) * 1000000000ll + end.tv_nsec - begin.tv_nsec < 30000000;
}

static pid_t asked;	/* process of the daemon */

/*
 * Ask the daemon at the control socket, once it has written to @ready. Return: the number of the
 * first answer that lacks its text, 0 if none, or another number for other failures.
 */
static int ask_daemon(struct fixture *f, int ready)
{
	static const struct {
		const char *order;
		const char *want;
	} orders[] = {
		{ CALL("cc.show", "{}") "\n", "\"on\":false" },
		{ CALL("fault.list", "{}") "\n", "drop p=0.1" },
		{ CALL("port.list", "{}") "\n", "\"vm2\"" },
		{ CALL("port.list", "{}") "\n", "\"vm3\"" },
		{ CALL("port.list", "{}") "\n", "\"port\"" },
		{ CALL("port.list", "{}") "\n", "/q" },
		{ CALL("port.add", "{\"spec\":\"udp,local=localhost:1,remote=localhost:2\"}") "\n",
		  "numeric" },
	};
	static const char two[] = CALL("cc.show", "{}") "\n" CALL("version", "{}") "\n";
	char answer[1u << 16];
	int fd, to;

	if (read(ready, answer, 1) != 1)
		return 100;
	fd = try_dial(f, "control");
	if (fd < 0)
		return 102;
	fcntl(fd, F_SETFL, 0);
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (!ask(fd, orders[i].order, 1, answer, sizeof(answer)) ||
		    !strstr(answer, orders[i].want))
			return i + 1;
	to = try_dial(f, "port");
	/* the daemon has accepted @to when it answers; nothing but the first order wakes it up */
	if (!ask(fd, two, 2, answer, sizeof(answer)))
		return 103;
	if (!forwards(try_dial(f, "q"), to))
		return 104;
	if (!captures(f, fd, answer, sizeof(answer)))
		return 107;
	return is_idle(asked) ? 0 : 105;
}

/* End the daemon, too, because no answer comes. */
static void give_up(int sig)
{
	(void)sig;
	if (getppid() == asked)
		kill(asked, SIGTERM);
	_exit(106);
}

/* The daemon serves what is configured, until a signal ends it. */
static void test_serves(void **state)
{
	struct fixture *f = *state;
	int ready[2], status;
	sigset_t set;
	pid_t client;

	asked = getpid();
	prepare_start(f, &set);
	f->config.cc.on = false;
	assert_int_equal(pipe(ready), 0);
	f->config.ready_fd = ready[1];
	client = fork();
	assert_true(client >= 0);
	if (!client) {
		close(ready[1]);	/* a daemon that fails ends the reading */
		signal(SIGALRM, give_up);
		alarm(60);
		status = ask_daemon(f, ready[0]);
		if (getppid() == asked)
			kill(asked, SIGTERM);
		_exit(status);
	}
	assert_int_equal(daemon_start(f), 0);
	assert_int_equal(waitpid(client, &status, 0), client);
	assert_int_equal(status, 0);
	close(ready[0]);
	finish_start(&set);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ports),
		TEST(name_kept),
		TEST(control_socket),
		TEST(vfu_socket),
		TEST(guest_memory),
		TEST(device),
		TEST(device_add),
		TEST(device_orders),
		TEST(device_flap),
		TEST(device_vlan),
		TEST(device_client),
		TEST(long_path),
		TEST(attach),
		TEST(port_orders),
		TEST(port_flap),
		TEST(captures),
		TEST(faults),
		TEST(orders),
		TEST(capture_stop),
		TEST(device_list),
		TEST(port_list),
		TEST(link_list),
		TEST(fault_list),
		TEST(capture_list),
		TEST(latency),
		TEST(wrong_orders),
		TEST(clients),
		TEST(lost_answer),
		TEST(socket_fails),
		TEST(too_many_clients),
		TEST(version),
		TEST(config),
		TEST(start),
		TEST(wrong_start),
		TEST(not_ready),
		TEST(ready),
		TEST(serves),
		TEST(interfaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
