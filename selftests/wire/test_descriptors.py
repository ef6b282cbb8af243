#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Descriptors and memory files of a hostile client delay no other client of the daemon.

Each test measures round trips of the other client. Most are below 1 ms; the limit allows for a busy machine.
"""
import ctypes
import errno
import os
import resource
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import control  # noqa: E402
import tap  # noqa: E402
from vfu import (DMA_MAP, EVENTFD, GET_INFO, MIB, NO_REPLY, PAGE, TRIGGER, Client, Refused)  # noqa: E402

LIMIT = 0.5             # seconds, longest round trip
LINGER = 20             # seconds that close() of a socket takes
PATIENCE = 30           # seconds for replies of the hostile client
MAP = struct.pack("=IIQQQ", 32, 3, 0, 0, PAGE)
INFO = struct.pack("=IIII", 16, 0, 0, 0)

CLONE_NEWNS = 0x20000
TMPFS_MAGIC = 0x01021994
MS_REC, MS_PRIVATE = 0x4000, 0x40000
FUSE_FORGET, FUSE_GETATTR, FUSE_OPEN, FUSE_INIT = 2, 3, 14, 26

libc = ctypes.CDLL(None, use_errno=True)


def lingering():
    """Return the descriptor of a TCP socket whose last close() takes LINGER seconds, and the sockets that cause this."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    server.bind(("127.0.0.1", 0))
    server.listen()
    sock = socket.socket()
    sock.connect(server.getsockname())
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER))
    sock.setblocking(False)
    try:
        while True:
            sock.send(bytes(65536))
    except BlockingIOError:
        pass
    return sock.detach(), (server, server.accept()[0])


def on_tmpfs(fd):
    kind = ctypes.create_string_buffer(256)
    libc.fstatfs(fd, kind)
    return struct.unpack_from("=q", kind)[0] == TMPFS_MAGIC


