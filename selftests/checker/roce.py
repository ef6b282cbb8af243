# SPDX-License-Identifier: GPL-2.0
"""RoCEv2 frames (IBTA volume 1, chapter 9, annexes A14, A17 and A19): bytes to fields, and back."""
import ipaddress
import struct
import zlib

PORT = 4791
PSN_MASK = 0xffffff
RC, UC, UD, CNP, XRC = 0x00, 0x20, 0x60, 0x80, 0xa0

(SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM,
 WRITE_ONLY, WRITE_ONLY_IMM, READ_REQUEST, READ_RESP_FIRST, READ_RESP_MIDDLE, READ_RESP_LAST, READ_RESP_ONLY, ACK, ATOMIC_ACK,
 COMPARE_SWAP, FETCH_ADD) = range(0x15)
SEND_LAST_INV, SEND_ONLY_INV, FLUSH, ATOMIC_WRITE = 0x16, 0x17, 0x1c, 0x1d
CNP_OPCODE = 0x81

NAMES = {SEND_FIRST: "SEND FIRST", SEND_MIDDLE: "SEND MIDDLE", SEND_LAST: "SEND LAST", SEND_LAST_IMM: "SEND LAST IMM",
         SEND_ONLY: "SEND ONLY", SEND_ONLY_IMM: "SEND ONLY IMM", WRITE_FIRST: "WRITE FIRST", WRITE_MIDDLE: "WRITE MIDDLE",
         WRITE_LAST: "WRITE LAST", WRITE_LAST_IMM: "WRITE LAST IMM", WRITE_ONLY: "WRITE ONLY", WRITE_ONLY_IMM: "WRITE ONLY IMM",
         READ_REQUEST: "READ", READ_RESP_FIRST: "READ RESPONSE FIRST", READ_RESP_MIDDLE: "READ RESPONSE MIDDLE",
         READ_RESP_LAST: "READ RESPONSE LAST", READ_RESP_ONLY: "READ RESPONSE ONLY", ACK: "ACK", ATOMIC_ACK: "ATOMIC ACK",
         COMPARE_SWAP: "COMPARE SWAP", FETCH_ADD: "FETCH ADD", SEND_LAST_INV: "SEND LAST INV", SEND_ONLY_INV: "SEND ONLY INV",
         FLUSH: "FLUSH", ATOMIC_WRITE: "ATOMIC WRITE"}

ANSWERS = range(READ_RESP_FIRST, ATOMIC_ACK + 1)
FIRST = {SEND_FIRST, WRITE_FIRST}
MIDDLE = {SEND_MIDDLE, WRITE_MIDDLE}
LAST = {SEND_LAST, SEND_LAST_IMM, SEND_LAST_INV, WRITE_LAST, WRITE_LAST_IMM}
SENDS = {SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM, SEND_LAST_INV, SEND_ONLY_INV}
ATOMICS = {COMPARE_SWAP, FETCH_ADD}
# Requests with a response, not merely an acknowledgement
RESPONDED = ATOMICS | {READ_REQUEST, FLUSH, ATOMIC_WRITE}
# Requests that use up a receive of the responder
TAKE_RECEIVE = SENDS | {WRITE_LAST_IMM, WRITE_ONLY_IMM}

# Extension headers by operation, in their order: format and fields
RETH, AETH, IMM, IETH = ("QII", ("va", "rkey", "dmalen")), ("I", ("aeth",)), ("I", ("imm",)), ("I", ("inv_rkey",))
ATOMICETH, ATOMICACK, FETH = ("QIQQ", ("va", "rkey", "swap_add", "compare")), ("Q", ("value",)), ("I", ("feth",))
DETH, XRCETH = ("II", ("qkey", "sqpn")), ("I", ("srqn",))
EXTENSIONS = {WRITE_FIRST: [RETH], WRITE_ONLY: [RETH], WRITE_ONLY_IMM: [RETH, IMM], WRITE_LAST_IMM: [IMM], READ_REQUEST: [RETH],
              SEND_LAST_IMM: [IMM], SEND_ONLY_IMM: [IMM], SEND_LAST_INV: [IETH], SEND_ONLY_INV: [IETH], READ_RESP_FIRST: [AETH],
              READ_RESP_LAST: [AETH], READ_RESP_ONLY: [AETH], ACK: [AETH], ATOMIC_ACK: [AETH, ATOMICACK], COMPARE_SWAP: [ATOMICETH],
              FETCH_ADD: [ATOMICETH], FLUSH: [FETH, RETH], ATOMIC_WRITE: [RETH]}
