# SPDX-License-Identifier: GPL-2.0
"""QEMU's monitor protocol: requests to a QEMU that runs."""
import json
import socket
import time

from .errors import LabError

GLANCE = 0.02                   # seconds between two looks at a migration


class Monitor:
    """A connection to the monitor socket of a VM."""

    def __init__(self, vm, patience=30):
        self.vm = vm
        self.socket = socket.socket(socket.AF_UNIX)
        end = time.monotonic() + patience
        while True:
            try:
                self.socket.connect(vm.file("qmp"))
                break
            except OSError:             # QEMU is starting
                if not vm.alive() or time.monotonic() > end:
                    self.socket.close()
                    raise LabError(vm.obituary()) from None
                time.sleep(GLANCE)
        self.socket.settimeout(patience)
        self.stream = self.socket.makefile("rw")
        self._read()                    # the greeting
        self("qmp_capabilities")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def _read(self):
        try:
            line = self.stream.readline()
        except OSError:
            line = ""
        if not line:
            raise LabError(self.vm.obituary())
        return json.loads(line)

    def __call__(self, command, **arguments):
        """Execute a command; return its result, or raise LabError with QEMU's reason."""
        self.stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            answer = self._read()
            if "error" in answer:
                raise LabError("%s: QEMU: %s: %s" % (self.vm.name, command, answer["error"]["desc"]))
            if "return" in answer:
                return answer["return"]

    def wait_listening(self, patience):
        """Wait until QEMU listens at the sockets of its network backends. If the guest sends a frame before, QEMU crashes (11.1):
        the backend has no channel yet, but its link is up."""
        end = time.monotonic() + patience
        while "initializing" in self("human-monitor-command", **{"command-line": "info network"}):
            if time.monotonic() > end:
                raise LabError("%s: QEMU does not listen at its network sockets after %g s" % (self.vm.name, patience))
            time.sleep(GLANCE)

    def migrate(self, command, path, patience):
        """Write ("migrate") or read ("migrate-incoming") the state of the VM in a file, with memory at fixed places of it."""
        self("migrate-set-capabilities", capabilities=[{"capability": "mapped-ram", "state": True}])
        self(command, uri="file:" + path)
        end = time.monotonic() + patience
        while (now := self("query-migrate")).get("status") != "completed":
            if now.get("status") == "failed" or time.monotonic() > end:
                raise LabError("%s: QEMU: %s: %s" % (self.vm.name, command, now.get("error-desc", "no end within %g s" % patience)))
            time.sleep(GLANCE)
