/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replies that QEMU survives although it has stopped waiting for them.
 *
 * QEMU (11.1) waits x-msg-timeout, 5 s by default. After that it drops the header of the reply and
 * takes the payload for the next header, which ends the connection. It answers a request that it
 * does not know, and continues. So a late reply has no payload, or one that begins like a request.
 */
#ifndef ORNICD_VFU_LATE_H
#define ORNICD_VFU_LATE_H

#include "message.h"

/** LATE_NS - age from which on a request may be late. Far below 5 s: the reply takes time, too. */
#define LATE_NS 1000000000LL

/*
 * late_reply() - change the payload of a successful reply so that a client that no longer waits
 * survives it. A client that still waits gets from it what QEMU uses of such a reply.
 */
void late_reply(struct vfu_msg *m);

/* late_is_echo() - return true if a client rejects the request that a late reply had become */
bool late_is_echo(const struct vfu_hdr *hdr);

#endif /* ORNICD_VFU_LATE_H */
