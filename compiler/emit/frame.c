// frame.c - the frame of an emitted kernel: its arguments, its barriers, one branch for each role,
// and in it the loop over tiles. In: a kernel after `place`, or a sequence of them. Out:
// self-contained CUDA C for sm_90a, which NVRTC builds without any header. The text is meant to be
// read beside the schedule: each statement cites its line.
//
// Calls the files of statements (grid.c, copy.c, ring.c, mma.c, map.c, compiler_fence.c), lists.c,
// and those below them.
#include "compiler/emit/emit.h"
#include "compiler/place/place.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// ---- names

// Where the stages of a ring's parts begin: k_stage; ab_a_stage and ab_b_stage of a ring `ab` of
// two tiles.
static void stage_names(Cuda *c, u32 ring) {
  const Ring *r = &c->k->ring.at[ring];
  for (u32 i = r->part0; i < r->part0 + r->parts; i++) {
    c->name[i] = r->parts == 1 ? cu_text(c, "%s_stage", c->ring[ring])
                               : cu_text(c, "%s_%s_stage", c->ring[ring], c->k->buf.at[i].name);
    for (u32 j = 0; j < c->k->buf.n; j++) {
      if (j != i && !strcmp(c->name[j], c->name[i]))
        c->name[i] = cu_text(c, "%s_%u", c->name[i], i);
    }
    cu_name(c, c->name[i]);
  }
}

static void names(Cuda *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->buf.n; i++) c->name[i] = sc_cuda_name(c->sc, k->buf.at[i].name);
  for (u32 i = 0; i < k->ring.n; i++) {
    c->ring[i] = k->ring.at[i].name;  // names formed of it are nobody else's, but for slot_parity
    if (cu_is_formed(c->ring[i]) || !strcmp(c->ring[i], "slot"))
      c->ring[i] = cu_text(c, "%s_", c->ring[i]);
    for (u32 j = 0; j < i; j++) {
      if (!strcmp(k->ring.at[j].name, k->ring.at[i].name))
        c->ring[i] = cu_text(c, "%s_%u", k->ring.at[i].name, i);
    }
    stage_names(c, i);
    cu_name(c, cu_text(c, "%s_bytes", c->ring[i]));
    cu_name(c, cu_text(c, "%s_vectors", c->ring[i]));
  }
  static const char *const own[] = {"smem", "warpgroup", "tile0", "tile_step"};
  for (u32 i = 0; i < COUNT(own); i++) cu_name(c, own[i]);
  cu_name(c, cu_text(c, "%s_place_of", c->function));
  c->of_role = true;
}

// ---- statements

static bool orders_itself(Op op) {
  return op == OP_MMA || op == OP_COMMIT || op == OP_RELEASE || op == OP_VOTE;
}

static void operation(Cuda *c, const Ins *ins) {
  switch ((Op)ins->op) {
    case OP_TILE: cu_open_tile(c); break;
    case OP_FOR:
      c->loops++;
      cu_open_loop(c, ins);
      break;
    case OP_IF:
      cu_mma_early(c, ins);
      cu_open_if(c, ins);
      break;
    case OP_ELSE: cu_else(c, "else"); break;
    case OP_ENDTILE:
      cu_keep_operands(c);
      cu_close_tile(c);
      break;
    case OP_ENDFOR:
      c->loops--;
      cu_close_loop(c, &c->k->role.at[c->r].code.at[ins->nest]);
      break;
    case OP_ENDIF:
    case OP_ENDVOTE: cu_close(c); break;
    case OP_ACQUIRE: cu_acquire(c, ins); break;
    case OP_COPYIN: cu_copy_in(c, ins); break;
    case OP_COMMIT: cu_commit(c, ins); break;
    case OP_WAIT: cu_wait(c, ins); break;
    case OP_RELEASE: cu_release(c, ins); break;
    case OP_MMA: cu_mma(c, ins); break;
    case OP_MMAWAIT: cu_mma_wait(c, ins); break;
    case OP_MAP:
    case OP_MAPADD: cu_map(c, ins); break;
    case OP_COPYOUT:
    case OP_COPYADD: cu_copy_out(c, ins); break;
    case OP_COPYWAIT: cu_copy_wait(c, ins); break;
    case OP_TAKE: cu_take(c, ins); break;
    case OP_PASS: cu_pass(c, ins); break;
    case OP_VOTE: cu_vote(c, ins); break;
    case OP_MMAWARP: cu_mma_warp(c, ins); break;
    case OP_COUNT: break;
  }
}