class Fuse:
    """A file whose server never answers the daemon, and which the daemon's list of mounts lacks."""

    def __init__(self, case):
        self.path = os.path.join(case.daemon.dir, "fuse")
        os.close(os.open(self.path, os.O_CREAT))
        here, there = socket.socketpair()
        self.hung = case.daemon.process.pid
        self.pid = os.fork()
        if not self.pid:
            try:
                os.closerange(3, there.fileno())
                os.closerange(there.fileno() + 1, 1000)
                self.serve(there)
            finally:
                os._exit(1)
        there.close()
        case.addCleanup(self.stop)
        _, fds, _, _ = socket.recv_fds(here, 1, 1)
        here.close()
        if not fds:
            raise unittest.SkipTest("no right to mount FUSE")
        self.fd = fds[0]

    def give(self, there):
        fd = os.open(self.path, os.O_RDWR)
        socket.send_fds(there, [b"x"], [fd])
        os.close(fd)        # nobody serves it when this process ends

    def serve(self, there):
        dev = os.open("/dev/fuse", os.O_RDWR)
        options = "fd=%d,rootmode=100666,user_id=0,group_id=0,allow_other" % dev
        if libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) or \
                libc.mount(b"test", self.path.encode(), b"fuse", 0, options.encode()):
            return
        threading.Thread(target=self.give, args=(there,)).start()
        attr = struct.pack("=QQQQQQIIIIIIIIII", 1, PAGE, 8, 0, 0, 0, 0, 0, 0, 0o100666, 1, 0, 0, 0, 4096, 0)
        answers = {FUSE_INIT: struct.pack("=IIIIHHI", 7, 31, 65536, 0, 12, 12, 65536) + bytes(40),
                   FUSE_GETATTR: bytes(16) + attr, FUSE_OPEN: bytes(16)}
        while True:
            _, opcode, unique, _, _, _, pid = struct.unpack_from("=IIQQIII", os.read(dev, 1 << 18))
            if opcode != FUSE_FORGET and not os.path.exists("/proc/%d/task/%d" % (self.hung, pid)):
                answer = answers.get(opcode, b"")
                os.write(dev, struct.pack("=IiQ", 16 + len(answer), 0, unique) + answer)

    def stop(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.pid = 0


class Hostile(unittest.TestCase):
    keys = ""           # of both devices

    def setUp(self):
        self.daemon = control.Daemon(self, keys=self.keys)
        self.bad = self.client("a")
        self.good = self.client("b")
        self.longest = 0
        self.good.sock.settimeout(4 * LINGER)

    def client(self, name):
        client = Client(self.daemon.path(name + ".sock"))
        client.sock.settimeout(PATIENCE)
        self.addCleanup(client.close)
        return client

    def reconnect(self):
        """Return a new client of the hostile client's device."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self.client("a")
            except (EOFError, ConnectionError):
                self.assertLess(time.monotonic(), deadline)
                self.trips(1)

    def trip(self):
        start = time.monotonic()
        self.good.ask(GET_INFO, INFO)
        self.longest = max(self.longest, time.monotonic() - start)

    def trips(self, n=100):
        """Measure round trips of the other client."""
        for _ in range(n):
            self.trip()
            time.sleep(0.002)

    def fast(self, what):
        print("# %s: longest of the other client's round trips: %.1f ms" % (what, self.longest * 1000))
        self.assertLess(self.longest, LIMIT)

    def memfd(self, size=PAGE):
        fd = os.memfd_create("guest")
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, size)
        return fd

    def said(self):
        """Return the log. The answer to a request waits until all lines are written."""
        self.daemon.client().call("version")
        return self.daemon.said()

    def mapped_files(self):
        with open("/proc/%d/maps" % self.daemon.process.pid, encoding="utf-8") as f:
            return f.read()

    def memory(self, name="a"):
        """Return what the daemon says about the memory of a device."""
        return next(d["guest_memory"] for d in self.daemon.client().call("device.list") if d["name"] == name)

    def maps(self, addr=1 << 40):
        """The other client maps, is interrupted, and unmaps."""
        event = os.eventfd(0, os.EFD_NONBLOCK)
        self.good.map(addr, MIB, self.memfd(MIB))
        self.good.irqs(EVENTFD | TRIGGER, 0, 1, fds=[event])
        self.good.unmap(addr, MIB)
        os.close(event)

    def works(self, client):
        """A client's device works."""
        client.map(0, PAGE, self.memfd())
        client.unmap(0, PAGE)


class Blocking(Hostile):
    def lingering(self):
        fd, peers = lingering()
        for peer in peers:
            self.addCleanup(peer.close)
        return fd

    def give(self, message, fds, cmd=GET_INFO, **more):
        """Send descriptors and keep none of them, so that the daemon is the last one to close them."""
        os.kill(self.daemon.process.pid, signal.SIGSTOP)
        self.bad.send(cmd, message, fds=fds, **more)
        for fd in fds:
            os.close(fd)
        os.kill(self.daemon.process.pid, signal.SIGCONT)
        self.trips(1)

    def test_socket(self):
        for cmd, payload, more in ((DMA_MAP, MAP, {}), (GET_INFO, INFO, {}), (GET_INFO, INFO, {"size": 100})):
            self.give(payload, [self.lingering()], cmd, **more)
            self.trips()
            self.maps()
            self.bad.close()
            self.bad = self.client("a")
        self.fast("a lingering socket")

    def test_too_many(self):
        """More descriptors than a message may have: the kernel would close those for which there is no room."""
        events = [os.eventfd(0) for _ in range(40)]
        self.give(INFO, events + [self.lingering()])
        self.trips()
        self.fast("41 descriptors")

    def test_unread(self):
        """The socket still has descriptors when the daemon closes it."""
        self.bad.send(GET_INFO, INFO, size=1)
        self.trips(1)
        fd = self.lingering()
        os.kill(self.daemon.process.pid, signal.SIGSTOP)
        with socket.socket(socket.AF_UNIX) as second:
            second.connect(self.daemon.path("a.sock"))
            socket.send_fds(second, [b"x"], [fd])
            os.close(fd)
        os.kill(self.daemon.process.pid, signal.SIGCONT)
        self.trips()
        self.fast("unread descriptors")

    def test_many_disconnect(self):
        """A client that leaves lingering sockets behind again and again: its device gets slow, and others do not."""
        for _ in range(100):
            self.give(INFO, [self.lingering()], flags=NO_REPLY)
            self.bad.close()
            self.bad = Client(self.daemon.path("a.sock"), version=False)
            self.addCleanup(self.bad.close)
        self.maps()
        self.fast("100 clients")

    def test_end(self):
        """The daemon does not wait for the descriptor at its end."""
        self.give(INFO, [self.lingering()])
        self.trips(10)
        start = time.monotonic()
        self.daemon.stop()
        self.assertLess(time.monotonic() - start, LINGER / 2)
        self.assertIn("not waiting for a client's descriptor that blocks", self.daemon.said())

    def test_removal(self):
        """A device is removed while its mapper is blocked and as many connections wait as the kernel takes."""
        fd, peers = lingering()
        self.give(INFO, [fd])
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        waiting = []
        self.addCleanup(lambda: [sock.close() for sock in waiting])
        for _ in range(min(4300, hard - 200)):
            sock = socket.socket(socket.AF_UNIX)
            sock.setblocking(False)
            try:
                sock.connect(self.daemon.path("a.sock"))
            except BlockingIOError:
                sock.close()
                break
            waiting.append(sock)
        print("# %u connections wait" % len(waiting))
        self.assertGreater(len(waiting), 100)
        self.daemon.client().call("device.del", name="a", force=True)
        self.trips()
        self.maps()
        self.fast("a removal")
        for peer in peers:
            peer.close()
        for sock in (waiting[0], waiting[-1]):
            sock.settimeout(4 * LINGER)
            self.assertEqual(sock.recv(1), b"")
        self.daemon.client().call("device.add", spec="path=" + self.daemon.path("a.sock"))
        self.works(self.client("a"))

    def test_fuse(self):
        """close() of the file waits for its server for ever. The client's device waits, too."""
        fuse = Fuse(self)
        self.bad.send(DMA_MAP, MAP, fds=[fuse.fd])
        os.close(fuse.fd)
        with self.assertRaises(Refused) as caught:
            self.bad.receive(DMA_MAP)
        self.assertEqual(caught.exception.args[0], errno.EOPNOTSUPP)
        self.bad.send(DMA_MAP, MAP, fds=[self.memfd()])
        self.trips()
        self.maps()
        self.bad.close()
        new = self.reconnect()
        new.send(DMA_MAP, MAP, fds=[self.memfd()])
        self.trips()
        self.maps()
        fuse.stop()
        new.receive(DMA_MAP)
        self.works(self.good)
        self.fast("a file of FUSE")


class Files(Hostile):
    def test_sparse(self):
        """Files that are larger than half of the address space: only what is mapped takes space."""
        for i in range(8):
            fd = os.memfd_create("sparse")
            os.ftruncate(fd, 1 << 46)
            self.bad.map(i * MIB, PAGE, fd, offset=(1 << 45) + i * PAGE)
            os.close(fd)
            self.trips(2)
        self.maps()
        self.fast("8 files of 64 TiB")

    def test_address_space(self):
        """A client that maps too much is told so, and others can map."""
        fd = self.memfd(1 << 46)
        with self.assertRaises(Refused) as caught:
            self.bad.map(0, 1 << 45, fd)
        self.assertEqual(caught.exception.args[0], errno.ENOMEM)
        self.assertIn("more address space than its device may use", self.said())
        self.maps()
        self.works(self.bad)
        fd = self.memfd(1 << 39)
        self.bad.map(0, PAGE, fd)
        self.assertEqual(self.memory()["bytes"], 1 << 39)

    def test_many_files(self):
        """Memory files without number: those beyond the limit are rejected, and all go at once when the client does."""
        mapped = 0
        try:
            for i in range(65000):
                fd = os.memfd_create("small")
                os.ftruncate(fd, PAGE)
                try:
                    self.bad.map(i * PAGE, PAGE, fd)
                finally:
                    os.close(fd)
                mapped += 1
        except Refused as refused:
            self.assertEqual(refused.args[0], errno.ENOSPC)
            self.assertIn("as many memory files as its device may map", self.said())
        print("# %u files" % mapped)
        self.assertEqual((self.memory()["files"], self.memory()["bytes"]), (mapped, mapped * PAGE))
        self.trip()
        self.bad.close()
        self.trips(200)
        self.fast("a client with many files leaves")
        end = time.monotonic() + PATIENCE
        while "memfd:small" in self.mapped_files():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        new = self.reconnect()
        self.assertEqual((self.memory()["files"], self.memory()["bytes"]), (0, 0))
        self.works(new)

    def test_disk(self):
        """A file on a disk is rejected."""
        fd, path = tempfile.mkstemp(dir=control.BUILD)
        os.unlink(path)
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, PAGE)
        if on_tmpfs(fd):
            self.skipTest("the checkout is in memory")
        with self.assertRaises(Refused) as caught:
            self.bad.map(0, PAGE, fd)
        self.assertEqual(caught.exception.args[0], errno.EOPNOTSUPP)
        self.assertIn("allow it by nvdimm=on of the device", self.said())
        self.maps()


