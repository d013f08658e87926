// Tests of the emitter: what it cannot write it refuses, at the line; all else it writes: every
// kernel of schedules/ and tests/corpus/, with and without debug waits. With them no wait is left
// that could last for ever; without them nothing of theirs is there.
// (tests/configs.py builds what is written.)
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>

#include "runtime/cuda/build.h"
#include "runtime/cuda/gpu.h"
#include "files.h"
#include "fixture.h"

// NULL: reported.
static const CudaText *try_emit(Fixture *f, const char *name, const char *source, const char *unit,
                                bool debug_waits, const Kernel **k) {
  sc_init(&f->sc, NULL);
  f->sc.unwind = &f->unwind;
  if (setjmp(f->unwind)) fail_msg("unwound");
  f->sc.text = sc_text(&f->sc, name, source, strlen(source));
  const Ast *ast = sc_parse(&f->sc, f->sc.text);
  Compilation c = {.ast = ast, .choice = {.unit = unit}};
  *k = !f->sc.errors && sc_compile(&f->sc, &c, "ast", "place") ? c.k : NULL;
  return *k ? sc_cuda(&f->sc, *k, &(CudaOptions){debug_waits}) : NULL;
}

static const CudaText *emit(Fixture *f, const char *name, const char *source, const char *unit,
                            bool debug_waits, const Kernel **k) {
  const CudaText *t = try_emit(f, name, source, unit, debug_waits, k);
  if (!t) fail_msg("%s: %s", name, f->sc.diags ? f->sc.diags->text : "no kernel");
  return t;
}

// ---- refused

static void refused(const char *body, const char *word) {
  Fixture f;
  const Kernel *k;
  char source[4096];
  snprintf(
      source, sizeof source,
      "kernel k {\n  in X : f32[M, 64], H : f16[M, 64], S : f32[M, 40], I : i32[M, 64], V : "
      "f32[64], T : f32[M, 4, 64]\n"
      "  inout Y : f32[M, 64]\n  inout Z : f32[M]\n  inout W : f16[M, 64]\n  inout A : f32[64]\n  "
      "grid (x : cdiv(M, 64))\n  %s}\n",
      body);
  const CudaText *t = try_emit(&f, "test.sched", source, NULL, false, &k);
  if (t) fail_msg("emitted, where '%s' is expected", word);
  assert_int_equal(f.sc.diags->id, D_G_EMIT);
  Str all = {.sc = &f.sc};
  for (const Diag *d = f.sc.diags; d; d = d->next) str_printf(&all, "%s\n", d->text);
  if (!strstr(all.at, word)) fail_msg("'%s' lacks '%s'", all.at, word);
  sc_free(&f.sc);
}

#define ROLE "role r : 1 warpgroup, 128 regs {\n"

static void what_cannot_be_written(void **state) {
  (void)state;
  refused(ROLE "reg s : f32[40, 64]\n s[i,j] = 1\n Y[x*64 + i, j] = s[i,j] }\n",
          "whole blocks of rows");
  refused(ROLE "reg s : f32[64, 36]\n s[i,j] = 1\n Y[x*64 + i, j] = s[i,j] }\n", "multiple of 8");
  refused(ROLE
          "reg s : f32[64, 64], c : f32[64]\n s[i,j] = X[x*64 + i, j]\n c[j] = max(i) s[i,j]\n "
          "A[j] = c[j] }\n",
          "does not run along the rows");
  refused(ROLE "Z[x*64] = sum(j) X[x*64, j] }\n", "nothing is in registers");
  refused(ROLE
          "reg s : f32[64, 64], n : f32[64]\n s[i,j] = X[x*64 + i, j]\n n[j] = V[j]\n"
          " s[i,j] = s[i,j] * n[j]\n Y[x*64 + i, j] = s[i,j]\n A[j] += n[j] }\n",
          "vector along columns");
  refused("ring g : f32[4, 64, 64]\n" ROLE
          "reg s : f32[64, 64]\n acquire g\n g[0, i, j] = X[x*64 + i, j]\n commit g\n wait g\n "
          "s[i,j] = g[0, i, j]\n release g\n Y[x*64 + i, j] = s[i,j] }\n",
          "more than two dimensions");
}

