#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The vfio-user server, tested with raw messages: as QEMU sends them, and as an attacker would.

The server is vfu_device.c, built with the address and undefined-behaviour sanitizers.
"""

import errno
import mmap
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import tap  # noqa: E402
from vfu import (BOOL, CONFIG, DIRTY, DMA_MAP, DMA_READ, DMA_UNMAP, DMA_WRITE, ERR, EVENTFD, FEATURE, GET_INFO,  # noqa: E402
                 INTX, IRQ_INFO, MASK, MIB, MSI, MSIX, NONE, NO_REPLY, ONES, PAGE, REGION_INFO, REGION_IO_FDS,
                 REGION_READ, REGION_WRITE, REPLY, REQ, RESET, SET_IRQS, TRIGGER, UNMASK, VERSION, WRITE_MULTI,
                 Client, Refused)

FLR, DEVICE, DISCONNECT = range(3)

XFER = 1 << 16                      # most bytes of data in a message
MAGIC = 0x7465737466756e63
(R_MAGIC, R_SCRATCH, R_DMA_ADDR, R_DMA_LOAD, R_DMA_STORE, R_FIRE, R_WRITES, R_RESETS,
 R_BUS_MASTER, R_POWER, R_ORDER, R_TURNS, R_ACCESS, R_ACCESS_LEN) = range(0, 0x70, 8)

binary = None
scratch = None


def setUpModule():
    global binary, scratch
    scratch = tempfile.mkdtemp(prefix="test_vfu.")
    binary = os.path.join(os.environ.get("O", os.path.join(HERE, "..", "..", "build")), "selftests", "vfu_device")
    if not os.path.exists(binary):
        raise RuntimeError("no %s: make tests builds it" % binary)


def tearDownModule():
    shutil.rmtree(scratch)


class ServerTest(unittest.TestCase):
    arguments = ()

    def setUp(self):
        self.path = os.path.join(scratch, "socket")
        self.log = tempfile.TemporaryFile()
        self.clients = []
        self.fds = []
        self.server = self.start()

    def start(self):
        server = subprocess.Popen([binary, self.path, *self.arguments], stderr=self.log)
        deadline = time.monotonic() + 10
        while server.poll() is None and time.monotonic() < deadline and not self.listening():
            select.select([], [], [], 0.005)
        return server

    def listening(self):
        """Wait without connecting, because the server accepts only one client."""
        with open("/proc/net/unix") as f:
            return any(line.split()[3] == "00010000" and line.endswith(" " + self.path + "\n")
                       for line in f)

    def tearDown(self):
        for client in self.clients:
            client.close()
        for fd in self.fds:
            os.close(fd)
        self.server.send_signal(signal.SIGTERM)
        code = self.server.wait(10)
        self.log.seek(0)
        text = self.log.read().decode()
        self.log.close()
        self.assertEqual(code, 0, "server did not end well:\n" + text)
        self.assertFalse(os.path.exists(self.path))

    def client(self, **kw):
        """Connect; the server may not have noticed the end of the previous client yet."""
        deadline = time.monotonic() + 5
        while True:
            try:
                client = Client(self.path, **kw)
                self.clients.append(client)
                return client
            except (EOFError, ConnectionError):
                if time.monotonic() > deadline:
                    raise

    def memfd(self, pages=16):
        fd = os.memfd_create("guest")
        os.ftruncate(fd, pages * PAGE)
        self.fds.append(fd)
        return fd

    def eventfd(self):
        fd = os.eventfd(0, os.EFD_NONBLOCK)
        self.fds.append(fd)
        return fd

    def assertCount(self, fd, want):
        try:
            self.assertEqual(os.eventfd_read(fd), want)
        except BlockingIOError:
            self.assertEqual(want, 0)

    def assertRefused(self, code, call, *args, **kw):
        with self.assertRaises(Refused) as caught:
            call(*args, **kw)
        self.assertEqual(caught.exception.args[0], code)

    def assertClosed(self, client):
        """Check that the server closes the connection, possibly after an error reply."""
        try:
            while client.sock.recv(65536):
                pass
        except ConnectionResetError:
            pass

    def become(self, want, value):
        """Wait until value() is what is wanted: a thread of the server closes and unmaps."""
        deadline = time.monotonic() + 5
        while value() != want and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(value(), want)

    def assertServes(self):
        client = self.client()
        self.assertEqual(client.reg(R_MAGIC), MAGIC)
        client.close()


class TestVersion(ServerTest):
    def test_capabilities(self):
        caps = self.client().caps
        self.assertEqual(caps, {"max_msg_fds": 16, "max_data_xfer_size": XFER,
                                "max_dma_maps": 65535, "pgsizes": PAGE, "write_multiple": True})

    def test_only_what_the_client_has(self):
        self.assertNotIn("write_multiple", self.client(caps={"capabilities": {}}).caps)

    def test_no_json(self):
        self.assertNotIn("write_multiple", self.client(caps=None).caps)

    def test_newer_minor(self):
        self.client(version=False).version(minor=7)

    def test_other_major(self):
        client = self.client(version=False)
        self.assertRefused(errno.ENOTSUP, client.version, major=1)
        self.assertClosed(client)

    def test_must_come_first_and_once(self):
        client = self.client(version=False)
        self.assertRefused(errno.EINVAL, client.ask, GET_INFO, struct.pack("=IIII", 16, 0, 0, 0))
        self.assertClosed(client)
        client = self.client()
        self.assertRefused(errno.EINVAL, client.version)
        self.assertClosed(client)
        self.assertServes()

    def test_bad_json(self):
        for text in (b"{}", b"{\0", b"[]\0", b"\0", b"[" * 5000 + b"\0", b"{\"capabilities\":7}\0",
                     b"{\"capabilities\":{\"max_data_xfer_size\":-1}}\0",
                     b"{\"capabilities\":{\"max_data_xfer_size\":\"x\"}}\0",
                     b"{\"capabilities\":{\"write_multiple\":1}}\0", b"\xff\xff\0"):
            with self.subTest(text=text[:40]):
                client = self.client(version=False)
                self.assertRefused(errno.EINVAL, client.ask, VERSION, bytes(4) + text)
                self.assertClosed(client)
        self.assertServes()

    def test_small_transfers(self):
        client = self.client(caps={"capabilities": {"max_data_xfer_size": 256}})
        self.assertEqual(len(client.read(CONFIG, 0, 256)), 256)
        self.assertRefused(errno.EINVAL, client.read, CONFIG, 0, 257)


class TestInfo(ServerTest):
    def test_device(self):
        reply = self.client().ask(GET_INFO, struct.pack("=IIII", 16, 0, 0, 0))
        self.assertEqual(struct.unpack("=IIII", reply), (16, 3, 9, 5))

    def test_device_room(self):
        self.assertRefused(errno.EINVAL, self.client().ask, GET_INFO,
                           struct.pack("=IIII", 15, 0, 0, 0))

    def region(self, client, index, argsz=32):
        reply = client.ask(REGION_INFO, struct.pack("=IIIIQQ", argsz, 0, index, 0, 0, 0))
        return struct.unpack("=IIIIQQ", reply)

    def test_regions(self):
        client = self.client()
        sizes = {0: 8 * MIB, 2: 2 * PAGE, CONFIG: PAGE}
        for index in range(9):
            argsz, flags, echo, cap, size, _ = self.region(client, index)
            self.assertEqual((argsz, echo, cap, size), (32, index, 0, sizes.get(index, 0)))
            # Readable and writable, without mmap and capabilities.
            self.assertEqual(flags, 3 if size else 0)

    def test_region_two_steps(self):
        """A client repeats the request with the size of the reply: same answer, no second step needed."""
        client = self.client()
        first = self.region(client, 0)
        self.assertEqual(self.region(client, 0, first[0]), first)
        self.assertEqual(self.region(client, 0, 4096), first)
        self.assertRefused(errno.EINVAL, self.region, client, 0, 31)
        self.assertRefused(errno.EINVAL, self.region, client, 9)
        self.assertRefused(errno.EINVAL, self.region, client, 0xffffffff)

    def test_irqs(self):
        client = self.client()

        def irq(index, argsz=16):
            return struct.unpack("=IIII", client.ask(
                IRQ_INFO, struct.pack("=IIII", argsz, 0, index, 0)))
        self.assertEqual(irq(INTX), (16, 0, INTX, 0))
        self.assertEqual(irq(MSI), (16, 0, MSI, 0))
        self.assertEqual(irq(MSIX), (16, 1, MSIX, 40))
        self.assertEqual(irq(REQ), (16, 0, REQ, 0))
        self.assertRefused(errno.EINVAL, irq, ERR)
        self.assertRefused(errno.EINVAL, irq, 5)
        self.assertRefused(errno.EINVAL, irq, MSIX, 15)


class TestConfig(ServerTest):
    def test_header(self):
        cfg = self.client().read(CONFIG, 0, PAGE)
        self.assertEqual(struct.unpack_from("<HHHHI", cfg), (0x1af4, 0x10ff, 0, 0x10, 0x02000001))
        self.assertEqual(struct.unpack_from("<HH", cfg, 0x2c), (0x1af4, 0x0042))
        self.assertEqual(struct.unpack_from("<6I", cfg, 0x10), (4, 0, 4, 0, 0, 0))
        self.assertEqual(struct.unpack_from("<I", cfg, 0x100), (0,))

    def test_capabilities(self):
        client = self.client()
        client.capability(0x01)
        exp = client.capability(0x10)
        self.assertEqual(client.cfg(exp + 2, 2), 0x0002)
        self.assertTrue(client.cfg(exp + 4, 4) & 1 << 28, "no function level reset")
        msix = client.capability(0x11)
        self.assertEqual(client.cfg(msix + 2, 2) & 0x7ff, 39)
        self.assertEqual(client.cfg(msix + 4, 4), 2)
        self.assertEqual(client.cfg(msix + 8, 4), PAGE | 2)

    def test_bar_sizing(self):
        client = self.client()
        for off, want in ((0x10, (~(8 * MIB - 1) & 0xffffffff) | 4), (0x14, 0xffffffff),
                          (0x18, (~(2 * PAGE - 1) & 0xffffffff) | 4), (0x20, 0)):
            client.set_cfg(off, 4, 0xffffffff)
            self.assertEqual(client.cfg(off, 4), want)

    def test_read_only(self):
        client = self.client()
        before = client.read(CONFIG, 0, 4)
        client.write(CONFIG, 0, b"\xff" * 4)
        self.assertEqual(client.read(CONFIG, 0, 4), before)
        client.write(CONFIG, 0x100, b"\xff" * (PAGE - 0x100))
        self.assertEqual(client.read(CONFIG, 0x100, 4), bytes(4))

    def test_all_bytes_written(self):
        """The identity stays for any bits, and a reset undoes the rest."""
        client = self.client()
        before = client.read(CONFIG, 0, PAGE)
        client.write(CONFIG, 0, b"\xff" * PAGE)
        self.assertEqual(client.read(CONFIG, 0, 4), before[:4])
        client.ask(RESET)
        self.assertEqual(client.read(CONFIG, 0, PAGE), before)

    def test_bounds(self):
        client = self.client()
        for off, count in ((PAGE, 1), (PAGE - 1, 2), (0, PAGE + 1), (ONES, 1), (ONES, 2), (4, 0)):
            self.assertRefused(errno.EINVAL, client.read, CONFIG, off, count)
        self.assertRefused(errno.EINVAL, client.write, CONFIG, PAGE - 1, b"ab")
        self.assertRefused(errno.EINVAL, client.write, CONFIG, ONES, b"ab")

    def test_bus_master(self):
        client = self.client()
        self.assertEqual(client.reg(R_BUS_MASTER), 0)
        client.set_cfg(4, 2, 6)
        self.assertEqual(client.reg(R_BUS_MASTER), 1 << 1 | 1)
        client.set_cfg(4, 2, 0x406)
        self.assertEqual(client.reg(R_BUS_MASTER), 1 << 1 | 1)
        client.set_cfg(4, 1, 2)
        self.assertEqual(client.reg(R_BUS_MASTER), 2 << 1)

    def test_power(self):
        client = self.client()
        ctrl = client.capability(0x01) + 4
        client.set_cfg(4, 2, 6)
        client.set_cfg(ctrl, 2, 3)
        self.assertEqual(client.reg(R_POWER), 1 << 1 | 1)
        self.assertEqual(client.reg(R_BUS_MASTER), 2 << 1)
        client.set_cfg(ctrl, 2, 1)
        self.assertEqual(client.cfg(ctrl, 2) & 3, 3, "D1 is not supported")
        client.set_cfg(ctrl, 2, 0)
        self.assertEqual(client.reg(R_POWER), 2 << 1)
        self.assertEqual(client.reg(R_BUS_MASTER), 3 << 1 | 1)

    def flr(self, off, data):
        client = self.client()
        exp = client.capability(0x10)
        client.set_cfg(4, 2, 6)
        client.set_reg(R_SCRATCH, 7)
        client.write(CONFIG, exp + off, data)
        self.assertEqual(client.reg(R_RESETS), 1 << 8 | FLR)
        self.assertEqual(client.reg(R_SCRATCH), 0)
        self.assertEqual(client.reg(R_BUS_MASTER), 2 << 1)
        self.assertEqual(client.cfg(4, 2), 0)
        self.assertEqual(client.cfg(exp + 8, 2) & 0x8000, 0)

    def test_flr_word(self):
        self.flr(8, b"\x10\xa8")

    def test_flr_byte(self):
        self.flr(9, b"\x80")

    def test_flr_dword(self):
        self.flr(8, b"\x10\xa8\x00\x00")

    def test_no_flr(self):
        client = self.client()
        exp = client.capability(0x10)
        client.set_cfg(exp + 8, 1, 0xff)
        client.set_cfg(exp + 10, 2, 0xffff)
        client.set_cfg(exp + 8, 2, 0x7fff)
        self.assertEqual(client.reg(R_RESETS), 0)

    def test_device_reset(self):
        client = self.client()
        client.set_cfg(4, 2, 6)
        client.set_reg(R_SCRATCH, 7)
        client.ask(RESET)
        self.assertEqual(client.reg(R_RESETS), 1 << 8 | DEVICE)
        self.assertEqual(client.reg(R_SCRATCH), 0)
        self.assertEqual(client.cfg(4, 2), 0)


class TestBar(ServerTest):
    def test_widths(self):
        client = self.client()
        for size in (1, 2, 4, 8):
            self.assertEqual(client.read(0, R_ACCESS, size), size.to_bytes(size, "little"))
            client.write(0, R_ACCESS, bytes(size))
            self.assertEqual(client.reg(R_ACCESS_LEN), size)
        self.assertEqual(client.read(0, R_MAGIC, 4), struct.pack("<Q", MAGIC)[:4])
        self.assertEqual(client.read(0, R_MAGIC + 4, 4), struct.pack("<Q", MAGIC)[4:])

    def test_odd_accesses_never_arrive(self):
        client = self.client()
        writes = client.reg(R_WRITES)
        for off, count in ((1, 2), (2, 4), (4, 8), (0, 3), (0, 5), (0, 16), (0, XFER), (1, 4)):
            self.assertEqual(client.read(0, off, count), b"\xff" * count)
            client.write(0, off, bytes(count))
        self.assertEqual(client.reg(R_WRITES), writes)

    def test_last_bytes(self):
        client = self.client()
        self.assertEqual(client.read(0, 8 * MIB - 8, 8), bytes(8))
        for off, count in ((8 * MIB, 4), (8 * MIB - 4, 8), (ONES - 3, 8), (ONES, 1)):
            self.assertRefused(errno.EINVAL, client.read, 0, off, count)
            self.assertRefused(errno.EINVAL, client.write, 0, off, bytes(count))

    def test_absent_regions(self):
        client = self.client()
        for region in (1, 3, 4, 5, 6, 8, 9, 0xffffffff):
            self.assertRefused(errno.EINVAL, client.read, region, 0, 4)
            self.assertRefused(errno.EINVAL, client.write, region, 0, bytes(4))

    def test_too_much(self):
        self.assertRefused(errno.EINVAL, self.client().ask, REGION_READ,
                           struct.pack("=QII", 0, 0, XFER + 1))

    def test_msix_bar(self):
        client = self.client()
        client.write(2, 0, b"\xff" * 16)
        self.assertEqual(client.read(2, PAGE, 8), bytes(8))
        self.assertEqual(client.reg(R_WRITES), 0)

    def test_posted_writes_in_order(self):
        client = self.client()
        for i in range(1, 5001):
            client.post(0, R_ORDER, struct.pack("=Q", i))
        self.assertEqual(client.reg(R_ORDER), 5000)

    def test_posted_failure_is_silent(self):
        client = self.client()
        client.post(0, 64 * MIB, bytes(8))
        client.post(77, 0, bytes(8))
        self.assertEqual(client.reg(R_MAGIC), MAGIC)

    def multi(self, writes, count=None):
        count = len(writes) if count is None else count
        return struct.pack("=Q", count) + b"".join(
            struct.pack("=QII", off, region, len(data)) + data.ljust(8, b"\0")
            for region, off, data in writes)

    def test_write_multi(self):
        client = self.client()
        writes = [(0, R_ORDER, struct.pack("=Q", i)) for i in range(1, 201)]
        client.send(WRITE_MULTI, self.multi(writes), NO_REPLY)
        self.assertEqual(client.reg(R_ORDER), 200)
        reply = client.ask(WRITE_MULTI, self.multi([(0, R_SCRATCH, b"\5\0\0\0")]))
        self.assertEqual(reply, struct.pack("=Q", 1))
        self.assertEqual(client.reg(R_SCRATCH), 5)

    def test_write_multi_goes_on_after_a_bad_one(self):
        client = self.client()
        writes = [(0, 9 * MIB, bytes(8)), (0, R_SCRATCH, b"\6" + bytes(7))]
        self.assertRefused(errno.EINVAL, client.ask, WRITE_MULTI, self.multi(writes))
        self.assertEqual(client.reg(R_SCRATCH), 6)
        oversized = struct.pack("=QQII", 1, 0, 0, 9) + bytes(8)
        self.assertRefused(errno.EINVAL, client.ask, WRITE_MULTI, oversized)

    def test_write_multi_lies(self):
        for count in (0, 2, ONES, (1 << 64) // 24 + 2):
            client = self.client()
            self.assertRefused(errno.EINVAL, client.ask, WRITE_MULTI,
                               self.multi([(0, R_SCRATCH, bytes(8))], count))
            self.assertClosed(client)


class TestDma(ServerTest):
    def load(self, client, addr):
        client.set_reg(R_DMA_ADDR, addr)
        return client.reg(R_DMA_LOAD)

    def test_read_and_write_guest_memory(self):
        client, fd = self.client(), self.memfd()
        with mmap.mmap(fd, 16 * PAGE) as ram:
            client.map(0x100000, 8 * PAGE, fd, 4 * PAGE)
            ram[4 * PAGE + 16:4 * PAGE + 24] = struct.pack("=Q", 0x1122334455667788)
            self.assertEqual(self.load(client, 0x100010), 0x1122334455667788)
            client.set_reg(R_DMA_STORE, 5)
            self.assertEqual(ram[4 * PAGE + 16], 0x88, "DMA without bus master")
            client.set_cfg(4, 2, 6)
            client.set_reg(R_DMA_STORE, 5)
            self.assertEqual(ram[4 * PAGE + 16], 5)
            self.assertEqual(self.load(client, 0x100000 + 8 * PAGE - 8), 0)
            self.assertEqual(self.load(client, 0x100000 + 8 * PAGE - 7), ONES)

    def test_unmap(self):
        client, fd = self.client(), self.memfd()
        client.map(0, PAGE, fd)
        client.map(PAGE, PAGE, fd, PAGE)
        self.assertRefused(errno.EINVAL, client.unmap, 0, PAGE // 2)
        self.assertRefused(errno.ENOENT, client.unmap, 2 * PAGE, PAGE)
        self.assertEqual(self.load(client, 0), 0)
        client.unmap(0, PAGE)
        self.assertEqual(self.load(client, 0), ONES)
        self.assertEqual(self.load(client, PAGE), 0)
        client.unmap(0, 0, 2)
        self.assertEqual(self.load(client, PAGE), ONES)
        self.assertRefused(errno.EINVAL, client.unmap, 0, PAGE, 2)
        self.assertRefused(errno.EINVAL, client.unmap, 0, PAGE, 4)

    def test_no_descriptor(self):
        client = self.client()
        client.map(0xfffc0000, 0x40000, flags=1)
        self.assertEqual(self.load(client, 0xfffc0000), ONES)
        client.unmap(0xfffc0000, 0x40000)

    def test_read_only(self):
        client, fd = self.client(), self.memfd()
        client.map(0, PAGE, fd, flags=1)
        client.set_cfg(4, 2, 6)
        client.set_reg(R_DMA_ADDR, 0)
        client.set_reg(R_DMA_STORE, 5)
        self.assertEqual(client.reg(R_DMA_LOAD), 0)

    def test_refused(self):
        client, fd = self.client(), self.memfd()
        client.map(4 * PAGE, 4 * PAGE, fd)
        pipe = os.pipe()
        self.fds += pipe
        for code, args in ((errno.EEXIST, (5 * PAGE, PAGE, fd)), (errno.EINVAL, (0, 0, fd)),
                           (errno.EINVAL, (1, PAGE, fd)), (errno.EINVAL, (0, 100, fd)),
                           (errno.EINVAL, (0, PAGE, fd, 12)), (errno.ERANGE, (0, PAGE, fd, 16 * PAGE)),
                           (errno.ERANGE, (1 << 40, 17 * PAGE, fd)),
                           (errno.ERANGE, (0, PAGE, fd, (1 << 64) - PAGE)),
                           (errno.EINVAL, ((1 << 64) - PAGE, 2 * PAGE, fd)),
                           (errno.EINVAL, (0, PAGE, fd, 0, 0x80)),
                           (errno.EINVAL, (0, PAGE, pipe[0]))):
            with self.subTest(args=args):
                self.assertRefused(code, client.map, *args)
        self.assertRefused(errno.EINVAL, client.ask, DMA_MAP,
                           struct.pack("=IIQQQ", 32, 3, 0, 0, PAGE), fds=[fd, fd])
        client.map(0, PAGE, fd)

    def test_burst_of_maps(self):
        """Maps are sent back to back without waiting: each descriptor finds its message."""
        client = self.client()
        files = [self.memfd(1) for _ in range(64)]
        for i, fd in enumerate(files):
            os.pwrite(fd, struct.pack("=Q", 1000 + i), 0)
            client.post(0, R_SCRATCH, bytes(8))
            client.send(DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, i * PAGE, PAGE), NO_REPLY, [fd])
            client.send(DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, (i + 100) * PAGE, PAGE), NO_REPLY)
        for i in range(64):
            self.assertEqual(self.load(client, i * PAGE), 1000 + i)
            self.assertEqual(self.load(client, (i + 100) * PAGE), ONES)

    def test_message_in_pieces(self):
        """Descriptors come with the first byte; the rest of the message may come much later."""
        client, fd = self.client(), self.memfd()
        body = struct.pack("=HHIII", 9, DMA_MAP, 48, 0, 0) + struct.pack("=IIQQQ", 32, 3, 0, 0, PAGE)
        tail = struct.pack("=HHIII", 10, DMA_MAP, 48, 0, 0) + \
            struct.pack("=IIQQQ", 32, 3, 0, 1 << 20, PAGE)
        socket.send_fds(client.sock, [body[:5]], [fd])
        for byte in body[5:40]:
            client.sock.send(bytes([byte]))
        client.sock.send(body[40:] + tail)
        client.receive(DMA_MAP, 9)
        client.receive(DMA_MAP, 10)
        self.assertEqual(self.load(client, 0), 0)
        self.assertEqual(self.load(client, 1 << 20), ONES)

    def test_warns_of_private_memory(self):
        for shared in (True, False):
            client = self.client()
            client.map(0, 16 * PAGE, self.memfd() if shared else None)
            client.unmap(0, 16 * PAGE)
            client.set_cfg(4, 2, 6)
            client.close()
            self.assertServes()
            self.log.seek(0)
            self.assertEqual(b"guest memory is not shared" in self.log.read(), not shared)

    def test_memory_is_let_go(self):
        client, fd = self.client(), self.memfd()
        client.map(0, PAGE, fd)
        maps = f"/proc/{self.server.pid}/maps"
        with open(maps) as f:
            self.assertIn("memfd:guest", f.read())
        client.close()
        self.assertEqual(self.load(self.client(), 0), ONES)
        self.become(False, lambda: "memfd:guest" in open(maps).read())

    def test_shrunk_memory(self):
        client, fd = self.client(), self.memfd()
        os.pwrite(fd, b"\1" * 8, 8 * PAGE)
        client.map(0, 16 * PAGE, fd)
        os.ftruncate(fd, PAGE)
        self.assertEqual(self.load(client, 8 * PAGE), 0)


class TestIrq(ServerTest):
    def setUp(self):
        super().setUp()
        self.c = self.client()

    def enable(self):
        self.c.set_cfg(4, 2, 6)
        self.c.irqs(EVENTFD | TRIGGER, 0, 1)

    def test_as_qemu_does(self):
        self.enable()
        fds = [self.eventfd() for _ in range(3)]
        for i, fd in enumerate(fds):
            self.c.irqs(EVENTFD | TRIGGER, i * 2, 1, fds=[fd])
        self.c.set_reg(R_FIRE, 2)
        self.assertEqual([self.peek(fd) for fd in fds], [0, 1, 0])
        self.c.set_reg(R_FIRE, 0)
        self.c.set_reg(R_FIRE, 0)
        self.assertEqual([self.peek(fd) for fd in fds], [2, 0, 0])
        self.c.irqs(NONE | TRIGGER, 0, 0)
        self.c.set_reg(R_FIRE, 0)
        self.assertEqual([self.peek(fd) for fd in fds], [0, 0, 0])

    def peek(self, fd):
        try:
            return os.eventfd_read(fd)
        except BlockingIOError:
            return 0

    def test_chunk(self):
        self.enable()
        fds = [self.eventfd() for _ in range(16)]
        self.c.irqs(EVENTFD | TRIGGER, 24, 16, fds=fds)
        for vector in range(40):
            self.c.set_reg(R_FIRE, vector)
        for fd in fds:
            self.assertCount(fd, 1)

    def test_replace(self):
        self.enable()
        old, new = self.eventfd(), self.eventfd()
        for fd in (old, new):
            self.c.irqs(EVENTFD | TRIGGER, 5, 1, fds=[fd])
        self.c.set_reg(R_FIRE, 5)
        self.assertCount(old, 0)
        self.assertCount(new, 1)

    def test_fired_before_assigned(self):
        self.enable()
        fd = self.eventfd()
        for _ in range(3):
            self.c.set_reg(R_FIRE, 7)
        self.c.irqs(EVENTFD | TRIGGER, 7, 1, fds=[fd])
        self.assertCount(fd, 1)
        self.assertCount(fd, 0)

    def test_held_back_without_bus_master(self):
        self.enable()
        fd = self.eventfd()
        self.c.irqs(EVENTFD | TRIGGER, 1, 1, fds=[fd])
        self.c.set_cfg(4, 2, 2)
        self.c.set_reg(R_FIRE, 1)
        self.assertCount(fd, 0)
        self.c.set_cfg(4, 2, 6)
        self.assertCount(fd, 1)

    def test_reset_keeps_eventfds_and_drops_pending(self):
        self.enable()
        fd = self.eventfd()
        self.c.irqs(EVENTFD | TRIGGER, 1, 1, fds=[fd])
        self.c.set_cfg(4, 2, 2)
        self.c.set_reg(R_FIRE, 1)
        self.c.set_cfg(self.c.capability(0x10) + 8, 2, 0x8000)
        self.c.set_cfg(4, 2, 6)
        self.assertCount(fd, 0)
        self.c.set_reg(R_FIRE, 1)
        self.assertCount(fd, 1)

    def test_loopback(self):
        self.enable()
        fds = [self.eventfd() for _ in range(3)]
        self.c.irqs(EVENTFD | TRIGGER, 0, 3, fds=fds)
        self.c.irqs(NONE | TRIGGER, 0, 2)
        self.c.irqs(BOOL | TRIGGER, 0, 3, b"\0\1\1")
        self.assertEqual([self.peek(fd) for fd in fds], [1, 2, 1])

    def test_refused(self):
        fd = self.eventfd()
        for flags, start, count, data, fds, index in (
                (EVENTFD | TRIGGER, 40, 1, b"", [fd], MSIX),
                (EVENTFD | TRIGGER, 39, 2, b"", [fd, fd], MSIX),
                (EVENTFD | TRIGGER, 0xffffffff, 2, b"", [fd, fd], MSIX),
                (EVENTFD | TRIGGER, 1, 0xffffffff, b"", [], MSIX),
                (EVENTFD | TRIGGER, 0, 2, b"", [fd], MSIX),
                (EVENTFD | TRIGGER, 0, 1, b"", [fd, fd], MSIX),
                (EVENTFD | TRIGGER, 0, 1, b"", [fd], INTX),
                (EVENTFD | TRIGGER, 0, 1, b"", [fd], 5),
                (EVENTFD | TRIGGER, 0, 0, b"", [], MSIX),
                (NONE | TRIGGER, 3, 0, b"", [], MSIX),
                (EVENTFD | BOOL | TRIGGER, 0, 1, b"\1", [fd], MSIX),
                (EVENTFD | MASK, 0, 1, b"", [fd], MSIX),
                (NONE | UNMASK, 0, 1, b"", [], MSIX),
                (NONE | MASK | TRIGGER, 0, 1, b"", [], MSIX),
                (TRIGGER, 0, 1, b"", [], MSIX),
                (NONE, 0, 1, b"", [], MSIX),
                (BOOL | TRIGGER, 0, 3, b"\1\1", [], MSIX),
                (NONE | TRIGGER | 0x100, 0, 1, b"", [], MSIX)):
            with self.subTest(flags=flags, start=start, count=count, index=index):
                self.assertRefused(errno.EINVAL, self.c.irqs, flags, start, count, data, fds, index)
        self.c.irqs(NONE | TRIGGER, 0, 0, index=INTX)

    def test_only_eventfds(self):
        pipe = os.pipe()
        self.fds += pipe
        for fd in (pipe[1], self.memfd()):
            self.assertRefused(errno.EINVAL, self.c.irqs, EVENTFD | TRIGGER, 0, 1, fds=[fd])

    def test_full_counter_does_not_block(self):
        self.enable()
        fd = os.eventfd(0)
        self.fds.append(fd)
        os.eventfd_write(fd, ONES - 1)
        self.c.irqs(EVENTFD | TRIGGER, 0, 1, fds=[fd])
        self.c.set_reg(R_FIRE, 0)
        self.assertEqual(self.c.reg(R_MAGIC), MAGIC)

    def test_client_makes_it_blocking(self):
        """The client shares the file's flags. It cannot stop the server by them."""
        self.enable()
        fd = self.eventfd()
        self.c.irqs(EVENTFD | TRIGGER, 0, 1, fds=[fd])
        os.set_blocking(fd, True)
        os.eventfd_write(fd, ONES - 1)
        for _ in range(3):
            self.c.set_reg(R_FIRE, 0)
        self.assertEqual(self.c.reg(R_MAGIC), MAGIC)

    def test_vector_out_of_range(self):
        self.enable()
        for vector in (40, 1 << 31, (1 << 32) - 1):
            self.c.set_reg(R_FIRE, vector)
        self.assertEqual(self.c.reg(R_MAGIC), MAGIC)


