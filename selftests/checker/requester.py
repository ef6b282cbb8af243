# SPDX-License-Identifier: GPL-2.0
"""A requester of RC or XRC, reconstructed from its packets and the answers to it (IBTA 9.7.3, 9.7.5 to 9.7.6, 9.9)."""
from . import roce, seq

NAK_SEQUENCE = 0
# RNR NAK timer codes, in units of 10 us (table 45)
RNR_UNITS = (65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
             8192, 12288, 16384, 24576, 32768, 49152)
RNR_UNIT_NS = 10000
MOST_RETRIES = 7
# The shortest timeout
LEAST_TIMEOUT_NS = 8192
# A timer may take four times the timeout (9.7.6.1.3), plus the time until the retransmission is captured
LATE = 4
LATE_NS = 1000000000


def rnr_wait(code):
    return RNR_UNITS[code] * RNR_UNIT_NS


class Awaited:
    """A request that is answered by a response: its PSNs, and the number of response packets so far."""
    __slots__ = ("start", "npsn", "got", "frame")

    def __init__(self, start, npsn, frame):
        self.start, self.npsn, self.got, self.frame = start, npsn, 0, frame

    @property
    def at(self):
        return self.start + self.got


class Requester:
    """near: see flows.py. A packet of a requester that is not near may be lost before it is captured, and its reactions may be
    late. clock: of its device."""

    def __init__(self, report, mtu, options, near, clock):
        self.report, self.mtu, self.options, self.near, self.clock = report, mtu, options, near, clock
        self.next = self.una = self.cur = None
        self.sent = {}              # sequence number: frame, of packets that are not acknowledged
        self.sent_ns = {}           # sequence number: time of its last transmission
        self.awaited = []           # incomplete responses
        self.message = None         # SEND or WRITE in progress: first frame and bytes so far
        self.unsure = False         # a part of the message was not captured
        self.obliged = None         # (rule, sequence number): it must go back there before it sends a new request
        self.cause = None           # reason for which it may go back
        self.rnr_until = self.rnr_seq = None
        self.since = None           # time since when it waits for an answer
        self.retries = 0            # retries since it made progress
        self.decided = False        # the last retry is decided, and nothing sent yet
        self.rewound = False        # it is about to go back, and may ignore responses until then
        self.deferred = []          # such responses, and whether they also count as acknowledgements
        self.dead = None            # packet that ended it by an error
        self.asked = None           # last sequence number that requests an answer, sent since it went back
        self.timer = None           # start of its ACK timer, by its clock
        self.active = None          # time of its last packet sent or received, or end of its RNR wait

    # ---- packets that it sends ----

    def npsn(self, f):
        return seq.packets(f.dmalen, self.mtu) if f.op == roce.READ_REQUEST else 1

    def send(self, event):
        f, number, ns = event.frame, event.number, event.ns
        if self.next is None:
            self.next = self.una = self.cur = f.psn
            self.since = ns
        at = seq.near(f.psn, self.cur)
        self.settle(at)
        self.check_pauses(number, ns, at, f)
        self.check_timer(event, at)
        if self.obliged and at <= self.obliged[1]:
            self.obliged = None         # it has gone back already
        if at == self.cur or self.cur < at <= self.una:
            self.cause = None if self.near else self.cause
        elif at < self.cur:
            self.go_back(number, ns, at, f)
        elif not self.near:
            self.miss(at)
        elif at < self.next:
            self.report.violate(number, "go-back", "retransmits PSN 0x%x and omits 0x%x" % (f.psn, self.cur & seq.MASK))
        else:
            self.report.violate(number, "psn", "%s has PSN 0x%x, expected is 0x%x" % (f.name, f.psn, self.next & seq.MASK))
            self.next = at
        end = at + self.npsn(f)
        self.sent_ns[at] = ns
        self.run_timer(event, at, end)
        if at < self.next:
            self.again(number, at, f)
        else:
            self.fresh(number, ns, at, f)
        self.cur = end
        if self.una == self.next:
            self.since = ns
        self.next = max(self.next, end)
        if self.next - self.una > seq.HALF:
            self.report.violate(number, "window", "%d PSNs are outstanding" % (self.next - self.una))

    # ---- its ACK timer ----

    @property
    def most_ns(self):
        return LATE * self.options.timeout_ns + max(LATE * self.options.timeout_ns, LATE_NS)

    def is_awaiting(self):
        """Return true if a request in flight requires an answer."""
        return self.asked is not None and self.una <= self.asked

    def late(self, number, waited):
        self.report.violate(number, "timeout-late", "PSN 0x%x is neither answered nor retransmitted for %d us" %
                            (self.una & seq.MASK, waited // 1000))
        self.timer = None

    def check_timer(self, event, at):
        """Check that the timer has not expired unnoticed. A requester that sends a new request could have retransmitted
        instead, unless a rate limit delays both."""
        if not self.near or not self.options.timeout_ns or self.timer is None or not self.is_awaiting():
            return
        waited = self.clock.at(event.number) - self.timer
        if waited > self.most_ns and (at >= self.next or self.options.lasting):
            self.late(event.number, waited)

    def run_timer(self, event, at, end):
        """Start the timer at the first request that requires an answer; restart it when the requester goes back."""
        f = event.frame
        self.active = event.ns
        if at < self.cur:
            self.asked = self.timer = None
        if f.ackreq or f.op in roce.RESPONDED:
            self.asked = end - 1 if self.asked is None else max(self.asked, end - 1)
            if self.timer is None:
                self.timer = self.clock.at(event.number)

    def heard(self, event):
        """Restart the timer at any answer."""
        self.active = max(self.active, event.ns, self.rnr_until or 0)
        self.timer = None
        if self.is_awaiting() and not self.rnr_until:
            self.timer = self.clock.at(event.number)

    def finish(self, number, ns):
        """Check the timer at the end of the capture, if the queue pair existed until then."""
        if not self.near or not self.options.timeout_ns or not self.options.lasting or self.dead:
            return
        if self.is_awaiting() and not self.rnr_until and self.retries < self.options.retry_count and \
                ns - self.active > self.most_ns:
            self.late(number, ns - self.active)

    def miss(self, at):
        """Note that packets were sent, and lost before they could be captured."""
        self.report.count("unseen losses")
        self.message, self.unsure = None, True
        self.next = max(self.next, at)

    def settle(self, at):
        """Apply the deferred responses. The requester accepted those that came before it decided to go back; the PSN to which
        it goes back shows which ones.

        If it has gone back already and not yet repeated an answered request, it may accept the answer or repeat the request. In
        that case it need not have learnt from the answer that others are missing, and these may have arrived since.
        """
        deferred, self.deferred, self.rewound = self.deferred, [], False
        for event, where, all_of_it in deferred:
            if all_of_it and at != self.una:
                self.acked(where, event.ns, must=False)
            if at == self.una:
                break
            self.respond(where, event.ns)

    def check_pauses(self, number, ns, at, f):
        if self.dead:
            self.report.violate(number, "fatal", "%s was sent after the NAK of packet %d" % (f.name, self.dead))
            self.dead = None
        if self.rnr_until is None:
            return
        if at < self.rnr_seq:
            return
        if ns < self.rnr_until:
            self.report.violate(number, "rnr-wait", "%s with PSN 0x%x was sent %d us too early" %
                                (f.name, f.psn, (self.rnr_until - ns + 999) // 1000))
        elif at > self.rnr_seq and self.una <= self.rnr_seq:
            self.report.violate(number, "rnr-again", "PSN 0x%x was sent, and 0x%x was rejected" % (f.psn, self.rnr_seq & seq.MASK))
        self.rnr_until = None

    def go_back(self, number, ns, at, f):
        self.report.count("go-backs")
        if at < self.una:
            self.report.violate(number, "go-back", "retransmits PSN 0x%x, and all before 0x%x is acknowledged" %
                                (f.psn, self.una & seq.MASK))
        elif at > self.una:
            self.report.violate(number, "go-back", "goes back to PSN 0x%x, the oldest not acknowledged is 0x%x" %
                                (f.psn, self.una & seq.MASK))
        cause, self.cause, self.obliged = self.cause, None, None
        if cause == "RNR NAK":
            return
        self.retries += not self.decided
        self.decided = False
        if self.retries > self.options.retry_count:
            self.report.violate(number, "retries", "goes back the %dth time without progress" % self.retries)
        waited = ns - self.since
        self.since = ns
        if cause:
            return
        self.report.count("timeouts")
        if waited < (self.options.timeout_ns or LEAST_TIMEOUT_NS):
            rule = "timeout" if self.options.timeout_ns and waited >= LEAST_TIMEOUT_NS else "cause"
            self.report.violate(number, rule, "goes back to PSN 0x%x without a NAK and %d us after it last heard or sent" %
                                (f.psn, waited // 1000))

    def again(self, number, at, f):
        """Check that a retransmitted packet is the request that had this PSN."""
        self.report.count("resends")
        before = self.sent.get(at)
        if before is not None:
            for field in ("op", "va", "rkey", "dmalen", "swap_add", "compare", "feth", "imm", "inv_rkey", "srqn"):
                if getattr(before, field) != getattr(f, field):
                    if field == "op":
                        what = "was %s, now it is %s" % (before.name, f.name)
                    else:
                        what = "%s was 0x%x, now it is 0x%x" % (field, getattr(before, field), getattr(f, field))
                    self.report.violate(number, "same", "PSN 0x%x: %s" % (f.psn, what))
                    return
            if f.size != before.size:
                self.report.violate(number, "same", "PSN 0x%x had %d bytes, now it has %d" % (f.psn, before.size, f.size))
        elif f.op == roce.READ_REQUEST:
            self.part_again(number, at, f)
        elif at >= self.una and self.near:
            self.report.violate(number, "same", "PSN 0x%x was inside a READ, now it is %s" % (f.psn, f.name))

    def part_again(self, number, at, f):
        """Check a READ that is repeated from its middle on."""
        for read in self.awaited:
            if read.start <= at < read.start + read.npsn and read.frame.op == roce.READ_REQUEST:
                skip = (at - read.start) * self.mtu
                want = (read.frame.va + skip, read.frame.dmalen - skip, read.frame.rkey)
                if (f.va, f.dmalen, f.rkey) != want:
                    self.report.violate(number, "same", "PSN 0x%x asks for %d bytes at 0x%x, that part of the READ is %d at 0x%x" %
                                        (f.psn, f.dmalen, f.va, want[1], want[0]))
                return

    def fresh(self, number, ns, at, f):
        if self.obliged and self.near:
            rule, where = self.obliged
            self.report.violate(number, rule, "%s with PSN 0x%x is new, and PSN 0x%x has to be retransmitted" %
                                (f.name, f.psn, where & seq.MASK))
            self.obliged = None
        self.report.count("requests")
        self.sent[at] = f
        if f.op in roce.RESPONDED:
            self.awaited.append(Awaited(at, self.npsn(f), f))
        self.check_message(number, f)

    def check_message(self, number, f):
        begins = f.op not in roce.MIDDLE and f.op not in roce.LAST
        self.unsure = self.unsure and not begins
        if self.unsure:
            return
        if begins == (self.message is not None):
            self.report.violate(number, "opcode", "%s %s" % (f.name, "inside a message" if begins else "without a FIRST"))
            self.message = None
            if not begins:
                return
        if self.message and (f.op in roce.SENDS) != (self.message[0].op in roce.SENDS):
            self.report.violate(number, "opcode", "%s after %s" % (f.name, self.message[0].name))
            self.message = None
            return
        ends = f.op not in roce.FIRST and f.op not in roce.MIDDLE
        if not ends and f.size != self.mtu:
            self.report.violate(number, "length", "%s has %d bytes, the path MTU is %d" % (f.name, f.size, self.mtu))
        elif f.size > self.mtu:
            self.report.violate(number, "length", "%s has %d bytes, more than the path MTU of %d" % (f.name, f.size, self.mtu))
        elif f.op in roce.LAST and not f.size:
            self.report.violate(number, "length", "%s is empty" % f.name)
        if begins:
            self.message = [f, 0]
        self.message[1] += f.size
        first = self.message[0]
        if ends:
            if first.op in (roce.WRITE_FIRST, roce.WRITE_ONLY, roce.WRITE_ONLY_IMM) and self.message[1] != first.dmalen:
                self.report.violate(number, "length", "a WRITE of %d bytes has %d" % (first.dmalen, self.message[1]))
            self.message = None

    # ---- answers that it receives ----

    def advance(self, at, ns):
        if at <= self.una:
            return
        for old in range(self.una, min(at, self.una + len(self.sent) + (1 << 16))):
            self.sent.pop(old, None)
            self.sent_ns.pop(old, None)
        self.una, self.since, self.retries = at, ns, 0
        if self.obliged and self.obliged[1] < at:
            self.obliged = None

    def oblige(self, rule, at):
        """Require it to go back, unless it has done so since its last progress, or is about to go back anyway."""
        if self.rewound:
            self.obliged = (rule, at)
        elif not self.retries:
            self.obliged, self.rewound, self.decided = (rule, at), True, True
            self.retries = 1

    def acked(self, at, ns, must=True):
        """Acknowledge all before at, except missing responses. must: it has to go back to those; otherwise it may. It is about
        to go back if it has not repeated their requests since it last did."""
        first = self.awaited[0] if self.awaited else None
        if first and at > first.at:
            self.advance(first.at, ns)
            self.report.count("implied NAKs")
            if must and first.start < self.cur:
                self.oblige("implied-nak", first.at)
            self.cause = "implied NAK"
        else:
            self.advance(at, ns)

    def receive(self, event):
        if self.next is not None:
            self.take(event)
            self.heard(event)

    def take(self, event):
        f, ns = event.frame, event.ns
        at = seq.near(f.psn, self.una)
        if at < self.una or at >= self.next:
            return
        if f.op == roce.ACK:
            self.acked(at + (not f.kind), ns)
            if f.kind and self.una == at:
                self.refused(event, at)
            return
        if at >= self.cur:
            self.deferred.append((event, at, True))
            return
        if self.options.timeout_ns and ns - self.since >= self.options.timeout_ns:
            self.rewound = True     # its timer may have expired earlier
        self.acked(at, ns)
        if self.rewound:
            self.deferred.append((event, at, False))
        else:
            self.respond(at, ns)

    def respond(self, at, ns):
        first = self.awaited[0] if self.awaited else None
        if first and at == first.at:
            first.got += 1
            self.advance(at + 1, ns)
            if first.got == first.npsn:
                self.awaited.pop(0)

    def refused(self, event, at):
        f, ns = event.frame, event.ns
        if f.kind == 1:
            self.report.count("RNR NAKs")
            if self.rnr_until and self.rnr_seq == at:
                return                  # A duplicate RNR NAK: the timer of the first one already runs.
            self.rnr_until, self.rnr_seq = ns + rnr_wait(f.code), at
            self.cause, self.obliged, self.since, self.rewound = "RNR NAK", None, ns, True
        elif f.kind == 3 and f.code == NAK_SEQUENCE:
            self.report.count("NAKs")
            self.oblige("nak-heeded", at)
            self.cause = "NAK"
        elif f.kind == 3:
            self.report.count("fatal NAKs")
            self.dead = event.number
