# SPDX-License-Identifier: GPL-2.0
"""The device faults by name, and their injection by a proxy.

A name consists of the object and the kind of fault. A run counts how often each fault was injected:

OPCODE/FAULT                a command completes incorrectly, late or never: QP_CREATE/lost
EV_TYPE/FAULT               an event is lost, duplicated, changed or spurious: EV_COMPLETION/doubled
identify_PAGE.FIELD/VALUE   the driver reads this value in an Identify page, or in the answer of PORT_QUERY
cqe.FIELD/VALUE             a spurious completion, with this value, on a CQ of the kernel
"""
import fnmatch
import os
import random
import re
import struct
import threading
import time

from interface import _fields as fields_of
from interface import c, name_of, offset, pack, size, unpack
from memory import Unreachable
from rings import HOST_INDEX
from rules import object_of

HERE = os.path.dirname(os.path.realpath(__file__))
DRIVERS = os.path.join(HERE, "..", "..", "drivers")
STATUSES = ["status-%d" % value for value in sorted({value for name, value in vars(c).items() if name.startswith("ORNIC_ST_") and value} |
                                                    {17, 77, 255})]
# done-N: the device has executed the command, but reports failure with status N. slow completes within the time limit, late after it.
OTHERS = ["done-8", "done-15", "lost", "late", "slow", "twice", "number-0", "number-max", "number-other", "opcode"]
OUTPUTS = ["output-0", "output-1", "output-random", "output-short"]
HELD = {"slow": 0.5, "late": 1.5}       # delay of a completion, in admin timeouts
EVENT_FAULTS = ["dropped", "doubled", "other-number", "other-type", "ones", "made-up"]
PAGES = {c.ORNIC_ID_DEVICE: "ornic_identify_device", c.ORNIC_ID_PORT: "ornic_identify_port",
         c.ORNIC_ID_TRANSPORT: "ornic_identify_transport"}
EVENTS = {value: name[6:] for name, value in vars(c).items() if re.match(r"ORNIC_EV_(?!VERBS$)", name)}
NUMBER, TYPE = offset("ornic_eqe.number"), offset("ornic_eqe.type")
BEYOND = c.ORNIC_MAX_NUMBER + 1
KERNEL = 0                              # doorbell page of the kernel's own objects
SPARED = 0.6                            # share of device starts that get no faults at first
REST = 8                                # length of that time, in mean pauses between faults, so that workloads make progress
CHEAP = 0.2                             # pause after a fault that needs no reset, as a share of the usual one
# The device must not report that a change of a ring or of a mapping failed if it has made the change. It would then write to memory
# that the driver rightly frees, which no driver survives without an IOMMU.
IMPOSSIBLE = {(opcode, fault) for opcode in ("CQ_RESIZE", "SRQ_RESIZE", "KEY_MODIFY") for fault in ("done-8", "done-15")}


def sent_by_drivers():
    """Return the names of the opcodes that occur in the drivers' source."""
    found = set()
    for folder, _, files in os.walk(DRIVERS):
        for name in files:
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                found.update(re.findall(r"ORNIC_OP_(\w+)", f.read()))
    return sorted(found)


def extremes(code):
    """Return the values at and next to the ends of a field's range, and the sign bit alone."""
    bits = 8 * struct.calcsize("<" + code)
    if code.endswith("s"):
        return [0, (1 << bits) - 1]
    return sorted({0, 1, 1 << (bits - 1), (1 << bits) - 2, (1 << bits) - 1})


def field_cases(structure, without=("res", "phase")):
    """Return (name, offset, code, value) of each extreme value of each field."""
    return [("%s.%s/%#x" % (structure[6:], field, value), at, code, value) for at, code, field in fields_of(structure)
            if not field.startswith(without) for value in extremes(code)]


def command_faults(opcode, output):
    """Return the faults of a command as two lists: the different kinds first, then the statuses. The seed shuffles each list."""
    possible = [fault for fault in OTHERS + (OUTPUTS if output else []) if (opcode, fault) not in IMPOSSIBLE]
    return possible, STATUSES


