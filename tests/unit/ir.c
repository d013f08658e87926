// The text of the IR shows every operation, expression and member (tests/golden/ir.sched has them
// all), in space linear in the IR; and each invariant that wellformed.c checks is found when it is
// broken.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "files.h"
#include "compiler/ir/printer.h"
#include "compiler/passes.h"

static Kernel *compile(Sc *sc, const char *path, const char *unit, const char *stage) {
  size_t n;
  char *text = read_file(path, &n);
  const Ast *ast = sc_parse(sc, sc_text(sc, path, text, n));
  free(text);
  Compilation c = {.ast = ast, .choice = {.unit = unit}};
  Kernel *k = sc_compile(sc, &c, "ast", stage) ? (Kernel *)(uintptr_t)c.k : NULL;
  if (!k) fail_msg("%s: %s", path, sc->diags->text);
  return k;
}

static const char *print(Sc *sc, const Kernel *k) {
  Str s = {.sc = sc};
  sc_print_ir(&s, k);
  return s.at;
}

// ---- the text

static const char all_forms[] = "tests/golden/ir.sched";

static void note_uses(const Kernel *k, bool *op, bool *xop) {
  for (u32 r = 0; r < k->role.n; r++)
    for (u32 i = 0; i < k->role.at[r].code.n; i++) op[k->role.at[r].code.at[i].op] = true;
  for (Xid x = 1; x < k->expr.n; x++) xop[k->expr.at[x].op] = true;
}

static void shows(const char *text, const char *word) {
  if (!strstr(text, word)) fail_msg("'%s' is in no text of %s", word, all_forms);
}

static void every_form(void **state) {
  (void)state;
  bool op[OP_COUNT] = {false}, xop[X_COUNT] = {false};
  Sc sc;
  sc_init(&sc, NULL);
  const Kernel *k = compile(&sc, all_forms, NULL, "derive");
  const char *text = print(&sc, k);
  for (u32 i = 0; i < k->launch.n; i++) note_uses(k->launch.at[i].kernel, op, xop);
  for (u32 i = 0; i < OP_COUNT; i++)
    if (!op[i]) fail_msg("operation '%s' is not in %s", sc_op[i].text, all_forms);
  for (u32 i = X_REAL; i < X_COUNT; i++)
    if (!xop[i]) fail_msg("expression '%s' is not in %s", sc_xop[i].text, all_forms);
  for (u32 i = 0; i < COUNT(ins_flag); i++) shows(text, ins_flag[i].word);
  for (u32 i = 0; i < COUNT(dir_word); i++) shows(text, dir_word[i]);
  for (u32 i = 0; i < COUNT(grid_word); i++) shows(text, grid_word[i]);
#define SHOWS(table) \
  for (u32 i = 0; i < COUNT(table); i++) shows(text, table[i].word)
  SHOWS(buf_attr);
  SHOWS(ring_attr);
  SHOWS(turn_attr);
  SHOWS(role_attr);
  SHOWS(plan_attr);
  sc_free(&sc);
}

// An expression with many paths prints in space linear in its nodes, and one of many levels without
// recursion.
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
  assert_true(strlen(print(&sc, k)) < 200000);
  sc_free(&sc);
}

// ---- invariants

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

static Xid number(Kernel *k, ExprOp op) { return (Xid)(find_expr(k, op) - k->expr.at); }

static Buf *find_buf(Kernel *k, const char *name) {
  for (u32 i = 0; i < k->buf.n; i++)
    if (!strcmp(k->buf.at[i].name, name)) return &k->buf.at[i];
  fail_msg("no such storage");
  return NULL;
}

