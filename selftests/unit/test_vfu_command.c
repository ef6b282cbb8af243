// SPDX-License-Identifier: GPL-2.0
/*
 * vfu: each request of a client, with its fields at and beyond their limits, cut at every length,
 * the bytes of the reply and the calls of the function behind it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/pci_regs.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "lib/folder.h"
#include "lib/lines.h"
#include "lib/numbers.h"
#include "log.h"
#include "vfu/command.h"
#include "vfu/event.h"

#define VECTORS		4u
#define BAR0		8192u
#define MSIX_BYTES	8192u
#define PAGE		4096u

/* The clock of the log: a second passes between two lines, so that none is suppressed. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static time_t now;

	(void)clock;
	*ts = (struct timespec) { .tv_sec = ++now };
	return 0;
}

/* Calls of the function, one letter each: see the operations. */
static struct {
	struct vfu_func func;
	struct vfu_endpoint ep;
	char seen[64];
	unsigned int bar, len;
	uint64_t off, val;
	struct vfu_msg m;
	uint8_t *payload;
	uint8_t out[VFU_MAX_PAYLOAD];
	unsigned int fds;	/* descriptors before */
	unsigned int parts;	/* of a request that are carried out at once, 0: the usual number */
} t;

static void saw(char what)
{
	size_t n = strlen(t.seen);

	assert_true(n < sizeof(t.seen) - 1);
	t.seen[n] = what;
}

static void expect_seen(const char *want)
{
	assert_string_equal(t.seen, want);
	memset(t.seen, 0, sizeof(t.seen));
}

static uint64_t bar_read(struct vfu_func *f, unsigned int bar, uint64_t off, unsigned int len)
{
	assert_ptr_equal(f, &t.func);
	saw('r');
	t.bar = bar;
	t.off = off;
	t.len = len;
	return 0x1122334455667788;
}

static void bar_write(struct vfu_func *f, unsigned int bar, uint64_t off, unsigned int len,
		      uint64_t val)
{
	assert_ptr_equal(f, &t.func);
	saw('w');
	t.bar = bar;
	t.off = off;
	t.len = len;
	t.val = val;
}

static void reset(struct vfu_func *f, enum vfu_reset why)
{
	assert_false(f->bus_master);
	saw(why == VFU_RESET_FLR ? 'F' : why == VFU_RESET_DEVICE ? 'R' : 'D');
}

static void bus_master(struct vfu_func *f, bool on)
{
	assert_int_equal(f->bus_master, on);
	saw(on ? 'M' : 'm');
}

static void power_state(struct vfu_func *f, bool d3)
{
	(void)f;
	saw(d3 ? '3' : '0');
}

static const struct vfu_func_ops ops = {
	.bar_read = bar_read, .bar_write = bar_write, .reset = reset, .bus_master = bus_master,
	.power_state = power_state,
};

static const struct vfu_func_ops few_ops = {
	.bar_read = bar_read, .bar_write = bar_write, .reset = reset,
};

/* Send one request. The payload lies in memory of exactly its length, for the sanitizer. */
static int ask_with(unsigned int cmd, const void *payload, size_t len, const int *fd,
		    unsigned int nfd)
{
	free(t.payload);
	t.payload = malloc(len ? len : 1);
	assert_non_null(t.payload);
	if (len)
		memcpy(t.payload, payload, len);
	t.m = (struct vfu_msg){
		.work = t.parts ? t.parts : VFU_SHARE,
		.hdr = { .cmd = cmd }, .payload = t.payload, .len = len, .out = t.out, .nfd = nfd,
	};
	memset(t.out, 0xee, 256);
	for (unsigned int i = 0; i < nfd; i++)
		t.m.fd[i] = fd[i];
	return vfu_command(&t.ep, &t.m);
}

static int ask(unsigned int cmd, const void *payload, size_t len)
{
	return ask_with(cmd, payload, len, NULL, 0);
}

#define ASK(cmd, ...)	ask(cmd, &__VA_ARGS__, sizeof(__VA_ARGS__))

static void expect_out(const void *want, size_t len)
{
	assert_int_equal(t.m.out_len, len);
	assert_memory_equal(t.out, want, len);
}

static int version(const char *caps)
{
	uint8_t payload[8192] = { 0 };
	const struct vfu_version v = { VFU_MAJOR, 1 };
	size_t len = caps ? strlen(caps) + 1 : 0;

	memcpy(payload, &v, sizeof(v));
	if (caps)
		memcpy(payload + sizeof(v), caps, len);
	return ask(VFU_VERSION, payload, sizeof(v) + len);
}

static int open_with(const struct vfu_func_ops *with)
{
	memset(&t.func, 0, sizeof(t.func));
	memset(&t.ep, 0xee, sizeof(t.ep));
	t.func.ops = with;
	t.func.bus_master = true;	/* as it may have been before */
	t.func.log.name = "test";
	t.func.nvectors = VECTORS;
	t.func.bar[0].size = BAR0;
	t.func.bar[5].size = PAGE;
	return endpoint_init(&t.ep, &t.func);
}

static int setup_new(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	event_signal(-1);	/* the first one of a thread opens a file */
	t.fds = descriptors();
	return open_with(&ops);
}

static int setup(void **state)
{
	return setup_new(state) || version(NULL) ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	lines_drop();
	endpoint_detach(&t.ep);
	endpoint_destroy(&t.ep);
	log_source_end(&t.func.log);
	free(t.payload);
	assert_int_equal(descriptors(), t.fds);
	return 0;
}

#define CLOSING(command)	\
	"ornicd: error: test: " command " breaks the protocol, closing the connection\n"

static void test_version_first(void **state)
{
	const struct vfu_device_info info = { .argsz = sizeof(info) };

	(void)state;
	assert_false(t.ep.negotiated);
	lines_begin();
	assert_int_equal(ASK(VFU_DEVICE_GET_INFO, info), VFU_CLOSE(EINVAL));
	lines_end("ornicd: error: test: client sent request 4 before the version was agreed on\n");
	assert_int_equal(ask(VFU_DEVICE_RESET, "", 0), VFU_CLOSE(EINVAL));
	expect_seen("");
	assert_int_equal(version(NULL), 0);
	assert_true(t.ep.negotiated);
	lines_begin();
	assert_int_equal(version(NULL), VFU_CLOSE(EINVAL));
	lines_end("ornicd: error: test: client sent request 1 after the version was agreed on\n");
	assert_int_equal(ASK(VFU_DEVICE_GET_INFO, info), 0);
}

static void test_other_version(void **state)
{
	struct vfu_version v = { VFU_MAJOR + 1, 2 };

	(void)state;
	lines_begin();
	assert_int_equal(ASK(VFU_VERSION, v), VFU_CLOSE(ENOTSUP));
	lines_end("ornicd: error: test: client wants vfio-user 1.2, this server speaks 0.0\n"
		  CLOSING("VERSION"));
	for (size_t len = 0; len < sizeof(v); len++)
		assert_int_equal(ask(VFU_VERSION, &v, len), VFU_CLOSE(EINVAL));
	assert_false(t.ep.negotiated);
}

