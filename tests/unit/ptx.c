// Tests of the checker of built PTX, on a text written by hand (tests/copy.ptx): it passes, and
// each of these mistakes in it is found and named. tests/ptx.py does more of them in what NVRTC
// makes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "fakedriver.h"
#include "runtime/ptx/ptx.h"

static const char *read_copy(Sc *sc) {
  char *at = sc_new(sc, 1 << 16);
  FILE *f = fopen("tests/copy.ptx", "rb");
  assert_non_null(f);
  at[fread(at, 1, (1 << 16) - 1, f)] = 0;
  fclose(f);
  return at;
}

// The text with `what`, which stands in it, replaced.
static const char *edited(Sc *sc, const char *text, const char *what, const char *by) {
  const char *at = strstr(text, what);
  if (!at) fail_msg("not in the text: %s", what);
  return sc_printf(sc, "%.*s%s%s", (int)(at - text), text, by, at + strlen(what));
}

// The text after that, what is said of it, or "ok".
static const char *said(Fixture *f, const char *ptx) {
  f->sc.errors = 0;
  f->sc.diags = NULL, f->sc.diag_end = &f->sc.diags;
  if (sc_ptx_check(&f->sc, f->l.k, f->l.text, ptx)) return "ok";
  assert_int_equal(f->sc.diags->id, D_G_PTX);
  return f->sc.diags->text;
}

typedef struct Mistake {
  const char *what, *by;
  const char *report;  // what the report ends in
} Mistake;

