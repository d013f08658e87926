// launchplan.c - the second part of launcher.c, and like it compiled into the library and pasted
// into C headers: it works out the plan of a launch. In: the table of a kernel or sequence, and the
// dimensions, strides and scalars of one launch. Out: a plan (SclPlan) with the grid, the blocks of
// arguments and the tensor maps, in which only the addresses are still open; or the reason why such
// a launch is refused.
#ifndef SCHEDC_LAUNCHER
#include "runtime/cuda/gpu.h"

#include <string.h>
#endif

static inline size_t scl_aligned(size_t n) { return (n + SCL_ALIGN - 1) / SCL_ALIGN * SCL_ALIGN; }

// Where the parts of a plan are in `room`, at a multiple of 64 bytes; how many bytes they have,
// also where there is no room yet.
SCL_API size_t scl_lay_out(const SclTable *t, SclPlan *p, void *room) {
  char *const start = (char *)room;
  size_t at = 0;
#define SCL_PART(part, type, n) \
  (p->part = start ? (type *)(void *)(start + at) : NULL, at += sizeof(type) * (n))
  SCL_PART(map, CUtensorMap, t->maps);
  SCL_PART(encoded, CUdeviceptr, t->maps);
  SCL_PART(address, CUdeviceptr, t->tensors);
  SCL_PART(extent, int64_t, t->tensors * SCL_RANK);
  SCL_PART(stride, int64_t, t->tensors * SCL_RANK);
  SCL_PART(workspace_at, size_t, t->tensors);
  SCL_PART(turn, size_t, t->turns);
  SCL_PART(room, size_t, t->tensors);
  SCL_PART(value, SclValue, t->nodes);
  SCL_PART(range, SclRange, t->terms);
  SCL_PART(lists, SclLists, t->checks);
  SCL_PART(tiles, int64_t, t->steps);
  SCL_PART(param, void *, t->maps + 1);
  SCL_PART(block, unsigned char, t->block_bytes);
  SCL_PART(ctas, unsigned, t->steps);
  SCL_PART(empty, unsigned char, t->tensors);
#undef SCL_PART
  return at;
}

// Rows of workspaces start at multiples of 16 bytes; a vector has room for a slice behind it. How
// many elements; -1: too many.
static inline int64_t scl_shape_workspace(const SclTensor *w, const int64_t *extent,
                                          int64_t *stride) {
  const int64_t unit = 16 / w->bytes;
  int64_t n = 1;
  int fits = 1;
  for (unsigned d = w->rank; d-- > 0;) {
    stride[d] = n;
    n = scl_mul(n, extent[d], &fits);
    if (d + 1 == w->rank) n = scl_add(n, w->rank == 1 ? SCL_ALIGN / 4 : unit - 1, &fits);
    if (d + 1 == w->rank && w->rank > 1) n = n / unit * unit;
  }
  return fits && n >= 0 && n <= (int64_t)1 << 48 ? n : -1;
}

static inline SclRefusal scl_shape(const SclJob *j, unsigned tensor) {
  const SclTensor *t = &j->table->tensor[tensor];
  SclPlan *p = j->plan;
  int64_t *const extent = p->extent + tensor * SCL_RANK, *stride = p->stride + tensor * SCL_RANK;
  int64_t n = 0;
  p->empty[tensor] = 0;
  for (unsigned d = 0; d < t->rank; d++) {
    extent[d] = p->value[t->dim[d]].i;
    if (!p->value[t->dim[d]].known || extent[d] < 0) return scl_refuse(SCL_NO_SIZE, 0, tensor, 0);
    if (extent[d] == 0) p->empty[tensor] = 1;
  }
  for (unsigned d = 0; d < t->rank && t->kind == SCL_GIVEN; d++)
    stride[d] = extent[d] <= 1 ? 1 : j->call->tensor[tensor].stride[d];
  if (t->kind != SCL_GIVEN) n = scl_shape_workspace(t, extent, stride);
  if (n < 0) return scl_refuse(SCL_NO_SIZE, 0, tensor, 0);
  p->room[tensor] = scl_aligned((size_t)n * t->bytes);
  return scl_fine();
}

