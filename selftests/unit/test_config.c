// SPDX-License-Identifier: GPL-2.0
/* config/: command lines and files, valid and invalid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/printed.h"

#include "config/config.h"
#include "json_memory.h"
#include "log.h"
#include "version.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Users and groups of the C library: u is user 7, g is group 8. Other names are looked for with
 * @name_error; -1: there is no such name, and errno does not change.
 */
static int name_error = -1;

struct passwd *getpwnam(const char *name)
{
	static struct passwd u = { .pw_uid = 7 };

	if (!strcmp(name, "u"))
		return &u;
	if (name_error >= 0)
		errno = name_error;
	return NULL;
}

struct group *getgrnam(const char *name)
{
	static struct group g = { .gr_gid = 8 };

	if (!strcmp(name, "g"))
		return &g;
	if (name_error >= 0)
		errno = name_error;
	return NULL;
}

static int setup(void **state)
{
	struct config *c = test_calloc(1, sizeof(*c));

	config_init(c);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	config_free(*state);
	test_free(*state);
	return 0;
}

/* Split a command line at spaces. */
static enum config_result run(struct config *c, const char *line)
{
	char copy[1024], *argv[16] = { "ornicd" };
	int argc = 1;

	strcpy(copy, line);
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	return config_args(c, argc, argv);
}

static void test_good(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0xab, 0xcd, 0xef };
	struct config *c = *state;

	assert_int_equal(run(c, "--device path=/run/x/vm1.sock,mac=02:00:00:aB:cd:EF "
			     "-d name=two,path=/run/x/vm2,promisc=off,anti-spoof=on "
			     "--spin-us 7 -l debug --ready-fd 2"),
			 CONFIG_RUN);
	assert_int_equal(c->ndevices, 2);
	assert_string_equal(c->device[0].path, "/run/x/vm1.sock");
	assert_string_equal(c->device[0].name, "vm1");
	assert_memory_equal(c->device[0].mac, mac, 6);
	assert_false(c->device[0].anti_spoof);
	assert_true(c->device[0].promisc);
	assert_string_equal(c->device[1].name, "two");
	assert_true(c->device[1].anti_spoof);
	assert_false(c->device[1].promisc);
	assert_int_equal(c->spin_us, 7);
	assert_int_equal(c->log_level, LOG_DEBUG);
	assert_int_equal(c->log_format, LOG_TEXT);
	assert_false(c->log_time);
	assert_int_equal(c->ready_fd, 2);
	config_free(c);
	assert_int_equal(run(c, "-d path=/a,vlan=1 -d path=/b,vlan=4094"), CONFIG_RUN);
	assert_int_equal(c->device[0].vlan, 1);
	assert_int_equal(c->device[1].vlan, 4094);
	config_free(c);
	assert_int_equal(run(c, "-d path=/a,memory=4096,memory-files=1 "
			     "-d path=/b,memory-files=65535,nvdimm=on,memory=64t "
			     "-d path=/c,nvdimm=off,memory=3G"), CONFIG_RUN);
	assert_int_equal(c->device[0].memory, 4096);
	assert_int_equal(c->device[0].memory_files, 1);
	assert_false(c->device[0].nvdimm);
	assert_true(c->device[1].memory == 1ull << 46);
	assert_int_equal(c->device[1].memory_files, 65535);
	assert_true(c->device[1].nvdimm);
	assert_true(c->device[2].memory == 3ull << 30);
	assert_int_equal(c->device[2].memory_files, 0);
	assert_false(c->device[2].nvdimm);
}

static void check_ip(const struct config_device *d, unsigned int at, const char *want)
{
	char text[ANTISPOOF_TEXT];

	assert_true(at < d->source.n);
	antispoof_print(&d->source.prefix[at], text);
	assert_string_equal(text, want);
}

/* A device with ip= checks addresses; it may repeat the key. */
static void test_ip(void **state)
{
	struct config *c = *state;
	char line[1024] = "-d path=/a", *end = line + strlen(line);

	assert_int_equal(run(c, "-d path=/a,ip=10.0.0.1,name=n,ip=2001:db8::/64,ip=fe80::7 "
			     "-d path=/b,ip=link-local,promisc=off -d path=/c,anti-spoof=on "
			     "-d path=/d,anti-spoof=on,ip=10.0.0.0/24"), CONFIG_RUN);
	assert_true(c->device[0].anti_spoof && c->device[0].source.ip);
	assert_true(c->device[0].promisc);
	assert_int_equal(c->device[0].source.n, 3);
	check_ip(&c->device[0], 0, "10.0.0.1");
	check_ip(&c->device[0], 1, "2001:db8::/64");
	check_ip(&c->device[0], 2, "fe80::7");
	assert_true(c->device[1].anti_spoof && c->device[1].source.ip);
	assert_int_equal(c->device[1].source.n, 0);
	assert_true(c->device[2].anti_spoof);
	assert_false(c->device[2].source.ip);
	assert_true(c->device[3].anti_spoof && c->device[3].source.ip);
	config_free(c);
	for (int i = 0; i < ANTISPOOF_PREFIXES; i++)
		end += sprintf(end, ",ip=10.0.0.%d", i + 1);
	assert_int_equal(run(c, line), CONFIG_RUN);
	assert_int_equal(c->device[0].source.n, ANTISPOOF_PREFIXES);
	check_ip(&c->device[0], ANTISPOOF_PREFIXES - 1, "10.0.0.32");
	config_free(c);
	strcpy(end, ",ip=10.0.0.99");
	assert_int_equal(run(c, line), CONFIG_BAD);
}

static void check_policy(const struct config_device *d, bool anti_spoof, bool promisc)
{
	assert_int_equal(d->anti_spoof, anti_spoof);
	assert_int_equal(d->promisc, promisc);
}

/* --untrusted changes the defaults of all devices, before and behind it. */
static void test_untrusted(void **state)
{
	static const char *const bad[] = {
		"-d path=/a --untrusted",
		"--untrusted -d path=/a",
		"-u -d path=/a,anti-spoof=on",
		"-d path=/a,promisc=off -u",
		"-d path=/a,ip=10.0.0.1 -d path=/b -u",
	};
	struct config *c = *state;

	assert_int_equal(run(c, "-d path=/a,ip=10.0.0.1 -d path=/b,anti-spoof=off "
			     "-d path=/c,ip=link-local,promisc=on --untrusted "
			     "-d path=/d,ip=10.0.0.1 -d path=/e,anti-spoof=off,promisc=on"),
			 CONFIG_RUN);
	assert_true(c->untrusted);
	check_policy(&c->device[0], true, false);
	check_policy(&c->device[1], false, false);
	check_policy(&c->device[2], true, true);
	check_policy(&c->device[3], true, false);
	check_policy(&c->device[4], false, true);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		config_free(c);
		assert_false(c->untrusted);
		assert_int_equal(run(c, bad[i]), CONFIG_BAD);
	}
}

static char last_file[] = "/tmp/ornicd-conf-XXXXXX";

static int file(struct config *c, const char *text)
{
	char *path = strcpy(last_file, "/tmp/ornicd-conf-XXXXXX");
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	err = config_file(c, path);
	unlink(path);
	return err;
}

