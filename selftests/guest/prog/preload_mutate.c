// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload before a program that uses verbs: before each command to uverbs it
 * sends changed copies of that command, by ioctl and by write. They have the structure of
 * the real one, and most of its handles and lengths, so that they pass the first checks of
 * the kernel.
 *
 *   MUTATE_SEED=n   seed of the changes (default 1)
 *   MUTATE_LOG=file each changed command in hex before it is sent, so that the
 *                   last line is the one that the kernel did not survive
 *   MUTATE_COUNT=file  four 64-bit numbers that processes with this file share:
 *                   commands sent by ioctl, accepted, sent by write, accepted
 *
 * The program itself may fail because of it, and its memory may be overwritten: its caller
 * restarts it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define MOST_ATTRS	40
#define PAYLOADS	8		/* changed copies of a command's payloads */
#define PAYLOAD		512
#define COPIES		3		/* most changed copies of a command */
#define HANDLES		64		/* the kernel allocates small numbers first */
#define LAST_WQ_STATE	2		/* IB_WQS_ERR */
#define FIRST		3		/* first commands of a process, left unchanged, and */
#define CALM		40		/* maximum of further ones: objects exist by then */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t state;
static int log_fd = -1;
static unsigned int calm;
static uint64_t uncounted[4], *counts = uncounted;
static int (*real_ioctl)(int fd, unsigned long request, ...);

/* A command of the ioctl ABI with room for one more attribute. */
struct command {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[MOST_ATTRS + 1];
};

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull;
}

static unsigned int below(unsigned int n)
{
	return (draw() >> 32) % n;
}

/* An ABI's pair of counters: sent, accepted. */
enum abi { BY_IOCTL = 0, BY_WRITE = 2 };

static void count(enum abi abi, bool accepted)
{
	__atomic_fetch_add(&counts[abi], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counts[abi + 1], accepted, __ATOMIC_RELAXED);
}

static void share_counts(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	void *map = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, sizeof(uncounted)))
		map = mmap(NULL, sizeof(uncounted), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		counts = map;
	if (fd >= 0)
		close(fd);
}

static __attribute__((constructor)) void start(void)
{
	const char *seed = getenv("MUTATE_SEED"), *log = getenv("MUTATE_LOG"), *shared = getenv("MUTATE_COUNT");

	/* a child of the same seed makes other changes */
	state = (seed ? strtoull(seed, NULL, 0) : 1) * 0x9e3779b97f4a7c15ull | 1;
	calm = FIRST + below(CALM);
	real_ioctl = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	if (log)
		log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (shared)
		share_counts(shared);
}

/* Return a value that is likely to be at some limit. */
static uint64_t odd_value(uint64_t was)
{
	static const uint64_t limits[] = {
		0, 1, 2, 0x7f, 0x80, 0xff, 0xfff, 0x1000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32,
		1ull << 47, 0x7ffffffff000, 0x7fffffffffffffff, 1ull << 63, 0xffff888000000000, ~0ull - 4095, ~0ull,
	};

	switch (below(6)) {
	case 0:
		return was ^ 1ull << below(64);
	case 1:
		return was + below(17) - 8;
	case 2:
		return below(HANDLES);
	case 3:
		return draw();
	default:
		return limits[below(sizeof(limits) / sizeof(limits[0]))];
	}
}

/* Change an aligned field of 1, 2, 4 or 8 bytes. */
static void change_bytes(void *data, size_t length)
{
	unsigned int size = 1u << below(4);
	uint64_t value = 0;
	size_t at;

	if (length < size)
		return;
	at = below(length / size) * size;
	memcpy(&value, (char *)data + at, size);
	value = odd_value(value);
	memcpy((char *)data + at, &value, size);
}

/* Copy the data at a pointer, which may be invalid. */
static bool look(void *to, uint64_t from, size_t length)
{
	struct iovec here = { to, length }, there = { (void *)(uintptr_t)from, length };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)length;
}

static void change_attr(struct ib_uverbs_attr *a, char *payload)
{
	switch (below(8)) {
	case 0:
		a->attr_id = below(4) ? below(24) : below(2) ? 0x1000 + below(16) : draw();
		break;
	case 1:
		a->len = odd_value(a->len);
		break;
	case 2:
		a->flags = odd_value(a->flags);
		break;
	case 3:
		a->attr_data.reserved = odd_value(a->attr_data.reserved);
		break;
	case 4:
		a->data = odd_value(a->data);
		break;
	default:
		/* up to 8 bytes are in the attribute itself */
		if (a->len <= sizeof(a->data)) {
			change_bytes(&a->data, sizeof(a->data));
		} else if (a->len <= PAYLOAD && look(payload, a->data, a->len)) {
			for (unsigned int n = 1 + below(3); n; n--)
				change_bytes(payload, a->len);
			a->data = (uintptr_t)payload;
		}
	}
}