// Vectors alone, over a part of a block.
static void parts_of_blocks(void **state) {
  (void)state;
  refused("ring g : f32[64, 20]\n" ROLE
          "reg r : f32[64]\n r[i] = V[i]\n acquire g\n g[i,j] = r[i]\n commit g\n wait g\n release "
          "g }\n",
          "'j' runs over 20, no multiple of 8");
  refused("ring g : f32[40, 64]\n" ROLE
          "reg s : f32[64, 64], v : f32[64]\n v[j] = V[j]\n s[i,j] = v[j]\n acquire g\n "
          "g[i,j] = v[j]\n commit g\n wait g\n release g\n Y[x*64 + i, j] = s[i,j] }\n",
          "'i' runs over 40, no multiple of 64");
}

#define SLICES                                                       \
  "ring g : f16[64, 192]\n" ROLE                                     \
  "reg s : f32[64, 64], n : f32[64, 32], p : f16[64, 64]\n acquire " \
  "g\n g[i,j] = H[i, 0]\n commit g\n wait g\n p[i,k] = g[i,k]\n "

// A column where an operand starts: as a constant, and as a multiple.
static void slices_across_panels(void **state) {
  (void)state;
  static const char crossing[] = "start within one panel and end in another";
  refused(SLICES "async s[i,j] = p[i,k] @ g[k, 32 + j]\n wait s\n release g }\n", crossing);
  refused(SLICES "async s[i,j] = p[i,k] @ g[j, 8 + k]\n wait s\n release g }\n", crossing);
  refused(SLICES
          "for u in 0 .. 2 { async n[i,j] = p[i,k] @ g[k, 48*u + j]\n wait n }\n release g }\n",
          crossing);
  refused(SLICES
          "for u in 0 .. 2 { async s[i,j] = p[i,k] @ g[j, 32*u + k]\n wait s }\n release g }\n",
          crossing);
  refused("ring h : f16[64, 64]\n" SLICES
          "acquire h\n h[i,j] = H[i, 0]\n commit h\n wait h\n "
          "s[i,j] = g[i, 4 + k] @ h[j,k]\n release g, h }\n",
          "no multiple of 16 bytes");
}

// ---- written

// What only debug waits need, and what waits until another role comes.
static void expect_waits(const Kernel *k, const CudaText *t, bool debug) {
  static const char *const bounded[] = {"a.waits",     "*waits", "globaltimer",
                                        "_generation", "_for(",  "gave_up"};
  static const char *const unbounded[] = {"sc_mbar_wait(", "sc_bar_sync(", "sc_bar_arrive(",
                                          "sc_turn_take(", "bar.sync",     "@!done bra",
                                          "_parity"};
  for (u32 i = 0; i < COUNT(bounded); i++) {
    if (!debug && strstr(t->text.at, bounded[i]))
      fail_msg("%s: '%s' without debug waits", k->name, bounded[i]);
  }
  for (u32 i = 0; i < COUNT(unbounded); i++) {
    if (debug && strstr(t->text.at, unbounded[i]))
      fail_msg("%s: '%s' with debug waits", k->name, unbounded[i]);
  }
  for (u32 i = 0; i < (k->launch.n ? k->launch.n : 1); i++) {
    const CudaText *step = k->launch.n ? t->step[i] : t;
    u32 smem = k->launch.n ? k->launch.at[i].kernel->smem : k->smem;
    assert_true(debug ? step->wait_words > step->sites : !step->wait_words && !step->sites);
    assert_true(debug ? step->smem >= smem : step->smem == smem);
  }
}

