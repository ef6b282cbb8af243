/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Detect files of FUSE, whose server may be the client itself.
 */
#ifndef ORNICD_MEM_FUSE_H
#define ORNICD_MEM_FUSE_H

struct statx;

/*
 * fuse_has() - find out if a file is on FUSE
 * @fd:	descriptor of the file
 * @st:	statx() of it, with AT_STATX_DONT_SYNC and an empty mask
 *
 * Such a server may let each access to the file wait for ever, and a signal does not end the wait.
 * fstat() and fstatfs() already ask the server. Therefore this function looks for the file's mount
 * in the daemon's own list first. It uses fstatfs() for the others: tmpfs of memfd_create(), and
 * mounts that only another mount namespace has. Who may mount FUSE there such that it asks its
 * server for this daemon (allow_other, no user namespace) is not confined anyway.
 *
 * Return: 1 if it is, 0 if not, or a negative errno.
 */
int fuse_has(int fd, const struct statx *st);

#endif /* ORNICD_MEM_FUSE_H */
