#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The control socket of a real daemon, by its protocol and by ornicctl; both are built with the sanitizers."""
import contextlib
import fcntl
import grp
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import control  # noqa: E402
import tap      # noqa: E402

BROADCAST = b"\xff" * 6 + bytes.fromhex("020000000099") + b"\x88\xb5" + bytes(46)


def read(*path):
    with open(os.path.join(control.TOP, *path), encoding="utf-8") as f:
        return f.read()


class Unix:
    """The remote end of a dgram port."""

    def __init__(self, daemon, name):
        self.name = name
        self.local, self.remote = daemon.path(name + ".l"), daemon.path(name + ".r")
        self.spec = "dgram,local=%s,remote=%s,name=%s" % (self.local, self.remote, name)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.remote)
        self.sock.settimeout(control.PATIENCE)
        daemon.case.addCleanup(self.sock.close)

    def send(self, frame):
        self.sock.sendto(frame, self.local)


class Protocol(unittest.TestCase):
    def setUp(self):
        self.daemon = control.Daemon(self)
        self.client = self.daemon.client()

    def refused(self, code, method, **params):
        with self.assertRaises(control.Refused) as caught:
            self.client.call(method, **params)
        self.assertEqual(caught.exception.code, code, caught.exception)
        return str(caught.exception)

    def test_version(self):
        version = self.client.call("version")
        self.assertEqual(version["pid"], self.daemon.process.pid)
        self.assertIn('"%s"' % version["version"], read("tools", "ornicd", "version.h"))

    def test_methods_are_documented(self):
        """Each method has a section with its name in the protocol's chapter, and no section lacks its method."""
        described = re.findall(r"^([a-z_.]+)\n\^+$", read("Documentation", "control.rst"), re.M)
        self.assertEqual(sorted(self.client.call("methods")), sorted(described))

    def test_errors_are_documented(self):
        codes = re.findall(r"CONTROL_\w+ = (-?\d+),", read("tools", "ornicd", "control", "method.h"))
        self.assertGreater(len(codes), 8)
        chapter = read("Documentation", "control.rst")
        for code in codes:
            self.assertIn("``%s``" % code, chapter)

    def test_devices(self):
        a, b = self.client.call("device.list")
        self.assertEqual((a["name"], a["path"], a["mac"]), ("a", self.daemon.path("a.sock"), "02:00:00:00:00:01"))
        self.assertEqual((b["name"], b["state"], b["link"], b["attached"]), ("b", "disabled", "down", False))
        self.assertEqual(set(a["objects"].values()), {0})
        self.assertEqual((a["memory"]["used"], a["memory"]["guaranteed"], a["memory"]["rejected"]), (0, 4 << 20, 0))
        self.assertGreater(a["memory"]["most"], 4 << 20)
        self.assertEqual(a["guest_memory"], {"bytes": 0, "max_bytes": 1 << 40, "files": 0, "max_files": 512, "nvdimm": False})

    def test_ports(self):
        names = [p["name"] for p in self.client.call("port.list")]
        self.assertEqual(names, ["a", "b"])
        ends = Unix(self.daemon, "x"), Unix(self.daemon, "y")
        for end in ends:
            self.assertEqual(self.client.call("port.add", spec=end.spec), {"name": end.name})
        ends[0].send(BROADCAST)
        self.assertEqual(ends[1].sock.recv(2048), BROADCAST)
        x, y = self.client.call("port.list")[2:]
        self.assertEqual((x["kind"], x["up"], x["spec"]), ("dgram", True, ends[0].spec))
        self.assertEqual((x["counters"]["rx_frames"], x["counters"]["rx_bytes"]), (1, len(BROADCAST)))
        self.assertEqual((y["counters"]["tx_frames"], y["counters"]["tx_bytes"]), (1, len(BROADCAST)))
        self.client.call("port.del", name="y")
        ends[0].send(BROADCAST)
        self.assertEqual([p["name"] for p in self.client.call("port.list")], ["a", "b", "x"])
        with self.assertRaises(BlockingIOError):
            ends[1].sock.setblocking(False)
            ends[1].sock.recv(2048)
        self.assertFalse(os.path.exists(ends[1].local))

    def test_faults(self):
        """Rules are added and deleted while frames pass; they act on frames of an uplink."""
        ends = Unix(self.daemon, "x"), Unix(self.daemon, "y")
        for end in ends:
            self.client.call("port.add", spec=end.spec)
        self.assertEqual(self.client.call("fault.list"), [])
        one = self.client.call("fault.add", rule="drop port=x dir=rx packet=any every=2")["id"]
        two = self.client.call("fault.add", rule="truncate port=y dir=tx packet=any to=30 seed=5")["id"]
        for number in range(6):
            ends[0].send(BROADCAST + bytes([number]))
        for number in (0, 2, 4):
            self.assertEqual(ends[1].sock.recv(2048), (BROADCAST + bytes([number]))[:30])
        rules = self.client.call("fault.list")
        self.assertEqual([(r["id"], r["matched"], r["acted"], r["no_room"], r["spent"]) for r in rules],
                         [(one, 6, 3, 0, False), (two, 3, 3, 0, False)])
        self.assertEqual((rules[1]["rule"], rules[1]["seed"]), ("truncate port=y dir=tx packet=any to=30 seed=5", "0x5"))
        self.client.call("fault.del", id=two)
        ends[0].send(BROADCAST)
        self.assertEqual(ends[1].sock.recv(2048), BROADCAST)
        self.client.call("fault.clear")
        self.assertEqual(self.client.call("fault.list"), [])

    def test_held_frames_go_with_their_port(self):
        ends = Unix(self.daemon, "x"), Unix(self.daemon, "y")
        for end in ends:
            self.client.call("port.add", spec=end.spec)
        self.client.call("fault.add", rule="delay port=x packet=any by=1s")
        ends[0].send(BROADCAST)
        while not self.client.call("fault.list")[0]["acted"]:
            pass
        self.client.call("port.del", name="x")
        self.client.call("fault.clear")
        ends[1].sock.settimeout(2)
        with self.assertRaises(socket.timeout):
            ends[1].sock.recv(2048)

    def test_frames_under_way_stay_in_their_vlan(self):
        """Frames that wait in a fault or in a queue are lost when their port gets another VLAN."""
        ends = [Unix(self.daemon, name) for name in "xyz"]
        for end, more in zip(ends, (",vlan=10", ",vlan=10,rate=8K", ",vlan=20")):
            self.client.call("port.add", spec=end.spec + more)

        def silent(end):
            end.sock.settimeout(1)
            with self.assertRaises(socket.timeout):
                end.sock.recv(2048)
            end.sock.settimeout(control.PATIENCE)
        rule = self.client.call("fault.add", rule="delay port=x packet=any by=300ms")["id"]
        for acted, sender, vlan, end in ((1, ends[0], 20, ends[2]), (2, ends[2], 10, ends[0])):
            sender.send(BROADCAST)              # into the switch by x, and out of it
            while self.client.call("fault.list")[0]["acted"] < acted:
                pass
            self.client.call("port.vlan", port="x", vlan=vlan)
            silent(end)
        self.client.call("fault.del", id=rule)
        for _ in range(60):                     # y takes 60 ms for each
            ends[0].send(BROADCAST)
        while self.client.call("link.list")[0]["waiting"] < 5 * len(BROADCAST):
            pass
        self.client.call("port.vlan", port="y", vlan=20)
        self.assertEqual(self.client.call("link.list")[0]["waiting"], 0)
        ends[2].send(BROADCAST + b"after")
        heard = [ends[1].sock.recv(2048)]
        while heard[-1] == BROADCAST:
            heard.append(ends[1].sock.recv(2048))
        self.assertEqual(heard[-1], BROADCAST + b"after")
        self.assertLess(len(heard), 60)

    def test_faults_refused(self):
        self.assertIn("expected one of drop", self.refused(-32602, "fault.add", rule="drip"))
        self.assertIn("there are a, b", self.refused(1, "fault.add", rule="drop device=c"))
        self.refused(-32602, "fault.add")
        self.refused(-32602, "fault.add", rule=1)
        self.refused(1, "fault.add", rule="fatal device=a")
        for number in (-1, 0, 7, 1 << 32, 1 << 62):
            self.refused(1, "fault.del", id=number)
        self.refused(-32602, "fault.del", id="1")
        self.assertEqual(self.client.call("fault.list"), [])

    def test_congestion_control(self):
        before = self.client.call("cc.show")
        self.assertEqual((before["on"], before["qps"], before["more"]), (True, [], 0))
        self.assertEqual(self.client.call("cc.set", spec="off,rp_ai_rate=77"), {})
        after = self.client.call("cc.show")
        self.assertFalse(after["on"])
        self.assertEqual(after["params"], before["params"] | {"rp_ai_rate": 77})
        self.assertIn("from 1 to 100000", self.refused(-32602, "cc.set", spec="on,rp_ai_rate=0"))
        self.assertIn("rp_speed", self.refused(-32602, "cc.set", spec="rp_speed=1"))
        self.refused(-32602, "cc.set")
        self.refused(-32602, "cc.set", spec="on", more=1)
        self.assertEqual(self.client.call("cc.show"), after)

    def test_vlans(self):
        """Between an access port and a trunk a tag is added and removed; another VLAN receives nothing."""
        ends = [Unix(self.daemon, name) for name in ("access", "trunk", "other")]
        for end, more in zip(ends, (",vlan=10", "", ",vlan=20")):
            self.client.call("port.add", spec=end.spec + more)
        access, trunk, other = (end.sock for end in ends)
        tagged = BROADCAST[:12] + b"\x81\x00\x00\x0a" + BROADCAST[12:]
        ends[0].send(BROADCAST)
        self.assertEqual(trunk.recv(2048), tagged)
        ends[1].send(tagged)
        self.assertEqual(access.recv(2048), BROADCAST)
        for head in (tagged[:16], b"\x81\x00\x00\x00".join([BROADCAST[:12], tagged[12:16]])):
            ends[0].send(head + b"\x88\xb5" + b"hidden" * 9)  # frames that must not pass
        self.client.call("port.vlan", port=ends[2].name, vlan=10)
        ends[0].send(BROADCAST)
        self.assertEqual(other.recv(2048), BROADCAST)
        self.assertEqual(trunk.recv(2048), tagged)
        self.assertEqual([p["vlan"] for p in self.client.call("port.list")], [0, 0, 10, 0, 10])
        self.assertEqual([p["counters"]["vlan_drop"] for p in self.client.call("port.list")], [0, 0, 2, 0, 0])
        self.refused(1, "port.vlan", port="nowhere", vlan=1)
        for number in (4095, -1, 1 << 32, (1 << 32) + 10, 1 << 62, "10", None):
            self.refused(-32602, "port.vlan", port=ends[0].name, vlan=number)
        self.assertEqual([p["vlan"] for p in self.client.call("port.list")], [0, 0, 10, 0, 10])

    def test_slow_links(self):
        self.assertEqual(self.client.call("link.list"), [])
        self.assertEqual(self.client.call("link.set", port="a", rate="1M", queue="20000"), {})
        link, = self.client.call("link.list")
        self.assertEqual((link["port"], link["rate_kbps"], link["queue"], link["waiting"]), ("a", 1000, 20000, 0))
        self.assertIn("rate", self.refused(-32602, "link.set", port="a", rate="1"))
        self.assertIn("kmax", self.refused(-32602, "link.set", port="a", rate="1M", kmin="9000", kmax="8000"))
        self.refused(1, "link.set", port="nowhere", rate="1M")
        self.assertEqual(self.client.call("link.list"), [link])
        self.client.call("link.set", port="a", rate="2M", pmax="7")
        self.assertEqual([(x["rate_kbps"], x["pmax"]) for x in self.client.call("link.list")], [(2000, 7)])
        self.client.call("link.set", port="a", rate="2M", kmin="0", kmax="0", pmax="0")
        self.assertEqual([(x["kmin"], x["kmax"], x["pmax"]) for x in self.client.call("link.list")], [(0, 0, 0)])
        self.assertIn("queue", self.refused(-32602, "link.set", port="a", rate="2M", queue="0"))
        for key, value in (("queue", "64K"), ("kmin", "nonsense"), ("kmax", "8000"), ("pmax", "7")):
            self.assertIn(key, self.refused(-32602, "link.set", port="a", rate="off", **{key: value}))
        self.assertEqual(len(self.client.call("link.list")), 1)
        self.client.call("link.set", port="a", rate="off")
        self.assertEqual(self.client.call("link.list"), [])

    def test_a_slow_port_loses_frames(self):
        fast, slow = Unix(self.daemon, "fast"), Unix(self.daemon, "slow")
        self.client.call("port.add", spec=fast.spec)
        self.client.call("port.add", spec=slow.spec + ",rate=8K,queue=10000")
        for _ in range(400):                    # of which 17 leave per second
            fast.send(BROADCAST)
        link = {"port": None}
        while link["port"] is None or link["frames"] + link["waiting"] // len(BROADCAST) + link["dropped"] < 400:
            link, = self.client.call("link.list")
        self.assertEqual(link["port"], "slow")
        self.assertGreater(link["dropped"], 0)
        self.assertLessEqual(link["peak"], 10000)
        for _ in range(5):
            self.assertEqual(slow.sock.recv(2000), BROADCAST)

    def test_stream_is_up_with_a_peer(self):
        path = self.daemon.path("s")
        self.client.call("port.add", spec="stream,path=" + path)
        self.assertFalse(self.client.call("port.list")[2]["up"])
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.connect(path)
            while not self.client.call("port.list")[2]["up"]:
                pass
        while self.client.call("port.list")[2]["up"]:
            pass

    def test_a_link_that_is_down(self):
        """A port is down while a rule or its link keeps frames from it, and up otherwise."""
        ends = Unix(self.daemon, "x"), Unix(self.daemon, "y")
        for end in ends:
            self.client.call("port.add", spec=end.spec)

        def up():
            return {p["name"]: p["up"] for p in self.client.call("port.list")[2:]}
        self.assertEqual(up(), {"x": True, "y": True})
        rule = self.client.call("fault.add", rule="flap port=y for=60min")["id"]
        self.assertEqual(up(), {"x": True, "y": False})
        self.assertRegex(self.daemon.ctl("port", "list"), r"(?m)^y +dgram +down\b")
        ends[0].send(BROADCAST + b"lost")
        while self.client.call("port.list")[2]["counters"]["rx_frames"] < 1:
            pass
        self.client.call("fault.del", id=rule)
        self.assertEqual(up(), {"x": True, "y": True})
        ends[0].send(BROADCAST)
        self.assertEqual(ends[1].sock.recv(2048), BROADCAST)
        # a port that is recreated meanwhile is down, too
        rule = self.client.call("fault.add", rule="flap port=y for=60min")["id"]
        self.client.call("port.del", name="y")
        self.client.call("port.add", spec=ends[1].spec)
        self.assertEqual(up(), {"x": True, "y": False})
        self.client.call("fault.del", id=rule)
        self.assertEqual(up(), {"x": True, "y": True})
        # the flap also ends by itself
        self.client.call("fault.add", rule="flap port=y for=100ms")
        while not up()["y"]:
            pass

    def test_refusals(self):
        self.assertIn("pigeon", self.refused(-32602, "port.add", spec="pigeon"))
        self.assertIn("numeric", self.refused(-32602, "port.add", spec="udp,local=localhost:1,remote=localhost:2"))
        for local, remote in (("127.0.0.1:99999", "127.0.0.1:6000"), ("127.0.0.1:6000", "127.0.0.1:70000"), ("[::1]:4790", "[::1]:0"),
                              ("127.0.0.1:0", "127.0.0.1:6000"), ("127.0.0.1:-1", "127.0.0.1:6000"), ("127.0.0.1:domain", "127.0.0.1:6000"),
                              ("127.0.0.1:4294967297", "127.0.0.1:6000"), ("127.0.0.1:1x", "127.0.0.1:6000")):
            self.assertIn("from 1 to 65535", self.refused(-32602, "port.add", spec="udp,local=%s,remote=%s" % (local, remote)))
        for local in (":4790", "[]:4790"):
            self.assertIn("no host", self.refused(-32602, "port.add", spec="udp,local=%s,remote=127.0.0.1:6000" % local))
        for spec in ("dgram,local=/tmp/%s,remote=/tmp/x" % ("a" * 600), "udp,local=127.0.0.1:1,remote=127.0.0.1:1,name=" + "a" * 112):
            self.assertRegex(self.refused(-32602, "port.add", spec=spec), r"is longer than \d+ characters")
        self.assertIn("no port", self.refused(1, "port.del", name="x"))
        self.assertIn("belongs to a device", self.refused(3, "port.del", name="a"))
        self.assertIn("has the name a", self.refused(2, "port.add", spec="tap,ifname=x,name=a"))
        self.assertIn("in use by pid %d" % self.daemon.process.pid,
                      self.refused(2, "port.add", spec="stream,path=" + self.daemon.control))
        self.assertIn("methods", self.refused(-32601, "port.fly"))

    def test_a_line_of_the_log_is_one(self):
        """A message is one line of the log: names from outside cannot add lines, nor move a terminal's cursor."""
        self.refused(1, "port.del", name="x\nornicd: all is well \x1b[31m")
        self.assertIn("there is no port x?ornicd: all is well ?[31m\n", self.daemon.said())

    def test_ports_come_and_go_in_traffic(self):
        """Frames between ports in both directions while one port is removed and created again."""
        ends = Unix(self.daemon, "x"), Unix(self.daemon, "y"), Unix(self.daemon, "z")
        for end in ends:
            self.client.call("port.add", spec=end.spec)
        over = threading.Event()

        def storm(end):
            while not over.is_set():
                try:
                    end.send(BROADCAST)
                except OSError:         # the port is removed, or the daemon is slow
                    pass

        def swallow(end):
            while not over.is_set():
                try:
                    end.sock.recv(2048)
                except OSError:
                    pass
        for end in ends:
            end.sock.settimeout(0.2)
        threads = [threading.Thread(target=work, args=[end]) for work in (storm, swallow) for end in ends]
        for thread in threads:
            thread.start()
        try:
            for _ in range(50):
                for end in ends:
                    self.client.call("port.del", name=end.name)
                    self.client.call("port.add", spec=end.spec)
            # all ports exist again, and still carry frames
            before = self.client.call("port.list")[2:]
            while all(p["counters"]["tx_frames"] <= q["counters"]["tx_frames"]
                      for p, q in zip(self.client.call("port.list")[2:], before)):
                pass
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def test_nobody_waits_for_a_slow_reader(self):
        slow = self.daemon.client()
        slow.sock.setblocking(False)
        line = b'{"jsonrpc":"2.0","id":1,"method":"port.list"}\n'
        stuck = 0
        while stuck < 200:
            try:
                slow.sock.send(line)
                stuck = 0
            except BlockingIOError:
                stuck += 1
                self.client.call("version")
        with open("/proc/%d/statm" % self.daemon.process.pid, encoding="ascii") as f:
            self.assertLess(int(f.read().split()[1]) * 4096, 1 << 30)
        self.client.call("version")

    def test_stuck_clients_give_way(self):
        """Clients that stopped in the middle of a line occupy all places; one of them gives way to a new client."""
        stuck = [self.daemon.client() for _ in range(31)]
        for client in stuck:
            client.sock.sendall(b"{")
        self.client.call("version")
        self.assertIn("too many", self.daemon.client().file.readline().decode())
        time.sleep(10.5)
        self.daemon.client().call("version")
        self.client.call("version")         # a client that is merely idle keeps its place
        gone = [client for client in stuck if select.select([client.sock], [], [], 0)[0]]
        self.assertEqual(len(gone), 1)

    def test_hostile_lines(self):
        for line, code in ((b"\xff\xfe", -32700), (b"[" * 60000, -32700), (b"{}", -32600), (b"[]", -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":"port.add","params":{"spec":"' + b"x" * 60000 + b'"}}', -32602),
                           (b'{"jsonrpc":"2.0","id":1,"method":"port.del","params":{"name":"%s%n"}}', 1)):
            self.assertEqual(self.client.ask(line)["error"]["code"], code, line[:40])
        self.client.sock.sendall(b"x" * 65537)
        self.assertIn("too long", self.client.file.readline().decode())
        self.assertEqual(self.client.file.readline(), b"")
        self.daemon.client().call("version")


class Devices(unittest.TestCase):
    """Devices that are added and removed while the daemon runs; test_hotplug.c uses them meanwhile."""

    ALL = ("mac=02:00:00:00:00:77,name=dev,anti-spoof=on,promisc=off,vlan=7,rate=1M,queue=20000,kmin=9000,kmax=9001,pmax=3,"
           "owner=%d,group=%d,mode=0640,ip=192.0.2.1,memory=1G,memory-files=7,nvdimm=on" % (os.geteuid(), os.getegid()))

    def setUp(self):
        self.daemon = control.Daemon(self)
        self.client = self.daemon.client()

    def known(self, client, name, path):
        """Return all that the daemon says about a device."""
        text = json.dumps([[each for each in client.call(method) if name in (each.get("name"), each.get("port"))]
                           for method in ("device.list", "port.list", "link.list")])
        return text.replace(path, "PATH")

    def names(self):
        return [device["name"] for device in self.client.call("device.list")]

    def test_all_keys(self):
        """A device that is added has the settings of one of the command line with the same description."""
        keys = re.findall(r"([a-z-]+)=", self.ALL)
        table = re.search(r"device_keys\[\] = \{(.*?)\}", read("tools", "ornicd", "config", "config.c"), re.S).group(1)
        self.assertEqual(sorted(["path", *keys]), sorted(re.findall(r'"(.*?)"', table)))
        path = self.daemon.path("x")
        self.client.call("device.add", spec="path=%s,%s" % (path, self.ALL))
        other = tempfile.mkdtemp(prefix="ornic-control-")
        self.addCleanup(shutil.rmtree, other)
        first = control.Daemon(self, "-d", "path=%s/x,%s" % (other, self.ALL), devices=())
        here, there = self.known(self.client, "dev", path), self.known(first.client(), "dev", other + "/x")
        self.assertEqual(here, there)
        self.assertIn('"vlan": 7', here)
        self.assertIn('"queue": 20000', here)
        self.assertIn('"mode": "0640"', here)
        with self.assertRaises(control.Refused) as caught:      # the daemon cannot wait for a name service
            self.client.call("device.add", spec="path=%s,owner=root" % self.daemon.path("y"))
        self.assertEqual(caught.exception.code, -32602)
        self.assertIn("is not a number", str(caught.exception))

    def test_untrusted(self):
        """--untrusted is for devices that are added later, too."""
        daemon = control.Daemon(self, "--untrusted", devices=())
        client = daemon.client()
        with self.assertRaises(control.Refused) as caught:
            client.call("device.add", spec="path=" + daemon.path("x"))
        self.assertEqual(caught.exception.code, -32602)
        self.assertIn("list the IP addresses", str(caught.exception))
        self.assertEqual(client.call("device.list"), [])
        client.call("device.add", spec="path=%s,ip=192.0.2.7" % daemon.path("x"))
        device, = client.call("device.list")
        self.assertEqual((device["anti_spoof"], device["promisc"]), (True, False))
        self.assertIn("192.0.2.7", str(device["ip"]))

    def test_later_requests(self):
        """Requests that name the device and wait behind its removal find none, or the next one of that name."""
        path = self.daemon.path("b.sock")
        calls = [("device.del", {"name": "b"}), ("counters", {"device": "b"}), ("qp.list", {"device": "b"}),
                 ("latency.on", {"device": "b"}), ("link.set", {"port": "b", "rate": "1M"}), ("port.vlan", {"port": "b", "vlan": 1}),
                 ("fault.add", {"rule": "drop device=b"}), ("capture.start", {"spec": self.daemon.path("f") + ",device=b"}),
                 ("device.del", {"name": "b", "force": True}), ("device.add", {"spec": "path=" + path}), ("counters", {"device": "b"})]
        lines = [json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params}) + "\n"
                 for n, (method, params) in enumerate(calls)]
        self.client.sock.sendall("".join(lines).encode())
        answers = [json.loads(self.client.file.readline()) for _ in calls]
        self.assertEqual([answer.get("error", {}).get("code") for answer in answers], [None] + [1] * 8 + [None, None])
        self.assertEqual(self.names(), ["a", "b"])

    def test_client_leaves(self):
        """The request of a client that has left is executed."""
        gone = self.daemon.client()
        gone.sock.sendall(b'{"jsonrpc":"2.0","id":1,"method":"device.del","params":{"name":"b"}}\n')
        gone.close()
        end = time.monotonic() + control.PATIENCE
        while "b" in self.names():
            self.assertLess(time.monotonic(), end)
        self.assertFalse(os.path.exists(self.daemon.path("b.sock")))

    def test_nothing_stays(self):
        """After many devices have come and gone the daemon has the descriptors and files of before; the sanitizer looks for memory."""
        fds = "/proc/%d/fd" % self.daemon.process.pid
        before = len(os.listdir(fds))
        for n in range(300):
            self.client.call("device.add", spec="path=%s,%s" % (self.daemon.path("x%d" % n), self.ALL))
            self.client.call("device.del", name="dev")
        end = time.monotonic() + control.PATIENCE       # a thread closes the descriptors of the last ones
        while len(os.listdir(fds)) != before:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        self.assertEqual(sorted(os.listdir(self.daemon.dir)), ["a.sock", "b.sock", "control", "log"])

    def test_in_use(self):
        """A device with a client is not removed without force, and says who it is."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as vm:
            vm.connect(self.daemon.path("b.sock"))
            vm.settimeout(control.PATIENCE)
            while "b: client connected" not in self.daemon.said():
                time.sleep(0.01)
            said = self.daemon.ctl("device", "del", "b", status=1)
            self.assertIn("process %d uses it" % os.getpid(), said)
            self.assertEqual(self.names(), ["a", "b"])
            vm.sendall(b"unread")
            self.daemon.ctl("device", "del", "--force", "b")
            self.assertEqual(vm.recv(1), b"")
        self.assertEqual(self.names(), ["a"])
        self.assertIn("no device b", self.daemon.ctl("device", "del", "b", status=1))

    def test_client_has_left(self):
        """A device whose client has just left is free."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as vm:
            vm.connect(self.daemon.path("b.sock"))
            self.client.call("version")
        self.daemon.ctl("device", "del", "b")

    def test_start_without(self):
        """A daemon with a control socket may start without devices."""
        empty = control.Daemon(self, devices=())
        self.assertEqual(empty.client().call("device.list"), [])
        said = empty.ctl("device", "add", "path=%s,mac=02:00:00:00:00:07" % empty.path("late.sock"))
        self.assertEqual(said, "device late added: socket %s, mac 02:00:00:00:00:07\n" % empty.path("late.sock"))
        self.assertEqual([device["name"] for device in empty.client().call("device.list")], ["late"])


