// races.h - shared by the proofs SHARED and GLOBAL: accesses, and pairs of them of which two
// executions must not meet in an element unless one comes before the other.
#ifndef SC_RACES_H
#define SC_RACES_H

#include "compiler/verify/verify.h"

typedef enum AccessKind {
  ACCESS_READ,    // by threads
  ACCESS_STORE,   // by threads
  ACCESS_ADD,     // by threads, atomic among its kind
  ACCESS_LOAD,    // by an engine: a copy in reads a tensor, a copy out or a product a stage
  ACCESS_PUT,     // by the copy engine: of a tensor by copies out, of a stage by copies in
  ACCESS_PUT_ADD  // by the copy engine, atomic among its kind
} AccessKind;
enum { ACCESS_KINDS = ACCESS_PUT_ADD + 1 };

typedef struct Access {
  u32 role, pc, view;
  u8 kind;  // AccessKind
} Access;

typedef struct Accesses {
  Access *at;
  u32 n, cap;
} Accesses;

// Odd ones are in the second's tile: itself, and roles that hand on; the others in the first's.
enum {
  FIRST_SIDE,
  SECOND_SIDE,
  LINK_SIDE,
  MOST_LINKS = 2,
  PAIR_SIDES = LINK_SIDE + 2 * MOST_LINKS
};

// By expression what it is in an execution, where `when` is the present epoch.
typedef struct Restated {
  Xid *is;
  u32 *when, room;
} Restated;

// A proof under way. Pairs are written down in a copy of the kernel, which grows.
typedef struct Races {
  Sc *sc;
  Kernel *k;
  Facts *facts;  // of the copy
  Verify *proof;
  ProofId id;
  u32 cases, searches;  // that are left, so that the effort is bounded
  // By buf: by all roles, in the order of their programs. [0]: of a tensor, or of a stage that is
  // held; [1]: of a stage that is being filled.
  Accesses (*access)[2];
  // what the pairs use one after the other
  Restated restated[PAIR_SIDES];
  u32 epoch;  // counts pairs, and changes of relations in them
  Below below, inner;
} Races;

// ---- touches.c
Races sc_races(Verify *v, ProofId id);
bool sc_access_writes(const Access *a);
bool sc_access_by_threads(const Access *a);
// Is one a write, and are they not sums of one kind? (AccessKind)
bool sc_kinds_conflict(u32 a, u32 b);
// A variable of the operation, and its values [0, n).
i64 sc_access_extent(const Kernel *k, const Access *a, u32 var);
// A copy's slice along dimension d: its elements; 1 if it is none.
i64 sc_slice_extent(const Kernel *k, const Access *a, u32 d);
Xid sc_access_cond(const Kernel *k,
                   const Access *a);  // under which an element is touched; 0: always
// What the program of the access's instance does to be sure that the access is over: nothing, for
// one by threads; else it waits. Does it, on its way to the next `op` of `ref`?
bool sc_over_before(const Kernel *k, const Access *a, Op op, u32 ref);
// Have the threads that make the access met, or does each of their warps arrive, when the next `op`
// of `ref` arrives?
bool sc_met_before(const Kernel *k, const Access *a, Op op, u32 ref);
// Have they met since thread 0 waited for an empty stage of the ring?
bool sc_met_after(const Kernel *k, const Access *a, u32 ring);
// Two accesses of a tensor by one instance, the first one earlier: may that be under way when the
// second begins, for all that THREADS says?
bool sc_access_lingers(const Access *first, const Access *second);

// ---- count.c
// How often has a role done `op` of `ref` in this tile when it comes to operation pc? 0: unknown.
// unasked: a sum of those parts of it that the role may not have evaluated; 0: there are none.
Xid sc_count_before(Races *v, const Code *code, u32 pc, Op op, u32 ref, Xid *unasked);