static void test_ports(void **state)
{
	struct config *c = *state;

	assert_int_equal(run(c, "-d path=/a -p tap,ifname=t0 --port packet,name=lan,ifname=t0 "
			     "-p stream,path=/b -p stream,path=/c,server=off "
			     "-p dgram,local=/d,remote=/e -p udp,remote=h:2,local=g:1"),
			 CONFIG_RUN);
	assert_int_equal(c->nports, 6);
	assert_string_equal(c->port[0].kind, "tap");
	assert_string_equal(c->port[0].ifname, "t0");
	assert_string_equal(c->port[0].name, "t0");
	assert_string_equal(c->port[1].kind, "packet");
	assert_string_equal(c->port[1].name, "lan");
	assert_string_equal(c->port[2].path, "/b");
	assert_false(c->port[2].client);
	assert_true(c->port[3].client);
	assert_string_equal(c->port[4].local, "/d");
	assert_string_equal(c->port[4].remote, "/e");
	assert_string_equal(c->port[5].name, "g:1");
	assert_string_equal(c->port[5].remote, "h:2");
	config_free(c);
	assert_int_equal(file(c, "{\"devices\": [{\"path\": \"/a\"}], "
			      "\"ports\": [\"tap,ifname=t0\", \"stream,path=/b\"]}"), 0);
	assert_int_equal(c->nports, 2);
	assert_string_equal(c->port[1].kind, "stream");
}

static void test_captures(void **state)
{
	struct config *c = *state;

	assert_int_equal(run(c, "-d path=/a -w /tmp/a,qp=17 --capture -,device=a"), CONFIG_RUN);
	assert_int_equal(c->ncaptures, 2);
	assert_string_equal(c->capture[0].path, "/tmp/a");
	assert_int_equal(c->capture[0].qpn, 17);
	assert_string_equal(c->capture[1].port[0].name, "a");
	config_free(c);
	assert_int_equal(file(c, "{\"captures\": [\"/tmp/a\", \"/tmp/b,snaplen=96\"]}"), 0);
	assert_int_equal(c->ncaptures, 2);
	assert_int_equal(c->capture[1].snaplen, 96);
}

static void test_link(void **state)
{
	struct config *c = *state;
	const struct egress_param *l;

	assert_int_equal(run(c, "-d path=/a,rate=100M -d path=/b,rate=25g,queue=1M,kmin=64k,"
			     "kmax=100000,pmax=50 -d path=/c -p tap,ifname=t,rate=9600,queue=10000"),
			 CONFIG_RUN);
	l = &c->device[0].link;
	assert_int_equal(l->kbps, 100000);
	assert_int_equal(l->queue, EGRESS_QUEUE);
	assert_int_equal(l->kmin, EGRESS_KMIN);
	assert_int_equal(l->kmax, 20000);	/* EGRESS_KMAX_NS */
	assert_int_equal(l->pmax, EGRESS_PMAX);
	l = &c->device[1].link;
	assert_int_equal(l->kbps, 25000000);
	assert_int_equal(l->queue, 1 << 20);
	assert_int_equal(l->kmin, 65536);
	assert_int_equal(l->kmax, 100000);
	assert_int_equal(l->pmax, 50);
	assert_int_equal(c->device[2].link.kbps, 0);
	assert_int_equal(c->port[0].link.kbps, 9);
	assert_int_equal(c->port[0].link.queue, 10000);
	config_free(c);
	assert_int_equal(file(c, "{\"devices\": [{\"path\": \"/a\", \"rate\": \"1G\", "
			      "\"queue\": \"20000\", \"kmin\": \"2\", \"kmax\": \"3\", "
			      "\"pmax\": \"1\"}]}"), 0);
	assert_int_equal(c->device[0].link.kbps, 1000000);
	assert_int_equal(c->device[0].link.queue, 20000);
	assert_int_equal(c->device[0].link.kmin, 2);
	assert_int_equal(c->device[0].link.kmax, 3);
	assert_int_equal(c->device[0].link.pmax, 1);
	/* a zero that is given is no default */
	config_free(c);
	assert_int_equal(run(c, "-d path=/a,rate=1G,pmax=0 -d path=/b,rate=1G,kmin=0,kmax=0 "
			     "-p tap,ifname=t,rate=1G,kmin=0"), CONFIG_RUN);
	l = &c->device[0].link;
	assert_int_equal(l->pmax, 0);
	assert_int_equal(l->kmin, 5000);	/* EGRESS_KMIN_NS */
	l = &c->device[1].link;
	assert_int_equal(l->kmin, 0);
	assert_int_equal(l->kmax, 0);
	assert_int_equal(l->pmax, EGRESS_PMAX);
	l = &c->port[0].link;
	assert_int_equal(l->kmin, 0);
	assert_int_equal(l->kmax, 200000);	/* EGRESS_KMAX_NS */
	config_free(c);
	assert_int_equal(run(c, "-d path=/a,rate=1G,queue=0"), CONFIG_BAD);
	config_free(c);
	assert_int_equal(run(c, "-d path=/a,rate=1G,kmax=0"), CONFIG_BAD);	/* below kmin */
}

static void test_cc(void **state)
{
	struct config *c = *state;

	assert_int_equal(run(c, "-d path=/a"), CONFIG_RUN);
	assert_true(c->cc.on);
	config_free(c);
	assert_int_equal(run(c, "-d path=/a --cc off,rp_ai_rate=40 --cc np_cnp_dscp=26"),
			 CONFIG_RUN);
	assert_false(c->cc.on);
	assert_int_equal(c->cc.v[CC_rp_ai_rate], 40);
	assert_int_equal(c->cc.v[CC_np_cnp_dscp], 26);
	assert_int_equal(c->cc.v[CC_rp_hai_rate], cc_ranges[CC_rp_hai_rate].value);
	config_free(c);
	assert_int_equal(file(c, "{\"cc\": \"off,rp_max_rate=1000\"}"), 0);
	assert_false(c->cc.on);
	assert_int_equal(c->cc.v[CC_rp_max_rate], 1000);
	for (int i = 0; i < CC_PARAM_COUNT; i++) {
		char text[64];

		snprintf(text, sizeof(text), "on,%s=%u", cc_ranges[i].name, cc_ranges[i].most);
		assert_int_equal(config_cc(&c->cc, text), 0);
		assert_int_equal(c->cc.v[i], cc_ranges[i].most);
	}
	assert_true(c->cc.on);
}

static void test_control(void **state)
{
	struct config *c = *state;

	assert_int_equal(run(c, "-d path=/a"), CONFIG_RUN);
	assert_null(c->control.path);
	assert_int_equal(run(c, "-d path=/b --control /c -C /d"), CONFIG_RUN);
	assert_string_equal(c->control.path, "/d");
	config_free(c);
	assert_int_equal(file(c, "{\"control\": \"/c\"}"), 0);
	assert_string_equal(c->control.path, "/c");
}

static void expect_access(const struct unix_access *a, int uid, int gid, int mode)
{
	assert_int_equal(a->has_uid ? (int)a->uid : -1, uid);
	assert_int_equal(a->has_gid ? (int)a->gid : -1, gid);
	assert_int_equal(a->has_mode ? (int)a->mode : -1, mode);
}

