// machine.h - the interpreter's machine. A job is one CTA, or one cluster of them: a slot runs it.
// Its role instances are state machines (a program counter, loop counters, an Env), so that a
// scheduler can stop each at any operation and go on with another. Copies, products and copies out
// are events, which land when the policy says so. Everything a worker thread touches is allocated
// before it starts: only the thread that called the library allocates while others run, for what
// global.c and heard.c keep in mind.
#ifndef SC_MACHINE_H
#define SC_MACHINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/cpu/global.h"
#include "runtime/run.h"

typedef struct Slot Slot;
typedef struct Machine Machine;
typedef struct Inst Inst;
typedef struct Stage Stage;

// ---- what is common to all threads

// A map, ready to run.
typedef struct MapPlan {
  Strip *strip;
  Strip *fails;  // Map.fails, or NULL
  bool global;   // it touches a tensor that the kernel writes
  i64 ext[SC_MAX_VARS];
} MapPlan;

// The grid in units of clusters; a kernel without clusters has clusters of one CTA.
typedef struct Grid {
  u32 axes, ctas;            // ctas: CTAs of a cluster
  i64 tiles[SC_MAX_AXES];    // extent of each axis
  i64 units[SC_MAX_AXES];    // the same in clusters, rounded up
  i64 section[SC_MAX_AXES];  // `by`, in clusters; 0: none
  u64 total;                 // clusters in all
} Grid;

typedef struct Program {
  Sc *sc;  // of the thread that called the library
  const Kernel *k;
  const Binding *b;
  const schedc_run_options *opt;
  Grid grid;
  bool talks;    // CTAs communicate: they run interleaved on one thread
  u64 jobs;      // plain grids: clusters of the grid; else: resident ones
  u32 resident;  // slots of a machine
  u32 insts;     // role instances of a CTA
  u32 *inst0;    // per role: its first instance
  u32 drawer;    // the role that draws tiles (dynamic grids)
  MapPlan *map;
  u64 *elems;             // per stage part or register tile: elements
  bool *acc;              // per register tile: a product may write it asynchronously
  u32 *pool0, pools;      // per ring: its first pool (private rings have one an instance)
  u32 part_words, words;  // length of a clock, and where its stages' words begin
  u32 **counter;          // turns over CTAs: passes so far, by other indices and key; else NULL
  i64 *keys;              // turns over CTAs: keys
  u32 *token0, tokens;    // turns over instances: the first member's token
  size_t scratch;         // bytes that a strip or product needs
  void (*multiply)(float *c, i64 crow, i64 ccol, const float *a, i64 arow, i64 ak, const float *b,
                   i64 rows, i64 cols, i64 k, bool acc);
  Global global;
  bool cta_turns;      // turns over CTAs order some of them
  VEC(Passer) passer;  // turns over CTAs: who passed them on so far
  Known **left;        // turns over CTAs: what was left with each, by the same indices as counter
  Machine **machine;   // all that run; the first one's thread called the library
  u32 machines;
  bool logs;             // they log what they touch, for the first one to enter
  u64 pen;               // logs: the smallest job whose touches have not all been entered
  atomic_uint crowded;   // logs: how many machines wait for room in theirs
  pthread_mutex_t lock;  // of `news`
  pthread_cond_t news;   // a machine waits for room in its log, or has run its last job
  atomic_ullong next;    // the next job that nobody has taken
  atomic_ullong drawn;   // dynamic grids: the next tile
  atomic_ullong worst;   // the smallest job with a fault; later ones are not run
  atomic_ullong steps, tiles_done;
  atomic_int stop;  // a schedc_status other than OK: give up
} Program;

// ---- clocks and barriers

// A clock is an array of words, joined by maximum: C_INST words for each instance of the slot, then
// one for each stage part (the generation of copies known to have landed), then one for each
// barrier (phases known to be complete).
enum {
  C_TIME,    // its generic accesses up to this epoch are known
  C_FENCE,   // ... and to the async proxy, for shared memory
  C_GLOBAL,  // ... and for global memory
  C_MMA,     // its products up to this group have been waited for
  C_READ,    // its copies out up to this one have read their source
  C_SEEN,    // ... and are visible
  C_TAKEN,   // what came with its turns over CTAs up to this one is known
  C_INST
};

