# SPDX-License-Identifier: GPL-2.0
"""One virtual machine: QEMU's start, and operations on the VM while it runs."""
import fcntl
import io
import json
import os
import re
import shlex
import socket
import struct
import subprocess
import tarfile
import time

from . import state
from .channel import PORTS, Process
from .cpio import Archive
from .debian import last_line
from .errors import LabError
from .recipe import HERE

KVM_CREATE_VM = 0xAE01
NVDIMM_BYTES = 128 << 20
HOST_MARGIN = 30                # seconds that the host waits longer than the guest, which enforces timeouts if it can
BARS = 64 << 20                 # bytes of address space for the BARs of a device
# TCG (QEMU 11.1) emulates a `rep movsb` byte by byte; without these features kernel and libc copy in words, four times
# as fast.
CPU_TCG = "max,la57=off,erms=off,fsrm=off,fsrs=off,fzrm=off"
# no_timer_check: at boot the kernel (6.1 to 7.2) counts timer interrupts while it spins for ten ticks. On a loaded host TCG
# (QEMU 11.1) can be too late for that, and the guest panics with "IO-APIC + timer doesn't work".
# tsc=reliable: at boot the kernel compares the TSC with timer interrupts. TCG (QEMU 11.1) loses some of them, so the kernel would
# read the time from acpi_pm instead, and each read is an exit that takes QEMU's global lock.
KERNEL = ("no_timer_check tsc=reliable console=ttyS0 loglevel=5 panic=-1 mitigations=off nokaslr net.ifnames=0 random.trust_cpu=on "
          "cryptomgr.notests")
COMPLAINT = re.compile(r"BUG:|BUG \S+ \(|Oops|WARNING: |general protection|Kernel panic|hung_task|blocked for more than|"
                       r"soft lockup|rcu: INFO|Call Trace|refcount_t|KASAN|UBSAN|possible .* deadlock|"
                       r"INFO: trying to register non-static key|ODEBUG: |DMA-API: (?!preallocated|debugging enabled)|"
                       r"new suspected memory leaks|stalled pool shutdown|unregister_netdevice: waiting|NETDEV WATCHDOG")
# kmemleak leaves younger objects out of its report: their only pointer may be in a register.
KMEMLEAK_AGE = 5.5
KMEMLEAK_AGAIN = 2              # more scans if an object seems lost


def kvm_usable():
    """Return true if KVM works here. The device alone is no proof: nested in another hypervisor it may exist and fail at the
    first instruction that it has to emulate, so the processor must show virtualisation too."""
    with open("/proc/cpuinfo") as f:
        if not re.search(r"^flags\s*:.*\b(vmx|svm)\b", f.read(), re.M):
            return False
    try:
        fd = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
        try:
            os.close(fcntl.ioctl(fd, KVM_CREATE_VM, 0))
        finally:
            os.close(fd)
    except OSError:
        return False
    return True


class Result:
    """Result of a finished command: rc, out and err (text), raw (bytes of out)."""

    def __init__(self, rc, out, err):
        self.rc = rc
        self.raw = bytes(out)
        self.out = self.raw.decode(errors="replace")
        self.err = bytes(err).decode(errors="replace")


class CommandFailed(LabError):
    """A command run with check=True gave another status than 0."""

    def __init__(self, vm, cmd, result):
        tail = (result.err.strip() or result.out.strip())[-400:]
        what = "timed out" if result.rc == 124 else "gave status %d" % result.rc
        super().__init__("%s: '%s' %s: %s" % (vm.name, cmd, what, tail or "it said nothing"))
        self.result = result


