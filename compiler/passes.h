// passes.h - what the stages of the compiler say to each other, in the order of the pipeline: for
// each pass its entry function, then what the emitter tells the runtime about a kernel's text, then
// the pipeline itself. Errors are diagnostics in `sc`; a pass that reported any returns false (or
// NULL), and the pipeline stops there.
#ifndef SC_PASSES_H
#define SC_PASSES_H

#include "lang/ast.h"
#include "compiler/ir/ir.h"

// What the caller chose: parameters by name, over those of a case (NULL: none), over the defaults.
typedef struct Choice {
  // kernel or sequence; NULL: the last sequence, else the only or the last kernel
  const char *unit;
  const char *case_name;  // whose parameters apply; NULL: none
  const schedc_param *param;
  u32 params;
} Choice;

// lower/   AST, choice -> kernel with its declarations: parameters, dimensions, tensors, rings …
//          … and its code: names resolved, defs expanded, types and extents checked (R9)
Kernel *sc_lower(Sc *sc, const Ast *ast, const Choice *choice);

// lower/space.c  … and which of its params, and of its kernels', say what is computed
void sc_tell_params(Sc *sc, const Ast *ast, Kernel *k);

// layout/  which thread holds which element, the panels of stages, how statements move elements
bool sc_lay_out(Sc *sc, Kernel *k);

// flow/derive.c  barrier counts, bytes, wait-group numbers, fences, syncs (Plan, Ring.full_count)
bool sc_derive(Sc *sc, Kernel *k);

// flow/    R1-R5, R7 within each role, by data flow to a fixed point: every path, every trip count
bool sc_flow(Sc *sc, Kernel *k);

// target/  G.emit: what the instructions of sm_90a cannot carry
bool sc_target(Sc *sc, Kernel *k);

// place/   R8: shared-memory map, barriers, registers, threads
bool sc_place(Sc *sc, Kernel *k);
// Those parts of it that need little, for sc_probe: stages and warps of a kernel that is lowered;
// tiles that are laid out, but for what is in flight. What they refuse, sc_place refuses.
bool sc_stages_fit(Sc *sc, Kernel *k);
bool sc_tiles_fit(Sc *sc, Kernel *k);

// Registers of a thread that code can use (255 at most): at launch, by the launch bounds; and in a
// role, which may ask for its own number.
u32 sc_entry_registers(const Kernel *k);
u32 sc_thread_registers(const Kernel *k, const Role *r);

// verify/  what is proved of all roles together, for every trip count; what is not, is reported
const struct Certificate *sc_verify(Sc *sc, const Kernel *k);
// The same with the stages that rings need, and without the warning.
const struct Certificate *sc_certify(Sc *sc, const Kernel *k);
// Of a kernel that `target` or `place` refuses: witnesses against waits and counts.
void sc_verify_waits(Sc *sc, const Kernel *k);

// emit/    … -> CUDA C for sm_90a, and what a launcher needs to call it
//
// A tensor map: how the copy engine sees a tensor for copies of one box.
typedef struct TmaMap {
  u32 tensor;
  u32 part;  // the stage part that gives the box
  // multicast: the CTAs among which a copy is split, by panels or else by rows; 1 if not
  u32 ctas;
  u8 sliced[SC_MAX_RANK];  // 1: this dimension of the tensor is sliced
  bool whole;              // one copy brings all panels of a stage; else one copy a panel
} TmaMap;
// A wait that --debug-waits bounds.
typedef enum WaitKind {
  WAIT_FULL,   // a ring's full barrier: a fill is awaited
  WAIT_EMPTY,  // a ring's empty barrier: a release is awaited
  // the same of the slots through which a dynamic grid's tiles are handed on
  WAIT_TILE_FULL,
  WAIT_TILE_EMPTY,
  WAIT_TURN,      // a turn over instances: a named barrier
  WAIT_CTA_TURN,  // a turn over CTAs: a counter
  WAIT_SYNC       // the other warps of the instance: a named barrier
} WaitKind;
typedef struct WaitSite {
  u32 role, ref;  // ref: ring or turn
  u8 kind;
  Span span;
} WaitSite;
typedef struct CudaOptions {
  // no wait is for ever: what is given up is written to `waits`, and the role goes on
  bool debug_waits;
} CudaOptions;
// `waits` has entries of as many words: the first says whether any other is in use, then each site
// has one for each warp of a CTA: CTA + 1 (0: not in use), thread, the barrier's address in shared
// memory (WAIT_CTA_TURN: what the counter was), and the generation that was awaited: the barrier's
// first is 0.
enum { WAIT_WORDS = 4 };
typedef struct CudaText {
  const char *name;  // of the kernel function
  Str text;
  // of a sequence, by launch: what follows, which a sequence itself has not; no text
  struct CudaText *const *step;
  u32 maps;  // parameters: the maps, then the struct of arguments
  const TmaMap *map;
  // by buf: tensors in the struct, each a pointer and its strides; then dims, scalars, the counter
  // of a dynamic grid, one a turn over CTAs, the waits, the number of tiles
  const bool *by_thread;
  const bool *wide;  // by buf: threads access it by 16 bytes
  // dynamic shared memory, bytes: the kernel's, and what debug_waits adds for named barriers
  u32 smem;
  u32 named;  // where that begins, 8 bytes for each
  const WaitSite *site;
  u32 sites;
  u32 wait_words;  // of `waits`; 0: there is no such argument
} CudaText;
// A sequence's kernels become one text. NULL: the emitter cannot write this (reports).
CudaText *sc_cuda(Sc *sc, const Kernel *k, const CudaOptions *options);
// A dynamic grid's slot for a tile drawn: its number and its place along each axis, in vectors of
// 16 bytes.
static inline u32 sc_slot_bytes(const Kernel *k) { return (k->axis.n + 4) / 4 * 16; }

