/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Description of a capture by the user.
 */
#ifndef ORNICD_CAPTURE_SPEC_H
#define ORNICD_CAPTURE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** CAPTURE_PORTS - most ports that a capture may name */
#define CAPTURE_PORTS		32
/** CAPTURE_SNAPLEN - default and largest number of bytes kept of a frame: every frame fits */
#define CAPTURE_SNAPLEN		262144
/** CAPTURE_BUFFER - default size of the ring to the file, bytes */
#define CAPTURE_BUFFER		(32u << 20)

/**
 * struct capture_port - a port of the switch
 * @name:	name
 * @device:	true: port of a device; false: uplink
 */
struct capture_port {
	char *name;
	bool device;
};

/**
 * struct capture_spec - output and filter of a capture
 * @path:	file; "-" is standard output
 * @port:	array of @nports ports to capture
 * @nports:	number of @port; 0: capture all ports
 * @one_qp:	capture packets from or to queue pair @qpn only
 * @qpn:	number of the queue pair, as on the wire
 * @snaplen:	most bytes kept of a frame
 * @limit:	most bytes of the file; 0: no limit
 * @buffer:	size of the ring to the file, bytes
 */
struct capture_spec {
	char *path;
	struct capture_port port[CAPTURE_PORTS];
	uint32_t nports;
	bool one_qp;
	uint32_t qpn;
	uint32_t snaplen;
	uint64_t limit;
	uint32_t buffer;
};

/*
 * capture_spec_parse() - parse "FILE[,key=value]..."; free the result with capture_spec_free()
 * Return: 0, or a negative errno and a message of one line in @why, which has @room bytes.
 */
int capture_spec_parse(struct capture_spec *spec, const char *text, char *why, size_t room);
/* capture_spec_copy() - copy, to be freed with capture_spec_free(). Return: 0 or -ENOMEM. */
int capture_spec_copy(struct capture_spec *to, const struct capture_spec *from);
void capture_spec_free(struct capture_spec *spec);

#endif /* ORNICD_CAPTURE_SPEC_H */
