#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Captures that are started and stopped while the daemon runs: by the protocol, by ornicctl, and to its standard output."""
import os
import signal
import socket
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..")]

from checker import pcapng      # noqa: E402
import control  # noqa: E402
import tap      # noqa: E402


class Capture(unittest.TestCase):
    def setUp(self):
        self.daemon = control.Daemon(self)
        self.client = self.daemon.client()
        self.client.call("port.add", spec="dgram,local=%s,remote=%s,name=lan" % (self.daemon.path("l"), self.daemon.path("r")))
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.sock.close)
        self.sock.bind(self.daemon.path("r"))
        self.path = self.daemon.path("wire.pcapng")

    def send(self, *sizes):
        """Send frames that no port can receive, and wait until the daemon has them. A capture has each frame twice: at arrival,
        and when it is dropped."""
        before = self.client.call("port.list")[2]["counters"]["rx_frames"]
        for size in sizes:
            self.sock.sendto(b"\2" * 12 + bytes(size - 12), self.daemon.path("l"))
        while self.client.call("port.list")[2]["counters"]["rx_frames"] < before + len(sizes):
            pass

    def frames(self):
        """Return the lengths of the captured frames, all of which were dropped."""
        packets = pcapng.read(self.path)[0]
        came, lost = ([len(p.data) for p in packets if bool(p.comments) == lost] for lost in (False, True))
        self.assertEqual(came, lost)
        self.assertEqual({c for p in packets for c in p.comments}, {"dropped: not sent back to where it came from"})
        return came

    def refused(self, code, method, **params):
        with self.assertRaises(control.Refused) as caught:
            self.client.call(method, **params)
        self.assertEqual(caught.exception.code, code, caught.exception)
        return str(caught.exception)

    def test_protocol(self):
        self.send(60)
        number = self.client.call("capture.start", spec=self.path + ",port=lan")["id"]
        self.send(61, 62)
        one, = self.client.call("capture.list")
        self.assertEqual((one["id"], one["file"], one["state"], one["frames"], one["dropped"]), (number, self.path, "running", 4, 0))
        self.assertEqual(self.client.call("capture.stop", id=number)["frames"], 4)
        while self.client.call("capture.list"):
            pass
        self.send(63)
        self.assertEqual(self.frames(), [61, 62])

    def test_refusals(self):
        self.assertIn("there is no device x", self.refused(1, "capture.start", spec=self.path + ",device=x"))
        self.assertIn("what=1", self.refused(-32602, "capture.start", spec=self.path + ",what=1"))
        self.assertIn("standard output", self.refused(-32602, "capture.start", spec="-"))
        self.assertFalse(os.path.exists(self.path))
        self.client.call("capture.start", spec=self.path)
        self.assertIn("exists", self.refused(2, "capture.start", spec=self.path))
        for number in (0, 2, -1, 1 << 40):
            self.refused(1, "capture.stop", id=number)

    def test_ornicctl(self):
        self.assertEqual(self.daemon.ctl("capture", "start", self.path + ",snaplen=64"), "capture 1\n")
        self.send(100)
        self.assertRegex(self.daemon.ctl("capture", "list"), r"(?m)^ *1 +running +2 +0 +\d+ +%s$" % self.path)
        self.assertEqual(self.daemon.ctl("capture", "stop", "1"), "capture 1: %s: 2 frames written, 0 dropped\n" % self.path)
        self.assertEqual(self.frames(), [64])
        self.assertIn("there is no capture 1", self.daemon.ctl("capture", "stop", "1", status=1))
        self.assertIn("not the number", self.daemon.ctl("capture", "stop", "x", status=2))

    def stuck(self):
        """Return the number and the path of a capture to a full pipe without a reader."""
        path = self.daemon.path("pipe")
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        number = self.client.call("capture.start", spec=path)["id"]
        for _ in range(10):
            self.send(*[9000] * 10)
        return number, path

    def test_fails(self):
        """Stopping a capture that could not be written reports the failure once."""
        number, path = self.stuck()
        self.client.call("capture.stop", id=number)
        while (one := self.client.call("capture.list")[0])["state"] == "ending":
            self.assertNotIn("error", one)
        self.assertEqual((one["id"], one["state"], one["error"]), (number, "failed", "Connection timed out"))
        self.assertRegex(self.daemon.ctl("capture", "list"), r"(?m)^ *1 +failed +.* %s: Connection timed out$" % path)
        said = self.daemon.ctl("capture", "stop", str(number), status=1)
        self.assertEqual(said, "ornicctl: capture %d: %s ends early: Connection timed out\n" % (number, path))
        self.assertEqual(self.client.call("capture.list"), [])

    def test_fails_at_its_end(self):
        number, _ = self.stuck()
        self.assertIn("ends early: Connection timed out", self.daemon.ctl("capture", "stop", str(number), status=1))
        self.assertEqual(self.client.call("capture.list"), [])

    def test_failures_are_not_kept_for_ever(self):
        pipes = [self.daemon.path("pipe%d" % number) for number in range(12)]
        for pipe in pipes:
            os.mkfifo(pipe)
            self.addCleanup(os.close, os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        for _ in range(2):
            for pipe in pipes:
                self.client.call("capture.start", spec=pipe)
            for _ in range(2):
                self.send(*[9000] * 10)
            for one in self.client.call("capture.list"):
                if one["state"] == "running":
                    self.client.call("capture.stop", id=one["id"])
            while any(one["state"] != "failed" for one in self.client.call("capture.list")):
                pass
        # all of the second half and four of the first, which fail in any order
        kept = [one["id"] for one in self.client.call("capture.list")]
        self.assertEqual((len(kept), kept[4:]), (16, list(range(13, 25))))
        self.client.call("capture.start", spec=self.path)

    def start_to_stdout(self, out, **more):
        child = subprocess.Popen([control.ORNICCTL, "-c", self.daemon.control, "capture", "start", "/dev/stdout,port=lan"], stdout=out,
                                 **more)
        self.addCleanup(child.kill)
        while not self.client.call("capture.list"):
            self.assertIsNone(child.poll())
        return child

    def test_standard_output(self):
        """Each signal that ends ornicctl ends the capture first, and leaves no pipe behind."""
        folder = self.daemon.path("tmp")
        os.mkdir(folder)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with open(self.path, "wb") as out:
                # whoever runs the tests in the background may ignore the signal
                child = self.start_to_stdout(out, env={**os.environ, "TMPDIR": folder},
                                             preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
            self.send(60, 61)
            child.send_signal(number)
            self.assertEqual(child.wait(control.PATIENCE), 0)
            self.assertEqual(self.frames(), [60, 61])
            self.assertEqual(os.listdir(folder), [])
            self.assertEqual(self.client.call("capture.list"), [])

    def test_ignored_signal(self):
        """A signal that the parent ignores, as shells do for programs in the background, does not end the capture."""
        with open(self.path, "wb") as out:
            child = self.start_to_stdout(out, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        child.send_signal(signal.SIGINT)
        time.sleep(0.1)                 # longer than ornicctl waits between two looks
        self.send(60)
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(control.PATIENCE), 0)
        self.assertEqual(self.frames(), [60])

    def test_standard_output_is_full(self):
        with open("/dev/full", "wb") as out:
            child = self.start_to_stdout(out, stderr=subprocess.PIPE, text=True)
        self.assertEqual(child.communicate(timeout=control.PATIENCE)[1], "ornicctl: cannot write the capture: No space left on device\n")
        self.assertEqual(child.returncode, 1)

    def test_paths(self):
        """A comma begins the keys, so a path with one is rejected, also one of the working folder; so is an empty path."""
        folder = self.daemon.path("a,b")
        os.mkdir(folder)
        for words, where in ((["x.pcapng"], {"cwd": folder}), (["-"], {"env": {**os.environ, "TMPDIR": folder}})):
            done = subprocess.run([control.ORNICCTL, "-c", self.daemon.control, "capture", "start", *words], capture_output=True,
                                  text=True, timeout=control.PATIENCE, **where)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "%s.*: a capture's path cannot have a comma" % folder)
        for spec in ("", ",device=a"):
            self.assertIn("no file: the form is", self.daemon.ctl("capture", "start", spec, status=1))
        self.assertIn("more than 32 devices and ports", self.refused(-32602, "capture.start", spec=self.path + ",device=a" * 33))

    def test_reader_goes(self):
        read, write = os.pipe()
        child = self.start_to_stdout(write)
        os.close(write)
        os.close(read)
        self.assertEqual(child.wait(control.PATIENCE), 0)
        while self.client.call("capture.list"):
            self.send(60)
        self.assertRegex(self.daemon.said(), r": \d+ frames captured, 0 dropped; the reader closed the pipe\n")


if __name__ == "__main__":
    tap.main()
