// async.c - asynchronous work of the interpreter, seen from inside: from its issue until it lands
// its destination is poison, so that whoever reads it in between shows, even where nothing else
// would tell. A machine is stepped by hand, under the policy that lands nothing by itself.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "machinekit.h"
#include "runtime/cpu/machine.h"

typedef struct Steps {
  Kit t;
  Program *p;
  Slot *slot;
} Steps;

static void open_steps(Steps *s, const char *source, const i64 *dims) {
  open_kit(&s->t);
  load(&s->t, source);
  bind(&s->t, dims);
  s->t.opt.policy = SCHEDC_LATE;
  s->p = sc_program(&s->t.sc, s->t.k, &s->t.b, &s->t.opt);
  Machine *m = sc_machine(&s->t.sc, s->p);
  s->slot = &m->slot[0];
  sc_slot_start(m, s->slot, s->p->jobs - 1);  // the first CTA: under this policy it comes last
}

static Inst *inst(Steps *s, u32 role) { return &s->slot->inst[s->p->inst0[role]]; }

// Lets a role run up to its next such operation.
static void run_to(Steps *s, u32 role, Op op) {
  Inst *in = inst(s, role);
  while (in->of->code.at[in->pc].op != op) assert_int_equal(sc_role_run(in, 1), 1);
}

// … and that one operation.
static void run_one(Steps *s, u32 role) {
  assert_int_equal(sc_role_run(inst(s, role), 1), 1);
  assert_false(inst(s, role)->m->fault.set);
}

static u64 nans(const float *at, u64 n) {
  u64 count = 0;
  for (u64 i = 0; i < n; i++) count += at[i] != at[i];
  return count;
}

static Part *first_part(Steps *s) { return &s->slot->cta[0].pool[0][0].part[0]; }

static void test_copy(void **state) {
  (void)state;
  static Steps s;
  open_steps(&s, product, product_dims);
  Part *a = first_part(&s);
  run_to(&s, 0, OP_COPYIN);
  for (u64 i = 0; i < a->elems; i++) a->at[i] = 1;  // as threads might have left it
  a->clean = false;
  run_one(&s, 0);
  assert_int_equal(nans(a->at, a->elems), a->elems);
  sc_fire_all(s.slot);
  assert_int_equal(nans(a->at, a->elems), 0);
  assert_float_equal(a->at[5], at2(&s.t, "A", 0, 5), 0);
  close_kit(&s.t);
}

static void test_product(void **state) {
  (void)state;
  static Steps s;
  open_steps(&s, product, product_dims);
  u32 buf = buf_of(&s.t, "s");
  u64 n = s.p->elems[buf];
  sc_role_run(inst(&s, 0), 100);
  sc_fire_all(s.slot);
  run_to(&s, 1, OP_MMA);
  Reg *r = &inst(&s, 1)->reg[buf];
  assert_int_equal(nans(r->at, n), 0);
  run_one(&s, 1);
  assert_int_equal(nans(r->at, n), n);
  sc_fire_all(s.slot);
  assert_int_equal(nans(r->at, n), 0);
  close_kit(&s.t);
}

static void test_copy_out(void **state) {
  (void)state;
  static Steps s;
  open_steps(&s, copies, (i64[]){16});
  const float *x = s.t.data[buf_of(&s.t, "X")], *y = s.t.data[buf_of(&s.t, "Y")];
  sc_role_run(inst(&s, 0), 100);
  sc_fire_all(s.slot);
  run_to(&s, 1, OP_COPYOUT);
  u64 before = nans(y, 16 * 32);
  run_one(&s, 1);
  assert_int_equal(before, 0);
  assert_int_equal(nans(y, 16 * 32), 8 * 32);  // its own rows
  sc_fire_all(s.slot);
  assert_int_equal(nans(y, 16 * 32), 0);
  for (u32 i = 0; i < 8 * 32; i++) assert_float_equal(x[i], y[i], 0);
  close_kit(&s.t);
}

int main(void) {
  if (setjmp(unwound)) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_copy),
      cmocka_unit_test(test_product),
      cmocka_unit_test(test_copy_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
