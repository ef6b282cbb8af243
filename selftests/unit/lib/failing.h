/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Make allocations and kernel objects fail. The malloc() family of the program replaces libc's,
 * also for the daemon in a shared library (make mutants) and for jansson. Include in one file of
 * a program. Only the calling thread sees failures.
 */
#ifndef UNIT_LIB_FAILING_H
#define UNIT_LIB_FAILING_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Kind of call that fails: an allocation, or a call that creates or watches a kernel object */
enum failing_kind { FAILING_NOTHING, FAILING_MEMORY, FAILING_KERNEL };

static _Thread_local struct {
	enum failing_kind kind;
	int error;
	uint32_t left;		/* calls that still succeed */
	bool failed;
} failing;

/* failing_begin() - let @left calls of @kind succeed and fail the next one with @error */
static inline void failing_begin(enum failing_kind kind, int error, uint32_t left)
{
	failing.error = error;
	failing.left = left;
	failing.failed = false;
	failing.kind = kind;
}

/* failing_end() - stop failing calls. Return: true if a call failed. */
static inline bool failing_end(void)
{
	failing.kind = FAILING_NOTHING;
	return failing.failed;
}

static size_t failing_bytes;	/* see failing_mapped() */

/* failing_mapped() - return the bytes that the program has mapped by mmap(), without libc's own */
static inline size_t failing_mapped(void)
{
	return __atomic_load_n(&failing_bytes, __ATOMIC_RELAXED);
}

static bool failing_now(enum failing_kind kind)
{
	if (failing.kind != kind || failing.failed || failing.left--)
		return false;
	failing.failed = true;
	errno = failing.error;
	return true;
}

#ifdef __SANITIZE_ADDRESS__
#define FAILING_REAL(name)	__interceptor_##name
#else
#define FAILING_REAL(name)	__libc_##name
#endif

void *FAILING_REAL(malloc)(size_t size);
void *FAILING_REAL(calloc)(size_t n, size_t size);
void *FAILING_REAL(realloc)(void *old, size_t size);

void *malloc(size_t size)
{
	return failing_now(FAILING_MEMORY) ? NULL : FAILING_REAL(malloc)(size);
}

void *calloc(size_t n, size_t size)
{
	return failing_now(FAILING_MEMORY) ? NULL : FAILING_REAL(calloc)(n, size);
}

void *realloc(void *old, size_t size)
{
	return failing_now(FAILING_MEMORY) ? NULL : FAILING_REAL(realloc)(old, size);
}

void *reallocarray(void *old, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(old, bytes);
}

#ifdef __SANITIZE_ADDRESS__
void *__interceptor_aligned_alloc(size_t align, size_t size);
#define FAILING_ALIGNED	__interceptor_aligned_alloc
#else
void *__libc_memalign(size_t align, size_t size);
#define FAILING_ALIGNED	__libc_memalign
#endif

void *aligned_alloc(size_t align, size_t size)
{
	return failing_now(FAILING_MEMORY) ? NULL : FAILING_ALIGNED(align, size);
}

static char *failing_copy(const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

char *strndup(const char *text, size_t most)
{
	return failing_copy(text, strnlen(text, most));
}

char *strdup(const char *text)
{
	return failing_copy(text, strlen(text));
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *at = MAP_FAILED;

	if (!failing_now(flags & MAP_ANONYMOUS ? FAILING_MEMORY : FAILING_KERNEL))
		at = (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
	if (at != MAP_FAILED && !(flags & MAP_FIXED))
		__atomic_add_fetch(&failing_bytes, len, __ATOMIC_RELAXED);
	return at;
}

int munmap(void *addr, size_t len)
{
	int err = syscall(SYS_munmap, addr, len);

	if (!err)
		__atomic_sub_fetch(&failing_bytes, len, __ATOMIC_RELAXED);
	return err;
}

int memfd_create(const char *name, unsigned int flags)
{
	return failing_now(FAILING_KERNEL) ? -1 : syscall(SYS_memfd_create, name, flags);
}

int eventfd(unsigned int count, int flags)
{
	return failing_now(FAILING_KERNEL) ? -1 : syscall(SYS_eventfd2, count, flags);
}

int timerfd_create(clockid_t clock, int flags)
{
	return failing_now(FAILING_KERNEL) ? -1 : syscall(SYS_timerfd_create, clock, flags);
}

int socket(int domain, int type, int protocol)
{
	return failing_now(FAILING_KERNEL) ? -1 : syscall(SYS_socket, domain, type, protocol);
}

int listen(int fd, int backlog)
{
	return failing_now(FAILING_KERNEL) ? -1 : syscall(SYS_listen, fd, backlog);
}

int epoll_create1(int flags)
{
	return failing_now(FAILING_KERNEL) ? -1 : syscall(SYS_epoll_create1, flags);
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && failing_now(FAILING_KERNEL))
		return -1;
	return syscall(SYS_epoll_ctl, epfd, op, fd, event);
}

#ifdef __SANITIZE_ADDRESS__
int __interceptor_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
				 void *(*start)(void *arg), void *arg);
#define FAILING_THREAD	__interceptor_pthread_create
#else
#include <dlfcn.h>
#define FAILING_THREAD	((__typeof__(&pthread_create))dlsym(RTLD_NEXT, "pthread_create"))
#endif

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *arg),
		   void *arg)
{
	if (failing_now(FAILING_KERNEL))
		return failing.error;
	return FAILING_THREAD(thread, attr, start, arg);
}

#endif /* UNIT_LIB_FAILING_H */