static void change_command(struct command *c, char payloads[][PAYLOAD])
{
	for (unsigned int n = 0; n < 1 + below(3); n++) {
		unsigned int count = c->hdr.num_attrs, i;

		switch (below(12)) {
		case 0:
			c->hdr.method_id = below(4) ? below(20) : draw();
			break;
		case 1:
			c->hdr.object_id = below(4) ? below(24) : draw();
			break;
		case 2:
			c->hdr.driver_id = draw();
			break;
		case 3:
			c->hdr.length = odd_value(c->hdr.length);
			break;
		case 4:		/* one attribute less */
			if (count)
				c->hdr.num_attrs--;
			break;
		case 5:		/* one twice */
			if (count && count <= MOST_ATTRS) {
				i = below(count);
				c->attrs[count] = c->attrs[i];
				c->hdr.num_attrs++;
			}
			break;
		default:
			if (count && count <= MOST_ATTRS)
				change_attr(&c->attrs[below(count)], payloads[n % PAYLOADS]);
		}
		/* sometimes the length does not fit the number */
		if (below(16))
			c->hdr.length = sizeof(c->hdr) + c->hdr.num_attrs * sizeof(c->attrs[0]);
	}
}

static void say(const char *kind, const void *data, size_t length)
{
	char line[4096];
	size_t at;

	if (log_fd < 0)
		return;
	at = snprintf(line, sizeof(line), "%s", kind);
	for (size_t i = 0; i < length && at + 4 < sizeof(line); i++)
		at += snprintf(line + at, sizeof(line) - at, " %02x", ((const unsigned char *)data)[i]);
	line[at++] = '\n';
	if (write(log_fd, line, at) < 0)
		log_fd = -1;
}

/*
 * ib_uverbs_ex_modify_wq() (6.12 to 7.2) forgets that it has looked the queue up if one of the
 * states is unknown, and complains of the queue when the process ends. Such commands are not
 * sent, because the same complaint would follow if the driver forgot an object.
 */
static bool kernel_forgets(uint32_t command, const void *core, size_t length)
{
	const struct ib_uverbs_ex_modify_wq *in = core;

	return command == (IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_WQ) && length >= sizeof(*in) &&
	       (in->wq_state > LAST_WQ_STATE || in->curr_wq_state > LAST_WQ_STATE);
}

/*
 * A command of the write ABI. Its data is the core's part, which libibverbs passes on, then
 * the provider's part. An extended command has a second header and counts words of 8 bytes
 * for each part; another one counts words of 4 for all of it, header included.
 */
struct write_command {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_ex_cmd_hdr ex;
	char data[2 * PAYLOAD];
	size_t core, provider;		/* bytes of data */
};

/*
 * Copy an attribute's value behind the data so far. Return its length, rounded up to words,
 * 0 if it is not readable.
 */
static size_t add_input(struct write_command *w, size_t at, const struct ib_uverbs_attr *a, size_t word)
{
	if (a->len > PAYLOAD)
		return 0;
	if (a->len <= sizeof(a->data))
		memcpy(w->data + at, &a->data, a->len);
	else if (!look(w->data + at, a->data, a->len))
		return 0;
	return (a->len + word - 1) / word * word;
}

static const struct ib_uverbs_attr *find(const struct command *c, unsigned int id)
{
	for (unsigned int i = 0; i < c->hdr.num_attrs; i++)
		if (c->attrs[i].attr_id == id)
			return &c->attrs[i];
	return NULL;
}

/*
 * Fill in the two parts and headers that fit them. Return: false if the command has no
 * write form.
 */
static bool by_write(struct write_command *w, const struct command *c, char *answer, size_t room)
{
	const struct ib_uverbs_attr *cmd = find(c, UVERBS_ATTR_WRITE_CMD), *core = find(c, UVERBS_ATTR_CORE_IN),
				    *provider = find(c, UVERBS_ATTR_UHW_IN);
	uint64_t where = (uintptr_t)answer;
	bool extended;
	size_t word;

	if (!cmd || !core)
		return false;
	memset(w, 0, sizeof(*w));
	w->hdr.command = cmd->data;
	extended = w->hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	word = extended ? 8 : 4;
	w->core = add_input(w, 0, core, word);
	w->provider = provider ? add_input(w, w->core, provider, word) : 0;
	if (extended) {
		w->ex.response = where;
		w->hdr.in_words = w->core / word;
		w->ex.provider_in_words = w->provider / word;
		/* the core's response first, then the provider's */
		w->hdr.out_words = w->ex.provider_out_words = room / 2 / word;
	} else {
		/* most begin with the address of the response */
		if (w->core >= sizeof(where))
			memcpy(w->data, &where, sizeof(where));
		w->hdr.in_words = (sizeof(w->hdr) + w->core + w->provider) / word;
		w->hdr.out_words = room / word;
	}
	return true;
}

