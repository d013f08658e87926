// linear.h - shared by the files of facts/: linear forms, and the state that proofs look at.
#ifndef SC_LINEAR_H
#define SC_LINEAR_H

#include "compiler/facts/facts.h"

// ---- linear.c
// c + by * (product of atoms) + …: a polynomial in canonical form. Terms are in falling order of
// their atoms, each of which is in falling order, 0 behind; no `by` is 0. Equal forms have equal
// fields.
enum { LIN_TERMS = 12, LIN_DEGREE = 3 };
typedef struct Term {
  i64 by;
  u32 atom[LIN_DEGREE];
} Term;
typedef struct Lin {
  i64 c;
  u32 n;
  Term at[LIN_TERMS];  // only n of them are kept where a form is stored
} Lin;
// False: it has too many terms, factors or digits; then what is written to is of no use.
bool sc_lin_add(Lin *to, const Lin *x, i64 by);         // to += by * x
bool sc_lin_mul(Lin *out, const Lin *a, const Lin *b);  // out is neither
// Is one of the atoms so? NULL, which is no form, has none.
typedef bool LinIs(const void *user, u32 atom);
bool sc_lin_any(const Lin *x, LinIs *is, const void *user);
bool sc_lin_mentions(const Lin *x, u32 atom);  // is it one of them?
// x with what `of` says in the place of each atom. False: that fails, or a number is too large.
typedef bool LinOf(void *user, u32 atom, Lin *out);
bool sc_lin_map(const Lin *x, LinOf *of, void *user, Lin *out);
bool sc_lin_replace(Lin *p, u32 atom, const Lin *by);
void sc_lin_copy(Lin *to, const Lin *from);
bool sc_lin_same(const Lin *a, const Lin *b);
i64 sc_lin_step(const Lin *x);  // what divides all of its terms
static inline Lin sc_lin_int(i64 c) { return (Lin){.c = c}; }
static inline Lin sc_lin_atom(u32 a) { return (Lin){.n = 1, .at = {{1, {a}}}}; }
i64 sc_gcd(i64 a, i64 b);

// ---- facts.c
// What a form is made of: a leaf, a quotient (rounded down), a minimum, a maximum, a choice, or
// what is not looked into (LOAD: expression `ref`; if it is an element of a declared range, from
// `a` to `b`). SUM: atom `ref` in another round of the loops.
typedef struct Atom {
  u8 op;             // ExprOp
  bool varies;       // from one round of a loop to the next
  u8 deps;           // of DEP_AXIS, DEP_LOOP and DEP_IDX: what it, or what it is made of, names
  u32 ref;           // leaf: what it names; WHERE: the condition
  const Lin *a, *b;  // forms of the operands, or NULL
  Interval told;     // by the facts
  Interval now;      // … and by those of the operands, when `epoch` was that of Facts
  u32 epoch;
} Atom;

typedef enum FactKind {
  FACT_LOOP,     // what a loop says of its variable
  FACT_SAID,     // by a condition
  FACT_FOLLOWS,  // from what an atom is
  FACT_VAGUE     // a condition that is no inequality: it says nothing here, but it says something
} FactKind;
typedef struct Fact {
  u8 kind;     // FactKind
  u8 deps;     // VAGUE: DEP_* of the condition
  bool never;  // VAGUE: it contradicts the facts before it
  Lin least0;
} Fact;

// An atom that equals a form, from fact number `facts` on.
typedef struct Solved {
  u32 facts, atom;
  Lin is;
} Solved;

typedef struct Narrowed {
  u32 facts, atom;
  Interval was;
} Narrowed;

typedef struct Block {
  u32 mark;
  Xid cond;        // of an `if`, else 0
  bool otherwise;  // behind its `else`: the condition does not hold
} Block;

struct Facts {
  Sc *sc;
  const Kernel *k;
  bool thorough;          // questions are few, and worth more effort
  bool elements;          // what is said of the elements of inputs is believed
  VEC(const Lin *) form;  // by expression, NULL: not made yet
  VEC(Atom) atom;         // [0] is none
  u32 *slot, slots;       // finds equal atoms
  VEC(Fact) fact;         // a stack
  VEC(Solved) solved;
  VEC(Narrowed) narrowed;
  u32 epoch;         // counts changes of the stack
  u32 always;        // so many facts are of the kernel
  u32 nevers;        // so many contradict others: no run comes here, and anything is true
  const Code *code;  // the place: before operation `pc`
  u32 pc;
  VEC(Block) open;  // the blocks around it
};

const Lin *sc_form(Facts *f, Xid x);
const Lin *sc_form_keep(Facts *f, const Lin *x);  // stored, so that it stays where it is
u32 sc_form_atom(Facts *f, Atom a);               // the one that is equal
Interval sc_form_interval(Facts *f, const Lin *x);
Interval sc_atom_interval(Facts *f, u32 atom);
// Is what divides a constant other than 0, or known to be positive? That the kernel divides by it
// does not say so: a GPU divides by 0, and goes on.
bool sc_form_divides(Facts *f, const Lin *x);
bool sc_know(Facts *f, Lin *x);  // writes what is solved by what it is
bool sc_form_divide(Facts *f, const Lin *x, i64 n, Lin *out);          // x / n rounded down, n > 0
Lin sc_form_extreme(Facts *f, ExprOp op, const Lin *a, const Lin *b);  // of MIN and MAX
bool sc_form_nonneg(Facts *f, const Lin *x);  // prove.c: is x never negative?
// The stack: a form that is not negative; one that is 0; a condition that says nothing here, though
// it says something; and all of these taken back that came since a mark.
u32 sc_facts_mark(const Facts *f);
void sc_facts_drop(Facts *f, u32 mark);
void sc_fact_push(Facts *f, FactKind kind, const Lin *least0);
void sc_fact_zero(Facts *f, const Lin *zero);
void sc_fact_vague(Facts *f, u8 deps);
void sc_atoms_begin(Facts *f);
void sc_atoms_forget(Facts *f, u32 exprs);  // those of expressions from this one on
enum { ATOM_FACTS = 3 };
u32 sc_atom_facts(Facts *f, u32 atom, Lin out[ATOM_FACTS]);  // forms that are not negative

// ---- said.c
void sc_said_loop(Facts *f, const Ins *loop);  // what its range says of its variable
void sc_said_axis(Facts *f, u32 axis);
void sc_facts_assume(Facts *f, Xid cond, bool truth);  // a condition that holds, or does not
bool sc_facts_decided(const Facts *f, Xid cond, bool *truth);  // by an `if` around, which asks it

#endif
