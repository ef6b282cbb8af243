# SPDX-License-Identifier: GPL-2.0
"""The lab's agent in a guest, process 1: runs commands for the host, one at a time per virtio-serial port.

The host opens a port by sending "SYNC <nonce>"; the agent echoes that line, so that the host can discard data of an earlier,
aborted conversation. Then comes one line of JSON (cmd, timeout, env, and tty with its size), and from there on both sides send
frames: one letter, a 32-bit big-endian length, that many bytes. cmd is a text for bash, or a list of arguments without a shell.

    host to guest   i  standard input, empty: end of input    s  a signal number    w  rows and columns of the tty
    guest to host   o  standard output    e  standard error    x  exit status, the last frame

A command whose host goes away for a second is killed; so is one whose time is up (status 124).
"""
import fcntl
import glob
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

CHUNK = 1 << 16
STDIN_LIMIT = 1 << 20           # bytes of input that may wait for a command that does not read
EXIT_TIMEOUT = 124
FRAME = struct.Struct(">cI")


class Gone(Exception):
    """The host closed the port, or another host opened it."""


class Port:
    """A virtio-serial port: a byte pipe whose other end may come and go."""

    def __init__(self, number):
        self.fd = self._open("lab.%d" % number)
        self.buf = b""
        # While no host is connected a read returns at once without data; SIGIO reports a change of that. Its handler is for the
        # moments when it is not blocked, see Command.
        signal.signal(signal.SIGIO, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
        fcntl.fcntl(self.fd, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(self.fd, fcntl.F_SETFL, fcntl.fcntl(self.fd, fcntl.F_GETFL) | os.O_ASYNC)

    @staticmethod
    def _open(wanted):
        while True:
            for path in glob.glob("/sys/class/virtio-ports/*/name"):
                with open(path) as f:
                    if f.read().strip() == wanted:
                        return os.open("/dev/" + path.split("/")[-2], os.O_RDWR)
            time.sleep(0.05)

    def fill(self, wait):
        """Read more; without a host wait for one, or raise Gone."""
        while True:
            data = os.read(self.fd, 1 << 18)
            if data:
                self.buf += data
                return
            if not wait:
                return self.check_host()
            signal.sigtimedwait([signal.SIGIO], 2)

    def check_host(self):
        """Raise Gone unless a host connects within some seconds. virtio_console (6.12) passes data at once and defers the news that
        a host closed the port or opened it to a work item, which a busy guest may execute late. If another host opens a port soon
        after the last one closed it, the close may thus be seen when the new host's command runs already."""
        poll = select.poll()
        poll.register(self.fd, 0)           # POLLHUP: no host
        for _ in range(250):
            if not poll.poll(0):
                return
            time.sleep(0.02)
        raise Gone

    def line(self):
        while b"\n" not in self.buf:
            self.fill(True)
        line, self.buf = self.buf.split(b"\n", 1)
        return line

    def frame(self):
        """Return the next complete frame in the buffer as (kind, data), or None."""
        if self.buf and self.buf[:1] not in (b"i", b"s", b"w"):
            raise Gone                      # a new host's SYNC
        if len(self.buf) < FRAME.size:
            return None
        kind, size = FRAME.unpack_from(self.buf)
        if len(self.buf) < FRAME.size + size:
            return None
        data = self.buf[FRAME.size:FRAME.size + size]
        self.buf = self.buf[FRAME.size + size:]
        return kind, data

    def write(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self.fd, view[:CHUNK]):]

    def send(self, kind, data):
        self.write(FRAME.pack(kind, len(data)) + data)


class Command:
    """A running command and its pipes or tty."""

    def __init__(self, request):
        self.tty = request.get("tty")
        self.stdin_closed = False
        self.pending = b""
        if self.tty:
            self.master, slave = pty.openpty()
            self.resize(*self.tty)
            files = dict(stdin=slave, stdout=slave, stderr=slave)
        else:
            files = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        env = {**os.environ, **request.get("env", {})}
        words = request["cmd"] if isinstance(request["cmd"], list) else ["/bin/bash", "-c", request["cmd"]]
        # The child inherits the mask. preexec_fn could change it there, but makes Popen() fork this process, which costs as much
        # as a small command; without it Popen() uses vfork().
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
        try:
            self.process = subprocess.Popen(words, cwd="/root", env=env, start_new_session=True,
                                            preexec_fn=self._take_terminal if self.tty else None, **files)
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
        if self.tty:
            os.close(slave)
            self.input = self.master
            self.outputs = {self.master: b"o"}
        else:
            self.input = self.process.stdin.fileno()
            self.outputs = {self.process.stdout.fileno(): b"o", self.process.stderr.fileno(): b"e"}
        os.set_blocking(self.input, False)

    @staticmethod
    def _take_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def take(self, kind, data):
        """Execute a frame of the host."""
        if kind == b"i" and data:
            self.pending += data
        elif kind == b"i":
            self.stdin_closed = True
        elif kind == b"s":
            self.kill(int(data))
        elif kind == b"w" and self.tty:
            self.resize(*struct.unpack(">HH", data))

    def feed(self):
        """Give the command as much input as it accepts now."""
        try:
            while self.pending:
                self.pending = self.pending[os.write(self.input, self.pending[:CHUNK]):]
        except BlockingIOError:
            return
        except OSError:                     # the command does not read any more input
            self.pending = b""
        if self.stdin_closed and not self.tty and not self.process.stdin.closed:
            self.process.stdin.close()
            self.input = -1

    def kill(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def close(self):
        """Close the pipes; background processes of the command continue without them."""
        self.process.wait()
        if self.tty:
            os.close(self.master)
            return
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


def pump(port, command, timeout):
    """Move bytes between port and command until it has ended and its output is drained; return its status."""
    deadline = time.monotonic() + timeout if timeout else None
    pidfd = os.pidfd_open(command.process.pid)
    ended = False
    try:
        while True:
            while (frame := port.frame()):
                command.take(*frame)
            if command.input >= 0:
                command.feed()
            poll = select.poll()
            for fd in command.outputs:
                poll.register(fd, select.POLLIN)
            # Without POLLIN the port still reports that the host hung up.
            poll.register(port.fd, select.POLLIN if len(command.pending) < STDIN_LIMIT else 0)
            if command.pending:
                poll.register(command.input, select.POLLOUT | (select.POLLIN if command.tty else 0))
            if not ended:
                poll.register(pidfd, select.POLLIN)
            wait = None if deadline is None else max(0, (deadline - time.monotonic()) * 1000)
            events = poll.poll(0 if ended else wait)
            progress = False
            for fd, what in events:
                if fd == port.fd:
                    if what & select.POLLIN:
                        port.fill(False)
                    else:
                        port.check_host()
                elif fd == pidfd:
                    ended = True
                    progress = True
                elif fd in command.outputs and what & ~select.POLLOUT:
                    progress = True
                    drain(port, command, fd)
            if ended and not progress:      # a daemon that it left behind may hold the pipes open: do not wait for it
                status = command.process.wait()
                return status if status >= 0 else 128 - status
            if deadline is not None and time.monotonic() >= deadline and not ended:
                return EXIT_TIMEOUT
    finally:
        os.close(pidfd)


def drain(port, command, fd):
    try:
        data = os.read(fd, CHUNK)
    except BlockingIOError:
        return
    except OSError:                         # EIO: no process has the tty open any more
        data = b""
    if data:
        port.send(command.outputs[fd], data)
    else:
        del command.outputs[fd]


def serve(port):
    line = port.line()
    if line.startswith(b"SYNC "):
        port.write(line + b"\n")
        return
    if not line.startswith(b"{"):
        return
    request = json.loads(line)
    try:
        command = Command(request)
    except OSError as e:
        missing = isinstance(e, FileNotFoundError)
        port.send(b"e", ("%s: %s\n" % (request["cmd"][0], "no such program" if missing else e.strerror)).encode())
        port.send(b"x", b"127" if missing else b"126")
        return
    try:
        status = pump(port, command, request.get("timeout") or 0)
        if status == EXIT_TIMEOUT:
            command.kill(signal.SIGKILL)
    except BaseException as e:
        sys.stderr.write("lab agent: %s: killed %s\n" % (type(e).__name__, str(request["cmd"])[:60]))
        command.kill(signal.SIGKILL)
        raise
    finally:
        command.close()
    port.send(b"x", b"%d" % status)


def worker(number):
    port = Port(number)
    while True:
        try:
            serve(port)
        except Gone:
            pass
        except Exception as e:
            sys.stderr.write("lab agent: %r\n" % e)
            time.sleep(0.2)


def main():
    for number in range(len(glob.glob("/sys/class/virtio-ports/*/name"))):
        if os.fork() == 0:
            os.setsid()
            worker(number)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(1)


main()
