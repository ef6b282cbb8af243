# SPDX-License-Identifier: GPL-2.0
"""Bad networks between ornic and Soft-RoCE. The checker judges ornic; Soft-RoCE goes back to what was acknowledged, for one."""
import badnet
import peers


class Networks(peers.Roles, badnet.BadNetwork):
    # As responder Soft-RoCE may drop a READ of no bytes that is asked for again.
    judged = ("10.88.0.1",)
    operations = badnet.BadNetwork.operations.replace(" read ", " nonempty_read ")


badnet.networks(Networks, peers.PLACES)