// A tensor without elements is never touched.
SCL_API SclRefusal scl_check_strides(const SclJob *j, const SclUse *use) {
  const SclTensor *t = &j->table->tensor[use->tensor];
  const int64_t *const extent = j->plan->extent + use->tensor * SCL_RANK,
                       *stride = j->plan->stride + use->tensor * SCL_RANK;
  for (unsigned d = 0; d < t->rank && !j->plan->empty[use->tensor]; d++) {
    SclWhy why = SCL_FINE;
    if (extent[d] <= 1) continue;
    if (stride[d] < 0) why = SCL_NEGATIVE_STRIDE;
    else if (d + 1 == t->rank) why = stride[d] != 1 ? SCL_LAST_STRIDE : SCL_FINE;
    else if ((uint64_t)stride[d] * t->bytes % use->align) why = SCL_BAD_STRIDE;
    else if (use->copied && ((uint64_t)stride[d] * t->bytes) >> 40) why = SCL_FAR_STRIDE;
    if (why) return scl_refuse(why, 0, use->tensor, d);
  }
  if (use->written && !j->plan->empty[use->tensor] && !scl_apart(t->rank, extent, stride))
    return scl_refuse(SCL_SHARED_ELEMENTS, 0, use->tensor, 0);
  return scl_fine();
}

static inline int scl_times(int64_t *n, int64_t by) {
  int fits = 1;
  *n = scl_mul(*n, by, &fits);
  return fits && *n <= INT32_MAX;
}

static inline int64_t scl_clusters(const SclJob *j, unsigned axis) {
  const int64_t n = j->table->axis[axis].cluster;
  const int64_t extent = j->plan->value[j->table->axis[axis].extent].i;
  return extent <= 0 ? 0 : extent / n + (extent % n != 0);
}

// Tiles are counted in clusters. Those of a section, wide as it is said, by all of the other axes
// must be numbered, too.
static inline SclRefusal scl_count_tiles(const SclJob *j, unsigned step) {
  const SclSpan axes = j->table->step[step].axis;
  int64_t *const tiles = &j->plan->tiles[step], in_section = 1;
  int none = 0, fits = 1;
  *tiles = 1;
  for (unsigned i = axes.from; i < axes.to; i++) {
    const unsigned section = j->table->axis[i].section;
    const int64_t clusters = scl_clusters(j, i);
    const int64_t width = section ? j->plan->value[section].i : clusters;
    if (!clusters) none = 1;
    if (!none && !scl_times(tiles, clusters)) fits = 0;
    if (!none && !scl_times(&in_section, width > clusters ? width : clusters)) fits = 0;
    if (section && width <= 0) return scl_refuse(SCL_BAD_SECTION, step, i, 0);
  }
  if (none) *tiles = 0;
  return fits || none ? scl_fine() : scl_refuse(SCL_LARGE_GRID, step, 0, 0);
}

static inline SclRefusal scl_size_grid(const SclJob *j, unsigned step) {
  const SclStep *s = &j->table->step[step];
  const SclFunction *f = &j->table->function[s->function];
  const int64_t room = j->function[s->function].room, tiles = j->plan->tiles[step];
  const int64_t clusters = !f->limited || tiles < room ? tiles : room;
  if (tiles > INT32_MAX - room || clusters * f->cluster > INT32_MAX)
    return scl_refuse(SCL_LARGE_GRID, step, 0, 0);
  j->plan->ctas[step] = (unsigned)clusters * f->cluster;
  return scl_fine();
}

static inline SclRefusal scl_count_turns(const SclJob *j, unsigned step) {
  const SclStep *s = &j->table->step[step];
  for (unsigned i = s->turn.from; i < s->turn.to; i++) {
    const SclTurn *turn = &j->table->turn[i];
    int64_t n = turn->keys ? j->plan->value[turn->keys].i : 1;
    int fits = n <= INT32_MAX;
    if (n < 0) n = 0;
    for (unsigned x = s->axis.from; x < s->axis.to && n; x++) {
      const int64_t places = scl_clusters(j, x) * j->table->axis[x].cluster;
      if (x != turn->axis && !scl_times(&n, places)) fits = 0;
    }
    if (!fits) return scl_refuse(SCL_LARGE_TURN, step, i, 0);
    j->plan->turn[i] = j->plan->bytes;
    j->plan->bytes += scl_aligned((size_t)n * SCL_COUNTER_BYTES);
  }
  return scl_fine();
}

// All but addresses.
static inline void scl_fill_block(const SclJob *j, unsigned step) {
  const SclStep *s = &j->table->step[step];
  for (unsigned i = s->slot.from; i < s->slot.to; i++) {
    const SclSlot *slot = &j->table->slot[i];
    unsigned char *at = j->plan->block + s->block + slot->offset;
    int32_t number = 0;
    if (slot->kind == SCL_PUT_STRIDE) {
      memcpy(at, &j->plan->stride[slot->ref * SCL_RANK + slot->dim], sizeof(int64_t));
    } else if (slot->kind == SCL_PUT_F32) {
      const float f = (float)j->call->scalar[slot->ref];
      memcpy(at, &f, sizeof f);
    } else if (slot->kind == SCL_PUT_DIM || slot->kind == SCL_PUT_I32 ||
               slot->kind == SCL_PUT_TILES) {
      if (slot->kind == SCL_PUT_DIM) number = (int32_t)j->call->dim[slot->ref];
      else if (slot->kind == SCL_PUT_I32) number = (int32_t)j->call->scalar[slot->ref];
      else number = (int32_t)j->plan->tiles[step];
      memcpy(at, &number, sizeof number);
    }
  }
}

