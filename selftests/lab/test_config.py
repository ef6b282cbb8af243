#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Failing environments and bad configurations, created for real: each must end in one clear line that says what to do.

A failing disk is a tiny tmpfs in a mount namespace, a network that is down an empty network namespace, a machine without apt a
PATH without it, another user nobody. No test here boots a guest.
"""
import errno
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path[:0] = [os.path.join(TOP, "tools"), os.path.join(TOP, "selftests", "lib")]
sys.dont_write_bytecode = True

import tap                                                      # noqa: E402
from lab import Lab, LabError, channel, hosts, state, toolbox    # noqa: E402

LAB = os.path.join(TOP, "tools", "lab", "lab")
DEPS = os.path.join(TOP, "tools", "build", "deps")
ORNICD = os.path.join(os.environ.get("O", os.path.join(TOP, "build")), "ornicd")
PYTHON = os.path.realpath(sys.executable)
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PROGRESS = re.compile(r"lab: .* … \d+ s.*|ornic: installing .*")
root_only = unittest.skipUnless(os.geteuid() == 0, "only root can provoke this")


class Refusal(unittest.TestCase):
    """Base: a temporary folder, and the check that a command is rejected with a good message."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="ornic-config-")
        self.addCleanup(holder.cleanup)
        self.dir = holder.name
        os.chmod(self.dir, 0o755)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def script(self, name, text):
        os.makedirs(self.path("bin"), exist_ok=True)
        path = self.path("bin", name)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)
        return path

    def refused(self, command, *words, status=1, without=None, **env):
        """Check that command fails with one line, besides progress, that has all the words and lacks the one."""
        env = {**os.environ, "ORNIC_LAB": "test-config", "ORNIC_LAB_RUN": self.path("run"), **env}
        done = subprocess.run(command, cwd=TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=env, timeout=100)
        lines = [line for line in done.stdout.splitlines() if line.strip() and not PROGRESS.fullmatch(line)]
        self.assertEqual((done.returncode, len(lines)), (status, 1), done.stdout)
        for word in words:
            self.assertIn(word, lines[0])
        if without:
            self.assertNotIn(without, lines[0])

    def on_tiny_disk(self, size, command):
        """Return the command, with the folder "tiny" as a file system of that size, visible to the command alone."""
        os.makedirs(self.path("tiny"))
        return ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o mode=755,size="$1" tmpfs "$2"; shift 2; exec "$@"',
                "sh", size, self.path("tiny"), *command]


