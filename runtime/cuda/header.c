// header.c - writes a kernel or sequence as a C header: its machine code, the table that a launch
// needs, and launcher.c, with functions of the kernel's own name around it. In: the kernel, its
// text and machine code; or several variants of it, with the shapes that each is for. Out: C99 that
// is also C++ and needs nothing but the driver. Each variant has a table, code and functions of its
// own; the functions of the kernel's name choose one of them by nearest.c. launcher.c is compiled
// once in a program that includes several headers.
#include "runtime/cuda/gpu.h"
#include "runtime/data/launchvalue.h"

#include <string.h>

static const unsigned char launcher[] = {
#include "launcher_text.inc"
};

static const unsigned char nearest[] = {
#include "nearest_text.inc"
};

typedef struct Header {
  Sc *sc;
  Str *out;
  const char *name;  // what the names here begin with
  const char *args;  // what the name of the struct of arguments begins with
  const Kernel *k;
  bool trusts;
  Tabled tabled;
} Header;

static void put(Header *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(Header *h, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  str_puts(h->out, sc_vprintf(h->sc, fmt, ap));
  va_end(ap);
}

static const char *field(const Header *h, Sym name) { return sc_cuda_name(h->sc, name); }

static bool has_workspace(const Header *h) {
  return h->tabled.table.turns || h->tabled.table.tensors > h->tabled.table.given;
}

// ---- what a header cannot express

static bool can_be_said(const Header *h) {
  for (u32 i = 1; i < h->tabled.table.nodes; i++) {
    const SclNode *n = &h->tabled.table.node[i];
    const ExprInfo *o = &sc_xop[n->op];
    const char *what = n->op == SCL_LOAD                             ? "an element of a tensor"
                       : *o->sig == 'r' && o->binds >= BIND_CALL     ? "a function of reals"
                       : n->op == SCL_REAL && n->real - n->real != 0 ? "an infinite number"
                                                                     : NULL;
    if (!what) continue;
    sc_report(h->sc, D_G_HEADER, h->tabled.where[i],
              "a C header cannot say %s, which this depends on", what);
    return false;
  }
  return true;
}

// ---- the interface

static void comment(Header *h, u32 variants) {
  const char *n = h->name;
  put(h, "/* %s for NVIDIA Hopper (sm_90a), built by schedc %s from ", n, schedc_version());
  sc_cuda_origin(h->out, h->k);
  put(h, ".\n");
  if (variants > 1)
    put(h,
        " * These params are variant 0 of %u. A launch takes the one that was measured best at "
        "the\n"
        " * nearest dimensions (%s_variant says which), and variant 0 where none was near.\n",
        variants, n);
  for (u32 i = 0; i < h->k->launch.n; i++)
    put(h, "%s%s", i ? ", " : " * Launches in this order: ", h->k->launch.at[i].kernel->name);
  if (h->k->launch.n) put(h, ".\n");
  put(h,
      " * It needs the CUDA driver alone: cuda.h of the toolkit (12.0 or newer), and -lcuda.\n"
      " *\n"
      " *   %s_kernel kernel;  CUresult e = %s_load(&kernel);       on the current context\n"
      " *   %s_args args = ...;      e = %s_launch(&kernel, &args, stream);\n"
      " *   %s_unload(&kernel);\n"
      " *\n"
      " * A launch is asynchronous, allocates nothing and may be captured in a graph. Threads "
      "that share a\n"
      " * kernel launch it one at a time. Before anything is enqueued it is checked what the "
      "schedule requires,\n"
      " * that all of its integers fit in 32 bits (CUDA_ERROR_INVALID_VALUE), and the alignment of "
      "tensors\n"
      " * (CUDA_ERROR_MISALIGNED_ADDRESS).",
      n, n, n, n, n);
  if (h->tabled.table.checks)
    put(h,
        " Before a kernel that relies on lists, the GPU looks at\n"
        " * their elements. If one is not as the schedule says, the kernel does not run: the next "
        "call that waits\n"
        " * returns CUDA_ERROR_LAUNCH_FAILED, and the context is lost.");
  put(h, " */\n");
}

static void tensor_field(Header *h, const Buf *b) {
  static const char *const how[] = {"", "read", "written", "read and written"};
  Str shape = {.sc = h->sc};
  for (u32 d = 0; d < b->rank; d++) {
    if (d) str_puts(&shape, ", ");
    sc_print_infix(&shape, h->k, b->dim[d]);
  }
  put(h, "  CUdeviceptr %s;  /* %s[%s], %s */\n", field(h, b->name), sc_elem[b->elem].text,
      shape.at ? shape.at : "", how[b->dir & 3]);
  if (b->rank)
    put(h, "  int64_t %s_stride[%u];  /* elements; the last is 1 */\n", field(h, b->name), b->rank);
}

static const Buf *buf_of(const Header *h, u32 tensor) {
  return sc_tabled(h->k, &h->tabled, tensor);
}

static void args_type(Header *h, bool workspace) {
  const Kernel *k = h->k;
  put(h, "typedef struct %s_args {\n", h->name);
  for (u32 i = 0; i < h->tabled.table.given; i++) tensor_field(h, buf_of(h, i));
  for (u32 i = 0; i < k->dim.n; i++) put(h, "  int64_t %s;\n", field(h, k->dim.at[i].name));
  for (u32 i = 0; i < k->arg.n; i++) {
    const Arg *a = &k->arg.at[i];
    put(h, "  %s %s;", a->elem == EL_I32 ? "int32_t" : "float", field(h, a->name));
    if (a->init) {
      put(h, "  /* in the schedule ");
      sc_print_infix(h->out, k, a->init);
      put(h, " where it is not given */");
    }
    put(h, "\n");
  }
  if (workspace)
    put(h,
        "  CUdeviceptr workspace;  /* %s_workspace(args) bytes at a multiple of 256; one for "
        "launches that may\n"
        "                             overlap each; a launch sets what must be zero in it */\n",
        h->name);
  put(h, "} %s_args;\n\n", h->name);
}

static void code(Header *h, const Binary *cubin) {
  const unsigned char *at = cubin->at;
  put(h, "static const uint64_t %s_code[%zu] = {", h->name, (cubin->n + 7) / 8);
  for (size_t i = 0; i < cubin->n; i += 8) {
    u64 word = 0;
    for (size_t b = 0; b < 8 && i + b < cubin->n; b++) word |= (u64)at[i + b] << 8 * b;
    put(h, i % 40 ? " 0x%llxu," : "\n  0x%llxu,", (unsigned long long)word);
  }
  put(h, "\n};\n\n");
}

// ---- the table

static void begin(Header *h, const char *type, const char *part, u32 n) {
  if (n) put(h, "static const %s %s_%s[] = {\n", type, h->name, part);
  else put(h, "#define %s_%s NULL\n", h->name, part);
}

// Begins an array for a part of table t, and goes over its n rows r. (No rows: a macro, NULL.)
#define EACH(type, part, n)  \
  begin(h, #type, #part, n); \
  for (const type *r = t->part; r < t->part + (n); r++)
#define END(n) put(h, (n) ? "};\n" : "")

static void values(Header *h, const SclTable *t) {
  EACH(SclNode, node, t->nodes) {
    put(h, "    {SCL_%s, %d, %u, %u, %u, INT64_C(%lld), ", sc_launch_op[r->op], r->of_reals, r->a,
        r->b, r->c, (long long)r->number);
    str_real(h->out, r->real);
    put(h, "},\n");
  }
  END(1);
  EACH(unsigned, require, t->requires_) put(h, "    %u,\n", *r);
  END(t->requires_);
}

static void tensors(Header *h, const SclTable *t, const SclStep *last) {
  static const char *const kind[] = {"GIVEN", "ZEROED", "WORKSPACE"};
  EACH(SclTensor, tensor, t->tensors) {
    const unsigned *d = r->dim;
    put(h, "    {SCL_%s, %u, %u, {%u, %u, %u, %u, %u, %u}},  /* %s */\n", kind[r->kind], r->rank,
        r->bytes, d[0], d[1], d[2], d[3], d[4], d[5], buf_of(h, (u32)(r - t->tensor))->name);
  }
  END(t->tensors);
  EACH(SclUse, use, last->use.to)
  put(h, "    {%u, %u, %d, %d},\n", r->tensor, r->align, r->copied, r->written);
  END(last->use.to);
  EACH(SclMap, map, t->maps) {
    const int *d = r->dim;
    const unsigned *b = r->box;
    put(h, "    {%u, %d, %d, %d, %u, {%d, %d, %d, %d, %d}, {%u, %u, %u, %u, %u}},\n", r->tensor,
        r->written, r->type, r->swizzle, r->panel, d[0], d[1], d[2], d[3], d[4], b[0], b[1], b[2],
        b[3], b[4]);
  }
  END(t->maps);
}

static void launches(Header *h, const SclTable *t, const SclStep *last) {
  static const char *const kind[] = {"ADDRESS", "STRIDE", "DIM",   "I32",  "F32",
                                     "COUNTER", "TURN",   "WAITS", "TILES"};
  EACH(SclSlot, slot, last->slot.to)
  put(h, "    {SCL_PUT_%s, %u, %u, %u},\n", kind[r->kind], r->ref, r->dim, r->offset);
  END(1);
  EACH(SclAxis, axis, last->axis.to)
  put(h, "    {%u, %u, %u},\n", r->extent, r->section, r->cluster);
  END(last->axis.to);
  EACH(SclTurn, turn, t->turns) put(h, "    {%u, %u},\n", r->keys, r->axis);
  END(t->turns);
  EACH(SclFunction, function, t->functions)
  put(h, "    {\"%s\", %u, %u, %u, %d},\n", r->name, r->threads, r->shared, r->cluster, r->limited);
  END(1);
  EACH(SclTerm, term, t->terms)
  put(h, "    {SCL_%s, %d, %d, %d, %u, %u, %u, %u, INT64_C(%lld)},\n", sc_launch_op[r->op],
      r->integer, r->compares, r->elements, r->operands, r->a, r->b, r->c, (long long)r->number);
  END(1);
  EACH(SclCheck, check, t->checks) {
    put(h, "    {%u, {", r->lists);
    for (const SclPromise *p = r->list; p < r->list + SCL_LISTS; p++)
      put(h, "{%u, %u, %u, %d}, ", p->tensor, p->least, p->end, p->rising);
    put(h, "}},\n");
  }
  END(t->checks);
  EACH(SclStep, step, t->steps)
  put(h, "    {%u, {%u, %u}, {%u, %u}, {%u, %u}, {%u, %u}, {%u, %u}, {%u, %u}, {%u, %u}, %u},\n",
      r->function, r->use.from, r->use.to, r->map.from, r->map.to, r->slot.from, r->slot.to,
      r->axis.from, r->axis.to, r->turn.from, r->turn.to, r->term.from, r->term.to, r->check.from,
      r->check.to, r->block);
  END(1);
}

static void table(Header *h) {
  const SclTable *t = &h->tabled.table;
  const SclStep *last = &t->step[t->steps - 1];
  const char *n = h->name;
  put(h, "/* What a launch needs: SclTable says what the numbers are. */\n");
  values(h, t);
  tensors(h, t, last);
  launches(h, t, last);
  put(h, "#define PART(name) %s_ ## name\n", n);
  put(h,
      "static const SclTable %s_table = {\n"
      "    PART(node), %u, %u, PART(require), %u, PART(tensor), %u, %u, PART(use), PART(map),\n"
      "    PART(slot), PART(axis), PART(turn), PART(function), %u, PART(term), %u, "
      "PART(check),\n    %u, %u, PART(step), %u, %u, %u, %u, %d};\n"
      "#undef PART\n\n",
      n, t->nodes, t->dims, t->requires_, t->tensors, t->given, t->functions, t->terms, t->checks,
      t->checker, t->steps, t->maps, t->turns, t->block_bytes, t->dynamic);
}

// ---- functions

static void loading(Header *h) {
  const char *n = h->name;
  put(h,
      "typedef struct %s_kernel {\n"
      "  SclKernel kernel;\n"
      "  SclLoaded function[%u];\n"
      "} %s_kernel;\n\n",
      n, h->tabled.table.functions, n);
  put(h,
      "static inline void %s_unload(%s_kernel *k) { scl_unload(&k->kernel); }\n\n"
      "static inline CUresult %s_load(%s_kernel *k) {\n"
      "  CUresult e;\n"
      "  memset(k, 0, sizeof *k);\n"
      "  e = scl_result(scl_load(&k->kernel, k->function, &%s_table, %s_code));\n"
      "  if (e) %s_unload(k);\n"
      "  return e;\n"
      "}\n\n",
      n, n, n, n, n, n, n);
}

static void list(Header *h, u32 n, const char *type, const char *name) {
  put(h, "  const %s %s[] = {", type, name);
  if (!n) put(h, "0");
}

// Writes the beginning of a function that launches or sizes: a job.
static void job(Header *h, const char *function, const char *kernel, const char *stream) {
  const SclTable *t = &h->tabled.table;
  const Kernel *k = h->k;
  SclPlan p;
  list(h, 0, "int64_t", "none");
  put(h, "};\n  const SclGiven tensor[] = {");
  for (u32 i = 0; i < t->given; i++) {
    const char *name = field(h, buf_of(h, i)->name);
    put(h, buf_of(h, i)->rank ? "{a->%s, a->%s_stride}, " : "{a->%s, none}, ", name, name);
  }
  put(h, "{0, none}};\n");
  list(h, k->dim.n, "int64_t", "dim");
  for (u32 i = 0; i < k->dim.n; i++) put(h, i ? ", a->%s" : "a->%s", field(h, k->dim.at[i].name));
  put(h, "};\n");
  list(h, k->arg.n, "double", "scalar");
  for (u32 i = 0; i < k->arg.n; i++)
    put(h, i ? ", (double)a->%s" : "(double)a->%s", field(h, k->arg.at[i].name));
  put(h, "};\n  const SclCall call = {tensor, dim, scalar, %s, SIZE_MAX, %s};\n",
      has_workspace(h) ? "a->workspace" : "0", stream);
  put(h,
      "  uint64_t room[%zu];\n"
      "  SclPlan plan;\n"
      "  const SclJob job = {&%s_table, %s, %s, &call, &plan};\n"
      "  scl_lay_out(job.table, &plan, (void *)(((uintptr_t)room + 63) / 64 * 64));\n",
      (scl_lay_out(t, &p, NULL) + 7) / 8 + 7, h->name, kernel, function);
}

static void launching(Header *h) {
  const char *n = h->name;
  if (has_workspace(h)) {
    put(h,
        "/* SIZE_MAX: larger than any memory */\n"
        "static inline size_t %s_workspace(const %s_args *a) {\n",
        n, h->args);
    job(h, "NULL", "NULL", "NULL");
    put(h, "  return scl_size(&job).why ? SIZE_MAX : plan.bytes;\n}\n\n");
  }
  put(h, "static inline CUresult %s_launch(%s_kernel *k, const %s_args *a, CUstream stream) {\n", n,
      n, h->args);
  job(h, "k->function", "&k->kernel", "stream");
  put(h, "  return scl_launch(&job);\n}\n");
}

// Writes a guard: up to an #endif, code is compiled once; that of another header must be the same.
static void once(Header *h, const char *what, u64 version, const char *wrong) {
  unsigned long long v = version;
  put(h, "#if defined SCHEDC_%s && SCHEDC_%s != 0x%llxu\n#error \"%s\"\n#endif\n", what, what, v,
      wrong);
  put(h, "#ifndef SCHEDC_%s\n#define SCHEDC_%s 0x%llxu\n\n", what, what, v);
}

static void put_launcher(Header *h) {
  Str ops = {.sc = h->sc};
  sc_header_ops(&ops);
  once(h, "LAUNCHER", sc_hash(launcher, sizeof launcher) ^ sc_hash(ops.at, ops.n),
       "a header is of another version of schedc: build all with one");
  put(h,
      "#define SCL_API static inline\n"
      "#define SCL_CU(kernel, call) ((void)(kernel), call)\n\ntypedef enum SclOp {\n");
  for (u32 i = 0; i < SCL_OPS; i++) put(h, "  SCL_%s,\n", sc_launch_op[i]);
  put(h, "  SCL_OPS\n} SclOp;\n\n");
  str_put(h->out, ops.at, ops.n);
  str_put(h->out, (const char *)launcher, sizeof launcher);
  put(h, "\n#endif\n\n");
}

// ---- variants

typedef struct Set {
  Header h;  // the names that a caller uses, with the tables of the first part
  const HeaderPart *part;
  u32 parts;
  const HeaderShapes *shapes;
} Set;

// The names of a part: the caller's own if there is one alone.
static Header part_of(const Set *s, u32 i) {
  Header h = s->h;
  h.k = s->part[i].k;
  if (s->parts > 1) h.name = sc_printf(h.sc, "%s_v%u", s->h.name, i);
  sc_table(h.sc, h.k, s->part[i].text, h.trusts, &h.tabled);
  return h;
}

static void put_part(const Set *s, u32 i) {
  Header h = part_of(s, i);
  if (s->parts > 1) {
    put(&h, "/* %s: ", h.name);
    sc_cuda_origin(h.out, h.k);
    put(&h, " */\n\n");
  }
  table(&h);
  code(&h, s->part[i].cubin);
  loading(&h);
  launching(&h);
}

// Writes the shapes, the part that each has, and the function that chooses.
static void choosing(Set *s) {
  Header *h = &s->h;
  const HeaderShapes *shapes = s->shapes;
  const char *n = h->name;
  u32 dims = h->k->dim.n;
  put(h, "/* Shapes, a row each (");
  for (u32 d = 0; d < dims; d++) put(h, d ? ", %s" : "%s", field(h, h->k->dim.at[d].name));
  put(h, "), and the variant for each. */\nstatic const int64_t %s_shape[] = {\n", n);
  for (u32 i = 0; i < shapes->n; i++) {
    for (u32 d = 0; d < dims; d++)
      put(h, d ? " INT64_C(%lld)," : "    INT64_C(%lld),", (long long)shapes->dim[i * dims + d]);
    put(h, "\n");
  }
  put(h, "    0};\nstatic const unsigned %s_variants[] = {", n);
  for (u32 i = 0; i < shapes->n; i++) put(h, "%u, ", shapes->part[i]);
  put(h,
      "0};\n\n"
      "/* The variant for the shape that is nearest; 0 if none is near. */\n"
      "static inline unsigned %s_variant(const %s_args *a) {\n",
      n, n);
  list(h, dims, "int64_t", "dim");
  for (u32 d = 0; d < dims; d++) put(h, d ? ", a->%s" : "a->%s", field(h, h->k->dim.at[d].name));
  put(h, "};\n  return %s_variants[scl_nearest(%s_shape, %u, %u, dim)];\n}\n\n", n, n, shapes->n,
      dims);
}

static void loading_all(Set *s) {
  Header *h = &s->h;
  const char *n = h->name;
  put(h, "typedef struct %s_kernel {\n", n);
  for (u32 i = 0; i < s->parts; i++) put(h, "  %s_v%u_kernel v%u;\n", n, i, i);
  put(h, "} %s_kernel;\n\nstatic inline void %s_unload(%s_kernel *k) {\n", n, n, n);
  for (u32 i = 0; i < s->parts; i++) put(h, "  %s_v%u_unload(&k->v%u);\n", n, i, i);
  put(h,
      "}\n\nstatic inline CUresult %s_load(%s_kernel *k) {\n"
      "  CUresult e = CUDA_SUCCESS;\n  memset(k, 0, sizeof *k);\n",
      n, n);
  for (u32 i = 0; i < s->parts; i++) put(h, "  if (!e) e = %s_v%u_load(&k->v%u);\n", n, i, i);
  put(h, "  if (e) %s_unload(k);\n  return e;\n}\n\n", n);
}

static void launching_all(Set *s, bool workspace) {
  Header *h = &s->h;
  const char *n = h->name;
  if (workspace) {
    put(h, "static inline size_t %s_workspace(const %s_args *a) {\n  switch (%s_variant(a)) {\n", n,
        n, n);
    for (u32 i = 0; i < s->parts; i++) {
      Header part = part_of(s, i);
      if (has_workspace(&part)) put(h, "    case %u: return %s_v%u_workspace(a);\n", i, n, i);
    }
    put(h, "    default: return 0;\n  }\n}\n\n");
  }
  put(h,
      "static inline CUresult %s_launch(%s_kernel *k, const %s_args *a, CUstream stream) {\n"
      "  switch (%s_variant(a)) {\n",
      n, n, n, n);
  for (u32 i = 1; i < s->parts; i++)
    put(h, "    case %u: return %s_v%u_launch(&k->v%u, a, stream);\n", i, n, i, i);
  put(h, "    default: return %s_v0_launch(&k->v0, a, stream);\n  }\n}\n", n);
}

static void put_nearest(Header *h) {
  once(h, "NEAREST", sc_hash(nearest, sizeof nearest),
       "a header is of another version of schedc: build all with one");
  str_put(h->out, (const char *)nearest, sizeof nearest);
  put(h, "\n#endif\n\n");
}

// A hash that identifies the header, so that another one of the same name is refused.
static u64 identity(const Set *s) {
  Str all = {.sc = s->h.sc};
  for (u32 i = 0; i < s->parts; i++)
    str_put(&all, s->part[i].text->text.at, s->part[i].text->text.n);
  for (u32 i = 0; i < s->shapes->n; i++) str_printf(&all, "%u ", s->shapes->part[i]);
  for (u32 i = 0; i < s->shapes->n * s->h.k->dim.n; i++)
    str_printf(&all, "%lld ", (long long)s->shapes->dim[i]);
  return sc_hash(all.at, all.n);
}

bool sc_header(Str *out, const char *name, const HeaderPart *part, u32 parts,
               const HeaderShapes *shapes, bool trusts) {
  const Header all = {
      .sc = out->sc, .out = out, .name = name, .args = name, .k = part->k, .trusts = trusts};
  Set s = {all, part, parts, shapes};
  Header *h = &s.h;
  bool workspace = false;
  for (u32 i = 0; i < parts; i++) {
    Header one = part_of(&s, i);
    if (!can_be_said(&one)) return false;
    workspace |= has_workspace(&one);
    if (!i) h->tabled = one.tabled;
  }
  comment(h, parts);
  once(h, sc_printf(h->sc, "%s_H", name), identity(&s),
       sc_printf(h->sc, "another kernel is called %s: build one with --name", name));
  put(h,
      "#include <cuda.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n"
      "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  args_type(h, workspace);
  put_launcher(h);
  if (parts > 1) put_nearest(h);
  for (u32 i = 0; i < parts; i++) put_part(&s, i);
  if (parts > 1) choosing(&s), loading_all(&s), launching_all(&s, workspace);
  put(h, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
  return true;
}
