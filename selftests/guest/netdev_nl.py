#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Query the kernel's netlink family "netdev" and print JSON; runs in a guest, which has no ynl.

netdev_nl.py INTERFACE: objects of the interface by kind: queues, napis, queue statistics, those of the whole interface, page
pools, their statistics. Unknown attributes are left out. A kind that the kernel does not have is None.
"""
import json
import socket
import struct
import sys

NETLINK_GENERIC, GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
# kind: command, attributes of the request (number, value; None is the interface), names of attributes by number; for a nested
# attribute the names in it
KINDS = {
    "queues": (10, [(2, None)], {1: "id", 3: "type", 4: "napi-id"}),
    "napis": (11, [(1, None)], {1: "ifindex", 2: "id", 3: "irq"}),
    "qstats": (12, [(1, None), (4, 1)], {2: "type", 3: "id", 8: "rx-packets", 9: "rx-bytes", 10: "tx-packets", 11: "tx-bytes",
                                         12: "rx-alloc-fail", 16: "rx-csum-unnecessary", 33: "tx-stop"}),
    "totals": (12, [(1, None)], {1: "ifindex", 8: "rx-packets", 9: "rx-bytes", 10: "tx-packets", 11: "tx-bytes",
                                 12: "rx-alloc-fail", 16: "rx-csum-unnecessary", 33: "tx-stop"}),
    "pools": (5, [], {1: "id", 2: "ifindex", 3: "napi-id", 4: "inflight"}),
    "pool-stats": (9, [], {1: {1: "id", 2: "ifindex"}, 8: "alloc-fast", 9: "alloc-slow"}),
}


def attribute(number, value):
    return struct.pack("=HH", 4 + len(value), number) + value + bytes(-len(value) % 4)


def attributes(data):
    """Return numbers and values of the attributes in a message."""
    found = {}
    while len(data) >= 4:
        length, number = struct.unpack_from("=HH", data)
        found[number & 0x3fff] = data[4:length]
        data = data[length + -length % 4:]
    return found


def named(found, names):
    """Return the values of attributes by name."""
    said = {}
    for number, value in found.items():
        name = names.get(number)
        if isinstance(name, dict):
            said.update(named(attributes(value), name))
        elif name:
            said[name] = int.from_bytes(value, sys.byteorder)
    return said


class Netlink:
    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self.socket.bind((0, 0))

    def ask(self, family, command, request, flags):
        """Return the attributes of each object in the answer; raise OSError if the kernel rejects the request."""
        body = struct.pack("=BBH", command, 1, 0) + request
        self.socket.send(struct.pack("=IHHII", 16 + len(body), family, NLM_F_REQUEST | flags, 1, 0) + body)
        found = []
        while True:
            data = self.socket.recv(1 << 16)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind in (NLMSG_ERROR, NLMSG_DONE):
                    error = struct.unpack_from("=i", data, 16)[0] if length >= 20 else 0
                    if error:
                        raise OSError(-error, "netlink")
                    return found
                found.append(attributes(data[20:length]))
                if not flags & NLM_F_DUMP:
                    return found
                data = data[length + -length % 4:]

    def family(self, name):
        found = self.ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attribute(CTRL_ATTR_FAMILY_NAME, name.encode() + b"\0"), 0)
        return struct.unpack("=H", found[0][CTRL_ATTR_FAMILY_ID])[0]


def main(interface):
    index = socket.if_nametoindex(interface)
    netlink = Netlink()
    family = netlink.family("netdev")
    said = {}
    for kind, (command, wanted, names) in KINDS.items():
        request = b"".join(attribute(number, struct.pack("=Q", value) if value else struct.pack("=I", index))
                           for number, value in wanted)
        try:
            found = netlink.ask(family, command, request, NLM_F_DUMP)
        except OSError:
            said[kind] = None
            continue
        said[kind] = [named(each, names) for each in found]
    for kind in "pools", "pool-stats":
        if said[kind]:
            said[kind] = [pool for pool in said[kind] if pool.get("ifindex") == index]
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
