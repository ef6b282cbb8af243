#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of the lab itself with running VMs; no ornic device is needed. About half a minute under TCG."""
import filecmp
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path[:0] = [os.path.join(TOP, "tools"), os.path.join(TOP, "selftests", "lib")]
sys.dont_write_bytecode = True

import tap                              # noqa: E402
from lab import Lab, LabError, state     # noqa: E402

LAB = os.path.join(TOP, "tools", "lab", "lab")
NAME = "selftest-%d" % os.getpid()    # other checkouts may test at the same time


def command(*args, **kw):
    return subprocess.run([LAB, *args], capture_output=True, text=True, env={**os.environ, "ORNIC_LAB": NAME}, **kw)


def takes_interrupts():
    """Enable Ctrl-C in a child: in the background of a shell it is ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def refused(action, word):
    """Check that action() raises a LabError that mentions word, in one line."""
    try:
        action()
    except LabError as e:
        expect(word in str(e) and "\n" not in str(e).strip(), "'%s' lacks '%s'" % (e, word))
    else:
        raise AssertionError("not refused: " + word)


class Typist:
    """A simulated user at a terminal who reads before typing on."""

    def __init__(self, terminal):
        self.terminal = terminal
        self.seen = b""
        os.set_blocking(terminal, False)

    def type(self, keys):
        os.write(self.terminal, keys)

    def until(self, word):
        """Read until word is seen; None: until the other side has closed the terminal."""
        end = time.monotonic() + 30
        while word is None or word not in self.seen:
            expect(time.monotonic() < end, "shell said %r, not %r" % (self.seen[-200:], word))
            select.select([self.terminal], [], [], 1)
            try:
                self.seen += os.read(self.terminal, 4096)
            except BlockingIOError:
                continue
            except OSError:             # EIO: closed
                expect(word is None, "shell ended, having said %r" % self.seen[-200:])
                return
        self.seen = self.seen.split(word, 1)[1]


def qemus():
    """Return the processes whose command line names this test's lab."""
    return [p for p in os.listdir("/proc") if p.isdigit() and names_lab(p)]


def names_lab(pid):
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as f:
            return b"%s-vm" % NAME.encode() in f.read()
    except OSError:
        return False


FLOOD = """
import socket
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for _ in range(1000):
    link.sendto(bytes(1000), ("10.77.0.255", 9))
"""


def setUpModule():
    """Make the snapshot, which would take longer than the tests expect of a start."""
    Lab.up(1, name=NAME, device="none").down()