class FaultPlan:
    """Count the injected faults and choose the next ones. only: patterns of names; done: counts of earlier runs, by name."""

    def __init__(self, seed, only=(), done=None):
        self.random, self.only, self.done = random.Random(seed), only, dict(done or {})
        self.order = {}                 # possible faults, by opcode, type of event or structure
        self.latest = []                # injected faults with their times, oldest first

    def allowed(self, name):
        return not self.only or any(fnmatch.fnmatchcase(name, pattern) for pattern in self.only)

    def only_starts(self):
        """Return whether only starts of the device can show the chosen faults."""
        return bool(self.only) and all(pattern.startswith("identify_") for pattern in self.only)

    def learn(self, group, *lists):
        """Add a group and its faults. Part of the second list, a third as long as the first, is mixed into the first; the rest follows."""
        first, *rest = [list(each) for each in lists]
        for each in (first, *rest):
            self.random.shuffle(each)
        if rest:
            few = len(first) // 3
            first += rest[0][:few]
            self.random.shuffle(first)
            first += rest[0][few:]
        self.order[group] = [name for name in first if self.allowed(name)]

    def tried(self, group):
        return sum(name in self.done for name in self.order[group])

    def next(self, group):
        """Return a fault that was not injected yet; if there is none, any fault of the group if patterns are set, else None."""
        left = [name for name in self.order[group] if name not in self.done]
        if left:
            return left[0]
        return self.random.choice(self.order[group]) if self.only and self.order[group] else None

    def fair(self, group, among):
        """Return at random whether this group is next: the further its count of injected faults is ahead of the others, the less likely."""
        least = min(self.tried(each) for each in among if self.next(each))
        return self.random.random() < max(0.15, 0.6 ** (self.tried(group) - least))

    def did(self, name):
        self.done[name] = self.done.get(name, 0) + 1
        self.latest.append((time.monotonic(), name))

    def coverage(self, group):
        return self.tried(group), len(self.order[group])