/* Who may connect: names and numbers, of each socket and of all. */
static void test_access(void **state)
{
	struct config *c = *state;

	assert_int_equal(run(c, "-d path=/a"), CONFIG_RUN);
	expect_access(&c->access, -1, -1, -1);
	expect_access(&c->control.access, -1, -1, -1);
	expect_access(&c->device[0].access, -1, -1, -1);
	config_free(c);
	assert_int_equal(run(c, "-d path=/a,owner=u -d path=/b,group=g,mode=0 -d path=/c,owner=0,"
			     "group=4294967294,mode=0777 -p stream,path=/s,owner=u,mode=60 "
			     "-p dgram,local=/l,remote=/r,group=g -p stream,path=/t,server=off"),
			 CONFIG_RUN);
	expect_access(&c->device[0].access, 7, -1, -1);
	expect_access(&c->device[1].access, -1, 8, 0);
	expect_access(&c->device[2].access, 0, -2, 0777);
	expect_access(&c->port[0].access, 7, -1, 060);
	expect_access(&c->port[1].access, -1, 8, -1);
	expect_access(&c->port[2].access, -1, -1, -1);
	config_free(c);
	assert_int_equal(run(c, "-d path=/a --socket-owner 1 --socket-group 2 --socket-mode 3 "
			     "--control-owner 4 --control-group 5 --control-mode 6"), CONFIG_RUN);
	expect_access(&c->device[0].access, -1, -1, -1);
	expect_access(&c->access, 1, 2, 3);
	expect_access(&c->control.access, 4, 5, 6);
	config_free(c);
	assert_int_equal(file(c, "{\"socket_owner\": \"1\", \"socket_group\": \"g\", "
			      "\"socket_mode\": \"3\", \"control_owner\": \"u\", "
			      "\"control_group\": \"5\", \"control_mode\": \"0666\", "
			      "\"devices\": [{\"path\": \"/a\", \"owner\": \"u\", "
			      "\"group\": \"9\", \"mode\": \"0660\"}]}"), 0);
	expect_access(&c->access, 1, 8, 3);
	expect_access(&c->control.access, 7, 5, 0666);
	expect_access(&c->device[0].access, 7, 9, 0660);
}

/* A wrong value fails at once and says which one; @error is what looking for a name says. */
static void test_bad_access(void **state)
{
	static const struct {
		const char *line;
		int error;
		const char *why;
	} bad[] = {
		{ "-d path=/a,owner=x", -1, "/a: there is no user \"x\"" },
		{ "-d path=/a,group=x", ENOENT, "/a: there is no group \"x\"" },
		{ "--socket-owner x", ESRCH, "sockets: there is no user \"x\"" },
		{ "--socket-group 5x", EBADF, "sockets: there is no group \"5x\"" },
		{ "--control-owner -1", EPERM, "control socket: there is no user \"-1\"" },
		{ "--control-group x", EMFILE,
		  "control socket: cannot look for group \"x\": Too many open files" },
		{ "--control-group x", EIO,
		  "control socket: cannot look for group \"x\": Input/output error" },
		{ "--control-group=", 0, "control socket: a group must not be empty" },
		{ "--socket-owner=", 0, "sockets: a user must not be empty" },
		{ "--socket-owner 4294967295", 0,
		  "sockets: user 4294967295 is not a number below 4294967295" },
		{ "-d path=/a,group=18446744073709551617", 0,
		  "/a: group 18446744073709551617 is not a number below 4294967295" },
		{ "--control-mode 778", 0,
		  "control socket: mode \"778\" is not an octal number from 0 to 0777" },
		{ "-d path=/a,mode=1000", 0,
		  "/a: mode \"1000\" is not an octal number from 0 to 0777" },
		{ "-p dgram,local=/l,remote=/r,mode=8", 0, "dgram,local=/l,remote=/r,mode=8: "
		  "mode \"8\" is not an octal number from 0 to 0777" },
		{ "-p stream,path=/s,server=off,group=g", 0,
		  "\"stream,path=/s,server=off,group=g\": group= is for the socket of server=on" },
	};
	static const char *const files[] = {
		"{\"socket_owner\": \"x\"}", "{\"socket_group\": \"x\"}",
		"{\"socket_mode\": \"x\"}", "{\"control_owner\": \"x\"}",
		"{\"control_group\": \"x\"}", "{\"control_mode\": \"x\"}",
		"{\"socket_owner\": 1}", "{\"socket_group\": 1}", "{\"socket_mode\": 1}",
		"{\"control_owner\": 1}", "{\"control_group\": 1}", "{\"control_mode\": 1}",
		"{\"devices\": [{\"path\": \"/a\", \"owner\": \"x\"}]}",
		"{\"devices\": [{\"path\": \"/a\", \"group\": 5}]}",
		"{\"devices\": [{\"path\": \"/a\", \"mode\": \"x\"}]}",
	};
	struct config *c = *state;
	char said[300], line[200];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "-d path=/first %s", bad[i].line);
		name_error = bad[i].error;
		errno = EIO;		/* an earlier one means nothing */
		log_keep(said, sizeof(said));
		assert_int_equal(run(c, line), CONFIG_BAD);
		log_keep(NULL, 0);
		assert_string_equal(said, bad[i].why);
		config_free(c);
	}
	name_error = -1;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_int_equal(file(c, files[i]), -EINVAL);
		config_free(c);
	}
	log_keep(said, sizeof(said));
	assert_int_equal(file(c, "{\"socket_owner\": \"x\"}"), -EINVAL);
	log_keep(NULL, 0);
	snprintf(line, sizeof(line), "%s: sockets: there is no user \"x\"", last_file);
	assert_string_equal(said, line);
}

/* A running daemon cannot wait for a name service. */
static void test_numeric(void **state)
{
	struct uplink_spec s;
	char said[300];

	(void)state;
	assert_int_equal(config_port_parse(&s, "stream,path=/s,owner=5,group=6,mode=7", true), 0);
	expect_access(&s.access, 5, 6, 7);
	config_port_free(&s);
	log_keep(said, sizeof(said));
	assert_int_equal(config_port_parse(&s, "stream,path=/s,owner=u", true), -EINVAL);
	assert_string_equal(said, "stream,path=/s,owner=u: user \"u\" is not a number; while the daemon runs, use the number that \"getent passwd u\" shows");
	log_keep(said, sizeof(said));
	assert_int_equal(config_port_parse(&s, "stream,path=/s,group=g", true), -EINVAL);
	assert_string_equal(said, "stream,path=/s,group=g: group \"g\" is not a number; while the daemon runs, use the number that \"getent group g\" shows");
	log_keep(NULL, 0);
}

static void test_faults(void **state)
{
	struct config *c = *state;

	assert_int_equal(run(c, "-d path=/a -f one --faults two"), CONFIG_RUN);
	assert_int_equal(c->nfaults, 2);
	assert_string_equal(c->fault[1].text, "two");
	assert_true(c->fault[1].file);
	config_free(c);
	assert_int_equal(file(c, "{\"faults\": [\"drop p=1%\", \"ecn\"]}"), 0);
	assert_int_equal(c->nfaults, 2);
	assert_string_equal(c->fault[0].text, "drop p=1%");
	assert_false(c->fault[0].file);
}

static void test_derived_mac(void **state)
{
	static const uint8_t mac[6] = { 0x02, 0xd5, 0x6d, 0x8f, 0xb3, 0x9c };
	struct config *c = *state;

	assert_int_equal(run(c, "-d path=/a/1 -d path=/a/2"), CONFIG_RUN);
	assert_int_equal(c->device[1].mac[0], 2);
	assert_memory_not_equal(c->device[0].mac, c->device[1].mac, 6);
	/* It is the same in all versions, because guests name interfaces after it. */
	assert_memory_equal(c->device[0].mac, mac, 6);
	config_free(c);
	assert_int_equal(run(c, "-d path=/a/1,mac=00:00:00:00:00:01"), CONFIG_RUN);
	assert_memory_equal(c->device[0].mac, "\0\0\0\0\0\1", 6);
}

