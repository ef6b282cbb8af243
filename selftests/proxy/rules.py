# SPDX-License-Identifier: GPL-2.0
"""The specification's rules for a driver, as far as a device can check them: the violated clauses, and the number of times that
each clause was exercised.

The proxy reports the driver's actions as they happen. Nothing here depends on time.
"""
import collections

from interface import c, name_of, offset, unpack
from memory import PAGE, pages
from rings import ENTRY, HOST_INDEX, LAST, NOTIFY, Arm

REASONS = {value for name, value in vars(c).items() if name.startswith("ORNIC_REASON_")}
FEATURES = sum(1 << value for name, value in vars(c).items() if name.startswith("ORNIC_F_"))
PAGE_SHIFT = PAGE.bit_length() - 1
RECORD = unpack("ornic_rec", b"")

CREATE, DESTROY = (0x01, 0x11), (0x04, 0x14)    # verbs of an opcode; 0x11 and 0x14 belong to another object of the same class
INPUTS = {c.ORNIC_OP_EQ_CREATE: "ornic_eq_create_cmd", c.ORNIC_OP_CQ_CREATE: "ornic_cq_create_cmd",
          c.ORNIC_OP_CQ_RESIZE: "ornic_cq_resize_cmd", c.ORNIC_OP_SRQ_CREATE: "ornic_srq_create_cmd",
          c.ORNIC_OP_QP_CREATE: "ornic_qp_create_cmd", c.ORNIC_OP_KEY_CREATE: "ornic_key_create_cmd",
          c.ORNIC_OP_DM_CREATE: "ornic_dm_create_cmd", c.ORNIC_OP_SET_FEATURES: "ornic_features_cmd"}
EQ, PD, XRCD, KEY, DM, CQ, SRQ, QP, PORT = range(1, 10)         # classes of opcodes
NAMED = {c.ORNIC_OP_CQ_CREATE: {"eq": EQ}, c.ORNIC_OP_SRQ_CREATE: {"pd": PD, "xrcd": XRCD, "cq": CQ},
         c.ORNIC_OP_KEY_CREATE: {"pd": PD, "dm": DM},
         c.ORNIC_OP_QP_CREATE: {"pd": PD, "send_cq": CQ, "recv_cq": CQ, "srq": SRQ, "xrcd": XRCD}}


def object_of(opcode, number):
    """Return the object of a number: class of the opcode, kind within it, number; of a key the index, because the tag changes."""
    kind = opcode >> 8
    return kind, opcode & 0x10, number >> c.ORNIC_KEY_TAG_BITS if kind == KEY else number


