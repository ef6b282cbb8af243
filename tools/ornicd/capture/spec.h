/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is to be captured, as a user says it.
 */
#ifndef ORNICD_CAPTURE_SPEC_H
#define ORNICD_CAPTURE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** CAPTURE_PORTS - most ports that a capture may name */
#define CAPTURE_PORTS		32
/** CAPTURE_SNAPLEN - bytes of a frame that are kept unless less is wished: all of any frame */
#define CAPTURE_SNAPLEN		262144
/** CAPTURE_BUFFER - bytes that may wait for the file unless another number is wished */
#define CAPTURE_BUFFER		(32u << 20)

/**
 * struct capture_port - a port of the switch
 * @name:	its name
 * @device:	a device's; else one to the outside
 */
struct capture_port {
	char *name;
	bool device;
};

/**
 * struct capture_spec - what is to be captured, and where to
 * @path:	file; "-" is standard output
 * @port:	ports, @nports of them; none: all
 * @nports:	number of @port
 * @one_qp:	only packets from or to queue pair @qpn
 * @qpn:	its number, as on the wire
 * @snaplen:	bytes of a frame that are kept
 * @limit:	most bytes of the file; 0: no limit
 * @buffer:	bytes that may wait to be written
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
 * capture_spec_parse() - "FILE[,key=value]..."
 * Return: 0 or a negative errno; @why, of @room bytes, then says in a line what is wrong. After
 * success, capture_spec_free() is due.
 */
int capture_spec_parse(struct capture_spec *spec, const char *text, char *why, size_t room);
/* capture_spec_copy() - Return: 0 or -ENOMEM */
int capture_spec_copy(struct capture_spec *to, const struct capture_spec *from);
void capture_spec_free(struct capture_spec *spec);

#endif /* ORNICD_CAPTURE_SPEC_H */
