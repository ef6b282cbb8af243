// SPDX-License-Identifier: GPL-2.0
/*
 * ornicctl fault: list, add and delete fault injection rules.
 */
#include "ornicctl.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** RULE_WORDS - most words of a rule after its action; more than there are keys (enum rule_key) */
#define RULE_WORDS	40

static int fault_list(struct ctl *ctl, const struct ctl_args *args)
{
	json_t *all = ctl_call(ctl, "fault.list", NULL), *rule;
	struct table t;
	size_t i;

	(void)args;
	if (!all || ctl->json)
		return ctl_done(ctl, all);
	table_head(&t, "<ID <MATCHED <ACTED <NO-ROOM STATE RULE");
	json_array_foreach(all, i, rule) {
		table_cell(&t, "%lld", (long long)ctl_int(rule, "id"));
		table_cell(&t, "%lld", (long long)ctl_int(rule, "matched"));
		table_cell(&t, "%lld", (long long)ctl_int(rule, "acted"));
		table_cell(&t, "%lld", (long long)ctl_int(rule, "no_room"));
		table_cell(&t, "%s", ctl_is(rule, "spent") ? "spent" : "active");
		table_cell(&t, "%s", ctl_text(rule, "rule"));
	}
	json_decref(all);
	return table_print(&t);
}

/* Join the words of a rule with spaces. Return: the text, to be freed, or NULL. */
static char *join(const struct ctl_args *args)
{
	size_t len = 0;
	char *rule;

	for (int i = 0; i < args->words; i++)
		len += strlen(args->word[i]) + 1;
	rule = calloc(1, len);
	for (int i = 0; rule && i < args->words; i++) {
		strcat(rule, args->word[i]);
		if (i < args->words - 1)
			strcat(rule, " ");
	}
	return rule;
}

static int fault_add(struct ctl *ctl, const struct ctl_args *args)
{
	char *rule = join(args);
	json_t *done;

	if (!rule) {
		ctl_err("out of memory for the rule");
		return CTL_FAILED;
	}
	done = ctl_call(ctl, "fault.add", "{s:s}", "rule", rule);
	free(rule);
	if (done && !ctl->json)
		printf("fault rule %lld added\n", (long long)ctl_int(done, "id"));
	return ctl_done(ctl, done);
}

static int fault_del(struct ctl *ctl, const struct ctl_args *args)
{
	char *end;
	long long id = strtoll(args->word[0], &end, 10);

	if (end == args->word[0] || *end) {
		ctl_err("\"%s\" is not the number of a fault rule; see ornicctl fault list",
			args->word[0]);
		return CTL_USAGE;
	}
	return ctl_done(ctl, ctl_call(ctl, "fault.del", "{s:I}", "id", (json_int_t)id));
}

static int fault_clear(struct ctl *ctl, const struct ctl_args *args)
{
	(void)args;
	return ctl_done(ctl, ctl_call(ctl, "fault.clear", NULL));
}

static const struct ctl_verb verbs[] = {
	{
		.name = "list", .args = "", .run = fault_list,
		.summary = "fault injection rules, with their counters",
		.help = "MATCHED counts matches of the conditions, ACTED injected faults,\n"
			"NO-ROOM packets and copies that were dropped because too many waited.\n",
	},
	{
		.name = "add", .args = "RULE...", .nargs = 1, .more = RULE_WORDS, .run = fault_add,
		.summary = "add a fault injection rule",
		.help = "A rule is an action, conditions and a choice, see ornicd(8), FAULTS:\n"
			"  ornicctl fault add drop device=vm1 dir=rx 'opcode=READ_RESPONSE*' every=3\n"
			"  ornicctl fault add flap device=vm2 for=200ms\n",
	},
	{
		.name = "del", .args = "ID", .nargs = 1, .run = fault_del,
		.summary = "delete a rule",
		.help = "Packets that the rule delays are forwarded when their time comes.\n",
	},
	{
		.name = "clear", .args = "", .run = fault_clear,
		.summary = "delete all rules",
	},
	{ },
};

const struct ctl_subject ctl_fault = { "fault", verbs };
