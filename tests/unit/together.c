// Tests of votes that warps take together: where they need a barrier, and which loops they split.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "compiler/emit/emit.h"
#include "fixture.h"

static const char frame[] =
    "kernel k {\n"
    "  in X : f32[M, 64]\n"
    "  out Y : f32[M, 64]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  role math[w] : %s {\n"
    "    reg s : f32[64, 64] = 0, m : f32[64] = 0, u : f32[64] = 0, h : f32[64] = 0\n"
    "    for t in 0 .. M { %s }\n"
    "    Y[x*64 + i, j] = s[i,j] + m[i] + u[i] + h[i]\n"
    "  }\n"
    "}\n";

static const char *emitted_for(void **state, const char *role, const char *body, bool debug) {
  Fixture *f = *state;
  end(state), begin(state);
  const Kernel *k = try_compile(f, "t.sched", sc_printf(&f->sc, frame, role, body));
  const CudaText *t = k ? sc_cuda(&f->sc, k, &(CudaOptions){.debug_waits = debug}) : NULL;
  return t ? one_line(&f->sc, t->text.at) : f->sc.diags->text;
}

static const char *emitted(void **state, const char *body) {
  return emitted_for(state, "1 warpgroup", body, false);
}

static void lacks(const char *text, const char *what) {
  if (strstr(text, what)) fail_msg("'%s' is in: %s", what, text);
}

#define MEETS "sc_any_together("
#define SPLIT "const auto round1 = "

static void barriers(void **state) {
  has(emitted(state, "vote together any(m[i] > 9) { m[i] = sum(j) s[i,j] }"),
      "if (sc_any_together(m[0] > 9.0f || m[1] > 9.0f, 1, 128)) {");
  has(emitted_for(state, "2 warpgroups", "vote together any(m[i] > 9) { m[i] = sum(j) s[i,j] }",
                  false),
      "9.0f, 1 + instance, 128)) {");
  has(emitted_for(state, "1 warp", "vote together any(m[i] > 9) { m[i] = sum(j) s[i,j] }", false),
      "if (sc_any(vote1)) {");
}

// Waits that give up come before the barrier of the hardware, whose number no other warpgroup has.
static void bounded(void **state) {
  const char *t = emitted_for(state, "2 warpgroups",
                              "vote together any(m[i] > 9) { m[i] = sum(j) s[i,j] }", true);
  has(t, "sc_bar_sync_for(");
  has(t, "9.0f, 1 + warpgroup, 128)) {");
}

// Each thread knows the value: there is no barrier.
static void alike(void **state) {
  static const char *const known[] = {
      "vote together any(u[i] > 3) { h[i] = 1 }; u[i] = u[i] + 1",
      "u[i] = where(h[i] > t, u[i] * 2, w);  vote together any(u[i] > 3) { s[i,j] = s[i,j] + 1 }",
      "vote together any(m[i] > 9) { u[i] = 1 }; vote together any(u[i] > 0) { h[i] = 1 }",
  };
  has(emitted(state, known[0]), "if (sc_any(u[0] > 3.0f)) {");
  lacks(emitted(state, known[0]), MEETS);
  lacks(emitted(state, known[1]), MEETS);
  has(emitted(state, known[2]), "if (sc_any(u[0] > 0.0f)) {");
  // each of these gives rows different values
  static const char *const others[] = {
      "u[i] = m[i];  m[i] = sum(j) s[i,j]",
      "u[i] = i",
      "u[i] = max(j) s[i,j]",
      "m[i] = sum(j) s[i,j];  vote any(m[i] > 1) { u[i] = 1 }",
      "u[i] = h[i];  h[i] = m[i];  m[i] = i",
  };
  for (u32 i = 0; i < COUNT(others); i++) {
    char body[256];
    snprintf(body, sizeof body, "%s;  vote together any(u[i] > 3) { s[i,j] = s[i,j] + 1 }",
             others[i]);
    has(emitted(state, body), "if (sc_any_together(u[0] > 3.0f");
  }
}

static void split(void **state) {
  const char *t = emitted(state,
                          "vote together any(u[i] == 0) { s[i,j] = s[i,j] + 1 }\n"
                          "vote together any(u[i] != 0) { s[i,j] = s[i,j] * 2 }\n"
                          "vote together any(u[i] == 0) { u[i] = t }");
  has(t, "const auto round1 = [&](const int t, const bool vote1) __attribute__((always_inline)) {");
  has(t, "if (!vote1) {");
  has(t, "}; int t = 0;");
  has(t, "for (; t < args.M && sc_any(u[0] == 0.0f); t++) round1(t, true);");
  has(t, "for (; t < args.M; t++) round1(t, false);");
  lacks(t, MEETS);
  // the other side is first; the vector is set behind a barrier; nothing sets it
  has(emitted(state,
              "vote together any(u[i] == 2) { h[i] = 1 }; if t > 1 { vote together any(u[i] "
              "!= 2) { vote together any(m[i] > 1) { u[i] = 2;  m[i] = i } } }"),
      "for (; t < args.M && !sc_any(u[0] == 2.0f); t++) round1(t, true);");
  has(emitted(state, "vote together any(u[i] == 0) { h[i] = 1 }"), SPLIT);
  // a vote of another form asks anew
  has(emitted(
          state,
          "vote together any(u[i] == 0) { u[i] = 1 }; vote together any(u[i] > 1) { h[i] = 1 }"),
      "if (sc_any(u[0] > 1.0f)) {");
}

