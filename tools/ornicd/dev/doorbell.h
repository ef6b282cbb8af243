/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doorbell pages (ORN-DB).
 */
#ifndef ORNICD_DEV_DOORBELL_H
#define ORNICD_DEV_DOORBELL_H

#include <stdint.h>

struct function;

/* doorbell_write() - handle a store at @off, counted from the first doorbell page */
void doorbell_write(struct function *f, uint64_t off, unsigned int len, uint64_t val);

/*
 * doorbell_all() - begin to treat every ring as rung, because doorbells may have been missed
 * doorbell_some() - continue with some of them; called once per iteration while @f->ringing is set
 */
void doorbell_all(struct function *f);
void doorbell_some(struct function *f);

#endif /* ORNICD_DEV_DOORBELL_H */
