/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The client side of vfio-user: the actions of a VMM, without a virtual machine.
 *
 * Calls wait for the reply, except vfu_client_post(), which is a guest's store to a BAR.
 * All return 0 or a negative errno, the server's if it sent one.
 */
#ifndef SELFTESTS_LIB_VFU_CLIENT_H
#define SELFTESTS_LIB_VFU_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** struct vfu_client - a connection */
struct vfu_client {
	int fd;
	uint16_t next_id;
};

/* vfu_client_open() - connect, waiting up to a few seconds for the socket; agree on a version */
int vfu_client_open(struct vfu_client *c, const char *path);
void vfu_client_close(struct vfu_client *c);

/* vfu_client_dma_map() - add guest memory; @fd is -1 for memory that the server cannot map */
int vfu_client_dma_map(struct vfu_client *c, int fd, uint64_t offset, uint64_t addr,
		       uint64_t size, bool writable);
int vfu_client_dma_unmap(struct vfu_client *c, uint64_t addr, uint64_t size);

int vfu_client_read(struct vfu_client *c, uint32_t region, uint64_t off, void *buf, uint32_t len);
int vfu_client_write(struct vfu_client *c, uint32_t region, uint64_t off, const void *buf,
		     uint32_t len);
int vfu_client_post(struct vfu_client *c, uint32_t region, uint64_t off, const void *buf,
		    uint32_t len);

/* vfu_client_msix() - set eventfds for vectors @start .. @start + @n - 1, at most VFU_MAX_FDS */
int vfu_client_msix(struct vfu_client *c, uint32_t start, uint32_t n, const int *eventfd);

/* vfu_client_bus_master() - write COMMAND: memory space, and bus mastering or not */
int vfu_client_bus_master(struct vfu_client *c, bool on);
/* vfu_client_flr() - start a function level reset by the PCIe capability */
int vfu_client_flr(struct vfu_client *c);
/* vfu_client_reset() - send VFU_DEVICE_RESET, a reset by the VMM */
int vfu_client_reset(struct vfu_client *c);

#endif /* SELFTESTS_LIB_VFU_CLIENT_H */