static u32 buf_number(Kernel *k, const char *name) { return (u32)(find_buf(k, name) - k->buf.at); }
static Map *find_map(Kernel *k, Op op) { return &k->map.at[find(k, op)->arg[0]]; }
static View *find_dst(Kernel *k, Op op) { return &k->view.at[find_map(k, op)->dst]; }
static View *find_view(Kernel *k, Op op, u32 i) { return &k->view.at[find(k, op)->arg[i]]; }
static Product *find_product(Kernel *k) { return &k->product.at[find(k, OP_MMA)->arg[0]]; }
static Code *code_of(Kernel *k, const char *role) {
  for (u32 r = 0; r < k->role.n; r++)
    if (!strcmp(k->role.at[r].name, role)) return &k->role.at[r].code;
  fail_msg("no such role");
  return NULL;
}

// Each breaks one invariant of a unit of ir.sched; the report has these words.
typedef struct Break {
  const char *name, *unit, *says;
  void (*how)(Sc *sc, Kernel *k);
} Break;

#define UNUSED __attribute__((unused))
#define BREAK(name, unit, says)                              \
  static void name(Sc *sc, Kernel *k);                       \
  static const Break name##_row = {#name, unit, says, name}; \
  static void name(Sc *sc UNUSED, Kernel *k)

