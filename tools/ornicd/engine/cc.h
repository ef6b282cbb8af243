/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Congestion control of connections: marks, notifications, rates.
 *
 * A congested switch marks packets (ECN). Their receiver, the notification point, sends a
 * congestion notification packet to the sender (CNP, IBTA annex A17.9; cnp.c). The sender, the
 * reaction point, lowers its rate and raises it again over time (dcqcn.c: DCQCN, Zhu et al.,
 * "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015). A queue pair that never
 * received a CNP has no cost.
 *
 * No timer runs for this. Elapsed time is applied when a packet is sent, when a CNP arrives, and
 * when a queue pair that waits for its rate wakes up.
 */
#ifndef ORNICD_ENGINE_CC_H
#define ORNICD_ENGINE_CC_H

#include "../packet/packet.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct qp;

/*
 * Parameters: name, default, lowest and highest value. Names and units are those of mlx5 in Linux
 * (cc_params in debugfs).
 *
 * np_min_time_between_cnps  us: shortest time between two CNPs of a queue pair; 50 as in the
 *			     paper, about the time in which a change of the rate shows an effect
 * np_cnp_dscp		     DSCP of CNPs; 48 (network control), as adapters have it
 * rp_time_reset	     us: period of the timer that raises the rate
 * rp_byte_reset	     bytes: period of the byte counter that raises the rate; 0: timer only
 * rp_threshold		     number of fast recovery steps: each takes back half of the reduction
 * rp_ai_rate		     Mbit/s: additive increase, after fast recovery
 * rp_hai_rate		     Mbit/s: hyper increase, after both timer and byte counter expired
 *			     more than rp_threshold times
 * rp_max_rate		     Mbit/s: rate of a queue pair before its first CNP, and rate at which it
 *			     is unlimited again; always the limit of a connection whose peer is
 *			     behind a port or a rate-limited link; 0: the port's speed
 * rp_min_rate		     Mbit/s: lowest rate
 * rp_min_dec_fac	     per cent: least part of the rate that remains after a CNP
 * rp_rate_to_set_on_first_cnp Mbit/s: rate after the first CNP, but at least rp_min_rate; 0: as
 *			     after any other
 * rp_dce_tcp_g		     1/1024: weight in the estimate of congestion of each CNP, and of each
 *			     period without one
 * rp_dce_tcp_rtt	     us: period in which the estimate decreases once
 * rp_rate_reduce_monitor_period us: a CNP within this time after another one is ignored
 * rp_initial_alpha_value    1/1024: estimate before the first CNP
 */
#define CC_PARAMS(C)						\
	C(np_min_time_between_cnps, 50, 0, 1000000)		\
	C(np_cnp_dscp, 48, 0, 63)				\
	C(rp_time_reset, 200, 1, 1000000)			\
	C(rp_byte_reset, 1 << 20, 0, 1 << 30)			\
	C(rp_threshold, 5, 1, 31)				\
	C(rp_ai_rate, 5, 1, 100000)				\
	C(rp_hai_rate, 50, 1, 100000)				\
	C(rp_max_rate, 10000, 0, 100000)			\
	C(rp_min_rate, 1, 1, 100000)				\
	C(rp_min_dec_fac, 50, 1, 100)				\
	C(rp_rate_to_set_on_first_cnp, 0, 0, 100000)		\
	C(rp_dce_tcp_g, 4, 1, 1024)				\
	C(rp_dce_tcp_rtt, 55, 1, 1000000)			\
	C(rp_rate_reduce_monitor_period, 50, 0, 1000000)		\
	C(rp_initial_alpha_value, 1024, 0, 1024)

enum cc_param_index {
#define CC_ENUM(name, value, least, most)	CC_##name,
	CC_PARAMS(CC_ENUM)
#undef CC_ENUM
	CC_PARAM_COUNT,
};

/**
 * struct cc_range - default and range of a parameter
 * @name:	name
 * @value:	default
 * @least:	lowest value
 * @most:	highest value
 */
struct cc_range {
	const char *name;
	uint32_t value;
	uint32_t least;
	uint32_t most;
};

extern const struct cc_range cc_ranges[CC_PARAM_COUNT];

/**
 * struct cc_param - congestion control of all devices of an engine
 * @on:		send data packets of connections as ECN capable (ECT), answer marks with CNPs and
 *		obey CNPs
 * @v:		parameters by enum cc_param_index
 */
struct cc_param {
	bool on;
	uint32_t v[CC_PARAM_COUNT];
};

/** CC_ONE - highest value of the estimate of congestion */
#define CC_ONE	(1u << 20)

/**
 * struct cc - congestion control of one queue pair
 * @limiting:	the reaction point limits the rate; members up to @byte_stage are valid only then
 * @rate:	current rate, kbit/s
 * @target:	rate before the last reduction, plus increases, kbit/s
 * @alpha:	estimate of congestion, 0 to CC_ONE
 * @alpha_at:	time to which @alpha was brought up to date, ns
 * @cut_at:	time of the last reduction, ns
 * @timer_at:	time when the timer last expired, ns
 * @bytes:	bytes sent since the byte counter last expired
 * @time_stage, @byte_stage: expiries of timer and byte counter since the last reduction
 * @cnp_at:	notification point: time of the last CNP sent, ns; 0 = never
 */
struct cc {
	bool limiting;
	uint32_t rate;
	uint32_t target;
	uint32_t alpha;
	uint64_t alpha_at;
	uint64_t cut_at;
	uint64_t timer_at;
	uint64_t bytes;
	uint32_t time_stage;
	uint32_t byte_stage;
	uint64_t cnp_at;
};

/* cc_defaults() - switch congestion control on, with the default parameters */
void cc_defaults(struct cc_param *p);

/*
 * cc_set() - set parameter @name to @value
 * Return: 0, -ENOENT if there is no such parameter, -ERANGE if the value is out of range.
 */
int cc_set(struct cc_param *p, const char *name, uint64_t value);

/* cc_max_kbps() - return rp_max_rate in kbit/s, the port's speed for 0 */
uint32_t cc_max_kbps(const struct cc_param *p);

/* dcqcn.c, the reaction point: times in ns */

/*
 * dcqcn_cnp() - reduce the rate because of a CNP
 * Return: false if the CNP is ignored (rp_rate_reduce_monitor_period).
 */
bool dcqcn_cnp(struct cc *c, const struct cc_param *p, uint64_t now);
/*
 * dcqcn_advance() - apply the time up to @now and @bytes sent to the rate, which is limited
 * Return: true if the timer or the byte counter expired, or if the rate is no longer limited.
 */
bool dcqcn_advance(struct cc *c, const struct cc_param *p, uint32_t bytes, uint64_t now);
/* dcqcn_next() - return the time when the timer expires */
uint64_t dcqcn_next(const struct cc *c, const struct cc_param *p);

/* cnp.c */

/* cc_changed() - apply changed parameters of @e to the rates of remote connections */
void cc_changed(struct engine *e);
/* cc_reset() - reset the congestion state of @qp */
void cc_reset(struct qp *qp);
/* cc_sent() - update the rate of @qp, which CNPs limit, after it sent @bytes (0: time passed) */
void cc_sent(struct qp *qp, uint32_t bytes);
/* cnp_notify() - send a CNP, unless too soon, for @p, which reached @qp with a congestion mark */
void cnp_notify(struct qp *qp, const struct packet *p);
/* cnp_receive() - process a CNP that arrived for @qp */
void cnp_receive(struct qp *qp);

#endif /* ORNICD_ENGINE_CC_H */