static void test_defaults(void **state)
{
	struct config *c = *state;

	assert_int_equal(run(c, "-d path=/d/.sock -d path=/d/a.sock -d path=b.sock "
			     "-p tap,ifname=t"),
			 CONFIG_RUN);
	assert_string_equal(c->device[0].name, ".sock");
	assert_string_equal(c->device[1].name, "a");
	assert_string_equal(c->device[2].name, "b");
	for (int i = 0; i < 3; i++) {
		assert_false(c->device[i].anti_spoof);
		assert_true(c->device[i].promisc);
		assert_false(c->device[i].nvdimm);
		assert_int_equal(c->device[i].memory, 0);
		assert_int_equal(c->device[i].memory_files, 0);
	}
	assert_int_equal(c->device[0].vlan | c->port[0].vlan, 0);
	assert_false(c->port[0].rxe_flush);
	assert_int_equal(c->port[0].link.kbps, 0);
	assert_int_equal(c->spin_us, 5);
	assert_int_equal(c->log_level, LOG_INFO);
	assert_int_equal(c->log_format, LOG_TEXT);
	assert_false(c->log_time);
	assert_int_equal(c->ready_fd, -1);
	assert_null(c->control.path);
}

/* --version and --help print to standard output and end; later words are not looked at. */
static void test_printed(void **state)
{
	static const struct {
		const char *line;
		const char *first;
	} asks[] = {
		{ "-V", "ornicd " ORNICD_VERSION "\n" },
		{ "--version --nonsense", "ornicd " ORNICD_VERSION "\n" },
		{ "-h", "Usage: ornicd --device path=SOCKET[,KEY=VALUE]... [OPTION]...\n" },
		{ "--help --nonsense",
		  "Usage: ornicd --device path=SOCKET[,KEY=VALUE]... [OPTION]...\n" },
	};

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		enum config_result result;
		struct printed printed;
		char text[8192];

		print_begin(&printed, STDOUT_FILENO);
		result = run(*state, asks[i].line);
		print_end(&printed, text, sizeof(text));
		assert_int_equal(result, CONFIG_DONE);
		strchr(text, '\n')[1] = '\0';
		assert_string_equal(text, asks[i].first);
	}
}

/* The largest and the smallest value of each number, and each word of a list */
static void test_limits(void **state)
{
	static const struct {
		const char *line;
		size_t offset;
		uint32_t want;
	} good[] = {
		{ "-s 0", offsetof(struct config, spin_us), 0 },
		{ "-s 1000000", offsetof(struct config, spin_us), 1000000 },
		{ "--log-level error", offsetof(struct config, log_level), LOG_ERR },
		{ "-l warning", offsetof(struct config, log_level), LOG_WARN },
		{ "-l info", offsetof(struct config, log_level), LOG_INFO },
		{ "--log-format json", offsetof(struct config, log_format), LOG_JSON },
		{ "--log-format text", offsetof(struct config, log_format), LOG_TEXT },
		{ "--control-mode 0", offsetof(struct config, control.access.mode), 0 },
		{ "--control-mode 0777", offsetof(struct config, control.access.mode), 0777 },
	};
	struct config *c = *state;
	char line[64];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint32_t is;

		snprintf(line, sizeof(line), "-d path=/a %s", good[i].line);
		errno = ERANGE;		/* an earlier one means nothing */
		assert_int_equal(run(c, line), CONFIG_RUN);
		memcpy(&is, (uint8_t *)c + good[i].offset, sizeof(is));
		assert_int_equal(is, good[i].want);
		config_free(c);
	}
	errno = ERANGE;
	assert_int_equal(run(c, "-d path=/a,vlan=1,rate=400G,queue=16M,kmin=1,kmax=1,pmax=100 "
			     "-d path=/b,vlan=4094,rate=8k,queue=10000 --cc np_cnp_dscp=63"),
			 CONFIG_RUN);
	assert_int_equal(c->device[0].vlan, 1);
	assert_int_equal(c->device[0].link.kbps, 400000000);
	assert_int_equal(c->device[0].link.queue, 16 << 20);
	assert_int_equal(c->device[0].link.kmin, 1);
	assert_int_equal(c->device[0].link.kmax, 1);
	assert_int_equal(c->device[0].link.pmax, 100);
	assert_int_equal(c->device[1].vlan, 4094);
	assert_int_equal(c->device[1].link.kbps, 8);
	assert_int_equal(c->device[1].link.queue, 10000);
	assert_int_equal(c->cc.v[CC_np_cnp_dscp], 63);
	errno = ERANGE;
	assert_int_equal(config_device(c, "path=/c,rate=8k"), 0);
	errno = ERANGE;
	assert_int_equal(config_cc(&c->cc, "np_cnp_dscp=62"), 0);
	assert_int_equal(c->cc.v[CC_np_cnp_dscp], 62);
}

/* The longest paths and names, and those that are longer by one */
static void test_lengths(void **state)
{
	static const struct {
		const char *form;
		int most;
		const char *why;
	} texts[] = {
		{ "-d path=/a -d path=%s", 107,
		  "device path %.40s... is longer than 107 characters" },
		{ "-d path=/a -C %s", 107, "control socket %s is longer than 107 characters" },
		{ "-d path=/a -d path=/b,name=%s", 111,
		  "the name %.40s... is longer than 111 characters: add name= to it" },
		{ "-d path=/a -p tap,ifname=t,name=%s", 111,
		  "the name %.40s... is longer than 111 characters: add name= to it" },
	};
	char text[128], line[256], said[256], why[256];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		memset(text, 'x', sizeof(text));
		text[texts[i].most] = '\0';
		snprintf(line, sizeof(line), texts[i].form, text);
		assert_int_equal(run(*state, line), CONFIG_RUN);
		config_free(*state);
		text[texts[i].most] = 'x';
		text[texts[i].most + 1] = '\0';
		snprintf(line, sizeof(line), texts[i].form, text);
		log_keep(said, sizeof(said));
		assert_int_equal(run(*state, line), CONFIG_BAD);
		log_keep(NULL, 0);
		snprintf(why, sizeof(why), texts[i].why, text);
		assert_string_equal(said, why);
		config_free(*state);
	}
}

/* Every kind of port takes the keys that all have. */
static void test_port_keys(void **state)
{
	static const char *const ports[] = {
		"tap,ifname=t", "packet,ifname=t", "stream,path=/p", "dgram,local=/p,remote=/q",
		"udp,local=h:1,remote=g:2",
	};
	struct config *c = *state;
	char line[256];

	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		const struct uplink_spec *s;

		snprintf(line, sizeof(line), "-d path=/a -p %s,name=n,vlan=7,rxe-flush=on,rate=1G,"
			 "queue=20000,kmin=2,kmax=3,pmax=4", ports[i]);
		assert_int_equal(run(c, line), CONFIG_RUN);
		s = &c->port[0];
		assert_string_equal(s->name, "n");
		assert_string_equal(s->text, strstr(line, ports[i]));
		assert_memory_equal(s->kind, ports[i], strlen(s->kind));
		assert_int_equal(s->vlan, 7);
		assert_true(s->rxe_flush);
		assert_false(s->client);
		assert_int_equal(s->link.kbps, 1000000);
		assert_int_equal(s->link.queue, 20000);
		assert_int_equal(s->link.kmin, 2);
		assert_int_equal(s->link.kmax, 3);
		assert_int_equal(s->link.pmax, 4);
		config_free(c);
	}
	/* server= is for streams. */
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		snprintf(line, sizeof(line), "-d path=/a -p %s,server=on", ports[i]);
		assert_int_equal(run(c, line), i == 2 ? CONFIG_RUN : CONFIG_BAD);
		config_free(c);
	}
}

