# SPDX-License-Identifier: GPL-2.0
"""Two VMs for the guest tests: the lab, the way a server and a client meet, and the checks after every test.

Files of the suite share a lab. selftests/run starts one for each of its lanes (ORNIC_TEST_LANE) and names it in ORNIC_TEST_LAB.
A file that is run by hand uses that lab too, or else starts one for itself, as does a file that sets OWN_LAB. ORNIC_TEST_DEV
names another RDMA device than ornic0, such as rxe0 over the virtio link, to try the tests themselves. GUEST names the guest
release, as for make. HOSTS=udp or veth gives each VM its own ornicd, joined as lab up --hosts says. ORNIC_TEST_PLACES=between omits the
tests whose server and client run within one VM.

After each test the kernels must not have complained and `rdma res` must show the same objects as at the start: a test that
leaves an object behind fails, whatever its result. On a guest whose kernel checks itself, the end of a file is a separate test:
kmemleak must not have found memory without a pointer to it. Such a guest is slow, so timeouts are longer there.
"""
import atexit
import os
import re
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
for folder in ("tools", "selftests", "selftests/lib"):
    sys.path.insert(0, os.path.join(TOP, folder))
sys.dont_write_bytecode = True

import tap                              # noqa: E402
from lab import Lab, LabError           # noqa: E402
from lab.vm import COMPLAINT            # noqa: E402

DEVICE = os.environ.get("ORNIC_TEST_DEV", "ornic0")
BUILT = os.environ.get("O", os.path.join(TOP, "build"))
GUEST = os.environ.get("GUEST", "trixie")
DEBUG = GUEST.endswith("-debug")        # a guest whose kernel checks itself
HOSTS = os.environ.get("HOSTS", "one")  # how the daemons are joined
PLACES = os.environ.get("ORNIC_TEST_PLACES", "between within").split()
SLOW = 6 if DEBUG else 1                # factor of timeouts
QUICK_RESETS = 3                        # recoveries in short succession that the driver attempts
PAYLOAD = os.path.join(BUILT, "guest", GUEST)
PROGRAMS = os.path.join(PAYLOAD, "selftests")
MEMORY = "3G"                           # one test sends a message of 1 GiB
HUGE_PAGES = 24                         # of 2 MiB, per VM
LEFT = "for o in ctx pd cq qp mr cm_id; do rdma res show $o; done; ps ax -o pid,stat,wchan,args | tail -n 6"
SETTLE = 20 * SLOW                      # seconds for objects of ended processes to go away


class Pair:
    """The two VMs and their RDMA devices; a is VM 0, b is VM 1."""

    def __init__(self, lab):
        self.lab = lab
        self.a, self.b = lab.vms[:2]
        self.device = DEVICE
        self.net = "10.77" if DEVICE.startswith("rxe") else "10.88"
        self.is_ornic = not DEVICE.startswith("rxe")
        self.prepare()

    def prepare(self):
        """Bring both VMs into the state that tests start from; repeat it after a VM was restarted."""
        for vm in self.lab.vms:
            vm.patience = SLOW
            vm.run("echo %d > /proc/sys/vm/nr_hugepages" % HUGE_PAGES)
            if not self.is_ornic:
                vm.run("rdma link show %s/1 || { modprobe -a rdma_rxe ib_uverbs rdma_ucm; "
                       "rdma link add %s type rxe netdev eth0; }" % (DEVICE, DEVICE))
            if os.path.isdir(self.programs(vm)):
                vm.push(self.programs(vm), "/tmp/selftests")
        self.netdev = self.a.run("rdma link show %s/1" % DEVICE).out.split("netdev")[1].split()[0]
        self.start_res = self.resources()
        self.heard = [complaints(vm) for vm in self.lab.vms]

    def programs(self, _vm):
        """Return the folder of the programs for a VM's guest."""
        return PROGRAMS

    def device_of(self, _vm):
        """Return the name of a VM's RDMA device."""
        return DEVICE

    def address(self, vm, family=4):
        """Return the address of a VM's RDMA interface."""
        if family == 6:
            return "fd%s::%d" % (self.net[3:], vm.number + 1)
        return "%s.0.%d" % (self.net, vm.number + 1)

    def gid_index(self, vm):
        """Return the index of the GID of the VM's IPv4 address."""
        found = vm.run("grep -l ffff: /sys/class/infiniband/%s/ports/1/gids/* | head -n 1" % self.device_of(vm)).out
        return int(found.strip().rsplit("/", 1)[1])

    def resources(self):
        """Return what `rdma res` counts for the device of each VM; None for a dead VM."""
        asked = [vm.spawn(["rdma", "res"], timeout=30, lines=False) if vm.alive() else None for vm in self.lab.vms]
        for process in filter(None, asked):
            process.wait(60)
        lines = [process and re.search(r"^\d+: %s: (.*)" % self.device_of(vm), process.text(), re.M)
                 for vm, process in zip(self.lab.vms, asked)]
        return [line and line.group(1).strip() for line in lines]

    def settled(self):
        """Return the faults of the VMs after a test, as a list of texts."""
        end = time.monotonic() + SETTLE
        while (left := self.resources()) != self.start_res and time.monotonic() < end:
            time.sleep(0.05)
        wrong = []
        for vm, now, start, heard in zip(self.lab.vms, left, self.start_res, self.heard):
            if not vm.alive():
                wrong.append("%s is dead" % vm.name)
            elif now != start:
                wrong.append("%s: rdma res shows '%s' after %d s, '%s' at the start: %s" % (
                    vm.name, now, SETTLE, start, vm.run(LEFT, check=False).out.strip()))
            for line in complaints(vm):
                if line not in heard:
                    heard.add(line)
                    wrong.append("%s: kernel said: %s" % (vm.name, line))
        if not self.lab.daemons_alive():
            wrong.append("ornicd is dead")
        self.start_res = left
        return wrong

    def leaks(self):
        """Return the reports of kmemleak in the VMs, as a list of texts."""
        found = []

        def ask(vm):
            try:
                found.extend("%s: %s" % (vm.name, record) for record in vm.kmemleak())
            except LabError as e:
                found.append(str(e))
        asking = [threading.Thread(target=ask, args=(vm,)) for vm in self.lab.vms if vm.alive()]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        return found

    def explain(self):
        """Print the last lines of kernels and daemon, as comments."""
        for vm in self.lab.vms:
            try:
                show("dmesg of " + vm.name, vm.dmesg())
            except LabError as e:
                show("console of %s (%s)" % (vm.name, e), vm.console())
        show("log of ornicd", self.lab.log())


