// Tests of the proofs ARRIVALS, NAMED, THREADS, PHASES and MEMORY: they hold for every kernel of
// schedules/, tests/corpus/ and tests/unusual/, with each value of each of its parameters; and of
// phases that instances may mistake. (damages.c has plans that are wrong.)
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/verify/rounds.h"
#include "everykernel.h"

static void expect_proved(Sc *sc, Kernel *k) {
  const Certificate *c = prove(sc, k);
  for (u32 i = 0; i < COUNT(mine); i++) {
    const Proof *p = &c->proof[mine[i]];
    if (p->verdict != VERDICT_PROVED)
      fail_msg("%s, %s: %s", k->name, sc_proof[mine[i]].name, p->why ? p->why : sc->diags->text);
  }
}

static void prove_one(Sc *sc, Kernel *k, void *user) {
  (void)user;
  expect_proved(sc, k);
}

static void all_are_proved(void **state) {
  (void)state;
  assert_true(with_folder("schedules", prove_one, NULL, true) >= 100);
  assert_true(with_folder("tests/corpus", prove_one, NULL, true) >= 80);
  assert_true(with_folder("tests/unusual", prove_one, NULL, true) >= 40);
}

// Is there a run of tiles in which a wait takes an older round of a stage for its own?
static void expect_mistake(Sc *sc, const Kernel *k, bool some) {
  Verify v = {sc, k, sc_facts(sc, k), NEW(sc, Certificate)};
  Mistake m;
  const Protocol *p = sc_protocol(&v, (Way){0}, sc_cluster(k));
  bool found = sc_find_mistake(&v, p, sc_sample(&v), &m);
  if (found != some) fail_msg("%s: %s mistake is found", k->name, some ? "no" : "a");
}

static void has_no_mistake(Sc *sc, Kernel *k, void *kernels) {
  bool dealt = false;
  for (u32 r = 0; r < k->role.n; r++) dealt |= k->role.at[r].one_tile && k->grid != GRID_PLAIN;
  if (dealt) expect_mistake(sc, k, false);
  *(u32 *)kernels += dealt;
}

static void none_is_mistaken(void **state) {
  (void)state;
  u32 kernels = 0;
  with_folder("schedules", has_no_mistake, &kernels, true);
  with_folder("tests/corpus", has_no_mistake, &kernels, true);
  with_folder("tests/unusual", has_no_mistake, &kernels, true);
  assert_true(kernels >= 10);
}

// Tiles dealt to instances without a turn, by stages of what they wait for and of what they fill.
// (The model of a GPU says the same of each: a generation may be mistaken, or may not, under any
// policy.)
static void dealt_tiles(void **state) {
  (void)state;
  static const struct {
    const char *grid;
    u32 waited, filled;
    bool safe;
  } tries[] = {
      {"persistent", 1, 2, false}, {"persistent", 2, 2, true},
      {"persistent", 3, 2, false}, {"persistent", 2, 1, false},
      {"persistent", 2, 3, true},  {"dynamic", 1, 2, false},
      {"dynamic", 2, 2, true},     {"dynamic", 3, 2, true},
      {"dynamic", 2, 1, false},    {"", 1, 1, true},
  };
  for (u32 i = 0; i < COUNT(tries); i++) {
    Fixture f;
    char source[1024];
    snprintf(source, sizeof source,
             "kernel k {\n  in X : f32[M, 64]\n  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64)) %s\n"
             "  ring c : f32[64, 64] * %u, d : f32[64, 64] * %u\n"
             "  role load : 1 warp { c <- X[x*64..] }\n"
             "  role math[w] : 2 warpgroups, one tile each {\n"
             "    wait c\n    acquire d;  d[i,j] = c[i,j];  commit d\n    release c\n  }\n"
             "  role store : 1 warp { wait d;  Y[x*64..] <- d;  wait Y read;  release d }\n}\n",
             tries[i].grid, tries[i].waited, tries[i].filled);
    sc_init(&f.sc, NULL);
    f.sc.unwind = &f.unwind;
    Kernel *k = (Kernel *)compile(&f, "test.sched", source);
    const Certificate *c = prove(&f.sc, k);
    assert_int_equal(c->proof[PROOF_PHASES].verdict,
                     tries[i].safe ? VERDICT_PROVED : VERDICT_REJECTED);
    if (!tries[i].safe) assert_string_equal(sc_diag_code(f.sc.diags->id), "R6.dealt");
    if (tries[i].grid[0]) expect_mistake(&f.sc, k, !tries[i].safe);
    sc_free(&f.sc);
  }
}

// ---- what is said of a plan that is too weak

