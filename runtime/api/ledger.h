// ledger.h - what a search writes into a store, and finds there from an earlier one.
#ifndef SC_LEDGER_H
#define SC_LEDGER_H

#include "runtime/api/meter.h"

typedef struct Ledger {
  schedc_store *store;  // NULL: nothing is written
  const schedc_space *space;
  const schedc_meter *meter;
  schedc_store_record key;                        // what all lines have in common
  char schedule[33], inputs[256], measured[256];  // kinds of inputs
  bool resume;
  size_t earlier;  // records that the store had before
} Ledger;

// All of it but the dimensions, which are the meter's once it knows them.
schedc_status sc_ledger_open(schedc_context *context, Ledger *l);
// What is known of a trial to measure: true, and its outcome. reference_ms: the default's time now.
bool sc_ledger_find(Ledger *l, const schedc_trial *trial, double reference_ms,
                    schedc_outcome *outcome);

// A line of the store.
typedef struct Entered {
  const schedc_point *point;
  const char *status;  // as in a record
  bool verified;
  double ms, noise, reference_ms;
  u64 launches;
  u32 rank;
} Entered;
schedc_status sc_ledger_enter(schedc_context *context, Ledger *l, const Entered *what);

#endif
