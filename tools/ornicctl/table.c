// SPDX-License-Identifier: GPL-2.0
/*
 * Collect the cells of a table, then print it with fitting columns.
 */
#include "table.h"

#include "ornicctl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Append a cell. Takes over @text; NULL marks the table as failed. */
static void add(struct table *t, char *text)
{
	if (text && t->cells == t->room) {
		size_t room = t->room ? 2 * t->room : 64;
		char **cell = reallocarray(t->cell, room, sizeof(*cell));

		if (cell) {
			t->cell = cell;
			t->room = room;
		}
	}
	if (text && t->cells < t->room) {
		t->cell[t->cells++] = text;
		return;
	}
	t->failed = true;
	free(text);
}

void table_head(struct table *t, const char *headings)
{
	*t = (struct table) { 0 };
	while (*headings && t->columns < TABLE_COLUMNS) {
		size_t len;

		if (*headings == '<') {
			t->right |= 1u << t->columns;
			headings++;
		}
		len = strcspn(headings, " ");
		add(t, strndup(headings, len));
		t->columns++;
		headings += len;
		headings += strspn(headings, " ");
	}
}

/* Replace control characters: names from the daemon could contain escape sequences. */
static void tame(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

void table_cell(struct table *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	if (text)
		tame(text);
	add(t, text);
}

void table_number(struct table *t, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (value)
		table_cell(t, "%lld", (long long)json_integer_value(value));
	else
		table_cell(t, "-");
}

void table_thousands(struct table *t, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (value)
		table_cell(t, "%.1f", json_integer_value(value) / 1000.);
	else
		table_cell(t, "-");
}

static void add_value(struct table *t, const json_t *value)
{
	if (json_is_string(value))
		table_cell(t, "%s", json_string_value(value));
	else if (json_is_integer(value))
		table_cell(t, "%lld", (long long)json_integer_value(value));
	else if (json_is_boolean(value))
		table_cell(t, "%s", json_is_true(value) ? "yes" : "no");
	else
		table_cell(t, "-");
}

int table_fields(const json_t *object)
{
	const char *key, *sub_key;
	json_t *value, *sub;
	struct table t = { .columns = 2 };

	json_object_foreach((json_t *)object, key, value) {
		if (!json_is_object(value)) {
			table_cell(&t, "%s", key);
			add_value(&t, value);
			continue;
		}
		json_object_foreach(value, sub_key, sub) {
			table_cell(&t, "%s.%s", key, sub_key);
			add_value(&t, sub);
		}
	}
	return table_print(&t);
}

static void print_row(const struct table *t, char *const *row, const int *width)
{
	for (unsigned int i = 0; i < t->columns; i++) {
		bool last = i + 1 == t->columns;

		if (t->right & 1u << i)
			printf("%*s", width[i], row[i]);
		else
			printf("%-*s", last ? 0 : width[i], row[i]);
		fputs(last ? "\n" : "  ", stdout);
	}
}

int table_print(struct table *t)
{
	int width[TABLE_COLUMNS] = { 0 };

	for (size_t i = 0; i < t->cells; i++) {
		int len = strlen(t->cell[i]);

		if (len > width[i % t->columns])
			width[i % t->columns] = len;
	}
	/* A missing cell moves those after it to other columns: print none. */
	for (size_t i = 0; !t->failed && i + t->columns <= t->cells; i += t->columns)
		print_row(t, t->cell + i, width);
	if (t->failed)
		ctl_err("out of memory for the table");
	for (size_t i = 0; i < t->cells; i++)
		free(t->cell[i]);
	free(t->cell);
	return t->failed ? CTL_FAILED : CTL_OK;
}
