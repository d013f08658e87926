// IR text: printing what was parsed gives the text again, for every operation and expression and
// for all schedules; what cannot be read is reported where it stands; and each invariant that
// wellformed.c checks is found when it is broken.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes.h"

static const char *const schedules[] = {
    "schedules/copy.sched",      "schedules/gemm.sched",        "schedules/gemm_pingpong.sched",
    "schedules/gemm_roles.sched", "schedules/softmax_rows.sched", "schedules/mlp.sched",
    "schedules/gemm_bias_gelu.sched",
    "schedules/fa3_alg1.sched",  "schedules/fa3_fwd.sched",     "schedules/fa3_stage3.sched",
    "schedules/fa_varlen.sched", "tests/corpus/forms.sched",    "schedules/fa3_bwd.sched",
    "tests/corpus/bwd_ordered.sched", "tests/corpus/fa3_fp8.sched", "tests/corpus/mla_decode.sched",
};

static Text *read_text(Sc *sc, const char *path) {
  static char bytes[1 << 20];
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  assert_true(n < sizeof bytes);
  return sc_text(sc, path, bytes, n);
}

static Kernel *parse(Sc *sc, const char *text) { return sc_parse_ir(sc, sc_text(sc, "test.ir", text, strlen(text))); }

static const char *print(Sc *sc, const Kernel *k) {
  Str s = {.sc = sc};
  sc_print_ir(&s, k);
  return s.at;
}

static void note_uses(const Kernel *k, bool *op, bool *xop) {
  for (u32 r = 0; r < k->role.n; r++)
    for (u32 i = 0; i < k->role.at[r].code.n; i++) op[k->role.at[r].code.at[i].op] = true;
  for (Xid x = 1; x < k->expr.n; x++) xop[k->expr.at[x].op] = true;
}

static void text_reads_back(void **state) {
  (void)state;
  static const char *const file[] = {"tests/ir/forms.ir", "tests/ir/sequence.ir"};
  bool op[OP_COUNT] = {false}, xop[X_COUNT] = {false};
  for (u32 i = 0; i < COUNT(file); i++) {
    Sc sc;
    sc_init(&sc, NULL);
    Text *t = read_text(&sc, file[i]);
    Kernel *k = sc_parse_ir(&sc, t);
    if (!k) fail_msg("%s: %s", file[i], sc.diags->text);
    assert_string_equal(print(&sc, k), t->at);
    note_uses(k, op, xop);
    sc_free(&sc);
  }
  for (u32 i = 0; i < OP_COUNT; i++)
    if (!op[i]) fail_msg("operation '%s' is in no test", sc_op[i].text);
  for (u32 i = 0; i < X_COUNT; i++)
    if (!xop[i]) fail_msg("expression '%s' is in no test", sc_xop[i].text);
}

static void schedules_read_back(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT(schedules); i++) {
    for (u32 derived = 0; derived < 2; derived++) {
      Sc sc;
      sc_init(&sc, NULL);
      const Ast *ast = sc_parse(&sc, read_text(&sc, schedules[i]));
      Kernel *k = sc_compile_to(&sc, ast, &(Choice){0}, derived ? "derive" : "lower");
      if (!k) fail_msg("%s: %s", schedules[i], sc.diags->text);
      const char *wrong = sc_wellformed(&sc, k), *text = print(&sc, k);
      if (wrong) fail_msg("%s: %s", schedules[i], wrong);
      Kernel *back = parse(&sc, text);
      if (!back) fail_msg("%s: %s", schedules[i], sc.diags->text);
      assert_string_equal(print(&sc, back), text);
      sc_free(&sc);
    }
  }
}

// Comments, line ends and names of hand-written text.
static void loose_text(void **state) {
  (void)state;
  Sc sc;
  sc_init(&sc, NULL);
  Kernel *k = parse(&sc, "kernel k { // a comment\r\n dim M out O:f32[M] role r*1:4 warps { reg s:f32[64] tile {\n"
                         "let $mine = M - 1 for t in 0..$mine { map[i<64]s[i]=1.0 }\n"
                         "for t in 0 .. $mine { for t in 0 .. 2 { map [i < 64] O[t * 64 + i] = s[i] } } } } }");
  if (!k) fail_msg("%s", sc.diags->text);
  const char *text = print(&sc, k);
  assert_non_null(strstr(text, "for t.3 in 0 .. 2 {"));
  assert_non_null(strstr(text, "O[t.3 * 64 + i]"));
  sc_free(&sc);
}