class Shared(unittest.TestCase):
    """Tests that share two running VMs."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab.up(2, name=NAME, device="none")

    @classmethod
    def tearDownClass(cls):
        cls.lab.down()
        expect(not qemus() and not os.path.exists(cls.lab.state.dir), "down leaves nothing")

    def test_status_of_commands(self):
        lab = self.lab
        vm = lab.vm(0)
        expect(vm.run("true").rc == 0, "true gives 0")
        expect(vm.run("exit 7", check=False).rc == 7, "status passes")
        expect(vm.run("kill -9 $$", check=False).rc == 137, "death by signal")
        refused(lambda: vm.run("echo why >&2; false"), "why")
        start = time.monotonic()
        expect(vm.run("command sleep 60", timeout=1, check=False).rc == 124, "timeout gives 124")
        expect(time.monotonic() - start < 15, "timeout is kept")
        expect(not vm.run("pgrep -x sleep", check=False).out, "timeout kills")

    def test_output_and_input(self):
        lab = self.lab
        vm = lab.vm(0)
        both = vm.run("echo out; echo err >&2")
        expect((both.out, both.err) == ("out\n", "err\n"), "streams stay apart")
        data = os.urandom(3 << 20)
        expect(vm.run("cat", stdin=data).raw == data, "3 MiB there and back at once")
        expect(vm.run("head -c 5", stdin=data).raw == data[:5], "a command that does not read it all")
        expect(vm.run("cat").out == "", "no input is an empty input")

    def test_timer_check(self):
        """Without no_timer_check, a guest on a loaded host sometimes panics at boot: IO-APIC + timer doesn't work."""
        expect("no_timer_check" in self.lab.vm(0).run("cat /proc/cmdline").out.split(), "guests boot with no_timer_check")

    def test_clock(self):
        """Without tsc=reliable, a guest of TCG takes lost timer interrupts for a fault of the TSC, and reads the time slowly."""
        clock = self.lab.vm(0).run("cat /sys/devices/system/clocksource/clocksource0/current_clocksource").out.strip()
        expect(clock in ("tsc", "kvm-clock"), "clock is %s" % clock)

    def test_words(self):
        """A list of words runs without a shell."""
        vm = self.lab.vm(0)
        expect(vm.run(["printf", "%s|", "a b", "$HOME", "*"]).out == "a b|$HOME|*|", "words stay as they are")
        expect(vm.run(["false"], check=False).rc == 1, "status passes")
        missing = vm.run(["no-such-program"], check=False)
        expect((missing.rc, missing.err) == (127, "no-such-program: no such program\n"), "a program that is missing")
        folder = vm.run(["/tmp"], check=False)
        expect((folder.rc, folder.err) == (126, "/tmp: Permission denied\n"), "a folder is no program")

    def test_waiting(self):
        """The functions for waiting do what the programs do, without a process."""
        vm = self.lab.vm(0)
        forks = "grep -m1 processes /proc/stat"
        before, after, took = vm.run("%s; a=${EPOCHREALTIME/./}; for i in {1..20}; do sleep 0.05; done; b=${EPOCHREALTIME/./}; "
                                     "%s; echo x $((b - a))" % (forks, forks)).out.splitlines()
        expect(int(took.split()[1]) >= 1000000, "sleep takes its time")
        expect(int(after.split()[1]) - int(before.split()[1]) < 15, "sleep starts no process; others may")
        expect(vm.run("sleep", check=False).rc == 1 and vm.run("sleep 1 x", check=False).rc == 1, "errors are those of sleep")
        expect(vm.run("listens 4711", check=False).rc == 1, "nobody listens")
        for address in ("127.0.0.1", "::1"):
            server = vm.spawn(["python3", "-c", "import socket; s = socket.create_server(('%s', 4711), family=socket.AF_INET%s); "
                               "input()" % (address, "6" if ":" in address else "")])
            vm.wait_listen(4711)
            expect(vm.run("listens 471; listens 47110; listens 14711", check=False).rc == 1, "another port")
            server.end_input()
            server.wait(20)
            expect(vm.run("listens 4711", check=False).rc == 1, "not any more")
        vm.run("echo one > /tmp/one; echo two > /tmp/two; echo > /tmp/empty")
        for command, status in (("contains tw /tmp/one /tmp/two", 0), ("contains tw /tmp/two /tmp/one", 0), ("contains tw /tmp/one", 1),
                                ("contains o /tmp/none /tmp/empty", 1), ("usable ornic0", 1)):
            result = vm.run(command, check=False)
            expect((result.rc, result.err) == (status, ""), command)
        vm.run("echo lab was here > /dev/kmsg; until_said 'lab .*here'", timeout=30)
        vm.run("{ sleep 1; echo lab came later > /dev/kmsg; } & until_said 'lab came later'; wait", timeout=30)
        expect(vm.run("until_said 'lab never'", timeout=1, check=False).rc == 124, "a pattern that no line has")
        vm.run("while pgrep --runstates RSD dmesg; do sleep 0.05; done", timeout=30)    # nobody follows the log any more

    def test_background_survives(self):
        lab = self.lab
        vm = lab.vm(0)
        vm.run("sleep 300 >/dev/null 2>&1 & echo $! > /tmp/pid")
        expect(vm.run("kill $(cat /tmp/pid)", check=False).rc == 0, "the background command was still there")

    def test_spawn(self):
        lab = self.lab
        process = lab.vm(0).spawn("echo ready; read x; echo got $x; sleep 300")
        process.wait_for("ready")
        expect(process.poll() is None, "runs")
        process.write(b"fish\n")
        expect(process.wait_for(r"got (\w+)").group(1) == "fish", "answers")
        process.signal(signal.SIGTERM)
        expect(process.wait(20) == 143, "signal arrives")
        refused(lambda: lab.vm(0).spawn("echo no").wait_for("yes", 10), "without saying")

    def test_caller_gone(self):
        """A command whose caller dies is killed, and its port serves the next one."""
        lab = self.lab
        caller = subprocess.Popen([LAB, "run", "1", "echo begun; exec sleep 4321"], stdout=subprocess.PIPE,
                                  env={**os.environ, "ORNIC_LAB": NAME})
        caller.stdout.readline()
        caller.kill()
        caller.wait()
        lab.vm(1).run("for i in {1..100}; do pgrep -f 'sleep 432[1]' || exit 0; sleep 0.1; done; exit 1")
        for _ in range(10):
            expect(lab.vm(1).run("echo ok").out == "ok\n", "ports are clean")

    def test_push_pull(self):
        lab = self.lab
        with tempfile.TemporaryDirectory() as folder:
            there, back = os.path.join(folder, "there"), os.path.join(folder, "back")
            with open(there, "wb") as f:
                f.write(os.urandom(5 << 20))
            os.chmod(there, 0o750)
            lab.vm(0).push(there, "/tmp/")
            lab.vm(0).pull("/tmp/there", back)
            expect(filecmp.cmp(there, back, shallow=False), "same content")
            expect(lab.vm(0).run("stat -c %a /tmp/there").out.strip() == "750", "same mode")
            lab.vm(0).push(folder, "/tmp/tree")
            expect(sorted(lab.vm(0).run("ls /tmp/tree").out.split()) == ["back", "there"], "a folder")
            refused(lambda: lab.vm(0).pull("/nowhere", back), "/nowhere")
            refused(lambda: lab.vm(0).push(there, "/proc/nowhere"), "/proc/nowhere")

    def test_link(self):
        lab = self.lab
        lab.vm(0).run("ping -c 3 -i 0.2 -W 5 vm1")
        lab.vm(1).run("ping -6 -c 3 -i 0.2 -W 5 fd77::1")

    def test_rxe(self):
        """Both ends of a perftest, as in guest tests."""
        lab = self.lab
        for vm in lab.vms:
            vm.run("modprobe -a rdma_rxe ib_uverbs rdma_ucm && rdma link add rxe0 type rxe netdev eth0")
        server = lab.vm(0).spawn("ib_write_bw -d rxe0 -s 4096 -n 100")
        server.wait_for("Waiting for client")
        lab.vm(0).wait_listen(18515)
        report = lab.vm(1).run("ib_write_bw -d rxe0 -s 4096 -n 100 vm0", timeout=120).out
        expect("4096" in report and server.wait(30) == 0, "a result")

    def test_shell(self):
        """The interactive shell has a tty: its size, and Ctrl-C interrupts."""
        lab = self.lab
        child, terminal = pty.fork()
        if child == 0:
            os.environ.update(ORNIC_LAB=NAME, TERM="dumb")
            os.execv(LAB, [LAB, "shell", "0"])
        typist = Typist(terminal)
        try:
            typist.until(b"#")
            typist.type(b"tty; echo $((40+2))\r")
            typist.until(b"/dev/pts/")
            typist.until(b"42")
            typist.type(b"sleep 4322\r")
            lab.vm(0).run("until pgrep -f 'sleep 432[2]'; do sleep 0.05; done")
            typist.type(b"\x03")
            typist.type(b"echo st$((1))ll\r")
            typist.until(b"st1ll")
            typist.type(b"exit 5\r")
            typist.until(None)
            expect(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5, "the shell's status")
        finally:
            os.close(terminal)

    def test_command_line(self):
        expect(command("run", "0", "echo", "a  b").stdout == "a  b\n", "words stay words")
        expect(command("run", "0", "exit 3").returncode == 3, "status")
        expect("vm1" in command("status").stdout, "status")
        for args, word in ((("run", "7", "true"), "no VM '7'"), (("run", "x", "true"), "no VM 'x'"),
                           (("up", "1", "--device", "none"), "is up already"), (("log",), "no ornicd"),
                           (("push", "0", "/nowhere", "/tmp"), "/nowhere")):
            done = command(*args)
            expect(done.returncode == 1 and word in done.stderr and "Traceback" not in done.stderr,
                   "%s: %s" % (args, done.stderr))

    def test_complaints(self):
        lab = self.lab
        expect(command("oops").returncode == 0, "silent at first")
        lab.vm(1).run("echo 'BUG: a test of the lab' > /dev/kmsg")
        done = command("oops")
        expect(done.returncode == 1 and "vm1: BUG: a test" in done.stdout, "found: " + done.stdout)

    def test_snapshot(self):
        """VMs that come from one snapshot are distinct machines."""
        made = {vm.record["snapshot"] for vm in self.lab.vms}
        if made == {None}:
            self.skipTest("VMs boot: KVM, or no snapshot and no right to make one")
        expect(len(made) == 1 and os.path.isdir(made.pop()), "both come from a snapshot")
        for what in ("cat /proc/sys/kernel/random/uuid", "hostname", "cat /sys/class/net/eth0/address", "ip -br addr show dev eth0"):
            expect(len({vm.run(what).out for vm in self.lab.vms}) == 2, "they differ in " + what)
        for vm in self.lab.vms:
            expect(abs(float(vm.run("echo $EPOCHREALTIME").out) - time.time()) < 20, "it knows the time")

        expect("crng reseeded" in self.lab.vm(0).dmesg(), "its kernel knows that it has copies")

    def test_death_and_return(self):
        """Power on boots, so that the guest sees what is new."""
        lab = self.lab
        vm = lab.vm(1)
        waiting = vm.spawn("sleep 300")
        vm.kill()
        refused(lambda: waiting.wait(10), "vm1 is dead")
        refused(lambda: vm.run("true"), "vm1 is dead")
        lab.vm(0).run("true")
        lab.start(1)
        expect(vm.run("hostname").out == "vm1\n", "is back")
        expect("crng reseeded" not in vm.dmesg(), "has booted")
        refused(lambda: lab.start(1), "runs already")