// An mbarrier (PTX ISA 9.0, 9.7.13.15): a phase completes when no arrivals are pending and tx is 0.
typedef struct Barrier {
  u32 count, pending;
  i64 tx;
  u32 phase;      // phases completed
  u32 word;       // its place in clocks
  u32 *done;      // what completed phases make known
  u32 *arriving;  // what this phase's arrivals bring
  Stage *frees;   // an empty barrier's stage: completing poisons it
} Barrier;

// A rectangle of a tile: rows, and columns of what follows the first dimension.
typedef struct Rect {
  i64 lo[2], hi[2];
} Rect;

typedef enum AccessKind {
  A_READ,   // by threads
  A_WRITE,  // by threads
  A_MMA,    // a product reads
  A_COPY,   // a copy writes
  A_OUT,    // a copy out reads
} AccessKind;

typedef struct Access {
  u8 kind;
  u32 inst, pc;     // who, where in its code
  u32 word, value;  // it lies before whoever's clock has clock[word] >= value
  Rect at;
} Access;

enum { LOG = 256 };

// One part of a stage.
typedef struct Part {
  float *at;
  u64 elems;
  u32 buf, word;
  u32 flying;  // copies that have not landed
  bool clean;  // all of it is poison
  u32 n;
  Access log[LOG];  // accesses that a later one may race with: all of them
} Part;

struct Stage {
  Barrier full, empty;
  Part *part;
  u32 parts;
};

// ---- role instances

// How far an instance is with a ring: numbers of fills.
typedef struct Cursor {
  u32 filled, committed, waited, released;
  u32 release_pc;
} Cursor;

// What an instance did in its tiles, so that two can be compared.
typedef struct Tally {
  u32 before;  // the count when the tile began
  u64 tiles;   // a hash of the counts of all tiles so far, one after the other
} Tally;

// A register tile.
typedef struct Reg {
  float *at, *aside;      // aside: the accumulator's true value while products are in flight
  u32 flying;             // products that have not finished
  u32 written, write_pc;  // newest product group into it
  u32 read, read_pc;      // newest product group that reads it
} Reg;

typedef struct Cta {
  Stage **pool;  // per pool: its stages
  u32 *token;    // per turn and member: may take
  u32 **token_clock;
  u32 rank;  // in its cluster
} Cta;

struct Inst {
  Machine *m;
  Slot *slot;
  Cta *cta;
  u32 id;  // in the slot
  u32 role, number;
  const Role *of;
  u32 pc, at;        // next operation; the one that runs
  u64 iter;          // tiles begun
  u64 unit;          // the newest: a unit of the grid
  VEC(Known) heard;  // by turn over CTAs that it took: what it knew of other CTAs from then on
  u32 passer;        // its number among the program's, from 1; 0: it has passed on none
  bool done, surplus;
  bool skips;  // the tile is another instance's: rings are counted past it, nothing is done
  Env env;
  i64 *from, *to;  // of each loop
  Cursor *ring;
  u32 *taken;    // by turn over instances: how often it was taken
  Tally *tally;  // of fills by ring, waits by ring, turns
  Reg *reg;      // by buf number
  u32 mma_issued, mma_done, mma_waited;
  u32 out_issued, out_done, out_read, out_seen;
  u32 *out_taken;  // by turn: those issued when it was last taken
  u32 out_pc;
  u32 now;  // epoch of its generic accesses
  u32 *clock;
  i64 row0, row1;  // rows of a vote's warp; row1 0: all
  u32 warps;       // that the vote chose and that have not run, a bit each
  i64 rows;        // of the vote
  u32 inner;       // votes in its block that are run
};

// ---- events

typedef enum EventKind { EV_COPY, EV_PRODUCT, EV_OUT } EventKind;

typedef struct Event {
  u8 kind;
  bool add;
  Inst *by;
  u32 pc;
  u32 group;              // products, copies out
  u32 view;               // copies: the tensor's
  i64 base[SC_MAX_RANK];  // copies: where the slice starts
  i64 row0, row1;         // copies: rows of the stage
  Part *part;
  Barrier *full;
  u32 value;       // what the part's word becomes
  bool acc;        // products …
  u32 dst, a_reg;  // register tiles; a_reg SC_NONE: a stage
  const float *a, *b;
  i64 dst_at, crow, ccol, a_at, arow, ak, bcol, bk, m, n, k;
} Event;

enum { EVENTS = 256 };

