// lower.h - what the files of `lower` share: names in scope, the element-wise statement at hand,
// and the state of one kernel's lowering. Functions here begin with `low_`; a result of 0
// (expressions) or SC_NONE (the rest) means that the error has been reported.
#ifndef SC_LOWER_H
#define SC_LOWER_H

#include "compiler/facts/facts.h"
#include "compiler/passes.h"

enum {
  LOW_MAX_STMTS = 100000,   // statements after expansion
  LOW_MAX_EXPRS = 1000000,  // expressions after expansion
  LOW_MAX_NEST = 256,       // of expansions, blocks and expressions together
  LOW_MAX_DEPTH = 1000,     // of an expression's graph, so that passes may recurse over it
  LOW_MAX_NAMES = 4096,     // in one scope
  LOW_MAX_PLACES = 4096,    // in one statement
  LOW_MAX_DOMAIN = 4096,    // values of a param
  LOW_MAX_RINGS = 64
};

typedef enum NameKind {
  NM_BAD,     // its declaration was wrong: uses are quiet
  NM_ABSENT,  // its guard is false: uses are reported
  NM_VALUE,   // params, dimensions, scalars, lets, grid indices, loop variables, instance
  NM_ELEM,    // a param that is an element type
  NM_BUF,     // tensor, register tile, intermediate of the specification, part of a ring
  NM_RING,
  NM_TURN,
  NM_ROLE,
  NM_DEF,
  NM_INDEX,     // argument of a def: a variable of the statement at hand
  NM_INDEXNAME  // argument of a def: a name that is free where the def is used
} NameKind;

// A ring as declared. It enters the kernel's tables when it is first used, so that a ring that the
// chosen parameters make unnecessary takes no memory.
typedef struct RingDecl {
  Ring ring;
  Buf *part;   // ring.parts of them
  u32 number;  // bit in Low.filling
  u32 id;      // in Kernel.ring; SC_NONE until used
} RingDecl;

typedef struct Scope Scope;

typedef struct Name {
  Sym name;
  Span span;         // of the declaration
  u8 kind;           // NameKind
  u8 elem;           // NM_ELEM
  bool open;         // NM_DEF: being expanded
  bool told;         // NM_ABSENT, or one that hides a value: a use was reported
  bool made;         // NM_ABSENT: an output or workspace: its equation is passed by
  Span guard;        // NM_ABSENT: the guard that is false
  const char *what;  // NM_ABSENT: "ring", "workspace", "tensor", "scalar" or "dimension"
  Xid x;             // NM_VALUE
  u32 ref;           // buf, turn, role (SC_NONE: its guard is false), variable
  RingDecl *ring;    // NM_RING
  const Node *node;  // NM_DEF
  Scope *home;       // NM_DEF: where its free names are looked up
  Sym index;         // NM_INDEXNAME
  struct Name *next;
} Name;

struct Scope {
  Scope *up;
  Name *first;
  u32 names;
  Name **found;  // by hash, once there are many: the latest of each name
  u32 room;      // of `found`, a power of two
};

// The element-wise statement, product or vote at hand: its index variables. Those that the left
// side brings come first; a reduction's is live inside it only.
typedef struct Stmt {
  Span span;
  bool make;    // a free name in a position becomes a variable
  u8 pos;       // positions around the expression at hand
  u32 args;     // functions around it, within the innermost of them
  bool output;  // specifications: the first view is an output, which knows its extents best
  u8 later;     // specifications: so many variables may get their extent from a later equation
  u8 n;
  u32 view0;  // views from here on are this statement's
  // of each of them, the positions in which no index stands alone, though the rest may be 0; by
  // bits
  VEC(u8) moved;
  struct {
    Sym name;
    Span span;  // first use
    bool live;
    u32 calls;   // expansions around its first use
    Xid extent;  // 0 until known
    u32 from;    // the view that gave the extent
  } var[SC_MAX_VARS];
} Stmt;

// A declaration of tensors that a false guard leaves out: its own, or that of a sequence's step.
typedef struct LeftOut {
  const Node *item, *step;
} LeftOut;

