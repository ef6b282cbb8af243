# SPDX-License-Identifier: GPL-2.0
"""The rules, each with the chapter of IBTA volume 1 that it is from, and what was found broken."""

RULES = {
    "frame": ("9.2, A17.3", "a packet is whole, its lengths agree, its ICRC is right"),
    "header": ("9.2, A17.9", "fields of the headers that do not depend on the message have the values that they must have"),
    "opcode": ("9.3, 9.6", "packets of a message follow each other as FIRST, MIDDLE, LAST or ONLY"),
    "length": ("9.7.4.1", "FIRST and MIDDLE are one path MTU long, a message is as long as its RETH says"),
    "psn": ("9.7.2, 9.7.3", "new requests have consecutive PSNs; a READ takes as many as its response has packets"),
    "window": ("9.7.2", "no more than half of all PSNs are outstanding"),
    "go-back": ("9.7.3, 9.7.5.1", "what is sent again begins with the oldest request not acknowledged, and goes on in order"),
    "same": ("9.7.3", "a request that is sent again is the same request"),
    "cause": ("9.7.3, 9.9.2", "requests are sent again after a NAK, a lost response or a timeout only"),
    "nak-heeded": ("9.7.5.2", "after a NAK for a PSN sequence error the requester goes back before it sends anything new"),
    "implied-nak": ("9.7.5.1", "an answer beyond an outstanding READ or atomic says that the response was lost: it is asked for again"),
    "retries": ("9.9.2", "a request is sent again seven times at most"),
    "timeout": ("9.7.6, 9.9.2", "the local ACK timeout has to pass before a request is sent again because of it"),
    "timeout-late": ("9.7.6, 9.9.2", "when four times the local ACK timeout has passed without an answer a request is sent again"),
    "rnr-wait": ("9.7.5.2.8, table 45", "after an RNR NAK nothing of that PSN or behind is sent until its time has passed"),
    "rnr-again": ("9.7.5.2.8", "after an RNR NAK the refused request comes first"),
    "fatal": ("9.7.5.2, 9.9.3", "after a NAK for an error other than a PSN sequence error nothing more is sent"),
    "ack-sent": ("9.7.5.1", "no PSN is acknowledged that was never sent"),
    "ack-arrived": ("9.7.5.1", "a request is acknowledged after it has arrived, with all before it"),
    "ack-due": ("9.7.5.1.2", "a request that asks for an acknowledgement gets one"),
    "ack-order": ("9.5, 9.7.5.1", "answers come in the order of the requests"),
    "msn": ("9.7.7.1", "the MSN is the number of messages completed up to the PSN of the answer"),
    "nak-gap": ("9.7.4.2, 9.7.5.2", "a NAK for a PSN sequence error names the expected PSN, when a later one has arrived"),
    "nak-once": ("9.7.5.2", "a gap is reported once"),
    "nak-missing": ("9.7.4.2", "a gap is reported"),
    "rnr-nak": ("9.7.5.2.8", "an RNR NAK refuses a request that has arrived and takes a receive"),
    "nak-error": ("9.7.5.2", "a NAK for an error refuses a request that has arrived"),
    "response": ("9.7.5.1, 9.4.4", "response packets have the PSNs, the order and the lengths that the READ gives them"),
    "replay": ("9.4.5, 9.7.5.1", "an atomic that is asked for again is answered with the value it had found the first time"),
    "unreliable": ("9.8", "packets of UC and UD have consecutive PSNs and are never sent again"),
    "cnp": ("A17.9.3", "a congestion notification answers a packet marked CE, and they keep their distance"),
    "cnp-due": ("A17.9.3", "packets marked CE are answered by a congestion notification, if the last one is that long ago"),
}


class Violation:
    """who: the address of the one who broke the rule."""

    def __init__(self, number, rule, text, who):
        self.number, self.rule, self.text, self.who = number, rule, text, who

    def __str__(self):
        chapter, sentence = RULES[self.rule]
        return "packet %d: %s: %s: %s\n    (IBTA %s: %s)" % (self.number, self.who, self.rule, self.text, chapter, sentence)


class Report:
    """What was found, and how much was looked at: a capture without a loss says nothing about losses."""

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
    """The report on one who sends, for those who look at nobody else."""

    def __init__(self, report, who):
        self.report, self.who = report, who

    def violate(self, number, rule, text):
        self.report.violate(number, rule, text, self.who)

    def count(self, what, n=1):
        self.report.count(what, n)