static json_t *replied_caps(void)
{
	json_t *root, *caps;

	assert_true(t.m.out_len > sizeof(struct vfu_version));
	assert_int_equal(t.out[t.m.out_len - 1], 0);
	assert_int_equal(strlen((char *)t.out + sizeof(struct vfu_version)),
			 t.m.out_len - sizeof(struct vfu_version) - 1);
	root = json_loads((char *)t.out + sizeof(struct vfu_version), 0, NULL);
	caps = json_incref(json_object_get(root, "capabilities"));
	assert_non_null(caps);
	json_decref(root);
	return caps;
}

static json_int_t number(const json_t *caps, const char *name)
{
	return json_integer_value(json_object_get(caps, name));
}

static void test_capabilities(void **state)
{
	static const struct {
		const char *text;
		uint32_t xfer;
		bool multi;
	} row[] = {
		{ NULL, VFU_MAX_XFER, false },
		{ "{}", VFU_MAX_XFER, false },
		{ "{\"capabilities\":{}}", VFU_MAX_XFER, false },
		{ "{\"capabilities\":{\"max_data_xfer_size\":1}}", 1, false },
		{ "{\"capabilities\":{\"max_data_xfer_size\":65535}}", 65535, false },
		{ "{\"capabilities\":{\"max_data_xfer_size\":65536}}", VFU_MAX_XFER, false },
		{ "{\"capabilities\":{\"max_data_xfer_size\":99999999999}}", VFU_MAX_XFER, false },
		{ "{\"capabilities\":{\"write_multiple\":true}}", VFU_MAX_XFER, true },
		{ "{\"capabilities\":{\"write_multiple\":false}}", VFU_MAX_XFER, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct vfu_version want = { VFU_MAJOR, VFU_MINOR };
		json_t *caps;

		t.ep.negotiated = false;
		assert_int_equal(version(row[i].text), 0);
		assert_int_equal(t.ep.client_xfer, row[i].xfer);
		assert_memory_equal(t.out, &want, sizeof(want));
		caps = replied_caps();
		assert_int_equal(number(caps, "max_msg_fds"), VFU_MAX_FDS);
		assert_int_equal(number(caps, "max_data_xfer_size"), VFU_MAX_XFER);
		assert_int_equal(number(caps, "max_dma_maps"), 65535);
		assert_int_equal(number(caps, "pgsizes"), 4096);
		assert_int_equal(!!json_is_true(json_object_get(caps, "write_multiple")),
				 row[i].multi);
		assert_int_equal(json_object_size(caps), row[i].multi ? 5 : 4);
		json_decref(caps);
		assert_true(t.ep.negotiated);
	}
}

static void test_bad_capabilities(void **state)
{
	static const char member[] =
		"ornicd: error: test: client's capabilities have a member of the wrong kind\n"
		CLOSING("VERSION");
	static const char length[] =
		"ornicd: error: test: client's capabilities are longer than 4096 bytes or not ended by NUL\n"
		CLOSING("VERSION");
	static const struct {
		const char *text;
		const char *said;	/* NULL: the parser's text */
	} row[] = {
		{ "", NULL }, { "{", NULL }, { "1", NULL }, { "[]", member },
		{ "{\"capabilities\":{},\"capabilities\":{}}",
		  "ornicd: error: test: client's capabilities are no JSON: duplicate object key near "
		  "'\"capabilities\"'\n" CLOSING("VERSION") },
		{ "{\"capabilities\":1}", member },
		{ "{\"capabilities\":{\"max_data_xfer_size\":0}}", member },
		{ "{\"capabilities\":{\"max_data_xfer_size\":-1}}", member },
		{ "{\"capabilities\":{\"max_data_xfer_size\":\"1\"}}", member },
		{ "{\"capabilities\":{\"write_multiple\":1}}", member },
	};
	const struct vfu_version v = { VFU_MAJOR, 0 };
	uint8_t payload[sizeof(v) + 4097];

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		if (row[i].said)
			lines_begin();
		assert_int_equal(version(row[i].text), VFU_CLOSE(EINVAL));
		if (row[i].said)
			lines_end(row[i].said);
	}
	memset(payload, ' ', sizeof(payload));
	memcpy(payload, &v, sizeof(v));
	memcpy(payload + sizeof(v), "{}", 2);
	payload[sizeof(v) + 10] = 0;
	lines_begin();
	assert_int_equal(ask(VFU_VERSION, payload, sizeof(v) + 10), VFU_CLOSE(EINVAL));
	lines_end(length);
	payload[sizeof(v) + 4096] = 0;
	payload[sizeof(v) + 10] = ' ';
	lines_begin();
	assert_int_equal(ask(VFU_VERSION, payload, sizeof(v) + 4097), VFU_CLOSE(EINVAL));
	lines_end(length);
	expect_seen("");
	payload[sizeof(v) + 4095] = 0;
	assert_int_equal(ask(VFU_VERSION, payload, sizeof(v) + 4096), 0);
}

/* A request shorter than its fields ends the connection, for every length. */
static void test_cut(void **state)
{
	static const struct {
		unsigned int cmd;
		size_t len;
		const char *name;
	} row[] = {
		{ VFU_DMA_MAP, 32, "DMA_MAP" }, { VFU_DMA_UNMAP, 24, "DMA_UNMAP" },
		{ VFU_DEVICE_GET_INFO, 16, "DEVICE_GET_INFO" },
		{ VFU_GET_REGION_INFO, 32, "DEVICE_GET_REGION_INFO" },
		{ VFU_GET_IRQ_INFO, 16, "DEVICE_GET_IRQ_INFO" },
		{ VFU_SET_IRQS, 20, "DEVICE_SET_IRQS" }, { VFU_REGION_READ, 16, "REGION_READ" },
		{ VFU_REGION_WRITE, 16, "REGION_WRITE" },
		{ VFU_REGION_WRITE_MULTI, 8, "REGION_WRITE_MULTI" },
	};
	uint8_t payload[64] = { 0 };
	char said[256];

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		for (size_t len = 0; len < row[i].len; len++) {
			snprintf(said, sizeof(said), "ornicd: error: test: request %u has %zu bytes "
				 "of payload, needs %zu\n" CLOSING("%s"), row[i].cmd, len, row[i].len,
				 row[i].name);
			t.func.log.account.lines = 0;
			lines_begin();
			assert_int_equal(ask(row[i].cmd, payload, len), VFU_CLOSE(EINVAL));
			lines_end(said);
			assert_int_equal(t.m.out_len, 0);
		}
		assert_true(ask(row[i].cmd, payload, row[i].len) > VFU_CLOSE(0));
	}
	expect_seen("");
}

