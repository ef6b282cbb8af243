# SPDX-License-Identifier: GPL-2.0
"""Packets without acknowledgement: UC and UD (IBTA 9.8), congestion notifications (annex A17.9)."""
from . import roce, seq
from .rules import Record

# PATIENCE_NS: time for which marks may arrive without a notification, by the clock of the daemon; SHARE_NS of each of its
# silences count. One iteration of its engine has one time for all packets, and sees the time of the last notification.
PATIENCE_NS = 50000000
SHARE_NS = 1000000
# A queue pair that sends nothing for this time may have been created again, and not be ready
PAUSE_NS = 1000000000
MARKS = 3


def check_unreliable(report, flow):
    """Check that a sender of UC or UD sends consecutive PSNs."""
    expected = None
    for event in flow.events:
        if not event.sent or event.frame.fault:
            continue
        report.count("datagrams" if flow.transport == roce.UD else "UC packets")
        psn = event.frame.psn
        if expected is not None and psn != expected and flow.near:
            report.violate(event.number, "unreliable", "%s has PSN 0x%x, expected is 0x%x" % (event.frame.name, psn, expected))
        expected = psn + 1 & seq.MASK


def told_by(connection, back):
    """Return the notifications from a flow's receiver back to its sender."""
    return [e for e in connection.notifications if e.sent and e.frame.dqpn == back.dqpn and
            (e.frame.src, e.frame.dst) == (back.src, back.dst)]


def check_notifications(report, connection, least_ns):
    """Check that congestion notifications follow packets marked CE, and keep their distance."""
    for there, back in (connection.flows, connection.flows[::-1]):
        marks, last, record = 0, None, Record(report, back.src)
        events = [(e.number, e) for e in there.events if not e.sent and e.frame.ecn == 3]
        events += [(e.number, e) for e in told_by(connection, back)]
        for _, event in sorted(events, key=lambda e: e[0]):
            if event.frame.transport != roce.CNP:
                marks += 1
                continue
            record.count("CNPs")
            if not marks:
                record.violate(event.number, "cnp", "no packet marked CE has arrived since the one before")
            if last is not None and event.ns - last < least_ns:
                record.violate(event.number, "cnp", "%d us after the one before, the least is %d us" %
                               ((event.ns - last) // 1000, least_ns // 1000))
            marks, last = 0, event.ns


class Debt:
    """Marks that a queue pair received and has not reported yet. clock: of the daemon."""

    def __init__(self, record, least_ns, clock):
        self.record, self.least_ns, self.clock = record, least_ns, clock
        self.told = self.heard = None       # times of its last notification, and of its last packet
        self.forgive()

    def forgive(self):
        self.first = self.last = None
        self.marks = 0

    def marked(self, event):
        """Count a mark. The queue pair has sent before; its next packet will show whether it still exists."""
        now = self.clock.at(event.number)
        if self.heard is None or self.told is not None and now - self.told < self.least_ns:
            return
        self.first, self.last, self.marks = now if self.first is None else self.first, now, self.marks + 1

    def sent(self, event):
        if event.frame.transport == roce.CNP:
            self.told = self.clock.at(event.number)
            self.forgive()
        elif self.heard is not None and event.ns - self.heard > PAUSE_NS:
            self.forgive()
        elif self.marks >= MARKS and self.last - self.first > self.least_ns + PATIENCE_NS:
            self.record.violate(event.number, "cnp-due", "%d packets marked CE have arrived in %d us without a notification" %
                                (self.marks, (self.last - self.first) // 1000))
            self.forgive()
        self.heard = event.ns


def check_notifications_due(report, connection, least_ns, clock):
    """Check that the daemon's devices answer marks with notifications."""
    for there, back in (connection.flows, connection.flows[::-1]):
        if not back.near or back.dqpn is None:
            continue
        debt = Debt(Record(report, back.src), least_ns, clock)
        events = [(e.number, False, e) for e in there.events if not e.sent and e.frame.ecn == 3]
        events += [(e.number, True, e) for e in back.events + told_by(connection, back) if e.sent]
        for _, sent, event in sorted(events, key=lambda e: e[:2]):
            if sent:
                debt.sent(event)
            else:
                debt.marked(event)


def check_notification_format(report, number, f):
    wrong = [name for name, good in (("BECN", f.becn), ("AckReq", not f.ackreq), ("solicited", not f.solicited), ("PSN", not f.psn),
                                     ("pad", not f.pad), ("payload", f.size == 16 and not any(f.payload))) if not good]
    if wrong:
        report.violate(number, "cnp", "wrong: " + ", ".join(wrong))