static const Mistake mistakes[] = {
    // lost
    {"mbarrier.init.shared::cta.b64 [%r9], %r8;", "",
     "expected mbarrier.init 1 at 16384, found fence.mbarrier_init"},
    {"fence.mbarrier_init.release.cluster;", "", "expected fence.mbarrier_init, found bar.sync 0"},
    {"bar.sync 0;", "", "expected bar.sync 0, found setmaxnreg.dec 24 (line 7)"},
    {"setmaxnreg.dec.sync.aligned.u32 24;", "",
     "'load', lane 0: expected setmaxnreg.dec 24, found the thread ends"},
    {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r14+16384], 8192;", "",
     "expected mbarrier.arrive.expect_tx 8192 at 16384 (line 7), found cp.async.bulk.tensor in by "
     "map 0 at 16384 (line 7)"},
    {"@!done bra again;", "",
     "expected mbarrier.try_wait at 16400 (line 7), found a wait that does not loop at 16400 (line "
     "7)"},
    {"@!done bra again;", "@done bra again;",
     "expected mbarrier.try_wait at 16400 (line 7), found a wait that does not loop at 16400 (line "
     "7)"},
    {"fence.proxy.async.shared::cta;", "",
     "expected fence.proxy.async.shared::cta (line 10), found bar.warp.sync 4294967295 (line 10)"},
    {"bar.warp.sync -1;", "",
     "expected bar.warp.sync 4294967295 (line 10), found mbarrier.arrive at 16400 (line 10)"},
    // doubled
    {"bar.sync 0;", "bar.sync 0; bar.sync 0;", "found bar.sync 0"},
    {"fence.proxy.async.shared::cta;",
     "fence.proxy.async.shared::cta; fence.proxy.async.shared::cta;",
     "found fence.proxy.async.shared::cta (line 10)"},
    {"@%p7 mbarrier.arrive.shared::cta.b64 _, [%r14+16400];",
     "@%p7 mbarrier.arrive.shared::cta.b64 _, [%r14+16400];\n@%p7 mbarrier.arrive.shared::cta.b64 "
     "_, [%r14+16400];",
     "expected no other before the loop's next round, found mbarrier.arrive at 16400 (line 10)"},
    // by other threads
    {"setp.eq.s32 %p7, %r10, 0;", "setp.eq.s32 %p7, %r10, 1;",
     "'work', warp 0, lane 0: expected mbarrier.arrive at 16400 (line 10), found the thread ends"},
    {"setp.eq.s32 %p7, %r10, 0;", "setp.lt.s32 %p7, %r10, 9;",
     "'work', warp 0, lane 1: expected no other before the loop's next round, found "
     "mbarrier.arrive at 16400 (line 10)"},
    {"setp.gt.s32 %p4, %r3, 3;", "setp.gt.s32 %p4, %r3, 4;",
     "'work', warp 0, lane 0: expected setmaxnreg.dec 128, found setmaxnreg.dec 24 (line 7)"},
    {"mbarrier.try_wait.parity.shared::cta.b64 done, [%r14+16384], %r17;\n\t@!done bra "
     "again;\n\t}\n"
     "\tfence.proxy.async.shared::cta;\n\tbar.warp.sync -1;\n\tand.b32 %r10, %r1, 31;",
     "mbarrier.try_wait.parity.shared::cta.b64 done, [%r14+16384], %r17;\n\t@!done bra "
     "again;\n\t}\n"
     "\tfence.proxy.async.shared::cta;\n\tbar.warp.sync -1;\n\tand.b32 %r10, %r1, 15;",
     "'work', warp 0, lane 16: expected no other before the loop's next round, found "
     "mbarrier.arrive at 16400 (line 10)"},
    // another round without a jump back
    {"bra.uni $tile;",
     "bra.uni $more;\n$more: { .reg .pred done;\n"
     "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%r14+16384], %r17;\n"
     "@!done bra again; }\nbra.uni $tile;",
     "expected no other before the loop's next round, found mbarrier.try_wait at 16384 (line 10)"},
    // a loop that is never entered
    {"$tile:\n", "$tile:\n\tbra.uni $end;\n",
     "expected mbarrier.try_wait at 16384 (line 10), found it is on no path"},
    // a loop that is none
    {"bra.uni $tile;", "",
     "'work', warp 0, lane 0: expected another round of the loop, found it is on no path"},
    // other numbers
    {"1, 4, %p3;", "1, 5, %p3;",
     "expected mbarrier.init 4 at 16400, found mbarrier.init 5 at 16400"},
    {"bar.sync 0;", "bar.sync 1;", "expected bar.sync 0, found bar.sync 1"},
    {"u32 24;", "u32 32;", "expected setmaxnreg.dec 24, found setmaxnreg.dec 32 (line 7)"},
    {"8192;", "8191;", "found mbarrier.arrive.expect_tx 8191 at 16384 (line 7)"},
    {"bar.warp.sync -1;", "bar.warp.sync 1;", "found bar.warp.sync 1 (line 10)"},
    {"[%r14+16400], %r17;", "[%r14+16384], %r17;",
     "expected mbarrier.try_wait at 16400 (line 7), found mbarrier.try_wait at 16384 (line 7)"},
    {"mov.u64 %rd2, copy_param_0;", "mov.u64 %rd2, copy_param_1;",
     "found cp.async.bulk.tensor in by map 1 at 16384 (line 7)"},
    // other stages: by a fixed distance, by a cursor that goes round too early or not at all
    {"[%r14+16400], %r17;", "[%r14+16408], %r17;",
     "expected mbarrier.try_wait for parity 1 at 16400 (line 7), found mbarrier.try_wait for "
     "parity 1 at 16408 (line 7)"},
    {"add.s32 %r15, %r14, 16384;", "add.s32 %r15, %r14, 16392;",
     "expected cp.async.bulk.tensor in by map 0 at 16384 (line 7), found cp.async.bulk.tensor in "
     "by map 0 at 16392 (line 7)"},
    {"setp.eq.s32 %p8, %r18, 2;", "setp.eq.s32 %p8, %r18, 1;",
     "expected mbarrier.try_wait for parity 1 at 16408 (line 7), found mbarrier.try_wait for "
     "parity 0 at 16400 (line 7)"},
    {"\tmov.u32 %r20, 0;\n", "",
     "expected mbarrier.try_wait for parity 1 at 16384 (line 10), found mbarrier.try_wait for "
     "parity 1 at 16400 (line 10)"},
    {"selp.b32 %r16, 0, %r18, %p8;", "selp.b32 %r16, 0, %r18, %p9;",
     "expected mbarrier.try_wait for parity 1 at 16408 (line 7), found mbarrier.try_wait for "
     "parity 1 at 16400 (line 7)"},
    // other phases
    {"mov.u32 %r17, 1;", "mov.u32 %r17, 0;",
     "expected mbarrier.try_wait for parity 1 at 16400 (line 7), found mbarrier.try_wait for "
     "parity 0 at 16400 (line 7)"},
    {"xor.b32 %r17, %r17, %r19;", "",
     "expected mbarrier.try_wait for parity 0 at 16400 (line 7), found mbarrier.try_wait for "
     "parity 1 at 16400 (line 7)"},
    {"\txor.b32 %r17, %r17, 1;\n", "",
     "expected mbarrier.try_wait for parity 1 at 16384 (line 10), found mbarrier.try_wait for "
     "parity 0 at 16384 (line 10)"},
    // other instructions
    {"fence.proxy.async.shared::cta;", "fence.acq_rel.cta;",
     "found another instruction that synchronises (line 10)"},
    {"setmaxnreg.dec.sync.aligned.u32 128;", "setmaxnreg.inc.sync.aligned.u32 128;",
     "found setmaxnreg.inc 128 (line 7)"},
    // moved: out of the loop, and to another line
    {"$tile:\n", "fence.proxy.async.shared::cta;\n$tile:\n",
     "found fence.proxy.async.shared::cta (line 7)"},
    {".loc 1 10 5", ".loc 1 9 5",
     "expected mbarrier.try_wait at 16384 (line 10), found mbarrier.try_wait at 16384 (line 9)"},
    // a path without it
    {"fence.proxy.async.shared::cta;", "@%p9 fence.proxy.async.shared::cta;",
     "found bar.warp.sync 4294967295 (line 10)"},
    // no such text
    {".entry copy(", ".entry other(", "it has no function 'copy'"},
    {"bra.uni $load;", "bra.uni $nowhere;", "a jump to nowhere: '$nowhere'"},
    {"bra.uni $load;", "brx.idx %r1, $table;", "a jump by a table: 'brx.idx'"},
};

