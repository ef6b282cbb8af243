/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device in the test's own process: the real function on the real engine, behind
 * the operations that the vfio-user server would call, and a test host in front.
 */
#ifndef UNIT_LIB_INPROC_H
#define UNIT_LIB_INPROC_H

#include "dev/function.h"
#include "engine/engine.h"
#include "vfu/endpoint.h"

#include "host.h"
#include "queue.h"

#include <ornic/srq.h>

#define INPROC_BASE	0x100000000ull
#define INPROC_BYTES	(16u << 20)

/** INPROC_FEATURES - everything the device offers */
#define INPROC_FEATURES	FEATURES

/**
 * struct inproc - see above
 * @engine:	data path
 * @f:		the function
 * @ep:		its PCI side
 * @host:	test host
 * @eq0, @eq1:	event queues after inproc_setup_ready()
 * @pd:		protection domain
 * @cq:		completion queue
 */
struct inproc {
	struct engine engine;
	struct function *f;
	struct vfu_endpoint ep;
	struct host host;
	struct host_ring eq0;
	struct host_ring eq1;
	uint32_t pd;
	struct host_ring cq;
};

/* cmocka fixtures: a device that is disabled, or one that is up with a PD and a CQ */
int inproc_setup(void **state);
int inproc_setup_ready(void **state);
int inproc_teardown(void **state);

/* inproc_bus_master() - change bus mastering as the guest does */
void inproc_bus_master(struct inproc *p, bool on);
/* inproc_flr() - do a function level reset */
void inproc_flr(struct inproc *p);
/* inproc_connect_self() - bring the port up, set GID 0, and connect an RC queue pair with itself */
void inproc_connect_self(struct inproc *p, struct host_qp *qp);
/* inproc_turn() - call the work hook as the daemon does */
void inproc_turn(void *arg);
uint64_t inproc_counter(struct inproc *p, enum counter c);

/* inproc_srq() - return a legal SRQ_CREATE, with a new record and ring; needs inproc_setup_ready() */
struct ornic_srq_create_cmd inproc_srq(struct inproc *p);

/* inproc_later() - a clock of the engine that is two seconds fast, to let timers expire */
uint64_t inproc_later(void);

#endif /* UNIT_LIB_INPROC_H */