// Two executions that differ in tile, instance or role, the first of access `a`, the second of `b`;
// and those of other roles that hand on from the one to the other.
enum { PAIR_VARS = 16, PAIR_OFFSETS = 16 };
typedef enum Relation { REL_ANY, REL_EQUAL, REL_LESS, REL_MORE } Relation;
typedef struct PairVar {
  Xid first, second;  // its value in either execution
  u8 relation;        // of the first's to the second's
  u8 op;              // ExprOp: AXIS, INST, LOOP
  u32 ref;            // … of the second
} PairVar;
typedef struct Pair {
  Races *v;
  const Access *a, *b;
  bool stage;  // of one fill or one hold of a stage
  // Look at all that may help: what rings and turns order, what is equal for one stage, that what
  // is touched lies inside, remainders; and that offsets rise.
  bool thorough;
  bool supposes;  // that lists rise that are not declared so; the last of them:
  const Buf *supposed;
  u32 steps;  // that are left
  u32 links;  // … for chains
  u32 vars, axes;
  PairVar var[PAIR_VARS];
  Xid a_at[SC_MAX_RANK], b_at[SC_MAX_RANK];  // elements
  Xid offset[PAIR_OFFSETS];  // elements of lists, and quotients of them, in either execution
  u32 offsets;
} Pair;

// An operation in an execution: *_SIDE.
typedef struct Place {
  u32 role, pc, side;
} Place;

// ---- restate.c
Xid sc_restate(Pair *p, u32 side, Xid x);        // 0: it has no form
Xid sc_pair_fresh(Pair *p, ExprOp op, u32 ref);  // a variable of the second execution
Xid sc_pair_slice(Pair *p, u32 side, u32 d);     // … of an element of a slice
Xid sc_pair_make(Pair *p, ExprOp op, Xid a, Xid b);
Xid sc_pair_int(Pair *p, i64 n);
void sc_pair_say(Pair *p, ExprOp op, Xid a, Xid b);  // it holds, until the facts are dropped
void sc_pair_say_range(Pair *p, Xid x, Xid from, Xid end);
void sc_pair_say_place(Pair *p, Place at, bool writes);
// Is it known that the expression has a value, even where nobody asks for it? Then no quotient in
// it is by 0, and no element in it is of a range without numbers.
bool sc_pair_defined(Pair *p, Xid x);
// How often the instance has done `op` of `ref` in this tile when it comes there; 0: unknown.
Xid sc_pair_count(Pair *p, Place at, Op op, u32 ref);

// ---- lingers.c
bool sc_pair_one_tile(const Pair *p);
bool sc_pair_one_execution(const Pair *p);  // by one instance in one tile
// Two executions by one instance in one tile: does their program keep them in order by itself?
bool sc_pair_in_program(const Pair *p);

// ---- handed.c
// In one tile: does the first always come before the second, or the second before the first?
// (chains: by way of other roles, too)
bool sc_pair_ordered(Pair *p, bool chains);
// In tiles that differ along the turn's axis alone: do both take a turn for what they touch?
bool sc_pair_takes_turns(Pair *p);

// ---- pair.c
Pair sc_pair(Races *v, const Access *a, const Access *b, bool stage);
// Can no two such executions meet in an element without an order between them?
bool sc_pair_safe(Pair *p);
// Of a pair that is not shown to be safe: what its reason ends in, if it would be with a list that
// is declared `rising`; else "".
const char *sc_pair_remedy(Races *v, const Access *a, const Access *b, bool stage);

// ---- race.c
// Looks for dimensions and two executions that touch one element with nothing between them;
// reports them. False: there are none among those that were tried.
bool sc_find_race(Races *v, const Access *a, const Access *b);
// Proves that no two accesses of the buf race (fill: as in sc_accesses), or finds two that do. Of
// two of which neither is shown, `unsure` says so.
typedef void Unsure(Races *v, const Access *a, const Access *b);
void sc_prove_accesses(Races *v, u32 buf, bool fill, Unsure *unsure);

#endif
