// SPDX-License-Identifier: GPL-2.0
/*
 * Operations of the administrator and of other kernel code on the drivers, with each
 * allocation of the drivers failing in turn. Prints TAP, a point per case; names of cases
 * as arguments, or all.
 */
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PCI_DRIVER	"/sys/bus/pci/drivers/ornic/"
#define RDMA_DRIVER	"/sys/bus/auxiliary/drivers/ornic_ib.rdma/"
#define PCI_DEVICE	"0000:01:00.0"
#define PCI_FOLDER	"/sys/bus/pci/devices/" PCI_DEVICE "/"
#define GSI		"16777217"	/* its id in ib_core: 1, above it the port (from bit 24) */
#define CONSUMER	"/tmp/selftests/ornic_ktest.ko"

static const char *rdma, *netdev;
static char auxdev[64];
static int sock;

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	int err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

static int read_file(const char *path)
{
	char text[256];
	int fd = open(path, O_RDONLY);
	int err = 0;

	if (fd < 0)
		return errno;
	if (read(fd, text, sizeof(text)) <= 0)
		err = errno ? errno : EPROTO;
	close(fd);
	return err;
}

static int bind_pci(void)
{
	return write_file(PCI_DRIVER "bind", PCI_DEVICE);
}

static int unbind_pci(void)
{
	return write_file(PCI_DRIVER "unbind", PCI_DEVICE);
}

static int bind_rdma(void)
{
	return write_file(RDMA_DRIVER "bind", auxdev);
}

static int unbind_rdma(void)
{
	return write_file(RDMA_DRIVER "unbind", auxdev);
}

/*
 * The reset's status does not show whether the driver could start the device again, so the
 * test looks for the interface. The RDMA driver is not checked: it has a separate case, and
 * would make this one take hours.
 */
static int reset(void)
{
	int err = write_file(PCI_FOLDER "reset", "1");
	struct ifreq req = {};
	char path[128];

	if (err)
		return err;
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", netdev);
	if (ioctl(sock, SIOCGIFFLAGS, &req))
		return errno;
	snprintf(path, sizeof(path), PCI_FOLDER "%s", auxdev);
	return access(path, F_OK) ? ENOMEM : 0;
}

static int set_up(bool up)
{
	struct ifreq req = {};

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", netdev);
	if (ioctl(sock, SIOCGIFFLAGS, &req))
		return errno;
	if (up)
		req.ifr_flags |= IFF_UP;
	else
		req.ifr_flags &= ~IFF_UP;
	return ioctl(sock, SIOCSIFFLAGS, &req) ? errno : 0;
}

static int up(void)
{
	return set_up(true);
}

static int down(void)
{
	return set_up(false);
}

/* Change between two buffer sizes below a page: larger buffers are allocated one by one */
static int change_mtu(void)
{
	struct ifreq req = {};

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", netdev);
	if (ioctl(sock, SIOCGIFMTU, &req))
		return errno;
	req.ifr_mtu = req.ifr_mtu == 1500 ? 2000 : 1500;
	return ioctl(sock, SIOCSIFMTU, &req) ? errno : 0;
}

/* ib_core keeps values for a while. */
static int read_port_counter(void)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/rx_write", rdma);
	usleep(50000);
	return read_file(path);
}

/* Bind a counter to the queue pair that every port has: the GSI */
static int bind_counter(void)
{
	static char link[64];
	char *const argv[] = {
		"rdma", "statistic", "qp", "bind", "link", link, "lqpn", GSI, NULL,
	};

	snprintf(link, sizeof(link), "%s/1", rdma);
	return faults_command(argv);
}

static int unbind_counter(void)
{
	char command[256];

	snprintf(command, sizeof(command), "set -- $(rdma statistic qp show link %s/1); "
		 "rdma statistic qp unbind link $2 cntn $4 lqpn " GSI, rdma);
	return system(command) ? EPROTO : 0;
}

/* Load a consumer that creates objects of every kind in its initialization */
static int load_consumer(void)
{
	int fd = open(CONSUMER, O_RDONLY | O_CLOEXEC);
	char parameters[64];
	int err = 0;

	if (fd < 0)
		return errno;
	snprintf(parameters, sizeof(parameters), "objects=%s", rdma);
	if (syscall(SYS_finit_module, fd, parameters, 0))
		err = errno;
	close(fd);
	return err;
}

static int unload_consumer(void)
{
	return syscall(SYS_delete_module, "ornic_ktest", O_NONBLOCK) ? errno : 0;
}

/*
 * Objects that exist when a case starts are removed first and restored at the end. Their
 * creation is slow.
 */
static const struct {
	struct fault_case c;
	bool there;
} cases[] = {
	{ { "bind_pci", bind_pci, unbind_pci }, true },
	{ { "bind_rdma", bind_rdma, unbind_rdma }, true },
	{ { "reset", reset, NULL }, false },
	{ { "up", up, down }, true },
	{ { "mtu", change_mtu, NULL }, false },
	{ { "port_counter", read_port_counter, NULL }, false },
	{ { "counter", bind_counter, unbind_counter }, false },
	{ { "consumer", load_consumer, unload_consumer }, false },
};

static void run(const struct fault_case *c, bool there)
{
	struct verdict good = {}, v = {};
	unsigned int faults;

	if (there && c->unmake())
		bail("%s cannot be undone", c->name);
	faults = faults_walk(&v, c, there);
	if (there && c->make())
		verdict_fail(&v, "%s cannot be made in the end", c->name);
	tap_point(c->name, &v, &good);
	printf("# %u faults\n", faults);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		bail("usage: driver_faults RDMA-DEVICE NETDEV AUXILIARY-DEVICE CASE");
	rdma = argv[1];
	netdev = argv[2];
	snprintf(auxdev, sizeof(auxdev), "%s", argv[3]);
	if (!faults_possible())
		bail("this kernel has no fault injection");
	sock = socket(AF_INET, SOCK_DGRAM, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[4], cases[i].c.name))
			run(&cases[i].c, cases[i].there);
	return tap_end();
}