def show(title, text):
    print("# ---- %s" % title)
    for line in text.splitlines()[-25:]:
        print("# " + line)


def complaints(vm, but=lambda text: text):
    """Return the kernel's warnings and errors on the console. but: a function that takes out of the text what is expected."""
    return {re.sub(r"^\[[^]]*\] *", "", line).strip() for line in but(vm.console()).splitlines() if COMPLAINT.search(line)}


def wait_usable(vm, device, timeout=30):
    """Wait until the device's port is up and has a GID of an IPv4 address, and processes can open the device."""
    vm.run("until usable %s && [ -e /dev/infiniband/uverbs0 ]; do sleep 0.05; done" % device, timeout)


def need_suspend(test, vm):
    """Skip the test if the VM cannot test suspend."""
    if vm.run("[ -e /sys/power/pm_test ]", check=False).rc:
        test.skipTest("the kernel of %s cannot test suspend" % GUEST)


def suspend(vm):
    """Suspend and resume all drivers of the VM. With pm_test the kernel resumes them after a second and does not sleep itself."""
    vm.run("echo 1 > /sys/module/suspend/parameters/pm_test_delay; cd /sys/power; echo devices > pm_test; echo mem > state; "
           "status=$?; echo none > pm_test; exit $status", timeout=60)


def nvdimm(lane=os.environ.get("ORNIC_TEST_LANE", "0")):
    """Return the folder with the persistent memory of the VMs that the suite shares; each lane has its own."""
    return os.path.join(BUILT, "nvdimm", lane)


def start_lab(**more):
    """Start two VMs, the caller takes them down; more: options beyond the usual ones."""
    options = {"device": "none"} if DEVICE.startswith("rxe") else {
        "ornicd": os.path.join(BUILT, "ornicd"), "modules": PAYLOAD, "provider": PAYLOAD, "hosts": HOSTS}
    options.update(name="check-%d" % os.getpid(), guest=GUEST, mem=MEMORY)
    return Lab.up(2, **{**options, **more})


OWN_LAB = None                          # options of a lab for this file alone
PAIR = Pair                             # and options of its VMs
_pair = None


def pair():
    """Return the suite's pair, or the file's own pair; start a lab if there is none."""
    global _pair
    if not _pair:
        name = os.environ.get("ORNIC_TEST_LAB")
        if name and not OWN_LAB:
            lab = Lab.find(name)
        else:
            lab = start_lab(**OWN_LAB or {"nvdimm": nvdimm()})
            atexit.register(lab.down)
        _pair = PAIR(lab)
    return _pair