// In the workspace are the counters of turns, then tensors.
SCL_API SclRefusal scl_size(const SclJob *j) {
  const SclTable *t = j->table;
  SclPlan *p = j->plan;
  SclRefusal r = scl_fine();
  p->bytes = 0;
  for (unsigned i = 0; i < t->dims; i++) {
    if (j->call->dim[i] < 0) return scl_refuse(SCL_BAD_DIM, 0, i, 0);
  }
  scl_evaluate(t->node, t->nodes, j->call->dim, j->call->scalar, p->value);
  for (unsigned i = 0; i < t->tensors && !r.why; i++) r = scl_shape(j, i);
  for (unsigned i = 0; i < t->steps && !r.why; i++) {
    r = scl_count_tiles(j, i);
    if (!r.why && p->tiles[i]) r = scl_count_turns(j, i);
  }
  p->zeroed = p->bytes;
  for (unsigned i = t->given; i < t->tensors && !r.why; i++) {
    p->workspace_at[i] = p->bytes;
    p->bytes += p->room[i];
    if (t->tensor[i].kind == SCL_ZEROED) p->zeroed = p->bytes;
  }
  return r;
}

// All but the address.
static inline SclRefusal scl_describe_list(const SclJob *j, const SclPromise *promise,
                                           SclList *list) {
  const SclTensor *t = &j->table->tensor[promise->tensor];
  const SclPlan *p = j->plan;
  const SclValue *least = &p->value[promise->least], *end = &p->value[promise->end];
  int fits = 1;
  if (p->empty[promise->tensor]) return scl_fine();
  list->elements = 1;
  for (unsigned d = 0; d < t->rank; d++) {
    list->extent[d] = p->extent[promise->tensor * SCL_RANK + d];
    list->stride[d] = p->stride[promise->tensor * SCL_RANK + d];
    list->elements = scl_mul(list->elements, list->extent[d], &fits);
  }
  list->least = promise->end ? least->i : INT32_MIN;
  list->end = promise->end ? end->i : (int64_t)INT32_MAX + 1;
  list->rank = (int)t->rank;
  list->rising = promise->rising;
  if (promise->end && !(least->known && end->known && least->i < end->i))
    return scl_refuse(SCL_NO_RANGE, 0, promise->tensor, 0);
  return fits ? scl_fine() : scl_refuse(SCL_NO_SIZE, 0, promise->tensor, 0);
}

static inline SclRefusal scl_describe_lists(const SclJob *j, unsigned check) {
  const SclCheck *c = &j->table->check[check];
  SclLists *lists = &j->plan->lists[check];
  SclRefusal r = scl_fine();
  memset(lists, 0, sizeof *lists);
  lists->lists = (int)c->lists;
  for (unsigned i = 0; i < c->lists && !r.why; i++)
    r = scl_describe_list(j, &c->list[i], &lists->list[i]);
  return r;
}

static inline SclRefusal scl_plan_step(const SclJob *j, unsigned step) {
  const SclTable *t = j->table;
  const SclStep *s = &t->step[step];
  SclRefusal r = scl_fine();
  for (unsigned i = s->use.from; i < s->use.to && !r.why; i++) r = scl_check_strides(j, &t->use[i]);
  for (unsigned i = s->check.from; i < s->check.to && !r.why; i++) r = scl_describe_lists(j, i);
  r.step = step;
  if (r.why || !j->plan->tiles[step]) return r;
  for (unsigned i = 0; i < t->dims; i++) {
    if (j->call->dim[i] > INT32_MAX) return scl_refuse(SCL_BAD_DIM, step, i, 0);
  }
  scl_fill_block(j, step);
  r = scl_size_grid(j, step);
  return r.why ? r : scl_check_ranges(j, step);
}

SCL_API SclRefusal scl_make_plan(const SclJob *j) {
  const SclTable *t = j->table;
  SclPlan *p = j->plan;
  SclRefusal r = scl_size(j);
  memset(p->block, 0, t->block_bytes);
  memset(p->encoded, 0, sizeof *p->encoded * t->maps);
  for (unsigned i = 0; i < t->requires_ && !r.why; i++) {
    const SclValue *v = &p->value[t->require[i]];
    if (!v->known || !v->i) r = scl_refuse(SCL_BAD_REQUIRE, 0, i, 0);
  }
  for (unsigned i = 0; i < t->steps && !r.why; i++) r = scl_plan_step(j, i);
  return r;
}
