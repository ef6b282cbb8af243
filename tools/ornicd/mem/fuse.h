/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Detect files of FUSE, whose server may be the client itself.
 */
#ifndef ORNICD_MEM_FUSE_H
#define ORNICD_MEM_FUSE_H

#include <sys/types.h>

struct statx;

/*
 * fuse_possible() - find out if a file may be on FUSE
 * @fd:		descriptor of the file
 * @st:		statx() of it, with AT_STATX_DONT_SYNC and STATX_MNT_ID
 * @client:	process that sent the descriptor, 0 if unknown
 *
 * A FUSE server may let each access to the file wait for ever, and a signal does not end the wait.
 * fstat() and fstatfs() already ask the server, and fstatfs() reports an overlay of FUSE as an
 * overlay. This function asks no server. It looks for the file's mount or file system in the
 * daemon's own list of mounts, which gives the type. A client may mount FUSE, and an overlay of it,
 * in namespaces of its own. Therefore a file whose file system the list lacks counts as FUSE,
 * unless it has seals. Only tmpfs, memfd_create() and hugetlbfs have seals.
 *
 * The device number of a file is not that of its file system on btrfs. The client's list of mounts
 * leads from the file's mount to its file system, if the mount is in the client's namespace only.
 * This is safe, because the kernel writes that list, and no two mounts have the same id.
 *
 * Return: 1 if it may be, 0 if not, or a negative errno.
 */
int fuse_possible(int fd, const struct statx *st, pid_t client);

#endif /* ORNICD_MEM_FUSE_H */
