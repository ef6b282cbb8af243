# SPDX-License-Identifier: GPL-2.0
"""The device's half of the guest's admin and event queues, implemented by the proxy (ring.rst).

The guest's records keep notify = ALWAYS, so that the guest rings for each entry that it posts and each time it arms.
"""
import dataclasses

from interface import c, offset

ENTRY = c.ORNIC_ENTRY_BYTES
LAST = ENTRY - 1
HOST_INDEX, ARM, NOTIFY, DEV_INDEX = (offset("ornic_rec." + field) for field in ("host_index", "arm", "notify", "dev_index"))
MASK = 0xffffffff


@dataclasses.dataclass
class Arm:
    """An arm word."""
    word: int

    @property
    def index(self):
        return self.word & c.ORNIC_ARM_INDEX_MASK

    @property
    def serial(self):
        return self.word >> c.ORNIC_ARM_SN_SHIFT & c.ORNIC_ARM_SN_MASK

    @property
    def type(self):
        return self.word >> c.ORNIC_ARM_TYPE_SHIFT & c.ORNIC_ARM_TYPE_MASK

    def covers(self, producer):
        """Return true if an entry at or past the index exists with this producer index."""
        return 0 < ((producer - self.index) & c.ORNIC_ARM_INDEX_MASK) <= c.ORNIC_ARM_INDEX_MASK >> 1


class Ring:
    """Entries and their record. The entries lie in contiguous memory, or in pieces: pairs of address and length."""

    def __init__(self, memory, address, record, log, pieces=()):
        self.memory, self.address, self.record = memory, address, record
        self.log, self.entries = log, 1 << log
        self.slots = [start + at for start, length in pieces for at in range(0, length, ENTRY)]

    def slot(self, index):
        index %= self.entries
        return self.slots[index] if self.slots else self.address + index * ENTRY

    def host_index(self):
        return self.memory.word(self.record + HOST_INDEX)

    def arm(self):
        return Arm(self.memory.word(self.record + ARM))


class Taken(Ring):
    """A ring that the proxy consumes: the guest's submissions, or entries of the device."""

    def __init__(self, *where):
        super().__init__(*where)
        self.next = 0

    def submitted(self):
        """Return the entries up to the producer index that the guest published."""
        while self.next != self.host_index():
            yield self._take()

    def produced(self, room=lambda: True):
        """Return the entries with the phase of this lap, as long as there is room for them."""
        while room() and self.memory.read(self.slot(self.next) + LAST, 1)[0] & 1 == (self.next >> self.log & 1) ^ 1:
            yield self._take()
            self.memory.set_word(self.record + HOST_INDEX, self.next)

    def _take(self):
        entry = bytearray(self.memory.read(self.slot(self.next), ENTRY))
        self.next = (self.next + 1) & MASK
        return entry


class Made(Ring):
    """A ring that the proxy produces, for the guest or for the device."""

    def __init__(self, *where):
        super().__init__(*where)
        self.producer = 0

    def room(self):
        """Return true if the guest has consumed enough for one more."""
        return (self.producer - self.host_index()) & MASK < self.entries

    def put(self, entry, phase=True):
        """Write one entry; with a phase for the guest, without one to be published to the device."""
        if phase:
            entry = bytearray(entry)
            entry[LAST] = entry[LAST] & ~1 | (self.producer >> self.log & 1) ^ 1
        self.memory.write_entry(self.slot(self.producer), entry)
        self.producer = (self.producer + 1) & MASK

    def publish(self):
        self.memory.set_word(self.record + HOST_INDEX, self.producer)
