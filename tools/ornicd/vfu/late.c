// SPDX-License-Identifier: GPL-2.0
/*
 * Replies that QEMU survives although it has stopped waiting for them: see late.h.
 */
#include "late.h"

#include <string.h>

/* Number of a request that no client knows */
#define LATE_CMD 0xfffe

/*
 * Of the reply to a REGION_READ QEMU uses the count and the data. The count is where a header has
 * its error. The rest of the header takes the place of offset and region.
 */
static void late_read(struct vfu_msg *m)
{
	struct vfu_region_access access;
	struct vfu_hdr hdr = { .id = m->hdr.id, .cmd = LATE_CMD, .size = m->out_len,
			       .flags = VFU_F_COMMAND | VFU_F_NO_REPLY };

	static_assert(sizeof(access) == sizeof(hdr), "header in the place of an access");
	static_assert(offsetof(struct vfu_region_access, count) == offsetof(struct vfu_hdr, error),
		      "error in the place of the count");
	if (m->out_len < sizeof(access))
		return;
	memcpy(&access, m->out, sizeof(access));
	hdr.error = access.count;
	memcpy(m->out, &hdr, sizeof(hdr));
}

void late_reply(struct vfu_msg *m)
{
	switch (m->hdr.cmd) {
	case VFU_REGION_READ:
		late_read(m);
		break;
	case VFU_DMA_MAP:
	case VFU_DMA_UNMAP:
	case VFU_REGION_WRITE:
	case VFU_REGION_WRITE_MULTI:
		m->out_len = 0;		/* QEMU looks at the header only */
		break;
	default:
		break;		/* requests of the start: without the reply QEMU does not begin */
	}
}

bool late_is_echo(const struct vfu_hdr *hdr)
{
	return hdr->cmd == LATE_CMD && (hdr->flags & VFU_F_TYPE) == VFU_F_REPLY;
}
