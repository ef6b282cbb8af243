# SPDX-License-Identifier: GPL-2.0
"""Packets that nobody answers: UC and UD (IBTA 9.8), congestion notifications (annex A17.9)."""
from . import roce, seq
from .rules import Record


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


def check_notifications(report, connection, least_ns):
    """Congestion notifications follow packets marked CE, and keep their distance."""
    for there, back in (connection.flows, connection.flows[::-1]):
        marks, last, record = 0, None, Record(report, back.src)
        events = [(e.number, e) for e in there.events if not e.sent and e.frame.ecn == 3]
        events += [(e.number, e) for e in connection.notifications if e.sent and e.frame.dqpn == back.dqpn and
                   (e.frame.src, e.frame.dst) == (back.src, back.dst)]
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


def check_notification_format(report, number, f):
    wrong = [name for name, good in (("BECN", f.becn), ("AckReq", not f.ackreq), ("solicited", not f.solicited), ("PSN", not f.psn),
                                     ("pad", not f.pad), ("payload", f.size == 16 and not any(f.payload))) if not good]
    if wrong:
        report.violate(number, "cnp", "wrong: " + ", ".join(wrong))
