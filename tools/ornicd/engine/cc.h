/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Congestion control of connections: marks to notifications to rates.
 *
 * A switch that is congested marks packets (ECN). The receiver, the notification point, tells
 * their sender with a congestion notification packet (CNP, IBTA annex A17.9; cnp.c), and that,
 * the reaction point, sends slower and then gradually faster again (dcqcn.c: DCQCN, Zhu et al.,
 * "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015). A queue pair that never
 * got a notification pays nothing for it.
 *
 * Nothing runs in the background: what time would have changed is made up for when a packet is
 * sent, when a notification comes, and when a queue pair is woken up that waits for its rate.
 */
#ifndef ORNICD_ENGINE_CC_H
#define ORNICD_ENGINE_CC_H

#include "../packet/packet.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct qp;

/*
 * Parameters: name, what it is unless somebody says otherwise, least and highest value. The names
 * are those by which the kernel shows them of mlx5 (cc_params in debugfs), so are the units.
 *
 * np_min_time_between_cnps  us: the notification point sends one CNP per queue pair in that time;
 *			     50 is the paper's: about as often as the reaction point's rate can
 *			     have shown an effect
 * np_cnp_dscp		     DSCP of CNPs; 48, network control, as adapters have it
 * rp_time_reset	     us: the timer that raises the rate
 * rp_byte_reset	     bytes: sending that many raises the rate too; 0: only the timer does
 * rp_threshold		     times that only half of what was lost is taken back: fast recovery
 * rp_ai_rate		     Mbit/s: additive increase after that
 * rp_hai_rate		     Mbit/s: hyper increase, when timer and bytes have gone beyond that
 * rp_max_rate		     Mbit/s: a queue pair begins with this rate when its first CNP comes, and
 *			     is free when it is back there; and connections to peers far away, behind a
 *			     port or a slow link, are never faster; 0: the port's speed
 * rp_min_rate		     Mbit/s: it gets no lower
 * rp_min_dec_fac	     per cent that one CNP leaves of the rate at least
 * rp_rate_to_set_on_first_cnp Mbit/s: rate after the first CNP; 0: as after any other
 * rp_dce_tcp_g		     1/1024: weight of what is new in the estimate of congestion
 * rp_dce_tcp_rtt	     us: the estimate sinks once in that time
 * rp_rate_reduce_monitor_period us: CNPs that come sooner after one are ignored
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

/** struct cc_range - range of a parameter */
struct cc_range {
	const char *name;
	uint32_t value;
	uint32_t least;
	uint32_t most;
};

extern const struct cc_range cc_ranges[CC_PARAM_COUNT];

/**
 * struct cc_param - congestion control of all devices of an engine
 * @on:		data packets of connections say that they react to marks (ECT), marks are
 *		answered with CNPs, and CNPs respected
 * @v:		parameters by enum cc_param_index
 */
struct cc_param {
	bool on;
	uint32_t v[CC_PARAM_COUNT];
};

/** CC_ONE - the estimate of congestion at its highest */
#define CC_ONE	(1u << 20)

/**
 * struct cc - of one queue pair
 * @limiting:	the reaction point holds it back; what follows up to @time_stage means nothing otherwise
 * @rate:	current rate, kbit/s
 * @target:	the rate it strives for
 * @alpha:	estimate of congestion, of CC_ONE
 * @alpha_at:	time up to which @alpha is right
 * @cut_at:	when the rate was last lowered
 * @timer_at:	when the timer last went off
 * @bytes:	sent since the byte counter last went off
 * @time_stage, @byte_stage: how often they went off since the rate was lowered
 * @told_at:	notification point: when the last CNP was sent; 0 = never
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
	uint64_t told_at;
};

/* cc_defaults() - on, all parameters as above */
void cc_defaults(struct cc_param *p);

/*
 * cc_set() - parameter @name becomes @value
 * Return: 0, -ENOENT if there is none, -ERANGE if the value is out of its range.
 */
int cc_set(struct cc_param *p, const char *name, uint64_t value);

/* cc_max_kbps() - rp_max_rate in kbit/s, the port's speed for 0 */
uint32_t cc_max_kbps(const struct cc_param *p);

/* dcqcn.c, the reaction point: times in ns */

/* dcqcn_cnp() - process a CNP. Return: false if it was too soon after the last one. */
bool dcqcn_cnp(struct cc *c, const struct cc_param *p, uint64_t now);
/*
 * dcqcn_advance() - time has passed, and @bytes were sent now
 * Return: whether the timer or the byte counter has gone off.
 */
bool dcqcn_advance(struct cc *c, const struct cc_param *p, uint32_t bytes, uint64_t now);
/* dcqcn_next() - when the timer goes off */
uint64_t dcqcn_next(const struct cc *c, const struct cc_param *p);

/* cnp.c */

/* cc_changed() - after a change of the parameters of @e */
void cc_changed(struct engine *e);
/* cc_reset() - reset the congestion state of @qp */
void cc_reset(struct qp *qp);
/* cc_sent() - @qp, which is being held back, sent @bytes, or none and asks for its rate */
void cc_sent(struct qp *qp, uint32_t bytes);
/* cnp_notify() - a packet with a congestion mark came for @qp: tell its sender */
void cnp_notify(struct qp *qp, const struct packet *p);
/* cnp_receive() - a CNP came for @qp */
void cnp_receive(struct qp *qp);

#endif /* ORNICD_ENGINE_CC_H */
