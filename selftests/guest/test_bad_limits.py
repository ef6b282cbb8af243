#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Identify pages with extreme values: the driver and the consumers of the kernel reject the device or work with it."""
import harness
from proxied import LOAD, UNLOAD, c, tap
from interface import offset, pack, size, structures, unpack      # after proxied, which knows where it is
from test_bad_device import BadDevice

MODULE = "/tmp/selftests/ornic_ktest.ko"
PAGES = {c.ORNIC_ID_DEVICE: "ornic_identify_device", c.ORNIC_ID_PORT: "ornic_identify_port"}
NAME = 40                               # bytes of a counter's name
SIDE = 8                                # of the square in which the fields stand


class Limits(BadDevice):
    def setUp(self):
        super().setUp()
        self.need_programs()

    def say(self, page, values):
        """Make the device report these values in some fields of a page from now on."""
        name = PAGES[page]

        def hook(command, completion):
            if completion["status"] != c.ORNIC_ST_OK:
                return
            if command.opcode == c.ORNIC_OP_IDENTIFY:
                told = command.input("ornic_identify_cmd")["page"]
            elif command.opcode == c.ORNIC_OP_PORT_QUERY:
                told = c.ORNIC_ID_PORT
            else:
                return
            if told == page:
                at, length = command.fields["out_addr"], command.fields["out_len"]
                data = self.proxy.memory.read(at, length)
                self.proxy.memory.write(at, pack(name, {**unpack(name, data), **values})[:length])
        self.proxy.lies.on_completion = hook

    def use(self):
        """Load the drivers. If there is an RDMA device, query all its attributes and create objects of each kind."""
        self.vm.run(LOAD, check=False, timeout=60)
        self.vm.run("[ ! -e /sys/class/infiniband/ornic0 ] || { ibv_devinfo -v -d ornic0; cat /sys/class/infiniband/ornic0/ports/1/*; "
                    "rdma link; rdma res; insmod %s objects=ornic0 && rmmod ornic_ktest; }" % MODULE, check=False, timeout=60)
        self.vm.run("rmmod ornic_ktest", check=False)
        self.vm.run(UNLOAD, timeout=60)

    def extremes(self, page, value):
        """Combine the value of each field with those of its row and with those of its column of a square."""
        fields = [(field, count) for kind, field, count in structures[PAGES[page]]
                  if kind in ("__u8", "__le16", "__le32", "__le64") and not count and not field.startswith("res")]
        for pick in [lambda i, line=line: i // SIDE == line for line in range(SIDE)] + \
                    [lambda i, line=line: i % SIDE == line for line in range(SIDE)]:
            values = {field: value(field) for i, (field, _) in enumerate(fields) if pick(i)}
            if values:
                with self.subTest(fields=" ".join(values)):
                    self.say(page, values)
                    self.use()

    def largest(self, page):
        """Return a function for the largest value of a field."""
        kinds = {field: kind for kind, field, _ in structures[PAGES[page]]}
        return lambda field: (1 << int(kinds[field].strip("_ule"))) - 1

    def test_device_zero(self):
        self.extremes(c.ORNIC_ID_DEVICE, lambda field: 0)

    def test_device_largest(self):
        self.extremes(c.ORNIC_ID_DEVICE, self.largest(c.ORNIC_ID_DEVICE))

    def test_port_zero(self):
        self.extremes(c.ORNIC_ID_PORT, lambda field: 0)

    def test_port_largest(self):
        self.extremes(c.ORNIC_ID_PORT, self.largest(c.ORNIC_ID_PORT))

    def test_no_fast_registration(self):
        """rdma_rw divides by the pages of a fast registration, so a device that reports none does not offer it."""
        for values, offered in ({}, True), ({"max_fast_reg_pages": 0}, False):
            with self.subTest(values=values):
                self.say(c.ORNIC_ID_DEVICE, values)
                self.vm.run(LOAD, timeout=60)
                self.assertEqual("MEM_MGT_EXTENSIONS" in self.vm.run("ibv_devinfo -v -d ornic0").out, offered)
                self.vm.run(UNLOAD, timeout=60)

    def test_not_available(self):
        """A device without SGEs, without regions of a page or without lists of level 2 gets no RDMA device."""
        for field, value, why in (("max_send_sge", 0, "is too small for a network interface"),
                                  ("max_recv_sge", 0, "is too small for a network interface"),
                                  ("max_sge_read", 0, "reports no SGEs, RDMA not available"),
                                  ("max_region", 4095, "reports no regions of a page, RDMA not available"),
                                  ("max_list_level", 1, "reports no page lists of level 2, RDMA not available")):
            with self.subTest(field=field):
                self.vm.run("dmesg -C")
                self.say(c.ORNIC_ID_DEVICE, {field: value})
                self.vm.run(LOAD, timeout=60)
                self.vm.run("until_said 'device %s'" % why, timeout=60)
                self.vm.run("[ ! -e /sys/class/infiniband/ornic0 ]")
                self.vm.run(UNLOAD, timeout=60)

    def test_other_hash_function(self):
        """A device whose RSS has no function that the driver offers has no RSS."""
        self.say(c.ORNIC_ID_DEVICE, {"rss_hash_functions": 0xff & ~(1 << c.ORNIC_RSS_TOEPLITZ)})
        self.vm.run(LOAD, timeout=60)
        self.assertRegex(self.vm.run("ibv_devinfo -v -d ornic0").out, r"max_rwq_indirection_tables:\s+0\n")

    def test_text(self):
        """Texts of the device are shown on terminals."""
        self.say(c.ORNIC_ID_DEVICE, {"fw_version": b"1.0\033[2J".ljust(32, b"x"), "serial": b"a\nb"})
        self.vm.run(LOAD, timeout=60)
        said = self.vm.run("ethtool -i $(basename /sys/bus/pci/devices/0000:01:00.0/net/*); devlink dev info; "
                           "cat /sys/class/infiniband/ornic0/fw_ver").out
        self.assertNotIn("\033", said)
        self.assertIn("1.0?[2J", said)
        self.assertIn("serial_number a?b\n", said)

    def test_doorbell_pages(self):
        """ORN-IDN-9: the driver uses no page beyond max_dbpages, although the doorbell area has more. Page 0 is its own."""
        self.say(c.ORNIC_ID_DEVICE, {"max_dbpages": 4})
        self.vm.run(LOAD, timeout=60)
        said = self.vm.run("python3 -c '%s'" % """
from pyverbs.device import Context
contexts = []
for _ in range(6):
    try:
        contexts.append(Context(name="ornic0"))
    except Exception as error:
        print(error)
print("opened", len(contexts))
contexts.pop().close()
contexts.append(Context(name="ornic0"))
print("again", len(contexts))
""").out
        self.assertIn("opened 3", said)
        self.assertIn("again 3", said)
        self.assertEqual(said.count("Errno: 28"), 3)
        self.vm.run(UNLOAD, timeout=60)

    def test_counter_names(self):
        """The driver omits counters whose names cannot be files in ib_core's folder of counters; RDMA works without them."""
        def hook(command, completion):
            if command.opcode != c.ORNIC_OP_STAT_NAMES or completion["status"] != c.ORNIC_ST_OK:
                return
            at, length = command.fields["out_addr"], command.fields["out_len"]
            data, entry = bytearray(self.proxy.memory.read(at, length)), size("ornic_stat_name")
            for i, name in enumerate((b"lifespan", b"../x", b"", b"rx_write", b"rx_write", b"UPPER")):
                if (i + 1) * entry <= length:
                    start = i * entry + offset("ornic_stat_name.name")
                    data[start:start + NAME] = name.ljust(NAME, b"\0")
            self.proxy.memory.write(at, bytes(data))
        self.proxy.lies.on_completion = hook
        self.vm.run(LOAD, timeout=60)
        files = self.vm.run("ls /sys/class/infiniband/ornic0/ports/1/hw_counters").out.split()
        self.assertEqual(files.count("lifespan"), 1)
        self.assertEqual(files.count("rx_write"), 1)
        self.assertIn("duplicates", files)
        self.vm.run(UNLOAD, timeout=60)

    def test_device_memory(self):
        """ORN-SEC-7: device memory is limited by the size of its BAR, whatever the device reports; a length near 2^64 has no
        page."""
        self.proxy.lies.on_completion = None
        self.say(c.ORNIC_ID_DEVICE, {"dm_bytes": (1 << 64) - 1})
        self.vm.run(LOAD, timeout=60)
        said = self.vm.run("python3 -c '%s'" % """
from pyverbs.device import AllocDmAttr, Context, DM
context = Context(name="ornic0")
print(context.query_device_ex().max_dm_size)
for length in (2 ** 64 - 1, 2 ** 64 - 4095, 2 ** 40):
    try:
        DM(context, AllocDmAttr(length))
        print("made", length)
    except Exception as error:
        print(error)
""").out
        self.assertLess(int(said.split()[0]), 1 << 32)
        self.assertNotIn("made", said)
        self.assertEqual(said.count("Errno: 22"), 3)


if __name__ == "__main__":
    tap.main()
