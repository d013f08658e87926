// cuda.c - the frame of an emitted kernel: what it is called with, barriers, one branch a warpgroup, the loop
// over tiles. In: a kernel after `place`, or a sequence of them. Out: self-contained CUDA C for sm_90a, to be built by
// NVRTC with no header. The text is meant to be read beside the schedule: each statement carries its line.
#include "cuda.h"

#include <stdlib.h>
#include <string.h>

void cu_line(Cuda *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  str_puts(&c->out, sc_vprintf(c->sc, fmt, ap));
  va_end(ap);
  str_puts(&c->out, "\n");
}

void cu_open(Cuda *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *s = sc_vprintf(c->sc, fmt, ap);
  va_end(ap);
  str_puts(&c->out, s);
  str_puts(&c->out, *s ? " {\n" : "{\n");
}

void cu_open_unrolled(Cuda *c, const char *var, i64 n) {
  cu_line(c, "#pragma unroll");
  cu_open(c, "for (int %s = 0; %s < %lld; %s++)", var, var, (long long)n, var);
}

void cu_close(Cuda *c) { str_puts(&c->out, "}\n"); }

// ---- names

static void names(Cuda *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->buf.n; i++) c->name[i] = sc_cuda_name(c->sc, k->buf.at[i].name);
  for (u32 i = 0; i < k->ring.n; i++) {
    c->ring[i] = k->ring.at[i].name;  // names formed of it are nobody else's, but for slot_parity
    if (cu_is_formed(c->ring[i]) || !strcmp(c->ring[i], "slot")) c->ring[i] = cu_text(c, "%s_", c->ring[i]);
    for (u32 j = 0; j < i; j++) {
      if (!strcmp(k->ring.at[j].name, k->ring.at[i].name)) c->ring[i] = cu_text(c, "%s_%u", k->ring.at[i].name, i);
    }
  }
}

// ---- statements

// What follows belongs to the role as a whole.
static void cite_role(Cuda *c) {
  const Role *role = &c->k->role.at[c->r];
  if (!c->k->text || role->span.hi <= role->span.lo) return;
  c->line = sc_line_col(c->k->text, role->span.lo).line;
  str_printf(&c->out, "#line %u  // role %s\n", c->line, role->name);
}

// The schedule's line for compiler, profiler and debugger, and for the reader as a comment beside it.
void cu_cite(Cuda *c, Span at) {
  const Text *text = c->k->text;
  if (!text || at.hi <= at.lo) return;
  u32 line = sc_line_col(text, at.lo).line;
  if (line == c->line) return;
  c->line = line;
  u32 lo = text->line[line - 1], hi = lo;
  while (hi < text->len && text->at[hi] != '\n' && text->at[hi] != '\r') hi++;
  while (lo < hi && text->at[lo] == ' ') lo++;
  for (u32 i = lo; i + 1 < hi; i++) {
    if (text->at[i] == '/' && text->at[i + 1] == '/') hi = i;
  }
  while (hi > lo && text->at[hi - 1] == ' ') hi--;
  str_printf(&c->out, "#line %u  // ", line);
  sc_cuda_comment(&c->out, text->at + lo, hi - lo);
  str_puts(&c->out, "\n");
}

static void open_for(Cuda *c, const Ins *ins) {
  const char *v = c->loop[ins->arg[0]], *lo = cu_uniform(c, ins->arg[1]), *hi = cu_uniform(c, ins->arg[2]);
  cu_line(c, "#pragma unroll 1");
  if (ins->flags & INS_REVERSED) cu_open(c, "for (int %s = %s - 1; %s >= %s; %s--)", v, cu_paren(c, cu_expr(c, NULL, ins->arg[2]), P_ADD), v, lo, v);
  else cu_open(c, "for (int %s = %s; %s < %s; %s++)", v, lo, v, hi, v);
}

static void statement(Cuda *c, const Ins *ins) {
  c->at = ins->span;
  if (ins->op == OP_ENDTILE) cite_role(c);
  else if (!(sc_op[ins->op].effects & CLOSES)) cu_cite(c, ins->span);
  switch ((Op)ins->op) {
    case OP_TILE: cu_open_tile(c); break;
    case OP_FOR: open_for(c, ins); break;
    case OP_IF: cu_open(c, "if (%s)", cu_uniform(c, ins->arg[0])); break;
    case OP_ELSE: cu_open(c, "} else"); break;
    case OP_ENDTILE: cu_close_tile(c); break;
    case OP_ENDVOTE:
      if (ins->plan.fence) cu_fence(c);
      cu_close(c);
      break;
    case OP_ENDFOR: case OP_ENDIF: cu_close(c); break;
    case OP_ACQUIRE: cu_acquire(c, ins); break;
    case OP_COPYIN: cu_copy_in(c, ins); break;
    case OP_COMMIT: cu_commit(c, ins); break;
    case OP_WAIT: cu_wait(c, ins); break;
    case OP_RELEASE: cu_release(c, ins); break;
    case OP_MMA: cu_mma(c, ins); break;
    case OP_MMAWAIT: cu_mma_wait(c, ins); break;
    case OP_MAP: case OP_MAPADD: cu_map(c, ins); break;
    case OP_COPYOUT: case OP_COPYADD: cu_copy_out(c, ins); break;
    case OP_COPYWAIT: cu_copy_wait(c, ins); break;
    case OP_TAKE: cu_take(c, ins); break;
    case OP_PASS: cu_pass(c, ins); break;
    case OP_VOTE: cu_vote(c, ins); break;
    case OP_MMAWARP: cu_mma_warp(c, ins); break;
    case OP_COUNT: break;
  }
}

