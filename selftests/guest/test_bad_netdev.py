#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The network interface in front of a device that rejects commands, sends late or dies while queues are replaced.

A change of the interface that fails leaves it as it was, and no kernel complains.
"""
import time

from proxied import INTERFACE, c, patient, tap
from test_bad_device import BadDevice

PEER = "10.88.0.77"                     # an address without an owner
WATCHDOG = 5                            # seconds after which the kernel reports a send queue that stands still
CREATES = "CQ_CREATE QP_CREATE QP_MODIFY".split()
MOST = {"pd": 40, "cq": 50, "qp": 60, "rules": 20}   # objects of a small device

# Create objects of each kind until there are no more.
HOG = """
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.flow import Flow, FlowAttr
from pyverbs.libibverbs_enums import IBV_QPT_RAW_PACKET, IBV_QPT_RC
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.spec import EthSpec

def all_of(make):
    made = []
    try:
        while True:
            made.append(make())
    except Exception as error:
        print(error)
    return made

context = Context(name="ornic0")
attr = context.query_device()
print("limits", attr.max_pd, attr.max_cq, attr.max_qp)
pds = all_of(lambda: PD(context))
cqs = all_of(lambda: CQ(context, 1))
raw = QP(pds[0], QPInitAttr(qp_type=IBV_QPT_RAW_PACKET, scq=cqs[0], rcq=cqs[0], cap=QPCap(max_recv_wr=8)))
rule = FlowAttr(num_of_specs=1)
rule.specs.append(EthSpec(dst_mac="02:00:00:00:00:55", dst_mac_mask="ff:ff:ff:ff:ff:ff"))
rules = all_of(lambda: Flow(raw, rule))
for last in rules[-2:]:
    last.close()
