// binding.c - tensors and scalars bound to a kernel built by hand: what is accepted, and every T
// code.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "lang/ast.h"
#include "runtime/run.h"

// in Q : f16[B, M, 8]   in cu : i32[B + 1]   out O : f32[B, M]   scale : f32 = 1 / sqrt(8)   n :
// i32 = M / 2
static const char text[] = "Q cu O scale n require\n";
enum { DIM_B, DIM_M, BUF_Q = 0, BUF_CU, BUF_O };

typedef struct Fixture {
  Sc sc;
  Kernel *k;
  jmp_buf none;
  schedc_tensor tensor[4];
  schedc_scalar scalar[2];
  size_t tensors, scalars;
} Fixture;

static char memory[4096];

static Buf tensor_buf(const char *name, u32 lo, Elem elem, int dir) {
  return (Buf){.name = name,
               .span = {lo, lo + (u32)strlen(name)},
               .space = SP_TENSOR,
               .elem = elem,
               .dir = (u8)dir,
               .ring = SC_NONE,
               .role = SC_NONE};
}

static void build(Fixture *f) {
  Sc *sc = &f->sc;
  Kernel *k = f->k = sc_kernel(sc);
  k->name = "kern";
  k->text = sc_text(sc, "k.sched", text, strlen(text));
  sc->text = k->text;
  PUSH(sc, &k->dim, ((Dim){"B", {0, 1}}));
  PUSH(sc, &k->dim, ((Dim){"M", {0, 1}}));
  Xid b = x_leaf(sc, k, X_DIM, TY_INT, DIM_B), m = x_leaf(sc, k, X_DIM, TY_INT, DIM_M);
  Buf q = tensor_buf("Q", 0, EL_F16, F_IN), cu = tensor_buf("cu", 2, EL_I32, F_IN);
  Buf o = tensor_buf("O", 5, EL_F32, F_OUT);
  q.rank = 3, q.dim[0] = b, q.dim[1] = m, q.dim[2] = x_int(sc, k, 8);
  cu.rank = 1, cu.dim[0] = x_make(sc, k, X_ADD, b, x_int(sc, k, 1), 0);
  o.rank = 2, o.dim[0] = b, o.dim[1] = m;
  PUSH(sc, &k->buf, q);
  PUSH(sc, &k->buf, cu);
  PUSH(sc, &k->buf, o);
  Xid root = x_make(sc, k, X_SQRT, x_int(sc, k, 8), 0, 0);
  Xid scale = x_make(sc, k, X_DIV, x_real(sc, k, 1), root, 0);
  PUSH(sc, &k->arg, ((Arg){"scale", {7, 12}, EL_F32, scale}));
  PUSH(sc, &k->arg, ((Arg){"n", {13, 14}, EL_I32, x_make(sc, k, X_IDIV, m, x_int(sc, k, 2), 0)}));
  Xid even = x_make(sc, k, X_EQ, x_make(sc, k, X_MOD, m, x_int(sc, k, 2), 0), x_int(sc, k, 0), 0);
  PUSH(sc, &k->require, ((Require){even, {15, 22}}));
}

static int setup(void **state) {
  static Fixture f;
  memset(&f, 0, sizeof f);
  sc_init(&f.sc, NULL);
  f.sc.unwind = &f.none;
  build(&f);
  f.tensor[0] = (schedc_tensor){"Q", memory, SCHEDC_F16, 3, {2, 4, 8}, {32, 8, 1}};
  f.tensor[1] = (schedc_tensor){"cu", memory, SCHEDC_I32, 1, {3}, {1}};
  f.tensor[2] = (schedc_tensor){"O", memory, SCHEDC_F32, 2, {2, 4}, {4, 1}};
  f.tensors = 3;
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  sc_free(&((Fixture *)*state)->sc);
  return 0;
}