// An expression with many paths prints in space linear in its nodes, and one of many levels without recursion.
static void large_expressions(void **state) {
  (void)state;
  Sc sc;
  sc_init(&sc, NULL);
  Kernel *k = sc_kernel(&sc);
  k->name = "large";
  PUSH(&sc, &k->dim, ((Dim){.name = "M"}));
  Xid m = x_leaf(&sc, k, X_DIM, TY_INT, 0), e = m;
  for (int i = 0; i < 200; i++) e = x_make(&sc, k, X_ADD, e, x_make(&sc, k, X_MUL, e, m, 0), 0);
  for (int i = 0; i < 5000; i++) e = x_make(&sc, k, X_MIN, x_make(&sc, k, X_MUL, e, m, 0), m, 0);
  Xid cond = x_make(&sc, k, X_LT, m, e, 0);
  PUSH(&sc, &k->require, ((Require){.cond = cond}));
  const char *text = print(&sc, k);
  assert_true(strlen(text) < 200000);
  Kernel *back = parse(&sc, text);
  if (!back) fail_msg("%s", sc.diags->text);
  assert_string_equal(print(&sc, back), text);
  sc_free(&sc);
}

// ---- reports

#define ROLE(code) "kernel k { dim M in Q : f32[M] out O : f32[M] ring q : { q : f32[64] } * 1, fill r role r * 1 : 4 warps { reg s : f32[64] tile { " code " } } }"

static void reports(void **state) {
  (void)state;
  static const struct {
    const char *text, *code, *part;
  } bad[] = {
      {"", "I.token", "expected 'kernel'"},
      {"kernel", "I.token", "a name"},
      {"kernel k {", "I.token", "expected '}'"},
      {"kernel k { 1 }", "I.token", "a declaration"},
      {"kernel k { } x", "I.token", "the end"},
      {"kernel k { ? }", "I.token", "no meaning"},
      {"kernel k { dim M, M }", "I.name", "'M' is defined twice"},
      {"kernel k { require N < 1 }", "I.name", "'N' is no value"},
      {"kernel k { require 1 }", "I.type", "a truth"},
      {"kernel k { dim M require M / 0 < 1 }", "I.type", "no value"},
      {"kernel k { require 9223372036854775807 + 1 < 1 }", "I.type", "no value"},
      {"kernel k { require 9223372036854775808 < 1 }", "I.token", "64 bits"},
      {"kernel k { require 99999999999999999999 < 1 }", "I.token", "no number"},
      {"kernel k { param x = 1e999 }", "I.token", "no number"},
      {"kernel k { param x = 12ab }", "I.token", "no number"},
      {"kernel k { dim M require M < true }", "I.type", "no value"},
      {"kernel k { in Q : f99[1] }", "I.token", "an element type"},
      {"kernel k { in Q : f32[1,1,1,1,1,1,1] }", "I.limit", "6 dimensions"},
      {"kernel k { ring q : { q : f32[0] } * 1, fill nobody }", "I.name", "'nobody' is not a role"},
      {"kernel k { ring q : { q : f32[64] } * 1, nonsense }", "I.token", "one of the members"},
      {"kernel k { ring q : { q : f32[64], swizzle 300 } * 1 }", "I.token", "0 to 255"},
      {"kernel k { turn t, over M }", "I.name", "no value"},
      {"kernel k { dim M turn t, over M }", "I.name", "grid axis"},
      {"kernel k { case c { dim M = 1 } }", "I.name", "kind 'dim'"},
      {"sequence k { }", "I.token", "a sequence launches"},
      {"sequence k { launch { sequence l { launch { kernel m { } } } } }", "I.limit", "cannot launch"},
      {"sequence k { launch { kernel l { dim M } } }", "I.form", "not bound"},
      {ROLE("nonsense"), "I.token", "an operation"},
      {ROLE("wait nothing"), "I.name", "not a ring"},
      {ROLE("map [i < 64] t[i] = 0.0"), "I.name", "not a tensor"},
      {ROLE("map [i < 64] s[i, 0] = 0.0"), "I.type", "rank"},
      {ROLE("map [i < 64] s[2 * i] = 0.0"), "I.type", "position"},
      {ROLE("map [i < 64] s[0.5] = 0.0"), "I.type", "integer"},
      {ROLE("map [i < 64] s[i] = sum(j, 1.0)"), "I.name", "names an index variable"},
      {ROLE("map [a<1,b<1,c<1,d<1,e<1,f<1,g<1,h<1,i<64] s[i] = 0.0"), "I.limit", "8 index variables"},
      {ROLE("for t in 0 .. 4 { } map [i < 64] s[i] = t"), "I.name", "'t' is no value"},
      {ROLE("if true { } else { } else { }"), "I.token", "an operation"},
      {ROLE("map [i < 64] s[i] = O[i]"), "I.form", "fillers"},
      {ROLE("acquire q commit q map [i < 64] q[i] = 0.0"), "I.form", "does not drain"},
  };
  for (u32 i = 0; i < COUNT(bad); i++) {
    Sc sc;
    sc_init(&sc, NULL);
    assert_null(parse(&sc, bad[i].text));
    if (!sc.diags || sc.diags->next) fail_msg("%s: not one report", bad[i].text);
    const Diag *d = sc.diags;
    if (strcmp(sc_diag_code(d->id), bad[i].code) || !strstr(d->text, bad[i].part))
      fail_msg("%s: %s: %s", bad[i].text, sc_diag_code(d->id), d->text);
    assert_true(d->at.lo <= d->at.hi && d->at.hi <= strlen(bad[i].text));
    sc_free(&sc);
  }
}

