// Tests of the log reader: logs as NVRTC 13.0 and ptxas write them, cut to what matters, and what
// becomes of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/cuda/build.h"
#include "fixture.h"

static const char clean[] =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'fa3_fwd' for 'sm_90a'\n"
    "ptxas info    : Function properties for fa3_fwd\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 168 registers, used 16 barriers\n"
    "ptxas info    : Compile time = 688.624 ms\n";

static const char spilled[] =
    "ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are "
    "serialized due to "
    "insufficient register resources for the function 'fa3_fwd'\n"
    "ptxas info    : Function properties for fa3_fwd\n"
    "ptxas         .     512 bytes stack frame, 1552 bytes spill stores, 1292 bytes spill loads\n"
    "ptxas info    : Used 160 registers, used 16 barriers, 512 bytes cumulative stack size\n";

static const char ignored[] =
    "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
    "register count at "
    "entry.\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 222 registers, used 16 barriers\n";

static const char refused[] =
    "my (1).sched(4): error: identifier \"foo\" is undefined\n"
    "   for (int t=0; t < last; t++) foo();\n"
    "                                ^\n"
    "\n"
    "x.cu(16): warning #177-D: function \"sc_quad_min\" was declared but never referenced\n"
    "  DEV float sc_quad_min(float x) { return x; /* no error: here */ }\n"
    "\n"
    "1 error detected in the compilation of \"x.cu\".\n";

static const char source[] =
    "kernel k {\n"
    "  in A : f16[M, 64], B : f16[64, 64]\n"
    "  out C : f32[M, 64]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  ring a : f16[64, 64], b : f16[64, 64]\n"
    "  role load : 1 warp, 24 regs { a <- A[x*64..];  b <- B[0..] }\n"
    "  role math : 1 warpgroups, 240 regs {\n"
    "    reg c : f32[64, 64]\n"
    "    wait a, b\n"
    "    async c[i,j] = a[i,d] @ b[j,d]\n"
    "    wait c;  release a, b\n"
    "    C[x*64 + i, j] = c[i,j]\n"
    "  }\n"
    "}\n";

static BuildLog found;  // in the log read last

static const char *report(Fixture *f, const char *log, bool lenient) {
  const Kernel *k = compile(f, "my (1).sched", source);
  Str out = {.sc = &f->sc};
  sc_read_log(&f->sc, log, &found);
  sc_report_log(&f->sc, k, &found, lenient);
  for (const Diag *d = f->sc.diags; d; d = d->next) sc_diag_text(&out, f->sc.text, d);
  return out.at ? out.at : "";
}

static void of_a_clean_build(void **state) {
  Fixture *f = *state;
  assert_string_equal(report(f, clean, false), "");
  assert_int_equal(found.registers, 168);
  assert_int_equal(found.barriers, 16);
  assert_int_equal(found.stack + found.spill_stores + found.spill_loads, 0);
  assert_int_equal(found.remark.n, 0);
}

static void of_spills_and_serialized_products(void **state) {
  Fixture *f = *state;
  const char *text = report(f, spilled, false);
  assert_int_equal(found.stack, 512);
  assert_int_equal(found.spill_stores, 1552);
  assert_int_equal(found.spill_loads, 1292);
  assert_int_equal(found.remark.n, 1);
  assert_int_equal(found.remark.at[0].kind, REMARK_SERIAL);
  assert_int_equal(found.remark.at[0].code, 7512);
  assert_int_equal(f->sc.errors, 2);
  assert_non_null(strstr(
      text, "my (1).sched:7:8: error[G.serial]: wgmma.mma_async instructions are serialized"));
  assert_non_null(strstr(text, "   10 |     async c[i,j] = a[i,d] @ b[j,d]"));
  assert_non_null(strstr(
      text,
      "my (1).sched:7:8: error[G.spill]: registers of 'k' are kept in memory: stack frame 512"));
}

// The role without room, not the one with most tiles; nor one that has few registers and no tiles.
static void of_the_role_without_room(void **state) {
  Fixture *f = *state;
  static const char text[] =
      "kernel k {\n  in A : f32[M, 256]\n  out Y : f32[M, 256], Z : f32[M, 64]\n"
      "  grid (x : cdiv(M, 64))\n  ring r : f32[64, 256]\n"
      "  role load : 1 warp, 24 regs { r <- A[x*64..] }\n"
      "  role big : 1 warpgroup, 240 regs {\n    reg s : f32[64, 256]\n    wait r\n"
      "    s[i,j] = r[i,j]\n    release r\n    Y[x*64 + i, j] = s[i,j]\n  }\n"
      "  role small : 1 warpgroup, 72 regs {\n    reg s : f32[64, 64]\n    wait r\n"
      "    s[i,j] = r[i,j]\n    release r\n    Z[x*64 + i, j] = s[i,j]\n  }\n}\n";
  static const char log[] =
      "ptxas info    : Function properties for k\n"
      "ptxas         .     8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n";
  const Kernel *k = compile(f, "s.sched", text);
  sc_read_log(&f->sc, log, &found);
  sc_report_log(&f->sc, k, &found, false);
  const Diag *d = f->sc.diags;
  assert_non_null(d);
  assert_int_equal(sc_line_col(f->sc.text, d->at.lo).line, 14);
  assert_non_null(strstr(d->notes->text, "its tiles take about 32 of its 72 registers"));
}

static void demoted(void **state) {
  Fixture *f = *state;
  const char *text = report(f, spilled, true);
  assert_int_equal(f->sc.errors, 0);
  assert_null(strstr(text, "error["));
  assert_non_null(strstr(text, "warning[G.serial]"));
  assert_non_null(strstr(text, "warning[G.spill]"));
}

