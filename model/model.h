// model.h - a model of a Hopper GPU on the CPU, thread by thread: a shared library with the entry
// points of NVRTC (its "machine code" is made by the host's C++ compiler) and of the CUDA driver.
// README.md says what is modelled.
//
//   nvrtc.c      an emitted text, with kernel.hpp before it, to a shared object
//   options.c    how the model runs, as SCHEDC_MODEL chooses
//   driver.c     the driver's entry points: devices, contexts, memory
//   stream.c     streams, events, graphs: what is enqueued, and when it is run
//   module.c     modules and functions; the line of the schedule at an address of code
//   tensormap.c  how the copy engine sees a tensor
//   launch.c     a launch: clusters that are resident, their CTAs, warps and threads
//   memory.c     memory of the model's own
//   fiber.c      a stack for each thread
//   turn.c       who goes on next: warps and engines, by policy
//   know.c       vector clocks: what each thread knows of the others, and through which proxy
//   shadow.c     who touched each word of memory, and races
//   warp.c       lanes that meet: shuffles, votes, ldmatrix, stmatrix, mma.sync
//   barrier.c    named barriers, clusters, registers (setmaxnreg)
//   mbarrier.c   mbarriers
//   global.c     turns over CTAs, draws, additions; loads and stores of tensors (hooks)
//   elements.c   conversions of elements
//   copy.c       the copy engine
//   product.c    the tensor cores
//   fault.c      what is wrong, in words
//   trap.c       divisions by 0
//
// One launch runs at a time, on one thread of the host, and every choice comes from the policy and
// its seed: a run can be repeated. Numbers in brackets, as [M6], are the rules of README.md.
#ifndef MD_MODEL_H
#define MD_MODEL_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls.h"
#include "fault.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MD_NONE UINT32_MAX
#define HERE __builtin_return_address(0)

enum { LANES = 32, GROUP_THREADS = 128, NAMED_BARRIERS = 16, MAX_CLUSTER = 16, MAX_THREADS = 1024 };

typedef struct Gang Gang;
typedef struct Cta Cta;
typedef struct Warp Warp;
typedef struct Thread Thread;
typedef struct Mbar Mbar;
typedef struct Know Know;

// ---- memory.c: never NULL; what cannot be had ends the launch
void *md_new(size_t bytes);  // zeros
void *md_more(void *block, size_t bytes);
#define APPEND(vec, ...)                                        \
  do {                                                          \
    if ((vec)->n == (vec)->cap) {                               \
      u32 cap_ = (vec)->cap ? 2 * (vec)->cap : 8;               \
      (vec)->at = md_more((vec)->at, cap_ * sizeof *(vec)->at); \
      (vec)->cap = cap_;                                        \
    }                                                           \
    (vec)->at[(vec)->n++] = (__VA_ARGS__);                      \
  } while (0)
#define LIST(T) \
  struct {      \
    T *at;      \
    u32 n, cap; \
  }

// ---- options, of SCHEDC_MODEL ("policy=random,seed=3,sms=2"), read at each launch
typedef enum Policy { POLICY_EARLY, POLICY_LATE, POLICY_RANDOM, POLICY_LAGGARD } Policy;
enum { MOST_DEVICES = 8 };
typedef struct Options {
  Policy policy;
  u64 seed;
  u32 sms, devices;
  bool together;  // lanes of a warp never part: what one has done and knows, all have and know
} Options;
const char *md_options(Options *out);  // NULL, or what is wrong with the variable

// ---- fiber.c
typedef struct Fiber {
  jmp_buf at;
  char *stack;  // lowest address; NULL: it has none yet
  char *rest;   // where it was left
  bool fresh;   // it begins at its entry when it is entered next
} Fiber;
enum { STACK_BYTES = 128 << 10 };
void md_fiber_enter(Fiber *f, void (*run)(void *), void *arg);  // until it leaves
void md_fiber_leave(Fiber *f);                                  // back to who entered it
// what it had on its stack, from `low` to where it was left, turns to NaN
void md_fiber_forget(Fiber *f, char *low);

