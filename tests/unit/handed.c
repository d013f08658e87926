// Tests of the order between roles: of each kernel of the schedules, of tests/ and of the mistakes
// that show late, and of each with two neighbouring operations swapped, two pairs of answers are
// compared. Where no two executions can race, says the prover for all dimensions, none is found by
// going through tiles with concrete ones. And one of a plan with an arrival at another place, of
// which going through tiles knows nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/verify/races.h"
#include "files.h"
#include "fixture.h"

typedef struct Toll {
  u32 kernels, changed, pairs, safe, found, neither;
} Toll;

static void compare_pair(Races *r, const Access *a, const Access *b, bool stage, Toll *toll) {
  Pair p = sc_pair(r, a, b, stage), again = p;
  again.thorough = true;
  r->searches = 1;
  bool safe = sc_pair_safe(&p) || sc_pair_safe(&again), found = sc_find_race(r, a, b);
  toll->pairs++;
  toll->safe += safe;
  toll->found += found;
  toll->neither += !safe && !found;
  if (safe && found)
    fail_msg("%s: proved, and there is a race:\n%s", r->sc->text->name, r->sc->diags->text);
  r->sc->errors = 0;
  r->sc->diags = NULL;
  r->sc->diag_end = &r->sc->diags;
}

static void compare_buf(Races *r, u32 buf, bool fill, Toll *toll) {
  bool stage = r->k->buf.at[buf].space == SP_STAGE;
  Accesses all = r->access[buf][fill];
  for (u32 i = 0; i < all.n; i++) {
    for (u32 j = i; j < all.n; j++) {
      const Access *a = &all.at[i], *b = &all.at[j];
      if (a->role == b->role && stage) continue;
      if (sc_kinds_conflict(a->kind, b->kind)) compare_pair(r, a, b, stage, toll);
    }
  }
}

static void compare(Sc *sc, const Kernel *k, bool tensors, Toll *toll) {
  Certificate cert = {.kernel = k};
  Verify v = {.sc = sc, .k = k, .cert = &cert};
  Races r = sc_races(&v, PROOF_GLOBAL), s = sc_races(&v, PROOF_SHARED);
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space == SP_TENSOR && tensors) compare_buf(&r, i, false, toll);
    if (b->space != SP_STAGE || k->ring.at[b->ring].owner != SC_NONE) continue;
    compare_buf(&s, i, true, toll);
    compare_buf(&s, i, false, toll);
  }
}

// ---- swaps

// Do several roles touch something that one of them writes, other than by filling stages?
static bool is_handed_on(const Kernel *k) {
  for (u32 i = 0; i < k->buf.n; i++) {
    u32 roles = 0;
    u8 all = 0;
    for (u32 r = 0; r < k->role.n && k->buf.at[i].space == SP_TENSOR; r++) {
      roles += sc_tensor_use(k, r, i) != 0;
      all |= sc_tensor_use(k, r, i);
    }
    if (roles > 1 && all & ~(DOES_READ | DOES_COPY_FROM)) return true;
  }
  for (u32 i = 0; i < k->ring.n * k->role.n; i++)
    if (k->ring_use[i] & USE_INPLACE) return true;
  return false;
}

static bool stands_alone(const Ins *ins) {
  return !(sc_op[ins->op].effects & (OPENS | CLOSES | SPLITS));
}

static void swap_all(Sc *sc, Kernel *k, Toll *toll) {
  for (u32 r = 0; r < k->role.n; r++) {
    Code *code = &k->role.at[r].code;
    for (u32 i = 1; i + 2 < code->n; i++) {
      Ins one = code->at[i], two = code->at[i + 1];
      if (!stands_alone(&one) || !stands_alone(&two) || (one.op == OP_MAP && two.op == OP_MAP))
        continue;
      code->at[i] = two;
      code->at[i + 1] = one;
      compare(sc, k, true, toll);
      toll->changed++;
      code->at[i] = one;
      code->at[i + 1] = two;
    }
  }
}

// ---- every kernel

