/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tables on standard output, with columns as wide as their widest cell.
 */
#ifndef ORNICCTL_TABLE_H
#define ORNICCTL_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/** TABLE_COLUMNS - most columns */
#define TABLE_COLUMNS	16

/**
 * struct table - a table whose cells are being collected
 * @columns:	number of columns
 * @right:	a bit per column of numbers, which is right-aligned
 * @cell:	cells row by row, headings first
 * @cells:	number of cells
 * @room:	number of cells that @cell has memory for
 * @failed:	cells are missing for lack of memory
 */
struct table {
	unsigned int columns;
	unsigned int right;
	char **cell;
	size_t cells;
	size_t room;
	bool failed;
};

/* table_head() - initialise with headings, separated by spaces; "<" precedes those of numbers */
void table_head(struct table *t, const char *headings);
/*
 * table_fields() - print the members of an object as a table of names and values; the name of a
 * member of a nested object is "OBJECT.MEMBER"
 * Return: exit code, as of table_print().
 */
int table_fields(const json_t *object);

/* table_cell() - append a cell */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* table_number() - append the number @key of an object, or "-" if it is missing */
void table_number(struct table *t, const json_t *object, const char *key);
/* table_thousands() - append the number @key in thousands, with one decimal, or "-" */
void table_thousands(struct table *t, const json_t *object, const char *key);
/*
 * table_print() - print the table and free the cells
 * Return: exit code; CTL_FAILED after an error line, without a table, if cells are missing.
 */
int table_print(struct table *t);

#endif /* ORNICCTL_TABLE_H */