// ---- roles

// The address of shared memory costs several instructions (in which window of its cluster a CTA is), and ptxas finds
// it anew in each iteration. What comes from a shuffle stays in a register, which only roles with products have to spare.
static bool multiplies(const Role *r) {
  for (u32 i = 0; i < r->code.n; i++) {
    if (r->code.at[i].op == OP_MMA) return true;
  }
  return false;
}

static void role(Cuda *c, u32 r) {
  const Role *role = &c->k->role.at[r];
  c->r = r;
  c->single = cu_single(c->k, role);
  cite_role(c);
  if (multiplies(role)) cu_line(c, "const u32 smem = __shfl_sync(~0u, (u32)__cvta_generic_to_shared(memory), 0);  // held: not found anew in loops");
  u32 at = c->out.n;
  c->head = true;
  cu_name_role(c);
  cu_cursors(c);
  cu_count_named(c);
  cu_first_turns(c);
  for (c->pc = 0; c->pc < role->code.n; c->pc++) {
    cu_declare(c);
    statement(c, &role->code.at[c->pc]);
  }
  cu_declare_thread(c, at);
}

static void roles(Cuda *c) {
  const Kernel *k = c->k;
  for (u32 wg = 0; wg < k->threads / 128; wg++) {
    bool opened = false;
    for (u32 r = 0; r < k->role.n; r++) {
      const Role *ro = &k->role.at[r];
      u32 first = ro->first_warp, last = first + cu_warps(ro) - 1;
      if (ro->warps == 4 && first / 4 != wg) continue;
      if (ro->warps == 1 && (first / 4 > wg || last / 4 < wg)) continue;
      if (!opened) {
        u32 end = ro->warps == 4 ? last / 4 : wg;
        if (end > wg) cu_open(c, "%sif (warpgroup >= %u && warpgroup <= %u)", wg ? "else " : "", wg, end);
        else cu_open(c, "%sif (warpgroup == %u)", wg ? "else " : "", wg);
        if (ro->regs) cu_line(c, "sc_setmaxnreg_%s<%u>();", ro->regs >= 65536 / k->threads / 8 * 8 ? "inc" : "dec", ro->regs);
        opened = true;
      }
      if (ro->warps == 1) {
        const char *lane = cu_single(k, ro) ? " && (threadIdx.x & 31) == 0" : "";
        if (ro->instances == 1) cu_open(c, "if (warp_of_cta == %u%s)", first, lane);
        else cu_open(c, "if (warp_of_cta >= %u && warp_of_cta <= %u%s)", first, last, lane);
      }
      role(c, r);
      if (ro->warps == 1) cu_close(c);
    }
    if (opened) cu_close(c);
  }
}

static void barriers(Cuda *c) {
  const Kernel *k = c->k;
  if (!k->ring.n && k->grid != GRID_DYNAMIC && cu_smem(c) == k->smem) return;
  cu_open(c, "if (threadIdx.x == 0)");
  for (u32 i = 0; i < c->tma.n; i++) cu_line(c, "sc_tma_prefetch(&map%u);", i);
  for (u32 i = 0; i < k->ring.n; i++) {
    const Ring *r = &k->ring.at[i];
    u32 copies = r->owner == SC_NONE ? 1 : k->role.at[r->owner].instances;
    for (u32 n = 0; n < copies; n++) {
      u32 at = r->barrier + n * 16 * r->stages;
      cu_line(c, "for (u32 s = 0; s < %u; s++) { sc_mbar_init(smem + %u + 8 * s, %u); sc_mbar_init(smem + %u + 8 * s, %u); }  // %s: full, empty",
              r->stages, at, r->full_count, at + 8 * r->stages, r->empty_count, c->ring[i]);  // (of all CTAs, where it is multicast)
    }
  }
  if (k->grid == GRID_DYNAMIC) {
    cu_line(c, "for (u32 s = 0; s < 2; s++) { sc_mbar_init(smem + %u + 8 * s, 1); sc_mbar_init(smem + %u + 8 * s, %u); }  // the next tile: full, empty",
            sc_slot_barriers(k), sc_slot_barriers(k) + 16, cu_slot_readers(k));
  }
  cu_init_named(c);
  cu_line(c, "sc_mbar_init_fence();");
  cu_close(c);
  if (sc_cluster(k) == 1) cu_line(c, "__syncthreads();");
  else cu_line(c, "sc_cluster_sync();");
}

