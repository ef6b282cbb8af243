# SPDX-License-Identifier: GPL-2.0
"""pcapng files: a reader, and a writer of small ones for tests."""
import struct

SECTION, INTERFACE, STATISTICS, PACKET = 0x0a0d0d0a, 1, 5, 6
MAGIC = 0x1a2b3c4d
COMMENT, IF_NAME, IF_DESCRIPTION, IF_TSRESOL, FLAGS, DROPPED = 1, 2, 3, 9, 2, 5


class FormatError(Exception):
    """Not a pcapng file, or a truncated one."""


class Interface:
    def __init__(self, name, description, ticks):
        self.name, self.description, self.ticks = name, description, ticks
        self.dropped = 0
        self.end_ns = 0         # end of the capture, if the file has it

    @property
    def is_device(self):
        """Return true for the port of a device of the daemon: nothing is lost between the two."""
        return self.description == "ornic device"


class Packet:
    """A frame at an interface. inbound: into the switch; None: unknown."""
    __slots__ = ("number", "interface", "ns", "inbound", "data", "length", "comments")

    def __init__(self, number, interface, ns, inbound, data, length, comments):
        self.number, self.interface, self.ns, self.inbound = number, interface, ns, inbound
        self.data, self.length, self.comments = data, length, comments


def options(body, order):
    at = 0
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, at)
        if not code:
            return
        yield code, body[at + 4:at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def blocks(data):
    """Yield (type, body, byte order) of each block."""
    at, order = 0, "<"
    while at < len(data):
        if at + 12 > len(data):
            raise FormatError("the file ends inside a block")
        kind = struct.unpack_from("<I", data, at)[0]
        if kind == SECTION:
            order = "<" if struct.unpack_from("<I", data, at + 8)[0] == MAGIC else ">"
        kind, length = struct.unpack_from(order + "II", data, at)
        if length < 12 or length % 4 or at + length > len(data):
            raise FormatError("the file ends inside a block")
        if struct.unpack_from(order + "I", data, at + length - 4)[0] != length:
            raise FormatError("a block's two lengths differ")
        yield kind, data[at + 8:at + length - 4], order
        at += length


def resolution(value):
    """Return the ticks per second of option if_tsresol."""
    return 2 ** (value & 0x7f) if value & 0x80 else 10 ** value


def read_interface(body, order):
    name = description = ""
    ticks = 10 ** 6
    for code, value in options(body[8:], order):
        if code == IF_NAME:
            name = value.decode(errors="replace")
        elif code == IF_DESCRIPTION:
            description = value.decode(errors="replace")
        elif code == IF_TSRESOL:
            ticks = resolution(value[0])
    return Interface(name, description, ticks)


def read_packet(number, interfaces, body, order):
    index, high, low, kept, length = struct.unpack_from(order + "IIIII", body)
    interface = interfaces[index]
    comments, inbound = [], None
    for code, value in options(body[20 + (kept + 3) // 4 * 4:], order):
        if code == COMMENT:
            comments.append(value.decode(errors="replace"))
        elif code == FLAGS:
            inbound = {1: True, 2: False}.get(struct.unpack(order + "I", value)[0] & 3)
    ns = (high << 32 | low) * 10 ** 9 // interface.ticks
    return Packet(number, interface, ns, inbound, body[20:20 + kept], length, comments)


def read(path):
    """Return (packets, interfaces); packets are numbered from 1, as Wireshark does."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] != struct.pack("<I", SECTION):
        raise FormatError("not a pcapng file")
    packets, interfaces, section = [], [], []
    for kind, body, order in blocks(data):
        if kind == SECTION:
            section = []
        elif kind == INTERFACE:
            section.append(read_interface(body, order))
            interfaces.append(section[-1])
        elif kind == PACKET:
            packets.append(read_packet(len(packets) + 1, section, body, order))
        elif kind == STATISTICS:
            index, high, low = struct.unpack_from(order + "III", body)
            section[index].end_ns = (high << 32 | low) * 10 ** 9 // section[index].ticks
            for code, value in options(body[12:], order):
                if code == DROPPED:
                    section[index].dropped = struct.unpack(order + "Q", value)[0]
    return packets, interfaces


class Writer:
    """Build a capture; names of interfaces that begin with "vm" are devices'."""

    def __init__(self):
        self.out = [self.block(SECTION, struct.pack("<IHHq", MAGIC, 1, 0, -1))]
        self.names = []

    @staticmethod
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    @staticmethod
    def option(code, value):
        return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)

    def interface(self, name):
        if name not in self.names:
            description = b"ornic device" if name.startswith("vm") else b"port to the outside"
            self.names.append(name)
            self.out.append(self.block(INTERFACE, struct.pack("<HHI", 1, 0, 0) + self.option(IF_NAME, name.encode()) +
                                       self.option(IF_DESCRIPTION, description) + self.option(IF_TSRESOL, b"\x09") + bytes(4)))
        return self.names.index(name)

    def packet(self, name, ns, inbound, data, comment=None):
        index = self.interface(name)
        body = struct.pack("<IIIII", index, ns >> 32, ns & 0xffffffff, len(data), len(data)) + data + bytes(-len(data) % 4)
        if comment:
            body += self.option(COMMENT, comment.encode())
        self.out.append(self.block(PACKET, body + self.option(FLAGS, struct.pack("<I", 1 if inbound else 2)) + bytes(4)))

    def statistics(self, name, dropped, ns=0):
        self.out.append(self.block(STATISTICS, struct.pack("<III", self.interface(name), ns >> 32, ns & 0xffffffff) +
                                   self.option(DROPPED, struct.pack("<Q", dropped)) + bytes(4)))

    def save(self, path):
        with open(path, "wb") as file:
            file.write(b"".join(self.out))
