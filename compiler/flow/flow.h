// flow.h - shared by derive, flow and place: what each operation accesses, the abstract state of a
// role, and the walk that carries it over the code. A "sync" is a barrier among the threads of one
// instance.
#ifndef SC_FLOW_H
#define SC_FLOW_H

#include "compiler/facts/path.h"
#include "compiler/passes.h"

// ---- threads.c
// A map and one of the views that it accesses.
typedef struct Touch {
  u32 pc, view;  // pc SC_NONE: any
} Touch;
// May one map of an instance follow the other without a sync? It may if no element of a buf is
// accessed by both, or each that is by the same thread.
// `facts`: what holds in all rounds of all loops.
bool sc_needs_no_sync(Facts *facts, const Kernel *k, const Code *code, Touch x, Touch y);
// The columns that a view of a register tile touches, as a set of 64 runs of the last dimension (a
// vector: of its only one). `ext`: extents of the index variables. cover: only runs that are
// touched whole, in all rows.
u64 sc_columns(const Kernel *k, const View *v, const i64 *ext, bool cover);
void sc_extents(const Kernel *k, const Ins *ins, i64 ext[SC_MAX_VARS]);  // of a map or product
// Does the operation write the whole tile through v?
bool sc_writes_all(const Kernel *k, const Ins *ins, const View *v);

// ---- derive.c
// The bytes that copies bring to the fill opened by the acquire at `pc`.
typedef enum FillKind { FILL_KNOWN, FILL_VARIES, FILL_SPLIT } FillKind;
typedef struct Fill {
  // VARIES: a copy under a condition or count known only at run time; SPLIT: acquire and commit
  // stand in different blocks
  FillKind kind;
  i64 bytes;  // saturates at SC_MAX_TX
  u32 at;     // VARIES: the copy; SPLIT: the end of the acquire's block, or the commit
} Fill;
enum { SC_MAX_TX = 1 << 20 };  // an mbarrier's transaction count stays below this
Fill sc_fill(const Kernel *k, const Code *code, u32 pc);

// ---- alike.c
void sc_plan_votes(Sc *sc, Kernel *k, u32 role);  // those that warps take together

// ---- state.c
enum { MAX_FLIGHT = 32, MAX_HOLDS = 16, MAX_PATHS = 16 };

// A stage that an operation in flight reads: the hold-th held stage of a ring, counted from the
// oldest.
typedef struct Ref {
  u32 ring;  // SC_NONE: none
  u32 hold;
} Ref;

// A product, or a copy out of a stage, that has been issued and not waited for.
typedef struct Flight {
  // operations that issued it: on the first path found, and on another (or the same)
  u32 site, also;
  u32 dst;      // product: register tile; copy: tensor
  u32 operand;  // register tile that a product reads; else SC_NONE
  Ref ref[2];
  u32 unseen;  // copy: what becomes of it until it is visible, on all paths: UNSEEN_*
  u32 spared;  // product: the last wait since its issue, which left it in flight, for messages;
               // SC_NONE: none
} Flight;

// In order of issue. They retire in that order too, so waiting for one waits for all before it.
typedef struct Queue {
  u32 n;
  Flight at[MAX_FLIGHT];
} Queue;

// What the threads of an instance did to a stage or a tensor that no proxy fence (UNFENCED) and no
// sync (UNSYNCED) has followed yet. (Tensors have fences of their own: those for global memory.)
// UNSYNCED_COPY: a copy out, from the stage or to the tensor, was waited for by the one thread that
// issued it; the others do not know that it has ended.
enum {
  UNFENCED_WRITE = 1,
  UNFENCED_READ = 2,
  UNFENCED_ADD = 4,
  UNSYNCED_WRITE = 8,
  UNSYNCED_READ = 16,
  UNSYNCED_ADD = 32,
  UNSYNCED_COPY = 64
};

typedef struct Unordered {
  u8 set;
  Touch writer, reader;  // the only one since the last sync; pc SC_NONE: there are several
} Unordered;

