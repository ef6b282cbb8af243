// SPDX-License-Identifier: GPL-2.0
/*
 * Match rules against packets, frames and devices.
 *
 * Directions are those of the port's counters. A device receives (rx) packets that leave the
 * switch by its port; a port to the outside receives packets that enter the switch by it. A
 * rule that names neither port nor direction sees a packet once, when it enters the switch.
 */
#include "state.h"

#include "../engine/device.h"
#include "../packet/bth.h"

#include <string.h>

/* Return true if the rule looks at packets and may still act or holds frames. */
static bool match_alive(const struct fault *f)
{
	return rule_of_packets(&f->rule) &&
	       (f->holds || !rule_spent(&f->rule, f->matched, f->acted));
}

static enum rule_dir dir_of(const struct switch_port *port, enum switch_way way)
{
	return switch_port_is_device(port) == (way == SWITCH_IN) ? RULE_TX : RULE_RX;
}

static bool match_place(const struct fault_rule *r, const struct switch_port *port,
			enum switch_way way)
{
	if (r->name[0] && strcmp(r->name, switch_port_name(port)))
		return false;
	if (r->dir != RULE_ANY_DIR)
		return r->dir == dir_of(port, way);
	return r->name[0] || way == SWITCH_IN;
}

static bool match_kind(const struct fault_rule *r, bool roce)
{
	return r->packet == RULE_ANY_PACKET || roce == (r->packet == RULE_ROCE);
}

/*
 * With a device, qp= is the device's end: the source of packets that it sends, the destination
 * of packets that it receives.
 */
static bool match_qps(const struct fault_rule *r, const struct switch_port *port,
		      enum switch_way way, uint32_t dqpn, uint32_t sqpn)
{
	bool own = r->name[0] && switch_port_is_device(port);

	if ((rule_has(r, KEY_DQP) && r->dqp != dqpn) || (rule_has(r, KEY_SQP) && r->sqp != sqpn))
		return false;
	if (!rule_has(r, KEY_QP))
		return true;
	if (own)
		return r->qp == (way == SWITCH_IN ? sqpn : dqpn);
	return r->qp == dqpn || r->qp == sqpn;
}

/* Return true if one of the @n PSNs from @psn is in the rule's range. */
static bool match_psns(const struct fault_rule *r, uint32_t psn, uint32_t n)
{
	uint32_t width = (r->psn.last - r->psn.first) & BTH_PSN_MASK;

	if (!rule_has(r, KEY_PSN))
		return true;
	return ((psn - r->psn.first) & BTH_PSN_MASK) <= width ||
	       ((r->psn.first - psn) & BTH_PSN_MASK) < n;
}

uint16_t match_code(uint8_t opcode, uint8_t aeth)
{
	uint8_t transport = opcode & BTH_TRANSPORT_MASK;

	if (bth_operation(opcode) != BTH_RC_ACK ||
	    (transport != BTH_TRANSPORT_RC && transport != BTH_TRANSPORT_XRC))
		return opcode;
	if ((aeth & AETH_KIND_MASK) == AETH_NAK)
		return RULE_CODE_NAK;
	return (aeth & AETH_KIND_MASK) == AETH_RNR_NAK ? RULE_CODE_RNR_NAK : opcode;
}

/* Return true if a frame of @p has one of the rule's opcodes: all middle ones have the same. */
static bool match_codes(const struct fault_rule *r, const struct packet *p)
{
	if (!rule_has(r, KEY_OPCODE))
		return true;
	for (uint32_t i = 0; i < p->npsn; i = i < 1 || i == p->npsn - 1 ? i + 1 : p->npsn - 1)
		if (rule_code(r, match_code(roce_opcode(p, i), p->aeth)))
			return true;
	return false;
}

/* A packet that is not cut yet has no frame size, so match_frame() checks the size condition. */
bool match_packet(const struct fault *f, const struct switch_port *port, enum switch_way way,
		  const struct packet *p)
{
	const struct fault_rule *r = &f->rule;
	bool roce = p->kind != PACKET_ETHERNET;

	if (!match_alive(f) || !match_place(r, port, way) || !match_kind(r, roce))
		return false;
	return !roce || (match_qps(r, port, way, p->dqpn, p->sqpn) &&
			 match_psns(r, p->psn, p->npsn) && match_codes(r, p));
}

bool match_frame(const struct fault *f, const struct fault_frame *frame)
{
	const struct fault_rule *r = &f->rule;

	if (!match_alive(f) || !match_place(r, frame->port, frame->way) ||
	    !match_kind(r, frame->kept.roce))
		return false;
	if (rule_has(r, KEY_SIZE) && (frame->len < r->size.first || frame->len > r->size.last))
		return false;
	return !frame->kept.roce ||
	       (match_qps(r, frame->port, frame->way, frame->dqpn, frame->kept.sqpn) &&
		match_psns(r, frame->psn, 1) &&
		(!rule_has(r, KEY_OPCODE) || rule_code(r, frame->code)));
}

bool match_device(const struct fault *f, const struct device *dev)
{
	return !f->rule.name[0] || !strcmp(f->rule.name, dev->name);
}

bool match_chosen(struct fault *f)
{
	f->matched++;
	if (!rule_chooses(&f->rule, f->matched, f->acted))
		return false;
	f->acted++;
	return true;
}
