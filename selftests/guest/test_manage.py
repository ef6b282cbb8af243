#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tasks of administrators of larger machines: network namespaces, defaults of the connection manager, devlink, ethtool."""
import json

import harness
from harness import cm_listens
from loop import Loop

SPACE = "ornic-test"
CONFIGFS = "/sys/kernel/config/rdma_cm"
TOS_AT = 0x5c                                   # offset of traffic_class of the path in QP_QUERY's answer


class Namespace(harness.GuestTest):
    """The RDMA device of VM a in a separate namespace, with its network interface."""

    ornic_only = True

    def setUp(self):
        super().setUp()
        self.dev = self.p.netdev
        self.addCleanup(self.back)
        self.a.run("rdma system set netns exclusive; ip netns add %s; ip link set %s netns %s; rdma dev set %s netns %s"
                   % (SPACE, self.dev, SPACE, self.device, SPACE))
        self.inside("ip link set lo up; ip link set %s up" % self.dev)
        self.addresses("ip netns exec %s " % SPACE)

    def inside(self, command, **options):
        return self.a.run("ip netns exec %s sh -c '%s'" % (SPACE, command), **options)

    def addresses(self, prefix=""):
        address = self.p.address(self.a)
        self.a.run("%sip addr replace %s/24 dev %s; %sip -6 addr replace %s/64 dev %s nodad; "
                   "until %sgrep -rq ffff: /sys/class/infiniband/%s/ports/1/gids; do sleep 0.05; done"
                   % (prefix, address, self.dev, prefix, self.p.address(self.a, 6), self.dev, prefix, self.device), timeout=20)

    def back(self):
        """Delete the namespace, which returns both devices."""
        self.a.run("ip netns del %s; until rdma link show %s/1 && [ -e /sys/class/net/%s ]; do sleep 0.05; done; "
                   "ip link set %s up" % (SPACE, self.device, self.dev, self.dev), timeout=30)
        self.addresses()
        self.a.run("until rdma system set netns shared; do sleep 0.1; done", timeout=20)

    def gid_index(self):
        found = self.inside("grep -l ffff: /sys/class/infiniband/%s/ports/1/gids/* | head -n 1" % self.device).out
        return int(found.strip().rsplit("/", 1)[1])

    def test_alone(self):
        """The device is visible and usable inside, and neither outside."""
        self.assertNotIn(self.device, self.a.run("rdma link").out)
        self.assertIn("state ACTIVE", self.inside("rdma link show %s/1" % self.device).out)
        self.assertNotEqual(self.a.run("ibv_rc_pingpong -d %s -g 1 -n 1" % self.device, check=False, timeout=20).rc, 0)
        Loop(self, self.a, self.gid_index(), prefix="ip netns exec %s" % SPACE).do("write 1000 5")

    def test_traffic(self):
        """Connections to another machine, with the connection manager and without."""
        self.exchange("between", "rping -s -a %s -V -C 10" % self.p.address(self.b),
                      "ip netns exec %s rping -c -a {addr} -V -C 10" % SPACE, cm_listens)
        self.exchange("between", "ibv_rc_pingpong -d %s -g %d -n 50 -c" % (self.device, self.p.gid_index(self.b)),
                      "ip netns exec %s ibv_rc_pingpong -d %s -g %d -n 50 -c {addr}" % (SPACE, self.device, self.gid_index()), 18515)
        self.inside("ping -c 1 -W 5 %s" % self.p.address(self.b))


class Defaults(harness.GuestTest):
    ornic_only = True

    def setUp(self):
        super().setUp()
        self.folder = "%s/%s/ports/1" % (CONFIGFS, self.device)
        self.addCleanup(self.a.run, "rmdir %s/%s" % (CONFIGFS, self.device), check=False)
        self.a.run("modprobe -a configfs rdma_cm; mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config; "
                   "mkdir %s/%s" % (CONFIGFS, self.device))

    def classes(self, vm):
        """Return the traffic classes in the paths of a VM's connected queue pairs, as reported by the device."""
        entries = json.loads(vm.run("rdma -j res show qp -r").out)
        return {entry["data"][TOS_AT] for entry in entries} - {0}

    def test_type_of_service(self):
        """The default reaches the queue pairs of both ends: the remote end learns it from the connection request."""
        self.a.run("echo 96 > %s/default_roce_tos" % self.folder)
        self.assertEqual(self.a.run("cat %s/default_roce_tos" % self.folder).out.strip(), "96")
        server = self.spawn(self.b, "rping -s -a %s" % self.p.address(self.b), 60)
        cm_listens(self.b)
        client = self.spawn(self.a, "rping -c -a %s -C 1000000" % self.p.address(self.b), 60)
        self.a.run("until rdma res show qp | grep -q 'type RC state RTS'; do sleep 0.05; done", timeout=20)
        self.assertEqual([self.classes(vm) for vm in (self.a, self.b)], [{96}, {96}])
        client.kill()
        server.kill()

    def test_mode(self):
        """RoCE v2 is the default and the only mode."""
        self.assertEqual(self.a.run("cat %s/default_roce_mode" % self.folder).out.strip(), "RoCE v2")
        self.assertNotEqual(self.a.run("echo 'IB/RoCE v1' > %s/default_roce_mode" % self.folder, check=False).rc, 0)
        self.a.run("echo 'RoCE v2' > %s/default_roce_mode" % self.folder)


class Devlink(harness.GuestTest):
    ornic_only = True

    def test_info(self):
        info = json.loads(self.a.run("devlink -j dev info pci/0000:01:00.0").out)["info"]["pci/0000:01:00.0"]
        self.assertEqual(info["driver"], "ornic")
        mac = self.a.run("cat /sys/class/net/%s/address" % self.p.netdev).out.strip().replace(":", "")
        self.assertEqual(info["serial_number"], mac)
        firmware = self.a.run("cat /sys/class/infiniband/%s/fw_ver" % self.device).out.strip()
        self.assertEqual(info["versions"]["running"]["fw"], firmware)
        self.assertEqual(info["versions"]["fixed"]["asic.rev"], "1")


if __name__ == "__main__":
    harness.main()