class Rules:
    """broken: texts, each begins with a clause. tried: number of times that a clause was exercised."""

    db_offset = 4 << 20                 # place of the doorbell pages in the reference device

    def __init__(self):
        self.broken = []
        self.tried = collections.Counter()
        self.reset()

    def check(self, clause, holds, text, *details):
        self.tried[clause] += 1
        if not holds:
            self.broken.append("%s: %s" % (clause, text % details))

    def reset(self):
        """Forget all objects, because the device is disabled."""
        self.enabled = self.ready = False
        self.given_up = False           # bus mastering has ended: the driver considers the device dead
        self.objects = set()            # existing objects, as of object_of()
        self.going = set()              # those whose destroy is in flight
        self.ambiguous = set()          # those whose number the device gave to two objects of the driver
        self.flight = {}                # commands by cmd_id
        self.arms = {}                  # last arm by ring
        self.records = {}               # address of a CQ's record and log2 of its entries, by number

    # registers
    def register_read(self, at, value):
        self.check("ORN-CLK-4", at != c.ORNIC_REG_CLOCK, "CLOCK read")
        if at == c.ORNIC_REG_DB_OFFSET:
            self.db_offset = value
        suspects = at == c.ORNIC_REG_MAGIC or self.given_up
        self.check("ORN-PCI-3", not self.ready or suspects, "register %#x read while the device is enabled", at)
        if at == c.ORNIC_REG_STATUS and self.enabled and value & (c.ORNIC_STS_READY | c.ORNIC_STS_FATAL) == c.ORNIC_STS_READY:
            self.ready = True

    def register_write(self, at, count, value):
        if at == c.ORNIC_REG_CONTROL:
            self._control(value)
        elif at in (c.ORNIC_REG_ASQ_ADDR, c.ORNIC_REG_ACQ_ADDR, c.ORNIC_REG_ASQ_REC, c.ORNIC_REG_ACQ_REC):
            self.check("ORN-GEN-1", count == 8, "register %#x written in pieces", at)

    def _control(self, value):
        reason = value >> c.ORNIC_CTL_REASON_SHIFT
        enable = value & c.ORNIC_CTL_ENABLE and not value & c.ORNIC_CTL_RESET
        if enable:
            stride = value >> c.ORNIC_CTL_STRIDE_SHIFT & c.ORNIC_CTL_STRIDE_MASK
            self.check("ORN-DB-8", stride + c.ORNIC_DB_MIN_STRIDE_LOG >= PAGE_SHIFT, "doorbell stride %d", stride)
            return
        if self.enabled:
            self.check("ORN-CTL-6", reason in REASONS, "reason %d of a reset or disable", reason)
        self.reset()

    def enable(self, memory, asq, acq):
        """Check a write of ENABLE."""
        self.enabled = True
        ring = memory.read(acq.address, acq.entries * ENTRY)
        self.check("ORN-RNG-16", not any(ring), "the ACQ is not zero")
        for queue in (asq, acq):
            self._record(memory, queue.record)

    def doorbell(self, at, count):
        self.check("ORN-GEN-1", count == 8 and at % PAGE == c.ORNIC_DB_REG, "doorbell of %d bytes at %#x", count, at)

    # arming
    def _armed(self, ring, word, host_index, entries):
        """Check an arm of the driver; return it and the number of entries by which the consumer index that it stored is behind."""
        arm, last = Arm(word), self.arms.get(ring)
        if last and last.serial == arm.serial:
            self.check("ORN-RNG-30", arm.type >= last.type, "%s: arm type lowered to %d", ring, arm.type)
        self.arms[ring] = arm
        lag = (arm.index - host_index) & c.ORNIC_ARM_INDEX_MASK
        if lag > c.ORNIC_ARM_INDEX_MASK >> 1:
            lag = 0                     # the driver has consumed more meanwhile
        self.check("ORN-RNG-13", lag <= max(entries // 4, 1), "%s: consumer index behind by %d of %d", ring, lag, entries)
        return arm, lag

    def eq_armed(self, number, ring, word):
        last = self.arms.get(("EQ", number))
        arm, lag = self._armed(("EQ", number), word, ring.host_index(), ring.entries)
        self.check("ORN-RNG-34", not lag, "EQ %d armed at %#x before the consumer index is stored", number, arm.index)
        if last:
            batch = (arm.index - last.index) & c.ORNIC_ARM_INDEX_MASK
            self.check("ORN-RNG-13", batch <= ring.entries // 4, "EQ %d: %d of %d entries in one batch", number, batch,
                       ring.entries)

    def acq_armed(self, ring, word, events):
        """Check an arm of the ACQ, after so many events of it. The driver may have consumed more events than when it armed.

        On a loaded host a doorbell arrives after events of later arms, which the proxy found in the record; the low bits of a
        serial number do not tell how much later. So only the latest arm is compared with the events.
        """
        arm, _ = self._armed("ACQ", word, ring.host_index(), ring.entries)
        if word != ring.arm().word:
            return
        ahead = (arm.serial - 1 - events) & c.ORNIC_ARM_SN_MASK
        self.check("ORN-RNG-10", not 0 < ahead <= c.ORNIC_ARM_SN_MASK >> 1, "ACQ: serial number %d after %d events", arm.serial, events)

    def cq_armed(self, memory, number, word):
        if number in self.records:
            record, log = self.records[number]
            self._armed(("CQ", number), word, memory.word(record + HOST_INDEX), 1 << log)

    # commands
    def submitted(self, asq, flight):
        """Check a doorbell of the ASQ, with the number of commands in flight that were taken."""
        flight += (asq.host_index() - asq.next) & 0xffffffff
        self.check("ORN-ADM-17", flight <= asq.entries, "%d commands in flight, %d entries", flight, asq.entries)

    def command(self, memory, command):
        """Check a command that the device takes."""
        fields, opcode = command.fields, command.opcode
        number = fields["cmd_id"]
        self.check("ORN-ADM-18", number not in self.flight, "cmd_id %#x is in flight already", number)
        self.flight[number] = command
        given = command.input(INPUTS[opcode]) if opcode in INPUTS else {}
        self._relies(command, given)
        if any(name.endswith("record") for name in given):
            self._rings(memory, opcode, given)
        if opcode in (c.ORNIC_OP_QP_CREATE, c.ORNIC_OP_SRQ_CREATE):
            bit = c.ORNIC_QP_F_PRIVILEGED if opcode == c.ORNIC_OP_QP_CREATE else c.ORNIC_SRQ_F_PRIVILEGED
            self.check("ORN-SEC-11", not (given["flags"] & bit and given["dbpage"]),
                       "%s with PRIVILEGED for doorbell page %d", name_of("ORNIC_OP_", opcode), given["dbpage"])
        elif opcode == c.ORNIC_OP_KEY_CREATE and given["kind"] == c.ORNIC_KEY_REGION and given["length"] and \
                not given["access"] & c.ORNIC_ACCESS_ZERO_BASED:
            page = 1 << (given["pages.page_shift"] if given["pages.level"] else PAGE_SHIFT)
            self.check("ORN-MEM-19", given["iova"] % page == given["pages.offset"] % page, "iova %#x with offset %#x in pages of %#x",
                       given["iova"], given["pages.offset"], page)
        elif opcode == c.ORNIC_OP_DM_CREATE:
            self.check("ORN-DM-1", given["bytes"] % PAGE == 0 and given["log_align"] >= PAGE_SHIFT,
                       "device memory of %d bytes aligned to 2^%d", given["bytes"], given["log_align"])
        elif opcode == c.ORNIC_OP_SET_FEATURES:
            unknown = given["features0"] & ~FEATURES | given["features1"]
            self.check("ORN-FEA-6", not unknown, "features %#x accepted", unknown)

    def _relies(self, command, given):
        """Check that a command names existing objects only: the driver knows a number only from a completion."""
        opcode, fields = command.opcode, command.fields
        named = {object_of(kind << 8, given[field]) for field, kind in NAMED.get(opcode, {}).items()
                 if given[field] not in (0, c.ORNIC_NONE) or field == "eq"}
        if opcode & 0xff not in CREATE and 0 < opcode >> 8 != PORT:
            named.add(object_of(opcode, fields["number"]))
        for thing in named - self.ambiguous:
            self.check("ORN-ADM-15", thing in self.objects - self.going, "%s names %s, which does not exist yet or any more",
                       name_of("ORNIC_OP_", opcode), thing)
        if opcode & 0xff in DESTROY and opcode >> 8:
            self.going |= named

    def completed(self, memory, command):
        """Note that the driver will find a command completed."""
        fields, opcode, completion = command.fields, command.opcode, command.completion
        self.flight.pop(fields["cmd_id"], None)
        if fields["in_len"] > c.ORNIC_ADMIN_INLINE:
            self.check("ORN-ADM-3", memory.read(fields["in_addr"], fields["in_len"]) == command.payload,
                       "input of %s changed before its completion", name_of("ORNIC_OP_", opcode))
        good = completion["status"] == c.ORNIC_ST_OK
        thing = object_of(opcode, completion["number"])
        if opcode & 0xff in CREATE and opcode >> 8 and good:
            if thing in self.objects:
                self.ambiguous.add(thing)
            self.objects.add(thing)
            if opcode == c.ORNIC_OP_CQ_CREATE:
                given = command.input("ornic_cq_create_cmd")
                self.records[completion["number"]] = given["record"], given["log_entries"]
        elif opcode & 0xff in DESTROY and opcode >> 8:
            thing = object_of(opcode, fields["number"])
            self.going.discard(thing)
            if good:
                self.objects.discard(thing)
                if thing[0] == CQ:
                    self.records.pop(fields["number"], None)
        elif opcode == c.ORNIC_OP_CQ_RESIZE and good:
            given = command.input("ornic_cq_resize_cmd")
            self.records[fields["number"]] = given["record"], given["log_entries"]
            self.arms.pop(("CQ", fields["number"]), None)

    # rings
    def _rings(self, memory, opcode, given):
        """Check that rings and records have their initial content before create."""
        for name in ("record", "sq_record", "rq_record"):
            if given.get(name):
                self._record(memory, given[name])
        if opcode not in (c.ORNIC_OP_EQ_CREATE, c.ORNIC_OP_CQ_CREATE, c.ORNIC_OP_CQ_RESIZE):
            return
        descriptor = {field: given["pages." + field] for field in ("addr", "offset", "page_shift", "level")}
        for address, length in pages(memory, descriptor, ENTRY << given["log_entries"]):
            self.check("ORN-RNG-16", not any(memory.read(address, length)), "ring of %s is not zero at %#x",
                       name_of("ORNIC_OP_", opcode), address)

    def _record(self, memory, address):
        notify = memory.word(address + NOTIFY)
        index = memory.word(address + HOST_INDEX)
        self.check("ORN-RNG-4", notify == c.ORNIC_NOTIFY_ALWAYS and not index, "record at %#x: index %d, notify %#x", address, index,
                   notify)