// ---- the text

static void args(Cuda *c, Str *out) {
  const Kernel *k = c->k;
  str_printf(out, "struct %s_args {\n", c->function);
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space != SP_TENSOR || !c->by_thread[i]) continue;
    const char *type = b->elem == EL_F32 ? "float" : b->elem == EL_I32 ? "int" : sc_elem[b->elem].bytes == 2 ? "u16" : "unsigned char";
    str_printf(out, "  %s *%s;  // %s\n  long long %s_stride[%u];  // elements\n", type, c->name[i], sc_elem[b->elem].text, c->name[i], b->rank);
  }
  for (u32 i = 0; i < k->dim.n; i++) str_printf(out, "  int %s;\n", sc_cuda_name(c->sc, k->dim.at[i].name));
  for (u32 i = 0; i < k->arg.n; i++) str_printf(out, "  %s %s;\n", k->arg.at[i].elem == EL_I32 ? "int" : "float", sc_cuda_name(c->sc, k->arg.at[i].name));
  if (k->grid == GRID_DYNAMIC) str_puts(out, "  int *counter;  // of drawn tiles; 0 between launches\n");
  for (u32 i = 0; i < k->turn.n; i++) {
    if (sc_turn_over_ctas(&k->turn.at[i])) str_printf(out, "  int *turn%u;  // %s: how often it was passed on; 0 at launch\n", i, k->turn.at[i].name);
  }
  if (c->options.debug_waits) str_puts(out, "  u32 *waits;  // what is told of those that were given up\n");
  str_puts(out, "  int tiles;\n};\n\n");
}

static void head(Str *out, const Kernel *k) {
  str_printf(out, "// %s, emitted by schedc from ", k->name);
  sc_cuda_origin(out, k);
  for (u32 i = 0; i < k->launch.n; i++) str_printf(out, "%s%s", i ? ", " : "\n// Its kernels, to be launched in this order: ", k->launch.at[i].kernel->name);
  str_puts(out, "\n// sm_90a; no header is needed. `#line` and the comment beside it give the schedule's lines.\n\n"
                "typedef unsigned short u16;\ntypedef unsigned int u32;\ntypedef unsigned long long u64;\n"
                "#define DEV static __device__ __forceinline__\n#define SC_INF __int_as_float(0x7f800000)\n"
                "struct __align__(64) TensorMap { u64 x[16]; };\n");
}

static const char *kernel_params(Cuda *c) {
  Str s = {.sc = c->sc};
  for (u32 i = 0; i < c->tma.n; i++) {
    const TmaMap *m = &c->tma.at[i];
    str_printf(&s, "const __grid_constant__ TensorMap map%u /* %s as %s */, ", i, c->k->buf.at[m->tensor].name, c->k->buf.at[m->part].name);
  }
  str_printf(&s, "const __grid_constant__ struct %s_args a", c->function);
  return s.at;
}

static Cuda *open_cuda(Sc *sc, const Kernel *k, const CudaOptions *options, WgmmaSet *wgmma) {
  Cuda *c = NEW(sc, Cuda);
  c->out.sc = c->sc = sc;
  c->k = k;
  c->options = *options;
  c->wgmma = wgmma;
  c->function = sc_cuda_name(sc, k->name);
  c->wide = NEWS(sc, bool, k->buf.n + 1);
  c->permuted = NEWS(sc, bool, k->buf.n + 1);
  c->name = NEWS(sc, const char *, k->buf.n + 1);
  c->layout = NEWS(sc, u8, k->buf.n + 1);
  c->by_thread = NEWS(sc, bool, k->buf.n + 1);
  c->xname = NEWS(sc, const char *, k->expr.n + 1);
  c->xused = NEWS(sc, bool, k->expr.n + 1);
  c->loop = NEWS(sc, const char *, k->loop.n + 1);
  c->let = NEWS(sc, const char *, k->let.n + 1);
  c->scope = NEWS(sc, Scope, k->buf.n + 1);
  c->declared = NEWS(sc, bool, k->buf.n + 1);
  c->ring = NEWS(sc, const char *, k->ring.n + 1);
  names(c);
  cu_layouts(c);
  return c;
}