// Rings that leave 32 bytes of 227 KB: too few for what stands in for five named barriers.
static void waits_need_memory(void **state) {
  (void)state;
  static const char source[] =
      "kernel k {\n  in X : f16[M, 64], L : f32[32]\n  out Y : f16[M, 64]\n  grid (x : cdiv(M, "
      "128))\n"
      "  ring r : f16[64, 64] * 28, l : f32[32] * 18\n  turn one : math\n  turn two : math\n"
      "  role load : 1 warp, 24 regs { r <- X[x*128..];  l <- L[0..] }\n"
      "  role math[w] : 2 warpgroups, 128 regs {\n    reg s : f16[64, 64]\n    wait r, l\n"
      "    acquire one;  s[i,j] = r[i,j];  release one\n    acquire two;  release two\n"
      "    release r, l\n    Y[x*128 + 64*w + i, j] = s[i,j]\n  }\n}\n";
  Fixture f;
  const Kernel *k;
  assert_non_null(emit(&f, "test.sched", source, NULL, false, &k));
  sc_free(&f.sc);
  assert_null(try_emit(&f, "test.sched", source, NULL, true, &k));
  assert_int_equal(f.sc.diags->id, D_G_EMIT);
  assert_string_equal(
      f.sc.diags->text,
      "'k' needs 232456 bytes of shared memory with --debug-waits, and a CTA has 232448");
  sc_free(&f.sc);
}

// More tensors are copied than a launch can pass tensor maps for.
static void parameters_need_room(void **state) {
  (void)state;
  enum { MOST = 32764 / 128 };
  for (u32 n = MOST; n <= MOST + 1; n++) {
    Fixture f;
    const Kernel *k;
    Sc sc;
    sc_init(&sc, NULL);
    Str s = {.sc = &sc};
    str_puts(&s, "kernel k {\n  out Y : f32[64]\n");
    for (u32 i = 0; i < n; i++) str_printf(&s, "  in X%u : f32[64]\n", i);
    str_puts(&s, "  ring r : f32[64]\n  role load : 1 warp, 40 regs {\n");
    for (u32 i = 0; i < n; i++) str_printf(&s, "    r <- X%u[0..]\n", i);
    str_puts(&s, "  }\n  role add : 1 warpgroup, 128 regs {\n    reg s : f32[64] = 0\n");
    for (u32 i = 0; i < n; i++) str_puts(&s, "    wait r;  s[i] = s[i] + r[i];  release r\n");
    str_puts(&s, "    Y[i] = s[i]\n  }\n}\n");
    const CudaText *t = try_emit(&f, "test.sched", s.at, NULL, false, &k);
    assert_true((t != NULL) == (n == MOST));
    if (!t) {
      assert_int_equal(f.sc.diags->id, D_G_EMIT);
      assert_string_equal(f.sc.diags->text,
                          "'k' needs 32792 bytes of parameters, and a launch has 32764");
    }
    sc_free(&f.sc);
    sc_free(&sc);
  }
}

// A proxy fence for each operation that has one in its plan.
static void expect_fences(const Kernel *k, const CudaText *t) {
  u32 fences = 0;
  for (u32 i = 0; i < (k->launch.n ? k->launch.n : 1); i++) {
    const Kernel *step = k->launch.n ? k->launch.at[i].kernel : k;
    for (u32 j = 0; j < i; j++) {
      if (k->launch.at[j].kernel == step) return;  // written once
    }
    for (u32 r = 0; r < step->role.n; r++) {
      for (u32 n = 0; n < step->role.at[r].code.n; n++)
        fences += step->role.at[r].code.at[n].plan.fence;
    }
  }
  u32 written = count(t->text.at, "sc_fence_async") - count(t->text.at, "DEV void sc_fence_async");
  if (written != fences) fail_msg("%s: %u fences of %u are written", k->name, written, fences);
}