static void mistakes_are_found(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, copy, NULL, false);
  const char *text = read_copy(&f.sc);
  assert_string_equal(said(&f, text), "ok");
  for (size_t i = 0; i < COUNT(mistakes); i++) {
    const Mistake *m = &mistakes[i];
    const char *report = said(&f, edited(&f.sc, text, m->what, m->by));
    size_t n = strlen(report), end = strlen(m->report);
    if (n < end || strcmp(report + n - end, m->report))
      fail_msg("'%s' for '%s': %s", m->by, m->what, report);
  }
  end(&f);
}

// What may be otherwise: instructions that do not synchronise, other spellings, code in two places.
static void other_code_passes(void **state) {
  (void)state;
  static const Mistake harmless[] = {
      {"bar.sync 0;", "barrier.cta.sync.aligned 0;", ""},
      {"mbarrier.init.shared::cta.b64 [%r9], %r8;", "mbarrier.init.shared.b64 [%r9], %r8;", ""},
      {".loc 1 10 5", ".loc 1 0 5", ""},  // the compiler knows no line
      {"$load:\n", "bra.uni $load;\n$load:\n", ""},
      {"fence.proxy.async.shared::cta;",
       "@%p9 bra $b; fence.proxy.async.shared::cta; bra $c; $b: fence.proxy.async.shared::cta; $c:",
       ""},
      {"setp.ne.s32 %p5, %r10, 0;", "setp.gt.u32 %p5, %r10, 0;", ""}};
  static Fixture f;
  begin(&f, copy, NULL, false);
  const char *text = read_copy(&f.sc);
  for (size_t i = 0; i < COUNT(harmless); i++)
    assert_string_equal(said(&f, edited(&f.sc, text, harmless[i].what, harmless[i].by)), "ok");
  end(&f);
}

