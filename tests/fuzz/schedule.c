// schedule.c - fuzz target: any bytes as a schedule. Parsed, formatted (twice, which must agree),
// and every unit instantiated, described and emitted. Reports must be renderable; nothing may
// crash, leak or hang, and what a pass makes is well-formed (in builds with checks).
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "schedc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Text {
  char *at;
  size_t n;
} Text;

static int collect(void *user, const char *bytes, size_t n) {
  Text *t = user;
  char *more = realloc(t->at, t->n + n + 1);
  if (!more) return 1;
  memcpy(more + t->n, bytes, n);
  t->at = more;
  t->n += n;
  return 0;
}

static int drop(void *user, const char *bytes, size_t n) {
  size_t *total = user;
  *total += n + (unsigned char)bytes[0];
  return 0;
}

static void sink(void *user, const schedc_diagnostic *d) {
  size_t *total = user;
  assert(strcmp(d->code, "I.internal"));
  *total += strlen(d->rendered);
  schedc_write_json(d, drop, user);
  schedc_sarif_result(d, 1, drop, user);
}

static void format_twice(schedc_context *context, const schedc_source *source) {
  Text once = {0}, twice = {0};
  schedc_source *again;
  assert(schedc_format(context, source, collect, &once) == SCHEDC_OK);
  assert(schedc_parse(&again, context, "again", once.at ? once.at : "", once.n) == SCHEDC_OK);
  assert(schedc_format(context, again, collect, &twice) == SCHEDC_OK);
  assert(once.n == twice.n && (!once.n || memcmp(once.at, twice.at, once.n) == 0));
  schedc_source_free(again);
  free(once.at);
  free(twice.at);
}

static void use_unit(schedc_context *context, const schedc_source *source, const char *name,
                     size_t *total) {
  schedc_kernel *kernel;
  schedc_emit(context, source, name, NULL, NULL, 0, "lower", drop, total);
  if (schedc_instantiate(&kernel, context, source, name, NULL, NULL, 0) != SCHEDC_OK) return;
  schedc_describe(context, kernel, NULL, 0, SCHEDC_TEXT, drop, total);
  schedc_kernel_free(kernel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t total = 0;
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context;
  schedc_source *source;
  options.sink = sink;
  options.sink_user = &total;
  if (schedc_open(&context, &options) != SCHEDC_OK) return 0;
  if (schedc_parse(&source, context, "fuzz", (const char *)data, size) == SCHEDC_OK) {
    format_twice(context, source);
    for (size_t i = 0; i < schedc_unit_count(source); i++) {
      schedc_unit_info unit = SCHEDC_UNIT_INFO_INIT;
      schedc_unit(source, i, &unit);
      use_unit(context, source, unit.name, &total);
    }
  }
  schedc_source_free(source);
  schedc_close(context);
  return 0;
}
