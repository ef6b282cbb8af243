/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The 40-byte GRH area in front of every datagram received (UD, GSI): the IPv6
 * header, or the IPv4 header in its last 20 bytes (RoCEv2 annex A17.4.5.2).
 */
#ifndef ORNICD_ENGINE_GRH_H
#define ORNICD_ENGINE_GRH_H

#include "../packet/packet.h"

#include <ornic/wqe.h>

/* grh_build() - the area for @p; @transport_len: bytes of the IP payload */
void grh_build(uint8_t grh[ORNIC_GRH_BYTES], const struct packet *p, uint16_t transport_len);

#endif /* ORNICD_ENGINE_GRH_H */
