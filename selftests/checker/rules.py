# SPDX-License-Identifier: GPL-2.0
"""The rules, each with its chapter of IBTA volume 1, and the violations that were found."""

RULES = {
    "frame": ("9.2, A17.3", "a packet is whole, its lengths agree, its ICRC is right"),
    "header": ("9.2, A17.9", "header fields that do not depend on the message have their fixed values"),
    "opcode": ("9.3, 9.6", "packets of a message follow each other as FIRST, MIDDLE, LAST or ONLY"),
    "length": ("9.7.4.1", "FIRST and MIDDLE are one path MTU long, a message is as long as its RETH says"),
    "psn": ("9.7.2, 9.7.3", "new requests have consecutive PSNs; a READ takes as many as its response has packets"),
    "window": ("9.7.2", "no more than half of all PSNs are outstanding"),
    "go-back": ("9.7.3, 9.7.5.1", "a retransmission starts with the oldest unacknowledged request, and continues in order"),
    "same": ("9.7.3", "a retransmitted request is identical to the first one"),
    "cause": ("9.7.3, 9.9.2", "requests are retransmitted only after a NAK, a lost response or a timeout"),
    "nak-heeded": ("9.7.5.2", "after a NAK for a PSN sequence error the requester goes back before it sends anything new"),
    "implied-nak": ("9.7.5.1", "an answer beyond an outstanding READ or atomic implies that its response was lost: it is requested again"),
    "retries": ("9.9.2", "a request is retransmitted at most seven times"),
    "timeout": ("9.7.6, 9.9.2", "the local ACK timeout has to pass before a request is retransmitted because of it"),
    "timeout-late": ("9.7.6, 9.9.2", "a request is retransmitted when four times the local ACK timeout has passed without an answer"),
    "rnr-wait": ("9.7.5.2.8, table 45", "after an RNR NAK no packet with that PSN or a later one is sent until its time has passed"),
    "rnr-again": ("9.7.5.2.8", "after an RNR NAK the rejected request is sent first"),
    "fatal": ("9.7.5.2, 9.9.3", "after a NAK for an error other than a PSN sequence error no request is sent"),
    "ack-sent": ("9.7.5.1", "no PSN is acknowledged that was never sent"),
    "ack-arrived": ("9.7.5.1", "a request is acknowledged after it has arrived, with all before it"),
    "ack-due": ("9.7.5.1.2", "a request that requires an acknowledgement gets one"),
    "ack-order": ("9.5, 9.7.5.1", "answers come in the order of the requests"),
    "msn": ("9.7.7.1", "the MSN is the number of messages completed up to the PSN of the answer"),
    "nak-gap": ("9.7.4.2, 9.7.5.2", "a NAK for a PSN sequence error names the expected PSN, when a later one has arrived"),
    "nak-once": ("9.7.5.2", "a gap is reported once"),
    "nak-missing": ("9.7.4.2", "a gap is reported"),
    "rnr-nak": ("9.7.5.2.8", "an RNR NAK rejects a request that has arrived and needs a receive"),
    "nak-error": ("9.7.5.2", "an error NAK rejects a request that has arrived"),
    "response": ("9.7.5.1, 9.4.4", "response packets have the PSNs, the order and the lengths that the READ determines"),
    "replay": ("9.4.5, 9.7.5.1", "a retransmitted atomic is answered with the value that it found the first time"),
    "unreliable": ("9.8", "packets of UC and UD have consecutive PSNs and are never retransmitted"),
    "cnp": ("A17.9.3", "a congestion notification answers a packet marked CE, and they keep their distance"),
    "cnp-due": ("A17.9.3", "a packet marked CE is answered by a notification, if the minimum time since the last one has passed"),
}


class Violation:
    """who: the address of the violator."""

    def __init__(self, number, rule, text, who):
        self.number, self.rule, self.text, self.who = number, rule, text, who

    def __str__(self):
        chapter, sentence = RULES[self.rule]
        return "packet %d: %s: %s: %s\n    (IBTA %s: %s)" % (self.number, self.who, self.rule, self.text, chapter, sentence)


class Report:
    """Violations and the number of events that were judged: a capture without a loss proves nothing about losses."""

    def __init__(self):
        self.violations = []
        self.counts = {}
        self.notes = []

    def violate(self, number, rule, text, who):
        assert rule in RULES
        self.violations.append(Violation(number, rule, text, who))

    def count(self, what, n=1):
        self.counts[what] = self.counts.get(what, 0) + n


class Record:
    """The report for one sender only."""

    def __init__(self, report, who):
        self.report, self.who = report, who

    def violate(self, number, rule, text):
        self.report.violate(number, rule, text, self.who)

    def count(self, what, n=1):
        self.report.count(what, n)
