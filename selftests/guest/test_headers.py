#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Header fields of a connection in a capture that follow from the driver's attributes: the UDP source port and the path MTU."""
import contextlib
import os

import badnet
import harness
from loop import Loop

from checker import pcapng, roce        # pylint: disable=wrong-import-order

harness.OWN_LAB = {"ornicd_args": badnet.ORNICD_ARGS}

LABEL_BITS, PORT_BITS = 20, 14
NUMBERS = 0x11, 0x400, 0x7fffff, 0x800001, 0xabcdef, 0xfffffe   # numbers of queue pairs, which need not exist
LABELS = 1, 0x3fff, 0x4000, 0x12345, 0xfc000, 0xfffff


def fold(value, bits):
    """Return the XOR of the pieces of a number; each piece has this number of bits."""
    result = 0
    while value:
        result ^= value % (1 << bits)
        value >>= bits
    return result


def port_of(label, qpn, other):
    """Return the UDP source port of a connection by the rule that RoCE drivers of Linux share: 14 bits from the flow label or,
    if that is 0, from the product of both queue pair numbers. It is the same for both directions."""
    return 0xc000 + fold(label or fold(qpn * other, LABEL_BITS), PORT_BITS)


class Headers(badnet.Captured):
    ornic_only = True

    def setUp(self):
        super().setUp()
        self.name = self.control.call("device.list")[0]["name"]

    @contextlib.contextmanager
    def seen(self):
        """Yield a list that receives the frames which the device of VM 0 sends meanwhile."""
        path = self.p.lab.state.path("headers.pcapng")
        frames = []
        number = self.control.call("capture.start", spec="%s,device=%s" % (path, self.name))["id"]
        try:
            yield frames
            self.control.call("capture.stop", id=number)
            self.wait_written(number)
            found = [roce.parse(packet.data) for packet in pcapng.read(path)[0] if packet.inbound]
        finally:
            os.remove(path)
        frames += [frame for frame in found if frame]

    def requests(self, frames, qpn):
        return [frame for frame in frames if frame.dqpn == qpn and not frame.is_answer]

    def test_port_of_numbers(self):
        """Without a flow label the port follows from the two numbers; answers have the same source port."""
        loop = Loop(self, self.a)
        a, b = loop.qpns
        with self.seen() as frames:
            loop.do("write 3000 1")
            loop.do("read 3000 1")
        self.assertGreaterEqual(len(frames), 3 + 1 + 1 + 3)
        self.assertEqual({frame.dqpn for frame in frames}, {a, b})
        self.assertEqual({frame.sport for frame in frames}, {port_of(0, a, b)})
        ports = set()
        for number in NUMBERS:
            with self.seen() as frames:
                loop.do("aim %d" % number)
                loop.ask("write 1 1")           # ends when the previous one has ended
            sent = {frame.sport for frame in self.requests(frames, number)}
            self.assertEqual(sent, {port_of(0, a, number)}, "%#x to %#x" % (a, number))
            ports |= sent
        self.assertGreater(len(ports), len(NUMBERS) // 2)

    def test_port_of_label(self):
        """A flow label alone determines the port."""
        for label in LABELS:
            loop = Loop(self, self.a, options="0 0 1024 %d" % label)
            with self.seen() as frames:
                loop.do("write 3000 1")
            self.assertGreaterEqual(len(frames), 4)
            self.assertEqual({frame.sport for frame in frames}, {port_of(label, 0, 0)}, "%#x" % label)

    def test_path_mtu(self):
        """Messages are segmented by the path MTU, for each of its five values, without loss."""
        self.addCleanup(self.a.run, "ip link set %s mtu 1500" % self.p.netdev)
        self.a.run("ip link set %s mtu 9000" % self.p.netdev)
        for mtu in (256, 512, 1024, 2048, 4096):
            loop = Loop(self, self.a, options="0 0 %d" % mtu)
            for length in (mtu - 1, mtu, mtu + 1, 4 * mtu + 3):
                sizes = [min(mtu, length - at) for at in range(0, length, mtu)]
                with self.seen() as frames:
                    for operation in ("write", "send", "read"):
                        loop.do("%s %d 1" % (operation, length))
                sent = [frame.size for frame in self.requests(frames, loop.qpns[1])]
                self.assertEqual(sent, sizes * 2 + [0], "%d bytes by WRITE and SEND, path MTU %d" % (length, mtu))
                answers = [frame.size for frame in frames if frame.dqpn == loop.qpns[0] and frame.size]
                self.assertEqual(answers, sizes, "%d bytes by READ, path MTU %d" % (length, mtu))
            loop.end()


if __name__ == "__main__":
    harness.main()