static void nesting_is_limited(void **state) {
  (void)state;
  static char text[200000];
  static const struct {
    const char *head, *again, *tail;
  } deep[] = {{"kernel k { require ", "(", "1"}, {"kernel k { require ", "not ", "true"},
              {"kernel k { require ", "- ", "1"}, {"kernel k { require ", "abs(", "1"},
              {"kernel k { dim M in cu : i32[M] require ", "cu[", "0"},
              {"kernel k { role r * 1 : 4 warps { tile { ", "if true { ", ""}};
  for (u32 i = 0; i < COUNT(deep); i++) {
    Sc sc;
    sc_init(&sc, NULL);
    strcpy(text, deep[i].head);
    size_t at = strlen(text), n = strlen(deep[i].again);
    for (u32 j = 0; j < 10000; j++, at += n) memcpy(text + at, deep[i].again, n);
    strcpy(text + at, deep[i].tail);
    assert_null(parse(&sc, text));
    assert_string_equal(sc_diag_code(sc.diags->id), "I.limit");
    sc_free(&sc);
  }
}

// Every prefix of a text, and every text with one byte changed, is read or reported.
static void broken_text(void **state) {
  (void)state;
  static const char junk[] = "{}[]();.#$0\x00 \xff";
  Sc sc;
  sc_init(&sc, NULL);
  Text *t = read_text(&sc, "tests/ir/forms.ir");
  char *bytes = sc_new(&sc, t->len);
  for (u32 i = 0; i < t->len; i += 3) {
    Sc one;
    sc_init(&one, NULL);
    Kernel *k = sc_parse_ir(&one, sc_text(&one, "x", t->at, i));
    assert_true(i + 1 >= t->len || (!k && one.diags));  // (whole but for the last line end)
    sc_free(&one);
    sc_init(&one, NULL);
    memcpy(bytes, t->at, t->len);
    bytes[i] = junk[i % (sizeof junk - 1)];
    k = sc_parse_ir(&one, sc_text(&one, "x", bytes, t->len));
    assert_true((k == NULL) == (one.errors > 0));
    sc_free(&one);
  }
  sc_free(&sc);
}

// ---- out of memory

typedef struct Budget {
  long left, live;
} Budget;

static void *take(void *user, size_t bytes) {
  Budget *b = user;
  void *at = b->left-- > 0 ? malloc(bytes) : NULL;
  b->live += at != NULL;
  return at;
}