FIELDS = ("va", "rkey", "dmalen", "aeth", "imm", "inv_rkey", "swap_add", "compare", "value", "feth", "qkey", "sqpn", "srqn")

NAK_CODES = ("PSN sequence error", "invalid request", "remote access error", "remote operational error", "invalid RD request")


class Frame:
    """A RoCEv2 frame: addresses as text, fields of the headers (None where it has none), payload without pad.

    size: bytes of the payload, of which the capture may contain a part. fault: description of its fault, or None; with a fault,
    fields may be missing.
    """
    __slots__ = ("src", "dst", "sport", "ecn", "opcode", "transport", "op", "solicited", "migreq", "pad", "pkey", "dqpn", "fecn",
                 "becn", "ackreq", "psn", "payload", "size", "fault", "whole") + FIELDS

    def __init__(self):
        for name in self.__slots__:
            setattr(self, name, None)

    @property
    def is_answer(self):
        return self.transport in (RC, XRC) and self.op in ANSWERS

    @property
    def kind(self):
        """Return the kind of an AETH: 0 ACK, 1 RNR NAK, 3 NAK."""
        return self.aeth >> 29 & 3

    @property
    def code(self):
        return self.aeth >> 24 & 0x1f

    @property
    def msn(self):
        return self.aeth & PSN_MASK

    @property
    def name(self):
        if self.opcode == CNP_OPCODE:
            return "CNP"
        if self.op == ACK and self.aeth is not None and self.kind:
            return "RNR NAK" if self.kind == 1 else "NAK (%s)" % (NAK_CODES[self.code] if self.code < len(NAK_CODES) else self.code)
        return NAMES.get(self.op, "opcode 0x%02x" % self.opcode)


def extensions(transport, op):
    known = EXTENSIONS.get(op, [])
    if transport == UD:
        return [DETH] + known
    if transport == XRC and op not in ANSWERS:
        return [XRCETH] + known
    return known


def icrc(ip, version, rest):
    """Compute the invariant CRC over an IP header, UDP, BTH and the rest; fields that routers change count as ones."""
    ip, rest = bytearray(ip), bytearray(rest)
    if version == 4:
        ip[1], ip[8], ip[10:12] = 0xff, 0xff, b"\xff\xff"
    else:
        ip[0] |= 0x0f
        ip[1:4] = b"\xff\xff\xff"
        ip[7] = 0xff
    rest[6:8] = b"\xff\xff"
    rest[12] = 0xff
    return zlib.crc32(b"\xff" * 8 + bytes(ip) + bytes(rest))


def parse(data, length=None):
    """Return the frame, or None if it is not RoCEv2. length: of the whole frame; a truncated record is no fault."""
    at = 12
    while data[at:at + 2] == b"\x81\x00":
        at += 4
    kind, at = data[at:at + 2], at + 2
    if kind == b"\x08\x00" and len(data) >= at + 28 and data[at] == 0x45 and data[at + 9] == 17:
        version, ip, total = 4, data[at:at + 20], struct.unpack_from(">H", data, at + 2)[0]
        tos, source, destination = ip[1], ip[12:16], ip[16:20]
    elif kind == b"\x86\xdd" and len(data) >= at + 48 and data[at + 6] == 17:
        version, ip, total = 6, data[at:at + 40], struct.unpack_from(">H", data, at + 4)[0] + 40
        tos, source, destination = (ip[0] << 4 | ip[1] >> 4) & 0xff, ip[8:24], ip[24:40]
    else:
        return None
    sport, dport, udp_length = struct.unpack_from(">HHH", data, at + len(ip))
    if dport != PORT:
        return None
    f = Frame()
    f.src, f.dst = str(ipaddress.ip_address(source)), str(ipaddress.ip_address(destination))
    f.sport, f.ecn = sport, tos & 3
    length = len(data) if length is None else length
    f.whole = length == len(data)
    rest = data[at + len(ip):at + total]
    if udp_length != total - len(ip) or length < at + total:
        f.fault = "the lengths of IP and UDP do not fit the frame"
    elif total - len(ip) < 24:
        f.fault = "too short for BTH and ICRC"
    else:
        parse_transport(f, ip, version, rest, total - len(ip))
    return f