typedef struct Low {
  Sc *sc;
  const Ast *ast;
  const Node *unit;
  Kernel *k;
  Scope *base;   // what the specification sees: params, dimensions, scalars, tensors
  Scope *top;    // the kernel's own names, inside base
  Scope *scope;  // innermost
  Stmt *stmt;    // NULL outside of one
  bool dims;     // a free name is a new launch dimension
  bool spec;
  bool guard;  // whether something is there is looked at: nobody knows a launch yet
  // the role at hand
  u32 role;  // SC_NONE outside of roles
  Code *code;
  Facts *facts;    // where its code ends so far
  VEC(u32) open;   // operations that opened the blocks around
  u64 filling;     // rings between acquire and commit
  Span undecided;  // the innermost condition or bound that the roles cannot agree on; hi 0: none
  u32 vote;        // rows of the vote around; 0: none
  bool apart;      // one that each warp takes by itself is around
  bool told;       // a report about the condition or vote around was made
  u32 unroll;      // loop that must be unrolled: everything returns to it; SC_NONE: none
  VEC(const Node *) unrolled;  // loops that had to be, which need not be tried again
  // expansion
  Span call[LOW_MAX_NEST];  // the defs being expanded
  u32 calls;
  u32 nest, stmts, exprs;
  bool dead;              // a limit was passed: nothing more is reported
  VEC(u16) depth;         // of each expression's graph
  Below below, integers;  // two walks, the second for requirements
  Elem narrow;            // the kernel's narrow type, while its specification is read
  VEC(u32) stated;        // intermediates of the specification whose equation says their type
  VEC(u32) done;          // tensors that the specification has given a value so far
  VEC(RingDecl *) ring;
  VEC(LeftOut) left_out;
  Keys cases;          // by name: the case's number, + 1
  VEC(Name *) absent;  // tensors and scalars, and the dimensions that only they have
} Low;

static inline const Expr *low_at(const Low *l, Xid x) { return &l->k->expr.at[x]; }
static inline Span span_to(Span a, Span b) { return (Span){a.lo, b.hi}; }

// ---- scope.c