rules[-2:] = all_of(lambda: Flow(raw, rule))
qps = [raw] + all_of(lambda: QP(pds[0], QPInitAttr(qp_type=IBV_QPT_RC, scq=cqs[0], rcq=cqs[0], cap=QPCap())))
print("made", len(pds), len(cqs), len(qps), len(rules), flush=True)
input()
"""


class Replace(BadDevice):
    def interface(self, command, check=True):
        return self.vm.run("i=%s; %s" % (INTERFACE, command), check=check)

    def mtu(self):
        return int(self.interface("cat /sys/class/net/$i/mtu").out)

    def send(self, count=3):
        """Send frames that nobody answers."""
        self.interface("ip neigh replace %s lladdr 02:00:00:00:00:77 dev $i; ping -c %d -i 0.05 -W 0.1 %s"
                       % (PEER, count, PEER), check=False)

    def fails(self, command):
        """Check that the change fails and that the interface still works."""
        self.assertNotEqual(self.interface(command, check=False).rc, 0)
        self.proxy.lies.on_command = None
        self.assertTrue(self.rejections)
        self.assertEqual(self.mtu(), 1500)
        self.works()
        self.assertEqual(self.reasons(), [])

    def created(self, name):
        self.load()
        self.send()                     # NAPI has then run
        for command in ("ip link set $i mtu 4000", "ethtool -G $i rx 256"):
            self.reject(getattr(c, "ORNIC_OP_" + name), c.ORNIC_ST_LIMIT)
            self.fails(command)

    def test_late_frames(self):
        """Frames that the device sends after the failed change are accounted like others."""
        self.load()
        self.proxy.lies.on_doorbell = lambda kind, number, value: kind != c.ORNIC_DB_SQ
        self.send()
        self.reject(c.ORNIC_OP_PORT_MODIFY, c.ORNIC_ST_BAD_PARAM, self.proxy.release)
        self.fails("ip link set $i mtu 4000")

    def test_dies(self):
        """The device dies when the new queues exist; a completion of the old ones is found later."""
        self.load()
        self.proxy.lies.mute = {vector for vector in self.proxy.vectors if vector}
        self.send()
        self.reject(c.ORNIC_OP_PORT_MODIFY, c.ORNIC_ST_BAD_PARAM,
                    lambda: self.proxy.put_event(0, {"type": c.ORNIC_EV_DEVICE_FATAL}))
        self.assertNotEqual(self.interface("ip link set $i mtu 4000", check=False).rc, 0)
        self.proxy.lies.on_command = None
        self.proxy.lies.mute = set()
        self.recovers(c.ORNIC_REASON_FATAL)

    def test_slow(self):
        """The kernel does not report the send queue when the device takes longer than that to replace the queues."""
        self.load(registers={c.ORNIC_REG_CAP: patient})
        self.interface("ip neigh replace %s lladdr 02:00:00:00:00:77 dev $i" % PEER)
        self.spawn("exec ping -q -f %s > /dev/null" % PEER)
        self.proxy.lies.on_completion = lambda command, _: command.opcode != c.ORNIC_OP_PORT_MODIFY
        change = self.spawn("ip link set %s mtu 4000" % INTERFACE)
        self.proxy.wait(lambda: self.proxy.held, "exchange the queues")
        time.sleep(2 * WATCHDOG)
        self.proxy.release()
        self.assertEqual(change.wait(60), 0)
        self.assertEqual(self.mtu(), 4000)
        self.works()

    def small(self, command):
        """Reject the creation of more objects than the device says it has."""
        name = {c.ORNIC_OP_PD_CREATE: "pd", c.ORNIC_OP_CQ_CREATE: "cq", c.ORNIC_OP_QP_CREATE: "qp",
                c.ORNIC_OP_RULE_CREATE: "rules"}.get(command.opcode)
        if not name or sum(kind == command.opcode >> 8 for kind, _, _ in self.proxy.rules.objects) < MOST[name]:
            return True
        command.completion = {"cmd_id": command.fields["cmd_id"], "opcode": command.opcode, "status": c.ORNIC_ST_LIMIT, "number": 0}
        self.proxy.complete(command)
        return False

    def test_no_objects_left(self):
        """The interface can be opened and changed while a process has all protection domains, queues and rules that it can
        get."""
        self.load(on_command=self.small,
                  on_completion=self.page(c.ORNIC_ID_DEVICE, lambda _: {"max_" + name: most for name, most in MOST.items()}))
        program = self.spawn("cat > /tmp/hog.py <<'EOF'\n%s\nEOF\nexec python3 /tmp/hog.py" % HOG)
        program.wait_for("made .*\\n", 60)
        said = dict(line.split(" ", 1) for line in program.text().splitlines() if line.startswith(("limits", "made")))
        self.assertEqual(said["limits"], "%d %d %d" % (MOST["pd"] - 1, MOST["cq"] - 4, MOST["qp"] - 2))
        self.assertEqual(int(said["made"].split()[3]), MOST["rules"] - 3)
        self.assertEqual(program.text().count("Errno: 12"), 5, program.text())
        self.interface("ip link set $i down && ip link set $i up")
        self.interface("until contains 1 /sys/class/net/$i/carrier; do sleep 0.1; done")
        self.interface("ip link set $i mtu 4000 && ip link set $i mtu 1500")
        program.kill()
        self.works()
        self.assertEqual(self.reasons(), [])

    def admin_state(self):
        """Return the state that the driver gave the port last: 1 up, 0 down."""
        given = [command.input("ornic_port_modify_cmd") for command in self.proxy.commands
                 if command.opcode == c.ORNIC_OP_PORT_MODIFY and command.completion]
        return [fields["admin_up"] for fields in given if fields["mask"] & c.ORNIC_PORT_M_ADMIN][-1]

    def carrier(self):
        return self.interface("cat /sys/class/net/$i/carrier", check=False).out.strip()

    def lose_queues(self):
        """Let the queue pair fail, and reject the creation of another one."""
        self.load()
        self.assertEqual(self.admin_state(), 1)
        create = [command for command in self.proxy.commands if command.opcode == c.ORNIC_OP_QP_CREATE and
                  command.input("ornic_qp_create_cmd")["type"] == c.ORNIC_QPT_RAW][-1]
        self.vm.run("dmesg -C")
        self.reject(c.ORNIC_OP_QP_CREATE, c.ORNIC_ST_LIMIT)
        self.proxy.put_event(0, {"type": c.ORNIC_EV_QP_FATAL, "number": create.completion["number"],
                                 "syndrome": c.ORNIC_SYN_RING_INDEX})
        self.vm.run("until_said 'queues cannot be created'", timeout=60)

    def test_queues_lost(self):
        """The port is down while the interface has no queues, and up when the driver has created them."""
        self.lose_queues()
        self.assertEqual((self.admin_state(), self.carrier()), (0, "0"))
        self.proxy.lies.on_command = None
        self.interface("until contains 1 /sys/class/net/$i/carrier; do sleep 0.1; done")
        self.assertEqual(self.admin_state(), 1)
        self.works()
        self.assertEqual(self.reasons(), [])

    def test_down_without_queues(self):
        """An interface that is taken down while it has no queues leaves the port down."""
        self.lose_queues()
        self.interface("ip link set $i down")
        self.assertEqual(self.admin_state(), 0)
        self.proxy.lies.on_command = None
        self.interface("sleep 2")
        self.assertEqual(self.admin_state(), 0)
        self.works()
        self.assertEqual(self.reasons(), [])

    def test_number_in_use(self):
        """ORN-SEC-16: the device returns the number of an existing CQ; the owner of that CQ keeps its events until the reset."""
        self.load()
        taken = [command.completion["number"] for command in self.proxy.commands if command.opcode == c.ORNIC_OP_CQ_CREATE]
        since = len(self.proxy.commands)
        self.proxy.lies.on_completion = self.command(c.ORNIC_OP_CQ_CREATE, number=taken[-1])
        self.assertNotEqual(self.interface("ip link set $i mtu 4000", check=False).rc, 0)
        self.assertNotIn(c.ORNIC_OP_CQ_DESTROY, [command.opcode for command in self.proxy.commands[since:]])
        self.proxy.lies.on_completion = None
        self.recovers(c.ORNIC_REASON_MALFORMED)


for verb in CREATES:
    setattr(Replace, "test_" + verb.lower(), lambda self, verb=verb: self.created(verb))

if __name__ == "__main__":
    tap.main()