// clang-format off
BREAK(operand_after, "every", "not before it") {
  find_expr(k, X_ADD)->a = k->expr.n - 1;
}
BREAK(no_such_dim, "every", "dim that does not exist") {
  find_expr(k, X_DIM)->ref = k->dim.n;
}
BREAK(load_of_nothing, "every", "load that does not exist") {
  find_expr(k, X_LOAD)->ref = k->view.n;
}
BREAK(load_written, "every", ", which is written, is uniform") {
  find_buf(k, "cu")->dir = SCHEDC_INOUT;
}
BREAK(load_type, "every", "not the element's type") {
  find_buf(k, "cu")->elem = EL_F32;
}
BREAK(view_of_nothing, "every", "no such storage") {
  k->view.at[0].buf = k->buf.n;
}
BREAK(view_wrong_rank, "every", "not its rank") {
  k->view.at[0].rank++;
}
BREAK(view_no_base, "every", "no integer expression") {
  k->view.at[0].at[0].base = k->expr.n;
}
BREAK(view_real_base, "every", "no integer expression") {
  find_view(k, OP_COPYOUT, 0)->at[0].base = x_real(sc, k, 1);
}
BREAK(fills_registers, "every", "fills what is no stage") {
  find_dst(k, OP_MAP)->fill = true;
}
BREAK(tile_no_extent, "every", "'s': no dimension 0") {
  find_buf(k, "s")->ext[0] = 0;
}
BREAK(tensor_no_dim, "every", "'Q': no dimension 1") {
  find_buf(k, "Q")->dim[1] = 0;
}
BREAK(dim_missing, "every", "dimension: no such expression") {
  find_buf(k, "Q")->dim[0] = k->expr.n;
}
BREAK(dim_real, "every", "dimension: not of the type") {
  find_buf(k, "Q")->dim[0] = x_real(sc, k, 1);
}
BREAK(dim_varies, "every", "dimension: depends on") {
  find_buf(k, "Q")->dim[0] = number(k, X_AXIS);
}
BREAK(stage_of_no_ring, "every", "no part of its ring") {
  find_buf(k, "bias")->ring = 0;
}
BREAK(stage_of_a_role, "every", "no part of its ring") {
  find_buf(k, "bias")->role = 0;
}
BREAK(tile_of_no_role, "every", "a tile of no role") {
  find_buf(k, "s")->role = k->role.n;
}
BREAK(ring_no_stages, "every", "no stages") {
  k->ring.at[0].stages = 0;
}
BREAK(ring_more_parts, "every", "a part is not its own") {
  k->ring.at[0].parts++;
}
BREAK(ring_fillers, "every", "not those of the code") {
  k->ring.at[1].fillers |= 4;
}
BREAK(turn_no_role, "every", "a member is no role") {
  k->turn.at[0].member[0] = 9;
}
BREAK(turn_no_axis, "every", "'order': no axis") {
  k->turn.at[1].axis = 9;
}
BREAK(turn_inactive, "every", "not active") {
  k->turn.at[0].active = false;
}
BREAK(turn_no_member, "every", "is no member") {
  k->turn.at[0].members = 1;
}
BREAK(turn_no_keys, "every", "has no keys") {
  k->turn.at[1].keys = 0;
}
BREAK(default_int, "every", "default: not of the type") {
  k->arg.at[0].init = x_int(sc, k, 1);
}
BREAK(require_int, "every", "a requirement: not of the type") {
  k->require.at[0].cond = x_int(sc, k, 1);
}
BREAK(work_varies, "names", "the work: depends on") {
  k->work = number(k, X_AXIS);
}
BREAK(axis_varies, "every", "extent: depends on") {
  k->axis.at[0].extent = number(k, X_LOOP);
}
BREAK(axis_no_cluster, "every", "no extent or cluster") {
  k->axis.at[0].cluster = 0;
}
BREAK(let_of_nothing, "every", "no value") {
  k->let.at[0].value = k->expr.n;
}
BREAK(case_of_nothing, "every", "'M' is not what it binds") {
  k->kase.at[0].bind.at[2].ref = k->dim.n;
}
BREAK(case_of_a_tile, "every", "'cu' is not what it binds") {
  k->kase.at[0].bind.at[5].ref = buf_number(k, "s");
}
BREAK(spec_of_a_tile, "every", "specification touches 's'") {
  k->view.at[k->map.at[k->spec.at[0]].dst].buf = buf_number(k, "s");
}
BREAK(spec_in_role, "every", "of the specification is used") {
  find_dst(k, OP_MAP)->buf = buf_number(k, "S");
}
BREAK(spec_of_axis, "every", "grid index in the specification") {
  k->map.at[k->spec.at[0]].root = x_leaf(sc, k, X_AXIS, TY_INT, 0);
}
BREAK(no_code, "every", "not framed") {
  code_of(k, "more")->n = 0;
}
BREAK(no_tile, "every", "not framed") {
  code_of(k, "more")->at[0].op = OP_TAKE;
}
BREAK(ends_early, "every", "'endtile' does not close") {
  code_of(k, "more")->at[1].op = OP_ENDTILE;
}
BREAK(wrong_closer, "every", "'endfor' does not close") {
  find(k, OP_ENDVOTE)->op = OP_ENDFOR;
}
BREAK(wrong_around, "every", "not in the block that it says") {
  find(k, OP_IF)[1].around = 0;
}
BREAK(wrong_nest, "every", "'endfor' does not close") {
  find(k, OP_ENDFOR)->nest++;
}
BREAK(wrong_split, "every", "'else' does not close") {
  find(k, OP_IF)->nest++;
}
BREAK(loop_missing, "every", "no loop") {
  find(k, OP_FOR)->arg[0] = k->loop.n;
}
BREAK(loop_of_another, "every", "of another role") {
  find(k, OP_FOR)->arg[0] = 1;
}
BREAK(loop_twice, "names", "used twice") {
  Ins *first = find(k, OP_FOR), *next = first + 1;
  while (next->op != OP_FOR) next++;
  next->arg[0] = first->arg[0];
}
BREAK(bound_missing, "every", "no expression") {
  find(k, OP_FOR)->arg[1] = 0;
}
BREAK(bound_varies, "every", "not uniform") {
  find(k, OP_FOR)->arg[2] = number(k, X_IDX);
}
BREAK(condition_int, "every", "wrong type") {
  find(k, OP_IF)->arg[0] = x_int(sc, k, 1);
}
BREAK(loop_outside, "every", "outside the loop") {
  find(k, OP_IF)->arg[0] = x_make(sc, k, X_LT, number(k, X_LOOP), x_int(sc, k, 3), 0);
}
BREAK(ring_missing, "every", "no ring") {
  find(k, OP_WAIT)->arg[0] = k->ring.n;
}
BREAK(ring_private, "every", "private to another") {
  find(k, OP_ACQUIRE)->arg[0] = 2;
}
BREAK(turn_missing, "every", "no turn") {
  find(k, OP_TAKE)->arg[0] = k->turn.n;
}
BREAK(map_missing, "every", "no map") {
  find(k, OP_MAP)->arg[0] = k->map.n;
}
BREAK(map_no_root, "every", "out of range") {
  find_map(k, OP_MAP)->root = 0;
}
BREAK(map_no_dst, "every", "has a destination") {
  find_map(k, OP_MAP)->dst = SC_NONE;
}
BREAK(vote_of_real, "every", "wrong type") {
  find_map(k, OP_VOTE)->root = x_real(sc, k, 1);
}
BREAK(map_of_truth, "every", "wrong type") {
  find_map(k, OP_MAP)->root = x_bool(sc, k, true);
}
BREAK(extent_missing, "every", "extent is no expression") {
  find_map(k, OP_MAP)->var[0].extent = k->expr.n;
}
BREAK(extent_varies, "every", "not a known number") {
  find_map(k, OP_MAP)->var[0].extent = number(k, X_DIM);
}
BREAK(map_too_far, "every", "outside the tile") {
  find_map(k, OP_MAP)->var[0].extent = x_int(sc, k, 65);
}
BREAK(map_free_var, "every", "does not have") {
  find_map(k, OP_MAP)->root = x_leaf(sc, k, X_IDX, TY_INT, 5);
}
BREAK(map_var_twice, "every", "once") {
  find_dst(k, OP_MAP)->at[0].var = find_dst(k, OP_MAP)->at[1].var;
}
BREAK(map_parts, "every", "has no parts") {
  find_map(k, OP_MAP)->parts = true;
}
BREAK(writes_input, "every", "but only an input") {
  k->buf.at[find_dst(k, OP_MAPADD)->buf].dir = SCHEDC_IN;
}
BREAK(adds_to_tile, "every", "only tensors are added to") {
  find(k, OP_MAP)->op = OP_MAPADD;
}
BREAK(base_varies, "every", "base is not uniform") {
  find_dst(k, OP_MAP)->at[0] = (Pos){number(k, X_IDX), -1, false};
}
BREAK(reduces_out, "every", "not the map's to reduce") {
  find_map(k, OP_MAP)->root = x_reduce(sc, k, X_SUM, 0, x_int(sc, k, 1));
}
BREAK(other_instance, "every", "another role's instance") {
  find_map(k, OP_MAP)->root = x_leaf(sc, k, X_INST, TY_INT, 0);
}
BREAK(other_tile, "every", "another role's tile") {
  find_buf(k, "o")->role = 0;
}
BREAK(not_drained, "every", "does not drain its ring") {
  k->ring.at[1].drainers = 0;
}
BREAK(product_missing, "every", "no product") {
  find(k, OP_MMA)->arg[0] = k->product.n;
}
BREAK(product_no_view, "every", "no view") {
  find_product(k)->a = k->view.n;
}
BREAK(product_vars, "every", "wrong variables") {
  k->view.at[find_product(k)->a].at[0].var = 1;
}
BREAK(product_space, "every", "right factor is in the wrong space") {
  k->view.at[find_product(k)->b].buf = buf_number(k, "K");
}
BREAK(copy_not_fill, "every", "copies in fill a stage") {
  find_view(k, OP_COPYIN, 0)->fill = false;
}
BREAK(copy_of_tensors, "every", "between a tensor and a stage") {
  find(k, OP_COPYIN)->arg[0] = find(k, OP_COPYIN)->arg[1];
}
BREAK(copy_rank, "every", "stage's rank") {
  find_view(k, OP_COPYIN, 1)->at[0].slice = false;
}
BREAK(list_empty, "every", "an empty one") {
  k->list.at[find(k, OP_MMAWAIT)->arg[0]] = 0;
}
BREAK(list_of_stage, "every", "not the role's tile") {
  k->list.at[find(k, OP_MMAWAIT)->arg[0] + 1] = buf_number(k, "bias");
}
BREAK(wait_of_tile, "every", "no tensor") {
  find(k, OP_COPYWAIT)->arg[0] = buf_number(k, "s");
}
BREAK(wait_in_vote, "every", "'wait' under a vote") {
  find(k, OP_VOTE)[1].op = OP_WAIT;
}
BREAK(step_dim, "all", "dimension 0 is not bound") {
  k->launch.at[0].dim[0] = k->dim.n;
}
BREAK(step_arg, "all", "argument 1 is not bound") {
  k->launch.at[0].arg[1] = 0;
}
BREAK(step_tensor, "all", "tensor 'Q' is not bound") {
  k->launch.at[0].tensor[0] = buf_number(k, "K");
}
BREAK(step_blocked, "all", "blocked for one") {
  find_buf(k, "W")->blocked = false;
}
BREAK(step_broken, "all", "kernel 'every'") {
  ((Kernel *)k->launch.at[0].kernel)->ring.at[0].stages = 0;
}
BREAK(given_output, "all", "no input, and given") {
  find_buf(k, "C")->dir = SCHEDC_INOUT;
}

