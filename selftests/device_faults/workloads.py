# SPDX-License-Identifier: GPL-2.0
"""The workloads that run in the VM during the faults: shell scripts, each of which is repeated until the round is over.

The VM has two ornic devices. The first one is behind the proxy that injects the faults. The interface of the second one is in the
network namespace "peer", so that frames between them leave the VM's kernel. RDMA needs no peer, because queue pairs of one device are
connected to each other.
"""
import harness
from proxied import UPDATES

SLOT, OTHER = "0000:01:00.0", "0000:02:00.0"
PCI, AUX = "/sys/bus/pci/drivers/ornic", "/sys/bus/auxiliary/drivers/ornic_ib*"
ALONE = "ibv_rc_pingpong -d ornic0 -g 1 -n 20"
CONFIG = "/sys/kernel/config/nvmet"
STOP = "/tmp/work/stop"
# nvme_rdma (6.12 to 7.2) misses a controller that is still connecting when its device is removed: remove_one() walks a list to which
# create_ctrl() adds the controller only at its end. ib_core then frees CQs in use, and the controller uses the device afterwards.
# It does not wait either for a controller that a write to delete_controller is removing: that is not the work of nvme_delete_wq.
# So the workload connects and deletes only while the file SAFE exists, when no fault is injected, and under LOCK, which keeps "bind"
# away. A removed device deletes its controllers under faults, too. A controller whose connection fails does not connect again
# (ctrl_loss_tmo=0): nvme_rdma_alloc_queue() waits for rdma_cm without a limit, and a removal meanwhile does not wake it, so the removal
# never ends (6.12 and 7.2). A reset after a missed keep-alive still connects again.
SAFE, LOCK = "/tmp/work/safe", "/tmp/work/nvme.lock"
# An administrator who does not rest while this file exists
OFTEN = "/tmp/work/often"

# Factor of the time limits of steps. All workloads share the processors, so a step takes much longer than alone.
SLOW = 4 if harness.DEBUG else 1
# Pieces of 64 KiB that NVMe and NFS move each time: on a slow kernel few, because faults soon end a connection
PIECES = 8 if harness.DEBUG else 32
# Functions for all scripts. A script continues after a failed step. It succeeds if the last step does; of those that move data, if the
# data was moved.
COMMON = """
iface() { basename /sys/bus/pci/devices/%s/net/*; }
at_most() { limit=$(($1 * %d)); shift; timeout -k 1 $limit "$@"; }
""" % (SLOT, SLOW)

# Set the addresses of both interfaces and move the second one to its namespace. Repeated, because the device comes and goes.
# The MAC address changes only while the interface has no IP address. A change replaces the GIDs, so ib_cm cannot create the address
# handle of a DREQ on an older connection, and rdma_cm reports no DISCONNECTED event (seen on 6.12.117, with rxe, too). xprtrdma waits
# for this event, so rpcrdma_remove_one() would never return.
KEEP = """
for s in {slot} {other}; do [ -e {pci}/$s ] || echo $s > {pci}/bind; done
i=$(iface); ip addr show $i | grep -q 10.88.0.1/ || ip link set $i address 02:00:00:00:00:77
ip link set $i up; ip addr replace 10.88.0.1/24 dev $i
o=$(basename /sys/bus/pci/devices/{other}/net/*)
[ ! -e /sys/class/net/$o ] || ip link set $o netns peer
ip netns exec peer sh -c 'for o in $(ls /sys/class/net | grep -v "^lo$"); do ip link set $o up; ip addr replace 10.88.0.2/24 dev $o; done'
ip addr show $i | grep -q 10.88.0.1/; kept=$?
sleep 0.5
exit $kept
""".format(slot=SLOT, other=OTHER, pci=PCI)

