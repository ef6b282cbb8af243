// SPDX-License-Identifier: GPL-2.0
/*
 * Version and capabilities: the first message of a client, JSON both ways.
 *
 * Two capabilities of the client are used: the most data that it takes in one reply, and whether it
 * can batch writes. QEMU 11.1 batches writes once more than 1024 messages wait, and only if the
 * server advertises write_multiple. Without batches its queue of posted writes has no bound when
 * doorbells come faster than they are read.
 */
#include "command.h"

#include "../json_memory.h"
#include "../log.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Longest capabilities in bytes: bounds the parser's work; QEMU sends far less */
#define JSON_MAX	4096

/**
 * struct version_caps - capabilities of the client
 * @max_xfer:		most bytes of data that it takes in one reply
 * @write_multiple:	it can send VFU_REGION_WRITE_MULTI
 */
struct version_caps {
	uint32_t max_xfer;
	bool write_multiple;
};

static int version_read_caps(struct log_source *log, json_t *root, struct version_caps *caps)
{
	json_t *all = json_object_get(root, "capabilities");
	json_t *xfer = json_object_get(all, "max_data_xfer_size");
	json_t *multi = json_object_get(all, "write_multiple");

	if (!json_is_object(root) || (all && !json_is_object(all)) ||
	    (xfer && (!json_is_integer(xfer) || json_integer_value(xfer) < 1)) ||
	    (multi && !json_is_boolean(multi))) {
		log_from(log, LOG_ERR, "client's capabilities have a member of the wrong kind");
		return -EINVAL;
	}
	if (xfer && json_integer_value(xfer) < VFU_MAX_XFER)
		caps->max_xfer = json_integer_value(xfer);
	caps->write_multiple = json_is_true(multi);
	return 0;
}

static int version_parse(struct log_source *log, const char *text, size_t len,
			 struct version_caps *caps)
{
	json_error_t error;
	json_t *root;
	int err;

	if (!len)
		return 0;
	if (len > JSON_MAX || text[len - 1]) {
		log_from(log, LOG_ERR,
			 "client's capabilities are longer than %u bytes or not ended by NUL",
			 JSON_MAX);
		return -EINVAL;
	}
	root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (json_memory_short()) {
		json_decref(root);
		return -ENOMEM;
	}
	if (!root) {
		log_from(log, LOG_ERR, "client's capabilities are no JSON: %s", error.text);
		return -EINVAL;
	}
	err = version_read_caps(log, root, caps);
	json_decref(root);
	return err;
}

static char *version_own_caps(const struct version_caps *caps)
{
	char *text = NULL;
	json_t *root;

	root = json_pack("{s:{s:i,s:i,s:i,s:i}}", "capabilities",
			 "max_msg_fds", VFU_MAX_FDS,
			 "max_data_xfer_size", (int)VFU_MAX_XFER,
			 "max_dma_maps", GPA_MAX,
			 "pgsizes", (int)VFU_PAGE_SIZE);
	if (!root)
		return NULL;
	/* Offer nothing else: QEMU 11.1 warns of "spurious capabilities" that it does not know. */
	if (!caps->write_multiple ||
	    !json_object_set_new(json_object_get(root, "capabilities"), "write_multiple",
				 json_true()))
		text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text;
}

/**
 * vfu_version() - VFU_VERSION: agree on version and limits
 * @ep:	endpoint
 * @m:	request
 *
 * Return: 0 or VFU_CLOSE().
 */
int vfu_version(struct vfu_endpoint *ep, struct vfu_msg *m)
{
	struct version_caps caps = { .max_xfer = VFU_MAX_XFER };
	struct log_source *log = &ep->func->log;
	struct vfu_version version;
	char *text;
	int err;

	err = vfu_payload(ep, m, &version, sizeof(version));
	if (err)
		return err;
	if (version.major != VFU_MAJOR) {
		log_from(log, LOG_ERR, "client wants vfio-user %u.%u, this server speaks %u.%u",
			 version.major, version.minor, VFU_MAJOR, VFU_MINOR);
		return VFU_CLOSE(ENOTSUP);
	}
	json_memory_begin();
	err = version_parse(log, (const char *)m->payload + sizeof(version),
			    m->len - sizeof(version), &caps);
	text = err ? NULL : version_own_caps(&caps);
	if (!err && (!text || json_memory_short()))
		err = -ENOMEM;
	if (err == -ENOMEM)
		log_from(log, LOG_ERR, "no memory for a client's version");
	if (err) {
		json_memory_free(text);
		return VFU_CLOSE(-err);
	}
	version.minor = VFU_MINOR;
	vfu_answer(m, &version, sizeof(version));
	vfu_answer(m, text, strlen(text) + 1);
	json_memory_free(text);
	ep->client_xfer = caps.max_xfer;
	endpoint_attach(ep);
	return 0;
}