class MoreFiles(Hostile):
    keys = ",memory-files=20000"

    def test_many_files(self):
        """The time that others wait for the end of a client does not grow with its files."""
        for i in range(10000):
            fd = os.memfd_create("small")
            os.ftruncate(fd, PAGE)
            self.bad.send(DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, i * PAGE, PAGE), NO_REPLY, [fd])
            os.close(fd)
        self.bad.ask(GET_INFO, INFO)
        self.assertEqual(self.memory()["files"], 10000)
        self.trip()
        self.longest = 0
        self.bad.close()
        self.trips(200)
        self.fast("a client with 10,000 files leaves")


class Disks(Hostile):
    keys = ",nvdimm=on"

    def test_many(self):
        """Files on disks keep a descriptor each. A client with many of them leaves descriptors to others."""
        folder = tempfile.mkdtemp(dir=control.BUILD)
        self.addCleanup(shutil.rmtree, folder)
        self.daemon.stop()
        self.daemon.limit(resource.RLIMIT_NOFILE, 1024)
        self.daemon.start()
        self.bad, self.good = self.client("a"), self.client("b")
        mapped = 0
        for i in range(1100):
            fd = os.open(os.path.join(folder, str(i)), os.O_CREAT | os.O_RDWR)
            os.ftruncate(fd, PAGE)
            if on_tmpfs(fd):
                os.close(fd)
                self.skipTest("the checkout is in memory")
            try:
                self.bad.map(i * PAGE, PAGE, fd)
                mapped += 1
            except Refused as refused:
                self.assertEqual(refused.args[0], errno.ENOSPC)
            os.close(fd)
        self.assertEqual(mapped, 64)
        for vector in range(64):
            self.good.irqs(EVENTFD | TRIGGER, vector, 1, fds=[os.eventfd(0)])
        self.maps()