class Cache(Refusal):
    """Artefacts of the cache."""

    def test_not_a_folder(self):
        open(self.path("file"), "w").close()
        self.refused([LAB, "build"], "cannot make the cache directory", "set ORNIC_CACHE", ORNIC_CACHE=self.path("file"))

    @root_only
    def test_no_space(self):
        self.refused(self.on_tiny_disk("10m", [LAB, "build"]), "10 MiB are free", "set ORNIC_CACHE",
                     ORNIC_CACHE=self.path("tiny"))

    @root_only
    def test_not_root(self):
        """An empty cache that another user may not write; one that the user may write, but without the right to make a root."""
        shutil.copytree(os.path.join(TOP, "tools", "lab"), self.path("lab"))
        command = [*NOBODY, PYTHON, self.path("lab", "lab"), "build"]
        if subprocess.run([*NOBODY, PYTHON, "-c", ""], capture_output=True).returncode:
            self.skipTest("nobody may not run %s" % PYTHON)
        self.refused(command, "run as root or set ORNIC_CACHE", ORNIC_CACHE=self.path("cache"))
        os.mkdir(self.path("cache"))
        os.chmod(self.path("cache"), 0o777)
        self.refused(command, "must be built once as root", "sudo tools/lab/lab build", ORNIC_CACHE=self.path("cache"))

    @root_only
    def test_no_network(self):
        self.refused(["unshare", "--net", LAB, "build"], "mirror", "cannot be reached", "check network and proxy",
                     ORNIC_CACHE=self.path("cache"))
        self.assertFalse([n for n in os.listdir(self.path("cache")) if os.path.isdir(self.path("cache", n))],
                         "a failed build leaves nothing that could be taken for a whole one")

    @root_only
    def test_no_apt(self):
        self.script("sh", 'exec /bin/sh "$@"')
        self.refused([PYTHON, LAB, "build"], "no apt-get here", "Debian 12 or 13", ORNIC_CACHE=self.path("cache"),
                     PATH=self.path("bin"))

    @root_only
    def test_unfinished(self):
        """A build removes what interrupted builds of the same kind left, whichever recipe they followed; nothing else."""
        left = ["thing-%012x%s" % (i, end) for i, end in enumerate((".new", ".gone", ".new.gone"))]
        stay = ["thing-%012x" % 9, "other-%012x.new" % 9]
        for name in left + stay:
            os.makedirs(self.path(name, "root"))
        program = "from lab import cache; print(cache.Artefact('thing', 'text', lambda path, step: None, 'a thing', 0).get())"
        env = {**os.environ, "PYTHONPATH": os.path.join(TOP, "tools"), "ORNIC_CACHE": self.dir}
        done = subprocess.run([PYTHON, "-B", "-c", program], env=env, check=True, timeout=100, capture_output=True, text=True)
        made = os.path.basename(done.stdout.splitlines()[-1])
        self.assertEqual(sorted(n for n in os.listdir(self.dir) if os.path.isdir(self.path(n))), sorted(stay + [made]))

    def test_environment(self):
        """A cached artefact does not depend on the variables of make; but a download keeps the proxy."""
        program = "from lab import debian; debian.run_logged(['env'], %r, None)" % self.path("log")
        env = {**os.environ, "PYTHONPATH": os.path.join(TOP, "tools"), "CC": "clang", "CFLAGS": "-O3",
               "MAKEFLAGS": " -- CC=clang", "http_proxy": "http://proxy.example:3128"}
        subprocess.run([PYTHON, "-B", "-c", program], env=env, check=True, timeout=100)
        with open(self.path("log")) as f:
            seen = f.read()
        self.assertIn("http_proxy=http://proxy.example:3128\n", seen)
        self.assertNotRegex(seen, "(?m)^(CC|CFLAGS|MAKEFLAGS)=")