static void give(void *user, void *block) {
  Budget *b = user;
  b->live--;
  free(block);
}

// Reads, checks and prints with memory for `left` requests.
static schedc_status with_memory(Budget *b, const Text *text) {
  Sc sc;
  jmp_buf unwind;
  sc_init(&sc, &(schedc_allocator){take, give, b});
  sc.unwind = &unwind;
  volatile schedc_status status = SCHEDC_OK;
  if (setjmp(unwind)) status = sc.why;
  else assert_string_equal(print(&sc, sc_parse_ir(&sc, text)), text->at);
  sc_free(&sc);
  assert_int_equal(b->live, 0);
  return status;
}

static void out_of_memory(void **state) {
  (void)state;
  Sc sc;
  sc_init(&sc, NULL);
  const Text *text = read_text(&sc, "tests/ir/sequence.ir");
  for (long n = 0;; n++) {
    Budget b = {n, 0};
    schedc_status status = with_memory(&b, text);
    if (status == SCHEDC_OK) break;
    assert_int_equal(status, SCHEDC_ENOMEM);
    assert_true(n < 100000);
  }
  sc_free(&sc);
}

// ---- invariants

typedef void Break(Sc *sc, Kernel *k);

static Ins *find(Kernel *k, Op op) {
  for (u32 r = 0; r < k->role.n; r++)
    for (u32 i = 0; i < k->role.at[r].code.n; i++)
      if (k->role.at[r].code.at[i].op == op) return &k->role.at[r].code.at[i];
  fail_msg("no such operation");
  return NULL;
}

static Expr *find_expr(Kernel *k, ExprOp op) {
  for (Xid x = 1; x < k->expr.n; x++)
    if (k->expr.at[x].op == op) return &k->expr.at[x];
  fail_msg("no such expression");
  return NULL;
}

static u32 find_buf(Kernel *k, const char *name) {
  for (u32 i = 0; i < k->buf.n; i++)
    if (!strcmp(k->buf.at[i].name, name)) return i;
  fail_msg("no such storage");
  return 0;
}

static Map *find_map(Kernel *k, Op op) { return &k->map.at[find(k, op)->arg[0]]; }
static View *find_view(Kernel *k, Op op, u32 i) { return &k->view.at[find(k, op)->arg[i]]; }
static Product *find_product(Kernel *k, Op op) { return &k->product.at[find(k, op)->arg[0]]; }