typedef struct Hold {
  u32 site;  // the wait, or the acquire
  Unordered unordered;
  u32 older;      // products in flight that were issued before the wait
  bool all_past;  // on every path since the wait, something has shown that all warps are past it: a
                  // sync, or the end of a product issued after it
} Hold;

typedef struct RingState {
  u32 held;
  Hold hold[MAX_HOLDS];  // oldest first
  bool open;             // a fill is open
  Hold fill;
  // parts of the open fill that copies land in, that threads stored to: bit p for part p
  u64 landing, stored;
  u32 copy, store;  // the newest of these copies and stores, for messages
  u32 gave;         // the last release, + 1, for messages; 0: none
} RingState;

// Copies out that may not be visible: stores, additions, and from bit UNSEEN_TURNS on the turns
// over CTAs that were held at their issue.
enum { UNSEEN_STORE = 1, UNSEEN_ADD = 2, UNSEEN_ANY = 3, UNSEEN_TURNS = 2, MAX_TURNS = 30 };

typedef struct TurnState {
  bool held;
  Xid key;
  u32 site;
} TurnState;

// What is known before an operation. Queues, holds, fills and turns are exact: paths that disagree
// about them are errors, or (in a role that is walked path by path) are followed side by side. What
// threads touched and which tiles are defined is joined: the worst of all paths.
typedef struct State {
  Queue product, copy;  // copy: those whose source has not been read yet
  u32 waited;           // the last wait for products, for messages; SC_NONE: none
  bool elected;         // since the last sync, one thread alone has waited for an empty stage of a
                        // ring of several roles
  RingState *ring;
  TurnState *turn;
  u64 *defined;       // by buf: columns of register tiles that are written on every path
  Unordered *tensor;  // by buf: what threads did to it
  // by buf: UNSEEN_* of copies out to this tensor that may not be visible, and the turns held
  u32 *unseen;
  u32 *unseen_site;  // by buf: one of those copies, for messages
  Path path;         // of a role that is walked path by path: what is true on this one
} State;

typedef struct Paths {
  u32 n;
  State *at[MAX_PATHS];  // those past n are room
} Paths;

State *sc_state(Sc *sc, const Kernel *k);
void sc_state_clear(State *s, const Kernel *k);
void sc_state_copy(State *to, const State *from, const Kernel *k);
// the joined part; true if `into` changed
bool sc_state_join(State *into, const State *from, const Kernel *k);
bool sc_state_same(const State *a, const State *b, const Kernel *k);        // the exact part
bool sc_state_same_tiles(const State *a, const State *b, const Kernel *k);  // what is defined
u32 sc_state_weight(const State *s, const Kernel *k);                       // holds and flights
bool sc_same_flight(const Flight *a, const Flight *b);
// 1 + the index of the newest (but `skip`) that goes to dst, reads the stage or the tile; 0: none.
u32 sc_flight_to(const Queue *q, u32 dst, u32 skip);
u32 sc_flight_reading(const Queue *q, u32 ring, u32 hold);
u32 sc_flight_operand(const Queue *q, u32 tile);
void sc_retire(Queue *q, u32 n);  // the n oldest are done
// the oldest hold; nothing in flight refers to it any more
void sc_release_hold(State *s, u32 ring);
void sc_state_fence(State *s, const Kernel *k, bool global);
void sc_state_sync(State *s, const Kernel *k);