static void test_bad(void **state)
{
	static const char *const lines[] = {
		"-d",
		"-d path",
		"-d path=",
		"-d mac=02:00:00:00:00:01",
		"-d path=/a,path=/b",
		"-d path=/a,color=red",
		"-d path=/a,name=",
		"-d path=/a,mac=",
		"-d path=/a,mac=02:00:00:00:00",
		"-d path=/a,mac=02:00:00:00:00:",
		"-d path=/a,mac=02:00:00:00:00:01:02",
		"-d path=/a,mac=02:00:00:00:00:0g",
		"-d path=/a,mac=02:00:00:00:00:g0",
		"-d path=/a,mac=2:0:0:0:0:1",
		"-d path=/a,mac=03:00:00:00:00:01",
		"-d path=/a,mac=00:00:00:00:00:00",
		"-d path=/a,anti-spoof",
		"-d path=/a,anti-spoof=yes",
		"-d path=/a,promisc=",
		"-d path=/a,promisc=on,promisc=off",
		"-d path=/a -d path=/a",
		"-d path=/a/x -d path=/b/x",
		"-d path=/a,mac=02:00:00:00:00:01 -d path=/b,mac=02:00:00:00:00:01",
		"-d path=/a -s",
		"-d path=/a -s x",
		"-d path=/a -s 1000001",
		"-d path=/a -s -1",
		"-d path=/a -l loud",
		"-d path=/a -r -1",
		"-d path=/a --nonsense",
		"-d path=/a rest",
		"-d path=/a -p",
		"-d path=/a -p pigeon",
		"-d path=/a -p tap",
		"-d path=/a -p tap,ifname=",
		"-d path=/a -p tap,ifname",
		"-d path=/a -p tap,ifname=t,path=/b",
		"-d path=/a -p tap,ifname=t,ifname=u",
		"-d path=/a -p tap,ifname=t,colour=red",
		"-d path=/a -p tap,ifname=t -p packet,ifname=t",
		"-d path=/a -p stream,path=/b,server=maybe",
		"-d path=/a -p stream,path=/b,rxe-flush=2",
		"-d path=/a -p stream,path=/b,vlan=0",
		"-d path=/a -p stream,path=/b,vlan=4095",
		"-d path=/a,vlan=x",
		"-d path=/a,vlan=4294967306",
		"-d path=/a -p dgram,local=/b",
		"-d path=/a -p udp,remote=h:1",
		"-d path=/a,rate=",
		"-d path=/a,rate=fast",
		"-d path=/a,rate=-1M",
		"-d path=/a,rate=1M1",
		"-d path=/a,rate=1T",
		"-d path=/a,rate=7999",
		"-d path=/a,rate=401G",
		"-d path=/a,rate=99999999999G",
		"-d path=/a,rate=18446744073709551616",
		"-d path=/a,queue=64K",
		"-d path=/a,rate=1M,queue=9999",
		"-d path=/a,rate=1M,queue=17M",
		"-d path=/a,rate=1M,queue=4G",
		"-d path=/a,rate=1M,kmin=2000,kmax=1000",
		"-d path=/a,rate=1M,pmax=101",
		"-d path=/a,rate=1M,rate=2M",
		"-d path=/a -p tap,ifname=t,rate=x",
		"-d path=/a -p tap,ifname=t,pmax=5",
		"-d path=/a --cc",
		"-d path=/a --cc maybe",
		"-d path=/a --cc on,",
		"-d path=/a --cc rp_ai_rate",
		"-d path=/a --cc rp_ai_rate=",
		"-d path=/a --cc rp_ai_rate=x",
		"-d path=/a --cc rp_ai_rate=5M",
		"-d path=/a --cc rp_ai_rate=-1",
		"-d path=/a --cc rp_ai_rate=0",
		"-d path=/a --cc np_cnp_dscp=64",
		"-d path=/a --cc rp_speed=1",
		"-d path=/a/x,name=x -p tap,ifname=x",
		"-p tap,ifname=x -d path=/a/x",
		"-p tap,ifname=\x01",
		"-d path=/a -C",
		"-d path=/a --control=",
		"-d path=/a --control-group=",
		"-d path=/a --control-mode=",
		"-d path=/a --control-mode 1000",
		"-d path=/a --control-mode 00600",
		"-d path=/a --control-mode 680",
		"-d path=/a --control-mode -1",
		"-d path=/a --control-mode rw",
		"-d path=/a -C /cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
		"cccccccccccccccccccccccccccccccccccc",
		"-c /nonexistent",
		"-d path=/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	struct config *c = *state;
	char line[512];

	assert_int_equal(run(c, ""), CONFIG_BAD);
	for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(line, sizeof(line), "-d path=/first %s", lines[i]);
		assert_int_equal(run(c, line), CONFIG_BAD);
		config_free(c);
	}
}

/* The line for a word that getopt_long() does not accept names the word, and is the only line. */
static void test_bad_words(void **state)
{
	static const struct {
		const char *line;
		const char *why;
	} bad[] = {
		{ "-x", "unknown option -x; see ornicd --help" },
		{ "-xV", "unknown option -x; see ornicd --help" },
		{ "--xV", "unknown option --xV; see ornicd --help" },
		{ "--version=1", "unknown option --version=1; see ornicd --help" },
		{ "-s", "option -s needs a value; see ornicd --help" },
		{ "-s 1 --cc", "option --cc needs a value; see ornicd --help" },
	};
	char said[200], want[200];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		enum config_result result;
		struct printed printed;

		print_begin(&printed, STDERR_FILENO);
		result = run(*state, bad[i].line);
		print_end(&printed, said, sizeof(said));
		assert_int_equal(result, CONFIG_BAD);
		snprintf(want, sizeof(want), "ornicd: error: %s\n", bad[i].why);
		assert_string_equal(said, want);
	}
}

#define IP11	",ip=::1,ip=::2,ip=::3,ip=::4,ip=::5,ip=::6,ip=::7,ip=::8,ip=::9,ip=::a,ip=::b"
#define ACCESS	"[,owner=USER][,group=GROUP][,mode=MODE]"
#define DEVICE	"path=SOCKET[,mac=MAC][,name=NAME][,anti-spoof=on|off][,ip=ADDRESS]...[,KEY=...]"
#define PORT	"[,name=NAME][,vlan=ID][,rxe-flush=on|off][,rate=RATE...]"