class Packages(Refusal):
    """tools/build/deps, which make runs first. A gcc that finds no header simulates a machine without the libraries' packages."""

    COMMANDS = ("sh", "id", "mktemp", "rm", "grep", "head", "make", "python3")

    def listed(self, command, status, *words, **env):
        """Check that command ends with that status and a list that has all the words; return the list."""
        done = subprocess.run(command, cwd=TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, env={**os.environ, **env}, timeout=100)
        self.assertEqual(done.returncode, status, done.stdout)
        for word in words:
            self.assertIn(word, done.stdout)
        return done.stdout

    def without_apt(self):
        """Return the PATH of a machine that is not a Debian: it has a compiler, and few other commands."""
        self.script("gcc", 'PATH=%s exec gcc "$@"' % os.environ["PATH"])
        for name in self.COMMANDS:
            os.symlink(shutil.which(name), self.path("bin", name))
        return self.path("bin")

    def without_libraries(self):
        """Return the PATH of a Debian machine whose compiler finds no header."""
        self.script("gcc", "exit 1")
        return self.path("bin") + ":" + os.environ["PATH"]

    def as_nobody(self):
        with open(DEPS) as f:
            return [*NOBODY, self.script("deps", f.read())]

    def deps(self):
        """Return the packages that CONTRIBUTING.md names for a system, by the first words of its command."""
        with open(os.path.join(TOP, "CONTRIBUTING.md")) as f:
            text = f.read().replace("\\\n", " ")
        return {kind: set(" ".join(re.findall(r"(?m)^ +%s install (.*)$" % kind, text)).split()) for kind in ("apt-get", "dnf")}

    def test_not_debian(self):
        """Missing packages are listed by Fedora's names; most of the tree can still be built and tested."""
        path = self.without_apt()
        said = self.listed(["/bin/sh", DEPS], 3, "model: spin (needs a Debian host)", "fuzz: clang", "docs: python3-sphinx",
                           "Fedora's names of the packages: ", PATH=path)
        self.assertNotIn("compile:", said)
        self.script("dnf", "exit 1")
        self.listed(["/bin/sh", DEPS], 3, "Install as root: dnf install ", PATH=path)

    def test_not_debian_without_libraries(self):
        path = self.without_apt()
        self.script("gcc", "exit 1")
        self.listed(["/bin/sh", DEPS], 1, "compile: glibc-devel, kernel-headers, jansson-devel, libdeflate-devel\n",
                    "unit: libcmocka-devel\n", PATH=path)

    def test_manual(self):
        """CONTRIBUTING.md names the same packages for compiling and the unit tests as the list."""
        with open(DEPS) as f:
            rows = [line.split() for line in re.search(r'(?s)needs="\n(.*?)"\n', f.read()).group(1).splitlines()]
        wanted = [row for row in rows if row[0] in ("compile", "unit", "san")]
        self.assertGreater(len(wanted), 8)
        self.assertEqual(self.deps(), {"apt-get": {row[2] for row in wanted} | {"git"}, "dnf": {row[3] for row in wanted} | {"git"}})

    @root_only
    def test_not_root(self):
        """A user without root rights cannot install packages: deps fails if the compiler's packages are missing, otherwise it
        lists optional ones."""
        self.listed(self.as_nobody(), 1, "compile: libc6-dev, linux-libc-dev, libjansson-dev, libdeflate-dev\n",
                    "Install as root: apt-get install --no-install-recommends ", PATH=self.without_libraries())
        self.script("gcc", 'PATH=%s exec gcc "$@"' % os.environ["PATH"])
        self.script("clang", "exit 1")
        said = self.listed(self.as_nobody(), 3, "fuzz: libclang-rt-dev\n", PATH=self.path("bin") + ":" + os.environ["PATH"])
        self.assertNotIn("compile:", said)

    @root_only
    def test_no_network(self):
        """apt sees no installed packages and has no lists, so the download must fail."""
        for folder in ("lists/partial", "cache/archives/partial", "log"):
            os.makedirs(self.path("apt", folder))
        open(self.path("apt", "status"), "w").close()
        with open(self.path("apt.conf"), "w") as f:
            for key, value in (("State::status", "status"), ("State::lists", "lists"), ("Cache", "cache"), ("Log", "log")):
                f.write('Dir::%s "%s";\n' % (key, self.path("apt", value)))
        self.refused(["unshare", "--net", DEPS], "is not reachable", "check network and proxy", PATH=self.without_libraries(),
                     APT_CONFIG=self.path("apt.conf"))


class Qemu(Refusal):
    def up(self, *words, qemu):
        self.refused([LAB, "up", "1", "--device", "none"], *words, ORNIC_QEMU=qemu)

    def test_missing(self):
        self.up("cannot run QEMU /nowhere", qemu="/nowhere")
        self.up("ORNIC_QEMU is empty", "unset it", qemu=" ")

    def test_something_else(self):
        self.up("not a QEMU?", qemu="/bin/true")

    def test_too_old(self):
        old = self.script("qemu", "echo QEMU emulator version 7.2.22")
        self.up("QEMU 7.2 is too old", "11.1 or newer", "ORNIC_QEMU", qemu=old)

    def test_without_vfio_user(self):
        bare = self.script("qemu", '[ "$1" = --version ] && echo QEMU emulator version 11.2.0')
        self.up("without vfio-user-pci", "ORNIC_QEMU", qemu=bare)

    def test_bad_arguments(self):
        self.refused([LAB, "up", "1", "--device", "none", "--cpu", "nonsense"], "vm0 is dead: QEMU:", "nonsense")


