// SPDX-License-Identifier: GPL-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "printed.h"

#include <fcntl.h>
#include <unistd.h>

void print_begin(struct printed *p, int fd)
{
	p->fd = fd;
	p->out = tmpfile();
	assert_non_null(p->out);
	fflush(stdout);
	p->kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	assert_true(p->kept >= 0);
	assert_int_equal(dup2(fileno(p->out), fd), fd);
}

void print_end(struct printed *p, char *text, size_t size)
{
	fflush(stdout);
	dup2(p->kept, p->fd);
	close(p->kept);
	rewind(p->out);
	text[fread(text, 1, size - 1, p->out)] = '\0';
	fclose(p->out);
}