static void statement(Cuda *c, const Ins *ins) {
  c->at = ins->span;
  if (!(sc_op[ins->op].effects & CLOSES)) cu_cite(c, ins->span);
  c->ordered = false;
  if (!orders_itself(ins->op)) cu_order(c, ins, NULL);
  cu_fence_unfenced(c, ins);
  operation(c, ins);
  assert(c->ordered || (!ins->plan.fence && !ins->plan.sync));
}

// ---- roles

// Does the role issue products? Then it has a register to spare for the address of shared memory.
// That address costs several instructions, as it depends on the CTA's place in its cluster, and
// ptxas computes it again in each iteration, unless it comes from a shuffle.
static bool multiplies(const Role *r) {
  for (u32 i = 0; i < r->code.n; i++) {
    if (r->code.at[i].op == OP_MMA) return true;
  }
  return false;
}

static void role(Cuda *c, u32 r) {
  const Role *role = &c->k->role.at[r];
  c->r = r;
  c->pc = 0;
  c->single = sc_is_single(c->k, role);
  cu_cite_role(c);
  if (multiplies(role)) {
    cu_var(c, "const u32 smem = sc_of_lane0(sc_shared(memory));");
    cu_note(c, "held: not found anew in loops");
  }
  Stmt *head = c->block->last;
  memset(c->sum, 0, sizeof *c->sum * c->k->buf.n);  // a role's text may stand in several warpgroups
  cu_find_unfenced(c);
  cu_name_role(c);
  cu_share(c);
  cu_cursors(c);
  cu_count_named(c);
  cu_first_turns(c);
  for (c->pc = 0; c->pc < role->code.n; c->pc++) {
    cu_declare(c);
    cu_next_tile(c);
    statement(c, &role->code.at[c->pc]);
  }
  cu_declare_thread(c, head);
}

static void warp_role(Cuda *c, u32 r) {
  const Role *ro = &c->k->role.at[r];
  u32 first = ro->first_warp, last = first + cu_warps(ro) - 1;
  const char *lane = sc_is_single(c->k, ro) ? " && (threadIdx.x & 31) == 0" : "";
  if (ro->instances == 1) cu_open(c, "if (warp_of_cta == %u%s)", first, lane);
  else cu_open(c, "if (warp_of_cta >= %u && warp_of_cta <= %u%s)", first, last, lane);
  role(c, r);
  cu_close(c);
}

static bool in_warpgroup(const Role *r, u32 wg) {
  u32 first = r->first_warp, last = first + cu_warps(r) - 1;
  return first / 4 <= wg && wg <= last / 4;
}

// The first warpgroup after this one that has other roles.
static u32 same_roles(const Kernel *k, u32 wg) {
  u32 next = wg + 1;
  for (; next < k->threads / 128; next++) {
    for (u32 r = 0; r < k->role.n; r++)
      if (in_warpgroup(&k->role.at[r], wg) != in_warpgroup(&k->role.at[r], next)) return next;
  }
  return next;
}

// Writes the roles: one branch for all warpgroups that have the same ones.
static void roles(Cuda *c) {
  const Kernel *k = c->k;
  u32 groups = k->threads / 128, next;
  for (u32 wg = 0; wg < groups; wg = next) {
    bool opened = false;
    next = same_roles(k, wg);
    for (u32 r = 0; r < k->role.n; r++) {
      const Role *ro = &k->role.at[r];
      if (!in_warpgroup(ro, wg)) continue;
      if (!opened) {
        const char *test = next == wg + 1 ? cu_text(c, "$warpgroup == %u", wg)
                                          : cu_text(c, "$warpgroup <= %u", next - 1);
        if (!wg && next == groups) cu_open_scope(c);
        else if (!wg) cu_open(c, "if (%s)", test);
        else if (next < groups) cu_else(c, "else if (%s)", test);
        else cu_else(c, "else");
        if (ro->regs)
          cu_line(c, "sc_setmaxnreg_%s<%u>();", ro->regs >= sc_entry_registers(k) ? "inc" : "dec",
                  ro->regs);
        opened = true;
      }
      if (ro->warps == 4) role(c, r);
      else warp_role(c, r);
    }
  }
  cu_close(c);
}