class Share(unittest.TestCase):
    def limits(self, pid):
        with open("/proc/%d/limits" % pid, encoding="utf-8") as f:
            return next(line.split()[3:5] for line in f if line.startswith("Max open files"))

    def test_low_limit(self):
        """A limit that is too low is named, and divided: clients that take all that they get leave the others' part."""
        self.null = open("/dev/null", "rb")
        self.addCleanup(self.null.close)
        names = tuple("abcdefgh")
        daemon = control.Daemon(self, devices=names)
        self.assertNotIn("limit of open files", daemon.said())
        daemon.stop()
        daemon.limit(resource.RLIMIT_NOFILE, 512)
        daemon.start()
        self.assertEqual(self.limits(daemon.process.pid), ["512", "512"])
        self.assertIn("the hard limit of open files is 512, but 8 devices need 2176: each gets at most 24 interrupts", daemon.said())
        clients = []
        for name in names:
            client = Client(daemon.path(name + ".sock"))
            self.addCleanup(client.close)
            client.sock.settimeout(PATIENCE)
            clients.append(client)
            for vector in range(24):
                event = os.eventfd(0)
                client.irqs(EVENTFD | TRIGGER, vector, 1, fds=[event])
                os.close(event)
            with self.assertRaises(Refused) as caught:
                client.irqs(EVENTFD | TRIGGER, 24, 1, fds=[self.null.fileno()])
            self.assertEqual(caught.exception.args[0], errno.EINVAL)
            event = os.eventfd(0)
            with self.assertRaises(Refused) as caught:
                client.irqs(EVENTFD | TRIGGER, 24, 1, fds=[event])
            self.assertEqual(caught.exception.args[0], errno.EMFILE)
            client.irqs(EVENTFD | TRIGGER, 23, 1, fds=[event])
            os.close(event)
        for client in clients:
            fds = [os.memfd_create("guest") for _ in range(16)]
            client.ask(GET_INFO, INFO, fds=fds)
            for fd in fds:
                os.close(fd)
        daemon.client().call("version")         # its answer waits until all lines are written
        self.assertIn("no descriptor is left for interrupt 24 of the device", daemon.said())

    def test_soft_limit(self):
        """The daemon raises the soft limit to the hard one."""
        daemon = control.Daemon(self)
        soft, hard = self.limits(daemon.process.pid)
        self.assertEqual(soft, hard)


if __name__ == "__main__":
    tap.main()
