// refuse.c - reports why launcher.c loaded or launched nothing. In: its refusal, which has a reason
// and a number. Out: a report that names the tensor, axis or turn, at its declaration.
#include "runtime/cuda/gpu.h"

static const Buf *buf_of(const Loaded *l, u32 tensor) {
  return sc_tabled(l->k, &l->tabled, tensor);
}

// ---- tensors

static void say_who(Sc *sc, Diag *d, const SclUse *use, const char *what_to_do) {
  if (use->align < 16) return;
  const char *who =
      use->copied ? "the copy engine reads or writes it" : "threads access it 16 bytes at a time";
  sc_help(sc, d, "%s%s", who, what_to_do);
}

static void misaligned(Sc *sc, const Loaded *l, const SclUse *use) {
  const Buf *b = buf_of(l, use->tensor);
  Diag *d =
      sc_report(sc, D_T_ALIGN, b->span, "the address of tensor '%s' is not a multiple of %u bytes",
                b->name, use->align);
  say_who(sc, d, use, "");
}

static void bad_stride(Sc *sc, const Loaded *l, const SclJob *j, const SclUse *use,
                       const SclRefusal *r) {
  const Buf *b = buf_of(l, use->tensor);
  if (r->why == SCL_FAR_STRIDE) {
    sc_report(sc, D_T_ALIGN, b->span,
              "the stride of dimension %u of tensor '%s' is 2^40 bytes or more: the copy engine "
              "cannot step so far",
              r->dim, b->name);
    return;
  }
  Diag *d = sc_report(
      sc, D_T_ALIGN, b->span,
      "the stride of dimension %u of tensor '%s', %lld elements, is not a multiple of 16 bytes",
      r->dim, b->name, (long long)j->plan->stride[use->tensor * SCL_RANK + r->dim]);
  say_who(sc, d, use, ": pad its rows");
}

// Reports all tensors of the refused step that do not fit.
static void bad_tensors(Sc *sc, const Loaded *l, const SclJob *j, const SclRefusal *refused) {
  const SclSpan uses = j->table->step[refused->step].use;
  for (u32 i = uses.from; i < uses.to; i++) {
    const SclUse *use = &j->table->use[i];
    if (refused->why == SCL_BAD_ADDRESS) {
      if (scl_check_address(j, use).why) misaligned(sc, l, use);
      continue;
    }
    SclRefusal r = scl_check_strides(j, use);
    if (r.why) bad_stride(sc, l, j, use, &r);
  }
}

static void no_range(Sc *sc, const Buf *b) {
  sc_report(sc, D_T_REQUIRE, b->span,
            "'%s' has elements, but the range in which they are declared is empty here", b->name);
}

static void no_map(Sc *sc, const Loaded *l, const SclJob *j, const SclRefusal *r) {
  u32 tensor = j->table->map[r->at].tensor;
  const Buf *b = buf_of(l, tensor);
  Diag *d = sc_report(sc, D_T_STRIDE, b->span,
                      "the copy engine cannot be told of tensor '%s' as it is: %s", b->name,
                      sc_driver_error(l->d, r->error));
  for (u32 i = 0; i < b->rank; i++) {
    if (j->plan->stride[tensor * SCL_RANK + i]) continue;
    sc_help(sc, d, "this driver has no stride 0 (dimension %u): make a contiguous copy", i);
    break;
  }
}

// ---- the grid

static void large_grid(Sc *sc, const Kernel *k) {
  Diag *d = sc_report(sc, D_T_RANGE, k->axis.n ? k->axis.at[0].span : k->span,
                      "the grid of '%s' has 2^31 tiles or more here", k->name);
  sc_help(sc, d, "split the launch along one axis");
}

static void bad_section(Sc *sc, const Kernel *k, const SclJob *j, const SclRefusal *r) {
  const Axis *x = &k->axis.at[r->at - j->table->step[r->step].axis.from];
  sc_report(sc, D_T_RANGE, x->span, "the sections of axis '%s' are %lld wide here", x->name,
            (long long)j->plan->value[j->table->axis[r->at].section].i);
}

static void large_turn(Sc *sc, const Kernel *k, const SclJob *j, const SclRefusal *r) {
  u32 number = r->at - j->table->step[r->step].turn.from;
  for (u32 i = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (sc_turn_over_ctas(t) && !number--)
      sc_report(sc, D_T_RANGE, t->span, "the turn '%s' needs 2^31 counters or more here", t->name);
  }
}

// ---- the rest

static void no_workspace(Sc *sc, const Loaded *l, const SclJob *j) {
  sc_report(sc, D_T_NULL, l->k->span, "'%s' needs a workspace of %zu bytes here, but is given %zu",
            l->k->name, j->plan->bytes, j->call->workspace ? j->call->workspace_bytes : 0);
}

