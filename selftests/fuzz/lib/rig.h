/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Environment of the fuzz targets: two functions with their hosts on one engine and switch,
 * and an uplink whose remote end is the target. Each input starts with a new environment,
 * the target controls the clock, and random numbers start over, so that an input has the
 * same effect each time.
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
#include <sys/un.h>

#define RIG_BASE	0x100000000ull
/** RIG_BYTES - memory of a host; the device may reach all but the last RIG_HIDDEN bytes */
#define RIG_BYTES	(2u << 20)
#define RIG_HIDDEN	65536u
#define RIG_RINGS	4
/** RIG_PSN - PSN that connections begin with, near the wrap */
#define RIG_PSN		0xfffff0u
#define RIG_QKEY	0x11u
/** RIG_PEER_QPN - queue pair at the remote end of the uplink; that of queue pair i is + i */
#define RIG_PEER_QPN	0x700u

/* CHECK() - an invariant for every input; its violation is a finding */
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

/* Regions of a host's arena; the secret is between them, and in memory that must not be read. */
enum rig_region {
	RIG_ALL,		/* every right */
	RIG_READ,		/* remote read; the device never writes it */
	RIG_LOCAL,		/* receive buffers: no remote right */
	RIG_WRITE,		/* remote write, and no remote read */
	RIG_OTHER,		/* every right, in another protection domain */
	RIG_WINDOW,		/* windows may be bound; no remote right by its own key */
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
 * struct rig - the environment; members after @nfree are set after rig_start()
 * @engine:	engine and switch
 * @s:		stations
 * @up:		uplink
 * @nfree:	packets in the pool when the engine is idle
 * @frame_out:	called for each frame that leaves by the uplink, or NULL
 * @command:	called for each command that a host submits and waits for, and its input,
 *		or NULL
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

/* rig_start() - create both functions on the switch, not enabled; rig_stop() - free everything */
void rig_start(void);
void rig_stop(void);

/* rig_address() - fill in the address of a socket of this process, in the folder TMPDIR or in /tmp */
void rig_address(struct sockaddr_un *addr, const char *name);

/* rig_break() - execute FUZZ_BREAK, before the checks at the end of an input */
void rig_break(void);

/* rig_map() - map all of a host's memory except the hidden part */
void rig_map(int i);
/* rig_bus_master() - set it, and put the function into D0, without which that has no effect */
void rig_bus_master(int i);
/* rig_again() - reset station @i, forget its objects, and bring it up */
void rig_again(int i);

/* rig_bring_up() - set up station @i as a driver does: port, GIDs, domains, keys, arena */
void rig_bring_up(int i);
/* rig_queues() - create all its queue pairs, connected */
void rig_queues(int i);
/* rig_reconnect() - reset one of them and take it to RTS again */
void rig_reconnect(int i, uint32_t which);
/* rig_innocent() - create a queue pair of station @i that the input does not involve */
void rig_innocent(int i);
/* rig_join() - connect those of two stations with each other; or one with itself */
void rig_join(int i, int j);

void rig_mac(int i, uint8_t mac[6]);
/* rig_gid() - return entry @index of station @i: 0 IPv4, 1 IPv6; i = 2: the peer's */
void rig_gid(int i, int index, uint8_t gid[16]);

/* rig_run() - run turns until the engine is idle. Return: result of the last turn. */
int64_t rig_run(void);
/* rig_turns() - run at most @max turns */
int64_t rig_turns(uint32_t max);
/* rig_pass() - advance the clock */
void rig_pass(uint64_t ns);
/* rig_settle() - advance from timer to timer, until none is armed or @ns passed */
void rig_settle(uint64_t ns);
/* rig_poll() - consume completions and events of station @i */
void rig_poll(int i);
/* rig_input() - deliver a frame from the uplink, and run the engine */
void rig_input(uint8_t *frame, uint32_t len);

uint64_t rig_region(int i, enum rig_region r);
struct qp *rig_qp(int i, uint32_t which);

/* rig_check_hidden() - check that unmapped memory is unchanged */
void rig_check_hidden(int i);
/* rig_check_memory() - check that memory without write permission is unchanged */
void rig_check_memory(int i);
/* rig_check_innocent() - check that the queue pairs of rig_join() still exchange data */
void rig_check_innocent(int i, int j);
/* rig_has_secret() - return true if the secret is in [@p, @p + @len) */
bool rig_has_secret(const uint8_t *p, uint32_t len);

/* rig_random() - return the next of a sequence of numbers that restarts with each input */
uint32_t rig_random(void);

#endif /* FUZZ_LIB_RIG_H */
