// Tests of how the elements of a statement are written: what is tested before an access, what is
// read together.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "passes.h"

typedef struct Fixture {
  Sc sc;
  jmp_buf unwind;
} Fixture;

static int begin(void **state) {
  static Fixture f;
  sc_init(&f.sc, NULL);
  f.sc.unwind = &f.unwind;
  *state = &f;
  return 0;
}

static int end(void **state) {
  Fixture *f = *state;
  sc_free(&f->sc);
  return 0;
}

static const char *emit(Fixture *f, const char *source) {
  f->sc.text = sc_text(&f->sc, "test.sched", source, strlen(source));
  const Ast *ast = sc_parse(&f->sc, f->sc.text);
  const Kernel *k = ast && !f->sc.errors ? sc_compile_to(&f->sc, ast, &(Choice){0}, NULL) : NULL;
  if (!k) fail_msg("%s", f->sc.diags->text);
  Str out = {.sc = &f->sc}, flat = {.sc = &f->sc};
  sc_print_cuda(&out, k);
  for (const char *p = out.at; *p; p++) {  // however its lines are broken
    bool space = strchr(" \n", *p), more = flat.n && flat.at[flat.n - 1] == ' ';
    if (!space || !more) str_put(&flat, space ? " " : p, 1);
  }
  return flat.at;
}

static void has(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("'%s' is missing in\n%s", part, text);
}

static void lacks(const char *text, const char *part) {
  if (strstr(text, part)) fail_msg("'%s' should not be in\n%s", part, text);
}

// A tile may be wider than the tensor, whose last columns it then passes.
static void columns_past_the_end(void **state) {
  const char *t =
      emit(*state,
           "kernel k {\n  in X : f32[M, 100]\n  out Y : f32[M, 100]\n  grid (x : cdiv(M, 64))\n"
           "  role r : 1 warpgroup, 128 regs {\n    reg a : f32[64, 128]\n"
           "    a[i,j] = X[x*64 + i, j]\n    Y[x*64 + i, j] = a[i,j]\n  }\n}\n");
  has(t, "a.M && col0 + sc_col(e) < 100 ? a.X[");
  has(t, "a.M && col0 + sc_col(e) < 100) a.Y[");
}

// Where extents and instances say that all is inside, nothing is tested.
static void inside_by_their_form(void **state) {
  const char *t = emit(*state,
                       "kernel k {\n  in X : f32[128, 64]\n  out Y : f32[128, 64]\n"
                       "  role r[w] : 2 warpgroups, 128 regs {\n    reg a : f32[64, 64]\n"
                       "    a[i,j] = X[64*w + i, j]\n    Y[64*w + i, j] = a[i,j]\n  }\n}\n");
  lacks(t, "< 128");
  lacks(t, "< 64");
  t = emit(*state,
           "kernel k {\n  in X : f32[120, 64]\n  out Y : f32[120, 64]\n"
           "  role r[w] : 2 warpgroups, 128 regs {\n    reg a : f32[64, 64]\n"
           "    a[i,j] = X[64*w + i, j]\n    Y[64*w + i, j] = a[i,j]\n  }\n}\n");
  has(t, "< 120 ? a.X[");
  has(t, "< 120) a.Y[");
}

// A vector along the columns, in a stage: two elements a load, which serve both rows; one by one
// from an odd place.
static void pairs_along_columns(void **state) {
  static const char *const from[] = {"", "2*w + ", "w + "};
  for (u32 i = 0; i < COUNT(from); i++) {
    Fixture *f = *state;
    Str s = {.sc = &f->sc};
    str_printf(&s,
               "kernel k {\n  in X : f32[M, 64], v : f32[68]\n  out Y : f16[M, 64]\n  grid (x : "
               "cdiv(M, 128))\n"
               "  ring r : f32[68]\n  role load : 1 warp, 24 regs { r <- v[0..] }\n"
               "  role math[w] : 2 warpgroups, 128 regs {\n    reg a : f32[64, 64], b : f16[64, "
               "64]\n    wait r\n"
               "    a[i,j] = X[x*128 + 64*w + i, j] * r[%sj]\n    b[i,j] = a[i,j] + r[%sj]\n    "
               "release r\n"
               "    Y[x*128 + 64*w + i, j] = b[i,j]\n  }\n}\n",
               from[i], from[i]);
    const char *t = emit(f, s.at);
    if (i < 2) {
      has(t, "const float2 pair = sc_lds64(smem + ");
      has(t, " * (e & 1 ? pair.y : pair.x);");
      has(t, "sc_pack_f16(a_[e] + pair.x, a_[e + 1] + pair.y);");
      lacks(t, "sc_lds32(smem");
    } else {
      lacks(t, "sc_lds64(smem");
    }
  }
}

// Pairs of 16-bit elements become words of four: each of the four takes its own half.
static void bytes_from_pairs(void **state) {
  const char *t = emit(
      *state,
      "kernel k {\n  in X : f16[M, 64]\n  out Y : e4m3[M, 64]\n  grid (x : cdiv(M, 64))\n"
      "  role r : 1 warpgroup, 128 regs {\n    reg a : f16[64, 64], b : e4m3[64, 64]\n"
      "    a[i,j] = X[x*64 + i, j]\n    b[i,j] = a[i,j]\n    Y[x*64 + i, j] = b[i,j]\n  }\n}\n");
  has(t, "y[q] = sc_of_f16(a_[e / 2] >> 16 * (e & 1) & 0xffff);");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
  const struct CMUnitTest tests[] = {TEST(columns_past_the_end), TEST(inside_by_their_form),
                                     TEST(pairs_along_columns), TEST(bytes_from_pairs)};
  return cmocka_run_group_tests_name("elements", tests, NULL, NULL);
}
