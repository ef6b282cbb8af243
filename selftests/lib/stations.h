/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A real daemon process with two devices or more, each with its host. Include it after <cmocka.h> and the
 * headers that <cmocka.h> needs.
 */
#ifndef SELFTESTS_LIB_STATIONS_H
#define SELFTESTS_LIB_STATIONS_H

#include "device.h"
#include "queue.h"

#include <sys/types.h>

/** STATION_MEM - bytes of memory that a host shares with its device */
#define STATION_MEM	(16u << 20)
/** STATION_BUF - bytes of a host's buffer */
#define STATION_BUF	(256u << 10)
/** STATION_RING - log2 entries of the work queues */
#define STATION_RING	6

/**
 * struct station - a host with the objects of one connection
 * @d:		its device
 * @eq0, @eq1:	event queues
 * @cq:		completion queue of both queues
 * @qp:		RC queue pair
 * @pd:		protection domain
 * @key:	key of the buffer, with all rights
 * @buf:	the buffer
 */
struct station {
	struct device_client d;
	struct host_ring eq0;
	struct host_ring eq1;
	struct host_ring cq;
	struct host_qp qp;
	uint32_t pd;
	uint32_t key;
	uint64_t buf;
};

/** STATIONS - most devices */
#define STATIONS	3

/** struct stations - the daemon, with sockets 0, 1 ... and control in @dir, and its hosts */
struct stations {
	char dir[32];
	pid_t pid;
	struct station s[STATIONS];
};

/*
 * stations_daemon() - select the daemon to start: the first argument of the command line, or this
 * build's daemon with sanitizers. Return: false after an error line if it does not exist.
 */
bool stations_daemon(int argc, char **argv);

/* stations_start() - start a daemon with @n devices, at most STATIONS, to which no host connects */
void stations_start(struct stations *t, int n);
/* stations_stop() - end the daemon */
void stations_stop(struct stations *t);

/* cmocka fixtures: a daemon, and two hosts whose devices are not enabled yet */
int stations_setup(void **state);
int stations_teardown(void **state);

/* station_open() - connect host @i again */
void station_open(struct stations *t, int i);
/* station_mac(), station_ip() - return addresses of host @i */
void station_mac(int i, uint8_t mac[6]);
uint32_t station_ip(int i);
/* station_bring_up() - enable the device of host @i and create everything, up to a queue pair */
void station_bring_up(struct station *s, int i);
/* station_connect() - connect the queue pair of host @i with that of host @to, maybe itself */
void station_connect(struct stations *t, int i, int to);
/* stations_connect() - bring up both and connect them */
void stations_connect(struct stations *t);

/* station_fill() - write a pattern, from offset @off of the buffer on */
void station_fill(struct station *s, uint64_t off, uint32_t len, uint32_t seed);
/* stations_same() - check that @len bytes of both buffers, at @off0 and @off1, are equal */
void stations_same(struct stations *t, uint64_t off0, uint64_t off1, uint32_t len);
/*
 * station_expect() - wait for the next completion, copy it to @cqe, and check that it is a success
 * of @opcode and @index
 */
void station_expect(struct station *s, uint8_t opcode, uint32_t index, struct ornic_cqe *cqe);
/* stations_clock() - return monotonic nanoseconds */
uint64_t stations_clock(void);

#endif /* SELFTESTS_LIB_STATIONS_H */
