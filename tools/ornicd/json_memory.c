// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of jansson, with a reserve.
 */
#include "json_memory.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/** RESERVE - bytes; a text of a few kilobytes and the strings in it */
#define RESERVE	(256u << 10)

static _Alignas(max_align_t) uint8_t reserve[RESERVE];	/* takes no memory until it is used */
static size_t used;
static bool is_short;

static void *json_memory(size_t bytes)
{
	size_t room = (bytes + _Alignof(max_align_t) - 1) & -_Alignof(max_align_t);
	void *mem = malloc(bytes);

	if (mem)
		return mem;
	is_short = true;
	if (room < bytes || room > RESERVE - used)
		return NULL;
	used += room;
	return reserve + used - room;
}

void json_memory_free(void *mem)
{
	if ((uintptr_t)mem - (uintptr_t)reserve >= RESERVE)
		free(mem);
}

void json_memory_begin(void)
{
	used = 0;
	is_short = false;
	json_set_alloc_funcs(json_memory, json_memory_free);
}

void json_memory_failed(void)
{
	is_short = true;
}

bool json_memory_short(void)
{
	return is_short;
}
