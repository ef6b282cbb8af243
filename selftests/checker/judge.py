# SPDX-License-Identifier: GPL-2.0
"""Judge a capture and report."""
import collections
import re

from . import datagram, flows, pcapng, roce, seq
from .clock import Clock
from .requester import MOST_RETRIES, Requester
from .responder import Responder
from .rules import Record, Report

# A queue pair number that is reused starts with another PSN, after a pause
PAUSE_NS = 20000000
FAR = 4096
DAMAGE = re.compile(r"(corrupted|truncated) by fault rule")


class Options:
    """timeout_ns: local ACK timeout of the queue pairs, 0: unknown. cnp_ns: least time between notifications, 0: unknown, or
    there are none. whole: the capture began before the connections. lasting: every queue pair existed, without a rate limit,
    until the capture ended."""

    def __init__(self, timeout_ns=0, retry_count=MOST_RETRIES, cnp_ns=0, whole=True, lasting=False):
        self.timeout_ns, self.retry_count, self.cnp_ns, self.whole = timeout_ns, retry_count, cnp_ns, whole
        self.lasting = lasting


class Incomplete(Exception):
    """The capture lacks frames: its other frames may be right or wrong."""


def damaged(packets):
    """Return the frames that a rule has damaged; their later records have no comment."""
    return {packet.data for packet in packets for comment in packet.comments if DAMAGE.match(comment)}


def check_frames(report, packets, frames):
    known = damaged(packets)
    for packet, f in zip(packets, frames):
        if f is None:
            continue
        report.count("frames")
        explained = any(flows.FAULT.match(c) or c.startswith("dropped") for c in packet.comments)
        if explained:
            report.count("frames with a comment")
        elif f.fault and packet.data in known:
            report.count("damaged frames")
        elif f.fault:
            report.violate(packet.number, "frame", f.fault, f.src)
        elif f.opcode == roce.CNP_OPCODE:
            datagram.check_notification_format(Record(report, f.src), packet.number, f)
        elif packet.interface.is_device and packet.inbound and (not f.migreq or f.fecn or f.becn):
            report.violate(packet.number, "header", "%s: MigReq %d, FECN %d, BECN %d" % (f.name, f.migreq, f.fecn, f.becn), f.src)


class Side:
    """A requester and its responder; ask, answer: their flows. clock: the requester's."""

    def __init__(self, report, mtu, options, ask, answer, clock):
        self.report, self.mtu, self.options, self.ask, self.answer, self.clock = report, mtu, options, ask, answer, clock
        self.last_ns = None
        self.restart(options.whole)

    def restart(self, whole):
        self.requester = Requester(Record(self.report, self.ask.src), self.mtu, self.options, self.ask.near, self.clock)
        self.responder = Responder(Record(self.report, self.answer.src), self.mtu, self.requester, self.answer.near)
        self.whole = whole

    def is_new_connection(self, event):
        r = self.requester
        if r.next is None or event.ns - self.last_ns < PAUSE_NS:
            return False
        if event.frame.op in roce.MIDDLE or event.frame.op in roce.LAST:
            return False
        at = seq.near(event.frame.psn, r.next)
        return at > r.next + FAR or at < r.una - FAR

    def take(self, event):
        answer = event.frame.is_answer
        if event.sent and not answer:
            if self.is_new_connection(event):
                self.restart(True)
                self.report.count("queue pairs used again")
            if self.requester.next is None:
                self.responder.begin(event.frame.psn, self.whole)
            self.requester.send(event)
            self.last_ns = event.ns
        elif not answer:
            self.responder.receive(event)
        elif event.sent:
            self.responder.answer(event)
        else:
            self.requester.receive(event)


def clocks_of(packets, frames, share):
    """Return the clock of each address, from its packets."""
    clocks = collections.defaultdict(lambda: Clock(share))
    for packet, f in zip(packets, frames):
        if f is not None and packet.inbound and flows.is_new(packet):
            clocks[f.src].tick(packet.number, packet.ns)
    return clocks


def check_connection(report, connection, options, clocks, end_ns):
    """Check a connection, both of whose queue pairs are requesters. end_ns: end of the capture."""
    report.count("connections")
    there, back = connection.flows
    sides = [Side(report, connection.mtu, options, a, b, clocks[a.src]) for a, b in ((there, back), (back, there))]
    events = []
    for i, flow in enumerate(connection.flows):
        for event in flow.events:
            if event.frame.fault is None:
                events.append((event.number, not event.sent, sides[i ^ event.frame.is_answer], event))
    for _, _, side, event in sorted(events, key=lambda e: e[:2]):
        side.take(event)
    if events:
        for side in sides:
            if side.responder.epsn is not None:
                side.responder.finish(events[-1][0])
                side.requester.finish(events[-1][0], end_ns)


def judge(path, options=None):
    """Return the report on the capture in a file."""
    options = options or Options()
    report = Report()
    packets, interfaces = pcapng.read(path)
    dropped = sum(i.dropped for i in interfaces)
    if dropped:
        raise Incomplete("%d frames found no room while it was taken" % dropped)
    frames = [roce.parse(p.data, p.length) for p in packets]
    check_frames(report, packets, frames)
    found, ports = flows.collect(packets, frames)
    notifications = [e for f in found.values() if f.transport == roce.CNP for e in f.events]
    clocks = clocks_of(packets, frames, options.timeout_ns)
    daemon = Clock(datagram.SHARE_NS)
    for packet in packets:
        daemon.tick(packet.number, packet.ns)
    end_ns = max([p.ns for p in packets[-1:]] + [i.end_ns for i in interfaces], default=0)
    for connection in flows.pair(found, ports):
        connection.notifications = notifications
        check_connection(report, connection, options, clocks, end_ns)
        datagram.check_notifications(report, connection, options.cnp_ns)
        if options.cnp_ns:
            datagram.check_notifications_due(report, connection, options.cnp_ns, daemon)
    for flow in found.values():
        if flow.transport in (roce.UC, roce.UD):
            datagram.check_unreliable(Record(report, flow.src), flow)
    report.violations.sort(key=lambda v: v.number)
    return report