WORKLOADS = {
    "keep": KEEP,
    # actions of an administrator on the device, but none while no fault is injected, so that the other workloads make progress
    "bind": """
while [ -e {safe} ]; do sleep 1; done
exec 9>{lock}; flock 9
case $(($(od -An -N2 -tu2 /dev/urandom) %% 9)) in
0) for d in {aux}; do for n in $d/ornic.*; do n=$(basename $n); echo $n > $d/unbind; echo $n > $d/bind; done; done ;;
1) echo {slot} > {pci}/unbind; echo {slot} > {pci}/bind ;;
2) echo 1 > /sys/bus/pci/devices/{slot}/reset ;;
3) at_most 60 devlink dev reload pci/{slot} ;;
4) ip link set $(iface) down; sleep 0.5; ip link set $(iface) up ;;
5) echo 1 > /sys/bus/pci/devices/{slot}/remove; sleep 0.5; echo 1 > /sys/bus/pci/rescan ;;
esac
exec 9>&-
[ -e {often} ] || sleep $(($(od -An -N1 -tu1 /dev/urandom) %% 12 + 6))
""".replace("%%", "%").format(often=OFTEN, aux=AUX, pci=PCI, slot=SLOT, lock=LOCK, safe=SAFE),
    "netdev": """
i=$(iface)
ip link set $i mtu 1400; ethtool -S $i; ip link set $i promisc on; ethtool $i; ip link set $i promisc off
ethtool -g $i; ethtool -G $i rx 128 tx 128; ethtool -c $i; ethtool -C $i rx-usecs 20; ethtool -l $i; ethtool -k $i
ip maddr add 01:00:5e:00:00:77 dev $i; ip maddr del 01:00:5e:00:00:77 dev $i
ip link add link $i name v7 type vlan id 7 && { ip link set v7 up; ip addr add 10.89.0.1/24 dev v7; sleep 0.2; ip link del v7; }
ip -s link show $i; ip link set $i mtu 1500; ip link set $i mtu 4000; ethtool -G $i rx 512 tx 512
at_most 5 devlink dev info; at_most 5 devlink health; at_most 5 devlink port; ping -c 3 -i 0.2 -W 1 10.88.0.2
""",
    "iperf3": """
pidof iperf3 >/dev/null || ip netns exec peer iperf3 -s -D
moved=1
for how in "" "-R" "-u -b 20M" "-u -b 20M -R -l 4000"; do at_most 8 iperf3 -c 10.88.0.2 -t 3 --connect-timeout 2000 $how && moved=0; done
exit $moved
""",
    "verbs": """
at_most 5 ibv_devinfo -v
at_most 5 rdma statistic qp set link ornic0/1 auto type on
{ at_most 8 %s & }; sleep 1; at_most 8 %s 10.88.0.1; moved=$?
at_most 25 /tmp/selftests/verbs_storm_churn -s $(od -An -N2 -tu2 /dev/urandom) -n 20 ornic0 tough
at_most 8 /tmp/selftests/verbs_storm_churn -s 1 -n 20 ornic0 rereg
exit $moved
""" % (ALONE, ALONE),
    # objects that the others create rarely, each by a process of its own, because an injected fault ends it. The random order lets each
    # meet faults, and the priority many. On a debug kernel the others need the time.
    "objects": """
[ %d != 1 ] || renice -n -15 $$
for c in $(shuf -n %d -e cq_resize cq_moderate srq srq_xrc srq_use xrcd_file dm mr_dm mw_2 flow rwq_table qp_srq qp_xrc_ini qp_xrc_tgt \
           qp_rss wq); do
    at_most 5 /tmp/selftests/verbs_faults -n ornic0 $c; made=$?
done
sleep %d
exit $made
""" % (SLOW, 16 if SLOW == 1 else 1, 0 if SLOW == 1 else 5),
    "look": """
for o in ctx pd cq qp mr srq cm_id; do at_most 5 rdma res show $o -dd; done
at_most 5 rdma statistic; at_most 5 rdma statistic qp show link ornic0/1
for q in $(rdma res show qp link ornic0/1 | grep -o 'lqpn [0-9]*' | cut -d' ' -f2 | head -n 4); do
    at_most 5 rdma statistic qp bind link ornic0/1 lqpn $q
    n=$(rdma statistic qp show link ornic0/1 | grep -o 'cntn [0-9]*' | cut -d' ' -f2 | tail -n 1)
    [ ! "$n" ] || at_most 5 rdma statistic qp unbind link ornic0/1 cntn $n lqpn $q
done
at_most 5 rdma statistic qp set link ornic0/1 auto off
cat /sys/class/infiniband/ornic0/ports/1/hw_counters/* /sys/class/infiniband/ornic0/ports/1/gids/*; read=$?
sleep 1
exit $read
""",
    "nvme": """
echo 5 > /sys/module/nvme_core/parameters/admin_timeout; echo 5 > /sys/module/nvme_core/parameters/io_timeout
exec 9>%s; flock 9
[ ! -e %s ] || {
    for d in /sys/class/nvme/nvme*; do [ ! -e $d ] || echo 1 > $d/delete_controller; done
    echo transport=rdma,traddr=10.88.0.1,trsvcid=4420,nqn=f,ctrl_loss_tmo=0 > /dev/nvme-fabrics
}
exec 9>&-
n=0; until [ -b /dev/nvme0n1 ] || [ $n = %d ]; do sleep 0.1; n=$((n + 1)); done
moved=1
for n in 1 2 3; do
    [ -b /dev/nvme0n1 ] && at_most 10 dd if=/dev/nvme0n1 of=/dev/null iflag=direct bs=64k count=%d &&
    at_most 10 dd if=/dev/zero of=/dev/nvme0n1 oflag=direct bs=64k count=%d && moved=0
done
exit $moved
""" % (LOCK, SAFE, 30 * SLOW, PIECES, PIECES),
    "nfs": """
at_most 30 mount -i -t nfs4 -o vers=4.2,proto=rdma,port=20049,addr=10.88.0.1,clientaddr=10.88.0.1,soft,timeo=20,retrans=1 10.88.0.1:/ /mnt
moved=1
mountpoint -q /mnt && for n in 1 2 3; do
    at_most 20 dd if=/dev/zero of=/mnt/f bs=64k count=%d conv=fsync && at_most 20 dd if=/mnt/f of=/dev/null bs=64k iflag=direct && moved=0
    at_most 20 ls -l /mnt
done
at_most 30 umount /mnt || at_most 30 umount -f -l /mnt
exit $moved
""" % PIECES,
    "rds": """
at_most 15 python3 -c '
import socket, time
a, b = (socket.socket(21, socket.SOCK_SEQPACKET, 0) for _ in range(2))
a.bind(("10.88.0.1", 4001)); b.bind(("10.88.0.1", 4002))
for s in a, b:
    s.settimeout({slow} * 2)
end, n, answers = time.monotonic() + {slow} * 10, 0, 0
while time.monotonic() < end:
    try:
        n += 1
        a.sendto(bytes(n % 7 * 5000 + 1), ("10.88.0.1", 4002)); b.recv(65536)
        b.sendto(b"x", ("10.88.0.1", 4001)); a.recv(65536)
        answers += 1
    except OSError:
        pass
print(answers, "of", n, "answers")
raise SystemExit(not answers)
'
""".format(slow=SLOW),
}

