#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Destroying RDMA objects of a device that rejects the command, does not answer it, or reports events of an object under
construction.

ib_core frees an object of the kernel whatever status a driver returns, and keeps the objects of an exiting process for ever. So
the driver declares a device dead that rejects a destroy, and calls no consumer after the destroy returned: no kernel complains,
the device recovers.
"""
import threading
import time

import harness
from proxied import c, tap
from test_bad_device import BadDevice, timeouts

MODULE = "/tmp/selftests/ornic_ktest.ko"
TRACE = "/sys/kernel/tracing"
DELAY = 50                              # milliseconds between the creation of an object and the answer to its process
DESTROYS = "QP_DESTROY CQ_DESTROY SRQ_DESTROY KEY_DESTROY PD_DESTROY".split()
OF_PROCESS = DESTROYS + "XRCD_DESTROY DM_DESTROY RULE_DESTROY RSS_DESTROY".split()

# One of each object, in this order, so that uverbs destroys them in reverse order. It executes the line that it reads from
# standard input.
OBJECTS = '''
import os, sys
import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context, DM
from pyverbs.flow import Flow, FlowAttr
from pyverbs.libibverbs_enums import *
from pyverbs.mr import MR, MW, DMMR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr, QPInitAttrEx
from pyverbs.spec import EthSpec
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wq import WQ, WQInitAttr, RwqIndTable, RwqIndTableInitAttr, RxHashConf
from pyverbs.xrcd import XRCD, XRCDInitAttr
import pyverbs.device as d

context = Context(name="ornic0")
pd = PD(context)
cq = CQ(context, 16)
srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=16, max_sge=1)))
mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_MW_BIND)
xrcd = XRCD(context, XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS, os.O_CREAT, -1))
dm = DM(context, d.AllocDmAttr(4096))
qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_recv_wr=8)))
raw = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RAW_PACKET, scq=cq, rcq=cq, cap=QPCap(max_recv_wr=8)))
rule = FlowAttr(num_of_specs=1)
rule.specs.append(EthSpec(dst_mac="02:00:00:00:00:55", dst_mac_mask="ff:ff:ff:ff:ff:ff"))
flow = Flow(raw, rule)
wqs = [WQ(context, WQInitAttr(wq_context=None, wq_pd=pd, wq_cq=cq, wq_type=e.IBV_WQT_RQ, max_wr=8, max_sge=1)) for _ in range(2)]
table = RwqIndTable(context, RwqIndTableInitAttr(log_ind_tbl_size=1, wqs_list=wqs))
hash_conf = RxHashConf(rx_hash_function=e.IBV_RX_HASH_FUNC_TOEPLITZ, rx_hash_key_len=40, rx_hash_key=list(range(40)),
                       rx_hash_fields_mask=e.IBV_RX_HASH_SRC_IPV4)
mask = e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_RX_HASH | e.IBV_QP_INIT_ATTR_IND_TABLE
rss = QP(context, QPInitAttrEx(qp_type=e.IBV_QPT_RAW_PACKET, comp_mask=mask, pd=pd, hash_conf=hash_conf, ind_table=table))
print("there", flush=True)
say = input()
if say == "window":
    mw = MW(pd, e.IBV_MW_TYPE_2)
    print("made", flush=True)
    input()
    try:
        mr.close()
    except Exception as error:
        print("refused", error, flush=True)
    input()
    mw.close()
    mr.close()
    print("closed", flush=True)
    input()
os._exit(0)
'''

# ib_core binds a queue pair to a counter when it leaves RESET.
CONNECT = '''from pyverbs.qp import QPAttr
qp.to_init(QPAttr(port_num=1))
'''

WORK_QUEUE = '''
import os
import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.wq import WQ, WQInitAttr

context = Context(name="ornic0")
pd = PD(context)
cq = CQ(context, 16)

def work_queue():
    return WQ(context, WQInitAttr(wq_context=None, wq_pd=pd, wq_cq=cq, wq_type=e.IBV_WQT_RQ, max_wr=8, max_sge=1))

'''
A_QUEUE = WORK_QUEUE + '''
wq = work_queue()
print("there", flush=True)
input()
os._exit(0)
'''
# Work queues, one after the other.
QUEUES = WORK_QUEUE + '''
print("there", flush=True)
input()
for _ in range(5):
    work_queue().close()
print("done", flush=True)
'''


class Destroy(BadDevice):
    def setUp(self):
        super().setUp()
        self.need_programs()

    def script(self, program):
        """Run a program in Python, which prints "there" when it is ready."""
        path = "/tmp/%s.py" % self.id().rsplit(".", 1)[-1]
        self.vm.run("cat > %s <<'EOF'\n%s\nEOF" % (path, program))
        process = self.spawn("exec python3 %s" % path)
        process.wait_for("there", 60)
        return process

    def rejected(self):
        """Check that the device was reset because it rejected the destroy, and that it recovers once it accepts destroys again."""
        self.proxy.wait(lambda: self.rejections and self.reasons(), "destroy the object and reset the device")
        self.proxy.lies.on_command = None
        self.assertTrue(self.said("destroy command rejected"))
        self.recovers(c.ORNIC_REASON_MALFORMED)

    def kernel_object(self, name):
        self.load()
        self.vm.run("insmod %s objects=ornic0" % MODULE)
        self.addCleanup(self.vm.run, "rmmod ornic_ktest", check=False)
        self.reject(getattr(c, "ORNIC_OP_" + name))
        self.vm.run("rmmod ornic_ktest", timeout=60)
        self.rejected()

    def process_object(self, name, status=c.ORNIC_ST_BUSY, objects=OBJECTS):
        self.load()
        program = self.script(objects)
        self.reject(getattr(c, "ORNIC_OP_" + name), status)
        program.write(b"end\n")
        self.assertEqual(program.wait(60), 0)
        self.rejected()

    def test_process_counter_destroy(self):
        """A counter goes with the last queue pair that is bound to it."""
        self.load()
        self.vm.run("rdma statistic qp set link ornic0/1 auto type on")
        self.addCleanup(self.vm.run, "rdma statistic qp set link ornic0/1 auto off", check=False)
        program = self.script(OBJECTS.replace("raw = QP", CONNECT + "raw = QP"))
        self.assertIn("cntn", self.vm.run("rdma statistic qp show link ornic0/1").out)
        self.reject(c.ORNIC_OP_COUNTER_DESTROY)
        program.write(b"end\n")
        self.assertEqual(program.wait(60), 0)
        self.rejected()

    def unload(self, name):
        """Unload the driver while the device rejects the destroy of an object of ib_core itself."""
        self.load()
        self.reject(getattr(c, "ORNIC_OP_" + name))
        self.vm.run("rmmod ornic_ib", timeout=60)
        self.proxy.wait(lambda: self.rejections and self.reasons(), "destroy the object and reset the device")
        self.proxy.lies.on_command = None
        self.vm.run("insmod /lib/modules/$(uname -r)/updates/ornic_ib.ko", timeout=60)
        self.recovers(c.ORNIC_REASON_MALFORMED)

    def test_objects_of_dead_device(self):
        """Destroying each kind of object succeeds on a dead device, and is not reported as another failure."""
        self.load()
        program = self.script(OBJECTS)
        self.vm.run("dmesg -C")
        self.proxy.put_event(0, {"type": c.ORNIC_EV_DEVICE_FATAL})
        self.proxy.wait(self.reasons, "reset the device")
        program.write(b"end\n")
        self.assertEqual(program.wait(60), 0)
        self.recovers(c.ORNIC_REASON_FATAL)
        self.assertFalse(self.said("malformed device output"))

    def test_drain_of_dead_device(self):
        """A drained queue pair of a dead device is not reported as another failure."""
        self.load()
        self.vm.run("insmod %s objects=ornic0 && dmesg -C" % MODULE)
        self.addCleanup(self.vm.run, "rmmod ornic_ktest", check=False)
        self.die()
        self.wait_said("device is dead")        # its reset waits for the module
        self.vm.run("rmmod ornic_ktest", timeout=60)
        self.recovers(c.ORNIC_REASON_FATAL)
        self.assertFalse(self.said("malformed device output"))

    def test_kernel_drain(self):
        """A consumer of the kernel frees memory after ib_drain_qp(), which cannot fail. So the driver ends the device's DMA.
        ORN-SEC-16"""
        self.load()
        self.vm.run("insmod %s objects=ornic0" % MODULE)
        self.addCleanup(self.vm.run, "rmmod ornic_ktest", check=False)
        # the first one only: the recovery needs others
        self.reject(c.ORNIC_OP_QP_MODIFY, c.ORNIC_ST_DMA_ERROR, then=lambda: setattr(self.proxy.lies, "on_command", None))
        self.vm.run("rmmod ornic_ktest", timeout=60)
        self.assertEqual(len(self.rejections), 1)
        self.assertTrue(self.said("to ERR rejected"))
        self.recovers(c.ORNIC_REASON_MALFORMED)

    def test_process_work_queue(self):
        """A work queue is a queue pair of the device. Here no other queue pair's destroy is rejected."""
        self.process_object("QP_DESTROY", objects=A_QUEUE)

    def test_process_unknown_status(self):
        """ORN-ADM-28."""
        self.process_object("CQ_DESTROY", 77)

    def test_process_aborted(self):
        """ORN-ADM-26: no device sends ABORTED. The driver ends the device's DMA before it frees the object's memory."""
        self.load()
        program = self.script(OBJECTS)
        self.reject(c.ORNIC_OP_CQ_DESTROY, c.ORNIC_ST_ABORTED)
        program.write(b"end\n")
        self.assertEqual(program.wait(60), 0)
        self.proxy.wait(lambda: self.rejections and self.reasons(), "destroy the object and reset the device")
        self.proxy.lies.on_command = None
        self.recovers(c.ORNIC_REASON_MALFORMED)

    def test_region_with_window(self):
        """ORN-MEM-67: BUSY is a normal answer if a window may be bound, and the process tries again."""
        self.load()
        program = self.script(OBJECTS)
        program.write(b"window\n")
        program.wait_for("made", 60)
        self.reject(c.ORNIC_OP_KEY_DESTROY)
        program.write(b"\n")
        program.wait_for("refused .*\\n", 60)
        self.assertIn("Errno: 16", program.text())
        self.assertEqual(len(self.rejections), 1)
        self.proxy.lies.on_command = None
        program.write(b"\n")
        program.wait_for("closed", 60)
        program.write(b"\n")
        self.assertEqual(program.wait(60), 0)
        self.works()
        self.assertEqual(self.reasons(), [])

    def trace(self):
        """Slow down all functions of the kernel by tracing, so that races between two of them become likelier."""
        self.vm.run("mountpoint -q {t} || mount -t tracefs none {t}; echo function > {t}/current_tracer".format(t=TRACE))
        self.addCleanup(self.vm.run, "echo nop > %s/current_tracer" % TRACE)

    def report_errors(self, number):
        """Report events of a queue pair for longer than its creation is delayed."""
        for _ in range(2 * DELAY):
            if self.proxy.eqs[0].guest.room():
                self.proxy.put_event(0, {"type": c.ORNIC_EV_QP_FATAL, "number": number})
            time.sleep(0.001)

    def unanswered(self, name):
        """Unload the driver while a destroy stays unanswered, until the driver gives up on the device."""
        self.load(registers={c.ORNIC_REG_CAP: timeouts(admin=20)})
        self.trace()
        opcode = getattr(c, "ORNIC_OP_" + name)
        self.proxy.lies.on_command = lambda command: command.opcode != opcode
        self.vm.run("rmmod ornic_ib", timeout=120)
        self.proxy.lies.on_command = None
        time.sleep(1)           # time for deferred work that may use freed memory
        self.vm.run("echo nop > %s/current_tracer; insmod /lib/modules/$(uname -r)/updates/ornic_ib.ko" % TRACE, timeout=60)
        self.recovers(c.ORNIC_REASON_ADMIN_TIMEOUT)

    def test_work_queue_event(self):
        """ORN-SEC-16: event of a work queue that the device has created and uverbs does not know yet."""
        def hook(command, completion):
            if command.opcode == c.ORNIC_OP_QP_CREATE and completion["status"] == c.ORNIC_ST_OK:
                threading.Thread(target=self.report_errors, args=(completion["number"],)).start()
        self.load()
        self.vm.run("insmod /tmp/selftests/ornic_slow.ko symbol=ornic_ib_create_wq at_return=1 ms=%d" % DELAY)
        self.addCleanup(self.vm.run, "rmmod ornic_slow", check=False)
        program = self.script(QUEUES)
        self.proxy.lies.on_completion = hook
        program.write(b"\n")
        self.assertEqual(program.wait(120), 0)
        self.assertIn("done", program.text())
        self.proxy.lies.on_completion = None
        self.works()

    def test_number_in_use(self):
        """ORN-SEC-16: the device returns the number of an existing object."""
        self.load()
        self.vm.run("insmod %s objects=ornic0" % MODULE)
        self.addCleanup(self.vm.run, "rmmod ornic_ktest", check=False)
        taken = [command.completion["number"] for command in self.proxy.commands if command.opcode == c.ORNIC_OP_CQ_CREATE]
        program = self.script(QUEUES.split("cq =")[0] + 'print("there", flush=True)\ninput()\nCQ(context, 16)\n')
        self.proxy.lies.on_completion = self.command(c.ORNIC_OP_CQ_CREATE, number=taken[-1])
        program.write(b"\n")
        self.assertEqual(program.wait(60), 1)
        self.proxy.lies.on_completion = None
        self.vm.run("rmmod ornic_ktest", timeout=60)            # the reset comes when the module has released its objects
        self.recovers(c.ORNIC_REASON_MALFORMED)


for verb in DESTROYS:
    setattr(Destroy, "test_kernel_" + verb.lower(), lambda self, verb=verb: self.kernel_object(verb))
for verb in OF_PROCESS:
    setattr(Destroy, "test_process_" + verb.lower(), lambda self, verb=verb: self.process_object(verb))
for verb in ("QP_DESTROY", "CQ_DESTROY", "PD_DESTROY"):
    setattr(Destroy, "test_unload_" + verb.lower(), lambda self, verb=verb: self.unload(verb))
for verb in ("QP_DESTROY", "CQ_DESTROY"):
    setattr(Destroy, "test_unanswered_" + verb.lower(), lambda self, verb=verb: self.unanswered(verb))

if __name__ == "__main__":
    tap.main()