static void keep_all(const Kernel *k, const Role *r, Ins *ins) {
  (void)k, (void)r, ins->plan.keep = 7;
}
static void only_read(const Kernel *k, const Role *r, Ins *ins) {
  (void)k, (void)r, ins->flags |= INS_READ;
}
static void no_fence(const Kernel *k, const Role *r, Ins *ins) {
  (void)k, (void)r, ins->plan.fence = false;
}
static void not_global(const Kernel *k, const Role *r, Ins *ins) {
  (void)k, (void)r, ins->plan.global = false;
}
static void by_one(const Kernel *k, const Role *r, Ins *ins) {
  (void)k, (void)r, ins->plan.arrivals = 1;
}
static void by_warps(const Kernel *k, const Role *r, Ins *ins) {
  (void)k, ins->plan.arrivals = r->warps;
}
// A copy to where the statement after it stores.
static void copy_there(const Kernel *k, const Role *r, Ins *ins) {
  (void)r, ins->arg[0] = k->map.at[ins[1].arg[0]].dst;
}

// Of one of these roles the first operation of a kind is weakened: what is reported then.
typedef struct Weak {
  const char *roles, *role;
  Op op;
  void (*weaken)(const Kernel *k, const Role *r, Ins *ins);
  const char *report;
} Weak;

#define LOAD "role load : 1 warp { a <- A[x*64..];  b <- B[0..] }\n"
#define LOAD_A "role load : 1 warp { a <- A[x*64..] }\n"
#define PRODUCT "async s[i,j] = a[i,k] @ b[j,k];  wait s\n"
#define STORE "Y[x*64 + i, j] = s[i,j]\n"

static const Weak weak[] = {
    {"role math : 1 warpgroup { reg s : f32[64, 64]\n"
     "  wait a, b\n" PRODUCT "release a, b\n" STORE "}\n"
     "role load : 1 warpgroup { reg t : f32[64, 64]\n"
     "  acquire a;  t[i,j] = B[i,j];  a <- A[x*64..];  commit a\n"
     "  b <- B[0..];  C[i,j] = t[i,j] }\n",
     "load", OP_COMMIT, by_warps, "only thread 0 has waited for its stage (M4)"},
    // the older stage is free, and the newer one is not
    {"role load : 1 warp { a <- A[x*64..];  a <- A[x*64..];  b <- B[0..] }\n"
     "role math : 1 warpgroup { reg s : f32[64, 64]\n"
     "  wait a, b, a;  async s[i,j] = a[i,k] @ b[j,k];  release a;  wait s;  release a, b\n" STORE
     "}\n",
     "math", OP_MMAWAIT, keep_all, "'a' is released here while a product"},
    {LOAD "role math : 1 warpgroup { reg s : f32[64, 64]\n"
          "  wait a, b\n" PRODUCT "a[i,j] = 2 * a[i,j]\n" PRODUCT "release a, b\n" STORE "}\n",
     "math", OP_MMAWAIT, keep_all, "'a' is touched here while a product that reads it"},
    // on one of two ways there is a product
    {LOAD "role math : 1 warpgroup { reg s : f32[64, 64] = 0\n"
          "  wait a, b;  if x > 0 { s[i,j] = 1 } else {\n" PRODUCT "}\n  release a, b\n" STORE
          "}\n",
     "math", OP_RELEASE, by_one, "another warp may still wait for its stage"},
    // the warps that do not vote have no fence in the vote's block
    {LOAD_A "role math : 1 warpgroup { reg s : f32[64, 64], m : f32[64]\n"
            "  wait a;  m[i] = sum(k) a[i,k];  s[i,j] = 0\n"
            "  vote any(m[i] > 0) { s[i,j] = a[i,j] }\n"
            "  release a\n" STORE "}\n",
     "math", OP_RELEASE, no_fence, "'a' is handed over here to an engine"},
    {LOAD_A "role math : 1 warpgroup { reg s : f32[64, 64]\n"
            "  wait a;  C[x*64.., 0..] <- a;  wait C;  s[i,j] = C[x*64 + i, j]\n"
            "  release a\n" STORE "}\n",
     "math", OP_COPYWAIT, only_read, "'C' is touched here while a copy out to it"},
    {"role load : 1 warp { a <- A[x*64..] }\n"
     "role math : 1 warpgroup { wait a;  C[x*64.., 0..] <- a;  wait C\n"
     "  acquire f;  f[i] = 0;  commit f;  release a }\n"
     "role after : 1 warpgroup { reg s : f32[64, 64]\n"
     "  wait f;  s[i,j] = C[x*64 + i, j];  release f\n" STORE "}\n",
     "math", OP_COPYWAIT, only_read, "others go on here that read 'C'"},
    // threads have read what others copy out to
    {LOAD_A "role math : 1 warpgroup { reg s : f32[64, 64]\n"
            "  s[i,j] = C[x*64 + i, j];  acquire f;  f[i] = 0;  commit f\n" STORE "}\n"
            "role after : 1 warp { wait f, a;  C[x*64.., 0..] <- a;  wait C;  release f, a }\n",
     "math", OP_COMMIT, not_global, "'C' is handed over here to an engine"},
    {"ring p : { l : f16[64, 64], r : f16[64, 64] }\n"
     "role load : 1 warp { acquire p;  p.l <- A[x*64..];  p.r[i,j] = 0;  commit p }\n"
     "role math : 1 warpgroup { reg s : f32[64, 64]\n"
     "  wait p;  s[i,j] = p.l[i,j] + p.r[i,j];  release p\n" STORE "}\n",
     "load", OP_COPYIN, copy_there, "'r' is touched here in a fill in which a copy lands"},
    // … or another instance of their own role
    {"role math[w] : 2 warpgroups { ring own : f16[64, 64]\n"
     "  reg s : f32[64, 64] = 0\n"
     "  C[128*x + 64*w + i, j] = s[i,j];  acquire f;  f[i] = 0;  commit f\n"
     "  wait f;  own <- C[128*x + 64*(1-w).., 0..];  wait own;  s[i,j] = own[i,j]\n"
     "  release own, f;  Y[128*x + 64*w + i, j] = s[i,j] }\n",
     "math", OP_COMMIT, not_global, "'C' is handed over here to an engine"},
};

