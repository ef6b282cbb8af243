# SPDX-License-Identifier: GPL-2.0
"""A responder of RC or XRC, reconstructed from the requests that it gets and its answers (IBTA 9.7.4, 9.7.5, 9.7.7).

An answer is captured later than the responder decided on it, and other requests may have arrived meanwhile. So an answer may
refer to any moment since the previous one.
"""
import bisect
import collections

from . import roce, seq

# Time between a request that requires an answer and its retransmission. If no answer comes in between, it is missing
PATIENCE_NS = 1000000
# Number of copies before a responder that is not near (flows.py) must have answered
PATIENCE = 3


class Executed:
    """A READ, atomic, FLUSH or ATOMIC WRITE that was accepted."""
    __slots__ = ("start", "npsn", "frame", "done", "value")

    def __init__(self, start, npsn, frame):
        self.start, self.npsn, self.frame, self.done, self.value = start, npsn, frame, False, None


class Gap:
    """A NAK for a PSN sequence error that is due."""
    __slots__ = ("at", "number", "optional")

    def __init__(self, at, number, optional):
        self.at, self.number, self.optional = at, number, optional


class Responder:
    """near: see flows.py. requester: the remote end, which knows the packets that were sent."""

    def __init__(self, report, mtu, requester, near):
        self.report, self.mtu, self.requester, self.near = report, mtu, requester, near
        self.epsn = None            # expected PSN
        self.ends = []              # last sequence numbers of messages completed, sorted
        self.offset = None          # MSN of the peer's numbering at the start of self.ends; None: not known yet
        self.requests = {}          # sequence number: frame, of requests that arrived in order
        self.executed = []          # Executed, in order
        self.starts = []            # their first sequence numbers
        self.stream = None          # (Executed, next sequence number) of the response in progress
        self.again_from = None      # lowest sequence number that was requested again
        self.again_at = set()
        self.replaying = False      # some repeated responses are not sent yet
        self.nak_sent = False
        self.due = collections.deque()
        self.asked = None           # sequence number of the acknowledgement that is due
        self.asked_ns = 0           # since when it is due
        self.copies = 0             # number of requests for it
        self.counted_ns = 0         # time of the last of these, or arrival of the first one
        self.spoke = False          # it has answered a request: it is ready to receive
        self.failed = None

    # ---- packets that it receives ----

    def begin(self, at, whole):
        """Start at the first request that its peer sent; whole: the capture has the connection from its begin."""
        self.epsn = at
        self.offset = 0 if whole else None

    def npsn(self, f):
        return seq.packets(f.dmalen, self.mtu) if f.op == roce.READ_REQUEST else 1

    def receive(self, event):
        f = event.frame
        if self.epsn is None or self.failed:
            return
        at = seq.near(f.psn, self.epsn)
        if at > self.epsn:
            self.report.count("gaps")
            if not self.nak_sent:
                self.nak_sent = True
                self.due.append(Gap(self.epsn, event.number, self.streaming()))
            return
        if at < self.epsn:
            self.duplicate(event, at)
            return
        self.nak_sent = False
        self.requests[at] = f
        if f.op in roce.RESPONDED:
            self.executed.append(Executed(at, self.npsn(f), f))
            self.starts.append(at)
        self.epsn += self.npsn(f)
        if f.op not in roce.FIRST and f.op not in roce.MIDDLE:
            self.ends.append(self.epsn - 1)
        self.ask(event, at, f)

    def ask(self, event, at, f):
        if not f.ackreq or self.streaming():
            return
        if self.asked == at:
            sent = self.requester.sent_ns.get(at, 0)
            if sent <= self.counted_ns:
                return          # duplicated on its way
            self.counted_ns = sent
            self.copies += 1
            if self.spoke and (sent - self.asked_ns >= PATIENCE_NS if self.near else self.copies == PATIENCE):
                self.asked_ns = event.ns
                self.report.violate(event.number, "ack-due", "PSN 0x%x has arrived %d times and was not answered" %
                                    (f.psn, self.copies))
        elif self.asked is None or at > self.asked:
            self.asked, self.copies = at, 1
            self.asked_ns = self.counted_ns = event.ns

    def duplicate(self, event, at):
        f = event.frame
        self.report.count("duplicates")
        if f.op in roce.RESPONDED:
            self.again_from = at if self.again_from is None else min(at, self.again_from)
            self.again_at.add(at)
            self.replaying = True
        self.ask(event, at, f)

    def streaming(self):
        return self.replaying or any(not e.done for e in self.executed[-64:])

    def refuse(self, at):
        """Withdraw the request at this PSN and all later ones, because a NAK shows that they were not executed."""
        self.epsn, self.nak_sent = at, True
        while self.ends and self.ends[-1] >= at:
            self.ends.pop()
        while self.starts and self.starts[-1] >= at:
            self.starts.pop()
            self.executed.pop()
        while self.due and self.due[-1].at > at:
            self.due.pop()
        self.asked = None

    # ---- answers that it sends ----

    def answer(self, event):
        f, number = event.frame, event.number
        self.spoke = True
        if self.epsn is None:
            return
        at = seq.near(f.psn, self.epsn)
        if self.failed:
            self.report.violate(number, "fatal", "%s was sent after the NAK of packet %d" % (f.name, self.failed))
            return
        if self.requester.next is not None and at >= self.requester.next:
            self.report.violate(number, "ack-sent", "%s has PSN 0x%x, the highest one sent is 0x%x" %
                                (f.name, f.psn, self.requester.next - 1 & seq.MASK))
            return
        if f.op == roce.ACK and f.kind == 0:
            self.ack(event, at)
        elif f.op == roce.ACK:
            self.nak(event, at)
        else:
            self.response(event, at)
        if self.asked is not None and at >= self.asked:
            self.asked = None

    def check_msn(self, event, at, least):
        """Check the MSN. least: messages that it must count; it may count all completed ones."""
        if self.offset is None:
            self.offset = event.frame.msn - bisect.bisect_right(self.ends, at)
        least += self.offset
        most = len(self.ends) + self.offset
        msn = seq.near(event.frame.msn, least)
        if not least <= msn <= most:
            self.report.violate(event.number, "msn", "%s of PSN 0x%x has MSN %d, %s" %
                                (event.frame.name, event.frame.psn, event.frame.msn, "%d messages are completed" % most
                                 if least == most else "between %d and %d messages are completed" % (least, most)))

    def completed(self, at):
        """Return the number of messages completed up to PSN at."""
        return bisect.bisect_right(self.ends, at)

    def ack(self, event, at):
        f, number = event.frame, event.number
        if at >= self.epsn:
            self.report.violate(number, "ack-arrived", "PSN 0x%x is acknowledged, 0x%x has not arrived" %
                                (f.psn, self.epsn & seq.MASK))
            return
        for e in self.executed[-64:]:
            if not e.done and e.start <= at:
                self.report.violate(number, "ack-order", "PSN 0x%x is acknowledged before the response of PSN 0x%x is sent" %
                                    (f.psn, e.start & seq.MASK))
                break
        while self.due and self.due[0].at <= at:
            gap = self.due.popleft()
            if not gap.optional:
                self.report.violate(number, "nak-missing", "packet %d came before PSN 0x%x, which was never reported" %
                                    (gap.number, gap.at & seq.MASK))
        self.check_msn(event, at, self.completed(at))
        self.replaying = False

    def nak(self, event, at):
        f, number = event.frame, event.number
        self.check_msn(event, at, self.completed(at - 1))
        if f.kind == 3 and f.code == 0:
            self.nak_sequence(event, at)
            return
        request = self.requests.get(at)
        if f.kind == 1:
            if request is None or at >= self.epsn:
                self.report.violate(number, "rnr-nak", "no request with PSN 0x%x has arrived" % f.psn)
            elif request.op not in roce.TAKE_RECEIVE:
                self.report.violate(number, "rnr-nak", "%s with PSN 0x%x needs no receive" % (request.name, f.psn))
            self.refuse(at)
            return
        streamed = self.stream and self.stream[0].start <= at < self.stream[0].start + self.stream[0].npsn
        if (request is None or at >= self.epsn) and not streamed and not self.inside(at):
            self.report.violate(number, "nak-error", "no request with PSN 0x%x has arrived" % f.psn)
        self.failed = number

    def inside(self, at):
        """Return the request whose response contains this PSN."""
        e = self.of(at)
        return e is not None and at < e.start + e.npsn

    def nak_sequence(self, event, at):
        number, f = event.number, event.frame
        while self.due:
            gap = self.due.popleft()
            if gap.at == at:
                return
            if not gap.optional:
                self.report.violate(number, "nak-missing", "packet %d came before PSN 0x%x, which was never reported" %
                                    (gap.number, gap.at & seq.MASK))
        before = self.of(at - 1)
        if before and before.frame.op == roce.FLUSH and at <= self.epsn:
            self.refuse(at)         # it may have to wait for the FLUSH, and accepts nothing meanwhile
        elif self.nak_sent and at == self.epsn:
            self.report.violate(number, "nak-once", "the gap at PSN 0x%x is reported again" % f.psn)
        else:
            self.report.violate(number, "nak-gap", "PSN 0x%x is reported missing, expected is 0x%x and nothing behind it has arrived" %
                                (f.psn, self.epsn & seq.MASK))

    # ---- responses of READs, atomics, FLUSH and ATOMIC WRITE ----

    def of(self, at):
        """Return the request whose response has this PSN."""
        i = bisect.bisect_right(self.starts, at) - 1
        if i >= 0 and at < self.executed[i].start + self.executed[i].npsn:
            return self.executed[i]
        return None

    def response(self, event, at):
        f, number = event.frame, event.number
        e = self.of(at)
        if e is None or at >= self.epsn:
            self.report.violate(number, "response", "%s with PSN 0x%x, and no request for it has arrived" % (f.name, f.psn))
            return
        self.check_order(event, at, e)
        if e.frame.op in roce.ATOMICS:
            self.atomic_response(event, e)
        else:
            self.read_response(event, at, e)
        if e is self.executed[-1] and at == e.start + e.npsn - 1:
            self.replaying = False
        if f.aeth is not None:
            self.check_msn(event, at, self.completed(e.start - 1))

    def may_begin(self, at, e):
        """Return true if it is the next response that is due, or one that was requested again."""
        if at == e.start and not e.done:
            return True
        return self.again_from is not None and at >= self.again_from and (at == e.start or at in self.again_at)

    def check_order(self, event, at, e):
        for other in self.executed[-64:]:
            if other.start >= e.start:
                break
            if not other.done:
                self.report.violate(event.number, "ack-order", "%s of PSN 0x%x before the response of PSN 0x%x" %
                                    (event.frame.name, event.frame.psn, other.start & seq.MASK))
                break

    def atomic_response(self, event, e):
        f, number = event.frame, event.number
        if f.op != roce.ATOMIC_ACK:
            self.report.violate(number, "response", "%s answers %s" % (f.name, e.frame.name))
            return
        if not self.may_begin(e.start, e):
            self.report.violate(number, "response", "PSN 0x%x is answered twice, and was asked once" % f.psn)
        if e.done and e.value != f.value:
            self.report.violate(number, "replay", "PSN 0x%x had value 0x%x, now it has 0x%x" % (f.psn, e.value, f.value))
        e.done, e.value, self.stream = True, f.value, None

    def read_response(self, event, at, e):
        f, number = event.frame, event.number
        left = e.start + e.npsn - at
        if f.op == roce.ATOMIC_ACK:
            self.report.violate(number, "response", "%s answers %s" % (f.name, e.frame.name))
            return
        if f.op in (roce.READ_RESP_FIRST, roce.READ_RESP_ONLY):
            if not self.may_begin(at, e):
                self.report.violate(number, "response", "%s with PSN 0x%x, which was not asked for" % (f.name, f.psn))
        elif self.stream != (e, at):
            self.report.violate(number, "response", "%s with PSN 0x%x, expected is %s" %
                                (f.name, f.psn, "PSN 0x%x" % (self.stream[1] & seq.MASK) if self.stream else "a FIRST or ONLY"))
        ends = f.op in (roce.READ_RESP_LAST, roce.READ_RESP_ONLY)
        if ends != (left == 1):
            self.report.violate(number, "response", "%s with %d packets to come" % (f.name, left - 1))
        size = e.frame.dmalen if e.frame.op == roce.READ_REQUEST else 0
        want = size - (at - e.start) * self.mtu if left == 1 else self.mtu
        if f.size != want:
            self.report.violate(number, "length", "%s has %d bytes, due are %d" % (f.name, f.size, want))
        self.stream = None if ends else (e, at + 1)
        e.done = e.done or left == 1

    def finish(self, number):
        """Check at the end of the capture."""
        for gap in self.due:
            if not gap.optional and self.epsn > gap.at:
                self.report.violate(number, "nak-missing", "packet %d came before PSN 0x%x, which was never reported" %
                                    (gap.number, gap.at & seq.MASK))
