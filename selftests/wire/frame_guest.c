// SPDX-License-Identifier: GPL-2.0
/*
 * A host with an Ethernet queue pair, for a test that writes frames. The program executes commands
 * from standard input and prints an answer to each.
 *
 * Usage: frame_guest SOCKET
 *
 *   frame HEX	send a frame: the status of the completion
 *   gid HEX	set entry 0 of the GID table to these 16 bytes: the status of the command
 *   flags	attributes of the port
 */
#include "device.h"
#include "queue.h"

#include <ornic/identify.h>
#include <ornic/port.h>
#include <ornic/qp.h>
#include <ornic/wqe.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEATURES	ORNIC_FEATURE(RAW)
#define MEMORY		(4u << 20)
#define RING		5
#define MOST		1514u

#define DO(x)									\
	do {									\
		int st_ = (x);							\
										\
		if (st_) {							\
			fprintf(stderr, "%s: %d\n", #x, st_);			\
			exit(1);						\
		}								\
	} while (0)

static struct device_client client;
static struct host_ring eq0, eq1, cq;
static struct host_qp qp;
static uint64_t buf;
static uint32_t key;

static void bring_up(const char *path)
{
	struct ornic_qp_modify_cmd mod = {
		.mask = htole32(ORNIC_QPM_STATE | ORNIC_QPM_PORT), .port = 1,
	};
	struct host *h = &client.host;
	uint32_t pd;

	DO(device_open(&client, path, MEMORY));
	DO(host_enable(h));
	DO(host_bring_up(h, FEATURES, &eq0, &eq1));
	DO(host_port_up(h, 0));
	DO(host_pd_create(h, &pd));
	buf = dma_alloc(&h->dma, MOST, 4096);
	DO(host_key_create(h, pd, buf, MOST, 0, &key));
	DO(host_cq_create(h, &cq, RING, eq1.number, 0));
	DO(host_qp_create(h, &qp, ORNIC_QPT_RAW, RING, pd, cq.number, cq.number));
	for (mod.next_state = ORNIC_QPS_INIT; mod.next_state <= ORNIC_QPS_RTS; mod.next_state++) {
		DO(host_qp_state(&qp, &mod));
		mod.mask = htole32(ORNIC_QPM_STATE);
	}
}

/* Convert hexadecimal digits to bytes, at most @most. Return: their number. */
static uint32_t bytes(const char *hex, uint8_t *to, uint32_t most)
{
	unsigned int byte;
	uint32_t n = 0;

	for (; n < most && sscanf(hex, "%2x", &byte) == 1; hex += 2)
		to[n++] = byte;
	return n;
}

static void do_frame(const char *hex)
{
	struct ornic_wqe_ctrl *ctrl = host_sq_slot(&qp);
	struct ornic_wqe_eth *eth = (struct ornic_wqe_eth *)(ctrl + 1);
	struct ornic_sge *sge = (struct ornic_sge *)(eth + 1);
	uint32_t len = bytes(hex, dma_at(&client.host.dma, buf), MOST);
	struct ornic_cqe cqe;

	ctrl->opcode = ORNIC_WR_SEND;
	ctrl->flags = ORNIC_WQE_SIGNALED;
	ctrl->count = htole16(1);
	sge->addr = htole64(buf);
	sge->length = htole32(len);
	sge->lkey = htole32(key);
	host_sq_publish(&qp);
	if (!host_wait(&cq, &cqe))
		exit(1);
	printf("frame %u\n", cqe.status);
}

static void do_gid(const char *hex)
{
	struct ornic_gid_entry cmd = {
		.port = 1, .type = ORNIC_GID_ROCEV2, .flags = htole32(ORNIC_GID_VALID),
		.smac = { 2, 0, 0, 0, 0, 1 },
	};

	bytes(hex, cmd.gid, sizeof(cmd.gid));
	printf("gid %d\n", host_exec(&client.host, ORNIC_OP_SET_GID, 1, &cmd, sizeof(cmd), NULL, 0));
}

static void do_flags(void)
{
	struct ornic_identify_port page;

	DO(host_exec(&client.host, ORNIC_OP_PORT_QUERY, 1, NULL, 0, &page, sizeof(page)));
	printf("flags %u\n", le32toh(page.flags));
}

int main(int argc, char **argv)
{
	char line[2 * MOST + 16];

	if (argc != 2)
		return 2;
	bring_up(argv[1]);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "frame ", 6))
			do_frame(line + 6);
		else if (!strncmp(line, "gid ", 4))
			do_gid(line + 4);
		else if (!strcmp(line, "flags\n"))
			do_flags();
		else
			printf("what? %s", line);
		fflush(stdout);
	}
	device_close(&client);
	return 0;
}
