# SPDX-License-Identifier: GPL-2.0
"""A proxy in front of one function: the driver sees it as its device, the device sees it as its driver.

Registers, doorbells and configuration space go through the proxy as messages. The proxy itself serves the admin queue and the
event queues: for these the device gets rings in the proxy's memory, and the proxy copies each entry from one ring to the other.
So it sees every command, completion and event exactly once, and can change, hold or invent it. All other rings are the guest's,
and the device works on them directly.

The proxy reports the driver's actions to a Rules (rules.py). A test makes the device lie by the members of Lies.
"""
import dataclasses
import json
import os
import struct
import threading
import time
from typing import Callable, Optional

import relay
from interface import c, offset, pack, unpack
from memory import Memory, Shared, Unreachable, pages
from relay import ACCESS, Relay
from rings import NOTIFY, Made, Taken
from rules import Rules

SHARED_AT = 1 << 46                     # DMA address without memory in any guest
SHARED_BYTES = 32 << 20
MSIX = 2
SET_EVENTFD, SET_TRIGGER = 4, 32
COMMAND, BUS_MASTER = 4, 4              # register of the configuration space, and its bit
BAR0, CONFIG_SPACE = c.ORNIC_BAR_REGS, 7
READ, WRITE, CONFIG = "read", "write", "config"
ONES = 0xffffffff
PUMP = 0.001                            # seconds between two polls of the device's rings
GLANCE = 0.05                           # seconds between two looks at the guest's memory, whose changes nobody reports
RINGS = {c.ORNIC_REG_ASQ_ADDR: "asq", c.ORNIC_REG_ACQ_ADDR: "acq", c.ORNIC_REG_ASQ_REC: "asq_rec",
         c.ORNIC_REG_ACQ_REC: "acq_rec", c.ORNIC_REG_STATUS_ADDR: "status"}
STATUS_BYTES = 64
HEARTBEAT = offset("ornic_status_block.heartbeat")


@dataclasses.dataclass
class Lies:
    """Changes to the device's answers and actions.

    registers: by offset, a function of the true value. gone: the function has left the bus. on_command: called with a command
    before the device gets it; False: it never does. on_completion: called with the command and its completion, a dict that it
    may change; False: the completion is held until release(). on_event: called with an event queue's number and an event of the
    device, as bytes, or with one that reports admin completions; returns the list of events for the driver instead.
    on_doorbell: called with kind, queue number and value of a doorbell; False: the doorbell is held until release().
    interrupts: False for none. mute: vectors without interrupts. heartbeat: False hides it from the driver.
    """
    registers: dict = dataclasses.field(default_factory=dict)
    gone: bool = False
    on_command: Optional[Callable] = None
    on_completion: Optional[Callable] = None
    on_event: Optional[Callable] = None
    on_doorbell: Optional[Callable] = None
    interrupts: bool = True
    mute: set = dataclasses.field(default_factory=set)
    heartbeat: bool = True


@dataclasses.dataclass
class Command:
    """A command in flight. ring: place of the entries of a CQ, or of a QP's receive queue, that it creates; the driver may free
    the list after the completion. times: how often the driver gets the completion."""
    entry: bytes
    fields: dict
    payload: bytes
    completion: Optional[dict] = None
    ring: tuple = ()
    times: int = 1

    @property
    def opcode(self):
        return self.fields["opcode"]

    def input(self, name):
        """Return the input as a structure."""
        return unpack(name, self.payload)


class EventQueue:
    """An event queue of the guest and the device's counterpart of it. fired: the arm word for which it fired last."""

    def __init__(self, vector, guest, twin):
        self.vector, self.guest, self.twin = vector, guest, twin
        self.fired = 0


