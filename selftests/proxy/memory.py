# SPDX-License-Identifier: GPL-2.0
"""The guest's memory as the device sees it: DMA addresses through the descriptors that came with DMA_MAP."""
import mmap
import os
import struct

PAGE = 4096


class Unreachable(Exception):
    """No memory at that DMA address."""


class Block:
    """A file mapped here. word() and quad() access aligned words by single accesses, as the driver and the device do."""

    def __init__(self, fd, size, offset=0):
        self.map = mmap.mmap(fd, size, offset=offset)
        self.words = memoryview(self.map).cast("I")
        self.quads = memoryview(self.map).cast("Q")

    def close(self):
        self.words.release()
        self.quads.release()
        self.map.close()


class Memory:
    """Blocks by DMA address."""

    def __init__(self):
        self.blocks = {}                # address: (size, Block)

    def add(self, address, size, fd, offset):
        """Add the memory of a DMA_MAP with a descriptor, which remains the caller's."""
        self.blocks[address] = (size, Block(fd, size, offset))

    def remove(self, address, size):
        """Remove the memory of a DMA_UNMAP; size 0 and address 0: all memory."""
        for start in [start for start in self.blocks if not size or address <= start < address + size]:
            self.blocks.pop(start)[1].close()

    def _find(self, address, length):
        for start, (size, block) in self.blocks.items():
            if start <= address and address + length <= start + size:
                return block, address - start
        raise Unreachable(hex(address))

    def read(self, address, length):
        """Read bytes, which may span adjacent blocks."""
        data = b""
        while len(data) < length:
            at = address + len(data)
            piece = min(length - len(data), PAGE - at % PAGE)
            block, offset = self._find(at, piece)
            data += block.map[offset:offset + piece]
        return data

    def write(self, address, data):
        """Write bytes."""
        done = 0
        while done < len(data):
            piece = min(len(data) - done, PAGE - (address + done) % PAGE)
            block, offset = self._find(address + done, piece)
            block.map[offset:offset + piece] = data[done:done + piece]
            done += piece

    def word(self, address):
        """Read an aligned 32-bit word."""
        block, offset = self._find(address, 4)
        return block.words[offset // 4]

    def set_word(self, address, value):
        """Write an aligned 32-bit word by a single access."""
        block, offset = self._find(address, 4)
        block.words[offset // 4] = value

    def write_entry(self, address, data):
        """Write an entry of 64 bytes: its last eight after the others and by a single access (ORN-RNG-2)."""
        block, offset = self._find(address, 64)
        block.map[offset:offset + 56] = data[:56]
        block.quads[offset // 8 + 7] = struct.unpack("=Q", data[56:])[0]


def pages(memory, descriptor, length):
    """Return DMA addresses and lengths of the pieces of a page descriptor (dotted fields: addr, level ...)."""
    addr, offset, shift, level = (descriptor[field] for field in ("addr", "offset", "page_shift", "level"))
    if not length:
        return []
    if not level:
        return [(addr + offset, length)]
    page = 1 << shift
    count = (offset + length + page - 1) // page
    if level == 1:
        arrays = [(addr, count)]
    else:
        leaves = memory.read(addr, 8 * ((count + 511) // 512))
        arrays = [(leaf, min(512, count - 512 * i)) for i, (leaf,) in enumerate(struct.iter_unpack("<Q", leaves))]
    found = []
    for array, entries in arrays:
        for (start,) in struct.iter_unpack("<Q", memory.read(array, 8 * entries)):
            piece = min(page - offset, length)
            found.append((start + offset, piece))
            length -= piece
            offset = 0
    return found


class Shared:
    """Memory of the proxy that the device can reach: a file to send with a DMA_MAP."""

    def __init__(self, address, size):
        self.address, self.size = address, size
        self.fd = os.memfd_create("proxy")
        os.ftruncate(self.fd, size)
        self.used = 0

    def clear(self):
        """Free all of it."""
        self.used = 0

    def take(self, size):
        """Allocate that many zeros at a page boundary; return their address."""
        start = self.used
        self.used += (size + PAGE - 1) // PAGE * PAGE
        if self.used > self.size:
            raise MemoryError("the proxy's memory for the device's rings is used up")
        os.pwrite(self.fd, bytes(self.used - start), start)
        return self.address + start