static void large_dim(Sc *sc, const Loaded *l, const SclJob *j, u32 dim) {
  sc_report(sc, D_T_RANGE, l->k->dim.at[dim].span, "%s = %lld: emitted code has 32 bits for it",
            l->k->dim.at[dim].name, (long long)j->call->dim[dim]);
}

static void large_term(Sc *sc, const Loaded *l, const SclJob *j, const SclRefusal *r) {
  const Kernel *k = sc_step_kernel(l->k, r->step);
  const TermOf *of = &l->tabled.term_of[r->at];
  const SclInterval is = j->plan->range[r->at].is;
  bool large = is.hi > -is.lo;
  Str s = {.sc = sc}, dims = s;
  sc_print_named(&s, k, of->value);
  Diag *d = sc_report(sc, D_T_RANGE, of->at,
                      "'%s' may be as %s as %lld here: emitted code has 32 bits for it", s.at,
                      large ? "large" : "small", (long long)(large ? is.hi : is.lo));
  for (u32 i = 0; i < k->dim.n; i++) {
    u32 of_all = l->k->launch.n ? l->k->launch.at[r->step].dim[i] : i;
    str_printf(&dims, "%s%s = %lld", i ? ", " : "", k->dim.at[i].name,
               (long long)j->call->dim[of_all]);
  }
  if (dims.n) sc_help(sc, d, "dimensions: %s", dims.at);
}

static void does_not_start(Sc *sc, const Loaded *l, int error) {
  Diag *d = sc_report(sc, D_G_RUN, l->k->span, "'%s' does not start: %s", l->k->name,
                      sc_driver_error(l->d, error));
  if (error == CUDA_ERROR_LAUNCH_FAILED && l->tabled.table.checks)
    sc_help(sc, d,
            "an earlier launch has failed; if it found a list that is not as declared, "
            "schedc_check_elements says which, before that launch in a new context");
}

schedc_status sc_refuse(Sc *sc, const Loaded *l, const SclJob *j, const SclRefusal *r) {
  const Kernel *k = sc_step_kernel(l->k, r->step);
  switch (r->why) {
    case SCL_FINE: return SCHEDC_OK;
    case SCL_BAD_DIM: large_dim(sc, l, j, r->at); break;
    case SCL_BAD_ADDRESS:
    case SCL_BAD_STRIDE:
    case SCL_FAR_STRIDE: bad_tensors(sc, l, j, r); break;
    case SCL_NO_DATA:
      sc_report(sc, D_T_NULL, buf_of(l, r->at)->span,
                "tensor '%s' has no data: its pointer is NULL", buf_of(l, r->at)->name);
      break;
    case SCL_NO_SIZE:
      sc_report(sc, D_T_SHAPE, buf_of(l, r->at)->span, "'%s' has no size here",
                buf_of(l, r->at)->name);
      break;
    case SCL_NO_RANGE: no_range(sc, buf_of(l, r->at)); break;
    case SCL_NO_MAP: no_map(sc, l, j, r); break;
    case SCL_LARGE_GRID: large_grid(sc, k); break;
    case SCL_BAD_SECTION: bad_section(sc, k, j, r); break;
    case SCL_LARGE_TURN: large_turn(sc, k, j, r); break;
    case SCL_LARGE_TERM: large_term(sc, l, j, r); break;
    case SCL_NO_WORKSPACE: no_workspace(sc, l, j); break;
    case SCL_BAD_WORKSPACE:
      sc_report(sc, D_T_ALIGN, l->k->span, "the workspace's address is not a multiple of %d bytes",
                SCL_ALIGN);
      break;
    default: does_not_start(sc, l, r->error); return SCHEDC_EUNAVAIL;
  }
  return SCHEDC_EINPUT;
}

static const Kernel *kernel_of(const Loaded *l, u32 function) {
  u32 i = 0;
  while (l->tabled.table.step[i].function != function && i + 1 < l->tabled.table.steps) i++;
  return sc_step_kernel(l->k, i);
}

const char *sc_not_loaded(const Loaded *l, const SclRefusal *r) {
  if (!r->why) return NULL;
  if (r->why == SCL_NO_MEMORY)
    return sc_printf(l->sc, "no memory on the GPU: %s", sc_driver_error(l->d, r->error));
  const Kernel *k = kernel_of(l, r->at);
  return r->why == SCL_NO_CLUSTER
             ? sc_printf(l->sc, "no cluster of kernel '%s', of %u CTAs, fits on this GPU", k->name,
                         sc_cluster(k))
             : sc_printf(l->sc, "kernel '%s' cannot be loaded: %s", k->name,
                         sc_driver_error(l->d, r->error));
}
