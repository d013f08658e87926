// Golden files: tests/golden/SCHEDULE.STAGE is what --emit=STAGE says of schedules/SCHEDULE.sched.
// After a change that is meant, SCHEDC_UPDATE=1 build/tests/unit_golden writes them anew; read the
// difference.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes.h"

static const struct {
  const char *schedule, *stage;
} golden[] = {
    {"copy", "lower"},          {"copy", "derive"},    {"copy", "place"},
    {"gemm_pingpong", "lower"}, {"mlp", "lower"},      {"fa_varlen", "lower"},
    {"fa3_fwd", "lower"},       {"fa3_fwd", "derive"}, {"fa3_fwd", "place"},
};

static char *read_file(Sc *sc, const char *path, size_t *n) {
  static char bytes[1 << 20];
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  *n = fread(bytes, 1, sizeof bytes - 1, f);
  fclose(f);
  bytes[*n] = 0;
  return sc_printf(sc, "%s", bytes);
}

static void write_file(const char *path, const Str *s) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(s->at, 1, s->n, f), s->n);
  assert_int_equal(fclose(f), 0);
}

static void print_stage(Sc *sc, Str *out, const char *schedule, const char *stage) {
  size_t n = 0;
  const char *path = sc_printf(sc, "schedules/%s.sched", schedule), *text = read_file(sc, path, &n);
  assert_non_null(text);
  const Ast *ast = sc_parse(sc, sc_text(sc, path, text, n));
  const Kernel *k = sc_compile_to(sc, ast, &(Choice){0}, stage);
  if (!k) fail_msg("%s: %s", path, sc->diags->text);
  const Pass *pass = sc_pipeline;
  while (pass->name && strcmp(pass->name, stage)) pass++;
  (pass->name ? pass->dump : sc_print_ir)(out, k);
}

static void golden_files(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT(golden); i++) {
    Sc sc;
    size_t n;
    sc_init(&sc, NULL);
    Str got = {.sc = &sc};
    print_stage(&sc, &got, golden[i].schedule, golden[i].stage);
    const char *path = sc_printf(&sc, "tests/golden/%s.%s", golden[i].schedule, golden[i].stage);
    if (getenv("SCHEDC_UPDATE")) write_file(path, &got);
    const char *want = read_file(&sc, path, &n);
    assert_non_null(want);
    if (strcmp(got.at, want))
      fail_msg("%s differs; run with SCHEDC_UPDATE=1 and read the difference", path);
    sc_free(&sc);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
