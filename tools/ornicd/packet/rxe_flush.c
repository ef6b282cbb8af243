// SPDX-License-Identifier: GPL-2.0
/*
 * The two ICRCs of a FLUSH. Soft-RoCE continues the IBTA ICRC over the transport headers.
 */
#include "rxe_flush.h"

#include "bth.h"
#include "icrc.h"
#include "roce.h"
#include "wire.h"

#include <endian.h>
#include <string.h>

/* BTH, FETH, RETH */
#define FLUSH_BYTES	(BTH_BYTES + 4 + 16)

/**
 * struct icrcs - the two ICRCs of a frame
 * @at:		the ICRC field in the frame
 * @right:	ICRC according to IBTA
 * @rxe:	ICRC according to Soft-RoCE
 */
struct icrcs {
	uint8_t *at;
	uint32_t right;
	uint32_t rxe;
};

static void compute(struct icrcs *c, uint8_t *frame, uint32_t len)
{
	bool vlan = be16_get(frame + ETH_BYTES - 2) == ETHERTYPE_VLAN;
	uint8_t *ip = frame + ETH_BYTES + (vlan ? VLAN_BYTES : 0);
	uint8_t *bth = frame + roce_bth(frame, len);

	c->at = bth + FLUSH_BYTES;
	c->right = icrc_add(icrc_headers(ip, bth - UDP_BYTES - ip), bth + BTH_BYTES,
			    FLUSH_BYTES - BTH_BYTES);
	c->rxe = icrc_add(c->right, bth, FLUSH_BYTES);
}

static void put(struct icrcs *c, uint32_t icrc)
{
	icrc = htole32(icrc);
	memcpy(c->at, &icrc, ICRC_BYTES);
}

void rxe_flush_encode(uint8_t *frame, uint32_t len)
{
	struct icrcs c;

	compute(&c, frame, len);
	put(&c, c.rxe);
}

bool rxe_flush_decode(uint8_t *frame, uint32_t len)
{
	struct icrcs c;
	uint32_t received;

	compute(&c, frame, len);
	memcpy(&received, c.at, ICRC_BYTES);
	if (le32toh(received) != c.rxe)
		return false;
	put(&c, c.right);
	return true;
}