def parse_transport(f, ip, version, rest, total):
    f.opcode, flags, f.pkey, f.dqpn, psn = struct.unpack_from(">BBHII", rest, 8)
    notify, f.dqpn = f.dqpn >> 24, f.dqpn & 0xffffff
    f.transport, f.op = f.opcode & 0xe0, f.opcode & 0x1f
    f.solicited, f.migreq, f.pad = bool(flags & 0x80), bool(flags & 0x40), flags >> 4 & 3
    f.fecn, f.becn = bool(notify & 0x80), bool(notify & 0x40)
    f.ackreq, f.psn = bool(psn >> 31), psn & PSN_MASK
    if f.opcode == CNP_OPCODE:
        f.transport, f.op = CNP, CNP_OPCODE
    at = 20
    for layout, names in extensions(f.transport, f.op):
        size = struct.calcsize(">" + layout)
        if at + size + 4 > total:
            f.fault = "too short for the headers of its opcode"
            return
        if at + size > len(rest):
            return
        for name, value in zip(names, struct.unpack_from(">" + layout, rest, at)):
            setattr(f, name, value & 0xffffff if name in ("sqpn", "srqn") else value)
        at += size
    if f.pad > total - 4 - at:
        f.fault = "more pad than payload"
        return
    f.size = total - 4 - f.pad - at
    f.payload = rest[at:at + f.size]
    if flags & 0xf:
        f.fault = "transport version %d" % (flags & 0xf)
    elif (total - at) & 3:
        f.fault = "not a multiple of four bytes"
    elif f.whole and icrc(ip, version, rest[:-4]) != struct.unpack("<I", rest[-4:])[0]:
        f.fault = "bad ICRC"


def build(src, dst, opcode, dqpn, psn, payload=b"", ackreq=False, solicited=False, ecn=0, becn=False, migreq=True, sport=0xc000,
          **fields):
    """Return the bytes of a frame, with a correct ICRC; fields: those of its extension headers."""
    source, destination = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    transport, op = (CNP, CNP_OPCODE) if opcode == CNP_OPCODE else (opcode & 0xe0, opcode & 0x1f)
    pad = -len(payload) % 4
    body = struct.pack(">BBHII", opcode, solicited << 7 | migreq << 6 | pad << 4, 0xffff, becn << 30 | dqpn, ackreq << 31 | psn)
    for layout, names in extensions(transport, op):
        body += struct.pack(">" + layout, *(fields.get(name, 0) for name in names))
    body += payload + bytes(pad)
    udp = struct.pack(">HHHH", sport, PORT, len(body) + 12, 0)
    if source.version == 4:
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, ecn, len(body) + 32, 0, 0x4000, 64, 17, 0, source.packed, destination.packed)
        total = sum(struct.unpack(">10H", ip))
        total = (total & 0xffff) + (total >> 16)
        ip = ip[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xffff) + ip[12:]
    else:
        ip = struct.pack(">IHBB16s16s", 6 << 28 | ecn << 20, len(body) + 12, 17, 64, source.packed, destination.packed)
    crc = struct.pack("<I", icrc(ip, source.version, udp + body))
    return bytes(12) + (b"\x08\x00" if source.version == 4 else b"\x86\xdd") + ip + udp + body + crc
