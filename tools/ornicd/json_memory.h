/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of jansson. Its parser ignores a failed allocation for the text of a string (jansson
 * 2.14, lex_save()): it drops a character, and if that is the closing quote, it writes beyond its
 * buffer. So an allocation that fails is served from a reserve, and the caller checks
 * json_memory_short() afterwards.
 */
#ifndef ORNICD_JSON_MEMORY_H
#define ORNICD_JSON_MEMORY_H

#include <stdbool.h>

/*
 * json_memory_begin() - empty the reserve before a text is parsed or a request is served. All
 * earlier values must have been freed.
 */
void json_memory_begin(void);

/*
 * json_memory_short() - return true if an allocation failed since json_memory_begin(). Values
 * parsed since then must be rejected, and an answer may be incomplete.
 */
bool json_memory_short(void);

/* json_memory_failed() - record that an allocation of the caller failed */
void json_memory_failed(void);

/* json_memory_free() - free a text that json_dumps() returned */
void json_memory_free(void *mem);

#endif /* ORNICD_JSON_MEMORY_H */