class GuestTest(unittest.TestCase):
    """A test case with both VMs."""

    ornic_only = False

    @classmethod
    def setUpClass(cls):
        cls.p = pair()
        cls.a, cls.b = cls.p.a, cls.p.b
        cls.device = cls.p.device
        if cls.ornic_only and not cls.p.is_ornic:
            raise unittest.SkipTest("about ornic, not about %s" % cls.device)

    def setUp(self):
        self.used_vms = True
        self.addCleanup(self.check_settled)     # runs last, after the cleanups that tests add

    def check_settled(self):
        wrong = self.p.settled() if self.used_vms else []
        self.assertFalse(wrong, "\n".join(wrong))

    def ends(self, place):
        """Return server's VM and client's VM, for 'between' the VMs or 'within' one."""
        return (self.b, self.a) if place == "between" else (self.a, self.a)

    def addresses(self):
        """Give the interface of VM 0 its addresses again after its driver was reloaded, and wait until RDMA works there."""
        vm, dev = self.a, self.p.netdev
        vm.run("until [ -e /sys/class/net/%s ]; do sleep 0.05; done; ip link set %s up; ip addr replace %s/24 dev %s; "
               "ip -6 addr replace %s/64 dev %s nodad"
               % (dev, dev, self.p.address(vm), dev, self.p.address(vm, 6), dev), timeout=30)
        self.wait_usable()

    def wait_usable(self):
        """Wait until the RDMA port of VM 0 is up and has a GID of its IPv4 address."""
        wait_usable(self.a, self.device)

    def wait_port(self, state, vm=None):
        """Wait until the RDMA port of VM 0, or another one, has a state: ACTIVE or DOWN."""
        (vm or self.a).run("until contains %s /sys/class/infiniband/%s/ports/1/state; do sleep 0.05; done" % (state, self.device),
                           timeout=30)

    def spawn(self, vm, command, timeout):
        """Start a command that is killed at the end of the test if it still runs."""
        process = vm.spawn(command, timeout=timeout)
        self.addCleanup(self.reap, process)
        return process

    @staticmethod
    def reap(process):
        try:
            process.kill()
        except LabError:
            pass                                # its VM is gone

    def exchange(self, place, server, client, listening, timeout=60):
        """Run server and client; return the output of the client and of the server.

        {addr} in the client's command is the server's address. listening is a TCP port, or a function that waits until the
        server of the given VM is ready. Both must give status 0.
        """
        there, here = self.ends(place)
        waiting = self.spawn(there, server, timeout)
        if callable(listening):
            listening(there, waiting)
        else:
            there.wait_listen(listening, 30)
        result = here.run(client.format(addr=self.p.address(there), addr6=self.p.address(there, 6)),
                          timeout=timeout, check=False)
        if result.rc:
            self.fail("client: %s\nstatus %d%s\n%s\nserver: %s\n%s" % (
                client, result.rc, " (timed out after %d s)" % timeout if result.rc == 124 else "",
                (result.out + result.err)[-1500:], server, waiting.text()[-1500:]))
        status = waiting.wait(timeout)
        if status:
            self.fail("server: %s\nstatus %d\n%s" % (server, status, waiting.text()[-1500:]))
        return result.out, waiting.text()


def cm_listens(vm, _process=None):
    """Wait until a program listens through rdma_cm."""
    vm.run("until rdma res show cm_id | grep -q LISTEN; do sleep 0.05; done", timeout=30)


def matrix(case, places=PLACES, **tests):
    """Add one test method per place and entry: name = arguments for case.check(place, ...)."""
    for place in places:
        for name, arguments in tests.items():
            def test(self, place=place, arguments=arguments):
                self.check(place, *arguments)
            setattr(case, "test_%s_%s" % (place, name), test)


# Leaks of the kernel's core itself (6.12) after an allocation failed: the function, and the name in kmemleak's report.
KERNELS_OWN = {
    "flow_resources_alloc": "uverbs: of its two arrays it frees only the one that could not be had",
    # task_struct, signal_struct and cred of a process that opened the device. The driver takes no reference to a task.
    "copy_process": "uverbs: GET_CONTEXT as an ioctl frees a context without its reference to the task (7.2, too)",
    "prepare_exec_creds": "the same: credentials of that task",
    "setup_port": "setup_hw_port_stats(): all that it has when the driver cannot read the counters",
}


class Leaks(unittest.TestCase):
    """The last test of each file, on a guest with kmemleak."""

    def test_no_memory_lost(self):
        found = pair().leaks()
        for name, why in KERNELS_OWN.items():
            others = [text for text in found if "    %s+0x" % name not in text]
            if len(others) < len(found):
                print("# %d lost by the kernel's %s: %s" % (len(found) - len(others), name, why))
            found = others
        self.assertFalse(found, "\n".join(found))


def main():
    """Run the file's tests as TAP; explain failures with the output of kernels and daemon."""
    try:
        tap.main(last=[Leaks("test_no_memory_lost")] if DEBUG else [])
    except SystemExit as end:
        if end.code and _pair:
            _pair.explain()
        raise
