// global.c - global memory as threads use it: turns over CTAs, draws of tiles, additions, and plain
// loads and stores. The host's compiler shows us each of the latter (-fsanitize=thread, with our
// functions instead of its library's); those of a thread's own stack are its registers.
#include <stdlib.h>
#include <string.h>

#include "model.h"

// ---- turns: what each cluster that passed one on has told

typedef struct Turn {
  const void *at;
  LIST(Foreign) told;
} Turn;
static LIST(Turn) turns;
static Thread *waiting;

static Turn *turn_of(const void *at) {
  for (u32 i = 0; i < turns.n; i++) {
    if (turns.at[i].at == at) return &turns.at[i];
  }
  APPEND(&turns, ((Turn){.at = at}));
  return &turns.at[turns.n - 1];
}

void md_turns_free(void) {
  for (u32 i = 0; i < turns.n; i++) {
    for (u32 j = 0; j < turns.at[i].told.n; j++) md_drop(turns.at[i].told.at[j].know);
    free(turns.at[i].told.at);
  }
  turns.n = 0;
  waiting = NULL;
}

static void check_word(Thread *t, const void *at) {
  md_behind(t);
  if (!md_in_memory((uintptr_t)at, 4))
    md_fault("R8", t->where, "%s reaches for global memory at %s, where nothing is allocated",
             md_thread_name(t), md_global_name((uintptr_t)at));
}

static void tell(Turn *turn, u32 gang, Know *k) {
  for (u32 i = 0; i < turn->told.n; i++) {
    Foreign *f = &turn->told.at[i];
    if (f->gang != gang) continue;
    Know *both = md_both(f->know, k);
    md_drop(f->know);
    f->know = both;
    return;
  }
  APPEND(&turn->told, ((Foreign){gang, md_keep(k)}));
}

int md_turn_now(const int *turn) {
  md.self->where = HERE;
  return *(const volatile int *)turn;
}

static void learn_turn(Thread *t, const int *turn) {
  Turn *x = turn_of(turn);
  for (u32 i = 0; i < x->told.n; i++)
    md_meet_gang(t->mind, t->cta->gang->id, x->told.at[i].gang, x->told.at[i].know);
  md_fence(t->mind, true);
}

void md_turn_take(const int *turn, int mine) {
  Thread *t = md.self;
  t->where = HERE;
  md_pause();
  check_word(t, turn);
  while (*(const volatile int *)turn != mine)
    md_wait(&waiting,
            (Waiting){.what = WAITS_TURN, .a = (u32)mine, .turn = turn, .where = t->where});
  learn_turn(t, turn);
}

void md_turn_take_for(const int *turn, int mine, unsigned *waits, unsigned entry) {
  Thread *t = md.self;
  t->where = HERE;
  md_pause();
  check_word(t, turn);
  bool silent = waits[0] != 0;
  while (*(const volatile int *)turn != mine) {
    md_wait(&waiting, (Waiting){.what = WAITS_TURN,
                                .bounded = true,
                                .silent = silent,
                                .a = (u32)mine,
                                .turn = turn,
                                .where = t->where});
    if (!t->given_up) continue;
    t->given_up = false;
    md_give_up(t, waits, entry, (u32)*turn, (u32)mine);
    return;
  }
  learn_turn(t, turn);
}

void md_turn_pass(int *turn) {
  Thread *t = md.self;
  t->where = HERE;
  md_pause();
  check_word(t, turn);
  md_fence(t->mind, true);
  Brings mine = {0};
  md_tell(&mine, t->mind);
  Know *k = md_settle(&mine);
  free(mine.at);
  Turn *x = turn_of(turn);
  Know *own = md_of_own(k);
  tell(x, t->cta->gang->id, own);
  md_drop(own);
  for (u32 i = 0; i < k->foreigners; i++) tell(x, k->foreign[i].gang, k->foreign[i].know);
  md_drop(k);
  ++*turn;
  md_wake(&waiting);
}

// ---- draws

int md_draw(int *counter) {
  Thread *t = md.self;
  t->where = HERE;
  md_pause();
  check_word(t, counter);
  return (*counter)++;
}

void md_draw_none(int *counter) {
  md.self->where = HERE;
  check_word(md.self, counter);
  *counter = 0;
}

// ---- loads, stores and additions

// One stamp for all that a thread does at one place of the code in one epoch.
static u32 stamp_of(Thread *t, const void *where, Deed deed) {
  u32 slot = (u32)(((uintptr_t)where >> 2 ^ deed) % COUNT(t->recent));
  if (t->recent[slot].stamp && t->recent[slot].where == where &&
      t->recent[slot].epoch == t->mind->epoch && t->recent[slot].deed == deed)
    return t->recent[slot].stamp;
  Stamp s = {t->cta->gang->id, t->mind->comp, t->mind->epoch, t->id, where, (u8)deed, BY_THREAD};
  t->recent[slot].stamp = md_stamp(&s);
  t->recent[slot].where = where;
  t->recent[slot].epoch = t->mind->epoch;
  t->recent[slot].deed = (u8)deed;
  return t->recent[slot].stamp;
}