static void test_unknown(void **state)
{
	static const unsigned int unknown[] = {
		0, VFU_GET_REGION_IO_FDS, VFU_DMA_READ, VFU_DMA_WRITE, 14, 16, 17, 20, UINT16_MAX,
	};
	uint8_t payload[64] = { 0 };
	char said[128];

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		snprintf(said, sizeof(said), "ornicd: test: request %u is not supported\n",
			 unknown[i]);
		lines_begin();
		assert_int_equal(ask(unknown[i], payload, sizeof(payload)), -ENOTSUP);
		lines_end(said);
	}
}

/* Level debug shows each request that changes memory, and each error. */
static void test_debug_lines(void **state)
{
	const uint32_t rw = VFU_DMA_F_READ | VFU_DMA_F_WRITE;
	const struct vfu_dma_map maps[] = {
		{ sizeof(maps[0]), rw, 0x1000, 0x10000, PAGE },
		{ sizeof(maps[0]), VFU_DMA_F_READ, 0, 0x20000, PAGE },
	};
	const struct vfu_dma_unmap one = { sizeof(one), 0, 0x10000, PAGE };
	const struct vfu_dma_unmap all = { sizeof(all), VFU_DMA_F_UNMAP_ALL, 0, 0 };
	const struct vfu_device_info info = { .argsz = 1 };
	int fd = memfd_create("guest", 0);

	(void)state;
	assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
	lines_begin();
	log_setup(LOG_DEBUG, false);
	assert_int_equal(ask_with(VFU_DMA_MAP, &maps[0], sizeof(maps[0]), &fd, 1), 0);
	assert_int_equal(ask_with(VFU_DMA_MAP, &maps[1], sizeof(maps[0]), NULL, 0), 0);
	assert_int_equal(ASK(VFU_DMA_UNMAP, one), 0);
	assert_int_equal(ASK(VFU_DMA_UNMAP, all), 0);
	assert_int_equal(ASK(VFU_DEVICE_GET_INFO, info), -EINVAL);
	lines_end("ornicd: debug: test: map 0x10000+0x1000 offset 0x1000\n"
		  "ornicd: debug: test: map 0x20000+0x1000 offset 0, no descriptor, read-only\n"
		  "ornicd: debug: test: unmap 0x10000+0x1000\n"
		  "ornicd: debug: test: unmap 0+0, all\n"
		  "ornicd: debug: test: DEVICE_GET_INFO: Invalid argument\n");
	close(fd);
}

static void test_device_info(void **state)
{
	struct vfu_device_info in = { .argsz = sizeof(in), .flags = 0xff };
	const struct vfu_device_info want = { 16, 3, 9, 5 };

	(void)state;
	assert_int_equal(ASK(VFU_DEVICE_GET_INFO, in), 0);
	expect_out(&want, sizeof(want));
	in.argsz--;
	assert_int_equal(ASK(VFU_DEVICE_GET_INFO, in), -EINVAL);
}

static void test_device_reset(void **state)
{
	(void)state;
	assert_int_equal(ask(VFU_DEVICE_RESET, "", 0), 0);
	expect_seen("R");
	assert_int_equal(t.m.out_len, 0);
}

static void test_region_info(void **state)
{
	static const uint64_t size[] = { BAR0, 0, MSIX_BYTES, 0, 0, PAGE, 0, 4096, 0 };
	struct vfu_region_info in = { .argsz = sizeof(in), .offset = 77, .cap_offset = 7 };

	(void)state;
	for (in.index = 0; in.index < VFU_NUM_REGIONS; in.index++) {
		const struct vfu_region_info want = {
			.argsz = sizeof(want), .index = in.index, .size = size[in.index],
			.flags = size[in.index] ? 3 : 0,
		};

		assert_int_equal(ASK(VFU_GET_REGION_INFO, in), 0);
		expect_out(&want, sizeof(want));
	}
	assert_int_equal(ASK(VFU_GET_REGION_INFO, in), -EINVAL);
	in.index = 0;
	in.argsz = sizeof(in) - 1;
	assert_int_equal(ASK(VFU_GET_REGION_INFO, in), -EINVAL);
}

static int region_read(uint64_t off, uint32_t region, uint32_t count)
{
	const struct vfu_region_access a = { off, region, count };
	int err = ASK(VFU_REGION_READ, a);

	assert_int_equal(t.m.out_len, err ? 0 : sizeof(a) + count);
	if (!err)
		assert_memory_equal(t.out, &a, sizeof(a));
	return err;
}

static const uint8_t *read_bytes(void)
{
	return t.out + sizeof(struct vfu_region_access);
}

static int region_write(uint64_t off, uint32_t region, uint32_t count, uint64_t val)
{
	struct {
		struct vfu_region_access a;
		uint8_t data[64];
	} in = { .a = { off, region, count } };
	int err;

	memcpy(in.data, &val, sizeof(val));
	err = ask(VFU_REGION_WRITE, &in, sizeof(in.a) + count);
	if (!err)
		expect_out(&in.a, sizeof(in.a));
	return err;
}

/* Accesses of 1, 2, 4 or 8 bytes, aligned: others read as ones and write nothing. */
static void test_bar(void **state)
{
	const uint64_t ones = UINT64_MAX, value = 0x1122334455667788;

	(void)state;
	for (uint32_t count = 1; count <= 9; count++)
		for (uint64_t off = 16; off < 32; off++) {
			bool good = (count == 1 || count == 2 || count == 4 || count == 8) &&
				    off % count == 0;

			assert_int_equal(region_read(off, 0, count), 0);
			expect_seen(good ? "r" : "");
			assert_memory_equal(read_bytes(), good ? &value : &ones,
					    count < 8 ? count : 8);
			if (good) {
				assert_int_equal(t.bar, 0);
				assert_int_equal(t.off, off);
				assert_int_equal(t.len, count);
			}
			assert_int_equal(region_write(off, 0, count, value), 0);
			expect_seen(good ? "w" : "");
			if (good) {
				assert_int_equal(t.off, off);
				assert_int_equal(t.len, count);
				assert_true(t.val == (count == 8 ? value :
						      value & ((1ull << 8 * count) - 1)));
			}
		}
}