// ---- walk.c
typedef struct Flow {
  Sc *sc;
  Kernel *k;
  Facts *facts;  // what holds in all rounds of all loops
  u32 role, pc;
  Role *r;
  bool derive;   // write plans; else check them
  bool report;   // the last pass: say what is wrong
  bool trial;    // a walk that takes long is given up,
  bool gave_up;  // … and has been
  u32 errors;    // how many errors there were before the last pass
  bool changed;  // some loop's head learnt something in this pass
  bool decided;  // what is true on some path decided an `if`
  // By ring, turn and buf: something has been said about it, and what follows may only be its echo.
  bool *blamed_ring, *blamed_turn, *blamed_buf;
  State *now;    // of the path that is followed
  bool first;    // that path is the first of those that lead to the operation
  Paths paths;   // all of them
  Paths **head;  // by operation: what is known at a loop's head, over all paths seen
  Paths *
      *saved;  // two for each nesting depth: before the block, and at the end of its first branch
  PathFacts *asked;  // NULL, or paths that disagree are told apart
  PathFacts **kept;  // NULL, or the answers that earlier walks of the role got
  u32 *open;         // by depth: the operation that opened the block
  bool *in_else;     // by depth: the walk is past its `else`
  u32 depth;         // open blocks
  u32 votes;         // of them votes that each warp takes by itself
  bool *lagging;  // NULL, or by operation: a release at which, on some path, a warp may not be past
                  // its wait yet
  // NULL, or told each product that a wait ends
  void (*retired)(void *user, u32 pc, const Flight *flight);
  void *user;
} Flow;

// Carries the state over one role's code until nothing changes, and once more with `report` set.
void sc_walk(Flow *f);

// step.c: the effect of one operation that opens or closes no block.
void sc_step(Flow *f, Ins *ins);

// order.c
// NEED_GLOBAL, with NEED_FENCE: the fence is for global memory, too.
enum { NEED_FENCE = 1, NEED_SYNC = 2, NEED_GLOBAL = 4 };
void sc_want_order(Flow *f, Ins *ins, u32 need);  // plans or checks them, and has them take effect
void sc_retire_products(Flow *f, u32 n);          // the n oldest are done
void sc_fault_products(Flow *f, u32 n);           // the same after a fault that has been reported
// The n oldest have read their source, or (seen) are visible.
void sc_retire_copies(Flow *f, u32 n, bool seen);
// The bit of a turn over CTAs among UNSEEN_*. The last bit is that of all turns which have none.
u32 sc_unseen_turn(u32 turn);

// tensor.c: the same for what is done to tensors.
// Must a sync precede this access?
bool sc_tensor_needs_sync(const Flow *f, const Ins *ins, const ViewAccess *a);
bool sc_others_matter(
    const Flow *f,
    const ViewAccess *a);  // do others write what it touches, or touch what it writes?
void sc_touch_tensor(Flow *f, const Ins *ins, const ViewAccess *a);  // by threads
u32 sc_copy_tensor(Flow *f, const Ins *ins);                         // by a copy; NEED_*
// What is needed (NEED_*) before this operation tells others to go on, so that they see what these
// threads did. one: an elected thread arrives for all warps. Reports copies out that may not be
// visible to them.
u32 sc_hand_over(Flow *f, const Ins *ins, bool one);
// the n oldest copies out are waited for
void sc_note_copies(State *s, const Kernel *k, u32 n, bool seen);

// adds.c: over all roles: tensors to which both threads and copies add.
void sc_check_adds(Sc *sc, const Kernel *k);

// ring.c: the same for rings and turns.
void sc_step_acquire(Flow *f, Ins *ins);
void sc_step_commit(Flow *f, Ins *ins);
void sc_step_wait(Flow *f, Ins *ins);
void sc_step_release(Flow *f, Ins *ins);
void sc_step_endvote(Flow *f, Ins *ins);
void sc_step_take(Flow *f, Ins *ins);
void sc_step_pass(Flow *f, Ins *ins);

// report.c
bool sc_blame(Flow *f, bool *blamed);  // is there to be a report, the first one about this?
// Messages. Called only while f->report is set.
const char *sc_buf_name(const Flow *f, u32 buf);
void sc_report_read(Flow *f, const ViewAccess *a, const Flight *flight);
void sc_report_nothing(Flow *f, const Ins *wait, u32 buf);
void sc_report_operand(Flow *f, u32 tile, const Flight *flight);
void sc_report_release(Flow *f, u32 ring, const Flight *flight, bool copy);
void sc_report_overwrite(Flow *f, const ViewAccess *a, const Flight *flight, bool copy);
void sc_report_loop(Flow *f, const State *head, const State *end, Span loop);
void sc_report_branch(Flow *f, const State *yes, const State *no, Span at);
void sc_report_end(Flow *f, const State *end);

#endif
