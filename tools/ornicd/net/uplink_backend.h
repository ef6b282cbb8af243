/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is between an uplink and its backend.
 */
#ifndef ORNICD_NET_UPLINK_BACKEND_H
#define ORNICD_NET_UPLINK_BACKEND_H

#include "uplink.h"
#include "../packet/frames.h"

/** UPLINK_FRAME_BYTES - the longest frame */
#define UPLINK_FRAME_BYTES	FRAMES_MAX_BYTES
/** UPLINK_BATCH - frames sent or received at once */
#define UPLINK_BATCH		32
/**
 * UPLINK_KEEP - a frame with no more payload is copied and waits for others to go with it: copying
 * costs less than a system call of its own
 */
#define UPLINK_KEEP		256
/** UPLINK_TX_IOV - pieces of a batch; a frame has one for the backend's use, headers, payload, tail */
#define UPLINK_TX_IOV		1024

/**
 * struct uplink_frame - a frame to be sent
 * @iov:	its pieces; the first is empty, for a backend that needs something in front
 * @niov:	how many
 * @len:	bytes
 */
struct uplink_frame {
	struct iovec *iov;
	uint32_t niov;
	uint32_t len;
};

/**
 * struct uplink_backend - a way to carry frames
 * @kind:	its name
 * @open:	Return: 0, or a negative errno after a log line; on failure nothing is left
 * @close:	undo @open
 * @send:	send frames in their order until one does not go. Return: how many went
 * @is_up:	return true if a peer is connected, or the interface is up; NULL: unknown
 */
struct uplink_backend {
	const char *kind;
	int (*open)(struct uplink *u, const struct uplink_spec *spec);
	void (*close)(struct uplink *u);
	uint32_t (*send)(struct uplink *u, struct uplink_frame *f, uint32_t n);
	bool (*is_up)(struct uplink *u);
};

extern const struct uplink_backend uplink_tap;
extern const struct uplink_backend uplink_packet;
extern const struct uplink_backend uplink_dgram;
extern const struct uplink_backend uplink_udp;
extern const struct uplink_backend uplink_stream;

struct loop *uplink_loop(struct uplink *u);
/* uplink_busy() - as struct uplink_host has it */
bool uplink_busy(const struct uplink *u);
void *uplink_private(struct uplink *u);
void uplink_set_private(struct uplink *u, void *data);

/* uplink_buffers() - make the buffers of a socket large enough for the bursts of some queue pairs */
void uplink_buffers(int fd);

/* uplink_gone() - tell the user that the interface was deleted, and what to do; once */
void uplink_gone(struct uplink *u);

/* uplink_input() - a frame came; @frame stays as it is until uplink_input_done() */
void uplink_input(struct uplink *u, uint8_t *frame, uint32_t len);
/* uplink_malformed() - instead of it: what came, of @len bytes, is no frame, or not all of it */
void uplink_malformed(struct uplink *u, uint32_t len);
/* uplink_input_done() - at the end of at most UPLINK_BATCH of them */
void uplink_input_done(struct uplink *u);

#endif /* ORNICD_NET_UPLINK_BACKEND_H */