class Proxy(Relay):
    """One function's proxy; made by the lab with the path that QEMU connects to and that of the device."""

    def __init__(self, listen_at, device_path):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.memory, self.shared = Memory(), Shared(SHARED_AT, SHARED_BYTES)
        self.rules, self.lies = Rules(), Lies()
        self.accesses = []              # accesses of all registers: READ, WRITE or CONFIG, offset, value
        self.commands = []              # all commands that were submitted
        self.vectors = {}               # eventfd by number
        self.bus_master = False
        self._forget()
        self.storming = None
        self.running = True
        super().__init__(listen_at, device_path)
        self.pump = threading.Thread(target=self._pump, daemon=True)
        self.pump.start()

    def _forget(self):
        """Forget the guest's rings, because the device is disabled and must not access them."""
        self.given = {}                 # addresses that the driver wrote into registers, by name
        self.asq = self.acq = self.twin_asq = self.twin_acq = None
        self.inputs = 0                 # shared memory for the inputs of commands
        self.eqs = {}
        self.flight, self.held = {}, []
        self.late = []                  # held doorbells: offset and bytes
        self.acq_fired = 0
        self.admin_events = 0           # events of type ADMIN that the driver was given
        self.status_seen = b""          # the device's status block at the last copy
        self.starting = {}              # event queues whose create is in flight, by cmd_id
        self.shared.clear()

    # vfio-user
    def connected(self):
        self.bus_master = False
        self.accesses, self.commands = [], []

    def disconnected(self):
        with self.lock:
            self._forget()
            self.rules.reset()
            self.memory.remove(0, 0)
            self._drop_vectors()

    def request(self, message):
        handler = {relay.VERSION: self._version, relay.DMA_MAP: self._map, relay.DMA_UNMAP: self._unmap,
                   relay.SET_IRQS: self._set_irqs, relay.REGION_READ: self._read, relay.REGION_WRITE: self._write,
                   relay.RESET: self._reset}.get(message.cmd)
        return handler(message) if handler else message

    def _version(self, message):
        """Offer no batches of writes, because the proxy does not split them."""
        said = json.loads(message.payload[4:-1])
        said["capabilities"]["write_multiple"] = False
        message.payload = message.payload[:4] + json.dumps(said).encode() + b"\0"
        return message

    def _map(self, message):
        _, _, at, address, size = struct.unpack_from("=IIQQQ", message.payload)
        if message.fds:
            with self.lock:
                self.memory.add(address, size, message.fds[0], at)
        return message

    def _unmap(self, message):
        _, flags, address, size = struct.unpack_from("=IIQQ", message.payload)
        with self.lock:
            self.memory.remove(0, 0) if flags else self.memory.remove(address, size)
        return message

    def _reset(self, message):
        with self.lock:
            self._forget()
            self.rules.reset()
        return message

    def _drop_vectors(self):
        for fd in self.vectors.values():
            os.close(fd)
        self.vectors = {}

    def _set_irqs(self, message):
        _, flags, index, start, count = struct.unpack_from("=IIIII", message.payload)
        with self.lock:
            if index == MSIX and not count:
                self._drop_vectors()
            if index == MSIX and flags == SET_EVENTFD | SET_TRIGGER:
                for number, fd in enumerate(message.fds, start):
                    if number in self.vectors:
                        os.close(self.vectors[number])
                    self.vectors[number] = os.dup(fd)
        return message

    def _read(self, message):
        at, region, count = ACCESS.unpack_from(message.payload)
        if region == BAR0 and self.lies.gone:
            with self.changed:
                self.accesses.append((READ, at, ONES))
                self.changed.notify_all()
            self.answer(message, message.payload[:ACCESS.size] + b"\xff" * count)
            return None
        return message

    def reply(self, request, message):
        if request.cmd != relay.REGION_READ or message.flags & relay.ERROR:
            return message
        at, region, _ = ACCESS.unpack_from(message.payload)
        if region != BAR0:
            return message
        data = message.payload[ACCESS.size:]
        value = int.from_bytes(data, "little")
        if at == c.ORNIC_REG_STATUS:
            with self.lock:
                self._copy_status()     # the driver sees READY after the nonce
        if at in self.lies.registers:
            value = self.lies.registers[at](value)
            message.payload = message.payload[:ACCESS.size] + value.to_bytes(len(data), "little")
        with self.lock:
            self.accesses.append((READ, at, value))
            self.rules.register_read(at, value)
            self.changed.notify_all()
        return message

    def _write(self, message):
        at, region, count = ACCESS.unpack_from(message.payload)
        data = message.payload[ACCESS.size:ACCESS.size + count]
        value = int.from_bytes(data, "little")
        with self.lock:
            if region == CONFIG_SPACE:
                self._config(at, count, value)
            if region != BAR0:
                return message
            if at < c.ORNIC_REG_BYTES:
                return self._register(message, at, count, value)
            return self._doorbell(message, at, count, value)

    def _config(self, at, count, value):
        self.accesses.append((CONFIG, at, value))
        if at <= COMMAND < at + count:
            self.bus_master = bool(value >> 8 * (COMMAND - at) & BUS_MASTER)
            self.rules.given_up = self.rules.enabled and not self.bus_master
        self.changed.notify_all()

    # registers
    def _register(self, message, at, count, value):
        self.accesses.append((WRITE, at, value))
        self.changed.notify_all()
        if self.lies.gone:
            self.answer(message, message.payload[:ACCESS.size])
            return None
        self.rules.register_write(at, count, value)
        if at in RINGS:
            self.given[RINGS[at]] = value
            twin = self._twin(RINGS[at])
            message.payload = message.payload[:ACCESS.size] + struct.pack("<Q", twin)
        if at == c.ORNIC_REG_ADMIN_SIZE:
            self.given["size"] = value
        if at == c.ORNIC_REG_CONTROL:
            self._control(value)
        return message

    def _twin(self, name):
        """Return the place of the device's counterpart of an admin ring or its record; the first call allocates all of them."""
        if "twins" not in self.given:
            self._share()
            rings = self.shared.take(2 * (c.ORNIC_ENTRY_BYTES << c.ORNIC_LOG_MAX_ADMIN))
            records = self.shared.take(128)
            self.given["twins"] = {"asq": rings, "acq": rings + (c.ORNIC_ENTRY_BYTES << c.ORNIC_LOG_MAX_ADMIN),
                                   "asq_rec": records, "acq_rec": records + 64, "status": self.shared.take(STATUS_BYTES)}
            self.inputs = self.shared.take(c.ORNIC_ADMIN_MAX_PAYLOAD << c.ORNIC_LOG_MAX_ADMIN)
        return self.given["twins"][name]

    def _share(self):
        """Make the proxy's memory known to the device, once per connection."""
        if SHARED_AT not in self.memory.blocks:
            self.memory.add(SHARED_AT, SHARED_BYTES, self.shared.fd, 0)
            self.ask(relay.DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, SHARED_AT, SHARED_BYTES), [self.shared.fd])

    def _control(self, value):
        if value & c.ORNIC_CTL_RESET or not value & c.ORNIC_CTL_ENABLE:
            self._forget()
        elif not self.asq:
            self._enable()

    def _enable(self):
        given, twins = self.given, self.given["twins"]
        asq_log, acq_log = given["size"] & 0xf, given["size"] >> 4 & 0xf
        self.asq = Taken(self.memory, given["asq"], given["asq_rec"], asq_log)
        self.acq = Made(self.memory, given["acq"], given["acq_rec"], acq_log)
        self.twin_asq = Made(self.memory, twins["asq"], twins["asq_rec"], asq_log)
        self.twin_acq = Taken(self.memory, twins["acq"], twins["acq_rec"], acq_log)
        for ring in (self.twin_asq, self.twin_acq):
            self.memory.set_word(ring.record + NOTIFY, c.ORNIC_NOTIFY_ALWAYS)
        self.status_seen = self.memory.read(given["status"], STATUS_BYTES)
        self.memory.write(twins["status"], self.status_seen)
        self.rules.enable(self.memory, self.asq, self.acq)

    def _copy_status(self):
        """Copy the device's changes of its status block to the driver's."""
        if not self.asq:
            return
        said = self.memory.read(self.given["twins"]["status"], STATUS_BYTES)
        for at in range(0, STATUS_BYTES, 8):
            if said[at:at + 8] != self.status_seen[at:at + 8] and (at != HEARTBEAT or self.lies.heartbeat):
                self.memory.write(self.given["status"] + at, said[at:at + 8])
        self.status_seen = said

    # doorbells
    def _doorbell(self, message, at, count, value):
        self.rules.doorbell(at, count)
        if self.lies.gone:
            self.answer(message, message.payload[:ACCESS.size])
            return None
        kind = value >> c.ORNIC_DB_KIND_SHIFT & c.ORNIC_DB_KIND_MASK
        number, word = value & c.ORNIC_DB_NUMBER_MASK, value >> c.ORNIC_DB_VALUE_SHIFT
        if kind == c.ORNIC_DB_CQ_ARM:
            self.rules.cq_armed(self.memory, number, word)
        if self.lies.on_doorbell and self.lies.on_doorbell(kind, number, word) is False:
            self.late.append((at, message.payload[ACCESS.size:ACCESS.size + count]))
            self.answer(message, message.payload[:ACCESS.size])
            return None
        if not self.asq or at != self.rules.db_offset or kind not in (c.ORNIC_DB_EQ_ARM, c.ORNIC_DB_ADMIN):
            return message
        if kind == c.ORNIC_DB_EQ_ARM:
            if number in self.eqs:
                self.rules.eq_armed(number, self.eqs[number].guest, word)
                self._fire(self.eqs[number])
        elif number == c.ORNIC_DB_ASQ:
            self.rules.submitted(self.asq, len(self.flight))
            for entry in self.asq.submitted():
                self._submit(entry)
        else:
            self.rules.acq_armed(self.acq, word, self.admin_events)
            self._fire_admin()
        self.answer(message, message.payload[:ACCESS.size])
        return None

    # commands
    def _submit(self, entry):
        fields = unpack("ornic_admin_cmd", entry)
        length = fields["in_len"]
        payload = fields["inline_in"][:length] if length <= c.ORNIC_ADMIN_INLINE else self.memory.read(fields["in_addr"], length)
        command = Command(bytes(entry), fields, payload)
        self.rules.command(self.memory, command)
        self.flight[fields["cmd_id"]] = command
        self.commands.append(command)
        self.changed.notify_all()
        if command.opcode == c.ORNIC_OP_CQ_CREATE:
            given = command.input("ornic_cq_create_cmd")
            command.ring = self._ring_of(given, "pages.", c.ORNIC_ENTRY_BYTES << given["log_entries"])
        if command.opcode == c.ORNIC_OP_QP_CREATE:
            given = command.input("ornic_qp_create_cmd")
            command.ring = self._ring_of(given, "rq_pages.", 1 << given["rq_log"] + given["rq_stride"] if given["rq_record"] else 0)
        if self.lies.on_command and self.lies.on_command(command) is False:
            return
        if command.opcode == c.ORNIC_OP_EQ_CREATE:
            payload = self._eq_create(command)
        if length > c.ORNIC_ADMIN_INLINE:
            at = self.inputs + self.twin_asq.producer % self.twin_asq.entries * c.ORNIC_ADMIN_MAX_PAYLOAD
            self.memory.write(at, payload)
            struct.pack_into("<Q", entry, offset("ornic_admin_cmd.in_addr"), at)
        self.twin_asq.put(entry, phase=False)
        self.twin_asq.publish()
        self._ring(c.ORNIC_DB_ADMIN, c.ORNIC_DB_ASQ, self.twin_asq.producer)

    def _ring_of(self, given, prefix, length):
        """Return addresses and lengths of the pieces of a ring."""
        where = {field: given[prefix + field] for field in ("addr", "offset", "page_shift", "level")}
        return tuple(pages(self.memory, where, length))

    def _ring(self, kind, number, value):
        word = number | kind << c.ORNIC_DB_KIND_SHIFT | value << c.ORNIC_DB_VALUE_SHIFT
        self.post(BAR0, self.rules.db_offset, struct.pack("<Q", word))

    def _eq_create(self, command):
        """Give the device a ring of the proxy; return the changed input."""
        fields = command.input("ornic_eq_create_cmd")
        guest = Made(self.memory, None, fields["record"], fields["log_entries"],
                     self._ring_of(fields, "pages.", c.ORNIC_ENTRY_BYTES << fields["log_entries"]))
        twin = Taken(self.memory, self.shared.take(c.ORNIC_ENTRY_BYTES * guest.entries), self.shared.take(64), guest.log)
        self.memory.set_word(twin.record + NOTIFY, c.ORNIC_NOTIFY_ALWAYS)
        self.starting[command.fields["cmd_id"]] = EventQueue(fields["vector"], guest, twin)
        return pack("ornic_eq_create_cmd", {**fields, "pages.addr": twin.address, "pages.offset": 0, "pages.level": 0,
                                             "pages.page_shift": 0, "record": twin.record})

    def _completed(self, entry):
        """Process a command that the device has completed."""
        completion = unpack("ornic_admin_cpl", entry)
        command = self.flight[completion["cmd_id"]]
        command.completion = completion
        queue = self.starting.pop(completion["cmd_id"], None)
        if queue and completion["status"] == c.ORNIC_ST_OK:
            self.eqs[completion["number"]] = queue
        if self.lies.on_completion and self.lies.on_completion(command, completion) is False:
            self.held.append(command)
            self.changed.notify_all()
        else:
            self.complete(command)

    def complete(self, command):
        """Report the completion of a command to the driver."""
        self.rules.completed(self.memory, command)
        self.flight.pop(command.fields["cmd_id"], None)
        for _ in range(command.times):
            self.put_completion(command.completion)

    def put_completion(self, fields):
        """Give the driver a completion, which need not belong to a command."""
        with self.lock:
            self.acq.put(pack("ornic_admin_cpl", fields))
            self._fire_admin()

    def release(self):
        """Give the driver the held completions, and the device the held doorbells."""
        with self.lock:
            self.lies.on_completion = self.lies.on_doorbell = None
            while self.held:
                self.complete(self.held.pop(0))
            while self.late:
                self.post(BAR0, *self.late.pop(0))

    def give(self, command):
        """Give the driver the completion of one command, if it is still held: a reset discards it."""
        with self.lock:
            if command in self.held:
                self.held.remove(command)
                self.complete(command)

    # events
    def _fire_admin(self):
        arm = self.acq.arm()
        if 0 not in self.eqs or not arm.type or arm.serial == self.acq_fired or not arm.covers(self.acq.producer):
            return
        if not self.eqs[0].guest.room():
            return                      # _look() tries again
        self.acq_fired = arm.serial
        self._give_events(0, pack("ornic_eqe", {"type": c.ORNIC_EV_ADMIN, "info0": arm.word}))
        self._fire(self.eqs[0])

    def _give_events(self, number, entry):
        """Give the driver an event of the device, or the result of a lie about it."""
        for given in self.lies.on_event(number, entry) if self.lies.on_event else (entry,):
            self._put(number, given)

    def _put(self, number, entry):
        """Give the driver an event."""
        self.admin_events += unpack("ornic_eqe", entry)["type"] == c.ORNIC_EV_ADMIN
        self.eqs[number].guest.put(entry)

    def put_event(self, number, *events):
        """Give the driver events in one batch, which may be invented."""
        with self.lock:
            queue = self.eqs[number]
            for fields in events:
                self._put(number, pack("ornic_eqe", fields))
            self._fire(queue)

    def _fire(self, queue):
        """Raise an interrupt if the queue is armed and has entries for which the guest waits."""
        arm = queue.guest.arm()
        if not (arm.type and arm.word != queue.fired and arm.covers(queue.guest.producer)):
            return
        if self.lies.interrupts and self.bus_master and queue.vector in set(self.vectors) - self.lies.mute:
            queue.fired = arm.word
            os.eventfd_write(self.vectors[queue.vector], 1)

    # the device's rings
    def _pump(self):
        while self.running:
            with self.changed:
                self.changed.wait(PUMP)
                try:
                    self._look()
                except Unreachable:
                    pass                # the guest's memory is being mapped again
                except Exception as e:  # pylint: disable=broad-except
                    self.broken = e
                    raise

    def _look(self):
        if self.asq and self.bus_master:
            self._copy_status()
            for entry in self.twin_acq.produced():
                self._completed(entry)
            self._fire_admin()
            for number, queue in list(self.eqs.items()):
                for entry in queue.twin.produced(queue.guest.room):
                    self._give_events(number, entry)
                self._fire(queue)
            if self.storming and self.storming[0] in self.eqs:
                queue = self.eqs[self.storming[0]]
                for _ in range(queue.guest.entries):
                    if queue.guest.room():
                        queue.guest.put(self.storming[1])
                self._fire(queue)

    # for tests
    def wait(self, condition, what, timeout=60):
        """Wait until condition() on the proxy's state is true; the lock is held meanwhile."""
        end = time.monotonic() + timeout
        with self.changed:
            while not condition():
                if time.monotonic() > end:
                    raise AssertionError("after %d s the driver has not done this: %s" % (timeout, what))
                self.changed.wait(GLANCE)

    def seen(self, kind, at=None, since=0):
        """Return the values of the accesses of a kind, of one register or all."""
        return [value for what, where, value in self.accesses[since:] if what == kind and at in (None, where)]

    def reasons(self, since=0):
        """Return the reasons of the resets and disables so far."""
        return [value >> c.ORNIC_CTL_REASON_SHIFT for value in self.seen(WRITE, c.ORNIC_REG_CONTROL, since)
                if value & c.ORNIC_CTL_RESET or not value & c.ORNIC_CTL_ENABLE]

    def interrupt(self, vector):
        """Raise a spurious interrupt."""
        with self.lock:
            os.eventfd_write(self.vectors[vector], 1)

    def storm(self, number, fields=None):
        """Fill the event queue with this event whenever there is room, from now on; None: stop."""
        with self.lock:
            self.storming = None if number is None else (number, pack("ornic_eqe", fields))

    def fake_cqe(self, number, fields):
        """Write an entry at the next position of an armed CQ of the kernel, and raise its event. A wqe_id of None is that position: a
        CQ of one work queue has a completion for each of its entries.

        Return false, and do nothing, while the kernel has polled entries and not armed the CQ again: it would not see the entry. The
        device may write a true entry over this one before the kernel sees it."""
        with self.lock:
            create = next(command for command in reversed(self.commands)
                          if command.opcode == c.ORNIC_OP_CQ_CREATE and command.completion and command.completion["number"] == number)
            given = create.input("ornic_cq_create_cmd")
            ring = Made(self.memory, None, given["record"], given["log_entries"], create.ring)
            ring.producer, arm = ring.host_index(), ring.arm()
            if arm.index != ring.producer & c.ORNIC_ARM_INDEX_MASK:
                return False
            if fields["wqe_id"] is None:
                fields = {**fields, "wqe_id": ring.producer}
            ring.put(pack("ornic_cqe", fields))
            self.put_event(given["eq"], {"type": c.ORNIC_EV_COMPLETION, "number": number, "info0": arm.word})
            return True

    def vanish(self):
        """Remove the function from the bus: the device stops, and all reads return ones."""
        with self.lock:
            self.lies.gone = True
            self._forget()
            self.rules.reset()
            self.post(BAR0, c.ORNIC_REG_CONTROL, struct.pack("<I", c.ORNIC_CTL_RESET))

    def status_block(self, field, value):
        """Write a word of the status block instead of the device."""
        with self.lock:
            self.memory.set_word(self.given["status"] + offset("ornic_status_block." + field), value)

    def close(self):
        self.running = False
        super().close()