struct Slot {
  bool busy;
  u64 job;
  u32 insts, live;  // instances; those that have not ended
  Cta *cta;
  Inst *inst;
  u64 draw[4], draws;  // dynamic: the last tiles drawn
  u32 *knew[4];        // dynamic: what instances knew of stages when they began these
  Event event[EVENTS];
  u32 events;  // in order of issue
  u32 words;
};

// ---- faults

enum { FAULT_NOTES = 24, FAULT_TEXT = 320 };
typedef struct Fault {
  bool set;
  DiagId id;
  Span at;
  u64 job;
  char text[FAULT_TEXT], help[FAULT_TEXT];
  u32 notes;
  struct {
    Span at;
    char text[FAULT_TEXT];
  } note[FAULT_NOTES];
} Fault;

// What one thread runs.
struct Machine {
  Program *p;
  Slot *slot;
  u32 slots;
  u64 rng;
  Operand *op;    // by view number
  void *scratch;  // aligned to 64
  u32 *order;     // instances of all slots, in the order in which they get their turn
  u32 insts;
  u32 steps;  // not yet added to the program's
  Log log;
  bool caller;  // this is the thread that called the library
  Fault fault;
};

typedef enum Step { STEP_GO, STEP_BLOCKED, STEP_END, STEP_FAULT } Step;

// threads.c
void sc_give_up(Program *p, schedc_status why);
void sc_tell(Program *p);  // the thread that waits for the others: there is something to do
// The smallest number of a job that failed: those after it need not run, those before it must, so
// that the report is the same with any number of threads.
bool sc_abandoned(const Machine *m, u64 job);
void sc_log(Sc *sc, Machine *m);
bool sc_log_full(Machine *m);
void sc_log_add(Machine *m, const Touch *t, const u32 *clock);  // clock: what its instance knows
// The oldest entry that has not been taken, or NULL; what its instance knew.
const Touch *sc_log_head(Machine *m);
const u32 *sc_log_clock(const Touch *head);
void sc_log_next(Machine *m);

// program.c
void sc_grid(Sc *sc, Grid *g, const Kernel *k, Env *env);
Program *sc_program(Sc *sc, const Kernel *k, const Binding *b, const schedc_run_options *opt);
Machine *sc_machine(Sc *sc, Program *p);
void sc_slot_start(Machine *m, Slot *s, u64 job);

// grid.c
void sc_tile_axes(const Grid *g, const Kernel *k, u64 unit, u32 rank, i64 *axis);
bool sc_surplus(const Grid *g, const i64 *axis);

// role.c: runs operations of one instance, `limit` at most, until one blocks; how many ran.
u32 sc_role_run(Inst *in, u32 limit);

// turn.c
Step sc_take_turn(Inst *in, const Ins *i);
Step sc_pass_turn(Inst *in, const Ins *i);
// Of a turn over CTAs: how many have passed it on, and of how many the next one is this CTA.
bool sc_turn_counter(Inst *in, const Ins *i, u32 **counter, i64 *index);

// view.c
Stage *sc_stage(const Inst *in, u32 ring, u32 fill);
// The same in another CTA of the cluster; of a private ring, that of the instance of the same
// number.
Stage *sc_stage_of(const Inst *in, const Cta *cta, u32 ring, u32 fill);
typedef struct Spot {
  float *at;
  i64 stride[SC_MAX_VARS];
  Rect rect;
  Part *part;  // stages
  Reg *reg;    // registers
  u64 count;   // elements of the buf
} Spot;
// Where a view of a stage or of registers is; ext: the extents of its variables.
bool sc_spot(Inst *in, const View *v, const i64 *ext, u32 vars, Spot *out);
// Fills in->m->op for a map; checks and records what it touches.
bool sc_operands(Inst *in, const Map *m, const MapPlan *p);
// One dimension of a slice: how far it goes in the stage and the tensor, and which of it is inside.
typedef struct Reach {
  u32 dim;  // of the tensor
  i64 n, lo, hi, stride, pitch;
} Reach;
// The dimensions of a copy's slice, and where in the tensor it starts; false: nothing is inside.
bool sc_reach(const Inst *in, const Event *e, Reach *r, u32 *rank, i64 *offset);
// Moves elements between the stage of a copy and its tensor.
typedef enum Transfer { TRANSFER_IN, TRANSFER_OUT, TRANSFER_ADD, TRANSFER_POISON } Transfer;
void sc_slice(const Inst *in, const Event *e, Transfer way);

