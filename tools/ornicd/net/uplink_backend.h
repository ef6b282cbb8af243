/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface between an uplink and its backend.
 */
#ifndef ORNICD_NET_UPLINK_BACKEND_H
#define ORNICD_NET_UPLINK_BACKEND_H

#include "uplink.h"
#include "../packet/frames.h"

/** UPLINK_FRAME_BYTES - most bytes of a frame */
#define UPLINK_FRAME_BYTES	FRAMES_MAX_BYTES
/** UPLINK_BATCH - most frames that are sent or received at once */
#define UPLINK_BATCH		32
/**
 * UPLINK_KEEP - most bytes of payload of a frame that is copied and waits to be sent with others,
 * because a copy costs less than a system call
 */
#define UPLINK_KEEP		256
/**
 * UPLINK_TX_IOV - most pieces of a batch; a frame has one for the backend, headers, payload, tail
 */
#define UPLINK_TX_IOV		1024

/**
 * struct uplink_frame - a frame to be sent
 * @iov:	pieces; the first is empty, for a backend that needs a header before the frame
 * @niov:	number of pieces
 * @len:	bytes of the frame
 * @kept:	properties of its packet
 */
struct uplink_frame {
	struct iovec *iov;
	uint32_t niov;
	uint32_t len;
	struct frames_kept kept;
};

/**
 * struct uplink_backend - a way to carry frames
 * @kind:	name
 * @open:	open it, nothing remains open on failure. Return: 0, or a negative errno after an
 *		error line, which may be missing for -ENOMEM
 * @close:	undo @open
 * @send:	send frames in order until one cannot be sent. Return: number of frames sent
 * @is_up:	return true if a peer is connected, or the interface is up; NULL: unknown
 * @lost:	return the number of received frames, modulo 2^32, that the kernel dropped at the
 *		socket because its buffer was full or, of UDP, a checksum was wrong; NULL: the
 *		sender learns about it, or the interface counts it
 */
struct uplink_backend {
	const char *kind;
	int (*open)(struct uplink *u, const struct uplink_spec *spec);
	void (*close)(struct uplink *u);
	uint32_t (*send)(struct uplink *u, struct uplink_frame *f, uint32_t n);
	bool (*is_up)(struct uplink *u);
	uint32_t (*lost)(struct uplink *u);
};

extern const struct uplink_backend uplink_tap;
extern const struct uplink_backend uplink_packet;
extern const struct uplink_backend uplink_dgram;
extern const struct uplink_backend uplink_udp;
extern const struct uplink_backend uplink_stream;

struct loop *uplink_loop(struct uplink *u);
/* uplink_busy() - return @busy of struct uplink_host */
bool uplink_busy(const struct uplink *u);
void *uplink_private(struct uplink *u);
void uplink_set_private(struct uplink *u, void *data);

/* uplink_buffers() - enlarge the buffers of a socket to hold the bursts of some queue pairs */
void uplink_buffers(int fd);

/* uplink_drops() - return how many packets, modulo 2^32, a socket has dropped */
uint32_t uplink_drops(int fd);

/* uplink_gone() - log that the interface was deleted, and what to do; to be called once */
void uplink_gone(struct uplink *u);

/* uplink_input() - pass on a received frame, which must not change before uplink_input_done() */
void uplink_input(struct uplink *u, uint8_t *frame, uint32_t len);
/* uplink_malformed() - count @len received bytes that are no frame, or not a whole one */
void uplink_malformed(struct uplink *u, uint32_t len);
/* uplink_input_done() - deliver the frames; to be called after at most UPLINK_BATCH of them */
void uplink_input_done(struct uplink *u);

#endif /* ORNICD_NET_UPLINK_BACKEND_H */