// ---- shared memory

// "f16[64, 64]", or "{ a : f16[64, 64], b : f16[256, 64] } * 4".
static const char *ring_type(Cuda *c, const Ring *r) {
  Str s = {.sc = c->sc};
  for (u32 i = r->part0; i < r->part0 + r->parts; i++) {
    const Buf *b = &c->k->buf.at[i];
    if (r->parts > 1) str_printf(&s, "%s%s : ", i > r->part0 ? ", " : "{ ", b->name);
    str_printf(&s, "%s[", sc_elem[b->elem].text);
    for (u32 d = 0; d < b->rank; d++) str_printf(&s, d ? ", %lld" : "%lld", (long long)b->ext[d]);
    str_puts(&s, "]");
  }
  if (r->parts > 1) str_puts(&s, " }");
  if (r->stages > 1) str_printf(&s, " * %u", r->stages);
  return s.at;
}

static void ring_offsets(Cuda *c, u32 ring) {
  const Ring *r = &c->k->ring.at[ring];
  const char *name = c->ring[ring], *bytes = cu_text(c, "%s_bytes", name),
             *vectors = cu_text(c, "%s_vectors", name);
  Str line = {.sc = c->sc};
  for (u32 i = r->part0; i < r->part0 + r->parts; i++) {
    if (cu_used(c, c->name[i]))
      str_printf(&line, "%s = %u, ", c->name[i], r->offset + c->k->buf.at[i].offset);
  }
  if (cu_used(c, bytes)) str_printf(&line, "%s = %u, ", bytes, r->stage_bytes);
  if (cu_used(c, vectors)) str_printf(&line, "%s = %u, ", vectors, r->vector_bytes);
  cu_var(c, "constexpr u32 %s%s_full = %u, %s_empty = %u;", line.n ? line.at : "", name, r->barrier,
         name, sc_barriers_at(r, 0, false));
  cu_note(c, ring_type(c, r));
}

// Writes constants for the offsets of everything in shared memory.
static void offsets(Cuda *c) {
  const Kernel *k = c->k;
  if (k->ring.n || k->grid == GRID_DYNAMIC)
    cu_remark(c,
              "// shared memory: of each ring its first stage, a stage's bytes, its full and its "
              "empty barriers");
  for (u32 i = 0; i < k->ring.n; i++) ring_offsets(c, i);
  if (k->grid == GRID_DYNAMIC && cu_slot_readers(k)) {
    u32 full = sc_slot_barriers(k);
    cu_var(c, "constexpr u32 slot_stage = %u, slot_bytes = %u, slot_full = %u, slot_empty = %u;",
           k->draw, sc_slot_bytes(k), full, full + 16);
    cu_note(c, "tiles to come * 2");
  }
  if (cu_smem(c) > k->smem) {
    cu_var(c, "constexpr u32 named_bars = %u;", cu_named(k));
    cu_note(c, "mbarriers for named barriers, by their numbers");
  }
}

