# SPDX-License-Identifier: GPL-2.0
"""Two RC queue pairs of one process, connected to each other, that execute commands from standard input.

Usage: rc_loop.py DEVICE GID_INDEX [TRAFFIC_CLASS [SL [MTU [FLOW_LABEL]]]]. It prints "qps A B"; then it reads commands, one a
line:
  write LENGTH COUNT  queue pair A executes COUNT operations of LENGTH bytes and compares the data; also send, read
  modify STATE        ibv_modify_qp of both
  again               both are reset and connected again, whatever their state
  aim NUMBER          A is reset and connected to another number, where it writes a byte
  query               prints the path of A as reported by the device
  make KIND           one more qp, mr or srq is created and destroyed
  event               waits for the next asynchronous event
  ring NUMBER         stores a doorbell for the send queue of some other queue pair
Each is answered with a line that begins with "done" or "failed". It ends with its input.
"""
import ctypes
import glob
import os
import select
import sys

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs import enums as e
from pyverbs.libibverbs_enums import ibv_qp_attr_mask
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError
from pyverbs.qp import QPAttr, QPCap, QPInitAttr, QP
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE = 1 << 16
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
OPCODES = {"write": e.IBV_WR_RDMA_WRITE, "read": e.IBV_WR_RDMA_READ, "send": e.IBV_WR_SEND}
AV = ibv_qp_attr_mask.IBV_QP_AV
MTUS = {256: e.IBV_MTU_256, 512: e.IBV_MTU_512, 1024: e.IBV_MTU_1024, 2048: e.IBV_MTU_2048, 4096: e.IBV_MTU_4096}
PATIENCE = 20                   # seconds until an event


class Loop:
    def __init__(self, device, gid_index, traffic_class=0, sl=0, mtu=1024, flow_label=0):
        self.ctx = Context(name=device)
        self.events = select.poll()
        self.events.register(next(int(os.path.basename(fd)) for fd in glob.glob("/proc/self/fd/*")
                                  if "infinibandevent" in os.readlink(fd)), select.POLLIN)
        self.pd = PD(self.ctx)
        self.cq = CQ(self.ctx, 100)
        self.mr = MR(self.pd, SIZE, ACCESS)
        self.init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(max_send_wr=16, max_recv_wr=16))
        self.qps = [QP(self.pd, self.init), QP(self.pd, self.init)]
        self.mtu = MTUS[mtu]
        self.gid = self.ctx.query_gid(1, gid_index)
        self.path = AHAttr(gr=GlobalRoute(dgid=self.gid, sgid_index=gid_index, traffic_class=traffic_class, hop_limit=64,
                                          flow_label=flow_label), is_global=1, port_num=1, sl=sl)
        self.connect_both()

    def connect_both(self):
        for qp, other in zip(self.qps, self.qps[::-1]):
            self.connect(qp, other.qp_num)

    def connect(self, qp, number):
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ACCESS
        attr.dest_qp_num = number
        attr.path_mtu = self.mtu
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
        attr.min_rnr_timer = 12
        attr.timeout = 14
        attr.retry_cnt = attr.rnr_retry = 7
        attr.ah_attr = self.path
        qp.to_init(attr)
        for state, mask in ((e.IBV_QPS_RTR, e.IBV_QP_STATE | AV | e.IBV_QP_PATH_MTU | e.IBV_QP_DEST_QPN | e.IBV_QP_RQ_PSN |
                             e.IBV_QP_MAX_DEST_RD_ATOMIC | e.IBV_QP_MIN_RNR_TIMER),
                            (e.IBV_QPS_RTS, e.IBV_QP_STATE | e.IBV_QP_TIMEOUT | e.IBV_QP_RETRY_CNT | e.IBV_QP_RNR_RETRY |
                             e.IBV_QP_SQ_PSN | e.IBV_QP_MAX_QP_RD_ATOMIC)):
            attr.qp_state = state
            qp.modify(attr, mask)

    def completions(self, count):
        while count:
            number, entries = self.cq.poll(count)
            count -= number
            for entry in entries:
                if entry.status:
                    return "failed status %d" % entry.status
        return "done"

    def post(self, what, length):
        work = SendWR(opcode=OPCODES[what], num_sge=1, sg=[SGE(self.mr.buf, length, self.mr.lkey)])
        if what == "send":
            self.qps[1].post_recv(RecvWR(num_sge=1, sg=[SGE(self.mr.buf + SIZE // 2, SIZE // 2, self.mr.lkey)]))
        else:
            work.set_wr_rdma(self.mr.rkey, self.mr.buf + SIZE // 2)
        self.qps[0].post_send(work)

    def operate(self, what, length, count):
        for _ in range(count):
            self.mr.write(os.urandom(length), length, SIZE // 2 if what == "read" else 0)
            self.post(what, length)
            said = self.completions(2 if what == "send" else 1)
            if said != "done":
                return said
            if self.mr.read(length, 0) != self.mr.read(length, SIZE // 2):
                return "failed data"
        return "done"

    def make(self, kind):
        """Create one more object of the process, and destroy it."""
        if kind == "qp":
            QP(self.pd, self.init).close()
        elif kind == "mr":
            MR(self.pd, SIZE, ACCESS).close()
        else:
            SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=16))).close()
        return "done"

    def again(self):
        self.modify(e.IBV_QPS_RESET)
        self.connect_both()
        return "done"

    def aim(self, number):
        self.modify(e.IBV_QPS_RESET)
        self.connect(self.qps[0], number)
        self.post("write", 1)
        return "done"

    def event(self):
        if not self.events.poll(PATIENCE * 1000):
            return "failed no event"
        event = self.ctx.get_async_event()
        event.ack()
        return "done " + event_name(event.event_type)

    def query(self):
        attr, _ = self.qps[0].query(AV | e.IBV_QP_STATE)
        route = attr.ah_attr
        return "done state %d traffic_class %d sgid_index %d sl %d" % (attr.qp_state, route.traffic_class, route.sgid_index, route.sl)

    def modify(self, state):
        attr = QPAttr(port_num=1)
        attr.qp_state = state
        for qp in self.qps:
            qp.modify(attr, e.IBV_QP_STATE)
        return "done"

    def ring(self, number):
        """Store a doorbell for a queue of another process, on this process's page."""
        with open("/proc/self/maps") as maps:
            page = next(line for line in maps if "uverbs" in line)
        ctypes.c_uint64.from_address(int(page.split("-")[0], 16)).value = number
        return "done"

    def obey(self, words):
        if words[0] == "query":
            return self.query()
        if words[0] == "ring":
            return self.ring(int(words[1]))
        if words[0] == "make":
            return self.make(words[1])
        if words[0] in ("again", "event"):
            return getattr(self, words[0])()
        if words[0] in ("aim", "modify"):
            return getattr(self, words[0])(int(words[1]))
        return self.operate(words[0], int(words[1]), int(words[2]))


def event_name(number):
    return next(name for name in dir(e) if name.startswith("IBV_EVENT_") and getattr(e, name) == number)


def main():
    loop = Loop(sys.argv[1], *map(int, sys.argv[2:]))
    print("qps", *(qp.qp_num for qp in loop.qps), flush=True)
    for line in sys.stdin:
        try:
            print(loop.obey(line.split()), flush=True)
        except PyverbsError as err:
            print("failed", err, flush=True)


main()
