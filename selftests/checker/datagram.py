# SPDX-License-Identifier: GPL-2.0
"""Packets that nobody answers: UC and UD (IBTA 9.8), congestion notifications (annex A17.9)."""
from . import roce, seq
from .rules import Record

# Marks come so long without a notification, by the clock of the daemon, of whose silences so much counts. A turn of its engine has one
# time for all packets, and sees when the last notification was.
PATIENCE_NS = 50000000
SHARE_NS = 1000000
# A queue pair that sends nothing for so long may have been made anew, and not be ready
PAUSE_NS = 1000000000
MARKS = 3


def check_unreliable(report, flow):
    """A sender of UC or UD counts its PSNs."""
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
    """The notifications that a flow's sender sent to whom the flow is for."""
    return [e for e in connection.notifications if e.sent and e.frame.dqpn == back.dqpn and
            (e.frame.src, e.frame.dst) == (back.src, back.dst)]


def check_notifications(report, connection, least_ns):
    """Congestion notifications follow packets marked CE, and keep their distance."""
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
    """What a queue pair has been told and its peer has not. clock: of the daemon."""

    def __init__(self, record, least_ns, clock):
        self.record, self.least_ns, self.clock = record, least_ns, clock
        self.told = self.heard = None       # when it last sent a notification, and anything
        self.forgive()

    def forgive(self):
        self.first = self.last = None
        self.marks = 0

    def marked(self, event):
        """It is there: it has sent before, and whether it still is shows when it does again."""
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
            self.record.violate(event.number, "cnp-due", "%d packets marked CE have arrived in %d us, and nobody was told" %
                                (self.marks, (self.last - self.first) // 1000))
            self.forgive()
        self.heard = event.ns


def check_notifications_due(report, connection, least_ns, clock):
    """Of the daemon's own devices."""
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