static Binding *bind(Fixture *f) {
  return sc_bind_tensors(&f->sc, f->k, &(Arguments){f->tensor, f->tensors, f->scalar, f->scalars});
}

// Binding fails, and the first report is this one.
static void refused(Fixture *f, DiagId id, const char *said) {
  assert_null(bind(f));
  assert_non_null(f->sc.diags);
  assert_string_equal(f->sc.diags->text, said);
  assert_int_equal(f->sc.diags->id, id);
}

static void accepts(void **state) {
  Binding *b = bind(*state);
  assert_non_null(b);
  assert_int_equal(b->dim[DIM_B], 2);
  assert_int_equal(b->dim[DIM_M], 4);
  assert_true(b->arg[0] == (double)(float)(1 / sqrt(8.0)));
  assert_true(b->arg[1] == 2);
  assert_int_equal(b->buf[BUF_Q].stride[0], 32);
}

static void solves_expressions(void **state) {
  Fixture *f = *state;
  f->k->buf.at[BUF_Q].dim[0] = x_int(&f->sc, f->k, 2);
  f->k->buf.at[BUF_O].dim[0] = x_int(&f->sc, f->k, 2);
  Binding *b = bind(f);  // B only in B + 1
  assert_non_null(b);
  assert_int_equal(b->dim[DIM_B], 2);
}

static void empty_needs_no_data(void **state) {
  Fixture *f = *state;
  f->tensor[0].shape[1] = f->tensor[2].shape[1] = 0;
  f->tensor[0].data = f->tensor[2].data = NULL;
  assert_non_null(bind(f));
}

static void broadcast_inputs(void **state) {
  Fixture *f = *state;
  f->tensor[0].strides[0] = f->tensor[0].strides[1] = 0;
  assert_non_null(bind(f));
}

static void code_missing(void **state) {
  Fixture *f = *state;
  f->tensors = 2;
  refused(f, D_T_MISSING, "tensor 'O' is not given");
  assert_int_equal(f->sc.diags->at.lo, 5);
}

static void code_missing_scalar(void **state) {
  Fixture *f = *state;
  f->k->arg.at[0].init = 0;
  refused(f, D_T_MISSING, "scalar 'scale' is not given, and has no default");
}

static void code_null(void **state) {
  Fixture *f = *state;
  f->tensor[0].data = NULL;
  refused(f, D_T_NULL, "tensor 'Q' has no data: its pointer is NULL");
}

static void code_align(void **state) {
  Fixture *f = *state;
  f->tensor[0].data = (char *)f->tensor[0].data + 1;
  refused(f, D_T_ALIGN, "the address of tensor 'Q' is not a multiple of its elements' 2 bytes");
}

static void code_rank(void **state) {
  Fixture *f = *state;
  f->tensor[0].rank = 2;
  refused(f, D_T_RANK, "tensor 'Q' is given with 2 dimensions, but declared with 3");
}

static void code_require(void **state) {
  Fixture *f = *state;
  f->tensor[0].shape[1] = f->tensor[2].shape[1] = 3;
  refused(f, D_T_REQUIRE, "'kern' requires what does not hold here: M = 3");
  assert_int_equal(f->sc.diags->at.lo, 15);
}

// The value of an i32 scalar is an integer in what is said, too.
static void code_require_scalar(void **state) {
  Fixture *f = *state;
  Xid m = x_leaf(&f->sc, f->k, X_DIM, TY_INT, DIM_M), n = x_leaf(&f->sc, f->k, X_ARG, TY_INT, 1);
  PUSH(&f->sc, &f->k->require, ((Require){x_make(&f->sc, f->k, X_LT, n, m, 0), {15, 22}}));
  f->scalar[0] = (schedc_scalar){"n", 7};
  f->scalars = 1;
  refused(f, D_T_REQUIRE, "'kern' requires what does not hold here: M = 4, n = 7");
}

