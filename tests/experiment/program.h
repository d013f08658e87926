// program.h - small pipelined programs of the differential experiment (tests/experiment.md), as the
// experiment itself sees them: no part of the compiler knows this form, and it knows none of
// theirs.
//
// A program is a list of statements for each role. Statements and expressions are owned by an arena
// that lives as long as the program. Expressions are immutable and may be shared; statements are
// not, so that they can be edited in place.
#ifndef EXPERIMENT_PROGRAM_H
#define EXPERIMENT_PROGRAM_H

#include "base/base.h"

enum {
  MAX_ROLES = 4,
  MAX_INSTANCES = 2,
  MAX_RINGS = 4,
  MAX_TURNS = 2,
  MAX_DIMS = 3,
  MAX_ELEMENTS = 2,
  MAX_VARS = 64,
  TABLES = 2,
  TABLE = 30,
  SIDE = 8,  // of the list `M` of two dimensions
  MAX_AXES = 3,
  MOST_TILES = 8,  // with those that fill up clusters
  MAX_TENSORS = 2,
  MOST_KEYS = 256,  // of a turn over CTAs
  ROWS = 64,        // of a tensor that roles write; if it is SQUARE, they are PLACES by PLACES
  PLACES = 8,
  CROSS = 16,  // rows and columns of a CROSSED tensor
  CELLS = 2,   // of a stage, at most
};

typedef enum XKind {
  E_INT,
  E_DIM,
  E_TILE,      // its index along an axis
  E_INSTANCE,  // of a role: in positions only
  E_LOOP,
  E_ELEMENT,  // of the tensor `A`
  E_TABLE,    // element a of the tensor `B` or `C`; with b: of row a and column b of `M`
  E_ADD,
  E_SUB,
  E_MUL,  // by a constant
  E_DIV,
  E_MOD,
  E_MIN,
  E_MAX,
  E_LT,  // from here on: truths
  E_LE,
  E_EQ,
  E_NE,
  E_AND,
  E_OR,
  E_NOT
} XKind;

typedef struct Ex {
  XKind kind;
  int n;  // the integer, or which
  const struct Ex *a, *b;
} Ex;

typedef enum SKind {
  S_FILL,   // acquire, body, commit
  S_DRAIN,  // wait, body, release
  S_TURN,   // take, body, pass
  S_ORDER,  // the same of a turn over CTAs
  S_ACQUIRE,
  S_COMMIT,
  S_WAIT,
  S_RELEASE,
  S_TAKE_KEY,  // of a turn over CTAs, alone
  S_PASS_KEY,
  S_FOR,
  S_IF,
  S_TOUCH,   // an access of a tensor
  S_SETTLE,  // a wait for the copies out to a tensor; reversed: until they have read their stages
  S_CELL,    // an access of a stage by threads: cell x, or all; of a stage that is filled or held
  S_MOVE,  // in the common plan of all roles: a fill by those who fill, a drain by those who drain,
           // with what each does in its bracket: `body` and `other`
  S_OPEN,  // … with the fill around the body
  S_HOLD   // … with the drain around it
} SKind;

typedef enum Touch {
  TOUCH_LOAD,
  TOUCH_STORE,
  TOUCH_ADD,
  TOUCH_GET,  // from here on by copies: into a stage
  TOUCH_PUT,  // … out of one
  TOUCH_PUT_ADD,
  TOUCHES
} Touch;

typedef struct St {
  SKind kind;
  int ref;  // ring, turn, loop variable, tensor
  bool reversed;
  Touch touch;
  int with;         // PUT: the ring; FILL with a position x: the tensor; SETTLE: keep so many
  u32 who;          // TOUCH, ORDER, in the plan: a bit for each role that does it
  const Ex *x, *y;  // condition; bounds; positions; keys with which a turn is taken and passed on
  struct St *body, *other, *next;
} St;

typedef struct Pipe {
  int stages;
  int owner;    // a role: private to its instances; -1
  bool copied;  // fills are copies of `X`
  bool shared;  // … that each CTA of a cluster makes a share of, for all
  bool cells;   // threads read and write its stages
  bool narrow;  // which are as large as those that are copied
} Pipe;

typedef struct Actor {
  int instances;
  bool dealt;  // each tile is one instance's
  St *body;
} Actor;

typedef struct Baton {  // a turn
  int members;
  int member[MAX_ROLES];
} Baton;