/* An error line names the cause; of several devices or ports, the right one. */
static void test_messages(void **state)
{
	static const struct {
		const char *line;
		const char *why;
	} bad[] = {
		{ "-d path=/a rest more", "unexpected argument \"rest\"; see ornicd --help" },
		{ "-d path=/a,mac=01:00:00:00:00:01",
		  "device /a: mac 01:00:00:00:00:01 is a multicast address; use a unicast "
		  "address" },
		{ "-d path=/a,mac=00:00:00:00:00:00",
		  "device /a: mac 00:00:00:00:00:00 is zero; use a unicast address" },
		{ "-d path=/a,anti-spoof=on,mac=00:00:00:00:00:00",
		  "device /a: mac 00:00:00:00:00:00 is zero; use a unicast address" },
		{ "-d path=/a,mac=02:00:00:00:00:0",
		  "device /a: mac 02:00:00:00:00:0 is not an address such as 02:00:00:00:00:01" },
		{ "-d path=/first,name=x", "path /first is given to two devices" },
		{ "-d path=/a,name=first",
		  "devices /first and /a have the same name, first: add name= to one" },
		{ "-p tap,ifname=first", "port \"tap,ifname=first\": another port or device has the "
		  "name first: add name= to one" },
		{ "-d path=/z,name=n -d path=/a,name=x -d path=/a,name=y",
		  "path /a is given to two devices" },
		{ "-d path=/z,name=n -d path=/a/x -d path=/b/x",
		  "devices /a/x and /b/x have the same name, x: add name= to one" },
		{ "-d path=/z,name=n -d path=/a,mac=02:13:24:0a:bc:0f "
		  "-d path=/b,mac=02:13:24:0a:bc:0f",
		  "devices /a and /b have the same mac, 02:13:24:0a:bc:0f: change one" },
		{ "-p tap,ifname=y -p tap,ifname=x -d path=/a/x",
		  "device /a/x has the name of a port, x: add name= to one" },
		{ "-d path=/a/y -d path=/a/x -p tap,ifname=x",
		  "port \"tap,ifname=x\": another port or device has the name x: add name= to "
		  "one" },
		{ "-d path=/a/x -d path=/a/y -p tap,ifname=x",
		  "port \"tap,ifname=x\": another port or device has the name x: add name= to "
		  "one" },
		{ "-p tap,ifname=x -p tap,ifname=y -p packet,ifname=x",
		  "port \"packet,ifname=x\": another port or device has the name x: add name= to "
		  "one" },
		{ "-p tap,ifname=y -p tap,ifname=x -p packet,ifname=x",
		  "port \"packet,ifname=x\": another port or device has the name x: add name= to "
		  "one" },
		{ "-d path=/a\x7f,name=x", "a device's path has a control character in it" },
		{ "-d path=/a,name=\x7f", "a name has a control character in it" },
		{ "-d path=/a -p tap,ifname=\x7f",
		  "a port's description has a control character in it" },
		{ "-d path=/a,name=", "device \"path=/a,name=\": name= has no value; the form is "
		  DEVICE },
		{ "-d name=x", "device \"name=x\": path= is missing; the form is " DEVICE },
		{ "-d path=/a,x=1", "device \"path=/a,x=1\": unknown key \"x=1\"; the form is "
		  DEVICE },
		{ "-d path=/a,name=x,name=y",
		  "device \"path=/a,name=x,name=y\": name is given twice" },
		{ "-d path=/a,promisc=maybe",
		  "\"path=/a,promisc=maybe\": promisc must be on or off" },
		{ "-d path=/a,ip=10.0.0.1/24",
		  "device /a: ip=10.0.0.1/24 is neither an address (leave out the length) nor a "
		  "network (end it with zero bits)" },
		{ "-d path=/a,ip=::1,ip=x", "device /a: ip=x is not an IP address or prefix such as "
		  "192.0.2.1 or 2001:db8::/64" },
		{ "-d path=/a,ip=::1,anti-spoof=off",
		  "device /a: ip= has no effect with anti-spoof=off; remove one of them" },
		{ "-d path=/a,ip=::1,ip=::2,mac=02:00:00:00:00:01,mac=02:00:00:00:00:01",
		  "device \"path=/a,ip=::1,ip=::2,mac=02:00:00:00:00:01,mac=02:00:00:00:00:01\": "
		  "mac is given twice" },
		{ "-d path=/a" IP11 IP11 IP11, "device \"path=/a" IP11 IP11 IP11 "\": ip is given "
		  "too often" },
		{ "--untrusted",
		  "device /first: with --untrusted list the IP addresses that its guest may use, "
		  "each as ip=ADDRESS, or only ip=link-local; or trust it with anti-spoof=off" },
		{ "-d path=/a,anti-spoof=1",
		  "\"path=/a,anti-spoof=1\": anti-spoof must be on or off" },
		{ "-p udp,ifname=t", "port \"udp,ifname=t\": unknown key \"ifname\"; the form is "
		  "udp,local=HOST:PORT,remote=HOST:PORT" PORT },
		{ "-p dgram,local=/a", "port \"dgram,local=/a\": remote= is missing; the form is "
		  "dgram,local=SOCKET,remote=SOCKET" ACCESS PORT },
		{ "-p dgram,remote=/a", "port \"dgram,remote=/a\": local= is missing; the form is "
		  "dgram,local=SOCKET,remote=SOCKET" ACCESS PORT },
		{ "-p udp,local=/a", "port \"udp,local=/a\": remote= is missing; the form is "
		  "udp,local=HOST:PORT,remote=HOST:PORT" PORT },
		{ "-p udp,remote=/a", "port \"udp,remote=/a\": local= is missing; the form is "
		  "udp,local=HOST:PORT,remote=HOST:PORT" PORT },
		{ "-p tap", "port \"tap\": ifname= is missing; the form is tap,ifname=NAME" PORT },
		{ "-p packet", "port \"packet\": ifname= is missing; the form is "
		  "packet,ifname=NAME" PORT },
		{ "-p stream", "port \"stream\": path= is missing; the form is "
		  "stream,path=SOCKET[,server=on|off]" ACCESS PORT },
		{ "-p bridge", "port \"bridge\": \"bridge\" is not one of tap, packet, stream, "
		  "dgram, udp" },
		{ "-d path=/a,memory=4095", "\"/a\": memory=4095 is not a number of bytes from 4K "
		  "to 64T" },
		{ "-d path=/a,memory=70368744177665", "\"/a\": memory=70368744177665 is not a number "
		  "of bytes from 4K to 64T" },
		{ "-d path=/a,memory=1P", "\"/a\": memory=1P is not a number of bytes from 4K to "
		  "64T" },
		{ "-d path=/a,memory-files=0", "\"path=/a,memory-files=0\": the number of memory "
		  "files must be from 1 to 65535" },
		{ "-d path=/a,memory-files=65536", "\"path=/a,memory-files=65536\": the number of "
		  "memory files must be from 1 to 65535" },
		{ "-d path=/a,memory-files=4294967297", "\"path=/a,memory-files=4294967297\": the "
		  "number of memory files must be from 1 to 65535" },
		{ "-d path=/a,memory-files=7x", "\"path=/a,memory-files=7x\": the number of memory "
		  "files must be from 1 to 65535" },
		{ "-d path=/a,nvdimm=yes", "\"path=/a,nvdimm=yes\": nvdimm must be on or off" },
		{ "-d path=/a,vlan=4095",
		  "\"path=/a,vlan=4095\": vlan=4095 is not a number from 1 to 4094" },
		{ "-s 5x", "spin time \"5x\" is not a number from 0 to 1000000" },
		{ "-s 99999999999999999999",
		  "spin time \"99999999999999999999\" is not a number from 0 to 1000000" },
		{ "-r x", "ready descriptor \"x\" is not a number" },
		{ "-r 1048577", "ready descriptor \"1048577\" is not a number" },
		{ "-r 1048576", "ready descriptor 1048576 is not open: the program that starts the "
		  "daemon must open it" },
		{ "--control=", "the control socket's path must not be empty" },
		{ "-d path=/a,pmax=5", "\"/a\": pmax= needs rate=, which is missing" },
		{ "-d path=/a,rate=4294967295K", "\"/a\": rate must be from 8K to 400G bit/s" },
		{ "-d path=/a,rate=4294967296K",
		  "\"/a\": rate=4294967296K is not a rate in bit/s such as 100M" },
		{ "-d path=/a,rate=1G,queue=4294967295",
		  "\"/a\": queue must be from 10000 to 16M bytes" },
		{ "-d path=/a,rate=1G,queue=4294967296",
		  "\"/a\": queue=4294967296 is not a number such as 65536 or 64K" },
		{ "-d path=/a,rate=1G,kmin=x",
		  "\"/a\": kmin=x is not a number such as 65536 or 64K" },
		/* the values before are good */
		{ "-d path=/a,rate=1G,kmin=5,kmax=x",
		  "\"/a\": kmax=x is not a number such as 65536 or 64K" },
		{ "-d path=/a,rate=1G,kmin=5,kmax=99999999999999999999",
		  "\"/a\": kmax=99999999999999999999 is not a number such as 65536 or 64K" },
		{ "-d path=/a,rate=1G,kmin=5,kmax=5x",
		  "\"/a\": kmax=5x is not a number such as 65536 or 64K" },
		{ "-d path=/a,rate=1G,kmin=5,kmax=99999999999G",
		  "\"/a\": kmax=99999999999G is not a number such as 65536 or 64K" },
		{ "-d path=/a,rate=1Gb", "\"/a\": rate=1Gb is not a rate in bit/s such as 100M" },
		{ "--cc on,off,rp_ai_rate=0",
		  "congestion control \"on,off,rp_ai_rate=0\": rp_ai_rate must be a "
		  "number from 1 to 100000" },
		{ "--cc rp_ai_rate=7,rp_hai_rate=x",
		  "congestion control \"rp_ai_rate=7,rp_hai_rate=x\": "
		  "rp_hai_rate must be a number from 1 to 100000" },
		{ "--cc np_cnp_dscp=5x",
		  "congestion control \"np_cnp_dscp=5x\": np_cnp_dscp must be a "
		  "number from 0 to 63" },
		{ "--cc np_cnp_dscp=99999999999999999999",
		  "congestion control \"np_cnp_dscp=99999999999999999999\": np_cnp_dscp must be a "
		  "number from 0 to 63" },
		{ "--cc sometimes",
		  "congestion control \"sometimes\": \"sometimes\" is not on, off or one of "
		  "np_min_time_between_cnps, np_cnp_dscp, rp_time_reset, rp_byte_reset, "
		  "rp_threshold, rp_ai_rate, rp_hai_rate, rp_max_rate, rp_min_rate, "
		  "rp_min_dec_fac, rp_rate_to_set_on_first_cnp, rp_dce_tcp_g, rp_dce_tcp_rtt, "
		  "rp_rate_reduce_monitor_period, rp_initial_alpha_value" },
		{ "--log-level loud",
		  "log level \"loud\" is not one of error, warning, info, debug" },
		{ "--log-format xml", "log format \"xml\" is not text or json" },
		{ "--log-time maybe", "\"maybe\": --log-time must be on or off" },
		{ "-c /nonexistent", "/nonexistent:0: unable to open /nonexistent: No such file or "
		  "directory" },
	};
	struct config *c = *state;
	char said[600], line[512];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* The device before it is valid, so that it is not missing. */
		snprintf(line, sizeof(line), "-d path=/first %s", bad[i].line);
		log_keep(said, sizeof(said));
		assert_int_equal(run(c, line), CONFIG_BAD);
		log_keep(NULL, 0);
		assert_string_equal(said, bad[i].why);
		config_free(c);
	}
	/* Of a list with an error, nothing is applied. */
	assert_int_equal(config_cc(&c->cc, "off,rp_ai_rate=7,rp_hai_rate=0"), -EINVAL);
	assert_true(c->cc.on);
	assert_int_equal(c->cc.v[CC_rp_ai_rate], cc_ranges[CC_rp_ai_rate].value);
}

