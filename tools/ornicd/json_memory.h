/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of jansson. Its parser does not look whether it got memory for the text of a string
 * (jansson 2.14, lex_save()): it loses a character, and without the closing quote it writes
 * beyond its buffer. So it always gets memory, from a reserve if there is no other, and the
 * caller asks afterwards whether that was so.
 */
#ifndef ORNICD_JSON_MEMORY_H
#define ORNICD_JSON_MEMORY_H

#include <stdbool.h>

/* json_memory_begin() - of a text or of a request; no value from before is alive */
void json_memory_begin(void);

/*
 * json_memory_short() - has memory been short since then? What was parsed since then is to be
 * rejected, and an answer may lack parts.
 */
bool json_memory_short(void);

/* json_memory_failed() - an allocation of the caller's own failed, too */
void json_memory_failed(void);

/* json_memory_free() - free what json_dumps() returned */
void json_memory_free(void *mem);

#endif /* ORNICD_JSON_MEMORY_H */