static void barriers(Cuda *c) {
  const Kernel *k = c->k;
  if (!k->ring.n && k->grid != GRID_DYNAMIC && cu_smem(c) == k->smem) return;
  cu_open(c, "if (threadIdx.x == 0)");
  for (u32 i = 0; i < c->tma.n; i++) cu_line(c, "sc_tma_prefetch(&%s);", cu_map_name(c, i));
  for (u32 i = 0; i < k->ring.n; i++) {
    const Ring *r = &k->ring.at[i];
    for (u32 n = 0; n < sc_ring_copies(k, r); n++) {
      const char *at = n ? cu_text(c, "%s_full + %u", c->ring[i], n * 16 * r->stages)
                         : cu_text(c, "%s_full", c->ring[i]);
      cu_line(c, "sc_ring_init($smem + %s, %u, %u, %u);", at, r->stages, r->full_count,
              r->empty_count);
    }
  }
  if (k->grid == GRID_DYNAMIC && cu_slot_readers(k))
    cu_line(c, "sc_ring_init($smem + slot_full, 2, 1, %u);", cu_slot_readers(k));
  cu_init_named(c);
  cu_line(c, "sc_mbar_init_fence();");
  cu_close(c);
  if (sc_cluster(k) == 1) cu_line(c, "sc_cta_sync();");
  else cu_line(c, "sc_cluster_sync();");
}

// ---- the text

static void head(Str *out, const Kernel *k) {
  Str top = {.sc = out->sc}, order = top;
  str_printf(&top, "// %s, emitted by schedc from ", k->name);
  sc_cuda_origin(&top, k);
  for (u32 i = 0; i < k->launch.n; i++)
    str_printf(&order, "%s%s", i ? ", " : "// Its kernels, to be launched in this order: ",
               k->launch.at[i].kernel->name);
  cu_put_remark(out, 0, top.at);
  if (k->launch.n) cu_put_remark(out, 0, order.at);
  str_puts(out,
           "// sm_90a; no header is needed. `#line` and the comment beside it give the schedule's "
           "lines, numbers in brackets\n"
           "// the sections of the PTX ISA 9.0.\n\n");
}

static void signature(Cuda *c, Str *out) {
  u32 ctas = sc_cluster(c->k);
  str_printf(out, "extern \"C\" __global__ void __launch_bounds__(%u, 1)%s\n%s(", c->k->threads,
             ctas > 1 ? sc_printf(c->sc, " __cluster_dims__(%u, 1, 1)", ctas) : "", c->function);
  for (u32 i = 0; i < c->tma.n; i++) {
    const Buf *part = &c->k->buf.at[c->tma.at[i].part];
    const Ring *r = &c->k->ring.at[part->ring];
    str_printf(out, "const __grid_constant__ TensorMap %s,  // for stages of %s%s%s\n%*s",
               cu_map_name(c, i), r->name, r->parts > 1 ? "." : "", r->parts > 1 ? part->name : "",
               (int)strlen(c->function) + 1, "");
  }
  str_printf(out, "const __grid_constant__ %s_args args) {\n", c->function);
}

static Cuda *open_cuda(Sc *sc, const Kernel *k, const CudaOptions *options, WgmmaSet *wgmma) {
  Cuda *c = NEW(sc, Cuda);
  c->sc = sc;
  c->k = k;
  c->options = *options;
  c->wgmma = wgmma;
  c->function = sc_cuda_name(sc, k->name);
  c->wide = NEWS(sc, bool, k->buf.n + 1);
  c->read_move = NEWS(sc, u8, k->view.n + 1);
  c->name = NEWS(sc, const char *, k->buf.n + 1);
  c->by_thread = NEWS(sc, bool, k->buf.n + 1);
  c->xname = NEWS(sc, const char *, k->expr.n + 1);
  c->hoist = NEWS(sc, Hoist, k->expr.n + 1);
  c->loop = NEWS(sc, const char *, k->loop.n + 1);
  c->use = NEWS(sc, Use, k->expr.n + 1);
  c->kept_of = NEWS(sc, u32, k->loop.n + 1);
  c->opened = NEWS(sc, u32, k->loop.n + 1);
  c->scope = NEWS(sc, Scope, k->buf.n + 1);
  c->declares_next = NEWS(sc, u32, k->buf.n + 1);
  c->sum = NEWS(sc, QuadSum, k->buf.n + 1);
  c->ring = NEWS(sc, const char *, k->ring.n + 1);
  c->below = x_below(sc, k);
  c->always = sc_facts(sc, k);
  c->here = sc_facts(sc, k);
  c->sign = NEWS(sc, i8, k->expr.n + 1);
  c->compared = cu_find_compared(sc, k);
  names(c);
  return c;
}

