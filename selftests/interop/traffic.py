# SPDX-License-Identifier: GPL-2.0
"""The usual tools between ornic and Soft-RoCE: perftest, rdma_cm's examples, multicast; over VLANs and with each MTU."""
import harness
import peers

from control import Client      # pylint: disable=wrong-import-order

PORT = 18515
PATIENCE = 180
VLAN = 5
NET = "10.89"                   # of the VLAN, and its IPv6 network
NET6 = "fd89"
VLAN_UP = """ip link add link {link} name vlan{vlan} type vlan id {vlan} && ip address add {net}.0.{number}/24 dev vlan{vlan} &&
ip address add {net6}::{number}/64 dev vlan{vlan} nodad && ip link set vlan{vlan} up
until grep -q ^{net6}: /sys/class/infiniband/{device}/ports/1/gids/*; do sleep 0.05; done"""


class Tools(peers.Roles, harness.GuestTest):
    def perftest(self, place, program, options="", mtu=1024, net=None):
        """Run perftest. net: addresses are those in this network."""
        command = "%s -d %s -x %d -F -p %d -m %d -u 18 %s"
        net = net or self.p.net
        ends = [command % (program, self.p.device_of(vm), self.gid(vm, net), PORT, mtu, options) for vm in self.ends(place)]
        there = "%s.0.%d" % (net, self.ends(place)[0].number + 1)
        out, _ = self.exchange(place, ends[0], "%s %s" % (ends[1], there), PORT, PATIENCE)
        self.assertRegex(out, r"(?m)^\s*\d+\s+\d+\s+[\d.inf]+\s", "no row of results: " + out)

    def gid(self, vm, net):
        """Return the index of the GID of the VM's IPv4 address in a network; wait for it."""
        word = "%02x%02x" % tuple(int(part) for part in net.split("."))
        return int(vm.run("cd /sys/class/infiniband/%s/ports/1/gids; until grep -l ffff:%s: *; do sleep 0.05; done"
                          % (self.p.device_of(vm), word), timeout=30).out.split()[0])

    def cm(self, place, server, client, net=None):
        there = self.ends(place)[0]
        net = net or self.p.net
        address = {"addr": "%s.0.%d" % (net, there.number + 1), "addr6": "fd%s::%d" % (net[3:], there.number + 1)}
        self.exchange(place, server.format(**address), client.format(**address), harness.cm_listens, PATIENCE)

    def multicast(self, place):
        """Send datagrams from one to a group that the other has joined. The group is of IPv4, because the kernel's connection
        manager joins no others on RoCEv2; the verbs tests cover IPv6.

        Soft-RoCE loses unsent datagrams when its queue pair is destroyed, and mckey exits at once, so the test repeats until
        they arrive.
        """
        there, here = self.ends(place)
        receiver = self.spawn(there, "mckey -m 239.9.9.9 -b %s -C 10" % self.p.address(there), PATIENCE)
        receiver.wait_for("receiving data transfers", 60)
        for _ in range(12):
            here.run("mckey -m 239.9.9.9 -b %s -s -C 10" % self.p.address(here), timeout=60)
            if receiver.poll() is not None:
                break
        self.assertEqual(receiver.wait(10), 0, receiver.text())

    def vlan_interface(self, vm):
        self.addCleanup(vm.run, "ip link delete vlan%d" % VLAN, check=False)
        vm.run(VLAN_UP.format(link=self.p.link[vm], vlan=VLAN, net=NET, net6=NET6, number=vm.number + 1,
                              device=self.p.device_of(vm)), timeout=30)
        self.gid(vm, NET)

    def vlan(self, place, method, *arguments):
        """Run the same with both ends on an interface of a VLAN."""
        for vm in (self.a, self.b):
            self.vlan_interface(vm)
        # rdma_cm asks for the other's MAC address from the link-local address, which is unusable in its first seconds, and gives
        # up
        self.a.run("ping -c 1 -W 10 %s::%d" % (NET6, self.b.number + 1))
        getattr(self, method)(place, *arguments, net=NET)

    def access_port(self, place, method, *arguments):
        """Run the same with Soft-RoCE on an interface of a VLAN, and ornic behind an access port of it, without a VLAN
        interface."""
        control = Client(self.p.lab.state.path("control0"))
        self.addCleanup(control.close)
        device = control.call("device.list")[0]["name"]
        self.addCleanup(control.call, "port.vlan", port=device, vlan=0)
        control.call("port.vlan", port=device, vlan=VLAN)
        self.vlan_interface(self.b)
        change = "ip address %%s %s.0.1/24 dev %s" % (NET, self.p.link[self.a])
        self.addCleanup(self.a.run, change % "delete")
        self.a.run(change % "add")
        getattr(self, method)(place, *arguments, net=NET)