static void test_outside(void **state)
{
	static const struct {
		uint64_t off;
		uint32_t region, count;
		int err;
	} row[] = {
		{ BAR0 - 4, 0, 4, 0 }, { BAR0 - 2, 0, 4, -EINVAL }, { BAR0, 0, 4, -EINVAL },
		{ BAR0 + 4, 0, 4, -EINVAL }, { UINT64_MAX - 3, 0, 4, -EINVAL },
		{ 0, 0, 0, -EINVAL },
		{ BAR0, 0, 0, -EINVAL }, { 0, 1, 4, -EINVAL }, { 0, 6, 4, -EINVAL },
		{ 0, 8, 4, -EINVAL }, { 0, 9, 4, -EINVAL }, { 0, UINT32_MAX, 4, -EINVAL },
		{ 4092, VFU_REGION_CONFIG, 4, 0 }, { 4093, VFU_REGION_CONFIG, 4, -EINVAL },
		{ MSIX_BYTES - 4, 2, 4, 0 }, { MSIX_BYTES, 2, 4, -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		char said[128] = "";

		if (row[i].err)
			snprintf(said, sizeof(said), "ornicd: warning: test: write of %u bytes at "
				 "%#lx of region %u is outside\n", row[i].count, row[i].off,
				 row[i].region);
		assert_int_equal(region_read(row[i].off, row[i].region, row[i].count), row[i].err);
		lines_begin();
		assert_int_equal(region_write(row[i].off, row[i].region, row[i].count, 0),
				 row[i].err);
		lines_end(said);
	}
}

/* The table belongs to the VMM: it reads as 0 here, without a call of the function. */
static void test_msix_bar(void **state)
{
	const uint64_t zero = 0;

	(void)state;
	assert_int_equal(region_write(0, 2, 8, UINT64_MAX), 0);
	assert_int_equal(region_read(0, 2, 8), 0);
	assert_memory_equal(read_bytes(), &zero, 8);
	expect_seen("");
}

/* The data must have exactly the length in its header. */
static void test_write_length(void **state)
{
	struct {
		struct vfu_region_access a;
		uint8_t data[5];
	} in = { .a = { 0, 0, 4 } };

	(void)state;
	for (size_t more = 0; more <= 5; more++)
		assert_int_equal(ask(VFU_REGION_WRITE, &in, sizeof(in.a) + more),
				 more == 4 ? 0 : VFU_CLOSE(EINVAL));
	expect_seen("w");
}

static void test_client_takes_less(void **state)
{
	(void)state;
	t.ep.client_xfer = 4;
	assert_int_equal(region_read(0, 0, 4), 0);
	assert_int_equal(region_read(0, 0, 5), -EINVAL);
}

static void test_write_multi(void **state)
{
	struct {
		uint64_t n;
		struct vfu_write_one w[3];
	} in = { 3, { { { 0, 0, 4 }, { 1, 2, 3, 4 } }, { { 0, 4, 4 }, { 0 } },
		      { { 8, 0, 8 }, { 1, 2, 3, 4, 5, 6, 7, 8 } } } };

	(void)state;
	assert_int_equal(ASK(VFU_REGION_WRITE_MULTI, in), -EINVAL);
	expect_seen("ww");
	assert_int_equal(t.off, 8);
	assert_true(t.val == 0x0807060504030201);
	assert_int_equal(t.m.out_len, 0);
	in.w[1].to = (struct vfu_region_access){ 16, 0, 8 };
	assert_int_equal(ASK(VFU_REGION_WRITE_MULTI, in), 0);
	expect_seen("www");
	expect_out(&in.n, sizeof(in.n));
	in.w[1].to.count = 9;
	assert_int_equal(ASK(VFU_REGION_WRITE_MULTI, in), -EINVAL);
	expect_seen("ww");
	/* the first error, not the last */
	in.w[0].to.region = 6;
	in.w[2].to.count = 0;
	assert_int_equal(ASK(VFU_REGION_WRITE_MULTI, in), -EINVAL);
	expect_seen("");
	for (size_t len = 8; len < sizeof(in); len++)
		assert_int_equal(ask(VFU_REGION_WRITE_MULTI, &in, len), VFU_CLOSE(EINVAL));
	in.n = 2;
	assert_int_equal(ASK(VFU_REGION_WRITE_MULTI, in), VFU_CLOSE(EINVAL));
	in.n = 0;
	assert_int_equal(ask(VFU_REGION_WRITE_MULTI, &in, 8), 0);
	expect_seen("");
}

/* Its stores are as many messages: only some are carried out at once. The first error is kept. */
static void test_write_multi_in_parts(void **state)
{
	struct {
		uint64_t n;
		struct vfu_write_one w[5];
	} in = { 5, { { { 0, 0, 4 }, { 1 } }, { { 8, 0, 8 }, { 2 } }, { { 16, 0, 8 }, { 3 } },
		      { { 24, 0, 8 }, { 4 } }, { { 32, 0, 8 }, { 5 } } } };

	(void)state;
	for (int bad = 0; bad < 2; bad++) {
		in.w[1].to.region = bad ? 4 : 0;
		in.w[3].to.count = bad ? 9 : 8;
		t.parts = 2;
		assert_int_equal(ASK(VFU_REGION_WRITE_MULTI, in), VFU_MORE);
		assert_int_equal(t.m.done, 2);
		assert_int_equal(t.m.work, 0);
		expect_seen(bad ? "w" : "ww");
		t.m.work = 2;
		assert_int_equal(vfu_command(&t.ep, &t.m), VFU_MORE);
		expect_seen(bad ? "w" : "ww");
		t.m.work = 2;
		assert_int_equal(vfu_command(&t.ep, &t.m), bad ? -EINVAL : 0);
		assert_int_equal(t.m.work, 1);
		expect_seen("w");
		assert_int_equal(t.off, 32);
		assert_int_equal(t.m.out_len, bad ? 0 : sizeof(in.n));
	}
	t.parts = 5;
	assert_int_equal(ASK(VFU_REGION_WRITE_MULTI, in), -EINVAL);
	expect_seen("www");
	t.parts = 0;
}

static void test_irq_info(void **state)
{
	struct vfu_irq_info in = { .argsz = sizeof(in) + 8, .flags = 0xff, .count = 77 };

	(void)state;
	for (in.index = 0; in.index <= VFU_NUM_IRQS; in.index++) {
		const struct vfu_irq_info want = {
			.argsz = sizeof(want), .index = in.index,
			.flags = in.index == VFU_IRQ_MSIX,
			.count = in.index == VFU_IRQ_MSIX ? VECTORS : 0,
		};

		if (in.index == VFU_IRQ_ERR || in.index == VFU_NUM_IRQS) {
			assert_int_equal(ASK(VFU_GET_IRQ_INFO, in), -EINVAL);
		} else {
			assert_int_equal(ASK(VFU_GET_IRQ_INFO, in), 0);
			expect_out(&want, sizeof(want));
		}
	}
	in.index = VFU_IRQ_MSIX;
	in.argsz = sizeof(in) - 1;
	assert_int_equal(ASK(VFU_GET_IRQ_INFO, in), -EINVAL);
}

static struct vfu_set_irqs irqs(uint32_t data, uint32_t start, uint32_t count)
{
	return (struct vfu_set_irqs){
		sizeof(struct vfu_set_irqs), data | VFU_SET_F_TRIGGER, VFU_IRQ_MSIX, start, count,
	};
}

static int set_irqs(struct vfu_set_irqs in)
{
	return ASK(VFU_SET_IRQS, in);
}

/* Give vectors their eventfds; the returned ones are for reading. */
static void assign(int *fd, uint32_t start, uint32_t count)
{
	struct vfu_set_irqs in = irqs(VFU_SET_F_EVENTFD, start, count);
	int sent[VECTORS];

	for (uint32_t i = 0; i < count; i++) {
		fd[i] = eventfd(0, EFD_NONBLOCK);
		sent[i] = dup(fd[i]);
	}
	assert_int_equal(ask_with(VFU_SET_IRQS, &in, sizeof(in), sent, count), 0);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(t.m.fd[i], -1);
}

static uint64_t fired(int fd)
{
	uint64_t n = 0;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static void close_all(const int *fd, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		close(fd[i]);
}

static void command_register(uint16_t val)
{
	assert_int_equal(region_write(PCI_COMMAND, VFU_REGION_CONFIG, 2, val), 0);
}

static void test_irq_checks(void **state)
{
	struct vfu_set_irqs in;

	(void)state;
	in = irqs(VFU_SET_F_NONE, 0, VECTORS);
	assert_int_equal(set_irqs(in), 0);
	in.argsz--;
	assert_int_equal(set_irqs(in), -EINVAL);
	for (uint32_t index = 0; index <= VFU_NUM_IRQS; index++) {
		in = irqs(VFU_SET_F_NONE, 0, 1);
		in.index = index;
		assert_int_equal(set_irqs(in), index == VFU_IRQ_MSIX ? 0 : -EINVAL);
		in.count = 0;
		assert_int_equal(set_irqs(in), index < VFU_NUM_IRQS ? 0 : -EINVAL);
	}
	for (uint32_t flags = 0; flags < 0x80; flags++) {
		bool good = flags == (VFU_SET_F_TRIGGER | VFU_SET_F_NONE) ||
			    flags == (VFU_SET_F_TRIGGER | VFU_SET_F_EVENTFD);

		in = irqs(0, 0, 1);
		in.flags = flags;
		if (flags != (VFU_SET_F_TRIGGER | VFU_SET_F_BOOL))
			assert_int_equal(set_irqs(in), good ? 0 : -EINVAL);
		in.count = 0;
		assert_int_equal(set_irqs(in),
				 flags == (VFU_SET_F_TRIGGER | VFU_SET_F_NONE) ? 0 : -EINVAL);
	}
	assert_int_equal(set_irqs(irqs(VFU_SET_F_NONE, 1, 0)), -EINVAL);
	assert_int_equal(set_irqs(irqs(VFU_SET_F_NONE, VECTORS - 1, 1)), 0);
	assert_int_equal(set_irqs(irqs(VFU_SET_F_NONE, VECTORS, 1)), -EINVAL);
	assert_int_equal(set_irqs(irqs(VFU_SET_F_NONE, 1, VECTORS)), -EINVAL);
	assert_int_equal(set_irqs(irqs(VFU_SET_F_NONE, 1, UINT32_MAX)), -EINVAL);
	assert_int_equal(t.m.out_len, 0);
}

/* With bus mastering on it arrives at once; otherwise once, when bus mastering is on again. */
static void test_irq_delivery(void **state)
{
	int fd[VECTORS], again;

	(void)state;
	for (unsigned int i = 0; i < VECTORS; i++)
		assert_int_equal(t.ep.msix.vector[i].fd, -1);
	assert_false(t.func.bus_master);
	vfu_irq(&t.func, 0);
	vfu_irq(&t.func, 1);
	vfu_irq(&t.func, VECTORS);
	assign(fd, 0, VECTORS);
	assert_int_equal(fired(fd[1]), 0);
	vfu_irq(&t.func, 1);
	command_register(PCI_COMMAND_MASTER);
	expect_seen("M");
	for (unsigned int i = 0; i < VECTORS; i++)
		assert_int_equal(fired(fd[i]), i < 2);
	vfu_irq(&t.func, 2);
	vfu_irq(&t.func, 2);
	assert_int_equal(fired(fd[2]), 2);
	command_register(0);
	vfu_irq(&t.func, 3);
	assert_int_equal(fired(fd[3]), 0);
	command_register(PCI_COMMAND_MASTER);
	assert_int_equal(fired(fd[3]), 1);
	/* while a vector has no eventfd, it waits for the next one */
	assert_int_equal(set_irqs(irqs(VFU_SET_F_EVENTFD, 0, 1)), 0);
	vfu_irq(&t.func, 0);
	assert_int_equal(fired(fd[0]), 0);
	assign(&again, 0, 1);
	assert_int_equal(fired(again), 1);
	vfu_irq(&t.func, 1);
	assert_int_equal(fired(fd[1]), 1);
	close(again);
	close_all(fd, VECTORS);
}

static int dma_map(uint64_t addr, uint64_t size, uint64_t offset, uint32_t flags, const int *fd,
		   unsigned int nfd)
{
	const struct vfu_dma_map in = { sizeof(in), flags, offset, addr, size };
	int err = ask_with(VFU_DMA_MAP, &in, sizeof(in), fd, nfd);

	assert_int_equal(t.m.out_len, 0);
	return err;
}

static int memory(void)
{
	int fd = memfd_create("guest", 0);

	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	return fd;
}

/* An eventfd whose counter is full has a waiting interrupt already: none is lost. */
static void test_irq_full(void **state)
{
	const uint64_t most = UINT64_MAX - 1;
	int fd;

	(void)state;
	assign(&fd, 0, 1);
	command_register(PCI_COMMAND_MASTER);
	assert_int_equal(write(fd, &most, sizeof(most)), sizeof(most));
	lines_begin();
	vfu_irq(&t.func, 0);
	lines_end("");
	assert_true(fired(fd) >= most);
	/* a client that makes its end blocking again stops nobody */
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_int_equal(write(fd, &most, sizeof(most)), sizeof(most));
	alarm(20);
	lines_begin();
	for (int i = 0; i < 200; i++)
		vfu_irq(&t.func, 0);
	lines_end("");
	alarm(0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_true(fired(fd) >= most);
	lines_begin();
	errno = EPERM;		/* of an earlier call */
	vfu_irq(&t.func, 0);
	lines_end("");
	assert_int_equal(fired(fd), 1);
	/* an interrupt that cannot be delivered */
	lines_begin();
	close(t.ep.msix.vector[0].fd);
	vfu_irq(&t.func, 0);
	lines_end("ornicd: warning: test: interrupt lost: eventfd: Bad file descriptor\n");
	t.ep.msix.vector[0].fd = -1;
	close(fd);
}

/* A guest that starts DMA without shared memory gets a line with the option that it needs. */
static void test_memory_not_shared(void **state)
{
	static const char warning[] =
		"ornicd: warning: test: guest memory is not shared, DMA will fail: give the VM its "
		"RAM by -object memory-backend-memfd,share=on\n";
	int mem = memory();

	(void)state;
	for (int shared = 0; shared < 2; shared++) {
		if (shared)
			assert_int_equal(dma_map(0, PAGE, 0, VFU_DMA_F_READ, &mem, 1), 0);
		lines_begin();
		command_register(PCI_COMMAND_MASTER);
		lines_end(shared ? "" : warning);
		lines_begin();
		command_register(0);
		lines_end("");
	}
	close(mem);
}

/* An eventfd that is replaced is closed, and gets no more interrupts. */
static void test_irq_replace(void **state)
{
	unsigned int before = descriptors(), each;
	int fd[2];

	(void)state;
	assign(&fd[0], 0, 1);
	each = descriptors() - before;
	assign(&fd[1], 0, 1);
	assert_int_equal(descriptors(), before + 2 * each - 1);
	command_register(PCI_COMMAND_MASTER);
	expect_seen("M");
	vfu_irq(&t.func, 0);
	assert_int_equal(fired(fd[0]), 0);
	assert_int_equal(fired(fd[1]), 1);
	close_all(fd, 2);
}

/* MSI-X disabled: no eventfds, and pending interrupts are dropped. */
static void test_irq_disable(void **state)
{
	struct vfu_set_irqs other = irqs(VFU_SET_F_NONE, 0, 0);
	int fd[VECTORS];

	(void)state;
	assign(fd, 0, VECTORS);
	vfu_irq(&t.func, 0);
	vfu_irq(&t.func, VECTORS - 1);
	assert_int_equal(set_irqs(irqs(VFU_SET_F_NONE, 0, 0)), 0);
	command_register(PCI_COMMAND_MASTER);
	vfu_irq(&t.func, 1);
	for (unsigned int i = 0; i < VECTORS; i++)
		assert_int_equal(fired(fd[i]), 0);
	close_all(fd, VECTORS);
	assign(fd, 0, VECTORS);
	for (unsigned int i = 0; i < VECTORS; i++)
		assert_int_equal(fired(fd[i]), i == 1);
	/* another kind has nothing to disable */
	other.index = VFU_IRQ_INTX;
	assert_int_equal(set_irqs(other), 0);
	vfu_irq(&t.func, 3);
	assert_int_equal(fired(fd[3]), 1);
	close_all(fd, VECTORS);
}

static void test_irq_loopback(void **state)
{
	struct {
		struct vfu_set_irqs req;
		uint8_t want[3];
	} in = { irqs(VFU_SET_F_BOOL, 1, 3), { 1, 0, 255 } };
	int fd[VECTORS];

	(void)state;
	assign(fd, 0, VECTORS);
	command_register(PCI_COMMAND_MASTER);
	assert_int_equal(ask(VFU_SET_IRQS, &in, sizeof(in.req) + 2), -EINVAL);
	for (unsigned int i = 0; i < VECTORS; i++)
		assert_int_equal(fired(fd[i]), 0);
	assert_int_equal(ask(VFU_SET_IRQS, &in, sizeof(in.req) + 3), 0);
	for (unsigned int i = 0; i < VECTORS; i++)
		assert_int_equal(fired(fd[i]), i == 1 || i == 3);
	assert_int_equal(set_irqs(irqs(VFU_SET_F_NONE, 0, 2)), 0);
	for (unsigned int i = 0; i < VECTORS; i++)
		assert_int_equal(fired(fd[i]), i < 2);
	close_all(fd, VECTORS);
}

/*
 * A number of descriptors that differs from that of vectors, or a file that could block the
 * daemon.
 */
static void test_irq_bad_descriptors(void **state)
{
	struct vfu_set_irqs in = irqs(VFU_SET_F_EVENTFD, 0, 2);
	int fd[3] = { eventfd(0, 0), eventfd(0, 0), memfd_create("no event", 0) };

	(void)state;
	assert_int_equal(ask_with(VFU_SET_IRQS, &in, sizeof(in), fd, 1), -EINVAL);
	assert_int_equal(ask_with(VFU_SET_IRQS, &in, sizeof(in), fd, 3), -EINVAL);
	assert_int_equal(t.m.fd[0], fd[0]);
	assert_int_equal(ask_with(VFU_SET_IRQS, &in, sizeof(in), fd + 1, 2), -EINVAL);
	assert_int_equal(t.m.fd[0], -1);		/* kept */
	assert_int_equal(t.m.fd[1], fd[2]);
	assert_true(fcntl(fd[1], F_GETFL) & O_NONBLOCK);
	assert_false(fcntl(fd[0], F_GETFL) & O_NONBLOCK);
	close(fd[0]);
	close(fd[2]);
	/* the name of its inode is as long as that of an eventfd */
	in = irqs(VFU_SET_F_EVENTFD, 0, 1);
	fd[0] = timerfd_create(CLOCK_MONOTONIC, 0);
	assert_int_equal(ask_with(VFU_SET_IRQS, &in, sizeof(in), fd, 1), -EINVAL);
	assert_int_equal(t.m.fd[0], fd[0]);
	close(fd[0]);
}

static int dma_unmap_request(uint64_t addr, uint64_t size, uint32_t flags)
{
	const struct vfu_dma_unmap in = { sizeof(in), flags, addr, size };
	int err = ASK(VFU_DMA_UNMAP, in);

	if (!err)
		expect_out(&in, sizeof(in));
	return err;
}

/* A map that fails is logged: QEMU lets the guest run on without the memory. */
static void expect_map_warning(uint64_t addr, uint64_t size, uint32_t flags, const char *want)
{
	lines_begin();
	assert_int_equal(dma_map(addr, size, 0, flags, NULL, 0), -EINVAL);
	lines_end(want);
}

static void test_dma(void **state)
{
	const uint32_t rw = VFU_DMA_F_READ | VFU_DMA_F_WRITE;
	struct vfu_dma_map bad = { sizeof(bad) - 1, rw, 0, 0, PAGE };
	int fd[2] = { memory(), memory() };
	uint32_t word = 0x11223344, got = 0;

	(void)state;
	expect_map_warning(1, PAGE, rw, "ornicd: warning: test: cannot map guest memory "
			   "0x1+0x1000: Invalid argument\n");
	expect_map_warning(0, PAGE, 4, "ornicd: warning: test: cannot map guest memory "
			   "0+0x1000: Invalid argument\n");
	assert_int_equal(ASK(VFU_DMA_MAP, bad), -EINVAL);
	assert_int_equal(dma_map(0, PAGE, 0, 4, fd, 1), -EINVAL);
	assert_int_equal(dma_map(0, PAGE, 0, rw, fd, 2), -EINVAL);
	assert_int_equal(dma_map(1, PAGE, 0, rw, fd, 1), -EINVAL);
	assert_int_equal(dma_map(0, PAGE + 2048, 0, rw, fd, 1), -EINVAL);
	assert_int_equal(dma_map(0, PAGE, 2048, rw, fd, 1), -EINVAL);
	assert_int_equal(t.func.gpa->n, 0);
	assert_false(t.ep.shared_memory);

	assert_int_equal(dma_map(0x10000, PAGE, 0, rw, NULL, 0), 0);
	assert_false(t.ep.shared_memory);
	assert_int_equal(dma_map(0x20000, PAGE, PAGE, rw, fd, 1), 0);
	assert_true(t.ep.shared_memory);
	assert_int_equal(dma_map(0x20000, PAGE, 0, rw, fd, 1) < 0, 1);
	assert_true(t.ep.shared_memory);
	assert_int_equal(dma_map(0x30000, PAGE, 2 * PAGE, VFU_DMA_F_READ, fd, 1), 0);
	assert_int_equal(dma_map(0x40000, PAGE, 3 * PAGE, VFU_DMA_F_WRITE, fd, 1), 0);

	assert_int_equal(gpa_write(t.func.gpa, 0x20000, &word, 4), 0);
	assert_int_equal(pread(fd[0], &got, 4, PAGE), 4);
	assert_int_equal(got, word);
	assert_true(gpa_write(t.func.gpa, 0x10000, &word, 4) < 0);
	assert_int_equal(gpa_read(t.func.gpa, 0x30000, &got, 4), 0);
	assert_true(gpa_write(t.func.gpa, 0x30000, &word, 4) < 0);
	assert_int_equal(gpa_write(t.func.gpa, 0x40000, &word, 4), 0);
	assert_true(gpa_read(t.func.gpa, 0x40000, &got, 4) < 0);
	assert_int_equal(dma_map(0x70000, PAGE, 0, rw, NULL, 0), 0);
	assert_true(t.ep.shared_memory);
	assert_int_equal(dma_unmap_request(0x70000, PAGE, 0), 0);
	assert_int_equal(dma_map(0x60000, PAGE, 0, 0, fd, 1), 0);
	assert_true(gpa_write(t.func.gpa, 0x60000, &word, 4) < 0);
	assert_true(gpa_read(t.func.gpa, 0x60000, &got, 4) < 0);
	assert_int_equal(dma_unmap_request(0x60000, PAGE, 0), 0);

	assert_true(dma_unmap_request(0x50000, PAGE, 0) < 0);
	assert_int_equal(t.func.gpa->n, 4);
	assert_int_equal(dma_unmap_request(0x20000, PAGE, 0), 0);
	assert_int_equal(t.func.gpa->n, 3);
	assert_true(gpa_write(t.func.gpa, 0x20000, &word, 4) < 0);
	assert_int_equal(dma_unmap_request(0x10000, PAGE, VFU_DMA_F_UNMAP_ALL), -EINVAL);
	assert_int_equal(dma_unmap_request(0x10000, 0, VFU_DMA_F_UNMAP_ALL), -EINVAL);
	assert_int_equal(dma_unmap_request(0, PAGE, VFU_DMA_F_UNMAP_ALL), -EINVAL);
	assert_int_equal(dma_unmap_request(0, 0, 1), -EINVAL);
	assert_int_equal(t.func.gpa->n, 3);
	assert_int_equal(dma_unmap_request(0, 0, VFU_DMA_F_UNMAP_ALL), 0);
	assert_int_equal(t.func.gpa->n, 0);
	close_all(fd, 2);
}

static void test_dma_unmap_short(void **state)
{
	const struct vfu_dma_unmap in = { sizeof(in) - 1, VFU_DMA_F_UNMAP_ALL, 0, 0 };

	(void)state;
	assert_int_equal(ASK(VFU_DMA_UNMAP, in), -EINVAL);
}

/* In D3hot bus mastering is off, for any value of the register. */
static void test_power(void **state)
{
	const uint32_t pm = 0x40 + PCI_PM_CTRL;

	(void)state;
	command_register(PCI_COMMAND_MASTER);
	expect_seen("M");
	assert_true(t.func.bus_master);
	assert_int_equal(region_write(pm, VFU_REGION_CONFIG, 2, 3), 0);
	expect_seen("m3");
	assert_int_equal(region_write(pm, VFU_REGION_CONFIG, 2, 3), 0);
	expect_seen("");
	assert_int_equal(region_write(pm, VFU_REGION_CONFIG, 2, 0), 0);
	expect_seen("M0");
	/* a write that changes neither has no effect */
	command_register(PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY);
	expect_seen("");
	assert_int_equal(region_write(pm, VFU_REGION_CONFIG, 2, 3), 0);
	expect_seen("m3");
	command_register(0);
	expect_seen("");
	assert_int_equal(region_write(pm, VFU_REGION_CONFIG, 2, 0), 0);
	expect_seen("0");
}

/* A reset by the guest: bus mastering off first, configuration as after power-on. */
static void test_function_level_reset(void **state)
{
	const uint32_t ctl = 0x60 + PCI_EXP_DEVCTL, pm = 0x40 + PCI_PM_CTRL;
	const struct {
		struct vfu_region_access a;
		uint8_t data[0x60 + PCI_EXP_DEVCTL + 2 - 0x40 - PCI_PM_CTRL];
	} __attribute__((packed)) both = {
		{ pm, VFU_REGION_CONFIG, sizeof(both.data) },
		{ 3, [0x60 + PCI_EXP_DEVCTL + 1 - 0x40 - PCI_PM_CTRL] = PCI_EXP_DEVCTL_BCR_FLR >> 8 },
	};
	int fd[VECTORS];

	(void)state;
	assign(fd, 0, VECTORS);
	command_register(PCI_COMMAND_MASTER);
	assert_int_equal(region_write(0x40 + PCI_PM_CTRL, VFU_REGION_CONFIG, 2, 3), 0);
	expect_seen("Mm3");
	vfu_irq(&t.func, 0);
	assert_int_equal(region_write(ctl, VFU_REGION_CONFIG, 2, PCI_EXP_DEVCTL_BCR_FLR), 0);
	expect_seen("F");
	assert_false(pci_d3hot(&t.ep.pci));
	command_register(PCI_COMMAND_MASTER);
	expect_seen("M");
	assert_int_equal(fired(fd[0]), 0);		/* pending interrupts are dropped, */
	vfu_irq(&t.func, 0);
	assert_int_equal(fired(fd[0]), 1);		/* the eventfd is not */
	/* one write that resets and enables: the reset wins */
	assert_int_equal(region_write(ctl, VFU_REGION_CONFIG, 2, PCI_EXP_DEVCTL_BCR_FLR), 0);
	expect_seen("mF");
	assert_false(t.func.bus_master);
	/* one write that resets and enters D3hot, too */
	assert_int_equal(ASK(VFU_REGION_WRITE, both), 0);
	expect_seen("F");
	assert_false(pci_d3hot(&t.ep.pci));
	close_all(fd, VECTORS);
}

static void test_detach(void **state)
{
	int fd[VECTORS], mem = memory();

	(void)state;
	assign(fd, 0, VECTORS);
	assert_int_equal(dma_map(0, PAGE, 0, VFU_DMA_F_READ, &mem, 1), 0);
	command_register(PCI_COMMAND_MASTER);
	expect_seen("M");
	endpoint_detach(&t.ep);
	expect_seen("mD");
	assert_int_equal(t.func.gpa->n, 0);
	assert_false(t.ep.shared_memory);
	assert_false(t.ep.negotiated);
	for (unsigned int i = 0; i < VECTORS; i++)
		assert_int_equal(t.ep.msix.vector[i].fd, -1);
	endpoint_detach(&t.ep);
	expect_seen("");
	assert_int_equal(version(NULL), 0);
	assert_true(t.ep.negotiated);
	close_all(fd, VECTORS);
	close(mem);
}

/* Operations that a function does not have are not called. */
static void test_few_operations(void **state)
{
	(void)state;
	endpoint_detach(&t.ep);
	endpoint_destroy(&t.ep);
	assert_null(t.func.ep);
	assert_null(t.func.gpa);
	memset(t.seen, 0, sizeof(t.seen));
	assert_int_equal(open_with(&few_ops), 0);
	assert_int_equal(version(NULL), 0);
	command_register(PCI_COMMAND_MASTER);
	assert_true(t.func.bus_master);
	assert_int_equal(region_write(0x40 + PCI_PM_CTRL, VFU_REGION_CONFIG, 2, 3), 0);
	assert_false(t.func.bus_master);
	assert_int_equal(dma_map(0, PAGE, 0, VFU_DMA_F_READ, NULL, 0), 0);
	assert_int_equal(dma_unmap_request(0, PAGE, 0), 0);
	assert_int_equal(dma_unmap_request(0, 0, VFU_DMA_F_UNMAP_ALL), 0);
	expect_seen("");
	endpoint_detach(&t.ep);
	expect_seen("D");
}

/* Numbers of QEMU's docs/interop/vfio-user.rst and of <linux/vfio.h>, and limits of this server */
static void test_protocol(void **state)
{
	static const struct number numbers[] = {
		NUMBER(VFU_MAJOR, 0), NUMBER(VFU_MINOR, 0), NUMBER(VFU_MAX_FDS, 16),
		NUMBER(VFU_MAX_XFER, 1u << 16), NUMBER(VFU_PAGE_SIZE, 4096u),
		NUMBER(VFU_VERSION, 1), NUMBER(VFU_DMA_MAP, 2), NUMBER(VFU_DMA_UNMAP, 3),
		NUMBER(VFU_DEVICE_GET_INFO, 4), NUMBER(VFU_GET_REGION_INFO, 5),
		NUMBER(VFU_GET_REGION_IO_FDS, 6), NUMBER(VFU_GET_IRQ_INFO, 7),
		NUMBER(VFU_SET_IRQS, 8), NUMBER(VFU_REGION_READ, 9),
		NUMBER(VFU_REGION_WRITE, 10), NUMBER(VFU_DMA_READ, 11),
		NUMBER(VFU_DMA_WRITE, 12), NUMBER(VFU_DEVICE_RESET, 13),
		NUMBER(VFU_REGION_WRITE_MULTI, 15), NUMBER(VFU_DEVICE_FEATURE, 16),
		NUMBER(VFU_F_TYPE, 0xfu), NUMBER(VFU_F_COMMAND, 0x0u), NUMBER(VFU_F_REPLY, 0x1u),
		NUMBER(VFU_F_NO_REPLY, 0x10u), NUMBER(VFU_F_ERROR, 0x20u),
		NUMBER(VFU_DMA_F_READ, 0x1u), NUMBER(VFU_DMA_F_WRITE, 0x2u),
		NUMBER(VFU_DMA_F_UNMAP_ALL, 0x2u), NUMBER(VFU_DEVICE_F_RESET, 0x1u),
		NUMBER(VFU_DEVICE_F_PCI, 0x2u), NUMBER(VFU_REGION_BAR0, 0),
		NUMBER(VFU_REGION_BAR5, 5), NUMBER(VFU_REGION_ROM, 6),
		NUMBER(VFU_REGION_CONFIG, 7), NUMBER(VFU_REGION_VGA, 8),
		NUMBER(VFU_NUM_REGIONS, 9), NUMBER(VFU_REGION_F_READ, 0x1u),
		NUMBER(VFU_REGION_F_WRITE, 0x2u), NUMBER(VFU_IRQ_INTX, 0),
		NUMBER(VFU_IRQ_MSI, 1), NUMBER(VFU_IRQ_MSIX, 2), NUMBER(VFU_IRQ_ERR, 3),
		NUMBER(VFU_IRQ_REQ, 4), NUMBER(VFU_NUM_IRQS, 5), NUMBER(VFU_IRQ_F_EVENTFD, 0x1u),
		NUMBER(VFU_SET_F_NONE, 0x01u), NUMBER(VFU_SET_F_BOOL, 0x02u),
		NUMBER(VFU_SET_F_EVENTFD, 0x04u), NUMBER(VFU_SET_F_DATA, 0x07u),
		NUMBER(VFU_SET_F_MASK, 0x08u), NUMBER(VFU_SET_F_UNMASK, 0x10u),
		NUMBER(VFU_SET_F_TRIGGER, 0x20u), NUMBER(VFU_MAX_PAYLOAD, (1 << 16) + 16),
		NUMBER(VFU_MAX_MSG, (1 << 16) + 32),
	};

	(void)state;
	NUMBERS_CHECK(numbers);
}

int main(void)
{
#define T(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)
#define NEW(f)	cmocka_unit_test_setup_teardown(f, setup_new, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_protocol),
		NEW(test_version_first),
		NEW(test_other_version),
		NEW(test_capabilities),
		NEW(test_bad_capabilities),
		T(test_cut),
		T(test_unknown),
		T(test_debug_lines),
		T(test_device_info),
		T(test_device_reset),
		T(test_region_info),
		T(test_bar),
		T(test_outside),
		T(test_msix_bar),
		T(test_write_length),
		T(test_client_takes_less),
		T(test_write_multi),
		T(test_write_multi_in_parts),
		T(test_irq_info),
		T(test_irq_checks),
		T(test_irq_delivery),
		T(test_irq_full),
		T(test_memory_not_shared),
		T(test_irq_replace),
		T(test_irq_disable),
		T(test_irq_loopback),
		T(test_irq_bad_descriptors),
		T(test_dma),
		T(test_dma_unmap_short),
		T(test_power),
		T(test_function_level_reset),
		T(test_detach),
		T(test_few_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