// cu : i32[B + 1] in 0 .. M + 1 rising, in host memory.
static bool elements_fit(Fixture *f, i32 first, i32 second, i32 third) {
  i32 cu[] = {first, second, third};
  Buf *b = &f->k->buf.at[BUF_CU];
  Xid m = x_leaf(&f->sc, f->k, X_DIM, TY_INT, DIM_M);
  b->least = x_int(&f->sc, f->k, 0);
  b->end = x_make(&f->sc, f->k, X_ADD, m, x_int(&f->sc, f->k, 1), 0);
  b->rising = true;
  f->tensor[1].data = cu;
  Binding *bound = bind(f);
  assert_non_null(bound);
  return sc_elements_fit(&f->sc, bound);
}

static void elements_in_their_range(void **state) {
  assert_true(elements_fit(*state, 0, 0, 4));
  assert_true(elements_fit(*state, 0, 3, 3));
}

static void elements_refused(Fixture *f, i32 first, i32 second, i32 third, const char *said) {
  assert_false(elements_fit(f, first, second, third));
  assert_int_equal(f->sc.diags->id, D_T_ELEMENT);
  assert_string_equal(f->sc.diags->text, said);
  assert_int_equal(f->sc.diags->at.lo, 2);
}

static void code_element_beyond(void **state) {
  elements_refused(*state, 0, 1, 5, "element [2] of 'cu' is 5, but it is declared in 0 .. 5");
}

static void code_element_below(void **state) {
  elements_refused(*state, -1, 1, 4, "element [0] of 'cu' is -1, but it is declared in 0 .. 5");
}

static void code_element_falls(void **state) {
  elements_refused(*state, 2, 1, 4,
                   "element [1] of 'cu' is 1, less than the one before, but it is declared rising");
}

// cu in 0 .. 0: no element can be.
static void code_element_nowhere(void **state) {
  Fixture *f = *state;
  i32 cu[] = {0, 0, 0};
  Buf *b = &f->k->buf.at[BUF_CU];
  b->least = b->end = x_int(&f->sc, f->k, 0);
  f->tensor[1].data = cu;
  Binding *bound = bind(f);
  assert_non_null(bound);
  assert_false(sc_elements_fit(&f->sc, bound));
  assert_int_equal(f->sc.diags->id, D_T_REQUIRE);
}

static void code_scalar(void **state) {
  Fixture *f = *state;
  f->scalar[0] = (schedc_scalar){"n", 1.5};
  f->scalars = 1;
  refused(f, D_T_SCALAR, "scalar 'n' is an i32, but 1.5 is given");
}

static void code_scalar_division(void **state) {
  Fixture *f = *state;
  Xid m = x_leaf(&f->sc, f->k, X_DIM, TY_INT, DIM_M);
  f->k->arg.at[1].init =
      x_make(&f->sc, f->k, X_IDIV, m, x_make(&f->sc, f->k, X_SUB, m, x_int(&f->sc, f->k, 4), 0), 0);
  refused(f, D_T_SCALAR, "the default of scalar 'n' has no value here");
}

static void code_shape(void **state) {
  Fixture *f = *state;
  f->tensor[2].shape[0] = 3;
  refused(f, D_T_SHAPE, "tensor 'O' has extent 3 in dimension 0, but B is 2");
  assert_string_equal(f->sc.diags->notes->text, "B = 2 comes from 'Q'");
}

static void code_shape_expression(void **state) {
  Fixture *f = *state;
  f->tensor[1].shape[0] = 2;
  refused(f, D_T_SHAPE, "tensor 'cu' has extent 2 in dimension 0, but B + 1 is 3");
  assert_string_equal(f->sc.diags->help, "B = 2");
}

static void code_shape_constant(void **state) {
  Fixture *f = *state;
  f->tensor[0].shape[2] = 7;
  refused(f, D_T_SHAPE, "tensor 'Q' has extent 7 in dimension 2, where 8 is declared");
  assert_null(f->sc.diags->help);
}

