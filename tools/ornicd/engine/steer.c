// SPDX-License-Identifier: GPL-2.0
/*
 * Receivers of a frame (ORN-STEER-1): MATCH rules in their order, then the network interface by
 * UNICAST or MULTICAST, then MATCH rules for leftover frames, then PROMISC.
 *
 * The first receiver takes a unicast frame. A multicast frame goes to all receivers, at most once
 * to each queue pair. The frame is parsed for the first MATCH rule, so a port without such rules
 * does not parse it.
 */
#include "steer.h"

#include "engine.h"
#include "link.h"
#include "qp.h"
#include "raw.h"
#include "rss.h"

#include <endian.h>
#include <string.h>

#define ROCE_UDP_PORT	4791
#define PROTO_UDP	17

/**
 * struct steering - a frame that is matched against rules
 * @dev:	device
 * @p:		the frame
 * @multicast:	the frame may have many receivers
 * @taken:	the frame has had a receiver
 * @parsed:	@frame is valid
 * @frame:	headers of the frame
 */
struct steering {
	struct device *dev;
	const struct packet *p;
	bool multicast;
	bool taken;
	bool parsed;
	struct frame frame;
};

void steer_add(struct port *port, struct steer_rule *r)
{
	struct steer_rule **at = r->flags & ORNIC_RULE_F_LEFTOVER ? &port->leftover : &port->match;

	while (*at && (*at)->priority <= r->priority)
		at = &(*at)->next;
	r->next = *at;
	*at = r;
}

void steer_del(struct port *port, struct steer_rule *r)
{
	struct steer_rule **at = r->flags & ORNIC_RULE_F_LEFTOVER ? &port->leftover : &port->match;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
}

static bool rule_drops(const struct steer_rule *r)
{
	return !r->qp && !r->rss;
}

/* Return true if @r may match unicast frames to other addresses, which need promiscuous mode. */
static bool rule_wants_foreign(const struct steer_rule *r, const struct port *port)
{
	const struct ornic_rule_match *value = (const void *)r->value;
	const struct ornic_rule_match *mask = (const void *)r->mask;
	static const uint8_t all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	if (rule_drops(r) || value->dmac[0] & 1)
		return false;
	return memcmp(mask->dmac, all, sizeof(all)) ||
	       memcmp(value->dmac, port->mac, sizeof(port->mac));
}

bool steer_wants_foreign(const struct port *port)
{
	for (const struct steer_rule *r = port->match; r; r = r->next)
		if (rule_wants_foreign(r, port))
			return true;
	for (const struct steer_rule *r = port->leftover; r; r = r->next)
		if (rule_wants_foreign(r, port))
			return true;
	return false;
}

/*
 * Return true if @qp may receive the frame. No queue pair receives its own frames, and the network
 * interface receives none of its queues' (ORN-STEER-11). A frame of this function that no RAW queue
 * pair sent is a RoCE packet that fault injection truncated: other RAW queue pairs may receive it,
 * but not the network interface, whose host would see its own address as the source.
 */
static bool may_have(const struct steering *s, const struct qp *qp)
{
	const struct qp *sender = s->p->sender;

	if (!qp || s->p->from != s->dev->port.sw)
		return qp;
	if (!sender || sender->type != ORNIC_QPT_RAW)
		return !(qp->flags & ORNIC_QP_F_DRIVER);
	return qp != sender && !(qp->flags & sender->flags & ORNIC_QP_F_DRIVER);
}

static void give(struct steering *s, struct qp *qp, const struct raw_meta *meta)
{
	s->dev->engine->copies++;
	raw_receive(qp, s->p, meta);
	s->taken = true;
}

/* Return true if the frame is RoCE for this function (ORN-STEER-15). */
static bool is_roce(const struct steering *s)
{
	const struct ornic_rule_match *key = &s->frame.key;

	return s->frame.fields & ORNIC_MATCH_DST_PORT && key->protocol == PROTO_UDP &&
	       key->dst_port == htobe16(ROCE_UDP_PORT) && device_has_gid(s->dev, key->dst_ip);
}

static bool rule_hits(const struct steer_rule *r, const struct frame *f)
{
	const uint64_t *key = (const uint64_t *)&f->key;
	uint64_t differ = r->fields & ~f->fields;

	for (size_t i = 0; i < STEER_RULE_WORDS; i++)
		differ |= (key[i] ^ r->value[i]) & r->mask[i];
	return !differ;
}

/*
 * Give a copy to the rule's target, unless it has one. Return: false if the target may not have the
 * frame.
 */
static bool rule_give(struct steering *s, const struct steer_rule *r)
{
	struct raw_meta meta = { .flow_tag = r->flow_tag };
	struct port *port = &s->dev->port;
	struct qp *qp = r->rss ? rss_pick(r->rss, &s->frame, &meta) : r->qp;

	if (!may_have(s, qp))
		return false;
	if (qp->steered != port->frames)
		give(s, qp, &meta);
	qp->steered = port->frames;
	return true;
}

/* Match the rules of @list in order. Return: true if the frame goes no further. */
static bool steer_list(struct steering *s, const struct steer_rule *list)
{
	if (!s->parsed) {
		frame_parse(s->p, &s->frame);
		s->parsed = true;
		s->dev->port.frames++;
	}
	if (is_roce(s))
		return false;
	for (const struct steer_rule *r = list; r; r = r->next) {
		if (!rule_hits(r, &s->frame))
			continue;
		if (rule_drops(r))
			return true;
		if (rule_give(s, r) && !s->multicast && !(r->flags & ORNIC_RULE_F_COPY))
			return true;
	}
	return false;
}

/* Give the frame to the network interface. Return: true if the frame goes no further. */
static bool steer_own(struct steering *s)
{
	const struct port *port = &s->dev->port;
	struct qp *qp;

	if (s->multicast)
		qp = port->multicast;
	else
		qp = memcmp(s->p->dmac, port->mac, sizeof(port->mac)) ? NULL : port->unicast;
	if (!may_have(s, qp))
		return false;
	give(s, qp, NULL);
	return !s->multicast;
}

void steer_receive(struct device *dev, const struct packet *p)
{
	const struct port *port = &dev->port;
	struct steering s;

	s.dev = dev;
	s.p = p;
	s.multicast = p->dmac[0] & 1;
	s.taken = false;
	s.parsed = false;
	if ((port->match && steer_list(&s, port->match)) || steer_own(&s) ||
	    (port->leftover && steer_list(&s, port->leftover)))
		goto out;
	if (!s.taken && may_have(&s, port->promisc))
		give(&s, port->promisc, NULL);
out:
	if (!s.taken)
		device_count(dev, CNT_rx_drop_rule, 1);
}
