# SPDX-License-Identifier: GPL-2.0
"""Snapshots: the state of a guest that has booted, in the cache. A VM that starts from one answers after about a second; under
emulation a boot takes ten seconds of a processor.

A snapshot is taken before a guest has anything of its own: no name, address, time or ornic device. guest/identity gives it these, and
its devices are plugged in afterwards. vmgenid tells the kernel of each VM that others have the same random numbers.
"""
import dataclasses
import os
import re
import subprocess

from . import recipe, state, vm
from .cache import Artefact
from .errors import LabError
from .qmp import Monitor

LAYOUT = 1                      # part of a snapshot's key: increment it when another state is saved of the same recipe
SPACE_MIB = 500
PATIENCE = 120                  # seconds to save or load the state
STATE = "state"                 # name of the file
# What a machine with rdma-core loads at boot, and programs that every lab starts: the snapshot has them in its page cache.
WARM = ("modprobe -qa ib_uverbs rdma_ucm ib_umad; { ip link; rdma link; ibv_devices; modinfo ib_core; modprobe -V; tar --version; } "
        "> /dev/null 2>&1")


def wanted(config, accel):
    """Return true if the VMs of a lab start from a snapshot."""
    if config.boot != "auto":
        return config.boot == "snapshot"
    return not (accel == "kvm" or config.kernel or config.append or config.cpu or config.qemu_args or config.nvdimm)


class Template:
    """The VM whose state is saved for VM `number` of a lab: QEMU, the guest's image, number of slots for devices."""

    def __init__(self, qemu, env, config, image, number, accel, ports):
        self.qemu, self.env, self.image, self.accel, self.ports = qemu, env, image, accel, ports
        self.config = dataclasses.replace(config, vms=1)
        # VMs differ in their number only if QEMU's further arguments do.
        self.number = number if any("{i}" in x for x in config.qemu_args) else 0

    def command(self, run):
        return vm.qemu_command(self.qemu, self.config, self.image, run, self.number, self.accel, self.ports)

    def key(self):
        """Return all that the state depends on, as text."""
        nowhere = state.State("-")
        command = [x.replace(nowhere.dir, "{run}") for x in self.command(nowhere)]
        made = [os.stat(self.image.file(name)).st_mtime_ns for name in ("root.erofs", "vmlinuz", "boot.cpio")]
        # A QEMU does not load the state of another version's default machine.
        version = subprocess.run(self.qemu + ["--version"], stdout=subprocess.PIPE, env={**os.environ, **self.env}).stdout.decode()
        # The guest has measured the frequency of the time stamp counter, which under TCG is the host's.
        with open("/proc/cpuinfo") as f:
            frequency = round(float(re.search(r"bogomips\s*: (.*)", f.read()).group(1)), -2)
        return recipe.text(LAYOUT, command, version, made, vm.stages(), WARM, frequency)

    def build(self, path, step):
        """Boot the guest and save its state in the folder."""
        run = state.State("snapshot-%d" % os.getpid())
        about = {"number": self.number, "command": self.command(run), "devices": [], "env": self.env, "process": None}
        run.data = {"vms": [about], "owner": state.identity(os.getpid())}
        with state.locked():
            run.create()
            run.save()
        machine = vm.VM(run, about)
        try:
            self.boot(run, machine, step)
            step.note("saving")
            with Monitor(machine, PATIENCE) as monitor:
                monitor("stop")
                monitor.migrate("migrate", os.path.join(path, STATE), PATIENCE)
            os.chmod(os.path.join(path, STATE), 0o644)      # any user's lab may start from it
        except LabError as e:
            kept = run.keep_logs("snapshot")
            raise LabError("%s (logs: %s)" % (e, kept) if kept else str(e)) from None
        finally:
            run.remove()

    def boot(self, run, machine, step):
        vm.write_initrd(run.path("vm%d.initrd" % self.number), self.image)
        step.note("booting")
        machine.start()
        run.save()
        machine.wait_up(self.config.wait)
        machine.run(WARM, self.config.wait)
        said = machine.complaints()
        if said:
            raise LabError("the kernel complained when the guest booted: " + said[0])


def prune(guest):
    """Remove the snapshots of a guest's recipe that no lab has used for long; return their paths."""
    return Artefact("snapshot-" + guest, "", None, "snapshots of guest " + guest, 0).prune()


def get(guest, template):
    """Return the path of the snapshot for a guest's recipe. None: it does not exist, and this user cannot make it."""
    a = Artefact("snapshot-" + guest, template.key(), template.build, "snapshot of guest " + guest, SPACE_MIB)
    return a.get() if a.exists() or os.geteuid() == 0 else None


def load(machine, patience):
    """Give a VM that waits for it the state of its snapshot, let it run, and plug its devices in. patience: seconds for the
    guest to see a device."""
    with Monitor(machine, PATIENCE) as monitor:
        saved = machine.record["snapshot"]
        monitor.wait_listening(PATIENCE)
        try:
            monitor.migrate("migrate-incoming", os.path.join(saved, STATE), PATIENCE)
        except LabError as e:
            raise LabError("%s; the snapshot is %s, 'lab up --boot cold' needs none" % (e, saved)) from None
        monitor("cont")
        for count, device in enumerate(machine.record["devices"]):
            if count:       # one after the other, because the driver numbers devices in the order in which they appear
                machine.run("until plugged %d; do sleep 0.05; done" % count, timeout=patience)
            monitor("device_add", **device)
