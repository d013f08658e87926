// Golden files: tests/golden/SCHEDULE.STAGE is what --emit=STAGE says of schedules/SCHEDULE.sched.
// After a change that is meant, SCHEDC_UPDATE=1 build/tests/unit_golden writes them anew; read the
// difference.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "files.h"
#include "passes.h"

static const struct {
  const char *schedule, *stage;
} texts[] = {
    {"copy", "lower"},    {"copy", "derive"},     {"copy", "place"},    {"gemm_pingpong", "lower"},
    {"mlp", "lower"},     {"fa_varlen", "lower"}, {"fa3_fwd", "lower"}, {"fa3_fwd", "derive"},
    {"fa3_fwd", "place"}, {"fa3_fwd", "layout"},
};

static void print_stage(Sc *sc, Str *out, const char *schedule, const char *stage) {
  size_t n;
  const char *path = sc_printf(sc, "schedules/%s.sched", schedule);
  char *text = read_file(path, &n);
  const Ast *ast = sc_parse(sc, sc_text(sc, path, text, n));
  free(text);
  const Kernel *k = sc_compile_to(sc, ast, &(Choice){0}, stage);
  if (!k) fail_msg("%s: %s", path, sc->diags->text);
  const Pass *pass = sc_pipeline;
  while (pass->name && strcmp(pass->name, stage)) pass++;
  (pass->name ? pass->dump : sc_print_ir)(out, k);
}

static void golden_files(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT(texts); i++) {
    Sc sc;
    sc_init(&sc, NULL);
    Str got = {.sc = &sc};
    print_stage(&sc, &got, texts[i].schedule, texts[i].stage);
    golden(sc_printf(&sc, "tests/golden/%s.%s", texts[i].schedule, texts[i].stage), got.at);
    sc_free(&sc);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
