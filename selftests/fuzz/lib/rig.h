/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the fuzz targets work on: two functions with their hosts on one engine and switch,
 * and an uplink whose other end is the target. Everything is made anew for each input,
 * time stands still unless the target moves it, and random numbers start over, so that an
 * input does the same each time.
 */
#ifndef FUZZ_LIB_RIG_H
#define FUZZ_LIB_RIG_H

#include "dev/function.h"
#include "engine/engine.h"
#include "net/uplink_backend.h"
#include "vfu/endpoint.h"

#include "host.h"
#include "queue.h"

#include <stdio.h>
#include <stdlib.h>

#define RIG_BASE	0x100000000ull
/** RIG_BYTES - memory of a host; the device may reach all but the last RIG_HIDDEN bytes */
#define RIG_BYTES	(2u << 20)
#define RIG_HIDDEN	65536u
#define RIG_RINGS	4
/** RIG_PSN - PSN that connections begin with, near the wrap */
#define RIG_PSN		0xfffff0u
#define RIG_QKEY	0x11u
/** RIG_PEER_QPN - queue pair at the other end of the uplink; that of queue pair i is + i */
#define RIG_PEER_QPN	0x700u

/* CHECK() - what has to be true whatever the input; a finding if it is not */
#define CHECK(cond, ...)							\
	do {									\
		if (!(cond)) {							\
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__,	\
				__LINE__, #cond);				\
			fprintf(stderr, "" __VA_ARGS__);			\
			fputc('\n', stderr);					\
			abort();						\
		}								\
	} while (0)

/* Regions of a host's arena; between them, and in what nobody may read, is the secret. */
enum rig_region {
	RIG_ALL,		/* every right */
	RIG_READ,		/* remote read; the device never writes it */
	RIG_LOCAL,		/* receive buffers: no remote right */
	RIG_WRITE,		/* remote write, and no remote read */
	RIG_OTHER,		/* every right, in another protection domain */
	RIG_WINDOW,		/* windows may be bound; no remote right of its own */
	RIG_REGIONS,
};

#define RIG_REGION_BYTES	8192u
#define RIG_GUARD_BYTES		4096u
#define RIG_STEP		(RIG_REGION_BYTES + RIG_GUARD_BYTES)
#define RIG_ARENA_BYTES		(RIG_REGIONS * RIG_STEP + RIG_GUARD_BYTES)

enum rig_kind {
	RIG_RC,			/* to the uplink, IPv4 */
	RIG_RC_SRQ,		/* to the uplink, IPv6, receives from an SRQ */
	RIG_UC,
	RIG_UD,			/* and member of a group */
	RIG_INI,
	RIG_TGT,
	RIG_RAW,		/* gets frames by rules */
	RIG_GSI,
	RIG_INNOCENT,		/* RC, to the other function */
	RIG_QPS,
};

/** struct rig_queue - one queue pair, or SRQ, and its completions */
struct rig_queue {
	struct host_qp qp;
	struct host_ring cq;
};

/**
 * struct rig_station - a function and its host
 * @f, @ep:	the function, and its PCI side
 * @host:	its host
 * @eq0, @eq1:	event queues
 * @pd, @other_pd: protection domains
 * @arena:	regions
 * @key:	their keys
 * @window:	a type 2 window, bound to nothing at first
 * @open:	bytes of RIG_WINDOW from @open.from to @open.to: what it was bound to may be written
 * @q:		queue pairs
 * @cq_errors:	completion queues that failed
 * @mark:	memory that the admin queue does not need begins here
 * @told:	commands that @command of the rig was told of
 * @srq, @xsrq:	shared receive queues; their ring is @qp.rq
 */
struct rig_station {
	struct function *f;
	struct vfu_endpoint ep;
	struct host host;
	struct host_ring eq0;
	struct host_ring eq1;
	uint32_t pd;
	uint32_t other_pd;
	uint64_t arena;
	uint32_t key[RIG_REGIONS];
	uint32_t window;
	struct {
		uint32_t from;
		uint32_t to;
	} open;
	struct rig_queue q[RIG_QPS];
	struct rig_queue srq;
	struct rig_queue xsrq;
	uint32_t cq_errors;
	uint64_t mark;
	uint32_t told;
};