static void of_ignored_setmaxnreg(void **state) {
  Fixture *f = *state;
  const char *text = report(f, ignored, false);
  assert_int_equal(found.remark.n, 1);
  assert_int_equal(found.remark.at[0].kind, REMARK_SETMAXNREG);
  assert_int_equal(found.registers, 222);
  assert_non_null(strstr(text,
                         "error[G.setmaxnreg]: 'setmaxnreg' ignored; unable to determine register "
                         "count at entry. (ptxas C7508)"));
}

static void of_refused_code(void **state) {
  Fixture *f = *state;
  const char *text = report(f, refused, true);
  assert_int_equal(found.remark.n, 2);
  assert_string_equal(found.remark.at[0].file, "my (1).sched");
  assert_int_equal(found.remark.at[0].line, 4);
  assert_string_equal(found.remark.at[1].file, "x.cu");
  assert_int_equal(f->sc.errors, 1);  // an error stays one
  assert_non_null(strstr(text,
                         "my (1).sched:4:3: error[G.nvrtc]: the emitted code is refused: "
                         "identifier \"foo\" is undefined"));
  assert_non_null(
      strstr(text, "my (1).sched:1:8: warning[G.nvrtc]: function \"sc_quad_min\" was declared"));
}

// Of several functions: each remark and spill at the kernel that it is about, figures the worst.
static void of_a_sequence(void **state) {
  Fixture *f = *state;
  static const char text[] =
      "kernel one {\n  out Y : f32[M]\n  grid (x : cdiv(M, 64))\n"
      "  role r : 1 warpgroup, 128 regs { reg v : f32[64] = 1\n  Y[x*64 + i] = v[i] }\n}\n"
      "kernel int {\n  in Y : f32[M]\n  out Z : f32[M]\n  grid (x : cdiv(M, 64))\n"
      "  role s : 1 warpgroup, 128 regs { reg v : f32[64]\n  v[i] = Y[x*64 + i]\n  Z[x*64 + i] = "
      "v[i] }\n}\n"
      "sequence both {\n  one\n  int\n}\n";
  static const char log[] =
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to x in the function 'one'\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to y in function int_\n"
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored\n"
      "ptxas info    : Compiling entry function 'int_' for 'sm_90a'\n"
      "ptxas info    : Function properties for int_\n"
      "ptxas         .     8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 2 barriers\n"
      "ptxas info    : Function properties for one\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 90 registers, used 1 barriers\n";
  const Kernel *k = compile(f, "s.sched", text);
  sc_read_log(&f->sc, log, &found);
  sc_report_log(&f->sc, k, &found, false);
  assert_int_equal(found.registers, 168);
  assert_int_equal(found.barriers, 2);
  // The kernels (they have no products to blame), the sequence, the role.
  static const u32 line[] = {1, 7, 15, 11};
  static const DiagId id[] = {D_G_SERIAL, D_G_SERIAL, D_G_SETMAXNREG, D_G_SPILL};
  const Diag *d = f->sc.diags;
  for (u32 i = 0; i < COUNT(line); i++, d = d->next) {
    assert_non_null(d);
    assert_int_equal(d->id, id[i]);
    assert_int_equal(sc_line_col(f->sc.text, d->at.lo).line, line[i]);
  }
  assert_null(d);
}

// Each remark of ptxas's that is known, and one that is not.
static void of_all_kinds(void **state) {
  Fixture *f = *state;
  static const char *const serial[] = {"Extern calls", "ill formed pipeline stage",
                                       "non wgmma instructions"};
  Str log = {.sc = &f->sc};
  for (u32 i = 0; i < COUNT(serial); i++) {
    str_printf(&log,
               "ptxas info    : (C75%u) Potential Performance Loss: wgmma.mma_async instructions "
               "are serialized due to %s\n",
               10 + i, serial[i]);
  }
  str_puts(&log,
           "ptxas info    : (C7999) Potential Performance Loss: something new\nptxas warning : "
           "(C7000) beware\n"
           "ptxas fatal   : Unresolved extern function 'f'\nptxas info    : Compile time = 1 ms");
  sc_read_log(&f->sc, log.at, &found);
  assert_int_equal(found.remark.n, 6);
  for (u32 i = 0; i < 3; i++) assert_int_equal(found.remark.at[i].kind, REMARK_SERIAL);
  assert_int_equal(found.remark.at[3].kind, REMARK_WARNING);
  assert_string_equal(found.remark.at[3].text, "something new");
  assert_int_equal(found.remark.at[4].kind, REMARK_WARNING);
  assert_int_equal(found.remark.at[5].kind, REMARK_ERROR);
}

// Anything may stand in a log.
static void of_rubbish(void **state) {
  Fixture *f = *state;
  static const char *const rubbish[] = {"",
                                        "\n\n",
                                        "error: ",
                                        "(): error: x",
                                        "): error: x",
                                        "): warning ",
                                        "warning ",
                                        "ptxas",
                                        "ptxas (C",
                                        "ptxas : (C99999999999999999999) ",
                                        "ptxas  bytes stack frame",
                                        "99999999999999999999 bytes stack frame",
                                        "a(b): error: c"};
  for (u32 i = 0; i < COUNT(rubbish); i++) sc_read_log(&f->sc, rubbish[i], &found);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(of_a_clean_build),
                                     TEST(of_spills_and_serialized_products),
                                     TEST(of_the_role_without_room),
                                     TEST(demoted),
                                     TEST(of_ignored_setmaxnreg),
                                     TEST(of_refused_code),
                                     TEST(of_a_sequence),
                                     TEST(of_all_kinds),
                                     TEST(of_rubbish)};
  return cmocka_run_group_tests_name("ptxas", tests, NULL, NULL);
}