class Up(Refusal):
    """Checks of lab up: its environment and its arguments."""

    def up(self, *words, options=(), **env):
        self.refused([LAB, "up", "1", "--device", "none", *options], *words, **env)

    def test_run_directory(self):
        self.up("cannot write the run directory /proc/nowhere", "set ORNIC_LAB_RUN", ORNIC_LAB_RUN="/proc/nowhere")
        open(self.path("file"), "w").close()
        self.up("cannot write the run directory", "set ORNIC_LAB_RUN", ORNIC_LAB_RUN=self.path("file"))

    @root_only
    def test_run_directory_full(self):
        for size in ("12k", "3m"):              # no room for the state; none for the initramfs
            with self.subTest(size):
                command = self.on_tiny_disk(size, [LAB, "up", "1", "--device", "none", "--boot", "cold"])
                self.refused(command, "No space left on device", "set ORNIC_LAB_RUN", ORNIC_LAB_RUN=self.path("tiny"))
                os.rmdir(self.path("tiny"))

    def test_nvdimm(self):
        """A folder that cannot be made is named; there is no lack of space."""
        self.up("/proc/x: No such file or directory", options=("--nvdimm", "/proc/x"), without="free some space")

    @unittest.skipUnless(os.access(ORNICD, os.X_OK), "ornicd is not built")
    def test_logs_kept(self):
        """The daemon's log outlives a lab that fails after the daemon started."""
        options = ["--modules", self.modules(), "--provider", self.dir, "--ornicd", ORNICD, "--nvdimm", "/proc/x"]
        self.refused([LAB, "up", "1", *options], "/proc/x", "(logs: %s)" % self.path("run-failed", "test-config"))
        self.assertIn("ornicd.log", os.listdir(self.path("run-failed", "test-config")))

    def test_memory(self):
        for bad in ("1Q", "lots", "100M", "0G"):
            with self.subTest(bad):
                self.up("--mem " + bad, "say for example 1G", options=("--mem", bad))

    def test_unknown_guest(self):
        self.up("no guest recipe 'none'; there are: bookworm", options=("--guest", "none"))
        self.refused([LAB, "buildroot-run", "--guest", "none", "true"], "no guest recipe 'none'")

    def modules(self):
        """Return a folder with a driver that fits the guest's kernel and is never loaded."""
        release = subprocess.run([LAB, "kernel-release"], capture_output=True, text=True, check=True).stdout.strip()
        with open(self.path("ornic.ko"), "wb") as f:
            f.write(b"\0vermagic=%s SMP\0" % release.encode())
        return self.dir

    def test_nothing_built(self):
        """No driver; then no daemon, and a daemon that does not run."""
        self.refused([LAB, "up", "1", "--modules", self.dir], "no ornic.ko in", "(make)")
        options = [LAB, "up", "1", "--modules", self.modules(), "--provider", self.dir, "--ornicd"]
        self.refused(options + ["/nowhere"], "no ornicd at /nowhere", "(make)")
        with open(self.script("broken", ""), "wb") as f:
            f.write(b"\x7fELF")
        self.refused(options + [self.path("bin", "broken")], "cannot run ornicd", "(make)")
        dies = self.script("dies", "echo ornicd: error: why; exit 3")
        self.refused(options + [dies], "ornicd ended with status 3: ornicd: error: why")

    def test_buildroot(self):
        self.refused([LAB, "buildroot-run"], "name a command")
        self.refused([LAB, "buildroot-run", "--checkout", "/nowhere", "true"], "no folder /nowhere")


