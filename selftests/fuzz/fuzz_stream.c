// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile peer on a stream uplink: frames after their lengths in QEMU's format, in
 * pieces, truncated, with lengths that no frame has; a peer that does not read, disconnects
 * and reconnects.
 *
 * An input is a sequence of records. The target itself computes how many frames the uplink
 * must see. A peer must read whole frames, whatever amount the socket accepted at once.
 */
#include "lib/records.h"
#include "lib/rig.h"

#include "loop.h"
#include "packet/wire.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LENGTH_BYTES	4
#define BODY_MAX	2048u
#define LOOPS		20000
#define BIG_FRAME	9000u
#define ETHERTYPE_TEST	0x88b5

enum record {
	REC_FRAME,		/* length, bytes: a frame after its length */
	REC_LENGTH,		/* length (32 bits), length, bytes: a frame after another length */
	REC_BYTES,		/* length, bytes */
	REC_OUT,		/* count: frames to the peer */
	REC_READ,		/* units of 256 bytes that the peer reads */
	REC_LEAVE,		/* */
	REC_KINDS,
};

static struct loop *loop;
static struct uplink *up;
static struct switch_port *port;
static struct sockaddr_un addr;
static int peer = -1;
static uint32_t loops, quiet;

/**
 * struct sent - bytes that this peer sent to the uplink
 * @buf:	of a length, @len bytes
 * @skip:	bytes of the frame that have not been sent
 * @bad:	there was a length that no frame has: nothing counts after it
 */
static struct sent {
	uint8_t buf[LENGTH_BYTES];
	uint32_t len;
	uint32_t skip;
	bool bad;
} sent;
static uint64_t frames;

/**
 * struct heard - state of the peer's reader: @have bytes of a length, and @skip of the
 * frame to come
 */
static struct heard {
	uint8_t length[LENGTH_BYTES];
	uint32_t have;
	uint32_t skip;
} heard;

static const uint8_t device_mac[6] = { 2, 0, 0, 0, 0, 9 };

/* Count the whole frames in the stream. */
static void reckon(const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len && !sent.bad; i++) {
		if (sent.skip) {
			frames += !--sent.skip;
			continue;
		}
		sent.buf[sent.len++] = p[i];
		if (sent.len < LENGTH_BYTES)
			continue;
		sent.len = 0;
		sent.skip = be32_get(sent.buf);
		sent.bad = !sent.skip || sent.skip > UPLINK_FRAME_BYTES;
	}
}

static void hear(const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		if (heard.skip) {
			heard.skip--;
			continue;
		}
		heard.length[heard.have++] = p[i];
		if (heard.have < LENGTH_BYTES)
			continue;
		heard.have = 0;
		heard.skip = be32_get(heard.length);
		CHECK(heard.skip == BIG_FRAME || heard.skip == 60, "a frame of %u bytes",
		      heard.skip);
	}
}

static int64_t work(void *arg)
{
	int unread = 0;

	(void)arg;
	if (peer >= 0)
		ioctl(peer, SIOCOUTQ, &unread);
	quiet = unread ? 0 : quiet + 1;
	CHECK(loops++ < LOOPS, "the uplink does not read");
	if (quiet > 2)
		loop_stop(loop);
	return 1;
}

static void serve(void)
{
	loops = 0;
	quiet = 0;
	CHECK(!loop_run(loop));
}

static void peer_come(void)
{
	peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(peer >= 0 && !connect(peer, (struct sockaddr *)&addr, sizeof(addr)));
	memset(&sent, 0, sizeof(sent));
	memset(&heard, 0, sizeof(heard));
	serve();
}

/* An illegal length, and a frame that is cut off, count as a frame. */
static void peer_leave(void)
{
	close(peer);
	peer = -1;
	serve();
	frames += sent.bad || sent.skip || sent.len;
}