// The function that holds lists against what is promised of them (emit/lists.c), in the text of
// each kernel or sequence that has such lists.
#define CUDA_LISTS "sc_check_lists"
enum { CUDA_LIST_THREADS = 256 };
// Does the declaration say what the elements are?
static inline bool sc_is_promised(const Buf *b) {
  return b->space == SP_TENSOR && b->dir == F_IN && (b->end || b->rising);
}

// Where the two slots' barriers are: two full, two empty.
static inline u32 sc_slot_barriers(const Kernel *k) { return k->draw + 2 * sc_slot_bytes(k); }

// for NVRTC: with `#line` before every line of the kernel
const char *sc_cuda_lined(Sc *sc, const CudaText *t);
// an identifier of C++ for it, different ones for different names
const char *sc_cuda_name(Sc *sc, Sym name);
void sc_cuda_comment(Str *out, const char *at, size_t n);  // inside a comment, of either kind
void sc_cuda_origin(Str *out, const Kernel *k);            // file and parameters, inside a comment
// The dimensions of a tensor map, innermost first, as the tensor's dimensions or these two:
enum { MAP_PANEL_COL = -1, MAP_PANEL = -2 };
u32 sc_cuda_map_dims(const TmaMap *m, u32 rank, i8 to[5]);

// pipeline.c: what a compilation has so far. Each stage makes its part from those before it.
typedef struct Compilation {
  const Text *text;  // given
  const Ast *ast;    // ast
  Choice choice;     // given, for lower
  const Kernel *k;   // lower; then annotated up to place, and immutable from there on
  // verify: of the kernel, or of each kernel of a sequence, in order of launch
  VEC(const struct Certificate *) certificate;
  CudaOptions emission;  // given, for cuda
  CudaText *cuda;        // cuda
  // Given, for cubin: builds c->cuda, which the layer above knows how to do. False after reports.
  bool (*assemble)(Sc *sc, struct Compilation *c);
  void *assembler;   // what `assemble` needs
  const void *code;  // cubin
  size_t code_bytes;
} Compilation;
// A stage: of the whole, or (`each`) over every kernel of a sequence.
typedef struct Pass {
  const char *name;  // what --emit names
  const char *what;  // one line for --help
  bool (*run)(Sc *sc, Compilation *c);
  bool (*each)(Sc *sc, Kernel *k);
  void (*dump)(Str *out, const Compilation *c);
} Pass;
extern const Pass sc_pipeline[];        // in order; ends with a NULL name
const Pass *sc_pass(const char *name);  // NULL: there is none
// The stages after `have` (NULL: from the first) up to and with `to`. False after errors.
bool sc_compile(Sc *sc, Compilation *c, const char *have, const char *to);
// The stages from `lower` to `place` for those who only want to know whether there is an error:
// what refuses most and costs least comes first.
bool sc_probe(Sc *sc, Compilation *c);
void sc_print_layout(Str *out, const Kernel *k);  // layout/print.c: tiles, stages, moves
// place/print.c: shared memory, registers, barriers
void sc_print_place(Str *out, const Kernel *k);
// verify/certificate.c: statement by statement
void sc_print_certificate(Str *out, const struct Certificate *certificate);

#endif
