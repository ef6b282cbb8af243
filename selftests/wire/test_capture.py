#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Captures: of the daemon; of traffic with losses, judged by the checker; of every opcode, read by Wireshark and scapy.

traffic (selftests/checker/traffic.c) runs the daemon's engine over a bad network. With break=... its transport has one fault,
which the checker has to detect.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import zlib

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.realpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..")]
sys.path.append("/usr/lib/python3/dist-packages")   # Debian's scapy, for any python3

from checker import judge, pcapng, roce   # noqa: E402
import program  # noqa: E402
import tap  # noqa: E402

TRAFFIC = os.path.join(program.BUILD, "selftests", "traffic")
ORNICD = os.path.join(program.BUILD, "san", "ornicd")
OPTIONS = judge.Options(timeout_ns=4096 << 14, cnp_ns=50000, lasting=True)
PATIENCE = 120


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="capture.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "wire.pcapng")


class Traffic(Case):
    """Events of a transport, each with counts that prove that it occurred."""

    def judge(self, *keys):
        program.check(self, TRAFFIC, self.path, *keys, timeout=PATIENCE)
        return judge.judge(self.path, OPTIONS)

    def good(self, seeds, met, *keys):
        counts = {}
        for seed in range(1, seeds + 1):
            report = self.judge("seed=%d" % seed, *keys)
            self.assertEqual([str(v) for v in report.violations], [], "seed %d" % seed)
            for what, n in report.counts.items():
                counts[what] = counts.get(what, 0) + n
            os.remove(self.path)
        for what in met:
            self.assertGreaterEqual(counts.get(what, 0), seeds, "%s: %s" % (what, counts))

    def test_perfect(self):
        self.good(2, ["connections", "requests"])

    def test_loss(self):
        self.good(6, ["gaps", "NAKs", "implied NAKs", "timeouts", "duplicates", "resends"], "drop=20")

    def test_heavy_loss(self):
        self.good(3, ["NAKs", "implied NAKs", "timeouts"], "drop=100", "batches=2")

    def test_loss_and_much_time(self):
        self.good(3, ["NAKs", "timeouts"], "drop=20", "pause=70000", "both=1")

    def test_congested(self):
        self.good(3, ["CNPs"], "ce=100", "pause=5000", "both=1")

    def test_congested_and_lossy(self):
        self.good(3, ["CNPs", "NAKs", "timeouts"], "ce=200", "drop=20", "pause=500")

    def test_doubled(self):
        self.good(3, ["duplicates"], "twice=100")

    def test_reordered(self):
        self.good(4, ["gaps", "NAKs"], "late=20")

    def test_receiver_not_ready(self):
        self.good(3, ["RNR NAKs"], "rnr=100")

    def test_all_of_it(self):
        self.good(4, ["RNR NAKs", "NAKs", "implied NAKs", "timeouts", "duplicates"], "drop=20", "twice=10", "late=5", "rnr=100")

    def test_both_ask(self):
        self.good(3, ["NAKs", "implied NAKs", "duplicates"], "drop=10", "twice=30", "late=10", "both=1", "reads=2")

    def test_out_of_any_order(self):
        self.good(2, ["NAKs", "implied NAKs", "duplicates"], "late=100", "twice=50", "both=1")

    def test_rare(self):
        """Seeds found by trial: with these, checker and transport once disagreed about a requester's permitted actions."""
        lossy, pausing = ("drop=20", "twice=20", "late=20", "both=1"), ("drop=10", "late=10", "twice=10", "rnr=100", "ce=30", "pause=100")
        late = ("late=50", "reads=8", "both=1")
        for seed, keys in ((9, lossy), (12, late), (1040, late), (3029, late), (1, pausing), (16, pausing), (18, pausing)):
            report = self.judge("seed=%d" % seed, "batches=20", *keys)
            self.assertEqual([str(v) for v in report.violations], [], "seed %d" % seed)
            os.remove(self.path)

    def test_unreliable_connection(self):
        self.good(1, ["UC packets"], "type=uc", "drop=20")

    def test_timeout_is_what_it_should_be(self):
        report = self.judge("drop=30", "timeout=10")
        self.assertEqual({v.rule for v in report.violations}, {"timeout"})


