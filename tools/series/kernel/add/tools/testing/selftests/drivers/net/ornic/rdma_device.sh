#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The RDMA device of an ornic function names its network interface, has counters,
# and comes back after unbind and bind.

skip=4

fail()
{
	echo "FAIL: $1"
	exit 1
}

wait_for()
{
	tries=50
	while [ ! -e "$1" ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "$1 did not come back"
		sleep 0.1
	done
}

driver=/sys/bus/pci/drivers/ornic
pci=
for dev in "$driver"/*:*:*.*; do
	[ -d "$dev/infiniband" ] && pci=${dev##*/} && break
done
[ "$pci" ] || { echo "SKIP: no ornic device"; exit $skip; }
[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit $skip; }

ibdev=$(ls "$driver/$pci/infiniband")
port=/sys/class/infiniband/$ibdev/ports/1
[ "$(cat "$port/gid_attrs/types/0")" = "RoCE v2" ] || fail "GID 0 of $ibdev is not of RoCE v2"
[ -d "$driver/$pci/net/$(cat "$port/gid_attrs/ndevs/0")" ] || fail "$ibdev names another interface"
[ -n "$(ls "$port/hw_counters")" ] || fail "$ibdev has no counters"

echo "$pci" > "$driver/unbind" || fail "unbind of $pci"
[ ! -e "/sys/class/infiniband/$ibdev" ] || fail "$ibdev outlived its function"
echo "$pci" > "$driver/bind" || fail "bind of $pci"
wait_for "$driver/$pci/infiniband"
wait_for "$driver/$pci/net"
echo "PASS"
