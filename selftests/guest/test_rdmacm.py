#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Connections made through rdma_cm: librdmacm's example programs, over IPv4 and IPv6."""
import harness
from harness import cm_listens


class Cm(harness.GuestTest):
    def check(self, place, server, client):
        there, _ = self.ends(place)
        listen = server.format(addr=self.p.address(there), addr6=self.p.address(there, 6))
        self.exchange(place, listen, client, cm_listens, timeout=90)


harness.matrix(
    Cm,
    rping=("rping -s -a {addr} -V -C 50", "rping -c -a {addr} -V -C 50"),
    rping_large=("rping -s -a {addr} -V -C 5 -S 65000", "rping -c -a {addr} -V -C 5 -S 65000"),
    rping_ipv6=("rping -s -a {addr6} -V -C 50", "rping -c -a {addr6} -V -C 50"),
    ucmatose=("ucmatose -b {addr}", "ucmatose -s {addr}"),
    ucmatose_many=("ucmatose -b {addr} -c 10 -C 20 -S 5000", "ucmatose -s {addr} -c 10 -C 20 -S 5000"),
    ucmatose_ipv6=("ucmatose -f ip -b {addr6}", "ucmatose -f ip -s {addr6}"),
    udaddy=("udaddy -b {addr}", "udaddy -s {addr}"),
    udaddy_ipv6=("udaddy -f ipv6 -b {addr6}", "udaddy -f ipv6 -s {addr6}"),
    # invented queue pair numbers must differ between the ends: within one VM the CM takes equal ones for a stale connection
    cmtime=("cmtime -b {addr} -c 10", "cmtime -s {addr} -c 10 -q 5000"),
    xserver=("rdma_xserver", "rdma_xclient -s {addr}"),
    server=("rdma_server", "rdma_client -s {addr}"),
)

if __name__ == "__main__":
    harness.main()