BROKEN = {
    "msn": ("msn",), "early-ack": ("ack-arrived",), "no-ack": ("ack-due",), "nak-twice": ("nak-once",), "no-nak": ("nak-missing",),
    "nak-psn": ("nak-gap",), "deaf": ("nak-heeded", "implied-nak"), "skip": ("go-back",), "rnr-early": ("rnr-wait",),
    "replay": ("replay",), "response-psn": ("response",), "two-responses": ("response",), "psn": ("psn",), "other": ("same",),
    "endless": ("retries",), "no-timer": ("timeout-late",), "no-timer-at-the-end": ("timeout-late",), "cnp-once": ("cnp-due",),
    "cnp-close": ("cnp",), "cnp-wild": ("cnp",),
}


# Keys of faults that a bad network would hide
NETWORK = {"no-ack": (), "endless": ("drop=1000",), "other": ("drop=30", "rnr=200", "batches=6"),
           "no-timer": ("drop=1000", "pause=70000", "reads=64"),
           "cnp-once": ("ce=300", "pause=1000", "batches=60", "seed=3"), "cnp-close": ("ce=100", "pause=5000"),
           "no-timer-at-the-end": ("drop=300", "pause=70000")}


def is_caught(name, rules):
    def test(self):
        network = NETWORK.get(name, ("drop=30", "rnr=200"))
        found = {v.rule for v in self.judge("seed=4", "batches=2", "break=" + name.partition("-at-")[0], *network).violations}
        self.assertLessEqual(set(rules), found)
    return test


for broken, expected in BROKEN.items():
    setattr(Traffic, "test_broken_" + broken.replace("-", "_"), is_caught(broken, expected))

# Opcodes that Wireshark 4.0 does not dissect: it shows their BTH, and the rest as unknown
UNKNOWN_TO_WIRESHARK = {roce.FLUSH, roce.ATOMIC_WRITE, roce.CNP_OPCODE}
# Annex A17 requires UDP over IPv6 without a checksum, which the dissector of UDP reports
HARMLESS = {"Illegal checksum value (0)"}


def layers(packet):
    return packet["_source"]["layers"]


def values(tree, name):
    """Return all values of a field, anywhere in tshark's tree."""
    found = []
    for key, value in tree.items() if isinstance(tree, dict) else ():
        found += [value] if key == name and not isinstance(value, dict) else []
        for below in value if isinstance(value, list) else [value]:
            found += values(below, name)
    return found


