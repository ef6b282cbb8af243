# SPDX-License-Identifier: GPL-2.0
"""The client side of vfio-user, message by message: as QEMU sends them, and as an attacker would."""
import json
import socket
import struct

(VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, REGION_INFO, REGION_IO_FDS, IRQ_INFO, SET_IRQS,
 REGION_READ, REGION_WRITE, DMA_READ, DMA_WRITE, RESET, DIRTY, WRITE_MULTI, FEATURE) = range(1, 17)
REPLY, NO_REPLY, ERROR = 0x1, 0x10, 0x20
CONFIG = 7
NONE, BOOL, EVENTFD, MASK, UNMASK, TRIGGER = 1, 2, 4, 8, 16, 32
INTX, MSI, MSIX, ERR, REQ = range(5)
ONES = 0xffffffffffffffff
PAGE = 4096
MIB = 1 << 20

CAPS = {"capabilities": {"max_msg_fds": 16, "max_data_xfer_size": MIB, "pgsizes": PAGE,
                         "max_dma_maps": 65535, "write_multiple": True,
                         "migration": {"pgsize": PAGE, "max_bitmap_size": 1 << 28}}}


class Refused(Exception):
    """An error reply."""


class Client:
    """One connection; ids count up as QEMU's do."""

    def __init__(self, path, version=True, caps=CAPS):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(5)
        self.id = 0
        try:
            self.sock.connect(path)
            if version:
                self.caps = self.version(caps)
        except (EOFError, OSError):
            self.close()
            raise

    def close(self):
        self.sock.close()

    def send(self, cmd, payload=b"", flags=0, fds=(), size=None):
        self.id = (self.id + 1) & 0xffff
        size = 16 + len(payload) if size is None else size
        data = struct.pack("=HHIII", self.id, cmd, size, flags, 0) + payload
        sent = socket.send_fds(self.sock, [data], list(fds)) if fds else 0
        if sent < len(data):
            self.sock.sendall(data[sent:])
        return self.id

    def exactly(self, n):
        data = b""
        while len(data) < n:
            got = self.sock.recv(n - len(data))
            if not got:
                raise EOFError
            data += got
        return data

    def receive(self, cmd, msg_id=None):
        rid, rcmd, size, flags, err = struct.unpack("=HHIII", self.exactly(16))
        assert (rid, rcmd) == (self.id if msg_id is None else msg_id, cmd), (rid, rcmd)
        assert flags & 0xf == REPLY
        payload = self.exactly(size - 16)
        if flags & ERROR:
            assert not payload
            raise Refused(err)
        return payload

    def ask(self, cmd, payload=b"", fds=(), **kw):
        self.send(cmd, payload, fds=fds, **kw)
        return self.receive(cmd)

    def version(self, caps=CAPS, major=0, minor=0):
        text = json.dumps(caps).encode() + b"\0" if caps is not None else b""
        reply = self.ask(VERSION, struct.pack("=HH", major, minor) + text)
        assert struct.unpack("=HH", reply[:4]) == (0, 0)
        assert reply[-1] == 0
        return json.loads(reply[4:-1])["capabilities"]

    def read(self, region, off, count):
        reply = self.ask(REGION_READ, struct.pack("=QII", off, region, count))
        assert struct.unpack("=QII", reply[:16]) == (off, region, count)
        return reply[16:]

    def write(self, region, off, data):
        reply = self.ask(REGION_WRITE, struct.pack("=QII", off, region, len(data)) + data)
        assert struct.unpack("=QII", reply) == (off, region, len(data))

    def post(self, region, off, data):
        self.send(REGION_WRITE, struct.pack("=QII", off, region, len(data)) + data, NO_REPLY)

    def reg(self, off):
        return struct.unpack("=Q", self.read(0, off, 8))[0]

    def set_reg(self, off, val):
        self.write(0, off, struct.pack("=Q", val))

    def cfg(self, off, size):
        return int.from_bytes(self.read(CONFIG, off, size), "little")

    def set_cfg(self, off, size, val):
        self.write(CONFIG, off, val.to_bytes(size, "little"))

    def capability(self, want):
        at = self.cfg(0x34, 1)
        while at:
            cap, following = self.read(CONFIG, at, 2)
            if cap == want:
                return at
            at = following
        raise AssertionError(f"no capability {want:#x}")

    def map(self, addr, size, fd=None, offset=0, flags=3):
        self.ask(DMA_MAP, struct.pack("=IIQQQ", 32, flags, offset, addr, size),
                 fds=[] if fd is None else [fd])

    def unmap(self, addr, size, flags=0):
        request = struct.pack("=IIQQ", 24, flags, addr, size)
        assert self.ask(DMA_UNMAP, request) == request

    def irqs(self, flags, start, count, data=b"", fds=(), index=MSIX):
        self.ask(SET_IRQS, struct.pack("=IIIII", 20 + len(data), flags, index, start, count) +
                 data, fds=fds)