class Socket(unittest.TestCase):
    def mode(self, path):
        return stat.S_IMODE(os.stat(path).st_mode)

    def test_default_is_none(self):
        daemon = control.Daemon(self, control=False)
        self.assertFalse(os.path.exists(daemon.control))

    def test_permissions(self):
        daemon = control.Daemon(self)
        self.assertEqual(self.mode(daemon.control), 0o600)
        group = next(g for g in grp.getgrall() if g.gr_gid in os.getgroups() + [os.getegid()])
        daemon = control.Daemon(self, "--control-mode", "0660", "--control-group", group.gr_name)
        self.assertEqual(self.mode(daemon.control), 0o660)
        self.assertEqual(os.stat(daemon.control).st_gid, group.gr_gid)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_others_are_kept_out(self):
        daemon = control.Daemon(self)
        os.chmod(daemon.dir, 0o755)
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c",
                               "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])", daemon.control],
                              capture_output=True, text=True)
        self.assertIn("PermissionError", done.stderr)

    def test_after_a_crash(self):
        daemon = control.Daemon(self)
        daemon.kill()
        self.assertIn("has ended", daemon.ctl("version", status=1))
        daemon.start()
        daemon.ctl("version")
        daemon.stop()
        self.assertFalse(os.path.exists(daemon.control))
        self.assertIn("no such socket", daemon.ctl("version", status=1))

    def test_in_use(self):
        daemon = control.Daemon(self)
        other = subprocess.run([control.ORNICD, "-d", "path=%s" % daemon.path("c"), "-C", daemon.control],
                               capture_output=True, text=True)
        self.assertEqual(other.returncode, 1)
        self.assertIn("cannot listen on %s: address in use by pid %d; stop it or choose another path"
                      % (daemon.control, daemon.process.pid), other.stderr)
        daemon.ctl("version")

    def turned_away(self, path):
        """Check that a new connection is closed at once."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(path)
            client.settimeout(control.PATIENCE)
            self.assertEqual(client.recv(1), b"", path)

    def test_no_descriptor_left(self):
        """Without free descriptors new connections are closed at once, on each kind of socket; the daemon stays idle meanwhile."""
        daemon = control.Daemon(self)
        pid, here = daemon.process.pid, daemon.client()
        here.call("port.add", spec="stream,path=%s,name=lan" % daemon.path("lan"))
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = [int(name) for name in os.listdir("/proc/%d/fd" % pid)]
        self.assertEqual(len(used), max(used) + 1, "there are gaps")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(used), hard))
        for path in (daemon.control, daemon.path("a.sock"), daemon.path("lan")):
            self.turned_away(path)
        here.call("version")
        self.assertLess(daemon.said().count("accept"), 10)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        daemon.client().call("version")
        # The daemon turns clients away with a spare descriptor. If even its number is above the limit, it is lost, and the next
        # client brings it back.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waits:
            waits.connect(daemon.control)
            here.call("version")
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        clients = []
        while True:                     # clients fill the gaps
            clients.append(daemon.client())
            clients[-1].call("version")
            used = [int(name) for name in os.listdir("/proc/%d/fd" % pid)]
            if len(used) == max(used) + 1:
                break
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(used), hard))
        self.turned_away(daemon.control)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        self.assertIn("control: cannot accept a connection: Too many open files", daemon.said())

    def test_configuration_file(self):
        """The example, in another folder."""
        text = read("tools", "ornicd", "ornicd.conf.example")
        self.assertIn('"control": "/run/ornic/control.sock"', text)
        daemon = control.Daemon(self)
        daemon.stop()
        conf = daemon.path("conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(text.replace("/run/ornic/", daemon.dir + "/"))
        daemon.argv = [control.ORNICD, "--config", conf]
        daemon.control = daemon.path("control.sock")
        daemon.start()
        self.assertIn("vm2", daemon.ctl("device", "list"))
        self.assertIn("lan.sock", daemon.ctl("port", "list"))


class CommandLine(unittest.TestCase):
    """Options of the daemon, checked with ornicctl."""

    def write(self, name, text):
        path = os.path.join(tempfile.mkdtemp(prefix="ornic-control-"), name)
        self.addCleanup(shutil.rmtree, os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def test_fault_files(self):
        """Rules of --faults apply before the first packet, those of several files in their order."""
        one = self.write("one", "# what goes wrong\n\ndrop device=b p=1% seed=7  # now and then\n  flap device=a in=60min for=1s\n")
        two = self.write("two", "ecn every=2")
        daemon = control.Daemon(self, "--faults", one, "-f", two)
        rows = [line.split() for line in daemon.ctl("fault", "list").splitlines()[1:]]
        self.assertEqual([(row[0], " ".join(row[5:])) for row in rows],
                         [("1", "drop device=b p=1% seed=7"), ("2", "flap device=a in=60min for=1s"), ("3", "ecn every=2")])
        self.assertEqual([row[1:5] for row in rows], [["0", "0", "0", "active"]] * 3)
        daemon.ctl("fault", "del", "2")
        self.assertEqual([r["id"] for r in daemon.client().call("fault.list")], [1, 3])

    def test_fault_files_refused(self):
        """The daemon does not start if it rejects a rule of a file, and names the rule."""
        socket_path = os.path.join(os.path.dirname(self.write("x", "")), "a.sock")
        for text, why in (("drop\n\ndrip device=a\n", ":3: .*drip"), ("drop device=c\n", ":1: there is no device c"),
                          ("drop p=2\n", ":1: "), ("drop %s\n" % ("x" * 2000), ":1: the line is longer"), (None, "cannot read .*No such file")):
            path = self.write("rules", text) if text else "/nowhere/rules"
            done = subprocess.run([control.ORNICD, "-d", "path=%s" % socket_path, "-f", path], capture_output=True, text=True,
                                  timeout=control.PATIENCE)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, (re.escape(path) if text else "") + why)
            self.assertFalse(os.path.exists(socket_path))

    def test_refused(self):
        """The daemon rejects, with a reason, options that would fail or surprise later."""
        device = "path=%s" % os.path.join(os.path.dirname(self.write("x", "")), "a.sock")
        for options, status, why in ((["-d", device, "-r", "9"], 2, "ready descriptor 9 is not open"), (["-xV"], 2, "unknown option -x;"),
                                     (["--xV"], 2, "unknown option --xV;"), (["-d", device + ",name=" + "a" * 112], 2, "longer than 111"),
                                     (["-d", device + ",name=a\nb"], 2, "a name has a control character"),
                                     (["-d", "path=/tmp/a\rb,name=a"], 2, "path has a control character"),
                                     (["-d", "path=/tmp/" + "a" * 600], 2, "longer than 107"),
                                     (["-d", device + ",colour=red"], 2, 'unknown key "colour=red"; the form is '),
                                     (["-d", device + ",mac"], 2, "mac= has no value; the form is "),
                                     (["-d", "path="], 2, "path= has no value; the form is "),
                                     (["-d", device, "-f", "/tmp"], 1, "cannot read /tmp: Is a directory")):
            done = subprocess.run([control.ORNICD, *options], capture_output=True, text=True, timeout=control.PATIENCE, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertRegex(done.stderr, r"\A(ornicd: dev.*\n|ornicd: a.*\n)*ornicd: error: .*%s.*\n\Z" % why)

    def test_manual_of_congestion_control(self):
        """The manual lists the parameters with their defaults and ranges."""
        table = re.search(r"#define CC_PARAMS\(C\)(.*?)\n\n", read("tools", "ornicd", "engine", "cc.h"), re.S).group(1)
        number = r"(\d+(?: << \d+)?)"
        have = {name: tuple(eval(n) for n in numbers) for name, *numbers in  # pylint: disable=eval-used
                re.findall(r"C\((\w+), %s, %s, %s\)" % (number, number, number), table)}
        said = re.findall(r'\b(\w+) " \((\d+); (\d+) to (\d+)\)', read("Documentation", "man", "ornicd.8"))
        self.assertEqual({name: tuple(int(n) for n in numbers) for name, *numbers in said}, have)
        self.assertEqual(sorted(have), sorted(control.Daemon(self).client().call("cc.show")["params"]))

    def test_manual(self):
        """The daemon's manual has the same options as its help, long and short, with or without argument."""
        manual = re.sub(r"\\f.", "", read("Documentation", "man", "ornicd.8").replace("\\-", "-"))
        manual = re.search(r"(?ms)^\.SH OPTIONS$(.*?)^\.SH", manual).group(1)
        described = {}
        for head in re.findall(r"(?m)^\.TP\n(.*)", manual):
            short, name, arg = re.fullmatch(r'\.BR (?:(-\w) ", " )?(--[a-z-]+)(?: "(.*)")?', head).groups()
            described[name] = short, bool(arg)
        said = subprocess.run([control.ORNICD, "--help"], capture_output=True, text=True, check=True).stdout
        helped = {name: (short or None, bool(arg)) for short, name, arg in
                  re.findall(r"(?m)^ +(?:(-\w), )?(--[a-z-]+)( [A-Z]+)? +\S", said)}
        self.assertEqual(described, helped)
        self.assertGreaterEqual(len(helped), 14)
        # the manual has each option in the same form
        for name, (_, arg) in helped.items():
            if arg:
                done = subprocess.run([control.ORNICD, name], capture_output=True, text=True)
                self.assertEqual(done.returncode, 2)
                self.assertIn("%s needs a value" % name, done.stderr)


