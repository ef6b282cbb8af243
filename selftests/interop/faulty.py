# SPDX-License-Identifier: GPL-2.0
"""Bad networks between ornic and Soft-RoCE. The checker judges ornic only, because Soft-RoCE violates rules: for example it
retransmits acknowledged requests."""
import badnet
import peers


class Networks(peers.Roles, badnet.BadNetwork):
    # As responder Soft-RoCE may drop a retransmitted READ of zero bytes.
    judged = ("10.88.0.1",)
    operations = badnet.BadNetwork.operations.replace(" read ", " nonempty_read ")


badnet.networks(Networks, peers.PLACES)
