// launchrange.c - do the integers of a kernel's code fit in the 32 bits that the emitted code gives
// them? For the library and for C headers: a part of launcher.c, which see. In: a table's terms,
// and what a launch knows. Out: an interval for each term, and the first term that may not fit. The
// idea: dimensions and scalars are exact, tile indices, instances and loop variables are anywhere
// in their ranges; a term comes behind all that its range depends on, so one walk does. Elements of
// tensors are anywhere in the range that is declared of them, or 0, as those beyond the tensor are.
// Where none is declared, uniform ones (`let n = len[b]`) are taken to be no larger than the
// largest extent, and what is made of others is not bounded.
#ifndef SCHEDC_LAUNCHER
#include "runtime/cuda/gpu.h"
#endif

// Room for what the emitter adds to positions: rows and columns of a tile, the step of a persistent
// grid.
#define SCL_LIMIT (INT32_MAX - (1 << 17))

static inline int64_t scl_larger(int64_t a, int64_t b) { return a > b ? a : b; }

static inline int64_t scl_sum_of(int64_t x, int64_t y) {
  SclInterval a, b;
  a.lo = a.hi = x;
  b.lo = b.hi = y;
  return scl_interval(SCL_ADD, a, b).lo;
}

static inline SclRange scl_range(int64_t lo, int64_t hi) {
  SclRange r;
  r.is.lo = scl_sum_of(lo, 0);
  r.is.hi = scl_sum_of(hi, 0);
  r.known = 1;
  r.terms = 0;
  return r;
}

static inline SclRange scl_no_range(void) {
  SclRange r = scl_range(0, 0);
  r.known = 0;
  return r;
}

// Of a loop: from its first value to the one before its end.
static inline SclRange scl_loop_range(SclRange from, SclRange to) {
  if (!from.known || !to.known) return scl_no_range();
  return scl_range(from.is.lo, scl_larger(from.is.lo, to.is.hi - 1));
}

static inline SclRange scl_element_range(const SclValue *least, const SclValue *end) {
  if (!least->known || !end->known) return scl_no_range();
  return scl_range(-scl_larger(0, -least->i), scl_larger(0, end->i - 1));
}

static inline SclRange scl_leaf_range(const SclJob *j, const SclTerm *t, int64_t extent) {
  const SclRange *r = j->plan->range;
  switch (t->op) {
    case SCL_INT: return scl_range(t->number, t->number);
    case SCL_DIM: return scl_range(j->call->dim[t->a], j->call->dim[t->a]);
    case SCL_ARG: return scl_range((int64_t)j->call->scalar[t->a], (int64_t)j->call->scalar[t->a]);
    case SCL_INST:
    case SCL_IDX: return scl_range(0, t->number);
    case SCL_LOOP: return scl_loop_range(r[t->a], r[t->b]);
    case SCL_AXIS:
      return r[t->a].known ? scl_range(0, scl_larger(0, r[t->a].is.hi + t->number)) : r[t->a];
    default:
      if (t->b) return scl_element_range(&j->plan->value[t->a], &j->plan->value[t->b]);
      return t->number ? scl_range(-extent, extent) : scl_no_range();
  }
}

// What an operation makes of its operands. A sum has no more terms than its variable has values,
// also on its way; an extremum is one of them.
static inline SclInterval scl_made(const SclTerm *t, SclInterval a, SclInterval b, SclInterval c) {
  SclInterval times;
  times.lo = 0;
  times.hi = t->number;
  switch (t->op) {
    case SCL_WHERE: return scl_interval_both(b, c);
    case SCL_SUM: return scl_interval(SCL_MUL, a, times);
    case SCL_RMAX:
    case SCL_RMIN: return a;
    default: return scl_interval(t->op, a, b);
  }
}

static inline SclRange scl_term_range(const SclJob *j, const SclTerm *t, int64_t extent) {
  const SclRange a = j->plan->range[t->a], b = j->plan->range[t->b], c = j->plan->range[t->c];
  SclInterval is;
  if (!t->integer || !t->operands)
    return t->integer ? scl_leaf_range(j, t, extent) : scl_no_range();
  if (t->op == SCL_WHERE ? !b.known || !c.known : !a.known || (t->operands > 1 && !b.known))
    return scl_no_range();
  is = scl_made(t, a.is, b.is, c.is);
  return scl_range(is.lo, is.hi);
}

// The largest that a sum of its terms may be, whatever their signs: comparisons are written as one
// index against a sum of all other terms, in any order. What is made of elements may have any of 32
// bits in the emitted code, so it is not among them.
static inline int64_t scl_sum_of_terms(const SclJob *j, const SclTerm *t, const SclRange *r) {
  if (t->op == SCL_ADD || t->op == SCL_SUB)
    return scl_sum_of(j->plan->range[t->a].terms, j->plan->range[t->b].terms);
  return r->known && !t->elements ? scl_larger(-r->is.lo, r->is.hi) : 0;
}

static inline int64_t scl_largest_extent(const SclJob *j, const SclStep *s) {
  int64_t most = 0;
  for (unsigned i = s->use.from; i < s->use.to; i++) {
    const unsigned tensor = j->table->use[i].tensor;
    for (unsigned d = 0; d < j->table->tensor[tensor].rank; d++)
      most = scl_larger(most, j->plan->extent[tensor * SCL_RANK + d]);
  }
  return most;
}

static inline int scl_fits(const SclTerm *t, const SclRange *r) {
  const int64_t room = t->elements ? 0 : INT32_MAX - SCL_LIMIT;
  if (!t->integer || !r->known) return 1;
  return r->is.lo >= INT32_MIN + room && r->is.hi <= INT32_MAX - room;
}

// Which term may not fit; 0: none.
static inline unsigned scl_unfit(const SclJob *j, unsigned term) {
  const SclTerm *t = &j->table->term[term];
  const SclRange *all = j->plan->range;
  if (!scl_fits(t, &all[term])) return term;
  if (!t->compares || scl_sum_of(all[t->a].terms, all[t->b].terms) <= SCL_LIMIT) return 0;
  return all[t->a].terms > all[t->b].terms ? t->a : t->b;
}

SCL_API SclRefusal scl_check_ranges(const SclJob *j, unsigned step) {
  const SclStep *s = &j->table->step[step];
  const int64_t extent = scl_largest_extent(j, s);
  SclRange *range = j->plan->range;
  range[0] = scl_range(0, 0);
  for (unsigned i = s->term.from; i < s->term.to; i++) {
    const SclTerm *t = &j->table->term[i];
    unsigned unfit;
    range[i] = scl_term_range(j, t, extent);
    range[i].terms = scl_sum_of_terms(j, t, &range[i]);
    unfit = scl_unfit(j, i);
    if (unfit) return scl_refuse(SCL_LARGE_TERM, step, unfit, 0);
  }
  return scl_fine();
}