# Setup for the kernel's consumers; it remains when the drivers are unloaded. An NFS export needs no daemon if the caches are prefilled.
SETUP = COMMON + """
mkdir -p /tmp/work /srv/nfs
ip netns add peer; ip netns exec peer ip link set lo up
modprobe -a nvmet nvmet-rdma nvme-rdma null_blk nfsd nfsv4 rpcrdma rds
insmod /tmp/selftests/ornic_rds_free.ko && modprobe rds_rdma && insmod /tmp/selftests/ornic_rds.ko || exit
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
cd {config}; mkdir -p subsystems/f/namespaces/1 ports/1; echo 1 > subsystems/f/attr_allow_any_host
echo -n /dev/nullb0 > subsystems/f/namespaces/1/device_path; echo 1 > subsystems/f/namespaces/1/enable
cd ports/1; echo -n rdma > addr_trtype; echo -n ipv4 > addr_adrfam; echo -n 0.0.0.0 > addr_traddr; echo -n 4420 > addr_trsvcid
ln -s {config}/subsystems/f subsystems/f
mountpoint -q /srv/nfs || mount -t tmpfs -o size=64M none /srv/nfs
mountpoint -q /proc/fs/nfsd || mount -t nfsd none /proc/fs/nfsd
cd /proc/fs/nfsd; echo -2 -3 +4 +4.1 +4.2 > versions; echo 10 > nfsv4leasetime; echo 10 > nfsv4gracetime; echo rdma 20049 > portlist
cd /proc/net/rpc
echo nfsd 10.88.0.1 2147483647 all > auth.unix.ip/channel
echo 'all /srv/nfs 2147483647 9234 0 0 0' > nfsd.export/channel
echo 'all 1 \\x00000000 2147483647 /srv/nfs' > nfsd.fh/channel
echo 4 > /proc/fs/nfsd/threads; echo Y > /proc/fs/nfsd/v4_end_grace
true
""".format(config=CONFIG)

# Bind the function again if the faults have left it without a working RDMA device: the driver gives a device up after a few failed
# recoveries. Otherwise the other workloads would wait until the workload "bind" happens to do this.
REVIVE = """exec 9>{lock}; flock 9
n=0; until rdma link show ornic0/1 2>/dev/null | grep -q 'state ACTIVE' || [ $n = 20 ]; do sleep 0.2; n=$((n + 1)); done
[ $n -lt 20 ] || {{ echo {slot} > {pci}/unbind; echo {slot} > {pci}/bind; }}
exec 9>&-""".format(lock=LOCK, slot=SLOT, pci=PCI)

# Repeat one workload until the stop file exists, and count how often it succeeded. Its last output is kept for a finding.
LOOP = """n=0; while [ ! -e %s ]; do
    sh /tmp/work/{name} >/tmp/work/{name}.log 2>&1 && n=$((n + 1)); echo $n > /tmp/work/{name}.rounds; sleep 0.2
done""" % STOP
# Programs with an open device prevent unloading of the driver; the kernel's own consumers do not.
KILL = """touch %s; pkill -9 -f '^sh /tmp/work/'
kill -9 $(pidof verbs_storm_churn ibv_rc_pingpong ibv_devinfo iperf3 rdma devlink ethtool ping dd) 2>/dev/null; true""" % STOP
CLEAN = """for d in /sys/class/nvme/nvme*; do [ ! -e $d ] || echo 1 > $d/delete_controller; done
    mountpoint -q /mnt && umount -f -l /mnt
    ip netns exec peer true
    true"""

__all__ = ["ALONE", "CLEAN", "COMMON", "KEEP", "KILL", "LOCK", "LOOP", "OFTEN", "OTHER", "PCI", "REVIVE", "SAFE", "SETUP", "SLOT", "STOP", "UPDATES",
           "WORKLOADS"]