class Ornicctl(unittest.TestCase):
    def setUp(self):
        self.daemon = control.Daemon(self)
        self.ctl = self.daemon.ctl

    def commands(self):
        """Return the words of each command in the help."""
        listed = re.search(r"Commands:\n(.*?)\n\n", self.ctl("--help"), re.S).group(1)
        return [re.match(r"  ([a-z]+(?: [a-z]+)?)", line).group(1).split() for line in listed.splitlines()
                if line.startswith("  ") and line[2] != " "]

    def test_help(self):
        commands = self.commands()
        self.assertGreaterEqual(len(commands), 5)
        for words in commands:
            for ask in ([*words, "--help"], ["--help", *words], [words[0], "-h", *words[1:]]):
                said = self.ctl(*ask)
                self.assertTrue(said.startswith("Usage: ornicctl " + " ".join(words)), said)
            self.assertIn(" ".join(words), self.ctl(words[0], "--help"))

    def test_manual(self):
        """Manual and help have the same commands and options."""
        manual = re.sub(r"\\f.", "", read("Documentation", "man", "ornicctl.8").replace("\\-", "-"))
        for words in self.commands():
            self.assertRegex(manual, r'(?m)^\.B[RI]? "?%s\b' % " ".join(words))
            for option in re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", self.ctl(*words, "--help"), re.M):
                self.assertIn(option, manual)
        described = re.findall(r'(?m)^\.TP\n\.B[RI]? "?([a-z]+(?: [a-z]+)?)\b.*\\" command$', manual)
        self.assertEqual(sorted(described), sorted(" ".join(words) for words in self.commands()))

    def test_manual_of_lists(self):
        """The manual explains each column."""
        manual = re.sub(r"\\f.", "", read("Documentation", "man", "ornicctl.8").replace("\\-", "-"))
        for subject in ("device", "port", "qp", "link", "fault", "capture"):
            section = re.search(r'(?ms)^\.BR? "?%s list\b.*?\\" command$(.*?)^\.TP' % subject, manual).group(1)
            for heading in self.ctl(subject, "list").split():
                if heading.isupper():
                    self.assertRegex(section, r"(?<![\w/-])%s(?![\w/-])" % re.escape(heading), subject)

    def test_json(self):
        """Each command prints the daemon's result, or an object with the result for each device."""
        client = self.daemon.client()
        done = set()

        def ask(*words, command=2):
            done.add(words[:command])
            return json.loads(self.ctl("--json", *words))

        for words, method in ((["version"], "version"), (["device", "list"], "device.list"), (["port", "list"], "port.list"),
                              (["fault", "list"], "fault.list"), (["link", "list"], "link.list"),
                              (["cc", "show"], "cc.show"), (["capture", "list"], "capture.list")):
            self.assertEqual(ask(*words), client.call(method))
            self.assertEqual(json.loads(self.ctl(*words, "-j")), client.call(method))
        path = self.daemon.path("plugged")
        self.assertEqual(ask("device", "add", "path=%s,mac=02:00:00:00:00:09" % path),
                         {"name": "plugged", "path": path, "mac": "02:00:00:00:00:09"})
        self.assertEqual(ask("device", "del", "plugged"), {})
        end = Unix(self.daemon, "lan")
        self.assertEqual(ask("port", "add", end.spec), {"name": "lan"})
        self.assertEqual(ask("port", "vlan", "lan", "7"), {})
        self.assertEqual(ask("port", "list"), client.call("port.list"))
        self.assertEqual(ask("link", "set", "lan", "100M", "--queue", "64K"), {})
        self.assertEqual(ask("link", "list"), client.call("link.list"))
        self.assertEqual(ask("cc", "set", "on,rp_ai_rate=77"), {})
        self.assertEqual(ask("fault", "add", "flap", "port=lan", "for=1ms"), {"id": 1})
        self.assertEqual(ask("fault", "add", "drop", "port=lan", "every=3"), {"id": 2})
        self.assertEqual(ask("fault", "list"), client.call("fault.list"))
        self.assertEqual(ask("fault", "del", "1"), {})
        self.assertEqual(ask("fault", "clear"), {})
        self.assertEqual(ask("capture", "start", self.daemon.path("c.pcapng")), {"id": 1})
        self.assertEqual([c["id"] for c in ask("capture", "list")], [1])
        self.assertEqual(ask("capture", "stop", "1")["file"], self.daemon.path("c.pcapng"))
        self.assertEqual(ask("port", "del", "lan"), {})
        for switch in ("on", "off"):
            self.assertEqual(ask("latency", switch), {"a": {}, "b": {}})
            self.assertEqual(ask("latency", switch, "--device", "b"), {"b": {}})
            self.assertEqual(ask("latency", "show"), {n: client.call("latency.show", device=n) for n in "ab"})
        self.assertEqual(ask("counters", command=1), {n: client.call("counters", device=n) for n in "ab"})
        self.assertEqual(ask("qp", "list"), [])
        self.assertEqual(set(ask("top", "--once", "--interval", "0.1", command=1)),
                         {"seconds", "devices", "counters", "ports", "qps"})
        # without a guest there is no queue pair, so a fake daemon answers
        said = self.said_to(b'{"id":1,"jsonrpc":"2.0","result":{"qpn":5,"wqe":{"n":1}}}\n', "--json", "qp", "show", "a", "5")
        self.assertEqual(json.loads(said[1]), {"qpn": 5, "wqe": {"n": 1}})
        done.add(("qp", "show"))
        self.assertEqual(done, {tuple(words) for words in self.commands()} | {("version",)})

    def test_json_refused(self):
        """Standard output contains a result or nothing."""
        for words in (["latency", "on", "--device", "x"], ["counters", "--device", "x"], ["qp", "show", "a", "5"],
                      ["port", "del", "x"], ["port", "vlan", "x", "5"], ["fault", "del", "5"], ["capture", "stop", "5"],
                      ["cc", "set", "rp_speed=1"], ["link", "set", "x", "1M"]):
            done = subprocess.run([control.ORNICCTL, "-j", "-c", self.daemon.control, *words], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (1, ""), words)

    def test_congestion_control(self):
        self.ctl("cc", "set", "off,rp_max_rate=123")
        said = self.ctl("cc", "show")
        self.assertIn("congestion control is off", said)
        self.assertRegex(said, r"(?m)^rp_max_rate +123$")
        self.assertIn("rp_speed", self.ctl("cc", "set", "rp_speed=1", status=1))

    def test_links(self):
        self.ctl("link", "set", "b", "10M", "--kmin", "4000", "--queue", "64K")
        head, row = self.ctl("link", "list").splitlines()
        self.assertEqual(dict(zip(head.split(), row.split())) | {"PORT": "b", "KBPS": "10000", "QUEUE": "65536", "KMIN": "4000"},
                         dict(zip(head.split(), row.split())))
        self.ctl("link", "set", "b", "off")
        self.assertEqual(len(self.ctl("link", "list").splitlines()), 1)

    def test_devices(self):
        head, a, b = self.ctl("device", "list").splitlines()
        self.assertEqual(head.split()[:4], ["NAME", "STATE", "LINK", "MAC"])
        self.assertEqual(a.split()[:4], ["a", "disabled", "down", "02:00:00:00:00:01"])
        self.assertEqual(b.split()[-2:], ["no", self.daemon.path("b.sock")])

    def test_ports(self):
        end = Unix(self.daemon, "lan")
        self.assertIn("lan", self.ctl("port", "add", end.spec))
        end.send(BROADCAST)
        row = self.ctl("port", "list").splitlines()[3].split()
        self.assertEqual(row[:3], ["lan", "dgram", "up"])
        self.assertEqual(row[-1], end.spec)
        self.assertEqual(row[7], "1")
        self.ctl("port", "vlan", "lan", "77")
        self.assertEqual(self.ctl("port", "list").splitlines()[3].split()[4], "77")
        self.assertIn("not a VLAN", self.ctl("port", "vlan", "lan", "4095", status=2))
        self.assertIn("no port x", self.ctl("port", "vlan", "x", "1", status=1))
        self.ctl("port", "vlan", "lan", "none")
        self.assertEqual(self.ctl("port", "list").splitlines()[3].split()[4], "-")
        self.assertIn("another port has the name lan", self.ctl("port", "add", end.spec, status=1))
        self.ctl("port", "del", "lan")
        self.assertIn("no port lan", self.ctl("port", "del", "lan", status=1))
        self.assertEqual(len(self.ctl("port", "list").splitlines()), 3)

    def test_faults(self):
        self.assertIn("rule 1", self.ctl("fault", "add", "drop", "device=a", "p=1%"))
        self.assertIn("rule 2", self.ctl("fault", "add", "ecn every=2"))
        head, one, two = self.ctl("fault", "list").splitlines()
        self.assertEqual(head.split(), ["ID", "MATCHED", "ACTED", "NO-ROOM", "STATE", "RULE"])
        self.assertEqual(one.split(), ["1", "0", "0", "0", "active", "drop", "device=a", "p=1%"])
        self.assertEqual(two.split()[5:], ["ecn", "every=2"])
        self.assertIn("not an action", self.ctl("fault", "add", "drip", status=1))
        self.ctl("fault", "del", "1")
        self.assertIn("no fault rule 1", self.ctl("fault", "del", "1", status=1))
        self.ctl("fault", "del", "x", status=2)
        self.ctl("fault", "clear")
        self.assertEqual(len(self.ctl("fault", "list").splitlines()), 1)

    def test_wrong_words(self):
        for words in ([], ["port"], ["port", "fly"], ["fly"], ["port", "add"], ["device", "add"], ["device", "del"], ["port", "del", "a", "b"], ["version", "x"],
                      ["--nonsense"], ["port", "list", "--nonsense"], ["--control"], ["qp", "show", "a"],
                      ["qp", "show", "a", "x"], ["qp", "show", "a", "16777216"], ["top", "--interval", "0"],
                      ["top", "--interval", "nan"], ["top", "--interval", "1x"], ["counters", "--device"], ["latency"]):
            self.ctl(*words, status=2)

    def test_idle(self):
        """No event has happened yet."""
        self.assertEqual(len(self.ctl("qp", "list").splitlines()), 1)
        self.assertEqual(len(self.ctl("counters").splitlines()), 1)
        both = self.ctl("counters", "--all").splitlines()[1:]
        one = self.ctl("counters", "--all", "--device", "b").splitlines()[1:]
        self.assertEqual([row for row in both if row.startswith("b ")], one)
        self.assertGreater(len(one), 50)
        self.assertIn("off", self.ctl("latency", "show"))
        self.ctl("latency", "on")
        self.assertEqual(self.ctl("latency", "show"), "")
        for words in (["qp", "list"], ["counters"], ["latency", "on"], ["latency", "show"]):
            self.assertIn("no device x", self.ctl(*words, "--device", "x", status=1))
        self.assertIn("no queue pair 5", self.ctl("qp", "show", "a", "5", status=1))

    def test_environment(self):
        for env, args in (({"ORNIC_CONTROL": self.daemon.control}, []),
                          ({"ORNIC_CONTROL": "/nowhere"}, ["--control", self.daemon.control])):
            done = subprocess.run([control.ORNICCTL, "version", *args], env={**os.environ, **env}, text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_default_path(self):
        default = re.search(r'CTL_SOCKET\s+"([^"]+)"', read("tools", "ornicctl", "ornicctl.h")).group(1)
        self.assertIn(default, self.ctl("--help"))
        for page in ("man/ornicctl.8", "man/ornicd.8", "control.rst", "guide/operating.rst"):
            self.assertIn(default, read("Documentation", *page.split("/")), page)

    def test_no_utf8(self):
        done = subprocess.run([control.ORNICCTL, "-c", self.daemon.control, "port", "del", b"\xff"], capture_output=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"UTF-8", done.stderr)

    def said_to(self, answer, *args):
        """Return exit code and output when the daemon's only answer is this."""
        path = self.daemon.path("fake")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            child = subprocess.Popen([control.ORNICCTL, "-c", path, *args], stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT)
            peer, _ = server.accept()
            with peer:
                peer.recv(4096)
                try:
                    peer.sendall(answer)
                except OSError:
                    pass
            said = child.communicate(timeout=control.PATIENCE)[0]
        os.unlink(path)
        return child.returncode, said

    def test_daemon_talks_nonsense(self):
        """ornicctl rejects answers that violate the protocol."""
        for answer in (b"", b"x\n", b"[]\n", b"{}\n", b'{"error":7}\n', b'{"result":null}\n', b'{"result":[[],7,{}]}\n', b"x" * (5 << 20)):
            status, said = self.said_to(answer, "port", "list")
            self.assertIn(status, (0, 1), said)
            self.assertNotIn(b"Sanitizer", said)


class Vanished(unittest.TestCase):
    """A device is removed after ornicctl has listed it: commands for all devices go on without it."""

    ANSWERS = {"device.list": [{"name": "a", "objects": {}}, {"name": "b", "objects": {}}], "port.list": [], "counters": {"tx_send": 3},
               "qp.list": {"qps": [{"qpn": 7}]}, "latency.on": {}, "latency.show": {"on": False}}

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="ornic-control-")
        self.addCleanup(shutil.rmtree, folder)
        self.path = os.path.join(folder, "control")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(self.listener.close)
        self.listener.bind(self.path)
        self.listener.listen()

    def serve(self):
        """Be a daemon that knows of device b no more."""
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rwb", buffering=0) as stream:
            for line in stream:
                asked = json.loads(line)
                answer = {"jsonrpc": "2.0", "id": asked["id"], "result": self.ANSWERS[asked["method"]]}
                if asked.get("params", {}).get("device") == "b":
                    del answer["result"]
                    answer["error"] = {"code": 1, "message": "there is no device b"}
                stream.write(json.dumps(answer).encode() + b"\n")

    def ask(self, *words, status=0):
        server = threading.Thread(target=self.serve)
        server.start()
        done = subprocess.run([control.ORNICCTL, "-c", self.path, *words], capture_output=True, text=True, timeout=control.PATIENCE)
        server.join()
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr if status else json.loads(done.stdout)

    def test_all(self):
        self.assertEqual(self.ask("--json", "counters"), {"a": {"tx_send": 3}})
        self.assertEqual(self.ask("--json", "qp", "list"), [{"qpn": 7, "device": "a"}])
        self.assertEqual(self.ask("--json", "latency", "on"), {"a": {}})
        self.assertEqual(self.ask("--json", "latency", "show"), {"a": {"on": False}})
        self.assertEqual(self.ask("--json", "top", "--once", "--interval", "0.1")["counters"], {"a": {"tx_send": 3}})

    def test_named(self):
        for words in (["counters"], ["qp", "list"], ["latency", "on"]):
            self.assertEqual(self.ask(*words, "--device", "b", status=1), "ornicctl: there is no device b\n")