class Liar:
    """Inject faults into a proxy's device at random moments, with pause seconds on average between two faulty commands.

    Most starts of the device are spared, because many faults lead to a reset.
    """

    def __init__(self, proxy, plan, admin_timeout, pause):
        self.proxy, self.plan, self.admin_timeout = proxy, plan, admin_timeout
        self.random = plan.random
        self.chosen = {}                # fault of a command in flight, by id()
        self.pauses = {"command": pause, "event": 2 * pause, "cqe": 4 * pause}
        self.again = {}
        self.started = proxy.asq        # the admin queue of the device's last start
        self.spared, self.start_ends = False, 0
        self.missing = False            # an event of a CQ was lost, so that its consumer may wait forever
        self.lost = False               # a command was lost: only a reset ends it
        self.pages = {page: "identify_" + name[15:] for page, name in PAGES.items()}
        self.values = {name: (at, code, value) for structure in [*PAGES.values(), "ornic_cqe"]
                       for name, at, code, value in field_cases(structure)}
        for group in sorted({*self.pages.values(), "cqe"} - set(plan.order)):
            plan.learn(group, [name for name in self.values if name.startswith(group + ".")])
        self.opcodes = set()
        self.stop = threading.Event()
        self._rest(1)
        proxy.lies.on_command, proxy.lies.on_completion, proxy.lies.on_event = self._on_command, self._on_completion, self._on_event
        threading.Thread(target=self._make_up, daemon=True).start()

    def end(self):
        """Stop injecting faults. Delayed completions still arrive at their time."""
        self.stop.set()
        lies = self.proxy.lies
        lies.on_command = lies.on_completion = lies.on_event = None

    def _wait(self, kind, more=1):
        self.again[kind] = time.monotonic() + self.random.uniform(0.2, 1.8) * self.pauses[kind] * more

    def _rest(self, more):
        for kind in self.pauses:
            self.again[kind] = time.monotonic() + self.random.uniform(0.5, 1.5) * more * self.pauses["command"]

    def _due(self, kind):
        """Return whether a fault of this kind is due."""
        if self.proxy.asq is not self.started:
            self.started, self.spared = self.proxy.asq, self.random.random() < SPARED and not self.plan.only_starts()
            self.start_ends = time.monotonic() + REST * self.pauses["command"]
            if self.spared:
                self._rest(REST)
        return time.monotonic() >= self.again[kind]

    # commands
    def _choose(self, command):
        """Return the fault of a command, or None."""
        name = name_of("ORNIC_OP_", command.opcode)[9:]
        output = bool(command.fields["out_len"]) and command.opcode != c.ORNIC_OP_IDENTIFY
        if name not in self.plan.order:
            self.plan.learn(name, *[["%s/%s" % (name, fault) for fault in faults] for faults in command_faults(name, output)])
        self.opcodes.add(name)
        if not self._due("command") or not (found := self.plan.next(name)) or not self.plan.fair(name, self.opcodes):
            return None
        self.plan.did(found)
        fault = found.partition("/")[2]
        # the driver resets a device that rejects a destroy command or a command of the driver's start
        rejected = fault.startswith("status") and not name.endswith("_DESTROY") and time.monotonic() > self.start_ends
        self._wait("command", CHEAP if rejected else 1)
        return fault

    def _on_command(self, command):
        fault = self._choose(command)
        self.lost |= fault == "lost"
        if not fault or fault == "lost":
            return not fault
        kind, _, argument = fault.partition("-")
        if kind == "status":            # the device never gets the command
            command.completion = {**unpack("ornic_admin_cpl", b""), "cmd_id": command.fields["cmd_id"], "opcode": command.opcode,
                                  "status": int(argument)}
            self.proxy.complete(command)
            return False
        self.chosen[id(command)] = kind, argument
        return True

    def _on_completion(self, command, completion):
        self._identified(command, completion)
        kind, argument = self.chosen.pop(id(command), (None, None))
        if kind in HELD:
            timer = threading.Timer(HELD[kind] * self.admin_timeout, self.proxy.give, [command])
            timer.daemon = True
            timer.start()
            return False
        if kind == "twice":
            command.times = 2
        elif kind == "done":
            completion["status"] = int(argument)
        elif kind == "opcode":
            completion["opcode"] ^= 1
        elif kind == "number":
            completion["number"] = {"0": 0, "max": BEYOND, "other": completion["number"] + 1}[argument]
        elif kind == "output":
            self._output(command, completion, argument)
        return True

    def _output(self, command, completion, how):
        length = command.fields["out_len"]
        if how == "short":
            completion["out_size"] = self.random.randrange(length)
            return
        data = {"0": bytes(length), "1": b"\xff" * length, "random": self.random.randbytes(length)}[how]
        if length > c.ORNIC_ADMIN_INLINE:
            self.proxy.memory.write(command.fields["out_addr"], data)
        else:
            completion["inline_out"] = data.ljust(c.ORNIC_ADMIN_INLINE, b"\0")

    # Identify
    def _identified(self, command, completion):
        page = command.input("ornic_identify_cmd")["page"] if command.opcode == c.ORNIC_OP_IDENTIFY else \
            c.ORNIC_ID_PORT if command.opcode == c.ORNIC_OP_PORT_QUERY else None
        if page not in PAGES or completion["status"] != c.ORNIC_ST_OK or command.opcode == c.ORNIC_OP_IDENTIFY and self.spared:
            return
        for _ in range(self.random.choice((0, 1, 1, 2))):
            name = self.plan.next(self.pages[page])
            if not name:
                return
            at, code, value = self.values[name]
            count = struct.calcsize("<" + code)
            if at + count <= min(command.fields["out_len"], size(PAGES[page])):
                self.proxy.memory.write(command.fields["out_addr"] + at, value.to_bytes(count, "little"))
            self.plan.did(name)

    # events
    def _events_of(self, kind):
        group = EVENTS.get(kind)
        if group and group not in self.plan.order:
            self.plan.learn(group, ["%s/%s" % (group, fault) for fault in EVENT_FAULTS])
        return group

    def _on_event(self, _queue, entry):
        group = self._events_of(entry[TYPE])
        name = self.plan.next(group) if group and self._due("event") else None
        if not name or name.endswith("/made-up"):
            return [entry]
        self._wait("event")
        self.plan.did(name)
        fault, changed = name.partition("/")[2], bytearray(entry)
        self.missing |= fault not in ("doubled", "ones") and entry[TYPE] == c.ORNIC_EV_COMPLETION
        if fault == "dropped":
            return []
        if fault == "other-number":
            changed[NUMBER] ^= 1
        elif fault == "other-type":
            changed[TYPE] ^= 1
        elif fault == "ones":
            changed = bytearray(b"\xff" * len(entry))
            changed[TYPE] = entry[TYPE]
        return [entry, changed] if fault in ("doubled", "ones") else [changed]

    # spurious events and completions
    def _make_up(self):
        while not self.stop.wait(0.1):
            try:
                with self.proxy.lock:
                    if not self.stop.is_set() and self.proxy.asq and self.proxy.bus_master:
                        self._made_up_event()
                        self._made_up_completion()
            except (Unreachable, KeyError, StopIteration):
                pass                    # the device was reset meanwhile, or has no such object

    def _made_up_event(self):
        """Inject a spurious event of any type about an existing object."""
        if not self._due("event") or 0 not in self.proxy.eqs or not self.proxy.eqs[0].guest.room():
            return
        group = self._events_of(self.random.choice(list(EVENTS)))
        name = "%s/made-up" % group
        if name not in self.plan.order[group] or name in self.plan.done and not self.plan.only:
            return
        kind = next(value for value, found in EVENTS.items() if found == group)
        numbers = [command.completion["number"] for command in self.proxy.commands[-200:]
                   if command.completion and command.opcode & 0xff == 1] or [0]
        self._wait("event")
        self.plan.did(name)
        self.proxy.put_event(0, {"type": kind, "number": self.random.choice(numbers), "info0": self.random.getrandbits(32)})

    def _lives(self, number):
        """Return whether the CQ still has the ring that it was created with, because the driver may have freed any other ring."""
        create = next((command for command in reversed(self.proxy.commands) if command.opcode == c.ORNIC_OP_CQ_CREATE and
                       command.completion and command.completion["number"] == number), None)
        given = create and create.input("ornic_cq_create_cmd")
        rules = self.proxy.rules
        return given and rules.records.get(number) == (given["record"], given["log_entries"]) and \
            object_of(c.ORNIC_OP_CQ_CREATE, number) not in rules.going

    def _made_up_completion(self):
        """Inject a spurious completion on a CQ of the kernel; all fields but one are valid."""
        name = self.plan.next("cqe") if self._due("cqe") else None
        if not name:
            return
        self._wait("cqe")
        receive = self.random.random() < 0.5
        queue = "recv_cq" if receive else "send_cq"
        of_kernel = [command.input("ornic_qp_create_cmd") | {"qpn": command.completion["number"]} for command in self.proxy.commands
                     if command.opcode == c.ORNIC_OP_QP_CREATE and command.completion and not command.completion["status"] and
                     command.input("ornic_qp_create_cmd")["dbpage"] == KERNEL]
        of_kernel = [qp for qp in of_kernel if self._lives(qp[queue])]
        if not of_kernel:
            return
        qp = self.random.choice(of_kernel)
        # use the index of a work request that is posted and not completed, if there is one
        record = qp["rq_record" if receive else "sq_record"]
        posted = self.proxy.memory.word(record + HOST_INDEX) - 1 - self.random.randrange(2) if record else self.random.randrange(4)
        at, code, value = self.values[name]
        fields = {"qpn": qp["qpn"], "opcode": c.ORNIC_WC_RECV if receive else c.ORNIC_WC_SEND, "byte_len": 64,
                  "wqe_id": posted & 0xffffffff, "srqn": qp["srq"] if receive else c.ORNIC_NONE}
        entry = bytearray(pack("ornic_cqe", fields))
        count = struct.calcsize("<" + code)
        entry[at:at + count] = value.to_bytes(count, "little")
        if not self.proxy.fake_cqe(qp[queue], unpack("ornic_cqe", entry)):
            return
        self.missing = True             # the driver misses the true entry in its place
        self.plan.did(name)
