// SPDX-License-Identifier: GPL-2.0
/*
 * ornicd: RDMA network devices for virtual machines.
 */
#include "config/config.h"
#include "daemon.h"
#include "log.h"
#include "log_writer.h"

#include <string.h>

/* Exit codes */
#define EXIT_OK		0
#define EXIT_FAILED	1	/* could not start, or could not continue */
#define EXIT_USAGE	2	/* bad option or configuration */

int main(int argc, char **argv)
{
	struct config c;
	int ret = EXIT_OK, err;

	log_find_journal();
	err = log_writer_start();
	if (err) {
		log_err("cannot start a thread for the log: %s", strerror(-err));
		return EXIT_FAILED;
	}
	config_init(&c);
	switch (config_args(&c, argc, argv)) {
	case CONFIG_RUN:
		ret = daemon_run(&c) ? EXIT_FAILED : EXIT_OK;
		break;
	case CONFIG_DONE:
		break;
	case CONFIG_BAD:
		ret = EXIT_USAGE;
		break;
	}
	config_free(&c);
	log_writer_stop();
	return ret;
}
