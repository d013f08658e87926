// ptx.h - the checker of built PTX: does every thread execute, on every path, the synchronising
// instructions that the plan asks for, with their numbers, in its order, and no others? In: a
// kernel after `place` with its plan (Ins.plan, Ring, Turn, Role), and the text that NVRTC handed
// to ptxas. It knows nothing of how CUDA C is emitted; what it takes from CudaText is what a launch
// goes by: the functions' names and their tensor maps.
#ifndef SC_PTX_H
#define SC_PTX_H

#include <string.h>

#include "compiler/passes.h"

typedef enum EventId {
#define EVENT(id, operands, what, spellings) EV_##id,
#include "runtime/ptx/event.def"
  EV_COUNT
#undef EVENT
} EventId;
typedef struct EventInfo {
  const char *operands, *what, *spellings;
} EventInfo;
extern const EventInfo sc_ptx_event[EV_COUNT];

// ---- read.c: the text

typedef struct Words {  // a piece of the text
  const char *at;
  u32 n;
} Words;
static inline bool sc_words_are(Words a, const char *text) {
  return a.n == strlen(text) && !memcmp(a.at, text, a.n);
}

typedef enum PtxOperandKind {
  OPND_OTHER,   // something of which nothing is known
  OPND_REG,     // register n
  OPND_NUM,     // the number n
  OPND_PARAM,   // the address of parameter n
  OPND_SHARED,  // the address of dynamic shared memory
  OPND_TID,     // the thread's number in the CTA
  OPND_LANE,    // the thread's number in its warp
  OPND_LIST,    // {…} or a|b: operands [first, first + n) of Ptx.list
  OPND_AT       // […]: what stands first in it, operand `first` of Ptx.list
} PtxOperandKind;
typedef struct PtxOperand {
  u8 kind;
  u32 first;
  i64 n;
} PtxOperand;

// What value.c makes of an instruction.
typedef enum Compute {
  COMPUTE_NOTHING,  // it sets no register
  COMPUTE_UNKNOWN,  // it sets its first operand to something
#define COMPUTE(id, text, parts) COMPUTE_##id,
#include "runtime/ptx/compute.def"
#undef COMPUTE
} Compute;

enum { PTX_OPERANDS = 9 };
typedef struct PtxIns {
  Words op;
  u32 line;                                    // of the schedule; 0: the compiler knows none
  u8 event;                                    // EventId
  u8 compute, bits, wide_from, compare, also;  // value.c
  bool is_signed, compares_unequal;
  u8 operands;
  PtxOperand operand[PTX_OPERANDS];
} PtxIns;

// Instructions [first, first + n); then to `jump` if the guard says so, else to `next`.
typedef struct PtxBlock {
  u32 first, n;
  u32 next, jump;  // SC_NONE: the thread ends; there is no jump
  u32 guard;       // the register; SC_NONE: it jumps always
  bool negated;    // it jumps if the guard is false
  u8 back;         // loop.c: of GOES_NEXT, GOES_JUMP those that lead back
} PtxBlock;

typedef struct Ptx {
  VEC(PtxIns) ins;
  VEC(PtxOperand) list;
  VEC(PtxBlock) block;  // the first is the entry
  u32 regs;
  const char *wrong;  // why it cannot be read, NULL
} Ptx;
Ptx sc_ptx_read(Sc *sc, const char *text, const char *function);  // the function of that name

// ---- spin.c
void sc_ptx_fold_spins(Ptx *ptx);

// ---- loop.c
void sc_ptx_find_loops(Sc *sc, Ptx *ptx);

// ---- slice.c
void sc_ptx_slice(Sc *sc, Ptx *ptx);

// ---- value.c: numbers

// A number, or an address: a base and n bytes; not exact: and something unknown, as of a stage by
// its number. (n is 0 where not even that part is one for all ways. Of an address in shared memory
// nothing is known then.)
typedef enum Base {
  BASE_ANY,
  BASE_NUM,
  BASE_SHARED,  // this CTA's dynamic shared memory
  BASE_PARAM,   // a parameter of the kernel
  BASE_THERE,   // shared memory of a CTA of the cluster, by mapa
  BASE_NOT_0,   // any number but 0
  BASE_NONE     // no value yet
} Base;
typedef struct Known {  // without a gap: compared as bytes
  u16 base, exact;
  u32 which;  // BASE_PARAM: the parameter; BASE_THERE: the CTA
  u64 n;
} Known;
typedef struct Registers {
  Known *at;
  u32 tid;
  const Ptx *ptx;
} Registers;
void sc_ptx_decode(PtxIns *ins);  // compute and what goes with it
Known sc_ptx_value(const Registers *r, const PtxOperand *o);
// lane0: what the source of a shuffle was in lane 0, where it is that of another thread
void sc_ptx_compute(Registers *r, const PtxIns *ins, Known *lane0);
Known sc_ptx_join(Known a, Known b);
bool sc_ptx_same(Known a, Known b);

// ---- thread.c: what a thread does

enum { ARG_UNKNOWN = -1, ARG_ANY = -2, EVENT_ARGS = 4 };
// An event of a thread, or (plan.c) one that is wanted: then ARG_ANY is any.
typedef struct Event {
  u8 id;  // EventId
  u32 line;
  i64 at;      // offset in shared memory, ARG_UNKNOWN
  bool exact;  // `at` is the whole offset; else a part of it that is known
  i64 arg[EVENT_ARGS];
} Event;

