#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The RDMA device of an ornic function has a RoCE v2 GID, names the network
# interface of the function and has counters. It goes away when the driver is
# unbound and comes back when it is bound again. The network interface loses its
# configuration by that.

DIR="$(dirname "$(readlink -f "$0")")"
# shellcheck source=/dev/null
source "${DIR}/../../../kselftest/ktap_helpers.sh"

DRIVER=/sys/bus/pci/drivers/ornic

# Prints the PCI address of the first function with an RDMA device.
find_function()
{
	local dev

	for dev in "${DRIVER}"/*:*:*.*; do
		if [ -d "${dev}/infiniband" ]; then
			basename "${dev}"
			return
		fi
	done
}

# wait_for PATH: at most 10 s
wait_for()
{
	local i

	for i in $(seq 100); do
		[ -e "$1" ] && return 0
		sleep 0.1
	done
	return 1
}

check()
{
	local description="$1"

	shift
	if "$@"; then
		ktap_test_pass "${description}"
	else
		ktap_test_fail "${description}"
	fi
}

gid_is_rocev2()
{
	[ "$(cat "${PORT}/gid_attrs/types/0")" = "RoCE v2" ]
}

gid_names_netdev()
{
	[ -d "${DRIVER}/${PCI}/net/$(cat "${PORT}/gid_attrs/ndevs/0")" ]
}

port_has_counters()
{
	[ -n "$(ls "${PORT}/hw_counters")" ]
}

unbind()
{
	echo "${PCI}" > "${DRIVER}/unbind" && [ ! -e "/sys/class/infiniband/${IBDEV}" ]
}

bind()
{
	echo "${PCI}" > "${DRIVER}/bind" &&
		wait_for "${DRIVER}/${PCI}/net" && wait_for "${DRIVER}/${PCI}/infiniband"
}

ktap_print_header
PCI=$(find_function)
if [ -z "${PCI}" ]; then
	ktap_skip_all "no ornic function with an RDMA device"
	exit "${KSFT_SKIP}"
fi
if [ "$(id -u)" -ne 0 ]; then
	ktap_skip_all "needs root"
	exit "${KSFT_SKIP}"
fi
IBDEV=$(ls "${DRIVER}/${PCI}/infiniband")
PORT="/sys/class/infiniband/${IBDEV}/ports/1"

ktap_set_plan 5
check "GID 0 is of RoCE v2" gid_is_rocev2
check "GID 0 names the network interface of the function" gid_names_netdev
check "the port has counters" port_has_counters
check "unbind removes the RDMA device" unbind
check "bind brings network interface and RDMA device back" bind
ktap_finished