// … that takes several edits of the text to write.
static void other_forms_pass(void **state) {
  (void)state;
  enum { EDITS = 5 };
  static const char *const form[][EDITS][2] = {
      // the end of a loop's body stands before its beginning
      {{"$load:\n", "bra.uni $load;\n$tail:\n"},
       {"ld.param.u32 %r12, [copy_param_1];\n\tsetp.ge.s32 %p6, %r11, %r12;\n\t@%p6 bra $end;\n"
        "\tshl.b32 %r13, %r16, 3;\n\tadd.s32 %r14, %r13, %r4;\n\t{\n\t.reg .pred done;\nagain:\n"
        "\tmbarrier.try_wait.parity.shared::cta.b64 done, [%r14+16400], %r17;\n\t@!done bra "
        "again;\n"
        "\t}\n\t.loc 2 46 3, function_name $expect, inlined_at 1 7 33\n"
        "\tmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r14+16384], 8192;\n",
        ""},
       {"bra.uni $load;\n$work:",
        "$load: ld.param.u32 %r12, [copy_param_1];\n\tsetp.ge.s32 %p6, %r11, %r12;\n"
        "\t@%p6 bra $end;\n\tshl.b32 %r13, %r16, 3;\n\tadd.s32 %r14, %r13, %r4;\n"
        "\t{\n\t.reg .pred done;\nagain:\n"
        "\tmbarrier.try_wait.parity.shared::cta.b64 done, [%r14+16400], %r17;\n\t@!done bra "
        "again;\n"
        "\t}\n\tmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r14+16384], 8192;\n"
        "\tbra.uni $tail;\n$work:"}},
      // the first round is sure, and its end is the first branch that data decides
      {{"$load:\n\tld.param.u32 %r12, [copy_param_1];\n\tsetp.ge.s32 %p6, %r11, %r12;\n"
        "\t@%p6 bra $end;\n",
        "$load: ld.param.u32 %r12, [copy_param_1];\n"},
       {"bra.uni $load;\n$work:",
        "setp.lt.s32 %p6, %r11, %r12;\n@%p6 bra $load;\nbra.uni $end;\n$work:"}},
      // another base
      {{"add.s32 %r14, %r13, %r4;", "add.s32 %r21, %r4, 16000;\nadd.s32 %r14, %r13, %r21;"},
       {"[%r14+16400], %r17;", "[%r14+400], %r17;"},
       {"_, [%r14+16384], 8192;", "_, [%r14+384], 8192;"},
       {"add.s32 %r15, %r14, 16384;", "add.s32 %r15, %r14, 384;"}},
  };
  static Fixture f;
  begin(&f, copy, NULL, false);
  for (size_t i = 0; i < COUNT(form); i++) {
    const char *text = read_copy(&f.sc);
    for (size_t e = 0; e < EDITS && form[i][e][0]; e++)
      text = edited(&f.sc, text, form[i][e][0], form[i][e][1]);
    assert_string_equal(said(&f, text), "ok");
  }
  end(&f);
}

// What no launch comes to, the compiler of C may leave out.
static bool may_be_left_out(const char *cond) {
  static Fixture f, g;
  begin(&f, copy, NULL, false);
  const char *fill = sc_printf(&f.sc, "{ r <- X[b, x*64..];  if %s { r <- X[b, x*64..] } }", cond),
             *drain = sc_printf(&f.sc, "release r;  if %s { wait r;  release r }\n", cond),
             *source = edited(&f.sc, copy, "{ r <- X[b, x*64..] }", fill);
  begin(&g, edited(&f.sc, source, "release r\n", drain), NULL, false);
  const bool may = !strcmp(said(&g, read_copy(&g.sc)), "ok");
  end(&g);
  end(&f);
  return may;
}

static void dead_code_may_be_left_out(void **state) {
  (void)state;
  assert_true(may_be_left_out("M < 0"));
  assert_true(may_be_left_out("M > 5 and M < 3"));
  assert_true(may_be_left_out("M % 3 == 0 and M % 3 == 1"));
  assert_true(may_be_left_out("2 * M == 5"));
  assert_false(may_be_left_out("M > 5 and M < 7"));
  assert_false(may_be_left_out("M % 3 == 0 and M % 2 == 1"));
}

// Where the caller wants it, what differs is a warning, and still no success.
static void differences_may_be_forced(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, copy, NULL, false);
  const char *text = edited(&f.sc, read_copy(&f.sc), "bar.sync 0;", "bar.sync 1;");
  f.sc.unverified = true;
  assert_string_not_equal(said(&f, text), "ok");
  assert_int_equal(f.sc.diags->severity, SCHEDC_WARNING);
  assert_int_equal(f.sc.errors, 0);
  f.sc.unverified = false;
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mistakes_are_found), cmocka_unit_test(other_code_passes),
      cmocka_unit_test(other_forms_pass), cmocka_unit_test(dead_code_may_be_left_out),
      cmocka_unit_test(differences_may_be_forced)};
  return cmocka_run_group_tests_name("ptx", tests, NULL, NULL);
}
