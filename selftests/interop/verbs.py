# SPDX-License-Identifier: GPL-2.0
"""Verbs between ornic and Soft-RoCE: every byte of every operation, PSNs that wrap, errors, operations of newer devices only."""
import peers
import programs

OPERATIONS = """send send_imm write write_imm read cmp_swap fetch_add ud_send ud_send_imm group_send
    inline_send inline_write inline_write_imm inline_ud_send sge_send sge_write sge_read sge_ud_send
    qps_send qps_write qps_read qps_fetch_add unsignaled_send unsignaled_write unsignaled_read""".split()
WRAPPED = "send write write_imm read cmp_swap fetch_add".split()
OVER_IPV6 = "send_imm write read fetch_add ud_send ud_send_imm group_send".split()
KINDS = "write read atomic".split()
FAULTS = "rkey_tag rkey_index before behind wrap other_pd mr_right qp_right mr_gone".split()
ERRORS = ["%s_%s" % (fault, kind) for fault in FAULTS for kind in KINDS] + """
    too_long too_long_packets misaligned_atomic one_read_at_a_time reset_and_reuse
    fault_then_flush rnr_exhausted rnr_recovered peer_destroyed peer_in_err
    ud_wrong_qkey ud_no_such_qp ud_too_long""".split()
NEWER = "send_inv atomic_write flush".split()        # FLUSH by rxe-flush=on of the port, see peers.py
# For a request that its queue pair does not permit, or that is too long for the receive, Soft-RoCE sends another NAK than IBTA
# specifies; and it does not post a misaligned atomic.
ITS_OWN = {
    "ornic_client": ["qp_right_" + kind for kind in KINDS] + ["too_long", "too_long_packets"],
    "rxe_client": ["misaligned_atomic"],
}
if peers.Pair.guest == "bookworm":      # 6.1: a datagram that is too long for the receive puts its queue pair into ERR
    ITS_OWN["ornic_client"].append("ud_too_long")


class Data(peers.Roles, programs.ProgramTest):
    program = "verbs_data"
    port = 7471


class DataIPv6(peers.Roles, programs.ProgramTest):
    """The same over IPv6."""

    program = "verbs_data"
    port = 7471
    both = "-6"


class Errors(peers.Roles, programs.ProgramTest):
    program = "verbs_errors"
    port = 7472


class Newer(peers.Roles, programs.ProgramTest):
    program = "verbs_ex"
    port = 7480


programs.points(Data, OPERATIONS, places=peers.PLACES, poll="")
programs.points(DataIPv6, OVER_IPV6, places=peers.PLACES, poll="")
programs.points(Data, WRAPPED, places=peers.PLACES, wrap="-w")
for place in peers.PLACES:
    programs.points(Errors, [name for name in ERRORS if name not in ITS_OWN[place]], places=[place], both="-n")
programs.points(Newer, NEWER, places=peers.PLACES, both="")