class Agent(threading.Thread):
    """The guest's end of the first control port: it answers the nonce, then closes the port."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()
        self.start()

    def run(self):
        with self.socket, self.socket.accept()[0] as peer:
            peer.sendall(peer.makefile("rb").read(len(b"\nSYNC \n") + 16))


class Processes(Refusal):
    """A lab in this process whose processes are not VMs."""

    def setUp(self):
        super().setUp()
        patch = mock.patch.dict(os.environ, ORNIC_LAB_RUN=self.path("run"))
        patch.start()
        self.addCleanup(patch.stop)
        self.lab = Lab("test-config")
        self.lab._claim()           # pylint: disable=protected-access
        self.addCleanup(self.lab.down)

    def process(self):
        child = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return state.identity(child.pid)

    def machine(self):
        """Add a VM whose QEMU is a process that sleeps."""
        self.lab.state.data["vms"].append({"number": 0, "command": ["sleep", "1000"], "devices": [], "env": {}, "process": None,
                                           "attach": False, "load": False})
        self.lab.state.save()
        self.lab = Lab.find("test-config")
        return self.lab.vm(0)

    def test_down(self):
        """down() stops a process that was started last and is not in the saved state, and the saved ones."""
        saved, unsaved = self.process(), self.process()
        self.lab.state.data["daemons"] = [saved]
        self.lab.state.save()
        self.lab.state.data["daemons"].append(unsaved)
        self.lab.down()
        self.assertEqual([state.alive(saved), state.alive(unsaved)], [False, False])
        self.assertFalse(os.path.exists(self.lab.state.dir))

    def test_start_unsaved(self):
        """A VM whose new process cannot be saved does not run: no other process could stop it."""
        machine = self.machine()
        os.mkdir(self.lab.state.path("state.json.new"))
        self.assertRaises(OSError, self.lab.start, 0)
        who = machine.record["process"]
        self.assertTrue(who)
        self.assertFalse(state.alive(who))

    def test_thread_fails(self):
        """An error of the system in the thread of a VM fails the start of the lab."""
        self.machine()

        def action(machine):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", "/nowhere/" + machine.name)
        with self.assertRaisesRegex(LabError, "^vm0: /nowhere/vm0: No such file or directory$"):
            self.lab._each(action)  # pylint: disable=protected-access

    def test_agent_gone(self):
        """A guest that closes its port before it gets the command is gone."""
        agent = Agent(self.path("vm0.0.sock"))
        vm = types.SimpleNamespace(number=0, name="vm0", patience=1, path=self.path, alive=lambda: agent.join() or True,
                                   obituary=lambda: "vm0 is dead")
        with self.assertRaisesRegex(channel.Gone, "^vm0 is dead$"):
            channel.Process(vm, "true")

    def test_no_ip(self):
        with mock.patch.dict(os.environ, PATH=self.dir), self.assertRaisesRegex(LabError, "no ip here: apt-get install iproute2"):
            hosts.cable([os.getpid()] * 2)


@unittest.skipUnless(os.access(ORNICD, os.X_OK), "ornicd is not built")
class Ornicd(Refusal):
    def device(self, name, mac):
        return ["--device", "path=%s,mac=02:00:00:00:00:%s" % (self.path(name), mac)]

    def test_devices(self):
        self.refused([ORNICD], "no device", "--device", status=2)
        self.refused([ORNICD, *self.device("a", "01"), *self.device("b", "01")], "the same mac", "change one", status=2)
        self.refused([ORNICD, *self.device("a", "01"), *self.device("a", "02")], "is given to two devices", status=2)

    def test_no_directory(self):
        self.refused([ORNICD, *self.device("none/a", "01")], "there is no directory", "create it")

    def test_memory_not_shared(self):
        """A QEMU without shared memory: the device could not see the guest's writes."""
        with open(self.path("log"), "w") as log:
            daemon = subprocess.Popen([ORNICD, *self.device("a", "01")], stdout=log, stderr=log)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        self.wait_for("listening")
        argv, env = toolbox.qemu()
        device = '{"driver":"vfio-user-pci","addr":"2","socket":{"type":"unix","path":"%s"}}' % self.path("a")
        argv += ["-nodefaults", "-display", "none", "-machine", "q35", "-m", "64M", "-accel", "qtest", "-qtest", "stdio"]
        machine = subprocess.Popen(argv + ["-device", device], env={**os.environ, **env}, stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(machine.communicate)
        self.addCleanup(machine.kill)
        machine.stdin.write("outl 0xcf8 0x80001004\noutw 0xcfc 0x4\n")     # bus master enable of device 2
        machine.stdin.flush()
        self.assertIn("share=on", self.wait_for("not shared"))

    def wait_for(self, word):
        """Return the line of ornicd's log that has the word."""
        end = time.monotonic() + 15
        while time.monotonic() < end:
            with open(self.path("log")) as f:
                for line in f:
                    if word in line:
                        return line
            time.sleep(0.05)
        self.fail("ornicd did not say '%s'" % word)


if __name__ == "__main__":
    tap.main()