class VM:
    """A VM of a lab; record is its part of the lab's state."""

    patience = 1                # factor of command timeouts, for a slow guest

    def __init__(self, run, record):
        self.state = run
        self.record = record
        self.number = record["number"]
        self.name = "vm%d" % self.number

    def path(self, name):
        return self.state.path(name)

    def file(self, suffix):
        """Return the path of a run-time file of this VM alone, such as its console."""
        return self.path(self.name + "." + suffix)

    # life
    def start(self, boot=True):
        """Start QEMU. The guest boots, with its devices, and answers some seconds later, see wait_up(); or QEMU waits for the
        state of a snapshot."""
        more = [x for device in self.record["devices"] for x in ("-device", json.dumps(device))] if boot else ["-incoming", "defer"]
        with open(self.file("qemu.log"), "wb") as log, state.uninterrupted():
            child = subprocess.Popen(self.record["command"] + more, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True, env={**os.environ, **self.record["env"]})
            self.record["process"] = state.identity(child.pid)

    def introduce(self, about, files, patience):
        """Tell a guest that comes from a snapshot who it is, and give it the files of its payload; see write_initrd()."""
        process = Process(self, "tar -xf - -C /run/lab && exec /run/lab/identity", timeout=patience, patience=patience)
        # Without a limit a guest that freezes now would stop the caller for ever.
        process.line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(patience), 0))
        about = {**about, "LAB_TIME": int(time.time())}
        with tarfile.open(fileobj=_Pipe(process), mode="w|") as tar:
            for name, data, mode in own_files(about, files):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), mode
                tar.addfile(entry, io.BytesIO(data))
        process.end_input()
        status = process.wait(patience + HOST_MARGIN)
        if status:
            raise LabError("%s: no identity, status %d: %s" % (self.name, status, process.text().strip()))

    def wait_up(self, patience):
        if Process(self, "true", patience=patience).wait(patience) != 0:
            raise LabError("%s does not run commands" % self.name)

    def alive(self):
        return state.alive(self.record["process"])

    def kill(self):
        """Simulate a power loss: kill QEMU at once."""
        if self.alive():
            os.kill(self.record["process"][0], 9)
            end = time.monotonic() + 10
            while self.alive() and time.monotonic() < end:
                time.sleep(0.01)

    def obituary(self):
        """Return one line that says why this VM does not answer. Its sockets may close a moment before its process ends."""
        end = time.monotonic() + 1
        while self.alive() and time.monotonic() < end:
            time.sleep(0.02)
        try:
            words = self.qemu_error() or last_line(self.file("console"), 0)
        except FileNotFoundError:
            words = "its lab is going down"
        return "%s %s: %s" % (self.name, "does not answer" if self.alive() else "is dead", words or "no last words")

    def qemu_error(self):
        """Return the reason with which QEMU ended; the lines after it are details."""
        with open(self.file("qemu.log"), errors="replace") as f:
            said = f.read()
        found = re.search(r"^qemu-system\S*: (?!warning:)(.+)", said, re.M)
        return "QEMU: " + found.group(1) if found else last_line(self.file("qemu.log"), 0)

    # commands
    def spawn(self, cmd, timeout=None, tty=None, lines=True, sink=None):
        """Start a bash command line, or a list of words without a shell; return a channel.Process. lines: its output comes line
        by line."""
        return Process(self, cmd, timeout, tty, lines and not tty, sink)

    def run(self, cmd, timeout=60, check=True, stdin=None, sink=None):
        """Run a bash command line to its end; return its Result, or raise CommandFailed if check and the status is not 0.

        After timeout seconds the guest kills it and the status is 124.
        """
        process = self.spawn(cmd, timeout, lines=False, sink=sink)
        if stdin:
            process.write(stdin)
        process.end_input()
        try:
            process.wait(timeout + HOST_MARGIN if timeout else None)
        except LabError as e:
            if not self.alive():
                raise
            raise LabError("%s\n%s" % (e, self.blocked())) from None
        result = Result(process.status, process.out, process.err)
        if check and result.rc:
            raise CommandFailed(self, cmd, result)
        return result

    def wait_listen(self, port, timeout=60):
        """Wait until a program in the guest listens on a TCP port."""
        self.run("until listens %d; do sleep 0.05; done" % port, timeout)

    def push(self, source, target):
        """Copy a file, or a directory's content, into the guest."""
        if os.path.isdir(source):
            quoted = shlex.quote(target)
            process = self.spawn("mkdir -p %s && tar -xf - -C %s" % (quoted, quoted))
            with tarfile.open(fileobj=_Pipe(process), mode="w|") as tar:
                tar.add(source, arcname=".")
        else:
            process = self.spawn('d=%s; [ ! -d "$d" ] || d="$d/"%s; cat > "$d" && chmod %o "$d"' % (
                shlex.quote(target), shlex.quote(os.path.basename(source)), os.stat(source).st_mode & 0o777))
            with open(source, "rb") as f:
                while (data := f.read(1 << 20)):
                    process.write(data)
        process.end_input()
        if process.wait() != 0:
            raise LabError("%s: cannot write %s: %s" % (self.name, target, process.text().strip()))

    def pull(self, source, target):
        """Copy a file out of the guest."""
        if os.path.isdir(target):
            target = os.path.join(target, os.path.basename(source))
        result = self.run("cat " + shlex.quote(source), timeout=None, check=False)
        if result.rc:
            raise LabError("%s: cannot read %s: %s" % (self.name, source, result.err.strip()))
        with open(target, "wb") as f:
            f.write(result.raw)

    # output of the kernel
    def dmesg(self):
        return self.run("dmesg").out

    def blocked(self):
        """Return the end of the kernel's log, with the tasks that are blocked, of a guest in which a command does not end."""
        process = self.spawn("echo w > /proc/sysrq-trigger; dmesg | tail -n 80", 20, lines=False)
        try:
            process.wait(20 + HOST_MARGIN)
        except LabError as e:
            return "%s; its console: %s" % (e, self.console()[-2000:])
        return process.text()

    def console(self):
        """Return all output of the guest's serial console, also when the VM is dead."""
        try:
            with open(self.file("console"), errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def complaints(self):
        """Return the lines in which the kernel complains: oopses, warnings, lockups, reports of its checkers."""
        text = self.console()
        try:
            text += self.dmesg() if self.alive() else ""
        except LabError:
            pass
        seen = {}
        for line in text.splitlines():
            if COMPLAINT.search(line):
                seen.setdefault(re.sub(r"^\[[^]]*\] *", "", line).strip())
        return list(seen)

    def kmemleak(self):
        """Return the guest kernel's memory without a pointer to it, a text with the allocation's stack for each object.

        The report excludes objects that were reported before, and allocations of the last seconds before the call.
        """
        leaks = "/sys/kernel/debug/kmemleak"
        if self.run("[ -e %s ]" % leaks, check=False).rc:
            raise LabError("%s: the kernel has no kmemleak: boot it with --guest trixie-debug" % self.name)
        # A pointer may move during a scan, and an object may be freed meanwhile: a leaked object is in the report of each scan.
        self.run("sleep %g; for i in 1 2; do echo scan > %s; done" % (KMEMLEAK_AGE, leaks), timeout=300)
        for _ in range(KMEMLEAK_AGAIN):
            if self.run("cat " + leaks, timeout=300).out:
                self.run("sleep %g; echo scan > %s" % (KMEMLEAK_AGE, leaks), timeout=300)
        text = self.run("cat %s; echo clear > %s" % (leaks, leaks), timeout=300).out
        return [record.strip() for record in re.split(r"(?m)^(?=unreferenced object)", text) if record.strip()]


class _Pipe:
    """File-like end of a command's standard input, for tarfile."""

    def __init__(self, process):
        self.write = process.write


def stages():
    """Return the lab's scripts in a guest, as a list of place, text and mode."""
    found = []
    for name, where, mode in (("init", "init", 0o755), ("setup", "lab/setup", 0o755), ("identity", "lab/identity", 0o755),
                              ("attach", "lab/attach", 0o755), ("agent.py", "lab/agent.py", 0o644),
                              ("waiting", "lab/waiting", 0o644)):
        with open(os.path.join(HERE, "guest", name), encoding="utf-8") as f:
            found.append((where, f.read(), mode))
    return found


def own_files(about, payload):
    """Return the files that tell a guest which VM it is, and its payload, as tuples: name below /run/lab, bytes, mode."""
    found = [("env", "".join("%s=%s\n" % (k, shlex.quote(str(v))) for k, v in about.items()).encode(), 0o644)]
    for source in payload:
        with open(source, "rb") as f:
            found.append(("payload/" + os.path.basename(source), f.read(), 0o755))
    return found


def write_initrd(path, image, own=()):
    """Write the image's boot archive, then the lab's files, so that a changed script or driver needs no new image. own: see
    own_files()."""
    with open(path, "wb") as out:
        with open(image.file("boot.cpio"), "rb") as f:
            out.write(f.read())
        archive = Archive(out)
        for where, text, mode in stages():
            archive.file(where, text.encode(), mode)
        for name, data, mode in own:
            archive.file("lab/" + name, data, mode)
        archive.close()


def qemu_command(qemu, config, image, run, number, accel, ports):
    """Return the argv of QEMU for VM number, with this number of slots for ornic devices; see device()."""
    cpu = config.cpu or ("host" if accel == "kvm" else CPU_TCG)
    argv = qemu + [
        "-name", "%s-vm%d" % (run.name, number), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-machine", "q35,memory-backend=mem,hpet=off",
        "-accel", "kvm" if accel == "kvm" else "tcg,thread=multi,tb-size=256", "-cpu", cpu,
        "-smp", str(config.smp), "-m", config.mem,
        # a vfio-user device maps the guest's memory: it must be a shared file, otherwise the device works on a stale copy
        "-object", "memory-backend-memfd,id=mem,size=%s,share=on" % config.mem,
        "-kernel", image.file("vmlinuz"), "-initrd", run.path("vm%d.initrd" % number),
        "-append", (KERNEL + " " + config.append).strip(),
        "-drive", "if=none,id=root,format=raw,readonly=on,file.locking=off,file=" + image.file("root.erofs"),
        "-device", "virtio-blk-pci,drive=root", "-object", "rng-random,id=rng,filename=/dev/urandom",
        "-device", "virtio-rng-pci,rng=rng", "-device", "vmgenid,guid=auto", "-serial", "file:" + run.path("vm%d.console" % number),
        "-qmp", "unix:%s,server=on,wait=off" % run.path("vm%d.qmp" % number),
        "-device", "virtio-serial-pci,max_ports=%d" % (PORTS + 1)]
    for k in range(PORTS):
        argv += ["-chardev", "socket,id=c%d,path=%s,server=on,wait=off" % (k, run.path("vm%d.%d.sock" % (number, k))),
                 "-device", "virtserialport,nr=%d,chardev=c%d,name=lab.%d" % (k + 1, k, k)]
    argv += link_arguments(config, run, number) + nvdimm_arguments(config, number)
    for k in range(ports):
        # x-speed: after a reset of the bus of a faster port Linux waits for a link-active bit that QEMU (11.1) does not set.
        # reserve: the room of a device's BARs if it is plugged in later, which firmware could not see
        argv += ["-device", "pcie-root-port,id=rp%d,chassis=%d,x-speed=5,mem-reserve=%d,pref64-reserve=%d"
                 % (k, k + 1, BARS, BARS)]
    return argv + [x.replace("{i}", str(number)).replace("{run}", run.dir) for x in config.qemu_args]


def device(k, path):
    """Return the properties of the k-th ornic device of a VM, whose vfio-user socket has this path."""
    return {"driver": "vfio-user-pci", "bus": "rp%d" % k, "id": "ornic%d" % k, "socket": {"type": "unix", "path": path}}


def nvdimm_file(folder, number):
    """Return the file that is a VM's persistent memory; it outlives the lab."""
    return os.path.join(os.path.abspath(folder), "vm%d.nvdimm" % number)


def nvdimm_arguments(config, number):
    """Return arguments for memory that survives a power loss: a file, as a DIMM without labels, in a slot of the machine."""
    if not config.nvdimm:
        return []
    path = nvdimm_file(config.nvdimm, number)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "ab") as f:
        f.truncate(NVDIMM_BYTES)
    room = int(config.mem[:-1]) << (30 if config.mem.endswith("G") else 20)
    return ["-machine", "nvdimm=on", "-m", "%s,slots=1,maxmem=%d" % (config.mem, room + (1 << 30)),
            "-object", "memory-backend-file,id=nv,share=on,size=%d,mem-path=%s" % (NVDIMM_BYTES, path),
            "-device", "nvdimm,id=nvdimm0,memdev=nv"]


def link_arguments(config, run, number):
    """Return the virtio-net link. Two VMs share one stream; more form a star with a hub in VM 0; a single VM's has no peer."""
    if config.net == "none":
        return []
    argv = []
    peers = config.vms - 1
    if number > 0:
        backend = "stream,id=n0,server=off,addr.type=unix,addr.path=%s,reconnect-ms=100" % run.path("link%d.sock" % number)
    elif peers <= 1:
        # without a peer it discards frames; the user network would, too, but its state would be part of a snapshot
        backend = "stream,id=n0,server=on,addr.type=unix,addr.path=" + run.path("link1.sock")
    else:
        for k in range(1, config.vms):
            argv += ["-netdev", "stream,id=s%d,server=on,addr.type=unix,addr.path=%s" % (k, run.path("link%d.sock" % k)),
                     "-netdev", "hubport,id=h%d,hubid=0,netdev=s%d" % (k, k)]
        backend = "hubport,id=n0,hubid=0"
    mtu = ",host_mtu=%d" % config.mtu if config.mtu != 1500 else ""
    device = "virtio-net-pci,netdev=n0,mac=52:54:00:77:00:%02x%s" % (number + 1, mtu)
    return argv + ["-netdev", backend, "-device", device]
