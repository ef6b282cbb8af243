# SPDX-License-Identifier: GPL-2.0
"""Frames of a capture to connections.

A capture of a switch has each frame twice: where the sender's port receives it, and where the receiver's port transmits it,
unless it was lost in between. A frame with the comment of a fault rule is a further record of it, and so is its record when it
is forwarded after all.

A packet names its destination queue pair and not its source, so the answers show which two make a connection: they have PSNs of
the other side's requests.
"""
import bisect
import collections
import re

from . import roce, seq

FAULT = re.compile(r".* by fault rule \d+")
GOES_ON = "forwarded"
NOT_TAKEN = "dropped: rejected by the interface or socket"
PROBES = 200


class Event:
    """A frame that its sender sent, or that its receiver got."""
    __slots__ = ("number", "ns", "frame", "sent")

    def __init__(self, number, ns, frame, sent):
        self.number, self.ns, self.frame, self.sent = number, ns, frame, sent


class Flow:
    """All packets from one address to a queue pair at another. Datagrams have a flow for each sender.

    near: the sender is a device of the daemon, so all its packets are captured at the time at which it sends them. Packets of
    other senders may be lost or late before they are captured.
    """

    def __init__(self, key, near=False):
        self.src, self.dst, self.transport, self.dqpn, self.sqpn = key
        self.near = near
        self.events = []

    def __str__(self):
        return "%s to QP 0x%x of %s" % (self.src, self.dqpn, self.dst)


class Connection:
    """Two flows that answer each other; the second may be empty, if the capture has no answer."""

    def __init__(self, flows, mtu):
        self.flows, self.mtu = flows, mtu


def port_of_addresses(packets, frames):
    """Return the interface that each address sends from; of silent addresses the interface that they receive at."""
    votes, silent = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for packet, frame in zip(packets, frames):
        if frame is not None and packet.inbound:
            votes[frame.src][packet.interface] += 1
        elif frame is not None and packet.inbound is False:
            silent[frame.dst][packet.interface] += 1
    votes = {**silent, **votes}
    return {address: counter.most_common(1)[0][0] for address, counter in votes.items()}


def is_new(packet):
    """Return false if the record repeats a frame: its comment then says what happened to the frame."""
    return not any(FAULT.match(c) or c == GOES_ON or c.startswith("dropped") for c in packet.comments)


def is_near(ports, address):
    return address in ports and ports[address].is_device


def delivered(packet):
    return not any(FAULT.match(c) or c.startswith("dropped") for c in packet.comments)


def collect(packets, frames):
    """Return the flows by key, and the interface of each address."""
    ports = port_of_addresses(packets, frames)
    flows, given, refused = {}, {}, set()
    for packet, frame in zip(packets, frames):
        if frame is None or frame.dqpn is None:
            continue
        key = (frame.src, frame.dst, frame.transport, frame.dqpn, frame.sqpn)
        if key not in flows:
            flows[key] = Flow(key, is_near(ports, frame.src))
        flow = flows[key]
        if packet.inbound is not False and ports.get(frame.src, packet.interface) is packet.interface:
            if is_new(packet):
                flow.events.append(Event(packet.number, packet.ns, frame, True))
        if packet.inbound is not True and ports.get(frame.dst, packet.interface) is packet.interface:
            if delivered(packet) and not frame.fault:
                flow.events.append(Event(packet.number, packet.ns, frame, False))
                given[packet.interface, packet.data] = flow.events[-1]
            elif NOT_TAKEN in packet.comments:
                refused.add(given.pop((packet.interface, packet.data), None))
    for flow in flows.values() if refused else ():
        flow.events = [event for event in flow.events if event not in refused]
    return flows, ports


# ---- which flows belong together ------------------------------------------------


def path_mtu(flows):
    """Return the length of the packets with a full payload; else the least MTU that fits all."""
    longest = 256
    for flow in flows:
        for event in flow.events:
            f = event.frame
            if f.transport == roce.UD or f.size is None:
                continue
            if f.op in roce.FIRST or f.op in roce.MIDDLE or f.op in (roce.READ_RESP_FIRST, roce.READ_RESP_MIDDLE):
                return f.size
            longest = max(longest, f.size)
    return next(m for m in (256, 512, 1024, 2048, 4096, 1 << 31) if m >= longest)


def request_ranges(flow, mtu):
    """Return the PSNs of the requests, as sorted (first, last) without a wrap."""
    ranges, reference = [], None
    for event in flow.events:
        f = event.frame
        if f.is_answer or f.fault:
            continue
        first = f.psn if reference is None else seq.near(f.psn, reference)
        reference = first
        n = seq.packets(f.dmalen, mtu) if f.op == roce.READ_REQUEST else 1
        ranges.append((first, first + n - 1))
    return sorted(set(ranges))


def answered(ranges, flow):
    """Count the answers of a flow, of the first few, that match these requests."""
    if not ranges:
        return 0
    starts, n, probes = [r[0] for r in ranges], 0, 0
    reach = max(last - first for first, last in ranges)
    for event in flow.events:
        f = event.frame
        if not f.is_answer or f.fault:
            continue
        at = seq.near(f.psn, starts[len(starts) // 2])
        i = bisect.bisect_right(starts, at) - 1
        while i >= 0 and at - starts[i] <= reach and ranges[i][1] < at:
            i -= 1
        n += i >= 0 and ranges[i][0] <= at <= ranges[i][1]
        probes += 1
        if probes == PROBES:
            break
    return n


def pair(flows, ports):
    """Return the connections; each flow is in one of them."""
    left = [f for f in flows.values() if f.transport in (roce.RC, roce.XRC)]
    ranges = {f: request_ranges(f, path_mtu([f])) for f in left}
    scores = []
    for i, a in enumerate(left):
        for b in left[i:]:
            if (a.src, a.dst, a.transport) == (b.dst, b.src, b.transport) and (a is not b or a.src == a.dst):
                score = answered(ranges[a], b) + answered(ranges[b], a)
                scores.append((score, a, b))
    scores.sort(key=lambda s: -s[0])
    taken, connections = set(), []
    for score, a, b in scores:
        if score and not {a, b} & taken:
            taken |= {a, b}
            connections.append(Connection((a, b), path_mtu((a, b))))
    alone = collections.defaultdict(list)
    for a in left:
        if a not in taken:
            alone[a.src, a.dst, a.transport].append(a)
    for a in left:
        if a in taken:
            continue
        there, back = alone[a.src, a.dst, a.transport], alone[a.dst, a.src, a.transport]
        only = len(there) == len(back) == 1 and a.src != a.dst
        b = back[0] if only else Flow((a.dst, a.src, a.transport, None, None), is_near(ports, a.dst))
        taken |= {a, b}
        connections.append(Connection((a, b), path_mtu((a, b))))
    return connections