class Restarted(unittest.TestCase):
    def test_elsewhere(self):
        """down() also takes down a VM that another process restarted. Until then, its link discards frames without a delay."""
        lab = Lab.up(1, name=NAME, device="none")
        lab.vm(0).run(["python3", "-c", FLOOD], timeout=30)
        for verb in ("kill", "start"):
            done = command(verb, "0")
            expect(done.returncode == 0, done.stderr)
        lab.down()
        expect(not qemus(), "nothing is left")


class Alone(unittest.TestCase):
    """Tests that start their own labs."""

    def test_configuration(self):
        refused(lambda: Lab.up(0, name="x"), "1 to 32")
        refused(lambda: Lab.up(1, name="x", net="wet"), "net")
        refused(lambda: Lab.up(1, name="x", boot="warm"), "--boot is one of: auto, cold, snapshot")
        refused(lambda: Lab.up(1, name="x", boot="snapshot", nvdimm="/nowhere"), "not with --nvdimm")
        refused(lambda: Lab.up(1, name="x", guest="none"), "no guest recipe")
        refused(lambda: Lab.up(2, name="x", guest="trixie,none"), "no guest recipe 'none'")
        refused(lambda: Lab.up(1, name="x", guest="trixie,trixie"), "--guest names more than there are VMs")
        refused(lambda: Lab.up(1, name="x", devices="9"), "0 to 8")
        refused(lambda: Lab.up(1, name="x", devices="1,x"), "0 to 8")
        refused(lambda: Lab.up(2, name="x", devices="1,0,1"), "--devices names more than there are VMs")
        refused(lambda: Lab.up(2, name="x", devices="1,0", hosts="udp"), "needs a device")
        refused(lambda: Lab.up(1, name="x" * 120, device="none"), "too long")
        refused(lambda: Lab.up(1, name="x", modules="/nowhere"), "no ornic.ko")
        refused(lambda: Lab.find("nobody"), "is not up")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "ornic.ko"), "wb") as f:
                f.write(b"\0vermagic=1.2.3 SMP\0")
            refused(lambda: Lab.up(1, name="x", modules=folder), "is for kernel 1.2.3")
        done = command("up", "1", "--device", "none", "--qemu-args", "-device nonsense")
        expect(done.returncode == 1 and "nonsense" in done.stderr and "Traceback" not in done.stderr, done.stderr)
        expect(not os.path.exists(state.State(NAME).dir), "nothing left of a lab that failed")

    def test_interrupted_up(self):
        starting = subprocess.Popen([LAB, "up", "2", "--device", "none", "--boot", "cold"], stderr=subprocess.DEVNULL,
                                    env={**os.environ, "ORNIC_LAB": NAME}, preexec_fn=takes_interrupts)
        self.addCleanup(command, "down")
        self.addCleanup(starting.kill)
        end = time.monotonic() + 20
        while len(qemus()) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        expect(len(qemus()) == 2, "two VMs were starting")
        starting.send_signal(signal.SIGINT)
        status = starting.wait(60)
        expect(status == 130, "status %d of an interrupted up" % status)
        expect(not qemus() and not os.path.exists(state.State(NAME).dir), "nothing is left")

    def test_interrupt_waits(self):
        """Ctrl-C while a process starts is delivered after the process is recorded."""
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        done = []
        try:
            with state.uninterrupted():
                signal.raise_signal(signal.SIGINT)
                done.append("inside")
            done.append("behind")
        except KeyboardInterrupt:
            done.append("interrupted")
        expect(done == ["inside", "interrupted"], done)

    def test_owner_gone(self):
        """A program that dies without down() leaves VMs; the next up, or status, clears them."""
        code = "import sys, os; sys.path.insert(0, %r); from lab import Lab; Lab.up(1, name=%r, device='none'); os._exit(1)"
        subprocess.run([sys.executable, "-c", code % (os.path.join(TOP, "tools"), NAME)])
        expect(len(qemus()) == 1, "a leftover")
        command("status")
        expect(not qemus() and not os.path.exists(state.State(NAME).dir), "it is cleared")


if __name__ == "__main__":
    tap.main()