static void peer_send(const uint8_t *p, uint32_t len)
{
	ssize_t n = send(peer, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		reckon(p, n);
	serve();
	/* The uplink disconnects a peer that violates the format. */
	if (sent.bad) {
		peer_leave();
		peer_come();
	}
	CHECK(uplink_stats(up)->rx_frames == frames, "%lu frames came, %lu were sent",
	      (unsigned long)uplink_stats(up)->rx_frames, (unsigned long)frames);
}

static void peer_read(uint32_t bytes)
{
	static uint8_t buf[65536];
	ssize_t n = recv(peer, buf, bytes, MSG_DONTWAIT);

	if (n > 0)
		hear(buf, n);
	serve();
}

static void frames_out(uint32_t count)
{
	static uint8_t frame[BIG_FRAME];

	memset(frame, 0xff, 6);
	memcpy(frame + 6, device_mac, 6);
	be16_put(frame + 12, ETHERTYPE_TEST);
	for (uint32_t i = 0; i < count; i++) {
		struct packet *p = packet_get(&rig.engine.pool);

		CHECK(p, "no packet is free");
		p->kind = PACKET_ETHERNET;
		memcpy(p->dmac, frame, 6);
		memcpy(p->smac, device_mac, 6);
		p->len = i % 3 ? BIG_FRAME : 60;
		p->nseg = 1;
		p->seg[0] = (struct seg) { frame, p->len };
		switch_send(port, p);
		engine_drain(&rig.engine);
	}
	serve();
}

static bool run_bytes(struct bytes *b, enum record kind)
{
	static uint8_t buf[LENGTH_BYTES + BODY_MAX];
	const uint8_t *head = bytes_take(b, kind == REC_LENGTH ? 6 : 2), *body;
	uint32_t len;

	if (!head)
		return false;
	len = bytes_le(head, 2) % BODY_MAX;
	body = bytes_take(b, len);
	if (!body)
		return false;
	memcpy(buf + LENGTH_BYTES, body, len);
	be32_put(buf, kind == REC_LENGTH ? bytes_le(head + 2, 4) : len);
	if (kind == REC_BYTES)
		peer_send(buf + LENGTH_BYTES, len);
	else
		peer_send(buf, LENGTH_BYTES + len);
	return true;
}

static bool run_record(struct bytes *b)
{
	const uint8_t *kind = bytes_take(b, 1), *p;

	switch (kind ? *kind % REC_KINDS : REC_KINDS) {
	case REC_FRAME:
	case REC_LENGTH:
	case REC_BYTES:
		return run_bytes(b, *kind % REC_KINDS);
	case REC_OUT:
		p = bytes_take(b, 1);
		if (p)
			frames_out(*p);
		return p;
	case REC_READ:
		p = bytes_take(b, 1);
		if (p)
			peer_read(1 + *p * 256u);
		return p;
	case REC_LEAVE:
		peer_leave();
		peer_come();
		return true;
	default:
		return false;
	}
}

static void drain(void *arg)
{
	engine_input(arg);
}

static void device_got(void *arg, const struct packet *p)
{
	(void)arg;
	CHECK(p->len <= UPLINK_FRAME_BYTES && p->nseg <= 1);
}

static void start(void)
{
	static const struct switch_port_ops ops = { .deliver = device_got };
	struct uplink_spec spec = { .kind = "stream", .name = "stream", .path = addr.sun_path };
	struct uplink_host host = { .drain = drain, .arg = &rig.engine };

	rig_start();
	for (int i = 0; i < 2; i++) {
		rig_bring_up(i);
		rig_innocent(i);
	}
	rig_join(0, 1);
	loop = loop_new();
	port = switch_port_add(rig.engine.sw, "device", &ops, NULL);
	CHECK(loop && port && !switch_port_set_mac(port, device_mac));
	switch_port_set_up(port, true);
	loop_set_work(loop, work, NULL);
	host.loop = loop;
	host.sw = rig.engine.sw;
	host.pool = &rig.engine.pool;
	rig_address(&addr, "stream");
	CHECK(!uplink_open(&host, &spec, &up));
	frames = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data, size };

	start();
	peer_come();
	while (run_record(&b))
		;
	peer_leave();
	peer_come();
	peer_send((const uint8_t [LENGTH_BYTES + 1]) { 0, 0, 0, 1, 0 }, LENGTH_BYTES + 1);
	peer_leave();
	rig_break();
	for (int i = 0; i < 2; i++)
		rig_check_memory(i);
	rig_check_innocent(0, 1);
	uplink_close(up);
	switch_port_del(port);
	loop_free(loop);
	rig_stop();
	return 0;
}

/* ---- creating and mutating records ------------------------------------------------- */

static size_t record_length(const uint8_t *p, size_t left)
{
	static const uint8_t fixed[REC_KINDS] = { 3, 7, 3, 2, 2, 1 };
	size_t len = left ? fixed[*p % REC_KINDS] : 0;

	if (!len || len > left)
		return 0;
	if (*p % REC_KINDS <= REC_BYTES)
		len += bytes_le(p + 1, 2) % BODY_MAX;
	return len <= left ? len : 0;
}

static size_t make_record(struct dice *d, uint8_t *p, size_t max)
{
	uint32_t len = dice_below(d, 4) ? dice_below(d, 100) : dice_below(d, BODY_MAX);
	uint32_t number = dice_number(d);
	size_t at = 3;

	(void)max;
	p[0] = dice_below(d, REC_KINDS);
	if (p[0] > REC_BYTES) {
		p[1] = dice_below(d, 256);
		return p[0] == REC_LEAVE ? 1 : 2;
	}
	p[1] = len;
	p[2] = len >> 8;
	if (p[0] == REC_LENGTH) {
		number = dice_below(d, 4) ? dice_below(d, UPLINK_FRAME_BYTES + 2) : number;
		memcpy(p + at, &number, 4);
		at += 4;
	}
	memset(p + at, 0, len);
	for (uint32_t i = 0; i + 4 <= len; i += 64)
		be32_put(p + at + i, dice_below(d, 128));
	return at + len;
}

static size_t change_record(struct dice *d, uint8_t *p, size_t len, size_t max)
{
	size_t head = *p % REC_KINDS <= REC_BYTES ? 3 : 1;

	(void)max;
	if (len > head)
		p[head + dice_below(d, len - head)] = dice_number(d);
	return len;
}

static const struct record_kind kind = { record_length, make_record, change_record };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	return records_mutate(&kind, data, size, max, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb,
				 uint8_t *out, size_t max, unsigned int seed)
{
	return records_cross(&kind, a, na, b, nb, out, max, seed);
}