// Work is held before a wait in those rounds alone that have it: in the others ptxas may move what
// stands behind the wait as it likes.
static void held(void **state) {
  static const struct {
    const char *body, *hold;
  } row[] = {
      {"vote together any(u[i] == 0) { m[i] = max(j) s[i,j] }",
       "// wait o if (vote1) sc_hold(args.tiles);"},
      {"vote together any(u[i] != 0) { m[i] = max(j) s[i,j] }",
       "// wait o if (!vote1) sc_hold(args.tiles);"},
      {"vote together any(u[i] == 0) { m[i] = max(j) s[i,j];  vote together any(u[i] == 0) "
       "{ h[i] = 1 };  m[i] = m[i] + 1 }",
       "// wait o if (vote1) sc_hold(args.tiles);"},
      {"vote together any(u[i] == 0) { m[i] = max(j) s[i,j] }; h[i] = t",
       "// wait o sc_hold(args.tiles);"},
      {"vote together any(u[i] == 0) { m[i] = max(j) s[i,j] }; vote together any(u[i] != 0) "
       "{ h[i] = t }",
       "// wait o sc_hold(args.tiles);"},
  };
  for (u32 i = 0; i < COUNT(row); i++) {
    Fixture *f = *state;
    end(state), begin(state);
    const char *source = sc_printf(
        &f->sc,
        "kernel k {\n  in X : f16[M, 64]\n  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
        "  ring r : f16[64, 64]\n  role load : 1 warp, 24 regs { r <- X[x*64..] }\n"
        "  role math : 1 warpgroup, 200 regs {\n"
        "    reg s, o : f32[64, 64], m, u, h : f32[64] = 0\n    wait r\n"
        "    for t in 0 .. M {\n      async s[i,j] = r[i,d] @ r[j,d]\n"
        "      async o[i,d] = r[i,j] @ r[j,d]\n      wait s\n      %s\n      wait o\n"
        "      vote together any(u[i] == 0) { u[i] = t }\n    }\n    release r\n"
        "    Y[x*64 + i, j] = m[i] + u[i] + h[i]\n  }\n}\n",
        row[i].body);
    has(one_line(&f->sc, text_of(f, source)), row[i].hold);
  }
}

// The answer may change within a round, or back again; or rounds have loops of their own.
static void whole(void **state) {
  static const char *const none[] = {
      "vote together any(u[i] == 0) { u[i] = 1 }; vote together any(u[i] != 0) { h[i] = 1 }",
      "vote together any(u[i] == 0) { h[i] = 1 }; u[i] = t",
      "vote together any(u[i] == 0) { h[i] = 1 }; vote together any(u[i] != 0) { h[i] = 2 }; vote "
      "together any(h[i] > 1) { u[i] = 1 }",
      "vote together any(u[i] > 0) { h[i] = 1 }",
      "vote together any(u[i] == 0) { h[i] = 1 }; for e in 0 .. M { h[i] = h[i] + 1 }",
      "u[i] = m[i];  m[i] = sum(j) s[i,j];  vote together any(u[i] == 0) { h[i] = 1 }",
      "vote any(u[i] == 0) { u[i] = 1 }",
  };
  for (u32 i = 0; i < COUNT(none); i++) {
    const char *t = emitted(state, none[i]);
    has(t, "for (int t = 0; t < args.M; t++) {");
    lacks(t, SPLIT);
  }
  const char *both =
      "vote together any(u[i] == 0) { h[i] = 1 }; vote together any(u[i] != 0) { u[i] = 0 }";
  has(emitted(state, both), "!sc_any(u[0] == 0.0f)");  // once it is 0, it stays so
  lacks(emitted(state,
                "vote together any(u[i] != 0) { u[i] = 0 }; "
                "if t > 0 { vote together any(u[i] == 0) { u[i] = 1 } }"),
        SPLIT);
}

// The head of a loop asks the vector in every round: it must be set there, whatever conditions say.
static void unset_at_the_head(void **state) {
  static const char text[] =
      "kernel k {\n  in X : f32[M, 64], n : i32\n  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
      "  role math : 1 warp, 64 regs {\n    reg s : f32[16, 64] = 0, u : f32[16]\n    %s\n"
      "    for t in 0 .. 4 { if n > 0 {\n"
      "      vote together any(u[i] == 0) { s[i,j] = s[i,j] + 1;  u[i] = 1 }\n    } }\n"
      "    Y[x*64 + i, j] = s[i,j]\n  }\n}\n";
  static const char *const set[] = {"if n > 0 { u[i] = 0 }",
                                    "if n > 0 { u[i] = 0 } else { u[i] = 1 }", "u[i] = 0"};
  for (u32 i = 0; i < COUNT(set); i++) {
    Fixture *f = *state;
    end(state), begin(state);
    (i == 2 ? has : lacks)(text_of(f, sc_printf(&f->sc, text, set[i])), SPLIT);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(barriers), TEST(bounded),           TEST(alike), TEST(split), TEST(held),
      TEST(whole),    TEST(unset_at_the_head),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