// async.c
bool sc_issue_copy(Inst *in, const Ins *i);
bool sc_issue_product(Inst *in, const Product *p);
bool sc_issue_out(Inst *in, const Ins *i);
bool sc_warp_product(Inst *in, const Product *p);
// Lands one event if any are pending, the oldest that a wait needs before others.
bool sc_fire_needed(Slot *s);
void sc_fire_random(Machine *m, Slot *s);
void sc_fire_all(Slot *s);

// clock.c
void sc_poison(Elem elem, float *at, u64 n);
void sc_join(u32 *to, const u32 *from, u32 n);
void sc_barrier_init(Barrier *b, u32 count, u32 words);
// As mbarrier.try_wait.parity: looks at the generation's parity, not at its number.
bool sc_barrier_test(const Barrier *b, u32 generation);
void sc_arrive(Inst *in, Barrier *b, u32 arrivals, bool whole);  // whole: for all of its threads
void sc_expect(Slot *s, Barrier *b, i64 bytes);
void sc_land(Slot *s, Barrier *b, i64 bytes, u32 word, u32 value);
void sc_fence(Inst *in, bool global);
void sc_sync(Inst *in);
void sc_hear_of_draw(Inst *in);  // the tile that the instance is about to begin
// Records an access; false: it races with an earlier one, or there are more than can be told apart.
bool sc_access(Inst *in, Part *p, AccessKind kind, u32 word, u32 value, Rect at);
// Does no product or copy out of the instance itself still read the stage?
bool sc_may_release(Inst *in, const Stage *s, u32 ring);

// touch.c: what an operation touches of tensors that the kernel writes; false: a race.
bool sc_touch_map(Inst *in, const Map *m, const i64 *from, const i64 *to);
bool sc_touch_slice(Inst *in, const Event *e, DeedKind kind, u32 word, u32 value);
// What a map with a condition touches, in boxes that grow strip by strip (a Watch's).
typedef struct Gather {
  Inst *in;
  const Map *m;
  const MapPlan *plan;
  bool any, fine;
  i64 from[SC_MAX_VARS], to[SC_MAX_VARS];
} Gather;
void sc_gather(void *gather, const i64 *from, const i64 *to);
bool sc_gathered(Gather *g);
void sc_log_end(Slot *s);  // the job's touches are all in the log

// global.c
void sc_global(Program *p);
// An access; slot: NULL if it may be gone. False: a race, which is the machine's fault.
bool sc_enter_touch(Machine *m, const Touch *t, const u32 *clock, Slot *slot);
void sc_enter_logs(Program *p);          // on the thread that called the library
bool sc_make_room(Machine *m, u64 job);  // in its log; false: the job is given up

// heard.c
void sc_heard_pass(Inst *in, u32 turn, const u32 *counter);
void sc_heard_take(Inst *in, u32 turn, const u32 *counter);
bool sc_heard_of(const Slot *s, const u32 *clock, const Deed *d);  // of another CTA's access

// tally.c
void sc_tally_tile(Inst *in);  // at the end of a tile
void sc_tally_up(Slot *s);     // all have ended: have they counted alike? Else a fault

// product.c
void sc_product_kernel(Program *p);
size_t sc_product_scratch(const Product *p);
void sc_multiply(const Program *p, void *scratch, float *c, i64 crow, i64 ccol, const float *a,
                 i64 arow, i64 ak, const float *b, i64 bcol, i64 bk, i64 m, i64 n, i64 k, bool acc);

// report.c: the first fault of a machine stays. Each returns false.
bool sc_fault(Inst *in, DiagId id, Span at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
// A race of a job that may be over: in the place of what was found later, or in later jobs.
void sc_fault_of(Inst *in, u64 job, const i64 *axis, DiagId id, Span at, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
void sc_fault_note(Inst *in, Span at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void sc_fault_help(Inst *in, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sc_fault_report(Sc *sc, const Program *p, const Fault *f);
bool sc_race(Inst *in, const Part *p, const Access *old, AccessKind kind);
// `math[1]`, or `load` if it is the only one.
const char *sc_inst_name(const Inst *in, char *to, size_t n);
void sc_put_tile(const Kernel *k, const i64 *axis, char *to, size_t n);  // " in tile x = 0, h = 1"

// deadlock.c
void sc_deadlock(Machine *m);

static inline Span sc_here(const Inst *in) { return in->of->code.at[in->at].span; }

#endif