class TestHostile(ServerTest):
    def expect_close(self, data, fds=()):
        client = self.client()
        if fds:
            socket.send_fds(client.sock, [data], fds)
        else:
            client.sock.sendall(data)
        self.assertClosed(client)
        self.assertServes()

    def header(self, cmd=GET_INFO, size=32, flags=0):
        return struct.pack("=HHIII", 1, cmd, size, flags, 0)

    def test_short_header(self):
        client = self.client()
        client.sock.sendall(self.header()[:9])
        client.close()
        self.assertServes()

    def test_size_too_small(self):
        for size in (0, 1, 15):
            self.expect_close(self.header(size=size))

    def test_size_too_large(self):
        for size in (XFER + 33, 1 << 31, 0xffffffff):
            self.expect_close(self.header(size=size) + bytes(4096))

    def test_truncated_payload(self):
        client = self.client()
        client.sock.sendall(self.header(REGION_WRITE, 16 + 16 + 4096) + bytes(100))
        client.close()
        self.assertServes()

    def test_payload_shorter_than_its_fields(self):
        for cmd, need in ((DMA_MAP, 32), (DMA_UNMAP, 24), (GET_INFO, 16), (REGION_INFO, 32),
                          (IRQ_INFO, 16), (SET_IRQS, 20), (REGION_READ, 16), (REGION_WRITE, 16),
                          (WRITE_MULTI, 8)):
            with self.subTest(cmd=cmd):
                client = self.client()
                self.assertRefused(errno.EINVAL, client.ask, cmd, bytes(need - 1))
                self.assertClosed(client)
        client = self.client(version=False)
        self.assertRefused(errno.EINVAL, client.ask, VERSION, bytes(3))
        self.assertServes()

    def test_write_count_lies(self):
        for count in (0, 7, 9, 0xffffffff):
            client = self.client()
            self.assertRefused(errno.EINVAL, client.ask, REGION_WRITE,
                               struct.pack("=QII", R_SCRATCH, 0, count) + bytes(8))
            self.assertClosed(client)

    def test_reply_instead_of_request(self):
        for flags in (REPLY, 2, 0xf):
            self.expect_close(self.header(flags=flags) + bytes(16))

    def test_unknown_commands(self):
        client = self.client()
        for cmd in (0, REGION_IO_FDS, DMA_READ, DMA_WRITE, DIRTY, FEATURE, 17, 18, 19, 0xffff):
            self.assertRefused(errno.ENOTSUP, client.ask, cmd, bytes(64))
        self.assertEqual(client.reg(R_MAGIC), MAGIC)

    def test_too_many_fds(self):
        fd = self.memfd()
        message = self.header(SET_IRQS, 36) + struct.pack("=IIIII", 20, EVENTFD | TRIGGER, MSIX, 0, 17)
        self.expect_close(message, [fd] * 17)
        # Sixteen with the first byte and one more with the last.
        client = self.client()
        socket.send_fds(client.sock, [message[:35]], [fd] * 16)
        socket.send_fds(client.sock, [message[35:]], [fd])
        self.assertClosed(client)
        self.assertServes()

    def count_fds(self):
        return len(os.listdir(f"/proc/{self.server.pid}/fd"))

    def test_unwanted_fds_are_closed(self):
        client, fd = self.client(), self.memfd()
        client.reg(R_MAGIC)
        before = self.count_fds()
        for _ in range(20):
            client.ask(GET_INFO, struct.pack("=IIII", 16, 0, 0, 0), fds=[fd] * 16)
            self.assertRefused(errno.EINVAL, client.map, 1, PAGE, fd)
            client.map(0, PAGE, fd)
            client.unmap(0, PAGE)
            self.assertRefused(errno.ENOTSUP, client.ask, 99, fds=[fd])
        self.become(before, self.count_fds)

    def test_no_fd_leak_over_clients(self):
        client = self.client()
        before = self.count_fds()
        for _ in range(10):
            client.irqs(EVENTFD | TRIGGER, 0, 1, fds=[self.eventfd()])
            client.map(0, PAGE, self.memfd())
            # Ends in the middle of a message that carries a descriptor.
            socket.send_fds(client.sock, [self.header(DMA_MAP, 48)], [self.memfd()])
            client.close()
            client = self.client()
            self.become(before, self.count_fds)

    def test_own_socket(self):
        """A client leaves in the middle of a message with its end of the connection as descriptor: the server still notices the
        end."""
        client = self.client()
        before = self.count_fds()
        socket.send_fds(client.sock, [self.header(DMA_MAP, 48)], [client.sock.fileno()])
        client.close()
        self.client()
        self.become(before, self.count_fds)

    def test_client_that_does_not_read(self):
        """Megabytes of replies without a reader: the server stops reading and survives."""
        client = self.client()
        client.sock.setblocking(False)
        request = struct.pack("=HHIII", 1, REGION_READ, 32, 0, 0) + struct.pack("=QII", 0, 0, XFER)
        sent = 0
        deadline = time.monotonic() + 10
        while select.select([], [client.sock], [], 0.5)[1] and time.monotonic() < deadline:
            sent += client.sock.send(request * 64)
        self.assertLess(time.monotonic(), deadline)
        with open(f"/proc/{self.server.pid}/statm") as f:
            self.assertGreater(int(f.read().split()[1]), 0)
        # Now read them all: nothing was lost.
        client.sock.setblocking(True)
        client.sock.settimeout(10)
        for _ in range(min(sent // 32, 40)):
            self.assertEqual(len(client.receive(REGION_READ, 1)), XFER + 16)

    def test_pipelined_large_reads(self):
        """More replies than fit the buffer at once, with all requests sent before the first reply."""
        client = self.client()
        request = struct.pack("=HHIII", 1, REGION_READ, 32, 0, 0) + struct.pack("=QII", 0, 0, XFER)
        client.sock.sendall(request * 12)
        for _ in range(12):
            self.assertEqual(len(client.receive(REGION_READ, 1)), XFER + 16)

    def test_noise(self):
        import random
        rng = random.Random(1)
        for _ in range(300):
            client = self.client()
            cmd = rng.randrange(0, 20)
            payload = rng.randbytes(rng.randrange(0, 80))
            try:
                for _ in range(3):
                    client.ask(cmd, payload)
            except (Refused, EOFError, ConnectionError):
                pass
            client.close()
        self.assertServes()


class TestClients(ServerTest):
    def test_reset_on_disconnect(self):
        client = self.client()
        client.set_cfg(4, 2, 6)
        client.set_reg(R_SCRATCH, 9)
        fd = self.eventfd()
        client.irqs(EVENTFD | TRIGGER, 0, 1, fds=[fd])
        client.close()
        client = self.client()
        self.assertEqual(client.reg(R_RESETS), 1 << 8 | DISCONNECT)
        self.assertEqual(client.reg(R_SCRATCH), 0)
        self.assertEqual(client.reg(R_BUS_MASTER), 2 << 1)
        self.assertEqual(client.cfg(4, 2), 0)
        client.set_cfg(4, 2, 6)
        client.set_reg(R_FIRE, 0)
        self.assertCount(fd, 0)

    def test_second_client_refused_at_once(self):
        first = self.client()
        started = time.monotonic()
        for _ in range(3):
            second = socket.socket(socket.AF_UNIX)
            second.settimeout(5)
            second.connect(self.path)
            self.assertEqual(second.recv(1), b"")
            second.close()
        self.assertLess(time.monotonic() - started, 2)
        self.assertEqual(first.reg(R_MAGIC), MAGIC)

    def test_many_in_turn(self):
        for _ in range(50):
            client = self.client()
            self.assertEqual(client.reg(R_MAGIC), MAGIC)
            client.close()

    def test_socket_in_use(self):
        other = subprocess.run([binary, self.path], stderr=subprocess.PIPE, timeout=10)
        self.assertEqual(other.returncode, 1)
        self.assertIn(b"in use", other.stderr)
        self.assertServes()

    def test_stale_socket_replaced(self):
        self.server.kill()
        self.server.wait()
        self.assertTrue(os.path.exists(self.path))
        self.server = self.start()
        self.assertServes()

    def test_no_socket_is_never_replaced(self):
        path = os.path.join(scratch, "precious")
        with open(path, "w") as f:
            f.write("data")
        other = subprocess.run([binary, path], stderr=subprocess.PIPE, timeout=10)
        self.assertEqual(other.returncode, 1)
        with open(path) as f:
            self.assertEqual(f.read(), "data")

    def test_path_too_long(self):
        other = subprocess.run([binary, "/tmp/" + "x" * 120], stderr=subprocess.PIPE, timeout=10)
        self.assertEqual(other.returncode, 1)
        self.assertIn(b"longer than 107", other.stderr)

    def test_work_hook_timer(self):
        client = self.client()
        first = client.reg(R_TURNS)
        select.select([], [], [], 1)
        turns = client.reg(R_TURNS) - first
        self.assertGreater(turns, 5)
        self.assertLess(turns, 40)


class TestSpinning(ServerTest):
    arguments = ("spin",)

    def test_events_while_busy(self):
        client = self.client()
        first = client.reg(R_TURNS)
        for i in range(1, 1001):
            client.post(0, R_ORDER, struct.pack("=Q", i))
        self.assertEqual(client.reg(R_ORDER), 1000)
        self.assertGreater(client.reg(R_TURNS), first + 100)


if __name__ == "__main__":
    tap.main()
