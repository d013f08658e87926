// Golden files: tests/golden/NAME.STAGE is what --emit=STAGE says of schedules/NAME.sched, or of
// tests/golden/ir.sched, which has every form of the IR.
// After a change that is meant, SCHEDC_UPDATE=1 build/tests/unit_golden writes them anew; read the
// difference.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "files.h"
#include "compiler/passes.h"

static const struct {
  const char *folder, *name, *stage;
} texts[] = {
    {"schedules", "copy", "lower"},    {"schedules", "copy", "derive"},
    {"schedules", "copy", "place"},    {"schedules", "gemm_pingpong", "lower"},
    {"schedules", "mlp", "lower"},     {"schedules", "fa_varlen", "lower"},
    {"schedules", "fa3_fwd", "lower"}, {"schedules", "fa3_fwd", "derive"},
    {"schedules", "fa3_fwd", "place"}, {"schedules", "fa3_fwd", "layout"},
    {"tests/golden", "ir", "derive"},
};

static void print_stage(Sc *sc, Str *out, const char *path, const char *stage) {
  size_t n;
  char *text = read_file(path, &n);
  Compilation c = {.text = sc_text(sc, path, text, n)};
  free(text);
  if (!sc_compile(sc, &c, NULL, stage)) fail_msg("%s: %s", path, sc->diags->text);
  sc_pass(stage)->dump(out, &c);
}

static void golden_files(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT(texts); i++) {
    Sc sc;
    sc_init(&sc, NULL);
    Str got = {.sc = &sc};
    const char *name = texts[i].name, *stage = texts[i].stage;
    print_stage(&sc, &got, sc_printf(&sc, "%s/%s.sched", texts[i].folder, name), stage);
    golden(sc_printf(&sc, "tests/golden/%s.%s", name, stage), got.at);
    sc_free(&sc);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