// ---- know.c: vector clocks. A component is a thread (its accesses, by epoch), or something
// asynchronous: an mbarrier (phases that are complete), the products of a warpgroup (groups), the
// bulk groups of a thread, read or done.
enum {
  KNOWN,  // accesses that come before this thread's own
  // … and before what engines do to shared memory for it (fence.proxy.async on the way)
  KNOWN_SHARED,
  KNOWN_GLOBAL,  // … and to global memory
  // what has happened before, also by way of an engine: a copy that has landed was asked for. It
  // says which phases of barriers are complete, and nothing of what is in memory
  CAUSED,
  CLOCKS
};
typedef struct Foreign {  // what is known of another cluster: it has no foreigners itself
  u32 gang;
  Know *know;
} Foreign;
struct Know {
  u32 refs;
  u32 foreigners;
  Foreign *foreign;  // by gang
  u32 at[];          // CLOCKS of md.comps
};
// What a thread is aware of. (together: one for all lanes of a warp)
typedef struct Mind {
  Know *know;
  u32 comp, epoch;  // its own component, and where it is
  // by KNOWN_SHARED, KNOWN_GLOBAL: its own accesses up to this epoch are fenced
  u32 fenced[CLOCKS];
} Mind;
typedef struct Bring {
  Know *know;
  u32 comp, epoch, fenced[CLOCKS];
  bool causal;  // brought by an engine: no more than CAUSED
} Bring;
typedef LIST(Bring) Brings;
u32 *md_clock(const Know *k, u32 clock);
Know *md_keep(Know *k);
void md_drop(Know *k);
void md_learn(Mind *m, Know *k);                  // acquire: joins it
void md_learn_one(Mind *m, u32 comp, u32 value);  // … one component
// release: what it knows and has done; a new epoch begins
void md_tell(Brings *to, Mind *m);
// what an engine that it tells to do something will bring
Bring md_cause(const Mind *m);
Know *md_settle(Brings *b);  // all that was brought, in one; empties it
// k, which is dropped, with the component at least so far
Know *md_noted(Know *k, u32 comp, u32 value);
Know *md_both(Know *a, Know *b);  // new reference
void md_fence(Mind *m, bool global);
bool md_knows(const Mind *m, u32 comp, u32 value);  // CAUSED
Know *md_of_own(const Know *k);  // what it says of its own cluster; new reference
void md_meet_gang(Mind *m, u32 own, u32 gang, Know *k);  // learns what is known of another cluster
void md_forget_joins(void);

// ---- shadow.c: who touched each word
typedef struct Cell {
  u32 write, set;  // stamp of the last write; set of stamps of reads and additions since. 0: none
} Cell;
typedef enum Deed { DEED_READ, DEED_WRITE, DEED_ADD } Deed;
typedef enum Agency { BY_THREAD, BY_COPY_IN, BY_COPY_OUT, BY_PRODUCT, BY_SEND } Agency;
typedef struct Stamp {
  u32 gang, comp, epoch, thread;  // thread: number in the gang, for messages
  const void *where;
  u8 deed, agency;
} Stamp;
// Those who do it: one thread, or the 128 of a warpgroup, which have few different minds.
typedef struct Actor {
  Gang *gang;
  const Mind *mind[GROUP_THREADS];
  u32 minds;
} Actor;
u32 md_stamp(const Stamp *s);
Actor md_actor(const Thread *t);
// Records the access of `bytes` at `at`, and looks for races. `shared`: of this CTA, `at` is an
// offset; NULL: global memory.
void md_touch(const Actor *a, u32 stamp, Cta *shared, u64 at, u64 bytes);
void md_forget_accesses(void);
enum { STAMP_MBARRIER = 1 };  // of words that are an mbarrier

// ---- threads
typedef enum WaitFor {
  WAITS_NOT,
  WAITS_LANES,
  WAITS_MBAR,
  WAITS_NAMED,
  WAITS_CLUSTER,
  WAITS_REGISTERS,
  WAITS_PRODUCTS,
  WAITS_BULK,
  WAITS_TURN
} WaitFor;
typedef struct Waiting {
  u8 what;
  bool bounded;  // --debug-waits: it is given up when nothing else can move
  bool silent;   // … and says nothing then
  // mbarrier: address, parity or generation; named: id, generation; products, bulk: groups
  u32 a, b;
  const void *turn;
  const void *where;
} Waiting;

typedef struct Fragment {  // registers of a thread that products in flight use
  u32 at, bytes;           // on its stack
  u32 group;               // the last one
  u32 tile;                // of the warpgroup; MD_NONE: an operand
} Fragment;
typedef struct BulkGroup {
  // its copies out; those whose source has not been read, and that have not been written
  u32 ops, unread, undone;
} BulkGroup;

enum { TOUCH_GRAIN = 16, MAX_FRAGMENTS = 16 };
struct Thread {
  Fiber *fiber;
  u32 number;  // in its CTA
  u32 id;      // in the gang
  Cta *cta;
  Warp *warp;
  bool live, given_up;
  bool behind;  // the launch before is over: it has waited for that, or need not
  Waiting waits;
  Thread *next, **list;  // among those that wait for the same
  Mind own, *mind;
  const void *where;  // its last call
  struct {
    u32 stamp, epoch;
    const void *where;
    u8 deed;
  } recent[8];
  char *low;                                  // the least address of its stack that it touched
  u8 touched[STACK_BYTES / TOUCH_GRAIN / 8];  // registers touched since wgmma.fence
  bool fenced;                                // … which there has been
  Fragment fragment[MAX_FRAGMENTS];
  u32 fragments;
  u32 group, issued;         // products: the group being issued, and how many it has so far
  u32 products_known;        // groups waited for
  LIST(BulkGroup) bulk;      // committed groups are before the last one
  u32 bulk_read;             // groups of which it has waited until their sources were read
  Thread *bulk_waiter;       // itself
  u32 comp_read, comp_done;  // their components, 0: none yet
};