static Ins *find(Kernel *k, const Weak *w, const Role **role) {
  for (u32 r = 0; r < k->role.n; r++) {
    *role = &k->role.at[r];
    Code *code = &k->role.at[r].code;
    for (u32 pc = 0; pc < code->n && !strcmp((*role)->name, w->role); pc++)
      if (code->at[pc].op == w->op) return &code->at[pc];
  }
  fail_msg("no such operation of '%s'", w->role);
  return NULL;
}

static void expect_report(const Weak *w) {
  Fixture f;
  char source[1024];
  snprintf(source, sizeof source,
           "kernel k {\n  in A : f16[M, 64], B : f16[64, 64]\n  inout C : f16[M, 64]\n"
           "  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64))\n%s%s%s%s}\n",
           strstr(w->roles, "wait a, b, a") ? "ring a : f16[64, 64] * 2\n"
           : strstr(w->roles, " a <-")      ? "ring a : f16[64, 64]\n"
                                            : "",
           strstr(w->roles, "b <-") ? "ring b : f16[64, 64]\n" : "",
           strstr(w->roles, "commit f") ? "ring f : f32[64]\n" : "", w->roles);
  sc_init(&f.sc, NULL);
  f.sc.unwind = &f.unwind;
  Kernel *k = (Kernel *)compile(&f, "test.sched", source);
  const Role *role = NULL;
  expect_proved(&f.sc, k);
  Ins *ins = find(k, w, &role);
  w->weaken(k, role, ins);
  prove(&f.sc, k);
  bool said = false;
  for (const Diag *d = f.sc.diags; d; d = d->next) said |= strstr(d->text, w->report) != NULL;
  if (!said) fail_msg("'%s' is missing in\n%s", w->report, source);
  sc_free(&f.sc);
}

static void reports(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT(weak); i++) expect_report(&weak[i]);
}

// No path comes to the fills of `q`: nothing is wrong with them. (Nor can damage of them show.)
static void never_filled(void **state) {
  Fixture f;
  (void)state;
  sc_init(&f.sc, NULL);
  f.sc.unwind = &f.unwind;
  Kernel *k = (Kernel *)compile(
      &f, "test.sched",
      "kernel k {\n  in X : f32[N, 64]\n  out S : f32[64]\n  ring r : f32[64]\n"
      "  role load : 1 warp, 40 regs { for t in 0 .. N { r <- X[t] } }\n"
      "  role add : 1 warpgroup, 64 regs {\n    ring q : f32[64]\n    reg s : f32[64] = 0\n"
      "    for t in 0 .. N {\n      if t >= 0 { wait r }\n      s[d] = s[d] + r[d]\n"
      "      for u in N .. N { q <- X[u];  wait q;  s[d] = q[d];  release q }\n"
      "      if t >= 0 { release r }\n    }\n    S[d] = s[d]\n  }\n}\n");
  expect_proved(&f.sc, k);
  sc_free(&f.sc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_are_proved), cmocka_unit_test(none_is_mistaken),
      cmocka_unit_test(dealt_tiles),    cmocka_unit_test(reports),
      cmocka_unit_test(never_filled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
