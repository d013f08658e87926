// Tests of what is made of a fault that the model of a GPU reports: roles, rings and tensors for
// threads and addresses, and the schedule's lines.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "fakedriver.h"

static ModelFault fault;
static bool faulty;
static const ModelFault *fake_fault(void) { return faulty ? &fault : NULL; }

static const char pair[] =
    "kernel k {\n"
    "  in X : f16[M, 64]\n"
    "  out Y : f16[M, 64];  in S : f32[M]\n"
    "  grid (x : cdiv(M, 128)) dynamic\n"
    "  ring r : { x : f16[128, 64], s : f32[128] } * 2\n"
    "  role load : 1 warp, 40 regs { acquire r;  r.x <- X[x*128..];  r.s <- S[x*128..];  commit r "
    "}\n"
    "  role math[w] : 2 warpgroups, 128 regs {\n"
    "    reg t : f16[64, 64]\n"
    "    wait r;  t[i,k] = r.x[64*w + i, k] * r.s[64*w + i];  release r\n"
    "    Y[x*128 + 64*w + i, k] = t[i,k]\n"
    "  }\n"
    "}\n";

static Driver model;

static void begin_fault(Fixture *f, const char *source) {
  begin(f, source, NULL, false);
  model = fake;
  model.model_fault = fake_fault;
  f->l.d = &model;
  fault = (ModelFault){.function = "k", .rule = "M6"};
  faulty = true;
}

static const Diag *told(Fixture *f, const char *text, unsigned line) {
  snprintf(fault.what.text, sizeof fault.what.text, "%s", text);
  snprintf(fault.what.file, sizeof fault.what.file, "/somewhere/test.sched");
  fault.what.line = line;
  f->sc.diags = NULL, f->sc.diag_end = &f->sc.diags;
  assert_int_equal(sc_report_model(&f->sc, &f->l), SCHEDC_EFAULT);
  assert_int_equal(f->sc.diags->id, D_G_MODEL);
  return f->sc.diags;
}

static void expect(Fixture *f, const char *text, const char *want) {
  assert_string_equal(told(f, text, 6)->text, want);
}

static void names(void **state) {
  (void)state;
  static Fixture f;
  begin_fault(&f, pair);
  const Kernel *k = f.l.k;
  const Ring *r = &k->ring.at[0];
  u32 slots = sc_slot_barriers(k);
  expect(&f, "{t:3:0} and {t:0:128} and {t:0:383}",
         "load (CTA 3, thread 0) and math[0] (CTA 0, thread 128) and math[1] (CTA 0, thread 383) "
         "(M6)");
  expect(&f, "{t:0:40}", "thread 40 of CTA 0, which has no role, (M6)");
  expect(&f, sc_printf(&f.sc, "{s:1:%u}", r->offset + r->stage_bytes + 12),
         "byte 12 of stage 1 of 'r' (CTA 1) (M6)");
  expect(&f, sc_printf(&f.sc, "{s:1:%u}", r->offset + 2 * r->stage_bytes + r->vector_bytes + 12),
         sc_printf(&f.sc, "byte %u of stage 1 of 'r' (CTA 1) (M6)", r->stage_bytes + 12));
  expect(&f, sc_printf(&f.sc, "{s:1:%u}", slots),
         sc_printf(&f.sc, "byte %u of shared memory (CTA 1) (M6)", slots));
  expect(&f, sc_printf(&f.sc, "{b:0:%u:3}", r->barrier + 8),
         "generation 3 of the full barrier of 'r', stage 1 (CTA 0, fill 7) (M6)");
  expect(&f, sc_printf(&f.sc, "{b:0:%u:0}", r->barrier + 16),
         "generation 0 of the empty barrier of 'r', stage 0 (CTA 0, fill 0) (M6)");
  expect(&f, sc_printf(&f.sc, "{b:0:%u:-1}", r->barrier),
         "the phase before the first of the full barrier of 'r', stage 0 (CTA 0) (M6)");
  expect(&f, sc_printf(&f.sc, "{b:0:%u:2}", slots + 24),
         "generation 2 of the empty barrier of the next tile, slot 1 (CTA 0, draw 5) (M6)");
  CUdeviceptr address[] = {X_AT, Y_AT, 0x60000000};
  f.l.last = &(SclPlan){.address = address};
  expect(&f, sc_printf(&f.sc, "{g:%llx}", (unsigned long long)Y_AT + 6),
         "byte 6 of tensor 'Y' (M6)");
  expect(&f, "{g:10}", "0x10 in global memory (M6)");
  expect(&f, "plain", "plain (M6)");
  end(&f);
}

static void lines(void **state) {
  (void)state;
  static Fixture f;
  begin_fault(&f, pair);
  fault.notes = 2;
  snprintf(fault.note[0].text, sizeof fault.note[0].text, "{t:0:0} waits");
  snprintf(fault.note[0].file, sizeof fault.note[0].file, "test.sched");
  fault.note[0].line = 9;
  snprintf(fault.note[1].text, sizeof fault.note[1].text, "so it is");
  const Diag *d = told(&f, "x", 10);
  Str out = {.sc = &f.sc};
  sc_diag_text(&out, f.sc.text, d);
  assert_non_null(strstr(out.at, "test.sched:10:5: error[G.model]: x (M6)"));
  assert_non_null(strstr(out.at, "load (CTA 0, thread 0) waits"));
  assert_non_null(strstr(out.at, "= help: so it is"));
  assert_int_equal(sc_line_col(f.sc.text, d->notes->at.lo).line, 9);
  faulty = false;
  assert_int_equal(sc_report_model(&f.sc, &f.l), SCHEDC_OK);
  f.l.d = &fake;
  assert_int_equal(sc_report_model(&f.sc, &f.l), SCHEDC_OK);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(lines)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