/**
 * struct rig - see above; what follows @nfree is set after rig_start()
 * @engine:	engine and switch
 * @s:		stations
 * @up:		uplink
 * @nfree:	packets in the pool when nothing is under way
 * @frame_out:	called for each frame that leaves by the uplink, or NULL
 * @command:	called for each command that a host submits and waits for, and its input, or NULL
 * @loop:	queue pairs are connected with themselves, and not to the uplink
 */
struct rig {
	struct engine engine;
	struct rig_station s[2];
	struct uplink *up;
	uint32_t nfree;
	void (*frame_out)(uint8_t *frame, uint32_t len);
	void (*command)(const struct ornic_admin_cmd *cmd, const void *in);
	bool loop;
};

extern struct rig rig;
extern const uint8_t rig_peer_mac[6];
extern const uint8_t rig_group[16];
extern const uint8_t rig_secret[8];

/* rig_open() - station @i binds its window to @len bytes of RIG_WINDOW from @off on, if it may */
void rig_open(int i, uint32_t off, uint32_t len);

/* rig_start() - both functions are on the switch, not enabled; rig_stop() - and all is gone */
void rig_start(void);
void rig_stop(void);

/* rig_break() - do what FUZZ_BREAK says, before the checks at the end of an input */
void rig_break(void);

/* rig_map() - all of a host's memory but what is hidden, and nothing else */
void rig_map(int i);
/* rig_bus_master() - on, and the function in D0, without which that has no effect */
void rig_bus_master(int i);
/* rig_again() - reset station @i, forget its objects, and bring it up */
void rig_again(int i);

/* rig_bring_up() - station @i as a driver would: port, GIDs, domains, keys, arena */
void rig_bring_up(int i);
/* rig_queues() - all its queue pairs, connected */
void rig_queues(int i);
/* rig_reconnect() - one of them: RESET, and RTS again */
void rig_reconnect(int i, uint32_t which);
/* rig_innocent() - a queue pair of station @i that has nothing to do with the input */
void rig_innocent(int i);
/* rig_join() - those of two stations, connected with each other; or of one with itself */
void rig_join(int i, int j);

void rig_mac(int i, uint8_t mac[6]);
/* rig_gid() - entry @index of station @i: 0 IPv4, 1 IPv6; i = 2: the peer's */
void rig_gid(int i, int index, uint8_t gid[16]);

/* rig_run() - turns until the engine rests. Return: what the last turn said. */
int64_t rig_run(void);
/* rig_turns() - the same, but at most @max */
int64_t rig_turns(uint32_t max);
/* rig_pass() - time passes */
void rig_pass(uint64_t ns);
/* rig_settle() - from timer to timer, until none is armed or @ns passed */
void rig_settle(uint64_t ns);
/* rig_poll() - consume completions and events of station @i */
void rig_poll(int i);
/* rig_input() - a frame comes in by the uplink, and what it leads to happens */
void rig_input(uint8_t *frame, uint32_t len);

uint64_t rig_region(int i, enum rig_region r);
struct qp *rig_qp(int i, uint32_t which);

/* rig_check_hidden() - nobody wrote what is not mapped */
void rig_check_hidden(int i);
/* rig_check_memory() - nobody wrote where nobody may */
void rig_check_memory(int i);
/* rig_check_innocent() - those that rig_join() connected still talk to each other */
void rig_check_innocent(int i, int j);
/* rig_has_secret() - the secret is in [@p, @p + @len) */
bool rig_has_secret(const uint8_t *p, uint32_t len);

/* rig_random() - the next of a row of numbers that begins with each input */
uint32_t rig_random(void);

#endif /* FUZZ_LIB_RIG_H */