static void change_written(struct write_command *w)
{
	switch (below(10)) {
	case 0:
		w->hdr.in_words = odd_value(w->hdr.in_words);
		break;
	case 1:
		w->hdr.out_words = odd_value(w->hdr.out_words);
		break;
	case 2:
		w->hdr.command ^= below(2) ? below(64) : draw();
		break;
	case 3:
		change_bytes(&w->ex, sizeof(w->ex));
		break;
	case 4:		/* words that move from one part to the other */
		w->hdr.in_words--;
		w->ex.provider_in_words++;
		break;
	case 5:
	case 6:
		change_bytes(w->data + w->core, w->provider);
		break;
	default:
		change_bytes(w->data, w->core);
	}
}

/* Send the same command by the write ABI, changed. */
static void write_changed(int fd, const struct command *c)
{
	static char answer[4096], all[sizeof(struct write_command)];
	struct write_command w;
	size_t length;

	if (!by_write(&w, c, answer, sizeof(answer)))
		return;
	for (unsigned int n = below(3); n; n--)
		change_written(&w);
	memcpy(all, &w.hdr, sizeof(w.hdr));
	length = sizeof(w.hdr);
	if (w.hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) {
		memcpy(all + length, &w.ex, sizeof(w.ex));
		length += sizeof(w.ex);
	}
	memcpy(all + length, w.data, w.core + w.provider);
	length += w.core + w.provider;
	if (kernel_forgets(w.hdr.command, w.data, w.core))
		return;
	say("write", all, length);
	if (!below(16))
		length = below(sizeof(all));
	count(BY_WRITE, write(fd, all, length) == (ssize_t)length);
}

/*
 * Whether a command by ioctl is not sent: one of the write ABI, as above, or GET_CONTEXT. The file
 * has a context already, so the kernel (6.12 to 7.2) rejects a second one before it calls the
 * driver. It frees the new context then, but keeps the context's reference to the calling task,
 * which is therefore never freed.
 */
static bool forgets_by_ioctl(const struct command *c)
{
	const struct ib_uverbs_attr *cmd, *core;
	char in[sizeof(struct ib_uverbs_ex_modify_wq)];

	if (c->hdr.object_id == UVERBS_OBJECT_DEVICE && c->hdr.method_id == UVERBS_METHOD_GET_CONTEXT)
		return true;
	if (c->hdr.num_attrs > MOST_ATTRS)
		return false;
	cmd = find(c, UVERBS_ATTR_WRITE_CMD);
	core = find(c, UVERBS_ATTR_CORE_IN);
	return cmd && core && core->len >= sizeof(in) && look(in, core->data, sizeof(in)) &&
	       kernel_forgets(cmd->data, in, sizeof(in));
}

static void send_changed(int fd, const struct ib_uverbs_ioctl_hdr *real)
{
	static char payloads[PAYLOADS][PAYLOAD];
	struct command c;

	if (calm) {
		calm--;
		return;
	}
	if (real->num_attrs > MOST_ATTRS || real->length > sizeof(c))
		return;
	for (unsigned int n = below(COPIES + 1); n; n--) {
		memcpy(&c, real, real->length);
		if (c.hdr.object_id == UVERBS_OBJECT_DEVICE && c.hdr.method_id == UVERBS_METHOD_INVOKE_WRITE && below(2)) {
			write_changed(fd, &c);
			continue;
		}
		change_command(&c, payloads);
		if (forgets_by_ioctl(&c))
			continue;
		say("ioctl", &c, sizeof(c.hdr) + (c.hdr.num_attrs <= MOST_ATTRS ? c.hdr.num_attrs : 0) * sizeof(c.attrs[0]));
		count(BY_IOCTL, !real_ioctl(fd, RDMA_VERBS_IOCTL, &c));
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list rest;
	void *arg;

	va_start(rest, request);
	arg = va_arg(rest, void *);
	va_end(rest);
	if (request == RDMA_VERBS_IOCTL) {
		pthread_mutex_lock(&lock);
		send_changed(fd, arg);
		pthread_mutex_unlock(&lock);
	}
	return real_ioctl(fd, request, arg);
}