#define BREAK(name) static void name(Sc *sc, Kernel *k)
#define QUIET (void)sc
BREAK(operand_after) { QUIET; find_expr(k, X_ADD)->a = k->expr.n - 1; }
BREAK(operand_missing) { QUIET; find_expr(k, X_ADD)->b = 0; }
BREAK(operand_extra) { QUIET; find_expr(k, X_ADD)->c = 1; }
BREAK(wrong_type) { QUIET; find_expr(k, X_CDIV)->ty = TY_REAL; }
BREAK(wrong_deps) { QUIET; find_expr(k, X_CDIV)->deps ^= DEP_INST; }
BREAK(wrong_vars) { QUIET; find_expr(k, X_EXP2)->vars ^= 128; }
BREAK(wrong_leaf_deps) { QUIET; find_expr(k, X_INST)->deps = DEP_AXIS; }
BREAK(no_such_op) { QUIET; find_expr(k, X_CDIV)->op = X_COUNT; }
BREAK(no_such_dim) { QUIET; find_expr(k, X_DIM)->ref = k->dim.n; }
BREAK(load_of_nothing) { QUIET; find_expr(k, X_LOAD)->ref = k->view.n; }
BREAK(load_wrong_deps) { QUIET; find_expr(k, X_LOAD)->deps ^= DEP_DIM; }
BREAK(truth_of_two) { (void)x_bool(sc, k, true); find_expr(k, X_BOOL)->num.i = 2; }
BREAK(view_of_nothing) { QUIET; k->view.at[0].buf = k->buf.n; }
BREAK(view_wrong_rank) { QUIET; k->view.at[0].rank++; }
BREAK(view_no_base) { QUIET; k->view.at[0].at[0].base = k->expr.n; }
BREAK(view_no_var) { QUIET; k->view.at[0].at[0].var = SC_MAX_VARS; }
BREAK(view_real_base) { find_view(k, OP_COPYOUT, 0)->at[0].base = x_real(sc, k, 1); }
BREAK(fills_registers) { QUIET; k->view.at[find_map(k, OP_MAP)->dst].fill = true; }
BREAK(buf_no_name) { QUIET; k->buf.at[0].name = NULL; }
BREAK(buf_no_extent) { QUIET; k->buf.at[find_buf(k, "s")].ext[0] = 0; }
BREAK(buf_dim_varies) { QUIET; k->buf.at[find_buf(k, "Q")].dim[0] = (Xid)(find_expr(k, X_AXIS) - k->expr.at); }
BREAK(stage_of_no_ring) { QUIET; k->buf.at[find_buf(k, "bias")].ring = 0; }
BREAK(tile_of_no_role) { QUIET; k->buf.at[find_buf(k, "s")].role = k->role.n; }
BREAK(tensor_partial) { QUIET; k->buf.at[find_buf(k, "Q")].partial = true; }
BREAK(tensor_blocked) { QUIET; k->buf.at[find_buf(k, "Q")].blocked = true; }
BREAK(ring_no_stages) { QUIET; k->ring.at[0].stages = 0; }
BREAK(ring_no_parts) { QUIET; k->ring.at[0].part0 = k->buf.n; }
BREAK(ring_wrong_fillers) { QUIET; k->ring.at[1].fillers |= 4; }
BREAK(ring_wrong_copied) { QUIET; k->ring.at[0].copied = false; }
BREAK(ring_wrong_stored) { QUIET; k->ring.at[0].stored = true; }
BREAK(ring_wrong_read) { QUIET; k->ring.at[0].read = true; }
BREAK(turn_no_role) { QUIET; k->turn.at[0].member[0] = 9; }
BREAK(turn_inactive) { QUIET; k->turn.at[0].active = false; }
BREAK(turn_no_member) { QUIET; k->turn.at[0].members = 1; }
BREAK(turn_no_keys) { QUIET; k->turn.at[1].keys = 0; }
BREAK(require_int) { k->require.at[0].cond = x_int(sc, k, 1); }
BREAK(axis_varies) { QUIET; k->axis.at[0].extent = (Xid)(find_expr(k, X_LOOP) - k->expr.at); }
BREAK(axis_no_cluster) { QUIET; k->axis.at[0].cluster = 0; }
BREAK(case_of_nothing) { QUIET; k->kase.at[0].bind.at[0].ref = k->dim.n; }
BREAK(case_of_a_tile) { QUIET; k->kase.at[0].bind.at[3].ref = find_buf(k, "s"); }
BREAK(spec_reads_tile) { QUIET; k->view.at[k->map.at[k->spec.at[0]].dst].buf = find_buf(k, "s"); }
BREAK(no_tile) { QUIET; k->role.at[2].code.at[0].op = OP_TAKE; }
BREAK(no_code) { QUIET; k->role.at[2].code.n = 0; }
BREAK(after_tile) { QUIET; k->role.at[2].code.at[1].op = OP_ENDTILE; }
BREAK(three_warps) { QUIET; k->role.at[0].warps = 3; }
BREAK(wrong_nest) { QUIET; find(k, OP_ENDFOR)->nest++; }
BREAK(wrong_closer) { QUIET; find(k, OP_ENDFOR)->op = OP_ENDIF; }
BREAK(wrong_split) { QUIET; find(k, OP_IF)->nest++; }
BREAK(loop_twice) { QUIET; find(k, OP_FOR)->arg[0] = 1; }
BREAK(bound_varies) { QUIET; find(k, OP_FOR)->arg[2] = (Xid)(find_expr(k, X_IDX) - k->expr.at); }
BREAK(bound_missing) { QUIET; find(k, OP_FOR)->arg[1] = 0; }
BREAK(condition_int) { find(k, OP_IF)->arg[0] = x_int(sc, k, 1); }
BREAK(loop_outside) { Xid t = (Xid)(find_expr(k, X_LOOP) - k->expr.at); find(k, OP_IF)->arg[0] = x_make(sc, k, X_LT, t, x_int(sc, k, 3), 0); }
BREAK(wrong_flag) { QUIET; find(k, OP_RELEASE)->flags = INS_READ; }
BREAK(ring_missing) { QUIET; find(k, OP_WAIT)->arg[0] = k->ring.n; }
BREAK(private_ring) { QUIET; k->role.at[0].code.at[1].arg[0] = 2; }
BREAK(map_missing) { QUIET; find(k, OP_MAP)->arg[0] = k->map.n; }
BREAK(map_no_root) { QUIET; find_map(k, OP_MAP)->root = 0; }
BREAK(map_no_dst) { QUIET; find_map(k, OP_MAP)->dst = SC_NONE; }
BREAK(vote_of_real) { find_map(k, OP_VOTE)->root = x_real(sc, k, 1); }
BREAK(map_of_truth) { find_map(k, OP_MAP)->root = x_bool(sc, k, true); }
BREAK(map_extent) { QUIET; find_map(k, OP_MAP)->var[0].extent = (Xid)(find_expr(k, X_DIM) - k->expr.at); }
BREAK(map_too_far) { find_map(k, OP_MAP)->var[0].extent = x_int(sc, k, 65); }
BREAK(map_free_var) { find_map(k, OP_MAP)->root = x_leaf(sc, k, X_IDX, TY_INT, 5); }
BREAK(map_var_twice) { QUIET; View *v = &k->view.at[find_map(k, OP_MAP)->dst]; v->at[0].var = v->at[1].var; }
BREAK(map_parts) { QUIET; find_map(k, OP_MAP)->parts = true; }
BREAK(map_writes_input) { QUIET; k->buf.at[k->view.at[find_map(k, OP_MAPADD)->dst].buf].dir = SCHEDC_IN; }
BREAK(reduces_out) { find_map(k, OP_MAP)->root = x_reduce(sc, k, X_SUM, 0, x_int(sc, k, 1)); }
BREAK(other_instance) { find_map(k, OP_MAP)->root = x_leaf(sc, k, X_INST, TY_INT, 0); }
BREAK(other_tile) { QUIET; k->buf.at[find_buf(k, "o")].role = 0; }
BREAK(product_missing) { QUIET; find(k, OP_MMA)->arg[0] = k->product.n; }
BREAK(product_of_nothing) { QUIET; find_product(k, OP_MMA)->k = 0; }
BREAK(product_vars) { QUIET; k->view.at[find_product(k, OP_MMA)->a].at[0].var = 1; }
BREAK(product_into_stage) { QUIET; find_product(k, OP_MMA)->dst = find_product(k, OP_MMA)->a; }
BREAK(copy_not_fill) { QUIET; find_view(k, OP_COPYIN, 0)->fill = false; }
BREAK(copy_of_tensors) { QUIET; find(k, OP_COPYIN)->arg[0] = find(k, OP_COPYIN)->arg[1]; }
BREAK(copy_rank) { QUIET; find_view(k, OP_COPYIN, 1)->at[0].slice = false; }
BREAK(list_empty) { QUIET; k->list.at[find(k, OP_MMAWAIT)->arg[0]] = 0; }
BREAK(list_too_long) { QUIET; k->list.at[find(k, OP_MMAWAIT)->arg[0]] = 99; }
BREAK(list_of_stage) { QUIET; k->list.at[find(k, OP_MMAWAIT)->arg[0] + 1] = find_buf(k, "bias"); }
BREAK(wait_of_tile) { QUIET; find(k, OP_COPYWAIT)->arg[0] = find_buf(k, "s"); }
BREAK(sync_in_vote) { QUIET; Ins *v = find(k, OP_VOTE); v[1].op = OP_WAIT; v[1].arg[0] = 0; }