typedef enum Shape {
  SHAPE_ROWS,
  SHAPE_FLAT,    // its rows lie in one dimension, and an access touches two of them
  SHAPE_SQUARE,  // they have positions x and y
  SHAPE_CROSSED  // an access touches row x, or (reversed) column x
} Shape;

typedef struct Line {  // an axis of the grid
  int extent;
  bool reversed;
  int by;  // sections; 0: none
} Line;

typedef struct Program {
  Sc *sc;
  u64 seed;  // of all further draws
  int roles, rings, turns, dims, elements, vars;
  int tensors;   // that roles write
  bool cells;    // there are stages that threads read and write
  bool tiles;    // there is a grid
  int axes;      // … with so many
  bool cluster;  // two tiles are a cluster, …
  int cluster_axis;
  bool ctas;     // each tile is a CTA of its own
  bool dynamic;  // … or they are drawn
  bool order;    // there is a turn over CTAs, …
  int order_axis;
  const Ex *keys;  // with so many tokens; NULL: with one
  bool scalars;    // elements are scalar arguments
  bool square;     // there is the list `M`
  bool table;      // there are tensors that are read at places which loops tell
  Actor role[MAX_ROLES];
  Pipe ring[MAX_RINGS];
  Baton turn[MAX_TURNS];
  Line axis[MAX_AXES];
  Shape tensor[MAX_TENSORS];
  int least[MAX_DIMS];  // what is required of each dimension
  bool ordered;         // dimension 0 <= dimension 1 is required
} Program;

// ---- random numbers
u32 draw(Program *p, u32 below);
static inline bool chance(Program *p, u32 percent) { return draw(p, 100) < percent; }

// ---- expressions
const Ex *ex(Program *p, XKind kind, int n, const Ex *a, const Ex *b);
const Ex *number(Program *p, int n);
const Ex *with_loop(Program *p, const Ex *x, int var, const Ex *by);  // substituted
bool reads_loop(const Ex *x, int var);

// ---- statements
St *st(Program *p, SKind kind, int ref, St *body);
St *copy_list(Program *p, const St *s);
St *copy_one(Program *p, const St *s);
void substitute(Program *p, St *s, int var, const Ex *by);
bool list_reads_loop(const St *s, int var);
int size(const St *s);  // statements, with those below
void append(St **list, St *s);
int cells_in(const Program *p, int ring);  // one, where a copy fills the stage

// ---- draw.c
Program *sc_draw(Sc *sc, u64 seed);
const Ex *draw_condition(Program *p, const int *loop, int loops);
const Ex *draw_bound(Program *p, const int *loop, int loops);

// ---- cells.c
const Ex *draw_cell(Program *p, const int *loop, int loops);

// ---- rewrite.c
// The same sequence of operations, said otherwise.
void rewrite(Program *p, int role);
// One small change, which need not be right.
void mutate(Program *p);

// ---- write.c
void write_program(const Program *p, Str *out, const char *name);

// ---- truth.c
typedef struct Setting {
  int dim[MAX_DIMS];
  int element[MAX_ELEMENTS];
  u32 table;  // a rule for the elements of tables
  bool listed;
  int list[TABLES][TABLE];  // … or, if listed, these
  int square[SIDE * SIDE];
} Setting;
typedef enum Fate { FATE_FINE, FATE_STUCK, FATE_UNEVEN, FATE_EXCLUDED, FATE_LONG } Fate;
typedef struct Outcome {
  Fate fate;
  bool races;  // two accesses of one element have no order (if the fate is FINE)
} Outcome;
typedef struct Truth Truth;
Truth *truth_open(Sc *sc);
// One run of all tiles, from empty rings, with these values.
Outcome truth_run(Truth *t, const Program *p, const Setting *s);
// The same without races, so that it may be longer.
Fate truth_fate(Truth *t, const Program *p, const Setting *s);
// The same as truth_run with the instances in the opposite order.
Outcome truth_run_back(Truth *t, const Program *p, const Setting *s);
// The same as truth_fate by a search of all interleavings; FATE_LONG: there are too many.
Fate truth_all_orders(Truth *t, const Program *p, const Setting *s);
// All values up to `most`. Out: the first that fails, or else the first with a race.
Outcome truth_search(Truth *t, const Program *p, int most, Setting *failing);

// ---- reduce.c
// The program made smaller, in place, as long as the test holds.
void reduce(Program *p, bool (*test)(void *, const Program *), void *user);

#endif
