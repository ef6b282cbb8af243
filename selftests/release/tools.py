# SPDX-License-Identifier: GPL-2.0
"""A few runs of the usual tools, between two VMs."""
import re

import harness

PERFTEST = 18515


class Tools(harness.GuestTest):
    def test_versions(self):
        """Both drivers load; print kernel and rdma-core versions."""
        said = self.a.run("uname -r; cat /var/lib/dpkg/status | grep -A9 '^Package: rdma-core$' | grep ^Version; ibv_devices").out
        self.assertIn(self.device, said)
        for line in said.splitlines():
            print("# " + line)

    def test_speed(self):
        """All tools show the same port speed; only newer rdma-core has the verb that returns it as one number."""
        self.assertIn("100 Gb/sec (4X EDR)", self.a.run("cat /sys/class/infiniband/%s/ports/1/rate" % self.device).out)
        for speed in re.findall(r"effective_speed:\s*(.*)", self.a.run("ibv_devinfo -v -d " + self.device).out):
            print("# effective speed " + speed)
            self.assertEqual(speed, "100.0 Gbps")

    def test_ping(self):
        self.a.run("ping -c 3 -i 0.1 -W 5 -I %s %s" % (self.p.netdev, self.p.address(self.b)))
        self.a.run("ping -6 -c 3 -i 0.1 -W 5 " + self.p.address(self.b, 6))

    def test_rping(self):
        self.exchange("between", "rping -s -a 0.0.0.0 -C 20", "rping -c -a {addr} -C 20", harness.cm_listens)

    def test_modules_again(self):
        """The drivers are unloaded and loaded again; the other VM is unaffected."""
        path = "/lib/modules/$(uname -r)/updates"
        self.b.run("rmmod ornic_ib ornic && insmod %s/ornic.ko && insmod %s/ornic_ib.ko" % (path, path))
        dev = self.b.run("ls /sys/bus/pci/drivers/ornic/*/net").out.split()[-1]
        self.b.run("ip link set %s up; ip addr replace %s/24 dev %s; ip -6 addr replace %s/64 dev %s nodad" % (
            dev, self.p.address(self.b), dev, self.p.address(self.b, 6), dev))
        self.a.run("ping -c 1 -W 10 " + self.p.address(self.b))

    def test_cq_buffer(self):
        """A CQ in a buffer that the attributes of the command name, by address or in a dma-buf."""
        if harness.GUEST == "bookworm":
            self.skipTest("kernel 6.1 has no such attributes")
        self.a.push(harness.PROGRAMS, "/tmp/selftests")
        self.a.run("/tmp/selftests/verbs_cq_buffer " + self.device)

    def check(self, place, program, options):
        """Run one of libibverbs' examples or of perftest."""
        commands = ["%s -d %s %s %d %s" % (program, self.device, "-g" if "pingpong" in program else "-x",
                                           self.p.gid_index(vm), options) for vm in self.ends(place)]
        self.exchange(place, commands[0], commands[1] + " {addr}", PERFTEST)


harness.matrix(Tools, rc_pingpong=("ibv_rc_pingpong", "-n 200 -c"), ud_pingpong=("ibv_ud_pingpong", "-n 200"),
               write_bw=("ib_write_bw", "-F -n 500"), read_bw=("ib_read_bw", "-F -n 500"),
               send_lat=("ib_send_lat", "-F -n 200"), atomic_lat=("ib_atomic_lat", "-F -n 200"))
