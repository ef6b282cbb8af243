# SPDX-License-Identifier: GPL-2.0
"""A lab: VMs that share an image, a link between them, and one or several ornicds that give each its RDMA device."""
import dataclasses
import errno
import os
import re
import threading
import time

from . import daemon, hosts, image, payload, recipe, snapshot, state, toolbox, vm
from .build import CHECKOUT
from .errors import LabError, reason

MEM_MINIMUM = 512               # MiB; half of it holds the VM's own files


@dataclasses.dataclass
class Config:
    """The configuration of a lab. Lists hold further arguments, in which {i} is the VM's or daemon's number and {run} the run
    directory.

    guest and devices may name one for each VM, with commas between; the last applies to the VMs after it, too.
    """
    vms: int = 2
    device: str = "ornic"               # or "none"
    devices: str = "1"                  # ornic devices per VM
    device_keys: str = ""               # further keys of each device; {n} is the VM's number plus 1, {k} the device's number
    hosts: str = "one"                  # number of daemons, and their connection: hosts.KINDS
    guest: str = recipe.DEFAULT         # image: a recipe under recipes/
    kernel: str = None                  # folder with vmlinuz, release, modules/RELEASE instead of the guest's kernel
    smp: int = 2                        # with one processor, a guest has no parallel races
    mem: str = None                     # the recipe's, or 1G
    net: str = "stream"                 # virtio-net link between the VMs, or "none"
    mtu: int = 1500                     # of the virtio link
    nvdimm: str = None                  # folder on a disk, with a file per VM that is its persistent memory
    modules: str = None                 # folder with ornic.ko, ornic_ib.ko
    provider: str = None                # folder with libornic-rdmavNN.so, ornic.driver
    load: bool = True                   # load the driver and give its interfaces addresses
    ornicd: str = None                  # the daemon's binary
    ornicd_args: list = dataclasses.field(default_factory=list)
    qemu_args: list = dataclasses.field(default_factory=list)
    append: str = ""                    # kernel arguments
    cpu: str = None                     # QEMU's CPU model
    accel: str = "auto"                 # kvm, tcg
    boot: str = "auto"                  # cold; snapshot: continue a guest that has booted; auto: the latter, if nothing is special
    wait: float = None                  # seconds for all VMs to answer; the recipe's, or 120

    def check(self):
        """Reject impossible values; fill in defaults of the guest's recipe."""
        if not 1 <= self.vms <= 32 or self.smp < 1:
            raise LabError("a lab has 1 to 32 VMs with at least 1 processor each")
        if not re.fullmatch(r"[0-8](,[0-8])*", str(self.devices)):
            raise LabError("--devices %s: a VM has 0 to 8; say for example 2, or 1,0 for one in VM 0 alone" % self.devices)
        for name, allowed in (("device", ("ornic", "none")), ("net", ("stream", "none")), ("hosts", hosts.KINDS),
                              ("accel", ("auto", "kvm", "tcg")), ("boot", ("auto", "cold", "snapshot"))):
            if getattr(self, name) not in allowed:
                raise LabError("--%s is one of: %s" % (name, ", ".join(allowed)))
        for option in ("guest", "devices"):
            if str(getattr(self, option)).count(",") >= self.vms:
                raise LabError("--%s names more than there are VMs" % option)
        if self.hosts != "one" and 0 in self.device_counts() and any(self.device_counts()):
            raise LabError("--hosts %s: each VM has an ornicd of its own, so it needs a device" % self.hosts)
        if self.boot == "snapshot" and self.nvdimm:
            raise LabError("--boot snapshot: not with --nvdimm, whose contents the snapshot would replace")
        usual = [recipe.load(name).get("vm", {}) for name in self.guests()]
        self.mem = self.mem or max((each.get("mem", "1G") for each in usual), key=mebibytes)
        self.wait = self.wait or max(each.get("wait", 120) for each in usual)
        if mebibytes(self.mem) < MEM_MINIMUM:
            raise LabError("--mem %s: say for example 1G or 1536M; a VM needs %dM" % (self.mem, MEM_MINIMUM))

    def guests(self):
        """Return the recipe of each VM."""
        return spread(self.guest, self.vms)

    def device_counts(self):
        """Return the number of ornic devices of each VM."""
        return [int(each) if self.device == "ornic" else 0 for each in spread(str(self.devices), self.vms)]


def spread(text, count):
    """Return the words of a list with commas, the last one repeated up to this number."""
    words = text.split(",")
    return words + words[-1:] * (count - len(words))