static const struct {
  const char *name;
  Break *how;
  const char *part;
} broken[] = {
#define ROW(how, part) {#how, how, part},
    ROW(operand_after, "not before it") ROW(operand_missing, "missing") ROW(operand_extra, "too many")
    ROW(wrong_type, "signature") ROW(wrong_deps, "dependences") ROW(wrong_vars, "dependences")
    ROW(wrong_leaf_deps, "wrong dependences") ROW(no_such_op, "no such operation")
    ROW(no_such_dim, "dim that does not exist") ROW(load_of_nothing, "loads no view")
    ROW(load_wrong_deps, "not its view's") ROW(truth_of_two, "0 or 1") ROW(view_of_nothing, "no such storage")
    ROW(view_wrong_rank, "rank") ROW(view_no_base, "malformed") ROW(view_no_var, "malformed")
    ROW(view_real_base, "no integer") ROW(fills_registers, "no stage") ROW(buf_no_name, "no name")
    ROW(buf_no_extent, "dimension 0") ROW(buf_dim_varies, "not known there") ROW(stage_of_no_ring, "no part of its ring")
    ROW(tile_of_no_role, "no role") ROW(tensor_partial, "partial") ROW(tensor_blocked, "cannot be blocked") ROW(ring_no_stages, "no name, stages")
    ROW(ring_no_parts, "no part of its ring") ROW(ring_wrong_fillers, "not those of the code")
    ROW(ring_wrong_copied, "not what the code does") ROW(ring_wrong_stored, "not what the code does")
    ROW(ring_wrong_read, "not what the code does") ROW(turn_no_role, "no role") ROW(turn_inactive, "not active")
    ROW(turn_no_member, "no member") ROW(turn_no_keys, "no keys") ROW(require_int, "a requirement")
    ROW(axis_varies, "not known there") ROW(axis_no_cluster, "cluster") ROW(case_of_nothing, "does not exist")
    ROW(case_of_a_tile, "no tensor") ROW(spec_reads_tile, "specification") ROW(no_tile, "framed") ROW(no_code, "framed")
    ROW(after_tile, "close") ROW(three_warps, "1 or 4 warps") ROW(wrong_nest, "close") ROW(wrong_closer, "close")
    ROW(wrong_split, "close") ROW(loop_twice, "used twice") ROW(bound_varies, "not uniform")
    ROW(bound_missing, "no expression") ROW(condition_int, "wrong type") ROW(loop_outside, "outside the loop")
    ROW(wrong_flag, "flag") ROW(ring_missing, "no ring") ROW(private_ring, "private") ROW(map_missing, "no map")
    ROW(map_no_root, "out of range") ROW(map_no_dst, "has a destination") ROW(vote_of_real, "wrong type")
    ROW(map_of_truth, "wrong type") ROW(map_extent, "not a known number") ROW(map_too_far, "outside the tile")
    ROW(map_free_var, "does not have") ROW(map_var_twice, "once") ROW(map_parts, "no parts")
    ROW(map_writes_input, "only an input") ROW(reduces_out, "to reduce") ROW(other_instance, "another role's instance")
    ROW(other_tile, "another role's tile") ROW(product_missing, "no product") ROW(product_of_nothing, "of nothing")
    ROW(product_vars, "wrong variables") ROW(product_into_stage, "wrong") ROW(copy_not_fill, "fill a stage")
    ROW(copy_of_tensors, "between a tensor and a stage") ROW(copy_rank, "stage's rank") ROW(list_empty, "empty")
    ROW(list_too_long, "out of range") ROW(list_of_stage, "not the role's tile") ROW(wait_of_tile, "no tensor")
    ROW(sync_in_vote, "under a vote")
#undef ROW
};

static void broken_invariants(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT(broken); i++) {
    Sc sc;
    sc_init(&sc, NULL);
    Kernel *k = sc_parse_ir(&sc, read_text(&sc, "tests/ir/forms.ir"));
    assert_non_null(k);
    broken[i].how(&sc, k);
    const char *wrong = sc_wellformed(&sc, k);
    if (!wrong || !strstr(wrong, broken[i].part)) fail_msg("%s: %s", broken[i].name, wrong ? wrong : "not found");
    sc_free(&sc);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_reads_back),    cmocka_unit_test(schedules_read_back),
      cmocka_unit_test(loose_text),         cmocka_unit_test(large_expressions),
      cmocka_unit_test(reports),            cmocka_unit_test(nesting_is_limited),
      cmocka_unit_test(broken_text),        cmocka_unit_test(out_of_memory),
      cmocka_unit_test(broken_invariants),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
