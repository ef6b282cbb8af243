/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which bytes of two areas, one at each end, belong to which message.
 *
 * Both ends compute the same layout from the same parameters. A piece is one
 * message; at each end it lies in one part or, with scatter/gather, in several,
 * and guards fill all space between the parts. Checking an area therefore
 * accounts for every byte of it.
 */
#ifndef GUEST_LAYOUT_H
#define GUEST_LAYOUT_H

#include "report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIECES_MAX	224
#define PARTS_MAX	16
#define GUARD		64	/* least number of guard bytes between parts */

enum end { CLIENT, SERVER };

struct part {
	size_t off;
	size_t len;
};

struct piece {
	size_t len;
	uint64_t seed;
	uint64_t after;			/* atomics: stream of the remote word afterwards */
	unsigned int parts[2];
	struct part part[2][PARTS_MAX];
};

struct layout {
	unsigned int pieces;
	size_t size[2];
	struct piece piece[PIECES_MAX];
};

struct area {
	uint8_t *base;
	size_t size;
};

enum lengths {
	LEN_BOUNDARIES,		/* around every boundary, and all alignments */
	LEN_NOT_EMPTY,		/* the same without empty messages */
	LEN_WORD,		/* eight bytes, aligned at the server */
	LEN_BIG,		/* one message of the limit */
};

/* limit: longest message; parts[]: most parts per piece at each end. */
void layout_make(struct layout *l, enum lengths kind, unsigned int mtu, size_t limit,
		 const unsigned int parts[2]);

/* Return false if there is no memory, or no huge pages. */
bool area_create(struct area *a, size_t size, bool huge);
void area_destroy(struct area *a);
/* Fill the area with guards; with data, also with the pieces' patterns in their places. */
void area_fill(struct area *a, const struct layout *l, enum end end, bool data);
/*
 * Compare every byte; after: pieces hold the results of atomics. Return a checksum of the
 * pieces.
 */
uint64_t area_check(struct area *a, const struct layout *l, enum end end, bool after,
		    struct verdict *v);

#endif