// Reports; the same place and code once only, with the def that is being expanded as a note.
Diag *low_error(Low *l, DiagId id, Span at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
// Counts one more of `what`; false: the limit is passed, and everything comes to an end.
bool low_spend(Low *l, u32 *count, u32 limit, const char *what, Span at);
bool low_enter(Low *l, Span at);  // one level of nesting deeper, or false
void low_leave(Low *l);
void low_push(Low *l);  // a scope inside the present one
void low_pop(Low *l);
Name *low_declare(Low *l, Sym name, Span at, NameKind kind);  // in l->scope; reports a second one
Name *low_find(Low *l, Sym name);                             // NULL: free
Name *low_hidden(Low *l, const Name *by);  // the one that would be found without it
// Declares what is not there, as its guard is false.
Name *low_declare_absent(Low *l, Sym name, Span at, const char *what, Span guard);
const char *low_why_absent(Low *l, const Name *n);
// Is it there? If not, because its guard is false, reports that, once for each name.
bool low_is_there(Low *l, Name *n, Span at);
void low_unbound(Low *l, Sym name, Span at);             // reports, with what may be meant
void low_unbound_call(Low *l, Sym name, Span at);        // the same of a def or function
void low_unbound_type(Low *l, Sym name, Span at);        // … by the name of an element type
const char *low_kind_text(const Low *l, const Name *n);  // "a ring"
bool low_elem_named(const char *name, Elem *out);
bool low_constant_named(const char *name, double *out);  // inf, log2e, …
ExprOp low_function(const char *name);                   // the function of that name; X_COUNT: none
void low_use_ring(Low *l, RingDecl *d);                  // enters it into the kernel's tables

// ---- absent.c

// The guard `if e` of a tensor, ring, turn, role or launch. False: a report was made.
bool low_guard(Low *l, const Node *n, const char *what, bool *holds);
// Tensors and scalars, or workspaces: as their own guard is false, or that of a step (NULL: none).
void low_leave_out(Low *l, const Node *item, const Node *step);
// Once all that is there is declared: the rest of the names, and dimensions that nothing else has.
void low_absent_tensors(Low *l);
void low_list_absent(Low *l);  // in the kernel, for who calls it

// ---- code.c

void low_emit(Low *l, Op op, u8 flags, u32 a, u32 b, u32 c, Span at);
bool low_ordered(Low *l, Span at, const char *what);  // may a ring, turn or product be used here?
bool low_decidable(const Low *l, Xid x);
bool low_is_filling(const Low *l, u32 buf);  // a part of a stage between acquire and commit

// ---- expr.c

Xid low_expr(Low *l, const Node *n);
Xid low_int(Low *l, const Node *n);
Xid low_bool(Low *l, const Node *n);
Xid low_uniform(Low *l, const Node *n);             // no index, register or stage in it
Xid low_real(Low *l, const Node *n, Xid x);         // x, which n says, as a real
bool low_elem(Low *l, const Node *n, Elem *out);    // does n say an element type?
bool low_value(Low *l, const Node *n, Value *out);  // a compile-time value
bool low_const(Low *l, const Node *n, const char *what, i64 lo, i64 hi, i64 *out);
Xid low_make(Low *l, Span at, ExprOp op, Xid a, Xid b, Xid c);  // x_make, with reports

// ---- def.c

Xid low_apply(Low *l, const Node *n);  // functions and defs that are values
// The expansion of a def: its scope is the innermost in between. False: a report was made.
typedef struct Use {
  Name *def;
  Scope *caller;
} Use;
bool low_enter_def(Low *l, const Node *n, Use *u);
void low_leave_def(Low *l, const Use *u);
void low_def(Low *l, const Node *n, Scope *where, Scope *home);

// ---- view.c

// what an INDEX's base, or a bare name, stands for
bool low_buf(Low *l, const Node *base, u32 *buf);
u32 low_view(Low *l, const Node *index, u32 buf, bool fill);
Xid low_load(Low *l, const Node *index);
void low_begin(Low *l, Stmt *s, Span at);
bool low_end(Low *l, Stmt *s, bool ok);  // if ok, finds the extents; back to no statement
int low_var(Low *l, Sym name);           // the live variable of that name, or -1
int low_new_var(Low *l, Sym name, Span at);
Xid low_index(Low *l, Sym name, Span at);    // a free name as an index
const char *low_dims_text(Low *l, u32 buf);  // "[64, 128]"
// a part of a ring's stages as a schedule names it: "k", "r.a"
const char *low_part_name(Low *l, const Buf *part);

// ---- map.c

void low_assign(Low *l, const Node *n);
u32 low_condition(Low *l, const Node *n, bool together);     // of a vote
void low_init(Low *l, u32 buf, const Node *value, Span at);  // reg x = e
void low_vector(Low *l, const Node *bind);                   // let v[i] = e
void low_spec(Low *l, const Node *spec);

// ---- round.c

Elem low_narrow_type(const Kernel *k);  // that of the first narrow input
// The type that an intermediate is rounded to: `type`, if its equation states one (NULL: it does
// not).
bool low_value_type(Low *l, const Node *type, Xid root, u8 *elem);
void low_warn_exponents(Low *l);

// ---- product.c, copy.c, stmt.c

void low_product(Low *l, const Node *n);
void low_copy(Low *l, const Node *n);
void low_copy_add(Low *l, const Node *n);
void low_let(Low *l, const Node *n);
void low_role(Low *l, const Node *n, u32 role);

// ---- declare.c

bool low_element_type(Low *l, const Node *type, Elem *out);  // reports what is none
// Tensors and scalars, or workspaces, whose guard is not false.
void low_tensors(Low *l, const Node *item, bool workspace);
void low_rings(Low *l, const Node *item, u32 owner);
bool low_regs(Low *l, const Node *group, u32 *first, u32 *count);
void low_grid(Low *l, const Node *item);
// What a launch works out, and the kernel as well, is made of integers: the launch has reals of
// more digits, so that a comparison of them may have another answer. Are they all that l->below
// walks over? False: a report was made.
bool low_integers_below(Low *l, const Node *n);
void low_turn(Low *l, const Node *item);
void low_declare_role(Low *l, const Node *item);

// ---- participants.c

void low_participants(Low *l);  // who fills and drains each ring, once all roles are lowered
void low_outputs(Low *l);       // what they do to outputs

// ---- params.c, bind.c, seq.c, unit.c

// Where parameters come from: over defaults, the sequence; over that, the case; over that, the
// caller.
typedef struct Given {
  const Choice *choice;
  const Node *kase;
  Kernel *seq;          // the sequence around: its params so far
  VEC(Value) standard;  // defaults of seq's params, by number
  VEC(Name *) absent;   // what seq's kernels lack, as guards are false
} Given;
// The unit that is chosen, and its case, if one is. NULL: a report was made.
const Node *low_unit(Sc *sc, const Ast *ast, Given *g);
const Node *low_kernel_named(Low *l, const Node *launch);  // of a sequence; NULL: a report was made
const char *low_caller_text(const Choice *c, const char *name);  // the value given; NULL: none is
const char *low_kind_of(u8 kind);                                // "an integer"
bool low_fits(Value *v, u8 kind);               // v as a value of the kind; false: it is none
void low_bind_param(Low *l, Name *n, Value v);  // gives a declared param its value
// The values of a param's domain, which are of its kind. False: a report was made.
bool low_domain(Low *l, const Node *def, u8 kind, Values *out);
// The value if the caller, the case or the sequence says one; `v` comes in as the default.
bool low_chosen(Low *l, const Given *g, const Node *def, Value *v);
void low_param(Low *l, const Node *def, Given *g);
void low_open(Low *l, Sc *sc, const Ast *ast, const Node *unit);
void low_known_params(Low *l, const Choice *choice);
void low_require(Low *l, const Node *item);
void low_work(Low *l, const Node *item);
void low_case(Low *l, const Node *item);
// A kernel as far as its params and defs; then the rest of it.
Low *low_kernel_params(Sc *sc, const Ast *ast, const Node *unit, Given *g);
Kernel *low_kernel(Low *l, Given *g);
Kernel *low_sequence(Sc *sc, const Ast *ast, const Node *unit, Given *g);

#endif