static void body(Cuda *c) {
  u32 ctas = sc_cluster(c->k);
  if (ctas > 1) {
    cu_line(c, "const int cta_rank = sc_cta_rank(), tile0 = blockIdx.x / %u%s;", ctas,
            cu_one_tile(c->k) ? "" : cu_text(c, ", tile_step = gridDim.x / %u", ctas));
  } else {
    cu_line(c, cu_one_tile(c->k) ? "const int tile0 = blockIdx.x;" : "const int tile0 = blockIdx.x, tile_step = gridDim.x;");
  }
  Str first = c->out;
  c->out = (Str){.sc = c->sc};
  roles(c);
  if (ctas > 1) cu_line(c, "sc_cluster_sync();  // no CTA leaves while another may still arrive on its barriers");
  Str rest = c->out;
  c->out = first;
  barriers(c);  // now that it is known which tensor maps there are
  str_put(&c->out, rest.at, rest.n);
}

// A kernel's function, with the struct of its arguments before it. False after reports.
static bool function(Str *out, const Kernel *k, const CudaOptions *options, WgmmaSet *wgmma, CudaText *t) {
  Cuda *c = open_cuda(out->sc, k, options, wgmma);
  u32 ctas = sc_cluster(k);
  if (!cu_check(c)) return false;
  body(c);
  *t = (CudaText){.name = c->function, .maps = c->tma.n, .map = c->tma.at, .by_thread = c->by_thread, .wide = c->wide};
  t->smem = cu_smem(c);
  t->named = cu_named(k);
  t->site = c->site.at;
  t->sites = c->site.n;
  if (options->debug_waits) t->wait_words = WAIT_WORDS * (1 + c->site.n * (k->threads / 32));
  str_puts(out, "\n");
  args(c, out);
  cu_put_place(c, out);
  if (k->text) {
    str_printf(out, "#line %u ", sc_line_col(k->text, k->span.lo).line);
    sc_cuda_string(out, k->text->name);
    str_puts(out, "\n");
  }
  str_printf(out, "extern \"C\" __global__ void __launch_bounds__(%u, 1) %s%s(%s) {\n", k->threads,
             ctas > 1 ? sc_printf(c->sc, "__cluster_dims__(%u, 1, 1) ", ctas) : "", c->function, kernel_params(c));
  str_puts(out, "  extern __shared__ __align__(1024) unsigned char memory[];\n"
                "  const u32 smem = (u32)__cvta_generic_to_shared(memory);\n"
                "  const int warp_of_cta = __shfl_sync(~0u, threadIdx.x / 32, 0), warpgroup = warp_of_cta / 4;\n");
  cu_put_code(out, c->out.at, 1);
  str_puts(out, "}\n");
  return true;
}

// A sequence's kernels, each once.
static bool functions(Str *out, const Kernel *k, const CudaOptions *options, WgmmaSet *wgmma, CudaText *t) {
  CudaText **step = NEWS(out->sc, CudaText *, k->launch.n);
  bool ok = true;
  for (u32 i = 0; i < k->launch.n; i++) {
    for (u32 j = 0; j < i && !step[i]; j++) {
      if (k->launch.at[j].kernel == k->launch.at[i].kernel) step[i] = step[j];
    }
    if (step[i]) continue;
    step[i] = NEW(out->sc, CudaText);
    ok &= function(out, k->launch.at[i].kernel, options, wgmma, step[i]);
  }
  *t = (CudaText){.name = sc_cuda_name(out->sc, k->name), .step = step};
  return ok;
}

CudaText *sc_cuda(Sc *sc, const Kernel *k, const CudaOptions *options) {
  CudaText *t = NEW(sc, CudaText);
  WgmmaSet wgmma = {0};
  Str out = {.sc = sc}, code = {.sc = sc};
  if (!(k->launch.n ? functions : function)(&code, k, options, &wgmma, t)) return NULL;
  head(&out, k);
  cu_put_prims(&out, code.at);
  cu_put_wgmma(&out, &wgmma);
  str_put(&out, code.at, code.n);
  t->text = out;
  return t;
}

// A statement of the schedule becomes several lines; each gets the statement's number, where a person needs it once.
const char *sc_cuda_lined(Sc *sc, const CudaText *t) {
  Str out = {.sc = sc};
  u32 line = 0;
  for (const char *p = t->text.at, *end; *p; p = end) {
    end = p + strcspn(p, "\n");
    end += *end == '\n';
    const char *word = p + strspn(p, " ");
    bool directive = !strncmp(word, "#line ", 6);
    if (line && !directive) str_printf(&out, "#line %u\n", line);
    if (directive) line = (u32)strtoul(word + 6, NULL, 10);
    str_put(&out, p, (size_t)(end - p));
  }
  return out.at;
}

void sc_print_cuda(Str *out, const Kernel *k) {
  const CudaText *t = sc_cuda(out->sc, k, &(CudaOptions){0});
  if (t) str_put(out, t->text.at, t->text.n);
}
