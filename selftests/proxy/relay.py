# SPDX-License-Identifier: GPL-2.0
"""A relay between QEMU and a device: it accepts QEMU's connection, makes one to the device, and forwards vfio-user messages
with their descriptors in both directions. A subclass sees each request and may change, answer or drop it.

There are two threads per connection, one for each direction. The device answers in order, so a queue of the requests shows to
which one a reply belongs: the proxy also sends requests in between.
"""
import collections
import dataclasses
import os
import socket
import struct
import threading

(VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, REGION_INFO, _IO_FDS, IRQ_INFO, SET_IRQS, REGION_READ, REGION_WRITE, _DMA_READ, _DMA_WRITE,
 RESET) = range(1, 14)
REPLY, NO_REPLY, ERROR = 0x1, 0x10, 0x20
HEADER = struct.Struct("=HHIII")
ACCESS = struct.Struct("=QII")
MAX_FDS = 16


@dataclasses.dataclass
class Message:
    """A message; its descriptors are closed when it has been sent."""
    id: int
    cmd: int
    flags: int = 0
    error: int = 0
    payload: bytes = b""
    fds: list = dataclasses.field(default_factory=list)

    @property
    def is_reply(self):
        return self.flags & 0xf == REPLY

    @property
    def wants_reply(self):
        return not self.is_reply and not self.flags & NO_REPLY


class Side:
    """One socket: whole messages in, whole messages out."""

    def __init__(self, sock):
        self.sock = sock
        self.sending = threading.Lock()

    def _exactly(self, data, length):
        while len(data) < length:
            piece = self.sock.recv(length - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def receive(self):
        data, fds, _, _ = socket.recv_fds(self.sock, HEADER.size, MAX_FDS)
        if not data:
            raise EOFError
        number, cmd, size, flags, error = HEADER.unpack(self._exactly(data, HEADER.size))
        return Message(number, cmd, flags, error, self._exactly(b"", size - HEADER.size), fds)

    def send(self, message):
        data = HEADER.pack(message.id, message.cmd, HEADER.size + len(message.payload), message.flags, message.error)
        data += message.payload
        with self.sending:
            sent = socket.send_fds(self.sock, [data], message.fds) if message.fds else 0
            self.sock.sendall(data[sent:])
        for fd in message.fds:
            os.close(fd)

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass                        # the remote end was faster


class Relay:
    """Listen at a path; serve one connection at a time, as the device does."""

    def __init__(self, listen_at, device_path):
        self.device_path = device_path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(listen_at)
        self.listener.listen(1)
        self.vmm = self.device = None
        self.asked = collections.deque()        # requests that the device has not answered: function(reply) of each
        self.asking = threading.Lock()          # keeps the order of the queue and of the socket the same
        self.broken = None                      # an exception that ended a thread
        threading.Thread(target=self._serve, daemon=True).start()

    # for subclasses
    def connected(self):
        """Called when QEMU and the device are connected, before the first message."""

    def disconnected(self):
        """Called when QEMU or the device has disconnected."""

    def request(self, message):
        """Process a request of QEMU: return the message to pass on, or None."""
        return message

    def reply(self, request, message):
        """Process the device's reply to QEMU: return the message to pass on."""
        return message

    # messages of the proxy itself
    def ask(self, cmd, payload=b"", fds=()):
        """Send a request to the device; return the reply's payload. Must not be called from the thread that reads the replies."""
        answer, there = [], threading.Event()

        def take(message):
            answer.append(message)
            there.set()
        self._to_device(Message(0, cmd, payload=payload, fds=[os.dup(fd) for fd in fds]), take)
        if not there.wait(10) or answer[0].flags & ERROR:
            raise OSError("the device refuses message %d" % cmd)
        return answer[0].payload

    def post(self, region, offset, data):
        """Send a posted write to the device."""
        self._to_device(Message(0, REGION_WRITE, NO_REPLY, payload=ACCESS.pack(offset, region, len(data)) + data))

    def answer(self, request, payload=b""):
        """Answer QEMU instead of the device."""
        if request.wants_reply:
            self.vmm.send(Message(request.id, request.cmd, REPLY, payload=payload))

    def close(self):
        """Close both connections."""
        self.listener.close()
        for side in (self.vmm, self.device):
            if side:
                side.close()

    # threads
    def _serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return                  # closed
            self.vmm = Side(sock)
            device = socket.socket(socket.AF_UNIX)
            device.connect(self.device_path)
            self.device = Side(device)
            self.asked.clear()
            answers = threading.Thread(target=self._loop, args=(self.device, self._from_device), daemon=True)
            answers.start()
            self._loop(self.vmm, self._from_vmm, self.connected)
            answers.join()
            self.disconnected()

    def _loop(self, side, handle, first=None):
        try:
            if first:
                first()
            while True:
                handle(side.receive())
        except (EOFError, OSError):
            pass                        # the remote end is gone
        except Exception as e:          # pylint: disable=broad-except
            self.broken = e
            raise
        finally:
            self.vmm.close()
            self.device.close()

    def _to_device(self, message, then=None):
        with self.asking:
            if then:
                self.asked.append(then)
            self.device.send(message)

    def _from_vmm(self, message):
        if message.is_reply:
            self.device.send(message)
            return
        passed = self.request(message)
        if not passed:
            for fd in message.fds:
                os.close(fd)
        elif passed.wants_reply:
            self._to_device(passed, lambda reply: self.vmm.send(self.reply(message, reply)))
        else:
            self._to_device(passed)

    def _from_device(self, message):
        if message.is_reply:
            self.asked.popleft()(message)
        else:
            self.vmm.send(message)
