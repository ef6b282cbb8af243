#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Operations over bad networks: all of them end well, with the right data, in order, atomics once; the checker finds nothing wrong."""
import badnet
import harness

harness.OWN_LAB = {"ornicd_args": badnet.ORNICD_ARGS}


class Networks(badnet.BadNetwork):
    ornic_only = True


badnet.networks(Networks, ("between",))
badnet.networks(Networks, ("within",), ("all",))

if __name__ == "__main__":
    harness.main()