// A block, not yet placed in the text, that holds what `write` writes.
static Stmt *block_of(Cuda *c, void (*write)(Cuda *)) {
  Stmt *written = cu_begin(c);
  write(c);
  cu_close(c);
  return written;
}

// A grid of at most so many CTAs leaves multiprocessors free for the next launch. To let that one
// begin early costs 2 to 4 % where there are more CTAs, on an H200.
enum { FEW_CTAS = 64 };

// Writes what a kernel of a sequence does before it touches a tensor. All threads wait for the
// launch before: then the launch after this one, which waits for this one alone, sees the results
// of all earlier launches.
static void neighbours(Cuda *c) {
  if (c->k->follows) {
    cu_line(c, "sc_grid_wait();");
    cu_note(c, "the launch before may not have ended");
  }
  if (c->k->precedes) cu_line(c, "if (gridDim.x <= %d) sc_grid_go();", FEW_CTAS);
}

static void body(Cuda *c) {
  u32 ctas = sc_cluster(c->k);
  Stmt *code = block_of(c, roles),
       *init = block_of(c, barriers);  // in this order: roles say which tensor maps there are
  if (init->first || cu_used(c, "smem")) {
    cu_var(c, "extern __shared__ __align__(1024) unsigned char memory[];");
    cu_var(c, "const u32 smem = sc_shared(memory);");
    offsets(c);
    cu_remark(c, "");
  }
  cu_var(c, "const int warp_of_cta = sc_of_lane0(threadIdx.x / 32);");
  if (cu_used(c, "warpgroup")) cu_var(c, "const int warpgroup = warp_of_cta / 4;");
  if (ctas > 1) cu_var(c, "const int cta_rank = sc_cta_rank();");
  const char *clusters = ctas > 1 ? cu_text(c, " / %u", ctas) : "";
  if (cu_used(c, "tile0")) cu_var(c, "const int tile0 = blockIdx.x%s;", clusters);
  if (cu_used(c, "tile_step")) cu_var(c, "const int tile_step = gridDim.x%s;", clusters);
  cu_insert(c, c->block->last, init);
  neighbours(c);
  cu_remark(c, "");
  cu_insert(c, c->block->last, code);
  if (ctas == 1) return;
  cu_line(c, "sc_cluster_sync();");
  cu_note(c, "no CTA leaves while another may still arrive on its barriers");
}

// Writes a kernel's function, with the struct of its arguments before it. False: errors are
// reported.
static bool function(Str *out, const Kernel *k, const CudaOptions *options, WgmmaSet *wgmma,
                     CudaText *t) {
  Cuda *c = open_cuda(out->sc, k, options, wgmma);
  if (!cu_memory_fits(c)) return false;
  const Stmt *code = block_of(c, body);
  *t = (CudaText){.name = c->function,
                  .maps = c->tma.n,
                  .map = c->tma.at,
                  .by_thread = c->by_thread,
                  .wide = c->wide};
  t->smem = cu_smem(c);
  t->named = cu_named(k);
  t->site = c->site.at;
  t->sites = c->site.n;
  if (options->debug_waits) t->wait_words = WAIT_WORDS * (1 + c->site.n * (k->threads / 32));
  str_puts(out, "\n");
  if (!cu_put_args(c, out)) return false;
  if (cu_used(c, cu_text(c, "%s_place_of", c->function))) cu_put_place(c, out);
  cu_put_line(out, k);
  signature(c, out);
  cu_put_block(out, 1, code);
  str_puts(out, "}\n");
  return true;
}

// Writes the functions of a sequence's kernels, each once.
static bool functions(Str *out, const Kernel *k, const CudaOptions *options, WgmmaSet *wgmma,
                      CudaText *t) {
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
  cu_put_lists(&code, k);
  head(&out, k);
  cu_put_prims(&out, code.at);
  cu_put_wgmma(&out, &wgmma);
  str_put(&out, code.at, code.n);
  t->text = out;
  return t;
}

// The text with a `#line` before each line of a statement. (A statement of the schedule becomes
// several lines; a reader needs its number once.)
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