PERFTEST = dict(
    write_bw=("ib_write_bw", "-s 1048576 -n 5"),
    write_bw_8_qps=("ib_write_bw", "-q 8 -s 65536 -n 10"),
    write_bw_both_ways=("ib_write_bw", "-b -s 65536 -n 10"),
    read_bw=("ib_read_bw", "-o 16 -s 1048576 -n 5"),
    send_bw=("ib_send_bw", "-s 1048576 -n 5"),
    send_bw_uc=("ib_send_bw", "-c UC -s 1024 -n 20"),
    write_bw_uc=("ib_write_bw", "-c UC -s 65536 -n 10"),
    send_bw_ud=("ib_send_bw", "-c UD -s 1024 -n 20"),
    write_lat=("ib_write_lat", "-s 2 -n 20"),
    read_lat=("ib_read_lat", "-o 16 -s 2 -n 20"),
    send_lat=("ib_send_lat", "-s 2 -n 20"),
    write_lat_uc=("ib_write_lat", "-c UC -s 2 -n 20"),
    send_lat_uc=("ib_send_lat", "-c UC -s 2 -n 20"),
    send_lat_ud=("ib_send_lat", "-c UD -s 2 -n 20"),
    atomic_add=("ib_atomic_bw", "-o 16 -A FETCH_AND_ADD -n 50"),
    atomic_swap_bw=("ib_atomic_bw", "-o 16 -A CMP_AND_SWAP -n 50"),
    atomic_add_lat=("ib_atomic_lat", "-o 16 -A FETCH_AND_ADD -n 20"),
    atomic_swap=("ib_atomic_lat", "-o 16 -A CMP_AND_SWAP -n 20"),
)
MTU_4096 = {"%s_mtu_4096" % name: PERFTEST[name] + (4096,) for name in ("write_bw", "read_bw", "send_bw")}
# Few tests have all sizes: perftest fills 16 MiB with random numbers first, which takes seconds in a VM without KVM, and sends 80 MiB,
# which takes Soft-RoCE half a minute by packets of 1024 bytes. Lengths that need padding, and every byte of them, are in the verbs
# tests.
ALL_SIZES = {"%s_all_sizes" % name: ("ib_%s" % name, "-a -n 5 " + more, 4096)
             for name, more in (("write_bw", ""), ("read_bw", "-o 16"), ("send_bw", ""))}
# Datagrams end with the MTU. Of the tests over unreliable connections only WRITE_BW does not wait for messages that a slow
# receiver loses.
ALL_SIZES.update(
    send_bw_ud_all_sizes=("ib_send_bw", "-c UD -a -n 5", 4096),
    write_bw_uc_all_sizes=("ib_write_bw", "-c UC -a -n 5", 4096),
)
CM = dict(
    rping=("rping -s -a {addr} -V -C 10", "rping -c -a {addr} -V -C 10"),
    rping_ipv6=("rping -s -a {addr6} -V -C 10", "rping -c -a {addr6} -V -C 10"),
    rping_large=("rping -s -a {addr} -V -C 3 -S 65000", "rping -c -a {addr} -V -C 3 -S 65000"),
    ucmatose=("ucmatose -b {addr}", "ucmatose -s {addr}"),
    ucmatose_ipv6=("ucmatose -f ipv6 -b {addr6}", "ucmatose -f ipv6 -s {addr6}"),
    udaddy=("udaddy -b {addr}", "udaddy -s {addr}"),
    udaddy_ipv6=("udaddy -f ipv6 -b {addr6}", "udaddy -f ipv6 -s {addr6}"),
)
OVER_VLAN = dict(
    vlan_write_bw=("perftest",) + PERFTEST["write_bw"],
    vlan_read_bw=("perftest",) + PERFTEST["read_bw"],
    vlan_send_bw_ud=("perftest",) + PERFTEST["send_bw_ud"],
    vlan_rping=("cm",) + CM["rping"],
    vlan_rping_ipv6=("cm",) + CM["rping_ipv6"],
    vlan_udaddy_ipv6=("cm",) + CM["udaddy_ipv6"],
)
BY_ACCESS_PORT = dict(
    access_port_write_bw=("perftest",) + PERFTEST["write_bw"],
    access_port_send_bw_ud=("perftest",) + PERFTEST["send_bw_ud"],
    access_port_rping=("cm",) + CM["rping"],
)


def add(everything):
    """Give Tools all its tests, or the most significant ones."""
    few = ("write_bw", "read_bw", "send_bw", "send_bw_ud", "atomic_add", "rping", "rping_ipv6", "udaddy", "vlan_write_bw", "multicast")
    for method, tests in (("perftest", PERFTEST), ("perftest", MTU_4096), ("perftest", ALL_SIZES), ("cm", CM),
                          ("vlan", OVER_VLAN), ("access_port", BY_ACCESS_PORT), ("multicast", {"multicast": ()})):
        peers.add(Tools, method, tests if everything else {name: tests[name] for name in few if name in tests})
