/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An admin command that is being executed, functions that handlers share, and the handlers.
 *
 * A handler checks everything, then acts; on failure nothing has changed (ORN-ADM-16). A
 * handler with much to do takes several iterations of the engine (progress.h). Input is a
 * private copy with the length of the layout, padded with zeros. Output is initially zero.
 *
 * Functions that return uint8_t return an enum ornic_status, and set @syndrome of the command on
 * failure. All run between iterations of the engine, on its thread.
 */
#ifndef ORNICD_DEV_COMMAND_H
#define ORNICD_DEV_COMMAND_H

#include "function.h"

#include "../engine/umem.h"

#include <ornic/admin.h>
#include <ornic/ring.h>
#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct command - a command that is being executed
 * @f:		function
 * @dev:	device of the function
 * @number:	number of the object; a create command returns the new number here
 * @in:		input layout
 * @out:	output layout
 * @out_max:	bytes of the host's output buffer
 * @out_size:	bytes of the output layout; commands that return lists set it
 * @syndrome:	syndrome for the completion
 */
struct command {
	struct function *f;
	struct device *dev;
	uint32_t number;
	const void *in;
	void *out;
	uint32_t out_max;
	uint32_t out_size;
	uint32_t syndrome;
};

bool command_execute(struct function *f, struct ornic_admin_cpl *cpl);

/* command_reject() - set the syndrome to the offset of input field @field. Return: @status */
uint8_t command_reject(struct command *c, uint8_t status, const void *field);
/* command_zero() - check that @len bytes from @field on are zero: RESERVED if not */
uint8_t command_zero(struct command *c, const void *field, size_t len);
/* command_need() - check that the host accepted @feature: UNSUPPORTED if not */
uint8_t command_need(struct command *c, uint64_t feature, const void *field);
/* command_record() - check the address of a doorbell record: BAD_PARAM, DMA_ERROR */
uint8_t command_record(struct command *c, const __le64 *field, uint64_t *rec);
/*
 * command_ring() - load the page list of a ring of 2^@log entries of 2^@stride bytes into @mem
 * @write: the device writes the entries.
 */
uint8_t command_ring(struct command *c, const struct ornic_pages *field, uint8_t log,
		     uint8_t stride, bool write, struct umem *mem);
/* command_dbpage() - check the number of a doorbell page: BAD_PARAM */
uint8_t command_dbpage(struct command *c, const __le32 *field, uint32_t *page);
/* command_number() - add @obj to @t and return its number in @c->number: LIMIT, NO_RESOURCE */
uint8_t command_number(struct command *c, struct table *t, void *obj);

#define COMMAND_ZERO(c, member)	command_zero(c, &(member), sizeof(member))

/* Handlers, by file */
uint8_t cmd_nop(struct command *c);			/* identify.c */
uint8_t cmd_identify(struct command *c);
uint8_t cmd_set_features(struct command *c);
uint8_t cmd_host_info(struct command *c);
uint8_t cmd_clock_read(struct command *c);
uint8_t cmd_stat_names(struct command *c);		/* stats.c */
uint8_t cmd_stat_read(struct command *c);
uint8_t cmd_eq_create(struct command *c);		/* eq.c */
uint8_t cmd_eq_modify(struct command *c);
uint8_t cmd_eq_query(struct command *c);
uint8_t cmd_eq_destroy(struct command *c);
uint8_t cmd_pd_create(struct command *c);		/* pd.c */
uint8_t cmd_pd_destroy(struct command *c);
uint8_t cmd_xrcd_create(struct command *c);		/* xrcd.c */
uint8_t cmd_xrcd_destroy(struct command *c);
uint8_t cmd_key_create(struct command *c);		/* mr.c */
uint8_t cmd_key_query(struct command *c);
uint8_t cmd_key_destroy(struct command *c);
uint8_t cmd_key_modify(struct command *c);		/* rereg.c */
uint8_t cmd_dm_create(struct command *c);		/* dm.c */
uint8_t cmd_dm_destroy(struct command *c);
uint8_t cmd_cq_create(struct command *c);		/* cq.c */
uint8_t cmd_cq_modify(struct command *c);
uint8_t cmd_cq_query(struct command *c);
uint8_t cmd_cq_destroy(struct command *c);
uint8_t cmd_cq_resize(struct command *c);
uint8_t cmd_srq_create(struct command *c);		/* srq.c */
uint8_t cmd_srq_modify(struct command *c);
uint8_t cmd_srq_query(struct command *c);
uint8_t cmd_srq_destroy(struct command *c);
uint8_t cmd_srq_resize(struct command *c);
uint8_t cmd_qp_create(struct command *c);		/* qp.c */
uint8_t cmd_qp_destroy(struct command *c);
uint8_t cmd_qp_modify(struct command *c);		/* qp_modify.c */
uint8_t cmd_qp_query(struct command *c);		/* qp_query.c */
uint8_t cmd_port_modify(struct command *c);		/* port.c */
uint8_t cmd_port_query(struct command *c);
uint8_t cmd_set_gid(struct command *c);			/* gid.c */
uint8_t cmd_get_gid(struct command *c);
uint8_t cmd_rule_create(struct command *c);		/* steer.c */
uint8_t cmd_rule_destroy(struct command *c);
uint8_t cmd_rss_create(struct command *c);		/* rss.c */
uint8_t cmd_rss_destroy(struct command *c);
uint8_t cmd_counter_create(struct command *c);		/* counter_set.c */
uint8_t cmd_counter_destroy(struct command *c);
uint8_t member_create(struct command *c);		/* mcast.c: rules of kind MEMBER */
uint8_t member_destroy(struct command *c);