static bool next_unit(const char **at, char *name, size_t room) {
  static const char *const word[] = {"kernel ", "sequence "};
  for (const char *p = *at; *p; p += strcspn(p, "\n"), p += *p == '\n') {
    for (u32 i = 0; i < COUNT(word); i++) {
      if (strncmp(p, word[i], strlen(word[i])) != 0) continue;
      p += strlen(word[i]);
      size_t n = strcspn(p, " {\n");
      assert_true(n < room);
      memcpy(name, p, n);
      name[n] = 0;
      *at = p + n;
      return true;
    }
  }
  return false;
}

static u32 emit_file(const char *path) {
  size_t n;
  char *text = read_file(path, &n), unit[64];
  const char *at = text;
  u32 units = 0;
  for (; next_unit(&at, unit, sizeof unit); units++) {
    for (u32 debug = 0; debug < 2; debug++) {
      Fixture f;
      const Kernel *k;
      const CudaText *t = emit(&f, path, text, unit, debug, &k);
      if (!t) fail_msg("%s, %s: %s", path, unit, f.sc.diags->text);
      expect_waits(k, t, debug);
      expect_fences(k, t);
      sc_free(&f.sc);
    }
  }
  free(text);
  return units;
}

static u32 emit_folder(const char *folder) {
  DIR *d = opendir(folder);
  u32 units = 0;
  assert_non_null(d);
  for (const struct dirent *e; (e = readdir(d));) {
    const char *dot = strrchr(e->d_name, '.');
    char path[512];
    if (!dot || strcmp(dot, ".sched") != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    units += emit_file(path);
  }
  closedir(d);
  return units;
}

static void every_kernel(void **state) {
  (void)state;
  assert_true(emit_folder("schedules") >= 10);
  assert_true(emit_folder("tests/corpus") >= 20);
}

// A CTA of a plain grid has one tile and no loop.
static void loops_over_tiles(void **state) {
  (void)state;
  static const char *const mode[] = {"", "persistent", "dynamic"};
  for (u32 i = 0; i < COUNT(mode); i++) {
    Fixture f;
    const Kernel *k;
    char source[512];
    snprintf(
        source, sizeof source,
        "kernel k {\n  in X : f32[M, 64]\n  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64)) %s\n  "
        "ring r : f32[64, 64]\n"
        "  role load : 1 warp { r <- X[x*64..] }\n"
        "  role move : 1 warpgroup { wait r;  Y[x*64.., 0..] <- r;  wait Y read;  release r }\n}\n",
        mode[i]);
    const CudaText *t = emit(&f, "test.sched", source, NULL, false, &k);
    assert_non_null(t);
    assert_int_equal(strstr(t->text.at, "tile < args.tiles") != NULL, i > 0);
    assert_int_equal(strstr(t->text.at, "tile_step") != NULL, i > 0);
    assert_int_equal(strstr(t->text.at, "k_place_of(args, tile0)") != NULL, i != 1);
    sc_free(&f.sc);
  }
}

// G.header: what a launch depends on must be sayable in C.
static void what_a_header_cannot_say(void **state) {
  (void)state;
  Fixture f;
  const Kernel *k;
  const CudaText *t =
      emit(&f, "test.sched",
           "kernel k {\n  in s : f32 = 1\n  out Y : f32[M]\n  require sqrt(s) > 0\n  grid (x : "
           "cdiv(M, 64))\n"
           "  role r : 1 warpgroup, 128 regs { reg v : f32[64] = s\n  Y[x*64 + i] = v[i] }\n}\n",
           NULL, false, &k);
  assert_non_null(t);
  Str out = {.sc = &f.sc};
  const HeaderPart part = {k, t, &(Binary){"x", 1, ""}};
  assert_false(sc_header(&out, "k", &part, 1, &(HeaderShapes){0}, false));
  assert_int_equal(f.sc.diags->id, D_G_HEADER);
  assert_int_equal(sc_line_col(f.sc.text, f.sc.diags->at.lo).line, 4);
  assert_non_null(strstr(f.sc.diags->text, "function of reals"));
  sc_free(&f.sc);
}

// Work written between products in flight and their wait is not put off until after it.
static void what_runs_meanwhile(void **state) {
  (void)state;
  static const struct {
    const char *body;
    u32 holds;
  } row[] = {
      {"wait s;  m[i] = max(j) s[i,j];  wait o", 1},
      {"m[i] = 0;  wait s;  m[i] = max(j) s[i,j];  wait o", 2},
      {"wait s, o;  m[i] = max(j) s[i,j]", 0},
      {"wait s;  wait o;  m[i] = max(j) s[i,j]", 0},
      {"m[i] = 0;  wait s;  wait o;  m[i] = max(j) s[i,j]", 1},
      {"wait s;  if M > 3 { m[i] = max(j) s[i,j] }\n    wait o", 0},  // a branch holds by itself
  };
  for (u32 i = 0; i < COUNT(row); i++) {
    Fixture f;
    const Kernel *k;
    char source[1024];
    snprintf(source, sizeof source,
             "kernel k {\n  in X : f16[M, 64]\n  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
             "  ring r : f16[64, 64]\n  role load : 1 warp, 24 regs { r <- X[x*64..] }\n"
             "  role math : 1 warpgroup, 200 regs {\n"
             "    reg s : f32[64, 64], o : f32[64, 64], m : f32[64] = 0\n    wait r\n"
             "    async s[i,j] = r[i,d] @ r[j,d]\n    async o[i,d] = r[i,j] @ r[j,d]\n    %s\n"
             "    release r\n    Y[x*64 + i, j] = s[i,j] + o[i,j] + m[i]\n  }\n}\n",
             row[i].body);
    const CudaText *t = emit(&f, "test.sched", source, NULL, false, &k);
    assert_non_null(t);
    u32 holds = count(t->text.at, "sc_hold(args.");
    if (holds != row[i].holds) fail_msg("%s: %u", row[i].body, holds);
    sc_free(&f.sc);
  }
}

#define ROUND                                                           \
  "kernel k {\n  in X : f32[M, 64], H : f16[64, 64]\n"                  \
  "  inout Y : f32[M, 64]\n  inout Z : f32[M, 64], V : f32[M]\n"        \
  "  grid (x : cdiv(M, 64))\n  ring r : f32[64, 64], h : f16[64, 64]\n" \
  "  role load : 1 warp, 40 regs { r <- X[x*64..];  h <- H[0..] }\n"
#define MATH "  role math : 1 warpgroup, 128 regs { reg s : f32[64, 64]\n    wait r, h\n    "
#define GIVE "\n    release r, h }\n}\n"

static void writes(const char *source, const char *const *part, u32 n) {
  Fixture f;
  const Kernel *k;
  const CudaText *t = emit(&f, "test.sched", source, NULL, false, &k);
  if (!t) fail_msg("%s", f.sc.diags->text);
  const char *text = one_line(&f.sc, t->text.at);
  for (u32 i = 0; i < n; i++) {
    const char *at = strstr(text, part[i]);
    if (!at) fail_msg("'%s' does not follow in\n%s", part[i], text);
    text = at;
  }
  expect_fences(k, t);
  sc_free(&f.sc);
}
#define WRITES(source, ...) \
  writes(source, (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))

// The fence and the meeting of a plan stand before the operation, whichever it is.
static void order_within_an_instance(void **state) {
  (void)state;
  WRITES(ROUND MATH "r[i,j] = 2 * r[i,j]\n Y[x*64.., 0..] <- r\n wait Y read" GIVE,
         "// Y[x*64.., 0..] <- r",
         "sc_fence_async(); sc_bar_sync(1, 128); if (thread == 0) { sc_tma");
  WRITES(ROUND MATH "r[i,j] = 2 * r[i,j]\n Y[x*64.., 0..] += r\n wait Y read" GIVE,
         "sc_fence_async(); sc_bar_sync(1, 128); if (thread == 0) { sc_tma_add");
  WRITES(ROUND MATH "r[i,j] = 2 * r[i,j]\n s[i,j] = r[i,j]\n Z[x*64 + i, j] = s[i,j]" GIVE,
         "// s[i,j] = r[i,j]", "sc_bar_sync(1, 128);", "sc_pairs_f32", "// Z[");
  WRITES(ROUND MATH "r[i,j] = 2 * r[i,j]\n Y[x*64 + i, j] += r[i,j]" GIVE,
         "// Y[x*64 + i, j] += r[i,j]", "sc_bar_sync(1, 128);", "sc_add(");
  WRITES(ROUND MATH "h[i,j] = 2 * h[i,j]\n s[i,j] = h[i,k] @ h[j,k]\n Z[x*64 + i, j] = s[i,j]" GIVE,
         "// s[i,j] = h[i,k] @ h[j,k]", "sc_bar_sync(1, 128);", "sc_ldmatrix");
}

// What threads did to a tensor is fenced for the copy engine by another fence than what they did to
// a stage.
static void order_in_global_memory(void **state) {
  (void)state;
  WRITES(ROUND MATH "s[i,j] = r[i,j]\n Y[x*64 + i, j] = s[i,j]\n Y[x*64.., 0..] += r\n wait Y" GIVE,
         "// Y[x*64.., 0..] += r",
         "sc_fence_async_all(); sc_bar_sync(1, 128); if (thread == 0) { sc_tma_add");
  WRITES(ROUND MATH
         "Y[x*64.., 0..] <- r\n wait Y read\n r[i,j] = 1\n wait Y\n Z[x*64 + i, j] = r[i,j] + "
         "Y[x*64 + i, j]" GIVE,
         "sc_tma_wait_read<0>();", "// r[i,j] = 1", "sc_bar_sync(1, 128);", "sc_tma_wait<0>();",
         "sc_bar_sync(1, 128);");
  // The same places, and other threads: by the map, along columns, in the next round.
  WRITES(ROUND MATH "Y[x*64, j] = r[0,j]\n Z[x*64 + i, j] = r[i,j] + Y[x*64, j]" GIVE,
         "// Z[x*64 + i, j]", "sc_bar_sync(1, 128);");
  WRITES(ROUND
         "  role math : 1 warpgroup, 128 regs { reg s : f32[64, 64], c : f32[64]\n wait r, h\n"
         " c[j] = 1\n Y[0, j] = c[j]\n c[j] = Y[0, j]\n s[i,j] = r[i,j] + c[j]\n"
         " Z[x*64 + i, j] = s[i,j]" GIVE,
         "thread < 4", "// c[j] = Y[0, j]", "sc_bar_sync(1, 128);");
  WRITES(ROUND MATH "for t in 0 .. 8 { s[i,j] = Y[t + i, j]\n Y[t + i, j] = s[i,j] + 1 }" GIVE,
         "s[i,j] = Y[t + i, j]", "sc_bar_sync(1, 128);");
  WRITES(ROUND MATH
         "s[i,j] = r[i,j]\n Y[x*64 + i, 0] = sum(j) s[i,j]\n s[i,j] = s[i,j] + Y[x*64 + i, 0]\n"
         " Z[x*64 + i, j] = s[i,j]" GIVE,
         "(lane & 3) == 0", "// s[i,j] = s[i,j] + Y[x*64 + i, 0]", "sc_bar_sync(1, 128);");
  // One thread that arrives for all hands over what they stored.
  WRITES(
      "kernel k {\n  in H : f16[64, 64]\n  inout Y : f32[M, 64]\n  inout Z : f32[M, 64]\n"
      "  grid (x : cdiv(M, 64))\n  ring h : f16[64, 64], r : f32[64, 64]\n"
      "  role load : 1 warp, 40 regs { h <- H[0..];  acquire h;  h <- H[0..];  commit h;  r <- "
      "Y[x*64..] }\n"
      "  role math : 1 warpgroup, 128 regs {\n    reg s : f32[64, 64]\n    wait h\n"
      "    async s[i,j] = h[i,k] @ h[j,k]\n    wait s\n    Y[x*64 + i, j] = s[i,j]\n    release h\n"
      "    wait h;  async s[i,j] = h[i,k] @ h[j,k];  wait s;  release h\n"
      "    wait r;  Z[x*64 + i, j] = r[i,j];  release r\n  }\n}\n",
      "sc_fence_async_all(); sc_bar_sync(1, 128); if (thread == 0) sc_mbar_arrive(smem + h_empty)");
}

// A tile whose product a wait ends without naming it gets one compiler fence before threads touch
// it, and none in a loop that only adds to it.
static void compiler_fences(void **state) {
  (void)state;
  static const char head[] = ROUND
      "  role math : 1 warpgroup, 200 regs { reg s : f32[64, 64], o : f32[64, 64] = 0\n    wait r, "
      "h\n    ";
  char source[1024];
  snprintf(source, sizeof source, "%s%s%s", head,
           "async s[i,j] = h[i,k] @ h[j,k]\n async o[i,j] = h[i,k] @ h[k,j]\n wait o\n"
           "s[i,j] = 2 * s[i,j]\n Z[x*64 + i, j] = o[i,j] * s[i,j]" GIVE,
           "");
  WRITES(source, "sc_wgmma_wait<0>(); sc_tie(o); #line", "// s[i,j] = 2 * s[i,j]", "sc_tie(s);",
         "// Z[");
  snprintf(source, sizeof source, "%s%s%s", head,
           "for t in 0 .. M { async o[i,j] += h[i,k] @ h[k,j]\n async s[i,j] = h[i,k] @ h[j,k]\n "
           "wait s }\n"
           "Z[x*64 + i, j] = o[i,j]\n V[x*64 + i] = sum(j) o[i,j]" GIVE,
           "");
  WRITES(source, "sc_wgmma_wait<0>(); sc_tie(s); }", "// Z[", "sc_tie(o);", "args.Z + ", "// V[",
         "float sum_j[2]");
  Fixture f;
  const Kernel *k;
  assert_int_equal(count(emit(&f, "test.sched", source, NULL, false, &k)->text.at, "sc_tie(o)"), 2);
  sc_free(&f.sc);
}

// One thread arrives for a warp whose threads have read or written the stage.
static void a_warp_before_its_arrival(void **state) {
  (void)state;
  WRITES(
      "kernel k {\n  in X : f32[M, 64]\n  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
      "  ring r : f32[64, 64]\n"
      "  role load : 1 warp, 40 regs { acquire r;  r[i,j] = X[x*64 + i, j];  commit r }\n"
      "  role store : 1 warp, 40 regs { wait r;  Y[x*64 + i, j] = r[i,j];  release r }\n}\n",
      "// role load", "sc_warp_sync(); if (thread == 0) sc_mbar_arrive(smem + r_full)",
      "// role store", "sc_warp_sync(); if (thread == 0) sc_mbar_arrive(smem + r_empty)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_cannot_be_written),
      cmocka_unit_test(parts_of_blocks),
      cmocka_unit_test(slices_across_panels),
      cmocka_unit_test(waits_need_memory),
      cmocka_unit_test(parameters_need_room),
      cmocka_unit_test(what_runs_meanwhile),
      cmocka_unit_test(order_within_an_instance),
      cmocka_unit_test(order_in_global_memory),
      cmocka_unit_test(compiler_fences),
      cmocka_unit_test(a_warp_before_its_arrival),
      cmocka_unit_test(every_kernel),
      cmocka_unit_test(loops_over_tiles),
      cmocka_unit_test(what_a_header_cannot_say),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