class Dissectors(Case):
    """Every opcode of RC, UC, UD and XRC, and the CNP; IPv4, IPv6, VLAN; each length of pad."""

    keys = ("opcodes=1",)
    opcodes = {t | op for t in (roce.RC, roce.XRC) for op in roce.NAMES} | {roce.UC | op for op in range(12)} | {
        roce.UD | roce.SEND_ONLY, roce.UD | roce.SEND_ONLY_IMM, roce.CNP_OPCODE}

    def setUp(self):
        super().setUp()
        program.check(self, TRAFFIC, self.path, *self.keys, timeout=PATIENCE)
        packets, _ = pcapng.read(self.path)
        self.frames = [roce.parse(p.data) for p in packets]
        self.assertEqual([f.fault for f in self.frames], [None] * len(self.frames))
        known = {f.opcode for f in self.frames}
        self.assertLessEqual(self.opcodes, known)
        self.assertLessEqual(known, Dissectors.opcodes)

    def test_wireshark(self):
        done = subprocess.run(["tshark", "-r", self.path, "-T", "json", "--no-duplicate-keys"], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        packets = json.loads(done.stdout)
        self.assertEqual(len(packets), len(self.frames))
        for number, (packet, f) in enumerate(zip(packets, self.frames), 1):
            tree = layers(packet)
            where = "packet %d, %s" % (number, f.name)
            self.assertNotIn("_ws.malformed", tree, where)
            self.assertLessEqual(set(values(tree, "_ws.expert.message")), HARMLESS, where)
            bth = tree["infiniband"]["infiniband.bth_tree"]
            said = [int(bth["infiniband.bth." + name], 0) for name in ("opcode", "psn", "destqp", "padcnt", "m", "tver")]
            is_cnp = f.opcode == roce.CNP_OPCODE
            self.assertEqual(said, [f.opcode, f.psn, f.dqpn, f.pad, not is_cnp, 0], where)
            if f.transport != roce.XRC and f.op not in UNKNOWN_TO_WIRESHARK:
                self.check_fields(tree, f, where)

    def check_fields(self, tree, f, where):
        for name, value in (("reth.va", f.va), ("reth.r_key", f.rkey), ("reth.dmalen", f.dmalen), ("deth.q_key", f.qkey),
                            ("aeth.msn", f.msn if f.aeth is not None else None), ("immdt", f.imm), ("ieth", f.inv_rkey),
                            ("atomicacketh.origremdt", f.value), ("atomiceth.cmpdt", f.compare)):
            said = values(tree, "infiniband." + name)
            self.assertEqual([int(s.replace(":", ""), 16) if ":" in s else int(s, 0) for s in said][:1],
                             [] if value is None else [value], where + " " + name)

    def test_scapy(self):
        from scapy.contrib.roce import BTH
        from scapy.utils import PcapNgReader
        with PcapNgReader(self.path) as reader:
            packets = list(reader)
        self.assertEqual(len(packets), len(self.frames))
        for number, (packet, f) in enumerate(zip(packets, self.frames), 1):
            bth = packet[BTH]
            is_cnp = f.opcode == roce.CNP_OPCODE
            self.assertEqual((bth.opcode, bth.psn, bth.dqpn, bth.padcount, bth.migreq, bth.version, bth.fecn, bth.becn),
                             (f.opcode, f.psn, f.dqpn, f.pad, not is_cnp, 0, 0, is_cnp), "packet %d" % number)
            raw = bytes(bth)
            icrc = bth.compute_icrc(raw[:-4]) if ":" not in f.src else self.icrc_over_ipv6(packet)
            self.assertEqual(icrc, raw[-4:], "ICRC of packet %d, %s" % (number, f.name))

    @staticmethod
    def icrc_over_ipv6(packet):
        """Compute the ICRC over IPv6, which scapy 2.5 does for IPv4 only: header fields that routers change are ones."""
        from scapy.contrib.roce import BTH
        from scapy.layers.inet import UDP
        from scapy.layers.inet6 import IPv6
        pseudo = packet[IPv6].copy()
        pseudo.tc, pseudo.fl, pseudo.hlim, pseudo[UDP].chksum = 0xff, 0xfffff, 0xff, 0xffff
        pseudo[BTH].fecn = pseudo[BTH].becn = 1
        pseudo[BTH].resv6 = 0x3f
        return BTH.pack_icrc(zlib.crc32(b"\xff" * 8 + bytes(pseudo)[:-4]))


class Congested(Dissectors):
    """Packets of queue pairs when some of their packets are marked."""

    keys = ("ce=100",)
    opcodes = {roce.RC | roce.SEND_ONLY, roce.RC | roce.ACK, roce.CNP_OPCODE}


class Daemon(Case):
    """The option of the daemon, with a port on which the test is the peer."""

    def start(self, *options, **more):
        command = [ORNICD, "-d", "path=%s/vm.sock" % self.folder, "-p", "dgram,local=%s/a,remote=%s/b,name=lan" % ((self.folder,) * 2)]
        ready, tell = os.pipe()
        child = subprocess.Popen([*command, "-r", str(tell), *options], pass_fds=[tell], stderr=subprocess.PIPE, text=True, **more)
        os.close(tell)
        self.addCleanup(child.stderr.close)
        with os.fdopen(ready) as pipe:
            return child, pipe.read() == "\n"

    def frame(self, *data):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
            peer.bind(self.folder + "/b")
            for bytes_ in data:
                peer.sendto(bytes_, self.folder + "/a")
        os.remove(self.folder + "/b")

    def stop(self, child):
        child.send_signal(signal.SIGTERM)
        said = child.stderr.read()
        self.assertEqual(child.wait(PATIENCE), 0, said)
        return said

    def test_file(self):
        good = bytes(6) + roce.build("10.0.0.9", "10.0.0.1", roce.SEND_ONLY, 0x11, 5, b"payload")[6:]
        child, ready = self.start("-w", self.path)
        self.assertTrue(ready)
        self.frame(good, good[:-1] + bytes([good[-1] ^ 1]))
        said = self.stop(child)
        self.assertIn("%s: 3 frames written, 0 dropped" % self.path, said)
        packets, interfaces = pcapng.read(self.path)
        self.assertEqual([(i.name, i.is_device) for i in interfaces], [("vm", True), ("lan", False)])
        # the second frame arrives before or after the first one is dropped for lack of an output port
        self.assertCountEqual([(p.interface.name, p.inbound, p.comments) for p in packets],
                              [("lan", True, []), ("lan", True, ["dropped: bad ICRC"]),
                               ("lan", False, ["dropped: not sent back to where it came from"])])
        self.assertEqual(packets[0].data, good)

    def test_standard_output(self):
        with open(self.path, "wb") as file:
            child, ready = self.start("-w", "-,port=lan", stdout=file)
        self.assertTrue(ready)
        self.frame(bytes(60))
        self.stop(child)
        packets, interfaces = pcapng.read(self.path)
        self.assertEqual([i.name for i in interfaces], ["lan"])
        self.assertEqual([(p.data, len(p.comments)) for p in packets], [(bytes(60), 0), (bytes(60), 1)])

    def test_file_and_standard_output(self):
        """Only one capture may go to standard output; a file next to it, named before or after, is a separate capture."""
        for number, order in enumerate((("%s", "-"), ("-", "%s"))):
            paths = [os.path.join(self.folder, "%s%d" % (name, number)) for name in ("file", "out")]
            with open(paths[1], "wb") as file:
                child, ready = self.start("-w", order[0].replace("%s", paths[0]), "-w", order[1].replace("%s", paths[0]), stdout=file)
            self.assertTrue(ready, order)
            self.frame(bytes(60))
            self.stop(child)
            for path in paths:
                self.assertEqual([p.data for p in pcapng.read(path)[0]], [bytes(60), bytes(60)], path)

    def test_standard_output_is_a_named_pipe(self):
        """A pipe takes one capture, also if one of two is to standard output."""
        os.mkfifo(self.path)
        reader = os.open(self.path, os.O_RDWR)
        self.addCleanup(os.close, reader)
        for specs, why in (((self.path, "-"), "another capture writes to standard output: choose a file"),
                           (("-", self.path), "capture 1 writes to %s: stop it or choose another name" % self.path)):
            child, ready = self.start("-w", specs[0], "-w", specs[1], stdout=reader)
            self.assertFalse(ready)
            self.assertIn(why, child.stderr.read())
            self.assertEqual(child.wait(PATIENCE), 1)

    def test_refused(self):
        with open(self.path, "w", encoding="ascii") as file:
            file.write("precious")
        for spec, why in ((self.path, "exists: remove it or choose another name"), ("/nosuchdir/x", "cannot write /nosuchdir/x"),
                          (self.path + "2,device=vm7", "there is no device vm7")):
            child, ready = self.start("-w", spec)
            self.assertFalse(ready)
            self.assertIn(why, child.stderr.read())
            self.assertEqual(child.wait(PATIENCE), 1)
        self.assertEqual(sorted(os.listdir(self.folder)), ["wire.pcapng"])

    def test_nothing_is_left_of_no_start(self):
        """A daemon that does not start creates no file, and its last message gives the reason."""
        rules = self.folder + "/rules"
        with open(rules, "w", encoding="ascii") as file:
            file.write("frob x\n")
        for options, why in ((["-f", rules], "frob"), (["-C", "/nosuchdir/control"], "/nosuchdir/control"),
                             (["-w", self.path + "2,device=vm7"], "there is no device vm7"), (["-w", self.path], "exists"),
                             (["-w", "-", "-w", "-"], "another capture writes to standard output: choose a file")):
            child, ready = self.start("-w", self.path, *options, stdout=subprocess.DEVNULL)
            self.assertFalse(ready)
            said = child.stderr.read()
            self.assertEqual(child.wait(PATIENCE), 1)
            self.assertRegex(said.splitlines()[-1], "^ornicd: error: .*" + why)
            self.assertEqual(os.listdir(self.folder), ["rules"])


if __name__ == "__main__":
    tap.main()
