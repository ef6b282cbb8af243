/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Asynchronous events, and the references that keep an object while one is delivered.
 */
#ifndef ORNIC_IB_EVENT_H
#define ORNIC_IB_EVENT_H

#include <linux/completion.h>
#include <linux/refcount.h>

struct ib_device;
struct net_device;
struct notifier_block;
struct ornic_ib_dev;
struct ornic_ib_qp;

/**
 * struct ornic_ib_ref - keep an object while an event is delivered to its user
 * @users: one for the object itself and one per delivery
 * @idle: completes when @users drops to 0
 */
struct ornic_ib_ref {
	refcount_t users;
	struct completion idle;
};

void ornic_ib_ref_init(struct ornic_ib_ref *ref);
void ornic_ib_ref_drain(struct ornic_ib_ref *ref);
void ornic_ib_registered(struct ornic_ib_dev *dev);
int ornic_ib_event(struct notifier_block *nb, unsigned long type, void *data);
void ornic_ib_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
				unsigned long event);
void ornic_ib_soft_last_wqe(struct ornic_ib_dev *dev, struct ornic_ib_qp *qp);

#endif
