# SPDX-License-Identifier: GPL-2.0
"""A VM whose device stands behind a proxy, what runs in it while the device does wrong, and what must hold afterwards.

After each case: the VM lives, no kernel complains, the drivers can be unloaded within UNLOAD_LIMIT although whatever the workload used
may still be there, and with a device that does no wrong they work again.
"""
import os
import sys
import threading

HERE = os.path.dirname(os.path.realpath(__file__))
for folder in ("guest", "proxy"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import harness                              # noqa: E402
from cases import Fault                     # noqa: E402
from interface import c                     # noqa: E402
from lab import Lab, LabError               # noqa: E402
from proxied import INTERFACE, LOAD, UNLOAD, UP     # noqa: E402
from proxy import Lies, Proxy               # noqa: E402

ADMIN_TIMEOUT = 30 * min(harness.SLOW, 3)   # of the device, in units of 100 ms
UNLOAD_LIMIT = 60 * harness.SLOW            # seconds; unloading sends some commands, each of which may time out
PATIENCE = 40 * harness.SLOW                # seconds for a workload, which is killed then
ALONE = "ibv_rc_pingpong -d ornic0 -g 1 -n 20"
WORKS = "{ timeout 30 %s >/dev/null 2>&1 & } ; until ss -Hltn 'sport = :18515' | grep -q .; do sleep 0.1; done; %s 10.88.0.1" % (ALONE, ALONE)
STORAGE = "/sys/kernel/config/nvmet"
# Each line is tried whatever the others do.
WORKLOADS = {
    "bind": "%s; %s; timeout %d sh -c '%s'; timeout 10 ibv_devinfo -v" % (UNLOAD, LOAD, 4 * harness.SLOW, UP.replace("'", '"') % 1),
    "netdev": """i=%s
        ip link set $i mtu 1400; ip link set $i mtu 9000; ip link set $i mtu 1500; ip link set $i promisc on; ip link set $i promisc off
        ip link set $i down; ip link set $i address 02:00:00:00:00:77; ip link set $i up
        ip addr replace 10.88.0.1/24 dev $i; ip maddr add 01:00:5e:00:00:77 dev $i
        ethtool -S $i; ethtool $i; ping -c 3 -i 0.2 -W 1 10.88.0.77""" % INTERFACE,
    "verbs": """timeout 5 ibv_devinfo -v
        { timeout 8 %s >/dev/null & }; sleep 1; timeout 8 %s 10.88.0.1
        timeout 25 /tmp/selftests/verbs_storm_churn -s 1 -n 40 ornic0 all
        timeout 5 rdma statistic; timeout 5 rdma res show qp -dd; timeout 5 rdma res show mr -dd""" % (ALONE, ALONE),
    "nvme": """modprobe -a nvmet nvmet-rdma nvme-rdma null_blk
        echo 5 > /sys/module/nvme_core/parameters/admin_timeout; echo 5 > /sys/module/nvme_core/parameters/io_timeout
        mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
        cd {0}; mkdir subsystems/f subsystems/f/namespaces/1 ports/1; echo 1 > subsystems/f/attr_allow_any_host
        echo -n /dev/nullb0 > subsystems/f/namespaces/1/device_path; echo 1 > subsystems/f/namespaces/1/enable
        cd ports/1; echo -n rdma > addr_trtype; echo -n ipv4 > addr_adrfam; echo -n 10.88.0.1 > addr_traddr; echo -n 4420 > addr_trsvcid
        ln -s {0}/subsystems/f subsystems/f
        echo transport=rdma,traddr=10.88.0.1,trsvcid=4420,nqn=f,ctrl_loss_tmo=3,reconnect_delay=1 > /dev/nvme-fabrics
        n=0; until [ -b /dev/nvme0n1 ] || [ $n = 30 ]; do sleep 0.1; n=$((n+1)); done
        [ ! -b /dev/nvme0n1 ] || for w in "if=/dev/nvme0n1 of=/dev/null iflag=direct" "if=/dev/zero of=/dev/nvme0n1 oflag=direct"; do
        timeout -k 1 10 dd $w bs=64k count=32; done""".format(STORAGE),
}
CLEAN = """for d in /sys/class/nvme/nvme*; do [ ! -e $d ] || echo 1 > $d/delete_controller; done
    cd {0} 2>/dev/null && {{ rm -f ports/1/subsystems/f; rmdir ports/1 subsystems/f/namespaces/1 subsystems/f; }}
    true""".format(STORAGE)


class Finding(Exception):
    """Something that must hold does not."""


class Rig:
    """Starts the VM; a new one after each finding."""

    def __init__(self, name):
        self.name, self.lab = name, None

    def start(self):
        proxies = []
        self.lab = Lab.up(1, name=self.name, guest=harness.GUEST, ornicd=os.path.join(harness.BUILT, "ornicd"),
                          modules=harness.PAYLOAD, provider=harness.PAYLOAD,
                          proxy=lambda front, path: proxies.append(Proxy(front, path)))
        self.proxy, self.vm = proxies[0], self.lab.vms[0]
        self.vm.patience = harness.SLOW
        self.vm.push(harness.PROGRAMS, "/tmp/selftests")
        self.heard = harness.complaints(self.vm)

    def stop(self):
        lab, self.lab = self.lab, None
        if lab:
            lab.down()

    def shell(self, script, what, timeout):
        """Runs a script that must end; returns whether its status was 0."""
        try:
            done = self.vm.run(script, timeout=timeout, check=False)
        except LabError as e:
            raise Finding("%s: %s" % (what, e)) from None
        if done.rc == 124:
            raise Finding("%s takes more than %d s" % (what, timeout))
        return done

    def truth(self):
        """The device does no wrong."""
        self.proxy.release()
        self.proxy.lies = Lies(registers={c.ORNIC_REG_CAP: self.cap})

    @staticmethod
    def cap(value):
        return value & ~(c.ORNIC_CAP_TIMEOUT_MASK << c.ORNIC_CAP_ADMIN_TIMEOUT_SHIFT) | \
            ADMIN_TIMEOUT << c.ORNIC_CAP_ADMIN_TIMEOUT_SHIFT

    def work(self, workload):
        """Runs a workload, whatever comes of it."""
        process = self.vm.spawn("{\n%s\n} >/dev/null 2>&1" % WORKLOADS[workload], timeout=PATIENCE)
        process.wait(PATIENCE + UNLOAD_LIMIT)

    def again(self):
        """The drivers go, and come back to a device that does no wrong."""
        self.shell("%s >/dev/null 2>&1" % UNLOAD, "unloading the drivers", UNLOAD_LIMIT)
        self.truth()
        self.shell(CLEAN, "removing the NVMe target", UNLOAD_LIMIT)
        done = self.shell("{ %s; } && { %s; } && { %s; } && { %s; } 2>&1" % (UNLOAD, LOAD, UP % 1, WORKS), "the drivers after that",
                          UNLOAD_LIMIT)
        if done.rc:
            raise Finding("the drivers do not work after that: %s" % (done.out + done.err).strip()[-300:])

    def sent(self, workload):
        """How often the workload sends each command, of a device that does no wrong."""
        since = len(self.proxy.commands)
        self.work(workload)
        found = {}
        for command in self.proxy.commands[since:]:
            found[command.opcode] = found.get(command.opcode, 0) + 1
        self.judge()
        return found

    def judge(self):
        if not self.vm.alive():
            raise Finding("the VM is dead")
        said = harness.complaints(self.vm) - self.heard
        if said:
            raise Finding("kernel: " + "; ".join(sorted(said)[:4]))
        if not self.lab.daemons_alive():
            raise Finding("ornicd is dead")
        if self.proxy.broken:
            raise Finding("the proxy failed: %r" % self.proxy.broken)

    def run(self, name):
        """One case; returns how often the device did wrong. Raises Finding."""
        fault = Fault(self.proxy, name)
        held = fault.held_for()
        timer = threading.Timer(5 + held * ADMIN_TIMEOUT / 10, self.proxy.release) if held else None
        if timer:
            timer.start()
        try:
            self.work(fault.workload)
        except LabError as e:
            raise Finding("the workload does not end: %s" % e) from None
        finally:
            if timer:
                timer.cancel()
        self.judge()
        self.again()
        self.judge()
        return fault.hits

    def explain(self):
        """What the kernel said last."""
        try:
            return self.vm.dmesg()[-20000:]
        except LabError:
            return self.vm.console()[-20000:]