struct Warp {
  Thread *lane;
  u32 index;  // among all warps of the launch's slots
  u32 ready;  // lanes that can go on
  Mind mind;  // together
  u32 registers;
  u32 generation;  // of the named barrier at which it arrived last
  // lanes that meet
  u32 met, round, ended;
  u32 op;
  u64 arg;
  Thread *waiters;
  u32 value[2][LANES];
  u32 words[2][LANES][4], b[2][2][LANES];
};

typedef struct Named {
  u32 threads, arrived, generation, any, last_any;
  u32 comp;
  u32 warps[MAX_THREADS / LANES / 32 + 1];  // that have arrived
  Brings brings;
  Know *done;
  Thread *waiters;
} Named;

// products of a warpgroup
typedef struct Issue {
  MdProduct p;
  u64 a, b;
  bool scale;
  u32 d_at, tile;  // stack offset; tile
  u32 a_at;        // register operand, or MD_NONE
  const void *where;
} Issue;
typedef struct ProductGroup {
  LIST(Issue) issue;
  const void *where;      // its first product
  u32 committed, waited;  // threads that have committed it, and waited for it or a later one
  u32 size;               // products, as the first who committed it had them
  Brings brings;
  Know *know;  // once all have committed it
} ProductGroup;
typedef struct Tile {
  u32 at, n;    // stack offset, columns; n 0: free
  u32 holders;  // threads for which it is in flight
  float *acc;   // 64 rows
} Tile;
typedef struct Tensor {  // tensor cores, of a warpgroup
  Cta *cta;
  Thread *thread;  // of 128
  u32 comp;
  LIST(ProductGroup) group;
  u32 done;  // groups that have run
  LIST(Tile) tile;
  Thread *waiters;
} Tensor;

struct Mbar {
  u32 at;  // offset in shared memory
  u32 count, pending, phase;
  i64 tx;
  u32 comp;
  u32 init_comp, init_epoch, fence_epoch;
  u32 flying, async_phase;  // copies on their way; the last phase that had bytes, + 1
  Brings brings, came[2];   // by parity of the phase who came; nobody if an engine did
  Know *done;
  // by thread: how many phases were complete when it last passed, + 1, and its epoch then
  u32 *waited, *epoch;
  Thread *waiters;
};

struct Cta {
  Gang *gang;
  u32 rank, index[3];
  u8 *smem;
  Cell *cell;
  u32 bytes;
  Thread *thread;
  u32 threads, live;
  Warp *warp;
  Mbar **mbar;  // by offset / 8
  LIST(Mbar *) bars;
  Named named[NAMED_BARRIERS];
  Tensor *tensor;  // by warpgroup
  u32 registers;   // that nobody has
  Thread *register_waiters;
  // by thread of the gang: its last epoch in which it touched this CTA from outside
  u32 *visit;
  Brings leaving;
};

struct Gang {
  u32 id;  // of the launch's clusters; never used twice
  Cta *cta;
  u32 ctas, threads;
  u32 comps;
  bool busy;
  u32 live, arrived, generation;  // of the cluster's barrier
  Brings brings;
  Know *done;
  Thread *waiters;
};

// ---- work of the engines
typedef enum Engine { ENGINE_LOAD, ENGINE_READ, ENGINE_WRITE, ENGINE_PRODUCT, ENGINES } Engine;
typedef struct Event {
  Engine engine;
  Gang *gang;
  void *of;
  void (*run)(void *of);
} Event;

// ---- a launch
typedef struct Function Function;
typedef struct LaunchArgs {
  const Function *f;
  u32 grid[3], block[3], shared;
  bool overlaps;  // programmatic stream serialization: the launch before may still run
  void **param;
} LaunchArgs;
int md_check_launch(const LaunchArgs *l);  // CUresult: may it be launched?
int md_launch(const LaunchArgs *l);        // CUresult; the fault is told by md_fault_text

typedef struct Model {
  Options options;
  u64 rng;
  // of the launch
  const LaunchArgs *launch;
  u32 comps;  // components of a gang
  u32 first_gang, next_gang;
  u64 clusters, begun;  // in all; begun so far
  Gang *gang;           // resident
  u32 gangs;
  u32 laggard;  // a warp's index, or the warps' number + engine
  u32 warps;
  u64 *ready;         // warps, a bit each
  LIST(Event) event;  // in order of issue
  jmp_buf home;       // of md_launch: where a fault goes
  bool lenient;       // a wait was given up: nothing is checked any more
  Thread *self;
  bool ended;  // some cluster has
} Model;
extern Model md;

