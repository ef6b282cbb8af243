# SPDX-License-Identifier: GPL-2.0
"""A daemon with a control socket, and a client of it."""
import json
import os
import resource
import shutil
import socket
import subprocess
import tempfile

from program import BUILD, TOP  # noqa: F401  pylint: disable=unused-import

ORNICD = os.path.join(BUILD, "san", "ornicd")
ORNICCTL = os.path.join(BUILD, "san", "ornicctl")
PATIENCE = 60       # seconds for an answer, on a busy machine with sanitizers


class Refused(Exception):
    """The daemon answered with an error."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]


class Client:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(path)         # without a timeout: connect() waits while the listen backlog is full
        self.sock.settimeout(PATIENCE)
        self.file = self.sock.makefile("rb")
        self.serial = 0

    def close(self):
        self.file.close()
        self.sock.close()

    def ask(self, line):
        """Return the answer to a line of bytes."""
        self.sock.sendall(line + b"\n")
        return json.loads(self.file.readline())

    def call(self, method, **params):
        """Return the result of a method; raise Refused if the daemon answers with an error."""
        self.serial += 1
        answer = self.ask(json.dumps({"jsonrpc": "2.0", "id": self.serial, "method": method, "params": params}).encode())
        assert answer["jsonrpc"] == "2.0" and answer["id"] == self.serial, answer
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]


class Daemon:
    """ornicd with sanitizers and files of its own in self.dir. stop() fails the case if its exit status is not 0."""

    def __init__(self, case, *options, devices=("a", "b"), control=True, keys=""):
        self.case = case
        self.dir = tempfile.mkdtemp(prefix="ornic-control-")
        case.addCleanup(shutil.rmtree, self.dir)
        self.control = self.path("control")
        self.log = self.path("log")
        argv = [ORNICD, *options]
        for number, name in enumerate(devices):
            argv += ["--device", "path=%s.sock,mac=02:00:00:00:00:%02x%s" % (self.path(name), number + 1, keys)]
        if control:
            argv += ["--control", self.control]
        self.argv = argv
        self.limits = []
        self.process = None
        self.start()
        case.addCleanup(self.stop)

    def path(self, name):
        return os.path.join(self.dir, name)

    def limit(self, which, value):
        """Set a resource limit, soft and hard, for the next start()."""
        self.limits.append((which, (value, value)))

    def set_limits(self):
        for which, values in self.limits:
            resource.setrlimit(which, values)

    def start(self):
        ready, tell = os.pipe()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self.argv, "--ready-fd", str(tell)], pass_fds=[tell], stdout=log, stderr=log,
                                            preexec_fn=self.set_limits)
        os.close(tell)
        with os.fdopen(ready, "rb") as f:
            self.case.assertEqual(f.read(1), b"\n", self.said())

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def stop(self):
        if self.process:
            self.process.terminate()
            status = self.process.wait(PATIENCE)
            self.process = None
            self.case.assertEqual(status, 0, self.said())

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def client(self):
        client = Client(self.control)
        self.case.addCleanup(client.close)
        return client

    def ctl(self, *args, status=0):
        """Return the output of ornicctl: standard output if it succeeded, the error if not."""
        done = subprocess.run([ORNICCTL, "--control", self.control, *args], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=PATIENCE)
        self.case.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.case.assertEqual(bool(done.stderr), bool(status), done.stderr)
        return done.stderr if status else done.stdout