#define TEXT11	"\"::1\", \"::2\", \"::3\", \"::4\", \"::5\", \"::6\", \"::7\", \"::8\", \"::9\", \"::a\", \"::b\""

static void test_file(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{\"spin\": 1}",
		"{\"spin_us\": \"1\"}",
		"{\"spin_us\": -1}",
		"{\"log_level\": \"loud\"}",
		"{\"log_format\": \"xml\"}",
		"{\"log_format\": true}",
		"{\"log_time\": \"on\"}",
		"{\"devices\": {}}",
		"{\"devices\": [ \"/a\" ]}",
		"{\"devices\": [ {} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"colour\": 1} ]}",
		"{\"devices\": [ {\"path\": 5} ]}",
		"{\"devices\": [ {\"path\": \"\"} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"name\": \"\"} ]}",
		"{\"devices\": [ {\"path\": \"x\", \"vlan\": 4095}, {\"path\": \"/a\"} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"mac\": \"x\"} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"anti_spoof\": \"on\"} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"promisc\": 1} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"promisc\": null} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"ip\": \"10.0.0.1\"} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"ip\": []} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"ip\": {}} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"ip\": [\"10.0.0.1\", 1]} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"ip\": [\"10.0.0.1/24\"]} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"ip\": [\"::1\"], \"anti_spoof\": false} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"ip\": [" TEXT11 ", " TEXT11 ", " TEXT11 "]} ]}",
		"{\"untrusted\": 1}",
		"{\"untrusted\": true, \"devices\": [ {\"path\": \"/a\"} ]}",
		"{\"devices\": [ {\"path\": \"/a\"} ], \"untrusted\": true}",
		"{\"devices\": [ {\"path\": \"/a\", \"vlan\": \"5\"} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"vlan\": -1} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"vlan\": 4095} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"vlan\": 4294967296} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"vlan\": 4294967306} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"memory\": 4096} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"memory\": \"1K\"} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"memory_files\": 0} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"memory_files\": -2} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"memory_files\": 65536} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"memory_files\": 4294967297} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"memory_files\": \"5\"} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"nvdimm\": \"on\"} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"rate\": 5} ]}",
		"{\"devices\": [ {\"path\": \"/a\", \"rate\": \"5\"} ]}",
		"{\"cc\": true}",
		"{\"cc\": \"often\"}",
		"{\"devices\": [], \"devices\": []}",
		"{\"faults\": \"drop\"}",
		"{\"faults\": [ 1 ]}",
		"{\"ports\": \"tap,ifname=t\"}",
		"{\"ports\": [ {} ]}",
		"{\"ports\": [ \"tap\" ]}",
		"{\"captures\": \"/tmp/a\"}",
		"{\"captures\": [ 1 ]}",
		"{\"captures\": [ \"/tmp/a,what=1\" ]}",
		"{\"control\": 1}",
		"{\"control\": \"\"}",
		"{\"control_mode\": 384}",
		"{\"control_mode\": \"9\"}",
		"{} x",
	};
	struct config *c = *state;
	char said[200];

	assert_int_equal(file(c, "{\"spin_us\": 3, \"log_level\": \"warning\", \"devices\": "
			      "[{\"path\": \"/a\"}, {\"path\": \"/b\", \"name\": \"n\"}]}"), 0);
	assert_int_equal(c->spin_us, 3);
	assert_int_equal(c->log_level, LOG_WARN);
	assert_int_equal(c->ndevices, 2);
	assert_string_equal(c->device[1].name, "n");
	assert_int_equal(c->device[0].vlan, 0);
	assert_true(c->device[0].promisc);
	assert_false(c->device[0].anti_spoof);
	config_free(c);
	assert_int_equal(file(c, "{\"devices\": [{\"path\": \"/a\", \"vlan\": 4094}, "
			      "{\"path\": \"/b\", \"vlan\": 0, \"memory\": \"2T\", "
			      "\"memory_files\": 65535, \"nvdimm\": true}]}"), 0);
	assert_true(c->device[1].memory == 2ull << 40);
	assert_int_equal(c->device[1].memory_files, 65535);
	assert_true(c->device[1].nvdimm);
	assert_false(c->device[0].nvdimm);
	assert_int_equal(c->device[0].memory_files, 0);
	assert_int_equal(c->device[0].vlan, 4094);
	assert_int_equal(c->device[1].vlan, 0);
	config_free(c);
	assert_int_equal(file(c, "{\"devices\": [{\"path\": \"/a\", \"ip\": [\"10.0.0.1\", "
			      "\"::/0\"]}, {\"path\": \"/b\", \"promisc\": true, \"ip\": "
			      "[\"link-local\"]}, {\"path\": \"/c\", \"anti_spoof\": false}], "
			      "\"untrusted\": true}"), 0);
	check_policy(&c->device[0], true, false);
	assert_int_equal(c->device[0].source.n, 2);
	check_ip(&c->device[0], 0, "10.0.0.1");
	check_ip(&c->device[0], 1, "::/0");
	check_policy(&c->device[1], true, true);
	assert_int_equal(c->device[1].source.n, 0);
	check_policy(&c->device[2], false, false);
	/* another file does not end it */
	assert_int_equal(file(c, "{\"untrusted\": false}"), 0);
	assert_true(c->untrusted);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		config_free(c);
		assert_int_equal(file(c, bad[i]), -EINVAL);
	}
	log_keep(said, sizeof(said));
	assert_int_equal(file(c, "{\n\"devices\": x}"), -EINVAL);
	log_keep(NULL, 0);
	assert_non_null(strstr(said, ":2: "));
	config_free(c);
	/* settings that a file does not have stay */
	c->spin_us = 9;
	c->log_level = LOG_DEBUG;
	c->log_format = LOG_JSON;
	c->log_time = true;
	c->cc.on = false;
	json_memory_failed();	/* for an earlier file */
	assert_int_equal(file(c, "{}"), 0);
	assert_int_equal(c->spin_us, 9);
	assert_int_equal(c->log_level, LOG_DEBUG);
	assert_int_equal(c->log_format, LOG_JSON);
	assert_true(c->log_time);
	assert_false(c->cc.on);
	config_free(c);
	assert_int_equal(config_file(c, "tools/ornicd/ornicd.conf.example"), 0);
	assert_int_equal(c->ndevices, 2);
	assert_false(c->device[0].anti_spoof);
	assert_true(c->device[0].promisc);
	assert_true(c->device[1].anti_spoof);
	assert_false(c->device[1].promisc);
}