// ---- turn.c
void md_schedule(void);                     // until all has ended, or a fault
void md_wait(Thread **waiters, Waiting w);  // the thread that runs, until it is woken
void md_wake(Thread **waiters);
void md_unwait(Thread *t);  // alone
void md_start(Thread *t);   // it can go on
void md_pause(void);        // under some policies, others go first
void md_event(Event e);
void md_finish_events(Gang *g);  // those of a cluster that has ended
u64 md_random(void);

// ---- launch.c
u32 md_component(Gang *g);          // a new one
void md_thread_main(void *thread);  // its fiber's function
// clusters that have ended make room for the next; is any there?
bool md_refill(void);
// of its cluster, which it has reason to believe there
Cta *md_cta(Thread *t, int rank);
u32 md_offset(const Cta *c, u32 at, u32 bytes);  // in shared memory, of an address
void md_behind(const Thread *t);  // before it touches global memory: is the launch before over?

// ---- warp.c
// all lanes, at the same instruction. True for the last one: it lets the others go on
bool md_meet(u32 op, u64 arg);
void md_part(void);                 // … by this
void md_converge(u32 op, u64 arg);  // both
enum MeetOp {
  MEET_VALUE = 1,
  MEET_ANY,
  MEET_SYNC,
  MEET_BAR_SYNC,
  MEET_BAR_ARRIVE,
  MEET_REGISTERS,
  MEET_COMMIT,
  MEET_WAIT,
  MEET_LDMATRIX,
  MEET_STMATRIX,
  MEET_MMA
};
const char *md_meet_name(u32 op);

// ---- barrier.c
void md_cluster_check(Gang *g);  // is it complete, now that a thread has ended?

// ---- mbarrier.c
Mbar *md_mbar(Cta *c, u32 at);
void md_mbar_land(Cta *c, Mbar *b, u32 bytes, u32 phase, const Bring *cause, const void *where);
void md_mbar_aim(Thread *t, Cta *c, Mbar *b);  // before an engine is told to complete bytes on it
void md_mbar_leave(Cta *c, const Mind *all);   // the CTA's threads have ended
void md_mbar_free(Cta *c);
// --debug-waits: writes down what it waited for
void md_give_up(Thread *t, u32 *waits, u32 entry, u32 saw, u32 generation);

// ---- product.c, copy.c
void md_products_free(Cta *c);
// touched by the thread itself
void md_registers(Thread *t, u32 at, u32 bytes, bool write, const void *where);
void md_bulk_ended(Thread *t);
// 16 bytes at address `at` of a pattern so many bytes wide; 0: none
u32 md_swizzled(u32 swizzle, u32 at);
void md_turns_free(void);

// ---- tensormap.c
typedef struct BoxMap {
  u64 address, extent[5], stride[5];
  u32 box[5];
  u32 elem;   // MdMapElem
  u32 bytes;  // of an element
  u32 swizzle;
  u32 magic;
} BoxMap;
typedef enum MapElem { MAP_BYTES, MAP_F16, MAP_BF16, MAP_F32, MAP_I32 } MapElem;
const BoxMap *md_box_map(const struct TensorMap *map);

// ---- driver.c: global memory
bool md_is_global(u64 at);             // in the region that is the device's
bool md_in_memory(u64 at, u64 bytes);  // … and allocated
Cell *md_global_cell(u64 at);
void md_forget_global(void);  // who touched it

// ---- module.c
typedef struct Module Module;
struct Function {
  const MdKernel *kernel;
  const char *name;
  Module *module;
  u32 shared;  // most dynamic shared memory, as cuFuncSetAttribute said
};

void md_lines(const Module *m, const void *const *where, u32 n, ModelRemark **remark);

// ---- fault.c
// The launch ends. `where`: an address of code, NULL: that of the thread that runs. Texts may hold
// what fault.h lists in braces …
void md_fault(const char *rule, const void *where, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
// … and notes, before it.
void md_note(const void *where, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *md_fault_text(void);
void md_fault_clear(void);
// In texts: a thread; a byte of shared memory; an mbarrier and a generation of it; a byte of global
// memory.
const char *md_thread_name(const Thread *t);
const char *md_shared_name(const Cta *c, u32 at);
const char *md_mbar_name(const Cta *c, u32 at, u32 generation);
const char *md_global_name(u64 at);
void md_deadlock(void) __attribute__((noreturn));

// ---- trap.c
void md_trap(bool on);  // from here on a division by 0 is a fault, or is no longer

#endif
