// store.h - measured points, kept as lines of JSON: runtime/tune/README.md is their schema.
#ifndef SC_STORE_H
#define SC_STORE_H

#include "lang/ast.h"

typedef struct Records {
  VEC(schedc_store_record) record;  // in the order of the file
} Records;

// Reads all lines. A line that stops inside a value is passed by with a warning; any other that is
// no record is reported, once. False: one was.
bool sc_store_read(Sc *sc, const Text *text, Records *out);
// A record as a line, with its end. It must be whole: sc_store_whole.
void sc_store_print(Str *out, const schedc_store_record *r);
// Has everything that a line must have?
bool sc_store_whole(const schedc_store_record *r);
schedc_store_record sc_store_copy(Sc *sc, const schedc_store_record *r);

// Are the same params given the same values, in whichever order?
bool sc_same_params(const schedc_param *a, size_t n, const schedc_param *b, size_t m);

// The record that fits a key best, or NULL (the rule: README.md).
const schedc_store_record *sc_store_find(const Records *all, const schedc_store_record *key);
// Of two records that are equally near: is `a`, which stands behind `b`, taken?
bool sc_store_rather(const schedc_store_record *a, const schedc_store_record *b);

// schedule.c: 32 hexadecimal digits and a NUL: which schedule a unit is.
void sc_schedule_hash(Sc *sc, const Ast *ast, const Node *unit, char hash[33]);

#endif
