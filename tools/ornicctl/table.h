/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tables on standard output: columns as wide as what is in them.
 */
#ifndef ORNICCTL_TABLE_H
#define ORNICCTL_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/** TABLE_COLUMNS - at most */
#define TABLE_COLUMNS	16

/**
 * struct table - a table under way
 * @columns:	how many
 * @right:	columns of numbers, by bit: they end where the heading ends
 * @cell:	cells row by row, the heading first
 * @cells:	how many
 * @room:	for how many there is memory
 * @failed:	there was none
 */
struct table {
	unsigned int columns;
	unsigned int right;
	char **cell;
	size_t cells;
	size_t room;
	bool failed;
};

/* table_head() - begin with the headings, words with a space between them; "<" before a number's */
void table_head(struct table *t, const char *headings);
/*
 * table_fields() - an object's members as a table without heading, name and value; members of
 * objects in it are named with the object's name before theirs, by a dot
 */
void table_fields(const json_t *object);

/* table_cell() - the next cell */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* table_number() - the number @key of an object, or "-" if it has none */
void table_number(struct table *t, const json_t *object, const char *key);
/* table_thousands() - the same in thousands, with a decimal */
void table_thousands(struct table *t, const json_t *object, const char *key);
/* table_print() - print all and forget it */
void table_print(struct table *t);

#endif /* ORNICCTL_TABLE_H */
