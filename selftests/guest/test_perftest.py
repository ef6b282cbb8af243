#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""perftest's programs with the options people use; iterations are few, the figures are not judged."""
import re

import harness

PORT = 18515


class Perftest(harness.GuestTest):
    def check(self, place, program, options, rows):
        command = "%s -d %s -F -p %d %s" % (program, self.device, PORT, options)
        ready = harness.cm_listens if "-R" in options else PORT
        out, _ = self.exchange(place, command, command + " {addr}", ready, timeout=120)
        found = re.findall(r"^\s*\d+\s+\d+\s+[\d.inf]+\s", out, re.M)
        self.assertEqual(len(found), rows, "rows of results: " + out)


ALL = 23                                # sizes of -a: 2 to 8 MiB. perftest fills 16 MiB with random numbers for it, which takes seconds.

# With at most 100 iterations perftest posts 100 receives before it starts: as many as messages. With more it posts too few, and UC
# and UD lose what arrives before it posts the rest; the server waits for that for ever.
SRQ = "-s 1024 -n 50 -q 2 --use-srq"


def sizes(program, options, rows=ALL):
    return (program, "-a " + options, rows)


TESTS = dict(
    write_bw_all=sizes("ib_write_bw", "-n 20"),
    read_bw_all=sizes("ib_read_bw", "-n 20"),
    send_bw_all=sizes("ib_send_bw", "-n 20"),
    write_lat_all=sizes("ib_write_lat", "-n 20"),
    read_lat_all=sizes("ib_read_lat", "-n 20"),
    send_lat_all=sizes("ib_send_lat", "-n 20"),
    write_bw_1_byte=("ib_write_bw", "-s 1 -n 2000", 1),
    read_bw_1_byte=("ib_read_bw", "-s 1 -n 2000", 1),
    send_bw_1_byte=("ib_send_bw", "-s 1 -n 2000", 1),
    write_bw_both_ways=("ib_write_bw", "-b -s 65536 -n 200", 1),
    read_bw_both_ways=("ib_read_bw", "-b -s 65536 -n 200", 1),
    send_bw_both_ways=("ib_send_bw", "-b -s 65536 -n 200", 1),
    write_bw_2_qps=("ib_write_bw", "-q 2 -s 4096 -n 200", 1),
    write_bw_16_qps=("ib_write_bw", "-q 16 -s 4096 -n 100", 1),
    write_bw_64_qps=("ib_write_bw", "-q 64 -s 4096 -n 50 -t 32", 1),
    read_bw_64_qps=("ib_read_bw", "-q 64 -s 4096 -n 50 -t 32", 1),
    send_bw_64_qps=("ib_send_bw", "-q 64 -s 4096 -n 50 -t 32 -r 32", 1),
    send_bw_xrc=("ib_send_bw", "-c XRC -s 4096 -n 200", 1),
    write_bw_xrc=("ib_write_bw", "-c XRC -s 65536 -n 100", 1),
    send_bw_srq=("ib_send_bw", "--use-srq -q 4 -s 4096 -n 200", 1),
    read_lat_events=("ib_read_lat", "-e -s 64 -n 200", 1),
    send_bw_events=("ib_send_bw", "-e -s 65536 -n 200", 1),
    send_lat_events=("ib_send_lat", "-e -s 64 -n 200", 1),
    write_lat_inline_0=("ib_write_lat", "-I 0 -s 64 -n 200", 1),
    write_lat_inline_64=("ib_write_lat", "-I 64 -s 64 -n 200", 1),
    write_lat_inline_200=("ib_write_lat", "-I 200 -s 200 -n 200", 1),
    send_lat_inline_128=("ib_send_lat", "-I 128 -s 128 -n 200", 1),
    write_bw_uc=sizes("ib_write_bw", "-c UC -n 20"),
    write_lat_uc=("ib_write_lat", "-c UC -s 64 -n 200", 1),
    write_bw_uc_both_ways=("ib_write_bw", "-c UC -b -q 4 -s 65536 -n 200", 1),
    send_bw_uc=("ib_send_bw", "-c UC -s 65536 -n 200", 1),
    send_lat_uc=("ib_send_lat", "-c UC -s 64 -n 200", 1),
    send_bw_ud=("ib_send_bw", "-c UD -s 1024 -n 500", 1),
    send_lat_ud=("ib_send_lat", "-c UD -s 1024 -n 200", 1),
    send_bw_uc_srq=("ib_send_bw", "-c UC " + SRQ, 1),
    send_bw_ud_srq=("ib_send_bw", "-c UD " + SRQ, 1),
    atomic_add_bw=("ib_atomic_bw", "-A FETCH_AND_ADD -n 500", 1),
    atomic_swap_bw=("ib_atomic_bw", "-A CMP_AND_SWAP -n 500", 1),
    atomic_add_lat=("ib_atomic_lat", "-A FETCH_AND_ADD -n 200", 1),
    atomic_swap_lat=("ib_atomic_lat", "-A CMP_AND_SWAP -n 200", 1),
    write_bw_rdma_cm=("ib_write_bw", "-R -s 65536 -n 100", 1),
)


def fewer(arguments):
    """Run fewer iterations: two polling processes occupy both processors of the VM. If one loses its processor for a time
    slice, a ping-pong takes milliseconds."""
    program, options, rows = arguments
    return program, re.sub(r"-n \d+", "-n 5", options) if program.endswith("_lat") else options, rows


WITHIN = """write_bw_all read_bw_all send_bw_all write_bw_both_ways write_bw_64_qps send_bw_events write_lat_inline_64
    send_bw_ud send_lat_ud atomic_add_bw atomic_swap_lat write_bw_uc write_lat_uc send_lat_uc""".split()

harness.matrix(Perftest, ("between",), **TESTS)
harness.matrix(Perftest, ("within",), **{name: fewer(TESTS[name]) for name in WITHIN})

if __name__ == "__main__":
    harness.main()
