// SPDX-License-Identifier: GPL-2.0
/*
 * The list of rules: add, delete, list, read from a file.
 */
#include "state.h"

#include "../log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A longer line of a file is an error: it cannot be a rule, see RULE_TEXT. */
#define LINE_BYTES	1024

static void faults_fini(struct engine *e)
{
	struct faults *fs = faults_of(e);

	fault_clear(e);
	timer_disarm(&e->timers, &fs->timer);
	timers_unreserve(&e->timers, 1);
	packet_fini(fs);
	log_source_end(&fs->log);
	free(fs);
	e->faults = NULL;
}

static struct faults *faults_new(struct engine *e)
{
	struct faults *fs = calloc(1, sizeof(*fs));

	if (!fs)
		return NULL;
	if (timers_reserve(&e->timers, 1)) {
		free(fs);
		return NULL;
	}
	fs->asked = (struct engine_faults) { fault_completion, fault_command, faults_fini };
	fs->engine = e;
	fs->log.name = "fault rules";
	fs->next_id = 1;
	TAILQ_INIT(&fs->rules);
	TAILQ_INIT(&fs->free);
	hold_init(fs);
	e->faults = &fs->asked;
	return fs;
}

static int no_memory(char *err)
{
	snprintf(err, FAULT_ERROR, "out of memory for the rule");
	return -ENOMEM;
}

/* Allocate a fault for @r without starting it. */
static struct fault *fault_new(struct faults *fs, const struct fault_rule *r)
{
	struct fault *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	if (timers_reserve(&fs->engine->timers, 1)) {
		free(f);
		return NULL;
	}
	f->faults = fs;
	f->id = fs->next_id;
	snprintf(f->name, sizeof(f->name), "fault rule %" PRIu32, f->id);
	f->log = (struct log_source) { .name = f->name, .parent = &fs->log };
	f->rule = *r;
	return f;
}

static void fault_free(struct fault *f)
{
	struct faults *fs = f->faults;

	device_stop(f);
	timers_unreserve(&fs->engine->timers, 1);
	log_source_end(&f->log);
	free(f);
}

static int start(struct faults *fs, struct fault *f, char *err)
{
	int ret;

	if (rule_of_packets(&f->rule) && packet_init(fs))
		return no_memory(err);
	ret = device_start(f, err);
	if (ret)
		return ret;
	fs->next_id++;
	fs->n++;
	TAILQ_INSERT_TAIL(&fs->rules, f, link);
	packet_hook(fs);
	return 0;
}

int fault_add(struct engine *e, const char *text, uint32_t *id, char *err)
{
	struct faults *fs = faults_of(e) ?: faults_new(e);
	struct fault *f;
	struct fault_rule r;
	int ret;

	if (!fs)
		return no_memory(err);
	ret = rule_parse(text, &r, err, FAULT_ERROR) ?: device_check(fs, &r, err);
	if (ret)
		return ret;
	if (fs->n == FAULT_RULES) {
		snprintf(err, FAULT_ERROR, "there are %d rules, the most possible; delete some",
			 FAULT_RULES);
		return -ENOSPC;
	}
	f = fault_new(fs, &r);
	if (!f)
		return no_memory(err);
	ret = start(fs, f, err);
	if (ret)
		fault_free(f);
	else
		*id = f->id;
	return ret;
}

static struct fault *find(const struct faults *fs, uint32_t id)
{
	struct fault *f;

	TAILQ_FOREACH(f, &fs->rules, link)
		if (f->id == id)
			return f;
	return NULL;
}

int fault_del(struct engine *e, uint32_t id)
{
	struct faults *fs = faults_of(e);
	struct fault *f = fs ? find(fs, id) : NULL;

	if (!f)
		return -ENOENT;
	TAILQ_REMOVE(&fs->rules, f, link);
	fs->n--;
	hold_forget(fs, f);
	fault_free(f);
	packet_hook(fs);
	return 0;
}

void fault_port_added(struct engine *e, const char *name)
{
	if (faults_of(e))
		device_port_added(faults_of(e), name);
}

void fault_clear(struct engine *e)
{
	struct faults *fs = faults_of(e);

	while (fs && !TAILQ_EMPTY(&fs->rules))
		fault_del(e, TAILQ_FIRST(&fs->rules)->id);
}

bool fault_next(const struct engine *e, uint32_t id, struct fault_info *info)
{
	const struct faults *fs = faults_of(e);
	struct fault *f;

	if (!fs)
		return false;
	TAILQ_FOREACH(f, &fs->rules, link) {
		if (f->id <= id)
			continue;
		*info = (struct fault_info) {
			.id = f->id,
			.text = f->rule.text,
			.seed = f->rule.seed,
			.matched = f->matched,
			.acted = f->acted,
			.no_room = f->no_room,
			.spent = rule_spent(&f->rule, f->matched, f->acted),
		};
		return true;
	}
	return false;
}

static int file_line(struct engine *e, const char *path, unsigned int number, char *line)
{
	char err[FAULT_ERROR];
	uint32_t id;
	int ret;

	line[strcspn(line, "#\n")] = 0;
	if (!line[strspn(line, " \t\r")])
		return 0;
	ret = fault_add(e, line, &id, err);
	if (ret)
		log_err("%s:%u: %s", path, number, err);
	return ret;
}

int fault_file(struct engine *e, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[LINE_BYTES];
	unsigned int number = 0;
	int ret = 0;

	if (!file) {
		ret = -errno;
		log_err("cannot read %s: %s", path, strerror(errno));
		return ret;
	}
	while (!ret && fgets(line, sizeof(line), file)) {
		number++;
		if (!strchr(line, '\n') && !feof(file)) {
			log_err("%s:%u: the line is longer than %d characters, or has a zero byte",
				path, number, LINE_BYTES - 2);
			ret = -EINVAL;
		} else {
			ret = file_line(e, path, number, line);
		}
	}
	if (!ret && ferror(file)) {
		ret = -errno;
		log_err("cannot read %s: %s", path, strerror(errno));
	}
	fclose(file);
	return ret;
}