static const Break *const broken[] = {
    &operand_after_row, &no_such_dim_row, &load_of_nothing_row, &load_written_row, &load_type_row,
    &view_of_nothing_row, &view_wrong_rank_row, &view_no_base_row, &view_real_base_row,
    &fills_registers_row, &tile_no_extent_row, &tensor_no_dim_row, &dim_missing_row,
    &dim_real_row, &dim_varies_row, &stage_of_no_ring_row, &stage_of_a_role_row,
    &tile_of_no_role_row, &ring_no_stages_row, &ring_more_parts_row, &ring_fillers_row,
    &turn_no_role_row, &turn_no_axis_row, &turn_inactive_row, &turn_no_member_row,
    &turn_no_keys_row, &default_int_row, &require_int_row, &work_varies_row, &axis_varies_row,
    &axis_no_cluster_row, &let_of_nothing_row, &case_of_nothing_row, &case_of_a_tile_row,
    &spec_of_a_tile_row, &spec_in_role_row, &spec_of_axis_row, &no_code_row, &no_tile_row,
    &ends_early_row, &wrong_closer_row, &wrong_around_row, &wrong_nest_row,
    &wrong_split_row, &loop_missing_row,
    &loop_of_another_row, &loop_twice_row, &bound_missing_row, &bound_varies_row,
    &condition_int_row, &loop_outside_row, &ring_missing_row, &ring_private_row,
    &turn_missing_row, &map_missing_row, &map_no_root_row, &map_no_dst_row, &vote_of_real_row,
    &map_of_truth_row, &extent_missing_row, &extent_varies_row, &map_too_far_row,
    &map_free_var_row, &map_var_twice_row, &map_parts_row, &writes_input_row, &adds_to_tile_row,
    &base_varies_row, &reduces_out_row, &other_instance_row, &other_tile_row, &not_drained_row,
    &product_missing_row, &product_no_view_row, &product_vars_row, &product_space_row,
    &copy_not_fill_row, &copy_of_tensors_row, &copy_rank_row, &list_empty_row, &list_of_stage_row,
    &wait_of_tile_row, &wait_in_vote_row, &step_dim_row, &step_arg_row, &step_tensor_row,
    &step_blocked_row, &step_broken_row, &given_output_row,
};
// clang-format on

static void broken_invariants(void **state) {
  (void)state;
  for (u32 i = 0; i < COUNT(broken); i++) {
    const Break *b = broken[i];
    Sc sc;
    sc_init(&sc, NULL);
    Kernel *k = compile(&sc, all_forms, b->unit, "lower");
    assert_null(sc_wellformed(&sc, k));
    b->how(&sc, k);
    const char *wrong = sc_wellformed(&sc, k);
    if (!wrong || !strstr(wrong, b->says)) fail_msg("%s: %s", b->name, wrong ? wrong : "not found");
    sc_free(&sc);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_form),
      cmocka_unit_test(large_expressions),
      cmocka_unit_test(broken_invariants),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