static void touch(Thread *t, u64 at, u32 bytes, Deed deed, const void *where) {
  md_behind(t);
  if (!md_in_memory(at, bytes))
    md_fault("R8", where, "%s %s %u bytes of global memory at %s, where nothing is allocated",
             md_thread_name(t), deed == DEED_READ ? "reads" : "writes", bytes, md_global_name(at));
  Actor a = md_actor(t);
  md_touch(&a, stamp_of(t, where, deed), NULL, at, bytes);
}

void md_add_float(float *to, const float *x, unsigned n) {
  Thread *t = md.self;
  t->where = HERE;
  if ((uintptr_t)to % (n * sizeof *to))
    md_fault("T5", t->where, "an addition of %u floats is not aligned to them", n);
  touch(t, (uintptr_t)to, n * sizeof *to, DEED_ADD, t->where);
  for (u32 i = 0; i < n; i++) to[i] += x[i];
}

void md_add_int(int *to, int x) {
  Thread *t = md.self;
  t->where = HERE;
  touch(t, (uintptr_t)to, sizeof *to, DEED_ADD, t->where);
  *to = (int)((u32)*to + (u32)x);
}

// ---- shared memory

void md_load(unsigned at, void *to, unsigned bytes) {
  Thread *t = md.self;
  t->where = HERE;
  u32 offset = md_offset(t->cta, at, bytes);
  if (at % bytes)
    md_fault("T5", t->where, "a load of %u bytes of shared memory is not aligned to them", bytes);
  Actor a = md_actor(t);
  md_touch(&a, stamp_of(t, t->where, DEED_READ), t->cta, offset, bytes);
  memcpy(to, t->cta->smem + offset, bytes);
}

void md_store(unsigned at, const void *from, unsigned bytes) {
  Thread *t = md.self;
  t->where = HERE;
  u32 offset = md_offset(t->cta, at, bytes);
  if (at % bytes)
    md_fault("T5", t->where, "a store of %u bytes of shared memory is not aligned to them", bytes);
  Actor a = md_actor(t);
  md_touch(&a, stamp_of(t, t->where, DEED_WRITE), t->cta, offset, bytes);
  memcpy(t->cta->smem + offset, from, bytes);
}

void md_fence_async(int global) {
  md.self->where = HERE;
  md_fence(md.self->mind, global);
}

// ---- what the compiler shows us

static void check_aligned(u64 at, u32 bytes, bool write, const void *where) {
  if (at % bytes)
    md_fault("T5", where, "%s %s %u bytes at %s, which is not aligned to them",
             md_thread_name(md.self), write ? "stores" : "loads", bytes, md_global_name(at));
}

// `aligned`: hardware wants the address to be a multiple of the bytes.
static inline __attribute__((always_inline)) void seen(char *at, u32 bytes, bool write,
                                                       bool aligned, const void *where) {
  Thread *t = md.self;
  if (!t) return;
  u64 on_stack = (u64)(at - t->fiber->stack);
  if (on_stack < STACK_BYTES) {
    u32 from = (u32)on_stack;
    if (at < t->low) t->low = at;
    for (u32 g = from / TOUCH_GRAIN; g <= (from + bytes - 1) / TOUCH_GRAIN; g++)
      t->touched[g / 8] |= (u8)(1u << g % 8);
    if (t->fragments) md_registers(t, from, bytes, write, where);
  } else if (md_is_global((uintptr_t)at)) {
    if (aligned) check_aligned((uintptr_t)at, bytes, write, where);
    touch(t, (uintptr_t)at, bytes, write ? DEED_WRITE : DEED_READ, where);
  }
}

#define SEEN(n)                                                                \
  void __tsan_read##n(void *at) { seen(at, n, false, true, HERE); }            \
  void __tsan_write##n(void *at) { seen(at, n, true, true, HERE); }            \
  void __tsan_unaligned_read##n(void *at) { seen(at, n, false, false, HERE); } \
  void __tsan_unaligned_write##n(void *at) { seen(at, n, true, false, HERE); } \
  void __tsan_volatile_read##n(void *at) { seen(at, n, false, true, HERE); }   \
  void __tsan_volatile_write##n(void *at) { seen(at, n, true, true, HERE); }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
SEEN(1)
SEEN(2)
SEEN(4)
SEEN(8)
SEEN(16)
void __tsan_init(void) {}
void __tsan_read_range(void *at, unsigned long n) { seen(at, (u32)n, false, false, HERE); }
void __tsan_write_range(void *at, unsigned long n) { seen(at, (u32)n, true, false, HERE); }
void *__tsan_memcpy(void *to, const void *from, unsigned long n) {
  seen((char *)from, (u32)n, false, false, HERE);
  seen(to, (u32)n, true, false, HERE);
  return memcpy(to, from, n);
}
void *__tsan_memmove(void *to, const void *from, unsigned long n) {
  seen((char *)from, (u32)n, false, false, HERE);
  seen(to, (u32)n, true, false, HERE);
  return memmove(to, from, n);
}
void *__tsan_memset(void *to, int x, unsigned long n) {
  seen(to, (u32)n, true, false, HERE);
  return memset(to, x, n);
}
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void) {}
#pragma GCC diagnostic pop