static void with_file(const char *path, Toll *toll) {
  size_t n;
  char *source = read_file(path, &n);
  Fixture f;
  sc_init(&f.sc, NULL);
  f.sc.unwind = &f.unwind;
  f.sc.text = sc_text(&f.sc, path, source, n);
  const Ast *ast = sc_parse(&f.sc, f.sc.text);
  for (const Node *u = ast->file->a; u; u = u->next) {
    if (u->kind != ND_KERNEL) continue;
    Compilation c = {.ast = ast, .choice = {.unit = u->name}};
    if (!sc_compile(&f.sc, &c, "ast", "place")) continue;  // some of tests/unusual are refused
    Kernel *k = (Kernel *)c.k;                             // it is the test's own
    toll->kernels++;
    compare(&f.sc, k, true, toll);
    if (is_handed_on(k)) swap_all(&f.sc, k, toll);
  }
  sc_free(&f.sc);
  free(source);
}

static void with_folder(const char *folder, Toll *toll) {
  DIR *d = opendir(folder);
  assert_non_null(d);
  for (const struct dirent *e; (e = readdir(d));) {
    const char *dot = strrchr(e->d_name, '.');
    char path[512];
    if (!dot || strcmp(dot, ".sched") != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    with_file(path, toll);
  }
  closedir(d);
}

static void proofs_and_runs_agree(void **state) {
  (void)state;
  Toll t = {0};
  with_folder("tests/corpus", &t);
  with_folder("tests/unusual", &t);
  with_folder("tests/late", &t);
  print_message("%u kernels, %u swaps; of %u pairs %u are safe, %u race, %u neither\n", t.kernels,
                t.changed, t.pairs, t.safe, t.found, t.neither);
  assert_true(t.kernels > 100 && t.changed > 300);
  assert_true(t.safe > 1000 && t.found > 50);
}

// ---- what a fill hands over

static const char stored_in_a_fill[] =
    "kernel k {\n"
    "  in X : f32[N, 64]\n"
    "  inout G : f32[N, 64]\n"
    "  out Y : f32[N, 64]\n"
    "  ring r : f32[64] * 2\n"
    "  role write : 1 warp, 64 regs {\n"
    "    reg s : f32[64]\n"
    "    for t in 0 .. N { s[d] = X[t,d];  acquire r;  r <- X[t];  G[t,d] = s[d];  commit r }\n"
    "  }\n"
    "  role read : 1 warpgroup, 64 regs {\n"
    "    reg s : f32[64]\n"
    "    for t in 0 .. N { wait r;  s[d] = G[t,d] + r[d];  release r;  Y[t,d] = s[d] }\n"
    "  }\n"
    "}\n";

static Ins *find(Kernel *k, u32 role, Op op) {
  Ins *ins = k->role.at[role].code.at;
  while (ins->op != op) ins++;
  return ins;
}

static bool is_safe(Sc *sc, const Kernel *k, const char *tensor) {
  Certificate cert = {.kernel = k};
  Verify v = {.sc = sc, .k = k, .cert = &cert};
  Races r = sc_races(&v, PROOF_GLOBAL);
  u32 buf = 0;
  while (strcmp(k->buf.at[buf].name, tensor) != 0) buf++;
  Accesses all = r.access[buf][false];
  assert_int_equal(all.n, 2);
  Pair p = sc_pair(&r, &all.at[0], &all.at[1], false);
  p.thorough = true;
  return sc_pair_safe(&p);
}

// A store behind the acquire is handed over by an arrival at the commit, not by one that the copy's
// bytes make with the acquire.
static void arrivals_hand_over_what_was_before(void **state) {
  Fixture *f = *state;
  Kernel *k = (Kernel *)compile(f, "t.sched", stored_in_a_fill);  // it is the test's own
  Ins *acquire = find(k, 0, OP_ACQUIRE), *commit = find(k, 0, OP_COMMIT);
  assert_true(commit->plan.arrivals && !acquire->plan.arrivals);
  assert_true(is_safe(&f->sc, k, "G"));
  acquire->plan.arrivals = commit->plan.arrivals;
  commit->plan.arrivals = 0;
  assert_false(is_safe(&f->sc, k, "G"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(proofs_and_runs_agree),
      TEST(arrivals_hand_over_what_was_before),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