/* The form of the log is set at once: later error lines have it. */
static void test_log_form(void **state)
{
	struct config *c = *state;
	struct printed printed;
	char said[600];

	print_begin(&printed, STDERR_FILENO);
	assert_int_equal(run(c, "--log-time on -s x"), CONFIG_BAD);
	assert_true(c->log_time);
	config_free(c);
	assert_int_equal(run(c, "--log-time on --log-time off -s y"), CONFIG_BAD);
	assert_false(c->log_time);
	config_free(c);
	assert_int_equal(file(c, "{\"log_time\": true, \"log_format\": \"json\", \"spin_us\": "
			      "-1}"), -EINVAL);
	assert_true(c->log_time);
	assert_int_equal(c->log_format, LOG_JSON);
	config_free(c);
	assert_int_equal(run(c, "--log-format json -s z"), CONFIG_BAD);
	print_end(&printed, said, sizeof(said));
	log_setup(LOG_INFO, false);
	log_set_format(LOG_TEXT);
	assert_non_null(strstr(said, "Z ornicd: error: spin time \"x\" is not"));
	assert_non_null(strstr(said, "\nornicd: error: spin time \"y\" is not"));
	assert_non_null(strstr(said, "\"message\":\"spin time \\\"-1\\\" is not"));
	assert_non_null(strstr(said, "\"message\":\"spin time \\\"z\\\" is not"));
}

/* An error line of a file names the file and the cause; %s: the file */
static void test_file_messages(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} bad[] = {
		{ "{\"devices\": {}}", "%s: \"devices\" is not an array" },
		{ "{\"ports\": {}}", "%s: \"ports\" is not an array" },
		{ "{\"captures\": {}}", "%s: \"captures\" is not an array" },
		{ "{\"faults\": {}}", "%s: \"faults\" is not an array" },
		{ "{\"ports\": [\"tap,ifname=t\", 1]}",
		  "%s: a port must be a string, as after --port" },
		{ "{\"captures\": [\"/tmp/a\", 1]}",
		  "%s: a capture must be a string, as after --capture" },
		{ "{\"faults\": [\"drop\", 1]}",
		  "%s: a fault must be a string, as a line of a --faults file" },
		{ "{\"captures\": [\"\"]}", "capture \"\": no file: the form is FILE[,key=value]..." },
		{ "{\"spin_us\": 1000001}",
		  "spin time \"1000001\" is not a number from 0 to 1000000" },
		{ "{\"spin_us\": -9223372036854775807}",
		  "spin time \"-9223372036854775807\" is not a number from 0 to 1000000" },
		{ "{\"log_level\": \"loud\"}",
		  "log level \"loud\" is not one of error, warning, info, debug" },
		{ "{\"devices\": [{\"path\": \"/a\", \"vlan\": 4095}]}",
		  "%s: \"vlan\": 4095 is not a number from 0 to 4094" },
		{ "{\"devices\": [{\"path\": \"/a\", \"vlan\": -1}]}",
		  "%s: \"vlan\": -1 is not a number from 0 to 4094" },
		{ "{\"devices\": [{\"path\": \"/a\", \"promisc\": 1}]}",
		  "%s: \"anti_spoof\" and \"promisc\" must be true or false" },
		{ "{\"devices\": [{\"path\": \"/a\", \"ip\": [" TEXT11 ", " TEXT11 ", " TEXT11 "]}]}",
		  "%s: \"ip\" must be an array of 1 to 32 strings" },
		{ "{\"devices\": [{\"path\": \"/a\", \"ip\": [7]}]}",
		  "%s: an \"ip\" must be a string such as \"192.0.2.1\"" },
		{ "{\"devices\": [{\"path\": \"\"}]}",
		  "a device needs a path, and its name must not be empty" },
		{ "{\"devices\": [{\"path\": \"/a\", \"kmax\": \"5\"}]}",
		  "\"/a\": kmax= needs rate=, which is missing" },
		{ "", "%s:1: '[' or '{' expected near end of file" },
	};
	struct config *c = *state;
	char said[600], why[600];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		log_keep(said, sizeof(said));
		assert_int_equal(file(c, bad[i].text), -EINVAL);
		log_keep(NULL, 0);
		snprintf(why, sizeof(why), bad[i].why, last_file);
		assert_string_equal(said, why);
		config_free(c);
	}
}

/* Characters of a name: any but control characters */
static void test_printable(void **state)
{
	struct config *c = *state;
	char spec[] = "path=/a,name=x";

	for (int byte = 1; byte < 256; byte++) {
		bool control = byte < ' ' || byte == 0x7f;

		if (byte == ',')
			continue;
		spec[sizeof(spec) - 2] = byte;
		assert_int_equal(config_device(c, spec), control ? -EINVAL : 0);
		config_free(c);
	}
}

static void test_order(void **state)
{
	struct config *c = *state;

	/* Later options of the command line override earlier ones. */
	assert_int_equal(run(c, "-s 9 -c tools/ornicd/ornicd.conf.example -d path=/z"),
			 CONFIG_RUN);
	assert_int_equal(c->ndevices, 3);
	assert_int_equal(c->spin_us, 5);
}

#define WITH(t)	cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_good), WITH(test_ports), WITH(test_captures), WITH(test_link),
		WITH(test_cc), WITH(test_control), WITH(test_access), WITH(test_bad_access),
		WITH(test_numeric), WITH(test_faults), WITH(test_derived_mac),
		WITH(test_defaults), WITH(test_printed), WITH(test_limits), WITH(test_lengths),
		WITH(test_port_keys), WITH(test_bad), WITH(test_bad_words), WITH(test_messages),
		WITH(test_ip), WITH(test_untrusted),
		WITH(test_file), WITH(test_file_messages), WITH(test_printable), WITH(test_order),
		WITH(test_log_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