def takes_signals():
    """In a child: receive signals of the terminal, which the background of a shell and nohup ignore, and children inherit."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Terminal(unittest.TestCase):
    """Base: ornicctl top on a terminal."""

    ENTER, LEAVE, HOME = b"\033[?1049h\033[?25l", b"\033[?25h\033[?1049l", b"\033[H"

    FRAME, WORDS, SHELL = HOME, (), ()

    def setUp(self):
        self.daemon = control.Daemon(self)
        argv = [*self.SHELL, control.ORNICCTL, "-c", self.daemon.control, "top", "--interval", "0.1", *self.WORDS]
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            takes_signals()
            os.execvp(argv[0], argv)
        self.addCleanup(os.close, self.terminal)
        self.said = b""
        self.read_until(lambda: self.said.count(self.FRAME) >= 3)

    def read_until(self, done):
        """Read until done() or the end. Return False at the end."""
        while not done():
            try:
                part = os.read(self.terminal, 65536)
            except OSError:         # all processes with the terminal open are gone
                return False
            if not part:
                return False
            self.said += part
        return True


class Top(Terminal):
    """The live display on a terminal: it restores the terminal, however it ends."""

    def ended(self, status):
        self.assertFalse(self.read_until(lambda: False))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), status, self.said)
        self.assertTrue(self.said.startswith(self.ENTER))
        self.assertEqual(self.said.count(self.ENTER), 1)
        self.assertEqual(self.said.count(self.LEAVE), 1)
        return self.said.partition(self.LEAVE)[2]

    def test_interrupt(self):
        """An interrupt from the keyboard."""
        self.assertIn(b"DEVICE", self.said)
        os.write(self.terminal, b"\x03")
        self.assertEqual(self.ended(0), b"")

    def test_quit(self):
        """The other key that ends programs."""
        os.write(self.terminal, b"\x1c")
        self.assertEqual(self.ended(0), b"")

    def test_terminate(self):
        os.kill(self.pid, signal.SIGTERM)
        self.assertEqual(self.ended(0), b"")

    def test_daemon_ends(self):
        """The reason stays readable on the restored screen."""
        self.daemon.stop()
        self.assertIn(b"ornicd", self.ended(1))

    def test_daemon_hangs(self):
        """The display can be ended while the daemon hangs."""
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        end = time.monotonic() + 0.5
        while select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
            self.said += os.read(self.terminal, 65536)
        os.write(self.terminal, b"\x03")
        self.assertEqual(self.ended(0), b"")
        self.daemon.process.send_signal(signal.SIGCONT)

    def test_devices_and_ports(self):
        end = Unix(self.daemon, "lan")
        self.daemon.ctl("port", "add", end.spec)
        self.assertTrue(self.read_until(lambda: b"lan" in self.said))
        os.write(self.terminal, b"\x03")
        self.ended(0)


class TopJson(Top):
    """The terminal is a file like any other for JSON output: a line with an object for each frame."""

    FRAME, WORDS = b"\n", ("--json",)

    def ended(self, status):
        self.assertFalse(self.read_until(lambda: False))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), status, self.said)
        self.assertNotIn(b"\033", self.said)
        lines = self.said.removesuffix(b"^C").removesuffix(b"^\\").split(b"\r\n")    # ^C is the terminal's echo
        rest = lines.pop()
        if status:
            rest = lines.pop()
        self.assertGreaterEqual(len(lines), 3)
        for line in lines:
            self.assertEqual(set(json.loads(line)), {"seconds", "devices", "counters", "ports", "qps"})
        return rest

    def test_interrupt(self):
        os.write(self.terminal, b"\x03")
        self.assertEqual(self.ended(0), b"")


class TopStalled(Terminal):
    """The live display on a terminal that takes no output: it restores it nevertheless."""

    MOST = 4095             # bytes that the reader's end of a terminal of Linux holds

    ended = Top.ended

    def unread(self):
        return struct.unpack("i", fcntl.ioctl(self.terminal, termios.FIONREAD, bytes(4)))[0]

    def ended_without_reader(self, status):
        """The display ends while nothing reads the terminal."""
        end = time.monotonic() + 15
        while not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self.assertLess(time.monotonic(), end, "does not end")
            time.sleep(0.05)
        return self.ended(status)

    def test_interrupt_stopped(self):
        """An interrupt from the keyboard continues output that the keyboard stopped."""
        os.write(self.terminal, b"\x13")
        time.sleep(0.5)
        os.write(self.terminal, b"\x03")
        self.assertEqual(self.ended_without_reader(0), b"")

    def test_terminate_stopped(self):
        """Nobody continues the output."""
        os.write(self.terminal, b"\x13")
        time.sleep(0.5)
        os.kill(self.pid, signal.SIGTERM)
        self.assertEqual(self.ended_without_reader(1), b"")

    def test_terminate_not_read(self):
        """The terminal takes no more output, as over a connection that hangs."""
        fd = os.open(f"/proc/{self.pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        # a busy kernel passes output on later, which makes room again
        end = time.monotonic() + 15
        while select.select([], [fd], [], 0.5)[1] or self.unread() < self.MOST:
            self.assertLess(time.monotonic(), end, "the terminal takes more and more")
            with contextlib.suppress(BlockingIOError):
                os.write(fd, b"x" * 4096)
        os.close(fd)
        os.kill(self.pid, signal.SIGTERM)
        self.assertEqual(self.ended_without_reader(1), b"")


class TopJob(Terminal):
    """The live display as a job of a shell."""

    SHELL = ("bash", "-mc", '"$@"; fg', "bash")

    def test_suspend(self):
        """The shell has its screen while the display is stopped; the display draws at once when it continues."""
        os.write(self.terminal, b"\x1a")
        frames = self.said.count(self.FRAME)
        self.read_until(lambda: self.said.count(self.ENTER) == 2 or self.said.count(self.FRAME) > frames + 50)
        self.assertEqual(self.said.count(self.ENTER), 2, "not stopped")
        shown, between = self.said.split(self.ENTER)[1].split(self.LEAVE)
        self.assertIn(b"DEVICE", shown)
        self.assertIn(b"Stopped", between)
        frames = self.said.count(self.FRAME)
        self.assertTrue(self.read_until(lambda: self.said.count(self.FRAME) >= frames + 3))
        os.write(self.terminal, b"\x03")
        self.assertFalse(self.read_until(lambda: False))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), 0, self.said)
        self.assertEqual((self.said.count(self.ENTER), self.said.count(self.LEAVE)), (2, 2))
        self.assertNotIn(self.HOME, self.said.split(self.LEAVE)[2])


class TopPipe(unittest.TestCase):
    """The output of ornicctl top goes to a pipe."""

    def setUp(self):
        self.daemon = control.Daemon(self)

    def begin(self, pipe, ready=takes_signals):
        child = subprocess.Popen([control.ORNICCTL, "-j", "-c", self.daemon.control, "top", "--interval", "0.1"], stdout=pipe,
                                 preexec_fn=ready)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def test_nobody_reads(self):
        """A signal ends it while its output stalls."""
        end, pipe = os.pipe()
        self.addCleanup(os.close, end)
        self.addCleanup(os.close, pipe)
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
        child = self.begin(pipe)
        while select.select([], [pipe], [], 0)[1]:
            time.sleep(0.01)
        time.sleep(1)           # some frames later it is in write(); the status is 0 in the unlikely case that it is not
        child.terminate()
        self.assertIn(child.wait(control.PATIENCE), (0, 1))

    def test_nohup(self):
        """A signal that is ignored at the start stays ignored."""
        child = self.begin(subprocess.PIPE, lambda: (takes_signals(), signal.signal(signal.SIGHUP, signal.SIG_IGN)))
        with child.stdout as said:
            for _ in range(2):
                json.loads(said.readline())
            child.send_signal(signal.SIGHUP)
            for _ in range(20):
                self.assertTrue(said.readline(), "SIGHUP ended it")
            child.terminate()
            self.assertEqual(child.wait(control.PATIENCE), 0)


if __name__ == "__main__":
    tap.main()
