#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The driver keeps the specification's rules for hosts, whatever programs do: a proxy between each VM and the device checks it.

The rules are in selftests/proxy/rules.py, tested by unit/test_proxy_rules: ORN-ADM-3, 15, 17, 18, ORN-CLK-4, ORN-CTL-6,
ORN-DB-8, ORN-DM-1, ORN-FEA-6, ORN-GEN-1, ORN-MEM-19, ORN-PCI-3, ORN-RNG-4, 13, 16, 30, 34, ORN-SEC-11. These tests ensure that
each rule was exercised, and check behaviour that no single message shows.
"""
import dataclasses

import harness
from proxied import DEV_INDEX, INTERFACE, LOAD, READ, UNLOAD, UP, Proxied, c, patient, tap, unpack
from interface import size              # after proxied, which knows where it is
from rings import NOTIFY

ADDRESS = "10.88.0.2"
PORT = 18515
GONE = 0xfffff0                         # a number without an object
NOISE = 0xdeadbeef
EVENTS = 1000
BATCH = 16                              # limit of events that are taken with interrupts off

# Registers 16 MiB, then waits for a line before it deregisters them.
REGION = """
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.mr import MR
from pyverbs import enums as e
mr = MR(PD(Context(name="ornic0")), 1 << 24, e.IBV_ACCESS_LOCAL_WRITE)
print("there", flush=True)
input()
mr.close()
print("gone", flush=True)
"""

# Maps the provider's device mapping a second time, then has the provider release it: device memory, or a context.
MAPPED = """
import mmap, re
from pyverbs.device import AllocDmAttr, Context, DM
def maps():
    text = open("/proc/self/maps").read()
    return set(re.findall(r"(\w+)-(\w+) .{{4}} (\w+) .*/uverbs0", text))
{before}
seen = maps()
{make}
(start, end, at), = maps() - seen
again = mmap.mmap(context.cmd_fd, int(end, 16) - int(start, 16), offset=int(at, 16))
{drop}
print("dropped", flush=True)
input()
again.close()
print("unmapped", flush=True)
input()
"""
CONTEXT = "context = Context(name=\"ornic0\")"
MAPPED_DM = MAPPED.format(before=CONTEXT, make="dm = DM(context, AllocDmAttr(4096))", drop="dm.close()")
MAPPED_PAGE = MAPPED.format(before="", make=CONTEXT, drop="context.close()")
A_PD = """
from pyverbs.device import Context
from pyverbs.pd import PD
pd = PD(Context(name="ornic0"))
"""

# Creates one object of each kind that has an owner.
OBJECTS = """
import os
import pyverbs.device as d
import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context, DM
from pyverbs.flow import Flow, FlowAttr
from pyverbs.mr import DMMR, MR, MW
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.spec import EthSpec
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.xrcd import XRCD, XRCDInitAttr
context = Context(name="ornic0")
pd = PD(context)
cq = CQ(context, 16)
srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=16, max_sge=1)))
xrcd = XRCD(context, XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS, os.O_CREAT, -1))
mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_MW_BIND)
mw = MW(pd, e.IBV_MW_TYPE_2)
dm = DM(context, d.AllocDmAttr(4096))
dmmr = DMMR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_ZERO_BASED, dm=dm, offset=0)
raw = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RAW_PACKET, scq=cq, rcq=cq, cap=QPCap(max_recv_wr=8)))
rule = FlowAttr(num_of_specs=1)
rule.specs.append(EthSpec(dst_mac="02:00:00:00:00:55", dst_mac_mask="ff:ff:ff:ff:ff:ff"))
flow = Flow(raw, rule)
print("there", flush=True)
input()
"""
# Layouts of the commands that create an object with an owner.
OWNED = {c.ORNIC_OP_PD_CREATE: "ornic_pd_create_cmd", c.ORNIC_OP_CQ_CREATE: "ornic_cq_create_cmd",
         c.ORNIC_OP_SRQ_CREATE: "ornic_srq_create_cmd", c.ORNIC_OP_XRCD_CREATE: "ornic_pd_create_cmd",
         c.ORNIC_OP_KEY_CREATE: "ornic_key_create_cmd", c.ORNIC_OP_DM_CREATE: "ornic_dm_create_cmd",
         c.ORNIC_OP_QP_CREATE: "ornic_qp_create_cmd", c.ORNIC_OP_RULE_CREATE: "ornic_rule_cmd"}


class HostRules(Proxied):
    vms = 2
    lies = {"registers": {c.ORNIC_REG_CAP: patient}}            # because some tests hold completions

    def perftest(self, command, *clauses):
        server = self.spawn("%s -d ornic0 -F" % command, self.lab.vms[1])
        self.lab.vms[1].wait_listen(PORT)
        self.vm.run("%s -d ornic0 -F %s" % (command, ADDRESS), timeout=120)
        self.assertEqual(server.wait(60), 0)
        self.assertTried(*clauses)

    def python(self, program):
        return self.spawn("exec python3 -c '%s'" % program)

    def sent(self, opcode):
        return [command for command in self.proxy.commands if command.opcode == opcode]

    def mtu(self, mtu):
        """Change the MTU; return the opcodes of the commands for it."""
        since = len(self.proxy.commands)
        self.vm.run("ip link set %s mtu %d" % (INTERFACE, mtu), timeout=60)
        return [command.opcode for command in self.proxy.commands[since:]]

    def test_mtu_keeps_queues(self):
        """If the receive buffers are large enough for the new MTU, one command suffices."""
        self.mtu(1500)
        for mtu in (1400, 1600, 1280, 1500):
            self.assertEqual(self.mtu(mtu), [c.ORNIC_OP_PORT_MODIFY], mtu)

    def test_mtu_replaces_queues(self):
        """On other changes new queues are created before the old ones are destroyed, and few commands delay frames."""
        self.addCleanup(self.mtu, 1500)
        for mtu in (9000, 1500, 4000):
            sent = self.mtu(mtu)
            last_made = max(i for i, opcode in enumerate(sent) if opcode in (c.ORNIC_OP_QP_CREATE, c.ORNIC_OP_CQ_CREATE))
            first_gone = min(i for i, opcode in enumerate(sent) if opcode == c.ORNIC_OP_QP_DESTROY)
            self.assertLess(last_made, first_gone, sent)
            rules = [i for i, opcode in enumerate(sent) if opcode in (c.ORNIC_OP_RULE_DESTROY, c.ORNIC_OP_RULE_CREATE)]
            self.assertEqual(rules, list(range(rules[0], rules[0] + 4)), sent)

    def interface_queues(self):
        """Return the commands that created the interface's queue pair and its two completion queues."""
        of_driver = {"type": c.ORNIC_QPT_RAW, "owner": 0}
        qp = [command for command in self.sent(c.ORNIC_OP_QP_CREATE)
              if of_driver.items() <= command.input("ornic_qp_create_cmd").items()][-1]
        numbers = {qp.input("ornic_qp_create_cmd")[name] for name in ("send_cq", "recv_cq")}
        return qp, {command.completion["number"]: command for command in self.sent(c.ORNIC_OP_CQ_CREATE)
                    if command.completion["number"] in numbers}

    def test_buffers_of_long_frames(self):
        """The receive buffer of a frame of any MTU consists of single pages."""
        self.addCleanup(self.mtu, 1500)
        for mtu, segments in ((9000, 3), (4000, 2), (1500, 1)):
            self.mtu(mtu)
            qp, _ = self.interface_queues()
            self.assertEqual(qp.input("ornic_qp_create_cmd")["max_recv_sge"], segments, mtu)

    def test_short_frames_are_copied(self):
        """Buffers of short frames stay in place; those of long frames go to the stack."""
        qp, _ = self.interface_queues()
        given = qp.input("ornic_qp_create_cmd")
        slots = [start + at for start, length in qp.ring for at in range(0, length, 1 << given["rq_stride"])]

        def buffers():
            return [self.proxy.memory.read(slot + size("ornic_rwqe"), 8) for slot in slots]
        for bytes_each, stay in ((56, True), (1000, False)):
            before = buffers()
            self.vm.run("ping -c 20 -i 0.05 -s %d %s" % (bytes_each, ADDRESS))
            self.assertEqual(buffers() == before, stay, bytes_each)

    def test_one_arm_per_event(self):
        """The driver arms a completion queue after its event only, and not with each poll of the other one."""
        _, queues = self.interface_queues()
        arms, events = dict.fromkeys(queues, 0), dict.fromkeys(queues, 0)

        def doorbell(kind, number, _):
            if kind == c.ORNIC_DB_CQ_ARM and number in arms:
                arms[number] += 1

        def event(_, entry):
            fields = unpack("ornic_eqe", entry)
            if fields["type"] == c.ORNIC_EV_COMPLETION and fields["number"] in events:
                events[fields["number"]] += 1
            return [entry]
        for command in queues.values():         # otherwise the device polls the records and requests no doorbells
            self.proxy.memory.set_word(command.input("ornic_cq_create_cmd")["record"] + NOTIFY, c.ORNIC_NOTIFY_ALWAYS)
        self.addCleanup(setattr, self.proxy, "lies", self.proxy.lies)
        self.proxy.lies = dataclasses.replace(self.proxy.lies, on_doorbell=doorbell, on_event=event)
        self.vm.run("ping -c 20 -i 0.05 -s 1000 " + ADDRESS)
        for number in queues:
            self.assertGreater(arms[number], 0)
            self.assertLessEqual(arms[number], events[number] + 1)

    def test_write(self):
        self.perftest("ib_write_bw -s 4096 -n 1000", "ORN-ADM-15", "ORN-GEN-1", "ORN-MEM-19", "ORN-RNG-4", "ORN-RNG-16", "ORN-SEC-11")

    def test_send_with_events(self):
        self.perftest("ib_send_lat -s 64 -n 500 -e", "ORN-RNG-13", "ORN-RNG-34")

    def test_connection_manager(self):
        self.spawn("rping -s -a %s -C 20" % ADDRESS, self.lab.vms[1])
        harness.cm_listens(self.lab.vms[1])
        self.vm.run("rping -c -a %s -C 20" % ADDRESS)

    def test_ethernet(self):
        self.vm.run("ping -c 20 -i 0.05 -s 1400 " + ADDRESS)
        self.assertTried("ORN-GEN-1", "ORN-RNG-13", "ORN-RNG-34")

    def test_no_register_is_read(self):
        """ORN-PCI-3, ORN-CLK-4: no path of data, events or commands reads a register; nor do timers."""
        before = len(self.proxy.accesses)
        self.perftest("ib_send_lat -s 64 -n 200 -e")
        self.vm.run("ping -c 5 -i 0.05 %s && ibv_devinfo -v && rdma stat && ethtool -S %s && sleep 3" % (
            ADDRESS, "$(ls /sys/class/infiniband/ornic0/device/net)"))
        self.assertEqual(self.proxy.seen(READ, since=before), [])

    def test_start_and_stop(self):
        """ORN-CTL-6: reasons, ORN-FEA-6, ORN-DB-8."""
        before = len(self.proxy.accesses)
        self.vm.run("%s && %s && %s" % (UNLOAD, LOAD, UP % 1), timeout=60)
        device = "/sys/bus/pci/devices/0000:01:00.0"
        self.vm.run("echo 1 > %s/remove && echo 1 > /sys/bus/pci/rescan && %s" % (device, UP % 1), timeout=60)
        self.vm.run("echo 1 > %s/reset && %s" % (device, UP % 1), timeout=60)
        self.assertTried("ORN-CTL-6", "ORN-FEA-6", "ORN-DB-8", "ORN-RNG-16")
        self.assertEqual(set(self.proxy.reasons(before)) - {0}, {c.ORNIC_REASON_SHUTDOWN, c.ORNIC_REASON_USER})

    def test_commands_in_flight(self):
        """ORN-ADM-17, ORN-ADM-18, ORN-ADM-3: the device holds all answers while more commands come than the queue has entries."""
        self.proxy.lies.on_completion = lambda command, completion: False
        self.addCleanup(self.proxy.release)
        asked = self.spawn("for i in $(seq 48); do ibv_devinfo > /dev/null & done; wait; echo all")
        self.proxy.wait(lambda: len(self.proxy.held) == self.proxy.asq.entries, "fill the ASQ")
        self.vm.run("sleep 1")                  # the rest wait for room
        self.proxy.release()
        asked.wait_for("all", 60)
        self.assertTried("ORN-ADM-17", "ORN-ADM-18")

    def test_slow_commands(self):
        """A command that waits for room behind slow commands is not reported as a hung task."""
        limits = "sysctl -wq kernel.hung_task_timeout_secs=%d kernel.hung_task_check_interval_secs=%d"
        self.addCleanup(self.vm.run, limits % (120, 0))
        self.vm.run(limits % (15, 1))
        self.proxy.lies.on_completion = lambda command, completion: False
        self.addCleanup(self.proxy.release)
        asked = self.spawn("for i in $(seq 48); do ibv_devinfo > /dev/null & done; wait; echo all")
        self.proxy.wait(lambda: len(self.proxy.held) == self.proxy.asq.entries, "fill the ASQ")
        self.vm.run("sleep 20")
        self.proxy.release()
        asked.wait_for("all", 60)

    def test_input_belongs_to_device(self):
        """ORN-ADM-3: the input of a command stays unchanged until its late answer, while other commands run."""
        self.proxy.lies.on_completion = lambda command, completion: command.opcode != c.ORNIC_OP_CQ_CREATE
        self.addCleanup(self.proxy.release)
        server = self.spawn("ibv_rc_pingpong -d ornic0 -g 1 -n 1")
        self.proxy.wait(lambda: self.proxy.held, "create a CQ")
        self.vm.run("for i in $(seq 12); do ibv_devinfo > /dev/null & done; wait")
        self.proxy.release()
        self.vm.wait_listen(PORT)
        server.kill()
        self.assertTried("ORN-ADM-3")

    def test_memory_stays_pinned(self):
        """ORN-MEM-20: the pages of a region are unpinned after KEY_DESTROY has completed, not before."""
        before = self.pins()
        program = self.python(REGION)
        program.wait_for("there", 60)
        self.assertGreater(self.pins(), before + 4000)
        self.proxy.lies.on_completion = lambda command, completion: command.opcode != c.ORNIC_OP_KEY_DESTROY
        self.addCleanup(self.proxy.release)
        program.write(b"\n")
        self.proxy.wait(lambda: self.proxy.held, "destroy the key")
        self.assertGreater(self.pins(), before + 4000)
        self.proxy.release()
        program.wait_for("gone", 60)
        self.assertLess(self.pins(), before + 1000)

    def pins(self):
        """Return the number of pinned pages of the VM."""
        said = self.vm.run("cat /proc/sys/vm/stat_refresh; grep nr_foll_pin /proc/vmstat").out.split()
        return int(said[1]) - int(said[3])

    def test_a_page_for_each_process(self):
        """ORN-DB-4: processes with overlapping lifetimes have different doorbell pages, none of them page 0."""
        first = len(self.proxy.commands)
        for port in range(3):
            self.spawn("exec ibv_rc_pingpong -d ornic0 -g 1 -p %d" % (PORT + port))
            self.vm.wait_listen(PORT + port)
        pages = [command.input("ornic_qp_create_cmd")["dbpage"] for command in self.proxy.commands[first:]
                 if command.opcode == c.ORNIC_OP_QP_CREATE]
        self.assertEqual(len(set(pages) - {0}), 3, pages)

    def owners(self, since):
        """Return the owners of the objects created since this command: sets of numbers by opcode."""
        found = {}
        for command in self.proxy.commands[since:]:
            if command.opcode in OWNED:
                found.setdefault(command.opcode, set()).add(command.input(OWNED[command.opcode])["owner"])
        return found

    def test_owner(self):
        """A process owns every object that it creates."""
        since = len(self.proxy.commands)
        program = self.python(OBJECTS)
        program.wait_for("there", 60)
        owners = self.owners(since)
        page = owners[c.ORNIC_OP_PD_CREATE]
        self.assertNotIn(0, page)
        self.assertEqual(owners, {opcode: page for opcode in OWNED})
        program.write(b"\n")
        self.assertEqual(program.wait(60), 0)

    def test_owner_of_member(self):
        """A process owns the memberships of its queue pairs in groups."""
        self.need_programs()
        since = len(self.proxy.commands)
        self.vm.run("/tmp/selftests/verbs_mcast ornic0 twice", timeout=60)
        owners = self.owners(since)
        self.assertNotIn(0, owners[c.ORNIC_OP_QP_CREATE])
        self.assertEqual(owners[c.ORNIC_OP_RULE_CREATE], owners[c.ORNIC_OP_QP_CREATE])

    def gids(self):
        """Return the MAC address of each valid GID, by its last 32 bits."""
        entries = {}
        for command in self.sent(c.ORNIC_OP_SET_GID):
            fields = command.input("ornic_gid_entry")
            entries[fields["index"]] = fields
        return {fields["gid"][-4:].hex(): fields["smac"].hex(":") for fields in entries.values()
                if fields["flags"] & c.ORNIC_GID_VALID}

    def test_address_of_gids(self):
        """ORN-PORT-1: after a change of the interface's address, packets of all GIDs have the new source MAC address."""
        new, default, ipv4 = "02:00:00:99:00:01", "fe990001", "0a580001"
        old = self.vm.run("cat /sys/class/net/%s/address" % INTERFACE).out.strip()
        change = "i=%s; ip link set $i address %%s; %s" % (INTERFACE, UP % 1)
        self.addCleanup(self.vm.run, change % old)
        self.assertEqual(set(self.gids().values()), {old})
        self.vm.run(change % new)
        self.proxy.wait(lambda: set(self.gids().values()) == {new} and {default, ipv4} <= set(self.gids()),
                        "set the new address of all GIDs")

    def page_of_new_process(self):
        """Return the doorbell page of a process that opens the device now."""
        self.vm.run("python3 -c '%s'" % A_PD)
        return self.sent(c.ORNIC_OP_PD_CREATE)[-1].input("ornic_pd_create_cmd")["owner"]

    def test_mapped_page_is_not_given_away(self):
        """ORN-DB-9: a page that is still mapped after its context was closed is given to no other process."""
        free = self.page_of_new_process()
        self.assertEqual(free, self.page_of_new_process())      # a free page is reused
        program = self.python(MAPPED_PAGE)
        program.wait_for("dropped", 60)
        self.assertNotEqual(free, self.page_of_new_process())
        program.kill()
        self.vm.run("until ! pgrep -x python3 -n | xargs -r -I{} grep -q uverbs /proc/{}/maps; do sleep 0.05; done")
        self.assertEqual(free, self.page_of_new_process())

    def test_mapped_block_is_kept(self):
        """ORN-DM-2, ORN-DM-1: the driver destroys a block of device memory that is freed while mapped when the mapping goes."""
        program = self.python(MAPPED_DM)
        program.wait_for("dropped", 60)
        self.assertEqual(self.sent(c.ORNIC_OP_DM_DESTROY), [])
        program.write(b"\n")
        program.wait_for("unmapped", 60)
        self.proxy.wait(lambda: self.sent(c.ORNIC_OP_DM_DESTROY), "destroy the block")
        self.assertTried("ORN-DM-1")

    def test_consumes_all(self):
        """ORN-EQ-9, ORN-SEC-17, ORN-RNG-13: the driver consumes more events than one interrupt may take, in bounded portions."""
        switches = "cat /proc/[0-9]*/status | grep -A 60 'irq/.*ornic-' | awk '/voluntary_ctxt/ { n += $2 } END { print n }'"
        before = int(self.vm.run(switches).out)
        queue = self.proxy.eqs[1].guest
        first = queue.producer
        arms = [first]

        def doorbell(kind, number, word):
            if kind == c.ORNIC_DB_EQ_ARM and number == 1:
                arms.append(word & c.ORNIC_ARM_INDEX_MASK)
        self.addCleanup(setattr, self.proxy.lies, "on_doorbell", None)
        self.proxy.lies.on_doorbell = doorbell
        self.proxy.put_event(1, *[{"type": c.ORNIC_EV_COMPLETION, "number": GONE}] * EVENTS)
        self.proxy.wait(lambda: queue.host_index() == queue.producer >= first + EVENTS and queue.arm().index == queue.producer,
                        "consume %d events" % EVENTS)
        self.assertGreater(int(self.vm.run(switches).out), before, "the interrupt's thread did not have to go on")
        self.assertEqual(max((b - a) & c.ORNIC_ARM_INDEX_MASK for a, b in zip(arms, arms[1:])), BATCH)
        self.vm.run("ping -c 1 " + ADDRESS)
        self.assertTried("ORN-RNG-13", "ORN-RNG-34")

    def scribble(self, command):
        for layout in ("cq_create", "qp_create", "srq_create", "eq_create"):
            if command.opcode != getattr(c, "ORNIC_OP_" + layout.upper()):
                continue
            for name, value in command.input("ornic_%s_cmd" % layout).items():
                if name.endswith("record") and value:
                    self.proxy.memory.set_word(value + DEV_INDEX, NOISE)
                    self.scribbled += 1

    def test_dev_index_says_nothing(self):
        """ORN-RNG-25: the driver ignores the value."""
        self.scribbled = 0
        self.addCleanup(setattr, self.proxy.lies, "on_command", None)
        self.vm.run(UNLOAD)
        self.proxy.lies.on_command = self.scribble
        self.vm.run("%s && %s" % (LOAD, UP % 1), timeout=60)
        for queue in (self.proxy.asq, self.proxy.acq):
            self.proxy.memory.set_word(queue.record + DEV_INDEX, NOISE)
        self.perftest("ib_send_lat -s 64 -n 200 -e")
        self.vm.run("ping -c 3 -i 0.05 " + ADDRESS)
        self.assertGreater(self.scribbled, 10)


if __name__ == "__main__":
    tap.main()
