// SPDX-License-Identifier: GPL-2.0
/*
 * Loading the module starts a server, runs all test cases against a server, or both. With parameter
 * objects it only creates objects and keeps them until it is unloaded, with parameter resets it
 * only resets a queue pair when it is unloaded.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <net/ipv6.h>

#include "ktest.h"

static char *listen = "";
module_param(listen, charp, 0444);
MODULE_PARM_DESC(listen, "address to serve at");

static char *connect = "";
module_param(connect, charp, 0444);
MODULE_PARM_DESC(connect, "address of a server to run the test cases with");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "test case to run, all if empty");

static ushort port = 7470;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "RDMA_PS_TCP port of the server");

static bool dies;
module_param(dies, bool, 0444);
MODULE_PARM_DESC(dies, "not the test cases: wait until the device goes away");

static char *objects = "";
module_param(objects, charp, 0444);
MODULE_PARM_DESC(objects, "RDMA device to create objects of, nothing more");

static char *resets = "";
module_param(resets, charp, 0444);
MODULE_PARM_DESC(resets, "RDMA device of a queue pair to reset when unloaded, nothing more");

static int parse(const char *text, struct sockaddr_storage *addr)
{
	char number[6];

	snprintf(number, sizeof(number), "%u", port);
	return inet_pton_with_scope(&init_net, AF_UNSPEC, text, number, addr);
}

static int __init ktest_init(void)
{
	struct sockaddr_storage addr;
	int ret;

	if (*objects)
		return ktest_objects_create(objects);
	if (*resets)
		return ktest_reset_prepare(resets);
	if (*listen) {
		ret = parse(listen, &addr);
		ret = ret ?: ktest_server_start((struct sockaddr *)&addr);
		if (ret)
			return ret;
	}
	if (!*connect)
		return 0;
	ret = parse(connect, &addr);
	if (!ret && dies)
		ktest_death((struct sockaddr *)&addr);
	else if (!ret)
		ktest_cases((struct sockaddr *)&addr, only);
	else if (*listen)
		ktest_server_stop();
	return ret;
}

static void __exit ktest_exit(void)
{
	if (*objects)
		ktest_objects_destroy();
	if (*resets)
		ktest_reset();
	if (*listen)
		ktest_server_stop();
}

module_init(ktest_init);
module_exit(ktest_exit);
MODULE_DESCRIPTION("Test of an RDMA driver by a consumer in the kernel");
MODULE_LICENSE("GPL");