def mebibytes(size):
    """Convert a memory size such as 1G or 1536M; 0 if it is invalid."""
    found = re.fullmatch(r"(\d+)([MG])", size)
    return int(found.group(1)) << (10 if found.group(2) == "G" else 0) if found else 0


def default_ornicd():
    return os.environ.get("ORNICD") or os.path.join(CHECKOUT, "build", "ornicd")


class Lab:
    """A running lab. Lab.up() starts one, Lab.find() gives one that another process started.

    As a context manager it takes the lab down at the end. `owned` labs belong to the process that started them: if
    that dies without down(), the next `up` or `status` of the same user clears the leftovers.
    """

    def __init__(self, name=None):
        self.state = state.State(name or state.default_name())
        self.vms = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()

    @property
    def name(self):
        return self.state.name

    def _bind(self):
        self.vms = [vm.VM(self.state, record) for record in self.state.data.get("vms", [])]

    @classmethod
    def find(cls, name=None):
        lab = cls(name)
        if not lab.state.load():
            others = ", ".join(s.name for s in state.all_labs())
            raise LabError("lab '%s' is not up%s" % (lab.name, " (labs that are up: %s)" % others if others else
                                                     ": start it with 'lab up 2'"))
        lab._bind()
        return lab

    @classmethod
    def up(cls, vms=2, name=None, owned=True, progress=None, proxy=None, **options):
        """Start a lab and return it when every VM answers. options are the fields of Config.

        proxy, if given, is called for each device with two socket paths and must listen at the first: QEMU connects there
        instead of to ornicd, which listens at the second.
        """
        config = Config(vms=vms, **options)
        config.check()
        lab = cls(name)
        qemu, env = toolbox.qemu()
        guests = {name: image.get(name) for name in config.guests()}
        if config.kernel:
            guests = {name: image.WithKernel(guest, config.kernel) for name, guest in guests.items()}
        plan = [(guests[name], count, payload.find(config, name, guests[name].release) if count else [])
                for name, count in zip(config.guests(), config.device_counts())]
        with state.locked():
            state.sweep()
            if lab.state.load():
                raise LabError("lab '%s' is up already: 'lab down' first, or choose another --name" % lab.name)
            lab._claim()
        try:
            lab._start(config, plan, qemu, env, progress or (lambda text: None), proxy)
        except (LabError, OSError) as e:
            said = str(e) if isinstance(e, LabError) else lab._cannot_start(e)
            lab._stop()             # a daemon has written its log when it has ended
            kept = lab.state.keep_logs(lab.name)
            lab.down()
            raise LabError("%s (logs: %s)" % (said, kept) if kept else said) from None
        except BaseException:
            lab.down()
            raise
        if not owned:
            lab.state.data["owner"] = None
            lab.state.save()
        return lab

    def _claim(self):
        try:
            self.state.create()
            self.state.data = {"vms": [], "owner": state.identity(os.getpid())}
            self.state.save()
        except OSError as e:
            self.state.remove()
            raise LabError(self._cannot_start(e)) from None

    def _cannot_start(self, error):
        advice = ": free some space or set ORNIC_LAB_RUN" if error.errno == errno.ENOSPC else ""
        return "cannot start a lab in %s: %s%s" % (self.state.dir, reason(error), advice)

    def _start(self, config, plan, qemu, env, progress, proxy):
        """Start it. plan has for each VM its image, number of devices, and the files to send into it."""
        accel = config.accel
        if accel == "auto":
            accel = "kvm" if vm.kvm_usable() else "tcg"
        data = self.state.data
        data.update(config=dataclasses.asdict(config), accel=accel,
                    release=", ".join(dict.fromkeys(guest.release for guest, _, _ in plan)))
        snapshots = self._snapshots(config, plan, qemu, env, accel)
        if any(config.device_counts()):
            progress("starting ornicd")
            keys = [config.device_keys] * bool(config.device_keys) + ["nvdimm=on"] * bool(config.nvdimm)
            daemon.start(self.state, config.ornicd or default_ornicd(), hosts.plan(config.hosts, config.vms),
                         config.device_counts(), config.ornicd_args, ",".join(keys))
        own = []
        for number, (guest, devices, files) in enumerate(plan):
            about = {"LAB_ID": number, "LAB_N": config.vms, "LAB_MTU": config.mtu, "LAB_DEVICES": devices}
            own.append((about, files))
            vm.write_initrd(self.state.path("vm%d.initrd" % number), guest, vm.own_files(about, files))
            sockets = [daemon.socket_path(self.state, number, k) for k in range(devices)]
            if proxy:
                sockets = [self._between(proxy, path) for path in sockets]
            command = vm.qemu_command(qemu, config, guest, self.state, number, accel, devices)
            data["vms"].append({"number": number, "command": command, "env": env, "process": None,
                                "devices": [vm.device(k, path) for k, path in enumerate(sockets)],
                                "snapshot": snapshots[number],
                                "attach": bool(files), "load": config.load})
        self._bind()
        for machine in self.vms:
            machine.start(boot=not machine.record["snapshot"])
            self.state.save()
        progress("%s %d VM%s (%s)" % ("booting" if None in snapshots else "continuing", config.vms, "s" * (config.vms > 1), accel))
        self._each(lambda machine: self._bring_up(machine, config.wait, progress, own[machine.number]))

    @staticmethod
    def _snapshots(config, plan, qemu, env, accel):
        """Return the path of the snapshot of each VM, None for one that boots."""
        if not snapshot.wanted(config, accel):
            return [None] * config.vms
        return [snapshot.get(name, snapshot.Template(qemu, env, config, guest, number, accel, devices))
                for number, (name, (guest, devices, _)) in enumerate(zip(config.guests(), plan))]

    @staticmethod
    def _between(proxy, path):
        """Return the socket to which QEMU connects when a proxy stands between it and ornicd's socket."""
        front = path + ".proxy"
        proxy(front, path)
        return front

    def _bring_up(self, machine, patience, progress, own=None):
        """Wait until a VM answers, then attach its devices. own: arguments of vm.introduce(), if it starts from a snapshot."""
        if own and machine.record["snapshot"]:
            snapshot.load(machine, patience)
            machine.introduce(*own, patience)
        else:
            machine.wait_up(patience)
        if machine.record["attach"]:
            progress("attaching ornic in " + machine.name)
            done = machine.run("/run/lab/attach" + ("" if machine.record["load"] else " --no-load"), timeout=patience,
                               check=False)
            if done.rc:
                raise LabError("%s: %s%s" % (machine.name, done.err.strip()[-300:] or "attaching ornic took too long",
                                             daemon.error(self.state)))

    def _each(self, action):
        """Run action(vm) for all VMs at once; raise the first failure."""
        failures = []

        def one(machine):
            try:
                action(machine)
            except LabError as e:
                failures.append(e)
            except OSError as e:
                failures.append(LabError("%s: %s" % (machine.name, reason(e))))
        threads = [threading.Thread(target=one, args=(machine,), daemon=True) for machine in self.vms]
        for thread in threads:
            thread.start()
        while any(t.is_alive() for t in threads) and not failures:
            time.sleep(0.02)
        if failures:
            raise failures[0]

    def start(self, number):
        """Power a killed VM on again; its disk is new."""
        machine = self.vm(number)
        if machine.alive():
            raise LabError("%s runs already" % machine.name)
        with state.uninterrupted():
            machine.start()
            try:
                self.state.save()
            except OSError:
                machine.kill()          # no other process could stop it
                raise
        self._bring_up(machine, self.state.data["config"]["wait"], lambda text: None)

    def vm(self, number):
        """Return the VM of that number."""
        if not str(number).isdigit() or int(number) >= len(self.vms):
            raise LabError("no VM '%s': lab '%s' has %s" % (number, self.name,
                                                          ", ".join(str(m.number) for m in self.vms) or "none"))
        return self.vms[int(number)]

    def log_paths(self):
        """Return the paths of the daemons' logs."""
        return daemon.log_paths(self.state)

    def log(self):
        """Return the daemons' output."""
        said = []
        for path in self.log_paths():
            with open(path, errors="replace") as f:
                said.append(f.read())
        return "".join(said)

    def daemons_alive(self):
        return all(state.alive(who) for who in self.state.data.get("daemons", []))

    def daemon_pids(self):
        return [pid for pid, _ in self.state.data.get("daemons", [])]

    def down(self):
        """Stop the VMs, then the daemons, and remove all files of the lab."""
        with state.locked():
            self._stop()
            self.state.remove()

    def _stop(self):
        known = [self.state.data]           # the process that started last may not be saved
        if self.state.load():               # another process may have restarted a VM meanwhile
            known.append(self.state.data)
        state.stop([record["process"] for data in known for record in data.get("vms", [])])
        state.stop([who for data in known for who in data.get("daemons", [])])
