# SPDX-License-Identifier: GPL-2.0
"""What a device can do wrong, one thing at a time: each case has a name that says all of it.

WORKLOAD/command/NAME/FAULT/N   the N-th command NAME of the workload ends as FAULT says
WORKLOAD/event/FAULT            each event during the workload is dropped, doubled or changed
bind/identify/PAGE.FIELD/VALUE  the driver starts with a device that reports this value
"""
import struct

from interface import _fields as fields_of
from interface import c, name_of, offset, size, unpack

STATUSES = [value for name, value in vars(c).items() if name.startswith("ORNIC_ST_") and value] + [17, 77, 255]
FAULTS = ["status-%d" % value for value in sorted(STATUSES)] + ["done-8", "done-15", "lost", "late", "slow", "twice", "number-0",
                                                              "number-max", "number-other", "opcode"]
EVENT_FAULTS = ("dropped", "doubled", "other-number", "other-type")
PAGES = {c.ORNIC_ID_DEVICE: "ornic_identify_device", c.ORNIC_ID_PORT: "ornic_identify_port",
         c.ORNIC_ID_TRANSPORT: "ornic_identify_transport"}
NUMBER, TYPE = offset("ornic_eqe.number"), offset("ornic_eqe.type")
BEYOND = c.ORNIC_MAX_NUMBER + 1


def extremes(code):
    """Values of a field at and next to the ends of its range, and the sign bit alone."""
    bits = 8 * struct.calcsize("<" + code)
    if code.endswith("s"):
        return [0, (1 << bits) - 1]
    return sorted({0, 1, 1 << (bits - 1), (1 << bits) - 2, (1 << bits) - 1})


def identify_cases():
    """Each field of each Identify page with each extreme value."""
    for page in PAGES.values():
        for _, code, field in fields_of(page):
            if not field.startswith("res"):
                for value in extremes(code):
                    yield "bind/identify/%s.%s/%#x" % (page.rsplit("_", 1)[1], field, value)


def command_cases(workload, opcodes):
    """Each fault of each command that the workload was seen to send, at its first, second and last turn."""
    for opcode, count in sorted(opcodes.items()):
        for n in sorted({0, min(1, count - 1), count - 1}):
            for fault in FAULTS:
                yield "%s/command/%s/%s/%d" % (workload, name_of("ORNIC_OP_", opcode)[9:], fault, n)


def event_cases(workload):
    return ["%s/event/%s" % (workload, fault) for fault in EVENT_FAULTS]


class Fault:
    """Makes a proxy lie as a case says. hits: how often the device did wrong."""

    def __init__(self, proxy, name):
        self.proxy, self.hits, self.turn = proxy, 0, 0
        self.fault = self.chosen = None         # of a command; the command that is completed otherwise
        self.workload, kind, *words = name.split("/")
        getattr(self, "_" + kind)(*words)

    # commands
    def _command(self, name, fault, n):
        self.opcode, self.n = getattr(c, "ORNIC_OP_" + name), int(n)
        self.fault, _, self.argument = fault.partition("-")
        if fault not in FAULTS:
            raise ValueError("no fault " + fault)
        self.proxy.lies.on_command = self._on_command
        self.proxy.lies.on_completion = self._on_completion

    def _mine(self, command):
        """Whether this is the command of the case; it is counted once."""
        if command.opcode != self.opcode:
            return False
        self.turn += 1
        return self.turn == self.n + 1

    def _on_command(self, command):
        if not self._mine(command):
            return True
        self.hits += 1
        if self.fault == "lost":
            return False
        if self.fault == "status":      # the device does nothing of it
            command.completion = {**unpack("ornic_admin_cpl", b""), "cmd_id": command.fields["cmd_id"], "opcode": command.opcode,
                                  "status": int(self.argument)}
            self.proxy.complete(command)
            return False
        self.chosen = command
        return True

    def _on_completion(self, command, completion):
        if command is not self.chosen:
            return True
        if self.fault in ("late", "slow"):
            return False                # release() at the end of the case, or when the driver has waited for a while
        if self.fault == "twice":
            self.proxy.put_completion(dict(completion))
        elif self.fault == "done":
            completion["status"] = int(self.argument)
        elif self.fault == "opcode":
            completion["opcode"] ^= 1
        elif self.fault == "number":
            completion["number"] = {"0": 0, "max": BEYOND, "other": completion["number"] + 1}[self.argument]
        return True

    def held_for(self):
        """Seconds, in units of the admin timeout, after which a held completion is given; None if none is held."""
        return {"late": 1.5, "slow": 0.5}.get(self.fault)

    # events
    def _event(self, fault):
        self.fault = fault
        if fault not in EVENT_FAULTS:
            raise ValueError("no fault " + fault)
        self.proxy.lies.on_event = self._on_event

    def _on_event(self, _queue, entry):
        self.hits += 1
        if self.fault == "dropped":
            return []
        changed = bytearray(entry)
        if self.fault == "other-number":
            changed[NUMBER] ^= 1
        elif self.fault == "other-type":
            changed[TYPE] ^= 1
        return [entry, changed] if self.fault == "doubled" else [changed]

    # Identify
    def _identify(self, where, value):
        page, _, field = where.partition(".")
        self.page = next(number for number, name in PAGES.items() if name.endswith("_" + page))
        self.at, self.code = next((at, code) for at, code, found in fields_of(PAGES[self.page]) if found == field)
        self.value = int(value, 0)
        self.proxy.lies.on_completion = self._identified

    def _identified(self, command, completion):
        about = command.input("ornic_identify_cmd")["page"] if command.opcode == c.ORNIC_OP_IDENTIFY else \
            c.ORNIC_ID_PORT if command.opcode == c.ORNIC_OP_PORT_QUERY else None
        if about == self.page and completion["status"] == c.ORNIC_ST_OK:
            count = struct.calcsize("<" + self.code)
            if self.at + count <= min(command.fields["out_len"], size(PAGES[about])):
                self.proxy.memory.write(command.fields["out_addr"] + self.at, self.value.to_bytes(count, "little"))
                self.hits += 1
        return True