enum { GOES_NEXT = 1, GOES_JUMP = 2, REACHED = 4 };  // ways out of a block, and whether it is any
// Event.arg[3] of a product: A is in registers; it adds; A, B are stored with the contracted index
// outermost.
enum { MMA_REGS = 1, MMA_ADDS = 2, MMA_A_MN = 4, MMA_B_MN = 8 };
typedef struct Thread {
  u32 tid;
  // what it does before the first branch that is not its own to decide, straight; EV_NONE: it goes
  // back
  VEC(Event) straight;
  u32 last;    // the block in which the straight part ends
  u8 onwards;  // the ways out of that block
  // by block: reached, ways out; its events [event[b], event[b] + events of it)
  u8 *ways;
  Event *event;
  const u32 *first;  // by block, and behind the last: the number of its first event
  Known *after;      // by register: what holds where the straight part ends
  Known *lane0;      // by instruction: what shuffles found in lane 0
  bool as_before;    // all this is as it was for the thread before
} Thread;
typedef struct Tracer Tracer;
Tracer *sc_ptx_tracer(Sc *sc, const Ptx *ptx);
// Lane 0 of a warp comes first. What is returned holds until the next call.
const Thread *sc_ptx_trace(Tracer *t, u32 tid);
Event sc_ptx_event_of(const Registers *r, const PtxIns *ins);

// ---- follow.c: numbers along one path

// The registers that some events' addresses and parities come from, and nothing else.
typedef struct Follower Follower;
Follower *sc_ptx_follower(Sc *sc, const Ptx *ptx);
// These events of the thread, by their numbers. Returns how many registers that takes.
u32 sc_ptx_follow(Follower *f, const Thread *t, const bool *events);
// What holds in them behind the thread's straight part.
void sc_ptx_begin(const Follower *f, Known *at);
// Runs a block: the events that are followed get their numbers (others are left as they are); what
// holds at its end goes to `at`. Returns the ways out of it.
u8 sc_ptx_run(Follower *f, u32 block, Known *at, Event *event);
// What is not read any more in a block or behind it is forgotten.
void sc_ptx_forget(const Follower *f, u32 block, Known *at);

// ---- dead.c
enum { NEVER = 1, ONE_ROUND = 2 };  // no launch gets there; none to a second round of this loop
u8 **sc_ptx_dead(Sc *sc, const Kernel *k);  // by role and operation

// ---- plan.c: what is wanted

// The mbarriers of a ring, or of the slots of a dynamic grid: those of full stages, or of empty
// ones.
typedef struct Barriers {
  u32 ring;    // the slots: Kernel.ring.n
  u32 at;      // the first one's offset in shared memory; they lie 8 bytes apart
  u32 stages;  // 0: none
  bool full;
} Barriers;

// What a role remembers of a ring. A cursor goes round its stages, twice for both parities.
typedef enum Cursor {
  CURSOR_FILL,  // the stage that it fills
  CURSOR_NEXT,  // the stage that it waits for; where it holds one at a time, also that it releases
  CURSOR_OLDEST,  // where it holds more: the stage that it releases. (Without the parity.)
  CURSORS
} Cursor;

typedef enum StepOp {
  STEP_EVENT,
  STEP_STAGE,  // the cursor goes on to the next stage
  STEP_SKIP,   // the ring's cursors go on as far as data says: a tile of another instance
  STEP_FORK,   // the next, or `to`
  STEP_GOTO,   // `to`
  STEP_ROUND,  // the next, or, if the thread goes back, `to`
  STEP_END
} StepOp;
typedef struct Step {
  u8 op;
  u32 to;
  Event want;        // STEP_EVENT
  Barriers barrier;  // STEP_EVENT: the address is that of one of these; else its ring matters
  u8 cursor;         // STEP_EVENT: which cursor says of which one; STEP_STAGE: which goes on
  Span span;
  bool must;  // it, or another round, has to occur in the text
  // Of a loop that is split: 2 n + 1 in the first loop and 2 n + 2 in the second, where n counts
  // such loops; else 0. The C compiler may know that one has no round, and leave it out.
  u32 half;
} Step;
typedef struct Wanted {
  VEC(Step) step;
  u32 halves;  // of loops that are split
  u32 role;    // SC_NONE: the thread's warp belongs to none
  u32 instance;
} Wanted;
// dead: sc_ptx_dead's.
Wanted sc_ptx_wanted(Sc *sc, const Kernel *k, const CudaText *text, u8 *const *dead, u32 tid);

// ---- match.c

typedef struct Mismatch {
  bool any;
  const Event *found;   // NULL: the thread ends, or (missing) nothing is there
  const Event *before;  // the last event that both agree on, NULL: none
  const Step *step;     // one that is wanted there, NULL: none is
  bool missing;         // no path has it
} Mismatch;
typedef struct Matcher Matcher;
Matcher *sc_ptx_matcher(Sc *sc, const Ptx *ptx);
Mismatch sc_ptx_match(Matcher *m, const Thread *t, const Wanted *w);

// ---- check.c

// Reports where the PTX of a kernel, or of a sequence's, is not what the plan says. False then,
// with `unverified` as well.
bool sc_ptx_check(Sc *sc, const Kernel *k, const CudaText *text, const char *ptx);

#endif