// A param of the problem may be the cause, if its domain has the other value.
static void code_shape_of_param(void **state) {
  Fixture *f = *state;
  Param p = {.name = "D", .value = {VAL_INT, {.i = 8}}, .problem = true};
  PUSH(&f->sc, &p.domain, ((Value){VAL_INT, {.i = 16}}));
  PUSH(&f->sc, &f->k->param, p);
  p.name = "E";
  PUSH(&f->sc, &p.domain, ((Value){VAL_INT, {.i = 7}}));
  PUSH(&f->sc, &f->k->param, p);
  f->tensor[0].shape[2] = 7;
  refused(f, D_T_SHAPE, "tensor 'Q' has extent 7 in dimension 2, where 8 is declared");
  assert_string_equal(f->sc.diags->help, "the param E is 8, too: if it is this extent, let E = 7");
}

static void code_shape_huge(void **state) {
  Fixture *f = *state;
  f->tensor[0].shape[0] = INT64_MAX / 2;
  refused(f, D_T_SHAPE, "tensor 'Q' is larger than the address space");
}

static void code_shape_negative(void **state) {
  Fixture *f = *state;
  f->tensor[0].shape[1] = -1;
  refused(f, D_T_SHAPE, "tensor 'Q' has a negative extent, -1 in dimension 1");
}

static void code_stride(void **state) {
  Fixture *f = *state;
  f->tensor[0].strides[2] = 2;
  refused(f, D_T_STRIDE, "the last dimension of tensor 'Q' is not contiguous: its stride is 2");
}

static void code_stride_negative(void **state) {
  Fixture *f = *state;
  f->tensor[0].strides[0] = -32;
  refused(f, D_T_STRIDE, "tensor 'Q' has a negative stride, -32 in dimension 0");
}

static void code_stride_overlap(void **state) {
  Fixture *f = *state;
  f->tensor[2].strides[0] = 3;
  refused(f, D_T_STRIDE, "elements of output 'O' share memory: its strides overlap");
}

static void code_twice(void **state) {
  Fixture *f = *state;
  f->tensor[3] = f->tensor[0];
  f->tensors = 4;
  refused(f, D_T_TWICE, "tensor 'Q' is given twice");
}

static void code_type(void **state) {
  Fixture *f = *state;
  f->tensor[0].type = SCHEDC_BF16;
  refused(f, D_T_TYPE, "tensor 'Q' is given as bf16, but declared f16");
}

static void code_unknown(void **state) {
  Fixture *f = *state;
  f->tensor[2].name = "P";
  refused(f, D_T_UNKNOWN, "'P' is not a tensor of 'kern'");
  assert_string_equal(f->sc.diags->help, "its tensors are: Q, cu, O");
}

static void code_unknown_scalar(void **state) {
  Fixture *f = *state;
  f->scalar[0] = (schedc_scalar){"x", 1};
  f->scalars = 1;
  refused(f, D_T_UNKNOWN, "'x' is not a scalar of 'kern'");
  assert_string_equal(f->sc.diags->help, "its scalars are: scale, n");
}

static void workspaces_get_rows_of_16_bytes(void **state) {
  Fixture *f = *state;
  Buf w = tensor_buf("w", 0, EL_F32, 0);
  w.workspace = true, w.rank = 2;
  w.dim[0] = x_leaf(&f->sc, f->k, X_DIM, TY_INT, DIM_B), w.dim[1] = x_int(&f->sc, f->k, 5);
  PUSH(&f->sc, &f->k->buf, w);
  Binding *b = bind(f);
  assert_non_null(b);
  assert_int_equal(b->buf[3].shape[0], 2);
  assert_int_equal(b->buf[3].stride[0], 8);
}

// ---- values before a launch, by a kernel of one argument whose default they are

static double default_of(Fixture *f, Xid x) {
  f->k->arg.at[0].init = x;
  Binding *b = bind(f);
  assert_non_null(b);
  return b->arg[0];
}

