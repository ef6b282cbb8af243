# SPDX-License-Identifier: GPL-2.0
"""Which ornicd serves which VM, and how the daemons are joined when there are several.

    one     all VMs on one daemon
    udp     each VM on a separate daemon, as on a separate host; a UDP tunnel over loopback joins daemon 0 to each other
    veth    the same, each daemon in a separate network namespace; a veth pair joins daemon 0 to each other

With more than two daemons the one of VM 0 is the hub of a star: the switches of the daemons do not detect loops.
"""
import dataclasses
import socket
import subprocess

from .errors import LabError

KINDS = ("one", "udp", "veth")
MTU = 9000                      # of the veth pairs: room for RoCEv2 of the largest path MTU


@dataclasses.dataclass
class Host:
    """One daemon: numbers of its VMs, its --port values, whether it has a separate network namespace."""
    vms: list
    ports: list = dataclasses.field(default_factory=list)
    apart: bool = False


def plan(kind, vms):
    """Return the hosts of a lab of that many VMs."""
    if kind == "one":
        return [Host(list(range(vms)))]
    hosts = [Host([number], apart=kind == "veth") for number in range(vms)]
    for number in range(1, vms):
        for host, port in zip((hosts[0], hosts[number]), join(kind, number)):
            host.ports.append(port)
    return hosts


def join(kind, number):
    """Return the ports of daemon 0 and of daemon number that lead to each other."""
    if kind == "veth":
        return ["packet,ifname=%s" % name for name in pair(number)]
    hub, spoke = free_udp_ports(2)
    return ["udp,name=to%d,local=127.0.0.1:%d,remote=127.0.0.1:%d" % (to, mine, other)
            for to, mine, other in ((number, hub, spoke), (0, spoke, hub))]


def pair(number):
    """Return the names of the two ends of the veth pair from daemon 0 to daemon number."""
    return "to%d" % number, "to0"


def free_udp_ports(count):
    """Return unused ports of loopback: all are reserved together, so that they differ, and released for the daemons."""
    held = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def cable(pids):
    """Join the network namespace of daemon 0's process with that of each other one by veth pairs that are up."""
    for number in range(1, len(pids)):
        ends = list(zip(pair(number), (pids[0], pids[number])))
        (name, pid), (peer, peer_pid) = ends
        run("ip", "link", "add", name, "mtu", str(MTU), "netns", str(pid), "type", "veth",
            "peer", "name", peer, "mtu", str(MTU), "netns", str(peer_pid))
        for name, pid in ends:
            run("nsenter", "--net=/proc/%d/ns/net" % pid, "ip", "link", "set", name, "up")


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise LabError("no %s here: apt-get install iproute2 util-linux" % command[0]) from None
    if done.returncode:
        raise LabError("%s: %s" % (" ".join(command), done.stderr.strip()))
