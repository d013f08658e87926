// timeline.h - shared by the parts of the cost model: what operations cost, what roles do in a
// tile, the timeline of a CTA, and the launch that is made of it.
#ifndef SC_TIMELINE_H
#define SC_TIMELINE_H

#include "runtime/run.h"

// What work shares. The first four each quarter of a multiprocessor has for itself; a warpgroup has
// a warp in each, so that they are counted once. The others are the multiprocessor's.
typedef enum Pipe {
  PIPE_ISSUE,   // instructions of all kinds
  PIPE_FMA,     // arithmetic in f32
  PIPE_ALU,     // integers, comparisons, selections, conversions
  PIPE_MUFU,    // exponentials and other functions
  PIPE_SHARED,  // shared memory, also for operands of products and for what copies write
  PIPE_TENSOR,
  PIPE_LINK,  // to the L2 cache
  PIPE_COUNT
} Pipe;

// An operation of a role instance: how long it takes while nothing else runs, and how much of that
// it needs of each pipe. All in cycles of the multiprocessor.
typedef struct Cost {
  double alone;
  double use[PIPE_COUNT];
  double share[PIPE_COUNT];  // of each, in a cycle alone
  u32 pipes;                 // bit p: it uses pipe p
  double slice;              // products: of one instruction
  double issue;              // products: up to the first instruction
  double bytes;  // copies: that they move; tensors that threads read and write: their share
  double flops;  // products
} Cost;

// cost.c: `share` and `pipes`, from the rest.
void sc_share(Cost *cost);
// The cost of each operation of a role.
Cost *sc_costs(Sc *sc, const Kernel *k, u32 role, const schedc_machine *machine);

// trace.c: the operations that a role instance runs in a tile, in order, as places in its code.
typedef struct Trace {
  const u32 *at;
  u32 n;
} Trace;
typedef struct Tracer {
  Sc *sc;
  Env env;
  const Code *code;
  bool **varying;  // by role and operation: does what is in its block depend on the round?
  const bool *varies;
  VEC(u32) at;
  u32 operations;  // of all traces
  u32 looks;       // rounds that the length of a tile has taken
} Tracer;
enum { SC_MOST_OPERATIONS = 1 << 21 };
void sc_tracer(Sc *sc, Tracer *t, const Kernel *k, const Binding *b);
// of the tile and instance that t->env says; unwinds (SCHEDC_ELIMIT) where all are too long
Trace sc_trace(Tracer *t, u32 role);
// do all instances of a role run the same operations?
bool sc_instances_alike(const Kernel *k, u32 role);
// how many products a tile takes, or copies where it has none, without going through the rounds
double sc_tile_products(Tracer *t);

enum { SC_MAX_CTAS = 16, SC_MAX_AGENTS = 256 };  // of a scene

// timeline.c: some tiles in a row, on one multiprocessor, or on those of a cluster.
typedef struct Scene {
  const Kernel *k;
  const schedc_machine *machine;
  Cost *const *cost;  // by role
  u32 ctas;           // that run side by side
  bool cluster;       // they are a cluster, each on a multiprocessor of its own
  double link;        // bytes of copies that a multiprocessor gets in a cycle, at most
  u32 tiles;
  const Trace *trace;  // of tile t, CTA c and agent a: [(t * ctas + c) * agents + a]
} Scene;
typedef struct Ran {
  double *end;              // of each tile, in cycles
  double busy[PIPE_COUNT];  // cycles in which pipes were in use, of all multiprocessors
  double bytes;             // to and from the L2 cache
  bool finished;            // no: the roles disagree, or wait for each other for ever
} Ran;
// The role instances of a CTA, in the order of roles.
u32 sc_agents(const Kernel *k);
Ran sc_timeline(Sc *sc, const Scene *scene);

// waves.c: a launch of a kernel.
typedef struct Forecast {
  double cycles;           // from its first to its last
  double ms;               // of a sequence's kernels
  double use[PIPE_COUNT];  // cycles in which pipes are used, of all multiprocessors
  double waves;
  double bytes;       // to and from the L2 cache
  double bytes_once;  // of its tensors
} Forecast;
// false: an error is reported
bool sc_predict_kernel(Sc *sc, const Kernel *k, const Binding *b, const schedc_machine *machine,
                       Forecast *out);

// forecast.c: a launch of a kernel or sequence.
schedc_status sc_predict(Sc *sc, const Kernel *k, const Binding *b, const schedc_machine *machine,
                         schedc_prediction *out);

#endif