static void launch_reals(void **state) {
  Fixture *f = *state;
  Sc *sc = &f->sc;
  Kernel *k = f->k;
  Xid m = x_make(sc, k, X_TOREAL, x_leaf(sc, k, X_DIM, TY_INT, DIM_M), 0, 0);  // 4
  Xid three = x_real(sc, k, 3);
  static const struct {
    ExprOp op;
    double want;
  } one[] = {{X_NEG, -4},    {X_EXP, 54.598150033144236},
             {X_EXP2, 16},   {X_LOG, 1.3862943611198906},
             {X_LOG2, 2},    {X_SQRT, 2},
             {X_RSQRT, 0.5}, {X_TANH, 0.999329299739067},
             {X_ABS, 4}},
    two[] = {{X_ADD, 7}, {X_SUB, 1}, {X_MUL, 12}, {X_DIV, 4.0 / 3}, {X_MIN, 3}, {X_MAX, 4}};
  for (size_t i = 0; i < COUNT(one); i++) {
    assert_true(default_of(f, x_make(sc, k, one[i].op, m, 0, 0)) == (double)(float)one[i].want);
  }
  for (size_t i = 0; i < COUNT(two); i++) {
    assert_true(default_of(f, x_make(sc, k, two[i].op, m, three, 0)) == (double)(float)two[i].want);
  }
  Xid less = x_make(sc, k, X_LT, m, three, 0), not_less = x_make(sc, k, X_NOT, less, 0, 0);
  assert_true(default_of(f, x_make(sc, k, X_WHERE, less, m, three)) == 3);
  assert_true(default_of(f, x_make(sc, k, X_WHERE, not_less, m, three)) == 4);
  Xid both = x_make(sc, k, X_AND, not_less, x_make(sc, k, X_LE, three, m, 0), 0);
  Xid any = x_make(sc, k, X_OR, less, x_make(sc, k, X_EQ, m, three, 0), 0);
  assert_true(default_of(f, x_make(sc, k, X_WHERE, both, m, three)) == 4);
  assert_true(default_of(f, x_make(sc, k, X_WHERE, any, m, three)) == 3);
  Xid differ = x_make(sc, k, X_NE, m, three, 0);
  assert_true(default_of(f, x_make(sc, k, X_WHERE, differ, m, three)) == 4);
}

static void launch_overflow(void **state) {
  Fixture *f = *state;
  Xid m = x_leaf(&f->sc, f->k, X_DIM, TY_INT, DIM_M);
  f->k->arg.at[1].init = x_make(&f->sc, f->k, X_MUL, m, x_int(&f->sc, f->k, INT64_MAX / 2), 0);
  refused(f, D_T_SCALAR, "the default of scalar 'n' has no value here");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(accepts),
      TEST(solves_expressions),
      TEST(empty_needs_no_data),
      TEST(broadcast_inputs),
      TEST(code_missing),
      TEST(code_missing_scalar),
      TEST(code_null),
      TEST(code_align),
      TEST(code_rank),
      TEST(code_require),
      TEST(code_require_scalar),
      TEST(elements_in_their_range),
      TEST(code_element_beyond),
      TEST(code_element_below),
      TEST(code_element_falls),
      TEST(code_element_nowhere),
      TEST(code_scalar),
      TEST(code_scalar_division),
      TEST(code_shape),
      TEST(code_shape_expression),
      TEST(code_shape_constant),
      TEST(code_shape_of_param),
      TEST(code_shape_huge),
      TEST(code_shape_negative),
      TEST(code_stride),
      TEST(code_stride_negative),
      TEST(code_stride_overlap),
      TEST(code_twice),
      TEST(code_type),
      TEST(code_unknown),
      TEST(code_unknown_scalar),
      TEST(workspaces_get_rows_of_16_bytes),
      TEST(launch_reals),
      TEST(launch_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