/*
 * Functions that KEY_CREATE and KEY_MODIFY share
 *
 * key_get() - return the key whose index is that of @key, or NULL; the tag is not compared
 * key_check_access() - check the rights
 * key_check_flags() - check the flags
 * key_check_region() - check length, address and page list of a region
 * key_load() - load the page list of a region and find its file, over several iterations
 * key_find_file() - find the file behind @mem if @access has FLUSH_PERSISTENT (ORN-MEM-23), over
 * several iterations
 * key_take() - move what these two loaded to @mr, and count its pages; for commands that succeed
 * key_unload() - release page list, file, device memory and window binding of @mr
 */
struct mr;
struct ornic_key_create_cmd;
struct mr *key_get(struct device *dev, uint32_t key);
uint8_t key_check_access(struct command *c, const struct ornic_key_create_cmd *in);
uint8_t key_check_flags(struct command *c, const struct ornic_key_create_cmd *in);
uint8_t key_check_region(struct command *c, const struct ornic_key_create_cmd *in);
uint8_t key_load(struct command *c, const struct ornic_key_create_cmd *in, uint32_t access);
uint8_t key_find_file(struct command *c, const struct ornic_key_create_cmd *in, uint32_t access,
		      const struct umem *mem);
void key_take(struct command *c, struct mr *mr);
void key_unload(struct device *dev, struct mr *mr);

/*
 * key_check_dm() - check a key of device memory
 * key_load_dm() - make @mr refer to the block of device memory
 */
uint8_t key_check_dm(struct command *c, const struct ornic_key_create_cmd *in);
void key_load_dm(struct command *c, const struct ornic_key_create_cmd *in, struct mr *mr);

/* key_need_features() - reject rights whose feature was not accepted */
uint8_t key_need_features(struct command *c, const __le32 *access);

/* Release object @number, even one in use: teardown.c has the order */
void eq_release(struct device *dev, uint32_t number, void *obj);
void pd_release(struct device *dev, uint32_t number, void *pd);
void xrcd_release(struct device *dev, uint32_t number, void *xrcd);
void key_release(struct device *dev, uint32_t index, void *obj);
void cq_release(struct device *dev, uint32_t number, void *obj);
void srq_release(struct device *dev, uint32_t number, void *obj);
void qp_release(struct device *dev, uint32_t number, void *obj);
void counter_set_release(struct device *dev, uint32_t number, void *obj);
void rule_release(struct device *dev, uint32_t number, void *obj);
void rss_release(struct device *dev, uint32_t number, void *obj);
/* key_unbind() - unbind a window or a fast registration; other keys are ignored */
void key_unbind(struct device *dev, uint32_t index, void *mr);

/* xrcd_get() - return the XRC domain with that number, or NULL */
struct xrcd;
struct xrcd *xrcd_get(struct device *dev, uint32_t number);

/* srq_get() - return the shared receive queue with that number, or NULL */
struct srq;
struct srq *srq_get(struct device *dev, uint32_t number);

/* identify_port() - fill in Identify page 1 with the current state of the port */
struct ornic_identify_port;
void identify_port(const struct function *f, struct ornic_identify_port *page);

/*
 * counter_set_get() - return the counter set with that number, or NULL
 * counter_set_use() - bind @qp to @set, or to none (NULL)
 * counter_sets_sum() - add up the counters of all sets, including destroyed ones
 */
struct counter_set *counter_set_get(struct device *dev, uint32_t number);
void counter_set_use(struct qp *qp, struct counter_set *set);
void counter_sets_sum(struct device *dev, uint64_t sum[CNT_COUNT]);

/* pd_get() - return the protection domain with that number, or NULL */
static inline struct pd *pd_get(struct device *dev, uint32_t number)
{
	return table_get(&dev->pds, number);
}

#endif /* ORNICD_DEV_COMMAND_H */
